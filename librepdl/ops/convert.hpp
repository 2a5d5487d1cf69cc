// Conversions between the formats: RN_To(value of the input), ties to even, one rounding: a narrow format is first
// widened exactly to binary32 (see format.hpp). A conversion to the same format keeps the bits; any other is a
// computing operation: NaN becomes the canonical NaN.
#pragma once

#include <type_traits>

#include "librepdl/num/format.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

template <class To, class From>
struct convert_body {
  REPDL_HD static To eval(From x) {
    if constexpr (std::is_same_v<To, From>) {
      return x;
    } else if constexpr (std::is_same_v<From, double>) {
      return narrow<To>(x);
    } else {
      return narrow<To>(widen_to_float(x));
    }
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
