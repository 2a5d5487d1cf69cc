// Linear and cubic interpolation, as rational numbers.
#include <map>
#include <stdexcept>

#include "reference/numbers/real.hpp"
#include "reference/structured/structured.hpp"

namespace repdl::reference {
namespace {

mpz_class integer(std::int64_t v) { return mpz_class(static_cast<long>(v)); }

/// Of an output position the pixels that it is made of, and their weights, none of which is 0.
using taps = std::map<std::int64_t, mpq_class>;

/// Keys's cubic at distance x >= 0.
mpq_class cubic(const mpq_class& x, const mpq_class& a) {
  if (x < 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  return x < 2 ? mpq_class(a * (x * x * x - 5 * x * x + 8 * x - 4)) : mpq_class(0);
}

mpz_class floor_of(const mpq_class& v) {
  mpz_class q;
  mpz_fdiv_q(q.get_mpz_t(), v.get_num_mpz_t(), v.get_den_mpz_t());
  return q;
}

std::vector<taps> taps_of(bool is_cubic, std::int64_t image, std::int64_t size, double scale, bool align_corners) {
  std::vector<taps> all(index(size));
  const std::int64_t last = image - 1;
  for (std::int64_t i = 0; i < size; ++i) {
    mpq_class u;
    if (align_corners) {
      if (size > 1) u = mpq_class(integer(last * i), integer(size - 1));
      u.canonicalize();
    } else {
      mpq_class r = scale != 0 ? mpq_class(1 / rational(scale)) : mpq_class(integer(image), integer(size));
      r.canonicalize();
      u = r * mpq_class(integer(2 * i + 1), 2) - mpq_class(1, 2);
    }
    if (!is_cubic && u < 0) u = 0;
    const mpz_class whole = floor_of(u);
    const std::int64_t at = whole > integer(last) ? last : whole.get_si();
    mpq_class t = u - integer(at);
    if (t > 1) t = 1;
    const auto add = [&](std::int64_t pixel, const mpq_class& weight) {
      all[index(i)][pixel < 0 ? 0 : pixel > last ? last : pixel] += weight;
    };
    if (is_cubic) {
      const mpq_class a(-3, 4);
      for (int k = -1; k <= 2; ++k) add(at + k, cubic(abs(t - k), a));
    } else {
      add(at, 1 - t);
      add(at + 1, t);
    }
    std::erase_if(all[index(i)], [](const auto& tap) { return tap.second == 0; });
  }
  return all;
}

/// A sum of products of numbers and weights, by the rules for sums.
class weighted_sum {
 public:
  explicit weighted_sum(dtype t) : type_(t) {}

  void add(std::uint64_t bits, const mpq_class& weight) {
    const number n = widen(type_, bits);
    if (n.kind == number_kind::nan) {
      nan_ = true;
    } else if (n.kind == number_kind::infinite) {
      (n.negative != (weight < 0) ? minus_ : plus_) = true;
    } else {
      finite_ += rational(type_, bits) * weight;
    }
  }
  std::uint64_t round(outcomes* where) const {
    std::uint64_t bits = 0;
    outcome o;
    if (nan_ || plus_ || minus_) {
      bits = nan_ || (plus_ && minus_) ? nan_bits(type_) : infinity_bits(type_, minus_);
      o = outcome_of_pattern(type_, bits);
    } else {
      bits = round_exact(type_, finite_, &o);
    }
    if (where != nullptr) where->push_back(o);
    return bits;
  }

 private:
  dtype type_;
  mpq_class finite_;
  bool nan_ = false, plus_ = false, minus_ = false;
};

/// The last axes, one to three of them, as three.
std::vector<std::int64_t> three(const shape_list& shape) {
  std::vector<std::int64_t> s(shape.begin() + 2, shape.end());
  while (s.size() < 3) s.insert(s.begin(), 1);
  return s;
}

}  // namespace

array interpolation(std::string_view op, const array& in, const attributes& attrs, outcomes* where) {
  const std::size_t rank = in.shape.size();
  if (rank < 3 || rank > 5) throw std::invalid_argument("reference: interpolation of no images");
  const bool backward = op.ends_with("_backward");
  auto to = attribute_of<std::vector<std::int64_t>>(attrs, "size").value();
  if (to.size() == 1) to.assign(rank - 2, to[0]);
  if (to.size() != rank - 2) throw std::invalid_argument("reference: the size of an interpolation");
  shape_list shape{in.shape[0], in.shape[1]};
  shape.insert(shape.end(), to.begin(), to.end());
  array out(in.type, shape);

  const std::vector<std::int64_t> given = three(in.shape), made = three(shape);
  const char* const scales[] = {"scale_d", "scale_h", "scale_w"};
  // Of each position of the result along an axis: those of the operand, with their weights.
  std::vector<taps> along[3];
  for (std::size_t a = 0; a < 3; ++a) {
    const std::int64_t image = backward ? made[a] : given[a], size = backward ? given[a] : made[a];
    const std::vector<taps> of_size =
        a + rank < 5 ? std::vector<taps>{{{0, 1}}}  // there is no such axis
                     : taps_of(op.starts_with("upsample_cubic"), image, size, attribute_or(attrs, scales[a], 0.0),
                               attribute_or(attrs, "align_corners", false));
    if (!backward) {
      along[a] = of_size;
      continue;
    }
    along[a].resize(index(image));
    for (std::int64_t i = 0; i < size; ++i)
      for (const auto& [pixel, weight] : of_size[index(i)]) along[a][index(pixel)][i] = weight;
  }
  std::size_t at = 0;
  for (std::int64_t plane = 0; plane < in.shape[0] * in.shape[1]; ++plane)
    for (const taps& z : along[0])
      for (const taps& y : along[1])
        for (const taps& x : along[2]) {
          weighted_sum s(in.type);
          for (const auto& [k, wk] : z)
            for (const auto& [i, wi] : y)
              for (const auto& [j, wj] : x)
                s.add(in.get(index(((plane * given[0] + k) * given[1] + i) * given[2] + j)), wk * wi * wj);
          out.set(at++, s.round(where));
        }
  return out;
}

}  // namespace repdl::reference
