// attention_varlen and its gradients: each sequence has the results that the oracle says it has alone, however sequences are split into calls and
// wherever their offsets and rows are.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "reference/evaluate.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/class_engines.hpp"

using namespace repdl;
using reference::array;
using reference::shape_list;

namespace {

using offsets = std::vector<std::int64_t>;

array filled(dtype t, const shape_list& shape, std::uint64_t seed) {
  reference::word_stream w(seed, 21);
  array x(dtype::f32, shape);
  for (std::size_t i = 0; i < static_cast<std::size_t>(x.count()); ++i)
    x.set(i, std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(w.next())) * 0x1p-30f));
  return reference::evaluate("convert", {x}, {{"dtype", std::string(name_of(t))}});
}

// Rows [first, last) of axis 0, behind axis 1: (last - first) heads of a sequence as attention has them.
array sequence(const array& x, std::int64_t first, std::int64_t last) {
  const std::int64_t heads = x.shape[1], width = x.shape[2];
  array r(x.type, {heads, last - first, width});
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t i = first; i < last; ++i) {
      for (std::int64_t d = 0; d < width; ++d) {
        r.set(reference::index((h * (last - first) + i - first) * width + d),
              x.get(reference::index((i * heads + h) * width + d)));
      }
    }
  }
  return r;
}
void put_sequence(array& x, const array& r, std::int64_t first) {
  const std::int64_t heads = x.shape[1], width = x.shape[2], count = r.shape[1];
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t d = 0; d < width; ++d) {
        x.set(reference::index(((i + first) * heads + h) * width + d),
              r.get(reference::index((h * count + i) * width + d)));
      }
    }
  }
}
array numbers(const array& lse, std::int64_t first, std::int64_t last) {
  array r(lse.type, {lse.shape[0], last - first});
  for (std::int64_t h = 0; h < lse.shape[0]; ++h) {
    for (std::int64_t i = first; i < last; ++i)
      r.set(reference::index(h * (last - first) + i - first), lse.get(reference::index(h * lse.shape[1] + i)));
  }
  return r;
}

array read(context& ctx, const tensor& t, const array& like) {
  array a = like;
  ctx.copy(a.bytes.data(), t.view().data(), a.bytes.size());
  return a;
}
template <class T>
tensor vector_of(context& ctx, const offsets& numbers) {
  return tensor(ctx, std::vector<T>(numbers.begin(), numbers.end()), {static_cast<std::int64_t>(numbers.size())});
}

struct problem {
  offsets queries, keys;
  attention_options options;
  bool slopes = false;
};
// Among them sequences without queries, without keys, without either, one alone, and longer ones.
const std::vector<problem>& problems() {
  static const std::vector<problem> all = {
      {{0, 3, 3, 10, 12, 12}, {0, 5, 9, 20, 20, 20}, {}},
      {{0, 3, 10, 11}, {0, 9, 16, 40}, {.causal = true, .bottom_right = true}},
      {{0, 40}, {0, 70}, {.scale = 0.3, .causal = true, .left = 20}, true},
      {{0, 4, 9}, {0, 4, 9}, {.dropout = 0.5, .seed = 7, .stream = 3}},
      {{0}, {0}, {}},
  };
  return all;
}
attributes attributes_of(const attention_options& o, std::size_t i) {
  attributes a{{"causal", o.causal}, {"bottom_right", o.bottom_right}, {"left", o.left}, {"right", o.right}};
  if (o.scale) a.push_back({"scale", *o.scale});
  if (o.dropout > 0) {
    a.push_back({"dropout", o.dropout});
    a.push_back({"seed", static_cast<std::int64_t>(o.seed)});
    a.push_back({"stream", static_cast<std::int64_t>(o.stream + i)});
  }
  return a;
}

std::string message(const std::function<void()>& call) {
  try {
    call();
  } catch (const error& e) {
    return std::string(info_of(e.site()).name) + ": " + e.op() + ": " + e.argument();
  }
  return "no error";
}

constexpr std::int64_t heads = 4, key_heads = 2, size = 6, value_size = 5;

}  // namespace

TEST_CASE(
    "attention_varlen: sequences behind each other have the bits that each has alone, and so have their gradients") {
  for (test::engine& e : test::engines()) {
    context& ctx = *e.ctx;
    CAPTURE(e.name);
    for (const problem& p : problems()) {
      for (const dtype t : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64}) {
        const dtype of_rows = t == dtype::f64 ? t : dtype::f32;
        const std::int64_t queries = p.queries.back(), keys = p.keys.back();
        CAPTURE(queries);
        const array q = filled(t, {queries, heads, size}, 1), k = filled(t, {keys, key_heads, size}, 2),
                    v = filled(t, {keys, key_heads, value_size}, 3), g = filled(t, {queries, heads, value_size}, 4),
                    slopes = p.slopes ? filled(dtype::f32, {heads}, 5) : array::none();
        array y(t, {queries, heads, value_size}), lse(of_rows, {heads, queries}), grad_q = q, grad_k = k, grad_v = v;
        std::vector<array> alone;
        for (std::size_t i = 0; i + 1 < p.queries.size(); ++i) {
          const auto of_queries = [&](const array& x) { return sequence(x, p.queries[i], p.queries[i + 1]); };
          const auto of_keys = [&](const array& x) { return sequence(x, p.keys[i], p.keys[i + 1]); };
          const attributes attrs = attributes_of(p.options, i);
          const std::vector<array> of = reference::evaluate_all(
              "attention", {of_queries(q), of_keys(k), of_keys(v), array::none(), slopes}, attrs);
          put_sequence(y, of[0], p.queries[i]);
          alone.push_back(of[1]);
          const std::vector<array> gradients = reference::evaluate_all(
              "attention_backward",
              {of_queries(g), of_queries(q), of_keys(k), of_keys(v), of[0], of[1], array::none(), slopes}, attrs);
          put_sequence(grad_q, gradients[0], p.queries[i]);
          put_sequence(grad_k, gradients[1], p.keys[i]);
          put_sequence(grad_v, gradients[2], p.keys[i]);
        }
        const tensor on_q = test::upload(ctx, q), on_k = test::upload(ctx, k), on_v = test::upload(ctx, v),
                     on_g = test::upload(ctx, g), of_queries = vector_of<std::int64_t>(ctx, p.queries),
                     of_keys = vector_of<std::int32_t>(ctx, p.keys);
        tensor of_lse(ctx, of_rows, {heads, queries});
        std::vector<tensor> held;
        if (p.slopes) held.push_back(test::upload(ctx, slopes));
        const operand extra = p.slopes ? operand(held[0]) : operand();
        const tensor made = attention_varlen(on_q, on_k, on_v, of_queries, of_keys, p.options, extra, of_lse.view());
        CHECK(read(ctx, made, y).bytes == y.bytes);
        lse = read(ctx, of_lse, lse);
        for (std::size_t i = 0; i < alone.size(); ++i)
          CHECK(numbers(lse, p.queries[i], p.queries[i + 1]).bytes == alone[i].bytes);
        const auto gradients =
            attention_varlen_backward(on_g, on_q, on_k, on_v, made, of_lse, of_queries, of_keys, p.options, extra);
        CHECK(read(ctx, gradients[0], grad_q).bytes == grad_q.bytes);
        CHECK(read(ctx, gradients[1], grad_k).bytes == grad_k.bytes);
        CHECK(read(ctx, gradients[2], grad_v).bytes == grad_v.bytes);
      }
    }
  }
}

TEST_CASE("attention_varlen: offsets wherever they are, and calls that are prepared") {
  context ctx({.threads = 1});
  const array q = filled(dtype::f32, {7, 2, 3}, 1), k = filled(dtype::f32, {9, 2, 3}, 2),
              v = filled(dtype::f32, {9, 2, 3}, 3);
  const tensor on_q = test::upload(ctx, q), on_k = test::upload(ctx, k), on_v = test::upload(ctx, v);
  const std::vector<std::int64_t> of_queries = {0, 3, 7};
  const std::vector<std::int32_t> of_keys = {0, -1, 4, -1, 9}, backwards = {9, 4, 0};
  const const_tensor_view queries(of_queries.data(), {3}), strided(of_keys.data(), dtype::i32, {3}, {2}),
      turned(backwards.data() + 2, dtype::i32, {3}, {-1});
  tensor first(ctx, dtype::f32, {7, 2, 3}), second(ctx, dtype::f32, {7, 2, 3}), third(ctx, dtype::f32, {7, 2, 3});
  attention_varlen(ctx, on_q.view(), on_k.view(), on_v.view(), queries, strided, first.view());
  attention_varlen(ctx, on_q.view(), on_k.view(), on_v.view(), queries, turned, second.view());
  prepared_calls calls = ctx.prepare(
      [&] { attention_varlen(ctx, on_q.view(), on_k.view(), on_v.view(), queries, strided, third.view()); });
  calls.run();
  CHECK(read(ctx, first, q).bytes == read(ctx, second, q).bytes);
  CHECK(read(ctx, first, q).bytes == read(ctx, third, q).bytes);
}

TEST_CASE("attention_varlen: faulty operands are refused by name, and nothing is written") {
  context ctx({.threads = 1});
  std::vector<float> x(64, 1.0f), y(64, -7.0f);
  const auto call = [&](const offsets& queries, const offsets& keys, sizes q = {4, 2, 3}, sizes k = {5, 1, 3},
                        sizes v = {5, 1, 2}, sizes out = {4, 2, 2}, attention_options o = {}) {
    return message([&] {
      attention_varlen(ctx, const_tensor_view(x.data(), q), const_tensor_view(x.data(), k),
                       const_tensor_view(x.data(), v), const_tensor_view(queries), const_tensor_view(keys),
                       tensor_view(y.data(), out), o);
    });
  };
  const offsets queries = {0, 1, 4}, keys = {0, 5, 5};
  CHECK(call(queries, keys) == "no error");
  std::fill(y.begin(), y.end(), -7.0f);
  CHECK(call({1, 4}, keys) == "index_range: attention_varlen: q_offsets");
  CHECK(call({0, 5, 4}, keys) == "index_range: attention_varlen: q_offsets");
  CHECK(call({0, 1, 3}, keys) == "index_range: attention_varlen: q_offsets");
  CHECK(call(queries, {0, 6, 6}) == "index_range: attention_varlen: k_offsets");
  CHECK(call(queries, {0, 6, 5}) == "index_range: attention_varlen: k_offsets");
  CHECK(call(queries, {0, 5}) == "attention_shape: attention_varlen: k_offsets");
  CHECK(call({}, {}) == "attention_shape: attention_varlen: q_offsets");
  CHECK(call(queries, keys, {4, 6}) == "operand_rank: attention_varlen: q");
  CHECK(call(queries, keys, {4, 2, 2}) == "attention_shape: attention_varlen: k");
  CHECK(call(queries, keys, {4, 3, 3}, {5, 2, 3}) == "attention_shape: attention_varlen: k");
  CHECK(call(queries, keys, {4, 2, 3}, {5, 1, 3}, {4, 1, 2}) == "attention_shape: attention_varlen: v");
  CHECK(call(queries, keys, {4, 2, 3}, {5, 1, 3}, {5, 2, 2}) == "attention_shape: attention_varlen: v");
  CHECK(call(queries, keys, {4, 2, 3}, {5, 1, 3}, {5, 1, 2}, {4, 2, 3}) == "output_shape: attention_varlen: out");
  CHECK(call(queries, keys, {4, 2, 3}, {5, 1, 3}, {5, 1, 2}, {4, 2, 2}, {.scale = 1e300}) ==
        "attribute_value: attention: scale");
  CHECK(y == std::vector<float>(64, -7.0f));
}
