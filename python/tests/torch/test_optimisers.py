"""torch.optim and what goes with it: every class in all its forms has the same bits, or is refused by name."""

import importlib
import inspect
import math
import pkgutil
import random
from fractions import Fraction

import mpmath
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import librepdl
import librepdl.torch
from librepdl.torch import _optimisers

CLASSES = {name: value for name, value in vars(torch.optim).items()
           if inspect.isclass(value) and issubclass(value, torch.optim.Optimizer) and value is not torch.optim.Optimizer}
#: Ways to do the same.
FORMS = ("foreach", "fused", "capturable", "differentiable")
#: A value of each option but these, with what it needs beside it.
OPTIONS = {
    "lr": {"lr": 0.0625}, "betas": {"betas": (0.8, 0.95)}, "eps": {"eps": 1e-4}, "weight_decay": {"weight_decay": 0.1},
    "amsgrad": {"amsgrad": True}, "maximize": {"maximize": True},
    "decoupled_weight_decay": {"decoupled_weight_decay": True, "weight_decay": 0.1},
    "momentum": {"momentum": 0.9}, "dampening": {"dampening": 0.25, "momentum": 0.9}, "nesterov": {"nesterov": True, "momentum": 0.9},
    "momentum_decay": {"momentum_decay": 0.01}, "lr_decay": {"lr_decay": 0.1},
    "initial_accumulator_value": {"initial_accumulator_value": 0.3},
    "rho": {"rho": 0.8}, "lambd": {"lambd": 0.01}, "alpha": {"alpha": 0.8}, "t0": {"t0": 3.0}, "centered": {"centered": True},
    "etas": {"etas": (0.4, 1.3)}, "step_sizes": {"step_sizes": (1e-3, 0.02)}, "beta2_decay": {"beta2_decay": -0.7}, "d": {"d": 1.5},
    "ns_coefficients": {"ns_coefficients": (3.0, -4.0, 2.0)}, "ns_steps": {"ns_steps": 3},
    "adjust_lr_fn": {"adjust_lr_fn": "match_rms_adamw"},
    "Adafactor.eps": {"eps": (1e-20, 1e-2)}}
#: Of other parameters: (without forms, of one formula).
OTHERS = {"LBFGS": ["max_iter", "max_eval", "tolerance_grad", "tolerance_change", "history_size", "line_search_fn"], "SparseAdam": []}


def options_of(name):
    return [o for o in inspect.signature(CLASSES[name]).parameters if o not in ("params", "defaults", *FORMS)]


def forms_of(name):
    return [f for f in FORMS if f in inspect.signature(CLASSES[name]).parameters]


def choices(name):
    return [{}, *(OPTIONS.get(f"{name}.{o}", OPTIONS[o]) for o in options_of(name))]


@pytest.fixture
def capturable_on_cpu(monkeypatch):
    """PyTorch takes capturable=True on GPUs only."""
    for info in pkgutil.iter_modules(torch.optim.__path__, "torch.optim."):
        module = importlib.import_module(info.name)
        if hasattr(module, "_get_capturable_supported_devices"):
            monkeypatch.setattr(module, "_get_capturable_supported_devices", lambda supports_xla=True: ["cpu"])


def stepped(name, options, scaler=None, unscale=False, device="cpu", dtype=torch.float32, **form):
    """Parameters, gradients and state after some steps; the scheduler changes lr, and RAdam has rectified some."""
    torch.manual_seed(0)
    shapes = [(5, 3), (4, 2)] if name == "Muon" else [(5, 3), (7,), ()]
    parameters = [nn.Parameter(torch.randn(s, device=device, dtype=dtype)) for s in shapes]
    if not form.get("fused") and dtype == torch.float32:
        parameters.append(nn.Parameter(torch.randn(3, 2, device=device).bfloat16()))
    if form.get("differentiable"):
        parameters = [p.clone() for p in parameters]
    o = CLASSES[name](parameters, **{"lr": 0.01, **options}, **form)
    schedule = None if isinstance(o.param_groups[0]["lr"], torch.Tensor) else torch.optim.lr_scheduler.LinearLR(o, 0.5, 1, 6)
    for _ in range(9):
        for p in parameters:
            p.grad = torch.randn_like(p).detach()
            p.grad.view(-1)[0] = 0
            if scaler is not None:
                p.grad *= scaler.scale(torch.ones((), device=device))
        if scaler is None:
            o.step()
        else:
            if unscale:
                scaler.unscale_(o)
            scaler.step(o)
            scaler.update()
        if schedule is not None:
            schedule.step()
    state = [{k: v for k, v in o.state[p].items()} for p in parameters]
    return librepdl.torch.fingerprint([[p.detach() for p in parameters], [p.grad for p in parameters], state])


def test_every_optimiser_and_option_is_judged():
    """One that comes with a new version of PyTorch fails here: see whether its forms differ, and add what it takes."""
    assert {"SGD", "Adam", "AdamW", "RAdam"} <= set(CLASSES)
    for name in CLASSES:
        unknown = set(options_of(name)) - set(OPTIONS) - set(OTHERS.get(name, []))
        assert not unknown, (name, unknown)
    for module, name, _ in _optimisers.forms():
        assert name.startswith(("_single_tensor_", "_multi_tensor_")) and hasattr(module, name)


@pytest.mark.parametrize("name", [n for n in CLASSES if n not in OTHERS])
def test_every_form_is_the_single_one(name, capturable_on_cpu):
    librepdl.torch.enable()
    forms = forms_of(name)
    results = set()
    for options in [*choices(name), {"lr": torch.tensor(0.0625)}]:
        tensor_lr = isinstance(options.get("lr"), torch.Tensor)
        if tensor_lr and name in ("Muon", "Adafactor"):
            continue
        single = stepped(name, options, **({"foreach": False} if "foreach" in forms else {}))
        results.add(single)
        ways = [{"foreach": True, "capturable": True}, {"capturable": True}, {"foreach": True}, {"differentiable": True}]
        for way in (w for w in ways if set(w) <= set(forms)):
            if tensor_lr and way == {"foreach": True} and "capturable" in forms:
                continue  # PyTorch refuses it for some
            if "differentiable" in way and name in ("Adam", "AdamW", "NAdam"):
                with pytest.raises(NotImplementedError, match=r"^torch\.optim\.n?adam: not reproducible yet \(differentiable=True"):
                    stepped(name, options, **way)
            else:
                assert stepped(name, options, **way) == single, (options, way)
    assert len(results) > len(options_of(name)) * 0.7  # the options do something


@pytest.mark.parametrize("name", [n for n in CLASSES if n not in OTHERS and n not in ("Muon", "Adafactor")])
def test_float64(name, capturable_on_cpu):
    """Every form of every optimiser, and the fused ones, whose states are float64, too (test_door has their bits)."""
    librepdl.torch.enable()
    ways = [{"foreach": False}, {"foreach": True}, {"capturable": True}]
    assert len({stepped(name, {}, dtype=torch.float64, **way) for way in ways if set(way) <= set(forms_of(name))}) == 1
    if name in ("SGD", "Adam", "AdamW"):
        options = {"momentum": 0.9} if name == "SGD" else {}
        results = set()
        for threads in (1, 2):
            torch.set_num_threads(threads)
            results.add(stepped(name, options, dtype=torch.float64, fused=True))
        assert len(results) == 1 and results != {stepped(name, options, dtype=torch.float64)}


@pytest.mark.parametrize("name", [n for n in CLASSES if "fused" in forms_of(n)])
def test_fused_forms_have_a_step_or_are_refused(name):
    """Of librepdl's steps test_door has the bits."""
    librepdl.torch.enable()
    without = {"Adam": ["weight_decay", "amsgrad"], "AdamW": ["amsgrad"], "SGD": [], "Adagrad": ["", *OPTIONS]}
    for option, options in zip(["", *options_of(name)], choices(name)):
        if option in without[name]:
            with pytest.raises(NotImplementedError, match=r"^aten::_fused_\w+_ .*not reproducible yet \("):
                stepped(name, options, fused=True)
            continue
        torch.set_num_threads(1)
        result = stepped(name, options, fused=True)
        torch.set_num_threads(2)
        assert result == stepped(name, options, fused=True), option
        # A gradient scaler that has not divided would be inside of the rounding.
        assert result == stepped(name, options, torch.amp.GradScaler("cpu", 1024.0), unscale=True, fused=True)
        with pytest.raises(NotImplementedError, match=r"gradients that are still scaled; after scaler\.unscale_"):
            stepped(name, options, torch.amp.GradScaler("cpu", 1024.0), fused=True)
    if name in ("SGD", "AdamW"):
        p = nn.Parameter(torch.randn(3).bfloat16())
        p.grad = torch.randn(3).bfloat16()
        with pytest.raises(NotImplementedError, match="with states in other types than float32"):
            CLASSES[name]([p], fused=True, **({"momentum": 0.9} if name == "SGD" else {})).step()


def test_those_without_forms():
    librepdl.torch.enable()

    def trained(threads, search):
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        x, y = torch.randn(20, 4), torch.randn(20, 1)
        o = torch.optim.LBFGS(model.parameters(), lr=4, max_iter=6, line_search_fn=search)

        def closure():
            o.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return loss

        o.step(closure)
        return librepdl.torch.fingerprint(model)

    assert trained(1, None) == trained(2, None) != trained(1, "strong_wolfe") == trained(2, "strong_wolfe")
    p = nn.Parameter(torch.randn(4, 2))
    with librepdl.torch.exempt():
        p.grad = torch.sparse_coo_tensor(torch.tensor([[1]]), torch.ones(1, 2), (4, 2))
    with pytest.raises(NotImplementedError, match="not reproducible yet"):
        torch.optim.SparseAdam([p]).step()


@pytest.mark.parametrize("strict", [True, False])
def test_a_form_of_lists_alone_is_refused(strict, monkeypatch):
    """Of an optimiser that a new version might bring."""
    module = importlib.import_module("torch.optim.radam")
    calls = []

    def alone(params):
        calls.append(params)

    alone.__module__ = "torch.optim.radam"
    monkeypatch.setattr(module, "_multi_tensor_new", alone, raising=False)
    librepdl.torch.enable(strict)
    if strict:
        with pytest.raises(NotImplementedError, match=r"^torch\.optim\.new: not reproducible yet \(there is only a form of lists\)$"):
            module._multi_tensor_new([])
    else:
        module._multi_tensor_new([])
    assert len(calls) == (0 if strict else 1)
    assert any("torch.optim.new" in line for line in librepdl.torch.status()["noted"])
    librepdl.torch.disable()
    assert module._multi_tensor_new is alone and module._multi_tensor_radam is not module._single_tensor_radam


def test_powers_are_rounded_correctly():
    mpmath.mp.prec = 400
    draws = random.Random(1)
    cases = [(draws.uniform(0, 3), draws.uniform(-30, 30)) for _ in range(300)]
    cases += [(b, float(n)) for b in (0.9, 0.999, 0.95, 1 + 2**-52, 1e-3) for n in (1, 2, 3, 17, 100, 1000, 12345)]
    cases += [(0.96, n * 0.004) for n in range(1, 200)] + [(float(n), -0.8) for n in range(1, 200)]
    cases += [(0.5, 1074.0), (0.5, 1080.0), (9.0, 1.5), (2.0**-8, 0.25), (3.0, 34.0), (7.0, 19.0), (81.0, 0.25), (1.0, 7.3), (2.25, -0.5)]
    cases += [(5.0, 23.0), (1e300, 1.02), (1e-300, 1.03)]
    for base, exponent in cases:
        expected = float(mpmath.mpf(base) ** mpmath.mpf(exponent))
        found = _optimisers.Number(base) ** exponent
        assert found == expected == base ** _optimisers.Number(exponent), (base, exponent)
        assert isinstance(found, _optimisers.Number)
    with pytest.raises(OverflowError):
        _optimisers.Number(10.0) ** 400.0
    assert math.isnan(_optimisers.Number(math.nan) ** 2.0) and _optimisers.Number(-2.0) ** 3.0 == -8 and _optimisers.Number(0.0) ** 2.0 == 0
    # Whatever is computed from such numbers is one: its powers, too.
    x = (2 / (1 - _optimisers.Number(0.999)) - 1) * 3 + 0.5 - 2 * 7.0 * (_optimisers.Number(0.9) ** 5)
    assert isinstance(-x, _optimisers.Number) and 1 - _optimisers.Number(0.9) ** 3 == _optimisers.power_complement(0.9, 3)
    assert torch.equal(torch.ones(2) * x, torch.ones(2) * float(x)) and torch.equal(x * torch.ones(2), torch.ones(2) * float(x))


def test_bias_corrections_are_rounded_once():
    for base in (0.9, 0.999, 0.5, 0.95, 0.0, 1e-300, 1 - 2**-53, 0.9999999):
        for exponent in (1, 2, 3, 10, 117, 1000, 4096):
            exact = 1 - Fraction(base) ** exponent
            assert _optimisers.power_complement(base, exponent) == float(exact), (base, exponent)
    with pytest.raises(ValueError, match="base in"):
        _optimisers.power_complement(1.0, 3)


# ---- gradient scalers ----

@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_gradients_are_unscaled_in_one_rounding(dtype):
    librepdl.torch.enable()
    inverse = torch.tensor(1 / 3)
    grads = [(torch.randn(999) * 100).to(dtype), torch.randn(4, 6).to(dtype).t(), torch.tensor([2.0**-24, -0.0]).to(dtype),
             torch.zeros(0, dtype=dtype)]
    # In binary64 the product is exact, but of float64.
    expected = [(g.double() * inverse.double()).to(dtype) for g in grads]
    found = torch.zeros(())
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, inverse)
    assert found == 0 and all(torch.equal(a, b) and torch.equal(a.signbit(), b.signbit()) for a, b in zip(grads, expected))
    for bad in (math.inf, -math.inf, math.nan):
        for shape in ((), (1,)):
            grads, found = [torch.ones(3, dtype=dtype), torch.tensor([1.0, bad], dtype=dtype)], torch.zeros(shape)
            torch._amp_foreach_non_finite_check_and_unscale_(grads, found, inverse)
            assert found == 1 and grads[0][0] == (torch.tensor(1 / 3).double()).to(dtype)
    huge = torch.tensor([torch.finfo(dtype).max], dtype=dtype)
    found = torch.zeros(())
    torch._amp_foreach_non_finite_check_and_unscale_([huge], found, torch.tensor(4.0))
    assert found == 0 and huge.isinf()  # found_inf is about what came
    with pytest.raises(RuntimeError, match="inv_scale must be a 1-element tensor"):
        torch._amp_foreach_non_finite_check_and_unscale_([huge], found, torch.ones(2))


def test_scales_are_rounded_once():
    """Products that binary64 takes for midpoints of binary32, though they are beside them."""
    librepdl.torch.enable()
    draws, scale_at, seen = random.Random(0), 1 + 2**-23, set()
    for k in (draws.randrange(2**23, 2**24) for _ in range(100)):
        midpoint = (2 * k + 1) * 2.0**-24  # of the numbers k and k + 1, times 2^-23
        factor = midpoint / scale_at
        beside = Fraction(factor) * Fraction(scale_at) - Fraction(midpoint)
        if factor * scale_at != midpoint or beside == 0:
            continue
        scale, tracker = torch.tensor([scale_at]), torch.zeros(1, dtype=torch.int32)
        torch._amp_update_scale_(scale, tracker, torch.zeros(1), factor, 0.5, 1)
        assert scale.item() == (k + (beside > 0)) * 2.0**-23, k
        seen.add((beside > 0, k % 2))
    assert len(seen) == 4  # ties to even would be wrong in two of these


def test_scales_grow_and_shrink():
    librepdl.torch.enable()
    scale, tracker, good, bad = torch.tensor(8.0), torch.tensor(0, dtype=torch.int32), torch.tensor(0.0), torch.tensor(1.0)
    seen = []
    for found in (good, good, good, bad, good, bad, good, good, good, good):
        assert torch._amp_update_scale_(scale, tracker, found, 2.0, 0.5, 2) is scale
        seen.append((scale.item(), tracker.item()))
    assert seen == [(8, 1), (16, 0), (16, 1), (8, 0), (8, 1), (4, 0), (4, 1), (8, 0), (8, 1), (16, 0)]
    scale.fill_(2.0**127)
    for _ in range(2):
        torch._amp_update_scale_(scale, tracker, good, 2.0, 0.5, 1)
    assert scale == 2.0**127 and tracker == 0  # never infinite


def train_scaled(optimiser, dtype, threads, fused=False):
    """A training whose fourth and fifth losses are too great: the scale after each step, and what is left."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 3))
    o = optimiser(model.parameters(), lr=0.01, **({"fused": True} if fused else {}))
    scaler = torch.amp.GradScaler("cpu", init_scale=4096.0, growth_interval=3)
    scales = []
    for step in range(8):
        x, y = torch.randn(10, 12), torch.randint(0, 3, (10,))
        before = librepdl.torch.fingerprint([model, o])
        o.zero_grad()
        with torch.autocast("cpu", dtype=dtype):
            loss = F.cross_entropy(model(x).float(), y)
        scaler.scale(loss * 1e38 if step in (3, 4) else loss).backward()
        scaler.unscale_(o)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        assert norm.isfinite() == (step not in (3, 4))
        scaler.step(o)
        scaler.update()
        assert (librepdl.torch.fingerprint([model, o]) == before) == (step in (3, 4))
        scales.append(scaler.get_scale())
    return scales, librepdl.torch.fingerprint([model, o, scaler])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("optimiser, fused", [(torch.optim.RAdam, False), (torch.optim.SGD, True), (torch.optim.AdamW, True)])
def test_training_with_a_scaler(dtype, optimiser, fused):
    librepdl.torch.enable()
    scales, result = train_scaled(optimiser, dtype, 1, fused)
    assert scales == [4096, 4096, 8192, 4096, 2048, 2048, 2048, 4096]
    assert train_scaled(optimiser, dtype, 2, fused) == (scales, result)


def test_a_first_step_that_is_skipped():
    """PyTorch takes the next one for a later one, with velocities that were never written."""
    librepdl.torch.enable()
    p = nn.Parameter(torch.ones(4000))
    o = torch.optim.SGD([p], lr=0.5, momentum=0.9, fused=True)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    for g in (torch.full((4000,), math.inf), torch.full((4000,), 2.0)):
        p.grad = scaler.scale(g)
        scaler.unscale_(o)
        scaler.step(o)
        scaler.update()
    assert torch.equal(p.detach(), torch.zeros(4000)) and torch.equal(o.state[p]["momentum_buffer"], torch.full((4000,), 2.0))


@pytest.mark.parametrize("name", [n for n in CLASSES if n not in OTHERS])
def test_every_optimiser_takes_a_scaler(name):
    """Scales are powers of 2: the same as without."""
    librepdl.torch.enable()
    for way in [{}] + [{"foreach": True}] * ("foreach" in forms_of(name)):
        assert stepped(name, {}, torch.amp.GradScaler("cpu", 1024.0), **way) == stepped(name, {})


# ---- averages, clipping, schedules ----

def averaged(device="cpu", **options):
    torch.manual_seed(0)
    model = nn.Linear(5, 3).to(device)
    average = torch.optim.swa_utils.AveragedModel(model, **options)
    for _ in range(4):
        for p in model.parameters():
            p.detach().copy_(torch.randn_like(p))
        average.update_parameters(model)
    return librepdl.torch.fingerprint(average)


def test_averaged_models_do_not_ask_for_the_device(monkeypatch):
    """PyTorch averages by another formula where it takes lists, on GPUs; those that are asked for by name stay."""
    from torch.optim import swa_utils

    with librepdl.torch.reproducible():
        results = [averaged(), averaged(avg_fn=swa_utils.get_swa_avg_fn())]
    before = lambda: ["cpu"]  # noqa: E731
    monkeypatch.setattr(swa_utils, "_get_foreach_kernels_supported_devices", before)
    with librepdl.torch.reproducible():
        results.append(averaged())
        lists = averaged(multi_avg_fn=swa_utils.get_swa_multi_avg_fn())
    assert swa_utils._get_foreach_kernels_supported_devices is before
    assert results[0] == results[1] == results[2] != lists


def test_moving_averages():
    from torch.optim.swa_utils import get_ema_avg_fn, get_ema_multi_avg_fn

    librepdl.torch.enable()
    average, current = [torch.randn(50), torch.randn(3, 4)], [torch.randn(50), torch.randn(3, 4)]
    expected = [librepdl.lerp_scalar(a, c, weight=torch.tensor(1 - 0.99).item()) for a, c in zip(average, current)]
    plain = [librepdl.add(librepdl.mul(a, torch.tensor(0.99)), librepdl.mul(c, torch.tensor(1 - 0.99))) for a, c in zip(average, current)]
    assert all(torch.equal(get_ema_avg_fn(0.99)(a, c, 1), e) for a, c, e in zip(average, current, plain))
    get_ema_multi_avg_fn(0.99)(average, current, 1)
    assert all(torch.equal(a, e) for a, e in zip(average, expected))


@pytest.mark.parametrize("types", [(torch.float32, torch.bfloat16, torch.float16), (torch.float64,) * 3])
@pytest.mark.parametrize("norm", [2, 1, math.inf])
def test_clipping(norm, types):
    librepdl.torch.enable()

    def clipped(foreach, threads):
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        parameters = [nn.Parameter(torch.randn(s).to(t)) for s in ((300,), (7, 5)) for t in types]
        for p in parameters:
            p.grad = torch.randn_like(p) * 3
            p.grad.view(-1)[:2] = torch.tensor([0.0, -0.0])
        total = nn.utils.clip_grad_norm_(parameters, 0.7, norm, foreach=foreach)
        nn.utils.clip_grad_value_(parameters, 0.05, foreach=foreach)
        vector = nn.utils.parameters_to_vector([p.grad for p in parameters[::3]])
        nn.utils.vector_to_parameters(vector * 2, [p for p in parameters[::3]])
        return librepdl.torch.fingerprint([total, [p.grad for p in parameters], vector, [p.detach() for p in parameters]])

    assert len({clipped(foreach, threads) for foreach in (True, False, None) for threads in (1, 2)}) == 1


SCHEDULERS = {"LambdaLR": {"lr_lambda": lambda t: 1 / (1 + t)}, "MultiplicativeLR": {"lr_lambda": lambda t: 0.9},
              "StepLR": {"step_size": 2}, "MultiStepLR": {"milestones": [1, 3]}, "ConstantLR": {"total_iters": 2}, "LinearLR": {},
              "ExponentialLR": {"gamma": 0.9},
              "PolynomialLR": {"power": 2.0}, "CosineAnnealingLR": {"T_max": 4}, "CosineAnnealingWarmRestarts": {"T_0": 2},
              "CyclicLR": {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 2}, "OneCycleLR": {"max_lr": 0.1, "total_steps": 9}}


@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedules_make_numbers(name):
    """Python's arithmetic, of whatever kernels: the optimiser gets the number it would get without librepdl."""
    def rates(on):
        if on:
            librepdl.torch.enable()
        p = nn.Parameter(torch.ones(2))
        o = torch.optim.SGD([p], lr=0.1, momentum=0.9)
        s = getattr(torch.optim.lr_scheduler, name)(o, **SCHEDULERS[name])
        found = []
        for _ in range(5):
            p.grad = torch.ones(2)
            o.step()
            s.step()
            found.append((o.param_groups[0]["lr"], o.param_groups[0]["momentum"]))
        return found

    found = rates(False)
    assert found == rates(True) and all(type(x) is float for pair in found for x in pair) and len(set(found)) > 1
