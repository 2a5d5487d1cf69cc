#include "librepdl/dispatch/backend.hpp"

#include "librepdl/error.hpp"

namespace repdl::dispatch {

std::string_view subject::name() const {
  return ops::is_elementwise(op) ? ops::row_of(op).name : ops::structured_row_of(op).name;
}

void undecided(std::int64_t elements, int bits) {
  fail(error_site::undecided, "context", "last_tier_bits",
       "enough bits to decide every element (have " + std::to_string(bits) + ")",
       std::to_string(elements) + " undecided elements");
}

}  // namespace repdl::dispatch
