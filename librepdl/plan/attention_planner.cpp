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

[[noreturn]] void wrong(std::string_view name, const std::string& expected, const const_tensor_view& got) {
  fail(error_site::attention_shape, "attention", name, expected, "shape " + to_string(got.shape()));
}

attention_sizes sizes_of(inputs in) {
  const sizes &q = in[0].shape(), &k = in[1].shape(), &v = in[2].shape();
  const int rank = q.size();
  if (rank < 2) fail(error_site::operand_rank, "attention", "q", "at least 2 axes", std::to_string(rank));
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    const std::string_view name = i == 1 ? "k" : "v";
    check_rank("attention", name, in[i], rank, "as q has");
    for (int a = 0; a + 3 < rank; ++a) {
      if (in[i].shape()[a] != q[a]) wrong(name, "the leading axes of q, " + to_string(q) + ", but its heads", in[i]);
    }
  }
  attention_sizes s{1, 1, q[rank - 2], k[rank - 2], q[rank - 1], v[rank - 1]};
  if (rank > 2) {
    s.heads = q[rank - 3];
    s.key_heads = k[rank - 3];
    const bool divides = s.key_heads == 0 ? s.heads == 0 : s.heads % s.key_heads == 0;
    if (!divides) wrong("k", "heads, axis -3, a divisor of q's " + std::to_string(s.heads), in[1]);
    if (v[rank - 3] != s.key_heads) wrong("v", "as many heads, axis -3, as k: " + std::to_string(s.key_heads), in[2]);
  }
  if (k[rank - 1] != s.size) wrong("k", "a last axis as q's, of " + std::to_string(s.size), in[1]);
  if (v[rank - 2] != s.keys) wrong("v", "as many keys, axis -2, as k: " + std::to_string(s.keys), in[2]);
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

sizes scores_shape(inputs in) {
  sizes shape = in[0].shape();
  shape[shape.size() - 1] = in[1].shape()[in[1].rank() - 2];
  return shape;
}

}  // namespace

specs infer_attention(std::span<const ops::operand> out, inputs in, const attention_options& a) {
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}})
    check_format("attention", i == 1 ? "k" : "v", in[i], "q", in[0]);
  const attention_sizes s = sizes_of(in);
  if (a.scale) check_parameter("attention", "scale", *a.scale, true);
  if (in.size() > 3 && in[3]) {
    if (in[3].type() != dtype::boolean) check_format("attention", "mask", in[3], "q", in[0]);
    const sizes all = scores_shape(in);
    if (!(broadcast("attention", "mask", all, in[3].shape()) == all)) {
      fail(error_site::broadcast, "attention", "mask", "a shape that broadcasts to " + to_string(all),
           to_string(in[3].shape()));
    }
  }
  if (in.size() > 4 && in[4] && !(in[4].shape() == sizes{s.heads})) {
    wrong("slopes", "shape (" + std::to_string(s.heads) + "), a number for each head of q", in[4]);
  }
  specs all;
  sizes shape = in[0].shape();
  shape[shape.size() - 1] = s.value_size;
  all.push_back({in[0].type(), shape});
  sizes of_queries;
  for (int i = 0; i + 1 < shape.size(); ++i) of_queries.push_back(shape[i]);
  if (out.size() > 1) all.push_back({dtype::f32, of_queries});
  return all;
}

attention_plan make_attention(inputs in, outputs out, const attention_options& a) {
  const attention_sizes s = sizes_of(in);
  const int rank = in[0].rank(), leading = std::max(rank - 3, 0);
  attention_plan p{};
  p.type = in[0].type();
  p.heads = s.heads;
  p.key_heads = s.key_heads;
  p.queries = s.queries;
  p.keys = s.keys;
  p.size = s.size;
  p.value_size = s.value_size;
  p.batch_rank = leading;
  p.batches = 1;
  for (int i = 0; i < leading; ++i) {
    p.batch_shape[static_cast<std::size_t>(i)] = in[0].shape()[i];
    p.batches *= in[0].shape()[i];
  }
  // Of a view's last axes: heads, rows, and of `last` = 2 elements.
  const auto place = [&](const sizes& strides, int last) {
    attention_place at{};
    for (int i = 0; i < leading; ++i) at.batch[static_cast<std::size_t>(i)] = strides[i];
    const int heads = rank > 2 ? 1 : 0;
    if (heads != 0) at.head = strides[leading];
    at.row = strides[leading + heads];
    if (last == 2) at.element = strides[leading + heads + 1];
    return at;
  };
  p.q = in[0].data();
  p.k = in[1].data();
  p.v = in[2].data();
  p.q_at = place(in[0].strides(), 2);
  p.k_at = place(in[1].strides(), 2);
  p.v_at = place(in[2].strides(), 2);
  if (in.size() > 3 && in[3]) {
    p.mask = in[3].data();
    p.is_added = in[3].type() != dtype::boolean;
    p.mask_at = place(broadcast_strides(in[3], scores_shape(in)), 2);
  }
  if (in.size() > 4 && in[4]) {
    p.slopes = floats(in[4]);
    p.slope_step = in[4].strides()[0];
  }
  p.out = out[0].data();
  p.out_at = place(out[0].strides(), 2);
  if (out.size() > 1 && out[1]) {
    p.lse = static_cast<float*>(out[1].data());
    p.lse_at = place(out[1].strides(), 1);
  }
  p.scale = a.scale ? *a.scale : s.size == 0 ? 1.0 : reciprocal_root(s.size);
  p.offset = a.bottom_right ? s.keys - s.queries : 0;
  constexpr std::int64_t all = std::int64_t{1} << 61;
  p.before = a.left < 0 ? all : std::min(a.left, all);
  p.after = a.right < 0 ? all : std::min(a.right, all);
  if (a.causal) p.after = 0;
  return p;
}

}  // namespace repdl::plan
