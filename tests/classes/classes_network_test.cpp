// Convolution, pooling, the softmax family, norms, optimisers and random numbers against the oracle: at least 200,000 outputs
// of each on every instruction set and, where there is one, on the GPU, from the same inputs. The oracle says how many
// outputs of a class really were what the class promises; below the stated share the test fails.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "librepdl/ops/structured.hpp"
#include "reference/attributes.hpp"
#include "reference/evaluate.hpp"
#include "tests/helpers/class_calls.hpp"
#include "tests/helpers/class_engines.hpp"

using namespace repdl;
using reference::array;
using reference::outcome;
using reference::outcomes;
using reference::sample_class;

namespace {

constexpr std::int64_t required_outputs = 200'000;  // of all calls

// The least shares of outputs that are of a class, a tenth below what the inputs reach. What is not listed promises
// nothing: softmax has no midpoints, pooling gradients sum few terms, max_pool2d does not round, and so on.
struct share {
  std::string_view op;
  double narrow_lattice, cancelling, ties, near_ties, subnormal, overflow_border, single_nonfinite, zeros;
};
constexpr share shares[] = {
    {"conv2d", .9, .45, .85, .8, .9, .6, .6, .7},
    {"conv2d_grad_input", .85, .55, .4, .4, .85, .3, .4, .65},
    {"conv2d_grad_weight", .9, .8, .6, .6, .9, .45, .55, .65},
    {"conv2d_grad_bias", .9, .7, .7, .7, .8, .75, .9, .75},
    {"max_pool2d_backward", .9, .65, .015, .005, .2, .1, .015, .85},
    {"avg_pool2d", .7, .7, .5, .5, .9, .2, .55, .65},
    {"avg_pool2d_backward", .7, .12, .5, .03, .85, .06, .06, .7},
    {"adaptive_max_pool2d_backward", .9, .65, .012, .0025, .23, .13, .017, .85},
    {"adaptive_avg_pool2d", .8, .4, .5, .49, .89, .055, .85, .65},
    {"adaptive_avg_pool2d_backward", .78, 0, .7, 0, .9, 0, 0, 0},
    {"conv3d", .9, .74, .86, .78, .89, .65, .61, .7},
    {"conv3d_grad_input", .9, .75, .36, .3, .82, .26, .26, .77},
    {"conv3d_grad_weight", .9, .82, .53, .53, .88, .39, .46, .61},
    {"conv3d_grad_bias", .9, .69, .68, .66, .81, .78, .9, .73},
    {"max_pool3d_backward", .9, .78, 0, 0, .13, .082, .015, .86},
    {"avg_pool3d", .4, .67, .26, .25, .89, .067, .51, .44},
    {"avg_pool3d_backward", .44, .18, .36, .011, .87, 0, .12, .66},
    {"adaptive_max_pool3d_backward", .9, .81, 0, 0, .08, .043, .011, .87},
    {"adaptive_avg_pool3d", .81, .49, .016, .012, .89, .24, .3, .38},
    {"adaptive_avg_pool3d_backward", .77, 0, .52, 0, .86, .022, .086, .7},
    {"softmax", 0, 0, 0, 0, .35, 0, .65, 0},
    {"log_softmax", 0, 0, 0, .75, .04, .4, .7, 0},
    {"logsumexp", .05, 0, 0, 0, .3, .15, .6, .05},
    {"cross_entropy", .1, .1, 0, .7, .1, .25, .6, .1},
    {"cross_entropy_probabilities", 0, 0, 0, 0, 0, 0, 0, 0},
    {"cross_entropy_probabilities_backward", 0, 0, 0, 0, 0, 0, 0, 0},
    {"softmax_backward", .85, .7, .75, .7, .85, .6, .9, .85},
    {"log_softmax_backward", 0, 0, .6, .6, .85, .2, .3, .25},
    {"logsumexp_backward", 0, 0, .6, .2, .85, .015, .65, .8},
    {"cross_entropy_backward", .04, .05, .5, .25, .8, .01, .6, .75},
    {"layer_norm", .5, .31, .37, .43, .63, .18, .5, .47},
    {"rms_norm", .78, .27, .1, .1, .62, .33, .57, .69},
    {"group_norm", .52, .27, .38, .39, .64, .2, .54, .45},
    {"batch_norm", .6, .22, .44, .47, .64, .21, .68, .46},
    {"layer_norm_backward", .9, .69, .56, .53, .76, .6, .7, .59},
    {"rms_norm_backward", .9, .69, .54, .52, .79, .63, .72, .83},
    {"group_norm_backward", .9, .69, .56, .53, .73, .6, .65, .63},
    {"batch_norm_backward", .9, .65, .65, .61, .76, .62, .67, .57},
    {"layer_norm_weight_backward", .87, .42, .65, .64, .71, .72, .35, .63},
    {"rms_norm_weight_backward", .88, .42, .65, .64, .76, .72, .16, .85},
    {"group_norm_weight_backward", .89, .33, .65, .64, .8, .72, .24, .66},
    {"batch_norm_weight_backward", .9, .68, .72, .7, .73, .78, .65, .72},
    {"batch_norm_running", .58, .15, .27, .32, .64, .15, .64, .49},
    {"batch_norm_inference", .8, .28, .68, .33, .71, .15, .47, .59},
    {"batch_norm_inference_backward", .81, 0, .49, .13, .56, .12, .28, .62},
    {"batch_norm_inference_weight_backward", .79, .67, .75, .38, .86, .1, .6, .62},
    {"var", .86, .67, .82, .82, .88, .63, .52, .46},
    {"stddev", .65, .67, .46, .03, .76, .12, .52, .46},
    {"var_mean", .87, .36, .43, .41, .44, .31, .59, .45},
    {"sgd", .4, .4, .5, .5, .9, .2, .5, .65},
    {"adamw", .4, .14, .2, .3, .55, .4, .5, .55},
    {"clip_grad_norm", .15, .9, .9, .6, .9, 0, .9, .78},
    {"normal", .07, 0, 0, .14, .18, .02, 0, 0},
    {"exponential", 0, 0, 0, 0, .19, .09, 0, 0},
    {"dropout", .5, .3, 0, .9, .5, .2, .3, .8},
    {"dropout_backward", .5, .3, 0, .9, .5, .2, .3, .8},
};

double least_share(const std::string& op, sample_class c) {
  for (const share& s : shares) {
    if (s.op != op) continue;
    switch (c) {
      case sample_class::narrow_lattice:
        return s.narrow_lattice;
      case sample_class::cancelling:
        return s.cancelling;
      case sample_class::ties:
        return s.ties;
      case sample_class::near_ties:
        return s.near_ties;
      case sample_class::subnormal:
        return s.subnormal;
      case sample_class::overflow_border:
        return s.overflow_border;
      case sample_class::single_nonfinite:
        return s.single_nonfinite;
      case sample_class::zeros:
        return s.zeros;
      default:
        return 0;
    }
  }
  return -1;
}
struct tally {
  std::int64_t outputs = 0;
  std::int64_t located = 0;  // those that round
  std::int64_t hits = 0;
};

void check(std::vector<test::engine>& all, const std::string& op, sample_class c, const test::class_call& call,
           std::uint64_t stream, tally& counted, const std::vector<array>& in) {
  outcomes where;
  const std::vector<array> expected = reference::evaluate_all(op, in, call.attrs, &where);
  for (const array& a : expected) counted.outputs += a.count();
  counted.located += static_cast<std::int64_t>(where.size());
  counted.hits += std::count_if(where.begin(), where.end(), [&](const outcome& o) { return hit(c, o); });
  for (test::engine& e : all) {
    const std::string text = test::difference(test::run(*e.ctx, op, in, expected, call.attrs), expected);
    if (!text.empty())
      FAIL_CHECK(op << " on " << e.name << ", class " << std::string(name_of(c)) << ", call " << stream << ": "
                    << text);
  }
}
void check(std::vector<test::engine>& all, const std::string& op, sample_class c, const test::class_call& call,
           std::uint64_t stream, tally& counted, dtype type = dtype::f32) {
  check(all, op, c, call, stream, counted, reference::fill_inputs(op, c, call.shapes, call.attrs, 11, stream, type));
}

// Of a norm, with weights and biases of binary32, and running statistics of x's format, if it has any.
void check_other_formats(std::vector<test::engine>& all, const std::string& op, sample_class c,
                         const test::class_call& call, std::uint64_t stream, tally& counted, dtype type) {
  std::vector<array> in = reference::fill_inputs(op, c, call.shapes, call.attrs, 11, stream, type);
  std::vector<dtype> formats;
  bool has = false;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const operand_info& o = find(op)->in[i];
    formats.push_back(o.optional                                                     ? dtype::f32
                      : o.name.starts_with("running_") && op == "batch_norm_running" ? type
                                                                                     : in[i].type);
    has = has || (formats[i] != in[i].type && !in[i].absent());
  }
  if (has) check(all, op, c, call, stream, counted, reference::in_formats(std::move(in), formats, stream));
}

// A third of the calls, another one for each class; or all.
template <class Op>
void check_all(bool in_full) {
  const std::string op(Op::name);
  std::vector<test::engine> all = test::engines();
  std::string names, table;
  for (const test::engine& e : all) names += (names.empty() ? "" : ", ") + e.name;
  // What rounds nothing has no outcome to count: selections and integers.
  constexpr bool rounds = Op::row.proof != ops::proof_kind::select;
  std::int64_t total = 0, located = 0, hits = 0;
  for (const sample_class c : test::network_classes(Op::row.kind)) {
    tally counted;
    std::uint64_t stream = 0;
    tally narrow, wide;
    for (const test::class_call& call : test::network_calls(Op::row.kind, op, c)) {
      if (!in_full && stream % 3 != static_cast<std::uint64_t>(c) % 3) {
        ++stream;
        continue;
      }
      constexpr bool convolves = Op::row.kind == ops::family::convolution;
      constexpr bool rows = Op::row.kind == ops::family::softmax || Op::row.kind == ops::family::norm || convolves;
      // Chains are of binary32.
      const bool is_chain =
          convolves && reference::attribute_or<std::string>(call.attrs, "accumulate", "exact") != "exact";
      for (const dtype type : {dtype::f16, dtype::bf16}) {
        const bool turn = rows && !is_chain && (stream % 2 == 0) == (type == dtype::f16);
        if (turn || Op::row.kind == ops::family::optimizer) check(all, op, c, call, stream, narrow, type);
        if (turn && Op::row.kind == ops::family::norm) check_other_formats(all, op, c, call, stream, narrow, type);
      }
      constexpr bool has_wide =
          (rows && (Op::in[0].types & ops::one(dtype::f64)) != 0) || Op::row.kind == ops::family::optimizer;
      if (has_wide && !is_chain && stream % 4 == 1) check(all, op, c, call, stream, wide, dtype::f64);
      check(all, op, c, call, stream++, counted);
    }
    total += counted.outputs + narrow.outputs + wide.outputs;
    char line[96];
    std::snprintf(line, sizeof line, "\n  %-16s %7lld outputs, %7lld of the class", std::string(name_of(c)).c_str(),
                  static_cast<long long>(counted.outputs), static_cast<long long>(counted.hits));
    table += line;
    located += counted.located;
    hits += counted.hits;
    if (!rounds || !in_full) continue;  // a part of the calls has its own shares
    CHECK_MESSAGE(counted.located > 0, op << " " << std::string(name_of(c)));
    const double least = least_share(op, c);
    REQUIRE_MESSAGE(least >= 0, op << " has no shares");
    if (least == 0) continue;  // nothing is promised
    CHECK_MESSAGE((narrow.outputs == 0 || narrow.hits > 0), op << " " << std::string(name_of(c)) << ", 16 bits");
    CHECK_MESSAGE((wide.outputs == 0 || wide.hits > 0 || least < .1),
                  op << " " << std::string(name_of(c)) << ", 64 bits");
    CHECK_MESSAGE(static_cast<double>(counted.hits) >= least * static_cast<double>(counted.located),
                  op << " " << std::string(name_of(c)) << ": " << counted.hits << " of " << counted.located);
  }
  CHECK((located > 0) == rounds);
  CHECK((hits > 0) == rounds);
  CHECK(total >= (in_full ? required_outputs : required_outputs / 10));
  MESSAGE(op << ": " << total << " outputs against the oracle on each of " << names << table);
}

// Layers, rows, steps and random numbers: classes_test.cpp, losses_test.cpp, scatter_test.cpp, nll_test.cpp and
// sequence_test.cpp, upsample_test.cpp, multinomial_test.cpp, scan_test.cpp, exponent_test.cpp and attention_test.cpp have the others.
constexpr bool has_calls(ops::family f) {
  return f != ops::family::convert && f != ops::family::reduce && f != ops::family::matmul && f != ops::family::loss &&
         f != ops::family::scatter && f != ops::family::nll && f != ops::family::sequence &&
         f != ops::family::upsample && f != ops::family::draw && f != ops::family::scan && f != ops::family::exponent &&
         f != ops::family::attention;
}
// The results of two depend on no class: random_test.cpp has them. total_norm has one output a call: clip_test.cpp.
template <class Op>
constexpr bool is_tried = has_calls(Op::row.kind) &&
                          !ops::is_one_of<Op, ops::op_id::uniform, ops::op_id::permutation, ops::op_id::total_norm>;
template <class Op>
using if_tried = std::conditional_t<is_tried<Op>, std::tuple<Op>, std::tuple<>>;
using tried = decltype(std::tuple_cat(
#define REPDL_STRUCTURED(name, ...) if_tried<ops::name>(),
#include "librepdl/ops/structured.def"
#undef REPDL_STRUCTURED
    std::tuple<>()));

}  // namespace

TEST_SUITE_BEGIN("portable values");

TEST_CASE_TEMPLATE_DEFINE("classes", Op, classes) { check_all<Op>(false); }
TEST_CASE_TEMPLATE_APPLY(classes, tried);
TEST_CASE_TEMPLATE_DEFINE("classes in full" * doctest::skip(), Op, all_calls) { check_all<Op>(true); }
TEST_CASE_TEMPLATE_APPLY(all_calls, tried);

// A part of the long ones, also for builds with sanitizers.
TEST_CASE("classes: hard rows and normal numbers") {
  std::vector<test::engine> all = test::engines();
  ops::for_each_structured([&]<class Op>() {
    constexpr bool row = Op::row.kind == ops::family::softmax;
    if (!row && Op::id != ops::op_id::normal) return;
    const std::string op(Op::name);
    for (const sample_class c : {sample_class::near_ties, sample_class::exact_gaps, sample_class::single_nonfinite}) {
      if (!row && c != sample_class::near_ties) continue;
      tally counted;
      std::uint64_t stream = 0;
      for (const test::class_call& call : test::network_calls(Op::row.kind, op, c)) {
        if (stream % 3 == 1) check(all, op, c, call, stream, counted);
        ++stream;
      }
      CHECK(counted.outputs > 0);
    }
  });
}

TEST_SUITE_END();
