// Every function again, in the forms that are made from the one that writes to the caller's memory: generated from the
// declarations of elementwise.hpp and ops.hpp by tools/gen_functions.py; do not edit. Shapes, formats, roundings and errors are
// said there. What is added:
//
// A call without a context and without an output makes its result, a tensor in the memory of its operands' context (operand.hpp):
//   y = exp(x); z = add(x, 2.5); s = sum(matmul(a, b)); exp(operand(ctx, view)).
// What the operands do not determine, the type and shape of the result, is a parameter: conv2d_backward_x(g, w, x.spec()). Two
// results are a pair, more an array. Errors besides: no_context, context_mismatch, out_of_memory, and prepared_result inside of prepare().
// A call costs an allocation; loops that must not allocate write to memory that they have.
//
// Numbers are operands of elementwise functions, in both forms: each is rounded once to the format of the call (number_format).
// Elementwise functions of numbers alone, all of one type, return a number: exp(1.0f), add(x, y), on one thread of the CPU. They
// are as right as the others and slow: each is a call of the library.
//
// Optional operands are parameters: conv2d(ctx, x, w, bias, out); an absent one is {}.
#pragma once

// clang-format off
#include <array>
#include <utility>

#include "librepdl/elementwise.hpp"
#include "librepdl/export.hpp"
#include "librepdl/operand.hpp"
#include "librepdl/ops.hpp"

namespace repdl REPDL_EXPORT {

inline tensor add(const operand& x, const operand& y, const add_options& options = {}) {
  detail::returning_call c("add", {x, y});
  add(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void add(context& ctx, const X& x, const Y& y, tensor_view out, const add_options& options = {}) {
  const detail::operand_views in(ctx, "add", {x, y});
  add(ctx, in[0], in[1], out, options);
}
template <one_of<f16, bf16, float, double> T>
T add(T x, T y, const add_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { add(ctx, detail::number_view(x), detail::number_view(y), out, options); });
}
inline tensor sub(const operand& x, const operand& y, const sub_options& options = {}) {
  detail::returning_call c("sub", {x, y});
  sub(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void sub(context& ctx, const X& x, const Y& y, tensor_view out, const sub_options& options = {}) {
  const detail::operand_views in(ctx, "sub", {x, y});
  sub(ctx, in[0], in[1], out, options);
}
template <one_of<f16, bf16, float, double> T>
T sub(T x, T y, const sub_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { sub(ctx, detail::number_view(x), detail::number_view(y), out, options); });
}
inline tensor mul(const operand& x, const operand& y) {
  detail::returning_call c("mul", {x, y});
  mul(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void mul(context& ctx, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "mul", {x, y});
  mul(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T mul(T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { mul(ctx, detail::number_view(x), detail::number_view(y), out); });
}
inline tensor div(const operand& x, const operand& y) {
  detail::returning_call c("div", {x, y});
  div(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void div(context& ctx, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "div", {x, y});
  div(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T div(T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { div(ctx, detail::number_view(x), detail::number_view(y), out); });
}
inline tensor fma(const operand& x, const operand& y, const operand& z) {
  detail::returning_call c("fma", {x, y, z});
  fma(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class X, class Y, class Z>
requires with_number<X, Y, Z> void fma(context& ctx, const X& x, const Y& y, const Z& z, tensor_view out) {
  const detail::operand_views in(ctx, "fma", {x, y, z});
  fma(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T fma(T x, T y, T z) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { fma(ctx, detail::number_view(x), detail::number_view(y), detail::number_view(z), out); });
}
inline tensor neg(const operand& x) {
  detail::returning_call c("neg", {x});
  neg(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T neg(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { neg(ctx, detail::number_view(x), out); });
}
inline tensor abs(const operand& x) {
  detail::returning_call c("abs", {x});
  abs(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T abs(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { abs(ctx, detail::number_view(x), out); });
}
inline tensor sqrt(const operand& x) {
  detail::returning_call c("sqrt", {x});
  sqrt(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T sqrt(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { sqrt(ctx, detail::number_view(x), out); });
}
inline tensor maximum(const operand& x, const operand& y) {
  detail::returning_call c("maximum", {x, y});
  maximum(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void maximum(context& ctx, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "maximum", {x, y});
  maximum(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T maximum(T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { maximum(ctx, detail::number_view(x), detail::number_view(y), out); });
}
inline tensor minimum(const operand& x, const operand& y) {
  detail::returning_call c("minimum", {x, y});
  minimum(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void minimum(context& ctx, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "minimum", {x, y});
  minimum(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T minimum(T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { minimum(ctx, detail::number_view(x), detail::number_view(y), out); });
}
inline tensor less(const operand& x, const operand& y) {
  detail::returning_call c("less", {x, y});
  less(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void less(context& ctx, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "less", {x, y});
  less(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
bool less(T x, T y) {
  return detail::number_result<bool>([&](context& ctx, tensor_view out) { less(ctx, detail::number_view(x), detail::number_view(y), out); });
}
inline tensor pow(const operand& x, const operand& y) {
  detail::returning_call c("pow", {x, y});
  pow(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void pow(context& ctx, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "pow", {x, y});
  pow(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T pow(T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { pow(ctx, detail::number_view(x), detail::number_view(y), out); });
}
inline tensor relu(const operand& x) {
  detail::returning_call c("relu", {x});
  relu(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T relu(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { relu(ctx, detail::number_view(x), out); });
}
inline tensor leaky_relu(const operand& x, const leaky_relu_options& options = {}) {
  detail::returning_call c("leaky_relu", {x});
  leaky_relu(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T leaky_relu(T x, const leaky_relu_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { leaky_relu(ctx, detail::number_view(x), out, options); });
}
inline tensor exp(const operand& x) {
  detail::returning_call c("exp", {x});
  exp(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T exp(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { exp(ctx, detail::number_view(x), out); });
}
inline tensor log(const operand& x) {
  detail::returning_call c("log", {x});
  log(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T log(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { log(ctx, detail::number_view(x), out); });
}
inline tensor tanh(const operand& x) {
  detail::returning_call c("tanh", {x});
  tanh(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T tanh(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { tanh(ctx, detail::number_view(x), out); });
}
inline tensor sigmoid(const operand& x) {
  detail::returning_call c("sigmoid", {x});
  sigmoid(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T sigmoid(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { sigmoid(ctx, detail::number_view(x), out); });
}
inline tensor relu_backward(const operand& g, const operand& x) {
  detail::returning_call c("relu_backward", {g, x});
  relu_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void relu_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "relu_backward", {g, x});
  relu_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T relu_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { relu_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor tanh_backward(const operand& g, const operand& y) {
  detail::returning_call c("tanh_backward", {g, y});
  tanh_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class Y>
requires with_number<G, Y> void tanh_backward(context& ctx, const G& g, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "tanh_backward", {g, y});
  tanh_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T tanh_backward(T g, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { tanh_backward(ctx, detail::number_view(g), detail::number_view(y), out); });
}
inline tensor sigmoid_backward(const operand& g, const operand& y) {
  detail::returning_call c("sigmoid_backward", {g, y});
  sigmoid_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class Y>
requires with_number<G, Y> void sigmoid_backward(context& ctx, const G& g, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "sigmoid_backward", {g, y});
  sigmoid_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T sigmoid_backward(T g, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { sigmoid_backward(ctx, detail::number_view(g), detail::number_view(y), out); });
}
inline tensor square(const operand& x) {
  detail::returning_call c("square", {x});
  square(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T square(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { square(ctx, detail::number_view(x), out); });
}
inline tensor reciprocal(const operand& x) {
  detail::returning_call c("reciprocal", {x});
  reciprocal(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T reciprocal(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { reciprocal(ctx, detail::number_view(x), out); });
}
inline tensor floor(const operand& x) {
  detail::returning_call c("floor", {x});
  floor(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T floor(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { floor(ctx, detail::number_view(x), out); });
}
inline tensor ceil(const operand& x) {
  detail::returning_call c("ceil", {x});
  ceil(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T ceil(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { ceil(ctx, detail::number_view(x), out); });
}
inline tensor trunc(const operand& x) {
  detail::returning_call c("trunc", {x});
  trunc(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T trunc(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { trunc(ctx, detail::number_view(x), out); });
}
inline tensor round(const operand& x) {
  detail::returning_call c("round", {x});
  round(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T round(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { round(ctx, detail::number_view(x), out); });
}
inline tensor frac(const operand& x) {
  detail::returning_call c("frac", {x});
  frac(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T frac(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { frac(ctx, detail::number_view(x), out); });
}
inline tensor sign(const operand& x) {
  detail::returning_call c("sign", {x});
  sign(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T sign(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { sign(ctx, detail::number_view(x), out); });
}
inline tensor fmax(const operand& x, const operand& y) {
  detail::returning_call c("fmax", {x, y});
  fmax(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void fmax(context& ctx, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "fmax", {x, y});
  fmax(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T fmax(T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { fmax(ctx, detail::number_view(x), detail::number_view(y), out); });
}
inline tensor fmin(const operand& x, const operand& y) {
  detail::returning_call c("fmin", {x, y});
  fmin(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void fmin(context& ctx, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "fmin", {x, y});
  fmin(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T fmin(T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { fmin(ctx, detail::number_view(x), detail::number_view(y), out); });
}
inline tensor copysign(const operand& x, const operand& y) {
  detail::returning_call c("copysign", {x, y});
  copysign(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void copysign(context& ctx, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "copysign", {x, y});
  copysign(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T copysign(T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { copysign(ctx, detail::number_view(x), detail::number_view(y), out); });
}
inline tensor equal(const operand& x, const operand& y) {
  detail::returning_call c("equal", {x, y});
  equal(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void equal(context& ctx, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "equal", {x, y});
  equal(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
bool equal(T x, T y) {
  return detail::number_result<bool>([&](context& ctx, tensor_view out) { equal(ctx, detail::number_view(x), detail::number_view(y), out); });
}
inline tensor not_equal(const operand& x, const operand& y) {
  detail::returning_call c("not_equal", {x, y});
  not_equal(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void not_equal(context& ctx, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "not_equal", {x, y});
  not_equal(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
bool not_equal(T x, T y) {
  return detail::number_result<bool>([&](context& ctx, tensor_view out) { not_equal(ctx, detail::number_view(x), detail::number_view(y), out); });
}
inline tensor less_equal(const operand& x, const operand& y) {
  detail::returning_call c("less_equal", {x, y});
  less_equal(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void less_equal(context& ctx, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "less_equal", {x, y});
  less_equal(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
bool less_equal(T x, T y) {
  return detail::number_result<bool>([&](context& ctx, tensor_view out) { less_equal(ctx, detail::number_view(x), detail::number_view(y), out); });
}
inline tensor greater(const operand& x, const operand& y) {
  detail::returning_call c("greater", {x, y});
  greater(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void greater(context& ctx, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "greater", {x, y});
  greater(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
bool greater(T x, T y) {
  return detail::number_result<bool>([&](context& ctx, tensor_view out) { greater(ctx, detail::number_view(x), detail::number_view(y), out); });
}
inline tensor greater_equal(const operand& x, const operand& y) {
  detail::returning_call c("greater_equal", {x, y});
  greater_equal(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void greater_equal(context& ctx, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "greater_equal", {x, y});
  greater_equal(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
bool greater_equal(T x, T y) {
  return detail::number_result<bool>([&](context& ctx, tensor_view out) { greater_equal(ctx, detail::number_view(x), detail::number_view(y), out); });
}
inline tensor isnan(const operand& x) {
  detail::returning_call c("isnan", {x});
  isnan(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
bool isnan(T x) {
  return detail::number_result<bool>([&](context& ctx, tensor_view out) { isnan(ctx, detail::number_view(x), out); });
}
inline tensor isinf(const operand& x) {
  detail::returning_call c("isinf", {x});
  isinf(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
bool isinf(T x) {
  return detail::number_result<bool>([&](context& ctx, tensor_view out) { isinf(ctx, detail::number_view(x), out); });
}
inline tensor isfinite(const operand& x) {
  detail::returning_call c("isfinite", {x});
  isfinite(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
bool isfinite(T x) {
  return detail::number_result<bool>([&](context& ctx, tensor_view out) { isfinite(ctx, detail::number_view(x), out); });
}
inline tensor signbit(const operand& x) {
  detail::returning_call c("signbit", {x});
  signbit(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
bool signbit(T x) {
  return detail::number_result<bool>([&](context& ctx, tensor_view out) { signbit(ctx, detail::number_view(x), out); });
}
inline tensor clamp(const operand& x, const clamp_options& options = {}) {
  detail::returning_call c("clamp", {x});
  clamp(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T clamp(T x, const clamp_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { clamp(ctx, detail::number_view(x), out, options); });
}
inline tensor clip(const operand& x, const operand& lo, const operand& hi) {
  detail::returning_call c("clip", {x, lo, hi});
  clip(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class X, class LO, class HI>
requires with_number<X, LO, HI> void clip(context& ctx, const X& x, const LO& lo, const HI& hi, tensor_view out) {
  const detail::operand_views in(ctx, "clip", {x, lo, hi});
  clip(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T clip(T x, T lo, T hi) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { clip(ctx, detail::number_view(x), detail::number_view(lo), detail::number_view(hi), out); });
}
inline tensor clamp_backward(const operand& g, const operand& x, const clamp_backward_options& options = {}) {
  detail::returning_call c("clamp_backward", {g, x});
  clamp_backward(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void clamp_backward(context& ctx, const G& g, const X& x, tensor_view out, const clamp_backward_options& options = {}) {
  const detail::operand_views in(ctx, "clamp_backward", {g, x});
  clamp_backward(ctx, in[0], in[1], out, options);
}
template <one_of<f16, bf16, float, double> T>
T clamp_backward(T g, T x, const clamp_backward_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { clamp_backward(ctx, detail::number_view(g), detail::number_view(x), out, options); });
}
inline tensor hardtanh(const operand& x, const hardtanh_options& options = {}) {
  detail::returning_call c("hardtanh", {x});
  hardtanh(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T hardtanh(T x, const hardtanh_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { hardtanh(ctx, detail::number_view(x), out, options); });
}
inline tensor hardtanh_backward(const operand& g, const operand& x, const hardtanh_backward_options& options = {}) {
  detail::returning_call c("hardtanh_backward", {g, x});
  hardtanh_backward(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void hardtanh_backward(context& ctx, const G& g, const X& x, tensor_view out, const hardtanh_backward_options& options = {}) {
  const detail::operand_views in(ctx, "hardtanh_backward", {g, x});
  hardtanh_backward(ctx, in[0], in[1], out, options);
}
template <one_of<f16, bf16, float, double> T>
T hardtanh_backward(T g, T x, const hardtanh_backward_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { hardtanh_backward(ctx, detail::number_view(g), detail::number_view(x), out, options); });
}
inline tensor threshold(const operand& x, const threshold_options& options = {}) {
  detail::returning_call c("threshold", {x});
  threshold(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T threshold(T x, const threshold_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { threshold(ctx, detail::number_view(x), out, options); });
}
inline tensor threshold_backward(const operand& g, const operand& x, const threshold_backward_options& options = {}) {
  detail::returning_call c("threshold_backward", {g, x});
  threshold_backward(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void threshold_backward(context& ctx, const G& g, const X& x, tensor_view out, const threshold_backward_options& options = {}) {
  const detail::operand_views in(ctx, "threshold_backward", {g, x});
  threshold_backward(ctx, in[0], in[1], out, options);
}
template <one_of<f16, bf16, float, double> T>
T threshold_backward(T g, T x, const threshold_backward_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { threshold_backward(ctx, detail::number_view(g), detail::number_view(x), out, options); });
}
inline tensor hardshrink(const operand& x, const hardshrink_options& options = {}) {
  detail::returning_call c("hardshrink", {x});
  hardshrink(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T hardshrink(T x, const hardshrink_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { hardshrink(ctx, detail::number_view(x), out, options); });
}
inline tensor hardshrink_backward(const operand& g, const operand& x, const hardshrink_backward_options& options = {}) {
  detail::returning_call c("hardshrink_backward", {g, x});
  hardshrink_backward(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void hardshrink_backward(context& ctx, const G& g, const X& x, tensor_view out, const hardshrink_backward_options& options = {}) {
  const detail::operand_views in(ctx, "hardshrink_backward", {g, x});
  hardshrink_backward(ctx, in[0], in[1], out, options);
}
template <one_of<f16, bf16, float, double> T>
T hardshrink_backward(T g, T x, const hardshrink_backward_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { hardshrink_backward(ctx, detail::number_view(g), detail::number_view(x), out, options); });
}
inline tensor nan_to_num(const operand& x, const nan_to_num_options& options = {}) {
  detail::returning_call c("nan_to_num", {x});
  nan_to_num(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T nan_to_num(T x, const nan_to_num_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { nan_to_num(ctx, detail::number_view(x), out, options); });
}
inline tensor where(const operand& cond, const operand& x, const operand& y) {
  detail::returning_call c("where", {cond, x, y});
  where(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class COND, class X, class Y>
requires with_number<COND, X, Y> void where(context& ctx, const COND& cond, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "where", {cond, x, y});
  where(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T where(bool cond, T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { where(ctx, detail::number_view(cond), detail::number_view(x), detail::number_view(y), out); });
}
inline tensor masked_fill(const operand& x, const operand& mask, const masked_fill_options& options = {}) {
  detail::returning_call c("masked_fill", {x, mask});
  masked_fill(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
template <class X, class MASK>
requires with_number<X, MASK> void masked_fill(context& ctx, const X& x, const MASK& mask, tensor_view out, const masked_fill_options& options = {}) {
  const detail::operand_views in(ctx, "masked_fill", {x, mask});
  masked_fill(ctx, in[0], in[1], out, options);
}
template <one_of<f16, bf16, float, double> T>
T masked_fill(T x, bool mask, const masked_fill_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { masked_fill(ctx, detail::number_view(x), detail::number_view(mask), out, options); });
}
inline tensor logical_and(const operand& x, const operand& y) {
  detail::returning_call c("logical_and", {x, y});
  logical_and(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void logical_and(context& ctx, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "logical_and", {x, y});
  logical_and(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double, bool> T>
bool logical_and(T x, T y) {
  return detail::number_result<bool>([&](context& ctx, tensor_view out) { logical_and(ctx, detail::number_view(x), detail::number_view(y), out); });
}
inline tensor logical_or(const operand& x, const operand& y) {
  detail::returning_call c("logical_or", {x, y});
  logical_or(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void logical_or(context& ctx, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "logical_or", {x, y});
  logical_or(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double, bool> T>
bool logical_or(T x, T y) {
  return detail::number_result<bool>([&](context& ctx, tensor_view out) { logical_or(ctx, detail::number_view(x), detail::number_view(y), out); });
}
inline tensor logical_xor(const operand& x, const operand& y) {
  detail::returning_call c("logical_xor", {x, y});
  logical_xor(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void logical_xor(context& ctx, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "logical_xor", {x, y});
  logical_xor(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double, bool> T>
bool logical_xor(T x, T y) {
  return detail::number_result<bool>([&](context& ctx, tensor_view out) { logical_xor(ctx, detail::number_view(x), detail::number_view(y), out); });
}
inline tensor logical_not(const operand& x) {
  detail::returning_call c("logical_not", {x});
  logical_not(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double, bool> T>
bool logical_not(T x) {
  return detail::number_result<bool>([&](context& ctx, tensor_view out) { logical_not(ctx, detail::number_view(x), out); });
}
inline tensor sin(const operand& x) {
  detail::returning_call c("sin", {x});
  sin(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T sin(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { sin(ctx, detail::number_view(x), out); });
}
inline tensor cos(const operand& x) {
  detail::returning_call c("cos", {x});
  cos(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T cos(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { cos(ctx, detail::number_view(x), out); });
}
inline tensor erf(const operand& x) {
  detail::returning_call c("erf", {x});
  erf(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T erf(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { erf(ctx, detail::number_view(x), out); });
}
inline tensor erfc(const operand& x) {
  detail::returning_call c("erfc", {x});
  erfc(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T erfc(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { erfc(ctx, detail::number_view(x), out); });
}
inline tensor gelu(const operand& x) {
  detail::returning_call c("gelu", {x});
  gelu(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T gelu(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { gelu(ctx, detail::number_view(x), out); });
}
inline tensor gelu_tanh(const operand& x) {
  detail::returning_call c("gelu_tanh", {x});
  gelu_tanh(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T gelu_tanh(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { gelu_tanh(ctx, detail::number_view(x), out); });
}
inline tensor exp2(const operand& x) {
  detail::returning_call c("exp2", {x});
  exp2(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T exp2(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { exp2(ctx, detail::number_view(x), out); });
}
inline tensor expm1(const operand& x) {
  detail::returning_call c("expm1", {x});
  expm1(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T expm1(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { expm1(ctx, detail::number_view(x), out); });
}
inline tensor log2(const operand& x) {
  detail::returning_call c("log2", {x});
  log2(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T log2(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { log2(ctx, detail::number_view(x), out); });
}
inline tensor log10(const operand& x) {
  detail::returning_call c("log10", {x});
  log10(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T log10(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { log10(ctx, detail::number_view(x), out); });
}
inline tensor log1p(const operand& x) {
  detail::returning_call c("log1p", {x});
  log1p(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T log1p(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { log1p(ctx, detail::number_view(x), out); });
}
inline tensor rsqrt(const operand& x) {
  detail::returning_call c("rsqrt", {x});
  rsqrt(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T rsqrt(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { rsqrt(ctx, detail::number_view(x), out); });
}
inline tensor log_sigmoid(const operand& x) {
  detail::returning_call c("log_sigmoid", {x});
  log_sigmoid(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T log_sigmoid(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { log_sigmoid(ctx, detail::number_view(x), out); });
}
inline tensor silu(const operand& x) {
  detail::returning_call c("silu", {x});
  silu(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T silu(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { silu(ctx, detail::number_view(x), out); });
}
inline tensor mish(const operand& x) {
  detail::returning_call c("mish", {x});
  mish(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T mish(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { mish(ctx, detail::number_view(x), out); });
}
inline tensor selu(const operand& x) {
  detail::returning_call c("selu", {x});
  selu(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T selu(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { selu(ctx, detail::number_view(x), out); });
}
inline tensor tanhshrink(const operand& x) {
  detail::returning_call c("tanhshrink", {x});
  tanhshrink(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T tanhshrink(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { tanhshrink(ctx, detail::number_view(x), out); });
}
inline tensor softsign(const operand& x) {
  detail::returning_call c("softsign", {x});
  softsign(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T softsign(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { softsign(ctx, detail::number_view(x), out); });
}
inline tensor relu6(const operand& x) {
  detail::returning_call c("relu6", {x});
  relu6(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T relu6(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { relu6(ctx, detail::number_view(x), out); });
}
inline tensor hardsigmoid(const operand& x) {
  detail::returning_call c("hardsigmoid", {x});
  hardsigmoid(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T hardsigmoid(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { hardsigmoid(ctx, detail::number_view(x), out); });
}
inline tensor hardswish(const operand& x) {
  detail::returning_call c("hardswish", {x});
  hardswish(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T hardswish(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { hardswish(ctx, detail::number_view(x), out); });
}
inline tensor softsign_backward(const operand& g, const operand& x) {
  detail::returning_call c("softsign_backward", {g, x});
  softsign_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void softsign_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "softsign_backward", {g, x});
  softsign_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T softsign_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { softsign_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor relu6_backward(const operand& g, const operand& x) {
  detail::returning_call c("relu6_backward", {g, x});
  relu6_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void relu6_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "relu6_backward", {g, x});
  relu6_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T relu6_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { relu6_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor hardsigmoid_backward(const operand& g, const operand& x) {
  detail::returning_call c("hardsigmoid_backward", {g, x});
  hardsigmoid_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void hardsigmoid_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "hardsigmoid_backward", {g, x});
  hardsigmoid_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T hardsigmoid_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { hardsigmoid_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor hardswish_backward(const operand& g, const operand& x) {
  detail::returning_call c("hardswish_backward", {g, x});
  hardswish_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void hardswish_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "hardswish_backward", {g, x});
  hardswish_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T hardswish_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { hardswish_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor addcmul(const operand& x, const operand& y, const operand& z, const addcmul_options& options = {}) {
  detail::returning_call c("addcmul", {x, y, z});
  addcmul(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options);
  return c.out.take();
}
template <class X, class Y, class Z>
requires with_number<X, Y, Z> void addcmul(context& ctx, const X& x, const Y& y, const Z& z, tensor_view out, const addcmul_options& options = {}) {
  const detail::operand_views in(ctx, "addcmul", {x, y, z});
  addcmul(ctx, in[0], in[1], in[2], out, options);
}
template <one_of<f16, bf16, float, double> T>
T addcmul(T x, T y, T z, const addcmul_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { addcmul(ctx, detail::number_view(x), detail::number_view(y), detail::number_view(z), out, options); });
}
inline tensor addcdiv(const operand& x, const operand& y, const operand& z, const addcdiv_options& options = {}) {
  detail::returning_call c("addcdiv", {x, y, z});
  addcdiv(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options);
  return c.out.take();
}
template <class X, class Y, class Z>
requires with_number<X, Y, Z> void addcdiv(context& ctx, const X& x, const Y& y, const Z& z, tensor_view out, const addcdiv_options& options = {}) {
  const detail::operand_views in(ctx, "addcdiv", {x, y, z});
  addcdiv(ctx, in[0], in[1], in[2], out, options);
}
template <one_of<f16, bf16, float, double> T>
T addcdiv(T x, T y, T z, const addcdiv_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { addcdiv(ctx, detail::number_view(x), detail::number_view(y), detail::number_view(z), out, options); });
}
inline tensor lerp(const operand& x, const operand& end, const operand& weight) {
  detail::returning_call c("lerp", {x, end, weight});
  lerp(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class X, class END, class WEIGHT>
requires with_number<X, END, WEIGHT> void lerp(context& ctx, const X& x, const END& end, const WEIGHT& weight, tensor_view out) {
  const detail::operand_views in(ctx, "lerp", {x, end, weight});
  lerp(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T lerp(T x, T end, T weight) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { lerp(ctx, detail::number_view(x), detail::number_view(end), detail::number_view(weight), out); });
}
inline tensor lerp_scalar(const operand& x, const operand& end, const lerp_scalar_options& options = {}) {
  detail::returning_call c("lerp_scalar", {x, end});
  lerp_scalar(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
template <class X, class END>
requires with_number<X, END> void lerp_scalar(context& ctx, const X& x, const END& end, tensor_view out, const lerp_scalar_options& options = {}) {
  const detail::operand_views in(ctx, "lerp_scalar", {x, end});
  lerp_scalar(ctx, in[0], in[1], out, options);
}
template <one_of<f16, bf16, float, double> T>
T lerp_scalar(T x, T end, const lerp_scalar_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { lerp_scalar(ctx, detail::number_view(x), detail::number_view(end), out, options); });
}
inline tensor prelu(const operand& x, const operand& w) {
  detail::returning_call c("prelu", {x, w});
  prelu(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class W>
requires with_number<X, W> void prelu(context& ctx, const X& x, const W& w, tensor_view out) {
  const detail::operand_views in(ctx, "prelu", {x, w});
  prelu(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T prelu(T x, T w) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { prelu(ctx, detail::number_view(x), detail::number_view(w), out); });
}
inline tensor prelu_backward(const operand& g, const operand& x, const operand& w) {
  detail::returning_call c("prelu_backward", {g, x, w});
  prelu_backward(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class G, class X, class W>
requires with_number<G, X, W> void prelu_backward(context& ctx, const G& g, const X& x, const W& w, tensor_view out) {
  const detail::operand_views in(ctx, "prelu_backward", {g, x, w});
  prelu_backward(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T prelu_backward(T g, T x, T w) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { prelu_backward(ctx, detail::number_view(g), detail::number_view(x), detail::number_view(w), out); });
}
inline tensor hypot(const operand& x, const operand& y) {
  detail::returning_call c("hypot", {x, y});
  hypot(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void hypot(context& ctx, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "hypot", {x, y});
  hypot(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T hypot(T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { hypot(ctx, detail::number_view(x), detail::number_view(y), out); });
}
inline tensor fmod(const operand& x, const operand& y) {
  detail::returning_call c("fmod", {x, y});
  fmod(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void fmod(context& ctx, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "fmod", {x, y});
  fmod(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T fmod(T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { fmod(ctx, detail::number_view(x), detail::number_view(y), out); });
}
inline tensor remainder(const operand& x, const operand& y) {
  detail::returning_call c("remainder", {x, y});
  remainder(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void remainder(context& ctx, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "remainder", {x, y});
  remainder(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T remainder(T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { remainder(ctx, detail::number_view(x), detail::number_view(y), out); });
}
inline tensor div_trunc(const operand& x, const operand& y) {
  detail::returning_call c("div_trunc", {x, y});
  div_trunc(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void div_trunc(context& ctx, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "div_trunc", {x, y});
  div_trunc(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T div_trunc(T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { div_trunc(ctx, detail::number_view(x), detail::number_view(y), out); });
}
inline tensor div_floor(const operand& x, const operand& y) {
  detail::returning_call c("div_floor", {x, y});
  div_floor(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void div_floor(context& ctx, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "div_floor", {x, y});
  div_floor(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T div_floor(T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { div_floor(ctx, detail::number_view(x), detail::number_view(y), out); });
}
inline tensor xlogy(const operand& x, const operand& y) {
  detail::returning_call c("xlogy", {x, y});
  xlogy(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void xlogy(context& ctx, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "xlogy", {x, y});
  xlogy(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T xlogy(T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { xlogy(ctx, detail::number_view(x), detail::number_view(y), out); });
}
inline tensor logaddexp(const operand& x, const operand& y) {
  detail::returning_call c("logaddexp", {x, y});
  logaddexp(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void logaddexp(context& ctx, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "logaddexp", {x, y});
  logaddexp(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T logaddexp(T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { logaddexp(ctx, detail::number_view(x), detail::number_view(y), out); });
}
inline tensor elu(const operand& x, const elu_options& options = {}) {
  detail::returning_call c("elu", {x});
  elu(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T elu(T x, const elu_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { elu(ctx, detail::number_view(x), out, options); });
}
inline tensor silu_backward(const operand& g, const operand& x) {
  detail::returning_call c("silu_backward", {g, x});
  silu_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void silu_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "silu_backward", {g, x});
  silu_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T silu_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { silu_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor mish_backward(const operand& g, const operand& x) {
  detail::returning_call c("mish_backward", {g, x});
  mish_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void mish_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "mish_backward", {g, x});
  mish_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T mish_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { mish_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor log_sigmoid_backward(const operand& g, const operand& x) {
  detail::returning_call c("log_sigmoid_backward", {g, x});
  log_sigmoid_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void log_sigmoid_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "log_sigmoid_backward", {g, x});
  log_sigmoid_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T log_sigmoid_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { log_sigmoid_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor gelu_backward(const operand& g, const operand& x) {
  detail::returning_call c("gelu_backward", {g, x});
  gelu_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void gelu_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "gelu_backward", {g, x});
  gelu_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T gelu_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { gelu_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor gelu_tanh_backward(const operand& g, const operand& x) {
  detail::returning_call c("gelu_tanh_backward", {g, x});
  gelu_tanh_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void gelu_tanh_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "gelu_tanh_backward", {g, x});
  gelu_tanh_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T gelu_tanh_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { gelu_tanh_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor leaky_relu_backward(const operand& g, const operand& x, const leaky_relu_backward_options& options = {}) {
  detail::returning_call c("leaky_relu_backward", {g, x});
  leaky_relu_backward(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void leaky_relu_backward(context& ctx, const G& g, const X& x, tensor_view out, const leaky_relu_backward_options& options = {}) {
  const detail::operand_views in(ctx, "leaky_relu_backward", {g, x});
  leaky_relu_backward(ctx, in[0], in[1], out, options);
}
template <one_of<f16, bf16, float, double> T>
T leaky_relu_backward(T g, T x, const leaky_relu_backward_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { leaky_relu_backward(ctx, detail::number_view(g), detail::number_view(x), out, options); });
}
inline tensor elu_backward(const operand& g, const operand& x, const elu_backward_options& options = {}) {
  detail::returning_call c("elu_backward", {g, x});
  elu_backward(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void elu_backward(context& ctx, const G& g, const X& x, tensor_view out, const elu_backward_options& options = {}) {
  const detail::operand_views in(ctx, "elu_backward", {g, x});
  elu_backward(ctx, in[0], in[1], out, options);
}
template <one_of<f16, bf16, float, double> T>
T elu_backward(T g, T x, const elu_backward_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { elu_backward(ctx, detail::number_view(g), detail::number_view(x), out, options); });
}
inline tensor selu_backward(const operand& g, const operand& x) {
  detail::returning_call c("selu_backward", {g, x});
  selu_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void selu_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "selu_backward", {g, x});
  selu_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T selu_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { selu_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor celu(const operand& x, const celu_options& options = {}) {
  detail::returning_call c("celu", {x});
  celu(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T celu(T x, const celu_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { celu(ctx, detail::number_view(x), out, options); });
}
inline tensor celu_backward(const operand& g, const operand& x, const celu_backward_options& options = {}) {
  detail::returning_call c("celu_backward", {g, x});
  celu_backward(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void celu_backward(context& ctx, const G& g, const X& x, tensor_view out, const celu_backward_options& options = {}) {
  const detail::operand_views in(ctx, "celu_backward", {g, x});
  celu_backward(ctx, in[0], in[1], out, options);
}
template <one_of<f16, bf16, float, double> T>
T celu_backward(T g, T x, const celu_backward_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { celu_backward(ctx, detail::number_view(g), detail::number_view(x), out, options); });
}
inline tensor softplus(const operand& x, const softplus_options& options = {}) {
  detail::returning_call c("softplus", {x});
  softplus(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T softplus(T x, const softplus_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { softplus(ctx, detail::number_view(x), out, options); });
}
inline tensor softplus_backward(const operand& g, const operand& x, const softplus_backward_options& options = {}) {
  detail::returning_call c("softplus_backward", {g, x});
  softplus_backward(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void softplus_backward(context& ctx, const G& g, const X& x, tensor_view out, const softplus_backward_options& options = {}) {
  const detail::operand_views in(ctx, "softplus_backward", {g, x});
  softplus_backward(ctx, in[0], in[1], out, options);
}
template <one_of<f16, bf16, float, double> T>
T softplus_backward(T g, T x, const softplus_backward_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { softplus_backward(ctx, detail::number_view(g), detail::number_view(x), out, options); });
}
inline tensor atan2(const operand& y, const operand& x) {
  detail::returning_call c("atan2", {y, x});
  atan2(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class Y, class X>
requires with_number<Y, X> void atan2(context& ctx, const Y& y, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "atan2", {y, x});
  atan2(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T atan2(T y, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { atan2(ctx, detail::number_view(y), detail::number_view(x), out); });
}
inline tensor logaddexp2(const operand& x, const operand& y) {
  detail::returning_call c("logaddexp2", {x, y});
  logaddexp2(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void logaddexp2(context& ctx, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "logaddexp2", {x, y});
  logaddexp2(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T logaddexp2(T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { logaddexp2(ctx, detail::number_view(x), detail::number_view(y), out); });
}
inline tensor logit(const operand& x, const logit_options& options = {}) {
  detail::returning_call c("logit", {x});
  logit(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T logit(T x, const logit_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { logit(ctx, detail::number_view(x), out, options); });
}
inline tensor logit_backward(const operand& g, const operand& x, const logit_backward_options& options = {}) {
  detail::returning_call c("logit_backward", {g, x});
  logit_backward(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void logit_backward(context& ctx, const G& g, const X& x, tensor_view out, const logit_backward_options& options = {}) {
  const detail::operand_views in(ctx, "logit_backward", {g, x});
  logit_backward(ctx, in[0], in[1], out, options);
}
template <one_of<f16, bf16, float, double> T>
T logit_backward(T g, T x, const logit_backward_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { logit_backward(ctx, detail::number_view(g), detail::number_view(x), out, options); });
}
inline tensor softshrink(const operand& x, const softshrink_options& options = {}) {
  detail::returning_call c("softshrink", {x});
  softshrink(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T softshrink(T x, const softshrink_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { softshrink(ctx, detail::number_view(x), out, options); });
}
inline tensor softshrink_backward(const operand& g, const operand& x, const softshrink_backward_options& options = {}) {
  detail::returning_call c("softshrink_backward", {g, x});
  softshrink_backward(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void softshrink_backward(context& ctx, const G& g, const X& x, tensor_view out, const softshrink_backward_options& options = {}) {
  const detail::operand_views in(ctx, "softshrink_backward", {g, x});
  softshrink_backward(ctx, in[0], in[1], out, options);
}
template <one_of<f16, bf16, float, double> T>
T softshrink_backward(T g, T x, const softshrink_backward_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { softshrink_backward(ctx, detail::number_view(g), detail::number_view(x), out, options); });
}
inline tensor abs_backward(const operand& g, const operand& x) {
  detail::returning_call c("abs_backward", {g, x});
  abs_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void abs_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "abs_backward", {g, x});
  abs_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T abs_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { abs_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor sqrt_backward(const operand& g, const operand& y) {
  detail::returning_call c("sqrt_backward", {g, y});
  sqrt_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class Y>
requires with_number<G, Y> void sqrt_backward(context& ctx, const G& g, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "sqrt_backward", {g, y});
  sqrt_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T sqrt_backward(T g, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { sqrt_backward(ctx, detail::number_view(g), detail::number_view(y), out); });
}
inline tensor log_backward(const operand& g, const operand& x) {
  detail::returning_call c("log_backward", {g, x});
  log_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void log_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "log_backward", {g, x});
  log_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T log_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { log_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor log1p_backward(const operand& g, const operand& x) {
  detail::returning_call c("log1p_backward", {g, x});
  log1p_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void log1p_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "log1p_backward", {g, x});
  log1p_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T log1p_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { log1p_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor rsqrt_backward(const operand& g, const operand& y) {
  detail::returning_call c("rsqrt_backward", {g, y});
  rsqrt_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class Y>
requires with_number<G, Y> void rsqrt_backward(context& ctx, const G& g, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "rsqrt_backward", {g, y});
  rsqrt_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T rsqrt_backward(T g, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { rsqrt_backward(ctx, detail::number_view(g), detail::number_view(y), out); });
}
inline tensor reciprocal_backward(const operand& g, const operand& y) {
  detail::returning_call c("reciprocal_backward", {g, y});
  reciprocal_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class Y>
requires with_number<G, Y> void reciprocal_backward(context& ctx, const G& g, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "reciprocal_backward", {g, y});
  reciprocal_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T reciprocal_backward(T g, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { reciprocal_backward(ctx, detail::number_view(g), detail::number_view(y), out); });
}
inline tensor expm1_backward(const operand& g, const operand& y) {
  detail::returning_call c("expm1_backward", {g, y});
  expm1_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class Y>
requires with_number<G, Y> void expm1_backward(context& ctx, const G& g, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "expm1_backward", {g, y});
  expm1_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T expm1_backward(T g, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { expm1_backward(ctx, detail::number_view(g), detail::number_view(y), out); });
}
inline tensor div_backward_y(const operand& g, const operand& x, const operand& y) {
  detail::returning_call c("div_backward_y", {g, x, y});
  div_backward_y(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class G, class X, class Y>
requires with_number<G, X, Y> void div_backward_y(context& ctx, const G& g, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "div_backward_y", {g, x, y});
  div_backward_y(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T div_backward_y(T g, T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { div_backward_y(ctx, detail::number_view(g), detail::number_view(x), detail::number_view(y), out); });
}
inline tensor maximum_backward(const operand& g, const operand& x, const operand& y) {
  detail::returning_call c("maximum_backward", {g, x, y});
  maximum_backward(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class G, class X, class Y>
requires with_number<G, X, Y> void maximum_backward(context& ctx, const G& g, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "maximum_backward", {g, x, y});
  maximum_backward(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T maximum_backward(T g, T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { maximum_backward(ctx, detail::number_view(g), detail::number_view(x), detail::number_view(y), out); });
}
inline tensor minimum_backward(const operand& g, const operand& x, const operand& y) {
  detail::returning_call c("minimum_backward", {g, x, y});
  minimum_backward(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class G, class X, class Y>
requires with_number<G, X, Y> void minimum_backward(context& ctx, const G& g, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "minimum_backward", {g, x, y});
  minimum_backward(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T minimum_backward(T g, T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { minimum_backward(ctx, detail::number_view(g), detail::number_view(x), detail::number_view(y), out); });
}
inline tensor fmax_backward_x(const operand& g, const operand& x, const operand& y) {
  detail::returning_call c("fmax_backward_x", {g, x, y});
  fmax_backward_x(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class G, class X, class Y>
requires with_number<G, X, Y> void fmax_backward_x(context& ctx, const G& g, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "fmax_backward_x", {g, x, y});
  fmax_backward_x(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T fmax_backward_x(T g, T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { fmax_backward_x(ctx, detail::number_view(g), detail::number_view(x), detail::number_view(y), out); });
}
inline tensor fmax_backward_y(const operand& g, const operand& x, const operand& y) {
  detail::returning_call c("fmax_backward_y", {g, x, y});
  fmax_backward_y(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class G, class X, class Y>
requires with_number<G, X, Y> void fmax_backward_y(context& ctx, const G& g, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "fmax_backward_y", {g, x, y});
  fmax_backward_y(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T fmax_backward_y(T g, T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { fmax_backward_y(ctx, detail::number_view(g), detail::number_view(x), detail::number_view(y), out); });
}
inline tensor fmin_backward_x(const operand& g, const operand& x, const operand& y) {
  detail::returning_call c("fmin_backward_x", {g, x, y});
  fmin_backward_x(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class G, class X, class Y>
requires with_number<G, X, Y> void fmin_backward_x(context& ctx, const G& g, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "fmin_backward_x", {g, x, y});
  fmin_backward_x(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T fmin_backward_x(T g, T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { fmin_backward_x(ctx, detail::number_view(g), detail::number_view(x), detail::number_view(y), out); });
}
inline tensor fmin_backward_y(const operand& g, const operand& x, const operand& y) {
  detail::returning_call c("fmin_backward_y", {g, x, y});
  fmin_backward_y(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class G, class X, class Y>
requires with_number<G, X, Y> void fmin_backward_y(context& ctx, const G& g, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "fmin_backward_y", {g, x, y});
  fmin_backward_y(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T fmin_backward_y(T g, T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { fmin_backward_y(ctx, detail::number_view(g), detail::number_view(x), detail::number_view(y), out); });
}
inline tensor hypot_backward(const operand& g, const operand& x, const operand& r) {
  detail::returning_call c("hypot_backward", {g, x, r});
  hypot_backward(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class G, class X, class R>
requires with_number<G, X, R> void hypot_backward(context& ctx, const G& g, const X& x, const R& r, tensor_view out) {
  const detail::operand_views in(ctx, "hypot_backward", {g, x, r});
  hypot_backward(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T hypot_backward(T g, T x, T r) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { hypot_backward(ctx, detail::number_view(g), detail::number_view(x), detail::number_view(r), out); });
}
inline tensor atan2_backward_y(const operand& g, const operand& y, const operand& x) {
  detail::returning_call c("atan2_backward_y", {g, y, x});
  atan2_backward_y(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class G, class Y, class X>
requires with_number<G, Y, X> void atan2_backward_y(context& ctx, const G& g, const Y& y, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "atan2_backward_y", {g, y, x});
  atan2_backward_y(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T atan2_backward_y(T g, T y, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { atan2_backward_y(ctx, detail::number_view(g), detail::number_view(y), detail::number_view(x), out); });
}
inline tensor atan2_backward_x(const operand& g, const operand& y, const operand& x) {
  detail::returning_call c("atan2_backward_x", {g, y, x});
  atan2_backward_x(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class G, class Y, class X>
requires with_number<G, Y, X> void atan2_backward_x(context& ctx, const G& g, const Y& y, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "atan2_backward_x", {g, y, x});
  atan2_backward_x(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T atan2_backward_x(T g, T y, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { atan2_backward_x(ctx, detail::number_view(g), detail::number_view(y), detail::number_view(x), out); });
}
inline tensor lerp_backward_x(const operand& g, const operand& weight) {
  detail::returning_call c("lerp_backward_x", {g, weight});
  lerp_backward_x(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class WEIGHT>
requires with_number<G, WEIGHT> void lerp_backward_x(context& ctx, const G& g, const WEIGHT& weight, tensor_view out) {
  const detail::operand_views in(ctx, "lerp_backward_x", {g, weight});
  lerp_backward_x(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T lerp_backward_x(T g, T weight) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { lerp_backward_x(ctx, detail::number_view(g), detail::number_view(weight), out); });
}
inline tensor lerp_backward_weight(const operand& g, const operand& x, const operand& end) {
  detail::returning_call c("lerp_backward_weight", {g, x, end});
  lerp_backward_weight(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class G, class X, class END>
requires with_number<G, X, END> void lerp_backward_weight(context& ctx, const G& g, const X& x, const END& end, tensor_view out) {
  const detail::operand_views in(ctx, "lerp_backward_weight", {g, x, end});
  lerp_backward_weight(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T lerp_backward_weight(T g, T x, T end) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { lerp_backward_weight(ctx, detail::number_view(g), detail::number_view(x), detail::number_view(end), out); });
}
inline tensor lerp_scalar_backward_x(const operand& g, const lerp_scalar_backward_x_options& options = {}) {
  detail::returning_call c("lerp_scalar_backward_x", {g});
  lerp_scalar_backward_x(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T lerp_scalar_backward_x(T g, const lerp_scalar_backward_x_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { lerp_scalar_backward_x(ctx, detail::number_view(g), out, options); });
}
inline tensor addcdiv_backward_z(const operand& g, const operand& y, const operand& z, const addcdiv_backward_z_options& options = {}) {
  detail::returning_call c("addcdiv_backward_z", {g, y, z});
  addcdiv_backward_z(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options);
  return c.out.take();
}
template <class G, class Y, class Z>
requires with_number<G, Y, Z> void addcdiv_backward_z(context& ctx, const G& g, const Y& y, const Z& z, tensor_view out, const addcdiv_backward_z_options& options = {}) {
  const detail::operand_views in(ctx, "addcdiv_backward_z", {g, y, z});
  addcdiv_backward_z(ctx, in[0], in[1], in[2], out, options);
}
template <one_of<f16, bf16, float, double> T>
T addcdiv_backward_z(T g, T y, T z, const addcdiv_backward_z_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { addcdiv_backward_z(ctx, detail::number_view(g), detail::number_view(y), detail::number_view(z), out, options); });
}
inline tensor xlogy_backward_y(const operand& g, const operand& x, const operand& y) {
  detail::returning_call c("xlogy_backward_y", {g, x, y});
  xlogy_backward_y(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class G, class X, class Y>
requires with_number<G, X, Y> void xlogy_backward_y(context& ctx, const G& g, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "xlogy_backward_y", {g, x, y});
  xlogy_backward_y(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T xlogy_backward_y(T g, T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { xlogy_backward_y(ctx, detail::number_view(g), detail::number_view(x), detail::number_view(y), out); });
}
inline tensor copysign_backward(const operand& g, const operand& x, const operand& y) {
  detail::returning_call c("copysign_backward", {g, x, y});
  copysign_backward(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class G, class X, class Y>
requires with_number<G, X, Y> void copysign_backward(context& ctx, const G& g, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "copysign_backward", {g, x, y});
  copysign_backward(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T copysign_backward(T g, T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { copysign_backward(ctx, detail::number_view(g), detail::number_view(x), detail::number_view(y), out); });
}
inline tensor fmod_backward_y(const operand& g, const operand& x, const operand& y) {
  detail::returning_call c("fmod_backward_y", {g, x, y});
  fmod_backward_y(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class G, class X, class Y>
requires with_number<G, X, Y> void fmod_backward_y(context& ctx, const G& g, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "fmod_backward_y", {g, x, y});
  fmod_backward_y(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T fmod_backward_y(T g, T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { fmod_backward_y(ctx, detail::number_view(g), detail::number_view(x), detail::number_view(y), out); });
}
inline tensor remainder_backward_y(const operand& g, const operand& x, const operand& y) {
  detail::returning_call c("remainder_backward_y", {g, x, y});
  remainder_backward_y(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class G, class X, class Y>
requires with_number<G, X, Y> void remainder_backward_y(context& ctx, const G& g, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "remainder_backward_y", {g, x, y});
  remainder_backward_y(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T remainder_backward_y(T g, T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { remainder_backward_y(ctx, detail::number_view(g), detail::number_view(x), detail::number_view(y), out); });
}
inline tensor log2_backward(const operand& g, const operand& x) {
  detail::returning_call c("log2_backward", {g, x});
  log2_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void log2_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "log2_backward", {g, x});
  log2_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T log2_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { log2_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor log10_backward(const operand& g, const operand& x) {
  detail::returning_call c("log10_backward", {g, x});
  log10_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void log10_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "log10_backward", {g, x});
  log10_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T log10_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { log10_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor exp2_backward(const operand& g, const operand& y) {
  detail::returning_call c("exp2_backward", {g, y});
  exp2_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class Y>
requires with_number<G, Y> void exp2_backward(context& ctx, const G& g, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "exp2_backward", {g, y});
  exp2_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T exp2_backward(T g, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { exp2_backward(ctx, detail::number_view(g), detail::number_view(y), out); });
}
inline tensor xlogy_backward_x(const operand& g, const operand& x, const operand& y) {
  detail::returning_call c("xlogy_backward_x", {g, x, y});
  xlogy_backward_x(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class G, class X, class Y>
requires with_number<G, X, Y> void xlogy_backward_x(context& ctx, const G& g, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "xlogy_backward_x", {g, x, y});
  xlogy_backward_x(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T xlogy_backward_x(T g, T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { xlogy_backward_x(ctx, detail::number_view(g), detail::number_view(x), detail::number_view(y), out); });
}
inline tensor logaddexp_backward(const operand& g, const operand& x, const operand& y) {
  detail::returning_call c("logaddexp_backward", {g, x, y});
  logaddexp_backward(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class G, class X, class Y>
requires with_number<G, X, Y> void logaddexp_backward(context& ctx, const G& g, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "logaddexp_backward", {g, x, y});
  logaddexp_backward(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T logaddexp_backward(T g, T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { logaddexp_backward(ctx, detail::number_view(g), detail::number_view(x), detail::number_view(y), out); });
}
inline tensor logaddexp2_backward(const operand& g, const operand& x, const operand& y) {
  detail::returning_call c("logaddexp2_backward", {g, x, y});
  logaddexp2_backward(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class G, class X, class Y>
requires with_number<G, X, Y> void logaddexp2_backward(context& ctx, const G& g, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "logaddexp2_backward", {g, x, y});
  logaddexp2_backward(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T logaddexp2_backward(T g, T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { logaddexp2_backward(ctx, detail::number_view(g), detail::number_view(x), detail::number_view(y), out); });
}
inline tensor sin_backward(const operand& g, const operand& x) {
  detail::returning_call c("sin_backward", {g, x});
  sin_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void sin_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "sin_backward", {g, x});
  sin_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T sin_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { sin_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor cos_backward(const operand& g, const operand& x) {
  detail::returning_call c("cos_backward", {g, x});
  cos_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void cos_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "cos_backward", {g, x});
  cos_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T cos_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { cos_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor erf_backward(const operand& g, const operand& x) {
  detail::returning_call c("erf_backward", {g, x});
  erf_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void erf_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "erf_backward", {g, x});
  erf_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T erf_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { erf_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor erfc_backward(const operand& g, const operand& x) {
  detail::returning_call c("erfc_backward", {g, x});
  erfc_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void erfc_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "erfc_backward", {g, x});
  erfc_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T erfc_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { erfc_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor pow_backward_x(const operand& g, const operand& x, const operand& y) {
  detail::returning_call c("pow_backward_x", {g, x, y});
  pow_backward_x(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class G, class X, class Y>
requires with_number<G, X, Y> void pow_backward_x(context& ctx, const G& g, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "pow_backward_x", {g, x, y});
  pow_backward_x(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T pow_backward_x(T g, T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { pow_backward_x(ctx, detail::number_view(g), detail::number_view(x), detail::number_view(y), out); });
}
inline tensor pow_backward_y(const operand& g, const operand& x, const operand& y) {
  detail::returning_call c("pow_backward_y", {g, x, y});
  pow_backward_y(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class G, class X, class Y>
requires with_number<G, X, Y> void pow_backward_y(context& ctx, const G& g, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "pow_backward_y", {g, x, y});
  pow_backward_y(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T pow_backward_y(T g, T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { pow_backward_y(ctx, detail::number_view(g), detail::number_view(x), detail::number_view(y), out); });
}
inline tensor glu(const operand& a, const operand& b) {
  detail::returning_call c("glu", {a, b});
  glu(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class A, class B>
requires with_number<A, B> void glu(context& ctx, const A& a, const B& b, tensor_view out) {
  const detail::operand_views in(ctx, "glu", {a, b});
  glu(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T glu(T a, T b) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { glu(ctx, detail::number_view(a), detail::number_view(b), out); });
}
inline tensor swiglu(const operand& a, const operand& b) {
  detail::returning_call c("swiglu", {a, b});
  swiglu(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class A, class B>
requires with_number<A, B> void swiglu(context& ctx, const A& a, const B& b, tensor_view out) {
  const detail::operand_views in(ctx, "swiglu", {a, b});
  swiglu(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T swiglu(T a, T b) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { swiglu(ctx, detail::number_view(a), detail::number_view(b), out); });
}
inline tensor reglu(const operand& a, const operand& b) {
  detail::returning_call c("reglu", {a, b});
  reglu(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class A, class B>
requires with_number<A, B> void reglu(context& ctx, const A& a, const B& b, tensor_view out) {
  const detail::operand_views in(ctx, "reglu", {a, b});
  reglu(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T reglu(T a, T b) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { reglu(ctx, detail::number_view(a), detail::number_view(b), out); });
}
inline tensor geglu(const operand& a, const operand& b) {
  detail::returning_call c("geglu", {a, b});
  geglu(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class A, class B>
requires with_number<A, B> void geglu(context& ctx, const A& a, const B& b, tensor_view out) {
  const detail::operand_views in(ctx, "geglu", {a, b});
  geglu(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T geglu(T a, T b) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { geglu(ctx, detail::number_view(a), detail::number_view(b), out); });
}
inline tensor glu_backward_b(const operand& g, const operand& a, const operand& b) {
  detail::returning_call c("glu_backward_b", {g, a, b});
  glu_backward_b(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class G, class A, class B>
requires with_number<G, A, B> void glu_backward_b(context& ctx, const G& g, const A& a, const B& b, tensor_view out) {
  const detail::operand_views in(ctx, "glu_backward_b", {g, a, b});
  glu_backward_b(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T glu_backward_b(T g, T a, T b) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { glu_backward_b(ctx, detail::number_view(g), detail::number_view(a), detail::number_view(b), out); });
}
inline tensor swiglu_backward_a(const operand& g, const operand& a, const operand& b) {
  detail::returning_call c("swiglu_backward_a", {g, a, b});
  swiglu_backward_a(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class G, class A, class B>
requires with_number<G, A, B> void swiglu_backward_a(context& ctx, const G& g, const A& a, const B& b, tensor_view out) {
  const detail::operand_views in(ctx, "swiglu_backward_a", {g, a, b});
  swiglu_backward_a(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T swiglu_backward_a(T g, T a, T b) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { swiglu_backward_a(ctx, detail::number_view(g), detail::number_view(a), detail::number_view(b), out); });
}
inline tensor reglu_backward_a(const operand& g, const operand& a, const operand& b) {
  detail::returning_call c("reglu_backward_a", {g, a, b});
  reglu_backward_a(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class G, class A, class B>
requires with_number<G, A, B> void reglu_backward_a(context& ctx, const G& g, const A& a, const B& b, tensor_view out) {
  const detail::operand_views in(ctx, "reglu_backward_a", {g, a, b});
  reglu_backward_a(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T reglu_backward_a(T g, T a, T b) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { reglu_backward_a(ctx, detail::number_view(g), detail::number_view(a), detail::number_view(b), out); });
}
inline tensor geglu_backward_a(const operand& g, const operand& a, const operand& b) {
  detail::returning_call c("geglu_backward_a", {g, a, b});
  geglu_backward_a(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{});
  return c.out.take();
}
template <class G, class A, class B>
requires with_number<G, A, B> void geglu_backward_a(context& ctx, const G& g, const A& a, const B& b, tensor_view out) {
  const detail::operand_views in(ctx, "geglu_backward_a", {g, a, b});
  geglu_backward_a(ctx, in[0], in[1], in[2], out);
}
template <one_of<f16, bf16, float, double> T>
T geglu_backward_a(T g, T a, T b) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { geglu_backward_a(ctx, detail::number_view(g), detail::number_view(a), detail::number_view(b), out); });
}
inline tensor pow_scalar(const operand& x, const pow_scalar_options& options = {}) {
  detail::returning_call c("pow_scalar", {x});
  pow_scalar(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T pow_scalar(T x, const pow_scalar_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { pow_scalar(ctx, detail::number_view(x), out, options); });
}
inline tensor scalar_pow(const operand& x, const scalar_pow_options& options = {}) {
  detail::returning_call c("scalar_pow", {x});
  scalar_pow(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T scalar_pow(T x, const scalar_pow_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { scalar_pow(ctx, detail::number_view(x), out, options); });
}
inline tensor clip_backward(const operand& g, const operand& x, const operand& lo, const operand& hi) {
  detail::returning_call c("clip_backward", {g, x, lo, hi});
  clip_backward(c.ctx, c.in[0], c.in[1], c.in[2], c.in[3], tensor_view{});
  return c.out.take();
}
template <class G, class X, class LO, class HI>
requires with_number<G, X, LO, HI> void clip_backward(context& ctx, const G& g, const X& x, const LO& lo, const HI& hi, tensor_view out) {
  const detail::operand_views in(ctx, "clip_backward", {g, x, lo, hi});
  clip_backward(ctx, in[0], in[1], in[2], in[3], out);
}
template <one_of<f16, bf16, float, double> T>
T clip_backward(T g, T x, T lo, T hi) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { clip_backward(ctx, detail::number_view(g), detail::number_view(x), detail::number_view(lo), detail::number_view(hi), out); });
}
inline tensor clip_backward_lo(const operand& g, const operand& x, const operand& lo, const operand& hi) {
  detail::returning_call c("clip_backward_lo", {g, x, lo, hi});
  clip_backward_lo(c.ctx, c.in[0], c.in[1], c.in[2], c.in[3], tensor_view{});
  return c.out.take();
}
template <class G, class X, class LO, class HI>
requires with_number<G, X, LO, HI> void clip_backward_lo(context& ctx, const G& g, const X& x, const LO& lo, const HI& hi, tensor_view out) {
  const detail::operand_views in(ctx, "clip_backward_lo", {g, x, lo, hi});
  clip_backward_lo(ctx, in[0], in[1], in[2], in[3], out);
}
template <one_of<f16, bf16, float, double> T>
T clip_backward_lo(T g, T x, T lo, T hi) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { clip_backward_lo(ctx, detail::number_view(g), detail::number_view(x), detail::number_view(lo), detail::number_view(hi), out); });
}
inline tensor clip_backward_hi(const operand& g, const operand& x, const operand& lo, const operand& hi) {
  detail::returning_call c("clip_backward_hi", {g, x, lo, hi});
  clip_backward_hi(c.ctx, c.in[0], c.in[1], c.in[2], c.in[3], tensor_view{});
  return c.out.take();
}
template <class G, class X, class LO, class HI>
requires with_number<G, X, LO, HI> void clip_backward_hi(context& ctx, const G& g, const X& x, const LO& lo, const HI& hi, tensor_view out) {
  const detail::operand_views in(ctx, "clip_backward_hi", {g, x, lo, hi});
  clip_backward_hi(ctx, in[0], in[1], in[2], in[3], out);
}
template <one_of<f16, bf16, float, double> T>
T clip_backward_hi(T g, T x, T lo, T hi) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { clip_backward_hi(ctx, detail::number_view(g), detail::number_view(x), detail::number_view(lo), detail::number_view(hi), out); });
}
inline tensor pow_scalar_backward(const operand& g, const operand& x, const pow_scalar_backward_options& options = {}) {
  detail::returning_call c("pow_scalar_backward", {g, x});
  pow_scalar_backward(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void pow_scalar_backward(context& ctx, const G& g, const X& x, tensor_view out, const pow_scalar_backward_options& options = {}) {
  const detail::operand_views in(ctx, "pow_scalar_backward", {g, x});
  pow_scalar_backward(ctx, in[0], in[1], out, options);
}
template <one_of<f16, bf16, float, double> T>
T pow_scalar_backward(T g, T x, const pow_scalar_backward_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { pow_scalar_backward(ctx, detail::number_view(g), detail::number_view(x), out, options); });
}
inline tensor scalar_pow_backward(const operand& g, const operand& x, const scalar_pow_backward_options& options = {}) {
  detail::returning_call c("scalar_pow_backward", {g, x});
  scalar_pow_backward(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void scalar_pow_backward(context& ctx, const G& g, const X& x, tensor_view out, const scalar_pow_backward_options& options = {}) {
  const detail::operand_views in(ctx, "scalar_pow_backward", {g, x});
  scalar_pow_backward(ctx, in[0], in[1], out, options);
}
template <one_of<f16, bf16, float, double> T>
T scalar_pow_backward(T g, T x, const scalar_pow_backward_options& options = {}) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { scalar_pow_backward(ctx, detail::number_view(g), detail::number_view(x), out, options); });
}
inline tensor erfinv(const operand& x) {
  detail::returning_call c("erfinv", {x});
  erfinv(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T erfinv(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { erfinv(ctx, detail::number_view(x), out); });
}
inline tensor heaviside(const operand& x, const operand& v) {
  detail::returning_call c("heaviside", {x, v});
  heaviside(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class V>
requires with_number<X, V> void heaviside(context& ctx, const X& x, const V& v, tensor_view out) {
  const detail::operand_views in(ctx, "heaviside", {x, v});
  heaviside(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T heaviside(T x, T v) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { heaviside(ctx, detail::number_view(x), detail::number_view(v), out); });
}
inline tensor nextafter(const operand& x, const operand& y) {
  detail::returning_call c("nextafter", {x, y});
  nextafter(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class X, class Y>
requires with_number<X, Y> void nextafter(context& ctx, const X& x, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "nextafter", {x, y});
  nextafter(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T nextafter(T x, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { nextafter(ctx, detail::number_view(x), detail::number_view(y), out); });
}
inline tensor tan(const operand& x) {
  detail::returning_call c("tan", {x});
  tan(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T tan(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { tan(ctx, detail::number_view(x), out); });
}
inline tensor asin(const operand& x) {
  detail::returning_call c("asin", {x});
  asin(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T asin(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { asin(ctx, detail::number_view(x), out); });
}
inline tensor acos(const operand& x) {
  detail::returning_call c("acos", {x});
  acos(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T acos(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { acos(ctx, detail::number_view(x), out); });
}
inline tensor atan(const operand& x) {
  detail::returning_call c("atan", {x});
  atan(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T atan(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { atan(ctx, detail::number_view(x), out); });
}
inline tensor sinh(const operand& x) {
  detail::returning_call c("sinh", {x});
  sinh(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T sinh(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { sinh(ctx, detail::number_view(x), out); });
}
inline tensor cosh(const operand& x) {
  detail::returning_call c("cosh", {x});
  cosh(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T cosh(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { cosh(ctx, detail::number_view(x), out); });
}
inline tensor asinh(const operand& x) {
  detail::returning_call c("asinh", {x});
  asinh(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T asinh(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { asinh(ctx, detail::number_view(x), out); });
}
inline tensor acosh(const operand& x) {
  detail::returning_call c("acosh", {x});
  acosh(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T acosh(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { acosh(ctx, detail::number_view(x), out); });
}
inline tensor atanh(const operand& x) {
  detail::returning_call c("atanh", {x});
  atanh(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T atanh(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { atanh(ctx, detail::number_view(x), out); });
}
inline tensor cbrt(const operand& x) {
  detail::returning_call c("cbrt", {x});
  cbrt(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T cbrt(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { cbrt(ctx, detail::number_view(x), out); });
}
inline tensor exp10(const operand& x) {
  detail::returning_call c("exp10", {x});
  exp10(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T exp10(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { exp10(ctx, detail::number_view(x), out); });
}
inline tensor exp2m1(const operand& x) {
  detail::returning_call c("exp2m1", {x});
  exp2m1(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T exp2m1(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { exp2m1(ctx, detail::number_view(x), out); });
}
inline tensor exp10m1(const operand& x) {
  detail::returning_call c("exp10m1", {x});
  exp10m1(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T exp10m1(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { exp10m1(ctx, detail::number_view(x), out); });
}
inline tensor log2p1(const operand& x) {
  detail::returning_call c("log2p1", {x});
  log2p1(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T log2p1(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { log2p1(ctx, detail::number_view(x), out); });
}
inline tensor log10p1(const operand& x) {
  detail::returning_call c("log10p1", {x});
  log10p1(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T log10p1(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { log10p1(ctx, detail::number_view(x), out); });
}
inline tensor sinpi(const operand& x) {
  detail::returning_call c("sinpi", {x});
  sinpi(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T sinpi(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { sinpi(ctx, detail::number_view(x), out); });
}
inline tensor cospi(const operand& x) {
  detail::returning_call c("cospi", {x});
  cospi(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T cospi(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { cospi(ctx, detail::number_view(x), out); });
}
inline tensor tanpi(const operand& x) {
  detail::returning_call c("tanpi", {x});
  tanpi(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T tanpi(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { tanpi(ctx, detail::number_view(x), out); });
}
inline tensor sinc(const operand& x) {
  detail::returning_call c("sinc", {x});
  sinc(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T sinc(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { sinc(ctx, detail::number_view(x), out); });
}
inline tensor ndtr(const operand& x) {
  detail::returning_call c("ndtr", {x});
  ndtr(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T ndtr(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { ndtr(ctx, detail::number_view(x), out); });
}
inline tensor tan_backward(const operand& g, const operand& y) {
  detail::returning_call c("tan_backward", {g, y});
  tan_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class Y>
requires with_number<G, Y> void tan_backward(context& ctx, const G& g, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "tan_backward", {g, y});
  tan_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T tan_backward(T g, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { tan_backward(ctx, detail::number_view(g), detail::number_view(y), out); });
}
inline tensor asin_backward(const operand& g, const operand& x) {
  detail::returning_call c("asin_backward", {g, x});
  asin_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void asin_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "asin_backward", {g, x});
  asin_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T asin_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { asin_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor acos_backward(const operand& g, const operand& x) {
  detail::returning_call c("acos_backward", {g, x});
  acos_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void acos_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "acos_backward", {g, x});
  acos_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T acos_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { acos_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor atan_backward(const operand& g, const operand& x) {
  detail::returning_call c("atan_backward", {g, x});
  atan_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void atan_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "atan_backward", {g, x});
  atan_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T atan_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { atan_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor sinh_backward(const operand& g, const operand& x) {
  detail::returning_call c("sinh_backward", {g, x});
  sinh_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void sinh_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "sinh_backward", {g, x});
  sinh_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T sinh_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { sinh_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor cosh_backward(const operand& g, const operand& x) {
  detail::returning_call c("cosh_backward", {g, x});
  cosh_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void cosh_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "cosh_backward", {g, x});
  cosh_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T cosh_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { cosh_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor asinh_backward(const operand& g, const operand& x) {
  detail::returning_call c("asinh_backward", {g, x});
  asinh_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void asinh_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "asinh_backward", {g, x});
  asinh_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T asinh_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { asinh_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor acosh_backward(const operand& g, const operand& x) {
  detail::returning_call c("acosh_backward", {g, x});
  acosh_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void acosh_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "acosh_backward", {g, x});
  acosh_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T acosh_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { acosh_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor atanh_backward(const operand& g, const operand& x) {
  detail::returning_call c("atanh_backward", {g, x});
  atanh_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class X>
requires with_number<G, X> void atanh_backward(context& ctx, const G& g, const X& x, tensor_view out) {
  const detail::operand_views in(ctx, "atanh_backward", {g, x});
  atanh_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T atanh_backward(T g, T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { atanh_backward(ctx, detail::number_view(g), detail::number_view(x), out); });
}
inline tensor lgamma(const operand& x) {
  detail::returning_call c("lgamma", {x});
  lgamma(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float> T>
T lgamma(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { lgamma(ctx, detail::number_view(x), out); });
}
inline tensor tgamma(const operand& x) {
  detail::returning_call c("tgamma", {x});
  tgamma(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float> T>
T tgamma(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { tgamma(ctx, detail::number_view(x), out); });
}
inline tensor digamma(const operand& x) {
  detail::returning_call c("digamma", {x});
  digamma(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float> T>
T digamma(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { digamma(ctx, detail::number_view(x), out); });
}
inline tensor i0(const operand& x) {
  detail::returning_call c("i0", {x});
  i0(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float> T>
T i0(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { i0(ctx, detail::number_view(x), out); });
}
inline tensor i0e(const operand& x) {
  detail::returning_call c("i0e", {x});
  i0e(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float> T>
T i0e(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { i0e(ctx, detail::number_view(x), out); });
}
inline tensor i1(const operand& x) {
  detail::returning_call c("i1", {x});
  i1(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float> T>
T i1(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { i1(ctx, detail::number_view(x), out); });
}
inline tensor i1e(const operand& x) {
  detail::returning_call c("i1e", {x});
  i1e(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float> T>
T i1e(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { i1e(ctx, detail::number_view(x), out); });
}
inline tensor log_ndtr(const operand& x) {
  detail::returning_call c("log_ndtr", {x});
  log_ndtr(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T log_ndtr(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { log_ndtr(ctx, detail::number_view(x), out); });
}
inline tensor erfcinv(const operand& x) {
  detail::returning_call c("erfcinv", {x});
  erfcinv(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T erfcinv(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { erfcinv(ctx, detail::number_view(x), out); });
}
inline tensor ndtri(const operand& x) {
  detail::returning_call c("ndtri", {x});
  ndtri(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
template <one_of<f16, bf16, float, double> T>
T ndtri(T x) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { ndtri(ctx, detail::number_view(x), out); });
}
inline tensor erfinv_backward(const operand& g, const operand& y) {
  detail::returning_call c("erfinv_backward", {g, y});
  erfinv_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class Y>
requires with_number<G, Y> void erfinv_backward(context& ctx, const G& g, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "erfinv_backward", {g, y});
  erfinv_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T erfinv_backward(T g, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { erfinv_backward(ctx, detail::number_view(g), detail::number_view(y), out); });
}
inline tensor ndtri_backward(const operand& g, const operand& y) {
  detail::returning_call c("ndtri_backward", {g, y});
  ndtri_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
template <class G, class Y>
requires with_number<G, Y> void ndtri_backward(context& ctx, const G& g, const Y& y, tensor_view out) {
  const detail::operand_views in(ctx, "ndtri_backward", {g, y});
  ndtri_backward(ctx, in[0], in[1], out);
}
template <one_of<f16, bf16, float, double> T>
T ndtri_backward(T g, T y) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { ndtri_backward(ctx, detail::number_view(g), detail::number_view(y), out); });
}
inline tensor sum_of_products(const operand& x, const operand& y, const operand& z, const operand& w) {
  detail::returning_call c("sum_of_products", {x, y, z, w});
  sum_of_products(c.ctx, c.in[0], c.in[1], c.in[2], c.in[3], tensor_view{});
  return c.out.take();
}
template <class X, class Y, class Z, class W>
requires with_number<X, Y, Z, W> void sum_of_products(context& ctx, const X& x, const Y& y, const Z& z, const W& w, tensor_view out) {
  const detail::operand_views in(ctx, "sum_of_products", {x, y, z, w});
  sum_of_products(ctx, in[0], in[1], in[2], in[3], out);
}
template <one_of<f16, bf16, float, double> T>
T sum_of_products(T x, T y, T z, T w) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { sum_of_products(ctx, detail::number_view(x), detail::number_view(y), detail::number_view(z), detail::number_view(w), out); });
}
inline tensor difference_of_products(const operand& x, const operand& y, const operand& z, const operand& w) {
  detail::returning_call c("difference_of_products", {x, y, z, w});
  difference_of_products(c.ctx, c.in[0], c.in[1], c.in[2], c.in[3], tensor_view{});
  return c.out.take();
}
template <class X, class Y, class Z, class W>
requires with_number<X, Y, Z, W> void difference_of_products(context& ctx, const X& x, const Y& y, const Z& z, const W& w, tensor_view out) {
  const detail::operand_views in(ctx, "difference_of_products", {x, y, z, w});
  difference_of_products(ctx, in[0], in[1], in[2], in[3], out);
}
template <one_of<f16, bf16, float, double> T>
T difference_of_products(T x, T y, T z, T w) {
  return detail::number_result<T>([&](context& ctx, tensor_view out) { difference_of_products(ctx, detail::number_view(x), detail::number_view(y), detail::number_view(z), detail::number_view(w), out); });
}
inline tensor convert(const operand& x, dtype type, const convert_options& options = {}) {
  tensor out = detail::tensor_for(detail::context_of("convert", {x}), "convert", {type, x.view().shape()});
  convert(*out.handle(), x.view(), out, options);
  return out;
}
inline tensor sum(const operand& x, const reduce_options& options = {}) {
  detail::returning_call c("sum", {x});
  sum(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
inline tensor mean(const operand& x, const reduce_options& options = {}) {
  detail::returning_call c("mean", {x});
  mean(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
inline tensor max(const operand& x, const reduce_options& options = {}) {
  detail::returning_call c("max", {x});
  max(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
inline tensor min(const operand& x, const reduce_options& options = {}) {
  detail::returning_call c("min", {x});
  min(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
inline tensor argmax(const operand& x, const reduce_options& options = {}) {
  detail::returning_call c("argmax", {x});
  argmax(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
inline tensor argmin(const operand& x, const reduce_options& options = {}) {
  detail::returning_call c("argmin", {x});
  argmin(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
inline tensor dot(const operand& x, const operand& y) {
  detail::returning_call c("dot", {x, y});
  dot(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
inline tensor sum_squares(const operand& x, const reduce_options& options = {}) {
  detail::returning_call c("sum_squares", {x});
  sum_squares(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
inline tensor prod(const operand& x, const reduce_options& options = {}) {
  detail::returning_call c("prod", {x});
  prod(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
inline tensor vector_norm(const operand& x, const vector_norm_options& options = {}) {
  detail::returning_call c("vector_norm", {x});
  vector_norm(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
inline tensor prelu_backward_w(const operand& g, const operand& x, const reduce_options& options = {}) {
  detail::returning_call c("prelu_backward_w", {g, x});
  prelu_backward_w(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
inline void matmul(context& ctx, const_tensor_view a, const_tensor_view b, const_tensor_view bias, tensor_view out, matmul_options options = {}) {
  detail::set_operand("matmul", "bias", options.bias, bias);
  matmul(ctx, a, b, out, options);
}
inline tensor matmul(const operand& a, const operand& b, const matmul_options& options = {}) {
  detail::returning_call c("matmul", {a, b});
  matmul(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
inline tensor matmul(const operand& a, const operand& b, const operand& bias, const matmul_options& options = {}) {
  detail::returning_call c("matmul", {a, b, bias});
  matmul(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options);
  return c.out.take();
}
inline tensor uniform(context& ctx, generator& g, const tensor_spec& out, const uniform_options& options = {}) {
  tensor made = detail::tensor_for(ctx, "uniform", out);
  uniform(ctx, g, made, options);
  return made;
}
inline tensor permutation(context& ctx, generator& g, const tensor_spec& out) {
  tensor made = detail::tensor_for(ctx, "permutation", out);
  permutation(ctx, g, made);
  return made;
}
inline tensor linspace(context& ctx, const tensor_spec& out, const linspace_options& options) {
  tensor made = detail::tensor_for(ctx, "linspace", out);
  linspace(ctx, made, options);
  return made;
}
inline tensor arange(context& ctx, const tensor_spec& out, const arange_options& options = {}) {
  tensor made = detail::tensor_for(ctx, "arange", out);
  arange(ctx, made, options);
  return made;
}
inline tensor normal(context& ctx, generator& g, const tensor_spec& out, const normal_options& options = {}) {
  tensor made = detail::tensor_for(ctx, "normal", out);
  normal(ctx, g, made, options);
  return made;
}
inline tensor exponential(context& ctx, generator& g, const tensor_spec& out, const exponential_options& options = {}) {
  tensor made = detail::tensor_for(ctx, "exponential", out);
  exponential(ctx, g, made, options);
  return made;
}
inline tensor bernoulli(context& ctx, generator& g, const tensor_spec& out, double p = 0.5) {
  tensor made = detail::tensor_for(ctx, "bernoulli", out);
  bernoulli(ctx, g, made, p);
  return made;
}
inline tensor randint(context& ctx, generator& g, const tensor_spec& out, const randint_options& options) {
  tensor made = detail::tensor_for(ctx, "randint", out);
  randint(ctx, g, made, options);
  return made;
}
inline tensor multinomial(generator& g, const operand& x, const tensor_spec& out, const multinomial_options& options = {}) {
  tensor made = detail::tensor_for(detail::context_of("multinomial", {x}), "multinomial", out);
  multinomial(*made.handle(), g, x.view(), made, options);
  return made;
}
inline tensor dropout(generator& g, const operand& x, double p = 0.5) {
  detail::returning_call c("dropout", {x});
  dropout(c.ctx, g, c.in[0], tensor_view{}, p);
  return c.out.take();
}
inline tensor dropout_backward(const generator& g, const operand& grad, double p = 0.5) {
  detail::returning_call c("dropout_backward", {grad});
  dropout_backward(c.ctx, g, c.in[0], tensor_view{}, p);
  return c.out.take();
}
inline void conv2d(context& ctx, const_tensor_view x, const_tensor_view w, const_tensor_view bias, tensor_view out, conv2d_options options = {}) {
  detail::set_operand("conv2d", "bias", options.bias, bias);
  conv2d(ctx, x, w, out, options);
}
inline tensor conv2d(const operand& x, const operand& w, const conv2d_options& options = {}) {
  detail::returning_call c("conv2d", {x, w});
  conv2d(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
inline tensor conv2d(const operand& x, const operand& w, const operand& bias, const conv2d_options& options = {}) {
  detail::returning_call c("conv2d", {x, w, bias});
  conv2d(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options);
  return c.out.take();
}
inline tensor conv2d_backward_x(const operand& g, const operand& w, const tensor_spec& out, const conv2d_options& options = {}) {
  tensor grad_x = detail::tensor_for(detail::context_of("conv2d_backward_x", {g, w}), "conv2d_backward_x", out);
  conv2d_backward_x(*grad_x.handle(), g.view(), w.view(), grad_x, options);
  return grad_x;
}
inline tensor conv2d_backward_w(const operand& g, const operand& x, const tensor_spec& out, const conv2d_options& options = {}) {
  tensor grad_w = detail::tensor_for(detail::context_of("conv2d_backward_w", {g, x}), "conv2d_backward_w", out);
  conv2d_backward_w(*grad_w.handle(), g.view(), x.view(), grad_w, options);
  return grad_w;
}
inline tensor conv2d_backward_bias(const operand& g) {
  detail::returning_call c("conv2d_backward_bias", {g});
  conv2d_backward_bias(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
inline tensor max_pool2d(const operand& x, const max_pool2d_options& options) {
  detail::returning_call c("max_pool2d", {x});
  max_pool2d(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
inline tensor max_pool2d_backward(const operand& g, const operand& x, const max_pool2d_options& options) {
  detail::returning_call c("max_pool2d_backward", {g, x});
  max_pool2d_backward(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
inline tensor avg_pool2d(const operand& x, const avg_pool2d_options& options) {
  detail::returning_call c("avg_pool2d", {x});
  avg_pool2d(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
inline tensor avg_pool2d_backward(const operand& g, const tensor_spec& out, const avg_pool2d_options& options) {
  tensor grad_x = detail::tensor_for(detail::context_of("avg_pool2d_backward", {g}), "avg_pool2d_backward", out);
  avg_pool2d_backward(*grad_x.handle(), g.view(), grad_x, options);
  return grad_x;
}
inline std::pair<tensor, tensor> max_pool2d_with_indices(const operand& x, const max_pool2d_options& options) {
  detail::returning_call c("max_pool2d_with_indices", {x}, 2);
  max_pool2d_with_indices(c.ctx, c.in[0], tensor_view{}, tensor_view{}, options);
  return {c.out.take(0), c.out.take(1)};
}
inline tensor adaptive_max_pool2d(const operand& x, const adaptive_pool2d_options& options) {
  detail::returning_call c("adaptive_max_pool2d", {x});
  adaptive_max_pool2d(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
inline std::pair<tensor, tensor> adaptive_max_pool2d_with_indices(const operand& x, const adaptive_pool2d_options& options) {
  detail::returning_call c("adaptive_max_pool2d_with_indices", {x}, 2);
  adaptive_max_pool2d_with_indices(c.ctx, c.in[0], tensor_view{}, tensor_view{}, options);
  return {c.out.take(0), c.out.take(1)};
}
inline tensor adaptive_max_pool2d_backward(const operand& g, const operand& x) {
  detail::returning_call c("adaptive_max_pool2d_backward", {g, x});
  adaptive_max_pool2d_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
inline tensor adaptive_avg_pool2d(const operand& x, const adaptive_pool2d_options& options) {
  detail::returning_call c("adaptive_avg_pool2d", {x});
  adaptive_avg_pool2d(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
inline tensor adaptive_avg_pool2d_backward(const operand& g, const tensor_spec& out) {
  tensor grad_x = detail::tensor_for(detail::context_of("adaptive_avg_pool2d_backward", {g}), "adaptive_avg_pool2d_backward", out);
  adaptive_avg_pool2d_backward(*grad_x.handle(), g.view(), grad_x);
  return grad_x;
}
inline void conv3d(context& ctx, const_tensor_view x, const_tensor_view w, const_tensor_view bias, tensor_view out, conv3d_options options = {}) {
  detail::set_operand("conv3d", "bias", options.bias, bias);
  conv3d(ctx, x, w, out, options);
}
inline tensor conv3d(const operand& x, const operand& w, const conv3d_options& options = {}) {
  detail::returning_call c("conv3d", {x, w});
  conv3d(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
inline tensor conv3d(const operand& x, const operand& w, const operand& bias, const conv3d_options& options = {}) {
  detail::returning_call c("conv3d", {x, w, bias});
  conv3d(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options);
  return c.out.take();
}
inline tensor conv3d_backward_x(const operand& g, const operand& w, const tensor_spec& out, const conv3d_options& options = {}) {
  tensor grad_x = detail::tensor_for(detail::context_of("conv3d_backward_x", {g, w}), "conv3d_backward_x", out);
  conv3d_backward_x(*grad_x.handle(), g.view(), w.view(), grad_x, options);
  return grad_x;
}
inline tensor conv3d_backward_w(const operand& g, const operand& x, const tensor_spec& out, const conv3d_options& options = {}) {
  tensor grad_w = detail::tensor_for(detail::context_of("conv3d_backward_w", {g, x}), "conv3d_backward_w", out);
  conv3d_backward_w(*grad_w.handle(), g.view(), x.view(), grad_w, options);
  return grad_w;
}
inline tensor conv3d_backward_bias(const operand& g) {
  detail::returning_call c("conv3d_backward_bias", {g});
  conv3d_backward_bias(c.ctx, c.in[0], tensor_view{});
  return c.out.take();
}
inline tensor max_pool3d(const operand& x, const max_pool3d_options& options) {
  detail::returning_call c("max_pool3d", {x});
  max_pool3d(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
inline std::pair<tensor, tensor> max_pool3d_with_indices(const operand& x, const max_pool3d_options& options) {
  detail::returning_call c("max_pool3d_with_indices", {x}, 2);
  max_pool3d_with_indices(c.ctx, c.in[0], tensor_view{}, tensor_view{}, options);
  return {c.out.take(0), c.out.take(1)};
}
inline tensor max_pool3d_backward(const operand& g, const operand& x, const max_pool3d_options& options) {
  detail::returning_call c("max_pool3d_backward", {g, x});
  max_pool3d_backward(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
inline tensor avg_pool3d(const operand& x, const avg_pool3d_options& options) {
  detail::returning_call c("avg_pool3d", {x});
  avg_pool3d(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
inline tensor avg_pool3d_backward(const operand& g, const tensor_spec& out, const avg_pool3d_options& options) {
  tensor grad_x = detail::tensor_for(detail::context_of("avg_pool3d_backward", {g}), "avg_pool3d_backward", out);
  avg_pool3d_backward(*grad_x.handle(), g.view(), grad_x, options);
  return grad_x;
}
inline tensor adaptive_max_pool3d(const operand& x, const adaptive_pool3d_options& options) {
  detail::returning_call c("adaptive_max_pool3d", {x});
  adaptive_max_pool3d(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
inline std::pair<tensor, tensor> adaptive_max_pool3d_with_indices(const operand& x, const adaptive_pool3d_options& options) {
  detail::returning_call c("adaptive_max_pool3d_with_indices", {x}, 2);
  adaptive_max_pool3d_with_indices(c.ctx, c.in[0], tensor_view{}, tensor_view{}, options);
  return {c.out.take(0), c.out.take(1)};
}
inline tensor adaptive_max_pool3d_backward(const operand& g, const operand& x) {
  detail::returning_call c("adaptive_max_pool3d_backward", {g, x});
  adaptive_max_pool3d_backward(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
inline tensor adaptive_avg_pool3d(const operand& x, const adaptive_pool3d_options& options) {
  detail::returning_call c("adaptive_avg_pool3d", {x});
  adaptive_avg_pool3d(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
inline tensor adaptive_avg_pool3d_backward(const operand& g, const tensor_spec& out) {
  tensor grad_x = detail::tensor_for(detail::context_of("adaptive_avg_pool3d_backward", {g}), "adaptive_avg_pool3d_backward", out);
  adaptive_avg_pool3d_backward(*grad_x.handle(), g.view(), grad_x);
  return grad_x;
}
inline tensor upsample_nearest2d(const operand& x, const tensor_spec& out, const upsample_nearest2d_options& options = {}) {
  tensor made = detail::tensor_for(detail::context_of("upsample_nearest2d", {x}), "upsample_nearest2d", out);
  upsample_nearest2d(*made.handle(), x.view(), made, options);
  return made;
}
inline tensor upsample_nearest2d_backward(const operand& g, const tensor_spec& out, const upsample_nearest2d_options& options = {}) {
  tensor grad_x = detail::tensor_for(detail::context_of("upsample_nearest2d_backward", {g}), "upsample_nearest2d_backward", out);
  upsample_nearest2d_backward(*grad_x.handle(), g.view(), grad_x, options);
  return grad_x;
}
inline tensor upsample_linear(const operand& x, const tensor_spec& out, const interpolation_options& options = {}) {
  tensor made = detail::tensor_for(detail::context_of("upsample_linear", {x}), "upsample_linear", out);
  upsample_linear(*made.handle(), x.view(), made, options);
  return made;
}
inline tensor upsample_linear_backward(const operand& g, const tensor_spec& out, const interpolation_options& options = {}) {
  tensor grad_x = detail::tensor_for(detail::context_of("upsample_linear_backward", {g}), "upsample_linear_backward", out);
  upsample_linear_backward(*grad_x.handle(), g.view(), grad_x, options);
  return grad_x;
}
inline tensor upsample_cubic(const operand& x, const tensor_spec& out, const interpolation_options& options = {}) {
  tensor made = detail::tensor_for(detail::context_of("upsample_cubic", {x}), "upsample_cubic", out);
  upsample_cubic(*made.handle(), x.view(), made, options);
  return made;
}
inline tensor upsample_cubic_backward(const operand& g, const tensor_spec& out, const interpolation_options& options = {}) {
  tensor grad_x = detail::tensor_for(detail::context_of("upsample_cubic_backward", {g}), "upsample_cubic_backward", out);
  upsample_cubic_backward(*grad_x.handle(), g.view(), grad_x, options);
  return grad_x;
}
inline tensor cumsum(const operand& x, const scan_options& options = {}) {
  detail::returning_call c("cumsum", {x});
  cumsum(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
inline tensor cumprod(const operand& x, const scan_options& options = {}) {
  detail::returning_call c("cumprod", {x});
  cumprod(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
inline tensor logcumsumexp(const operand& x, const scan_options& options = {}) {
  detail::returning_call c("logcumsumexp", {x});
  logcumsumexp(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
inline tensor ldexp(const operand& x, const operand& n) {
  detail::returning_call c("ldexp", {x, n});
  ldexp(c.ctx, c.in[0], c.in[1], tensor_view{});
  return c.out.take();
}
inline std::pair<tensor, tensor> frexp(const operand& x) {
  detail::returning_call c("frexp", {x}, 2);
  frexp(c.ctx, c.in[0], tensor_view{}, tensor_view{});
  return {c.out.take(0), c.out.take(1)};
}
inline tensor attention(const operand& q, const operand& k, const operand& v, const attention_options& options = {}, const operand& mask = {}, const operand& slopes = {}, tensor_view lse = {}) {
  detail::returning_call c("attention", {q, k, v, mask, slopes});
  attention(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options, c.in[3], c.in[4], lse);
  return c.out.take();
}
inline std::array<tensor, 3> attention_backward(const operand& g, const operand& q, const operand& k, const operand& v, const operand& y, const operand& lse, const attention_options& options = {}, const operand& mask = {}, const operand& slopes = {}) {
  detail::returning_call c("attention_backward", {g, q, k, v, y, lse, mask, slopes}, 3);
  attention_backward(c.ctx, c.in[0], c.in[1], c.in[2], c.in[3], c.in[4], c.in[5], tensor_view{}, tensor_view{}, tensor_view{}, options, c.in[6], c.in[7]);
  return {c.out.take(0), c.out.take(1), c.out.take(2)};
}
inline tensor attention_varlen(const operand& q, const operand& k, const operand& v, const operand& q_offsets, const operand& k_offsets, const attention_options& options = {}, const operand& slopes = {}, tensor_view lse = {}) {
  detail::returning_call c("attention_varlen", {q, k, v, q_offsets, k_offsets, slopes});
  attention_varlen(c.ctx, c.in[0], c.in[1], c.in[2], c.in[3], c.in[4], tensor_view{}, options, c.in[5], lse);
  return c.out.take();
}
inline std::array<tensor, 3> attention_varlen_backward(const operand& g, const operand& q, const operand& k, const operand& v, const operand& y, const operand& lse, const operand& q_offsets, const operand& k_offsets, const attention_options& options = {}, const operand& slopes = {}) {
  detail::returning_call c("attention_varlen_backward", {g, q, k, v, y, lse, q_offsets, k_offsets, slopes}, 3);
  attention_varlen_backward(c.ctx, c.in[0], c.in[1], c.in[2], c.in[3], c.in[4], c.in[5], c.in[6], c.in[7], tensor_view{}, tensor_view{}, tensor_view{}, options, c.in[8]);
  return {c.out.take(0), c.out.take(1), c.out.take(2)};
}
inline tensor rotary(const operand& x, const operand& cos, const operand& sin, const rotary_options& options = {}) {
  detail::returning_call c("rotary", {x, cos, sin});
  rotary(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options);
  return c.out.take();
}
inline tensor softmax(const operand& x, const softmax_options& options = {}) {
  detail::returning_call c("softmax", {x});
  softmax(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
inline tensor log_softmax(const operand& x, const softmax_options& options = {}) {
  detail::returning_call c("log_softmax", {x});
  log_softmax(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
inline tensor logsumexp(const operand& x, const reduce_options& options = {}) {
  detail::returning_call c("logsumexp", {x});
  logsumexp(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
inline void cross_entropy(context& ctx, const_tensor_view logits, const_tensor_view targets, const_tensor_view weight, tensor_view out, cross_entropy_options options = {}) {
  detail::set_operand("cross_entropy", "weight", options.weight, weight);
  cross_entropy(ctx, logits, targets, out, options);
}
inline tensor cross_entropy(const operand& logits, const operand& targets, const cross_entropy_options& options = {}) {
  detail::returning_call c("cross_entropy", {logits, targets});
  cross_entropy(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
inline tensor cross_entropy(const operand& logits, const operand& targets, const operand& weight, const cross_entropy_options& options = {}) {
  detail::returning_call c("cross_entropy", {logits, targets, weight});
  cross_entropy(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options);
  return c.out.take();
}
inline tensor softmax_backward(const operand& g, const operand& y, const softmax_options& options = {}) {
  detail::returning_call c("softmax_backward", {g, y});
  softmax_backward(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
inline tensor log_softmax_backward(const operand& g, const operand& y, const softmax_options& options = {}) {
  detail::returning_call c("log_softmax_backward", {g, y});
  log_softmax_backward(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
inline tensor logsumexp_backward(const operand& g, const operand& x, const reduce_options& options = {}) {
  detail::returning_call c("logsumexp_backward", {g, x});
  logsumexp_backward(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
inline void cross_entropy_backward(context& ctx, const_tensor_view g, const_tensor_view logits, const_tensor_view targets, const_tensor_view weight, tensor_view grad_logits, cross_entropy_options options = {}) {
  detail::set_operand("cross_entropy_backward", "weight", options.weight, weight);
  cross_entropy_backward(ctx, g, logits, targets, grad_logits, options);
}
inline tensor cross_entropy_backward(const operand& g, const operand& logits, const operand& targets, const cross_entropy_options& options = {}) {
  detail::returning_call c("cross_entropy_backward", {g, logits, targets});
  cross_entropy_backward(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options);
  return c.out.take();
}
inline tensor cross_entropy_backward(const operand& g, const operand& logits, const operand& targets, const operand& weight, const cross_entropy_options& options = {}) {
  detail::returning_call c("cross_entropy_backward", {g, logits, targets, weight});
  cross_entropy_backward(c.ctx, c.in[0], c.in[1], c.in[2], c.in[3], tensor_view{}, options);
  return c.out.take();
}
inline void nll_loss(context& ctx, const_tensor_view x, const_tensor_view targets, const_tensor_view weight, tensor_view out, nll_loss_options options = {}, tensor_view total_weight = {}) {
  detail::set_operand("nll_loss", "weight", options.weight, weight);
  nll_loss(ctx, x, targets, out, options, total_weight);
}
inline tensor nll_loss(const operand& x, const operand& targets, const nll_loss_options& options = {}, tensor_view total_weight = {}) {
  detail::returning_call c("nll_loss", {x, targets});
  nll_loss(c.ctx, c.in[0], c.in[1], tensor_view{}, options, total_weight);
  return c.out.take();
}
inline tensor nll_loss(const operand& x, const operand& targets, const operand& weight, const nll_loss_options& options = {}, tensor_view total_weight = {}) {
  detail::returning_call c("nll_loss", {x, targets, weight});
  nll_loss(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options, total_weight);
  return c.out.take();
}
inline void nll_loss_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view targets, const_tensor_view weight, tensor_view grad_x, nll_loss_options options = {}, const_tensor_view total_weight = {}) {
  detail::set_operand("nll_loss_backward", "weight", options.weight, weight);
  nll_loss_backward(ctx, g, x, targets, grad_x, options, total_weight);
}
inline tensor nll_loss_backward(const operand& g, const operand& x, const operand& targets, const nll_loss_options& options = {}, const operand& total_weight = {}) {
  detail::returning_call c("nll_loss_backward", {g, x, targets, total_weight});
  nll_loss_backward(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options, c.in[3]);
  return c.out.take();
}
inline tensor nll_loss_backward(const operand& g, const operand& x, const operand& targets, const operand& weight, const nll_loss_options& options = {}, const operand& total_weight = {}) {
  detail::returning_call c("nll_loss_backward", {g, x, targets, weight, total_weight});
  nll_loss_backward(c.ctx, c.in[0], c.in[1], c.in[2], c.in[3], tensor_view{}, options, c.in[4]);
  return c.out.take();
}
inline tensor mse_loss(const operand& x, const operand& t, const loss_options& options = {}) {
  detail::returning_call c("mse_loss", {x, t});
  mse_loss(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
inline tensor l1_loss(const operand& x, const operand& t, const loss_options& options = {}) {
  detail::returning_call c("l1_loss", {x, t});
  l1_loss(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
inline tensor smooth_l1_loss(const operand& x, const operand& t, const smooth_l1_loss_options& options = {}) {
  detail::returning_call c("smooth_l1_loss", {x, t});
  smooth_l1_loss(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
inline tensor huber_loss(const operand& x, const operand& t, const huber_loss_options& options = {}) {
  detail::returning_call c("huber_loss", {x, t});
  huber_loss(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
inline tensor soft_margin_loss(const operand& x, const operand& t, const loss_options& options = {}) {
  detail::returning_call c("soft_margin_loss", {x, t});
  soft_margin_loss(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
inline tensor mse_loss_backward(const operand& g, const operand& x, const operand& t, const loss_options& options = {}) {
  detail::returning_call c("mse_loss_backward", {g, x, t});
  mse_loss_backward(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options);
  return c.out.take();
}
inline tensor l1_loss_backward(const operand& g, const operand& x, const operand& t, const loss_options& options = {}) {
  detail::returning_call c("l1_loss_backward", {g, x, t});
  l1_loss_backward(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options);
  return c.out.take();
}
inline tensor smooth_l1_loss_backward(const operand& g, const operand& x, const operand& t, const smooth_l1_loss_options& options = {}) {
  detail::returning_call c("smooth_l1_loss_backward", {g, x, t});
  smooth_l1_loss_backward(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options);
  return c.out.take();
}
inline tensor huber_loss_backward(const operand& g, const operand& x, const operand& t, const huber_loss_options& options = {}) {
  detail::returning_call c("huber_loss_backward", {g, x, t});
  huber_loss_backward(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options);
  return c.out.take();
}
inline tensor soft_margin_loss_backward(const operand& g, const operand& x, const operand& t, const loss_options& options = {}) {
  detail::returning_call c("soft_margin_loss_backward", {g, x, t});
  soft_margin_loss_backward(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options);
  return c.out.take();
}
inline void binary_cross_entropy_with_logits(context& ctx, const_tensor_view x, const_tensor_view t, const_tensor_view weight, const_tensor_view pos_weight, tensor_view out, binary_cross_entropy_with_logits_options options = {}) {
  detail::set_operand("binary_cross_entropy_with_logits", "weight", options.weight, weight);
  detail::set_operand("binary_cross_entropy_with_logits", "pos_weight", options.pos_weight, pos_weight);
  binary_cross_entropy_with_logits(ctx, x, t, out, options);
}
inline tensor binary_cross_entropy_with_logits(const operand& x, const operand& t, const binary_cross_entropy_with_logits_options& options = {}) {
  detail::returning_call c("binary_cross_entropy_with_logits", {x, t});
  binary_cross_entropy_with_logits(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
inline tensor binary_cross_entropy_with_logits(const operand& x, const operand& t, const operand& weight, const operand& pos_weight, const binary_cross_entropy_with_logits_options& options = {}) {
  detail::returning_call c("binary_cross_entropy_with_logits", {x, t, weight, pos_weight});
  binary_cross_entropy_with_logits(c.ctx, c.in[0], c.in[1], c.in[2], c.in[3], tensor_view{}, options);
  return c.out.take();
}
inline void binary_cross_entropy_with_logits_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view t, const_tensor_view weight, const_tensor_view pos_weight, tensor_view grad_x, binary_cross_entropy_with_logits_options options = {}) {
  detail::set_operand("binary_cross_entropy_with_logits_backward", "weight", options.weight, weight);
  detail::set_operand("binary_cross_entropy_with_logits_backward", "pos_weight", options.pos_weight, pos_weight);
  binary_cross_entropy_with_logits_backward(ctx, g, x, t, grad_x, options);
}
inline tensor binary_cross_entropy_with_logits_backward(const operand& g, const operand& x, const operand& t, const binary_cross_entropy_with_logits_options& options = {}) {
  detail::returning_call c("binary_cross_entropy_with_logits_backward", {g, x, t});
  binary_cross_entropy_with_logits_backward(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options);
  return c.out.take();
}
inline tensor binary_cross_entropy_with_logits_backward(const operand& g, const operand& x, const operand& t, const operand& weight, const operand& pos_weight, const binary_cross_entropy_with_logits_options& options = {}) {
  detail::returning_call c("binary_cross_entropy_with_logits_backward", {g, x, t, weight, pos_weight});
  binary_cross_entropy_with_logits_backward(c.ctx, c.in[0], c.in[1], c.in[2], c.in[3], c.in[4], tensor_view{}, options);
  return c.out.take();
}
inline void binary_cross_entropy(context& ctx, const_tensor_view x, const_tensor_view t, const_tensor_view weight, tensor_view out, binary_cross_entropy_options options = {}) {
  detail::set_operand("binary_cross_entropy", "weight", options.weight, weight);
  binary_cross_entropy(ctx, x, t, out, options);
}
inline tensor binary_cross_entropy(const operand& x, const operand& t, const binary_cross_entropy_options& options = {}) {
  detail::returning_call c("binary_cross_entropy", {x, t});
  binary_cross_entropy(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
inline tensor binary_cross_entropy(const operand& x, const operand& t, const operand& weight, const binary_cross_entropy_options& options = {}) {
  detail::returning_call c("binary_cross_entropy", {x, t, weight});
  binary_cross_entropy(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options);
  return c.out.take();
}
inline void binary_cross_entropy_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view t, const_tensor_view weight, tensor_view grad_x, binary_cross_entropy_options options = {}) {
  detail::set_operand("binary_cross_entropy_backward", "weight", options.weight, weight);
  binary_cross_entropy_backward(ctx, g, x, t, grad_x, options);
}
inline tensor binary_cross_entropy_backward(const operand& g, const operand& x, const operand& t, const binary_cross_entropy_options& options = {}) {
  detail::returning_call c("binary_cross_entropy_backward", {g, x, t});
  binary_cross_entropy_backward(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options);
  return c.out.take();
}
inline tensor binary_cross_entropy_backward(const operand& g, const operand& x, const operand& t, const operand& weight, const binary_cross_entropy_options& options = {}) {
  detail::returning_call c("binary_cross_entropy_backward", {g, x, t, weight});
  binary_cross_entropy_backward(c.ctx, c.in[0], c.in[1], c.in[2], c.in[3], tensor_view{}, options);
  return c.out.take();
}
inline tensor kl_div(const operand& x, const operand& t, const kl_div_options& options = {}) {
  detail::returning_call c("kl_div", {x, t});
  kl_div(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
inline tensor kl_div_backward(const operand& g, const operand& x, const operand& t, const kl_div_options& options = {}) {
  detail::returning_call c("kl_div_backward", {g, x, t});
  kl_div_backward(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options);
  return c.out.take();
}
inline void layer_norm(context& ctx, const_tensor_view x, const_tensor_view weight, const_tensor_view bias, tensor_view out, layer_norm_options options = {}, const norm_statistics& of_rows = {}) {
  detail::set_operand("layer_norm", "weight", options.weight, weight);
  detail::set_operand("layer_norm", "bias", options.bias, bias);
  layer_norm(ctx, x, out, options, of_rows);
}
inline tensor layer_norm(const operand& x, const layer_norm_options& options = {}, const norm_statistics& of_rows = {}) {
  detail::returning_call c("layer_norm", {x});
  layer_norm(c.ctx, c.in[0], tensor_view{}, options, of_rows);
  return c.out.take();
}
inline tensor layer_norm(const operand& x, const operand& weight, const operand& bias, const layer_norm_options& options = {}, const norm_statistics& of_rows = {}) {
  detail::returning_call c("layer_norm", {x, weight, bias});
  layer_norm(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options, of_rows);
  return c.out.take();
}
inline void rms_norm(context& ctx, const_tensor_view x, const_tensor_view weight, tensor_view out, rms_norm_options options, tensor_view rstd = {}) {
  detail::set_operand("rms_norm", "weight", options.weight, weight);
  rms_norm(ctx, x, out, options, rstd);
}
inline tensor rms_norm(const operand& x, const rms_norm_options& options, tensor_view rstd = {}) {
  detail::returning_call c("rms_norm", {x});
  rms_norm(c.ctx, c.in[0], tensor_view{}, options, rstd);
  return c.out.take();
}
inline tensor rms_norm(const operand& x, const operand& weight, const rms_norm_options& options, tensor_view rstd = {}) {
  detail::returning_call c("rms_norm", {x, weight});
  rms_norm(c.ctx, c.in[0], c.in[1], tensor_view{}, options, rstd);
  return c.out.take();
}
inline void group_norm(context& ctx, const_tensor_view x, const_tensor_view weight, const_tensor_view bias, tensor_view out, group_norm_options options = {}, const norm_statistics& of_rows = {}) {
  detail::set_operand("group_norm", "weight", options.weight, weight);
  detail::set_operand("group_norm", "bias", options.bias, bias);
  group_norm(ctx, x, out, options, of_rows);
}
inline tensor group_norm(const operand& x, const group_norm_options& options = {}, const norm_statistics& of_rows = {}) {
  detail::returning_call c("group_norm", {x});
  group_norm(c.ctx, c.in[0], tensor_view{}, options, of_rows);
  return c.out.take();
}
inline tensor group_norm(const operand& x, const operand& weight, const operand& bias, const group_norm_options& options = {}, const norm_statistics& of_rows = {}) {
  detail::returning_call c("group_norm", {x, weight, bias});
  group_norm(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options, of_rows);
  return c.out.take();
}
inline void batch_norm(context& ctx, const_tensor_view x, const_tensor_view weight, const_tensor_view bias, tensor_view out, batch_norm_options options = {}, const norm_statistics& of_rows = {}) {
  detail::set_operand("batch_norm", "weight", options.weight, weight);
  detail::set_operand("batch_norm", "bias", options.bias, bias);
  batch_norm(ctx, x, out, options, of_rows);
}
inline tensor batch_norm(const operand& x, const batch_norm_options& options = {}, const norm_statistics& of_rows = {}) {
  detail::returning_call c("batch_norm", {x});
  batch_norm(c.ctx, c.in[0], tensor_view{}, options, of_rows);
  return c.out.take();
}
inline tensor batch_norm(const operand& x, const operand& weight, const operand& bias, const batch_norm_options& options = {}, const norm_statistics& of_rows = {}) {
  detail::returning_call c("batch_norm", {x, weight, bias});
  batch_norm(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options, of_rows);
  return c.out.take();
}
inline void layer_norm_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view mean, const_tensor_view rstd, const_tensor_view weight, tensor_view grad_x, layer_norm_backward_options options = {}) {
  detail::set_operand("layer_norm_backward", "weight", options.weight, weight);
  layer_norm_backward(ctx, g, x, mean, rstd, grad_x, options);
}
inline tensor layer_norm_backward(const operand& g, const operand& x, const operand& mean, const operand& rstd, const layer_norm_backward_options& options = {}) {
  detail::returning_call c("layer_norm_backward", {g, x, mean, rstd});
  layer_norm_backward(c.ctx, c.in[0], c.in[1], c.in[2], c.in[3], tensor_view{}, options);
  return c.out.take();
}
inline tensor layer_norm_backward(const operand& g, const operand& x, const operand& mean, const operand& rstd, const operand& weight, const layer_norm_backward_options& options = {}) {
  detail::returning_call c("layer_norm_backward", {g, x, mean, rstd, weight});
  layer_norm_backward(c.ctx, c.in[0], c.in[1], c.in[2], c.in[3], c.in[4], tensor_view{}, options);
  return c.out.take();
}
inline void rms_norm_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view rstd, const_tensor_view weight, tensor_view grad_x, layer_norm_backward_options options = {}) {
  detail::set_operand("rms_norm_backward", "weight", options.weight, weight);
  rms_norm_backward(ctx, g, x, rstd, grad_x, options);
}
inline tensor rms_norm_backward(const operand& g, const operand& x, const operand& rstd, const layer_norm_backward_options& options = {}) {
  detail::returning_call c("rms_norm_backward", {g, x, rstd});
  rms_norm_backward(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options);
  return c.out.take();
}
inline tensor rms_norm_backward(const operand& g, const operand& x, const operand& rstd, const operand& weight, const layer_norm_backward_options& options = {}) {
  detail::returning_call c("rms_norm_backward", {g, x, rstd, weight});
  rms_norm_backward(c.ctx, c.in[0], c.in[1], c.in[2], c.in[3], tensor_view{}, options);
  return c.out.take();
}
inline void group_norm_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view mean, const_tensor_view rstd, const_tensor_view weight, tensor_view grad_x, group_norm_backward_options options = {}) {
  detail::set_operand("group_norm_backward", "weight", options.weight, weight);
  group_norm_backward(ctx, g, x, mean, rstd, grad_x, options);
}
inline tensor group_norm_backward(const operand& g, const operand& x, const operand& mean, const operand& rstd, const group_norm_backward_options& options = {}) {
  detail::returning_call c("group_norm_backward", {g, x, mean, rstd});
  group_norm_backward(c.ctx, c.in[0], c.in[1], c.in[2], c.in[3], tensor_view{}, options);
  return c.out.take();
}
inline tensor group_norm_backward(const operand& g, const operand& x, const operand& mean, const operand& rstd, const operand& weight, const group_norm_backward_options& options = {}) {
  detail::returning_call c("group_norm_backward", {g, x, mean, rstd, weight});
  group_norm_backward(c.ctx, c.in[0], c.in[1], c.in[2], c.in[3], c.in[4], tensor_view{}, options);
  return c.out.take();
}
inline void batch_norm_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view mean, const_tensor_view rstd, const_tensor_view weight, tensor_view grad_x, batch_norm_backward_options options = {}) {
  detail::set_operand("batch_norm_backward", "weight", options.weight, weight);
  batch_norm_backward(ctx, g, x, mean, rstd, grad_x, options);
}
inline tensor batch_norm_backward(const operand& g, const operand& x, const operand& mean, const operand& rstd, const batch_norm_backward_options& options = {}) {
  detail::returning_call c("batch_norm_backward", {g, x, mean, rstd});
  batch_norm_backward(c.ctx, c.in[0], c.in[1], c.in[2], c.in[3], tensor_view{}, options);
  return c.out.take();
}
inline tensor batch_norm_backward(const operand& g, const operand& x, const operand& mean, const operand& rstd, const operand& weight, const batch_norm_backward_options& options = {}) {
  detail::returning_call c("batch_norm_backward", {g, x, mean, rstd, weight});
  batch_norm_backward(c.ctx, c.in[0], c.in[1], c.in[2], c.in[3], c.in[4], tensor_view{}, options);
  return c.out.take();
}
inline tensor layer_norm_backward_weight(const operand& g, const operand& x, const operand& mean, const operand& rstd, const axis_list& axis = -1) {
  detail::returning_call c("layer_norm_backward_weight", {g, x, mean, rstd});
  layer_norm_backward_weight(c.ctx, c.in[0], c.in[1], c.in[2], c.in[3], tensor_view{}, axis);
  return c.out.take();
}
inline tensor rms_norm_backward_weight(const operand& g, const operand& x, const operand& rstd, const axis_list& axis = -1) {
  detail::returning_call c("rms_norm_backward_weight", {g, x, rstd});
  rms_norm_backward_weight(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, axis);
  return c.out.take();
}
inline tensor group_norm_backward_weight(const operand& g, const operand& x, const operand& mean, const operand& rstd, std::int64_t groups) {
  detail::returning_call c("group_norm_backward_weight", {g, x, mean, rstd});
  group_norm_backward_weight(c.ctx, c.in[0], c.in[1], c.in[2], c.in[3], tensor_view{}, groups);
  return c.out.take();
}
inline tensor batch_norm_backward_weight(const operand& g, const operand& x, const operand& mean, const operand& rstd, std::int64_t axis = 1) {
  detail::returning_call c("batch_norm_backward_weight", {g, x, mean, rstd});
  batch_norm_backward_weight(c.ctx, c.in[0], c.in[1], c.in[2], c.in[3], tensor_view{}, axis);
  return c.out.take();
}
inline void batch_norm_running(context& ctx, const_tensor_view x, const_tensor_view running_mean, const_tensor_view running_var, const_tensor_view weight, const_tensor_view bias, tensor_view out, const running_statistics& updated, batch_norm_running_options options = {}, const norm_statistics& of_rows = {}) {
  detail::set_operand("batch_norm_running", "weight", options.weight, weight);
  detail::set_operand("batch_norm_running", "bias", options.bias, bias);
  batch_norm_running(ctx, x, running_mean, running_var, out, updated, options, of_rows);
}
inline tensor batch_norm_running(const operand& x, const operand& running_mean, const operand& running_var, const running_statistics& updated, const batch_norm_running_options& options = {}, const norm_statistics& of_rows = {}) {
  detail::returning_call c("batch_norm_running", {x, running_mean, running_var});
  batch_norm_running(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, updated, options, of_rows);
  return c.out.take();
}
inline tensor batch_norm_running(const operand& x, const operand& running_mean, const operand& running_var, const operand& weight, const operand& bias, const running_statistics& updated, const batch_norm_running_options& options = {}, const norm_statistics& of_rows = {}) {
  detail::returning_call c("batch_norm_running", {x, running_mean, running_var, weight, bias});
  batch_norm_running(c.ctx, c.in[0], c.in[1], c.in[2], c.in[3], c.in[4], tensor_view{}, updated, options, of_rows);
  return c.out.take();
}
inline void batch_norm_inference(context& ctx, const_tensor_view x, const_tensor_view running_mean, const_tensor_view running_var, const_tensor_view weight, const_tensor_view bias, tensor_view out, batch_norm_options options = {}) {
  detail::set_operand("batch_norm_inference", "weight", options.weight, weight);
  detail::set_operand("batch_norm_inference", "bias", options.bias, bias);
  batch_norm_inference(ctx, x, running_mean, running_var, out, options);
}
inline tensor batch_norm_inference(const operand& x, const operand& running_mean, const operand& running_var, const batch_norm_options& options = {}) {
  detail::returning_call c("batch_norm_inference", {x, running_mean, running_var});
  batch_norm_inference(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options);
  return c.out.take();
}
inline tensor batch_norm_inference(const operand& x, const operand& running_mean, const operand& running_var, const operand& weight, const operand& bias, const batch_norm_options& options = {}) {
  detail::returning_call c("batch_norm_inference", {x, running_mean, running_var, weight, bias});
  batch_norm_inference(c.ctx, c.in[0], c.in[1], c.in[2], c.in[3], c.in[4], tensor_view{}, options);
  return c.out.take();
}
inline void batch_norm_inference_backward(context& ctx, const_tensor_view g, const_tensor_view running_var, const_tensor_view weight, tensor_view grad_x, batch_norm_inference_backward_options options = {}) {
  detail::set_operand("batch_norm_inference_backward", "weight", options.weight, weight);
  batch_norm_inference_backward(ctx, g, running_var, grad_x, options);
}
inline tensor batch_norm_inference_backward(const operand& g, const operand& running_var, const batch_norm_inference_backward_options& options = {}) {
  detail::returning_call c("batch_norm_inference_backward", {g, running_var});
  batch_norm_inference_backward(c.ctx, c.in[0], c.in[1], tensor_view{}, options);
  return c.out.take();
}
inline tensor batch_norm_inference_backward(const operand& g, const operand& running_var, const operand& weight, const batch_norm_inference_backward_options& options = {}) {
  detail::returning_call c("batch_norm_inference_backward", {g, running_var, weight});
  batch_norm_inference_backward(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options);
  return c.out.take();
}
inline tensor batch_norm_inference_backward_weight(const operand& g, const operand& x, const operand& running_mean, const operand& running_var, std::int64_t axis = 1, double eps = 1e-5) {
  detail::returning_call c("batch_norm_inference_backward_weight", {g, x, running_mean, running_var});
  batch_norm_inference_backward_weight(c.ctx, c.in[0], c.in[1], c.in[2], c.in[3], tensor_view{}, axis, eps);
  return c.out.take();
}
inline tensor var(const operand& x, const var_options& options = {}) {
  detail::returning_call c("var", {x});
  var(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
inline tensor stddev(const operand& x, const var_options& options = {}) {
  detail::returning_call c("stddev", {x});
  stddev(c.ctx, c.in[0], tensor_view{}, options);
  return c.out.take();
}
inline std::pair<tensor, tensor> var_mean(const operand& x, const var_options& options = {}) {
  detail::returning_call c("var_mean", {x}, 2);
  var_mean(c.ctx, c.in[0], tensor_view{}, tensor_view{}, options);
  return {c.out.take(0), c.out.take(1)};
}
inline tensor index_add(const operand& x, const operand& index, const operand& source, const index_add_options& options = {}) {
  detail::returning_call c("index_add", {x, index, source});
  index_add(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options);
  return c.out.take();
}
inline tensor scatter_add(const operand& x, const operand& index, const operand& source, const index_add_options& options = {}) {
  detail::returning_call c("scatter_add", {x, index, source});
  scatter_add(c.ctx, c.in[0], c.in[1], c.in[2], tensor_view{}, options);
  return c.out.take();
}
inline tensor embedding_backward(const operand& g, const operand& indices, const tensor_spec& out, const embedding_backward_options& options = {}) {
  tensor grad_weight = detail::tensor_for(detail::context_of("embedding_backward", {g, indices}), "embedding_backward", out);
  embedding_backward(*grad_weight.handle(), g.view(), indices.view(), grad_weight, options);
  return grad_weight;
}
inline tensor total_norm(std::span<const operand> tensors, const total_norm_options& options = {}) {
  context& ctx = detail::context_of("total_norm", tensors);
  detail::results made(ctx, "total_norm", 1);
  total_norm(ctx, detail::views_of(tensors), tensor_view{}, options);
  return made.take();
}

// Names of the version before (docs/migrating.md).

REPDL_DEPRECATED("conv2d_backward_x")
inline void conv2d_grad_input(context& ctx, const_tensor_view g, const_tensor_view w, tensor_view grad_x, const conv2d_options& options = {}) {
  conv2d_backward_x(ctx, g, w, grad_x, options);
}
REPDL_DEPRECATED("conv2d_backward_w")
inline void conv2d_grad_weight(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view grad_w, const conv2d_options& options = {}) {
  conv2d_backward_w(ctx, g, x, grad_w, options);
}
REPDL_DEPRECATED("conv2d_backward_bias")
inline void conv2d_grad_bias(context& ctx, const_tensor_view g, tensor_view grad_bias) {
  conv2d_backward_bias(ctx, g, grad_bias);
}
REPDL_DEPRECATED("prelu_backward_w")
inline void prelu_weight_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out, const reduce_options& options = {}) {
  prelu_backward_w(ctx, g, x, out, options);
}
REPDL_DEPRECATED("layer_norm_backward_weight")
inline void layer_norm_weight_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view mean, const_tensor_view rstd, tensor_view grad_weight, const axis_list& axis = -1) {
  layer_norm_backward_weight(ctx, g, x, mean, rstd, grad_weight, axis);
}
REPDL_DEPRECATED("rms_norm_backward_weight")
inline void rms_norm_weight_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view rstd, tensor_view grad_weight, const axis_list& axis = -1) {
  rms_norm_backward_weight(ctx, g, x, rstd, grad_weight, axis);
}
REPDL_DEPRECATED("group_norm_backward_weight")
inline void group_norm_weight_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view mean, const_tensor_view rstd, tensor_view grad_weight, std::int64_t groups) {
  group_norm_backward_weight(ctx, g, x, mean, rstd, grad_weight, groups);
}
REPDL_DEPRECATED("batch_norm_backward_weight")
inline void batch_norm_weight_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view mean, const_tensor_view rstd, tensor_view grad_weight, std::int64_t axis = 1) {
  batch_norm_backward_weight(ctx, g, x, mean, rstd, grad_weight, axis);
}
REPDL_DEPRECATED("batch_norm_inference_backward_weight")
inline void batch_norm_inference_weight_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view running_mean, const_tensor_view running_var, tensor_view grad_weight, std::int64_t axis = 1, double eps = 1e-5) {
  batch_norm_inference_backward_weight(ctx, g, x, running_mean, running_var, grad_weight, axis, eps);
}
template <class T>
concept element = element_type<T>;
template <class T>
concept integer = integer_type<T>;

}  // namespace repdl
