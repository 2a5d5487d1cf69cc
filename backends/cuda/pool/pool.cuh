// What the pooling kernels are given: plan::pool_plan without the standard library's types.
#pragma once

#include "backends/cuda/core/drivers.hpp"

namespace repdl::cuda {

struct pool_geometry {
  dtype type;
  std::int64_t n, c, h, w, oh, ow, kh, kw;
  ops::pair stride, dilation;
  std::int64_t top, left;
  bool adaptive;
  bool count_include_pad;
  ops::pair padded;
  std::int64_t divisor;
  bool negated;
  std::int64_t common;
  const void* x;
  const void* g;
  void* out;
  std::int64_t* indices;
  std::int64_t image_stride[4], pooled_stride[4], out_stride[4], indices_stride[4];

  std::int64_t elements;  // of the output
  bool channels_inside;   // neighbouring output elements are neighbouring channels
  double force;           // 0, or +inf: binary64 decides nothing

  // Whether every position, and every product of two counts, fits 32 bits.
  bool small() const {
    constexpr std::int64_t limit = std::int64_t{1} << 30;
    const auto fits = [this](std::int64_t image, std::int64_t pooled, std::int64_t taps, std::int64_t step,
                             std::int64_t spread, std::int64_t before) {
      return image < limit && pooled < limit && taps < limit && step < limit && spread < limit && before < limit &&
             pooled * step < limit && taps * spread < limit && (!adaptive || (image + 1) * (pooled + 1) < limit);
    };
    return elements < limit && fits(h, oh, kh, stride.h, dilation.h, top) &&
           fits(w, ow, kw, stride.w, dilation.w, left) && kh * kw < limit;
  }
};

// Takes a kernel for the shapes that networks use; false: this is not one of them.
bool prepare_fast(ops::op_id, const pool_geometry&, const job&, dispatch::task&);

}  // namespace repdl::cuda
