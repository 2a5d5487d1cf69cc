// layer_norm, rms_norm, group_norm and batch_norm (contract, section 4).
//
// A row's m and v are rational, and so is V = v + eps. Every result is RN(b ± sqrt(q)) with b and q rational: b the bias and
// q = ((x - m) w)^2 / V, or b = 0 and q = 1 / V. Numbers of binary32 and the middles between two of them are multiples of
// 2^-150, of binary64 2^-1075, and b is one, too. So the integer part of sqrt(q) in smaller units, and whether anything is left beside it, decide
// the rounding: both come from an integer square root. No precision is chosen, nothing is approximated.
#include <stdexcept>

#include "reference/attributes.hpp"
#include "reference/rows/norm_results.hpp"

namespace repdl::reference {

result with_root(const mpq_class& b, bool negative, const mpq_class& q) {
  return [=](dtype t) -> rounded {
    const long unit = t == dtype::f64
                          ? 1100
                          : 300;  // in halves of 2^-unit, of which an odd number stands for all between its neighbours
    mpz_class root, rest;
    mpz_mul_2exp(root.get_mpz_t(), q.get_num_mpz_t(), static_cast<mp_bitcnt_t>(2 * unit));
    mpz_fdiv_qr(root.get_mpz_t(), rest.get_mpz_t(), root.get_mpz_t(), q.get_den_mpz_t());
    bool exact = rest == 0;
    mpz_sqrtrem(root.get_mpz_t(), rest.get_mpz_t(), root.get_mpz_t());
    exact = exact && rest == 0;
    mpz_class halves = 2 * root + (exact ? 0 : 1);
    if (negative) halves = -halves;
    const mpq_class all = b * power_of_two(unit + 1) + halves;
    if (all.get_den() != 1) throw std::logic_error("reference::norm: a bias between two units");
    const mpz_class one = 1;
    return {round_integer(t, all.get_num_mpz_t(), -(unit + 1)),
            locate(t, all.get_num_mpz_t(), one.get_mpz_t(), -(unit + 1))};
  };
}

namespace {

/// Of a format of at most 32 bits the same numbers in binary32.
array in_calculated_format(const array& a) { return a.type == dtype::f64 ? a : widened(a); }

/// A weight or bias, or the number that stands for an absent one.
struct factor {
  number n;
  mpq_class value;  ///< of a finite one
  factor(dtype t, std::uint64_t bits) : n(widen(t, bits)) {
    if (n.kind == number_kind::finite) value = rational(t, bits);
  }
  bool is(number_kind k) const { return n.kind == k; }
};

struct norm_row {
  dtype type;            ///< of the elements
  bool centred;          ///< all but rms_norm
  bool finite = true;    ///< every element
  mpq_class m, inverse;  ///< the mean or 0; 1 / V, 0 where V = 0
  rounded mean, rstd;

  norm_row(dtype t, const std::vector<std::uint64_t>& x, bool is_centred, const mpq_class& eps)
      : type(t), centred(is_centred) {
    exact_sum sum(t), squares(t);
    for (const std::uint64_t v : x) {
      sum.add(v);
      squares.add_product(v, v);
      const number_kind k = widen(t, v).kind;
      finite = finite && k != number_kind::nan && k != number_kind::infinite;
    }
    const auto n = static_cast<std::int64_t>(x.size());
    mean = {sum.round_mean(n), sum.where(n)};
    rstd = nan_result()(t);
    if (!finite || n == 0) return;
    const mpq_class unit = power_of_two(sum.unit_of_sum()) / mpq_class(static_cast<long>(n));
    if (centred) m = mpz_class(sum.value()) * unit;
    const mpq_class v = mpz_class(squares.value()) * unit - m * m + eps;
    if (v != 0) inverse = 1 / v;
    rstd = (v == 0 ? infinite_result(false) : with_root(0, false, inverse))(t);
  }

  result element(std::uint64_t x, const factor& weight, const factor* bias) const {
    using kind = number_kind;
    if (!finite || inverse == 0 || weight.is(kind::nan) || (bias != nullptr && bias->is(kind::nan)))
      return nan_result();
    const mpq_class d = rational(type, x) - m;
    const bool d_negative = d == 0 ? !centred && widen(type, x).negative : d < 0;
    const bool negative = d_negative != weight.n.negative;
    if (weight.is(kind::infinite)) {
      if (d == 0 || (bias != nullptr && bias->is(kind::infinite) && bias->n.negative != negative)) return nan_result();
      return infinite_result(negative);
    }
    if (bias != nullptr && bias->is(kind::infinite)) return infinite_result(bias->n.negative);
    if (d == 0 || weight.is(kind::zero)) return bias == nullptr ? zero_result(negative) : exact_result(bias->value);
    const mpq_class product = d * weight.value;
    return with_root(bias == nullptr ? mpq_class(0) : bias->value, negative, product * product * inverse);
  }
};

}  // namespace

std::vector<array> norm(std::string_view op, const std::vector<array>& in, const attributes& attrs, outcomes* where) {
  if (in.empty() || in.size() > (op == "rms_norm" ? 2 : 3)) throw std::invalid_argument("reference::norm: inputs");
  const array& x = in[0];
  const bool centred = op != "rms_norm";
  const auto eps = attribute_of<double>(attrs, "eps");
  if (!eps && !centred) throw std::invalid_argument("reference::rms_norm: no eps");
  const norm_layout l = norm_layout_of(op, x.shape, attrs);
  std::vector<factor> factors[2];  // weights, biases
  for (std::size_t k = 1; k < in.size(); ++k) {
    if (in[k].absent()) continue;
    if (in[k].shape != l.weight) throw std::invalid_argument("reference::norm: shape of a weight");
    const array all = in_calculated_format(in[k]);
    for (std::size_t i = 0; i < index(all.count()); ++i) factors[k - 1].emplace_back(all.type, all.get(i));
  }
  const factor one(f32, 0x3f800000);
  const bool has_weight = in.size() > 1 && !in[1].absent(), has_bias = in.size() > 2 && !in[2].absent();

  const array v = in_calculated_format(x);
  array out(x.type, x.shape), mean(v.type, l.rows.kept_shape), rstd(v.type, l.rows.kept_shape);
  outcomes at_out(index(x.count())), at_mean, at_rstd;
  for (std::size_t r = 0; r < l.rows.kept.size(); ++r) {
    std::vector<std::uint64_t> elements;
    for (const std::int64_t i : l.rows.reduced) elements.push_back(v.get(index(l.rows.kept[r] + i)));
    const norm_row row(v.type, elements, centred, rational(eps.value_or(1e-5)));
    mean.set(r, row.mean.bits);
    rstd.set(r, row.rstd.bits);
    at_mean.push_back(row.mean.where);
    at_rstd.push_back(row.rstd.where);
    for (std::size_t i = 0; i < l.rows.reduced.size(); ++i) {
      const std::int64_t at = l.rows.kept[r] + l.rows.reduced[i];
      const std::size_t k = l.weight_of(i, at);
      const rounded y =
          row.element(v.get(index(at)), has_weight ? factors[0][k] : one, has_bias ? &factors[1][k] : nullptr)(x.type);
      out.set(index(at), y.bits);
      at_out[index(at)] = y.where;
    }
  }
  if (where != nullptr) {
    where->insert(where->end(), at_out.begin(), at_out.end());
    if (centred) where->insert(where->end(), at_mean.begin(), at_mean.end());
    where->insert(where->end(), at_rstd.begin(), at_rstd.end());
  }
  if (!centred) return {out, rstd};
  return {out, mean, rstd};
}

}  // namespace repdl::reference
