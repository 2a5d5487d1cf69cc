// Prefixes of a line: the sum, the product, or ln of the sum of exponentials, of its first elements, each the exact value rounded once.
//
// A prefix type says what is carried along a line of T, whose elements come as binary64 numbers:
//   special   what decides without arithmetic, whatever else comes but more of it: NaN, infinities, of products zeros
//   first     the prefix in double-doubles that know their error; value: it rounded, or undecided. Nothing special was added to it.
//   late<L>   the same in more bits, from `bits` of the call's on; L limbs, or what decides every prefix
// A prefix that `first` leaves undecided is asked of late states, each of which then takes the elements since it was last asked
// (late_prefixes): a line of n elements takes n additions of a state, however many of its prefixes are undecided.
//
// u = 2^-53.
#pragma once

#include "librepdl/num/fixed_point.hpp"
#include "librepdl/num/integers.hpp"
#include "librepdl/num/sums.hpp"
#include "librepdl/ops/elementwise/binary64.hpp"
#include "librepdl/ops/rows/softmax_binary64.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// The bits that a call may take for a state of so many limbs: as decide_by_levels.
constexpr int bits_of_limbs(int limbs) { return limbs < 4 ? 256 : 64 * limbs; }

// Sums. Binary64 terms may overflow on the way to a finite sum: where hi is not finite nothing is known, and the integer decides.
template <class T>
struct sum_prefix {
  using special = special_terms;
  struct first {
    twice_tracked_sum<double> sum;

    REPDL_HD void add(double x) { sum.add(x); }
    REPDL_HD decided_value<T> value() const {
      const dd s = sum.total();
      if (!is_finite(s.hi)) return {T{}, false};
      return certify<T>(s, sum.bound());
    }
  };
  template <int>
  struct late {
    static constexpr int bits = 0;
    exact_accumulator<T, 1> sum;

    REPDL_HD void add(double x) { sum.add(x); }
    REPDL_HD decided_value<T> value() const { return {sum.template round<T>(), true}; }
  };
};

// Products. The exact product is m 2^k with an odd m, the product of the elements' odd parts, which never shrinks: a prefix is a number
// of T or a midpoint only while m has at most p + 1 bits. So long every state is exact:
//   first   m of at most 53 bits lies in hi. Where it becomes m of 54 bits, that is the product of hi and a binary64 number, whose two
//           halves two_prod has exactly, and the elements that follow are powers of two.
//   late    m fits its limbs
// and an exact state decides ties (of m of 54 bits, and of subnormal results, late). Beyond, the product is no boundary, and enough bits
// decide: 2048 hold every product of 38 numbers of binary64, 85 of binary32, 186 of f16 and 256 of bf16, exactly; of longer ones, those
// that lie 2^-2048 beside a boundary are undecided.
template <class T>
struct product_prefix {
  struct special {
    bool nan = false;
    bool infinite = false;
    bool zero = false;
    bool negative = false;

    REPDL_HD void add(double x) {
      nan |= x != x;
      infinite |= magnitude_of(x) == infinity;
      zero |= x == 0;
      negative ^= (bits_of(x) >> 63) != 0;
    }
    REPDL_HD bool any() const { return nan | infinite | zero; }
    // A zero with an infinity: NaN.
    template <class U>
    REPDL_HD U value() const {
      using F = format<U>;
      const storage_of<U> sign = negative ? sign_mask<U> : storage_of<U>{0};
      if (nan || (infinite && zero)) return from_bits<U>(F::nan);
      return from_bits<U>(static_cast<storage_of<U>>(sign | (infinite ? F::infinity : storage_of<U>{0})));
    }
  };
  // |product| = m 2^exponent, 1 <= hi < 2. A factor's significand is in [1, 2): hi grows to less than 4, and is halved. Every factor
  // whose significand is not 1 loses 2^-103 of the product, or nothing (wide.hpp): 2^26 of them lose 2^-77.
  struct first {
    wide<double> m = {{1.0, 0.0}, 0.0};
    std::int64_t exponent = 0;
    bool negative = false;

    REPDL_HD void add(double x) {
      const significand<double> s = significand_of(x);
      negative ^= s.m < 0;
      exponent += static_cast<std::int64_t>(s.k);
      const double factor = magnitude_of(s.m);
      if (factor == 1) return;
      multiply_by_value(m, factor);
      if (m.value.hi >= 2) {
        m = {{m.value.hi * 0.5, m.value.lo * 0.5}, m.error * 0.5};
        ++exponent;
      }
    }
    REPDL_HD decided_value<T> value() const {
      if (!(m.error < 0x1p-20)) return {T{}, false};
      // Beyond 2^most a number of T has overflowed, and below 2^-most it is less than half of the least.
      constexpr std::int64_t most = sizeof(T) == 8 ? 1100 : 300;
      const std::int64_t k = exponent > most ? most : exponent < -most ? -most : exponent;
      decided_value<T> r;
      if constexpr (sizeof(T) == 8) {
        const decided_lanes<double> a = round_scaled(dd_ball_of(m), static_cast<double>(k));
        r = {a.value, a.decided};
      } else {
        const double scale = power_of_two(static_cast<int>(k));
        r = certify<T>(dd{m.value.hi * scale, m.value.lo * scale}, m.error * scale * (1 + 0x1p-10));
      }
      return {negative ? from_bits<T>(static_cast<storage_of<T>>(to_bits(r.value) | sign_mask<T>)) : r.value,
              r.decided};
    }
  };
  template <int L>
  struct late {
    static constexpr int bits = bits_of_limbs(L);
    ball<L> product = exact_ball(limbs_of_power<L>(0));

    REPDL_HD void add(double x) { multiply_by_value(product, x); }
    REPDL_HD decided_value<T> value() const { return round_ball<T>(product); }
  };
};

// ln of the sum of e^x: logsumexp of every prefix (exponential_sum.hpp, softmax_binary64.hpp), by its formulas, and decided where they are.
template <class T>
struct exponential_prefix {
  struct special {
    bool nan = false;
    bool infinite = false;

    REPDL_HD void add(double x) {
      nan |= x != x;
      infinite |= x == infinity;
    }
    REPDL_HD bool any() const { return nan | infinite; }
    template <class U>
    REPDL_HD U value() const {
      return from_bits<U>(nan ? format<U>::nan : format<U>::infinity);
    }
  };
  template <class A>
  struct state {
    using term = std::conditional_t<sizeof(T) == 8, double, float>;
    exponential_sum<A, term> sum;
    bool is_empty = true;

    // -inf adds nothing.
    REPDL_HD void add(double x) {
      if (x == -infinity) return;
      if (is_empty) {
        sum.start(x);
        is_empty = false;
      } else if (x > sum.max) {
        sum.raise(x);
      }
      sum.add(x);
    }
    REPDL_HD decided_value<T> value() const {
      if (is_empty) return {narrow<T>(-infinity), true};
      if constexpr (sizeof(T) == 8) {
        return wide_rule<ops::op_id::logsumexp>::template settle<A>(wide_row_given{}, sum, nullptr, 0);
      } else {
        const certified c = exact_logsumexp<A>(dtype_of<T>, sum);
        return {narrow<T>(c.value), c.decided};
      }
    }
  };
  using first = state<wide<double>>;
  template <int L>
  struct late : state<ball<L>> {
    static constexpr int bits = bits_of_limbs(L);
  };
};

// Late states of one line, each behind the elements that it was last asked about.
template <class T, class... States>
class late_prefixes {
 public:
  template <class Read>
  REPDL_HD decided_value<T> decide(const Read&, std::int64_t, int) {
    return {T{}, false};
  }
};
template <class T, class State, class... Wider>
class late_prefixes<T, State, Wider...> {
 public:
  // The prefix of the first n elements; n never falls. read(i): element i.
  template <class Read>
  REPDL_HD decided_value<T> decide(const Read& read, std::int64_t n, int bits) {
    if (bits >= State::bits) {
      for (; done_ < n; ++done_) state_.add(read(done_));
      const decided_value<T> r = state_.value();
      if (r.decided) return r;
    }
    return wider_.decide(read, n, bits);
  }

 private:
  State state_;
  std::int64_t done_ = 0;
  late_prefixes<T, Wider...> wider_;
};
template <class Prefix, class T, int... Limbs>
struct late_states {
  using type = late_prefixes<T, typename Prefix::template late<Limbs>...>;
};
template <class T, int First, int... Limbs>
struct late_states<sum_prefix<T>, T, First, Limbs...> {
  using type = late_prefixes<T, typename sum_prefix<T>::template late<First>>;
};

// Goes along a line of n elements. each: write(i, value, is_special) for every i, or else for the last one only, -1 of a line without
// elements. What `first` does not decide, and without by_first all that is not special, is left(i).
template <class Prefix, class T, class Read, class Write, class Left>
REPDL_HD void scan_line(std::int64_t n, bool each, bool by_first, const Read& read, const Write& write,
                        const Left& left) {
  typename Prefix::special special;
  typename Prefix::first first;
  const auto put = [&](std::int64_t i) {
    if (special.any()) return write(i, special.template value<T>(), true);
    decided_value<T> r{T{}, false};
    if (by_first) r = first.value();
    if (r.decided) {
      write(i, r.value, false);
    } else {
      left(i);
    }
  };
  for (std::int64_t i = 0; i < n; ++i) {
    const double x = read(i);
    special.add(x);
    if (by_first && !special.any()) first.add(x);
    if (each) put(i);
  }
  if (!each) put(n - 1);
}

// The same of integers and booleans, whose sums and products modulo 2^64 are exact in any order: write(i, value).
template <class Read, class Write>
REPDL_HD void scan_integers(std::int64_t n, bool each, bool products, const Read& read, const Write& write) {
  std::uint64_t prefix = products ? 1 : 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto x = static_cast<std::uint64_t>(std::int64_t{integer_value(read(i))});
    prefix = products ? prefix * x : prefix + x;
    if (each) write(i, static_cast<std::int64_t>(prefix));
  }
  if (!each) write(n - 1, static_cast<std::int64_t>(prefix));
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
