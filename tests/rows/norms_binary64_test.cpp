// Norms of binary64 and their gradients: against the oracle in every way that must not matter (first tier, threads, layout, which
// outputs are wanted, whether statistics are updated in place), special values by their bits, rows that several threads share, and what
// is refused.
#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "reference/evaluate.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/class_calls.hpp"
#include "tests/helpers/wide_rows.hpp"

using namespace repdl;
using reference::array;
using reference::sample_class;
using reference::shape_list;
using tests::check_bits, tests::doubles, tests::number_of, tests::row_of, tests::huge, tests::least, tests::most,
    tests::none;

namespace {

constexpr const char* operations_of_norms[] = {"layer_norm",
                                               "rms_norm",
                                               "group_norm",
                                               "batch_norm",
                                               "layer_norm_backward",
                                               "rms_norm_backward",
                                               "group_norm_backward",
                                               "batch_norm_backward",
                                               "layer_norm_weight_backward",
                                               "rms_norm_weight_backward",
                                               "group_norm_weight_backward",
                                               "batch_norm_weight_backward",
                                               "batch_norm_running",
                                               "batch_norm_inference",
                                               "batch_norm_inference_backward",
                                               "batch_norm_inference_weight_backward"};
tests::call_case case_of(const std::string& op, sample_class kind, const shape_list& x, const attributes& attrs,
                         const std::vector<bool>& present, std::uint64_t stream) {
  const test::class_call c = test::call_at(op, x, attrs, present);
  return {op, reference::fill_inputs(op, kind, c.shapes, c.attrs, 43, stream, dtype::f64), c.attrs};
}

}  // namespace

TEST_CASE("norms of f64: every class, tier, number of threads, layout and choice of outputs, against the oracle" *
          doctest::test_suite("values")) {
  tests::wide_rows rows(61);
  reference::word_stream& words = rows.words;
  std::uint64_t stream = 0;
  constexpr double every_eps[] = {0, 1e-5, 0x1p-200, 1, 0x1p-20, 0x1.8p199};
  constexpr double every_momentum[] = {0.5, 0.1, 0.25, 0, 1, 0x1p-200, 1 - 0x1p-53};
  for (const std::int64_t n : {1, 2, 3, 5, 8, 18, 33}) {
    for (const sample_class kind : tests::row_classes) {
      for (const std::string op : operations_of_norms) {
        const bool by_channel = op.starts_with("batch_norm");
        attributes attrs{{"eps", every_eps[words.below(6)]}, {"momentum", every_momentum[words.below(7)]}};
        if (op.starts_with("group_norm")) attrs.push_back({"groups", std::int64_t{2}});
        const bool weight = words.flip(), bias = words.flip();
        const tests::call_case c = case_of(op, kind,
                                           by_channel                ? shape_list{n, 3}
                                           : op.starts_with("group") ? shape_list{1, 4, n}
                                                                     : shape_list{2, n},
                                           attrs, {weight, bias}, ++stream);
        CAPTURE(n);
        CAPTURE(stream);
        rows.check(c, kind);
      }
    }
  }
}

TEST_CASE("norms of f64: rows that threads share, and that they have for themselves") {
  context one({.threads = 1}), several({.threads = 3});
  std::uint64_t stream = 900;
  for (const std::string op : operations_of_norms) {
    const bool by_channel = op.starts_with("batch_norm");
    for (const shape_list& x : {shape_list{9001, 1}, {1, 9001}, {700, 13}}) {
      if (op.starts_with("group")) continue;  // layer_norm of other rows
      const tests::call_case c = case_of(op, sample_class::normal_range, by_channel ? shape_list{x[1], x[0]} : x,
                                         {{"eps", 1e-5}}, {true, true}, ++stream);
      CHECK(tests::run(several, c) == tests::run(one, c));
    }
  }
}

TEST_CASE("norms of f64: special values, zeros and ties by their bits") {
  const attributes no_eps{{"eps", 0.0}};
  const array one = row_of({1, 1});
  check_bits("layer_norm", {row_of({3, 1})}, no_eps, {{1, -1}, {2}, {1}});
  check_bits("layer_norm", {row_of({3, 1}), one, row_of({0x1p53, 0x1p53})}, no_eps, {{0x1p53, 0x1p53 - 1}, {2}, {1}});
  check_bits("layer_norm", {row_of({3, 1}), row_of({huge, 0}), row_of({-1, 0})}, no_eps, {{huge, 0}, {2}, {1}});
  check_bits("layer_norm", {row_of({5, 5})}, no_eps, {{none, none}, {5}, {huge}});
  check_bits("layer_norm", {row_of({5, 5})}, {{"eps", 4.0}}, {{0, 0}, {5}, {0.5}});
  check_bits("layer_norm", {row_of({1, huge})}, no_eps, {{none, none}, {huge}, {none}});
  check_bits("layer_norm", {row_of({huge, -huge})}, no_eps, {{none, none}, {none}, {none}});
  check_bits("layer_norm", {row_of({most, -most})}, no_eps, {{1, -1}, {0}, {1 / most}});
  check_bits("layer_norm", {row_of({least, -least})}, no_eps, {{1, -1}, {0}, {huge}});
  check_bits("layer_norm", {row_of({1, 1 + 0x1p-52})}, no_eps, {{-1, 1}, {1}, {0x1p53}});
  check_bits("layer_norm", {row_of({})}, {}, {{}, {none}, {none}});
  check_bits("rms_norm", {row_of({-2, 2})}, no_eps, {{-1, 1}, {0.5}});
  check_bits("rms_norm", {row_of({-0.0, 0})}, {{"eps", 1.0}}, {{-0.0, 0}, {1}});
  check_bits("rms_norm", {row_of({3}), row_of({3 * least})}, {{"eps", 16.0}}, {{2 * least}, {0.2}});
  check_bits("rms_norm", {row_of({3}), row_of({2.5 * 0x1p-1073})}, {{"eps", 27.0}}, {{2 * least}, {1.0 / 6}});
  // (n t - A - d r^2 B) r / n.
  check_bits("layer_norm_backward", {row_of({1, 0}), row_of({1, -1}), number_of(0), number_of(1)}, {}, {{0, 0}});
  check_bits("layer_norm_backward", {row_of({1, 1, -2}), row_of({0, 0, 0}), number_of(0), number_of(-1)}, {},
             {{-1, -1, 2}});
  check_bits("layer_norm_backward", {row_of({1, 2}), row_of({1, -1}), number_of(0), number_of(0)}, {}, {{-0.0, 0}});
  check_bits("layer_norm_backward", {row_of({1, 2}), row_of({1, -1}), number_of(0), number_of(huge)}, {},
             {{none, none}});
  check_bits("layer_norm_backward", {row_of({1, huge}), row_of({1, -1}), number_of(0), number_of(1)}, {},
             {{none, none}});
  check_bits("rms_norm_backward", {row_of({1, 1}), row_of({huge, 1}), number_of(1)}, {}, {{-huge, -huge}});
  check_bits("rms_norm_backward", {row_of({1}), row_of({1}), number_of(1 - 0x1p-53)}, {}, {{0x1.fffffffffffffp-53}});
  check_bits("layer_norm_weight_backward", {row_of({huge}), row_of({2}), number_of(2), number_of(1)}, {}, {{none}});
  check_bits("batch_norm_inference",
             {row_of({3, 3}), row_of({1, 3}), row_of({4, 4}), row_of({1, huge}), row_of({0x1p53, 0})},
             {{"axis", std::int64_t{0}}, {"eps", 0.0}}, {{0x1p53, none}});
  check_bits("batch_norm_inference", {row_of({3, 3, 3}), row_of({1, 3, 4}), row_of({-0.0, 0, -1})},
             {{"axis", std::int64_t{0}}, {"eps", 0.0}}, {{huge, none, none}});
}

TEST_CASE("norms of f64: operands of other formats are refused") {
  context ctx;
  const sizes shape{2, 3}, row{3}, rows{2};
  tensor x(ctx, dtype::f64, shape), y(ctx, dtype::f64, shape), w(ctx, dtype::f32, row), mean(ctx, dtype::f64, rows),
      rstd(ctx, dtype::f32, rows), v(ctx, dtype::f64, row);
  const auto refused = [&](const char* op, const std::vector<const_tensor_view>& in, const std::string& what) {
    CAPTURE(op);
    CHECK_THROWS_WITH_AS(infer(*find(op), in, {}), doctest::Contains(what.c_str()), error);
  };
  refused("layer_norm", {x, w}, "layer_norm: weight: expected f64, as x, got f32");
  refused("layer_norm_backward", {x, y, mean, rstd}, "layer_norm_backward: rstd: expected f64, beside f64 g, got f32");
  refused("batch_norm_inference", {x, w, w}, "batch_norm_inference: running_mean: expected f64, as x, got f32");
  refused("batch_norm_running", {x, v, w}, "batch_norm_running: running_var: expected f64, as running_mean, got f32");
}
