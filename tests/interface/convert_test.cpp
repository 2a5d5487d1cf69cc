// Conversions among all element types: bits written by hand, all numbers of 16 bits, integers around every midpoint, and every
// way in which operands may lie in memory. Expected bits are those of plain C++ where it is exact; else the reference's, whose
// conversions a test of its own compares with MPFR's.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

#include "librepdl/dynamic.hpp"
#include "librepdl/ops.hpp"
#include "reference/numbers/format.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/placed_tensor.hpp"

using namespace repdl;
using reference::array;
using tests::layout;
using tests::placed_tensor;

namespace {

constexpr dtype f16_ = dtype::f16, bf16_ = dtype::bf16, f32_ = dtype::f32, f64_ = dtype::f64, i64_ = dtype::i64,
                i32_ = dtype::i32, bool_ = dtype::boolean, e4m3_ = dtype::f8_e4m3fn, e5m2_ = dtype::f8_e5m2;
constexpr dtype every_type[] = {f16_, bf16_, f32_, f64_, i64_, bool_, i32_, e4m3_, e5m2_};
constexpr dtype floats[] = {f16_, bf16_, f32_, f64_};

std::vector<std::string> every_set() {
  std::vector<std::string> all;
  for (const isa_info& i : instruction_sets()) {
    if (i.available) all.push_back(i.name);
  }
  return all;
}

array converted(context& ctx, const array& x, dtype to, bool saturate = false) {
  array y(to, x.shape);
  std::fill(y.bytes.begin(), y.bytes.end(), 0x5a);
  convert(ctx, const_tensor_view(x.bytes.data(), x.type, tests::to_sizes(x.shape)),
          tensor_view(y.bytes.data(), to, tests::to_sizes(x.shape)), {saturate});
  return y;
}

std::int64_t differences(const array& got, const array& want) {
  std::int64_t wrong = got.shape != want.shape || got.type != want.type;
  for (std::size_t i = 0; i < static_cast<std::size_t>(want.count()); ++i) wrong += got.get(i) != want.get(i);
  return wrong;
}

// Of a few elements and of many, so that the rest of a loop and its registers both see them.
void check(dtype from, dtype to, const std::vector<std::pair<std::uint64_t, std::uint64_t>>& pairs) {
  for (const std::string& isa : every_set()) {
    CAPTURE(isa);
    context ctx({.threads = 1, .isa = isa});
    for (const std::size_t copies : {1, 67}) {
      const std::size_t n = pairs.size();
      array x(from, {static_cast<std::int64_t>(n * copies)});
      for (std::size_t i = 0; i < n * copies; ++i) x.set(i, pairs[i % n].first);
      const array y = converted(ctx, x, to);
      for (std::size_t i = 0; i < n * copies; ++i) {
        CAPTURE(name_of(from));
        CAPTURE(name_of(to));
        CAPTURE(x.get(i));
        REQUIRE(y.get(i) == pairs[i % n].second);
      }
    }
  }
}
std::uint64_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }
template <std::integral T>
std::uint64_t bits(T x) {
  return static_cast<std::uint64_t>(x);
}
std::uint64_t bits32(std::int64_t x) { return static_cast<std::uint32_t>(x); }

TEST_SUITE_BEGIN("portable");

TEST_CASE("convert: to integers, written by hand") {
  constexpr std::uint64_t least32 = 0x80000000, most32 = 0x7fffffff;
  constexpr std::uint64_t least64 = 0x8000000000000000, most64 = 0x7fffffffffffffff;
  check(f32_, i32_,
        {{bits(0.0F), 0},
         {bits(-0.0F), 0},
         {bits(0x1p-149F), 0},
         {bits(-0x1p-149F), 0},
         {bits(0x1.fffffep-1F), 0},
         {bits(-0x1.fffffep-1F), 0},
         {bits(1.5F), 1},
         {bits(-1.5F), bits32(-1)},
         {bits(2.5F), 2},
         {bits(0x1.fffffep30F), 0x7fffff80},
         {bits(0x1p31F), most32},
         {bits(0x1.000002p31F), most32},
         {bits(-0x1.fffffep30F), bits32(-0x7fffff80)},
         {bits(-0x1p31F), least32},
         {bits(-0x1.000002p31F), least32},
         {bits(0x1p63F), most32},
         {bits(-0x1p127F), least32},
         {0x7f800000, most32},
         {0xff800000, least32},
         {0x7fc00000, 0},
         {0xffc00000, 0},
         {0x7f800001, 0},
         {0xffffffff, 0}});
  check(f32_, i64_,
        {{bits(-0.0F), 0},
         {bits(-0x1.fffffep-1F), 0},
         {bits(1.5F), 1},
         {bits(-1.5F), bits(-1)},
         {bits(0x1p31F), 0x80000000},
         {bits(-0x1.000002p31F), bits(-0x80000100LL)},
         {bits(0x1.fffffep62F), 0x7fffff8000000000},
         {bits(0x1p63F), most64},
         {bits(-0x1.fffffep62F), bits(-0x7fffff8000000000LL)},
         {bits(-0x1p63F), least64},
         {bits(-0x1.000002p63F), least64},
         {bits(0x1p127F), most64},
         {0x7f800000, most64},
         {0xff800000, least64},
         {0x7fc12345, 0},
         {0xff800001, 0}});
  check(f64_, i32_,
        {{bits(-0.0), 0},
         {bits(0x1p-1074), 0},
         {bits(0x1.fffffffffffffp-1), 0},
         {bits(0x1p31 - 1), most32},
         {bits(0x1p31 - 0.5), most32},
         {bits(std::nextafter(0x1p31 - 1, 0.0)), most32 - 1},
         {bits(0x1p31), most32},
         {bits(-0x1p31 + 0.5), bits32(-0x7fffffff)},
         {bits(-0x1p31), least32},
         {bits(-0x1p31 - 0.5), least32},
         {bits(std::nextafter(-0x1p31 - 1, 0.0)), least32},
         {bits(-0x1p31 - 1), least32},
         {bits(0x1p1023), most32},
         {bits(-0x1p1023), least32},
         {0x7ff0000000000000, most32},
         {0xfff0000000000000, least32},
         {0x7ff0000000000001, 0},
         {0xfff8000000000123, 0}});
  check(f64_, i64_,
        {{bits(-0.0), 0},
         {bits(-0x1p-1074), 0},
         {bits(-0x1.fffffffffffffp-1), 0},
         {bits(0x1p31 + 0.5), 0x80000000},
         {bits(0x1.fffffffep31), 0xffffffff},
         {bits(0x1.ffffffff8p31), 0xffffffff},
         {bits(0x1.8p32), 0x180000000},
         {bits(0x1p51 + 0.5), 0x8000000000000},
         {bits(0x1p52 - 0.5), 0xfffffffffffff},
         {bits(-0x1p52 + 0.5), bits(-0xfffffffffffffLL)},
         {bits(0x1p53 - 1), 0x1fffffffffffff},
         {bits(0x1.fffffffffffffp62), 0x7ffffffffffffc00},
         {bits(0x1p63), most64},
         {bits(-0x1.fffffffffffffp62), bits(-0x7ffffffffffffc00LL)},
         {bits(-0x1p63), least64},
         {bits(-0x1.0000000000001p63), least64},
         {bits(0x1p1023), most64},
         {0x7ff0000000000000, most64},
         {0xfff0000000000000, least64},
         {0x7ff0000000000001, 0},
         {0xffffffffffffffff, 0}});
  check(i64_, i32_,
        {{0, 0},
         {bits(-1), bits32(-1)},
         {0x7fffffff, most32},
         {0x80000000, most32},
         {0xffffffff, most32},
         {0x100000000, most32},
         {most64, most32},
         {bits(-0x80000000LL), least32},
         {bits(-0x80000001LL), least32},
         {bits(-0x100000000LL), least32},
         {least64, least32}});
  check(i32_, i64_, {{0, 0}, {1, 1}, {most32, most32}, {least32, bits(-0x80000000LL)}, {0xffffffff, ~0ULL}});
  check(bool_, i32_, {{0, 0}, {1, 1}, {2, 1}, {255, 1}});
  check(bool_, i64_, {{0, 0}, {1, 1}, {2, 1}, {255, 1}});
}

TEST_CASE("convert: integers to formats, written by hand") {
  constexpr std::uint64_t least64 = 0x8000000000000000, most64 = 0x7fffffffffffffff;
  check(i32_, f32_,
        {{0, 0},
         {bits32(-1), bits(-1.0F)},
         {0x1000000, bits(0x1p24F)},
         {0x1000001, bits(0x1p24F)},  // a tie to even
         {0x1000003, bits(0x1.000004p24F)},
         {bits32(-0x1000001), bits(-0x1p24F)},
         {0x7fffffff, bits(0x1p31F)},
         {0x7fffffbf, bits(0x1.fffffep30F)},
         {0x7fffffc0, bits(0x1p31F)},
         {0x80000000, bits(-0x1p31F)}});
  check(i32_, f64_, {{0, 0}, {0x7fffffff, bits(2147483647.0)}, {0x80000000, bits(-0x1p31)}, {bits32(-1), bits(-1.0)}});
  check(i64_, f64_,
        {{0, 0},
         {0x20000000000001, bits(0x1p53)},
         {0x20000000000003, bits(0x1.0000000000002p53)},
         {bits(-0x20000000000001LL), bits(-0x1p53)},
         {0x40000000000003, bits(0x1.0000000000001p54)},
         {most64, bits(0x1p63)},
         {most64 - 0x1ff, bits(0x1p63)},  // a tie
         {most64 - 0x200, bits(0x1.fffffffffffffp62)},
         {least64, bits(-0x1p63)}});
  // 2^62 + 2^38 is a midpoint; by way of binary64 what is above by 1 would be one too.
  constexpr std::uint64_t middle = (1ULL << 62) + (1ULL << 38);
  check(i64_, f32_,
        {{0, 0},
         {0x1000001, bits(0x1p24F)},
         {middle - 1, bits(0x1p62F)},
         {middle, bits(0x1p62F)},
         {middle + 1, bits(0x1.000002p62F)},
         {0 - middle, bits(-0x1p62F)},
         {0 - middle - 1, bits(-0x1.000002p62F)},
         {0 - middle + 1, bits(-0x1p62F)},
         {most64, bits(0x1p63F)},
         {least64, bits(-0x1p63F)}});
  constexpr std::uint64_t middle8 = (1ULL << 62) + (1ULL << 54);
  for (const dtype from : {i32_, i64_}) {
    const auto as = [&](std::int64_t v) { return from == i32_ ? bits32(v) : bits(v); };
    check(from, f16_,
          {{0, 0},
           {1, 0x3c00},
           {as(-1), 0xbc00},
           {2047, 0x67ff},
           {2049, 0x6800},
           {2051, 0x6802},
           {as(-2051), 0xe802},
           {4098, 0x6c00},
           {4099, 0x6c01},
           {4097, 0x6c00},
           {65504, 0x7bff},
           {65519, 0x7bff},
           {65520, 0x7c00},
           {as(-65519), 0xfbff},
           {as(-65520), 0xfc00},
           {65536, 0x7c00},
           {0x7fffffff, 0x7c00},
           {as(-0x80000000LL), 0xfc00}});
    check(from, bf16_,
          {{0, 0},
           {1, 0x3f80},
           {257, 0x4380},
           {259, 0x4382},
           {as(-259), 0xc382},
           {0x4040000, 0x4c80},  // 2^26 + 2^18, a tie
           {0x4040001, 0x4c81},
           {0x403ffff, 0x4c80},
           {0x7fffffff, 0x4f00},
           {as(-0x80000000LL), 0xcf00}});
  }
  check(i64_, f16_,
        {{most64, 0x7c00}, {least64, 0xfc00}, {1ULL << 40, 0x7c00}, {bits(-65519LL - (1LL << 32)), 0xfc00}});
  check(i64_, bf16_,
        {{middle8 - 1, 0x5e80},
         {middle8, 0x5e80},
         {middle8 + 1, 0x5e81},
         {0 - middle8 - 1, 0xde81},
         {0 - middle8, 0xde80},
         {most64, 0x5f00},
         {least64, 0xdf00}});
  check(bool_, f16_, {{0, 0}, {1, 0x3c00}, {2, 0x3c00}, {255, 0x3c00}});
  check(bool_, bf16_, {{0, 0}, {1, 0x3f80}, {128, 0x3f80}});
  check(bool_, f32_, {{0, 0}, {1, bits(1.0F)}, {254, bits(1.0F)}});
  check(bool_, f64_, {{0, 0}, {1, bits(1.0)}, {4, bits(1.0)}});
}

TEST_CASE("convert: to bool, and to the same type") {
  for (const dtype from : floats) {
    const reference::format& f = reference::format_of(from);
    check(from, bool_,
          {{0, 0},
           {f.sign_bit(), 0},
           {1, 1},
           {f.sign_bit() | 1, 1},
           {f.infinity(), 1},
           {f.infinity() | f.sign_bit(), 1},
           {f.nan(), 1},
           {f.infinity() + 1, 1},
           {f.sign_bit() | (f.sign_bit() - 1), 1}});
    check(from, from, {{f.infinity() + 1, f.infinity() + 1}, {f.nan() | f.sign_bit() | 3, f.nan() | f.sign_bit() | 3}});
  }
  check(i32_, bool_, {{0, 0}, {1, 1}, {0x80000000, 1}, {0x100, 1}, {0x10000, 1}, {0xffffffff, 1}});
  check(i64_, bool_, {{0, 0}, {1, 1}, {1ULL << 32, 1}, {1ULL << 63, 1}, {0x100, 1}, {~0ULL, 1}});
  check(bool_, bool_, {{0, 0}, {1, 1}, {2, 1}, {128, 1}, {255, 1}});
  check(i32_, i32_, {{0x80000000, 0x80000000}, {5, 5}});
  check(i64_, i64_, {{1ULL << 63, 1ULL << 63}, {5, 5}});
}

TEST_CASE("convert: every number of 16 bits to integers and bool") {
  for (const dtype from : {f16_, bf16_}) {
    const array x = reference::fill(reference::sample_class::all_patterns, from, {65536}, 0, 0);
    array i32(i32_, x.shape), i64(i64_, x.shape), truth(bool_, x.shape);
    for (std::size_t i = 0; i < 65536; ++i) {
      const double v = std::bit_cast<double>(reference::convert(from, f64_, i));
      const auto clamped = [&](double limit, std::int64_t most) {
        return std::isnan(v) ? 0 : v >= limit ? most : v <= -limit ? -most - 1 : static_cast<std::int64_t>(v);
      };
      i32.set(i, bits32(clamped(0x1p31, INT32_MAX)));
      i64.set(i, bits(clamped(0x1p63, INT64_MAX)));
      truth.set(i, v != 0 ? 1 : 0);
    }
    for (const std::string& isa : every_set()) {
      CAPTURE(isa);
      context ctx({.threads = 2, .isa = isa});
      for (const array* want : {&i32, &i64, &truth}) CHECK(differences(converted(ctx, x, want->type), *want) == 0);
    }
  }
}

TEST_CASE("convert: every integer that f16 rounds") {
  constexpr std::int64_t end = 70000;
  for (const dtype from : {i32_, i64_}) {
    array x(from, {2 * end + 1});
    for (std::int64_t v = -end; v <= end; ++v) x.set(static_cast<std::size_t>(v + end), bits(v));
    array want(f16_, x.shape);
    for (std::int64_t v = -end; v <= end; ++v) {
      want.set(static_cast<std::size_t>(v + end), reference::convert(f64_, f16_, bits(static_cast<double>(v))));
    }
    for (const std::string& isa : every_set()) {
      CAPTURE(isa);
      context ctx({.threads = 2, .isa = isa});
      CHECK(differences(converted(ctx, x, f16_), want) == 0);
    }
  }
}

TEST_CASE("convert: integers around every midpoint and power of two") {
  for (const dtype from : {i32_, i64_}) {
    const int width = from == i32_ ? 31 : 63;
    std::vector<std::uint64_t> v{0};
    for (int top = 0; top < width; ++top) {
      for (int low = 0; low <= top; ++low) {
        const std::uint64_t first = std::uint64_t{1} << top, second = std::uint64_t{1} << low;
        for (std::uint64_t k = 0; k < 5; ++k) {
          v.push_back((first | second) + k - 2);
          v.push_back(0 - v.back());
          v.push_back(2 * first - 1 - second + k - 2);  // ones down to a zero, and ones
        }
      }
    }
    array x(from, {static_cast<std::int64_t>(v.size())});
    for (std::size_t i = 0; i < v.size(); ++i) x.set(i, v[i]);
    for (const std::string& isa : every_set()) {
      CAPTURE(isa);
      context ctx({.threads = 1, .isa = isa});
      for (const dtype to : every_type) {
        CAPTURE(name_of(to));
        array want(to, x.shape);
        for (std::size_t i = 0; i < v.size(); ++i) {
          // The compiler's conversion of one integer is correctly rounded, too.
          const std::int64_t n = from == i32_ ? static_cast<std::int32_t>(v[i]) : static_cast<std::int64_t>(v[i]);
          want.set(i, to == f32_   ? bits(static_cast<float>(n))
                      : to == f64_ ? bits(static_cast<double>(n))
                                   : reference::convert(from, to, x.get(i)));
        }
        CHECK(differences(converted(ctx, x, to), want) == 0);
      }
    }
  }
}

TEST_CASE("convert: all pairs of samples, in every layout") {
  const reference::shape_list shape{3, 5, 2, 7, 11};
  for (const std::string& isa : every_set()) {
    CAPTURE(isa);
    context ctx({.threads = 2, .isa = isa});
    for (const dtype from : every_type) {
      for (const dtype to : every_type) {
        CAPTURE(name_of(from));
        CAPTURE(name_of(to));
        std::uint64_t turn = 0;
        for (const reference::sample_class c : reference::element_classes) {
          array x = reference::fill_conversion(c, from, to, 2310, 11, static_cast<std::uint64_t>(from));
          array want(to, x.shape);
          for (std::size_t i = 0; i < 2310; ++i) want.set(i, reference::convert(from, to, x.get(i)));
          CHECK(differences(converted(ctx, x, to), want) == 0);
          x.shape = want.shape = shape;
          // Each layout of either side, by turns of the classes.
          const layout in = tests::layouts[turn % std::size(tests::layouts)];
          const layout out = tests::layouts[(turn / 2 + 1) % std::size(tests::layouts)];
          placed_tensor tx(ctx, x, in), ty(ctx, to, shape, out);
          convert(ctx, tx.view(), ty.view());
          CHECK(differences(ty.get(), want) == 0);
          ++turn;
        }
      }
    }
  }
}

// The formats of 8 bits, said once more: the numbers of the patterns up to the one above the largest number.
struct eight_bits {
  dtype type;
  int precision, emin;
  unsigned largest, infinity;  // or, where there is none, NaN
  double number(unsigned magnitude) const {
    const unsigned hidden = 1u << (precision - 1), fraction = magnitude % hidden, biased = magnitude / hidden;
    return std::ldexp(biased == 0 ? fraction : fraction + hidden,
                      emin - (precision - 1) + (biased == 0 ? 0 : static_cast<int>(biased) - 1));
  }
  double value(unsigned pattern) const {
    const unsigned magnitude = pattern & 0x7f;
    const double v = magnitude <= largest ? number(magnitude) : magnitude == infinity ? HUGE_VAL : NAN;
    return pattern >= 0x80 ? -v : v;
  }
  // The nearest number, of two the even one.
  std::uint64_t nearest(double v, bool saturate) const {
    if (std::isnan(v)) return 0x7f;
    const unsigned sign = std::signbit(v) ? 0x80 : 0;
    const double a = std::fabs(v);
    unsigned low = 0, high = largest + 1;
    if (a >= number(high)) low = high;
    while (low + 1 < high) {
      const unsigned middle = (low + high) / 2;
      (number(middle) <= a ? low : high) = middle;
    }
    const double border = (number(low) + number(low + 1)) / 2;
    const unsigned found = low > largest ? low : a > border || (a == border && low % 2 == 1) ? low + 1 : low;
    if (found <= largest) return sign | found;
    return saturate ? sign | largest : infinity == 0 ? 0x7f : sign | infinity;
  }
};
constexpr eight_bits formats_of_8_bits[] = {{e4m3_, 4, -6, 0x7e, 0}, {e5m2_, 3, -14, 0x7b, 0x7c}};

std::uint64_t rounded_to(dtype t, double v) {
  switch (t) {
    case dtype::f64:
      return bits(v);
    case dtype::f32:
      return bits(static_cast<float>(v));
    default:
      return reference::convert(f64_, t, bits(v));
  }
}

// Into a format of 8 bits: the library with every set, and the oracle.
void check_into(const eight_bits& f, const array& x, const std::vector<double>& values) {
  for (const bool saturate : {false, true}) {
    array want(f.type, x.shape);
    std::int64_t oracle_wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      want.set(i, f.nearest(values[i], saturate));
      oracle_wrong += reference::convert(x.type, f.type, x.get(i), saturate) != want.get(i);
    }
    CAPTURE(name_of(x.type));
    CAPTURE(name_of(f.type));
    CHECK(oracle_wrong == 0);
    for (const std::string& isa : every_set()) {
      CAPTURE(isa);
      context ctx({.threads = 1, .isa = isa});
      CHECK(differences(converted(ctx, x, f.type, saturate), want) == 0);
    }
  }
}

TEST_CASE("convert: 8 bits: every number to every type") {
  for (const eight_bits& f : formats_of_8_bits) {
    array x(f.type, {256});
    for (std::size_t i = 0; i < 256; ++i) x.set(i, i);
    for (const dtype to : every_type) {
      if (to == f.type) continue;
      array want(to, x.shape);
      for (unsigned i = 0; i < 256; ++i) {
        const double v = f.value(i);
        const auto clamped = [&](double limit, std::int64_t most) {
          return std::isnan(v) ? 0 : v >= limit ? most : v <= -limit ? -most - 1 : static_cast<std::int64_t>(v);
        };
        const bool is_number = to != bool_ && to != i32_ && to != i64_;
        want.set(i, to == bool_                  ? (v != 0 ? 1 : 0)
                    : to == i32_                 ? bits32(clamped(0x1p31, INT32_MAX))
                    : to == i64_                 ? bits(clamped(0x1p63, INT64_MAX))
                    : is_number && std::isnan(v) ? reference::nan_bits(to)
                    : to == e4m3_ || to == e5m2_ ? formats_of_8_bits[to == e5m2_].nearest(v, false)
                                                 : rounded_to(to, v));
        if (to == f64_ && !std::isnan(v)) REQUIRE(std::bit_cast<double>(want.get(i)) == v);
      }
      for (const std::string& isa : every_set()) {
        CAPTURE(isa);
        CAPTURE(name_of(to));
        context ctx({.threads = 1, .isa = isa});
        CHECK(differences(converted(ctx, x, to), want) == 0);
      }
    }
    context ctx({.threads = 1});
    CHECK(differences(converted(ctx, x, f.type, true), x) == 0);  // the same type: the bits
  }
}

TEST_CASE("convert: 8 bits: every border and its neighbours, from every format") {
  for (const eight_bits& f : formats_of_8_bits) {
    std::vector<double> borders;
    for (unsigned m = 0; m <= f.largest; ++m) {
      borders.push_back(f.number(m));
      borders.push_back((f.number(m) + f.number(m + 1)) / 2);
    }
    borders.push_back(f.number(f.largest + 1));
    for (const dtype from : {f64_, f32_, f16_, bf16_}) {
      const std::uint64_t sign = reference::format_of(from).sign_bit();
      std::vector<std::uint64_t> patterns{0, sign, 1, sign | 1, reference::format_of(from).largest()};
      for (const double b : borders) {
        // One step away in each format, and a little further than binary32 sees.
        for (const double v : {b, b * (1 + 0x1p-30), b * (1 - 0x1p-30), b * (1 + 0x1p-50), b * (1 - 0x1p-50)}) {
          const std::uint64_t p = rounded_to(from, v);
          for (const std::uint64_t step : {p, p + 1, p == 0 ? p : p - 1}) {
            patterns.push_back(step);
            patterns.push_back(step | sign);
          }
        }
      }
      for (const std::uint64_t payload : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}}) {
        patterns.push_back(reference::format_of(from).infinity() + payload);
        patterns.push_back(patterns.back() | sign);
      }
      array x(from, {static_cast<std::int64_t>(patterns.size())});
      std::vector<double> values;
      for (std::size_t i = 0; i < patterns.size(); ++i) {
        x.set(i, patterns[i]);
        values.push_back(std::bit_cast<double>(reference::convert(from, f64_, patterns[i])));
      }
      check_into(f, x, values);
    }
  }
}

TEST_CASE("convert: 8 bits: from every number of 16 bits, integers and bool") {
  for (const eight_bits& f : formats_of_8_bits) {
    for (const dtype from : {f16_, bf16_}) {
      const array x = reference::fill(reference::sample_class::all_patterns, from, {65536}, 0, 0);
      std::vector<double> values;
      for (std::size_t i = 0; i < 65536; ++i) {
        values.push_back(std::bit_cast<double>(reference::convert(from, f64_, i)));
      }
      check_into(f, x, values);
    }
    for (const dtype from : {i32_, i64_}) {
      std::vector<std::int64_t> integers;
      for (std::int64_t v = -70000; v <= 70000; ++v) integers.push_back(v);
      for (const std::int64_t v : {std::int64_t{INT32_MAX}, std::int64_t{INT32_MIN}}) integers.push_back(v);
      if (from == i64_) {
        for (const std::int64_t v : {INT64_MAX, INT64_MIN, (std::int64_t{1} << 40) + 1}) integers.push_back(v);
      }
      array x(from, {static_cast<std::int64_t>(integers.size())});
      std::vector<double> values;
      for (std::size_t i = 0; i < integers.size(); ++i) {
        x.set(i, bits(integers[i]));
        values.push_back(static_cast<double>(integers[i]));
      }
      check_into(f, x, values);
    }
    array truth(bool_, {4});
    for (std::size_t i = 0; i < 4; ++i) truth.set(i, i);
    check_into(f, truth, {0, 1, 1, 1});
  }
}

TEST_CASE("convert: 8 bits: everything else refuses them, and other types do not saturate") {
  for (const op_info& op : operations()) {
    for (const auto* list : {&op.in, &op.out}) {
      for (const operand_info& o : *list) {
        const bool has =
            std::find_if(o.types.begin(), o.types.end(), [](dtype t) { return t >= e4m3_; }) != o.types.end();
        CHECK_MESSAGE(has == (op.name == "convert"), op.name);
      }
    }
  }
  context ctx({.threads = 1});
  f8_e5m2 x[3] = {}, y[3];
  float wide[3];
  const auto message = [&](const auto& call) -> std::string {
    try {
      call();
    } catch (const error& e) {
      return e.what();
    }
    return "";
  };
  CHECK(message([&] {
          add(ctx, const_tensor_view(x, sizes{3}), const_tensor_view(x, sizes{3}), tensor_view(y, sizes{3}));
        }).find("add: x: expected f16, bf16, f32 or f64, got f8_e5m2") == 0);
  CHECK(message([&] {
          convert(ctx, const_tensor_view(x, sizes{3}), tensor_view(wide, sizes{3}), {.saturate = true});
        }).find("convert: saturate: expected false, or a result of f8_e4m3fn or f8_e5m2, got true, to f32") == 0);
}

TEST_CASE("convert: repeated elements, in place, and nothing") {
  context ctx({.threads = 1});
  const std::int64_t x[] = {-7, 0, 1LL << 40};
  std::int32_t y[12];
  convert(ctx, const_tensor_view(x, dtype::i64, sizes{4, 3}, sizes{0, 1}), tensor_view(y, sizes{4, 3}));
  for (std::size_t i = 0; i < 12; ++i) CHECK(y[i] == (i % 3 == 0 ? -7 : i % 3 == 1 ? 0 : INT32_MAX));
  std::uint8_t truth[] = {0, 1, 2, 255, 7};
  const tensor_view b(static_cast<void*>(truth), dtype::boolean, sizes{5});
  convert(ctx, b, b);
  CHECK(std::vector(truth, truth + 5) == std::vector<std::uint8_t>{0, 1, 1, 1, 1});
  float none = 3;
  convert(ctx, const_tensor_view(x, sizes{0}), tensor_view(&none, sizes{0}));
  CHECK(none == 3);
  const op_info& op = *find("convert");
  for (const dtype to : every_type) {
    const tensor_spec s =
        infer(op, std::vector{const_tensor_view(x, sizes{3})}, {{"dtype", std::string(name_of(to))}})[0];
    CHECK(s.type == to);
    CHECK(s.shape == sizes{3});
  }
}

TEST_CASE("convert: more elements than caches hold, on several threads") {
  constexpr std::int64_t n = (1 << 20) + 13;
  const array x = reference::fill(reference::sample_class::wide_exponents, i64_, {n}, 5, 6);
  for (const dtype to : {i32_, f32_, f16_, bool_}) {
    array want(to, x.shape);
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) want.set(i, reference::convert(i64_, to, x.get(i)));
    for (const int threads : {1, 3}) {
      context ctx({.threads = threads});
      CHECK(differences(converted(ctx, x, to), want) == 0);
    }
  }
}

}  // namespace

TEST_SUITE_END();
