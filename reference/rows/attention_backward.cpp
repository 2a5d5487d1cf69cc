// attention_backward (contract, section 4): scores, T and the factors of exponentials are rational numbers, exponentials are intervals.
//
// A result is the sum of A_b e^b over different rational numbers b = a_ij - lse_i, the A_b rational and not 0. Of no b it is +0, of b = 0
// alone A_0; any other is irrational (Lindemann-Weierstrass: e^b, b over distinct algebraic numbers, are linearly independent over
// the algebraic numbers), so neither 0 nor a midpoint. It is decided in multiples of e^b of the greatest b, whose factor enters as it is.
// How near to a midpoint, or 0, it can be: all that has no lower bound is e^b. Where 0 is the greatest b, A_0 may be one, and where the
// next b is far below, the sign of the rest says on which side of A_0 the result lies: found in multiples of e^b of that b. Else
// some thousand bits decide. Where the greatest b is far from 0, the sign is all there is to find: the result overflows or underflows.
// With dropout T is g v / (1 - p) - g y, or -g y: it is (1 - p) times all of this that is computed with, and divided at last.
#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include "reference/rows/attention_call.hpp"
#include "reference/rows/softmax_row.hpp"

namespace repdl::reference {
namespace {

/// Sums over a line of pairs: of a query with its keys, or of a key with its queries. Pairs of equal b are a group.
class line_of_pairs {
 public:
  /// The exponents b of all pairs; sums are divided by `share`.
  line_of_pairs(const std::vector<extended>& exponents, mpq_class share) : share_(std::move(share)) {
    std::map<mpq_class, std::vector<std::size_t>, std::greater<>> by_exponent;
    for (std::size_t n = 0; n < exponents.size(); ++n) {
      const extended& b = exponents[n];
      if (b.is_nan()) {
        any_nan_ = true;
      } else if (b.is_infinite()) {
        (b.negative() ? weightless_ : endless_).push_back(n);
      } else {
        by_exponent[finite_value(b)].push_back(n);
      }
    }
    for (auto& [exponent, pairs] : by_exponent) groups_.push_back({exponent, std::move(pairs)});
  }

  /// scale times the sum of e^b factor.
  rounded sum(dtype t, const extended& scale, const std::vector<extended>& factors) const {
    const extended all = scale * what_is_not_finite(factors);
    if (all.is_nan()) return nan_result()(t);
    if (all.is_infinite()) return infinite_result(all.negative())(t);
    std::vector<addend> addends;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      extended a;
      for (const std::size_t n : groups_[g].pairs) a = a + factors[n];
      a = scale * a;
      if (!a.is_zero()) addends.push_back({g, a});
    }
    return rounded_sum(t, addends);
  }

 private:
  struct group {
    mpq_class exponent;
    std::vector<std::size_t> pairs;
  };
  /// A_b e^b, A_b not 0.
  struct addend {
    std::size_t group;
    extended factor;
  };
  using addend_list = std::vector<addend>;

  /// The sum where it is infinite or NaN, else 0.
  extended what_is_not_finite(const std::vector<extended>& factors) const {
    if (any_nan_) return {f32, nan_bits(f32)};
    const extended zero, infinity(f32, infinity_bits(f32, false));
    extended all;
    for (const std::size_t n : weightless_) all = all + zero * factors[n];
    for (const std::size_t n : endless_) all = all + infinity * factors[n];
    for (const group& g : groups_)
      for (const std::size_t n : g.pairs)
        if (factors[n].is_nan() || factors[n].is_infinite()) all = all + factors[n];
    return all;
  }

  const mpq_class& exponent_of(const addend& a) const { return groups_[a.group].exponent; }

  rounded rounded_sum(dtype t, const addend_list& a) const {
    if (a.empty()) return zero_result(false)(t);
    const mpq_class& top = exponent_of(a[0]);
    const mpq_class first = finite_value(a[0].factor) / share_;
    if (top == 0 && a.size() == 1) return exact_result(first)(t);
    if (top == 0) {
      if (const std::optional<mpq_class> nearby = stand_in(a, t)) return beside_result(*nearby, first)(t);
    }
    // Factors are numbers between 2^-4000 and 2^4000, the sum in multiples of e^top is at least 2^-2^19: see is_negative.
    if (abs(top) > 1 << 20) {
      const mpq_class magnitude = power_of_two(top > 0 ? 4000 : -4000);
      return exact_result(is_negative(a, 0) ? mpq_class(-magnitude) : magnitude)(t);
    }
    return decided_result(
        [&](mpfr_prec_t p) { return exp(interval(p, top)) * in_multiples(p, a, 0) / interval(p, share_); })(t);
  }

  /// Of A_0 and others that are so far below that no midpoint, and not 0, is between A_0 and the sum: a number on the sum's side of A_0.
  std::optional<mpq_class> stand_in(const addend_list& a, dtype t) const {
    const std::size_t of_midpoints = t == dtype::f64 ? 1075 : 150;
    const mpq_class c = finite_value(a[0].factor);
    // c and all midpoints times the share are multiples of 2^-places; the others are below 2^size e^b < 2^(size + b) in all.
    const auto places = static_cast<long>(std::max<std::size_t>(mpz_sizeinbase(c.get_den_mpz_t(), 2), of_midpoints) +
                                          mpz_sizeinbase(share_.get_den_mpz_t(), 2));
    long size = -(1L << 20);
    for (std::size_t n = 1; n < a.size(); ++n) {
      const auto bits = static_cast<long>(mpz_sizeinbase(a[n].factor.significand(), 2));
      size = std::max(size, bits + static_cast<long>(a[n].factor.exponent()));
    }
    size += 60;
    if (exponent_of(a[1]) > -size - places - 2) return std::nullopt;
    const mpq_class step = power_of_two(-places - 1);
    return (is_negative(a, 1) ? mpq_class(c - step) : mpq_class(c + step)) / share_;
  }

  /// The sign of the addends from the first on, once their sum is known to be 2^-2^19 e^b or more, b of the first.
  bool is_negative(const addend_list& a, std::size_t first) const {
    constexpr mpfr_exp_t least = -(1 << 19);
    for (mpfr_prec_t p = 128; p <= 1 << 17; p *= 2) {
      const interval sum = in_multiples(p, a, first);
      if (mpfr_sgn(sum.lo()) > 0 && mpfr_get_exp(sum.lo()) > least) return false;
      if (mpfr_sgn(sum.hi()) < 0 && mpfr_get_exp(sum.hi()) > least) return true;
    }
    throw std::logic_error("reference::attention_backward: a sign is not decided");
  }

  /// The sum of the addends from the first on, in multiples of that one's e^b.
  interval in_multiples(mpfr_prec_t p, const addend_list& a, std::size_t first) const {
    interval sum(p);
    for (std::size_t n = first; n < a.size(); ++n) {
      const extended& f = a[n].factor;
      sum = sum + interval(p, mpz_class(f.significand()), f.exponent()) * weights(p, a[first].group)[a[n].group];
    }
    return sum;
  }

  /// e^(b_g - b_first) for g >= first; 0 for others. Too small for MPFR, it is an interval that begins at 0.
  const std::vector<interval>& weights(mpfr_prec_t p, std::size_t first) const {
    std::vector<interval>& all = cache_[{p, first}];
    for (std::size_t g = all.size(); g < groups_.size(); ++g)
      all.push_back(g < first ? interval(p)
                              : exp(interval(p, mpq_class(groups_[g].exponent - groups_[first].exponent))));
    return all;
  }

  mpq_class share_;
  bool any_nan_ = false;
  std::vector<std::size_t> weightless_, endless_;  ///< pairs with e^-inf and e^inf
  std::vector<group> groups_;                      ///< of finite exponents, the greatest first
  mutable std::map<std::pair<mpfr_prec_t, std::size_t>, std::vector<interval>> cache_;
};

/// The operands of the gradients.
struct attention_backward_call : attention_call {
  const array &g, &y, &lse;

  attention_backward_call(const std::vector<array>& in, const attributes& attrs)
      : attention_call(in, attrs, 1, 6), g(in.at(0)), y(in.at(4)), lse(in.at(5)) {
    shape_list result = q.shape, rows = q.shape;
    result.back() = columns;
    rows.pop_back();
    if (g.shape != result || y.shape != result || lse.shape != rows)
      throw std::invalid_argument("reference::attention_backward: sizes");
    if (g.type != q.type || y.type != q.type || lse.type != lse_type())
      throw std::invalid_argument("reference::attention_backward: formats");
  }
};

/// A query and a key that is present beside it.
struct present_pair {
  extended exponent;  ///< a - lse
  extended t;         ///< times the share that is kept
  bool kept;
};

/// A head of k and v, and the queries of all heads of q that go with it, which are rows one after the other.
class slice_of_attention {
 public:
  slice_of_attention(const attention_backward_call& call, std::int64_t slice) : c_(call) {
    const std::int64_t rows = c_.heads / c_.groups * c_.queries;
    for (std::int64_t j = slice * c_.keys; j < (slice + 1) * c_.keys; ++j) {
      k_.push_back(line_of(c_.k, j * c_.inner, c_.inner));
      v_.push_back(line_of(c_.v, j * c_.columns, c_.columns));
    }
    for (std::int64_t row = slice * rows; row < (slice + 1) * rows; ++row) {
      q_.push_back(line_of(c_.q, row * c_.inner, c_.inner));
      g_.push_back(line_of(c_.g, row * c_.columns, c_.columns));
      pairs_.push_back(pairs_of(row));
    }
  }

  std::size_t rows() const { return q_.size(); }
  /// The results for a query.
  std::vector<rounded> grad_q(std::size_t row) const {
    std::vector<const present_pair*> pairs;
    std::vector<const std::vector<extended>*> keys;
    for (std::size_t j = 0; j < k_.size(); ++j) {
      if (!pairs_[row][j]) continue;
      pairs.push_back(&*pairs_[row][j]);
      keys.push_back(&k_[j]);
    }
    return sums(line_with(pairs), pairs, keys, c_.inner);
  }
  /// The results for a key: grad_k, then grad_v.
  std::pair<std::vector<rounded>, std::vector<rounded>> grad_k_and_v(std::size_t key) const {
    std::vector<const present_pair*> pairs;
    std::vector<const std::vector<extended>*> queries, gradients;
    for (std::size_t row = 0; row < rows(); ++row) {
      if (!pairs_[row][key]) continue;
      pairs.push_back(&*pairs_[row][key]);
      queries.push_back(&q_[row]);
      gradients.push_back(&g_[row]);
    }
    std::vector<const present_pair*> kept;
    std::vector<const std::vector<extended>*> of_kept;
    for (std::size_t n = 0; n < pairs.size(); ++n) {
      if (!pairs[n]->kept) continue;
      kept.push_back(pairs[n]);
      of_kept.push_back(gradients[n]);
    }
    return {sums(line_with(pairs), pairs, queries, c_.inner), sums(line_with(kept), {}, of_kept, c_.columns)};
  }

 private:
  std::vector<std::optional<present_pair>> pairs_of(std::int64_t row) const {
    const std::vector<extended>&q = q_.back(), &g = g_.back();
    const std::vector<extended> y = line_of(c_.y, row * c_.columns, c_.columns);
    const extended lse(c_.lse.type, c_.lse.get(index(row)));
    extended g_y;
    for (std::size_t e = 0; e < y.size(); ++e) g_y = g_y + g[e] * y[e];
    if (c_.dropout != 0) g_y = share() * g_y;
    std::vector<std::optional<present_pair>> pairs(k_.size());
    for (std::size_t j = 0; j < k_.size(); ++j) {
      const std::optional<extended> score = score_of(c_, row, static_cast<std::int64_t>(j), q, k_[j]);
      if (!score) continue;
      const bool kept = c_.is_kept(row, static_cast<std::int64_t>(j));
      extended g_v;
      for (std::size_t e = 0; kept && e < y.size(); ++e) g_v = g_v + g[e] * v_[j][e];
      pairs[j] = present_pair{*score - lse, g_v - g_y, kept};
    }
    return pairs;
  }

  /// 1 - p.
  extended share() const { return extended(1) - extended(dtype::f64, std::bit_cast<std::uint64_t>(c_.dropout)); }

  line_of_pairs line_with(const std::vector<const present_pair*>& pairs) const {
    std::vector<extended> exponents;
    for (const present_pair* p : pairs) exponents.push_back(p->exponent);
    return {exponents, c_.kept_share()};
  }

  /// scale times the sums of e^b T times a number; without pairs the sums of e^b times it.
  std::vector<rounded> sums(const line_of_pairs& line, const std::vector<const present_pair*>& pairs,
                            const std::vector<const std::vector<extended>*>& numbers, std::int64_t count) const {
    std::vector<rounded> results;
    for (std::size_t d = 0; d < index(count); ++d) {
      std::vector<extended> factors;
      for (std::size_t n = 0; n < numbers.size(); ++n)
        factors.push_back(pairs.empty() ? (*numbers[n])[d] : pairs[n]->t * (*numbers[n])[d]);
      results.push_back(line.sum(c_.q.type, pairs.empty() ? extended(1) : c_.scale, factors));
    }
    return results;
  }

  const attention_backward_call& c_;
  std::vector<std::vector<extended>> q_, k_, v_, g_;
  std::vector<std::vector<std::optional<present_pair>>> pairs_;  ///< of each row, by key
};

/// One of the results: an operand's shape, and where its elements lie.
struct attention_gradient {
  array values;
  outcomes where;

  explicit attention_gradient(const array& of) : values(of.type, of.shape), where(index(of.count())) {}
  void put(std::size_t row, const std::vector<rounded>& line) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      values.set(row * line.size() + i, line[i].bits);
      where[row * line.size() + i] = line[i].where;
    }
  }
};

}  // namespace

std::vector<array> attention_backward(const std::vector<array>& in, const attributes& attrs, outcomes* where) {
  const attention_backward_call c(in, attrs);
  attention_gradient q(c.q), k(c.k), v(c.v);
  for (std::int64_t i = 0; i < c.blocks * c.groups; ++i) {
    const slice_of_attention slice(c, i);
    for (std::size_t row = 0; row < slice.rows(); ++row) q.put(index(i) * slice.rows() + row, slice.grad_q(row));
    for (std::size_t j = 0; j < index(c.keys); ++j) {
      const auto [of_k, of_v] = slice.grad_k_and_v(j);
      k.put(index(i * c.keys) + j, of_k);
      v.put(index(i * c.keys) + j, of_v);
    }
  }
  if (where != nullptr) {
    for (const attention_gradient* g : {&q, &k, &v}) where->insert(where->end(), g->where.begin(), g->where.end());
  }
  return {q.values, k.values, v.values};
}

}  // namespace repdl::reference
