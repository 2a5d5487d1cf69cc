// A value and how far the exact one is from it.
#pragma once

#include "librepdl/num/platform.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// The value is within the error under certify's (C); an error 0 says that it is the value, one of +inf that nothing is
// known.
template <class R>
struct bounded_value {
  R value;
  R error;
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
