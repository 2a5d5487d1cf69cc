"""The kernels in Python, where there is no C++ compiler: what src/register.cpp does, with the same bits and some microseconds more for
each call."""

import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch._C import _dispatch_has_computed_kernel_for_dispatch_key as has_computed
from torch._C import _dispatch_has_kernel_for_dispatch_key as has_kernel
from torch._C import _functorch as functorch
from torch.utils._pytree import tree_flatten, tree_unflatten

from librepdl.torch import _formulas, _policy
from librepdl.torch._elementwise import BITS, Refuse, common_type, elementwise, rounded

WHY = "without a compiler"
_COMPOSITES = ("CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional", "CompositeImplicitAutograd")
_OTHER_STORAGES = ("SparseCPU", "SparseCUDA", "SparseCsrCPU", "SparseCsrCUDA", "MkldnnCPU", "QuantizedCPU", "QuantizedCUDA",
                   "NestedTensorCPU", "NestedTensorCUDA")
_TRANSFORMS = ("FuncTorchBatched", "FuncTorchVmapMode", "FuncTorchDynamicLayerFrontMode")  # batching rules, random numbers, entry
# Of other libraries: what moves data between processes and computes nothing.
_MOVES = {"c10d::" + name for name in (
    "broadcast_", "allgather_", "_allgather_base_", "allgather_coalesced_", "allgather_into_tensor_coalesced_", "gather_", "scatter_",
    "alltoall_", "alltoall_base_", "send", "recv_", "recv_any_source_", "barrier", "monitored_barrier_")} | {
    "_c10d_functional::" + name for name in (
        "wait_tensor", "broadcast", "broadcast_", "all_gather_into_tensor", "all_gather_into_tensor_out",
        "all_gather_into_tensor_coalesced", "all_to_all_single")}

_Library: Any = torch.library.Library  # which PyTorch has not typed
_OPTIONS = ("dtype", "layout", "device", "pin_memory")


def _floats(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    for v in values:
        if isinstance(v, torch.Tensor):
            if v.is_floating_point() or v.is_complex():
                yield v
        elif isinstance(v, (list, tuple)):
            yield from _floats(v)


class _Schema:
    """A schema as one function's variant (signature_of in register.cpp)."""

    def __init__(self, schema: Any) -> None:
        self.all = schema.arguments
        self.name = schema.name + ("." + schema.overload_name if schema.overload_name else "")
        self.names = [a.name for a in self.all]
        base = schema.name

        def writes(a: Any) -> bool:
            return a.alias_info is not None and a.alias_info.is_write

        self.in_place = base.endswith("_") and not base.endswith("__") and bool(self.all) and writes(self.all[0])
        kept = [a for a in self.all if self.in_place or not (writes(a) and a.kwarg_only)]  # the others are out=
        self.count = len(kept)
        self.key = (base[:-1] if self.in_place else base) + "".join(f"|{a.type} {a.name}" for a in kept)
        self.row_key = self.key + ("!" if self.in_place else "")
        # Of a factory, its out= variant's key: without the four options of a new tensor.
        self.out_key = f"out|{base}" + "".join(f"|{a.type} {a.name}" for a in kept
                                               if not (a.name in _OPTIONS and str(a.type).startswith("Optional")))

    def arguments(self, args: tuple[Any, ...], options: dict[str, Any]) -> list[Any]:
        """All of them, in order: the dispatcher leaves out defaults."""
        return [*args, *(options[a.name] if a.name in options else a.default_value for a in self.all[len(args):])]

    def outputs(self, values: list[Any]) -> list[torch.Tensor]:
        """What is to be written, none of a functional variant."""
        return values[:1] if self.in_place else values[self.count:]


def _kernel(name: str, key: str) -> Any:
    """What is called now; its repr says which file registered it."""
    at: Any = torch._C._parse_dispatch_key(key)
    return torch._C._dispatch_get_computed_kernel_for_dispatch_key(name, at)


def _is_ours(name: str, key: str) -> bool:
    """Whether a kernel of this file is called; also where the operator is gone."""
    try:
        return __file__ in repr(_kernel(name, key))
    except RuntimeError:
        return True


class _Aten:
    """aten's own kernel at a key."""

    def __init__(self, schema: _Schema, key: str) -> None:
        self.name = schema.name
        self.slots = {i for i, a in enumerate(schema.all) if str(a.type) in ("Tensor", "Optional[Tensor]")}
        self.kernel = _kernel(self.name, key) if has_computed(self.name, key) else None

    def __call__(self, keys: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if self.kernel is None:
            raise NotImplementedError(f"{self.name}: PyTorch has no kernel of its own")
        numbers = [i for i, v in enumerate(args) if i in self.slots and isinstance(v, (bool, int, float, complex))]
        if numbers:  # which the dispatcher made of tensors
            dtype = common_type([v for i, v in enumerate(args) if i in self.slots and v is not None])
            args = tuple(torch.tensor(v, dtype=dtype) if i in numbers else v for i, v in enumerate(args))
        return self.kernel.call_boxed(keys, *args, **options)


class Fallback:
    """What _door.Door is, in Python."""

    kernels = "Python"

    def __init__(self, path: Callable[[int | None], str | None]) -> None:
        self._path = path  # of the module that is running, or that made a node of this number
        self._lock = threading.Lock()
        self._noted: Counter[str] = Counter()
        self._thread = threading.local()
        self._libraries: dict[str, Any] = {}
        self.disable()

    def enable(self, strict: bool) -> None:
        self._strict = strict
        if self._libraries:
            self.look()
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the dispatcher's, of kernels that are there already
            self._open()

    def disable(self) -> None:
        for library in self._libraries.values():
            library._destroy()
        self._libraries = {}
        self._placed: list[tuple[str, str]] = []
        self._looking = False
        self._counts: Counter[str] = Counter()
        self._changed: list[str] = []

    def exempt(self, on: bool) -> bool:
        before = self.is_exempt()
        self._thread.exempt = on
        return before

    def is_exempt(self) -> bool:
        return getattr(self._thread, "exempt", False)

    def look(self, name: str | None = None) -> None:
        """An operator was registered, or a library with operators: what is not aten's is refused from now on."""
        if not self._libraries or self._looking:
            return
        self._looking = True  # what is registered here comes here
        try:
            # Of one operator its schemas alone: PyTorch's own libraries register hundreds, one after the other.
            found = torch._C._jit_get_all_schemas() if name is None else torch._C._jit_get_schemas_for_operator(name.partition(".")[0])
            schemas = {s.name: s for s in map(_Schema, found) if not s.name.startswith("aten::") and name in (None, s.name)}
            known = set(torch._C._dispatch_get_all_op_names()) if schemas else set()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for schema in schemas.values():
                    if schema.name in known:
                        self._place_elsewhere(schema)
        finally:
            self._looking = False

    def refuse(self, what: str, why: str) -> None:
        """Refuses something of PyTorch's Python, as the kernels refuse an operation."""
        self._refuse(what, (), why)

    def status(self) -> list[tuple[str, str]]:
        lines = [("policy", _policy.version())]
        if not self._libraries:
            return lines
        lines += [("strict", str(int(self._strict))), *((key, str(n)) for key, n in self._counts.items())]
        lines += [("changed", line) for line in self._changed]
        lines += [("overridden", f"{name} ({key})") for name, key in self._placed
                  if not _is_ours(name, "CPU" if key in _COMPOSITES else key)]
        ours = {name for name, _ in self._placed}
        return lines + [("unseen", f"{name} ({key})") for name in torch._C._dispatch_get_all_op_names()
                        if not name.startswith("aten::") and name not in ours for key in self._to_refuse(name)]

    def noted(self) -> list[tuple[int, str]]:
        with self._lock:
            result = [(count, what) for what, count in sorted(self._noted.items())]
            self._noted.clear()
        return result

    def _refuse(self, name: str, values: Iterable[Any], why: str) -> None:
        t = next(_floats(values), None)
        text = name + ("" if t is None else f" ({str(t.dtype).removeprefix('torch.')}, {t.device.type})") + ": not reproducible yet"
        text += f" ({why})" if why else ""
        node = torch._C._current_autograd_node()
        path = self._path(None if node is None else node._sequence_nr())
        if node is not None:
            path = f"the backward pass, {node.name()}" + (f" of {path}" if path else "")
        text += f"; called by {path}" if path else ""
        with self._lock:
            self._noted[text] += 1
        if self._strict:
            raise NotImplementedError(text)

    # ---- which kernel stands where ----

    def _open(self) -> None:
        schemas = {s.name: s for s in map(_Schema, torch._C._jit_get_all_schemas())}
        table: dict[str, _policy.Row] = {}
        self._batched_by_aten = {"aten::" + name for name in _policy.batched()}
        for row in _policy.rows():
            for name in row.schema.split() if row.action == "PASS" else [row.name]:
                schema = schemas.get("aten::" + name)
                if schema is None:
                    self._counts["absent"] += 1
                elif row.action not in ("PASS", "REFUSE") and schema.names != row.arguments:
                    self._changed.append(f"{row.schema}: this version of PyTorch has other arguments")
                else:
                    table[schema.row_key] = row
                    if row.action == "PASS":
                        table.setdefault(schema.out_key, row)
        for name in torch._C._dispatch_get_all_op_names():
            if name in schemas:
                self._place(schemas[name], table)

    def _put(self, name: str, key: str, kernel: Callable[..., Any]) -> None:
        space, _, rest = name.partition("::")
        if space not in self._libraries:
            self._libraries[space] = _Library(space, "IMPL")
        self._libraries[space].impl(rest, kernel, key, with_keyset=True, allow_override=True)
        self._placed.append((name, key))

    @staticmethod
    def _to_refuse(name: str) -> list[str]:
        """Keys of another library's operator at which it has kernels, and we have none."""
        if name.partition("::")[0] in ("prim", "profiler", "debugprims", "_test"):
            return []
        keys = [key for key in _OTHER_STORAGES if has_kernel(name, key)]
        if name not in _MOVES:
            keys += [key for key in ("CPU", "CUDA") if has_computed(name, key) and any(has_kernel(name, k) for k in (key, *_COMPOSITES))]
        return [key for key in keys if __file__ not in repr(_kernel(name, key))]

    def _place_elsewhere(self, schema: _Schema) -> None:
        for key in self._to_refuse(schema.name):
            self._put(schema.name, key, self._refused(schema, key, "of a tensor that is not dense" if key in _OTHER_STORAGES else ""))

    def _place(self, schema: _Schema, table: dict[str, _policy.Row]) -> None:
        name = schema.name
        if not name.startswith("aten::"):
            return self._place_elsewhere(schema)
        for key in _OTHER_STORAGES:  # copy_ has one kernel for every storage
            if has_kernel(name, key) or (name == "aten::copy_" and has_computed(name, key)):
                self._put(name, key, self._refused(schema, key, "of a tensor that is not dense"))
        if name.startswith("aten::_foreach_"):
            if has_computed(name, "CPU") and has_kernel(name, "CUDA"):
                self._counts["replaced"] += 1
                self._put(name, "CUDA", self._each(schema))
            return
        found = (schema.row_key, schema.key, *([schema.out_key] if schema.count < len(schema.all) else []))
        row = next((table[key] for key in found if key in table), None)
        if row is not None and row.action != "REFUSE":
            self._place_batched(schema, row)
        if row is not None and row.action == "PASS":
            self._counts["passed"] += 1
        elif row is not None and row.action != "REFUSE" and (row.action == "MAP" or hasattr(_formulas, row.how)):
            self._counts["replaced"] += 1
            composite = row.action == "PIN" and has_kernel(name, _COMPOSITES[-1])
            for key in _COMPOSITES[-1:] if composite else ("CPU", "CUDA"):
                self._put(name, key, self._replaced(schema, row, "CPU" if composite else key))
        else:
            why = "" if row is None else row.how if row.action == "REFUSE" else WHY
            keys = [key for key in ("CPU", "CUDA") if has_computed(name, key) and any(has_kernel(name, k) for k in (key, *_COMPOSITES))]
            for key in keys:
                self._put(name, key, self._refused(schema, key, why))
            self._counts["refused"] += bool(keys)

    def _place_batched(self, schema: _Schema, row: _policy.Row) -> None:
        """At the keys of torch.func: composites that are pinned call what they call; a sample of torch.vmap is computed after the other.
        Random numbers, and operations that PyTorch computes by another formula within transforms, are refused there."""
        name, rule, numbers, front = schema.name, *_TRANSFORMS
        if schema.count < len(schema.all) or (row.action != "PASS" and row.action != "MAP" and not hasattr(_formulas, row.how)):
            return
        calls = has_kernel(name, _COMPOSITES[-1])
        pinned = row.action == "PIN" and calls
        if has_kernel(name, numbers) and (pinned or not calls):
            self._put(name, numbers, self._replaced(schema, row, numbers) if pinned
                      else self._refused(schema, numbers, f"{WHY} in torch.vmap"))
        if row.action == "PASS":
            return
        if has_kernel(name, front):
            self._put(name, front, self._replaced(schema, row, front) if pinned
                      else self._refused(schema, front, f"{WHY} in torch.func"))
        if name not in self._batched_by_aten:
            self._put(name, rule, self._replaced(schema, row, rule) if pinned else self._each_sample(schema, rule))

    # ---- the kernels ----

    def _refused(self, schema: _Schema, key: str, why: str) -> Callable[..., Any]:
        aten = _Aten(schema, key)

        def kernel(keys: Any, *args: Any, **options: Any) -> Any:
            return self._aten(aten, keys, args, options, why)

        return kernel

    def _aten(self, aten: _Aten, keys: Any, args: tuple[Any, ...], options: dict[str, Any], why: str) -> Any:
        """aten's own result, unless a floating-point number goes in or comes out."""
        if self.is_exempt():
            return aten(keys, args, options)
        values = [*args, *options.values()]
        if next(_floats(values), None) is not None:
            self._refuse(aten.name, values, why)
            return aten(keys, args, options)
        result = aten(keys, args, options)
        if next(_floats([result]), None) is not None:
            self._refuse(aten.name, [result], "")
        return result

    def _each_sample(self, schema: _Schema, key: str) -> Callable[..., Any]:
        """torch.vmap: each sample has the bits that it has alone."""
        aten = _Aten(schema, key)
        base, _, overload = schema.name.partition("::")[2].partition(".")
        call = getattr(getattr(torch.ops.aten, base), overload or "default")

        def kernel(keys: Any, *args: Any, **options: Any) -> Any:
            innermost = functorch.peek_interpreter_stack()  # what `layer` points to
            layer = functorch.CVmapInterpreterPtr(innermost)
            leaves, spec = tree_flatten((args, options))
            parts = [functorch._unwrap_batched(v, layer.level()) if isinstance(v, torch.Tensor) else (v, None) for v in leaves]
            if self.is_exempt() or layer.batchSize() == 0:
                return aten(keys, args, options)
            if schema.in_place and parts[0][1] is None and any(axis is not None for _, axis in parts):
                raise RuntimeError(f"vmap: {schema.name} cannot write the results of all samples into one tensor")
            with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.FuncTorchBatched)):
                if all(axis is None for _, axis in parts):
                    return call(*args, **options)
                results = []
                for i in range(layer.batchSize()):
                    one, named = tree_unflatten([v if axis is None else v.select(axis, i) for v, axis in parts], spec)
                    results.append(call(*one, **named))
                if schema.in_place:
                    return args[0]
                if isinstance(results[0], torch.Tensor):
                    return functorch._add_batch_dim(torch.stack(results), 0, layer.level())
                return tuple(None if r[0] is None else functorch._add_batch_dim(torch.stack(r), 0, layer.level())
                             for r in zip(*results, strict=True))

        return kernel

    def _each(self, schema: _Schema) -> Callable[..., Any]:
        """aten's kernels for lists on the CPU call the operation for each tensor: right on every device."""
        on_cpu, aten = _Aten(schema, "CPU"), _Aten(schema, "CUDA")

        def kernel(keys: Any, *args: Any, **options: Any) -> Any:
            return (aten if self.is_exempt() else on_cpu)(keys, args, options)

        return kernel

    def _replaced(self, schema: _Schema, row: _policy.Row, key: str) -> Callable[..., Any]:
        aten = _Aten(schema, key)
        compute = (_mapped if row.action == "MAP" else _formula)(schema, row)

        def kernel(keys: Any, *args: Any, **options: Any) -> Any:
            if self.is_exempt():
                return aten(keys, args, options)
            values = schema.arguments(args, options)
            try:
                results = compute(values)
            except _formulas.Leave:
                return aten(keys, args, options)
            except Refuse as e:
                if not e.args:
                    if self._strict and len({t.dtype for t in _floats(values)}) > 1:
                        self._raise_aten_error(schema, aten, keys, args, options)
                    return self._aten(aten, keys, args, options, "")
                self._refuse(aten.name, values, *e.args)
                return aten(keys, args, options)
            except (NotImplementedError, torch.OutOfMemoryError, torch.AcceleratorError) as e:
                if self._strict and (not isinstance(e, NotImplementedError) or "not reproducible yet" in str(e)):
                    raise
                error: Exception = e  # librepdl's
            except (ValueError, TypeError, IndexError, RuntimeError) as e:  # librepdl's, or a formula's
                if self._strict and type(e) is RuntimeError and "undecided" in str(e):
                    raise
                error = e
            else:
                return _written(results, schema, values, row.action == "MAP")
            self._raise_aten_error(schema, aten, keys, args, options)
            if not isinstance(error, (NotImplementedError, ValueError)):
                raise error
            self._refuse(aten.name, values, f"librepdl: {error}")
            return aten(keys, args, options)

        return kernel

    def _raise_aten_error(self, schema: _Schema, aten: _Aten, keys: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """What aten's own kernel says of the arguments; it writes to copies."""
        written = {a.name for a in schema.all if a.alias_info is not None and a.alias_info.is_write}

        def copied(name: str, value: Any) -> Any:
            if name not in written:
                return value
            return value.clone() if isinstance(value, torch.Tensor) else [t.clone() for t in value]

        args = tuple(copied(name, v) for name, v in zip(schema.names, args, strict=False))
        options = {name: copied(name, v) for name, v in options.items()}
        before = self.exempt(True)
        try:
            aten(keys, args, options)
        finally:
            self.exempt(before)


def _written(results: Any, schema: _Schema, values: list[Any], elementwise: bool) -> Any:
    """The results where the variant wants them."""
    into = schema.outputs(values)
    if not into or results is None:
        return results
    several = isinstance(results, tuple)
    for to, result in zip(into, results if several else (results,), strict=True):
        if to is result:
            continue
        if several and result.dtype != to.dtype:
            raise RuntimeError(f"Expected out tensor to have dtype {result.dtype}, but got {to.dtype} instead")
        if not torch.can_cast(result.dtype, to.dtype):
            raise RuntimeError(f"result type {result.dtype} can't be cast to the desired output type {to.dtype}")
        if to.shape != result.shape:  # an operand of TensorIterator keeps its shape
            if schema.in_place or (elementwise and any(to is v for v in values[:schema.count])):
                raise RuntimeError(f"output with shape {list(to.shape)} doesn't match the broadcast shape {list(result.shape)}")
            to.resize_(result.shape)
        to.copy_(result)
    return tuple(into) if several else into[0]


def _mapped(schema: _Schema, row: _policy.Row) -> Callable[[list[Any]], Any]:
    operation, names, attributes = row.call()
    operands = [schema.names.index(name) for name in names]
    # aten's Scalar is rounded to what PyTorch computes with, its float is exact.
    options = [(name, i, any(kind in str(schema.all[i].type) for kind in ("number", "Scalar")))
               for name, i in ((name, schema.names.index(argument)) for name, argument in attributes.items())]

    def compute(values: list[Any]) -> Any:
        inputs = [values[i] for i in operands]
        dtype = common_type(inputs)
        if "INTEGERS" in row.types and not dtype.is_floating_point and not dtype.is_complex:
            dtype = torch.get_default_dtype()
        if BITS.get(dtype) not in row.types:
            raise Refuse
        given = {name: rounded(values[i], dtype) if scalar else float(values[i]) for name, i, scalar in options
                 if values[i] is not None and not (name in ("alpha", "value") and values[i] == 1)}
        return elementwise(operation, inputs, dtype, given, next(iter(schema.outputs(values)), None), "NUMBERS" in row.types)

    return compute


def _formula(schema: _Schema, row: _policy.Row) -> Callable[[list[Any]], Any]:
    function = getattr(_formulas, row.how)
    count = len(row.arguments)

    def compute(values: list[Any]) -> Any:
        if "ANY" not in row.types:
            floats = list(_floats(values[:schema.count]))
            if (not floats and "INTEGERS" not in row.types) or any(BITS.get(t.dtype) not in row.types for t in floats):
                raise Refuse
        return function(*values[:count])

    return compute
