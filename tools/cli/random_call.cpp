#include "tools/cli/random_call.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "librepdl/ops/structured.hpp"
#include "reference/attributes.hpp"
#include "reference/digests.hpp"
#include "reference/layout.hpp"
#include "reference/structured/windows.hpp"
#include "tools/cli/arrays.hpp"

namespace repdl::tools {
namespace {

using reference::absent_shape;
using reference::array;
using reference::count_of;
using reference::digest_case;
using reference::layout;
using reference::placement;
using reference::sample_class;
using reference::shape_list;
using reference::word_stream;
using enum reference::sample_class;
using integers = std::vector<std::int64_t>;

constexpr dtype floats[] = {dtype::f16, dtype::bf16, dtype::f32, dtype::f64};
constexpr std::string_view size_1 = "size 1";

/// One call in the making. Never two draws in one expression whose operands the language may evaluate in either order.
class maker {
 public:
  maker(const op_info& op, word_stream& w) : op_(op), w_(w) {
    c_.op = op.name;
    grouped_ = one_in(3);
  }

  random_call make() {
    draw_operands();
    c_.kind = draw_class();
    c_.seed = w_.next64();
    std::vector<array> in = values();
    random_call r{.call = {.op = &op_, .attrs = c_.attrs, .memory = {}, .in = {}, .out = {}, .groups = groups_},
                  .kind = c_.kind,
                  .work = work_};
    place_all(in, r.call);
    if (r.work == 0) {
      for (const auto& t : r.call.memory.tensors()) r.work = std::max(r.work, element_count(t.spec.shape));
    }
    return r;
  }

 private:
  // ---- small draws

  bool one_in(std::uint32_t n) { return w_.below(n) == 0; }
  std::int64_t from_to(std::int64_t lo, std::int64_t hi) {
    return lo + static_cast<std::int64_t>(w_.below(static_cast<std::uint32_t>(hi - lo + 1)));
  }
  /// 1 .. 2^bits, every magnitude as likely.
  std::int64_t magnitude(int bits) {
    const int b = w_.between(0, bits);
    return from_to(std::max<std::int64_t>(1, (std::int64_t{1} << b) / 2), std::int64_t{1} << b);
  }
  template <class T>
  T any_of(std::initializer_list<T> list) {
    return list.begin()[w_.below(static_cast<std::uint32_t>(list.size()))];
  }
  /// How many elements: mostly few, at times enough for several blocks, chunks and long rows.
  std::int64_t count() {
    const std::uint32_t u = w_.below(100);
    return magnitude(u < 86 ? 11 : u < 97 ? 14 : 17);
  }
  int rank(int least) {
    constexpr int ranks[] = {0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7, 8, 8};
    return std::max(least, ranks[w_.below(20)]);
  }
  /// A real parameter: 0 or of magnitude in [2^-200, 2^200].
  double real(bool may_be_negative) {
    const bool negative = w_.flip() && may_be_negative;
    const std::uint32_t u = w_.below(10);
    const double fraction = 1 + static_cast<double>(w_.next64() >> 12) * 0x1p-52;
    const int e = u < 6 ? w_.between(-12, 6) : u < 8 ? w_.between(-200, 199) : 0;
    const double v = u == 9 ? 0 : u == 8 ? 1 : std::ldexp(fraction, e);
    return negative ? -v : v;
  }
  double probability() {
    const double u = static_cast<double>(w_.next64() >> 11) * 0x1p-53;
    return one_in(2) ? u : any_of({0.0, 1.0, 0.5, 0.1, 0x1p-32, 1 - 0x1p-53, 0x1p-1000});
  }

  // ---- shapes

  /// About `elements` of them, mostly small odd sizes in all axes and one or two that take the rest; at times a 0.
  shape_list shape(int rank, std::int64_t elements) {
    shape_list s;
    std::int64_t have = 1;
    for (int i = 0; i < rank; ++i) {
      const std::uint32_t u = w_.below(16);
      s.push_back(u < 2 ? 1 : u < 9 ? 2 : u < 15 ? 3 : 5);
      have *= s.back();
    }
    if (rank == 0) return s;
    for (int times = w_.between(1, 2); times > 0; --times) {
      std::int64_t& n = w_.flip() ? s.back() : s[w_.below(static_cast<std::uint32_t>(rank))];
      have /= n;
      n = std::max(n, have >= elements ? 1 : times == 2 ? magnitude(4) : elements / have);
      have *= n;
    }
    if (grouped_) s.back() = (s.back() + 3) / 4 * 4;
    if (one_in(50)) s[w_.below(static_cast<std::uint32_t>(rank))] = 0;
    return s;
  }
  shape_list any_shape(int least_rank = 0) {
    const int r = rank(least_rank);
    return shape(r, count());
  }
  /// Broadcasts to s: some axes of size 1, some leading ones dropped.
  shape_list smaller(shape_list s, std::size_t keep) {
    const std::size_t free = s.size() - keep;
    for (std::size_t i = 0; i < free; ++i) {
      if (one_in(3)) s[i] = 1;
    }
    if (free > 0 && one_in(3)) {
      s.erase(s.begin(), s.begin() + static_cast<std::ptrdiff_t>(w_.below(static_cast<std::uint32_t>(free) + 1)));
    }
    return s;
  }

  // ---- operands and attributes

  void add(std::string name, attribute_value v) { c_.attrs.push_back({std::move(name), std::move(v)}); }
  void add_input(shape_list s, dtype t = dtype::f32) {
    c_.shapes.push_back(std::move(s));
    c_.formats.push_back(t);
  }
  std::string format() { return std::string(name_of(floats[w_.below(4)])); }
  dtype narrow_format() { return floats[w_.below(3)]; }

  void draw_operands() {
    if (op_.family == "elementwise") return elementwise();
    ops::for_each_structured([&]<class Op>() {
      if (Op::name == op_.name) draw<Op>();
    });
    if (op_.family == "softmax" || op_.family == "norm") in_one_format();
  }
  /// The operands that are not binary32 in every call.
  void in_one_format() {
    const dtype type = narrow_format();
    for (std::size_t i = 0; i < c_.formats.size(); ++i) {
      const std::vector<dtype>& types = op_.in[i].types;
      if (std::find(types.begin(), types.end(), type) != types.end()) c_.formats[i] = type;
    }
    if (type == dtype::f32 || op_.family != "norm") return;
    const bool wide_factors = one_in(3), wide_running = !one_in(3);
    for (std::size_t i = 0; i < c_.formats.size(); ++i) {
      if (op_.in[i].optional ? wide_factors : wide_running && op_.in[i].name.starts_with("running_"))
        c_.formats[i] = dtype::f32;
    }
  }

  /// How each structured operation is drawn; one without a case does not compile.
  template <class Op>
  void draw() {
    using ops::is_one_of, ops::op_id;
    if constexpr (Op::id == op_id::convert) {
      convert();
    } else if constexpr (Op::id == op_id::dot) {
      dot();
    } else if constexpr (Op::id == op_id::vector_norm) {
      vector_norm();
    } else if constexpr (is_one_of<Op, op_id::sum, op_id::mean, op_id::sum_squares>) {
      reduce(false);
    } else if constexpr (Op::id == op_id::prelu_weight_backward) {
      reduce(false);
      add_input(c_.shapes[0], c_.formats[0]);
    } else if constexpr (is_one_of<Op, op_id::max, op_id::min, op_id::argmax, op_id::argmin>) {
      reduce(true, floats[w_.below(4)]);
    } else if constexpr (Op::id == op_id::matmul) {
      matmul();
    } else if constexpr (Op::id == op_id::permutation) {
      add("n", one_in(20) ? std::int64_t{w_.below(3)} : count());
      generator();
    } else if constexpr (is_one_of<Op, op_id::dropout, op_id::dropout_backward>) {
      add_input(any_shape());
      add("p", probability());
      generator();
    } else if constexpr (Op::id == op_id::uniform) {
      random_reals("low", "high", true);
    } else if constexpr (Op::id == op_id::normal) {
      random_reals("mean", "stddev", false);
      work_ = 16 * count_of(std::get<integers>(c_.attrs[0].value));
    } else if constexpr (Op::id == op_id::exponential) {
      random_shape();
      add("dtype", format());
      const double rate = real(false);
      add("rate", rate == 0 ? 1.0 : rate);
      work_ = 8 * count_of(std::get<integers>(c_.attrs[0].value));
    } else if constexpr (Op::row.kind == ops::family::draw) {
      draws();
    } else if constexpr (Op::row.kind == ops::family::upsample) {
      upsampling(Op::id == op_id::upsample_nearest2d_backward);
    } else if constexpr (Op::row.kind == ops::family::sequence) {
      add("start", real(true));
      add(Op::id == op_id::linspace ? "end" : "step", real(true));
      add("count", one_in(20) ? std::int64_t{w_.below(3)} : count());
      add("dtype", format());
    } else if constexpr (Op::id == op_id::bernoulli) {
      random_shape();
      add("p", probability());
    } else if constexpr (Op::id == op_id::randint) {
      random_integers();
    } else if constexpr (is_one_of<Op, op_id::conv2d, op_id::conv2d_grad_input, op_id::conv2d_grad_weight,
                                   op_id::conv2d_grad_bias>) {
      convolution(Op::id);
    } else if constexpr (Op::name.starts_with("adaptive_")) {
      adaptive_pooling(Op::id);
    } else if constexpr (Op::row.kind == ops::family::pooling) {
      pooling(Op::id);
    } else if constexpr (is_one_of<Op, op_id::softmax, op_id::log_softmax, op_id::softmax_backward,
                                   op_id::log_softmax_backward>) {
      rows();
    } else if constexpr (is_one_of<Op, op_id::logsumexp, op_id::logsumexp_backward>) {
      logsumexp(Op::id == op_id::logsumexp_backward);
    } else if constexpr (Op::name.starts_with("cross_entropy")) {
      cross_entropy(ops::is_gradient<Op>, Op::name.starts_with("cross_entropy_prob"));
    } else if constexpr (Op::id == op_id::sgd) {
      sgd();
    } else if constexpr (Op::id == op_id::adamw) {
      adamw();
    } else if constexpr (is_one_of<Op, op_id::total_norm, op_id::clip_grad_norm>) {
      list(Op::id == op_id::clip_grad_norm);
    } else if constexpr (is_one_of<Op, op_id::layer_norm, op_id::layer_norm_backward, op_id::layer_norm_weight_backward,
                                   op_id::rms_norm, op_id::rms_norm_backward, op_id::rms_norm_weight_backward>) {
      norm_of_axes();
    } else if constexpr (is_one_of<Op, op_id::group_norm, op_id::group_norm_backward,
                                   op_id::group_norm_weight_backward>) {
      group_norm();
    } else if constexpr (is_one_of<Op, op_id::batch_norm, op_id::batch_norm_backward, op_id::batch_norm_weight_backward,
                                   op_id::batch_norm_running, op_id::batch_norm_inference,
                                   op_id::batch_norm_inference_backward, op_id::batch_norm_inference_weight_backward>) {
      batch_norm();
    } else if constexpr (ops::is_statistic<Op>) {
      variance();
    } else if constexpr (Op::row.kind == ops::family::loss) {
      loss(ops::is_gradient<Op>);
    } else if constexpr (Op::id == op_id::embedding_backward) {
      embedding_backward();
    } else if constexpr (Op::row.kind == ops::family::scatter) {
      scatter(Op::id == op_id::scatter_add);
    } else if constexpr (Op::row.kind == ops::family::nll) {
      nll(ops::is_gradient<Op>);
    } else {
      static_assert(ops::has_no_case<Op>, "how is a call of this operation drawn?");
    }
  }

  void elementwise() {
    const shape_list full = any_shape();
    const std::size_t arity = op_.in.size();
    const bool broadcast = arity > 1 && one_in(2);
    const ops::elementwise_row& row = *reference::elementwise_named(op_.name);
    const std::vector<dtype>& formats = op_.in[static_cast<std::size_t>(row.leading())].types;
    const dtype t = formats[w_.below(static_cast<std::uint32_t>(formats.size()))];
    for (std::size_t i = 0; i < arity; ++i) {
      add_input(broadcast && one_in(2) ? smaller(full, 0) : full, row.operand_type(static_cast<int>(i), t));
    }
    c_.attrs = reference::sample_options(row, t, w_, coefficient);
    if (row.has_any_float() && w_.flip()) add("dtype", format());
  }
  /// Of magnitude in [2^-200, 2^200], mostly about 1; sometimes with few bits, and 0.
  static double coefficient(word_stream& w) {
    if (w.below(16) == 0) return 0;
    const std::uint64_t exponent = w.below(8) == 0 ? 823 + w.below(400) : 1015 + w.below(16);
    const std::uint64_t mask = w.below(3) == 0 ? 0x800c000000000000 : 0x800fffffffffffff;
    return std::bit_cast<double>((w.next64() & mask) | exponent << 52);
  }

  void convert() {
    add_input(any_shape(), every_type[w_.below(std::size(every_type))]);
    add("dtype", std::string(name_of(every_type[w_.below(std::size(every_type))])));
  }

  void dot() {
    const std::int64_t n = one_in(30) ? 0 : count();
    const dtype t = narrow_format();
    add_input({n}, t);
    add_input({n}, t);
    work_ = n;
  }

  integers some_axes(std::size_t rank) {
    integers axes;
    for (std::size_t i = 0; i < rank; ++i) {
      if (!w_.flip()) continue;
      const auto axis = static_cast<std::int64_t>(i);
      axes.push_back(w_.flip() ? axis : axis - static_cast<std::int64_t>(rank));
    }
    if (axes.size() > 1 && w_.flip()) std::swap(axes.front(), axes.back());
    return axes;
  }

  /// At times makes of s a few rows of 1025 to 8192 elements: beyond the registers of a warp, not yet cut into chunks.
  void lengthen(shape_list& s, const std::vector<bool>& reduced) {
    const auto along = std::count(reduced.begin(), reduced.end(), true);
    if (!one_in(6) || along == 0 || count_of(s) == 0) return;
    std::int64_t rows = 1, length = 1, nth = from_to(0, along - 1);
    std::size_t long_axis = 0;
    for (std::size_t i = 0; i < s.size(); ++i) {
      if (reduced[i] && nth-- == 0) {
        long_axis = i;
        continue;
      }
      std::int64_t& have = reduced[i] ? length : rows;
      s[i] = std::min<std::int64_t>(s[i], have < 4 ? 3 : 1);
      have *= s[i];
    }
    s[long_axis] = (from_to(1025, 8192) + length - 1) / length;
  }

  /// Draws the attributes of a reduction of s, and returns the result's shape.
  shape_list reduction_of(shape_list& s, bool needs_one) {
    std::vector<bool> reduced(s.size(), true);
    if (!one_in(4)) {
      const integers axes = some_axes(s.size());
      std::fill(reduced.begin(), reduced.end(), false);
      for (const std::int64_t a : axes) reduced[static_cast<std::size_t>(a < 0 ? a + std::ssize(s) : a)] = true;
      add("axis", axes);
    }
    if (op_.family == "softmax" || op_.family == "norm") lengthen(s, reduced);
    const bool keep = w_.flip();
    if (keep || w_.flip()) add("keepdim", keep);
    shape_list result;
    for (std::size_t i = 0; i < s.size(); ++i) {
      if (reduced[i] && needs_one) s[i] = std::max<std::int64_t>(s[i], 1);
      if (!reduced[i]) result.push_back(s[i]);
      if (reduced[i] && keep) result.push_back(1);
    }
    return result;
  }

  void reduce(bool needs_one) { reduce(needs_one, narrow_format()); }
  void reduce(bool needs_one, dtype t) {
    shape_list s = any_shape();
    reduction_of(s, needs_one);
    add_input(s, t);
  }

  void vector_norm() {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const double p = any_of({1.0, 2.0, 2.0, infinity, -infinity});
    if (p != 2 || w_.flip()) add("p", p);
    reduce(std::isinf(p));
  }

  void matmul() {
    const int batch_axes = std::max(0, rank(2) - 2);
    shape_list batch = shape(batch_axes, magnitude(4));
    grouped_ = grouped_ && w_.flip();
    const int bits = one_in(20) ? 8 : 6;
    std::int64_t m = magnitude(bits), n = magnitude(bits), k = one_in(4) ? magnitude(11) : magnitude(bits);
    if (one_in(30)) k = w_.flip() ? 0 : 1;
    if (one_in(60)) (w_.flip() ? m : n) = 0;
    const std::int64_t most = one_in(25) ? 1 << 23 : 1 << 18;
    while (count_of(batch) * m * n * std::max<std::int64_t>(k, 1) > most) {
      std::int64_t& largest = k >= m && k >= n ? k : m >= n ? m : n;
      if (largest <= 4) break;
      largest /= 2;
    }
    if (grouped_) {
      for (std::int64_t* v : {&m, &n, &k}) *v = (*v + 3) / 4 * 4;
    }
    const bool ta = w_.flip(), tb = w_.flip();
    const auto with = [](shape_list s, std::int64_t rows, std::int64_t columns) {
      s.insert(s.end(), {rows, columns});
      return s;
    };
    const std::uint32_t which = w_.below(4);
    const shape_list a_batch = which == 0 ? smaller(batch, 0) : batch;
    const shape_list b_batch = which == 1 ? smaller(batch, 0) : which == 2 ? shape_list{} : batch;
    const bool chain = one_in(4);
    const dtype type = chain ? dtype::f32 : narrow_format();
    add_input(ta ? with(a_batch, k, m) : with(a_batch, m, k), type);
    add_input(tb ? with(b_batch, n, k) : with(b_batch, k, n), type);
    if (one_in(3)) add_input(w_.flip() ? shape_list{n} : smaller(with(batch, m, n), 0), type);
    if (ta || w_.flip()) add("transpose_a", ta);
    if (tb || w_.flip()) add("transpose_b", tb);
    accumulate(chain);
    if (!chain && one_in(3)) add("alpha", real(true));
    if (!chain && one_in(3)) add("beta", real(true));
    work_ = count_of(batch) * m * n * k;
  }

  void accumulate(bool chain) {
    if (chain || w_.flip()) add("accumulate", std::string(chain ? "fma_chain" : "exact"));
  }

  void generator() {
    add("seed", static_cast<std::int64_t>(w_.next64()));
    add("stream", static_cast<std::int64_t>(w_.flip() ? w_.next64() : w_.below(4)));
  }

  void random_shape() {
    add("shape", any_shape());
    generator();
  }

  void random_reals(const char* first, const char* second, bool second_may_be_negative) {
    random_shape();
    add("dtype", format());
    add(first, real(true));
    add(second, real(second_may_be_negative));
  }

  void random_integers() {
    random_shape();
    std::int64_t low = static_cast<std::int64_t>(w_.next64()), high = static_cast<std::int64_t>(w_.next64());
    if (w_.flip()) {
      low = from_to(-20, 20);
      high = low + from_to(1, 1000);
    }
    if (low > high) std::swap(low, high);
    if (low == high) low = INT64_MIN;
    add("low", low);
    add("high", high);
  }

  integers draw_padding(std::int64_t most) {
    if (one_in(3)) return {0, 0, 0, 0};
    const integers p{from_to(0, most), from_to(0, most), from_to(0, most), from_to(0, most)};
    if (one_in(4)) return {p[0]};
    if (one_in(4)) return {p[0], p[1]};
    return p;
  }

  struct geometry {
    std::int64_t h, w, oh, ow;
  };
  /// Image sizes for the windows drawn so far: at least one window along each axis.
  geometry image_for(reference::extent k, std::int64_t most, reference::extent default_stride) {
    const reference::windows win(k, c_.attrs, default_stride);
    const auto along = [&](std::int64_t reach, std::int64_t padded) {
      const std::int64_t least = std::max<std::int64_t>(1, reach - padded);
      return least + from_to(0, most);
    };
    const std::int64_t h = along(win.dilation.h * (k.h - 1) + 1, win.top + win.bottom);
    const std::int64_t w = along(win.dilation.w * (k.w - 1) + 1, win.left + win.right);
    const reference::extent results = win.results({h, w});
    return {h, w, results.h, results.w};
  }

  void convolution(ops::op_id op) {
    std::int64_t n = from_to(1, 3);
    const std::int64_t groups = one_in(2) ? 1 : from_to(2, 4);
    std::int64_t c = magnitude(one_in(6) ? 6 : 3), o = magnitude(one_in(6) ? 6 : 3);
    if (one_in(6)) c = o = 1;
    const std::int64_t most = one_in(8) ? 40 : 12;
    if (one_in(60)) (w_.flip() ? n : c) = 0;
    if (op == ops::op_id::conv2d_grad_bias) {
      shape_list s{n, groups * o, from_to(0, most), from_to(1, most)};
      add_input(std::move(s));
      work_ = count_of(c_.shapes[0]);
      return;
    }
    const reference::extent k{from_to(1, one_in(6) ? 7 : 3), from_to(1, one_in(6) ? 7 : 3)};
    const std::int64_t largest_stride = one_in(2) ? 1 : 3;
    integers stride{from_to(1, largest_stride), from_to(1, largest_stride)};
    const bool square = one_in(3);
    if (square) stride[1] = stride[0];
    add("stride", square && w_.flip() ? integers{stride[0]} : stride);
    add("padding", draw_padding(std::max(k.h, k.w)));
    const std::int64_t largest_dilation = one_in(2) ? 1 : 3;
    integers dilation{from_to(1, largest_dilation), from_to(1, largest_dilation)};
    add("dilation", dilation);
    if (groups > 1 || w_.flip()) add("groups", groups);
    geometry g = image_for(k, most, {1, 1});
    const std::int64_t limit = one_in(25) ? 1 << 23 : 1 << 18;
    const auto products = [&] { return n * groups * o * g.oh * g.ow * c * k.h * k.w; };
    while (products() > limit && (c > 1 || o > 1)) (c >= o ? c : o) /= 2;
    work_ = products();
    const shape_list image{n, groups * c, g.h, g.w}, kernel{groups * o, c, k.h, k.w}, result{n, groups * o, g.oh, g.ow};
    const bool forward = op == ops::op_id::conv2d, grad_input = op == ops::op_id::conv2d_grad_input;
    add_input(forward ? image : result);
    add_input(forward || grad_input ? kernel : image);
    if (forward && one_in(3)) add_input({groups * o});
    accumulate(one_in(4));
    if (grad_input) add("size", integers{g.h, g.w});
    if (!forward && !grad_input) add("kernel", integers{k.h, k.w});
  }

  void pooling(ops::op_id op) {
    const bool max_backward = op == ops::op_id::max_pool2d_backward,
               avg_backward = op == ops::op_id::avg_pool2d_backward;
    const bool max = op == ops::op_id::max_pool2d || op == ops::op_id::max_pool2d_with_indices || max_backward;
    std::int64_t n = from_to(1, 3), c = magnitude(4);
    if (one_in(60)) (w_.flip() ? n : c) = 0;
    const std::int64_t largest = one_in(6) ? 9 : 3;
    const reference::extent k{from_to(1, largest), from_to(1, largest)};
    add("kernel", integers{k.h, k.w});
    if (!one_in(3)) {
      const std::int64_t most = one_in(2) ? 2 : 5;
      add("stride", integers{from_to(1, most), from_to(1, most)});
    }
    bool dilated = false;
    if (max && one_in(2)) {
      integers dilation{from_to(1, 3), from_to(1, 3)};
      dilated = dilation[0] > 1 || dilation[1] > 1;
      add("dilation", dilation);
    }
    // Every window of max_pool2d has an element of the image: in front of a window of taps side by side fewer than k.
    if (!max) {
      add("padding", draw_padding(std::max(k.h, k.w)));
    } else if (!dilated) {
      add("padding", draw_padding(std::min(k.h, k.w) - 1));
    }
    if (!max && w_.flip()) add("count_include_pad", w_.flip());
    if (one_in(3)) add("ceil_mode", w_.flip());
    if (!max && one_in(4)) add("divisor_override", any_of<std::int64_t>({0, 1, -1, 3, -4, 7, INT32_MAX, -INT32_MAX}));
    const dtype type = narrow_format();
    const geometry g = image_for(k, one_in(8) ? 60 : 12, k);
    const shape_list image{n, c, g.h, g.w}, result{n, c, g.oh, g.ow};
    if (max_backward || avg_backward) add_input(result, type);
    if (!avg_backward) add_input(image, type);
    if (avg_backward) add("size", integers{g.h, g.w});
    work_ = count_of(result) * k.h * k.w;
  }

  void adaptive_pooling(ops::op_id op) {
    const bool max_backward = op == ops::op_id::adaptive_max_pool2d_backward,
               avg_backward = op == ops::op_id::adaptive_avg_pool2d_backward;
    std::int64_t n = from_to(1, 3), c = magnitude(4);
    if (one_in(60)) (w_.flip() ? n : c) = 0;
    const std::int64_t most = one_in(6) ? 60 : 12;
    std::int64_t h = from_to(1, most), w = from_to(1, most), oh = from_to(one_in(20) ? 0 : 1, 9), ow = from_to(1, 9);
    if (one_in(3)) {  // all of one size
      h = oh * from_to(1, 5);
      w = ow * from_to(1, 5);
    }
    const bool max = op != ops::op_id::adaptive_avg_pool2d && !avg_backward;
    if (max) h = std::max<std::int64_t>(h, 1);
    const dtype type = narrow_format();
    if (max_backward || avg_backward) add_input({n, c, oh, ow}, type);
    if (!avg_backward) add_input({n, c, h, w}, type);
    if (!max_backward) add("size", avg_backward ? integers{h, w} : integers{oh, ow});
    work_ = n * c * (h + oh) * (w + ow);
  }

  void upsampling(bool backward) {
    std::int64_t n = from_to(1, 3), c = magnitude(4);
    if (one_in(60)) (w_.flip() ? n : c) = 0;
    const std::int64_t most = one_in(6) ? 60 : 9;
    const integers image{from_to(1, most), from_to(1, most)}, size{from_to(one_in(20) ? 0 : 1, 20), from_to(1, 20)};
    const integers& from = backward ? size : image;
    add_input({n, c, from[0], from[1]}, narrow_format());
    add("size", backward ? image : size);
    const auto scale = [&](std::size_t axis) {
      if (one_in(8)) return any_of({0x1p-200, 0x1p200, 1.0, 2.0, 0.5, 1 + 0x1p-52, 1 - 0x1p-53});
      return std::ldexp(1 + static_cast<double>(w_.next64() >> 12) * 0x1p-52, w_.between(-3, 3)) *
             static_cast<double>(size[axis] + 1) / static_cast<double>(image[axis]);
    };
    if (one_in(2)) add("scale_h", scale(0));
    if (one_in(2)) add("scale_w", scale(1));
    if (w_.flip()) add("exact", w_.flip());
    work_ = n * c * (image[0] * image[1] + size[0] * size[1]);
  }

  void rows() {
    shape_list s = any_shape(1);
    const std::int64_t axis = from_to(0, std::ssize(s) - 1);
    add_axis(axis, s);
    lengthen(s, only(axis, s));
    for (std::size_t i = 0; i < op_.in.size(); ++i) add_input(s);
  }
  static std::vector<bool> only(std::int64_t axis, const shape_list& s) {
    std::vector<bool> is(s.size(), false);
    is[static_cast<std::size_t>(axis)] = true;
    return is;
  }
  void add_axis(std::int64_t axis, const shape_list& s) { add("axis", w_.flip() ? axis : axis - std::ssize(s)); }

  void logsumexp(bool backward) {
    shape_list s = any_shape();
    const shape_list result = reduction_of(s, false);
    if (backward) add_input(result);
    add_input(s);
  }

  struct rows_with_targets {
    shape_list x, targets, loss;
    bool is_mean;
  };
  /// Of cross_entropy and nll_loss, with their attributes.
  rows_with_targets draw_rows_with_targets(bool probabilities = false) {
    shape_list s = any_shape(1);
    std::int64_t axis = from_to(0, std::ssize(s) - 1);
    if (one_in(2)) {
      add_axis(axis, s);
    } else {
      axis = s.size() > 1 ? 1 : 0;
    }
    if (op_.family == "softmax") lengthen(s, only(axis, s));
    const std::string reduction = any_of<const char*>({"mean", "sum", "none"});
    if (reduction != "mean" || w_.flip()) add("reduction", reduction);
    if (!probabilities && w_.flip()) add("ignore_index", any_of<std::int64_t>({-100, 0, 1, -1, INT64_MIN}));
    shape_list targets = s;
    targets.erase(targets.begin() + static_cast<std::ptrdiff_t>(axis));
    classes_ = s[static_cast<std::size_t>(axis)];
    return {s, targets, reduction == "none" ? targets : shape_list{}, reduction == "mean"};
  }
  void cross_entropy(bool backward, bool probabilities) {
    const rows_with_targets r = draw_rows_with_targets(probabilities);
    if (backward) add_input(r.loss);
    add_input(r.x);
    if (probabilities) {
      add_input(r.x);
    } else {
      add_input(r.targets, dtype::i64);
    }
    if (w_.flip()) add_input(one_in(4) ? absent_shape : shape_list{classes_});
    if (w_.flip()) add("label_smoothing", any_of<double>({0.1, 0.25, 1, 0x1p-64}));
  }
  void nll(bool backward) {
    const rows_with_targets r = draw_rows_with_targets();
    const dtype type = narrow_format();
    if (backward) add_input(r.loss, type);
    add_input(r.x, type);
    add_input(r.targets, dtype::i64);
    add_input(w_.flip() ? shape_list{classes_} : absent_shape, type);
    if (backward) add_input(r.is_mean || w_.flip() ? shape_list{} : absent_shape);
  }

  void norm_of_axes() {
    shape_list s = any_shape();
    std::vector<bool> reduced(s.size(), false);
    if (s.empty() || !one_in(4)) {
      const integers axes = some_axes(s.size());
      for (const std::int64_t a : axes) reduced[static_cast<std::size_t>(a < 0 ? a + std::ssize(s) : a)] = true;
      add("axis", axes);
    } else {
      reduced.back() = true;
    }
    lengthen(s, reduced);
    shape_list weight;
    for (std::size_t i = 0; i < s.size(); ++i) {
      if (reduced[i]) weight.push_back(s[i]);
    }
    norm(s, weight);
  }
  void group_norm() {
    shape_list s = any_shape(2);
    std::vector<bool> within(s.size(), true);
    within[0] = false;
    lengthen(s, within);
    const std::int64_t channels = std::max<std::int64_t>(s[1], 1);
    std::int64_t groups = one_in(4) ? channels : from_to(1, std::min<std::int64_t>(channels, 8));
    while (s[1] % groups != 0) --groups;
    if (groups != 1 || w_.flip()) add("groups", groups);
    norm(s, {s[1]});
  }
  void batch_norm() {
    shape_list s = any_shape(1);
    const bool given = s.size() < 2 || !one_in(4);
    const std::int64_t axis = given ? from_to(0, std::ssize(s) - 1) : 1;
    if (given) add_axis(axis, s);
    std::vector<bool> others = only(axis, s);
    others.flip();
    lengthen(s, others);
    norm(s, {s[static_cast<std::size_t>(axis)]});
  }
  /// What every norm has.
  void norm(const shape_list& x, const shape_list& weight) {
    bool ends = false;  // operands at the end that are left out
    for (const operand_info& o : op_.in) {
      const bool of_row = o.name == "mean" || o.name == "rstd" || o.name.starts_with("running_");
      if (!o.optional) add_input(of_row ? reference::norm_layout_of(op_.name, x, c_.attrs).rows.kept_shape : x);
      ends = ends || one_in(6);
      if (o.optional && !ends) add_input(one_in(4) ? absent_shape : weight);
    }
    const bool given = op_.name.starts_with("batch_norm_inference");
    if (op_.name.ends_with("backward") && !given) return;
    if (op_.name == "batch_norm_running" && !one_in(3))
      add("momentum", one_in(2) ? any_of({0.0, 0.5, 0.25, 0x1p-5, 1.0}) : below_one());
    // Without eps, or with a power of 4, rows can be exact.
    if (op_.name == "rms_norm" || !one_in(3)) add("eps", one_in(3) ? any_of({0.0, 1.0, 0x1p-20}) : real(false));
  }

  void variance() {
    shape_list s = any_shape();
    reduction_of(s, false);
    if (!one_in(3)) add("correction", one_in(2) ? any_of({0.0, 1.0, 2.0, 0.5, -3.0, 1000.0}) : real(true));
    add_input(s);
  }

  void loss(bool gradient) {
    const shape_list full = any_shape();
    const bool broadcast = one_in(2);
    const shape_list x = broadcast && one_in(2) ? smaller(full, 0) : full;
    const shape_list t = broadcast && one_in(2) ? smaller(full, 0) : full;
    const dtype type = narrow_format();
    const bool divergence = op_.name.starts_with("kl_div");
    const std::string reduction = divergence ? any_of<const char*>({"mean", "sum", "none", "batchmean"})
                                             : any_of<const char*>({"mean", "sum", "none"});
    shape_list elements = reference::broadcast_shape(x, t);
    std::vector<shape_list> weights;
    for (const operand_info& o : op_.in) {
      if (!o.optional || (!weights.empty() && one_in(4))) continue;
      weights.push_back(one_in(3) ? absent_shape : broadcast && one_in(2) ? smaller(full, 0) : full);
      if (weights.back() != absent_shape) elements = reference::broadcast_shape(elements, weights.back());
    }
    if (reduction != "mean" || w_.flip()) add("reduction", reduction);
    if (gradient) add_input(reduction == "none" ? elements : shape_list{}, type);
    add_input(x, type);
    add_input(t, type);
    for (const shape_list& s : weights) add_input(s, type);
    for (const attribute_info& a : op_.attrs) {
      if (a.kind == attribute_kind::boolean && w_.flip()) add(a.name, w_.flip());
      if (a.kind != attribute_kind::real || one_in(3)) continue;
      const double c = real(false);
      add(a.name, a.name == "delta" && c == 0 ? 0.5 : c);
    }
    work_ = count_of(elements);
  }

  void draws() {
    const std::int64_t rows = one_in(20) ? 0 : magnitude(4), n = count();
    const bool replacement = w_.flip();
    const std::int64_t most = replacement ? magnitude(12) : n;
    const std::int64_t samples = one_in(3) ? 1 : from_to(1, std::max<std::int64_t>(1, most));
    add_input(one_in(4) ? shape_list{std::max<std::int64_t>(1, n)} : shape_list{rows, std::max<std::int64_t>(1, n)},
              floats[w_.below(3)]);
    add("num_samples", samples);
    if (replacement || w_.flip()) add("replacement", replacement);
    generator();
    work_ = (replacement ? 1 : 8) * count_of(c_.shapes[0]) + rows * samples;
  }
  void scatter(bool each) {
    shape_list x = any_shape(1);
    const std::int64_t axis = from_to(0, std::ssize(x) - 1);
    const auto at = static_cast<std::size_t>(axis);
    add_axis(axis, x);
    if (one_in(4)) add("alpha", one_in(3) ? any_of({1.0, -1.0, 0.5, 0.0, -0x1p-7}) : real(true));
    const dtype type = floats[w_.below(3)];
    const std::int64_t slice = std::max<std::int64_t>(1, count_of(x) / std::max<std::int64_t>(1, x[at]));
    shape_list source = x;  // where x has no place there is no index in range
    source[at] = x[at] == 0 || one_in(20) ? 0 : one_in(3) ? magnitude(5) : std::max<std::int64_t>(1, count() / slice);
    shape_list index = each ? source : shape_list{source[at]};
    for (std::size_t i = 0; each && i < x.size(); ++i) {
      if (one_in(8)) index[i] = from_to(0, index[i]);
      if (one_in(8)) source[i] += from_to(0, 3);
    }
    add_input(x, type);
    add_input(index, dtype::i64);
    add_input(source, type);
    work_ = count_of(source) + count_of(x);
  }
  void embedding_backward() {
    shape_list indices = any_shape();
    if (indices.size() == static_cast<std::size_t>(max_rank)) indices.pop_back();
    const std::int64_t rows = count_of(indices) == 0 && one_in(4) ? 0 : magnitude(one_in(4) ? 12 : 6);
    add("rows", rows);
    if (rows > 0 && one_in(2)) add("padding_idx", from_to(-rows, rows - 1));
    if (one_in(2)) add("scale_grad_by_freq", w_.flip());
    const dtype type = floats[w_.below(3)];
    shape_list g = indices;
    g.push_back(one_in(30) ? 0 : magnitude(one_in(4) ? 8 : 3));
    while (count_of(g) > 1 << 17 && g.back() > 1) g.back() /= 2;
    add_input(g, type);
    add_input(indices, dtype::i64);
    work_ = count_of(g) + rows * g.back();
  }

  void sgd() {
    const double momentum = one_in(3) ? 0 : real(false);
    const dtype type = narrow_format();
    groups_ = static_cast<std::size_t>(from_to(1, 3));
    for (std::size_t g = 0; g < groups_; ++g) {
      const shape_list s = any_shape();
      const bool first_step = one_in(4);
      for (int i = 0; i < 2; ++i) add_input(s, type);
      if (momentum != 0) add_input(first_step ? absent_shape : s);
    }
    add("lr", real(true));
    add("momentum", momentum);
    add("dampening", real(true));
    add("weight_decay", real(true));
    add("nesterov", momentum != 0 && w_.flip());
  }

  void adamw() {
    const dtype type = narrow_format();
    groups_ = static_cast<std::size_t>(from_to(1, 3));
    for (std::size_t g = 0; g < groups_; ++g) {
      const shape_list s = any_shape();
      for (std::size_t i = 0; i < op_.in.size(); ++i) add_input(s, i < 2 ? type : dtype::f32);
    }
    add("lr", real(true));
    add("beta1", below_one());
    add("beta2", below_one());
    add("eps", real(false));
    add("weight_decay", real(true));
    add("step", one_in(4) ? static_cast<std::int64_t>(w_.next64() >> 2) + 1 : magnitude(10));
  }
  void list(bool clips) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const dtype type = narrow_format();
    groups_ = static_cast<std::size_t>(from_to(1, 4));
    for (std::size_t g = 0; g < groups_; ++g) add_input(any_shape(), type);
    const double p = any_of({2.0, 2.0, 1.0, infinity});
    if (p != 2 || w_.flip()) add("p", p);
    if (!clips) return;
    const double any = real(false);
    add("max_norm", one_in(2) ? any : any_of({1000001 * 0x1p-20, 1.0, infinity, 0.0}));
  }
  double below_one() {
    const double u = static_cast<double>(w_.next64() >> 11) * 0x1p-53;
    return one_in(2) ? std::max(u, 0x1p-53) : any_of({0.0, 0.5, 0.9, 0.999, 1 - 0x1p-53, 0x1p-200});
  }

  // ---- values

  sample_class draw_class() {
    constexpr sample_class list[] = {normal_range,   normal_range,    normal_range,  uniform_patterns,
                                     narrow_lattice, cancelling,      ties,          near_ties,
                                     subnormal,      overflow_border, zeros,         single_nonfinite,
                                     wide_exponents, exact_gaps,      multiplicities};
    const bool rows = op_.family == "softmax";
    const sample_class c = list[w_.below(rows || op_.family == "norm" ? 15 : 13)];
    // Their rows take multi-limb numbers, and near-ties of a quotient are searched for.
    const bool slow = rows && (c == ties || c == near_ties || c == exact_gaps || c == multiplicities);
    if ((slow && largest_input() > 1024) || (c == near_ties && op_.name.starts_with("dropout"))) return normal_range;
    return c;
  }
  std::int64_t largest_input() const {
    std::int64_t n = 0;
    for (const shape_list& s : c_.shapes) n = std::max(n, s == absent_shape ? 0 : count_of(s));
    return n;
  }

  /// Whether the makers of digest cases can aim at the class with these operands.
  bool can_aim() const {
    for (const shape_list& s : c_.shapes) {
      if (s != absent_shape && count_of(s) == 0) return false;
    }
    if (op_.family != "matmul") return true;
    const auto batch = [](const shape_list& s) { return shape_list(s.begin(), s.end() - 2); };
    const shape_list &a = c_.shapes[0], &b = c_.shapes[1];
    if (c_.shapes.size() > 2 && c_.shapes[2].size() != 1) return false;
    return b.size() == 2 || batch(a) == batch(b);
  }

  std::vector<array> values() {
    if (c_.shapes.empty()) return {};
    if (op_.family == "convert") c_.formats.push_back(dtype_named(std::get<std::string>(c_.attrs[0].value)));
    // Of random operands sums of losses are NaN, or rational where numbers come twice with opposite signs.
    const bool aims = op_.family == "scatter" || op_.family == "draw" ||
                      (op_.family == "loss" && (op_.name.starts_with("binary_") || op_.name.starts_with("kl_div")));
    if (aims || (w_.flip() && can_aim())) return reference::inputs(c_);
    std::vector<array> v;
    for (std::size_t i = 0; i < c_.shapes.size(); ++i) {
      if (c_.shapes[i] == absent_shape) {
        v.push_back(array::none());
      } else if (c_.formats[i] == dtype::i64 && op_.family != "convert") {
        v.push_back(targets(c_.shapes[i]));
      } else {
        // Uniform patterns and non-finite ones soon make everything NaN where much is added up.
        const bool sums = op_.family != "elementwise" && op_.family != "convert";
        const sample_class k = sums && c_.kind == uniform_patterns ? wide_exponents : c_.kind;
        v.push_back(reference::fill(k, c_.formats[i], c_.shapes[i], c_.seed, i));
      }
    }
    return v;
  }

  array targets(const shape_list& s) {
    array t(dtype::i64, s);
    const auto ignored = reference::attribute_or<std::int64_t>(c_.attrs, "ignore_index", -100);
    for (std::size_t i = 0; i < static_cast<std::size_t>(t.count()); ++i) {
      const std::uint32_t u = w_.below(64);
      std::int64_t v = w_.below(static_cast<std::uint32_t>(classes_));
      if (u < 4) v = ignored;
      if (u == 63) v = one_in(2) ? classes_ : -1;
      t.set(i, static_cast<std::uint64_t>(v));
    }
    return t;
  }

  // ---- placement

  layout draw_layout(bool is_input) {
    using enum layout;
    constexpr layout list[] = {contiguous, contiguous, shifted, gaps,  gaps,  permuted, permuted, backwards,
                               mixed,      mixed,      mixed,   mixed, mixed, repeated, repeated};
    return list[w_.below(is_input && may_repeat(op_) ? 15 : 13)];
  }

  std::size_t add_tensor(placed_call& p, const tensor_spec& spec, bool is_input) {
    const layout kind = plain_ ? layout::contiguous : draw_layout(is_input);
    return p.memory.add(spec, place(spec.shape, kind, w_, is_input && may_repeat(op_)), kind);
  }

  static bool has_repeats(const reference::memory_image::tensor& t) {
    for (int i = 0; i < t.spec.shape.size(); ++i) {
      if (t.spec.shape[i] > 1 && t.where.strides[i] == 0) return true;
    }
    return false;
  }

  void place_all(const std::vector<array>& in, placed_call& p) {
    plain_ = one_in(12);
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (in[i].absent()) {
        p.in.emplace_back();
        continue;
      }
      const tensor_spec spec{in[i].type, sizes_of(in[i].shape)};
      if (op_.family == "elementwise" && i > 0 && p.memory.tensors()[*p.in[0]].spec == spec && one_in(16)) {
        p.in.push_back(p.in[0]);  // f(x, x)
        continue;
      }
      p.in.push_back(add_tensor(p, spec, true));
      p.memory.set(*p.in.back(), in[i]);
    }
    const std::vector<tensor_spec> outputs = p.infer_outputs();
    const ops::aliases aliases =
        op_.family == "elementwise" ? ops::aliases::any : reference::structured_named(op_.name).may_alias;
    p.out.resize(outputs.size());
    const std::size_t group_out = p.group_out(), group_in = in.size() / groups_;
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const bool in_group = o < group_out * groups_;
      const bool may_be_absent = op_.family != "optimizer" || !in_group;
      if (may_be_absent && p.output_info(o).optional && w_.flip()) continue;
      std::optional<std::size_t> alias;
      if (aliases == ops::aliases::first && one_in(3)) {
        alias = p.in[0];
      } else if (aliases == ops::aliases::any && one_in(5)) {
        alias = p.in[w_.below(static_cast<std::uint32_t>(p.in.size()))];
      } else if (aliases == ops::aliases::same_name && one_in(2)) {
        for (std::size_t i = 0; in_group && i < group_in; ++i) {
          if (op_.in[i].name == op_.out[o % group_out].name) alias = p.in[o / group_out * group_in + i];
        }
      }
      const bool legal =
          alias && p.memory.tensors()[*alias].spec == outputs[o] && !has_repeats(p.memory.tensors()[*alias]);
      p.out[o] = legal ? *alias : add_tensor(p, outputs[o], false);
    }
  }

  const op_info& op_;
  word_stream& w_;
  digest_case c_;
  bool grouped_ = false, plain_ = false;  // sizes in fours; everything contiguous
  std::int64_t work_ = 0, classes_ = 0;
  std::size_t groups_ = 1;
};

}  // namespace

random_call make_random_call(const op_info& op, word_stream& w) { return maker(op, w).make(); }

bool is_affordable(const random_call& r, const context_options& o) {
  if (o.first_tier != tier::exact) return true;
  // Some 10 us per transcendental result, 2 us per root, some 10 ns per product.
  const std::string& family = r.call.op->family;
  const bool multi_limb = family == "softmax" || r.call.op->name == "normal" || r.call.op->name == "exponential" ||
                          family == "draw" ||
                          (family == "loss" && r.call.op->proof.find("multi-limb") != std::string::npos);
  if (family == "norm") return r.work <= 20000;
  return r.work <= (!multi_limb ? 100000 : o.where.kind == device_kind::cuda ? 2000 : 200);
}

std::string_view layout_kind_name(std::size_t kind) {
  return kind < reference::every_layout.size() ? name_of(reference::every_layout[kind]) : size_1;
}

std::vector<std::pair<int, std::size_t>> layouts_of(const placed_call& c) {
  std::vector<std::pair<int, std::size_t>> all;
  const auto& tensors = c.memory.tensors();
  for (const auto& t : tensors) {
    if (shows(t.spec.shape, t.kind)) all.emplace_back(t.spec.shape.size(), static_cast<std::size_t>(t.kind));
  }
  if (c.op->family != "elementwise" && c.op->family != "matmul") return all;
  const sizes& result = tensors[*c.out[0]].spec.shape;
  for (std::size_t i = 0; i < c.in.size(); ++i) {
    const sizes& shape = tensors[*c.in[i]].spec.shape;
    const int lead = result.size() - shape.size(), matrix = c.op->family == "matmul" && i < 2 ? 2 : 0;
    bool smaller = lead > 0;
    for (int a = 0; a < shape.size() - matrix; ++a) smaller = smaller || (shape[a] == 1 && result[a + lead] > 1);
    if (smaller) all.emplace_back(result.size(), reference::every_layout.size());
  }
  return all;
}

bool is_possible(const op_info& op, int rank, std::size_t kind) {
  const std::string& family = op.family;
  const bool image = family == "convolution" || family == "pooling" || family == "upsample";
  const bool vector = op.name == "dot" || op.name == "permutation" || family == "sequence";
  const int least = image                                                                    ? 4
                    : vector                                                                 ? 1
                    : family == "matmul"                                                     ? 2
                    : family == "softmax" && !op.name.starts_with("logsumexp")               ? 1
                    : family == "nll" || family == "draw"                                    ? 1
                    : op.name.starts_with("group_norm") || op.name.starts_with("batch_norm") ? 1
                    : op.name == "index_add" || op.name == "scatter_add"                     ? 1
                                                                                             : 0;
  const int most = image ? 4 : vector ? 1 : family == "draw" ? 2 : max_rank;
  if (rank < least || rank > most) return false;
  if (kind == reference::every_layout.size()) {
    return rank > 0 && ((family == "elementwise" && op.in.size() > 1) || family == "matmul");
  }
  switch (reference::every_layout[kind]) {
    case layout::contiguous:
    case layout::shifted:
      return true;
    case layout::permuted:
      return rank > 1;
    case layout::repeated:  // of inputs, which have two axes and more where only the result has one
      return rank > (op.name == "group_norm_weight_backward" ? 1 : 0) && !op.in.empty() && may_repeat(op);
    default:
      return rank > 0;
  }
}

}  // namespace repdl::tools
