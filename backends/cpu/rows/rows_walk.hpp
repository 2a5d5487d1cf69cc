// The rows of a call: where they are, gathered into blocks and tiles, and what a thread works with. Used by rows.cpp
// and rows_exact.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/reduce/reduce_walk.hpp"
#include "backends/cpu/rows/rows.hpp"
#include "librepdl/ops/rows_wide.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cpu {

using ops::op_id;

inline bool is_cross_entropy(op_id op) noexcept {
  return op == op_id::cross_entropy || op == op_id::cross_entropy_backward;
}
// Formulas of sums of g alone; the others are formulas of e^x / sum of e^x.
inline bool is_tracked(op_id op) noexcept { return op == op_id::softmax_backward || op == op_id::log_softmax_backward; }
inline bool per_element(op_id op) noexcept { return op != op_id::logsumexp && op != op_id::cross_entropy; }
// The maximum is counted apart (ops/rows.hpp): where R, or 1 - softmax, is wanted.
inline bool is_separate(op_id op) noexcept { return op != op_id::softmax && op != op_id::logsumexp_backward; }

// The offsets of element `index` of the reduced axes, in in[0], in[1] and out.
inline walk<3> along_row(const plan::row_plan& p, std::int64_t index) noexcept {
  return {p.reduced_rank,
          p.reduced_shape,
          {&p.in[0].reduced_stride, &p.in[1].reduced_stride, &p.out_reduced_stride},
          index};
}
// The offsets of a row, in in[0], in[1], out, row_g and target.
inline walk<5> across_rows(const plan::row_plan& p, std::int64_t row) noexcept {
  return {p.kept_rank,
          p.kept_shape,
          {&p.in[0].kept_stride, &p.in[1].kept_stride, &p.out_kept_stride, &p.row_g_stride, &p.target_stride},
          row};
}

struct row_place {
  std::int64_t in[2];
  std::int64_t out;
  std::int64_t g;
  std::int64_t target;
};
inline row_place place_of(const walk<5>& w) noexcept {
  return {{w.offset(0), w.offset(1)}, w.offset(2), w.offset(3), w.offset(4)};
}

// One row of in[0], as the last tier reads it.
struct row_reader {
  const plan::row_plan* plan;
  const float* data;
  std::int64_t length() const noexcept { return plan->length; }
  float operator()(std::int64_t i) const noexcept {
    if (plan->reduced_rank <= 1) return data[i * (plan->reduced_rank == 0 ? 0 : plan->in[0].reduced_stride[0])];
    return data[along_row(*plan, i).offset(0)];
  }
};

// A thread's part of one row; as it is here, of no elements.
struct row_partial {
  float top = -__builtin_inff();
  std::int32_t magnitude = 0;
  num::dd rest = {0, 0};
  double count = 0;
  num::tracked_sum<double> tracked;
  std::int32_t special = 0;
};

// What one thread works with; the arrays are carved from the workspace behind it.
struct row_worker {
  row_state state;
  row_partial partial;
  float* a;
  float* b;
  float* out;
  double* keep;
  std::uint32_t* open;
  // Elements that the kernels left open.
  float x[row_chunk];
  float y[row_chunk];
  float value[row_chunk];
  std::int64_t index[row_chunk];
  std::uint8_t decided[row_chunk];
  row_place place[tile_columns];
  // Counters of the call.
  std::int64_t by[4];
  std::int64_t undecided;
};

// Copies elements [begin, begin + n) of one row of input k to `to`, or from `from` to the row of the output.
inline void gather_row(const plan::row_plan& p, int k, std::int64_t base, std::int64_t begin, std::int64_t n,
                       float* to) noexcept {
  walk<3> w = along_row(p, begin);
  for (std::int64_t done = 0; done < n;) {
    const std::int64_t m = std::min(w.inner_left(), n - done);
    const float* from = p.in[k].data + base + w.offset(k);
    const std::int64_t stride = w.inner_stride(k);
    for (std::int64_t i = 0; i < m; ++i) to[done + i] = from[i * stride];
    done += m;
    w.advance(m);
  }
}
inline void scatter_row(const plan::row_plan& p, std::int64_t base, std::int64_t begin, std::int64_t n,
                        const float* from) noexcept {
  walk<3> w = along_row(p, begin);
  for (std::int64_t done = 0; done < n;) {
    const std::int64_t m = std::min(w.inner_left(), n - done);
    float* to = p.out + base + w.offset(2);
    const std::int64_t stride = w.inner_stride(2);
    for (std::int64_t i = 0; i < m; ++i) to[i * stride] = from[done + i];
    done += m;
    w.advance(m);
  }
}

// Rows [0, count) of the worker's places, `columns` >= count of them, as a tile (unused columns: 0).
template <class Offset>
bool side_by_side(const row_place* place, std::int64_t count, Offset&& offset) noexcept {
  for (std::int64_t c = 1; c < count; ++c) {
    if (offset(place[c]) != offset(place[0]) + c) return false;
  }
  return true;
}
inline void gather_tile(const plan::row_plan& p, int k, const row_place* place, std::int64_t count,
                        std::int64_t columns, float* to) noexcept {
  const bool together = side_by_side(place, count, [k](const row_place& at) { return at.in[k]; });
  const bool along = p.reduced_rank == 1 && !together;
  if (along) {
    const std::int64_t stride = p.in[k].reduced_stride[0];
    for (std::int64_t c = 0; c < count; ++c) {
      const float* from = p.in[k].data + place[c].in[k];
      for (std::int64_t j = 0; j < p.length; ++j) to[j * columns + c] = from[j * stride];
    }
  } else {
    walk<3> w = along_row(p, 0);
    for (std::int64_t j = 0; j < p.length; ++j, w.advance(1)) {
      const float* from = p.in[k].data + w.offset(k);
      float* row = to + j * columns;
      if (together) {
        std::copy_n(from + place[0].in[k], count, row);
      } else {
        for (std::int64_t c = 0; c < count; ++c) row[c] = from[place[c].in[k]];
      }
    }
  }
  for (std::int64_t j = 0; j < p.length && count < columns; ++j) {
    std::fill(to + j * columns + count, to + (j + 1) * columns, 0.0f);
  }
}
inline void scatter_tile(const plan::row_plan& p, const row_place* place, std::int64_t count, std::int64_t columns,
                         const float* from) noexcept {
  const bool together = side_by_side(place, count, [](const row_place& at) { return at.out; });
  if (p.reduced_rank == 1 && !together) {
    const std::int64_t stride = p.out_reduced_stride[0];
    for (std::int64_t c = 0; c < count; ++c) {
      float* to = p.out + place[c].out;
      for (std::int64_t j = 0; j < p.length; ++j) to[j * stride] = from[j * columns + c];
    }
    return;
  }
  walk<3> w = along_row(p, 0);
  for (std::int64_t j = 0; j < p.length; ++j, w.advance(1)) {
    float* to = p.out + w.offset(2);
    const float* row = from + j * columns;
    if (together) {
      std::copy_n(row, count, to + place[0].out);
    } else {
      for (std::int64_t c = 0; c < count; ++c) to[place[c].out] = row[c];
    }
  }
}

}  // namespace repdl::cpu
