"""The record of a run: the same twice, another one for each thing that is changed, checked before it is believed, run again and compared."""

import copy
import dataclasses
import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import librepdl.torch
from librepdl.torch import __main__ as command
from librepdl.torch import evidence
from librepdl.torch.evidence import _manifest, _surroundings

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "pytorch"


# ---- first_difference ----

def states():
    torch.manual_seed(0)
    return {"model": nn.Linear(3, 2), "best": 0.25, "epoch": 3, "half": torch.ones(2, 3, dtype=torch.bfloat16), "mask": torch.tensor([True, False]),
            "none": torch.ones(0), "function": print, "z": torch.tensor(0.0)}


@pytest.mark.parametrize("change, expected", [
    (lambda s: s["model"].weight.data[1].neg_(), "/'model'/'weight': 3 of 6 elements differ, the first at [1, 0]: "),
    (lambda s: s["half"][1, 2].fill_(2), "/'half': 1 of 6 elements differ, the first at [1, 2]: 1.0 (0x3f80) and 2.0 (0x4000)"),
    (lambda s: s["mask"][1].fill_(True), "/'mask': 1 of 2 elements differ, the first at [1]: False (0x00) and True (0x01)"),
    (lambda s: s["z"].neg_(), "/'z': 1 of 1 elements differ, the first at []: 0.0 (0x00000000) and -0.0 (0x80000000)"),
    (lambda s: s.update(half=s["half"].float()), "/'half': bfloat16 of shape [2, 3] and float32 of shape [2, 3]"),
    (lambda s: s.update(best=0.5), "/'best': 0.25 (0x1.0000000000000p-2) and 0.5 (0x1.0000000000000p-1)"),
    (lambda s: s.update(epoch=True), "/'epoch': int 3 and bool True"),
    (lambda s: s.update(z=None), "/'z': Tensor of shape [] and NoneType None"),
    (lambda s: s.pop("z"), "/'z': only in the first"),
    (lambda s: s.update(zz=1), "/'zz': only in the second")])
def test_the_first_difference(change, expected):
    a, b = states(), states()
    assert evidence.first_difference(a, b) is None
    change(b)
    found = evidence.first_difference(a, b)
    assert found.startswith(expected)
    assert librepdl.torch.fingerprint(a) != librepdl.torch.fingerprint(b)


def test_no_difference_where_fingerprints_are_equal():
    x = torch.randn(2, 3, 4, 5)
    assert evidence.first_difference([x], [x.to(memory_format=torch.channels_last)]) is None
    with pytest.raises(TypeError, match="first_difference: /0: expected tensors, .* got set"):
        evidence.first_difference([1], [{1}])


# ---- one record and its perturbations ----

@dataclasses.dataclass
class World:
    """Everything that a small run is made of."""

    folder: Path
    program: str = "import helper\n"
    helper: str = "value = 1\n"
    tracked: str = "read me\n"
    arguments: tuple = ("--epochs", "3")
    config: dict = dataclasses.field(default_factory=lambda: {"lr": 0.1, "layers": [1, 2]})
    variable: str = "a"
    data: str = "1,2\n"
    name: str = "data.csv"
    sequence: tuple = (1.0, "two", torch.ones(2))
    tensor: torch.Tensor = dataclasses.field(default_factory=lambda: torch.arange(4.0))
    seed: int = 1
    drawn: tuple = ()
    weights: torch.Tensor = dataclasses.field(default_factory=lambda: torch.zeros(3))
    steps: tuple = ("1", "2")
    strict: bool = True
    package: str = "1.0"
    container: str = "sha256:1"
    threads: int = 1

    def record(self, patch):
        """Makes all that, and the record."""
        for file, text in (("program.py", self.program), ("helper.py", self.helper), ("tracked.txt", self.tracked)):
            (self.folder / file).write_text(text)
        data = self.folder / "data"
        data.mkdir(exist_ok=True)
        for old in data.iterdir():
            old.unlink()
        (data / self.name).write_text(self.data)
        (self.folder / "site-packages/a-1.0.dist-info/METADATA").write_text(f"Metadata-Version: 2.1\nName: a\nVersion: {self.package}\n")
        patch.setattr(sys, "argv", ["program.py", *self.arguments])
        patch.setenv("A_VARIABLE", self.variable)
        patch.setenv("CONTAINER_DIGEST", self.container)
        torch.set_num_threads(self.threads)
        torch.manual_seed(self.seed)
        librepdl.torch.enable(self.strict)
        run = evidence.manifest(self.config, variables=["A_VARIABLE"], program=self.folder / "program.py")
        for draw in self.drawn:
            draw()
        run.data("folder", data)
        run.data("sequence", self.sequence)
        run.data("tensor", self.tensor)
        for step in self.steps:
            run.fingerprint(f"step {step}", {"weights": self.weights})
        return run.record()


def seeded(draw):
    """With the generators' states as they are, whatever ran before."""
    return lambda: (random.seed(1), np.random.seed(1), draw())


def negative_zero():
    weights = torch.zeros(3)
    weights[1] = -0.0
    return weights


PERTURBATIONS = {
    "program": ("code", {"program": "import helper \n"}),
    "module": ("code", {"helper": "value = 2\n"}),
    "tracked file": ("code", {"tracked": "read me!\n"}),
    "arguments": ("configuration", {"arguments": ("--epochs", "4")}),
    "order of arguments": ("configuration", {"arguments": ("3", "--epochs")}),
    "last bit of a number": ("configuration", {"config": {"lr": 0.1 + 2.0**-56, "layers": [1, 2]}}),
    "type of a number": ("configuration", {"config": {"lr": 0.1, "layers": [1, 2.0]}}),
    "key": ("configuration", {"config": {"rate": 0.1, "layers": [1, 2]}}),
    "variable": ("configuration", {"variable": "b"}),
    "content of a file": ("data", {"data": "1,3\n"}),
    "name of a file": ("data", {"name": "date.csv"}),
    "order of data": ("data", {"sequence": ("two", 1.0, torch.ones(2))}),
    "sign of a zero": ("data", {"tensor": torch.tensor([-0.0, 1.0, 2.0, 3.0])}),
    "type of a tensor": ("data", {"tensor": torch.arange(4.0).bfloat16()}),
    "shape of a tensor": ("data", {"tensor": torch.arange(4.0).reshape(2, 2)}),
    "seed": ("random", {"seed": 2}),
    "PyTorch's draws": ("random", {"drawn": (lambda: torch.rand(1),)}),
    "Python's draws": ("random", {"drawn": (seeded(random.random),)}),
    "NumPy's draws": ("random", {"drawn": (seeded(np.random.random),)}),
    "one bit of a weight": ("fingerprints", {"weights": negative_zero()}),
    "steps": ("fingerprints", {"steps": ("1", "2", "3")}),
    "name of a step": ("fingerprints", {"steps": ("1", "one")}),
    "strictness": ("arithmetic", {"strict": False}),
    "package": ("environment", {"package": "1.1"}),
    "container": ("environment", {"container": "sha256:2"}),
    "threads": ("hardware", {"threads": 2}),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A git repository with a program and a module that this process has imported."""
    for file in ("program.py", "helper.py", "tracked.txt"):
        (tmp_path / file).write_text(getattr(World(tmp_path), file.partition(".")[0]))
    (tmp_path / ".gitignore").write_text("data\nsite-packages\n__pycache__\n")
    (tmp_path / "site-packages/a-1.0.dist-info").mkdir(parents=True)
    for name in ("NAME", "EMAIL"):
        monkeypatch.setenv(f"GIT_AUTHOR_{name}", "a")
        monkeypatch.setenv(f"GIT_COMMITTER_{name}", "a")
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "a"]):
        subprocess.run(["git", "-C", tmp_path, *arguments], check=True)
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "helper", raising=False)
    __import__("helper")
    yield tmp_path
    sys.modules.pop("helper", None)


def test_the_same_twice_and_another_id_for_each_perturbation(folder):
    def made(**changes):
        with pytest.MonkeyPatch.context() as patch:
            return dataclasses.replace(World(folder), **changes).record(patch)

    plain = made()
    assert made() == plain
    ids = {plain["id"]}
    for name, (category, changes) in PERTURBATIONS.items():
        other = made(**changes)
        assert other["id"] not in ids, name
        ids.add(other["id"])
        comparison = evidence.compare(plain, other)
        assert category in (comparison.noted if category in _manifest.MAY_DIFFER else comparison.different), name
        assert bool(comparison) == (category in _manifest.MAY_DIFFER) == (plain["agreement"] == other["agreement"]), name
        assert evidence.compare(plain, other, _manifest.MUST_AGREE), name
    assert made() == plain
    subprocess.run(["git", "-C", folder, "commit", "-q", "--allow-empty", "-m", "b"], check=True)
    assert made()["id"] not in ids and "git/commit" in evidence.compare(plain, made()).different["code"]
    assert len(ids) > 20


def test_what_differs_first_is_named(monkeypatch):
    for name in ("environment", "code"):  # the same in all of them
        monkeypatch.setattr(_surroundings, name, lambda *_: {})

    def record(*steps, drawn=False):
        torch.manual_seed(1)
        run = evidence.manifest()
        for i, state in enumerate(steps):
            run.fingerprint(i, state)
            if drawn and i == 1:
                torch.rand(1)
        return run.record()

    a = {"a": torch.zeros(2), "b": torch.zeros(2), "c": 1.0}
    b = {"a": torch.zeros(2), "b": torch.ones(2), "c": 2.0}
    assert evidence.compare(record(a, a, a), record(a, b, a)).different == {"fingerprints": "at 1: /'b' and 1 more of 3 differ"}
    assert evidence.compare(record(a, a), record(a)).different == {"fingerprints": "at 1: only in the first"}
    assert evidence.compare(record(a), record(a, a)).different == {"fingerprints": "at 1: only in the second"}
    drawn = evidence.compare(record(a, a, a), record(a, a, a, drawn=True)).different
    assert drawn["fingerprints"] == "at 2: the state of PyTorch's random generator differs, and no tensor"
    assert set(drawn) == {"random", "fingerprints"}
    assert str(evidence.compare(record(a), record(b))).startswith("DIFFERS     fingerprints: at 0: /'b' and 1 more of 3 differ")
    with pytest.raises(ValueError, match="expected categories among code, .* got 'codes'"):
        evidence.compare(record(a), record(a), ["codes"])


# ---- data ----

def test_data(tmp_path):
    run = evidence.manifest()
    file = tmp_path / "file"
    file.write_bytes(bytes(range(256)) * 9000)
    assert run.data("file", file) == run.data("the same, a str", str(file)) == hashlib.sha256(file.read_bytes()).hexdigest()
    x = torch.randn(3, 4)
    assert run.data("tensor", x) == run.data("array", x.numpy()) == librepdl.torch.fingerprint(x)
    assert run.data("items", [x, file, {"a": np.float32(1)}]) != run.data("other order", [file, x, {"a": np.float32(1)}])
    batches = [(x, torch.tensor([1])), (x + 1, torch.tensor([2]))]
    assert all(a is b for a, b in zip(run.stream("streamed", iter(batches)), batches, strict=True))
    assert run.entries()["streamed"] == {"kind": "sequence", "items": 2, "sha256": run.data("batches", batches)}
    (tmp_path / "folder/below").mkdir(parents=True)
    (tmp_path / "folder/below/a").write_text("a")
    one = run.data("folder", tmp_path / "folder")
    (tmp_path / "folder/below").rename(tmp_path / "folder/above")
    assert run.data("folder renamed", tmp_path / "folder") != one
    assert run.entries()["folder"]["files"] == 1
    # Wrong ones.
    (tmp_path / "folder/link").symlink_to(tmp_path)
    for name, source, error, text in (("linked", tmp_path / "folder", ValueError, "link: expected no links to directories"),
                                      ("file", x, ValueError, "data 'file': expected another name"),
                                      ("absent", tmp_path / "absent", FileNotFoundError, "data 'absent': No such file or directory"),
                                      ("number", 3, TypeError, "data 'number': expected a path, a tensor, .* got int"),
                                      ("set", [x, {1}], TypeError, "data 'set', item 1: .* got set")):
        with pytest.raises(error, match=text):
            run.data(name, source)


def test_wrong_arguments():
    for arguments, error, text in (({"config": [1]}, TypeError, "config: expected a dict, got list"),
                                   ({"config": {"a": {1: 2}}}, TypeError, "config/a: expected keys that are strings, got 1"),
                                   ({"config": {"a": [torch.nn]}}, TypeError, "config/a/0: expected numbers, .* got module"),
                                   ({"variables": "PATH"}, TypeError, "variables: expected a list of names, got the text 'PATH'"),
                                   ({"seeds": {"torch": 1}}, ValueError, "seeds: expected the keys python and numpy, got 'torch'")):
        with pytest.raises(error, match=f"manifest: {text}"):
            evidence.manifest(**arguments)
    run = evidence.manifest()
    run.fingerprint(1, {})
    with pytest.raises(ValueError, match="fingerprint at '1': expected another name"):
        run.fingerprint("1", {})


# ---- files ----

def test_files_that_are_no_records(tmp_path, capsys, monkeypatch):
    run = evidence.manifest({"lr": float("nan"), "place": Path("a")})
    file = tmp_path / "run.json"
    assert run.id == run.save(file) == evidence.load(file)["id"]
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
    assert evidence.load(file)["must_agree"]["configuration"]["config"] == {"lr": {"float": "nan"}, "place": "a"}
    whole = file.read_text()
    record = json.loads(whole)
    edited = copy.deepcopy(record)
    edited["must_agree"]["configuration"]["config"]["lr"] = 1
    newer = {**record, "format": "librepdl run 2"}
    without = {**record, "must_agree": {}}
    for text, error in ((whole[: len(whole) // 2], "expected the record of a run in JSON"), ("[]", "found no format"), ("\x80", "in JSON"),
                        (json.dumps(edited), "its content has the id .* the file was damaged or edited"),
                        (json.dumps({**record, "agreement": "0"}), "its content has the agreement .* the file was damaged or edited"),
                        (json.dumps(newer), "expected the format 'librepdl run 1', got 'librepdl run 2': .* another version"),
                        (json.dumps(without), "must_agree: expected the categories code, ")):
        file.write_text(text, "latin-1")
        with pytest.raises(evidence.BadManifest, match=error):
            evidence.load(file)
        assert librepdl_torch(monkeypatch, "verify", file) == 2
        assert str(file) in capsys.readouterr().err
    assert librepdl_torch(monkeypatch, "verify", tmp_path / "absent") == 2 and "No such file" in capsys.readouterr().err
    with pytest.raises(FileNotFoundError):
        run.save(tmp_path / "absent/run.json")


def librepdl_torch(monkeypatch, *arguments):
    """The status of the command, in this process."""
    monkeypatch.setattr(sys, "argv", ["librepdl.torch", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        command.main()
    return ended.value.code


def test_the_checklist(folder, capsys, monkeypatch):
    world, file = World(folder), folder / "data" / "run.json"
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    record = world.record(monkeypatch)
    _manifest.write(record, file)
    lacks = evidence.checklist(record)
    assert not any(text for category, text in lacks.items() if category != "environment"), lacks  # where a package has no RECORD
    assert "a" in lacks["environment"]
    assert librepdl_torch(monkeypatch, "verify", "--check", file) == 0
    assert f"agreement     {record['agreement']}" in capsys.readouterr().out
    assert librepdl_torch(monkeypatch, "verify", "--require", "code,data,random", file) == 0
    assert librepdl_torch(monkeypatch, "verify", "--require", "code,environment", file) == 1
    assert "required and not complete: environment" in capsys.readouterr().out
    assert librepdl_torch(monkeypatch, "verify", "--require", "cod", file) == 2
    assert "expected categories among code, " in capsys.readouterr().err
    # What is not complete.
    monkeypatch.delenv("PYTHONHASHSEED")
    (folder / "helper.py").unlink()
    subprocess.run(["git", "-C", folder, "rm", "-q", "--cached", "helper.py"], check=True)
    incomplete = dataclasses.replace(world, tracked="changed", strict=False, steps=(), drawn=(random.random, np.random.random))
    torch.default_generator.manual_seed(_manifest._NO_SEED)
    lacks = evidence.checklist(dataclasses.replace(incomplete, seed=_manifest._NO_SEED).record(monkeypatch))
    for category, text in (("code", "changed since the commit: helper.py, tracked.txt"), ("code", "not in git: helper"),
                           ("configuration", "PYTHONHASHSEED was not set"), ("random", "no seed of python's generator; no seed of numpy's"),
                           ("random", "no seed of torch's"), ("arithmetic", "had no fingerprint"), ("fingerprints", "no fingerprint")):
        assert text in lacks[category], (category, lacks)


@pytest.mark.parametrize("file, installed", [("site-packages/torch/x.txt", True), ("a/target/pytest-9.0.dist-info/entry_points.txt", True),
                                             ("a/target/data.csv", False), ("a/dist-info/data.csv", False)])
def test_what_lies_beside_installed_packages_is_no_data(tmp_path, file, installed):
    assert _surroundings.is_installed(tmp_path / file) == installed


def test_a_script_without_git_and_packages_whose_files_are_known(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("")
    run = evidence.manifest(program=program)
    code = run.record()["must_agree"]["code"]
    assert code["git"] is None and code["modules"]["__main__"] == hashlib.sha256(b"").hexdigest()
    assert not any(name.partition(".")[0] in ("torch", "numpy", "librepdl", "json") for name in code["modules"])
    packages = _surroundings.environment()["packages"]
    assert packages["torch"]["version"] == torch.__version__ and len(packages["torch"]["files"]) == 64


# ---- run and verify ----

SCRIPT = '''
import csv, random, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

random.seed(5)
torch.manual_seed(5)
with open("data.csv") as file:
    rows = torch.tensor([[float(cell) for cell in row] for row in csv.reader(file)])
extra = torch.load("extra.pt")

def main():
    model = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.GELU(), nn.Dropout(0.2), nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(rows[:, :3] * extra, rows[:, 3:]), batch_size=8, shuffle=True)
    best = float("inf")
    for epoch in range(3):
        for x, y in loader:
            x = x + random.random() / 16
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            best = min(best, loss.item())
    torch.save(model.state_dict(), "model.pt")
    model.load_state_dict(torch.load("model.pt"))
    print("best", best)

main()
'''


def run(directory, *arguments, status=0, **environment):
    done = subprocess.run([sys.executable, "-m", "librepdl.torch", *map(str, arguments)], capture_output=True, text=True, cwd=directory,
                          env={**os.environ, **environment})
    assert done.returncode == status, done.stderr
    return done


def test_a_script_of_a_user_runs_here_and_is_verified_there(tmp_path, monkeypatch, capfd):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    (here / "script.py").write_text(SCRIPT)
    torch.manual_seed(0)
    np.savetxt(here / "data.csv", torch.randn(20, 4).numpy(), delimiter=",")
    torch.save(torch.ones(3), here / "extra.pt")
    os.system(f"cp -r {here} {there}")
    done = run(here, "run", "--reproducible", "--manifest", "run.json", "script.py", OMP_NUM_THREADS="1", REPDL_ISA="baseline")
    record = evidence.load(here / "run.json")
    assert f"id {record['id']}" in done.stderr and done.stdout.startswith("best ")
    agree = record["must_agree"]
    assert agree["data"]["read"] == {name: {"kind": "file", "bytes": (here / name).stat().st_size,
                                            "sha256": hashlib.sha256((here / name).read_bytes()).hexdigest()} for name in ("data.csv", "extra.pt")}
    assert {name: of["seed"] for name, of in agree["random"].items()} == {"python": 5, "numpy": None, "torch": 5}
    assert [step["at"] for step in agree["fingerprints"]["steps"]] == ["step 1", "step 2", "step 4", "step 8", "the end"]
    # main() has returned: what it trained is known all the same, buffers too, by the names of the model.
    end = agree["fingerprints"]["steps"][-1]["parts"]
    assert {"/'model'/'Sequential.1.running_mean'", "/'optimizer'/'AdamW'/'Sequential.4.weight'/'exp_avg'"} < set(end)
    weights = torch.load(here / "model.pt")
    assert all(end[f"/'model'/'Sequential.{name}'"] == librepdl.torch.fingerprint(tensor)[:16] for name, tensor in weights.items())
    # Another machine: another directory, other threads and instructions.
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert librepdl_torch(monkeypatch, "verify", here / "run.json", "--directory", there) == 0
    out = capfd.readouterr().out
    assert "run.json: the same" in out and "may differ  hardware: threads/OMP_NUM_THREADS: \"1\" and \"2\"" in out
    assert librepdl_torch(monkeypatch, "verify", here / "run.json", "--directory", tmp_path / "absent") == 1
    assert "absent: expected the directory that the program runs in" in capfd.readouterr().out


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A directory, and what a program changes in the process that runs it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    yield tmp_path
    sys.modules.pop("common", None)


def test_lenet_with_other_threads_and_another_rate(here, monkeypatch, capsys):
    lenet = (EXAMPLES / "lenet.py", "--steps", 6, "--batch", 10)
    assert librepdl_torch(monkeypatch, "run", "--manifest", "run.json", "--every", 3, *lenet, "--threads", 1) == 0
    found = evidence.load("run.json")["must_agree"]["fingerprints"]["steps"]
    assert [step["at"] for step in found] == ["step 1", "step 3", "step 6", "the end"]
    capsys.readouterr()
    other = ("--threads", 2, "--channels-last", "--no-mkldnn")
    assert librepdl_torch(monkeypatch, "run", "--verify", "run.json", "--may-differ", "configuration", *lenet, *other) == 0
    assert "run.json: the same\nmay differ  configuration: arguments" in capsys.readouterr().err
    assert librepdl_torch(monkeypatch, "run", "--verify", "run.json", *lenet, "--threads", 1, "--lr", 0.04) == 1
    assert "DIFFERS     fingerprints: at step 1: /'model'/'LeNet.conv1.bias' and " in capsys.readouterr().err


@pytest.mark.long
def test_gpt2_is_verified_on_another_set_of_instructions(tmp_path):
    pytest.importorskip("transformers")
    run(tmp_path, "run", "--manifest", "run.json", EXAMPLES / "gpt2.py", "--steps", 2, "--batch", 2, REPDL_ISA="baseline")
    assert "run.json: the same" in run(tmp_path, "verify", "run.json", OMP_NUM_THREADS="1").stdout


OWN = '''
import sys, torch
from librepdl.torch import enable, evidence
enable()
torch.manual_seed(1)
record = evidence.manifest({"n": 3})
record.data("train", "data.csv")
record.fingerprint("draw", {"draw": torch.randn(3)})
record.fingerprint("sum", {"draw": torch.ones(3), "data": open("data.csv").read()})
record.save(sys.argv[1])
'''


def test_a_program_that_makes_its_own_record(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "data.csv").write_text("1,2")
    subprocess.run([sys.executable, "own.py", "run.json"], cwd=tmp_path, check=True)
    before = (tmp_path / "run.json").read_bytes()
    (tmp_path / "data.csv").write_text("1,3")
    comparison = evidence.verify(tmp_path / "run.json")
    assert (tmp_path / "run.json").read_bytes() == before  # the replay's is elsewhere
    assert not comparison and set(comparison.different) == {"data", "fingerprints"}
    assert comparison.different["data"].startswith("named/train/sha256: ")
    assert comparison.different["fingerprints"] == "at sum: /'data' of 2 differ"
    (tmp_path / "own.py").write_text("raise SystemExit(4)")
    with pytest.raises(evidence.NoReplay, match="own.py run.json: ended with status 4 and left no record"):
        evidence.verify(tmp_path / "run.json")


def test_endings(here, monkeypatch, capsys):
    script = here / "script.py"
    script.write_text("import sys\nif sys.argv[1] == 'error':\n    raise ValueError('of its own')\nsys.exit(int(sys.argv[1]))\n")
    assert librepdl_torch(monkeypatch, "run", "--no-data", "--manifest", "run.json", script, 3) == 3
    record = evidence.load(here / "run.json")
    assert record["must_agree"]["fingerprints"] == {"steps": [], "status": 3}
    assert librepdl_torch(monkeypatch, "run", "--verify", "run.json", script, 3) == 3
    assert "run.json: the same" in capsys.readouterr().err
    assert librepdl_torch(monkeypatch, "run", "--verify", "run.json", script, 0) == 1
    assert "DIFFERS     fingerprints: status: 3 and 0" in capsys.readouterr().err
    done = run(here, "run", "--plain", "--manifest", "none.json", script, "error", status=1)
    plain = subprocess.run([sys.executable, script, "error"], capture_output=True, text=True)
    assert done.stderr == "librepdl.torch run: no record, since the program ended with an error\n" + plain.stderr
    assert not (here / "none.json").exists()


MODELS = '''
import random, torch
from torch import nn
torch.manual_seed(0)
random.seed("a text")
a, b = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1))
first, second = torch.optim.Adam(a.parameters()), torch.optim.SGD(b.parameters(), 0.1)
free = torch.zeros(2, requires_grad=True)
third = torch.optim.SGD([free], 0.1)
for step in range(2):
    for optimizer in (first, second):
        optimizer.zero_grad()
        b(a(torch.ones(4, 2))).square().sum().backward()
        optimizer.step()
free.sum().backward()
third.step()
'''


def test_models_of_several_optimisers(here, monkeypatch):
    (here / "script.py").write_text(MODELS)
    assert librepdl_torch(monkeypatch, "run", "--manifest", "run.json", "script.py") == 0
    record = evidence.load("run.json")["must_agree"]
    models = {step["at"]: {path.split("'")[3] for path in step["parts"]} for step in record["fingerprints"]["steps"]}
    a = {"Linear.weight", "Linear.bias"}
    b = {f"Sequential.{name}" for name in ("0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var", "1.num_batches_tracked")}
    free = {"parameter 0 of SGD"}
    models = {at: {name for name in names if name not in ("Adam", "SGD")} for at, names in models.items()}
    assert models == {"step 1": a, "step 2, what was trained before": a, "step 2": b, "step 4": a | b, "step 5, what was trained before": a | b,
                      "step 5": free, "the end": free}
    assert record["random"]["python"]["seed"] == "'a text'"
    assert random.seed.__name__ == "seed" and not hasattr(random.seed, "__wrapped__")  # as it was


@pytest.mark.parametrize("arguments, text", [
    (["run", "--manifest", "absent/run.json", "script.py"], "--manifest: expected a file in a directory that can be written"),
    (["run", "--manifest", "run.json", "absent.py"], "expected a program in a file, to record it, got 'absent.py'"),
    (["run", "--manifest", "run.json", "-m", "absent_module"], "expected a program in a file, to record it, got 'absent_module'"),
    (["run", "--verify", "absent.json", "script.py"], "absent.json: No such file or directory"),
    (["run", "--plain", "--no-strict", "script.py"], "--plain: expected neither --reproducible nor --no-strict beside it"),
    (["run", "--every", "-1", "script.py"], "expected a number of steps, 0 for the powers of 2, got '-1'"),
    (["run", "--may-differ", "x", "script.py"], "expected categories among code, "),
    (["run", "--manifest", "run.json", "--env", "A=1", "script.py"], "variables: expected the names of environment variables, got 'A=1'")])
def test_errors_before_the_program(here, monkeypatch, capsys, arguments, text):
    (here / "script.py").write_text("raise AssertionError")
    assert librepdl_torch(monkeypatch, *arguments) == 2
    assert text in capsys.readouterr().err
