// Finds the loops. loop_sets.inc: SLEEF(isa) for each instruction set where SLEEF was found, UNVECTORISED(isa) for each but the
// baseline (CMakeLists.txt).
#include "bench/loops.hpp"

#include <span>

#define SLEEF(isa)                                      \
  namespace bench::isa {                                \
  extern const std::span<const named_loop> sleef_table; \
  }
#define UNVECTORISED(isa)                                        \
  namespace bench::unvectorised_##isa {                          \
    extern const std::span<const named_loop> unvectorised_table; \
  }
#include "loop_sets.inc"
#undef SLEEF
#undef UNVECTORISED

namespace bench {
namespace {

[[maybe_unused]] elementwise_loop* find(std::span<const named_loop> table, std::string_view operation,
                                        bool wide = false) {
  for (const named_loop& l : table) {
    if (l.operation == operation) return wide ? l.wide : l.loop;
  }
  return nullptr;
}

}  // namespace

elementwise_loop* sleef([[maybe_unused]] std::string_view operation, [[maybe_unused]] std::string_view isa,
                        [[maybe_unused]] bool wide) {
#define SLEEF(set) \
  if (isa == #set) return find(set::sleef_table, operation, wide);
#define UNVECTORISED(set)
#include "loop_sets.inc"
#undef SLEEF
#undef UNVECTORISED
  return nullptr;
}

elementwise_loop* unvectorised([[maybe_unused]] std::string_view operation, [[maybe_unused]] std::string_view isa) {
#define SLEEF(set)
#define UNVECTORISED(set) \
  if (isa == #set) return find(unvectorised_##set::unvectorised_table, operation);
#include "loop_sets.inc"
#undef SLEEF
#undef UNVECTORISED
  return nullptr;
}

}  // namespace bench
