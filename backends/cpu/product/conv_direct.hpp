// Convolutions of few channels per group, without packing: depthwise ones, the input gradient of a first layer, the
// output of a last one. The gathered tensor is copied plane by plane into padded lines (conv_planes, conv.hpp), so that
// the taps of neighbouring sites are neighbouring numbers; sites are vector lanes.
//
// Bounds, u = 2^-53, as in gemm_engines.hpp: an evaluation tree of height h gives |s - S| <= h u (1 + h u) Q,
// and e = fl((H + 4) u (A B + |c|)) with H >= h + 1 and norms over trees no higher covers the rounding test.
//   direct_band  a chain over all terms, K - 1 additions after the first and one for the bias: H = K + 1. The norm of all
//                sites of a row is at most the root of the sum over its taps of the largest square in the tap's row, a
//                sum no higher. That is coarse, but these sums are short.
//   direct_taps  each lane a chain over its share of a band, bands added up, lanes added up: h is counted below. The
//                norms are those of whole tensors (one group and channel): supersets of the terms' operands.
// Norms that are no smaller than those of the terms are as good. If they are not finite, although s is, they decide
// nothing. No least significant bits are kept: an output that they do not decide is repaired from memory, where its own
// norms and bits are found.
// Absent terms are zeros, as in the blocked product. direct_taps also multiplies whatever stands behind a window's last
// column by zeros, so that there a NaN says little.
#pragma once

#include "backends/cpu/product/conv_loaders.hpp"

namespace repdl::cpu::REPDL_ISA {

// Hands out aligned pieces of a worker's memory, as conv.cpp counted them.
class pieces {
 public:
  explicit pieces(void* memory) noexcept : at_(static_cast<char*>(memory)) {}
  template <class T>
  T* take(std::int64_t count) noexcept {
    T* const piece = reinterpret_cast<T*>(at_);
    at_ += (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return piece;
  }

 private:
  char* at_;
};

// Where plane i of sites or of terms is.
inline std::int64_t plane_offset(const conv_axis* axes, std::int64_t i, std::int64_t conv_axis::*stride) noexcept {
  return i / axes[1].size * axes[0].*stride + i % axes[1].size * axes[1].*stride;
}

// A band of one plane, copied; rows that are absent are one row of zeros.
class padded_plane {
 public:
  padded_plane(const conv_product& p, const conv_planes& d, float* memory) noexcept
      : p_(p), d_(d), row_(d.lines * d.length), memory_(memory) {
    for (std::int64_t i = 0; i < row_; ++i) memory[i] = 0;
  }
  // The rows with first_y <= y <= last_y of the plane at data[offset], where `offset` has the coordinates p.y, p.x.
  template <class T>
  void copy(const T* data, std::int64_t offset, std::int64_t first_y, std::int64_t last_y, std::int64_t unit_y,
            std::int64_t unit_x) noexcept {
    first_ = std::max<std::int64_t>(0, first_y);
    last_ = std::min(p_.height - 1, last_y);
    for (std::int64_t y = first_; y <= last_; ++y) {
      for (std::int64_t q = 0; q < d_.lines; ++q) {
        float* const line = memory_ + (1 + y - first_) * row_ + q * d_.length;
        const std::int64_t x = d_.first_x + q;
        const std::int64_t usable = d_.length - conv_planes::slack;
        index_range in = within(x, d_.step, p_.width, usable);
        if (in.begin >= in.end) in = {0, 0};
        for (std::int64_t j = 0; j < in.begin; ++j) line[j] = 0;
        if (in.begin < in.end) {
          const T* const from = data + offset + (y - p_.y) * unit_y + (x + in.begin * d_.step - p_.x) * unit_x;
          const std::int64_t stride = d_.step * unit_x;
          if (stride == 2) {  // vectorised for a known stride
            for (std::int64_t j = 0; j < in.end - in.begin; ++j) line[in.begin + j] = num::widen_to_float(from[2 * j]);
          } else {
            copy_run<false>(from, stride, in.end - in.begin, line + in.begin);
          }
        }
        for (std::int64_t j = in.end; j < d_.length; ++j) line[j] = 0;
      }
    }
  }
  // The largest square in row y; infinite or NaN with a number that is.
  double largest_square(std::int64_t y) const noexcept {
    if (y < first_ || y > last_) return 0;
    const float* const numbers = row(y);
    std::uint32_t largest = 0;  // magnitudes are ordered as their bits
    for (std::int64_t i = 0; i < row_; ++i) {
      const std::uint32_t magnitude = num::bits_of(numbers[i]) & 0x7fffffffu;
      largest = magnitude > largest ? magnitude : largest;
    }
    const double x = static_cast<double>(num::float_of(largest));
    return x * x;
  }
  const float* row(std::int64_t y) const noexcept {
    return memory_ + (y < first_ || y > last_ ? 0 : (1 + y - first_) * row_);
  }
  // Where x is in a row.
  std::int64_t at(std::int64_t x) const noexcept {
    const std::int64_t d = x - d_.first_x;
    return d % d_.step * d_.length + d / d_.step;
  }
  std::int64_t first_row() const noexcept { return first_; }
  std::int64_t copied_rows() const noexcept { return last_ < first_ ? 0 : last_ - first_ + 1; }
  const float* numbers() const noexcept { return memory_ + row_; }
  std::int64_t row_length() const noexcept { return row_; }

 private:
  const conv_product& p_;
  const conv_planes& d_;
  std::int64_t row_;
  float* memory_;
  std::int64_t first_ = 0, last_ = -1;
};

// Outputs (i, j .. j + count) of a product from their sums, which have room for whole vectors, and norms: tested,
// repaired, stored. padded: see repair_one.
template <class T>
[[gnu::noinline]] void finish_direct(const conv_problem<T, false>& problem, const gemm_problem& g, std::int64_t height,
                                     std::int64_t i, std::int64_t j, std::int64_t count, double row_norm,
                                     double column_norm, bool padded, double* sums, T* out, tier_counts& counts) {
  constexpr int lanes = exact_engine::lanes;
  const double factor = height > largest_height ? num::infinity : static_cast<double>(height + 4) * 0x1p-53;
  const bool forced = g.first_tier > tier::binary64;
  alignas(64) float bias[lanes] = {};
  if (problem.has_bias) problem.load_bias(i, j, lanes, bias);
  constexpr double no_bits[lanes] = {};
  double norms[lanes];
  for (double& x : norms) x = column_norm;
  std::int64_t repaired = 0;
  for (std::int64_t c = 0; c < count; c += lanes) {
    alignas(64) std::uint32_t differs[lanes];
    const u32h d =
        problem.has_bias
            ? exact_engine::test<T, true, true>(sums + c, bias, factor, row_norm, 0, norms, no_bits, out + c, differs)
            : exact_engine::test<T, false, true>(sums + c, bias, factor, row_norm, 0, norms, no_bits, out + c, differs);
    bool undecided = forced;
    for (int l = 0; l < lanes; ++l) undecided |= d[l] != 0;
    if (!undecided) [[likely]]
      continue;
    for (std::int64_t l = 0; l < std::min<std::int64_t>(lanes, count - c); ++l) {
      if (!forced && differs[l] == 0) continue;
      ++repaired;
      const operand_summary row(problem.a, i, g.k), column(problem.b, j + c + l, g.k);
      const tile_position at{i, j + c + l, 1, 1, &row.norm, &row.lowest_bit, &column.norm, &column.lowest_bit, nullptr};
      out[c + l] = repair_one(problem, g, at, 0, 0, sums[c + l], bias[0], padded, counts);
    }
  }
  problem.template store<1>(i, j, static_cast<int>(count), out);
  counts.elements[static_cast<int>(tier::binary64)] += count - repaired;
}

// `Vectors` vectors of sites of one output row, all channels: the taps of one plane, added to sums[channel][stride].
template <class Engine, int Channels, int Vectors>
[[gnu::always_inline]] inline void add_taps(const conv_product& p, const padded_plane& plane, std::int64_t y,
                                            const std::int64_t* offsets, const typename Engine::row_type* weights,
                                            std::int64_t site, bool first, typename Engine::sum_type* sums,
                                            std::int64_t stride) {
  using V = typename Engine::vector;
  constexpr int lanes = Engine::lanes;
  V s[Channels][Vectors];
  for (int m = 0; m < Channels; ++m)
    for (int v = 0; v < Vectors; ++v) s[m][v] = first ? V{} : load<V>(sums + m * stride + site + v * lanes);
  for (std::int64_t r = 0; r < p.term[2].size; ++r, y += p.term[2].y) {
    const float* const row = plane.row(y) + site;
    for (std::int64_t t = 0; t < p.term[3].size; ++t, weights += Channels) {
      const float* const from = row + offsets[t];
      V x[Vectors];
      for (int v = 0; v < Vectors; ++v) x[v] = Engine::load_column(from + v * lanes);
      for (int m = 0; m < Channels; ++m) {
        const V w = broadcast<V>(weights[m]);
        for (int v = 0; v < Vectors; ++v) s[m][v] = Engine::add_product(w, x[v], s[m][v]);
      }
    }
  }
  for (int m = 0; m < Channels; ++m)
    for (int v = 0; v < Vectors; ++v) store(sums + m * stride + site + v * lanes, s[m][v]);
}

template <class Engine, class T, int Channels>
tier_counts direct_band(const conv_product& p, const conv_planes& d, tier first_tier, std::int64_t group,
                        std::int64_t n, std::int64_t band, void* scratch) {
  using row_type = typename Engine::row_type;
  using sum_type = typename Engine::sum_type;
  constexpr bool exact = !Engine::continues;
  constexpr int lanes = Engine::lanes;
  constexpr int most_vectors = vector_bytes == 64 || Channels == 1 ? 4 : 2;
  const conv_problem<T, false> problem(&p, group);
  const gemm_problem g{p.groups, p.channels, p.sites(), p.terms(), false, &p, first_tier};
  const std::int64_t width = p.site[3].size;
  const std::int64_t stride = (width + conv_planes::slack - 1) / conv_planes::slack * conv_planes::slack;
  const std::int64_t taps = p.term[2].size * p.term[3].size;
  const std::int64_t planes = p.term[0].size * p.term[1].size;
  const std::int64_t row0 = band * d.rows;
  const std::int64_t rows = std::min(d.rows, p.site[2].size - row0);

  pieces memory(scratch);
  padded_plane plane(p, d, memory.take<float>((1 + d.copied) * d.lines * d.length));
  sum_type* const sums = memory.take<sum_type>((planes > 1 ? d.rows : 1) * Channels * stride);
  double* const squares = memory.take<double>(d.rows);  // per output row, the norm's square
  double* const largest = memory.take<double>(1 + d.copied);
  row_type* const weights = memory.take<row_type>(p.terms() * Channels);
  std::int64_t* const offsets = memory.take<std::int64_t>(p.term[3].size);
  T* const out = memory.take<T>(stride);

  double norm[Channels] = {};
  const T* const dense = problem.a.data;
  for (std::int64_t k = 0; k < p.terms(); ++k) {
    const std::int64_t at = axes_position(p.term, k).at(p.term, &conv_axis::other);
    for (int m = 0; m < Channels; ++m) {
      const float w = num::widen_to_float(dense[at + m * p.dense_channel]);
      weights[k * Channels + m] = w;
      norm[m] += static_cast<double>(w) * static_cast<double>(w);
    }
  }
  for (double& x : norm) x = num::sqrt(x);
  for (std::int64_t t = 0; t < p.term[3].size; ++t) offsets[t] = plane.at(p.x + t * p.term[3].x);

  const std::int64_t first_y = p.y + row0 * p.site[2].y;
  const std::int64_t last_y = first_y + (rows - 1) * p.site[2].y;
  tier_counts counts;
  for (std::int64_t c = 0; c < planes; ++c) {  // one at least: direct() in conv.cpp refuses empty terms
    plane.copy(problem.b.data,
               p.origin + plane_offset(p.site, n, &conv_axis::gathered) + plane_offset(p.term, c, &conv_axis::gathered),
               first_y + p.low_y, last_y + p.high_y, p.site[2].gathered / p.site[2].y,
               p.site[3].gathered / p.site[3].x);
    if constexpr (exact) {
      for (std::int64_t y = 0; y < plane.copied_rows(); ++y) largest[y] = plane.largest_square(plane.first_row() + y);
      for (std::int64_t i = 0; i < rows; ++i) {
        double sum = 0;
        for (std::int64_t r = 0; r < p.term[2].size; ++r) {
          const std::int64_t y = first_y + i * p.site[2].y + r * p.term[2].y - plane.first_row();
          if (y >= 0 && y < plane.copied_rows()) sum += static_cast<double>(p.term[3].size) * largest[y];
        }
        squares[i] = (c == 0 ? 0 : squares[i]) + sum;
      }
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      sum_type* const s = sums + (planes > 1 ? i * Channels * stride : 0);
      const row_type* const w = weights + c * taps * Channels;
      std::int64_t site0 = 0;
      while (site0 < width) {
        const std::int64_t rest = width - site0;
        const int vectors = most_vectors == 4 && rest > 2 * lanes ? 4 : rest > lanes ? 2 : 1;
        const std::int64_t y = first_y + i * p.site[2].y;
        if (vectors == 1) {
          add_taps<Engine, Channels, 1>(p, plane, y, offsets, w, site0, c == 0, s, stride);
        } else if (vectors == 2) {
          add_taps<Engine, Channels, 2>(p, plane, y, offsets, w, site0, c == 0, s, stride);
        } else {
          add_taps<Engine, Channels, most_vectors>(p, plane, y, offsets, w, site0, c == 0, s, stride);
        }
        site0 += vectors * lanes;
      }
      if (c + 1 < planes) continue;
      const std::int64_t site = (n * p.site[2].size + row0 + i) * width;
      if constexpr (exact) {
        const double largest_norm = num::sqrt(squares[i]);
        for (int m = 0; m < Channels; ++m)
          finish_direct(problem, g, p.terms() + 1, m, site, width, norm[m], largest_norm, false, s + m * stride, out,
                        counts);
      } else {
        const tile_position at{0, site, Channels, static_cast<int>(width), nullptr, nullptr, nullptr, nullptr, nullptr};
        for (int m = 0; m < Channels; ++m) {
          float* const row = s + m * stride;
          Engine::redo_doubtful(problem, g, at, m, row);
          float bias[1] = {};
          if (problem.has_bias) problem.load_bias(m, site, 1, bias);
          for (std::int64_t x = 0; x < width; ++x)
            out[x] = num::canonical(problem.has_bias ? row[x] + bias[0] : row[x]);
          problem.template store<1>(m, site, static_cast<int>(width), out);
        }
        counts.elements[static_cast<int>(tier::proved)] += Channels * width;
      }
    }
  }
  return counts;
}

// sums[t][lane] += the products of a band of dense rows (g, of `row` numbers each) with the plane under `Taps` taps.
template <int Taps>
void add_products(const float* g, std::int64_t rows, std::int64_t row, const padded_plane& plane, const std::int64_t* y,
                  std::int64_t step_y, const std::int64_t* offsets, double* sums) noexcept {
  constexpr int lanes = exact_engine::lanes;
  f64v s[Taps];
  for (f64v& x : s) x = f64v{};
  for (std::int64_t i = 0; i < rows; ++i, g += row) {
    const float* from[Taps];
    for (int t = 0; t < Taps; ++t) from[t] = plane.row(y[t] + i * step_y) + offsets[t];
    for (std::int64_t x = 0; x < row; x += lanes) {
      const f64v a = widen(load<f32h>(g + x));
      for (int t = 0; t < Taps; ++t) s[t] = fma_exact_product(a, widen(load<f32h>(from[t] + x)), s[t]);
    }
  }
  for (int t = 0; t < Taps; ++t) store(sums + t * lanes, load<f64v>(sums + t * lanes) + s[t]);
}

[[gnu::noinline]] inline double sum_of_squares(const float* numbers, std::int64_t count) noexcept {
  constexpr int lanes = exact_engine::lanes;
  constexpr int chains = 4;
  f64v s[chains] = {};
  std::int64_t i = 0;
  for (; i + chains * lanes <= count; i += chains * lanes) {
    for (int c = 0; c < chains; ++c) {
      const f64v x = widen(load<f32h>(numbers + i + c * lanes));
      s[c] = fma_exact_product(x, x, s[c]);
    }
  }
  const f64v together = (s[0] + s[1]) + (s[2] + s[3]);
  double sum = 0;
  for (int l = 0; l < lanes; ++l) sum += together[l];
  for (; i < count; ++i) sum += static_cast<double>(numbers[i]) * static_cast<double>(numbers[i]);
  return sum;
}

template <class T>
tier_counts direct_taps(const conv_product& p, const conv_planes& d, tier first_tier, std::int64_t group,
                        std::int64_t of_kernel, void* scratch) {
  constexpr int lanes = exact_engine::lanes;
  constexpr int together = 9;
  using function = void (*)(const float*, std::int64_t, std::int64_t, const padded_plane&, const std::int64_t*,
                            std::int64_t, const std::int64_t*, double*) noexcept;
  constexpr function add[together] = {add_products<1>, add_products<2>, add_products<3>,
                                      add_products<4>, add_products<5>, add_products<6>,
                                      add_products<7>, add_products<8>, add_products<9>};
  const conv_problem<T, false> problem(&p, group);
  const gemm_problem g{p.groups, p.channels, p.sites(), p.terms(), false, &p, first_tier};
  const std::int64_t taps = p.site[2].size * p.site[3].size;
  const std::int64_t width = p.term[3].size;
  const std::int64_t row = (width + lanes - 1) / lanes * lanes;

  pieces memory(scratch);
  padded_plane plane(p, d, memory.take<float>((1 + d.copied) * d.lines * d.length));
  float* const dense = memory.take<float>(d.rows * (width + conv_planes::slack));
  double* const sums = memory.take<double>(p.channels * taps * lanes);
  std::int64_t* const offsets = memory.take<std::int64_t>(taps);
  std::int64_t* const tap_y = memory.take<std::int64_t>(taps);
  double* const total = memory.take<double>(taps + lanes);
  double* const dense_norm = memory.take<double>(p.channels);
  T* const out = memory.take<T>(taps + lanes);
  for (std::int64_t i = 0; i < p.channels * taps * lanes; ++i) sums[i] = 0;
  for (std::int64_t m = 0; m < p.channels; ++m) dense_norm[m] = 0;
  for (std::int64_t t = 0; t < taps; ++t) offsets[t] = plane.at(p.x + t % p.site[3].size * p.site[3].x);

  std::int64_t low = 0, high = 0;  // of the taps' part of y
  const std::int64_t reach = (p.site[2].size - 1) * p.site[2].y;
  (reach < 0 ? low : high) = reach;
  double norm = 0;
  const std::int64_t planes = p.term[0].size * p.term[1].size;
  for (std::int64_t n = 0; n < planes; ++n) {
    const std::int64_t dense_at = plane_offset(p.term, n, &conv_axis::other);
    const std::int64_t image_at = p.origin + plane_offset(p.term, n, &conv_axis::gathered) +
                                  plane_offset(p.site, of_kernel, &conv_axis::gathered);
    for (std::int64_t row0 = 0; row0 < p.term[2].size; row0 += d.rows) {
      const std::int64_t rows = std::min(d.rows, p.term[2].size - row0);
      const std::int64_t first_y = p.y + row0 * p.term[2].y;
      plane.copy(problem.b.data, image_at, first_y + low, first_y + (rows - 1) * p.term[2].y + high,
                 p.term[2].gathered / p.term[2].y, p.term[3].gathered / p.term[3].x);
      norm += sum_of_squares(plane.numbers(), plane.copied_rows() * plane.row_length());
      for (std::int64_t t = 0; t < taps; ++t) tap_y[t] = first_y + t / p.site[3].size * p.site[2].y;
      for (std::int64_t m = 0; m < p.channels; ++m) {
        const T* const from = problem.a.data + m * p.dense_channel + dense_at;
        for (std::int64_t i = 0; i < rows; ++i) {
          copy_run<false>(from + (row0 + i) * p.term[2].other, p.term[3].other, width, dense + i * row);
          for (std::int64_t x = width; x < row; ++x) dense[i * row + x] = 0;
        }
        dense_norm[m] += sum_of_squares(dense, rows * row);
        for (std::int64_t t = 0; t < taps; t += together) {
          const auto some = static_cast<std::size_t>(std::min<std::int64_t>(together, taps - t));
          add[some - 1](dense, rows, row, plane, tap_y + t, p.term[2].y, offsets + t, sums + (m * taps + t) * lanes);
        }
      }
    }
  }

  // The longest path: a band, the bands, the lanes. The norms' sums of squares are no higher: a band has d.copied rows
  // of d.lines * d.length numbers there.
  const std::int64_t bands = planes * d.bands;
  const std::int64_t plane_chain = d.copied * d.lines * d.length / lanes + 5 * lanes;
  const std::int64_t height = std::max(d.rows * row / lanes, plane_chain) + bands + lanes + 1;
  tier_counts counts;
  for (std::int64_t m = 0; m < p.channels; ++m) {
    for (std::int64_t t = 0; t < taps; ++t) {
      double s = 0;
      for (int l = 0; l < lanes; ++l) s += sums[(m * taps + t) * lanes + l];
      total[t] = s;
    }
    for (std::int64_t t = taps; t < taps + lanes; ++t) total[t] = 0;
    finish_direct(problem, g, height, m, of_kernel * taps, taps, num::sqrt(dense_norm[m]), num::sqrt(norm), true, total,
                  out, counts);
  }
  return counts;
}

}  // namespace repdl::cpu::REPDL_ISA
