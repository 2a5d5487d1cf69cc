// The geometry of convolutions and pooling: which image pixel a result pixel's tap meets, along any number of axes.
#pragma once

#include <optional>
#include <stdexcept>

#include "reference/array.hpp"
#include "reference/attributes.hpp"

namespace repdl::reference {

/// The sizes of a tensor's spatial axes, which are behind samples and channels.
inline extent spatial(const shape_list& shape) {
  if (shape.size() < 3) throw std::invalid_argument("reference: images have samples, channels and spatial axes");
  return {shape.begin() + 2, shape.end()};
}
inline shape_list with_spatial(std::int64_t samples, std::int64_t channels, const extent& e) {
  shape_list shape{samples, channels};
  shape.insert(shape.end(), e.begin(), e.end());
  return shape;
}
inline std::int64_t volume(const extent& e) {
  std::int64_t all = 1;
  for (const std::int64_t x : e) all *= x;
  return all;
}

/// Calls f(place) for every place within the sizes, row-major.
template <class F>
void for_places(const extent& sizes, F&& f) {
  if (volume(sizes) == 0) return;
  extent at(sizes.size(), 0);
  for (;;) {
    f(static_cast<const extent&>(at));
    std::size_t d = sizes.size();
    while (d > 0 && ++at[d - 1] == sizes[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}
/// A place's number in row-major order.
inline std::int64_t number_of_place(const extent& sizes, const extent& at) {
  std::int64_t i = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) i = i * sizes[d] + at[d];
  return i;
}

struct windows {
  extent kernel, stride, dilation, before, behind;
  bool ceil_mode = false;

  /// The attributes stride, padding (before and behind each axis, or one for each axis, or one number) and dilation.
  windows(const extent& k, const attributes& attrs, const extent& default_stride) : kernel(k) {
    const std::size_t axes = k.size();
    stride = extent_of(attrs, "stride", axes).value_or(default_stride);
    dilation = extent_of(attrs, "dilation", axes).value_or(extent(axes, 1));
    const auto p = attribute_or<std::vector<std::int64_t>>(attrs, "padding", {0});
    if (p.size() != 1 && p.size() != axes && p.size() != 2 * axes) throw std::invalid_argument("reference: padding");
    for (std::size_t d = 0; d < axes; ++d) {
      const bool both = p.size() == 2 * axes;
      before.push_back(both ? p[2 * d] : p.size() == 1 ? p[0] : p[d]);
      behind.push_back(both ? p[2 * d + 1] : before.back());
    }
    ceil_mode = attribute_or(attrs, "ceil_mode", false);
  }
  std::size_t axes() const { return kernel.size(); }

  /// The number of windows along each axis of an image.
  extent results(const extent& image) const {
    extent all;
    for (std::size_t d = 0; d < axes(); ++d) {
      const std::int64_t s = stride[d];
      std::int64_t room = before[d] + image[d] + behind[d] - dilation[d] * (kernel[d] - 1) - 1;
      if (ceil_mode) {  // the next multiple of s; a quotient above -1 is rounded up to 0
        if (room <= -s) throw std::invalid_argument("reference: no window");
        while (room % s != 0) ++room;
        all.push_back(room / s * s >= before[d] + image[d] ? room / s : room / s + 1);
      } else {
        if (room < 0) throw std::invalid_argument("reference: the window is larger than the padded image");
        all.push_back(room / s + 1);
      }
    }
    return all;
  }

  /// The pixel, as a row-major index, under a tap of a window; nothing where it is outside the image.
  std::optional<std::int64_t> pixel(const extent& image, const extent& window, const extent& tap) const {
    std::int64_t i = 0;
    for (std::size_t d = 0; d < axes(); ++d) {
      const std::int64_t at = window[d] * stride[d] + tap[d] * dilation[d] - before[d];
      if (at < 0 || at >= image[d]) return std::nullopt;
      i = i * image[d] + at;
    }
    return i;
  }

  /// How many taps of a window are on the padded image.
  std::int64_t padded_taps(const extent& image, const extent& window) const {
    std::int64_t n = 0;
    for_places(kernel, [&](const extent& tap) {
      bool on = true;
      for (std::size_t d = 0; d < axes(); ++d) on &= window[d] * stride[d] + tap[d] < before[d] + image[d] + behind[d];
      n += on ? 1 : 0;
    });
    return n;
  }
};

}  // namespace repdl::reference
