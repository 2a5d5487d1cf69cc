#!/usr/bin/env python3
"""Writes the Python package's functions and their documentation from the registry of operations.

    tools/gen_python.py REPDL            REPDL: the built program; writes the files below
    tools/gen_python.py --check REPDL    whether they are up to date

python/librepdl/_functions.py, python/librepdl/_draws.py, docs/python-api.md, and python/tests/typing_of_every_function.py, which
type checkers look at.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import textwrap

root = pathlib.Path(__file__).resolve().parent.parent

# The names that NumPy, SciPy (expit, log_expit) and the array API standard have for them.
aliases = {"abs": ["absolute", "fabs"], "sub": ["subtract"], "mul": ["multiply"], "div": ["divide", "true_divide"], "neg": ["negative"],
           "convert": ["astype"], "pow": ["power"], "remainder": ["mod"], "div_floor": ["floor_divide"], "round": ["rint"], "trunc": ["fix"],
           "sigmoid": ["expit"], "log_sigmoid": ["log_expit"], "atan2": ["arctan2"], "max": ["amax"], "min": ["amin"]}
# Parameters that have NumPy's names and defaults: (operation, attribute); the operation None is any.
parameter_names = {(None, "keepdim"): "keepdims", ("linspace", "end"): "stop", ("linspace", "count"): "num"}
parameter_defaults = {("linspace", "count"): "50"}
# A second name of an attribute, in any operation that has it.
second_names = {"correction": ("ddof", "NumPy's name of correction, which is 0 there when absent")}
# What asks for the outputs that are returned at will, where it is not "statistics".
result_flags = {"attention": "lse"}
# Families whose operands that may be absent, and options, are given by name.
named_options = {"elementwise", "attention"}
# What an operand is when it is absent.
operand_defaults = {("clip", "lo"): "-inf", ("clip", "hi"): "inf"}
# Parameters that are not those of the registry: what stands for its attributes, and how those are found.
signatures = {"arange": (
    ["start: float", "stop: float | None = None", "step: float = 1.0", "dtype: DType | None = None", "*", "count: int | None = None"],
    "first, count = _numpy.progression(start, stop, step, count)", {"start": "first"},
    ["start, stop: the numbers from start, as long as they are before stop; one number alone is stop, and start is 0",
     "step: not 0; of magnitude in [2^-200, 2^200], as start is if it is not 0",
     "count: how many numbers, in place of stop"])}
# More functions, after the operation that they call.
more_functions = {"stddev": [("std", '''
def std(x: A, axis: Ints | None = None, keepdims: bool = False, ddof: float = 0.0, *, out: A | None = None) -> A:
    """stddev with NumPy's name and default: the divisor is count - ddof. Why the bits are right: see stddev."""
    return stddev(x, axis, keepdims, ddof, out=out)
''')]}
heading = "Written by tools/gen_python.py from the registry of operations; do not edit."


def annotation(attribute):
    kind = {"boolean": "bool", "integer": "int", "real": "float", "text": "str", "integers": "Ints"}[attribute["kind"]]
    if attribute["name"] == "dtype":
        kind = "DType"
    optional = not attribute["required"] and attribute["default"] == ""
    return f"{kind} | None" if optional else kind


def default(attribute):
    text = attribute["default"]
    if text == "":
        return "None"
    if attribute["kind"] == "boolean":
        return text.capitalize()
    if attribute["kind"] == "text":
        return f'"{text}"'
    if attribute["kind"] == "integers":
        values = json.loads(text)
        return str(values[0]) if len(set(values)) == 1 else str(tuple(values))
    if attribute["kind"] == "real":
        return repr(float(text))  # or inf or nan, of which the module has the names
    return text


class Operation:
    """An operation of the registry as a Python function."""

    def __init__(self, index, row):
        self.index, self.row, self.name, self.family = index, row, row["name"], row["family"]
        self.grouped = self.family == "optimizer"
        # What draws: a generator's method. Attention may, and is told of a generator by its numbers.
        self.random = any(a["name"] == "stream" for a in row["attributes"]) and self.family != "attention"
        self.attributes = row["attributes"]
        self.state = ("seed", "stream") if self.random else ()
        self.signature = signatures.get(self.name)
        self.aliases = [] if self.random else aliases.get(self.name, [])
        self.more = more_functions.get(self.name, [])

    @property
    def several(self):
        """Whether a tuple of outputs is returned, always."""
        return not self.grouped and not self.statistics and len(self.row["outputs"]) > 1

    @property
    def returns(self):
        if self.several:
            first, *others = self.row["outputs"]
            return f"tuple[{', '.join([self.result] + [self.result if o['types'] == first['types'] else 'Any' for o in others])}]"
        if self.grouped:
            return "Any" if self.once else "None"
        return "Any" if self.statistics else self.result

    @property
    def once(self):
        """The names of outputs of a grouped operation that name no operand: they come once, and are returned."""
        return [o["name"] for o in self.row["outputs"] if o["name"] not in [i["name"] for i in self.row["inputs"]]]

    @property
    def result(self):
        """The type of the first result: that of the operands, or any."""
        out = self.row["outputs"][0]
        like = self.leading
        same = like and like["types"] == out["types"] and all(a["name"] != "dtype" for a in self.attributes)
        return "A" if same else "Any"

    @property
    def statistics(self):
        """The names of outputs that are returned, after the first, where they are asked for."""
        return [] if self.grouped else [o["name"] for o in self.row["outputs"] if o["optional"]]

    @property
    def flag(self):
        """The parameter that asks for these."""
        return result_flags.get(self.name, "statistics")

    @property
    def with_statistics(self):
        """The types of all results. One that has the same format in every call is of no array's type that is known."""
        others = [o for o in self.row["outputs"] if o["name"] in self.statistics]
        return [self.result, *("Any" if len(o["types"]) == 1 else self.result for o in others)]

    @property
    def leading(self):
        """The first operand, or of an elementwise operation the first that has the format of the call."""
        given = [i for i in self.row["inputs"] if not i["optional"] and (self.family != "elementwise" or i["types"] != ["bool"])]
        return given[0] if given else None

    def parameter_name(self, attribute):
        return parameter_names.get((self.name, attribute), parameter_names.get((None, attribute), attribute))

    def attribute_parameters(self, required):
        own = parameter_defaults
        return [(self.parameter_name(a["name"]), annotation(a), None if required else own.get((self.name, a["name"])) or default(a))
                for a in self.attributes
                if (a["required"] and (self.name, a["name"]) not in own) == required and a["name"] not in self.state]

    @property
    def parameters(self):
        """Pieces of a signature."""
        inputs = [i for i in self.row["inputs"] if not i["optional"]]
        optional = [i for i in self.row["inputs"] if i["optional"]]
        elementwise = self.family == "elementwise"
        if self.grouped:
            pieces = [f"{i['name']}: Sequence[Any]" for i in inputs]
            pieces += [f"{n}: {t}" for n, t, _ in self.attribute_parameters(True)]
            pieces += [f"{i['name']}: Sequence[Any] | None = None" for i in optional]
            pieces += ["*"] + [f"{n}: {t} = {d}" for n, t, d in self.attribute_parameters(False)]
            return pieces + (["first_step: bool = False"] if optional else [])
        # A scalar may stand for an operand; the first array says the format.
        array = "A | float" if elementwise and len(inputs) > 1 else "A"
        pieces = [f"{i['name']}: {array if i['types'] == self.leading['types'] else 'Any'}"
                  + (" | None = None" if (self.name, i["name"]) in operand_defaults else "") for i in inputs]
        if elementwise:
            pieces.append("/")
        if self.signature:
            return [*pieces, *self.signature[0], "out: Any | None = None", "like: Any = None"]
        pieces += [f"{n}: {t}" for n, t, _ in self.attribute_parameters(True)]
        by_name = self.family in named_options
        absent = [f"{i['name']}: {'A' if i['types'] == self.leading['types'] else 'Any'} | None = None" for i in optional]
        pieces += ["*", *absent] if by_name else absent
        pieces += [f"{n}: {t} = {d}" for n, t, d in self.attribute_parameters(False)]
        if not by_name:
            pieces.append("*")
        pieces += [f"{second_names[a['name']][0]}: float | None = None" for a in self.attributes if a["name"] in second_names]
        if self.statistics:
            one = self.with_statistics[-1]
            return [*pieces, f"out: {self.result} | Sequence[{'Any' if one == 'Any' else f'{one} | None'}] | None = None", f"{self.flag}: bool = False"]
        pieces.append("out: Sequence[Any] | None = None" if self.several else f"out: {self.result} | None = None")
        return pieces + ([] if inputs else ["like: Any = None"])

    @property
    def overloads(self):
        """What a function returns without statistics, and with them."""
        if not self.statistics:
            return []
        one, all_of = self.result, self.with_statistics
        each = "Any" if all_of[-1] == "Any" else f"{one} | None"
        lines = []
        for out, asked, returns in ((one, "Literal[False] = False", one),
                                    (f"Sequence[{each}]", "Literal[True]", f"tuple[{', '.join(all_of)}]")):
            pieces = [*self.parameters[:-2], f"out: {out} | None = None", f"{self.flag}: {asked}"]
            lines += ["@overload", *wrapped(f"def {self.name}(", pieces, f") -> {returns}: ...", ""), ""]
        return lines

    @property
    def operands(self):
        names = [i["name"] for i in self.row["inputs"]]
        given = [f"{operand_defaults[self.name, n]} if {n} is None else {n}" if (self.name, n) in operand_defaults else n for n in names]
        return ", ".join(given) + ("," if len(given) == 1 else "")

    def values(self, state):
        """The attributes as an expression; state: what stands for seed and stream."""
        if not self.attributes:
            return "None"
        state = {**state, **(self.signature[2] if self.signature else {})}
        names = [state.get(a["name"], self.parameter_name(a["name"])) for a in self.attributes]
        second = {a: f"{a} if {b} is None else {b}" for a, (b, _) in second_names.items()}
        names = [second.get(n, n) for n in names]
        return "(" + ", ".join(names) + ("," if len(names) == 1 else "") + ")"

    def has_own_format(self, operand):
        """Weights, biases and running statistics of norms."""
        own = operand["name"].startswith("running_") and len(operand["types"]) > 2
        return self.family == "norm" and (own or operand in self.row["inputs"] and operand["optional"])

    @property
    def docstring(self):
        row = self.row
        formula = row["formula"].replace("the ", "The ", 1) if row["formula"].startswith("the ") else row["formula"]
        for (operation, attribute), name in parameter_names.items():
            if operation == self.name:
                formula = re.sub(rf"\b{attribute}\b", name, formula)
        lines = [formula + ("" if row["proof"] == "no rounding happens" else ", rounded once") + ".", ""]
        outputs = [] if self.grouped else [o for o in row["outputs"] if o["name"] not in self.statistics]
        for operand in [*row["inputs"], *outputs]:
            types = "x's format or f32" if self.has_own_format(operand) else " ".join(operand["types"])
            lines.append(f"{operand['name']}: {types}{', or None' if operand['optional'] else ''}"
                         + (", a list of arrays" if self.grouped else ""))
        described = [a for a in self.attributes if a["name"] not in self.state]
        if self.signature:
            lines += self.signature[3]
            described = [a for a in described if a["name"] == "dtype"]
        for a in described:
            lines.append(f"{self.parameter_name(a['name'])}: {a['doc']}")
        lines += [": ".join(second_names[a["name"]]) for a in described if a["name"] in second_names]
        if self.statistics:
            names = ", ".join(self.statistics[:-1]) + " and " * (len(self.statistics) > 1) + self.statistics[-1]
            lines.append(f"{self.flag}: return {names} as well, in a tuple; out is then one too, of arrays or None")
        if self.several:
            lines.append("A tuple is returned; out is one, too, of arrays or None.")
        if self.grouped:
            written = ", ".join(o["name"] for o in row["outputs"] if o["name"] not in self.once)
            if written:
                lines.append(f"Updated in place: {written}.")
            if self.once:
                lines.append(f"Returned: {', '.join(self.once)}, an array of the same library.")
            if any(i["optional"] for i in row["inputs"]):
                lines.append("first_step: the optional state is written and not read")
        elif self.family == "elementwise" and len(row["inputs"]) > 1:
            lines.append("Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.")
        if any(operation == self.name for operation, _ in operand_defaults):
            lines.append("Without a bound, or with None, there is none on that side.")
        lines.append(f"Why the bits are right: {row['proof']}.")
        return lines

    def source(self, method=False):
        indent = "    " if method else ""
        pieces = (["self"] if method else []) + self.parameters
        text = self.overloads + wrapped(f"{indent}def {self.name}(", pieces, f") -> {self.returns}:", indent)
        body = indent + "    "
        text += [body + '"""' + self.docstring[0]]
        text += [(body + line).rstrip() for line in self.docstring[1:]]
        text += [body + '"""']
        if self.grouped:
            first = "first_step" if any(i["optional"] for i in self.row["inputs"]) else "False"
            returns = "return " if self.once else ""
            text.append(f"{body}{returns}_core.call_grouped({self.index}, ({self.operands}), {self.values({})}, {first})")
        elif method:
            advance = "False" if self.name.endswith("_backward") else "True"
            like = "None" if self.row["inputs"] else "like"
            values = self.values({"seed": "self.seed", "stream": "stream"})
            call = f"_core.call({self.index}, ({self.operands}), out, {values}, {like})"
            text.append(f"{body}with self._next({advance}) as stream:")
            text += returned(body + "    ", self.result, call)
        elif self.statistics:
            text.append(f"{body}return _call({self.index}, ({self.operands}), out, {self.values({})}, None, {self.flag})")
        else:
            if self.signature:
                text.append(f"{body}{self.signature[1]}")
            more = ", None, True" if self.several else "" if self.row["inputs"] else ", like"
            text += returned(body, self.returns, f"_call({self.index}, ({self.operands}), out, {self.values({})}{more})")
        return "\n".join(text)


def returned(indent, kind, call):
    if kind == "Any":
        return [f"{indent}return {call}"]
    return [f"{indent}result: {kind} = {call}", f"{indent}return result"]


def wrapped(begin, pieces, end, indent):
    line = begin + ", ".join(pieces) + end
    if len(line) <= 120:
        return [line]
    lines, current = [], begin
    more_indent = indent + ("        " if begin.lstrip().startswith("def") else "    ")
    for i, piece in enumerate(pieces):
        more = piece + (", " if i + 1 < len(pieces) else "")
        if len(current) + len(more.rstrip()) > 118:
            lines.append(current.rstrip())
            current = more_indent
        current += more
    return [*lines, current + end]


def module_head(text, *imports, typing="Any, TypeVar", modules="_core"):
    lines = [f'"""{text} {heading}"""', "", *imports, f"from typing import {typing}", "", f"from librepdl import {modules}",
             "from librepdl._typing import DType, Ints", "", ""]
    return "\n".join(lines)


type_variable = '# An array of any library.\nA = TypeVar("A")\n'


def functions(operations):
    plain = [o for o in operations if not o.random]
    names = [o.name for o in operations]
    public = sorted(name for o in plain for name in [o.name, *o.aliases, *(m[0] for m in o.more)])
    quoted = textwrap.fill(", ".join(f'"{n}"' for n in public), 116, initial_indent="    ", subsequent_indent="    ")
    order = textwrap.fill(", ".join(f'"{n}"' for n in names), 116, initial_indent="    ", subsequent_indent="    ")
    text = module_head("The functions of the package.", "from collections.abc import Sequence", "from math import inf, nan",
                       typing="Any, Literal, TypeVar, overload", modules="_core, _numpy")
    text += f"__all__ = [\n{quoted},\n]\n\n# In the order of the registry.\nORDER = (\n{order},\n)\n\n"
    # What errors call the parameters.
    said = {name if operation is None else f"{operation}.{name}": parameter for (operation, name), parameter in parameter_names.items()}
    said |= {f"{operation}.statistics": name for operation, name in result_flags.items()}
    said |= {name: f"{name} or {second}" for name, (second, _) in second_names.items()}
    said = ", ".join(f'"{name}": "{parameter}"' for name, parameter in said.items())
    text += f"{type_variable}\n_call = _core.call\n_core.name_parameters({{{said}}})\n"
    for o in plain:
        text += f"\n\n{o.source()}\n"
        if o.aliases:
            text += "\n\n" + "".join(f"{alias} = {o.name}\n" for alias in o.aliases)
        text += "".join(f"\n{source}" for _, source in o.more)
    return text


def draws(operations):
    text = module_head("The methods of random.Generator.", "from contextlib import AbstractContextManager")
    text += f"{type_variable}\n\nclass Draws:\n"
    text += '    """What a generator draws: each element depends on the seed, the stream and its index only."""\n\n'
    text += "    seed: int\n\n    def _next(self, advance: bool) -> AbstractContextManager[int]:\n        raise NotImplementedError\n"
    for o in operations:
        if o.random:
            text += f"\n{o.source(method=True)}\n"
    return text


def page(operations):
    text = f"# Functions of the Python package\n\n{heading}\n\n"
    text += "Arrays are those of NumPy, PyTorch or any library with DLPack; results are arrays of the caller's library, on its device, "
    text += "or written into `out`.\n"
    for random, title in ((False, "librepdl"), (True, "librepdl.random.Generator")):
        text += f"\n## {title}\n"
        for o in operations:
            if o.random != random:
                continue
            # Without the types.
            signature = ["=".join([head.split(":")[0], *default]) for head, *default in (p.split(" = ") for p in o.parameters)]
            text += f"\n### {o.name}({', '.join(signature)})\n\n"
            if o.aliases:
                text += "Also " + ", ".join(f"`{alias}`" for alias in o.aliases) + ". "
            lines = o.docstring
            text += lines[0].replace("*", "\\*").replace("|", "\\|") + "\n\n"
            text += "\n".join(f"- {line}" for line in lines[2:]) + "\n"
            for _, source in o.more:
                signature, docstring = source.strip().split("\n")[:2]
                signature = re.sub(r": [^=,)]+(?=[=,)])", "", signature.split(" -> ")[0].removeprefix("def ")).replace("= ", "=")
                text += f"\n### {signature.rstrip(':')}\n\n{docstring.strip().strip(chr(34))}\n"
    return text


def uses(operations):
    """Every function with every parameter; each result into a variable of its type."""
    text = f'"""For mypy and pyright. {heading}"""\n\nfrom typing import Any\n\nimport numpy as np\nfrom numpy.typing import NDArray\n\n'
    text += "import librepdl\n\nx: NDArray[np.float32] = np.ones((1, 1, 1, 1), np.float32)\ng = librepdl.random.Generator(1)\n"
    examples = {"bool": "True", "int": "1", "float": "0.5", "str": '"mean"', "Ints": "(1, 1)", "DType": "np.float32", "Any": "None"}
    for o in operations:
        given = []
        for piece in o.parameters:
            if ":" not in piece:
                continue
            name, kind = piece.split(" = ")[0].split(": ")
            kind = kind.split(" | ")[0]
            value = "[x]" if kind.startswith("Sequence") else "x" if kind == "A" or (kind == "Any" and name != "like") else examples[kind]
            given.append(value if o.family == "elementwise" and name in [i["name"] for i in o.row["inputs"]] else f"{name}={value}")
        owner = "g" if o.random else "librepdl"
        kind = {"A": "NDArray[np.float32]", "Any": "Any", "None": None}[o.returns if o.grouped else o.result]
        if o.several:
            kind = re.sub(rf"\b{o.result}\b", kind, o.returns)
        if o.statistics:
            given.pop()
            types = [kind if t == o.result else t for t in o.with_statistics]
            several = [*given[:-1], f"out=({', '.join(['x'] * len(types))})", f"{o.flag}=True"]
            begin = f"r_{o.name}_statistics: tuple[{', '.join(types)}] = {owner}.{o.name}("
            text += "\n".join(wrapped(begin, several, ")", "")) + "\n"
        begin = f"{owner}.{o.name}(" if kind is None else f"r_{o.name}: {kind} = {owner}.{o.name}("
        text += "\n".join(wrapped(begin, given, ")", "")) + "\n"
        text += "".join(f"librepdl.{name}\n" for name in [*o.aliases, *(m[0] for m in o.more)])
    text += "".join(f"{line}\n" for line in (
        "d: float = float(librepdl.sum(x))", "c: librepdl.Comparison = librepdl.compare(x, x)", "s: str = librepdl.fingerprint({'x': x})",
        "i: dict[str, Any] = librepdl.info()", "p: librepdl.Prepared = librepdl.prepare(lambda: librepdl.exp(x))", "p.run()",
        "with librepdl.context(threads=1, isa=None, device='cpu') as k:", "    n: int = k.threads", "    m: dict[str, int] = k.statistics()",
        "mixed: NDArray[np.float32] = librepdl.mul(x, 0.1)"))
    return text


def main():
    parser = argparse.ArgumentParser(description="see the head of this file")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("repdl")
    args = parser.parse_args()
    registry = json.loads(subprocess.run([args.repdl, "docs", "--json"], check=True, capture_output=True, text=True).stdout)
    operations = [Operation(i, row) for i, row in enumerate(registry)]
    stale = 0
    for name, text in (("python/librepdl/_functions.py", functions(operations)), ("python/librepdl/_draws.py", draws(operations)),
                       ("docs/python-api.md", page(operations)),
                       ("python/tests/typing_of_every_function.py", uses(operations))):
        file = root / name
        if not args.check:
            file.write_text(text)
        elif not file.exists() or file.read_text() != text:
            print(f"{name} is stale: run tools/gen_python.py {args.repdl}")
            stale = 1
    sys.exit(stale)


main()
