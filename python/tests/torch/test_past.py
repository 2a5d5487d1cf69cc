"""What would let PyTorch's own kernels in unseen: compiled code, TorchScript, NumPy, backends of process groups, operators that come later,
other processes, complex numbers."""

import importlib
import os
import sys
from itertools import islice

import numpy as np
import pytest
import torch
from torch import compile as imported_before
from torch import nn
from torch.nn import functional as F

import librepdl.torch
from librepdl.torch import _past


def bits(tensors):
    return [t.detach().view(torch.int32) for t in tensors]


def same(a, b):
    return len(a) == len(b) and all(map(torch.equal, bits(a), bits(b)))


# ---- compiled code ----


def test_compiled_functions_run_eagerly_whatever_was_imported_or_compiled_before():
    ran = []

    def backend(graph, _):
        def compiled(*arguments):
            ran.append("compiled")
            return graph.forward(*arguments)
        return compiled

    def f(x):
        return torch.exp(x) + 1

    x = torch.linspace(-3, 3, 101)
    before = imported_before(f, backend=backend)
    before(x)
    assert ran == ["compiled"]
    librepdl.torch.enable()
    _past._warned = False
    with pytest.warns(UserWarning, match="runs eagerly"):
        assert same([before(x)], [librepdl.add(librepdl.exp(x), torch.ones(1))])
    now = imported_before(lambda x: f(x) * 2, backend=backend)
    torch.compiler.set_stance("default")
    before(x), now(x)
    assert ran == ["compiled"]
    with librepdl.torch.exempt():
        before(x)
    assert len(ran) == 2
    librepdl.torch.disable()
    before(x)
    assert len(ran) == 3


def test_compiled_packages_are_refused():
    inductor = importlib.import_module("torch._inductor.output_code")
    loader = torch._C._aoti.AOTIModelPackageLoader
    librepdl.torch.enable()
    with pytest.raises(NotImplementedError, match="code compiled by Inductor: not reproducible yet"):
        inductor.CompiledFxGraph.__call__(None, [])
    for run in (loader.run, loader.boxed_run, torch._C._aoti.AOTIModelContainerRunnerCpu.run):
        with pytest.raises(NotImplementedError, match="a package of AOTInductor: not reproducible yet"):
            run(None, [])
    with librepdl.torch.exempt(), pytest.raises(TypeError):
        loader.run(None, [])
    librepdl.torch.disable()
    with pytest.raises(TypeError):
        loader.run(None, [])


def test_modules_that_are_imported_later(tmp_path, monkeypatch):
    (tmp_path / "imported_later.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    finder = _past.AfterImport()
    finder.actions["imported_later"] = lambda module: setattr(module, "value", module.value + 1)
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    assert importlib.import_module("imported_later").value == 2
    del sys.modules["imported_later"]


# ---- TorchScript ----


def gated(x, w, b):
    return torch.sigmoid(x) * x


def layer(x, w, b):
    return F.layer_norm(torch.tanh(F.linear(x, w, b)) * 1 + 0, [4])


def products(x, w, b):
    return (torch.addmm(b, x, w) + torch.mm(x, w) + torch.mm(x, w)).pow(2)


@pytest.mark.parametrize("f", [gated, layer, products])
@pytest.mark.parametrize("make", ["script", "trace"])
@pytest.mark.parametrize("called", ["before", "after"])
def test_torchscript_gives_the_bits_of_its_first_call(f, make, called):
    values = [torch.randn(6, 4), torch.randn(4, 4), torch.randn(4)]

    def run(function):
        x = [v.clone().requires_grad_() for v in values]
        result = function(*x)
        result.sum().backward()
        return [result, *(v.grad for v in x if v.grad is not None)]

    def made():
        return torch.jit.script(f) if make == "script" else torch.jit.trace(f, values)

    if called == "before":  # and optimised
        function = made()
        for _ in range(3):
            run(function)
    librepdl.torch.enable()
    if called == "after":
        function = made()
    expected = run(f)
    for _ in range(5):
        assert same(run(function), expected)


def test_scripted_modules():
    net = nn.Sequential(nn.Linear(4, 4), nn.SiLU(), nn.LayerNorm(4))
    scripted, traced = torch.jit.script(net), torch.jit.trace(net, torch.ones(2, 4))
    x = torch.randn(3, 4)
    for _ in range(3):
        scripted(x).sum().backward()
    librepdl.torch.enable()

    def run(module):
        net.zero_grad()
        module(x).sum().backward()
        return [p.grad.clone() for p in net.parameters()]

    expected = run(net)
    for module in (scripted, traced):
        for _ in range(3):
            assert same(run(module), expected)


# ---- NumPy, process groups ----


def test_numpys_functions_of_tensors_are_refused():
    x = torch.linspace(-1, 1, 5)
    plain = np.exp(x)
    librepdl.torch.enable()
    with pytest.raises(NotImplementedError, match="numpy.exp of a tensor: not reproducible yet"):
        np.exp(x)
    with pytest.raises(NotImplementedError, match="numpy.multiply of a tensor"):
        np.multiply(x, np.float32(2))
    assert isinstance(x.numpy(), np.ndarray) and np.asarray(x).dtype == np.float32
    assert np.isnan(x).sum() == 0  # rounds nothing
    assert (np.float32(2) * x).tolist() == [-2, -1, 0, 1, 2]  # torch's
    with librepdl.torch.exempt():
        assert torch.equal(np.exp(x), plain)
    with librepdl.torch.reproducible(strict=False):
        np.exp(x)
        assert any(what.startswith("numpy.exp of a tensor") for what in librepdl.torch.status()["noted"])


def test_backends_of_process_groups_are_refused():
    import torch.distributed as dist

    if not dist.is_available() or not dist.is_gloo_available():
        pytest.skip("PyTorch without gloo")
    librepdl.torch.enable()
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        group = dist.distributed_c10d._get_default_group()
        group.allreduce([torch.ones(2)]).wait()  # goes through the dispatcher
        backend = group._get_backend(torch.device("cpu"))
        for call in (lambda x: backend.allreduce([x]), lambda x: backend.reduce([x], dist.ReduceOptions()),
                     lambda x: backend._reduce_scatter_base(torch.zeros(2), x, dist.ReduceScatterOptions())):
            with pytest.raises(NotImplementedError, match="of a process group's backend: not reproducible yet"):
                call(torch.ones(2))
        backend.allreduce([torch.ones(2, dtype=torch.int64)]).wait()
        backend.broadcast(torch.ones(2), 0).wait()
    finally:
        dist.destroy_process_group()


# ---- operators that come later ----


def test_operators_that_come_later_are_refused_at_once():
    librepdl.torch.enable()
    later = torch.library.Library("librepdl_later", "DEF")
    try:
        later.define("twice(Tensor x) -> Tensor")
        later.impl("twice", lambda x: x.clone(), "CPU")
        with pytest.raises(NotImplementedError, match=r"librepdl_later::twice \(float32, cpu\)"):
            torch.ops.librepdl_later.twice(torch.ones(2))
        assert torch.ops.librepdl_later.twice(torch.arange(3)).tolist() == [0, 1, 2]

        @torch.library.custom_op("librepdl_later::custom", mutates_args=())
        def custom(x: torch.Tensor) -> torch.Tensor:
            return torch.from_numpy(np.exp(x.numpy()))

        with pytest.raises(NotImplementedError, match=r"librepdl_later::custom \(float32, cpu\)"):
            custom(torch.ones(2))
        custom.register_kernel("cpu")(lambda x: x.clone())
        with pytest.raises(NotImplementedError, match=r"librepdl_later::custom \(float32, cpu\)"):
            custom(torch.ones(2))
        assert torch.equal(torch.exp(torch.ones(3)), librepdl.exp(torch.ones(3)))
    finally:
        librepdl.torch.disable()
        later._destroy()


def test_operators_that_nobody_told_of():
    """Registered without Python: torch.ops finds them, and so do status() and enable()."""
    librepdl.torch.enable()
    later = torch.library.Library("librepdl_unseen", "DEF")
    try:
        for name in ("one", "two"):
            later.define(f"{name}(Tensor x) -> Tensor")
            later.m.impl(name, "CPU", lambda x: x.clone())
        assert librepdl.torch.status()["unseen"] == ["librepdl_unseen::one (CPU)", "librepdl_unseen::two (CPU)"]
        with pytest.raises(NotImplementedError, match="librepdl_unseen::one"):
            torch.ops.librepdl_unseen.one(torch.ones(2))
        assert librepdl.torch.status()["unseen"] == ["librepdl_unseen::two (CPU)"]
        librepdl.torch.enable()
        assert librepdl.torch.status()["unseen"] == []
        # Defined anew.
        later._destroy()
        later = torch.library.Library("librepdl_unseen", "DEF")
        later.define("one(Tensor x, int n) -> Tensor")
        later.impl("one", lambda x, n: x.clone(), "CPU")
        with pytest.raises(NotImplementedError, match="librepdl_unseen::one"):
            torch.ops.librepdl_unseen.one.default(torch.ones(2), 1)
        assert librepdl.torch.status()["overridden"] == []
    finally:
        librepdl.torch.disable()
        later._destroy()


# ---- processes, threads' modes ----


class Exponentials(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return torch.linspace(-i, i, 99).exp()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_compute_with_librepdl(method):
    plain = torch.stack([Exponentials()[i] for i in range(4)])
    librepdl.torch.enable()
    expected = librepdl.exp(torch.stack([torch.linspace(-i, i, 99) for i in range(4)]))
    assert not torch.equal(expected, plain)
    loader = torch.utils.data.DataLoader(Exponentials(), batch_size=4, num_workers=1, multiprocessing_context=method)
    assert same(list(loader), [expected])


def child(_, path):
    status = librepdl.torch.status()
    torch.save((librepdl.torch.is_enabled(), status.get("strict"), torch.linspace(-3, 3, 99).exp()), path)


@pytest.mark.parametrize("strict", [False, None])
def test_spawned_processes_are_as_their_parent(strict, tmp_path):
    if strict is not None:
        librepdl.torch.enable(strict)
    torch.multiprocessing.spawn(child, args=(tmp_path / "result",), nprocs=1)
    enabled, found, result = torch.load(tmp_path / "result")
    assert (enabled, found) == (strict is not None, strict)
    assert torch.equal(result, torch.linspace(-3, 3, 99).exp())


def test_forked_processes():
    librepdl.torch.enable()
    x = torch.linspace(-3, 3, 99)
    pid = os.fork()
    if pid == 0:
        try:
            right = librepdl.torch.is_enabled() and torch.equal(x.exp(), librepdl.exp(x))
        finally:
            os._exit(0 if right else 1)
    assert os.waitpid(pid, 0)[1] == 0


def test_default_devices_and_inference_mode():
    librepdl.torch.enable()
    x = torch.linspace(-3, 3, 99)
    expected = librepdl.exp(x)
    torch.set_default_device("cpu")
    try:
        assert same([torch.linspace(-3, 3, 99).exp()], [expected])
        with pytest.raises(NotImplementedError, match="aten::polygamma"):
            torch.polygamma(1, x)
    finally:
        torch.set_default_device(None)
    with torch.device("meta"):
        assert torch.empty(3, 4).exp().shape == (3, 4)
    with torch.inference_mode():
        y = torch.linspace(-3, 3, 99)
        assert same([y.exp()], [expected]) and same([x.exp()], [expected])
        assert same([F.linear(y, torch.ones(2, 99))], [librepdl.matmul(x[None], torch.ones(99, 2))[0]])
        with pytest.raises(NotImplementedError, match="aten::polygamma"):
            torch.polygamma(1, y)


# ---- complex numbers ----

#: What moves them, compares them, or fills memory. (Casts give their real parts, rounded once.)
MOVES = set("""
    T H mT mH _chunk_cat __getitem__ _unsafe_masked_index alias_copy all any argwhere as_strided as_strided_copy as_strided_scatter atleast_1d
    atleast_2d atleast_3d bfloat16 block_diag bool broadcast_tensors broadcast_to byte cartesian_prod cat cdouble cfloat char chunk clone
    column_stack combinations conj conj_physical constant_pad_nd contiguous count_nonzero diag diag_embed diagflat diagonal diagonal_copy
    diagonal_scatter double dsplit dstack empty empty_like empty_permuted empty_strided eq equal expand expand_as expand_copy eye fill flatten
    flip fliplr flipud float full full_like gather half hsplit hstack imag index_copy index_fill index_put index_select int isfinite isinf isnan
    isreal item linalg.diagonal logical_and logical_not logical_or logical_xor long masked_fill masked_scatter masked_select meshgrid movedim
    narrow narrow_copy ne new_empty new_empty_strided new_full new_ones new_zeros nn.functional.channel_shuffle
    nn.functional.feature_alpha_dropout nn.functional.pad nn.functional.pixel_shuffle nn.functional.pixel_unshuffle nn.functional.unfold nonzero
    nonzero_static ones ones_like permute permute_copy positive put ravel real repeat repeat_interleave reshape reshape_as resize_ resize_as_
    resolve_conj resolve_neg roll rot90 scalar_tensor scatter select select_scatter short slice slice_scatter split split_with_sizes
    split_with_sizes_copy squeeze squeeze_copy stack t t_copy take take_along_dim tensor_split tile to transpose transpose_copy tril triu unbind
    unbind_copy unflatten unfold unfold_copy unsafe_chunk unsafe_split unsqueeze unsqueeze_copy view view_as view_as_complex view_as_real view_copy
    vsplit vstack where zero_ zeros zeros_like chalf complex fft.fftshift fft.ifftshift
    """.split())


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.long)])
def test_complex_numbers_are_moved_or_refused(op_db, every):
    """Of the first samples of every (fourth) operation, also in place; some samples are the identity. With dtype=float64 a conversion comes first."""
    concerned = [op for op in op_db if torch.complex64 in op.dtypes and op.name not in MOVES and op.variant_test_name != "with_dtype"]
    samples = [(op, list(islice(op.sample_inputs("cpu", torch.complex64), 4))) for op in concerned[::every]]
    assert len(samples) > 150 / every

    def raises(function, sample):
        try:
            function(sample.input.clone() if isinstance(sample.input, torch.Tensor) else sample.input, *sample.args, **sample.kwargs)
        except Exception:
            return True
        return False

    with librepdl.torch.reproducible():
        leaks = [op.name + suffix for op, some in samples for suffix, function in (("", op.op), ("_", op.get_inplace()))
                 if function is not None and not any(raises(function, sample) for sample in some)]
    assert leaks == []
