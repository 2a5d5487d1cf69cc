// The multi-limb arithmetic that formulas call, once for all of a library's formulas.
#include "librepdl/num/formula.hpp"
#define REPDL_DEFINES_LIMBS
#include "librepdl/num/multi_limb_instances.hpp"
