#include "librepdl/ops/formats.hpp"

#include <bit>

namespace repdl::ops {

std::string describe(dtype_set set) {
  std::string text;
  int left = std::popcount(set);
  for (const type_traits& t : types) {
    if ((set & one(t.type)) == 0) continue;
    text += t.name;
    if (--left > 0) text += left == 1 ? " or " : ", ";
  }
  return text;
}

}  // namespace repdl::ops
