#include "librepdl/dispatch/kernel_tests.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "librepdl/api/context_impl.hpp"
#include "librepdl/dispatch/self_test.hpp"
#include "librepdl/dynamic.hpp"
#include "librepdl/owning_tensor.hpp"
#include "librepdl/samples/call_shapes.hpp"

namespace repdl::dispatch {
namespace {

using ops::op_id;
using samples::has;
using samples::info_of;

op_id id_of(const op_info& op) {
  const int n = static_cast<int>(ops::elementwise_rows().size());
  return static_cast<op_id>(op.id < n ? op.id : op.id - n + ops::first_structured);
}

// How an operand lies in memory.
enum class layout {
  contiguous,
  shifted,  // contiguous, each operand some other elements away from where packs of elements could be moved
  stepped,  // every second element
  packs,    // rows of packs, with a pack between them
  turned,   // contiguous, the first axis innermost
  spread    // axes in another order, gaps along every axis, one axis backwards; no two axes can be merged
};

struct operand {
  sizes shape;
  layout how = layout::spread;
  dtype type = dtype::f32;
  bool number = false;  // an optional operand of rank 0, which would else be absent
};

struct attribute_text {
  std::string name, text;
  attribute_text(std::string_view n, std::string_view t) : name(n), text(t) {}
};
using attribute_texts = std::vector<attribute_text>;

struct test_call {
  op_id op;
  std::vector<operand> in;
  layout out = layout::spread;
  attribute_texts attrs{};
  tier first_tier = tier::proved;
  kernel_choice choice{};
  bool optional_out = true;  // optional outputs are wanted
};
using group = std::vector<test_call>;

// ------------------------------------------------------------------------------------------------- an operation's
// calls

constexpr tier every_tier[] = {tier::proved, tier::double_double, tier::exact};

// The call from each tier on; from the late ones, which are slow, a smaller call where there is one.
group from_every_tier(test_call c, const test_call* smaller = nullptr) {
  group g;
  for (const tier t : every_tier) {
    if (t != tier::proved && smaller != nullptr) c = *smaller;
    c.first_tier = t;
    g.push_back(c);
  }
  return g;
}
void append(group& to, const group& from) { to.insert(to.end(), from.begin(), from.end()); }
test_call wide(test_call c) {
  c.choice.wide = true;
  return c;
}
test_call split(test_call c) {
  c.choice.split = true;
  return c;
}

// The call of an operation, or of a gradient the call that belongs to that of its forward operation, where x has this shape, whose are
// the attributes. The first `optional` optional operands are there. What has x's shape lies as x does.
test_call call_at(op_id op, const sizes& x, layout how, const attribute_texts& attrs, int optional = ops::most_operands,
                  std::span<const sizes> own = {}) {
  const op_info& info = info_of(op);
  const op_info& forward = samples::forward_of(info);
  samples::shaped_call call;
  for (const auto& [name, text] : attrs) {
    if (has(forward.attrs, name)) call.attrs.push_back(parse_attribute(forward, name, text));
  }
  call.in = samples::operands_at(samples::record_of(forward), x, call.attrs, own);
  for (std::size_t i = 0; i < call.in.size(); ++i) {
    if (forward.in[i].optional && --optional < 0) call.in[i].reset();
  }
  call = samples::gradient_of(info, call);
  test_call t{op, {}, how};
  for (std::size_t i = 0; i < call.in.size(); ++i) {
    const bool number = call.in[i] && call.in[i]->empty() && info.in[i].optional;
    const bool beside_x = call.in[i] == x && !has(forward.out, info.in[i].name);
    t.in.push_back({call.in[i].value_or(sizes()), beside_x ? how : layout::spread, dtype::f32, number});
    if (info.in[i].types.size() == 1) t.in.back().type = info.in[i].types[0];
  }
  for (const attribute& a : call.attrs) {
    const auto given =
        std::find_if(attrs.begin(), attrs.end(), [&](const attribute_text& g) { return g.name == a.name; });
    if (const auto* size = std::get_if<std::vector<std::int64_t>>(&a.value);
        size != nullptr && (a.name == "size" || a.name == "kernel")) {
      std::string text;
      for (const std::int64_t n : *size) text += (text.empty() ? "" : ",") + std::to_string(n);
      t.attrs.push_back({a.name, text});
    } else {
      t.attrs.push_back(*given);
    }
  }
  return t;
}

// Elementwise: side by side, and every way to walk strides; in `spread` ones the inputs after the first are broadcast.
std::vector<group> map_calls(const subject& what, const ops::elementwise_row* row) {
  const int inputs = row == nullptr ? 1 : row->arity;
  const sizes odd{3, 2, 5, 3, 7};
  const sizes fours{3, 5, 2, 3, 8};
  const auto call = [&](const sizes& shape, layout how) {
    test_call c{what.op, {}, how};
    for (int i = 0; i < inputs; ++i) {
      c.in.push_back({shape, how, row == nullptr ? what.in : row->operand_type(i, what.in)});
      if (how == layout::spread && i > 0) c.in.back().shape[i] = 1;
    }
    if (row == nullptr) c.attrs = {{"dtype", name_of(what.out)}};
    return c;
  };
  const bool tested = row != nullptr && ops::proof_in(row->proof, what.in) >= ops::proof_kind::exact;
  group g;
  if (row != nullptr && what.out != row->result_type(what.in)) {
    // A kernel stores results of every other format.
    for (const layout how : {layout::contiguous, layout::spread}) {
      for (const dtype to : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64}) {
        if (to == what.in) continue;
        test_call c = call(odd, how);
        c.attrs = {{"dtype", name_of(to)}};
        append(g, {c, wide(c)});
      }
    }
  } else {
    for (const layout how : {layout::contiguous, layout::shifted, layout::stepped, layout::packs, layout::spread}) {
      const test_call c = call(how == layout::packs ? fours : odd, how);
      for (const test_call& each : {c, wide(c)}) append(g, tested ? from_every_tier(each) : group{each});
    }
    // In parts, as a list of calls.
    for (const layout how : {layout::contiguous, layout::shifted}) {
      const test_call c = split(call({1, 1, 1, 1, 2101}, how)), smaller = split(call({1, 1, 1, 1, 67}, how));
      append(g, tested ? from_every_tier(c, &smaller) : group{c});
    }
    if (what.op == op_id::convert && (ops::F8 & ops::one(what.out)) != 0) {
      test_call c = call(odd, layout::contiguous);
      c.attrs.push_back({"saturate", "true"});
      append(g, {c, wide(c)});
    }
    // What a block of threads leaves undecided is noted by its place in the whole.
    if (tested) {
      for (const layout how : {layout::contiguous, layout::shifted, layout::stepped, layout::packs, layout::spread}) {
        for (const std::int64_t n : {9003, 20003}) {
          const bool packs = how == layout::packs;
          append(g, {wide(call(how == layout::spread ? sizes{3, 5, 19, 9, 7}
                                                     : sizes{1, 1, 1, packs ? 2 : 1, packs ? n / 8 * 4 : n},
                               how))});
        }
      }
    }
  }
  std::vector<group> all{g};
  if (row == nullptr || row->options.count() == 0) return all;
  constexpr const char* values[] = {"0.3", "0.9", "2.5"};  // of every kind
  for (test_call& c : g) {
    for (int i = 0; i < row->options.count(); ++i) c.attrs.push_back({row->options.all[i].name, values[i]});
  }
  all.push_back(g);
  return all;
}

// As on a device of one multiprocessor.
test_call on_one(test_call c) {
  c.choice.multiprocessors = 1;
  return c;
}

// Reductions: rows and columns, in one piece and in chunks that are joined, few and many for the device; `wide` ones, few, too,
// as many are.
std::vector<group> reduce_calls(const subject& what) {
  const auto call = [&](const sizes& shape, layout in, layout out, std::string_view axis) {
    return test_call{what.op, {{shape, in, what.in}}, out, {{"axis", axis}}};
  };
  const test_call columns = call({3, 2, 5, 3, 2, 3}, layout::spread, layout::spread, "1,3,5");
  const test_call rows = call({3, 5, 2, 67}, layout::contiguous, layout::spread, "2,3");
  const test_call packed_rows = call({15, 76}, layout::packs, layout::contiguous, "-1");
  const test_call long_rows = call({1, 16411}, layout::contiguous, layout::contiguous, "1");
  const test_call long_columns = call({701, 4}, layout::contiguous, layout::contiguous, "0");
  const test_call many_rows = call({4101, 68}, layout::contiguous, layout::contiguous, "1");
  std::vector<group> all{from_every_tier(on_one(columns)),
                         {on_one(rows), on_one(packed_rows), on_one(many_rows)},
                         from_every_tier(long_rows),
                         {long_columns, wide(long_columns)},
                         from_every_tier(rows)};
  all.front().push_back(wide(columns));
  append(all[2], from_every_tier(wide(long_rows)));
  append(all[2], from_every_tier(on_one(long_rows)));  // for which these are few and long
  append(all.back(), {packed_rows, columns});
  if (info_of(what.op).in.size() == 2) {
    for (group& g : all) {
      for (test_call& c : g) c.in.push_back(c.in[0]);
    }
  }
  return all;
}
std::vector<group> vector_norm_calls(const subject& what) {
  std::vector<group> all;
  for (const std::string_view p : {"1", "2", "inf", "-inf"}) {
    for (group& g : reduce_calls(what)) {
      for (test_call& c : g) c.attrs.push_back({"p", p});
      all.push_back(std::move(g));
    }
  }
  return all;
}
std::vector<group> dot_calls(dtype type) {
  std::vector<group> all;
  for (const std::int64_t n : {19, 67, 16411}) {
    const test_call c{op_id::dot, {{{n}, layout::spread, type}, {{n}, layout::contiguous, type}}, layout::contiguous};
    all.push_back(from_every_tier(c));
    append(all.back(), from_every_tier(wide(c)));
    append(all.back(), from_every_tier(on_one(c)));
  }
  return all;
}

// Sums and rows that have results of any floating-point format.
bool gives_other_format(const op_info& op, dtype in) {
  return (op.family == "reduce" || op.family == "softmax") && ops::is_floating(in) && has(op.attrs, "dtype");
}
// With results of the format that the subject says.
std::vector<group> in_other_format(std::vector<group> all, const subject& what) {
  const bool is_other = what.out != what.in && gives_other_format(info_of(what.op), what.in);
  for (group& g : all) {
    for (test_call& c : g) {
      if (is_other) c.attrs.push_back({"dtype", name_of(what.out)});
    }
  }
  return all;
}

// Products by residues: operands along their terms and across, in one piece and in several; every way in which blocks share tiles.
std::vector<group> by_residues(dtype type) {
  const auto product = [&](const sizes& a, const sizes& b, layout how) {
    test_call c{op_id::matmul, {{a, how, type}, {b, how, type}, {{b[b.size() - 1]}, layout::contiguous, type}}};
    c.choice.engine = product_engine::residues;
    return c;
  };
  const test_call batches = product({3, 2, 5, 37}, {3, 1, 37, 7}, layout::spread);
  test_call scaled = batches;
  scaled.attrs = {{"alpha", "0.3"}, {"beta", "2.5"}};
  std::vector<group> all{from_every_tier(batches), from_every_tier(scaled)};
  for (const int shared : {0, 1, 2}) {
    for (const bool split : {false, true}) {
      test_call c = product({300, 292}, {292, 270}, layout::contiguous);
      c.choice.tile = shared;
      c.choice.split = split;
      all.push_back({c});
    }
  }
  return all;
}

// Products in binary64: both tiles, alone and shared by blocks; operands that are read in words, along their terms and across, and one element at a time; outputs that
// are repaired by a warp each, and all of a tile's together.
std::vector<group> by_tiles(dtype type) {
  std::vector<group> all;
  for (const int tile : {0, 1}) {
    for (const bool split : {false, true}) {
      for (const bool transposed : {false, true}) {
        const layout how = split == transposed ? layout::contiguous : layout::spread;
        test_call c{op_id::matmul, {{{132, 100}, how, type}, {{132, 76}, how, type}, {{76}, layout::contiguous, type}}};
        c.attrs = {{"transpose_a", "true"}};
        if (transposed) {
          c.in[0].shape = {100, 132};
          c.in[1].shape = {76, 132};
          c.attrs = {{"transpose_b", "true"}};
        }
        c.choice.engine = product_engine::binary64;
        c.choice.tile = tile;
        c.choice.split = split;
        all.push_back(transposed ? from_every_tier(c) : group{c});
      }
    }
  }
  return all;
}

// Products in binary64 where one operand has few lines: as many as each kernel is for, on either side.
std::vector<group> by_thin_tiles(dtype type) {
  std::vector<group> all;
  for (const std::int64_t few : {5, 9, 32}) {
    for (const bool split : {false, true}) {
      const operand matrix{{147, 2504}, layout::contiguous, type};
      const operand thin{{few, 2504}, layout::contiguous, type};
      test_call c{op_id::matmul, {thin, matrix, {{147}, layout::contiguous, type}}};
      if (few == 9) c.in = {matrix, thin};
      c.attrs = {{"transpose_b", "true"}};
      c.choice.engine = product_engine::binary64;
      c.choice.tile = 2;
      c.choice.split = split;
      all.push_back(from_every_tier(c));
      if (type != dtype::f32) continue;
      c.attrs.push_back({"alpha", "0.3"});
      all.push_back({c});
    }
  }
  return all;
}

// Each tile of the chain: operands that are read in fours, along their terms and across, and one element at a time.
std::vector<group> by_chains() {
  std::vector<group> all;
  for (const int tile : {2, 4, 8}) {
    group g;
    for (const layout how : {layout::contiguous, layout::spread}) {
      test_call c{op_id::matmul, {{{2, 132, 72}, how}, {{72, 148}, how}, {{148}, layout::contiguous}}};
      c.choice.tile = tile;
      c.attrs = {{"accumulate", "fma_chain"}};
      g.push_back(c);
      c.in[0].shape = {75, 132};
      c.in[1].shape = {148, 75};
      c.attrs.insert(c.attrs.end(), {{"transpose_a", "true"}, {"transpose_b", "true"}});
      g.push_back(c);
      c.in[0].shape = {132, 76};
      c.in[1].shape = {148, 76};
      c.attrs = {{"accumulate", "fma_chain"}, {"transpose_b", "true"}};
      g.push_back(c);
    }
    all.push_back(g);
  }
  return all;
}

std::vector<group> matmul_calls(dtype type) {
  const auto spread = [&](const sizes& shape) { return operand{shape, layout::spread, type}; };
  const test_call batches{op_id::matmul, {spread({3, 2, 5, 37}), spread({3, 1, 37, 7}), spread({2, 5, 7})}};
  const test_call large = on_one({op_id::matmul, {spread({2, 35, 19}), spread({2, 19, 70})}});
  const auto scaled = [](test_call c) {
    c.attrs = {{"alpha", "0.3"}, {"beta", "2.5"}};
    return c;
  };
  // Few outputs of long sums become dot products, by rows and by columns.
  const test_call rows{op_id::matmul, {{{2, 8203}, layout::contiguous, type}, spread({8203, 1}), spread({2, 1})}};
  test_call columns = rows;
  columns.in[0].shape = {8203, 2};
  columns.attrs = {{"transpose_a", "true"}};
  std::vector<group> all{from_every_tier(batches),
                         from_every_tier(scaled(batches)),
                         {large, scaled(large)},
                         from_every_tier(rows),
                         {columns}};
  if (type == dtype::f64) {  // one engine for all of them
    all.push_back(from_every_tier(wide(scaled(rows))));
    append(all.back(), from_every_tier(on_one(scaled(rows))));
  }
  if (type != dtype::f64) {
    for (const group& g : by_tiles(type)) all.push_back(g);
    for (const group& g : by_thin_tiles(type)) all.push_back(g);
    for (const group& g : by_residues(type)) all.push_back(g);
  }
  if (type == dtype::f32) {
    test_call chain = batches;
    chain.attrs = {{"accumulate", "fma_chain"}};
    all.push_back({chain});
    for (const group& g : by_chains()) all.push_back(g);
  }
  return all;
}

// Convolutions: the kernels are chosen by the shape of the tiles, whether a product is split, and which way each
// operand is the nearer one to walk in memory: along a product's terms, or across.
std::vector<group> conv2d_calls(dtype type) {
  const auto call = [](sizes x, sizes w, layout how) {
    return test_call{op_id::conv2d, {{x, layout::contiguous}, {w, how}}, layout::contiguous};
  };
  std::vector<group> all{from_every_tier(
      {op_id::conv2d, {{{2, 6, 7, 9}}, {{4, 3, 3, 2}}, {{4}}}, layout::spread, {{"groups", "2"}, {"padding", "1"}}})};
  // Terms enough for a list of outputs that is worked off in chunks, and for repairs by whole blocks.
  for (const auto& [c, first] : {std::pair{457, tier::double_double}, {923, tier::exact}}) {
    all.push_back({call({1, c, 3, 4}, {1, c, 3, 3}, layout::contiguous)});
    all.back().front().first_tier = first;
  }
  if (type == dtype::f64) return all;                // without tiles
  for (const std::int64_t rows : {1, 2, 3, 5, 7}) {  // directly
    test_call c = call({2, 3, 9, 6}, {3, 1, rows, 2}, layout::contiguous);
    c.attrs = {{"groups", "3"}};
    all.push_back({c});
  }
  for (int tile = 0; tile < 4; ++tile) {
    for (const std::string_view dilation : {"1,1", "1,2"}) {
      for (const layout how : {layout::contiguous, layout::spread}) {
        test_call c = call({1, 15, 6, 7}, {7, 15, 3, 3}, how);
        c.attrs = {{"dilation", dilation}};
        c.choice.tile = tile;
        all.push_back({c});
      }
    }
    test_call split = call({1, 15, 6, 7}, {7, 15, 3, 3}, layout::contiguous);
    split.choice.tile = tile;
    split.choice.split = true;
    all.push_back({split});
  }
  if (type != dtype::f32) return all;
  // The chain's tiles follow from the number of outputs and of multiprocessors.
  for (const auto& [channels, multiprocessors] : {std::pair{70, 1}, {35, 1}, {5, 1}, {5, 0}}) {
    test_call c{op_id::conv2d, {{{1, 2, 10, 11}}, {{channels, 2, 3, 3}}, {{channels}}}};
    c.attrs = {{"accumulate", "fma_chain"}};
    c.choice.multiprocessors = multiprocessors;
    all.push_back({c});
  }
  return all;
}
bool is_3d(op_id op) { return info_of(op).name.find("3d") != std::string::npos; }

// Their own, then the kernels that all convolutions share. In depth the first and the last windows have fewer taps than the others.
std::vector<group> own_conv_calls(op_id op, dtype type) {
  const bool deep = is_3d(op);
  const sizes w = deep ? sizes{4, 3, 3, 3, 2} : sizes{4, 3, 3, 2};
  test_call c = call_at(op, deep ? sizes{2, 6, 4, 5, 6} : sizes{2, 6, 7, 8}, layout::spread,
                        {{"groups", "2"}, {"stride", deep ? "1,2,1" : "2,1"}, {"padding", "1"}}, 0, {&w, 1});
  std::vector<group> all{from_every_tier(c)};
  if (deep && type == dtype::f32) {
    c.attrs.push_back({"accumulate", "fma_chain"});
    all.push_back({c});
  }
  for (group& g : conv2d_calls(type)) all.push_back(std::move(g));
  return all;
}

// Windows of several sizes, and of one: then of all the kernels of those that have one.
std::vector<group> adaptive_pool_calls(const subject& what) {
  std::vector<group> all;
  for (const auto& [image, pooled] :
       {std::pair{sizes{2, 3, 9, 11}, "4,7"}, {{2, 3, 8, 6}, "4,3"}, {{2, 3, 9, 12}, "3,4"}}) {
    const bool deep = is_3d(what.op);
    const test_call c = call_at(what.op, deep ? sizes{image[0], image[1], 3, image[2], image[3]} : image,
                                layout::spread, {{"size", deep ? "2," + std::string(pooled) : std::string(pooled)}});
    group g = from_every_tier(c);
    g.push_back(wide(c));
    all.push_back(std::move(g));
  }
  return all;
}

std::vector<group> pool_calls(const subject& what) {
  const bool max = has(samples::forward_of(info_of(what.op)).attrs, "dilation");
  const bool deep = is_3d(what.op);
  const auto call = [&](attribute_texts window, attribute_texts more = {}) {
    if (deep) {
      for (auto& [name, each] : window) each = "2," + std::string(each);
    }
    window.push_back({"padding", "1"});
    window.insert(window.end(), more.begin(), more.end());
    return call_at(what.op, deep ? sizes{2, 3, 4, 9, 11} : sizes{2, 3, 9, 11}, layout::spread, window);
  };
  const auto square = [](std::string_view kernel, std::string_view stride) {
    return attribute_texts{{"kernel", kernel}, {"stride", stride}};
  };
  // No kernel of its own; kernels of 2x2 and 3x3; windows that overlap, and that do not.
  const test_call any =
      max ? call({{"kernel", "3,2"}, {"stride", "2,1"}, {"dilation", "2,1"}}) : call(square("4,2", "2,1"));
  group g = from_every_tier(any);
  g.push_back(wide(any));
  std::vector<group> all{g, {call(square("2,2", "2,2"))}, {call(square("3,3", "3,3"))}, {call(square("3,3", "2,2"))}};
  // A last window that reaches over the padded image; divisors of either sign.
  all.push_back(from_every_tier(call(square("3,2", "3,3"), {{"ceil_mode", "true"}, {"count_include_pad", "true"}})));
  all.push_back({call(square("3,3", "3,3"), {{"ceil_mode", "true"}})});
  for (const std::string_view divisor : {"-3", "5"}) {
    if (!max) all.push_back({call(square("3,3", "2,2"), {{"divisor_override", divisor}})});
  }
  return all;
}

// The softmax family: rows in the registers of some lanes, warps or blocks, a thread's own, and cut into chunks. On a device of one
// multiprocessor two short rows are not few: on others a block would have each, which the calls of all tiers reach.
// With results of another format than x there is a copy, and the kernels of calls that have one format.
std::vector<group> row_calls(const subject& what) {
  const op_id op = what.op;
  const op_info& info = info_of(op);
  const bool loss = has(info.attrs, "reduction"), probabilities = has(info.in, "probabilities");
  // x: the row's elements along `axis`, with what the operation takes beside it.
  const auto call = [&](const sizes& x, std::string_view axis, layout how, std::string_view reduction = "none") {
    attribute_texts attrs{{"axis", axis}, {"reduction", reduction}};
    if (probabilities) attrs.push_back({"label_smoothing", "0.125"});
    return call_at(op, x, how, attrs, probabilities ? 1 : 0);
  };
  const auto small = [&](const sizes& x, std::string_view reduction) {
    const bool axes = samples::record_of(samples::forward_of(info)).axes == ops::row_axes::all;
    return call(x, axes ? "1,2" : "2", layout::spread, reduction);
  };
  std::vector<group> all;
  for (const std::string_view reduction : {"none", "mean", "sum"}) {
    const test_call smaller = small({2, 1, 3, 2}, reduction);
    group g = from_every_tier(small({3, 2, 7, 3}, reduction), &smaller);
    g.push_back(wide(g.back()));
    for (const std::size_t i : {0, 1, 2}) g.push_back(on_one(g[i]));
    all.push_back(std::move(g));
    if (!loss) break;
  }
  if (what.out != what.in && gives_other_format(info, what.in)) return all;
  if (probabilities) {  // the same rules, of targets: the sum of weights
    const bool gradient = &samples::forward_of(info) != &info;
    for (const std::string_view reduction : {"none", "mean"}) {
      const op_id of_targets = gradient ? op_id::cross_entropy_backward : op_id::cross_entropy;
      all.push_back(from_every_tier(call_at(of_targets, {9, 7, 3}, layout::spread,
                                            {{"axis", "1"}, {"reduction", reduction}, {"label_smoothing", "0.125"}})));
    }
  }
  for (const std::int64_t length : {27, 28, 63, 64, 259, 260, 8209, 8212, 65541, 65544}) {
    const layout how = length % 2 == 0 ? layout::contiguous : layout::stepped;
    // Where a block has several rows there are as many: threads of fewer have fewer elements each.
    const std::int64_t rows = length < 100 ? 3 : length < 1000 ? 17 : 1;
    all.push_back({on_one(call({rows, length}, "1", how))});
  }
  all.push_back({on_one(call({2, 37, 19}, "1", layout::contiguous)), on_one(call({2, 300, 9}, "1", layout::contiguous)),
                 on_one(call({1, 300, 4}, "1", layout::contiguous))});
  test_call late = call({2, 4105}, "1", layout::contiguous);
  group each_level{wide(late)};
  for (const tier t : {tier::double_double, tier::exact}) {
    late.first_tier = t;
    each_level.push_back(late);
  }
  each_level.push_back(wide(late));
  all.push_back(each_level);
  all.push_back({wide(call({2, 8209}, "1", layout::contiguous)), wide(call({2, 8212}, "1", layout::contiguous))});
  return all;
}

// Norms: rows as those of the softmax family, side by side and across, with and without weights and statistics.
std::vector<group> norm_calls(op_id op) {
  const op_info& info = info_of(op);
  const op_info& forward = samples::forward_of(info);
  const ops::row_axes axes = samples::record_of(forward).axes;
  const bool gradient = &forward != &info, to_weight = info.out[0].name == "grad_weight";
  // outer * inner rows (or, to a weight, sums); their elements lie `inner` apart where the operation lets them.
  const auto call = [&](std::int64_t outer, std::int64_t length, std::int64_t inner, layout how, int operands = 2) {
    sizes x{outer, length, inner};
    attribute_texts attrs{{"eps", "1e-5"}, {"correction", "0.5"}};
    const std::int64_t half = length % 2 == 0 ? 2 : 1;
    if (axes == ops::row_axes::groups) {
      attrs.push_back({"groups", std::to_string(inner)});
      if (!to_weight) x = {outer, half * inner, length / half};
    }
    if (axes == ops::row_axes::channels || (axes == ops::row_axes::groups && to_weight)) {
      x = inner == 1 ? sizes{half, outer, length / half} : sizes{length, outer * inner};
    } else if (axes != ops::row_axes::groups) {
      attrs.push_back({"axis", to_weight ? "0,2" : "1"});
    }
    test_call c = call_at(op, x, how, attrs, operands);
    c.optional_out = operands > 0;
    return c;
  };
  std::vector<group> all;
  for (const int operands : {2, 1, 0}) {
    const test_call smaller = call(2, 3, 2, layout::spread, operands);
    group g = from_every_tier(call(3, 14, 3, layout::spread, operands), &smaller);
    g.push_back(wide(g.back()));
    for (const std::size_t i : {0, 1, 2}) g.push_back(on_one(g[i]));
    all.push_back(std::move(g));
  }
  for (const std::int64_t length : {1, 2, 63, 64, 259, 264, 2057, 2064, 8209, 8216, 65541, 65544}) {
    const layout how = length % 2 == 0 ? layout::contiguous : layout::stepped;
    const std::int64_t rows = length < 1000 ? 3 : length < 5000 || gradient ? 2 : 1;  // the first has an rstd of 0
    group g{on_one(call(rows, length, 1, how))};
    if (length < 10000) g.push_back(on_one(call(rows, length, 1, how, 0)));
    all.push_back(std::move(g));
  }
  for (const std::int64_t length : {37, 300, 1030}) {
    for (const layout how : {layout::contiguous, layout::spread}) {
      all.push_back({on_one(call(2, length, 3, how)), on_one(call(2, length, 3, how, 0))});
    }
  }
  // Many rows whose elements are further from each other than from those of the next row.
  all.push_back({on_one(call(16, 14, 3, layout::contiguous)), on_one(call(16, 14, 3, layout::turned)),
                 on_one(call(16, 37, 1, layout::contiguous)), on_one(call(1, 300, 4, layout::contiguous)),
                 on_one(call(1, 300, 4, layout::contiguous, 0))});
  // Many long rows.
  all.push_back({on_one(call(5, 4112, 1, layout::contiguous)), on_one(call(5, 4112, 1, layout::contiguous, 0))});
  // Sums to a weight over elements that lie side by side, and so do their statistics.
  for (const std::int64_t length : {20, 3000, 8212}) {
    if (!to_weight) break;
    test_call c = call(1, length, 1, layout::contiguous);
    for (operand& o : c.in) o.how = layout::contiguous;
    all.push_back({c, wide(c)});
  }
  test_call late = call(2, 4105, 1, layout::contiguous);
  group each_level{wide(late)};
  for (const tier t : {tier::double_double, tier::exact}) {
    late.first_tier = t;
    each_level.push_back(late);
  }
  each_level.push_back(wide(late));
  all.push_back(each_level);
  all.push_back({wide(call(2, 8209, 1, layout::contiguous)), wide(call(2, 8216, 1, layout::contiguous))});
  return all;
}

// Calls of binary32 with operands of the subject's format, where they can have it.
std::vector<group> of_format(std::vector<group> calls, const subject& what) {
  for (group& g : calls) {
    for (test_call& c : g) {
      const op_info& op = info_of(c.op);
      for (std::size_t i = 0; i < c.in.size(); ++i) {
        const std::vector<dtype>& types = op.in[i].types;
        if (op.in[i].name.starts_with("running_") && what.in != dtype::f64) continue;
        if (std::find(types.begin(), types.end(), what.in) != types.end()) c.in[i].type = what.in;
      }
    }
  }
  return calls;
}
// And those again with factors of binary32, and running statistics of the subject's format, that have any.
std::vector<group> in_other_formats(std::vector<group> calls, const subject& what) {
  const std::size_t count = what.in == dtype::f32 || what.in == dtype::f64 ? 0 : calls.size();
  for (std::size_t k = 0; k < count; ++k) {
    group mixed;
    for (test_call c : calls[k]) {
      const op_info& op = info_of(c.op);
      bool has = false;
      for (std::size_t i = 0; i < c.in.size(); ++i) {
        const dtype before = c.in[i].type;
        const std::vector<dtype>& types = op.in[i].types;
        const bool takes_it = std::find(types.begin(), types.end(), what.in) != types.end();
        if (op.in[i].optional && c.in[i].shape.size() != 0) c.in[i].type = dtype::f32;
        if (op.in[i].name.starts_with("running_") && takes_it) c.in[i].type = what.in;
        has = has || c.in[i].type != before;
      }
      if (has) mixed.push_back(c);
    }
    if (!mixed.empty()) calls.push_back(mixed);
  }
  return calls;
}

std::vector<group> random_calls(const subject& what) {
  const op_info& op = info_of(what.op);
  const sizes shape{3, 5, 2, 3, 7};
  const bool drops = !op.in.empty(), late = samples::record_of(what.op).proof == ops::proof_kind::multi_limb,
             selects = samples::record_of(what.op).proof == ops::proof_kind::select;
  test_call c{what.op, {}, layout::contiguous};
  if (drops) c.in = {{shape, layout::contiguous, what.in}};
  for (const attribute_text& a : attribute_texts{{"seed", "81985529216486895"},
                                                 {"stream", "7"},
                                                 {"n", "2111"},
                                                 {"shape", "3,5,2,3,7"},
                                                 {"dtype", name_of(what.out)},
                                                 {"p", "0.3"}}) {
    if (has(op.attrs, a.name)) c.attrs.push_back(a);
  }
  const bool has_ends = has(op.attrs, "low");  // which decide what range is drawn from
  if (selects && has_ends) {
    c.attrs.push_back({"low", "-1000000007"});
    c.attrs.push_back({"high", "9223372036854775807"});
  }
  test_call spread = c;
  spread.out = layout::spread;
  if (drops) spread.in[0].how = layout::spread;
  if (selects) return {{c, spread}};
  const auto smaller = [&](test_call s) {
    for (attribute_text& a : s.attrs) {
      if (a.name == "shape") a.text = "2,3,1,5";
    }
    return s;
  };
  const test_call small = smaller(c);
  const test_call small_spread = smaller(spread);
  group g = from_every_tier(c, &small);
  if (late) g.pop_back();  // its slowest tier is the same kernel for both
  append(g, from_every_tier(spread, &small_spread));
  if (has_ends) {
    for (test_call& each : g) {
      each.attrs.push_back({"low", "-0.1"});
      each.attrs.push_back({"high", "2.7"});
    }
    g.push_back(spread);  // of [0, 1)
  }
  std::vector<group> all{g};
  if (has(op.attrs, "stddev")) {
    spread.attrs.push_back({"stddev", "0"});
    all.push_back({spread});
  }
  return all;
}

// Rows that are shorter than a chunk of sums and longer, also than what a block adds up; both ways to draw.
std::vector<group> draw_calls(const subject& what) {
  std::vector<group> all;
  for (const std::string_view replacement : {"true", "false"}) {
    for (const auto& [rows, n, samples] :
         {std::tuple{3, 37, "5"}, std::tuple{1, 1, "1"}, std::tuple{2, 40009, "700"}}) {
      for (const layout how : {layout::contiguous, layout::spread}) {
        const test_call c{
            what.op,
            {{{rows, n}, how, what.in}},
            how,
            {{"seed", "81985529216486895"}, {"stream", "7"}, {"num_samples", samples}, {"replacement", replacement}}};
        group g{c};
        if (n < 100) g = from_every_tier(c);
        all.push_back(std::move(g));
      }
    }
  }
  return all;
}

std::vector<group> upsample_calls(const subject& what) {
  std::vector<group> all;
  for (const auto& [image, size] : {std::pair{sizes{2, 3, 5, 4}, "12,9"}, {{2, 3, 9, 11}, "4,7"}}) {
    for (const bool scaled : {false, true}) {
      attribute_texts attrs{{"size", size}};
      if (scaled) attrs.insert(attrs.end(), {{"scale_h", "1.7"}, {"scale_w", "0.6"}, {"exact", "true"}});
      const test_call c = call_at(what.op, image, layout::spread, attrs);
      group g = from_every_tier(c);
      append(g, from_every_tier(wide(c)));
      all.push_back(std::move(g));
    }
  }
  return all;
}

std::vector<group> interpolation_calls(const subject& what) {
  struct call {
    sizes image;
    std::string size, scale = "0", align_corners = "false";
  };
  std::vector<group> all;
  for (const call& k : {call{{2, 3, 5, 4}, "12,9"}, call{{2, 3, 9, 11}, "4,7", "0.6"}, call{{2, 2, 3, 4, 5}, "6,5,10"},
                        call{{3, 2, 40}, "31", "0", "true"}}) {
    const test_call c = call_at(what.op, k.image, layout::spread,
                                {{"size", k.size}, {"align_corners", k.align_corners}, {"scale_w", k.scale}});
    group g = from_every_tier(c);
    append(g, from_every_tier(wide(c)));
    all.push_back(std::move(g));
  }
  return all;
}

std::vector<group> sequence_calls(const subject& what) {
  test_call c{what.op, {}, layout::contiguous, {{"start", "-0.1"}, {"count", "2111"}, {"dtype", name_of(what.out)}}};
  c.attrs.push_back({has(info_of(what.op).attrs, "end") ? "end" : "step", "0.7"});
  test_call spread = c;
  spread.out = layout::spread;
  test_call small = c;
  small.attrs[1].text = "23";
  test_call small_spread = small;
  small_spread.out = layout::spread;
  group g = from_every_tier(c, &small);
  append(g, from_every_tier(spread, &small_spread));
  return {g};
}

// Optimisers: a program for each kind of state, on tensors side by side and strided ones.
std::vector<group> step_calls(const subject& what) {
  const bool of_moments = has(info_of(what.op).attrs, "step");
  const auto call = [&](int inputs, attribute_texts attrs) {
    test_call c{what.op, {}, layout::contiguous, std::move(attrs)};
    for (int i = 0; i < inputs; ++i)
      c.in.push_back({{3, 5, 2, 3, 7}, layout::contiguous, i < 2 ? what.in : ops::state_format(what.in)});
    test_call spread = c;
    spread.out = layout::spread;
    for (operand& o : spread.in) o.how = layout::spread;
    test_call small = c;
    for (operand& o : small.in) o.shape = {2, 1, 5};
    test_call small_spread = spread;
    for (operand& o : small_spread.in) o.shape = {2, 1, 5};
    group g = from_every_tier(c, &small);
    append(g, from_every_tier(spread, &small_spread));
    if (of_moments) {  // from the last tier's last level
      for (const test_call& s : {small, small_spread}) {
        g.push_back(wide(s));
        g.back().first_tier = tier::exact;
      }
    }
    return g;
  };
  if (of_moments) return {call(4, {{"lr", "0.01"}, {"step", "3"}})};
  std::vector<group> all{call(2, {{"lr", "0.1"}, {"weight_decay", "0.01"}})};
  for (const std::string_view nesterov : {"false", "true"}) {
    all.push_back(call(3, {{"lr", "0.1"}, {"momentum", "0.9"}, {"nesterov", nesterov}}));
    group first = all.back();
    for (test_call& c : first) c.in[2].shape = {};
    all.push_back(first);
  }
  return all;
}

// Lists of tensors as one vector, from every tier: side by side and strided, many and few elements, each norm, factors below 1 and of 1.
std::vector<group> list_calls(const subject& what) {
  group g;
  for (const std::string_view p : {"2", "1", "inf"}) {
    for (const layout how : {layout::contiguous, layout::spread}) {
      const auto call = [&](const sizes& shape, std::string_view max_norm) {
        test_call c{
            what.op, {{shape, how, what.in}, {{}, how, what.in}, {{0, 3}, how, what.in}, {shape, how, what.in}}, how};
        c.attrs.push_back({"p", p});
        if (has(info_of(what.op).attrs, "max_norm")) c.attrs.push_back({"max_norm", max_norm});
        return c;
      };
      const test_call many = call({3, 5, 2, 31, 17}, "0.1");
      const test_call small = call({2, 1, 5}, "0.1");
      append(g, from_every_tier(many, &small));
      append(g, from_every_tier(call({7, 3}, "1e30"), &small));
    }
  }
  return {g};
}

// Losses: of each element, and all in one, from every tier; without the operands that may be absent; kl_div of logarithms, too.
std::vector<group> loss_calls(const subject& what) {
  std::vector<group> all;
  const op_info& op = info_of(what.op);
  const bool gradient = samples::record_of(what.op).is_gradient, divergence = has(op.attrs, "log_target");
  const std::string_view border = has(op.attrs, "beta") ? "beta" : has(op.attrs, "delta") ? "delta" : "";
  for (const std::string_view reduction : {"none", "mean", "sum", "batchmean"}) {
    if (reduction == "batchmean" && !divergence) continue;
    group g;
    for (const layout how : {layout::contiguous, layout::shifted, layout::stepped, layout::packs, layout::spread}) {
      const bool each = gradient || reduction == "none";
      if (!each && (how == layout::shifted || how == layout::stepped || how == layout::packs)) continue;
      test_call c{what.op, {}, how, {{"reduction", reduction}}};
      for (const operand_info& o : op.in) {
        const bool one = o.name == "g" && reduction != "none";
        c.in.push_back({one ? sizes{} : sizes{3, 2, 5, 3, how == layout::packs ? 8 : 7}, how, what.in});
        if (how == layout::spread && o.name == "t") c.in.back().shape[1] = 1;
      }
      test_call small = c;
      for (operand& o : small.in) {
        if (!o.shape.empty()) o.shape = {2, 1, how == layout::packs ? 8 : 5};
      }
      append(g, from_every_tier(c, &small));
      g.push_back(wide(c));
      if (each) {
        append(g, from_every_tier(wide(small)));
        test_call blocks = wide(c);
        for (operand& o : blocks.in) {
          if (!o.shape.empty()) o.shape = {1, 1, how == layout::packs ? 2 : 1, 1, 9004};
        }
        if (how != layout::spread) g.push_back(blocks);
      }
      const std::size_t first = gradient ? 1 : 0;
      if (c.in.size() > first + 2) {
        small.in.resize(first + 2);
        append(g, from_every_tier(small));
        if (each) g.push_back(wide(small));
      }
      if (divergence) {
        small.attrs.push_back({"log_target", "true"});
        append(g, from_every_tier(small));
      }
      // Beyond what binary32 has room for.
      for (const std::string_view value : {"1e-50", "1e50"}) {
        if (border.empty() || !each) continue;
        g.push_back(wide(c));
        g.back().attrs.push_back({border, value});
      }
      if (each) continue;
      for (operand& o : c.in) o.shape = {2, 0, 5};  // the sum or mean of nothing
      g.push_back(c);
    }
    all.push_back(std::move(g));
  }
  return all;
}

// Sums to places: few and many columns, lists that are short, cut into parts and empty, more targets than a block scans.
std::vector<group> scatter_calls(const subject& what) {
  const bool embedding = has(info_of(what.op).attrs, "rows"), each = what.op == op_id::scatter_add;
  const auto call = [&](std::int64_t outer, std::int64_t rows, std::int64_t places, std::int64_t inner, layout how) {
    test_call c{what.op, {}, how, {}};
    if (embedding) {
      c.in = {{{outer, places, inner}, how, what.in}, {{outer, places}, how, dtype::i64}};
      c.attrs = {{"rows", rows == 9 ? "9" : "20011"}};
    } else {
      c.in = {{{outer, rows, inner}, how, what.in},
              {each ? sizes{outer, places, inner} : sizes{places}, how, dtype::i64},
              {{outer, places, inner}, how, what.in}};
      c.attrs = {{"axis", "1"}};
    }
    return c;
  };
  std::vector<group> all;
  for (const std::int64_t inner : {5, 70}) {
    for (const layout how : {layout::contiguous, layout::spread}) {
      test_call c = call(3, 9, 40, inner, how);
      group g = from_every_tier(c);
      append(g, from_every_tier(wide(c)));
      if (embedding) {
        c.attrs.push_back({"padding_idx", "2"});
        c.attrs.push_back({"scale_grad_by_freq", "true"});
      } else {
        c.attrs.push_back({"alpha", "0.3"});
      }
      append(g, from_every_tier(c));
      c = call(1, 9, 4100, inner == 5 ? 3 : 37, how);
      append(g, from_every_tier(c));
      append(g, from_every_tier(wide(c)));
      all.push_back(std::move(g));
    }
  }
  const test_call many = call(1, 20011, 50, 1, layout::contiguous);
  all.push_back({many, wide(many), call(1, 9, 0, 3, layout::contiguous)});
  return all;
}

// Lines along the last axis and another one, short and long; of products along several, and of none.
std::vector<group> scan_calls(const subject& what) {
  const auto call = [&](const sizes& x, std::string_view axis, layout how) {
    return test_call{what.op, {{x, how, what.in}}, how, {{"axis", axis}}};
  };
  const bool several = has(info_of(what.op).attrs, "keepdim");
  const test_call small = call({3, 5, 7}, several ? "0,2" : "1", layout::spread);
  const test_call lines = call({35, 67}, "1", layout::contiguous);
  std::vector<group> all{from_every_tier(small), {lines, call({2, 1031}, "1", layout::contiguous)}};
  append(all.front(), from_every_tier(wide(small)));
  all.back().push_back(wide(lines));
  if (several) all.push_back({call({4, 0}, "1", layout::contiguous)});
  return all;
}

// Elements side by side and not, exponents of both types, for each element or for a column.
std::vector<group> exponent_calls(const subject& what) {
  group g;
  const std::vector<operand_info>& in = info_of(what.op).in;
  for (const dtype exponents : {dtype::i64, dtype::i32}) {
    for (const layout how : {layout::contiguous, layout::shifted, layout::spread}) {
      test_call c{what.op, {{{3, 5, 67}, how, what.in}}, how};
      if (in.size() > 1) c.in.push_back({how == layout::spread ? sizes{5, 1} : sizes{3, 5, 67}, how, exponents});
      g.push_back(c);
      g.push_back(wide(c));
    }
  }
  return {g};
}

// Of attention or its gradients: tiles with masks of both kinds and slopes.
template <class Call>
void add_masked_tiles(std::vector<group>& all, const Call& call, const subject& what) {
  for (const dtype mask : {dtype::boolean, what.in}) {
    group g;
    for (const std::int64_t size : {48, 104}) {
      test_call c = call(4, 45, 131, size + 16, size, layout::contiguous);
      c.attrs = {{"scale", "0.01"}};
      c.in.push_back({{45, 131}, layout::contiguous, mask});
      c.in.push_back({{4}, layout::contiguous, dtype::f32});
      g.push_back(c);
    }
    all.push_back(std::move(g));
  }
}

// Heads in groups, masks of both kinds, slopes, a window, with lse and without: few keys from every tier. Tiles of queries and keys: all keys,
// causality and a window, scores that they leave to others; few queries and many keys, whose parts are added up.
std::vector<group> attention_calls(const subject& what) {
  const auto call = [&](std::int64_t heads, std::int64_t queries, std::int64_t keys, std::int64_t size,
                        std::int64_t values, layout how) {
    return test_call{what.op,
                     {{{2, heads, queries, size}, how, what.in},
                      {{2, heads / 2, keys, size}, how, what.in},
                      {{2, heads / 2, keys, values}, how, what.in}},
                     how};
  };
  test_call masked = call(2, 3, 21, 7, 5, layout::spread);
  masked.in.push_back({{2, 3, 21}, layout::spread, dtype::boolean});
  masked.in.push_back({{2}, layout::spread, dtype::f32});
  masked.attrs = {{"causal", "true"}, {"bottom_right", "true"}, {"left", "11"}};
  test_call added = call(2, 2, 35, 33, 3, layout::contiguous);
  added.in.push_back({{2, 35}, layout::spread, what.in});
  added.attrs = {{"scale", "0.3"}, {"dropout", "0.25"}, {"seed", "1"}};
  added.optional_out = false;
  std::vector<group> all{from_every_tier(masked), from_every_tier(added)};
  for (const attribute_texts& attrs :
       {attribute_texts{{"scale", "0.01"}}, attribute_texts{{"scale", "0.01"}, {"dropout", "0.1"}},
        attribute_texts{{"scale", "0.01"}, {"causal", "true"}, {"left", "50"}},
        attribute_texts{{"scale", "1"}, {"bottom_right", "true"}, {"causal", "true"}}}) {
    group g;
    for (const std::int64_t size : {48, 104}) {
      for (test_call c : {call(4, 45, 131, size + 16, size, layout::contiguous),
                          call(4, 3, 1100, size + 16, size, layout::contiguous)}) {
        c.attrs = attrs;
        g.push_back(c);
        g.push_back(wide(c));
      }
    }
    all.push_back(std::move(g));
  }
  add_masked_tiles(all, call, what);
  return all;
}

// Gradients: heads in groups, masks of both kinds, slopes, a window, few queries and keys from every tier; more of both in blocks.
std::vector<group> attention_backward_calls(const subject& what) {
  const auto call = [&](std::int64_t heads, std::int64_t queries, std::int64_t keys, std::int64_t size,
                        std::int64_t values, layout how) {
    const sizes of_results{2, heads, queries, values};
    return test_call{what.op,
                     {{of_results, how, what.in},
                      {{2, heads, queries, size}, how, what.in},
                      {{2, heads / 2, keys, size}, how, what.in},
                      {{2, heads / 2, keys, values}, how, what.in},
                      {of_results, how, what.in},
                      {{2, heads, queries}, how, what.in == dtype::f64 ? dtype::f64 : dtype::f32}},
                     how};
  };
  test_call masked = call(2, 3, 21, 7, 5, layout::spread);
  masked.in.push_back({{2, 3, 21}, layout::spread, dtype::boolean});
  masked.in.push_back({{2}, layout::spread, dtype::f32});
  masked.attrs = {{"causal", "true"}, {"bottom_right", "true"}, {"left", "11"}};
  test_call added = call(2, 2, 35, 33, 3, layout::contiguous);
  added.in.push_back({{2, 35}, layout::spread, what.in});
  added.attrs = {{"scale", "0.3"}, {"dropout", "0.25"}, {"seed", "1"}};
  std::vector<group> all{from_every_tier(masked), from_every_tier(added)};
  for (const attribute_texts& attrs :
       {attribute_texts{{"scale", "0.01"}}, attribute_texts{{"scale", "0.01"}, {"dropout", "0.1"}},
        attribute_texts{{"scale", "0.01"}, {"causal", "true"}, {"left", "50"}}}) {
    group g;
    for (const std::int64_t size : {48, 104}) {
      test_call c = call(4, 45, 131, size + 16, size, layout::contiguous);
      c.attrs = attrs;
      g.push_back(c);
      g.push_back(wide(c));
    }
    all.push_back(std::move(g));
  }
  add_masked_tiles(all, call, what);
  return all;
}

// Losses at targets: each, their sum and mean, with weights and without; few samples and many.
std::vector<group> nll_calls(const subject& what) {
  std::vector<group> all;
  for (const std::string_view reduction : {"none", "sum", "mean"}) {
    for (const layout how : {layout::contiguous, layout::spread}) {
      group g;
      for (const bool weighted : {false, true}) {
        test_call c =
            call_at(what.op, {how == layout::spread ? 9 : 211, 7, 5}, how, {{"reduction", reduction}}, weighted);
        for (operand& o : c.in) o.how = how;
        append(g, from_every_tier(c));
        append(g, from_every_tier(wide(c)));
      }
      all.push_back(std::move(g));
    }
  }
  return all;
}

std::vector<group> structured_calls(const subject& what) {
  const op_info& op = info_of(what.op);
  switch (samples::record_of(what.op).family) {
    case ops::family::convert:
      return map_calls(what, nullptr);
    case ops::family::reduce:
      return in_other_format(has(op.attrs, "p")      ? vector_norm_calls(what)
                             : has(op.attrs, "axis") ? reduce_calls(what)
                                                     : dot_calls(what.in),
                             what);
    case ops::family::matmul:
      return matmul_calls(what.in);
    case ops::family::convolution:
      if (op.attrs.empty()) {  // a sum
        return of_format({{{what.op, {{is_3d(what.op) ? sizes{2, 3, 2, 5, 7} : sizes{2, 3, 5, 7}}}}}}, what);
      }
      return of_format(what.op == op_id::conv2d ? conv2d_calls(what.in) : own_conv_calls(what.op, what.in), what);
    case ops::family::pooling:
      return of_format(has(samples::forward_of(op).attrs, "kernel") ? pool_calls(what) : adaptive_pool_calls(what),
                       what);
    case ops::family::softmax:
      return in_other_format(of_format(row_calls(what), what), what);
    case ops::family::norm:
      if (what.in == dtype::f64 && has(op.attrs, "correction"))
        return reduce_calls(what);  // statistics (plan::spreads_of)
      return in_other_formats(of_format(norm_calls(what.op), what), what);
    case ops::family::random:
      return random_calls(what);
    case ops::family::optimizer:
      return op.in.size() == 1 ? list_calls(what) : step_calls(what);
    case ops::family::loss:
      return loss_calls(what);
    case ops::family::scatter:
      return scatter_calls(what);
    case ops::family::nll:
      return of_format(nll_calls(what), what);
    case ops::family::sequence:
      return sequence_calls(what);
    case ops::family::upsample:
      return of_format(has(samples::forward_of(op).attrs, "exact") ? upsample_calls(what) : interpolation_calls(what),
                       what);
    case ops::family::draw:
      return draw_calls(what);
    case ops::family::scan:
      return scan_calls(what);
    case ops::family::exponent:
      return exponent_calls(what);
    case ops::family::attention:
      return what.op == op_id::attention ? attention_calls(what) : attention_backward_calls(what);
  }
  return {};
}

std::vector<group> calls_of(const subject& what) {
  return ops::is_elementwise(what.op) ? map_calls(what, &ops::row_of(what.op)) : structured_calls(what);
}

// --------------------------------------------------------------------------------------------------------------
// operands

// Where a tensor lies in the memory of a call, which is the same on both sides.
struct placed {
  tensor_spec spec;
  sizes strides;
  std::size_t offset = 0;  // of element 0, in bytes

  std::size_t element(std::int64_t index) const {
    std::int64_t at = 0;
    for (int d = spec.shape.size() - 1; d >= 0; --d) {
      at += index % spec.shape[d] * strides[d];
      index /= spec.shape[d];
    }
    return offset + static_cast<std::size_t>(at * static_cast<std::int64_t>(size_of(spec.type)));
  }
};

// Hands out parts of the memory, with guard bytes around each.
class arena {
 public:
  placed place(const tensor_spec& spec, layout how, int number) {
    constexpr std::size_t guard = 64;
    constexpr std::size_t alignment = 256;
    placed p{spec, sizes(spec.shape), 0};
    const int rank = spec.shape.size();
    const auto bytes = static_cast<std::int64_t>(size_of(spec.type));
    std::int64_t next = how == layout::stepped ? 2 : 1;
    std::int64_t first = how == layout::shifted ? 1 + number : 0;
    for (int i = 0; i < rank; ++i) {
      // Innermost first; `spread` begins at an axis of its own and goes round.
      const int d = how == layout::spread   ? (rank - 1 - i + number * 2 + rank) % rank
                    : how == layout::turned ? i
                                            : rank - 1 - i;
      if (how == layout::spread) next += 1 + i % 2;
      p.strides[d] = next;
      next *= std::max<std::int64_t>(spec.shape[d], 1);
      if (how == layout::packs) next += 4;
    }
    if (how == layout::spread && rank > 0) {
      const int back = number % rank;
      first = (std::max<std::int64_t>(spec.shape[back], 1) - 1) * p.strides[back];
      p.strides[back] = -p.strides[back];
    }
    size_ = (size_ + guard + alignment - 1) / alignment * alignment;
    p.offset = size_ + static_cast<std::size_t>(first * bytes);
    size_ += static_cast<std::size_t>((next + first + 1) * bytes) + guard;
    return p;
  }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_ = 0;
};

// 64 bits that look random: the finalizer of MurmurHash3 (Appleby), after a multiplication.
std::uint64_t mixed(std::uint64_t x) {
  x = (x + 1) * 0x9e3779b97f4a7c15;
  x = (x ^ x >> 33) * 0xff51afd7ed558ccd;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53;
  return x ^ x >> 33;
}

// Numbers with a bias to what is hard: cancellation, ties, the borders of the format. An infinity or NaN would hide the
// rest of a sum or a row, so `tame` has none.
std::uint64_t value_of(dtype type, bool tame, std::uint64_t w, std::int64_t i) {
  const auto pick = static_cast<unsigned>(w >> 56);
  if (type == dtype::i64) return pick < 16 ? static_cast<std::uint64_t>(-100) : w % 7;  // targets
  if (type == dtype::boolean) return pick < 128 ? 0 : w;
  if (type == dtype::f64 && tame) {  // exponents of -12 to 3, in pairs of opposite sign; zeros, and numbers of few bits
    if (pick < 16) return (w & 1) << 63;
    const std::uint64_t fraction = pick < 96 ? w & 0xfff0000000000 : w & 0xfffffffffffff;
    return static_cast<std::uint64_t>(i & 1) << 63 | std::uint64_t{1011 + (pick & 15u)} << 52 | fraction;
  }
  // Every pattern of the narrow formats and of f64 is a number or a NaN; those below 2 are tame.
  if (type != dtype::f32) return tame && (type == dtype::f16 || type == dtype::bf16) ? w & 0xbfff : w;
  const auto bits = static_cast<std::uint32_t>(w);
  constexpr std::uint32_t borders[] = {0x00000000, 0x80000000, 0x00000001, 0x807fffff, 0x3f800000, 0xbf800000,
                                       0x3f000001, 0x4b800000, 0xcb800000, 0x7f800000, 0xff800000, 0x7fc00000};
  if (pick < 48) return borders[pick % (tame ? 9u : 12u)];
  // Exponents of -12 to 3; in pairs of opposite sign, so that sums cancel.
  const std::uint32_t exponent = 115 + (pick & 15u);
  return (static_cast<std::uint32_t>(i & 1) << 31) | exponent << 23 | (pick < 96 ? bits & 0x7ff000u : bits & 0x7fffffu);
}

// Of conversions, and integers that are numbers: f32 as above, or any pattern; integers of every length, and next to where they are saturated.
std::uint64_t any_value(dtype type, std::uint64_t w, std::int64_t i) {
  const auto pick = static_cast<unsigned>(w >> 56);
  const bool integers = type == dtype::i64 || type == dtype::i32;
  if (!integers) return type == dtype::f32 && pick >= 128 ? w : value_of(type, false, w, i);
  const std::uint64_t length = w >> (type == dtype::i64 ? pick % 64 : 32 + pick % 32);
  return pick % 8 != 0 ? ((w & 1) != 0 ? length : 0 - length)
                       : (std::uint64_t{1} << (w & 2 ? 31 : 63)) + pick / 8 % 5 - 2;
}

void fill(std::vector<std::byte>& memory, const placed& p, op_id op, std::size_t operand_number) {
  const bool elementwise = ops::is_elementwise(op);
  const std::span<const ops::operand> operands =
      elementwise ? std::span<const ops::operand>() : samples::record_of(op).in;
  const ops::operand operand = elementwise ? ops::operand{} : operands[operand_number % operands.size()];
  const bool converts = !elementwise && samples::record_of(op).family == ops::family::convert;
  const bool any = converts || (!ops::is_floating(p.spec.type) && (operand.types & ops::FLOATS) != 0);
  const ops::domain domain = operand.domain;
  const std::int64_t count = element_count(p.spec.shape);
  std::vector<std::uint32_t> known;
  if (elementwise && p.spec.type == dtype::f32) {
    for (const known_answer& k : known_answers(op)) known.push_back(k.in[operand_number]);
  }
  const std::size_t bytes = size_of(p.spec.type);
  std::byte* at = memory.data() + p.offset;
  sizes index = p.spec.shape;
  std::fill(index.begin(), index.end(), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t random = mixed(operand_number << 32 | static_cast<std::uint64_t>(i));
    std::uint64_t bits = static_cast<std::size_t>(i) < known.size() ? known[static_cast<std::size_t>(i)]
                         : any                                      ? any_value(p.spec.type, random, i)
                                                                    : value_of(p.spec.type, !elementwise, random, i);
    const ops::float_traits& f = ops::traits_of(p.spec.type).floating;
    const std::uint64_t sign = std::uint64_t{1} << (8 * bytes - 1);
    if (domain == ops::domain::indices) bits = random % 7;  // below 9 in every call
    if (domain == ops::domain::exponents) bits = (random >> 40) % 8 == 0 ? random : random % 601 - 300;
    if (domain == ops::domain::weights) bits = (bits & ~sign) | (i == 0 ? 1 : 0);  // the first not 0
    if (domain == ops::domain::scores && p.spec.type == dtype::f32)                // exponents of -12 to 3
      bits = (bits & 0x807fffff) | (115 + (random >> 56 & 15)) << 23;
    // Of -inf the weight is 0, not a small one.
    if (domain == ops::domain::logarithms && (random >> 40) % 8 == 0) {
      bits = sign | (f.largest + 1);
    }
    if (domain == ops::domain::probabilities) {
      const std::uint64_t one = static_cast<std::uint64_t>(1 - f.emin) << (f.precision - 1);
      bits = (bits & ~sign) % (one + 1);
    }
    std::memcpy(at, &bits, bytes);  // little-endian
    for (int d = index.size() - 1; d >= 0; --d) {
      at += p.strides[d] * static_cast<std::int64_t>(bytes);
      if (++index[d] < p.spec.shape[d]) break;
      at -= index[d] * p.strides[d] * static_cast<std::int64_t>(bytes);
      index[d] = 0;
    }
  }
}

std::string hex(const std::byte* at, std::size_t bytes) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, bytes);
  char text[32];
  std::snprintf(text, sizeof text, "0x%0*llx", static_cast<int>(2 * bytes), static_cast<unsigned long long>(bits));
  return text;
}

std::string difference(const std::vector<std::byte>& expected, const std::vector<std::byte>& got,
                       const std::vector<placed>& out) {
  for (const placed& p : out) {
    const std::size_t bytes = size_of(p.spec.type);
    for (std::int64_t i = 0; i < element_count(p.spec.shape); ++i) {
      const std::size_t at = p.element(i);
      if (std::memcmp(expected.data() + at, got.data() + at, bytes) == 0) continue;
      return "element " + std::to_string(i) + " of shape " + to_string(p.spec.shape) + ", strides " +
             to_string(p.strides) + " is " + hex(got.data() + at, bytes) + ", on the CPU " +
             hex(expected.data() + at, bytes);
    }
  }
  return "memory around the outputs was written";
}

// Where no operand is read or written.
std::byte* anywhere() { return reinterpret_cast<std::byte*>(std::uintptr_t{1} << 20); }

// A call and where its operands lie.
class placed_call {
 public:
  placed_call(const test_call& t) : op_(info_of(t.op)), test_(t) {
    for (const auto& [name, text] : t.attrs) attrs_.push_back(parse_attribute(op_, name, text));
    arena places;
    for (std::size_t i = 0; i < t.in.size(); ++i) {
      // Without a shape an optional tensor is absent; any other is a single element.
      present_.push_back(!op_.in[i % op_.in.size()].optional || !t.in[i].shape.empty() || t.in[i].number);
      in_.push_back(present_[i] ? places.place({t.in[i].type, t.in[i].shape}, t.in[i].how, static_cast<int>(i))
                                : placed{});
    }
    for (const tensor_spec& s : infer(op_, inputs(anywhere(), {}), attrs_)) {
      out_.push_back(places.place(s, t.out, static_cast<int>(in_.size() + out_.size())));
    }
    bytes_ = places.size() + 256;
  }

  std::size_t bytes() const { return bytes_; }
  std::vector<std::byte> contents() const {
    std::vector<std::byte> memory(bytes_, std::byte{0xa5});
    for (std::size_t i = 0; i < in_.size(); ++i) {
      if (present_[i]) fill(memory, in_[i], test_.op, i);
    }
    return memory;
  }
  void run(context& c, std::byte* memory) const {
    std::vector<tensor_view> results;
    for (const placed& p : out_) {
      const bool wanted = test_.optional_out || results.empty();
      results.push_back(wanted ? tensor_view(memory + p.offset, p.spec.type, p.spec.shape, p.strides, c.where())
                               : tensor_view());
    }
    call(c, op_, inputs(memory, c.where()), results, attrs_);
  }
  // Of what is to be tested.
  void run_tested(context& tested, std::byte* memory, bool dry) const {
    context::impl& c = context_access::of(tested);
    kernel_choice choice = test_.choice;
    choice.dry = dry;
    c.self_test = &choice;
    c.options.first_tier = test_.first_tier;
    run(tested, memory);
    c.self_test = nullptr;
  }
  std::string difference(const std::vector<std::byte>& expected, const std::vector<std::byte>& got) const {
    return std::string(op_.name) + ": " + dispatch::difference(expected, got, out_);
  }

 private:
  std::vector<const_tensor_view> inputs(std::byte* memory, const device& where) const {
    std::vector<const_tensor_view> v;
    for (std::size_t i = 0; i < in_.size(); ++i) {
      const placed& p = in_[i];
      v.push_back(present_[i] ? const_tensor_view(memory + p.offset, p.spec.type, p.spec.shape, p.strides, where)
                              : const_tensor_view());
    }
    return v;
  }

  const op_info& op_;
  const test_call& test_;
  attributes attrs_;
  std::vector<bool> present_;
  std::vector<placed> in_, out_;
  std::size_t bytes_ = 0;
};

std::string run_call(context& tested, context& cpu, const test_call& t) {
  const placed_call c(t);
  std::vector<std::byte> expected = c.contents();
  tensor bytes(tested, dtype::boolean, {c.bytes()});
  auto* const memory = static_cast<std::byte*>(bytes.view().data());
  tested.copy(memory, expected.data(), c.bytes());
  c.run(cpu, expected.data());
  c.run_tested(tested, memory, false);
  std::vector<std::byte> got(c.bytes());
  tested.copy(got.data(), memory, c.bytes());
  return got == expected ? std::string() : c.difference(expected, got);
}

}  // namespace

std::vector<subject> kernel_test_subjects() {
  std::vector<subject> all;
  for (const op_info& op : operations()) {
    const op_id id = id_of(op);
    if (ops::is_elementwise(id)) {
      const ops::elementwise_row& row = ops::row_of(id);
      for (const dtype format : op.in[static_cast<std::size_t>(row.leading())].types) {
        all.push_back({id, format, row.result_type(format)});
        for (const dtype to : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64}) {
          if (row.has_any_float() && to != format) all.push_back({id, format, to});
        }
      }
      continue;
    }
    const std::vector<dtype> in = op.in.empty() ? std::vector{dtype::f32} : op.in[0].types;
    for (const dtype from : in) {
      if (op.family == "reduce" || op.family == "scan") {  // what the result is follows
        const std::vector<const_tensor_view> one(op.in.size(), {anywhere(), from, {1}});
        all.push_back({id, from, infer(op, one, {})[0].type});
        // All other formats have one kernel.
        if (gives_other_format(op, from)) all.push_back({id, from, from == dtype::f64 ? dtype::f32 : dtype::f64});
        continue;
      }
      for (const dtype to : op.out[0].types) {
        // Operations on numbers have one format, but for indices.
        const bool one_format = op.family != "convert" && !op.in.empty() && to != dtype::i64;
        if (!one_format || from == to || gives_other_format(op, from)) all.push_back({id, from, to});
      }
    }
  }
  return all;
}

context& kernel_test_context(const device& where, void* stream) {
  { const context cpu({.threads = 1}); }
  auto fresh = std::make_unique<context>(context_options{.where = where, .stream = stream});
  constexpr std::size_t bytes = std::size_t{8} << 20;
  fresh->deallocate(fresh->allocate(bytes), bytes);
  fresh->synchronize();
  return *fresh.release();
}

std::size_t kernel_test_groups(const subject& what) { return calls_of(what).size(); }

std::string run_kernel_test_group(context& tested, const subject& what, std::size_t number) {
  context cpu({.threads = 1});
  const std::vector<group> groups = calls_of(what);
  for (const test_call& t : groups[number]) {
    if (std::string text = run_call(tested, cpu, t); !text.empty()) return text;
  }
  return {};
}

void plan_kernel_test_group(context& tested, const subject& what, std::size_t number) {
  const std::vector<group> groups = calls_of(what);
  for (const test_call& t : groups[number]) placed_call(t).run_tested(tested, anywhere(), true);
}

}  // namespace repdl::dispatch
