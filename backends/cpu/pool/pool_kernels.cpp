// Pooling: rows of one plane at a time. Compiled once per instruction set.
//
// A row is worked on in spans of columns that fit the buffers. Forward, the window's rows, of all its slices, are combined column
// by column first, then the columns of each window: fewer operations than window by window, and side by side in memory. Backward,
// the row of pixels gathers from the windows that hold it; max_pool2d_backward keeps the winners of the last few rows
// of windows, of each slice of them. Elements whose binary64 sum rounded anywhere are finished one by one (ops/sums/pool.hpp), as
// are windows that do not fit the buffers, and all averages of binary64.
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
  using volume = num::pool_volume<T, int64_t>;
  using place = typename volume::place;
  using key_type = num::order_key_of<T>;
  static constexpr key_type no_key = num::no_key_of<key_type>;
  static constexpr bool is_wide = std::is_same_v<T, double>;
  static constexpr tier first_tier = is_wide ? tier::double_double : tier::binary64;

  const plan::pool_plan& p;
  const plan::window_axis &z, &h, &w;
  const bool is_plane;  // of two axes
  const volume vol;
  const int64_t depth;  // of the output's plane
  T* const out;         // that
  int64_t* const indices;
  const int64_t out_row, out_column;
  const double force;
  pool_counts& counts;

  pool_pass(const plan::pool_plan& plan, const pool_rows& rows, pool_counts& c)
      : p(plan),
        z(plan.axis[0]),
        h(plan.axis[1]),
        w(plan.axis[2]),
        is_plane(z == plan::window_axis{}),
        vol(num::volume_of<T, int64_t>(plan, rows.sample, rows.channel)),
        depth(rows.depth),
        out(static_cast<T*>(plan.out) + plane_at(plan.out_stride, rows)),
        indices(plan.indices == nullptr ? nullptr : plan.indices + plane_at(plan.indices_stride, rows)),
        out_row(plan.out_stride[3]),
        out_column(plan.out_stride[4]),
        force(rows.force_exact ? num::infinity : 0.0),
        counts(c) {}

  static int64_t plane_at(const plan::image_strides& stride, const pool_rows& rows) {
    return rows.sample * stride[0] + rows.channel * stride[1] + rows.depth * stride[2];
  }

  place at(int64_t i, int64_t j) const { return {depth, i, j}; }
  void put(int64_t i, int64_t j, T v) const { out[i * out_row + j * out_column] = v; }
  void decide(int64_t i, int64_t j, num::decided_value<T> c, T (volume::*exact)(place) const) const {
    put(i, j, c.decided ? c.value : (vol.*exact)(at(i, j)));
    add_count(counts, c.decided ? first_tier : tier::exact, 1);
  }

  // Windows side by side whose columns fit a buffer; 0: not even one does, or they are not all of one size.
  int64_t windows_per_span() const {
    if (p.adaptive) return 0;
    const int64_t span = (w.kernel - 1) * w.dilation + 1;
    return span > width ? 0 : smaller((width - span) / w.stride + 1, width);
  }

  // Whether the taps of every window are numbered in 31 bits.
  bool has_small_windows() const { return !p.adaptive && z.kernel * h.kernel * w.kernel < (int64_t{1} << 31); }
  // Calls use(the image's row, its tap's number (slice, row)) for the rows of the windows (oz, oy) that are present.
  template <class Use>
  [[gnu::always_inline]] void for_lines(int64_t oz, int64_t oy, Use&& use) const {
    using range = typename volume::range;
    const range slices = is_plane ? range{0, 1} : vol.z.present(oz);
    const range rows = vol.y.present(oy);
    const T* const first = vol.image + vol.y.origin(oy) * vol.image_row;
    for (int64_t q = slices.begin; q < slices.end; ++q) {
      const T* const slice = is_plane ? first : first + vol.z.position(oz, q) * vol.image_slice;
      for (int64_t r = rows.begin; r < rows.end; ++r) use(slice + r * h.dilation * vol.image_row, q * h.kernel + r);
    }
  }

  // ---- max_pool2d

  void put_winner(int64_t oy, int64_t ox, T v, int64_t where) const {
    put(oy, ox, v);
    indices[oy * p.indices_stride[3] + ox * p.indices_stride[4]] = where;
  }
  void max_row_with_indices(int64_t oy) const {
    const bool side_by_side = has_small_windows();
    for (int64_t first = 0; first < w.windows; first += width) {
      const int64_t n = smaller(width, w.windows - first);
      int32_t tap[width];
      if (side_by_side) find_winners(depth, oy, first, n, tap);
      for (int64_t ox = first; ox < first + n; ++ox) {
        int64_t where;
        T v;
        if (side_by_side) {
          const auto rows = static_cast<int32_t>(h.kernel), columns = static_cast<int32_t>(w.kernel);
          const int32_t row = tap[ox - first] / columns;
          const place i = vol.position(at(oy, ox), {row / rows, row % rows, tap[ox - first] % columns});
          where = vol.index_of(i);
          v = num::order_value<T>(num::order_key(vol.at_image(i), num::order_max), num::order_max);
        } else {
          v = vol.max_value(at(oy, ox), &where);
        }
        put_winner(oy, ox, v, where);
      }
    }
    add_count(counts, tier::proved, w.windows);
  }
  void max_row(int64_t oy) const {
    if (p.indices != nullptr) return max_row_with_indices(oy);
    const int64_t most = windows_per_span();
    for (int64_t first = 0; first < w.windows; first += most) {
      if (most == 0) {
        for (int64_t ox = 0; ox < w.windows; ++ox) put(oy, ox, vol.max_value(at(oy, ox)));
        break;
      }
      const int64_t n = smaller(most, w.windows - first);
      alignas(64) key_type column[width];
      alignas(64) key_type best[width];
      const int64_t from = first * w.stride - w.before;  // the image column of column[0]
      const int64_t span = (n - 1) * w.stride + (w.kernel - 1) * w.dilation + 1;
      for (int64_t j = 0; j < span; ++j) column[j] = no_key;
      const int64_t begin = larger(from, 0);
      const int64_t length = smaller(from + span, w.image) - begin;
      key_type* const to = column + (begin - from);
      for_lines(
          depth, oy, [&](const T* start, int64_t) __attribute__((always_inline)) {
            const T* const line = start + begin * vol.image_column;
            with_stride(
                vol.image_column, [&](auto step) __attribute__((always_inline)) {
#pragma omp simd
                  for (int64_t j = 0; j < length; ++j) {
                    const key_type key = num::order_key(line[j * step], num::order_max);
                    to[j] = key > to[j] ? key : to[j];
                  }
                });
          });
      for (int64_t x = 0; x < n; ++x) best[x] = no_key;
      for (int64_t s = 0; s < w.kernel; ++s) {
        const key_type* const tap = column + s * w.dilation;
        with_stride(
            w.stride, [&](auto step) __attribute__((always_inline)) {
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
    add_count(counts, tier::proved, w.windows);
  }

  // ---- avg_pool2d

  void average_row(int64_t oy) const {
    if constexpr (is_wide) {
      averages(oy);
    } else {
      average_row_side_by_side(oy);
    }
  }
  // Windows one by one.
  void averages(int64_t oy) const {
    for (int64_t ox = 0; ox < w.windows; ++ox) {
      decide(oy, ox, volume::finish_average(vol.average(at(oy, ox)), force, vol.count(at(oy, ox))),
             &volume::exact_average);
    }
  }
  void average_row_side_by_side(int64_t oy) const {
    const int64_t most =
        force != 0 || p.negated || z.kernel * h.kernel * w.kernel > (int64_t{1} << 52) ? 0 : windows_per_span();
    if (most == 0) return averages(oy);
    for (int64_t first = 0; first < w.windows; first += most) {
      const int64_t n = smaller(most, w.windows - first);
      sums column;
      sums window;
      alignas(64) double divisor[width];
      const int64_t from = first * w.stride - w.before;
      const int64_t span = (n - 1) * w.stride + w.kernel;
      column.clear(span);
      const int64_t begin = larger(from, 0);
      const int64_t length = smaller(from + span, w.image) - begin;
      // Only padding under these windows: nothing is added.
      const int64_t offset = length > 0 ? begin - from : 0;
      double* const value = column.value + offset;
      double* const error = column.error + offset;
      for_lines(
          depth, oy, [&](const T* start, int64_t) __attribute__((always_inline)) {
            if (length <= 0) return;
            const T* const line = start + begin * vol.image_column;
            with_stride(
                vol.image_column, [&](auto step) __attribute__((always_inline)) {
#pragma omp simd
                  for (int64_t j = 0; j < length; ++j) {
                    accumulate(value[j], error[j], num::widen(line[j * step]), 0.0);
                  }
                });
          });
      window.clear(n);
      for (int64_t s = 0; s < w.kernel; ++s) {
        const double* const v = column.value + s;
        const double* const e = column.error + s;
        with_stride(
            w.stride, [&](auto step) __attribute__((always_inline)) {
#pragma omp simd
              for (int64_t x = 0; x < n; ++x) accumulate(window.value[x], window.error[x], v[x * step], e[x * step]);
            });
      }
      const int64_t high = vol.counted(vol.z, depth) * vol.counted(vol.y, oy);
      for (int64_t x = 0; x < n; ++x) {
        divisor[x] = static_cast<double>(p.divisor != 0 ? p.divisor : high * vol.counted(vol.x, first + x));
      }
      quotients(oy, first, n, window, divisor, [&](int64_t ox, num::bounded_sum<double> sum) {
        decide(oy, ox, volume::finish_average(sum, 0.0, vol.count(at(oy, ox))), &volume::exact_average);
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
    decide(i, j, volume::finish_max_gradient(vol.max_gradient(at(i, j)), force), &volume::exact_max_gradient);
  }
  void pixels(int64_t i) const {
    for (int64_t j = 0; j < w.image; ++j) {
      if (p.op == ops::op_id::max_pool2d_backward) {
        max_gradient(i, j);
      } else {
        decide(i, j, vol.finish_average_gradient(vol.average_gradient(at(i, j)), force),
               &volume::exact_average_gradient);
      }
    }
  }

  // The tap (q * kh + r) * kw + s that wins window (oz, oy, first + x), x < n: the first of the greatest keys.
  void find_winners(int64_t oz, int64_t oy, int64_t first, int64_t n, int32_t* tap) const {
    alignas(64) key_type best[width];
    for (int64_t x = 0; x < n; ++x) best[x] = no_key, tap[x] = -1;
    for_lines(
        oz, oy, [&](const T* line, int64_t row) __attribute__((always_inline)) {
          for (int64_t s = 0; s < w.kernel; ++s) {
            // The windows whose tap s is in the image.
            const int64_t shift = s * w.dilation - w.before;
            const int64_t low = shift >= 0 ? 0 : (w.stride - 1 - shift) / w.stride;
            const int64_t high = w.image <= shift ? 0 : (w.image - shift + w.stride - 1) / w.stride;
            const int64_t begin = larger(low - first, 0);
            const int64_t end = smaller(high - first, n);
            const T* const from = line + (first * w.stride + shift) * vol.image_column;
            const auto id = static_cast<int32_t>(row * w.kernel + s);
            with_stride(
                w.stride * vol.image_column, [&](auto step) __attribute__((always_inline)) {
#pragma omp simd
                  for (int64_t x = begin; x < end; ++x) {
                    const key_type key = num::order_key(from[x * step], num::order_max);
                    tap[x] = key > best[x] ? id : tap[x];
                    best[x] = key > best[x] ? key : best[x];
                  }
                });
          }
        });
  }

  // A stretch of pixels and the windows that can hold them.
  struct stretch {
    int64_t begin, end;    // image columns
    int64_t first, count;  // windows
  };
  // Calls use(stretch) for stretches that cover the row; false, without a call, if the windows of one pixel do not fit.
  template <class Use>
  bool for_stretches(Use&& use) const {
    const int64_t reach = ((w.kernel - 1) * w.dilation) / w.stride + 2;  // windows beyond those that begin in the span
    if (reach > width / 2) return false;
    const int64_t columns = w.stride >= 2 ? width : width - reach;
    for (int64_t begin = 0; begin < w.image; begin += columns) {
      const int64_t end = smaller(w.image, begin + columns);
      const int64_t first = vol.x.covering(begin).begin;
      const int64_t last = vol.x.covering(end - 1).end;
      use(stretch{begin, end, first, larger(0, last - first)});
    }
    return true;
  }

  void max_gradient_rows(int64_t begin, int64_t end) const {
    const auto slices = vol.z.covering(depth);
    const int64_t windows_of_slice = slices.end - slices.begin;
    const int64_t rows_of_pixel = (h.kernel - 1) * h.dilation / h.stride + 1;
    const int64_t kept = winner_rows / larger(windows_of_slice, 1);  // rows of windows, of each slice of them
    const bool fits = has_small_windows() && force == 0 && rows_of_pixel <= kept;
    const bool done =
        fits && for_stretches([&](const stretch& s) {
          int32_t winners[winner_rows][width];
          int64_t known = -1;  // rows of windows below this one have their winners in place
          for (int64_t i = begin; i < end; ++i) {
            sums pixel;
            const int64_t length = s.end - s.begin;
            pixel.clear(length);
            const auto rows = vol.y.covering(i);
            for (int64_t oz = slices.begin; oz < slices.end; ++oz) {
              const int64_t q = vol.z.tap(oz, depth);
              if (q < 0) continue;
              for (int64_t oy = rows.begin; oy < rows.end; ++oy) {
                int32_t* const tap = winners[(oz - slices.begin) * kept + oy % kept];
                if (oy >= known) find_winners(oz, oy, s.first, s.count, tap);
                const int64_t r = vol.y.tap(oy, i);
                if (r < 0) continue;
                const T* const g =
                    vol.pooled + oz * vol.pooled_slice + oy * vol.pooled_row + s.first * vol.pooled_column;
                for (int64_t x = 0; x < s.count; ++x) {
                  const int64_t column = tap[x] - (q * h.kernel + r) * w.kernel;
                  if (column < 0 || column >= w.kernel) continue;
                  const int64_t j = (s.first + x) * w.stride + column * w.dilation - w.before - s.begin;
                  if (j < 0 || j >= length) continue;
                  accumulate(pixel.value[j], pixel.error[j], num::widen(g[x * vol.pooled_column]), 0.0);
                }
              }
            }
            known = larger(known, rows.end);
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
                decide(i, s.begin + j, volume::finish_max_gradient(sum, 0.0), &volume::exact_max_gradient);
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
      const auto slices = vol.z.covering(depth);
      const auto rows = vol.y.covering(i);
      int64_t weight_rows = -1;  // what the weights were made for
      const auto add_row = [&](int64_t oz, int64_t oy) __attribute__((always_inline)) {
        const int64_t high = vol.counted(vol.z, oz) * vol.counted(vol.y, oy);
        if (high != weight_rows) {
          weight_rows = high;
          int64_t last_count = -1;
          double last_weight = 0;
          for (int64_t x = 0; x < s.count; ++x) {
            const int64_t taps = p.divisor != 0 ? p.divisor : high * vol.counted(vol.x, s.first + x);
            if (taps != last_count) {
              last_count = taps;
              last_weight = static_cast<double>(p.common / taps);
            }
            weight[x] = last_weight;
          }
        }
        const T* const g = vol.pooled + oz * vol.pooled_slice + oy * vol.pooled_row + s.first * vol.pooled_column;
        with_stride(
            vol.pooled_column, [&](auto step) __attribute__((always_inline)) {
#pragma omp simd
              for (int64_t x = 0; x < s.count; ++x) {
                accumulate(window.value[x], window.error[x], num::widen(g[x * step]) * weight[x], 0.0);
              }
            });
      };
      for (int64_t oz = slices.begin; oz < slices.end; ++oz)
        for (int64_t oy = rows.begin; oy < rows.end; ++oy) add_row(oz, oy);
      for (int64_t tap = 0; tap < w.kernel; ++tap) {
        // Pixel j = x stride + shift, in the span.
        const int64_t shift = s.first * w.stride + tap - w.before - s.begin;
        const int64_t from = shift >= 0 ? 0 : (w.stride - 1 - shift) / w.stride;
        const int64_t to = smaller(s.count, length <= shift ? 0 : (length - shift + w.stride - 1) / w.stride);
        double* const value = pixel.value;
        double* const error = pixel.error;
        with_stride(
            w.stride, [&](auto step) __attribute__((always_inline)) {
#pragma omp simd
              for (int64_t x = from; x < to; ++x) {
                accumulate(value[x * step + shift], error[x * step + shift], window.value[x], window.error[x]);
              }
            });
      }
      for (int64_t j = 0; j < length; ++j) divisor[j] = static_cast<double>(p.common);
      quotients(i, s.begin, length, pixel, divisor, [&](int64_t j, num::bounded_sum<double> sum) {
        decide(i, j, vol.finish_average_gradient(sum, 0.0), &volume::exact_average_gradient);
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
