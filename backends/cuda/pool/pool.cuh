// What the pooling kernels are given: plan::pool_plan without the standard library's types.
#pragma once

#include "backends/cuda/core/drivers.hpp"

namespace repdl::cuda {

struct pool_geometry {
  dtype type;
  std::int64_t n, c;
  plan::window_axis axis[3];
  std::int64_t padded[3];
  bool adaptive;
  bool count_include_pad;
  std::int64_t divisor;
  bool negated;
  std::int64_t common;
  const void* x;
  const void* g;
  void* out;
  std::int64_t* indices;
  std::int64_t image_stride[5], pooled_stride[5], out_stride[5], indices_stride[5];

  std::int64_t elements;  // of the output
  bool channels_inside;   // neighbouring output elements are neighbouring channels
  double force;           // 0, or +inf: binary64 decides nothing

  // Whether every position, and every product of two counts, fits 32 bits.
  bool small() const {
    constexpr std::int64_t limit = std::int64_t{1} << 30;
    const auto fits = [this](const plan::window_axis& a) {
      return a.image < limit && a.windows < limit && a.kernel < limit && a.stride < limit && a.dilation < limit &&
             a.before < limit && a.windows * a.stride < limit && a.kernel * a.dilation < limit &&
             (!adaptive || (a.image + 1) * (a.windows + 1) < limit);
    };
    return elements < limit && fits(axis[0]) && fits(axis[1]) && fits(axis[2]) &&
           axis[0].kernel * axis[1].kernel * axis[2].kernel < limit;
  }
};

// Takes a kernel for the shapes that networks use; false: this is not one of them.
bool prepare_fast(ops::op_id, const pool_geometry&, const job&, dispatch::task&);

}  // namespace repdl::cuda
