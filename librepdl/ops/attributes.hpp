// The attributes of structured operations: the public options themselves, or those with what the dynamic layer needs
// beside them (a shape, a generator).
#pragma once

#include <optional>

#include "librepdl/ops/pair.hpp"
#include "librepdl/options.hpp"
#include "librepdl/tensor.hpp"

namespace repdl::ops {

struct no_attrs {};

struct convert_attrs : convert_options {
  std::optional<repdl::dtype> dtype;
};

struct sum_attrs : reduce_options {
  std::optional<repdl::dtype> dtype;
};
struct dot_attrs {
  std::optional<repdl::dtype> dtype;
};
struct matmul_attrs : matmul_options {
  std::optional<repdl::dtype> dtype;
};
struct softmax_attrs : softmax_options {
  std::optional<repdl::dtype> dtype;
};

// Of conv3d and of pooling in three dimensions, too.
struct conv2d_grad_input_attrs : conv2d_options {
  std::optional<per_axis> size;
};
struct conv2d_grad_weight_attrs : conv2d_options {
  std::optional<per_axis> kernel;
};

struct avg_pool2d_backward_attrs : avg_pool2d_options {
  std::optional<per_axis> size;
};

struct adaptive_avg_pool2d_backward_attrs {
  std::optional<per_axis> size;
};

struct upsample_nearest2d_attrs : upsample_nearest2d_options {
  std::optional<pair> size;
};

struct interpolation_attrs : interpolation_options {
  std::optional<sizes> size;
};

// Real numbers, in any format.
template <class Options>
struct real_attrs : generator, Options {
  std::optional<sizes> shape;
  std::optional<repdl::dtype> dtype;
};
using uniform_attrs = real_attrs<uniform_options>;
using normal_attrs = real_attrs<normal_options>;
using exponential_attrs = real_attrs<exponential_options>;

// So many numbers, in any format.
template <class Options>
struct sequence_attrs : Options {
  std::optional<std::int64_t> count;
  std::optional<repdl::dtype> dtype;
};
using linspace_attrs = sequence_attrs<linspace_options>;
using arange_attrs = sequence_attrs<arange_options>;

struct permutation_attrs : generator {
  std::optional<std::int64_t> n;
};
struct bernoulli_attrs : generator {
  double p = 0.5;
  std::optional<sizes> shape;
};
struct randint_attrs : generator, randint_options {
  std::optional<sizes> shape;
};
struct multinomial_attrs : generator, multinomial_options {
  std::optional<std::int64_t> num_samples;
};
struct dropout_attrs : generator {
  double p = 0.5;
};

struct embedding_backward_attrs : embedding_backward_options {
  std::optional<std::int64_t> rows;
};

}  // namespace repdl::ops
