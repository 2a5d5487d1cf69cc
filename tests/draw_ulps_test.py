#!/usr/bin/env python3
"""Tests of tools/draw_ulps.py on few inputs: librepdl is right, and a wrong result is found.

    tests/draw_ulps_test.py REPDL
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "tools/draw_ulps.py"
# The identity, for every function.
WRONG = '#!/bin/sh\ncase $1 in info) echo "exp  (x)" ;; eval) cp "$3" "$5" ;; esac\n'


def run(directory, program):
    return subprocess.run([sys.executable, SCRIPT, "--repdl", program, "--bins", "4", "--inputs", "64", "--out", directory / "ulps.svg",
                           "exp", "log", "tanh"], capture_output=True, text=True)


def main():
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        done = run(directory, pathlib.Path(sys.argv[1]).resolve())
        assert done.returncode == 0, done.stdout + done.stderr
        ours = re.findall(r"^  (\w+) +librepdl +(\S+) +\S+ +(\S+) +256$", done.stdout, re.M)
        assert [name for name, _, _ in ours] == ["exp", "log", "tanh"] and all(wrong == "none" for _, _, wrong in ours), done.stdout
        assert all(0.4 < float(ulps) <= 0.5 for _, ulps, _ in ours), done.stdout
        assert len(re.findall(r"^  \w+ +glibc ", done.stdout, re.M)) == 3, done.stdout
        svg = xml.etree.ElementTree.parse(directory / "ulps.svg").getroot()
        titles = [t.text for t in svg.iter("{http://www.w3.org/2000/svg}title")]
        assert {"librepdl, exp: at most " + ulps for name, ulps, _ in ours if name == "exp"} <= set(titles), titles

        wrong = directory / "wrong"
        wrong.write_text(WRONG)
        wrong.chmod(0o755)
        done = run(directory, wrong)
        assert done.returncode == 1 and "not correctly rounded: exp" in done.stderr, done.stdout + done.stderr
        assert "log: not in librepdl" in re.sub(r"NumPy[^,]*, |PyTorch[^,]*, ", "", done.stdout), done.stdout
        print("draw_ulps: 3 functions right, a wrong one found")


if __name__ == "__main__":
    main()
