// The softmax family through the public API: against the oracle on classes of rows that are hard to round, special
// values by their bits, and what must not change a bit: instruction set, threads, first tier, layout, the row's place
// among others.
//
// Classes of rows, stated by `fill`: ordinary, wide exponents, all bit patterns, equal entries (1/n: multiplicities),
// small integers (many at the maximum), exact gaps far above ln S (2^27, -8), (100, 2^-18), (2^24, -1), (0, -1000),
// gaps of 2^-149, gaps up to 2^129, logsumexp near 0 (-ln n), -inf, NaN and +inf among ordinary ones, all -inf.
#include "backends/cpu/rows/rows.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "reference/evaluate.hpp"
#include "tests/helpers/settings.hpp"

namespace {

using repdl::attributes;
using repdl::const_tensor_view;
using repdl::dtype;
using repdl::sizes;
using repdl::tensor_view;
using repdl::tier;
using repdl::reference::array;
using repdl::reference::shape_list;
using repdl::tests::available;
using repdl::tests::bits;

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr std::uint32_t nan_bits = 0x7fc00000;

// ------------------------------------------------------------------------------------------------------------- inputs

constexpr int classes = 24;

class source {
 public:
  explicit source(std::uint64_t seed) : random_(seed) {}
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  float normal() {  // a sum of uniform numbers
    float s = -6;
    for (int i = 0; i < 12; ++i) s += static_cast<float>(random_() >> 40) * 0x1p-24f;
    return s;
  }
  float pattern() {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(random_()));
    return std::isfinite(x) ? x : 1.0f;
  }

  std::vector<float> row(int kind, int n) {
    std::vector<float> v(static_cast<std::size_t>(n));
    const auto first_and_others = [&](float a, float b) {
      for (float& x : v) x = b;
      if (n > 0) v[static_cast<std::size_t>(below(n))] = a;
    };
    switch (kind) {
      case 6:
        first_and_others(0x1p27f, -8);
        return v;
      case 7:
        first_and_others(100, 0x1p-18f);
        return v;
      case 8:
        first_and_others(0x1p24f, -1);
        return v;
      case 9:
        first_and_others(0, -1000);
        return v;
      case 10:
        first_and_others(0, -inf);
        return v;
      default:
        for (float& x : v) x = element(kind, n);
        return v;
    }
  }

 private:
  float element(int kind, int n) {
    switch (kind) {
      case 0:
        return normal();
      case 1:
        return 30 * normal();
      case 2:
        return std::ldexp(normal(), below(60) - 40);
      case 3:
        return pattern();
      case 4:
        return 3.25f;
      case 5:
        return static_cast<float>(below(3));
      case 11:
        return 0x1p-149f * static_cast<float>(below(5));
      case 12:
        return below(2) != 0 ? 3.4e38f : -3.4e38f;
      case 13:
        return below(n) == 0 ? -inf : normal();
      case 14:
        return below(n) == 0 ? not_a_number : normal();
      case 15:
        return below(n) == 0 ? inf : normal();
      case 16:
        return -inf;
      case 17:
        return static_cast<float>(below(8)) * 16 - 60;
      case 18:
        return -std::log(static_cast<float>(n));
      case 19:
        return below(2) != 0 ? -0.0f : 0.0f;
      case 20:
        return below(2) != 0 ? -700 + 100 * normal() : normal();
      case 21:
        return std::exp(-static_cast<float>(below(120)));  // like a softmax
      case 22:
        return -10 * std::fabs(normal());  // like a log_softmax
      default:
        return below(4) != 0 ? static_cast<float>(below(16)) / 16 : 20.3f;
    }
  }
  std::mt19937_64 random_;
};

// ------------------------------------------------------------------------------------------------------------- calling

struct call_case {
  std::string op;
  std::vector<array> in;
  attributes attrs;
};

struct how {
  std::string isa{};
  int threads = 1;
  tier first = tier::proved;
  bool transposed = false;  // rank 2 operands are stored column by column
};

// A tensor's bytes, and the view of them; transposed: rank 2 only.
struct stored {
  std::vector<unsigned char> bytes;
  sizes shape;
  sizes strides;
  dtype type;

  stored(const array& a, bool transposed) : bytes(a.bytes), type(a.type) {
    for (const std::int64_t s : a.shape) shape.push_back(s);
    strides = repdl::row_major(shape);
    if (!transposed || shape.size() != 2) return;
    strides = {1, shape[0]};
    const std::size_t size = repdl::size_of(type);
    for (std::int64_t i = 0; i < shape[0]; ++i) {
      for (std::int64_t j = 0; j < shape[1]; ++j) {
        const auto from = static_cast<std::size_t>(i * shape[1] + j) * size;
        const auto to = static_cast<std::size_t>(j * shape[0] + i) * size;
        for (std::size_t b = 0; b < size; ++b) bytes[to + b] = a.bytes[from + b];
      }
    }
  }
  tensor_view view() { return {bytes.data(), type, shape, strides}; }
  array contiguous() const {
    array a(type, shape_list(shape.begin(), shape.end()));
    if (shape.size() != 2) {
      a.bytes = bytes;
      return a;
    }
    const std::size_t size = repdl::size_of(type);
    for (std::int64_t i = 0; i < shape[0]; ++i) {
      for (std::int64_t j = 0; j < shape[1]; ++j) {
        const auto to = static_cast<std::size_t>(i * shape[1] + j) * size;
        const auto from = static_cast<std::size_t>(i * strides[0] + j * strides[1]) * size;
        for (std::size_t b = 0; b < size; ++b) a.bytes[to + b] = bytes[from + b];
      }
    }
    return a;
  }
};

array run(const call_case& c, const how& h, repdl::statistics* counted = nullptr, int last_tier_bits = 2048) {
  const repdl::op_info& op = *repdl::find(c.op);
  std::vector<stored> in;
  for (const array& a : c.in) in.emplace_back(a, h.transposed);
  std::vector<const_tensor_view> views;
  for (stored& s : in) views.push_back(s.view());
  const std::vector<repdl::tensor_spec> spec = repdl::infer(op, views, c.attrs);
  stored out(array(spec[0].type, shape_list(spec[0].shape.begin(), spec[0].shape.end())), h.transposed);
  const tensor_view to = out.view();
  repdl::context ctx(repdl::context_options{
      .threads = h.threads, .isa = h.isa, .first_tier = h.first, .last_tier_bits = last_tier_bits});
  repdl::call(ctx, op, views, std::span(&to, 1), c.attrs);
  if (counted != nullptr) *counted = ctx.read_statistics();
  return out.contiguous();
}

array floats(const std::vector<float>& v, shape_list shape) {
  array a(dtype::f32, std::move(shape));
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.count()); ++i) a.set(i, bits(v[i]));
  return a;
}
array integers(const std::vector<std::int64_t>& v) {
  array a(dtype::i64, {static_cast<std::int64_t>(v.size())});
  for (std::size_t i = 0; i < v.size(); ++i) a.set(i, static_cast<std::uint64_t>(v[i]));
  return a;
}
array axis_one(const std::string& op, const std::vector<float>& v, std::int64_t n) {
  return run({op, {floats(v, {static_cast<std::int64_t>(v.size()) / n, n})}, {}}, {});
}

const char* const reductions[] = {"mean", "sum", "none"};

// Every operation on one random tensor: rows of class `kind`, or of all of them.
std::vector<call_case> cases(int rows, int n, int kind, source& s) {
  std::vector<float> x;
  std::vector<float> y;
  std::vector<float> g;
  std::vector<std::int64_t> t;
  constexpr float special_g[] = {1, -1, 0, -0.0f, 0x1p-149f, -0x1.8p-148f, 3.4e38f, inf, not_a_number, -1e-20f};
  for (int r = 0; r < rows; ++r) {
    const std::vector<float> a = s.row(kind < classes ? kind : s.below(classes), n);
    const std::vector<float> b = s.row(s.below(3) == 0 ? s.below(classes) : 21 + s.below(2), n);
    x.insert(x.end(), a.begin(), a.end());
    y.insert(y.end(), b.begin(), b.end());
    g.push_back(s.below(2) != 0 ? s.normal() : special_g[s.below(10)]);
    std::int64_t target = s.below(std::max(n, 1));
    if (s.below(3) == 0) {  // the greatest
      for (int j = 0; j < n; ++j)
        target = a[static_cast<std::size_t>(j)] > a[static_cast<std::size_t>(target)] ? j : target;
    }
    if (s.below(12) == 0) target = -100;
    if (kind >= classes && s.below(12) == 0) target = n + 3;
    t.push_back(target);
  }
  const shape_list shape{rows, n};
  const shape_list per_row{rows};
  std::vector<call_case> all;
  if (n > 0) {
    all.push_back({"softmax", {floats(x, shape)}, {}});
    all.push_back({"log_softmax", {floats(x, shape)}, {}});
    all.push_back({"softmax_backward", {floats(x, shape), floats(y, shape)}, {}});
    all.push_back({"log_softmax_backward", {floats(x, shape), floats(y, shape)}, {}});
    const repdl::attribute axis{"axis", std::vector<std::int64_t>{1}};
    all.push_back({"logsumexp_backward", {floats(g, per_row), floats(x, shape)}, {axis}});
  }
  all.push_back({"logsumexp", {floats(x, shape)}, {{"axis", std::vector<std::int64_t>{1}}}});
  for (const char* reduction : reductions) {
    const attributes attrs{{"reduction", std::string(reduction)}};
    all.push_back({"cross_entropy", {floats(x, shape), integers(t)}, attrs});
    const bool none = std::string(reduction) == "none";
    if (n > 0) {
      all.push_back({"cross_entropy_backward",
                     {none ? floats(g, per_row) : floats(g, {}), floats(x, shape), integers(t)},
                     attrs});
    }
  }
  return all;
}

// Compares with the oracle in every way that must not matter.
void check_everywhere(const call_case& c, int kind) {
  const array want = repdl::reference::evaluate(c.op, c.in, c.attrs);
  for (const std::string& isa : available()) {
    for (const tier first : {tier::proved, tier::double_double, tier::exact}) {
      for (const bool transposed : {false, true}) {
        for (const int threads : {1, 3}) {
          if (threads == 3 && first == tier::exact) continue;
          repdl::statistics s;
          const array got = run(c, {isa, threads, first, transposed}, &s);
          CAPTURE(c.op);
          CAPTURE(kind);
          CAPTURE(isa);
          CAPTURE(static_cast<int>(first));
          CAPTURE(transposed);
          CAPTURE(threads);
          CHECK(got == want);
          CHECK(s.elements[0] + s.elements[1] + s.elements[2] + s.elements[3] == want.count());
          // log_softmax's -inf is selected in binary64's kernel.
          if (first > tier::binary64 && c.op != "log_softmax") CHECK(s[tier::binary64] == 0);
          if (first > tier::double_double) CHECK(s[tier::double_double] == 0);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("softmax family: every class of rows, against the oracle" * doctest::test_suite("values")) {
  source s(1);
  const struct { int rows, n; } shapes[] = {{1, 1}, {5, 1}, {3, 2}, {6, 3}, {20, 10}, {2, 33}, {3, 64}, {5, 0}};
  for (const auto& shape : shapes) {
    for (int kind = 0; kind <= classes; ++kind) {
      for (const call_case& c : cases(shape.rows, shape.n, kind, s)) check_everywhere(c, kind);
    }
  }
  for (const int kind : {0, 2, 18, classes}) {
    for (const call_case& c : cases(2, 2100, kind, s)) {
      const array want = repdl::reference::evaluate(c.op, c.in, c.attrs);
      for (const std::string& isa : available()) {
        for (const tier first : {tier::proved, tier::double_double}) {
          CAPTURE(c.op);
          CAPTURE(isa);
          CHECK(run(c, {isa, 2, first, false}) == want);
        }
      }
    }
  }
}

// Large outputs are written past the caches, in whole registers.
TEST_CASE("softmax family: a large call is as smaller ones, wherever the output begins") {
  constexpr std::int64_t rows = 16500, n = 1021, part = 4125;
  static_assert(rows * n >= repdl::cpu::streamed_length && part * n < repdl::cpu::streamed_length);
  const std::int64_t count = rows * n;
  std::vector<float> x(static_cast<std::size_t>(count));
  std::uint32_t w = 1;
  for (float& v : x) {
    w = w * 1664525u + 1013904223u;
    v = static_cast<float>(static_cast<std::int32_t>(w)) * 0x1p-28f;
  }
  x[5 * n + 7] = inf;
  x[6 * n + 1020] = not_a_number;
  std::fill(x.begin() + 7 * n, x.begin() + 8 * n, -inf);
  const std::vector<float> g(static_cast<std::size_t>(rows), 0.5f);
  std::vector<float> want(x.size());
  std::vector<float> got(x.size() + 16);
  const auto call = [&](repdl::context& ctx, const char* op, std::int64_t first, std::int64_t many, float* to) {
    const const_tensor_view from(x.data() + first * n, {many, n});
    const tensor_view out(to, {many, n});
    if (std::string_view(op) == "logsumexp_backward") {
      const const_tensor_view in[] = {const_tensor_view(g.data() + first, {many}), from};
      repdl::call(ctx, *repdl::find(op), in, {&out, 1}, {{"axis", std::vector<std::int64_t>{1}}});
    } else {
      repdl::call(ctx, *repdl::find(op), {&from, 1}, {&out, 1}, {});
    }
  };
  for (const char* op : {"softmax", "log_softmax", "logsumexp_backward"}) {
    CAPTURE(op);
    repdl::context plain;
    for (std::int64_t r = 0; r < rows; r += part) call(plain, op, r, part, want.data() + r * n);
    for (const std::string& isa : available()) {
      CAPTURE(isa);
      repdl::context ctx(repdl::context_options{.threads = 2, .isa = isa});
      for (const std::size_t offset : {0, 1, 2, 5}) {
        if (offset > 1 && isa == "baseline") continue;
        CAPTURE(offset);
        std::fill(got.begin(), got.end(), 3.0f);
        call(ctx, op, 0, rows, got.data() + offset);
        CHECK(std::memcmp(got.data() + offset, want.data(), want.size() * sizeof(float)) == 0);
        const auto untouched = [](float v) { return v == 3.0f; };
        CHECK(std::all_of(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(offset), untouched));
        CHECK(std::all_of(got.end() - 16 + static_cast<std::ptrdiff_t>(offset), got.end(), untouched));
      }
    }
  }
}

TEST_CASE("softmax family: special values by their bits") {
  const auto expect = [](const char* op, const std::vector<float>& row, const std::vector<std::uint32_t>& want) {
    CAPTURE(op);
    CHECK(axis_one(op, row, static_cast<std::int64_t>(row.size())).patterns() == want);
  };
  const std::uint32_t one = bits(1.0f);
  const std::uint32_t minus_inf = bits(-inf);
  expect("softmax", {0, -inf}, {one, 0});
  expect("softmax", {0, -1000}, {one, 0});
  expect("softmax", {5, 5, 5, 5}, {bits(.25f), bits(.25f), bits(.25f), bits(.25f)});
  expect("softmax", {-inf, -inf}, {nan_bits, nan_bits});
  expect("softmax", {0, inf}, {nan_bits, nan_bits});
  expect("softmax", {0, not_a_number}, {nan_bits, nan_bits});
  expect("softmax", {-7}, {one});
  expect("log_softmax", {0, -1000}, {bits(-0.0f), bits(-1000.0f)});
  expect("log_softmax", {0, -inf}, {0, minus_inf});
  expect("log_softmax", {-0.0f}, {0});
  // -(2^27 + 8) - e^-(2^27 + 8): the midpoint of -2^27 and -(2^27 + 16), and a little more.
  expect("log_softmax", {0x1p27f, -8}, {bits(-0.0f), bits(-(0x1p27f + 16))});
  // -(2^24 + 1) - e^-(2^24 + 1): the midpoint of -2^24, which is even, and -(2^24 + 2), and a little more.
  expect("log_softmax", {0x1p24f, -1}, {bits(-0.0f), bits(-(0x1p24f + 2))});
  expect("log_softmax", {-inf, -inf}, {nan_bits, nan_bits});
  expect("log_softmax", {3.4e38f, -3.4e38f}, {bits(-0.0f), minus_inf});

  const auto lse = [](const std::vector<float>& x) {
    return run({"logsumexp", {floats(x, {static_cast<std::int64_t>(x.size())})}, {}}, {}).patterns()[0];
  };
  CHECK(lse({}) == minus_inf);
  CHECK(lse({-inf, -inf}) == minus_inf);
  CHECK(lse({-inf, inf}) == bits(inf));
  CHECK(lse({not_a_number, inf}) == nan_bits);
  CHECK(lse({-0.0f}) == 0);
  CHECK(lse({0x1p27f, -8}) == bits(0x1p27f));
  CHECK(lse({0x1.fffffep127f, 0x1.fffffep127f}) == bits(0x1.fffffep127f));

  const auto loss = [](const std::vector<float>& x, const std::vector<std::int64_t>& t, const char* reduction) {
    const auto rows = static_cast<std::int64_t>(t.size());
    const auto n = rows == 0 ? 3 : static_cast<std::int64_t>(x.size()) / rows;
    return run({"cross_entropy", {floats(x, {rows, n}), integers(t)}, {{"reduction", std::string(reduction)}}}, {})
        .patterns();
  };
  using patterns = std::vector<std::uint32_t>;
  CHECK(loss({0, -inf}, {1}, "none") == patterns{bits(inf)});
  CHECK(loss({0, -inf}, {0}, "none") == patterns{0});
  CHECK(loss({0, -1000}, {0}, "none") == patterns{0});
  CHECK(loss({0, 1}, {-100}, "none") == patterns{0});
  CHECK(loss({0, 1}, {2}, "none") == patterns{nan_bits});
  CHECK(loss({0, 1}, {-100}, "mean") == patterns{nan_bits});
  CHECK(loss({0, 1}, {-100}, "sum") == patterns{0});
  CHECK(loss({}, {}, "mean") == patterns{nan_bits});
  CHECK(loss({}, {}, "sum") == patterns{0});
  CHECK(loss({not_a_number, 1, 0, 0}, {-100, 0}, "mean") ==
        patterns{bits(0x1.62e43p-1f)});  // ln 2: the NaN row is ignored
  CHECK(loss({not_a_number, 1, 0, -inf}, {0, 1}, "sum") == patterns{nan_bits});
  CHECK(loss({0, 1, 0, -inf}, {0, 1}, "sum") == patterns{bits(inf)});

  const auto gradient = [](float g, const std::vector<float>& x, std::int64_t t) {
    const attributes attrs{{"reduction", std::string("none")}};
    const auto n = static_cast<std::int64_t>(x.size());
    return run({"cross_entropy_backward", {floats({g}, {1}), floats(x, {1, n}), integers({t})}, attrs}, {}).patterns();
  };
  CHECK(gradient(-2, {0, 0}, -100) == patterns{0, 0});
  CHECK(gradient(1, {0, 0}, 7) == patterns{nan_bits, nan_bits});
  CHECK(gradient(-1, {0, -inf}, 0) == patterns{bits(-0.0f), bits(-0.0f)});
  CHECK(gradient(inf, {0, -inf}, 1) == patterns{bits(inf), bits(-inf)});
  CHECK(gradient(inf, {0, -inf}, 0) == patterns{nan_bits, nan_bits});
  CHECK(gradient(1, {0, 0, 0, 0}, 2) == patterns{bits(.25f), bits(.25f), bits(-.75f), bits(.25f)});

  const auto backward = [](const char* op, const std::vector<float>& g, const std::vector<float>& y) {
    const shape_list shape{1, static_cast<std::int64_t>(g.size())};
    return run({op, {floats(g, shape), floats(y, shape)}, {}}, {}).patterns();
  };
  CHECK(backward("softmax_backward", {1, 1}, {.5f, .5f}) == patterns{0, 0});
  CHECK(backward("softmax_backward", {1, 1}, {1.5f, -.5f}) == patterns{0, bits(-0.0f)});
  CHECK(backward("softmax_backward", {1, 3}, {-0.0f, 1}) == patterns{0, 0});
  CHECK(backward("softmax_backward", {inf, 1}, {.5f, .5f}) == patterns{nan_bits, minus_inf});
  CHECK(backward("log_softmax_backward", {1, -1}, {0, 5}) == patterns{one, bits(-1.0f)});
  CHECK(backward("log_softmax_backward", {1, -1}, {0, inf}) == patterns{one, nan_bits});
  CHECK(backward("log_softmax_backward", {-0.0f, 1}, {-inf, 0}) == patterns{0, 0});
  CHECK(backward("log_softmax_backward", {0, 1}, {-1000, 0}) == patterns{bits(-0.0f), 0});
}

TEST_CASE("softmax family: a row's bits do not depend on its neighbours or its place") {
  source s(3);
  for (const int n : {3, 10, 64, 700}) {
    const std::vector<float> row = s.row(0, n);
    for (const char* op : {"softmax", "log_softmax"}) {
      const std::vector<std::uint32_t> alone = axis_one(op, row, n).patterns();
      for (const int rows : {2, 17, 40}) {
        std::vector<float> all;
        for (int r = 0; r < rows; ++r) {
          const std::vector<float> other = r % 3 == 1 ? row : s.row(s.below(classes), n);
          all.insert(all.end(), other.begin(), other.end());
        }
        const std::vector<std::uint32_t> got = axis_one(op, all, n).patterns();
        for (int r = 1; r < rows; r += 3) {
          const auto at = got.begin() + static_cast<std::ptrdiff_t>(r) * n;
          CHECK(std::vector<std::uint32_t>(at, at + n) == alone);
        }
      }
    }
  }
}

TEST_CASE("softmax family: class axes in the middle, several axes, negative and zero strides") {
  source s(4);
  const std::int64_t a = 3, c = 5, b = 7;
  std::vector<float> x = s.row(1, static_cast<int>(a * c * b));
  repdl::context ctx;
  // (a, c, b) with the classes in the middle, and the same rows with them last.
  std::vector<float> moved(x.size());
  for (std::int64_t i = 0; i < a; ++i) {
    for (std::int64_t j = 0; j < c; ++j) {
      for (std::int64_t k = 0; k < b; ++k) {
        moved[static_cast<std::size_t>((i * b + k) * c + j)] = x[static_cast<std::size_t>((i * c + j) * b + k)];
      }
    }
  }
  std::vector<float> middle(x.size());
  std::vector<float> last(x.size());
  repdl::log_softmax(ctx, const_tensor_view(x.data(), {a, c, b}), tensor_view(middle.data(), {a, c, b}), {.axis = 1});
  repdl::log_softmax(ctx, const_tensor_view(moved.data(), {a, b, c}), tensor_view(last.data(), {a, b, c}));
  for (std::int64_t i = 0; i < a; ++i) {
    for (std::int64_t j = 0; j < c; ++j) {
      for (std::int64_t k = 0; k < b; ++k) {
        CHECK(bits(last[static_cast<std::size_t>((i * b + k) * c + j)]) ==
              bits(middle[static_cast<std::size_t>((i * c + j) * b + k)]));
      }
    }
  }
  // Two axes that do not merge: the first and the last.
  std::vector<float> lse(static_cast<std::size_t>(c));
  repdl::logsumexp(ctx, const_tensor_view(x.data(), {a, c, b}), tensor_view(lse), {.axis = sizes{0, 2}});
  const array want =
      repdl::reference::evaluate("logsumexp", {floats(x, {a, c, b})}, {{"axis", std::vector<std::int64_t>{0, 2}}});
  for (std::size_t j = 0; j < lse.size(); ++j) CHECK(bits(lse[j]) == want.get(j));
  // Rows backwards, elements backwards, and one row many times.
  const std::int64_t rows = 4, n = 60;
  const std::vector<float> y = s.row(0, static_cast<int>(rows * n));
  std::vector<float> plain(y.size());
  std::vector<float> turned(y.size());
  repdl::softmax(ctx, const_tensor_view(y.data(), {rows, n}), tensor_view(plain.data(), {rows, n}));
  repdl::softmax(ctx, const_tensor_view(y.data() + y.size() - 1, dtype::f32, {rows, n}, {-n, -1}),
                 tensor_view(turned.data(), {rows, n}));
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(bits(plain[i]) == bits(turned[y.size() - 1 - i]));
  repdl::softmax(ctx, const_tensor_view(y.data(), dtype::f32, {rows, n}, {0, 1}),
                 tensor_view(turned.data(), {rows, n}));
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(bits(turned[i]) == bits(plain[i % static_cast<std::size_t>(n)]));
}

TEST_CASE("softmax family: one long row on several threads") {
  source s(5);
  const std::vector<float> x = s.row(0, 150'000);
  for (const char* op : {"softmax", "log_softmax", "logsumexp"}) {
    const call_case c{op, {floats(x, {1, 150'000})}, {}};
    const array one = run(c, {});
    for (const std::string& isa : available()) CHECK(run(c, {isa, 4, tier::proved, false}) == one);
  }
  const array y = run({"softmax", {floats(x, {1, 150'000})}, {}}, {});
  for (const char* op : {"softmax_backward", "log_softmax_backward"}) {
    const call_case c{op, {floats(x, {1, 150'000}), y}, {}};
    CHECK(run(c, {{}, 4, tier::proved, false}) == run(c, {}));
  }
}

TEST_CASE("softmax family: the last tier's budget") {
  const call_case c{"softmax", {floats({0, 1, 2}, {1, 3})}, {}};
  CHECK_THROWS_AS(run(c, {{}, 1, tier::exact, false}, nullptr, 0), repdl::error);
  CHECK(run(c, {{}, 1, tier::exact, false}, nullptr, 256) == run(c, {}));
}
