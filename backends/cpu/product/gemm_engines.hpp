// The ways to accumulate a matrix product: `exact_engine` (binary64 sums, certified, repaired where undecided), `wide_engine` (of
// binary64: double-doubles, likewise) and `chain_engine` (binary32 FMAs in order of k; contract, section 5).
//
// Exact engine. u = 2^-53. Products of binary32 numbers are binary64 numbers, 0 or of magnitude in [2^-298, 2^256), so
// with fewer than 2^60 terms nothing over- or underflows and fma and mul + add agree.
//   Sums. A slice of `terms` products starts from +0 (its first addition is exact), `slices` partial sums are added, the
//     bias c is added last: a tree of height h <= (terms - 1) + (slices - 1) + 1. Every term passes at most h additions:
//         |s - S| <= ((1 + u)^h - 1) Q <= h u (1 + h u) Q,  Q = sum|a_k b_k| + |c| <= |a||b| + |c| (Cauchy-Schwarz).
//   Norms. A = fl(sqrt(fl(sum a²))), B likewise, accumulated slice by slice: a tree no higher, of nonnegative terms, so
//         A B + |c| >= Q (1 - (h + 5) u), the last rounding included.
//   Bound. e = fl((H + 4) u (A B + |c|)), H = terms + slices >= h + 1. The rounding test needs
//     fl(s - e) <= S <= fl(s + e), that is e (1 - u) >= |s - S| + u |s|, and |s| <= Q (1 + 2 h u). Since
//         (H + 4)(1 - (h + 8) u) - h (1 + h u) - 1 - 2 h u  >=  4 - (h + 8)(h + 5) u - h² u - 2 h u
//                                                           >   4 - 2.1 (h + 8)² u
//     it holds for H <= 2^26 (there the last term is below 1.1). Beyond, the bound is infinite: everything is repaired.
//   Lattice rule. 2^p, 2^q the least significant bits of row and column, g = 2^(p+q), with a bias
//     g = min(g, lsb(c)): if Q <= 2^53 g, every subset sum is a binary64 number, s = S and e = 0. Rounded norms are
//     tested with a factor of two in hand: fl(A B + |c|) <= 2^52 g.
//   Non-finite terms. No finite partial sum overflows, so s is NaN or infinite exactly as the contract (section 3) wants
//     the result, in any order (num::non_finite_result has the argument): decided, e = 0. If s is finite, so is every
//     term, every operand of the row and of the column (inf times anything is infinite or NaN), and e.
//   Absent terms (Problem::skips_terms) are packed as zeros. A finite s has no non-finite operand, which times zero would
//     be NaN, and then absent terms add +-0, which changes neither S, nor a norm, nor a lattice; an infinite s has no
//     zero times infinity in it either. Only a NaN may come from an absent term: where an output has one, it is
//     recomputed without.
//   Scaled (Problem::is_scaled). The bias is no term of the sum, its lattice and its bound; num::scaled_sum
//     (ops/sums/scaled_sum.hpp) makes of them alpha S + beta c and its bound.
//   Zeros. Sums start from +0 and round to nearest, so an exact zero is +0; an end s - e or s + e of an inexact s that is
//     a zero leaves the other end nonzero with another bit pattern, or the pair +-0: undecided.
//
// Undecided outputs are repaired, the neighbours in a vector together:
//   double-double. num::compensated_sum from c on, with norms as above; num::lattice_holds_dd with one plain error an addition:
//     hi + lo = S, e = 0. It decides most ties and exact zeros.
//   exact. num::dot_accumulator, which always decides: finite terms only come here.
//
// Wide engine. Products of binary64 numbers are two (two_prod): x y = hi + lo, but for less than 2^-1071 where they underflow.
//   Sums. A slice is a compensated sum, which lo takes, too (num::wide_compensated_bound), normalised; slices are added up as
//     double-doubles, and so is the bias: in units of 4 u^2 M, M = sum|a_k b_k| + |c|,
//         (terms + 1)^2 + slices + 1 is enough (wide_dd_bound).
//   Magnitude. M <= k A B + |c|, A and B the greatest magnitudes of row and column. That is coarse by the root of k, or more; but so
//     is 2^-106 fine. Its roundings, and 2^-1074 that each of k products may lack where it underflows, are less than what the bound
//     has room for. With A = 0 or B = 0 there are no products to lose anything.
//   What is not finite, or overflows, in a sum or in M, decides nothing (num::certify), and neither do ties and exact zeros but those of
//     A B = 0. Absent terms are packed as zeros: of finite operands they change nothing.
//   exact. num::exact_sum of the terms that are present, which always decides.
#pragma once

#include <cstdint>

#include "backends/cpu/core/formats.hpp"
#include "backends/cpu/core/simd.hpp"
#include "backends/cpu/product/gemm.hpp"
#include "backends/cpu/product/gemm_repair.hpp"
#include "backends/cpu/product/gemm_summary.hpp"
#include "librepdl/num/certify.hpp"
#include "librepdl/num/dd.hpp"
#include "librepdl/num/fixed_point.hpp"
#include "librepdl/num/format.hpp"

namespace repdl::cpu::REPDL_ISA {

struct exact_engine {
  using number = float;
  using row_type = double;
  using sum_type = double;
  using vector = f64v;
  using vector_sum = f64v;
  template <int Width>
  using summary = lane_summary<Width>;
  static constexpr bool continues = false;
  static constexpr int tile_planes = 1;
  static constexpr int lanes = lanes64;
  static constexpr int rows = vector_bytes == 64 ? 8 : 4;
  static constexpr int vectors = vector_bytes == 16 ? 2 : 3;
  static constexpr int columns = lanes * vectors;
  static constexpr int row_panels = 144 / rows;

  [[gnu::always_inline]] static vector load_column(const float* b) { return widen(load<f32h>(b)); }
  [[gnu::always_inline]] static vector add_product(vector a, vector b, vector s) { return fma_exact_product(a, b, s); }
  [[gnu::always_inline]] static void store_sum(double* to, vector s, bool first) {
    store(to, first ? s : s + load<vector>(to));
  }
  static std::int64_t height(std::int64_t terms, std::int64_t slices) { return terms + slices; }

  template <class Problem>
  static void finish(const Problem& problem, const gemm_problem& g, std::int64_t height, const tile_position& at,
                     double* sums, tier_counts& counts) {
    const double factor = height > largest_height ? num::infinity : static_cast<double>(height + 4) * 0x1p-53;
    if (problem.has_bias) {
      finish_tile<true>(problem, g, factor, at, sums, counts);
    } else {
      finish_tile<false>(problem, g, factor, at, sums, counts);
    }
  }

 private:
  template <bool Bias, class Problem>
  static void finish_tile(const Problem& problem, const gemm_problem& g, double factor, const tile_position& at,
                          double* sums, tier_counts& counts) {
    const bool forced = g.first_tier > tier::binary64;
    alignas(64) float bias[columns] = {};
    using T = typename Problem::format;
    alignas(64) T out[columns];
    alignas(64) std::uint32_t differs[columns];
    std::int64_t repaired = 0;
    for (int r = 0; r < at.rows; ++r) {
      double* const s = sums + r * columns;
      if constexpr (Bias) problem.load_bias(at.row + r, at.column, at.columns, bias);
      u32h any{};
      for (int c = 0; c < at.columns; c += lanes) {
        if constexpr (Problem::is_scaled) {
          any |= test_scaled(problem, s + c, bias + c, factor, at.row_norm[r], at.row_bit[r], at.column_norm + c,
                             at.column_bit + c, out + c, differs + c);
        } else {
          any |= test<T, Bias, Problem::skips_terms>(s + c, bias + c, factor, at.row_norm[r], at.row_bit[r],
                                                     at.column_norm + c, at.column_bit + c, out + c, differs + c);
        }
      }
      bool undecided = forced;
      for (int l = 0; l < lanes; ++l) undecided |= any[l] != 0;
      if (undecided) [[unlikely]] {
        for (int c = 0; c < at.columns; c += lanes) {
          const int width = at.columns - c < lanes ? at.columns - c : lanes;
          if constexpr (!Problem::skips_terms) {
            if (at.panel != nullptr) {
              repaired += repair(problem, g, at, r, c, width, s + c, bias + c, forced, differs + c, out + c, counts);
              continue;
            }
          }
          for (int l = c; l < c + width; ++l) {
            if (!forced && differs[l] == 0) continue;
            ++repaired;
            out[l] = repair_one(problem, g, at, r, l, s[l], bias[l], false, counts);
          }
        }
      }
      problem.template store<columns>(at.row + r, at.column, at.columns, out);
    }
    counts.elements[static_cast<int>(tier::binary64)] += static_cast<std::int64_t>(at.rows) * at.columns - repaired;
  }

 public:
  // num::certify in every lane: out = the rounded sums, differs = 0 where they are decided (DoubtNan: and no NaN). s
  // becomes the sum with bias.
  template <class T, bool Bias, bool DoubtNan>
  [[gnu::always_inline]] static u32h test(double* sums, const float* bias, double factor, double row_norm,
                                          double row_bit, const double* column_norm, const double* column_bit, T* out,
                                          std::uint32_t* differs) noexcept {
    f64v s = load<f64v>(sums);
    f64v magnitude = row_norm * load<f64v>(column_norm);
    f64v limit = (row_bit * 0x1p52) * load<f64v>(column_bit);
    if constexpr (Bias) {
      const f32h narrow_c = load<f32h>(bias);
      const f64v c = widen(narrow_c);
      const f64v c_limit = widen(lowest_bit(narrow_c)) * 0x1p52;
      s += c;
      magnitude += as<f64v>(as<u64v>(c) & 0x7fffffffffffffffu);
      limit = limit < c_limit ? limit : c_limit;
      store(sums, s);
    }
    const f64v size = as<f64v>(as<u64v>(s) & 0x7fffffffffffffffu);
    const i64v needs_bound = ~(magnitude <= limit) & (size < num::infinity);
    const f64v e = as<f64v>(as<i64v>(factor * magnitude) & needs_bound);
    if constexpr (std::is_same_v<T, float>) {
      const f32h low = narrow(s - e);
      const u32h low_bits = as<u32h>(low);
      u32h d = low_bits ^ as<u32h>(narrow(s + e));
      if constexpr (DoubtNan) d |= as<u32h>(low != low);
      store(out, low == low ? low : broadcast<f32h>(__builtin_nanf("")));
      store(differs, d);
      return d;
    } else {
      const u32h low = rounded_bits<T>(s - e);
      u32h d = low ^ rounded_bits<T>(s + e);
      if constexpr (DoubtNan) d |= as<u32h>((low & 0x7fffu) > u32h{} + num::format<T>::infinity);
      store_bits<T>(low, out);
      store(differs, d);
      return d;
    }
  }

 private:
  template <class T>
  [[gnu::always_inline]] static void store_bits(u32h bits, T* to) {
    store(to, __builtin_convertvector(bits, vec<num::storage_of<T>, lanes>));
  }
  // The same of alpha S + beta c; the sums stay those of the products. Infinities and NaN are decided.
  template <class Problem>
  [[gnu::always_inline]] static u32h test_scaled(const Problem& problem, const double* sums, const float* bias,
                                                 double factor, double row_norm, double row_bit,
                                                 const double* column_norm, const double* column_bit,
                                                 typename Problem::format* out, std::uint32_t* differs) noexcept {
    const f64v magnitude = row_norm * load<f64v>(column_norm);
    const f64v limit = (row_bit * 0x1p52) * load<f64v>(column_bit);
    const f64v e = as<f64v>(as<i64v>(factor * magnitude) & ~(magnitude <= limit));
    const auto [s, error] = num::scaled_sum(broadcast<f64v>(problem.alpha), broadcast<f64v>(problem.beta),
                                            load<f64v>(sums), e, widen(load<f32h>(bias)));
    using T = typename Problem::format;
    const u32h low = rounded_bits<T>(s - error);
    const u32h d = low ^ rounded_bits<T>(s + error);
    store_bits<T>(low, out);
    store(differs, d);
    return d;
  }

  // The undecided ones among `width` neighbouring outputs of row r, from column c of the tile on: from the packed
  // columns and the row's memory. sums: the binary64 sums, as plain_value takes them. Returns how many there were.
  template <class Problem>
  [[gnu::noinline]] static int repair(const Problem& problem, const gemm_problem& g, const tile_position& at, int r,
                                      int c, int width, const double* sums, const float* bias, bool all,
                                      const std::uint32_t* differs, typename Problem::format* out,
                                      tier_counts& counts) {
    bool any = false;
    for (int l = 0; l < width; ++l) any |= all || differs[l] != 0;
    if (!any) return 0;

    constexpr int chunk = 256;
    alignas(64) float row[chunk];
    const auto load_row = [&](std::int64_t k0) {
      const std::int64_t terms = g.k - k0 < chunk ? g.k - k0 : chunk;
      problem.a.template load<1>(at.row + r, 1, k0, terms, row);
      return terms;
    };

    const bool use_dd = g.first_tier <= tier::double_double;
    num::compensated_sum<f64v> sum{Problem::is_scaled ? f64v{} : widen(load<f32h>(bias)), {}};
    if (use_dd) {
      alignas(64) double wide[chunk];
      for (std::int64_t k0 = 0; k0 < g.k; k0 += chunk) {
        const std::int64_t terms = load_row(k0);
        for (std::int64_t k = 0; k < terms; ++k) wide[k] = static_cast<double>(row[k]);
        const float* b = static_cast<const float*>(at.panel) + k0 * columns + c;
        for (std::int64_t k = 0; k < terms; ++k, b += columns) {
          sum.add_product(broadcast<f64v>(wide[k]), load_column(b));
        }
      }
    }

    int repaired = 0;
    for (int l = 0; l < width; ++l) {
      if (!all && differs[l] == 0) continue;
      ++repaired;
      if (const double plain = plain_value(problem, sums[l], bias[l]); !num::is_finite(plain)) {
        out[l] = num::non_finite_result<typename Problem::format>(plain);
        ++counts.elements[static_cast<int>(g.first_tier)];
        continue;
      }
      if (use_dd) {
        const auto result =
            certify_sum(problem, num::two_sum(sum.hi[l], sum.lo[l]), g.k, at.row_norm[r] * at.column_norm[c + l],
                        lsb_of(at.row_bit[r] * at.column_bit[c + l]), bias[l]);
        if (result.decided) {
          out[l] = result.value;
          ++counts.elements[static_cast<int>(tier::double_double)];
          continue;
        }
      }
      num::dot_accumulator exact;
      for (std::int64_t k0 = 0; k0 < g.k; k0 += chunk) {
        const std::int64_t terms = load_row(k0);
        const float* const b = static_cast<const float*>(at.panel) + k0 * columns + c + l;
        for (std::int64_t k = 0; k < terms; ++k) exact.add_product(row[k], b[k * columns]);
      }
      out[l] = round_sum(problem, exact, bias[l]);
      ++counts.elements[static_cast<int>(tier::exact)];
    }
    return repaired;
  }
};

struct wide_engine {
  using number = double;
  using row_type = double;
  using sum_type = double;
  using vector = f64v;
  using vector_sum = num::double_word<f64v>;
  template <int Width>
  using summary = greatest_of_lines<Width>;
  static constexpr bool continues = false;
  static constexpr int tile_planes = 2;  // hi, then lo
  static constexpr int lanes = lanes64;
  static constexpr int rows = vector_bytes == 64 ? 4 : 2;
  static constexpr int vectors = 2;
  static constexpr int columns = lanes * vectors;
  static constexpr int row_panels = 96 / rows;

  [[gnu::always_inline]] static vector load_column(const double* b) { return load<vector>(b); }
  [[gnu::always_inline]] static vector_sum add_product(vector a, vector b, vector_sum s) {
    const vector_sum p = num::two_prod(a, b);
    const vector_sum t = num::two_sum(s.hi, p.hi);
    return {t.hi, s.lo + (t.lo + p.lo)};
  }
  [[gnu::always_inline]] static void store_sum(double* to, vector_sum s, bool first) {
    double* const low = to + rows * columns;
    vector_sum t = num::two_sum(s.hi, s.lo);
    if (!first) t = num::add(vector_sum{load<vector>(to), load<vector>(low)}, t);
    store(to, t.hi);
    store(low, t.lo);
  }
  static std::int64_t height(std::int64_t terms, std::int64_t slices) { return (terms + 1) * (terms + 1) + slices + 1; }

  template <class Problem>
  static void finish(const Problem& problem, const gemm_problem& g, std::int64_t height, const tile_position& at,
                     const double* sums, tier_counts& counts) {
    static_assert(!Problem::is_scaled);
    const bool forced = g.first_tier > tier::double_double;
    alignas(64) double bias[columns] = {}, out[columns];
    std::int64_t repaired = 0;
    for (int r = 0; r < at.rows; ++r) {
      if (problem.has_bias) problem.load_bias(at.row + r, at.column, at.columns, bias);
      for (int c = 0; c < at.columns; ++c) {
        const double* const s = sums + r * columns + c;
        const double a = at.row_norm[r], b = at.column_norm[c];
        const num::dd sum = num::add(num::dd{s[0], s[rows * columns]}, bias[c]);
        const double magnitude = static_cast<double>(g.k) * (a * b) + num::magnitude_of(bias[c]);
        const std::int64_t products = a == 0 || b == 0 ? 0 : g.k;
        const auto result = num::certify<double>(sum, num::wide_dd_bound(height, magnitude, products));
        out[c] = result.value;
        if (result.decided && !forced) continue;
        ++repaired;
        out[c] = exact_output(problem, g, at.row + r, at.column + c, bias[c], counts);
      }
      problem.template store<columns>(at.row + r, at.column, at.columns, out);
    }
    counts.elements[static_cast<int>(tier::double_double)] +=
        static_cast<std::int64_t>(at.rows) * at.columns - repaired;
  }
};

struct chain_engine {
  using number = float;
  using row_type = float;
  using sum_type = float;
  using vector = f32v;
  using vector_sum = f32v;
  template <int Width>
  using summary = no_summary<Width>;
  static constexpr bool continues = true;
  static constexpr int tile_planes = 1;
  static constexpr int lanes = lanes32;
  static constexpr int rows = vector_bytes == 64 ? 8 : 4;
  static constexpr int vectors = vector_bytes == 16 ? 2 : 3;
  static constexpr int columns = lanes * vectors;
  static constexpr int row_panels = 288 / rows;

  [[gnu::always_inline]] static vector load_column(const float* b) { return load<vector>(b); }
  [[gnu::always_inline]] static vector add_product(vector a, vector b, vector s) { return fma(a, b, s); }
  [[gnu::always_inline]] static vector load_sum(const float* from) { return load<vector>(from); }
  [[gnu::always_inline]] static void store_sum(float* to, vector s, bool) { store(to, s); }
  static std::int64_t height(std::int64_t, std::int64_t) { return 0; }

  template <class Problem>
  static void finish(const Problem& problem, const gemm_problem& g, std::int64_t, const tile_position& at, float* sums,
                     tier_counts& counts) {
    for (int r = 0; r < at.rows; ++r) {
      if constexpr (Problem::skips_terms) redo_doubtful(problem, g, at, r, sums + r * columns);
      alignas(64) float out[columns];
      if (problem.has_bias) {
        alignas(64) float bias[columns] = {};
        problem.load_bias(at.row + r, at.column, at.columns, bias);
        for (int c = 0; c < columns; ++c) out[c] = num::canonical(sums[r * columns + c] + bias[c]);
      } else {
        for (int c = 0; c < columns; ++c) out[c] = num::canonical(sums[r * columns + c]);
      }
      problem.template store<columns>(at.row + r, at.column, at.columns, out);
    }
    counts.elements[static_cast<int>(tier::proved)] += static_cast<std::int64_t>(at.rows) * at.columns;
  }

  // The sums of row r that an absent term, taken as a product with zero, may have changed, without it. With finite
  // operands the chain s' with such products and the chain s without are equal as numbers at every step (an fma of
  // equal numbers differs only in the sign of a zero), and s' = -0 implies s = -0 (x + +-0 is -0 only for x = -0, and
  // the same holds for an exact zero of an fma). So only s' = +0 can be wrong. A non-finite operand that meets an
  // absent one makes s' NaN.
  template <class Problem>
  static void redo_doubtful(const Problem& problem, const gemm_problem& g, const tile_position& at, int r,
                            float* sums) {
    for (int c = 0; c < at.columns; c += lanes) {
      const int width = at.columns - c < lanes ? at.columns - c : lanes;
      bool doubtful = false;
      for (int l = c; l < c + width; ++l) doubtful |= num::bits_of(sums[l]) == 0 || sums[l] != sums[l];
      if (!doubtful) [[likely]]
        continue;
      bool absent = false;
      for (int l = c; l < c + width; ++l) absent |= !problem.whole(at.row + r, at.column + l);
      if (absent) chain_of_present(problem, g, at.row + r, at.column + c, width, sums + c);
    }
  }

 private:
  template <class Problem>
  [[gnu::noinline]] static void chain_of_present(const Problem& problem, const gemm_problem& g, std::int64_t i,
                                                 std::int64_t j, int width, float* sums) {
    constexpr int chunk = 64;
    alignas(64) float row[chunk], in_row[chunk], column[chunk * lanes], in_column[chunk * lanes];
    f32v s{};
    for (std::int64_t k0 = 0; k0 < g.k; k0 += chunk) {
      const std::int64_t terms = g.k - k0 < chunk ? g.k - k0 : chunk;
      problem.a.template load<1>(i, 1, k0, terms, row);
      problem.a.template load_presence<1>(i, 1, k0, terms, in_row);
      problem.b.template load<lanes>(j, width, k0, terms, column);
      problem.b.template load_presence<lanes>(j, width, k0, terms, in_column);
      for (std::int64_t k = 0; k < terms; ++k) {
        if (in_row[k] == 0) continue;
        const f32v next = fma(broadcast<f32v>(row[k]), load<f32v>(column + k * lanes), s);
        s = load<f32v>(in_column + k * lanes) != 0.0f ? next : s;
      }
    }
    for (int l = 0; l < width; ++l) sums[l] = s[l];
  }
};

}  // namespace repdl::cpu::REPDL_ISA
