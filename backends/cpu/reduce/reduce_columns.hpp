// Many outputs side by side: where the kept axis is contiguous in memory, or where the reductions are so short that one
// call per output would cost more than the terms. Used by reduce.cpp.
#pragma once

#include "backends/cpu/reduce/reduce_rows.hpp"

namespace repdl::cpu {

namespace {
template <class T>
constexpr T zero_row[column_tile] = {};
}

// How the outputs are cut into tiles of columns. In a direct tile the columns are contiguous in every input; otherwise
// each group of rows is gathered first.
struct column_layout {
  bool use = false;
  bool direct = false;
  std::int64_t axis = 0;   // outputs that a tile must not cross: the last kept axis, or all
  std::int64_t width = 0;  // columns per tile
  std::int64_t tiles = 0;  // per axis
  std::int64_t tasks = 0;
  std::int64_t parts = 1;  // threads that share the rows of one task; then tasks * parts <= threads

  range columns(std::int64_t task) const noexcept {
    const std::int64_t start = task / tiles * axis;
    const std::int64_t first = task % tiles * width;
    return {start + first, start + std::min(first + width, axis)};
  }
};

inline column_layout plan_columns(const plan::reduce_plan& p, int threads) noexcept {
  column_layout c;
  // Indices of rows are 32-bit in the column kernels; longer reductions, and those with a bias, scaled, without some of their terms or
  // without signs, go row by row.
  if (p.length < 1 || p.length > 0x7ffffff0 || p.bias != nullptr || p.is_scaled() || p.drops_positive() || p.magnitudes)
    return c;
  constexpr std::int64_t least_columns = 8;
  constexpr std::int64_t short_length = 32;
  if (p.kept_rank > 0) {
    const auto k = static_cast<std::size_t>(p.kept_rank - 1);
    c.direct = p.kept_shape[k] >= least_columns;
    for (int i = 0; i < p.inputs; ++i) c.direct = c.direct && p.in[i].kept_stride[k] == 1;
    c.axis = p.kept_shape[k];
  }
  if (!c.direct) c.axis = p.outputs;
  c.use = c.direct || (p.length <= short_length && p.outputs >= 64);
  if (!c.use) return c;
  const std::int64_t rows = p.outputs / c.axis;
  const std::int64_t wanted = (threads + rows - 1) / rows;  // tiles per axis that keep all threads busy
  constexpr std::int64_t grain = 64;
  c.width = std::min(column_tile, std::max(grain, (c.axis / wanted + grain - 1) / grain * grain));
  c.tiles = (c.axis + c.width - 1) / c.width;
  c.tasks = rows * c.tiles;
  if (c.tasks < threads && p.length >= 4 * column_block) c.parts = threads / c.tasks;
  return c;
}

// One tile: some columns, all or a part of their rows.
template <class T>
class column_task {
 public:
  column_task(const reduce_call<T>& c, const column_layout& layout, std::int64_t task, worker<T>& w) noexcept
      : call_(c), direct_(layout.direct), w_(w), n_(0) {
    const range r = layout.columns(task);
    n_ = r.end - r.begin;
    walk<4> kept = kept_walk(c.plan, r.begin);
    for (std::int64_t j = 0; j < n_; ++j) {
      w.base[0][j] = kept.offset(0);
      w.base[1][j] = kept.offset(1);
      w.out_at[j] = kept.offset(2);
      kept.advance(1);
    }
  }

  bool sums() const noexcept { return call_.plan.is_sum(); }
  bool indexed() const noexcept { return call_.plan.op == ops::op_id::argmax || call_.plan.op == ops::op_id::argmin; }
  std::uint32_t flip() const noexcept {
    return call_.plan.op == ops::op_id::min || call_.plan.op == ops::op_id::argmin ? num::order_min : num::order_max;
  }

  void run(std::int64_t begin, std::int64_t end) noexcept {
    if (sums()) return add_rows(begin, end);
    order_rows(begin, end);
  }

  // Adds what another worker found in later rows of the same columns.
  void merge(const worker<T>& o) noexcept {
    w_.blocks += o.blocks + 1;
    for (std::int64_t j = 0; j < n_; ++j) {
      if (sums()) {
        merge_sum(o, j);
      } else if (o.key[j] > w_.key[j]) {
        w_.key[j] = o.key[j];
        w_.index[j] = o.index[j];
      }
    }
  }

  void finish(std::int64_t (&decided)[4]) noexcept {
    if (sums()) return finish_sums(decided);
    for (std::int64_t j = 0; j < n_; ++j) {
      if (indexed()) {
        static_cast<std::int64_t*>(call_.plan.out)[w_.out_at[j]] = w_.index[j];
      } else {
        static_cast<T*>(call_.plan.out)[w_.out_at[j]] = num::order_value<T>(w_.key[j], flip());
      }
    }
    decided[static_cast<int>(tier::proved)] += n_;
  }

 private:
  static constexpr bool is_integer = std::is_integral_v<T>;
  static constexpr bool is_wide = std::is_same_v<T, double>;
  static num::dd squares(const worker<T>& w, std::int64_t j) noexcept { return {w.squares.hi[j], w.squares.lo[j]}; }

  void merge_sum(const worker<T>& o, std::int64_t j) noexcept {
    if constexpr (is_integer) {
      w_.low[j] += o.low[j];
      w_.high[j] += o.high[j];
    } else {
      w_.magnitude[j] += o.magnitude[j];
      if constexpr (is_wide) {
        const num::dd s = num::add(num::dd{w_.hi[j], w_.lo[j]}, num::dd{o.hi[j], o.lo[j]});
        w_.hi[j] = s.hi;
        w_.lo[j] = s.lo;
        if (!call_.plan.is_spread()) return;
        const num::dd q = num::add(squares(w_, j), squares(o, j));
        w_.squares.hi[j] = q.hi;
        w_.squares.lo[j] = q.lo;
      } else {
        num::compensated_sum<double> s{w_.hi[j], w_.lo[j]};
        s.merge({o.hi[j], o.lo[j]});
        w_.hi[j] = s.hi;
        w_.lo[j] = s.lo;
      }
    }
  }

  std::int64_t certify_spreads() noexcept {
    const double eta = num::dd_bound(spread_column_height + w_.blocks, 1);
    std::int64_t undecided = 0;
    for (std::int64_t j = 0; j < n_; ++j) {
      const num::decided_value<double> v =
          num::certify_spread(call_.spread(), {w_.hi[j], w_.lo[j]}, squares(w_, j), w_.magnitude[j], eta);
      w_.value[j] = v.value;
      w_.decided[j] = v.decided ? 1 : 0;
      undecided += v.decided ? 0 : 1;
    }
    return undecided;
  }
  void finish_sums(std::int64_t (&decided)[4]) noexcept requires is_integer {
    for (std::int64_t j = 0; j < n_; ++j) {
      integer_partial sum;
      sum.add(w_.low[j], w_.high[j]);
      write_integers(call_.plan, sum.sum, w_.out_at[j]);
    }
    decided[static_cast<int>(tier::proved)] += n_;
  }
  void finish_sums(std::int64_t (&decided)[4]) noexcept requires is_wide {
    std::int64_t undecided = n_;
    if (call_.forced(tier::double_double)) {
      std::fill_n(w_.decided, n_, 0);
    } else if (call_.plan.is_spread()) {
      undecided = certify_spreads();
    } else {
      undecided = call_.kernels.certify_columns(n_, call_.divisor(), wide_column_height + w_.blocks,
                                                call_.plan.inputs == 2 ? call_.plan.length : 0, w_.hi, w_.lo,
                                                w_.magnitude, w_.value, w_.decided);
    }
    decided[static_cast<int>(tier::double_double)] += n_ - undecided;
    decided[static_cast<int>(tier::exact)] += undecided;
    for (std::int64_t j = 0; j < n_; ++j) {
      if (w_.decided[j] == 0) {
        w_.value[j] = exact_wide_output(call_, {{w_.base[0][j], w_.base[1][j]}, nullptr}, team<T>{&w_, 1});
      }
      static_cast<T*>(call_.plan.out)[w_.out_at[j]] = w_.value[j];
    }
  }
  void finish_sums(std::int64_t (&decided)[4]) noexcept {
    double factor = call_.plan.is_exact_in_binary64() ? 0.0
                    : tracked()                       ? 1.0
                                                      : num::rounded_compensated_bound(w_.blocks, 1.0, column_height);
    if (call_.forced(tier::binary64)) factor = num::infinity;
    const std::int64_t undecided =
        call_.kernels.certify_columns(n_, call_.divisor(), factor, w_.hi, w_.lo, w_.magnitude, w_.value, w_.decided);
    decided[static_cast<int>(tier::binary64)] += n_ - undecided;
    if (undecided != 0) decide_rest(undecided, decided);
    for (std::int64_t j = 0; j < n_; ++j) static_cast<T*>(call_.plan.out)[w_.out_at[j]] = w_.value[j];
  }

  // The row at `at` of input k as contiguous columns; gathered into row `slot` of the pack buffer unless direct.
  const T* row(const walk<2>& at, int k, int slot) noexcept {
    const T* data = terms(k) + at.offset(k);
    if (direct_) return data + w_.base[k][0];
    T* to = w_.pack[k] + slot * column_tile;
    for (std::int64_t j = 0; j < n_; ++j) to[j] = data[w_.base[k][j]];
    return to;
  }

  const T* terms(int k) const noexcept { return static_cast<const T*>(call_.plan.in[k].data); }
  bool tracked() const noexcept { return call_.plan.length <= tracked_length; }

  // Rows whose columns lie far apart in memory defeat the hardware's prefetchers; `ahead` is in rows.
  void prefetch(const walk<2>& at, int k, std::int64_t ahead) const noexcept {
    if (!direct_) return;
    const T* data = terms(k) + w_.base[k][0] + at.offset(k) + ahead * at.inner_stride(k);
    for (std::int64_t j = 0; j < n_; j += 64 / sizeof(T)) __builtin_prefetch(data + j, 0, 2);
  }

  // The next rows of each input, at most row_group; zeros in place of more.
  void take_group(walk<2>& at, std::int64_t rows, const T* (&group)[2][row_group]) noexcept {
    for (int i = 0; i < row_group; ++i) {
      const bool inside = i < rows;
      for (int k = 0; k < call_.plan.inputs; ++k) {
        group[k][i] = inside ? row(at, k, i) : zero_row<T>;
        if (inside) prefetch(at, k, row_group);
      }
      if (inside) at.advance(1);
    }
  }

  void add_rows(std::int64_t begin, std::int64_t end) noexcept requires is_integer {
    std::fill_n(w_.low, n_, 0);
    std::fill_n(w_.high, n_, 0);
    w_.blocks = 0;
    walk<2> at = reduced_walk(call_.plan, begin);
    for (; begin < end; begin += row_group) {
      const T* group[2][row_group];
      take_group(at, end - begin, group);
      call_.kernels.sum_columns(group[0], n_, w_.low, w_.high);
    }
  }
  void add_rows(std::int64_t begin, std::int64_t end) noexcept {
    for (double* a : {w_.sum, w_.hi, w_.lo, w_.magnitude, w_.error}) std::fill_n(a, n_, 0.0);
    std::fill_n(w_.largest, n_, 0.0f);
    w_.blocks = 0;
    const reduce_loops<T>& kernel = call_.kernels;
    const int inputs = call_.plan.inputs;
    const bool spreads = call_.plan.is_spread();
    if (spreads) {
      for (double* a : {w_.squares.sum, w_.squares.error, w_.squares.hi, w_.squares.lo}) std::fill_n(a, n_, 0.0);
    }
    walk<2> at = reduced_walk(call_.plan, begin);
    while (begin < end) {
      const std::int64_t rows = std::min(end - begin, column_block);
      for (std::int64_t r = 0; r < rows; r += row_group) {
        const T* group[2][row_group];
        take_group(at, rows - r, group);
        if constexpr (is_wide) {
          spreads       ? kernel.spread_columns(group[0], group[1], n_, w_.sum, w_.error, w_.magnitude, w_.squares.sum,
                                                w_.squares.error)
          : inputs == 2 ? kernel.dot_columns(group[0], group[1], n_, w_.sum, w_.error, w_.magnitude)
                        : kernel.sum_columns(group[0], n_, w_.sum, w_.error, w_.magnitude);
        } else if (tracked()) {
          inputs == 2 ? kernel.dot_columns_tracked(group[0], group[1], n_, w_.sum, w_.error)
                      : kernel.sum_columns_tracked(group[0], n_, w_.sum, w_.error);
        } else {
          inputs == 2 ? kernel.dot_columns(group[0], group[1], n_, w_.sum, w_.magnitude)
                      : kernel.sum_columns(group[0], n_, w_.sum, w_.largest);
        }
      }
      if constexpr (is_wide) {
        kernel.close_columns(n_, w_.sum, w_.error, w_.hi, w_.lo);
        if (spreads) kernel.close_columns(n_, w_.squares.sum, w_.squares.error, w_.squares.hi, w_.squares.lo);
      } else if (tracked()) {
        kernel.close_columns_tracked(n_, w_.sum, w_.error, w_.hi, w_.lo, w_.magnitude);
      } else {
        kernel.close_columns(n_, rows, w_.sum, w_.largest, w_.hi, w_.lo, w_.magnitude);
      }
      ++w_.blocks;
      begin += rows;
    }
  }

  void order_rows(std::int64_t begin, std::int64_t end) noexcept {
    std::fill_n(w_.key, n_, num::no_key_of<num::order_key_of<T>>);
    std::fill_n(w_.index, n_, 0);
    w_.blocks = 0;
    walk<2> at = reduced_walk(call_.plan, begin);
    for (; begin < end; begin += row_group) {
      const T* group[row_group];
      for (int i = 0; i < row_group; ++i) {
        if (begin + i >= end) {  // the last row once more: never greater than itself
          group[i] = group[i - 1];
          continue;
        }
        group[i] = row(at, 0, i);
        prefetch(at, 0, row_group);
        at.advance(1);
      }
      call_.kernels.order.key_columns(group, n_, flip(), static_cast<std::int32_t>(begin), w_.key, w_.index);
    }
  }

  // Columns that the binary64 test left undecided: the lattice rule (tracked columns have had it: error 0), then one by one.
  void decide_rest(std::int64_t undecided, std::int64_t (&decided)[4]) noexcept {
    const int inputs = call_.plan.inputs;
    const bool all_at_once = undecided >= n_ / 8;
    if (all_at_once) {
      for (int k = 0; k < inputs; ++k) std::fill_n(w_.lsb[k], n_, num::no_lsb);
      walk<2> at = reduced_walk(call_.plan, 0);
      for (std::int64_t r = 0; r < call_.plan.length; ++r) {
        for (int k = 0; k < inputs; ++k) call_.kernels.lsb_columns(row(at, k, 0), n_, w_.lsb[k]);
        at.advance(1);
      }
    }
    for (std::int64_t j = 0; j < n_; ++j) {
      if (w_.decided[j] != 0) continue;
      const output_terms<T> output{{w_.base[0][j], w_.base[1][j]}, nullptr};
      const team<T> self{&w_, 1};
      const lsb_partial lsb =
          all_at_once ? lsb_partial{{w_.lsb[0][j], w_.lsb[1][j]}} : collect(call_, output, self, lsb_partial{});
      const int g = lsb.terms(inputs);
      decision<T> d;
      if (!call_.forced(tier::binary64) && !tracked() && num::lattice_holds(w_.magnitude[j], g)) {
        d = {round_result<T>(w_.hi[j], 0.0, call_.divisor()).value, tier::binary64};
      } else {
        d = escalate(call_, output, self, g);
      }
      w_.value[j] = d.value;
      ++decided[static_cast<int>(d.by)];
    }
  }

  const reduce_call<T>& call_;
  bool direct_;
  worker<T>& w_;
  std::int64_t n_;
};

}  // namespace repdl::cpu
