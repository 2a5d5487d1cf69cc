// The oracle of the elementwise operations: every row of elementwise.def on bit patterns of its formats, and
// conversions.
//
// Found by the row's name. A row without an oracle is an error of the compiler.
#pragma once

#include <cstdint>

#include "librepdl/dynamic.hpp"
#include "librepdl/ops/registry.hpp"
#include "reference/elementwise/elementary.hpp"
#include "reference/numbers/number.hpp"

namespace repdl::reference {

/// Real numbers that are finite binary fractions, with infinities, NaN and signed zeros: what section 3 of the contract
/// evaluates formula trees in. Finite arithmetic is exact.
class extended {
 public:
  extended() { mpz_init(m_); }
  extended(dtype t, std::uint64_t bits);
  explicit extended(int v);
  extended(const extended& o);
  extended& operator=(const extended& o);
  ~extended() { mpz_clear(m_); }

  bool is_nan() const { return kind_ == number_kind::nan; }
  bool is_infinite() const { return kind_ == number_kind::infinite; }
  bool is_zero() const { return kind_ == number_kind::zero; }
  bool negative() const { return negative_; }
  mpz_srcptr significand() const { return m_; }  ///< signed
  std::int64_t exponent() const { return exponent_; }

  extended operator-() const;
  /// inf - inf is NaN; an exact zero is +0.
  friend extended operator+(const extended& a, const extended& b);
  friend extended operator-(const extended& a, const extended& b) { return a + -b; }
  /// inf * 0 is NaN; a zero or an infinity has the exclusive or of the signs.
  friend extended operator*(const extended& a, const extended& b);

  std::uint64_t round(dtype t) const;

 private:
  number_kind kind_ = number_kind::zero;
  bool negative_ = false;
  mpz_t m_;                    // signed; 0 unless finite
  std::int64_t exponent_ = 0;  // value = m_ * 2^exponent_
};

/// A row on `arity` patterns of a format, with its options; throws std::logic_error for a format that it does not have.
using oracle_function = std::uint64_t (*)(dtype t, const std::uint64_t* in, const double* options);

/// The same with a result of another format.
using other_format_function = std::uint64_t (*)(dtype from, dtype to, const std::uint64_t* in, const double* options);

/// The oracle of a row. What it has beside the function says where exact results lie; a selection needs nothing.
struct oracle {
  std::string_view name;
  oracle_function f;
  other_format_function to = nullptr;  ///< of rows whose results are of any format
  extended (*exact)(dtype t, const std::uint64_t* in, const double* options) = nullptr;  ///< algebraic
  approximation near = nullptr;                                                          ///< one variable
  outcome (*where)(dtype t, const std::uint64_t* in, const double* options) = nullptr;   ///< any other
};
/// Throws std::logic_error where there is none.
const oracle& oracle_of(std::string_view name);
/// Of x / y.
outcome locate_quotient(dtype t, const extended& x, const extended& y);
outcome locate_quotient(dtype t, const std::uint64_t* in);

/// The values of a row's options for operands of a format.
struct option_values {
  double value[ops::option_list::most] = {};
  option_values(const ops::elementwise_row& row, dtype t, const attributes& attrs = {});
};

/// The result of a row on patterns of a format.
std::uint64_t evaluate(const ops::elementwise_row& row, dtype t, const std::uint64_t* in, const option_values& options);
/// The same with a result of format `to`.
std::uint64_t evaluate(const ops::elementwise_row& row, dtype t, dtype to, const std::uint64_t* in,
                       const option_values& options);
/// On binary32 patterns, the options at their defaults.
std::uint32_t evaluate(const ops::elementwise_row& row, const std::uint32_t* in);
std::uint32_t evaluate(std::string_view name, const std::uint32_t* in);

/// Where the exact result lies in the format (transcendental rows: from 120 bits or more, which separate near-ties from ties).
outcome locate(const ops::elementwise_row& row, dtype t, const std::uint64_t* in, const option_values& options);
outcome locate(const ops::elementwise_row& row, dtype t, dtype to, const std::uint64_t* in,
               const option_values& options);
outcome locate(const ops::elementwise_row& row, const std::uint32_t* in);

/// out[i] = evaluate(row, first + i), operands in binary32, for i < count, in the row's type of results; unary rows without
/// options; first + count <= 2^32.
/// Elementary functions are tabulated. Other monotone rows are filled by bisection: RN(f(x)) is monotone too, so equal
/// patterns at both ends of a run of consecutive inputs (of one sign) decide everything between. sqrt steps exact
/// integers instead.
void evaluate_range(const ops::elementwise_row& row, std::uint32_t first, std::uint64_t count, void* out);

/// out[i] = the pattern of `to` for the pattern first + i of `from` (at most 32 bits wide); out has size_of(to) bytes
/// per element.
void convert_range(dtype from, dtype to, std::uint32_t first, std::uint64_t count, void* out);

/// Stores a pattern as element i of a little-endian array.
void store(dtype t, void* data, std::uint64_t i, std::uint64_t bits);
/// Loads it.
std::uint64_t load(dtype t, const void* data, std::uint64_t i);

}  // namespace repdl::reference
