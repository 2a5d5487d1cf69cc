// Sums to places given by indices against the oracle: every class of terms in every format, from every tier, on every instruction
// set, with one thread and with several; lists long enough to be shared by workers; what is untouched keeps its bits.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "reference/evaluate.hpp"
#include "reference/samples.hpp"
#include "reference/structured/structured.hpp"
#include "tests/helpers/class_engines.hpp"
#include "tests/helpers/placed_tensor.hpp"

using namespace repdl;
using reference::array;
using reference::outcomes;
using reference::sample_class;
using reference::shape_list;

namespace {

constexpr dtype formats[] = {dtype::f16, dtype::bf16, dtype::f32, dtype::f64};

struct scatter_call {
  std::string op;
  std::vector<shape_list> shapes;
  attributes attrs;
};
attribute whole(const char* name, std::int64_t v) { return {name, v}; }

const scatter_call calls[] = {
    {"index_add", {{9, 70}, {90}, {90, 70}}, {}},
    {"index_add", {{3, 9, 5}, {60}, {3, 60, 5}}, {whole("axis", 1), {"alpha", -0.5}}},
    {"index_add", {{5, 9}, {61}, {5, 61}}, {whole("axis", -1), {"alpha", 0.1}}},
    {"index_add", {{7}, {300}, {300}}, {{"alpha", -1.0}}},
    {"index_add", {{400, 3}, {50}, {50, 3}}, {{"alpha", 0.0}}},
    {"index_add", {{20}, {60}, {60}}, {{"alpha", 0x1.8p199}}},
    {"index_add", {{20}, {60}, {60}}, {{"alpha", -0x1.fp-199}}},
    {"index_add", {{20}, {200}, {200}}, {{"alpha", 0x1.fffffffffffffp-2}}},
    {"scatter_add", {{40, 11}, {90, 10}, {93, 10}}, {}},
    {"scatter_add", {{3, 9, 5}, {2, 60, 5}, {3, 60, 7}}, {whole("axis", 1), {"alpha", 2.0}}},
    {"scatter_add", {{5, 9}, {5, 61}, {5, 61}}, {whole("axis", -1), {"alpha", -0x1p-7}}},
    {"embedding_backward", {{90, 70}, {90}}, {whole("rows", 9)}},
    {"embedding_backward", {{3, 40, 5}, {3, 40}}, {whole("rows", 20), whole("padding_idx", -3)}},
    {"embedding_backward",
     {{3, 40, 5}, {3, 40}},
     {whole("rows", 7), whole("padding_idx", 2), {"scale_grad_by_freq", true}}},
    {"embedding_backward", {{64, 33}, {64}}, {whole("rows", 1), {"scale_grad_by_freq", true}}},
};

bool same(const array& got, const array& want, const std::string& what) {
  const bool equal = got == want;
  INFO(what);
  CHECK(equal);
  return equal;
}

}  // namespace

TEST_CASE("sums to places: every class of terms, from every tier, on every instruction set") {
  std::vector<std::pair<std::string, std::unique_ptr<context>>> contexts;
  for (const isa_info& i : instruction_sets()) {
    if (!i.available) continue;
    for (const tier t : {tier::proved, tier::exact}) {
      for (const int threads : {1, 3}) {
        contexts.emplace_back(
            i.name + (t == tier::exact ? " exact " : " ") + std::to_string(threads),
            std::make_unique<context>(context_options{.threads = threads, .isa = i.name, .first_tier = t}));
      }
    }
  }
  std::int64_t ties = 0, near_ties = 0, overflows = 0, zeros = 0, subnormal = 0;
  std::uint64_t seed = 0;
  for (const scatter_call& c : calls) {
    for (const dtype t : formats) {
      for (const sample_class k : reference::element_classes) {
        const std::vector<array> in = reference::fill_scatter(c.op, k, t, c.shapes, c.attrs, ++seed, 0);
        outcomes where;
        const array want = reference::evaluate(c.op, in, c.attrs, &where);
        for (const reference::outcome& o : where) {
          ties += k == sample_class::ties && o.tie;
          near_ties += k == sample_class::near_ties && o.near_tie;
          overflows += k == sample_class::overflow_border && o.overflow;
          zeros += k == sample_class::cancelling && o.exact_zero;
          subnormal += k == sample_class::subnormal && o.subnormal;
        }
        for (const auto& [name, ctx] : contexts) {
          const array got = test::run(*ctx, c.op, in, {want}, c.attrs)[0];
          if (!same(got, want, c.op + " " + std::string(name_of(t)) + " " + std::string(name_of(k)) + " " + name))
            return;
        }
      }
    }
  }
  CHECK(ties > 1000);
  CHECK(near_ties > 500);
  CHECK(overflows > 1000);
  CHECK(zeros > 1000);
  CHECK(subnormal > 1000);
  std::int64_t decided[4] = {};
  for (const auto& [name, ctx] : contexts) {
    if (name.find("exact") != std::string::npos) continue;
    const statistics s = ctx->read_statistics();
    for (std::size_t i = 0; i < 4; ++i) decided[i] += s.elements[i];
  }
  CHECK(decided[0] > 0);
  CHECK(decided[1] > 0);
  CHECK(decided[2] > 0);  // of f64
  CHECK(decided[3] > 0);  // ties of sums that were not exact
}

TEST_CASE("sums to places: lists that workers share, and a single one") {
  std::mt19937_64 engine(5);
  constexpr std::int64_t n = 40000;
  for (const std::int64_t rows : {1, 3}) {
    for (const std::int64_t inner : {1, 3, 67}) {
      std::vector<float> x(static_cast<std::size_t>(rows * inner)), source(static_cast<std::size_t>(n * inner));
      std::vector<std::int64_t> places(n);
      for (std::int64_t& p : places)
        p = static_cast<std::int64_t>(engine() % 20 == 0 ? engine() % static_cast<std::uint64_t>(rows) : 0);
      std::uniform_real_distribution<float> uniform(-1, 1);
      for (float& v : source) v = std::ldexp(uniform(engine), static_cast<int>(engine() % 40));
      for (float& v : x) v = uniform(engine);
      const auto as_array = [](dtype t, shape_list s, const auto& v) {
        array a(t, std::move(s));
        std::memcpy(a.bytes.data(), v.data(), a.bytes.size());
        return a;
      };
      const std::vector<array> in{as_array(dtype::f32, {rows, inner}, x), as_array(dtype::i64, {n}, places),
                                  as_array(dtype::f32, {n, inner}, source)};
      const array want = reference::evaluate("index_add", in, {});
      for (const int threads : {1, 2, 5}) {
        context ctx({.threads = threads});
        same(test::run(ctx, "index_add", in, {want}, {})[0], want, "threads " + std::to_string(threads));
      }
    }
  }
}

TEST_CASE("sums to places: strided operands, in place, and any order of the positions") {
  std::mt19937_64 engine(6);
  context ctx({.threads = 2});
  for (const scatter_call& c : calls) {
    std::vector<array> in =
        reference::fill_scatter(c.op, sample_class::wide_exponents, dtype::f32, c.shapes, c.attrs, 77, 0);
    const array want = reference::evaluate(c.op, in, c.attrs);
    for (const reference::layout l : tests::layouts) {
      std::vector<std::unique_ptr<tests::placed_tensor>> placed;
      std::vector<const_tensor_view> views;
      for (const array& a : in) {
        placed.push_back(std::make_unique<tests::placed_tensor>(ctx, a, l));
        views.push_back(placed.back()->view());
      }
      tests::placed_tensor out(ctx, want.type, want.shape, l);
      call(ctx, *find(c.op), views, std::vector<tensor_view>{out.view()}, c.attrs);
      same(out.get(), want, c.op);
      if (c.op == "embedding_backward") continue;
      call(ctx, *find(c.op), views, std::vector<tensor_view>{placed[0]->view()}, c.attrs);
      same(placed[0]->get(), want, c.op + " in place");
    }
    if (c.op != "index_add" || c.shapes[0].size() != 2 || c.attrs.size() > 1) continue;
    // The positions in another order.
    const std::size_t n = static_cast<std::size_t>(in[1].count()), row = in[2].bytes.size() / n;
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), engine);
    std::vector<array> turned = in;
    for (std::size_t i = 0; i < n; ++i) {
      turned[1].set(i, in[1].get(order[i]));
      std::copy_n(in[2].bytes.begin() + static_cast<std::ptrdiff_t>(order[i] * row), row,
                  turned[2].bytes.begin() + static_cast<std::ptrdiff_t>(i * row));
    }
    same(test::run(ctx, c.op, turned, {want}, c.attrs)[0], want, "another order");
  }
}

TEST_CASE("sums to places: special values, by their bits") {
  context ctx({.threads = 1});
  const auto add = [&](std::vector<std::uint32_t> x, std::vector<std::int64_t> places,
                       std::vector<std::uint32_t> source, double alpha = 1) {
    std::vector<std::uint32_t> out(x.size());
    index_add(ctx, {x.data(), dtype::f32, {x.size()}}, const_tensor_view(places),
              {source.data(), dtype::f32, {source.size()}}, {out.data(), dtype::f32, {out.size()}}, {.alpha = alpha});
    return out;
  };
  constexpr std::uint32_t one = 0x3f800000, minus = 0x80000000, inf = 0x7f800000, nan = 0x7fc00000;
  using list = std::vector<std::uint32_t>;
  // Untouched: -0, payloads, signalling NaN.
  CHECK(add({minus, 0xffc12345, 0x7f800001, one}, {3}, {one}) == list{minus, 0xffc12345, 0x7f800001, 0x40000000});
  // Touched: an exact zero is +0, a NaN the canonical one.
  CHECK(add({minus, 0xffc12345, one, minus}, {0, 1, 2, 3}, {minus, one, one | minus, 0}) == list{0, nan, 0, 0});
  CHECK(add({minus, 0xffc12345, one}, {0, 1, 2}, {one, one, one}, 0) == list{0, nan, one});
  CHECK(add({one, one, one, inf}, {0, 1, 1, 2, 3}, {inf, inf, inf | minus, nan, inf | minus}) ==
        list{inf, nan, nan, nan});
  CHECK(add({one, one}, {0, 1}, {inf, inf | minus}, 0) == list{nan, nan});  // 0 inf
  CHECK(add({one, inf}, {0, 1}, {inf, inf}, -1) == list{inf | minus, nan});
  // The exact sum: M + M - M is M; half of the least number is a tie; what is below it is not.
  constexpr std::uint32_t largest = 0x7f7fffff;
  CHECK(add({largest}, {0, 0}, {largest, largest | minus}) == list{largest});
  CHECK(add({0, 1, minus}, {0, 1, 2}, {1, 1, 1}, 0.5) == list{0, 2, 0});
  CHECK(add({0, 0}, {0, 1}, {1, 1 | minus}, 0x1.8p-1) == list{1, 1 | minus});
  CHECK(add({0, 0}, {0, 1}, {1, 1 | minus}, 0x1p-200) == list{0, minus});
  CHECK(add({0}, {0}, {largest}, 0x1p200) == list{inf});
  CHECK(add({largest}, {0, 0}, {0x73000000, 1}) == list{inf});              // half an ulp, and more
  CHECK(add({largest}, {0, 0}, {0x73000000, 1 | minus}) == list{largest});  // and less
  CHECK(add({largest}, {0}, {0x73000000}) == list{inf});                    // a tie, to even
}

TEST_CASE("sums to places: empty operands, ranks 1 to 8, and indices out of range") {
  context ctx({.threads = 2});
  // No position: x itself; no column, no target: nothing.
  const std::uint32_t x[] = {0x80000000, 0xffc12345};
  std::uint32_t out[2] = {};
  index_add(ctx, {x, dtype::f32, {2}}, {static_cast<const std::int64_t*>(nullptr), sizes{0}},
            {static_cast<const float*>(nullptr), sizes{0}}, {out, dtype::f32, {2}});
  CHECK(out[0] == x[0]);
  CHECK(out[1] == x[1]);
  for (int rank = 1; rank <= 8; ++rank) {
    for (int axis = 0; axis < rank; ++axis) {
      shape_list s(static_cast<std::size_t>(rank), 2), from(s);
      s[static_cast<std::size_t>(axis)] = 3;
      from[static_cast<std::size_t>(axis)] = 5;
      const attributes attrs{whole("axis", axis % 2 == 0 ? axis : axis - rank)};
      for (const std::string op : {"index_add", "scatter_add"}) {
        const std::vector<shape_list> shapes{s, op == "index_add" ? shape_list{5} : from, from};
        const std::vector<array> in = reference::fill_scatter(op, sample_class::normal_range, dtype::bf16, shapes,
                                                              attrs, static_cast<std::uint64_t>(rank * 8 + axis), 0);
        const array want = reference::evaluate(op, in, attrs);
        same(test::run(ctx, op, in, {want}, attrs)[0], want, op + " of rank " + std::to_string(rank));
      }
    }
  }
  // The first index that is out of range, and nothing is written.
  for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{3}, std::int64_t{1} << 40, INT64_MIN, INT64_MAX}) {
    std::vector<float> before(6, 1), source(8, 1), result(6, -7);
    const std::vector<std::int64_t> places{0, 2, bad, -9};
    std::string text;
    try {
      index_add(ctx, {before.data(), {3, 2}}, const_tensor_view(places), {source.data(), {4, 2}},
                {result.data(), {3, 2}});
    } catch (const error& e) {
      CHECK(e.site() == error_site::index_range);
      text = e.what();
    }
    CHECK(text.find("index: expected indices in [0, 3), got " + std::to_string(bad)) != std::string::npos);
    CHECK(std::count(result.begin(), result.end(), -7.0f) == 6);
  }
}

TEST_CASE("sums to places on CUDA: long lists as the CPU's, and indices out of range") {
  if (!tests::has_gpu()) return;
  context cpu({.threads = 2}), ctx(context_options{.where = tests::gpu});
  std::mt19937_64 engine(7);
  for (const std::int64_t inner : {1, 3, 40, 70}) {
    for (const std::uint64_t way : {0, 1, 2}) {
      constexpr std::int64_t n = 30011, rows = 5003;
      array x(dtype::f32, {rows, inner}), index(dtype::i64, {n}), source(dtype::f32, {n, inner});
      for (std::int64_t i = 0; i < n; ++i) {
        const std::uint64_t any = engine() % rows;
        index.set(reference::index(i), way == 0 ? any : way == 1 ? (engine() % 3 == 0 ? any : any % 4) : 77);
      }
      for (array* a : {&x, &source}) {
        for (std::int64_t i = 0; i < a->count(); ++i) {
          const std::uint64_t w = engine();
          a->set(reference::index(i), (w & 0x807fffff) | (100 + (w >> 40) % 50) << 23);
        }
      }
      const array want = test::run(cpu, "index_add", {x, index, source}, {x}, {})[0];
      same(test::run(ctx, "index_add", {x, index, source}, {x}, {})[0], want, "inner " + std::to_string(inner));
      const attributes scaled{whole("rows", rows), {"scale_grad_by_freq", true}};
      same(test::run(ctx, "embedding_backward", {source, index}, {x}, scaled)[0],
           test::run(cpu, "embedding_backward", {source, index}, {x}, scaled)[0], "scaled");
      index.set(29, way == 0 ? static_cast<std::uint64_t>(-1) : rows);
      error_site site{};
      try {
        test::run(ctx, "index_add", {x, index, source}, {x}, {});
      } catch (const error& e) {
        site = e.site();
      }
      CHECK(site == error_site::index_range);
      ctx.synchronize();  // reported once
    }
  }
}
