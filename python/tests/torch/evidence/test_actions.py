"""The commands of examples/ci/reproducible.yml, as they stand there, on two "machines" of other threads and instruction sets."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import librepdl

pytestmark = pytest.mark.long  # in ./run ci by turns, too
yaml = pytest.importorskip("yaml")
EXAMPLE = Path(__file__).resolve().parents[4] / "examples" / "ci"


@pytest.fixture(scope="module")
def jobs():
    return yaml.safe_load((EXAMPLE / "reproducible.yml").read_text())["jobs"]


def run(job, place, **environment):
    """The job's commands in a directory, but for what they install; the last one's output, status and what was printed of the one that failed."""
    variables = {**os.environ, **{key: str(value) for key, value in job.get("env", {}).items()}, **environment}
    variables["PATH"] = f"{place.parent / 'bin'}:{variables['PATH']}"
    commands = [step["run"] for step in job["steps"] if "run" in step and not step["run"].startswith("pip install ")]
    assert len(commands) == 2
    done = None
    for command in commands:
        done = subprocess.run(["bash", "-e", "-c", command], cwd=place, capture_output=True, text=True, env=variables)
        if done.returncode != 0:
            break
    return done


def test_its_commands(jobs, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tmp_path / "bin" / "python").chmod(0o755)
    sets = [name for name, there in librepdl.info()["instruction_sets"].items() if there]
    runners = jobs["train"]["strategy"]["matrix"]["runner"]
    uploaded = next(step["with"] for step in jobs["train"]["steps"] if step.get("uses", "").startswith("actions/upload-artifact"))
    assert len(runners) == 2 and uploaded["name"] == "${{ matrix.runner }}"
    downloaded = tmp_path / "compare"
    for runner, way in zip(runners, ({"OMP_NUM_THREADS": "1", "REPDL_ISA": sets[0]}, {"OMP_NUM_THREADS": "2", "REPDL_ISA": sets[-1]}), strict=True):
        place = tmp_path / runner
        place.mkdir()
        shutil.copy(EXAMPLE / "train.py", place)
        done = run(jobs["train"], place, **way)
        assert done.returncode == 0, done.stdout + done.stderr
        (downloaded / runner).mkdir(parents=True)
        for name in uploaded["path"].split():
            shutil.copy(place / name, downloaded / runner)
    done = run(jobs["compare"], downloaded)
    assert done.returncode == 0 and done.stdout == "ubuntu-22.04/run.json and ubuntu-24.04-arm/run.json: the same\n", done.stdout + done.stderr
    # One tensor of one of them is another: the third job fails, and names it.
    path = downloaded / runners[1] / "fingerprints.json"
    record = json.loads(path.read_text())
    record["entries"][3]["tensors"]["/'model'/'3.bias'"] = "0" * 16
    path.write_text(json.dumps(record))
    done = run(jobs["compare"], downloaded)
    assert done.returncode == 1
    assert done.stdout.startswith("ubuntu-22.04/fingerprints.json and ubuntu-24.04-arm/fingerprints.json: NOT THE SAME: "
                                  "epoch 3, step 32: tensor /'model'/'3.bias': '")
