"""torch.func against loops, on PyTorch's own samples (OpInfo), with librepdl enabled: bits are compared.

    python functional.py [--only NAME...] [--samples N] [--device cuda]

  - every aten operation that the samples call, forward and backward: torch.vmap over each tensor argument, and over all of them,
    against a loop over the batch;
  - every operation that PyTorch tests: the same, and of its gradients (vmap of vjp), and forward-mode differentiation (vmap of jvp
    against a loop of jvp), and vjp and jvp themselves against autograd.

A case that the loop or torch.vmap refuses by name is refused. One that torch.vmap cannot do in plain PyTorch either is left out.
"""

import argparse
import collections
import itertools
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_unflatten

import librepdl.torch

BATCH = 3
#: Of results that no values decide: memory, or how it lies; of vmap without a meaning.
LEFT_OUT = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted", "resize_", "resize_as_",
            "resize", "resize_as", "set_", "as_strided", "as_strided_copy", "as_strided_scatter", "_local_scalar_dense", "is_pinned",
            "record_stream"}

#: Forward mode has one formula for tensors and another for those of torch.func (FunctionsManual.cpp).
TWO_FORMULAS = {"nn.functional.layer_norm", "native_layer_norm", "nn.functional.group_norm", "native_group_norm",
                "nn.functional.instance_norm", "nn.functional.rms_norm", "nn.functional.batch_norm", "native_batch_norm",
                "_native_batch_norm_legit"}


def bits(t: torch.Tensor) -> torch.Tensor:
    with librepdl.torch.exempt():
        t = t.detach().contiguous()
        if t.is_complex():
            t = torch.view_as_real(t)
        if t.is_floating_point():
            t = t.view({1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[t.element_size()])
        return t


def different(a: list[torch.Tensor], b: list[torch.Tensor]) -> str | None:
    if len(a) != len(b):
        return f"{len(a)} results, of the loop {len(b)}"
    for i, (x, y) in enumerate(zip(a, b)):
        if x.shape != y.shape or x.dtype != y.dtype:
            return f"result {i}: {x.dtype} {list(x.shape)}, of the loop {y.dtype} {list(y.shape)}"
        if not torch.equal(bits(x), bits(y)):
            return f"result {i}: bits differ"
    return None


def samples_of(t: torch.Tensor) -> list[torch.Tensor]:
    """The tensor, and others of its values in another order."""
    t = t.detach()
    flat = t.reshape(-1)
    return [t, flat.roll(1).reshape(t.shape), flat.flip(0).reshape(t.shape)][:BATCH]


def tensors_of(value: Any) -> list[torch.Tensor]:
    return [t for t in tree_flatten(value)[0] if isinstance(t, torch.Tensor)]


class Case:
    """A function of tensors, some of which are batched."""

    def __init__(self, function: Callable[..., Any], arguments: Any) -> None:
        self.function = function
        self.leaves, self.spec = tree_flatten(arguments)
        self.places = [i for i, v in enumerate(self.leaves) if isinstance(v, torch.Tensor)]
        self.leaves = [v.detach() if isinstance(v, torch.Tensor) else v for v in self.leaves]

    def ways(self) -> Iterator[tuple[int, ...]]:
        for i in self.places:
            yield (i,)
        if len(self.places) > 1:
            yield tuple(self.places)

    def call(self, way: tuple[int, ...], tensors: Any) -> list[torch.Tensor]:
        leaves = list(self.leaves)
        for i, t in zip(way, tensors):
            leaves[i] = t
        return tensors_of(self.function(*tree_unflatten(leaves, self.spec)))

    def looped(self, way: tuple[int, ...], randomness: str) -> list[torch.Tensor]:
        parts = []
        for ts in zip(*(samples_of(self.leaves[i]) for i in way)):
            if randomness == "same" or not parts:
                torch.manual_seed(1)
            parts.append(self.call(way, ts))
        return [torch.stack(p) for p in zip(*parts)]

    def batched(self, way: tuple[int, ...], axis: int, randomness: str) -> list[torch.Tensor]:
        stacks = [torch.stack(samples_of(self.leaves[i]), axis) for i in way]
        torch.manual_seed(1)
        return list(torch.vmap(lambda *ts: tuple(self.call(way, ts)), in_dims=axis, randomness=randomness)(*stacks))


class Found:
    def __init__(self) -> None:
        self.wrong: dict[str, list[str]] = collections.defaultdict(list)
        self.count: collections.Counter[str] = collections.Counter()

    def compare(self, name: str, case: Case, axes: tuple[int, ...] = (0, -1), randomness: str = "same") -> None:
        for way, axis in itertools.product(case.ways(), axes):
            text = f"{name}: of tensors {[case.places.index(i) for i in way]}, axis {axis}"
            try:
                expected = case.looped(way, randomness)
            except Exception:  # refused, or not for these values
                self.count["left out"] += 1
                continue
            if not expected:
                continue
            try:
                got = case.batched(way, axis, randomness)
            except NotImplementedError as e:
                if "not reproducible yet" in str(e):
                    self.count["refused"] += 1
                else:
                    self.wrong[name].append(f"{text}: {e}".splitlines()[0])
                continue
            except Exception as e:
                if self.plain_fails(case, way, axis, randomness):
                    self.count["left out"] += 1
                else:
                    self.wrong[name].append(f"{text}: {type(e).__name__}: {e}".splitlines()[0])
                continue
            self.count["equal"] += 1
            if (problem := different(got, expected)) is not None:
                self.wrong[name].append(f"{text}: {problem}")

    def compare_to_autograd(self, name: str, function: Callable[..., Any], arguments: Any, forward: bool) -> None:
        try:
            torch.manual_seed(1)
            expected = differentiated(function, arguments, forward)
        except Exception:
            self.count["left out"] += 1
            return
        try:
            torch.manual_seed(1)
            got = tensors_of(transformed(function, forward)(*arguments))
            problem = different(got, expected)
        except NotImplementedError as e:
            problem = None if "not reproducible yet" in str(e) else str(e)
        except Exception as e:
            with librepdl.torch.exempt():
                try:
                    transformed(function, forward)(*arguments)
                    problem = f"{type(e).__name__}: {e}".splitlines()[0]
                except Exception:
                    problem = None
        self.count["as autograd"] += 1
        if problem is not None:
            self.wrong[name].append(f"{name}: {problem}")

    def texts(self) -> str:
        return "\n".join(text for texts in self.wrong.values() for text in texts[:4])

    @staticmethod
    def plain_fails(case: Case, way: tuple[int, ...], axis: int, randomness: str) -> bool:
        with librepdl.torch.exempt():
            try:
                case.batched(way, axis, randomness)
            except Exception:
                return True
        return False


class Recorder(TorchDispatchMode):
    """aten's operations that are called, with at most so many samples of each."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.calls: dict[str, dict[str, Case]] = collections.defaultdict(dict)
        self.limit = limit

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(function).removeprefix("aten.")
        base = function._schema.name.partition("::")[2]
        writes = [a.name for a in function._schema.arguments if a.alias_info is not None and a.alias_info.is_write]
        seen = self.calls[name]
        if base not in LEFT_OUT and len(seen) < self.limit and writes in ([], ["self"]):
            leaves = tree_flatten((args, kwargs or {}))[0]
            key = repr([(list(v.shape), v.dtype) if isinstance(v, torch.Tensor) else v for v in leaves])
            if key not in seen and any(isinstance(v, torch.Tensor) for v in leaves) \
                    and all(v.numel() < 2000 for v in leaves if isinstance(v, torch.Tensor)):
                leaves = [v.detach().clone() if isinstance(v, torch.Tensor) else v for v in leaves]
                spec = tree_flatten((args, kwargs or {}))[1]

                def call(a: Any, k: Any, writes: bool = bool(writes), function: Any = function) -> Any:
                    return function(*((a[0].clone(), *a[1:]) if writes else a), **k)

                seen[key] = Case(call, tree_unflatten(leaves, spec))
        return function(*args, **(kwargs or {}))


def operations(only: list[str], samples: int, device: str) -> Iterator[tuple[str, Any, list[Any]]]:
    from torch.testing._internal.common_methods_invocations import op_db  # from then on flags of PyTorch cannot be set

    for op in op_db:
        name = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
        if torch.float32 not in op.dtypes or op.name in LEFT_OUT or (only and op.name not in only and name not in only):
            continue
        with librepdl.torch.exempt():
            torch.manual_seed(0)
            found = list(itertools.islice(op.sample_inputs(device, torch.float32, requires_grad=False), samples))
        yield name, op, found


def weights(t: torch.Tensor) -> torch.Tensor:
    """Cotangents and tangents that are no round numbers."""
    with librepdl.torch.exempt():
        return torch.linspace(0.5, 1.5, t.numel(), dtype=torch.float64).to(t.device, t.dtype).reshape(t.shape)


def of_sample(op: Any, sample: Any) -> tuple[Callable[..., Any], Any]:
    return (lambda a, k: op.op(*a, **k)), ([sample.input, *sample.args], dict(sample.kwargs))


def of_floats(function: Callable[..., Any], a: Any, k: Any) -> tuple[Callable[..., tuple[torch.Tensor, ...]], tuple[torch.Tensor, ...]]:
    """Of the floating-point tensors among the arguments, those among the results."""
    leaves, spec = tree_flatten((a, k))
    places = [i for i, v in enumerate(leaves) if isinstance(v, torch.Tensor) and v.is_floating_point()]

    def call(*floats: torch.Tensor) -> tuple[torch.Tensor, ...]:
        whole = list(leaves)
        for i, t in zip(places, floats):
            whole[i] = t
        return tuple(t for t in tensors_of(function(*tree_unflatten(whole, spec))) if t.is_floating_point())

    return call, tuple(leaves[i] for i in places)


def transformed(function: Callable[..., Any], forward: bool) -> Callable[..., Any]:
    """The function's vjp, or its jvp."""
    def call(a: Any, k: Any) -> Any:
        f, floats = of_floats(function, a, k)
        if forward:
            return torch.func.jvp(f, floats, tuple(weights(t) for t in floats))
        results, pullback = torch.func.vjp(f, *floats)
        return results, pullback(tuple(weights(t) for t in results))

    return call


def differentiated(function: Callable[..., Any], arguments: Any, forward: bool) -> list[torch.Tensor]:
    """The same by autograd."""
    f, floats = of_floats(function, *arguments)
    if forward:
        with torch.autograd.forward_ad.dual_level():
            results = f(*(torch.autograd.forward_ad.make_dual(t, weights(t)) for t in floats))
            pairs = [torch.autograd.forward_ad.unpack_dual(t) for t in results]
            return [p.primal for p in pairs] + [torch.zeros_like(p.primal) if p.tangent is None else p.tangent for p in pairs]
    floats = tuple(t.detach().requires_grad_() for t in floats)
    results = f(*floats)
    whole = [t for t in results if t.requires_grad]
    if not whole:
        return [*results, *map(torch.zeros_like, floats)]
    # With a graph, as torch.func: some formulas are others then.
    return [*results, *torch.autograd.grad(whole, floats, [weights(t) for t in whole], create_graph=True, materialize_grads=True)]


def record(found: list[tuple[str, Any, list[Any]]], limit: int) -> dict[str, dict[str, Case]]:
    recorder = Recorder(limit)
    for _, op, samples in found:
        for sample in samples:
            leaves, spec = tree_flatten(of_sample(op, sample)[1])
            leaves = [v.detach().requires_grad_(op.supports_autograd and v.is_floating_point()) if isinstance(v, torch.Tensor) else v
                      for v in leaves]
            a, k = tree_unflatten(leaves, spec)
            try:
                torch.manual_seed(1)
                with recorder:
                    results = [t for t in tensors_of(op.op(*a, **k)) if t.requires_grad]
                    if results:
                        torch.autograd.backward(results, [weights(t) for t in results])
            except Exception:
                continue
    return recorder.calls


def check(only: list[str], samples: int, device: str) -> Found:
    result = Found()
    found = list(operations(only, samples, device))
    for name, cases in record(found, samples).items():
        for case in cases.values():
            result.compare("aten::" + name, case, randomness="different")
        print(".", end="", file=sys.stderr, flush=True)
    for name, op, inputs in found:
        for sample in inputs:
            function, arguments = of_sample(op, sample)
            result.compare(name, Case(function, arguments))
            for kind, forward, there in (("vjp", False, op.supports_autograd), ("jvp", True, op.supports_forward_ad)):
                if there:
                    if not (forward and op.name in TWO_FORMULAS):
                        result.compare_to_autograd(f"{kind} of {name}", function, arguments, forward)
                    result.compare(f"{kind} of {name}", Case(transformed(function, forward), arguments), (0,))
        print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--samples", type=int, default=6)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    with librepdl.torch.reproducible():
        found = check(options.only, options.samples, options.device)
    print(found.texts())
    print(f"PyTorch {torch.__version__}: " + ", ".join(f"{what} {n}" for what, n in found.count.items()) + f", wrong {len(found.wrong)}")
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
