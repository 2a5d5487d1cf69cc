#include "tools/cli/random_call.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "librepdl/samples/call_shapes.hpp"
#include "reference/attributes.hpp"
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
using samples::has;
using enum reference::sample_class;
using integers = std::vector<std::int64_t>;

constexpr dtype floats[] = {dtype::f16, dtype::bf16, dtype::f32, dtype::f64};
constexpr std::string_view size_1 = "size 1";

const samples::record* record_of(const op_info& op) {
  return op.family == "elementwise" ? nullptr : &samples::record_of(op);
}

/// Whether its elements are exponents of rows, with the classes of those.
bool is_softmax_like(const op_info& op) { return op.family == "softmax" || op.name == "logcumsumexp"; }

/// Whether operands may have fewer axes than the result, or axes of size 1.
bool broadcasts(const op_info& op) {
  return op.family == "elementwise" || op.family == "matmul" || op.family == "exponent";
}

/// One call in the making; of a gradient first that of its forward operation. Never two draws in one expression whose operands the language may evaluate in either order.
class maker {
 public:
  maker(const op_info& op, word_stream& w) : op_(op), f_(samples::forward_of(op)), record_(record_of(f_)), w_(w) {
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

  /// Operands and attributes alone; none that the makers of inputs cannot aim at, or that are large, or that a digest's header, whose
  /// numbers are binary64, cannot hold.
  std::optional<digest_case> make_case(sample_class kind) {
    draw_operands();
    c_.kind = kind;
    // The oracle begins every logarithm of a sum anew.
    const bool is_long = op_.name == "logcumsumexp" && steps_ > 20000;
    if (largest_input() > 4096 || work_ > 20000 || is_long || !can_aim() || !has_digest()) return std::nullopt;
    c_.formats = reference::call_formats(op_, c_.formats, c_.shapes, c_.attrs);
    return c_;
  }

 private:
  /// Integers are written as numbers of binary64.
  bool has_digest() const {
    return std::none_of(c_.attrs.begin(), c_.attrs.end(), [](const attribute& a) {
      const auto* const i = std::get_if<std::int64_t>(&a.value);
      return i != nullptr && *i >> 53 != 0 && *i >> 53 != -1;
    });
  }

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

  /// 16 bytes of any format, or more.
  static std::int64_t in_groups(std::int64_t n) { return (n + 7) / 8 * 8; }
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
    if (grouped_) s.back() = in_groups(s.back());
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
  /// One that the first operand may have.
  dtype own_format() { return f_.in[0].types[w_.below(static_cast<std::uint32_t>(f_.in[0].types.size()))]; }

  void draw_operands() {
    if (record_ == nullptr) return elementwise();
    draw();
    if (record_->family == ops::family::softmax || record_->family == ops::family::norm) in_one_format();
    if (&f_ != &op_) take_gradient();
  }
  /// The operands that are not binary32 in every call.
  void in_one_format() {
    const dtype type = own_format();
    for (std::size_t i = 0; i < c_.formats.size(); ++i) {
      const std::vector<dtype>& types = f_.in[i].types;
      if (std::find(types.begin(), types.end(), type) != types.end()) c_.formats[i] = type;
    }
    if (record_->family != ops::family::norm || type == dtype::f32 || type == dtype::f64) return;
    const bool wide_factors = one_in(3), wide_running = !one_in(3);
    for (std::size_t i = 0; i < c_.formats.size(); ++i) {
      if (f_.in[i].optional ? wide_factors : wide_running && f_.in[i].name.starts_with("running_"))
        c_.formats[i] = dtype::f32;
    }
  }
  /// Makes of the call that of its gradient.
  void take_gradient() {
    samples::shaped_call forward{.in = {}, .attrs = c_.attrs};
    for (const shape_list& s : c_.shapes) {
      forward.in.push_back(s == absent_shape ? std::nullopt : std::optional(sizes_of(s)));
    }
    samples::shaped_call g = samples::gradient_of(op_, forward);
    std::vector<dtype> formats;
    const bool is_mean = reference::attribute_or<std::string>(c_.attrs, "reduction", "mean") == "mean";
    for (std::size_t i = 0; i < op_.in.size(); ++i) {
      const operand_info& o = op_.in[i];
      std::size_t from = 0;
      for (std::size_t k = 0; k < c_.formats.size(); ++k) {
        if (f_.in[k].name == o.name) from = k;
      }
      const bool may = std::find(o.types.begin(), o.types.end(), c_.formats[from]) != o.types.end();
      formats.push_back(may ? c_.formats[from] : o.types[0]);
      // A result, without which only a mean cannot be.
      if (o.optional && has(f_.out, o.name) && !is_mean && w_.flip()) g.in[i].reset();
    }
    c_.formats = std::move(formats);
    c_.shapes.clear();
    for (const std::optional<sizes>& s : g.in) {
      c_.shapes.push_back(s ? shape_list(s->begin(), s->end()) : absent_shape);
    }
    c_.attrs = std::move(g.attrs);
  }

  /// How each family is drawn.
  void draw() {
    switch (record_->family) {
      case ops::family::convert:
        return convert();
      case ops::family::reduce:
        return has(f_.attrs, "axis") ? reduce() : dot();
      case ops::family::matmul:
        return matmul();
      case ops::family::random:
        return random();
      case ops::family::convolution:
        return convolution();
      case ops::family::pooling:
        return has(f_.attrs, "kernel") ? pooling() : adaptive_pooling();
      case ops::family::softmax:
      case ops::family::nll:
        return record_->axes == ops::row_axes::classes ? rows_of_classes() : rows();
      case ops::family::norm:
        return norm();
      case ops::family::optimizer:
        return has(f_.attrs, "beta1") ? adamw() : has(f_.attrs, "nesterov") ? sgd() : list();
      case ops::family::loss:
        return loss();
      case ops::family::scatter:
        return has(f_.attrs, "rows") ? embedding_backward() : scatter();
      case ops::family::sequence:
        return sequence();
      case ops::family::upsample:
        return has(f_.attrs, "exact") ? upsampling() : interpolation();
      case ops::family::draw:
        return draws();
      case ops::family::scan:
        return has(f_.attrs, "keepdim") ? reduce() : lines();
      case ops::family::exponent:
        return exponents();
      case ops::family::attention:
        return attention();
    }
  }

  /// x and the operands that follow from it; the optional ones at times.
  void add_inputs(const shape_list& x, dtype type = dtype::f32) {
    const samples::shapes all = samples::operands_at(*record_, sizes_of(x), c_.attrs);
    bool ends = false;  // operands at the end that are left out
    for (std::size_t i = 0; i < all.size(); ++i) {
      const operand_info& o = f_.in[i];
      ends = ends || (o.optional && one_in(6));
      if (ends) return;
      const bool absent = o.optional && one_in(4);
      add_input(absent ? absent_shape : shape_list(all[i]->begin(), all[i]->end()),
                o.types.size() == 1 ? o.types[0] : type);
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
    const dtype to = every_type[w_.below(std::size(every_type))];
    add("dtype", std::string(name_of(to)));
    if ((ops::F8 & ops::one(to)) != 0 && w_.flip()) add("saturate", true);
  }

  void dot() {
    const std::int64_t n = one_in(30) ? 0 : count();
    const dtype t = own_format();
    add_input({n}, t);
    add_input({n}, t);
    other_format(t);
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
    if (record_->family == ops::family::softmax || record_->family == ops::family::norm) lengthen(s, reduced);
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

  void reduce() {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    bool needs_one = record_->proof == ops::proof_kind::select;
    const dtype type = own_format();
    if (has(f_.attrs, "p")) {
      const double p = any_of({1.0, 2.0, 2.0, infinity, -infinity});
      if (p != 2 || w_.flip()) add("p", p);
      needs_one = std::isinf(p);
    }
    shape_list s = any_shape();
    reduction_of(s, needs_one);
    add_inputs(s, type);
    other_format(type);
  }
  /// Of a sum of numbers of a type.
  void other_format(dtype type) {
    if (has(f_.attrs, "dtype") && ops::is_floating(type) && one_in(3)) add("dtype", format());
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
      for (std::int64_t* v : {&m, &n, &k}) *v = in_groups(*v);
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
    const dtype type = chain ? dtype::f32 : own_format();
    const std::vector<dtype> wider = type == dtype::f64   ? std::vector<dtype>{}
                                     : type == dtype::f32 ? std::vector{dtype::f64}
                                                          : std::vector{dtype::f32, dtype::f64};
    const bool widens = !chain && !wider.empty() && one_in(6);
    const dtype to = widens ? wider[w_.below(static_cast<std::uint32_t>(wider.size()))] : type;
    add_input(ta ? with(a_batch, k, m) : with(a_batch, m, k), type);
    add_input(tb ? with(b_batch, n, k) : with(b_batch, k, n), type);
    if (one_in(3)) add_input(w_.flip() ? shape_list{n} : smaller(with(batch, m, n), 0), w_.flip() ? type : to);
    if (ta || w_.flip()) add("transpose_a", ta);
    if (tb || w_.flip()) add("transpose_b", tb);
    accumulate(chain);
    if (!chain && one_in(3)) add("alpha", real(true));
    if (!chain && one_in(3)) add("beta", real(true));
    if (widens) add("dtype", std::string(name_of(to)));
    work_ = count_of(batch) * m * n * k;
  }

  void accumulate(bool chain) {
    if (chain || w_.flip()) add("accumulate", std::string(chain ? "fma_chain" : "exact"));
  }

  void generator() {
    add("seed", static_cast<std::int64_t>(w_.next64()));
    add("stream", static_cast<std::int64_t>(w_.flip() ? w_.next64() : w_.below(4)));
  }

  void random() {
    if (!f_.in.empty()) add_input(any_shape());
    for (const attribute_info& a : f_.attrs) {
      if (a.name == "shape") add(a.name, any_shape());
      if (a.name == "n") add(a.name, one_in(20) ? std::int64_t{w_.below(3)} : count());
      if (a.name == "seed") generator();
      if (a.name == "dtype") add(a.name, format());
      if (a.name == "p") add(a.name, probability());
      if (a.name == "low" && a.kind == attribute_kind::integer) range_of_integers();
      if (a.kind != attribute_kind::real || a.name == "p") continue;
      const double v = real(a.name != "stddev" && a.name != "rate");
      add(a.name, a.name == "rate" && v == 0 ? 1.0 : v);
    }
    const auto shape = reference::attribute_of<integers>(c_.attrs, "shape");
    if (record_->proof == ops::proof_kind::multi_limb && shape) work_ = 16 * count_of(*shape);
  }

  void range_of_integers() {
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

  void sequence() {
    for (const attribute_info& a : f_.attrs) {
      if (a.kind == attribute_kind::real) add(a.name, real(true));
    }
    add("count", one_in(20) ? std::int64_t{w_.below(3)} : count());
    add("dtype", format());
  }

  std::size_t spatial_axes() const { return op_.name.find("3d") == std::string::npos ? 2 : 3; }
  /// A number for each spatial axis.
  template <class Draw>
  reference::extent each_axis(const Draw& draw) {
    reference::extent e;
    for (std::size_t d = 0; d < spatial_axes(); ++d) e.push_back(draw());
    return e;
  }

  integers draw_padding(std::int64_t most) {
    const std::size_t axes = spatial_axes();
    if (one_in(3)) return integers(2 * axes, 0);
    integers p;
    for (std::size_t d = 0; d < 2 * axes; ++d) p.push_back(from_to(0, most));
    if (one_in(4)) return {p[0]};
    if (one_in(4)) p.resize(axes);
    return p;
  }

  struct geometry {
    reference::extent image, results;
  };
  /// Image sizes for the windows drawn so far: at least one window along each axis.
  geometry image_for(const reference::extent& k, std::int64_t most, const reference::extent& default_stride) {
    const reference::windows win(k, c_.attrs, default_stride);
    geometry g;
    for (std::size_t d = 0; d < k.size(); ++d) {
      const std::int64_t reach = win.dilation[d] * (k[d] - 1) + 1;
      const std::int64_t least = std::max<std::int64_t>(1, reach - win.before[d] - win.behind[d]);
      g.image.push_back(least + from_to(0, most));
    }
    g.results = win.results(g.image);
    return g;
  }
  /// Images are smaller where they have three axes.
  std::int64_t of_axes(std::int64_t two, std::int64_t three) const { return spatial_axes() == 2 ? two : three; }

  void convolution() {
    using reference::volume;
    using reference::with_spatial;
    std::int64_t n = from_to(1, 3);
    const std::int64_t groups = one_in(2) ? 1 : from_to(2, 4);
    std::int64_t c = magnitude(one_in(6) ? 6 : 3), o = magnitude(one_in(6) ? 6 : 3);
    if (one_in(6)) c = o = 1;
    const std::int64_t most = one_in(8) ? of_axes(40, 12) : of_axes(12, 5);
    if (one_in(60)) (w_.flip() ? n : c) = 0;
    const reference::extent k = each_axis([&] { return from_to(1, one_in(6) ? of_axes(7, 4) : 3); });
    const std::int64_t largest_stride = one_in(2) ? 1 : 3;
    integers stride = each_axis([&] { return from_to(1, largest_stride); });
    const bool square = one_in(3);
    if (square) stride.assign(stride.size(), stride[0]);
    add("stride", square && w_.flip() ? integers{stride[0]} : stride);
    add("padding", draw_padding(*std::max_element(k.begin(), k.end())));
    const std::int64_t largest_dilation = one_in(2) ? 1 : 3;
    add("dilation", each_axis([&] { return from_to(1, largest_dilation); }));
    if (groups > 1 || w_.flip()) add("groups", groups);
    const geometry g = image_for(k, most, reference::extent(k.size(), 1));
    const std::int64_t limit = one_in(25) ? 1 << 23 : 1 << 18;
    const auto products = [&] { return n * groups * o * volume(g.results) * c * volume(k); };
    while (products() > limit && (c > 1 || o > 1)) (c >= o ? c : o) /= 2;
    work_ = products();
    const bool chain = one_in(4);
    const dtype type = chain ? dtype::f32 : own_format();
    add_input(with_spatial(n, groups * c, g.image), type);
    add_input(with_spatial(groups * o, c, k), type);
    if (one_in(3)) add_input({groups * o}, type);
    accumulate(chain);
  }

  void pooling() {
    const bool max = has(f_.attrs, "dilation");
    std::int64_t n = from_to(1, 3), c = magnitude(4);
    if (one_in(60)) (w_.flip() ? n : c) = 0;
    const std::int64_t largest = one_in(6) ? of_axes(9, 4) : 3;
    const reference::extent k = each_axis([&] { return from_to(1, largest); });
    add("kernel", k);
    if (!one_in(3)) {
      const std::int64_t most = one_in(2) ? 2 : 5;
      add("stride", each_axis([&] { return from_to(1, most); }));
    }
    bool dilated = false;
    if (max && one_in(2)) {
      const integers dilation = each_axis([&] { return from_to(1, 3); });
      dilated = *std::max_element(dilation.begin(), dilation.end()) > 1;
      add("dilation", dilation);
    }
    // Every window of a maximum has an element of the image: in front of a window of taps side by side fewer than k.
    if (!max) {
      add("padding", draw_padding(*std::max_element(k.begin(), k.end())));
    } else if (!dilated) {
      add("padding", draw_padding(*std::min_element(k.begin(), k.end()) - 1));
    }
    if (!max && w_.flip()) add("count_include_pad", w_.flip());
    if (one_in(3)) add("ceil_mode", w_.flip());
    if (!max && one_in(4)) add("divisor_override", any_of<std::int64_t>({0, 1, -1, 3, -4, 7, INT32_MAX, -INT32_MAX}));
    const dtype type = own_format();
    const geometry g = image_for(k, one_in(8) ? of_axes(60, 12) : of_axes(12, 5), k);
    add_input(reference::with_spatial(n, c, g.image), type);
    work_ = n * c * reference::volume(g.results) * reference::volume(k);
  }

  void adaptive_pooling() {
    std::int64_t n = from_to(1, 3), c = magnitude(4);
    if (one_in(60)) (w_.flip() ? n : c) = 0;
    const std::int64_t most = one_in(6) ? of_axes(60, 12) : of_axes(12, 6);
    reference::extent image = each_axis([&] { return from_to(1, most); });
    reference::extent pooled{from_to(one_in(20) ? 0 : 1, of_axes(9, 5))};
    while (pooled.size() < image.size()) pooled.push_back(from_to(1, of_axes(9, 5)));
    if (one_in(3)) {  // all of one size
      for (std::size_t d = 0; d < image.size(); ++d) image[d] = pooled[d] * from_to(1, of_axes(5, 3));
    }
    if (record_->proof == ops::proof_kind::select) image[0] = std::max<std::int64_t>(image[0], 1);
    add_input(reference::with_spatial(n, c, image), own_format());
    add("size", pooled);
    work_ = n * c * (reference::volume(image) + reference::volume(pooled));
  }

  void upsampling() {
    std::int64_t n = from_to(1, 3), c = magnitude(4);
    if (one_in(60)) (w_.flip() ? n : c) = 0;
    const std::int64_t most = one_in(6) ? 60 : 9;
    const integers image{from_to(1, most), from_to(1, most)}, size{from_to(one_in(20) ? 0 : 1, 20), from_to(1, 20)};
    add_input({n, c, image[0], image[1]}, own_format());
    add("size", size);
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

  void interpolation() {
    std::int64_t n = from_to(1, 3), c = magnitude(4);
    if (one_in(60)) (w_.flip() ? n : c) = 0;
    const std::int64_t axes = from_to(1, 3), most = axes == 1 ? (one_in(6) ? 700 : 40) : axes == 2 ? 14 : 6;
    shape_list image{n, c};
    integers size;
    work_ = n * c;
    attributes scales;
    constexpr const char* names[] = {"scale_w", "scale_h", "scale_d"};
    for (std::int64_t a = axes; a-- > 0;) {
      image.push_back(from_to(1, most));
      size.push_back(from_to(one_in(20) ? 0 : 1, one_in(3) ? 2 * most : most));
      if (one_in(3)) size.back() = image.back() * from_to(1, 3);
      work_ *= image.back() + 4 * size.back();
      if (!one_in(4)) continue;
      const double ratio = static_cast<double>(size.back() + 1) / static_cast<double>(image.back());
      const double any = std::ldexp(1 + static_cast<double>(w_.next64() >> 12) * 0x1p-52, w_.between(-2, 2)) * ratio;
      const double edge = any_of({0x1p-32, 0x1p32, 1.0, 2.0, 0.5, 1 + 0x1p-52, 1 - 0x1p-53});
      scales.push_back({names[a], one_in(4) ? edge : w_.flip() ? ratio : any});
    }
    add_input(image, own_format());
    add("size", size);
    if (one_in(3)) add("align_corners", w_.flip());
    for (const attribute& a : scales) add(a.name, std::get<double>(a.value));
  }

  void rows() {
    if (record_->axes == ops::row_axes::all) {
      shape_list s = any_shape();
      reduction_of(s, false);
      return add_inputs(s);
    }
    shape_list s = any_shape(1);
    const std::int64_t axis = from_to(0, std::ssize(s) - 1);
    add_axis(axis, s);
    lengthen(s, only(axis, s));
    add_inputs(s);
    if (has(op_.attrs, "dtype") && one_in(3)) add("dtype", format());
  }
  void lines() {
    const shape_list s = any_shape(1);
    const std::int64_t axis = from_to(0, std::ssize(s) - 1);
    add_axis(axis, s);
    add_input(s, own_format());
    steps_ = count_of(s) * s[static_cast<std::size_t>(axis)];
  }
  static std::vector<bool> only(std::int64_t axis, const shape_list& s) {
    std::vector<bool> is(s.size(), false);
    is[static_cast<std::size_t>(axis)] = true;
    return is;
  }
  void add_axis(std::int64_t axis, const shape_list& s) { add("axis", w_.flip() ? axis : axis - std::ssize(s)); }

  void rows_of_classes() {
    shape_list s = any_shape(1);
    std::int64_t axis = from_to(0, std::ssize(s) - 1);
    if (one_in(2)) {
      add_axis(axis, s);
    } else {
      axis = s.size() > 1 ? 1 : 0;
    }
    if (record_->family == ops::family::softmax) lengthen(s, only(axis, s));
    classes_ = s[static_cast<std::size_t>(axis)];
    const std::string reduction = any_of<const char*>({"mean", "sum", "none"});
    if (reduction != "mean" || w_.flip()) add("reduction", reduction);
    if (has(f_.attrs, "ignore_index") && w_.flip()) {
      add("ignore_index", any_of<std::int64_t>({-100, 0, 1, -1, INT64_MIN}));
    }
    if (has(f_.attrs, "label_smoothing") && w_.flip()) add("label_smoothing", any_of<double>({0.1, 0.25, 1, 0x1p-64}));
    add_inputs(s, own_format());
  }

  void norm() {
    shape_list s;
    switch (record_->axes) {
      case ops::row_axes::groups:
        s = grouped_channels();
        break;
      case ops::row_axes::channels:
        s = channels();
        break;
      case ops::row_axes::all:
        s = any_shape();
        reduction_of(s, false);
        break;
      default:
        s = some_axes_of_any_shape();
    }
    if (has(f_.attrs, "correction") && !one_in(3)) {
      add("correction", one_in(2) ? any_of({0.0, 1.0, 2.0, 0.5, -3.0, 1000.0}) : real(true));
    }
    if (has(f_.attrs, "momentum") && !one_in(3)) {
      add("momentum", one_in(2) ? any_of({0.0, 0.5, 0.25, 0x1p-5, 1.0}) : below_one());
    }
    for (const attribute_info& a : f_.attrs) {
      // Without eps, or with a power of 4, rows can be exact.
      if (a.name != "eps" || (!a.required && one_in(3))) continue;
      add(a.name, one_in(3) ? any_of({0.0, 1.0, 0x1p-20}) : real(false));
    }
    add_inputs(s);
  }
  shape_list some_axes_of_any_shape() {
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
    return s;
  }
  shape_list grouped_channels() {
    shape_list s = any_shape(2);
    std::vector<bool> within(s.size(), true);
    within[0] = false;
    lengthen(s, within);
    const std::int64_t channels = std::max<std::int64_t>(s[1], 1);
    std::int64_t groups = one_in(4) ? channels : from_to(1, std::min<std::int64_t>(channels, 8));
    while (s[1] % groups != 0) --groups;
    if (groups != 1 || w_.flip()) add("groups", groups);
    return s;
  }
  shape_list channels() {
    shape_list s = any_shape(1);
    const bool given = s.size() < 2 || !one_in(4);
    const std::int64_t axis = given ? from_to(0, std::ssize(s) - 1) : 1;
    if (given) add_axis(axis, s);
    std::vector<bool> others = only(axis, s);
    others.flip();
    lengthen(s, others);
    return s;
  }

  void loss() {
    const shape_list full = any_shape();
    const bool broadcast = one_in(2);
    const shape_list x = broadcast && one_in(2) ? smaller(full, 0) : full;
    const shape_list t = broadcast && one_in(2) ? smaller(full, 0) : full;
    const dtype type = own_format();
    const bool divergence = has(f_.attrs, "log_target");
    const std::string reduction = divergence ? any_of<const char*>({"mean", "sum", "none", "batchmean"})
                                             : any_of<const char*>({"mean", "sum", "none"});
    shape_list elements = reference::broadcast_shape(x, t);
    std::vector<shape_list> weights;
    for (const operand_info& o : f_.in) {
      if (!o.optional || (!weights.empty() && one_in(4))) continue;
      weights.push_back(one_in(3) ? absent_shape : broadcast && one_in(2) ? smaller(full, 0) : full);
      if (weights.back() != absent_shape) elements = reference::broadcast_shape(elements, weights.back());
    }
    if (reduction != "mean" || w_.flip()) add("reduction", reduction);
    add_input(x, type);
    add_input(t, type);
    for (const shape_list& s : weights) add_input(s, type);
    for (const attribute_info& a : f_.attrs) {
      if (a.kind == attribute_kind::boolean && w_.flip()) add(a.name, w_.flip());
      if (a.kind != attribute_kind::real || one_in(3)) continue;
      const double c = real(false);
      add(a.name, a.name == "delta" && c == 0 ? 0.5 : c);
    }
    work_ = count_of(elements);
  }

  void exponents() {
    const shape_list full = any_shape();
    const bool broadcast = f_.in.size() > 1 && one_in(2);
    add_input(broadcast && one_in(2) ? smaller(full, 0) : full, own_format());
    if (f_.in.size() > 1) {
      add_input(broadcast && one_in(2) ? smaller(full, 0) : full, any_of({dtype::i64, dtype::i32}));
    }
  }
  void attention() {
    const dtype type = own_format();
    const int axes = rank(2);
    shape_list batch = shape(std::max(0, axes - 3), magnitude(3));
    const std::int64_t groups = axes < 3 ? 1 : from_to(1, 3), heads = axes < 3 ? 1 : groups * from_to(1, 3);
    std::int64_t queries = magnitude(6), keys = one_in(5) ? magnitude(10) : magnitude(7);
    std::int64_t size = magnitude(one_in(4) ? 8 : 5), values = magnitude(one_in(4) ? 8 : 5);
    if (grouped_) size = in_groups(size), values = in_groups(values);
    // Of one query or key there is little to see.
    if (queries < 3 && !one_in(4)) queries += from_to(2, 5);
    if (keys < 3 && !one_in(6)) keys += from_to(3, 12);
    if (one_in(30)) keys = w_.flip() ? 0 : 1;
    if (one_in(60)) queries = 0;
    const std::int64_t most = one_in(25) ? 1 << 21 : 1 << 16;
    while (count_of(batch) * heads * queries * keys * (size + values) > most) {
      std::int64_t& larger = keys >= queries ? keys : queries;
      if (larger <= 2) break;
      larger /= 2;
    }
    const auto with = [&](std::int64_t of, std::int64_t rows, std::int64_t columns) {
      shape_list s = batch;
      if (axes >= 3) s.push_back(of);
      s.insert(s.end(), {rows, columns});
      return s;
    };
    add_input(with(heads, queries, size), type);
    add_input(with(groups, keys, size), type);
    add_input(with(groups, keys, values), type);
    const bool masked = one_in(2), sloped = one_in(4);
    if (masked) {
      add_input(smaller(with(heads, queries, keys), 0), w_.flip() ? dtype::boolean : type);
    } else if (sloped) {
      add_input(absent_shape, type);
    }
    if (sloped) add_input({heads}, dtype::f32);
    if (one_in(3)) add("scale", real(true));
    if (one_in(3)) add("causal", true);
    if (w_.flip()) add("bottom_right", w_.flip());
    if (one_in(4)) add("left", from_to(-1, keys));
    if (one_in(4)) add("right", from_to(-1, keys));
    if (one_in(3)) {
      add("dropout", any_of({0.5, 0.1, 0.25, 0x1p-32, 0.9, 1 - 0x1p-53}));
      add("seed", from_to(-5, 5));
    }
    work_ = (&f_ == &op_ ? 4 : 12) * count_of(batch) * heads * queries * keys * (size + values);
  }
  void draws() {
    const std::int64_t rows = one_in(20) ? 0 : magnitude(4), n = count();
    const bool replacement = w_.flip();
    const std::int64_t most = replacement ? magnitude(12) : n;
    const std::int64_t samples = one_in(3) ? 1 : from_to(1, std::max<std::int64_t>(1, most));
    add_input(one_in(4) ? shape_list{std::max<std::int64_t>(1, n)} : shape_list{rows, std::max<std::int64_t>(1, n)},
              own_format());
    add("num_samples", samples);
    if (replacement || w_.flip()) add("replacement", replacement);
    generator();
    work_ = (replacement ? 1 : 8) * count_of(c_.shapes[0]) + rows * samples;
  }
  void scatter() {
    const bool each = f_.name == "scatter_add";  // element has an index
    shape_list x = any_shape(1);
    const std::int64_t axis = from_to(0, std::ssize(x) - 1);
    const auto at = static_cast<std::size_t>(axis);
    add_axis(axis, x);
    if (one_in(4)) add("alpha", one_in(3) ? any_of({1.0, -1.0, 0.5, 0.0, -0x1p-7}) : real(true));
    const dtype type = own_format();
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
    const dtype type = own_format();
    shape_list g = indices;
    g.push_back(one_in(30) ? 0 : magnitude(one_in(4) ? 8 : 3));
    while (count_of(g) > 1 << 17 && g.back() > 1) g.back() /= 2;
    add_input(g, type);
    add_input(indices, dtype::i64);
    work_ = count_of(g) + rows * g.back();
  }

  void sgd() {
    const double momentum = one_in(3) ? 0 : real(false);
    const dtype type = own_format();
    groups_ = static_cast<std::size_t>(from_to(1, 3));
    for (std::size_t g = 0; g < groups_; ++g) {
      const shape_list s = any_shape();
      const bool first_step = one_in(4);
      for (int i = 0; i < 2; ++i) add_input(s, type);
      if (momentum != 0) add_input(first_step ? absent_shape : s, ops::state_format(type));
    }
    add("lr", real(true));
    add("momentum", momentum);
    add("dampening", real(true));
    add("weight_decay", real(true));
    add("nesterov", momentum != 0 && w_.flip());
  }

  void adamw() {
    const dtype type = own_format();
    groups_ = static_cast<std::size_t>(from_to(1, 3));
    for (std::size_t g = 0; g < groups_; ++g) {
      const shape_list s = any_shape();
      for (std::size_t i = 0; i < f_.in.size(); ++i) add_input(s, i < 2 ? type : ops::state_format(type));
    }
    add("lr", real(true));
    add("beta1", below_one());
    add("beta2", below_one());
    add("eps", real(false));
    add("weight_decay", real(true));
    add("step", one_in(4) ? static_cast<std::int64_t>(w_.next64() >> 2) + 1 : magnitude(10));
  }
  void list() {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const dtype type = own_format();
    groups_ = static_cast<std::size_t>(from_to(1, 4));
    for (std::size_t g = 0; g < groups_; ++g) add_input(any_shape(), type);
    const double p = any_of({2.0, 2.0, 1.0, infinity});
    if (p != 2 || w_.flip()) add("p", p);
    if (!has(f_.attrs, "max_norm")) return;
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
    const bool rows = is_softmax_like(op_);
    const sample_class c = list[w_.below(rows || op_.family == "norm" ? 15 : 13)];
    // Their rows take multi-limb numbers, and near-ties of a quotient are searched for.
    const bool slow = rows && (c == ties || c == near_ties || c == exact_gaps || c == multiplicities);
    if ((slow && largest_input() > 1024) || (c == near_ties && op_.family == "random")) return normal_range;
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
    if (c_.shapes.size() > 2 && (c_.shapes[2].size() != 1 || c_.formats[2] != c_.formats[0])) return false;
    return b.size() == 2 || batch(a) == batch(b);
  }

  std::vector<array> values() {
    if (c_.shapes.empty()) return {};
    if (op_.family == "convert") c_.formats.push_back(dtype_named(std::get<std::string>(c_.attrs[0].value)));
    // Of random operands sums of losses are NaN, or rational where numbers come twice with opposite signs.
    const auto is_any = [](const ops::operand& o) { return o.domain == ops::domain::any; };
    const bool aims = op_.family == "scatter" || op_.family == "draw" || op_.family == "exponent" ||
                      op_.family == "attention" ||
                      (op_.family == "loss" && (has(f_.in, "weight") || !std::ranges::all_of(record_->in, is_any)));
    if (aims || (w_.flip() && can_aim())) return reference::inputs(c_);
    std::vector<array> v;
    for (std::size_t i = 0; i < c_.shapes.size(); ++i) {
      if (c_.shapes[i] == absent_shape) {
        v.push_back(array::none());
      } else if (op_.in[i % op_.in.size()].types == std::vector{dtype::i64}) {
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
      if (u == 63) v = any_of<std::int64_t>({classes_, -1, INT64_MIN, INT64_MAX});
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
    plain_ = one_in(grouped_ ? 2 : 12);  // kernels that copy packs of 16 bytes need both
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
  const op_info& f_;               // the forward operation, or op_
  const samples::record* record_;  // of f_; null of an elementwise one
  word_stream& w_;
  digest_case c_;
  bool grouped_ = false, plain_ = false;  // sizes in groups; everything contiguous
  std::int64_t work_ = 0, classes_ = 0;
  std::int64_t steps_ = 0;  // of lines: elements of all beginnings
  std::size_t groups_ = 1;
};

}  // namespace

random_call make_random_call(const op_info& op, word_stream& w) { return maker(op, w).make(); }

std::vector<digest_case> proposed_calls(const op_info& op, dtype format) {
  constexpr int each = 6;  // of a class
  const bool rows = is_softmax_like(op) || op.family == "norm";
  std::vector<sample_class> classes(reference::element_classes.begin(), reference::element_classes.end());
  if (rows) classes.insert(classes.end(), {exact_gaps, multiplicities});
  if (op.in.empty()) classes = {normal_range};
  std::vector<digest_case> all;
  for (const sample_class kind : classes) {
    int made = 0;
    for (std::uint64_t turn = 0; made < each && turn < 10000; ++turn) {
      word_stream w(reference::case_seed(op.name, {format}, 1 + turn), static_cast<std::uint64_t>(kind));
      std::optional<digest_case> c = maker(op, w).make_case(kind);
      if (!c) continue;
      // An operand that has one format in all calls, such as attention's lse, says nothing.
      const auto is_free = [&](std::size_t i) { return op.in.empty() || op.in[i % op.in.size()].types.size() > 1; };
      const auto operands = static_cast<std::size_t>(reference::end_of_operands(op, *c) - c->formats.cbegin());
      bool found = false;
      for (std::size_t i = 0; i < operands; ++i) found = found || (is_free(i) && c->formats[i] == format);
      if (!found) continue;
      all.push_back(std::move(*c));
      ++made;
    }
  }
  return all;
}

bool is_affordable(const random_call& r, const context_options& o) {
  if (o.first_tier != tier::exact) return true;
  // Some 10 us per transcendental result, 2 us per root, some 10 ns per product.
  const std::string& family = r.call.op->family;
  const bool multi_limb = is_softmax_like(*r.call.op) || r.call.op->name == "normal" ||
                          r.call.op->name == "exponential" || family == "draw" ||
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
  if (!broadcasts(*c.op)) return all;
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
  const bool vector = (family == "reduce" && !has(op.attrs, "axis")) || has(op.attrs, "n") || family == "sequence";
  const samples::record* record = record_of(samples::forward_of(op));
  const bool one_axis =
      record != nullptr && (record->axes == ops::row_axes::classes || record->axes == ops::row_axes::channels ||
                            record->axes == ops::row_axes::groups || has(op.attrs, "alpha") ||
                            ((family == "softmax" || family == "scan") && record->axes == ops::row_axes::last));
  const bool any_image = image && has(op.attrs, "align_corners");  // of one to three axes
  const int images = op.name.find("3d") == std::string::npos ? 4 : 5;
  const int least = any_image                                     ? 3
                    : image                                       ? images
                    : family == "matmul" || family == "attention" ? 2
                    : vector || family == "draw"                  ? 1
                    : one_axis                                    ? 1
                                                                  : 0;
  const int most = any_image ? 5 : image ? images : vector ? 1 : family == "draw" ? 2 : max_rank;
  if (rank < least || rank > most) return false;
  if (kind == reference::every_layout.size()) {
    return rank > 0 && broadcasts(op) && op.in.size() > 1;
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
