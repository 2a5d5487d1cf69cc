// Elementwise inner loops: the registry's bodies, vectorised by the compiler. Compiled once per shard and instruction set.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <string_view>
#include <utility>

#include "backends/cpu/core/simd.hpp"
#include "backends/cpu/map/map.hpp"
#include "backends/cpu/map/unpacked.hpp"
#include "librepdl/ops/elementwise/other_format.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

// What quick leaves undecided is so little that careful does its whole block. out may be x: a block is written when it is done.
template <class Op, class T, class... X>
[[gnu::noinline]] void by_blocks(T* out, std::int64_t n, const X*... x) {
  constexpr std::int64_t block = 128;
  T done[block];
  for (std::int64_t first = 0; first < n; first += block) {
    const std::int64_t count = std::min(block, n - first);
    std::uint32_t undecided = 0;
#pragma omp simd reduction(| : undecided)
    for (std::int64_t i = 0; i < count; ++i) {
      auto r = num::evaluate_quickly<Op>(x[first + i]...);  // were it const, g++ 12 would keep it in memory
      done[i] = r.value;
      undecided |= r.decided ? 0 : 1;
    }
    if (undecided != 0) {
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) done[i] = num::evaluate_carefully<Op>(x[first + i]...);
    }
    std::copy_n(done, count, out + first);
  }
}

// A block of f16 or bf16: what careful or eval makes of unpacked operands.
template <class Op, class T, class Result, int... K, class... Options>
void unpacked_carefully(std::integer_sequence<int, K...>, const T* const (&in)[Op::arity], Result* out,
                        const Options... p) {
  using wide = unpacked<T>;
  alignas(64) wide a[Op::arity][unpacked_block];
  alignas(64) std::conditional_t<std::is_same_v<Result, T>, wide, std::uint32_t> r[unpacked_block];
  (unpack(in[K], a[K]), ...);
#pragma omp simd
  for (int i = 0; i < unpacked_block; ++i) r[i] = num::evaluate_carefully<Op>(a[K][i]..., p...);
  store_block<T>(r, out);
}
// What quick leaves undecided careful does, for the whole block.
template <class Op, class T, class Result, int... K, class... Options>
[[gnu::noinline]] void left_undecided(std::integer_sequence<int, K...> k, const T* const (&in)[Op::arity], Result* out,
                                      const Options... p) {
  unpacked_carefully<Op, T>(k, in, out, p...);
}
template <class Op, class T, class Result, int... K, class... Options>
void unpacked_quickly(std::integer_sequence<int, K...> k, const T* const (&in)[Op::arity], Result* out,
                      const Options... p) {
  using wide = unpacked<T>;
  alignas(64) wide a[Op::arity][unpacked_block], r[unpacked_block];
  (unpack(in[K], a[K]), ...);
  alignas(64) std::uint32_t marks[unpacked_block];
  for (int i = 0; i < unpacked_block; ++i) {  // `omp simd` would keep the pair in memory
    auto t = num::evaluate_quickly<Op>(a[K][i]..., p...);
    r[i] = t.value;
    marks[i] = num::undecided_mark(t);
  }
  if (is_any_undecided(marks)) return left_undecided<Op, T>(k, in, out, p...);
  store_block<T>(r, out);
}
// Whether a quick body leaves all midpoints undecided. A: operands and options.
template <class Op, class T, class... A>
concept leaves_midpoints = requires(const A&... a) {
  { num::evaluate_quickly<Op>(a...) } -> std::same_as<num::decided_value<unpacked<T>>>;
};
template <class Op, class T, class... Options, class... X>
[[gnu::noinline]] void left_undecided_at(T* out, const Options&... p, const X*... x) {
  const T* const in[] = {x...};
  unpacked_carefully<Op, T>(std::make_integer_sequence<int, Op::arity>{}, in, out, p...);
}
// Its whole blocks, up to the one that is returned; with operands and options in registers, for most of these bodies are short.
template <class Op, class T, int... K, class... Options>
std::int64_t whole_blocks(std::integer_sequence<int, K...>, const T* const (&in)[Op::arity], T* out, std::int64_t n,
                          const Options... p) {
  using wide = unpacked<T>;
  std::int64_t first = 0;
  const auto over = [&](const auto* const... x) {
    for (; first + unpacked_block <= n; first += unpacked_block) {
      alignas(64) wide a[Op::arity][unpacked_block], r[unpacked_block];
      (unpack(x + first, a[K]), ...);
      alignas(64) std::uint32_t marks[unpacked_block];
      for (int i = 0; i < unpacked_block; ++i) {
        auto t = num::evaluate_quickly<Op>(a[K][i]..., p...);
        r[i] = t.value;
        marks[i] = num::undecided_mark(t);
      }
      if (is_any_undecided_or_nan(marks, r)) {
        left_undecided_at<Op, T, Options...>(out + first, p..., (x + first)...);
      } else {
        store(out + first, pack_plain(r));
      }
    }
  };
  over(in[K]...);
  return first;
}
// Where a rounding test decides: two blocks, for the compiler takes as many elements at once as bytes fill a register.
template <class Op, class T, int... K, class... Options>
void unpacked_tested(std::integer_sequence<int, K...>, const T* const (&in)[Op::arity], T* out, bool* undecided,
                     const Options... p) {
  using wide = unpacked<T>;
  constexpr int block = 2 * unpacked_block;
  alignas(64) wide a[Op::arity][block], r[block];
  alignas(64) std::uint8_t marks[block];
  for (int i = 0; i < block; i += unpacked_block) (unpack(in[K] + i, a[K] + i), ...);
  for (int i = 0; i < block; ++i) {
    auto t = num::evaluate<Op>(a[K][i]..., p...);
    r[i] = t.value;
    marks[i] = static_cast<std::uint8_t>((t.undecided | (0 - t.undecided)) >> 31);
  }
  for (int i = 0; i < block; i += unpacked_block) {
    store_block<T>(r + i, out + i);
    store_marks<T>(marks + i, undecided + i);
  }
}

// The loops of f16 and bf16 with unpacked operands. A block is read before it is written: out may be an operand. What is left
// beyond the last block is made one. The options are a copy: of them the loop keeps in registers what it makes.
template <class Op, class T, class Result, int... K, class... Options>
void by_unpacked_blocks(std::integer_sequence<int, K...> k, const T* const (&in)[Op::arity], Result* out,
                        [[maybe_unused]] bool* undecided, std::int64_t n, const Options... p) {
  constexpr bool is_tested = num::has_exact_body<Op, T, Options...>;
  constexpr int block = is_tested ? 2 * unpacked_block : unpacked_block;
  T last[Op::arity][block] = {};
  Result last_results[block];
  [[maybe_unused]] bool last_undecided[block];
  std::int64_t begin = 0;
  if constexpr (leaves_midpoints<Op, T, std::conditional_t<K >= 0, unpacked<T>, void>..., Options...>) {
    begin = whole_blocks<Op, T>(k, in, out, n, p...);
  }
  for (std::int64_t first = begin; first < n; first += block) {
    const std::int64_t count = n - first;
    const bool whole = count >= block;
    if (!whole) (std::copy_n(in[K] + first, count, last[K]), ...);
    const T* const from[] = {whole ? in[K] + first : last[K]...};
    Result* const to = whole ? out + first : last_results;
    if constexpr (is_tested) {
      unpacked_tested<Op, T>(k, from, to, whole ? undecided + first : last_undecided, p...);
    } else if constexpr (requires(unpacked<T> x) { num::evaluate_quickly<Op>((static_cast<void>(K), x)..., p...); }) {
      unpacked_quickly<Op, T>(k, from, to, p...);
    } else {
      unpacked_carefully<Op, T>(k, from, to, p...);
    }
    if (!whole) {
      std::copy_n(last_results, count, out + first);
      if constexpr (is_tested) std::copy_n(last_undecided, count, undecided + first);
    }
  }
}

// Binary64: what `lanes` makes of registers of operands; those of the last, which may not be full, are made one.
template <bool Tested, class Lanes, class... X>
void by_registers(double* out, bool* undecided, std::int64_t n, const Lanes& lanes, const X*... x) {
  const auto step = [&](double* to, [[maybe_unused]] bool* marks, const X*... at) {
    const auto r = lanes(load<f64v>(at)...);
    if constexpr (Tested) {
      store(to, r.value);
      store(marks, __builtin_convertvector(r.decided + 1, vec<std::uint8_t, lanes64>));  // -1 where decided
    } else {
      store(to, r);
    }
  };
  std::int64_t i = 0;
  for (; i + lanes64 <= n; i += lanes64) step(out + i, undecided + i, (x + i)...);
  if (i == n) return;
  double last[sizeof...(X) + 1][lanes64] = {};
  bool marks[lanes64];
  int k = 0;
  (std::copy_n(x + i, n - i, last[k++]), ...);
  [&]<std::size_t... K>(std::index_sequence<K...>) { step(last[sizeof...(X)], marks, last[K]...); }
  (std::index_sequence_for<X...>{});
  std::copy_n(last[sizeof...(X)], n - i, out + i);
  if constexpr (Tested) std::copy_n(marks, n - i, undecided + i);
}

// Options: nothing, or num::parameters.
template <class Op, class T, class... Options>
void loop(const void* const* in, void* out, std::int64_t n, const double* options, bool* undecided) {
  const auto run = [=](const auto&... p) {
    num::with_places<Op::arity>([ =, &p... ]<int... K>() {
      const auto over = [=, &p...](const auto*... x) {
        using result = decltype(num::evaluate<Op>(num::load(*x)..., p...));
        if constexpr (num::is_small_float<T> && num::takes_unpacked<Op>()) {
          using stored_result = std::conditional_t<ops::result_type(Op::result, dtype_of<T>) == dtype_of<T>, T, result>;
          by_unpacked_blocks<Op, T>(std::integer_sequence<int, K...>{}, {x...}, static_cast<stored_result*>(out),
                                    undecided, n, p...);
        } else if constexpr (std::is_same_v<T, double> && num::has_body64<Op>) {
          by_registers<num::has_exact_body<Op, T, Options...>>(
              static_cast<double*>(out), undecided, n,
              [&](const auto&... v) { return num::body64<Op>::lanes(v..., p...); }, x...);
        } else if constexpr (requires { num::evaluate_quickly<Op>(*x..., p...); }) {
          by_blocks<Op>(static_cast<T*>(out), n, x...);
        } else if constexpr (num::has_exact_body<Op, T, Options...>) {
          auto* to = static_cast<T*>(out);
          for (std::int64_t i = 0; i < n; ++i) {
            result r = num::evaluate<Op>(x[i]..., p...);  // were it const, g++ 12 would keep it in memory
            to[i] = r.value;
            undecided[i] = !r.decided;
          }
        } else {
          static_assert(dtype_of<result> == ops::result_type(Op::result, dtype_of<T>));
          auto* to = static_cast<result*>(out);
#pragma omp simd
          for (std::int64_t i = 0; i < n; ++i) to[i] = num::evaluate<Op>(num::load(x[i])..., p...);
        }
      };
      over(static_cast<const num::stored<ops::operand_of<Op, T, K>>*>(in[K])...);
    });
  };
  if constexpr (sizeof...(Options) == 0) {
    run();
  } else {
    num::parameters p;
    for (int i = 0; i < ops::option_list::most; ++i) {
      p.value[i] = options[i];
      if constexpr (num::is_small_float<T> && num::takes_unpacked<Op>()) {  // narrow rounds nothing there
        const ops::option_kind kind = Op::row.options.all[i].kind;
        if (kind == ops::VALUE || kind == ops::UPPER) p.value[i] = num::widen(num::narrow<T>(options[i]));
      }
    }
    bool is_run = false;
    if constexpr (requires { num::body<Op>::short_form(p); }) {
      const int form = num::body<Op>::short_form(p);
      num::with_places<num::body<Op>::short_forms>([&]<int... N>() {
        ((form == N + 1 ? run(num::short_parameters<N + 1>{p}) : void()), ...);
      });
      is_run = form != 0;
    }
    if (!is_run) run(p);
  }
}

template <class Op, class T, bool Nearest, class... Options>
void wide_loop(const void* const* in, void* out, std::int64_t n, [[maybe_unused]] const double* options, bool*) {
  auto* to = static_cast<double*>(out);
  const auto run = [=](const auto&... p) {
    num::with_places<Op::arity>([&]<int... K>() {
      const auto over = [&](const auto* const... x) {
#pragma omp simd
        for (std::int64_t i = 0; i < n; ++i) to[i] = num::evaluate_wide<Op, Nearest>(x[i]..., p...);
      };
      over(static_cast<const T*>(in[K])...);
    });
  };
  if constexpr (sizeof...(Options) == 0) {
    run();
  } else {
    num::parameters p;
    for (int i = 0; i < ops::option_list::most; ++i) p.value[i] = options[i];
    run(p);
  }
}
// Of an operation whose results are of any format.
template <class Op>
constexpr wide_loops wide_loops_of = [] {
  wide_loops w{};
  ops::for_each_format<ops::FLOATS>([&]<class T>() {
    const auto loops = []<bool Nearest>() {
      ops::loops<map_loop> l{wide_loop<Op, T, Nearest>, nullptr};
      if constexpr (Op::row.options.count() > 0) l.with_options = wide_loop<Op, T, Nearest, num::parameters>;
      return l;
    };
    constexpr int format = static_cast<int>(dtype_of<T>);
    if constexpr (!std::is_same_v<T, double>) w.to_nearest[format] = loops.template operator()<true>();
    w.to_odd[format] = loops.template operator()<false>();
  });
  return w;
}();

// Options: nothing, or num::parameters.
template <class Op, class T, class... Options>
repaired_by repair(const void* const* in, void* out, std::int64_t i, [[maybe_unused]] const double* options,
                   [[maybe_unused]] bool skips_binary64, int last_tier_bits) {
  auto* const to = static_cast<T*>(out) + i;
  const auto decide = [&](const auto&... p) {
    return num::with_places<Op::arity>([&]<int... K>() {
      if constexpr (num::is_small_float<T>) {  // binary64 decides most of what unpacked operands left undecided
        const auto r = num::evaluate<Op>(static_cast<const T*>(in[K])[i]..., p...);
        *to = r.value;
        if (r.decided && !skips_binary64) return repaired_by::binary64;
      }
      const auto r = num::evaluate_exactly<Op>(last_tier_bits, static_cast<const T*>(in[K])[i]..., p...);
      *to = r.value;
      return r.decided ? repaired_by::exact : repaired_by::nobody;
    });
  };
  if constexpr (sizeof...(Options) == 0) {
    return decide();
  } else {
    num::parameters p;
    std::copy_n(options, ops::option_list::most, p.value);
    return decide(p);
  }
}
template <class Op>
constexpr auto repairs_of = [] {
  std::array<ops::loops<map_repair>, ops::dtype_count> all{};
  ops::for_each_format<Op::formats>([&]<class T>() {
    auto& of = all[static_cast<std::size_t>(dtype_of<T>)];
    if constexpr (num::has_exact_body<Op, T>) of.plain = repair<Op, T>;
    if constexpr (num::has_exact_body<Op, T, num::parameters>) of.with_options = repair<Op, T, num::parameters>;
  });
  return all;
}();
// Instruction sets would differ in the speed of repairs only, so one has them, the first of every processor family.
#define REPDL_NAME_OF(isa) #isa
#define REPDL_NAME(isa) REPDL_NAME_OF(isa)
constexpr std::string_view this_set = REPDL_NAME(REPDL_ISA);
constexpr bool has_repairs = this_set == "baseline" || this_set == "neon";

template <class Op>
constexpr map_operation make_operation() {
  map_operation o{};
  ops::set_loops<Op>(o.loops, []<class T, class... Options>() { return loop<Op, T, Options...>; });
  if constexpr (Op::result == ops::result_kind::any_float) o.wide = &wide_loops_of<Op>;
  if constexpr (has_repairs) o.repairs = repairs_of<Op>.data();
  return o;
}

}  // namespace
}  // namespace repdl::cpu::REPDL_ISA
