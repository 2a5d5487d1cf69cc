// Nearest neighbours, as rational numbers.
#include <stdexcept>

#include "reference/numbers/real.hpp"
#include "reference/structured/structured.hpp"
#include "reference/structured/windows.hpp"

namespace repdl::reference {
namespace {

/// Of every output pixel of an axis the pixel of the image that it takes.
std::vector<std::int64_t> sources(std::int64_t image, std::int64_t size, double scale, bool exact) {
  std::vector<std::int64_t> all;
  for (std::int64_t o = 0; o < size; ++o) {
    mpq_class at = mpq_class(static_cast<long>(o)) + (exact ? mpq_class(1, 2) : mpq_class(0));
    if (scale != 0) {
      at /= rational(scale);
    } else {
      at *= mpz_class(static_cast<long>(image));
      at /= mpz_class(static_cast<long>(size));
    }
    const mpz_class whole = at.get_num() / at.get_den();  // at >= 0
    all.push_back(whole >= static_cast<long>(image) ? image - 1 : whole.get_si());
  }
  return all;
}

struct neighbours {
  std::vector<std::int64_t> y, x;

  neighbours(const extent& image, const extent& size, const attributes& attrs)
      : y(sources(image[0], size[0], attribute_or(attrs, "scale_h", 0.0), attribute_or(attrs, "exact", false))),
        x(sources(image[1], size[1], attribute_or(attrs, "scale_w", 0.0), attribute_or(attrs, "exact", false))) {}
};

}  // namespace

array upsample_nearest2d(const array& x, const attributes& attrs) {
  if (x.shape.size() != 4) throw std::invalid_argument("reference: upsample_nearest2d of no images");
  const extent image{x.shape[2], x.shape[3]}, size = extent_of(attrs, "size", 2).value();
  const neighbours from(image, size, attrs);
  array out(x.type, {x.shape[0], x.shape[1], size[0], size[1]});
  std::size_t at = 0;
  for (std::int64_t plane = 0; plane < x.shape[0] * x.shape[1]; ++plane)
    for (const std::int64_t i : from.y)
      for (const std::int64_t j : from.x) out.set(at++, x.get(index((plane * image[0] + i) * image[1] + j)));
  return out;
}

array upsample_nearest2d_backward(const array& g, const attributes& attrs, outcomes* where) {
  if (g.shape.size() != 4) throw std::invalid_argument("reference: upsample_nearest2d_backward of no images");
  const extent size{g.shape[2], g.shape[3]}, image = extent_of(attrs, "size", 2).value();
  const neighbours from(image, size, attrs);
  array out(g.type, {g.shape[0], g.shape[1], image[0], image[1]});
  std::vector<std::vector<std::uint64_t>> terms(index(out.count()));
  std::size_t at = 0;
  for (std::int64_t plane = 0; plane < g.shape[0] * g.shape[1]; ++plane)
    for (const std::int64_t i : from.y)
      for (const std::int64_t j : from.x) terms[index((plane * image[0] + i) * image[1] + j)].push_back(g.get(at++));
  exact_sum s(g.type);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    s.clear();
    for (const std::uint64_t t : terms[i]) s.add(t);
    out.set(i, s.round());
    if (where != nullptr) where->push_back(s.where());
  }
  return out;
}

}  // namespace repdl::reference
