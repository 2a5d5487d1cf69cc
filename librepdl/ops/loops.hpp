// What a backend has of the elementwise operations: a loop for each format. Backends compile them in shards, some rows of
// elementwise.def whose bodies are in one header, a translation unit each: backends/CMakeLists.txt writes them.
#pragma once

#include "librepdl/ops/elementwise/body.hpp"
#include "librepdl/ops/operation.hpp"

namespace repdl::ops {

/// Of an operation and format: for the options' defaults, and with options; null where there is none (or no such format).
template <class Loop>
struct loops {
  Loop plain;
  Loop with_options;
};

/// make.template operator()<T, Options...>() is the Loop of an operation and format; Options: nothing, or num::parameters.
template <class Op, class Loop, class Make>
constexpr void set_loops(loops<Loop> (&of_format)[dtype_count], Make make) {
  for_each_format<Op::formats>([&]<class T>() {
    loops<Loop>& l = of_format[static_cast<int>(dtype_of<T>)];
    static_assert(num::has_body<Op, T> || num::has_body<Op, T, num::parameters>);
    if constexpr (num::has_body<Op, T>) l.plain = make.template operator()<T>();
    if constexpr (num::has_body<Op, T, num::parameters>)
      l.with_options = make.template operator()<T, num::parameters>();
  });
}

}  // namespace repdl::ops
