// prod, and the prefixes cumsum and cumprod: exact integers, rounded at every place.
#include "reference/elementwise/elementwise.hpp"
#include "reference/structured/structured.hpp"

namespace repdl::reference {
namespace {

/// Of a product, whose zero keeps its sign.
std::uint64_t round_product(dtype t, const extended& v, outcomes* where) {
  const std::uint64_t bits = v.round(t);
  if (where != nullptr) {
    const mpz_class one = 1;
    where->push_back(v.is_nan() || v.is_infinite() || v.is_zero()
                         ? outcome_of_pattern(t, bits)
                         : locate(t, v.significand(), one.get_mpz_t(), v.exponent()));
  }
  return bits;
}

reduce_layout along(const array& x, std::int64_t axis) { return layout_of(x.shape, shape_list{axis}, false); }

/// Outcomes in the order of the elements, which the lines of a layout need not have.
void add_in_order(const std::vector<outcome>& all, outcomes* where) {
  if (where != nullptr) where->insert(where->end(), all.begin(), all.end());
}

}  // namespace

array prod(const array& x, const std::optional<shape_list>& axes, bool keepdim, outcomes* where) {
  const reduce_layout l = layout_of(x.shape, axes, keepdim);
  array out(x.type, l.kept_shape);
  std::size_t o = 0;
  for (const std::int64_t base : l.kept) {
    extended product(1);
    for (const std::int64_t d : l.reduced) product = product * extended(x.type, x.get(index(base + d)));
    out.set(o++, round_product(x.type, product, where));
  }
  return out;
}

array cumprod(const array& x, std::int64_t axis, outcomes* where) {
  const reduce_layout l = along(x, axis);
  array out(x.type, x.shape);
  std::vector<outcome> all(index(x.count()));
  for (const std::int64_t base : l.kept) {
    extended product(1);
    for (const std::int64_t d : l.reduced) {
      const std::size_t at = index(base + d);
      product = product * extended(x.type, x.get(at));
      outcomes here;
      out.set(at, round_product(x.type, product, where == nullptr ? nullptr : &here));
      if (where != nullptr) all[at] = here[0];
    }
  }
  add_in_order(all, where);
  return out;
}

array cumsum(const array& x, std::int64_t axis, outcomes* where) {
  const reduce_layout l = along(x, axis);
  array out(x.type, x.shape);
  std::vector<outcome> all(index(x.count()));
  exact_sum s(x.type);
  for (const std::int64_t base : l.kept) {
    s.clear();
    for (const std::int64_t d : l.reduced) {
      const std::size_t at = index(base + d);
      s.add(x.get(at));
      out.set(at, s.round());
      if (where != nullptr) all[at] = s.where();
    }
  }
  add_in_order(all, where);
  return out;
}

}  // namespace repdl::reference
