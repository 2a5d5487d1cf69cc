// Attention in binary64, a block of queries at a time, which goes along blocks of keys (T. Dao et al., "FlashAttention", 2022; M. Milakov,
// N. Gimelshein, "Online normalizer calculation for softmax", 2018). Compiled once per instruction set.
//
// For a query with reference M: w_j = e^(a_j - M), l = sum w_j, o_e = sum w_j v_je; the results are o_e / l and M + ln l. M is the greatest score of the
// first block that has one, and moves to that of a later one where this is more than 16 greater. So some w_j is 1, l >= 1, and what is
// below e^-600 is left out.
//
// Bounds; u = 2^-53, D the size of a query, N_q and N_j norms of q and k_j.
//   a_j, scale times a sum of products, which are exact:    (16 + D / 16 + 3) u |scale| N_q N_j   (sums of 16, added up, by Cauchy and Schwarz; the factor)
//       with slope (j - i - off) and mask:                  + 4 u (|slope (j - i - off)| + |mask|)
//   a_j - M, and e^x within (5.1 + |x|) u (exponentials.hpp): (6 + |a_j - M|) u
// eps_j is their sum: the relative error of w_j. error = sum w_j eps_j, errors = sum (w_j eps_j)^2, squares = sum w_j^2. Where M moves by t, w_j are
// multiplied by e^t, and error grows by (8 + |t|) u l, the root of errors by (8 + |t|) u times that of squares. Then, with V_e the greatest |v_je| of the
// blocks that were looked at and N_e the norm of v_je, by Cauchy and Schwarz,
//   o_e:  min(V_e (error + l c u), N_e (sqrt errors + sqrt squares c u)),   l:  error + l c u,
// and o_e / l within what o_e is within, divided by l, and |o_e / l| (error / l + c u);
// c = terms of a block + blocks + 8: additions (of l: a block's by lane, its lanes, and blocks), a product, a quotient, and what certify wants. (1 + 2^-20) of it has room for the errors of bounds
// and norms and for products of errors; what is left out is below V_e 2^-800. With dropout o_e is the sum over the keys that are kept, and a result o_e / l
// times 1 / (1 - p), within 3 u: 4 u more in c.
#include <algorithm>
#include <cmath>

#include "backends/cpu/attention/attention_blocks.hpp"
#include "backends/cpu/core/formats.hpp"
#include "backends/cpu/core/loaders.hpp"
#include "backends/cpu/core/walk.hpp"
#include "librepdl/num/wide.hpp"
#include "librepdl/ops/formats.hpp"
#include "librepdl/ops/rows/exponentials.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

using std::int64_t;

constexpr double u = 0x1p-53;
constexpr int key_block = block_columns;
constexpr int wide_queries = 4;  // at a time, in double-doubles
constexpr double step = 16;      // by which a score may exceed M

// The workspace, in numbers of binary64.
struct layout : workspace_parts {
  int64_t q, keys, values, scores, sums, most, value_squares, norms, open, wide;
  explicit layout(const plan::attention_plan& p) {
    q = take(attention_rows * p.size);
    keys = take(key_block * p.size / 2);
    values = take(key_block * padded(p.value_size) / 2);
    scores = take(attention_rows * key_block);
    sums = take(attention_rows * padded(p.value_size));
    most = take(padded(p.value_size));
    value_squares = take(padded(p.value_size));
    norms = take(key_block);
    open = take((attention_rows * (p.value_size + 1) + 7) / 8);
    wide = take(wide_queries * p.value_size * static_cast<int64_t>(sizeof(num::wide_sum<f64v>) / 8));
  }
};

int64_t bytes(const plan::attention_plan& p) noexcept { return layout(p).total * 8; }

// What is known of a query as its keys go by.
struct query_state {
  int64_t head, query, first, last, at;
  double norm, slope;
  double top = -num::infinity, sum = 0, error = 0, squares = 0, errors = 0;
  bool has_keys = false, is_odd = false;
};

template <class T>
class block_of_queries {
 public:
  block_of_queries(const plan::attention_plan& plan, const attention_block& b, double* memory)
      : p(plan),
        b_(b),
        at_(plan),
        memory_(memory),
        width_(padded(plan.value_size)),
        draws_(num::draws_of(plan)),
        rate_(draws_.rate()) {
    const walk<6> batch(
        p.batch_rank, p.batch_shape,
        {&p.q_at.batch, &p.k_at.batch, &p.v_at.batch, &p.mask_at.batch, &p.out_at.batch, &p.lse_at.batch}, b.batch);
    for (int i = 0; i < 6; ++i) base_[i] = batch.offset(i);
  }

  void run(tier first, attention_rest& rest, tally& counted) {
    load_queries();
    std::fill_n(sums(), b_.count * width_, 0.0);
    std::fill_n(most(), width_, 0.0);
    std::fill_n(value_squares(), width_, 0.0);
    int64_t begin = p.keys, end = 0;
    for (int r = 0; r < b_.count; ++r) {
      begin = std::min(begin, state_[r].first);
      end = std::max(end, state_[r].last);
    }
    int64_t blocks = 0;
    for (int64_t j = begin; j < end; j += key_block, ++blocks) {
      const int n = static_cast<int>(std::min<int64_t>(key_block, end - j));
      load_keys(j, n);
      load_values(j, n);
      measure_values(values(), n, width_, most(), value_squares());
      multiply_columns(q(), b_.count, p.size, keys(), scores());
      for (int r = 0; r < b_.count; ++r) weigh(r, j, n);
      add_weighted(scores(), b_.count, values(), n, width_, sums());
    }
    // What is left: in double-doubles, a few queries at a time, and then one by one.
    int left[attention_rows], count = 0, done = 0;
    for (int r = 0; r < b_.count; ++r) {
      if (decide(r, static_cast<double>(key_block + blocks + (draws_.any() ? 12 : 8)) * u, first <= tier::binary64,
                 counted) != 0)
        left[count++] = r;
    }
    while (first <= tier::double_double && done < count) {
      int some[wide_queries], n = 0;
      for (; done < count && n < wide_queries; ++done) {
        if (!state_[left[done]].is_odd) some[n++] = left[done];
      }
      if (n != 0) decide_wide(some, n, begin, end, counted);
    }
    for (int i = 0; i < count; ++i) {
      const query_state& s = state_[left[i]];
      const std::uint8_t* const is_open = open(left[i]);
      const auto any = std::any_of(is_open, is_open + p.value_size, [](std::uint8_t o) { return o != 0; });
      if (any) rest.decide(b_.batch, s.head, s.query, 0, p.value_size, is_open);
      if (is_open[p.value_size] != 0) rest.decide(b_.batch, s.head, s.query, 0, 0, nullptr);
    }
  }

 private:
  double* q() const { return memory_ + at_.q; }
  float* keys() const { return reinterpret_cast<float*>(memory_ + at_.keys); }      // [size][key_block]
  float* values() const { return reinterpret_cast<float*>(memory_ + at_.values); }  // [key_block][width_]
  double* scores() const { return memory_ + at_.scores; }
  double* sums() const { return memory_ + at_.sums; }
  double* most() const { return memory_ + at_.most; }
  double* value_squares() const { return memory_ + at_.value_squares; }
  double* norms() const { return memory_ + at_.norms; }

  void load_queries() {
    const int64_t group = p.heads / p.key_heads;
    for (int r = 0; r < attention_rows; ++r) {
      double* const to = q() + r * p.size;
      if (r >= b_.count) {
        if (r < padded_rows(b_.count)) std::fill_n(to, p.size, 0.0);
        continue;
      }
      query_state& s = state_[r];
      s = {};
      s.head = b_.key_head * group + (b_.first + r) / p.queries;
      s.query = (b_.first + r) % p.queries;
      s.at = s.query + p.offset;
      s.first = std::clamp<int64_t>(s.at - p.before, 0, p.keys);
      s.last = std::clamp<int64_t>(s.at + p.after + 1, 0, p.keys);
      s.slope = p.slopes == nullptr ? 0.0 : static_cast<double>(p.slopes[s.head * p.slope_step]);
      const T* const from = static_cast<const T*>(p.q) + base_[0] + s.head * p.q_at.head + s.query * p.q_at.row;
      double square = 0;
      for (int64_t d = 0; d < p.size; ++d) {
        to[d] = num::widen(from[d * p.q_at.element]);
        square += to[d] * to[d];
      }
      s.norm = std::sqrt(square);
    }
  }
  void load_keys(int64_t j, int n) {
    const T* const from = static_cast<const T*>(p.k) + base_[1] + b_.key_head * p.k_at.head + j * p.k_at.row;
    loader_of<T>{from, p.k_at.row, p.k_at.element}.template load<key_block>(0, n, 0, p.size, keys());
    measure_columns(keys(), p.size, norms());
  }
  void load_values(int64_t j, int n) {
    const T* const from = static_cast<const T*>(p.v) + base_[2] + b_.key_head * p.v_at.head + j * p.v_at.row;
    for (int i = 0; i < n; ++i) {
      float* const to = values() + i * width_;
      loader_of<T>{from + i * p.v_at.row, 1, p.v_at.element}.template load<1>(0, 1, 0, p.value_size, to);
      for (int64_t e = p.value_size; e < width_; ++e) to[e] = 0;
    }
  }
  // Scores become weights.
  void weigh(int r, int64_t j, int n) {
    query_state& s = state_[r];
    double* const a = scores() + r * key_block;
    const int first = static_cast<int>(std::clamp<int64_t>(s.first - j, 0, n)),
              last = static_cast<int>(std::clamp<int64_t>(s.last - j, 0, n));
    if (first >= last) {
      std::fill_n(a, key_block, 0.0);
      return;
    }
    for (int i = 0; i < key_block; ++i) a[i] *= p.scale;
    double extra[key_block] = {};
    int keys = last - first;
    if (p.mask != nullptr || p.slopes != nullptr) keys = add_mask(s, j, first, last, a, extra);
    for (int i = 0; i < first; ++i) a[i] = -num::infinity;
    for (int i = last; i < key_block; ++i) a[i] = -num::infinity;
    if (keys == 0) {
      std::fill_n(a, key_block, 0.0);
      return;
    }
    s.has_keys = true;
    double top = -num::infinity;
    for (int i = 0; i < key_block; ++i) top = a[i] > top ? a[i] : top;
    if (!num::is_finite(top)) {  // NaN alone, or infinities: not for binary64
      s.is_odd = true;
      std::fill_n(a, key_block, 0.0);
      return;
    }
    if (top > s.top + step) move(r, top);
    double kept[key_block];
    if (draws_.any()) find_kept(draws_, pair_of(s, j), 1, kept);
    const f64v norm = broadcast<f64v>((chunk_height(p.size) + 3) * u * num::magnitude_of(p.scale) * s.norm);
    const f64v from = broadcast<f64v>(s.top), zero{};
    f64v sum{}, error{}, squares{}, errors{};
    for (int i = 0; i < key_block; i += lanes64) {
      const f64v d = load<f64v>(a + i) - from;
      const auto is_gone = d < num::least_gap;
      const f64v w = is_gone ? zero : num::fast_exp(is_gone ? zero : d);
      const f64v eps = norm * load<f64v>(norms() + i) + load<f64v>(extra + i) + (6.0 + num::magnitude_of(d)) * u;
      const f64v part = is_gone ? zero : w * eps;
      sum += w;
      error += part;
      squares += w * w;
      errors += part * part;
      store(a + i, draws_.any() ? w * load<f64v>(kept + i) : w);
    }
    double of_block = 0;  // the sums of blocks are what is added up, not those of lanes: c counts blocks
    for (int l = 0; l < lanes64; ++l) {
      of_block += sum[l];
      s.error += error[l];
      s.squares += squares[l];
      s.errors += errors[l];
    }
    s.sum += of_block;
  }
  // The number of a query's pair with key j.
  int64_t pair_of(const query_state& s, int64_t j) const {
    return ((b_.batch * p.heads + s.head) * p.queries + s.query) * p.keys + j;
  }
  // Of the keys [first, last): -inf where they are absent. How many are present.
  int add_mask(const query_state& s, int64_t j, int first, int last, double* a, double* extra) const {
    int keys = 0;
    const int64_t mask = base_[3] + s.head * p.mask_at.head + s.query * p.mask_at.row + j * p.mask_at.element;
    for (int i = first; i < last; ++i) {
      double size = 0;
      if (p.slopes != nullptr) {
        const double along = s.slope * static_cast<double>(j + i - s.at);
        a[i] += along;
        size = num::magnitude_of(along);
      }
      bool is_absent = false;
      if (p.mask != nullptr) {
        const int64_t at = mask + i * p.mask_at.element;
        if (p.is_added) {
          const double m = num::widen(static_cast<const T*>(p.mask)[at]);
          is_absent = m == -num::infinity;
          a[i] += m;
          size += num::magnitude_of(m);
        } else {
          is_absent = static_cast<const std::uint8_t*>(p.mask)[at] == 0;
        }
      }
      extra[i] = 4 * u * size;
      if (is_absent) {
        a[i] = -num::infinity;
        extra[i] = 0;
      }
      keys += is_absent ? 0 : 1;
    }
    return keys;
  }
  // The reference becomes `top`.
  void move(int r, double top) {
    query_state& s = state_[r];
    const double by = s.top - top;
    const double factor = by < num::least_gap ? 0.0 : num::fast_exp(by);
    if (s.sum != 0) {
      double* const o = sums() + r * width_;
      for (int64_t e = 0; e < width_; ++e) o[e] *= factor;
      s.sum *= factor;
      const double more = factor == 0 ? 0.0 : (8 - by) * u;
      s.error = s.error * factor + more * s.sum;
      s.squares *= factor * factor;
      const double root = std::sqrt(s.errors) * factor + more * std::sqrt(s.squares);
      s.errors = root * root;
    }
    s.top = top;
  }

  // Decides what binary64 can; the results that are left are open. How many they are, lse among them.
  int64_t decide(int r, double count, bool by_first, tally& counted) {
    const query_state& s = state_[r];
    const int64_t results = p.value_size + (p.lse != nullptr ? 1 : 0);
    std::uint8_t* const is_open = open(r);
    if (!s.has_keys) {
      for (int64_t e = 0; e < p.value_size; ++e) out(r, e) = num::from_bits<T>(num::storage_of<T>{0});
      if (p.lse != nullptr) lse(r) = -static_cast<float>(num::infinity);
      counted.add(tier::proved, results);
      return 0;
    }
    const bool decides = by_first && !s.is_odd;
    const double relative = decides ? (s.error / s.sum + count) * (1 + 0x1p-20) : num::infinity;
    const double by_norm = (std::sqrt(s.errors) + std::sqrt(s.squares) * count) / s.sum * (1 + 0x1p-20);
    const double* const o = sums() + r * width_;
    int64_t left = 0;
    for (int64_t first = 0; first < p.value_size; first += lanes64) {
      const f64v x = load<f64v>(o + first) / s.sum * rate_ + 0.0, v = load<f64v>(most() + first) * rate_;
      const f64v by_most = v * relative, by_all = square_root(load<f64v>(value_squares() + first)) * (by_norm * rate_);
      const f64v f = (by_all < by_most ? by_all : by_most) + num::magnitude_of(x) * relative + v * 0x1p-800;
      const u32h low = rounded_bits<T>(x - f), high = rounded_bits<T>(x + f);
      const auto differs = (low != high) | __builtin_convertvector(!(f < 0x1p900), i32h);
      for (int64_t l = 0; l < lanes64 && first + l < p.value_size; ++l) {
        is_open[first + l] = differs[l] != 0 ? 1 : 0;
        left += is_open[first + l];
        out(r, first + l) = num::from_bits<T>(static_cast<num::storage_of<T>>(low[l]));
      }
    }
    is_open[p.value_size] = 0;
    if (p.lse != nullptr) {
      const double log = num::fast_log(1.0, s.sum - 1), x = s.top + log;
      const double f = (relative + 4 * u) * (1 + 0x1p-20) + 10 * u * log + 4 * u * num::magnitude_of(x);
      const auto c = num::certify<float>(x, f);
      lse(r) = c.value;
      is_open[p.value_size] = decides && c.decided && f < 0x1p900 ? 0 : 1;
      left += is_open[p.value_size];
    }
    counted.add(tier::binary64, results - left);
    return left;
  }

  // ---- double-doubles: the keys once more, for a few queries at a time, a key a lane

  // e^(a_j - reference) of a block of keys, with 0 for absent ones.
  struct wide_weights {
    double hi[key_block], lo[key_block], error[key_block];
  };
  struct wide_query {
    int row;
    double reference;  // one less than the greatest score, about: the sum is at least 2
    num::wide<f64v> sum;
    num::wide_sum<f64v>* results;  // of each result, if it is open
  };

  void decide_wide(const int* rows, int count, int64_t begin, int64_t end, tally& counted) {
    wide_query queries[wide_queries];
    for (int i = 0; i < count; ++i) {
      queries[i] = {rows[i],
                    state_[rows[i]].top - 1,
                    {},
                    reinterpret_cast<num::wide_sum<f64v>*>(memory_ + at_.wide) + i * p.value_size};
      std::fill_n(queries[i].results, p.value_size, num::wide_sum<f64v>{});
    }
    for (int64_t j = begin; j < end; j += key_block) {
      const int n = static_cast<int>(std::min<int64_t>(key_block, end - j));
      load_keys(j, n);
      load_values(j, n);
      for (int i = 0; i < count; ++i) add_wide(queries[i], j, n);
    }
    for (int i = 0; i < count; ++i) finish_wide(queries[i], end - begin, counted);
  }
  void add_wide(wide_query& w, int64_t j, int n) {
    const query_state& s = state_[w.row];
    const int first = static_cast<int>(std::clamp<int64_t>(s.first - j, 0, n)),
              last = static_cast<int>(std::clamp<int64_t>(s.last - j, 0, n));
    if (first >= last) return;
    const bool has_bias = p.mask != nullptr || p.slopes != nullptr, is_whole = !has_bias && last - first == key_block;
    num::wide<double> bias[key_block];
    bool is_absent[key_block];
    for (int i = 0; !is_whole && i < key_block; ++i) {
      is_absent[i] = i < first || i >= last;
      bias[i] = num::arithmetic<num::wide<double>>::number(-w.reference);
      if (!is_absent[i] && has_bias) is_absent[i] = add_wide_mask(s, j + i, bias[i]);
    }
    wide_weights weights;
    double kept[key_block];
    if (draws_.any()) find_kept(draws_, pair_of(s, j), 1, kept);
    const double* const query = q() + w.row * p.size;
    for (int i = 0; i < key_block; i += lanes64) {
      num::tracked_sum<f64v> products;
      for (int64_t d = 0; d < p.size; ++d)
        products.add(broadcast<f64v>(query[d]) * widen(load<f32h>(keys() + d * key_block + i)));
      // times scale: num::multiply_by
      const num::double_word<f64v> sum = products.total(), scale{broadcast<f64v>(p.scale), f64v{}};
      num::wide<f64v> x{num::mul(sum, scale), {}};
      x.error = num::magnitude_of(p.scale) * (static_cast<double>(2 * p.size + 4) * u * products.error) +
                0x1p-103 * num::magnitude_of(x.value.hi);
      num::wide<f64v> added = num::arithmetic<num::wide<f64v>>::number(-w.reference);
      for (int l = 0; has_bias && l < lanes64; ++l) {
        added.value.hi[l] = bias[i + l].value.hi;
        added.value.lo[l] = bias[i + l].value.lo;
        added.error[l] = bias[i + l].error;
      }
      x = num::add(x, added);
      // num::exponential_of
      const f64v zero{}, tiny = broadcast<f64v>(0x1p-865), unknown = broadcast<f64v>(num::infinity);
      const auto is_far = x.value.hi + x.error < num::least_gap - 1;
      const auto is_near = (x.value.hi <= -num::least_gap) & (x.error < 0x1p-10) & ~is_far;
      const auto e = num::wide_exp(is_near ? x.value.hi : zero, is_near ? x.value.lo : zero);
      f64v hi = is_near ? e.hi : zero, lo = is_near ? e.lo : zero;
      f64v error = is_near ? e.hi * (0x1p-96 + x.error * (1 + 0x1p-9)) : is_far ? tiny : unknown;
      for (int l = 0; !is_whole && l < lanes64; ++l) {
        if (is_absent[i + l]) hi[l] = lo[l] = error[l] = 0;
      }
      w.sum = num::add_positive(w.sum, num::wide<f64v>{{hi, lo}, error});
      if (draws_.any()) {
        const f64v keep = load<f64v>(kept + i);
        hi *= keep;
        lo *= keep;
        error = keep == 0.0 ? zero : error;
      }
      store(weights.hi + i, hi);
      store(weights.lo + i, lo);
      store(weights.error + i, error);
    }
    const std::uint8_t* const is_open = open(w.row);
    for (int64_t e = 0; e < p.value_size; ++e) {
      if (is_open[e] == 0) continue;
      for (int i = 0; i < key_block; i += lanes64) {
        f64v v{};
        for (int l = 0; l < lanes64 && i + l < n; ++l) v[l] = static_cast<double>(values()[(i + l) * width_ + e]);
        const auto term = num::mul(num::double_word<f64v>{load<f64v>(weights.hi + i), load<f64v>(weights.lo + i)},
                                   num::double_word<f64v>{v, f64v{}});
        w.results[e].add(term,
                         num::magnitude_of(v) * load<f64v>(weights.error + i) + 0x1p-103 * num::magnitude_of(term.hi));
      }
    }
  }
  // Adds what a key's score has beside the product; whether it is absent.
  bool add_wide_mask(const query_state& s, int64_t j, num::wide<double>& bias) const {
    if (p.slopes != nullptr) {
      num::wide<double> along = num::arithmetic<num::wide<double>>::number(s.slope);
      num::multiply_by_value(along, static_cast<double>(j - s.at));
      bias = num::add(bias, along);
    }
    if (p.mask == nullptr) return false;
    const int64_t at = base_[3] + s.head * p.mask_at.head + s.query * p.mask_at.row + j * p.mask_at.element;
    if (!p.is_added) return static_cast<const std::uint8_t*>(p.mask)[at] == 0;
    const double m = num::widen(static_cast<const T*>(p.mask)[at]);
    if (m == -num::infinity) return true;
    num::add_value(bias, m);
    return false;
  }
  void finish_wide(const wide_query& w, int64_t keys, tally& counted) {
    std::uint8_t* const is_open = open(w.row);
    num::wide<double> sum;
    for (int l = 0; l < lanes64; ++l) sum = num::add_positive(sum, num::lane(w.sum, l));
    for (int64_t e = 0; e < p.value_size; ++e) {
      if (is_open[e] == 0 || !num::is_finite(most()[e])) continue;
      num::wide_sum<double> all = num::lane(w.results[e], 0);
      for (int l = 1; l < lanes64; ++l) all.merge(num::lane(w.results[e], l));
      num::wide<double> x = all.total(keys + key_block);
      num::to_result(x, sum, draws_);
      if (const auto c = num::round_number<T>(x); c.decided) close(w.row, e, out(w.row, e), c.value, counted);
    }
    if (is_open[p.value_size] != 0) {
      num::wide<double> log = sum;
      num::to_logarithm(log);
      num::add_value(log, w.reference);
      if (const auto c = num::round_number<float>(log); c.decided)
        close(w.row, p.value_size, lse(w.row), c.value, counted);
    }
  }
  template <class U>
  void close(int r, int64_t e, U& to, U value, tally& counted) {
    to = value;
    open(r)[e] = 0;
    counted.add(tier::double_double, 1);
  }

  T& out(int r, int64_t e) const {
    const query_state& s = state_[r];
    return static_cast<T*>(p.out)[base_[4] + s.head * p.out_at.head + s.query * p.out_at.row + e * p.out_at.element];
  }
  float& lse(int r) const {
    const query_state& s = state_[r];
    return static_cast<float*>(p.lse)[base_[5] + s.head * p.lse_at.head + s.query * p.lse_at.row];
  }
  std::uint8_t* open(int r) const {
    return reinterpret_cast<std::uint8_t*>(memory_ + at_.open) + r * (p.value_size + 1);
  }

  const plan::attention_plan& p;
  const attention_block b_;
  const layout at_;
  double* const memory_;
  const int64_t width_;
  const num::attention_draws draws_;
  const double rate_;  // 1 / (1 - p)
  int64_t base_[6];
  query_state state_[attention_rows];
};

void run(const plan::attention_plan& p, const attention_block& b, tier first, void* workspace, attention_rest& rest,
         tally& counted) noexcept {
  ops::for_each_format<ops::NARROW>([&]<class T>() {
    if (dtype_of<T> == p.type) block_of_queries<T>(p, b, static_cast<double*>(workspace)).run(first, rest, counted);
  });
}

}  // namespace

extern const attention_kernels attention_table = {bytes, run, &attention_gradients_table};

}  // namespace repdl::cpu::REPDL_ISA
