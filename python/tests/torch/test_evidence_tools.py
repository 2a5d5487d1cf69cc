"""noise_floor, cost, catalogue: on networks that people train, with faults that each must find, and wrong input."""

import importlib.util
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import librepdl.torch
from librepdl.torch.evidence import SETTINGS, _catalogue, _report, catalogue, cost, noise_floor

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "pytorch"


@pytest.fixture
def examples(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))


def lenet_training():
    from lenet import LeNet, digits

    images, labels = digits()

    def train():
        model = LeNet()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        for _ in range(2):
            chosen = torch.randperm(len(images))[:20]
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images[chosen]), labels[chosen])
            loss.backward()
            optimizer.step()
        return model

    return train


def gpt2_training():
    pytest.importorskip("transformers")
    from gpt2 import small_gpt2

    def train():
        model = small_gpt2(16).train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        tokens = torch.randint(0, 256, (2, 16))
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return model, loss

    return train


USERS = '''
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(8, 32)
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        return self.out(torch.tanh(self.hidden(x)))


def train():
    torch.manual_seed(0)
    x = torch.randn(128, 8)
    y = x.square().sum(1, keepdim=True)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(2):
        for i in range(0, 128, 64):
            loss = (model(x[i : i + 64]) - y[i : i + 64]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    train()
'''


class Net(nn.Module):
    """`fault` is added to what the second layer gives."""

    def __init__(self, fault=lambda: 0.0):
        super().__init__()
        self.first, self.second, self.third = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)
        self.add = Add(fault)

    def forward(self, x):
        return self.third(torch.relu(self.add(self.second(torch.relu(self.first(x))))))


class Add(nn.Module):
    def __init__(self, fault):
        super().__init__()
        self.fault = fault

    def forward(self, x):
        return x + self.fault()


def training(fault=lambda step: 0.0, steps=3):
    """Of Net, with data that every PyTorch computes alike."""
    step = 0

    def train():
        nonlocal step
        model = Net(lambda: fault(step))
        with torch.no_grad():
            for i, p in enumerate(model.parameters()):
                p.copy_((torch.arange(p.numel()).reshape(p.shape) - i) / 16)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.125)
        x, y = (torch.arange(12.0).reshape(3, 4) - 5) / 4, torch.tensor([0, 1, 1])
        for step in range(1, steps + 1):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        return model, loss

    return train


# ---- noise_floor ----


@pytest.mark.parametrize("make", [lenet_training, gpt2_training])
def test_networks_have_one_result_with_librepdl(examples, make):
    found = noise_floor(make())
    assert found and found.refused is None
    assert len({d.fingerprint for d in found.librepdl}) == 1 and all(d.distance == d.differing == 0 for d in found.librepdl)
    assert {d.setting for d in found.plain} == {"first", *SETTINGS} - {"batch_order"} - found.skipped.keys()
    if make is lenet_training:  # plain PyTorch's kernels with and without oneDNN add up in another order
        of = {d.setting: d for d in found.plain}
        assert of["again"].equal
        mkldnn = of["mkldnn"]
        assert not mkldnn.equal and mkldnn.distance > 0 and 0 < mkldnn.share < 1 and mkldnn.first_step == 1 and "LeNet.conv" in mkldnn.first_module


@pytest.mark.parametrize("from_step", [1, 3])
def test_a_fault_is_found_with_its_step_and_module(from_step):
    """The second step on, a module gives something else with another number of threads, also with librepdl."""
    threads = torch.get_num_threads()
    found = noise_floor(training(lambda step: 0.25 * (step >= from_step and torch.get_num_threads() != threads)), vary=["again", "threads"])
    assert not found
    for runs in found.plain, found.librepdl:
        first, again, other = runs
        assert first.equal and again.equal and (again.distance, again.differing, again.loss_gap, again.first_step) == (0, 0, 0, None)
        assert not other.equal and (other.first_step, other.first_module, other.first_what) == (from_step, "Net.add", "forward")
        assert other.distance > 0 and 0 < other.differing <= other.elements == 50 and other.loss_gap > 0
    text = str(found)
    assert f"step {from_step}: forward, Net.add" in text
    loaded = json.loads(found.json())
    assert loaded["reproducible"] is False and loaded["plain"][2]["first_module"] == "Net.add"


def test_distances_are_those_of_the_weights():
    """One step with a gradient of 1, and a learning rate that a setting gives."""
    def train(lr=0.5):
        p = nn.Parameter(torch.ones(4))
        optimizer = torch.optim.SGD([p], lr=lr)
        (p[:3].sum() * 1.0).backward()
        optimizer.step()

    found = noise_floor(train, {"larger": {"lr": 1.0}})
    for runs in found.plain, found.librepdl:
        larger = runs[1]
        assert (larger.distance, larger.differing, larger.elements, larger.share) == (0.75**0.5, 3, 4, 0.75)
        assert (larger.first_step, larger.first_what, larger.first_module) == (1, "step of SGD", "parameter 0")
        assert larger.loss_gap == 0 and larger.loss == 3.0 and larger.losses == (3.0,)


def test_what_train_reaches_stays_as_it_was():
    """A model and an optimiser from outside: every run begins with the same, and random numbers too."""
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())

    def train():
        optimizer.zero_grad()
        model(torch.rand(3, 4)).sum().backward()
        optimizer.step()
        return {"model": model, "optimizer": optimizer}

    before, state = librepdl.torch.fingerprint([model, optimizer]), torch.get_rng_state()
    assert noise_floor(train, ["again"]).plain[1].equal and cost(train, 1)
    assert librepdl.torch.fingerprint([model, optimizer]) == before and torch.equal(torch.get_rng_state(), state)
    assert not librepdl.torch.is_enabled()


def test_settings_reach_the_training(tmp_path):
    """Each that can be set from outside, seen from inside; and taken back. In a file, for a list would be put back, too."""
    data = torch.utils.data.TensorDataset(torch.arange(4.0).reshape(4, 1, 1, 1).expand(4, 2, 3, 3).contiguous())

    def note(x, group):
        now = {"threads": torch.get_num_threads(), "mkldnn": torch._C._get_mkldnn_enabled(), "foreach": group["foreach"],
               "batch_order": x[0, 0, 0, 0].item(), "memory_format": x.is_contiguous(memory_format=torch.channels_last),
               "attention": torch.backends.cuda.flash_sdp_enabled()}
        with open(tmp_path / "seen", "a") as file:
            file.write(json.dumps(now) + "\n")

    class Look(nn.Module):
        def forward(self, x):
            self.x = x
            return x

    def train():
        look, p = Look(), nn.Parameter(torch.ones(1))
        optimizer = torch.optim.SGD([p], lr=0.5)
        step = optimizer.register_step_pre_hook(lambda o, *_: note(look.x, o.param_groups[0]))
        for (x,) in torch.utils.data.DataLoader(data, batch_size=4):
            (look(look(x)).sum() * p).sum().backward()  # one memory format for all modules
            optimizer.step()
        step.remove()
        assert optimizer.param_groups[0]["foreach"] is None
        return p

    names = ["threads", "memory_format", "mkldnn", "foreach", "attention", "batch_order"]
    found = noise_floor(train, names)
    seen = [json.loads(line) for line in (tmp_path / "seen").read_text().splitlines()]
    assert found and len(seen) == 2 * (1 + len(names))
    for name, inside in zip(names, seen[1:]):
        assert {key for key in inside if inside[key] != seen[0][key]} == {name}
    assert seen[0] == seen[1 + len(names)]
    assert all(d.applied for d in found.plain)
    assert [d.applied for d in noise_floor(training(), ["memory_format", "batch_order", "foreach"]).plain] == [True, False, False, True]


def test_what_librepdl_refuses_leaves_the_plain_runs():
    p = nn.Parameter(torch.ones(2))
    found = noise_floor(lambda: (p.polygamma(1), 0.0), ["again"])
    assert not found and found.librepdl == [] and "aten::polygamma" in found.refused and "refused: aten::polygamma" in str(found)
    assert [d.equal for d in found.plain] == [True, True]


def test_wrong_input_of_noise_floor():
    with pytest.raises(TypeError, match="noise_floor: train: expected a function without arguments .*, got Linear"):
        noise_floor(nn.Linear(1, 1))
    with pytest.raises(TypeError, match="noise_floor: train: expected a function without arguments .*, got one that needs 'batch'"):
        noise_floor(lambda batch, lr=1: None)
    with pytest.raises(ValueError, match="noise_floor: vary: expected names of again, threads, .*, got 'treads'"):
        noise_floor(training(), ["treads"])
    with pytest.raises(TypeError, match="noise_floor: vary: 'mine': expected a function that gives a context manager, .*, got int"):
        noise_floor(training(), {"mine": 3})
    with pytest.raises(TypeError, match="noise_floor: vary: 'mine': expected arguments that train takes, got 'lr'"):
        noise_floor(training(), {"mine": {"lr": 1}})
    with pytest.raises(TypeError, match="noise_floor: train: expected it to return a module, .*, got str without a tensor"):
        noise_floor(lambda: "done", [])
    with pytest.raises(ValueError, match="expected the same tensors from every run, got others with the setting 'again'") as e:
        shapes = iter(range(1, 9))
        noise_floor(lambda: torch.zeros(next(shapes)), "again")
    assert e.value.__notes__ == ["noise_floor: in the run with the setting 'again'"]
    with librepdl.torch.reproducible(), pytest.raises(RuntimeError, match="noise_floor: expected librepdl to be disabled"):
        noise_floor(training())
    with pytest.raises(KeyError, match="own"):  # the user's error is the user's
        noise_floor(lambda: {}["own"])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_the_other_device(examples):
    def train(device="cpu"):
        model = Net().to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        model(torch.ones(3, 4, device=device)).sum().backward()
        optimizer.step()
        return model

    found = noise_floor(train, ["device", "cudnn"])
    assert found and not found.skipped


def test_trainings_without_an_optimiser():
    """All is before the first step. And a run that calls other modules is told so."""
    def train(other=False):
        model = Net()
        for p in model.parameters():
            p.data.fill_(0.5)
        x = torch.ones(1, 4)
        if other:
            model.first(x)
        model(x).sum().backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= p.grad * (1.5 if other else 1.0)
        return model

    found = noise_floor(train, {"other": {"other": True}}).librepdl[1]
    assert (found.first_step, found.first_module) == (1, "Net.first")
    assert found.first_what == "the first run has forward there, this one forward of Linear"


def test_the_search_ends_where_runs_differ(tmp_path):
    """A first and another run, both again up to the second of five steps; so it is in plain PyTorch and with librepdl."""
    def fault(step):
        with open(tmp_path / "steps", "a") as file:
            file.write(f"{step}\n")
        return 0.25 * (step >= 2 and torch.get_num_threads() != threads)

    threads = torch.get_num_threads()
    assert not noise_floor(training(fault, steps=5), "threads")
    whole, part = ["1", "2", "3", "4", "5"], ["1", "2"]
    assert (tmp_path / "steps").read_text().split() == 2 * (2 * whole + 2 * part)


# ---- cost ----


def test_cost_finds_what_is_slow():
    """A training that waits where it is not plain: in the whole, and in the operation."""
    def train():
        waits = 0.02 * librepdl.torch.is_enabled() + 0.01 * torch.are_deterministic_algorithms_enabled()
        if waits:
            time.sleep(waits)
        torch.ones(99).exp()

    found = cost(train, rounds=3)
    assert [len(times) for times in found.seconds.values()] == [3, 3, 3] and found.failed == {}
    for way, wait in (("flags", 0.01), ("librepdl", 0.02)):
        of = found.determinism_cost_pct(way)
        assert of.least <= of.median <= of.greatest and min(found.seconds[way]) >= wait and of.median > 0
    assert set(found.operations["aten::exp"]) == {"plain", "flags", "librepdl"}
    assert all(len(times) == 3 and min(times) > 0 for times in found.operations["aten::exp"].values())
    assert json.loads(found.json())["determinism_cost_pct"]["flags"]["median"] == found.determinism_cost_pct("flags").median
    assert "deterministic flags" in str(found) and "aten::exp" in str(found) and _report.machine() in str(found)
    assert not torch.are_deterministic_algorithms_enabled()


def test_cost_of_operations_has_what_they_call():
    """conv2d in plain PyTorch: the time of the kernel is in the operation that the user called."""
    net, x = nn.Conv2d(2, 4, 3), torch.ones(2, 2, 16, 16)
    found = cost(lambda: net(x).sum().backward(), rounds=1)
    assert {"aten::conv2d", "aten::sum", "aten::convolution_backward"} <= found.operations.keys()
    assert "aten::convolution" not in found.operations and "aten::mkldnn_convolution" not in found.operations


def test_ways_that_fail_are_said():
    p = torch.zeros(4)

    def train():
        p.polygamma(1)
        p.put_(torch.tensor([0]), torch.ones(1))  # the flags refuse it

    found = cost(train, rounds=1)
    assert "aten::polygamma" in found.failed["librepdl"] and "put_" in found.failed["flags"] and list(found.seconds) == ["plain"]
    assert "librepdl: failed" in str(found)
    with pytest.raises(ValueError, match="way: expected one of plain, got 'flags', which failed"):
        found.determinism_cost_pct("flags")
    assert torch.equal(p, torch.zeros(4)) and not torch.are_deterministic_algorithms_enabled()


def test_wrong_input_of_cost():
    for rounds in (0, -1, 1.5):
        with pytest.raises(ValueError, match=f"cost: rounds: expected a number of 1 or more, got {rounds}"):
            cost(training(), rounds)
    with pytest.raises(TypeError, match="cost: train: expected a function"):
        cost(None)
    with pytest.raises(RuntimeError, match="size of tensor"):  # in plain PyTorch it is the user's error
        cost(lambda: torch.ones(2) + torch.ones(3))


# ---- catalogue ----


def test_a_training_step_of_lenet(examples):
    from lenet import LeNet

    model = LeNet()
    optimizer = torch.optim.Adam(model.parameters())

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()

    before = librepdl.torch.fingerprint([model, optimizer])
    found = catalogue(step, torch.rand(4, 1, 32, 32), torch.arange(4))
    assert librepdl.torch.fingerprint([model, optimizer]) == before
    assert found and found.refused == {} and found.non_deterministic == []
    of = {(o.phase, o.name): o for o in found.operations}
    source = (EXAMPLES / "lenet.py").read_text().splitlines()
    for phase, name in (("forward", "aten::convolution"), ("backward", "aten::convolution_backward")):
        o = of[phase, name]
        assert (o.policy, o.calls, o.stock) == ("exact", 2, "on cuda: torch.nn.Conv2d; deterministic with the flag")
        for where in o.where:  # the forward call's line, of the backward pass too
            file, line, module = re.fullmatch(r"(\S+):(\d+) \(LeNet\.(\w+)\)", where).groups()
            assert file.endswith("lenet.py") and f"self.{module}(" in source[int(line) - 1]
        assert len(o.where) == 2
    assert of["forward", "aten::view"].policy == "passed" and of["optimiser", "aten::addcdiv_"].policy == "exact"
    (where,) = of["optimiser", "aten::addcdiv_"].where
    assert "test_evidence_tools.py" in where
    assert not any(o.policy == "refused" for o in found.operations)


def test_gpt2_is_covered(examples):
    found = catalogue(gpt2_training())
    assert found
    policies = {(o.phase, o.name): o.policy for o in found.operations}
    assert policies["forward", "aten::_foreach_norm.Scalar"] == policies["backward", "aten::embedding_dense_backward"] == "exact"
    assert policies["forward", "aten::native_dropout"] == policies["forward", "aten::normal_"] == "ordered"


def test_policies_and_pytorch_s_list():
    """Each policy, where the operation is called, and the list as it is for this device."""
    class Odd(nn.Module):
        def forward(self, w, i):
            y = torch.lgamma((w[i] @ w.T).double()).float().sort().values + torch.rand(4, 4)
            z = torch.zeros(4, 4).index_add(0, i, y).index_copy(0, i, y)
            return z.cumsum(1).polygamma(1).sum()

    w, i = torch.rand(4, 3, requires_grad=True), torch.tensor([0, 1, 1, 2])
    found = catalogue(Odd(), w, i)
    assert not found
    of = {(o.phase, o.name): o for o in found.operations}
    expected = {("forward", "aten::lgamma"): ("refused", ""), ("forward", "aten::sort"): ("ordered", ""),
                ("forward", "aten::rand"): ("ordered", ""),
                ("forward", "aten::index_add"): ("exact", "on cuda"), ("forward", "aten::cumsum"): ("exact", "on cuda: torch.cumsum; raises"),
                ("forward", "aten::index_copy"): ("ordered", "non-deterministic: torch.Tensor.index_copy; deterministic with the flag"),
                ("forward", "aten::index.Tensor"): ("passed", ""),
                ("backward", "aten::index_put"): ("exact", "non-deterministic: torch.Tensor.__getitem__"),
                ("backward", "aten::polygamma"): ("refused", "")}
    for key, (policy, stock) in expected.items():
        assert of[key].policy == policy and of[key].stock.startswith(stock) and bool(of[key].stock) == bool(stock), key
    assert {o.name for o in found.non_deterministic} >= {"aten::index_copy", "aten::index_put"}
    (way,) = of["forward", "aten::lgamma"].refusals.values()
    assert "x.float()" in way and way in str(found)
    here = Path(__file__).read_text().splitlines()
    for key, text in ((("forward", "aten::lgamma"), "torch.lgamma"), (("backward", "aten::polygamma"), "polygamma")):
        (where,) = of[key].where
        line = int(re.search(r"test_evidence_tools\.py:(\d+) \(Odd\)$", where)[1])
        assert text in here[line - 1]
    # What coverage() says, composites too.
    assert found.refused == librepdl.torch.coverage(Odd(), w, i).refused
    loaded = json.loads(found.json())
    assert loaded["reproducible"] is False and len(loaded["operations"]) == len(found.operations)


@pytest.mark.parametrize("name, accumulate, policy, stock", [
    ("index_put_", False, "ordered", "torch.Tensor.index_put; deterministic with the flag"),
    ("index_put_", True, "exact", "torch.Tensor.__getitem__ or torch.Tensor.index_put; deterministic with the flag"),
    ("put_", False, "ordered", "torch.Tensor.put_; raises with the flag"),
    ("put_", True, "exact", "torch.Tensor.put_; deterministic with the flag")])
def test_writes_to_places(name, accumulate, policy, stock):
    """What PyTorch says of them on a CPU depends on whether they are added up."""
    x, places = torch.zeros(2), torch.tensor([0, 0])

    def step():
        getattr(x, name)((places,) if name == "index_put_" else places, torch.ones(2), accumulate=accumulate)

    (found,) = [o for o in catalogue(step).operations if "put_" in o.name]
    assert (found.policy, found.stock) == (policy, f"non-deterministic: {stock}") and torch.equal(x, torch.zeros(2))


@pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="the list of PyTorch 2.13")
def test_the_list_is_pytorch_s():
    """Every entry of the documentation that is installed, and no other."""
    text = torch.use_deterministic_algorithms.__doc__
    start, end = text.index("act\n    deterministically"), text.index("In addition, several operations")
    entries = set(re.findall(r"^ +\* :\w+:`([\w.]+)`", text[start:end], re.M))
    assert len(entries) > 40 and {listed.entry for listed in _catalogue.LISTED} == entries
    raises = text.index("will throw a", start)
    for listed in _catalogue.LISTED:
        part = text[raises:end] if listed.flag == "raises" else text[start:raises]
        assert f"`{listed.entry}`" in part, listed.entry
        for name in listed.operations.split():  # aten has them
            assert any(hasattr(torch.ops.aten, name + end) for end in ("", "_")), name


# ---- reports, and the commands ----


def test_plots(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    found, took = noise_floor(training(), ["again", "threads"]), cost(training(steps=1), 1)
    found.plot(tmp_path / "noise.svg")
    took.plot(tmp_path / "cost.png")
    once = (tmp_path / "noise.svg").read_text()
    found.plot(tmp_path / "noise.svg")
    assert "</svg>" in once and once == (tmp_path / "noise.svg").read_text() and (tmp_path / "cost.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match=r"plot: path: expected a name that ends in one of .*\.svg.*, got '.*noise.txt'"):
        found.plot(tmp_path / "noise.txt")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cost.png", "noise.svg"]
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ModuleNotFoundError, match="pip install matplotlib"):
        found.plot(tmp_path / "noise.svg")


def command(*arguments, status=0, **options):
    done = subprocess.run([sys.executable, "-m", "librepdl.torch", *map(str, arguments)], capture_output=True, text=True, **options)
    assert done.returncode == status, done.stderr
    return done


def test_commands_on_a_users_script(tmp_path):
    (tmp_path / "mine.py").write_text(USERS.replace("range(2)", "range(int(sys.argv[1]))").replace("import torch", "import sys, torch"))
    done = command("noise", "mine.py:train", "--vary", "again,threads", "--json", "noise.json", "--arguments=2", cwd=tmp_path)
    loaded = json.loads((tmp_path / "noise.json").read_text())
    assert loaded["reproducible"] and [d["setting"] for d in loaded["plain"]] == ["first", "again", "threads"]
    assert len(loaded["plain"][0]["losses"]) == 4
    assert loaded["librepdl"][0]["fingerprint"][:8] in done.stdout and "with librepdl:" in done.stdout
    # As a module; and with something that is refused.
    source = USERS.replace("torch.tanh(self.hidden(x))", "torch.fft.fft(self.hidden(x)).real")
    (tmp_path / "mine.py").write_text(source)
    line = source[: source.index("torch.fft")].count("\n") + 1
    done = command("catalogue", "mine:train", cwd=tmp_path, status=1)
    assert "aten::_fft_r2c" in done.stdout and f"mine.py:{line} (Net)" in done.stdout


def test_mistakes_on_the_command_line(tmp_path, capsys, monkeypatch):
    """In this process: starting another takes seconds."""
    import argparse

    from librepdl.torch.evidence import _command

    monkeypatch.setattr(sys, "path", sys.path.copy())
    parser = argparse.ArgumentParser()
    _command.add(parser.add_subparsers(dest="command"))
    (tmp_path / "mine_too.py").write_text("def train(): return None\n")
    mine, json_too = f"{tmp_path}/mine_too.py", tmp_path / "json.py"
    json_too.touch()
    for arguments, message in (
            (["noise", mine], "expected script.py:function or module:function"),
            (["noise", "absent.py:train"], "no file 'absent.py'"),
            (["cost", "absent:train"], "no module 'absent'"),
            (["catalogue", f"{mine}:step"], "mine_too.py has no function 'step'"),
            (["catalogue", f"{json_too}:train"], "has the name of a module that Python has imported already"),
            (["noise", f"{mine}:train", "--vary", "again,x"], "expected names of again, threads"),
            (["noise", f"{mine}:train", "--json", f"{tmp_path}/absent/x.json"], "no directory"),
            (["cost", f"{mine}:train", "--plot", "x.txt"],
             "expected a name that ends in one of" if importlib.util.find_spec("matplotlib") else "pip install matplotlib"),
            (["cost", f"{mine}:train", "--rounds", "none"], "expected a number of 1 or more, got 'none'")):
        with pytest.raises(SystemExit) as e:
            options = parser.parse_args(arguments)
            options.act(options)
        assert e.value.code == 2 and message in capsys.readouterr().err
