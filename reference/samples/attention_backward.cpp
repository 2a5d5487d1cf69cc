// Operands of attention's gradients. Most are operands of attention beside its results, which are computed in binary64 from operations
// that IEEE 754 defines. Others have known results: q and k are not 0 in different places, so that all scores are one number m of a mask, or
// 0, and lse is m, so that all exponentials are 1. Then grad_v is a sum of numbers of g; and with numbers of g of which a query
// has one, 2^a, and with v and y apart by 2^s, all T are 2^(a + s) or its negative, and grad_q and grad_k are such sums of numbers of k and
// q, where scale is a power of two. Near-ties have beside these a query whose lse, or a key whose score, is far away, an lse next to m,
// or the least number among the addends.
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <vector>

#include "reference/attributes.hpp"
#include "reference/samples/detail.hpp"

namespace repdl::reference {
namespace {

/// e^x for x <= 0, to some 2^-50 of it.
double exponential_below(double x) {
  if (x < -700) return 0;
  constexpr double high = 0x1.62e42fefa38p-1, low = 0x1.ef35793c7673p-45;  // their sum is ln 2
  const double n = std::floor(x * std::numbers::log2e + 0.5);
  const double r = x - n * high - n * low;
  double sum = 1;
  for (int i = 14; i > 0; --i) sum = 1 + r * sum / i;
  return std::isnan(x) ? x : std::ldexp(sum, static_cast<int>(n));
}
/// ln x for 1 <= x < 2^60, to some 2^-50.
double logarithm_above(double x) {
  if (!(x >= 1)) return x;
  int e = 0;
  const double m = std::frexp(x, &e) * std::numbers::sqrt2, z = (m - 1) / (m + 1);
  double sum = 0;
  for (int i = 21; i > 0; i -= 2) sum = sum * z * z + 1.0 / i;
  return (e - 0.5) * std::numbers::ln2 + 2 * z * sum;
}

class attention_backward_maker {
 public:
  attention_backward_maker(sample_class c, const std::vector<dtype>& formats, const std::vector<shape_list>& shapes,
                           const attributes& attrs, std::uint64_t seed)
      : c_(c), t_(formats.at(1)), w_(seed, 1), seed_(seed), shapes_(shapes), formats_(formats), attrs_(attrs) {
    const shape_list &q = shapes.at(1), &k = shapes.at(2), &v = shapes.at(3);
    const std::size_t rank = q.size();
    std::int64_t heads = 1, groups = 1, blocks = 1;
    for (std::size_t i = 0; i + 3 < rank; ++i) blocks *= q[i];
    if (rank > 2) heads = q[rank - 3], groups = k[rank - 3];
    queries_ = q[rank - 2], inner_ = q[rank - 1], keys_ = k[rank - 2], columns_ = v[rank - 1];
    slices_ = blocks * groups;
    rows_ = groups == 0 ? 0 : heads / groups * queries_;
    heads_ = heads;
    offset_ = attribute_or(attrs, "bottom_right", false) ? keys_ - queries_ : 0;
    left_ = attribute_or<std::int64_t>(attrs, "left", -1);
    right_ = attribute_or<std::int64_t>(attrs, "right", -1);
    causal_ = attribute_or(attrs, "causal", false);
    scale_ = attribute_or(attrs, "scale", inner_ == 0 ? 1 : 1 / std::sqrt(static_cast<double>(inner_)));
    kind_ = w_.below(4);
    g_ = array(t_.type, shapes.at(0));
    y_ = array(t_.type, shapes.at(4));
    lse_ = array(t_.type == dtype::f64 ? dtype::f64 : dtype::f32, shapes.at(5));
  }

  std::vector<array> make() {
    using enum sample_class;
    const bool aims = c_ == ties || c_ == near_ties;
    if (aims ? w_.below(8) != 0 : (c_ == narrow_lattice || c_ == overflow_border) && kind_ < 2) {
      make_known();
    } else {
      make_from_results();
    }
    std::vector<array> all = {g_, q(), k(), v(), y_, lse_};
    all.insert(all.end(), forward_.begin() + 3, forward_.end());
    return all;
  }

 private:
  using line = std::vector<std::uint64_t>;

  array& q() { return forward_[0]; }
  array& k() { return forward_[1]; }
  array& v() { return forward_[2]; }
  array* mask() { return forward_.size() > 3 && !forward_[3].absent() ? &forward_[3] : nullptr; }
  array* slopes() { return forward_.size() > 4 && !forward_[4].absent() ? &forward_[4] : nullptr; }

  void fill_forward(sample_class c) {
    std::vector<dtype> formats(formats_.begin() + 1, formats_.begin() + 4);
    std::vector<shape_list> shapes(shapes_.begin() + 1, shapes_.begin() + 4);
    formats.insert(formats.end(), formats_.begin() + 6, formats_.end());
    shapes.insert(shapes.end(), shapes_.begin() + 6, shapes_.end());
    forward_ = fill_attention(c, formats, shapes, attrs_, seed_);
  }

  // ---- small draws

  std::uint64_t zero() { return w_.flip() ? t_.sign() : 0; }
  std::uint64_t ordinary(int exponent) {
    const bool negative = w_.flip();
    const int e = std::clamp(exponent - w_.between(0, 2), t_.f.emin, t_.f.emax - 1);
    return t_.with_exponent(negative, e, t_.p > 32 ? w_.next64() : w_.next());
  }
  std::uint64_t on_lattice(int exponent) {
    const bool negative = w_.flip();
    return t_.rounded(negative, w_.below(8), std::clamp(exponent - 2, t_.f.emin, t_.f.emax - 3));
  }
  std::uint64_t signed_power(int exponent) {
    const bool negative = w_.flip();
    return t_.pattern(negative, 1, std::clamp(exponent, t_.f.ulp_min(), t_.f.emax));
  }
  std::uint64_t of_integer(std::int64_t n, int e) const {
    return t_.rounded(n < 0, static_cast<std::uint64_t>(n < 0 ? -n : n), e);
  }
  /// In [0, 1).
  double fraction() { return static_cast<double>(w_.next()) * 0x1p-32; }
  std::int64_t one_of(std::int64_t n) { return w_.below(static_cast<std::uint32_t>(n)); }
  /// From one exponential down to another: a near-tie by 25 to 40 bits, by more than any format has, or by more than exponents have.
  double gap() {
    const std::uint32_t kind = w_.below(4);
    const double more = fraction();
    if (kind == 0) return 18 + 10 * more;
    if (kind == 1) return 28 + 100 * more;
    return kind == 2 ? 100 + 5000 * more : std::ldexp(1 + more, w_.between(12, std::min(100, t_.f.emax)));
  }

  static std::uint64_t rounded(dtype t, double x) { return convert(dtype::f64, t, std::bit_cast<std::uint64_t>(x)); }
  std::uint64_t finite(double x) const {
    const std::uint64_t bits = rounded(t_.type, x);
    return t_.is_finite(bits) ? bits : (x < 0 ? t_.sign() : 0) | t_.largest();
  }
  static double real(const array& a, std::int64_t i) {
    const std::uint64_t bits = convert(a.type, dtype::f64, a.get(index(i)));
    return std::bit_cast<double>(bits);
  }

  // ---- known results

  bool is_near() const { return c_ == sample_class::near_ties; }
  bool is_lattice() const { return c_ == sample_class::narrow_lattice; }
  bool is_border() const { return c_ == sample_class::overflow_border; }

  void make_known() {
    fill_forward(is_border() ? sample_class::ties : c_);
    const std::optional<int> power = detail::exponent_of_power(std::abs(scale_));
    power_of_scale_ = power.value_or(0);
    nearness_ = is_near() ? static_cast<near_way>(1 + w_.below(4)) : exactly;
    const bool full = mask() != nullptr && mask()->type != dtype::boolean && !mask()->shape.empty() &&
                      mask()->shape.back() == keys_ && keys_ > 1;
    if (nearness_ == key_below && !(power && keys_ > 2 && (full || inner_ > 1))) nearness_ = query_below;
    if (nearness_ == query_below && rows_ < 3) nearness_ = next_to_m;
    if (nearness_ == least_number && (rows_ < 3 || keys_ < 3)) nearness_ = next_to_m;
    const bool in_mask = full && w_.flip();
    far_key_ = nearness_ == key_below || nearness_ == least_number ? one_of(keys_) : -1;
    level_scores(in_mask);
    for (std::int64_t i = 0; i < slices_; ++i) {
      one_t_ = power && w_.below(3) != 0;
      far_row_ = nearness_ == query_below || nearness_ == least_number ? one_of(rows_) : -1;
      fill_q_and_k(i, in_mask);
      fill_v_and_y(i);
      fill_g(i);
      for (std::int64_t r = 0; r < rows_; ++r) lse_.set(index(i * rows_ + r), rounded(lse_.type, known_lse(r)));
    }
  }

  double known_lse(std::int64_t row) {
    if (nearness_ == query_below && row == far_row_) return level_ + gap();
    if (nearness_ != next_to_m) return level_;
    const bool negative = w_.flip();
    const double x = std::ldexp(1, -std::min(t_.p + 22 + w_.between(0, 100), 149));
    return negative ? -x : x;
  }

  /// Every finite number of a mask becomes one, and slopes 0, but some of near-ties, which are tiny.
  void level_scores(bool in_mask) {
    if (mask() != nullptr && mask()->type != dtype::boolean) {
      const bool nothing = nearness_ == next_to_m || w_.flip();
      const std::uint64_t level = nothing ? 0 : ordinary(2);
      for (std::int64_t n = 0; n < mask()->count(); ++n) {
        if (t_.is_finite(mask()->get(index(n)))) mask()->set(index(n), level);
      }
      level_ = mask()->count() > 0 ? real(array(t_.type, {1}, line{level}), 0) : 0;
      for (std::int64_t n = far_key_; nearness_ == key_below && in_mask && n < mask()->count(); n += keys_)
        mask()->set(index(n), finite(level_ - gap()));
    }
    if (slopes() == nullptr || (is_near() && w_.below(4) == 0)) return;
    for (std::size_t h = 0; h < index(slopes()->count()); ++h) slopes()->set(h, w_.flip() ? detail::sign32 : 0);
  }

  /// Of which two places the sum is a midpoint: those that are seen most, or any.
  struct two_places {
    std::int64_t one, half;
  };
  two_places places(std::int64_t n, std::int64_t far, bool last) {
    if (n < 1) return {-1, -1};
    std::int64_t one = one_of(n), half = one_of(n);
    if (w_.flip()) {
      one = last ? n - 1 : 0;
      half = last ? std::max<std::int64_t>(n - 2, 0) : std::min<std::int64_t>(1, n - 1);
    }
    while (n > 2 && one == far) one = (one + 1) % n;
    while (n > 2 && (half == far || half == one)) half = (half + 1) % n;
    if (n == 2) half = 1 - one;
    return {one, half};
  }

  /// Numbers whose sum is a midpoint, or at the border of overflow, where it has both of two of them: one of all bits, and a half in its
  /// last place. The others are 0 or few units of that place, so that it does not matter which of them are there.
  line addends(std::int64_t n, std::int64_t far, bool last) {
    line x(index(n));
    const two_places at = places(n, far, last);
    const bool negative = w_.flip();
    const std::uint64_t top = std::uint64_t{1} << (t_.p - 1);
    const std::uint64_t m =
        is_border() ? 2 * top - 1 - w_.below(2)
                    : top + (t_.p > 32 ? w_.next64() % (top / 2) : w_.below(static_cast<std::uint32_t>(top / 2)));
    const bool high = is_border() || nearness_ == least_number;
    const int highest = t_.f.emax - t_.p + 1;
    const int unit = high ? highest - (is_border() ? 0 : w_.between(1, 2))
                          : std::clamp(w_.between(-8, 6) - t_.p, t_.f.ulp_min() + 1, highest);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint32_t few = w_.below(8);
      const bool minus = w_.flip();
      std::uint64_t& y = x[index(i)];
      if (is_lattice()) {
        y = on_lattice(2);
      } else if (i == at.one) {
        y = t_.pattern(negative, m, unit);
      } else if (i == at.half) {
        y = t_.pattern(is_border() ? negative != (few == 0) : minus, 1, unit - 1);
      } else if (i == far) {
        y = nearness_ == least_number ? t_.pattern(minus, 1, t_.f.ulp_min()) : ordinary(2);
      } else {
        y = few > 3 || few == 0 || is_border() ? (minus ? t_.sign() : 0) : t_.pattern(minus, few, unit);
      }
    }
    return x;
  }
  static void put(array& a, std::int64_t first, std::int64_t step, const line& x) {
    for (std::size_t n = 0; n < x.size(); ++n) a.set(index(first + static_cast<std::int64_t>(n) * step), x[n]);
  }

  /// q has numbers in the first places, k in the others; far below by the first one.
  void fill_q_and_k(std::int64_t slice, bool in_mask) {
    const std::int64_t cut = inner_ == 1 ? w_.below(2) : inner_ / 2;
    const std::int64_t first_q = slice * rows_ * inner_, first_k = slice * keys_ * inner_;
    for (std::int64_t d = 0; d < inner_; ++d) {
      line of_q(index(rows_)), of_k(index(keys_));
      for (std::uint64_t& x : of_q) x = zero();
      for (std::uint64_t& x : of_k) x = zero();
      if (d < cut) of_q = addends(rows_, far_row_, true);
      if (d >= cut) of_k = addends(keys_, far_key_, false);
      if (d == 0 && nearness_ == key_below && !in_mask && cut > 0 && keys_ > 0) {
        const double below = gap();
        const int e = std::clamp((std::ilogb(below) - std::ilogb(scale_)) / 2, t_.f.emin, t_.f.emax);
        of_q.assign(of_q.size(), t_.pattern(false, 1, e));
        of_k[index(far_key_)] = finite(-std::ldexp(below / scale_, -e));
      }
      put(q(), first_q + d, inner_, of_q);
      put(k(), first_k + d, inner_, of_k);
    }
  }

  /// v and y apart by a power of two; or any, where results of T are not aimed at.
  void fill_v_and_y(std::int64_t slice) {
    apart_ = w_.between(-3, 3);
    for (std::int64_t e = 0; e < columns_; ++e) {
      const int units = w_.between(-4, 4);
      const std::uint64_t common = one_t_ ? of_integer(units, apart_) : on_lattice(2);
      const bool same = !one_t_ && w_.below(4) == 0;
      line of_v(index(keys_)), of_y(index(rows_), common);
      for (std::uint64_t& x : of_v) {
        const bool up = w_.flip();
        if (one_t_) {
          x = of_integer(units + (up ? 1 : -1), apart_);
        } else {
          x = same && w_.below(4) != 0 ? common : is_lattice() ? on_lattice(2) : ordinary(2);
        }
      }
      put(v(), slice * keys_ * columns_ + e, columns_, of_v);
      put(y_, slice * rows_ * columns_ + e, columns_, of_y);
    }
  }

  void fill_g(std::int64_t slice) {
    const std::int64_t first = slice * rows_ * columns_;
    if (!one_t_) {
      for (std::int64_t e = 0; e < columns_; ++e) put(g_, first + e, columns_, addends(rows_, far_row_, true));
      return;
    }
    const int exponent = -power_of_scale_ - apart_ + (is_border() || nearness_ == least_number ? 0 : w_.between(-3, 3));
    for (std::int64_t r = 0; r < rows_ && columns_ > 0; ++r) {
      line x(index(columns_));
      for (std::uint64_t& one : x) one = zero();
      x[index(one_of(columns_))] = signed_power(exponent);
      if (w_.below(16) == 0) x.assign(x.size(), 0);
      put(g_, first + r * columns_, 1, x);
    }
  }

  // ---- operands of attention and its results

  void make_from_results() {
    using enum sample_class;
    const bool aims = c_ == ties || c_ == near_ties;
    const bool as_ordinary = (c_ == single_nonfinite && w_.flip()) || (c_ == subnormal && kind_ > 1) ||
                             (c_ == overflow_border && kind_ == 3);
    fill_forward(as_ordinary ? normal_range : c_);
    if (c_ == cancelling && kind_ == 0) values_alike();
    if (c_ == cancelling && kind_ == 1) queries_in_pairs();
    for (std::int64_t row = 0; row < slices_ * rows_; ++row) draw_g(row);
    for (std::int64_t row = 0; row < slices_ * rows_; ++row) results_of(row);
    const bool others = w_.below(4) == 0;
    for (std::int64_t row = 0; row < slices_ * rows_; ++row) disturb(row, others && !aims);
    if (c_ == cancelling && kind_ == 1) gradients_in_pairs();
    if (as_ordinary && c_ == single_nonfinite) spoil();
  }

  /// All T are 0 where y is what all values are.
  void values_alike() {
    for (std::int64_t i = 0; i < slices_ * keys_ * columns_; ++i) {
      const std::int64_t first = i / (keys_ * columns_) * keys_ * columns_ + i % columns_;
      v().set(index(i), v().get(index(first)));
    }
  }
  /// Of two queries with one number of opposite signs in g all addends to a key cancel.
  void queries_in_pairs() {
    for (std::int64_t row = 0; row < slices_ * rows_; ++row) {
      if (row % rows_ % 2 == 0) continue;
      for (std::int64_t d = row * inner_; d < (row + 1) * inner_; ++d) q().set(index(d), q().get(index(d - inner_)));
    }
  }
  void gradients_in_pairs() {
    for (std::int64_t row = 0; row < slices_ * rows_; ++row) {
      if (row % rows_ % 2 == 0) continue;
      for (std::int64_t e = row * columns_; e < (row + 1) * columns_; ++e)
        g_.set(index(e), g_.get(index(e - columns_)) ^ t_.sign());
      if (w_.below(8) == 0) lse_.set(index(row), lse_.get(index(row)) ^ 1);
    }
  }

  void draw_g(std::int64_t row) {
    using enum sample_class;
    const bool nothing = w_.below(8) == 0, keep = w_.below(16) == 0;
    for (std::int64_t e = row * columns_; e < (row + 1) * columns_; ++e) {
      std::uint64_t x = 0;
      if (nothing || (c_ == zeros && w_.below(8) != 0)) {
        x = zero();
      } else if (c_ == narrow_lattice || (c_ == overflow_border && kind_ != 3)) {
        x = on_lattice(2);
      } else if (c_ == uniform_patterns || c_ == wide_exponents || (c_ == subnormal && kind_ == 2)) {
        x = t_.drawn(c_, keep, w_);
      } else {
        x = ordinary(1);
      }
      g_.set(index(e), x);
    }
  }

  bool in_reach(std::int64_t row, std::int64_t j) {
    const std::int64_t d = j - row % queries_ - offset_;
    return !(causal_ && d > 0) && !(left_ >= 0 && d < -left_) && !(right_ >= 0 && d > right_);
  }
  /// The place of a pair's number in the mask.
  std::int64_t place_in_mask(std::int64_t row, std::int64_t j) {
    std::int64_t place = 0, step = 1, rest = row * keys_ + j;
    const shape_list& q_shape = shapes_[1];
    for (std::size_t back = 1; back <= mask()->shape.size(); ++back) {
      const std::int64_t size = mask()->shape[mask()->shape.size() - back];
      const std::int64_t full = back == 1 ? keys_ : q_shape[q_shape.size() - back];
      if (size != 1) place += rest % full * step;
      step *= size;
      rest /= full;
    }
    return place;
  }
  /// The score in binary64; absent of an absent key.
  std::optional<double> score(std::int64_t row, std::int64_t j) {
    if (!in_reach(row, j)) return std::nullopt;
    double added = 0;
    if (mask() != nullptr) {
      const std::int64_t place = place_in_mask(row, j);
      if (mask()->type == dtype::boolean ? mask()->get(index(place)) == 0
                                         : mask()->get(index(place)) == t_.minus_infinity())
        return std::nullopt;
      if (mask()->type != dtype::boolean) added = real(*mask(), place);
    }
    double a = 0;
    const std::int64_t key = row / rows_ * keys_ + j;
    for (std::int64_t d = 0; d < inner_; ++d) a += real(q(), row * inner_ + d) * real(k(), key * inner_ + d);
    a *= scale_;
    if (slopes() != nullptr)
      a += real(*slopes(), row / queries_ % heads_) * static_cast<double>(j - row % queries_ - offset_);
    return a + added;
  }

  /// y and lse of a query.
  void results_of(std::int64_t row) {
    std::vector<std::optional<double>> scores;
    double top = -HUGE_VAL, sum = 0;
    bool any = false, nan = false;
    for (std::int64_t j = 0; j < keys_; ++j) {
      scores.push_back(score(row, j));
      if (!scores.back()) continue;
      any = true;
      nan = nan || std::isnan(*scores.back());
      top = std::max(top, *scores.back());
    }
    if (nan) top = std::numeric_limits<double>::quiet_NaN();
    std::vector<double> of(index(columns_));
    for (std::int64_t j = 0; j < keys_; ++j) {
      if (!scores[index(j)]) continue;
      const double weight = exponential_below(*scores[index(j)] - top);
      sum += weight;
      for (std::int64_t e = 0; e < columns_; ++e)
        of[index(e)] += weight * real(v(), (row / rows_ * keys_ + j) * columns_ + e);
    }
    lse_.set(index(row), rounded(lse_.type, std::isinf(top) || nan ? top : top + logarithm_above(sum)));
    for (std::int64_t e = 0; e < columns_; ++e)
      y_.set(index(row * columns_ + e), rounded(t_.type, any ? of[index(e)] / sum : 0));
  }

  /// Other numbers for y and lse, and what makes results large or small.
  void disturb(std::int64_t row, bool others) {
    using enum sample_class;
    const auto add = [&](double x) { lse_.set(index(row), rounded(lse_.type, real(lse_, row) + x)); };
    const double by = fraction();
    if (c_ == cancelling && kind_ == 0 && columns_ > 0 && w_.below(4) == 0) {
      const std::size_t e = index(row * columns_ + one_of(columns_));
      y_.set(e, y_.get(e) ^ 1);
    }
    if (others) {
      for (std::int64_t e = row * columns_; e < (row + 1) * columns_; ++e) y_.set(index(e), ordinary(2));
      add(8 * by - 4);
    }
    if (c_ == subnormal && kind_ == 3) add((2 + t_.p * by - t_.f.emin) * std::numbers::ln2);
    if (c_ == overflow_border && kind_ == 3) add((3 * by - 1 - t_.f.emax) * std::numbers::ln2);
    if (c_ == wide_exponents && kind_ == 3) add(std::ldexp(by - 0.5, w_.between(0, 127)));
    if (c_ == wide_exponents && kind_ == 2) add((by - 0.5) * 2 * t_.f.emax);
    if (c_ == uniform_patterns && kind_ == 3) {
      const bool keep = w_.below(16) == 0;
      lse_.set(index(row), detail::patterns_of<std::uint64_t>(lse_.type).drawn(c_, keep, w_));
      for (std::int64_t e = row * columns_; e < (row + 1) * columns_; ++e) y_.set(index(e), t_.drawn(c_, keep, w_));
    }
  }

  /// NaN and infinities in one query of a head or two, and in those without keys.
  void spoil() {
    for (std::int64_t row = 0; row < slices_ * rows_; ++row) {
      bool any = false;
      for (std::int64_t j = 0; j < keys_ && !any; ++j) any = score(row, j).has_value();
      if (any && one_of(rows_) != 0) continue;
      const std::uint32_t where = any ? 1U << w_.below(3) : 1 + w_.below(7);
      const auto e = index(row * columns_ + (columns_ > 0 ? one_of(columns_) : 0));
      if ((where & 1) != 0 && columns_ > 0) g_.set(e, t_.special(w_));
      if ((where & 2) != 0 && columns_ > 0) y_.set(e, t_.special(w_));
      if ((where & 4) != 0) lse_.set(index(row), detail::patterns_of<std::uint64_t>(lse_.type).special(w_));
    }
  }

  enum near_way { exactly, query_below, key_below, next_to_m, least_number };

  sample_class c_;
  detail::patterns_of<std::uint64_t> t_;
  word_stream w_;
  std::uint64_t seed_;
  const std::vector<shape_list>& shapes_;
  const std::vector<dtype>& formats_;
  const attributes& attrs_;
  std::int64_t slices_ = 1, rows_ = 0, heads_ = 1;  ///< heads of k and v; rows of q that go with one
  std::int64_t queries_ = 0, inner_ = 0, keys_ = 0, columns_ = 0;
  std::int64_t offset_ = 0, left_ = -1, right_ = -1;
  bool causal_ = false;
  double scale_ = 1;
  std::uint32_t kind_ = 0;  ///< one of several of a class
  array g_, y_, lse_;
  std::vector<array> forward_;  ///< q, k, v, mask, slopes
  // Known results:
  bool one_t_ = false;  ///< of one magnitude
  near_way nearness_ = exactly;
  std::int64_t far_key_ = -1, far_row_ = -1;
  int power_of_scale_ = 0, apart_ = 0;
  double level_ = 0;  ///< m
};

}  // namespace

std::vector<array> fill_attention_backward(sample_class c, const std::vector<dtype>& formats,
                                           const std::vector<shape_list>& shapes, const attributes& attrs,
                                           std::uint64_t seed) {
  return attention_backward_maker(c, formats, shapes, attrs, seed).make();
}

}  // namespace repdl::reference
