"""Second derivatives of PyTorch's own samples of every operation (OpInfo), with librepdl enabled.

    python second.py [--dtype float32|float64|all]... [--only NAME]... [--json FILE]

Of each operation that PyTorch tests with gradgradcheck: the gradients of its inputs, and the gradients of a sum of these to the inputs and to what
came in (reverse mode over reverse mode), and what the gradients change by along a direction (forward mode over reverse mode, which
torch.func.hessian takes). One is covered if all of its samples run; refused if one raises librepdl's NotImplementedError.
Of a covered one, each of these is an error:
  - a result farther from plain PyTorch's in float64 than opinfo's BOUND;
  - other bits of two threads.
In float32, if all operations are looked at, so is a row of policy.def that is a gradient (NAME_backward) and was not called, unless NOT_REACHED
says why.
"""

import argparse
import collections
import json
import pathlib
import re
import sys
import warnings
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._python_dispatch import TorchDispatchMode

import librepdl.torch
from opinfo import BOUND, FLOAT64_IS_OFF, RANDOM, converted, far, fresh, same_bits, samples_of, tensors

warnings.filterwarnings("ignore")

FORMATS = {"float32": torch.float32, "float64": torch.float64}
POLICY = pathlib.Path(librepdl.torch.__file__).parent / "src" / "policy.def"
#: Gradients that no second derivative of OpInfo's samples calls, and why.
NOT_REACHED = {
    **dict.fromkeys(["silu_backward", "mish_backward", "native_group_norm_backward", "_fused_rms_norm_backward"],
                    "autograd has another formula where gradients are differentiated again"),
    **dict.fromkeys(["hardsigmoid_backward", "_embedding_bag_dense_backward", "_embedding_bag_per_sample_weights_backward", "multi_margin_loss_backward",
                     "multilabel_margin_loss_backward", "_segment_reduce_backward", "_cdist_backward", "_pdist_backward",
                     "_ctc_loss_backward"], "PyTorch has no second derivative"),
    "avg_pool3d_backward": "of three dimensions",
}


class Called(TorchDispatchMode):
    """The names of aten's operations that are called in it."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.names.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def gradients_of_policy() -> set[str]:
    rows = re.findall(r'^REPDL_(?:MAP|FORMULA)\([^"]*"(\w+)', POLICY.read_text(), flags=re.MULTILINE)
    return {name for name in rows if re.search(r"_backward(_data)?$", name)}


def weights(like: list[torch.Tensor], dtype: torch.dtype, start: float, requires: bool) -> list[torch.Tensor]:
    """No round numbers, the same in every type."""
    with librepdl.torch.exempt():
        found = [torch.linspace(start, start + 1, t.numel(), dtype=torch.float64).to(dtype).to(t).reshape(t.shape) for t in like]
    return [t.requires_grad_(requires) for t in found]


def reverse(op: Any, sample: Any, dtype: torch.dtype, wide: bool = False) -> list[torch.Tensor] | None:
    """First gradients and second ones; None if nothing is to have any."""
    arguments = fresh((sample.input, list(sample.args), sample.kwargs), True, dtype if wide else None)
    leaves = [t for t in tensors(arguments) if t.requires_grad and t.is_leaf]
    torch.manual_seed(1)
    raw = op.op(arguments[0], *arguments[1], **arguments[2])
    result = sample.output_process_fn_grad(raw) if sample.output_process_fn_grad else raw
    outputs = [t for t in tensors(result) if t.is_floating_point() and t.requires_grad]
    if not outputs or any(t.is_complex() for t in leaves):
        return None
    came_in = weights(outputs, dtype, 0.5, True)
    first = [t for t in torch.autograd.grad(outputs, leaves, came_in, create_graph=True, allow_unused=True) if t is not None]
    again = [t for t in first if t.requires_grad]
    if not again:
        return None
    second = torch.autograd.grad(again, [*leaves, *came_in], weights(again, dtype, -0.7, False), allow_unused=True)
    return [t.detach() for t in first] + [t for t in second if t is not None]


def forward(op: Any, sample: Any, dtype: torch.dtype, wide: bool = False) -> list[torch.Tensor] | None:
    """How the gradients change along a direction of inputs and of what comes in: forward mode over reverse mode."""
    def outputs_of(arguments: Any) -> list[torch.Tensor]:
        torch.manual_seed(1)
        raw = op.op(arguments[0], *arguments[1], **arguments[2])
        result = sample.output_process_fn_grad(raw) if sample.output_process_fn_grad else raw
        return [t for t in tensors(result) if t.is_floating_point() and t.requires_grad]

    arguments = fresh((sample.input, list(sample.args), sample.kwargs), True, dtype if wide else None)
    leaves = [t for t in tensors(arguments) if t.requires_grad and t.is_leaf]
    if any(t.is_complex() for t in leaves):
        return None
    with forward_ad.dual_level():
        duals = {id(t): forward_ad.make_dual(t, along) for t, along in zip(leaves, weights(leaves, dtype, -0.3, False))}
        outputs = outputs_of(converted(arguments, lambda v: duals.get(id(v), v)))
        if not outputs:
            return None
        plain = [forward_ad.unpack_dual(t).primal for t in outputs]
        came_in = [forward_ad.make_dual(g, along) for g, along in zip(weights(plain, dtype, 0.5, False), weights(plain, dtype, 0.9, False))]
        first = torch.autograd.grad(outputs, leaves, came_in, create_graph=True, allow_unused=True)
        tangents = [forward_ad.unpack_dual(t).tangent for t in first if t is not None]
        return [t.detach().clone() for t in tangents if t is not None]


class Checked:
    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self.refused: dict[str, str] = {}
        self.wrong: dict[str, str] = {}
        self.covered: list[str] = []
        self.comparisons: collections.Counter[str] = collections.Counter()
        self.called: set[str] = set()

    def total(self) -> int:
        return len(self.covered) + len(self.refused) + len(self.wrong)

    def all(self, only: list[str]) -> None:
        plain = {}
        for op in op_db:
            name = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
            if self.dtype in op.dtypes and op.supports_autograd and op.supports_gradgrad and (not only or op.name in only or name in only):
                plain[name] = (op, self.plain(op))
        with librepdl.torch.reproducible():
            for name, (op, samples) in plain.items():
                if not samples:
                    continue
                try:
                    problem = self.one(op, samples)
                except NotImplementedError as e:
                    if "librepdl" not in str(e) and "not reproducible yet" not in str(e):
                        self.wrong[name] = f"NotImplementedError: {e}"
                    else:
                        self.refused[name] = str(e).splitlines()[0]
                    continue
                if problem is None:
                    self.covered.append(name)
                else:
                    self.wrong[name] = problem

    def plain(self, op: Any) -> list[tuple[int, Any, Any, Any, Any]]:
        """The samples that plain PyTorch takes, with what it makes of them in this type and in float64."""
        torch.manual_seed(0)
        found = []
        for number, sample in samples_of(op, self.dtype, True):
            for way in (reverse, forward) if op.supports_fwgrad_bwgrad else (reverse,):
                try:
                    in_type = way(op, sample, self.dtype)
                    in_float64 = way(op, sample, self.dtype, wide=True)
                except Exception:
                    continue
                if in_type is not None and in_float64 is not None:
                    found.append((number, way, sample, in_type, in_float64))
        return found

    def one(self, op: Any, samples: list[tuple[int, Any, Any, Any, Any]]) -> str | None:
        for number, call, sample, in_type, in_float64 in samples:
            where = f"sample {number}, {call.__name__}: "
            try:
                ours = call(op, sample, self.dtype)
                torch.set_num_threads(2)
                again = call(op, sample, self.dtype)
                torch.set_num_threads(1)
                if call is reverse:
                    with Called() as called:  # where some of PyTorch's formulas are others: prod's
                        reverse(op, sample, self.dtype)
                    self.called |= called.names
            except NotImplementedError:
                raise
            except Exception as e:
                return where + f"{type(e).__name__}: {e}".splitlines()[0]
            if ours is None or again is None:  # independent of the inputs; in plain PyTorch that may be zeros
                if any(bool(t.any()) for t in in_float64):
                    return where + "nothing to differentiate"
                continue
            self.comparisons["threads"] += 1
            if (problem := same_bits(ours, again)) is not None:
                return where + f"two threads: {problem}"
            if op.name in RANDOM:
                continue
            self.comparisons["float64"] += 1
            with librepdl.torch.exempt():
                narrowest = max((t.dtype for t in tensors((sample.input, list(sample.args), sample.kwargs)) if t.dtype in BOUND), key=BOUND.__getitem__)
                bound = max(BOUND[narrowest], FLOAT64_IS_OFF.get(op.name, 0))
                problem = far(ours, in_float64, bound)
                if problem is not None and far(in_type, in_float64, bound) is not None:
                    # Plain PyTorch is off in this type, too: float64 goes elsewhere, or digits cancel, in cov at most four times as many.
                    problem = far(ours, in_type, bound) and far(ours, in_float64, 4 * bound)
            if problem is not None:
                return where + problem
        return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", action="append", choices=[*FORMATS, "all"])
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    wanted = options.dtype or ["float32"]
    found = {}
    for name, dtype in FORMATS.items():
        if name in wanted or "all" in wanted:
            c = found[name] = Checked(dtype)
            c.all(options.only)
            for op, why in sorted(c.wrong.items()):
                print(f"WRONG    {op}: {why}")
            for op, why in sorted(c.refused.items()):
                print(f"refused  {op}: {why}")
            print(f"PyTorch {torch.__version__}: second derivatives of {c.total()} OpInfos of {name}: {len(c.covered)} covered, "
                  f"{len(c.refused)} refused by name, {len(c.wrong)} wrong; compared: "
                  + ", ".join(f"{what} {count}" for what, count in c.comparisons.items()))
    if options.json:
        with open(options.json, "w") as f:
            json.dump({name: {"covered": c.covered, "refused": c.refused, "wrong": c.wrong} for name, c in found.items()}, f, indent=1)
    if any(c.wrong for c in found.values()):
        return 1
    if "float32" not in found or options.only:
        return 0
    missing = sorted(gradients_of_policy() - found["float32"].called - NOT_REACHED.keys())
    for name in missing:
        print(f"{name}: no sample's second derivative calls it")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
