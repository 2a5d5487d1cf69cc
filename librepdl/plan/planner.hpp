// From checked operands to plans: one planner per structured operation, and one for all elementwise operations.
//
//   infer(in, attrs)      what the outputs are; makes every error that the inputs and attributes allow
//   make(in, out, attrs)  the plan; called after everything was checked, for outputs that are not empty
#pragma once

#include "librepdl/ops/structured.hpp"
#include "librepdl/plan/checks.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::plan {

sizes infer_map(std::string_view op, std::span<const ops::operand> rows, inputs in);
map_plan make_map(ops::op_id op, inputs in, const tensor_view& out);

tensor_spec infer_convert(inputs in, const ops::convert_attrs&);

tensor_spec infer_reduce(ops::op_id op, std::string_view name, dtype out, inputs in, const ops::reduce_attrs&);
reduce_plan make_reduce(ops::op_id op, inputs in, const tensor_view& out, const ops::reduce_attrs&);

tensor_spec infer_dot(inputs in);
tensor_spec infer_matmul(inputs in, const ops::matmul_attrs&);
matmul_plan make_matmul(inputs in, const tensor_view& out, const ops::matmul_attrs&);

tensor_spec infer_uniform(const ops::uniform_attrs&);
tensor_spec infer_permutation(const ops::permutation_attrs&);
random_plan make_random(ops::op_id op, std::int64_t seed, std::int64_t stream, double low, double high,
                        const tensor_view& out);

/// Axes of one iteration space with the strides of several operands; normalised in place.
struct loop_axes {
  int rank = 0;
  int operands = 0;
  axes shape{};
  std::array<axes, 4> stride{};

  void push(std::int64_t size, std::initializer_list<std::int64_t> strides);
  /// Drops axes of size 1.
  void squeeze();
  /// Sorts the axes so that the given operand's strides fall (the order of iteration must not matter).
  void sort_by(int operand);
  /// Merges neighbours that every operand steps through as one.
  void merge();
};

template <class Op>
struct planner;

template <>
struct planner<ops::convert> {
  static tensor_spec infer(inputs in, const ops::convert_attrs& a) { return infer_convert(in, a); }
  static map_plan make(inputs in, const tensor_view& out, const ops::convert_attrs&) {
    return make_map(ops::op_id::convert, in, out);
  }
};

template <class Op>
requires std::is_same_v<typename Op::attrs, ops::reduce_attrs>
struct planner<Op> {
  static tensor_spec infer(inputs in, const ops::reduce_attrs& a) {
    return infer_reduce(Op::id, Op::name, Op::out[0].types == ops::I64 ? dtype::i64 : dtype::f32, in, a);
  }
  static reduce_plan make(inputs in, const tensor_view& out, const ops::reduce_attrs& a) {
    return make_reduce(Op::id, in, out, a);
  }
};

template <>
struct planner<ops::dot> {
  static tensor_spec infer(inputs in, const ops::no_attrs&) { return infer_dot(in); }
  static reduce_plan make(inputs in, const tensor_view& out, const ops::no_attrs&) {
    return make_reduce(ops::op_id::dot, in, out, {});
  }
};

template <>
struct planner<ops::matmul> {
  static tensor_spec infer(inputs in, const ops::matmul_attrs& a) { return infer_matmul(in, a); }
  static matmul_plan make(inputs in, const tensor_view& out, const ops::matmul_attrs& a) {
    return make_matmul(in, out, a);
  }
};

template <>
struct planner<ops::uniform> {
  static tensor_spec infer(inputs, const ops::uniform_attrs& a) { return infer_uniform(a); }
  static random_plan make(inputs, const tensor_view& out, const ops::uniform_attrs& a) {
    return make_random(ops::op_id::uniform, a.seed, a.stream, a.low, a.high, out);
  }
};

template <>
struct planner<ops::permutation> {
  static tensor_spec infer(inputs, const ops::permutation_attrs& a) { return infer_permutation(a); }
  static random_plan make(inputs, const tensor_view& out, const ops::permutation_attrs& a) {
    return make_random(ops::op_id::permutation, a.seed, a.stream, 0, 1, out);
  }
};

}  // namespace repdl::plan
