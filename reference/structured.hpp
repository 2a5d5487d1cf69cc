// The oracle of the structured operations, on contiguous row-major arrays of bit patterns. Sums are exact integers in
// units of 2^-298 (the square of the least binary32 number) and are rounded once.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reference/array.hpp"
#include "reference/number.hpp"

namespace repdl::reference {

using patterns = std::vector<std::uint32_t>;
using outcomes = std::vector<outcome>;

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
  void add_integer(bool negative, std::uint64_t m, int shift);
  bool special(std::uint32_t* bits) const;
  static constexpr int words = 12;  // 554 bits for the largest product, 60 for the count, a sign
  std::uint64_t word_[words] = {};  // two's complement
  bool nan_ = false, plus_ = false, minus_ = false;
  mpz_t value_;
};

/// Element positions: of the first element of each kept index, and of each reduced index relative to it; row-major.
struct reduce_layout {
  shape_list kept_shape;  ///< without or with (keepdim) the reduced axes
  std::vector<std::int64_t> kept;
  std::vector<std::int64_t> reduced;
};
reduce_layout layout_of(const shape_list& shape, const std::optional<shape_list>& axes, bool keepdim);

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

/// Philox4x32-10 (Salmon et al., SC 2011), written from the paper: words w0 .. w3 of one block.
struct philox_block {
  std::uint32_t w[4];
};
philox_block philox(const std::uint32_t (&counter)[4], const std::uint32_t (&key)[2]);
/// Counter (block, stream) and key (seed) as in section 6 of the contract.
philox_block philox(std::uint64_t seed, std::uint64_t stream, std::uint64_t block);
/// w_{2r} + 2^32 w_{2r+1}.
std::uint64_t wide_word(const philox_block& b, int r);

/// RN(low + (high - low) * u); low and high are binary64 patterns.
array uniform(dtype t, const shape_list& shape, std::uint64_t seed, std::uint64_t stream, std::uint64_t low,
              std::uint64_t high, outcomes* where = nullptr);
/// The indices 0 .. n-1 sorted by (W_i, i).
array permutation(std::int64_t n, std::uint64_t seed, std::uint64_t stream);

/// The index, in an array of shape `from`, of the element that broadcasting to `to` puts at row-major index i.
std::int64_t broadcast_index(const shape_list& from, const shape_list& to, std::int64_t i);
/// NumPy's rule; throws std::invalid_argument.
shape_list broadcast_shape(const shape_list& a, const shape_list& b);

}  // namespace repdl::reference
