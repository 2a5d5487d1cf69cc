// What the backends' products of a convolution are made of: phases of an axis, and parts of the depth.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "librepdl/plan/plans.hpp"

namespace repdl::plan {

constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return -floor_div(-a, b); }

/// To the input, one phase of an axis's strides: image coordinate = first + i * stride for i < sites, kernel coordinate = tap + j *
/// tap_step for j < taps; the pair meets result coordinate start + i - j * result_step.
struct phase {
  std::int64_t first, sites, tap, tap_step, taps, start, result_step;

  phase(std::int64_t remainder, const window_axis& a) {
    const std::int64_t q0 = ceil_div(a.before - remainder, a.stride);
    first = a.stride * q0 + remainder - a.before;
    sites = std::max<std::int64_t>(0, ceil_div(a.image - first, a.stride));
    tap_step = a.stride / std::gcd(a.stride, a.dilation);
    tap = 0;
    const std::int64_t candidates = std::min(tap_step, a.kernel);
    while (tap < candidates && tap * (a.dilation % a.stride) % a.stride != remainder) ++tap;
    taps = tap < candidates ? (a.kernel - tap + tap_step - 1) / tap_step : 0;
    start = taps > 0 ? q0 - (tap * a.dilation - remainder) / a.stride : 0;
    result_step = taps > 1 ? tap_step * a.dilation / a.stride : 0;
  }
};
/// Calls use(phase) for every phase of an axis.
template <class Use>
void for_each_phase(const window_axis& a, const Use& use) {
  for (std::int64_t i = 0; i < std::min(a.stride, a.image); ++i) use(phase((i + a.before) % a.stride, a));
}

/// Windows and taps in depth between which no pair is absent: window i < windows and tap j < taps are at position first + i * window + j
/// * tap of a tensor. To the input its positions are the windows: an output's. The parts of a call have every output once.
struct depth_part {
  struct line {
    std::int64_t first, window, tap;
  };
  std::int64_t windows, taps;
  line image, kernel, result;
};

struct depth_range {
  std::int64_t begin, end;
  friend bool operator==(const depth_range&, const depth_range&) = default;
};
/// Calls use(first, count, range) for the runs of i in [0, count) with the same range(i); an empty one is {0, 0}.
template <class Range, class Use>
void for_each_run(std::int64_t count, const Range& range, const Use& use) {
  const auto of = [&](std::int64_t i) {
    const depth_range r = range(i);
    return r.begin < r.end ? r : depth_range{0, 0};
  };
  for (std::int64_t first = 0; first < count;) {
    const depth_range r = of(first);
    std::int64_t end = first + 1;
    while (end < count && of(end) == r) ++end;
    use(first, end - first, r);
    first = end;
  }
}

/// Calls use(depth_part) for every part of a convolution: runs of outputs in depth that have the same terms there.
template <class Use>
void for_each_depth_part(const conv_plan& p, const Use& use) {
  const window_axis& z = p.axis[0];
  const auto part = [&](std::int64_t window, std::int64_t windows, std::int64_t tap, std::int64_t taps) {
    use(depth_part{windows,
                   taps,
                   {window * z.stride + tap * z.dilation - z.before, z.stride, z.dilation},
                   {tap, 0, 1},
                   {window, 1, 0}});
  };
  switch (p.computed) {
    case conv_plan::role::result:
      return for_each_run(
          z.windows,
          [&](std::int64_t o) {
            const std::int64_t origin = o * z.stride - z.before;
            return depth_range{std::max<std::int64_t>(0, ceil_div(-origin, z.dilation)),
                               std::min(z.kernel, ceil_div(z.image - origin, z.dilation))};
          },
          [&](std::int64_t first, std::int64_t count, const depth_range& taps) {
            part(first, count, taps.begin, taps.end - taps.begin);
          });
    case conv_plan::role::kernel:
      return for_each_run(
          z.kernel,
          [&](std::int64_t r) {
            const std::int64_t shift = r * z.dilation - z.before;
            return depth_range{std::max<std::int64_t>(0, ceil_div(-shift, z.stride)),
                               std::min(z.windows, ceil_div(z.image - shift, z.stride))};
          },
          [&](std::int64_t first, std::int64_t count, const depth_range& windows) {
            part(windows.begin, windows.end - windows.begin, first, count);
          });
    case conv_plan::role::image:
      return for_each_phase(z, [&](const phase& f) {
        for_each_run(
            f.sites,
            [&](std::int64_t i) {
              const std::int64_t at = f.start + i;  // the window of tap 0
              if (f.result_step == 0) return depth_range{0, at >= 0 && at < z.windows ? f.taps : 0};
              return depth_range{std::max<std::int64_t>(0, ceil_div(at - z.windows + 1, f.result_step)),
                                 std::min(f.taps, floor_div(at, f.result_step) + 1)};
            },
            [&](std::int64_t first, std::int64_t count, const depth_range& taps) {
              use(depth_part{count,
                             taps.end - taps.begin,
                             {f.first + first * z.stride, z.stride, 0},
                             {f.tap + taps.begin * f.tap_step, 0, f.tap_step},
                             {f.start + first - taps.begin * f.result_step, 1, -f.result_step}});
            });
      });
  }
}

}  // namespace repdl::plan
