"""The zoo of models (examples/pytorch/zoo.py): each has one fingerprint, the recorded one; fifteen by turns, all in the long run."""

import datetime
import importlib.util
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import librepdl.torch

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples" / "pytorch"


@pytest.fixture(scope="module")
def command():
    """zoo.py as a module: its name is the package's, too."""
    sys.path.insert(0, str(EXAMPLES))
    spec = importlib.util.spec_from_file_location("zoo_command", EXAMPLES / "zoo.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["zoo_command"] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(EXAMPLES))


def run(*arguments):
    done = subprocess.run([sys.executable, str(EXAMPLES / "zoo.py"), *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_fifteen_models_by_turns(command, tmp_path):
    """A commit has the same ones whenever it is tested."""
    asked = subprocess.run(["git", "rev-parse", "HEAD^{tree}"], cwd=ROOT, capture_output=True, text=True)
    turn = asked.stdout.strip() or str(datetime.date.today())
    there = [name for name, entry in command.zoo.entries().items() if not entry.absent()]
    chosen = random.Random(turn).sample(there, 15)
    status, output, errors = run("--reproducible", "--only", ",".join(chosen), "--json", tmp_path / "found")
    assert status == 0, output + errors
    found = json.loads((tmp_path / "found").read_text())
    assert {model["name"] for model in found} == set(chosen)
    assert all(model["fingerprint"] or model["refused"] for model in found), output


@pytest.mark.long
def test_all_models():
    status, output, errors = run("--reproducible", "--settings", "all")
    assert status == 0, output + errors


def test_documents_are_of_the_record(command):
    packages, lines = command.recorded()
    entries = command.zoo.entries()
    assert list(lines) == list(entries)
    assert command.document(lines) == command.DOCUMENT.read_text(), "examples/pytorch/zoo.py --reproducible --write writes it"
    assert set(packages) == {"timm", "transformers"}
    assert len(entries) >= 60 and 3 * sum(entry.package is not None for entry in entries.values()) >= len(entries)


class Options:
    settings, device, reproducible = ("plain", "all-others"), "cpu", True


def examined(command, build, package=None):
    """The outcome of a model made here, and of its comparison with the record of another one."""
    librepdl.torch.enable()
    entry = command.zoo.Entry("lenet", "vision", package, build)
    outcome = command.examine(entry, Options())
    command.compare(outcome, entry, command.recorded(), "cpu")
    return outcome


def linear(command, **options):
    return command.zoo.Task(nn.Linear(6, 4), command.zoo.vectors(6), command.zoo.classify, **options)


def test_faults_are_seen(command):
    zoo = command.zoo
    good = examined(command, zoo.entries()["lenet"].build)
    assert good.fingerprint and not good.wrong and not good.remark
    other = examined(command, lambda: linear(command))
    assert other.wrong and other.remark.startswith("zoo.txt has ")
    together = examined(command, lambda: linear(command, serve=lambda net, x, y: net(x) - net(x).mean(0)))
    assert together.wrong and together.remark == "a sample's result depends on its batch"
    setting = examined(command, lambda: linear(command, after=lambda net: net.weight.data.add_(torch.get_num_threads())))
    assert setting.wrong and setting.remark.startswith("not one: plain ")
    broken = examined(command, lambda: linear(command, serve=lambda net, x, y: net(x.T)))
    assert broken.wrong and broken.remark.startswith("failed: RuntimeError: ")
    endless = examined(command, lambda: linear(command, after=lambda net: net.weight.data.fill_(torch.inf)))
    assert endless.wrong and "finite" in endless.remark


def test_what_is_refused_and_passed_over(command):
    def loss(net, x, label):
        return torch.special.erfcx(net(x)).sum()

    refused = examined(command, lambda: command.zoo.Task(nn.Linear(6, 4), command.zoo.vectors(6), loss))
    assert refused.refused == ("aten::special_erfcx",) and refused.parameters == 28
    absent = examined(command, lambda: None, package="no_such_package")
    assert absent.remark == "passed over: no_such_package is not installed" and not absent.wrong


def test_the_command_line(tmp_path):
    status, output, _ = run("--list", "--only", "audio")
    assert status == 0 and "\nwavenet " in output and "resnet" not in output
    for arguments, text in ((("--only", "nonsense"), "--only: expected models or families of --list, got 'nonsense'"),
                            (("--settings", "fast"), "foreach, all-others or all, got 'fast'"),
                            (("--write",), "--write: expected --reproducible with it"),
                            (("--json", tmp_path / "none" / "x"), "--json: expected a file in a directory that can be written")):
        status, _, errors = run(*arguments)
        assert status == 2 and text in errors, errors
