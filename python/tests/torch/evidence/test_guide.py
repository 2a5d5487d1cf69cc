"""docs/reproducible-training.md: its script prints what stands there, to the last digit."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import librepdl

GUIDE = Path(__file__).resolve().parents[4] / "docs" / "reproducible-training.md"


def test_the_script_prints_what_the_guide_says(tmp_path):
    if not GUIDE.exists():
        pytest.skip("outside the repository")
    script, printed = re.search(r"```python\n(.*?)```.*?```\n(.*?)```", GUIDE.read_text(), re.S).groups()
    (tmp_path / "train.py").write_text(script)
    sets = [name for name, there in librepdl.info()["instruction_sets"].items() if there]
    done = subprocess.run([sys.executable, "-m", "librepdl.torch", "run", "train.py"], cwd=tmp_path, capture_output=True, text=True,
                          env={**os.environ, "REPDL_ISA": sets[0], "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0 and done.stdout == printed, done.stdout + done.stderr
