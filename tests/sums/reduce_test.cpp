// The CPU reductions against GMP: every instruction set, several thread counts, every forced tier, many layouts, and
// data made of ties, near-ties, cancellation, subnormals, the overflow border and non-finite values. Bits are compared.
#include <doctest/doctest.h>
#include <gmp.h>
#include <mpfr.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/core/isa.hpp"
#include "librepdl/librepdl.hpp"
#include "librepdl/num/format.hpp"
#include "reference/covering.hpp"

namespace {

using repdl::tier;
using repdl::ops::op_id;
using repdl::plan::reduce_plan;

constexpr float largest_float = 0x1.fffffep127f;
constexpr float inf = std::numeric_limits<float>::infinity();

// ------------------------------------------------------------------------------------------------------------ oracle

// A type that has T's numbers.
template <class T>
using value_of = std::conditional_t<sizeof(T) == 8, double, float>;
template <class T>
value_of<T> value(T x) {
  return static_cast<value_of<T>>(repdl::num::widen(x));
}

// The exact sum of products of two numbers of T in units of 2^-unit, and what the non-finite terms say.
template <class T>
class exact_sum {
 public:
  using V = value_of<T>;
  static constexpr int unit = sizeof(T) == 8 ? 2148 : 298;
  exact_sum() { mpz_inits(sum_, term_, nullptr); }
  ~exact_sum() { mpz_clears(sum_, term_, nullptr); }
  exact_sum(const exact_sum&) = delete;
  exact_sum& operator=(const exact_sum&) = delete;

  void add(V a, V b) {
    if (!std::isfinite(a) || !std::isfinite(b)) {
      const double p = static_cast<double>(a) * static_cast<double>(b);
      nan_ |= std::isnan(p);
      positive_ |= p > 0;
      negative_ |= p < 0;
      return;
    }
    int ea = 0;
    int eb = 0;
    constexpr int p = std::numeric_limits<V>::digits;
    const auto ma = static_cast<long>(std::ldexp(std::frexp(a, &ea), p));
    const auto mb = static_cast<long>(std::ldexp(std::frexp(b, &eb), p));
    if (ma == 0 || mb == 0) return;
    mpz_set_si(term_, ma);
    mpz_mul_si(term_, term_, mb);
    const int shift = ea + eb - 2 * p + unit;
    if (shift >= 0) {
      mpz_mul_2exp(term_, term_, static_cast<unsigned>(shift));
    } else {
      mpz_tdiv_q_2exp(term_, term_, static_cast<unsigned>(-shift));  // exact: subnormal significands end in zeros
    }
    mpz_add(sum_, sum_, term_);
  }

  V rounded(std::int64_t divisor) const {
    using F = repdl::num::format<T>;
    if (nan_ || (positive_ && negative_)) return std::numeric_limits<V>::quiet_NaN();
    if (positive_) return static_cast<V>(inf);
    if (negative_) return static_cast<V>(-inf);
    if (mpz_sgn(sum_) == 0) return 0;
    const mpfr_exp_t emin = mpfr_get_emin();
    const mpfr_exp_t emax = mpfr_get_emax();
    mpq_t q;
    mpq_init(q);
    mpz_set(mpq_numref(q), sum_);
    mpz_set_ui(mpq_denref(q), static_cast<unsigned long>(divisor));
    mpz_mul_2exp(mpq_denref(q), mpq_denref(q), unit);
    mpq_canonicalize(q);
    mpfr_set_emin(F::emin - F::precision + 2);
    mpfr_set_emax(F::emax + 1);
    mpfr_t x;
    mpfr_init2(x, F::precision);
    const int t = mpfr_set_q(x, q, MPFR_RNDN);
    mpfr_subnormalize(x, mpfr_check_range(x, t, MPFR_RNDN), MPFR_RNDN);
    const auto f = static_cast<V>(mpfr_get_d(x, MPFR_RNDN));
    mpfr_clear(x);
    mpq_clear(q);
    mpfr_set_emin(emin);
    mpfr_set_emax(emax);
    return f;
  }

 private:
  mpz_t sum_, term_;
  bool nan_ = false;
  bool positive_ = false;
  bool negative_ = false;
};

// True if b comes before a: NaN first, then the larger value, +0 over -0.
template <class V>
bool beats(V b, V a, bool minimum) {
  if (std::isnan(a)) return false;
  if (std::isnan(b)) return true;
  if (a == 0 && b == 0) return minimum ? std::signbit(b) && !std::signbit(a) : std::signbit(a) && !std::signbit(b);
  return minimum ? b < a : b > a;
}

// ----------------------------------------------------------------------------------------------------------- layouts

struct layout {
  std::vector<std::int64_t> kept;
  std::vector<std::int64_t> reduced;
  std::vector<std::int64_t> kept_stride[2];
  std::vector<std::int64_t> reduced_stride[2];
  std::vector<std::int64_t> out_stride;
};

// Both operands alike, output contiguous (the last kept axis has output stride `out`).
layout alike(std::vector<std::int64_t> kept, std::vector<std::int64_t> kept_stride, std::vector<std::int64_t> reduced,
             std::vector<std::int64_t> reduced_stride, std::int64_t out = 1) {
  layout l{kept, reduced, {kept_stride, kept_stride}, {reduced_stride, reduced_stride}, kept};
  for (std::size_t d = kept.size(); d-- > 0;) {
    l.out_stride[d] = out;
    out *= kept[d];
  }
  return l;
}

std::vector<layout> layouts() {
  std::vector<layout> all;
  for (std::int64_t n : {0, 1, 2, 7, 33, 100, 300, 2048, 2049, 5000}) all.push_back(alike({5}, {n}, {n}, {1}));
  for (std::int64_t c : {8, 37, 600}) {
    for (std::int64_t n : {1, 2, 7, 64, 513}) all.push_back(alike({c}, {1}, {n}, {c}, 2));
  }
  struct row {
    std::vector<std::int64_t> kept, kept_stride, reduced, reduced_stride;
    std::int64_t out = 1;
  };
  const row rows[] = {
      {{}, {}, {1}, {1}},
      {{}, {}, {100000}, {1}},
      {{}, {}, {70000}, {3}},
      {{3}, {40000}, {40000}, {1}},
      {{9}, {1}, {20000}, {9}},  // long columns: several threads share the rows
      {{130}, {1}, {3000}, {130}},
      {{4}, {-777}, {777}, {-1}},
      {{4}, {1}, {50}, {0}},                // broadcast: every term the same
      {{3, 20}, {20 * 40, 1}, {40}, {20}},  // a middle axis
      {{6}, {9}, {4, 9}, {54, 1}},          // two reduced axes, short runs
      {{2, 3}, {1, 5000}, {5, 400}, {2, 11}, -1},
      {{2}, {5000}, {3, 700}, {800, 1}},  // long runs that are viewed, not packed
      {{300}, {5}, {5}, {1}},             // short rows: gathered
      {{20, 30}, {1, 20 * 7}, {7}, {20}},
      {{9000}, {8}, {8}, {1}},
  };
  for (const row& r : rows) all.push_back(alike(r.kept, r.kept_stride, r.reduced, r.reduced_stride, r.out));
  layout mixed = alike({40}, {60}, {60}, {1});  // dot: a row against a column
  mixed.kept_stride[1] = {1};
  mixed.reduced_stride[1] = {40};
  all.push_back(mixed);
  mixed = alike({40}, {1}, {60}, {40});  // dot: columns against one vector
  mixed.kept_stride[1] = {0};
  mixed.reduced_stride[1] = {1};
  all.push_back(mixed);
  return all;
}

std::int64_t product(const std::vector<std::int64_t>& v) {
  std::int64_t p = 1;
  for (std::int64_t x : v) p *= x;
  return p;
}

// The lowest and highest offset that strides reach.
void extent(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& stride, std::int64_t& lo,
            std::int64_t& hi) {
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t reach = (std::max<std::int64_t>(shape[d], 1) - 1) * stride[d];
    (reach < 0 ? lo : hi) += reach;
  }
}

std::int64_t offset(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& stride, std::int64_t i) {
  std::int64_t at = 0;
  for (std::size_t d = shape.size(); d-- > 0;) {
    at += i % shape[d] * stride[d];
    i /= shape[d];
  }
  return at;
}

// -------------------------------------------------------------------------------------------------------------- data

constexpr int kinds = 14;

template <class T>
std::vector<T> make(int kind, std::int64_t n, std::mt19937_64& g) {
  using F = repdl::num::format<T>;
  using V = value_of<T>;
  constexpr bool is_f16 = std::is_same_v<T, repdl::f16>, is_wide = sizeof(T) == 8;
  const auto power = [](int e) { return std::ldexp(V{1}, e); };
  const int p = F::precision;
  const V least = power(F::emin - p + 1);
  const V largest = std::ldexp(2 - std::ldexp(V{1}, 1 - p), F::emax);
  const V nan =
      std::bit_cast<V>(static_cast<typename repdl::num::format<V>::storage>(is_wide ? 0x7ff4000000001234 : 0x7fa01234));
  const V tiny = is_wide ? power(-160) : is_f16 ? least : power(-100), great = power(is_f16 ? 14 : 60);
  std::vector<V> x(static_cast<std::size_t>(n));
  std::normal_distribution<V> normal;
  const auto pick = [&](std::initializer_list<V> from) {
    const V v = from.begin()[g() % from.size()];
    return (g() & 1) != 0 ? -v : v;
  };
  for (auto& v : x) {
    const int spread = is_f16    ? static_cast<int>(g() % 36) - 24
                       : is_wide ? static_cast<int>(g() % 2020) - 1060
                                 : static_cast<int>(g() % 240) - 140;
    switch (kind) {
      case 0:
        do v = value(std::bit_cast<T>(static_cast<typename F::storage>(g())));
        while (!std::isfinite(v));
        break;
      case 1:
        v = normal(g);
        break;
      case 2:
        v = static_cast<V>(static_cast<int>(g() % 4097) - 2048) / 2;
        break;  // zeros and ties
      case 3:
        v = pick({1, power(-p), power(p), 3, power(-1)});
        break;  // midpoints
      case 4:
        v = pick({1, power(-p), tiny, least, great});
        break;  // next to midpoints
      case 5:
        v = pick({largest, largest, power(F::emax - p), power(F::emax - p - 1)});
        break;  // the overflow border
      case 6:
        v = static_cast<V>(static_cast<int>(g() % 33) - 16) * least;
        break;  // subnormal
      case 7:
        v = std::ldexp(normal(g), spread);
        break;  // wide exponents
      case 8:
        v = -V{0};
        break;
      case 9:
        v = g() % 400 == 0 ? pick({std::numeric_limits<V>::infinity(), nan, 0}) : normal(g);
        break;
      case 10:
        v = g() % 300 == 0 ? std::numeric_limits<V>::infinity() : pick({0, 1});
        break;
      default:
        v = std::ldexp(normal(g), spread);
    }
    if constexpr (!is_wide) v = value(repdl::num::narrow<T>(v));
  }
  if (kind >= 11) {  // neighbours cancel
    for (std::size_t i = 0; i + 1 < x.size(); i += 2) x[i + 1] = -x[i];
  }
  if (kind >= 12) {  // what is left lies next to midpoints, below the resolution of a double-double and just within it
    const V one = kind == 12 ? 1 : power(is_f16 ? -10 : -60);
    const V rest = kind == 12 ? std::max(power(-95), least) : least;
    for (std::size_t i = 0; i + 1 < x.size(); i += 2) {
      if (g() % 16 == 0) {
        x[i] = pick({one, one, rest});
        x[i + 1] = pick({one * power(-p), one * power(-p), 0});
      }
    }
  }
  std::vector<T> all(x.size());
  std::transform(x.begin(), x.end(), all.begin(), [](V v) { return repdl::num::narrow<T>(v); });
  return all;
}

// --------------------------------------------------------------------------------------------------------------- run

struct tested {
  long outputs = 0;
  long wrong = 0;
  std::string first;
};

template <class T>
void check(const layout& l, int number, int kind, std::mt19937_64& g, tested& result, repdl::statistics& seen,
           repdl::reference::covering& settings) {
  const std::int64_t outputs = product(l.kept);
  const std::int64_t length = product(l.reduced);
  using bits = typename repdl::num::format<T>::storage;
  std::vector<T> data[2];
  const T* origin[2];
  for (int k = 0; k < 2; ++k) {
    std::int64_t lo = 0;
    std::int64_t hi = 0;
    extent(l.kept, l.kept_stride[k], lo, hi);
    extent(l.reduced, l.reduced_stride[k], lo, hi);
    data[k] = make<T>(k == 0 ? kind : static_cast<int>(g() % kinds), hi - lo + 1, g);
    origin[k] = data[k].data() - lo;
  }
  std::int64_t out_lo = 0;
  std::int64_t out_hi = 0;
  extent(l.kept, l.out_stride, out_lo, out_hi);
  for (op_id op : {op_id::sum, op_id::mean, op_id::dot, op_id::max, op_id::min, op_id::argmax, op_id::argmin,
                   op_id::prelu_weight_backward}) {
    const bool order = op == op_id::max || op == op_id::min || op == op_id::argmax || op == op_id::argmin;
    if (order && length == 0) continue;
    const bool index = op == op_id::argmax || op == op_id::argmin;
    reduce_plan p{};
    p.op = op;
    p.type = repdl::dtype_of<T>;
    p.inputs = op == op_id::dot || op == op_id::prelu_weight_backward ? 2 : 1;
    p.kept_rank = static_cast<int>(l.kept.size());
    p.reduced_rank = static_cast<int>(l.reduced.size());
    p.outputs = outputs;
    p.length = length;
    std::copy(l.kept.begin(), l.kept.end(), p.kept_shape.begin());
    std::copy(l.reduced.begin(), l.reduced.end(), p.reduced_shape.begin());
    std::copy(l.out_stride.begin(), l.out_stride.end(), p.out_stride.begin());
    for (int k = 0; k < p.inputs; ++k) {
      p.in[k].data = origin[k];
      std::copy(l.kept_stride[k].begin(), l.kept_stride[k].end(), p.in[k].kept_stride.begin());
      std::copy(l.reduced_stride[k].begin(), l.reduced_stride[k].end(), p.in[k].reduced_stride.begin());
    }
    const auto cells = static_cast<std::size_t>(out_hi - out_lo + 1);
    std::vector<std::int64_t> want(cells, 0x7777);
    for (std::int64_t o = 0; o < outputs; ++o) {
      const T* x = origin[0] + offset(l.kept, l.kept_stride[0], o);
      const T* y = origin[1] + offset(l.kept, l.kept_stride[1], o);
      auto& cell = want[static_cast<std::size_t>(offset(l.kept, l.out_stride, o) - out_lo)];
      if (order) {
        const bool minimum = op == op_id::min || op == op_id::argmin;
        std::int64_t best = 0;
        value_of<T> best_value = value(x[offset(l.reduced, l.reduced_stride[0], 0)]);
        for (std::int64_t i = 1; i < length; ++i) {
          const value_of<T> v = value(x[offset(l.reduced, l.reduced_stride[0], i)]);
          if (beats(v, best_value, minimum)) {
            best = i;
            best_value = v;
          }
        }
        cell = index ? best : std::bit_cast<bits>(repdl::num::narrow<T>(best_value));
      } else {
        exact_sum<T> s;
        for (std::int64_t i = 0; i < length; ++i) {
          const value_of<T> second = p.inputs == 2 ? value(y[offset(l.reduced, l.reduced_stride[1], i)]) : 1;
          if (op == op_id::prelu_weight_backward && second > 0) continue;
          s.add(value(x[offset(l.reduced, l.reduced_stride[0], i)]), second);
        }
        const value_of<T> rounded = op != op_id::mean ? s.rounded(1)
                                    : length == 0     ? std::numeric_limits<value_of<T>>::quiet_NaN()
                                                      : s.rounded(length);
        cell = static_cast<std::int64_t>(std::bit_cast<bits>(repdl::num::narrow<T>(rounded)));  // exact
      }
    }
    int setting = 0;
    for (const auto& set : repdl::cpu::all_instruction_sets()) {
      if (!set.available()) continue;
      for (const int threads : {1, 2, 7}) {
        for (const tier first : {tier::proved, tier::double_double, tier::exact}) {
          ++setting;
          if (order && first != tier::proved) continue;
          if (!settings.takes(setting, {100 * number + static_cast<int>(op), 100 * kind + static_cast<int>(op)})) {
            continue;
          }
          std::vector<std::int64_t> wide(index ? cells : 0, 0x7777);
          std::vector<bits> narrow(index ? 0 : cells, 0x7777);
          p.out = index ? static_cast<void*>(wide.data() - out_lo) : static_cast<void*>(narrow.data() - out_lo);
          repdl::cpu::counters count;
          repdl::dispatch::stored_task task;
          repdl::cpu::prepare(p, {{threads, nullptr, first, 2048, nullptr}, set, count}, task);
          const std::size_t bytes = task->bytes().value();
          void* const workspace = ::operator new (bytes + 1, std::align_val_t{256});
          std::memset(workspace, 0x7f, bytes + 1);  // nothing may be read before it is written
          task->run(workspace);
          ::operator delete (workspace, std::align_val_t{256});
          for (std::size_t i = 0; i < cells; ++i) {
            const std::int64_t got = index ? wide[i] : static_cast<std::int64_t>(narrow[i]);
            if (got != want[i] && result.wrong++ == 0) {
              result.first = std::string(set.name) + " " + std::string(repdl::name_of(p.type)) + " op " +
                             std::to_string(static_cast<int>(op)) + " kind " + std::to_string(kind) + " threads " +
                             std::to_string(threads) + " tier " + std::to_string(static_cast<int>(first)) +
                             " outputs " + std::to_string(outputs) + " length " + std::to_string(length) + " cell " +
                             std::to_string(i) + " got " + std::to_string(got) + " want " + std::to_string(want[i]);
            }
          }
          result.outputs += outputs;
          std::int64_t counted = 0;
          for (int t = 0; t < 4; ++t) {
            counted += count.elements[t];
            seen.elements[t] += count.elements[t];
          }
          if (counted != outputs) ++result.wrong;
          if (first == tier::exact && count.elements[2] != 0) ++result.wrong;
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("prelu_weight_backward: axes, special values, and what is refused") {
  using namespace repdl;
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  context ctx({.threads = 1});
  const auto run = [&](const std::vector<float>& g, const std::vector<float>& x, sizes shape, sizes out_shape,
                       const reduce_options& o) {
    std::vector<float> out(8, -7);
    const tensor_view to(out.data(), dtype::f32, out_shape);
    prelu_backward_w(ctx, const_tensor_view(g.data(), dtype::f32, shape),
                     const_tensor_view(x.data(), dtype::f32, shape), to, o);
    out.resize(static_cast<std::size_t>(to.count()));
    return out;
  };
  const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
  };
  // One weight, and one for each of two channels (axis 1).
  const std::vector<float> g{1, 2, 3, 4, 5, 6, 7, 8}, x{-1, 1, -2, 2, 3, -3, -4, 4};
  CHECK(same(run(g, x, {2, 2, 2}, {}, {}), {-1 - 6 - 18 - 28}));
  CHECK(same(run(g, x, {2, 2, 2}, {2}, {.axis = sizes{0, 2}}), {-1 - 18, -6 - 28}));
  CHECK(same(run(g, x, {2, 2, 2}, {1, 2, 1}, {.axis = sizes{0, 2}, .keepdim = true}), {-1 - 18, -6 - 28}));
  // x > 0 gives +0, whatever g is; -0 and NaN are not > 0.
  CHECK(same(run({inf, nan, 1}, {1, inf, 0x1p-149f}, {3}, {}, {}), {0.0f}));
  CHECK(same(run({1, -1}, {-0.0f, -0.0f}, {2}, {}, {}), {0.0f}));
  CHECK(same(run({1}, {-1}, {0}, {}, {}), {0.0f}));
  CHECK(std::isnan(run({inf}, {0.0f}, {1}, {}, {})[0]));
  CHECK(std::isnan(run({0}, {nan}, {1}, {}, {})[0]));
  CHECK(run({inf, 1}, {-1, -2}, {2}, {}, {})[0] == -inf);
  CHECK(run({largest_float, largest_float, largest_float}, {-1, 2, -1}, {3}, {}, {})[0] == -inf);
  const const_tensor_view two(g.data(), dtype::f32, {2}), four(x.data(), dtype::f32, {4});
  float out = 0;
  try {
    prelu_backward_w(ctx, two, four, tensor_view(&out, dtype::f32, {}));
    CHECK(false);
  } catch (const error& e) {
    CHECK(e.site() == error_site::gradient_shape);
  }
}

TEST_CASE("cpu reductions are the correctly rounded exact results: every layout, format, ISA, thread count and tier" *
          doctest::test_suite("portable values")) {
  repdl::ops::for_each_format<repdl::ops::FLOATS>([]<class T>() {
    std::mt19937_64 g(20240607);
    tested result;
    repdl::statistics seen;
    repdl::reference::covering settings(6);
    // Of 16 and 64 bits a third of the problems, other ones of each format.
    const int number_of_type = static_cast<int>(repdl::dtype_of<T>) % 3;
    int number = 0;
    for (const layout& l : layouts()) {
      for (int kind = 0; kind < kinds; ++kind) {
        const bool left_out = sizeof(T) != 4 && (number + kind) % 3 != number_of_type;
        if (!left_out) check<T>(l, number, kind, g, result, seen, settings);
      }
      ++number;
    }
    INFO(result.first);
    CHECK(result.wrong == 0);
    MESSAGE(repdl::name_of(repdl::dtype_of<T>)
            << ": " << result.outputs << " outputs; proved " << seen.elements[0] << ", binary64 " << seen.elements[1]
            << ", double-double " << seen.elements[2] << ", exact " << seen.elements[3]);
    for (int t = 0; t < 4; ++t)
      CHECK((seen.elements[t] > 0) == (sizeof(T) < 8 || t != static_cast<int>(tier::binary64)));
  });
}

TEST_CASE("max, min, argmax, argmin of binary64: rows and columns, every ISA and thread count") {
  using namespace repdl;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::mt19937_64 g(64);
  const auto beats_in = [](double v, double best, bool minimum) {
    if (std::isnan(best)) return false;
    if (std::isnan(v) || v != best) return std::isnan(v) || (minimum ? v < best : v > best);
    return std::signbit(best) != minimum && std::signbit(v) == minimum;
  };
  struct problem {
    std::int64_t outer, length, inner;
  };
  const problem problems[] = {{1, 1, 1}, {3, 1, 5}, {1, 40001, 1}, {3, 700, 1}, {1, 2, 700}, {2, 1500, 33}, {70, 9, 1}};
  for (const problem& p : problems) {
    const sizes shape{p.outer, p.length, p.inner}, out_shape{p.outer, p.inner};
    const auto outputs = static_cast<std::size_t>(p.outer * p.inner);
    for (int kind = 0; kind < 4; ++kind) {
      std::vector<double> x(static_cast<std::size_t>(p.outer * p.length * p.inner));
      for (double& v :
           x) {  // any; few different ones; zeros; close to each other, where binary32 sees none of the difference
        const std::uint64_t r = g();
        constexpr double few[] = {1, -1, -0.0, 0.0, infinity, -infinity, 2, -2};
        v = kind == 0   ? std::bit_cast<double>(r)
            : kind == 1 ? few[r % 8]
            : kind == 2 ? few[2 + r % 2]
                        : 1 + std::ldexp(r % 64, -52);
        if (kind == 3 && r % 997 == 0 && (r >> 32) % 2 == 0) v = std::bit_cast<double>(0xfff0000000000001);
      }
      // As it is, and every second element of a row backwards.
      std::vector<double> spread(2 * x.size());
      for (std::size_t i = 0; i < x.size(); ++i) spread[2 * (x.size() - 1 - i) + 1] = x[i];
      const const_tensor_view views[] = {
          {x.data(), dtype::f64, shape},
          {spread.data() + spread.size() - 1, dtype::f64, shape, sizes{-2 * p.length * p.inner, -2 * p.inner, -2}}};
      for (const bool minimum : {false, true}) {
        std::vector<std::uint64_t> values(outputs);
        std::vector<std::int64_t> places(outputs);
        for (std::size_t o = 0; o < outputs; ++o) {
          const auto inner = static_cast<std::size_t>(p.inner), length = static_cast<std::size_t>(p.length);
          const double* const row = x.data() + o / inner * length * inner + o % inner;
          std::size_t best = 0;
          for (std::size_t i = 1; i < length; ++i) {
            if (beats_in(row[i * inner], row[best * inner], minimum)) best = i;
          }
          places[o] = static_cast<std::int64_t>(best);
          const double v = row[best * inner];
          values[o] = std::isnan(v) ? 0x7ff8000000000000 : std::bit_cast<std::uint64_t>(v);
        }
        for (const isa_info& isa : instruction_sets()) {
          if (!isa.available) continue;
          for (const int threads : {1, 3}) {
            context ctx({.threads = threads, .isa = isa.name});
            for (const const_tensor_view& view : views) {
              std::vector<double> value(outputs);
              std::vector<std::int64_t> place(outputs);
              using function = void (*)(context&, const_tensor_view, tensor_view, const reduce_options&);
              const function extreme = minimum ? function{repdl::min} : function{repdl::max};
              const function where_it_is = minimum ? function{argmin} : function{argmax};
              extreme(ctx, view, tensor_view(value.data(), dtype::f64, out_shape), {.axis = 1});
              where_it_is(ctx, view, tensor_view(place.data(), dtype::i64, out_shape), {.axis = 1});
              INFO(isa.name, " kind ", kind, " length ", p.length, " inner ", p.inner);
              CHECK(std::memcmp(value.data(), values.data(), 8 * outputs) == 0);
              CHECK(place == places);
            }
          }
        }
      }
    }
  }
}

// Each block's sum begins from a number that is large beside the terms, as those of the block before say.
TEST_CASE("sums of binary64: magnitudes that change from block to block") {
  using namespace repdl;
  std::mt19937_64 g(2048);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto any = [&] {
    const auto m = static_cast<double>(static_cast<std::int64_t>(g()) >> 10);
    return std::ldexp(m, -53 - static_cast<int>(g() % 30));
  };
  struct problem {
    const char* name;
    double (*term)(std::int64_t block, std::int64_t i, double any);
  };
  const problem problems[] = {
      {"of one magnitude", [](std::int64_t, std::int64_t, double a) { return a; }},
      {"equal", [](std::int64_t, std::int64_t, double) { return -1.0; }},
      {"equal, with all bits", [](std::int64_t, std::int64_t, double) { return 0x1.fffffffffffffp-3; }},
      {"growing", [](std::int64_t b, std::int64_t, double a) { return std::ldexp(a, static_cast<int>(60 * b)); }},
      {"growing a little",
       [](std::int64_t b, std::int64_t, double a) { return std::ldexp(a, static_cast<int>(14 * b)); }},
      {"growing, of one sign",
       [](std::int64_t b, std::int64_t, double a) { return -std::abs(std::ldexp(a, static_cast<int>(18 * b))); }},
      {"shrinking", [](std::int64_t b, std::int64_t, double a) { return std::ldexp(a, static_cast<int>(-60 * b)); }},
      {"just within the room", [](std::int64_t b, std::int64_t, double) { return b % 2 == 0 ? 0.1 : -0.8; }},
      {"just beyond it",
       [](std::int64_t b, std::int64_t, double) { return b % 2 == 0 ? 0.1 : std::nextafter(-0.8, -1.0); }},
      {"zeros first", [](std::int64_t b, std::int64_t, double a) { return b < 2 ? -0.0 : a; }},
      {"zeros last", [](std::int64_t b, std::int64_t, double a) { return b < 2 ? a : 0.0; }},
      {"one great term", [](std::int64_t b, std::int64_t i, double a) { return b == 1 && i == 2047 ? 0x1p90 : a; }},
      {"great ones that cancel",
       [](std::int64_t b, std::int64_t i, double a) {
         return i == 5 ? (b == 0 ? 0x1p300 : b == 2 ? -0x1p300 : a) : a;
       }},
      {"at the end of the range",
       [](std::int64_t b, std::int64_t i, double a) { return std::ldexp(a, 1005 + static_cast<int>(b + i % 2)); }},
      {"of few bits, beyond its end",
       [](std::int64_t b, std::int64_t, double) { return b < 10 ? 0x1p1010 : -0x1p1010; }},
      {"beyond its end", [](std::int64_t b, std::int64_t, double a) { return std::ldexp(a, b == 1 ? 1023 : 0); }},
      {"subnormal", [](std::int64_t, std::int64_t, double a) { return std::ldexp(a, -1060); }},
      {"subnormal, then not",
       [](std::int64_t b, std::int64_t, double a) { return std::ldexp(a, b == 0 ? -1060 : -1000); }},
      {"an infinity", [](std::int64_t b, std::int64_t i, double a) { return b == 2 && i == 9 ? -infinity : a; }},
      {"a NaN", [](std::int64_t b, std::int64_t i, double a) {
         return b == 1 && i == 9 ? std::numeric_limits<double>::quiet_NaN() : a;
       }}};
  for (const problem& p : problems) {
    for (const std::int64_t n : {2048 * 3, 2048 * 3 + 77, 2048 + 1, 700, 2048 * 8, 2048 * 20}) {
      if (n > 10'000 && std::string_view(p.name) != "of few bits, beyond its end") continue;
      std::vector<double> x(static_cast<std::size_t>(n)), y(x.size());
      exact_sum<double> sum, dot, squares;
      for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = p.term(static_cast<std::int64_t>(i) / 2048, static_cast<std::int64_t>(i) % 2048, any());
        y[i] = std::ldexp(any(), static_cast<int>(i) / 3000);
        sum.add(x[i], 1);
        dot.add(x[i], y[i]);
        squares.add(x[i], x[i]);
      }
      const double want[] = {sum.rounded(1), dot.rounded(1), squares.rounded(1)};
      for (const isa_info& isa : instruction_sets()) {
        if (!isa.available) continue;
        for (const int threads : {1, 3}) {
          context ctx({.threads = threads, .isa = isa.name});
          double got[3] = {7, 7, 7};
          const auto to = [&](int i) { return tensor_view(&got[i], dtype::f64, sizes{}); };
          repdl::sum(ctx, x, to(0));
          repdl::dot(ctx, x, y, to(1));
          repdl::sum_squares(ctx, x, to(2));
          for (int i = 0; i < 3; ++i) {
            INFO(std::string(p.name), ", ", n, " terms, ", isa.name, ", ", threads, " threads, ", i, ": ", got[i],
                 ", not ", want[i]);
            CHECK((std::bit_cast<std::uint64_t>(got[i]) == std::bit_cast<std::uint64_t>(want[i]) ||
                   (std::isnan(got[i]) && std::isnan(want[i]))));
          }
          if (std::string_view(p.name) == "of one magnitude")
            CHECK(ctx.read_statistics().elements[static_cast<int>(tier::double_double)] == 3);
        }
      }
    }
  }
}

// Where nothing is rounded the first tier decides zeros and ties, too.
TEST_CASE("sums of binary64: numbers of few bits do not escalate") {
  using namespace repdl;
  for (const std::int64_t half : {3, 700, 4096, 10'001}) {
    std::vector<double> x(static_cast<std::size_t>(2 * half)), y(x.size());
    std::mt19937_64 g(31);
    for (std::size_t i = 0; i < x.size(); i += 2) {
      x[i] = static_cast<double>(static_cast<int>(g() % 2001) - 1000) / 8;
      y[i] = static_cast<double>(static_cast<int>(g() % 2001) - 1000);
      x[i + 1] = -x[i];
      y[i + 1] = y[i];
    }
    for (const isa_info& isa : instruction_sets()) {
      if (!isa.available) continue;
      for (const int threads : {1, 3}) {
        context ctx({.threads = threads, .isa = isa.name});
        double got[3] = {7, 7, 7};
        const auto to = [&](int i) { return tensor_view(&got[i], dtype::f64, sizes{}); };
        repdl::sum(ctx, x, to(0));
        repdl::mean(ctx, x, to(1));
        repdl::dot(ctx, x, y, to(2));
        for (const double v : got) CHECK(std::bit_cast<std::uint64_t>(v) == 0);
        // 2^53 + 1, and twice 2^53 + 3 / 2, less than that: ties.
        std::vector<double> ties{0x1p53, 1};
        repdl::sum(ctx, ties, to(0));
        ties = {0x1p53, 0x1p53, 2};
        ties.resize(2048);
        repdl::sum(ctx, ties, to(1));
        INFO(isa.name, ", ", threads, " threads, ", half);
        CHECK(got[0] == 0x1p53);
        CHECK(got[1] == 0x1p54);
        const statistics s = ctx.read_statistics();
        CHECK(s.elements[static_cast<int>(tier::double_double)] == 3);
        CHECK(s.elements[static_cast<int>(tier::exact)] == 2);
      }
    }
  }
}
