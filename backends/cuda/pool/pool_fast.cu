// Pooling of planes for the shapes that networks use: no dilation, 32-bit offsets; kernels of 2x2 and 3x3 with their loops
// unrolled; averages by positive divisors, of windows on the padded image if they count what pads it. The results are those of
// pool.cu, which takes over the elements that these kernels cannot decide.
//
//   forward                  a thread per result
//   backward, no overlap     (stride >= kernel) a thread per window, which writes all pixels of its cell
//   max backward, overlap    a block per tile of pixels: the winners of the tile's windows go to shared memory, then
//                            every pixel looks at the windows that hold it
//   average backward, overlap   a thread per pixel
#include "backends/cuda/core/divider.cuh"
#include "backends/cuda/core/launch.cuh"
#include "backends/cuda/pool/pool.cuh"
#include "librepdl/num/format.hpp"
#include "librepdl/ops/sums/pool.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = 256;

struct compact {
  pool_geometry g;
  int h, w, oh, ow, kh, kw, sh, sw, top, left, divisor;
  int image[4], pooled[4], out[4], indices[4];  // strides
  int full_weight;                              // common / (kh kw), or 0 where that is not a positive integer
  double common, reciprocal;
  divider channels, height, width;  // of what a thread index runs over

  compact(const pool_geometry& geometry, std::int64_t rows, std::int64_t columns)
      : g(geometry),
        h(static_cast<int>(g.axis[1].image)),
        w(static_cast<int>(g.axis[2].image)),
        oh(static_cast<int>(g.axis[1].windows)),
        ow(static_cast<int>(g.axis[2].windows)),
        kh(static_cast<int>(g.axis[1].kernel)),
        kw(static_cast<int>(g.axis[2].kernel)),
        sh(static_cast<int>(g.axis[1].stride)),
        sw(static_cast<int>(g.axis[2].stride)),
        top(static_cast<int>(g.axis[1].before)),
        left(static_cast<int>(g.axis[2].before)),
        divisor(static_cast<int>(g.divisor)),
        full_weight(g.common % (g.axis[1].kernel * g.axis[2].kernel) == 0
                        ? static_cast<int>(g.common / (g.axis[1].kernel * g.axis[2].kernel))
                        : 0),
        common(static_cast<double>(g.common)),
        reciprocal(1.0 / static_cast<double>(g.common)),
        channels(g.c),
        height(rows),
        width(columns) {
    for (int d = 0; d < 4; ++d) {
      const int from = d < 2 ? d : d + 1;  // without depth
      image[d] = static_cast<int>(g.image_stride[from]);
      pooled[d] = static_cast<int>(g.pooled_stride[from]);
      out[d] = static_cast<int>(g.out_stride[from]);
      indices[d] = static_cast<int>(g.indices_stride[from]);
    }
  }

  struct place {
    int n, c, y, x;
  };
  __device__ place locate(int i) const {
    place p;
    if (g.channels_inside) {
      p.c = channels.split(i);
      p.x = width.split(i);
      p.y = height.split(i);
    } else {
      p.x = width.split(i);
      p.y = height.split(i);
      p.c = channels.split(i);
    }
    p.n = i;
    return p;
  }
  __device__ int count(int oy, int ox) const {
    if (divisor != 0) return divisor;
    const int i = oy * sh - top;
    const int j = ox * sw - left;
    return max(min(i + kh, h) - max(i, 0), 0) * max(min(j + kw, w) - max(j, 0), 0);
  }
};

// max.NaN: a NaN operand gives NaN, and -0 < +0 (PTX ISA, max).
__device__ float greater(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}

// RN(s / n), s finite and exact, n an integer in [1, 2^29), r = RN(1 / n). The second approximation of the quotient is
// within an ulp of it on the side that its remainder shows: the first has an error of at most 2 ulps, so its remainder
// is exact up to a rounding of relative size 2^-50, and adding remainder * r leaves the last rounding and a few
// thousandths of an ulp. The second remainder is exact, and its sign rounds to odd.
template <class T>
__device__ T divide(double s, double n, double r) {
  const double first = s * r;
  const double q = num::fma(num::fma(-first, n, s), r, first);
  return num::narrow<T>(num::round_to_odd(q + 0.0, num::fma(-q, n, s)));
}

template <class T>
__device__ __noinline__ num::decided_value<T> average_carefully(const num::pool_volume<T, int>& p, int y, int x,
                                                                double force) {
  num::decided_value<T> c = num::pool_volume<T, int>::finish_average(p.average({0, y, x}), force, p.count({0, y, x}));
  if (!c.decided) c.value = p.exact_average({0, y, x});
  return c;
}
template <class T>
__device__ __noinline__ num::decided_value<T> max_gradient_carefully(const num::pool_volume<T, int>& p, int i, int j,
                                                                     double force) {
  num::decided_value<T> c = num::pool_volume<T, int>::finish_max_gradient(p.max_gradient({0, i, j}), force);
  if (!c.decided) c.value = p.exact_max_gradient({0, i, j});
  return c;
}
template <class T>
__device__ __noinline__ num::decided_value<T> average_gradient_carefully(const num::pool_volume<T, int>& p, int i,
                                                                         int j, double force) {
  num::decided_value<T> c = p.finish_average_gradient(p.average_gradient({0, i, j}), force);
  if (!c.decided) c.value = p.exact_average_gradient({0, i, j});
  return c;
}

__device__ void count_exact(counter* counters, std::int64_t exact) {
  if (exact == 0) return;
  count_elements(counters, tier::exact, exact);
  count_elements(counters, tier::binary64, -exact);
}

// Calls use(value) for the present taps of a window; K: its size, 0 for any.
template <int K, class T, class Use>
__device__ void for_window(const compact& p, const T* plane, int y, int x, Use&& use) {
  const int i = y * p.sh - p.top;
  const int j = x * p.sw - p.left;
  if (K != 0 && i >= 0 && j >= 0 && i + K <= p.h && j + K <= p.w) {
    const T* const first = plane + i * p.image[2] + j * p.image[3];
#pragma unroll
    for (int r = 0; r < K; ++r) {
#pragma unroll
      for (int s = 0; s < K; ++s) use(first[r * p.image[2] + s * p.image[3]], r * K + s);
    }
    return;
  }
  for (int r = max(-i, 0); r < min(p.kh, p.h - i); ++r) {
    for (int s = max(-j, 0); s < min(p.kw, p.w - j); ++s) {
      use(plane[(i + r) * p.image[2] + (j + s) * p.image[3]], r * p.kw + s);
    }
  }
}

template <class T>
__device__ T& at_place(const compact& p, const compact::place& o) {
  return static_cast<T*>(p.g.out)[o.n * p.out[0] + o.c * p.out[1] + o.y * p.out[2] + o.x * p.out[3]];
}

template <class T, int K, bool Indices>
__global__ void __launch_bounds__(threads) max_kernel(const __grid_constant__ compact p, counter* counters) {
  if (blockIdx.x == 0 && threadIdx.x == 0) count_elements(counters, tier::proved, p.g.elements);
  const auto elements = static_cast<int>(p.g.elements);
  for (int at = static_cast<int>(blockIdx.x * threads + threadIdx.x); at < elements;
       at += static_cast<int>(gridDim.x * threads)) {
    const compact::place o = p.locate(at);
    const T* const plane = static_cast<const T*>(p.g.x) + o.n * p.image[0] + o.c * p.image[1];
    if constexpr (Indices) {
      std::int32_t best = num::no_key;
      int winner = 0;
      for_window<K>(p, plane, o.y, o.x, [&](T v, int tap) {
        const std::int32_t key = num::order_key(v, num::order_max);
        winner = key > best ? tap : winner;
        best = key > best ? key : best;
      });
      at_place<T>(p, o) = num::order_value<T>(best, num::order_max);
      p.g.indices[o.n * p.indices[0] + o.c * p.indices[1] + o.y * p.indices[2] + o.x * p.indices[3]] =
          static_cast<std::int64_t>(o.y * p.sh - p.top + winner / K) * p.w + o.x * p.sw - p.left + winner % K;
    } else {
      float best = -__int_as_float(0x7f800000);
      for_window<K>(p, plane, o.y, o.x, [&](T v, int) { best = greater(best, num::widen_to_float(v)); });
      at_place<T>(p, o) = num::narrow<T>(best);
    }
  }
}

// The sum is exact where the greatest magnitude is at most 2^24 times the least one that is not 0: every term is a
// multiple of a power of two above 2^-24 least (its own last bit, or 2^-149 <= 2^-24 2^-125 for subnormal numbers), and
// K^2 <= 9 terms of at most 2^24 least are below 2^53 of those: the lattice rule (certify.hpp). If least 2^24
// overflows, the quotient of the two is below 2^24 as well. Infinities and NaN end up in the sum.
template <class T, int K>
__global__ void __launch_bounds__(threads) average_kernel(const __grid_constant__ compact p, counter* counters) {
  if (blockIdx.x == 0 && threadIdx.x == 0) count_elements(counters, tier::binary64, p.g.elements);
  const auto elements = static_cast<int>(p.g.elements);
  std::int64_t exact = 0;
  for (int at = static_cast<int>(blockIdx.x * threads + threadIdx.x); at < elements;
       at += static_cast<int>(gridDim.x * threads)) {
    const compact::place o = p.locate(at);
    double sum = 0;
    float greatest = 0;
    float least = __int_as_float(0x7f800000);
    for_window<K>(p, static_cast<const T*>(p.g.x) + o.n * p.image[0] + o.c * p.image[1], o.y, o.x, [&](T element, int) {
      const float v = num::widen_to_float(element);
      sum += static_cast<double>(v);
      const float m = fabsf(v);
      greatest = fmaxf(greatest, m);
      least = fminf(least, m == 0 ? __int_as_float(0x7f800000) : m);
    });
    const int n = p.count(o.y, o.x);
    T value;
    if (greatest <= least * 0x1p24f && n > 0 && p.g.force == 0) {
      const bool finite = sum - sum == 0;
      const double full = K * K;
      value = K == 2 && n == 4 ? num::narrow<T>((sum + 0.0) * 0.25)
              : !finite        ? num::non_finite_result<T>(sum)
              : n == K * K     ? divide<T>(sum, full, 1.0 / full)
                               : divide<T>(sum, static_cast<double>(n), 1.0 / static_cast<double>(n));
    } else {
      const auto c = average_carefully(num::volume_of<T, int>(p.g, o.n, o.c), o.y, o.x, p.g.force);
      value = c.value;
      exact += c.decided ? 0 : 1;
    }
    at_place<T>(p, o) = value;
  }
  count_exact(counters, exact);
}

// ---- backward

// The cell of window y: from its first tap to the next window's, the first and the last ones up to the image's edges.
__device__ void cell(int y, int count, int stride, int before, int size, int& begin, int& end) {
  begin = y == 0 ? 0 : min(max(y * stride - before, 0), size);
  end = y == count - 1 ? size : min(max((y + 1) * stride - before, 0), size);
}

// stride >= kernel: a pixel is in at most one window, its sum has one term.
template <class T, int K, bool Max>
__global__ void __launch_bounds__(threads)
    cell_kernel(const __grid_constant__ compact p, int windows, counter* counters) {
  if (blockIdx.x == 0 && threadIdx.x == 0) count_elements(counters, tier::binary64, p.g.elements);
  for (int at = static_cast<int>(blockIdx.x * threads + threadIdx.x); at < windows;
       at += static_cast<int>(gridDim.x * threads)) {
    const compact::place o = p.locate(at);
    const float g = num::widen_to_float(
        static_cast<const T*>(p.g.g)[o.n * p.pooled[0] + o.c * p.pooled[1] + o.y * p.pooled[2] + o.x * p.pooled[3]]);
    int winner = -1;
    T value{};
    if constexpr (Max) {
      std::int32_t best = num::no_key;
      for_window<K>(p, static_cast<const T*>(p.g.x) + o.n * p.image[0] + o.c * p.image[1], o.y, o.x, [&](T v, int tap) {
        const std::int32_t key = num::order_key(v, num::order_max);
        if (key > best) {
          best = key;
          winner = tap;
        }
      });
      value = num::narrow<T>(g + 0.0f);
    } else {
      const int n = p.count(o.y, o.x);
      const double x = static_cast<double>(g) + 0.0;
      if (n > 0) {
        value =
            x - x == 0 ? num::narrow<T>(num::divide_to_odd(x, static_cast<double>(n))) : num::non_finite_result<T>(x);
      }
    }
    int row, row_end, column, column_end;
    cell(o.y, p.oh, p.sh, p.top, p.h, row, row_end);
    cell(o.x, p.ow, p.sw, p.left, p.w, column, column_end);
    T* const out = static_cast<T*>(p.g.out) + o.n * p.out[0] + o.c * p.out[1];
    for (int i = row; i < row_end; ++i) {
      const int r = i + p.top - o.y * p.sh;
      for (int j = column; j < column_end; ++j) {
        const int s = j + p.left - o.x * p.sw;
        const bool mine = Max ? r * p.kw + s == winner && s < p.kw && s >= 0 : r >= 0 && r < p.kh && s >= 0 && s < p.kw;
        out[i * p.out[2] + j * p.out[3]] = mine ? value : T{};
      }
    }
  }
}

// The sum of one pixel, exact as long as `rounded` stays 0.
struct pixel_sum {
  double value = 0;
  double rounded = 0;
  __device__ void add(double x) {
    const num::dd s = num::two_sum(value, x);
    value = s.hi;
    rounded += fabs(s.lo);
  }
};

constexpr int tile_columns = 64, tile_rows = 16, most_windows = 2560;

// Tiles of rows x columns; planes * tiles_y * tiles_x of them.
template <class T>
__global__ void __launch_bounds__(threads)
    tile_kernel(const __grid_constant__ compact p, divider tiles_x, divider tiles_y, int tiles, counter* counters) {
  __shared__ std::uint8_t winner[most_windows];
  if (blockIdx.x == 0 && threadIdx.x == 0) count_elements(counters, tier::binary64, p.g.elements);
  std::int64_t exact = 0;
  for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += static_cast<int>(gridDim.x)) {
    int rest = tile;
    const int j0 = tiles_x.split(rest) * tile_columns;
    const int i0 = tiles_y.split(rest) * tile_rows;
    const int c = p.channels.split(rest);
    const int n = rest;
    const int i1 = min(i0 + tile_rows, p.h);
    const int j1 = min(j0 + tile_columns, p.w);
    // The windows that hold a pixel of the tile.
    const int y0 = max(i0 + p.top - p.kh + p.sh, 0) / p.sh;
    const int x0 = max(j0 + p.left - p.kw + p.sw, 0) / p.sw;
    const int rows = min((i1 - 1 + p.top) / p.sh + 1, p.oh) - y0;
    const int columns = min((j1 - 1 + p.left) / p.sw + 1, p.ow) - x0;
    const T* const image = static_cast<const T*>(p.g.x) + n * p.image[0] + c * p.image[1];
    const T* const pooled = static_cast<const T*>(p.g.g) + n * p.pooled[0] + c * p.pooled[1];
    T* const out = static_cast<T*>(p.g.out) + n * p.out[0] + c * p.out[1];
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int y = static_cast<int>(threadIdx.x) / 32; y < rows; y += threads / 32) {
      for (int x = lane; x < columns; x += 32) {
        std::int32_t best = num::no_key;
        int place = 0;
        const auto offer = [&](T v, int tap) {
          const std::int32_t key = num::order_key(v, num::order_max);
          place = key > best ? tap : place;
          best = key > best ? key : best;
        };
        if (p.kh == 3 && p.kw == 3) {
          for_window<3>(p, image, y0 + y, x0 + x, offer);
        } else {
          for_window<0>(p, image, y0 + y, x0 + x, offer);
        }
        winner[y * columns + x] = static_cast<std::uint8_t>(place);
      }
    }
    __syncthreads();
    for (int i = i0 + static_cast<int>(threadIdx.x) / 32; i < i1; i += threads / 32) {
      const int y_first = max(i + p.top - p.kh + p.sh, 0) / p.sh;
      const int y_last = min((i + p.top) / p.sh, p.oh - 1);
      for (int j = j0 + lane; j < j1; j += 32) {
        const int x_first = max(j + p.left - p.kw + p.sw, 0) / p.sw;
        const int x_last = min((j + p.left) / p.sw, p.ow - 1);
        float single = 0;  // the sum while it has one term
        int terms = 0;
        pixel_sum sum;
        for (int y = y_first; y <= y_last; ++y) {
          const int row_tap = (i + p.top - y * p.sh) * p.kw;
          for (int x = x_first; x <= x_last; ++x) {
            if (winner[(y - y0) * columns + x - x0] == row_tap + j + p.left - x * p.sw) {
              const float g = num::widen_to_float(pooled[y * p.pooled[2] + x * p.pooled[3]]);
              if (terms == 1) sum.add(static_cast<double>(single));
              if (terms >= 1) sum.add(static_cast<double>(g));
              single = g;
              ++terms;
            }
          }
        }
        T value = num::narrow<T>(single + 0.0f);
        if (terms > 1) {
          if (sum.rounded == 0) {
            value = num::narrow<T>(sum.value + 0.0);
          } else {
            const auto r = max_gradient_carefully(num::volume_of<T, int>(p.g, n, c), i, j, 0.0);
            value = r.value;
            exact += r.decided ? 0 : 1;
          }
        }
        out[i * p.out[2] + j * p.out[3]] = value;
      }
    }
    __syncthreads();
  }
  count_exact(counters, exact);
}

template <class T>
__global__ void __launch_bounds__(threads)
    average_gradient_kernel(const __grid_constant__ compact p, counter* counters) {
  if (blockIdx.x == 0 && threadIdx.x == 0) count_elements(counters, tier::binary64, p.g.elements);
  const auto elements = static_cast<int>(p.g.elements);
  std::int64_t exact = 0;
  for (int at = static_cast<int>(blockIdx.x * threads + threadIdx.x); at < elements;
       at += static_cast<int>(gridDim.x * threads)) {
    const compact::place o = p.locate(at);
    const int y_first = max(o.y + p.top - p.kh + p.sh, 0) / p.sh;
    const int y_last = min((o.y + p.top) / p.sh, p.oh - 1);
    const int x_first = max(o.x + p.left - p.kw + p.sw, 0) / p.sw;
    const int x_last = min((o.x + p.left) / p.sw, p.ow - 1);
    const T* const pooled = static_cast<const T*>(p.g.g) + o.n * p.pooled[0] + o.c * p.pooled[1];
    const auto full = static_cast<double>(p.full_weight);
    pixel_sum sum;
    for (int y = y_first; y <= y_last; ++y) {
      for (int x = x_first; x <= x_last; ++x) {
        const double g = num::widen(pooled[y * p.pooled[2] + x * p.pooled[3]]);
        const int n = p.count(y, x);
        double weight = full;
        if (n != p.kh * p.kw) weight = static_cast<double>(static_cast<int>(p.g.common) / n);
        sum.add(g * weight);
      }
    }
    T value;
    if (sum.rounded == 0) {
      value = divide<T>(sum.value, p.common, p.reciprocal);
    } else {
      const auto r = average_gradient_carefully(num::volume_of<T, int>(p.g, o.n, o.c), o.y, o.x, 0.0);
      value = r.value;
      exact += r.decided ? 0 : 1;
    }
    at_place<T>(p, o) = value;
  }
  count_exact(counters, exact);
}

// Whether all offsets fit 32 bits, with room for a grid's worth of steps.
bool offsets_fit(const std::int64_t (&stride)[5], std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
  std::int64_t reach = 0;
  const std::int64_t size[5] = {n, c, 0, h, w};
  for (int d = 0; d < 5; ++d) {
    const std::int64_t s = stride[d] < 0 ? -stride[d] : stride[d];
    if (s >= std::int64_t{1} << 31) return false;
    reach += s * size[d];
  }
  return reach < std::int64_t{1} << 31;
}

// Of elements of format T.
template <class T>
bool prepare_of(ops::op_id op, const pool_geometry& g, const job& j, dispatch::task& t) {
  const bool backward = op == ops::op_id::max_pool2d_backward || op == ops::op_id::avg_pool2d_backward;
  const bool max = op == ops::op_id::max_pool2d || op == ops::op_id::max_pool2d_backward;
  const plan::window_axis &y = g.axis[1], &x = g.axis[2];
  const bool each_padded = g.count_include_pad && g.divisor == 0;
  if (!max && (each_padded || g.negated || g.divisor >= std::int64_t{1} << 29)) return false;
  if (!g.small() || !(g.axis[0] == plan::window_axis{}) || g.adaptive || y.dilation != 1 || x.dilation != 1 ||
      g.force != 0)
    return false;
  if (!offsets_fit(g.image_stride, g.n, g.c, y.image, x.image) ||
      !offsets_fit(g.pooled_stride, g.n, g.c, y.windows, x.windows) ||
      !offsets_fit(g.indices_stride, g.n, g.c, y.windows, x.windows) ||
      !offsets_fit(g.out_stride, g.n, g.c, backward ? y.image : y.windows, backward ? x.image : x.windows)) {
    return false;
  }
  const auto grid = [&](std::int64_t items) { return grid_for(j.device, ceil_div(items, threads), 32); };
  const bool two = y.kernel == 2 && x.kernel == 2;
  const bool three = y.kernel == 3 && x.kernel == 3;
  if (!backward) {
    if (!two && !three) return false;
    const compact p(g, y.windows, x.windows);
    const auto start = [&]<auto Kernel>() { plan_launch<Kernel>(t, j, grid(g.elements), threads, p, j.counters); };
    if (max && g.indices != nullptr) {
      two ? start.template operator()<max_kernel<T, 2, true>>() : start.template operator()<max_kernel<T, 3, true>>();
    } else if (max) {
      two ? start.template operator()<max_kernel<T, 2, false>>() : start.template operator()<max_kernel<T, 3, false>>();
    } else {
      two ? start.template operator()<average_kernel<T, 2>>() : start.template operator()<average_kernel<T, 3>>();
    }
  } else if (y.stride >= y.kernel && x.stride >= x.kernel) {
    const compact p(g, y.windows, x.windows);
    if (g.n * g.c * y.windows * x.windows > INT32_MAX) return false;  // of a broadcast g
    const auto windows = static_cast<int>(g.n * g.c * y.windows * x.windows);
    const auto start = [&]<auto Kernel>() {
      plan_launch<Kernel>(t, j, grid(windows), threads, p, windows, j.counters);
    };
    if (max) {
      two ? start.template operator()<cell_kernel<T, 2, true>>() : start.template operator()<cell_kernel<T, 0, true>>();
    } else {
      start.template operator()<cell_kernel<T, 0, false>>();
    }
  } else if (max) {
    const std::int64_t rows = (tile_rows + y.kernel - 2) / y.stride + 2;
    const std::int64_t columns = (tile_columns + x.kernel - 2) / x.stride + 2;
    if (y.kernel * x.kernel > 255 || rows * columns > most_windows || g.channels_inside) return false;
    const compact p(g, y.image, x.image);
    const std::int64_t across = ceil_div(x.image, tile_columns);
    const std::int64_t down = ceil_div(y.image, tile_rows);
    const auto tiles = static_cast<int>(g.n * g.c * across * down);
    plan_launch<tile_kernel<T>>(t, j, grid_for(j.device, tiles, 16), threads, p, divider(across), divider(down), tiles,
                                j.counters);
  } else {
    if (g.common == 0) return false;
    const compact p(g, y.image, x.image);
    plan_launch<average_gradient_kernel<T>>(t, j, grid(g.elements), threads, p, j.counters);
  }
  return true;
}

}  // namespace

bool prepare_fast(ops::op_id op, const pool_geometry& g, const job& j, dispatch::task& t) {
  bool taken = false;
  ops::for_each_format<ops::NARROW>([&]<class T>() {
    if (dtype_of<T> == g.type) taken = prepare_of<T>(op, g, j, t);
  });
  return taken;
}

}  // namespace repdl::cuda
