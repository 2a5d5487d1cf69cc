// Inputs for tests and digests, made from Philox words by integer operations only, so that every machine makes the same
// ones, in every build (no GMP, no MPFR). A class is a promise about the exact results; `outcome` (number.hpp) says how
// often it was kept, and tests count.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "librepdl/dynamic.hpp"
#include "librepdl/ops/registry.hpp"
#include "reference/array.hpp"
#include "reference/numbers/format.hpp"
#include "reference/random/philox.hpp"

namespace repdl::reference {

enum class sample_class {
  uniform_patterns,  ///< every bit pattern equally likely
  normal_range,      ///< exponents near 0, full significands
  narrow_lattice,    ///< few significand bits and exponents: sums and products are exact or ties
  cancelling,        ///< total or nearly total cancellation
  ties,              ///< exact results that are midpoints
  near_ties,         ///< exact results within 2^-20 ulp of a midpoint
  subnormal,         ///< subnormal operands or results
  overflow_border,   ///< results around the largest number
  single_nonfinite,  ///< one NaN or infinity among ordinary numbers
  wide_exponents,    ///< exponents from the whole range
  zeros,             ///< mostly zeros of both signs
  all_patterns,      ///< 0, 1, 2, ...: a 16-bit format exhaustively
  exact_gaps,        ///< rows of softmax with gaps from 2^-149 to 2^128 and known hard pairs; of norms with outliers
  multiplicities,    ///< rows with groups of equal elements
};
inline constexpr int sample_class_count = 14;
/// The first ones: those that single elements have.
inline constexpr auto element_classes = [] {
  std::array<sample_class, 11> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<sample_class>(i);
  return all;
}();
std::string_view name_of(sample_class c);
/// Throws std::invalid_argument.
sample_class sample_class_named(std::string_view name);

/// Philox words in order.
class word_stream {
 public:
  word_stream(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}
  std::uint32_t next();
  std::uint64_t next64() {
    const std::uint64_t low = next();
    return low | std::uint64_t{next()} << 32;
  }
  /// 0 .. n - 1.
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>((std::uint64_t{next()} * n) >> 32); }
  int between(int lo, int hi) { return lo + static_cast<int>(below(static_cast<std::uint32_t>(hi - lo + 1))); }
  bool flip() { return (next() >> 31) != 0; }

 private:
  std::uint64_t seed_, stream_, block_ = 0;
  philox_block words_{};
  int used_ = 4;
};

/// The pattern with sign, exponent (2^e <= |x| < 2^(e+1)) and fraction below the leading bit; e below emin makes the
/// subnormal number with that fraction, e above emax infinity.
std::uint64_t compose(dtype t, bool negative, int e, std::uint64_t fraction);
/// (-1)^negative * m * 2^e, which must be representable.
std::uint64_t exact_pattern(dtype t, bool negative, std::uint64_t m, int e);

/// One operand on its own. A boolean is any byte: 0, 1 or another. Integers have any length, or are near the ends of their range.
std::uint64_t sample(sample_class c, dtype t, word_stream& w);
/// `count` independent operands of any format.
array fill(sample_class c, dtype t, const shape_list& shape, std::uint64_t seed, std::uint64_t stream);

/// Operands of an elementwise operation in a format, made together so that +, -, *, /, fma and the backward formulas
/// each have a share of elements of the class. At most three.
std::vector<array> fill_operands(sample_class c, dtype t, int arity, std::int64_t count, std::uint64_t seed,
                                 std::uint64_t stream);

/// Such operands for results in another format. Some are as above, some as above in the format of the results and converted
/// to that of the operands, of which in turn some get another last bit: beside what the class promises, if the format is wider.
std::vector<array> fill_operands(sample_class c, dtype t, dtype to, int arity, std::int64_t count, std::uint64_t seed,
                                 std::uint64_t stream);

/// The operands of a row in a format: those of the format made together, boolean ones on their own; in binary64 a share of those that
/// are known to be difficult (samples/binary64.hpp).
std::vector<array> fill_operands(sample_class c, const ops::elementwise_row& row, dtype t, std::int64_t count,
                                 std::uint64_t seed, std::uint64_t stream);

/// Options of a row for operands of a format, accepted by it: each is left out at times. Coefficients are as `coefficient`
/// draws them; others are numbers of the format, midpoints, any doubles and special ones.
attributes sample_options(const ops::elementwise_row& row, dtype t, word_stream& w,
                          const std::function<double(word_stream&)>& coefficient);

/// Inputs of a conversion: ties and near-ties are midpoints of `to`, of integers those and themselves, borders those of `to`.
array fill_conversion(sample_class c, dtype from, dtype to, std::int64_t count, std::uint64_t seed,
                      std::uint64_t stream);

/// rows * k numbers of the class, among which are equal ones and opposite ones in half of the rows, NaNs in few.
array fill_ordered(sample_class c, std::int64_t rows, std::int64_t k, std::uint64_t seed, std::uint64_t stream,
                   dtype type);
/// rows * k integers, in half of the rows with equal ones among them, in few all equal. Of i64 those of ties have an odd mean of 54 bits
/// times a power of two, those of near-ties such a sum and 1 or -1. As factors, nearly all in half of the rows are odd: 64 even ones are 0.
array fill_integers(sample_class c, std::int64_t rows, std::int64_t k, std::uint64_t seed, std::uint64_t stream,
                    dtype type, bool factors = false);
/// rows * k terms, f16, bf16 or f32, whose sum (mean: sum / k) over each row is of the class.
array fill_terms(sample_class c, std::int64_t rows, std::int64_t k, bool mean, std::uint64_t seed, std::uint64_t stream,
                 dtype type = dtype::f32);

/// rows * k factors whose product over each row is of the class.
array fill_products(sample_class c, std::int64_t rows, std::int64_t k, std::uint64_t seed, std::uint64_t stream,
                    dtype type);

/// Operands of ldexp, or of frexp: x of the class, and exponents n by which x 2^n is of it: a tie of subnormal numbers, near one,
/// subnormal, at the border of overflow; others are small, of any length, or an end of their range.
std::vector<array> fill_exponents(sample_class c, const std::vector<dtype>& formats,
                                  const std::vector<shape_list>& shapes, std::uint64_t seed);

/// Operands of attention: q, k, v and, absent or left out, mask and slopes, whose results are of the class; scores have magnitudes up to
/// about 10 but in the classes that want others.
std::vector<array> fill_attention(sample_class c, const std::vector<dtype>& formats,
                                  const std::vector<shape_list>& shapes, const attributes& attrs, std::uint64_t seed);
/// Operands of its gradients: g, q, k, v, y, lse and, absent or left out, mask and slopes. y and lse are mostly what attention's results
/// are, nearly always to the last bit: computed in binary64 from operations that IEEE 754 defines.
std::vector<array> fill_attention_backward(sample_class c, const std::vector<dtype>& formats,
                                           const std::vector<shape_list>& shapes, const attributes& attrs,
                                           std::uint64_t seed);

/// rows * k terms of a format whose sum over each row, of |x|, of x^2, or the root of that, is of the class.
enum class magnitude_sum { plain, squares, root };
array fill_magnitudes(sample_class c, std::int64_t rows, std::int64_t k, magnitude_sum kind, std::uint64_t seed,
                      std::uint64_t stream, dtype type = dtype::f32);

/// Factors (m, k) and (k, n) whose products are of the class, and a bias (n) if asked for. dot: m = n = 1.
struct factors {
  array a, b, bias;
};
factors fill_factors(sample_class c, std::int64_t m, std::int64_t n, std::int64_t k, bool with_bias, std::uint64_t seed,
                     std::uint64_t stream, dtype type = dtype::f32);

/// The inputs of an operation on layers (convolution, pooling), rows (the softmax family, norms), steps (optimisers) or random
/// numbers, of the shapes given (absent_shape: left out), such that outputs are of the class where its attributes,
/// geometry and hyper-parameters allow it. `type`: of parameters and gradients, else f32. Throws std::invalid_argument for other
/// families.
std::vector<array> fill_inputs(const std::string& op, sample_class c, const std::vector<shape_list>& shapes,
                               const attributes& attrs, std::uint64_t seed, std::uint64_t stream,
                               dtype type = dtype::f32);

/// The operands of a norm in these formats: running statistics perhaps rounded; weight and bias perhaps in binary32, half of their numbers
/// as they are, others moved by less than an ulp of what they were.
std::vector<array> in_formats(std::vector<array> in, const std::vector<dtype>& formats, std::uint64_t seed);

/// The operands of a loss or its gradient, all of one format.
std::vector<array> fill_losses(const std::string& op, sample_class c, dtype t, const std::vector<shape_list>& shapes,
                               const attributes& attrs, std::uint64_t seed, std::uint64_t stream);

/// The operands of nll_loss or its gradient, of one format but for total_weight.
std::vector<array> fill_nll(const std::string& op, sample_class c, dtype t, const std::vector<shape_list>& shapes,
                            const attributes& attrs, std::uint64_t seed, std::uint64_t stream);

/// The operands of a sum to places, x, g and the source of one format; indices in range.
/// Weights: finite, >= 0, in each row `positive` of them or more not 0, if it has so many.
array fill_weights(sample_class c, dtype t, const shape_list& shape, std::int64_t positive, std::uint64_t seed);
std::vector<array> fill_scatter(const std::string& op, sample_class c, dtype t, const std::vector<shape_list>& shapes,
                                const attributes& attrs, std::uint64_t seed, std::uint64_t stream);

/// The operands of a pooling operation, all of one format.
std::vector<array> fill_pooling(const std::string& op, sample_class c, dtype t, const std::vector<shape_list>& shapes,
                                const attributes& attrs, std::uint64_t seed, std::uint64_t stream);

/// How many operands an optimiser has for each tensor: the optional ones come with a momentum.
std::size_t operands_of_step(const std::string& op, const attributes& attrs);

/// Whether an outcome is what the class promises (classes that promise nothing: always true).
bool hit(sample_class c, const outcome& o);

}  // namespace repdl::reference
