// The oracle of norms in a second way: its results against statements that say nothing of how to round, for every class of
// sample inputs, and known answers by hand.
#include <doctest/doctest.h>

#include <bit>
#include <optional>
#include <vector>

#include "reference/evaluate.hpp"
#include "reference/layout.hpp"
#include "reference/numbers/real.hpp"
#include "reference/samples.hpp"

namespace {

using namespace repdl;
using namespace repdl::reference;
using integers = std::vector<std::int64_t>;

constexpr std::uint32_t inf = 0x7f800000, nan32 = 0x7fc00000, sign = 0x80000000, largest = 0x7f7fffff, one = 0x3f800000;

std::uint32_t bits(double x) {
  return static_cast<std::uint32_t>(convert(dtype::f64, dtype::f32, std::bit_cast<std::uint64_t>(x)));
}
bool is_finite(std::uint32_t x) { return (x & inf) != inf; }
bool is_nan(std::uint32_t x) { return (x & ~sign) > inf; }
bool is_negative(std::uint32_t x) { return (x & sign) != 0; }

/// b + c / sqrt(v), v > 0.
struct exact_number {
  mpq_class b, c, v;

  /// The sign of its difference from t: of (b - t) sqrt(v) + c, by squares.
  int compare(const mpq_class& t) const {
    const mpq_class a = b - t;
    if (a == 0 || c == 0 || sgn(a) == sgn(c)) return a == 0 ? sgn(c) : sgn(a);
    return cmp(a * a * v, c * c) * sgn(a);
  }
  interval near(mpfr_prec_t p) const { return interval(p, b) + interval(p, c) / sqrt(interval(p, v)); }
};

/// The value of a pattern, where 2^128 stands for infinity.
mpq_class value(std::uint32_t x) {
  if (is_finite(x)) return rational(dtype::f32, x);
  return is_negative(x) ? mpq_class(-power_of_two(128)) : power_of_two(128);
}
/// Whether a number that is not 0 has the rounding `got`: it lies between the middles to both neighbours, and on one of them
/// only where `got` is even.
bool is_rounded(const exact_number& f, std::uint32_t got) {
  if (is_nan(got) || is_negative(got) != (f.compare(0) < 0)) return false;
  const std::uint32_t magnitude = got & ~sign;
  const auto beyond = [&](std::uint32_t neighbour) {  // how far f is on the neighbour's side of the middle
    const mpq_class a = value(got), b = value(neighbour | (got & sign));
    const int side = f.compare((a + b) / 2);
    return a < b ? side : -side;
  };
  const int most = (got & 1) == 0 ? 0 : -1;
  return (magnitude == inf || beyond(magnitude + 1) <= most) && (magnitude == 0 || beyond(magnitude - 1) <= most);
}

/// Whether it lies in the middle between its rounding and a neighbour of that.
bool is_midpoint(const exact_number& f, std::uint32_t got) {
  if ((got & ~sign) == inf) return f.compare((value(got) + value(got - 1)) / 2) == 0;
  return f.compare((value(got) + value(got + 1)) / 2) == 0 ||
         ((got & ~sign) != 0 && f.compare((value(got) + value(got - 1)) / 2) == 0);
}

struct checked {
  std::int64_t all = 0, decided = 0, midpoints = 0;
};

/// What a formula, 1 in the place of an absent weight, says of an element.
void check_element(bool centred, std::uint32_t x, const std::optional<mpq_class>& m, const std::optional<mpq_class>& v,
                   std::uint32_t w, std::optional<std::uint32_t> b, std::uint32_t got, const outcome& where,
                   checked& n) {
  ++n.all;
  if (!m || *v == 0 || is_nan(w) || (b && is_nan(*b))) {
    CHECK(got == nan32);
    return;
  }
  const mpq_class d = rational(dtype::f32, x) - *m;
  const bool d_negative = d == 0 ? !centred && is_negative(x) : d < 0;
  const std::uint32_t product_sign = d_negative != is_negative(w) ? sign : 0;
  if (!is_finite(w)) {
    const bool none = d == 0 || (b && !is_finite(*b) && (*b & sign) != product_sign);
    CHECK(got == (none ? nan32 : inf | product_sign));
    return;
  }
  if (b && !is_finite(*b)) {
    CHECK(got == *b);
    return;
  }
  const exact_number f{b ? rational(dtype::f32, *b) : mpq_class(0), d * rational(dtype::f32, w), *v};
  if (f.compare(0) == 0) {
    CHECK(got == (b ? 0 : product_sign));
    return;
  }
  CHECK(is_rounded(f, got));
  const interval near = f.near(2000);
  const std::uint64_t low = round_mpfr(dtype::f32, near.lo()), high = round_mpfr(dtype::f32, near.hi());
  CHECK((got == low || got == high));
  n.decided += low == high;
  const bool midpoint = is_midpoint(f, got);
  CHECK(where.tie == midpoint);
  n.midpoints += midpoint;
}

/// Means, variances and all, as the definition has them.
void check_call(const std::string& op, const std::vector<array>& in, const attributes& attrs, checked& n) {
  const bool centred = op != "rms_norm";
  outcomes where;
  const std::vector<array> out = evaluate_all(op, in, attrs, &where);
  REQUIRE(out.size() == (centred ? 3 : 2));
  const norm_layout l = norm_layout_of(op, in[0].shape, attrs);
  const mpq_class eps = rational(attribute_or(attrs, "eps", 1e-5));
  const auto count = static_cast<long>(l.rows.reduced.size());
  const auto at = [](const array& a, std::int64_t i) { return static_cast<std::uint32_t>(a.get(index(i))); };
  for (std::size_t r = 0; r < l.rows.kept.size(); ++r) {
    std::optional<mpq_class> m, v;
    bool finite = count > 0;
    for (const std::int64_t i : l.rows.reduced) finite = finite && is_finite(at(in[0], l.rows.kept[r] + i));
    if (finite) {
      m = v = 0;
      for (const std::int64_t i : l.rows.reduced) *m += rational(dtype::f32, at(in[0], l.rows.kept[r] + i));
      *m = centred ? mpq_class(*m / count) : mpq_class(0);
      for (const std::int64_t i : l.rows.reduced) {
        const mpq_class d = rational(dtype::f32, at(in[0], l.rows.kept[r] + i)) - *m;
        *v += d * d;
      }
      *v = *v / count + eps;
    }
    const auto rstd = static_cast<std::uint32_t>(out.back().get(r));
    if (!finite) {
      CHECK(rstd == nan32);
    } else if (*v == 0) {
      CHECK(rstd == inf);
    } else {
      CHECK(is_rounded({0, 1, *v}, rstd));
    }
    if (centred && finite) {
      const auto mean = static_cast<std::uint32_t>(out[1].get(r));
      CHECK((*m == 0 ? mean == 0 : is_rounded({*m, 0, 1}, mean)));
    }
    for (std::size_t i = 0; i < l.rows.reduced.size(); ++i) {
      const std::int64_t place = l.rows.kept[r] + l.rows.reduced[i];
      const auto k = static_cast<std::int64_t>(l.weight_of(i, place));
      const bool weight = in.size() > 1 && !in[1].absent(), bias = in.size() > 2 && !in[2].absent();
      check_element(centred, at(in[0], place), m, v, weight ? at(in[1], k) : one,
                    bias ? std::optional(at(in[2], k)) : std::nullopt, at(out[0], place), where[index(place)], n);
    }
  }
}

TEST_SUITE_BEGIN("portable values");

TEST_CASE("reference: norms by squares, and with 2000 bits") {
  std::uint64_t stream = 0;
  struct shape {
    const char* op;
    shape_list x, weight;
    attributes attrs;
  };
  const shape shapes[] = {{"layer_norm", {3, 8}, {8}, {}},
                          {"layer_norm", {5, 2, 3}, {5, 3}, {{"axis", integers{2, 0}}}},
                          {"rms_norm", {3, 9}, {9}, {{"axis", integers{-1}}}},
                          {"rms_norm", {13}, {13}, {}},
                          {"group_norm", {2, 6, 5}, {6}, {{"groups", std::int64_t{3}}}},
                          {"batch_norm", {5, 3, 2}, {3}, {}}};
  checked n;
  for (const shape& s : shapes) {
    for (int c = 0; c < sample_class_count; ++c) {
      const auto kind = static_cast<sample_class>(c);
      if (kind == sample_class::all_patterns) continue;
      for (const double eps : {0.0, 1e-5, 0x1p-20, 0x1p-200, 0x1.8p199}) {
        for (int operands = 0; operands < 4; ++operands) {
          ++stream;
          if (operands > 1 && std::string(s.op) == "rms_norm") continue;
          std::vector<shape_list> all{s.x};
          if (operands != 0) all.push_back(operands == 2 ? absent_shape : s.weight);
          if (operands > 1) all.push_back(s.weight);
          attributes attrs = s.attrs;
          attrs.push_back({"eps", eps});
          CAPTURE(s.op);
          CAPTURE(std::string(name_of(kind)));
          CAPTURE(eps);
          CAPTURE(operands);
          check_call(s.op, fill_inputs(s.op, kind, all, attrs, 5, stream), attrs, n);
        }
      }
    }
  }
  CHECK(n.all > 15'000);
  CHECK(n.decided > 8'000);
  CHECK(n.midpoints > 500);
}

array tensor(shape_list shape, const std::vector<std::uint32_t>& v) { return {dtype::f32, std::move(shape), v}; }
array vec(const std::vector<double>& v) {
  std::vector<std::uint32_t> all;
  for (const double x : v) all.push_back(bits(x));
  return tensor({static_cast<std::int64_t>(v.size())}, all);
}
std::vector<patterns> of(const std::string& op, const std::vector<array>& in, const attributes& attrs) {
  std::vector<patterns> all;
  for (const array& a : evaluate_all(op, in, attrs)) all.push_back(a.patterns());
  return all;
}
attributes with_eps(double eps) { return {{"eps", eps}}; }

TEST_CASE("reference: norms by hand") {
  // 1 2 3 6: mean 3, variance 14/4; with eps 1/2 the root is 2
  const array x = vec({1, 2, 3, 6});
  using all = std::vector<patterns>;
  CHECK(of("layer_norm", {x}, with_eps(0.5)) == all{{bits(-1), bits(-0.5), 0, bits(1.5)}, {bits(3)}, {bits(0.5)}});
  CHECK(of("layer_norm", {x, vec({-1, 2, -1, 0}), vec({0, 1, -0.0, -0.0})}, with_eps(0.5)) ==
        all{{bits(1), 0, 0, 0}, {bits(3)}, {bits(0.5)}});
  CHECK(of("layer_norm", {x, vec({0, -0.0, -1, -0.0})}, with_eps(0.5))[0] == patterns{sign, 0, sign, sign});
  // 1 1 3 5: the mean of the squares is 9
  CHECK(of("rms_norm", {vec({1, -1, -0.0, 3, 5})}, with_eps(1.8 + 0x1p-52))[0][2] == sign);
  CHECK(of("rms_norm", {vec({1, -1, 3, 5}), vec({3, 6, -1, 1})}, with_eps(0)) ==
        all{{bits(1), bits(-2), bits(-1), bits(5.0 / 3)}, {bits(1.0 / 3)}});
  CHECK(of("rms_norm", {vec({0, -0.0, 0, -0.0}), vec({1, 1, -1, -1})}, with_eps(0.25)) ==
        all{{0, sign, sign, 0}, {bits(2)}});
  // midpoints: 1.5 (2^24 - 1) has 25 bits; 1 + 2^-24
  CHECK(of("rms_norm", {vec({2, 2, 2, 2, 0, 0, 0, 0, 0}), vec({0xaaaaab, 1, 1, 1, 1, 1, 1, 1, 1})},
           with_eps(0))[0][0] == bits(0xaaaaab * 1.5));
  CHECK(of("layer_norm", {vec({7, 9}), vec({-0x1p-24, 0x1p-24}), vec({1, 1})}, with_eps(0))[0] == patterns{one, one});
  CHECK(of("layer_norm", {vec({7, 9}), vec({-0x1p-24, 0x1p-24}), vec({1, 1 + 0x1p-23})}, with_eps(0))[0] ==
        patterns{one, bits(1 + 0x1p-22)});
  // ... and a little less than those
  CHECK(of("layer_norm", {vec({-1, 1}), vec({-0x1p-24, 0x1p-24}), vec({1, 1 + 0x1p-23})}, with_eps(0x1p-200))[0] ==
        patterns{one, bits(1 + 0x1p-23)});
  // no variance
  CHECK(of("layer_norm", {vec({5, 5, 5})}, with_eps(0)) == all{{nan32, nan32, nan32}, {bits(5)}, {inf}});
  CHECK(of("layer_norm", {vec({-5})}, with_eps(0x1p-200)) == all{{0}, {bits(-5)}, {bits(0x1p100)}});
  CHECK(of("layer_norm", {vec({-0.0, -0.0}), vec({-1, 1})}, with_eps(1)) == all{{sign, 0}, {0}, {one}});
  CHECK(of("rms_norm", {vec({0, -0.0})}, with_eps(0)) == all{{nan32, nan32}, {inf}});
  // NaN and infinities
  const double infinite = std::numeric_limits<double>::infinity();
  CHECK(of("layer_norm", {vec({1, infinite})}, with_eps(1)) == all{{nan32, nan32}, {inf}, {nan32}});
  CHECK(of("layer_norm", {vec({-infinite, infinite})}, with_eps(1)) == all{{nan32, nan32}, {nan32}, {nan32}});
  CHECK(of("layer_norm", {tensor({2}, {one, 0x7f800001})}, with_eps(1)) == all{{nan32, nan32}, {nan32}, {nan32}});
  CHECK(of("rms_norm", {vec({1, -infinite})}, with_eps(1)) == all{{nan32, nan32}, {nan32}});
  const array wide = vec({-1, 0, 1, 0});
  CHECK(of("layer_norm", {wide, vec({infinite, infinite, -infinite, 0})}, with_eps(0.5))[0] ==
        patterns{inf | sign, nan32, inf | sign, 0});
  CHECK(of("layer_norm", {wide, vec({infinite, 1, -infinite, 0}), vec({infinite, infinite, 1, -infinite})},
           with_eps(0.5))[0] == patterns{nan32, inf, inf | sign, inf | sign});
  // overflow, and a result below all numbers that keeps its sign
  CHECK(of("rms_norm", {vec({-1, 1, 1, 1}), tensor({4}, {largest, largest, 1, 1})}, with_eps(0))[0] ==
        patterns{largest | sign, largest, 1, 1});
  CHECK(of("rms_norm", {vec({-2, 0, 0, 0}), tensor({4}, {largest, 1, 1, 1})}, with_eps(0))[0][0] == (inf | sign));
  CHECK(of("rms_norm", {vec({-1}), tensor({1}, {1})}, with_eps(0x1p200)) == all{{sign}, {bits(0x1p-100)}});
  // nothing
  CHECK(of("layer_norm", {tensor({2, 0}, {})}, {}) == all{{}, {nan32, nan32}, {nan32, nan32}});
  CHECK(of("rms_norm", {tensor({2, 0}, {})}, with_eps(1)) == all{{}, {nan32, nan32}});

  // rows: samples 1 2 3 4 / 5 6 7 8 in two channels of two
  const array image = tensor({2, 2, 2}, vec({1, 3, 5, 9, 2, 2, 4, 8}).patterns());
  CHECK(evaluate_all("group_norm", {image}, {{"groups", std::int64_t{2}}})[1] ==
        tensor({2, 2}, vec({2, 7, 2, 6}).patterns()));
  CHECK(of("group_norm", {image}, {})[1] == patterns{bits(4.5), bits(4)});
  CHECK(of("batch_norm", {image}, {})[1] == patterns{bits(2), bits(6.5)});
  CHECK(of("batch_norm", {image}, {{"axis", std::int64_t{-1}}})[1] == patterns{bits(3), bits(5.5)});
  CHECK(of("layer_norm", {image}, {{"axis", integers{2, 0}}})[1] == patterns{bits(2), bits(6.5)});
  CHECK(of("layer_norm", {image}, {})[1] == patterns{bits(2), bits(7), bits(2), bits(6)});
  CHECK(of("layer_norm", {image}, {{"axis", integers{}}})[1] == image.patterns());
  // weights of a group's channels: 1 3 | 5 9, z = -1 1 -1 1
  const attributes groups{{"groups", std::int64_t{2}}, {"eps", 0.0}};
  CHECK(of("group_norm", {tensor({1, 2, 2}, vec({1, 3, 5, 9}).patterns()), vec({2, 3}), vec({10, 20})}, groups)[0] ==
        vec({8, 12, 17, 23}).patterns());
  CHECK(of("batch_norm", {tensor({2, 2}, vec({1, 5, 3, 9}).patterns()), vec({2, 3}), vec({10, 20})}, with_eps(0))[0] ==
        vec({8, 17, 12, 23}).patterns());
  CHECK_THROWS_AS(evaluate_all("group_norm", {image}, {{"groups", std::int64_t{3}}}), std::invalid_argument);
  CHECK_THROWS_AS(evaluate_all("layer_norm", {x, vec({1, 2})}, {}), std::invalid_argument);
  CHECK_THROWS_AS(evaluate_all("rms_norm", {x}, {}), std::invalid_argument);
}

}  // namespace

TEST_SUITE_END();
