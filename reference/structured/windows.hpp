// The geometry of convolutions and pooling: which image pixel a result pixel's tap meets.
#pragma once

#include <optional>
#include <stdexcept>

#include "reference/array.hpp"
#include "reference/attributes.hpp"

namespace repdl::reference {

struct windows {
  extent kernel, stride{1, 1}, dilation{1, 1};
  std::int64_t top = 0, bottom = 0, left = 0, right = 0;
  bool ceil_mode = false;

  /// The attributes stride, padding (top,bottom,left,right, or h,w, or one number) and dilation.
  windows(extent k, const attributes& attrs, extent default_stride) : kernel(k) {
    stride = extent_of(attrs, "stride").value_or(default_stride);
    dilation = extent_of(attrs, "dilation").value_or(extent{1, 1});
    const auto p = attribute_or<std::vector<std::int64_t>>(attrs, "padding", {0});
    if (p.size() != 1 && p.size() != 2 && p.size() != 4) throw std::invalid_argument("reference: padding");
    top = p[0];
    bottom = p.size() == 4 ? p[1] : p[0];
    left = p.size() == 4 ? p[2] : p.back();
    right = p.size() == 4 ? p[3] : p.back();
    ceil_mode = attribute_or(attrs, "ceil_mode", false);
  }

  /// The number of windows along each axis of an image.
  extent results(extent image) const {
    const auto along = [&](std::int64_t before, std::int64_t size, std::int64_t after, std::int64_t k, std::int64_t d,
                           std::int64_t s) {
      std::int64_t room = before + size + after - d * (k - 1) - 1;
      if (ceil_mode) {  // the next multiple of s; a quotient above -1 is rounded up to 0
        if (room <= -s) throw std::invalid_argument("reference: no window");
        while (room % s != 0) ++room;
        return room / s * s >= before + size ? room / s : room / s + 1;
      }
      if (room < 0) throw std::invalid_argument("reference: the window is larger than the padded image");
      return room / s + 1;
    };
    return {along(top, image.h, bottom, kernel.h, dilation.h, stride.h),
            along(left, image.w, right, kernel.w, dilation.w, stride.w)};
  }

  /// The pixel, as a row-major index, under tap (r, s) of window (y, x); nothing where it is outside the image.
  std::optional<std::int64_t> pixel(extent image, std::int64_t y, std::int64_t x, std::int64_t r,
                                    std::int64_t s) const {
    const std::int64_t row = y * stride.h + r * dilation.h - top;
    const std::int64_t column = x * stride.w + s * dilation.w - left;
    if (row < 0 || row >= image.h || column < 0 || column >= image.w) return std::nullopt;
    return row * image.w + column;
  }

  /// How many taps of window (y, x) are on the padded image.
  std::int64_t padded_taps(extent image, std::int64_t y, std::int64_t x) const {
    std::int64_t n = 0;
    for (std::int64_t r = 0; r < kernel.h; ++r)
      for (std::int64_t s = 0; s < kernel.w; ++s)
        n += y * stride.h + r < top + image.h + bottom && x * stride.w + s < left + image.w + right ? 1 : 0;
    return n;
  }
};

}  // namespace repdl::reference
