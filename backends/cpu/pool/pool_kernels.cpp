// Pooling: rows of one plane at a time. Compiled once per instruction set.
//
// A row is worked on in spans of columns that fit the buffers. Forward, the window's rows are combined column by column
// first, then the columns of each window: fewer operations than window by window, and side by side in memory. Backward,
// the row of pixels gathers from the windows that hold it; max_pool2d_backward keeps the winners of the last few rows
// of windows. Elements whose binary64 sum rounded anywhere are finished one by one (ops/sums/pool.hpp), as are windows that
// do not fit the buffers, and all averages of binary64.
#include "backends/cpu/pool/pool.hpp"
#include "librepdl/num/format.hpp"
#include "librepdl/ops/sums/pool.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

using std::int32_t;
using std::int64_t;

constexpr int64_t width = 512;       // columns of a buffer
constexpr int64_t winner_rows = 16;  // rows of windows whose winners are kept

int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
void add_count(pool_counts& counts, tier t, int64_t n) { counts.elements[static_cast<int>(t)] += n; }

// Calls body(step) with the stride, as a constant where it is 1 or 2: those loops vectorise well.
template <int64_t Step>
struct fixed {
  constexpr operator int64_t() const { return Step; }
};
template <class Body>
[[gnu::always_inline]] inline void with_stride(int64_t stride, Body&& body) {
  if (stride == 1) {
    body(fixed<1>{});
  } else if (stride == 2) {
    body(fixed<2>{});
  } else {
    body(stride);
  }
}

struct sums {
  alignas(64) double value[width];
  alignas(64) double error[width];
  void clear(int64_t n) {
    for (int64_t i = 0; i < n; ++i) value[i] = error[i] = 0;
  }
};

[[gnu::always_inline]] inline void accumulate(double& value, double& error, double term, double term_error) {
  num::bounded_sum<double> s{value, error};
  s.add(term, term_error);
  value = s.hi;
  error = s.error;
}

template <class T>
struct pool_pass {
  using pool_plane = num::pool_plane<T, int64_t>;
  using key_type = num::order_key_of<T>;
  static constexpr key_type no_key = num::no_key_of<key_type>;
  static constexpr bool is_wide = std::is_same_v<T, double>;
  static constexpr tier first_tier = is_wide ? tier::double_double : tier::binary64;

  const plan::pool_plan& p;
  const pool_plane plane;
  T* const out;  // the output's plane
  int64_t* const indices;
  const int64_t out_row, out_column;
  const double force;
  pool_counts& counts;

  pool_pass(const plan::pool_plan& plan, const pool_rows& rows, pool_counts& c)
      : p(plan),
        plane(num::plane_of<T, int64_t>(plan, rows.sample, rows.channel)),
        out(static_cast<T*>(plan.out) + rows.sample * plan.out_stride[0] + rows.channel * plan.out_stride[1]),
        indices(plan.indices == nullptr
                    ? nullptr
                    : plan.indices + rows.sample * plan.indices_stride[0] + rows.channel * plan.indices_stride[1]),
        out_row(plan.out_stride[2]),
        out_column(plan.out_stride[3]),
        force(rows.force_exact ? num::infinity : 0.0),
        counts(c) {}

  void put(int64_t i, int64_t j, T v) const { out[i * out_row + j * out_column] = v; }
  void decide(int64_t i, int64_t j, num::decided_value<T> c, T (pool_plane::*exact)(int64_t, int64_t) const) const {
    put(i, j, c.decided ? c.value : (plane.*exact)(i, j));
    add_count(counts, c.decided ? first_tier : tier::exact, 1);
  }

  // Windows side by side whose columns fit a buffer; 0: not even one does, or they are not all of one size.
  int64_t windows_per_span() const {
    if (p.adaptive) return 0;
    const int64_t span = (p.kw - 1) * p.dilation.w + 1;
    return span > width ? 0 : smaller((width - span) / p.stride.w + 1, width);
  }

  // ---- max_pool2d

  void put_winner(int64_t oy, int64_t ox, T v, int64_t where) const {
    put(oy, ox, v);
    indices[oy * p.indices_stride[2] + ox * p.indices_stride[3]] = where;
  }
  void max_row_with_indices(int64_t oy) const {
    const bool side_by_side = !p.adaptive && p.kh * p.kw < (int64_t{1} << 31);
    for (int64_t first = 0; first < p.ow; first += width) {
      const int64_t n = smaller(width, p.ow - first);
      int32_t tap[width];
      if (side_by_side) find_winners(oy, first, n, tap);
      for (int64_t ox = first; ox < first + n; ++ox) {
        int64_t where;
        T v;
        if (side_by_side) {
          const auto columns = static_cast<int32_t>(p.kw);
          const int64_t i = plane.y.position(oy, tap[ox - first] / columns);
          const int64_t j = plane.x.position(ox, tap[ox - first] % columns);
          where = plane.index_of(i, j);
          v = num::order_value<T>(num::order_key(plane.at_image(i, j), num::order_max), num::order_max);
        } else {
          v = plane.max_value(oy, ox, &where);
        }
        put_winner(oy, ox, v, where);
      }
    }
    add_count(counts, tier::proved, p.ow);
  }
  void max_row(int64_t oy) const {
    if (p.indices != nullptr) return max_row_with_indices(oy);
    const int64_t most = windows_per_span();
    const auto rows = plane.y.present(oy);
    for (int64_t first = 0; first < p.ow; first += most) {
      if (most == 0) {
        for (int64_t ox = 0; ox < p.ow; ++ox) put(oy, ox, plane.max_value(oy, ox));
        break;
      }
      const int64_t n = smaller(most, p.ow - first);
      alignas(64) key_type column[width];
      alignas(64) key_type best[width];
      const int64_t from = first * p.stride.w - p.left;  // the image column of column[0]
      const int64_t span = (n - 1) * p.stride.w + (p.kw - 1) * p.dilation.w + 1;
      for (int64_t j = 0; j < span; ++j) column[j] = no_key;
      const int64_t begin = larger(from, 0);
      const int64_t length = smaller(from + span, p.w) - begin;
      key_type* const to = column + (begin - from);
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        const T* const line =
            plane.image + (oy * p.stride.h + r * p.dilation.h - p.top) * plane.image_row + begin * plane.image_column;
        with_stride(
            plane.image_column, [&](auto step) __attribute__((always_inline)) {
#pragma omp simd
              for (int64_t j = 0; j < length; ++j) {
                const key_type key = num::order_key(line[j * step], num::order_max);
                to[j] = key > to[j] ? key : to[j];
              }
            });
      }
      for (int64_t x = 0; x < n; ++x) best[x] = no_key;
      for (int64_t s = 0; s < p.kw; ++s) {
        const key_type* const tap = column + s * p.dilation.w;
        with_stride(
            p.stride.w, [&](auto step) __attribute__((always_inline)) {
#pragma omp simd
              for (int64_t x = 0; x < n; ++x) best[x] = tap[x * step] > best[x] ? tap[x * step] : best[x];
            });
      }
      T* const line = out + oy * out_row + first * out_column;
      with_stride(
          out_column, [&](auto step) __attribute__((always_inline)) {
#pragma omp simd
            for (int64_t x = 0; x < n; ++x) line[x * step] = num::order_value<T>(best[x], num::order_max);
          });
    }
    add_count(counts, tier::proved, p.ow);
  }

  // ---- avg_pool2d

  // The taps of output y along an axis that an average divides by.
  int64_t counted(const num::pool_axis<int64_t>& axis, int64_t y) const {
    if (p.count_include_pad) return axis.padded_taps(y);
    const auto taps = axis.present(y);
    return taps.end - taps.begin;
  }

  void average_row(int64_t oy) const {
    if constexpr (is_wide) {
      averages(oy);
    } else {
      average_row_side_by_side(oy);
    }
  }
  // Windows one by one.
  void averages(int64_t oy) const {
    for (int64_t ox = 0; ox < p.ow; ++ox) {
      decide(oy, ox, pool_plane::finish_average(plane.average(oy, ox), force, plane.count(oy, ox)),
             &pool_plane::exact_average);
    }
  }
  void average_row_side_by_side(int64_t oy) const {
    const int64_t most = force != 0 || p.negated || p.kh * p.kw > (int64_t{1} << 52) ? 0 : windows_per_span();
    const auto rows = plane.y.present(oy);
    if (most == 0) return averages(oy);
    for (int64_t first = 0; first < p.ow; first += most) {
      const int64_t n = smaller(most, p.ow - first);
      sums column;
      sums window;
      alignas(64) double divisor[width];
      const int64_t from = first * p.stride.w - p.left;
      const int64_t span = (n - 1) * p.stride.w + p.kw;
      column.clear(span);
      const int64_t begin = larger(from, 0);
      const int64_t length = smaller(from + span, p.w) - begin;
      // Only padding under these windows: nothing is added.
      const int64_t offset = length > 0 ? begin - from : 0;
      double* const value = column.value + offset;
      double* const error = column.error + offset;
      for (int64_t r = rows.begin; r < rows.end && length > 0; ++r) {
        const T* const line =
            plane.image + (oy * p.stride.h + r - p.top) * plane.image_row + begin * plane.image_column;
        with_stride(
            plane.image_column, [&](auto step) __attribute__((always_inline)) {
#pragma omp simd
              for (int64_t j = 0; j < length; ++j) {
                accumulate(value[j], error[j], num::widen(line[j * step]), 0.0);
              }
            });
      }
      window.clear(n);
      for (int64_t s = 0; s < p.kw; ++s) {
        const double* const v = column.value + s;
        const double* const e = column.error + s;
        with_stride(
            p.stride.w, [&](auto step) __attribute__((always_inline)) {
#pragma omp simd
              for (int64_t x = 0; x < n; ++x) accumulate(window.value[x], window.error[x], v[x * step], e[x * step]);
            });
      }
      const int64_t high = counted(plane.y, oy);
      for (int64_t x = 0; x < n; ++x) {
        divisor[x] = static_cast<double>(p.divisor != 0 ? p.divisor : high * counted(plane.x, first + x));
      }
      quotients(oy, first, n, window, divisor, [&](int64_t ox, num::bounded_sum<double> sum) {
        decide(oy, ox, pool_plane::finish_average(sum, 0.0, plane.count(oy, ox)), &pool_plane::exact_average);
      });
    }
  }

  // out(i, first + x) = RN(sum[x] / divisor[x]) where the sums are exact; finish(column, sum) elsewhere. The quotient
  // of an exact sum is rounded once: by a multiplication that is exact where the divisor is a power of two, else
  // through rounding to odd. 0 / 0 is NaN.
  template <class Finish>
  void quotients(int64_t i, int64_t first, int64_t n, const sums& sum, const double* divisor, Finish&& finish) const {
    double odd = 0;
    double inexact = 0;
#pragma omp simd reduction(+ : odd, inexact)
    for (int64_t x = 0; x < n; ++x) {
      odd += num::double_of(num::bits_of(divisor[x]) & 0xfffffffffffffull) != 0 ? 1.0 : 0.0;
      inexact += sum.error[x] == 0 ? 0.0 : 1.0;
    }
    T* const line = out + i * out_row + first * out_column;
    with_stride(
        out_column, [&](auto step) __attribute__((always_inline)) {
          if (odd == 0) {
#pragma omp simd
            for (int64_t x = 0; x < n; ++x) {
              line[x * step] = num::narrow<T>((sum.value[x] + 0.0) * (1 / divisor[x]));
            }
          } else {
#pragma omp simd
            for (int64_t x = 0; x < n; ++x) {
              const double q = num::divide_to_odd(sum.value[x] + 0.0, divisor[x]);
              line[x * step] = num::narrow<T>(q);
            }
          }
        });
    if (inexact == 0) return add_count(counts, tier::binary64, n);
    for (int64_t x = 0; x < n; ++x) {
      if (sum.error[x] == 0) {
        add_count(counts, tier::binary64, 1);
      } else {
        finish(first + x, num::bounded_sum<double>{sum.value[x], sum.error[x]});
      }
    }
  }

  // ---- backward

  // Pixels one by one: windows that do not fit the buffers, and forced tiers.
  void max_gradient(int64_t i, int64_t j) const {
    decide(i, j, pool_plane::finish_max_gradient(plane.max_gradient(i, j), force), &pool_plane::exact_max_gradient);
  }
  void pixels(int64_t i) const {
    for (int64_t j = 0; j < p.w; ++j) {
      if (p.op == ops::op_id::max_pool2d_backward) {
        max_gradient(i, j);
      } else {
        decide(i, j, plane.finish_average_gradient(plane.average_gradient(i, j), force),
               &pool_plane::exact_average_gradient);
      }
    }
  }

  // The tap r * kw + s that wins window (oy, first + x), x < n: the first of the greatest keys.
  void find_winners(int64_t oy, int64_t first, int64_t n, int32_t* tap) const {
    alignas(64) key_type best[width];
    for (int64_t x = 0; x < n; ++x) best[x] = no_key, tap[x] = -1;
    const auto rows = plane.y.present(oy);
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      const T* const line = plane.image + (oy * p.stride.h + r * p.dilation.h - p.top) * plane.image_row;
      for (int64_t s = 0; s < p.kw; ++s) {
        // The windows whose tap s is in the image.
        const int64_t shift = s * p.dilation.w - p.left;
        const int64_t low = shift >= 0 ? 0 : (p.stride.w - 1 - shift) / p.stride.w;
        const int64_t high = p.w <= shift ? 0 : (p.w - shift + p.stride.w - 1) / p.stride.w;
        const int64_t begin = larger(low - first, 0);
        const int64_t end = smaller(high - first, n);
        const T* const from = line + (first * p.stride.w + shift) * plane.image_column;
        const auto id = static_cast<int32_t>(r * p.kw + s);
        with_stride(
            p.stride.w * plane.image_column, [&](auto step) __attribute__((always_inline)) {
#pragma omp simd
              for (int64_t x = begin; x < end; ++x) {
                const key_type key = num::order_key(from[x * step], num::order_max);
                tap[x] = key > best[x] ? id : tap[x];
                best[x] = key > best[x] ? key : best[x];
              }
            });
      }
    }
  }

  // A stretch of pixels and the windows that can hold them.
  struct stretch {
    int64_t begin, end;    // image columns
    int64_t first, count;  // windows
  };
  // Calls use(stretch) for stretches that cover the row; false, without a call, if the windows of one pixel do not fit.
  template <class Use>
  bool for_stretches(Use&& use) const {
    const int64_t reach = ((p.kw - 1) * p.dilation.w) / p.stride.w + 2;  // windows beyond those that begin in the span
    if (reach > width / 2) return false;
    const int64_t columns = p.stride.w >= 2 ? width : width - reach;
    for (int64_t begin = 0; begin < p.w; begin += columns) {
      const int64_t end = smaller(p.w, begin + columns);
      const int64_t first = plane.x.covering(begin).begin;
      const int64_t last = plane.x.covering(end - 1).end;
      use(stretch{begin, end, first, larger(0, last - first)});
    }
    return true;
  }

  void max_gradient_rows(int64_t begin, int64_t end) const {
    const int64_t rows_of_pixel = (p.kh - 1) * p.dilation.h / p.stride.h + 1;
    const bool fits = !p.adaptive && force == 0 && rows_of_pixel <= winner_rows && p.kh * p.kw < (int64_t{1} << 31);
    const bool done =
        fits && for_stretches([&](const stretch& s) {
          int32_t winners[winner_rows][width];
          int64_t known = -1;  // rows of windows below this one have their winners in place
          for (int64_t i = begin; i < end; ++i) {
            sums pixel;
            const int64_t length = s.end - s.begin;
            pixel.clear(length);
            const auto rows = plane.y.covering(i);
            for (int64_t oy = rows.begin; oy < rows.end; ++oy) {
              int32_t* const tap = winners[oy % winner_rows];
              if (oy >= known) {
                find_winners(oy, s.first, s.count, tap);
                known = oy + 1;
              }
              const int64_t r = plane.y.tap(oy, i);
              if (r < 0) continue;
              const T* const g = plane.pooled + oy * plane.pooled_row + s.first * plane.pooled_column;
              for (int64_t x = 0; x < s.count; ++x) {
                const int64_t column = tap[x] - r * p.kw;
                if (column < 0 || column >= p.kw) continue;
                const int64_t j = (s.first + x) * p.stride.w + column * p.dilation.w - p.left - s.begin;
                if (j < 0 || j >= length) continue;
                accumulate(pixel.value[j], pixel.error[j], num::widen(g[x * plane.pooled_column]), 0.0);
              }
            }
            double inexact = 0;
            T* const line = out + i * out_row + s.begin * out_column;
            with_stride(
                out_column, [&](auto step) __attribute__((always_inline)) {
#pragma omp simd reduction(+ : inexact)
                  for (int64_t j = 0; j < length; ++j) {
                    line[j * step] = num::narrow<T>(pixel.value[j] + 0.0);
                    inexact += pixel.error[j] == 0 ? 0.0 : 1.0;
                  }
                });
            if (inexact == 0) {
              add_count(counts, first_tier, length);
              continue;
            }
            for (int64_t j = 0; j < length; ++j) {
              const num::bounded_sum<double> sum{pixel.value[j], pixel.error[j]};
              if constexpr (is_wide) {
                if (sum.error == 0) {
                  add_count(counts, first_tier, 1);
                } else {
                  max_gradient(i, s.begin + j);
                }
              } else {
                decide(i, s.begin + j, pool_plane::finish_max_gradient(sum, 0.0), &pool_plane::exact_max_gradient);
              }
            }
          }
        });
    if (!done) {
      for (int64_t i = begin; i < end; ++i) pixels(i);
    }
  }

  void average_gradient_row(int64_t i) const {
    if constexpr (is_wide) {
      pixels(i);
    } else {
      average_gradient_row_side_by_side(i);
    }
  }
  void average_gradient_row_side_by_side(int64_t i) const {
    if (p.adaptive || force != 0 || p.negated || p.common == 0) return pixels(i);
    const bool done = for_stretches([&](const stretch& s) {
      sums window;  // column sums of the windows over this row, weighted
      sums pixel;
      alignas(64) double weight[width];
      alignas(64) double divisor[width];
      const int64_t length = s.end - s.begin;
      window.clear(s.count);
      pixel.clear(length);
      const auto rows = plane.y.covering(i);
      int64_t weight_rows = -1;  // what the weights were made for
      for (int64_t oy = rows.begin; oy < rows.end; ++oy) {
        const int64_t high = counted(plane.y, oy);
        if (high != weight_rows) {
          weight_rows = high;
          int64_t last_count = -1;
          double last_weight = 0;
          for (int64_t x = 0; x < s.count; ++x) {
            const int64_t n = p.divisor != 0 ? p.divisor : high * counted(plane.x, s.first + x);
            if (n != last_count) {
              last_count = n;
              last_weight = static_cast<double>(p.common / n);
            }
            weight[x] = last_weight;
          }
        }
        const T* const g = plane.pooled + oy * plane.pooled_row + s.first * plane.pooled_column;
        with_stride(
            plane.pooled_column, [&](auto step) __attribute__((always_inline)) {
#pragma omp simd
              for (int64_t x = 0; x < s.count; ++x) {
                accumulate(window.value[x], window.error[x], num::widen(g[x * step]) * weight[x], 0.0);
              }
            });
      }
      for (int64_t tap = 0; tap < p.kw; ++tap) {
        // Pixel j = x stride + shift, in the span.
        const int64_t shift = s.first * p.stride.w + tap - p.left - s.begin;
        const int64_t from = shift >= 0 ? 0 : (p.stride.w - 1 - shift) / p.stride.w;
        const int64_t to = smaller(s.count, length <= shift ? 0 : (length - shift + p.stride.w - 1) / p.stride.w);
        double* const value = pixel.value;
        double* const error = pixel.error;
        with_stride(
            p.stride.w, [&](auto step) __attribute__((always_inline)) {
#pragma omp simd
              for (int64_t x = from; x < to; ++x) {
                accumulate(value[x * step + shift], error[x * step + shift], window.value[x], window.error[x]);
              }
            });
      }
      for (int64_t j = 0; j < length; ++j) divisor[j] = static_cast<double>(p.common);
      quotients(i, s.begin, length, pixel, divisor, [&](int64_t j, num::bounded_sum<double> sum) {
        decide(i, j, plane.finish_average_gradient(sum, 0.0), &pool_plane::exact_average_gradient);
      });
    });
    if (!done) pixels(i);
  }
};

template <class T>
void run_as(const plan::pool_plan& p, const pool_rows& rows, pool_counts& counts) {
  const pool_pass<T> pass(p, rows, counts);
  if (p.op == ops::op_id::max_pool2d_backward) return pass.max_gradient_rows(rows.begin, rows.end);
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    if (p.op == ops::op_id::max_pool2d) {
      pass.max_row(i);
    } else if (p.op == ops::op_id::avg_pool2d) {
      pass.average_row(i);
    } else {
      pass.average_gradient_row(i);
    }
  }
}

void run(const plan::pool_plan& p, const pool_rows& rows, pool_counts& counts) {
  ops::for_each_format<ops::FLOATS>([&]<class T>() {
    if (dtype_of<T> == p.type) run_as<T>(p, rows, counts);
  });
}

}  // namespace

extern const pool_kernels pool_table = {run};

}  // namespace repdl::cpu::REPDL_ISA
