"""Operations on lists (_foreach_...): the bits of the operation for each tensor, one after the other."""

import pytest
import torch

import librepdl.torch

SHAPES = [(), (5,), (3, 4), (0,), (1025,), (2, 3, 5)]
FORMATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
#: name: (the operation for a tensor, kinds of further arguments: t a tensor of the shape, n a number).
BINARY = {"add": "t", "sub": "t", "mul": "t", "div": "t", "maximum": "t", "minimum": "t", "addcmul": "ttn", "addcdiv": "ttn", "lerp": "tn"}
UNARY = ["neg", "abs", "sqrt", "sign", "reciprocal", "rsqrt"]


def some(dtype, odd=False):
    """Tensors of all shapes; odd: some of them in other orders, or not dense."""
    made = [(torch.rand(shape, dtype=torch.float64) * 4 + 0.25).to(dtype) for shape in SHAPES]
    made += [torch.full((3,), value, dtype=dtype) for value in (float("inf"), float("nan"), 0.0, -0.0)]
    if odd:
        made += [made[2].clone().t(), made[4].clone()[::3], made[5].clone().permute(1, 2, 0), made[5].clone()[..., 0]]
    return made


def same(got, expected):
    def bits(t):
        return (t.dtype, t.shape, t.stride(), t.contiguous().reshape(-1).view(torch.uint8).tolist())

    assert [bits(t) for t in got] == [bits(t) for t in expected]


def check(name, lists, rest=(), numbers=None, **options):
    """rest: for all; numbers: one for each tensor."""
    one, of_lists = getattr(torch, name), getattr(torch, "_foreach_" + name)
    further = [*rest] if numbers is None else [[*numbers]]

    def alone(k, x):
        value = [*rest] if numbers is None else [numbers[k]]
        if name.startswith("addc"):
            return one(x, lists[1][k], lists[2][k], value=value[0])
        return one(x, *(other[k] for other in lists[1:]), *value, **options)

    expected = [alone(k, x) for k, x in enumerate(lists[0])]
    same(of_lists(*lists, *further, **options), expected)
    into = [x.clone() for x in lists[0]]
    getattr(torch, f"_foreach_{name}_")(into, *lists[1:], *further, **options)
    same(into, [x.clone().copy_(y) for x, y in zip(lists[0], expected)])


@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("dtype", FORMATS)
def test_bits_of_each_tensor(dtype, odd):
    librepdl.torch.enable()
    torch.manual_seed(3)
    a, b, c = (some(dtype, odd) for _ in range(3))
    numbers = [0.3 + k for k in range(len(a))]
    for name in UNARY:
        check(name, [a])
    for name in ("add", "sub", "mul", "div", "maximum"):
        check(name, [a, b])
    for name in ("add", "sub", "mul", "div"):
        for number in (0.3, 3, True) if name != "sub" else (0.3, 3):
            check(name, [a], [number])
        check(name, [a], numbers=numbers)
    for name in ("add", "sub"):
        check(name, [a, b], alpha=-0.1)
        check(name, [a, b], alpha=1)
    for name in ("add", "mul", "div"):
        check(name, [a], [torch.tensor(0.7, dtype=dtype)])
    for name in ("addcmul", "addcdiv"):
        check(name, [a, b, c], [0.7])
        check(name, [a, b, c], [1])
        check(name, [a, b, c], numbers=numbers)
    check("lerp", [a, b], [0.3])
    check("lerp", [a, b, c])


def test_other_lists():
    librepdl.torch.enable()
    a, b = some(torch.float32), some(torch.float32)
    mixed = [x.to(FORMATS[k % 4]) for k, x in enumerate(a)]
    check("mul", [mixed], [0.3])
    check("add", [a, some(torch.float64)])
    check("add", [[x.reshape(-1)[:1] for x in a[:3]], [torch.rand(4) for _ in range(3)][:3]][::-1])  # broadcasting
    check("add", [[torch.arange(5)], [torch.arange(5)]])
    # One after the other: what is there twice, and what the next one reads.
    x = torch.rand(7)
    twice = x.clone()
    torch._foreach_mul_([twice, twice], 0.3)
    same([twice], [x * 0.3 * 0.3])
    one, two = x.clone(), torch.rand(7)
    first = one + two
    second = two + first
    torch._foreach_add_([one, two], [two, one])
    same([one, two], [first, second])
    with pytest.raises(RuntimeError):
        torch._foreach_add(a, b[:-1])
    with pytest.raises(RuntimeError):
        torch._foreach_mul_([torch.zeros(1).expand(4)], 0.3)


def test_gradients_of_lists():
    librepdl.torch.enable()
    x = [torch.rand(3, requires_grad=True), torch.rand(4, requires_grad=True)]
    torch._foreach_mul(x, [2.0, 0.3])[1].sum().backward()
    assert x[0].grad is None and torch.equal(x[1].grad, torch.full((4,), 0.3))
    with torch.no_grad():
        torch._foreach_add_(x, 1.0)
    assert x[0]._version == 1
