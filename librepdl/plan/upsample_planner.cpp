// Plans of nearest neighbours.
#include <algorithm>
#include <bit>
#include <limits>

#include "librepdl/plan/planner.hpp"

namespace repdl::plan {
namespace {

__extension__ using wide = unsigned __int128;

constexpr std::int64_t largest = std::int64_t{1} << 31;

std::string_view name_of(bool backward) { return backward ? "upsample_nearest2d_backward" : "upsample_nearest2d"; }

struct ratio {
  wide a, b;
};

// Half of 1 / scale, exactly; beyond 2^31 that, below 2^-33 0: then floor(t a / b) is beyond every pixel from t = 1 on,
// or 0.
ratio half_inverse(double scale) {
  const auto bits = std::bit_cast<std::uint64_t>(scale);
  std::uint64_t m = (bits & 0xfffffffffffff) | std::uint64_t{1} << 52;
  const int twos = std::countr_zero(m);
  m >>= twos;
  const int e = static_cast<int>(bits >> 52) - 1075 + twos + 1;  // 2 scale = m 2^e
  const int length = static_cast<int>(std::bit_width(m));
  if (e + length <= -31) return {largest, 1};
  if (e + length > 34) return {0, 1};
  return e < 0 ? ratio{wide{1} << -e, m} : ratio{1, wide{m} << e};
}

// The greatest fraction whose denominator is at most n that is not above r: floor(t r) is the same of both for t <= n,
// since no fraction with the denominator t lies between them. Down the Stern-Brocot tree, as many steps at a time as go
// one way: low <= r < high are neighbours, and every fraction between neighbours has the sum of their denominators for
// its own, or more.
ratio below(ratio r, std::uint64_t n) {
  const wide whole = r.a / r.b;
  ratio low{whole, 1}, high{whole + 1, 1};
  for (;;) {
    const auto from_low = [&] { return r.a * low.b - low.a * r.b; };   // (r - low) times denominators
    const auto to_high = [&] { return high.a * r.b - r.a * high.b; };  // > 0
    if (from_low() == 0 || low.b + high.b > n) return low;
    const wide up = std::min(from_low() / to_high(), (n - low.b) / high.b);
    low = {low.a + up * high.a, low.b + up * high.b};
    if (from_low() == 0 || low.b + high.b > n) return low;
    const wide down = std::min((to_high() - 1) / from_low(), (n - high.b) / low.b);
    high = {high.a + down * low.a, high.b + down * low.b};
  }
}

nearest_axis axis_of(std::int64_t image, std::int64_t size, double scale, bool exact) {
  const auto l = static_cast<std::uint64_t>(image), o = static_cast<std::uint64_t>(size);
  const ratio r = scale == 0 ? ratio{l, 2 * o} : below(half_inverse(scale), 2 * o);
  nearest_axis x{};
  x.image = image;
  x.size = size;
  x.a = static_cast<std::uint64_t>(r.a);
  x.b = static_cast<std::uint64_t>(r.b);
  x.half = exact ? 1 : 0;
  x.limit = x.a == 0 ? std::numeric_limits<std::uint64_t>::max() : ((l - 1) * x.b + x.a - 1) / x.a;
  return x;
}

}  // namespace

tensor_spec infer_upsample(bool backward, const const_tensor_view& in, const ops::upsample_nearest2d_attrs& a) {
  const std::string_view op = name_of(backward);
  check_rank(op, backward ? "g" : "x", in, 4, "images (samples, channels, height, width)");
  if (a.scale_h != 0) check_positive(op, "scale_h", a.scale_h);
  if (a.scale_w != 0) check_positive(op, "scale_w", a.scale_w);
  const pair given{in.shape()[2], in.shape()[3]}, image = backward ? *a.size : given, size = backward ? given : *a.size;
  for (const pair& p : {image, size}) {
    if (p.h < 0 || p.w < 0 || p.h >= largest || p.w >= largest) {
      fail(error_site::attribute_value, op, "size", "two sizes in [0, 2^31)",
           std::to_string(p.h) + "," + std::to_string(p.w));
    }
  }
  if (element_count({in.shape()[0], in.shape()[1], size.h, size.w}) != 0 && (image.h == 0 || image.w == 0)) {
    fail(error_site::empty_window, op, image.h == 0 ? "height" : "width", "at least one pixel to take", "none");
  }
  return {in.type(), {in.shape()[0], in.shape()[1], a.size->h, a.size->w}};
}

upsample_plan make_upsample(bool backward, const const_tensor_view& in, const tensor_view& out,
                            const ops::upsample_nearest2d_attrs& a) {
  const const_tensor_view result(out);
  const sizes &image = (backward ? result : in).shape(), &size = (backward ? in : result).shape();
  upsample_plan p{};
  p.backward = backward;
  p.type = in.type();
  p.n = image[0];
  p.c = image[1];
  p.y = axis_of(image[2], size[2], a.scale_h, a.exact);
  p.x = axis_of(image[3], size[3], a.scale_w, a.exact);
  p.in = in.data();
  p.out = out.data();
  // A stride that no step is made along may be any number: a huge one becomes 0.
  for (int i = 0; i < 4; ++i) {
    p.in_stride[i] = in.shape()[i] > 1 ? in.strides()[i] : 0;
    p.out_stride[i] = out.shape()[i] > 1 ? out.strides()[i] : 0;
  }
  return p;
}

}  // namespace repdl::plan
