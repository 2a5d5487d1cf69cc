// The loops over the elements of a row, or of a tile, that a rule (librepdl/ops/rows/rule.hpp) is computed with. Included by
// rows_kernels.cpp only.
#pragma once

#include "backends/cpu/rows/row_registers.hpp"
#include "backends/cpu/rows/rows.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

using V = num::math<f64v>;

constexpr int L = lanes64;
constexpr float inf = __builtin_inff();

// The greatest so far, and where a NaN was.
struct greatest {
  f32v value = broadcast<f32v>(-inf);
  vec<std::int32_t, lanes32> nan = {};

  [[gnu::always_inline]] void add(const float* x) {
    const f32v v = load<f32v>(x);
    value = larger(v, value);
    nan |= v != v;
  }
  [[gnu::always_inline]] void merge(const greatest& o) {
    value = larger(value, o.value);
    nan |= o.nan;
  }
  // NaN where one was.
  [[gnu::always_inline]] f32v all() const { return as<f32v>(as<decltype(nan)>(value) | nan); }
};
inline float greater_or_nan(float a, float b) { return a != a || a > b ? a : b; }

[[gnu::noinline, gnu::flatten]] inline float greatest_of(const float* x, std::int64_t n) {
  if (n <= 8) {
    float top = -inf;
    for (std::int64_t i = 0; i < n; ++i) top = greater_or_nan(x[i], top);
    return top;
  }
  greatest m[4];
  std::int64_t i = 0;
  for (; i + 4 * lanes32 <= n; i += 4 * lanes32) {
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) m[c].add(x + i + c * lanes32);
  }
  for (; i + lanes32 <= n; i += lanes32) m[0].add(x + i);
  if (i < n) {
    float rest[lanes32];
    for (int l = 0; l < lanes32; ++l) rest[l] = i + l < n ? x[i + l] : -inf;
    m[1].add(rest);
  }
  m[0].merge(m[1]);
  m[2].merge(m[3]);
  m[0].merge(m[2]);
  float top[lanes32];
  store(top, m[0].all());
  for (int half = lanes32 / 2; half != 0; half /= 2) {
    for (int l = 0; l < half; ++l) top[l] = greater_or_nan(top[l], top[l + half]);
  }
  return top[0];
}
// Of the rows of a tile.
[[gnu::noinline, gnu::flatten]] inline void greatest_of_columns(const float* x, std::int64_t n, std::int64_t columns,
                                                                float* top) {
  for (std::int64_t c = 0; c < columns; c += lanes32) {
    greatest m;
    for (std::int64_t j = 0; j < n; ++j) m.add(x + j * columns + c);
    store(top + c, m.all());
  }
}

// A piece of one row, or a tile, of all element operands.
struct slice {
  const float* x[num::most_elements];
  double* keep;  // null: terms are not kept
  std::int64_t n;
  std::uintptr_t ahead;  // address of elements that are wanted next: a loop over these brings them closer
};

[[gnu::always_inline]] inline const void* ahead_of(const slice& s, std::int64_t i) {
  return reinterpret_cast<const void*>(s.ahead + sizeof(float) * static_cast<std::size_t>(i));
}
// Element i of the first Count operands.
template <int Count>
struct operands_at {
  f64v x[Count];
  [[gnu::always_inline]] operands_at(const float* const* from, std::int64_t i) {
#pragma GCC unroll 3
    for (int k = 0; k < Count; ++k) x[k] = widen(load<f32h>(from[k] + i));
  }
};
template <class Rule, bool Keep>
[[gnu::always_inline]] inline void add_term(typename Rule::template sums<f64v>& sums, const float* const* x,
                                            double* keep, std::int64_t i, f64v top) {
  const operands_at<Rule::summed> at(x, i);
  const f64v term = Rule::template term<f64v>(at.x, top);
  if constexpr (Keep) store(keep + i, term);
  sums.add(at.x, top, term);
}
// The last elements of the first Count operands, from `first` on, and what adds nothing to sums.
template <class Rule, int Count>
struct last_register {
  float lanes[Count][L];
  const float* x[Count];
  last_register(const slice& s, std::int64_t first, double top) {
    // A term has x[0] as a factor where the top is given.
    const float nothing = Rule::look == num::row_look::greatest ? -inf
                          : Rule::look == num::row_look::given  ? 0.0f
                                                                : static_cast<float>(top);
    for (int k = 0; k < Count; ++k) {
      store(lanes[k], first_of(s.x[k] + first, s.n - first, k == 0 ? nothing : 0.0f));
      x[k] = lanes[k];
    }
  }
};

// Partial sums, so that additions do not wait for each other.
constexpr int sum_chains = 4;
template <class Sums, int Chains>
[[gnu::always_inline]] inline void merge_chains(Sums (&s)[Chains]) {
  static_assert(Chains == 2 || Chains == 4);
  s[0].merge(s[1]);
  if constexpr (Chains == 4) {
    s[2].merge(s[3]);
    s[0].merge(s[2]);
  }
}

// Which of the loops fetches, the sums or the elements: the longer one. Exponentials are in sums.
template <class Rule>
constexpr bool fetches_in_elements = (Rule::summed == 1) && (Rule::has_sums) && (Rule::per_element) &&
                                     (Rule::look != num::row_look::greatest);

template <class Rule, bool Keep>
[[gnu::noinline, gnu::flatten]] inline typename Rule::template sums<double> sums_of(const slice& s, double row_top) {
  const f64v top = V::all(row_top);
  typename Rule::template sums<f64v> sums[sum_chains];
  std::int64_t i = 0;
  for (; i + sum_chains * L <= s.n; i += sum_chains * L) {
    if constexpr (Rule::summed == 1 && !fetches_in_elements<Rule>) {
      for (int line = 0; line < sum_chains * L; line += 16) __builtin_prefetch(ahead_of(s, i + line));
    }
#pragma GCC unroll 4
    for (int c = 0; c < sum_chains; ++c) add_term<Rule, Keep>(sums[c], s.x, s.keep, i + c * L, top);
  }
  for (; i + L <= s.n; i += L) add_term<Rule, Keep>(sums[0], s.x, s.keep, i, top);
  if (i < s.n) {
    const last_register<Rule, Rule::summed> last(s, i, row_top);
    add_term<Rule, Keep>(sums[1], last.x, s.keep + i, 0, top);
  }
  merge_chains(sums);
  typename Rule::template sums<double> total = sums[0].lane(0);
#pragma GCC unroll 8
  for (int l = 1; l < L; ++l) total.merge(sums[0].lane(l));
  return total;
}

// The greatest magnitude; a NaN is none.
[[gnu::noinline, gnu::flatten]] inline float greatest_magnitude(const float* x, std::int64_t n) {
  const auto size = [](const float* from) { return as<f32v>(load<vec<std::uint32_t, lanes32>>(from) & 0x7fffffff); };
  f32v m[2] = {};
  std::int64_t i = 0;
  for (; i + 2 * lanes32 <= n; i += 2 * lanes32) {
    m[0] = larger(size(x + i), m[0]);
    m[1] = larger(size(x + i + lanes32), m[1]);
  }
  float last[2 * lanes32] = {};
  for (int l = 0; l < n - i; ++l) last[l] = x[i + l];
  m[0] = larger(size(last), m[0]);
  m[1] = larger(size(last + lanes32), m[1]);
  const f32v all = larger(m[0], m[1]);
  float top = 0;
  for (int l = 0; l < lanes32; ++l) top = all[l] > top ? all[l] : top;
  return top;
}

// The same in wide numbers, added to `total`.
template <class Rule>
[[gnu::noinline, gnu::flatten]] inline void wide_sums_of(const slice& s, double row_top, const num::row_call& call,
                                                         typename Rule::template late<num::wide<double>>& total) {
  using sum = typename Rule::template late<num::wide<f64v>>;
  constexpr int chains = 2;
  sum sums[chains];
  for (sum& c : sums) num::start_sums(c, V::all(row_top), call);
  const auto add = [&](sum & to, const float* const* from, std::int64_t i) __attribute__((always_inline)) {
    const operands_at<Rule::summed> at(from, i);
    [&]<int... K>(std::integer_sequence<int, K...>) { to.add(at.x[K]...); }
    (std::make_integer_sequence<int, Rule::summed>{});
  };
  std::int64_t i = 0;
  for (; i + chains * L <= s.n; i += chains * L) {
#pragma GCC unroll 2
    for (int c = 0; c < chains; ++c) add(sums[c], s.x, i + c * L);
  }
  for (; i + L <= s.n; i += L) add(sums[0], s.x, i);
  if (i < s.n) {
    const last_register<Rule, Rule::summed> last(s, i, row_top);
    add(sums[1], last.x, 0);
  }
  merge_chains(sums);
  for (int l = 0; l < L; ++l) total.merge(sums[0].lane(l));
}

// Where outputs go: with a mark for those that are undecided, or past the caches.
enum class to { memory, memory_and_marks, stream };
// What a rule has of a slice for its elements, if it has (rule.hpp).
template <class Rule>
constexpr bool has_limits = requires {
  typename Rule::template limits<f64v>;
};
struct no_limits {};
template <class Rule>
struct limits_of_rule {
  using type = no_limits;
};
template <class Rule>
requires has_limits<Rule>
struct limits_of_rule<Rule> {
  using type = typename Rule::template limits<f64v>;
};
template <class Rule>
constexpr bool has_careful = requires(typename Rule::template numbers<f64v> n, const f64v* x) {
  Rule::template careful<float>(n, x, *x);
};
// Whether elements that a loop leaves undecided may be decided by another one.
template <class Rule>
constexpr bool has_second = has_careful<Rule> || has_limits<Rule>;
// Whether many undecided elements of a row may be decided from its wide sums at once.
template <class Rule>
constexpr bool has_precise = requires {
  typename Rule::precise;
};
template <class Rule, class T>
struct element_of {
  typename Rule::template numbers<f64v> numbers;
  f64v top;
  typename limits_of_rule<Rule>::type limits{};  // of a slice

  // The element, with what it costs more where it is undecided (Careful).
  template <bool Careful>
  [[gnu::always_inline]] num::verdict<f64v> at(const float* const* x, const double* keep, std::int64_t i) const {
    const operands_at<num::elements_of<Rule>> e(x, i);
    f64v term = {};
    if constexpr (Rule::keeps_term) term = keep != nullptr ? load<f64v>(keep + i) : Rule::template term<f64v>(e.x, top);
    if constexpr (has_limits<Rule> && !Careful) {
      return Rule::template element_within<T>(numbers, limits, e.x);
    } else if constexpr (Careful && has_careful<Rule>) {
      return Rule::template careful<T>(numbers, e.x, term);
    } else {
      return Rule::template element<T>(numbers, e.x, term);
    }
  }
};

// Writes the elements of a slice, and says whether one is undecided.
template <class Rule, to To, bool Careful, bool Kept, class T>
[[gnu::noinline, gnu::flatten]] inline bool write_elements(const element_of<Rule, T>& of_row, const slice& s,
                                                           float* out, std::uint32_t* undecided) {
  // Copies, which no store changes: they stay in registers.
  const element_of<Rule, T> element = of_row;
  const float* x[num::elements_of<Rule>];
  for (int k = 0; k < num::elements_of<Rule>; ++k) x[k] = s.x[k];
  const double* const keep = Kept ? s.keep : nullptr;
  i32h fails = {};
  std::int32_t last_fails = 0;
  const auto emit = [&]<to As>(std::int64_t i) __attribute__((always_inline)) {
    const auto v = element.template at<Careful>(x, keep, i);
    fails |= v.undecided;
    if constexpr (As == to::stream) {
      stream(out + i, v.value);
    } else {
      store(out + i, v.value);
    }
    if constexpr (As == to::memory_and_marks) store(undecided + i, as<u32h>(v.undecided));
  };
  std::int64_t full = s.n / L * L;
  std::int64_t i = 0;
  if constexpr (To == to::stream) {
    // From the first whole register of `out` on; what lies before it, and a little more, apart.
    const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(out) / sizeof(float) % L);
    if (past != 0 && s.n >= L) {
      emit.template operator()<to::memory>(0);
      i = L - past;
      full = i + (s.n - i) / L * L;
    }
  }
  if constexpr (To != to::memory_and_marks) {  // marks are rare
    constexpr int line = 16;
    for (; i + line <= full; i += line) {
      if constexpr (fetches_in_elements<Rule>) __builtin_prefetch(ahead_of(s, i));
#pragma GCC unroll 8
      for (int c = 0; c < line; c += L) emit.template operator()<To>(i + c);
    }
  }
  for (; i < full; i += L) emit.template operator()<To>(i);
  if (full < s.n) {
    const last_register<Rule, num::elements_of<Rule>> last(s, full, 0);
    double kept[L] = {};
    if constexpr (Kept) {
      for (int l = 0; l < s.n - full; ++l) kept[l] = s.keep[full + l];
    }
    const auto v = element.template at<Careful>(last.x, Kept ? kept : nullptr, 0);
    for (int l = 0; l < s.n - full; ++l) {
      out[full + l] = v.value[l];
      last_fails |= v.undecided[l];
      if constexpr (To == to::memory_and_marks) undecided[full + l] = static_cast<std::uint32_t>(v.undecided[l]);
    }
  }
  for (int l = 0; l < L; ++l) last_fails |= fails[l];
  return last_fails != 0;
}
template <class Rule, to To, bool Careful, class T>
[[gnu::always_inline]] inline bool write_elements(const element_of<Rule, T>& element, const slice& s, float* out,
                                                  std::uint32_t* undecided = nullptr) {
  if constexpr (Rule::keeps_term && !Careful) {
    if (s.keep != nullptr) return write_elements<Rule, To, Careful, true>(element, s, out, undecided);
  }
  return write_elements<Rule, To, Careful, false>(element, s, out, undecided);
}

// Sums of two operands or more have enough to do beside the addition that is waited for.
template <class Rule>
constexpr int column_chains = Rule::summed == 1 ? sum_chains : 2;

// The sums of a tile's rows, whose tops are `top`.
template <class Rule>
[[gnu::noinline, gnu::flatten]] inline void sums_of_columns(const slice& s, std::int64_t columns, const double* top,
                                                            typename Rule::template sums<f64v>* to) {
  constexpr bool keeps = Rule::keeps_term;
  constexpr int chains = column_chains<Rule>;
  for (std::int64_t c = 0; c < columns; c += L) {
    const f64v t = load<f64v>(top + c);
    typename Rule::template sums<f64v> sums[chains];
    std::int64_t at = c;
    const std::int64_t end = s.n * columns;
    for (; at + (chains - 1) * columns < end; at += chains * columns) {
#pragma GCC unroll 4
      for (int i = 0; i < chains; ++i) add_term<Rule, keeps>(sums[i], s.x, s.keep, at + i * columns, t);
    }
    for (; at < end; at += columns) add_term<Rule, keeps>(sums[0], s.x, s.keep, at, t);
    merge_chains(sums);
    to[c / L] = sums[0];
  }
}
// The elements of a tile's columns [c, c + L); which rows have an undecided one.
template <class Rule, class T>
[[gnu::noinline, gnu::flatten]] inline i32h write_columns(const element_of<Rule, T>& element, const slice& s,
                                                          std::int64_t c, std::int64_t columns, float* out) {
  i32h undecided = {};
  for (std::int64_t at = c; at < s.n * columns; at += columns) {
    const auto v = element.template at<has_limits<Rule>>(s.x, Rule::keeps_term ? s.keep : nullptr, at);
    store(out + at, v.value);
    undecided |= v.undecided;
  }
  return undecided;
}

}  // namespace
}  // namespace repdl::cpu::REPDL_ISA
