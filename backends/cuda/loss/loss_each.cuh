// Losses and their gradients with an output for each element, as operations of the elementwise kernels.
//
// A last tier has at most 512 bits: 2048 would take 2 gigabytes of the device's memory for the threads' stacks.
#pragma once

#include <limits>

#include "backends/cuda/loss/loss_each.hpp"
#include "backends/cuda/loss/quick_losses.cuh"
#include "backends/cuda/map/map_launch.cuh"

namespace repdl::cuda {
namespace {

template <class Op>
constexpr int all_inputs = static_cast<int>(std::size(Op::in));
template <class Op>
constexpr int required_inputs = static_cast<int>(std::count_if(std::begin(Op::in), std::end(Op::in),
                                                               [](const auto& o) { return !o.optional; }));

// Inputs: all of them, some of which may be absent, or those that a call must have.
template <class Op, class T, int Inputs>
struct loss_element {
  static constexpr int arity = Inputs;
  static constexpr tier first = tier::binary64;
  static constexpr unsigned booleans = 0;
  static constexpr bool may_be_absent = Inputs > required_inputs<Op>;
  static constexpr bool attempts_again = has_quick_loss<Op, T>;
  static constexpr bool tests_16_bits = sizeof(T) == 2 && attempts_again;
  using input = T;
  using output = T;
  using tally = exact_tally;
  ops::loss_constants k;
  quick_loss_constants q;
  bool skip_test;
  int last_tier_bits;
  undecided_elements undecided;
  template <bool = false>
  __device__ num::tentative<T> attempt(const T* x) const {
    if constexpr (attempts_again) {
      using real = std::conditional_t<sizeof(T) == 2, float, double>;
      return num::with_places<all_inputs<Op>>([&]<int... K>() {
        approximation<real> a = quick_loss<Op>::template approximate<real>(k, q, number<K>(x)...);
        if constexpr (sizeof(T) == 2) a.covered = a.covered & (is_moderate<T>(number<K>(x)) & ...);
        return round_approximation<T>(a);
      });
    } else {
      return attempt_again(x);
    }
  }
  __device__ num::tentative<T> attempt_again(const T* x) const {
    const auto r = num::with_places<all_inputs<Op>>([&]<int... K>() {
      return num::evaluate_loss<T, Op>(k, static_cast<double>(number<K>(x))...);
    });
    return {r.value, r.decided};
  }
  __device__ T eval(const T* x, tally& t) const {
    const settled r = num::with_places<all_inputs<Op>>([&]<int... K>() {
      return settle(k, last_tier_bits, static_cast<double>(number<K>(x))...);
    });
    t.exact += r.decided && !r.by_test ? 1 : 0;
    t.undecided += r.decided ? 0 : 1;
    return r.value;
  }

 private:
  template <int K>
  __device__ static std::conditional_t<sizeof(T) == 8, double, float> number(const T* x) {
    if constexpr (K >= Inputs) {
      return 1;
    } else if constexpr (sizeof(T) == 8) {
      return x[K];
    } else {
      return num::widen_to_float(x[K]);
    }
  }
  struct settled {
    T value;
    bool decided, by_test;
  };
  // Lanes leave it together, as in map.cuh.
  template <class... X>
  __device__ static __noinline__ settled settle(ops::loss_constants k, int last_tier_bits, X... x) {
    const num::lanes_together lanes;
    const num::decided_value<T> first = num::evaluate_loss<T, Op>(k, x...);
    settled r{first.value, true, true};
    if (!first.decided) {
      const num::decided_value<T> late = num::decide_loss<T, Op, 8>(k, last_tier_bits, x...);
      r = {late.value, late.decided, false};
    }
    lanes.meet();
    return r;
  }
};

template <class Op, class T, int Inputs>
void launch_elements(const plan::loss_plan& plan, const ops::loss_constants& k, const job& j,
                     const undecided_elements& undecided) {
  operands<loss_element<Op, T, Inputs>> p{};
  p.k = k;
  p.q = {1 / k.count, 1 / k.divisor, k.n == 1};
  // In binary32 c and 1 / (c n), n < 2^62, would not be normal numbers: all but zeros is left undecided.
  const bool moderate = k.c == 0 || (k.c >= 0x1p-60 && k.c <= 0x1p60);
  if (sizeof(T) == 2 && !moderate) p.q.per_count = p.q.per_divisor = std::numeric_limits<double>::quiet_NaN();
  p.out = plan.out;
  p.count = plan.count;
  p.axes.set_shape(plan.rank, plan.shape);
  p.axes.set_stride(Inputs, plan.out_stride);
  bool contiguous = p.count == 1 || (plan.rank == 1 && plan.out_stride[0] == 1);
  for (int a = 0; a < Inputs; ++a) {
    p.in[a] = plan.in[a].data;
    p.number[a] = num::narrow<T>(1.0);
    if (p.in[a] == nullptr) continue;  // strides of 0
    p.axes.set_stride(a, plan.in[a].stride);
    contiguous = contiguous && (p.count == 1 || plan.in[a].stride[0] == 1);
  }
  launch_operands(p, contiguous, j, {nullptr, nullptr, undecided});
}

}  // namespace

template <int Part>
void launch_each(const plan::loss_plan& plan, const ops::loss_constants& k, const job& j,
                 const undecided_elements& undecided) {
  ops::for_operation<ops::family::loss>(plan.op, [&]<class Op>() {
    if constexpr (static_cast<int>(Op::id) % loss_parts == Part) {
      ops::for_each_format<Op::out[0].types>([&]<class T>() {
        if (dtype_of<T> != plan.type) return;
        constexpr int required = required_inputs<Op>, all = all_inputs<Op>;
        const bool more =
            std::any_of(plan.in + required, plan.in + all, [](const auto& o) { return o.data != nullptr; });
        if (required < all && more) return launch_elements<Op, T, all>(plan, k, j, undecided);
        launch_elements<Op, T, required>(plan, k, j, undecided);
      });
    }
  });
}

}  // namespace repdl::cuda
