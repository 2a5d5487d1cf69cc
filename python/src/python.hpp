// nanobind with the conversions that every file must see alike, and a short name of its namespace.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

namespace repdl::python {
namespace nb = nanobind;
}
