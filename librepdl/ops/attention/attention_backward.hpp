// Gradients of attention, a row at a time: what decides what tiles leave.
//
// A row is a query beside its keys, for grad_q, or a key beside the queries of all heads that go with it, for grad_k and grad_v. The others are the
// row's columns. With b_c = a_c - lse of column c, T_c = sum_e g_e v_e - sum_e g_e y_e,
//     result = scale sum_c e^(b_c) T_c x_c,   x of c's key for grad_q, of its query for grad_k;   sum_c e^(b_c) g_c for grad_v.
//
// The double-double tier takes b_c and T_c as wide numbers (num/wide.hpp). A column whose y is its v has T_c = 0 and no error, as is so of a query's
// only key. A column with b_c > 600, or not known within 2^-10, leaves its row undecided.
//
// The last tier (row_exact): with A_b = scale times the sum of T_c x_c (or the sum of g_c) over the columns with b_c = b, all exact,
//     result - c = F(c) = sum_b e^b A_b(c),   A_0(c) = A_0 - c, else A_b(c) = A_b.
// By Lindemann and Weierstrass exponentials of distinct rational numbers are linearly independent over the algebraic numbers: F(c) = 0 if and only if
// every A_b(c) = 0. So groups of equal b_c whose A_b(c) is 0 are left out, the greatest b of the others is the reference r, and F(c) e^-r is added up
// in balls: with c = 0 to find between which neighbours of the format the result lies, then, where these are two, with c their middle, whose sign
// decides between them. However small weights are, nothing is lost below what decides.
//
// With dropout T_c is g_c v_c / (1 - p) - D, without its first term where c is dropped, and so is the term of c in grad_v, the others being
// divided by 1 - p. All that is said of results is then said of (1 - p) times them: of T_c that is g_c v_c - (1 - p) D, and c (1 - p) is in the
// place of c.
#pragma once

#include "librepdl/ops/attention/attention_exact.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// A query and a key beside each other, and what gradients read of both.
template <class T>
struct attention_pair {
  using number = attention_number<T>;
  attention_query<T> query;
  std::int64_t key;
  const T* g;
  const T* y;
  std::int64_t g_step, y_step, value_size;
  double lse;

  REPDL_HD number g_value(std::int64_t e) const { return number_of(g[e * g_step]); }
  REPDL_HD number y_value(std::int64_t e) const { return number_of(y[e * y_step]); }
  REPDL_HD number value(std::int64_t e) const { return query.value(key, e); }
  REPDL_HD bool is_kept() const { return query.is_kept(key); }
  REPDL_HD bool is_present() const { return query.first <= key && key < query.last && query.is_present(key); }

  // T_c; its error is known to be 0 where nothing of it is lost.
  REPDL_HD wide<double> factor() const {
    if (query.draws.any()) return factor_with_draws();
    tracked_sum<double> t;
    bool is_same = true;
    for (std::int64_t e = 0; e < value_size; ++e) {
      const double of_g = static_cast<double>(g_value(e)), v = static_cast<double>(value(e)),
                   of_y = static_cast<double>(y_value(e));
      is_same = is_same && v == of_y && is_finite(is_binary64<T> ? of_g : of_g * v);
      num::add_product<T>(t, of_g, v);
      num::add_product<T>(t, -of_g, of_y);
    }
    if (is_same) return {};
    return unless_overflown<T>({t.total(), t.bound(2 * value_size)});
  }
  REPDL_HD wide<double> factor_with_draws() const {
    tracked_sum<double> t, d;
    const bool kept = is_kept();
    for (std::int64_t e = 0; e < value_size; ++e) {
      const auto of_g = static_cast<double>(g_value(e));
      if (kept) num::add_product<T>(t, of_g, static_cast<double>(value(e)));
      num::add_product<T>(d, -of_g, static_cast<double>(y_value(e)));
    }
    wide<double> rest = unless_overflown<T>({d.total(), d.bound(value_size)});
    const bool zero = is_zero(rest);
    multiply_by(rest, query.draws.wide_kept());
    if constexpr (is_binary64<T>) allow_underflow(rest, zero);
    return add(unless_overflown<T>({t.total(), t.bound(value_size)}), rest);
  }
  // The same in the reals with infinities: what it is where it is not finite, else a finite number.
  REPDL_HD double near_factor() const {
    double t = 0;
    const bool kept = is_kept();
    for (std::int64_t e = 0; e < value_size; ++e) {
      if constexpr (is_binary64<T>) {
        if (kept) t += odd_product(g_value(e), value(e));
        t -= odd_product(g_value(e), y_value(e));
        continue;
      }
      if (kept) t += static_cast<double>(g_value(e)) * static_cast<double>(value(e));
      t -= static_cast<double>(g_value(e)) * static_cast<double>(y_value(e));
    }
    return t;
  }
  // T_c, times 1 - p where weights are dropped, which is finite; and its sign.
  REPDL_HD exact_limbs<T> exact_factor() const {
    constexpr int N = exact_size<T>;
    product_sum<T> t, d;
    const bool kept = is_kept(), drops = query.draws.any();
    for (std::int64_t e = 0; e < value_size; ++e) {
      if (kept) t.add_product(g_value(e), value(e));
      (drops ? d : t).add_product(-g_value(e), y_value(e));
    }
    if (!drops) return limbs_of_sum<N>(t);
    bool inexact = false;  // stays
    return add(limbs_of_sum<N>(t), multiply(limbs_of_sum<N>(d), kept_limbs<N>(query.draws), &inexact), &inexact);
  }
  REPDL_HD_CALL int factor_sign() const {
    const exact_limbs<T> all = exact_factor();
    return all.is_zero() ? 0 : all.negative ? -1 : 1;
  }
  REPDL_HD ball<exact_size<T>> exponent() const { return exact_score(query, key, lse); }
};

// The exponents of two pairs, exactly: whether they are equal (as same_score).
template <class T>
REPDL_HD_CALL bool same_exponent(const attention_pair<T>& a, const attention_pair<T>& b) {
  product_sum<T> difference;
  for (std::int64_t d = 0; d < a.query.size; ++d) {
    difference.add_product(a.query.query_value(d), a.query.key_value(a.key, d));
    difference.add_product(-b.query.query_value(d), b.query.key_value(b.key, d));
  }
  bool inexact = false;
  const auto bias = [](const attention_pair<T>& p) {
    const double mask = p.query.is_added ? static_cast<double>(p.query.mask_value(p.key)) : 0.0;
    return score_bias(p.query, p.key - p.query.at, mask, -p.lse);
  };
  const exact_limbs<T> rest = add(bias(a), negated(bias(b)), &inexact);
  return add(scaled_score(a.query, difference, &inexact), rest, &inexact).is_zero();
}

REPDL_HD std::int64_t limited(std::int64_t i, std::int64_t count) { return i < 0 ? 0 : i > count ? count : i; }

// What gradients read of a batch. Steps are numbers from one to the next.
struct attention_steps {
  std::int64_t head, row, element;
};
template <class T>
struct attention_operands {
  const T *q, *k, *v, *g, *y;
  const void* mask;
  const lse_of<T>* lse;
  const float* slopes;
  attention_steps q_at, k_at, v_at, g_at, y_at, mask_at, lse_at;
  std::int64_t group;  // heads of q to one of k
  std::int64_t queries, keys, size, value_size, slope_step, offset, before, after;
  double scale;
  bool is_added;
  attention_draws draws;
  std::int64_t first_pair;  // the number of the batch's first one

  // Query i of a head.
  REPDL_HD attention_query<T> query(std::int64_t head, std::int64_t i) const {
    const std::int64_t of_keys = head / group;
    attention_query<T> r;
    r.q = q + head * q_at.head + i * q_at.row;
    r.k = k + of_keys * k_at.head;
    r.v = v + of_keys * v_at.head;
    r.is_added = mask != nullptr && is_added;
    const std::int64_t at = head * mask_at.head + i * mask_at.row;
    r.mask = mask == nullptr ? nullptr : static_cast<const char*>(mask) + at * (is_added ? sizeof(T) : 1);
    r.q_step = q_at.element;
    r.k_row = k_at.row;
    r.k_step = k_at.element;
    r.v_row = v_at.row;
    r.v_step = v_at.element;
    r.mask_step = mask_at.element;
    r.size = size;
    r.at = i + offset;
    r.first = limited(r.at - before, keys);
    r.last = limited(r.at + after + 1, keys);
    r.scale = scale;
    r.has_slope = slopes != nullptr;
    r.slope = r.has_slope ? static_cast<double>(slopes[head * slope_step]) : 0.0;
    r.draws = draws;
    r.first_pair = first_pair + (head * queries + i) * keys;
    return r;
  }
  REPDL_HD attention_pair<T> pair(std::int64_t head, std::int64_t i, std::int64_t j) const {
    return {query(head, i),
            j,
            g + head * g_at.head + i * g_at.row,
            y + head * y_at.head + i * y_at.row,
            g_at.element,
            y_at.element,
            value_size,
            static_cast<double>(lse[head * lse_at.head + i * lse_at.row])};
  }
};

// Those of a plan's first batch (plan::attention_plan).
template <class T, class Plan>
attention_operands<T> operands_of(const Plan& p) {
  const auto steps = [](const auto& at) { return attention_steps{at.head, at.row, at.element}; };
  attention_operands<T> of{};
  of.q = static_cast<const T*>(p.q);
  of.k = static_cast<const T*>(p.k);
  of.v = static_cast<const T*>(p.v);
  of.g = static_cast<const T*>(p.g);
  of.y = static_cast<const T*>(p.y);
  of.mask = p.mask;
  of.lse = static_cast<const lse_of<T>*>(p.given_lse);
  of.slopes = p.slopes;
  of.q_at = steps(p.q_at);
  of.k_at = steps(p.k_at);
  of.v_at = steps(p.v_at);
  of.g_at = steps(p.g_at);
  of.y_at = steps(p.y_at);
  of.mask_at = steps(p.mask_at);
  of.lse_at = steps(p.given_lse_at);
  of.group = p.heads / p.key_heads;
  of.queries = p.queries;
  of.keys = p.keys;
  of.size = p.size;
  of.value_size = p.value_size;
  of.slope_step = p.slope_step;
  of.offset = p.offset;
  of.before = p.before;
  of.after = p.after;
  of.scale = p.scale;
  of.is_added = p.is_added;
  of.draws = draws_of(p);
  return of;
}

// A row: query `at` of a head of q, or key `at` of a head of k. Its columns: the keys in its reach, or the queries of each head in whose reach it is.
template <class T>
struct gradient_row {
  attention_operands<T> of;
  bool is_key;
  std::int64_t head, at;
  std::int64_t first, each;  // of a head

  // When all else is known.
  REPDL_HD void find_columns() {
    const std::int64_t middle = is_key ? at - of.offset : at + of.offset, before = is_key ? of.after : of.before,
                       after = is_key ? of.before : of.after, most = is_key ? of.queries : of.keys;
    first = limited(middle - before, most);
    each = limited(middle + after + 1, most) - first;
    each = each < 0 ? 0 : each;
  }
  REPDL_HD std::int64_t columns() const { return is_key ? of.group * each : each; }
  // Those of grad_q, or of grad_k and then of grad_v.
  REPDL_HD std::int64_t results() const { return is_key ? of.size + of.value_size : of.size; }
  REPDL_HD bool has_factor(std::int64_t e) const { return e < of.size; }
  REPDL_HD attention_pair<T> pair(std::int64_t n) const {
    return is_key ? of.pair(head * of.group + n / each, first + n % each, at) : of.pair(head, at, first + n);
  }
  // What a column brings to result e, beside its weight and factor, if its weight is not dropped from the sum.
  REPDL_HD attention_number<T> term(const attention_pair<T>& p, std::int64_t e) const {
    return !has_factor(e) ? p.g_value(e - of.size) : is_key ? p.query.query_value(e) : p.query.key_value(p.key, e);
  }
};

// What the late tiers keep of a column.
enum class column_kind { absent, finite, odd };
struct late_column {
  wide<double> exponent, weight, factor;
  std::int64_t group;  // the first column of the same exponent, if that was asked for
  double odd_weight;   // e^b: 0, infinite or NaN; of any other finite one 1
  double odd_factor;   // T_c where it is not finite
  column_kind kind;
  bool is_kept;  // not dropped

  REPDL_HD bool is_absent() const { return kind == column_kind::absent; }
  // Has it no part in a result, of those with the factor or without?
  REPDL_HD bool is_none_of(bool has_factor) const { return is_absent() || !(has_factor || is_kept); }
  // Is its exponent a number?
  REPDL_HD bool has_weight() const { return !is_absent() && odd_weight == 1; }
};
template <class T>
REPDL_HD late_column column_of(const attention_pair<T>& p) {
  late_column c{{}, {}, {}, -1, 1.0, 0.0, column_kind::absent, true};
  if (!p.is_present()) return c;
  c.is_kept = p.is_kept();
  const tracked_sum<double> products = p.query.products(p.key);
  const double b = p.query.near_score(p.key, products) - p.lse;
  const double t = p.near_factor();
  c.kind = is_finite(b) && is_finite(t) ? column_kind::finite : column_kind::odd;
  if (!is_finite(t)) c.odd_factor = t;
  if (is_finite(b)) {
    c.exponent = p.query.wide_score(p.key, products);
    add_value(c.exponent, -p.lse);
    c.weight = exponential_of(c.exponent);
  } else {
    c.odd_weight = b != b ? b : b < 0 ? 0.0 : infinity;
  }
  if (is_finite(t)) c.factor = p.factor();
  return c;
}

// A column's part of result e where that is not finite; else 0.
template <class T, class Any = alone>
REPDL_HD double odd_part(const gradient_row<T>& row, const late_column& c, std::int64_t n, std::int64_t e,
                         const Any& any = {}) {
  const attention_pair<T> p = row.pair(n);
  const bool has_factor = row.has_factor(e), is_none = c.is_none_of(has_factor);
  const double x = is_none ? 0.0 : static_cast<double>(row.term(p, e));
  const bool is_odd = !is_none && !(has_factor ? c.kind == column_kind::finite && is_finite(x)
                                               : is_finite(c.odd_weight) && is_finite(x));
  // Of a factor that is finite the sign alone is asked for, where that makes a difference.
  const bool asks = is_odd && has_factor && c.odd_factor == 0 && !(c.odd_weight <= 1 && is_finite(x));
  double factor = has_factor ? c.odd_factor : 1.0;
  if (any(asks)) {
    const int sign = p.factor_sign();
    if (asks) factor = static_cast<double>(sign);
  }
  const double part = c.odd_weight * factor * x;
  return is_odd && !is_finite(part) ? part : 0.0;
}
// A result with such parts.
template <class T>
REPDL_HD T odd_result(const gradient_row<T>& row, const special_terms& special, std::int64_t e) {
  const double sum = special.template value<double>();
  return narrow<T>(row.has_factor(e) ? row.of.scale * sum : sum);
}

// A column's part of result e, scale left out, in wide numbers.
template <class T>
REPDL_HD wide<double> wide_part(const gradient_row<T>& row, const late_column& c, std::int64_t n, std::int64_t e) {
  wide<double> part = c.weight;
  bool zero = false;
  if (c.is_none_of(row.has_factor(e))) return {};
  if (row.has_factor(e)) {
    zero = is_zero(c.factor);
    multiply_by(part, c.factor);
    allow_underflow(part, zero);
  }
  const double x = static_cast<double>(row.term(row.pair(n), e));
  multiply_by_value(part, x);
  allow_underflow(part, zero || x == 0);
  return unless_overflown<T>(part);
}
// The sum of such parts as a result.
template <class T>
REPDL_HD void to_result(wide<double>& sum, const gradient_row<T>& row, std::int64_t e) {
  sum = unless_overflown<T>(sum);
  if (row.has_factor(e)) scale_result(sum, row.of.scale);
  sum = unless_overflown<T>(sum);
  if (row.of.draws.any()) divide_by(sum, row.of.draws.wide_kept());
}
template <class T, class Any = alone>
struct row_exact {
  static constexpr int exact = exact_size<T>;
  const gradient_row<T>& row;
  late_column* columns;
  std::int64_t of_one = -1;  // the group whose exponent is 0
  bool has_groups = false;
  Any any{};

  REPDL_HD std::int64_t count() const { return row.columns(); }

  // The first column of the same exponent, of column n, which need not be there.
  REPDL_HD void find_group(std::int64_t n) {
    const bool is_there = n < count();
    bool is_open = is_there && columns[n].has_weight();
    std::int64_t group = is_open ? n : -1;
    for (std::int64_t i = 0; any(is_open && i < n); ++i) {
      const bool asks =
          is_open && i < n && columns[i].has_weight() && may_be_equal(columns[i].exponent, columns[n].exponent);
      if (!any(asks)) continue;
      const bool same = same_exponent(row.pair(i), row.pair(is_there ? n : 0));
      if (!(asks && same)) continue;
      group = i;
      is_open = false;
    }
    if (is_there) columns[n].group = group;
  }
  // The group whose exponent is 0; all groups are found.
  REPDL_HD void find_one() {
    const wide<double> zero{};
    for (std::int64_t n = 0; n < count(); ++n) {
      const bool asks = columns[n].group == n && may_be_equal(columns[n].exponent, zero);
      if (!any(asks)) continue;
      const ball<exact> b = row.pair(n).exponent();
      if (asks && b.exact() && b.middle.is_zero()) of_one = n;
    }
    has_groups = true;
  }
  REPDL_HD void find_groups() {
    if (has_groups) return;
    for (std::int64_t n = 0; n < count(); ++n) find_group(n);
    find_one();
  }

  // The sum of T_c x_c, times 1 - p where weights are dropped, over the group that column n is the first of.
  REPDL_HD exact_limbs<T> sum_of_products(std::int64_t n, std::int64_t e) const {
    bool inexact = false;  // stays
    if constexpr (is_binary64<T>) {
      exact_limbs<T> a = zero_limbs<exact>();
      for (std::int64_t i = n; i < count(); ++i) {
        if (columns[i].group != n) continue;
        const attention_pair<T> p = row.pair(i);
        a = add(a, multiply(p.exact_factor(), limbs_of_value<exact>(row.term(p, e)), &inexact), &inexact);
      }
      return a;
    } else {
      // Multiples of 2^-447, and of that times 1 - p: below 2^-447 2^(831 + 40 + 84 + 53), scale among them.
      exact_accumulator<float, 3> sum, taken;
      const bool drops = row.of.draws.any();
      for (std::int64_t i = n; i < count(); ++i) {
        if (columns[i].group != n) continue;
        const attention_pair<T> p = row.pair(i);
        const float x = row.term(p, e);
        for (std::int64_t at = 0; at < p.value_size; ++at) {
          if (columns[i].is_kept) sum.add_product(p.g_value(at), p.value(at), x);
          (drops ? taken : sum).add_product(-p.g_value(at), p.y_value(at), x);
        }
      }
      const exact_limbs<T> a = limbs_of_sum<exact>(sum);
      if (!drops) return a;
      return add(a, multiply(limbs_of_sum<exact>(taken), kept_limbs<exact>(row.of.draws), &inexact), &inexact);
    }
  }
  // A_b(c) of the group that column n is the first of; n = count(): of exponent 0 where no column has it.
  REPDL_HD_CALL ball<exact> coefficient(std::int64_t n, std::int64_t e, const exact_limbs<T>& c) const {
    bool inexact = false;
    exact_limbs<T> a = zero_limbs<exact>();
    if (n < count()) {
      if (row.has_factor(e)) {
        a = multiply(sum_of_products(n, e), limbs_of_value<exact>(row.of.scale), &inexact);
      } else {
        number_sum<T> sum;
        for (std::int64_t i = n; i < count(); ++i)
          if (columns[i].group == n && columns[i].is_kept) sum.add(row.term(row.pair(i), e));
        a = limbs_of_sum<exact>(sum);
      }
    }
    if (n == count() || n == of_one) a = add(a, negated(c), &inexact);
    return {a, rounding_error(a, inexact)};
  }
  REPDL_HD bool may_count(std::int64_t n, const exact_limbs<T>& c) const {
    return n < count() ? columns[n].group == n : of_one < 0 && !c.is_zero();
  }
  REPDL_HD ball<exact> exponent(std::int64_t n) const {
    return n < count() ? row.pair(n).exponent() : exact_ball(zero_limbs<exact>());
  }

  // F(c) = sum e^top.
  template <int L>
  struct scaled_sum {
    ball<L> sum;
    ball<exact> top;
    bool is_zero;  // no group counts
  };
  template <int L>
  REPDL_HD_CALL scaled_sum<L> difference(std::int64_t e, const exact_limbs<T>& c, bool asks) const {
    std::int64_t best = -1;
    ball<exact> top = exact_ball(zero_limbs<exact>());
    for (std::int64_t n = 0; n <= count(); ++n) {
      const bool counts = asks && may_count(n, c) && !coefficient(n, e, c).middle.is_zero();
      if (!any(counts)) continue;
      const ball<exact> b = exponent(n);
      const int sign = sign_in(subtract(b, top));
      if (!counts || (best >= 0 && sign <= 0)) continue;
      best = n;
      top = b;
    }
    ball<L> sum = exact_ball(zero_limbs<L>());
    for (std::int64_t n = 0; n <= count(); ++n) {
      const bool counts = asks && may_count(n, c);
      if (!any(counts)) continue;
      const ball<exact> a = coefficient(n, e, c);
      const bool is_term = counts && !a.middle.is_zero();
      if (!any(is_term)) continue;
      const ball<L> w = exponential_below<L>(is_term ? subtract(exponent(n), top) : exact_ball(zero_limbs<exact>()));
      ball<L> term = shortened<L>(a);
      if (n != best) multiply_by(term, w);
      if (is_term) add_to(sum, term);
    }
    return {sum, top, best < 0};
  }
  // What F(0) rounds to, or between which neighbours it lies.
  template <int L>
  REPDL_HD_CALL neighbours<T> ends_by(std::int64_t e, bool asks) const {
    constexpr double most = 8192;
    const scaled_sum<L> f = difference<L>(e, zero_limbs<exact>(), asks);
    const std::int64_t power = f.top.middle.exponent;
    const bool is_far = power > 20 || (power > 0 && magnitude_of(double_near(f.top.middle)) > most);
    const bool is_negative = f.top.middle.negative != 0;
    ball<L> r = f.sum;
    const bool is_one = f.top.exact() && f.top.middle.is_zero();
    if (any(!is_far && !is_one)) {
      const ball<L> factor = exponential(shortened<L>(is_far ? exact_ball(zero_limbs<exact>()) : f.top));
      if (!is_one) multiply_by(r, factor);
    }
    divide_by(r, kept_ball<L>(row.of.draws));
    T low = from_bits<T>(round_bits<T>(r.middle)), high = low;
    if (!r.exact()) {
      const ball_ends<L> ends = ends_of(r);
      low = from_bits<T>(round_bits<T>(ends.low));
      high = from_bits<T>(round_bits<T>(ends.high));
    }
    neighbours<T> found = neighbours<T>::of(low, high);
    found.known = (found.known || to_bits(low) == to_bits(high)) && r.radius.exponent < (std::int64_t{1} << 39);
    if (!is_far) return found;
    // Beyond the format's numbers: below the least, or above the greatest once the sign is known, for no sum of which balls know it is as small as
    // 2^-6000.
    constexpr storage_of<T> zero{0};
    if (is_negative) return neighbours<T>::of(from_bits<T>(sign_mask<T>), from_bits<T>(zero));
    const int sign = sign_in(f.sum);
    const auto bits = static_cast<storage_of<T>>(format<T>::infinity | (sign < 0 ? sign_mask<T> : zero));
    return {from_bits<T>(bits), from_bits<T>(bits), sign == 1 || sign == -1};
  }
  template <int L>
  REPDL_HD_CALL decided_value<T> decide_by(std::int64_t e, bool asks) const {
    const lanes_together together;
    const neighbours<T> ends = ends_by<L>(e, asks);
    const bool is_one = to_bits(ends.low) == to_bits(ends.high);
    decided_value<T> r{ends.low, ends.known && is_one};
    const bool is_between = asks && ends.known && !is_one;
    if (any(is_between)) {
      exact_limbs<T> c = ends.middle();
      bool inexact = false;  // stays
      if (row.of.draws.any()) c = multiply(c, kept_limbs<exact>(row.of.draws), &inexact);
      const scaled_sum<L> f = difference<L>(e, c, is_between);
      const int sign = f.is_zero ? 0 : sign_in(f.sum);
      if (is_between) r = {ends.at(sign == 2 ? 0 : sign), sign != 2 && (sign != 0 || f.is_zero)};
    }
    together.meet();
    return r;
  }
  // Result e; of those that ask.
  REPDL_HD decided_value<T> decide(std::int64_t e, int bits, bool asks = true) const {
    decided_value<T> r{T{}, false};
    if (bits >= 512) r = decide_by<8>(e, asks);
    if constexpr (!on_device) {
      if (!r.decided && bits >= 1024) r = decide_by<16>(e, asks);
      if (!r.decided && bits >= 2048) r = decide_by<32>(e, asks);
    }
    return r;
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
