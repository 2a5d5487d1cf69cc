#include "librepdl/plan/call_list.hpp"

#include <algorithm>
#include <vector>

namespace repdl::plan {
namespace {

// The bytes from the first to the last one of an operand, and the call that has it.
struct extent {
  std::uintptr_t begin, end;
  std::size_t call;
  bool is_output;
};

extent extent_of(const map_plan& p, const void* data, const axes& stride, dtype type) {
  const auto size = static_cast<std::intptr_t>(size_of(type));
  std::intptr_t below = 0, above = 0;
  for (std::size_t d = 0; d < static_cast<std::size_t>(p.rank); ++d) {
    const std::intptr_t reach = stride[d] * (p.shape[d] - 1) * size;
    (reach < 0 ? below : above) += reach;
  }
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  return {at + static_cast<std::uintptr_t>(below), at + static_cast<std::uintptr_t>(above + size), 0, false};
}

}  // namespace

std::size_t independent(std::span<const map_plan> calls) {
  std::size_t n = 0;
  std::vector<extent> all;
  all.reserve(4 * calls.size());
  for (; n < calls.size(); ++n) {
    const map_plan &p = calls[n], &first = calls[0];
    if (p.op != first.op || p.in_type != first.in_type || p.out_type != first.out_type ||
        p.has_options != first.has_options)
      break;
    const auto add = [&](const void* data, const axes& stride, dtype type, bool is_output) {
      if (data == nullptr) return;  // a number
      extent e = extent_of(p, data, stride, type);
      e.call = n;
      e.is_output = is_output;
      all.push_back(e);
    };
    for (int k = 0; k < p.arity; ++k) add(p.in[k].data, p.in[k].stride, p.in[k].type, false);
    add(p.out, p.out_stride, p.out_type, true);
  }
  std::sort(all.begin(), all.end(), [](const extent& a, const extent& b) { return a.begin < b.begin; });
  // Of those that meet, the later call is not among the first ones. Only what begins before an operand ends can meet it; where operands are
  // apart, that is nothing, or the call's own output.
  for (std::size_t a = 0; a < all.size(); ++a) {
    for (std::size_t b = a + 1; b < all.size() && all[b].begin < all[a].end; ++b) {
      if (all[a].call != all[b].call && (all[a].is_output || all[b].is_output))
        n = std::min(n, std::max(all[a].call, all[b].call));
    }
  }
  return n;
}

}  // namespace repdl::plan
