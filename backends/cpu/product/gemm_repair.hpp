// The later tiers of a sum of products, one output at a time and from memory: double-double, then exact integers
// (gemm_engines.hpp has the bounds). For Problems whose columns are not all packed, or whose operands have
// absent entries.
#pragma once

#include <cstdint>

#include "backends/cpu/product/gemm.hpp"
#include "backends/cpu/product/gemm_summary.hpp"
#include "librepdl/num/dd.hpp"
#include "librepdl/num/fixed_point.hpp"
#include "librepdl/num/sums.hpp"
#include "librepdl/ops/sums/scaled_sum.hpp"

namespace repdl::cpu::REPDL_ISA {

// What an output is in binary64, if that is not finite. sum: of the products and, where the Problem is not scaled, the
// bias.
template <class Problem>
double plain_value(const Problem& problem, double sum, float bias) {
  if constexpr (Problem::is_scaled) return problem.alpha * sum + problem.beta * static_cast<double>(bias);
  return sum;
}

// An output from such a sum in double-double, of so many additions; of the products the magnitudes add up to at most
// `magnitude`, and 2^bit is a lattice.
template <class Problem>
num::decided_value<typename Problem::format> certify_sum(const Problem& problem, num::dd sum, std::int64_t additions,
                                                         double magnitude, int bit, float bias) {
  if constexpr (!Problem::is_scaled) {
    const int bias_bit = num::lsb_exponent(bias);
    magnitude += __builtin_fabs(static_cast<double>(bias));
    bit = bit < bias_bit ? bit : bias_bit;
  }
  const bool exact = num::lattice_holds_dd(magnitude, bit, additions + 1);
  const double e = exact ? 0.0 : num::compensated_bound(additions, magnitude);
  if constexpr (Problem::is_scaled) {
    return num::certify_scaled<typename Problem::format>(problem.alpha, problem.beta, sum, e,
                                                         static_cast<double>(bias));
  } else {
    return num::certify<typename Problem::format>(sum, e);
  }
}

// An output from the exact sum of the products.
template <class Problem>
typename Problem::format round_sum(const Problem& problem, num::dot_accumulator& sum, float bias) {
  if constexpr (Problem::is_scaled) {
    return num::round_scaled<typename Problem::format>(problem.alpha, problem.beta, sum, static_cast<double>(bias));
  } else {
    sum.add(bias);
    return sum.template round<typename Problem::format>();
  }
}

// An output from the terms that are present, whatever they are.
template <class Problem>
[[gnu::noinline]] typename Problem::format exact_output(const Problem& problem, const gemm_problem& g, std::int64_t i,
                                                        std::int64_t j, typename Problem::number bias,
                                                        tier_counts& counts) {
  using number = typename Problem::number;
  ++counts.elements[static_cast<int>(tier::exact)];
  num::exact_sum<number, 2> sum;
  sum.add(bias);
  constexpr int chunk = 64;
  number row[chunk], column[chunk], in_row[chunk], in_column[chunk];
  for (std::int64_t k0 = 0; k0 < g.k && !sum.special.nan; k0 += chunk) {
    const std::int64_t terms = g.k - k0 < chunk ? g.k - k0 : chunk;
    problem.a.template load<1>(i, 1, k0, terms, row);
    problem.b.template load<1>(j, 1, k0, terms, column);
    problem.a.template load_presence<1>(i, 1, k0, terms, in_row);
    problem.b.template load_presence<1>(j, 1, k0, terms, in_column);
    for (std::int64_t k = 0; k < terms; ++k) {
      if (in_row[k] != 0 && in_column[k] != 0) sum.add_product(row[k], column[k]);
    }
  }
  return sum.template round<typename Problem::format>();
}

// One undecided output: compensated sums side by side, then merged. padded: the sum may have
// products of zeros with numbers that belong to no term, even where no term is absent.
template <class Problem>
[[gnu::noinline]] typename Problem::format repair_one(const Problem& problem, const gemm_problem& g,
                                                      const tile_position& at, int r, int c, double sum, float bias,
                                                      bool padded, tier_counts& counts) {
  const std::int64_t i = at.row + r;
  const std::int64_t j = at.column + c;
  constexpr int chunk = 256;
  alignas(64) float row[chunk];
  alignas(64) float column[chunk];
  const auto load_terms = [&](std::int64_t k0) {
    const std::int64_t terms = g.k - k0 < chunk ? g.k - k0 : chunk;
    problem.a.template load<1>(i, 1, k0, terms, row);
    problem.b.template load<1>(j, 1, k0, terms, column);
    return terms;
  };
  if (const double plain = plain_value(problem, sum, bias); !num::is_finite(plain)) {
    if constexpr (Problem::skips_terms) {
      if (sum != sum && (padded || !problem.whole(i, j))) return exact_output(problem, g, i, j, bias, counts);
    }
    ++counts.elements[static_cast<int>(g.first_tier > tier::binary64 ? g.first_tier : tier::binary64)];
    return num::non_finite_result<typename Problem::format>(plain);
  }
  if (g.first_tier <= tier::double_double) {
    num::compensated_sum<f64v> lanes;
    for (std::int64_t k0 = 0; k0 < g.k; k0 += chunk) {
      std::int64_t terms = load_terms(k0);
      for (; terms % lanes64 != 0; ++terms) row[terms] = column[terms] = 0;
      for (std::int64_t k = 0; k < terms; k += lanes64) {
        lanes.add_product(widen(load<f32h>(row + k)), widen(load<f32h>(column + k)));
      }
    }
    num::compensated_sum<double> total{Problem::is_scaled ? 0.0 : static_cast<double>(bias), 0};
    for (int l = 0; l < lanes64; ++l) total.merge({lanes.hi[l], lanes.lo[l]});
    const auto result = certify_sum(problem, total.total(), g.k + lanes64, at.row_norm[r] * at.column_norm[c],
                                    lsb_of(at.row_bit[r] * at.column_bit[c]), bias);
    if (result.decided) {
      ++counts.elements[static_cast<int>(tier::double_double)];
      return result.value;
    }
  }
  num::dot_accumulator exact;
  for (std::int64_t k0 = 0; k0 < g.k; k0 += chunk) {
    const std::int64_t terms = load_terms(k0);
    for (std::int64_t k = 0; k < terms; ++k) exact.add_product(row[k], column[k]);
  }
  ++counts.elements[static_cast<int>(tier::exact)];
  return round_sum(problem, exact, bias);
}

}  // namespace repdl::cpu::REPDL_ISA
