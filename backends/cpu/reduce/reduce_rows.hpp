// One output at a time: certify -> round -> escalate over the terms of a sum, mean or dot product. Used by reduce.cpp.
#pragma once

#include <type_traits>

#include "backends/cpu/core/team_sum.hpp"
#include "backends/cpu/reduce/reduce_walk.hpp"
#include "librepdl/ops/sums/scaled_sum.hpp"

namespace repdl::cpu {

// The threads that share one reduction.
template <class T>
struct team {
  worker<T>* workers;
  int threads;
};

// Everything that one call of the driver knows.
template <class T>
struct reduce_call {
  const plan::reduce_plan& plan;
  const reduce_loops<T>& kernels;
  tier first_tier;
  bool forced(tier t) const noexcept { return static_cast<int>(first_tier) > static_cast<int>(t); }
  // 0 for a sum, n for a mean over n terms, root_of_sum.
  std::int64_t divisor() const noexcept {
    return plan.root ? root_of_sum : plan.op == ops::op_id::mean ? plan.length : 0;
  }
  num::spread_formula spread() const noexcept { return {plan.length, plan.correction, plan.root}; }
};

// Feeds all terms of one output through a Partial, by one thread or by the team. A bias c is the product c * 1, but where it is scaled.
template <class Partial, class T>
Partial collect(const reduce_call<T>& c, const output_terms<T>& output, const team<T>& team,
                const Partial& zero) noexcept {
  static_assert(std::is_trivially_copyable_v<Partial> && sizeof(Partial) <= sizeof(worker<T>::slot));
  const auto run = [&](worker<T>& w, std::int64_t begin, std::int64_t end) {
    Partial p = zero;  // a copy of its own: nothing else points to it
    block_stream<T> stream(c.plan, output.base, begin, end, w);
    constexpr std::int64_t seldom = 64;  // a block takes a fraction of a microsecond
    std::int64_t blocks = 0;
    for (block<T> b; stream.next(b);) {
      p.add(c.kernels, c.plan.inputs, b);
      if (++blocks % seldom == 0 && stopped()) break;
    }
    return p;
  };
  const auto with_bias = [&](Partial p) {
    if constexpr (!std::is_integral_v<T>) {
      const T one = num::narrow<T>(1.0);
      if (output.bias != nullptr && !c.plan.is_scaled()) p.add(c.kernels, 2, {output.bias, &one, 1, c.plan.length});
    }
    return p;
  };
  if (team.threads <= 1) return with_bias(run(team.workers[0], 0, c.plan.length));
  const auto part = [&](int t) -> Partial& { return *reinterpret_cast<Partial*>(team.workers[t].slot); };
  return with_bias(add_up(team.threads, zero, part, [&](Partial& mine, int thread, int threads) {
    const range r = share(c.plan.length, thread, threads, row_block);
    mine = run(team.workers[thread], r.begin, r.end);
  }));
}

template <class T>
struct decision {
  T value;
  tier by;
};

template <class T, class Sum>  // double, num::dd
num::decided_value<T> round_result(Sum s, double e, std::int64_t divisor) noexcept {
  return divisor == 0             ? num::certify<T>(s, e)
         : divisor == root_of_sum ? num::certify_root<T>(s, e)
                                  : num::certify_mean<T>(s, e, divisor);
}
template <class T, class Sum>  // an exact accumulator
T round_exactly(const Sum& s, std::int64_t divisor) noexcept {
  return divisor == 0             ? s.template round<T>()
         : divisor == root_of_sum ? num::round_root<T>(s)
                                  : s.template mean<T>(divisor);
}

// The tiers after binary64, for a finite sum whose terms' lsb exponent is known.
template <int Factors, class T>
decision<T> escalate(const reduce_call<T>& c, const output_terms<T>& output, const team<T>& team, int lsb) noexcept {
  const std::int64_t divisor = c.divisor();
  if (!c.forced(tier::double_double)) {
    const dd_partial p = collect(c, output, team, dd_partial{});
    const double e = num::dd_bound(c.kernels.row_dd_height + p.blocks, p.magnitude);
    if (num::lattice_holds_dd(p.magnitude, lsb, c.kernels.row_plain_errors)) {
      // The double-double is the exact sum: two more terms for the exact rounding, which decides ties of means too.
      num::exact_accumulator<T, Factors> sum;
      sum.add(p.sum.hi);
      sum.add(p.sum.lo);
      return {round_exactly<T>(sum, divisor), tier::double_double};
    }
    const num::decided_value<T> r = round_result<T>(p.sum, e, divisor);
    if (r.decided) return {r.value, tier::double_double};
  }
  // All terms are finite here: binary64 has seen to the others. Integers decide everything.
  const auto p = collect(c, output, team, exact_partial<T, Factors>{});
  return {round_exactly<T>(p.sum, divisor), tier::exact};
}

template <class T>
decision<T> escalate(const reduce_call<T>& c, const output_terms<T>& output, const team<T>& team, int lsb) noexcept {
  return c.plan.inputs == 2 ? escalate<2>(c, output, team, lsb) : escalate<1>(c, output, team, lsb);
}

// Binary64: a double-double, then exactly.
template <int Factors>
double rounded_wide(const num::exact_sum<double, Factors>& s, std::int64_t divisor) noexcept {
  return divisor == 0 ? s.round() : divisor == root_of_sum ? s.root() : s.mean(divisor);
}
template <int Factors>
double exact_wide_output(const reduce_call<double>& c, const output_terms<double>& output,
                         const team<double>& team) noexcept {
  return rounded_wide(collect(c, output, team, exact_wide_partial<Factors>{}).sum, c.divisor());
}
inline double exact_wide_output(const reduce_call<double>& c, const output_terms<double>& output,
                                const team<double>& team) noexcept {
  if (c.plan.is_spread()) return collect(c, output, team, exact_spread_partial{}).sum.round(c.spread());
  return c.plan.inputs == 2 ? exact_wide_output<2>(c, output, team) : exact_wide_output<1>(c, output, team);
}
inline double wide_bound(const reduce_call<double>& c, const wide_partial& p) noexcept {
  return num::wide_dd_bound(c.kernels.row_dd_height + p.blocks, p.magnitude,
                            c.plan.inputs == 2 ? c.plan.length + 1 : 0);
}
inline decision<double> scaled_output(const reduce_call<double>& c, const output_terms<double>& output,
                                      const team<double>& team) noexcept {
  const num::wide_scaled_sum scale{c.plan.alpha, c.plan.beta, output.bias != nullptr ? *output.bias : 0.0};
  if (!c.forced(tier::double_double)) {
    const wide_partial p = collect(c, output, team, wide_partial{});
    const num::decided_value<double> r = scale.certify(p.sum, wide_bound(c, p));
    if (r.decided) return {r.value, tier::double_double};
  }
  return {scale.round(collect(c, output, team, exact_wide_partial<2>{}).sum), tier::exact};
}
inline decision<double> sum_output(const reduce_call<double>& c, const output_terms<double>& output,
                                   const team<double>& team) noexcept {
  if (c.plan.is_scaled()) return scaled_output(c, output, team);
  if (c.plan.is_spread()) {
    if (!c.forced(tier::double_double)) {
      const spread_partial p = collect(c, output, team, spread_partial{});
      const double eta = num::dd_bound(c.kernels.row_spread_height + p.blocks, 1);
      const num::decided_value<double> r = num::certify_spread(c.spread(), p.sum, p.squares, p.magnitude, eta);
      if (r.decided) return {r.value, tier::double_double};
    }
  } else if (!c.forced(tier::double_double)) {
    const wide_partial p = collect(c, output, team, wide_partial{});
    const num::decided_value<double> r = round_result<double>(p.sum, wide_bound(c, p), c.divisor());
    if (r.decided) return {r.value, tier::double_double};
    // Zeros and ties.
    if (p.row.exact && (c.plan.inputs == 1 || collect(c, output, team, product_range_partial{}).large)) {
      num::exact_sum<double, 1> sum;
      sum.add(p.sum.hi);
      sum.add(p.sum.lo);
      return {rounded_wide(sum, c.divisor()), tier::double_double};
    }
  }
  return {exact_wide_output(c, output, team), tier::exact};
}

template <class T>
decision<T> sum_output(const reduce_call<T>& c, const output_terms<T>& output, const team<T>& team) noexcept {
  const sum_partial p = collect(c, output, team, sum_partial{});
  if (!num::is_finite(p.sum.hi)) return {num::non_finite_result<T>(p.sum.hi), std::max(c.first_tier, tier::binary64)};
  if (!c.forced(tier::binary64)) {
    const double e = c.plan.is_exact_in_binary64()
                         ? 0.0
                         : num::rounded_compensated_bound(p.blocks, p.sum.magnitude, c.kernels.row_height);
    const num::decided_value<T> r = round_result<T>(p.sum.hi + p.sum.lo, e, c.divisor());
    if (r.decided) return {r.value, tier::binary64};
  }
  const int lsb = collect(c, output, team, lsb_partial{}).terms(c.plan.inputs);
  if (!c.forced(tier::binary64) && num::lattice_holds(p.sum.magnitude, lsb)) {
    return {round_result<T>(p.sum.hi, 0.0, c.divisor()).value, tier::binary64};  // exact; e = 0 is always decided
  }
  return escalate(c, output, team, lsb);
}

// Writes the sum of integers, modulo 2^64, or their mean.
inline void write_integers(const plan::reduce_plan& p, const num::integer_sum& sum, std::int64_t at) noexcept {
  if (p.op == ops::op_id::mean) {
    static_cast<double*>(p.out)[at] = num::mean_of(sum, p.length);
  } else {
    static_cast<std::int64_t*>(p.out)[at] = num::wrapped(sum);
  }
}

template <class T>
order_partial<T> order_output(const reduce_call<T>& c, const output_terms<T>& output, const team<T>& team) noexcept {
  using ops::op_id;
  order_partial<T> zero;
  zero.flip = c.plan.op == op_id::min || c.plan.op == op_id::argmin ? num::order_min : num::order_max;
  zero.wants_index = c.plan.op == op_id::argmax || c.plan.op == op_id::argmin;
  return collect(c, output, team, zero);
}

}  // namespace repdl::cpu
