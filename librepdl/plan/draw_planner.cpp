// Plans of draws in proportion to weights.
#include "librepdl/plan/planner.hpp"

namespace repdl::plan {

tensor_spec infer_multinomial(inputs in, const ops::multinomial_attrs& a) {
  constexpr std::string_view op = "multinomial";
  const const_tensor_view& x = in[0];
  if (x.rank() != 1 && x.rank() != 2) {
    fail(error_site::operand_rank, op, "x", "weights, (rows, n) or (n)", "rank " + std::to_string(x.rank()));
  }
  const std::int64_t rows = x.rank() == 1 ? 1 : x.shape()[0], n = x.shape()[x.rank() - 1], samples = *a.num_samples;
  // Sums have as many bits as weight_sum (ops/random/multinomial.hpp).
  constexpr std::int64_t most = std::int64_t{1} << 40;
  if (n > most) fail(error_site::weights, op, "x", "at most 2^40 weights in a row", std::to_string(n));
  if (samples < 1) fail(error_site::attribute_value, op, "num_samples", "1 or more", std::to_string(samples));
  if (rows != 0 && (n == 0 || (!a.replacement && samples > n))) {
    fail(error_site::weights, op, "x",
         "rows of at least " + std::to_string(a.replacement ? 1 : samples) + " weights that are not 0",
         std::to_string(n) + " weights");
  }
  const tensor_spec out{dtype::i64, x.rank() == 1 ? sizes{samples} : sizes{rows, samples}};
  byte_count(out);
  return out;
}

draw_plan make_multinomial(inputs in, const tensor_view& out, const ops::multinomial_attrs& a) {
  const const_tensor_view& x = in[0];
  const bool one = x.rank() == 1;
  draw_plan p{};
  p.seed = a.seed;
  p.stream = a.stream;
  p.replacement = a.replacement;
  p.rows = one ? 1 : x.shape()[0];
  p.n = x.shape()[one ? 0 : 1];
  p.samples = *a.num_samples;
  p.type = x.type();
  p.in = x.data();
  p.out = static_cast<std::int64_t*>(out.data());
  // A stride that no step is made along may be any number: a huge one becomes 0.
  p.in_row = p.rows > 1 ? x.strides()[0] : 0;
  p.in_stride = p.n > 1 ? x.strides()[one ? 0 : 1] : 0;
  p.out_row = p.rows > 1 ? out.strides()[0] : 0;
  p.out_stride = p.samples > 1 ? out.strides()[one ? 0 : 1] : 0;
  return p;
}

}  // namespace repdl::plan
