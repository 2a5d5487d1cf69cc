// Prefixes (librepdl/ops/scans/prefix.hpp): a thread has a line, and goes along it as a thread of a CPU does. What double-doubles leave
// undecided it decides itself, with numbers of 256 bits, then 512.
#include "backends/cuda/core/axes.hpp"
#include "backends/cuda/core/launch.cuh"
#include "librepdl/ops/formats.hpp"
#include "librepdl/ops/scans/prefix.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = 64;

struct scan_geometry {
  const void* in;
  void* out;
  std::int64_t lines, length, out_step;
  bool each, by_first;
  int bits;
  strided_axes<2> kept;  // of in and out
  strided_axes<1> along;
};

template <class Prefix, class T>
__global__ void __launch_bounds__(threads) scan_kernel(const __grid_constant__ scan_geometry g, counter* counters) {
  std::int64_t special = 0, first = 0, exact = 0, undecided = 0;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t line = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; line < g.lines;
       line += step) {
    std::int64_t at[2];
    g.kept.locate(line, at);
    const T* const in = static_cast<const T*>(g.in) + at[0];
    T* const out = static_cast<T*>(g.out) + at[1];
    const auto read = [&](std::int64_t i) { return num::widen(in[g.along.template offset<0>(i)]); };
    const auto put = [&](std::int64_t i, T value) { out[g.each ? i * g.out_step : 0] = value; };
    typename num::late_states<Prefix, T, 4, 8>::type late;
    num::scan_line<Prefix, T>(
        g.length, g.each, g.by_first, read,
        [&](std::int64_t i, T value, bool is_special) {
          put(i, value);
          ++(is_special ? special : first);
        },
        [&](std::int64_t i) {
          const num::decided_value<T> r = late.decide(read, i + 1, g.bits);
          put(i, r.value);
          ++(r.decided ? exact : undecided);
        });
  }
  count_elements(counters, tier::proved, special);
  count_elements(counters, tier::double_double, first);
  count_elements(counters, tier::exact, exact);
  if (undecided != 0) atomicAdd(counters + undecided_counter, static_cast<counter>(undecided));
}

template <class T>
__global__ void __launch_bounds__(threads)
    integer_scan_kernel(const __grid_constant__ scan_geometry g, bool products, counter* counters) {
  std::int64_t decided = 0;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t line = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; line < g.lines;
       line += step) {
    std::int64_t at[2];
    g.kept.locate(line, at);
    const T* const in = static_cast<const T*>(g.in) + at[0];
    std::int64_t* const out = static_cast<std::int64_t*>(g.out) + at[1];
    num::scan_integers(
        g.length, g.each, products, [&](std::int64_t i) { return in[g.along.template offset<0>(i)]; },
        [&](std::int64_t i, std::int64_t value) { out[g.each ? i * g.out_step : 0] = value; });
    decided += g.each ? g.length : 1;
  }
  count_elements(counters, tier::proved, decided);
}

}  // namespace

void prepare(const plan::scan_plan& p, const job& j, dispatch::task& t) {
  scan_geometry g{};
  g.in = p.in;
  g.out = p.out;
  g.lines = p.lines;
  g.length = p.length;
  g.out_step = p.out_step;
  g.each = p.has_each();
  g.by_first = j.first_tier <= tier::double_double;
  g.bits = j.last_tier_bits;
  g.kept.set_shape(p.kept_rank, p.kept_shape);
  g.kept.set_stride(0, p.in_kept_stride);
  g.kept.set_stride(1, p.out_kept_stride);
  g.along.set_shape(p.reduced_rank, p.reduced_shape);
  g.along.set_stride(0, p.in_reduced_stride);
  const unsigned grid = grid_for(j.device, ceil_div(p.lines, threads), 16);
  ops::for_each_format<ops::INTEGERS>([&]<class T>() {
    if (dtype_of<T> != p.type) return;
    plan_launch<integer_scan_kernel<num::element_of<T>>>(t, j, grid, threads, g, p.op != ops::op_id::cumsum,
                                                         j.counters);
  });
  ops::for_each_format<ops::FLOATS>([&]<class T>() {
    if (dtype_of<T> != p.type) return;
    switch (p.op) {
      case ops::op_id::cumsum:
        return plan_launch<scan_kernel<num::sum_prefix<T>, T>>(t, j, grid, threads, g, j.counters);
      case ops::op_id::logcumsumexp:
        return plan_launch<scan_kernel<num::exponential_prefix<T>, T>>(t, j, grid, threads, g, j.counters);
      default:  // prod, cumprod
        return plan_launch<scan_kernel<num::product_prefix<T>, T>>(t, j, grid, threads, g, j.counters);
    }
  });
}

}  // namespace repdl::cuda
