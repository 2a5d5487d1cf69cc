// sum_of_products and difference_of_products on operands next to which something happens, from every tier; and rotary, which is made of
// them, on views of any kind.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "librepdl/num/format.hpp"
#include "reference/elementwise/elementwise.hpp"
#include "reference/evaluate.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/class_engines.hpp"

using namespace repdl;
using reference::array;

namespace {

constexpr dtype formats[] = {dtype::f16, dtype::bf16, dtype::f32, dtype::f64};

template <class T>
std::uint64_t pattern(double v) {
  return num::to_bits(num::narrow<T>(v));
}
template <class T>
std::vector<std::uint64_t> borders() {
  using F = num::format<T>;
  const std::uint64_t normal = std::uint64_t{1} << (F::precision - 1), infinity = F::infinity, one = pattern<T>(1);
  std::vector<std::uint64_t> all = {0,        1,      2,       3,   normal - 1, normal,          infinity - 1,
                                    infinity, F::nan, one - 1, one, one + 1,    pattern<T>(1.5), pattern<T>(3)};
  const std::size_t size = all.size();
  for (std::size_t i = 0; i < size; ++i) all.push_back(all[i] | num::sign_mask<T>);
  return all;
}

// Four operands at a time: any of the borders; midpoints and what is next to one; products that cancel but for their last bits.
template <class T>
std::array<array, 4> operands(std::int64_t count) {
  constexpr int p = num::format<T>::precision;
  const std::vector<std::uint64_t> marks = borders<T>();
  reference::word_stream w(19, sizeof(T) + p);
  const auto sign = [&](double v) { return w.flip() ? -v : v; };
  const auto odd = [&] {  // of p bits, in [1, 2)
    return 1 + std::ldexp(static_cast<double>(w.next64() >> (65 - p)) * 2 + 1, 1 - p);
  };
  std::array<array, 4> in;
  for (array& a : in) a = array(dtype_of<T>, {count});
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    std::uint64_t v[4];
    for (std::uint64_t& b : v) b = marks[w.below(static_cast<std::uint32_t>(marks.size()))];
    const double x = odd(), y = odd(), far = std::ldexp(1.0, w.between(-12, 3));
    switch (i % 4) {
      case 1:  // x and half a unit of it, or more, or less
        v[0] = pattern<T>(sign(x)), v[1] = pattern<T>(1);
        v[2] = pattern<T>(sign(std::ldexp(1.0, -p))) + w.below(3) - 1, v[3] = pattern<T>(1);
        break;
      case 2:  // x y and a product next to it
        v[0] = pattern<T>(x), v[1] = pattern<T>(sign(y * far));
        v[2] = v[0] + w.below(3) - 1, v[3] = v[1] + w.below(3) - 1;
        break;
      case 3:  // a long product beside a number of the border
        v[0] = pattern<T>(x), v[1] = pattern<T>(sign(y));
        v[3] = pattern<T>(sign(far));
        break;
      default:
        break;
    }
    for (std::size_t k = 0; k < 4; ++k) in[k].set(i, v[k]);
  }
  return in;
}

// What rotary is, of rows of x beside a row of cos and sin: element by element from the oracle.
array expected(const array& x, const array& cos, const array& sin, std::int64_t rows_of_table, rotary_options o) {
  array y = x;
  const auto size = static_cast<std::size_t>(x.shape.back()), half = size / 2;
  const auto& sum = reference::oracle_of("sum_of_products");
  const auto& difference = reference::oracle_of("difference_of_products");
  for (std::size_t row = 0; row < static_cast<std::size_t>(x.count()) / size; ++row) {
    for (std::size_t i = 0; i < half; ++i) {
      const std::size_t first = row * size + (o.interleaved ? 2 * i : i), second = first + (o.interleaved ? 1 : half);
      const std::size_t at = row % static_cast<std::size_t>(rows_of_table) * half + i;
      const std::uint64_t a[] = {x.get(first), cos.get(at), x.get(second), sin.get(at)};
      const std::uint64_t b[] = {x.get(second), cos.get(at), x.get(first), sin.get(at)};
      y.set(first, (o.inverse ? sum : difference).f(x.type, a, nullptr));
      y.set(second, (o.inverse ? difference : sum).f(x.type, b, nullptr));
    }
  }
  return y;
}

// A row-major array of three axes as a view whose memory has its axes in another order.
class turned {
 public:
  turned(context& ctx, const array& a) : like_(a), held_(test::upload(ctx, moved(a, true))) {}
  tensor_view view() {
    const std::int64_t n = like_.shape[0], m = like_.shape[1];
    return {held_.view().data(), like_.type, test::to_sizes(like_.shape), {m, 1, n * m}, held_.view().where()};
  }
  array read(context& ctx) const {
    array a = like_;
    ctx.copy(a.bytes.data(), held_.view().data(), a.bytes.size());
    return moved(a, false);
  }

 private:
  // Elements to their places in memory, or back.
  array moved(const array& from, bool to_memory) const {
    array to = from;
    const std::int64_t n = like_.shape[0], m = like_.shape[1], d = like_.shape[2];
    for (std::int64_t i = 0; i < n * m; ++i) {
      for (std::int64_t k = 0; k < d; ++k) {
        const std::size_t of_array = reference::index(i * d + k), of_memory = reference::index(k * n * m + i);
        to.set(to_memory ? of_memory : of_array, from.get(to_memory ? of_array : of_memory));
      }
    }
    return to;
  }
  array like_;
  tensor held_;
};

std::string message(const std::function<void()>& call) {
  try {
    call();
  } catch (const error& e) {
    return std::string(info_of(e.site()).name) + ": " + e.argument();
  }
  return "no error";
}

}  // namespace

TEST_CASE_TEMPLATE("two products: borders, ties and cancellation", T, f16, bf16, float, double) {
  const std::array<array, 4> in = operands<T>(20000);
  std::vector<test::engine> engines = test::engines();
  for (test::engine& e : test::every_context({tier::exact})) engines.push_back(std::move(e));
  for (const char* op : {"sum_of_products", "difference_of_products"}) {
    const std::vector<array> want = reference::evaluate_all(op, {in.begin(), in.end()}, {});
    const ops::elementwise_row& row = ops::row_of(static_cast<ops::op_id>(find(op)->id));
    const reference::option_values none(row, dtype_of<T>);
    std::int64_t ties = 0, zeros = 0;
    for (std::size_t i = 0; i < 20000; ++i) {
      std::uint64_t v[4];
      for (std::size_t k = 0; k < 4; ++k) v[k] = in[k].get(i);
      const reference::outcome o = reference::locate(row, dtype_of<T>, v, none);
      ties += o.tie ? 1 : 0;
      zeros += want[0].get(i) == 0 ? 1 : 0;
    }
    CHECK(ties > 500);
    CHECK(zeros > 150);
    for (test::engine& e : engines) {
      CAPTURE(e.name);
      CHECK(test::difference(test::run(*e.ctx, op, {in.begin(), in.end()}, want, {}), want) == "");
    }
  }
}

TEST_CASE("rotary: views of any kind, tables that broadcast, both orders of pairs") {
  for (test::engine& e : test::engines()) {
    context& ctx = *e.ctx;
    CAPTURE(e.name);
    for (const dtype t : formats) {
      const auto fill = [&](const reference::shape_list& shape, std::uint64_t seed) {
        array a = reference::fill_operands(reference::sample_class::normal_range, t, 1, reference::count_of(shape), 43,
                                           seed)[0];
        a.shape = shape;
        return a;
      };
      const array x = fill({3, 5, 14}, 1), cos = fill({5, 7}, 2), sin = fill({5, 7}, 3);
      const tensor table_cos = test::upload(ctx, cos), table_sin = test::upload(ctx, sin);
      for (const bool interleaved : {false, true}) {
        for (const bool inverse : {false, true}) {
          const rotary_options o{interleaved, inverse};
          const array want = expected(x, cos, sin, 5, o);
          turned from(ctx, x), to(ctx, x);
          rotary(ctx, from.view(), table_cos.view(), table_sin.view(), to.view(), o);
          CHECK(to.read(ctx).bytes == want.bytes);
          const tensor given = test::upload(ctx, x), made = rotary(given, table_cos, table_sin, o);
          array got = x;
          ctx.copy(got.bytes.data(), made.view().data(), got.bytes.size());
          CHECK(got.bytes == want.bytes);
          // In a list of prepared calls, and each sequence alone.
          tensor again(ctx, t, {3, 5, 14});
          prepared_calls calls = ctx.prepare([&] {
            for (int i = 0; i < 3; ++i)
              rotary(ctx, given.view().slice(0, i, i + 1), table_cos.view(), table_sin.view(),
                     again.view().slice(0, i, i + 1), o);
          });
          calls.run();
          ctx.copy(got.bytes.data(), again.view().data(), got.bytes.size());
          CHECK(got.bytes == want.bytes);
        }
      }
    }
  }
}

TEST_CASE("rotary: quarters of a turn and back give what there was, and nothing is left of nothing") {
  context ctx({.threads = 1});
  const std::vector<float> x = {1, -2, 0x1p-149f, 3e38f, 5, 6}, cos = {0, 0, 0}, sin = {1, -1, 1};
  const tensor a(ctx, x, {1, 6}), c(ctx, cos, {3}), s(ctx, sin, {3});
  const tensor there = rotary(a, c, s), back = rotary(there, c, s, {.inverse = true});
  const tensor wanted(ctx, std::vector<float>{-3e38f, 5, -6, 1, 2, 0x1p-149f}, {1, 6});
  const auto identity = [&](const tensor& t) { return fingerprint(ctx, std::array<const_tensor_view, 1>{t.view()}); };
  CHECK(identity(there) == identity(wanted));
  CHECK(identity(back) == identity(a));
  const tensor none =
      rotary(tensor(ctx, dtype::f32, {4, 0}), tensor(ctx, dtype::f32, {0}), tensor(ctx, dtype::f32, {4, 0}));
  CHECK(none.view().shape() == sizes{4, 0});
}

TEST_CASE("rotary: faulty operands are refused by name, and nothing is written") {
  context ctx({.threads = 1});
  std::vector<float> x(24, 1.0f), c(12, 0.5f), s(12, 0.5f), y(24, -7.0f);
  std::vector<double> d(12);
  const auto call = [&](sizes of_x, const_tensor_view cos, const_tensor_view sin, sizes of_y, rotary_options o = {}) {
    return message([&] { rotary(ctx, const_tensor_view(x.data(), of_x), cos, sin, tensor_view(y.data(), of_y), o); });
  };
  const const_tensor_view cos(c.data(), {4, 3}), sin(s.data(), {4, 3});
  CHECK(call({4, 5}, cos, sin, {4, 5}) == "attention_shape: x");
  CHECK(call({}, cos, sin, {}) == "operand_rank: x");
  CHECK(call({4, 6}, const_tensor_view(c.data(), {4, 2}), sin, {4, 6}) == "broadcast: cos");
  CHECK(call({4, 6}, cos, const_tensor_view(s.data(), {2, 1, 3}), {4, 6}) == "broadcast: sin");
  CHECK(call({4, 6}, cos, const_tensor_view(d.data(), {4, 3}), {4, 6}) == "operand_dtype: sin");
  CHECK(call({4, 6}, {}, sin, {4, 6}) == "absent_operand: cos");
  CHECK(call({4, 6}, cos, sin, {6, 4}) == "output_shape: out");
  CHECK(message([&] {
          rotary(ctx, const_tensor_view(x.data(), {4, 6}), cos, sin, tensor_view(x.data(), {4, 6}));
        }) == "overlap: out");
  CHECK(x == std::vector<float>(24, 1.0f));
  CHECK(y == std::vector<float>(24, -7.0f));
}
