// Rows read and written in fours: elements that lie side by side, 16 or 8 bytes an access.
#pragma once

#include "backends/cuda/rows/exponential_of_lanes.cuh"
#include "backends/cuda/rows/rows.cuh"
#include "backends/cuda/rows/rows_access.cuh"

namespace repdl::cuda {

// Where memory is not what limits, as of 16 bits: whether elements are computed in binary32 first, whether terms, or elements, are by the
// lanes of a warp together, and whether the next row is read ahead.
template <class Rule, class T>
inline constexpr bool is_quick = sizeof(T) == 2 && num::has_quick<Rule>;
template <class Rule, class T>
inline constexpr bool has_lanes = (sizeof(T) == 2 || Rule::is_costly) && requires {
  Rule::has_exponential;
};
template <class Rule, class T>
inline constexpr bool has_lanes_for_elements = !is_quick<Rule, T> && requires {
  Rule::has_exponential_element;
};
template <class Rule, class T>
inline constexpr bool reads_ahead = (sizeof(T) == 2 || has_lanes<Rule, T>)&&Rule::per_element&& Rule::formatted
                                    >= held_of<Rule>;

// Two binary32 numbers, rounded to 16 bits, in a word, the first one below.
template <class T>
__device__ inline std::uint32_t word_of(float first, float second) {
  std::uint32_t word;
  if constexpr (std::is_same_v<T, f16>) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
  }
  return word;
}
template <class T>
__device__ inline T half_of(std::uint32_t word, int i) {
  return T{static_cast<std::uint16_t>((i & 1) != 0 ? word >> 16 : word)};
}

// Elements j .. j + 3 of a row of `length` that lie side by side, a + j at a multiple of four; `outside` for those that are not.
template <bool Inside = false, class T>
__device__ inline float4 load_four(const T* a, int j, int length, float outside) {
  if (Inside || (j >= 0 && j + 4 <= length)) return four_at(a + j);
  const auto at = [&](int i) { return i >= 0 && i < length ? num::widen_to_float(a[i]) : outside; };
  return {at(j), at(j + 1), at(j + 2), at(j + 3)};
}
template <bool Inside = false, class T>
__device__ inline void store_four(T* to, int j, int length, float4 v) {
  if (Inside || (j >= 0 && j + 4 <= length)) {
    set_four(to + j, {narrowed<T>(v.x), narrowed<T>(v.y), narrowed<T>(v.z), narrowed<T>(v.w)});
  } else {
    const auto set = [&](int i, float x) {
      if (i >= 0 && i < length) to[i] = narrowed<T>(x);
    };
    set(j, v.x), set(j + 1, v.y), set(j + 2, v.z), set(j + 3, v.w);
  }
}

// The same of numbers of 16 bits, two in a word.
template <bool Inside, class T>
__device__ inline void store_four(T* to, int j, int length, uint2 v) {
  if (Inside || (j >= 0 && j + 4 <= length)) {
    set_four(to + j, __builtin_bit_cast(four_of<T>, v));
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (j + i >= 0 && j + i < length) to[j + i] = half_of<T>(i < 2 ? v.x : v.y, i);
    }
  }
}

// Four elements on their way to shared memory: copied while other work is done, or, where not all of them are of the row, read and
// written now.
template <bool Inside, class T>
__device__ inline void fetch_four(four_of<T>* to, const T* a, int j, int length, float outside) {
  if (Inside || (j >= 0 && j + 4 <= length)) {
    const auto shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared), "l"(a + j), "n"(sizeof(four_of<T>))
                 : "memory");
  } else {
    const float4 v = load_four(a, j, length, outside);
    *to = {narrowed<T>(v.x), narrowed<T>(v.y), narrowed<T>(v.z), narrowed<T>(v.w)};
  }
}
__device__ inline void wait_for_fours() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// The place in its row of a thread's element i.
template <bool Packed>
__device__ int place_of(int i, int lane, int lanes, int head) {
  return Packed ? ((i / 4) * lanes + lane) * 4 + i % 4 - head : i * lanes + lane;
}
template <bool Packed>
struct row_places {
  int lane, lanes, head;
  __device__ int operator()(int i) const { return place_of<Packed>(i, lane, lanes, head); }
};
template <bool Packed, class T>
__device__ int head_of(const T* row) {
  return Packed ? static_cast<int>(reinterpret_cast<std::uintptr_t>(row) / sizeof(T) & 3) : 0;
}

// The fours of a thread, one after the other, along two axes, if there are two: each is within the inner one.
class walk_of_fours {
 public:
  walk_of_fours() = default;
  // Of element j, and `step` further each.
  __device__ walk_of_fours(const row_geometry& g, int j, int step) {
    if (g.reduced.rank != 2 || !g.in_fours) return;
    size_ = static_cast<unsigned>(g.reduced.size[0]);
    outer_ = static_cast<unsigned>(j) / size_;
    inner_ = static_cast<unsigned>(j) - outer_ * size_;
    outer_step_ = static_cast<unsigned>(step) / size_;
    inner_step_ = static_cast<unsigned>(step) - outer_step_ * size_;
  }
  template <int Operand>
  __device__ std::int64_t offset(const row_geometry& g) const {
    return inner_ * g.reduced.stride[Operand][0] + outer_ * g.reduced.stride[Operand][1];
  }
  __device__ void advance(int fours = 1) {
#pragma unroll
    for (int i = 0; i < fours; ++i) {
      inner_ += inner_step_;
      outer_ += outer_step_;
      if (inner_ < size_) continue;
      inner_ -= size_;
      ++outer_;
    }
  }

 private:
  unsigned size_ = 0, inner_ = 0, outer_ = 0, inner_step_ = 0, outer_step_ = 0;
};

// f(i, a) for the fours of a thread, elements i .. i + 3 of its own: a + place(i) is where they begin in an operand that has them side
// by side. from(): the walk of the first one.
template <op_id Op, int Operand, int Count, class T, class Place, class Walk, class F>
__device__ void for_fours(const row_geometry& g, T* row, const Place& place, const Walk& from, F&& f) {
  if (!has_more<device_rule<Op>> || g.access[Operand] == quad_access::flat) {
#pragma unroll
    for (int i = 0; i < Count; i += 4) f(i, row);
    return;
  }
  walk_of_fours walk = from();
#pragma unroll
  for (int i = 0; i < Count; i += 4, walk.advance()) f(i, row + (walk.template offset<Operand>(g) - place(i)));
}
// f(i, v), v being those elements of an operand of any kind. Inside: all are of the row.
template <op_id Op, int Operand, int Count, bool Inside = false, class T, class Place, class Walk, class F>
__device__ void for_more(const row_geometry& g, const T* row, const Place& place, const Walk& walk, int length, F&& f) {
  constexpr float absent = device_rule<Op>::absent[Operand];
  const auto all = [](float v) { return float4{v, v, v, v}; };
  const quad_access how = g.access[Operand];
  if (row == nullptr || how == quad_access::constant) {
    const float v = row == nullptr ? absent : num::widen_to_float(*row);
#pragma unroll
    for (int i = 0; i < Count; i += 4) {
      if constexpr (device_rule<Op>::outside_is_absent) {
        const auto at = [&](int j) { return Inside || (j >= 0 && j < length) ? v : absent; };
        f(i, float4{at(place(i)), at(place(i + 1)), at(place(i + 2)), at(place(i + 3))});
      } else {
        f(i, all(v));
      }
    }
  } else if (how == quad_access::each) {
    const std::int64_t stride = g.reduced.stride[Operand][0];
#pragma unroll
    for (int i = 0; i < Count; i += 4) {
      const auto at = [&](int j) {
        return Inside || (j >= 0 && j < length) ? num::widen_to_float(row[j * stride]) : absent;
      };
      f(i, float4{at(place(i)), at(place(i + 1)), at(place(i + 2)), at(place(i + 3))});
    }
  } else if (how == quad_access::one) {
    for_fours<Op, Operand, Count>(g, row, place, walk, [&](int i, const T* a) {
      f(i, all(Inside || place(i) < length ? num::widen_to_float(a[place(i)]) : absent));
    });
  } else {
    for_fours<Op, Operand, Count>(g, row, place, walk,
                                  [&](int i, const T* a) { f(i, load_four<Inside>(a, place(i), length, absent)); });
  }
}

// The first N operands of a thread's elements. Those outside of the row are 0, or what stands for an operand that is absent.
template <op_id Op, int N, bool Inside, int Count, class T, class Place, class Walk>
__device__ void read_fours(const row_geometry& g, const row_site<Op, T>& at, const Place& place, const Walk& walk,
                           int length, float (&v)[Count][N]) {
  for_each_of<N>([&]<int K>() {
    const auto set = [&](int i, const float4& w) {
      v[i][K] = w.x, v[i + 1][K] = w.y, v[i + 2][K] = w.z, v[i + 3][K] = w.w;
    };
    if constexpr (K < device_rule<Op>::required) {
      for_fours<Op, K, Count>(g, at.template begin<K>(), place, walk,
                              [&](int i, const auto* a) { set(i, load_four<Inside>(a, place(i), length, 0.0f)); });
    } else {
      with_factors<K + 1>(g, at, [&](const auto& site) {
        for_more<Op, K, Count, Inside>(g, site.template begin<K>(), place, walk, length, set);
      });
    }
  });
}

}  // namespace repdl::cuda
