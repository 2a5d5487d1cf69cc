// What attention and its gradients have in common (contract, section 4): the operands of a call, and exact scores.
#pragma once

#include <gmpxx.h>
#include <mpfr.h>

#include <bit>
#include <optional>
#include <stdexcept>
#include <vector>

#include "reference/attributes.hpp"
#include "reference/elementwise/elementwise.hpp"
#include "reference/layout.hpp"
#include "reference/numbers/real.hpp"
#include "reference/random/philox.hpp"

namespace repdl::reference {

/// The value of a finite number.
inline mpq_class finite_value(const extended& v) {
  return mpq_class(mpz_class(v.significand())) * power_of_two(v.exponent());
}

/// The operands, their sizes and the options of a call.
struct attention_call {
  const array &q, &k, &v;
  const array *mask = nullptr, *slopes = nullptr;
  std::int64_t blocks = 1;                     ///< of the leading axes before the heads
  std::int64_t heads = 1, groups = 1;          ///< H, G
  std::int64_t queries, keys, inner, columns;  ///< Lq, Lk, D, E
  shape_list score_shape;                      ///< (..., H, Lq, Lk)
  extended scale;
  std::int64_t offset = 0, left = -1, right = -1;  ///< off, the window
  bool causal = false;
  double dropout = 0;  ///< p
  std::uint64_t seed = 0, stream = 0;

  /// q, k and v begin at one operand, mask and slopes, absent or left out, at another.
  attention_call(const std::vector<array>& in, const attributes& attrs, std::size_t first = 0, std::size_t optional = 3)
      : q(in.at(first)), k(in.at(first + 1)), v(in.at(first + 2)) {
    const std::size_t rank = q.shape.size();
    if (rank < 2 || k.shape.size() != rank || v.shape.size() != rank)
      throw std::invalid_argument("reference::attention: rank");
    if (k.type != q.type || v.type != q.type) throw std::invalid_argument("reference::attention: formats differ");
    if (in.size() > optional && !in[optional].absent()) mask = &in[optional];
    if (in.size() > optional + 1 && !in[optional + 1].absent()) slopes = &in[optional + 1];
    queries = q.shape[rank - 2];
    inner = q.shape[rank - 1];
    keys = k.shape[rank - 2];
    columns = v.shape[rank - 1];
    if (k.shape[rank - 1] != inner || v.shape[rank - 2] != keys)
      throw std::invalid_argument("reference::attention: sizes");
    if (rank > 2) {
      heads = q.shape[rank - 3];
      groups = k.shape[rank - 3];
      for (std::size_t i = 0; i + 3 < rank; ++i) {
        if (k.shape[i] != q.shape[i] || v.shape[i] != q.shape[i])
          throw std::invalid_argument("reference::attention: axes");
        blocks *= q.shape[i];
      }
      if (v.shape[rank - 3] != groups || (groups == 0 ? heads != 0 : heads % groups != 0))
        throw std::invalid_argument("reference::attention: heads");
    }
    score_shape = q.shape;
    score_shape.back() = keys;
    if (mask != nullptr && broadcast_shape(mask->shape, score_shape) != score_shape)
      throw std::invalid_argument("reference::attention: shape of the mask");
    if (mask != nullptr && mask->type != dtype::boolean && mask->type != q.type)
      throw std::invalid_argument("reference::attention: format of the mask");
    if (slopes != nullptr && (slopes->count() != heads || slopes->type != f32))
      throw std::invalid_argument("reference::attention: slopes");
    const auto given = attribute_of<double>(attrs, "scale");
    scale = extended(dtype::f64, std::bit_cast<std::uint64_t>(given.value_or(default_scale())));
    causal = attribute_or(attrs, "causal", false);
    if (attribute_or(attrs, "bottom_right", false)) offset = keys - queries;
    left = attribute_or<std::int64_t>(attrs, "left", -1);
    right = attribute_or<std::int64_t>(attrs, "right", -1);
    dropout = attribute_or(attrs, "dropout", 0.0);
    seed = static_cast<std::uint64_t>(attribute_or<std::int64_t>(attrs, "seed", 0));
    stream = static_cast<std::uint64_t>(attribute_or<std::int64_t>(attrs, "stream", 0));
  }

  dtype lse_type() const { return q.type == dtype::f64 ? dtype::f64 : f32; }
  /// 1 - p.
  mpq_class kept_share() const { return 1 - mpq_class(dropout); }
  /// Whether the weight of key j is not dropped. row: of query i in all heads.
  bool is_kept(std::int64_t row, std::int64_t j) const {
    const auto n = static_cast<std::uint64_t>(row * keys + j);
    const mpq_class w(static_cast<unsigned long>(philox(seed, stream, n / 4).w[n % 4]));
    return w >= mpq_class(dropout) * power_of_two(32);
  }

  /// RN(1 / sqrt(D)) in binary64; 1 for D = 0.
  double default_scale() const {
    if (inner == 0) return 1;
    mpfr_t root;
    mpfr_init2(root, 53);
    mpfr_set_sj(root, inner, MPFR_RNDN);  // exact: D < 2^53
    mpfr_rec_sqrt(root, root, MPFR_RNDN);
    const double r = mpfr_get_d(root, MPFR_RNDN);
    mpfr_clear(root);
    return r;
  }

  /// j - i - off.
  std::int64_t distance(std::int64_t i, std::int64_t j) const { return j - i - offset; }
  /// Whether key j is within reach of query i, whatever the mask.
  bool in_reach(std::int64_t i, std::int64_t j) const {
    const std::int64_t d = distance(i, j);
    return !(causal && d > 0) && !(left >= 0 && d < -left) && !(right >= 0 && d > right);
  }
};

/// `length` numbers from an index on.
inline std::vector<extended> line_of(const array& a, std::int64_t first, std::int64_t length) {
  std::vector<extended> line;
  for (std::int64_t i = 0; i < length; ++i) line.emplace_back(a.type, a.get(index(first + i)));
  return line;
}

/// The score of a present key, in the reals with infinities; none for an absent one. row: of query i in all heads.
inline std::optional<extended> score_of(const attention_call& c, std::int64_t row, std::int64_t j,
                                        const std::vector<extended>& q, const std::vector<extended>& k) {
  const std::int64_t i = row % c.queries, head = row / c.queries % c.heads;
  if (!c.in_reach(i, j)) return std::nullopt;
  std::optional<extended> added;
  if (c.mask != nullptr) {
    const std::uint64_t bits = c.mask->get(index(broadcast_index(c.mask->shape, c.score_shape, row * c.keys + j)));
    if (c.mask->type == dtype::boolean) {
      if (bits == 0) return std::nullopt;
    } else {
      added = extended(c.mask->type, bits);
      if (added->is_infinite() && added->negative()) return std::nullopt;
    }
  }
  extended a;
  for (std::size_t d = 0; d < q.size(); ++d) a = a + q[d] * k[d];
  a = c.scale * a;
  if (c.slopes != nullptr) {
    const extended distance(dtype::i64, static_cast<std::uint64_t>(c.distance(i, j)));
    a = a + extended(f32, c.slopes->get(index(head))) * distance;
  }
  return added ? a + *added : a;
}

}  // namespace repdl::reference
