// attention (contract, section 4): scores, averages and counts are rational numbers, weights are intervals.
//
// Keys of equal scores are a group: a_g its score, n_g its keys, V_g the sum of a column of v over them; group 0 has the greatest
// score, M. A result is N / S, N = sum of V_g e^(a_g - M), S = sum of n_g e^(a_g - M) >= 1, and lse is M + ln S.
//
// Which results are midpoints, or 0 (Lindemann-Weierstrass: e^a, a over distinct algebraic numbers, are linearly independent over
// the algebraic numbers): N / S = c for a rational c if and only if V_g = n_g c for every group. Then c = D, D = V_0 / n_0, and the
// result is exact; else it is irrational. lse is rational for one present key alone: n_0 e^M + ... = e^r needs one term, of factor 1.
// How near to a midpoint the others can be: with w_g = V_g - n_g D, N / S is D + R / S, R = sum of w_g e^(a_g - M), w_0 = 0. All that
// has no lower bound is e^(a_g - M). If D is no midpoint and not 0, it is at least 2^-150 / n_0 (of binary64 2^-1075 / n_0) away from them, and so are results
// whose other groups are far below. If D is one, the sign of R says on which side of it a result lies, and where the first group with
// w_g != 0 is far below, it is found from R / e^(a_g - M), that group's; else some thousand bits decide. lse with n_0 = 1 likewise:
// it is M + ln(1 + rho), rho > 0, and M is what may be a midpoint, or 0.
// With dropout V_g is the sum over the keys that are kept, and a result N / S / (1 - p): all of this holds of it, D being V_0 / n_0 / (1 - p).
#include <optional>
#include <stdexcept>
#include <utility>

#include "reference/rows/attention_call.hpp"
#include "reference/rows/softmax_row.hpp"

namespace repdl::reference {
namespace {

/// One query: its present keys, by their scores.
class attention_row {
 public:
  /// The score of every key; none for absent ones.
  explicit attention_row(const std::vector<std::optional<extended>>& scores) {
    std::map<mpq_class, std::vector<std::size_t>, std::greater<>> by_score;
    for (std::size_t j = 0; j < scores.size(); ++j) {
      if (!scores[j]) continue;
      const extended& a = *scores[j];
      any_ = true;
      any_nan_ = any_nan_ || a.is_nan();
      if (a.is_nan()) continue;
      if (!a.is_infinite()) {
        by_score[finite_value(a)].push_back(j);
      } else if (a.negative()) {
        weightless_.push_back(j);
      } else {
        any_plus_ = true;
      }
    }
    for (auto& [score, keys] : by_score) groups_.push_back({score, static_cast<long>(keys.size()), std::move(keys)});
  }

  result lse() const {
    if (any_nan_) return nan_result();
    if (any_plus_) return infinite_result(false);
    if (groups_.empty()) return infinite_result(true);
    return [this](dtype t) -> rounded {
      const mpq_class& m = groups_[0].score;
      const bool alone = groups_[0].count == 1;
      const rounded at = exact_result(m)(t);
      if (alone && groups_.size() == 1) return at;
      // 0 < ln(1 + rho) < 2^60 e^-400 < 2^-500; the next midpoint is 2^-149 above M or more. Of binary64: 2^60 e^-1600, and 2^-1074.
      if (alone && (at.where.tie || m == 0) && far_below(1, t)) return beside_result(m + least_step(t), m)(t);
      return decided_result([&](mpfr_prec_t p) {
        interval rho(p);
        for (std::size_t g = 1; g < groups_.size(); ++g) rho = rho + count(p, g) * weights(p, 0)[g];
        return interval(p, m) + (alone ? log1p(rho) : log(count(p, 0) + rho));
      })(t);
    };
  }

  /// The result of a column of v, whose numbers have this format.
  /// kept: keys whose weight is not dropped, of which there is this share in the mean.
  result column(dtype type, const std::vector<std::uint64_t>& v, const std::vector<bool>& kept,
                const mpq_class& share) const {
    if (!any_) return zero_result(false);
    if (any_nan_ || any_plus_ || groups_.empty()) return nan_result();
    bool nan = false, plus = false, minus = false;
    const auto look_at = [&](std::size_t j, bool has_weight) {
      if (!kept[j]) return;
      const number n = widen(type, v[j]);
      const bool infinite = n.kind == number_kind::infinite;
      nan = nan || n.kind == number_kind::nan || (infinite && !has_weight);
      plus = plus || (infinite && !n.negative);
      minus = minus || (infinite && n.negative);
    };
    for (const std::size_t j : weightless_) look_at(j, false);
    for (const group& g : groups_)
      for (const std::size_t j : g.keys) look_at(j, true);
    if (nan || (plus && minus)) return nan_result();
    if (plus || minus) return infinite_result(minus);
    const long unit = format_of(type).ulp_min();
    std::vector<mpz_class> sums;  // V_g in units
    for (const group& g : groups_) {
      mpq_class sum;
      for (const std::size_t j : g.keys)
        if (kept[j]) sum += rational(type, v[j]);
      sums.push_back(mpq_class(sum * power_of_two(-unit)).get_num());
    }
    return average(std::move(sums), unit, share);
  }

 private:
  struct group {
    mpq_class score;
    long count;
    std::vector<std::size_t> keys;
  };

  result average(std::vector<mpz_class> sums, long unit, const mpq_class& share) const {
    return [this, sums = std::move(sums), unit, share](dtype t) -> rounded {
      const mpq_class d = mpq_class(sums[0]) / groups_[0].count * power_of_two(unit) / share;
      const rounded at = exact_result(d)(t);
      std::vector<mpz_class> rests;  // n_0 w_g
      for (std::size_t g = 0; g < sums.size(); ++g)
        rests.push_back(sums[g] * groups_[0].count - sums[0] * groups_[g].count);
      std::size_t first = 1;
      while (first < rests.size() && rests[first] == 0) ++first;
      if (first == rests.size()) return at;
      // |R / S| < 2^60 2^130 2^53 e^-400 < 2^-330; from D to the next midpoint, or from 0 to one, it is 2^-150 or more. Of binary64:
      // 2^60 2^1026 2^53 e^-1600 < 2^-1168, and 2^-1075.
      if ((at.where.tie || d == 0) && far_below(first, t)) {
        const mpq_class step = least_step(t);
        return beside_result(is_negative(rests, first) ? mpq_class(d - step) : mpq_class(d + step), d)(t);
      }
      return decided_result([&](mpfr_prec_t p) {
        interval n(p), s(p);
        for (std::size_t g = 0; g < sums.size(); ++g) {
          n = n + interval(p, sums[g], unit) * weights(p, 0)[g];
          s = s + count(p, g) * weights(p, 0)[g];
        }
        return n / s / interval(p, share);
      })(t);
    };
  }

  /// a_i < M - 400, or of binary64 M - 1600.
  bool far_below(std::size_t i, dtype t) const {
    return groups_[0].score - groups_[i].score > (t == dtype::f64 ? 1600 : 400);
  }
  /// Less than from one midpoint to the next.
  static mpq_class least_step(dtype t) { return power_of_two(t == dtype::f64 ? -1076 : -151); }

  /// Of the sum of w_g e^a_g from g = first on, which is not 0: in multiples of e^a_first, so that w_first enters as it is.
  bool is_negative(const std::vector<mpz_class>& w, std::size_t first) const {
    for (mpfr_prec_t p = 128; p <= 1 << 17; p *= 2) {
      interval sum(p);
      for (std::size_t g = first; g < w.size(); ++g) sum = sum + interval(p, w[g], 0) * weights(p, first)[g];
      if (mpfr_sgn(sum.lo()) > 0) return false;
      if (mpfr_sgn(sum.hi()) < 0) return true;
    }
    throw std::logic_error("reference::attention: a sign is not decided");
  }

  interval count(mpfr_prec_t p, std::size_t g) const { return interval(p, mpz_class(groups_[g].count), 0); }

  /// e^(a_g - a_first) for g >= first; 0 for others. Too small for MPFR, it is an interval that begins at 0.
  const std::vector<interval>& weights(mpfr_prec_t p, std::size_t first) const {
    std::vector<interval>& all = cache_[{p, first}];
    for (std::size_t g = all.size(); g < groups_.size(); ++g)
      all.push_back(g < first ? interval(p) : exp(interval(p, mpq_class(groups_[g].score - groups_[first].score))));
    return all;
  }

  bool any_ = false, any_nan_ = false, any_plus_ = false;  ///< a present key; a score NaN; a score +inf
  std::vector<std::size_t> weightless_;                    ///< keys of the score -inf
  std::vector<group> groups_;                              ///< of finite scores, the greatest first
  mutable std::map<std::pair<mpfr_prec_t, std::size_t>, std::vector<interval>> cache_;
};

}  // namespace

std::vector<array> attention(const std::vector<array>& in, const attributes& attrs, outcomes* where) {
  const attention_call c(in, attrs);
  shape_list out_shape = c.q.shape, lse_shape = c.q.shape;
  out_shape.back() = c.columns;
  lse_shape.pop_back();
  array out(c.q.type, out_shape), lse(c.lse_type(), lse_shape);
  outcomes at_out(index(out.count())), at_lse(index(lse.count()));
  const auto put = [](array& a, outcomes& at, std::int64_t i, const result& r) {
    const rounded y = r(a.type);
    a.set(index(i), y.bits);
    at[index(i)] = y.where;
  };
  for (std::int64_t h = 0; h < c.blocks * c.heads; ++h) {
    const std::int64_t source = h / c.heads * c.groups + h % c.heads * c.groups / c.heads;  // the head of k and v
    const std::int64_t first_key = source * c.keys;
    std::vector<std::vector<extended>> k;
    for (std::int64_t j = 0; j < c.keys; ++j) k.push_back(line_of(c.k, (first_key + j) * c.inner, c.inner));
    for (std::int64_t row = h * c.queries; row < (h + 1) * c.queries; ++row) {
      const std::vector<extended> q = line_of(c.q, row * c.inner, c.inner);
      std::vector<std::optional<extended>> scores;
      for (std::int64_t j = 0; j < c.keys; ++j) scores.push_back(score_of(c, row, j, q, k[index(j)]));
      const attention_row of_query(scores);
      std::vector<bool> kept;
      for (std::int64_t j = 0; j < c.keys; ++j) kept.push_back(c.is_kept(row, j));
      const mpq_class share = c.kept_share();
      put(lse, at_lse, row, of_query.lse());
      for (std::int64_t e = 0; e < c.columns; ++e) {
        std::vector<std::uint64_t> column;
        for (std::int64_t j = 0; j < c.keys; ++j) column.push_back(c.v.get(index((first_key + j) * c.columns + e)));
        put(out, at_out, row * c.columns + e, of_query.column(c.v.type, column, kept, share));
      }
    }
  }
  if (where != nullptr) {
    where->insert(where->end(), at_out.begin(), at_out.end());
    where->insert(where->end(), at_lse.begin(), at_lse.end());
  }
  return {out, lse};
}

}  // namespace repdl::reference
