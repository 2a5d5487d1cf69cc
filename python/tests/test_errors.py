"""Wrong calls: errors that name the function and the argument; nothing crashes, nothing is half-written."""

import ctypes
import inspect
import struct

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import librepdl
import librepdl.random
from librepdl import _functions
from conftest import torch

x = np.arange(6, dtype=np.float32).reshape(2, 3)
needs_torch = pytest.mark.skipif(torch is None, reason="no torch here")


def endless():
    a = []
    a.append(a)
    return a


def frozen():
    a = x.copy()
    a.flags.writeable = False
    return a


@pytest.mark.parametrize(("error", "text", "call"), [
    (NotImplementedError, r"lgamma: x: expected f16, bf16 or f32, got f64; librepdl.convert\(x, dtype\) converts", lambda: librepdl.lgamma([1.0])),
    (NotImplementedError, "lgamma: x: expected one of f16, bf16, f32, got f64; librepdl.convert", lambda: librepdl.lgamma(1.0)),
    (TypeError, "exp: x: expected an array, or a list of numbers, got a list with str", lambda: librepdl.exp([1.0, "2"])),
    (TypeError, "exp: x: .*got a list with ndarray", lambda: librepdl.exp([x, x])),
    (ValueError, "sqrt: x: list: expected one that NumPy makes an array of, got ", lambda: librepdl.sqrt([[1.0], [2.0, 3.0]])),
    (ValueError, "sqrt: x: list: expected one that NumPy makes an array of, got ", lambda: librepdl.sqrt([10**400])),
    (ValueError, "sqrt: x: list: expected at most 8 axes", lambda: librepdl.sqrt(endless())),
    (NotImplementedError, "add: y: expected f32, as x, got f64; librepdl.convert.y, dtype", lambda: librepdl.add(x[0], [1, 2, 3])),
    (TypeError, "exp: x: expected an array .*, got str", lambda: librepdl.exp("x")),
    (TypeError, "exp: x: expected an array .*, got NoneType", lambda: librepdl.exp(None)),
    (NotImplementedError, "lgamma: x: expected f16, bf16 or f32, got f64", lambda: librepdl.lgamma([0.5, 0.25])),
    (TypeError, "add: y: expected an array .*, got complex", lambda: librepdl.add(x, 1j)),
    (TypeError, r"exp: x: .*expected float16.*got complex64; x.astype.numpy.float32. converts", lambda: librepdl.exp(x.astype(np.complex64))),
    (TypeError, r"exp: x: .*expected float16.*got >f4; x.astype.x.dtype.newbyteorder.'='.. converts", lambda: librepdl.exp(x.astype(">f4"))),
    (TypeError, r"exp: x: .*expected float16.*got object", lambda: librepdl.exp(x.astype(object))),
    (TypeError, r"exp: x: .*expected float16.*got uint8", lambda: librepdl.exp(x.astype(np.uint8))),
    (NotImplementedError, "lgamma: x: expected f16, bf16 or f32, got f64", lambda: librepdl.lgamma(x.astype(np.float64))),
    (NotImplementedError, "exp: x: .*got i64", lambda: librepdl.exp(x.astype(np.int64))),
    (NotImplementedError, "mul: x: expected one of f16, bf16, f32, f64, got i64", lambda: librepdl.mul(x.astype(np.int64), 2)),
    (TypeError, "unexpected keyword argument 'axes'", lambda: librepdl.sum(x, axes=1)),
    (TypeError, "sum: axis: expected an integer", lambda: librepdl.sum(x, axis=1.0)),
    (TypeError, "sum: axis: expected an integer", lambda: librepdl.sum(x, axis="1")),
    (TypeError, "sum: keepdims: expected a bool, got int", lambda: librepdl.sum(x, keepdims=1)),
    (ValueError, "sum: axis: ", lambda: librepdl.sum(x, axis=2)),
    (ValueError, "sum: axis: ", lambda: librepdl.sum(x, axis=(0, 0))),
    (ValueError, "sum: axis: ", lambda: librepdl.sum(x, axis=2**70)),
    (ValueError, "add: ", lambda: librepdl.add(x, x.T)),
    (ValueError, "matmul: ", lambda: librepdl.matmul(x, x)),
    (ValueError, "matmul: accumulate: expected exact or fma_chain, got 'fast'", lambda: librepdl.matmul(x, x.T, accumulate="fast")),
    (TypeError, "matmul: accumulate: expected a str, got int", lambda: librepdl.matmul(x, x.T, accumulate=0)),
    (TypeError, "convert: dtype: expected float16.*, got float99", lambda: librepdl.convert(x, "float99")),
    (ValueError, "max: ", lambda: librepdl.max(x[:, :0], axis=1)),
    (ValueError, "exp: out: .*shape", lambda: librepdl.exp(x, out=np.zeros(5, np.float32))),
    (TypeError, "exp: out: .*f32, got f64", lambda: librepdl.exp(x, out=np.zeros((2, 3)))),
    (ValueError, "exp: out: expected an array that can be written, got a read-only one", lambda: librepdl.exp(x, out=frozen())),
    (ValueError, "exp: out: ", lambda: librepdl.exp(x, out=np.broadcast_to(np.float32(0), (2, 3)))),
    (TypeError, "exp: out: expected an array", lambda: librepdl.exp(x, out=[0.0])),
    (ValueError, "device: expected 'cpu', 'cuda' or 'cuda:N', got 'tpu'", lambda: librepdl.context(device="tpu")),
    (ValueError, "isa: expected .*got 'sse9'", lambda: librepdl.context(isa="sse9")),
    (ValueError, "threads: expected .*got -1", lambda: librepdl.context(threads=-1)),
    (ValueError, "Generator: seed: expected an integer from 0", lambda: librepdl.random.Generator(-1)),
    (TypeError, "Generator: stream: expected an int, got float", lambda: librepdl.random.Generator(0, 1.5)),
    (ValueError, "uniform: .*shape: ", lambda: librepdl.random.Generator().uniform((2, -1))),
    (ValueError, "bernoulli: p: ", lambda: librepdl.random.Generator().bernoulli(3, 1.5)),
    (ValueError, "sgd: grad: expected as many arrays as param has, 1, got 2", lambda: librepdl.sgd([x.copy()], [x, x])),
    (ValueError, "total_norm: p: expected 1, 2 or inf, got 3", lambda: librepdl.total_norm([], p=3)),
    (ValueError, "clip_grad_norm: grad.0.: expected an array that can be written", lambda: librepdl.clip_grad_norm([frozen()], 1)),
    (ValueError, "clip_grad_norm: max_norm: expected a number >= 0 or inf, got -1", lambda: librepdl.clip_grad_norm([x.copy()], -1)),
    (ValueError, "sgd: param.0.: expected an array that can be written", lambda: librepdl.sgd([frozen()], [x])),
    (TypeError, "compare: b: expected f32 as a has, got f64", lambda: librepdl.compare(x, x.astype(np.float64))),
    (ValueError, r"compare: b: expected shape \[2, 3\] as a has, got \[3, 2\]", lambda: librepdl.compare(x, x.T)),
    (TypeError, r"fingerprint: arrays\[1\]: expected an array", lambda: librepdl.fingerprint([x, [x]])),
])
def test_wrong_calls(error, text, call):
    with pytest.raises(error, match=text):
        call()


class Odd:
    """Whatever it says of itself."""

    def __init__(self, dlpack=None, device=(1, 0)):
        self.dlpack, self.device = dlpack, device

    def __dlpack__(self, **options):
        return self.dlpack

    def __dlpack_device__(self):
        return self.device


def capsule(rank=1, shape=(3,), strides=None, data=None, offset=0, bits=32, lanes=1, device=1):
    """A capsule of DLPack. Nobody frees what it points to."""
    memory = (ctypes.c_float * 3)(1, 2, 3)
    sizes = None if shape is None else (ctypes.c_int64 * len(shape))(*shape)
    head = struct.pack("<QiiiBBHQQQ", ctypes.addressof(memory) if data is None else data, device, 0, rank, 2, bits, lanes,
                       0 if sizes is None else ctypes.addressof(sizes), 0, offset)
    tensor = ctypes.create_string_buffer(head + bytes(16))
    ctypes.pythonapi.PyCapsule_New.restype = ctypes.py_object
    made = ctypes.pythonapi.PyCapsule_New(ctypes.c_void_p(ctypes.addressof(tensor)), NAME, None)
    KEPT.append((memory, sizes, tensor))
    return made


KEPT = []
NAME = ctypes.c_char_p(b"dltensor")


def test_capsules_that_cannot_be():
    with pytest.raises(AttributeError, match="from_dlpack"):  # read, and computed: this module has nothing that takes a result
        librepdl.neg(Odd(capsule()))
    assert librepdl.compare(Odd(capsule()), np.float32([1, 2, 3]))
    for expected, fields in (("shape: expected 1 sizes, got a null pointer", {"shape": None}), ("rank: expected 0 to 8, got -1", {"rank": -1}),
                             ("rank: expected 0 to 8, got 9", {"rank": 9}), ("byte_offset: expected a number below", {"offset": 2**63}),
                             ("data", {"data": 0}), ("expected float16", {"bits": 31}), ("expected float16", {"lanes": 2}),
                             ("device: expected cpu or cuda", {"device": 7}), ("negative|shape", {"shape": (-1,)})):
        with pytest.raises((TypeError, ValueError), match=f"neg: x: .*{expected}"):
            librepdl.neg(Odd(capsule(**fields)))
    for bad in (None, 3, "dltensor", object()):
        with pytest.raises(TypeError, match="neg: x: expected a capsule from __dlpack__, got "):
            librepdl.neg(Odd(bad))
    for device in (None, 3, (), (1,), ("cpu", 0), (1.5, 0), (2**40, 0), (1, None)):
        with pytest.raises(TypeError, match="neg: x: expected .*from __dlpack_device__"):
            librepdl.neg(Odd(None, device))


def test_texts_that_are_no_unicode():
    with pytest.raises(TypeError, match=r"convert: dtype: expected .*got \\ud800"):
        librepdl.convert(x, "\ud800")
    with pytest.raises(ValueError, match=r"matmul: accumulate: expected .*got '\\ud800'"):
        librepdl.matmul(x, x.T, accumulate="\ud800")
    with pytest.raises(TypeError, match="context: isa: expected a str, got int"):
        librepdl.context(isa=3)


def test_the_private_entry():
    call, grouped = librepdl._core.call, librepdl._core.call_grouped
    exp, sgd = librepdl._functions.ORDER.index("exp"), librepdl._functions.ORDER.index("sgd")
    for index in (-1, len(librepdl._functions.ORDER), 10**6):
        for f in (lambda: call(index, (x,), None, None), lambda: grouped(index, (), None, False)):
            with pytest.raises(ValueError, match=f"_core: index, below: expected {len(librepdl._functions.ORDER)}, got {index}"):
                f()
    for f, expected in ((lambda: call(exp, (), None, None), "operands: expected 1, got 0"), (lambda: call(exp, (x, x), None, None), "got 2"),
                        (lambda: call(exp, (x,), None, (1,)), "values of attributes, in a tuple: expected 0, got 1"),
                        (lambda: call(0, (x, x), None, 3), "got int"), (lambda: call(0, (x, x), None, ()), "got 0"),
                        (lambda: grouped(sgd, ([x],), None, False), "operands"), (lambda: grouped(sgd, ([x], [x], None), [], False), "got list")):
        with pytest.raises(ValueError, match=expected):
            f()


@pytest.mark.parametrize("position", range(3))
def test_masks_are_not_lost(position):
    """Neither as an operand, nor as a result, nor within a list; other subclasses whose elements are those of their memory are arrays."""
    a = np.float32([1, 2, 3])
    masked = np.ma.masked_array(a, [False, True, False])
    places = [lambda m: librepdl.fma(*[m if i == position else a for i in range(3)]), lambda m: librepdl.exp(a, out=m),
              lambda m: librepdl.fingerprint([a, m]), lambda m: librepdl.compare(a, m), lambda m: librepdl.total_norm([m]),
              lambda m: librepdl.random.Generator().uniform(3, like=m)]
    units = type("Units", (np.ndarray,), {})
    for call in places:
        with pytest.raises(TypeError, match=r"x.filled\(value\), or x.data.*got numpy.ma.*MaskedArray"):
            call(masked)
        with pytest.raises(TypeError, match=r"pass x.view\(numpy.ndarray\).*got .*Units"):
            call(a.view(units))
    for m in (masked[1], np.ma.masked):
        with pytest.raises(TypeError, match="got a list with numpy.ma.*MaskedConstant"):
            librepdl.sqrt([1.0, m])
    assert librepdl.exp(masked.filled(0)).tolist() == librepdl.exp(np.float32([1, 0, 3])).tolist()


def test_subclasses_that_are_arrays(tmp_path):
    a = np.float32([[1, 2, 3]])
    mapped = np.memmap(tmp_path / "mapped", np.float32, "w+", shape=a.shape)
    mapped[:] = a
    record = np.rec.array(np.array([(1.0, 2)], [("a", np.float32), ("b", np.float32)]))
    for like in (np.matrix(a), mapped, a.view(np.recarray)):
        got = librepdl.neg(like)
        assert type(got) is np.ndarray and (got == -a).all()
    assert librepdl.neg(record.a).tolist() == [-1.0]
    with pytest.raises(TypeError, match="expected float16"):
        librepdl.neg(record)


def test_bfloat16_of_a_file(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a = np.array([1, -2], ml_dtypes.bfloat16)
    np.save(tmp_path / "a.npy", a)
    read = np.load(tmp_path / "a.npy")  # NumPy does not know what it is
    with pytest.raises(TypeError, match=r"neg: x: .*got \|V2; bfloat16 that NumPy read from a file is x.view\(ml_dtypes.bfloat16\)"):
        librepdl.neg(read)
    assert librepdl.neg(read.view(ml_dtypes.bfloat16)).tolist() == [-1, 2]


def test_out_that_overlaps_an_operand():
    memory = np.arange(10, dtype=np.float32)
    before = memory.copy()
    with pytest.raises(ValueError, match="exp: out: "):
        librepdl.exp(memory[:-1], out=memory[1:])
    assert (memory == before).all()
    with pytest.raises(ValueError, match="exp: out: "):
        librepdl.exp(memory[:4], out=np.lib.stride_tricks.as_strided(memory, (4,), (0,)))
    assert (memory == before).all()


def test_unaligned_and_odd_strides():
    raw = np.zeros(4 * 5 + 1, np.uint8)
    with pytest.raises(ValueError, match="exp: x: "):
        librepdl.exp(raw[1:].view(np.float32))
    record = np.zeros(4, np.dtype([("a", np.float32), ("b", np.uint8)]))
    with pytest.raises(ValueError, match="exp: x: .*strides: expected multiples of the element's size, got 5 bytes"):
        librepdl.exp(record["a"])


@needs_torch
def test_tensors_that_autograd_follows():
    t = torch.ones(3, requires_grad=True)
    for call in (lambda: librepdl.exp(t), lambda: librepdl.exp(torch.ones(3), out=t), lambda: librepdl.fingerprint([t]),
                 lambda: librepdl.exp(torch.nn.Parameter(torch.ones(3)))):
        with pytest.raises(ValueError, match=r"requires_grad: expected .*x\.detach\(\)"):
            call()
    with torch.no_grad(), pytest.raises(ValueError, match="requires_grad"):
        librepdl.exp(t)
    assert librepdl.exp(t.detach()).tolist() == librepdl.exp(np.ones(3, np.float32)).tolist()


@needs_torch
def test_tensors_that_are_not_what_their_memory_says():
    imaginary = torch.ones(3, dtype=torch.complex64).conj().imag
    assert imaginary.is_neg()
    with pytest.raises(ValueError, match="is_neg"):
        librepdl.exp(imaginary)
    assert librepdl.abs(imaginary.resolve_neg()).tolist() == [0.0] * 3
    for t in (torch.ones(3).to_sparse(), torch.ones(3, device="meta")):
        with pytest.raises((ValueError, TypeError, NotImplementedError, BufferError, RuntimeError)):
            librepdl.exp(t)


def test_a_gpu_that_is_not_there():
    if any(d.startswith("cuda") for d in librepdl.info()["devices"]):
        pytest.skip("there is a GPU")
    assert librepdl.info()["no_gpu"]
    with pytest.raises((NotImplementedError, RuntimeError), match="cuda|CUDA"):
        librepdl.context(device="cuda")


# ------------------------------------------------------------------------------------------------------- anything at all

# Large integers are sizes that no memory has.
integers = st.integers(-5, 40) | st.sampled_from([2**62, 2**63, 2**64, -(2**63), -(2**70)])
scalars = st.none() | st.booleans() | integers | st.floats() | st.text(max_size=3) | st.complex_numbers()
arrays = st.builds(
    lambda shape, dtype, order, step: np.ones([n * abs(step) for n in shape], dtype)[tuple(slice(None, None, step) for _ in shape)].transpose(
        tuple(range(len(shape)))[::order]),
    st.lists(st.integers(0, 3), max_size=4), st.sampled_from([np.float16, np.float32, np.float64, np.int64, np.int32, np.bool_, np.uint8]),
    st.sampled_from([1, -1]), st.sampled_from([1, 2, -1]))
anything = arrays | scalars | st.lists(st.integers(-2, 5), max_size=3) | st.lists(arrays, max_size=2)
keywords = ("axis", "keepdims", "out", "stride", "padding", "dilation", "groups", "accumulate", "alpha", "dtype", "kernel", "size", "bias",
            "reduction", "ignore_index", "lr", "momentum", "transpose_a", "count_include_pad", "slope", "like", "shape", "p", "low", "high")


@settings(max_examples=1500, deadline=None)
@given(st.sampled_from(librepdl._functions.__all__), st.lists(anything, max_size=4), st.dictionaries(st.sampled_from(keywords), anything, max_size=2))
def test_any_call_ends_in_a_result_or_an_error_that_names_it(name, positional, named):
    function = getattr(librepdl, name)
    try:
        function(*positional, **named)
    except MemoryError:
        pass
    except (TypeError, ValueError, NotImplementedError) as e:
        assert function.__name__ in str(e), str(e)


@settings(max_examples=500, deadline=None)
@given(st.sampled_from(["uniform", "normal", "exponential", "permutation", "bernoulli", "randint", "dropout", "dropout_backward", "multinomial"]),
       st.lists(anything, max_size=3), st.dictionaries(st.sampled_from(keywords), anything, max_size=2))
def test_any_draw_ends_in_a_result_or_an_error_and_then_the_generator_is_as_before(name, positional, named):
    generator = librepdl.random.Generator(7, 8)
    try:
        getattr(generator, name)(*positional, **named)
        assert generator.stream == (8 if name.endswith("backward") else 9)
    except MemoryError:
        assert generator.stream == 8
    except (TypeError, ValueError, NotImplementedError) as e:
        assert name in str(e), str(e)
        assert generator.stream == 8


def parameters_of(function):
    """Those that are numbers, texts or lists of numbers, and what stands for the others and the required ones."""
    kinds = {"float": 1.0, "int": 1, "bool": False, "str": "mean", "int | collections.abc.Sequence[int]": 1}
    own, given = [], {}
    for p in inspect.signature(function).parameters.values():
        kind = getattr(p.annotation, "__name__", None) if isinstance(p.annotation, type) else str(p.annotation).removesuffix(" | None")
        if kind in kinds:
            own.append(p)
        if p.default is p.empty:
            array = np.ones((2, 2), np.float32)
            given[p.name] = kinds.get(kind, [array] if "Sequence" in str(p.annotation) else array)
    return own, given


@pytest.mark.parametrize("functions", [_functions, librepdl.random.Generator(1)])
def test_errors_name_the_parameter(functions):
    """As the function has it, of NumPy's name, not as the registry of operations has it."""
    checked = 0
    for name in getattr(functions, "__all__", dir(librepdl.random.Generator)):
        function = getattr(functions, name)
        if name.startswith("_") or not callable(function):
            continue
        own, given = parameters_of(function)
        if name == "arange":  # one number alone is stop
            given["stop"] = 3.0
        if "dtype" in given:
            given["dtype"] = np.float32
        for p in own:
            positional = [given[k] for k, q in inspect.signature(function).parameters.items() if q.kind == q.POSITIONAL_ONLY and k in given]
            keywords = {k: v for k, v in given.items() if inspect.signature(function).parameters[k].kind != p.POSITIONAL_ONLY}
            with pytest.raises((TypeError, ValueError), match=rf"^\w+: (\w+ or )?{p.name}( or \w+)?: expected"):
                function(*positional, **{**keywords, p.name: object()})
            checked += 1
    assert checked > (200 if functions is _functions else 10)


@pytest.mark.parametrize(("text", "call"), [
    ("linspace: start: ", lambda: librepdl.linspace(np.nan, 1, 3)),
    ("linspace: stop: ", lambda: librepdl.linspace(0, np.inf, 3)),
    ("linspace: num: ", lambda: librepdl.linspace(0, 1, -1)),
    ("linspace: num: ", lambda: librepdl.linspace(0, 1, 2**70)),
    (r"arange: stop: expected at most 2\^48 numbers before it, got 1152921504606846976$", lambda: librepdl.arange(2.0**60)),
    ("arange: start: expected a number, got ndarray", lambda: librepdl.arange(np.ones(2), 3)),
    ("arange: stop: expected a finite number, got inf", lambda: librepdl.arange(0, 10**400)),
    ("arange: step: ", lambda: librepdl.arange(0, 3, step=1e300)),
    ("var: correction or ddof: ", lambda: librepdl.var(x, ddof=np.nan)),
    ("upsample_nearest2d_backward: out: expected f32, got f64", lambda: librepdl.upsample_nearest2d_backward(
        x[None, None], (2, 3), out=np.empty((1, 1, 2, 3)))),
    ("upsample_nearest2d_backward: out: expected shape ", lambda: librepdl.upsample_nearest2d_backward(x[None, None], (2, 3), out=x))])
def test_errors_of_values_name_the_parameter(text, call):
    with pytest.raises((ValueError, TypeError), match="^" + text):
        call()
