// How operands of the convolutions' product kernel get from tensors into shared memory.
#pragma once

#include "backends/cuda/core/async_copy.cuh"
#include "backends/cuda/core/launch.cuh"
#include "backends/cuda/product/conv.hpp"

namespace repdl::cuda::conv {

// One operand's panel in shared memory: Lines rows of a (columns of b) by panel_k terms, as float. Lane (g, t) of a
// warp takes terms 4 t .. 4 t + 3 (any assignment will do, a and b agree).
//   k fast: [position of line][k], read four terms of a line at a time; neighbouring lanes' lines are neighbours
//   else:   [slot of k][line], read V lines at a time
// Reads are free of bank conflicts.
template <int Lines, bool KFast, int V>
struct panel {
  static constexpr int lines = Lines;
  static constexpr bool k_fast = KFast;
  static constexpr int pitch = KFast ? panel_k : Lines + 8;
  static constexpr int size = KFast ? Lines * pitch : panel_k * pitch;

  __device__ static int position(int line) {
    return KFast ? line / (8 * V) * (8 * V) + line % V * 8 + line / V % 8 : line;
  }
  __device__ static int place(int position, int k) {
    return KFast ? position * pitch + k : (k % 4 * 4 + k / 4) * pitch + position;
  }

  // f[q][j]: term 4 t + j of line base + (line of q and g).
  template <int Q>
  __device__ static void read(const float* from, int base, int g, int t, float (&f)[Q][4]) {
    if constexpr (KFast) {
#pragma unroll
      for (int q = 0; q < Q; ++q) {
        const float4 x =
            *reinterpret_cast<const float4*>(from + (base + q / V * 8 * V + q % V * 8 + g) * pitch + 4 * t);
        f[q][0] = x.x;
        f[q][1] = x.y;
        f[q][2] = x.z;
        f[q][3] = x.w;
      }
    } else {
#pragma unroll
      for (int q = 0; q < Q; q += V) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float* const at = from + (4 * j + t) * pitch + base + q * 8 + g * V;
          if constexpr (V == 4) {
            const float4 x = *reinterpret_cast<const float4*>(at);
            f[q][j] = x.x;
            f[q + 1][j] = x.y;
            f[q + 2][j] = x.z;
            f[q + 3][j] = x.w;
          } else if constexpr (V == 2) {
            const float2 x = *reinterpret_cast<const float2*>(at);
            f[q][j] = x.x;
            f[q + 1][j] = x.y;
          } else {
            f[q][j] = *at;
          }
        }
      }
    }
  }
};

// Where an element lies: the sum of two of these.
struct __align__(16) place {
  std::int64_t address;  // bytes; absolute in an operand's outer half
  int y, x;
};
template <class T = float>
__device__ place outer_place(const operand& t, const void* data, const index4& n) {
  const side& s = t.outer;
  constexpr std::int64_t bytes = sizeof(T);
  return {reinterpret_cast<std::int64_t>(data) + bytes * s.offset_at(n), static_cast<int>(s.y_at(n)),
          static_cast<int>(s.x_at(n))};
}
template <class T = float>
__device__ place inner_place(const operand& t, const index4& n) {
  const side& s = t.inner;
  constexpr std::int64_t bytes = sizeof(T);
  return {bytes * s.offset_at(n), static_cast<int>(s.y_at(n)), static_cast<int>(s.x_at(n))};
}
// One load of 16 bytes.
__device__ inline place load_place(const place* from) {
  const int4 x = *reinterpret_cast<const int4*>(from);
  return {static_cast<std::int64_t>(static_cast<std::uint32_t>(x.x)) | static_cast<std::int64_t>(x.y) << 32, x.z, x.w};
}
__device__ inline place absent_place() { return {0, nowhere, nowhere}; }

struct limits {
  unsigned h, w;
  __device__ bool present(const place& a, const place& b) const {
    return static_cast<unsigned>(a.y + b.y) < h && static_cast<unsigned>(a.x + b.x) < w;
  }
};

// Copies an operand's panels, a unit (4 bytes per thread, or 16 where `quads`) at a time, so that the copies can be
// spread over the arithmetic.
template <class P, int Threads, bool Ahead>
class copier {
 public:
  static constexpr int units = P::lines * panel_k / Threads;

  __device__ copier(const place* lines, const operand& t) : lines_(lines), t_(t) {
    if constexpr (!P::k_fast) {
#pragma unroll
      for (int i = 0; i < own; ++i) kept_[i] = load_place(lines + (i * Threads + tid()) % P::lines);
    }
  }
  // `real` = false: zeros instead, which nobody will read.
  __device__ void begin(float* to, const place* terms, bool real) {
    to_ = to;
    terms_ = terms;
    in_ = {real ? static_cast<unsigned>(t_.h) : 0u, static_cast<unsigned>(t_.w)};
    if constexpr (P::k_fast) kept_[0] = load_place(terms + tid() % panel_k);
    if constexpr (Ahead) ahead_ = load_place(other(0));
  }
  __device__ void copy(int unit, bool quads) {
    constexpr int quad_lines = P::lines / 4;  // in a panel with lines side by side
    if (quads) {
      constexpr int all = P::lines * panel_k / 4;
      const int n = unit / 4 * Threads + tid();
      if (unit % 4 != 0 || (all < Threads && n >= all)) return;
      if constexpr (P::k_fast) {
        start<16>(4 * n, load_place(lines_ + n / 4), load_place(terms_ + n % 4 * 4));
      } else {
        start<16>(P::place(n % quad_lines * 4, n / quad_lines), load_place(lines_ + n % quad_lines * 4),
                  load_place(terms_ + n / quad_lines));
      }
      return;
    }
    const place now = Ahead ? ahead_ : load_place(other(unit));
    if (Ahead && unit + 1 < units) ahead_ = load_place(other(unit + 1));
    if constexpr (P::k_fast) {
      start<4>(unit * Threads + tid(), now, kept_[0]);
    } else if constexpr (P::lines >= Threads) {
      start<4>(P::place(unit % own * Threads, unit / own) + tid(), kept_[unit % own], now);
    } else {
      start<4>(P::place(tid() % P::lines, unit * together + tid() / P::lines), kept_[0], now);
    }
  }

 private:
  static constexpr int own = P::k_fast ? 1 : greatest_of(1, P::lines / Threads);  // lines of a thread
  static constexpr int together = greatest_of(1, Threads / P::lines);             // terms at a time
  // What a unit's element has besides what the thread keeps.
  __device__ const place* other(int unit) const {
    if constexpr (P::k_fast) {
      return lines_ + (unit * Threads + tid()) / panel_k;
    } else if constexpr (P::lines >= Threads) {
      return terms_ + unit / own;
    } else {
      return terms_ + unit * together + tid() / P::lines;
    }
  }
  __device__ static int tid() {
    __builtin_assume(threadIdx.x < Threads);
    return static_cast<int>(threadIdx.x);
  }
  template <int Bytes>
  __device__ void start(int at, const place& a, const place& b) const {
    copy_async<Bytes>(to_ + at, reinterpret_cast<const float*>(a.address + b.address), in_.present(a, b));
  }

  const place* lines_;
  const operand& t_;
  limits in_{};
  float* to_ = nullptr;
  const place* terms_ = nullptr;
  place kept_[own];  // lines of this thread, or, k fast, its term
  place ahead_;      // other(next unit): loaded early, because no load passes an asynchronous copy
};

// From one panel's terms to the next: what their places grow by, and what is added when the innermost number of the index wraps
// around, the one before it, and the one before that. `step1` >= 0: that one is counted.
struct term_steps {
  place always[2], wrap3[2], wrap2[2], wrap1[2];  // a, b
  int step3, step2, step1, d3, d2, d1;
};
__device__ inline place difference(const side& s, std::int64_t n0, std::int64_t n1, std::int64_t n2, std::int64_t n3) {
  return {4 * (n0 * s.offset[0] + n1 * s.offset[1] + n2 * s.offset[2] + n3 * s.offset[3]),
          static_cast<int>(n1 * s.y[1] + n2 * s.y[2] + n3 * s.y[3]),
          static_cast<int>(n1 * s.x[1] + n2 * s.x[2] + n3 * s.x[3])};
}
__device__ inline void describe_steps(const view& v, term_steps& to) {
  const index4 step = v.term.split(panel_k);
  const side* const sides[2] = {&v.a.inner, &v.b.inner};
  for (int i = 0; i < 2; ++i) {
    to.always[i] = difference(*sides[i], step.i[0], step.i[1], step.i[2], step.i[3]);
    to.wrap3[i] = difference(*sides[i], 0, 0, 1, -v.term.d3);
    to.wrap2[i] = difference(*sides[i], 0, 1, -v.term.d2, 0);
    to.wrap1[i] = difference(*sides[i], 1, -v.term.d1, 0, 0);
  }
  to.step3 = static_cast<int>(step.i[3]);
  to.step2 = static_cast<int>(step.i[2]);
  to.step1 = v.term.d1 == 0 ? -1 : static_cast<int>(step.i[1]);
  to.d3 = static_cast<int>(v.term.d3);
  to.d2 = static_cast<int>(v.term.d2);
  to.d1 = static_cast<int>(v.term.d1);
}
__device__ inline void add_place(place& to, const place& x) {
  to.address += x.address;
  to.y += x.y;
  to.x += x.x;
}

}  // namespace repdl::cuda::conv
