// Random numbers.
#include <ATen/ExpandUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/native_dropout.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/zeros_like.h>

#include "draw.hpp"
#include "formulas.hpp"

namespace repdl_torch::formulas {
namespace {

const char* format_name(at::ScalarType t) {
  switch (t) {
    case at::kFloat:
      return "f32";
    case at::kDouble:
      return "f64";
    case at::kHalf:
      return "f16";
    case at::kBFloat16:
      return "bf16";
    default:
      TORCH_CHECK(false, "librepdl: no random numbers of ", t);
  }
}
void fill(const operation& op, const Tensor& t, const draw& d, const attribute& a, const attribute& b) {
  if (t.numel() == 0) return;
  op({}, {&t}, {{"shape", t.sizes()}, {"dtype", format_name(t.scalar_type())}, d.attr_seed(), d.attr_stream(), a, b});
}
Tensor below(const Tensor& like, const draw& d, double p) {  // true with probability p
  static const operation op("bernoulli");
  Tensor out = at::empty(like.sizes(), like.options().dtype(at::kBool), at::MemoryFormat::Contiguous);
  if (out.numel() > 0) op({}, {&out}, {{"shape", out.sizes()}, d.attr_seed(), d.attr_stream(), {"p", p}});
  return out;
}

}  // namespace

// self, from, to, generator
void uniform(call& c) {
  static const operation op("uniform");
  const Tensor& t = c.tensor(0);
  const double low = c.real(1), high = c.real(2);
  TORCH_CHECK(low <= high, "uniform_ expects to return a [from, to) range, but found from=", low, " > to=", high);
  fill(op, t, draw(c, 3, t.device()), {"low", low}, {"high", high});
  c.give(t);
}
// self, mean, std, generator
void normal(call& c) {
  static const operation op("normal");
  const Tensor& t = c.tensor(0);
  TORCH_CHECK(c.real(2) >= 0, "normal expects std >= 0.0, but found std ", c.real(2));
  fill(op, t, draw(c, 3, t.device()), {"mean", c.real(1)}, {"stddev", c.real(2)});
  c.give(t);
}
// mean, std, generator; one of the two may be a number. A standard normal number of the result's type, and mean + std times that
// number, rounded once.
void normal_of(call& c) {
  static const operation draws("normal"), fma("fma");
  const Tensor& like = c.tensor(c.tensor(0).defined() ? 0 : 1);
  const at::ScalarType type = like.scalar_type();
  TORCH_CHECK(at::isFloatingType(type), "normal expects floating-point numbers, but found ", type);
  const auto given = [&](int i) {
    return c.tensor(i).defined() ? c.tensor(i) : number_on(c.real(i), at::kDouble, like.device());
  };
  const Tensor mean = given(0), std = given(1);
  if (c.tensor(1).defined()) {
    expect_all(std.ge(0), "normal expects all elements of std >= 0.0");
  } else {
    TORCH_CHECK(c.real(1) >= 0, "normal expects std >= 0.0, but found std ", c.real(1));
  }
  const draw d(c, 2, like.device());
  const Tensor z = at::empty(at::infer_size(mean.sizes(), std.sizes()), like.options(), at::MemoryFormat::Contiguous);
  fill(draws, z, d, {"mean", 0.0}, {"stddev", 1.0});
  const bool alike = mean.scalar_type() == type && std.scalar_type() == type;
  const auto wide = [&](const Tensor& t) { return alike ? t : converted(t, at::kDouble); };
  const Tensor x = wide(z), factor = wide(std), added = wide(mean), out = at::empty_like(z);
  if (out.numel() > 0) fma({x, factor, added}, {&out});
  c.give(out);
}
// self, lambd, generator
void exponential(call& c) {
  static const operation op("exponential");
  const Tensor& t = c.tensor(0);
  TORCH_CHECK(c.real(1) > 0, "exponential_ expects lambda > 0.0, but found lambda=", c.real(1));
  const draw d(c, 2, t.device());
  if (t.numel() > 0) {
    op({}, {&t},
       {{"shape", t.sizes()},
        {"dtype", format_name(t.scalar_type())},
        d.attr_seed(),
        d.attr_stream(),
        {"rate", c.real(1)}});
  }
  c.give(t);
}
namespace {
// In binary64; then of the tensor's type.
Tensor wide_like(const Tensor& t) {
  return at::empty(t.sizes(), t.options().dtype(at::kDouble), at::MemoryFormat::Contiguous);
}
// A number of 53 bits, from 0 on, below 1.
Tensor uniforms(call& c, int generator) {
  static const operation op("uniform");
  const Tensor u = wide_like(c.tensor(0));
  fill(op, u, draw(c, generator, u.device()), {"low", 0.0}, {"high", 1.0});
  return u;
}
}  // namespace
// self, median, sigma, generator: median + sigma tan(pi (u - 1/2)), in binary64 the tangent, and the sum with the product; u = 0, the pole,
// counts as 2^-54
void cauchy(call& c) {
  const Tensor& t = c.tensor(0);
  TORCH_CHECK(c.real(2) > 0, "cauchy_ expects sigma > 0.0, but found sigma=", c.real(2));
  const Tensor turns = uniforms(c, 3).sub(0.5).clamp_min(0x1p-54 - 0.5);
  const auto number = [](double x) { return number_on(x, at::kDouble, at::kCPU); };
  c.give(converted(map("fma", {map("tanpi", {turns}), number(c.real(2)), number(c.real(1))}), t.scalar_type()));
}
// self, mean, std, generator: the exponential of a normal number, both in binary64
void log_normal(call& c) {
  static const operation op("normal");
  const Tensor &t = c.tensor(0), z = wide_like(t);
  TORCH_CHECK(c.real(2) > 0, "log_normal_ expects std > 0.0, but found std=", c.real(2));
  fill(op, z, draw(c, 3, t.device()), {"mean", c.real(1)}, {"stddev", c.real(2)});
  c.give(converted(z.exp(), t.scalar_type()));
}
// self, p, generator: 1 + floor(ln(1 - u) / ln(1 - p)), each in binary64
void geometric(call& c) {
  const Tensor& t = c.tensor(0);
  const double p = c.real(1);
  TORCH_CHECK(0 < p && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
  const Tensor log = map("log1p", {number_on(-p, at::kDouble, t.device())});
  c.give(uniforms(c, 2).neg().log1p().div(log).floor().add(1).to(t.scalar_type()));
}
// self, p, generator
void bernoulli_number(call& c) {
  const Tensor& t = c.tensor(0);
  TORCH_CHECK(c.real(1) >= 0 && c.real(1) <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", c.real(1));
  c.give(below(t, draw(c, 2, t.device()), c.real(1)).to(t.scalar_type()));
}
// self, p, generator: a number of [0, 1) in 53 bits is less than p
void bernoulli_tensor(call& c) {
  static const operation op("uniform");
  const Tensor& t = c.tensor(0);
  const Tensor u = at::empty(t.sizes(), t.options().dtype(at::kDouble), at::MemoryFormat::Contiguous);
  const Tensor p = c.tensor(1).to(at::kDouble);
  expect_all(p.ge(0).logical_and(p.le(1)), "expected probabilities between 0 and 1");
  fill(op, u, draw(c, 2, t.device()), {"low", 0.0}, {"high", 1.0});
  c.give(u.lt(p).to(t.scalar_type()));
}

namespace {
// The integers that a type has, from 0: those that `random_` draws from by default.
int64_t end_of(at::ScalarType t) {
  switch (t) {
    case at::kFloat:
      return int64_t{1} << 24;
    case at::kHalf:
      return int64_t{1} << 11;
    case at::kBFloat16:
      return int64_t{1} << 8;
    case at::kDouble:
      return int64_t{1} << 53;
    case at::kLong:
      return std::numeric_limits<int64_t>::max();
    case at::kInt:
      return int64_t{1} << 31;
    case at::kShort:
      return int64_t{1} << 15;
    case at::kChar:
      return int64_t{1} << 7;
    case at::kByte:
      return int64_t{1} << 8;
    case at::kBool:
      return 2;
    default:
      TORCH_CHECK(false, "random_: not for ", t);
  }
}
void integers_of(call& c, int64_t low, int64_t high, int generator) {
  static const operation op("randint");
  const Tensor& t = c.tensor(0);
  TORCH_CHECK(low < high, "random_ expects 'from' to be less than 'to', but got from=", low, " >= to=", high);
  Tensor out = at::empty(t.sizes(), t.options().dtype(at::kLong), at::MemoryFormat::Contiguous);
  const draw d(c, generator, t.device());
  if (out.numel() > 0)
    op({}, {&out}, {{"shape", out.sizes()}, d.attr_seed(), d.attr_stream(), {"low", low}, {"high", high}});
  c.give(out.to(t.scalar_type()));
}
}  // namespace
void random(call& c) { integers_of(c, 0, end_of(c.tensor(0).scalar_type()), 1); }
void random_from(call& c) {
  integers_of(c, c.integer(1), c.has(2) ? c.integer(2) : end_of(c.tensor(0).scalar_type()), 3);
}
void random_to(call& c) { integers_of(c, 0, c.integer(1), 2); }

// Sequences: of the numbers as doubles, each element rounded once.
namespace {
void give_sequence(call& c, const operation& op, const Tensor& out, int64_t count, const attribute& a,
                   const attribute& b) {
  Tensor t = at::empty({count}, out.options());
  if (count > 0) op({}, {&t}, {{"count", count}, {"dtype", format_name(out.scalar_type())}, a, b});
  c.give(t);
}
double double_of(const call& c, int i) { return c.value(i).toScalar().toDouble(); }
}  // namespace
// start, end, step, out
void arange(call& c) {
  static const operation op("arange");
  const Tensor& out = c.tensor(3);
  if (!at::isFloatingType(out.scalar_type())) return at::isComplexType(out.scalar_type()) ? c.refuse("") : c.leave();
  const double start = double_of(c, 0), end = double_of(c, 1), step = double_of(c, 2);
  TORCH_CHECK(step != 0, "step must be nonzero");
  TORCH_CHECK(std::isfinite(start) && std::isfinite(end), "unsupported range: ", start, " -> ", end);
  TORCH_CHECK((step > 0) == (end >= start) || start == end, "upper bound and lower bound inconsistent with step sign");
  const double count = std::ceil((end - start) / step);
  TORCH_CHECK(count >= 0 && count < 9.2e18, "invalid size, possible overflow?");
  give_sequence(c, op, out, static_cast<int64_t>(count), {"start", start}, {"step", step});
}
// start, end, steps, out
void linspace(call& c) {
  static const operation op("linspace");
  const Tensor& out = c.tensor(3);
  if (!at::isFloatingType(out.scalar_type())) c.refuse("");
  TORCH_CHECK(c.integer(2) >= 0, "number of steps must be non-negative");
  give_sequence(c, op, out, c.integer(2), {"start", double_of(c, 0)}, {"end", double_of(c, 1)});
}

// start, end, steps, base, out: the base to the power of what linspace gives, each rounded
void logspace(call& c) {
  const Tensor& out = c.tensor(4);
  if (!(type_bit(out.scalar_type()) & FLOATS)) c.refuse("");
  TORCH_CHECK(c.integer(2) >= 0, "number of steps must be non-negative");
  const Tensor powers = at::linspace(c.value(0).toScalar(), c.value(1).toScalar(), c.integer(2), out.options());
  c.give(at::pow(c.real(3), powers));
}

// n, generator, out
void randperm(call& c) {
  static const operation op("permutation");
  const int64_t n = c.integer(0);
  TORCH_CHECK(n >= 0, "n must be non-negative, got ", n);
  const draw d(c, 1, c.tensor(2).device());
  Tensor out = at::empty({n}, c.tensor(2).options().dtype(at::kLong));
  if (n > 0) op({}, {&out}, {{"n", n}, d.attr_seed(), d.attr_stream()});
  c.give(out.to(c.tensor(2).scalar_type()));
}

// self, num_samples, replacement, generator. aten draws one sample as the least of exponential numbers over weights, which is the
// kernel's way without replacement; with replacement one sample is the kernel's, too.
void multinomial(call& c) {
  static const operation op("multinomial");
  const Tensor& x = c.tensor(0);
  const int64_t n = x.dim() == 0 ? 0 : x.size(-1), samples = c.integer(1);
  TORCH_CHECK(x.dim() == 1 || x.dim() == 2, "prob_dist must be 1 or 2 dim");
  TORCH_CHECK(samples > 0, "cannot sample n_sample <= 0 samples");
  TORCH_CHECK(c.boolean(2) || samples <= n, "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  auto shape = x.sizes().vec();
  shape.back() = samples;
  Tensor out = at::empty(shape, x.options().dtype(at::kLong));
  const draw d(c, 3, x.device());
  if (out.numel() > 0) {
    op({x}, {&out}, {{"num_samples", samples}, {"replacement", c.boolean(2)}, d.attr_seed(), d.attr_stream()});
  }
  c.give(out);
}

namespace {
// x / (1 - p), rounded once, or +0. librepdl's operation is of float32 and float64. Of 16 bits, its result is first made the odd one of the two
// numbers between which the quotient lies, where it is neither: another rounding is then as one of the quotient itself.
Tensor dropped(const call& c, const Tensor& x, const draw& d, double p) {
  static const operation op("dropout");
  const bool wide_x = x.scalar_type() == at::kDouble;
  const Tensor in = converted(x, wide_x ? at::kDouble : at::kFloat),
               y = at::empty(x.sizes(), in.options(), at::MemoryFormat::Contiguous);
  op({in}, {&y}, {{"p", p}, d.attr_seed(), d.attr_stream()});
  if (wide_x || x.scalar_type() == at::kFloat) return y;
  if (p > 1 - 0x1p-40) c.refuse("of 16 bits with p within 2^-40 of 1");
  // x - y is exact in float64: y has at most 40 + 11 bits above the last one of x. So x - y + y p has the sign of x - y (1 - p).
  const Tensor wide = converted(y, at::kDouble), rest = map("sub", {converted(x, at::kDouble), wide}),
               left = map("fma", {wide, number_on(p, at::kDouble, at::kCPU), rest});
  const Tensor outwards = map("sign", {map("mul", {left, wide})}).to(at::kInt), bits = y.view(at::kInt);
  const Tensor odd = bits.add(outwards.mul(bits.bitwise_not().bitwise_and(1)));
  return converted(odd.view(at::kFloat), x.scalar_type());
}
}  // namespace
// input, p, train -> (result, what was kept)
void native_dropout(call& c) {
  const Tensor& x = c.tensor(0);
  const double p = c.real(1);
  TORCH_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  const bool train = !c.has(2) || c.boolean(2);
  if (!train || p == 0 || x.numel() == 0) {
    c.give(x.clone());
    return c.give(at::ones_like(x, x.options().dtype(at::kBool)));
  }
  if (p == 1) {
    c.give(at::zeros_like(x));
    return c.give(at::zeros_like(x, x.options().dtype(at::kBool)));
  }
  const draw d(c, -1, x.device());
  c.give(dropped(c, x, d, p));
  c.give(below(x, d, p).logical_not());
}
// grad_output, mask, scale: a double
void native_dropout_backward(call& c) {
  const Tensor &g = c.tensor(0), &mask = c.tensor(1);
  const Tensor scaled =
      map("leaky_relu_backward", {g, number_on(-1, g.scalar_type(), at::kCPU)}, {{"slope", c.real(2)}});
  c.give(scaled.masked_fill(mask.logical_not(), 0));
}
// On the CPU aten multiplies by a noise, on CUDA it has a kernel: here there is one formula.
// input, p, train
void dropout(call& c) {
  const Tensor& x = c.tensor(0);
  TORCH_CHECK(c.real(1) >= 0 && c.real(1) <= 1, "dropout probability has to be between 0 and 1, but got ", c.real(1));
  if (!c.boolean(2) || c.real(1) == 0 || x.numel() == 0) return c.give(x);
  c.give(std::get<0>(at::native_dropout(x, c.real(1), true)));
}

}  // namespace repdl_torch::formulas
