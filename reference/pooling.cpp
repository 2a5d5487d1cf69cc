// Pooling: windows of one channel, taps row-major; a tap outside the image is absent.
#include <stdexcept>

#include "reference/structured.hpp"
#include "reference/windows.hpp"

namespace repdl::reference {
namespace {

windows pool_windows(const attributes& attrs) {
  const extent k = required_extent(attrs, "kernel");
  return {k, attrs, k};
}

void check(bool ok) {
  if (!ok) throw std::invalid_argument("reference: pooling shapes");
}

/// The present pixels of window (y, x), row-major.
std::vector<std::int64_t> taps(const windows& win, extent image, std::int64_t y, std::int64_t x) {
  std::vector<std::int64_t> v;
  for (std::int64_t r = 0; r < win.kernel.h; ++r)
    for (std::int64_t s = 0; s < win.kernel.w; ++s)
      if (const auto pixel = win.pixel(image, y, x, r, s)) v.push_back(*pixel);
  return v;
}

/// Calls f(plane, the window's index in the result, its taps) for all windows.
template <class F>
void for_windows(const windows& win, std::int64_t planes, extent image, F&& f) {
  const extent result = win.results(image);
  for (std::int64_t plane = 0; plane < planes; ++plane)
    for (std::int64_t y = 0; y < result.h; ++y)
      for (std::int64_t x = 0; x < result.w; ++x)
        f(plane, (plane * result.h + y) * result.w + x, taps(win, image, y, x));
}

/// The pixel of the window's greatest element: NaN wins (the first one), -0 < +0, then the first index.
std::int64_t greatest(const patterns& x, std::int64_t first, const std::vector<std::int64_t>& pixels) {
  if (pixels.empty()) throw std::invalid_argument("reference: the greatest of nothing");
  std::int64_t best = pixels[0];
  for (const std::int64_t p : pixels) {
    const std::uint32_t v = x[index(first + p)];
    if (widen(f32, v).kind == number_kind::nan) return p;
    if (order_key(f32, v) > order_key(f32, x[index(first + best)])) best = p;
  }
  return best;
}

std::int64_t divisor(const windows& win, const attributes& attrs, std::size_t present) {
  return attribute_or(attrs, "count_include_pad", false) ? win.kernel.h * win.kernel.w
                                                         : static_cast<std::int64_t>(present);
}

/// out = f(the windows, the elements, the first one of the plane, the taps) for every window.
template <class F>
array pool(const array& x, const attributes& attrs, F&& f) {
  check(x.shape.size() == 4);
  const windows win = pool_windows(attrs);
  const extent image{x.shape[2], x.shape[3]}, result = win.results(image);
  const patterns v = x.patterns();
  array out(f32, {x.shape[0], x.shape[1], result.h, result.w});
  for_windows(win, x.shape[0] * x.shape[1], image, [&](std::int64_t plane, std::int64_t o, const auto& pixels) {
    out.set(index(o), f(win, v, plane * image.h * image.w, pixels));
  });
  return out;
}

}  // namespace

array max_pool2d(const array& x, const attributes& attrs) {
  return pool(x, attrs, [](const windows&, const patterns& v, std::int64_t first, const auto& pixels) {
    const std::uint64_t best = v[index(first + greatest(v, first, pixels))];
    return widen(f32, best).kind == number_kind::nan ? nan_bits(f32) : best;
  });
}

array max_pool2d_backward(const array& g, const array& x, const attributes& attrs, outcomes* where) {
  check(x.shape.size() == 4 && g.shape.size() == 4);
  const windows win = pool_windows(attrs);
  const extent image{x.shape[2], x.shape[3]}, result = win.results(image);
  check(g.shape == shape_list{x.shape[0], x.shape[1], result.h, result.w});
  const patterns v = x.patterns(), gv = g.patterns();
  std::vector<patterns> terms(index(x.count()));  // of each pixel
  for_windows(win, x.shape[0] * x.shape[1], image, [&](std::int64_t plane, std::int64_t o, const auto& pixels) {
    const std::int64_t first = plane * image.h * image.w;
    terms[index(first + greatest(v, first, pixels))].push_back(gv[index(o)]);
  });
  array out(f32, x.shape);
  exact_sum s;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    s.clear();
    for (const std::uint32_t t : terms[i]) s.add(t);
    out.set(i, s.round());
    if (where != nullptr) where->push_back(s.where());
  }
  return out;
}

array avg_pool2d(const array& x, const attributes& attrs, outcomes* where) {
  exact_sum s;
  return pool(x, attrs, [&](const windows& win, const patterns& v, std::int64_t first, const auto& pixels) {
    s.clear();
    for (const std::int64_t p : pixels) s.add(v[index(first + p)]);
    const std::int64_t n = divisor(win, attrs, pixels.size());
    if (where != nullptr) where->push_back(s.where(n));
    return s.round_mean(n);
  });
}

array avg_pool2d_backward(const array& g, const attributes& attrs, outcomes* where) {
  check(g.shape.size() == 4);
  const windows win = pool_windows(attrs);
  const extent image = required_extent(attrs, "size"), result = win.results(image);
  check(g.shape[2] == result.h && g.shape[3] == result.w);
  struct term {
    std::uint32_t g;
    std::int64_t n;  // the window's divisor
  };
  const patterns gv = g.patterns();
  array out(f32, {g.shape[0], g.shape[1], image.h, image.w});
  std::vector<std::vector<term>> terms(index(out.count()));  // of each pixel
  for_windows(win, g.shape[0] * g.shape[1], image, [&](std::int64_t plane, std::int64_t o, const auto& pixels) {
    const std::int64_t n = divisor(win, attrs, pixels.size());
    for (const std::int64_t p : pixels) terms[index(plane * image.h * image.w + p)].push_back({gv[index(o)], n});
  });
  // sum of g / n = (sum of g * (c / n)) / c, c the least common multiple of the divisors.
  exact_sum one;
  mpz_t numerator, common, factor;
  mpz_inits(numerator, common, factor, nullptr);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    one.clear();
    mpz_set_ui(common, 1);
    for (const term& t : terms[i]) {
      one.add(t.g);  // for NaN and infinities
      mpz_lcm_ui(common, common, static_cast<unsigned long>(t.n));
    }
    outcome o = one.where();
    if (o.nan || o.infinite) {
      out.set(i, one.round());
    } else {
      mpz_set_ui(numerator, 0);
      for (const term& t : terms[i]) {
        one.clear();
        one.add(t.g);
        mpz_divexact_ui(factor, common, static_cast<unsigned long>(t.n));
        mpz_addmul(numerator, one.value(), factor);
      }
      out.set(i, round_quotient(f32, numerator, common, exact_sum::unit));
      if (where != nullptr) o = locate(f32, numerator, common, exact_sum::unit);
    }
    if (where != nullptr) where->push_back(o);
  }
  mpz_clears(numerator, common, factor, nullptr);
  return out;
}

}  // namespace repdl::reference
