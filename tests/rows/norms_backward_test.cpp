// The gradients of layer_norm, rms_norm, group_norm and batch_norm through the public API: against the oracle in every way that
// must not matter (instruction set, threads, first tier, layout), special values by their bits, and that neither a row's place
// nor the order of its elements does.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "reference/covering.hpp"
#include "reference/evaluate.hpp"
#include "reference/layout.hpp"
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
using tests::layout;
using tests::nan;
using tests::nan_bits;
using tests::placed_tensor;
using tests::row;
using tests::row_classes;
using tests::scalar;

namespace {

using integers = std::vector<std::int64_t>;
using patterns = std::vector<std::uint32_t>;
constexpr std::uint32_t minus_zero = 0x80000000;

bool has_mean(const std::string& op) { return !op.starts_with("rms"); }
bool is_to_weight(const std::string& op) { return op.ends_with("weight_backward"); }

call_case sampled(const std::string& op, sample_class kind, const shape_list& x, bool weight, attributes attrs,
                  std::uint64_t stream) {
  const reference::norm_layout l = reference::norm_layout_of(op, x, attrs);
  std::vector<shape_list> shapes{x, x, l.rows.kept_shape};
  if (has_mean(op)) shapes.push_back(l.rows.kept_shape);
  if (weight && !is_to_weight(op)) shapes.push_back(l.weight);
  return {op, reference::fill_inputs(op, kind, shapes, attrs, 29, stream), attrs};
}

array gradient(context& ctx, const call_case& c, layout from = layout::contiguous, layout to = layout::contiguous) {
  return run(ctx, c, from, to).at(0);
}

// Shapes of rows, or of sums to a weight, of about n elements: one after the other, and across.
std::vector<call_case> cases(sample_class kind, std::int64_t n, bool weight, std::uint64_t stream) {
  const std::int64_t rows = n < 100 ? 6 : 2, half = (n + 1) / 2;
  std::vector<call_case> all;
  const auto add = [&](const std::string& op, const shape_list& x, const attributes& attrs = {}) {
    all.push_back(sampled(op, kind, x, weight, attrs, stream++));
  };
  const attributes two{{"groups", std::int64_t{2}}};
  add("layer_norm_backward", {rows, n});
  add("layer_norm_backward", {half, rows, 2}, {{"axis", integers{2, 0}}});
  add("rms_norm_backward", {rows, n});
  add("rms_norm_backward", {n, rows}, {{"axis", integers{0}}});
  add("group_norm_backward", {rows, 4, half}, two);
  add("batch_norm_backward", {n, 5});
  add("batch_norm_backward", {2, rows, half});
  add("layer_norm_weight_backward", {n, rows});
  add("layer_norm_weight_backward", {rows, half, 2}, {{"axis", integers{0}}});
  add("rms_norm_weight_backward", {rows, n}, {{"axis", integers{-2}}});
  add("rms_norm_weight_backward", {half, rows, 2}, {{"axis", integers{1}}});
  add("group_norm_weight_backward", {half, 4, 2}, two);
  add("group_norm_weight_backward", {2, 6, half}, two);
  add("batch_norm_weight_backward", {n, 5});
  add("batch_norm_weight_backward", {2, rows, half});
  return all;
}

}  // namespace

TEST_CASE("norm gradients: every class of rows, every tier, threads and layouts, against the oracle" *
          doctest::test_suite("values")) {
  const std::vector<tests::setting> settings = tests::every_setting();
  reference::covering some(12);
  reference::word_stream words(19, 0);
  std::uint64_t stream = 0;
  for (const std::int64_t n : {1, 2, 3, 7, 10, 33, 64, 257, 1100, 8300}) {
    for (const sample_class kind : row_classes) {
      if (n > 1000 && kind != sample_class::normal_range && (n > 2000 || kind != sample_class::near_ties)) continue;
      const bool weight = words.flip();
      for (const call_case& c : cases(kind, n, weight, stream += 32)) {
        const array want = reference::evaluate(c.op, c.in, c.attrs);
        for (std::size_t i = 0; i < settings.size(); ++i) {
          const tests::setting& s = settings[i];
          if (!some.takes(static_cast<int>(i), {find(c.op)->id, static_cast<int>(kind)})) continue;
          if (n > 1000 && s.first == tier::exact) continue;
          CAPTURE(c.op);
          CAPTURE(n);
          CAPTURE(weight);
          CAPTURE(std::string(name_of(kind)));
          CAPTURE(s.isa);
          CAPTURE(static_cast<int>(s.first));
          CAPTURE(s.threads);
          s.ctx->reset_statistics();
          CHECK(gradient(*s.ctx, c) == want);
          const statistics decided = s.ctx->read_statistics();
          CHECK(decided.elements[0] + decided.elements[1] + decided.elements[2] + decided.elements[3] == want.count());
          const layout from = tests::layouts[words.below(6)], to = tests::layouts[words.below(6)];
          CHECK(gradient(*s.ctx, c, from, to) == want);
        }
      }
    }
  }
}

TEST_CASE("norm gradients: bits depend on neither a row's place nor its neighbours nor the order of its elements") {
  context ctx;
  std::uint64_t stream = 6000;
  for (const sample_class kind : row_classes) {
    for (const std::int64_t n : {5, 64, 1500}) {
      for (const std::string op : {"layer_norm_backward", "rms_norm_backward"}) {
        CAPTURE(op);
        CAPTURE(n);
        CAPTURE(std::string(name_of(kind)));
        const int rows = n > 1000 ? 3 : 19;
        ++stream;
        const call_case c = sampled(op, kind, {rows, n}, stream % 3 != 0, {}, stream);
        const array all = gradient(ctx, c);
        reference::word_stream words(stream, 1);
        for (int r = 0; r < rows; r += 3) {
          std::vector<std::size_t> order(static_cast<std::size_t>(n));
          std::iota(order.begin(), order.end(), std::size_t{0});
          for (std::size_t i = order.size(); r > 0 && i > 1; --i) {
            std::swap(order[i - 1], order[words.below(static_cast<std::uint32_t>(i))]);
          }
          const auto at = [&](std::size_t i) { return static_cast<std::size_t>(r * n) + order[i]; };
          call_case one{op, c.in, {}};
          for (array& a : one.in) {
            const array whole = a;
            const bool of_row = a.shape == shape_list{rows}, of_weight = a.shape == shape_list{n};
            if (!of_weight) a = array(dtype::f32, of_row ? shape_list{} : shape_list{n});
            if (of_row) a.set(0, whole.get(static_cast<std::size_t>(r)));
            for (std::size_t i = 0; !of_row && i < order.size(); ++i) a.set(i, whole.get(of_weight ? order[i] : at(i)));
          }
          const array got = gradient(ctx, one);
          bool same = true;
          for (std::size_t i = 0; i < order.size(); ++i) same = same && got.get(i) == all.get(at(i));
          CHECK(same);
        }
      }
      // To a weight: rows in another order, and one weight alone.
      const std::int64_t weights = 7;
      call_case c = sampled("layer_norm_weight_backward", kind, {n, weights}, false, {}, ++stream);
      const array all = gradient(ctx, c);
      std::vector<std::size_t> order(static_cast<std::size_t>(n));
      std::iota(order.begin(), order.end(), std::size_t{0});
      reference::word_stream words(stream, 1);
      for (std::size_t i = order.size(); i > 1; --i)
        std::swap(order[i - 1], order[words.below(static_cast<std::uint32_t>(i))]);
      call_case one{c.op, {row(std::vector<float>(order.size())), {}, c.in[2], c.in[3]}, {}};
      one.in[0].shape.push_back(1);
      one.in[1] = one.in[0];
      for (std::size_t i = 0; i < order.size(); ++i) {
        for (std::size_t k = 0; k < 2; ++k) one.in[k].set(i, c.in[k].get(order[i] * weights + 3));
        for (std::size_t k = 2; k < 4; ++k) one.in[k].set(i, c.in[k].get(order[i]));
      }
      CHECK(gradient(ctx, one).get(0) == all.get(3));
    }
  }
}

TEST_CASE("norm gradients: group_norm and batch_norm are layer_norm of other rows") {
  context ctx;
  const std::int64_t samples = 3, channels = 6, pixels = 35, groups = 2;
  const attributes of_groups{{"groups", groups}};
  for (const sample_class kind : {sample_class::normal_range, sample_class::ties, sample_class::cancelling}) {
    const call_case g = sampled("group_norm_backward", kind, {samples, channels, pixels}, false, of_groups, 9100);
    call_case l{"layer_norm_backward", g.in, {}};
    l.in[0].shape = l.in[1].shape = {samples * groups, channels / groups * pixels};
    l.in[2].shape = l.in[3].shape = {samples * groups};
    CHECK(gradient(ctx, g).bytes == gradient(ctx, l).bytes);
    const call_case b = sampled("batch_norm_backward", kind, {samples, channels, pixels}, false, {}, 9101);
    CHECK(gradient(ctx, b) == gradient(ctx, {"layer_norm_backward", b.in, {{"axis", integers{0, 2}}}}));
  }
}

TEST_CASE("norm gradients: long rows, and many of them, on several threads" * doctest::test_suite("values")) {
  context one({.threads = 1});
  std::uint64_t stream = 7000;
  for (const std::string& isa : available()) {
    context several({.threads = 4, .isa = isa});
    for (const shape_list& x : {shape_list{1, 150'001}, {150'001, 1}, {300'000, 3}, {40, 5003}}) {
      for (const std::string op :
           {"layer_norm_backward", "rms_norm_backward", "batch_norm_backward", "layer_norm_weight_backward",
            "rms_norm_weight_backward", "batch_norm_weight_backward"}) {
        const call_case c = sampled(op, sample_class::normal_range, x, true, {}, ++stream);
        CHECK(gradient(several, c) == gradient(one, c));
      }
    }
  }
}

TEST_CASE("norm gradients: of rows that cancel no element is decided by itself" * doctest::test_suite("values")) {
  for (const std::string& isa : available()) {
    context ctx({.threads = 1, .isa = isa});
    for (const std::size_t n : {5, 64, 1003}) {
      std::vector<float> x(n);
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) sum += x[i] = static_cast<float>(static_cast<double>(i * i % 97) / 7 - 6);
      // The mean, off by its rounding, and one that is off by nothing.
      const auto mean = static_cast<float>(sum / static_cast<double>(n));
      std::vector<float> around(n, mean);
      for (std::size_t i = 0; i + 1 < n; i += 2) around[i] += 0.5f, around[i + 1] -= 0.5f;
      for (const std::vector<float>& row_of : {x, around}) {
        for (const float g : {1.0f, 0.3f}) {
          const std::vector<array> in{row(std::vector<float>(n, g)), row(row_of), scalar(mean), scalar(1.7f)};
          ctx.reset_statistics();
          CHECK(gradient(ctx, {"layer_norm_backward", in, {}}) == reference::evaluate("layer_norm_backward", in));
          CHECK(ctx.read_statistics().elements[3] == 0);
        }
      }
    }
  }
}

TEST_CASE("norm gradients: special values by their bits") {
  context ctx;
  const auto of = [&](const char* op, const std::vector<array>& in, const attributes& attrs = {}) {
    return gradient(ctx, {op, in, attrs}).patterns();
  };
  const auto layer = [&](const std::vector<float>& g, const std::vector<float>& x, float mean, float rstd,
                         const std::vector<float>& weight = {}) {
    std::vector<array> in{row(g), row(x), scalar(mean), scalar(rstd)};
    if (!weight.empty()) in.push_back(row(weight));
    return of("layer_norm_backward", in);
  };
  const auto rms = [&](const std::vector<float>& g, const std::vector<float>& x, float rstd) {
    return of("rms_norm_backward", {row(g), row(x), scalar(rstd)});
  };
  // zeros
  CHECK(layer({-3, -3}, {1, 3}, 2, 1) == patterns{0, 0});
  CHECK(layer({-3, -3}, {1, 3}, 2, -1) == patterns{minus_zero, minus_zero});
  CHECK(layer({-0.0f, -0.0f}, {1, 3}, 5, 2) == patterns{0, 0});
  CHECK(layer({1, 2}, {1, 3}, 2, 0) == patterns{minus_zero, 0});
  CHECK(layer({1, 2}, {1, 3}, 2, -0.0f) == patterns{0, minus_zero});
  CHECK(rms({-0.0f, 0, -2}, {0, -0.0f, 0}, 1) == patterns{0, 0, bits(-2)});
  CHECK(rms({-2, 2, 0}, {1, 1, 1}, -0.0f) == patterns{0, minus_zero, minus_zero});
  CHECK(rms({0x1p-100f}, {0}, 0x1p-100f) == patterns{0});
  CHECK(rms({0x1p-100f}, {0}, -0x1p-100f) == patterns{minus_zero});
  // numbers
  CHECK(layer({1, 2, 3, 6}, {-1, 1, -1, 1}, 0, 1) == patterns{bits(-1), bits(-2), bits(1), bits(2)});
  CHECK(layer({1, 1, 1, 2}, {-1, 1, -1, 1}, 0, 2, {1, 2, 3, 3}) == patterns{bits(4), bits(-10), bits(8), bits(-2)});
  CHECK(rms({1, 2}, {1, 1}, 1) == patterns{bits(-0.5f), bits(0.5f)});
  CHECK(rms({0x1.fffffep127f}, {0}, 2) == patterns{bits(inf)});
  // statistics that are not finite; g, x and weights that are not
  CHECK(layer({0, 1}, {1, 2}, inf, 1) == patterns{nan_bits, nan_bits});
  CHECK(layer({0, 0}, {1, 2}, 1, -inf) == patterns{nan_bits, nan_bits});
  CHECK(rms({0, 1}, {1, 2}, nan) == patterns{nan_bits, nan_bits});
  CHECK(layer({1, nan}, {1, 2}, 1, 1) == patterns{nan_bits, nan_bits});
  CHECK(rms({inf, 1, 1, 1}, {1, 1, -1, 0}, 1) == patterns{nan_bits, bits(-inf), bits(inf), nan_bits});
  CHECK(rms({inf, 1}, {1, 1}, -1) == patterns{nan_bits, bits(inf)});
  CHECK(rms({inf, 1}, {1, 1}, 0) == patterns{nan_bits, nan_bits});
  CHECK(rms({1, -1}, {inf, 1}, 1) == patterns{bits(-inf), bits(-inf)});
  CHECK(rms({0, 1}, {inf, 1}, 1) == patterns{nan_bits, nan_bits});
  CHECK(layer({inf, 1, 1}, {1, 2, -2}, 0, 1) == patterns{nan_bits, bits(-inf), nan_bits});
  CHECK(layer({1, 1}, {1, 2}, 0, 1, {-inf, 0}) == patterns{nan_bits, bits(inf)});
  CHECK(layer({0, 1}, {1, 2}, 0, 1, {inf, 1}) == patterns{nan_bits, nan_bits});
  // nothing
  CHECK(of("layer_norm_backward", {floats({}, {2, 0}), floats({}, {2, 0}), row({1, 2}), row({1, 2})}).empty());
  // to the weight
  const auto to_weight = [&](const std::vector<float>& g, const std::vector<float>& x, const std::vector<float>& mean,
                             const std::vector<float>& rstd) {
    const auto n = static_cast<std::int64_t>(g.size());
    return of("layer_norm_weight_backward", {floats(g, {n, 1}), floats(x, {n, 1}), row(mean), row(rstd)}).at(0);
  };
  CHECK(to_weight({1, 2, 3}, {4, 5, 6}, {1, 1, 4}, {2, -1, 0.5f}) == bits(1));
  CHECK(to_weight({1, 1}, {4, 5}, {1, 2}, {1, -1}) == 0);
  CHECK(to_weight({-1}, {3}, {3}, {1}) == 0);
  CHECK(to_weight({0x1p-100f}, {-0x1p-100f}, {0}, {1}) == minus_zero);
  CHECK(to_weight({1, 1}, {inf, 2}, {1, 1}, {1, 1}) == bits(inf));
  CHECK(to_weight({1, 1}, {inf, inf}, {1, 1}, {1, -1}) == nan_bits);
  CHECK(to_weight({1}, {inf}, {inf}, {1}) == nan_bits);
  CHECK(to_weight({1}, {1}, {1}, {inf}) == nan_bits);
  CHECK(to_weight({0}, {2}, {1}, {-inf}) == nan_bits);
  CHECK(to_weight({-1}, {2}, {1}, {-inf}) == bits(inf));
  CHECK(of("rms_norm_weight_backward", {floats({}, {0, 2}), floats({}, {0, 2}), row({})}) == patterns{0, 0});
  CHECK(of("batch_norm_weight_backward", {floats({}, {0, 2}), floats({}, {0, 2}), row({nan, 1}), row({1, inf})}) ==
        patterns{0, 0});
  CHECK(of("group_norm_weight_backward",
           {floats({1, 2, 3, 4}, {2, 2}), floats({1, 2, 3, 4}, {2, 2}), floats({1, 1, 1, 1}, {2, 2}),
            floats({1, 2, 3, 4}, {2, 2})},
           {{"groups", std::int64_t{2}}}) == patterns{bits(18), bits(52)});
}

TEST_CASE("norm gradients: the typed functions") {
  context ctx;
  const std::vector<float> g{1, 2, 3, 6, 6, 3, 2, 1}, x{-1, 1, -1, 1, 1, -1, 1, -1}, w{1, 2, 4, 8}, zero(4),
      ones{1, 1, 1, 1};
  std::vector<float> out(8), sums(4);
  const auto view = [](const std::vector<float>& v, sizes s) { return const_tensor_view(v.data(), s); };
  const tensor_view to(out.data(), sizes{2, 4});
  const const_tensor_view gs = view(g, {2, 4}), xs = view(x, {2, 4}), mean = view(zero, {2}), rstd = view(ones, {2}),
                          weight = view(w, {4});
  layer_norm_backward(ctx, gs, xs, mean, rstd, to);
  CHECK(out == std::vector<float>{-1, -2, 1, 2, 2, 1, -2, -1});
  layer_norm_backward(ctx, gs, xs, mean, rstd, to, {.weight = weight});
  CHECK(out == std::vector<float>{-5.5f, -22, 5.5f, 22, -1, -1, 1, 1});
  rms_norm_backward(ctx, gs, xs, rstd, to, {.axis = -1});
  CHECK(out == std::vector<float>{2, 1, 4, 5, 5, 4, 1, 2});
  const const_tensor_view images = view(g, {1, 2, 4}), of_x = view(x, {1, 2, 4}), channels = view(w, {2});
  group_norm_backward(ctx, images, of_x, view(zero, {1, 2}), view(ones, {1, 2}),
                      tensor_view(out.data(), sizes{1, 2, 4}), {.groups = 2, .weight = channels});
  CHECK(out == std::vector<float>{-1, -2, 1, 2, 4, 2, -4, -2});
  batch_norm_backward(ctx, gs, xs, mean, rstd, to, {.axis = 0, .weight = channels});
  CHECK(out == std::vector<float>{-1, -2, 1, 2, 4, 2, -4, -2});
  layer_norm_backward_weight(ctx, gs, xs, mean, rstd, tensor_view(sums));
  CHECK(sums == std::vector<float>{5, -1, -1, 5});
  rms_norm_backward_weight(ctx, gs, xs, rstd, tensor_view(sums));
  CHECK(sums == std::vector<float>{5, -1, -1, 5});
  group_norm_backward_weight(ctx, images, of_x, view(zero, {1, 2}), view(ones, {1, 2}),
                             tensor_view(sums.data(), sizes{2}), 2);
  CHECK(sums == std::vector<float>{4, 4, -1, 5});
  sums = {9, 9, 9, 9};
  batch_norm_backward_weight(ctx, gs, xs, view(zero, {4}), view(ones, {4}), tensor_view(sums));
  CHECK(sums == std::vector<float>{5, -1, -1, 5});
  batch_norm_backward_weight(ctx, gs, xs, mean, rstd, tensor_view(sums.data(), sizes{2}), 0);
  CHECK(sums == std::vector<float>{4, 4, -1, 5});
}
