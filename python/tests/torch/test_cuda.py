"""What there is only with a GPU."""

import subprocess
import sys

import pytest
import torch
from torch import nn

import librepdl.torch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


def test_a_captured_graph_gives_the_same_bits():
    librepdl.torch.enable()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(40, 30), nn.GELU(), nn.LayerNorm(30), nn.Linear(30, 5), nn.Softmax(1)).cuda()
    x = torch.randn(16, 40, device="cuda")
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            model(x)
        torch.cuda.current_stream().wait_stream(side)
        graph, given = torch.cuda.CUDAGraph(), x.clone()
        with torch.cuda.graph(graph):
            result = model(given)
        for _ in range(3):
            new = torch.randn(16, 40, device="cuda")
            given.copy_(new)
            graph.replay()
            assert torch.equal(result, model(new))


def test_the_first_minute_is_the_same_as_on_the_cpu():
    import test_first_minute
    librepdl.torch.enable()
    assert test_first_minute.fingerprint_of_everything("cuda") == test_first_minute.fingerprint_of_everything("cpu")


def test_gradients_of_gradients_are_added_up_in_the_cpus_order():
    """Derivatives to the second order, a penalty of them, and the gradients of that: many gradients of one tensor."""
    librepdl.torch.enable()
    found = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1)).to(device)
        x = torch.randn(20, 2).to(device).requires_grad_()
        u = net(x)
        first, = torch.autograd.grad(u.sum(), x, create_graph=True)
        second, = torch.autograd.grad(first[:, 0].sum(), x, create_graph=True)
        (second[:, 0] - first[:, 1] * u.squeeze(1) + first.square().sum(1) * u.squeeze(1)).square().mean().backward()
        found.append(librepdl.torch.fingerprint([p.grad for p in net.parameters()]))
    assert found[0] == found[1]


def test_nothing_is_drawn_into_a_graph():
    librepdl.torch.enable()
    x = torch.zeros(8, device="cuda")
    x.uniform_()
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="not while a CUDA graph is captured"), torch.cuda.graph(graph):
        x.uniform_()


def test_streams_and_memory():
    """Work on other streams; workspaces are PyTorch's memory."""
    librepdl.torch.enable()
    torch.manual_seed(0)
    a, b = torch.randn(300, 200), torch.randn(200, 100)
    expected, x, y = a @ b, a.cuda(), b.cuda()
    torch.cuda.synchronize()
    results = []
    for _ in range(3):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            results.append(x @ y)
    torch.cuda.synchronize()
    assert all(torch.equal(r.cpu(), expected) for r in results)
    x @ y  # the context of this stream keeps what it has asked for
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    x @ y
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == before and torch.cuda.max_memory_allocated() >= before + 300 * 100 * 4


@pytest.mark.skipif(not torch.distributed.is_available() or not torch.distributed.is_nccl_available(), reason="PyTorch without NCCL")
def test_reductions_and_their_callers_wait_for_each_other():
    """On streams: what a reduction reads is written, what it gives is written before it is read; in a graph it is refused."""
    import torch.distributed as dist

    from librepdl.torch.distributed._groups import group_of

    librepdl.torch.enable()
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    try:
        x = torch.zeros(1000, device="cuda")
        torch.cuda.synchronize()
        read = []

        def job(ranks):
            read.append(x.clone())
            torch.cuda._sleep(10**8)  # what reads x too early finds 1
            x.fill_(2.0)

        torch.cuda._sleep(10**8)
        x.fill_(1.0)
        handle = group_of(dist.group.WORLD).submit(job, x.device)
        assert not handle.is_completed()
        handle.wait()
        given = x.clone()
        assert read[0].eq(1.0).all() and given.eq(2.0).all() and handle.is_completed()
        graph = torch.cuda.CUDAGraph()
        with pytest.raises(NotImplementedError, match="no reduction while a CUDA graph is captured"), torch.cuda.graph(graph):
            dist.all_reduce(x)
    finally:
        dist.destroy_process_group()


def test_random_numbers_are_those_of_the_cpu():
    librepdl.torch.enable()

    def draws(device):
        torch.manual_seed(9)
        return [torch.rand(50, device=device), torch.randn(7, 3, device=device), torch.randint(-5, 5, (20,), device=device),
                torch.randperm(30, device=device), nn.functional.dropout(torch.ones(40, device=device), 0.3),
                torch.empty(9, device=device).exponential_(), torch.bernoulli(torch.full((30,), 0.4, device=device)),
                torch.multinomial(torch.arange(60.0, device=device).view(2, 30), 9), torch.multinomial(torch.ones(30, device=device), 40, True)]

    for a, b in zip(draws("cpu"), draws("cuda")):
        assert torch.equal(a, b.cpu())
    with pytest.raises(RuntimeError, match="generator: expected one of the CPU"):
        torch.rand(3, device="cuda", generator=torch.Generator("cuda"))


def test_a_module_on_the_gpu_has_the_cpus_gradients():
    librepdl.torch.enable()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 4))
    x = torch.randn(5, 3, 9, 9)

    def gradients(device):
        model.to(device)
        model.zero_grad()
        nn.functional.cross_entropy(model(x.to(device)), torch.tensor([0, 1, 2, 3, 0], device=device)).backward()
        return [p.grad.cpu().clone() for p in model.parameters()]

    state = {k: v.clone() for k, v in model.state_dict().items()}
    first = gradients("cpu")
    model.load_state_dict(state)
    assert all(torch.equal(a, b) for a, b in zip(first, gradients("cuda")))


def test_lists_of_tensors():
    """Foreach operations: fused kernels of CUDA round otherwise."""
    librepdl.torch.enable()
    torch.manual_seed(0)
    shapes = [(5,), (3, 4), (), (1000,)]
    a, b, c = ([torch.rand(s) + 0.5 for s in shapes] for _ in range(3))
    calls = {"_foreach_add": [(a, b), (a, 0.3)], "_foreach_sub": [(a, b), (a, 0.3)], "_foreach_mul": [(a, b), (a, 0.3)],
             "_foreach_div": [(a, b), (a, 0.3)], "_foreach_addcmul": [(a, b, c, 0.7)], "_foreach_addcdiv": [(a, b, c, 0.7)],
             "_foreach_lerp": [(a, b, 0.3), (a, b, c)], "_foreach_norm": [(a, 2), (a, 1)], "_foreach_pow": [(a, 3.0), (a, b)],
             "_foreach_maximum": [(a, b)], "_foreach_minimum": [(a, b)], "_foreach_clamp_min": [(a, 0.7)], "_foreach_clamp_max": [(a, 0.7)],
             **{f"_foreach_{name}": [(a,)] for name in ("sqrt", "exp", "log", "neg", "abs", "reciprocal", "sigmoid", "tanh", "erf", "expm1",
                                                       "log1p", "sin", "cos", "round", "sign", "rsqrt")}}

    def there(value):
        return [t.cuda() for t in value] if isinstance(value, list) else value

    for name, variants in calls.items():
        function = getattr(torch, name, None)
        for arguments in variants if function is not None else ():
            for x, y in zip(function(*arguments), function(*map(there, arguments))):
                assert torch.equal(x, y.cpu()), name
    assert torch.equal(torch._foreach_add(a, b, alpha=0.3)[3], torch._foreach_add(there(a), there(b), alpha=0.3)[3].cpu())


def test_optimisers_have_the_cpus_bits():
    """By default PyTorch takes lists on GPUs."""
    import test_optimisers as those

    librepdl.torch.enable()
    for name in (n for n in those.CLASSES if n not in those.OTHERS):
        forms = those.forms_of(name)
        expected = those.stepped(name, {})
        ways = [{}, {"capturable": True}, {"foreach": False, "capturable": True}]
        for way in (w for w in ways if set(w) <= set(forms)):
            assert those.stepped(name, {}, device="cuda", **way) == expected, (name, way)
        assert those.stepped(name, {}, torch.amp.GradScaler("cuda", 1024.0), device="cuda") == expected, name
    for optimiser in ("SGD", "AdamW"):
        for scaler in (None, torch.amp.GradScaler("cuda", 1024.0)):
            assert those.stepped(optimiser, {}, scaler, scaler is not None, "cuda", fused=True) == those.stepped(optimiser, {}, fused=True)
    assert those.averaged("cuda") == those.averaged()


def test_scales_on_the_gpu_are_the_cpus():
    librepdl.torch.enable()

    def scales(device):
        scale, tracker = torch.tensor(3.0, device=device), torch.tensor(0, dtype=torch.int32, device=device)
        seen = []
        for bad in (0, 0, 1, 0, 0, 0, 1, 1, 0):
            grads = [torch.linspace(-3, 5, 100, device=device).to(t) for t in (torch.float32, torch.float16, torch.bfloat16)]
            found = torch.zeros((), device=device)
            grads[1][7] = float("inf") if bad else 1
            torch._amp_foreach_non_finite_check_and_unscale_(grads, found, scale.double().reciprocal().float())
            torch._amp_update_scale_(scale, tracker, found, 1.7, 0.3, 2)
            seen += [g.cpu() for g in grads] + [found.cpu(), scale.cpu().clone(), tracker.cpu().clone()]
        return librepdl.torch.fingerprint(seen)

    assert scales("cpu") == scales("cuda")


def test_steps_that_need_numbers_are_not_captured():
    librepdl.torch.enable()
    p = nn.Parameter(torch.ones(8, device="cuda"))
    p.grad = torch.ones(8, device="cuda")
    o = torch.optim.Adam([p], capturable=True)
    o.step()
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(NotImplementedError, match="torch.optim.adam: .*while a CUDA graph is captured"), torch.cuda.graph(graph):
        o.step()


def test_vmap_and_forward_mode():
    import test_functional as those

    assert those.generated("--samples", "1", "--device", "cuda", "--only", *those.OPERATIONS) > 500


@pytest.mark.parametrize("call", ["F.cross_entropy(x.view(1, 4), torch.tensor([5], device='cuda'))", "F.binary_cross_entropy(x + 1, x)",
                                  "torch.bernoulli(x + 1)", "torch.normal(x, -x)", "F.nll_loss(x.view(2, 2), torch.tensor([0, -5], device='cuda'))"])
def test_values_that_pytorch_refuses_fail_at_the_next_synchronisation(call):
    """In a process of its own: an assertion on the GPU leaves its context unusable."""
    code = "import torch, librepdl.torch; F = torch.nn.functional; librepdl.torch.enable(); x = torch.rand(4, device='cuda') * 0.5 + 0.25\n"
    done = subprocess.run([sys.executable, "-c", code + f"y = {call}\ntorch.cuda.synchronize()\nprint('no error')"],
                          capture_output=True, text=True)
    assert done.returncode and "no error" not in done.stdout and "device-side assert" in done.stderr, done.stdout + done.stderr[-2000:]


def test_normal_of_tensors_does_not_wait():
    mean, std = torch.linspace(-2, 3, 40), torch.linspace(0, 4, 40)
    with librepdl.torch.reproducible():
        torch.manual_seed(3)
        expected = torch.normal(mean, std)
        on_gpu = [t.cuda() for t in (mean, std)]
        torch.manual_seed(3)
        torch.cuda.set_sync_debug_mode("error")
        try:
            found = torch.normal(*on_gpu)
        finally:
            torch.cuda.set_sync_debug_mode("default")
        assert torch.equal(found.cpu(), expected)
        with pytest.raises(RuntimeError, match="normal expects std >= 0.0, but found std -1"):
            torch.normal(on_gpu[0], -1.0)


def test_a_new_users_script_has_the_cpus_fingerprint():
    """newcomer.py: MobileNetV3, a timm ViT, losses, GradScaler, spawned workers (where torchvision and timm are installed)."""
    pytest.importorskip("timm")
    import newcomer

    def fingerprint(*options):
        done = subprocess.run([sys.executable, newcomer.__file__, *options], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr[-2000:]
        return done.stdout.splitlines()[-1]

    expected = fingerprint("--device", "cpu")
    for options in ((), ("--channels-last", "--workers", "1")):
        assert fingerprint("--device", "cuda", *options) == expected, options


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", [(2, 3, 70, 90, 64, 64), (1, 2, 33, 129, 128, 96), (2, 4, 17, 64, 24, 40), (3, 2, 5, 7, 3, 5)], ids=str)
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"dropout_p": 0.5, "is_causal": True}, {"mask": "boolean"},
                                     {"mask": "added", "dropout_p": 0.1}], ids=str)
def test_attention(dtype, shape, options):
    librepdl.torch.enable()
    batch, heads, queries, keys, size, values = shape

    def gradients(device):
        torch.manual_seed(7)
        x = [torch.randn(s).to(dtype) for s in ((batch, heads, queries, size), (batch, heads, keys, size), (batch, heads, keys, values))]
        g = torch.randn(batch, heads, queries, values).to(dtype)
        masks = {"boolean": torch.rand(queries, keys) < 0.7, "added": torch.randn(batch, 1, queries, keys).to(dtype)}
        more = {k: v for k, v in options.items() if k != "mask"}
        if "mask" in options:
            more["attn_mask"] = masks[options["mask"]].to(device)
        leaves = [t.to(device).requires_grad_() for t in x]
        y = nn.functional.scaled_dot_product_attention(*leaves, **more)
        return [y.detach(), *torch.autograd.grad(y, leaves, g.to(device))]

    for a, b in zip(gradients("cpu"), gradients("cuda"), strict=True):
        torch.testing.assert_close(a, b.cpu(), rtol=0, atol=0, equal_nan=True)
