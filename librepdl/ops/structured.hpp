// The structured operations: one type each. Its `attrs` are the reflection from which parsing, printing, the C ABI, the
// command line and the documentation are made.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <tuple>

#include "librepdl/ops/registry.hpp"
#include "librepdl/options.hpp"
#include "librepdl/tensor.hpp"

namespace repdl::ops {

using dtype_set = unsigned;
constexpr dtype_set one(dtype t) { return 1u << static_cast<unsigned>(t); }
inline constexpr dtype_set F32 = one(dtype::f32);
inline constexpr dtype_set I64 = one(dtype::i64);
inline constexpr dtype_set FLOATS = one(dtype::f16) | one(dtype::bf16) | F32 | one(dtype::f64);

struct operand {
  std::string_view name;
  dtype_set types;
  bool optional = false;
};

template <class Attrs, class T>
struct field {
  std::string_view name;
  T Attrs::*member;
  std::string_view doc;
  bool required = false;  // by infer and the command line, where there is no output tensor to take it from
};
template <class Attrs, class T>
field(std::string_view, T Attrs::*, std::string_view) -> field<Attrs, T>;
template <class Attrs, class T>
field(std::string_view, T Attrs::*, std::string_view, bool) -> field<Attrs, T>;

struct no_attrs {
  static constexpr auto fields = std::tuple{};
};

struct convert_attrs {
  std::optional<repdl::dtype> dtype;
  static constexpr auto fields = std::tuple{
      field{"dtype", &convert_attrs::dtype, "the format rounded to; the output tensor's where there is one", true}};
};

struct reduce_attrs {
  std::optional<sizes> axis;
  bool keepdim = false;
  static constexpr auto fields =
      std::tuple{field{"axis", &reduce_attrs::axis, "the axes to reduce, negative from the end; all when absent"},
                 field{"keepdim", &reduce_attrs::keepdim, "keep the reduced axes with size 1"}};
};

struct matmul_attrs {
  bool transpose_a = false;
  bool transpose_b = false;
  repdl::accumulate accumulate = repdl::accumulate::exact;
  static constexpr auto fields =
      std::tuple{field{"transpose_a", &matmul_attrs::transpose_a, "a is (..., k, m)"},
                 field{"transpose_b", &matmul_attrs::transpose_b, "b is (..., n, k)"},
                 field{"accumulate", &matmul_attrs::accumulate, "exact, or fma_chain: f32 FMAs with k ascending"}};
};

struct uniform_attrs {
  std::optional<sizes> shape;
  std::optional<repdl::dtype> dtype;
  std::int64_t seed = 0;
  std::int64_t stream = 0;
  double low = 0;
  double high = 1;
  static constexpr auto fields =
      std::tuple{field{"shape", &uniform_attrs::shape, "the output's shape", true},
                 field{"dtype", &uniform_attrs::dtype, "the output's format; f32 when absent"},
                 field{"seed", &uniform_attrs::seed, "the Philox key (its 64 bits)"},
                 field{"stream", &uniform_attrs::stream, "the upper half of the Philox counter (its 64 bits)"},
                 field{"low", &uniform_attrs::low, "finite, 0 or of magnitude in [2^-200, 2^200]"},
                 field{"high", &uniform_attrs::high, "finite, 0 or of magnitude in [2^-200, 2^200]"}};
};

struct permutation_attrs {
  std::optional<std::int64_t> n;
  std::int64_t seed = 0;
  std::int64_t stream = 0;
  static constexpr auto fields =
      std::tuple{field{"n", &permutation_attrs::n, "the number of indices", true},
                 field{"seed", &permutation_attrs::seed, "the Philox key (its 64 bits)"},
                 field{"stream", &permutation_attrs::stream, "the upper half of the Philox counter (its 64 bits)"}};
};

struct convert {
  static constexpr op_id id = op_id::convert;
  static constexpr std::string_view name = "convert";
  static constexpr int bits = 1;
  static constexpr std::string_view formula = "x, rounded to the output's format";
  using attrs = convert_attrs;
  static constexpr operand in[] = {{"x", FLOATS}};
  static constexpr operand out[] = {{"out", FLOATS}};
};

template <op_id Id, dtype_set Out>
struct reduction {
  static constexpr op_id id = Id;
  static constexpr int bits = 1;
  using attrs = reduce_attrs;
  static constexpr operand in[] = {{"x", F32}};
  static constexpr operand out[] = {{"out", Out}};
};
struct sum : reduction<op_id::sum, F32> {
  static constexpr std::string_view name = "sum";
  static constexpr std::string_view formula = "sum of x over the axes; exact zero is +0";
};
struct mean : reduction<op_id::mean, F32> {
  static constexpr std::string_view name = "mean";
  static constexpr std::string_view formula = "(sum of x over the axes) / count";
};
struct max : reduction<op_id::max, F32> {
  static constexpr std::string_view name = "max";
  static constexpr std::string_view formula = "the greatest x over the axes; NaN wins, -0 < +0";
};
struct min : reduction<op_id::min, F32> {
  static constexpr std::string_view name = "min";
  static constexpr std::string_view formula = "the least x over the axes; NaN wins, -0 < +0";
};
struct argmax : reduction<op_id::argmax, I64> {
  static constexpr std::string_view name = "argmax";
  static constexpr std::string_view formula = "the first index of max(x), row-major within the reduced axes";
};
struct argmin : reduction<op_id::argmin, I64> {
  static constexpr std::string_view name = "argmin";
  static constexpr std::string_view formula = "the first index of min(x), row-major within the reduced axes";
};

struct dot {
  static constexpr op_id id = op_id::dot;
  static constexpr std::string_view name = "dot";
  static constexpr int bits = 1;
  static constexpr std::string_view formula = "sum of x_k * y_k";
  using attrs = no_attrs;
  static constexpr operand in[] = {{"x", F32}, {"y", F32}};
  static constexpr operand out[] = {{"out", F32}};
};

struct matmul {
  static constexpr op_id id = op_id::matmul;
  static constexpr std::string_view name = "matmul";
  static constexpr int bits = 1;
  static constexpr std::string_view formula = "sum over k of a_ik * b_kj, + bias_ij";
  using attrs = matmul_attrs;
  static constexpr operand in[] = {{"a", F32}, {"b", F32}, {"bias", F32, true}};
  static constexpr operand out[] = {{"out", F32}};
};

struct uniform {
  static constexpr op_id id = op_id::uniform;
  static constexpr std::string_view name = "uniform";
  static constexpr int bits = 1;
  static constexpr std::string_view formula = "low + (high - low) * u, u uniform on [0, 1) from Philox4x32-10";
  using attrs = uniform_attrs;
  static constexpr std::array<operand, 0> in{};
  static constexpr operand out[] = {{"out", FLOATS}};
};

struct permutation {
  static constexpr op_id id = op_id::permutation;
  static constexpr std::string_view name = "permutation";
  static constexpr int bits = 1;
  static constexpr std::string_view formula = "0 .. n-1 sorted by Philox words";
  using attrs = permutation_attrs;
  static constexpr std::array<operand, 0> in{};
  static constexpr operand out[] = {{"out", I64}};
};

/// Calls f.template operator()<Op>() for every structured operation, in op_id's order.
template <class F>
constexpr void for_each_structured(F&& f) {
  [&]<class... Op>(std::tuple<Op...>*) {
    (f.template operator()<Op>(), ...);
  }(static_cast<std::tuple<convert, sum, mean, max, min, argmax, argmin, dot, matmul, uniform, permutation>*>(nullptr));
}

}  // namespace repdl::ops
