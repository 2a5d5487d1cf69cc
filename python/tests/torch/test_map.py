"""Elementwise rows of the policy: the same bits as librepdl's own function, in every variant that PyTorch has."""

import numpy as np
import pytest
import torch

import librepdl
import librepdl.torch
from librepdl.torch import _policy

ROWS = [row for row in _policy.rows() if row.action == "MAP"]
TYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64}
#: What an attribute's argument is, of those that the random ones below do not fit.
NUMBERS = {"min": -0.5, "max": 0.75, "min_val": -0.5, "max_val": 0.75, "eps": 0.125, "threshold": 0.25, "value": 1.5, "lambd": 0.375,
           "alpha": 0.3, "negative_slope": 0.01, "weight": 0.1, "beta": 1.25, "scale": 1.1, "input_scale": 0.9}
#: Arguments that are neither operands nor attributes.
OTHERS = {"self_is_result": False, "buffer": torch.empty(0)}


def values(dtype: torch.dtype, seed: int) -> torch.Tensor:
    g = np.random.default_rng(seed)
    x = np.concatenate([g.standard_normal(600), g.standard_normal(200) * 1e3, g.standard_normal(100) * 1e-6, g.random(300),
                        [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 2, 3, 1e-45, -1e-45, 3e38, 65504]])
    g.shuffle(x)
    return torch.from_numpy(x).to(dtype)


def bits(t: torch.Tensor) -> torch.Tensor:
    return t.contiguous().view({1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[t.element_size()])


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_row(row):
    name, arguments = row.name, row.arguments
    operation, operands, options = row.call()
    for dtype in (dtype for bits, dtype in TYPES.items() if bits in row.types):
        given = {a: values(dtype, i) for i, a in enumerate(operands)}
        numbers = {a: NUMBERS[a] for a in options.values()}
        # aten's Scalar is rounded to the type that PyTorch computes with; its float (eps) is not.
        rounded = {o: numbers[a] if a == "eps" or dtype == torch.float64 else float(np.float32(numbers[a])) for o, a in options.items()}
        inputs, out = [given[a] for a in operands], None
        if "alpha" in rounded and operation in ("add", "sub"):  # in Python it stands for an operand, and has its type
            inputs, out = [x.to(torch.promote_types(dtype, torch.float32)) for x in inputs], torch.empty_like(inputs[0])
        expected = getattr(librepdl, operation)(*inputs, **rounded, **({} if out is None else {"out": out}))

        def call(function):
            positional, named = [], {}
            keyword_only = {a.name for a in function._schema.arguments if a.kwarg_only}
            for a in arguments:
                value = given.get(a, numbers.get(a, OTHERS.get(a)))
                value = value.clone() if isinstance(value, torch.Tensor) else value
                if a in keyword_only:
                    named[a] = value
                else:
                    positional.append(value)
            return positional, named

        base, _, overload = name.partition(".")
        functional = getattr(getattr(torch.ops.aten, base), overload or "default")
        signature = [(a.name, str(a.type)) for a in functional._schema.arguments]
        with librepdl.torch.reproducible():
            positional, named = call(functional)
            result = functional(*positional, **named)
            assert torch.equal(bits(result), bits(expected)), (dtype, "functional")
            for other in torch._C._jit_get_schemas_for_operator(f"aten::{base}"):
                outs = [a for a in other.arguments if a.is_out]
                if outs and [(a.name, str(a.type)) for a in other.arguments if not a.is_out] == signature:
                    out = torch.empty(0, dtype=dtype)
                    getattr(getattr(torch.ops.aten, base), other.overload_name)(*positional, **named, **{outs[0].name: out})
                    assert torch.equal(bits(out), bits(expected)), (dtype, other.overload_name)
            for other in torch._C._jit_get_schemas_for_operator(f"aten::{base}_"):
                if [(a.name, str(a.type)) for a in other.arguments] == signature:
                    positional, named = call(functional)
                    getattr(getattr(torch.ops.aten, base + "_"), other.overload_name or "default")(*positional, **named)
                    assert torch.equal(bits(positional[0]), bits(expected)), (dtype, "in place")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_numbers(dtype):
    """A Python number is rounded to float32 (float64 for float64), and the result once."""
    x = values(dtype, 3)
    number = 0.1 if dtype == torch.float64 else float(np.float32(0.1))
    wide = x.to(torch.float64 if dtype == torch.float64 else torch.float32)
    with librepdl.torch.reproducible():
        results = {"add": x + 0.1, "sub": x - 0.1, "mul": x * 0.1, "div": x / 0.1}
        reverse = {"sub": 0.1 - x}
        quotient, by_reciprocal = 0.1 / x, x.reciprocal() * 0.1  # PyTorch's own formula, in Python
    y = torch.full_like(wide, number)
    for name, result in results.items():
        assert torch.equal(bits(result), bits(getattr(librepdl, name)(wide, y, out=torch.empty_like(x)))), name
    for name, result in reverse.items():
        assert torch.equal(bits(result), bits(getattr(librepdl, name)(y, wide, out=torch.empty_like(x)))), name
    assert torch.equal(bits(quotient), bits(by_reciprocal))


def test_promotion():
    x = torch.arange(6, dtype=torch.int64).reshape(2, 3)
    y = torch.tensor([[0.1], [0.2]])
    with librepdl.torch.reproducible():
        assert torch.equal(x + 1, torch.add(x, 1)) and (x + 1).dtype == torch.int64
        assert torch.equal(x * y, librepdl.mul(x.to(torch.float32), y))
        assert torch.equal(torch.exp(x), librepdl.exp(x.to(torch.float32)))
        assert torch.equal(x / 3, librepdl.div(x.to(torch.float32), torch.full((2, 3), 3.0)))
        with pytest.raises(RuntimeError, match="can't be cast"):
            x.add_(0.5)
        with pytest.raises(RuntimeError, match="broadcast"):
            torch.zeros(3).add_(torch.zeros(2, 3))
        for small in (torch.zeros(1), torch.zeros(1, dtype=torch.float16)):  # an operand keeps its shape
            with pytest.raises(RuntimeError, match="broadcast"):
                torch.add(small, torch.zeros(3), out=small)
        base = torch.zeros(5)
        with pytest.raises(RuntimeError, match="memory"):
            base[1:].add_(base[:-1])


def test_conversions():
    """One rounding, saturated: as librepdl.convert, whatever the device does."""
    x = torch.tensor([2049.0, 1e10, -1e30, float("nan"), float("inf"), 3.7, -3.7])
    with librepdl.torch.reproducible():
        assert torch.equal(x.to(torch.int64), librepdl.convert(x, "i64"))
        assert torch.equal(bits(x.to(torch.float16)), bits(librepdl.convert(x, "f16")))
        assert torch.equal(x[:1].to(torch.uint8), torch.tensor([255], dtype=torch.uint8))
        i = torch.tensor([2**53 + 1, 2**24 + 1, -(2**40) - 1])
        assert torch.equal(i.to(torch.float32), librepdl.convert(i, "f32"))
        assert torch.equal(bits(i.to(torch.bfloat16)), bits(librepdl.convert(i, "bf16")))
