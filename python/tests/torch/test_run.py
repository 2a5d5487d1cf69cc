"""python -m librepdl.torch run: the program as it is, after enable()."""

import subprocess
import sys

SCRIPT = '''
import sys, torch, librepdl.torch
data = torch.linspace(-3, 3, 99).exp()
if __name__ == "__main__":
    import helper
    print(sys.argv, __file__, __spec__ is None, sys.modules["__main__"].__dict__ is globals(), helper.value)
    print(librepdl.torch.is_enabled(), librepdl.torch.status()["strict"], torch.equal(data, librepdl.exp(torch.linspace(-3, 3, 99))))
    sys.exit(3)
'''
FAILING = '''
def inner():
    raise ValueError("of its own")

if __name__ == "__main__":
    inner()
'''


def run(*arguments, **options):
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, **options)


def test_a_script_with_its_arguments(tmp_path):
    (tmp_path / "helper.py").write_text("value = 7\n")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = run("-m", "librepdl.torch", "run", script, "--no-strict", "-m", "x")
    assert done.returncode == 3, done.stderr
    first, second = done.stdout.splitlines()
    assert first == f"{[str(script), '--no-strict', '-m', 'x']} {script} True True 7"
    assert second == "True True True"


def test_a_module_without_strictness(tmp_path):
    (tmp_path / "helper.py").write_text("value = 7\n")
    (tmp_path / "program.py").write_text(SCRIPT)
    done = run("-m", "librepdl.torch", "run", "--no-strict", "-m", "program", "a", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    first, second = done.stdout.splitlines()
    assert first == f"{[str(tmp_path / 'program.py'), 'a']} {tmp_path / 'program.py'} False True 7"
    assert second == "True False True"


def test_errors_are_the_programs_own(tmp_path):
    script = tmp_path / "failing.py"
    script.write_text(FAILING)
    plain, ours = run(script), run("-m", "librepdl.torch", "run", script)
    assert ours.returncode == plain.returncode == 1
    assert ours.stderr == plain.stderr and "of its own" in ours.stderr
    absent = run("-m", "librepdl.torch", "run", tmp_path / "absent.py")
    assert absent.returncode == 2 and "absent.py" in absent.stderr
