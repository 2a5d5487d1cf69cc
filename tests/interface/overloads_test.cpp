// The forms of a call that are made from the one that writes to the caller's memory (functions.hpp): results that calls make,
// numbers as operands, functions of numbers, optional operands as parameters, sizes of any rank, old names. Each has the bits of
// the form that it is made from, or of the operation by its name.
#include <doctest/doctest.h>
#include <xmmintrin.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "librepdl/ops/registry.hpp"

using namespace repdl;

namespace {

constexpr float marker = -12345.5f;
const std::vector<float> numbers = {0.5f, -1.25f, 3.0f, 0.1f, 2.0f, -0.0f};
const std::vector<float> others = {1.5f, 0.75f, -2.0f, 0.3f, 4.0f, 0.25f};

std::string identity(context& ctx, const const_tensor_view& v) { return fingerprint(ctx, std::array{v}); }
std::string identity(context& ctx, const tensor& t) { return identity(ctx, t.view()); }

// What the operation with this name makes of the operands.
std::string by_name(context& ctx, const char* name, const std::vector<const_tensor_view>& in,
                    const attributes& attrs = {}, std::size_t which = 0) {
  const op_info& op = *find(name);
  std::vector<tensor> out;
  std::vector<tensor_view> views;
  for (const tensor_spec& s : infer(op, in, attrs)) out.emplace_back(ctx, s.type, s.shape);
  for (tensor& t : out) views.push_back(t.view());
  call(ctx, op, in, views, attrs);
  return identity(ctx, out[which]);
}

tensor image(context& ctx, const sizes& shape, float first = 0.5f) {
  std::vector<float> v(static_cast<std::size_t>(element_count(shape)));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = first + 0.1f * static_cast<float>(i % 17) - 0.7f;
  return tensor(ctx, v, shape);
}

using list = std::vector<std::int64_t>;

// The error of a call.
template <class Call>
std::string message(Call&& call) {
  try {
    call();
  } catch (const error& e) {
    return std::string(info_of(e.site()).name) + ": " + e.what();
  }
  return "no error";
}

}  // namespace

TEST_SUITE_BEGIN("portable");

TEST_CASE("overloads: every elementwise function makes its result") {
  context ctx({.threads = 1});
  const tensor x(ctx, numbers, {6}), y(ctx, others, {2, 3}),
      boolean = less(operand(ctx, numbers), operand(ctx, others));
  int checked = 0;
  const auto check = [&](const char* name, auto&& made) {
    INFO(name);
    const op_info& op = *find(name);
    std::vector<const_tensor_view> in;
    std::vector<operand> given;
    for (const operand_info& o : op.in) {
      const bool takes_float = std::find(o.types.begin(), o.types.end(), dtype::f32) != o.types.end();
      in.push_back(takes_float ? const_tensor_view(x) : const_tensor_view(boolean));
      given.push_back(takes_float ? operand(x) : operand(boolean));
    }
    given.resize(4);
    CHECK(identity(ctx, made(given)) == by_name(ctx, name, in));
    ++checked;
  };
#define REPDL_ARGUMENTS_1(o) o[0]
#define REPDL_ARGUMENTS_2(o) o[0], o[1]
#define REPDL_ARGUMENTS_3(o) o[0], o[1], o[2]
#define REPDL_ARGUMENTS_4(o) o[0], o[1], o[2], o[3]
#define REPDL_ELEMENTWISE(name, arity, ...) \
  check(#name, [](const std::vector<operand>& o) { return name(REPDL_ARGUMENTS_##arity(o)); });
#include "librepdl/ops/elementwise/elementwise.def"
#undef REPDL_ELEMENTWISE
  CHECK(checked == static_cast<int>(ops::elementwise_rows().size()));
}

TEST_CASE("overloads: numbers are rounded once to the format of the call") {
  context ctx({.threads = 1});
  const auto check = [&]<class T>(const std::vector<T>& x, const std::vector<T>& tenth) {
    std::vector<T> want(x.size()), out(x.size());
    const auto same = [&] {
      const bool equal = identity(ctx, const_tensor_view(out)) == identity(ctx, const_tensor_view(want));
      out.assign(out.size(), T{});
      return equal;
    };
    add(ctx, x, const_tensor_view(tenth).reshape({}), want);
    add(ctx, x, 0.1, out);
    CHECK(same());
    add(ctx, 0.1, x, out);
    CHECK(same());
    CHECK(identity(ctx, add(operand(ctx, x), 0.1)) == identity(ctx, const_tensor_view(want)));
    for (const int mode : {FE_UPWARD, FE_TOWARDZERO}) {  // the caller's rounding mode is not asked
      std::fesetround(mode);
      add(ctx, x, 0.1, out);
      std::fesetround(FE_TONEAREST);
      CHECK(same());
    }
    const unsigned mxcsr = _mm_getcsr();
    for (const unsigned flush : {0x0040u, 0x8000u, 0x8040u}) {  // nor are FTZ and DAZ: a subnormal number stays one
      std::vector<T> smallest(x.size());
      volatile float least = 0x1p-149f;  // converted here, not by the compiler
      add(ctx, x, 0x1p-149, smallest);
      _mm_setcsr(mxcsr | flush);
      add(ctx, x, float{least}, out);
      _mm_setcsr(mxcsr);
      CHECK(identity(ctx, const_tensor_view(out)) == identity(ctx, const_tensor_view(smallest)));
    }
    out.assign(out.size(), T{});
    // Of calls that are prepared, they live as long as those.
    prepared_calls later = ctx.prepare([&] {
      for (const double wrong : {0.25, 0.5}) add(ctx, x, wrong, out);
      add(ctx, x, 0.1, out);
    });
    later.run();
    CHECK(same());
  };
  // RN(0.1), 0x3fb999999999999a as a double.
  check(std::vector<float>{0, 1, -3}, {std::bit_cast<float>(0x3dcccccdu)});
  check(std::vector<double>{0, 1, -3}, {0.1});
  check(std::vector<f16>{{0}, {0x3c00}}, {{0x2e66}});
  check(std::vector<bf16>{{0}, {0x3f80}}, {{0x3dcd}});

  std::vector<float> out(6, marker);
  const std::vector<float> four(6, 4.0f);
  div(ctx, numbers, 4, out);
  CHECK(identity(ctx, const_tensor_view(out)) == by_name(ctx, "div", {numbers, four}));
  const tensor x(ctx, numbers, {6});
  const tensor negative = less(x, 0.0f);
  const std::vector<float> zero(6, 0.0f), low(6, -1.0f), high(6, 2.0f);
  CHECK(identity(ctx, where(less(x, 0), 0, x)) == by_name(ctx, "where", {negative, zero, x}));
  CHECK(identity(ctx, clip(x, -1, 2)) == by_name(ctx, "clip", {x, low, high}));
}

TEST_CASE("overloads: functions of numbers") {
  context ctx({.threads = 1});
  for (const float x : numbers) {
    float e = marker, s = marker;
    exp(ctx, const_tensor_view(&x, {}), tensor_view(&e, {}));
    CHECK(std::bit_cast<std::uint32_t>(repdl::exp(x)) == std::bit_cast<std::uint32_t>(e));
    sub(ctx, const_tensor_view(&x, {}), const_tensor_view(&e, {}), tensor_view(&s, {}), {.alpha = 3});
    CHECK(std::bit_cast<std::uint32_t>(sub(x, e, {.alpha = 3})) == std::bit_cast<std::uint32_t>(s));
  }
  CHECK(repdl::exp(f16{0x3c00}) == f16{0x4170});  // e
  CHECK(add(0.1, 0.2) == 0.1 + 0.2);
  CHECK((less(1.0f, 2.0f) && !less(2.0, 1.0) && isnan(NAN)));
  CHECK(where(true, 1.0, 2.0) == 1.0);
  static_assert(std::same_as<decltype(less(1.0f, 2.0f)), bool> && std::same_as<decltype(add(1.0, 2.0)), double>);
}

TEST_CASE("overloads: structured functions make their results") {
  context ctx({.threads = 1});
  const tensor x(ctx, numbers, {2, 3}), y(ctx, others, {3, 2}), v(ctx, numbers, {6}), e = exp(y);
  CHECK(identity(ctx, sum(x)) == by_name(ctx, "sum", {x}));
  CHECK(identity(ctx, sum(x, {.axis = 1, .keepdim = true})) ==
        by_name(ctx, "sum", {x}, {{"axis", list{1}}, {"keepdim", true}}));
  CHECK(argmax(x).type() == dtype::i64);
  CHECK(identity(ctx, argmax(x, {.axis = 0})) == by_name(ctx, "argmax", {x}, {{"axis", list{0}}}));
  CHECK(identity(ctx, matmul(x, y)) == by_name(ctx, "matmul", {x, y}));
  CHECK(identity(ctx, matmul(x, exp(y), y.view().slice(0, 0, 1), {.alpha = 2})) ==
        by_name(ctx, "matmul", {x, e, y.view().slice(0, 0, 1)}, {{"alpha", 2.0}}));
  CHECK(identity(ctx, softmax(operand(ctx, numbers))) == by_name(ctx, "softmax", {numbers}));
  CHECK(identity(ctx, convert(x, dtype::bf16)) == by_name(ctx, "convert", {x}, {{"dtype", std::string("bf16")}}));
  const tensor great(ctx, std::vector<float>{1e6f, -1e6f, 3}, {3});
  CHECK(identity(ctx, convert(great, dtype::f8_e4m3fn, {.saturate = true})) ==
        by_name(ctx, "convert", {great}, {{"dtype", std::string("f8_e4m3fn")}, {"saturate", true}}));
  const auto [var_x, mean_x] = var_mean(x, {.axis = 0});
  CHECK(identity(ctx, var_x) == by_name(ctx, "var_mean", {x}, {{"axis", list{0}}}, 0));
  CHECK(identity(ctx, mean_x) == by_name(ctx, "var_mean", {x}, {{"axis", list{0}}}, 1));

  std::vector<float> rstd(2, marker);
  CHECK(identity(ctx, rms_norm(x, {.eps = 0.5}, rstd)) == by_name(ctx, "rms_norm", {x}, {{"eps", 0.5}}));
  CHECK(identity(ctx, const_tensor_view(rstd)) == by_name(ctx, "rms_norm", {x}, {{"eps", 0.5}}, 1));
  CHECK(identity(ctx, layer_norm(x, mean_x, mean_x)) == by_name(ctx, "layer_norm", {x, mean_x, mean_x}));
  const std::vector<std::int64_t> targets{2, 0};
  CHECK(identity(ctx, cross_entropy(x, targets)) == by_name(ctx, "cross_entropy", {x, targets}));
  CHECK(identity(ctx, nll_loss(x, targets, mean_x)) == by_name(ctx, "nll_loss", {x, targets, mean_x}));
  std::vector<float> g{1}, weights{0.75f};
  CHECK(identity(ctx, nll_loss_backward(operand(ctx, const_tensor_view(g).reshape({})), x, targets, mean_x, {},
                                        const_tensor_view(weights).reshape({}))) ==
        by_name(ctx, "nll_loss_backward",
                {const_tensor_view(g).reshape({}), x, targets, mean_x, const_tensor_view(weights).reshape({})}));
  const tensor mask = less(x, 2.5);
  std::vector<float> lse(2, marker);
  CHECK(identity(ctx, attention(y.view().transpose(), x, x)) ==
        by_name(ctx, "attention", {y.view().transpose(), x, x}));
  CHECK(identity(ctx, attention(x, x, y.view().transpose(), {.scale = 0.5, .left = 1}, mask.view().slice(1, 0, 2),
                                weights, lse)) ==
        by_name(ctx, "attention", {x, x, y.view().transpose(), mask.view().slice(1, 0, 2), weights},
                {{"scale", 0.5}, {"left", std::int64_t{1}}}));
  CHECK(identity(ctx, const_tensor_view(lse)) ==
        by_name(ctx, "attention", {x, x, y.view().transpose(), mask.view().slice(1, 0, 2), weights},
                {{"scale", 0.5}, {"left", std::int64_t{1}}}, 1));
  const const_tensor_view turned = y.view().transpose();
  const std::array<tensor, 3> gradients = attention_backward(x, turned, x, x, x, lse, {.scale = 0.5}, {}, weights);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    CHECK(identity(ctx, gradients[i]) ==
          by_name(ctx, "attention_backward", {x, turned, x, x, x, lse, {}, weights}, {{"scale", 0.5}}, i));
  }
  const operand all[] = {x, y, v};
  CHECK(identity(ctx, total_norm(all, {.p = 1})) == by_name(ctx, "total_norm", {x, y, v}, {{"p", 1.0}}));

  const tensor in = image(ctx, {2, 2, 6, 5}), w = image(ctx, {4, 1, 3, 2}), b = image(ctx, {4});
  const attributes shape{{"stride", list{2, 1}}, {"padding", list{1, 1, 0, 0}}, {"groups", std::int64_t{2}}};
  const conv2d_options o{.stride = {2, 1}, .padding = {1, 0}, .groups = 2};
  const tensor out = conv2d(in, w, b, o);
  CHECK(identity(ctx, out) == by_name(ctx, "conv2d", {in, w, b}, shape));
  CHECK(identity(ctx, conv2d(in, w, o)) == by_name(ctx, "conv2d", {in, w}, shape));
  CHECK(identity(ctx, conv2d(in, w, {}, o)) == by_name(ctx, "conv2d", {in, w}, shape));
  attributes to_x = shape, to_w = shape;
  to_x.push_back({"size", list{6, 5}});
  to_w.push_back({"kernel", list{3, 2}});
  CHECK(identity(ctx, conv2d_backward_x(out, w, in.view().spec(), o)) ==
        by_name(ctx, "conv2d_grad_input", {out, w}, to_x));
  CHECK(identity(ctx, conv2d_backward_w(out, in, w.view().spec(), o)) ==
        by_name(ctx, "conv2d_grad_weight", {out, in}, to_w));
  CHECK(identity(ctx, conv2d_backward_bias(out)) == by_name(ctx, "conv2d_grad_bias", {out}));
  const auto [greatest, where_it_is] = max_pool2d_with_indices(in, {.kernel = 2});
  CHECK(identity(ctx, greatest) == by_name(ctx, "max_pool2d", {in}, {{"kernel", list{2, 2}}}));
  CHECK(identity(ctx, where_it_is) == by_name(ctx, "max_pool2d_with_indices", {in}, {{"kernel", list{2, 2}}}, 1));
  const tensor pooled = avg_pool2d(in, {.kernel = 2});
  CHECK(identity(ctx, avg_pool2d_backward(pooled, in.view().spec(), {.kernel = 2})) ==
        by_name(ctx, "avg_pool2d_backward", {pooled}, {{"kernel", list{2}}, {"size", list{6, 5}}}));
  const tensor adaptive = adaptive_avg_pool2d(in, {.size = {4, 3}});
  CHECK(identity(ctx, adaptive) == by_name(ctx, "adaptive_avg_pool2d", {in}, {{"size", list{4, 3}}}));
  CHECK(identity(ctx, adaptive_avg_pool2d_backward(adaptive, in.view().spec())) ==
        by_name(ctx, "adaptive_avg_pool2d_backward", {adaptive}, {{"size", list{6, 5}}}));
  const tensor larger = upsample_nearest2d(in, {dtype::f32, {2, 2, 9, 9}});
  CHECK(identity(ctx, larger) == by_name(ctx, "upsample_nearest2d", {in}, {{"size", list{9, 9}}}));
  CHECK(identity(ctx, upsample_nearest2d_backward(larger, in.view().spec())) ==
        by_name(ctx, "upsample_nearest2d_backward", {larger}, {{"size", list{6, 5}}}));
  CHECK(identity(ctx, embedding_backward(x, targets, {dtype::f32, {4, 3}})) ==
        by_name(ctx, "embedding_backward", {x, targets}, {{"rows", std::int64_t{4}}}));
}

TEST_CASE("overloads: results without operands, and the generator") {
  context ctx({.threads = 1});
  generator g{.seed = 5};
  const auto at = [](std::int64_t stream) { return attributes{{"seed", std::int64_t{5}}, {"stream", stream}}; };
  const auto with = [&](std::int64_t stream, attribute a, attribute b = {}) {
    attributes all = at(stream);
    all.push_back(std::move(a));
    if (!b.name.empty()) all.push_back(std::move(b));
    return all;
  };
  CHECK(identity(ctx, uniform(ctx, g, {dtype::f32, {3, 4}})) ==
        by_name(ctx, "uniform", {}, with(0, {"shape", list{3, 4}})));
  CHECK(identity(ctx, normal(ctx, g, {dtype::f64, {5}})) ==
        by_name(ctx, "normal", {}, with(1, {"shape", list{5}}, {"dtype", std::string("f64")})));
  CHECK(identity(ctx, exponential(ctx, g, {dtype::f32, {5}})) ==
        by_name(ctx, "exponential", {}, with(2, {"shape", list{5}})));
  CHECK(identity(ctx, bernoulli(ctx, g, {dtype::boolean, {5}})) ==
        by_name(ctx, "bernoulli", {}, with(3, {"shape", list{5}})));
  CHECK(identity(ctx, randint(ctx, g, {dtype::i64, {5}}, {.high = 9})) ==
        by_name(ctx, "randint", {}, with(4, {"shape", list{5}}, {"high", std::int64_t{9}})));
  CHECK(identity(ctx, permutation(ctx, g, {dtype::i64, {5}})) ==
        by_name(ctx, "permutation", {}, with(5, {"n", std::int64_t{5}})));
  const tensor weights = uniform(ctx, g, {dtype::f32, {6}}), dropped = dropout(g, weights);
  CHECK(identity(ctx, dropped) == by_name(ctx, "dropout", {weights}, at(7)));
  CHECK(identity(ctx, multinomial(g, weights, {dtype::i64, {2}})) ==
        by_name(ctx, "multinomial", {weights}, with(8, {"num_samples", std::int64_t{2}})));
  CHECK(g.stream == 9);
  CHECK(identity(ctx, linspace(ctx, {dtype::f16, {4}}, {.start = 0, .end = 3})) ==
        by_name(ctx, "linspace", {},
                {{"start", 0.0}, {"end", 3.0}, {"count", std::int64_t{4}}, {"dtype", std::string("f16")}}));
  CHECK(identity(ctx, arange(ctx, {dtype::f32, {4}})) ==
        by_name(ctx, "arange", {}, {{"start", 0.0}, {"step", 1.0}, {"count", std::int64_t{4}}}));
}

TEST_CASE("overloads: contexts of results") {
  // Contexts outlive their tensors.
  context first({.threads = 1}), assigned({.threads = 1});
  std::unique_ptr<context> moved;
  const tensor x(first, numbers, {6});
  moved = std::make_unique<context>(std::move(first));
  CHECK(x.handle() == moved.get());
  CHECK(identity(*moved, add(exp(x), 1)) == identity(*moved, add(exp(operand(*moved, numbers)), 1)));
  assigned = std::move(*moved);
  CHECK(exp(x).handle() == &assigned);

  context other({.threads = 1});
  const tensor y(other, others, {6});
  CHECK(message([&] { add(x, y); }) ==
        "context_mismatch: add: operands: expected tensors of one context, got tensors of several");
  CHECK(message([&] { add(numbers, 1); }) ==
        "no_context: add: operands: expected a repdl::tensor, or an operand(ctx, view), among them, got none");
  CHECK(message([&] { other.prepare([&] { add(y, 1); }); }) ==
        "prepared_result: add: out: expected a tensor, in calls that are prepared, got none");
  generator g;
  CHECK(message([&] {
          other.prepare([&] { uniform(other, g, {dtype::f32, {2}}); });
        }) == "prepared_result: uniform: out: expected a tensor, in calls that are prepared, got none");
  // A call that fails leaves nothing behind: the next one writes where it is told.
  CHECK(message([&] { add(y, tensor(other, others, {2, 3})); }).starts_with("broadcast: add"));
  std::vector<float> out(6, marker);
  CHECK(message([&] { exp(other, y, tensor_view()); }).starts_with("absent_operand: exp: out"));
  exp(other, y, out);
  CHECK(identity(other, const_tensor_view(out)) == identity(other, exp(y)));

  CHECK(message([&] { operand((std::int64_t{1} << 53) + 1); }) ==
        "number_format: operand: number: expected an integer that is a double, got 9007199254740993");
  CHECK(*operand(std::numeric_limits<std::int64_t>::min()).number() == -0x1p63);
  const tensor boolean = less(y, 1);
  CHECK(message([&] { logical_and(boolean, 1); }) ==
        "number_format: logical_and: operands: expected one of a floating-point format beside a number, got none");
  CHECK(message([&] {
          matmul(operand(other, y.view().reshape({2, 3})), 2.0f);
        }) == "operand_rank: matmul: b: expected a matrix or a batch of them (rank >= 2), got rank 0");
  CHECK(sum(y).item<float>() == 4.8f);
}

TEST_CASE("overloads: one size for all axes, one for each, one for each side") {
  context ctx({.threads = 1});
  const tensor x = image(ctx, {1, 2, 8, 7}), w = image(ctx, {3, 2, 3, 3});
  const auto conv = [&](const conv2d_options& o) { return identity(ctx, conv2d(x, w, o)); };
  CHECK(conv({.stride = 2, .padding = 1, .dilation = 1}) ==
        conv({.stride = {2, 2}, .padding = {1, 1, 1, 1}, .dilation = {1, 1}}));
  CHECK(conv({.stride = {2, 1}, .padding = {1, 0}}) ==
        conv({.stride = sizes{2, 1}, .padding = std::vector{1, 1, 0, 0}}));
  CHECK(conv({.stride = {}, .padding = {}, .dilation = {}}) == conv({}));
  CHECK(conv({.padding = {1, 0}}) != conv({.padding = {0, 1}}));
  const auto pool = [&](const max_pool2d_options& o) { return identity(ctx, max_pool2d(x, o)); };
  CHECK(pool({.kernel = 2}) == pool({.kernel = {2, 2}, .stride = {2, 2}, .padding = {0, 0, 0, 0}}));
  CHECK(pool({.kernel = {3, 2}, .padding = {1, 0}}) ==
        pool({.kernel = {3, 2}, .stride = {3, 2}, .padding = {1, 1, 0, 0}}));
  CHECK(identity(ctx, avg_pool2d(x, {.kernel = 3, .stride = 1})) ==
        identity(ctx, avg_pool2d(x, {.kernel = {3, 3}, .stride = {1, 1}})));
  CHECK(identity(ctx, adaptive_max_pool2d(x, {.size = 2})) == identity(ctx, adaptive_max_pool2d(x, {.size = {2, 2}})));

  CHECK(message([&] {
          conv({.stride = {1, 1, 1}});
        }) == "attribute_value: conv2d: stride: expected 1 or 2 integers, got 3");
  CHECK(message([&] {
          conv({.padding = {1, 1, 1}});
        }) == "attribute_value: conv2d: padding: expected 1, 2 or 4 integers, got 3");
  CHECK(message([&] { conv({.dilation = 0}); }) ==
        "attribute_value: conv2d: dilation: expected two sizes in [1, 2^31), got 0,0");
  CHECK(message([&] {
          pool({.kernel = {2, 2, 2}});
        }) == "attribute_value: max_pool2d: kernel: expected 1 or 2 integers, got 3");
  CHECK(message([&] {
          adaptive_avg_pool2d(x, {.size = {1, 2, 3}});
        }) == "attribute_value: adaptive_avg_pool2d: size: expected 1 or 2 integers, got 3");
  // Two numbers were the top and the bottom before; of rows alone they say the same sides.
  CHECK(per_axis(3).list() == sizes{3});
  CHECK(per_axis{3, 4}.list() == sizes{3, 4});
  CHECK(per_axis().list().empty());
  static_assert(!std::is_convertible_v<double, per_axis> && !std::is_convertible_v<bool, per_axis>);
}

TEST_CASE("overloads: optional operands are parameters") {
  context ctx({.threads = 1});
  const tensor x = image(ctx, {2, 2, 3, 3}), w = image(ctx, {2, 2, 2, 2}), b = image(ctx, {2}),
               rows = image(ctx, {2, 3});
  const tensor like_rows = image(ctx, {3}), plane = image(ctx, {2, 3}, 0.9f);
  tensor in_options(ctx, dtype::f32, {2, 2, 2, 2}), parameter(ctx, dtype::f32, {2, 2, 2, 2});
  conv2d(ctx, x, w, in_options, {.bias = b});
  conv2d(ctx, x, w, b, parameter);
  CHECK(identity(ctx, in_options) == identity(ctx, parameter));
  conv2d(ctx, x, w, in_options);
  conv2d(ctx, x, w, {}, parameter);
  CHECK(identity(ctx, in_options) == identity(ctx, parameter));

  tensor of_rows(ctx, dtype::f32, {2, 3}), other(ctx, dtype::f32, {2, 3});
  layer_norm(ctx, rows, of_rows, {.weight = like_rows, .bias = like_rows});
  layer_norm(ctx, rows, like_rows, like_rows, other);
  CHECK(identity(ctx, of_rows) == identity(ctx, other));
  binary_cross_entropy_with_logits(ctx, rows, plane, of_rows,
                                   {.reduction = reduction::none, .weight = plane, .pos_weight = like_rows});
  binary_cross_entropy_with_logits(ctx, rows, plane, plane, like_rows, other, {.reduction = reduction::none});
  CHECK(identity(ctx, of_rows) == identity(ctx, other));

  CHECK(message([&] { conv2d(ctx, x, w, b, parameter, {.bias = b}); }) ==
        "input_count: conv2d: bias: expected one, as an operand, got another one in the options");
  CHECK(message([&] { conv2d_backward_x(ctx, x, w, parameter, {.bias = b}); }) ==
        "input_count: conv2d_grad_input: bias: expected none, got one of shape [2]");
  CHECK(message([&] { conv2d(x, w, like_rows); }) ==
        "length_mismatch: conv2d: bias: expected 2 elements, one per output channel, got 3");
}

TEST_CASE("overloads: cross_entropy of probabilities") {
  context ctx({.threads = 1});
  const tensor logits(ctx, numbers, {2, 3}), p = softmax(operand(ctx, const_tensor_view(others).reshape({2, 3})));
  const tensor weight(ctx, std::vector{1.0f, 2.0f, 0.5f}, {3});
  CHECK(identity(ctx, cross_entropy(logits, p)) == by_name(ctx, "cross_entropy_probabilities", {logits, p}));
  const attributes attrs{{"reduction", std::string("sum")}, {"label_smoothing", 0.25}};
  const cross_entropy_options o{.reduction = reduction::sum, .label_smoothing = 0.25};
  CHECK(identity(ctx, cross_entropy(logits, p, weight, o)) ==
        by_name(ctx, "cross_entropy_probabilities", {logits, p, weight}, attrs));
  const tensor g(ctx, std::vector{0.75f}, {});
  CHECK(identity(ctx, cross_entropy_backward(g, logits, p, weight, o)) ==
        by_name(ctx, "cross_entropy_probabilities_backward", {g, logits, p, weight}, attrs));
  CHECK(message([&] { cross_entropy(logits, p, {.ignore_index = 1}); }) ==
        "attribute_value: cross_entropy: ignore_index: expected its default beside probabilities, which have no index, "
        "got 1");
}

// One scheme: the gradient of NAME to an operand is NAME_backward_OPERAND, to the first or to all that are alike NAME_backward.
TEST_CASE("overloads: names of gradients") {
  std::map<std::string, const op_info*> functions;
  for (const op_info& o : operations()) {
    CHECK(find(o.name) == &o);
    CHECK(find(o.function) == &o);
    CHECK(functions.emplace(o.function, &o).second);
  }
  for (const auto& entry : functions) {
    const std::string& name = entry.first;
    INFO(name);
    CHECK(name.find("_grad_") == (name == "clip_grad_norm" ? 4 : std::string::npos));
    const std::size_t at = name.find("_backward");
    if (at == std::string::npos) continue;
    const auto forward = functions.find(name.substr(0, at));
    const std::string to = name.substr(at + std::string("_backward").size());
    if (forward == functions.end()) {
      CHECK((name == "embedding_backward"));  // embedding itself is indexing
    } else if (!to.empty()) {
      const std::vector<operand_info>& in = forward->second->in;
      const bool is_operand =
          std::any_of(in.begin(), in.end(), [&](const operand_info& i) { return "_" + i.name == to; });
      CHECK(is_operand);
    }
  }
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST_CASE("overloads: names of the version before") {
  context ctx({.threads = 1});
  const tensor x = image(ctx, {1, 2, 4, 4}), w = image(ctx, {2, 2, 2, 2});
  tensor old_result(ctx, dtype::f32, {1, 2, 4, 4}), result(ctx, dtype::f32, {1, 2, 4, 4});
  const tensor g = conv2d(x, w, {.stride = repdl::pair{.h = 1, .w = 2}, .padding = padding2d{.top = 1, .bottom = 0}});
  CHECK(identity(ctx, g) == identity(ctx, conv2d(x, w, {.stride = {1, 2}, .padding = {1, 0, 0, 0}})));
  conv2d_grad_input(ctx, g, w, old_result, {.stride = repdl::pair{1, 2}, .padding = padding2d{1, 0, 0, 0}});
  conv2d_backward_x(ctx, g, w, result, {.stride = {1, 2}, .padding = {1, 0, 0, 0}});
  CHECK(identity(ctx, old_result) == identity(ctx, result));
  const tensor logits(ctx, numbers, {2, 3}), p(ctx, others, {2, 3});
  float loss = marker;
  cross_entropy_probabilities(ctx, logits, p, tensor_view(&loss, {}));
  CHECK(identity(ctx, const_tensor_view(&loss, {})) == identity(ctx, cross_entropy(logits, p)));
  repdl::prepared calls = ctx.prepare([&] { exp(ctx, x, result); });
  calls.run();
  CHECK(identity(ctx, result) == identity(ctx, exp(x)));
  static_assert(repdl::element<float> && !repdl::element<char> && repdl::integer<int> && !repdl::integer<bool>);
}
#pragma GCC diagnostic pop

TEST_SUITE_END();
