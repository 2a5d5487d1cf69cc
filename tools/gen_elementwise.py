#!/usr/bin/env python3
"""Writes the typed declarations of the elementwise operations from the registry.

    tools/gen_elementwise.py           writes librepdl/include/librepdl/elementwise.hpp
    tools/gen_elementwise.py --check   fails when the committed file is stale
"""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
rows = re.findall(
    r'^REPDL_ELEMENTWISE\((\w+),\s*(\d),\s*"([^"]*)",\s*(\w+),\s*(\w+),\s*\((.*?)\),\s*(?:compute|bits),.*"([^"]*)"\)$',
    (root / "librepdl/ops/elementwise.def").read_text(), re.M)
formats_text = {"F32": "f32", "NARROW": "f16, bf16, f32", "FLOATS": "f16, bf16, f32, f64"}

text = """// Elementwise operations. Generated from librepdl/ops/elementwise.def by tools/gen_elementwise.py; do not edit.
//
// All of them: tensors of any strides; the inputs have one of the formats that are listed, and broadcast by NumPy's rule;
// `out` has their format where no other is said, and the broadcast shape, may be exactly one of the inputs, and must not
// overlap them otherwise. Options are coefficients: exact doubles, 0 or of magnitude in [2^-200, 2^200]. Each output
// element is the exact value of the formula, rounded once; NaN results are the canonical quiet NaN (except neg and abs,
// which only touch the sign bit). Zeros, infinities: IEEE 754 and C23 Annex F. Errors: input_count, operand_dtype,
// attribute_value, broadcast, output_shape, output_dtype, device_mismatch, overlap, output_self_overlap.
#pragma once

// clang-format off
#include "librepdl/context.hpp"
#include "librepdl/export.hpp"
#include "librepdl/tensor.hpp"

namespace repdl REPDL_EXPORT {

"""
for name, arity, operands, formats, result, options, formula in rows:
    names = operands.split(",")
    assert len(names) == int(arity), name
    last = ""
    if options:
        text += f"/// The options of {name}.\nstruct {name}_options {{\n"
        for option, value, doc in re.findall(r'\{"(\w+)",\s*([^,]+),\s*"([^"]*)"\}', options):
            text += f"  double {option} = {value};  ///< {doc}\n"
        text += "};\n"
        last = f", const {name}_options& options = {{}}"
    text += f"/// out = {formula}; {formats_text[formats]}{', out is boolean' if result == 'boolean' else ''}\n"
    views = ", ".join(f"const_tensor_view {n}" for n in names)
    text += f"void {name}(context& ctx, {views}, tensor_view out{last});\n"
text += "\n}  // namespace repdl\n"

target = root / "librepdl/include/librepdl/elementwise.hpp"
if "--check" in sys.argv:
    if not target.exists() or target.read_text() != text:
        sys.exit(f"{target.relative_to(root)} is stale: run tools/gen_elementwise.py")
else:
    target.write_text(text)
