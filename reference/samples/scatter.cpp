// Operands of sums to places. Indices come in several ways: evenly, most of them on a few places or all on one. The terms of each
// place are drawn together with what is there before, so that the result is of the class.
#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

#include "reference/attributes.hpp"
#include "reference/layout.hpp"
#include "reference/samples/detail.hpp"

namespace repdl::reference {
namespace {

using enum sample_class;
using detail::odd_of;

array drawn_indices(const shape_list& shape, std::int64_t bound, word_stream& w) {
  array a(dtype::i64, shape);
  const std::uint32_t way = w.below(6);
  const auto n = static_cast<std::uint32_t>(bound);
  const std::uint32_t hot = n == 0 ? 0 : w.below(n);
  for (std::int64_t i = 0; n != 0 && i < a.count(); ++i) {
    std::uint64_t v = w.below(n);
    if (way == 1) v = hot;
    if (way == 2 && w.below(4) != 0) v = hot;
    if (way == 3) v = index(i) % n;
    if (way == 4) v %= 3;
    if (way == 5) v = n - 1 - index(i) % n;
    a.set(index(i), v);
  }
  return a;
}

class place {
 public:
  /// alpha: a factor of the terms' sum, a power of 2 or not; divisor: of it.
  place(sample_class c, dtype t, double alpha, std::int64_t divisor, bool has_before, word_stream& w)
      : c_(c), type_(t), f_(format_of(t)), has_before_(has_before), w_(w) {
    int e = 0;
    aims_ = std::abs(std::frexp(alpha, &e)) == 0.5 && std::has_single_bit(static_cast<std::uint64_t>(divisor));
    shift_ = std::countr_zero(static_cast<std::uint64_t>(divisor)) - (e - 1);
    turned_ = alpha < 0;
    keep_ = w.below(16) == 0;
  }

  /// n terms; *before is what is in the place.
  std::vector<std::uint64_t> terms(std::size_t n, std::uint64_t* before) {
    *before = tame(sample(c_, type_, w_));
    std::vector<std::uint64_t> all;
    const std::size_t needed = has_before_ ? 1 : 2;  // besides what is there
    const bool tie = c_ == ties || c_ == near_ties;
    if ((tie || c_ == overflow_border || c_ == cancelling) && aims_ && n >= needed + (c_ == near_ties ? 1 : 0)) {
      aim(all, before);
    }
    while (all.size() + 1 < n && (tie || c_ == cancelling || c_ == overflow_border)) {
      const std::uint64_t x =
          tie && f_.emax > 15 && w_.flip() ? large() : sample(c_ == overflow_border ? c_ : normal_range, type_, w_);
      all.insert(all.begin() + static_cast<std::ptrdiff_t>(w_.below(static_cast<std::uint32_t>(all.size() + 1))), x);
      all.push_back(x ^ f_.sign_bit());
    }
    while (all.size() < n) {
      const bool rest = tie || c_ == cancelling || c_ == overflow_border;
      all.push_back(rest ? zero_bits(type_, w_.flip())
                         : tame(sample(c_ == single_nonfinite ? normal_range : c_, type_, w_)));
    }
    if (c_ == single_nonfinite) {
      if (n > 0) all[w_.below(static_cast<std::uint32_t>(n))] = detail::special(type_, w_);
      *before = w_.flip() ? sample(normal_range, type_, w_) : *before;
    }
    return all;
  }
  /// All sums of a place with an infinity or NaN are one: only some keep theirs.
  std::uint64_t tame(std::uint64_t x) const {
    const bool finite = (x & f_.infinity()) != f_.infinity();
    return finite || keep_ || c_ == single_nonfinite ? x : x ^ (std::uint64_t{1} << (f_.precision - 1));
  }

 private:
  std::uint64_t large() {
    const int e = w_.between(20, 60);
    const std::uint64_t m = odd_of(f_.precision, w_);
    return exact_pattern(type_, w_.flip(), m, e);
  }
  /// (-1)^negative m 2^e as a term, as it has to be for that to be what it gives; 0 where the format has no such number.
  std::uint64_t term(bool negative, std::uint64_t m, int e) const {
    const int at = e + shift_;
    const int length = std::bit_width(m);
    const bool fits = at >= f_.ulp_min() && at + length - 1 <= f_.emax;
    return fits ? exact_pattern(type_, negative != turned_, m, at) : zero_bits(type_, negative);
  }
  void set_first(std::vector<std::uint64_t>& all, std::uint64_t* before, bool negative, std::uint64_t m, int e) const {
    if (has_before_) {
      *before = exact_pattern(type_, negative, m, e);
    } else {
      all.push_back(term(negative, m, e));
    }
  }
  void aim(std::vector<std::uint64_t>& all, std::uint64_t* before) {
    const int p = f_.precision;
    const bool small = f_.emax == 15;
    const bool negative = w_.flip(), other = w_.flip();
    if (c_ == overflow_border) {  // the largest number and half of its ulp, or next to that
      set_first(all, before, negative, (std::uint64_t{1} << p) - 1, f_.emax - p + 1);
      const std::uint32_t choice = w_.below(3);
      all.push_back(choice == 0   ? term(negative, 1, f_.emax - p)
                    : choice == 1 ? term(negative, (1U << (p - 1)) - 1, f_.emax - 2 * p + 1)
                                  : term(negative, (1U << (p - 1)) + 1, f_.emax - 2 * p + 1));
      return;
    }
    if (c_ == cancelling) {
      const std::uint64_t m = odd_of(p, w_);
      const int e = small ? w_.between(-14, -2) : w_.between(-20, 20);
      set_first(all, before, negative, m, e);
      all.push_back(term(!negative, w_.below(8) == 0 ? m - 1 : m, e));
      return;
    }
    const int e = small ? w_.between(-8, -2) : w_.between(-20, 20);
    set_first(all, before, negative, std::uint64_t{1} << (p - 1), e + 1);
    all.push_back(term(negative, odd_of(p - 1, w_), e));  // p + 1 bits with the first one
    if (c_ == near_ties) all.push_back(term(other, 1, std::max(f_.ulp_min() + 1, e - w_.between(30, 80)) - shift_));
  }

  sample_class c_;
  dtype type_;
  const format& f_;
  bool has_before_, aims_, turned_, keep_;
  int shift_;
  word_stream& w_;
};

}  // namespace

std::vector<array> fill_scatter(const std::string& op, sample_class c, dtype t, const std::vector<shape_list>& shapes,
                                const attributes& attrs, std::uint64_t seed, std::uint64_t stream) {
  word_stream w(seed, stream);
  const bool embedding = op == "embedding_backward";
  const shape_list shape = scatter_shape(op, shapes, attrs);
  const array indices = drawn_indices(shapes[1], shape[embedding ? 0 : scatter_axis(shapes, attrs)], w);
  const place_lists lists = scatter_lists(op, shapes, indices, attrs);
  array before(t, shape), source(t, shapes[embedding ? 0 : 2]);
  const double alpha = attribute_or(attrs, "alpha", 1.0);
  const bool mean = attribute_or(attrs, "scale_grad_by_freq", false);
  for (std::int64_t i = 0; i < source.count(); ++i) source.set(index(i), sample(c, t, w));
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const std::size_t n = lists[i].size();
    place here(c, t, alpha, mean && n != 0 ? static_cast<std::int64_t>(n) : 1, !embedding, w);
    if (n == 0) {
      before.set(i, w.below(4) == 0 ? sample(single_nonfinite, t, w) : sample(c, t, w));
      continue;
    }
    std::uint64_t first = 0;
    const std::vector<std::uint64_t> terms = here.terms(n, &first);
    before.set(i, first);
    for (std::size_t k = 0; k < n; ++k) source.set(index(lists[i][k]), terms[k]);
  }
  if (embedding) return {source, indices};
  return {before, indices, source};
}

}  // namespace repdl::reference
