// Attention.
#include <ATen/ExpandUtils.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_make_dual.h>
#include <ATen/ops/_safe_softmax.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention_backward.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/native_dropout_backward.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>

#include "draw.hpp"
#include "formulas.hpp"

namespace repdl_torch::formulas {
namespace {
using shape = c10::SmallVector<int64_t, 6>;

shape leading(const Tensor& t, int64_t last) {
  return {t.sizes().begin(), t.sizes().end() - static_cast<std::ptrdiff_t>(std::min(last, t.dim()))};
}
shape joined(const shape& a, const shape& b) {
  const auto all = at::infer_size(a, b);
  return {all.begin(), all.end()};
}

// RN(scale a b + added), for autograd one aten operation, of batches that broadcast.
Tensor batched_product(const Tensor& a, const Tensor& b, const Tensor& added, double scale) {
  shape all = joined(leading(a, 2), leading(b, 2));
  if (added.defined() && added.dim() > 2) all = joined(all, leading(added, 2));
  const int64_t count = c10::multiply_integers(all);
  const auto flat = [&](const Tensor& t, int64_t rows, int64_t columns) {
    shape whole = all;
    whole.push_back(rows);
    whole.push_back(columns);
    return t.expand(whole).reshape({count, rows, columns});
  };
  const Tensor x = flat(a, a.size(-2), a.size(-1)), y = flat(b, b.size(-2), b.size(-1));
  const Tensor c = added.defined() ? flat(added, a.size(-2), b.size(-1)) : at::zeros({1, 1, 1}, a.options());
  all.push_back(a.size(-2));
  all.push_back(b.size(-1));
  return at::baddbmm(c, x, y, added.defined() ? 1 : 0, scale).view(all);
}

// The operands of attention and what it is.
struct asked {
  Tensor q, k, v, mask;  // mask: boolean, or what is added
  bool causal = false, grouped = false;
  std::optional<double> scale;
  double dropout = 0;
  int64_t seed = 0, stream = 0;  // of aten's operations, which have drawn them

  double factor() const { return scale.value_or(1 / std::sqrt(static_cast<double>(q.size(-1)))); }
  // Heads of k and v are repeated.
  Tensor for_each_head(const Tensor& t) const {
    return grouped && t.size(-3) != q.size(-3) ? t.repeat_interleave(q.size(-3) / t.size(-3), -3) : t;
  }
  // What is added to the scores, or nothing.
  Tensor added() const {
    Tensor m = causal ? at::ones({q.size(-2), k.size(-2)}, q.options().dtype(at::kBool)).tril() : mask;
    if (m.defined() && m.scalar_type() == at::kBool)
      m = at::zeros({}, q.options()).masked_fill(m.logical_not(), -std::numeric_limits<double>::infinity());
    return m;
  }
};

// In three operations, each of which rounds: scale q k plus mask, softmax, the product with v.
struct composed {
  Tensor k, v, weights;
  explicit composed(const asked& a) : k(a.for_each_head(a.k)), v(a.for_each_head(a.v)) {
    const Tensor mask = a.added(), scores = batched_product(a.q, k.transpose(-2, -1), mask, a.factor());
    weights = mask.defined() ? at::_safe_softmax(scores, -1) : at::softmax(scores, -1);
  }
  Tensor result(double dropout) const {
    return at::matmul(dropout > 0 ? at::dropout(weights, dropout, true) : weights, v);
  }
};
// Their gradients, where weights are dropped as aten's operations say.
struct composed_gradients : composed {
  double rate;
  Tensor kept;  // undefined: all are
  explicit composed_gradients(const asked& a) : composed(a), rate(1 / (1 - a.dropout)) {
    static const operation op("bernoulli");
    if (a.dropout == 0) return;
    const Tensor dropped = fresh(weights.sizes(), at::kBool, weights.device());
    op({}, {&dropped}, {{"shape", dropped.sizes()}, {"seed", a.seed}, {"stream", a.stream}, {"p", a.dropout}});
    kept = dropped.logical_not();
  }
  // What is kept of numbers that are beside the weights, which is a linear function.
  Tensor drop(const Tensor& x) const { return kept.defined() ? at::native_dropout_backward(x, kept, rate) : x; }
  Tensor to_scores(const Tensor& g) const {
    return at::_softmax_backward_data(drop(at::matmul(g, v.transpose(-2, -1))), weights, -1, weights.scalar_type());
  }
  Tensor to_values(const Tensor& g) const { return at::matmul(drop(weights).transpose(-2, -1), g); }
};

// As librepdl's attention takes them.
bool is_one_operation(const asked& a) {
  const at::ScalarType type = a.q.scalar_type();
  return (type == at::kFloat || type == at::kHalf || type == at::kBFloat16) && a.k.scalar_type() == type &&
         a.v.scalar_type() == type &&
         (!a.mask.defined() || a.mask.scalar_type() == at::kBool || a.mask.scalar_type() == type);
}

Tensor in_one_operation(const asked& a) {
  Tensor q = a.q, k = a.k, v = a.v, mask = a.mask;
  if (a.grouped && k.size(-3) != v.size(-3)) {
    k = a.for_each_head(k);
    v = a.for_each_head(v);
  }
  // Axes before the last two broadcast, but for heads of groups: sequences, and heads.
  const int64_t own = a.grouped ? 3 : 2;
  shape batch = joined(joined(leading(q, own), leading(k, own)), leading(v, own));
  if (mask.defined()) batch = joined(batch, leading(mask, own));
  const shape sequences{batch.begin(), batch.end() - (a.grouped || batch.empty() ? 0 : 1)};
  const auto in_four_axes = [&](const Tensor& t, int64_t heads) {
    shape whole = sequences;
    for (const int64_t n : {heads, t.size(-2), t.size(-1)}) whole.push_back(n);
    return t.expand(whole).reshape({c10::multiply_integers(sequences), heads, t.size(-2), t.size(-1)});
  };
  const auto heads_of = [&](const Tensor& t) { return a.grouped ? t.size(-3) : batch.empty() ? 1 : batch.back(); };
  if (mask.defined()) {
    while (mask.dim() < 2) mask = mask.unsqueeze(0);
    if (sequences.size() > 1) {
      mask = in_four_axes(mask, mask.dim() > 2 ? mask.size(-3) : 1);
    } else {
      while (mask.dim() < 4) mask = mask.unsqueeze(0);
    }
  }
  const Tensor x[] = {in_four_axes(q, heads_of(q)), in_four_axes(k, heads_of(k)), in_four_axes(v, heads_of(v))};
  bool is_differentiated = mask.defined() && mask.requires_grad();
  for (const Tensor& t : x) is_differentiated |= t.requires_grad();
  const Tensor y = std::get<0>(at::_scaled_dot_product_efficient_attention(
      x[0], x[1], x[2], mask.defined() ? std::optional(mask) : std::nullopt,
      is_differentiated && at::GradMode::is_enabled(), a.dropout, a.causal, a.scale));
  shape whole = batch;
  if (a.grouped) whole.push_back(q.size(-3));
  for (const int64_t n : {q.size(-2), v.size(-1)}) whole.push_back(n);
  return y.reshape(whole);
}

// Attention's operands in (batch, heads, rows, numbers), as librepdl's kernels like to have them.
Tensor in_rows(const Tensor& t) {
  const auto fits = [&](int64_t n) { return n * t.element_size() % 16 == 0; };
  bool are = t.stride(-1) == 1 && reinterpret_cast<std::uintptr_t>(t.const_data_ptr()) % 16 == 0;
  for (int64_t i = 0; i < t.dim() - 1; ++i) are &= t.size(i) <= 1 || fits(t.stride(i));
  return are || !t.is_cuda() ? t : t.contiguous();
}
// Of which heads lie beside each other, as PyTorch's kernels give them.
Tensor fresh_heads(const Tensor& t, int64_t numbers) {
  return fresh({t.size(0), t.size(2), t.size(1), numbers}, t.scalar_type(), t.device()).transpose(1, 2);
}
Tensor logarithms(const Tensor& padded, const Tensor& q) { return padded.narrow(2, 0, q.size(2)); }

// What both of aten's operations have: the places of its arguments.
asked read(const call& c, int q, int mask, int dropout, int causal, int scale) {
  asked a{c.tensor(q), c.tensor(q + 1), c.tensor(q + 2), c.tensor(mask), c.boolean(causal), true, {}};
  for (const Tensor* t : {&a.q, &a.k, &a.v})
    TORCH_CHECK(t->dim() == 4, "expected query, key and value of 4 dimensions, got ", t->dim());
  a.dropout = c.real(dropout);
  if (c.has(scale)) a.scale = c.real(scale);
  return a;
}
asked read_gradients(const call& c) {
  asked a = read(c, 1, 4, 9, 11, 12);
  if (a.dropout == 0) return a;
  a.seed = c.tensor(7).item<int64_t>();
  a.stream = c.tensor(8).item<int64_t>();
  return a;
}
c10::SmallVector<attribute, 5> options_of(const asked& a) {
  c10::SmallVector<attribute, 5> options{{"causal", a.causal}};
  if (a.dropout != 0) options.append({{"dropout", a.dropout}, {"seed", a.seed}, {"stream", a.stream}});
  if (a.scale) options.push_back({"scale", *a.scale});
  return options;
}
}  // namespace

// query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa
void attention(call& c) {
  asked a{c.tensor(0), c.tensor(1), c.tensor(2), c.tensor(3), c.boolean(5), c.boolean(7), {}};
  if (c.has(6)) a.scale = c.real(6);
  const double dropout = c.real(4);
  TORCH_CHECK(a.q.dim() >= 2 && a.k.dim() >= 2 && a.v.dim() >= 2,
              "scaled_dot_product_attention: expected at least 2 dimensions, got ", a.q.dim(), ", ", a.k.dim(), " and ",
              a.v.dim());
  TORCH_CHECK(!a.causal || !a.mask.defined(),
              "scaled_dot_product_attention: explicit attn_mask should not be set when is_causal=True");
  TORCH_CHECK(!a.grouped || (a.q.dim() >= 3 && a.k.dim() >= 3 && a.v.dim() >= 3 && a.k.size(-3) != 0 &&
                             a.v.size(-3) != 0 && a.q.size(-3) % a.k.size(-3) == 0 && a.q.size(-3) % a.v.size(-3) == 0),
              "scaled_dot_product_attention: the number of heads of key and value must divide that of query");
  if (!(dropout == 0 || (dropout >= 0x1p-32 && dropout < 1)) || !is_one_operation(a))
    return c.give(composed(a).result(dropout));
  a.dropout = dropout;
  c.give(in_one_operation(a));
}

// query, key, value, attn_bias, compute_log_sumexp, dropout_p, is_causal, scale: one rounding. PyTorch's seed and offset are those of the draws.
void efficient_attention(call& c) {
  static const operation op("attention");
  asked a = read(c, 0, 3, 5, 6, 7);
  const Tensor q = in_rows(a.q), k = in_rows(a.k), v = in_rows(a.v), y = fresh_heads(q, v.size(3));
  const int64_t padded = c.boolean(4) ? (q.size(2) + 31) / 32 * 32 : 0;
  const Tensor lse = fresh({q.size(0), q.size(1), padded}, at::kFloat, q.device());
  if (padded > q.size(2)) lse.zero_();
  const Tensor filled = padded != 0 ? logarithms(lse, q) : Tensor();
  if (a.dropout != 0) {
    const draw d(c, -1, q.device());
    a.seed = d.seed;
    a.stream = d.stream;
  }
  op(q.device(), {q, k, v, a.mask}, {y, filled}, options_of(a));
  c.give(y);
  c.give(lse);
  for (const int64_t n : {a.seed, a.stream}) {
    Tensor t = at::empty({}, at::kLong);
    *t.mutable_data_ptr<int64_t>() = n;
    c.give(std::move(t));
  }
}

// The same arguments: forward derivatives are those of the three operations.
void efficient_attention_forward(call& c) {
  asked a = read(c, 0, 3, 5, 6, 7);
  Tensor* const operands[] = {&a.q, &a.k, &a.v, &a.mask};
  if (std::none_of(std::begin(operands), std::end(operands), [](const Tensor* t) { return has_tangent(*t); }))
    return c.leave();
  TORCH_CHECK_NOT_IMPLEMENTED(a.dropout == 0,
                              "librepdl: scaled_dot_product_attention: no forward derivative with dropout");
  const Tensor tangent = composed(a).result(0)._fw_grad(0);
  for (Tensor* t : operands) {
    if (t->defined()) *t = t->_fw_primal(0);
  }
  auto [y, lse, seed, offset] = at::_scaled_dot_product_efficient_attention(
      a.q, a.k, a.v, a.mask.defined() ? std::optional(a.mask) : std::nullopt, c.boolean(4), 0, a.causal, a.scale);
  c.give(tangent.defined() ? at::_make_dual(y, tangent, 0) : y);
  for (const Tensor* t : {&lse, &seed, &offset}) c.give(*t);
}

// grad_out_, query, key, value, attn_bias, out, logsumexp, philox_seed, philox_offset, dropout_p, grad_input_mask, is_causal, scale: each
// one rounding. The gradient to what is added to the scores is that of the three operations.
void efficient_attention_backward(call& c) {
  static const operation op("attention_backward");
  const asked a = read_gradients(c);
  const Tensor g = in_rows(c.tensor(0)), q = in_rows(a.q), k = in_rows(a.k), v = in_rows(a.v), y = in_rows(c.tensor(5)),
               lse = logarithms(c.tensor(6), q);
  const Tensor gq = fresh_heads(q, q.size(3)), gk = fresh_heads(k, k.size(3)), gv = fresh_heads(v, v.size(3));
  op(q.device(), {g, q, k, v, y, lse, a.mask}, {gq, gk, gv}, options_of(a));
  for (const Tensor* t : {&gq, &gk, &gv}) c.give(*t);
  const bool to_mask = a.mask.defined() && c.value(10).toBoolList()[3];
  c.give(to_mask ? at::sum_to(composed_gradients(a).to_scores(g), a.mask.sizes()) : Tensor());
}

// The same arguments, where the gradients are to be differentiated: the values above, with the derivatives of the three operations' gradients.
void efficient_attention_backward_twice(call& c) {
  const asked a = read_gradients(c);
  const Tensor& g = c.tensor(0);
  const auto wanted = c.value(10).toBoolList();
  const auto values = [&] {
    const at::NoGradGuard none;
    const c10::AutoFwGradMode no_tangents(false);
    return at::_scaled_dot_product_efficient_attention_backward(
        g, a.q, a.k, a.v, a.mask, c.tensor(5), c.tensor(6), c.tensor(7), c.tensor(8), a.dropout,
        {wanted[0], wanted[1], wanted[2], wanted[3]}, a.causal, a.scale);
  }();
  const composed_gradients f(a);
  const Tensor to_scores = f.to_scores(g);
  // Over the heads of a group.
  const auto joined_heads = [&](const Tensor& t, const Tensor& to) {
    return t.size(1) == to.size(1) ? t
                                   : t.unflatten(1, {to.size(1), t.size(1) / std::max<int64_t>(1, to.size(1))}).sum(2);
  };
  const auto give = [&](Tensor t, const Tensor& value) {
    t = t.clone();
    const at::NoGradGuard none;
    const c10::AutoFwGradMode no_tangents(false);
    t.copy_(value);
    c.give(t);
  };
  give(batched_product(to_scores, f.k, {}, a.factor()), std::get<0>(values));
  give(joined_heads(batched_product(to_scores.transpose(-2, -1), a.q, {}, a.factor()), a.k), std::get<1>(values));
  give(joined_heads(f.to_values(g), a.v), std::get<2>(values));
  if (a.mask.defined() && wanted[3]) {
    give(at::sum_to(to_scores, a.mask.sizes()), std::get<3>(values));
  } else {
    c.give({});
  }
}

}  // namespace repdl_torch::formulas
