// Functions that are no operation of the registry, but made of some (librepdl/ops.hpp).
#pragma once

#include "python.hpp"

namespace repdl::python {

// inputs: x, cos, sin.
nb::object rotary(nb::tuple inputs, nb::handle out, nb::handle interleaved, nb::handle inverse);

// inputs: q, k, v, q_offsets, k_offsets, slopes or None. values: of attention's attributes. lse: whether it is returned, too; out is then a tuple.
nb::object attention_varlen(nb::tuple inputs, nb::handle out, nb::handle values, nb::handle lse);

// inputs: g, q, k, v, y, lse, q_offsets, k_offsets, slopes or None.
nb::object attention_varlen_backward(nb::tuple inputs, nb::handle out, nb::handle values);

}  // namespace repdl::python
