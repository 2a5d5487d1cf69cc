// Losses and their gradients against the oracle: elements of both tiers, with divisors and
// parameters of few and of many bits; sums and means of none, one and many elements, ties among them, from every tier; strides,
// broadcasting, threads.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "librepdl/ops/losses/losses_entropy.hpp"
#include "reference/evaluate.hpp"
#include "reference/layout.hpp"
#include "reference/samples.hpp"
#include "reference/structured/structured.hpp"
#include "tests/helpers/class_engines.hpp"
#include "tests/helpers/placed_tensor.hpp"

using namespace repdl;
using reference::array;
using reference::outcomes;
using reference::sample_class;
using reference::shape_list;

namespace {

using patterns = std::vector<std::uint64_t>;

// beta or delta: simple, of many bits, the ends of the range; 0 for smooth_l1_loss alone.
constexpr double parameters[] = {
    1, 0.5, 0.1, 3, 0x1.fffffffffffffp-3, 0x1p-24, 0x1.8p-140, 0x1p-200, 0x1.fffffffffffffp199, 0};
template <class Op>
inline constexpr bool is_divergence = std::is_same_v<typename Op::attrs, kl_div_options>;
template <class Op>
double parameter_at(std::uint64_t choice) {
  if constexpr (is_divergence<Op>) return choice % 2 == 0 ? 0 : 1;  // log_target
  constexpr bool positive = std::is_same_v<typename Op::attrs, huber_loss_options>;
  if constexpr (!positive && !std::is_same_v<typename Op::attrs, smooth_l1_loss_options>) return 0;
  return parameters[choice % (std::size(parameters) - (positive ? 1 : 0))];
}
// What gradients are divided by.
constexpr std::int64_t divisors[] = {
    1, 1, 2, 3, 7, 1000, 1 << 20, (1 << 27) - 1, 1 << 27, (1 << 27) + 1, 999999937, (std::int64_t{1} << 52) + 1};

struct counts {
  std::int64_t tuples = 0;
  std::int64_t open = 0;    // by the first tier
  std::int64_t forced = 0;  // decided by the first tier all the same
  std::int64_t ties = 0;
  std::int64_t wrong = 0;
};

// What is not the operation's own takes this: most of the file would be compiled for every operation and format.
struct loss {
  std::string_view name;
  ops::op_id id;
  ops::proof_kind proof;
  std::span<const ops::operand> in;
  bool is_gradient, is_divergence;
  double (*parameter_at)(std::uint64_t choice);
};
template <class Op>
constexpr loss loss_of = {Op::name,          Op::id,          Op::row.proof, Op::in, ops::is_gradient<Op>,
                          is_divergence<Op>, parameter_at<Op>};
template <class F>
void for_each_loss(const F& f) {
  ops::for_each_structured([&]<class Op>() {
    if constexpr (Op::row.kind == ops::family::loss) f.template operator()<Op>();
  });
}
const std::vector<loss>& all_losses() {
  static const std::vector<loss> all = [] {
    std::vector<loss> list;
    for_each_loss([&]<class Op>() { list.push_back(loss_of<Op>); });
    return list;
  }();
  return all;
}

void check_result(bool decided, std::uint64_t got, std::uint64_t want, std::string_view name, const char* tier,
                  const patterns& in, double c, std::int64_t n, counts& counted) {
  if ((decided && got == want) || ++counted.wrong > 5) return;
  std::ostringstream operands;
  for (const std::uint64_t x : in) operands << ' ' << std::hex << x;
  INFO(name, " ", tier, operands.str(), std::hexfloat, " parameter ", c, std::dec, " divisor ", n);
  CHECK(got == want);
  CHECK(decided);
}
template <class Op, class T>
void check(const patterns& in, double c, std::int64_t n, counts& counted) {
  reference::outcome where;
  const std::uint64_t want = reference::loss_element(Op::name, dtype_of<T>, in.data(), c, n, &where);
  const auto of = [&](std::size_t k) { return num::widen(num::from_bits<T>(static_cast<num::storage_of<T>>(in[k]))); };
  for (const bool force : {false, true}) {
    const ops::loss_constants k = num::make_loss_constants(c, n, ops::is_gradient<Op>, force);
    num::decided_value<T> first, last;
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      first = num::evaluate_loss<T, Op>(k, of(K)...);
      last = num::decide_loss<T, Op>(k, 2048, of(K)...);
    }
    (std::make_index_sequence<std::size(Op::in)>());
    if (first.decided) check_result(true, num::to_bits(first.value), want, Op::name, "first", in, c, n, counted);
    check_result(last.decided, num::to_bits(last.value), want, Op::name, "last", in, c, n, counted);
    if (!force) counted.open += first.decided ? 0 : 1;
    if (force) counted.forced += first.decided && !where.nan ? 1 : 0;
  }
  ++counted.tuples;
  counted.ties += where.tie ? 1 : 0;
}

template <class T>
patterns landmarks() {
  using F = num::format<T>;
  const std::uint64_t normal = std::uint64_t{1} << (F::precision - 1), infinity = F::infinity;
  patterns list = {0, 1, 2, normal - 1, normal, infinity - 1, infinity, F::nan, infinity + 1};
  for (const double v : {0.5, 1.0, 1.5, 2.0, 3.0, 1000.0}) list.push_back(num::to_bits(num::narrow<T>(v)));
  list.push_back(num::to_bits(num::narrow<T>(1.0)) + 1);
  const std::size_t size = list.size();
  for (std::size_t i = 0; i < size; ++i) list.push_back(list[i] | num::sign_mask<T>);
  return list;
}

using check_function = void(const patterns& in, double c, std::int64_t n, counts& counted);
template <class T>
counts check_elements(const loss& op, check_function* check, int many) {
  const bool gradient = op.is_gradient;
  counts counted;
  std::mt19937_64 engine{static_cast<std::uint64_t>(op.id) * 8 + sizeof(T)};
  const auto divisor = [&] { return gradient ? divisors[engine() % std::size(divisors)] : std::int64_t{1}; };
  patterns in(op.in.size());
  const patterns marks = landmarks<T>();
  for (const std::uint64_t x : marks) {
    for (const std::uint64_t t : marks) {
      for (std::uint64_t& a : in) a = marks[engine() % marks.size()];
      in[gradient ? 1 : 0] = x;
      in[gradient ? 2 : 1] = t;
      check(in, op.parameter_at(engine()), divisor(), counted);
    }
  }
  if (gradient) {  // soft_margin_loss's is g t / 2 at x = 0: half of the least number
    in[0] = 1, in[1] = 0, in[2] = num::to_bits(num::narrow<T>(1.0));
    check(in, op.parameter_at(0), 1, counted);
  }
  const shape_list shape{many};
  for (const sample_class c : reference::element_classes) {
    const double parameter = op.parameter_at(engine());
    attributes attrs{{"reduction", std::string("none")}};
    if (op.is_divergence) attrs.push_back({"log_target", parameter != 0});
    const std::vector<array> v =
        reference::fill_losses(std::string(op.name), c, dtype_of<T>, std::vector<shape_list>(op.in.size(), shape),
                               attrs, 3, static_cast<std::uint64_t>(op.id));
    for (std::size_t i = 0; i < static_cast<std::size_t>(many); ++i) {
      for (std::size_t k = 0; k < op.in.size(); ++k) in[k] = v[k].get(i);
      check(in, op.is_divergence ? parameter : op.parameter_at(engine()), divisor(), counted);
    }
  }
  for (int i = 0; i < many; ++i) {  // few bits, far apart at times: d has more than 53 bits
    for (std::uint64_t& a : in) {
      const int e = i % 3 == 0 ? static_cast<int>(engine() % 100) - 50 : static_cast<int>(engine() % 8) - 4;
      a = num::to_bits(num::narrow<T>(std::ldexp(static_cast<double>(engine() % 129) - 64, e)));
    }
    check(in, op.parameter_at(engine()), divisor(), counted);
  }
  return counted;
}

void check_counts(const loss& op, dtype type, const counts& n) {
  INFO(op.name, " ", name_of(type));
  CHECK(n.wrong == 0);
  CHECK(n.forced == 0);
  CHECK((n.ties > 0) == (op.id != ops::op_id::soft_margin_loss && op.id != ops::op_id::kl_div));
  // The tie classes aim at them; of the least and greatest numbers of binary64 double-doubles know nothing.
  CHECK(n.open < n.tuples / (type == dtype::f64 ? 2 : 5));
  MESSAGE(op.name << " " << name_of(type) << ": " << n.tuples << " tuples, " << n.ties << " ties, left open "
                  << n.open);
}
void check_all_elements(int many) {
  for_each_loss([&]<class Op>() {
    ops::for_each_format<Op::out[0].types>(
        [&]<class T>() { check_counts(loss_of<Op>, dtype_of<T>, check_elements<T>(loss_of<Op>, check<Op, T>, many)); });
  });
}

// x, t, q with (1 - t) x + (1 + (q - 1) t) ln(1 + e^-x), or the slope of it, next to 0: beside a weight 0 or infinite its sign is
// found by the last tier. The last ones overflow though e^-|x| is tiny.
void check_signs() {
  constexpr std::uint64_t cancelling[][3] = {
      {0x3f800000, 0x3fc91b31, 0xbf7cf776}, {0xbf400000, 0x3fe5982c, 0x3e1a314d}, {0xbf400000, 0x3fd8a7b5, 0xbe45ee59},
      {0x40a00000, 0x3fc2e960, 0x437ff226}, {0x3c23d70a, 0x3fe83129, 0x3ee916e9}, {0x3c23d70a, 0x3fc55dcf, 0xbeb5c190}};
  constexpr std::uint64_t factors[] = {0, 0x80000000, 0x7f800000, 0xff800000, 0x3f800000, 0xc0400000};
  counts loss, slope;
  for (const auto& [x, t, q] : cancelling) {
    for (const std::uint64_t w : factors) {
      check<ops::binary_cross_entropy_with_logits, float>({x, t, w, q}, 0, 1, loss);
      for (const std::uint64_t g : factors) {
        check<ops::binary_cross_entropy_with_logits_backward, float>({g, x, t, w, q}, 0, 3, slope);
      }
    }
  }
  CHECK(loss.open + slope.open > 20);
  check<ops::binary_cross_entropy_with_logits_backward, float>(
      {0x7e800000, 0x42f00000, 0x3f800000, 0x7f000000, 0x7e000000}, 0, 1, slope);
  check<ops::binary_cross_entropy_with_logits_backward, float>(
      {0x7e800000, 0x7d000000, 0x3f800000, 0x7f000000, 0x7e000000}, 0, 7, slope);
  CHECK(loss.wrong + slope.wrong == 0);
  CHECK(loss.forced + slope.forced == 0);
}

attributes attributes_of(const op_info& op, const char* reduction, double parameter) {
  attributes a{{"reduction", std::string(reduction)}};
  if (op.attrs.size() < 2) return a;
  if (op.attrs[1].kind == attribute_kind::boolean) {
    a.push_back({op.attrs[1].name, parameter != 0});
  } else {
    a.push_back({op.attrs[1].name, parameter});
  }
  return a;
}
// The operands after g, x and t: each of a shape, or absent, by turns.
void add_weights(const loss& f, std::vector<shape_list>& shapes, const shape_list& shape, std::uint64_t turn) {
  for (const ops::operand& o : f.in) {
    if (!o.optional) continue;
    shapes.push_back(turn % 2 == 0 ? shape : reference::absent_shape);
    turn /= 2;
  }
}

// The contexts that each call is tried in: instruction sets, threads and tiers by turns; GPUs.
std::vector<test::engine> every_context() {
  std::vector<test::engine> all;
  const auto add = [&](context_options o, const std::string& name) {
    for (const tier first : {tier::proved, tier::exact}) {
      o.first_tier = first;
      all.push_back({name + (first == tier::exact ? " exact" : ""), std::make_unique<context>(o)});
    }
  };
  int threads = 1;
  for (const isa_info& i : instruction_sets()) {
    if (i.available) add({.threads = threads, .isa = i.name}, i.name);
    threads += 2;
  }
  for (const device_info& d : devices()) {
    if (d.where.kind == device_kind::cuda) add({.where = d.where}, name_of(d.where));
  }
  return all;
}

void compare(std::vector<test::engine>& contexts, const op_info& op, const std::vector<array>& in,
             const attributes& attrs, const std::vector<array>& want, const std::string& what) {
  for (test::engine& e : contexts) {
    const std::string text = test::difference(test::run(*e.ctx, op.name, in, want, attrs), want);
    CHECK_MESSAGE(text.empty(), op.name << " on " << e.name << ", " << what << ": " << text);
  }
}

// Sums of a class with few or many elements; how many are of the class.
struct tally {
  std::int64_t outputs = 0, hits = 0;
};
void check_sums(std::vector<test::engine>& contexts, sample_class c, const std::vector<std::int64_t>& lengths,
                std::uint64_t streams, tally& counted) {
  for (const loss& f : all_losses()) {
    if (f.is_gradient) continue;
    const op_info& op = *find(f.name);
    const bool slow = f.proof == ops::proof_kind::multi_limb;
    for (std::int64_t n : lengths) {
      if (slow && n > 5000) {  // two threads, once
        if (c != sample_class::normal_range) continue;
        n = 17011;
      }
      for (std::uint64_t stream = 0; stream < streams; ++stream) {
        const std::vector<dtype>& types = op.in[0].types;
        const dtype type = types[(stream + static_cast<std::uint64_t>(n)) % types.size()];
        const char* const mean = f.is_divergence && stream % 3 == 0 ? "batchmean" : "mean";
        const attributes attrs =
            attributes_of(op, stream % 2 == 0 ? "sum" : mean, f.parameter_at(stream / 2 % 2 == 0 ? 0 : stream));
        std::vector<shape_list> shapes(2, {n});
        add_weights(f, shapes, {n}, stream);
        const std::vector<array> in = reference::fill_losses(op.name, c, type, shapes, attrs, 5, stream);
        outcomes where;
        const std::vector<array> want = reference::evaluate_all(op.name, in, attrs, &where);
        ++counted.outputs;
        counted.hits += hit(c, where.at(0)) ? 1 : 0;
        compare(contexts, op, in, attrs, want,
                std::string(name_of(c)) + " " + std::to_string(n) + " of stream " + std::to_string(stream));
      }
    }
  }
}

}  // namespace

TEST_CASE("losses: elements and gradients" * doctest::test_suite("portable values")) { check_all_elements(60); }
TEST_CASE("losses: elements and gradients, many [long]" * doctest::skip()) { check_all_elements(100000); }

TEST_CASE("losses: signs of what a weight 0 or infinity multiplies") { check_signs(); }

TEST_CASE("losses: sums and means of few elements") {
  std::vector<test::engine> contexts = every_context();
  for (const sample_class c : reference::element_classes) {
    tally counted;
    check_sums(contexts, c, {1, 2, 3, 4, 17}, 12, counted);
    INFO(std::string(name_of(c)));
    if (c == sample_class::ties || c == sample_class::near_ties || c == sample_class::cancelling) {
      CHECK(counted.hits > counted.outputs / 10);
    }
    MESSAGE(std::string(name_of(c)) << ": " << counted.outputs << " outputs, " << counted.hits << " of the class");
  }
}
TEST_CASE("losses: sums and means of many elements" * doctest::test_suite("values")) {
  std::vector<test::engine> contexts = every_context();
  for (const sample_class c : {sample_class::normal_range, sample_class::wide_exponents, sample_class::cancelling,
                               sample_class::near_ties, sample_class::narrow_lattice}) {
    tally counted;
    check_sums(contexts, c, {1023, 2049}, 2, counted);
    check_sums(contexts, c, {50021}, 1, counted);
  }
}

TEST_CASE("losses: nothing, and special values") {
  std::vector<test::engine> contexts = every_context();
  constexpr std::uint64_t inf = 0x7f800000, nan = 0x7fc00000, minus = 0x80000000, one = 0x3f800000, two = 0x40000000;
  for (const loss& f : all_losses()) {
    if (f.is_gradient) continue;
    const op_info& op = *find(f.name);
    const auto of = [&](const patterns& x, const patterns& t, const char* reduction) {
      const auto n = static_cast<std::int64_t>(x.size());
      const std::vector<array> in{array(dtype::f32, {n}, x), array(dtype::f32, {n}, t)};
      const attributes attrs = attributes_of(op, reduction, f.is_divergence ? 0 : 1);
      const std::vector<array> want = reference::evaluate_all(op.name, in, attrs);
      compare(contexts, op, in, attrs, want, reduction);
      return want[0].count() == 0 ? 0 : want[0].get(0);
    };
    CHECK(of({}, {}, "sum") == 0);
    CHECK(of({}, {}, "mean") == nan);
    of({}, {}, "none");
    if (f.id == ops::op_id::binary_cross_entropy_with_logits) {
      CHECK(of({minus}, {0}, "sum") == 0x3f317218);  // ln 2
      CHECK(of({inf, inf | minus}, {one, 0}, "sum") == 0);
      CHECK(of({inf, one}, {two, one}, "mean") == (inf | minus));
      CHECK(of({0xc3480001, inf}, {one, one}, "sum") == 0x43480001);  // next to nothing beside 200
      CHECK(of({inf, inf}, {two, 0}, "sum") == nan);
      continue;
    }
    if (f.id == ops::op_id::binary_cross_entropy) {
      CHECK(of({0, one}, {0, one}, "none") == 0);
      CHECK(of({0, one, 1, 26}, {one, 0, one, one}, "mean") == 0x42c80000);  // 100
      CHECK(of({27}, {one}, "sum") != 0x42c80000);
      CHECK(of({two}, {one}, "sum") == nan);
      CHECK(of({0x3f000000}, {one}, "sum") == 0x3f317218);  // ln 2
      continue;
    }
    if (f.id == ops::op_id::kl_div) {
      CHECK(of({one, 0}, {0, minus}, "none") == 0);
      CHECK(of({inf}, {0}, "sum") == nan);
      CHECK(of({one}, {one | minus}, "sum") == nan);
      CHECK(of({0}, {two}, "sum") == 0x3fb17218);  // 2 ln 2
      CHECK(of({one}, {one}, "sum") == (one | minus));
      CHECK(of({inf}, {one}, "sum") == (inf | minus));
      continue;
    }
    if (f.id == ops::op_id::soft_margin_loss) {
      CHECK(of({minus}, {0}, "sum") == 0x3f317218);  // ln 2
      CHECK(of({inf}, {one}, "sum") == 0);
      CHECK(of({inf, one}, {minus | one, one}, "mean") == inf);
      CHECK(of({inf}, {0}, "mean") == nan);
      CHECK(of({0x43480000, 0x461c4000}, {one, one}, "mean") == 0);          // 200 and 10000: next to nothing
      CHECK(of({0xc3480001, 0x461c4000}, {one, one}, "sum") == 0x43480001);  // and beside 200
      continue;
    }
    CHECK(of({minus}, {0}, "sum") == 0);
    CHECK(of({inf}, {one}, "mean") == inf);
    CHECK(of({inf, one}, {inf | minus, two}, "sum") == inf);
    CHECK(of({inf}, {inf}, "sum") == nan);
    CHECK(of({nan | minus, one}, {one, one}, "mean") == nan);
    CHECK(of({one, 0, two}, {one, 0, two}, "mean") == 0);
    CHECK(of({0x7f7fffff, 0x7f7fffff}, {0x7f7fffff, 0xff7fffff}, "none") == 0);
  }
  // (1, 1, 1 + 2^-12): the sum of d^2 is 3 + 2^-11 + 2^-24, 2^-25 ulp above a number; mean of (M, M) with l1: M + M overflows not.
  const auto value = [&](const char* name, const patterns& x, const char* reduction) {
    const std::vector<array> in{array(dtype::f32, {static_cast<std::int64_t>(x.size())}, x),
                                array(dtype::f32, {}, patterns{0})};
    const attributes attrs{{"reduction", std::string(reduction)}};
    const std::vector<array> want = reference::evaluate_all(name, in, attrs);
    compare(contexts, *find(name), in, attrs, want, "value");
    return want[0].get(0);
  };
  CHECK(value("l1_loss", {0x7f7fffff, 0xff7fffff}, "mean") == 0x7f7fffff);
  CHECK(value("l1_loss", {0x7f7fffff, 0xff7fffff}, "sum") == inf);
  CHECK(value("mse_loss", {0x5f800000, 0}, "mean") == 0x7f000000);  // 2^64: its square overflows, half of it does not
  CHECK(value("l1_loss", {one, 0x33800000}, "sum") == one);         // 1 + 2^-24: a tie
  CHECK(value("l1_loss", {one, 0x33800000, 1}, "sum") == one + 1);  // and a little more
  CHECK(value("mse_loss", {1}, "sum") == 0);                        // 2^-298, not an exact zero
}

// Operands whose exponents differ by all that binary64 has room for, about every border: a tie, and what only the least of them decides.
TEST_CASE("losses: binary64, far apart") {
  patterns marks;
  for (const double v : {0x1p-1074, 0x1.8p-1060, 0x1p-1022, 0x1.fffffffffffffp-540, 0x1p-537, 0x1.8p-400, 0x1p-200, 0.5,
                         1.0, 3.0, 0x1p27 + 1, 0x1p60, 0x1.8p511, 0x1.6a09e667f3bccp511, 0x1.6a09e667f3bcdp511,
                         0x1.8p1000, 0x1.fffffffffffffp1023}) {
    for (const double x : {v, -v}) marks.push_back(num::to_bits(x));
  }
  counts counted;
  std::uint64_t turn = 0;
  ops::for_each_structured([&]<class Op>() {
    if constexpr (Op::row.kind == ops::family::loss && (Op::out[0].types & ops::one(dtype::f64)) != 0) {
      patterns in(std::size(Op::in));
      for (const std::uint64_t x : marks) {
        for (const std::uint64_t t : marks) {
          in[in.size() - 2] = x, in.back() = t;
          if (ops::is_gradient<Op>) in[0] = marks[turn * 7 % marks.size()];
          const std::int64_t n = ops::is_gradient<Op> ? divisors[turn / 3 % std::size(divisors)] : 1;
          check<Op, double>(in, parameter_at<Op>(turn), n, counted);
          ++turn;
        }
      }
    }
  });
  // 3 g is a tie, of which the least number takes something away, or not.
  for (const std::uint64_t t : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 63 | 1}) {
    check<ops::mse_loss_backward, double>({num::to_bits(0x1.5555555555557p0), num::to_bits(0x1.8p999), t}, 0, 1,
                                          counted);
    check<ops::huber_loss_backward, double>({num::to_bits(0x1.5555555555557p0), num::to_bits(0x1.8p100), t}, 0x1p199, 1,
                                            counted);
    check<ops::huber_loss, double>({num::to_bits(0x1p27 + 1), t}, 0x1p100, 1, counted);
    check<ops::smooth_l1_loss, double>({num::to_bits(0x1p53), t}, 1, 1, counted);
  }
  CHECK(counted.wrong == 0);
  CHECK(counted.forced == 0);
}

TEST_CASE("losses: g of sums and means; gradients of every class") {
  std::vector<test::engine> contexts = every_context();
  for (const loss& f : all_losses()) {
    if (!f.is_gradient) continue;
    const op_info& op = *find(f.name);
    std::uint64_t turn = 0;
    for (const sample_class c : reference::element_classes) {
      const char* const mean = f.is_divergence && turn % 2 == 0 ? "batchmean" : "mean";
      const char* const reduction = turn % 3 == 0 ? "none" : turn % 3 == 1 ? mean : "sum";
      const dtype type = op.in[0].types[turn / 3 % op.in[0].types.size()];
      const shape_list x{5, 1, 13}, t{7, 1}, both{5, 7, 13};
      const attributes attrs = attributes_of(op, reduction, f.parameter_at(turn));
      std::vector<shape_list> shapes{turn % 3 == 0 ? both : shape_list{}, x, t};
      add_weights(f, shapes, {5, 7, 1}, turn);
      const std::vector<array> in = reference::fill_losses(op.name, c, type, shapes, attrs, 6, turn++);
      compare(contexts, op, in, attrs, reference::evaluate_all(op.name, in, attrs), std::string(name_of(c)));
    }
  }
}

TEST_CASE("losses: strides of both signs, gaps and repeated elements") {
  std::vector<test::engine> contexts = every_context();
  const shape_list shape{3, 5, 2, 7}, row{5, 1, 7};
  std::uint64_t turn = 0;
  for (const loss& f : all_losses()) {
    const op_info& op = *find(f.name);
    for (const char* const reduction : {"none", "mean"}) {
      const dtype type = op.in[0].types[turn % op.in[0].types.size()];
      const attributes attrs = attributes_of(op, reduction, 0.25);
      const bool each = reduction == std::string("none");
      std::vector<shape_list> shapes{shape, row};
      if (f.is_gradient) shapes.insert(shapes.begin(), each ? shape : shape_list{});
      add_weights(f, shapes, row, each ? 2 : 0);
      const std::vector<array> in =
          reference::fill_losses(op.name, sample_class::normal_range, type, shapes, attrs, 8, turn);
      const array want = reference::evaluate(op.name, in, attrs);
      for (const tests::layout l : tests::layouts) {
        for (test::engine& e : contexts) {
          std::vector<std::unique_ptr<tests::placed_tensor>> placed;
          std::vector<const_tensor_view> views;
          for (const array& a : in) {
            if (a.absent()) {
              views.emplace_back();
              continue;
            }
            placed.push_back(std::make_unique<tests::placed_tensor>(*e.ctx, a, l));
            views.emplace_back(placed.back()->view());
          }
          tests::placed_tensor out(*e.ctx, type, want.shape, l);
          const tensor_view y = out.view();
          call(*e.ctx, op, views, {&y, 1}, attrs);
          INFO(op.name, " on ", e.name);
          CHECK(out.get() == want);
        }
      }
      ++turn;
    }
  }
}

TEST_CASE("losses: divisors of kl_div; weights of 1 are absent ones; cancelling terms") {
  std::vector<test::engine> contexts = every_context();
  constexpr std::uint64_t one = 0x3f800000, minus = 0x80000000;
  const auto value = [&](const char* name, const std::vector<array>& in, const attributes& attrs) {
    const std::vector<array> want = reference::evaluate_all(name, in, attrs);
    compare(contexts, *find(name), in, attrs, want, "value");
    return want[0].get(0);
  };
  const auto reduction = [](const char* r) { return attributes{{"reduction", std::string(r)}}; };
  const array t(dtype::f32, {2, 3}, patterns(6, one)), x(dtype::f32, {2, 3}, patterns(6, one | minus));
  CHECK(value("kl_div", {x, t}, reduction("batchmean")) == 0x40400000);  // 6 / 2
  CHECK(value("kl_div", {x, t}, reduction("mean")) == one);
  const array none(dtype::f32, {0, 3}), hollow(dtype::f32, {2, 0});
  CHECK(value("kl_div", {none, none}, reduction("batchmean")) == 0x7fc00000);
  CHECK(value("kl_div", {hollow, hollow}, reduction("batchmean")) == 0);
  const array scalar(dtype::f32, {}, patterns{one});
  CHECK(value("kl_div", {scalar, scalar}, reduction("batchmean")) == (one | minus));
  for (const char* const name : {"binary_cross_entropy", "binary_cross_entropy_with_logits"}) {
    const array p = reference::fill(sample_class::normal_range, dtype::f32, {2, 3}, 1, 1);
    std::vector<array> with{p, x, t}, without{p, x};
    if (find(name)->in.size() > 3) with.push_back(scalar);
    CHECK(reference::evaluate(name, with, reduction("mean")) == reference::evaluate(name, without, reduction("mean")));
    value(name, with, reduction("mean"));
    value(name, without, reduction("mean"));
  }
}

TEST_CASE("losses: sums whose transcendental terms cancel") {
  constexpr std::uint64_t zero = 0, half = 0x3f000000, one = 0x3f800000, two = 0x40000000, minus = 0x80000000;
  context ctx({.threads = 2});
  const auto value = [&](const char* name, const std::vector<patterns>& operands, bool log_target) {
    std::vector<array> in;
    for (const patterns& p : operands) in.emplace_back(dtype::f32, shape_list{static_cast<std::int64_t>(p.size())}, p);
    attributes attrs{{"reduction", std::string("sum")}};
    if (log_target) attrs.push_back({"log_target", true});
    const std::vector<array> want = reference::evaluate_all(name, in, attrs);
    CHECK(test::difference(test::run(ctx, name, in, want, attrs), want).empty());
    return want[0].get(0);
  };
  const std::uint64_t third = 0x3eaaaaab;
  CHECK(value("binary_cross_entropy_with_logits", {{one, one}, {zero, one}, {one, one | minus}}, false) == one);
  CHECK(value("binary_cross_entropy_with_logits",
              {{two, third, two | minus, third}, {zero, zero, zero, one}, {one, third, one | minus, third | minus}},
              false) != zero);
  CHECK(value("binary_cross_entropy", {{third, third, zero}, {half, half, one}, {one, one | minus, one}}, false) ==
        0x42c80000);
  CHECK(value("kl_div", {{one, two, half}, {half + 0x400000 + 0x800000, half + 0x400000 + 0x800000, zero}}, true) ==
        (half | minus));
  // 2 ln 2 - 4 (ln 2) / 2: no bits tell it from 0.
  const std::vector<float> t{2, 0.5f, 0.5f, 0.5f, 0.5f}, x(5);
  float sum = 0;
  CHECK_THROWS_AS(kl_div(ctx, const_tensor_view(x.data(), {5}), const_tensor_view(t.data(), {5}), tensor_view(&sum, {}),
                         {.reduction = batch_reduction::sum}),
                  error);
}

TEST_CASE("losses: sums with few different numbers in logarithms and exponentials") {
  std::vector<test::engine> contexts;
  for (const tier first : {tier::proved, tier::exact}) {
    contexts.push_back({"cpu", std::make_unique<context>(context_options{.threads = 2, .first_tier = first})});
  }
  const auto sum_of = [&](const char* name, const std::vector<std::vector<float>>& operands, bool log_target = false) {
    std::vector<array> in;
    for (const std::vector<float>& p : operands) {
      in.emplace_back(dtype::f32, shape_list{static_cast<std::int64_t>(p.size())});
      for (std::size_t i = 0; i < p.size(); ++i) in.back().set(i, num::to_bits(p[i]));
    }
    attributes attrs{{"reduction", std::string("sum")}};
    if (log_target) attrs.push_back({"log_target", true});
    const std::vector<array> want = reference::evaluate_all(name, in, attrs);
    compare(contexts, *find(name), in, attrs, want, "sum");
    return num::float_of(static_cast<std::uint32_t>(want[0].get(0)));
  };
  const char* const bce = "binary_cross_entropy_with_logits";
  // A midpoint, and beside it e^-1500 / 2: the logarithms of 1.75 are gone.
  const float w = num::float_of(0x43868746);
  CHECK(sum_of(bce, {{1500, 1.75f, 1.75f}, {0, 1, 0}, {.5f, w, -w}}) == 9147206 * 0x1p-15f);
  CHECK(sum_of(bce, {{1500, 1.75f, 1.75f}, {2, 0, 1}, {.5f, w, -w}}) == -9147205 * 0x1p-15f);
  CHECK(sum_of("binary_cross_entropy", {{.75f, .75f, 0, 0x1p-20f}, {.5f, .5f, 1, 1}, {w, -w, 671089, 0x1p-140f}}) ==
        67108904);
  // Rests of both signs, e^-1500 - e^-1600 beside 2^24 + 1, and less than nothing.
  CHECK(sum_of("kl_div", {{-0x1p24f, -1, -1501, -1599}, {0, 0, -1500, -1600}}, true) == 0x1.000002p24f);
  CHECK(sum_of("kl_div", {{-0x1p24f, -1, -1499, -1601}, {0, 0, -1500, -1600}}, true) == 0x1p24f);
  // e^9000 - e^9000, each beyond all ranges.
  CHECK(sum_of("kl_div", {{8999, 9001, -1}, {9000, 9000, 0}}, true) == 1);
}

// Terms of keys 1 to `keys` - 1, which add up to 0, and of 257, which add up to 2^24 + 1: a midpoint.
struct cancelling {
  std::vector<float> x{257, 257}, t{0, 1}, w{65281, -65281};
  cancelling(int keys, std::size_t count) {
    for (std::size_t i = 0; x.size() < count; ++i) {
      const auto at = static_cast<float>(i / 2 % static_cast<std::size_t>(keys - 1) + 1);
      add(i % 4 < 2 ? at : -at, 1, i % 2 == 0 ? .37f : -.37f);
    }
  }
  void add(float at, float target, float weight) {
    x.push_back(at);
    t.push_back(target);
    w.push_back(weight);
  }
  float sum(context& ctx) const {
    const auto view = [](const std::vector<float>& v) {
      return const_tensor_view(v.data(), {static_cast<std::int64_t>(v.size())});
    };
    float out = 0;
    binary_cross_entropy_with_logits(ctx, view(x), view(t), tensor_view(&out, {}),
                                     {.reduction = reduction::sum, .weight = view(w)});
    return out;
  }
};

// With a logarithm of 2048 bits for each element the last would take minutes.
TEST_CASE("losses: 64 different numbers cancel, 65 do not; work is for different numbers") {
  context one({.threads = 1}), three({.threads = 3});
  for (context* const ctx : {&one, &three}) {
    CHECK(cancelling(64, 10000).sum(*ctx) == 0x1p24f);
    CHECK_THROWS_AS(cancelling(65, 140).sum(*ctx), error);
  }
  cancelling many(63, 100000);
  many.add(1500, 1, .5f);
  CHECK(many.sum(three) == 0x1.000002p24f);
}

TEST_CASE("losses: who decides") {
  std::vector<float> x(3000), t(3000), y(3000);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i) * 0.37f;
    t[i] = static_cast<float>(i) * 0.41f;
  }
  const const_tensor_view a(x.data(), {3000}), b(t.data(), {3000});
  for (const tier first : {tier::proved, tier::exact}) {
    context ctx({.threads = 2, .first_tier = first});
    const tier by = first == tier::exact ? tier::exact : tier::binary64;
    mse_loss(ctx, a, b, tensor_view(y.data(), {}));
    CHECK(ctx.read_statistics()[by] == 1);
    huber_loss(ctx, a, b, tensor_view(y.data(), {3000}), {.reduction = reduction::none, .delta = 2.5});
    CHECK(ctx.read_statistics()[by] == 3001);
    smooth_l1_loss_backward(ctx, const_tensor_view(x.data() + 7, {}), a, b, tensor_view(y.data(), {3000}),
                            {.beta = 0.1});
    CHECK(ctx.read_statistics()[by] == 6001);
  }
}

TEST_CASE("losses: what is refused") {
  context ctx({.threads = 1});
  std::vector<float> x(6), g(6), y(6);
  const const_tensor_view a(x.data(), {2, 3});
  const tensor_view scalar(y.data(), {}), full(y.data(), {2, 3});
  const auto site = [](auto&& f) {
    try {
      f();
    } catch (const error& e) {
      return e.site();
    }
    FAIL("nothing was refused");
    return error_site{};
  };
  CHECK(site([&] { mse_loss(ctx, a, const_tensor_view(g.data(), {2, 2}), scalar); }) == error_site::broadcast);
  CHECK(site([&] { mse_loss(ctx, a, a, full); }) == error_site::output_shape);
  CHECK(site([&] {
          mse_loss(ctx, a, a, tensor_view(x.data(), {2, 3}), {.reduction = reduction::none});
        }) == error_site::overlap);
  CHECK(site([&] { l1_loss_backward(ctx, a, a, a, full); }) == error_site::gradient_shape);
  CHECK(site([&] {
          l1_loss_backward(ctx, const_tensor_view(g.data(), {}), a, a, full, {.reduction = reduction::none});
        }) == error_site::gradient_shape);
  for (const double bad : {-1.0, 0x1p-201, 0x1.8p200, std::nan(""), HUGE_VAL}) {
    CHECK(site([&] { smooth_l1_loss(ctx, a, a, scalar, {.beta = bad}); }) == error_site::attribute_value);
    CHECK(site([&] { huber_loss(ctx, a, a, scalar, {.delta = bad}); }) == error_site::attribute_value);
  }
  CHECK(site([&] { huber_loss(ctx, a, a, scalar, {.delta = 0}); }) == error_site::attribute_value);
  std::vector<std::uint16_t> h(6);
  CHECK(site([&] {
          mse_loss(ctx, a, const_tensor_view(reinterpret_cast<const f16*>(h.data()), {2, 3}), scalar);
        }) == error_site::operand_dtype);
}
