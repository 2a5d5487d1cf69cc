// Sums to places given by indices: each list of terms in GMP's integers, then one formula of rationals, rounded once.
#include <stdexcept>

#include "reference/attributes.hpp"
#include "reference/losses/loss_element.hpp"
#include "reference/structured/structured.hpp"

namespace repdl::reference {
namespace {

/// The exact sum of numbers.
class list_sum {
 public:
  void add(const number& n) {
    nan_ = nan_ || n.kind == number_kind::nan;
    if (n.kind == number_kind::infinite) (n.negative ? minus_ : plus_) = true;
    if (n.kind != number_kind::finite) return;
    mpz_class term(static_cast<unsigned long>(n.significand));
    term <<= static_cast<unsigned long>(n.exponent + unit);
    sum_ += n.negative ? mpz_class(-term) : term;
  }
  element value() const {
    if (nan_ || (plus_ && minus_)) return element::nan();
    if (plus_ || minus_) return element::infinity(minus_);
    mpq_class q(sum_);
    q >>= unit;
    return element::of(q);
  }

 private:
  static constexpr int unit = 1074;  // in units of 2^-1074
  mpz_class sum_;
  bool nan_ = false, plus_ = false, minus_ = false;
};

}  // namespace

array scatter(std::string_view op, const std::vector<array>& in, const attributes& attrs, outcomes* where) {
  const bool embedding = op == "embedding_backward";
  if (in.size() != (embedding ? 2 : 3)) throw std::invalid_argument("reference: number of inputs");
  std::vector<shape_list> shapes;
  for (const array& a : in) shapes.push_back(a.shape);
  const array& source = in[embedding ? 0 : 2];
  const place_lists lists = scatter_lists(op, shapes, in[1], attrs);
  const element alpha = element::of(rational(attribute_or(attrs, "alpha", 1.0)));
  const bool mean = attribute_or(attrs, "scale_grad_by_freq", false);
  array out(source.type, scatter_shape(op, shapes, attrs));
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const std::uint64_t before = embedding ? zero_bits(out.type, false) : in[0].get(i);
    if (lists[i].empty()) {
      out.set(i, before);
      if (where != nullptr) where->push_back(outcome_of_pattern(out.type, before));
      continue;
    }
    list_sum sum;
    for (const std::int64_t at : lists[i]) sum.add(widen(source.type, source.get(index(at))));
    const auto n = static_cast<unsigned long>(lists[i].size());
    put(out, i,
        mean ? scaled(sum.value(), mpq_class(1, n)) : plus(element::of(out.type, before), times(alpha, sum.value())),
        where);
  }
  return out;
}

}  // namespace repdl::reference
