// Walking over axes, in drivers and kernels: each instruction set has its own.
#pragma once

#include <cstdint>

#include "librepdl/num/platform.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cpu {
namespace REPDL_ISA {

// A position in a row-major index space together with its offset in N tensors. Rank 0 is one position; an empty space
// has none, and the walk that starts there at 0 goes nowhere.
template <int N>
class walk {
 public:
  walk(int rank, const plan::axes& shape, const plan::axes* const (&strides)[N], std::int64_t start) noexcept
      : rank_(rank), shape_(&shape) {
    for (int k = 0; k < N; ++k) stride_[k] = strides[k];
    for (int d = rank - 1; d >= 0 && start != 0; --d) {
      const auto i = static_cast<std::size_t>(d);
      index_[i] = start % shape[i];
      start /= shape[i];
      for (int k = 0; k < N; ++k) offset_[k] += index_[i] * (*stride_[k])[i];
    }
  }

  std::int64_t offset(int k) const noexcept { return offset_[k]; }
  // Positions left on the innermost axis, this one included, and the step between them.
  std::int64_t inner_left() const noexcept { return rank_ == 0 ? 1 : (*shape_)[last()] - index_[last()]; }
  std::int64_t inner_stride(int k) const noexcept { return rank_ == 0 ? 1 : (*stride_[k])[last()]; }

  // n <= inner_left(). Past the end the position is unspecified.
  void advance(std::int64_t n) noexcept {
    if (rank_ == 0) return;
    std::size_t d = last();
    index_[d] += n;
    for (int k = 0; k < N; ++k) offset_[k] += n * (*stride_[k])[d];
    for (; d > 0 && index_[d] == (*shape_)[d]; --d) {
      index_[d] = 0;
      ++index_[d - 1];
      for (int k = 0; k < N; ++k) offset_[k] += (*stride_[k])[d - 1] - (*shape_)[d] * (*stride_[k])[d];
    }
  }

 private:
  std::size_t last() const noexcept { return static_cast<std::size_t>(rank_ - 1); }

  int rank_;
  const plan::axes* shape_;
  const plan::axes* stride_[N];
  std::int64_t offset_[N] = {};
  plan::axes index_ = {};
};

}  // namespace REPDL_ISA
using REPDL_ISA::walk;
}  // namespace repdl::cpu
