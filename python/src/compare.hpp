// librepdl.compare.
#pragma once

#include "python.hpp"

namespace repdl::python {

// (elements, how many differ, index of the first that does or None, its bits in a, in b, the greatest distance in units in the
// last place or None where a NaN is against a number). Throws where types or shapes differ.
nb::tuple compare(nb::handle a, nb::handle b);

}  // namespace repdl::python
