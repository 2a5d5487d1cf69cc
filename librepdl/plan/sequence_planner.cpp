// Plans of numbers at equal distances.
#include <algorithm>

#include "librepdl/plan/planner.hpp"

namespace repdl::plan {
namespace {

template <class Options>
tensor_spec infer(std::string_view op, const ops::sequence_attrs<Options>& a) {
  const dtype type = float_type(op, a.dtype.value_or(dtype::f32));
  if (*a.count < 0 || *a.count > std::int64_t{1} << 48) {
    fail(error_site::attribute_value, op, "count", "a number in [0, 2^48]", std::to_string(*a.count));
  }
  return {type, {*a.count}};
}

sequence_plan make(const tensor_view& out, double first, double last) {
  sequence_plan p{};
  p.count = out.count();
  p.out = out.data();
  p.stride = out.strides()[0];
  p.out_type = out.type();
  p.first = first == 0 ? 0 : first;
  p.last = last == 0 ? 0 : last;
  p.parts = 1;
  return p;
}

}  // namespace

tensor_spec infer_linspace(const ops::linspace_attrs& a) {
  check_parameter("linspace", "start", a.start, true);
  check_parameter("linspace", "end", a.end, true);
  return infer("linspace", a);
}

tensor_spec infer_arange(const ops::arange_attrs& a) {
  check_parameter("arange", "start", a.start, true);
  check_parameter("arange", "step", a.step, true);
  return infer("arange", a);
}

sequence_plan make_linspace(const tensor_view& out, const ops::linspace_attrs& a) {
  sequence_plan p = make(out, a.start, a.end);
  p.between = true;
  p.parts = std::max<std::int64_t>(p.count - 1, 1);
  return p;
}

sequence_plan make_arange(const tensor_view& out, const ops::arange_attrs& a) { return make(out, a.start, a.step); }

}  // namespace repdl::plan
