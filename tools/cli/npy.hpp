// NumPy's .npy files (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html), versions 1 to 3, element
// types <f2 <f4 <f8 <i8 <i4 |b1 and <u2, which stands for bfloat16, as <V2 and |V2 do, which are read only; and |u1, which stands for
// formats of 8 bits, as |V1 does: the argument says which, "x.npy:f8_e5m2".
#pragma once

#include <string>
#include <string_view>

#include "tools/cli/host_tensor.hpp"

namespace repdl::tools {

/// Reads a whole file; Fortran order becomes strides. Fails with file_open, npy_magic, npy_version, npy_header,
/// npy_dtype or npy_truncated; `argument` names the file in the message.
host_tensor read_npy(const std::string& path);

/// The header of a version 1.0 file in C order; the elements follow it.
std::string npy_header(const tensor_spec& spec);

}  // namespace repdl::tools
