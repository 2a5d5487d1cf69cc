// The kernels of each family: a table per instruction set, defined by the compilation of kernels/NAME.cpp for that set.
#pragma once

#include "librepdl/plan/families.hpp"

namespace repdl::cpu {

#define REPDL_STRUCT(family) struct family##_kernels;
REPDL_FAMILIES(REPDL_STRUCT)
#undef REPDL_STRUCT

#define REPDL_TABLE(family) extern const family##_kernels family##_table;
namespace baseline {
REPDL_FAMILIES(REPDL_TABLE)
}
namespace avx2 {
REPDL_FAMILIES(REPDL_TABLE)
}
namespace avx512 {
REPDL_FAMILIES(REPDL_TABLE)
}
namespace neon {
REPDL_FAMILIES(REPDL_TABLE)
}
#undef REPDL_TABLE

}  // namespace repdl::cpu
