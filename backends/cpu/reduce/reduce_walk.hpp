// Walking over the axes of a reduction, and the stream of contiguous blocks that the row kernels eat. Used by
// reduce.cpp.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/core/walk.hpp"
#include "backends/cpu/reduce/reduce.hpp"
#include "librepdl/num/certify.hpp"
#include "librepdl/num/dd.hpp"
#include "librepdl/num/fixed_point.hpp"
#include "librepdl/num/integer_sum.hpp"
#include "librepdl/num/order.hpp"
#include "librepdl/num/sums.hpp"
#include "librepdl/ops/sums/spread.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cpu {

// One output: where its terms begin in each input, and its bias.
template <class T>
struct output_terms {
  std::int64_t base[2];
  const T* bias;  // null: none
};
// Along the outputs: offsets in the inputs, the output and the bias.
inline walk<4> kept_walk(const plan::reduce_plan& p, std::int64_t start) noexcept {
  return {p.kept_rank,
          p.kept_shape,
          {&p.in[0].kept_stride, &p.in[p.inputs - 1].kept_stride, &p.out_stride, &p.bias_stride},
          start};
}
template <class T>
output_terms<T> terms_at(const plan::reduce_plan& p, const walk<4>& at) noexcept {
  return {{at.offset(0), at.offset(1)}, p.bias == nullptr ? nullptr : static_cast<const T*>(p.bias) + at.offset(3)};
}
inline walk<2> reduced_walk(const plan::reduce_plan& p, std::int64_t start) noexcept {
  return {p.reduced_rank, p.reduced_shape, {&p.in[0].reduced_stride, &p.in[p.inputs - 1].reduced_stride}, start};
}

// The sums of a tile of columns.
template <class T>
struct column_sums {
  double sum[column_tile];
  double hi[column_tile];
  double lo[column_tile];
  double magnitude[column_tile];
  double error[column_tile];
  struct {
    double sum[sizeof(T) < 8 ? 1 : column_tile], error[sizeof(T) < 8 ? 1 : column_tile];
    double hi[sizeof(T) < 8 ? 1 : column_tile], lo[sizeof(T) < 8 ? 1 : column_tile];
  } squares;  // of spreads
  float largest[column_tile];
  T value[column_tile];
  std::int32_t decided[column_tile];
  std::int32_t lsb[2][column_tile];
};
// Of integers: low + 2^32 high.
template <class T>
requires std::is_integral_v<T>
struct column_sums<T> {
  std::int64_t low[column_tile];
  std::int64_t high[column_tile];
};

// What one thread works with; carved from the launch's workspace.
template <class T>
struct alignas(64) worker : column_sums<T> {
  T pack[2][row_group * column_tile];                         // at least row_block each
  alignas(64) unsigned char slot[sizeof(T) < 8 ? 128 : 832];  // a thread's part of one long reduction

  // Column tiles. Offsets of each column's inputs and output.
  std::int64_t base[2][column_tile];
  std::int64_t out_at[column_tile];
  std::int64_t blocks;
  num::order_key_of<T> key[column_tile];
  std::int32_t index[column_tile];
};
static_assert(row_group * column_tile >= row_block);

// Terms [first, first + n) of one output, contiguous. y = x where there is one input.
template <class T>
struct block {
  const T* x;
  const T* y;
  std::int64_t n;
  std::int64_t first;
};

// Cuts the terms [begin, end) of one output into blocks: a view where the innermost run is contiguous and long,
// otherwise a packed copy.
template <class T>
class block_stream {
 public:
  block_stream(const plan::reduce_plan& p, const std::int64_t (&base)[2], std::int64_t begin, std::int64_t end,
               worker<T>& w) noexcept
      : plan_(p), base_{base[0], base[1]}, at_(begin), end_(end), walk_(reduced_walk(p, begin)), worker_(w) {}

  bool next(block<T>& b) noexcept {
    if (at_ >= end_) return false;
    constexpr std::int64_t long_run = 256;
    const std::int64_t left = std::min(end_ - at_, row_block);
    const std::int64_t run = std::min(walk_.inner_left(), left);
    b.first = at_;
    b.n = run >= long_run ? run : left;
    const T* part[2] = {};
    bool direct[2] = {};
    for (int k = 0; k < plan_.inputs; ++k) {
      direct[k] = walk_.inner_stride(k) == 1 && run == b.n && !plan_.drops_positive() && !plan_.magnitudes;
      part[k] = direct[k] ? here(k) : worker_.pack[k];
    }
    for (std::int64_t done = 0; done < b.n;) {
      const std::int64_t m = std::min(walk_.inner_left(), b.n - done);
      for (int k = 0; k < plan_.inputs; ++k) {
        if (!direct[k]) {
          gather(here(k), walk_.inner_stride(k), m, worker_.pack[k] + done);
        }
      }
      done += m;
      walk_.advance(m);
    }
    if constexpr (!std::is_integral_v<T>) {
      if (plan_.drops_positive()) drop_positive(worker_.pack[0], worker_.pack[1], b.n);
      if (plan_.magnitudes) drop_signs(worker_.pack[0], b.n);
    }
    b.x = part[0];
    b.y = part[plan_.inputs - 1];
    at_ += b.n;
    return true;
  }

 private:
  const T* here(int k) const noexcept { return static_cast<const T*>(plan_.in[k].data) + base_[k] + walk_.offset(k); }
  // The terms with x > 0 become 0 * 0.
  static void drop_positive(T* g, T* x, std::int64_t n) {
    using storage = num::storage_of<T>;
    for (std::int64_t i = 0; i < n; ++i) {
      const auto keep = static_cast<storage>(num::widen(x[i]) > 0 ? 0 : ~storage{0});
      g[i] = num::from_bits<T>(num::to_bits(g[i]) & keep);
      x[i] = num::from_bits<T>(num::to_bits(x[i]) & keep);
    }
  }
  static void drop_signs(T* x, std::int64_t n) {
    using storage = num::storage_of<T>;
    for (std::int64_t i = 0; i < n; ++i)
      x[i] = num::from_bits<T>(num::to_bits(x[i]) & static_cast<storage>(~num::sign_mask<T>));
  }
  static void gather(const T* from, std::int64_t stride, std::int64_t n, T* to) noexcept {
    if (stride == 1) {
      std::copy_n(from, n, to);
    } else if (stride == 0) {
      std::fill_n(to, n, *from);
    } else {
      for (std::int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
    }
  }

  const plan::reduce_plan& plan_;
  std::int64_t base_[2];
  std::int64_t at_;
  std::int64_t end_;
  walk<2> walk_;
  worker<T>& worker_;
};

// --------------------------------------------------------------------------------------- partial results of a stream

// Binary64: the sums of blocks. `blocks` is the height of that.
struct sum_partial {
  num::measured_sum sum;
  std::int64_t blocks = 0;

  template <class T>
  void add(const reduce_loops<T>& k, int inputs, const block<T>& b) noexcept {
    const block_sum s = inputs == 2 ? k.dot_row(b.x, b.y, b.n) : k.sum_row(b.x, b.n);
    sum.add_term(s.value, s.magnitude);
    ++blocks;
  }
  void merge(const sum_partial& o) noexcept {
    sum.merge(o.sum);
    blocks += o.blocks + 1;
  }
};

struct lsb_partial {
  std::int32_t lsb[2] = {num::no_lsb, num::no_lsb};

  template <class T>
  void add(const reduce_loops<T>& k, int inputs, const block<T>& b) noexcept {
    lsb[0] = std::min(lsb[0], k.lsb_row(b.x, b.n));
    if (inputs == 2) lsb[1] = std::min(lsb[1], k.lsb_row(b.y, b.n));
  }
  void merge(const lsb_partial& o) noexcept {
    lsb[0] = std::min(lsb[0], o.lsb[0]);
    lsb[1] = std::min(lsb[1], o.lsb[1]);
  }
  int terms(int inputs) const noexcept { return inputs == 2 ? lsb[0] + lsb[1] : lsb[0]; }
};

struct dd_partial {
  num::dd sum = {0, 0};
  double magnitude = 0;
  std::int64_t blocks = 0;

  template <class T>
  void add(const reduce_loops<T>& k, int inputs, const block<T>& b) noexcept {
    const block_dd s = inputs == 2 ? k.dot_row_dd(b.x, b.y, b.n) : k.sum_row_dd(b.x, b.n);
    sum = num::add(sum, num::dd{s.hi, s.lo});
    magnitude += s.magnitude;
    ++blocks;
  }
  void merge(const dd_partial& o) noexcept {
    sum = num::add(sum, o.sum);
    magnitude += o.magnitude;
    blocks += o.blocks + 1;
  }
};

// Of binary64.
struct wide_partial : dd_partial {
  wide_row row;

  void add(const reduce_loops<double>& k, int inputs, const block<double>& b) noexcept {
    const block_dd s = inputs == 2 ? k.dot_row_dd(b.x, b.y, b.n, &row) : k.sum_row_dd(b.x, b.n, &row);
    add({s.hi, s.lo});
    magnitude += s.magnitude;
    ++blocks;
  }
  void merge(const wide_partial& o) noexcept {
    row.exact &= o.row.exact;
    add(o.sum);
    magnitude += o.magnitude;
    blocks += o.blocks + 1;
  }

 private:
  // Exact, where two numbers are added, which two_sum does, or one to nothing, and there is no overflow.
  void add(num::dd s) noexcept {
    row.exact &= (s.lo == 0 && sum.lo == 0) || sum.hi == 0;
    sum = num::add(sum, s);
    row.exact &= num::is_finite(sum.hi);
  }
};

// Whether two_prod finds the error of every product, which then is a multiple of 2^-1074: products are 0 or large enough.
struct product_range_partial {
  bool large = true;

  void add(const reduce_loops<double>&, int, const block<double>& b) noexcept {
    for (std::int64_t i = 0; i < b.n; ++i) {
      large &= (b.x[i] == 0) | (b.y[i] == 0) | (num::magnitude_of(b.x[i] * b.y[i]) >= 0x1p-968);
    }
  }
  void merge(const product_range_partial& o) noexcept { large &= o.large; }
};

template <class T, int Factors>
struct exact_partial {
  num::exact_accumulator<T, Factors> sum;

  void add(const reduce_loops<T>&, int inputs, const block<T>& b) noexcept {
    for (std::int64_t i = 0; i < b.n; ++i) {
      if (inputs == 2) {
        sum.add_product(b.x[i], b.y[i]);
      } else {
        sum.add(b.x[i]);
      }
    }
  }
  void merge(const exact_partial& o) noexcept { sum.merge(o.sum); }
};

// Of any terms.
template <int Factors>
struct exact_wide_partial {
  num::exact_sum<double, Factors> sum;

  void add(const reduce_loops<double>&, int inputs, const block<double>& b) noexcept {
    for (std::int64_t i = 0; i < b.n; ++i) {
      if constexpr (Factors == 2) {
        if (inputs == 2) sum.add_product(b.x[i], b.y[i]);
      } else {
        sum.add(b.x[i]);
      }
    }
  }
  void merge(const exact_wide_partial& o) noexcept { sum.merge(o.sum); }
};

// Of integers.
struct integer_partial {
  num::integer_sum sum;

  void add(std::int64_t low, std::int64_t high) noexcept {
    sum.add_integer(low);
    sum.add_scaled(static_cast<std::uint64_t>(high < 0 ? -high : high), 32, high < 0);
  }
  template <class T>
  void add(const reduce_loops<T>& k, int, const block<T>& b) noexcept {
    const block_integer s = k.sum_row(b.x, b.n);
    add(s.low, s.high);
  }
  void merge(const integer_partial& o) noexcept { sum.merge(o.sum); }
};

// Of spreads.
struct spread_partial {
  num::dd sum = {0, 0};
  num::dd squares = {0, 0};
  double magnitude = 0;
  std::int64_t blocks = 0;

  void add(const reduce_loops<double>& k, int, const block<double>& b) noexcept {
    const block_spread s = k.spread_row(b.x, b.y, b.n);
    merge({{s.sum_hi, s.sum_lo}, {s.squares_hi, s.squares_lo}, s.magnitude, 0});
  }
  void merge(const spread_partial& o) noexcept {
    sum = num::add(sum, o.sum);
    squares = num::add(squares, o.squares);
    magnitude += o.magnitude;
    blocks += o.blocks + 1;
  }
};
struct exact_spread_partial {
  num::exact_spread sum;

  void add(const reduce_loops<double>&, int, const block<double>& b) noexcept {
    for (std::int64_t i = 0; i < b.n; ++i) sum.add(b.x[i]);
  }
  void merge(const exact_spread_partial& o) noexcept { sum.merge(o.sum); }
};

// max, min, argmax, argmin. Parts merge in ascending order, so that ties keep the first index.
template <class T>
struct order_partial {
  using key_type = num::order_key_of<T>;

  std::uint32_t flip = num::order_max;
  bool wants_index = false;
  key_type key = num::no_key_of<key_type>;
  std::int64_t index = 0;

  void add(const reduce_loops<T>& k, int, const block<T>& b) noexcept {
    const key_type best = k.order.key_row(b.x, b.n, flip);
    if (best <= key) return;
    key = best;
    if (wants_index) index = b.first + k.order.find_row(b.x, b.n, flip, best);
  }
  void merge(const order_partial& o) noexcept {
    if (o.key > key) *this = o;
  }
};

}  // namespace repdl::cpu
