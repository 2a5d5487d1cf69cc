// Results in another format than the operands': every operation that has them, every pair of formats, against the oracle, on
// every instruction set and, where there is one, on the GPU.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "librepdl/num/format.hpp"
#include "reference/attributes.hpp"
#include "reference/elementwise/elementwise.hpp"
#include "reference/evaluate.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/class_engines.hpp"

using namespace repdl;
using reference::array;

namespace {

constexpr dtype floats[] = {dtype::f16, dtype::bf16, dtype::f32, dtype::f64};

std::vector<const ops::elementwise_row*> rows() {
  std::vector<const ops::elementwise_row*> all;
  for (const ops::elementwise_row& r : ops::elementwise_rows()) {
    if (r.has_any_float()) all.push_back(&r);
  }
  return all;
}

attributes dtype_attribute(dtype to) { return {{"dtype", std::string(name_of(to))}}; }

std::uint64_t pattern(dtype t, double v) { return reference::convert(dtype::f64, t, std::bit_cast<std::uint64_t>(v)); }
double value(dtype t, std::uint64_t bits) { return std::bit_cast<double>(reference::convert(t, dtype::f64, bits)); }

using tuple = std::array<std::uint64_t, 3>;

// Numbers around which something happens, of the operands' format: its own, and those of the result's.
std::vector<std::uint64_t> landmarks(dtype from, dtype to) {
  std::vector<std::uint64_t> list;
  for (const dtype t : {from, to}) {
    const reference::format& f = reference::format_of(t);
    const double least = std::ldexp(1, f.ulp_min()), ulp = std::ldexp(1, f.emax - f.precision + 1);
    const double largest = value(t, f.largest());
    for (const double v : {least, least / 2, 1.5 * least, std::ldexp(1, f.emin), largest, largest + ulp / 2, 1.0})
      list.push_back(pattern(from, v));
  }
  const reference::format& f = reference::format_of(from);
  for (const std::uint64_t b :
       {std::uint64_t{0}, f.infinity(), f.nan(), f.infinity() + 1, f.largest(), std::uint64_t{2}})
    list.push_back(b);
  for (const double v : {3.0, 0.1, 0x1p-75, 0x1p90, 0x1.8p-12}) list.push_back(pattern(from, v));
  const std::size_t size = list.size();
  for (std::size_t i = 0; i < size; ++i) list.push_back(list[i] | f.sign_bit());
  return list;
}

// Operands whose exact result is a midpoint of `to`, or misses one, or a number of `to`, by little: by a part in 2^60, by the
// least number, by a last bit of an operand. coefficient: of y.
class trap_maker {
 public:
  trap_maker(dtype from, dtype to, std::mt19937_64& engine)
      : from_(from), f_(reference::format_of(to)), engine_(engine) {}

  tuple make(std::string_view op, double& coefficient) {
    const double m = middle(), d = little(m);
    const auto entry = [&](double v) { return pattern(from_, v); };
    const auto held = [&](double v) { return value(from_, entry(v)); };
    const double some = std::ldexp(static_cast<double>(engine_() % 255 + 1), static_cast<int>(engine_() % 17) - 8);
    coefficient = 1;
    if (op == "add" || op == "sub") {
      const double x = held(m), sign = op == "sub" ? -1 : 1;
      double y = sign * (m - x + d);
      if (one_in(2)) {
        const double c = one_in(2) ? some : (m - x + d) / held(0.7 * some);
        const double size = std::abs(c);
        coefficient = size >= 0x1p-200 && size <= 0x1p200 ? c : 1;
        y /= coefficient;
      }
      return {entry(x), entry(y), 0};
    }
    if (op == "mul") {
      const double y = held(some);
      return {nudged(entry(m / y)), entry(y), 0};
    }
    if (op == "div") {
      const double y = held(some * (1 + std::ldexp(static_cast<double>(engine_() >> 11), -53)));
      return {one_in(2) ? entry(m * y) : nudged(entry(m * y)), entry(y), 0};
    }
    if (op == "sqrt") return {nudged(entry(m * m)), 0, 0};
    switch (engine_() % 3) {
      case 0: {  // a product that is the midpoint, or the tiny rest
        const double y = std::ldexp(1, static_cast<int>(engine_() % 9) - 4);
        return one_in(2) ? tuple{entry(m / y), entry(y), entry(d)} : tuple{entry(d / y), entry(y), entry(m)};
      }
      case 1: {  // a tiny product of tiny factors
        const double root = std::ldexp(1, std::ilogb(d == 0 ? 1 : d) / 2);
        return {entry(root), entry(std::copysign(root, d)), entry(m)};
      }
      default: {
        const double x = held(some), y = held(m / 3);
        return {entry(x), entry(y), entry(std::fma(-x, y, m) + d)};
      }
    }
  }

 private:
  bool one_in(std::uint64_t n) { return engine_() % n == 0; }
  // A midpoint of two numbers of `to`, or a number of it; of every exponent, half of them near its borders.
  double middle() {
    const int span = f_.emax - f_.emin;
    const int e = one_in(4) ? f_.emax
                  : one_in(3)
                      ? f_.ulp_min() - 1 + static_cast<int>(engine_() % static_cast<std::uint64_t>(f_.precision + 2))
                  : one_in(2) ? f_.emin + static_cast<int>(engine_() % static_cast<std::uint64_t>(span))
                              : static_cast<int>(engine_() % 9) - 4;
    const int last = std::max(e, f_.emin) - f_.precision;  // of the midpoint
    std::uint64_t n = e - last >= 0 && e - last < 53 ? (std::uint64_t{1} << (e - last)) : 1;
    n |= one_in(4) ? n - 1 : engine_() & (n - 1);
    n |= one_in(4) ? 0 : 1;
    const double m = std::ldexp(static_cast<double>(n), last);
    return one_in(2) ? -m : m;
  }
  double little(double m) {
    switch (engine_() % 5) {
      case 0:
        return 0;
      case 1:
        return one_in(2) ? 0x1p-1074 : -0x1p-1074;
      case 2:
        return std::ldexp(one_in(2) ? 1 : -1, reference::format_of(from_).ulp_min());
      default:
        return std::ldexp(one_in(2) ? m : -m, -60 + static_cast<int>(engine_() % 20));
    }
  }
  std::uint64_t nudged(std::uint64_t bits) {
    const reference::format& f = reference::format_of(from_);
    const std::uint64_t next = bits + engine_() % 3 - 1;
    return (next & ~f.sign_bit()) <= f.largest() ? next : bits;
  }

  dtype from_;
  const reference::format& f_;
  std::mt19937_64& engine_;
};

struct counts {
  std::int64_t tuples = 0, ties = 0, near_ties = 0, subnormal = 0, border = 0;
  std::int64_t twice = 0;  // that two roundings, by way of binary64, would give otherwise
};

class checker {
 public:
  explicit checker(std::int64_t many) : many_(many), engines_(test::engines()) {}

  counts check(const ops::elementwise_row& row, dtype from, dtype to) {
    INFO(row.name, " ", name_of(from), " -> ", name_of(to));
    counts n;
    std::mt19937_64 random(static_cast<std::uint64_t>(from) * 4 + static_cast<std::uint64_t>(to));
    std::vector<tuple> all;
    const std::vector<std::uint64_t> marks = landmarks(from, to);
    for (const std::uint64_t x : marks) {
      for (std::size_t j = 0; j < (row.arity > 1 ? marks.size() : 1); ++j) {
        const std::size_t step = row.arity < 3 ? marks.size() : many_ < 1000 ? 1 + random() % 40 : 1;
        for (std::size_t k = 0; k < marks.size(); k += step) all.push_back({x, marks[j], marks[k]});
      }
    }
    for (const reference::sample_class c : reference::element_classes) {
      const auto v = reference::fill_operands(c, from, to, 3, many_, 5, static_cast<std::uint64_t>(to));
      for (std::size_t i = 0; i < static_cast<std::size_t>(many_); ++i)
        all.push_back({v[0].get(i), v[1].get(i), v[2].get(i)});
    }
    run(row, from, to, all, {}, n);
    constexpr double coefficients[] = {0.1, -0x1.fffffffffffffp199, 0x1p-200, 0, 3};
    for (std::size_t i = 0; i < std::size(coefficients) && row.options.count() > 0; ++i) {
      std::vector<tuple> some;
      for (std::size_t k = i; k < all.size(); k += std::size(coefficients)) some.push_back(all[k]);
      run(row, from, to, some, {{"alpha", coefficients[i]}}, n);
    }
    all.clear();
    trap_maker traps(from, to, random);
    for (std::int64_t i = 0; i < 10 * many_; ++i) {
      double coefficient = 1;
      const tuple t = traps.make(row.name, coefficient);
      if (coefficient == 1) {
        all.push_back(t);
      } else if (i % 4 == 0) {
        run(row, from, to, {t}, {{"alpha", coefficient}}, n);
      }
    }
    run(row, from, to, all, {}, n);
    return n;
  }

 private:
  void run(const ops::elementwise_row& row, dtype from, dtype to, const std::vector<tuple>& tuples, attributes attrs,
           counts& n) {
    const auto count = static_cast<std::int64_t>(tuples.size());
    const reference::option_values options(row, from, attrs);
    std::vector<array> in(static_cast<std::size_t>(row.arity), array(from, {count}));
    array want(to, {count});
    for (std::size_t i = 0; i < tuples.size(); ++i) {
      for (std::size_t k = 0; k < in.size(); ++k) in[k].set(i, tuples[i][k]);
      want.set(i, reference::evaluate(row, from, to, tuples[i].data(), options));
      ++n.tuples;
      if (i % 8 != 0) continue;
      const reference::outcome o = reference::locate(row, from, to, tuples[i].data(), options);
      n.ties += o.tie, n.near_ties += o.near_tie, n.subnormal += o.subnormal, n.border += o.border;
      const std::uint64_t first = reference::evaluate(row, from, dtype::f64, tuples[i].data(), options);
      n.twice += reference::convert(dtype::f64, to, first) != want.get(i);
    }
    attrs.push_back(dtype_attribute(to)[0]);
    for (test::engine& e : engines_) {
      INFO(e.name);
      CHECK(test::difference(test::run(*e.ctx, std::string(row.name), in, {want}, attrs), {want}) == "");
    }
  }

  std::int64_t many_;
  std::vector<test::engine> engines_;
};

void check_all(std::int64_t many) {
  checker c(many);
  for (const ops::elementwise_row* row : rows()) {
    std::int64_t tuples = 0;
    for (const dtype from : floats) {
      for (const dtype to : floats) {
        if (from == to) continue;
        const counts n = c.check(*row, from, to);
        INFO(row->name, " ", name_of(from), " -> ", name_of(to));
        tuples += n.tuples;
        const bool sums = row->name == "add" || row->name == "sub" || row->name == "fma";
        if (from == dtype::f64) {
          CHECK(n.ties > 0);
          CHECK(n.near_ties > 0);
          if (row->name != "sqrt") {
            CHECK(n.subnormal > 0);
            CHECK(n.border > 0);
          }
        }
        if (from == dtype::f64 || (from == dtype::f32 && to != dtype::f64 && sums)) CHECK(n.twice > 0);
        if (to == dtype::f64) CHECK(n.twice == 0);
      }
    }
    MESSAGE(row->name << ": " << tuples << " tuples");
  }
}

}  // namespace

TEST_CASE("other format: every operation and pair of formats against the oracle") { check_all(30); }
TEST_CASE("other format: many tuples [long]" * doctest::skip()) { check_all(4000); }

TEST_CASE("other format: every square root of f16 and of bf16") {
  auto engines = test::engines();
  for (const dtype from : {dtype::f16, dtype::bf16}) {
    const array x = reference::fill(reference::sample_class::all_patterns, from, {65536}, 0, 0);
    for (const dtype to : floats) {
      if (to == from) continue;
      const array want = reference::evaluate("sqrt", {x}, dtype_attribute(to));
      for (test::engine& e : engines) {
        CHECK(test::difference(test::run(*e.ctx, "sqrt", {x}, {want}, dtype_attribute(to)), {want}) == "");
      }
    }
  }
}

TEST_CASE("other format: broadcast, strided and misaligned operands; the output says the format") {
  auto engines = test::engines();
  for (const ops::elementwise_row* row : rows()) {
    for (const dtype from : floats) {
      for (const dtype to : floats) {
        // x[5, 7] backwards and one element off, y[7] with gaps, z[5, 1]; out transposed with gaps, one element off.
        const auto values = reference::fill_operands(reference::sample_class::normal_range, from, to, 3, 64, 3, 4);
        std::vector<array> in;
        const reference::shape_list shapes[] = {{5, 7}, {7}, {5, 1}};
        for (int k = 0; k < row->arity; ++k) in.emplace_back(from, shapes[k]);
        for (std::size_t i = 0; i < 35; ++i) in[0].set(i, values[0].get(35 - i));
        for (std::size_t i = 0; i < 7 && row->arity > 1; ++i) in[1].set(i, values[1].get(3 * i));
        for (std::size_t i = 0; i < 5 && row->arity > 2; ++i) in[2].set(i, values[2].get(2 * i));
        const array want = reference::evaluate(std::string(row->name), in, dtype_attribute(to));
        for (test::engine& e : engines) {
          INFO(e.name, " ", row->name, " ", name_of(from), " -> ", name_of(to));
          std::vector<tensor> memory;
          for (const array& v : values) memory.push_back(test::upload(*e.ctx, v));
          const auto at = [](tensor& t, std::int64_t i) {
            return static_cast<std::byte*>(t.view().data()) + i * static_cast<std::int64_t>(size_of(t.view().type()));
          };
          const const_tensor_view views[] = {{at(memory[0], 35), from, {5, 7}, {-7, -1}, e.ctx->where()},
                                             {at(memory[1], 0), from, {7}, {3}, e.ctx->where()},
                                             {at(memory[2], 0), from, {5, 1}, {2, 1}, e.ctx->where()}};
          array written(to, {80});
          std::fill(written.bytes.begin(), written.bytes.end(), static_cast<unsigned char>(0xa5));
          const array before = written;
          tensor out = test::upload(*e.ctx, written);
          const tensor_view target(at(out, 1), to, {5, 7}, {2, 11}, e.ctx->where());
          call(*e.ctx, *find(row->name), {views, static_cast<std::size_t>(row->arity)}, {&target, 1});
          e.ctx->copy(written.bytes.data(), out.view().data(), written.bytes.size());
          array expected = before;
          for (std::size_t i = 0; i < 35; ++i) expected.set(1 + i / 7 * 2 + i % 7 * 11, want.get(i));
          CHECK(written == expected);
        }
      }
    }
  }
}

TEST_CASE("other format: what is refused") {
  context ctx({.threads = 1});
  alignas(8) std::byte bytes[64]{};
  const auto view = [&](dtype t, std::int64_t offset = 0) { return tensor_view(bytes + offset, t, {4}); };
  const auto site_of = [](const auto& f) {
    try {
      f();
    } catch (const error& e) {
      return e.site();
    }
    return error_site::undecided;
  };
  const auto call_add = [&](tensor_view out, const attributes& attrs) {
    const const_tensor_view in[] = {view(dtype::f32), view(dtype::f32)};
    call(ctx, *find("add"), in, {&out, 1}, attrs);
  };
  // In place only with the operands' format.
  call_add(view(dtype::f32), {});
  CHECK(site_of([&] { call_add(view(dtype::f64), {}); }) == error_site::overlap);
  CHECK(site_of([&] { call_add(view(dtype::f16), {}); }) == error_site::overlap);
  CHECK(site_of([&] { call_add(view(dtype::f16, 14), {}); }) == error_site::overlap);
  call_add(view(dtype::f64, 32), {});
  // The attribute and the output say the same, a floating-point format.
  call_add(view(dtype::f64, 32), dtype_attribute(dtype::f64));
  CHECK(site_of([&] { call_add(view(dtype::f32, 32), dtype_attribute(dtype::f64)); }) == error_site::output_dtype);
  CHECK(site_of([&] { call_add(view(dtype::i64, 32), {}); }) == error_site::output_dtype);
  CHECK(site_of([&] { call_add(view(dtype::i64, 32), dtype_attribute(dtype::i64)); }) == error_site::attribute_value);
  // Operands have one format, and other operations that of the operands.
  const const_tensor_view mixed[] = {view(dtype::f32), view(dtype::f16, 16)};
  const tensor_view out = view(dtype::f32, 32);
  CHECK(site_of([&] { call(ctx, *find("add"), mixed, {&out, 1}); }) == error_site::operand_dtype);
  const const_tensor_view x = view(dtype::f32);
  const tensor_view wide = view(dtype::f64, 32);
  CHECK(site_of([&] { call(ctx, *find("square"), {&x, 1}, {&wide, 1}); }) == error_site::output_dtype);
  CHECK(site_of([&] {
          call(ctx, *find("square"), {&x, 1}, {&wide, 1}, dtype_attribute(dtype::f64));
        }) == error_site::unknown_attribute);
  CHECK(infer(*find("sqrt"), {&x, 1}, dtype_attribute(dtype::bf16))[0].type == dtype::bf16);
  CHECK(infer(*find("sqrt"), {&x, 1})[0].type == dtype::f32);
}
