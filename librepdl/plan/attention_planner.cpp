// Plans of attention.
#include <algorithm>
#include <bit>

#include "librepdl/num/multi_limb.hpp"
#include "librepdl/plan/planner.hpp"

namespace repdl::plan {
namespace {

// The sizes of a call; heads of key and value are G.
struct attention_sizes {
  std::int64_t heads, key_heads, queries, keys, size, value_size;
};

// What both operations are given.
struct operands {
  std::string_view op;
  const const_tensor_view &q, &k, &v, &mask, &slopes;
};
const const_tensor_view& given(inputs in, std::size_t i) {
  static const const_tensor_view none;
  return i < in.size() ? in[i] : none;
}
operands of_attention(inputs in) { return {"attention", in[0], in[1], in[2], given(in, 3), given(in, 4)}; }
operands of_backward(inputs in) { return {"attention_backward", in[1], in[2], in[3], given(in, 6), given(in, 7)}; }

[[noreturn]] void wrong(std::string_view op, std::string_view name, const std::string& expected,
                        const const_tensor_view& got) {
  fail(error_site::attention_shape, op, name, expected, "shape " + to_string(got.shape()));
}

attention_sizes sizes_of(const operands& of) {
  const sizes &q = of.q.shape(), &k = of.k.shape(), &v = of.v.shape();
  const int rank = q.size();
  if (rank < 2) fail(error_site::operand_rank, of.op, "q", "at least 2 axes", std::to_string(rank));
  for (const bool is_k : {true, false}) {
    const std::string_view name = is_k ? "k" : "v";
    const const_tensor_view& x = is_k ? of.k : of.v;
    check_rank(of.op, name, x, rank, "as q has");
    for (int a = 0; a + 3 < rank; ++a) {
      if (x.shape()[a] != q[a]) wrong(of.op, name, "the leading axes of q, " + to_string(q) + ", but its heads", x);
    }
  }
  attention_sizes s{1, 1, q[rank - 2], k[rank - 2], q[rank - 1], v[rank - 1]};
  if (rank > 2) {
    s.heads = q[rank - 3];
    s.key_heads = k[rank - 3];
    const bool divides = s.key_heads == 0 ? s.heads == 0 : s.heads % s.key_heads == 0;
    if (!divides) wrong(of.op, "k", "heads, axis -3, a divisor of q's " + std::to_string(s.heads), of.k);
    if (v[rank - 3] != s.key_heads)
      wrong(of.op, "v", "as many heads, axis -3, as k: " + std::to_string(s.key_heads), of.v);
  }
  if (k[rank - 1] != s.size) wrong(of.op, "k", "a last axis as q's, of " + std::to_string(s.size), of.k);
  if (v[rank - 2] != s.keys) wrong(of.op, "v", "as many keys, axis -2, as k: " + std::to_string(s.keys), of.v);
  return s;
}

// RN(1 / sqrt n) in binary64, n >= 1, by integers: with 4^a <= n < 4^(a + 1) the greatest t with t^2 n <= 2^(2a + 108), of 54 bits, is
// the root's leading bits and one more, which is no midpoint, for then t^2 n would be a power of two with t odd.
double reciprocal_root(std::int64_t n) {
  const int a = (std::bit_width(static_cast<std::uint64_t>(n)) - 1) / 2;
  const auto scaled_down = [a](std::uint64_t t, int bits) {  // t 2^(-a - bits), t < 2^53
    return std::bit_cast<double>((t & 0xfffffffffffff) | static_cast<std::uint64_t>(1023 + 52 - a - bits) << 52);
  };
  if (n == std::int64_t{1} << (2 * a)) return scaled_down(std::uint64_t{1} << 52, 52);
  using num::limbs_of;
  const auto limit = num::limbs_of_power<4>(2 * a + 108);
  const auto of_n = limbs_of<4>(static_cast<std::uint64_t>(n));
  std::uint64_t t = 0;
  for (int bit = 53; bit >= 0; --bit) {
    const std::uint64_t tried = t | std::uint64_t{1} << bit;
    bool inexact = false;
    const auto square = num::multiply(limbs_of<4>(tried), limbs_of<4>(tried), &inexact);
    if (num::compare_magnitudes(num::multiply(square, of_n, &inexact), limit) <= 0) t = tried;
  }
  const std::uint64_t r = (t + 1) >> 1;  // of 53 bits, or 2^53
  return (r >> 53) != 0 ? scaled_down(std::uint64_t{1} << 52, 52) : scaled_down(r, 53);
}

sizes scores_shape(const operands& of) {
  sizes shape = of.q.shape();
  shape[shape.size() - 1] = of.k.shape()[of.k.rank() - 2];
  return shape;
}
sizes results_shape(const operands& of) {
  sizes shape = of.q.shape();
  shape[shape.size() - 1] = of.v.shape()[of.v.rank() - 1];
  return shape;
}
sizes queries_shape(const operands& of) {
  sizes shape;
  for (int i = 0; i + 1 < of.q.rank(); ++i) shape.push_back(of.q.shape()[i]);
  return shape;
}

dtype lse_type(const operands& of) { return of.q.type() == dtype::f64 ? dtype::f64 : dtype::f32; }

void check(const operands& of, const attention_options& a) {
  check_format(of.op, "k", of.k, "q", of.q);
  check_format(of.op, "v", of.v, "q", of.q);
  const attention_sizes s = sizes_of(of);
  if (a.scale) check_parameter(of.op, "scale", *a.scale, true);
  if (!(a.dropout == 0 || (a.dropout >= 0x1p-32 && a.dropout < 1)))
    fail(error_site::attribute_value, of.op, "dropout", "0 or a share in [2^-32, 1)", to_text(a.dropout));
  if (of.mask) {
    if (of.mask.type() != dtype::boolean) check_format(of.op, "mask", of.mask, "q", of.q);
    const sizes all = scores_shape(of);
    if (!(broadcast(of.op, "mask", all, of.mask.shape()) == all)) {
      fail(error_site::broadcast, of.op, "mask", "a shape that broadcasts to " + to_string(all),
           to_string(of.mask.shape()));
    }
  }
  if (of.slopes && !(of.slopes.shape() == sizes{s.heads})) {
    wrong(of.op, "slopes", "shape (" + std::to_string(s.heads) + "), a number for each head of q", of.slopes);
  }
}

// Of a view's last axes: heads, rows, and of two elements.
attention_place place(const sizes& strides, int rank, int last_axes) {
  const int leading = std::max(rank - 3, 0), heads = rank > 2 ? 1 : 0;
  attention_place at{};
  for (int i = 0; i < leading; ++i) at.batch[static_cast<std::size_t>(i)] = strides[i];
  if (heads != 0) at.head = strides[leading];
  at.row = strides[leading + heads];
  if (last_axes == 2) at.element = strides[leading + heads + 1];
  return at;
}

// All but the results.
attention_plan make(ops::op_id op, const operands& of, const attention_options& a) {
  const attention_sizes s = sizes_of(of);
  const int rank = of.q.rank();
  attention_plan p{};
  p.op = op;
  p.type = of.q.type();
  p.heads = s.heads;
  p.key_heads = s.key_heads;
  p.queries = s.queries;
  p.keys = s.keys;
  p.size = s.size;
  p.value_size = s.value_size;
  p.batch_rank = std::max(rank - 3, 0);
  p.batches = 1;
  for (int i = 0; i < p.batch_rank; ++i) {
    p.batch_shape[static_cast<std::size_t>(i)] = of.q.shape()[i];
    p.batches *= of.q.shape()[i];
  }
  p.q = of.q.data();
  p.k = of.k.data();
  p.v = of.v.data();
  p.q_at = place(of.q.strides(), rank, 2);
  p.k_at = place(of.k.strides(), rank, 2);
  p.v_at = place(of.v.strides(), rank, 2);
  if (of.mask) {
    p.mask = of.mask.data();
    p.is_added = of.mask.type() != dtype::boolean;
    p.mask_at = place(broadcast_strides(of.mask, scores_shape(of)), rank, 2);
  }
  if (of.slopes) {
    p.slopes = floats(of.slopes);
    p.slope_step = of.slopes.strides()[0];
  }
  p.scale = a.scale ? *a.scale : s.size == 0 ? 1.0 : reciprocal_root(s.size);
  p.offset = a.bottom_right ? s.keys - s.queries : 0;
  constexpr std::int64_t all = std::int64_t{1} << 61;
  p.before = a.left < 0 ? all : std::min(a.left, all);
  p.after = a.right < 0 ? all : std::min(a.right, all);
  if (a.causal) p.after = 0;
  p.dropout = a.dropout;
  p.threshold = threshold_of(a.dropout);
  p.seed = a.seed;
  p.stream = a.stream;
  return p;
}

}  // namespace

specs infer_attention(std::span<const ops::operand> out, inputs in, const attention_options& a) {
  const operands of = of_attention(in);
  check(of, a);
  specs all;
  all.push_back({of.q.type(), results_shape(of)});
  if (out.size() > 1) all.push_back({lse_type(of), queries_shape(of)});
  return all;
}
attention_plan make_attention(inputs in, outputs out, const attention_options& a) {
  attention_plan p = make(ops::op_id::attention, of_attention(in), a);
  const int rank = in[0].rank();
  p.out = out[0].data();
  p.out_at = place(out[0].strides(), rank, 2);
  if (out.size() > 1 && out[1]) {
    p.lse = out[1].data();
    p.lse_at = place(out[1].strides(), rank, 1);
  }
  return p;
}

specs infer_attention_backward(inputs in, const attention_options& a) {
  const operands of = of_backward(in);
  check(of, a);
  for (const std::size_t i : {std::size_t{0}, std::size_t{4}}) {
    const std::string_view name = i == 0 ? "g" : "y";
    check_format(of.op, name, in[i], "q", of.q);
    if (!(in[i].shape() == results_shape(of)))
      wrong(of.op, name, "shape " + to_string(results_shape(of)) + ", that of attention's result", in[i]);
  }
  if (in[5].type() != lse_type(of)) {
    fail(error_site::operand_dtype, of.op, "lse",
         std::string(name_of(lse_type(of))) + " beside q of " + std::string(name_of(of.q.type())),
         name_of(in[5].type()));
  }
  if (!(in[5].shape() == queries_shape(of)))
    wrong(of.op, "lse", "shape " + to_string(queries_shape(of)) + ", a number for each query", in[5]);
  specs all;
  for (const const_tensor_view* x : {&of.q, &of.k, &of.v}) all.push_back({of.q.type(), x->shape()});
  return all;
}
attention_plan make_attention_backward(inputs in, outputs out, const attention_options& a) {
  attention_plan p = make(ops::op_id::attention_backward, of_backward(in), a);
  const int rank = in[1].rank();
  p.g = in[0].data();
  p.g_at = place(in[0].strides(), rank, 2);
  p.y = in[4].data();
  p.y_at = place(in[4].strides(), rank, 2);
  p.given_lse = in[5].data();
  p.given_lse_at = place(in[5].strides(), rank, 1);
  p.grad_q = out[0].data();
  p.grad_k = out[1].data();
  p.grad_v = out[2].data();
  p.grad_q_at = place(out[0].strides(), rank, 2);
  p.grad_k_at = place(out[1].strides(), rank, 2);
  p.grad_v_at = place(out[2].strides(), rank, 2);
  return p;
}

}  // namespace repdl::plan
