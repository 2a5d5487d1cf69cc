// The library's elementwise loops on f32, compiled once per instruction set and without vectorisation (CMakeLists.txt).
#include <algorithm>
#include <array>
#include <span>

#include "backends/cpu/map/map_loops.hpp"
#include "bench/loops.hpp"
#include "librepdl/ops/elementwise/bodies.hpp"
#include "librepdl/ops/operations.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

// With the options' defaults, where there is no loop without options.
template <class Op>
void on_f32(const void* const* in, void* out, std::int64_t n, bool* open) {
  if constexpr (num::has_body<Op, float>) {
    loop<Op, float>(in, out, n, nullptr, open);
  } else {
    double defaults[ops::option_list::most];
    std::ranges::transform(Op::row.options.all, defaults,
                           [](const ops::real_option& o) { return o.otherwise.in(dtype::f32); });
    loop<Op, float, num::parameters>(in, out, n, defaults, open);
  }
}

constexpr auto all = [] {
  std::array<bench::named_loop, ops::elementwise_count> table{};
  ops::for_each_elementwise([&]<class Op>() {
    if constexpr ((Op::formats & ops::F32) != 0) {
      table[static_cast<std::size_t>(ops::id_of<Op>)] = {Op::row.name, on_f32<Op>};
    }
  });
  return table;
}();

}  // namespace
}  // namespace repdl::cpu::REPDL_ISA

namespace bench::REPDL_ISA {

extern const std::span<const named_loop> unvectorised_table;
constinit const std::span<const named_loop> unvectorised_table = repdl::cpu::REPDL_ISA::all;

}  // namespace bench::REPDL_ISA
