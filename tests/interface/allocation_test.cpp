// Calls of a few operands allocate nothing: the heap is counted.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "librepdl/dynamic.hpp"
#include "librepdl/librepdl.hpp"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define REPDL_SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define REPDL_SANITIZED
#endif

// A sanitizer has an operator new of its own.
#ifndef REPDL_SANITIZED
namespace {

std::atomic<std::int64_t> allocations{0};

void* counted(std::size_t bytes) {
  ++allocations;
  if (void* p = std::malloc(bytes == 0 ? 1 : bytes)) return p;
  throw std::bad_alloc();
}
void* counted(std::size_t bytes, std::align_val_t alignment) {
  ++allocations;
  const auto a = static_cast<std::size_t>(alignment);
  if (void* p = std::aligned_alloc(a, (bytes + a - 1) / a * a + (bytes == 0 ? a : 0))) return p;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
void* operator new(std::size_t bytes, std::align_val_t a) { return counted(bytes, a); }
void* operator new[](std::size_t bytes, std::align_val_t a) { return counted(bytes, a); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

TEST_SUITE_BEGIN("portable");

TEST_CASE("a call of at most eight operands allocates nothing") {
  using namespace repdl;
  context ctx({.threads = 1});
  std::vector<float> x(4096, 0.5f), y(4096, 0.25f), out(4096);
  std::vector<std::int64_t> index(64), target(8, 3);
  generator g;
  const auto in = [&](sizes shape) { return const_tensor_view(x.data(), shape); };
  const auto other = [&](sizes shape) { return const_tensor_view(y.data(), shape); };
  const auto to = [&](sizes shape) { return tensor_view(out.data(), shape); };
  const sgd_tensor momentum{to({16}), other({16}), tensor_view(x.data(), {16})};
  const adamw_tensor moments{to({16}), other({16}), tensor_view(x.data(), {16}), tensor_view(y.data() + 64, {16})};
  const op_info& dynamic_add = *find("add");
  const const_tensor_view both[] = {in({8}), other({8})};
  const tensor_view sum_of_both = to({8});

  const std::pair<const char*, std::function<void()>> calls[] = {
      {"exp, one element", [&] { exp(ctx, in({1}), to({1})); }},
      {"add", [&] { add(ctx, in({8}), other({8}), to({8})); }},
      {"add, broadcast",
       [&] {
         add(ctx, in({8, 1}), other({4}), to({8, 4}));
       }},
      {"fma, eight axes, transposed",
       [&] {
         const sizes shape{2, 3, 2, 1, 2, 3, 2, 2};
         fma(ctx, in(shape).transpose(0, 7), other({2}), in({1}), to({2, 3, 2, 1, 2, 3, 2, 2}).transpose(6, 7));
       }},
      {"convert", [&] { convert(ctx, in({16}), tensor_view(static_cast<void*>(out.data()), dtype::f64, sizes{16})); }},
      {"sum",
       [&] {
         sum(ctx, in({8, 9}), to({8}), {.axis = 1});
       }},
      {"argmax",
       [&] {
         argmax(ctx, in({8, 9}), tensor_view(index.data(), {8}), {.axis = 1});
       }},
      {"dot", [&] { dot(ctx, in({9}), other({9}), to({})); }},
      {"matmul",
       [&] {
         matmul(ctx, in({4, 4}), other({4, 4}), to({4, 4}), {.bias = in({4})});
       }},
      {"matmul, fma_chain",
       [&] {
         matmul(ctx, in({4, 4}), other({4, 4}), to({4, 4}), {.accumulate = accumulate::fma_chain});
       }},
      {"conv2d",
       [&] {
         conv2d(ctx, in({1, 2, 6, 6}), other({3, 2, 3, 3}), to({1, 3, 4, 4}), {.bias = in({3})});
       }},
      {"conv2d_grad_input",
       [&] {
         conv2d_backward_x(ctx, in({1, 3, 4, 4}), other({3, 2, 3, 3}), to({1, 2, 6, 6}));
       }},
      {"conv2d_grad_weight",
       [&] {
         conv2d_backward_w(ctx, in({1, 3, 4, 4}), other({1, 2, 6, 6}), to({3, 2, 3, 3}));
       }},
      {"conv2d_grad_bias",
       [&] {
         conv2d_backward_bias(ctx, in({1, 3, 4, 4}), to({3}));
       }},
      {"max_pool2d",
       [&] {
         max_pool2d(ctx, in({1, 2, 6, 6}), to({1, 2, 3, 3}), {.kernel = {2, 2}});
       }},
      {"avg_pool2d_backward",
       [&] {
         avg_pool2d_backward(ctx, in({1, 2, 3, 3}), to({1, 2, 6, 6}), {.kernel = {2, 2}});
       }},
      {"adaptive_avg_pool2d",
       [&] {
         adaptive_avg_pool2d(ctx, in({1, 2, 7, 5}), to({1, 2, 3, 3}), {.size = {3, 3}});
       }},
      {"softmax",
       [&] {
         softmax(ctx, in({4, 7}), to({4, 7}));
       }},
      {"logsumexp",
       [&] {
         logsumexp(ctx, in({4, 7}), to({4}), {.axis = 1});
       }},
      {"layer_norm",
       [&] {
         layer_norm(ctx, in({4, 7}), to({4, 7}), {.weight = in({7}), .bias = in({7})});
       }},
      {"batch_norm",
       [&] {
         batch_norm(ctx, in({4, 7}), to({4, 7}));
       }},
      {"batch_norm_running",
       [&] {
         batch_norm_running(ctx, in({4, 7}), in({7}), in({7}), to({4, 7}), {});
       }},
      {"batch_norm_inference",
       [&] {
         batch_norm_inference(ctx, in({4, 7}), in({7}), in({7}), to({4, 7}), {.weight = in({7}), .bias = in({7})});
       }},
      {"var_mean",
       [&] {
         var_mean(ctx, in({4, 7}), to({4}), {}, {.axis = 1});
       }},
      {"layer_norm_backward",
       [&] {
         layer_norm_backward(ctx, in({4, 7}), in({4, 7}), in({4}), in({4}), to({4, 7}), {.weight = in({7})});
       }},
      {"layer_norm_weight_backward",
       [&] {
         layer_norm_backward_weight(ctx, in({4, 7}), in({4, 7}), in({4}), in({4}), to({7}));
       }},
      {"cross_entropy",
       [&] {
         cross_entropy(ctx, in({8, 7}), const_tensor_view(target.data(), {8}), to({}));
       }},
      {"uniform", [&] { uniform(ctx, g, to({64})); }},
      {"normal", [&] { normal(ctx, g, to({64})); }},
      {"exponential", [&] { exponential(ctx, g, to({64})); }},
      {"multinomial", [&] { multinomial(ctx, g, in({64}), index, {.replacement = true}); }},
      {"cumsum",
       [&] {
         cumsum(ctx, in({4, 7}), to({4, 7}));
       }},
      {"prod",
       [&] {
         prod(ctx, in({4, 7}), to({4}), {.axis = 1});
       }},
      {"logcumsumexp",
       [&] {
         logcumsumexp(ctx, in({4, 7}), to({4, 7}));
       }},
      {"ldexp", [&] { ldexp(ctx, in({8}), const_tensor_view(target.data(), {8}), to({8})); }},
      {"attention",
       [&] {
         attention(ctx, in({2, 2, 4}), other({2, 2, 4}), in({2, 2, 4}), to({2, 2, 4}), {.causal = true}, in({2, 2}),
                   in({2}), tensor_view(out.data() + 64, {2, 2}));
       }},
      {"permutation", [&] { permutation(ctx, g, tensor_view(index.data(), {64})); }},
      {"dropout", [&] { dropout(ctx, g, in({64}), to({64}), 0.5); }},
      {"sgd",
       [&] {
         sgd(ctx, {&momentum, 1}, {.momentum = 0.5});
       }},
      {"adamw",
       [&] {
         adamw(ctx, {&moments, 1}, {});
       }},
      {"total_norm",
       [&] {
         total_norm(ctx, {both, 1}, to({}));
       }},
      {"clip_grad_norm",
       [&] {
         clip_grad_norm(ctx, {both, 1}, {&sum_of_both, 1}, {.max_norm = 0.5}, tensor_view(out.data() + 8, sizes{}));
       }},
      {"add, dynamic",
       [&] {
         call(ctx, dynamic_add, both, {&sum_of_both, 1}, {});
       }},
  };
  for (const auto& [name, f] : calls) {
    f();  // the context's workspace grows, tables are made
    const std::int64_t before = allocations;
    f();
    const std::int64_t made = allocations - before;
    CHECK_MESSAGE(made == 0, std::string(name));
  }
}
#endif

TEST_SUITE_END();
