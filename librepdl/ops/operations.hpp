// The types of all elementwise operations, and their numbers. What includes this is compiled again with every new row: include it
// where something is made for every operation, and nowhere else.
#pragma once

#include "librepdl/ops/operation.hpp"

namespace repdl::ops {

#define REPDL_ELEMENTWISE REPDL_OPERATION
#include "librepdl/ops/elementwise/elementwise.def"
#undef REPDL_ELEMENTWISE

struct elementwise_numbers {
  enum : int {
#define REPDL_ELEMENTWISE(name, ...) name,
#include "librepdl/ops/elementwise/elementwise.def"
#undef REPDL_ELEMENTWISE
    count
  };
};
inline constexpr int elementwise_count = elementwise_numbers::count;

/// The number of an operation's type.
template <class Op>
inline constexpr op_id id_of = Op::id;
#define REPDL_ELEMENTWISE(name, ...) \
  template <>                        \
  inline constexpr op_id id_of<name> = op_id{elementwise_numbers::name};
#include "librepdl/ops/elementwise/elementwise.def"
#undef REPDL_ELEMENTWISE

/// Calls f.template operator()<Op>() for every elementwise operation, in the registry's order.
template <class F>
constexpr void for_each_elementwise(F&& f) {
#define REPDL_ELEMENTWISE(name, ...) f.template operator()<name>();
#include "librepdl/ops/elementwise/elementwise.def"
#undef REPDL_ELEMENTWISE
}

}  // namespace repdl::ops
