// e^d by the lanes of a warp.
#pragma once

#include "backends/cuda/core/launch.cuh"
#include "librepdl/ops/rows/exponentials.hpp"

namespace repdl::cuda {
namespace {

// 2^(j / 32), rounded to nearest.
__device__ const double powers_of_lanes[32] = {
    0x1.0000000000000p+0, 0x1.059b0d3158574p+0, 0x1.0b5586cf9890fp+0, 0x1.11301d0125b51p+0, 0x1.172b83c7d517bp+0,
    0x1.1d4873168b9aap+0, 0x1.2387a6e756238p+0, 0x1.29e9df51fdee1p+0, 0x1.306fe0a31b715p+0, 0x1.371a7373aa9cbp+0,
    0x1.3dea64c123422p+0, 0x1.44e086061892dp+0, 0x1.4bfdad5362a27p+0, 0x1.5342b569d4f82p+0, 0x1.5ab07dd485429p+0,
    0x1.6247eb03a5585p+0, 0x1.6a09e667f3bcdp+0, 0x1.71f75e8ec5f74p+0, 0x1.7a11473eb0187p+0, 0x1.82589994cce13p+0,
    0x1.8ace5422aa0dbp+0, 0x1.93737b0cdc5e5p+0, 0x1.9c49182a3f090p+0, 0x1.a5503b23e255dp+0, 0x1.ae89f995ad3adp+0,
    0x1.b7f76f2fb5e47p+0, 0x1.c199bdd85529cp+0, 0x1.cb720dcef9069p+0, 0x1.d5818dcfba487p+0, 0x1.dfc97337b9b5fp+0,
    0x1.ea4afa2a490dap+0, 0x1.f50765b6e4540p+0};
__constant__ double tail_of_lanes[] = {0x1.ffffffffdbcffp-2, 0x1.5555555543bd0p-3, 0x1.5555cf17033edp-5,
                                       0x1.111167ab00756p-7};
__constant__ double ln2_of_lanes[] = {0x1.71547652b82fep+5, 0x1.62e42fefa0000p-6, 0x1.cf79abc9e3b3ap-45};

// fast_exp where all lanes of a warp ask together, at less cost: lane j has 2^(j / 32).
//   d = k ln2 / 32 + r, |k| < 2^15, |r| < 0.0109. k ln2_1 is exact, a multiple of 2^-43, and so is d less that, as above: k = 0, or |d| >
//   2^-7. r: 2^-60. e^r - 1 - r: off by 2^-53.3 (reference/gen/rows.sollya).
//   e^d = w + w r p, w = 2^(k / 32): u for w, u for the sum, 0.8 u for the polynomial's truncation, 0.03 u for r, p and the product:
//   below 2.9 u. e^0 = 1 exactly.
struct exponential_of_lanes {
  int upper, lower;  // of 2^(j / 32), the exponent less by what k's low bits add to it

  __device__ exponential_of_lanes() {
    const int j = lane_of_thread();
    const double power = powers_of_lanes[j];
    upper = __double2hiint(power) - (j << 15);
    lower = __double2loint(power);
  }
  __device__ double operator()(double d) const {
    const double t = num::fma(d, ln2_of_lanes[0], num::exp_core::shifter);
    const double k = t - num::exp_core::shifter;
    const double r = num::fma(k, -ln2_of_lanes[2], num::fma(k, -ln2_of_lanes[1], d));
    double p = num::fma(tail_of_lanes[3], r, tail_of_lanes[2]);
    p = num::fma(p, r, tail_of_lanes[1]);
    p = num::fma(p, r, tail_of_lanes[0]);
    p = num::fma(p, r, 1.0);
    const int place = __double2loint(t);
    const int high = __shfl_sync(full_warp, upper, place) + (place << 15);
    const double w = __hiloint2double(high, __shfl_sync(full_warp, lower, place));
    return num::fma(w * r, p, w);
  }
};

}  // namespace
}  // namespace repdl::cuda
