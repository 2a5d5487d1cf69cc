// Sums to places: a list of slices of the source is added up side by side, a register of tracked sums for some columns. Compiled
// once per instruction set.
#include <cstring>
#include <type_traits>
#include <utility>

#include "backends/cpu/core/simd.hpp"
#include "backends/cpu/scatter/scatter.hpp"
#include "librepdl/ops/sums/scatter.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

using std::int64_t;

template <class T>
using sum_of = num::scatter_terms<T>;

constexpr int most_registers = vector_bytes == 64 ? 8 : 4;  // three for each sum
constexpr int64_t ahead = 4;                                // slices that are fetched before they are added

// Slices of at most Registers * lanes64 columns; there are `known` offsets, those of the next lists behind these n.
template <class T, int Registers>
[[gnu::flatten]] void add_columns(const T* source, const int64_t* offsets, int64_t n, int64_t known, int64_t step,
                                  int64_t width, double* hi, double* lo, double* error) noexcept {
  constexpr int64_t lanes = lanes64;
  constexpr int64_t most = Registers * lanes;
  num::scatter_terms<T, f64v> sums[Registers];
  using number = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const auto add_all = [&]<int... R>(const number* x, std::integer_sequence<int, R...>) __attribute__((always_inline)) {
    if constexpr (std::is_same_v<T, double>) {
      (sums[R].add(load<f64v>(x + R * lanes)), ...);
    } else {
      (sums[R].add(widen(load<f32h>(x + R * lanes))), ...);
    }
  };
  const auto number_of = [](T v) __attribute__((always_inline)) {
    if constexpr (std::is_same_v<T, double>) {
      return v;
    } else {
      return num::widen_to_float(v);
    }
  };
  constexpr std::make_integer_sequence<int, Registers> all;
  number columns[most] = {};
  for (int64_t k = 0; k < n; ++k) {
    const T* const x = source + offsets[k];
    if (k + ahead < known) {
      const T* const next = source + offsets[k + ahead];
      for (int64_t i = 0; i < width; i += 64 / static_cast<int64_t>(sizeof(T))) __builtin_prefetch(next + i * step);
      __builtin_prefetch(next + (width - 1) * step);
    }
    if constexpr (std::is_same_v<T, number>) {
      if (step == 1 && width == most) {
        add_all(x, all);
        continue;
      }
    }
    if (step == 1 && width == most) {
      for (int64_t i = 0; i < most; ++i) columns[i] = number_of(x[i]);
    } else if (step == 1) {  // a loop of a constant length: g++ makes masked moves of it
      for (int64_t i = 0; i < most; ++i) columns[i] = i < width ? number_of(x[i]) : number{};
    } else {
      for (int64_t i = 0; i < width; ++i) columns[i] = number_of(x[i * step]);
    }
    add_all(columns, all);
  }
  [&]<int... R>(std::integer_sequence<int, R...>) {
    (store(hi + R * lanes, sums[R].hi), ...);
    (store(lo + R * lanes, sums[R].lo), ...);
    (store(error + R * lanes, sums[R].error), ...);
  }
  (all);
}

template <class T>
void add(const scatter_call& c, const scatter_columns& columns, int64_t begin, int64_t end, scatter_sums& to) noexcept {
  const T* const source = static_cast<const T*>(c.p.source.data) + columns.source;
  const int64_t* const offsets = c.offsets + begin;
  const int64_t n = end - begin;
  const int64_t known = c.ends[c.p.targets.count - 1] - begin;
  const int64_t step = columns.source_step;
  for (int64_t i = 0; i < columns.width;) {
    const int64_t rest = columns.width - i;
    if (rest < 3) {
      sum_of<T> s;
      for (int64_t k = 0; k < n; ++k) s.add(num::widen(source[offsets[k] + i * step]));
      to.hi[i] = s.hi, to.lo[i] = s.lo, to.error[i] = s.error;
      ++i;
      continue;
    }
    const auto group = [&]<int Registers>() {
      const int64_t width = rest < Registers * lanes64 ? rest : Registers * lanes64;
      add_columns<T, Registers>(source + i * step, offsets, n, known, step, width, to.hi + i, to.lo + i, to.error + i);
      i += width;
    };
    if (rest > most_registers / 2 * lanes64) {
      group.template operator()<most_registers>();
    } else if (rest > lanes64) {
      group.template operator()<most_registers / 2>();
    } else {
      group.template operator()<1>();
    }
  }
}

void count(tally& counted, tier t, int64_t n) { counted.elements[static_cast<int>(t)] += n; }

// The offset of a target.
int64_t offset_of(const plan::scatter_plan& p, const plan::axes& stride, int64_t target) {
  if (p.targets.rank == 1) return target * stride[0];
  int64_t offset = 0;
  for (auto a = static_cast<std::size_t>(p.targets.rank); a-- > 0;) {
    offset += target % p.targets.shape[a] * stride[a];
    target /= p.targets.shape[a];
  }
  return offset;
}

// Calls use(i, offset of target first + i) for n targets.
template <class Use>
[[gnu::always_inline]] inline void for_offsets(const plan::scatter_plan& p, const plan::axes& stride, int64_t first,
                                               int64_t n, const Use& use) {
  if (p.targets.rank == 1 && stride[0] == 1) {
    for (int64_t i = 0; i < n; ++i) use(i, first + i);
  } else {
    for (int64_t i = 0; i < n; ++i) use(i, offset_of(p, stride, first + i));
  }
}

template <class T>
T exactly(const scatter_call& c, const scatter_columns& columns, const num::scatter_formula& f, int64_t target,
          int64_t column, T x) {
  const T* const source = static_cast<const T*>(c.p.source.data) + columns.source + column * columns.source_step;
  num::exact_sum<T, 1> s;
  const int64_t begin = c.ends[target - 1];
  for (int64_t k = begin; k < c.ends[target]; ++k) s.add(source[c.offsets[k]]);
  return num::scatter_exact(f, x, s, c.ends[target] - begin);
}

// num::scatter_quick of `width` elements, whose sums have terms[i] + merges terms; undecided[i] != 0 where one is undecided, whether one
// is. By itself the loop is vectorised.
template <class T>
[[gnu::noinline]] bool quick_results(const double* __restrict before, const scatter_sums& s,
                                     const int64_t* __restrict terms, int64_t merges, int64_t width,
                                     T* __restrict results, std::uint32_t* __restrict undecided) noexcept {
  std::uint32_t any = 0;
  for (int64_t i = 0; i < width; ++i) {
    const num::scatter_interval of = num::quick_interval(before[i], {s.hi[i], s.lo[i], s.error[i]}, terms[i] + merges);
    const T low = num::rounded<T>(of.value - of.error), high = num::rounded<T>(of.value + of.error);
    if constexpr (num::is_small_float<T>) {
      results[i].bits = low.bits;
    } else {
      results[i] = low;
    }
    any |= undecided[i] = (num::to_bits(low) ^ num::to_bits(high)) | (of.error == of.error ? 0 : 1);
  }
  return any != 0;
}

template <class T>
struct pass {
  const scatter_call& c;
  const scatter_columns& columns;
  const num::scatter_formula f;
  T* const out;
  const T* const x;
  tally& counted;

  pass(const scatter_call& call, const scatter_columns& of, tally& t)
      : c(call),
        columns(of),
        f{call.p.alpha, call.p.mean, call.force_exact},
        out(static_cast<T*>(call.p.out) + of.out),
        x(call.p.x.data == nullptr ? nullptr : static_cast<const T*>(call.p.x.data) + of.x),
        counted(t) {}

  // A target without terms.
  void keep(int64_t target) const {
    T* const to = out + offset_of(c.p, c.p.out_stride, target);
    const T* const from = x == nullptr ? nullptr : x + offset_of(c.p, c.p.x.outer_stride, target);
    count(counted, tier::proved, columns.width);
    if (from == to) return;
    if (from != nullptr && columns.out_step == 1 && columns.x_step == 1) {
      std::memcpy(to, from, static_cast<std::size_t>(columns.width) * sizeof(T));
      return;
    }
    for (int64_t i = 0; i < columns.width; ++i) {
      to[i * columns.out_step] = from == nullptr ? T{} : from[i * columns.x_step];
    }
  }

  // Of `width` elements before[i] + the sum of terms[i] terms, of height terms[i] + merges: results, which ones are undecided, and whether
  // one is.
  [[gnu::always_inline]] bool first_tier(const double* before, const scatter_sums& s, int64_t width,
                                         const int64_t* terms, int64_t merges, T* results,
                                         std::uint32_t* undecided) const {
    const bool quick = !std::is_same_v<T, double> && f.alpha == 1 && !f.mean && !f.force;
    if constexpr (!std::is_same_v<T, double>) {
      if (quick && !quick_results(before, s, terms, merges, width, results, undecided)) return false;
    }
    bool any = false;
    for (int64_t i = 0; i < width; ++i) {
      if (quick && undecided[i] == 0) continue;
      const num::decided_value<T> r =
          num::scatter_first<T>(f, before[i], sum_of<T>{s.hi[i], s.lo[i], s.error[i]}, terms[i] + merges, terms[i]);
      results[i] = r.value;
      undecided[i] = r.decided ? 0 : 1;
      any |= !r.decided;
    }
    return any;
  }

  void counted_as(int64_t decided, int64_t exact) const {
    count(counted, std::is_same_v<T, double> ? tier::double_double : tier::binary64, decided);
    count(counted, tier::exact, exact);
  }

  [[gnu::flatten]] void decide(int64_t target, int64_t merges, const scatter_sums& s) const {
    T* const to = out + offset_of(c.p, c.p.out_stride, target);
    const T* const from = x == nullptr ? nullptr : x + offset_of(c.p, c.p.x.outer_stride, target);
    double before[scatter_block];
    int64_t terms[scatter_block];
    for (int64_t i = 0; i < columns.width; ++i) {
      terms[i] = c.ends[target] - c.ends[target - 1];
      before[i] = from == nullptr ? 0.0 : num::widen(from[i * columns.x_step]);
    }
    T results[scatter_block];
    std::uint32_t undecided[scatter_block];
    const bool any = first_tier(before, s, columns.width, terms, merges, results, undecided);
    int64_t exact = 0;
    for (int64_t i = 0; any && i < columns.width; ++i) {
      if (undecided[i] == 0) continue;
      results[i] = exactly<T>(c, columns, f, target, i, from == nullptr ? T{} : from[i * columns.x_step]);
      ++exact;
    }
    for (int64_t i = 0; i < columns.width; ++i) to[i * columns.out_step] = results[i];
    counted_as(columns.width - exact, exact);
  }

  // Up to scatter_block targets that are single elements. An undecided one is x for now: where out is x, it is read again.
  [[gnu::flatten]] int64_t decide_block(int64_t first, int64_t n, scatter_sum* sums) const {
    T kept[scatter_block];
    double before[scatter_block];
    int64_t terms[scatter_block];
    scatter_sums s;
    for (int64_t i = 0; i < n; ++i) {
      s.hi[i] = sums[i].hi, s.lo[i] = sums[i].lo, s.error[i] = sums[i].error;
      terms[i] = sums[i].n;
    }
    for_offsets(c.p, c.p.x.outer_stride, first, n,
                [&](int64_t i, int64_t at) { kept[i] = x == nullptr ? T{} : x[at]; });
    for (int64_t i = 0; i < n; ++i) before[i] = num::widen(kept[i]);
    T results[scatter_block];
    std::uint32_t undecided[scatter_block];
    const bool any = first_tier(before, s, n, terms, 0, results, undecided);
    int64_t without = 0, left = 0;
    for (int64_t i = 0; i < n; ++i) {
      results[i] = terms[i] == 0 ? kept[i] : results[i];
      without += terms[i] == 0 ? 1 : 0;
    }
    for (int64_t i = 0; any && i < n; ++i) {
      if (undecided[i] == 0 || terms[i] == 0) continue;
      results[i] = kept[i];
      sums[i].n = -1;
      ++left;
    }
    for_offsets(c.p, c.p.out_stride, first, n, [&](int64_t i, int64_t at) { out[at] = results[i]; });
    count(counted, tier::proved, without);
    counted_as(n - without - left, 0);
    return left;
  }
};

template <class T>
bool add_line(const plan::scatter_plan& p, const scatter_line& line, int64_t first, int64_t last,
              scatter_sum* sums) noexcept {
  const T* const source = static_cast<const T*>(p.source.data) + line.source;
  const int64_t* const index = p.index + line.index;
  bool in_range = true;
  for (int64_t i = 0; i < line.length; ++i) {
    const int64_t at = index[i * line.index_step];
    if (at < 0 || at >= p.bound) {
      in_range = false;
      continue;
    }
    const int64_t target = at * p.target_step + line.target + i * line.target_step;
    if (at == p.skipped || target < first || target >= last) continue;
    scatter_sum& to = sums[target];
    sum_of<T> s{to.hi, to.lo, to.error};
    s.add(num::widen(source[i * line.source_step]));
    to = {s.hi, s.lo, s.error, to.n + 1};
  }
  return in_range;
}

template <class T>
int64_t decide(const scatter_call& c, const scatter_columns& columns, int64_t first, int64_t last, scatter_sum* sums,
               tally& counted) noexcept {
  const pass<T> of(c, columns, counted);
  int64_t left = 0;
  sums += first;
  for (int64_t t = first; t < last; t += scatter_block, sums += scatter_block) {
    left += of.decide_block(t, last - t < scatter_block ? last - t : scatter_block, sums);
  }
  return left;
}

template <class T>
void decide_exactly(const scatter_call& c, const scatter_columns& columns, int64_t first, int64_t last,
                    const scatter_sum* sums, tally& counted) noexcept {
  const pass<T> of(c, columns, counted);
  int64_t exact = 0;
  for (int64_t t = first; t < last; ++t) {
    if (sums[t].n >= 0) continue;
    const T before = of.x == nullptr ? T{} : of.x[offset_of(c.p, c.p.x.outer_stride, t)];
    of.out[offset_of(c.p, c.p.out_stride, t)] = exactly<T>(c, columns, of.f, t, 0, before);
    ++exact;
  }
  of.counted_as(0, exact);
}

template <class T>
void targets(const scatter_call& c, const scatter_columns& columns, int64_t first, int64_t last,
             tally& counted) noexcept {
  const pass<T> of(c, columns, counted);
  scatter_sums sums;
  for (int64_t t = first; t < last; ++t) {
    const int64_t begin = c.ends[t - 1];
    const int64_t n = c.ends[t] - begin;
    if (n == 0) {
      of.keep(t);
    } else if (n > c.longest) {
      if (c.long_count != nullptr) c.long_targets[__atomic_fetch_add(c.long_count, 1, __ATOMIC_RELAXED)] = t;
    } else {
      add<T>(c, columns, begin, c.ends[t], sums);
      of.decide(t, 0, sums);
    }
  }
}

// Merges are two additions of lo and error each.
template <class T>
void finish(const scatter_call& c, const scatter_columns& columns, int64_t target, scatter_sums* sums, int parts,
            tally& counted) noexcept {
  for (int64_t i = 0; i < columns.width; ++i) {
    sum_of<T> s;
    for (int part = 0; part < parts; ++part) {
      const scatter_sums& of = sums[part];
      s.merge({of.hi[i], of.lo[i], of.error[i]});
    }
    sums[0].hi[i] = s.hi, sums[0].lo[i] = s.lo, sums[0].error[i] = s.error;
  }
  pass<T>(c, columns, counted).decide(target, 2 * parts, sums[0]);
}

scatter_kernels::loops of(dtype type) noexcept {
  scatter_kernels::loops l{};
  ops::for_each_format<ops::FLOATS>([&]<class T>() {
    if (dtype_of<T> == type) l = {targets<T>, add<T>, finish<T>, add_line<T>, decide<T>, decide_exactly<T>};
  });
  return l;
}

}  // namespace

extern const scatter_kernels scatter_table = {of};

}  // namespace repdl::cpu::REPDL_ISA
