// ldexp and frexp, element by element. Compiled once per instruction set.
#include "backends/cpu/core/walk.hpp"
#include "backends/cpu/exponent/exponent.hpp"
#include "librepdl/ops/exponents/exponents.hpp"
#include "librepdl/ops/formats.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

using std::int64_t;

// f(offset of x, of the result, of the exponent) for the elements [begin, end).
template <class F>
void each(const plan::exponent_plan& p, int64_t begin, int64_t end, const F& f) {
  walk<3> at(p.rank, p.shape, {&p.x_stride, &p.out_stride, &p.exponent_stride}, begin);
  while (begin < end) {
    const int64_t left = at.inner_left(), n = left < end - begin ? left : end - begin;
    for (int64_t i = 0; i < n; ++i) {
      f(at.offset(0) + i * at.inner_stride(0), at.offset(1) + i * at.inner_stride(1),
        at.offset(2) + i * at.inner_stride(2));
    }
    at.advance(n);
    begin += n;
  }
}

template <class T, class N>
void ldexp(const plan::exponent_plan& p, int64_t begin, int64_t end) {
  const T* const x = static_cast<const T*>(p.x);
  const N* const n = static_cast<const N*>(p.n);
  T* const out = static_cast<T*>(p.out);
  each(p, begin, end, [&](int64_t i, int64_t o, int64_t e) { out[o] = num::scaled_by_power(x[i], n[e]); });
}

template <class T>
void frexp(const plan::exponent_plan& p, int64_t begin, int64_t end) {
  const T* const x = static_cast<const T*>(p.x);
  T* const out = static_cast<T*>(p.out);
  each(p, begin, end, [&](int64_t i, int64_t o, int64_t e) {
    const num::taken_apart<T> r = num::take_apart(x[i]);
    out[o] = r.value;
    p.exponent[e] = r.exponent;
  });
}

void run(const plan::exponent_plan& p, int64_t begin, int64_t end) noexcept {
  ops::for_each_format<ops::FLOATS>([&]<class T>() {
    if (dtype_of<T> != p.type) return;
    if (p.op == ops::op_id::frexp) return frexp<T>(p, begin, end);
    p.exponent_type == dtype::i64 ? ldexp<T, int64_t>(p, begin, end) : ldexp<T, std::int32_t>(p, begin, end);
  });
}

}  // namespace

extern const exponent_kernels exponent_table = {run};

}  // namespace repdl::cpu::REPDL_ISA
