// A shard includes this and the headers of its bodies, and has the rows of its operations, of which REPDL_ELEMENTWISE makes types
// and tables (backends/CMakeLists.txt).
#pragma once

#include "backends/cpu/map/map_loops.hpp"
#include "librepdl/ops/operation.hpp"

#define REPDL_ELEMENTWISE(name, ...)                                              \
  namespace repdl::ops {                                                          \
  REPDL_OPERATION(name, __VA_ARGS__)                                              \
  }                                                                               \
  namespace repdl::cpu::REPDL_ISA {                                               \
  extern const map_operation map_##name##_table;                                  \
  constinit const map_operation map_##name##_table = make_operation<ops::name>(); \
  }
