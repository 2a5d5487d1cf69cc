// The fields of attributes: the reflection from which parsing, printing, the C ABI, the command line and the documentation are made.
// Few files need it, and it is dear to compile.
#pragma once

#include <string_view>
#include <tuple>

#include "librepdl/ops/attributes.hpp"

namespace repdl::ops {

template <class Attrs, class T>
struct field {
  using pointer = T Attrs::*;  // by name: what nvcc makes of a declarator is parenthesised, which g++ warns of
  std::string_view name;
  pointer member;
  std::string_view doc;
  bool required = false;  // by infer and the command line, where there is no output tensor to take it from
  bool pattern = false;   // 64 bits, which text may give as an unsigned number too
};
template <class Attrs, class T>
field(std::string_view, T Attrs::*, std::string_view) -> field<Attrs, T>;
template <class Attrs, class T>
field(std::string_view, T Attrs::*, std::string_view, bool) -> field<Attrs, T>;
template <class Attrs, class T>
field(std::string_view, T Attrs::*, std::string_view, bool, bool) -> field<Attrs, T>;

template <class Attrs>
inline constexpr auto fields_of = Attrs::no_such_fields;

template <>
inline constexpr auto fields_of<no_attrs> = std::tuple{};

template <>
inline constexpr auto fields_of<convert_attrs> =
    std::tuple{field{"dtype", &convert_attrs::dtype, "the output's type; the output tensor's where there is one", true},
               field{"saturate", &convert_attrs::saturate, "to f8: beyond the largest number is the largest number"}};

template <>
inline constexpr auto fields_of<reduce_options> =
    std::tuple{field{"axis", &reduce_options::axis, "the axes to reduce, negative from the end; all when absent"},
               field{"keepdim", &reduce_options::keepdim, "keep the reduced axes with size 1"}};

template <>
inline constexpr auto fields_of<sum_attrs> = std::tuple_cat(
    fields_of<reduce_options>,
    std::tuple{field{"dtype", &sum_attrs::dtype, "the result's format; absent: the output's, or the operands'"}});
template <>
inline constexpr auto fields_of<dot_attrs> =
    std::tuple{field{"dtype", &dot_attrs::dtype, "the result's format; absent: the output's, or the operands'"}};

template <>
inline constexpr auto fields_of<matmul_options> =
    std::tuple{field{"transpose_a", &matmul_options::transpose_a, "a is (..., k, m)"},
               field{"transpose_b", &matmul_options::transpose_b, "b is (..., n, k)"},
               field{"accumulate", &matmul_options::accumulate, "exact, or fma_chain: f32 FMAs with k ascending"},
               field{"alpha", &matmul_options::alpha, "a factor of the product: 0 or of magnitude in [2^-200, 2^200]"},
               field{"beta", &matmul_options::beta, "a factor of the bias, likewise"}};
template <>
inline constexpr auto fields_of<matmul_attrs> = std::tuple_cat(
    fields_of<matmul_options>,
    std::tuple{field{"dtype", &matmul_attrs::dtype,
                     "the result's format: the operands' or a wider one; absent: the output's, or the operands'"}});

template <>
inline constexpr auto fields_of<attention_options> = std::tuple{
    field{"scale", &attention_options::scale,
          "a factor of q . k: 0 or of magnitude in [2^-200, 2^200]; absent: 1 / sqrt(D), rounded once"},
    field{"causal", &attention_options::causal, "keys j <= i + off alone"},
    field{"bottom_right", &attention_options::bottom_right, "off is Lk - Lq, not 0"},
    field{"left", &attention_options::left, "keys j >= i + off - left alone; negative: all"},
    field{"right", &attention_options::right, "keys j <= i + off + right alone; negative: all"},
    field{"dropout", &attention_options::dropout,
          "the share of weights that are dropped: 0, or in [2^-32, 1); others are divided by 1 less it"},
    field{"seed", &attention_options::seed, "of the draws: the Philox key (its 64 bits)", false, true},
    field{"stream", &attention_options::stream, "the upper half of the Philox counter (its 64 bits)", false, true}};

template <>
inline constexpr auto fields_of<conv2d_options> = std::tuple{
    field{"stride", &conv2d_options::stride, "for each axis, or one number"},
    field{"padding", &conv2d_options::padding,
          "before and behind each axis (top,bottom,left,right), or for each axis, or one number; absent taps"},
    field{"dilation", &conv2d_options::dilation, "for each axis, or one number"},
    field{"groups", &conv2d_options::groups, "divides the input's and the output's channels"},
    field{"accumulate", &conv2d_options::accumulate, "exact, or fma_chain: f32 FMAs in the contract's order"}};
template <>
inline constexpr auto fields_of<conv2d_grad_input_attrs> =
    std::tuple_cat(fields_of<conv2d_options>,
                   std::tuple{field{"size", &conv2d_grad_input_attrs::size, "the image's sizes, or one number", true}});
template <>
inline constexpr auto fields_of<conv2d_grad_weight_attrs> = std::tuple_cat(
    fields_of<conv2d_options>,
    std::tuple{field{"kernel", &conv2d_grad_weight_attrs::kernel, "the kernel's sizes, or one number", true}});

template <>
inline constexpr auto fields_of<max_pool2d_options> =
    std::tuple{field{"kernel", &max_pool2d_options::kernel, "the window's sizes, or one number", true},
               field{"stride", &max_pool2d_options::stride, "for each axis, or one number; the window's when absent"},
               field{"padding", &max_pool2d_options::padding,
                     "before and behind each axis (top,bottom,left,right), or for each axis, or one number"},
               field{"dilation", &max_pool2d_options::dilation, "for each axis, or one number"},
               field{"ceil_mode", &max_pool2d_options::ceil_mode, "a last window may reach over the padded image"}};
template <>
inline constexpr auto fields_of<avg_pool2d_options> =
    std::tuple{field{"kernel", &avg_pool2d_options::kernel, "the window's sizes, or one number", true},
               field{"stride", &avg_pool2d_options::stride, "for each axis, or one number; the window's when absent"},
               field{"padding", &avg_pool2d_options::padding,
                     "before and behind each axis (top,bottom,left,right), or for each axis, or one number"},
               field{"count_include_pad", &avg_pool2d_options::count_include_pad,
                     "divide by the window's taps on the padded image, not by the number of present taps"},
               field{"ceil_mode", &avg_pool2d_options::ceil_mode, "a last window may reach over the padded image"},
               field{"divisor_override", &avg_pool2d_options::divisor_override,
                     "divide by this number, not 0 and of magnitude below 2^31; 0: by the count"}};
template <>
inline constexpr auto fields_of<avg_pool2d_backward_attrs> = std::tuple_cat(
    fields_of<avg_pool2d_options>,
    std::tuple{field{"size", &avg_pool2d_backward_attrs::size, "the image's sizes, or one number", true}});

template <>
inline constexpr auto fields_of<adaptive_pool2d_options> =
    std::tuple{field{"size", &adaptive_pool2d_options::size, "the result's sizes, or one number", true}};
template <>
inline constexpr auto fields_of<adaptive_avg_pool2d_backward_attrs> =
    std::tuple{field{"size", &adaptive_avg_pool2d_backward_attrs::size, "the image's sizes, or one number", true}};

template <>
inline constexpr auto fields_of<upsample_nearest2d_attrs> =
    std::tuple{field{"size", &upsample_nearest2d_attrs::size, "the result's h,w", true},
               field{"scale_h", &upsample_nearest2d_options::scale_h, "in [2^-200, 2^200]; 0: oh / h"},
               field{"scale_w", &upsample_nearest2d_options::scale_w, "in [2^-200, 2^200]; 0: ow / w"},
               field{"exact", &upsample_nearest2d_options::exact, "from the middle of a pixel, (i + 1/2) r, not i r"}};

template <>
inline constexpr auto fields_of<interpolation_attrs> =
    std::tuple{field{"size", &interpolation_attrs::size,
                     "the result's: a number for each axis of the image, or one for all", true},
               field{"align_corners", &interpolation_options::align_corners,
                     "the middles of the outermost pixels lie on each other"},
               field{"scale_d", &interpolation_options::scale_d, "in [2^-32, 2^32]; 0: od / d"},
               field{"scale_h", &interpolation_options::scale_h, "in [2^-32, 2^32]; 0: oh / h"},
               field{"scale_w", &interpolation_options::scale_w, "in [2^-32, 2^32]; 0: ow / w"}};

template <>
inline constexpr auto fields_of<softmax_options> =
    std::tuple{field{"axis", &softmax_options::axis, "negative from the end"}};
template <>
inline constexpr auto fields_of<softmax_attrs> = std::tuple_cat(
    fields_of<softmax_options>,
    std::tuple{field{"dtype", &softmax_attrs::dtype, "the result's format; absent: the output's, or the operand's"}});
template <>
inline constexpr auto fields_of<scan_options> = std::tuple{field{"axis", &scan_options::axis, "negative from the end"}};
template <>
inline constexpr auto fields_of<cross_entropy_options> =
    std::tuple{field{"axis", &cross_entropy_options::axis, "the classes; 1 when absent, 0 for a vector"},
               field{"reduction", &cross_entropy_options::reduction, "mean, sum or none, over the rows not ignored"},
               field{"ignore_index", &cross_entropy_options::ignore_index, "rows with this target take no part"},
               field{"label_smoothing", &cross_entropy_options::label_smoothing,
                     "how much of a target is spread over all classes: 0, or from 2^-64 to 1; exactly this double"}};
template <>
inline constexpr auto fields_of<cross_entropy_probabilities_options> = std::tuple{
    field{"axis", &cross_entropy_probabilities_options::axis, "the classes; 1 when absent, 0 for a vector"},
    field{"reduction", &cross_entropy_probabilities_options::reduction, "mean, sum or none, over the rows"},
    field{"label_smoothing", &cross_entropy_probabilities_options::label_smoothing,
          "how much of the probabilities is spread over all classes: 0, or from 2^-64 to 1; exactly this double"}};

template <>
inline constexpr auto fields_of<nll_loss_options> =
    std::tuple{field{"axis", &nll_loss_options::axis, "the classes; 1 when absent, 0 for a vector"},
               field{"reduction", &nll_loss_options::reduction, "mean, sum or none, over the rows not ignored"},
               field{"ignore_index", &nll_loss_options::ignore_index, "rows with this target take no part"}};

// Of every norm.
template <class Options>
inline constexpr auto eps_field =
    std::tuple{field{"eps", &Options::eps, ">= 0: 0 or in [2^-200, 2^200]; inside the root, exactly this double"}};
template <>
inline constexpr auto fields_of<layer_norm_options> =
    std::tuple_cat(std::tuple{field{"axis", &layer_norm_options::axis, "the axes that are normalised over"}},
                   eps_field<layer_norm_options>);
template <>
inline constexpr auto fields_of<rms_norm_options> = std::tuple_cat(std::tuple{
    field{"axis", &rms_norm_options::axis, "the axes that are normalised over"},
    field{"eps", &rms_norm_options::eps, ">= 0: 0 or in [2^-200, 2^200]; inside the root, exactly this double", true}});
template <>
inline constexpr auto fields_of<group_norm_options> =
    std::tuple_cat(std::tuple{field{"groups", &group_norm_options::groups, "divides the channels, axis 1"}},
                   eps_field<group_norm_options>);
template <>
inline constexpr auto fields_of<batch_norm_options> = std::tuple_cat(
    std::tuple{field{"axis", &batch_norm_options::axis, "the channels; every other axis is normalised over"}},
    eps_field<batch_norm_options>);
template <>
inline constexpr auto fields_of<batch_norm_running_options> = std::tuple_cat(
    std::tuple{field{"axis", &batch_norm_running_options::axis, "the channels; every other axis is normalised over"}},
    eps_field<batch_norm_running_options>,
    std::tuple{field{"momentum", &batch_norm_running_options::momentum,
                     "the batch's weight, 0 or in [2^-200, 1]; exactly this double, and so is 1 - momentum"}});
template <>
inline constexpr auto fields_of<layer_norm_backward_options> =
    std::tuple{field{"axis", &layer_norm_backward_options::axis, "the axes that were normalised over"}};
template <>
inline constexpr auto fields_of<group_norm_backward_options> =
    std::tuple{field{"groups", &group_norm_backward_options::groups, "as group_norm's"}};
template <>
inline constexpr auto fields_of<batch_norm_backward_options> =
    std::tuple{field{"axis", &batch_norm_backward_options::axis, "the channels, as batch_norm's"}};
template <>
inline constexpr auto fields_of<batch_norm_inference_backward_options> = std::tuple_cat(
    std::tuple{field{"axis", &batch_norm_inference_backward_options::axis, "the channels, as batch_norm_inference's"}},
    eps_field<batch_norm_inference_backward_options>);

// Of every loss.
template <class Options>
inline constexpr auto reduction_field =
    std::tuple{field{"reduction", &Options::reduction, "mean, sum or none, over all elements"}};
template <>
inline constexpr auto fields_of<loss_options> = reduction_field<loss_options>;
template <>
inline constexpr auto fields_of<smooth_l1_loss_options> =
    std::tuple_cat(reduction_field<smooth_l1_loss_options>,
                   std::tuple{field{"beta", &smooth_l1_loss_options::beta, "0 or in [2^-200, 2^200]; 0: l1_loss"}});
template <>
inline constexpr auto fields_of<huber_loss_options> = std::tuple_cat(
    reduction_field<huber_loss_options>, std::tuple{field{"delta", &huber_loss_options::delta, "in [2^-200, 2^200]"}});
template <>
inline constexpr auto fields_of<binary_cross_entropy_options> = reduction_field<binary_cross_entropy_options>;
template <>
inline constexpr auto fields_of<binary_cross_entropy_with_logits_options> =
    reduction_field<binary_cross_entropy_with_logits_options>;
template <>
inline constexpr auto fields_of<kl_div_options> =
    std::tuple{field{"reduction", &kl_div_options::reduction,
                     "mean, sum or none, over all elements; batchmean: the sum over the size of the first axis"},
               field{"log_target", &kl_div_options::log_target, "t holds logarithms"}};

template <>
inline constexpr auto fields_of<sgd_options> =
    std::tuple{field{"lr", &sgd_options::lr, "the learning rate"},
               field{"momentum", &sgd_options::momentum, ">= 0; 0: there is no velocity"},
               field{"dampening", &sgd_options::dampening, "of the gradient in the velocity"},
               field{"weight_decay", &sgd_options::weight_decay, "adds weight_decay * param to the gradient"},
               field{"nesterov", &sgd_options::nesterov, "needs momentum > 0"}};
template <>
inline constexpr auto fields_of<adamw_options> =
    std::tuple{field{"lr", &adamw_options::lr, "the learning rate"},
               field{"beta1", &adamw_options::beta1, "in [0, 1)"},
               field{"beta2", &adamw_options::beta2, "in [0, 1)"},
               field{"eps", &adamw_options::eps, "added to the root"},
               field{"weight_decay", &adamw_options::weight_decay, "decoupled: param * (1 - lr * weight_decay)"},
               field{"step", &adamw_options::step, "t, from 1"}};

// What every random operation has.
template <>
inline constexpr auto fields_of<generator> =
    std::tuple{field{"seed", &generator::seed, "the Philox key (its 64 bits)", false, true},
               field{"stream", &generator::stream, "the upper half of the Philox counter (its 64 bits)", false, true}};

template <class Options>
inline constexpr auto fields_of<real_attrs<Options>> =
    std::tuple_cat(std::tuple{field{"shape", &real_attrs<Options>::shape, "the output's shape", true},
                              field{"dtype", &real_attrs<Options>::dtype, "the output's format; f32 when absent"}},
                   fields_of<generator>, fields_of<Options>);
template <>
inline constexpr auto fields_of<uniform_options> =
    std::tuple{field{"low", &uniform_options::low, "finite, 0 or of magnitude in [2^-200, 2^200]"},
               field{"high", &uniform_options::high, "finite, 0 or of magnitude in [2^-200, 2^200]"}};
template <>
inline constexpr auto fields_of<normal_options> =
    std::tuple{field{"mean", &normal_options::mean, "finite, 0 or of magnitude in [2^-200, 2^200]"},
               field{"stddev", &normal_options::stddev, "0 or in [2^-200, 2^200]"}};
template <>
inline constexpr auto fields_of<exponential_options> =
    std::tuple{field{"rate", &exponential_options::rate, "lambda, in [2^-200, 2^200]"}};

template <>
inline constexpr auto fields_of<linspace_options> =
    std::tuple{field{"start", &linspace_options::start, "the first number: 0 or of magnitude in [2^-200, 2^200]", true},
               field{"end", &linspace_options::end, "the last number: 0 or of magnitude in [2^-200, 2^200]", true}};
template <>
inline constexpr auto fields_of<arange_options> =
    std::tuple{field{"start", &arange_options::start, "the first number: 0 or of magnitude in [2^-200, 2^200]", true},
               field{"step", &arange_options::step, "0 or of magnitude in [2^-200, 2^200]", true}};
template <class Options>
inline constexpr auto fields_of<sequence_attrs<Options>> =
    std::tuple_cat(fields_of<Options>,
                   std::tuple{field{"count", &sequence_attrs<Options>::count, "how many numbers", true},
                              field{"dtype", &sequence_attrs<Options>::dtype, "the output's format; f32 when absent"}});

template <>
inline constexpr auto fields_of<permutation_attrs> =
    std::tuple_cat(std::tuple{field{"n", &permutation_attrs::n, "the number of indices", true}}, fields_of<generator>);
template <>
inline constexpr auto fields_of<bernoulli_attrs> =
    std::tuple_cat(std::tuple{field{"shape", &bernoulli_attrs::shape, "the output's shape", true}},
                   fields_of<generator>, std::tuple{field{"p", &bernoulli_attrs::p, "of true, in [0, 1]"}});
template <>
inline constexpr auto fields_of<randint_attrs> =
    std::tuple_cat(std::tuple{field{"shape", &randint_attrs::shape, "the output's shape", true}}, fields_of<generator>,
                   std::tuple{field{"low", &randint_options::low, "the least value"},
                              field{"high", &randint_options::high, "> low: one more than the greatest value", true}});
template <>
inline constexpr auto fields_of<multinomial_attrs> =
    std::tuple_cat(std::tuple{field{"num_samples", &multinomial_attrs::num_samples, "how many of each row, >= 1", true},
                              field{"replacement", &multinomial_options::replacement, "a place may be drawn again"}},
                   fields_of<generator>);
template <>
inline constexpr auto fields_of<dropout_attrs> = std::tuple_cat(
    fields_of<generator>, std::tuple{field{"p", &dropout_attrs::p, "the share that is dropped, in [0, 1]"}});

template <>
inline constexpr auto fields_of<index_add_options> =
    std::tuple{field{"axis", &index_add_options::axis, "the axis of x that is indexed, negative from the end"},
               field{"alpha", &index_add_options::alpha, "a factor of the sums: 0 or of magnitude in [2^-200, 2^200]"}};
template <>
inline constexpr auto fields_of<embedding_backward_options> = std::tuple{
    field{"padding_idx", &embedding_backward_options::padding_idx, "its row gets +0; negative from the end"},
    field{"scale_grad_by_freq", &embedding_backward_options::scale_grad_by_freq, "divide by the number of places"}};
template <>
inline constexpr auto fields_of<embedding_backward_attrs> =
    std::tuple_cat(std::tuple{field{"rows", &embedding_backward_attrs::rows, "the rows of the weight", true}},
                   fields_of<embedding_backward_options>);

template <>
inline constexpr auto fields_of<var_options> = std::tuple{
    field{"axis", &var_options::axis, "the axes to reduce; all when absent"},
    field{"keepdim", &var_options::keepdim, "keep the reduced axes with size 1"},
    field{"correction", &var_options::correction,
          "subtracted from the number of elements: 0 or of magnitude in [2^-200, 2^200]; exactly this double"}};

template <>
inline constexpr auto fields_of<vector_norm_options> =
    std::tuple{field{"p", &vector_norm_options::p, "1, 2, inf or -inf"},
               field{"axis", &vector_norm_options::axis, "the axes to reduce; all when absent"},
               field{"keepdim", &vector_norm_options::keepdim, "keep the reduced axes with size 1"}};

template <>
inline constexpr auto fields_of<total_norm_options> = std::tuple{field{"p", &total_norm_options::p, "1, 2 or inf"}};
template <>
inline constexpr auto fields_of<clip_grad_norm_options> =
    std::tuple{field{"max_norm", &clip_grad_norm_options::max_norm, ">= 0, or inf", true},
               field{"p", &clip_grad_norm_options::p, "of the norm: 1, 2 or inf"}};

}  // namespace repdl::ops
