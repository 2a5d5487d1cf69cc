// The elementwise operations of a shard: a translation unit that includes this and the headers of its bodies, and has the rows of its
// operations, of which REPDL_ELEMENTWISE makes types and tables (backends/CMakeLists.txt).
#pragma once

#include "backends/cuda/map/map_list.cuh"
#include "backends/cuda/map/other_format.cuh"
#include "librepdl/ops/operation.hpp"

namespace repdl::cuda {
namespace {

template <class Op>
struct launch_of {
  template <class T, class... Options>
  constexpr launcher operator()() const {
    using F = elementwise<Op, T, Options...>;
    if constexpr (num::in_lists<Op>()) {
      return {launch<F>, settles_late<F>, has_factor<F>, launch_list<F>};
    } else {
      return {launch<F>, settles_late<F>, has_factor<F>};
    }
  }
};

template <class Op>
constexpr map_operation make_operation() {
  map_operation o{};
  ops::set_loops<Op>(o.loops, launch_of<Op>{});
  if constexpr (Op::result == ops::result_kind::any_float) {
    ops::for_each_format<ops::FLOATS>([&]<class T>() {
      ops::loops<launcher>& l = o.to_other_format[static_cast<int>(dtype_of<T>)];
      l.plain = {launch_to_format<wide_operation<Op, T>>, false, false};
      if constexpr (Op::row.options.count() > 0) {
        l.with_options = {launch_to_format<wide_operation<Op, T, num::parameters>>, false, false};
      }
    });
  }
  return o;
}

}  // namespace
}  // namespace repdl::cuda

#define REPDL_ELEMENTWISE(name, ...)                                              \
  namespace repdl::ops {                                                          \
  REPDL_OPERATION(name, __VA_ARGS__)                                              \
  }                                                                               \
  namespace repdl::cuda {                                                         \
  extern const map_operation map_##name##_table;                                  \
  constinit const map_operation map_##name##_table = make_operation<ops::name>(); \
  }
