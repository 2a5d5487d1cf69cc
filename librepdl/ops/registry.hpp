// The op registry: every operation the library has, as data. Kernels, tests, sweeps, digests, bindings, the command
// line and the documentation are made by looping over it.
//
// An elementwise operation is a row of elementwise.def. A structured operation is a line of structured.def and a type in
// structured.hpp. Rows carry names and never point upward; each layer attaches its part by specialisation
// (num::body<Op>, reference, ...).
//
// Nothing here depends on which elementwise operations there are: their rows are read through functions (registry.cpp). Their
// types are in operations.hpp, for the few files that need all of them; a file about one body needs its own (operation.hpp).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>

#include "librepdl/ops/formats.hpp"

namespace repdl::ops {

/// Numbers every operation: an elementwise one by its row, from 0, a structured one by its line, from first_structured.
/// Internal: the order is that of the registry and may change between releases.
inline constexpr int first_structured = 1000;
enum class op_id : int {
  before_structured = first_structured - 1,
#define REPDL_STRUCTURED(name, ...) name,
#include "librepdl/ops/structured.def"
#undef REPDL_STRUCTURED
};
constexpr bool is_elementwise(op_id op) { return static_cast<int>(op) < first_structured; }

enum class op_kind { compute, bits };
/// The type of an elementwise result: the operands', where the call says no other one (any_float), or one of its own.
enum class result_kind { same, any_float, boolean, i64, i32 };
constexpr dtype result_type(result_kind of, dtype operands) {
  switch (of) {
    case result_kind::boolean:
      return dtype::boolean;
    case result_kind::i64:
      return dtype::i64;
    case result_kind::i32:
      return dtype::i32;
    case result_kind::same:
    case result_kind::any_float:
      break;
  }
  return operands;
}
enum class monotone_kind { up, down, no };
/// enumerate_narrow, formula_narrow: of formats narrower than binary64; in that multi_limb.
enum class proof_kind {
  ieee,
  select,
  enumerate,
  enumerate_narrow,
  formula,
  formula_narrow,
  integers,
  exact,
  multi_limb
};
constexpr proof_kind proof_in(proof_kind of, dtype format) {
  switch (of) {
    case proof_kind::enumerate_narrow:
      return format == dtype::f64 ? proof_kind::multi_limb : proof_kind::enumerate;
    case proof_kind::formula_narrow:
      return format == dtype::f64 ? proof_kind::multi_limb : proof_kind::formula;
    default:
      return of;
  }
}
/// Which outputs may be exactly an input, the same elements in the same order: none, any, the one of its name, or the first.
enum class aliases { none, any, same_name, first };

struct interval {
  double lo = -std::numeric_limits<double>::infinity();
  double hi = std::numeric_limits<double>::infinity();
};

/// What an option of an elementwise operation takes (contract, section 2).
enum class option_kind {
  coefficient,  ///< an exact double, 0 or of magnitude in [2^-200, 2^200]
  nonzero,      ///< a coefficient that is not 0
  nonnegative,  ///< a coefficient >= 0
  positive,     ///< a coefficient > 0
  margin,       ///< an exact double in [0, 1/2], or NaN: absent
  threshold,    ///< an exact double that is only compared with: any but NaN
  value,        ///< any double, NaN too; it enters rounded to the operands' format
  upper,        ///< a value that is not below the option before it
  real,         ///< any double, NaN too, exactly
};
inline constexpr option_kind NONZERO = option_kind::nonzero;
inline constexpr option_kind NONNEGATIVE = option_kind::nonnegative;
inline constexpr option_kind POSITIVE = option_kind::positive;
inline constexpr option_kind MARGIN = option_kind::margin;
inline constexpr option_kind THRESHOLD = option_kind::threshold;
inline constexpr option_kind VALUE = option_kind::value;
inline constexpr option_kind UPPER = option_kind::upper;
inline constexpr option_kind REAL = option_kind::real;

/// The value of an option that is not given: a number, or LARGEST, the largest finite number of the operands' format.
struct option_default {
  double number = 0;
  bool of_format = false;  ///< `number` is a sign
  constexpr option_default() = default;
  constexpr option_default(double n) : number(n) {}
  constexpr option_default operator-() const {
    option_default negated = *this;
    negated.number = -number;
    return negated;
  }
  constexpr double in(dtype format) const { return of_format ? number * largest(format) : number; }
};
inline constexpr option_default LARGEST = [] {
  option_default d = 1;
  d.of_format = true;
  return d;
}();
inline constexpr double inf = std::numeric_limits<double>::infinity();
/// The default of a MARGIN: none.
inline constexpr double ABSENT = std::numeric_limits<double>::quiet_NaN();

/// A real parameter of an elementwise operation.
struct real_option {
  std::string_view name;
  option_default otherwise;  ///< where it is not given
  std::string_view doc;
  option_kind kind = option_kind::coefficient;
};
struct option_list {
  static constexpr int most = 3;
  real_option all[most];
  constexpr int count() const {
    int n = 0;
    while (n < most && !all[n].name.empty()) ++n;
    return n;
  }
  /// Whether option i may have its value among these. By the bits, which are in the order of the numbers: comparisons of doubles
  /// would need the guarded environment.
  constexpr bool accepts(int i, std::span<const double> values) const {
    constexpr std::uint64_t sign = std::uint64_t{1} << 63;
    const auto magnitude = [](double x) { return std::bit_cast<std::uint64_t>(x) & ~sign; };
    const auto is_nan = [&](double x) { return magnitude(x) > magnitude(inf); };
    const auto key = [&](double x) {
      const auto m = static_cast<std::int64_t>(magnitude(x));
      return (std::bit_cast<std::uint64_t>(x) & sign) != 0 ? -m : m;
    };
    const double v = values[static_cast<std::size_t>(i)];
    const bool normal = magnitude(v) >= magnitude(0x1p-200) && magnitude(v) <= magnitude(0x1p200);
    switch (all[i].kind) {
      case option_kind::coefficient:
        return normal || magnitude(v) == 0;
      case option_kind::nonzero:
        return normal;
      case option_kind::nonnegative:
        return (normal || magnitude(v) == 0) && key(v) >= 0;
      case option_kind::positive:
        return normal && key(v) > 0;
      case option_kind::margin:
        return is_nan(v) || (key(v) >= 0 && key(v) <= key(0.5));
      case option_kind::threshold:
        return !is_nan(v);
      case option_kind::value:
      case option_kind::real:
        return true;
      case option_kind::upper:
        break;
    }
    const double below = values[static_cast<std::size_t>(i) - 1];
    return !is_nan(v) && !is_nan(below) && key(below) <= key(v);
  }
  /// Whether each may.
  constexpr bool accepts(std::span<const double> values) const {
    for (int i = 0; i < count(); ++i) {
      if (!accepts(i, values)) return false;
    }
    return true;
  }
};

/// Operand k of "cond:bool,x,y": its name, and whether it is boolean in every format.
struct operand_text {
  std::string_view name;
  bool is_boolean;
};
constexpr operand_text operand_at(std::string_view operands, int k) {
  for (; k > 0; --k) operands.remove_prefix(operands.find(',') + 1);
  const std::string_view one_of_them = operands.substr(0, operands.find(','));
  const std::size_t colon = std::min(one_of_them.find(':'), one_of_them.size());
  return {one_of_them.substr(0, colon), one_of_them.substr(colon) == ":bool"};
}
/// The operands that are boolean in every format: bit k for operand k.
constexpr unsigned boolean_operands(std::string_view operands, int arity) {
  unsigned bits = 0;
  for (int k = 0; k < arity; ++k) bits |= operand_at(operands, k).is_boolean ? 1u << k : 0u;
  return bits;
}

/// One row of elementwise.def.
struct elementwise_row {
  std::string_view name;
  int arity;
  std::string_view operands;  // "x,y", "cond:bool,x,y"
  unsigned booleans;          // which of them are boolean in every format
  dtype_set formats;
  result_kind result;
  option_list options;
  op_kind kind;
  interval domain;
  monotone_kind monotone;
  proof_kind proof;
  int bits;
  std::string_view formula;

  constexpr dtype result_type(dtype format) const { return ops::result_type(result, format); }
  constexpr dtype operand_type(int k, dtype format) const { return (booleans >> k & 1) != 0 ? dtype::boolean : format; }
  /// The first operand that has the format of the call.
  constexpr int leading() const { return std::countr_one(booleans); }
  /// Whether the call may say the result's format, and whether the row says its type.
  constexpr bool has_any_float() const { return result == result_kind::any_float; }
  constexpr bool has_own_type() const { return result > result_kind::any_float; }
};

/// The rows, in the order of op_id.
std::span<const elementwise_row> elementwise_rows() noexcept;
/// The row of an elementwise operation.
const elementwise_row& row_of(op_id op) noexcept;

/// The most operands that an elementwise operation has.
inline constexpr int most_operands = 4;

/// The type of operand K of an operation in a format.
template <class Op, class T, int K>
using operand_of = std::conditional_t<(K < Op::arity) && operand_at(Op::operands, K).is_boolean, bool, T>;

/// The families of structured.def.
enum class family {
  convert,
  reduce,
  matmul,
  random,
  convolution,
  pooling,
  softmax,
  norm,
  optimizer,
  loss,
  scatter,
  nll,
  sequence,
  upsample,
  draw,
  scan,
  exponent,
  attention
};

/// One row of structured.def.
struct structured_row {
  std::string_view name;
  ops::family kind;
  std::string_view family;
  proof_kind proof;
  aliases may_alias;
  int bits;
};
inline constexpr structured_row structured_rows[] = {
#define REPDL_STRUCTURED(name, of, proof, may_alias, bits) \
  {#name, ops::family::of, #of, proof_kind::proof, aliases::may_alias, bits},
#include "librepdl/ops/structured.def"
#undef REPDL_STRUCTURED
};

constexpr const structured_row& structured_row_of(op_id op) {
  return structured_rows[static_cast<int>(op) - first_structured];
}

}  // namespace repdl::ops
