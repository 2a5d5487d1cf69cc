// The softmax family with many rows side by side. Used by rows.cpp.
#pragma once

#include "backends/cpu/rows/rows_one_by_one.hpp"

namespace repdl::cpu {

class rows_in_tiles : public rows_one_by_one {
 public:
  using rows_one_by_one::rows_one_by_one;

 protected:
  void tile(row_worker& w, std::int64_t rows, loss_total& total) noexcept {
    const std::int64_t columns = (rows + column_step - 1) / column_step * column_step;
    row_state& s = w.state;
    row_slice b{};
    b.a = w.a;
    b.b = is_tracked(p_.op) ? w.b : w.a;
    b.n = p_.length;
    b.columns = columns;
    b.out = w.out;
    b.state = &s;
    gather_tile(p_, 0, w.place, rows, columns, w.a);
    if (is_tracked(p_.op)) {
      gather_tile(p_, 1, w.place, rows, columns, w.b);
      return tracked_tile(w, b, rows);
    }
    std::fill_n(s.top, columns, -row_inf);
    std::fill_n(s.magnitude, columns, 0);
    k_.top(b);
    for (std::int64_t c = 0; c < columns; ++c)
      s.max[c] = s.magnitude[c] > row_inf_bits || !(std::fabs(s.top[c]) < row_inf) ? 0.0 : s.top[c];
    const bool keeps =
        p_.op == op_id::softmax || p_.op == op_id::logsumexp_backward || p_.op == op_id::cross_entropy_backward;
    if (keeps) b.keep = w.keep;
    k_.weights(b, is_separate(p_.op));
    const bool logs = p_.op == op_id::log_softmax;
    if (!per_element(p_.op)) return tile_values(w, rows, columns, total);
    if (logs) {
      k_.logarithms(s, columns, bounds_.logarithm);
    } else {
      std::fill_n(s.scale, columns, 1.0);
      for (std::int64_t c = 0; c < rows && p_.op != op_id::softmax; ++c) s.scale[c] = p_.row_g[w.place[c].g];
      k_.factors(s, columns, static_cast<double>(divisor_), bounds_.weight);
    }
    const auto kernel = logs ? k_.log_softmax : k_.scale;
    if (kernel(b) != 0 || forced_) {
      b.open = w.open;
      kernel(b);
    }
    scatter_tile(p_, w.place, rows, columns, w.out);
    for (std::int64_t c = 0; c < rows; ++c) {
      const row_place at = w.place[c];
      if (special_row(w, at, s.top[c], s.magnitude[c], total)) continue;
      const auto g = logs ? 1.0f : static_cast<float>(s.scale[c]);
      if (!(std::fabs(g) < row_inf)) {
        special_gradient(w, at, g, s.count[c] == 1 && s.rest[c] == 0);
        continue;
      }
      late_row late;
      const std::int64_t target = p_.op == op_id::cross_entropy_backward ? p_.target[at.target] : -1;
      const auto max = static_cast<float>(s.max[c]);
      settle_column(w, b, c, target, [&](int found) {
        settle(w, at, logs ? element_kind::log_softmax : element_kind::weight, found, max, g, late, 1);
      });
      if (target >= 0) target_element(w, at, max, s.count[c], s.rest[c], g, late, 1);
    }
  }

  // The open elements of column c, `skip` apart, through settle_some(count), and the counters of the column.
  template <class Settle>
  void settle_column(row_worker& w, const row_slice& b, std::int64_t c, std::int64_t skip,
                     Settle&& settle_some) noexcept {
    const std::int64_t wanted = p_.length - (skip >= 0 ? 1 : 0);
    if (b.open == nullptr) {
      w.by[1] += wanted;
      return;
    }
    std::int64_t open = 0;
    int found = 0;
    const auto flush = [&] {
      if (found == 0) return;
      settle_some(found);
      const row_place& at = w.place[c];
      for (int f = 0; f < found; ++f) p_.out[at.out + offset_of(w.index[f], 2)] = w.value[f];
      found = 0;
    };
    for (std::int64_t j = 0; j < p_.length; ++j) {
      const std::int64_t at = j * b.columns + c;
      if (b.open[at] == 0 || j == skip) continue;
      ++open;
      w.x[found] = b.a[at];
      w.y[found] = b.b[at];
      w.index[found++] = j;
      if (found == row_chunk) flush();
    }
    flush();
    w.by[1] += wanted - open;
  }

  void tile_values(row_worker& w, std::int64_t rows, std::int64_t columns, loss_total& total) noexcept {
    row_state& s = w.state;
    k_.logarithms(s, columns, bounds_.logarithm);
    const bool loss = p_.op == op_id::cross_entropy;
    const bool sum = loss && p_.reduction != repdl::reduction::none;
    std::fill_n(s.scale, columns, -0.0);
    for (std::int64_t c = 0; c < rows && loss; ++c) {
      if (class_of(w.place[c]) == row_class::normal) s.scale[c] = logit(w.place[c], p_.target[w.place[c].target]);
    }
    if (!sum) k_.gaps(s, columns);
    for (std::int64_t c = 0; c < rows; ++c) {
      const row_place at = w.place[c];
      if (special_row(w, at, s.top[c], s.magnitude[c], total)) continue;
      const auto max = static_cast<float>(s.max[c]);
      const auto x = static_cast<float>(s.scale[c]);
      late_row late;
      if (sum) {
        add_loss(max, x, s.low[c], s.high[c], total);
      } else {
        finish_value(w, at, c, max, x, late, 1);
      }
    }
  }

  void tracked_tile(row_worker& w, row_slice& b, std::int64_t rows) noexcept {
    const bool products = p_.op == op_id::softmax_backward;
    row_state& s = w.state;
    k_.track(b, products);
    for (std::int64_t c = 0; c < b.columns; ++c) {
      const num::tracked_sum<double> sum{s.sum[c], s.lo[c], s.error[c]};
      s.slack[c] = forced_ ? num::infinity : sum.bound(tracked_height_);
    }
    const auto kernel = products ? k_.softmax_backward : k_.log_softmax_backward;
    if (kernel(b) != 0 || forced_) {
      b.open = w.open;
      kernel(b);
    }
    scatter_tile(p_, w.place, rows, b.columns, w.out);
    for (std::int64_t c = 0; c < rows; ++c) {
      const row_place at = w.place[c];
      const num::tracked_sum<double> sum{s.sum[c], s.lo[c], s.error[c]};
      if (!num::is_finite(sum.hi) || (s.special[c] != 0 && !products)) {
        special_tracked(w, at, sum);
        continue;
      }
      const double tracked[3] = {sum.hi, sum.lo, sum.bound(tracked_height_)};
      settle_column(w, b, c, -1, [&](int found) { settle_tracked(w, at, found, tracked); });
    }
  }
};

}  // namespace repdl::cpu
