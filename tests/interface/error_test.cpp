// Every error site: produced through the C++ API and, where it can be, through the C ABI. The sites of files and of the
// command line are produced by cli_test.py; this file fails when a site is produced by neither (see `elsewhere`).
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "librepdl/librepdl.h"
#include "librepdl/librepdl.hpp"

using namespace repdl;

namespace {

struct cpp_case {
  error_site site;
  std::string op;
  std::string argument;
  std::function<void()> provoke;
};

constexpr device gpu{device_kind::cuda, 0};

// A marker that no failed call may overwrite.
constexpr float untouched = -12345.5f;

struct operands {
  context ctx{context_options{.threads = 1}};
  std::vector<float> x = std::vector<float>(24, 1.0f);
  std::vector<float> y = std::vector<float>(24, 2.0f);
  std::vector<float> out = std::vector<float>(24, untouched);
  std::vector<double> d = std::vector<double>(24, 1.0);
  std::vector<std::int64_t> i = std::vector<std::int64_t>(24, 7);

  const_tensor_view vx(sizes shape) { return {x.data(), shape}; }
  const_tensor_view vy(sizes shape) { return {y.data(), shape}; }
  tensor_view vo(sizes shape) { return {out.data(), shape}; }
  const op_info& op(const char* name) { return *find(name); }
};

struct null_allocator final : allocator {
  void* allocate(std::size_t, const device&, void*) override { return nullptr; }
  void deallocate(void*, std::size_t, const device&, void*) noexcept override {}
};

// Of memory that begins 8 bytes behind a multiple of 256, and is given back as often.
struct misaligning_allocator final : allocator {
  std::vector<std::unique_ptr<std::byte[]>> memory;
  int live = 0;
  void* allocate(std::size_t bytes, const device&, void*) override {
    ++live;
    auto& m = memory.emplace_back(new std::byte[bytes + 512]);
    return m.get() + (264 - reinterpret_cast<std::uintptr_t>(m.get()) % 256);
  }
  void deallocate(void*, std::size_t, const device&, void*) noexcept override { --live; }
};

// attention_backward of two queries, two keys and three numbers of each.
void gradients(operands& o, const_tensor_view g, const_tensor_view v, const_tensor_view y, const_tensor_view lse) {
  const auto to = [&](int i) { return tensor_view(o.out.data() + i, {2, 3}); };
  attention_backward(o.ctx, g, o.vx({2, 3}), o.vy({2, 3}), v, y, lse, to(0), to(6), to(12));
}

std::vector<cpp_case> cpp_cases(operands& o) {
  constexpr std::int64_t big = std::int64_t{1} << 40;
  constexpr std::int64_t huge = (std::int64_t{1} << 61) + 1;  // times 8 bytes: 8 modulo 2^64
  std::vector<std::int64_t> nine(9, 1);
  return {
      {error_site::rank_too_large, "sizes", "length", [=] { sizes(std::span<const std::int64_t>(nine)); }},
      {error_site::rank_too_large, "sizes", "length", [] { sizes{1, 2, 3, 4, 5, 6, 7, 8, 9}; }},
      {error_site::size_overflow, "sizes", "value", [] { sizes{std::uint64_t{1} << 63}; }},
      {error_site::size_overflow, "sizes", "value", [] { sizes(std::vector{std::size_t(-1)}); }},
      {error_site::rank_too_large, "sizes", "length",
       [] {
         sizes s{1, 1, 1, 1, 1, 1, 1, 1};
         s.push_back(1);
       }},
      {error_site::negative_size, "tensor view", "shape",
       [&] {
         o.vx({2, -1});
       }},
      {error_site::size_overflow, "tensor view", "shape",
       [&] {
         o.vx({big, big});
       }},
      {error_site::size_overflow, "tensor view", "shape",  // 2^63 bytes
       [&] {
         const_tensor_view(o.d.data(), dtype::f64, {big, big >> 20});
       }},
      {error_site::size_overflow, "tensor view", "shape",
       [&] {
         infer(o.op("uniform"), {}, {{"shape", std::vector<std::int64_t>{huge}}, {"dtype", std::string("f64")}});
       }},
      {error_site::size_overflow, "tensor view", "shape",
       [&] {
         infer(o.op("randint"), {}, {{"shape", std::vector<std::int64_t>{huge}}, {"high", std::int64_t{1}}});
       }},
      {error_site::strides_rank, "tensor view", "strides",
       [&] {
         const_tensor_view(o.x.data(), dtype::f32, {2, 3}, {1});
       }},
      {error_site::stride_overflow, "tensor view", "strides",
       [&] {
         const_tensor_view(o.x.data(), dtype::f32, {2, 3}, {std::numeric_limits<std::int64_t>::max(), 1});
       }},
      {error_site::stride_overflow, "tensor view", "strides",  // 2^63 bytes
       [&] {
         const_tensor_view(o.x.data(), dtype::f32, {2, 3}, {std::int64_t{1} << 61, 1});
       }},
      {error_site::null_data, "tensor view", "data",
       [] { const_tensor_view(static_cast<const float*>(nullptr), {2}); }},
      {error_site::misaligned_data, "tensor view", "data",
       [&] { const_tensor_view(reinterpret_cast<const char*>(o.x.data()) + 2, dtype::f32, {2}); }},
      {error_site::axis_range, "transpose", "axis",
       [&] {
         o.vx({2, 3}).transpose(0, 2);
       }},
      {error_site::axis_range, "sum", "axis",
       [&] {
         sum(o.ctx, o.vx({2, 3}), o.vo({2}), {.axis = sizes{2}});
       }},
      {error_site::slice_range, "slice", "begin, end, step",
       [&] {
         o.vx({2, 3}).slice(1, 2, 4);
       }},
      {error_site::reshape_count, "reshape", "shape",
       [&] {
         o.vx({2, 3}).reshape({7});
       }},
      {error_site::reshape_copy, "reshape", "shape",
       [&] {
         o.vx({2, 3}).transpose().reshape({6});
       }},
      {error_site::dtype_name, "dtype", "name", [] { dtype_named("float"); }},
      {error_site::input_count, "add", "inputs",
       [&] { call(o.ctx, o.op("add"), std::vector{o.vx({2})}, std::vector{o.vo({2})}); }},
      {error_site::input_count, "matmul", "inputs",
       [&] {
         infer(o.op("matmul"), std::vector{o.vx({2, 2})});
       }},
      {error_site::output_count, "add", "outputs",
       [&] {
         call(o.ctx, o.op("add"), std::vector{o.vx({2}), o.vy({2})}, std::vector<tensor_view>{});
       }},
      {error_site::absent_operand, "add", "y", [&] { add(o.ctx, o.vx({2}), {}, o.vo({2})); }},
      {error_site::absent_operand, "exp", "out", [&] { exp(o.ctx, o.vx({2}), tensor_view()); }},
      {error_site::operand_dtype, "lgamma", "x", [&] { lgamma(o.ctx, const_tensor_view(o.d), o.vo({24})); }},
      {error_site::operand_dtype, "add", "y", [&] { add(o.ctx, o.vx({24}), const_tensor_view(o.d), o.vo({24})); }},
      {error_site::output_dtype, "less", "out", [&] { less(o.ctx, o.vx({24}), o.vx({24}), o.vo({24})); }},
      {error_site::attribute_value, "add", "alpha",
       [&] { add(o.ctx, o.vx({24}), o.vx({24}), o.vo({24}), {.alpha = 0x1p-201}); }},
      {error_site::attribute_value, "leaky_relu", "slope",
       [&] { leaky_relu(o.ctx, o.vx({24}), o.vo({24}), {.slope = std::numeric_limits<double>::quiet_NaN()}); }},
      {error_site::output_dtype, "convert", "out",
       [&] {
         call(o.ctx, o.op("convert"), std::vector{o.vx({24})}, std::vector{o.vo({24})},
              {{"dtype", std::string("i32")}});
       }},
      {error_site::overlap, "convert", "out",
       [&] { convert(o.ctx, const_tensor_view(o.out.data(), dtype::i32, {4}), o.vo({4})); }},
      {error_site::output_dtype, "exp", "out", [&] { exp(o.ctx, o.vx({24}), tensor_view(o.d)); }},
      {error_site::output_dtype, "argmax", "out", [&] { argmax(o.ctx, o.vx({24}), o.vo({})); }},
      {error_site::output_shape, "exp", "out",
       [&] {
         exp(o.ctx, o.vx({3, 2}), o.vo({2, 3}));
       }},
      {error_site::output_shape, "sum", "out",
       [&] {
         sum(o.ctx, o.vx({2, 3}), o.vo({2}), {.axis = sizes{1}, .keepdim = true});
       }},
      {error_site::operand_rank, "matmul", "a",
       [&] {
         matmul(o.ctx, o.vx({2}), o.vy({2, 2}), o.vo({2}));
       }},
      {error_site::operand_dtype, "dot", "y",
       [&] { dot(o.ctx, o.vx({2}), const_tensor_view(o.d.data(), dtype::f16, {2}), o.vo({})); }},
      {error_site::operand_dtype, "max_pool2d_backward", "x",
       [&] {
         const const_tensor_view x(o.d.data(), dtype::f16, {1, 1, 2, 2});
         max_pool2d_backward(o.ctx, o.vx({1, 1, 1, 1}), x, o.vo({1, 1, 2, 2}), {.kernel = {2, 2}});
       }},
      {error_site::kernel_too_large, "avg_pool2d", "width",
       [&] {
         avg_pool2d(o.ctx, o.vx({1, 1, 1, 2}), o.vo({1, 1, 1, 1}),
                    {.kernel = {1, 4}, .stride = {1, 2}, .ceil_mode = true});
       }},
      {error_site::attribute_value, "avg_pool2d", "divisor_override",
       [&] {
         avg_pool2d(o.ctx, o.vx({1, 1, 1, 2}), o.vo({1, 1, 1, 1}),
                    {.kernel = {1, 2}, .divisor_override = std::int64_t{1} << 31});
       }},
      {error_site::operand_dtype, "prelu_weight_backward", "x",
       [&] { prelu_backward_w(o.ctx, o.vx({2}), const_tensor_view(o.d.data(), dtype::bf16, {2}), o.vo({})); }},
      {error_site::operand_rank, "dot", "x",
       [&] {
         dot(o.ctx, o.vx({2, 2}), o.vy({2, 2}), o.vo({}));
       }},
      {error_site::broadcast, "add", "y",
       [&] {
         add(o.ctx, o.vx({2, 3}), o.vy({2}), o.vo({2, 3}));
       }},
      {error_site::broadcast, "matmul", "bias",
       [&] {
         matmul(o.ctx, o.vx({2, 3}), o.vy({3, 2}), o.vo({2, 2}), {.bias = o.vx({3})});
       }},
      {error_site::broadcast, "matmul", "bias",
       [&] {
         matmul(o.ctx, o.vx({1, 3}), o.vy({3, 2}), o.vo({1, 2}), {.bias = o.vx({2, 2})});
       }},
      {error_site::device_mismatch, "exp", "x",
       [&] { exp(o.ctx, const_tensor_view(o.x.data(), sizes{2}, gpu), o.vo({2})); }},
      {error_site::device_mismatch, "sum", "out",
       [&] { sum(o.ctx, o.vx({2}), tensor_view(o.out.data(), sizes{}, gpu)); }},
      {error_site::device_mismatch, "fingerprint", "tensors[0]",
       [&] { fingerprint(o.ctx, std::vector{const_tensor_view(o.x.data(), sizes{2}, gpu)}); }},
      {error_site::output_self_overlap, "exp", "out",
       [&] {
         exp(o.ctx, o.vx({2, 3}), tensor_view(o.out.data(), dtype::f32, {2, 3}, {0, 1}));
       }},
      {error_site::output_self_overlap, "exp", "out",
       [&] {
         exp(o.ctx, o.vx({2, 3}), tensor_view(o.out.data(), dtype::f32, {2, 3}, {2, 1}));
       }},
      {error_site::overlap, "exp", "out",
       [&] { exp(o.ctx, const_tensor_view(o.out.data() + 1, sizes{4}), o.vo({4})); }},
      {error_site::overlap, "matmul", "out",
       [&] {
         matmul(o.ctx, o.vx({2, 2}), const_tensor_view(o.out.data(), {2, 2}), o.vo({2, 2}));
       }},
      {error_site::empty_reduction, "max", "x", [&] { max(o.ctx, o.vx({0}), o.vo({})); }},
      {error_site::empty_reduction, "argmin", "x",
       [&] {
         infer(o.op("argmin"), std::vector{o.vx({3, 0})});
       }},
      {error_site::duplicate_axis, "sum", "axis",
       [&] {
         sum(o.ctx, o.vx({2, 3}), o.vo({}), {.axis = sizes{0, -2}});
       }},
      {error_site::inner_size, "matmul", "b",
       [&] {
         matmul(o.ctx, o.vx({2, 3}), o.vy({2, 3}), o.vo({2, 3}));
       }},
      {error_site::length_mismatch, "dot", "y", [&] { dot(o.ctx, o.vx({2}), o.vy({3}), o.vo({})); }},
      {error_site::unknown_attribute, "exp", "base",
       [&] {
         infer(o.op("exp"), std::vector{o.vx({2})}, {{"base", std::int64_t{2}}});
       }},
      {error_site::unknown_attribute, "sum", "axes", [&] { parse_attribute(o.op("sum"), "axes", "1"); }},
      {error_site::duplicate_attribute, "sum", "keepdim",
       [&] {
         infer(o.op("sum"), std::vector{o.vx({2})}, {{"keepdim", true}, {"keepdim", true}});
       }},
      {error_site::missing_attribute, "convert", "dtype", [&] { infer(o.op("convert"), std::vector{o.vx({2})}); }},
      {error_site::missing_attribute, "uniform", "shape", [&] { infer(o.op("uniform"), {}); }},
      {error_site::attribute_kind, "sum", "keepdim",
       [&] {
         infer(o.op("sum"), std::vector{o.vx({2})}, {{"keepdim", std::int64_t{1}}});
       }},
      {error_site::attribute_value, "matmul", "accumulate",
       [&] {
         infer(o.op("matmul"), std::vector{o.vx({2, 2}), o.vy({2, 2})}, {{"accumulate", std::string("fast")}});
       }},
      {error_site::attribute_value, "uniform", "low",
       [&] {
         generator g;
         uniform(o.ctx, g, o.vo({2}), {.low = 1e300});
       }},
      {error_site::attribute_value, "uniform", "dtype",
       [&] {
         infer(o.op("uniform"), {}, {{"shape", std::vector<std::int64_t>{2}}, {"dtype", std::string("i64")}});
       }},
      {error_site::attribute_value, "convert", "dtype",
       [&] {
         infer(o.op("convert"), std::vector{o.vx({2})}, {{"dtype", std::string("i16")}});
       }},
      {error_site::attribute_value, "permutation", "n",
       [&] {
         infer(o.op("permutation"), {}, {{"n", std::int64_t{-1}}});
       }},
      {error_site::attribute_value, "permutation", "n",
       [&] {
         infer(o.op("permutation"), {}, {{"n", huge}});
       }},
      {error_site::attribute_value, "adamw", "step",
       [&] { parse_attribute(o.op("adamw"), "step", "9223372036854775808"); }},
      {error_site::attribute_value, "randint", "high",
       [&] { parse_attribute(o.op("randint"), "high", "18446744073709551615"); }},
      {error_site::attribute_syntax, "sum", "axis", [&] { parse_attribute(o.op("sum"), "axis", "0,,1"); }},
      {error_site::attribute_syntax, "sum", "keepdim", [&] { parse_attribute(o.op("sum"), "keepdim", "yes"); }},
      {error_site::isa_name, "context", "isa", [] { context(context_options{.isa = "sse9"}); }},
      {error_site::thread_count, "context", "threads", [] { context(context_options{.threads = -1}); }},
      {error_site::thread_count, "context", "threads", [] { context(context_options{.threads = max_threads + 1}); }},
      {error_site::thread_count, "context", "threads", [] { context(context_options{.threads = 100000}); }},
      {error_site::device_index, "context", "where",
       [] {
         context(context_options{.where = {device_kind::cpu, 1}});
       }},
      {error_site::nested_prepare, "prepare", "calls", [&] { o.ctx.prepare([&] { o.ctx.workspace_for([] {}); }); }},
      {error_site::workspace_too_small, "matmul", "workspace",
       [&] {
         alignas(256) static std::byte little[256];
         o.ctx.use_workspace(little, 0);
         struct restore {
           context& c;
           ~restore() { c.use_workspace(nullptr, 0); }
         } r{o.ctx};
         o.ctx.use_workspace(little, 1);
         matmul(o.ctx, o.vx({4, 6}), o.vy({6, 4}), o.vo({4, 4}));
       }},
      {error_site::workspace_misaligned, "use_workspace", "data",
       [&] { o.ctx.use_workspace(reinterpret_cast<std::byte*>(std::uintptr_t{4096 + 8}), 100); }},
      {error_site::out_of_memory, "allocate", "memory",
       [] {
         null_allocator none;
         context c(context_options{.threads = 1, .memory = &none});
         c.allocate(1000);
       }},
      {error_site::out_of_memory, "allocate", "memory",
       [&] { o.ctx.allocate(std::numeric_limits<std::size_t>::max()); }},
      {error_site::out_of_memory, "allocate", "memory", [&] { o.ctx.allocate(std::size_t{1} << 63); }},
      {error_site::workspace_misaligned, "matmul", "memory",
       [&] {
         misaligning_allocator odd;
         {
           context c(context_options{.threads = 1, .memory = &odd});
           CHECK_THROWS(c.allocate(1));
           std::vector<float> a(4096, 1.0f), to(4096);
           const const_tensor_view square(a.data(), {64, 64});
           try {
             matmul(c, square, square, tensor_view(to.data(), {64, 64}));
           } catch (...) {
             CHECK(odd.live == 0);
             throw;
           }
         }
       }},
      // tensors that own their memory
      {error_site::out_of_memory, "tensor", "memory",
       [] {
         null_allocator none;
         context c(context_options{.threads = 1, .memory = &none});
         tensor(c, dtype::f32, {2, 3});
       }},
      {error_site::negative_size, "tensor view", "shape", [&] { tensor(o.ctx, dtype::f32, {-1}); }},
      {error_site::size_overflow, "tensor view", "shape",  // 2^63 bytes
       [&] {
         tensor(o.ctx, dtype::f64, {big, big >> 20});
       }},
      {error_site::output_dtype, "tensor", "values", [&] { tensor(o.ctx, dtype::f32, {24}).copy_from(o.d); }},
      {error_site::output_dtype, "tensor", "values", [&] { tensor(o.ctx, o.d, {24}).copy_to(o.out); }},
      {error_site::output_dtype, "tensor", "values", [&] { tensor(o.ctx, o.i, {24}).to_vector<double>(); }},
      {error_site::length_mismatch, "tensor", "values",
       [&] {
         tensor(o.ctx, o.x, {5, 5});
       }},
      {error_site::length_mismatch, "tensor", "values", [&] { tensor(o.ctx, dtype::f32, {23}).copy_to(o.out); }},
      {error_site::length_mismatch, "tensor", "values", [&] { tensor(o.ctx, dtype::f32, {}).copy_from(o.x); }},
      // Workspaces that no memory has: these sizes are small numbers modulo 2^64.
      {error_site::out_of_memory, "matmul", "workspace",
       [&] {
         std::vector<float> result(8 * 8);
         const std::int64_t k = std::int64_t{1} << 59;
         const const_tensor_view a(o.x.data(), dtype::f32, {8, k}, {0, 0});
         o.ctx.workspace_for([&] { matmul(o.ctx, a, a.transpose(), tensor_view(result.data(), sizes{8, 8})); });
       }},
      {error_site::out_of_memory, "permutation", "workspace",
       [&] {
         generator g;
         const tensor_view out(o.i.data(), dtype::i64, {std::int64_t{1} << 59});
         o.ctx.workspace_for([&] { permutation(o.ctx, g, out); });
       }},
      // operations of networks
      {error_site::undecided, "context", "last_tier_bits",
       [&] {
         // Of the outputs nothing may be written either: one row, one element.
         context strict({.threads = 1, .first_tier = tier::exact, .last_tier_bits = 0});
         std::vector<float> result(1);
         logsumexp(strict, o.vx({2}), tensor_view(result.data(), sizes{}));
       }},
      {error_site::attribute_value, "context", "last_tier_bits",
       [] { context(context_options{.last_tier_bits = -1}); }},
      {error_site::operand_rank, "conv2d", "x",
       [&] {
         conv2d(o.ctx, o.vx({2, 2, 2}), o.vy({1, 1, 1, 1}), o.vo({1}));
       }},
      {error_site::operand_rank, "conv2d_grad_input", "grad_x",
       [&] {
         conv2d_backward_x(o.ctx, o.vx({1, 1, 1, 1}), o.vy({1, 1, 1, 1}), o.vo({1}));
       }},
      {error_site::channel_count, "conv2d", "w",
       [&] {
         conv2d(o.ctx, o.vx({1, 3, 2, 2}), o.vy({1, 2, 1, 1}), o.vo({1, 1, 2, 2}));
       }},
      {error_site::channel_count, "conv2d", "w",
       [&] {
         conv2d(o.ctx, o.vx({1, 2, 2, 2}), o.vy({3, 1, 1, 1}), o.vo({1, 3, 2, 2}), {.groups = 2});
       }},
      {error_site::channel_count, "conv2d_grad_input", "g",
       [&] {
         conv2d_backward_x(o.ctx, o.vx({1, 2, 1, 1}), o.vy({3, 1, 1, 1}), o.vo({1, 1, 1, 1}));
       }},
      {error_site::channel_count, "conv2d", "x",
       [&] {
         conv2d(o.ctx, o.vx({1, 3, 2, 2}), o.vy({2, 1, 1, 1}), o.vo({1, 2, 2, 2}), {.groups = 2});
       }},
      {error_site::length_mismatch, "conv2d", "bias",
       [&] {
         conv2d(o.ctx, o.vx({1, 1, 2, 2}), o.vy({2, 1, 1, 1}), o.vo({1, 2, 2, 2}), {.bias = o.vx({3})});
       }},
      {error_site::kernel_too_large, "conv2d", "width",
       [&] {
         conv2d(o.ctx, o.vx({1, 1, 3, 2}), o.vy({1, 1, 1, 2}), o.vo({1, 1, 3, 1}), {.dilation = {1, 2}});
       }},
      {error_site::attribute_value, "conv2d", "stride",
       [&] {
         conv2d(o.ctx, o.vx({1, 1, 2, 2}), o.vy({1, 1, 1, 1}), o.vo({1, 1, 2, 2}), {.stride = {0, 1}});
       }},
      {error_site::attribute_value, "conv2d", "groups",
       [&] {
         conv2d(o.ctx, o.vx({1, 1, 2, 2}), o.vy({1, 1, 1, 1}), o.vo({1, 1, 2, 2}), {.groups = 0});
       }},
      {error_site::attribute_value, "conv2d", "padding",
       [&] {
         infer(o.op("conv2d"), std::vector{o.vx({1, 1, 2, 2}), o.vy({1, 1, 1, 1})},
               {{"padding", std::vector<std::int64_t>{1, 2, 3}}});
       }},
      {error_site::image_size, "conv2d_grad_weight", "g",
       [&] {
         conv2d_backward_w(o.ctx, o.vx({1, 1, 2, 2}), o.vy({1, 1, 3, 3}), o.vo({1, 1, 1, 1}));
       }},
      {error_site::image_size, "conv2d_grad_weight", "g",
       [&] {
         conv2d_backward_w(o.ctx, o.vx({2, 1, 2, 2}), o.vy({1, 1, 2, 2}), o.vo({1, 1, 1, 1}));
       }},
      {error_site::missing_attribute, "conv2d_grad_input", "size",
       [&] {
         infer(o.op("conv2d_grad_input"), std::vector{o.vx({1, 1, 1, 1}), o.vy({1, 1, 1, 1})});
       }},
      {error_site::missing_attribute, "max_pool2d", "kernel",
       [&] {
         infer(o.op("max_pool2d"), std::vector{o.vx({1, 1, 2, 2})});
       }},
      {error_site::empty_window, "max_pool2d", "height",
       [&] {
         max_pool2d(o.ctx, o.vx({1, 1, 2, 2}), o.vo({1, 1, 4, 2}), {.kernel = {1, 1}, .padding = {1, 1, 0, 0}});
       }},
      {error_site::missing_attribute, "adaptive_avg_pool2d", "size",
       [&] {
         infer(o.op("adaptive_avg_pool2d"), std::vector{o.vx({1, 1, 2, 2})});
       }},
      {error_site::attribute_value, "adaptive_max_pool2d", "size",
       [&] {
         adaptive_max_pool2d(o.ctx, o.vx({1, 1, 2, 2}), o.vo({1, 1, 2, 2}), {.size = {-1, 2}});
       }},
      {error_site::empty_window, "adaptive_max_pool2d", "width",
       [&] {
         adaptive_max_pool2d(o.ctx, o.vx({1, 1, 2, 0}), o.vo({1, 1, 2, 2}), {.size = {2, 2}});
       }},
      {error_site::gradient_shape, "adaptive_max_pool2d_backward", "g",
       [&] {
         adaptive_max_pool2d_backward(o.ctx, o.vx({2, 1, 1, 1}), o.vy({1, 1, 2, 2}), o.vo({1, 1, 2, 2}));
       }},
      {error_site::gradient_shape, "max_pool2d_backward", "g",
       [&] {
         max_pool2d_backward(o.ctx, o.vx({1, 1, 2, 2}), o.vy({1, 1, 2, 2}), o.vo({1, 1, 2, 2}), {.kernel = {2, 2}});
       }},
      {error_site::axis_range, "softmax", "axis", [&] { softmax(o.ctx, o.vx({2}), o.vo({2}), {.axis = 1}); }},
      {error_site::axis_range, "cumsum", "axis", [&] { cumsum(o.ctx, o.vx({2}), o.vo({2}), {.axis = 1}); }},
      {error_site::axis_range, "cumprod", "axis", [&] { cumprod(o.ctx, o.vx({}), o.vo({})); }},
      {error_site::axis_range, "prod", "axis", [&] { prod(o.ctx, o.vx({2}), o.vo({}), {.axis = 1}); }},
      {error_site::broadcast, "ldexp", "n",
       [&] { ldexp(o.ctx, o.vx({2}), const_tensor_view(o.x.data(), dtype::i32, {3}), o.vo({2})); }},
      {error_site::operand_dtype, "ldexp", "n", [&] { ldexp(o.ctx, o.vx({2}), o.vy({2}), o.vo({2})); }},
      {error_site::output_dtype, "frexp", "exponent",
       [&] { frexp(o.ctx, o.vx({2}), o.vo({2}), tensor_view(o.y.data(), {2})); }},
      {error_site::operand_rank, "attention", "q",
       [&] { attention(o.ctx, o.vx({4}), o.vy({4}), o.vy({4}), o.vo({4})); }},
      {error_site::operand_rank, "attention", "v",
       [&] {
         attention(o.ctx, o.vx({2, 3}), o.vy({4, 3}), o.vy({1, 4, 3}), o.vo({2, 3}));
       }},
      {error_site::attention_shape, "attention", "k",  // another size of a key than of a query
       [&] {
         attention(o.ctx, o.vx({2, 3}), o.vy({4, 2}), o.vy({4, 3}), o.vo({2, 3}));
       }},
      {error_site::attention_shape, "attention", "v",  // a value too many
       [&] {
         attention(o.ctx, o.vx({2, 3}), o.vy({4, 3}), o.vy({5, 3}), o.vo({2, 3}));
       }},
      {error_site::attention_shape, "attention", "k",  // another batch
       [&] {
         attention(o.ctx, o.vx({2, 1, 2, 3}), o.vy({1, 1, 2, 3}), o.vy({2, 1, 2, 3}), o.vo({2, 1, 2, 3}));
       }},
      {error_site::attention_shape, "attention", "v",
       [&] {
         attention(o.ctx, o.vx({2, 1, 2, 3}), o.vy({2, 1, 2, 3}), o.vy({1, 1, 2, 3}), o.vo({2, 1, 2, 3}));
       }},
      {error_site::attention_shape, "attention", "k",  // 2 heads for 3
       [&] {
         attention(o.ctx, o.vx({3, 2, 3}), o.vy({2, 2, 3}), o.vy({2, 2, 3}), o.vo({3, 2, 3}));
       }},
      {error_site::attention_shape, "attention", "k",  // none for 3
       [&] {
         attention(o.ctx, o.vx({3, 2, 3}), o.vy({0, 2, 3}), o.vy({0, 2, 3}), o.vo({3, 2, 3}));
       }},
      {error_site::attention_shape, "attention", "v",  // other heads than of keys
       [&] {
         attention(o.ctx, o.vx({2, 2, 3}), o.vy({2, 2, 3}), o.vy({1, 2, 3}), o.vo({2, 2, 3}));
       }},
      {error_site::attention_shape, "attention", "slopes",
       [&] {
         attention(o.ctx, o.vx({2, 2, 3}), o.vy({1, 2, 3}), o.vy({1, 2, 3}), o.vo({2, 2, 3}), {}, {}, o.vx({1}));
       }},
      {error_site::attention_shape, "attention", "slopes",  // one number, of no axis
       [&] {
         attention(o.ctx, o.vx({2, 3}), o.vy({2, 3}), o.vy({2, 3}), o.vo({2, 3}), {}, {}, o.vx({}));
       }},
      {error_site::broadcast, "attention", "mask",
       [&] {
         attention(o.ctx, o.vx({2, 3}), o.vy({4, 3}), o.vy({4, 3}), o.vo({2, 3}), {}, o.vx({2, 3}));
       }},
      {error_site::broadcast, "attention", "mask",  // as large as two calls
       [&] {
         attention(o.ctx, o.vx({2, 3}), o.vy({4, 3}), o.vy({4, 3}), o.vo({2, 3}), {}, o.vx({2, 2, 4}));
       }},
      {error_site::operand_dtype, "attention", "k",
       [&] {
         attention(o.ctx, o.vx({2, 3}), {o.y.data(), dtype::f16, {4, 3}}, o.vy({4, 3}), o.vo({2, 3}));
       }},
      {error_site::operand_dtype, "attention", "v",
       [&] {
         attention(o.ctx, o.vx({2, 3}), o.vy({4, 3}), {o.y.data(), dtype::bf16, {4, 3}}, o.vo({2, 3}));
       }},
      {error_site::operand_dtype, "attention", "mask",
       [&] {
         attention(o.ctx, o.vx({2, 3}), o.vy({4, 3}), o.vy({4, 3}), o.vo({2, 3}), {}, {o.x.data(), dtype::f16, {2, 4}});
       }},
      {error_site::operand_dtype, "attention", "slopes",
       [&] {
         attention(o.ctx, o.vx({2, 3}), o.vy({4, 3}), o.vy({4, 3}), o.vo({2, 3}), {}, {}, {o.d.data(), {1}});
       }},
      {error_site::operand_dtype, "attention", "q",
       [&] {
         attention(o.ctx, {o.i.data(), {2, 3}}, {o.i.data(), {4, 3}}, {o.i.data(), {4, 3}},
                   tensor_view(o.i.data(), {2, 3}));
       }},
      {error_site::attribute_value, "attention", "scale",
       [&] {
         attention(o.ctx, o.vx({2, 3}), o.vy({4, 3}), o.vy({4, 3}), o.vo({2, 3}), {.scale = 0x1p201});
       }},
      {error_site::attribute_value, "attention", "scale",
       [&] {
         attention(o.ctx, o.vx({2, 3}), o.vy({4, 3}), o.vy({4, 3}), o.vo({2, 3}), {.scale = std::nan("")});
       }},
      {error_site::output_shape, "attention", "out",
       [&] {
         attention(o.ctx, o.vx({2, 3}), o.vy({4, 3}), o.vy({4, 2}), o.vo({2, 3}));
       }},
      {error_site::output_shape, "attention", "lse",
       [&] {
         attention(o.ctx, o.vx({2, 3}), o.vy({4, 3}), o.vy({4, 3}), o.vo({2, 3}), {}, {}, {},
                   tensor_view(o.out.data() + 6, {2, 1}));
       }},
      {error_site::overlap, "attention", "out",
       [&] {
         attention(o.ctx, o.vo({2, 3}), o.vy({4, 3}), o.vy({4, 3}), o.vo({2, 3}));
       }},
      {error_site::attention_shape, "attention_backward", "g",
       [&] {
         gradients(o, o.vx({2, 2}), o.vx({2, 3}), o.vy({2, 3}), o.vy({2}));
       }},
      {error_site::attention_shape, "attention_backward", "v",
       [&] {
         gradients(o, o.vx({2, 3}), o.vx({5, 3}), o.vy({2, 3}), o.vy({2}));
       }},
      {error_site::attention_shape, "attention_backward", "y",
       [&] {
         gradients(o, o.vx({2, 3}), o.vx({2, 3}), o.vy({4, 3}), o.vy({2}));
       }},
      {error_site::attention_shape, "attention_backward", "lse",
       [&] {
         gradients(o, o.vx({2, 3}), o.vx({2, 3}), o.vy({2, 3}), o.vy({2, 1}));
       }},
      {error_site::operand_dtype, "attention_backward", "lse",
       [&] {
         gradients(o, o.vx({2, 3}), o.vx({2, 3}), o.vy({2, 3}), {o.d.data(), {2}});
       }},
      {error_site::operand_dtype, "attention_backward", "y",
       [&] {
         gradients(o, o.vx({2, 3}), o.vx({2, 3}), {o.y.data(), dtype::f16, {2, 3}}, o.vy({2}));
       }},
      {error_site::axis_range, "log_softmax", "axis", [&] { log_softmax(o.ctx, o.vx({}), o.vo({})); }},
      {error_site::gradient_shape, "softmax_backward", "g",
       [&] { softmax_backward(o.ctx, o.vx({2}), o.vy({3}), o.vo({3})); }},
      {error_site::operand_dtype, "softmax_backward", "y",
       [&] { softmax_backward(o.ctx, o.vx({2}), const_tensor_view(o.x.data(), dtype::bf16, {2}), o.vo({2})); }},
      {error_site::operand_dtype, "layer_norm", "weight",
       [&] {
         layer_norm(o.ctx, o.vx({1, 2}), o.vo({1, 2}), {.weight = const_tensor_view(o.x.data(), dtype::f16, {2})});
       }},
      {error_site::operand_dtype, "layer_norm", "weight",
       [&] {
         const const_tensor_view x(o.x.data(), dtype::bf16, {1, 2}), w(o.x.data(), dtype::f16, {2});
         layer_norm(o.ctx, x, tensor_view(o.out.data(), dtype::bf16, {1, 2}), {.weight = w});
       }},
      {error_site::operand_dtype, "layer_norm", "bias",
       [&] {
         const const_tensor_view x(o.x.data(), dtype::bf16, {1, 2}), w(o.x.data(), dtype::bf16, {2});
         layer_norm(o.ctx, x, tensor_view(o.out.data(), dtype::bf16, {1, 2}), {.weight = w, .bias = o.vx({2})});
       }},
      {error_site::operand_dtype, "layer_norm_backward", "mean",
       [&] {
         const const_tensor_view half(o.x.data(), dtype::f16, {1, 2}), row(o.x.data(), dtype::f16, {1});
         layer_norm_backward(o.ctx, half, half, row, o.vx({1}), tensor_view(o.out.data(), dtype::f16, {1, 2}));
       }},
      {error_site::target_shape, "cross_entropy", "targets",
       [&] {
         cross_entropy(o.ctx, o.vx({2, 3}), const_tensor_view(o.i.data(), sizes{3}), o.vo({}));
       }},
      {error_site::operand_dtype, "cross_entropy", "targets",
       [&] {
         cross_entropy(o.ctx, o.vx({2, 3}), const_tensor_view(o.y.data(), dtype::i32, {2}), o.vo({}));
       }},
      {error_site::weight_shape, "cross_entropy", "weight",
       [&] {
         cross_entropy(o.ctx, o.vx({2, 3}), {o.i.data(), sizes{2}}, o.vo({}), {.weight = o.vy({2})});
       }},
      {error_site::operand_dtype, "cross_entropy_backward", "weight",
       [&] {
         cross_entropy_backward(o.ctx, o.vx({}), o.vx({2, 3}), {o.i.data(), sizes{2}}, o.vo({2, 3}),
                                {.weight = {o.y.data(), dtype::bf16, {3}}});
       }},
      {error_site::attribute_value, "cross_entropy", "label_smoothing",
       [&] {
         cross_entropy(o.ctx, o.vx({2, 3}), {o.i.data(), sizes{2}}, o.vo({}), {.label_smoothing = 0x1p-65});
       }},
      {error_site::attribute_value, "cross_entropy_probabilities", "label_smoothing",
       [&] {
         cross_entropy(o.ctx, o.vx({2, 3}), o.vy({2, 3}), o.vo({}), {.label_smoothing = 1.5});
       }},
      {error_site::target_shape, "cross_entropy_probabilities", "probabilities",
       [&] {
         cross_entropy(o.ctx, o.vx({2, 3}), o.vy({3, 2}), o.vo({}));
       }},
      {error_site::operand_dtype, "cross_entropy_probabilities_backward", "probabilities",
       [&] {
         cross_entropy_backward(o.ctx, o.vx({}), o.vx({2, 3}), {o.y.data(), dtype::f16, {2, 3}}, o.vo({2, 3}));
       }},
      {error_site::attribute_value, "cross_entropy", "reduction",
       [&] {
         infer(o.op("cross_entropy"), std::vector{o.vx({2, 3}), const_tensor_view(o.i.data(), sizes{2})},
               {{"reduction", std::string("max")}});
       }},
      {error_site::weight_shape, "layer_norm", "weight",
       [&] {
         layer_norm(o.ctx, o.vx({2, 3}), o.vo({2, 3}), {.weight = o.vy({2})});
       }},
      {error_site::weight_shape, "layer_norm", "bias",
       [&] {
         layer_norm(o.ctx, o.vx({2, 3}), o.vo({2, 3}), {.axis = sizes{1, 0}, .bias = o.vy({3, 2})});
       }},
      {error_site::weight_shape, "rms_norm", "weight",
       [&] {
         rms_norm(o.ctx, o.vx({2, 3}), o.vo({2, 3}), {.eps = 0.0, .weight = o.vy({1, 3})});
       }},
      {error_site::weight_shape, "group_norm", "bias",
       [&] {
         group_norm(o.ctx, o.vx({1, 4, 2}), o.vo({1, 4, 2}), {.groups = 2, .bias = o.vy({2})});
       }},
      {error_site::weight_shape, "batch_norm", "weight",
       [&] {
         batch_norm(o.ctx, o.vx({4, 2}), o.vo({4, 2}), {.weight = o.vy({4})});
       }},
      {error_site::attribute_value, "layer_norm", "eps",
       [&] { layer_norm(o.ctx, o.vx({2}), o.vo({2}), {.eps = -1e-5}); }},
      {error_site::attribute_value, "rms_norm", "eps",
       [&] { rms_norm(o.ctx, o.vx({2}), o.vo({2}), {.eps = std::numeric_limits<double>::quiet_NaN()}); }},
      {error_site::attribute_value, "group_norm", "eps",
       [&] {
         group_norm(o.ctx, o.vx({1, 2}), o.vo({1, 2}), {.eps = 1e-300});
       }},
      {error_site::attribute_value, "batch_norm", "eps",
       [&] {
         batch_norm(o.ctx, o.vx({2, 1}), o.vo({2, 1}), {.eps = std::numeric_limits<double>::infinity()});
       }},
      {error_site::missing_attribute, "rms_norm", "eps",
       [&] { rms_norm(o.ctx, o.vx({2}), o.vo({2}), rms_norm_options{}); }},
      {error_site::attribute_value, "group_norm", "groups",
       [&] {
         group_norm(o.ctx, o.vx({1, 4}), o.vo({1, 4}), {.groups = 3});
       }},
      {error_site::attribute_value, "group_norm", "groups",
       [&] {
         group_norm(o.ctx, o.vx({1, 4}), o.vo({1, 4}), {.groups = 0});
       }},
      {error_site::attribute_value, "vector_norm", "p", [&] { vector_norm(o.ctx, o.vx({2}), o.vo({}), {.p = 3}); }},
      {error_site::attribute_value, "vector_norm", "p",
       [&] { vector_norm(o.ctx, o.vx({2}), o.vo({}), {.p = std::numeric_limits<double>::quiet_NaN()}); }},
      {error_site::empty_reduction, "vector_norm", "x",
       [&] { vector_norm(o.ctx, o.vx({0}), o.vo({}), {.p = -std::numeric_limits<double>::infinity()}); }},
      {error_site::attribute_value, "var", "correction",
       [&] { var(o.ctx, o.vx({2}), o.vo({}), {.correction = std::numeric_limits<double>::infinity()}); }},
      {error_site::attribute_value, "var_mean", "correction",
       [&] { var_mean(o.ctx, o.vx({2}), o.vo({}), {}, {.correction = -1e-300}); }},
      {error_site::axis_range, "stddev", "axis", [&] { stddev(o.ctx, o.vx({2}), o.vo({}), {.axis = 1}); }},
      {error_site::operand_dtype, "var", "x", [&] { var(o.ctx, const_tensor_view(o.i), o.vo({})); }},
      {error_site::output_shape, "var_mean", "mean",
       [&] {
         var_mean(o.ctx, o.vx({2, 3}), o.vo({2}), o.vo({2, 1}), {.axis = 1});
       }},
      {error_site::absent_operand, "var_mean", "var",
       [&] {
         var_mean(o.ctx, o.vx({2, 3}), {}, o.vo({2}), {.axis = 1});
       }},
      {error_site::operand_rank, "group_norm", "x", [&] { group_norm(o.ctx, o.vx({4}), o.vo({4})); }},
      {error_site::operand_rank, "batch_norm", "x", [&] { batch_norm(o.ctx, o.vx({}), o.vo({})); }},
      {error_site::axis_range, "batch_norm", "axis", [&] { batch_norm(o.ctx, o.vx({4}), o.vo({4})); }},
      {error_site::axis_range, "layer_norm", "axis", [&] { layer_norm(o.ctx, o.vx({}), o.vo({})); }},
      {error_site::duplicate_axis, "layer_norm", "axis",
       [&] {
         layer_norm(o.ctx, o.vx({2, 3}), o.vo({2, 3}), {.axis = sizes{1, -1}});
       }},
      {error_site::output_shape, "layer_norm", "mean",
       [&] {
         layer_norm(o.ctx, o.vx({2, 3}), o.vo({2, 3}), {}, {.mean = o.vo({2, 1})});
       }},
      {error_site::output_shape, "group_norm", "rstd",
       [&] {
         group_norm(o.ctx, o.vx({2, 4}), o.vo({2, 4}), {.groups = 2}, {.rstd = o.vo({2})});
       }},
      {error_site::overlap, "rms_norm", "rstd",
       [&] {
         rms_norm(o.ctx, o.vx({2, 3}), o.vo({2, 3}), {.eps = 0.0}, o.vo({2}));
       }},
      {error_site::overlap, "layer_norm", "out",
       [&] {
         layer_norm(o.ctx, o.vo({2, 3}), o.vo({2, 3}));
       }},
      {error_site::absent_operand, "batch_norm", "out",
       [&] {
         batch_norm(o.ctx, o.vx({2, 3}), {});
       }},
      {error_site::gradient_shape, "layer_norm_backward", "g",
       [&] {
         layer_norm_backward(o.ctx, o.vx({3, 2}), o.vy({2, 3}), o.vx({2}), o.vx({2}), o.vo({2, 3}));
       }},
      {error_site::gradient_shape, "rms_norm_weight_backward", "g",
       [&] {
         rms_norm_backward_weight(o.ctx, o.vx({3}), o.vy({2, 3}), o.vx({2}), o.vo({3}));
       }},
      {error_site::weight_shape, "layer_norm_backward", "mean",
       [&] {
         layer_norm_backward(o.ctx, o.vx({2, 3}), o.vy({2, 3}), o.vx({2, 1}), o.vx({2}), o.vo({2, 3}));
       }},
      {error_site::weight_shape, "rms_norm_backward", "rstd",
       [&] {
         rms_norm_backward(o.ctx, o.vx({2, 3}), o.vy({2, 3}), o.vx({3}), o.vo({2, 3}));
       }},
      {error_site::weight_shape, "group_norm_backward", "mean",
       [&] {
         group_norm_backward(o.ctx, o.vx({2, 4}), o.vy({2, 4}), o.vx({2}), o.vx({2, 1}), o.vo({2, 4}));
       }},
      {error_site::weight_shape, "group_norm_weight_backward", "rstd",
       [&] {
         group_norm_backward_weight(o.ctx, o.vx({2, 4}), o.vy({2, 4}), o.vx({2, 2}), o.vx({2, 4}), o.vo({4}), 2);
       }},
      {error_site::weight_shape, "batch_norm_backward", "weight",
       [&] {
         batch_norm_backward(o.ctx, o.vx({4, 2}), o.vy({4, 2}), o.vx({2}), o.vx({2}), o.vo({4, 2}),
                             {.weight = o.vy({4})});
       }},
      {error_site::weight_shape, "batch_norm_weight_backward", "mean",
       [&] {
         batch_norm_backward_weight(o.ctx, o.vx({4, 2}), o.vy({4, 2}), o.vx({2}), o.vx({2}), o.vo({4}), 0);
       }},
      {error_site::output_shape, "layer_norm_backward", "grad_x",
       [&] {
         layer_norm_backward(o.ctx, o.vx({2, 3}), o.vy({2, 3}), o.vx({2}), o.vx({2}), o.vo({3, 2}));
       }},
      {error_site::output_shape, "layer_norm_weight_backward", "grad_weight",
       [&] {
         layer_norm_backward_weight(o.ctx, o.vx({2, 3}), o.vy({2, 3}), o.vx({2}), o.vx({2}), o.vo({2}));
       }},
      {error_site::axis_range, "layer_norm_weight_backward", "axis",
       [&] {
         layer_norm_backward_weight(o.ctx, o.vx({2, 3}), o.vy({2, 3}), o.vx({2}), o.vx({2}), o.vo({3}), 2);
       }},
      {error_site::duplicate_axis, "rms_norm_backward", "axis",
       [&] {
         rms_norm_backward(o.ctx, o.vx({2, 3}), o.vy({2, 3}), o.vx({}), o.vo({2, 3}), {.axis = sizes{1, -1}});
       }},
      {error_site::axis_range, "batch_norm_backward", "axis",
       [&] { batch_norm_backward(o.ctx, o.vx({4}), o.vy({4}), o.vx({}), o.vx({}), o.vo({4})); }},
      {error_site::attribute_value, "group_norm_weight_backward", "groups",
       [&] {
         group_norm_backward_weight(o.ctx, o.vx({1, 4}), o.vy({1, 4}), o.vx({1, 3}), o.vx({1, 3}), o.vo({4}), 3);
       }},
      {error_site::operand_rank, "group_norm_backward", "x",
       [&] { group_norm_backward(o.ctx, o.vx({4}), o.vy({4}), o.vx({}), o.vx({}), o.vo({4})); }},
      {error_site::weight_shape, "batch_norm_running", "running_mean",
       [&] {
         batch_norm_running(o.ctx, o.vx({4, 2}), o.vx({4}), o.vx({2}), o.vo({4, 2}), {});
       }},
      {error_site::weight_shape, "batch_norm_inference", "running_var",
       [&] {
         batch_norm_inference(o.ctx, o.vx({4, 2}), o.vx({2}), o.vx({1}), o.vo({4, 2}));
       }},
      {error_site::weight_shape, "batch_norm_inference_backward", "weight",
       [&] {
         batch_norm_inference_backward(o.ctx, o.vx({4, 2}), o.vx({2}), o.vo({4, 2}), {.weight = o.vy({4})});
       }},
      {error_site::gradient_shape, "batch_norm_inference_weight_backward", "g",
       [&] {
         batch_norm_inference_backward_weight(o.ctx, o.vx({2, 4}), o.vx({4, 2}), o.vx({2}), o.vx({2}), o.vo({2}));
       }},
      {error_site::attribute_value, "batch_norm_running", "momentum",
       [&] {
         batch_norm_running(o.ctx, o.vx({4, 2}), o.vx({2}), o.vx({2}), o.vo({4, 2}), {}, {.momentum = 1 + 0x1p-52});
       }},
      {error_site::attribute_value, "batch_norm_running", "momentum",
       [&] {
         batch_norm_running(o.ctx, o.vx({4, 2}), o.vx({2}), o.vx({2}), o.vo({4, 2}), {}, {.momentum = -0.5});
       }},
      {error_site::attribute_value, "batch_norm_inference", "eps",
       [&] {
         batch_norm_inference(o.ctx, o.vx({4, 2}), o.vx({2}), o.vx({2}), o.vo({4, 2}), {.eps = -1});
       }},
      {error_site::operand_rank, "batch_norm_inference_backward", "g",
       [&] { batch_norm_inference_backward(o.ctx, o.vx({}), o.vx({}), o.vo({})); }},
      {error_site::axis_range, "batch_norm_inference_weight_backward", "axis",
       [&] {
         batch_norm_inference_backward_weight(o.ctx, o.vx({4, 2}), o.vx({4, 2}), o.vx({2}), o.vx({2}), o.vo({2}), 2);
       }},
      {error_site::overlap, "batch_norm_running", "running_var",
       [&] {
         batch_norm_running(o.ctx, o.vx({4, 2}), o.vo({2}), o.vy({2}), o.vo({4, 2}), {.var = o.vo({2})});
       }},
      {error_site::absent_operand, "batch_norm_running", "running_mean",
       [&] {
         batch_norm_running(o.ctx, o.vx({4, 2}), {}, o.vx({2}), o.vo({4, 2}), {});
       }},
      {error_site::absent_operand, "layer_norm_backward", "mean",
       [&] {
         layer_norm_backward(o.ctx, o.vx({2, 3}), o.vy({2, 3}), {}, o.vx({2}), o.vo({2, 3}));
       }},
      {error_site::overlap, "layer_norm_backward", "grad_x",
       [&] {
         layer_norm_backward(o.ctx, o.vo({2, 3}), o.vy({2, 3}), o.vx({2}), o.vx({2}), o.vo({2, 3}));
       }},
      {error_site::attribute_value, "sgd", "lr",
       [&] {
         sgd(o.ctx, std::vector{sgd_tensor{o.vo({2}), o.vx({2})}}, {.lr = 1e-300});
       }},
      {error_site::attribute_value, "sgd", "nesterov",
       [&] {
         sgd(o.ctx, std::vector{sgd_tensor{o.vo({2}), o.vx({2})}}, {.nesterov = true});
       }},
      {error_site::input_count, "sgd", "inputs",
       [&] {
         infer(o.op("sgd"), std::vector{o.vx({2}), o.vx({2}), o.vx({2})}, {{"lr", 0.1}});
       }},
      {error_site::absent_operand, "sgd", "velocity",
       [&] {
         sgd(o.ctx, std::vector{sgd_tensor{o.vo({2}), o.vx({2})}}, {.momentum = 0.9});
       }},
      {error_site::gradient_shape, "sgd", "grad[1]",
       [&] {
         const tensor_view second(o.out.data() + 8, sizes{2});
         sgd(o.ctx, std::vector{sgd_tensor{o.vo({2}), o.vx({2})}, sgd_tensor{second, o.vx({3})}}, {});
       }},
      {error_site::operand_dtype, "sgd", "grad",
       [&] {
         sgd(o.ctx, std::vector{sgd_tensor{o.vo({2}), const_tensor_view(o.d.data(), dtype::f16, {2})}}, {});
       }},
      {error_site::operand_dtype, "sgd", "velocity",
       [&] {
         const tensor_view wide(o.d.data(), dtype::f64, {2});
         infer(o.op("sgd"), std::vector<const_tensor_view>{wide, wide, o.vx({2})}, {{"momentum", 0.5}});
       }},
      {error_site::operand_dtype, "adamw", "param[1]",
       [&] {
         infer(o.op("adamw"),
               std::vector{o.vx({2}), o.vx({2}), o.vx({2}), o.vx({2}), const_tensor_view(o.d.data(), dtype::bf16, {2}),
                           const_tensor_view(o.d.data(), dtype::bf16, {2}), o.vx({2}), o.vx({2})},
               {});
       }},
      {error_site::overlap, "sgd", "param[1]",
       [&] {
         sgd(o.ctx, std::vector{sgd_tensor{o.vo({2}), o.vx({2})}, sgd_tensor{o.vo({2}), o.vx({2})}}, {});
       }},
      {error_site::attribute_value, "adamw", "beta1",
       [&] {
         float m[2] = {}, v[2] = {};
         adamw(o.ctx,
               std::vector{adamw_tensor{o.vo({2}), o.vx({2}), tensor_view(m, sizes{2}), tensor_view(v, sizes{2})}},
               {.beta1 = 1});
       }},
      {error_site::attribute_value, "adamw", "step", [&] { adamw(o.ctx, {}, {.step = 0}); }},
      {error_site::attribute_value, "total_norm", "p", [&] { total_norm(o.ctx, {}, o.vo({}), {.p = 3}); }},
      {error_site::attribute_value, "clip_grad_norm", "max_norm",
       [&] {
         clip_grad_norm(o.ctx, std::vector<const_tensor_view>{o.vx({2})}, std::vector{o.vo({2})}, {.max_norm = -1});
       }},
      {error_site::attribute_value, "clip_grad_norm", "max_norm",
       [&] { clip_grad_norm(o.ctx, {}, {}, {.max_norm = std::numeric_limits<double>::quiet_NaN()}); }},
      {error_site::attribute_value, "clip_grad_norm", "p",
       [&] { clip_grad_norm(o.ctx, {}, {}, {.p = -std::numeric_limits<double>::infinity()}); }},
      {error_site::missing_attribute, "clip_grad_norm", "max_norm",
       [&] {
         infer(o.op("clip_grad_norm"), std::vector{o.vx({2})}, {{"p", 1.0}});
       }},
      {error_site::operand_dtype, "total_norm", "x[1]",
       [&] {
         total_norm(o.ctx, std::vector{o.vx({2}), const_tensor_view(o.d.data(), dtype::f16, {2})}, o.vo({}));
       }},
      {error_site::operand_dtype, "clip_grad_norm", "grad[1]",
       [&] {
         clip_grad_norm(o.ctx, std::vector{o.vx({2}), const_tensor_view(o.d.data(), dtype::bf16, {2})},
                        std::vector{o.vo({2}), o.vo({2})});
       }},
      {error_site::absent_operand, "total_norm", "out", [&] { total_norm(o.ctx, {}, {}); }},
      {error_site::output_dtype, "total_norm", "out",
       [&] { total_norm(o.ctx, {}, tensor_view(o.d.data(), dtype::f64, {})); }},
      {error_site::output_shape, "clip_grad_norm", "total_norm",
       [&] {
         clip_grad_norm(o.ctx, std::vector<const_tensor_view>{o.vx({2})}, std::vector{o.vo({2})}, {}, o.vo({1}));
       }},
      {error_site::output_count, "clip_grad_norm", "outputs",
       [&] {
         clip_grad_norm(o.ctx, std::vector<const_tensor_view>{o.vx({2}), o.vx({2})}, std::vector{o.vo({2})});
       }},
      {error_site::overlap, "clip_grad_norm", "grad[1]",
       [&] {
         clip_grad_norm(o.ctx, std::vector<const_tensor_view>{o.vx({2}), o.vx({2})}, std::vector{o.vo({2}), o.vo({2})});
       }},
      {error_site::attribute_value, "normal", "stddev",
       [&] {
         generator g;
         normal(o.ctx, g, o.vo({2}), {.stddev = -1});
       }},
      {error_site::input_count, "conv2d_grad_input", "bias",
       [&] {
         conv2d_backward_x(o.ctx, o.vx({1, 1, 2, 2}), o.vy({1, 1, 1, 1}), o.vo({1, 1, 2, 2}), {.bias = o.vx({1})});
       }},
      {error_site::input_count, "conv2d_grad_weight", "bias",
       [&] {
         conv2d_backward_w(o.ctx, o.vx({1, 1, 2, 2}), o.vy({1, 1, 2, 2}), o.vo({1, 1, 1, 1}), {.bias = o.vx({1})});
       }},
      {error_site::attribute_value, "exponential", "rate",
       [&] {
         generator g;
         exponential(o.ctx, g, o.vo({2}), {.rate = 0});
       }},
      {error_site::attribute_value, "dropout", "p",
       [&] {
         generator g;
         dropout(o.ctx, g, o.vx({2}), o.vo({2}), std::numeric_limits<double>::quiet_NaN());
       }},
      {error_site::attribute_value, "randint", "high",
       [&] {
         generator g;
         randint(o.ctx, g, tensor_view(o.i.data(), sizes{2}), {.low = 3, .high = 3});
       }},
      {error_site::attribute_value, "multinomial", "num_samples",
       [&] {
         generator g;
         multinomial(o.ctx, g, o.vx({2}), tensor_view(o.i.data(), sizes{0}));
       }},
      {error_site::weights, "multinomial", "x",
       [&] {
         generator g;
         const float none[2] = {};
         multinomial(o.ctx, g, {none, {2}}, tensor_view(o.i.data(), sizes{1}));
       }},
      {error_site::index_shape, "index_add", "source",
       [&] {
         index_add(o.ctx, o.vx({4, 2}), {o.i.data(), {3}}, o.vy({4, 2}), o.vo({4, 2}));
       }},
      {error_site::index_shape, "scatter_add", "index",
       [&] {
         scatter_add(o.ctx, o.vx({4, 2}), {o.i.data(), {3, 3}}, o.vy({4, 4}), o.vo({4, 2}));
       }},
      {error_site::index_shape, "embedding_backward", "g",
       [&] {
         embedding_backward(o.ctx, o.vx({4, 2}), {o.i.data(), {3}}, o.vo({4, 2}));
       }},
      {error_site::index_range, "index_add", "index",
       [&] {
         index_add(o.ctx, o.vx({4, 2}), {o.i.data(), {3}}, o.vy({3, 2}), o.vo({4, 2}));
       }},
      {error_site::index_range, "embedding_backward", "indices",
       [&] {
         embedding_backward(o.ctx, o.vx({3, 2}), {o.i.data(), {3}}, o.vo({4, 2}));
       }},
      {error_site::attribute_value, "embedding_backward", "padding_idx",
       [&] {
         embedding_backward(o.ctx, o.vx({3, 2}), {o.i.data(), {3}}, o.vo({4, 2}), {.padding_idx = 4});
       }},
      {error_site::attribute_value, "matmul", "beta",
       [&] {
         matmul(o.ctx, o.vx({2, 2}), o.vy({2, 2}), o.vo({2, 2}), {.beta = 0x1p201});
       }},
      {error_site::operand_dtype, "matmul", "b",
       [&] {
         matmul(o.ctx, o.vx({2, 2}), {o.y.data(), dtype::f16, {2, 2}}, o.vo({2, 2}));
       }},
      {error_site::no_context, "exp", "operands", [&] { exp(o.vx({2})); }},
      {error_site::context_mismatch, "mul", "operands",
       [&] {
         context other({.threads = 1});
         mul(operand(o.ctx, o.vx({2})), operand(other, o.vy({2})));
       }},
      {error_site::prepared_result, "exp", "out", [&] { o.ctx.prepare([&] { exp(operand(o.ctx, o.vx({2}))); }); }},
      {error_site::number_format, "add", "operands",
       [&] { add(o.ctx, const_tensor_view(o.i.data(), {2}), 1, o.vo({2})); }},
      {error_site::number_format, "operand", "number", [] { operand(std::uint64_t{1} << 63 | 1); }},
      {error_site::input_count, "matmul", "bias",
       [&] {
         matmul(o.ctx, o.vx({2, 2}), o.vy({2, 2}), o.vx({2}), o.vo({2, 2}), {.bias = o.vx({2})});
       }},
      {error_site::attribute_value, "conv2d", "stride",
       [&] {
         conv2d(o.ctx, o.vx({1, 1, 2, 2}), o.vy({1, 1, 1, 1}), o.vo({1, 1, 2, 2}), {.stride = {1, 1, 1}});
       }},
      {error_site::attribute_value, "max_pool2d", "padding",
       [&] {
         max_pool2d(o.ctx, o.vx({1, 1, 2, 2}), o.vo({1, 1, 2, 2}), {.padding = {0, 0, 0}});
       }},
      {error_site::attribute_value, "cross_entropy_backward", "ignore_index",
       [&] {
         cross_entropy_backward(o.ctx, o.vx({}), o.vx({2, 3}), o.vy({2, 3}), o.vo({2, 3}), {.ignore_index = 0});
       }},
      {error_site::chain_only, "matmul", "alpha",
       [&] {
         matmul(o.ctx, o.vx({2, 2}), o.vy({2, 2}), o.vo({2, 2}), {.accumulate = accumulate::fma_chain, .alpha = 2});
       }},
      {error_site::chain_only, "matmul", "a",
       [&] {
         const const_tensor_view half(o.y.data(), dtype::f16, {2, 2});
         infer(o.op("matmul"), std::vector{half, half}, {{"accumulate", std::string("fma_chain")}});
       }},
      {error_site::chain_only, "conv2d", "x",
       [&] {
         const const_tensor_view half(o.y.data(), dtype::f16, {1, 1, 2, 2});
         infer(o.op("conv2d"), std::vector{half, half}, {{"accumulate", std::string("fma_chain")}});
       }},
      {error_site::operand_dtype, "conv2d_grad_weight", "x",
       [&] {
         const const_tensor_view half(o.y.data(), dtype::f16, {1, 1, 2, 2});
         infer(o.op("conv2d_grad_weight"), std::vector{half, o.vx({1, 1, 2, 2})},
               {{"kernel", std::vector<std::int64_t>{1, 1}}});
       }},
      {error_site::attribute_value, "index_add", "alpha",
       [&] {
         index_add(o.ctx, o.vx({4}), {o.i.data(), {3}}, o.vy({3}), o.vo({4}), {.alpha = 0x1p201});
       }},
      {error_site::axis_range, "index_add", "axis",
       [&] {
         index_add(o.ctx, o.vx({}), {o.i.data(), {1}}, o.vy({}), o.vo({}));
       }},
      {error_site::overlap, "index_add", "out",
       [&] {
         index_add(o.ctx, o.vx({3}), {o.i.data(), {3}}, const_tensor_view(o.out.data(), {3}), o.vo({3}));
       }},
      {error_site::target_shape, "nll_loss", "targets",
       [&] {
         nll_loss(o.ctx, o.vx({3, 2}), {o.i.data(), {2}}, o.vo({}));
       }},
      {error_site::weight_shape, "nll_loss", "weight",
       [&] {
         nll_loss(o.ctx, o.vx({3, 2}), {o.i.data(), {3}}, o.vo({}), {.weight = o.vy({3})});
       }},
      {error_site::operand_dtype, "nll_loss", "weight",
       [&] {
         nll_loss(o.ctx, o.vx({3, 2}), {o.i.data(), {3}}, o.vo({}), {.weight = {o.y.data(), dtype::f16, {2}}});
       }},
      {error_site::operand_rank, "nll_loss", "x",
       [&] {
         nll_loss(o.ctx, o.vx({}), {o.i.data(), {1}}, o.vo({}));
       }},
      {error_site::absent_operand, "nll_loss_backward", "total_weight",
       [&] {
         nll_loss_backward(o.ctx, o.vx({}), o.vy({3, 2}), {o.i.data(), {3}}, o.vo({3, 2}));
       }},
      {error_site::operand_rank, "nll_loss_backward", "total_weight",
       [&] {
         nll_loss_backward(o.ctx, o.vx({}), o.vy({3, 2}), {o.i.data(), {3}}, o.vo({3, 2}), {}, o.vx({1}));
       }},
      {error_site::operand_dtype, "nll_loss_backward", "total_weight",
       [&] {
         nll_loss_backward(o.ctx, o.vx({}), o.vy({3, 2}), {o.i.data(), {3}}, o.vo({3, 2}), {},
                           const_tensor_view(o.d.data(), dtype::f64, {}));
       }},
      {error_site::operand_dtype, "scatter_add", "source",
       [&] {
         scatter_add(o.ctx, o.vx({3}), {o.i.data(), {3}}, {o.x.data(), dtype::f16, {3}}, o.vo({3}));
       }},
  };
}

// Sites that cannot be made here, and who makes them.
const std::set<error_site> elsewhere = {
    // cli_test.py
    error_site::unknown_operation, error_site::file_open, error_site::file_write, error_site::npy_magic,
    error_site::npy_version, error_site::npy_header, error_site::npy_dtype, error_site::npy_truncated,
    error_site::usage, error_site::no_oracle,
    // loaded_test.cpp
    error_site::cuda_library,
    // a machine without AVX-512 or AVX2; with no CUDA in the build; with no GPU; with a GPU (cuda_test.cpp,
    // fork_test.cpp); a wrong
    // build
    error_site::isa_unavailable, error_site::no_backend, error_site::no_device, error_site::allocation_in_capture,
    error_site::device_failure, error_site::cuda_after_fork, error_site::self_test};

// ---- the same through the C ABI

struct c_operands {
  repdl_context* ctx = nullptr;
  float x[24];
  float out[24];
  std::int64_t shape[9] = {2, 3, 1, 1, 1, 1, 1, 1, 1};
  std::int64_t strides[9] = {3, 1, 1, 1, 1, 1, 1, 1, 1};
  repdl_tensor tx;
  repdl_tensor to;

  c_operands() {
    REQUIRE(repdl_context_create(nullptr, &ctx) == REPDL_OK);
    for (float& v : x) v = 1;
    for (float& v : out) v = untouched;
    tx = {x, {1, 0}, 2, {2, 32, 1}, shape, nullptr, 0};
    to = {out, {1, 0}, 2, {2, 32, 1}, shape, nullptr, 0};
  }
  ~c_operands() { repdl_context_destroy(ctx); }
  c_operands(const c_operands&) = delete;

  const repdl_op* op(const char* name) const {
    const repdl_op* o = nullptr;
    repdl_op_find(name, &o);
    return o;
  }
  repdl_status run(const char* name, std::vector<const repdl_tensor*> in, const repdl_tensor* o,
                   std::vector<repdl_attribute> a = {}) {
    return repdl_run(ctx, op(name), in.data(), static_cast<std::int32_t>(in.size()), &o, 1, a.data(),
                     static_cast<std::int32_t>(a.size()));
  }
};

repdl_attribute text_attribute(const char* name, const char* text) {
  repdl_attribute a{name, REPDL_TEXT, 0, {}};
  a.value.text = text;
  return a;
}

// exp of one tensor, with counts that may be wrong.
repdl_status exp_with(c_operands& c, std::int32_t in_count, std::int32_t out_count, std::int32_t attribute_count) {
  const repdl_tensor* in = &c.tx;
  const repdl_tensor* out = &c.to;
  const repdl_attribute none{};
  return repdl_run(c.ctx, c.op("exp"), &in, in_count, &out, out_count, &none, attribute_count);
}

repdl_status infer_exp(c_operands& c, std::int32_t index) {
  const repdl_tensor* in = &c.tx;
  repdl_data_type type;
  std::int32_t rank = 0;
  std::int64_t shape[8];
  return repdl_infer(c.op("exp"), &in, 1, nullptr, 0, index, &type, &rank, shape);
}

// A context whose options may be wrong.
repdl_status create_with(void (*change)(repdl_context_options&)) {
  repdl_context_options o{};
  o.size = sizeof o;
  change(o);
  repdl_context* c = nullptr;
  return repdl_context_create(&o, &c);
}

struct c_case {
  error_site site;
  std::function<repdl_status(c_operands&)> provoke;
  std::string message = ": expected ";  // a part of it
};

repdl_attribute integers_attribute(const char* name, std::int64_t count, const std::int64_t* integers) {
  repdl_attribute a{name, REPDL_INTEGERS, count, {}};
  a.value.integers = integers;
  return a;
}

const std::vector<c_case>& c_cases() {
  using C = c_operands;
  static const auto with = [](C& c, auto change) {
    repdl_tensor t = c.tx;
    change(t);
    return c.run("exp", {&t}, &c.to);
  };
  static std::int64_t big[] = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  static std::int64_t negative[] = {2, -3};
  static std::int64_t far[] = {std::numeric_limits<std::int64_t>::max(), 1};
  static std::int64_t zero_stride[] = {0, 1};
  static std::int64_t empty[] = {0, 3};
  static std::int64_t axes[] = {0, 0};
  static const std::vector<c_case> cases = {
      {error_site::null_argument, [](C&) { return repdl_context_create(nullptr, nullptr); }},
      {error_site::null_argument, [](C&) { return repdl_op_find(nullptr, nullptr); }},
      {error_site::null_argument, [](C& c) { return repdl_run(c.ctx, nullptr, nullptr, 0, nullptr, 0, nullptr, 0); }},
      {error_site::null_argument,
       [](C& c) { return repdl_run(nullptr, c.op("exp"), nullptr, 0, nullptr, 0, nullptr, 0); }},
      {error_site::null_argument, [](C& c) { return repdl_fingerprint(c.ctx, nullptr, 1, nullptr); }},
      {error_site::null_argument, [](C& c) { return repdl_context_statistics(c.ctx, nullptr); }},
      {error_site::null_argument, [](C& c) { return repdl_allocate(c.ctx, 1, nullptr); }},
      {error_site::null_argument, [](C& c) { return repdl_copy(c.ctx, nullptr, &c, 1); }},
      {error_site::null_argument, [](C&) { return repdl_prepared_run(nullptr); }},
      {error_site::null_argument,
       [](C& c) { return repdl_prepare(c.ctx, c.op("exp"), nullptr, 0, nullptr, 0, nullptr, 0, nullptr); }},
      {error_site::unknown_operation,
       [](C&) {
         const repdl_op* o;
         return repdl_op_find("expp", &o);
       }},
      {error_site::unknown_operation,
       [](C&) {
         const repdl_op* o;
         return repdl_op_at(-1, &o);
       }},
      {error_site::null_argument, [](C& c) { return repdl_op_get_info(c.op("exp"), nullptr); }},
      {error_site::null_argument, [](C&) { return repdl_devices(nullptr, 1, nullptr); }},
      {error_site::null_argument,
       [](C&) {
         std::int32_t count = 0;
         return repdl_instruction_sets(nullptr, 1, &count);
       }},
      {error_site::attribute_value,
       [](C&) {
         std::int32_t count = 0;
         return repdl_devices(nullptr, -1, &count);
       }},
      {error_site::attribute_value,
       [](C& c) {
         repdl_op_info info{};
         return repdl_op_get_info(c.op("exp"), &info);
       },
       "repdl_op_get_info: info.size: expected the struct's size, at most "},
      {error_site::input_count,
       [](C& c) {
         repdl_operand_info info{};
         return repdl_op_input(c.op("exp"), 1, &info);
       },
       "repdl_op_input: index: expected a number below 1, got 1"},
      {error_site::output_count,
       [](C& c) {
         repdl_operand_info info{};
         return repdl_op_output(c.op("exp"), -1, &info);
       },
       "repdl_op_output: index: expected a number below 1, got -1"},
      {error_site::unknown_attribute,
       [](C& c) {
         repdl_attribute_info info{};
         return repdl_op_attribute(c.op("sum"), 3, &info);
       },
       "repdl_op_attribute: index: expected a number below 3, got 3"},
      {error_site::foreign_version,
       [](C&) {
         repdl_managed_tensor t{};
         t.version = {2, 0};
         const repdl_tensor* v = nullptr;
         return repdl_tensor_of(&t, 0, &v);
       },
       "repdl_tensor_of: managed: expected a DLPack tensor of major version 1, got 2"},
      {error_site::read_only,
       [](C&) {
         repdl_managed_tensor t{};
         t.version = {1, 1};
         t.flags = REPDL_READ_ONLY;
         const repdl_tensor* v = nullptr;
         return repdl_tensor_of(&t, 1, &v);
       },
       "repdl_tensor_of: managed: expected a tensor that may be written, got one that may only be read"},
      {error_site::null_argument, [](C&) { return repdl_tensor_of(nullptr, 0, nullptr); }},
      {error_site::foreign_dtype,
       [](C& c) {
         repdl_managed_tensor* t = nullptr;
         return repdl_tensor_create(c.ctx, {1, 8, 1}, 0, nullptr, &t);
       },
       "dtype: expected f16, bf16, f32, f64, i64, bool, i32"},
      {error_site::negative_size,
       [](C& c) {
         repdl_managed_tensor* t = nullptr;
         return repdl_tensor_create(c.ctx, {2, 32, 1}, 2, negative, &t);
       }},
      {error_site::rank_too_large,
       [](C& c) {
         repdl_managed_tensor* t = nullptr;
         return repdl_tensor_create(c.ctx, {2, 32, 1}, -1, nullptr, &t);
       }},
      {error_site::null_argument,
       [](C& c) {
         repdl_managed_tensor* t = nullptr;
         return repdl_tensor_create(c.ctx, {2, 32, 1}, 1, nullptr, &t);
       }},
      {error_site::foreign_dtype, [](C& c) { return with(c, [](repdl_tensor& t) {
                                               t.dtype = {1, 32, 1};
                                             }); }},
      {error_site::foreign_lanes, [](C& c) { return with(c, [](repdl_tensor& t) { t.dtype.lanes = 4; }); }},
      {error_site::foreign_device, [](C& c) { return with(c, [](repdl_tensor& t) { t.device.device_type = 7; }); }},
      {error_site::rank_too_large, [](C& c) { return with(c, [](repdl_tensor& t) { t.ndim = 9; }); }},
      {error_site::negative_size, [](C& c) { return with(c, [](repdl_tensor& t) { t.shape = negative; }); }},
      {error_site::size_overflow, [](C& c) { return with(c, [](repdl_tensor& t) { t.shape = big; }); }},
      {error_site::stride_overflow, [](C& c) { return with(c, [](repdl_tensor& t) { t.strides = far; }); }},
      {error_site::null_data, [](C& c) { return with(c, [](repdl_tensor& t) { t.data = nullptr; }); }},
      {error_site::misaligned_data, [](C& c) { return with(c, [](repdl_tensor& t) { t.byte_offset = 2; }); }},
      {error_site::operand_dtype, [](C& c) { return with(c, [](repdl_tensor& t) {
                                               t.dtype = {6, 8, 1};
                                             }); }},
      {error_site::device_mismatch, [](C& c) { return with(c, [](repdl_tensor& t) {
                                                 t.device = {2, 0};
                                               }); }},
      {error_site::input_count, [](C& c) { return c.run("add", {&c.tx}, &c.to); }},
      {error_site::output_count,
       [](C& c) {
         const repdl_tensor* in = &c.tx;
         return repdl_run(c.ctx, c.op("exp"), &in, 1, nullptr, 0, nullptr, 0);
       }},
      {error_site::absent_operand, [](C& c) { return c.run("exp", {nullptr}, &c.to); }},
      {error_site::output_shape,
       [](C& c) {
         repdl_tensor t = c.to;
         t.ndim = 1;
         return c.run("exp", {&c.tx}, &t);
       }},
      {error_site::output_dtype, [](C& c) { return c.run("argmax", {&c.tx}, &c.to); }},
      {error_site::output_self_overlap,
       [](C& c) {
         repdl_tensor t = c.to;
         t.strides = zero_stride;
         return c.run("exp", {&c.tx}, &t);
       }},
      {error_site::overlap,
       [](C& c) {
         repdl_tensor t = c.to;
         t.byte_offset = 4;
         return c.run("exp", {&t}, &c.to);
       }},
      {error_site::operand_rank,
       [](C& c) {
         return c.run("dot", {&c.tx, &c.tx}, &c.to);
       }},
      {error_site::inner_size,
       [](C& c) {
         return c.run("matmul", {&c.tx, &c.tx}, &c.to);
       }},
      {error_site::empty_reduction,
       [](C& c) {
         repdl_tensor t = c.tx;
         t.shape = empty;
         return c.run("max", {&t}, &c.to);
       }},
      {error_site::axis_range,
       [](C& c) {
         static std::int64_t five[] = {5};
         return c.run("sum", {&c.tx}, &c.to, {integers_attribute("axis", 1, five)});
       }},
      {error_site::duplicate_axis,
       [](C& c) { return c.run("sum", {&c.tx}, &c.to, {integers_attribute("axis", 2, axes)}); }},
      {error_site::unknown_attribute, [](C& c) { return c.run("exp", {&c.tx}, &c.to, {text_attribute("base", "2")}); }},
      {error_site::duplicate_attribute,
       [](C& c) {
         return c.run("convert", {&c.tx}, &c.to, {text_attribute("dtype", "f32"), text_attribute("dtype", "f32")});
       }},
      {error_site::attribute_kind,
       [](C& c) { return c.run("sum", {&c.tx}, &c.to, {text_attribute("keepdim", "true")}); }},
      {error_site::attribute_kind,
       [](C& c) {
         return c.run("sum", {&c.tx}, &c.to, {{"keepdim", 9, 0, {}}});
       }},
      {error_site::attribute_value,
       [](C& c) { return c.run("convert", {&c.tx}, &c.to, {text_attribute("dtype", "f8")}); }},
      {error_site::missing_attribute,
       [](C& c) {
         const repdl_tensor* in = &c.tx;
         repdl_data_type t;
         std::int32_t n = 0;
         std::int64_t s[8];
         return repdl_infer(c.op("convert"), &in, 1, nullptr, 0, 0, &t, &n, s);
       }},
      {error_site::isa_name, [](C&) { return create_with([](repdl_context_options& o) { o.isa = "sse9"; }); }},
      {error_site::thread_count, [](C&) { return create_with([](repdl_context_options& o) { o.threads = -2; }); }},
      {error_site::thread_count, [](C&) { return create_with([](repdl_context_options& o) { o.threads = 1025; }); }},
      {error_site::device_index, [](C&) { return create_with([](repdl_context_options& o) {
                                            o.device = {1, 3};
                                          }); }},
      {error_site::workspace_misaligned,
       [](C& c) { return repdl_context_workspace(c.ctx, reinterpret_cast<void*>(std::uintptr_t{4096 + 8}), 64); }},
      {error_site::workspace_misaligned,
       [](C&) {
         repdl_context_options o{};
         o.size = sizeof o;
         o.allocate = [](void*, std::size_t, repdl_device, void*) -> void* {
           alignas(256) static std::byte memory[4096];
           return memory + 8;
         };
         o.deallocate = [](auto...) {};
         repdl_context* made = nullptr;
         if (const repdl_status s = repdl_context_create(&o, &made); s != REPDL_OK) return s;
         void* data = nullptr;
         const repdl_status s = repdl_allocate(made, 100, &data);
         CHECK(data == nullptr);
         repdl_context_destroy(made);
         return s;
       },
       "allocate: memory: expected a 256-byte aligned address from the allocator, got one 8 bytes beyond"},
      {error_site::out_of_memory,
       [](C& c) {
         void* data = nullptr;
         const repdl_status s = repdl_allocate(c.ctx, SIZE_MAX, &data);
         CHECK(data == nullptr);
         return s;
       },
       "allocate: memory: expected fewer than 2^63 bytes, got 18446744073709551615"},
      // Counts and numbers that cannot be.
      {error_site::attribute_value, [](C& c) { return exp_with(c, 1, 1, -1); },
       "attribute_count: expected a count >= 0, got -1"},
      {error_site::input_count, [](C& c) { return exp_with(c, -1, 1, 0); }, "in_count: expected a count >= 0, got -1"},
      {error_site::output_count, [](C& c) { return exp_with(c, 1, std::numeric_limits<std::int32_t>::min(), 0); },
       "out_count: expected a count >= 0, got -2147483648"},
      {error_site::input_count,
       [](C& c) {
         char hex[65];
         return repdl_fingerprint(c.ctx, nullptr, -3, hex);
       },
       "tensors_count: expected a count >= 0, got -3"},
      {error_site::absent_operand,
       [](C& c) {
         char hex[65];
         const repdl_tensor* none = nullptr;
         return repdl_fingerprint(c.ctx, &none, 1, hex);
       },
       "tensors[0]: expected a tensor"},
      {error_site::null_argument,
       [](C& c) {
         const repdl_tensor* in = &c.tx;
         const repdl_tensor* out = &c.to;
         return repdl_run(c.ctx, c.op("exp"), &in, 1, &out, 1, nullptr, 1);
       },
       "attributes: expected an address"},
      {error_site::null_argument,
       [](C& c) {
         const repdl_tensor* out = &c.to;
         return repdl_run(c.ctx, c.op("exp"), nullptr, 1, &out, 1, nullptr, 0);
       },
       "in: expected an address"},
      {error_site::null_argument,
       [](C& c) { return c.run("sum", {&c.tx}, &c.to, {integers_attribute(nullptr, 1, axes)}); },
       "attributes[0].name: expected an address"},
      {error_site::null_argument,
       [](C& c) { return c.run("sum", {&c.tx}, &c.to, {integers_attribute("axis", 1, nullptr)}); },
       "axis: expected an address"},
      {error_site::null_argument,
       [](C& c) { return c.run("convert", {&c.tx}, &c.to, {text_attribute("dtype", nullptr)}); },
       "dtype: expected an address"},
      {error_site::attribute_value,
       [](C& c) { return c.run("sum", {&c.tx}, &c.to, {integers_attribute("axis", -1, axes)}); },
       "axis.count: expected 0 to 8, got -1"},
      {error_site::attribute_value,
       [](C& c) {
         // With 8 bytes each, the sizes of 2^62 + 1 and 2^61 + 1 integers are 8 modulo 2^64.
         return c.run("sum", {&c.tx}, &c.to, {integers_attribute("axis", (std::int64_t{1} << 62) + 1, axes)});
       },
       "axis.count: expected 0 to 8, got 4611686018427387905"},
      {error_site::attribute_value,
       [](C& c) {
         static constexpr std::int64_t nine[9] = {};
         return c.run("sum", {&c.tx}, &c.to, {integers_attribute("axis", 9, nine)});
       },
       "axis.count: expected 0 to 8, got 9"},
      {error_site::attribute_value,
       [](C& c) {
         repdl_attribute a{"keepdim", REPDL_BOOLEAN, 0, {}};
         a.value.i64 = 7;
         return c.run("sum", {&c.tx}, &c.to, {a});
       },
       "keepdim: expected a boolean, 0 or 1, got 7"},
      {error_site::attribute_value,
       [](C& c) {
         repdl_attribute a{"keepdim", REPDL_BOOLEAN, 0, {}};
         a.value.i64 = -1;
         return c.run("sum", {&c.tx}, &c.to, {a});
       },
       "keepdim: expected a boolean, 0 or 1, got -1"},
      {error_site::attribute_kind,
       [](C& c) {
         return c.run("sum", {&c.tx}, &c.to, {{"keepdim", -1, 0, {}}});
       },
       "keepdim: expected a kind from 0 to 4, got -1"},
      {error_site::rank_too_large, [](C& c) { return with(c, [](repdl_tensor& t) { t.ndim = -1; }); },
       "in[0]: expected ndim >= 0, got -1"},
      {error_site::null_argument, [](C& c) { return with(c, [](repdl_tensor& t) { t.shape = nullptr; }); },
       "in[0].shape: expected an address"},
      {error_site::stride_overflow,
       [](C& c) { return with(c, [](repdl_tensor& t) { t.byte_offset = static_cast<std::uint64_t>(-4); }); },
       "in[0].byte_offset: expected a number below 2^63, got 18446744073709551612"},
      {error_site::foreign_device, [](C&) { return create_with([](repdl_context_options& o) {
                                              o.device = {0, 5};
                                            }); },
       "options.device: expected device type 1 (CPU) or 2 (CUDA), got 0"},
      {error_site::attribute_value, [](C&) { return create_with([](repdl_context_options& o) { o.first_tier = 4; }); },
       "first_tier: expected 0 to 3, got 4"},
      {error_site::attribute_value,
       [](C&) { return create_with([](repdl_context_options& o) { o.last_tier_bits = -2; }); },
       "last_tier_bits: expected >= -1, got -2"},
      {error_site::null_argument,
       [](C&) { return create_with([](repdl_context_options& o) { o.deallocate = [](auto...) {}; }); },
       "options.allocate: expected an address"},
      // Options of no version, of less than their first member, of a later version.
      {error_site::attribute_value, [](C&) { return create_with([](repdl_context_options& o) { o.size = 0; }); },
       "options.size: expected sizeof(repdl_context_options), at most 72 in version "},
      {error_site::attribute_value, [](C&) { return create_with([](repdl_context_options& o) { o.size = 7; }); },
       "got 7"},
      {error_site::attribute_value, [](C&) { return create_with([](repdl_context_options& o) { o.size += 1; }); },
       "got 73"},
      {error_site::attribute_value, [](C&) { return create_with([](repdl_context_options& o) { o.size = SIZE_MAX; }); },
       "got 18446744073709551615"},
      {error_site::output_count, [](C& c) { return infer_exp(c, 1); }, "index: expected 0 to 0, got 1"},
      {error_site::output_count, [](C& c) { return infer_exp(c, -1); }, "index: expected 0 to 0, got -1"},
  };
  return cases;
}

}  // namespace

TEST_SUITE_BEGIN("portable");

TEST_CASE("errors through C++: site, operation, argument, message; outputs untouched") {
  operands o;
  for (const cpp_case& c : cpp_cases(o)) {
    INFO(info_of(c.site).name, " ", c.op, " ", c.argument);
    bool thrown = false;
    try {
      c.provoke();
    } catch (const error& e) {
      thrown = true;
      CHECK(info_of(e.site()).name == info_of(c.site).name);
      CHECK(e.op() == c.op);
      CHECK(e.argument() == c.argument);
      const std::string message = e.what();
      CHECK(message.starts_with(c.op + ": " + c.argument + ": expected "));
      CHECK(message.find(", got ") != std::string::npos);
      CHECK(message.find('\n') == std::string::npos);
      const bool right_class =
          info_of(c.site).code == status::invalid_argument ? dynamic_cast<const invalid_argument*>(&e) != nullptr
          : info_of(c.site).code == status::unsupported    ? dynamic_cast<const unsupported*>(&e) != nullptr
                                                           : dynamic_cast<const machine_error*>(&e) != nullptr;
      CHECK(right_class);
    }
    CHECK(thrown);
    for (const float v : o.out) REQUIRE(v == untouched);
  }
}

TEST_CASE("errors: what was expected and what came, in words") {
  operands o;
  const auto message = [](auto&& provoke) -> std::string {
    try {
      provoke();
    } catch (const error& e) {
      return e.what();
    }
    return "no error";
  };
  CHECK(message([&] { parse_attribute(o.op("adamw"), "step", "9223372036854775808"); }) ==
        "adamw: step: expected an integer below 2^63, got 9223372036854775808");
  CHECK(message([&] {
          infer(o.op("sgd"), std::vector{o.vx({2}), o.vx({2}), o.vx({2})}, {{"lr", 0.1}});
        }) == "sgd: inputs: expected 4, that is param, grad for each tensor, got 3");
  CHECK(message([&] {
          conv2d(o.ctx, o.vx({1, 4, 2, 2}), o.vy({2, 3, 1, 1}), o.vo({1, 2, 2, 2}), {.groups = 2});
        }) == "conv2d: w: expected 2 input channels (4 of x over 2 groups), got 3");
  CHECK(message([&] {
          conv2d_backward_x(o.ctx, o.vx({1, 2, 1, 1}), o.vy({3, 1, 1, 1}), o.vo({1, 1, 1, 1}));
        }) == "conv2d_grad_input: g: expected 3 channels, one for each output channel of w, got 2");
  CHECK(message([&] {
          conv2d_backward_w(o.ctx, o.vx({1, 1, 2, 2}), o.vy({1, 1, 2, 2}), o.vo({1, 1, 1, 1}), {.bias = o.vx({1})});
        }) == "conv2d_grad_weight: bias: expected none, got one of shape [1]");
  CHECK(message([&] {
          call(o.ctx, o.op("conv2d_grad_input"), std::vector{o.vx({1}), o.vx({1}), o.vx({1})}, std::vector{o.vo({1})},
               {{"size", std::vector<std::int64_t>{1, 1}}});
        }) == "conv2d_grad_input: inputs: expected 2 (g, w), got 3");
  CHECK(message([&] {
          infer(o.op("convert"), std::vector{o.vx({2})}, {{"dtype", std::string("f8")}});
        }) == "convert: dtype: expected f16, bf16, f32, f64, i64, bool, i32, f8_e4m3fn or f8_e5m2, got 'f8'");
  CHECK(message([&] {
          infer(o.op("uniform"), {}, {{"shape", std::vector<std::int64_t>{2}}, {"dtype", std::string("f8")}});
        }) == "uniform: dtype: expected f16, bf16, f32 or f64, got 'f8'");
  CHECK(message([&] {
          infer(o.op("permutation"), {}, {{"n", (std::int64_t{1} << 59) + 1}});
        }) == "permutation: n: expected a number in [0, 2^59], got 576460752303423489");
}

// A size 0 makes the product of the sizes 0, whatever the others are.
TEST_CASE("shapes with a 0 and huge sizes have no elements") {
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t big = std::int64_t{1} << 40;
  const float* const none = nullptr;
  for (const sizes& shape :
       {sizes{0, huge, huge}, sizes{huge, 0, huge}, sizes{huge, huge, 0}, sizes{big, 0, big, big}}) {
    const const_tensor_view v(none, shape);
    CHECK(v.count() == 0);
    CHECK(v.is_contiguous());
    CHECK(v.reshape({huge, 0}).count() == 0);
    CHECK(v.transpose(0, 1).slice(2, 0, 0, 7).count() == 0);
    CHECK(infer(*find("uniform"), {}, {{"shape", std::vector<std::int64_t>(shape.begin(), shape.end())}})[0].shape ==
          shape);
    CHECK(infer(*find("exp"), std::vector{v})[0].shape == shape);
    for (const int threads : {1, 3}) {
      context ctx({.threads = threads});
      float out = untouched;
      sum(ctx, v, tensor_view(&out, {}));
      CHECK((out == 0 && !std::signbit(out)));
      mean(ctx, v, tensor_view(&out, {}));
      CHECK(std::isnan(out));
      logsumexp(ctx, v, tensor_view(&out, {}));
      CHECK(out == -std::numeric_limits<float>::infinity());
      exp(ctx, v, tensor_view(static_cast<float*>(nullptr), shape));
    }
  }
  // Kept and reduced axes, the classes of a loss.
  context ctx;
  float out[2] = {untouched, untouched};
  sum(ctx, const_tensor_view(none, {2, huge, 0, huge}), tensor_view(out, {2}), {.axis = sizes{1, 2, 3}});
  CHECK((out[0] == 0 && out[1] == 0));
  const const_tensor_view targets(static_cast<const std::int64_t*>(nullptr), sizes{0, huge, big});
  cross_entropy(ctx, const_tensor_view(none, {0, 3, huge, big}), targets, tensor_view(out, {}),
                {.reduction = reduction::sum});
  CHECK(out[0] == 0);
}

TEST_CASE("errors through the C ABI: status, site, message; outputs untouched") {
  for (const c_case& c : c_cases()) {
    c_operands o;
    INFO(info_of(c.site).name);
    const repdl_status s = c.provoke(o);
    CHECK(s == static_cast<repdl_status>(info_of(c.site).code));
    CHECK(repdl_last_error_site() == info_of(c.site).name);
    CHECK(std::strstr(repdl_last_error(), c.message.c_str()) != nullptr);
    for (const float v : o.out) REQUIRE(v == untouched);
  }
}

TEST_CASE("errors of this machine") {
  for (const isa_info& i : instruction_sets()) {
    if (i.available) continue;
    CHECK_THROWS_AS(context(context_options{.isa = i.name}), unsupported);
  }
  std::string why;
  bool has_gpu = false;
  for (const device_info& d : devices(&why)) has_gpu = has_gpu || d.where.kind == device_kind::cuda;
  if (!has_gpu) {
    MESSAGE("no GPU: " << why);
    CHECK(!why.empty());
    CHECK_THROWS_AS(context(context_options{.where = {device_kind::cuda, 0}}), error);
  }
}

// By the cases above, each of which fails if it does not produce its site.
TEST_CASE("every error site is produced somewhere") {
  CHECK(error_site_count() >= 50);
  std::set<error_site> produced = elsewhere;
  operands o;
  for (const cpp_case& c : cpp_cases(o)) produced.insert(c.site);
  for (const c_case& c : c_cases()) produced.insert(c.site);
  int missing = 0;
  for (int i = 0; i < error_site_count(); ++i) {
    const auto site = static_cast<error_site>(i);
    if (produced.contains(site)) continue;
    ++missing;
    MESSAGE("never produced: " << info_of(site).name);
  }
  CHECK(missing == 0);
}

TEST_SUITE_END();
