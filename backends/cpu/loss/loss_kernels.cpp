// Losses: the first tier, vectorised by the compiler. Compiled once per instruction set.
#include <type_traits>
#include <utility>

#include "backends/cpu/loss/loss.hpp"
#include "librepdl/ops/losses/losses_entropy.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

// Calls use(x...) with pointers to the operands.
template <class Op, class T, class Use>
auto with_operands(const void* const* in, const Use& use) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) { return use(static_cast<const T*>(in[K])...); }
  (std::make_index_sequence<std::size(Op::in)>());
}

template <class Op, class T>
[[gnu::flatten]] void each(const void* const* in, void* out, std::int64_t n, const ops::loss_constants& constants,
                           bool* undecided) noexcept {
  const ops::loss_constants k = constants;
  auto* const to = static_cast<T*>(out);
  with_operands<Op, T>(in, [&](const auto*... x) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      num::decided_value<T> r = num::evaluate_loss<T, Op>(k, num::widen(x[i])...);
      to[i] = r.value;
      undecided[i] = !r.decided;
    }
  });
}

// Chains of additions of loss_block / lanes terms, then at most lanes.
constexpr std::int64_t lanes = 8;
template <class Op, class T>
requires num::is_wide_loss<T>
[[gnu::flatten]] loss_partial sum(const void* const* in, std::int64_t n,
                                  const ops::loss_constants& constants) noexcept {
  const ops::loss_constants k = constants;
  num::loss_sum of[lanes];
  with_operands<Op, T>(in, [&](const auto*... x) {
    for (std::int64_t i = 0; i < n; ++i) num::add_loss<Op, T>(of[i % lanes], k, x[i]...);
  });
  for (std::int64_t l = 1; l < lanes; ++l) of[0].merge(of[l]);
  return {of[0].hi, of[0].lo, of[0].magnitude, of[0].error};
}
template <class Op, class T>
requires(!num::is_wide_loss<T>) [[gnu::flatten]] loss_partial
    sum(const void* const* in, std::int64_t n, const ops::loss_constants& constants) noexcept {
  const ops::loss_constants k = constants;
  alignas(64) double value[loss_block];
  double magnitude = 0;
  double error = 0;
  with_operands<Op, T>(in, [&](const auto*... x) {
#pragma omp simd reduction(+ : magnitude, error)
    for (std::int64_t i = 0; i < n; ++i) {
      const num::loss_term r = num::first_summand<Op>(k, num::widen(x[i])...);
      value[i] = r.value;
      magnitude += num::magnitude_of(r.value);
      error += r.error;
    }
  });
  for (std::int64_t i = n; i % lanes != 0; ++i) value[i] = 0;
  num::compensated_sum<double> of[lanes];
  for (std::int64_t i = 0; i < n; i += lanes) {
#pragma omp simd
    for (std::int64_t l = 0; l < lanes; ++l) of[l].add(value[i + l]);
  }
  for (std::int64_t step = lanes / 2; step > 0; step /= 2) {
    for (std::int64_t l = 0; l < step; ++l) of[l].merge(of[l + step]);
  }
  return {of[0].hi, of[0].lo, magnitude, error};
}

template <class Op, class T>
constexpr loss_kernels::loops loops_of() {
  if constexpr (ops::is_gradient<Op>) {
    return {each<Op, T>, nullptr};
  } else {
    return {each<Op, T>, sum<Op, T>};
  }
}

loss_kernels::loops of(ops::op_id op, dtype type) noexcept {
  loss_kernels::loops l{};
  ops::for_operation<ops::family::loss>(op, [&]<class Op>() {
    ops::for_each_format<Op::out[0].types>([&]<class T>() {
      if (dtype_of<T> == type) l = loops_of<Op, T>();
    });
  });
  return l;
}

}  // namespace

extern const loss_kernels loss_table = {of};

}  // namespace repdl::cpu::REPDL_ISA
