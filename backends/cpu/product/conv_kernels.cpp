// Convolution and its gradients as blocked products (conv.hpp). Compiled once per instruction set.
#include "backends/cpu/product/conv.hpp"
#include "backends/cpu/product/conv_direct.hpp"
#include "backends/cpu/product/conv_loaders.hpp"
#include "backends/cpu/product/gemm_loops.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

template <class Engine>
constexpr conv_kernels::orientations both = {gemm<Engine, conv_problem<false>>::table(),
                                             gemm<Engine, conv_problem<true>>::table()};

}  // namespace

extern const conv_kernels conv_table = {both<exact_engine>,
                                        both<chain_engine>,
                                        {direct_band<exact_engine, 1>, direct_band<exact_engine, 2>,
                                         direct_band<exact_engine, 3>, direct_band<exact_engine, 4>},
                                        {direct_band<chain_engine, 1>, direct_band<chain_engine, 2>,
                                         direct_band<chain_engine, 3>, direct_band<chain_engine, 4>},
                                        direct_taps};

}  // namespace repdl::cpu::REPDL_ISA
