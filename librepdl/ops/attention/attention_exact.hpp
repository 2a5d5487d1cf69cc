// The last tier of attention (attention.hpp): groups of equal scores, and the sign of F(c).
#pragma once

#include "librepdl/num/multi_limb_functions.hpp"
#include "librepdl/ops/attention/attention.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// A score, exactly: the sum of products has 640 bits, and 693 times scale; slope (j - at) + mask has 24 + 63 and 277 of them. 1024 hold either, and
// their sum unless scale takes them far apart: then it is truncated, which `inexact` says, but no zero. In binary64 the sum of products, times scale,
// is a multiple of 2^-2400 below 2^2310, slope (j - at) + mask one of 2^-1074, and products of three numbers, times 1 - p and scale, multiples
// of 2^-3560 below 2^3340 (attention_backward.hpp): 7168 bits hold all of it.
template <class T>
inline constexpr int exact_size = is_binary64<T> ? 112 : 16;
template <class T>
using exact_limbs = multi_limb<exact_size<T>>;
template <class T>
using number_sum = exact_accumulator<attention_number<T>, 1>;
template <class T>
using product_sum = exact_accumulator<attention_number<T>, 2>;
template <class T>
REPDL_HD_CALL exact_limbs<T> scaled_score(const attention_query<T>& query, const product_sum<T>& sum, bool* inexact) {
  return multiply(limbs_of_sum<exact_size<T>>(sum), limbs_of_value<exact_size<T>>(query.scale), inexact);
}
// slope times an integer, plus two numbers of binary32, or T's.
template <class T>
REPDL_HD_CALL exact_limbs<T> score_bias(const attention_query<T>& query, std::int64_t places, double a, double b) {
  constexpr int N = exact_size<T>;
  bool inexact = false;  // stays
  const exact_limbs<T> r = add(limbs_of_value<N>(a), limbs_of_value<N>(b), &inexact);
  const exact_limbs<T> slope = limbs_of_value<N>(query.has_slope ? query.slope : 0.0);
  const auto n = static_cast<std::uint64_t>(places < 0 ? -places : places);
  const exact_limbs<T> along = multiply(slope, n, &inexact);
  return add(r, places < 0 ? negated(along) : along, &inexact);
}
// The score less `less`.
template <class T>
REPDL_HD_CALL ball<exact_size<T>> exact_score(const attention_query<T>& query, std::int64_t j, double less = 0.0) {
  product_sum<T> sum;
  for (std::int64_t d = 0; d < query.size; ++d) sum.add_product(query.query_value(d), query.key_value(j, d));
  bool inexact = false;
  const exact_limbs<T> product = scaled_score(query, sum, &inexact);
  const double mask = query.is_added ? static_cast<double>(query.mask_value(j)) : 0.0;
  const exact_limbs<T> r = add(product, score_bias(query, j - query.at, mask, -less), &inexact);
  return {r, rounding_error(r, inexact)};
}
// Whether a_i = a_j: scale (q k_i - q k_j) and the difference of what is added to them, the sum of which is only truncated where one of both is too
// large for it to be 0.
template <class T>
REPDL_HD_CALL bool same_score(const attention_query<T>& query, std::int64_t i, std::int64_t j) {
  product_sum<T> difference;
  for (std::int64_t d = 0; d < query.size; ++d) {
    const attention_number<T> x = query.query_value(d);
    difference.add_product(x, query.key_value(i, d));
    difference.add_product(-x, query.key_value(j, d));
  }
  bool inexact = false;
  const double a = query.is_added ? static_cast<double>(query.mask_value(i)) : 0.0;
  const double b = query.is_added ? static_cast<double>(query.mask_value(j)) : 0.0;
  const exact_limbs<T> rest = score_bias(query, i - j, a, -b);
  return add(scaled_score(query, difference, &inexact), rest, &inexact).is_zero();
}

// 1 - p.
template <int L>
REPDL_HD multi_limb<L> kept_limbs(const attention_draws& draws) {
  bool inexact = false;  // stays
  return add(limbs_of_value<L>(1.0), limbs_of_value<L>(-draws.dropped), &inexact);
}

// Whether two scores may be equal by what is known of them.
REPDL_HD bool may_be_equal(const wide<double>& a, const wide<double>& b) {
  const double apart = magnitude_of((a.value.hi - b.value.hi) + (a.value.lo - b.value.lo));
  const double size = magnitude_of(a.value.hi) + magnitude_of(b.value.hi);
  return !(apart > (a.error + b.error) * (1 + 0x1p-10) + 0x1p-100 * size);
}

// 64 L leading bits.
template <int L, int M>
REPDL_HD ball<L> shortened(const ball<M>& a) {
  if constexpr (L >= M) {
    return widen_ball<L>(a);
  } else {
    bool inexact = false;
    const multi_limb<L> r = normalise<L, M>(a.middle.limb, a.middle.exponent, a.middle.negative, &inexact);
    return {r, add(a.radius, rounding_error(r, inexact))};
  }
}
// 1 - p, also where nothing is dropped. (A division by it where something is, in a branch of query_exact::ends_by, gave wrong results of calls in which nothing
// was: nvcc 13.0, sm_90, H200.)
template <int L>
REPDL_HD ball<L> kept_ball(const attention_draws& draws) {
  return shortened<L>(exact_ball(kept_limbs<16>(draws)));
}
// e^x for x <= 0; far below only enclosed: between 0 and 2^(-64 (L + 4)), or beside terms of binary64, whose magnitudes are far apart, 2^-11800, more
// than e^-8192.
template <int L, int M>
REPDL_HD_CALL ball<L> exponential_below(const ball<M>& x) {
  constexpr bool is_wide = M > 16;
  constexpr double far = is_wide ? -8192.0 : -45.0 * (L + 5);
  const lanes_together together;
  const std::int64_t exponent = x.middle.exponent;
  const bool is_far = exponent > 20 || (exponent > 0 && double_near(x.middle) < far);
  ball<L> r{zero_limbs<L>(), power_magnitude(is_wide ? -11800 : -64 * (L + 4))};
  if (!is_far) r = exponential(shortened<L>(x));
  together.meet();
  return r;
}

// lo and hi, two neighbours of T, and what a number between them rounds to: whether it lies below their middle, above it, or there (0). An
// infinite hi stands for the power of two that the largest number would be followed by; -0 and +0 have the middle 0, and exact zeros are +0.
template <class T>
struct neighbours {
  T low, high;
  bool known;

  REPDL_HD static std::int64_t place_of(storage_of<T> b) {
    const auto magnitude = static_cast<std::int64_t>(b & static_cast<storage_of<T>>(~sign_mask<T>));
    return (b & sign_mask<T>) != 0 ? -1 - magnitude : magnitude;
  }
  REPDL_HD static neighbours of(T a, T b) {
    const storage_of<T> x = to_bits(a), y = to_bits(b);
    const bool near = !is_nan(a) && !is_nan(b) && place_of(x) + 1 == place_of(y);
    return {a, b, near};
  }
  REPDL_HD bool is_zero() const { return number_of(low) == 0 && number_of(high) == 0; }
  REPDL_HD T at(int sign) const {
    if (sign != 0) return sign < 0 ? low : high;
    if (is_zero()) return from_bits<T>(storage_of<T>{0});
    return (to_bits(low) & 1) == 0 ? low : high;
  }
  // The middle, exactly.
  REPDL_HD exact_limbs<T> middle() const {
    number_sum<T> sum;
    take_from(sum);
    return negated(scaled(limbs_of_sum<exact_size<T>>(sum), -1));
  }
  // sum -= low + high, twice the middle.
  REPDL_HD void take_from(number_sum<T>& sum) const {
    take(sum, low);
    take(sum, high);
  }

 private:
  REPDL_HD static void take(number_sum<T>& sum, T x) {
    const attention_number<T> f = number_of(x);
    if (is_finite(static_cast<double>(f))) {
      sum.add(-f);
    } else {
      sum.add_scaled(1, format<T>::emax + 1, f > 0);
    }
  }
};

// Of threads that go the same way together, whether any of them is to; of one alone, whether it is. Threads of a GPU that wait outside of a function
// for others inside it are let go too early at times (docs/ptxas-barriers.md): what asks `any` is called by all or by none.
struct alone {
  REPDL_HD bool operator()(bool x) const { return x; }
};

// The keys of a query with their scores, in memory that the caller has: keys[j - first].
template <class T, class Any = alone>
struct query_exact {
  static constexpr int exact = exact_size<T>;
  using lse_number = lse_of<T>;
  const attention_query<T>& query;
  late_key* keys;
  bool has_groups = false;
  Any any{};

  REPDL_HD std::int64_t count() const { return query.last - query.first; }
  REPDL_HD bool has_weight(std::int64_t n) const { return keys[n].has_weight(); }

  // The first key of the same score, of key n, which need not be there.
  REPDL_HD void find_group(std::int64_t n) {
    const bool is_there = n < count();
    bool is_open = is_there && has_weight(n);
    std::int64_t group = is_open ? n : -1;
    for (std::int64_t i = 0; any(is_open && i < n); ++i) {
      const bool asks = is_open && i < n && has_weight(i) && may_be_equal(keys[i].score, keys[n].score);
      if (!any(asks)) continue;
      const bool same = same_score(query, query.first + i, query.first + (is_there ? n : 0));
      if (!(asks && same)) continue;
      group = i;
      is_open = false;
    }
    if (is_there) keys[n].group = group;
  }
  REPDL_HD void find_groups() {
    if (has_groups) return;
    for (std::int64_t n = 0; n < count(); ++n) find_group(n);
    has_groups = true;
  }

  // 2 V_g for the group that key n is the first of: sums of multiples of 2^-149, and of 2^-149 (1 - p), below 2^192; in binary64 of 2^-1074, below 2^1088.
  REPDL_HD_CALL exact_limbs<T> group_sum(std::int64_t n, std::int64_t e, const neighbours<T>& ends) const {
    number_sum<T> sum, taken;
    const bool drops = query.draws.any();
    for (std::int64_t i = n; i < count(); ++i) {
      if (keys[i].group != n) continue;
      if (query.is_kept(query.first + i)) {
        const attention_number<T> x = query.value(query.first + i, e);
        sum.add(x);
        sum.add(x);
      }
      ends.take_from(drops ? taken : sum);
    }
    if (!drops) return limbs_of_sum<exact>(sum);
    bool inexact = false;  // stays
    const exact_limbs<T> of_middle = multiply(limbs_of_sum<exact>(taken), kept_limbs<exact>(query.draws), &inexact);
    return add(limbs_of_sum<exact>(sum), of_middle, &inexact);
  }
  // Whether key n is the first of a group that has a sum.
  REPDL_HD bool counts(std::int64_t n, std::int64_t e, const neighbours<T>& ends) const {
    return keys[n].group == n && !group_sum(n, e, ends).is_zero();
  }
  // The greatest exact score of the keys n that `is_meant` is true of; -1: none.
  template <class IsMeant>
  REPDL_HD std::int64_t greatest(const IsMeant& is_meant) const {
    std::int64_t best = -1;
    ball<exact> top = exact_ball(zero_limbs<exact>());
    for (std::int64_t n = 0; n < count(); ++n) {
      const bool meant = is_meant(n);
      if (!any(meant)) continue;
      const ball<exact> a = exact_score(query, query.first + n);
      const int sign = sign_in(subtract(a, top));
      if (!meant || (best >= 0 && sign <= 0)) continue;
      best = n;
      top = a;
    }
    return best;
  }
  // e^(a_n - a_top), exactly 1 for the top itself.
  template <int L>
  REPDL_HD ball<L> weight(std::int64_t n, std::int64_t top, const ball<exact>& most) const {
    ball<L> w = exponential_below<L>(subtract(exact_score(query, query.first + n), most));
    if (n == top) w = exact_ball(limbs_of_power<L>(0));
    return w;
  }

  // The sign of F(c), or 2 where L limbs do not show it. top: a key with a group that has a sum.
  template <int L>
  REPDL_HD_CALL int sign_at(std::int64_t e, const neighbours<T>& ends, std::int64_t top) const {
    const lanes_together together;
    const ball<exact> most = exact_score(query, query.first + top);
    ball<L> sum = exact_ball(zero_limbs<L>());
    for (std::int64_t n = 0; n < count(); ++n) {
      if (keys[n].group != n) continue;
      ball<L> term = shortened<L>(exact_ball(group_sum(n, e, ends)));
      multiply_by(term, weight<L>(n, top, most));
      add_to(sum, term);
    }
    together.meet();
    return sign_in(sum);
  }
  // That sign, 0 where no group has a sum; of those that ask.
  REPDL_HD int sign_between(std::int64_t e, const neighbours<T>& ends, int bits, bool asks) {
    find_groups();
    const std::int64_t top = greatest([&](std::int64_t n) { return asks && counts(n, e, ends); });
    int sign = 0;
    if (any(top >= 0)) {
      const std::int64_t at = top < 0 ? 0 : top;
      int shown = 2;
      if (bits >= 512) shown = sign_at<8>(e, ends, at);
      if constexpr (!on_device) {
        if (shown == 2 && bits >= 1024) shown = sign_at<16>(e, ends, at);
        if (shown == 2 && bits >= 2048) shown = sign_at<32>(e, ends, at);
      }
      if (top >= 0) sign = shown;
    }
    return sign;
  }

  // Result e between two neighbours, by balls.
  template <int L>
  REPDL_HD_CALL neighbours<T> ends_by(std::int64_t e, std::int64_t top) const {
    const lanes_together together;
    const ball<exact> most = exact_score(query, query.first + top);
    ball<L> sum = exact_ball(zero_limbs<L>());
    ball<L> weights = sum;
    for (std::int64_t n = 0; n < count(); ++n) {
      if (!has_weight(n)) continue;
      ball<L> w = weight<L>(n, top, most);
      add_to(weights, w);
      if (!query.is_kept(query.first + n)) continue;
      multiply_by_value(w, static_cast<double>(query.value(query.first + n, e)));
      add_to(sum, w);
    }
    multiply_by(weights, kept_ball<L>(query.draws));
    divide_by(sum, weights);
    const ball_ends<L> ends = ends_of(sum);
    T low = from_bits<T>(round_bits<T>(ends.low)), high = from_bits<T>(round_bits<T>(ends.high));
    if (sum.exact()) low = high = from_bits<T>(round_bits<T>(sum.middle));
    neighbours<T> r = neighbours<T>::of(low, high);
    // Of one value: between itself and itself.
    r.known = (r.known || to_bits(low) == to_bits(high)) && sum.radius.exponent < (std::int64_t{1} << 39);
    together.meet();
    return r;
  }
  // Result e, of which double-doubles may know between which neighbours it lies; of those that ask.
  REPDL_HD decided_value<T> decide(std::int64_t e, neighbours<T> ends, int bits, bool asks = true) {
    const bool is_unknown = asks && !ends.known;
    if (any(is_unknown)) {
      const std::int64_t top = greatest([&](std::int64_t n) { return has_weight(n); });
      neighbours<T> found{T{}, T{}, false};
      if (bits >= 512) found = ends_by<8>(e, top);
      if constexpr (!on_device) {
        if (!found.known && bits >= 1024) found = ends_by<16>(e, top);
        if (!found.known && bits >= 2048) found = ends_by<32>(e, top);
      }
      if (is_unknown) ends = found;
    }
    if constexpr (is_binary64<T>) {
      // Around 0 there are more numbers of binary64 than few balls tell apart: whether it is 0 the groups say.
      const bool may_vanish = asks && !ends.known;
      if (any(may_vanish)) {
        const int sign = sign_between(e, {from_bits<T>(sign_mask<T>), T{}, true}, bits, may_vanish);
        if (may_vanish && sign == 0) ends = {T{}, T{}, true};
      }
    }
    const bool is_one = to_bits(ends.low) == to_bits(ends.high);
    const bool is_between = asks && ends.known && !is_one;
    int sign = 0;
    if (any(is_between)) sign = sign_between(e, ends, bits, is_between);
    return {is_one ? ends.low : ends.at(sign == 2 ? 0 : sign), ends.known && sign != 2};
  }

  // ln of the sum of exponentials, of at least one key.
  template <int L>
  REPDL_HD_CALL decided_value<lse_number> logarithm_by(std::int64_t top) const {
    constexpr int least = is_binary64<T> ? -2410 : -560;
    const lanes_together together;
    const ball<exact> most = exact_score(query, query.first + top);
    ball<L> rest = exact_ball(zero_limbs<L>());
    std::int64_t others = 0, equal = 0;
    for (std::int64_t n = 0; n < count(); ++n) {
      if (!has_weight(n) || n == top) continue;
      ++others;
      const ball<exact> gap = subtract(exact_score(query, query.first + n), most);
      if (gap.middle.is_zero() && gap.exact()) {
        ++equal;
      } else {
        add_to(rest, exponential_below<L>(gap));
      }
    }
    if (equal == 0) {
      to_logarithm_1p(rest);
      if (below_power(rest, least)) set_power(rest, least);
    } else {
      add_count(rest, equal + 1);
      to_logarithm(rest);
    }
    // Of a score of binary64, which may be a midpoint, all bits.
    constexpr int M = is_binary64<T> ? exact : L;
    ball<M> sum = widen_ball<M>(rest);
    add_to(sum, shortened<M>(most));
    decided_value<lse_number> r = round_ball<lse_number>(sum);
    if (others == 0 && most.exact()) r = {from_bits<lse_number>(round_bits<lse_number>(most.middle)), true};
    together.meet();
    return r;
  }
  REPDL_HD decided_value<lse_number> logarithm(int bits) const {
    const std::int64_t top = greatest([&](std::int64_t n) { return has_weight(n); });
    decided_value<lse_number> r{0, false};
    if (bits >= 512) r = logarithm_by<8>(top);
    if constexpr (!on_device) {
      if (!r.decided && bits >= 1024) r = logarithm_by<16>(top);
      if (!r.decided && bits >= 2048) r = logarithm_by<32>(top);
    }
    return r;
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
