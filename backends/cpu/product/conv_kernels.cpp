// Convolution and its gradients as blocked products (conv.hpp). Compiled once per instruction set.
#include "backends/cpu/product/conv.hpp"
#include "backends/cpu/product/conv_direct.hpp"
#include "backends/cpu/product/conv_loaders.hpp"
#include "backends/cpu/product/gemm_loops.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

template <class Engine, class T>
constexpr conv_kernels::loops blocked = {
    gemm<Engine, conv_problem<T, false>>::table(), gemm<Engine, conv_problem<T, true>>::table(), {}, nullptr};
template <class Engine, class T>
constexpr conv_kernels::loops all(conv_kernels::taps_function taps) {
  conv_kernels::loops l = blocked<Engine, T>;
  l.band[0] = direct_band<Engine, T, 1>;
  l.band[1] = direct_band<Engine, T, 2>;
  l.band[2] = direct_band<Engine, T, 3>;
  l.band[3] = direct_band<Engine, T, 4>;
  l.taps = taps;
  return l;
}

}  // namespace

extern const conv_kernels conv_table = {
    all<exact_engine, f16>(direct_taps<f16>), all<exact_engine, bf16>(direct_taps<bf16>),
    all<exact_engine, float>(direct_taps<float>), blocked<wide_engine, double>, all<chain_engine, float>(nullptr)};

}  // namespace repdl::cpu::REPDL_ISA
