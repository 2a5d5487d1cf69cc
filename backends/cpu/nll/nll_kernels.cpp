// Losses of elements at targets, and their gradient. Compiled once per instruction set.
#include <algorithm>

#include "backends/cpu/nll/nll.hpp"
#include "backends/cpu/nll/nll_terms.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

using std::int64_t;

template <class T>
void losses(const plan::nll_plan& p, int64_t first, int64_t last) noexcept {
  T* const out = static_cast<T*>(p.out);
  for_targets<T>(p, first, last, [&](num::nll_target kind, T x, T w, int64_t to) {
    out[to] = kind == num::nll_target::ignored ? T{} : num::nll_product<T>(num::widen(x), num::widen(w));
  });
}

template <class T>
nll_partial sum(const plan::nll_plan& p, int64_t first, int64_t last) noexcept {
  num::nll_sum s;
  for_targets<T>(p, first, last, [&](num::nll_target kind, T x, T w, int64_t) {
    if (kind != num::nll_target::ignored) s.template add<T>(num::widen(x), num::widen(w));
  });
  return {{s.products.hi, s.products.lo, s.products.magnitude}, {s.weights.hi, s.weights.lo, s.weights.magnitude}};
}

// The gradient is +0 but at targets. A run along the classes has one of them.
template <class T>
void gradient(const plan::nll_plan& p, int64_t first, int64_t last) noexcept {
  const auto* const g = static_cast<const T*>(p.x);
  const auto* const weight = static_cast<const T*>(p.weight);
  T* const out = static_cast<T*>(p.out);
  const T nan = num::from_bits<T>(num::format<T>::nan);
  walk<4> at(p.rank, p.shape, {&p.x_stride, &p.target_stride, &p.class_of, &p.out_stride}, first);
  for (int64_t i = first; i < last;) {
    const int64_t n = std::min(last - i, at.inner_left());
    const int64_t target_step = at.inner_stride(1);
    const int64_t class_step = at.inner_stride(2);
    const int64_t step = at.inner_stride(3);
    const auto value = [&](int64_t k, int64_t target) {
      const double w = weight == nullptr ? 1.0 : num::widen(weight[target * p.weight_stride]);
      const double at_g = num::widen(g[at.offset(0) + k * at.inner_stride(0)]);
      return p.total == nullptr ? num::nll_product<T>(at_g, w)
                                : num::nll_quotient<T>(at_g, w, *static_cast<const num::nll_weight<T>*>(p.total));
    };
    T* const to = out + at.offset(3);
    if (n > 1 && target_step == 0 && class_step == 1) {  // a sample's classes
      const int64_t target = p.targets[at.offset(1)];
      const num::nll_target kind = num::kind_of_target(target, p.ignore_index, p.classes);
      const T fill = kind == num::nll_target::absent ? nan : T{};
      for (int64_t k = 0; k < n; ++k) to[k * step] = fill;
      if (kind == num::nll_target::present) {
        const int64_t k = target - at.offset(2);
        if (k >= 0 && k < n) to[k * step] = value(0, target);
      }
    } else {
      for (int64_t k = 0; k < n; ++k) {
        const int64_t target = p.targets[at.offset(1) + k * target_step];
        const num::nll_target kind = num::kind_of_target(target, p.ignore_index, p.classes);
        const bool here = kind == num::nll_target::present && target == at.offset(2) + k * class_step;
        to[k * step] = here ? value(k, target) : kind == num::nll_target::absent ? nan : T{};
      }
    }
    at.advance(n);
    i += n;
  }
}

nll_kernels::loops of(ops::op_id op, dtype type) noexcept {
  nll_kernels::loops l{};
  ops::for_each_format<ops::FLOATS>([&]<class T>() {
    if (dtype_of<T> == type) l = {op == ops::op_id::nll_loss ? losses<T> : gradient<T>, sum<T>};
  });
  return l;
}

}  // namespace

extern const nll_kernels nll_table = {of};

}  // namespace repdl::cpu::REPDL_ISA
