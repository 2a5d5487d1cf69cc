// The oracle of the structured operations, on contiguous row-major arrays of bit patterns. Sums are exact integers in
// units of 2^-298 (the square of the least binary32 number) and are rounded once.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reference/array.hpp"
#include "reference/layout.hpp"
#include "reference/number.hpp"
#include "reference/philox.hpp"
#include "reference/wide_integer.hpp"

namespace repdl::reference {

using patterns = std::vector<std::uint32_t>;

/// The exact sum of binary32 terms and products of two of them; up to 2^60 terms.
class exact_sum {
 public:
  exact_sum() { mpz_init(value_); }
  exact_sum(const exact_sum&) = delete;
  exact_sum& operator=(const exact_sum&) = delete;
  ~exact_sum() { mpz_clear(value_); }

  void clear();
  void add(std::uint32_t x);
  void add_product(std::uint32_t x, std::uint32_t y);
  /// RN(sum); contract section 3: NaN terms, inf * 0 and both infinities give NaN, an exact zero +0.
  std::uint32_t round();
  /// RN(sum / n); NaN for n = 0.
  std::uint32_t round_mean(std::int64_t n);
  /// Where sum / n lies.
  outcome where(std::int64_t n = 1);
  /// The finite sum in units of 2^-298.
  mpz_srcptr value();

 private:
  bool special(std::uint32_t* bits) const;
  wide_integer sum_;  // in units of 2^-298: 554 bits for the largest product, 60 for the count, a sign
  bool nan_ = false, plus_ = false, minus_ = false;
  mpz_t value_;
};

enum class reduction { sum, mean, max, min, argmax, argmin };

/// Reduces over `axes` (negative ones count from the end; absent: all; empty: none). The result has the kept axes, or
/// size 1 in the place of the others with keepdim. f32, argmax and argmin i64: the row-major index within the reduced
/// axes in the input's order. `where`, if given, gets one outcome per element of sum and mean.
array reduce(reduction op, const array& x, const std::optional<shape_list>& axes, bool keepdim = false,
             outcomes* where = nullptr);

/// The exact dot product of two f32 vectors, rounded once; rank 0.
array dot(const array& x, const array& y, outcomes* where = nullptr);

struct matmul_case {
  bool transpose_a = false;
  bool transpose_b = false;
  bool fma_chain = false;
};
/// (..., m, k) times (..., k, n), batch axes broadcast, plus a bias that broadcasts to the result (null: none).
array matmul(const array& a, const array& b, const array* bias, const matmul_case& options = {},
             outcomes* where = nullptr);

/// RN(low + (high - low) * u); low and high are binary64 patterns.
array uniform(dtype t, const shape_list& shape, std::uint64_t seed, std::uint64_t stream, std::uint64_t low,
              std::uint64_t high, outcomes* where = nullptr);
/// The indices 0 .. n-1 sorted by (W_i, i).
array permutation(std::int64_t n, std::uint64_t seed, std::uint64_t stream);

}  // namespace repdl::reference
