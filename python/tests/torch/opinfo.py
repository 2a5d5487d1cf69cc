"""PyTorch's own samples of every operation (OpInfo), forward and backward, with librepdl enabled.

    python opinfo.py [--dtype TYPE|all]... [--device cuda] [--only NAME]... [--json FILE]
              [--readme FILE] [--refused FILE] [--write]

In each type (float32 if none is given) the operations are those of which plain PyTorch takes a sample. One is covered if all of its samples
run; refused if one raises librepdl's NotImplementedError. Of a covered one, each of these is an error:
  - a result or gradient farther from plain PyTorch's in float64 than BOUND allows;
  - other bits of the in-place or out= variant than of the functional one, of tensors that are not contiguous, of two threads, or, with
    --device cuda, than on the CPU;
  - an error input (one that plain PyTorch refuses) that is accepted, or gives an exception of another type that is no refusal
    (only in float32).
"""

import argparse
import collections
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db

import librepdl.torch
from librepdl.torch import _coverage as coverage

warnings.filterwarnings("ignore")

#: Of |result - float64's|, over the greatest |float64's| of the tensor and 1: some composites lose digits by cancellation, so this
#: looks for wrong formulas; that each operation is right to the last bit, librepdl's own tests show. Some 900 times the type's eps (cov in
#: float32 needs half of that); in 16 bits, where that much would say nothing, 8 times.
BOUND = {torch.float32: 1e-4, torch.float64: 2e-13, torch.bfloat16: 2**-4, torch.float16: 2**-7}
#: How far plain PyTorch's own float64 is from the truth: hardsigmoid's gradient is multiplied by 1/6 rounded to float32; that of logcumsumexp is
#: made of exponentials of rounded differences.
FLOAT64_IS_OFF = {"nn.functional.hardsigmoid": 1e-8, "logcumsumexp": 1e-11}
#: Results that are not functions of the values: random numbers, uninitialised memory, and indices or shapes that float64 changes.
RANDOM = {"bernoulli", "nn.functional.multi_head_attention_forward", "cauchy", "geometric", "log_normal", "normal", "rand_like", "randn", "randn_like", "randint", "randint_like", "multinomial", "uniform", "exponential",
          "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.alpha_dropout",
          "nn.functional.feature_alpha_dropout", "nn.functional.scaled_dot_product_attention", "nn.functional.rrelu"}
UNINITIALISED = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted", "resize_", "resize_as_"}
#: Where the contract differs from PyTorch (docs/pytorch-formulas.md).
DIFFERENT = {name: "the first NaN wins; in plain PyTorch it depends on the tensor's address"
             for name in ("masked.argmax", "masked.argmin")} | {"mode": "the last place of equal values; plain PyTorch sorts them in any order"}


#: Elements of a sample of which one is enough: grid_sampler_3d's have millions, all others fewer.
LARGE = 1 << 18


def samples_of(op: Any, dtype: torch.dtype, requires_grad: bool) -> Iterator[tuple[int, Any]]:
    """Numbered; of large ones the first."""
    has_large = False
    for number, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=requires_grad)):
        if sum(t.numel() for t in tensors([sample.input, sample.args, sample.kwargs])) >= LARGE:
            if has_large:
                continue
            has_large = True
        yield number, sample


def tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors(item)


def converted(value: Any, change: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return type(value)(converted(v, change) for v in value) if type(value) in (list, tuple) else value
    if isinstance(value, dict):
        return {k: converted(v, change) for k, v in value.items()}
    return change(value) if isinstance(value, torch.dtype) else value


def fresh(value: Any, requires: bool, widened: torch.dtype | None = None, device: str | None = None) -> Any:
    """A copy whose gradients are its own; what is of the type `widened` is in float64."""
    def change(t: Any) -> Any:
        if isinstance(t, torch.dtype):
            return torch.float64 if t == widened else t
        needed = requires and t.requires_grad
        with torch.no_grad():
            u = t.detach()
            if device is not None:
                u = u.to(device)
            u = u.to(torch.float64, copy=True) if u.dtype == widened else u.clone() if device is None else u
        return u.requires_grad_(needed)
    return converted(value, change)


def call(op: Any, sample: Any, backward: bool, dtype: torch.dtype, wide: bool = False, device: str | None = None) -> list[torch.Tensor]:
    """The results of a sample of this type, and the gradients of all inputs; if wide, of the same numbers in float64."""
    arguments = fresh((sample.input, list(sample.args), sample.kwargs), backward, dtype if wide else None, device)
    if device is not None and "device" in arguments[2]:
        arguments[2]["device"] = device
    torch.manual_seed(1)
    raw = op.op(arguments[0], *arguments[1], **arguments[2])
    result = sample.output_process_fn_grad(raw) if sample.output_process_fn_grad else raw
    found = [t.detach() for t in tensors(raw)]
    if backward:
        outputs = [t for t in tensors(result) if t.is_floating_point() and t.requires_grad]
        if outputs:
            with librepdl.torch.exempt():  # gradients that are no round numbers, the same if wide
                grads = [torch.linspace(0.5, 1.5, t.numel(), dtype=torch.float64).to(dtype).to(t).reshape(t.shape) for t in outputs]
            torch.autograd.backward(outputs, grads)
        found += [t.grad for t in tensors(arguments) if t.requires_grad and t.is_leaf and t.grad is not None]
    return found


def real(t: torch.Tensor) -> torch.Tensor:
    """On the CPU, complex numbers as pairs."""
    return torch.view_as_real(t.cpu().resolve_conj()) if t.is_complex() else t.cpu()


def same_bits(a: list[torch.Tensor], b: list[torch.Tensor]) -> str | None:
    if len(a) != len(b):
        return f"{len(a)} tensors against {len(b)}"
    for i, (x, y) in enumerate(zip(a, b)):
        if x.shape != y.shape or x.dtype != y.dtype:
            return f"tensor {i}: {x.dtype} {list(x.shape)} against {y.dtype} {list(y.shape)}"
        with librepdl.torch.exempt():
            x, y = real(x), real(y)
            if x.is_floating_point():
                integer = {2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]
                x, y = x.contiguous().view(integer), y.contiguous().view(integer)
            equal = torch.equal(x, y)
        if not equal:
            return f"tensor {i}: bits differ"
    return None


def far(ours: list[torch.Tensor], reference: list[torch.Tensor], bound: float) -> str | None:
    if len(ours) != len(reference):
        return f"{len(ours)} tensors, in float64 {len(reference)}"
    for i, (x, y) in enumerate(zip(ours, reference)):
        if x.shape != y.shape:
            return f"tensor {i}: shape {list(x.shape)}, in float64 {list(y.shape)}"
        x, y = real(x), real(y)
        if not x.is_floating_point() or x.numel() == 0:
            continue
        largest = torch.finfo(x.dtype).max
        x, y = x.double(), y.double()
        finite = x.isfinite() & y.isfinite()
        same = (x == y) | (x.isnan() & y.isnan())
        # What overflows in x's type does not in float64.
        over = x.isinf() & (y.abs() > largest)
        if not bool((finite | same | over).all()):
            return f"tensor {i}: {x[~(finite | same | over)][0]} against {y[~(finite | same | over)][0]}"
        if finite.any():
            error = float((x - y)[finite].abs().max()) / max(1.0, float(y[finite].abs().max()))
            if error > bound:
                return f"tensor {i}: {error:.2e} away"
    return None


class Plain:
    """What plain PyTorch makes of the samples of a type that it takes, and of them in float64, or None; the inputs that it refuses."""

    def __init__(self, op: Any, dtype: torch.dtype) -> None:
        self.op = op
        self.backward = op.supports_autograd and dtype in op.backward_dtypes
        torch.manual_seed(0)
        self.samples: list[tuple[int, Any, Any, Any]] = []
        for number, sample in samples_of(op, dtype, self.backward):
            try:
                in_type = call(op, sample, self.backward, dtype)
            except Exception:
                continue
            try:
                in_float64: Any = call(op, sample, self.backward, dtype, wide=True)
            except Exception:  # nothing to compare with
                in_float64 = None
            self.samples.append((number, sample, in_type, in_float64))
        self.errors = []
        if op.error_inputs_func is not None and dtype == torch.float32:
            for error in op.error_inputs("cpu"):
                s = error.sample_input
                try:
                    op(s.input, *s.args, **s.kwargs)
                except Exception as e:
                    self.errors.append((error, type(e)))


class Checked:
    def __init__(self, device: str, dtype: torch.dtype) -> None:
        self.device, self.dtype = device, dtype
        self.refused: dict[str, str] = {}
        self.wrong: dict[str, str] = {}
        self.covered: list[str] = []
        self.comparisons: collections.Counter[str] = collections.Counter()

    def total(self) -> int:
        return len(self.covered) + len(self.refused) + len(self.wrong)

    def share(self) -> float:
        return 100 * len(self.covered) / max(self.total(), 1)

    def say(self, type_name: str, refused: bool) -> None:
        print(file=sys.stderr)
        for name, why in sorted(self.wrong.items()):
            print(f"WRONG    {name}: {why}")
        for name, why in sorted(self.refused.items()) if refused else []:
            print(f"refused  {name}: {why}")
        print(f"PyTorch {torch.__version__}, {self.device}: of {self.total()} OpInfos of {type_name} {len(self.covered)} covered "
              f"({self.share():.1f} %), {len(self.refused)} refused by name, {len(self.wrong)} wrong; compared: "
              + ", ".join(f"{what} {count}" for what, count in self.comparisons.items()))

    def all(self, only: list[str]) -> None:
        # What plain PyTorch makes of everything first: enabling and disabling take a tenth of a second.
        plain = {}
        for op in op_db:
            name = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
            if self.dtype in op.dtypes and (not only or op.name in only or name in only):
                plain[name] = Plain(op, self.dtype)
                print(".", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        with librepdl.torch.reproducible():
            for name, p in plain.items():
                if not p.samples:
                    continue
                try:
                    problem = self.one(p)
                except NotImplementedError as e:
                    if "not reproducible yet" not in str(e) and "librepdl" not in str(e):
                        self.wrong[name] = f"NotImplementedError: {e}"
                    else:
                        self.refused[name] = str(e).splitlines()[0]
                    continue
                if problem is None:
                    self.covered.append(name)
                else:
                    self.wrong[name] = problem
                print("." if problem is None else "!", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)

    def one(self, plain: "Plain") -> str | None:
        op, backward = plain.op, plain.backward
        for number, sample, in_type, in_float64 in plain.samples:
            where = f"sample {number}: "
            try:
                ours = call(op, sample, backward, self.dtype)
            except NotImplementedError:
                raise
            except Exception as e:
                return where + f"{type(e).__name__}: {e}".splitlines()[0]
            if op.name in UNINITIALISED:
                continue
            if (problem := self.variants(op, sample, backward, ours)) is not None:
                return where + problem
            if in_float64 is not None and op.name not in RANDOM and op.name not in DIFFERENT:
                self.comparisons["float64"] += 1
                with librepdl.torch.exempt():
                    bound = max(BOUND[self.dtype], FLOAT64_IS_OFF.get(op.name, 0))
                    problem = far(ours, in_float64, bound)
                    if problem is not None and far(in_type, in_float64, bound) is not None:
                        problem = far(ours, in_type, bound)  # float64 goes elsewhere, in plain PyTorch too: an index, an overflow
                if problem is not None:
                    return where + problem
        for error, kind in plain.errors:
            s = error.sample_input
            try:
                op(s.input, *s.args, **s.kwargs)
            except Exception as e:
                self.comparisons["error inputs"] += 1
                if type(e) not in (kind, NotImplementedError):
                    return f"an error input: {type(e).__name__}: {e}, in plain PyTorch {kind.__name__}".splitlines()[0]
                continue
            return f"an error input is accepted: {error.error_regex}"
        return None

    def variants(self, op: Any, sample: Any, backward: bool, ours: list[torch.Tensor]) -> str | None:
        torch.set_num_threads(2)
        other = same_bits(ours, call(op, sample, backward, self.dtype))
        torch.set_num_threads(1)
        self.comparisons["threads"] += 1
        if other is not None:
            return f"two threads: {other}"
        strided = sample.noncontiguous()
        try:
            other = same_bits(ours, call(op, strided, backward, self.dtype))
            self.comparisons["strides"] += 1
        except RuntimeError as e:
            other = None if "view" in str(e) or "contiguous" in str(e) else str(e)
        if other is not None:
            return f"not contiguous: {other}"
        with torch.no_grad():
            forward = call(op, sample, False, self.dtype)
            inplace = op.get_inplace()
            if inplace is not None and op.name not in RANDOM and not sample.broadcasts_input and len(forward) == 1 and isinstance(sample.input, torch.Tensor) \
                    and forward[0].dtype == sample.input.dtype and forward[0].shape == sample.input.shape:
                arguments = fresh((sample.input, list(sample.args), sample.kwargs), False)
                torch.manual_seed(1)
                try:
                    changed = inplace(arguments[0], *arguments[1], **arguments[2])
                except NotImplementedError:
                    raise
                except Exception as e:
                    return f"in place: {e}"
                self.comparisons["in place"] += 1
                if (problem := same_bits([changed], forward)) is not None:
                    return f"in place: {problem}"
            if op.supports_out and op.name not in RANDOM and len(forward) >= 1:
                arguments = fresh((sample.input, list(sample.args), sample.kwargs), False)
                outs = [torch.empty_like(t) for t in forward]
                for o in outs:
                    if o.is_floating_point():
                        o.fill_(float("nan"))
                torch.manual_seed(1)
                try:
                    op.op(arguments[0], *arguments[1], **arguments[2], out=outs[0] if len(outs) == 1 else tuple(outs))
                except NotImplementedError:
                    raise
                except (TypeError, RuntimeError) as e:
                    if "out" not in str(e) and "argument" not in str(e):
                        return f"out=: {e}"
                else:
                    self.comparisons["out="] += 1
                    if (problem := same_bits(outs, forward)) is not None:
                        return f"out=: {problem}"
        if self.device != "cpu" and op.name not in UNINITIALISED:
            try:
                there = call(op, sample, backward, self.dtype, device=self.device)
            except NotImplementedError:
                raise
            except Exception as e:
                try:
                    with librepdl.torch.exempt():
                        call(op, sample, backward, self.dtype, device=self.device)
                except Exception:
                    return None  # plain PyTorch does not take it there: an argument has to stay on the CPU
                return f"{self.device}: {e}".splitlines()[0]
            self.comparisons["devices"] += 1
            if (problem := same_bits(ours, there)) is not None:
                return f"{self.device}: {problem}"
        return None


def main() -> int:
    formats = {str(dtype).removeprefix("torch."): dtype for dtype in BOUND}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", action="append", choices=[*formats, "all"], help="a type to check in, float32 if none is given")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--json", help="write the names to this file")
    parser.add_argument("--readme", metavar="FILE", help="fail unless the rows between opinfo's markers are what was found in these types")
    parser.add_argument("--refused", metavar="FILE", help="fail unless the table between the file's markers is what is refused in float32")
    parser.add_argument("--write", action="store_true", help="write those rows, that table")
    options = parser.parse_args()
    torch.set_num_threads(1)
    wanted = options.dtype or ["float32"]
    found = {}
    for name, dtype in formats.items():
        if name in wanted or "all" in wanted:
            found[name] = Checked(options.device, dtype)
            found[name].all(options.only)
            found[name].say(name, bool(options.only))
    if options.json:
        with open(options.json, "w") as f:
            json.dump({name: {"covered": checked.covered, "refused": checked.refused, "wrong": checked.wrong}
                       for name, checked in found.items()}, f, indent=1)
    if any(checked.wrong for checked in found.values()):
        return 1
    status = 0
    if options.readme:
        status |= readme(options.readme, options.write, found)
    if options.refused:
        status |= between_marks(options.refused, "refused", lambda _: table_of_refused(found["float32"].refused), options.write)
    return status


def between_marks(path: str, name: str, section: Callable[[str], str], write: bool) -> int:
    """What is between the file's markers is section(what is there); writes it, or says what differs."""
    with open(path) as f:
        text = f.read()
    before, begin, rest = text.partition(f"<!-- {name}:begin -->\n")
    old, end, after = rest.partition(f"<!-- {name}:end -->")
    assert begin and end, f"{path} has no markers of {name}"
    new = section(old)
    if write:
        with open(path, "w") as f:
            f.write(before + begin + new + end + after)
    elif new != old:
        print(f"{path}: expected\n{new}run this with --write")
        return 1
    return 0


def table_of_refused(refused: dict[str, str]) -> str:
    """A row for each operation that refuses, why, and what to use instead; many of one family share a row."""
    samples = collections.defaultdict(set)
    instead = {}
    for name, text in refused.items():
        operation, why = re.match(r"(?:aten::)?(\w+(?:::\w+)?)\S* .*?: not reproducible yet(?: \((.*?)\))?(?:;|$)", text).groups()  # type: ignore[union-attr]
        what = f"`{operation}`" + (f" {why}" if why else "")
        samples[what].add(name)
        instead[what] = coverage.way_out(text) or ""
    rows, families = [], collections.defaultdict(list)
    for what, names in samples.items():
        family = re.match(r"`(linalg|fft|special)_", what)
        if family and not instead[what] and names == {what.strip("`").replace("_", ".", 1)}:
            families[family[1]].append(what)
        else:
            rows.append(f"| {what} | {', '.join(sorted(names - {what.strip('`')}))} | {instead[what] and '`' + instead[what] + '`'} |\n")
    for family, whats in families.items():
        rows.append(f"| {', '.join(sorted(whats))} | `{family}.*` of these names | |\n")
    return "| refused | samples that need it | instead |\n|---|---|---|\n" + "".join(sorted(rows))


def readme(path: str, write: bool, found: dict[str, Checked]) -> int:
    """Writes or compares the rows of these types, and PyTorch's version."""
    def section(old: str) -> str:
        new = re.sub(r"PyTorch [\d.]+", f"PyTorch {torch.__version__.split('+')[0]}", old)
        for name, checked in found.items():
            row = f"| {name} | {checked.total()} | {len(checked.covered)} | {checked.share():.0f} % |"
            new, rows = re.subn(rf"^\| {name} \|.*$", row, new, flags=re.MULTILINE)
            assert rows == 1, f"{path}: expected a row for {name}, found {rows}"
        return new
    return between_marks(path, "opinfo", section, write)


if __name__ == "__main__":
    sys.exit(main())
