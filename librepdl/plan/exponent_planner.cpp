// Plans of ldexp and frexp.
#include "librepdl/plan/planner.hpp"

namespace repdl::plan {
namespace {

exponent_plan make_exponent(ops::op_id op, const const_tensor_view& x, const tensor_view& out,
                            const const_tensor_view& exponent) {
  const sizes &shape = out.shape(), from = broadcast_strides(x, shape), powers = broadcast_strides(exponent, shape);
  loop_axes loop;
  for (int i = 0; i < shape.size(); ++i) loop.push(shape[i], {out.strides()[i], from[i], powers[i]});
  loop.squeeze();
  loop.sort_by(0);
  loop.merge();
  exponent_plan p{};
  p.op = op;
  p.type = x.type();
  p.exponent_type = exponent.type();
  p.rank = loop.rank;
  p.count = loop.count();
  p.shape = loop.shape;
  p.x = x.data();
  p.x_stride = loop.stride[1];
  p.out = out.data();
  p.out_stride = loop.stride[0];
  p.exponent_stride = loop.stride[2];
  return p;
}

}  // namespace

tensor_spec infer_ldexp(inputs in) { return {in[0].type(), broadcast("ldexp", "n", in[0].shape(), in[1].shape())}; }
exponent_plan make_ldexp(inputs in, const tensor_view& out) {
  exponent_plan p = make_exponent(ops::op_id::ldexp, in[0], out, in[1]);
  p.n = in[1].data();
  return p;
}

specs infer_frexp(inputs in) {
  specs all;
  all.push_back({in[0].type(), in[0].shape()});
  all.push_back({dtype::i32, in[0].shape()});
  return all;
}
exponent_plan make_frexp(inputs in, outputs out) {
  exponent_plan p = make_exponent(ops::op_id::frexp, in[0], out[0], out[1]);
  p.exponent = static_cast<std::int32_t*>(out[1].data());
  return p;
}

}  // namespace repdl::plan
