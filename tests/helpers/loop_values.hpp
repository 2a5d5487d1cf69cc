// What the CPU's loops make of one element: the values of quick bodies, and those of unpacked f16 and bf16, where decided.
#pragma once

#include <cstdint>
#include <type_traits>

#include "librepdl/ops/elementwise/bodies.hpp"

namespace repdl::test {

template <class Op, class... Options>
concept has_short_body = requires(const Options&... options) {
  num::body<Op>::short_form(options...);
};

// f(value, its name) for each that there is of Op on operands of T, by their bits.
template <class Op, class T, class F, class... Options>
void for_each_loop_value(const std::uint64_t* in, const F& f, const Options&... options) {
  using loaded = std::conditional_t<num::is_small_float<T>, num::unpacked<T>, T>;
  const auto operand = [&](int k) {
    const T x = num::from_bits<T>(static_cast<num::storage_of<T>>(in[k]));
    if constexpr (num::is_small_float<T>) {
      return loaded{num::widen_to_float(x)};
    } else {
      return x;
    }
  };
  const auto report = [&](const auto& value, const char* name) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, num::unpacked<T>>) {
      f(num::narrow<T>(value.value), name);
    } else {
      f(num::canonical(value), name);
    }
  };
  const auto report_decided = [&](const auto& r, const char* name) {
    if (num::undecided_mark(r) == 0) report(r.value, name);
  };
  num::with_places<Op::arity>([&]<int... K>() {
    if constexpr (has_short_body<Op, Options...>) {
      num::with_places<num::body<Op>::short_forms>([&]<int... N>() {
        const auto report_short = [&](const auto&... of_form) {
          report_decided(num::evaluate<Op>(operand(K)..., of_form...), "short");
        };
        const int form = num::body<Op>::short_form(options...);
        ((form == N + 1 ? report_short(num::short_parameters<N + 1>{options...}) : void()), ...);
      });
    }
    if constexpr (requires { num::evaluate_quickly<Op>(operand(K)..., options...); }) {
      report_decided(num::evaluate_quickly<Op>(operand(K)..., options...), "quick");
    }
    if constexpr (num::is_small_float<T> && num::takes_unpacked<Op>()) {
      const auto r = num::evaluate_carefully<Op>(operand(K)..., options...);
      if constexpr (requires { r.undecided; }) {
        report_decided(r, "unpacked");
      } else {
        report(r, "unpacked");
      }
    }
  });
}

}  // namespace repdl::test
