// The elementwise table: the operations, which are in shards (map_shard.hpp), and the loops of conversions. Compiled once per
// instruction set.
#include "backends/cpu/map/map.hpp"
#include "librepdl/ops/elementwise/convert.hpp"

namespace repdl::cpu::REPDL_ISA {

extern const map_operation* const map_operations[];  // map_operations.cpp

namespace {

template <class From, class To>
void convert_loop(const void* const* in, void* out, std::int64_t n, [[maybe_unused]] const double* options, bool*) {
  const auto* x = static_cast<const num::stored<From>*>(in[0]);
  auto* y = static_cast<To*>(out);
  if constexpr (num::is_byte_float<To>) {
    const bool saturate = options[0] != 0;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = num::convert_body<To, From>::eval(num::load(x[i]), saturate);
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = num::convert_body<To, From>::eval(num::load(x[i]));
  }
}

constexpr map_kernels make_table() {
  map_kernels t{};
  t.operations = map_operations;
  ops::for_each_format<ops::ALL>([&]<class From>() {
    ops::for_each_format<ops::ALL>([&]<class To>() {
      t.convert[static_cast<int>(dtype_of<From>)][static_cast<int>(dtype_of<To>)] = convert_loop<From, To>;
    });
  });
  return t;
}

}  // namespace

constinit const map_kernels map_table = make_table();

}  // namespace repdl::cpu::REPDL_ISA
