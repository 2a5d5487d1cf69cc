// Inner loops of the softmax family. Compiled once per instruction set. Contracts: backends/cpu/rows/rows.hpp.
#include "backends/cpu/rows/rows.hpp"
#include "backends/cpu/rows/rows_elements.hpp"
#include "librepdl/ops/rows_wide.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

using i32v = vec<std::int32_t, lanes32>;

// x - max, cut to -600 (NaN too). The greater of two: the second where they are unordered.
[[gnu::always_inline]] inline f64v cut_gap(const float* x, f64v max) {
  return larger(widen(load<f32h>(x)) - max, V::all(num::least_gap));
}

// --------------------------------------------------------------------------------------------------------------- top

void top(const row_slice& s) noexcept {
  row_state& state = *s.state;
  const auto include = [](const float* x, f32v& m, i32v& size) __attribute__((always_inline)) {
    const f32v v = load<f32v>(x);
    m = larger(v, m);
    const i32v bits = as<i32v>(v) & 0x7fffffff;
    size = bits > size ? bits : size;
  };
  if (s.columns != 0) {
    for (std::int64_t c = 0; c < s.columns; c += lanes32) {
      f32v m = load<f32v>(state.top + c);
      i32v size = load<i32v>(state.magnitude + c);
      for (std::int64_t j = 0; j < s.n; ++j) include(s.a + j * s.columns + c, m, size);
      store(state.top + c, m);
      store(state.magnitude + c, size);
    }
    return;
  }
  f32v m[4];
  i32v size[4] = {};
  for (f32v& v : m) v = broadcast<f32v>(-inf);
  std::int64_t i = 0;
  for (; i + 4 * lanes32 <= s.n; i += 4 * lanes32) {
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) include(s.a + i + c * lanes32, m[c], size[c]);
  }
  for (; i + lanes32 <= s.n; i += lanes32) include(s.a + i, m[0], size[0]);
  if (i < s.n) {
    float rest[lanes32];
    for (int l = 0; l < lanes32; ++l) rest[l] = i + l < s.n ? s.a[i + l] : s.a[s.n - 1];
    include(rest, m[0], size[0]);
  }
  m[0] = larger(larger(m[0], m[1]), larger(m[2], m[3]));
  for (int c = 1; c < 4; ++c) size[0] = size[c] > size[0] ? size[c] : size[0];
  for (int l = 0; l < lanes32; ++l) {
    state.top[0] = m[0][l] > state.top[0] ? m[0][l] : state.top[0];
    state.magnitude[0] = size[0][l] > state.magnitude[0] ? size[0][l] : state.magnitude[0];
  }
}

// ----------------------------------------------------------------------------------------------------------- weights

struct weight_sums {
  f64v rest[4] = {};
  f64v count = {};
};

template <bool Separate, bool Keep>
[[gnu::always_inline]] inline void add_weight(weight_sums& sums, int chain, const float* x, f64v max, double* keep) {
  const f64v v = widen(load<f32h>(x));
  const f64v d = v - max;
  f64v e = num::fast_exp(larger(d, V::all(num::least_gap)));
  if constexpr (Keep) store(keep, e);
  if constexpr (Separate) {
    const f64v zero = {};
    sums.count += d == 0.0 ? V::all(1.0) : zero;
    e = d < 0.0 ? e : zero;
    e = v > -static_cast<double>(inf) ? e : zero;
  }
  sums.rest[chain] += e;
}

template <bool Separate, bool Keep>
[[gnu::always_inline]] inline void weights_as(const row_slice& s) {
  row_state& state = *s.state;
  if (s.columns != 0) {
    for (std::int64_t c = 0; c < s.columns; c += L) {
      const f64v max = load<f64v>(state.max + c);
      weight_sums sums;
      const float* x = s.a + c;
      double* keep = s.keep + c;
      std::int64_t j = 0;
      for (; j + 4 <= s.n; j += 4, x += 4 * s.columns, keep += 4 * s.columns) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) add_weight<Separate, Keep>(sums, i, x + i * s.columns, max, keep + i * s.columns);
      }
      for (; j < s.n; ++j, x += s.columns, keep += s.columns) add_weight<Separate, Keep>(sums, 0, x, max, keep);
      store(state.rest + c, (sums.rest[0] + sums.rest[1]) + (sums.rest[2] + sums.rest[3]));
      store(state.count + c, sums.count);
    }
    return;
  }
  const f64v max = V::all(state.max[0]);
  const std::uintptr_t ahead = s.ahead != 0 ? s.ahead : reinterpret_cast<std::uintptr_t>(s.a);
  weight_sums sums;
  std::int64_t i = 0;
  for (; i + 4 * L <= s.n; i += 4 * L) {
    for (int line = 0; line < 4 * L; line += 16) {
      __builtin_prefetch(reinterpret_cast<const void*>(ahead + sizeof(float) * static_cast<std::size_t>(i + line)));
    }
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) add_weight<Separate, Keep>(sums, c, s.a + i + c * L, max, s.keep + i + c * L);
  }
  for (; i + L <= s.n; i += L) add_weight<Separate, Keep>(sums, 0, s.a + i, max, s.keep + i);
  if (i < s.n) {
    float x[L];
    for (int l = 0; l < L; ++l) x[l] = i + l < s.n ? s.a[i + l] : -inf;
    add_weight<Separate, Keep>(sums, 0, x, max, s.keep + i);
  }
  const f64v rest = (sums.rest[0] + sums.rest[1]) + (sums.rest[2] + sums.rest[3]);
  double r = 0;
  double n = 0;
  for (int l = 0; l < L; ++l) {
    r += rest[l];
    n += sums.count[l];
  }
  state.rest[0] = r;
  state.count[0] = n;
}

void weights(const row_slice& s, bool separate) noexcept {
  if (separate) {
    s.keep != nullptr ? weights_as<true, true>(s) : weights_as<true, false>(s);
  } else {
    s.keep != nullptr ? weights_as<false, true>(s) : weights_as<false, false>(s);
  }
}

// ------------------------------------------------------------------------------------------------------ rows of a tile

void factors(row_state& s, std::int64_t rows, double n, double bound) noexcept {
  const bool forced = !(bound < 1);
  for (std::int64_t c = 0; c < rows; c += L) {
    const f64v f = load<f64v>(s.scale + c) / n / (load<f64v>(s.count + c) + load<f64v>(s.rest + c));
    store(s.low + c, forced ? V::all(-__builtin_huge_val()) : f * (1 - bound));
    store(s.high + c, forced ? V::all(__builtin_huge_val()) : f * (1 + bound));
  }
}

void logarithms(row_state& s, std::int64_t rows, double bound) noexcept {
  for (std::int64_t c = 0; c < rows; c += L) {
    const auto r = num::logarithm_of_row(load<f64v>(s.count + c), load<f64v>(s.rest + c), bound);
    store(s.low + c, r.value);
    store(s.high + c, bound < 1 ? r.slack : V::all(__builtin_huge_val()));
  }
}

void gaps(row_state& s, std::int64_t rows) noexcept {
  for (std::int64_t c = 0; c < rows; c += L) {
    const ends e =
        num::gap_ends(load<f64v>(s.max + c), load<f64v>(s.scale + c), -load<f64v>(s.low + c), load<f64v>(s.high + c));
    store(s.value + c, e.low);
    store(s.open + c, as<u32h>(differ(e)));
  }
}

std::int64_t scale(const row_slice& s) noexcept {
  const row_state& r = *s.state;
  if (s.keep != nullptr) {
    return elements(s, 0.0f, [&r]<bool Tile>(std::int64_t c) {
      return [ low = row_value<Tile>(r.low, c), high = row_value<Tile>(r.high, c) ](
          const float*, const float*, const double* keep) __attribute__((always_inline)) {
        const f64v e = load<f64v>(keep);
        return ends{narrow(e * low), narrow(e * high)};
      };
    });
  }
  return elements(s, 0.0f, [&r]<bool Tile>(std::int64_t c) {
    return [ max = row_value<Tile>(r.max, c), low = row_value<Tile>(r.low, c), high = row_value<Tile>(r.high, c) ](
        const float* x, const float*, const double*) __attribute__((always_inline)) {
      const f64v e = num::fast_exp(cut_gap(x, max));
      return ends{narrow(e * low), narrow(e * high)};
    };
  });
}

template <bool Quick>
[[gnu::always_inline]] inline std::int64_t log_softmax_as(const row_slice& s) {
  const row_state& r = *s.state;
  return elements(s, 0.0f, [&r]<bool Tile>(std::int64_t c) {
    return [ max = row_value<Tile>(r.max, c), value = row_value<Tile>(r.low, c), slack = row_value<Tile>(r.high, c) ](
        const float* x, const float*, const double*) __attribute__((always_inline)) {
      const f32h v = load<f32h>(x);
      const ends e =
          Quick ? num::quick_gap_ends(widen(v), max, value, slack) : num::gap_ends(widen(v), max, value, slack);
      const f32h least = broadcast<f32h>(-inf);
      return ends{v == -inf ? least : e.low, v == -inf ? least : e.high};
    };
  });
}
// Rows in which a gap is a midpoint and R far below its last bit are rare: they are gone through twice.
std::int64_t log_softmax(const row_slice& s) noexcept {
  if (s.open == nullptr && log_softmax_as<true>(s) == 0) return 0;
  return log_softmax_as<false>(s);
}

// What gradient(g, y, hi, lo, slack) gives of the row's tracked sum.
template <class Gradient>
[[gnu::always_inline]] inline std::int64_t gradients(const row_slice& s, const Gradient& gradient) {
  const row_state& r = *s.state;
  return elements(s, 0.0f, [&r, &gradient]<bool Tile>(std::int64_t c) {
    return [
      &gradient, hi = row_value<Tile>(r.sum, c), lo = row_value<Tile>(r.lo, c), slack = row_value<Tile>(r.slack, c)
    ](const float* g, const float* y, const double*) __attribute__((always_inline)) {
      return gradient(widen(load<f32h>(g)), widen(load<f32h>(y)), hi, lo, slack);
    };
  });
}

std::int64_t softmax_backward(const row_slice& s) noexcept {
  return gradients(
      s, [](f64v g, f64v y, f64v hi, f64v lo, f64v slack)
             __attribute__((always_inline)) { return num::softmax_gradient(g, y, hi, lo, slack); });
}

std::int64_t log_softmax_backward(const row_slice& s) noexcept {
  return gradients(
      s, [](f64v g, f64v y, f64v hi, f64v lo, f64v slack) __attribute__((always_inline)) {
        const f64v cut = larger(y, V::all(num::least_gap));
        const f64v most = V::all(-num::least_gap);
        const f64v zero = {};
        f64v w = num::fast_exp(cut < most ? cut : most);
        w = y > -static_cast<double>(inf) ? w : zero;
        return num::log_softmax_gradient(g, w, hi, lo, slack);
      });
}

// ----------------------------------------------------------------------------------------------------- tracked sums

template <bool Products>
[[gnu::always_inline]] inline void track_as(const row_slice& s) {
  row_state& state = *s.state;
  const auto term = [](const float* a, const float* b, i32h& special) __attribute__((always_inline)) {
    const f32h y = load<f32h>(b);
    special |= ~(y < inf);
    const f64v x = widen(load<f32h>(a));
    if constexpr (Products) return x * widen(y);
    return x;
  };
  if (s.columns != 0) {
    for (std::int64_t c = 0; c < s.columns; c += L) {
      num::tracked_sum<f64v> t;
      i32h special = {};
      for (std::int64_t at = c; at < s.n * s.columns; at += s.columns) t.add(term(s.a + at, s.b + at, special));
      store(state.sum + c, t.hi);
      store(state.lo + c, t.lo);
      store(state.error + c, t.error);
      store(state.special + c, special);
    }
    return;
  }
  num::tracked_sum<f64v> t[4];
  i32h special = {};
  std::int64_t i = 0;
  for (; i + 4 * L <= s.n; i += 4 * L) {
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) t[c].add(term(s.a + i + c * L, s.b + i + c * L, special));
  }
  for (; i + L <= s.n; i += L) t[0].add(term(s.a + i, s.b + i, special));
  if (i < s.n) {
    float a[L] = {};
    float b[L] = {};
    for (int l = 0; l < s.n - i; ++l) {
      a[l] = s.a[i + l];
      b[l] = s.b[i + l];
    }
    t[0].add(term(a, b, special));
  }
  num::tracked_sum<double> total;
  std::int32_t any = 0;
  for (int c = 0; c < 4; ++c) {
    for (int l = 0; l < L; ++l) total.merge({t[c].hi[l], t[c].lo[l], t[c].error[l]});
  }
  for (int l = 0; l < L; ++l) any |= special[l];
  state.sum[0] = total.hi;
  state.lo[0] = total.lo;
  state.error[0] = total.error;
  state.special[0] = any;
}

void track(const row_slice& s, bool products) noexcept { products ? track_as<true>(s) : track_as<false>(s); }

// ----------------------------------------------------------------------------------------------------- double-double

void rest_dd(const float* x, std::int64_t n, float max, double* rest) noexcept {
  using W = num::double_word<f64v>;
  constexpr int chains = 2;
  const f64v m = V::all(static_cast<double>(max));
  const f64v zero = {};
  W sum[chains] = {};
  const auto take = [&](const float* from, W& to) __attribute__((always_inline)) {
    const f64v v = widen(load<f32h>(from));
    const W d = num::two_sum(v, -m);
    const W e = num::wide_exp(larger(d.hi, V::all(num::least_gap)), d.hi < num::least_gap ? zero : d.lo);
    const i64v counts = (d.hi < 0.0) & (v > -static_cast<double>(inf));
    to = num::add(to, W{counts ? e.hi : zero, counts ? e.lo : zero});
  };
  std::int64_t i = 0;
  for (; i + chains * L <= n; i += chains * L) {
#pragma GCC unroll 2
    for (int c = 0; c < chains; ++c) take(x + i + c * L, sum[c]);
  }
  for (; i < n; i += L) {
    float v[L];
    for (int l = 0; l < L; ++l) v[l] = i + l < n ? x[i + l] : -inf;
    take(v, sum[0]);
  }
  num::dd total = {rest[0], rest[1]};
  for (const W& w : sum) {
    for (int l = 0; l < L; ++l) total = num::add(total, num::dd{w.hi[l], w.lo[l]});
  }
  rest[0] = total.hi;
  rest[1] = total.lo;
}

num::dd_row complete(const wide_row& r) noexcept {
  num::dd_row row{};
  row.finish(r.max, r.count, num::dd{r.rest[0], r.rest[1]}, r.height);
  return row;
}

void logarithm_dd(const wide_row& r, double* out) noexcept {
  const num::dd_row row = complete(r);
  const bool none = r.count < 2 && r.rest[0] == 0;
  out[0] = none ? 0.0 : row.log.hi;
  out[1] = none ? 0.0 : row.log.lo;
  out[2] = none ? 0.0 : row.shallow ? 4 * row.error * row.log.hi : 0x1p-600;
}

template <class Element>
[[gnu::always_inline]] inline void settle(int count, float* out, std::uint8_t* decided, const Element& element) {
  for (int i = 0; i < count; ++i) {
    const num::certified c = element(i);
    out[i] = c.value;
    decided[i] = c.decided ? 1 : 0;
  }
}

void settle_weights(const wide_row& r, const float* x, int count, float g, double n, bool target, float* out,
                    std::uint8_t* decided) noexcept {
  const num::dd_row row = complete(r);
  settle(count, out, decided, [&](int i) { return target ? row.target_weight(x[i], g, n) : row.weight(x[i], g, n); });
}

void settle_gaps(const wide_row& r, const float* a, const float* b, int count, double sign, float* out,
                 std::uint8_t* decided) noexcept {
  const num::dd_row row = complete(r);
  settle(count, out, decided, [&](int i) { return row.gap(a[i], b[i], sign); });
}

template <num::certified (*gradient)(float g, float y, const num::tracked_sum<double>& sum, double bound)>
void settle_gradients(const double* t, const float* g, const float* y, int count, float* out,
                      std::uint8_t* decided) noexcept {
  const num::tracked_sum<double> s{t[0], t[1], 0};
  settle(count, out, decided, [&](int i) { return gradient(g[i], y[i], s, t[2]); });
}

}  // namespace

constinit const row_kernels row_table = {
    .lanes = L,
    .top = top,
    .weights = weights,
    .factors = factors,
    .logarithms = logarithms,
    .gaps = gaps,
    .scale = scale,
    .log_softmax = log_softmax,
    .softmax_backward = softmax_backward,
    .log_softmax_backward = log_softmax_backward,
    .drain = []() noexcept { drain(); },
    .track = track,
    .rest_dd = rest_dd,
    .logarithm_dd = logarithm_dd,
    .settle_weights = settle_weights,
    .settle_gaps = settle_gaps,
    .settle_softmax_backward = settle_gradients<num::dd_softmax_gradient>,
    .settle_log_softmax_backward = settle_gradients<num::dd_log_softmax_gradient>,
};

}  // namespace repdl::cpu::REPDL_ISA
