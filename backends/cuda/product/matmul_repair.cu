// The later tiers of the exact matrix product, for the outputs that the binary64 tier marked: double-double with the
// lattice rule, then exact integers.
#include "backends/cuda/product/exact_dot.cuh"
#include "backends/cuda/product/launch_next.cuh"
#include "backends/cuda/product/matmul.hpp"
#include "backends/cuda/product/mma.cuh"
#include "librepdl/num/dd.hpp"
#include "librepdl/num/sums.hpp"
#include "librepdl/ops/sums/scaled_sum.hpp"

namespace repdl::cuda {
namespace {

// The two rows of an output, as a warp walks through them: lane l takes k = l % 16 of every second panel.
struct dot_rows {
  const double* a;
  const double* b;
  int panels;

  template <class Sum>
  __device__ void add_to(Sum& sum) const {
    for (int panel = lane_of_thread() / 16; panel < panels; panel += 2) {
      sum.add_terms(static_cast<float>(a[panel * panel_size]),  // they were floats
                    static_cast<float>(b[panel * panel_size]));
    }
  }
  __device__ dot_rows(const product& p, std::int64_t batch, std::int64_t row, std::int64_t col)
      : panels(static_cast<int>(p.a.k_panels)) {
    const int k = lane_of_thread() % 16;
    a = p.a.data + (p.a.batch(batch) * p.a.row_panels + row / panel_rows) * p.a.k_panels * panel_size +
        place_a(static_cast<int>(row % panel_rows), k);
    b = p.b.data + (p.b.batch(batch) * p.b.row_panels + col / panel_rows) * p.a.k_panels * panel_size +
        place_b(static_cast<int>(col % panel_rows), k);
  }
};

// Double-double tier. The terms' magnitudes are bounded by the product of norms.
struct dot_sum : num::compensated_sum<double> {
  __device__ void add_terms(float x, float y) { add(static_cast<double>(x) * static_cast<double>(y)); }
  __device__ void merge_lanes(int distance) {
    merge({__shfl_xor_sync(full_warp, hi, distance), __shfl_xor_sync(full_warp, lo, distance)});
  }
  // `height`: additions so far.
  template <class T, bool Scaled>
  __device__ num::decided_value<T> finish(const product& p, double magnitude, int lsb, std::int64_t height,
                                          const T* bias) {
    const double c = bias == nullptr ? 0.0 : num::widen(*bias);
    if constexpr (!Scaled) {
      if (bias != nullptr) {
        add(c);
        magnitude += fabs(c);
        lsb = min(lsb, num::lsb_exponent(*bias));
      }
    }
    const double plain = Scaled ? p.alpha * hi + p.beta * c : hi;
    if (!num::is_finite(plain)) return {num::non_finite_result<T>(plain), true};
    if (p.k > greatest_k) return {T{}, false};
    const bool exact = num::lattice_holds_dd(magnitude, lsb, p.k + 64);
    const double e = exact ? 0.0 : num::compensated_bound(height + 1, magnitude);
    if constexpr (Scaled) return num::certify_scaled<T>(p.alpha, p.beta, total(), e, c);
    return num::certify<T>(total(), e);
  }
};

// `direct`: the row of a in the caller's memory where its elements lie side by side (a quarter of the bytes), else
// null.
template <class T, bool Scaled>
__device__ num::decided_value<T> dot_double_double(const product& p, const dot_rows& rows, const T* direct,
                                                   const T* bias, double magnitude, int lsb) {
  dot_sum sum;
  if (direct != nullptr) {
    const int lane = lane_of_thread();
#pragma unroll 8
    for (int panel = lane / 16; panel < rows.panels; panel += 2) {
      const int k = panel * panel_k + lane % 16;
      const double x = k < p.k ? num::widen(direct[k]) : 0.0;
      sum.add(x * rows.b[panel * panel_size]);
    }
  } else {
#pragma unroll 4
    for (int panel = lane_of_thread() / 16; panel < rows.panels; panel += 2) {
      sum.add(rows.a[panel * panel_size] * rows.b[panel * panel_size]);
    }
  }
#pragma unroll
  for (int distance = 16; distance >= 1; distance /= 2) sum.merge_lanes(distance);
  return sum.finish<T, Scaled>(p, magnitude, lsb, (rows.panels + 1) / 2 + 6, bias);
}

// The same for eight outputs side by side in a row, col a multiple of 8: lane (g, t) has output col + g in the end.
__device__ dot_sum dot_eight(const product& p, std::int64_t batch, std::int64_t row, std::int64_t col) {
  const int g = lane_of_thread() / 4;
  const int t = lane_of_thread() % 4;
  const int panels = static_cast<int>(p.a.k_panels);
  const double* const a = p.a.data +
                          (p.a.batch(batch) * p.a.row_panels + row / panel_rows) * p.a.k_panels * panel_size +
                          place_a(static_cast<int>(row % panel_rows), t);
  const double* const b = p.b.data +
                          (p.b.batch(batch) * p.b.row_panels + col / panel_rows) * p.a.k_panels * panel_size +
                          place_b(static_cast<int>(col % panel_rows) + g, t);
  dot_sum sum;
#pragma unroll 2
  for (int panel = 0; panel < panels; ++panel) {
    double b_part[4];
    load_pair(b + panel * panel_size, b_part[0], b_part[1]);
    load_pair(b + panel * panel_size + 64, b_part[2], b_part[3]);
#pragma unroll
    for (int j = 0; j < 4; ++j) sum.add(a[panel * panel_size + 64 * j] * b_part[j]);
  }
  sum.merge_lanes(1);
  sum.merge_lanes(2);
  return sum;
}

// The two rows of an output as the caller has them, or copies of them: a lane takes every 32nd term, or 16 bytes of them.
struct near_rows {
  dtype type;
  bool packed;  // they begin at multiples of 16 bytes, and their terms lie side by side
  const char* a;
  const char* b;
  std::int64_t step_a, step_b, k;

  static __device__ const char* row_of(const operand_source& s, std::int64_t batch, std::int64_t row) {
    const std::int64_t size = s.type == dtype::f32 ? 4 : 2;
    return static_cast<const char*>(s.data) + (s.batch.offset<0>(batch) + row * s.row_stride) * size;
  }
  __device__ near_rows(const product& p, std::int64_t batch, std::int64_t row, std::int64_t col)
      : type(p.near_a.type),
        packed(p.near_packed),
        a(row_of(p.near_a, batch, row)),
        b(row_of(p.near_b, batch, col)),
        step_a(p.near_a.k_stride),
        step_b(p.near_b.k_stride),
        k(p.k) {}
  template <class T, class Sum>
  __device__ void add_terms_to(Sum& sum) const {
    const T* const of_a = reinterpret_cast<const T*>(a);
    const T* const of_b = reinterpret_cast<const T*>(b);
    std::int64_t i = 0;
    if (packed) {  // 16 bytes at a time
      constexpr int unit = 16 / sizeof(T);
#pragma unroll 4
      for (; i + 32 * unit <= k; i += 32 * unit) {
        alignas(16) T x[unit], y[unit];
        *reinterpret_cast<uint4*>(x) = *reinterpret_cast<const uint4*>(of_a + i + unit * lane_of_thread());
        *reinterpret_cast<uint4*>(y) = *reinterpret_cast<const uint4*>(of_b + i + unit * lane_of_thread());
#pragma unroll
        for (int n = 0; n < unit; ++n) sum.add_terms(num::widen_to_float(x[n]), num::widen_to_float(y[n]));
      }
    }
#pragma unroll 4
    for (i += lane_of_thread(); i < k; i += 32) {
      sum.add_terms(num::widen_to_float(of_a[i * step_a]), num::widen_to_float(of_b[i * step_b]));
    }
  }
  template <class Sum>
  __device__ void add_to(Sum& sum) const {
    switch (type) {
      case dtype::f16:
        return add_terms_to<f16>(sum);
      case dtype::bf16:
        return add_terms_to<bf16>(sum);
      default:
        add_terms_to<float>(sum);
    }
  }
};
struct exact_terms : exact_dot {
  __device__ void add_terms(float x, float y) { add_product(x, y); }
};

// alpha, beta: of a product that is scaled.
template <class T, bool Scaled, class Rows>
__device__ __noinline__ T dot_exact(const Rows rows, const T* bias, double alpha, double beta) {
  exact_terms sum;
  rows.add_to(sum);
  if constexpr (Scaled) {
    sum.merge_lanes();
    const double c = bias == nullptr ? 0.0 : num::widen(*bias);
    if (sum.special.any() || !num::is_finite(c)) {
      const double s = sum.special.any() ? num::widen(sum.special.value()) : 0.0;
      return num::narrow<T>(alpha * s + beta * c);
    }
    return num::round_scaled<T>(alpha, beta, sum.finite, c);
  } else {
    if (bias != nullptr && lane_of_thread() == 0) sum.add(*bias);
    sum.merge_lanes();
    return sum.round();
  }
}

// What is known of an output's lines, which are panels.
struct bounds_of_lines {
  double norm_a;
  int lsb_a;
  const double* norm_b;
  const int* lsb_b;

  __device__ bounds_of_lines(const product& p, std::int64_t batch, std::int64_t row) {
    const std::int64_t a = p.a.batch(batch) * p.a.padded_rows() + row;
    const std::int64_t b = p.b.batch(batch) * p.b.padded_rows();
    norm_a = p.a.lines.norm[a];
    lsb_a = p.a.lines.lsb[a];
    norm_b = p.b.lines.norm + b;
    lsb_b = p.b.lines.lsb + b;
  }
  __device__ double magnitude(std::int64_t col) const { return norm_a * norm_b[col]; }
  __device__ int lsb(std::int64_t col) const { return lsb_a + lsb_b[col]; }
};

// Walks through the marked outputs, a warp for eight of them side by side: f(batch, row, col, bits) of the first column and the marks. `span` bytes of the
// bitmap are looked at at a time; neighbouring warps take neighbouring rows, so that they read the same rows of b.
template <class F>
__device__ void for_marked(const product& p, int span, const F& f) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(p.undecided);
  const std::int64_t bytes_per_row = p.words_per_row * 4;
  const std::int64_t rows = p.batches * p.m;
  const std::int64_t spans = (bytes_per_row + span - 1) / span;
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * (blockDim.x / 32);
  const int lane = lane_of_thread();
  for (std::int64_t visit = static_cast<std::int64_t>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
       visit < rows * spans; visit += warps) {
    const std::int64_t batch_row = visit % rows;
    const std::int64_t first = visit / rows * span;
    const unsigned mine =
        lane < span && first + lane < bytes_per_row ? bytes[batch_row * bytes_per_row + first + lane] : 0u;
    unsigned owners = __ballot_sync(full_warp, mine != 0);
    const std::int64_t batch = batch_row / p.m;
    for (; owners != 0; owners &= owners - 1) {
      const int owner = __ffs(static_cast<int>(owners)) - 1;
      f(batch, batch_row - batch * p.m, (first + owner) * 8, __shfl_sync(full_warp, mine, owner));
    }
  }
}

// Walks through the listed outputs, a warp for each: f(batch, row, col) says whether it is done with.
template <class F>
__device__ void for_listed(const product& p, const F& f) {
  const counter count = *p.choice.open;
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * (blockDim.x / 32);
  for (counter i = static_cast<counter>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32; i < count; i += warps) {
    const std::int64_t output = p.list[i];
    if (output < 0) continue;
    const std::int64_t batch_row = output / p.n;
    const std::int64_t batch = batch_row / p.m;
    const bool is_done = f(batch, batch_row - batch * p.m, output - batch_row * p.n);
    if (is_done && lane_of_thread() == 0) p.list[i] = -1;
  }
}

template <class T>
__device__ const T* bias_of(const product& p, const batch_pointers<T>& at, std::int64_t row, std::int64_t col) {
  return at.bias == nullptr ? nullptr : at.bias + row * p.bias_row + col * p.bias_col;
}

// The double-double tier where residues left few outputs: from the operands themselves, with many warps at a time.
template <class T, bool Scaled>
__global__ void __launch_bounds__(256, 4) near_repair_kernel(const __grid_constant__ product p, counter* counters) {
  wait_for_former();
  if (p.choice.wants_panels()) return;
  std::int64_t decided = 0;
  std::int64_t left = 0;
  for_listed(p, [&](std::int64_t batch, std::int64_t row, std::int64_t col) {
    num::decided_value<T> result{T{}, false};
    if (p.first_tier <= tier::double_double) {
      // What is known of the lines is looked up first, so that it comes while the terms do.
      const std::int64_t a = (p.source_a.batches == 1 ? 0 : batch) * p.m + row;
      const std::int64_t b = (p.source_b.batches == 1 ? 0 : batch) * p.n + col;
      const double magnitude = p.lines_a.norm(a) * p.lines_b.norm(b);
      const int lsb = p.lines_a.lsb(a) + p.lines_b.lsb(b);
      const batch_pointers<T> at(p, batch);
      dot_sum sum;
      near_rows(p, batch, row, col).add_to(sum);
#pragma unroll
      for (int distance = 16; distance >= 1; distance /= 2) sum.merge_lanes(distance);
      result = sum.finish<T, Scaled>(p, magnitude, lsb, p.k / 32 + 1 + 6, bias_of(p, at, row, col));
      if (result.decided && lane_of_thread() == 0) at.out[row * p.out_row + col * p.out_col] = result.value;
    }
    ++(result.decided ? decided : left);
    return result.decided;
  });
  if (lane_of_thread() != 0) return;
  count_elements(counters, tier::double_double, decided);
  if (left != 0) atomicAdd(p.left_by_near, static_cast<counter>(left));
}

// The tiers with the operands as panels, several outputs together where many of them are marked.
template <class T, bool Scaled>
__device__ void repair_from_panels(const product& p, int span, counter* counters) {
  const int lane = lane_of_thread();
  const bool skip_dd = p.first_tier > tier::double_double;
  std::int64_t count_dd = 0;
  std::int64_t count_exact = 0;
  for_marked(p, span, [&](std::int64_t batch, std::int64_t row, std::int64_t col0, unsigned bits) {
    const batch_pointers<T> at(p, batch);
    const bounds_of_lines known(p, batch, row);
    if (__popc(bits) >= 3 && !skip_dd) {
      dot_sum sum = dot_eight(p, batch, row, col0);
      const std::int64_t col = col0 + lane / 4;
      const bool marked = (bits >> (lane / 4) & 1) != 0;
      bool done = false;
      if (marked) {
        const num::decided_value<T> result = sum.finish<T, Scaled>(p, known.magnitude(col), known.lsb(col),
                                                                   4 * p.a.k_panels + 2, bias_of(p, at, row, col));
        done = result.decided;
        if (done && lane % 4 == 0) at.out[row * p.out_row + col * p.out_col] = result.value;
      }
      // One bit per lane; the four lanes of an output agree.
      const unsigned lanes_done = __ballot_sync(full_warp, done && lane % 4 == 0);
      count_dd += __popc(lanes_done);
      for (int g = 0; g < 8; ++g) bits &= ~((lanes_done >> (4 * g) & 1u) << g);
    }
    for (; bits != 0; bits &= bits - 1) {
      const std::int64_t col = col0 + (__ffs(static_cast<int>(bits)) - 1);
      const dot_rows both(p, batch, row, col);
      const T* const bias = bias_of(p, at, row, col);
      num::decided_value<T> result = {T{}, false};
      if (!skip_dd) {
        const T* const direct =
            p.source_a.k_stride == 1 ? batch_of<T>(p.source_a, batch) + row * p.source_a.row_stride : nullptr;
        result = dot_double_double<T, Scaled>(p, both, direct, bias, known.magnitude(col), known.lsb(col));
      }
      if (result.decided) {
        ++count_dd;
      } else {
        result.value = dot_exact<T, Scaled>(both, bias, p.alpha, p.beta);
        ++count_exact;
      }
      if (lane == 0) at.out[row * p.out_row + col * p.out_col] = result.value;
    }
  });
  if (lane == 0) {
    count_elements(counters, tier::double_double, count_dd);
    count_elements(counters, tier::exact, count_exact);
  }
}

// What near_repair_kernel left.
template <class T, bool Scaled>
__device__ void repair_exactly(const product& p, counter* counters) {
  if (*p.left_by_near == 0) return;
  std::int64_t count = 0;
  for_listed(p, [&](std::int64_t batch, std::int64_t row, std::int64_t col) {
    const batch_pointers<T> at(p, batch);
    const T result = dot_exact<T, Scaled>(near_rows(p, batch, row, col), bias_of(p, at, row, col), p.alpha, p.beta);
    if (lane_of_thread() == 0) at.out[row * p.out_row + col * p.out_col] = result;
    ++count;
    return false;
  });
  if (lane_of_thread() == 0) count_elements(counters, tier::exact, count);
}

template <class T, bool Scaled, bool ByResidues>
__global__ void __launch_bounds__(256) repair_kernel(const __grid_constant__ product p, int span, counter* counters) {
  wait_for_former();
  if (!ByResidues || p.choice.wants_panels()) {
    repair_from_panels<T, Scaled>(p, span, counters);
  } else {
    repair_exactly<T, Scaled>(p, counters);
  }
}

}  // namespace

void repair(const product& p, bool by_residues, const job& j) {
  const std::int64_t bytes_per_row = p.words_per_row * 4;
  const std::int64_t rows = p.batches * p.m;
  const int span = repair_span(rows, bytes_per_row, j.device);
  const unsigned grid = grid_for(j.device, ceil_div(rows * ceil_div(bytes_per_row, span), repair_warps), 8);
  constexpr int threads = repair_warps * 32;
  with_kernels(p, [&]<class T, bool Scaled>() {
    if (by_residues) {
      launch_next<near_repair_kernel<T, Scaled>>(j, std::int64_t{j.device.multiprocessors} * 4, threads, 0, p,
                                                 j.counters);
      launch_next<repair_kernel<T, Scaled, true>>(j, grid, threads, 0, p, span, j.counters);
    } else {
      launch_next<repair_kernel<T, Scaled, false>>(j, grid, threads, 0, p, span, j.counters);
    }
  });
}

}  // namespace repdl::cuda
