// Inputs of sgd, adamw and dropout. The hyper-parameters are attributes: with powers of two as lr and momentum (sgd),
// or lr, beta1 = beta2 = 0 or 1/2, eps = 0, weight_decay = 0, step = 1 (adamw), the updates can be exact, and the
// classes aim at them.

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "librepdl/ops/structured.hpp"
#include "reference/attributes.hpp"
#include "reference/layout.hpp"
#include "reference/samples/detail.hpp"

namespace repdl::reference::detail {
namespace {

using enum sample_class;

/// One element: the parameter, the gradient and up to two states. Word: as wide as the formats, or 32 bits.
template <class Word>
struct element {
  Word v[4];
};

template <class Word>
Word beside(sample_class c, Word x, word_stream& w) {
  const bool up = w.flip();
  return c != near_ties ? x : up ? x + 1 : x - 1;
}

/// Parameters and gradients. What is out of a format's range is rounded.
template <class Word>
struct operands : patterns_of<Word> {
  patterns_of<Word> states;

  explicit operands(dtype t) : patterns_of<Word>(t), states(ops::state_format(t)) {}
  /// An exponent of the last of `length` bits.
  int exponent(int least, int most, int length, word_stream& w) const {
    return w.between(std::max(least, this->f.ulp_min() + 1), std::min(most, this->f.emax - length));
  }
};

/// p' = p - lr d is p and half an ulp, d = g (states 0) or the new velocity; or v' = mu v + g is.
template <class Word>
element<Word> sgd_element(const operands<Word>& o, sample_class c, int lr, std::optional<int> mu, word_stream& w) {
  const bool s = w.flip(), t = w.flip(), in_velocity = w.flip() && mu.has_value();
  const int e = o.exponent(-20, 20, o.p, w);
  const Word odd = o.pattern(s, odd_of(o.p, w), e);
  if (c == cancelling) {  // lr g = p exactly or nearly
    const Word near = w.below(4) == 0 ? 1 : 0;
    return {{odd, (odd + near) - (static_cast<Word>(lr) << (o.p - 1)), 0, 0}};
  }
  // Of 16 bits mu v + g is exact; with g = 0 it is beside half an ulp of p as v is.
  if (in_velocity && o.p != o.states.p) {
    return {{odd, 0, beside<Word>(c, o.states.pattern(t, 1, e - 1 - lr - *mu), w), 0}};
  }
  if (in_velocity) {
    const Word half = beside<Word>(c, o.states.pattern(t, 1, e - 1 - *mu), w);
    return {{o.ordinary(normal_range, w), odd, half, 0}};
  }
  return {{odd, beside<Word>(c, o.pattern(t, 1, e - 1 - lr), w), 0, 0}};
}

/// The new second moment is g^2 (g of half the bits) or beside, the first g: p - lr g / (|g| + eps).
template <class Word>
element<Word> adamw_element(const operands<Word>& o, sample_class c, int lr, word_stream& w) {
  const bool s = w.flip(), t = w.flip();
  const int length = std::min(o.states.p / 2, o.p);
  const std::uint64_t m = odd_of(length, w);
  const int e = o.exponent(-10, 10, length, w);
  element<Word> r{{o.pattern(s, odd_of(o.p, w), lr + 1), o.pattern(t, m, e), 0, 0}};
  if (c == near_ties) {  // v = g^2 * a few ulp: the root is not rational
    const int fraction = o.states.p - 1;
    const Word square = o.states.pattern(false, m * m, 2 * e);
    const std::uint64_t ulps = 1 + w.below(3);
    r.v[3] = o.states.pattern(false, ulps, static_cast<int>(square >> fraction) - o.states.f.emax - fraction + 1);
  }
  if (c == cancelling) r.v[0] = o.pattern(t, 1, lr) + (w.below(4) == 0 ? 1 : 0);
  return r;
}

template <class Word>
element<Word> plain_element(const operands<Word>& o, sample_class c, word_stream& w) {
  const bool keep = w.below(16) == 0;
  element<Word> r{};
  for (std::uint32_t k = 0; k < 4; ++k) r.v[k] = k < 2 ? o.drawn(c, keep, w) : o.states.drawn(c, keep, w);
  if (c == single_nonfinite) {
    for (std::uint32_t k = 0; k < 4; ++k)
      r.v[k] = k < 2 ? o.ordinary(normal_range, w) : o.states.ordinary(normal_range, w);
    const Word other = o.states.special(w);
    const std::uint32_t k = w.below(4);
    r.v[k] = k < 2 && o.type != dtype::f32 ? o.special(w) : other;
    if (w.below(3) == 0) {
      const std::uint32_t zero = w.below(4);
      r.v[zero] &= zero < 2 ? o.sign() : o.states.sign();
    }
  }
  if (c == wide_exponents && w.flip()) r.v[0] = o.ordinary(normal_range, w);
  if (c == overflow_border && w.flip()) {  // p near the largest number, the step about its ulp
    const bool s = w.flip(), t = w.flip();
    const int ulp = o.f.emax - o.p + 1;
    r.v[0] = o.largest() | (s ? o.sign() : 0);
    r.v[1] = o.pattern(t, 1, w.between(ulp - 14, std::min(ulp + 11, o.f.emax)));
    r.v[2] = 0;
    r.v[3] = o.states.pattern(false, 1, w.between(90, 115) * (o.states.f.emax / 127));
  }
  if (c == cancelling) {
    const Word x = o.ordinary(normal_range, w);
    const number n = widen(o.type, x);
    for (std::uint32_t k = 0; k < 4; ++k) {
      const bool negative = n.negative != w.flip();
      r.v[k] = (k < 2 ? o : o.states).pattern(negative, n.significand, n.exponent);
    }
  }
  return r;
}

/// x / (1 - p) beside a midpoint, for 1 - p = y 2^s with an odd y of 53 bits: x 2^54 = q y + d, q odd of 54 bits. The x with a small d
/// are d / 2^54 modulo y.
std::vector<std::uint64_t> near_wide_quotients(double p) {
  std::vector<std::uint64_t> found;
  const number n = widen(dtype::f64, std::bit_cast<std::uint64_t>(1 - p));  // exact for the p that are aimed at
  if (n.kind != number_kind::finite || (n.significand & 1) == 0 || n.significand >> 52 != 1) return found;
  const std::uint64_t y = n.significand;
  std::uint64_t inverse = 1;  // of 2^54, by halves modulo y
  for (int i = 0; i < 54; ++i) inverse = (inverse + ((inverse & 1) != 0 ? y : 0)) / 2;
  __extension__ typedef __int128 wide;
  for (int d = -60; d <= 60; ++d) {
    const auto rest =
        static_cast<std::int64_t>(wide{static_cast<std::int64_t>(inverse)} * d % static_cast<std::int64_t>(y));
    const std::uint64_t x = static_cast<std::uint64_t>(rest) + (rest < 0 ? y : 0);
    const auto q =
        static_cast<std::uint64_t>(((wide{static_cast<std::int64_t>(x)} << 54) - d) / static_cast<std::int64_t>(y));
    if (x >> 52 == 1 && q >> 53 == 1 && (q & 1) != 0) found.push_back(x);
  }
  return found;
}
/// The same for binary32, y of 24 bits, q of 25.
std::vector<std::uint64_t> near_quotients(double p) {
  std::vector<std::uint64_t> found;
  const number n = widen(dtype::f64, std::bit_cast<std::uint64_t>(1 - p));  // exact for the p that are aimed at
  if (n.kind != number_kind::finite) return found;
  const std::uint64_t y = n.significand >> std::countr_zero(n.significand);
  if (y >> 23 != 1) return found;
  for (std::uint64_t x = 1 << 23; x < 1 << 24; ++x) {
    const std::uint64_t scaled = x << 25, q = (scaled + y / 2) / y;
    const auto d = static_cast<std::int64_t>(scaled - q * y);
    if (q >> 24 == 1 && (q & 1) != 0 && d >= -7 && d <= 7) found.push_back(x);
  }
  return found;
}

}  // namespace

namespace {

template <class Word>
std::vector<array> inputs_of_step(const std::string& op, sample_class c, dtype type,
                                  const std::vector<shape_list>& shapes, const attributes& attrs, word_stream& w) {
  const operands<Word> o(type);
  const double momentum = attribute_or(attrs, "momentum", 0.0);
  const std::size_t group = operands_of_step(op, attrs);
  if (shapes.size() % group != 0) throw std::invalid_argument("reference: operands of " + op);
  const std::optional<int> lr = exponent_of_power(attribute_or(attrs, "lr", 0.001));
  const bool decays = attribute_or(attrs, "weight_decay", op == "adamw" ? 0.01 : 0.0) != 0;
  const bool aimed = (c == ties || c == near_ties || c == cancelling) && lr && !decays;
  const std::optional<int> mu = exponent_of_power(momentum);
  const double beta = attribute_or(attrs, "beta1", 0.9);
  const bool exact_moments = attribute_or(attrs, "beta2", 0.999) == beta && (beta == 0 || beta == 0.5) &&
                             attribute_or<std::int64_t>(attrs, "step", 1) == 1;
  std::vector<array> v;
  for (std::size_t t = 0; t < shapes.size(); t += group) {
    for (std::size_t k = 0; k < group; ++k) v.emplace_back(k < 2 ? type : o.states.type, shapes[t + k]);
    const bool no_velocity = group == 3 && v.back().absent();
    for (std::size_t i = 0; i < static_cast<std::size_t>(v[t].count()); ++i) {
      element<Word> x = !aimed                                          ? plain_element(o, c, w)
                        : op == "adamw" && exact_moments                ? adamw_element(o, c, *lr, w)
                        : op == "sgd" && (group == 2 || mu.has_value()) ? sgd_element(o, c, *lr, mu, w)
                                                                        : plain_element(o, c, w);
      // A second moment is hardly ever negative.
      if (op == "adamw" && c != uniform_patterns && c != single_nonfinite && w.below(64) != 0)
        x.v[3] &= ~o.states.sign();
      for (std::size_t k = 0; k < group; ++k)
        if (!(no_velocity && k == 2)) v[t + k].set(i, x.v[k]);
    }
  }
  return v;
}

}  // namespace

std::vector<array> step_inputs(const std::string& op, sample_class c, dtype type, const std::vector<shape_list>& shapes,
                               const attributes& attrs, word_stream& w) {
  if (type == dtype::f64) return inputs_of_step<std::uint64_t>(op, c, type, shapes, attrs, w);
  return inputs_of_step<std::uint32_t>(op, c, type, shapes, attrs, w);
}

std::vector<array> random_inputs(sample_class c, const std::vector<shape_list>& shapes, const attributes& attrs,
                                 word_stream& w, dtype type) {
  if (shapes.empty()) return {};  // random numbers alone
  const patterns_of<std::uint64_t> of(type);
  const double p = attribute_or(attrs, "p", 0.5);
  array x(type, shapes[0]);
  std::vector<std::uint64_t> near;
  if (c == near_ties) near = type == dtype::f64 ? near_wide_quotients(p) : near_quotients(p);
  for (std::size_t i = 0; i < static_cast<std::size_t>(x.count()); ++i) {
    std::uint64_t v = of.ordinary(c, w);
    if (c == single_nonfinite && w.flip()) v = of.special(w);
    if (!near.empty()) {
      const bool negative = w.flip();
      const int e = w.between(-60, 60);
      v = of.pattern(negative, near[w.below(static_cast<std::uint32_t>(near.size()))], e);
    }
    x.set(i, v);
  }
  return {x};
}

}  // namespace repdl::reference::detail

namespace repdl::reference {

std::size_t operands_of_step(const std::string& op, const attributes& attrs) {
  const bool momentum = attribute_or(attrs, "momentum", 0.0) != 0;
  std::size_t n = 0;
  ops::for_each_structured([&]<class Op>() {
    if (Op::name != op) return;
    for (const ops::operand& o : Op::in) n += !o.optional || momentum ? 1 : 0;
  });
  return n;
}

std::vector<array> fill_inputs(const std::string& op, sample_class c, const std::vector<shape_list>& shapes,
                               const attributes& attrs, std::uint64_t seed, std::uint64_t stream, dtype type) {
  word_stream w(seed, stream);
  switch (structured_named(op).kind) {
    case ops::family::convolution:
    case ops::family::pooling:
      return detail::layer_inputs(op, c, shapes, attrs, w, type);
    case ops::family::softmax:
      return detail::row_inputs(op, c, shapes, attrs, w, type);
    case ops::family::norm:
      if (op.starts_with("batch_norm_running") || op.starts_with("batch_norm_inference"))
        return detail::given_norm_inputs(op, c, shapes, attrs, w, type);
      if (is_statistic(op)) return detail::statistics_inputs(op, c, shapes, attrs, w, type);
      if (op.ends_with("backward")) return detail::norm_gradient_inputs(op, c, shapes, attrs, w, type);
      return detail::norm_inputs(op, c, shapes, attrs, w, type);
    case ops::family::optimizer:
      if (op == "total_norm" || op == "clip_grad_norm") return detail::list_inputs(op, c, type, shapes, attrs, w);
      return detail::step_inputs(op, c, type, shapes, attrs, w);
    case ops::family::random:
      return detail::random_inputs(c, shapes, attrs, w, type);
    case ops::family::convert:
    case ops::family::reduce:
    case ops::family::matmul:
    case ops::family::loss:
    case ops::family::scatter:
    case ops::family::nll:
    case ops::family::sequence:
    case ops::family::upsample:
    case ops::family::draw:
    case ops::family::scan:
    case ops::family::exponent:
    case ops::family::attention:
      break;
  }
  throw std::invalid_argument("reference: no sample inputs for " + op);
}

}  // namespace repdl::reference
