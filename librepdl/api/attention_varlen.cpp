// Attention of sequences that lie one behind the other in memory: a call for each, on views.
#include <utility>
#include <vector>

#include "librepdl/api/submit.hpp"
#include "librepdl/export.hpp"
#include "librepdl/options.hpp"

// Declared here, too, for ops.hpp has all elementwise functions, and what includes it is compiled again with each new one.
namespace repdl REPDL_EXPORT {
void attention(context& ctx, const_tensor_view q, const_tensor_view k, const_tensor_view v, tensor_view out,
               const attention_options& options, const_tensor_view mask, const_tensor_view slopes, tensor_view lse);
void attention_backward(context& ctx, const_tensor_view g, const_tensor_view q, const_tensor_view k,
                        const_tensor_view v, const_tensor_view y, const_tensor_view lse, tensor_view grad_q,
                        tensor_view grad_k, tensor_view grad_v, const attention_options& options,
                        const_tensor_view mask, const_tensor_view slopes);
void attention_varlen(context& ctx, const_tensor_view q, const_tensor_view k, const_tensor_view v,
                      const_tensor_view q_offsets, const_tensor_view k_offsets, tensor_view out,
                      const attention_options& options, const_tensor_view slopes, tensor_view lse);
void attention_varlen_backward(context& ctx, const_tensor_view g, const_tensor_view q, const_tensor_view k,
                               const_tensor_view v, const_tensor_view y, const_tensor_view lse,
                               const_tensor_view q_offsets, const_tensor_view k_offsets, tensor_view grad_q,
                               tensor_view grad_k, tensor_view grad_v, const attention_options& options,
                               const_tensor_view slopes);
}  // namespace repdl

namespace repdl {
namespace {

using ops::operand;
constexpr operand offset_rows[] = {{"q_offsets", ops::I64 | ops::I32}, {"k_offsets", ops::I64 | ops::I32}};

[[noreturn]] void wrong(std::string_view op, std::string_view name, const std::string& expected,
                        const const_tensor_view& got) {
  fail(error_site::attention_shape, op, name, expected, "shape " + to_string(got.shape()));
}

// The numbers of a vector, wherever it is.
template <class T>
std::vector<std::int64_t> read(context& ctx, const const_tensor_view& v) {
  const std::int64_t step = v.strides()[0], last = step * (v.count() - 1), first = std::min<std::int64_t>(last, 0);
  std::vector<T> memory(static_cast<std::size_t>(std::max(last, std::int64_t{0}) - first) + 1);
  const T* const from = static_cast<const T*>(v.data()) + first;
  if (v.where().kind == device_kind::cpu) {
    std::copy_n(from, memory.size(), memory.begin());
  } else {
    ctx.copy(memory.data(), from, memory.size() * sizeof(T));
  }
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < v.count(); ++i) all.push_back(memory[static_cast<std::size_t>(i * step - first)]);
  return all;
}
std::vector<std::int64_t> read_offsets(context& ctx, std::string_view op, const operand& row,
                                       const const_tensor_view& v, std::string_view of, std::int64_t total) {
  plan::check_rank(op, row.name, v, 1, "of a number for each sequence and one more");
  if (v.count() == 0) wrong(op, row.name, "a number for each sequence and one more", v);
  if (v.where().kind != device_kind::cpu && v.where() != ctx.where()) {
    fail(error_site::device_mismatch, op, row.name, "a tensor on " + name_of(ctx.where()) + " or the CPU",
         name_of(v.where()));
  }
  std::vector<std::int64_t> all = v.type() == dtype::i32 ? read<std::int32_t>(ctx, v) : read<std::int64_t>(ctx, v);
  const auto refuse = [&](const std::string& expected, std::size_t i) {
    fail(error_site::index_range, op, row.name, expected, std::to_string(all[i]) + " at " + std::to_string(i));
  };
  if (all.front() != 0) refuse("0 first", 0);
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i] < all[i - 1]) refuse("numbers that do not descend", i);
  }
  if (all.back() != total)
    refuse("the rows of " + std::string(of) + ", " + std::to_string(total) + ", last", all.size() - 1);
  return all;
}

// Where the sequences of a call begin, and what each is given.
class sequences {
 public:
  sequences(context& ctx, std::string_view op, const const_tensor_view& q, const const_tensor_view& k,
            const const_tensor_view& v, const const_tensor_view& q_offsets, const const_tensor_view& k_offsets,
            const const_tensor_view& slopes) {
    for (const auto& [name, x] : {std::pair<std::string_view, const const_tensor_view&>{"q", q}, {"k", k}, {"v", v}}) {
      plan::check_rank(op, name, x, 3, "of rows, heads and elements");
    }
    const std::int64_t heads = q.shape()[1], key_heads = k.shape()[1];
    if (key_heads == 0 ? heads != 0 : heads % key_heads != 0)
      wrong(op, "k", "heads, axis 1, a divisor of q's " + std::to_string(heads), k);
    if (k.shape()[2] != q.shape()[2]) wrong(op, "k", "a last axis as q's, of " + std::to_string(q.shape()[2]), k);
    if (v.shape()[0] != k.shape()[0]) wrong(op, "v", "as many rows as k: " + std::to_string(k.shape()[0]), v);
    if (v.shape()[1] != key_heads) wrong(op, "v", "as many heads as k: " + std::to_string(key_heads), v);
    if (slopes && !(slopes.shape() == sizes{heads}))
      wrong(op, "slopes", "shape (" + std::to_string(heads) + "), a number for each head of q", slopes);
    queries_ = read_offsets(ctx, op, offset_rows[0], q_offsets, "q", q.shape()[0]);
    keys_ = read_offsets(ctx, op, offset_rows[1], k_offsets, "k", k.shape()[0]);
    if (keys_.size() != queries_.size())
      wrong(op, "k_offsets", "as many numbers as q_offsets: " + std::to_string(queries_.size()), k_offsets);
  }
  std::size_t count() const { return queries_.size() - 1; }

  // Rows of sequence i, behind the heads; of lse, whose rows lie last.
  template <class View>
  View queries(std::size_t i, const View& x) const {
    return rows(x, queries_, i);
  }
  template <class View>
  View keys(std::size_t i, const View& x) const {
    return rows(x, keys_, i);
  }
  template <class View>
  View numbers(std::size_t i, const View& x) const {
    return x ? x.slice(1, queries_[i], queries_[i + 1]) : x;
  }
  static attention_options options(const attention_options& o, std::size_t i) {
    attention_options of_sequence = o;
    of_sequence.stream += i;
    return of_sequence;
  }

 private:
  template <class View>
  static View rows(const View& x, const std::vector<std::int64_t>& offsets, std::size_t i) {
    return x ? x.slice(0, offsets[i], offsets[i + 1]).transpose(0, 1) : x;
  }
  std::vector<std::int64_t> queries_, keys_;
};

dtype lse_type(const const_tensor_view& q) { return q.type() == dtype::f64 ? dtype::f64 : dtype::f32; }
sizes with_last(const sizes& shape, std::int64_t last) { return {shape[0], shape[1], last}; }

}  // namespace

void attention_varlen(context& ctx, const_tensor_view q, const_tensor_view k, const_tensor_view v,
                      const_tensor_view q_offsets, const_tensor_view k_offsets, tensor_view out,
                      const attention_options& o, const_tensor_view slopes, tensor_view lse) {
  constexpr std::string_view op = "attention_varlen";
  constexpr operand in_rows[] = {{"q", ops::FLOATS}, {"k", ops::FLOATS}, {"v", ops::FLOATS},
                                 offset_rows[0],     offset_rows[1],     {"slopes", ops::F32, true}};
  constexpr operand out_rows[] = {{"out", ops::FLOATS}, {"lse", ops::STATES, true}};
  const const_tensor_view in[] = {q, k, v, q_offsets, k_offsets, slopes};
  plan::check_inputs(op, in_rows, in);
  plan::check_format(op, "k", k, "q", q);
  plan::check_format(op, "v", v, "q", q);
  const sequences s(ctx, op, q, k, v, q_offsets, k_offsets, slopes);
  const tensor_spec specs[] = {{q.type(), with_last(q.shape(), v.shape()[2])},
                               {lse_type(q), {q.shape()[1], q.shape()[0]}}};
  const tensor_view given[] = {out, lse};
  api::output_list all;
  const plan::outputs results = api::with_results(ctx, specs, given, all);
  plan::check_outputs(op, out_rows, results, specs);
  const const_tensor_view on_device[] = {q, k, v, slopes};
  constexpr operand device_rows[] = {in_rows[0], in_rows[1], in_rows[2], in_rows[5]};
  plan::check_devices(op, device_rows, on_device, out_rows, results, ctx.where());
  plan::check_overlap(op, device_rows, on_device, out_rows, results, plan::aliases::none);
  for (std::size_t i = 0; i < s.count(); ++i) {
    attention(ctx, s.queries(i, q), s.keys(i, k), s.keys(i, v), s.queries(i, results[0]), s.options(o, i), {}, slopes,
              s.numbers(i, results[1]));
  }
}

void attention_varlen_backward(context& ctx, const_tensor_view g, const_tensor_view q, const_tensor_view k,
                               const_tensor_view v, const_tensor_view y, const_tensor_view lse,
                               const_tensor_view q_offsets, const_tensor_view k_offsets, tensor_view grad_q,
                               tensor_view grad_k, tensor_view grad_v, const attention_options& o,
                               const_tensor_view slopes) {
  constexpr std::string_view op = "attention_varlen_backward";
  constexpr operand in_rows[] = {{"g", ops::FLOATS}, {"q", ops::FLOATS}, {"k", ops::FLOATS},
                                 {"v", ops::FLOATS}, {"y", ops::FLOATS}, {"lse", ops::STATES},
                                 offset_rows[0],     offset_rows[1],     {"slopes", ops::F32, true}};
  constexpr operand out_rows[] = {{"grad_q", ops::FLOATS}, {"grad_k", ops::FLOATS}, {"grad_v", ops::FLOATS}};
  const const_tensor_view in[] = {g, q, k, v, y, lse, q_offsets, k_offsets, slopes};
  plan::check_inputs(op, in_rows, in);
  for (const std::size_t i : {0, 2, 3, 4}) plan::check_format(op, in_rows[i].name, in[i], "q", q);
  const sequences s(ctx, op, q, k, v, q_offsets, k_offsets, slopes);
  const sizes shape = with_last(q.shape(), v.shape()[2]);
  for (const std::size_t i : {0, 4}) {
    if (!(in[i].shape() == shape))
      wrong(op, in_rows[i].name, "shape " + to_string(shape) + ", that of the result", in[i]);
  }
  const sizes of_lse{q.shape()[1], q.shape()[0]};
  if (!(lse.shape() == of_lse)) wrong(op, "lse", "shape " + to_string(of_lse) + ", a number for each query", lse);
  const tensor_spec specs[] = {q.spec(), k.spec(), v.spec()};
  const tensor_view given[] = {grad_q, grad_k, grad_v};
  api::output_list all;
  const plan::outputs results = api::with_results(ctx, specs, given, all);
  plan::check_outputs(op, out_rows, results, specs);
  const const_tensor_view on_device[] = {g, q, k, v, y, lse, slopes};
  constexpr operand device_rows[] = {in_rows[0], in_rows[1], in_rows[2], in_rows[3],
                                     in_rows[4], in_rows[5], in_rows[8]};
  plan::check_devices(op, device_rows, on_device, out_rows, results, ctx.where());
  plan::check_overlap(op, device_rows, on_device, out_rows, results, plan::aliases::none);
  for (std::size_t i = 0; i < s.count(); ++i) {
    attention_backward(ctx, s.queries(i, g), s.queries(i, q), s.keys(i, k), s.keys(i, v), s.queries(i, y),
                       s.numbers(i, lse), s.queries(i, results[0]), s.keys(i, results[1]), s.keys(i, results[2]),
                       s.options(o, i), {}, slopes);
  }
}

}  // namespace repdl
