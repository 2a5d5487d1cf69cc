// nvcc 13.0 and 13.1 make this kernel read the wrong array from count = 4 on: nvcc-parameter-loop.md.
//   its PTX  nvcc -std=c++20 -arch=compute_90 -ptx nvcc-parameter-loop.cu
//   a GPU    nvcc -std=c++20 -arch=sm_90 nvcc-parameter-loop.cu && ./a.out
//   the CPU  g++ -std=c++20 -x c++ -fsanitize=undefined,address nvcc-parameter-loop.cu && ./a.out
// -DUNROLLED: the same sums by a loop that is compiled right.
#include <cstdint>
#include <cstdio>

#ifndef __CUDACC__
#define __host__
#define __device__
#endif

struct table {
  std::int32_t count;
  std::uint64_t a[8], b[8], c[8];
};
struct sums {
  std::uint64_t b, c;
  constexpr bool operator==(const sums&) const = default;
};

__host__ __device__ constexpr sums walk(const table& t) {
  std::uint64_t x = 1, b = 0, c = 0;
#ifdef UNROLLED
#pragma unroll
  for (int i = 7; i >= 0; --i) {
    if (i >= t.count) continue;
#else
  for (int i = t.count - 1; i >= 0; --i) {
#endif
    if (i > 0) x += t.a[i];
    c += x * t.c[i];
    b += x * t.b[i];
  }
  return {b, c};
}

constexpr table example(int count) {
  table t{count, {}, {}, {}};
  for (int i = 0; i < count; ++i) t.a[i] = 1, t.b[i] = 10, t.c[i] = 1000;
  return t;
}
// x is 2, 3, ..., count, and count once more.
constexpr sums expected(std::uint64_t count) {
  const std::uint64_t x = count * (count + 1) / 2 - 1 + count;
  return {10 * x, 1000 * x};
}
// An undefined operation is not a constant expression: for these values there is none.
static_assert(walk(example(4)) == expected(4) && walk(example(5)) == expected(5) && walk(example(6)) == expected(6) &&
              walk(example(7)) == expected(7) && walk(example(8)) == expected(8));

#ifdef __CUDACC__
__global__ void kernel(const table t, sums* result) { *result = walk(t); }
#endif

int main() {
  int wrong = 0;
  for (int count = 1; count <= 8; ++count) {
    sums got{};
#ifdef __CUDACC__
    sums* result;
    if (cudaMallocManaged(&result, sizeof(sums)) != cudaSuccess) return 2;
    kernel<<<1, 1>>>(example(count), result);
    if (cudaDeviceSynchronize() != cudaSuccess) return 2;
    got = *result;
    cudaFree(result);
#else
    volatile int at_run_time = count;
    got = walk(example(at_run_time));
#endif
    wrong += got != expected(static_cast<std::uint64_t>(count));
    std::printf("count %d: sums %llu, %llu%s\n", count, static_cast<unsigned long long>(got.b),
                static_cast<unsigned long long>(got.c),
                got == expected(static_cast<std::uint64_t>(count)) ? "" : ", WRONG");
  }
  return wrong != 0;
}
