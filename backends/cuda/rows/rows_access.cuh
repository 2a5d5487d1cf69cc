// Four numbers that lie side by side, in one access.
#pragma once

#include "librepdl/num/format.hpp"

namespace repdl::cuda {

template <class T>
struct alignas(4 * sizeof(T)) four_of {
  T x[4];
};
template <class T>
__device__ inline float4 widened(const four_of<T>& v) {
  return {num::widen_to_float(v.x[0]), num::widen_to_float(v.x[1]), num::widen_to_float(v.x[2]),
          num::widen_to_float(v.x[3])};
}
// Four that lie side by side, at a multiple of so many elements, of what no kernel of rows writes. In one access, which the compiler does
// not make of two ways to an address.
template <class T>
__device__ inline float4 four_at(const T* a) {
  if constexpr (sizeof(T) == 4) {
    float4 v;
    asm("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(a));
    return v;
  } else {
    uint2 v;
    asm("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(a));
    return widened(__builtin_bit_cast(four_of<T>, v));
  }
}
template <class T>
__device__ inline void set_four(T* a, const four_of<T>& f) {
  if constexpr (sizeof(T) == 4) {
    const auto v = __builtin_bit_cast(float4, f);
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(a), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
                 : "memory");
  } else {
    const auto v = __builtin_bit_cast(uint2, f);
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(a), "r"(v.x), "r"(v.y) : "memory");
  }
}
}  // namespace repdl::cuda
