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

namespace repdl::cpu::REPDL_ISA {

// An output whose terms are not all present and not all finite operands.
template <class Problem>
[[gnu::noinline]] float without_absent(const Problem& problem, const gemm_problem& g, std::int64_t i, std::int64_t j,
                                       float bias, tier_counts& counts) {
  ++counts.elements[static_cast<int>(tier::exact)];
  num::exact_sum<float, 2> sum;
  sum.add(bias);
  constexpr int chunk = 64;
  float row[chunk], column[chunk], in_row[chunk], in_column[chunk];
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
  return sum.round();
}

// One undecided output: compensated sums side by side, then merged. padded: the sum may have
// products of zeros with numbers that belong to no term, even where no term is absent.
template <class Problem>
[[gnu::noinline]] float repair_one(const Problem& problem, const gemm_problem& g, const tile_position& at, int r, int c,
                                   double sum, float bias, bool padded, tier_counts& counts) {
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
  if (!num::is_finite(sum)) {
    if constexpr (Problem::skips_terms) {
      if (sum != sum && (padded || !problem.whole(i, j))) return without_absent(problem, g, i, j, bias, counts);
    }
    ++counts.elements[static_cast<int>(g.first_tier > tier::binary64 ? g.first_tier : tier::binary64)];
    return num::non_finite_result(sum);
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
    num::compensated_sum<double> total{static_cast<double>(bias), 0};
    for (int l = 0; l < lanes64; ++l) total.merge({lanes.hi[l], lanes.lo[l]});
    const double magnitude = at.row_norm[r] * at.column_norm[c] + __builtin_fabs(static_cast<double>(bias));
    const int bit = lsb_of(at.row_bit[r] * at.column_bit[c]);
    const int bias_bit = num::lsb_exponent(bias);
    const std::int64_t additions = g.k + lanes64;
    const bool exact = num::lattice_holds_dd(magnitude, bit < bias_bit ? bit : bias_bit, additions + 1);
    const num::certified result =
        num::certify(total.total(), exact ? 0.0 : num::compensated_bound(additions, magnitude));
    if (result.decided) {
      ++counts.elements[static_cast<int>(tier::double_double)];
      return result.value;
    }
  }
  num::dot_accumulator exact;
  exact.add(bias);
  for (std::int64_t k0 = 0; k0 < g.k; k0 += chunk) {
    const std::int64_t terms = load_terms(k0);
    for (std::int64_t k = 0; k < terms; ++k) exact.add_product(row[k], column[k]);
  }
  ++counts.elements[static_cast<int>(tier::exact)];
  return exact.round();
}

}  // namespace repdl::cpu::REPDL_ISA
