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
    r'^REPDL_ELEMENTWISE\((\w+),\s*(\d),\s*"([^"]*)",\s*(\w+),\s*\([^)]*\),\s*\w+,\s*\w+,\s*(\w+),\s*\d+,\s*"([^"]*)"\)',
    (root / "librepdl/ops/elementwise.def").read_text(), re.M)

text = """// Elementwise operations. Generated from librepdl/ops/elementwise.def by tools/gen_elementwise.py; do not edit.
//
// All of them: f32 tensors of any strides; inputs broadcast by NumPy's rule; `out` has the broadcast shape, may be exactly
// one of the inputs, and must not overlap them otherwise. Each output element is the correctly rounded value of the
// formula; NaN results are the canonical quiet NaN (except neg and abs, which only touch the sign bit). Zeros,
// infinities: IEEE 754 and C23 Annex F. Errors: input_count, operand_dtype, broadcast, output_shape, output_dtype,
// device_mismatch, overlap, output_self_overlap.
#pragma once

// clang-format off
#include "librepdl/context.hpp"
#include "librepdl/export.hpp"
#include "librepdl/tensor.hpp"

namespace repdl REPDL_EXPORT {

"""
for name, arity, operands, kind, proof, formula in rows:
    names = operands.split(",")
    assert len(names) == int(arity), name
    text += f"/// out = {formula}\n"
    text += f"void {name}(context& ctx, {', '.join(f'const_tensor_view {n}' for n in names)}, tensor_view out);\n"
text += "\n}  // namespace repdl\n"

target = root / "librepdl/include/librepdl/elementwise.hpp"
if "--check" in sys.argv:
    if not target.exists() or target.read_text() != text:
        sys.exit(f"{target.relative_to(root)} is stale: run tools/gen_elementwise.py")
else:
    target.write_text(text)
