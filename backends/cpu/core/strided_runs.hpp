// Walking over a part of a strided tensor, run by run of its innermost axis.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/core/stop.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cpu {

// Calls use(address of a run's first element, stride, elements before the run, length) for the elements first .. first
// + n - 1, row-major, of a tensor whose space (a plan with rank and shape) is walked with these strides.
template <class Space, class T, class Use>
void for_runs(const Space& space, const plan::axes& stride, T* data, std::int64_t first, std::int64_t n, Use&& use) {
  if (space.rank == 0) return use(data, std::int64_t{0}, std::int64_t{0}, n);
  const auto last = static_cast<std::size_t>(space.rank - 1);
  for (std::int64_t done = 0; done < n;) {
    std::int64_t rest = first + done;
    std::int64_t offset = 0;
    for (std::size_t a = last + 1; a-- > 0;) {
      offset += rest % space.shape[a] * stride[a];
      rest /= space.shape[a];
    }
    const std::int64_t run = std::min(n - done, space.shape[last] - (first + done) % space.shape[last]);
    use(data + offset, stride[last], done, run);
    done += run;
  }
}

// The address of element `first` if the n elements from there on are side by side, else null.
template <class Space, class T>
T* in_place(const Space& space, const plan::axes& stride, T* data, std::int64_t first, std::int64_t n) {
  T* address = nullptr;
  for_runs(space, stride, data, first, n, [&](T* at, std::int64_t step, std::int64_t, std::int64_t run) {
    if (run == n && (step == 1 || n == 1)) address = at;
  });
  return address;
}
// The same of what is read: elements that are not side by side are gathered.
template <class Space, class T>
const T* side_by_side(const Space& space, const plan::axes& stride, const T* data, std::int64_t first, std::int64_t n,
                      T* buffer) {
  const T* const address = in_place(space, stride, data, first, n);
  if (address != nullptr) return address;
  for_runs(space, stride, data, first, n, [&](const T* at, std::int64_t step, std::int64_t done, std::int64_t run) {
    for (std::int64_t i = 0; i < run; ++i) buffer[done + i] = at[i * step];
  });
  return buffer;
}
template <class Space, class T>
void scatter_to(const Space& space, const plan::axes& stride, const T* buffer, T* data, std::int64_t first,
                std::int64_t n) {
  for_runs(space, stride, data, first, n, [&](T* at, std::int64_t step, std::int64_t done, std::int64_t run) {
    for (std::int64_t i = 0; i < run; ++i) at[i * step] = buffer[done + i];
  });
}

// Lists of tensors in blocks, none of which crosses tensors.
template <class Tensors>
std::int64_t blocks_of(const Tensors& tensors, std::int64_t block) {
  std::int64_t total = 0;
  for (const auto& t : tensors) total += (t.count + block - 1) / block;
  return total;
}
// Calls use(tensor, first element, elements) for blocks begin .. end - 1, until the call is to end.
template <class Tensors, class Use>
void for_blocks_of(const Tensors& tensors, std::int64_t block, std::int64_t begin, std::int64_t end, const Use& use) {
  std::int64_t before = 0;  // blocks of the tensors so far
  for (const auto& t : tensors) {
    const std::int64_t blocks = (t.count + block - 1) / block;
    for (std::int64_t b = std::max(begin, before); b < std::min(end, before + blocks) && !stopped(); ++b) {
      const std::int64_t first = (b - before) * block;
      use(t, first, std::min(block, t.count - first));
    }
    before += blocks;
  }
}

}  // namespace repdl::cpu
