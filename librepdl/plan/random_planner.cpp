// Plans of random numbers and dropout.
#include <bit>
#include <cmath>
#include <utility>

#include "librepdl/num/fp_environment.hpp"
#include "librepdl/plan/planner.hpp"

namespace repdl::plan {
namespace {

void check_probability(std::string_view op, double p) {
  const num::fp_environment_guard guard;
  if (!(p >= 0 && p <= 1)) fail(error_site::attribute_value, op, "p", "a probability in [0, 1]", to_text(p));
}

tensor_spec checked(const tensor_spec& s) {
  byte_count(s);
  return s;
}

}  // namespace

void check_parameter(std::string_view op, std::string_view name, double value, bool may_be_negative) {
  // By its bits, which are in the order of the numbers: comparisons of doubles would need the guarded environment.
  constexpr auto bits = [](double x) { return std::bit_cast<std::uint64_t>(x); };
  const bool negative = (bits(value) >> 63) != 0;
  const std::uint64_t size = bits(value) & ~bits(-0.0);
  const bool in_range = size == 0 || (size >= bits(0x1p-200) && size <= bits(0x1p200));
  if (!in_range || (!may_be_negative && negative && size != 0)) {
    fail(error_site::attribute_value, op, name,
         may_be_negative ? "0 or a magnitude in [2^-200, 2^200]" : "0 or a number in [2^-200, 2^200]", to_text(value));
  }
}

void check_positive(std::string_view op, std::string_view name, double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  if (bits < std::bit_cast<std::uint64_t>(0x1p-200) || bits > std::bit_cast<std::uint64_t>(0x1p200)) {
    fail(error_site::attribute_value, op, name, "a number in [2^-200, 2^200]", to_text(value));
  }
}

tensor_spec infer_uniform(const ops::uniform_attrs& a) {
  check_parameter("uniform", "low", a.low, true);
  check_parameter("uniform", "high", a.high, true);
  return checked({float_type("uniform", a.dtype.value_or(dtype::f32)), *a.shape});
}

tensor_spec infer_permutation(const ops::permutation_attrs& a) {
  if (*a.n < 0 || *a.n > std::int64_t{1} << 59) {
    fail(error_site::attribute_value, "permutation", "n", "a number in [0, 2^59]", std::to_string(*a.n));
  }
  return {dtype::i64, {*a.n}};
}

tensor_spec infer_normal(const ops::normal_attrs& a) {
  check_parameter("normal", "mean", a.mean, true);
  check_parameter("normal", "stddev", a.stddev, false);
  return checked({float_type("normal", a.dtype.value_or(dtype::f32)), *a.shape});
}

tensor_spec infer_exponential(const ops::exponential_attrs& a) {
  check_positive("exponential", "rate", a.rate);
  return checked({float_type("exponential", a.dtype.value_or(dtype::f32)), *a.shape});
}

tensor_spec infer_bernoulli(const ops::bernoulli_attrs& a) {
  check_probability("bernoulli", a.p);
  return checked({dtype::boolean, *a.shape});
}

tensor_spec infer_randint(const ops::randint_attrs& a) {
  if (a.high <= a.low) {
    fail(error_site::attribute_value, "randint", "high", "more than low, " + std::to_string(a.low),
         std::to_string(a.high));
  }
  return checked({dtype::i64, *a.shape});
}

tensor_spec infer_dropout(std::string_view op, inputs in, const ops::dropout_attrs& a) {
  check_probability(op, a.p);
  return {in[0].type(), in[0].shape()};
}

std::uint64_t threshold_of(double p) noexcept {
  const num::fp_environment_guard guard;
  return static_cast<std::uint64_t>(std::ceil(p * 0x1p32));  // the product is exact
}

random_plan make_random(ops::op_id op, const generator& a, const tensor_view& out, const const_tensor_view* in) {
  loop_axes loop;
  for (int i = 0; i < out.rank(); ++i) {
    loop.push(out.shape()[i], {out.strides()[i], in != nullptr ? in->strides()[i] : 0});
  }
  loop.squeeze();
  if (in == nullptr) loop.operands = 1;
  loop.merge();
  random_plan p{};
  p.op = op;
  p.seed = static_cast<std::uint64_t>(a.seed);
  p.stream = static_cast<std::uint64_t>(a.stream);
  p.count = out.count();
  p.rank = loop.rank;
  p.shape = loop.shape;
  p.out = out.data();
  p.out_stride = loop.stride[0];
  p.out_type = out.type();
  if (in != nullptr) {
    p.in = in->data();
    p.in_stride = loop.stride[1];
  }
  return p;
}

}  // namespace repdl::plan
