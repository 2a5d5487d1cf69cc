// batch_norm with statistics over batches through the public API: against the oracle in every way that must not matter
// (instruction set, threads, first tier, layout, which outputs are wanted, whether statistics are updated in place), special values
// by their bits.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "reference/covering.hpp"
#include "reference/evaluate.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/placed_calls.hpp"
#include "tests/helpers/settings.hpp"

using namespace repdl;
using reference::array;
using reference::sample_class;
using reference::shape_list;
using tests::available;
using tests::bits;
using tests::call_case;
using tests::floats;
using tests::inf;
using tests::inf_bits;
using tests::layout;
using tests::nan;
using tests::nan_bits;
using tests::placed_tensor;
using tests::row;
using tests::row_classes;
using tests::run;

namespace {

// operands: 1 weight, 2 bias, 3 both.
call_case sampled(const std::string& op, sample_class kind, const shape_list& x, std::int64_t channels, int operands,
                  attributes attrs, std::uint64_t stream) {
  const bool gradient = op.ends_with("backward"), to_weight = op.ends_with("weight_backward");
  const shape_list each{channels};
  std::vector<shape_list> shapes{x};
  if (to_weight) shapes.push_back(x);
  if (!gradient || to_weight) shapes.push_back(each);
  shapes.push_back(each);
  if (to_weight) operands = 0;
  if (gradient) operands &= 1;
  if (operands != 0) shapes.push_back((operands & 1) != 0 ? each : reference::absent_shape);
  if ((operands & 2) != 0) shapes.push_back(each);
  return {op, reference::fill_inputs(op, kind, shapes, attrs, 29, stream), attrs};
}

constexpr const char* operations_given[] = {"batch_norm_running", "batch_norm_inference",
                                            "batch_norm_inference_backward", "batch_norm_inference_weight_backward"};
constexpr double every_eps[] = {0, 1e-5, 0x1p-200, 1, 0x1p-20, 0x1.8p199};
constexpr double every_momentum[] = {0.5, 0.1, 0.25, 0, 1, 0x1p-200, 1 - 0x1p-53};

}  // namespace

TEST_CASE("given norms: every class, tier, number of threads, layout and choice of outputs, against the oracle" *
          doctest::test_suite("values")) {
  const std::vector<tests::setting> settings = tests::every_setting();
  reference::covering some(12);
  reference::word_stream words(37, 0);
  std::uint64_t stream = 0;
  for (const std::int64_t n : {1, 2, 3, 7, 8, 33, 64, 257, 1100, 8300}) {
    for (const sample_class kind : row_classes) {
      if (n > 1000 && kind != sample_class::normal_range && (n > 2000 || kind != sample_class::near_ties)) continue;
      for (const std::string op : operations_given) {
        const std::int64_t rows = n < 100 ? 6 : 2, half = (n + 1) / 2;
        const std::pair<shape_list, std::int64_t> shapes[] = {{{n, 5}, 1}, {{2, rows, half}, 1}, {{3, n, rows}, 2}};
        for (const auto& [x, axis] : shapes) {
          attributes attrs{{"eps", every_eps[words.below(std::size(every_eps))]}};
          if (axis != 1) attrs.push_back({"axis", axis});
          if (op == "batch_norm_running")
            attrs.push_back({"momentum", every_momentum[words.below(std::size(every_momentum))]});
          const auto operands = static_cast<int>(words.below(4));
          const call_case c = sampled(op, kind, x, x[static_cast<std::size_t>(axis)], operands, attrs, ++stream);
          const std::vector<array> want = reference::evaluate_all(c.op, c.in, c.attrs);
          std::int64_t count = 0;
          for (const array& a : want) count += a.count();
          for (std::size_t i = 0; i < settings.size(); ++i) {
            const tests::setting& s = settings[i];
            if (!some.takes(static_cast<int>(i), {find(c.op)->id, static_cast<int>(kind)})) continue;
            if (n > 1000 && s.first == tier::exact) continue;
            CAPTURE(c.op);
            CAPTURE(n);
            CAPTURE(axis);
            CAPTURE(operands);
            CAPTURE(std::string(name_of(kind)));
            CAPTURE(s.isa);
            CAPTURE(static_cast<int>(s.first));
            s.ctx->reset_statistics();
            CHECK(run(*s.ctx, c) == want);
            const statistics decided = s.ctx->read_statistics();
            CHECK(decided.elements[0] + decided.elements[1] + decided.elements[2] + decided.elements[3] == count);
            const layout from = tests::layouts[words.below(6)], to = tests::layouts[words.below(6)];
            const unsigned wanted = 1 | words.below(16) << 1;
            const bool in_place = words.flip();
            const std::vector<array> got = run(*s.ctx, c, from, to, wanted, in_place);
            for (std::size_t o = 0; o < want.size(); ++o)
              CHECK(got[o] == ((wanted >> o & 1) != 0 ? want[o] : array::none()));
          }
        }
      }
    }
  }
}

TEST_CASE("given norms: the result of batch_norm_running, and of inference from exact statistics, is batch_norm's") {
  context ctx;
  for (const sample_class kind : row_classes) {
    const call_case c = sampled("batch_norm_running", kind, {6, 4, 5}, 4, 3, {}, 100);
    const call_case plain{"batch_norm", {c.in[0], c.in[3], c.in[4]}, {}};
    const std::vector<array> running = run(ctx, c), alone = run(ctx, plain);
    for (std::size_t o = 0; o < 3; ++o) CHECK(running[o] == alone[o]);
  }
  // m = 3, v = 4; 1 and 5.
  const array x = floats({1, 5, 5, 1}, {4, 1}), weight = row({3}), bias = row({0.1f});
  const attributes eps{{"eps", 0x1p-20}};
  CHECK(run(ctx, {"batch_norm_inference", {x, row({3}), row({4}), weight, bias}, eps})[0] ==
        run(ctx, {"batch_norm", {x, weight, bias}, eps})[0]);
}

TEST_CASE("given norms: long rows, and many of them, on several threads") {
  context one({.threads = 1});
  std::uint64_t stream = 7000;
  for (const std::string& isa : available()) {
    context several({.threads = 4, .isa = isa});
    for (const std::string op : operations_given) {
      for (const shape_list& x :
           {shape_list{70'001, 3}, {2, 3, 40'000}, {5, 20'000, 2}, {1, 1, 150'000}, {30'000, 8}}) {
        const call_case c = sampled(op, sample_class::normal_range, x, x[1], 3, {}, ++stream);
        CHECK(run(several, c) == run(one, c));
      }
    }
  }
}

TEST_CASE("given norms: special values by their bits") {
  context ctx;
  using patterns = std::vector<std::uint32_t>;
  const auto of = [&](const std::string& op, const std::vector<array>& in, attributes attrs) {
    return run(ctx, {op, in, std::move(attrs)}).back().patterns();
  };
  const std::uint32_t minus_zero = bits(-0.0f), minus_inf = bits(-inf);
  // One channel: x = (0, 2), m = 1, v n / (n - 1) = 2.
  const auto running = [&](const std::vector<float>& x, float mean, float var, double momentum) {
    const auto n = static_cast<std::int64_t>(x.size());
    const std::vector<array> all =
        run(ctx, {"batch_norm_running", {floats(x, {n, 1}), row({mean}), row({var})}, {{"momentum", momentum}}});
    return patterns{static_cast<std::uint32_t>(all[3].get(0)), static_cast<std::uint32_t>(all[4].get(0))};
  };
  CHECK(running({0, 2}, 3, 4, 0.5) == patterns{bits(2), bits(3)});
  CHECK(running({0, 2}, 3, 4, 0) == patterns{bits(3), bits(4)});
  CHECK(running({0, 2}, 3, 4, 1) == patterns{bits(1), bits(2)});
  CHECK(running({0, 2}, -1, -2, 0.5) == patterns{0, 0});
  CHECK(running({-0.0f, -0.0f}, -0.0f, -0.0f, 0.5) == patterns{0, 0});
  CHECK(running({0, 2}, inf, -inf, 0.5) == patterns{inf_bits, minus_inf});
  CHECK(running({0, 2}, inf, -inf, 1) == patterns{nan_bits, nan_bits});
  CHECK(running({0, inf}, 3, 4, 0.5) == patterns{inf_bits, nan_bits});
  CHECK(running({0, inf}, -inf, 4, 0.5) == patterns{nan_bits, nan_bits});
  CHECK(running({0, inf}, 3, 4, 0) == patterns{nan_bits, nan_bits});
  CHECK(running({7}, 3, 4, 0.5) == patterns{bits(5), nan_bits});
  CHECK(running({7}, 3, 4, 0) == patterns{bits(3), nan_bits});
  CHECK(run(ctx, {"batch_norm_running", {array(dtype::f32, {0, 1}), row({3}), row({4})}, {}})[3].get(0) == nan_bits);
  // 2^23 + 1/2 and 2^23 + 3/2: ties to even; with something tiny, away from it.
  CHECK(running({1, 1}, 0x1p24f, 0, 0.5)[0] == bits(0x1p23f));
  CHECK(running({3, 3}, 0x1p24f, 0, 0.5)[0] == bits(0x1p23f + 2));
  CHECK(running({1, 1 + 0x1p-23f}, 0x1p24f, 0, 0.5)[0] == bits(0x1p23f + 1));
  CHECK(running({-0x1.fffffep127f, 0x1.fffffep127f}, 0x1.fffffep127f, 0x1.fffffep127f, 1) == patterns{0, inf_bits});

  const attributes eps0{{"eps", 0.0}}, eps1{{"eps", 1.0}};
  const auto inference = [&](const std::vector<float>& x, float mean, float var, const attributes& attrs) {
    return of("batch_norm_inference", {floats(x, {static_cast<std::int64_t>(x.size()), 1}), row({mean}), row({var})},
              attrs);
  };
  CHECK(inference({1, 3, 5}, 3, 4, eps0) == patterns{bits(-1), 0, bits(1)});
  CHECK(inference({1, 3, 5}, 3, 3, eps1) == patterns{bits(-1), 0, bits(1)});
  CHECK(inference({-0.0f, 0, inf, nan}, 0, 3, eps1) == patterns{0, 0, inf_bits, nan_bits});
  CHECK(inference({1, 3, 5}, 3, 0, eps0) == patterns{minus_inf, nan_bits, inf_bits});
  CHECK(inference({1, 3, 5}, 3, -0.0f, {{"eps", -0.0}}) == patterns{minus_inf, nan_bits, inf_bits});
  CHECK(inference({1, 3, 5, inf}, 3, inf, eps0) == patterns{minus_zero, 0, 0, nan_bits});
  CHECK(inference({1, 3}, 3, -2, eps1) == patterns{nan_bits, nan_bits});
  CHECK(inference({1, 3}, 3, -1, eps1) == patterns{minus_inf, nan_bits});
  CHECK(inference({1, inf, -inf}, inf, 4, eps0) == patterns{minus_inf, nan_bits, minus_inf});
  CHECK(inference({1, 3}, nan, 4, eps0) == patterns{nan_bits, nan_bits});
  const auto weighted = [&](float x, float weight, const array& bias) {
    return of("batch_norm_inference", {floats({x}, {1, 1}), row({3}), row({4}), row({weight}), bias}, eps0)[0];
  };
  CHECK(weighted(3, -1, array::none()) == minus_zero);
  CHECK(weighted(3, -1, row({-0.0f})) == 0);
  CHECK(weighted(3, inf, row({0})) == nan_bits);
  CHECK(weighted(5, inf, row({0})) == inf_bits);
  CHECK(weighted(5, inf, row({-inf})) == nan_bits);
  CHECK(weighted(5, 2, row({-inf})) == minus_inf);
  CHECK(weighted(5, 0x1p-24f, row({1})) == bits(1));
  CHECK(weighted(5, 0x1p-24f, row({1 + 0x1p-23f})) == bits(1 + 0x1p-22f));

  const auto to_x = [&](const std::vector<float>& g, float var, float weight, const attributes& attrs) {
    return of("batch_norm_inference_backward",
              {floats(g, {static_cast<std::int64_t>(g.size()), 1}), row({var}), row({weight})}, attrs);
  };
  CHECK(to_x({1, 0, -0.0f, inf, nan}, 4, -3, eps0) == patterns{bits(-1.5f), minus_zero, 0, minus_inf, nan_bits});
  CHECK(to_x({1, 0, -1}, 0, 1, eps0) == patterns{inf_bits, nan_bits, minus_inf});
  CHECK(to_x({1, -1, inf}, inf, 1, eps0) == patterns{0, minus_zero, nan_bits});
  CHECK(to_x({1, 0}, -2, 1, eps1) == patterns{nan_bits, nan_bits});
  CHECK(to_x({0x1p-149f, 0x1.8p-148f}, 4, 1, eps0) == patterns{0, 2});

  const auto to_weight = [&](const std::vector<float>& g, const std::vector<float>& x, float mean, float var) {
    const shape_list shape{static_cast<std::int64_t>(g.size()), 1};
    return of("batch_norm_inference_weight_backward", {floats(g, shape), floats(x, shape), row({mean}), row({var})},
              eps0)[0];
  };
  CHECK(to_weight({1, 2}, {4, 5}, 3, 4) == bits(2.5f));
  CHECK(to_weight({1, -1}, {4, 4}, 3, 4) == 0);
  CHECK(to_weight({-1, -1}, {3, 3}, 3, 4) == 0);
  CHECK(to_weight({1, -1}, {4, 4}, 3, 0) == nan_bits);
  CHECK(to_weight({1, -1}, {4, 5}, 3, 0) == minus_inf);
  CHECK(to_weight({inf, 1}, {4, 4}, 3, 4) == inf_bits);
  CHECK(to_weight({inf, 1}, {3, 4}, 3, 4) == nan_bits);
  CHECK(to_weight({1, 1}, {4, 4}, inf, 4) == nan_bits);
  CHECK(to_weight({1, 1}, {4, 4}, 3, inf) == nan_bits);
  CHECK(to_weight({1, 1}, {4, 4}, 3, -1) == nan_bits);
  CHECK(to_weight({0x1p24f, 1}, {4, 4}, 3, 1) == bits(0x1p24f));
  const array none(dtype::f32, {0, 1});
  CHECK(of("batch_norm_inference_weight_backward", {none, none, row({3}), row({4})}, eps0) == patterns{0});
  CHECK(of("batch_norm_inference_weight_backward", {none, none, row({3}), row({0})}, eps0) == patterns{nan_bits});
}

TEST_CASE("given norms: the typed functions") {
  context ctx;
  const std::vector<float> x{1, 2, 3, 6, -1, -2, -3, -6}, g{1, 1, 1, 1, 2, 2, 2, 2};
  std::vector<float> y(8), mean(2), rstd(2), running_mean{1, 1}, running_var{0, 2}, w{2, -1}, b{1, 0}, sums(2);
  const const_tensor_view in(x.data(), {2, 4}), of_channels(w.data(), {2}), bias(b.data(), {2});
  const tensor_view out(y.data(), {2, 4}), m(running_mean), v(running_var);
  batch_norm_running(ctx, in, m, v, out, {.mean = m, .var = v},
                     {.axis = 0, .eps = 0.5, .momentum = 0.5, .weight = of_channels, .bias = bias},
                     {.mean = tensor_view(mean), .rstd = tensor_view(rstd)});
  CHECK(y == std::vector<float>{-1, 0, 1, 4, -1, -.5f, 0, 1.5f});
  CHECK(mean == std::vector<float>{3, -3});
  CHECK(rstd == std::vector<float>{.5f, .5f});
  CHECK(running_mean == std::vector<float>{2, -1});
  CHECK(running_var == std::vector<float>{static_cast<float>(7.0 / 3), static_cast<float>(10.0 / 3)});
  running_var = {2, 14};
  batch_norm_inference(ctx, in, m, v, out, {.axis = 0, .eps = 2, .weight = of_channels, .bias = bias});
  CHECK(y == std::vector<float>{0, 1, 2, 5, 0, .25f, .5f, 1.25f});
  batch_norm_inference_backward(ctx, const_tensor_view(g.data(), {2, 4}), v, out,
                                {.axis = 0, .eps = 2, .weight = of_channels});
  CHECK(y == std::vector<float>{1, 1, 1, 1, -.5f, -.5f, -.5f, -.5f});
  batch_norm_inference_backward_weight(ctx, const_tensor_view(g.data(), {2, 4}), in, m, v, tensor_view(sums), 0, 2);
  CHECK(sums == std::vector<float>{2, -4});
}
