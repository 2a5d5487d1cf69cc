// An output's terms one after the other, absent ones skipped, with 64-bit indices; and their double-double sum.
//
// Double-double tier: a chain of two_sums with plainly added errors. H additions at most on a term's path, M = sum|a
// b|, u = 2^-53. Each term is part of at most H partial sums, so the errors of the two_sums add up to at most H u M (1
// + Hu); `low` adds them over a tree of height 2H at most (merging takes two additions), which loses 2H^2 u^2 M (1 +
// 3Hu) more: |S - (high + low)| <= 3 H^2 u^2 M for H <= 2^25. `magnitude`, fl(M), falls short of M by H u M at most:
// 4 H^2 covers it. Under the lattice rule for plainly added errors (dd.hpp; as many as there are additions) everything
// is exact.
// Of binary64 a product is two numbers, of which `low` takes the second (num::wide_compensated_bound). Those that underflow, and may
// lose something, are counted: of others, and of those with 0, nothing is lost, and a sum of zeros is decided.
#pragma once

#include "backends/cuda/core/launch.cuh"
#include "backends/cuda/product/conv.hpp"
#include "librepdl/num/dd.hpp"
#include "librepdl/num/sums.hpp"

namespace repdl::cuda::conv {

// What the places of terms grow by from one of a thread's terms to its next, and when the innermost number of the index wraps around,
// the one before it, and the one before that: offset, y, x of a, then of b.
struct walk {
  static constexpr int parts = 6;
  static constexpr int kinds = 4;
  std::int64_t by[kinds][parts];
  std::int64_t step[4];  // of the numbers

  // By the first 24 threads of a group.
  __device__ void describe(const view& v, std::int64_t step_of_thread, int rank) {
    if (rank >= kinds * parts) return;
    const index4 n = v.term.split(step_of_thread);
    const int kind = rank / parts;
    const int part = rank % parts;
    const side& s = part < 3 ? v.a.inner : v.b.inner;
    const std::int64_t* const of = part % 3 == 0 ? s.offset : part % 3 == 1 ? s.y : s.x;
    by[kind][part] = kind == 0   ? n.i[0] * of[0] + n.i[1] * of[1] + n.i[2] * of[2] + n.i[3] * of[3]
                     : kind == 1 ? of[2] - v.term.d3 * of[3]
                     : kind == 2 ? of[1] - v.term.d2 * of[2]
                                 : of[0] - v.term.d1 * of[1];
    if (rank < 4) step[rank] = n.i[rank];
  }
};

// A thread's terms of an output: first, first + step, ... below `end`.
class terms {
 public:
  __device__ terms(const view& v, const walk& w, std::int64_t row, std::int64_t col, std::int64_t first,
                   std::int64_t end, std::int64_t step)
      : v_(v), w_(w), left_(end - first), step_(step) {
    const index4 r = v.row.split(row);
    const index4 c = v.col.split(col);
    const index4 n = v.term.split(first);
    index3_ = n.i[3];
    index2_ = n.i[2];
    index1_ = n.i[1];
    at_[0] = v.a.outer.offset_at(r) + v.a.inner.offset_at(n);
    at_[1] = v.a.outer.y_at(r) + v.a.inner.y_at(n);
    at_[2] = v.a.outer.x_at(r) + v.a.inner.x_at(n);
    at_[3] = v.b.outer.offset_at(c) + v.b.inner.offset_at(n);
    at_[4] = v.b.outer.y_at(c) + v.b.inner.y_at(n);
    at_[5] = v.b.outer.x_at(c) + v.b.inner.x_at(n);
  }
  __device__ bool more() const { return left_ > 0; }
  // False: absent.
  template <class N>
  __device__ bool next(N& x, N& y) {
    const bool there =
        inside(at_[4], v_.b.h) && inside(at_[5], v_.b.w) && inside(at_[1], v_.a.h) && inside(at_[2], v_.a.w);
    if (there) {
      x = static_cast<const N*>(v_.a.data)[at_[0]];
      y = static_cast<const N*>(v_.b.data)[at_[3]];
    }
    left_ -= step_;
    index3_ += w_.step[3];
    index2_ += w_.step[2];
    index1_ += w_.step[1];
    add(0);
    if (index3_ >= v_.term.d3) {
      index3_ -= v_.term.d3;
      ++index2_;
      add(1);
    }
    if (index2_ >= v_.term.d2) {
      index2_ -= v_.term.d2;
      ++index1_;
      add(2);
    }
    if (v_.term.d1 != 0 && index1_ >= v_.term.d1) {
      index1_ -= v_.term.d1;
      add(3);
    }
    return there;
  }

 private:
  __device__ void add(int kind) {
#pragma unroll
    for (int i = 0; i < walk::parts; ++i) at_[i] += w_.by[kind][i];
  }
  __device__ static bool inside(std::int64_t x, std::int64_t size) {
    return static_cast<std::uint64_t>(x) < static_cast<std::uint64_t>(size);
  }

  const view& v_;
  const walk& w_;
  std::int64_t left_, step_, index3_, index2_, index1_;
  std::int64_t at_[walk::parts];
};

template <class N>
struct dot_sum : num::measured_sum {
  int lsb = 2 * num::no_lsb;

  __device__ void add_product(N x, N y) {
    add_term(static_cast<double>(x) * static_cast<double>(y));
    lsb = min(lsb, num::lsb_exponent(x) + num::lsb_exponent(y));
  }
  __device__ void add_bias(N c) {
    add_term(static_cast<double>(c));
    lsb = min(lsb, num::lsb_exponent(c));
  }
  __device__ void merge(const dot_sum& o) {
    measured_sum::merge(o);
    lsb = min(lsb, o.lsb);
  }
  __device__ void merge_lanes(int distance) {
    dot_sum o;
    o.hi = __shfl_xor_sync(full_warp, hi, distance);
    o.lo = __shfl_xor_sync(full_warp, lo, distance);
    o.magnitude = __shfl_xor_sync(full_warp, magnitude, distance);
    o.lsb = __shfl_xor_sync(full_warp, lsb, distance);
    merge(o);
  }
  template <class Out>
  __device__ num::decided_value<Out> finish(std::int64_t height, std::int64_t additions) const {
    if (!num::is_finite(hi)) return {num::non_finite_result<Out>(hi), true};
    return num::certify<Out>(total(), num::lattice_holds_dd(magnitude, lsb, additions) ? 0.0 : bound(height));
  }
};

template <>
struct dot_sum<double> : num::measured_sum {
  double lost = 0;  // products that may lack something

  __device__ void add_product(double x, double y) {
    const num::dd p = num::two_prod(x, y);
    add_term(p.hi);
    lo += p.lo;
    if (!(num::magnitude_of(p.hi) >= 0x1p-968) && x != 0 && y != 0) ++lost;
  }
  __device__ void add_bias(double c) { add_term(c); }
  __device__ void merge(const dot_sum& o) {
    measured_sum::merge(o);
    lost += o.lost;
  }
  __device__ void merge_lanes(int distance) {
    dot_sum o;
    o.hi = __shfl_xor_sync(full_warp, hi, distance);
    o.lo = __shfl_xor_sync(full_warp, lo, distance);
    o.magnitude = __shfl_xor_sync(full_warp, magnitude, distance);
    o.lost = __shfl_xor_sync(full_warp, lost, distance);
    merge(o);
  }
  // What is not finite, or overflowed, is not decided (num::certify).
  template <class Out>
  __device__ num::decided_value<double> finish(std::int64_t height, std::int64_t) const {
    return num::certify<double>(total(),
                                num::wide_compensated_bound(height, magnitude, static_cast<std::int64_t>(lost)));
  }
};

}  // namespace repdl::cuda::conv
