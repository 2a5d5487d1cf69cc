// The elements of the softmax family that binary64 leaves open: double-double, then the last tier. Used by rows.cpp.
#pragma once

#include "backends/cpu/rows/rows_base.hpp"

namespace repdl::cpu {

class row_settler : public row_call_base {
 public:
  using row_call_base::row_call_base;

 protected:
  // The row in double-double.
  wide_row widen_row(row_worker& w, const row_place& at, float max, double count, int team) noexcept {
    wide_row r{max, count, {0, 0}, 0};
    num::dd rest = {0, 0};
    over_row(
        w, team, row_partial{},
        [&](row_worker& mine, std::int64_t begin, std::int64_t end) {
          double sum[2] = {};
          chunks(mine, at, begin, end, 1, false,
                 [&](const row_slice& b, std::int64_t) { k_.rest_dd(b.a, b.n, max, sum); });
          mine.partial.rest = {sum[0], sum[1]};
        },
        [&](const row_partial& part) { rest = num::add(rest, part.rest); });
    r.rest[0] = rest.hi;
    r.rest[1] = rest.lo;
    r.height = row_chunk + p_.length / (row_chunk / 16) + team;
    return r;
  }
  // The multiplicity of the maximum, where the kernels did not count it.
  double count_of(row_worker& w, const row_place& at, float max) noexcept {
    double n = 0;
    chunks(w, at, 0, p_.length, 1, false, [&](const row_slice& b, std::int64_t) {
      for (std::int64_t i = 0; i < b.n; ++i) n += b.a[i] == max ? 1.0 : 0.0;
    });
    return n;
  }

  // Decides the first `count` elements of w.x (w.y) into w.value; counts them.
  struct late_row {
    bool known = false;
    wide_row wide;
  };
  void settle(row_worker& w, const row_place& at, element_kind kind, int count, float max, float g, late_row& late,
              int team) noexcept {
    std::fill_n(w.decided, count, std::uint8_t{0});
    std::int64_t open = count;
    if (!skip_dd_) {
      if (!late.known) {
        late.wide = widen_row(w, at, max, count_of(w, at, max), team);
        late.known = true;
      }
      const double n = static_cast<double>(divisor_);
      switch (kind) {
        case element_kind::weight:
        case element_kind::target_weight:
          k_.settle_weights(late.wide, w.x, count, g, n, kind == element_kind::target_weight, w.value, w.decided);
          break;
        case element_kind::log_softmax:
          std::fill_n(w.y, count, max);
          k_.settle_gaps(late.wide, w.x, w.y, count, 1.0, w.value, w.decided);
          break;
        case element_kind::cross_entropy:
          w.y[0] = max;
          k_.settle_gaps(late.wide, w.y, w.x, count, -1.0, w.value, w.decided);
          break;
        case element_kind::logsumexp:
          w.x[0] = max;
          w.y[0] = -0.0f;
          k_.settle_gaps(late.wide, w.x, w.y, count, -1.0, w.value, w.decided);
          break;
      }
      for (int i = 0; i < count; ++i) open -= w.decided[i];
      w.by[2] += count - open;
    }
    if (open == 0) return;
    const row_reader row{&p_, p_.in[0].data + at.in[0]};
    const std::int64_t left =
        settle_exactly(row, max, kind, w.x, count, g, divisor_, launch_.last_tier_bits, w.value, w.decided);
    w.by[3] += open - left;
    w.undecided += left;
  }

  void settle_tracked(row_worker& w, const row_place& at, int count, const double (&tracked)[3]) noexcept {
    std::fill_n(w.decided, count, std::uint8_t{0});
    std::int64_t open = count;
    if (!skip_dd_) {
      (p_.op == op_id::softmax_backward ? k_.settle_softmax_backward : k_.settle_log_softmax_backward)(
          tracked, w.x, w.y, count, w.value, w.decided);
      for (int i = 0; i < count; ++i) open -= w.decided[i];
      w.by[2] += count - open;
    }
    if (open == 0) return;
    const std::int64_t left =
        settle_tracked_exactly(p_, at, w.x, w.y, count, launch_.last_tier_bits, w.value, w.decided);
    w.by[3] += open - left;
    w.undecided += left;
  }

  // kernel(slice of a row), and the elements that it leaves open through settle_some(count), `skip` apart.
  template <class Kernel, class Settle>
  void outputs(row_worker& w, row_slice& b, Kernel&& kernel, Settle&& settle_some, std::int64_t skip = -1) noexcept {
    const std::int64_t wanted = b.n - (skip >= 0 && skip < b.n ? 1 : 0);
    w.by[1] += wanted;
    if (kernel(b) == 0) return;
    b.open = w.open;
    kernel(b);
    int found = 0;
    for (std::int64_t i = 0; i < b.n; ++i) {
      if (w.open[i] == 0 || i == skip) continue;
      w.x[found] = b.a[i];
      w.y[found] = b.b[i];
      w.index[found++] = i;
    }
    if (found == 0) return;
    w.by[1] -= found;
    settle_some(found);
    for (int f = 0; f < found; ++f) b.out[w.index[f]] = w.value[f];
  }

  // cross_entropy_backward's target element: g / n (p - 1) = -(g / n) (S - e^d) / S.
  // S - e^d = rest where the target is the only greatest element, else at least S / 2: three times the bound, and what
  // R's bound adds for a deep rest.
  void target_element(row_worker& w, const row_place& at, float max, double count, double rest, float g, late_row& late,
                      int team) noexcept {
    const std::int64_t t = p_.target[at.target];
    const float x = logit(at, t);
    const double d = std::max(static_cast<double>(x) - static_cast<double>(max), num::least_gap);
    const double weight = x == -row_inf ? 0.0 : num::fast_exp(d);
    const double z = x == max ? (count - 1) + rest : (count + rest) - weight;
    float& out = p_.out[at.out + offset_of(t, 2)];
    if (z == 0) {  // the only finite element: 1 - 1
      out = 0.0f * g;
      ++w.by[0];
      return;
    }
    const double v = -(z / (count + rest)) * (static_cast<double>(g) / static_cast<double>(divisor_));
    const double e = (4 * bounds_.weight + 0x1p-43) * num::magnitude_of(v);
    const num::certified c = v == 0 ? num::certified{static_cast<float>(v), !forced_}
                                    : num::same_bits(static_cast<float>(v - e), static_cast<float>(v + e));
    out = c.value;
    if (c.decided) {
      ++w.by[1];
      return;
    }
    w.x[0] = x;
    settle(w, at, element_kind::target_weight, 1, max, g, late, team);
    out = w.value[0];
  }
};

}  // namespace repdl::cpu
