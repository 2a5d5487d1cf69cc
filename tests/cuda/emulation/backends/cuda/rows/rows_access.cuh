// Four numbers that lie side by side, of emulated kernels (tests/cuda/emulation/emulation.hpp).
#pragma once

#include "librepdl/num/format.hpp"

namespace repdl::cuda {

template <class T>
struct alignas(4 * sizeof(T)) four_of {
  T x[4];
};
template <class T>
float4 widened(const four_of<T>& v) {
  return {num::widen_to_float(v.x[0]), num::widen_to_float(v.x[1]), num::widen_to_float(v.x[2]),
          num::widen_to_float(v.x[3])};
}
// They lie where a GPU could read them at once.
template <class T>
bool is_place_of_four(const T* a) {
  return reinterpret_cast<std::uintptr_t>(a) % sizeof(four_of<T>) == 0;
}
template <class T>
float4 four_at(const T* a) {
  four_of<T> v;
  if (!is_place_of_four(a)) std::abort();
  std::memcpy(&v, a, sizeof(v));
  return widened(v);
}
template <class T>
void set_four(T* a, const four_of<T>& f) {
  if (!is_place_of_four(a)) std::abort();
  std::memcpy(a, &f, sizeof(f));
}

}  // namespace repdl::cuda
