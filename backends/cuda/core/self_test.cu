// Known answers on the device at hand: the floating-point rules that the proofs assume, and the observed model of the
// fp64 matrix instruction (mma.cuh). Inputs are integer-built patterns; results are compared as bits.
#include <string>

#include "backends/cuda/core/launch.cuh"
#include "backends/cuda/product/mma.cuh"
#include "librepdl/num/philox.hpp"

namespace repdl::cuda {
namespace {

constexpr int blocks = 24;
constexpr int rounds = 16;
constexpr int classes = 6;

// A binary64 number of one of six classes: narrow exponents, wide ones, short significands, powers of two, 2^-1022 ..
// 2^400 with subnormals, binary32 values.
__device__ double sample(int kind, std::uint64_t seed, std::uint64_t index) {
  const std::uint64_t w = num::permutation_key(seed, 0, index);
  const std::uint64_t sign = w & (std::uint64_t{1} << 63);
  const std::uint64_t significand = w & 0xfffffffffffffull;
  const auto around = [&](std::uint64_t low, std::uint64_t span) { return (low + (w >> 52 & 0x7ff) % span) << 52; };
  switch (kind) {
    case 0:
      return num::double_of(sign | around(1021, 4) | significand);
    case 1:
      return num::double_of(sign | around(1023 - 60, 121) | significand);
    case 2:
      return num::double_of(sign | around(1021, 4) | (significand & 0xff00000000000ull));
    case 3:
      return num::double_of(sign | around(1003, 41));
    case 4:
      return num::double_of(sign | around(0, 1424) | significand);
    default:
      return num::double_of(sign | around(1003, 41) | (significand & 0xfffffe0000000ull));
  }
}

__global__ void __launch_bounds__(32) compare_mma(unsigned* differences) {
  const int lane = lane_of_thread();
  const int g = lane / 4;
  const int t = lane % 4;
  unsigned wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    const int kind = (static_cast<int>(blockIdx.x) * rounds + round) % classes;
    const std::uint64_t seed = blockIdx.x * 1000u + static_cast<unsigned>(round);
    const auto a_at = [&](int row, int k) { return sample(kind, seed, static_cast<std::uint64_t>(row * 16 + k)); };
    const auto b_at = [&](int k, int col) {
      return sample(kind, seed, static_cast<std::uint64_t>(1024 + k * 8 + col));
    };
    double a[8];
    double b[4];
    double d[4];
    for (int j = 0; j < 4; ++j) {
      for (int h = 0; h < 2; ++h) a[2 * j + h] = a_at(g + 8 * h, 4 * j + t);
      b[j] = b_at(4 * j + t, g);
    }
    double expected[4];
    for (int i = 0; i < 4; ++i) {
      const int row = g + i / 2 * 8;
      const int col = 2 * t + i % 2;
      double s = sample(kind, seed, static_cast<std::uint64_t>(2048 + row * 8 + col));
      d[i] = s;
      for (int k = 0; k < 16; ++k) s = __fma_rn(a_at(row, k), b_at(k, col), s);
      expected[i] = s;
    }
    multiply_add(d, a, b);
    for (int i = 0; i < 4; ++i) wrong += num::bits_of(d[i]) != num::bits_of(expected[i]) ? 1u : 0u;
  }
  atomicAdd(differences, wrong);
}

// The operands come from memory so that nothing is evaluated when this is compiled.
struct known_operands {
  float third, tiny, one;
  double big, small;
};
__global__ void check_rules(const known_operands x, unsigned* failures) {
  unsigned f = 0;
  // 1/3 * 3 - 1 in binary32: 0 with two roundings, 2^-25 if contracted.
  f |= num::bits_of(x.third * 3.0f - x.one) != 0 ? 1u : 0u;
  // Subnormals are numbers.
  f |= num::bits_of(x.tiny * 0.5f) != 0x00200000u || num::bits_of(x.tiny * 0.5f + x.tiny * 0.5f) != num::bits_of(x.tiny)
           ? 2u
           : 0u;
  // Division and square root are correctly rounded.
  f |= num::bits_of(x.one / 3.0f) != 0x3eaaaaabu || num::bits_of(num::sqrt(x.third * 6.0f)) != 0x3fb504f3u ? 4u : 0u;
  // Round to nearest, ties to even, in binary64, and a fused fma.
  f |= (x.big + 1.0) - x.big != 0 || (x.big + 3.0) - x.big != 4.0 || num::fma(x.small, x.small, -1.0) == 0x1p-39 ? 8u
                                                                                                                 : 0u;
  *failures = f;
}

}  // namespace

std::string test_arithmetic(cudaStream_t stream) {
  unsigned* results = nullptr;
  check(cudaMalloc(reinterpret_cast<void**>(&results), 2 * sizeof(unsigned)), "self-test", "cudaMalloc");
  unsigned host[2] = {1, 1};
  const auto run = [&] {
    check(cudaMemsetAsync(results, 0, sizeof(host), stream), "self-test", "cudaMemsetAsync");
    compare_mma<<<blocks, 32, 0, stream>>>(results);
    check(cudaGetLastError(), "self-test", "kernel launch");
    const known_operands x{1.0f / 3.0f, 0x1p-127f, 1.0f, 0x1p53, 1.0 + 0x1p-40};
    check_rules<<<1, 1, 0, stream>>>(x, results + 1);
    check(cudaGetLastError(), "self-test", "kernel launch");
    check(cudaMemcpyAsync(host, results, sizeof(host), cudaMemcpyDeviceToHost, stream), "self-test", "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream), "self-test", "cudaStreamSynchronize");
  };
  try {
    run();
  } catch (...) {
    cudaFree(results);
    throw;
  }
  check(cudaFree(results), "self-test", "cudaFree");
  std::string what;
  if (host[0] != 0) {
    what = "the fp64 matrix instruction is not the chain of fma in " + std::to_string(host[0]) + " of " +
           std::to_string(blocks * rounds * 128) + " results";
  }
  if (host[1] != 0) what += (what.empty() ? "" : "; ") + ("floating-point rules, mask " + std::to_string(host[1]));
  return what;
}

}  // namespace repdl::cuda
