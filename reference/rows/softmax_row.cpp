#include "reference/rows/softmax_row.hpp"

namespace repdl::reference {
namespace {

constexpr mpfr_prec_t quick = 128;

bool tiny(const interval& v, long unit) {
  mpfr_t limit;
  mpfr_init2(limit, 2);
  mpfr_set_ui_2exp(limit, 1, unit == fixed_unit ? -500 : -2400, MPFR_RNDN);
  const bool r = mpfr_less_p(v.hi(), limit) != 0;
  mpfr_clear(limit);
  return r;
}

}  // namespace

softmax_row::softmax_row(dtype type, const std::vector<std::uint64_t>& x)
    : unit_(format_of(type).ulp_min()), finite_(x.size()), x_(x.size()) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const number v = widen(type, x[i]);
    any_nan = any_nan || v.kind == number_kind::nan;
    any_plus = any_plus || (v.kind == number_kind::infinite && !v.negative);
    finite_[i] = v.kind == number_kind::finite || v.kind == number_kind::zero;
    if (!finite_[i]) continue;
    if (v.kind == number_kind::finite) {
      x_[i] = mpq_class(rational(type, x[i]) * power_of_two(-unit_)).get_num();
    }
    if (finite_count++ == 0 || x_[i] > greatest_) {
      greatest_ = x_[i];
      k = 0;
    }
    if (x_[i] == greatest_) ++k;
  }
}

const softmax_row::weights& softmax_row::at(mpfr_prec_t p) const {
  if (const auto found = cache_.find(p); found != cache_.end()) return found->second;
  weights w{{}, interval(p)};
  for (std::size_t i = 0; i < x_.size(); ++i) {
    if (!finite_[i]) {
      w.e.emplace_back(p);  // 0
    } else if (is_greatest(i)) {
      w.e.emplace_back(p, mpq_class(1));
    } else {
      w.e.push_back(exp(interval(p, gap(i), unit_)));
      w.rho = w.rho + w.e.back();
    }
  }
  return cache_.emplace(p, std::move(w)).first->second;
}

bool softmax_row::negligible() const { return tiny(rho(quick), unit_); }
bool softmax_row::negligible(std::size_t i) const { return tiny(weight(quick, i), unit_); }

interval softmax_row::sum_without(mpfr_prec_t p, std::size_t i) const {
  interval s(p, mpq_class(is_greatest(i) ? k - 1 : k));
  for (std::size_t j = 0; j < x_.size(); ++j)
    if (j != i && finite_[j] && !is_greatest(j)) s = s + weight(p, j);
  return s;
}

// Greatest elements of a row with a negligible rho: |g| / (n (k + rho)) is below |g| / (n k). Against a midpoint b, a
// multiple of 2^-150 below 2^129, or of 2^-1075 below 2^1025: |g| - b n k is a multiple of that and b n rho is less, so the comparison with b
// is that of |g| less half of it over n k.
result scaled_softmax(const softmax_row& row, std::size_t i, const mpq_class& g, std::int64_t n) {
  if (!row.is_finite(i)) return zero_result(g < 0);
  const mpq_class scale = g / mpq_class(mpz_class(static_cast<long>(n)));
  if (row.all_equal()) return exact_result(scale / row.k);
  if (row.is_greatest(i) && row.negligible()) {
    const mpq_class nk = mpq_class(mpz_class(static_cast<long>(n))) * row.k;
    const mpq_class toward_zero =
        g > 0 ? mpq_class(g - power_of_two(row.unit() - 2)) : mpq_class(g + power_of_two(row.unit() - 2));
    return beside_result(toward_zero / nk, g / nk);
  }
  return decided_result([=, &row](mpfr_prec_t p) { return interval(p, scale) * row.weight(p, i) / row.sum(p); });
}

}  // namespace repdl::reference
