// The convolution kernels of one instruction set, and what conv.cpp (compiled once) tells them.
//
// A convolution and both of its gradients are the same product: for every group
//     out(channel, site) = sum over terms of dense(channel, term) * gathered(site, term)
// where `gathered` is a tensor read through windows: site and term have four axes each, the address is affine in all
// eight indices, and so are two coordinates, y and x; a pair (site, term) is present iff 0 <= y < height and 0 <= x <
// width. Absent pairs are no terms of the sum.
//     the result       dense = kernel, gathered = image;  site = (n, od, oh, ow),    term = (c, kd, kh, kw)
//     to the weight    dense = result, gathered = image;  site = (c, kd, kh, kw),    term = (n, od, oh, ow)
//     to the input     dense = kernel, gathered = result; site = (n, id, ih, iw),    term = (o, kd, kh, kw), in one phase of
//                      the strides: the image pixels with (ih + before) mod stride = ph, (iw + before) mod stride = pw
//                      meet only the kernel rows with r * dilation mod stride = ph, an arithmetic progression,
//                      and likewise columns.
// Depth has no coordinate: there is a product for each run of sites in depth that have the same taps (to the weight: of taps that meet the
// same windows), and between those no pair is absent. Terms are in the contract's order (section 5), row-major in the four axes.
#pragma once

#include "backends/cpu/core/families.hpp"
#include "backends/cpu/product/gemm.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cpu {

struct conv_axis {
  std::int64_t size;
  std::int64_t gathered;  // stride in the gathered tensor
  std::int64_t other;     // of a site axis: stride in the output; of a term axis: in dense
  std::int64_t y, x;      // how far a step moves the coordinates
};

inline constexpr int conv_rank = 4;  // axes of sites, and of terms

struct conv_product {
  conv_axis site[conv_rank];
  conv_axis term[conv_rank];
  std::int64_t groups, channels;
  const void* dense;
  std::int64_t dense_first;  // of channel 0 and term 0
  std::int64_t dense_group, dense_channel;
  bool dense_line;  // the last axis' `other` alone leads from one term to the next, across all axes
  const void* gathered;
  std::int64_t gathered_group;
  std::int64_t origin;  // the address of site 0, term 0, relative to `gathered`; it may be absent
  std::int64_t y, x;    // its coordinates
  std::int64_t height, width;
  std::int64_t low_y, high_y, low_x, high_x;  // the extremes of the terms' part of the coordinates
  bool gather_terms;                          // along terms, rather than along sites
  void* out;
  std::int64_t out_first;  // of channel 0 and site 0
  std::int64_t out_group, out_channel;
  const void* bias;  // one per channel, or null
  std::int64_t bias_group, bias_channel;

  std::int64_t sites() const noexcept { return count(site); }
  std::int64_t terms() const noexcept { return count(term); }

 private:
  static std::int64_t count(const conv_axis* axes) noexcept {
    return axes[0].size * axes[1].size * axes[2].size * axes[3].size;
  }
};

// Groups with few channels leave a product's tiles empty: they are computed directly. The gathered tensor is copied
// plane by plane, with zeros where it is absent, into lines in which neighbours along the last axis of the vectors are
// neighbours in memory. A product's axes are those of the table above, unmerged: `planes` (y, x) of the gathered tensor
// are indexed by the first two axes of sites and of terms, whose third axes move y, and the last ones x.
struct conv_planes {
  std::int64_t rows;    // of the output (conv2d_grad_weight: of the terms) in one band of a plane
  std::int64_t bands;   // of a plane
  std::int64_t copied;  // the most rows of a plane that a band needs
  std::int64_t lines;   // of a row: line q has x = first_x + q + j * step
  std::int64_t length;  // of a line, in numbers, with `slack` of them to read beyond
  std::int64_t first_x, step;
  std::size_t scratch_bytes;  // of one worker
  static constexpr std::int64_t slack = 64;
  static constexpr std::int64_t most_channels = 4;
};

// Their operands are a conv_product. A row of the product is a channel, and a column a site, or the other way round.
struct conv_kernels {
  // A band of output rows of plane n (a sample, and a place in depth), all channels of the group.
  using band_function = tier_counts (*)(const conv_product&, const conv_planes&, tier first_tier, std::int64_t group,
                                        std::int64_t n, std::int64_t band, void* scratch);
  // The weight gradient of one plane of the kernel (an input channel, and a place in depth) and all output channels of the group.
  using taps_function = tier_counts (*)(const conv_product&, const conv_planes&, tier first_tier, std::int64_t group,
                                        std::int64_t plane, void* scratch);
  // Of one format, and one kind of sums.
  struct loops {
    gemm_kernels channels_by_sites;
    gemm_kernels sites_by_channels;
    band_function band[conv_planes::most_channels];  // [channels - 1]; null: none
    taps_function taps;                              // null: none
  };
  loops f16, bf16, f32, f64, fma_chain;

  const loops& of(const plan::conv_plan& p) const noexcept {
    if (p.accumulate == plan::accumulate_kind::fma_chain) return fma_chain;
    switch (p.type) {
      case dtype::f16:
        return f16;
      case dtype::bf16:
        return bf16;
      case dtype::f32:
        return f32;
      case dtype::f64:
        return f64;
      case dtype::i64:
      case dtype::boolean:
      case dtype::i32:
      case dtype::f8_e4m3fn:
      case dtype::f8_e5m2:
        break;
    }
    __builtin_unreachable();
  }
};

}  // namespace repdl::cpu
