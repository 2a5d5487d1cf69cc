// The softmax family one row at a time, in chunks of row_chunk elements. Used by rows.cpp.
#pragma once

#include "backends/cpu/rows/rows_repair.hpp"

namespace repdl::cpu {

class rows_one_by_one : public row_settler {
 public:
  using row_settler::row_settler;

 protected:
  void one_row(row_worker& w, const row_place& at, int team, loss_total& total, bool wide) noexcept {
    if (is_tracked(p_.op)) return tracked_row(w, at, team);
    float top = -row_inf;
    std::int32_t magnitude = 0;
    over_row(
        w, team, row_partial{},
        [&](row_worker& mine, std::int64_t begin, std::int64_t end) {
          mine.state.top[0] = -row_inf;
          mine.state.magnitude[0] = 0;
          chunks(mine, at, begin, end, 1, false, [&](const row_slice& b, std::int64_t) { k_.top(b); });
          mine.partial.top = mine.state.top[0];
          mine.partial.magnitude = mine.state.magnitude[0];
        },
        [&](const row_partial& part) {
          top = std::max(top, part.top);
          magnitude = std::max(magnitude, part.magnitude);
        });
    if (special_row(w, at, top, magnitude, total)) return;
    if (wide) return wide_loss(w, at, top, total);

    const bool separate = is_separate(p_.op);
    const bool keep =
        team == 1 && p_.length <= kept_length &&
        (p_.op == op_id::softmax || p_.op == op_id::logsumexp_backward || p_.op == op_id::cross_entropy_backward);
    num::dd rest = {0, 0};
    double count = 0;
    over_row(
        w, team, row_partial{},
        [&](row_worker& mine, std::int64_t begin, std::int64_t end) {
          row_partial& part = mine.partial;
          mine.state.max[0] = top;
          chunks(mine, at, begin, end, 1, false, [&](row_slice& b, std::int64_t i) {
            if (keep) b.keep = mine.keep + i;
            k_.weights(b, separate);
            part.rest = num::add(part.rest, mine.state.rest[0]);
            part.count += mine.state.count[0];
          });
        },
        [&](const row_partial& part) {
          rest = num::add(rest, part.rest);
          count += part.count;
        });
    row_state& s = w.state;
    s.max[0] = top;
    s.rest[0] = rest.hi;
    s.count[0] = count;
    late_row late;
    if (!per_element(p_.op)) return row_value(w, at, top, late, team, total);

    const bool logs = p_.op == op_id::log_softmax;
    float g = 1;
    if (logs) {
      k_.logarithms(s, 1, bounds_.logarithm);
    } else {
      if (p_.op != op_id::softmax) {
        g = p_.row_g[at.g];
        if (!(std::fabs(g) < row_inf)) {
          return special_gradient(w, at, g, count == 1 && rest.hi == 0);
        }
      }
      s.scale[0] = g;
      k_.factors(s, 1, static_cast<double>(divisor_), bounds_.weight);
    }
    const double low = s.low[0];
    const double high = s.high[0];
    const std::int64_t target = p_.op == op_id::cross_entropy_backward ? p_.target[at.target] : -1;
    over_row(
        w, team, row_partial{},
        [&](row_worker& mine, std::int64_t begin, std::int64_t end) {
          mine.state.max[0] = top;
          mine.state.low[0] = low;
          mine.state.high[0] = high;
          late_row mine_late;
          chunks(mine, at, begin, end, 1, true, [&](row_slice& b, std::int64_t i) {
            if (keep) b.keep = mine.keep + i;
            outputs(
                mine, b, logs ? k_.log_softmax : k_.scale,
                [&](int found) {
                  settle(mine, at, logs ? element_kind::log_softmax : element_kind::weight, found, top, g,
                         team == 1 ? late : mine_late, 1);
                },
                target - i);
          });
        },
        [](const row_partial&) {});
    if (target >= 0) target_element(w, at, top, count, rest.hi, g, late, team);
  }

  // logsumexp and cross_entropy: one number per row, from state[0].
  void row_value(row_worker& w, const row_place& at, float max, late_row& late, int team, loss_total& total) noexcept {
    row_state& s = w.state;
    k_.logarithms(s, 1, bounds_.logarithm);
    const bool loss = p_.op == op_id::cross_entropy;
    const float x = loss ? logit(at, p_.target[at.target]) : -0.0f;
    if (loss && p_.reduction != repdl::reduction::none) return add_loss(max, x, s.low[0], s.high[0], total);
    s.scale[0] = x;
    if (x != -row_inf) k_.gaps(s, 1);
    finish_value(w, at, 0, max, x, late, team);
  }
  void finish_value(row_worker& w, const row_place& at, std::int64_t c, float max, float x, late_row& late,
                    int team) noexcept {
    if (x == -row_inf) {
      p_.out[at.out] = row_inf;
      ++w.by[0];
      return;
    }
    if (w.state.open[c] == 0) {
      p_.out[at.out] = w.state.value[c];
      ++w.by[1];
      return;
    }
    w.x[0] = x;
    settle(w, at, p_.op == op_id::cross_entropy ? element_kind::cross_entropy : element_kind::logsumexp, 1, max, 1.0f,
           late, team);
    p_.out[at.out] = w.value[0];
  }

  // (max - x) + R to the total; R's interval is r +- slack. The stand-in for a tiny R (ops/rows.hpp) is only good for
  // one gap: here it counts as R +- 2^-690.
  static void add_loss(float max, float x, double r, double slack, loss_total& total) noexcept {
    if (x == -row_inf) {
      total.infinite = true;
      return;
    }
    total.sum.add(num::two_sum(static_cast<double>(max), -static_cast<double>(x)));
    total.sum.add(r);
    total.slack += slack + (r == 0 ? 0.0 : 0x1p-690);
    ++total.rows;
  }
  void wide_loss(row_worker& w, const row_place& at, float max, loss_total& total) noexcept {
    const wide_row row = widen_row(w, at, max, count_of(w, at, max), 1);
    double r[3];
    k_.logarithm_dd(row, r);
    const float x = logit(at, p_.target[at.target]);
    total.wide = num::add(total.wide, num::two_sum(static_cast<double>(max), -static_cast<double>(x)));
    total.wide = num::add(total.wide, num::dd{r[0], r[1]});
    total.slack += r[2];
    ++total.rows;
  }

  void tracked_row(row_worker& w, const row_place& at, int team) noexcept {
    const bool products = p_.op == op_id::softmax_backward;
    num::tracked_sum<double> sum;
    std::int32_t special = 0;
    over_row(
        w, team, row_partial{},
        [&](row_worker& mine, std::int64_t begin, std::int64_t end) {
          chunks(mine, at, begin, end, 2, false, [&](const row_slice& b, std::int64_t) {
            k_.track(b, products);
            const row_state& s = mine.state;
            mine.partial.tracked.merge({s.sum[0], s.lo[0], s.error[0]});
            mine.partial.special |= s.special[0];
          });
        },
        [&](const row_partial& part) {
          sum.merge(part.tracked);
          special |= part.special;
        });
    if (!num::is_finite(sum.hi) || (special != 0 && !products)) return special_tracked(w, at, sum);
    const double slack = forced_ ? num::infinity : sum.bound(tracked_height_);
    const double tracked[3] = {sum.hi, sum.lo, sum.bound(tracked_height_)};
    over_row(
        w, team, row_partial{},
        [&](row_worker& mine, std::int64_t begin, std::int64_t end) {
          mine.state.sum[0] = sum.hi;
          mine.state.lo[0] = sum.lo;
          mine.state.slack[0] = slack;
          chunks(mine, at, begin, end, 2, true, [&](row_slice& b, std::int64_t) {
            outputs(mine, b, products ? k_.softmax_backward : k_.log_softmax_backward,
                    [&](int found) { settle_tracked(mine, at, found, tracked); });
          });
        },
        [](const row_partial&) {});
  }

  // A row with non-finite g or y: IEEE in the formula's tree over the exact sum, element by element.
  void special_tracked(row_worker& w, const row_place& at, const num::tracked_sum<double>& sum) noexcept {
    const bool products = p_.op == op_id::softmax_backward;
    const bool finite = num::is_finite(sum.hi);
    // Of infinity times the exact sum: its sign.
    const double weighted = finite ? exact_sign(at) : sum.hi;
    walk<3> along = along_row(p_, 0);
    for (std::int64_t i = 0; i < p_.length; ++i, along.advance(1)) {
      const float g = p_.in[0].data[at.in[0] + along.offset(0)];
      const float y = p_.in[1].data[at.in[1] + along.offset(1)];
      float& out = p_.out[at.out + along.offset(2)];
      if (products) {
        const double v = static_cast<double>(y) * (static_cast<double>(g) - sum.hi);
        out = num::canonical(static_cast<float>(v));
        ++w.by[0];
        continue;
      }
      if (finite && y < row_inf) {
        const double tracked[3] = {sum.hi, sum.lo, sum.bound(tracked_height_)};
        w.x[0] = g;
        w.y[0] = y;
        settle_tracked(w, at, 1, tracked);
        out = w.value[0];
        continue;
      }
      double weight = y == row_inf ? num::infinity : y == -row_inf ? 0.0 : 1.0;  // its sign and kind
      if (y != y) weight = num::double_of(0x7ff8000000000000);
      out = num::canonical(static_cast<float>(static_cast<double>(g) - weight * weighted));
      ++w.by[0];
    }
  }
  // -1, 0, 1.
  double exact_sign(const row_place& at) const noexcept {
    num::sum_accumulator sum;
    walk<3> w = along_row(p_, 0);
    for (std::int64_t j = 0; j < p_.length; ++j, w.advance(1)) sum.add(p_.in[0].data[at.in[0] + w.offset(0)]);
    return sum.negative() ? -1.0 : sum.is_zero() ? 0.0 : 1.0;
  }
};

}  // namespace repdl::cpu
