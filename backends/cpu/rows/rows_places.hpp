// Where the rows of a call are, and copies of them, for the driver and the kernels.
#pragma once

#include "backends/cpu/core/walk.hpp"
#include "backends/cpu/rows/rows.hpp"
#include "librepdl/ops/rows/rule.hpp"

namespace repdl::cpu::REPDL_ISA {

// The offsets of element `index` of the reduced axes, in in[0], in[1] and out.
inline walk<3> along_row(const plan::row_plan& p, std::int64_t index) noexcept {
  return {p.reduced_rank,
          p.reduced_shape,
          {&p.in[0].reduced_stride, &p.in[1].reduced_stride, &p.out_reduced_stride},
          index};
}
inline std::int64_t offset_in_row(const plan::row_plan& p, std::int64_t index, int k) noexcept {
  if (p.reduced_rank == 0) return 0;
  if (p.reduced_rank > 1) return along_row(p, index).offset(k);
  return index * (k == 2 ? p.out_reduced_stride[0] : p.in[k].reduced_stride[0]);
}
// The offsets of a row, in in[0], in[1], out, row_g and target.
inline walk<5> across_rows(const plan::row_plan& p, std::int64_t row) noexcept {
  return {p.kept_rank,
          p.kept_shape,
          {&p.in[0].kept_stride, &p.in[1].kept_stride, &p.out_kept_stride, &p.row_g_stride, &p.target_stride},
          row};
}
inline row_place place_of(const walk<5>& w) noexcept {
  return {{w.offset(0), w.offset(1)}, w.offset(2), w.offset(3), w.offset(4)};
}

template <class Rule>
inline num::row_operands operands_of(const plan::row_plan& p, const row_place& at) noexcept {
  num::row_operands r;
  if constexpr (Rule::reads_g) r.g = p.row_g[at.g];
  if constexpr (Rule::reads_target) {
    r.target = p.target[at.target];
    r.ignored = r.target == p.ignore_index;
    if (r.has_target(p.length)) r.at_target = p.in[0].data[at.in[0] + offset_in_row(p, r.target, 0)];
  }
  return r;
}

inline bool contiguous(const plan::row_plan& p, const plan::axes& stride) noexcept {
  return p.reduced_rank == 0 || (p.reduced_rank == 1 && stride[0] == 1);
}

// f(first, count, offset, stride) for the runs of [begin, begin + n) in operand k (2: out) of the row at `base`.
template <class F>
inline void runs_of_row(const plan::row_plan& p, int k, std::int64_t base, std::int64_t begin, std::int64_t n,
                        const F& f) {
  walk<3> w = along_row(p, begin);
  for (std::int64_t done = 0; done < n;) {
    const std::int64_t left = w.inner_left();
    const std::int64_t m = left < n - done ? left : n - done;
    f(done, m, base + w.offset(k), w.inner_stride(k));
    done += m;
    w.advance(m);
  }
}
inline void gather_row(const plan::row_plan& p, int k, std::int64_t base, std::int64_t begin, std::int64_t n,
                       float* to) {
  runs_of_row(p, k, base, begin, n, [&](std::int64_t first, std::int64_t m, std::int64_t offset, std::int64_t stride) {
    const float* from = p.in[k].data + offset;
    for (std::int64_t i = 0; i < m; ++i) to[first + i] = from[i * stride];
  });
}
inline void scatter_row(const plan::row_plan& p, std::int64_t base, std::int64_t begin, std::int64_t n,
                        const float* from) {
  runs_of_row(p, 2, base, begin, n, [&](std::int64_t first, std::int64_t m, std::int64_t offset, std::int64_t stride) {
    float* to = p.out + offset;
    for (std::int64_t i = 0; i < m; ++i) to[i * stride] = from[first + i];
  });
}

// Rows [0, count) side by side: element j of row c at [j * columns + c] of a tile. copy(i, j, n): n elements from i on
// of operand k (2: out), and as many from j on of the tile.
template <class F>
[[gnu::always_inline]] inline void over_tile(const plan::row_plan& p, int k, const row_place* place, std::int64_t count,
                                             std::int64_t columns, const F& copy) noexcept {
  const auto at = [=](std::int64_t c) { return k == 2 ? place[c].out : place[c].in[k]; };
  bool together = true;
  for (std::int64_t c = 1; c < count; ++c) together = together && at(c) == at(0) + c;
  const std::int64_t length = p.length;
  if (p.reduced_rank == 1 && !together) {
    const std::int64_t stride = k == 2 ? p.out_reduced_stride[0] : p.in[k].reduced_stride[0];
    for (std::int64_t c = 0; c < count; ++c) {
      const std::int64_t base = at(c);
      for (std::int64_t j = 0; j < length; ++j) copy(base + j * stride, j * columns + c, 1);
    }
    return;
  }
  walk<3> w = along_row(p, 0);
  for (std::int64_t j = 0; j < length; ++j, w.advance(1)) {
    if (together) {
      copy(w.offset(k) + at(0), j * columns, count);
    } else {
      for (std::int64_t c = 0; c < count; ++c) copy(w.offset(k) + at(c), j * columns + c, 1);
    }
  }
}
// Columns without a row are 0.
inline void gather_tile(const plan::row_plan& p, int k, const row_place* place, std::int64_t count,
                        std::int64_t columns, float* to) noexcept {
  const float* from = p.in[k].data;
  over_tile(
      p, k, place, count, columns, [=](std::int64_t i, std::int64_t j, std::int64_t n) __attribute__((always_inline)) {
        __builtin_memcpy(to + j, from + i, static_cast<std::size_t>(n) * sizeof(float));
      });
  for (std::int64_t j = 0; j < p.length && count < columns; ++j) {
    for (std::int64_t c = count; c < columns; ++c) to[j * columns + c] = 0.0f;
  }
}
inline void scatter_tile(const plan::row_plan& p, const row_place* place, std::int64_t count, std::int64_t columns,
                         const float* from) noexcept {
  float* to = p.out;
  over_tile(
      p, 2, place, count, columns, [=](std::int64_t i, std::int64_t j, std::int64_t n) __attribute__((always_inline)) {
        __builtin_memcpy(to + i, from + j, static_cast<std::size_t>(n) * sizeof(float));
      });
}

}  // namespace repdl::cpu::REPDL_ISA
