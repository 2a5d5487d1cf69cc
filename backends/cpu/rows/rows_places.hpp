// Where the rows of a call are, and copies of them, for the driver and the kernels.
#pragma once

#include "backends/cpu/core/walk.hpp"
#include "backends/cpu/rows/rows.hpp"

namespace repdl::cpu::REPDL_ISA {

template <class Rule>
inline constexpr int outputs_of = (Rule::per_element ? 1 : 0) + Rule::results;

// Numbers of any format are binary32 numbers on their way.
inline float number_at(const void* data, dtype type, std::int64_t i) noexcept {
  return num::with_format(type, [=]<class T>() { return num::widen_to_float(static_cast<const T*>(data)[i]); });
}
inline void set_number(void* data, dtype type, std::int64_t i, float x) noexcept {
  num::with_format(type, [=]<class T>() { static_cast<T*>(data)[i] = num::narrow<T>(x); });
}

// The element operands of a call.
template <class Rule>
const void* operand(const plan::row_plan& p, int k) noexcept {
  return p.in[Rule::inputs.element[k]];
}
template <class Rule>
dtype type_of(const plan::row_plan& p, int k) noexcept {
  return p.in_type[Rule::inputs.element[k]];
}
template <class Rule>
const plan::row_plan::strides& stride_of(const plan::row_plan& p, int k) noexcept {
  return p.in_stride[Rule::inputs.element[k]];
}

// The rows of a call, one after the other: where they are in its operands.
template <class Rule>
class row_places {
  static constexpr bool has_g = Rule::inputs.g >= 0;
  static constexpr bool has_target = Rule::inputs.target >= 0;
  static constexpr bool has_top = Rule::inputs.top >= 0;
  static constexpr int formers = num::formers_of<Rule>;
  static constexpr int outputs = num::elements_of<Rule>;  // the first of them
  static constexpr int g = outputs + outputs_of<Rule>;
  static constexpr int target = g + (has_g ? 1 : 0);
  static constexpr int top = target + (has_target ? 1 : 0);
  static constexpr int former = top + (has_top ? 1 : 0);
  static constexpr int count = former + formers;
  struct list {
    const plan::axes* all[count];
    explicit list(const plan::row_plan& p) {
      for (int k = 0; k < outputs; ++k) all[k] = &stride_of<Rule>(p, k).kept;
      for (int k = outputs; k < g; ++k) all[k] = &p.out_stride[k - outputs].kept;
      if constexpr (has_g) all[g] = &p.in_stride[Rule::inputs.g].kept;
      if constexpr (has_target) all[target] = &p.in_stride[Rule::inputs.target].kept;
      if constexpr (has_top) all[top] = &p.in_stride[Rule::inputs.top].kept;
      for (int k = 0; k < formers; ++k) all[former + k] = &p.in_stride[Rule::inputs.former[k]].kept;
    }
  };

 public:
  row_places(const plan::row_plan& p, std::int64_t row) noexcept : at_(p.kept_rank, p.kept_shape, list(p).all, row) {}
  void advance() noexcept { at_.advance(1); }
  row_place here() const noexcept {
    row_place r{};
    for (int k = 0; k < outputs; ++k) r.x[k] = at_.offset(k);
    for (int k = outputs; k < g; ++k) r.out[k - outputs] = at_.offset(k);
    if constexpr (has_g) r.g = at_.offset(g);
    if constexpr (has_target) r.target = at_.offset(target);
    if constexpr (has_top) r.top = at_.offset(top);
    for (int k = 0; k < formers; ++k) r.former[k] = at_.offset(former + k);
    return r;
  }

 private:
  walk<count> at_;
};

// Along a row, in one operand.
inline walk<1> along_row(const plan::row_plan& p, const plan::axes& stride, std::int64_t index = 0) noexcept {
  return {p.reduced_rank, p.reduced_shape, {&stride}, index};
}
inline std::int64_t offset_in_row(const plan::row_plan& p, const plan::axes& stride, std::int64_t index) noexcept {
  return p.reduced_rank == 0 ? 0 : p.reduced_rank == 1 ? index * stride[0] : along_row(p, stride, index).offset(0);
}

template <class Rule>
inline num::row_operands operands_of(const plan::row_plan& p, const row_place& at) noexcept {
  num::row_operands r;
  const auto number = [&p](int i, std::int64_t offset) { return number_at(p.in[i], p.in_type[i], offset); };
  if constexpr (Rule::inputs.g >= 0) r.g = number(Rule::inputs.g, at.g);
  if constexpr (Rule::inputs.target >= 0) {
    const auto* const targets = static_cast<const std::int64_t*>(p.in[Rule::inputs.target]);
    if (targets == nullptr) return r;
    r.target = targets[at.target];
    r.ignored = r.target == p.ignore_index;
    if (!r.has_target(p.length)) return r;
    const auto there = [&](int k) {
      return number(Rule::inputs.element[k], at.x[k] + offset_in_row(p, stride_of<Rule>(p, k).reduced, r.target));
    };
    r.at_target = there(0);
    if constexpr (num::elements_of<Rule> != 1) r.weight = operand<Rule>(p, 1) == nullptr ? Rule::absent[1] : there(1);
  }
  for (int k = 0; k < num::formers_of<Rule>; ++k) r.former[k] = number(Rule::inputs.former[k], at.former[k]);
  return r;
}
// A row's top where it is known beforehand, else 0.
template <class Rule>
inline float top_of(const plan::row_plan& p, const row_place& at) noexcept {
  constexpr int given = Rule::inputs.top;
  if constexpr (given >= 0) return number_at(p.in[given], p.in_type[given], at.top);
  if constexpr (Rule::look == num::row_look::first)
    return p.length != 0 ? number_at(operand<Rule>(p, 0), type_of<Rule>(p, 0), at.x[0]) : 0.0f;
  return 0.0f;
}
template <class Rule>
inline num::row_call call_of(const row_job& job, const num::row_bounds& bounds) noexcept {
  const plan::row_plan& p = *job.plan;
  constexpr int target = Rule::inputs.target, bias = Rule::inputs.element[2];
  const bool biased =
      target >= 0 ? p.in[target >= 0 ? target : 0] == nullptr : bias >= 0 && p.in[bias >= 0 ? bias : 0] != nullptr;
  return {bounds, p.length, job.n, p.eps, biased, p.momentum, job.total, job.weighted ? &job.weights.finite : nullptr};
}

inline bool contiguous(const plan::row_plan& p, const plan::axes& stride) noexcept {
  std::int64_t step = 1;
  for (int d = p.reduced_rank - 1; d >= 0; step *= p.reduced_shape[static_cast<std::size_t>(d--)]) {
    if (stride[static_cast<std::size_t>(d)] != step) return false;
  }
  return true;
}

// f(first, count, offset, stride) for the runs of [begin, begin + n) of a row, in an operand.
template <class F>
inline void runs_of_row(const plan::row_plan& p, const plan::axes& along, std::int64_t begin, std::int64_t n,
                        const F& f) {
  walk<1> w = along_row(p, along, begin);
  for (std::int64_t done = 0; done < n;) {
    const std::int64_t left = w.inner_left();
    const std::int64_t m = left < n - done ? left : n - done;
    f(done, m, w.offset(0), w.inner_stride(0));
    done += m;
    w.advance(m);
  }
}
// n numbers, side by side on both sides.
template <class T>
inline void widen_all(const T* from, std::int64_t n, float* to) noexcept {
  if constexpr (std::is_same_v<T, float>) {
    __builtin_memcpy(to, from, static_cast<std::size_t>(n) * sizeof(float));
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] = num::widen_to_float(from[i]);
  }
}
template <class T>
inline void narrow_all(const float* from, std::int64_t n, T* to) noexcept {
  if constexpr (std::is_same_v<T, float>) {
    __builtin_memcpy(to, from, static_cast<std::size_t>(n) * sizeof(float));
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] = num::narrow<T>(from[i]);
  }
}
// What moves numbers of any format is compiled once, not for every operation: `at` is where the row begins in the operand.
template <class T>
inline void gather_row_of(const plan::row_plan& p, const plan::axes& along, const T* row, std::int64_t begin,
                          std::int64_t n, float* to) {
  runs_of_row(p, along, begin, n, [&](std::int64_t first, std::int64_t m, std::int64_t offset, std::int64_t stride) {
    const T* const from = row + offset;
    if (stride == 1) {
      widen_all(from, m, to + first);
    } else if (stride == 0) {
      for (std::int64_t i = 0; i < m; ++i) to[first + i] = num::widen_to_float(*from);
    } else {
      for (std::int64_t i = 0; i < m; ++i) to[first + i] = num::widen_to_float(from[i * stride]);
    }
  });
}
[[gnu::noinline]] inline void gather_row(const plan::row_plan& p, const plan::axes& along, dtype type, const void* from,
                                         std::int64_t at, std::int64_t begin, std::int64_t n, float* to) noexcept {
  num::with_format(type, [&]<class T>() { gather_row_of(p, along, static_cast<const T*>(from) + at, begin, n, to); });
}
template <class T>
inline void scatter_row_of(const plan::row_plan& p, const plan::axes& along, T* row, std::int64_t begin, std::int64_t n,
                           const float* from) {
  runs_of_row(p, along, begin, n, [&](std::int64_t first, std::int64_t m, std::int64_t offset, std::int64_t stride) {
    T* const to = row + offset;
    if (stride == 1) {
      narrow_all(from + first, m, to);
    } else {
      for (std::int64_t i = 0; i < m; ++i) to[i * stride] = num::narrow<T>(from[first + i]);
    }
  });
}

[[gnu::noinline]] inline void scatter_row(const plan::row_plan& p, const plan::axes& along, dtype type, void* to,
                                          std::int64_t at, std::int64_t begin, std::int64_t n,
                                          const float* from) noexcept {
  num::with_format(type, [&]<class T>() { scatter_row_of(p, along, static_cast<T*>(to) + at, begin, n, from); });
}

// Rows [0, count) side by side: element j of row c at [j * columns + c] of a tile. place[c]: where row c begins in an operand.
// copy(i, j, n): n elements from i on of the operand, and as many from j on of the tile.
template <class F>
[[gnu::always_inline]] inline void over_tile(const plan::row_plan& p, const plan::axes& along, std::int64_t count,
                                             std::int64_t columns, const std::int64_t* place, const F& copy) noexcept {
  bool together = true;
  for (std::int64_t c = 1; c < count; ++c) together = together && place[c] == place[0] + c;
  const std::int64_t length = p.length;
  if (p.reduced_rank == 1 && !together) {
    const std::int64_t stride = along[0];
    for (std::int64_t c = 0; c < count; ++c) {
      const std::int64_t base = place[c];
      for (std::int64_t j = 0; j < length; ++j) copy(base + j * stride, j * columns + c, 1);
    }
    return;
  }
  walk<1> w = along_row(p, along);
  for (std::int64_t j = 0; j < length; ++j, w.advance(1)) {
    if (together) {
      copy(w.offset(0) + place[0], j * columns, count);
    } else {
      for (std::int64_t c = 0; c < count; ++c) copy(w.offset(0) + place[c], j * columns + c, 1);
    }
  }
}
// Columns without a row are 0.
[[gnu::noinline]] inline void gather_tile(const plan::row_plan& p, const plan::axes& along, dtype type,
                                          const void* from, const std::int64_t* place, std::int64_t count,
                                          std::int64_t columns, float* to) noexcept {
  bool one = true;  // row that all columns are
  for (std::int64_t c = 1; c < count; ++c) one = one && place[c] == place[0];
  num::with_format(type, [&]<class T>() {
    const T* const x = static_cast<const T*>(from);
    if (one) {
      walk<1> w = along_row(p, along);
      for (std::int64_t j = 0; j < p.length; ++j, w.advance(1)) {
        const float value = num::widen_to_float(x[w.offset(0) + place[0]]);
        for (std::int64_t c = 0; c < count; ++c) to[j * columns + c] = value;
      }
      return;
    }
    over_tile(
        p, along, count, columns,
        place, [=](std::int64_t i, std::int64_t j, std::int64_t n) __attribute__((always_inline)) {
          widen_all(x + i, n, to + j);
        });
  });
  for (std::int64_t j = 0; j < p.length && count < columns; ++j) {
    for (std::int64_t c = count; c < columns; ++c) to[j * columns + c] = 0.0f;
  }
}
[[gnu::noinline]] inline void scatter_tile(const plan::row_plan& p, const plan::axes& along, dtype type, void* to,
                                           const std::int64_t* place, std::int64_t count, std::int64_t columns,
                                           const float* from) noexcept {
  num::with_format(type, [&]<class T>() {
    T* const x = static_cast<T*>(to);
    over_tile(
        p, along, count, columns,
        place, [=](std::int64_t i, std::int64_t j, std::int64_t n) __attribute__((always_inline)) {
          narrow_all(from + j, n, x + i);
        });
  });
}

}  // namespace repdl::cpu::REPDL_ISA
