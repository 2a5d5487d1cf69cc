// Elementwise operations as operations of the kernels: bodies, their tests and last tiers, options. Functions of one number have
// quick bodies (quick.cuh), or, of 16 bits, a table.
#pragma once

#include <array>
#include <cstring>
#include <span>

#include "backends/cuda/map/map_launch.cuh"
#include "backends/cuda/map/quick_functions.cuh"
#include "librepdl/ops/loops.hpp"

namespace repdl::cuda {

// How an operation is launched, and what its calls may take.
struct launcher {
  void (*launch)(const plan::map_plan&, const job&, const map_space&);
  bool has_last_tier, has_factor;
  void (*launch_list)(std::span<const plan::map_plan>, const job&,
                      const map_space&) = nullptr;  // null: one after the other
  friend constexpr bool operator==(const launcher& l, std::nullptr_t) { return l.launch == nullptr; }
};

// An elementwise operation, by format; with results of another format than the operands', by the operands'.
struct map_operation {
  ops::loops<launcher> loops[ops::dtype_count];
  ops::loops<launcher> to_other_format[4];
};

namespace {

// Options: nothing, or num::parameters.
template <class Op, class T, class... Options>
struct elementwise : Options... {
  static constexpr int arity = Op::arity;
  static constexpr tier first = tier::proved;
  // Functions of 16 bits that are long.
  static constexpr bool tabulated = arity == 1 && sizeof(T) == 2 && sizeof...(Options) == 0 &&
                                    ops::proof_in(Op::row.proof, dtype_of<T>) == ops::proof_kind::enumerate;
  // The operands that are boolean where others are numbers, as bits.
  static constexpr unsigned booleans = std::is_same_v<T, bool> ? 0 : ops::boolean_operands(Op::operands, arity);
  using input = num::stored<T>;
  using output = num::result_of_body<Op, T, Options...>;
  static_assert(dtype_of<output> == ops::result_type(Op::result, dtype_of<T>));
  using tally = no_tally;
  __device__ output eval(const input* x, tally&) const {
    return num::with_places<arity>([&]<int... K>() {
      return num::evaluate<Op>(operand<K>(x[K])..., static_cast<const Options&>(*this)...);
    });
  }

 private:
  template <int K>
  __device__ static decltype(auto) operand(const input& x) {
    if constexpr ((booleans >> K & 1) != 0) {
      return num::to_bits(x) != 0;
    } else {
      return num::load(x);
    }
  }
};
// A value that may be wrong first, and whether it is right.
template <class Op, class T, class... Options>
concept tries_first = (num::has_quick_body<Op, T> && sizeof...(Options) == 0) || has_quick<Op, T, Options...>;
template <class Op, class T, class... Options>
requires(tries_first<Op, T, Options...> &&
         !num::has_exact_body<Op, T, Options...>) struct elementwise<Op, T, Options...> : Options... {
  static constexpr int arity = Op::arity;
  static constexpr tier first = tier::proved;
  static constexpr bool tabulated = arity == 1 && sizeof(T) == 2 && sizeof...(Options) == 0;
  static constexpr bool tests_16_bits = sizeof(T) == 2 && !tabulated;
  static constexpr unsigned booleans = 0;
  using input = T;
  using output = T;
  using tally = no_tally;
  template <bool = false>
  __device__ num::tentative<T> attempt(const T* x) const {
    if constexpr (!has_quick<Op, T, Options...>) {
      return num::body<Op>::quick(x[0]);
    } else {
      return quick_eval<Op>(x, static_cast<const Options&>(*this)...);
    }
  }
  // Out of line: a pack of first values would be kept waiting for the registers of this.
  template <class... X>
  __device__ static __noinline__ T eval_proper(const X... x) {
    if constexpr (num::has_quick_body<Op, T>) {
      return num::body<Op>::careful(x...);
    } else {
      return num::body<Op>::eval(x...);
    }
  }
  __device__ T eval(const T* x, tally&) const {
    return num::with_places<arity>([&]<int... K>() {
      return eval_proper(x[K]..., static_cast<const Options&>(*this)...);
    });
  }
};
template <class Op, class T, class... Options>
requires num::has_exact_body<Op, T, Options...>
struct elementwise<Op, T, Options...> : Options... {
  static constexpr int arity = Op::arity;
  static constexpr tier first = tier::binary64;
  static constexpr bool tests_16_bits = sizeof(T) == 2;
  static constexpr unsigned booleans = 0;
  using input = T;
  using output = T;
  using tally = exact_tally;
  bool skip_test;
  int last_tier_bits;
  undecided_elements undecided;
  __device__ bool is_product() const requires has_products<Op> { return quick<Op>::is_product(*this); }
  template <bool Product = false>
  __device__ num::tentative<T> attempt(const T* x) const {
    if constexpr (has_quick<Op, T, Options...>) {
      return quick_eval<Op, T, real_for<Op, T>, Product>(x, static_cast<const Options&>(*this)...);
    } else {
      return attempt_by_body(x);
    }
  }
  // Whether there is more to be tried on what `attempt` leaves undecided, before the last tier.
  static constexpr bool attempts_again = has_quick<Op, T, Options...>;
  __device__ num::tentative<T> attempt_again(const T* x) const requires attempts_again {
    if constexpr (std::is_same_v<real_for<Op, T>, float>) {
      const num::tentative<T> wide = quick_eval<Op, T, double>(x, static_cast<const Options&>(*this)...);
      if (wide.decided) return wide;
    }
    num::tentative<T> r = attempt_by_body(x);
    if constexpr (sizeof(T) == 2 && num::has_rational_body<Op>) {
      if (!r.decided && !skip_test) {
        const auto exact = num::body<Op>::rational(x[0], x[1], x[2]);
        r = {exact.value, exact.decided};
      }
    }
    return r;
  }
  // The result is the product of the other operands and factor(x), x the value of this one.
  static constexpr int factor_operand = factor_operand_of<Op>;
  __device__ approximation<double> factor(T x) const requires(sizeof(T) == 2 && factor_operand_of<Op> >= 0) {
    return num::with_places<arity>([&]<int... K>() {
      return quick<Op>::template approximate<double>((K == factor_operand ? num::widen_to_float(x) : 1.0f)...,
                                                     static_cast<const Options&>(*this)...);
    });
  }
  // By the body and its last tier, which is out of line: beside it no registers would be left. Lanes leave it together, by its only
  // end: those that are done would wait outside in a register of barriers that the others use (docs/ptxas-barriers.md).
  __device__ T eval(const T* x, tally& t) const {
    const settled r = num::with_places<arity>([&]<int... K>() { return settle(*this, x[K]...); });
    t.exact += r.by == settled::exact ? 1 : 0;
    t.undecided += r.by == settled::nobody ? 1 : 0;
    return r.value;
  }

 private:
  struct settled {
    T value;
    enum { first_tier, exact, nobody } by;
  };
  template <class... X>
  __device__ static __noinline__ settled settle(elementwise e, X... x) {
    const num::lanes_together lanes;
    const auto first = num::evaluate<Op>(x..., static_cast<const Options&>(e)...);
    settled r{first.value, settled::first_tier};
    if (!first.decided || e.skip_test) {
      const auto late = num::evaluate_exactly<Op>(e.last_tier_bits, x..., static_cast<const Options&>(e)...);
      r = {late.value, late.decided ? settled::exact : settled::nobody};
    }
    lanes.meet();
    return r;
  }
  __device__ num::tentative<T> attempt_by_body(const T* x) const {
    const auto r = num::with_places<arity>([&]<int... K>() {
      return num::evaluate<Op>(x[K]..., static_cast<const Options&>(*this)...);
    });
    return {r.value, r.decided};
  }
};
// Returns whether they are contiguous.
template <class F>
bool set_operands(operands<F>& p, const plan::map_plan& plan) {
  if constexpr (std::is_base_of_v<num::parameters, F>) {
    for (int i = 0; i < ops::option_list::most; ++i) p.value[i] = plan.options[i];
  }
  p.out = plan.out;
  p.count = plan.count;
  p.axes.set_shape(plan.rank, plan.shape);
  p.axes.set_stride(F::arity, plan.out_stride);
  bool contiguous = p.count == 1 || (plan.rank == 1 && plan.out_stride[0] == 1);
  for (int a = 0; a < F::arity; ++a) {
    p.in[a] = plan.in[a].data;
    p.axes.set_stride(a, plan.in[a].stride);
    if (p.in[a] == nullptr) std::memcpy(&p.number[a], &plan.in[a].number, sizeof p.number[a]);
    contiguous = contiguous && p.in[a] != nullptr && (p.count == 1 || plan.in[a].stride[0] == 1);
  }
  return contiguous;
}

template <class F>
void launch(const plan::map_plan& plan, const job& j, const map_space& space) {
  operands<F> p{};
  const bool contiguous = set_operands(p, plan);
  launch_operands(p, contiguous, j, space);
}

}  // namespace
}  // namespace repdl::cuda
