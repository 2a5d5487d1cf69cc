// The fingerprints that program.cpp must print, from the oracle alone.
#include <cstdio>
#include <string>

#include "librepdl/librepdl.hpp"
#include "reference/array.hpp"
#include "reference/elementwise/elementwise.hpp"
#include "reference/structured/structured.hpp"
#include "samples.hpp"

namespace {

using namespace repdl;
using reference::array;
using reference::shape_list;

context& host() {
  static context ctx;
  return ctx;
}

void print(const std::string& name, const array& a) {
  const const_tensor_view views[] = {
      const_tensor_view(a.bytes.data(), a.type, sizes(std::span<const std::int64_t>(a.shape)))};
  std::printf("%s %s\n", name.c_str(), fingerprint(host(), views).c_str());
}

// f(i) for all elements.
template <class F>
array map(F&& f) {
  array out(dtype::f32, {static_cast<std::int64_t>(samples::count)});
  for (std::size_t i = 0; i < samples::count; ++i) out.set(i, f(i));
  return out;
}

array f32(shape_list shape, const samples::patterns& p) { return array(dtype::f32, std::move(shape), p); }

}  // namespace

int main() {
  const samples::patterns x = samples::x(), y = samples::y(), moderate = samples::moderate();
  for (const char* op : samples::unary) {
    print(op, map([&](std::size_t i) { return reference::evaluate(op, &x[i]); }));
    print(op + std::string(".moderate"), map([&](std::size_t i) { return reference::evaluate(op, &moderate[i]); }));
  }
  for (const char* op : samples::binary) {
    print(op, map([&](std::size_t i) {
            const std::uint32_t in[] = {x[i], y[i]};
            return reference::evaluate(op, in);
          }));
  }
  print("fma", map([&](std::size_t i) {
          const std::uint32_t in[] = {y[i], moderate[i], x[i]};
          return reference::evaluate("fma", in);
        }));
  for (const dtype to : {dtype::f16, dtype::bf16, dtype::f64}) {
    array out(to, {static_cast<std::int64_t>(samples::count)});
    for (std::size_t i = 0; i < samples::count; ++i) out.set(i, reference::convert(dtype::f32, to, x[i]));
    print("convert." + std::string(name_of(to)), out);
  }

  const array matrix = f32({samples::rows, samples::columns}, samples::terms());
  print("sum", reference::reduce(reference::reduction::sum, matrix, std::nullopt));
  print("sum.rows", reference::reduce(reference::reduction::sum, matrix, shape_list{1}));
  print("mean.columns", reference::reduce(reference::reduction::mean, matrix, shape_list{0}));
  const shape_list flat{static_cast<std::int64_t>(samples::count)};
  print("dot", reference::dot(f32(flat, y), f32(flat, moderate)));

  const array a = f32({samples::m, samples::k}, samples::a()), b = f32({samples::k, samples::n}, samples::b());
  const array bias = f32({samples::n}, samples::bias());
  print("matmul", reference::matmul(a, b, nullptr));
  print("matmul.bias", reference::matmul(a, b, &bias));
  print("matmul.fma_chain",
        reference::matmul(a, b, nullptr, {.transpose_a = false, .transpose_b = false, .fma_chain = true}));
  print("matmul.subnormal", reference::matmul(f32({samples::m, samples::k}, samples::small_a()),
                                              f32({samples::k, samples::n}, samples::small_b()), nullptr));
}
