// The elementwise operations.
namespace repdl {

namespace cuda {
struct map_operation;
}

#define REPDL_TABLES cuda
#include "backends/map_operations.inc"

}  // namespace repdl
