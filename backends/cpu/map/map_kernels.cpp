// The elementwise table: the shards, and the loops of conversions. Compiled once per instruction set.
#include <iterator>

#include "backends/cpu/map/map.hpp"
#include "librepdl/ops/convert.hpp"

namespace repdl::cpu::REPDL_ISA {

#include "map_shards.inc"
static_assert(std::size(map_shards) == ops::shard_count, "backends/CMakeLists.txt cuts elementwise.def otherwise");

namespace {

template <class From, class To>
void convert_loop(const void* const* in, void* out, std::int64_t n, const double*, bool*) {
  const auto* x = static_cast<const From*>(in[0]);
  auto* y = static_cast<To*>(out);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = num::convert_body<To, From>::eval(x[i]);
}

constexpr map_kernels make_table() {
  map_kernels t{};
  t.shards = map_shards;
  ops::for_each_format<ops::FLOATS>([&]<class From>() {
    ops::for_each_format<ops::FLOATS>([&]<class To>() {
      t.convert[static_cast<int>(dtype_of<From>)][static_cast<int>(dtype_of<To>)] = convert_loop<From, To>;
    });
  });
  return t;
}

}  // namespace

constinit const map_kernels map_table = make_table();

}  // namespace repdl::cpu::REPDL_ISA
