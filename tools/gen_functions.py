#!/usr/bin/env python3
"""Writes the overloads that every function has beside the one that writes to the caller's memory, from the declarations in
elementwise.hpp and ops.hpp and the options in options.hpp: those that make their results, numbers as operands, functions of
numbers, and optional operands as parameters. And the old names of ops/gradient_names.def.

    tools/gen_functions.py           writes librepdl/include/librepdl/functions.hpp
    tools/gen_functions.py --check   fails when it is stale
"""
import dataclasses
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
include = root / "librepdl/include/librepdl"
target = include / "functions.hpp"

# Functions whose result is not determined by their operands: its type and shape are a parameter.
SAID_BY_CALLER = {"uniform", "normal", "exponential", "bernoulli", "randint", "permutation", "linspace", "arange", "multinomial",
                  "conv2d_backward_x", "conv2d_backward_w", "avg_pool2d_backward", "adaptive_avg_pool2d_backward",
                  "conv3d_backward_x", "conv3d_backward_w", "avg_pool3d_backward", "adaptive_avg_pool3d_backward",
                  "upsample_nearest2d", "upsample_nearest2d_backward", "upsample_linear", "upsample_linear_backward", "upsample_cubic",
                  "upsample_cubic_backward", "embedding_backward", "convert"}
# Gradients that share their forward function's options, and do not depend on its operands.
NO_OPERANDS_IN_OPTIONS = {"conv2d_backward_x", "conv2d_backward_w", "conv3d_backward_x", "conv3d_backward_w"}
NUMBERS = {"f16": "f16", "bf16": "bf16", "f32": "float", "f64": "double", "boolean": "bool"}
RESULTS = {"boolean": "bool", "i64": "std::int64_t", "i32": "std::int32_t"}


@dataclasses.dataclass
class Parameter:
    type: str
    name: str
    default: str

    def __str__(self) -> str:
        return f"{self.type} {self.name}" + (f" = {self.default}" if self.default else "")


@dataclasses.dataclass
class Function:
    name: str
    parameters: list[Parameter]
    doc: str
    elementwise: bool

    def of_type(self, type_name: str, optional: bool = False) -> list[Parameter]:
        return [p for p in self.parameters if p.type == type_name and bool(p.default) == optional]

    @property
    def operands(self) -> list[Parameter]:
        return self.of_type("const_tensor_view")

    @property
    def outputs(self) -> list[Parameter]:
        return self.of_type("tensor_view")

    @property
    def rest(self) -> list[Parameter]:
        """What comes behind the outputs."""
        if not self.outputs:
            return []
        last = self.outputs[-1]
        return self.parameters[self.parameters.index(last) + 1:]

    @property
    def first(self) -> list[Parameter]:
        """What comes between the context and the operands."""
        return [p for p in self.parameters[1:self.parameters.index(self.outputs[0])] if p.type != "const_tensor_view"]


def declarations(header: str) -> list[Function]:
    text = (include / header).read_text()
    found = []
    for match in re.finditer(r"((?:^///.*\n)*)(^REPDL_DEPRECATED.*\n)?^void (\w+)\(context& ctx, ([^;]*)\);", text, re.M):
        doc, deprecated, name, rest = match.groups()
        if deprecated:
            continue
        parameters = [Parameter("context&", "ctx", "")]
        for p in re.sub(r"\s+", " ", rest).split(", "):
            part = re.fullmatch(r"(.*?) (\w+)(?: = (.*))?", p)
            assert part, (name, p)
            parameters.append(Parameter(*(x or "" for x in part.groups())))
        found.append(Function(name, parameters, doc, header == "elementwise.hpp"))
    return found


def hidden_operands() -> dict[str, list[str]]:
    """Of each options struct: its members that are operands."""
    text = (include / "options.hpp").read_text()
    found = {}
    for name, members in re.findall(r"^struct (\w+_options) \{\n(.*?)^\};", text, re.M | re.S):
        found[name] = re.findall(r"^  const_tensor_view\s+(\w+)\{\};", members, re.M)
    for name, same in re.findall(r"^using (\w+_options) = (\w+_options);", text, re.M):
        found[name] = found[same]
    return found


HIDDEN = hidden_operands()


def joined(*parts: str) -> str:
    return ", ".join(p for p in parts if p)


def listed(parameters: list[Parameter]) -> str:
    return ", ".join(map(str, parameters))


def names(parameters: list[Parameter]) -> str:
    return ", ".join(p.name for p in parameters)


def hidden_in(f: Function) -> tuple[Parameter | None, list[str]]:
    for p in f.rest:
        struct = p.type.removeprefix("const ").removesuffix("&")
        if HIDDEN.get(struct) and f.name not in NO_OPERANDS_IN_OPTIONS:
            return p, HIDDEN[struct]
    return None, []


def writing_with_operands(f: Function) -> str:
    """The optional operands as parameters behind the others."""
    options, hidden = hidden_in(f)
    if options is None:
        return ""
    by_value = Parameter(options.type.removeprefix("const ").removesuffix("&"), options.name, options.default)
    rest = [by_value if p is options else p for p in f.rest]
    views = f.operands + [Parameter("const_tensor_view", name, "") for name in hidden]
    body = "".join(f'  detail::set_operand("{f.name}", "{name}", {options.name}.{name}, {name});\n' for name in hidden)
    return (f"inline void {f.name}({joined('context& ctx', listed(f.first), listed(views), listed(f.outputs), listed(rest))}) {{\n{body}"
            f"  {f.name}({joined('ctx', names(f.first), names(f.operands), names(f.outputs), names(rest))});\n}}\n")


def returning(f: Function, hidden: list[str]) -> str:
    """What makes its results."""
    if any("std::span<const tensor_view>" in p.type for p in f.parameters) or not f.outputs:
        return ""
    own = f.operands + [Parameter("const_tensor_view", name, "") for name in hidden]
    late = [p for p in f.rest if p.type == "const_tensor_view"]  # optional operands behind the options
    rest = [Parameter("const operand&", p.name, p.default) if p in late else p for p in f.rest]
    operands = [Parameter("const operand&", p.name, "") for p in own]
    given = own + late
    views = [f"c.in[{i}]" for i in range(len(own))]
    late_views = {p.name: f"c.in[{len(own) + i}]" for i, p in enumerate(late)}
    rest_names = ", ".join(late_views.get(p.name, p.name) for p in rest)
    count = len(f.outputs)
    result = {1: "tensor", 2: "std::pair<tensor, tensor>"}.get(count, f"std::array<tensor, {count}>")
    if f.name == "convert":
        return ("inline tensor convert(const operand& x, dtype type, const convert_options& options = {}) {\n"
                "  tensor out = detail::tensor_for(detail::context_of(\"convert\", {x}), \"convert\", {type, x.view().shape()});\n"
                "  convert(*out.handle(), x.view(), out, options);\n  return out;\n}\n")
    if f.name in SAID_BY_CALLER:
        spec = "const tensor_spec& out"
        made = f.outputs[0].name if f.outputs[0].name != "out" else "made"
        if operands:
            given_views = ", ".join(p.name + ".view()" for p in own)
            context = f'detail::context_of("{f.name}", {{{names(own)}}})'
            return (f"inline tensor {f.name}({joined(listed(f.first), listed(operands), spec, listed(rest))}) {{\n"
                    f'  tensor {made} = detail::tensor_for({context}, "{f.name}", out);\n'
                    f"  {f.name}({joined(f'*{made}.handle()', names(f.first), given_views, made, names(rest))});\n"
                    f"  return {made};\n}}\n")
        return (f"inline tensor {f.name}({joined('context& ctx', listed(f.first), spec, listed(rest))}) {{\n"
                f'  tensor {made} = detail::tensor_for(ctx, "{f.name}", out);\n'
                f"  {f.name}({joined('ctx', names(f.first), made, names(rest))});\n  return {made};\n}}\n")
    absent = ", ".join(["tensor_view{}"] * count)
    take = "c.out.take()" if count == 1 else f"{{{', '.join(f'c.out.take({i})' for i in range(count))}}}"
    if not operands:  # a list of tensors
        tensors, *more = f.first
        assert tensors.type == "std::span<const const_tensor_view>" and not more, f.name
        return (f"inline tensor {f.name}({joined(f'std::span<const operand> {tensors.name}', listed(rest))}) {{\n"
                f"  context& ctx = detail::context_of(\"{f.name}\", {tensors.name});\n"
                f"  detail::results made(ctx, \"{f.name}\", {count});\n"
                f"  {f.name}({joined('ctx', f'detail::views_of({tensors.name})', absent, names(rest))});\n  return made.take();\n}}\n")
    outputs = f", {count}" if count > 1 else ""
    return (f"inline {result} {f.name}({joined(listed(f.first), listed(operands), listed(rest))}) {{\n"
            f'  detail::returning_call c("{f.name}", {{{names(given)}}}{outputs});\n'
            f"  {f.name}({joined('c.ctx', names(f.first), ', '.join(views), absent, rest_names)});\n  return {take};\n}}\n")


def with_numbers(f: Function) -> str:
    """Writes to the caller's memory, one operand or more being numbers."""
    if not f.elementwise or len(f.operands) < 2:
        return ""
    types = [p.name.upper() for p in f.operands]
    operands = ", ".join(f"const {t}& {p.name}" for t, p in zip(types, f.operands))
    return (f"template <{', '.join('class ' + t for t in types)}>\nrequires with_number<{', '.join(types)}> "
            f"void {f.name}({joined('context& ctx', operands, 'tensor_view out', listed(f.rest))}) {{\n"
            f'  const detail::operand_views in(ctx, "{f.name}", {{{names(f.operands)}}});\n'
            f"  {f.name}({joined('ctx', ', '.join(f'in[{i}]' for i in range(len(types))), 'out', names(f.rest))});\n}}\n")


def of_numbers(f: Function) -> str:
    """A function of numbers of one type."""
    if not f.elementwise:
        return ""
    line = f.doc.strip().splitlines()[-1]
    formats = re.search(r"; ((?:f16, bf16, )?f32(?:, f64)?(?:, boolean)?)(?=[,;]|$)", line)
    assert formats, line
    types = [NUMBERS[t] for t in formats[1].split(", ")]
    kind = re.search(r"out is (\w+)", line)
    result = RESULTS[kind[1]] if kind else "T"
    booleans = set(re.findall(r"(\w+) is boolean", line)) - {"out"}
    parameters = ", ".join(f"{'bool' if p.name in booleans else 'T'} {p.name}" for p in f.operands)
    views = ", ".join(f"detail::number_view({p.name})" for p in f.operands)
    return (f"template <one_of<{', '.join(types)}> T>\n{result} {f.name}({joined(parameters, listed(f.rest))}) {{\n"
            f"  return detail::number_result<{result}>([&](context& ctx, tensor_view out) "
            f"{{ {f.name}({joined('ctx', views, 'out', names(f.rest))}); }});\n}}\n")


def old_name(f: Function, old: str) -> str:
    return (f'REPDL_DEPRECATED("{f.name}")\ninline void {old}({listed(f.parameters)}) {{\n  {f.name}({names(f.parameters)});\n}}\n')


def text() -> str:
    all_functions = declarations("elementwise.hpp") + declarations("ops.hpp")
    by_name = {f.name: f for f in all_functions}
    made = """// Every function again, in the forms that are made from the one that writes to the caller's memory: generated from the
// declarations of elementwise.hpp and ops.hpp by tools/gen_functions.py; do not edit. Shapes, formats, roundings and errors are
// said there. What is added:
//
// A call without a context and without an output makes its result, a tensor in the memory of its operands' context (operand.hpp):
//   y = exp(x); z = add(x, 2.5); s = sum(matmul(a, b)); exp(operand(ctx, view)).
// What the operands do not determine, the type and shape of the result, is a parameter: conv2d_backward_x(g, w, x.spec()). Two
// results are a pair, more an array. Errors besides: no_context, context_mismatch, out_of_memory, and prepared_result inside of prepare().
// A call costs an allocation; loops that must not allocate write to memory that they have.
//
// Numbers are operands of elementwise functions, in both forms: each is rounded once to the format of the call (number_format).
// Elementwise functions of numbers alone, all of one type, return a number: exp(1.0f), add(x, y), on one thread of the CPU. They
// are as right as the others and slow: each is a call of the library.
//
// Optional operands are parameters: conv2d(ctx, x, w, bias, out); an absent one is {}.
#pragma once

// clang-format off
#include <array>
#include <utility>

#include "librepdl/elementwise.hpp"
#include "librepdl/export.hpp"
#include "librepdl/operand.hpp"
#include "librepdl/ops.hpp"

namespace repdl REPDL_EXPORT {

"""
    for f in all_functions:
        hidden = hidden_in(f)[1]
        made += writing_with_operands(f) + returning(f, []) + (returning(f, hidden) if hidden else "") + with_numbers(f) + of_numbers(f)
    made += "\n// Names of the version before (docs/migrating.md).\n\n"
    for old, new in re.findall(r"^REPDL_GRADIENT\((\w+), (\w+)\)", (root / "librepdl/ops/gradient_names.def").read_text(), re.M):
        if not new.startswith("conv3d_"):  # whose functions never had that name
            made += old_name(by_name[new], old)
    made += """template <class T>
concept element = element_type<T>;
template <class T>
concept integer = integer_type<T>;
"""
    return made + "\n}  // namespace repdl\n"


if "--check" not in sys.argv:
    target.write_text(text())
elif not target.exists() or target.read_text() != text():
    sys.exit(f"{target.relative_to(root)} is stale: run tools/gen_functions.py")
