// What every part of the softmax family's driver knows: the call, its workspace, the pieces of its rows, and the rows
// whose result needs no arithmetic. Used by rows.cpp.
#pragma once

#include <cmath>

#include "backends/cpu/core/parallel.hpp"
#include "backends/cpu/rows/rows_exact.hpp"
#include "backends/cpu/rows/rows_walk.hpp"

namespace repdl::cpu {

inline constexpr float row_inf = __builtin_inff();
inline constexpr std::int32_t row_inf_bits = 0x7f800000;
// Up to this length e^(x - max) is kept from the sum for the outputs.
inline constexpr std::int64_t kept_length = 4096;

inline float row_nan() noexcept { return num::float_of(num::canonical_nan_f32); }

// How the work is cut.
struct row_layout {
  std::int64_t columns;  // rows per tile; 0: one row at a time
  int threads;
  int team;  // threads that share one row: 1 or `threads`
  std::size_t bytes;
  std::int64_t elements() const noexcept { return columns == 0 ? row_chunk : columns; }
};

inline row_worker& worker_at(const row_layout& l, void* workspace, int i, std::int64_t length) noexcept {
  auto* at = static_cast<unsigned char*>(workspace) + l.bytes * static_cast<std::size_t>(i);
  auto* w = reinterpret_cast<row_worker*>(at);
  at += (sizeof(row_worker) + 63) / 64 * 64;
  const std::int64_t block = l.columns == 0 ? row_chunk : l.columns * length;
  const auto take = [&at, block](auto*& p) {
    p = reinterpret_cast<std::remove_reference_t<decltype(p)>>(at);
    at += static_cast<std::size_t>(block + 32) / 16 * 64;
  };
  take(w->a);
  take(w->b);
  take(w->out);
  take(w->open);
  w->keep = reinterpret_cast<double*>(at);
  return *w;
}

// cross_entropy over all rows: one thread's part.
struct loss_total {
  num::tracked_sum<double> sum;
  num::dd wide = {0, 0};
  double slack = 0;
  std::int64_t rows = 0;
  bool nan = false;
  bool infinite = false;

  void merge(const loss_total& o) noexcept {
    sum.merge(o.sum);
    wide = num::add(wide, o.wide);
    slack += o.slack;
    rows += o.rows + 1;
    nan |= o.nan;
    infinite |= o.infinite;
  }
};

// What a row is before its numbers are looked at.
enum class row_class { normal, ignored, invalid };

class row_call_base {
 public:
  row_call_base(const plan::row_plan& p, const dispatch::launch& launch, void* workspace, const row_kernels& k,
                const row_layout& l) noexcept
      : p_(p), launch_(launch), workspace_(workspace), k_(k), layout_(l) {
    forced_ = launch.first_tier > tier::binary64;
    skip_dd_ = launch.first_tier > tier::double_double;
    const bool gradient = p.op == op_id::logsumexp_backward || p.op == op_id::cross_entropy_backward;
    const bool tile = l.columns != 0;
    // Chunks are added up in double-double.
    height_ = weights_height(k.lanes, tile ? p.length : std::min(p.length, row_chunk), tile) + 2;
    bounds_ = num::bounds_of_rows(p.length, height_, gradient);
    if (forced_) bounds_ = {num::infinity, num::infinity};
    // Where the next row's elements are on their way too (`ahead` below): else the stores hold up the loads.
    streams_ = per_element(p.op) && !is_tracked(p.op) && !tile && l.team == 1 && contiguous(p.out_reduced_stride) &&
               p.rows * p.length >= streamed_length;
    tracked_height_ = tile ? p.length + 8 : p.length / k.lanes + 4 * k.lanes + p.length / row_chunk + l.team + 8;
  }

 protected:
  row_worker& worker(int i) noexcept { return worker_at(layout_, workspace_, i, p_.length); }

  void count_rows() noexcept {
    walk<5> w = across_rows(p_, 0);
    std::int64_t n = 0;
    for (std::int64_t r = 0; r < p_.rows; ++r, w.advance(1)) n += p_.target[w.offset(4)] != p_.ignore_index ? 1 : 0;
    counted_ = n;
    divisor_ = p_.reduction == repdl::reduction::mean ? n : 1;
  }

  row_class class_of(const row_place& at) const noexcept {
    if (!is_cross_entropy(p_.op)) return row_class::normal;
    const std::int64_t t = p_.target[at.target];
    if (t == p_.ignore_index) return row_class::ignored;
    return t < 0 || t >= p_.length ? row_class::invalid : row_class::normal;
  }
  std::int64_t offset_of(std::int64_t i, int k) const noexcept {
    if (p_.reduced_rank == 0) return 0;
    if (p_.reduced_rank == 1) return i * (k == 2 ? p_.out_reduced_stride[0] : p_.in[k].reduced_stride[0]);
    return along_row(p_, i).offset(k);
  }
  float logit(const row_place& at, std::int64_t i) const noexcept { return p_.in[0].data[at.in[0] + offset_of(i, 0)]; }

  // f(worker, begin, end) for pieces of a row, by the team; then merge(partial) in order.
  template <class F, class Merge>
  void over_row(row_worker& w, int team, const row_partial& zero, F&& f, Merge&& merge) noexcept {
    if (team == 1) {
      w.partial = zero;
      f(w, std::int64_t{0}, p_.length);
      merge(w.partial);
      return;
    }
    for (int t = 0; t < team; ++t) worker(t).partial = zero;
    parallel(team, [&](int thread, int used) {
      const range mine = share(p_.length, thread, used, row_chunk);
      f(worker(thread), mine.begin, mine.end);
    });
    for (int t = 0; t < team; ++t) merge(worker(t).partial);
  }

  // The chunks of [begin, end) of a row: f(block, first). Outputs are written back.
  template <class F>
  void chunks(row_worker& w, const row_place& at, std::int64_t begin, std::int64_t end, int inputs, bool writes,
              F&& f) noexcept {
    const bool direct_in[2] = {contiguous(p_.in[0].reduced_stride), contiguous(p_.in[1].reduced_stride)};
    const bool direct_out = contiguous(p_.out_reduced_stride);
    const bool ahead = direct_in[0] && p_.length <= row_chunk && p_.kept_rank != 0;
    for (std::int64_t i = begin; i < end; i += row_chunk) {
      row_slice b{};
      b.n = std::min(row_chunk, end - i);
      b.state = &w.state;
      for (int k = 0; k < inputs; ++k) {
        const float* from = p_.in[k].data + at.in[k] + i;
        if (!direct_in[k]) {
          // A tile's operands are still wanted when the later tiers read its rows again; its outputs are not.
          float* to = k != 0 ? w.b : layout_.columns != 0 ? w.out : w.a;
          gather_row(p_, k, at.in[k], i, b.n, to);
          from = to;
        }
        (k == 0 ? b.a : b.b) = from;
      }
      if (inputs == 1) b.b = b.a;
      if (ahead) {  // the next row
        const std::int64_t step = p_.in[0].kept_stride[static_cast<std::size_t>(p_.kept_rank - 1)];
        b.ahead = reinterpret_cast<std::uintptr_t>(b.a) + sizeof(float) * static_cast<std::uintptr_t>(step);
      }
      if (writes) {
        b.out = direct_out ? p_.out + at.out + i : w.out;
        b.stream = streams_;
      }
      f(b, i);
      if (writes && !direct_out) scatter_row(p_, at.out, i, b.n, w.out);
    }
  }
  bool contiguous(const plan::axes& stride) const noexcept {
    return p_.reduced_rank == 0 || (p_.reduced_rank == 1 && stride[0] == 1);
  }

  void fill_row(const row_place& at, float value) noexcept {
    walk<3> w = along_row(p_, 0);
    for (std::int64_t i = 0; i < p_.length; ++i, w.advance(1)) p_.out[at.out + w.offset(2)] = value;
  }
  void proved(row_worker& w) const noexcept { w.by[0] += per_element(p_.op) ? p_.length : 1; }

  // Rows whose result needs no number: writes it and returns true.
  bool special_row(row_worker& w, const row_place& at, float top, std::int32_t magnitude, loss_total& total) noexcept {
    const row_class c = class_of(at);
    const bool loss = p_.op == op_id::cross_entropy;
    const bool sum = loss && p_.reduction != repdl::reduction::none;
    if (c == row_class::ignored) {
      if (sum) return true;
      loss ? static_cast<void>(p_.out[at.out] = 0.0f) : fill_row(at, 0.0f);
      proved(w);
      return true;
    }
    const bool has_nan = magnitude > row_inf_bits;
    const bool bad = has_nan || top == row_inf || top == -row_inf;
    if (!bad && c == row_class::normal) return false;
    if (sum) {
      total.nan = true;
      return true;
    }
    if (p_.op == op_id::logsumexp) {
      p_.out[at.out] = has_nan ? row_nan() : top;
    } else if (loss) {
      p_.out[at.out] = row_nan();
    } else {
      fill_row(at, row_nan());
    }
    proved(w);
    return true;
  }

  // logsumexp_backward, cross_entropy_backward with a g that is infinite or NaN, in a good row: the formula's tree.
  void special_gradient(row_worker& w, const row_place& at, float g, bool single) noexcept {
    const std::int64_t target = p_.op == op_id::cross_entropy_backward ? p_.target[at.target] : -1;
    for (std::int64_t i = 0; i < p_.length; ++i) {
      const float x = logit(at, i);
      float value = x == -row_inf ? row_nan() : g;
      if (i == target) value = x == -row_inf ? -g : single ? row_nan() : -g;
      p_.out[at.out + offset_of(i, 2)] = g != g || value != value ? row_nan() : value;
    }
    proved(w);
  }

  const plan::row_plan& p_;
  const dispatch::launch& launch_;
  void* workspace_;
  const row_kernels& k_;
  const row_layout& layout_;
  bool forced_;
  bool skip_dd_;
  std::int64_t height_;
  num::row_bounds bounds_;
  std::int64_t tracked_height_;
  std::int64_t counted_ = 0;
  std::int64_t divisor_ = 1;
  bool streams_;  // the outputs
};

}  // namespace repdl::cpu
