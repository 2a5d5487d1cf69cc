// Inputs of batch_norm with statistics over batches.
//
// Running: (1 - q) M + q m is a midpoint where q = 2^-k and m is an odd number of units of which half an ulp of the result has 2^-k. So
// x is c + a, c - a and, in odd numbers, c itself, in units 2^e, c odd: m = c, and v n / (n - 1) is a^2 or n a^2 / (n - 1), a
// multiple of n - 1 there. Of c = 0 or 1 in tiny units these are near-ties: (1 - q) M is itself a midpoint then. With q = 1 rows are batch_norm's,
// whose means are midpoints; cancelling has M = -m / (2^k - 1).
//
// Inference: V = W + eps is the square of s 2^t, s = 1 or 3: W = s^2 4^t without eps, or 3 eps where eps is a power of 4 (s = 1). Then
// d = s (an odd number), so that d w / sqrt(V) is an odd number, of half an ulp of the bias, or of 25 bits; gradients likewise.
// Near-ties are these with an eps far below W, or with a tiny M; a sum of terms with a tiny one.
#include <algorithm>
#include <bit>

#include "librepdl/ops/formats.hpp"
#include "reference/attributes.hpp"
#include "reference/layout.hpp"
#include "reference/samples/detail.hpp"

namespace repdl::reference::detail {
namespace {

using enum sample_class;
using std::uint32_t;
using std::uint64_t;

/// Of formats of 32 bits or fewer, or of binary64.
template <class Word>
class given_maker {
  using size = std::size_t;

 public:
  given_maker(const std::string& op, sample_class c, const std::vector<shape_list>& shapes, const attributes& attrs,
              word_stream& w, dtype type)
      : op_(op),
        t_(type),
        statistic_(ops::state_format(type)),
        c_(c),
        w_(w),
        lead_(op.ends_with("weight_backward") ? 1 : 0),
        l_(norm_layout_of(op, shapes.at(lead_), attrs)),
        n_(l_.rows.reduced.size()) {
    const size first = op == "batch_norm_inference_backward" || op == "batch_norm_running" || lead_ == 0 ? 1 : 2;
    for (size k = 0; k < shapes.size(); ++k) {
      const bool is_statistic = k >= first && k < first + (op == "batch_norm_inference_backward" ? 1 : 2);
      all_.push_back(shapes[k] == absent_shape ? array::none()
                                               : array(is_statistic ? statistic_.type : type, shapes[k]));
    }
    momentum_ = exponent_of_power(attribute_or(attrs, "momentum", 0.1));
    eps_ = attribute_or(attrs, "eps", 1e-5);
    if (op == "batch_norm_running") {
      make_running(shapes, attrs);
    } else {
      make_given();
    }
    if (c == single_nonfinite) add_special();
  }
  std::vector<array> result() { return std::move(all_); }

 private:
  bool aims() const { return c_ == ties || c_ == near_ties || c_ == cancelling; }
  bool aims_given() const { return aims() || c_ == overflow_border || c_ == narrow_lattice; }
  bool has(size k) const { return k < all_.size() && !all_[k].absent(); }
  size place(size row, size i) const { return index(l_.rows.kept[row] + l_.rows.reduced[i]); }
  Word number() { return t_.ordinary(normal_range, w_); }
  Word any_number(bool keep) { return t_.drawn(c_, keep, w_); }
  static Word rounded(const patterns_of<Word>& t, std::int64_t m, int e) {
    return t.rounded(m < 0, static_cast<uint64_t>(m < 0 ? -m : m), e);
  }
  Word number_of(std::int64_t m, int e) const { return rounded(t_, m, e); }
  Word statistic_of(std::int64_t m, int e) const { return rounded(statistic_, m, e); }
  /// Draws of as many bits as a pattern has.
  uint64_t number_below(uint64_t n) { return sizeof(Word) == 8 ? w_.next64() % n : w_.below(static_cast<uint32_t>(n)); }
  std::int64_t between_large(int least) {  // and 2^(p - 4)
    if (sizeof(Word) == 4) return w_.between(least, 1 << (t_.p - 4));
    return least +
           static_cast<std::int64_t>(w_.next64() % ((uint64_t{1} << (t_.p - 4)) - static_cast<uint64_t>(least)));
  }
  /// Exponents of units, within what binary16 has.
  int between(int least, int most, int least_of_f16, int most_of_f16) {
    const bool half = t_.type == dtype::f16;
    return w_.between(half ? least_of_f16 : least, half ? most_of_f16 : most);
  }
  Word any(bool keep = false) { return statistic_.drawn(c_, keep, w_); }

  // ---- running statistics

  void make_running(const std::vector<shape_list>& shapes, const attributes& attrs) {
    // x, weight and bias are batch_norm's.
    std::vector<shape_list> normed{shapes[0]};
    normed.insert(normed.end(), shapes.begin() + 3, shapes.end());
    std::vector<array> in = norm_inputs("batch_norm", c_, normed, attrs, w_, t_.type);
    for (size k = 0; k < in.size(); ++k) all_[k == 0 ? 0 : k + 2] = std::move(in[k]);
    for (size r = 0; r < l_.rows.kept.size(); ++r) {
      const bool negative = w_.below(8) == 0;
      Word mean = any(), var = any();
      var = negative ? var : var & ~statistic_.sign();
      if (c_ == multiplicities || c_ == exact_gaps)
        mean = n_ == 0 ? mean : static_cast<Word>(convert(t_.type, statistic_.type, all_[0].get(place(r, 0))));
      if (aims() && momentum_ && *momentum_ > -12 && *momentum_ < 0 && n_ > 1 && w_.below(8) != 0)
        aim_running(r, -*momentum_, mean, var);
      all_[1].set(r, statistic_.finite(mean, c_ == uniform_patterns));
      all_[2].set(r, statistic_.finite(var, c_ == uniform_patterns));
    }
  }

  void aim_running(size r, int k, Word& mean, Word& var) {
    const bool near = c_ == near_ties && k > 1;
    const auto n = static_cast<std::int64_t>(n_);
    const bool odd = n % 2 != 0;
    const int e = near ? between(statistic_.f.ulp_min(), -60, -24, -14) : between(-40, 20, -14, 4),
              most = t_.p > 11 ? 500 : std::min(500, 1 << (t_.p - 3));
    std::int64_t c = near ? w_.between(0, 1) : 1 + 2 * w_.between(-most, most), a = 1 + w_.between(0, 30);
    if (c_ == cancelling) c = ((std::int64_t{1} << k) - 1) * w_.between(-7, 7);
    if (!odd) a = (n - 1) * (n < 400 ? a : 1);
    const std::int64_t v = odd ? a * a : n * a * (a / (n - 1));
    if (c + a >= std::int64_t{1} << 24 || v >= std::int64_t{1} << 23) return;
    for (size i = 0; i < n_; ++i) {
      const bool middle = odd && i == 0, above = i % 2 != 0;
      all_[0].set(place(r, i), number_of(middle ? c : above ? c + a : c - a, e));
    }
    if (c_ == cancelling) {
      mean = statistic_of(-c / ((std::int64_t{1} << k) - 1), e);
      return;
    }
    const bool negative = w_.flip();
    if (near) {
      mean = midpoint_former(k, negative);
      var = midpoint_former(k, false);
    } else {
      mean = aimed_former(c, e, k, negative);
      if (2 * e > -100) var = aimed_former(v, 2 * e, k, false);
    }
  }
  /// M, so that M + (m - M) 2^-k is a midpoint, m = c 2^e.
  Word aimed_former(std::int64_t c, int e, int k, bool negative) {
    const int zeros = std::countr_zero(static_cast<uint64_t>(c));
    const int least = e + zeros - k;  // what half an ulp is
    const uint64_t step = (uint64_t{1} << (statistic_.p - 2)) >> k;
    // Of 2^(least + k + 1): M (1 - 2^-k) is from 2^(least + 24) to 2^(least + 25), of binary64 29 bits more.
    const uint64_t from = ((step << 1) * (uint64_t{1} << k)) / ((uint64_t{1} << k) - 1) + 1024;
    return statistic_.pattern(negative, from + number_below(std::max<uint64_t>(step / 2, 1)), least + k + 1);
  }
  /// M, (1 - 2^-k) M being a midpoint: (2^k - 1) M' of 25 bits, of binary64 54, M' odd.
  Word midpoint_former(int k, bool negative) {
    const uint64_t factor = (uint64_t{1} << k) - 1, least = (uint64_t{1} << statistic_.p) / factor + 1;
    const uint64_t m = (least + number_below(least / 2 + 1)) | 1;
    return statistic_.pattern(negative, m, w_.between(-20, 20));
  }

  // ---- given statistics

  void make_given() {
    const bool forward = op_ == "batch_norm_inference", to_weight = lead_ == 1;
    const size mean = forward     ? 1
                      : to_weight ? 2
                                  : all_.size(),
               var = forward     ? 2
                     : to_weight ? 3
                                 : 1,
               weight = forward     ? 3
                        : to_weight ? all_.size()
                                    : 2,
               bias = forward ? 4 : all_.size();
    const std::optional<int> power = exponent_of_power(eps_);
    const bool quarter = power && *power % 2 == 0 && *power > -120 && *power < 120;
    for (size r = 0; r < l_.rows.kept.size(); ++r) {
      const bool keep = w_.below(16) == 0, below_0 = w_.below(12) == 0, zero = w_.below(16) == 0,
                 aim = aims_given() && w_.below(8) != 0;
      Word w = any_number(keep), b = any_number(keep), m = any(keep), v = any(keep);
      v = below_0 ? v : v & ~statistic_.sign();
      if (zero) v = v & statistic_.sign();
      // The root is s 2^t.
      int s = w_.flip() ? 3 : 1, t = between(-20, 20, -6, 2);
      if (aim && eps_ != 0 && quarter) {
        s = 1;
        t = *power / 2 + 1;
        v = statistic_.pattern(false, 3, *power);
      } else if (aim && (eps_ == 0 || (power && *power < 2 * t - 60))) {
        v = statistic_.pattern(false, static_cast<uint64_t>(s * s), 2 * t);
      } else if (aim) {
        s = 1;
        t = 0;
      }
      int e = c_ == overflow_border ? between(0, 20, 0, 2) : between(-20, 20, -6, 2);  // of the quotient
      // A gradient without weight is a midpoint where it is subnormal.
      if (aim && !forward && !to_weight && !has(weight) && t > 0 && c_ != overflow_border) e = t_.f.ulp_min() - 1;
      const bool tiny = c_ == near_ties && w_.flip();
      const std::int64_t own = tiny || !aim || !has(mean) ? 0 : w_.between(-30, 30);
      if (aim && tiny) {
        const int exponent = w_.between(statistic_.f.ulp_min(), statistic_.f.ulp_min() + 29);
        m = statistic_.pattern(w_.flip(), 1, exponent);
      } else if (aim) {
        m = statistic_of(own, e + t);
      }
      const int odd_bits = w_.between(1, 5);
      if (aim) aim_weights(has(weight), has(bias), e, odd_bits, w, b);
      // An element: x - M, or g, is s times z 2^(e + t).
      const bool long_w = aim && has(weight) && !has(bias) && c_ != narrow_lattice, few = c_ == cancelling;
      for (size i = 0; i < n_ && !to_weight; ++i) {
        Word x = any_number(keep);
        const auto same = static_cast<Word>(convert(statistic_.type, t_.type, m));
        if ((c_ == multiplicities || c_ == exact_gaps) && w_.flip()) x = same;
        if (aim && c_ == overflow_border) x = number_of((w_.flip() ? -1 : 1) * (own + s * 64), e + t);
        if (aim && c_ != overflow_border) x = aimed(own, s, e + t, long_w, few, odd_bits);
        if (few && forward && !has(bias) && w_.flip()) x = same;
        all_[0].set(place(r, i), x);
      }
      if (to_weight) make_terms(r, aim, keep, s, own, e + t, tiny);
      if (has(mean)) all_[mean].set(r, m);
      all_[var].set(r, v);
      if (has(weight)) all_[weight].set(r, w);
      if (has(bias)) all_[bias].set(r, b);
    }
  }
  /// w of so many bits; b so that an odd multiple of w's last bit is half an ulp of it, or that a product cancels.
  void aim_weights(bool weight, bool bias, int e, int bits, Word& w, Word& b) {
    const bool negative = w_.flip(), other = w_.flip();
    if (c_ == overflow_border) {
      w = t_.rounded(negative, (uint64_t{1} << t_.p) - 1 - w_.below(3), t_.f.emax - t_.p - 5 - e);
      b = t_.pattern(other, 1, w_.between(std::max(t_.f.emax - 37, 0), t_.f.emax - t_.p + 1));
    } else if (weight && !bias && c_ != narrow_lattice) {
      w = t_.pattern(negative, odd_of(t_.p + 1 - 6 + w_.between(0, 1), w_), 0);
    } else {
      const uint64_t odd = odd_of(weight ? bits : 1, w_);
      if (weight) w = t_.pattern(negative, odd, 0);
      const uint64_t few = w_.below(1U << std::min(6, t_.p - 3));
      b = c_ == cancelling ? t_.rounded(other, odd * (1 + 2 * w_.below(2)), e)
          : c_ == narrow_lattice
              ? t_.rounded(other, few, e + w_.between(-1, 2))
              : t_.rounded(other, (uint64_t{3} << (t_.p - 2)) + number_below(uint64_t{1} << (t_.p - 3)), e + 1);
    }
  }
  /// own + s z in units 2^e, z odd: of 6 bits beside a long weight, else of `bits`; a few values where products cancel.
  Word aimed(std::int64_t own, int s, int e, bool long_weight, bool few, int bits) {
    const bool negative = w_.flip();
    // Without weight and bias the quotient itself: x - M of 25 bits.
    if (op_ == "batch_norm_inference" && !has(3) && !has(4) && (c_ == ties || c_ == near_ties) && s == 1 &&
        own % 2 != 0)
      return number_of((std::int64_t{1} << t_.p) + 2 * between_large(t_.p < 24 ? 1 : 64), e);
    const std::int64_t z = static_cast<std::int64_t>(few ? 1 + 2 * w_.below(2) : odd_of(long_weight ? 6 : bits, w_));
    return number_of(own + (negative ? -s * z : s * z), e);
  }

  /// Terms g (x - M) whose sum is s times an odd number of 25 bits, or 0, or of any numbers.
  void make_terms(size r, bool aim, bool keep, int s, std::int64_t own, int e, bool tiny) {
    for (size i = 0; i < n_; ++i) {
      Word g = any_number(keep), x = any_number(keep);
      if (c_ == exact_gaps || c_ == multiplicities) g = w_.flip() ? g : number();
      all_[0].set(place(r, i), g);
      all_[1].set(place(r, i), x);
    }
    if (!aim || n_ == 0) return;
    if (c_ == cancelling) {  // pairs
      for (size i = 1; i < n_; i += 2) {
        all_[0].set(place(r, i), all_[0].get(place(r, i - 1)) ^ t_.sign());
        all_[1].set(place(r, i), all_[1].get(place(r, i - 1)));
      }
      if (n_ % 2 != 0) all_[0].set(place(r, n_ - 1), w_.flip() ? 0 : t_.tiny(false, statistic_.f.ulp_min()));
      return;
    }
    const bool negative = w_.flip();
    const Word sign = negative ? t_.sign() : 0;
    if (n_ == 1) {
      const int half = c_ == narrow_lattice ? 3 : (t_.p + 1) / 2;
      all_[0].set(place(r, 0), t_.pattern(negative, odd_of(half + 1, w_), 0));
      all_[1].set(place(r, 0), number_of(own + s * static_cast<std::int64_t>(odd_of(half, w_)), e));
      return;
    }
    std::int64_t sum = 0;  // of the small ones
    for (size i = n_; i-- > 1;) {
      const bool last = i == 1;
      const std::int64_t f = last ? 1 : w_.between(-7, 7),
                         z = last ? 2 * w_.between(-7, 7) + 1 - sum % 2 : w_.between(-15, 15);
      sum += z * f;
      all_[0].set(place(r, i), f == 0 ? 0 : number_of(f, 0));
      all_[1].set(place(r, i), number_of(own + s * z, e));
    }
    if (tiny && n_ > 2) all_[0].set(place(r, 2), t_.tiny(w_.flip(), statistic_.f.ulp_min()));
    const std::int64_t large =
        c_ == narrow_lattice ? 1 : (std::int64_t{1} << (t_.p - 3)) + between_large(t_.p < 24 ? 1 : 1 << 12);
    all_[0].set(place(r, 0), t_.pattern(false, 8, 0) ^ sign);
    all_[1].set(place(r, 0), number_of(own + s * large, e));
  }

  /// In one operand, or in all.
  void add_special() {
    size where = w_.below(static_cast<uint32_t>(all_.size() + 1));
    if (where < all_.size() && all_[where].absent()) where = lead_;
    for (size k = 0; k < all_.size(); ++k) {
      if (all_[k].absent() || (where != k && where != all_.size())) continue;
      const bool of_x = k <= lead_;
      for (size i = 0; i < index(all_[k].count()); ++i) {
        const patterns_of<Word> t(all_[k].type);
        const Word special = t.special(w_);
        const uint32_t u = w_.below(of_x ? 64 : 8);
        if (u < (where == k ? 5U : 2U)) all_[k].set(i, u == 0 ? (special & t.sign()) : special);
      }
    }
  }

  const std::string& op_;
  patterns_of<Word> t_, statistic_;
  sample_class c_;
  word_stream& w_;
  size lead_;
  norm_layout l_;
  size n_;
  std::optional<int> momentum_;  ///< its exponent, of a power of two
  double eps_ = 0;
  std::vector<array> all_;
};

}  // namespace

std::vector<array> given_norm_inputs(const std::string& op, sample_class c, const std::vector<shape_list>& shapes,
                                     const attributes& attrs, word_stream& w, dtype type) {
  if (type == dtype::f64) return given_maker<uint64_t>(op, c, shapes, attrs, w, type).result();
  return given_maker<uint32_t>(op, c, shapes, attrs, w, type).result();
}

}  // namespace repdl::reference::detail
