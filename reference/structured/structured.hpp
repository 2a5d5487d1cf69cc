// The oracle of the structured operations, on contiguous row-major arrays of bit patterns. Sums are exact integers in
// units of 2^-298 (the square of the least binary32 number) and are rounded once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "librepdl/dynamic.hpp"
#include "reference/array.hpp"
#include "reference/layout.hpp"
#include "reference/numbers/number.hpp"
#include "reference/numbers/wide_integer.hpp"
#include "reference/random/philox.hpp"

namespace repdl::reference {

using patterns = std::vector<std::uint32_t>;

/// The exact sum of terms of a format and products of two of them; up to 2^60 terms.
class exact_sum {
 public:
  static constexpr int unit = -298;          ///< every product of two binary32 numbers is a multiple of 2^unit
  static constexpr int unit_of_f64 = -2148;  ///< of two binary64 numbers
  explicit exact_sum(dtype t = f32) : exact_sum(t, t) {}
  /// Of numbers of a format, rounded to another.
  exact_sum(dtype t, dtype to) : type_(t), to_(to) { mpz_init(value_); }
  exact_sum(const exact_sum&) = delete;
  exact_sum& operator=(const exact_sum&) = delete;
  ~exact_sum() { mpz_clear(value_); }

  void clear();
  void add(std::uint64_t x);
  void add_product(std::uint64_t x, std::uint64_t y);
  /// RN(sum); contract section 3: NaN terms, inf * 0 and both infinities give NaN, an exact zero +0.
  std::uint64_t round();
  /// RN(sum / n); NaN for n = 0.
  std::uint64_t round_mean(std::int64_t n);
  /// RN of the sum's root, and where that lies; of terms that are not negative.
  std::uint64_t round_root(outcome* where);
  /// Where sum / n lies.
  outcome where(std::int64_t n = 1);
  /// The finite sum, in units of 2^unit_of_sum().
  mpz_srcptr value();
  int unit_of_sum() const { return type_ == dtype::f64 ? unit_of_f64 : unit; }
  /// Whether the sum is not finite, and what it is.
  bool special(std::uint64_t* bits) const;

 private:
  void add_product(const number& a, const number& b);
  dtype type_, to_;
  wide_integer sum_;  // in units of 2^-298: 554 bits for the largest product, 60 for the count, a sign
  bool nan_ = false, plus_ = false, minus_ = false;
  mpz_t value_;  // of binary64 the sum itself
};

enum class reduction { sum, mean, max, min, argmax, argmin };

/// Reduces over `axes` (negative ones count from the end; absent: all; empty: none). The result has the kept axes, or
/// size 1 in the place of the others with keepdim. x's type, argmax and argmin i64: the row-major index within the reduced
/// axes in the input's order; a sum of integers i64, modulo 2^64, their mean f64. `where`, if given, gets one outcome per element of sum and mean.
/// to: the format of sums and means of floating-point numbers.
array reduce(reduction op, const array& x, const std::optional<shape_list>& axes, bool keepdim = false,
             outcomes* where = nullptr, std::optional<dtype> to = {});

/// The exact sums of x > 0 ? +0 : g * x over the axes, rounded once.
array prelu_weight_backward(const array& g, const array& x, const std::optional<shape_list>& axes, bool keepdim = false,
                            outcomes* where = nullptr);

/// The exact sums of x^2 over the axes; vector_norm of p = 1, 2, inf, -inf.
array sum_squares(const array& x, const std::optional<shape_list>& axes, bool keepdim = false,
                  outcomes* where = nullptr);
array vector_norm(const array& x, double p, const std::optional<shape_list>& axes, bool keepdim,
                  outcomes* where = nullptr);

/// The exact products of x over the axes, and of every beginning of its lines along an axis; the exact sums of those.
array prod(const array& x, const std::optional<shape_list>& axes, bool keepdim = false, outcomes* where = nullptr);
array cumprod(const array& x, std::int64_t axis, outcomes* where = nullptr);
array cumsum(const array& x, std::int64_t axis, outcomes* where = nullptr);

/// x 2^n, broadcast; x's significands in [1/2, 1) and their exponents, of i32.
array ldexp(const array& x, const array& n, outcomes* where = nullptr);
std::vector<array> frexp(const array& x);

/// The exact dot product of two vectors, rounded once; rank 0.
array dot(const array& x, const array& y, outcomes* where = nullptr, std::optional<dtype> to = {});

struct matmul_case {
  bool transpose_a = false;
  bool transpose_b = false;
  bool fma_chain = false;
  double alpha = 1, beta = 1;
  std::optional<dtype> to{};  ///< the result's format; absent: that of a
};
/// alpha (..., m, k) times (..., k, n), batch axes broadcast, plus beta times a bias that broadcasts to the result (null: none).
array matmul(const array& a, const array& b, const array* bias, const matmul_case& options = {},
             outcomes* where = nullptr);

/// Convolution and pooling with the attributes of the registry (windows.hpp); bias null: none.
array convolve(const array& x, const array& w, const array* bias, const attributes& attrs, outcomes* where = nullptr);
array convolve_grad_input(const array& g, const array& w, const attributes& attrs, outcomes* where = nullptr);
array convolve_grad_weight(const array& g, const array& x, const attributes& attrs, outcomes* where = nullptr);
array convolve_grad_bias(const array& g, outcomes* where = nullptr);
/// out, and with indices where in its plane each is.
std::vector<array> max_pool(const array& x, const attributes& attrs, bool with_indices);
array max_pool_backward(const array& g, const array& x, const attributes& attrs, outcomes* where = nullptr);
array avg_pool(const array& x, const attributes& attrs, outcomes* where = nullptr);
array avg_pool_backward(const array& g, const attributes& attrs, outcomes* where = nullptr);

/// The softmax family. `axis` may be negative; logsumexp reduces over several (absent: all). to: the result's format; absent: x's.
array softmax(const array& x, std::int64_t axis, outcomes* where = nullptr, std::optional<dtype> to = {});
array log_softmax(const array& x, std::int64_t axis, outcomes* where = nullptr, std::optional<dtype> to = {});
array logsumexp(const array& x, const std::optional<shape_list>& axes, bool keepdim, outcomes* where = nullptr);
/// logsumexp of every beginning of a line.
array logcumsumexp(const array& x, std::int64_t axis, outcomes* where = nullptr);
array softmax_backward(const array& g, const array& y, std::int64_t axis, outcomes* where = nullptr);
array log_softmax_backward(const array& g, const array& y, std::int64_t axis, outcomes* where = nullptr);
array logsumexp_backward(const array& g, const array& x, const std::optional<shape_list>& axes, bool keepdim,
                         outcomes* where = nullptr);
struct cross_entropy_case {
  std::optional<std::int64_t> axis;
  std::string reduction = "mean";
  std::int64_t ignore_index = -100;
};
array cross_entropy(const array& logits, const array& targets, const cross_entropy_case& options,
                    outcomes* where = nullptr);
array cross_entropy_backward(const array& g, const array& logits, const array& targets,
                             const cross_entropy_case& options, outcomes* where = nullptr);
/// With weights (or none), label smoothing, or probabilities in place of targets.
array blended_cross_entropy(const std::vector<array>& in, const attributes& attrs, outcomes* where = nullptr);
array blended_cross_entropy_backward(const std::vector<array>& in, const attributes& attrs, outcomes* where = nullptr);
/// attention of q, k, v and, absent or left out, mask and slopes: the result and lse, of f32.
std::vector<array> attention(const std::vector<array>& in, const attributes& attrs, outcomes* where = nullptr);
/// Its gradients to q, k and v, of g, q, k, v, y, lse and, absent or left out, mask and slopes.
std::vector<array> attention_backward(const std::vector<array>& in, const attributes& attrs, outcomes* where = nullptr);

/// layer_norm, rms_norm, group_norm and batch_norm of x, weight and bias: the result, mean (not of rms_norm) and rstd.
std::vector<array> norm(std::string_view op, const std::vector<array>& in, const attributes& attrs,
                        outcomes* where = nullptr);
/// Their gradients, of g, x, mean (not of rms_norm), rstd and, to x, weight.
array norm_backward(std::string_view op, const std::vector<array>& in, const attributes& attrs,
                    outcomes* where = nullptr);
/// batch_norm_running: the result, mean, rstd, and what becomes of the running mean and variance.
std::vector<array> running_norm(const std::vector<array>& in, const attributes& attrs, outcomes* where = nullptr);
/// batch_norm_inference and its gradients.
array given_norm(std::string_view op, const std::vector<array>& in, const attributes& attrs, outcomes* where = nullptr);

/// var, stddev, or var_mean: that and the mean.
std::vector<array> statistics(std::string_view op, const array& x, const attributes& attrs, outcomes* where = nullptr);

/// Losses of x and t, which broadcast, and their gradients for g.
array mse_loss(const array& x, const array& t, const attributes& attrs, outcomes* where = nullptr);
array mse_loss_backward(const array& g, const array& x, const array& t, const attributes& attrs,
                        outcomes* where = nullptr);
array l1_loss(const array& x, const array& t, const attributes& attrs, outcomes* where = nullptr);
array l1_loss_backward(const array& g, const array& x, const array& t, const attributes& attrs,
                       outcomes* where = nullptr);
array smooth_l1_loss(const array& x, const array& t, const attributes& attrs, outcomes* where = nullptr);
array smooth_l1_loss_backward(const array& g, const array& x, const array& t, const attributes& attrs,
                              outcomes* where = nullptr);
array huber_loss(const array& x, const array& t, const attributes& attrs, outcomes* where = nullptr);
array huber_loss_backward(const array& g, const array& x, const array& t, const attributes& attrs,
                          outcomes* where = nullptr);
array soft_margin_loss(const array& x, const array& t, const attributes& attrs, outcomes* where = nullptr);
array soft_margin_loss_backward(const array& g, const array& x, const array& t, const attributes& attrs,
                                outcomes* where = nullptr);
std::uint64_t soft_margin_element(std::string_view op, dtype t, const std::uint64_t* in, std::int64_t n,
                                  outcome* where = nullptr);
/// With weights that may be absent, x, t, weight (and pos_weight); gradients after g. Of one element, where an absent one is 1.
array loss_of_entropy(std::string_view op, const std::vector<array>& in, const attributes& attrs,
                      outcomes* where = nullptr);
std::uint64_t entropy_element(std::string_view op, dtype t, const std::uint64_t* in, double log_target, std::int64_t n,
                              outcome* where = nullptr);
/// RN of one element divided by n, of the operation's operands and its beta or delta, or 1 for log_target.
std::uint64_t loss_element(std::string_view op, dtype t, const std::uint64_t* in, double parameter, std::int64_t n,
                           outcome* where = nullptr);

/// nll_loss of x, targets and weight: the result, and the sum of the weights. Its gradient, of g, x, targets, weight and total_weight.
std::vector<array> nll_loss(const std::vector<array>& in, const attributes& attrs, outcomes* where = nullptr);
array nll_loss_backward(const std::vector<array>& in, const attributes& attrs, outcomes* where = nullptr);

/// index_add and scatter_add of x, index and source; embedding_backward of g and indices.
array scatter(std::string_view op, const std::vector<array>& in, const attributes& attrs, outcomes* where = nullptr);

/// One step on many tensors: operands and outputs as in the registry (p0 g0 v0 p1 ...).
std::vector<array> sgd(const std::vector<array>& in, const attributes& attrs, outcomes* where = nullptr);
std::vector<array> adamw(const std::vector<array>& in, const attributes& attrs, outcomes* where = nullptr);

/// Of a list as one vector: its norm; the gradients of a list, clipped, and their norm.
std::vector<array> total_norm(const std::vector<array>& in, const attributes& attrs, outcomes* where = nullptr);
std::vector<array> clip_grad_norm(const std::vector<array>& in, const attributes& attrs, outcomes* where = nullptr);

/// RN(low + (high - low) * u); low and high are binary64 patterns.
array uniform(dtype t, const shape_list& shape, std::uint64_t seed, std::uint64_t stream, std::uint64_t low,
              std::uint64_t high, outcomes* where = nullptr);
/// RN(mean + stddev * sqrt(-2 ln u1) * cos or sin of 2 pi u2).
array upsample_nearest2d(const array& x, const attributes& attrs);
array upsample_nearest2d_backward(const array& g, const attributes& attrs, outcomes* where = nullptr);
/// upsample_linear, upsample_cubic and their gradients.
array interpolation(std::string_view op, const array& in, const attributes& attrs, outcomes* where = nullptr);
/// Of each row of x the places that are drawn.
array multinomial(const array& x, std::int64_t samples, bool replacement, std::uint64_t seed, std::uint64_t stream,
                  outcomes* where = nullptr);
array linspace(dtype t, std::int64_t count, double start, double end, outcomes* where = nullptr);
array arange(dtype t, std::int64_t count, double start, double step, outcomes* where = nullptr);
array exponential(dtype t, const shape_list& shape, std::uint64_t seed, std::uint64_t stream, double rate,
                  outcomes* where = nullptr);
array normal(dtype t, const shape_list& shape, std::uint64_t seed, std::uint64_t stream, double mean, double stddev,
             outcomes* where = nullptr);
array bernoulli(const shape_list& shape, std::uint64_t seed, std::uint64_t stream, double p);
array randint(const shape_list& shape, std::uint64_t seed, std::uint64_t stream, std::int64_t low, std::int64_t high);
/// +0 where bernoulli, else RN(x / (1 - p)).
array dropout(const array& x, std::uint64_t seed, std::uint64_t stream, double p, outcomes* where = nullptr);
/// The indices 0 .. n-1 sorted by (W_i, i).
array permutation(std::int64_t n, std::uint64_t seed, std::uint64_t stream);

}  // namespace repdl::reference
