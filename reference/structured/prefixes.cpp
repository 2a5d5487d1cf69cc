// prod, and the prefixes cumsum and cumprod: exact integers, rounded at every place.
#include "reference/elementwise/elementwise.hpp"
#include "reference/numbers/integer.hpp"
#include "reference/structured/structured.hpp"

namespace repdl::reference {
namespace {

/// What is carried along a line: add() takes an element, round() gives the result so far and, if asked, says where it lies.
class carried_sum {
 public:
  explicit carried_sum(dtype t) : sum_(t) {}
  void add(std::uint64_t x) { sum_.add(x); }
  std::uint64_t round(outcome* where) {
    if (where != nullptr) *where = sum_.where();
    return sum_.round();
  }

 private:
  exact_sum sum_;
};

/// Its zero keeps its sign.
class carried_product {
 public:
  explicit carried_product(dtype t) : type_(t) {}
  void add(std::uint64_t x) { product_ = product_ * extended(type_, x); }
  std::uint64_t round(outcome* where) const {
    const std::uint64_t bits = product_.round(type_);
    if (where != nullptr) {
      const mpz_class one = 1;
      *where = product_.is_nan() || product_.is_infinite() || product_.is_zero()
                   ? outcome_of_pattern(type_, bits)
                   : locate(type_, product_.significand(), one.get_mpz_t(), product_.exponent());
    }
    return bits;
  }

 private:
  dtype type_;
  extended product_{1};
};

/// The exact sum or product of integers, modulo 2^64.
template <bool Product>
class carried_integer {
 public:
  explicit carried_integer(dtype t) : type_(t), total_(Product ? 1 : 0) {}
  void add(std::uint64_t x) {
    const mpz_class v = integer_of(type_, x);
    if (Product) {
      total_ *= v;
    } else {
      total_ += v;
    }
  }
  std::uint64_t round(outcome* where) const {
    if (where != nullptr) *where = outcome_of_integer(total_);
    return modulo_64(total_);
  }

 private:
  dtype type_;
  mpz_class total_;
};

template <class Carried>
array last_of_lines(const array& x, dtype type, const reduce_layout& l, outcomes* where) {
  array out(type, l.kept_shape);
  std::size_t o = 0;
  for (const std::int64_t base : l.kept) {
    Carried c(x.type);
    for (const std::int64_t d : l.reduced) c.add(x.get(index(base + d)));
    outcome at;
    out.set(o++, c.round(where != nullptr ? &at : nullptr));
    if (where != nullptr) where->push_back(at);
  }
  return out;
}

/// Outcomes are in the order of the elements, which the lines of a layout need not have.
template <class Carried>
array prefixes(const array& x, dtype type, std::int64_t axis, outcomes* where) {
  const reduce_layout l = layout_of(x.shape, shape_list{axis}, false);
  array out(type, x.shape);
  std::vector<outcome> all(where != nullptr ? index(x.count()) : 0);
  for (const std::int64_t base : l.kept) {
    Carried c(x.type);
    for (const std::int64_t d : l.reduced) {
      const std::size_t at = index(base + d);
      c.add(x.get(at));
      out.set(at, c.round(where != nullptr ? &all[at] : nullptr));
    }
  }
  if (where != nullptr) where->insert(where->end(), all.begin(), all.end());
  return out;
}

}  // namespace

array prod(const array& x, const std::optional<shape_list>& axes, bool keepdim, outcomes* where) {
  const reduce_layout l = layout_of(x.shape, axes, keepdim);
  return is_floating(x.type) ? last_of_lines<carried_product>(x, x.type, l, where)
                             : last_of_lines<carried_integer<true>>(x, dtype::i64, l, where);
}

array cumprod(const array& x, std::int64_t axis, outcomes* where) {
  return is_floating(x.type) ? prefixes<carried_product>(x, x.type, axis, where)
                             : prefixes<carried_integer<true>>(x, dtype::i64, axis, where);
}

array cumsum(const array& x, std::int64_t axis, outcomes* where) {
  return is_floating(x.type) ? prefixes<carried_sum>(x, x.type, axis, where)
                             : prefixes<carried_integer<false>>(x, dtype::i64, axis, where);
}

}  // namespace repdl::reference
