"""A new user's script, from initialisation to trained networks of torchvision and timm: one fingerprint however it runs."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(any(importlib.util.find_spec(name) is None for name in ("torchvision", "timm")),
                                reason="without torchvision or timm")


def test_one_fingerprint():
    script = Path(__file__).with_name("newcomer.py")
    found = []
    for options in (["--threads", "1"], ["--threads", "2", "--workers", "1", "--channels-last"]):
        run = subprocess.run([sys.executable, str(script), *options], capture_output=True, text=True,
                             env={**os.environ, "HF_HUB_OFFLINE": "1"})
        assert run.returncode == 0, run.stderr
        found.append(run.stdout.splitlines()[-1])
    assert found[0] == found[1] and len(found[0]) == 64
