// Pooling: windows of one channel, taps row-major; a tap outside the image is absent. Adaptive operations are those without a
// kernel.
#include <optional>
#include <stdexcept>

#include "reference/structured/structured.hpp"
#include "reference/structured/windows.hpp"

namespace repdl::reference {
namespace {

using elements = std::vector<std::uint64_t>;

elements elements_of(const array& a) {
  elements v;
  for (std::int64_t i = 0; i < a.count(); ++i) v.push_back(a.get(index(i)));
  return v;
}

void check_pooling(bool ok) {
  if (!ok) throw std::invalid_argument("reference: pooling shapes");
}

struct pool_windows {
  extent image, result;
  std::optional<windows> fixed;  ///< absent: adaptive

  /// pooled: how many windows there are if they are adaptive.
  pool_windows(const attributes& attrs, const extent& of_image, const std::optional<extent>& pooled) : image(of_image) {
    if (const auto k = extent_of(attrs, "kernel", image.size())) {
      fixed.emplace(*k, attrs, *k);
      result = fixed->results(image);
    } else {
      result = pooled.value();
    }
  }

  /// The present pixels of a window, row-major.
  std::vector<std::int64_t> taps(const extent& window) const {
    std::vector<std::int64_t> v;
    if (fixed) {
      for_places(fixed->kernel, [&](const extent& tap) {
        if (const auto pixel = fixed->pixel(image, window, tap)) v.push_back(*pixel);
      });
    } else {
      for_places(image, [&](const extent& pixel) {
        bool all = true;
        for (std::size_t d = 0; d < image.size(); ++d) all &= holds(window[d], image[d], result[d], pixel[d]);
        if (all) v.push_back(number_of_place(image, pixel));
      });
    }
    return v;
  }

 private:
  /// Whether adaptive window o of `count` holds position i: floor(o size / count) <= i < ceil((o + 1) size / count), that is,
  /// whether [i, i + 1) and [o, o + 1) size / count meet.
  static bool holds(std::int64_t o, std::int64_t size, std::int64_t count, std::int64_t i) {
    return o * size < (i + 1) * count && i * count < (o + 1) * size;
  }
};

/// Calls f(channel of a sample, the window, its index in the result, its taps) for all windows.
template <class F>
void for_windows(const pool_windows& win, std::int64_t channels, F&& f) {
  std::int64_t o = 0;
  for (std::int64_t channel = 0; channel < channels; ++channel)
    for_places(win.result, [&](const extent& window) { f(channel, window, o++, win.taps(window)); });
}

/// The pixel of the window's greatest element: NaN wins (the first one), -0 < +0, then the first index.
std::int64_t greatest(dtype t, const elements& x, std::int64_t first, const std::vector<std::int64_t>& pixels) {
  if (pixels.empty()) throw std::invalid_argument("reference: the greatest of nothing");
  std::int64_t best = pixels[0];
  for (const std::int64_t p : pixels) {
    const std::uint64_t v = x[index(first + p)];
    if (widen(t, v).kind == number_kind::nan) return p;
    if (order_key(t, v) > order_key(t, x[index(first + best)])) best = p;
  }
  return best;
}

std::int64_t divisor(const pool_windows& win, const attributes& attrs, const extent& window, std::size_t present) {
  if (const auto given = attribute_or<std::int64_t>(attrs, "divisor_override", 0); given != 0) return given;
  if (!attribute_or(attrs, "count_include_pad", false)) return static_cast<std::int64_t>(present);
  return win.fixed.value().padded_taps(win.image, window);
}

/// The terms divided by -n instead of n: their signs are changed.
void change_sign(dtype t, elements& v) {
  for (std::uint64_t& x : v) x ^= format_of(t).sign_bit();
}

/// out = f(the windows, the elements, the first one of the channel, the window, the taps) for every window.
template <class F>
array pool(const array& x, const attributes& attrs, F&& f) {
  const extent image = spatial(x.shape);
  const pool_windows win(attrs, image, extent_of(attrs, "size", image.size()));
  const elements v = elements_of(x);
  array out(x.type, with_spatial(x.shape[0], x.shape[1], win.result));
  for_windows(win, x.shape[0] * x.shape[1],
              [&](std::int64_t channel, const extent& window, std::int64_t o, const auto& pixels) {
                out.set(index(o), f(win, v, channel * volume(image), window, pixels));
              });
  return out;
}

}  // namespace

std::vector<array> max_pool(const array& x, const attributes& attrs, bool with_indices) {
  const dtype t = x.type;
  std::vector<std::int64_t> where;
  array out =
      pool(x, attrs, [&](const auto&, const elements& v, std::int64_t first, const extent&, const auto& pixels) {
        where.push_back(greatest(t, v, first, pixels));
        const std::uint64_t best = v[index(first + where.back())];
        return widen(t, best).kind == number_kind::nan ? nan_bits(t) : best;
      });
  std::vector<array> all{std::move(out)};
  if (with_indices) {
    array indices(dtype::i64, all[0].shape);
    for (std::size_t i = 0; i < where.size(); ++i) indices.set(i, static_cast<std::uint64_t>(where[i]));
    all.push_back(std::move(indices));
  }
  return all;
}

array max_pool_backward(const array& g, const array& x, const attributes& attrs, outcomes* where) {
  check_pooling(x.shape.size() == g.shape.size() && x.type == g.type);
  const pool_windows win(attrs, spatial(x.shape), spatial(g.shape));
  check_pooling(g.shape == with_spatial(x.shape[0], x.shape[1], win.result));
  const elements v = elements_of(x), gv = elements_of(g);
  std::vector<elements> terms(index(x.count()));  // of each pixel
  for_windows(win, x.shape[0] * x.shape[1],
              [&](std::int64_t channel, const extent&, std::int64_t o, const auto& pixels) {
                const std::int64_t first = channel * volume(win.image);
                terms[index(first + greatest(x.type, v, first, pixels))].push_back(gv[index(o)]);
              });
  array out(x.type, x.shape);
  exact_sum s(x.type);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    s.clear();
    for (const std::uint64_t t : terms[i]) s.add(t);
    out.set(i, s.round());
    if (where != nullptr) where->push_back(s.where());
  }
  return out;
}

array avg_pool(const array& x, const attributes& attrs, outcomes* where) {
  exact_sum s(x.type);
  return pool(
      x, attrs,
      [&](const pool_windows& win, const elements& v, std::int64_t first, const extent& window, const auto& pixels) {
        const std::int64_t n = divisor(win, attrs, window, pixels.size());
        elements terms;
        for (const std::int64_t p : pixels) terms.push_back(v[index(first + p)]);
        if (n < 0) change_sign(x.type, terms);
        s.clear();
        for (const std::uint64_t t : terms) s.add(t);
        if (where != nullptr) where->push_back(s.where(n < 0 ? -n : n));
        return s.round_mean(n < 0 ? -n : n);
      });
}

array avg_pool_backward(const array& g, const attributes& attrs, outcomes* where) {
  const extent image = required_extent(attrs, "size", spatial(g.shape).size());
  const pool_windows win(attrs, image, spatial(g.shape));
  check_pooling(spatial(g.shape) == win.result);
  struct term {
    std::uint64_t g;
    std::int64_t n;  // the window's divisor
  };
  elements gv = elements_of(g);
  const bool negative = attribute_or<std::int64_t>(attrs, "divisor_override", 0) < 0;
  if (negative) change_sign(g.type, gv);
  array out(g.type, with_spatial(g.shape[0], g.shape[1], image));
  std::vector<std::vector<term>> terms(index(out.count()));  // of each pixel
  for_windows(win, g.shape[0] * g.shape[1],
              [&](std::int64_t channel, const extent& window, std::int64_t o, const auto& pixels) {
                const std::int64_t n = divisor(win, attrs, window, pixels.size());
                for (const std::int64_t p : pixels)
                  terms[index(channel * volume(image) + p)].push_back({gv[index(o)], negative ? -n : n});
              });
  // sum of g / n = (sum of g * (c / n)) / c, c the least common multiple of the divisors.
  exact_sum one(g.type);
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
      out.set(i, round_quotient(g.type, numerator, common, one.unit_of_sum()));
      if (where != nullptr) o = locate(g.type, numerator, common, one.unit_of_sum());
    }
    if (where != nullptr) where->push_back(o);
  }
  mpz_clears(numerator, common, factor, nullptr);
  return out;
}

}  // namespace repdl::reference
