// The CUDA kernels of attention and its gradients, emulated: the CPU's results, bit for bit, from every tier, of heads of both sizes, keys that are split,
// masks, and the classes of the oracle's samples.
#include <doctest/doctest.h>
#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "backends/cuda/attention/second_tier.cuh"
#include "backends/cuda/core/drivers.hpp"
#include "librepdl/librepdl.hpp"
#include "librepdl/plan/planner.hpp"
#include "reference/evaluate.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/placed_calls.hpp"
#include "tools/cli/random_call.hpp"

namespace repdl::cuda {

// What the drivers ask of CUDA.
void check(cudaError_t, std::string_view, std::string_view) {}
unsigned grid_of(std::string_view, std::int64_t blocks) { return static_cast<unsigned>(blocks); }
void planned::run(void* workspace) {
  space.place(workspace);
  enqueue();
}

}  // namespace repdl::cuda

namespace {

using namespace repdl;
using reference::absent_shape;
using reference::array;
using reference::sample_class;
using reference::shape_list;

constexpr std::size_t guard = 256;  // bytes around what kernels may write
const std::uint64_t random_seed = [] {
  const char* const given = std::getenv("REPDL_FUZZ_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}();

// Results of one emulated call, and how many elements each tier decided.
struct emulated {
  std::vector<array> out;
  cuda::counter counted[cuda::counter_count] = {};
};

emulated emulate(const std::string& op, const std::vector<array>& in, const attributes& attrs, tier first, bool wide) {
  std::vector<const_tensor_view> views;
  std::vector<std::vector<std::byte>> outputs;
  for (const array& x : in) {
    views.push_back(x.absent() ? const_tensor_view{}
                               : const_tensor_view(x.bytes.data(), x.type, sizes(std::span(x.shape))));
  }
  attention_options options;
  for (const auto& [name, value] : attrs) {
    if (name == "scale") options.scale = std::get<double>(value);
    if (name == "causal") options.causal = std::get<bool>(value);
    if (name == "bottom_right") options.bottom_right = std::get<bool>(value);
    if (name == "left") options.left = std::get<std::int64_t>(value);
    if (name == "right") options.right = std::get<std::int64_t>(value);
    if (name == "dropout") options.dropout = std::get<double>(value);
    if (name == "seed") options.seed = static_cast<std::uint64_t>(std::get<std::int64_t>(value));
    if (name == "stream") options.stream = static_cast<std::uint64_t>(std::get<std::int64_t>(value));
  }
  const bool is_forward = op == "attention";
  const plan::specs specs = is_forward ? plan::planner<ops::attention>::infer(views, options)
                                       : plan::planner<ops::attention_backward>::infer(views, options);
  std::vector<tensor_view> out;
  for (const tensor_spec& s : specs) {
    outputs.emplace_back(static_cast<std::size_t>(element_count(s.shape)) * size_of(s.type) + 2 * guard,
                         std::byte{0x5a});
    out.emplace_back(outputs.back().data() + guard, s.type, s.shape);
  }
  const plan::attention_plan p = is_forward ? plan::planner<ops::attention>::make(views, out, options)
                                            : plan::planner<ops::attention_backward>::make(views, out, options);
  emulated e;
  cuda::job j{{is_forward ? ops::op_id::attention : ops::op_id::attention_backward, p.type, p.type},
              nullptr,
              {0, 4, p.keys < 1024 ? 90 : 80, {.wide = wide}},  // no clusters, which are not emulated
              e.counted,
              first,
              512,
              false};
  dispatch::stored_task task;
  cuda::prepare(p, j, task);
  std::vector<std::byte> workspace(task->bytes().value() + 2 * guard, std::byte{0xee});
  std::byte* const begin = workspace.data() + (guard - reinterpret_cast<std::uintptr_t>(workspace.data()) % guard);
  task->run(begin);
  const auto is_whole = [](const std::byte* from, std::size_t count, std::byte b) {
    return std::all_of(from, from + count, [b](std::byte x) { return x == b; });
  };
  CHECK(is_whole(workspace.data(), static_cast<std::size_t>(begin - workspace.data()), std::byte{0xee}));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::vector<std::byte>& b = outputs[i];
    CHECK(is_whole(b.data(), guard, std::byte{0x5a}));
    CHECK(is_whole(b.data() + b.size() - guard, guard, std::byte{0x5a}));
    shape_list shape(specs[i].shape.begin(), specs[i].shape.end());
    array x(specs[i].type, shape);
    std::memcpy(x.bytes.data(), b.data() + guard, x.bytes.size());
    e.out.push_back(x);
  }
  return e;
}

// Numbers between -2 and 2.
array ordinary(dtype t, const shape_list& shape, std::uint64_t seed) {
  reference::word_stream w(seed, 9);
  array x(dtype::f32, shape);
  for (std::size_t i = 0; i < reference::index(x.count()); ++i)
    x.set(i, std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(w.next())) * 0x1p-30f));
  return t == dtype::f32 ? x : reference::evaluate("convert", {x}, {{"dtype", std::string(name_of(t))}});
}

struct problem {
  std::int64_t heads, key_heads, queries, keys, size, values;
  attributes attrs;
};

void check_both(const std::vector<array>& in, const attributes& attrs, tier first, bool wide = false) {
  context ctx({.threads = 1});
  const std::vector<array> y = run(ctx, tests::call_case{"attention", in, attrs});
  CHECK(emulate("attention", in, attrs, first, wide).out == y);
  std::vector<array> given = {ordinary(in[0].type, y[0].shape, 4), in[0], in[1], in[2], y[0], y[1]};
  given.insert(given.end(), in.begin() + 3, in.end());
  CHECK(emulate("attention_backward", given, attrs, first, wide).out ==
        run(ctx, tests::call_case{"attention_backward", given, attrs}));
}

}  // namespace

TEST_CASE("attention on CUDA, emulated: tiles, from every tier") {
  const attributes causal{{"causal", true}, {"bottom_right", true}};
  const attributes dropping{{"dropout", 0.3}, {"seed", std::int64_t{5}}, {"causal", true}, {"bottom_right", true}};
  const attributes window{{"left", std::int64_t{9}}, {"right", std::int64_t{5}}};
  const std::vector<std::pair<dtype, problem>> problems = {
      {dtype::f32, {2, 1, 25, 40, 64, 48, causal}},    {dtype::f32, {1, 1, 18, 35, 72, 104, window}},
      {dtype::f16, {2, 1, 20, 17, 24, 128, causal}},   {dtype::bf16, {2, 2, 18, 20, 64, 64, {}}},
      {dtype::f32, {1, 1, 70, 90, 16, 8, {}}},         {dtype::f32, {4, 2, 25, 40, 64, 48, dropping}},
      {dtype::bf16, {2, 1, 18, 35, 64, 40, dropping}}, {dtype::f16, {2, 1, 20, 36, 72, 104, dropping}}};
  for (const auto& [t, p] : problems) {
    CAPTURE(p.size);
    const std::vector<array> in = {ordinary(t, {p.heads, p.queries, p.size}, 1),
                                   ordinary(t, {p.key_heads, p.keys, p.size}, 2),
                                   ordinary(t, {p.key_heads, p.keys, p.values}, 3)};
    check_both(in, p.attrs, tier::binary64);
    if (p.size == 64) check_both(in, p.attrs, tier::double_double);
  }
}

// Masks that leave out some keys and whole rows, that add to scores, far below the others and above what tiles compute; slopes; both.
TEST_CASE("attention on CUDA, emulated: tiles with masks and slopes") {
  const attributes causal{{"causal", true}, {"bottom_right", true}},
      dropping{{"dropout", 0.2}, {"seed", std::int64_t{3}}};
  int turn = 0;
  for (const dtype t : {dtype::f32, dtype::bf16, dtype::f16}) {
    for (const std::int64_t size : {64, 104}) {
      const std::int64_t heads = 4, key_heads = 2, queries = 21, keys = 44;
      const std::vector<array> in = {ordinary(t, {heads, queries, size}, 1), ordinary(t, {key_heads, keys, size}, 2),
                                     ordinary(t, {key_heads, keys, size - 8}, 3)};
      const array some = reference::evaluate(
          "less", {ordinary(dtype::f32, {heads, queries, keys}, 5), ordinary(dtype::f32, {keys}, 6)}, {});
      array padding(dtype::boolean, {keys}), added = ordinary(t, {queries, keys}, 7), far = added;
      for (std::int64_t j = 0; j < 30; ++j) padding.set(reference::index(j), 1);
      const auto put = [&](array& x, std::int64_t i, double value) {
        array one(dtype::f64, {1});
        one.set(0, std::bit_cast<std::uint64_t>(value));
        x.set(reference::index(i), reference::evaluate("convert", {one}, {{"dtype", std::string(name_of(t))}}).get(0));
      };
      for (std::int64_t i = 0; i < far.count(); ++i) {
        const std::int64_t row = i / keys, column = i % keys;
        if ((row + column) % 3 == 0) put(far, i, -65504);
        if ((row + column) % 7 == 0) put(far, i, -INFINITY);
        if (row == 3) put(far, i, -INFINITY);
        if (row == 4) put(far, i, -60000);
        if (row == 5 && column == 2) put(far, i, 400);
        if (row == 6 && column == 3) put(far, i, NAN);
      }
      const array slopes = ordinary(dtype::f32, {heads}, 8);
      const std::vector<std::vector<array>> all = {
          {some}, {padding}, {added}, {far}, {array::none(), slopes}, {some, slopes}, {added, slopes}};
      for (const std::vector<array>& more : all) {
        std::vector<array> given = in;
        given.insert(given.end(), more.begin(), more.end());
        ++turn;
        CAPTURE(turn);
        CAPTURE(size);
        CAPTURE(std::string(name_of(t)));
        if (more.size() == 1) {  // tiles decide most, of queries that are not made for them to leave
          const emulated e = emulate("attention", given, {}, tier::binary64, false);
          CHECK(e.counted[static_cast<int>(tier::binary64)] > (&more == &all[3] ? 300 : 3000));
        }
        check_both(given, turn % 3 == 0 ? causal : turn % 3 == 1 ? dropping : attributes{}, tier::binary64);
      }
    }
  }
}

TEST_CASE("attention on CUDA, emulated: few queries and many keys") {
  context ctx({.threads = 1});
  const attributes window{{"causal", true}, {"bottom_right", true}, {"left", std::int64_t{700}}};
  for (const dtype t : {dtype::f32, dtype::bf16}) {
    for (const std::int64_t size : {64, 128}) {
      const auto of = [&](int seed, std::int64_t heads, std::int64_t lines, std::int64_t numbers) {
        return ordinary(t, {heads, lines, numbers}, seed);
      };
      std::vector<array> in = {of(1, 2, 3, size), of(2, 1, 1100, size), of(3, 1, 1100, size - 24)};
      for (const bool is_odd : {false, true}) {
        // Parts of which little is known, or too much: NaN, infinities and numbers whose squares are not.
        if (is_odd) {
          const auto set = [&](array& x, std::int64_t i, std::uint32_t as_f32) {
            x.set(static_cast<std::size_t>(i), t == dtype::f32 ? as_f32 : as_f32 >> 16);
          };
          set(in[1], 70 * size, 0x62800000);               // 2^70
          set(in[2], 5, 0x7f800000);                       // infinity
          set(in[2], 1099 * (size - 24) + 1, 0x7fc00000);  // NaN
        }
        for (const attributes& a : {attributes{}, window}) {
          const emulated e = emulate("attention", in, a, tier::binary64, false);
          CHECK(e.out == run(ctx, tests::call_case{"attention", in, a}));
          CHECK((is_odd || e.counted[static_cast<int>(tier::binary64)] > 200));
        }
      }
    }
  }
}

TEST_CASE("attention on CUDA, emulated: without tiles, and exactly") {
  const array mask =
      reference::evaluate("less", {ordinary(dtype::f32, {2, 7, 9}, 5), ordinary(dtype::f32, {9}, 6)}, {});
  const std::vector<array> in = {ordinary(dtype::f32, {2, 7, 5}, 1), ordinary(dtype::f32, {1, 9, 5}, 2),
                                 ordinary(dtype::f32, {1, 9, 3}, 3), mask, ordinary(dtype::f32, {2}, 7)};
  const attributes dropping{{"dropout", 0.1}, {"seed", std::int64_t{-3}}};
  for (const tier first : {tier::binary64, tier::double_double, tier::exact}) {
    check_both(in, {}, first);
    check_both(in, dropping, first);
  }
  const std::vector<array> whole = {ordinary(dtype::f32, {2, 6, 8}, 1), ordinary(dtype::f32, {1, 7, 8}, 2),
                                    ordinary(dtype::f32, {1, 7, 8}, 3)};
  check_both(whole, {}, tier::binary64, true);
  check_both(whole, {}, tier::exact);
}

TEST_CASE("attention on CUDA, emulated: classes") {
  std::uint64_t seed = 0;
  context ctx({.threads = 1});
  for (const sample_class kind : reference::element_classes) {
    for (const dtype t : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64}) {
      CAPTURE(std::string(name_of(kind)));
      CAPTURE(std::string(name_of(t)));
      const shape_list q{2, 5, 8}, k{1, 6, 8}, queries{2, 5};
      const dtype of_rows = t == dtype::f64 ? t : dtype::f32;
      attributes attrs;
      if (seed % 6 >= 4) attrs = {{"dropout", 0.5}, {"seed", static_cast<std::int64_t>(seed)}};
      const std::vector<array> forward = reference::fill_attention(kind, {t, t, t}, {q, k, k}, attrs, ++seed);
      CHECK(emulate("attention", forward, attrs, tier::binary64, false).out ==
            run(ctx, tests::call_case{"attention", forward, attrs}));
      const std::vector<array> backward =
          reference::fill_attention_backward(kind, {t, t, t, t, t, of_rows}, {q, q, k, k, q, queries}, attrs, ++seed);
      CHECK(emulate("attention_backward", backward, attrs, tier::binary64, false).out ==
            run(ctx, tests::call_case{"attention_backward", backward, attrs}));
    }
  }
}

// Those of `repdl fuzz --op`, as large as a moment allows; of some masks and slopes nobody would think.
TEST_CASE("attention on CUDA, emulated: random calls") {
  constexpr std::int64_t most_work = 20'000;
  const int calls =
      std::getenv("REPDL_EMULATED_CALLS") == nullptr ? 40 : std::atoi(std::getenv("REPDL_EMULATED_CALLS"));
  context ctx({.threads = 1});
  tools::call_runner runner(ctx);
  for (const std::string op : {"attention", "attention_backward"}) {
    const op_info& info =
        *std::find_if(operations().begin(), operations().end(), [&](const op_info& o) { return o.name == op; });
    int made = 0;
    for (std::uint64_t call = 0; made < calls; ++call) {
      reference::word_stream words(random_seed, 2 * call);
      words.below(1);  // the operation
      const tools::random_call r = tools::make_random_call(info, words);
      if (r.work > most_work) continue;
      const tools::placed_call plain = tools::contiguous(r.call);
      std::vector<array> in;
      for (const auto& i : plain.in) in.push_back(i ? plain.memory.get(*i) : array::none());
      if (std::any_of(in.begin(), in.end(), [](const array& x) { return !x.absent() && x.count() == 0; })) continue;
      const std::vector<array> want = tools::results_of(plain, runner.run(plain));
      const emulated e = emulate(op, in, plain.attrs, tier::binary64, false);
      if (e.counted[cuda::undecided_counter] != 0) continue;  // with 512 bits, of which the CPU has more
      for (std::size_t i = 0; i < want.size(); ++i) {
        CAPTURE(call);
        CAPTURE(tools::describe(plain));
        CAPTURE(i);
        CHECK((want[i].absent() || e.out[i] == want[i]));
      }
      ++made;
    }
  }
}

TEST_CASE("attention on CUDA, emulated: e^x of the second tier is within its bound") {
  reference::word_stream words(11, 1);
  const auto number = [&] { return static_cast<double>(static_cast<std::int32_t>(words.next())) * 0x1p-31; };
  mpfr_t x, e, w;
  mpfr_inits2(300, x, e, w, nullptr);
  double worst = 0;
  emulation::block_size.x = 32;
  emulation::grid_size.x = 1;
  for (int n = 0; n < 4000; ++n) {
    double hi[32], lo[32];
    num::dd result[32];
    for (int l = 0; l < 32; ++l) {
      // Of every size; and beside borders of the reduction, which are odd multiples of ln2 / 64.
      const double border = 0x1.62e42fefa39efp-7 * (2 * std::round(20000 * number()) + 1);
      hi[l] = l % 4 == 0   ? 500 * number()
              : l % 4 == 1 ? std::ldexp(number(), -static_cast<int>(words.next() % 90))
              : l % 4 == 2 ? border * (1 + std::ldexp(number(), -40))
                           : 10 * number();
      lo[l] = hi[l] * 0x1p-53 * number();
    }
    emulation::block::current().run(32, [&] {
      const int lane = cuda::lane_of_thread();
      const cuda::wide_exponential_of_lanes exponential;
      result[lane] = exponential(hi[lane], lo[lane]);
    });
    for (int l = 0; l < 32; ++l) {
      mpfr_set_d(x, hi[l], MPFR_RNDN);
      mpfr_add_d(x, x, lo[l], MPFR_RNDN);
      mpfr_exp(e, x, MPFR_RNDN);
      mpfr_set_d(w, result[l].hi, MPFR_RNDN);
      mpfr_add_d(w, w, result[l].lo, MPFR_RNDN);
      mpfr_sub(w, w, e, MPFR_RNDN);
      mpfr_div(w, w, e, MPFR_RNDN);
      worst = std::max(worst, std::fabs(mpfr_get_d(w, MPFR_RNDU)));
    }
  }
  mpfr_clears(x, e, w, nullptr);
  CHECK(worst < 0x1p-71);
  CHECK(worst > 0x1p-75);  // that much of the bound is used
}
