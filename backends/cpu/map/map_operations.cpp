// The elementwise operations of every instruction set: instruction_sets.cpp has the same list.
namespace repdl::cpu {

struct map_operation;

#ifdef __x86_64__
#define REPDL_TABLES baseline
#include "backends/map_operations.inc"
#ifdef REPDL_WITH_avx2
#define REPDL_TABLES avx2
#include "backends/map_operations.inc"
#endif
#ifdef REPDL_WITH_avx512
#define REPDL_TABLES avx512
#include "backends/map_operations.inc"
#endif
#else
#define REPDL_TABLES neon
#include "backends/map_operations.inc"
#endif

}  // namespace repdl::cpu
