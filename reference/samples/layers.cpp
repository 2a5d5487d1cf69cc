// Inputs of convolutions and pooling.
//
// Convolutions: one operand is dense: all of it odd integers of half the precision, of f32 13 bits (times a power of two). The
// other is a kernel of even integers with one such odd carrier for each output it makes (each output channel of conv2d and of
// the weight gradient, each input channel of the input gradient). Whatever the geometry, an output with the carrier's tap
// present is then an odd integer of one bit more than the precision: a tie; with a second, tiny tap it is a near-tie. In 16 bits
// few of the even ones are not 0, or the sum would be longer or shorter.
#include <algorithm>
#include <bit>

#include "reference/attributes.hpp"
#include "reference/samples/detail.hpp"
#include "reference/structured/windows.hpp"

namespace repdl::reference::detail {
namespace {

using enum sample_class;

bool carries(sample_class c) { return c == ties || c == near_ties || c == overflow_border; }

using wide_patterns = patterns_of<std::uint64_t>;

/// What convolutions of a format are made of. Carriers: of f32 4801 .. 5401 squared has 25 bits, and 5792.6^2 is 2^25: the border is on
/// both sides of it; likewise 47 .. 63 and 64 of f16, 17 .. 21 and 22.6 of bf16, 94906267 .. 134217727 and 2^27 of f64.
struct convolved : wide_patterns {
  using wide_patterns::wide_patterns;

  std::uint64_t carrier(sample_class c, word_stream& w) const {
    struct range {
      std::uint64_t first;
      std::uint32_t count;  // of odd numbers
    };
    const bool border = c == overflow_border;
    const range r = type == dtype::f16    ? (border ? range{59, 6} : range{47, 9})
                    : type == dtype::bf16 ? (border ? range{19, 4} : range{17, 3})
                    : type == dtype::f64  ? (border ? range{134217717, 11} : range{94906267, 19655731})
                                          : (border ? range{5787, 11} : range{4801, 301});
    return r.first + 2 * w.below(r.count);
  }
  /// Of so many in a hundred taps beside the carrier.
  std::uint32_t few() const { return type == dtype::f16 ? 6 : type == dtype::bf16 ? 2 : 60; }
  /// The scale of a line of the kernel.
  int scale(word_stream& w) const { return type == dtype::f16 ? w.between(-9, 3) : w.between(-9, 9); }
  /// Even integers beside a carrier's product.
  std::uint64_t even(word_stream& w) const { return 2 * w.below(1U << std::max(1, std::min(16, p - 8))); }
  /// Exponents of both operands, of sums at the border and of sums in units of half the least number.
  int border(bool of_dense) const { return (f.emax - p + (of_dense ? 0 : 1)) / 2; }
  int below_least(bool of_dense) const {
    const int half = (f.ulp_min() - 1) / 2;
    return of_dense ? half : f.ulp_min() - 1 - half;
  }
  /// Of a wide range of exponents.
  std::uint64_t spread(bool negative, word_stream& w) const {
    const int most = type == dtype::f16 ? 7 : type == dtype::f64 ? 500 : 60;
    const int e = w.between(-most, most);
    return with_exponent(negative, e, type == dtype::f64 ? w.next64() : w.next());
  }
};

/// The dense operand. `mirrored`: its axis along which a cancelling pair lies (entry i equals entry size - 1 - i).
array dense(const convolved& of, sample_class c, const shape_list& shape, std::size_t mirrored, word_stream& w) {
  array a(of.type, shape);
  std::size_t inner = 1;  // elements of one entry of the mirrored axis
  for (std::size_t d = mirrored + 1; d < shape.size(); ++d) inner *= size_at(shape, d);
  const std::size_t entries = size_at(shape, mirrored);
  const bool keep = w.below(16) == 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.count()); ++i) {
    const bool negative = w.flip();
    std::uint64_t x = 0;
    if (carries(c)) {
      const std::uint64_t m = of.carrier(c, w);
      x = of.pattern(negative, m, c == overflow_border ? of.border(true) : 0);
    } else if (c == subnormal) {
      x = of.pattern(negative, w.next() >> 26, of.below_least(true));
    } else if (c == cancelling) {
      const std::size_t entry = i / inner % entries, other = entries - 1 - entry;
      x = of.ordinary(normal_range, w);
      if (entry > other) x = a.get(i - (entry - other) * inner);
    } else if (c == single_nonfinite) {
      x = w.below(200) == 0 ? of.special(w) : of.ordinary(normal_range, w);
    } else if (c == wide_exponents) {
      x = of.spread(negative, w);
    } else {
      x = of.drawn(c, keep, w);
    }
    a.set(i, x);
  }
  return a;
}

/// The kernel operand of shape (a, b, and spatial axes): one line for each entry of axis `own`, which runs over the others.
/// Taps are counted over those, the middle one carries. Returns the scale of each line.
struct lines {
  array values;
  std::vector<int> scale;
};
lines sparse(const convolved& of, sample_class c, const shape_list& shape, std::size_t own, word_stream& w) {
  lines r{array(of.type, shape), {}};
  const std::size_t rows = size_at(shape, own), partner = size_at(shape, 1 - own),
                    plane = static_cast<std::size_t>(volume(spatial(shape))), taps = partner * plane;
  for (std::size_t line = 0; line < rows; ++line) {
    const int scale = of.scale(w);
    r.scale.push_back(scale);
    const bool keep = w.below(16) == 0, all_zero = w.flip(), has_special = w.below(4) != 0, uneven = w.below(4) == 0;
    if (taps == 0) continue;
    const std::size_t middle = w.below(static_cast<std::uint32_t>(partner)) * plane + plane / 2;
    const std::size_t beside = plane / 2 + 1 < plane && w.flip() ? middle + 1 : (middle + plane) % taps;
    const std::size_t odd_one = w.below(static_cast<std::uint32_t>(taps));
    const std::uint64_t odd_value = of.special(w);
    std::vector<std::uint64_t> v(taps);
    for (std::size_t t = 0; t < taps; ++t) {
      const bool negative = w.flip();
      const std::size_t entry = t / plane, other = partner - 1 - entry;
      if (carries(c)) {
        const std::uint64_t m = of.carrier(c, w);
        const bool is_small = w.below(static_cast<std::uint32_t>(std::max<std::size_t>(taps, 100))) < of.few();
        const int e = c == overflow_border ? of.border(false) : scale;
        v[t] = t == middle                     ? of.pattern(negative, m, e)
               : c == near_ties && t == beside ? of.tiny(negative, e - 40)
                                               : of.pattern(negative, is_small ? 2 : 0, e);
      } else if (c == subnormal) {
        v[t] = of.pattern(negative, w.next() >> 26, of.below_least(false));
      } else if (c == cancelling) {
        v[t] = of.ordinary(normal_range, w);
        if (entry > other) v[t] = v[t - (entry - other) * plane] ^ of.sign();
        if (entry == other) v[t] = negative ? of.sign() : 0;
        if (uneven && t == odd_one) v[t] ^= 1;
      } else if (c == single_nonfinite) {
        v[t] = has_special && t == odd_one ? odd_value : of.ordinary(normal_range, w);
        if (w.below(40) == 0) v[t] &= of.sign();
      } else if (c == wide_exponents) {
        v[t] = of.spread(negative, w);
      } else {
        v[t] = of.drawn(c, keep, w);
        if (c == zeros && all_zero) v[t] &= of.sign();
      }
      const std::size_t at = own == 0 ? line * taps + t : (entry * rows + line) * plane + t % plane;
      r.values.set(at, v[t]);
    }
  }
  return r;
}

std::vector<array> convolution(const std::string& op, sample_class c, dtype t, const std::vector<shape_list>& shapes,
                               word_stream& w) {
  const convolved of(t);
  if (op.ends_with("_grad_bias")) {  // a row of terms for each channel
    const shape_list& s = shapes[0];
    const std::int64_t plane = volume(spatial(s));
    const array terms = fill_terms(c, s[1], s[0] * plane, false, w.next64(), 0, t);
    array g(t, s);
    for (std::int64_t n = 0; n < s[0]; ++n)
      for (std::int64_t j = 0; j < s[1]; ++j)
        for (std::int64_t i = 0; i < plane; ++i)
          g.set(index((n * s[1] + j) * plane + i), terms.get(index((j * s[0] + n) * plane + i)));
    return {g};
  }
  if (op.ends_with("_grad_weight")) {  // g is the kernel: a line for each output channel over samples and pixels
    array x = dense(of, c, shapes[1], 0, w);
    return {sparse(of, c, shapes[0], 1, w).values, x};
  }
  // Forward: a line for each output channel; the input gradient: for each input channel.
  array image = dense(of, c, shapes[0], 1, w);
  lines kernel = sparse(of, c, shapes[1], op.ends_with("_grad_input") ? 1 : 0, w);
  std::vector<array> v{image, kernel.values};
  if (shapes.size() < 3) return v;
  array& bias = v.emplace_back(t, shapes[2]);
  for (std::size_t j = 0; j < kernel.scale.size(); ++j) {
    const bool negative = w.flip(), keep = w.below(16) == 0;
    std::uint64_t b = of.drawn(c, keep, w);
    const std::uint64_t even = of.even(w);
    if (c == ties || c == near_ties) b = of.pattern(negative, even, kernel.scale[j]);
    if (c == overflow_border) b = of.pattern(negative, even, of.border(true) + of.border(false));
    if (c == cancelling) b = negative ? of.sign() : 0;
    if (c == zeros && w.flip()) b &= of.sign();
    bias.set(j, b);
  }
  return v;
}

/// Images in which neighbours belong together, whichever windows meet: integers of the format's precision and one scale (their sums
/// are often ties), a tiny number at every second pixel of every second row (near-ties), alternating signs (zeros).
array plane_values(sample_class c, dtype t, const shape_list& shape, word_stream& w) {
  const wide_patterns of(t);
  const format& f = of.f;
  const std::uint64_t hidden = std::uint64_t{1} << (f.precision - 1);
  const bool is_wide = t == dtype::f64;
  array a(t, shape);
  const std::size_t rank = shape.size(), height = size_at(shape, rank - 2), width = size_at(shape, rank - 1);
  std::size_t planes = 1;
  for (std::size_t d = 0; d + 2 < rank; ++d) planes *= size_at(shape, d);
  std::size_t i = 0;
  for (std::size_t p = 0; p < planes; ++p) {
    const int e = t == dtype::f16 ? w.between(-10, 1) : w.between(-20, 20);
    const bool sign = w.flip(), keep = w.below(16) == 0, uneven = w.below(4) == 0;
    const std::uint64_t value = of.ordinary(normal_range, w);
    for (std::size_t y = 0; y < height; ++y) {
      for (std::size_t x = 0; x < width; ++x, ++i) {
        std::uint64_t v = of.drawn(c, keep, w);
        if (c == ties || c == near_ties) {
          const bool small = c == near_ties && y % 2 == 0 && x % 2 == 0;
          const std::uint64_t m =
              hidden | (is_wide ? w.next64() & (hidden - 1) : w.below(static_cast<std::uint32_t>(hidden)));
          const int below = !small ? 0 : is_wide ? w.between(60, 130) : 70;
          v = small ? of.tiny(w.flip(), e - below) : of.pattern(sign, m, e);
        }
        if (c == overflow_border) v = (f.largest() - (v & 3)) | (sign ? f.sign_bit() : 0);
        if (c == cancelling) v = value ^ (x % 2 == 0 ? 0 : f.sign_bit()) ^ (uneven && w.below(16) == 0 ? 1U : 0U);
        a.set(i, v);
      }
    }
  }
  return a;
}

/// Odd multiples of half the least number when divided by n (an even number), subnormal; with n odd, any subnormal numbers.
/// Integers of up to so many bits times n are numbers of the format.
int bits_beside(std::int64_t n, dtype t) {
  return t == f32 ? 12 : format_of(t).precision - std::bit_width(static_cast<std::uint64_t>(n));
}
array divided_ties(std::int64_t n, dtype t, const shape_list& shape, word_stream& w) {
  const int longest = bits_beside(n, t), least = format_of(t).ulp_min();
  int twos = 0;
  for (; n % 2 == 0; n /= 2) ++twos;
  array a(t, shape);
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.count()); ++i) {
    const std::uint64_t m = odd_of(w.between(1, longest), w) * static_cast<std::uint64_t>(n);
    a.set(i, exact_pattern(t, w.flip(), m, twos == 0 ? least : least + twos - 1));
  }
  return a;
}

/// The windows of a call; those of an adaptive one are aimed at as if they were all of a size.
windows windows_of(const std::string& op, const std::vector<shape_list>& shapes, const attributes& attrs) {
  const std::size_t axes = shapes[0].size() - 2;
  if (const auto k = extent_of(attrs, "kernel", axes)) return {*k, attrs, *k};
  const bool backward = op.ends_with("backward");
  const auto size = extent_of(attrs, "size", axes);
  const extent pooled = backward ? spatial(shapes[0]) : size.value();
  const extent image = !backward ? spatial(shapes[0]) : shapes.size() > 1 ? spatial(shapes[1]) : size.value();
  extent k;
  for (std::size_t d = 0; d < axes; ++d)
    k.push_back(pooled[d] == 0 || image[d] < pooled[d] ? 1 : (image[d] + pooled[d] - 1) / pooled[d]);
  return {k, {}, k};
}

std::vector<array> pooling(const std::string& op, sample_class c, dtype t, const std::vector<shape_list>& shapes,
                           const attributes& attrs, word_stream& w) {
  if (op.starts_with("upsample_")) return {plane_values(c, t, shapes[0], w)};
  const windows win = windows_of(op, shapes, attrs);
  const extent &k = win.kernel, none(k.size(), 0);
  const bool disjoint = win.stride == k && win.before == none && win.behind == none;
  const shape_list& s = shapes[0];
  const extent image = spatial(s);
  extent count;  // of windows that fill the image
  bool fills = true;
  for (std::size_t d = 0; d < k.size(); ++d) {
    fills &= image[d] % k[d] == 0;
    count.push_back(image[d] / k[d]);
  }
  const bool average = op.find("avg_pool") != op.npos, backward = op.ends_with("_backward");
  if (average && !backward && disjoint && fills) {  // each window is a row of terms
    const std::int64_t taps = volume(k);
    const array terms = fill_terms(c, s[0] * s[1] * volume(count), taps, true, w.next64(), 0, t);
    array x(t, s);
    std::int64_t i = 0;
    for (std::int64_t channel = 0; channel < s[0] * s[1]; ++channel) {
      for_places(image, [&](const extent& pixel) {
        extent window, tap;
        for (std::size_t d = 0; d < k.size(); ++d) {
          window.push_back(pixel[d] / k[d]);
          tap.push_back(pixel[d] % k[d]);
        }
        const std::int64_t of_all = channel * volume(count) + number_of_place(count, window);
        x.set(index(i++), terms.get(index(of_all * taps + number_of_place(k, tap))));
      });
    }
    return {x};
  }
  if (average && backward && disjoint && c == ties && bits_beside(volume(k), t) > 0)
    return {divided_ties(volume(k), t, s, w)};
  if (average || !backward) return {plane_values(c, t, s, w)};
  // x of the class, or with one peak in each window of stride 1: it gets all of them.
  array g = plane_values(c, t, s, w);
  array x(t, shapes[1]);
  const wide_patterns of(t);
  const std::uint64_t hundred = convert(f32, t, 0x42c80000);
  const bool peaks = w.below(4) != 0;
  const sample_class other = w.flip() ? narrow_lattice : c;
  const extent of_x = spatial(shapes[1]);
  std::int64_t i = 0;
  for (std::int64_t channel = 0; channel < shapes[1][0] * shapes[1][1]; ++channel) {
    for_places(of_x, [&](const extent& pixel) {
      bool peak = true;
      for (std::size_t d = 0; d < k.size(); ++d) {
        const std::int64_t reach = (k[d] - 1) * win.dilation[d] + 1;
        peak &= pixel[d] % reach == reach - 1;
      }
      const std::uint64_t v = of.drawn(peaks ? narrow_lattice : other, false, w);
      x.set(index(i++), peaks && peak ? hundred + w.below(3) : v);
    });
  }
  return {g, x};
}

}  // namespace

std::vector<array> layer_inputs(const std::string& op, sample_class c, const std::vector<shape_list>& shapes,
                                const attributes& attrs, word_stream& w, dtype type) {
  return op.starts_with("conv") ? convolution(op, c, type, shapes, w) : pooling(op, c, type, shapes, attrs, w);
}

}  // namespace repdl::reference::detail

namespace repdl::reference {

std::vector<array> fill_pooling(const std::string& op, sample_class c, dtype t, const std::vector<shape_list>& shapes,
                                const attributes& attrs, std::uint64_t seed, std::uint64_t stream) {
  word_stream w(seed, stream);
  return detail::pooling(op, c, t, shapes, attrs, w);
}

}  // namespace repdl::reference
