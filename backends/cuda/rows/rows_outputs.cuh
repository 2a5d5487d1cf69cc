// Outputs of a thread's elements, some at a time: of 16 bits in binary32 first, of binary32 on a line where they have one, else each as the
// rule has it; what that leaves undecided again, at more cost.
#pragma once

#include "backends/cuda/rows/rows_fours.cuh"

namespace repdl::cuda {
namespace {

// The outputs of a thread's elements, and which of them are undecided: a bit each.
template <class T, int Count, bool Quick>
struct row_outputs {
  float x[Count];
  unsigned undecided = 0;

  __device__ void fill(float v) {
#pragma unroll
    for (float& y : x) y = v;
  }
  __device__ void set(unsigned which, float v) {
#pragma unroll
    for (int i = 0; i < Count; ++i) x[i] = (which >> i & 1u) != 0 ? v : x[i];
  }
  __device__ void set(int i, const num::verdict<double>& v) {
    x[i] = v.value;
    undecided |= v.undecided ? 1u << i : 0u;
  }
  __device__ float4 four(int i) const { return {x[i], x[i + 1], x[i + 2], x[i + 3]}; }
  __device__ float one(int i) const { return x[i]; }
};
// Two in a word. Of `undecided` the even ones' bits come first, then, from 16 on, those of the odd ones.
template <class T, int Count>
struct row_outputs<T, Count, true> {
  std::uint32_t x[Count / 2];
  unsigned undecided = 0;

  __device__ void fill(float v) {
    const std::uint32_t word = 0x10001u * narrowed<T>(v).bits;
#pragma unroll
    for (std::uint32_t& y : x) y = word;
  }
  __device__ void set(unsigned which, float v) {
    const std::uint32_t word = 0x10001u * narrowed<T>(v).bits;
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      if ((which >> i & 1u) != 0) x[i / 2] = __byte_perm(x[i / 2], word, i % 2 == 0 ? 0x3254 : 0x5410);
    }
  }
  // Elements i and i + 1, i even.
  __device__ void set(int i, const num::ends<float>& even, const num::ends<float>& odd) {
    const std::uint32_t word = word_of<T>(even.low, odd.low);
    const std::uint32_t differ = word ^ word_of<T>(even.high, odd.high);
    x[i / 2] = word;
    undecided += __vminu2(differ, 0x10001u) << i / 2;
  }
  __device__ void leave_all_undecided() { undecided = 0x10001u * ((1u << Count / 2) - 1); }
  __device__ uint2 four(int i) const { return {x[i / 2], x[i / 2 + 1]}; }
  __device__ T one(int i) const { return half_of<T>(x[i / 2], i); }
};

// What elements are computed with in binary32, if they are.
template <class Rule, bool Quick, class Numbers>
__device__ auto quick_of([[maybe_unused]] const Numbers& n) {
  if constexpr (Quick) {
    return Rule::quick_of(n);
  } else {
    return 0;
  }
}
// At a four, if all of it is of the row.
template <op_id Op, class T, class F, class Numbers>
__device__ auto line_of_four(const row_geometry& g, const row_site<Op, T, F>& at, const Numbers& n,
                             const walk_of_fours& walk, bool inside) {
  return line_at(g, at, n, [&]<int K>() {
    return inside ? at.template number<K>(g, walk.template offset<K>(g)) : device_rule<Op>::absent[K];
  });
}
// x(i): x[0] of element i. line: of the row, if it has one.
template <bool Inside, op_id Op, class T, class F, int Count, class Numbers, class Line, class Place, class X>
__device__ void set_on_line(row_outputs<T, Count, false>& to, const row_geometry& g, const row_site<Op, T, F>& at,
                            const Numbers& n, Line line, walk_of_fours walk, const Place& place, int length, X&& x) {
#pragma unroll
  for (int i = 0; i < Count; i += 4, walk.advance()) {
    if (g.others == other_operands::of_fours) line = line_of_four(g, at, n, walk, Inside || place(i) < length);
#pragma unroll
    for (int k = 0; k < 4; ++k) to.set(i + k, line.at(x(i + k)));
  }
}

// Asks again for what binary32 left undecided, in binary64. A call would take longer than what there is to do. What stays undecided, a bit for
// element i. skip: elements that are not asked for.
template <op_id Op, class T, class F, class Numbers, class Place>
__device__ unsigned ask_again(const row_geometry& g, const row_site<Op, T, F>& at, const Numbers& n, float top,
                              unsigned undecided, unsigned skip, const Place& place, int length) {
  using rule = device_rule<Op>;
  unsigned left = 0;
  for (; undecided != 0; undecided &= undecided - 1) {
    const int bit = __ffs(static_cast<int>(undecided)) - 1;
    const int i = bit % 16 * 2 + bit / 16;
    const int j = place(i);
    if (j < 0 || j >= length || (skip >> i & 1u) != 0) continue;
    const auto v = at.values(g, j);
    const double t = rule::keeps_term ? term_of<Op>(v.x, top) : 0.0;
    const num::verdict<double> y = element_of<Op, T>(n, v.x, t);
    if (y.undecided) {
      left |= 1u << i;
    } else {
      at.set(g, j, y.value);
    }
  }
  return left;
}

// The outputs of a thread's elements that are undecided, a few: at more cost, where the rule knows how. The number of those that stay undecided.
template <op_id Op, class T, class Place, class Sums>
__device__ int outputs_again(const row_geometry& g, std::int64_t row, float top, const Sums& sums, unsigned undecided,
                             const Place& place, std::int64_t length, counter* counters) {
  const row_site<Op, T> at(g, row);
  const num::row_call call = call_of(g);
  const row_state<Op> state = state_of(g, call, at, top);
  const auto whole = whole_of(sums);
  const auto numbers = numbers_of<Op>(call, state, whole);
  int left = 0;
  for (; undecided != 0; undecided &= undecided - 1) {
    const std::int64_t j = place(__ffs(static_cast<int>(undecided)) - 1);
    if (j < 0 || j >= length) continue;
    left += output_again(g, call, at, state, numbers, whole, sums, j, at.values(g, j).x, counters) ? 1 : 0;
  }
  return left;
}

}  // namespace
}  // namespace repdl::cuda
