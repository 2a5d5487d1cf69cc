// Gradients of attention (librepdl/ops/attention/attention_backward.hpp) in binary64, then in double-doubles: a block of rows at a time, which goes along
// blocks of columns. Rows are queries and columns keys, for grad_q; or rows are keys and columns the queries of all heads that go with them, for grad_k
// and grad_v. Compiled once per instruction set.
//
// Of a row: w_c = e^(b_c), b_c = a_c - lse, t_c = g_c v_c - D, D = g y, and its results are scale sum w_c t_c x_c, and sum w_c g_c.
//
// Bounds; u = 2^-53, D_q the size of queries and keys, E that of values, N norms.
//   b_c: as a_c - M of attention_kernels.cpp; w_c so within eps_c of itself; rows with a b_c > 16 are left to later tiers.
//   D, the greater part of a tracked sum:  u |D| + its bound = error_D;     t_c: (16 + E / 16) u N_g N_v + error_D + u |t_c| = error_t.
//   s_c = w_c t_c:  delta_c = w_c ((eps_c + 2 u) |t_c| + error_t);          where b_c < -600, left out:  2^-860 (N_g N_v + |D|).
// With V the greatest |x_c| of the blocks that were looked at and N_x the norm of all x_c, by Cauchy and Schwarz the sum of s_c x_c is within
//   min(V (sum delta + c u sum |s|), N_x (sqrt(sum delta^2) + c u sqrt(sum s^2))),
// c = terms of a block + blocks + 8: additions, the factor scale and what certify wants. That of w_c g_c likewise, delta_c = w_c eps_c, or 2^-860.
// (1 + 2^-20) of it has room for the errors of bounds and norms and for products of errors. Nothing is decided by a bound below 2^-900, whose numbers
// may have underflowed, but where all t_c or x_c are 0, and so is the result; and squares below 2^-900 are none.
//
// With dropout D is (1 - p) g y, g_c v_c and w_c g_c are 0 where c is dropped, and results have the factor 1 / (1 - p), within 3 u: 4 u more in c.
#include <algorithm>
#include <cmath>

#include "backends/cpu/attention/attention_blocks.hpp"
#include "backends/cpu/core/formats.hpp"
#include "backends/cpu/core/loaders.hpp"
#include "backends/cpu/core/walk.hpp"
#include "librepdl/ops/attention/attention.hpp"
#include "librepdl/ops/formats.hpp"
#include "librepdl/ops/rows/exponentials.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

using std::int64_t;

constexpr double u = 0x1p-53, least_bound = 0x1p-900;
constexpr int wide_rows = 4;  // at a time, in double-doubles
constexpr double most_exponent = 16;

// The workspace, in numbers of binary64. first: of q and k; second: of g and v.
struct layout : workspace_parts {
  int64_t rows[2], columns[2], values[2], y, products[2], sums[2], most[2], squares[2], norms[2], lse, d, d_low,
      d_error, d_bound, open, wide;
  explicit layout(const plan::attention_plan& p) {
    const int64_t sizes[2] = {p.size, p.value_size};
    for (int i = 0; i < 2; ++i) {
      rows[i] = take(attention_rows * sizes[i]);
      columns[i] = take(block_columns * sizes[i] / 2);
      values[i] = take(block_columns * padded(sizes[i]) / 2);
      products[i] = take(attention_rows * block_columns);
      sums[i] = take(attention_rows * padded(sizes[i]));
      most[i] = take(padded(sizes[i]));
      squares[i] = take(padded(sizes[i]));
      norms[i] = take(block_columns);
    }
    y = take(block_columns * p.value_size / 2);
    lse = take(block_columns);
    d = take(block_columns);
    d_low = take(block_columns);
    d_error = take(block_columns);
    d_bound = take(block_columns);
    open = take((attention_rows * (p.size + p.value_size) + 7) / 8);
    wide = take(wide_rows * (p.size + p.value_size) * static_cast<int64_t>(sizeof(num::wide_sum<f64v>) / 8));
  }
};

// A sum of errors and of what they are errors of.
struct error_sums {
  double error = 0, size = 0, errors = 0, squares = 0;

  void add(f64v of_error, f64v of_size, f64v of_errors, f64v of_squares) {
    for (int l = 0; l < lanes64; ++l) {
      error += of_error[l];
      size += of_size[l];
      errors += of_errors[l];
      squares += of_squares[l];
    }
  }
  double by_most(double count) const { return (error + count * size) * (1 + 0x1p-20); }
  double by_norm(double count) const {
    return errors < least_bound ? num::infinity : (std::sqrt(errors) + count * std::sqrt(squares)) * (1 + 0x1p-20);
  }
};

// What is known of a row as its columns go by. Of a key lse and D are 0, as they are of keys among columns.
struct row_state {
  int64_t head, at, first, last;  // columns, of queries within each head
  double norms[2], slope, lse, d, d_low, d_error, d_bound;
  error_sums factors, weights;
  bool has_factors = false, has_weights = false, is_odd = false;
};

template <class T, bool IsKey>
class gradient_block {
 public:
  gradient_block(const plan::attention_plan& plan, const attention_block& b, double* memory)
      : p(plan),
        b_(b),
        at_(plan),
        memory_(memory),
        draws_(num::draws_of(plan)),
        group_(plan.heads / plan.key_heads),
        size_{plan.size, plan.value_size},
        width_{padded(plan.size), padded(plan.value_size)},
        results_(plan.size + (IsKey ? plan.value_size : 0)) {
    const walk<7> first(p.batch_rank, p.batch_shape,
                        {&p.q_at.batch, &p.k_at.batch, &p.v_at.batch, &p.g_at.batch, &p.y_at.batch, &p.mask_at.batch,
                         &p.given_lse_at.batch},
                        b.batch);
    const walk<3> second(p.batch_rank, p.batch_shape, {&p.grad_q_at.batch, &p.grad_k_at.batch, &p.grad_v_at.batch},
                         b.batch);
    q_ = static_cast<const T*>(p.q) + first.offset(0);
    k_ = static_cast<const T*>(p.k) + first.offset(1) + b.key_head * p.k_at.head;
    v_ = static_cast<const T*>(p.v) + first.offset(2) + b.key_head * p.v_at.head;
    g_ = static_cast<const T*>(p.g) + first.offset(3);
    y_ = static_cast<const T*>(p.y) + first.offset(4);
    mask_at_ = first.offset(5);
    lse_ = static_cast<const float*>(p.given_lse) + first.offset(6);
    grad_q_ = static_cast<T*>(p.grad_q) + second.offset(0);
    grad_k_ = static_cast<T*>(p.grad_k) + second.offset(1) + b.key_head * p.grad_k_at.head;
    grad_v_ = static_cast<T*>(p.grad_v) + second.offset(2) + b.key_head * p.grad_v_at.head;
  }

  void run(tier first, gradient_rest& rest, tally& counted) {
    for (int r = 0; r < padded_rows(b_.count); ++r) load_row(r);
    for (int i = 0; i < 2; ++i) {
      std::fill_n(part(at_.sums[i]), b_.count * width_[i], 0.0);
      std::fill_n(part(at_.most[i]), width_[i], 0.0);
      std::fill_n(part(at_.squares[i]), width_[i], 0.0);
    }
    int64_t blocks = 0;
    for_each_block([&](int64_t head, int64_t c, int n) {
      ++blocks;
      load_block(head, c, n);
      for (int i = 0; i < 2; ++i) {
        multiply_columns(part(at_.rows[i]), b_.count, size_[i], numbers(at_.columns[i]), part(at_.products[i]));
        if (i == 0 || IsKey)
          measure_values(numbers(at_.values[i]), n, width_[i], part(at_.most[i]), part(at_.squares[i]));
      }
      for (int r = 0; r < b_.count; ++r) weigh(r, head, c, n);
      add_weighted(part(at_.products[1]), b_.count, numbers(at_.values[0]), n, width_[0], part(at_.sums[0]));
      if (IsKey) add_weighted(part(at_.products[0]), b_.count, numbers(at_.values[1]), n, width_[1], part(at_.sums[1]));
    });
    // What is left: in double-doubles, a few rows at a time, and then one by one.
    int left[attention_rows], count = 0, done = 0;
    for (int r = 0; r < b_.count; ++r) {
      if (decide(r, static_cast<double>(block_columns + blocks + (draws_.any() ? 12 : 8)) * u, first <= tier::binary64,
                 counted) != 0)
        left[count++] = r;
    }
    while (first <= tier::double_double && done < count) {
      int some[wide_rows], n = 0;
      for (; done < count && n < wide_rows; ++done) {
        if (!state_[left[done]].is_odd) some[n++] = left[done];
      }
      if (n != 0) decide_wide(some, n, blocks, counted);
    }
    for (int i = 0; i < count; ++i) {
      const row_state& s = state_[left[i]];
      const std::uint8_t* const is_open = open(left[i]);
      if (std::any_of(is_open, is_open + results_, [](std::uint8_t o) { return o != 0; }))
        rest.decide(b_.batch, IsKey, IsKey ? b_.key_head : s.head, s.at, is_open);
    }
  }

 private:
  double* part(int64_t at) const { return memory_ + at; }
  float* numbers(int64_t at) const { return reinterpret_cast<float*>(memory_ + at); }
  std::uint8_t* open(int r) const { return reinterpret_cast<std::uint8_t*>(memory_ + at_.open) + r * results_; }
  // A head of q, of those that go with this one of k.
  int64_t head_of(int64_t n) const { return b_.key_head * group_ + n; }

  const T* query(int64_t head, int64_t i) const { return q_ + head * p.q_at.head + i * p.q_at.row; }
  const T* gradient(int64_t head, int64_t i) const { return g_ + head * p.g_at.head + i * p.g_at.row; }
  const T* given(int64_t head, int64_t i) const { return y_ + head * p.y_at.head + i * p.y_at.row; }
  double logarithm(int64_t head, int64_t i) const {
    return static_cast<double>(lse_[head * p.given_lse_at.head + i * p.given_lse_at.row]);
  }

  // f(head of q, first column, columns) of every block that a row has a column in. Keys are columns of all heads.
  template <class F>
  void for_each_block(const F& f) const {
    int64_t begin = IsKey ? p.queries : p.keys, end = 0;
    for (int r = 0; r < b_.count; ++r) {
      begin = std::min(begin, state_[r].first);
      end = std::max(end, state_[r].last);
    }
    for (int64_t h = 0; h < (IsKey ? group_ : 1); ++h) {
      for (int64_t c = begin; c < end; c += block_columns)
        f(head_of(h), c, static_cast<int>(std::min<int64_t>(block_columns, end - c)));
    }
  }

  double load_numbers(const T* from, int64_t step, int64_t count, double* to) const {
    double square = 0;
    for (int64_t d = 0; d < count; ++d) {
      to[d] = num::widen(from[d * step]);
      square += to[d] * to[d];
    }
    return std::sqrt(square);
  }
  // D of a query.
  struct known_sum {
    double hi, lo, error, bound;  // error: of both parts; bound: of the greater one alone
  };
  known_sum sum_of_results(int64_t head, int64_t i) const {
    const T *const g = gradient(head, i), *const y = given(head, i);
    num::tracked_sum<double> sum;
    for (int64_t e = 0; e < p.value_size; ++e)
      sum.add(num::widen(g[e * p.g_at.element]) * num::widen(y[e * p.y_at.element]));
    num::wide<double> d{sum.total(), sum.bound(p.value_size) * (1 + 0x1p-10)};
    if (draws_.any()) num::multiply_by(d, draws_.wide_kept());
    return {d.value.hi, d.value.lo, d.error, (u * num::magnitude_of(d.value.hi) + d.error) * (1 + 0x1p-10)};
  }
  void load_row(int r) {
    double *const a = part(at_.rows[0]) + r * size_[0], *const b = part(at_.rows[1]) + r * size_[1];
    if (r >= b_.count) {
      std::fill_n(a, size_[0], 0.0);
      std::fill_n(b, size_[1], 0.0);
      return;
    }
    row_state& s = state_[r];
    s = {};
    if constexpr (IsKey) {
      s.at = b_.first + r;
      s.first = std::clamp<int64_t>(s.at - p.offset - p.after, 0, p.queries);
      s.last = std::clamp<int64_t>(s.at - p.offset + p.before + 1, 0, p.queries);
      s.norms[0] = load_numbers(k_ + s.at * p.k_at.row, p.k_at.element, size_[0], a);
      s.norms[1] = load_numbers(v_ + s.at * p.v_at.row, p.v_at.element, size_[1], b);
    } else {
      s.head = head_of((b_.first + r) / p.queries);
      s.at = (b_.first + r) % p.queries;
      s.first = std::clamp<int64_t>(s.at + p.offset - p.before, 0, p.keys);
      s.last = std::clamp<int64_t>(s.at + p.offset + p.after + 1, 0, p.keys);
      s.norms[0] = load_numbers(query(s.head, s.at), p.q_at.element, size_[0], a);
      s.norms[1] = load_numbers(gradient(s.head, s.at), p.g_at.element, size_[1], b);
      s.slope = slope_of(s.head);
      s.lse = logarithm(s.head, s.at);
      const known_sum d = sum_of_results(s.head, s.at);
      s.d = d.hi;
      s.d_low = d.lo;
      s.d_error = d.error;
      s.d_bound = d.bound;
    }
  }
  double slope_of(int64_t head) const {
    return p.slopes == nullptr ? 0.0 : static_cast<double>(p.slopes[head * p.slope_step]);
  }

  void load_block(int64_t head, int64_t c, int n) {
    const plan::attention_place& first = IsKey ? p.q_at : p.k_at;
    const plan::attention_place& second = IsKey ? p.g_at : p.v_at;
    load_columns(0, IsKey ? query(head, c) : k_ + c * p.k_at.row, first, n, true);
    load_columns(1, IsKey ? gradient(head, c) : v_ + c * p.v_at.row, second, n, IsKey);
    if constexpr (IsKey) {
      for (int i = 0; i < block_columns; ++i) {
        const known_sum d = i < n ? sum_of_results(head, c + i) : known_sum{};
        part(at_.lse)[i] = i < n ? logarithm(head, c + i) : 0.0;
        part(at_.d)[i] = d.hi;
        part(at_.d_low)[i] = d.lo;
        part(at_.d_error)[i] = d.error;
        part(at_.d_bound)[i] = d.bound;
      }
    }
  }
  void load_columns(int i, const T* from, const plan::attention_place& at, int n, bool has_values) {
    loader_of<T>{from, at.row, at.element}.template load<block_columns>(0, n, 0, size_[i], numbers(at_.columns[i]));
    measure_columns(numbers(at_.columns[i]), size_[i], part(at_.norms[i]));
    if (!has_values) return;
    for (int c = 0; c < n; ++c) {
      float* const to = numbers(at_.values[i]) + c * width_[i];
      loader_of<T>{from + c * at.row, 1, at.element}.template load<1>(0, 1, 0, size_[i], to);
      for (int64_t e = size_[i]; e < width_[i]; ++e) to[e] = 0;
    }
  }

  // The query and the key that column c + i makes with a row.
  int64_t query_at(const row_state& s, int64_t c) const { return IsKey ? c : s.at; }
  int64_t key_at(const row_state& s, int64_t c) const { return IsKey ? s.at : c; }
  // Whether the mask has it.
  bool is_masked(const row_state& s, int64_t head, int64_t c, double& added) const {
    added = 0;
    if (p.mask == nullptr) return false;
    const int64_t at =
        mask_at_ + head * p.mask_at.head + query_at(s, c) * p.mask_at.row + key_at(s, c) * p.mask_at.element;
    if (!p.is_added) return static_cast<const std::uint8_t*>(p.mask)[at] == 0;
    added = num::widen(static_cast<const T*>(p.mask)[at]);
    return added == -num::infinity;
  }
  double distance(const row_state& s, int64_t c) const {
    return static_cast<double>(key_at(s, c) - query_at(s, c) - p.offset);
  }

  // Of the pairs that columns from c on make with a row.
  void find_kept_columns(const row_state& s, int64_t head, int64_t c, double* kept) const {
    const int64_t of_head = (b_.batch * p.heads + head) * p.queries;
    find_kept(draws_, (of_head + query_at(s, c)) * p.keys + key_at(s, c), IsKey ? p.keys : 1, kept);
  }

  // Scores, products[0], become weights, and sums of products, products[1], weights times factors.
  void weigh(int r, int64_t of_columns, int64_t c, int n) {
    row_state& s = state_[r];
    double *const a = part(at_.products[0]) + r * block_columns, *const t = part(at_.products[1]) + r * block_columns;
    const int first = static_cast<int>(std::clamp<int64_t>(s.first - c, 0, n)),
              last = static_cast<int>(std::clamp<int64_t>(s.last - c, 0, n));
    if (first >= last) {
      std::fill_n(a, block_columns, 0.0);
      std::fill_n(t, block_columns, 0.0);
      return;
    }
    const int64_t head = IsKey ? of_columns : s.head;
    const double slope = IsKey ? slope_of(head) : s.slope;
    double present[block_columns], extra[block_columns] = {};
    for (int i = 0; i < block_columns; ++i) present[i] = i >= first && i < last ? 1.0 : 0.0;
    for (int i = 0; i < block_columns; ++i) a[i] *= p.scale;
    if (p.mask != nullptr || p.slopes != nullptr) {
      for (int i = first; i < last; ++i) {
        double added = 0;
        if (is_masked(s, head, c + i, added)) present[i] = 0;
        const double along = slope * distance(s, c + i);
        a[i] = (a[i] + along) + added;
        extra[i] = 4 * u * (num::magnitude_of(along) + num::magnitude_of(added));
      }
    }
    double kept[block_columns];
    if (draws_.any()) find_kept_columns(s, head, c, kept);
    const double* const d = part(at_.d);
    const double* const d_bound = part(at_.d_bound);
    const f64v of_score = broadcast<f64v>((chunk_height(p.size) + 3) * u * num::magnitude_of(p.scale) * s.norms[0]),
               of_factor = broadcast<f64v>(chunk_height(p.value_size) * u), norm = broadcast<f64v>(s.norms[1]), zero{};
    f64v factor_error{}, factor_size{}, factor_errors{}, factor_squares{}, weight_error{}, weight_size{},
        weight_errors{}, weight_squares{};
    i64v is_odd{}, has_factors{}, has_weights{};
    for (int i = 0; i < block_columns; i += lanes64) {
      const auto is_present = load<f64v>(present + i) != 0.0;
      f64v b = load<f64v>(a + i), x = load<f64v>(t + i), of_d = broadcast<f64v>(s.d),
           bound = broadcast<f64v>(s.d_bound);
      if constexpr (IsKey) {
        b -= load<f64v>(part(at_.lse) + i);
        of_d = load<f64v>(d + i);
        bound = load<f64v>(d_bound + i);
      } else {
        b -= broadcast<f64v>(s.lse);
      }
      if (draws_.any()) x = load<f64v>(kept + i) == 0.0 ? zero : x;
      x -= of_d;
      const f64v size_of_b = num::magnitude_of(b), size_of_x = num::magnitude_of(x);
      const f64v both = norm * load<f64v>(part(at_.norms[1]) + i);
      const auto is_usual = (b <= most_exponent) & (size_of_b < num::infinity) & (size_of_x < num::infinity);
      is_odd |= is_present & ~is_usual;
      const auto is_gone = b < num::least_gap;
      const auto counts = is_present & is_usual & ~is_gone;
      const f64v w = counts ? num::fast_exp(counts ? b : zero) : zero;
      const f64v eps = of_score * load<f64v>(part(at_.norms[0]) + i) + load<f64v>(extra + i) + (6.0 + size_of_b) * u;
      const f64v left_out = is_present & is_gone ? zero + 0x1p-860 : zero;
      const f64v size_of_t = both + num::magnitude_of(of_d);
      const f64v of_weight = counts ? w * eps : left_out;
      const f64v of_t =
          counts ? of_weight * size_of_x + w * (2 * u * size_of_x + of_factor * both + bound) : left_out * size_of_t;
      const f64v product = counts ? w * x : zero;
      has_factors |= is_present & ~(size_of_t == 0.0);
      has_weights |= is_present;
      factor_error += of_t;
      factor_size += num::magnitude_of(product);
      factor_errors += of_t * of_t;
      factor_squares += product * product;
      if constexpr (IsKey) {
        weight_error += of_weight;
        weight_size += w;
        weight_errors += of_weight * of_weight;
        weight_squares += w * w;
      }
      store(a + i, draws_.any() ? w * load<f64v>(kept + i) : w);
      store(t + i, product);
    }
    s.factors.add(factor_error, factor_size, factor_errors, factor_squares);
    s.weights.add(weight_error, weight_size, weight_errors, weight_squares);
    for (int l = 0; l < lanes64; ++l) {
      s.is_odd |= is_odd[l] != 0;
      s.has_factors |= has_factors[l] != 0;
      s.has_weights |= has_weights[l] != 0;
    }
  }

  // Decides what binary64 can; the results that are left are open. How many they are.
  int64_t decide(int r, double count, bool by_first, tally& counted) {
    const row_state& s = state_[r];
    const bool decides = by_first && !s.is_odd;
    const double rate = draws_.rate();
    int64_t left = decide_sums(r, 0, s.factors, s.has_factors, count, p.scale * rate, decides);
    if (IsKey) left += decide_sums(r, 1, s.weights, s.has_weights, count, rate, decides);
    counted.add(tier::binary64, results_ - left);
    return left;
  }
  int64_t decide_sums(int r, int i, const error_sums& errors, bool has_terms, double count, double factor,
                      bool decides) {
    const double by_most = errors.by_most(count), by_norm = errors.by_norm(count);
    const i64v may_be_lost = has_terms ? ~i64v{} : i64v{};
    const double *const sums = part(at_.sums[i]) + r * width_[i], *const most = part(at_.most[i]),
                        *const squares = part(at_.squares[i]);
    std::uint8_t* const is_open = open(r) + (i == 0 ? 0 : p.size);
    int64_t left = 0;
    for (int64_t first = 0; first < size_[i]; first += lanes64) {
      const f64v x = load<f64v>(sums + first) * factor + 0.0, v = load<f64v>(most + first);
      const f64v one = v * by_most, other = square_root(load<f64v>(squares + first)) * by_norm;
      const f64v bound = other < one ? other : one;
      const f64v f = bound * num::magnitude_of(factor) * (1 + 0x1p-20);
      const u32h low = rounded_bits<T>(x - f), high = rounded_bits<T>(x + f);
      const auto is_known = (bound >= least_bound) & (f >= least_bound) & (broadcast<f64v>(by_most) >= least_bound);
      const auto is_lost = may_be_lost & ~is_known & ~(v == 0.0);
      const auto differs =
          (low != high) | __builtin_convertvector(is_lost | ~(num::magnitude_of(x) + f < 0x1p900), i32h);
      for (int64_t l = 0; l < lanes64 && first + l < size_[i]; ++l) {
        const bool is_left = !decides || differs[l] != 0;
        is_open[first + l] = is_left ? 1 : 0;
        left += is_left ? 1 : 0;
        if (!is_left) result(r, i, first + l) = num::from_bits<T>(static_cast<num::storage_of<T>>(low[l]));
      }
    }
    return left;
  }
  T& result(int r, int i, int64_t e) const {
    const row_state& s = state_[r];
    if constexpr (IsKey) {
      return i == 0 ? grad_k_[s.at * p.grad_k_at.row + e * p.grad_k_at.element]
                    : grad_v_[s.at * p.grad_v_at.row + e * p.grad_v_at.element];
    } else {
      return grad_q_[s.head * p.grad_q_at.head + s.at * p.grad_q_at.row + e * p.grad_q_at.element];
    }
  }

  // ---- double-doubles: the columns once more, for a few rows at a time, a column a lane

  using wide_v = num::wide<f64v>;
  struct wide_row {
    int row;
    num::wide_sum<f64v>* sums;  // of each result, if it is open
  };
  static wide_v product(const wide_v& a, const wide_v& b) {  // num::multiply_by
    const auto ab = num::mul(a.value, b.value);
    const f64v x = num::magnitude_of(a.value.hi), y = num::magnitude_of(b.value.hi);
    return {ab, (x * b.error + y * a.error) + (a.error * b.error + 0x1p-103 * num::magnitude_of(ab.hi))};
  }
  // num::allow_underflow
  template <class Mask>
  static void allow_underflow(wide_v& a, const Mask& zero) {
    a.error += (~zero & (num::magnitude_of(a.value.hi) < 0x1p-900)) ? f64v{} + 0x1p-890 : f64v{};
  }

  void decide_wide(const int* rows, int count, int64_t blocks, tally& counted) {
    wide_row all[wide_rows];
    for (int i = 0; i < count; ++i) {
      all[i] = {rows[i], reinterpret_cast<num::wide_sum<f64v>*>(memory_ + at_.wide) + i * results_};
      std::fill_n(all[i].sums, results_, num::wide_sum<f64v>{});
    }
    for_each_block([&](int64_t head, int64_t c, int n) {
      load_block(head, c, n);
      if constexpr (IsKey) {
        const loader_of<T> y{given(head, c), p.y_at.row, p.y_at.element};
        y.template load<block_columns>(0, n, 0, p.value_size, numbers(at_.y));
      }
      for (int i = 0; i < count; ++i) add_wide(all[i], head, c, n);
    });
    for (int i = 0; i < count; ++i) finish_wide(all[i], blocks * block_columns, counted);
  }
  void add_wide(const wide_row& w, int64_t of_columns, int64_t c, int n) {
    const row_state& s = state_[w.row];
    const int first = static_cast<int>(std::clamp<int64_t>(s.first - c, 0, n)),
              last = static_cast<int>(std::clamp<int64_t>(s.last - c, 0, n));
    if (first >= last) return;
    const int64_t head = IsKey ? of_columns : s.head;
    double kept[block_columns];
    std::fill_n(kept, block_columns, 1.0);
    if (draws_.any()) find_kept_columns(s, head, c, kept);
    for (int i = first / lanes64 * lanes64; i < last; i += lanes64) {
      wide_v bias{};
      i64v is_absent{};
      for (int l = 0; l < lanes64; ++l) {
        const int at = i + l;
        num::wide<double> one{};
        is_absent[l] = at < first || at >= last || add_wide_bias(s, head, c + at, one) ? -1 : 0;
        num::add_value(one, -(IsKey ? part(at_.lse)[at] : s.lse));
        bias.value.hi[l] = one.value.hi;
        bias.value.lo[l] = one.value.lo;
        bias.error[l] = one.error;
      }
      const wide_v weight = wide_weight(w.row, i, bias);
      const i64v is_dropped = load<f64v>(kept + i) == 0.0;
      wide_v factor = wide_factor(w.row, i, is_dropped);
      const auto zero = (factor.value.hi == 0.0) & (factor.error == 0.0);
      factor = product(weight, factor);
      allow_underflow(factor, zero);
      add_terms(w.sums, open(w.row), weight, factor, zero, is_absent, is_absent | is_dropped, i);
    }
  }
  // Of each result the terms of columns i and next.
  template <class Mask>
  void add_terms(num::wide_sum<f64v>* sums, const std::uint8_t* is_open, const wide_v& weight, const wide_v& factor,
                 const Mask& zero, const i64v& no_factor, const i64v& no_weight, int i) {
    const f64v none{};
    for (int64_t e = 0; e < results_; ++e) {
      if (is_open[e] == 0) continue;
      const bool is_first = e < p.size;
      const float* const from = is_first ? numbers(at_.columns[0]) + e * block_columns + i
                                         : numbers(at_.columns[1]) + (e - p.size) * block_columns + i;
      const i64v is_none = is_first ? no_factor : no_weight;
      const f64v x = is_none ? none : widen(load<f32h>(from));
      wide_v term = product(is_first ? factor : weight, {{x, none}, none});
      allow_underflow(term, (is_first ? zero : i64v{}) | (x == 0.0));
      for (int l = 0; l < lanes64; ++l) {
        if (is_none[l] == 0) continue;
        term.value.hi[l] = term.value.lo[l] = term.error[l] = 0;
      }
      sums[e].add(term.value, term.error);
    }
  }
  // Adds what a pair's score has beside the product; whether the mask has it.
  bool add_wide_bias(const row_state& s, int64_t head, int64_t c, num::wide<double>& bias) const {
    if (p.slopes != nullptr) {
      num::wide<double> along = num::arithmetic<num::wide<double>>::number(slope_of(head));
      num::multiply_by_value(along, distance(s, c));
      bias = num::add(bias, along);
    }
    double added = 0;
    if (is_masked(s, head, c, added)) return true;
    if (added != 0) num::add_value(bias, added);
    return false;
  }
  // e^(the score + bias): num::exponential_of.
  wide_v wide_weight(int r, int i, const wide_v& bias) const {
    num::tracked_sum<f64v> products;
    const double* const a = part(at_.rows[0]) + r * p.size;
    for (int64_t d = 0; d < p.size; ++d)
      products.add(broadcast<f64v>(a[d]) * widen(load<f32h>(numbers(at_.columns[0]) + d * block_columns + i)));
    const wide_v sum{products.total(), static_cast<double>(2 * p.size + 4) * u * products.error};
    const wide_v x = num::add(product(sum, {{broadcast<f64v>(p.scale), f64v{}}, f64v{}}), bias);
    const f64v zero{}, tiny = broadcast<f64v>(0x1p-865), unknown = broadcast<f64v>(num::infinity);
    const auto is_far = x.value.hi + x.error < num::least_gap - 1;
    const auto is_near = (x.value.hi <= -num::least_gap) & (x.error < 0x1p-10) & ~is_far;
    const auto e = num::wide_exp(is_near ? x.value.hi : zero, is_near ? x.value.lo : zero);
    return {{is_near ? e.hi : zero, is_near ? e.lo : zero},
            is_near  ? e.hi * (0x1p-96 + x.error * (1 + 0x1p-9))
            : is_far ? tiny
                     : unknown};
  }
  // T_c: attention_pair::factor.
  wide_v wide_factor(int r, int i, const i64v& is_dropped) const {
    const row_state& s = state_[r];
    num::tracked_sum<f64v> products;
    const double* const b = part(at_.rows[1]) + r * p.value_size;
    const T* const y = IsKey ? nullptr : given(s.head, s.at);
    const f64v zero{};
    auto differs = draws_.any() ? ~i64v{} : i64v{};
    for (int64_t e = 0; e < p.value_size; ++e) {
      const f64v x = broadcast<f64v>(b[e]), c = widen(load<f32h>(numbers(at_.columns[1]) + e * block_columns + i));
      products.add(is_dropped ? zero : x * c);
      if constexpr (IsKey) {
        differs |= x != widen(load<f32h>(numbers(at_.y) + e * block_columns + i));
      } else {
        differs |= c != broadcast<f64v>(num::widen(y[e * p.y_at.element]));
      }
    }
    wide_v d{{broadcast<f64v>(-s.d), broadcast<f64v>(-s.d_low)}, broadcast<f64v>(s.d_error)};
    if constexpr (IsKey) {
      d = {{-load<f64v>(part(at_.d) + i), -load<f64v>(part(at_.d_low) + i)}, load<f64v>(part(at_.d_error) + i)};
    }
    const wide_v t =
        num::add(wide_v{products.total(), static_cast<double>(2 * p.value_size + 4) * u * products.error}, d);
    return {{differs ? t.value.hi : zero, differs ? t.value.lo : zero}, differs ? t.error : zero};
  }
  void finish_wide(const wide_row& w, int64_t columns, tally& counted) {
    std::uint8_t* const is_open = open(w.row);
    for (int64_t e = 0; e < results_; ++e) {
      const int i = e < p.size ? 0 : 1;
      const int64_t at = i == 0 ? e : e - p.size;
      if (is_open[e] == 0 || !num::is_finite(part(at_.most[i])[at])) continue;
      num::wide_sum<double> all = num::lane(w.sums[e], 0);
      for (int l = 1; l < lanes64; ++l) all.merge(num::lane(w.sums[e], l));
      num::wide<double> x = all.total(columns);
      if (i == 0) num::scale_result(x, p.scale);
      if (draws_.any()) num::divide_by(x, draws_.wide_kept());
      const auto c = num::round_number<T>(x);
      if (!c.decided) continue;
      result(w.row, i, at) = c.value;
      is_open[e] = 0;
      counted.add(tier::double_double, 1);
    }
  }

  const plan::attention_plan& p;
  const attention_block b_;
  const layout at_;
  double* const memory_;
  const num::attention_draws draws_;
  const int64_t group_, size_[2], width_[2], results_;
  const T *q_, *k_, *v_, *g_, *y_;
  const float* lse_;
  int64_t mask_at_;
  T *grad_q_, *grad_k_, *grad_v_;
  row_state state_[attention_rows];
};

int64_t bytes(const plan::attention_plan& p) noexcept { return layout(p).total * 8; }

void run(const plan::attention_plan& p, const attention_block& b, bool is_key, tier first, void* workspace,
         gradient_rest& rest, tally& counted) noexcept {
  ops::for_each_format<ops::NARROW>([&]<class T>() {
    if (dtype_of<T> != p.type) return;
    const auto memory = static_cast<double*>(workspace);
    if (is_key) {
      gradient_block<T, true>(p, b, memory).run(first, rest, counted);
    } else {
      gradient_block<T, false>(p, b, memory).run(first, rest, counted);
    }
  });
}

}  // namespace

extern const gradient_kernels attention_gradients_table = {bytes, run};

}  // namespace repdl::cpu::REPDL_ISA
