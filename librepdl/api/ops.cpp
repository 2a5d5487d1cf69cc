// The typed functions.
#include "librepdl/ops.hpp"

#include <array>

#include "librepdl/api/submit.hpp"
#include "librepdl/ops/operations.hpp"

namespace repdl {
namespace {

template <class Op>
void reduce(context& ctx, const_tensor_view x, tensor_view out, const reduce_options& o) {
  api::submit<Op>(ctx, {&x, 1}, {&out, 1}, o);
}

template <class Op, class... View>
void one_output(context& ctx, tensor_view out, const typename Op::attrs& o, const View&... x) {
  const const_tensor_view in[] = {x...};
  api::submit<Op>(ctx, in, {&out, 1}, o);
}

template <class Op>
void norm(context& ctx, const const_tensor_view& x, const tensor_view& out, const typename Op::attrs& o,
          const norm_statistics& of_rows) {
  const const_tensor_view in[] = {x, o.weight, o.bias};
  const tensor_view all[] = {out, of_rows.mean, of_rows.rstd};
  api::submit<Op>(ctx, in, all, o);
}

template <class... View>
void elementwise(context& ctx, ops::op_id op, plan::option_span options, tensor_view out, const View&... x) {
  const const_tensor_view in[] = {x...};
  api::submit_elementwise(ctx, op, in, {&out, 1}, options);
}

// The options of an operation: its struct has nothing but them, in the order of the row.
using option = std::optional<double>;
std::array<option, 0> list_of() noexcept { return {}; }
template <class Options>
auto list_of(const Options& o) noexcept {
  static_assert(ops::option_list::most == 3);
  if constexpr (requires { Options{{}, {}, {}}; }) {
    const auto& [first, second, third] = o;
    return std::array<option, 3>{first, second, third};
  } else if constexpr (requires { Options{{}, {}}; }) {
    const auto& [first, second] = o;
    return std::array<option, 2>{first, second};
  } else {
    const auto& [first] = o;
    return std::array<option, 1>{first};
  }
}

// The gradients of convolutions share their options; they do not depend on the bias.
void refuse_bias(std::string_view op, const const_tensor_view& bias) {
  if (bias) fail(error_site::input_count, op, "bias", "none", "one of shape " + to_string(bias.shape()));
}

// The targets of cross_entropy may be probabilities, another row of the registry.
bool are_probabilities(const const_tensor_view& targets) noexcept {
  return targets && (ops::FLOATS & ops::one(targets.type())) != 0;
}
cross_entropy_probabilities_options of_probabilities(std::string_view op, const cross_entropy_options& o) {
  if (o.ignore_index != cross_entropy_options{}.ignore_index) {
    fail(error_site::attribute_value, op, "ignore_index", "its default beside probabilities, which have no index",
         std::to_string(o.ignore_index));
  }
  return {.axis = o.axis, .reduction = o.reduction, .label_smoothing = o.label_smoothing, .weight = {}};
}

// Calls that are only prepared use no random numbers.
void use_stream(context& ctx, generator& g) noexcept {
  g.stream += context_access::of(ctx).recorder != nullptr ? 0 : 1;
}

}  // namespace

#define REPDL_VIEWS_1 const_tensor_view x
#define REPDL_VIEWS_2 const_tensor_view x, const_tensor_view y
#define REPDL_VIEWS_3 const_tensor_view x, const_tensor_view y, const_tensor_view z
#define REPDL_VIEWS_4 const_tensor_view x, const_tensor_view y, const_tensor_view z, const_tensor_view w
#define REPDL_ARGS_1 x
#define REPDL_ARGS_2 x, y
#define REPDL_ARGS_3 x, y, z
#define REPDL_ARGS_4 x, y, z, w
// Behind an operation's views: its options, where it has any.
#define REPDL_OPTIONS(name, ...) __VA_OPT__(, const name##_options& options)
#define REPDL_OPTION_ARGS(...) __VA_OPT__(options)
#define REPDL_EXPAND(macro, ...) macro(__VA_ARGS__)
#define REPDL_ELEMENTWISE(name, arity, operands, formats, result, of, ...)                                   \
  void name(context& ctx, REPDL_VIEWS_##arity,                                                               \
            tensor_view out REPDL_EXPAND(REPDL_OPTIONS, name __VA_OPT__(, ) REPDL_UNPAREN of)) {             \
    elementwise(ctx, ops::id_of<ops::name>, list_of(REPDL_EXPAND(REPDL_OPTION_ARGS, REPDL_UNPAREN of)), out, \
                REPDL_ARGS_##arity);                                                                         \
  }
#include "librepdl/ops/elementwise/elementwise.def"
#undef REPDL_ELEMENTWISE

void convert(context& ctx, const_tensor_view x, tensor_view out, const convert_options& options) {
  api::submit<ops::convert>(ctx, {&x, 1}, {&out, 1}, {options, {}});
}

void sum(context& ctx, const_tensor_view x, tensor_view out, const reduce_options& options) {
  api::submit<ops::sum>(ctx, {&x, 1}, {&out, 1}, {options, {}});
}
void mean(context& ctx, const_tensor_view x, tensor_view out, const reduce_options& options) {
  api::submit<ops::mean>(ctx, {&x, 1}, {&out, 1}, {options, {}});
}
void max(context& ctx, const_tensor_view x, tensor_view out, const reduce_options& options) {
  reduce<ops::max>(ctx, x, out, options);
}
void min(context& ctx, const_tensor_view x, tensor_view out, const reduce_options& options) {
  reduce<ops::min>(ctx, x, out, options);
}
void argmax(context& ctx, const_tensor_view x, tensor_view out, const reduce_options& options) {
  reduce<ops::argmax>(ctx, x, out, options);
}
void argmin(context& ctx, const_tensor_view x, tensor_view out, const reduce_options& options) {
  reduce<ops::argmin>(ctx, x, out, options);
}

void dot(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out) {
  const const_tensor_view in[] = {x, y};
  api::submit<ops::dot>(ctx, in, {&out, 1}, {});
}

void prelu_backward_w(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out,
                      const reduce_options& options) {
  const const_tensor_view in[] = {g, x};
  api::submit<ops::prelu_weight_backward>(ctx, in, {&out, 1}, options);
}

void sum_squares(context& ctx, const_tensor_view x, tensor_view out, const reduce_options& options) {
  reduce<ops::sum_squares>(ctx, x, out, options);
}
void vector_norm(context& ctx, const_tensor_view x, tensor_view out, const vector_norm_options& options) {
  one_output<ops::vector_norm>(ctx, out, options, x);
}

void matmul(context& ctx, const_tensor_view a, const_tensor_view b, tensor_view out, const matmul_options& options) {
  const const_tensor_view in[] = {a, b, options.bias};
  api::submit<ops::matmul>(ctx, in, {&out, 1}, {options, {}});
}

void uniform(context& ctx, generator& g, tensor_view out, const uniform_options& options) {
  api::submit<ops::uniform>(ctx, {}, {&out, 1}, {g, options, {}, {}});
  use_stream(ctx, g);
}

void permutation(context& ctx, generator& g, tensor_view out) {
  api::submit<ops::permutation>(ctx, {}, {&out, 1}, {g, {}});
  use_stream(ctx, g);
}

void linspace(context& ctx, tensor_view out, const linspace_options& o) {
  api::submit<ops::linspace>(ctx, {}, {&out, 1}, {o, {}, {}});
}
void arange(context& ctx, tensor_view out, const arange_options& o) {
  api::submit<ops::arange>(ctx, {}, {&out, 1}, {o, {}, {}});
}

void normal(context& ctx, generator& g, tensor_view out, const normal_options& o) {
  api::submit<ops::normal>(ctx, {}, {&out, 1}, {g, o, {}, {}});
  use_stream(ctx, g);
}
void exponential(context& ctx, generator& g, tensor_view out, const exponential_options& o) {
  api::submit<ops::exponential>(ctx, {}, {&out, 1}, {g, o, {}, {}});
  use_stream(ctx, g);
}
void bernoulli(context& ctx, generator& g, tensor_view out, double p) {
  api::submit<ops::bernoulli>(ctx, {}, {&out, 1}, {g, p, {}});
  use_stream(ctx, g);
}
void randint(context& ctx, generator& g, tensor_view out, const randint_options& o) {
  api::submit<ops::randint>(ctx, {}, {&out, 1}, {g, o, {}});
  use_stream(ctx, g);
}
void multinomial(context& ctx, generator& g, const_tensor_view x, tensor_view out, const multinomial_options& o) {
  api::submit<ops::multinomial>(ctx, {&x, 1}, {&out, 1}, {g, o, {}});
  use_stream(ctx, g);
}
void dropout(context& ctx, generator& g, const_tensor_view x, tensor_view out, double p) {
  api::submit<ops::dropout>(ctx, {&x, 1}, {&out, 1}, {g, p});
  use_stream(ctx, g);
}
void dropout_backward(context& ctx, const generator& g, const_tensor_view grad, tensor_view grad_x, double p) {
  api::submit<ops::dropout_backward>(ctx, {&grad, 1}, {&grad_x, 1}, {g, p});
}

void conv2d(context& ctx, const_tensor_view x, const_tensor_view w, tensor_view out, const conv2d_options& o) {
  const const_tensor_view in[] = {x, w, o.bias};
  api::submit<ops::conv2d>(ctx, in, {&out, 1}, o);
}
void conv2d_backward_x(context& ctx, const_tensor_view g, const_tensor_view w, tensor_view grad_x,
                       const conv2d_options& o) {
  refuse_bias("conv2d_grad_input", o.bias);
  const const_tensor_view in[] = {g, w};
  api::submit<ops::conv2d_grad_input>(ctx, in, {&grad_x, 1}, {o, {}});
}
void conv2d_backward_w(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view grad_w,
                       const conv2d_options& o) {
  refuse_bias("conv2d_grad_weight", o.bias);
  const const_tensor_view in[] = {g, x};
  api::submit<ops::conv2d_grad_weight>(ctx, in, {&grad_w, 1}, {o, {}});
}
void conv2d_backward_bias(context& ctx, const_tensor_view g, tensor_view grad_bias) {
  api::submit<ops::conv2d_grad_bias>(ctx, {&g, 1}, {&grad_bias, 1}, {});
}

void max_pool2d(context& ctx, const_tensor_view x, tensor_view out, const max_pool2d_options& o) {
  api::submit<ops::max_pool2d>(ctx, {&x, 1}, {&out, 1}, o);
}
void max_pool2d_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view grad_x,
                         const max_pool2d_options& o) {
  const const_tensor_view in[] = {g, x};
  api::submit<ops::max_pool2d_backward>(ctx, in, {&grad_x, 1}, o);
}
void avg_pool2d(context& ctx, const_tensor_view x, tensor_view out, const avg_pool2d_options& o) {
  api::submit<ops::avg_pool2d>(ctx, {&x, 1}, {&out, 1}, o);
}
void avg_pool2d_backward(context& ctx, const_tensor_view g, tensor_view grad_x, const avg_pool2d_options& o) {
  api::submit<ops::avg_pool2d_backward>(ctx, {&g, 1}, {&grad_x, 1}, {o, {}});
}

void max_pool2d_with_indices(context& ctx, const_tensor_view x, tensor_view out, tensor_view indices,
                             const max_pool2d_options& o) {
  const tensor_view both[] = {out, indices};
  api::submit<ops::max_pool2d_with_indices>(ctx, {&x, 1}, both, o);
}
void adaptive_max_pool2d(context& ctx, const_tensor_view x, tensor_view out, const adaptive_pool2d_options& o) {
  one_output<ops::adaptive_max_pool2d>(ctx, out, o, x);
}
void adaptive_max_pool2d_with_indices(context& ctx, const_tensor_view x, tensor_view out, tensor_view indices,
                                      const adaptive_pool2d_options& o) {
  const tensor_view both[] = {out, indices};
  api::submit<ops::adaptive_max_pool2d_with_indices>(ctx, {&x, 1}, both, o);
}
void adaptive_max_pool2d_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view grad_x) {
  one_output<ops::adaptive_max_pool2d_backward>(ctx, grad_x, {}, g, x);
}
void adaptive_avg_pool2d(context& ctx, const_tensor_view x, tensor_view out, const adaptive_pool2d_options& o) {
  one_output<ops::adaptive_avg_pool2d>(ctx, out, o, x);
}
void adaptive_avg_pool2d_backward(context& ctx, const_tensor_view g, tensor_view grad_x) {
  one_output<ops::adaptive_avg_pool2d_backward>(ctx, grad_x, {}, g);
}

void conv3d(context& ctx, const_tensor_view x, const_tensor_view w, tensor_view out, const conv3d_options& o) {
  const const_tensor_view in[] = {x, w, o.bias};
  api::submit<ops::conv3d>(ctx, in, {&out, 1}, o);
}
void conv3d_backward_x(context& ctx, const_tensor_view g, const_tensor_view w, tensor_view grad_x,
                       const conv3d_options& o) {
  refuse_bias("conv3d_grad_input", o.bias);
  const const_tensor_view in[] = {g, w};
  api::submit<ops::conv3d_grad_input>(ctx, in, {&grad_x, 1}, {o, {}});
}
void conv3d_backward_w(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view grad_w,
                       const conv3d_options& o) {
  refuse_bias("conv3d_grad_weight", o.bias);
  const const_tensor_view in[] = {g, x};
  api::submit<ops::conv3d_grad_weight>(ctx, in, {&grad_w, 1}, {o, {}});
}
void conv3d_backward_bias(context& ctx, const_tensor_view g, tensor_view grad_bias) {
  api::submit<ops::conv3d_grad_bias>(ctx, {&g, 1}, {&grad_bias, 1}, {});
}

void max_pool3d(context& ctx, const_tensor_view x, tensor_view out, const max_pool3d_options& o) {
  api::submit<ops::max_pool3d>(ctx, {&x, 1}, {&out, 1}, o);
}
void max_pool3d_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view grad_x,
                         const max_pool3d_options& o) {
  const const_tensor_view in[] = {g, x};
  api::submit<ops::max_pool3d_backward>(ctx, in, {&grad_x, 1}, o);
}
void avg_pool3d(context& ctx, const_tensor_view x, tensor_view out, const avg_pool3d_options& o) {
  api::submit<ops::avg_pool3d>(ctx, {&x, 1}, {&out, 1}, o);
}
void avg_pool3d_backward(context& ctx, const_tensor_view g, tensor_view grad_x, const avg_pool3d_options& o) {
  api::submit<ops::avg_pool3d_backward>(ctx, {&g, 1}, {&grad_x, 1}, {o, {}});
}

void max_pool3d_with_indices(context& ctx, const_tensor_view x, tensor_view out, tensor_view indices,
                             const max_pool3d_options& o) {
  const tensor_view both[] = {out, indices};
  api::submit<ops::max_pool3d_with_indices>(ctx, {&x, 1}, both, o);
}
void adaptive_max_pool3d(context& ctx, const_tensor_view x, tensor_view out, const adaptive_pool3d_options& o) {
  one_output<ops::adaptive_max_pool3d>(ctx, out, o, x);
}
void adaptive_max_pool3d_with_indices(context& ctx, const_tensor_view x, tensor_view out, tensor_view indices,
                                      const adaptive_pool3d_options& o) {
  const tensor_view both[] = {out, indices};
  api::submit<ops::adaptive_max_pool3d_with_indices>(ctx, {&x, 1}, both, o);
}
void adaptive_max_pool3d_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view grad_x) {
  one_output<ops::adaptive_max_pool3d_backward>(ctx, grad_x, {}, g, x);
}
void adaptive_avg_pool3d(context& ctx, const_tensor_view x, tensor_view out, const adaptive_pool3d_options& o) {
  one_output<ops::adaptive_avg_pool3d>(ctx, out, o, x);
}
void adaptive_avg_pool3d_backward(context& ctx, const_tensor_view g, tensor_view grad_x) {
  one_output<ops::adaptive_avg_pool3d_backward>(ctx, grad_x, {}, g);
}

void upsample_nearest2d(context& ctx, const_tensor_view x, tensor_view out, const upsample_nearest2d_options& o) {
  one_output<ops::upsample_nearest2d>(ctx, out, {o, {}}, x);
}
void upsample_nearest2d_backward(context& ctx, const_tensor_view g, tensor_view grad_x,
                                 const upsample_nearest2d_options& o) {
  one_output<ops::upsample_nearest2d_backward>(ctx, grad_x, {o, {}}, g);
}

void upsample_linear(context& ctx, const_tensor_view x, tensor_view out, const interpolation_options& o) {
  one_output<ops::upsample_linear>(ctx, out, {o, {}}, x);
}
void upsample_linear_backward(context& ctx, const_tensor_view g, tensor_view grad_x, const interpolation_options& o) {
  one_output<ops::upsample_linear_backward>(ctx, grad_x, {o, {}}, g);
}
void upsample_cubic(context& ctx, const_tensor_view x, tensor_view out, const interpolation_options& o) {
  one_output<ops::upsample_cubic>(ctx, out, {o, {}}, x);
}
void upsample_cubic_backward(context& ctx, const_tensor_view g, tensor_view grad_x, const interpolation_options& o) {
  one_output<ops::upsample_cubic_backward>(ctx, grad_x, {o, {}}, g);
}

void prod(context& ctx, const_tensor_view x, tensor_view out, const reduce_options& options) {
  reduce<ops::prod>(ctx, x, out, options);
}
void cumsum(context& ctx, const_tensor_view x, tensor_view out, const scan_options& o) {
  api::submit<ops::cumsum>(ctx, {&x, 1}, {&out, 1}, o);
}
void cumprod(context& ctx, const_tensor_view x, tensor_view out, const scan_options& o) {
  api::submit<ops::cumprod>(ctx, {&x, 1}, {&out, 1}, o);
}
void logcumsumexp(context& ctx, const_tensor_view x, tensor_view out, const scan_options& o) {
  api::submit<ops::logcumsumexp>(ctx, {&x, 1}, {&out, 1}, o);
}
void ldexp(context& ctx, const_tensor_view x, const_tensor_view n, tensor_view out) {
  one_output<ops::ldexp>(ctx, out, {}, x, n);
}
void frexp(context& ctx, const_tensor_view x, tensor_view significand, tensor_view exponent) {
  const tensor_view all[] = {significand, exponent};
  api::submit<ops::frexp>(ctx, {&x, 1}, all, {});
}

void attention(context& ctx, const_tensor_view q, const_tensor_view k, const_tensor_view v, tensor_view out,
               const attention_options& o, const_tensor_view mask, const_tensor_view slopes, tensor_view lse) {
  const const_tensor_view in[] = {q, k, v, mask, slopes};
  const tensor_view both[] = {out, lse};
  api::submit<ops::attention>(ctx, in, both, o);
}
void attention_backward(context& ctx, const_tensor_view g, const_tensor_view q, const_tensor_view k,
                        const_tensor_view v, const_tensor_view y, const_tensor_view lse, tensor_view grad_q,
                        tensor_view grad_k, tensor_view grad_v, const attention_options& o, const_tensor_view mask,
                        const_tensor_view slopes) {
  const const_tensor_view in[] = {g, q, k, v, y, lse, mask, slopes};
  const tensor_view all[] = {grad_q, grad_k, grad_v};
  api::submit<ops::attention_backward>(ctx, in, all, o);
}

void softmax(context& ctx, const_tensor_view x, tensor_view out, const softmax_options& o) {
  api::submit<ops::softmax>(ctx, {&x, 1}, {&out, 1}, {o, {}});
}
void log_softmax(context& ctx, const_tensor_view x, tensor_view out, const softmax_options& o) {
  api::submit<ops::log_softmax>(ctx, {&x, 1}, {&out, 1}, {o, {}});
}
void logsumexp(context& ctx, const_tensor_view x, tensor_view out, const reduce_options& options) {
  reduce<ops::logsumexp>(ctx, x, out, options);
}
void cross_entropy(context& ctx, const_tensor_view logits, const_tensor_view targets, tensor_view out,
                   const cross_entropy_options& o) {
  if (are_probabilities(targets)) {
    return one_output<ops::cross_entropy_probabilities>(ctx, out, of_probabilities("cross_entropy", o), logits, targets,
                                                        o.weight);
  }
  one_output<ops::cross_entropy>(ctx, out, o, logits, targets, o.weight);
}
void softmax_backward(context& ctx, const_tensor_view g, const_tensor_view y, tensor_view grad_x,
                      const softmax_options& o) {
  const const_tensor_view in[] = {g, y};
  api::submit<ops::softmax_backward>(ctx, in, {&grad_x, 1}, o);
}
void log_softmax_backward(context& ctx, const_tensor_view g, const_tensor_view y, tensor_view grad_x,
                          const softmax_options& o) {
  const const_tensor_view in[] = {g, y};
  api::submit<ops::log_softmax_backward>(ctx, in, {&grad_x, 1}, o);
}
void logsumexp_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view grad_x,
                        const reduce_options& o) {
  const const_tensor_view in[] = {g, x};
  api::submit<ops::logsumexp_backward>(ctx, in, {&grad_x, 1}, o);
}
void cross_entropy_backward(context& ctx, const_tensor_view g, const_tensor_view logits, const_tensor_view targets,
                            tensor_view grad_logits, const cross_entropy_options& o) {
  if (are_probabilities(targets)) {
    return one_output<ops::cross_entropy_probabilities_backward>(
        ctx, grad_logits, of_probabilities("cross_entropy_backward", o), g, logits, targets, o.weight);
  }
  one_output<ops::cross_entropy_backward>(ctx, grad_logits, o, g, logits, targets, o.weight);
}
void cross_entropy_probabilities(context& ctx, const_tensor_view logits, const_tensor_view probabilities,
                                 tensor_view out, const cross_entropy_probabilities_options& o) {
  one_output<ops::cross_entropy_probabilities>(ctx, out, o, logits, probabilities, o.weight);
}
void cross_entropy_probabilities_backward(context& ctx, const_tensor_view g, const_tensor_view logits,
                                          const_tensor_view probabilities, tensor_view grad_logits,
                                          const cross_entropy_probabilities_options& o) {
  one_output<ops::cross_entropy_probabilities_backward>(ctx, grad_logits, o, g, logits, probabilities, o.weight);
}

void nll_loss(context& ctx, const_tensor_view x, const_tensor_view targets, tensor_view out, const nll_loss_options& o,
              tensor_view total_weight) {
  const const_tensor_view in[] = {x, targets, o.weight};
  const tensor_view both[] = {out, total_weight};
  api::submit<ops::nll_loss>(ctx, in, both, o);
}
void nll_loss_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view targets,
                       tensor_view grad_x, const nll_loss_options& o, const_tensor_view total_weight) {
  one_output<ops::nll_loss_backward>(ctx, grad_x, o, g, x, targets, o.weight, total_weight);
}

void mse_loss(context& ctx, const_tensor_view x, const_tensor_view t, tensor_view out, const loss_options& o) {
  one_output<ops::mse_loss>(ctx, out, o, x, t);
}
void mse_loss_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view t, tensor_view grad_x,
                       const loss_options& o) {
  one_output<ops::mse_loss_backward>(ctx, grad_x, o, g, x, t);
}
void l1_loss(context& ctx, const_tensor_view x, const_tensor_view t, tensor_view out, const loss_options& o) {
  one_output<ops::l1_loss>(ctx, out, o, x, t);
}
void l1_loss_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view t, tensor_view grad_x,
                      const loss_options& o) {
  one_output<ops::l1_loss_backward>(ctx, grad_x, o, g, x, t);
}
void smooth_l1_loss(context& ctx, const_tensor_view x, const_tensor_view t, tensor_view out,
                    const smooth_l1_loss_options& o) {
  one_output<ops::smooth_l1_loss>(ctx, out, o, x, t);
}
void smooth_l1_loss_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view t,
                             tensor_view grad_x, const smooth_l1_loss_options& o) {
  one_output<ops::smooth_l1_loss_backward>(ctx, grad_x, o, g, x, t);
}
void huber_loss(context& ctx, const_tensor_view x, const_tensor_view t, tensor_view out, const huber_loss_options& o) {
  one_output<ops::huber_loss>(ctx, out, o, x, t);
}
void huber_loss_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view t,
                         tensor_view grad_x, const huber_loss_options& o) {
  one_output<ops::huber_loss_backward>(ctx, grad_x, o, g, x, t);
}

void soft_margin_loss(context& ctx, const_tensor_view x, const_tensor_view t, tensor_view out, const loss_options& o) {
  one_output<ops::soft_margin_loss>(ctx, out, o, x, t);
}
void soft_margin_loss_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view t,
                               tensor_view grad_x, const loss_options& o) {
  one_output<ops::soft_margin_loss_backward>(ctx, grad_x, o, g, x, t);
}

void binary_cross_entropy_with_logits(context& ctx, const_tensor_view x, const_tensor_view t, tensor_view out,
                                      const binary_cross_entropy_with_logits_options& o) {
  one_output<ops::binary_cross_entropy_with_logits>(ctx, out, o, x, t, o.weight, o.pos_weight);
}
void binary_cross_entropy_with_logits_backward(context& ctx, const_tensor_view g, const_tensor_view x,
                                               const_tensor_view t, tensor_view grad_x,
                                               const binary_cross_entropy_with_logits_options& o) {
  one_output<ops::binary_cross_entropy_with_logits_backward>(ctx, grad_x, o, g, x, t, o.weight, o.pos_weight);
}
void binary_cross_entropy(context& ctx, const_tensor_view x, const_tensor_view t, tensor_view out,
                          const binary_cross_entropy_options& o) {
  one_output<ops::binary_cross_entropy>(ctx, out, o, x, t, o.weight);
}
void binary_cross_entropy_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view t,
                                   tensor_view grad_x, const binary_cross_entropy_options& o) {
  one_output<ops::binary_cross_entropy_backward>(ctx, grad_x, o, g, x, t, o.weight);
}
void kl_div(context& ctx, const_tensor_view x, const_tensor_view t, tensor_view out, const kl_div_options& o) {
  one_output<ops::kl_div>(ctx, out, o, x, t);
}
void kl_div_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view t, tensor_view grad_x,
                     const kl_div_options& o) {
  one_output<ops::kl_div_backward>(ctx, grad_x, o, g, x, t);
}

void layer_norm(context& ctx, const_tensor_view x, tensor_view out, const layer_norm_options& o,
                const norm_statistics& of_rows) {
  norm<ops::layer_norm>(ctx, x, out, o, of_rows);
}
void rms_norm(context& ctx, const_tensor_view x, tensor_view out, const rms_norm_options& o, tensor_view rstd) {
  const const_tensor_view in[] = {x, o.weight};
  const tensor_view all[] = {out, rstd};
  api::submit<ops::rms_norm>(ctx, in, all, o);
}
void group_norm(context& ctx, const_tensor_view x, tensor_view out, const group_norm_options& o,
                const norm_statistics& of_rows) {
  norm<ops::group_norm>(ctx, x, out, o, of_rows);
}
void batch_norm(context& ctx, const_tensor_view x, tensor_view out, const batch_norm_options& o,
                const norm_statistics& of_rows) {
  norm<ops::batch_norm>(ctx, x, out, o, of_rows);
}

void layer_norm_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view mean,
                         const_tensor_view rstd, tensor_view grad_x, const layer_norm_backward_options& o) {
  one_output<ops::layer_norm_backward>(ctx, grad_x, o, g, x, mean, rstd, o.weight);
}
void rms_norm_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view rstd,
                       tensor_view grad_x, const layer_norm_backward_options& o) {
  one_output<ops::rms_norm_backward>(ctx, grad_x, o, g, x, rstd, o.weight);
}
void group_norm_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view mean,
                         const_tensor_view rstd, tensor_view grad_x, const group_norm_backward_options& o) {
  one_output<ops::group_norm_backward>(ctx, grad_x, o, g, x, mean, rstd, o.weight);
}
void batch_norm_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view mean,
                         const_tensor_view rstd, tensor_view grad_x, const batch_norm_backward_options& o) {
  one_output<ops::batch_norm_backward>(ctx, grad_x, o, g, x, mean, rstd, o.weight);
}
void layer_norm_backward_weight(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view mean,
                                const_tensor_view rstd, tensor_view grad_weight, const axis_list& axis) {
  one_output<ops::layer_norm_weight_backward>(ctx, grad_weight, {axis, {}}, g, x, mean, rstd);
}
void rms_norm_backward_weight(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view rstd,
                              tensor_view grad_weight, const axis_list& axis) {
  one_output<ops::rms_norm_weight_backward>(ctx, grad_weight, {axis, {}}, g, x, rstd);
}
void group_norm_backward_weight(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view mean,
                                const_tensor_view rstd, tensor_view grad_weight, std::int64_t groups) {
  one_output<ops::group_norm_weight_backward>(ctx, grad_weight, {groups, {}}, g, x, mean, rstd);
}
void batch_norm_backward_weight(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view mean,
                                const_tensor_view rstd, tensor_view grad_weight, std::int64_t axis) {
  one_output<ops::batch_norm_weight_backward>(ctx, grad_weight, {axis, {}}, g, x, mean, rstd);
}

void batch_norm_running(context& ctx, const_tensor_view x, const_tensor_view running_mean,
                        const_tensor_view running_var, tensor_view out, const running_statistics& updated,
                        const batch_norm_running_options& o, const norm_statistics& of_rows) {
  const const_tensor_view in[] = {x, running_mean, running_var, o.weight, o.bias};
  const tensor_view all[] = {out, of_rows.mean, of_rows.rstd, updated.mean, updated.var};
  api::submit<ops::batch_norm_running>(ctx, in, all, o);
}
void batch_norm_inference(context& ctx, const_tensor_view x, const_tensor_view running_mean,
                          const_tensor_view running_var, tensor_view out, const batch_norm_options& o) {
  one_output<ops::batch_norm_inference>(ctx, out, o, x, running_mean, running_var, o.weight, o.bias);
}
void batch_norm_inference_backward(context& ctx, const_tensor_view g, const_tensor_view running_var, tensor_view grad_x,
                                   const batch_norm_inference_backward_options& o) {
  one_output<ops::batch_norm_inference_backward>(ctx, grad_x, o, g, running_var, o.weight);
}
void batch_norm_inference_backward_weight(context& ctx, const_tensor_view g, const_tensor_view x,
                                          const_tensor_view running_mean, const_tensor_view running_var,
                                          tensor_view grad_weight, std::int64_t axis, double eps) {
  one_output<ops::batch_norm_inference_weight_backward>(ctx, grad_weight, {axis, eps, {}}, g, x, running_mean,
                                                        running_var);
}
void index_add(context& ctx, const_tensor_view x, const_tensor_view index, const_tensor_view source, tensor_view out,
               const index_add_options& o) {
  one_output<ops::index_add>(ctx, out, o, x, index, source);
}
void scatter_add(context& ctx, const_tensor_view x, const_tensor_view index, const_tensor_view source, tensor_view out,
                 const index_add_options& o) {
  one_output<ops::scatter_add>(ctx, out, o, x, index, source);
}
void embedding_backward(context& ctx, const_tensor_view g, const_tensor_view indices, tensor_view grad_weight,
                        const embedding_backward_options& o) {
  one_output<ops::embedding_backward>(ctx, grad_weight, {o, {}}, g, indices);
}

void var(context& ctx, const_tensor_view x, tensor_view out, const var_options& o) {
  one_output<ops::var>(ctx, out, o, x);
}
void stddev(context& ctx, const_tensor_view x, tensor_view out, const var_options& o) {
  one_output<ops::stddev>(ctx, out, o, x);
}
void var_mean(context& ctx, const_tensor_view x, tensor_view var, tensor_view mean, const var_options& o) {
  const tensor_view all[] = {var, mean};
  api::submit<ops::var_mean>(ctx, {&x, 1}, all, o);
}

void sgd(context& ctx, std::span<const sgd_tensor> tensors, const sgd_options& o) {
  plan::inline_vector<const_tensor_view, 3> in;
  plan::inline_vector<tensor_view, 2> out;
  const bool velocity = o.momentum != 0;
  for (const sgd_tensor& t : tensors) {
    in.push_back(t.param);
    in.push_back(t.grad);
    out.push_back(t.param);
    if (!velocity) continue;
    in.push_back(o.first_step ? const_tensor_view() : const_tensor_view(t.velocity));
    out.push_back(t.velocity);
  }
  api::submit<ops::sgd>(ctx, in, out, o);
}
void adamw(context& ctx, std::span<const adamw_tensor> tensors, const adamw_options& o) {
  plan::inline_vector<const_tensor_view, 4> in;
  plan::inline_vector<tensor_view, 3> out;
  for (const adamw_tensor& t : tensors) {
    for (const const_tensor_view& v :
         {const_tensor_view(t.param), t.grad, const_tensor_view(t.first_moment), const_tensor_view(t.second_moment)}) {
      in.push_back(v);
    }
    for (const tensor_view& v : {t.param, t.first_moment, t.second_moment}) out.push_back(v);
  }
  api::submit<ops::adamw>(ctx, in, out, o);
}

void total_norm(context& ctx, std::span<const const_tensor_view> tensors, tensor_view out,
                const total_norm_options& o) {
  api::submit<ops::total_norm>(ctx, tensors, {&out, 1}, o);
}
void clip_grad_norm(context& ctx, std::span<const const_tensor_view> grads, std::span<const tensor_view> out,
                    const clip_grad_norm_options& o, tensor_view total_norm) {
  plan::inline_vector<tensor_view, 4> all;
  for (const tensor_view& v : out) all.push_back(v);
  all.push_back(total_norm);
  api::submit<ops::clip_grad_norm>(ctx, grads, all, o);
}

}  // namespace repdl
