// Elementwise operations on views whose axes do not merge: four and more of them are walked. On the CPU's instruction
// sets and on CUDA, against the same operation on contiguous copies.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "librepdl/dynamic.hpp"
#include "librepdl/ops.hpp"
#include "reference/attributes.hpp"
#include "reference/layout.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/placed_tensor.hpp"

using namespace repdl;
using reference::array;
using reference::sample_class;
using reference::shape_list;
using tests::gpu;
using tests::has_gpu;
using tests::layout;
using tests::placed_tensor;

namespace {

// A context of every instruction set and, where there is one, of the GPU.
std::vector<std::unique_ptr<context>> every_device() {
  std::vector<std::unique_ptr<context>> all;
  for (const isa_info& i : instruction_sets()) {
    if (i.available) all.push_back(std::make_unique<context>(context_options{.threads = 2, .isa = i.name}));
  }
  if (has_gpu()) all.push_back(std::make_unique<context>(context_options{.where = gpu}));
  return all;
}

std::int64_t differences(const array& got, const array& want) {
  std::int64_t wrong = got.shape != want.shape || got.type != want.type;
  for (std::size_t i = 0; i < static_cast<std::size_t>(want.count()); ++i) wrong += got.get(i) != want.get(i);
  return wrong;
}

// What the baseline makes of contiguous operands of one shape.
array on_contiguous(const std::string& op, const std::vector<array>& in, dtype to, const attributes& attrs) {
  context ctx({.threads = 1, .isa = instruction_sets()[0].name});
  std::vector<const_tensor_view> views;
  for (const array& a : in) views.emplace_back(a.bytes.data(), a.type, tests::to_sizes(a.shape));
  array out(to, in[0].shape);
  const tensor_view y(out.bytes.data(), to, tests::to_sizes(out.shape));
  call(ctx, *find(op), views, {&y, 1}, attrs);
  return out;
}

array normal_array(const shape_list& shape, std::uint64_t stream, dtype t = dtype::f32) {
  return reference::fill(sample_class::normal_range, t, shape, 7, stream);
}

// Of a conversion and of elementwise operations: the operand whose type is the call's format, and each operand's type in one.
std::size_t leading(const op_info& op) {
  const ops::elementwise_row* const row = reference::elementwise_named(op.name);
  return row == nullptr ? 0 : static_cast<std::size_t>(row->leading());
}
dtype operand_type(const op_info& op, std::size_t i, dtype format) {
  const ops::elementwise_row* const row = reference::elementwise_named(op.name);
  return row == nullptr ? format : row->operand_type(static_cast<int>(i), format);
}

// The elements that a broadcast repeats, each on its own.
array expanded(const array& a, const shape_list& shape) {
  array e(a.type, shape);
  for (std::int64_t i = 0; i < e.count(); ++i)
    e.set(static_cast<std::size_t>(i), a.get(static_cast<std::size_t>(reference::broadcast_index(a.shape, shape, i))));
  return e;
}

}  // namespace

TEST_SUITE_BEGIN("portable");

TEST_CASE("strided: fma of operands that broadcast along alternating axes") {
  const auto devices = every_device();
  const shape_list shape{9, 7, 5, 6};
  const array x = normal_array({9, 1, 5, 1}, 1), y = normal_array({1, 7, 1, 6}, 2), z = normal_array(shape, 3);
  const array want = on_contiguous("fma", {expanded(x, shape), expanded(y, shape), z}, dtype::f32, {});
  for (const auto& c : devices) {
    CAPTURE(c->isa());
    context& ctx = *c;

    placed_tensor tx(ctx, x, layout::contiguous), ty(ctx, y, layout::contiguous), tz(ctx, z, layout::contiguous);
    placed_tensor out(ctx, dtype::f32, shape, layout::contiguous);
    fma(ctx, tx.view(), ty.view(), tz.view(), out.view());
    CHECK(differences(out.get(), want) == 0);
  }
}

TEST_CASE("strided: fma with one operand's axes reversed") {
  const auto devices = every_device();
  const shape_list shape{9, 7, 5, 6};
  const array x = normal_array(shape, 1), y = normal_array(shape, 2), memory = normal_array({6, 5, 7, 9}, 3);
  array z(dtype::f32, shape);
  for (std::int64_t i = 0; i < z.count(); ++i) {
    const std::int64_t a = i / 210, b = i / 30 % 7, c = i / 6 % 5, d = i % 6;
    z.set(static_cast<std::size_t>(i), memory.get(static_cast<std::size_t>(((d * 5 + c) * 7 + b) * 9 + a)));
  }
  const array want = on_contiguous("fma", {x, y, z}, dtype::f32, {});
  for (const auto& c : devices) {
    CAPTURE(c->isa());
    context& ctx = *c;

    placed_tensor tx(ctx, x, layout::contiguous), ty(ctx, y, layout::contiguous), tz(ctx, memory, layout::contiguous);
    placed_tensor out(ctx, dtype::f32, shape, layout::contiguous);
    const const_tensor_view reversed(tz.view().data(), dtype::f32, {9, 7, 5, 6}, {1, 9, 63, 315}, ctx.where());
    fma(ctx, tx.view(), ty.view(), reversed, out.view());
    CHECK(differences(out.get(), want) == 0);
  }
}

TEST_CASE("strided: unary operations and conversions of x[:, 2:6, 4:36, 8:40]") {
  const auto devices = every_device();
  const array x = normal_array({16, 8, 40, 64}, 1);
  array slice(dtype::f32, {16, 4, 32, 32});
  for (std::int64_t i = 0; i < slice.count(); ++i) {
    const std::int64_t a = i / 4096, b = i / 1024 % 4, c = i / 32 % 32, d = i % 32;
    slice.set(static_cast<std::size_t>(i),
              x.get(static_cast<std::size_t>(((a * 8 + b + 2) * 40 + c + 4) * 64 + d + 8)));
  }
  const auto check = [&](const std::string& op, dtype to, const attributes& attrs) {
    CAPTURE(op);
    const array want = on_contiguous(op, {slice}, to, attrs);
    for (const auto& c : devices) {
      CAPTURE(c->isa());
      context& ctx = *c;

      placed_tensor tx(ctx, x, layout::contiguous);
      const const_tensor_view view = const_tensor_view(tx.view()).slice(1, 2, 6).slice(2, 4, 36).slice(3, 8, 40);
      // Also from an address that no group of four elements begins at, and into a slice.
      const const_tensor_view unaligned = const_tensor_view(tx.view()).slice(1, 2, 6).slice(2, 4, 36).slice(3, 7, 39);
      for (const layout l : {layout::contiguous, layout::gaps}) {
        placed_tensor out(ctx, to, slice.shape, l);
        const tensor_view y = out.view();
        call(ctx, *find(op), {&view, 1}, {&y, 1}, attrs);
        CHECK(differences(out.get(), want) == 0);
      }
      placed_tensor out(ctx, to, slice.shape, layout::contiguous);
      const tensor_view y = out.view();
      call(ctx, *find(op), {&unaligned, 1}, {&y, 1}, attrs);
      // The elements one column on: those of the aligned slice, moved.
      const array moved = out.get();
      std::int64_t wrong = 0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(moved.count()); ++i) {
        if (i % 32 != 0) wrong += moved.get(i) != want.get(i - 1);
      }
      CHECK(wrong == 0);
    }
  };
  for (const char* op : {"relu", "neg", "abs", "sqrt", "exp"}) check(op, dtype::f32, {});
  for (const char* to : {"bf16", "f16", "f64", "f32", "i64", "bool", "i32"})
    check("convert", dtype_named(to), {{"dtype", std::string(to)}});
}

TEST_CASE("strided: every elementwise operation and conversion of eight axes that do not merge") {
  const auto devices = every_device();
  // Sizes of 3 and 2 with gaps after every axis, and a size of 4 that can be read in groups.
  const shape_list shape{3, 2, 3, 2, 3, 2, 3, 4};
  for (const op_info& op : operations()) {
    if (op.family != "elementwise" && op.family != "convert") continue;
    // Every format, and each option beside its default; conversions from f32.
    struct variant {
      dtype from;
      attributes attrs;
    };
    std::vector<variant> variants;
    if (op.family == "convert") {
      for (const dtype to : op.out[0].types) variants.push_back({dtype::f32, {{"dtype", std::string(name_of(to))}}});
    } else {
      for (const dtype from : op.in[leading(op)].types) {
        variants.push_back({from, {}});
        for (const attribute_info& a : op.attrs) {
          if (a.kind == attribute_kind::real) variants.push_back({from, {{a.name, 0.3}}});
        }
        for (const dtype to : op.out[0].types) {
          if (reference::elementwise_named(op.name)->has_any_float() && to != from)
            variants.push_back({from, {{"dtype", std::string(name_of(to))}}});
        }
      }
    }
    for (const variant& v : variants) {
      const dtype from = v.from;
      const attributes& attrs = v.attrs;
      CAPTURE(op.name);
      CAPTURE(name_of(from));
      std::vector<array> in;
      std::vector<const_tensor_view> plain;
      for (std::size_t i = 0; i < op.in.size(); ++i) in.push_back(normal_array(shape, i, operand_type(op, i, from)));
      for (const array& a : in) plain.emplace_back(a.bytes.data(), a.type, tests::to_sizes(a.shape));
      const dtype to = infer(op, plain, attrs)[0].type;
      const array want = on_contiguous(op.name, in, to, attrs);
      for (const auto& c : devices) {
        CAPTURE(c->isa());
        context& ctx = *c;

        for (const layout l : {layout::gaps, layout::permuted, layout::backwards, layout::mixed}) {
          std::vector<std::unique_ptr<placed_tensor>> placed;
          std::vector<const_tensor_view> views;
          for (const array& a : in) {
            placed.push_back(std::make_unique<placed_tensor>(ctx, a, placed.empty() ? l : layout::gaps));
            views.push_back(placed.back()->view());
          }
          placed_tensor out(ctx, to, shape, l == layout::gaps ? layout::permuted : layout::gaps);
          const tensor_view y = out.view();
          call(ctx, op, views, {&y, 1}, attrs);
          CHECK(differences(out.get(), want) == 0);
        }
      }
    }
  }
}

TEST_SUITE_END();
