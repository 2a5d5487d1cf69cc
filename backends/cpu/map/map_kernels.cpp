// Elementwise inner loops: the registry's bodies, vectorised by the compiler. Compiled once per instruction set.
#include "backends/cpu/map/map.hpp"
#include "librepdl/ops/bodies.hpp"
#include "librepdl/tensor.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

template <class Op>
void loop(const void* const* in, void* out, std::int64_t n) {
  auto* y = static_cast<float*>(out);
  const auto* x0 = static_cast<const float*>(in[0]);
  if constexpr (Op::arity == 1) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = num::body<Op>::eval(x0[i]);
  } else if constexpr (Op::arity == 2) {
    const auto* x1 = static_cast<const float*>(in[1]);
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = num::body<Op>::eval(x0[i], x1[i]);
  } else {
    const auto* x1 = static_cast<const float*>(in[1]);
    const auto* x2 = static_cast<const float*>(in[2]);
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = num::body<Op>::eval(x0[i], x1[i], x2[i]);
  }
}

template <class From, class To>
void convert_loop(const void* const* in, void* out, std::int64_t n) {
  const auto* x = static_cast<const From*>(in[0]);
  auto* y = static_cast<To*>(out);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = num::convert_body<To, From>::eval(x[i]);
}

constexpr map_kernels make_table() {
  map_kernels t{};
  ops::for_each_elementwise([&]<class Op>() { t.elementwise[static_cast<int>(Op::id)] = loop<Op>; });
  const auto row = [&]<class From>(From, map_kernels::loop* to) {
    to[0] = convert_loop<From, f16>;
    to[1] = convert_loop<From, bf16>;
    to[2] = convert_loop<From, float>;
    to[3] = convert_loop<From, double>;
  };
  row(f16{}, t.convert[0]);
  row(bf16{}, t.convert[1]);
  row(float{}, t.convert[2]);
  row(double{}, t.convert[3]);
  return t;
}

}  // namespace

constinit const map_kernels map_table = make_table();

}  // namespace repdl::cpu::REPDL_ISA
