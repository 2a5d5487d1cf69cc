// Backends compile the elementwise loops in shards: so many consecutive rows of elementwise.def, a translation unit each. A
// row that is appended leaves the earlier shards as they are. backends/CMakeLists.txt writes the translation units.
#pragma once

#include "librepdl/ops/body.hpp"

namespace repdl::ops {

inline constexpr int rows_per_shard = 4;
inline constexpr int shard_count = (elementwise_count + rows_per_shard - 1) / rows_per_shard;
constexpr int shard_of(op_id op) { return static_cast<int>(op) / rows_per_shard; }
constexpr int row_in_shard(op_id op) { return static_cast<int>(op) % rows_per_shard; }

/// What a backend has of an operation and format: for the options' defaults, and with options; null where there is none (or
/// no such format).
template <class Loop>
struct loops {
  Loop plain;
  Loop with_options;
};
template <class Loop>
struct shard {
  loops<Loop> all[rows_per_shard][dtype_count];  // [row][format]
};

/// make.template operator()<Op, T, Options...>() is the Loop of an operation and format; Options: nothing, or num::parameters.
template <int Shard, class Loop, class Make>
constexpr shard<Loop> make_shard(Make make) {
  static_assert(Shard < shard_count);
  shard<Loop> s{};
  for_each_elementwise([&]<class Op>() {
    if constexpr (shard_of(Op::id) == Shard) {
      for_each_format<Op::formats>([&]<class T>() {
        loops<Loop>& l = s.all[row_in_shard(Op::id)][static_cast<int>(dtype_of<T>)];
        static_assert(num::has_body<Op, T> || num::has_body<Op, T, num::parameters>);
        if constexpr (num::has_body<Op, T>) l.plain = make.template operator()<Op, T>();
        if constexpr (num::has_body<Op, T, num::parameters>)
          l.with_options = make.template operator()<Op, T, num::parameters>();
      });
    }
  });
  return s;
}

}  // namespace repdl::ops
