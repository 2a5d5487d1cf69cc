// Plans of linear and cubic interpolation.
#include <algorithm>
#include <bit>
#include <numeric>

#include "librepdl/plan/planner.hpp"

namespace repdl::plan {
namespace {

using integer = interpolation_axis::integer;

constexpr std::int64_t largest = std::int64_t{1} << 31;

// 1 / scale = p / q in lowest terms, q < 2^53, p < 2^85.
struct ratio {
  integer p;
  std::uint64_t q;
};
ratio inverse(double scale) {
  const auto bits = std::bit_cast<std::uint64_t>(scale);
  std::uint64_t m = (bits & 0xfffffffffffff) | std::uint64_t{1} << 52;
  const int twos = std::countr_zero(m);
  m >>= twos;
  const int e = static_cast<int>(bits >> 52) - 1075 + twos;  // scale = m 2^e
  return e < 0 ? ratio{integer{1} << -e, m} : ratio{1, m << e};
}

// Position i lies at u = r (i + 1/2) - 1/2, or r i where corners are aligned: (a i + b) / d.
interpolation_axis axis_of(std::int64_t image, std::int64_t size, double scale, const interpolation_options& o,
                           bool cubic) {
  interpolation_axis x{image, size, 0, 0, 1, 1, false};
  if (image <= 1 || size == 0) return x;
  if (o.align_corners) {
    if (size > 1) {
      const std::int64_t common = std::gcd(image - 1, size - 1);
      x.a = (image - 1) / common;
      x.d = static_cast<std::uint64_t>((size - 1) / common);
    }
  } else {
    const std::int64_t common = std::gcd(image, size);
    const ratio r = scale != 0 ? inverse(scale) : ratio{image / common, static_cast<std::uint64_t>(size / common)};
    const int halves =
        (r.p & 1) != 0 && (r.q & 1) != 0 ? 1 : 2;  // p - q is even: 2 p / 2 q and (p - q) / 2 q are reduced
    x.a = r.p * halves;
    x.b = (r.p - static_cast<integer>(r.q)) * halves / 2;
    x.d = r.q * static_cast<std::uint64_t>(halves);
  }
  x.cubic = cubic && x.d > 1;
  x.taps = static_cast<int>(std::min<std::int64_t>(image, x.d == 1 ? 1 : x.cubic ? 4 : 2));
  return x;
}

void check_scale(std::string_view op, std::string_view name, double scale) {
  if (!(scale == 0 || (scale >= 0x1p-32 && scale <= 0x1p32))) {
    fail(error_site::attribute_value, op, name, "0, or a number in [2^-32, 2^32]", to_text(scale));
  }
}

}  // namespace

tensor_spec infer_interpolation(std::string_view op, bool backward, const const_tensor_view& in,
                                const ops::interpolation_attrs& a) {
  const int along = in.rank() - 2;
  if (along < 1 || along > 3) {
    fail(error_site::operand_rank, op, backward ? "g" : "x", "images (samples, channels, and one to three axes)",
         "rank " + std::to_string(in.rank()));
  }
  check_scale(op, "scale_d", a.scale_d);
  check_scale(op, "scale_h", a.scale_h);
  check_scale(op, "scale_w", a.scale_w);
  if (a.size->size() != 1 && a.size->size() != along) {
    fail(error_site::attribute_value, op, "size", "one number, or " + std::to_string(along), to_string(*a.size));
  }
  tensor_spec out{in.type(), {in.shape()[0], in.shape()[1]}};
  for (int i = 0; i < along; ++i) out.shape.push_back((*a.size)[a.size->size() == 1 ? 0 : i]);
  sizes shape = backward ? in.shape() : out.shape;
  for (int i = 2; i < in.rank(); ++i) {
    const std::int64_t given = in.shape()[i], made = out.shape[i];
    if (given >= largest || made < 0 || made >= largest) {
      fail(error_site::attribute_value, op, "size", "sizes in [0, 2^31)",
           to_string(given >= largest ? in.shape() : out.shape));
    }
  }
  if (element_count(shape) != 0) {
    const sizes& image = backward ? out.shape : in.shape();
    for (int i = 2; i < in.rank(); ++i) {
      if (image[i] == 0)
        fail(error_site::empty_window, op, backward ? "size" : "x", "at least one pixel to take", "none");
    }
  }
  return out;
}

interpolation_plan make_interpolation(bool backward, bool cubic, const const_tensor_view& in, const tensor_view& out,
                                      const ops::interpolation_attrs& a) {
  const const_tensor_view result(out);
  const sizes &image = (backward ? result : in).shape(), &size = (backward ? in : result).shape();
  interpolation_plan p{};
  p.backward = backward;
  p.type = in.type();
  p.n = image[0];
  p.c = image[1];
  const double scales[] = {a.scale_d, a.scale_h, a.scale_w};
  const int absent = 5 - in.rank();
  p.common = 1;
  for (int i = 0; i < 3; ++i) {
    interpolation_axis& x = p.axis[i];
    x = i < absent ? axis_of(1, 1, 0, a, false)
                   : axis_of(image[i - absent + 2], size[i - absent + 2], scales[i], a, cubic);
    const auto d = static_cast<double>(x.d);
    p.common *= x.cubic ? 4 * d * d * d : d;
  }
  if (p.common > 0x1p50) p.common = 0;
  p.in = in.data();
  p.out = out.data();
  // A stride that no step is made along may be any number: a huge one becomes 0.
  for (int i = 0; i < 5; ++i) {
    const int at = i < 2 ? i : i - absent;
    const bool steps = i < 2 || i >= 2 + absent;
    p.in_stride[i] = steps && in.shape()[at] > 1 ? in.strides()[at] : 0;
    p.out_stride[i] = steps && out.shape()[at] > 1 ? out.strides()[at] : 0;
  }
  return p;
}

}  // namespace repdl::plan
