// What convolution is tested on, and what its results must be: problems of random shape, layout and value class, and
// naive loops over the taps that are present.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "librepdl/num/fixed_point.hpp"
#include "librepdl/ops/pair.hpp"

namespace conv_problems {

using namespace repdl;

using random_engine = std::mt19937_64;
constexpr float inf = __builtin_inff();

inline std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
inline float from_bits(std::uint32_t b) { return std::bit_cast<float>(b); }
inline const float poison = from_bits(0xdeadbeef);
inline std::int64_t uniform(random_engine& g, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(g() % static_cast<std::uint64_t>(high - low + 1));
}
inline bool one_in(random_engine& g, std::int64_t n) { return uniform(g, 1, n) == 1; }

// ----------------------------------------------------------------------------------------------------------- tensors

// A tensor of rank 4 somewhere in a buffer, in any layout.
struct host_tensor {
  sizes shape, strides;
  std::int64_t origin = 0;
  std::vector<float> buffer;

  float& at(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
    return buffer[static_cast<std::size_t>(origin + a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3])];
  }
  float at(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) const {
    return const_cast<host_tensor&>(*this).at(a, b, c, d);
  }
  std::int64_t count() const { return element_count(shape); }
};

inline host_tensor row_major_tensor(const sizes& shape) {
  host_tensor t{shape, row_major(shape), 0, {}};
  t.buffer.assign(static_cast<std::size_t>(t.count()), poison);
  return t;
}

// Row-major, channels-last, axes in any order; gaps; negative and (inputs) zero strides; misaligned.
inline host_tensor any_layout(random_engine& g, const sizes& shape, bool output) {
  host_tensor t{shape, shape, 0, {}};
  int order[4] = {0, 1, 2, 3};
  const std::int64_t kind = uniform(g, 0, 9);
  if (kind <= 2) std::rotate(order + 1, order + 2, order + 4);  // channels last
  if (kind == 3) std::shuffle(order, order + 4, g);
  std::int64_t step = one_in(g, 6) ? 2 : 1;
  for (int i = 3; i >= 0; --i) {
    t.strides[order[i]] = step;
    step *= std::max<std::int64_t>(1, shape[order[i]]);
    if (one_in(g, 10)) step += uniform(g, 1, 3);
  }
  std::int64_t low = 0, high = 0;
  for (int i = 0; i < 4; ++i) {
    if (one_in(g, 12)) t.strides[i] = -t.strides[i];
    if (!output && one_in(g, 25)) t.strides[i] = 0;
    const std::int64_t end = (std::max<std::int64_t>(1, shape[i]) - 1) * t.strides[i];
    (end < 0 ? low : high) += end;
  }
  const std::int64_t before = uniform(g, 0, 3);
  t.origin = before - low;
  t.buffer.assign(static_cast<std::size_t>(before + high - low + 3), poison);
  return t;
}

// ----------------------------------------------------------------------------------------------------------- classes

enum class kind {
  normal,
  integers,
  bf16_values,
  wide,
  patterns,
  subnormal,
  underflow,  // chains reach -0
  zeros,
  special,
  all_special,
  ties,
  overflow_border,
  count
};

inline float element(kind what, random_engine& g) {
  std::normal_distribution<float> normal;
  const auto one_of = [&](std::initializer_list<float> values) {
    return values.begin()[uniform(g, 0, static_cast<std::int64_t>(values.size()) - 1)];
  };
  switch (what) {
    case kind::integers:
      return static_cast<float>(uniform(g, -50, 50));
    case kind::bf16_values:
      return from_bits(bits(normal(g)) & 0xffff0000u);
    case kind::wide:
      return std::ldexp(normal(g), static_cast<int>(uniform(g, -40, 40)));
    case kind::patterns:
      for (;;) {
        const float x = from_bits(static_cast<std::uint32_t>(g()));
        if (std::isfinite(x)) return x;
      }
    case kind::subnormal:
      return one_in(g, 4) ? from_bits(static_cast<std::uint32_t>(g()) & 0x807fffffu)
                          : std::ldexp(normal(g), static_cast<int>(uniform(g, -78, -70)));
    case kind::underflow:
      return one_of({0.0f, -0.0f, 0x1p-149f, -0x1p-149f, 0x1p-75f, -0x1p-75f, 0x1p-80f, -0x1p-80f});
    case kind::zeros:
      return one_in(g, 10) ? normal(g) : one_of({0.0f, -0.0f});
    case kind::special:
      return one_in(g, 30) ? one_of({inf, -inf, from_bits(0x7f800001u), from_bits(0xffc12345u), 0.0f, -0.0f})
                           : normal(g);
    case kind::all_special:
      return one_of({inf, -inf, 0.0f, -0.0f, 1.0f, 2.0f});
    case kind::ties:
      return one_of({1.0f, -1.0f, 0x1p-12f, 0x1p-24f, -0x1p-24f, 1 + 0x1p-23f, 0x1p12f, -0x1p12f});
    case kind::overflow_border:
      return one_of({0x1.fffffep127f, -0x1.fffffep127f, 1.0f, -1.0f, 0.5f, 0x1p103f});
    default:
      return normal(g);
  }
}

inline void fill(host_tensor& t, kind what, random_engine& g) {
  for (float& x : t.buffer) x = element(what, g);
}

// ---------------------------------------------------------------------------------------------------------- problems

enum class direction { forward, grad_input, grad_weight };
constexpr const char* op_names[] = {"conv2d", "conv2d_grad_input", "conv2d_grad_weight"};

struct geometry {
  std::int64_t n = 1, groups = 1, c = 1, o = 1, h = 1, w = 1, kh = 1, kw = 1;  // c and o per group
  ops::pair stride{}, dilation{};
  ops::sides padding{};

  std::int64_t oh() const { return windows(h + padding.top + padding.bottom, kh, dilation.h, stride.h); }
  std::int64_t ow() const { return windows(w + padding.left + padding.right, kw, dilation.w, stride.w); }
  bool valid() const { return oh() > 0 && ow() > 0; }
  double work() const { return static_cast<double>(n * groups * c * o * kh * kw) * static_cast<double>(oh() * ow()); }

 private:
  static std::int64_t windows(std::int64_t size, std::int64_t kernel, std::int64_t dilation, std::int64_t stride) {
    const std::int64_t room = size - dilation * (kernel - 1) - 1;
    return room < 0 ? 0 : room / stride + 1;
  }
};

struct problem {
  direction way = direction::forward;
  geometry at;
  host_tensor image, kernel, result;
  std::vector<float> bias;  // may be empty

  host_tensor& out() { return way == direction::forward ? result : way == direction::grad_input ? image : kernel; }
  const host_tensor& first() const { return way == direction::forward ? image : result; }
  const host_tensor& second() const { return way == direction::grad_weight ? image : kernel; }
};

inline problem make_problem(direction way, const geometry& at, kind what, random_engine& g, bool any,
                            bool bias = false) {
  problem p;
  p.way = way;
  p.at = at;
  const auto make = [&](const sizes& shape, direction output) {
    host_tensor t = any ? any_layout(g, shape, way == output) : row_major_tensor(shape);
    if (way != output) fill(t, what, g);
    return t;
  };
  p.image = make({at.n, at.groups * at.c, at.h, at.w}, direction::grad_input);
  p.kernel = make({at.groups * at.o, at.c, at.kh, at.kw}, direction::grad_weight);
  p.result = make({at.n, at.groups * at.o, at.oh(), at.ow()}, direction::forward);
  if (bias && way == direction::forward)
    for (std::int64_t i = 0; i < at.groups * at.o; ++i) p.bias.push_back(element(what, g));
  return p;
}

inline geometry any_geometry(random_engine& g) {
  for (;;) {
    geometry s;
    s.n = uniform(g, 0, 4);
    s.groups = one_in(g, 3) ? uniform(g, 1, 6) : 1;
    s.c = one_in(g, 10) ? 0 : uniform(g, 1, 5);
    s.o = one_in(g, 12) ? 0 : uniform(g, 1, 12);
    if (one_in(g, 5)) s.c = 1, s.o = uniform(g, 1, 2), s.groups = uniform(g, 1, 12);  // depthwise
    s.h = one_in(g, 30) ? 0 : uniform(g, 1, 9);
    s.w = uniform(g, 1, 20);
    s.kh = uniform(g, 1, 5);
    s.kw = one_in(g, 30) ? 12 : uniform(g, 1, 5);
    if (one_in(g, 4)) s.kh = s.kw = 1;
    if (one_in(g, 4)) s.kh = s.kw = 3;
    if (one_in(g, 2)) s.stride = {uniform(g, 1, 3), uniform(g, 1, 3)};
    if (one_in(g, 15)) s.stride = {uniform(g, 1, 9), uniform(g, 1, 9)};
    if (one_in(g, 2)) s.dilation = {uniform(g, 1, 3), uniform(g, 1, 3)};
    if (!one_in(g, 4)) s.padding = {uniform(g, 0, 3), uniform(g, 0, 3), uniform(g, 0, 3), uniform(g, 0, 3)};
    if (s.valid() && s.work() < 1e5) return s;
  }
}

// ------------------------------------------------------------------------------------------------------------ oracle

struct expected {
  std::vector<float> exact, chain;
};

inline expected naive(const problem& p) {
  const geometry& s = p.at;
  expected e;
  num::exact_sum<float, 2> sum;
  float chain = 0;
  const auto term = [&](float a, float b) {
    chain = std::fmaf(a, b, chain);
    sum.add_product(a, b);
  };
  const auto finish = [&](const float* bias) {
    if (bias != nullptr) {
      chain += *bias;
      sum.add(*bias);
    }
    e.exact.push_back(sum.round());
    e.chain.push_back(std::isnan(chain) ? from_bits(0x7fc00000u) : chain);
    sum = {};
    chain = 0;
  };
  // use(r, s, y, x): image pixel (y, x) is under tap (r, s) of the window at (oh, ow).
  const auto tap = [&](std::int64_t oh, std::int64_t ow, std::int64_t r, std::int64_t t, const auto& use) {
    const std::int64_t y = oh * s.stride.h + r * s.dilation.h - s.padding.top;
    const std::int64_t x = ow * s.stride.w + t * s.dilation.w - s.padding.left;
    if (y >= 0 && y < s.h && x >= 0 && x < s.w) use(y, x);
  };
  const std::int64_t oh = s.oh(), ow = s.ow();
  for (std::int64_t n = 0; n < (p.way == direction::grad_weight ? 1 : s.n); ++n) {
    for (std::int64_t group = 0; group < s.groups; ++group) {
      const auto in_channel = [&](std::int64_t c) { return group * s.c + c; };
      const auto out_channel = [&](std::int64_t o) { return group * s.o + o; };
      switch (p.way) {
        case direction::forward:
          for (std::int64_t o = 0; o < s.o; ++o)
            for (std::int64_t i = 0; i < oh * ow; ++i) {
              for (std::int64_t c = 0; c < s.c; ++c)
                for (std::int64_t k = 0; k < s.kh * s.kw; ++k)
                  tap(i / ow, i % ow, k / s.kw, k % s.kw, [&](std::int64_t y, std::int64_t x) {
                    term(p.image.at(n, in_channel(c), y, x), p.kernel.at(out_channel(o), c, k / s.kw, k % s.kw));
                  });
              finish(p.bias.empty() ? nullptr : &p.bias[static_cast<std::size_t>(out_channel(o))]);
            }
          break;
        case direction::grad_input:
          for (std::int64_t c = 0; c < s.c; ++c)
            for (std::int64_t i = 0; i < s.h * s.w; ++i) {
              for (std::int64_t o = 0; o < s.o; ++o)
                for (std::int64_t k = 0; k < s.kh * s.kw; ++k) {
                  const std::int64_t y = i / s.w + s.padding.top - k / s.kw * s.dilation.h;
                  const std::int64_t x = i % s.w + s.padding.left - k % s.kw * s.dilation.w;
                  if (y < 0 || x < 0 || y % s.stride.h != 0 || x % s.stride.w != 0) continue;
                  if (y / s.stride.h >= oh || x / s.stride.w >= ow) continue;
                  term(p.result.at(n, out_channel(o), y / s.stride.h, x / s.stride.w),
                       p.kernel.at(out_channel(o), c, k / s.kw, k % s.kw));
                }
              finish(nullptr);
            }
          break;
        case direction::grad_weight:
          for (std::int64_t o = 0; o < s.o; ++o)
            for (std::int64_t c = 0; c < s.c; ++c)
              for (std::int64_t k = 0; k < s.kh * s.kw; ++k) {
                for (std::int64_t sample = 0; sample < s.n; ++sample)
                  for (std::int64_t i = 0; i < oh * ow; ++i)
                    tap(i / ow, i % ow, k / s.kw, k % s.kw, [&](std::int64_t y, std::int64_t x) {
                      term(p.result.at(sample, out_channel(o), i / ow, i % ow),
                           p.image.at(sample, in_channel(c), y, x));
                    });
                finish(nullptr);
              }
          break;
      }
    }
  }
  return e;
}

}  // namespace conv_problems
