// Private to conv*.cu: a convolution or gradient as matrix products whose operands are gathered from strided tensors.
//
//     out(row, col) = sum over k of a(row, k) b(col, k) [+ bias(row)]
//         conv2d              row: output channel   col: result pixel       k: channel and tap     a: w   b: x
//         conv2d_grad_input   row: input channel    col: image pixel        k: channel and tap     a: w   b: g
//         conv2d_grad_weight  row: output channel   col: channel and tap    k: result pixel        a: g   b: x
// one product per group and, for the input gradient, per phase: image rows with the same remainder modulo the stride
// meet the same taps, so that no absent tap is multiplied. Few channels in many phases are one product instead, whose
// rows are phases and channels, and whose weights are absent where a phase lacks a tap.
//
// Every index is four numbers, and every operand is affine in two of them: element (p, q) lies at the sum of their offsets
// and has the sum of their coordinates; it is absent when those are outside h x w. Depth has no coordinate: each part of it
// (plan/depth_parts.hpp) is a problem of its own.
#pragma once

#include <cstdint>

#include "backends/cuda/product/conv_cut.hpp"
#include "librepdl/num/platform.hpp"
#include "librepdl/plan/depth_parts.hpp"

namespace repdl::dispatch {
class task;
}
namespace repdl::cuda {
struct job;
class carver;
}  // namespace repdl::cuda

namespace repdl::cuda::conv {

struct index4 {
  std::int64_t i[4];
};

// index = ((i0 * d1 + i1) * d2 + i2) * d3 + i3; d1 = 0: i0 is 0, and i1 may be any number.
struct radix {
  std::int64_t d1;
  std::int64_t d2;
  std::int64_t d3;

  REPDL_HD index4 split(std::int64_t index) const {
    index4 n;
    if (((index | d2 | d3) >> 31) == 0) {
      const auto all = static_cast<std::uint32_t>(index);
      const auto inner = static_cast<std::uint32_t>(d3);
      const auto middle = static_cast<std::uint32_t>(d2);
      const std::uint32_t rest = all / inner;
      n = {{0, rest / middle, rest % middle, all % inner}};
    } else {
      const std::int64_t rest = index / d3;
      n = {{0, rest / d2, rest % d2, index % d3}};
    }
    if (d1 != 0) {
      n.i[0] = n.i[1] / d1;
      n.i[1] %= d1;
    }
    return n;
  }
};

// What one of an operand's two indices contributes; offsets in elements. The first number has no coordinates.
struct side {
  std::int64_t offset[4];
  std::int64_t y[4];
  std::int64_t x[4];
  std::int64_t offset0, y0, x0;

  REPDL_HD std::int64_t offset_at(const index4& n) const {
    return offset0 + n.i[0] * offset[0] + n.i[1] * offset[1] + n.i[2] * offset[2] + n.i[3] * offset[3];
  }
  REPDL_HD std::int64_t y_at(const index4& n) const { return y0 + n.i[1] * y[1] + n.i[2] * y[2] + n.i[3] * y[3]; }
  REPDL_HD std::int64_t x_at(const index4& n) const { return x0 + n.i[1] * x[1] + n.i[2] * x[2] + n.i[3] * x[3]; }
};

struct operand {
  const void* data;
  std::int64_t h, w;
  side outer;  // rows of a, columns of b, rows of out
  side inner;  // k of a and b, columns of out
};

// One product.
struct view {
  std::int64_t m, n, k;
  radix row, col, term;
  operand a, b, out;  // out.data is null
  void* result;
  const void* bias;  // null: none
  std::int64_t bias_first, bias_stride;

  template <class N>
  REPDL_HD N bias_of(std::int64_t i) const {  // of row i
    return static_cast<const N*>(bias)[bias_first + i * bias_stride];
  }
};

// The phases of one image axis.
struct phase_axis {
  std::int64_t size, kernel, stride, dilation, before;
  std::int64_t tap_step;  // stride / gcd(stride, dilation): from one tap of a phase to the next
  std::int64_t back;      // dilation / gcd: how far that goes back in the result
};
struct phase {
  std::int64_t first_tap, taps, pixels, result;  // result: what pixel 0 of the phase and its first tap meet
};

// Undecided outputs: in a list, and in a bitmap when that is full.
struct undecided_marks {
  unsigned long long* listed;  // [2]: how many wanted to be in the list; not 0: there are bits in the bitmap
  std::uint32_t* bitmap;       // [product][row][words_per_row], a bit per output
  std::int64_t words_per_row;
  std::int64_t* list;  // 32 times the number of a word of the bitmap, + the bit
  std::int64_t capacity;
  std::int64_t chunks;  // parts of k that an output of the list is repaired in
  double* partial;      // [capacity][chunks][4]

#if defined(__CUDACC__) || defined(REPDL_EMULATED)
  // `bits`: outputs of a row from column `col` on, all in one word of the bitmap.
  __device__ void add(unsigned bits, std::int64_t product_row, std::int64_t col) const {
    const std::int64_t first = product_row * words_per_row * 32 + col;
    for (; bits != 0 && capacity != 0; bits &= bits - 1) {
      const unsigned long long slot = atomicAdd(listed, 1ull);
      if (slot >= static_cast<unsigned long long>(capacity)) break;
      list[slot] = first + (__ffs(static_cast<int>(bits)) - 1);
    }
    if (bits != 0) add_to_bitmap(first, bits);
  }
  __device__ void add_to_bitmap(std::int64_t first, unsigned bits) const {
    atomicOr(bitmap + first / 32, bits << (first & 31));
    atomicMax(listed + 1, 1ull);
  }
#endif
};

// Operands are of f32, and results of it or of 16 bits; or all are of f64.
template <class Out>
using number_of = std::conditional_t<sizeof(Out) == 8, double, float>;

struct problem {
  view base;  // of group 0; where there are phases, what depends on them is missing
  dtype out_type;
  std::int64_t groups;
  std::int64_t phases_h, phases_w;
  std::int64_t group_a, group_b, group_out, group_bias;
  phase_axis axis_h, axis_w;
  std::int64_t depth_taps;
  bool phased;
  int position[3];       // of o (or c), kernel row, kernel column in a term's index
  std::int64_t m, n, k;  // the greatest of any product
  undecided_marks marks;
  tier first_tier;

  REPDL_HD std::int64_t products() const { return groups * phases_h * phases_w; }
  product_size size() const { return {m, n, k, products()}; }
};

REPDL_HD phase phase_of(const phase_axis& axis, std::int64_t index) {
  phase p{0, 0, 0, 0};
  p.pixels = index < axis.size ? (axis.size - index + axis.stride - 1) / axis.stride : 0;
  const std::int64_t candidates = axis.kernel < axis.tap_step ? axis.kernel : axis.tap_step;
  for (std::int64_t r = 0; r < candidates; ++r) {
    const std::int64_t at = index + axis.before - r * axis.dilation;
    if (at % axis.stride == 0) {
      p.first_tap = r;
      p.taps = (axis.kernel - r + axis.tap_step - 1) / axis.tap_step;
      p.result = at / axis.stride;
      break;
    }
  }
  return p;
}

// Sets the parts of `v`, a copy of p.base, that depend on the group and the phase.
REPDL_HD void specialise(view& v, const problem& p, std::int64_t product) {
  const std::int64_t phases = p.phases_h * p.phases_w;
  const std::int64_t group = product / phases;
  v.a.outer.offset0 += group * p.group_a;
  v.b.inner.offset0 += group * p.group_b;
  v.out.outer.offset0 += group * p.group_out;
  v.bias_first += group * p.group_bias;
  if (!p.phased) return;
  const std::int64_t index = product % phases;
  const std::int64_t ph = index / p.phases_w;
  const std::int64_t pw = index % p.phases_w;
  const phase h = phase_of(p.axis_h, ph);
  const phase w = phase_of(p.axis_w, pw);
  const std::int64_t channels = v.k;  // p.base.k is their number
  const std::int64_t images = v.n;    // and p.base.n that of the samples, and of places in depth
  v.k = channels * p.depth_taps * h.taps * w.taps;
  v.n = images * h.pixels * w.pixels;
  const auto at_least_1 = [](std::int64_t x) { return x < 1 ? std::int64_t{1} : x; };
  v.col.d2 = at_least_1(h.pixels);
  v.col.d3 = at_least_1(w.pixels);
  const bool channel_last = p.position[0] == 3;
  v.term.d2 = at_least_1(channel_last ? w.taps : h.taps);
  v.term.d3 = at_least_1(channel_last ? channels : w.taps);
  if (channel_last && v.term.d1 != 0) v.term.d1 = at_least_1(h.taps);
  const int r = p.position[1];
  const int s = p.position[2];
  const std::int64_t kernel_row = v.a.inner.offset[r];  // per tap so far
  const std::int64_t kernel_col = v.a.inner.offset[s];
  v.a.inner.offset0 += h.first_tap * kernel_row + w.first_tap * kernel_col;
  v.a.inner.offset[r] = kernel_row * p.axis_h.tap_step;
  v.a.inner.offset[s] = kernel_col * p.axis_w.tap_step;
  v.b.outer.y0 = h.result;
  v.b.outer.x0 = w.result;
  v.b.outer.offset0 += h.result * v.b.outer.offset[2] + w.result * v.b.outer.offset[3];
  v.out.inner.offset0 +=
      ph * (v.out.inner.offset[2] / p.axis_h.stride) + pw * (v.out.inner.offset[3] / p.axis_w.stride);
}

// f.operator()<Out>() of the result's format.
template <class F>
void with_result(const problem& p, const F& f) {
  ops::for_each_format<ops::FLOATS>([&]<class Out>() {
    if (dtype_of<Out> == p.out_type) f.template operator()<Out>();
  });
}

#if defined(__CUDACC__) || defined(REPDL_EMULATED)
// The view of a product in shared memory, by `threads` threads of which this is number `rank`; wait afterwards.
// The caller waits between the copy and the one thread's work: `wait`.
template <class Wait>
__device__ void make_view(view& to, const problem& p, std::int64_t product, int rank, int threads, Wait&& wait) {
  static_assert(sizeof(view) % 8 == 0);
  const auto* const from = reinterpret_cast<const std::uint64_t*>(&p.base);
  auto* const words = reinterpret_cast<std::uint64_t*>(&to);
  for (int i = rank; i < static_cast<int>(sizeof(view) / 8); i += threads) words[i] = from[i];
  wait();
  if (p.products() > 1 || p.phased) {
    if (rank == 0) specialise(to, p, product);
    wait();
  }
}
#endif

// Two operands' layouts and how much is copied at a time.
struct loading {
  bool a_k_fast, b_k_fast;  // which index is consecutive in memory
  bool a_quads, b_quads;    // groups of four along it are 16 aligned bytes, present or absent together
};

// Sizes and coordinates up to which the product kernel's 32-bit arithmetic is valid.
inline constexpr std::int64_t greatest_coordinate = std::int64_t{1} << 29;
inline constexpr int nowhere = 1 << 30;  // a coordinate that is outside together with any other

// conv_problem.cpp: a part of a plan as products, how their operands are loaded, and whether the product kernel's 32-bit indices and
// coordinates suffice.
problem describe(const plan::conv_plan& c, const plan::depth_part& z);
loading plan_loading(const problem& p, const plan::conv_plan& c);
bool within_reach(const problem& p, const plan::conv_plan& c);
// conv_product.cu
void take_workspace(schedule& s, carver& c);
void run_product(const problem& p, const schedule& s, const loading& l, const job& j);
// conv_direct.cu: the same of few rows and few terms, without tiles.
bool is_direct(const problem& p);
void run_direct(const problem& p, const job& j);
// conv_product.cuh, of a tile_shape and the results' format: instantiated in object files of their own.
template <class T, class Out>
void launch_tile(const problem& p, const schedule& s, const loading& l, const job& j);
// conv_repair.cu: the double-double and exact tiers for the outputs that are marked.
void take_marks(problem& p, carver& c);
void clear_marks(const problem& p, const job& j);
void mark_all(const problem& p, const job& j);
void repair(const problem& p, const job& j);
// conv_chain.cu: accumulate::fma_chain.
void prepare_chain(const problem& p, const loading& l, const job& j, dispatch::task& t);

}  // namespace repdl::cuda::conv
