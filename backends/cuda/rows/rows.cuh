// What the kernels of rows share: where rows are, and how a rule (librepdl/ops/rows/rule.hpp) is given what it asks for.
#pragma once

#include <tuple>
#include <type_traits>

#include "backends/cuda/core/launch.cuh"
#include "backends/cuda/rows/device_norms.cuh"
#include "backends/cuda/rows/device_softmax.cuh"
#include "backends/cuda/rows/rows_cut.hpp"
#include "librepdl/num/order.hpp"

namespace repdl::cuda {

using num::device_rule;
using ops::op_id;

// Calls f.template operator()<K>() for K = 0, 1, .. < N: parameters of kernels are not indexed at run time (axes.hpp).
template <int N, class F>
__device__ void for_each_of(F&& f) {
  [&]<int... K>(std::integer_sequence<int, K...>) { (f.template operator()<K>(), ...); }
  (std::make_integer_sequence<int, N>{});
}

// (max - x_t) + R of a row: gap + low + r +- slack. gap = NaN, +inf: the row is. Ignored rows: all 0.
struct loss_row {
  double gap;
  double low;
  double r;
  double slack;
};

// Rows that a tier left undecided: a bit each, and a list in no particular order (nothing depends on it).
struct undecided_list {
  std::uint32_t* bits;
  unsigned long long* count;
  std::int64_t* rows;

  __device__ void add(std::int64_t row) const {
    const std::uint32_t bit = 1u << static_cast<unsigned>(row & 31);
    if ((atomicOr(bits + (row >> 5), bit) & bit) == 0) rows[atomicAdd(count, 1ull)] = row;
  }
};

// The arithmetics of the late tiers, in this order.
using late_arithmetics = std::tuple<num::wide<double>, num::ball<4>, num::ball<8>>;
// Whether the last of a rule's arithmetics decides everything.
template <op_id Op>
inline constexpr bool decides_all = device_rule<Op>::exact_limbs != 0;
template <op_id Op>
inline constexpr int late_levels = decides_all<Op> ? 2 : 3;
// Of a rule that has an arithmetic in which everything is decided.
template <op_id Op, int Level>
using late_arithmetic = std::conditional_t<(Level > 0 && decides_all<Op>), num::ball<device_rule<Op>::exact_limbs>,
                                           std::tuple_element_t<Level, late_arithmetics>>;
template <op_id Op, int Level>
using late_sums = typename device_rule<Op>::template late<late_arithmetic<Op, Level>>;

// The undecided outputs of a row, where they are few: what row_output numbers.
inline constexpr int most_listed = 8;
struct listed_outputs {
  std::int64_t of[most_listed];
};

// Sums of a part of a row of T: of binary32, where a rule has them, precise ones (device_rule.cuh).
template <class Rule, class T>
inline constexpr bool is_precise = std::is_same_v<T, float>&& num::has_precise_sums<Rule>;
template <class Rule, bool Precise>
struct sums_of_part {
  using type = typename Rule::template sums<double>;
};
template <class Rule>
struct sums_of_part<Rule, true> {
  using type = typename Rule::precise;
};
template <class Rule, class T>
using part_sums = typename sums_of_part<Rule, is_precise<Rule, T>>::type;
// Partial sums of a thread. What is done for an element of precise ones takes longer than an addition.
template <class Rule, class T>
inline constexpr int part_chains = is_precise<Rule, T> ? 1 : chains_of<Rule>;

// Zero before every call.
struct row_status {
  unsigned long long counted;       // rows that are not ignored
  unsigned long long undecided[3];  // lengths of the lists
  std::uint32_t total_undecided;    // not 0: the total is not decided yet
  std::uint32_t blocks_done[5];     // of each launch for the total, and of that for the sum of weights
  double total;                     // the sum of the weights at targets, rounded,
  num::exact_sum<float, 1> weights;
};

struct row_geometry : row_layout {
  num::row_bounds bounds;
  unsigned levels;  // a bit for each late level that is to run
  bool settles;     // whether outputs that binary64 leaves undecided are decided from precise sums at once
  std::int64_t
      cleared_words;  // of 32 bits, from `status` on, that the first kernel sets to 0: the others are so before it
  // Workspace. Of the lists there is one for what each tier leaves undecided, but the last; rows in chunks need more than the first.
  row_status* status;
  std::uint32_t* list_bits;
  std::int64_t* list_rows;
  unsigned* undecided_count;  // of each row; more than most_listed: not all are listed. Null: rows are short
  listed_outputs* undecided;
  unsigned*
      chunks_done;   // of each row, in the late tiers of rules that have an arithmetic in which everything is decided
  std::byte* known;  // known_row of those in a list, at least
  loss_row* losses;  // is_total

  REPDL_HD std::int64_t list_words() const { return (rows + 31) / 32; }
  __device__ bool has_two_axes() const { return kept.rank == 2 && rows < std::int64_t{1} << 31; }
  __device__ undecided_list list(int i) const {
    return {list_bits + i * list_words(), &status->undecided[i], list_rows + i * rows};
  }
  __device__ void note_undecided(std::int64_t row, std::int64_t output) const {
    if (undecided_count == nullptr || undecided_count[row] > most_listed) return;
    const unsigned i = atomicAdd(undecided_count + row, 1u);
    if (i < most_listed) undecided[row].of[i] = output;
  }
};
// Whether factors are of another format than the other operands.
__host__ __device__ constexpr bool is_mixed(const row_geometry& g) { return g.factor_type != g.type; }

// A row, and where it is along two axes, if there are two and not too many rows: one division for all operands.
struct row_index {
  std::int64_t row;
  std::uint32_t inner = 0;
  std::uint32_t outer = 0;

  __device__ row_index(const row_geometry& g, std::int64_t r) : row(r) {
    if (!g.has_two_axes()) return;
    const auto size = static_cast<std::uint32_t>(g.kept.size[0]);
    outer = static_cast<std::uint32_t>(r) / size;
    inner = static_cast<std::uint32_t>(r) - outer * size;
  }
};

// The offset of an operand at a row, or at an element of one. Out of line beyond such axes: the divisions are rare and large.
template <int Operand>
__device__ __noinline__ std::int64_t row_offset_of_axes(const row_geometry& g, std::int64_t row) {
  return g.kept.offset<Operand>(row);
}
template <int Operand>
__device__ std::int64_t row_offset(const row_geometry& g, const row_index& at) {
  if (g.kept.rank <= 1) return at.row * g.kept.stride[Operand][0];  // rank 0: index 0
  if (g.has_two_axes()) return at.inner * g.kept.stride[Operand][0] + at.outer * g.kept.stride[Operand][1];
  return row_offset_of_axes<Operand>(g, at.row);
}
template <int Operand>
__device__ std::int64_t row_offset(const row_geometry& g, std::int64_t row) {
  return row_offset<Operand>(g, row_index(g, row));
}
template <int Operand>
__device__ __noinline__ std::int64_t element_offset_of_axes(const row_geometry& g, std::int64_t j) {
  if (g.length >> 31 == 0) return g.reduced.offset<Operand>(static_cast<std::uint32_t>(j));
  return g.reduced.offset<Operand>(j);
}
template <int Operand>
__device__ std::int64_t element_offset(const row_geometry& g, std::int64_t j) {
  if (g.reduced.rank <= 1) return j * g.reduced.stride[Operand][0];
  if (g.inner_bits >= 0) {
    const auto at = static_cast<std::uint32_t>(j);
    const std::uint32_t outer = at >> g.inner_bits;
    return (at - (outer << g.inner_bits)) * g.reduced.stride[Operand][0] + outer * g.reduced.stride[Operand][1];
  }
  return element_offset_of_axes<Operand>(g, j);
}

// What there is of an element: all operands, or those that sums take.
template <int N>
struct row_values {
  float x[N];
};

// Numbers of a format are binary32 numbers on their way. any_format: it is known at run time.
struct any_format {};
template <class T>
inline constexpr bool is_any = std::is_same_v<T, any_format>;
template <class T>
struct or_binary32 {  // T or binary32, likewise
  using other = T;
};
template <class T>
inline constexpr bool is_either = false;
template <class T>
inline constexpr bool is_either<or_binary32<T>> = true;
template <class T>
__device__ inline const void* advanced(const void* from, std::int64_t by, dtype type) {
  if constexpr (is_any<T> || is_either<T>)
    return static_cast<const std::byte*>(from) + by * (type == dtype::f32 ? 4 : 2);
  else
    return static_cast<const T*>(from) + by;
}
template <class T>
__device__ inline float number_at(const void* from, std::int64_t i, [[maybe_unused]] dtype type) {
  if constexpr (is_any<T>) {
    if (type == dtype::f32) return static_cast<const float*>(from)[i];
    if (type == dtype::f16) return num::widen_to_float(static_cast<const f16*>(from)[i]);
    return num::widen_to_float(static_cast<const bf16*>(from)[i]);
  } else if constexpr (is_either<T>) {
    if (type == dtype::f32) return static_cast<const float*>(from)[i];
    return number_at<typename T::other>(from, i, type);
  } else {
    return num::widen_to_float(static_cast<const T*>(from)[i]);
  }
}
template <class T>
__device__ inline T narrowed(float x) {
  if constexpr (std::is_same_v<T, float>)
    return x;
  else
    return num::narrow<T>(x);
}
template <class T>
__device__ inline void set_number(void* to, std::int64_t i, [[maybe_unused]] dtype type, float x) {
  if constexpr (is_any<T>) {
    if (type == dtype::f32) static_cast<float*>(to)[i] = x;
    if (type == dtype::f16) static_cast<f16*>(to)[i] = narrowed<f16>(x);
    if (type == dtype::bf16) static_cast<bf16*>(to)[i] = narrowed<bf16>(x);
  } else {
    static_cast<T*>(to)[i] = narrowed<T>(x);
  }
}
// Factors (rule.hpp) have a format of their own, which is known at run time: T or binary32.
template <class Rule, int K>
inline constexpr bool is_factor = Rule::has_factors&& K >= Rule::required&& K < Rule::formatted;
template <class Rule, class T>
inline constexpr bool may_mix = has_more<Rule>&& Rule::has_factors && sizeof(T) == 2;
// What factors are taken as, if nobody has asked. with_factors asks, for some elements; a kernel of rows in registers, where that would
// take time, knows.
template <class Rule, class T>
using any_factor = std::conditional_t<may_mix<Rule, T>, or_binary32<T>, T>;
// Of an element operand; F: of a factor.
template <class Rule, int K, class T, class F>
using element_format = std::conditional_t<(K >= Rule::formatted), float, std::conditional_t<is_factor<Rule, K>, F, T>>;
template <class Rule, int K>
__device__ dtype type_of_element(const row_geometry& g) {
  return is_factor<Rule, K> ? g.factor_type : g.type;
}

// A row in the operands. F: how factors are read.
template <op_id Op, class T, class F = any_factor<device_rule<Op>, T>>
struct row_site {
  using rule = device_rule<Op>;
  static constexpr int elements = num::elements_of<rule>;
  static constexpr int first_result = rule::per_element ? 1 : 0;
  template <int K>
  using format = element_format<rule, K, T, F>;

  const void* x[elements];
  void* out;  // of elements
  row_index index;

  __device__ row_site(const row_geometry& g, std::int64_t r) : index(g, r) {
    for_each_of<elements>(
        [&]<int K>() { x[K] = advanced<format<K>>(g.x[K], row_offset<K>(g, index), type_of_element<rule, K>(g)); });
    if constexpr (rule::per_element) {
      out = const_cast<void*>(advanced<T>(g.out[0], row_offset<out_place>(g, index), g.type));
    }
  }
  template <class G>
  __device__ explicit row_site(const row_site<Op, T, G>& o) : out(o.out), index(o.index) {
    for (int k = 0; k < elements; ++k) x[k] = o.x[k];
  }
  __device__ std::int64_t row() const { return index.row; }
  // Where operand K, or the elements' output, begins.
  template <int K>
  __device__ auto* begin() const {
    if constexpr (K == out_place)
      return static_cast<T*>(out);
    else
      return static_cast<const format<K>*>(x[K]);
  }
  template <int K>
  __device__ float number(const row_geometry& g, std::int64_t offset) const {
    return number_at<format<K>>(x[K], offset, type_of_element<rule, K>(g));
  }
  template <int K>
  __device__ float value(const row_geometry& g, std::int64_t j) const {
    if constexpr (K >= rule::required) {
      constexpr float absent = rule::absent[K];
      if (g.x[K] == nullptr) return absent;
      if (g.access[K] == quad_access::constant) return number<K>(g, 0);
    }
    return number<K>(g, g.access[K] == quad_access::flat ? j : element_offset<K>(g, j));
  }
  template <int N = elements>
  __device__ row_values<N> values(const row_geometry& g, std::int64_t j) const {
    row_values<N> v;
    for_each_of<N>([&]<int K>() { v.x[K] = value<K>(g, j); });
    return v;
  }
  __device__ void set(const row_geometry& g, std::int64_t j, float v) const {
    set_number<T>(out, element_offset<out_place>(g, j), g.type, v);
  }
  __device__ void set(const row_geometry& g, std::int64_t j, T v) const requires(sizeof(T) == 2) {
    static_cast<T*>(out)[element_offset<out_place>(g, j)] = v;
  }
  template <int K>
  __device__ bool wants(const row_geometry& g) const {
    return g.out[first_result + K] != nullptr;
  }
  template <int K>
  __device__ void set_result(const row_geometry& g, float v) const {
    constexpr int output = first_result + K;
    set_number<any_format>(g.out[output], row_offset<out_place + output>(g, index), g.out_type[output], v);
  }
};

// f(site), which knows the format of the factors among the first N operands.
template <int N, op_id Op, class T, class F, class Do>
__device__ void with_factors(const row_geometry& g, const row_site<Op, T, F>& at, Do&& f) {
  if constexpr (!is_either<F> || N <= device_rule<Op>::required) {
    f(at);
  } else if (g.factor_type == dtype::f32) {
    f(row_site<Op, T, float>(at));
  } else {
    f(row_site<Op, T, T>(at));
  }
}

inline constexpr float row_inf = __builtin_inff();
__device__ inline float row_nan() { return num::float_of(num::canonical_nan_f32); }

// ---------------------------------------------------------------------------------------------------- a rule's questions

// The rows that a mean is divided by.
__device__ inline std::int64_t counted_rows(const row_geometry& g) {
  return g.target == nullptr ? g.rows : static_cast<std::int64_t>(g.status->counted);
}
__device__ inline num::row_call call_of(const row_geometry& g) {
  num::row_call c{g.bounds, g.length, g.is_mean ? counted_rows(g) : 1, g.eps, g.biased, g.momentum};
  c.total = g.is_weighted ? g.status->total : static_cast<double>(c.n);
  c.weights = g.is_weighted ? &g.status->weights.finite : nullptr;
  c.mixed = is_mixed(g);
  return c;
}
template <op_id Op, class T, class F>
__device__ num::row_operands operands_of(const row_geometry& g, const row_site<Op, T, F>& at) {
  num::row_operands o;
  if constexpr (device_rule<Op>::inputs.g >= 0) {
    o.g = number_at<any_format>(g.row_g, row_offset<g_place>(g, at.index), g.g_type);
  }
  if constexpr (device_rule<Op>::inputs.target >= 0) {
    if (g.target == nullptr) return o;
    o.target = g.target[row_offset<target_place>(g, at.index)];
    o.ignored = o.target == g.ignore_index;
    if (!o.has_target(g.length)) return o;
    o.at_target = at.template value<0>(g, o.target);
    if constexpr (num::elements_of < device_rule < Op >>> 1) o.weight = at.template value<1>(g, o.target);
  }
  for_each_of<num::formers_of<device_rule<Op>>>([&]<int K>() { o.former[K] = g.row_former[K][at.row()]; });
  return o;
}
// The top of a row without the look for it: of no elements.
template <op_id Op, class T, class F>
__device__ float least_top(const row_geometry& g, const row_site<Op, T, F>& at) {
  using num::row_look;
  if constexpr (device_rule<Op>::look == row_look::first) return g.length == 0 ? 0.0f : at.template number<0>(g, 0);
  if constexpr (device_rule<Op>::look == row_look::given) return g.row_top[row_offset<top_place>(g, at.index)];
  return device_rule<Op>::look == row_look::greatest ? -row_inf : 0.0f;
}

// The operands that sums take, in binary64.
template <op_id Op>
struct summed_values {
  double x[device_rule<Op>::summed];
  __device__ explicit summed_values(const float* of) {
    for (int k = 0; k < device_rule<Op>::summed; ++k) x[k] = static_cast<double>(of[k]);
  }
};
template <op_id Op>
__device__ double term_of(const float* x, float top) {
  return device_rule<Op>::template term<double>(summed_values<Op>(x).x, static_cast<double>(top));
}
// An output of element operands; Careful: at the most that binary64 can do.
// exponential: what the rule's element takes, if it takes one.
template <op_id Op, class T, bool Careful = false, class... Exponential>
__device__ num::verdict<double> element_of(const typename device_rule<Op>::template numbers<double>& n, const float* x,
                                           double term, const Exponential&... exponential) {
  using rule = device_rule<Op>;
  double v[num::elements_of<rule>];
  for (int k = 0; k < num::elements_of<rule>; ++k) v[k] = static_cast<double>(x[k]);
  if constexpr (Careful && requires { rule::template careful<T>(n, v, term); }) {
    return rule::template careful<T>(n, v, term);
  } else {
    return rule::template element<T>(n, v, term, exponential...);
  }
}

// Adds an element to the sums; its term. exponential: what the rule's term takes, if it takes one.
template <op_id Op, class Sums, class... Exponential>
__device__ double add_element(Sums& s, const float* x, float top, const Exponential&... exponential) {
  const summed_values<Op> v(x);
  const double term = device_rule<Op>::template term<double>(v.x, static_cast<double>(top), exponential...);
  s.add(v.x, static_cast<double>(top), term);
  return term;
}

// What one thread knows of a row.
template <op_id Op>
struct row_state {
  num::row_operands o;
  num::row_class c;
  float top;  // 0 where the row fills
};
template <op_id Op>
__device__ row_state<Op> state_of(const num::row_call& call, const num::row_operands& own, float top) {
  row_state<Op> s;
  s.o = own;
  s.c = device_rule<Op>::classify(call, s.o, top);
  s.top = s.c.fills ? 0.0f : top;
  return s;
}
template <op_id Op, class T, class F>
__device__ row_state<Op> state_of(const row_geometry& g, const num::row_call& call, const row_site<Op, T, F>& at,
                                  float top) {
  return state_of<Op>(call, operands_of(g, at), top);
}
template <op_id Op, class Row>
__device__ auto numbers_of(const num::row_call& call, const row_state<Op>& s, const Row& row) {
  const num::row_given<double> own{static_cast<double>(s.o.g), static_cast<double>(s.o.weight)};
  return device_rule<Op>::template prepare<double>(call, own, static_cast<double>(s.top), row);
}

// Of a part that is the whole, or of a total.
template <class Sums>
__device__ auto whole_of(const Sums& s) {
  if constexpr (requires { s.of_row(); }) {
    return s.of_row();
  } else {
    return s.template of_row<double>();
  }
}

// Output j, of x; the target's may be another.
template <op_id Op, class T, class Numbers, class Row>
__device__ num::verdict<double> output_of(const num::row_call& call, const row_state<Op>& s, const Numbers& numbers,
                                          const Row& row, std::int64_t j, const float* x) {
  using rule = device_rule<Op>;
  if constexpr (rule::has_exception) {
    if (j == s.o.target) {
      return num::verdict_of<T>(rule::exception(call, s.o, static_cast<double>(s.top), row));
    }
  }
  const double term = rule::keeps_term ? term_of<Op>(x, s.top) : 0.0;
  const num::verdict<double> v = element_of<Op, T>(numbers, x, term);
  return v.undecided ? element_of<Op, T, true>(numbers, x, term) : v;
}

// Outputs decided by a thread.
struct row_tally {
  std::int64_t proved = 0;
  std::int64_t decided = 0;
  __device__ void add(bool fills, std::int64_t n) { (fills ? proved : decided) += n; }
};

// What the late tiers want to know of a row: what binary64 does.
template <op_id Op>
struct known_row {
  typename device_rule<Op>::total sums;
  float top;
};
template <op_id Op>
__device__ known_row<Op>& known_of(const row_geometry& g, std::int64_t row) {
  return reinterpret_cast<known_row<Op>*>(g.known)[row];
}
// By one thread or more.
template <op_id Op, class Sums>
__device__ __noinline__ void leave_undecided(const row_geometry& g, std::int64_t row, float top, const Sums& sums) {
  known_row<Op> k{{}, top};
  k.sums.join(sums);
  known_of<Op>(g, row) = k;
  g.list(0).add(row);
}

// An output, of x, in wide numbers, from its row's sums.
template <op_id Op, class Sums>
__device__ __noinline__ num::certified settled_by_sums(const row_geometry& g, const num::row_call& call,
                                                       const row_state<Op>& s, const Sums& sums, const float* x) {
  using rule = device_rule<Op>;
  typename rule::total total;
  total.join(sums);
  if (!rule::is_known(total)) return {0.0f, false};
  const auto wide = rule::late_of(static_cast<double>(s.top), total);
  return rule::template settle<num::wide<double>>(g.type, call, s.o, wide, x, 0);
}

// Asks again for output j, of x, which is undecided: at the most that binary64 can do, and from precise sums. What is decided is written, the
// rest noted; whether it stays undecided. Callers count what is decided as binary64's.
template <op_id Op, class T, class F, class Numbers, class Row, class Sums>
__device__ bool output_again(const row_geometry& g, const num::row_call& call, const row_site<Op, T, F>& at,
                             const row_state<Op>& s, const Numbers& numbers, const Row& row,
                             [[maybe_unused]] const Sums& sums, std::int64_t j, const float* x,
                             [[maybe_unused]] counter* counters) {
  const num::verdict<double> v = output_of<Op, T>(call, s, numbers, row, j, x);
  if (!v.undecided) {
    at.set(g, j, v.value);
    return false;
  }
  if constexpr (is_precise<device_rule<Op>, T>) {
    if (g.settles) {
      const num::certified c = settled_by_sums<Op>(g, call, s, sums, x);
      if (c.decided) {
        at.set(g, j, c.value);
        count_elements(counters, tier::double_double, 1);
        count_elements(counters, tier::binary64, -1);
        return false;
      }
    }
  }
  g.note_undecided(at.row(), j);
  return true;
}

// The format of an output that is known at run time.
__device__ inline dtype type_of_output(const row_geometry& g, int output) {
  dtype type = g.out_type[0];
  for_each_of<plan::row_plan::most_outputs>([&]<int K>() { type = K == output ? g.out_type[K] : type; });
  return type;
}

// Result k of a row that does not fill.
template <op_id Op, class Numbers>
__device__ num::certified result_of(const row_geometry& g, const num::row_call& call, const row_state<Op>& s,
                                    const Numbers& n, int k) {
  using rule = device_rule<Op>;
  const auto at = static_cast<double>(rule::counterpart(s.o, k));
  return num::round_ends(type_of_output(g, (rule::per_element ? 1 : 0) + k),
                         rule::template result<double>(call, n, at, k));
}

// The results of a row, or its part of the total, by one thread.
template <op_id Op, class T, class F, class Numbers, class Sums>
__device__ void finish_row(const row_geometry& g, const num::row_call& call, const row_site<Op, T, F>& at,
                           const row_state<Op>& s, const Numbers& n, const Sums& sums, row_tally& tally) {
  using rule = device_rule<Op>;
  if (s.c.fills && g.is_total) {
    g.losses[at.row()] = {s.o.ignored ? 0.0 : static_cast<double>(s.c.value), 0, 0, 0};
    return;
  }
  if constexpr (num::is_loss<rule>) {
    if (g.is_total) {
      const num::loss_part<double> p = rule::part(n, static_cast<double>(rule::counterpart(s.o, 0)));
      g.losses[at.row()] = {p.gap.hi, p.gap.lo, p.log, p.slack};
      return;
    }
  }
  bool undecided = false;
  const std::int64_t elements = rule::per_element ? g.length : 0;
  for_each_of<rule::results>([&]<int K>() {
    if (!at.template wants<K>(g)) return;
    num::certified v = {s.c.value, true};
    if (!s.c.fills) v = result_of<Op>(g, call, s, n, K);
    if (v.decided) at.template set_result<K>(g, v.value);
    if (v.decided) tally.add(s.c.fills, 1);
    if (!v.decided) g.note_undecided(at.row(), elements + K);
    undecided |= !v.decided;
  });
  if (undecided) leave_undecided<Op>(g, at.row(), s.top, sums);
}

__device__ inline float max_or_nan(float a, float b) {
  float m;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(m) : "f"(a), "f"(b));
  return m;
}

template <class T>
__device__ T from_lane(const T& v, int distance) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 4 == 0);
  struct words {
    std::uint32_t of[sizeof(T) / 4];
  };
  words w = __builtin_bit_cast(words, v);
  for (std::uint32_t& i : w.of) i = __shfl_xor_sync(full_warp, i, distance);
  return __builtin_bit_cast(T, w);
}

// Whether binary32 elements are on lines.
template <class Rule, class T>
inline constexpr bool is_on_line = sizeof(T) == 4 && num::has_line<Rule>;
// f<whether elements of packed rows are on lines>().
template <op_id Op, class T, class F>
void with_lines(const row_geometry& g, F&& f) {
  using rule = device_rule<Op>;
  if constexpr (!is_on_line<rule, T>) {
    f.template operator()<false>();
  } else if constexpr (rule::others_of_rows) {
    f.template operator()<true>();
  } else if (g.others == other_operands::of_elements) {
    f.template operator()<false>();
  } else {
    f.template operator()<true>();
  }
}
// Of elements whose operand K is other.template operator()<K>(), if there is one, the line.
template <op_id Op, class T, class F, class Numbers, class Other>
__device__ auto line_at(const row_geometry& g, const row_site<Op, T, F>&, const Numbers& n, const Other& other) {
  using rule = device_rule<Op>;
  float x[num::elements_of<rule>];
  for_each_of<num::elements_of<rule>>([&]<int K>() {
    if constexpr (K >= rule::summed) x[K] = g.x[K] == nullptr ? rule::absent[K] : other.template operator()<K>();
  });
  return rule::line_of(n, x);
}

// Writes outputs first, first + step, ... < end of a row that fills.
template <op_id Op, class T>
__device__ void fill_elements(const row_geometry& g, const row_site<Op, T>& at, float value, std::int64_t first,
                              std::int64_t step, std::int64_t end, row_tally& tally) {
  for (std::int64_t j = first; j < end; j += step) {
    at.set(g, j, value);
    ++tally.proved;
  }
}
// Of any row; whether one is undecided. Some at a time: their operands are read before the first of them is written. What is left undecided
// then is asked for again, at more cost.
template <op_id Op, class T, class Sums>
__device__ bool write_elements(const row_geometry& g, const num::row_call& call, const row_site<Op, T>& at,
                               const row_state<Op>& s, const Sums& sums, std::int64_t first, std::int64_t step,
                               std::int64_t end, row_tally& tally, counter* counters) {
  using rule = device_rule<Op>;
  if (s.c.fills) {
    fill_elements(g, at, s.c.value, first, step, end, tally);
    return false;
  }
  const auto row = whole_of(sums);
  const auto numbers = numbers_of<Op>(call, s, row);
  bool undecided = false;
  with_factors<row_site<Op, T>::elements>(g, at, [&](const auto& site) {
    const auto write = [&]<int Most>(const auto& read, const auto& output) {
      const auto some = [&]<int N>(std::int64_t j) {
        decltype(read(j)) x[N];
        unsigned open = 0;
#pragma unroll
        for (int i = 0; i < N; ++i) x[i] = read(j + i * step);
#pragma unroll
        for (int i = 0; i < N; ++i) {
          const num::verdict<double> v = output(j + i * step, x[i]);
          at.set(g, j + i * step, v.value);
          open |= v.undecided ? 1u << i : 0u;
        }
        tally.decided += N - __popc(open);
        for (; open != 0; open &= open - 1) {
          const std::int64_t k = j + (__ffs(static_cast<int>(open)) - 1) * step;
          const bool left = output_again(g, call, at, s, numbers, row, sums, k, site.values(g, k).x, counters);
          undecided |= left;
          tally.decided += left ? 0 : 1;
        }
      };
      std::int64_t j = first;
      for (; j + (Most - 1) * step < end; j += Most * step) some.template operator()<Most>(j);
      for (; j < end; j += step) some.template operator()<1>(j);
    };
    if constexpr (is_on_line<rule, T>) {
      if (g.others == other_operands::of_rows) {
        const auto line = line_at(g, at, numbers, [&]<int K>() { return at.template number<K>(g, 0); });
        return write.template operator()<4>([&](std::int64_t j) { return at.template value<0>(g, j); },
                                            [&](std::int64_t, float x) { return line.at(x); });
      }
    }
    write.template operator()<4>([&](std::int64_t j) { return site.values(g, j); },
                                 [&](std::int64_t j, const row_values<row_site<Op, T>::elements>& v) {
                                   if constexpr (rule::has_exception) {
                                     return output_of<Op, T>(call, s, numbers, row, j, v.x);
                                   } else {
                                     return element_of<Op, T>(numbers, v.x,
                                                              rule::keeps_term ? term_of<Op>(v.x, s.top) : 0.0);
                                   }
                                 });
  });
  return undecided;
}

// Adds what every thread of the grid decided.
__device__ inline void count_rows_decided(counter* counters, row_tally t) {
  for (int distance = 16; distance >= 1; distance /= 2) {
    t.proved += from_lane(t.proved, distance);
    t.decided += from_lane(t.decided, distance);
  }
  if (lane_of_thread() == 0) {
    count_elements(counters, tier::proved, t.proved);
    count_elements(counters, tier::binary64, t.decided);
  }
}

// The parts of rows.cu, rows_f32.cu and the other formats', rows_wide.cu, rows_late.cu and rows_total.cu: what they take of the workspace, and their
// launches.
struct long_work {
  std::uint32_t* keys;
  std::byte* chunks;  // a rule's totals
};
void take_workspace(long_work& w, const row_geometry& g, carver& c);
template <class T>
void run_long_rows(const row_geometry& g, const long_work& w, const job& j);
template <class T>
void run_registers(const row_geometry& g, int per_thread, bool packed, const job& j);
template <class T>
void run_columns(const row_geometry& g, const job& j);
// Rows of binary64.
void prepare_wide(const plan::row_plan& p, std::unique_ptr<widened_x> x, const job& j, dispatch::task& t);
void run_widening(const widened_x& x, const job& j);
void take_late_workspace(std::byte*& sums, const row_geometry& g, carver& c);
void run_late_rows(const row_geometry& g, std::byte* sums, const job& j);
void run_few_rows(const row_geometry& g, const job& j);
void take_weight_workspace(std::byte*& parts, carver& c);
void run_weights(const row_geometry& g, std::byte* parts, const job& j);
void take_total_workspace(std::byte*& parts, const row_geometry& g, carver& c);
void run_total(const row_geometry& g, std::byte* parts, const job& j);

// Whether long rows may be a block's (whole_kernel): their elements are on lines, nothing is looked for, and none fills.
template <class Rule, class T>
inline constexpr bool is_whole = is_on_line<Rule, T>&& Rule::has_sums;

}  // namespace repdl::cuda
