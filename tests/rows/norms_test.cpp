// layer_norm, rms_norm, group_norm and batch_norm through the public API: against the oracle in every way that must not
// matter (instruction set, threads, first tier, layout, which statistics are wanted), special values by their bits, and that
// neither a row's place nor the order of its elements does.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
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
using tests::inf_bits;
using tests::layout;
using tests::nan_bits;
using tests::placed_tensor;
using tests::row;
using tests::row_classes;
using tests::run;
using tests::to_sizes;

namespace {

using integers = std::vector<std::int64_t>;

// A case of samples; operands: 1 weight, 2 bias, 3 both.
call_case sampled(const std::string& op, sample_class kind, const shape_list& x, int operands, attributes attrs,
                  std::uint64_t stream) {
  const shape_list weight = reference::norm_layout_of(op, x, attrs).weight;
  std::vector<shape_list> shapes{x};
  if (op == "rms_norm") operands &= 1;
  if (operands != 0) shapes.push_back((operands & 1) != 0 ? weight : reference::absent_shape);
  if ((operands & 2) != 0) shapes.push_back(weight);
  return {op, reference::fill_inputs(op, kind, shapes, attrs, 23, stream), attrs};
}

// Shapes of rows of about n elements: one after the other, and across.
std::vector<call_case> cases(sample_class kind, std::int64_t n, double eps, int operands, std::uint64_t stream) {
  const attribute e{"eps", eps};
  const std::int64_t rows = n < 100 ? 6 : 2, half = (n + 1) / 2;
  return {sampled("layer_norm", kind, {rows, n}, operands, {e}, stream),
          sampled("layer_norm", kind, {half, rows, 2}, operands, {{"axis", integers{2, 0}}, e}, stream + 1),
          sampled("rms_norm", kind, {rows, n}, operands, {e}, stream + 2),
          sampled("rms_norm", kind, {n, rows}, operands, {{"axis", integers{0}}, e}, stream + 3),
          sampled("group_norm", kind, {rows, 4, half}, operands, {{"groups", std::int64_t{2}}, e}, stream + 4),
          sampled("batch_norm", kind, {n, 5}, operands, {e}, stream + 5),
          sampled("batch_norm", kind, {2, rows, half}, operands, {e}, stream + 6)};
}

constexpr double every_eps[] = {0, 1e-5, 0x1p-200, 1, 0x1.8p199};

}  // namespace

TEST_CASE("norms: every class of rows, every tier, threads, layouts and statistics, against the oracle" *
          doctest::test_suite("values")) {
  const std::vector<tests::setting> settings = tests::every_setting();
  reference::covering some(12);
  reference::word_stream words(17, 0);
  std::uint64_t stream = 0;
  for (const std::int64_t n : {1, 2, 3, 7, 10, 33, 64, 257, 1100, 8300}) {
    for (const sample_class kind : row_classes) {
      if (n > 1000 && kind != sample_class::normal_range && (n > 2000 || kind != sample_class::near_ties)) continue;
      const double eps = every_eps[words.below(std::size(every_eps))];
      const auto operands = static_cast<int>(words.below(4));
      for (const call_case& c : cases(kind, n, eps, operands, stream += 16)) {
        const std::vector<array> want = reference::evaluate_all(c.op, c.in, c.attrs);
        std::int64_t count = 0;
        for (const array& a : want) count += a.count();
        for (std::size_t i = 0; i < settings.size(); ++i) {
          const tests::setting& s = settings[i];
          if (!some.takes(static_cast<int>(i), {find(c.op)->id, static_cast<int>(kind)})) continue;
          if (n > 1000 && s.first == tier::exact) continue;
          CAPTURE(c.op);
          CAPTURE(n);
          CAPTURE(eps);
          CAPTURE(operands);
          CAPTURE(std::string(name_of(kind)));
          CAPTURE(s.isa);
          CAPTURE(static_cast<int>(s.first));
          CAPTURE(s.threads);
          s.ctx->reset_statistics();
          CHECK(run(*s.ctx, c) == want);
          const statistics decided = s.ctx->read_statistics();
          CHECK(decided.elements[0] + decided.elements[1] + decided.elements[2] + decided.elements[3] == count);
          const layout from = tests::layouts[words.below(6)], to = tests::layouts[words.below(6)];
          const unsigned wanted = 1 | words.below(4) << 1;
          const std::vector<array> got = run(*s.ctx, c, from, to, wanted);
          for (std::size_t o = 0; o < want.size(); ++o)
            CHECK(got[o] == ((wanted >> o & 1) != 0 ? want[o] : array::none()));
        }
      }
    }
  }
}

TEST_CASE("norms: a row's bits depend on neither its place nor its neighbours nor the order of its elements") {
  context ctx;
  std::uint64_t stream = 5000;
  for (const sample_class kind : row_classes) {
    for (const std::int64_t n : {5, 64, 1500}) {
      for (const std::string op : {"layer_norm", "rms_norm"}) {
        CAPTURE(op);
        CAPTURE(n);
        CAPTURE(std::string(name_of(kind)));
        const attributes attrs{{"eps", every_eps[stream % 3]}};
        const int rows = n > 1000 ? 3 : 19;
        const call_case c = sampled(op, kind, {rows, n}, 3, attrs, ++stream);
        const std::vector<array> all = run(ctx, c);
        reference::word_stream words(stream, 1);
        for (int r = 0; r < rows; r += 3) {
          call_case one{op, c.in, attrs};
          one.in[0] = array(dtype::f32, {n});
          std::vector<std::size_t> order(static_cast<std::size_t>(n));
          std::iota(order.begin(), order.end(), std::size_t{0});
          for (std::size_t i = order.size(); r > 0 && i > 1; --i) {
            std::swap(order[i - 1], order[words.below(static_cast<std::uint32_t>(i))]);
          }
          const auto at = [&](std::size_t i) { return static_cast<std::size_t>(r * n) + order[i]; };
          for (std::size_t i = 0; i < order.size(); ++i) {
            one.in[0].set(i, c.in[0].get(at(i)));
            for (std::size_t k = 1; k < c.in.size(); ++k) one.in[k].set(i, c.in[k].get(order[i]));
          }
          const std::vector<array> got = run(ctx, one);
          bool same = true;
          for (std::size_t i = 0; i < order.size(); ++i) same = same && got[0].get(i) == all[0].get(at(i));
          CHECK(same);
          for (std::size_t o = 1; o < got.size(); ++o) CHECK(got[o].get(0) == all[o].get(static_cast<std::size_t>(r)));
        }
      }
    }
  }
}

TEST_CASE("norms: group_norm and batch_norm are layer_norm of other rows") {
  context ctx;
  const std::int64_t samples = 3, channels = 6, pixels = 35, groups = 2;
  const attribute eps{"eps", 0x1p-20};
  for (const sample_class kind : {sample_class::normal_range, sample_class::ties, sample_class::cancelling}) {
    const call_case g = sampled("group_norm", kind, {samples, channels, pixels}, 0, {{"groups", groups}, eps}, 9000);
    call_case l{"layer_norm", g.in, {eps}};
    l.in[0].shape = {samples * groups, channels / groups * pixels};
    const std::vector<array> a = run(ctx, g), b = run(ctx, l);
    for (std::size_t o = 0; o < 3; ++o) CHECK(a[o].bytes == b[o].bytes);
    const call_case n = sampled("batch_norm", kind, {samples, channels, pixels}, 0, {eps}, 9001);
    const call_case m{"layer_norm", n.in, {{"axis", integers{0, 2}}, eps}};
    CHECK(run(ctx, n) == run(ctx, m));
  }
}

TEST_CASE("norms: long rows, and many of them, on several threads") {
  context one({.threads = 1});
  std::uint64_t stream = 7000;
  for (const std::string& isa : available()) {
    context several({.threads = 4, .isa = isa});
    for (const std::string op : {"layer_norm", "rms_norm"}) {
      for (const shape_list& x : {shape_list{1, 150'001}, {300'000, 3}, {40, 5003}}) {
        const call_case c = sampled(op, sample_class::normal_range, x, 3, {{"eps", 1e-6}}, ++stream);
        CHECK(run(several, c) == run(one, c));
      }
    }
    for (const shape_list& x : {shape_list{70'001, 3}, {2, 3, 40'000}, {5, 20'000, 2}}) {
      const call_case c = sampled("batch_norm", sample_class::normal_range, x, 3, {}, ++stream);
      CHECK(run(several, c) == run(one, c));
    }
  }
}

TEST_CASE("norms: special values by their bits") {
  context ctx;
  using patterns = std::vector<std::uint32_t>;
  const auto of = [&](const char* op, const std::vector<array>& in, double eps) {
    std::vector<patterns> all;
    for (const array& a : run(ctx, {op, in, {{"eps", eps}}})) all.push_back(a.patterns());
    return all;
  };
  using all = std::vector<patterns>;
  const std::uint32_t one = bits(1), minus_zero = bits(-0.0f);
  CHECK(of("layer_norm", {row({5, 5, 5})}, 0) == all{{nan_bits, nan_bits, nan_bits}, {bits(5)}, {inf_bits}});
  CHECK(of("layer_norm", {row({5, 5, 5})}, 4) == all{{0, 0, 0}, {bits(5)}, {bits(.5f)}});
  CHECK(of("layer_norm", {row({-0.0f, -0.0f}), row({-1, 1})}, 1) == all{{minus_zero, 0}, {0}, {one}});
  CHECK(of("layer_norm", {row({2, 2}), row({-1, -0.0f}), row({-0.0f, -0.0f})}, 1)[0] == patterns{0, 0});
  CHECK(of("layer_norm", {row({1, inf})}, 1) == all{{nan_bits, nan_bits}, {inf_bits}, {nan_bits}});
  CHECK(of("layer_norm", {row({-inf, inf})}, 1) == all{{nan_bits, nan_bits}, {nan_bits}, {nan_bits}});
  CHECK(of("layer_norm", {row({1, 3}), row({inf, -inf}), row({-inf, 1})}, 0)[0] == patterns{bits(-inf), bits(-inf)});
  CHECK(of("layer_norm", {row({1, 3}), row({inf, -inf}), row({inf, inf})}, 0)[0] == patterns{nan_bits, nan_bits});
  CHECK(of("layer_norm", {row({2, 2}), row({inf, 0}), row({0, inf})}, 1)[0] == patterns{nan_bits, inf_bits});
  CHECK(of("layer_norm", {row({7, 9}), row({-0x1p-24f, 0x1p-24f}), row({1, 1 + 0x1p-23f})}, 0)[0] ==
        patterns{one, bits(1 + 0x1p-22f)});
  CHECK(of("layer_norm", {row({-1, 1}), row({-0x1p-24f, 0x1p-24f}), row({1, 1 + 0x1p-23f})}, 0x1p-200)[0] ==
        patterns{one, bits(1 + 0x1p-23f)});
  CHECK(of("layer_norm", {row({-0x1.fffffep127f, 0x1.fffffep127f})}, 0) ==
        all{{bits(-1), one}, {0}, {bits(0x1p-128f)}});
  CHECK(of("layer_norm", {row({-0x1p-149f, 0x1p-149f})}, 0) == all{{bits(-1), one}, {0}, {inf_bits}});
  CHECK(of("layer_norm", {floats({}, {2, 0})}, 1) == all{{}, {nan_bits, nan_bits}, {nan_bits, nan_bits}});
  CHECK(of("rms_norm", {row({0, -0.0f}), row({-1, -1})}, 1) == all{{minus_zero, 0}, {one}});
  CHECK(of("rms_norm", {row({0, -0.0f})}, 0) == all{{nan_bits, nan_bits}, {inf_bits}});
  CHECK(of("rms_norm", {row({-1})}, 0x1p200) == all{{bits(-0x1p-100f)}, {bits(0x1p-100f)}});
  CHECK(of("rms_norm", {row({-0x1p-60f})}, 0x1p200) == all{{minus_zero}, {bits(0x1p-100f)}});
  CHECK(of("rms_norm", {row({1, std::numeric_limits<float>::quiet_NaN()})}, 1) ==
        all{{nan_bits, nan_bits}, {nan_bits}});
  CHECK(of("rms_norm", {floats({}, {1, 0})}, 0) == all{{}, {nan_bits}});
}

TEST_CASE("norms: the typed functions") {
  context ctx;
  const std::vector<float> x{1, 2, 3, 6, -1, -2, -3, -6}, w{1, 2, 3, 4}, b{0, 0, 1, -6};
  std::vector<float> y(8), mean(2), rstd(2);
  const const_tensor_view in(x.data(), {2, 4});
  const tensor_view out(y.data(), {2, 4});
  layer_norm(ctx, in, out,
             {.eps = 0.5, .weight = const_tensor_view(w.data(), {4}), .bias = const_tensor_view(b.data(), {4})},
             {.mean = tensor_view(mean), .rstd = tensor_view(rstd)});
  CHECK(y == std::vector<float>{-1, -1, 1, 0, 1, 1, 1, -12});
  CHECK(mean == std::vector<float>{3, -3});
  CHECK(rstd == std::vector<float>{.5f, .5f});
  layer_norm(ctx, in, out, {.axis = all_axes, .eps = 0}, {.rstd = tensor_view(rstd.data(), {})});
  CHECK((y[0] == -y[4] && y[3] > 1));
  rms_norm(ctx, in, out, {.eps = 3.5}, tensor_view(rstd));  // the mean of the squares is 12.5
  CHECK(y == std::vector<float>{.25f, .5f, .75f, 1.5f, -.25f, -.5f, -.75f, -1.5f});
  CHECK(rstd == std::vector<float>{.25f, .25f});
  const const_tensor_view of_channels(w.data(), {2});
  group_norm(ctx, const_tensor_view(x.data(), {1, 2, 4}), tensor_view(y.data(), {1, 2, 4}),
             {.groups = 2, .eps = 0.5, .weight = of_channels}, {.mean = tensor_view(mean.data(), {1, 2})});
  CHECK(y == std::vector<float>{-1, -.5f, 0, 1.5f, 2, 1, 0, -3});
  CHECK(mean == std::vector<float>{3, -3});
  batch_norm(ctx, in, out, {.axis = 0, .eps = 0.5, .weight = of_channels, .bias = of_channels});
  CHECK(y == std::vector<float>{0, .5f, 1, 2.5f, 4, 3, 2, -1});
}
