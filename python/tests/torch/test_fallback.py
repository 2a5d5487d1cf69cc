"""Without a compiler: kernels in Python, with the bits of those in C++."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import librepdl.torch
from librepdl.torch import _door

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "pytorch"


def run(*arguments, kernels="python", **environment):
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, "LIBREPDL_TORCH_KERNELS": kernels, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture
def in_python(monkeypatch):
    """librepdl.torch of this process with kernels in Python."""
    librepdl.torch.disable()
    before = _door._door
    monkeypatch.setenv("LIBREPDL_TORCH_KERNELS", "python")
    _door._door = None
    librepdl.torch.enable()
    yield
    librepdl.torch.disable()
    _door._door = before


def test_lenet_has_the_same_fingerprint():
    def fingerprint(kernels):
        text = run(EXAMPLES / "lenet.py", "--reproducible", "--steps", 3, "--batch", 10, kernels=kernels).stdout
        return [line for line in text.splitlines() if line.startswith("fingerprint")]

    found = fingerprint("python")
    assert len(found) == 1 and found == fingerprint("c++")


def test_without_a_compiler(tmp_path):
    code = "import librepdl.torch; librepdl.torch.enable(); print(librepdl.torch.status()['kernels'])"
    done = run("-c", code, kernels="", PATH=str(tmp_path), CXX="", LIBREPDL_CACHE=str(tmp_path))
    assert done.stdout == "Python\n"
    assert done.stderr.count("needs a C++ compiler") == 1 and "its kernels in Python" in done.stderr


def test_every_elementwise_row(in_python, monkeypatch):
    """test_map's, with this process's kernels; enabled once."""
    import test_map
    monkeypatch.setattr(librepdl.torch, "reproducible", contextlib.nullcontext)
    for row in test_map.ROWS:
        test_map.test_row(row)
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
        test_map.test_numbers(dtype)
    test_map.test_promotion()
    test_map.test_conversions()


def test_types(in_python, monkeypatch):
    """test_types', with these kernels."""
    import test_types
    monkeypatch.setattr(librepdl.torch, "reproducible", lambda strict=True: contextlib.nullcontext())
    test_types.test_casts()
    test_types.test_conjugates_and_negatives()
    test_types.test_powers_of_integers()
    test_types.test_norms_with_weights_of_a_third_type()
    for dtype in (torch.bool, *test_types.INTEGERS):
        test_types.test_integers_become_floats(dtype)
    for norm in test_types.NORMS:
        test_types.test_norms_with_weights_of_float32(norm, torch.bfloat16)
        test_types.test_norms_next_to_ties(norm, torch.float16)
    test_types.test_running_statistics_of_16_bits(torch.bfloat16)


def test_numbers_as_elements(in_python):
    """test_types', with these kernels."""
    import test_types
    librepdl.torch.disable()
    test_types.test_numbers_as_elements_of_float8(torch.float8_e4m3fn)
    test_types.test_one_more_than_the_greatest_number(torch.int64)


def test_errors(in_python):
    """test_errors', of what is there."""
    import test_errors
    librepdl.torch.disable()
    lacking = ("binary_cross_entropy", "multinomial", "scatter_reduce", "glu", "kthvalue", "trace", "into integers")
    plain = {name: test_errors.tried(f) for name, f in test_errors.ERRORS.items() if not name.startswith(lacking)}
    librepdl.torch.enable()
    for name, right in plain.items():
        found = test_errors.tried(test_errors.ERRORS[name])
        assert type(found) is type(right) and str(found).splitlines()[0] == str(right).splitlines()[0], (name, found, right)


@pytest.mark.parametrize("name", [
    "refusals_name_the_operation_and_the_module", "the_backward_pass_is_covered_in_its_own_threads", "other_threads_and_exemption",
    "without_strictness_it_is_noted", "status", "kernels_that_others_register_are_noticed",
    "printing_saving_copying", "random_numbers",
    "matmul_and_linear_do_not_depend_on_strides", "attention_is_the_same_alone_and_in_a_batch", "of_several_values_the_last_stays"])
def test_what_a_user_sees(in_python, name):
    """test_door's, of these kernels."""
    import test_door
    librepdl.torch.disable()
    getattr(test_door, "test_" + name)()


def test_past_the_dispatcher_and_coverage(in_python):
    import test_coverage
    import test_past
    for test in (test_past.test_operators_that_come_later_are_refused_at_once, test_past.test_operators_that_nobody_told_of,
                 test_past.test_numpys_functions_of_tensors_are_refused, test_past.test_default_devices_and_inference_mode,
                 test_coverage.test_steps_of_training_stay_undone):
        librepdl.torch.disable()
        test()


def test_an_operator_that_comes_is_looked_at_alone(in_python, monkeypatch):
    """Not all there are, each time: PyTorch registers hundreds where a program first meets a tensor of "meta"."""
    def all_schemas():
        raise AssertionError("all schemas, for one operator")

    monkeypatch.setattr(torch._C, "_jit_get_all_schemas", all_schemas)
    library = torch.library.Library("test_looked_at_alone", "FRAGMENT")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CPU")
    with pytest.raises(NotImplementedError, match="test_looked_at_alone::twice"):
        torch.ops.test_looked_at_alone.twice(torch.ones(2))


def test_the_first_minute(in_python):
    """test_first_minute's, of these kernels: the formulas that they have of their own."""
    import test_first_minute as first
    for dtype in first.FLOATS:
        first.test_heaviside(dtype)
        first.test_normal_of_tensors(dtype)
        first.test_factories_with_out(dtype)
    for dtype in first.SIXTEEN:
        first.test_put(dtype)
        first.test_dropout_of_16_bits_is_one_rounding(dtype, 1 / 3)
    first.test_dropout_of_16_bits_next_to_1()
    first.test_dropout_in_place("dropout", (4, 6), torch.bfloat16)


def test_optimisers_and_gradient_scalers(in_python):
    import test_optimisers as those
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        those.test_gradients_are_unscaled_in_one_rounding(dtype)
    those.test_scales_are_rounded_once()
    those.test_scales_grow_and_shrink()
    assert those.stepped("RAdam", {}, foreach=True) == those.stepped("RAdam", {})
    with pytest.raises(NotImplementedError, match=r"^torch\.optim\.nadam: not reproducible yet \(differentiable=True"):
        those.stepped("NAdam", {}, differentiable=True)


def draws():
    librepdl.torch.enable()
    torch.manual_seed(-3)
    g = torch.Generator().manual_seed(7)
    x = torch.empty(50)
    a = torch.randn(2, 3, 3, requires_grad=True)  # its gradients are added in one order
    (a @ a @ a).sum().backward()
    return librepdl.torch.fingerprint([
        torch.rand(9, generator=g), torch.randn(9), x.exponential_().clone(), torch.randint(-5, 2**60, (9,)),
        torch.randperm(9, generator=g), torch.bernoulli(torch.rand(9)), x.bernoulli_(0.3).clone(), x.random_().clone(),
        torch.dropout(torch.ones(50), 0.3, True), torch.empty(9, dtype=torch.float16).uniform_(-1, 3), torch.get_rng_state(),
        g.get_state(), a.grad])


def test_random_numbers_are_the_same(request):
    expected = draws()
    request.getfixturevalue("in_python")
    assert librepdl.torch.status()["kernels"] == "Python" and draws() == expected


def test_variants(in_python):
    """In place and out= are the functional formula's."""
    a, b, c = torch.randn(3, 4), torch.randn(4, 5), torch.randn(3, 5)
    out = torch.empty(0)
    torch.addmm(c, a, b, beta=0.5, alpha=0.1, out=out)
    assert torch.equal(out, torch.addmm(c, a, b, beta=0.5, alpha=0.1))
    assert torch.equal(c.clone().addmm_(a, b, beta=0.5, alpha=0.1), out)
    values, indices = torch.empty(0), torch.empty(0, dtype=torch.int64)
    torch.max(a, 1, out=(values, indices))
    assert torch.equal(values, torch.max(a, 1).values) and torch.equal(indices, torch.max(a, 1).indices)
    with pytest.raises(RuntimeError, match="broadcast"):
        torch.zeros(1, 5).addmm_(a, b)
    with pytest.raises(RuntimeError, match="broadcast"):
        column = torch.zeros(2, 1)
        torch.mul(column, torch.zeros(2), out=column)
    with pytest.raises(RuntimeError, match="memory"):
        torch.zeros(1).expand(3).add_(1)
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.sum(a, 0, out=torch.empty(0, dtype=torch.int64))


def test_refusals(in_python):
    x = torch.ones(2, 3)
    with pytest.raises(NotImplementedError, match=r"^aten::cumsum \(float32, cpu\): not reproducible yet$"):
        torch.cumsum(x, 0)
    with pytest.raises(NotImplementedError, match=r"^aten::exp \(float64, cpu\): not reproducible yet$"):
        torch.exp(x.double())
    with pytest.raises(NotImplementedError, match=r"^aten::col2im \(float32, cpu\): not reproducible yet \(without a compiler\)$"):
        torch.nn.functional.fold(torch.ones(1, 4, 1), (2, 2), (2, 2))
    with librepdl.torch.exempt():
        sparse = x.to_sparse()
    with pytest.raises(NotImplementedError, match="of a tensor that is not dense"):
        sparse.add(sparse)
    module = torch.nn.LSTM(3, 3)
    with pytest.raises(NotImplementedError, match=r"without a compiler\).*called by LSTM"):
        module(x)
    assert torch.cumsum(torch.ones(3, dtype=torch.int64), 0).tolist() == [1, 2, 3]
    assert librepdl.torch.status()["kernels"] == "Python"
    with librepdl.torch.reproducible(strict=False):
        assert torch.cumsum(x, 0)[1, 0] == 2
        assert [what for what in librepdl.torch.status()["noted"] if "cumsum" in what]
    with librepdl.torch.exempt():
        torch.cumsum(x, 0)
        assert (torch.ones(2, dtype=torch.float16) + 0.1).dtype == torch.float16


def test_disable_restores(in_python):
    x = torch.linspace(-3, 3, 1001)
    ours = torch.exp(x)
    library = torch.library.Library("aten", "IMPL")
    library.impl("exp", lambda t: t, "CPU", allow_override=True)
    with pytest.raises(RuntimeError, match=r"aten::exp \(CPU\)"):
        librepdl.torch.enable()
    library._destroy()
    librepdl.torch.enable()
    librepdl.torch.disable()
    plain = torch.exp(x)
    librepdl.torch.enable()
    assert torch.equal(torch.exp(x), ours)
    with librepdl.torch.exempt():
        assert torch.equal(torch.exp(x), plain)


def test_transforms(in_python):
    """test_functional's of products and derivatives, with this process's kernels."""
    import test_functional as tests
    for in_dims in ((0, None, None), (2, 1, 0), (None, None, 0)):
        tests.test_linear(in_dims)
    tests.test_a_vector_is_a_row_of_a_batch()
    tests.test_vectors_are_one_sum_whatever_their_strides()
    tests.test_nested_and_of_no_samples()
    tests.test_gradients_of_samples_are_those_that_they_have_alone()
    tests.test_jacobians_are_loops_over_basis_vectors(lambda x, v: x @ v)
    with pytest.raises(NotImplementedError, match="without a compiler in torch.vmap"):
        torch.vmap(lambda t: torch.nn.functional.dropout(t, 0.5), randomness="different")(torch.ones(2, 3))
