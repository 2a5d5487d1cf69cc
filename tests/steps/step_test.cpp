// SGD and AdamW: the arithmetic beneath them against GMP, and steps through the public API against the oracle: random
// and chosen operands, hyper-parameters at both ends of their range, every instruction set, tier, layout.
#include <doctest/doctest.h>
#include <gmpxx.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "librepdl/ops/steps/step_adamw.hpp"
#include "reference/evaluate.hpp"
#include "tests/helpers/class_engines.hpp"
#include "tests/helpers/settings.hpp"

namespace {

using namespace repdl;
using reference::array;
using tests::bits;

std::mt19937_64 engine(20240607);

float from_bits(std::uint32_t b) { return std::bit_cast<float>(b); }
double from_bits64(std::uint64_t b) { return std::bit_cast<double>(b); }

// -------------------------------------------------------------------------------------------------- steps

struct hyper {
  bool is_sgd;
  dtype type;  // of parameters and gradients
  sgd_options sgd;
  adamw_options adamw;
};

// RN_T of a number, and the number that a pattern of T is.
std::uint64_t pattern_of(dtype type, double x) {
  return type == dtype::f16    ? num::narrow<f16>(x).bits
         : type == dtype::bf16 ? num::narrow<bf16>(x).bits
         : type == dtype::f64  ? std::bit_cast<std::uint64_t>(x)
                               : bits(static_cast<float>(x));
}
double value_of(dtype type, std::uint64_t pattern) {
  const auto narrow = static_cast<std::uint16_t>(pattern);
  return type == dtype::f16    ? num::widen(f16{narrow})
         : type == dtype::bf16 ? num::widen(bf16{narrow})
         : type == dtype::f64  ? from_bits64(pattern)
                               : static_cast<double>(from_bits(static_cast<std::uint32_t>(pattern)));
}
dtype state_of(dtype type) { return type == dtype::f64 ? dtype::f64 : dtype::f32; }

// What one step reads: param, grad, velocity or first moment, second moment; each a number of its format.
using operands = std::vector<double>;

enum class kind { patterns, short_numbers, stuck, near_one, huge, special, subnormal, root, ordinary, count };
double pick64(kind k) {
  const std::uint64_t b = engine();
  const auto with_exponent = [&](std::uint64_t e) { return from_bits64((b & 0x800fffffffffffffu) | e << 52); };
  switch (k) {
    case kind::patterns:
      return from_bits64(b);
    case kind::short_numbers:
      return std::ldexp(static_cast<double>(static_cast<int>(b % 2001) - 1000), static_cast<int>(engine() % 8) - 4);
    case kind::stuck:
      return std::ldexp(static_cast<double>(static_cast<int>(b % 41) - 20), -1074);
    case kind::near_one:
      return with_exponent(1022);
    case kind::huge:
      return with_exponent(engine() % 2 == 0 ? 2042 + engine() % 5
                                             : 1530 + engine() % 12);  // some squares about 2^1024
    case kind::special: {
      constexpr double all[] = {0,
                                -0.0,
                                num::infinity,
                                -num::infinity,
                                __builtin_nan(""),
                                __builtin_nans(""),
                                0x1.fffffffffffffp1023,
                                -0x1.fffffffffffffp1023,
                                0x1p-1074,
                                -0x1p-1074,
                                0x1p-1022,
                                1};
      return all[b % 12];
    }
    case kind::subnormal:
      return with_exponent(engine() % 2 == 0 ? engine() % 3 : 480 + engine() % 10);  // some squares subnormal
    case kind::root: {  // the square of a number of 26 bits
      const double x = std::ldexp(static_cast<double>(b & 0x3ffffff), static_cast<int>(engine() % 20) - 34);
      return x * x;
    }
    default:
      return with_exponent(960 + (b >> 52) % 64);
  }
}
float pick(kind k) {
  const auto b = static_cast<std::uint32_t>(engine());
  switch (k) {
    case kind::patterns:
      return from_bits(b);
    case kind::short_numbers:
      return std::ldexp(static_cast<float>(static_cast<int>(b % 2001) - 1000), static_cast<int>(engine() % 8) - 4);
    case kind::stuck:
      return std::ldexp(static_cast<float>(static_cast<int>(b % 41) - 20), -149);
    case kind::near_one:
      return from_bits((b & 0x80ffffffu) | 0x3f000000u);
    case kind::huge:
      return from_bits((b & 0x807fffffu) | (static_cast<std::uint32_t>(250 + engine() % 5) << 23));
    case kind::special: {
      constexpr std::uint32_t all[] = {0,           0x80000000u, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0x7f800001u,
                                       0x7f7fffffu, 0xff7fffffu, 1u,          0x80000001u, 0x00800000u, 0x3f800000u};
      return from_bits(all[b % 12]);
    }
    case kind::subnormal:
      return from_bits((b & 0x807fffffu) | (static_cast<std::uint32_t>(engine() % 3) << 23));
    case kind::root: {  // the square of a number of 12 bits
      const float x = std::ldexp(static_cast<float>(b & 0xfff), static_cast<int>(engine() % 20) - 20);
      return x * x;
    }
    default:
      return from_bits((b & 0x83ffffffu) | 0x3c000000u);
  }
}
double pick(dtype type, kind k) { return type == dtype::f64 ? pick64(k) : static_cast<double>(pick(k)); }
kind any_kind() { return static_cast<kind>(engine() % static_cast<std::uint64_t>(kind::count)); }

double number(int k) {
  const std::uint64_t m = engine();
  const double sign = (m & 1) != 0 ? -1 : 1;
  const double mantissa = 1 + static_cast<double>(m >> 12) * 0x1p-52;
  constexpr double typical[] = {0.1, 0.01, 0.001, 1e-4, 0.9, 0.99, 1e-8, 0.3};
  switch (k) {
    case 0:
      return typical[m / 2 % 8];
    case 1:
      return sign * std::ldexp(1.0, static_cast<int>(m / 2 % 12) - 8);
    case 2:
      return 0;
    case 3:
      return sign * std::ldexp(mantissa, static_cast<int>(engine() % 399) - 200);
    case 4:
      return sign * std::ldexp(mantissa, -200);
    case 5:
      return sign * 0x1p200;
    case 6:
      return sign * 0x1p-200;
    default:
      return sign * mantissa * 0x1p199;
  }
}
double beta() {
  constexpr double some[] = {0, 0.9, 0.999, 0.5, 1 - 0x1p-53, 0x1p-200, 0.75};
  const std::uint64_t k = engine() % 9;
  return k < 7 ? some[k] : static_cast<double>(engine() >> 11) * 0x1p-53;
}

hyper make_hyper(int trial, dtype type = dtype::f32) {
  hyper h{};
  h.is_sgd = trial % 2 == 0;
  h.type = type;
  const auto some = [&] {
    return number(trial % 4 < 2 ? static_cast<int>(engine() % 3) : static_cast<int>(engine() % 8));
  };
  h.sgd.lr = h.adamw.lr = some();
  h.sgd.weight_decay = h.adamw.weight_decay = engine() % 3 == 0 ? 0 : some();
  h.sgd.momentum = engine() % 4 == 0 ? 0 : beta();
  h.sgd.dampening = engine() % 2 == 0 ? 0 : engine() % 3 == 0 ? 1 : some();
  h.sgd.nesterov = h.sgd.momentum > 0 && engine() % 2 == 0;
  h.sgd.first_step = h.sgd.momentum > 0 && engine() % 4 == 0;
  h.adamw.beta1 = beta();
  h.adamw.beta2 = beta();
  h.adamw.eps = engine() % 5 == 0 ? 0 : std::fabs(some());
  h.adamw.step = 1 + static_cast<std::int64_t>(engine() % 5);
  if (trial % 8 == 5) {  // exact roots, exact quotients: ties of the parameter
    h.adamw.beta1 = h.adamw.beta2 = 0;
    h.adamw.lr = number(1);
    h.adamw.weight_decay = engine() % 2 == 0 ? 0 : number(1);
    h.adamw.eps = engine() % 3 == 0 ? 0 : std::ldexp(1.0, -static_cast<int>(engine() % 4));
    // Half an ulp of a parameter in [1/2, 1), or more.
    const int half = type == dtype::f16 ? 12 : type == dtype::f64 ? 54 : 9;
    if (type != dtype::f32) h.adamw.lr = std::ldexp(1.0, static_cast<int>(engine() % 3) - half);
  }
  return h;
}

operands make_operands(const hyper& h, int i) {
  const kind k = any_kind();
  const dtype state = state_of(h.type);
  operands o(4);
  for (double& x : o) x = pick(h.type, i % 4 == 0 ? any_kind() : k);
  if (i % 5 != 0) o[3] = std::fabs(o[3]);
  if (!h.is_sgd && i % 3 == 0) o[3] = pick(h.type, kind::root);
  if (!h.is_sgd && h.adamw.beta2 == 0 && i % 2 != 0) {
    // P near a midpoint, or a quotient of few bits.
    o[0] = pick(h.type, kind::near_one);
    o[1] = i % 4 == 1 ? h.adamw.eps * (1 + i % 8) : std::sqrt(pick(h.type, kind::root));
    if (i % 8 == 3) {
      const double quotient = h.adamw.lr * o[1] / (std::fabs(o[1]) + h.adamw.eps);
      o[0] = o[0] + (h.type == dtype::f64 ? 0x1p-54 : 0x1p-25) + quotient;
    }
  }
  if (h.is_sgd && i % 5 == 0) {  // cancellation
    o[1] = -h.sgd.weight_decay * o[0];
    if (i % 2 != 0) o[2] = -o[1];
  }
  for (std::size_t which = 0; which < 4; ++which) {
    const dtype type = which < 2 ? h.type : state;
    o[which] = value_of(type, pattern_of(type, o[which]));
  }
  return o;
}

array column(const hyper& h, const std::vector<operands>& all, std::size_t which) {
  const dtype type = which < 2 ? h.type : state_of(h.type);
  array a(type, {static_cast<std::int64_t>(all.size())});
  for (std::size_t i = 0; i < all.size(); ++i) a.set(i, pattern_of(type, all[i][which]));
  return a;
}

std::vector<array> expected(const hyper& h, const std::vector<operands>& all) {
  if (h.is_sgd) {
    std::vector<array> in = {column(h, all, 0), column(h, all, 1)};
    if (h.sgd.momentum > 0) in.push_back(h.sgd.first_step ? array::none() : column(h, all, 2));
    return reference::evaluate_all("sgd", in,
                                   {{"lr", h.sgd.lr},
                                    {"momentum", h.sgd.momentum},
                                    {"dampening", h.sgd.dampening},
                                    {"weight_decay", h.sgd.weight_decay},
                                    {"nesterov", h.sgd.nesterov}});
  }
  return reference::evaluate_all("adamw", {column(h, all, 0), column(h, all, 1), column(h, all, 2), column(h, all, 3)},
                                 {{"lr", h.adamw.lr},
                                  {"beta1", h.adamw.beta1},
                                  {"beta2", h.adamw.beta2},
                                  {"eps", h.adamw.eps},
                                  {"weight_decay", h.adamw.weight_decay},
                                  {"step", h.adamw.step}});
}

// The patterns of the new param and states (column 1 stays), by the library. `stride`: of the tensors in memory, may be negative; the
// elements are cut into tensors of several sizes.
using patterns = std::vector<std::vector<std::uint64_t>>;
patterns step(context& ctx, const hyper& h, const std::vector<operands>& all, std::int64_t stride) {
  const std::size_t n = all.size();
  const auto room = n * static_cast<std::size_t>(std::abs(stride));
  std::vector<double> memory(4 * room);  // of bytes; columns of narrower formats fill a part of their place
  const auto type_of = [&](std::size_t k) { return k < 2 ? h.type : state_of(h.type); };
  const auto place = [&](std::byte* base, std::size_t k, std::size_t i) {
    const std::size_t at = i * static_cast<std::size_t>(std::abs(stride));
    return base + k * room * 8 + (stride > 0 ? at : room - 1 - at) * size_of(type_of(k));
  };
  auto* const host = reinterpret_cast<std::byte*>(memory.data());
  for (std::size_t k = 0; k < 4; ++k) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t b = pattern_of(type_of(k), all[i][k]);
      std::memcpy(place(host, k, i), &b, size_of(type_of(k)));
    }
  }
  tensor device(ctx, memory, {memory.size()});
  const auto view = [&](std::size_t k, std::size_t first, std::size_t count) {
    return tensor_view(place(static_cast<std::byte*>(device.view().data()), k, first), type_of(k),
                       {static_cast<std::int64_t>(count)}, {stride}, ctx.where());
  };
  std::vector<sgd_tensor> sgd_tensors;
  std::vector<adamw_tensor> adamw_tensors;
  for (std::size_t first = 0, size = 1; first < n; first += size, size = size * 3 + 1) {
    const std::size_t count = std::min(size, n - first);
    if (h.is_sgd) {
      sgd_tensor t{view(0, first, count), view(1, first, count)};
      if (h.sgd.momentum > 0) t.velocity = view(2, first, count);
      sgd_tensors.push_back(t);
    } else {
      adamw_tensors.push_back(
          {view(0, first, count), view(1, first, count), view(2, first, count), view(3, first, count)});
    }
  }
  if (h.is_sgd) {
    sgd(ctx, sgd_tensors, h.sgd);
  } else {
    adamw(ctx, adamw_tensors, h.adamw);
  }
  device.copy_to(memory);
  patterns result(n, std::vector<std::uint64_t>(4));
  for (std::size_t k = 0; k < 4; ++k) {
    for (std::size_t i = 0; i < n; ++i) std::memcpy(&result[i][k], place(host, k, i), size_of(type_of(k)));
  }
  return result;
}

void check(context& ctx, const hyper& h, const std::vector<operands>& all, const std::vector<array>& want,
           std::int64_t stride) {
  const patterns got = step(ctx, h, all, stride);
  const std::size_t columns[] = {0, 2, 3};
  for (std::size_t k = 0; k < want.size(); ++k) {
    if (want[k].absent()) continue;
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < all.size(); ++i) wrong += got[i][columns[k]] != want[k].get(i) ? 1 : 0;
    CHECK_MESSAGE(wrong == 0, (h.is_sgd ? "sgd " : "adamw "), name_of(h.type), " output ", k, " lr ", h.sgd.lr,
                  " stride ", stride);
  }
}

TEST_CASE("sgd and adamw: random and adversarial steps against the oracle, every tier") {
  std::vector<test::engine> engines = test::engines();
  std::vector<test::engine> exact;
  for (const isa_info& isa : instruction_sets()) {
    if (!isa.available) continue;
    exact.push_back({isa.name, std::make_unique<context>(
                                   context_options{.threads = 2, .isa = isa.name, .first_tier = tier::exact})});
  }
  constexpr dtype types[] = {dtype::f32, dtype::f16, dtype::bf16, dtype::f64};
  for (int trial = 0; trial < 256; ++trial) {
    const hyper h = make_hyper(trial, types[trial / 8 % 4]);
    std::vector<operands> all;
    for (int i = 0; i < 500; ++i) all.push_back(make_operands(h, i));
    const std::vector<array> want = expected(h, all);
    constexpr std::int64_t strides[] = {1, 3, -2};
    for (const test::engine& e : engines) check(*e.ctx, h, all, want, strides[trial % 3]);
    for (const test::engine& e : exact) {
      e.ctx->reset_statistics();
      check(*e.ctx, h, all, want, 1);
      const statistics s = e.ctx->read_statistics();
      std::int64_t elements = 0;
      for (int t = 0; t < 4; ++t) elements += s[static_cast<tier>(t)];
      CHECK(elements == static_cast<std::int64_t>(all.size() * (h.is_sgd ? (h.sgd.momentum > 0 ? 2 : 1) : 3)));
      CHECK(s[tier::exact] > 0);
    }
  }
}

TEST_CASE("adamw: moments that can no longer decay are decided without integers") {
  // 0.9 m is within 2^-53 of a midpoint for m = 5 2^-149, and rounds up to m again: an embedding's unused rows stay
  // there for ever.
  context ctx({.threads = 1});
  const hyper h{false, dtype::f32, {}, {}};
  const std::vector<operands> all(4096, operands{0.5, 0, 0x5p-149, 0x1f3p-149});
  ctx.reset_statistics();
  const patterns got = step(ctx, h, all, 1);
  CHECK(got[17][2] == 5);
  CHECK(got[17][3] == 0x1f3);
  const statistics s = ctx.read_statistics();
  CHECK(s[tier::exact] == 0);
  CHECK(s[tier::double_double] == 8192);
  CHECK(s[tier::binary64] == 4096);
}

TEST_CASE("steps of binary64 are decided in double-double, unused rows, too") {
  context ctx({.threads = 1});
  for (const bool is_sgd : {true, false}) {
    hyper h{is_sgd, dtype::f64, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01}, {}};
    std::vector<operands> all;
    for (int i = 0; i < 2000; ++i) {
      const double p = pick64(kind::near_one);
      all.push_back(i % 2 == 0 ? operands{p, 0, 0, 0}
                               : operands{p, pick64(kind::near_one), pick64(kind::near_one), 0.5});
    }
    const std::vector<array> want = expected(h, all);
    ctx.reset_statistics();
    check(ctx, h, all, want, 1);
    const statistics s = ctx.read_statistics();
    CHECK(s[tier::exact] == 0);
    CHECK(s[tier::double_double] == (is_sgd ? 4000 : 6000));
  }
}

template <class T>
void compare_exact_tiers() {
  constexpr int last_limbs = num::adamw_limbs<T>;
  using state = num::state_of<T>;
  const auto space = std::make_unique<num::adamw_space<last_limbs>>();
  num::adamw_space<8> few;
  std::int64_t wrong = 0, recognised = 0;
  for (int trial = 1; trial < 800; trial += 16) {
    const hyper h = make_hyper(trial, dtype_of<T>);
    const double beta[2] = {h.adamw.beta1, h.adamw.beta2};
    double c[2];  // 1 - beta^step, or something like it
    for (int k = 0; k < 2; ++k) c[k] = std::max(0x1p-53, 1 - std::pow(beta[k], static_cast<double>(h.adamw.step)));
    const num::adamw_stages stages =
        num::make_adamw_stages(h.adamw.lr, beta[0], beta[1], h.adamw.eps, h.adamw.weight_decay, c[0], c[1]);
    const auto compare = [&](const num::adamw_param& param, double p, double m, double v) {
      const T expected = num::decide<T>(param, static_cast<state>(p), static_cast<state>(m), static_cast<state>(v));
      num::adamw_formula f{param, p, m, v};
      T special{};
      if (num::is_special(param, f.p, f.m, f.v, &special)) return;
      const num::decided_value<T> last = num::round_in_place<T, last_limbs>(f, *space);
      const num::decided_value<T> before = num::round_in_place<T, 8>(f, few);
      wrong += before.decided && num::to_bits(before.value) != num::to_bits(expected) ? 1 : 0;
      wrong += last.decided && num::to_bits(last.value) == num::to_bits(expected) ? 0 : 1;
      recognised += num::round_ball<T>(f.eval<32>().value.value).decided ? 0 : 1;  // by no ball
    };
    for (int i = 0; i < 100; ++i) {
      const operands o = make_operands(h, i);
      compare(stages.param, o[0], o[1], i % 3 == 0 ? pick(dtype_of<T>, kind::root) : o[3]);
    }
    // P = p - (m / (sqrt v + eps)), the quotient an odd multiple of half an ulp of p in [1/2, 1): midpoints, and zeros.
    constexpr int precision = num::format<T>::precision;
    const double eps = std::ldexp(1.0, -static_cast<int>(engine() % 4));
    const num::adamw_stages plain = num::make_adamw_stages(1, 0, 0, eps, 0, 1, 1);
    for (int i = 0; i < 20; ++i) {
      const double root = std::ldexp(static_cast<double>(engine() % 4096), -8);
      const double quotient =
          std::ldexp(static_cast<double>(engine() % (precision > 8 ? 256 : 64) | 1), -precision - 1);
      const double m = (root + eps) * quotient;
      const std::uint64_t fraction = (std::uint64_t{1} << 52) - (std::uint64_t{1} << (53 - precision));
      const double p = i % 4 == 0 ? quotient : from_bits64(std::uint64_t{1022} << 52 | (engine() & fraction));
      compare(plain.param, p, m, root * root);
    }
  }
  CHECK(wrong == 0);
  CHECK(recognised > 500);
}
TEST_CASE("adamw: levels of the formula, and CUDA's last one, in place, agree") {
  compare_exact_tiers<float>();
  compare_exact_tiers<f16>();
  compare_exact_tiers<bf16>();
  compare_exact_tiers<double>();
}

TEST_CASE("steps: many elements and threads") {
  const hyper h = make_hyper(0);
  std::vector<operands> all;
  for (int i = 0; i < 100000; ++i) all.push_back({pick(kind::ordinary), pick(kind::ordinary), pick(kind::ordinary), 0});
  const std::vector<array> want = expected(h, all);
  for (const int threads : {1, 2, 3, 7}) {
    context many({.threads = threads});
    check(many, h, all, want, 1);
  }
}

}  // namespace
