// The oracle of the gradients of norms in a second way: its results against the formula in rational numbers and statements that
// say nothing of how to round, rows that are not finite against binary64 arithmetic; and the formula against differences of what
// it is the derivative of.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "reference/evaluate.hpp"
#include "reference/layout.hpp"
#include "reference/numbers/real.hpp"
#include "reference/samples.hpp"

namespace {

using namespace repdl;
using namespace repdl::reference;
using integers = std::vector<std::int64_t>;

constexpr std::uint32_t inf = 0x7f800000, nan32 = 0x7fc00000, sign = 0x80000000;

bool is_finite(std::uint32_t x) { return (x & inf) != inf; }
std::uint32_t at(const array& a, std::int64_t i) { return static_cast<std::uint32_t>(a.get(index(i))); }
double real(std::uint32_t x) { return std::bit_cast<double>(convert(dtype::f32, dtype::f64, x)); }

/// The value of a pattern, where 2^128 stands for infinity.
mpq_class value(std::uint32_t x) {
  if (is_finite(x)) return rational(dtype::f32, x);
  return (x & sign) != 0 ? mpq_class(-power_of_two(128)) : power_of_two(128);
}
/// Whether a number that is not 0 has the rounding `got`: it lies between the middles to both neighbours, and on one of them only
/// where `got` is even. Counts those that do.
bool is_rounded(const mpq_class& f, std::uint32_t got, std::int64_t& midpoints) {
  const std::uint32_t magnitude = got & ~sign;
  if (magnitude > inf || ((got & sign) != 0) != (f < 0)) return false;
  const mpq_class size = abs(f), own = value(magnitude);
  const bool even = (got & 1) == 0;
  const auto inside = [&](std::uint32_t neighbour) {
    const mpq_class middle = (own + value(neighbour)) / 2;
    midpoints += size == middle;
    return size == middle ? even : (size < middle) == (neighbour > magnitude);
  };
  return (magnitude == inf || inside(magnitude + 1)) && (magnitude == 0 || inside(magnitude - 1));
}

struct checked {
  std::int64_t numbers = 0, zeros = 0, midpoints = 0, infinite = 0, nan = 0;
};

/// An operand of one kind or another.
struct operands {
  const array *g, *x, *mean, *rstd, *weight;
  norm_layout l;
  operands(const std::string& op, const std::vector<array>& in, const attributes& attrs)
      : g(in.data()),
        x(g + 1),
        mean(op.starts_with("rms") ? nullptr : g + 2),
        rstd(mean != nullptr ? g + 3 : g + 2),
        weight(rstd + 1 == g + in.size() || rstd[1].absent() ? nullptr : rstd + 1),
        l(norm_layout_of(op, x->shape, attrs)) {}
  std::int64_t place(std::size_t r, std::size_t i) const { return l.rows.kept[r] + l.rows.reduced[i]; }
  std::int64_t weight_of(std::size_t r, std::size_t i) const {
    return static_cast<std::int64_t>(l.weight_of(i, place(r, i)));
  }
};

/// A number, with the sign that it has where it is 0, or in a row that is not finite.
void check_result(const mpq_class* exact, double otherwise, bool zero_negative, std::uint32_t got, const outcome& where,
                  checked& n) {
  if (exact == nullptr) {
    ++(std::isnan(otherwise) ? n.nan : n.infinite);
    CHECK(!std::isfinite(otherwise));
    CHECK(got == (std::isnan(otherwise) ? nan32 : otherwise < 0 ? inf | sign : inf));
  } else if (*exact == 0) {
    ++n.zeros;
    CHECK(got == (zero_negative ? sign : 0));
  } else {
    ++n.numbers;
    std::int64_t midpoints = 0;
    CHECK(is_rounded(*exact, got, midpoints));
    CHECK(where.tie == (midpoints != 0));
    n.midpoints += midpoints;
  }
}

void check_gradient_to_x(const std::string& op, const std::vector<array>& in, const attributes& attrs, checked& n) {
  const operands o(op, in, attrs);
  outcomes where;
  const array out = evaluate(op, in, attrs, &where);
  const std::size_t length = o.l.rows.reduced.size();
  for (std::size_t r = 0; r < o.l.rows.kept.size(); ++r) {
    const std::uint32_t m = o.mean == nullptr ? 0 : at(*o.mean, static_cast<std::int64_t>(r)),
                        s = at(*o.rstd, static_cast<std::int64_t>(r));
    const auto part = [&](std::size_t i, int k) {
      if (k == 2 && o.weight == nullptr) return std::uint32_t{0x3f800000};
      return k == 0 ? at(*o.g, o.place(r, i)) : k == 1 ? at(*o.x, o.place(r, i)) : at(*o.weight, o.weight_of(r, i));
    };
    bool finite = is_finite(m) && is_finite(s);
    const bool valid = finite;
    for (std::size_t i = 0; i < length; ++i)
      for (int k = 0; k < 3; ++k) finite = finite && is_finite(part(i, k));
    const auto exact = [&](std::uint32_t v) { return rational(dtype::f32, v); };
    mpq_class a, b;
    double plain_a = 0, plain_b = 0;
    for (std::size_t i = 0; i < length; ++i) {
      const double t = real(part(i, 0)) * real(part(i, 2));
      plain_a += o.mean == nullptr ? 0 : t;
      plain_b += t * ((real(part(i, 1)) - real(m)) * real(s));
      if (!finite) continue;
      if (o.mean != nullptr) a += exact(part(i, 0)) * exact(part(i, 2));
      b += exact(part(i, 0)) * exact(part(i, 2)) * (exact(part(i, 1)) - exact(m)) * exact(s);
    }
    for (std::size_t i = 0; i < length; ++i) {
      const std::int64_t p = o.place(r, i);
      if (!valid) {
        CHECK(at(out, p) == nan32);
        continue;
      }
      const double plain = real(s) * ((real(part(i, 0)) * real(part(i, 2)) - plain_a) -
                                      ((real(part(i, 1)) - real(m)) * real(s)) * plain_b);
      mpq_class v, y;
      if (finite) {
        const auto count = static_cast<long>(length);
        v = exact(part(i, 0)) * exact(part(i, 2)) - a / count - (exact(part(i, 1)) - exact(m)) * exact(s) * (b / count);
        y = exact(s) * v;
      }
      check_result(finite ? &y : nullptr, plain, (v < 0) != ((s & sign) != 0), at(out, p), where[index(p)], n);
    }
  }
}

void check_gradient_to_weight(const std::string& op, const std::vector<array>& in, const attributes& attrs,
                              checked& n) {
  const operands o(op, in, attrs);
  outcomes where;
  const array out = evaluate(op, in, attrs, &where);
  CHECK(out.shape == o.l.weight);
  std::vector<mpq_class> sums(where.size());
  std::vector<double> plain(where.size());
  for (std::size_t r = 0; r < o.l.rows.kept.size(); ++r) {
    for (std::size_t i = 0; i < o.l.rows.reduced.size(); ++i) {
      const std::uint32_t v[] = {at(*o.g, o.place(r, i)), at(*o.x, o.place(r, i)),
                                 o.mean == nullptr ? 0 : at(*o.mean, static_cast<std::int64_t>(r)),
                                 at(*o.rstd, static_cast<std::int64_t>(r))};
      const std::size_t k = index(o.weight_of(r, i));
      if (is_finite(v[0]) && is_finite(v[1]) && is_finite(v[2]) && is_finite(v[3])) {
        sums[k] += value(v[0]) * ((value(v[1]) - value(v[2])) * value(v[3]));
      } else {
        plain[k] += real(v[0]) * ((real(v[1]) - real(v[2])) * real(v[3]));
      }
    }
  }
  for (std::size_t k = 0; k < sums.size(); ++k)
    check_result(plain[k] == 0 ? &sums[k] : nullptr, plain[k], false, at(out, static_cast<std::int64_t>(k)), where[k],
                 n);
}

struct shape {
  const char* norm;
  shape_list x;
  attributes attrs;
};
const shape shapes[] = {{"layer_norm", {3, 8}, {}},
                        {"layer_norm", {5, 2, 3}, {{"axis", integers{2, 0}}}},
                        {"rms_norm", {3, 9}, {{"axis", integers{-1}}}},
                        {"rms_norm", {13}, {}},
                        {"group_norm", {2, 6, 5}, {{"groups", std::int64_t{3}}}},
                        {"batch_norm", {5, 3, 2}, {}},
                        {"batch_norm", {4, 1, 3}, {{"axis", std::int64_t{-1}}}},
                        {"layer_norm", {4}, {{"axis", integers{}}}}};

std::vector<array> sampled(const std::string& op, sample_class kind, const shape& s, bool weight,
                           std::uint64_t stream) {
  const norm_layout l = norm_layout_of(op, s.x, s.attrs);
  std::vector<shape_list> all{s.x, s.x, l.rows.kept_shape};
  if (!op.starts_with("rms")) all.push_back(l.rows.kept_shape);
  if (weight) all.push_back(l.weight);
  return fill_inputs(op, kind, all, s.attrs, 7, stream);
}

TEST_SUITE_BEGIN("portable values");

TEST_CASE("reference: gradients of norms in rational numbers, and rows that are not finite in binary64") {
  std::uint64_t stream = 0;
  checked to_x, to_weight;
  for (const shape& s : shapes) {
    for (int c = 0; c < sample_class_count; ++c) {
      const auto kind = static_cast<sample_class>(c);
      if (kind == sample_class::all_patterns) continue;
      for (int turn = 0; turn < 6; ++turn) {
        CAPTURE(s.norm);
        CAPTURE(std::string(name_of(kind)));
        CAPTURE(turn);
        const std::string x = std::string(s.norm) + "_backward", w = std::string(s.norm) + "_weight_backward";
        check_gradient_to_x(x, sampled(x, kind, s, turn % 2 != 0, ++stream), s.attrs, to_x);
        check_gradient_to_weight(w, sampled(w, kind, s, false, stream), s.attrs, to_weight);
      }
    }
  }
  CHECK(to_x.numbers > 8'000);
  CHECK(to_x.zeros > 1'000);
  CHECK(to_x.midpoints > 400);
  CHECK(to_x.infinite > 80);
  CHECK(to_x.nan > 250);
  CHECK(to_weight.numbers > 2'000);
  CHECK(to_weight.zeros > 300);
  CHECK(to_weight.midpoints > 100);
  CHECK(to_weight.infinite > 20);
  CHECK(to_weight.nan > 50);
}

// ---- derivatives

constexpr mpfr_prec_t precision = 300;
interval number(const mpq_class& q) { return {precision, q}; }

/// A call of small numbers, every operand exact.
struct exact_call {
  bool centred;
  norm_layout l;
  std::vector<mpq_class> g, x, weight;
  mpq_class eps{1, 64};
  std::size_t place(std::size_t r, std::size_t i) const { return index(l.rows.kept[r] + l.rows.reduced[i]); }
  std::size_t weight_of(std::size_t r, std::size_t i) const {
    return l.weight_of(i, static_cast<std::int64_t>(place(r, i)));
  }
  long n() const { return static_cast<long>(l.rows.reduced.size()); }

  mpq_class mean(std::size_t r) const {
    mpq_class sum;
    for (std::size_t i = 0; centred && i < l.rows.reduced.size(); ++i) sum += x[place(r, i)];
    return sum / n();
  }
  interval rstd(std::size_t r) const {
    mpq_class v;
    for (std::size_t i = 0; i < l.rows.reduced.size(); ++i) {
      const mpq_class d = x[place(r, i)] - mean(r);
      v += d * d;
    }
    return number(1) / sqrt(number(v / n() + eps));
  }
  /// The sum of g y, y the norm of x.
  interval loss() const {
    interval sum(precision);
    for (std::size_t r = 0; r < l.rows.kept.size(); ++r) {
      mpq_class row;
      for (std::size_t i = 0; i < l.rows.reduced.size(); ++i)
        row += g[place(r, i)] * (x[place(r, i)] - mean(r)) * weight[weight_of(r, i)];
      sum = sum + number(row) * rstd(r);
    }
    return sum;
  }
  /// By differences; the error is of the order of 2^-120.
  interval slope(mpq_class& of) {
    const mpq_class step = power_of_two(-60), middle = of;
    of = middle + step;
    const interval above = loss();
    of = middle - step;
    const interval below = loss();
    of = middle;
    return (above - below) * number(power_of_two(59));
  }
  /// What the contract says, of these statistics.
  std::vector<interval> gradient_to_x() const {
    std::vector<interval> all(x.size(), interval(precision));
    for (std::size_t r = 0; r < l.rows.kept.size(); ++r) {
      const interval s = rstd(r);
      interval a(precision), b(precision);
      const auto t = [&](std::size_t i) { return number(g[place(r, i)] * weight[weight_of(r, i)]); };
      const auto h = [&](std::size_t i) { return number(x[place(r, i)] - mean(r)) * s; };
      for (std::size_t i = 0; i < l.rows.reduced.size(); ++i) {
        if (centred) a = a + t(i);
        b = b + t(i) * h(i);
      }
      for (std::size_t i = 0; i < l.rows.reduced.size(); ++i)
        all[place(r, i)] = s * (t(i) - a / number(n()) - h(i) * (b / number(n())));
    }
    return all;
  }
  std::vector<interval> gradient_to_weight() const {
    std::vector<interval> all(weight.size(), interval(precision));
    for (std::size_t r = 0; r < l.rows.kept.size(); ++r) {
      for (std::size_t i = 0; i < l.rows.reduced.size(); ++i) {
        interval& sum = all[weight_of(r, i)];
        sum = sum + number(g[place(r, i)] * (x[place(r, i)] - mean(r))) * rstd(r);
      }
    }
    return all;
  }
};

/// Whether a - b lies within 2^e times the greater of 1 and b.
bool is_near(const interval& a, const interval& b, long e) {
  const interval d = a - b;
  const double bound = std::ldexp(std::max(1.0, std::abs(mpfr_get_d(b.lo(), MPFR_RNDN))), static_cast<int>(e));
  return mpfr_cmp_d(d.lo(), -bound) >= 0 && mpfr_cmp_d(d.hi(), bound) <= 0;
}

TEST_CASE("reference: gradients of norms are derivatives") {
  word_stream w(31, 0);
  const auto integers_of = [&](const array& a) {
    std::vector<mpq_class> v;
    for (std::int64_t i = 0; i < a.count(); ++i) v.push_back(rational(dtype::f32, at(a, i)));
    return v;
  };
  const auto few = [&](const shape_list& s) {
    array a(dtype::f32, s);
    for (std::size_t i = 0; i < index(a.count()); ++i) a.set(i, sample(sample_class::normal_range, dtype::f32, w));
    return a;
  };
  for (const shape& s : shapes) {
    CAPTURE(s.norm);
    const std::string norm = s.norm;
    const norm_layout l = norm_layout_of(norm, s.x, s.attrs);
    const array g = few(s.x), x = few(s.x), weight = few(l.weight);
    exact_call c{norm != "rms_norm", l, integers_of(g), integers_of(x), integers_of(weight)};
    const std::vector<interval> to_x = c.gradient_to_x(), to_weight = c.gradient_to_weight();
    for (std::size_t i = 0; i < c.x.size(); ++i) CHECK(is_near(c.slope(c.x[i]), to_x[i], -50));
    for (std::size_t k = 0; k < c.weight.size(); ++k) CHECK(is_near(c.slope(c.weight[k]), to_weight[k], -50));

    // The operations, after the forward one: of statistics that are rounded.
    attributes attrs = s.attrs;
    attrs.push_back({"eps", 0x1p-6});
    std::vector<array> in = evaluate_all(norm, {x}, attrs);
    in[0] = x;
    in.insert(in.begin(), g);
    const array out_weight = evaluate(norm + "_weight_backward", in, s.attrs);
    in.push_back(weight);
    const array out = evaluate(norm + "_backward", in, s.attrs);
    double scale = 1;
    for (const interval& v : to_x) scale = std::max(scale, std::abs(mpfr_get_d(v.lo(), MPFR_RNDN)));
    for (std::size_t i = 0; i < c.x.size(); ++i)
      CHECK(std::abs(real(at(out, static_cast<std::int64_t>(i))) - mpfr_get_d(to_x[i].lo(), MPFR_RNDN)) <
            scale * 0x1p-16);
    for (std::size_t k = 0; k < c.weight.size(); ++k)
      CHECK(is_near(number(value(at(out_weight, static_cast<std::int64_t>(k)))), to_weight[k], -8));
  }
}

}  // namespace

TEST_SUITE_END();
