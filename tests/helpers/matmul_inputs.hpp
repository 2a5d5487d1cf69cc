// What matmul is tested on: matrices at awkward strides, and classes of values, among them some crafted so that every
// output is hard to round.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

namespace matmul_inputs {

using random_engine = std::mt19937_64;

inline std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
inline float from_bits(std::uint32_t b) { return std::bit_cast<float>(b); }
inline constexpr float inf = std::numeric_limits<float>::infinity();

// ---------------------------------------------------------------------------------------------------------- matrices

// A matrix in a buffer of its own, at strides of its own.
struct matrix {
  std::int64_t batches = 0, rows = 0, cols = 0;
  std::int64_t batch = 0, row = 0, col = 0, origin = 0;
  std::vector<float> buffer;

  float& at(std::int64_t b, std::int64_t i, std::int64_t j) {
    return buffer[static_cast<std::size_t>(origin + b * batch + i * row + j * col)];
  }
  float at(std::int64_t b, std::int64_t i, std::int64_t j) const { return const_cast<matrix*>(this)->at(b, i, j); }
};

enum class layout { row_major, transposed, padded, strided, reversed, one_row, one_column, scalar };
constexpr layout every_layout[] = {layout::row_major, layout::transposed, layout::padded,     layout::strided,
                                   layout::reversed,  layout::one_row,    layout::one_column, layout::scalar};
constexpr int output_layouts = 5;  // the first ones: no element twice

inline matrix make(std::int64_t batches, std::int64_t rows, std::int64_t cols, layout how, bool shared,
                   bool misaligned) {
  matrix m;
  m.batches = batches;
  m.rows = rows;
  m.cols = cols;
  switch (how) {
    case layout::row_major:
      m.row = cols, m.col = 1;
      break;
    case layout::transposed:
      m.row = 1, m.col = rows;
      break;
    case layout::padded:
      m.row = cols + 3, m.col = 1;
      break;
    case layout::strided:
      m.row = 2 * cols + 1, m.col = 2;
      break;
    case layout::reversed:
      m.row = -cols, m.col = -1;
      break;
    case layout::one_row:
      m.row = 0, m.col = 1;
      break;
    case layout::one_column:
      m.row = 1, m.col = 0;
      break;
    case layout::scalar:
      m.row = 0, m.col = 0;
      break;
  }
  const std::int64_t span =
      std::max<std::int64_t>(0, rows - 1) * std::abs(m.row) + std::max<std::int64_t>(0, cols - 1) * std::abs(m.col) + 1;
  m.batch = shared ? 0 : span;
  m.origin = (misaligned ? 1 : 0) + (how == layout::reversed ? span - 1 : 0);
  m.buffer.assign(static_cast<std::size_t>(span * (shared ? 1 : batches) + 2), from_bits(0xdeadbeefu));
  return m;
}

// ----------------------------------------------------------------------------------------------------------- classes

enum class kind {
  normal,
  integers,
  bf16_values,
  powers,
  bit_patterns,
  wide,
  subnormal,
  zeros,
  special,
  sparse,
  cancelling,
  ties,
  overflow_border,
  stagnation,
  bias_stagnation,
  lattice_border,
  double_double_border,  // crafted
  count
};
constexpr const char* kind_names[] = {"normal",
                                      "integers",
                                      "bf16",
                                      "powers",
                                      "bit patterns",
                                      "wide",
                                      "subnormal",
                                      "zeros",
                                      "special",
                                      "sparse",
                                      "cancelling",
                                      "ties",
                                      "overflow border",
                                      "stagnation",
                                      "bias stagnation",
                                      "lattice border",
                                      "double-double border"};
constexpr bool crafted(kind k) { return k >= kind::cancelling; }

inline float any_finite(random_engine& g) {
  for (;;) {
    const float x = from_bits(static_cast<std::uint32_t>(g()));
    if (std::isfinite(x)) return x;
  }
}

inline int uniform(random_engine& g, int low, int high) {
  return low + static_cast<int>(g() % static_cast<std::uint64_t>(high - low + 1));
}

inline float element(kind what, random_engine& g) {
  std::normal_distribution<float> normal;
  switch (what) {
    case kind::integers:
      return static_cast<float>(uniform(g, -50, 50));
    case kind::bf16_values:
      return from_bits(bits(normal(g)) & 0xffff0000u);
    case kind::powers:
      return std::ldexp(uniform(g, 0, 1) != 0 ? 1.0f : -1.0f, uniform(g, -20, 20));
    case kind::bit_patterns:
      return any_finite(g);
    case kind::wide:
      return std::ldexp(normal(g), uniform(g, -40, 40));
    case kind::subnormal:
      return uniform(g, 0, 3) == 0 ? from_bits(static_cast<std::uint32_t>(g()) & 0x807fffffu)
                                   : std::ldexp(normal(g), uniform(g, -78, -70));
    case kind::zeros:
      return uniform(g, 0, 9) == 0 ? normal(g) : uniform(g, 0, 1) != 0 ? 0.0f : -0.0f;
    case kind::special: {
      const float odd[] = {inf, -inf, from_bits(0x7f800001u), from_bits(0xffc12345u), 0.0f, -0.0f};
      return uniform(g, 0, 99) < 2 ? odd[uniform(g, 0, 5)] : normal(g);
    }
    case kind::sparse:
      return uniform(g, 0, 3) != 0 ? 0.0f : normal(g);
    default:
      return normal(g);
  }
}

// Two vectors and a bias with a chosen u.v + c.
struct product {
  std::vector<float> u, v;
  float bias = 0;
};

inline product craft(kind what, std::int64_t k, random_engine& g) {
  product p;
  const auto size = static_cast<std::size_t>(k);
  const auto put = [&](float x, float y) {
    if (p.u.size() < size) p.u.push_back(x), p.v.push_back(y);
  };
  const float sign = uniform(g, 0, 1) != 0 ? 1.0f : -1.0f;
  bool in_order = true;
  switch (what) {
    case kind::stagnation: {
      // (1 + 2^-24) - d + t terms of almost 2^-53, each of which a binary64 sum above 1 loses: the error is nearly the
      // whole bound. The exact sum lies just above the midpoint, or just below it (d a little larger).
      const int t = static_cast<int>(std::min<std::int64_t>(std::max<std::int64_t>(k - 3, 0), 180));
      put(1, 1);
      put(0x1p-12f, 0x1p-12f);
      put(static_cast<float>(t - uniform(g, 0, 1)) * 0x1p-20f, -0x1p-33f);
      for (int i = 0; i < t; ++i) put(0x1p-30f, 0x1.fffffep-24f);
      p.bias = uniform(g, 0, 1) != 0 ? 0.0f : sign * 0x1p-70f;
      break;
    }
    case kind::bias_stagnation:  // 1 + (2^-24 +- 2^-60): the last addition is where the rounding error is
      put(0x1p-12f, 0x1p-12f);
      put(0x1p-30f, sign * 0x1p-30f);
      p.bias = 1;
      break;
    case kind::lattice_border:  // 2^54 + 2^30 + 1 with the only odd term in a number of 24 bits
      put(0x1p27f, 0x1p27f);
      put(32768.0f - 256.0f, 32768.0f);
      put(8388609.0f, 1);
      break;
    case kind::double_double_border:  // a tie that the double-double lattice holds, moved by a bias that it does not
      put(0x1p30f, 0x1p30f);
      put(static_cast<float>((g() % (1u << 23)) | (1u << 23)), 1);
      put(0.5f, 1);
      put(-0x1p30f, 0x1p30f);
      p.bias = sign * 0x1p-60f;
      break;
    case kind::overflow_border:  // the largest number, and half an ulp: the tie that goes to infinity
      put(0x1.fffffep127f, 1);
      put(0x1p103f, 1);
      in_order = false;
      break;
    case kind::ties:  // 24 bits, and a half behind them
      put(static_cast<float>((g() % (1u << 23)) | (1u << 23)), 1);
      put(0.5f, 1);
      p.bias = uniform(g, 0, 1) != 0 ? 0.0f : sign * std::ldexp(1.0f, uniform(g, -149, -20));
      in_order = false;
      break;
    default:
      in_order = false;
      break;
  }
  // Pairs of terms that cancel.
  while (!in_order && p.u.size() + 1 < size) {
    const float x = element(kind::wide, g), y = element(kind::wide, g);
    const bool first = uniform(g, 0, 1) != 0;
    put(x, y);
    put(first ? -x : x, first ? y : -y);
  }
  while (p.u.size() < size) put(0, 0);
  if (!in_order) {
    const std::uint64_t seed = g();
    random_engine one(seed), other(seed);
    std::shuffle(p.u.begin(), p.u.end(), one);
    std::shuffle(p.v.begin(), p.v.end(), other);
  }
  return p;
}

// Fills a (m x k), b (k x n) and the bias. In the crafted classes row i of a is u and column j of b is v, scaled by
// powers of two, so that every output meets the case; in some columns a last term of its own (where u and v have a zero
// there, or in the classes whose order does not matter) moves the sum off it by next to nothing.
inline void fill(kind what, matrix& a, matrix& b, matrix& bias, std::int64_t k, random_engine& g) {
  for (std::int64_t batch = 0; batch < a.batches; ++batch) {
    if (!crafted(what)) {
      for (std::int64_t i = 0; i < a.rows; ++i)
        for (std::int64_t x = 0; x < k; ++x) a.at(batch, i, x) = element(what, g);
      for (std::int64_t x = 0; x < k; ++x)
        for (std::int64_t j = 0; j < b.cols; ++j) b.at(batch, x, j) = element(what, g);
      for (std::int64_t i = 0; i < a.rows; ++i)
        for (std::int64_t j = 0; j < b.cols; ++j) bias.at(batch, i, j) = element(what, g);
      continue;
    }
    const product p = craft(what, k, g);
    const int reach = what == kind::overflow_border ? 0 : 3;
    const auto scales = [&](std::int64_t n, bool signs) {
      std::vector<float> s;
      for (std::int64_t i = 0; i < n; ++i)
        s.push_back(std::ldexp(signs && uniform(g, 0, 1) != 0 ? -1.0f : 1.0f, uniform(g, -reach, reach)));
      return s;
    };
    const std::vector<float> down = scales(a.rows, true), across = scales(b.cols, false);
    // The last term is the columns' own.
    const bool tail = k > 5 && (what < kind::stagnation || p.u.back() == 0);
    for (std::int64_t x = 0; x < k; ++x) {
      const auto at = static_cast<std::size_t>(x);
      const bool own = tail && x == k - 1;
      for (std::int64_t i = 0; i < a.rows; ++i)
        a.at(batch, i, x) = own ? 1.0f : down[static_cast<std::size_t>(i)] * p.u[at];
      for (std::int64_t j = 0; j < b.cols; ++j) {
        const int choice = uniform(g, 0, 2);
        const float residue = choice == 0 ? 0.0f : std::ldexp(choice == 1 ? 1.0f : -1.0f, uniform(g, -149, -20));
        b.at(batch, x, j) =
            own ? (uniform(g, 0, 1) != 0 ? residue : 0.0f) : across[static_cast<std::size_t>(j)] * p.v[at];
      }
    }
    for (std::int64_t i = 0; i < a.rows; ++i)
      for (std::int64_t j = 0; j < b.cols; ++j)
        bias.at(batch, i, j) = p.bias * down[static_cast<std::size_t>(i)] * across[static_cast<std::size_t>(j)];
  }
}

}  // namespace matmul_inputs
