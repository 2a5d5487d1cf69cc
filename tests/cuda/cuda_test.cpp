// CUDA against the CPU, bit for bit, through the public API: every operation, class of inputs, layout and tier.
// Without a GPU each test says so and passes.
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "librepdl/dispatch/backend.hpp"
#include "librepdl/dynamic.hpp"
#include "librepdl/librepdl.hpp"
#include "librepdl/ops/registry.hpp"
#include "reference/elementwise/elementwise.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/placed_tensor.hpp"

#if defined(REPDL_WITH_CUDA)
#include <cuda_runtime_api.h>
#endif

using namespace repdl;
using reference::array;
using reference::sample_class;
using reference::shape_list;
using tests::gpu;
using tests::has_gpu;
using tests::layout;
using tests::layouts;
using tests::placed_tensor;
using tests::to_sizes;

namespace {

array run(context& ctx, const std::string& name, const std::vector<array>& in, const tensor_spec& spec,
          const attributes& attrs, layout in_layout = layout::contiguous, layout out_layout = layout::contiguous) {
  std::vector<std::unique_ptr<placed_tensor>> inputs;
  std::vector<const_tensor_view> views;
  for (const array& a : in) {
    inputs.push_back(std::make_unique<placed_tensor>(ctx, a, in_layout));
    views.push_back(inputs.back()->view());
  }
  placed_tensor out(ctx, spec.type, shape_list(spec.shape.begin(), spec.shape.end()), out_layout);
  const tensor_view out_view = out.view();
  call(ctx, *find(name), views, {&out_view, 1}, attrs);
  return out.get();
}

tensor_spec spec_of(const std::string& name, const std::vector<array>& in, const attributes& attrs) {
  std::vector<const_tensor_view> views;
  for (const array& a : in) views.emplace_back(a.bytes.data(), a.type, to_sizes(a.shape));
  return infer(*find(name), views, attrs).at(0);
}

struct contexts {
  context cpu{context_options{}};
  std::vector<std::unique_ptr<context>> cuda;  // one per forced tier
  contexts() {
    for (const tier t : {tier::proved, tier::double_double, tier::exact}) {
      context_options o;
      o.where = gpu;
      o.first_tier = t;
      cuda.push_back(std::make_unique<context>(o));
    }
  }
};

constexpr dtype formats_of_sums[] = {dtype::f32, dtype::f16, dtype::bf16};

/// Operations that reduce one tensor over axes.
std::vector<std::string> reductions() {
  std::vector<std::string> names;
  for (const op_info& op : operations()) {
    if (op.family == "reduce" && op.in.size() == 1) names.push_back(op.name);
  }
  return names;
}

std::int64_t decided(context& c) {
  const statistics s = c.read_statistics();
  return s.elements[0] + s.elements[1] + s.elements[2] + s.elements[3];
}

// Every tier on CUDA against the CPU.
void compare(contexts& c, const std::string& name, const std::vector<array>& in, const attributes& attrs = {},
             layout in_layout = layout::contiguous, layout out_layout = layout::contiguous) {
  CAPTURE(name);
  CAPTURE(static_cast<int>(in_layout));
  CAPTURE(static_cast<int>(out_layout));
  const tensor_spec spec = spec_of(name, in, attrs);
  const array expected = run(c.cpu, name, in, spec, attrs);
  for (std::size_t t = 0; t < c.cuda.size(); ++t) {
    CAPTURE(t);
    context& ctx = *c.cuda[t];
    ctx.reset_statistics();
    const array got = run(ctx, name, in, spec, attrs, in_layout, out_layout);
    std::int64_t wrong = 0;
    std::int64_t first = -1;
    for (std::int64_t i = 0; i < expected.count(); ++i) {
      if (got.get(static_cast<std::size_t>(i)) == expected.get(static_cast<std::size_t>(i))) continue;
      if (wrong++ == 0) first = i;
    }
    if (wrong != 0) {
      CAPTURE(first);
      CAPTURE(got.get(static_cast<std::size_t>(first)));
      CAPTURE(expected.get(static_cast<std::size_t>(first)));
      CAPTURE(expected.count());
      CHECK(wrong == 0);
    }
    CHECK(decided(ctx) == expected.count());
    if (t > 0) CHECK(ctx.read_statistics()[tier::binary64] == 0);
    if (t > 1 && ctx.read_statistics()[tier::proved] == 0) {
      CHECK(ctx.read_statistics()[tier::exact] == expected.count());
    }
  }
}

sample_class class_of(int i) { return static_cast<sample_class>(i); }

}  // namespace

TEST_SUITE_BEGIN("portable");

TEST_CASE("cuda: elementwise operations have the CPU's bits") {
  if (!has_gpu()) return;
  contexts c;
  for (const ops::elementwise_row& row_of_op : ops::elementwise_rows()) {
    const std::string name(row_of_op.name);
    const int arity = row_of_op.arity;
    for (int k = 0; k < static_cast<int>(sample_class::all_patterns); ++k) {
      CAPTURE(k);
      for (const dtype t : find(name)->in[static_cast<std::size_t>(row_of_op.leading())].types) {
        std::vector<attributes> all(1);
        for (const double value : {0.1, -0.75, 0x1.8p-160}) {
          for (const attribute_info& a : find(name)->attrs) {
            if (a.kind != attribute_kind::real) continue;
            const attributes attrs{{a.name, value}};
            if (row_of_op.options.accepts(reference::option_values(row_of_op, t, attrs).value)) all.push_back(attrs);
          }
        }
        for (const std::int64_t n : {std::int64_t{1}, std::int64_t{67}, std::int64_t{100003}}) {
          const auto in = reference::fill_operands(class_of(k), row_of_op, t, n, 1, static_cast<std::uint64_t>(k));
          for (const attributes& attrs : all) compare(c, name, in, attrs);
        }
      }
      std::vector<array> cube =
          reference::fill_operands(class_of(k), row_of_op, dtype::f32, 24 * 7 * 12, 2, static_cast<std::uint64_t>(k));
      for (array& a : cube) a.shape = {24, 7, 12};
      for (const layout in : layouts) compare(c, name, cube, {}, in, layout::contiguous);
      for (const layout out : layouts) compare(c, name, cube, {}, layout::contiguous, out);
      if (arity == 2) {
        array row(cube[1].type, {12});
        for (std::size_t i = 0; i < 12; ++i) row.set(i, cube[1].get(i));
        array column(cube[1].type, {7, 1});
        for (std::size_t i = 0; i < 7; ++i) column.set(i, cube[1].get(i));
        compare(c, name, {cube[0], row});
        compare(c, name, {cube[0], column});
        if (cube[0].type == cube[1].type) compare(c, name, {row, cube[0]});
        compare(c, name, {cube[0], row}, {}, layout::shifted, layout::permuted);
      }
    }
  }
}

TEST_CASE("cuda: unary operations over every 61st pattern") {
  if (!has_gpu()) return;
  contexts c;
  for (const ops::elementwise_row& row : ops::elementwise_rows()) {
    if (row.arity != 1 || row.has_own_type()) continue;
    std::vector<std::uint32_t> patterns;
    for (auto b = static_cast<std::uint64_t>(&row - ops::elementwise_rows().data()); b < (std::uint64_t{1} << 32);
         b += 61) {
      patterns.push_back(static_cast<std::uint32_t>(b));
    }
    const auto n = static_cast<std::int64_t>(patterns.size());
    std::vector<float> cpu(patterns.size());
    const std::string name(row.name);
    const auto* values = reinterpret_cast<const float*>(patterns.data());
    const const_tensor_view in(values, sizes{n});
    const tensor_view out(cpu.data(), sizes{n});
    call(c.cpu, *find(name), {&in, 1}, {&out, 1}, {});
    context& g = *c.cuda[0];
    tensor memory(g, std::span(values, patterns.size()), {n});
    const tensor_view in_place = memory;
    const const_tensor_view from = in_place;
    call(g, *find(name), {&from, 1}, {&in_place, 1}, {});  // exact aliasing is legal
    const std::vector<float> got = memory.to_vector<float>();
    CAPTURE(name);
    CHECK(std::memcmp(cpu.data(), got.data(), patterns.size() * 4) == 0);
  }
}

TEST_CASE("cuda: functions of 16 bits, of so many elements that a table is made") {
  if (!has_gpu()) return;
  contexts c;
  constexpr std::int64_t n = (std::int64_t{1} << 24) + 11;
  for (const ops::elementwise_row& row : ops::elementwise_rows()) {
    if (row.arity != 1 || ops::proof_in(row.proof, dtype::f16) != ops::proof_kind::enumerate) continue;
    for (const dtype t : find(row.name)->in[0].types) {
      if (size_of(t) != 2) continue;
      CAPTURE(row.name);
      CAPTURE(static_cast<int>(t));
      tensor x(c.cpu, t, {n}), y(c.cpu, t, {n});
      auto* const patterns = static_cast<std::uint16_t*>(tensor_view(x).data());
      for (std::int64_t i = 0; i < n; ++i) patterns[i] = static_cast<std::uint16_t>(i * 40503 >> 7);
      const const_tensor_view from = x;
      const tensor_view to = y;
      call(c.cpu, *find(row.name), {&from, 1}, {&to, 1}, {});
      for (const std::int64_t skip : {0, 1}) {  // packs, and elements side by side
        context& g = *c.cuda[0];
        const array a = [&] {
          array part(t, {n - skip});
          std::memcpy(part.bytes.data(), patterns + skip, part.bytes.size());
          return part;
        }();
        const array got =
            run(g, std::string(row.name), {a}, {t, {n - skip}}, {}, skip != 0 ? layout::shifted : layout::contiguous);
        CHECK(std::memcmp(got.bytes.data(), static_cast<const std::uint16_t*>(to.data()) + skip, got.bytes.size()) ==
              0);
      }
    }
  }
}

// 2^32 pairs an operation, format and set of options. The CPU's results are proved for random tuples; that a GPU's quick bodies
// round as they do is shown for every pair.
TEST_CASE("cuda: every pair of f16 and of bf16 has the CPU's bits [long]" * doctest::skip()) {
  if (!has_gpu()) return;
  context cpu{context_options{}};
  context_options o;
  o.where = gpu;
  context cuda(o);
  constexpr std::int64_t values = 1 << 16, rows = 256;
  std::vector<std::uint16_t> patterns(values), want(rows * values), got(rows * values);
  for (std::int64_t i = 0; i < values; ++i) patterns[static_cast<std::size_t>(i)] = static_cast<std::uint16_t>(i);
  const auto bytes = static_cast<std::int64_t>(want.size() * 2);
  tensor x(cuda, dtype::boolean, {values * 2}), y(cuda, dtype::boolean, {bytes});
  cuda.copy(tensor_view(x).data(), patterns.data(), values * 2);
  for (const ops::elementwise_row& row : ops::elementwise_rows()) {
    if (row.arity != 2 || row.booleans != 0 || row.proof != ops::proof_kind::multi_limb) continue;
    const op_info& op = *find(row.name);
    for (const dtype t : {dtype::f16, dtype::bf16}) {
      std::vector<attributes> all(1);
      for (const double value : {0.375, 2.5}) {
        attributes attrs;
        for (const attribute_info& a : op.attrs) {
          if (a.kind == attribute_kind::real) attrs.push_back({a.name, value});
        }
        if (!attrs.empty() && row.options.accepts(reference::option_values(row, t, attrs).value)) all.push_back(attrs);
      }
      // rows values of the first operand beside all of the second.
      const auto compute = [&](context& c, void* in, std::int64_t first, void* out, const attributes& attrs) {
        const const_tensor_view operands[] = {
            const_tensor_view(static_cast<const std::uint16_t*>(in) + first, t, sizes{rows, 1}, c.where()),
            const_tensor_view(in, t, sizes{values}, c.where())};
        const tensor_view result(out, t, sizes{rows, values}, c.where());
        call(c, op, operands, {&result, 1}, attrs);
      };
      std::int64_t different = 0;
      for (std::int64_t first = 0; first < values; first += rows) {
        for (const attributes& attrs : all) {
          compute(cuda, tensor_view(x).data(), first, tensor_view(y).data(), attrs);
          compute(cpu, patterns.data(), first, want.data(), attrs);
          cuda.copy(got.data(), tensor_view(y).data(), static_cast<std::size_t>(bytes));
          if (got == want) continue;
          for (std::size_t i = 0; i < got.size(); ++i) different += got[i] != want[i] ? 1 : 0;
        }
      }
      MESSAGE(row.name, t == dtype::f16 ? " f16: " : " bf16: ", all.size() << 32, " pairs, ", different, " different");
      CHECK(different == 0);
    }
  }
}

TEST_CASE("cuda: conversions have the CPU's bits") {
  if (!has_gpu()) return;
  contexts c;
  const dtype types[] = {dtype::f16, dtype::bf16, dtype::f32, dtype::f64, dtype::i64, dtype::boolean, dtype::i32};
  for (const dtype from : types) {
    for (const dtype to : types) {
      const attributes attrs = {{"dtype", std::string(name_of(to))}};
      for (int k = 0; k < static_cast<int>(sample_class::all_patterns); ++k) {
        array a = reference::fill_conversion(class_of(k), from, to, 4 * 5 * 36, 3, static_cast<std::uint64_t>(k));
        compare(c, "convert", {a}, attrs);
        a.shape = {4, 5, 36};
        for (const layout in : layouts) compare(c, "convert", {a}, attrs, in, layout::gaps);
        for (const layout out : layouts) compare(c, "convert", {a}, attrs, layout::shifted, out);
      }
    }
  }
}

TEST_CASE("cuda: reductions have the CPU's bits") {
  if (!has_gpu()) return;
  contexts c;
  struct geometry {
    std::int64_t rows, length;
  };
  const geometry sizes_of_rows[] = {{1, 1},    {1, 33},    {300, 7},    {257, 64}, {3, 1000},
                                    {5, 4096}, {70, 2051}, {1, 300000}, {2, 40000}};
  for (const std::string& name : reductions()) {
    for (int k = 0; k < 3 * static_cast<int>(sample_class::all_patterns); ++k) {
      // Each class in each format.
      const dtype t = formats_of_sums[k % 3];
      const sample_class kind = class_of(k / 3);
      CAPTURE(k);
      for (const geometry& g : sizes_of_rows) {
        if (g.length > 10000 && k / 3 % 3 != 0) continue;
        array a =
            reference::fill_terms(kind, g.rows, g.length, name == "mean", 5, static_cast<std::uint64_t>(k / 3), t);
        a.shape = {g.rows, g.length};
        compare(c, name, {a}, {{"axis", std::vector<std::int64_t>{1}}});                    // rows
        compare(c, name, {a}, {{"axis", std::vector<std::int64_t>{1}}}, layout::permuted);  // columns
        compare(c, name, {a}, {{"axis", std::vector<std::int64_t>{1}}}, layout::shifted);
        compare(c, name, {a}, {{"axis", std::vector<std::int64_t>{0}}});
        compare(c, name, {a});
      }
      array cube = reference::fill_terms(kind, 40, 8 * 9 * 16, name == "mean", 6, static_cast<std::uint64_t>(k / 3), t);
      cube.shape = {40, 8, 9, 16};
      for (const std::vector<std::int64_t>& axes : {std::vector<std::int64_t>{0, 2, 3}, {1}, {0, 2}, {3}, {}}) {
        for (const layout l : layouts) {
          compare(c, name, {cube}, {{"axis", axes}, {"keepdim", true}}, l,
                  l == layout::gaps ? layout::permuted : layout::contiguous);
        }
      }
    }
  }
  const array empty(dtype::f32, {3, 0});
  compare(c, "sum", {empty}, {{"axis", std::vector<std::int64_t>{1}}});
  compare(c, "mean", {empty}, {{"axis", std::vector<std::int64_t>{1}}});
}

TEST_CASE("cuda: dot and prelu_weight_backward have the CPU's bits") {
  if (!has_gpu()) return;
  contexts c;
  for (int k = 0; k < 3 * static_cast<int>(sample_class::all_patterns); ++k) {
    CAPTURE(k);
    for (const std::int64_t n : {0, 1, 31, 500, 5003, 400000}) {
      reference::factors f = reference::fill_factors(class_of(k / 3), 1, 1, n, false, 7,
                                                     static_cast<std::uint64_t>(k / 3), formats_of_sums[k % 3]);
      f.a.shape = {n};
      f.b.shape = {n};
      compare(c, "dot", {f.a, f.b});
      compare(c, "dot", {f.a, f.b}, {}, layout::backwards);
      compare(c, "dot", {f.a, f.b}, {}, layout::shifted);
      compare(c, "prelu_weight_backward", {f.a, f.b});
      if (n % 500 != 0 || n == 0) continue;
      for (array* a : {&f.a, &f.b}) a->shape = {n / 100, 4, 25};
      for (const std::vector<std::int64_t>& axes : {std::vector<std::int64_t>{0, 2}, {1}, {0}}) {
        for (const layout l : layouts) compare(c, "prelu_weight_backward", {f.a, f.b}, {{"axis", axes}}, l);
      }
    }
  }
}

TEST_CASE("cuda: matmul has the CPU's bits") {
  if (!has_gpu()) return;
  contexts c;
  struct dimensions {
    std::int64_t m, n, k;
  };
  const dimensions all[] = {{1, 1, 1},     {1, 1, 0},     {5, 3, 17},     {64, 64, 64},
                            {65, 130, 33}, {128, 1, 500}, {1, 200, 1030}, {97, 61, 1600}};
  for (int k = 0; k < static_cast<int>(sample_class::all_patterns); ++k) {
    CAPTURE(k);
    for (const dimensions& d : all) {
      CAPTURE(d.m);
      CAPTURE(d.k);
      for (const bool with_bias : {false, true}) {
        const reference::factors f =
            reference::fill_factors(class_of(k), d.m, d.n, d.k, with_bias, 8, static_cast<std::uint64_t>(k));
        std::vector<array> in = {f.a, f.b};
        if (with_bias) in.push_back(f.bias);
        for (const std::string how : {"exact", "fma_chain"}) {
          compare(c, "matmul", in, {{"accumulate", how}});
          compare(c, "matmul", in, {{"accumulate", how}}, layout::permuted, layout::permuted);
          compare(c, "matmul", in, {{"accumulate", how}}, layout::gaps, layout::backwards);
        }
      }
    }
    // Batches, one operand broadcast.
    reference::factors f =
        reference::fill_factors(class_of(k), 3 * 20, 18, 40, false, 9, static_cast<std::uint64_t>(k));
    f.a.shape = {3, 20, 40};
    compare(c, "matmul", {f.a, f.b});
    compare(c, "matmul", {f.a, f.b}, {{"accumulate", std::string("fma_chain")}});
    f.a.shape = {3, 1, 20, 40};
    f.b.shape = {2, 40, 9};
    compare(c, "matmul", {f.a, f.b});
  }
}

TEST_CASE("cuda: matmul with factors, and of 16 bits, has the CPU's bits") {
  if (!has_gpu()) return;
  contexts c;
  struct call {
    std::int64_t m, n, k;
    double alpha, beta;
  };
  const call all[] = {{1, 1, 1, 0.3, -2.5},    {5, 3, 0, 2, 0.1},        {64, 64, 64, 1, 1},
                      {65, 130, 33, -0.5, 3},  {128, 1, 500, 0.1, 0.1},  {1, 200, 1030, 0, 0x1p199},
                      {97, 61, 700, 1e-50, 0}, {700, 600, 70, 1, 1},     {600, 700, 70, 3, -1},
                      {4, 4, 9000, 1, 1},      {4, 4, 9000, 0.1, 0x1p-9}};
  std::uint64_t stream = 0;
  for (const dtype t : {dtype::f16, dtype::bf16, dtype::f32}) {
    for (int k = 0; k < static_cast<int>(sample_class::all_patterns); ++k) {
      CAPTURE(k);
      for (const call& d : all) {
        if (d.m >= 600 && k % 5 != 0) continue;
        CAPTURE(d.m);
        CAPTURE(d.k);
        const bool with_bias = stream % 3 != 0;
        const reference::factors f = reference::fill_factors(class_of(k), d.m, d.n, d.k, with_bias, 11, stream++, t);
        std::vector<array> in = {f.a, f.b};
        if (with_bias) in.push_back(f.bias);
        const attributes factors{{"alpha", d.alpha}, {"beta", d.beta}};
        compare(c, "matmul", in, factors);
        compare(c, "matmul", in, factors, layout::gaps, layout::backwards);
      }
    }
  }
}

TEST_CASE("cuda: large matmul (large tiles, blocks of k) has the CPU's bits") {
  if (!has_gpu()) return;
  contexts c;
  for (const sample_class k :
       {sample_class::normal_range, sample_class::narrow_lattice, sample_class::single_nonfinite}) {
    const reference::factors f = reference::fill_factors(k, 1600, 1500, 1100, true, 10, 0);
    compare(c, "matmul", {f.a, f.b, f.bias});
  }
}

// Dot products on the GPU: in rows, in columns, in chunks.
TEST_CASE("cuda: few outputs of long sums have the CPU's bits, and small workspaces") {
  if (!has_gpu()) return;
  contexts c;
  struct dimensions {
    std::int64_t m, n, k;
  };
  const dimensions all[] = {{1, 1, 200000}, {4, 4, 50000},  {1, 64, 9000},  {64, 1, 9000},
                            {3, 50, 8192},  {64, 64, 8192}, {300, 1, 8192}, {1, 300, 8192}};
  for (int k = 0; k < static_cast<int>(sample_class::all_patterns); ++k) {
    CAPTURE(k);
    for (const dimensions& d : all) {
      if (d.m * d.n > 256 && k % 4 != 0) continue;
      CAPTURE(d.m);
      CAPTURE(d.n);
      for (const bool with_bias : {false, true}) {
        const reference::factors f =
            reference::fill_factors(class_of(k), d.m, d.n, d.k, with_bias, 8, static_cast<std::uint64_t>(k));
        std::vector<array> in = {f.a, f.b};
        if (with_bias) in.push_back(f.bias);
        compare(c, "matmul", in);
        compare(c, "matmul", in, {}, layout::permuted, layout::permuted);
      }
    }
  }
  for (const std::int64_t m : {1, 2, 8, 30, 64}) {
    for (const std::int64_t n : {1, 2, 8, 30, 64}) {
      CAPTURE(m);
      CAPTURE(n);
      const std::int64_t k = std::int64_t{1} << 24;
      const auto fake = reinterpret_cast<float*>(std::uintptr_t{1} << 20);  // nothing runs
      const const_tensor_view a(fake, dtype::f32, {m, k}, {0, 0}, gpu);
      const const_tensor_view b(fake, dtype::f32, {k, n}, {0, 0}, gpu);
      const tensor_view out(fake + 64, sizes{m, n}, gpu);
      const std::size_t bytes = c.cuda[0]->workspace_for([&] { matmul(*c.cuda[0], a, b, out); });
      CHECK(bytes <= static_cast<std::size_t>(8 * (m + n) * k) + (std::size_t{1} << 20));
    }
  }
}

TEST_CASE("cuda: more blocks than a launch has are an error") {
  if (!has_gpu()) return;
  context_options o;
  o.where = gpu;
  context cuda(o);
  const auto fake = reinterpret_cast<float*>(std::uintptr_t{1} << 20);  // nothing may run
  const std::int64_t batches = (std::int64_t{1} << 32) + 1;             // 1 modulo 2^32
  const const_tensor_view one(fake, dtype::f32, {batches, 1, 1}, {0, 1, 1}, gpu);
  const tensor_view out(fake + 64, sizes{batches, 1, 1}, gpu);
  CHECK_THROWS_WITH_AS(matmul(cuda, one, one, out, {.accumulate = accumulate::fma_chain}),
                       "matmul: kernel launch: expected at most 2147483647 blocks, got 4294967297", machine_error);
  CHECK_NOTHROW(cuda.synchronize());
}

TEST_CASE("cuda: random numbers have the CPU's bits") {
  if (!has_gpu()) return;
  contexts c;
  for (const char* type : {"f16", "bf16", "f32", "f64"}) {
    const double ranges[][2] = {{0, 1}, {-1, 1}, {0.1, 0.7}, {-0.0, 0x1p-200}, {-0x1p200, 0x1p-200}, {1, 1}, {5, -3}};
    for (const auto& r : ranges) {
      for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{100001}, {3, 5, 7}, {}, {1}}) {
        const attributes attrs = {{"shape", shape},
                                  {"seed", std::int64_t{0x123456789abcdef}},
                                  {"stream", std::int64_t{-3}},
                                  {"low", r[0]},
                                  {"high", r[1]},
                                  {"dtype", std::string(type)}};
        const tensor_spec spec = spec_of("uniform", {}, attrs);
        const array expected = run(c.cpu, "uniform", {}, spec, attrs);
        for (const auto& ctx : c.cuda) {
          for (const layout l : layouts) CHECK(run(*ctx, "uniform", {}, spec, attrs, l, l) == expected);
        }
      }
    }
  }
  for (const std::int64_t n : {1, 2, 255, 2048, 2049, 1000003}) {
    const attributes attrs = {{"n", n}, {"seed", std::int64_t{7}}, {"stream", std::int64_t{1}}};
    const tensor_spec spec = spec_of("permutation", {}, attrs);
    const array expected = run(c.cpu, "permutation", {}, spec, attrs);
    for (const layout l : layouts) CHECK(run(*c.cuda[0], "permutation", {}, spec, attrs, l, l) == expected);
  }
}

#if defined(REPDL_WITH_CUDA)

namespace {

// Captures the call in a graph, replays it twice with new inputs in between.
void replay(const std::string& name, const std::vector<array>& first, const std::vector<array>& second,
            const attributes& attrs = {}) {
  CAPTURE(name);
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  {
    context cpu{context_options{}};
    context_options o;
    o.where = gpu;
    o.stream = stream;
    context cuda(o);
    const tensor_spec spec = spec_of(name, first, attrs);
    std::vector<std::unique_ptr<placed_tensor>> inputs;
    std::vector<const_tensor_view> views;
    for (const array& a : first) {
      inputs.push_back(std::make_unique<placed_tensor>(cuda, a, layout::contiguous));
      views.push_back(inputs.back()->view());
    }
    placed_tensor out(cuda, spec.type, shape_list(spec.shape.begin(), spec.shape.end()), layout::contiguous);
    const tensor_view out_view = out.view();
    const auto go = [&] { call(cuda, *find(name), views, {&out_view, 1}, attrs); };
    const std::size_t bytes = cuda.workspace_for(go);
    void* workspace = cuda.allocate(bytes + 1);
    cuda.use_workspace(workspace, bytes + 1);

    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
    go();
    REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
    cuda.reset_statistics();
    for (const std::vector<array>* in : {&first, &second, &first}) {
      for (std::size_t i = 0; i < in->size(); ++i) inputs[i]->set((*in)[i]);
      REQUIRE(cudaGraphLaunch(exec, stream) == cudaSuccess);
      cuda.synchronize();
      CHECK(out.get() == run(cpu, name, *in, spec, attrs));
    }
    CHECK(decided(cuda) == 3 * reference::array(spec.type, shape_list(spec.shape.begin(), spec.shape.end())).count());
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cuda.use_workspace(nullptr, 0);
    cuda.deallocate(workspace, bytes + 1);
  }
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
}

}  // namespace

TEST_CASE("cuda: every operation can be captured in a graph and replayed") {
  if (!has_gpu()) return;
  const auto ordinary = sample_class::normal_range;
  const auto hard = sample_class::ties;
  for (const ops::elementwise_row& row : ops::elementwise_rows()) {
    replay(std::string(row.name), reference::fill_operands(ordinary, row, dtype::f32, 1001, 1, 1),
           reference::fill_operands(hard, row, dtype::f32, 1001, 1, 2));
  }
  replay("convert", {reference::fill(ordinary, dtype::f32, {999}, 1, 1)},
         {reference::fill(hard, dtype::f32, {999}, 1, 2)}, {{"dtype", std::string("bf16")}});
  for (const std::string& name : reductions()) {
    const array a = reference::fill_terms(ordinary, 3, 70000, name == "mean", 1, 1);
    const array b = reference::fill_terms(hard, 3, 70000, name == "mean", 1, 2);
    replay(name, {a}, {b}, {{"axis", std::vector<std::int64_t>{-1}}});
  }
  reference::factors f = reference::fill_factors(ordinary, 1, 1, 70000, false, 1, 1);
  reference::factors h = reference::fill_factors(hard, 1, 1, 70000, false, 1, 2);
  for (reference::factors* x : {&f, &h}) x->a.shape = x->b.shape = {70000};
  replay("dot", {f.a, f.b}, {h.a, h.b});
  f = reference::fill_factors(ordinary, 100, 90, 300, true, 1, 1);
  h = reference::fill_factors(hard, 100, 90, 300, true, 1, 2);
  for (const std::string how : {"exact", "fma_chain"}) {
    replay("matmul", {f.a, f.b, f.bias}, {h.a, h.b, h.bias}, {{"accumulate", how}});
  }
  const attributes seed = {{"seed", std::int64_t{1}}, {"stream", std::int64_t{2}}};
  attributes uniform = seed;
  uniform.push_back({"shape", std::vector<std::int64_t>{1000}});
  uniform.push_back({"low", -0.3});
  replay("uniform", {}, {}, uniform);
  attributes permutation = seed;
  permutation.push_back({"n", std::int64_t{5000}});
  replay("permutation", {}, {}, permutation);
}

TEST_CASE("cuda: contexts are made, and no workspace is allocated, while a graph is captured") {
  if (!has_gpu()) return;
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  {
    context_options o;
    o.where = gpu;
    o.stream = stream;
    context cuda(o);
    placed_tensor x(cuda, reference::fill(sample_class::normal_range, dtype::f32, {100000}, 1, 1), layout::contiguous);
    placed_tensor y(cuda, dtype::f32, {}, layout::contiguous);
    REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
    context during(o);  // a context can be made, and one ended
    { const context another(o); }
    exp(during, x.view(), x.view());
    bool raised = false;
    try {
      sum(cuda, x.view(), y.view());
    } catch (const error& e) {
      raised = e.site() == error_site::allocation_in_capture;
    }
    CHECK(raised);
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    CHECK(decided(during) == 0);
    cudaGraphExec_t exec = nullptr;
    REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
    REQUIRE(cudaGraphLaunch(exec, stream) == cudaSuccess);
    CHECK(decided(during) == 100000);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
  }
  cudaStreamDestroy(stream);
}

TEST_CASE("cuda: errors of contexts") {
  if (!has_gpu()) return;
  const auto site_of = [](context_options o) {
    try {
      context c(o);
    } catch (const error& e) {
      return e.site();
    }
    return error_site::no_backend;
  };
  context_options o;
  o.where = {device_kind::cuda, 99};
  CHECK(site_of(o) == error_site::device_index);
  o.where = gpu;
  o.isa = "avx2";
  CHECK(site_of(o) == error_site::isa_name);
}

// With or without a GPU: no machine has a device of this number.
TEST_CASE("cuda: a CUDA call that fails is an error with CUDA's name for it") {
  for (const dispatch::backend& b : dispatch::backends()) {
    if (b.kind != device_kind::cuda) continue;
    try {
      b.default_allocator().allocate(256, {device_kind::cuda, 9999}, nullptr);
      CHECK(false);
    } catch (const machine_error& e) {
      CHECK(e.site() == error_site::device_failure);
      CHECK(std::string(e.what()).find("cudaError") != std::string::npos);
    }
  }
}

#endif  // REPDL_WITH_CUDA

TEST_CASE("cuda: without a GPU a context says why there is none") {
  std::string why;
  bool found = false;
  for (const device_info& d : devices(&why)) found = found || d.where.kind == device_kind::cuda;
  if (found) return;
  CHECK(!why.empty());
  context_options o;
  o.where = gpu;
  try {
    context c(o);
    CHECK(false);
  } catch (const error& e) {
    CHECK((e.site() == error_site::no_device || e.site() == error_site::no_backend));
  }
}

TEST_SUITE_END();
