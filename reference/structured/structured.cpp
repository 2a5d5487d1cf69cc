#include "reference/structured/structured.hpp"

#include <stdexcept>

#include "reference/elementwise/elementwise.hpp"
#include "reference/losses/loss_element.hpp"
#include "reference/numbers/integer.hpp"

namespace repdl::reference {
namespace {

/// The position of the extreme element: NaN wins (the first one), -0 < +0, then the first index.
std::size_t extreme(const array& x, const std::vector<std::int64_t>& offset, std::int64_t base, bool largest) {
  if (offset.empty()) throw std::invalid_argument("reference: extreme of nothing");
  const dtype t = x.type;
  const auto at = [&](std::size_t i) { return x.get(index(base + offset[i])); };
  const auto nan = [t](std::uint64_t v) { return widen(t, v).kind == number_kind::nan; };
  std::size_t best = 0;
  for (std::size_t i = 0; i < offset.size(); ++i) {
    if (nan(at(i))) return i;
    const std::int64_t a = order_key(t, at(i)), b = order_key(t, at(best));
    if (largest ? a > b : a < b) best = i;
  }
  return best;
}

/// NaN, and a boolean that is true, as they are computed.
std::uint64_t canonical(dtype t, std::uint64_t x) {
  if (t == dtype::boolean) return convert(t, t, x);
  return widen(t, x).kind == number_kind::nan ? nan_bits(t) : x;
}

/// The sum of integers modulo 2^64, or their mean in binary64.
std::uint64_t of_integers(const array& x, const std::vector<std::int64_t>& offset, std::int64_t base, bool mean,
                          outcome* where) {
  mpz_class sum;
  for (const std::int64_t d : offset) sum += integer_of(x.type, x.get(index(base + d)));
  *where = {};
  if (mean && offset.empty()) {
    where->nan = true;
    return nan_bits(dtype::f64);
  }
  const mpz_class n(mean ? offset.size() : 1);
  if (mean) {
    *where = locate(dtype::f64, sum.get_mpz_t(), n.get_mpz_t(), 0);
    return round_quotient(dtype::f64, sum.get_mpz_t(), n.get_mpz_t(), 0);
  }
  *where = outcome_of_integer(sum);
  return modulo_64(sum);
}

/// Of a reduction's numbers.
dtype type_of(reduction op, dtype x) {
  if (op == reduction::argmax || op == reduction::argmin) return dtype::i64;
  if (op == reduction::max || op == reduction::min || is_floating(x)) return x;
  return op == reduction::sum ? dtype::i64 : dtype::f64;
}

std::uint32_t fma_of(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  const std::uint32_t in[] = {a, b, c};
  return evaluate("fma", in);
}

std::uint32_t add_of(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t in[] = {a, b};
  return evaluate("add", in);
}

}  // namespace

array reduce(reduction op, const array& x, const std::optional<shape_list>& axes, bool keepdim, outcomes* where,
             std::optional<dtype> to) {
  const reduce_layout l = layout_of(x.shape, axes, keepdim);
  const auto n = static_cast<std::int64_t>(l.reduced.size());
  const bool position = op == reduction::argmax || op == reduction::argmin;
  array out(to.value_or(type_of(op, x.type)), l.kept_shape);
  const bool sums = op == reduction::sum || op == reduction::mean;
  const bool integers = !is_floating(x.type);
  std::size_t o = 0;
  const dtype of_terms = sums && !integers ? x.type : dtype::f32;
  exact_sum s(of_terms, sums && !integers ? out.type : of_terms);
  for (const std::int64_t base : l.kept) {
    std::uint64_t r = 0;
    if (sums && integers) {
      outcome at;
      r = of_integers(x, l.reduced, base, op == reduction::mean, &at);
      if (where != nullptr) where->push_back(at);
    } else if (sums) {
      s.clear();
      for (const std::int64_t d : l.reduced) s.add(x.get(index(base + d)));
      r = op == reduction::sum ? s.round() : s.round_mean(n);
      if (where != nullptr) where->push_back(s.where(op == reduction::sum ? 1 : n));
    } else {
      const std::size_t i = extreme(x, l.reduced, base, op == reduction::max || op == reduction::argmax);
      r = position ? i : canonical(x.type, x.get(index(base + l.reduced[i])));
    }
    out.set(o++, r);
  }
  return out;
}

array prelu_weight_backward(const array& g, const array& x, const std::optional<shape_list>& axes, bool keepdim,
                            outcomes* where) {
  const reduce_layout l = layout_of(x.shape, axes, keepdim);
  array out(x.type, l.kept_shape);
  std::size_t o = 0;
  for (const std::int64_t base : l.kept) {
    exact_sum s(x.type);
    for (const std::int64_t d : l.reduced) {
      const std::uint64_t a = g.get(index(base + d)), b = x.get(index(base + d));
      const number n = widen(x.type, b);
      const bool positive = !n.negative && (n.kind == number_kind::finite || n.kind == number_kind::infinite);
      if (!positive) s.add_product(a, b);
    }
    out.set(o++, s.round());
    if (where != nullptr) where->push_back(s.where());
  }
  return out;
}

namespace {

/// round(the exact sum of squares, where it lies) for every result.
template <class Round>
array of_squares(const array& x, const std::optional<shape_list>& axes, bool keepdim, outcomes* where,
                 const Round& round) {
  const reduce_layout l = layout_of(x.shape, axes, keepdim);
  array out(x.type, l.kept_shape);
  std::size_t o = 0;
  for (const std::int64_t base : l.kept) {
    exact_sum s(x.type);
    for (const std::int64_t d : l.reduced) s.add_product(x.get(index(base + d)), x.get(index(base + d)));
    outcome at;
    out.set(o++, round(s, &at));
    if (where != nullptr) where->push_back(at);
  }
  return out;
}

}  // namespace

array sum_squares(const array& x, const std::optional<shape_list>& axes, bool keepdim, outcomes* where) {
  return of_squares(x, axes, keepdim, where, [](exact_sum& s, outcome* at) {
    *at = s.where();
    return s.round();
  });
}

array vector_norm(const array& x, double p, const std::optional<shape_list>& axes, bool keepdim, outcomes* where) {
  array size = x;
  for (std::size_t i = 0; i < index(x.count()); ++i) size.set(i, x.get(i) & ~format_of(x.type).sign_bit());
  if (p == 1) return reduce(reduction::sum, size, axes, keepdim, where);
  if (p != 2) return reduce(p > 0 ? reduction::max : reduction::min, size, axes, keepdim);
  return of_squares(x, axes, keepdim, where, [](exact_sum& s, outcome* at) { return s.round_root(at); });
}

array dot(const array& x, const array& y, outcomes* where, std::optional<dtype> to) {
  if (x.count() != y.count()) throw std::invalid_argument("reference::dot: lengths differ");
  exact_sum s(x.type, to.value_or(x.type));
  for (std::size_t k = 0; k < index(x.count()); ++k) s.add_product(x.get(k), y.get(k));
  array out(to.value_or(x.type), {});
  out.set(0, s.round());
  if (where != nullptr) where->push_back(s.where());
  return out;
}

namespace {

element value_of(exact_sum& s, dtype type) {
  std::uint64_t bits = 0;
  if (s.special(&bits)) return element::of(type, bits);
  mpq_class q{mpz_class(s.value())};
  q >>= -s.unit_of_sum();
  return element::of(q);
}

}  // namespace

array matmul(const array& a, const array& b, const array* bias, const matmul_case& options, outcomes* where) {
  const std::size_t ra = a.shape.size(), rb = b.shape.size();
  if (ra < 2 || rb < 2) throw std::invalid_argument("reference::matmul: rank below 2");
  const std::int64_t a_rows = a.shape[ra - 2], a_cols = a.shape[ra - 1];
  const std::int64_t b_rows = b.shape[rb - 2], b_cols = b.shape[rb - 1];
  const std::int64_t m = options.transpose_a ? a_cols : a_rows;
  const std::int64_t k = options.transpose_a ? a_rows : a_cols;
  const std::int64_t n = options.transpose_b ? b_rows : b_cols;
  if (k != (options.transpose_b ? b_cols : b_rows))
    throw std::invalid_argument("reference::matmul: inner sizes differ");
  const shape_list a_batch(a.shape.begin(), a.shape.end() - 2), b_batch(b.shape.begin(), b.shape.end() - 2);
  const shape_list batch = broadcast_shape(a_batch, b_batch);
  shape_list out_shape = batch;
  out_shape.push_back(m);
  out_shape.push_back(n);

  array out(options.to.value_or(a.type), out_shape);
  exact_sum s(a.type);
  const bool scales = options.alpha != 1 || options.beta != 1 || out.type != a.type;
  const element alpha = element::of(rational(options.alpha)), beta = element::of(rational(options.beta));
  std::int64_t o = 0;
  for (std::int64_t t = 0; t < count_of(batch); ++t) {
    const std::int64_t a0 = broadcast_index(a_batch, batch, t) * a_rows * a_cols;
    const std::int64_t b0 = broadcast_index(b_batch, batch, t) * b_rows * b_cols;
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j, ++o) {
        const auto left = [&](std::int64_t l) {
          return a.get(index(a0 + (options.transpose_a ? l * a_cols + i : i * a_cols + l)));
        };
        const auto right = [&](std::int64_t l) {
          return b.get(index(b0 + (options.transpose_b ? j * b_cols + l : l * b_cols + j)));
        };
        const auto added = [&] { return bias->get(index(broadcast_index(bias->shape, out_shape, o))); };
        std::uint64_t r = 0;
        if (options.fma_chain) {
          std::uint32_t chain = 0;
          const auto of = [](std::uint64_t bits) { return static_cast<std::uint32_t>(bits); };
          for (std::int64_t l = 0; l < k; ++l) chain = fma_of(of(left(l)), of(right(l)), chain);
          r = bias != nullptr ? add_of(chain, of(added())) : chain;
        } else {
          s.clear();
          for (std::int64_t l = 0; l < k; ++l) s.add_product(left(l), right(l));
          if (scales) {
            const element c = bias != nullptr ? times(beta, element::of(bias->type, added())) : element::zero();
            put(out, index(o), plus(times(alpha, value_of(s, a.type)), c), where);
            continue;
          }
          if (bias != nullptr) s.add(added());
          r = s.round();
          if (where != nullptr) where->push_back(s.where());
        }
        out.set(index(o), r);
      }
    }
  }
  return out;
}

}  // namespace repdl::reference
