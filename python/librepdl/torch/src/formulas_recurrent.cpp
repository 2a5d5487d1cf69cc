// Recurrent layers and their cells: one composition of operations, whatever the device, with cuDNN or oneDNN and without,
// of packed sequences too.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>

#include "formulas.hpp"

namespace repdl_torch::formulas {
namespace {

enum class cell { tanh, relu, lstm, gru };
int64_t gates_of(cell k) { return k == cell::lstm ? 4 : k == cell::gru ? 3 : 1; }

struct weights {
  Tensor input, hidden, input_bias, hidden_bias;
  Tensor projection;  // of an LSTM's hidden state
};
struct state {
  Tensor h, c;  // c: an LSTM's
  state rows(int64_t begin, int64_t end) const {
    return {h.narrow(0, begin, end - begin), c.defined() ? c.narrow(0, begin, end - begin) : c};
  }
};
state joined(const std::vector<state>& all) {
  if (all.size() == 1) return all[0];
  std::vector<Tensor> h, c;
  for (const state& s : all) {
    h.push_back(s.h);
    if (s.c.defined()) c.push_back(s.c);
  }
  return {at::cat(h), c.empty() ? Tensor() : at::cat(c)};
}

Tensor linear_of(const Tensor& x, const Tensor& w, const Tensor& bias = {}) {
  return at::linear(x, w, bias.defined() ? std::optional(bias) : std::nullopt);
}

// `input`: linear of the input.
state step(cell k, const Tensor& input, const state& s, const weights& w) {
  const Tensor hidden = linear_of(s.h, w.hidden, w.hidden_bias);
  if (k == cell::tanh) return {at::tanh(hidden + input), {}};
  if (k == cell::relu) return {at::relu(hidden + input), {}};
  if (k == cell::gru) {  // reset, update, new
    const auto x = input.chunk(3, 1), y = hidden.chunk(3, 1);
    const Tensor reset = at::sigmoid(y[0] + x[0]), update = at::sigmoid(y[1] + x[1]),
                 candidate = at::tanh(x[2] + y[2] * reset);
    return {(s.h - candidate) * update + candidate, {}};
  }
  // In statements: autograd adds gradients up in the order of the calls, which a compiler is not to choose.
  const auto gate = (hidden + input).chunk(4, 1);  // input, forget, cell, output
  const Tensor in = at::sigmoid(gate[0]), forget = at::sigmoid(gate[1]), candidate = at::tanh(gate[2]),
               out = at::sigmoid(gate[3]);
  const Tensor kept = forget * s.c, added = in * candidate, c = kept + added;
  const Tensor h = out * at::tanh(c);
  return {w.projection.defined() ? linear_of(h, w.projection) : h, c};
}

// One layer in one direction. Rows of `x`: of each time the first counts[time] sequences, the longest first; so are those
// of the result. `s` becomes what each sequence ends with.
Tensor layer(cell k, const Tensor& x, at::IntArrayRef counts, state& s, const weights& w, bool backward) {
  const auto input = linear_of(x, w.input, w.input_bias).split_with_sizes(counts);
  const state first = s;
  std::vector<Tensor> out(counts.size());
  std::vector<state> ended;  // the shortest first
  int64_t running = backward ? counts.back() : counts.front();
  s = running == first.h.size(0) ? first : first.rows(0, running);
  for (size_t i = 0; i < counts.size(); ++i) {
    const size_t time = backward ? counts.size() - 1 - i : i;
    const int64_t count = counts[time];
    if (count < running) {
      ended.push_back(s.rows(count, running));
      s = s.rows(0, count);
    } else if (count > running) {
      s = joined({s, first.rows(running, count)});
    }
    running = count;
    s = step(k, input[time], s, w);
    out[time] = s.h;
  }
  ended.push_back(s);
  std::reverse(ended.begin(), ended.end());
  s = joined(ended);
  return at::cat(out);
}

// input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first;
// packed: data, batch_sizes, hx, ..., bidirectional
void recurrent(call& c, cell k, bool packed) {
  const int at = packed ? 2 : 1;  // hx
  const auto hx = k == cell::lstm ? c.value(at).toTensorVector() : std::vector<Tensor>{c.tensor(at)};
  const auto parameters = c.value(at + 1).toTensorVector();
  const bool biases = c.boolean(at + 2), bidirectional = c.boolean(at + 6), batch_first = !packed && c.boolean(at + 7);
  const int64_t layers = c.integer(at + 3), directions = bidirectional ? 2 : 1;
  const double p = c.boolean(at + 5) ? c.real(at + 4) : 0;
  TORCH_CHECK(hx.size() == (k == cell::lstm ? 2 : 1), "lstm expects two hidden states");
  for (const Tensor& h : hx) {
    TORCH_CHECK(h.dim() == 3 && h.size(0) == layers * directions && h.size(1) == hx[0].size(1),
                "expected hidden states of [", layers * directions, " layers and directions, batch, size], got ",
                h.sizes());
  }
  const bool projected = k == cell::lstm && hx[0].size(2) != hx[1].size(2);
  const size_t each = 2 + (biases ? 2 : 0) + (projected ? 1 : 0);
  TORCH_CHECK(parameters.size() == each * static_cast<size_t>(layers * directions),
              "got an incorrect number of RNN parameters: ", parameters.size());

  Tensor x = c.tensor(0);
  std::vector<int64_t> counts;
  if (packed) {
    const Tensor& sizes = c.tensor(1);
    for (int64_t i = 0; i < sizes.numel(); ++i) counts.push_back(sizes[i].item<int64_t>());
  } else {
    TORCH_CHECK(x.dim() == 3, "expected an input of 3 dimensions, got ", x.dim());
    if (batch_first) x = x.transpose(0, 1);
    counts.assign(static_cast<size_t>(x.size(0)), x.size(1));
    x = x.reshape({x.size(0) * x.size(1), x.size(2)});
  }
  TORCH_CHECK(!counts.empty(), "Expected sequence length to be larger than 0 in RNN");
  TORCH_CHECK(hx[0].size(1) == counts.front(), "expected hidden states of a batch of ", counts.front(), ", got one of ",
              hx[0].size(1));

  std::vector<Tensor> last_h, last_c;
  for (int64_t l = 0; l < layers; ++l) {
    std::vector<Tensor> out;
    for (int64_t d = 0; d < directions; ++d) {
      const int64_t i = l * directions + d;
      const Tensor* const w = &parameters[static_cast<size_t>(i) * each];
      state s{hx[0].select(0, i), k == cell::lstm ? hx[1].select(0, i) : Tensor()};
      out.push_back(
          layer(k, x, counts, s,
                {w[0], w[1], biases ? w[2] : Tensor(), biases ? w[3] : Tensor(), projected ? w[each - 1] : Tensor()},
                d == 1));
      last_h.push_back(s.h);
      last_c.push_back(s.c);
    }
    x = bidirectional ? at::cat(out, 1) : out[0];
    if (p > 0 && l + 1 < layers) x = at::dropout(x, p, true);
  }
  if (!packed) x = x.view({static_cast<int64_t>(counts.size()), counts.front(), x.size(1)});
  c.give(batch_first ? x.transpose(0, 1) : x);
  c.give(at::stack(last_h));
  if (k == cell::lstm) c.give(at::stack(last_c));
}

// input, hx, w_ih, w_hh, b_ih, b_hh
void one_step(call& c, cell k) {
  const auto hx = k == cell::lstm ? c.value(1).toTensorVector() : std::vector<Tensor>{c.tensor(1)};
  TORCH_CHECK(hx.size() == (k == cell::lstm ? 2 : 1), "lstm_cell expects two hidden states");
  const Tensor& x = c.tensor(0);
  const weights w{c.tensor(2), c.tensor(3), c.tensor(4), c.tensor(5), {}};
  for (const Tensor& h : hx) {
    TORCH_CHECK(x.dim() == 2 && h.dim() == 2 && x.size(0) == h.size(0), "Input batch size ", x.sizes(),
                " doesn't match hidden batch size ", h.sizes());
    TORCH_CHECK(h.size(1) * gates_of(k) == w.hidden.size(0), "hidden has inconsistent hidden_size: got ", h.size(1),
                ", expected ", w.hidden.size(0) / gates_of(k));
  }
  const state s = step(k, linear_of(x, w.input, w.input_bias), {hx[0], k == cell::lstm ? hx[1] : Tensor()}, w);
  c.give(s.h);
  if (k == cell::lstm) c.give(s.c);
}

}  // namespace

void rnn_tanh(call& c) { recurrent(c, cell::tanh, false); }
void rnn_relu(call& c) { recurrent(c, cell::relu, false); }
void lstm(call& c) { recurrent(c, cell::lstm, false); }
void gru(call& c) { recurrent(c, cell::gru, false); }
void rnn_tanh_packed(call& c) { recurrent(c, cell::tanh, true); }
void rnn_relu_packed(call& c) { recurrent(c, cell::relu, true); }
void lstm_packed(call& c) { recurrent(c, cell::lstm, true); }
void gru_packed(call& c) { recurrent(c, cell::gru, true); }
void rnn_tanh_cell(call& c) { one_step(c, cell::tanh); }
void rnn_relu_cell(call& c) { one_step(c, cell::relu); }
void lstm_cell(call& c) { one_step(c, cell::lstm); }
void gru_cell(call& c) { one_step(c, cell::gru); }

}  // namespace repdl_torch::formulas
