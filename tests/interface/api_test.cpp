// The public surface: views, shape inference, broadcasting and strides, aliasing, workspaces, floating-point
// environments, fingerprints, the C ABI's layout. Results are compared as bit patterns.
#include <dlpack/dlpack.h>
#include <doctest/doctest.h>
#include <xmmintrin.h>

#include <array>
#include <bit>
#include <cfenv>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "librepdl/librepdl.h"
#include "librepdl/librepdl.hpp"
#include "librepdl/version.hpp"
#include "reference/covering.hpp"
#include "reference/elementwise/elementwise.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/settings.hpp"

using namespace repdl;
using tests::bits;

namespace {

// Patterns of every kind, in a fixed order.
std::vector<float> patterns(std::size_t n, std::uint32_t seed) {
  std::vector<float> v(n);
  std::uint32_t w = seed;
  for (std::size_t i = 0; i < n; ++i) {
    w = w * 1664525u + 1013904223u;
    // Three quarters of moderate exponent, one quarter anything at all.
    const std::uint32_t b = (i & 3) == 3 ? w : (w & 0x807fffff) | ((117 + (w >> 23 & 15)) << 23);
    v[i] = std::bit_cast<float>(b);
  }
  return v;
}

std::vector<std::string> available_isas() {
  std::vector<std::string> names;
  for (const isa_info& i : instruction_sets()) {
    if (i.available) names.push_back(i.name);
  }
  return names;
}

}  // namespace

// Every operation has a typed function, by its name or by the one in gradient_names.def: an error of the compiler names one that has none.
namespace functions {
namespace named {
using namespace repdl;
#define REPDL_GRADIENT(row, function) \
  struct row {};                      \
  using repdl::function;
#include "librepdl/ops/gradient_names.def"
#undef REPDL_GRADIENT
}  // namespace named
#define REPDL_ELEMENTWISE(name, ...) using named::name;
#include "librepdl/ops/elementwise/elementwise.def"
#undef REPDL_ELEMENTWISE
#define REPDL_STRUCTURED(name, ...) using named::name;
#include "librepdl/ops/structured.def"
#undef REPDL_STRUCTURED
}  // namespace functions

static_assert(sizeof(repdl_tensor) == sizeof(DLTensor));
static_assert(offsetof(repdl_tensor, data) == offsetof(DLTensor, data));
static_assert(offsetof(repdl_tensor, device) == offsetof(DLTensor, device));
static_assert(offsetof(repdl_tensor, ndim) == offsetof(DLTensor, ndim));
static_assert(offsetof(repdl_tensor, dtype) == offsetof(DLTensor, dtype));
static_assert(offsetof(repdl_tensor, shape) == offsetof(DLTensor, shape));
static_assert(offsetof(repdl_tensor, strides) == offsetof(DLTensor, strides));
static_assert(offsetof(repdl_tensor, byte_offset) == offsetof(DLTensor, byte_offset));
static_assert(static_cast<int>(device_kind::cpu) == kDLCPU && static_cast<int>(device_kind::cuda) == kDLCUDA);
static_assert(!std::is_constructible_v<const_tensor_view, std::vector<float>&&>, "a view of a temporary");
static_assert(!std::is_constructible_v<tensor_view, std::vector<float>&&>, "a view of a temporary");

// Sizes: ranges and braced lists of any integer type, and nothing else.
template <class T>
constexpr bool is_shape = std::is_convertible_v<T, sizes>;
static_assert(is_shape<std::vector<std::size_t>> && is_shape<std::vector<int>&> &&
              is_shape<std::array<std::uint8_t, 2>>);
static_assert(is_shape<const long long (&)[3]> && is_shape<unsigned (&)[2]> && is_shape<std::span<const std::size_t>>);
static_assert(is_shape<std::span<std::int64_t, 2>> && is_shape<std::initializer_list<short>>);
static_assert(!is_shape<std::vector<double>> && !is_shape<std::string> && !is_shape<std::array<bool, 2>>);
static_assert(!is_shape<int> && !is_shape<float (&)[2]> && !is_shape<const char (&)[2]> &&
              !is_shape<std::vector<bool>>);
static_assert(!std::is_constructible_v<sizes::entry, double> && !std::is_constructible_v<sizes::entry, bool>);
// Axes: one integer, whatever converts to sizes, all_axes.
template <class T>
constexpr bool is_axes = std::is_convertible_v<T, axis_list>;
static_assert(is_axes<int> && is_axes<std::size_t> && is_axes<std::int64_t> && is_axes<sizes> && is_axes<all_axes_t>);
static_assert(is_axes<std::vector<int>> && is_axes<std::array<std::size_t, 2>> && is_axes<int (&)[2]>);
static_assert(!is_axes<double> && !is_axes<bool> && !is_axes<char> && !is_axes<void*> && !is_axes<std::vector<float>>);
static_assert(!std::is_constructible_v<const_tensor_view, std::array<float, 2>&&>, "a view of a temporary");
static_assert(!std::is_constructible_v<tensor_view, std::array<float, 2>&&>, "a view of a temporary");
static_assert(!std::is_constructible_v<tensor_view, const float (&)[2]>, "a writable view of constants");
static_assert(!std::is_copy_constructible_v<tensor> && !std::is_copy_assignable_v<tensor>);
static_assert(std::is_convertible_v<tensor&, tensor_view> && std::is_convertible_v<const tensor&, const_tensor_view>);
static_assert(!std::is_constructible_v<tensor_view, const tensor&>, "a writable view of a constant");
static_assert(!std::is_constructible_v<const_tensor_view, tensor>, "a view of a temporary");
static_assert(!std::is_constructible_v<tensor_view, tensor>, "a view of a temporary");
static_assert(!std::is_constructible_v<tensor, context&, std::vector<std::uint32_t>, sizes>, "no element type");
static_assert(!std::is_constructible_v<tensor_view, const std::array<float, 2>&>, "a writable view of constants");

TEST_SUITE_BEGIN("portable");

TEST_CASE("sizes and axes from every integer type") {
  const std::size_t n = 3;
  const std::int16_t m = 2;
  const std::size_t c_array[] = {3, 2};
  for (const sizes& s : {sizes{n, m}, sizes(std::vector<std::size_t>{n, 2}), sizes(std::array{3, 2}), sizes(c_array),
                         sizes(std::span(c_array)), sizes(std::initializer_list<unsigned>{3, 2})}) {
    CHECK(s == sizes{3, 2});
  }
  CHECK(sizes{-1, std::int8_t{-2}} == sizes(std::vector<long>{-1, -2}));
  CHECK(sizes(std::vector<int>{}).empty());

  CHECK(*axis_list().list() == sizes{});
  CHECK(*axis_list(n).list() == sizes{3});
  CHECK(*axis_list(-1).list() == sizes{-1});
  CHECK(*axis_list{0, n}.list() == sizes{0, 3});
  CHECK(*axis_list(std::vector<std::size_t>{1, 0}).list() == sizes{1, 0});
  CHECK_FALSE(axis_list(all_axes).list());
  CHECK(reduce_options{}.axis == axis_list(all_axes));
  CHECK(reduce_options{.axis = {}}.axis == axis_list());
  CHECK(reduce_options{.axis = {0}}.axis == axis_list(0));
}

TEST_CASE("reductions over none, one, several and all axes; arrays as tensors") {
  context ctx(context_options{.threads = 1});
  const float x[] = {1, 2, 4, 8, 16, 32};
  const const_tensor_view matrix(x, {2, 3});
  std::array<float, 6> none{};
  sum(ctx, matrix, tensor_view(none).reshape({2, 3}), {.axis = {}});
  CHECK(std::equal(none.begin(), none.end(), x));
  sum(ctx, x, none, {.axis = {}});
  CHECK(std::equal(none.begin(), none.end(), x));
  float columns[3], rows[2], total[1], also[1];
  sum(ctx, matrix, columns, {.axis = 0});
  CHECK(std::vector<float>(columns, columns + 3) == std::vector<float>{9, 18, 36});
  sum(ctx, matrix, rows, {.axis = {-1}});
  CHECK(std::vector<float>(rows, rows + 2) == std::vector<float>{7, 56});
  sum(ctx, matrix, tensor_view(total, {}), {.axis = {0, std::size_t{1}}});
  sum(ctx, matrix, tensor_view(also, sizes{1, 1}), {.axis = all_axes, .keepdim = true});
  CHECK(total[0] == 63);
  CHECK(also[0] == 63);
}

TEST_CASE("views: shape, strides, slices, transposes, reshapes") {
  std::vector<float> x(24);
  const const_tensor_view v(x.data(), sizes{2, 3, 4});
  CHECK(v.strides() == sizes{12, 4, 1});
  CHECK(v.count() == 24);
  CHECK(v.is_contiguous());
  CHECK_FALSE(v.transpose().is_contiguous());
  CHECK(v.transpose(0, 2).shape() == sizes{4, 3, 2});
  CHECK(v.transpose(0, 2).strides() == sizes{1, 4, 12});
  const const_tensor_view s = v.slice(2, 1, 4, 2);
  CHECK(s.shape() == sizes{2, 3, 2});
  CHECK(s.strides() == sizes{12, 4, 2});
  CHECK(s.data() == x.data() + 1);
  CHECK(v.slice(1, 3, 3).count() == 0);
  CHECK(v.reshape({4, 6}).strides() == sizes{6, 1});
  CHECK(v.slice(2, 0, 4, 2).reshape({6, 2}).strides() == sizes{4, 2});
  CHECK(v.slice(2, 0, 4, 2).reshape({3, 2, 1, 2}).strides()[0] == 8);
  CHECK_THROWS_AS(v.slice(1, 0, 2).reshape({4, 4}), invalid_argument);
  CHECK(const_tensor_view(x.data(), sizes{}).count() == 1);
  CHECK(const_tensor_view(static_cast<const float*>(nullptr), sizes{0, 3}).count() == 0);
  CHECK_FALSE(const_tensor_view());
  CHECK(to_string(sizes{2, 3}) == "[2, 3]");
  CHECK(name_of(device{device_kind::cuda, 1}) == "cuda:1");
}

TEST_CASE("the active instruction set is the one asked for") {
  for (const std::string& isa : available_isas()) CHECK(context(context_options{.isa = isa}).isa() == isa);
  CHECK(context().isa() == (std::getenv("REPDL_ISA") != nullptr ? std::getenv("REPDL_ISA") : available_isas().back()));
  CHECK(context(context_options{.threads = 3}).threads() == 3);
}

// An operation in a format, with options or at their defaults, against the oracle.
class elementwise_check {
 public:
  elementwise_check(context& ctx, const ops::elementwise_row& row, dtype t, attributes attrs)
      : ctx_(ctx), row_(row), type_(t), attrs_(std::move(attrs)), options_(row, t, attrs_) {
    // Every class of operands by turns.
    for (int k = 0; k < row.arity; ++k) in_.emplace_back(row.operand_type(k, t), reference::shape_list{count});
    for (std::size_t c = 0; c < reference::element_classes.size(); ++c) {
      const auto of_class = reference::fill_operands(reference::element_classes[c], row, t, count, 1, c);
      for (std::size_t i = c; i < count; i += reference::element_classes.size()) {
        for (std::size_t k = 0; k < in_.size(); ++k) in_[k].set(i, of_class[k].get(i));
      }
    }
  }

  // Contiguous, every length and every misalignment below 4 elements.
  void lanes() const {
    for (std::int64_t offset = 0; offset < 4; ++offset) {
      for (std::int64_t n = 1; n + offset <= count; n += 1 + n / 9) {
        std::vector<const_tensor_view> views;
        for (int k = 0; k < row_.arity; ++k) views.push_back(view(in_[static_cast<std::size_t>(k)], offset, {n}, {1}));
        reference::array out = unwritten(110);
        run(views, out, offset, {n}, {1});
        for (std::int64_t i = 0; i < n; ++i) expect(out, offset + i, everywhere(offset + i));
        REQUIRE(out.get(static_cast<std::size_t>(offset + n)) == unwritten(1).get(0));
      }
    }
  }
  // x reversed (negative stride), y broadcast along rows, z along columns, a fourth one over all, out transposed with gaps.
  void strides() const {
    std::vector<const_tensor_view> views{view(in_[0], 34, {5, 7}, {-7, -1})};
    if (row_.arity > 1) views.push_back(view(in_[1], 0, {7}, {3}));
    if (row_.arity > 2) views.push_back(view(in_[2], 0, {5, 1}, {2, 1}));
    if (row_.arity > 3) views.push_back(view(in_[3], 0, {}, {}));
    reference::array out = unwritten(200);
    run(views, out, 0, {5, 7}, {2, 11});
    for (std::int64_t r = 0; r < 5; ++r) {
      for (std::int64_t s = 0; s < 7; ++s) expect(out, 2 * r + 11 * s, {34 - 7 * r - s, 3 * s, 2 * r});
    }
  }
  void in_place() const {
    if (row_.result_type(type_) != type_) return;
    const int first = row_.leading();
    reference::array same = in_[static_cast<std::size_t>(first)];
    std::vector<const_tensor_view> views;
    for (int k = 0; k < row_.arity; ++k)
      views.push_back(view(k == first ? same : in_[static_cast<std::size_t>(k)], 0, {count}, {1}));
    run(views, same, 0, {count}, {1});
    for (std::int64_t i = 0; i < count; ++i) expect(same, i, everywhere(i));
  }

 private:
  static constexpr std::int64_t count = 97;

  static const_tensor_view view(const reference::array& a, std::int64_t offset, sizes shape, sizes strides) {
    return {a.bytes.data() + offset * static_cast<std::int64_t>(size_of(a.type)), a.type, shape, strides};
  }
  reference::array unwritten(std::int64_t n) const {
    reference::array a(row_.result_type(type_), {n});
    std::fill(a.bytes.begin(), a.bytes.end(), static_cast<unsigned char>(0xa5));
    return a;
  }
  void run(std::span<const const_tensor_view> in, reference::array& out, std::int64_t offset, sizes shape,
           sizes strides) const {
    const tensor_view to(out.bytes.data() + offset * static_cast<std::int64_t>(size_of(out.type)), out.type, shape,
                         strides);
    call(ctx_, *find(row_.name), in, std::vector{to}, attrs_);
  }
  /// The element `at` of the result, from elements of the operands.
  using places = std::array<std::int64_t, ops::most_operands>;
  static places everywhere(std::int64_t i) {
    places p;
    p.fill(i);
    return p;
  }
  void expect(const reference::array& out, std::int64_t at, const places& index) const {
    std::uint64_t x[ops::most_operands] = {};
    for (std::size_t o = 0; o < in_.size(); ++o) x[o] = in_[o].get(static_cast<std::size_t>(index[o]));
    REQUIRE(out.get(static_cast<std::size_t>(at)) == reference::evaluate(row_, type_, x, options_));
  }

  context& ctx_;
  const ops::elementwise_row& row_;
  dtype type_;
  attributes attrs_;
  reference::option_values options_;
  std::vector<reference::array> in_;
};

TEST_CASE("elementwise: every operation, format, lane position, broadcasting, strides, options, against the oracle" *
          doctest::test_suite("portable values")) {
  reference::covering some(4);  // of the instruction sets; each operation and each format meets all
  int setting = 0;
  for (const std::string& isa : available_isas()) {
    context ctx(context_options{.threads = 2, .isa = isa});
    ++setting;
    for (const ops::elementwise_row& row : ops::elementwise_rows()) {
      const op_info& op = *find(row.name);
      for (const dtype t : op.in[static_cast<std::size_t>(row.leading())].types) {
        if (!some.takes(setting, {op.id, static_cast<int>(t)})) continue;
        std::vector<attributes> all(1);
        reference::word_stream draws(1, 1);
        const auto coefficient = [](reference::word_stream& w) {
          constexpr double values[] = {0.1, -0.75, 0.0, 0x1.8p-160, 0x1p+200};
          return values[w.below(5)];
        };
        for (int i = 0; i < 3 * row.options.count(); ++i)
          all.push_back(reference::sample_options(row, t, draws, coefficient));
        for (const attributes& attrs : all) {
          INFO(isa, " ", row.name, " ", name_of(t), " ", attrs.empty() ? 0.0 : std::get<double>(attrs[0].value));
          const elementwise_check check(ctx, row, t, attrs);
          check.lanes();
          check.strides();
          check.in_place();
        }
      }
    }
  }
}

TEST_CASE("elementwise: long tensors, all thread counts, rank 8, interleaved halves") {
  const std::vector<float> a = patterns(100'003, 7);
  std::vector<float> one(a.size());
  context single(context_options{.threads = 1});
  exp(single, a, tensor_view(one));
  for (int threads : {2, 3, 7}) {
    context ctx(context_options{.threads = threads});
    std::vector<float> out(a.size());
    exp(ctx, a, tensor_view(out));
    CHECK(std::memcmp(out.data(), one.data(), out.size() * 4) == 0);
    // Even elements from odd ones of the same buffer: interleaved, no element shared.
    std::vector<float> buffer = a;
    const tensor_view all(buffer);
    exp(ctx, all.slice(0, 1, 100'003, 2), all.slice(0, 0, 100'002, 2));
    for (std::size_t i = 0; i + 1 < a.size(); i += 2) REQUIRE(bits(buffer[i]) == bits(one[i + 1]));
  }
  // A permuted rank-8 view.
  std::vector<float> x = patterns(2 * 3 * 2 * 2 * 3 * 2 * 2 * 5, 9);
  const const_tensor_view v(x.data(), sizes{2, 3, 2, 2, 3, 2, 2, 5});
  std::vector<float> y(x.size());
  const tensor_view w(y.data(), sizes{5, 3, 2, 2, 3, 2, 2, 2});
  neg(single, v.transpose(0, 7), w);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t first = i / 720 % 2;  // a 2 x 360 x 5 block, its outer axes exchanged
    const std::size_t last = i % 5;
    const std::size_t middle = i / 5 % 144;
    REQUIRE(bits(y[last * 288 + middle * 2 + first]) == (bits(x[i]) ^ 0x80000000u));
  }
}

TEST_CASE("convert: all pairs, strided") {
  const std::vector<float> a = patterns(96, 5);
  const dtype types[] = {dtype::f16, dtype::bf16, dtype::f32, dtype::f64, dtype::i64, dtype::boolean, dtype::i32};
  for (const std::string& isa : available_isas()) {
    context ctx(context_options{.threads = 1, .isa = isa});
    for (const dtype from : types) {
      for (const dtype to : types) {
        std::vector<std::uint64_t> in(48);
        std::memcpy(in.data(), a.data(), 48 * 8);
        std::vector<std::uint64_t> out(48);
        const const_tensor_view x(in.data(), from, sizes{24}, sizes{2});
        convert(ctx, x, tensor_view(out.data(), to, sizes{24}));
        for (std::uint64_t i = 0; i < 24; ++i) {
          const std::uint64_t pattern = reference::load(from, in.data(), 2 * i);
          REQUIRE(reference::load(to, out.data(), i) == reference::convert(from, to, pattern));
        }
      }
    }
  }
}

TEST_CASE("the caller's floating-point environment changes no bit and comes back") {
  struct variant {
    const ops::elementwise_row* row;
    const op_info* op;
    dtype type;
    attributes attrs;
  };
  std::vector<variant> variants;
  for (const ops::elementwise_row& row : ops::elementwise_rows()) {
    const op_info& op = *find(row.name);
    for (const dtype t : op.in[static_cast<std::size_t>(row.leading())].types) {
      variants.push_back({&row, &op, t, {}});
      for (const attribute_info& o : op.attrs) {
        const bool real = o.kind == attribute_kind::real;
        variants.push_back({&row, &op, t, {{o.name, real ? attribute_value(0.3) : std::string("bf16")}}});
      }
    }
  }
  for (const auto& [row, op, t, attrs] : variants) {
    const std::vector<reference::array> operands =
        reference::fill_operands(reference::sample_class::uniform_patterns, *row, t, 5000, 11, 12);
    std::vector<const_tensor_view> in;
    for (const reference::array& a : operands) in.emplace_back(a.bytes.data(), a.type, sizes{5000});
    const tensor_spec spec = infer(*op, in, attrs)[0];
    std::vector<unsigned char> plain(5000 * size_of(spec.type)), changed(plain.size());
    for (const std::string& isa : available_isas()) {
      for (int threads : {1, 3}) {
        context ctx(context_options{.threads = threads, .isa = isa});
        call(ctx, *op, in, std::vector{tensor_view(plain.data(), spec.type, spec.shape)}, attrs);
        const unsigned before = _mm_getcsr();
        for (const unsigned csr : {0xffc0u & ~0x1f80u, 0x5fc0u | 0x8040u, 0x3f80u}) {
          // Round up or down, FTZ, DAZ, with and without exceptions masked.
          _mm_setcsr(csr);
          call(ctx, *op, in, std::vector{tensor_view(changed.data(), spec.type, spec.shape)}, attrs);
          const unsigned after = _mm_getcsr();
          _mm_setcsr(before);
          REQUIRE((after & ~0x3fu) == (csr & ~0x3fu));
          REQUIRE(plain == changed);
        }
      }
    }
  }
}

TEST_CASE("workspaces: a dry run launches nothing and names what the real run needs") {
  const std::vector<float> a = patterns(64 * 64, 21);
  std::vector<float> out(64 * 64, 3.0f);
  context ctx(context_options{.threads = 2});
  const const_tensor_view x(a.data(), {64, 64});
  const std::size_t bytes = ctx.workspace_for([&] { matmul(ctx, x, x, tensor_view(out.data(), {64, 64})); });
  CHECK(bytes > 0);
  for (const float v : out) REQUIRE(v == 3.0f);
  void* memory = ctx.allocate(bytes);
  std::vector<float> expected(out.size());
  matmul(ctx, x, x, tensor_view(expected.data(), {64, 64}));
  ctx.use_workspace(memory, bytes);
  matmul(ctx, x, x, tensor_view(out.data(), {64, 64}));
  CHECK(std::memcmp(out.data(), expected.data(), out.size() * 4) == 0);
  ctx.use_workspace(memory, bytes - 1);
  CHECK_THROWS_AS(matmul(ctx, x, x, tensor_view(out.data(), {64, 64})), machine_error);
  ctx.use_workspace(nullptr, 0);
  ctx.deallocate(memory, bytes);
  generator g{1, 5};
  ctx.workspace_for([&] { uniform(ctx, g, tensor_view(out)); });
  CHECK(g.stream == 5);
  uniform(ctx, g, tensor_view(out));
  CHECK(g.stream == 6);
}

TEST_CASE("prepared calls: validated and planned once, run many times") {
  context ctx({.threads = 2});
  std::vector<float> x(300 * 64, 0.75f), y(64 * 50), product(300 * 50), row(300);
  generator g{.seed = 5};
  const const_tensor_view a(x.data(), {300, 64}), b(y.data(), {64, 50});
  const tensor_view c(product.data(), {300, 50});
  prepared_calls step = ctx.prepare([&] {
    uniform(ctx, g, tensor_view(y.data(), {64, 50}));
    matmul(ctx, a, b, c);
    sum(ctx, c, row, {.axis = 1});
  });
  CHECK(g.stream == 0);
  CHECK(product == std::vector<float>(300 * 50));  // nothing ran
  CHECK(step.workspace_bytes() == ctx.workspace_for([&] { matmul(ctx, a, b, c); }));
  context other({.threads = 1});
  for (const float value : {0.75f, 3.0f}) {
    std::fill(x.begin(), x.end(), value);
    std::fill(y.begin(), y.end(), 0.0f);
    step.run();
    std::vector<float> again(300);
    std::vector<float> weights(64 * 50), whole(300 * 50);
    generator same{.seed = 5};
    uniform(other, same, tensor_view(weights.data(), {64, 50}));
    matmul(other, a, const_tensor_view(weights.data(), {64, 50}), tensor_view(whole.data(), {300, 50}));
    sum(other, const_tensor_view(whole.data(), {300, 50}), again, {.axis = 1});
    CHECK(row == again);
  }
  prepared_calls moved = std::move(step);
  context owner = std::move(ctx);  // they refer to what the context holds
  std::fill(row.begin(), row.end(), 0.0f);
  moved.run();
  CHECK(row[299] != 0);
  CHECK_THROWS(owner.prepare([&] { matmul(owner, a, a, c); }));
  sum(owner, c, row, {.axis = 1});  // and the failed one has left nothing behind
  CHECK(owner.workspace_for([] {}) == 0);
}

// Counts the bytes that it has given out.
struct counting_allocator final : allocator {
  std::size_t live = 0;
  void* allocate(std::size_t bytes, const device&, void*) override {
    live += bytes;
    return ::operator new(bytes, std::align_val_t(256));
  }
  void deallocate(void* data, std::size_t bytes, const device&, void*) noexcept override {
    live -= bytes;
    ::operator delete(data, std::align_val_t(256));
  }
};

TEST_CASE("a tensor owns memory of its context's allocator") {
  counting_allocator memory;
  {
    context ctx({.threads = 1, .memory = &memory}), later({.threads = 1});
    const std::size_t before = memory.live;
    const auto bytes = [&] { return memory.live - before; };
    tensor x(ctx, std::vector{1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {2, 3});
    tensor y(ctx, dtype::f32, {6});
    CHECK(bytes() == 48);
    CHECK_THROWS(tensor(ctx, std::vector{1.0f}, {2}));
    const tensor none(ctx, dtype::f64, {0, 3});
    CHECK(none.shape() == sizes{0, 3});
    CHECK(none.to_vector<double>().empty());
    CHECK(bytes() == 48);

    // Moved: the memory goes along, and what it replaces is freed at once.
    const void* const data = x.view().data();
    const tensor& left = x;
    tensor z = std::move(x);
    CHECK(z.view().data() == data);
    CHECK(left.count() == 0);
    CHECK_FALSE(left.view());
    CHECK(bytes() == 48);
    y = std::move(z);
    CHECK(bytes() == 24);
    tensor& same = y;
    y = std::move(same);
    CHECK(y.view().data() == data);
    CHECK(y.shape() == sizes{2, 3});
    later = std::move(ctx);  // it stays the tensors' context
    CHECK(y.to_vector<float>() == std::vector{1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f});
    x = std::move(y);
    CHECK(bytes() == 24);
  }
  CHECK(memory.live == 0);
}

TEST_CASE("a tensor on every device: from the host, as an operand and a result, to the host") {
  const std::vector<float> values = patterns(35, 4);
  for (const device_info& d : devices()) {
    CAPTURE(d.name);
    context ctx({.where = d.where});
    const tensor x(ctx, values, {5, 7});
    CHECK(x.type() == dtype::f32);
    CHECK(x.shape() == sizes{5, 7});
    CHECK(x.count() == 35);
    CHECK(x.view().where() == d.where);
    CHECK(x.view().strides() == sizes{7, 1});
    tensor y(ctx, dtype::f32, {7, 5});
    neg(ctx, x.view().transpose(), y);
    abs(ctx, y, y);
    const std::vector<float> got = y.to_vector<float>();
    for (std::size_t i = 0; i < 35; ++i) {
      CHECK(bits(got[i % 7 * 5 + i / 7]) == (bits(values[i]) & 0x7fffffff));
    }
    y.copy_from(std::span(values));
    std::array<float, 35> back;
    y.copy_to(back);
    for (std::size_t i = 0; i < 35; ++i) CHECK(bits(back[i]) == bits(values[i]));
    bool flags[2] = {};
    tensor(ctx, std::array{false, true}, {2}).copy_to(flags);
    CHECK_FALSE(flags[0]);
    CHECK(flags[1]);
  }
}

TEST_CASE("empty tensors and scalars") {
  context ctx(context_options{.threads = 2});
  float x = 2.0f;
  float out = 0.0f;
  exp(ctx, const_tensor_view(&x, sizes{}), tensor_view(&out, sizes{}));
  CHECK(bits(out) == 0x40ec7326);  // e^2 = 7.389056...
  exp(ctx, const_tensor_view(&x, sizes{0, 3}), tensor_view(&out, sizes{0, 3}));
  add(ctx, const_tensor_view(&x, sizes{0}), const_tensor_view(&x, sizes{1}), tensor_view(&out, sizes{0}));
  sum(ctx, const_tensor_view(static_cast<const float*>(nullptr), sizes{0}), tensor_view(&out, sizes{}));
  CHECK(bits(out) == 0);
  mean(ctx, const_tensor_view(static_cast<const float*>(nullptr), sizes{0}), tensor_view(&out, sizes{}));
  CHECK(bits(out) == 0x7fc00000);
}

TEST_CASE("fingerprints depend on type, shape and bytes, not on strides") {
  context ctx;
  std::vector<float> x(6);
  std::iota(x.begin(), x.end(), 1.0f);
  std::vector<float> t{1, 4, 2, 5, 3, 6};
  const auto of = [&](const_tensor_view v) { return fingerprint(ctx, std::vector{v}); };
  const std::string plain = of({x.data(), {2, 3}});
  CHECK(plain.size() == 64);
  CHECK(plain == of(const_tensor_view(t.data(), sizes{3, 2}).transpose()));
  CHECK(plain != of({x.data(), {3, 2}}));
  CHECK(plain != of({x.data(), dtype::f16, {2, 3}}));
  x[5] = std::bit_cast<float>(bits(x[5]) + 1);
  CHECK(plain != of({x.data(), {2, 3}}));
}

TEST_CASE("the dynamic layer lists every operation and infers shapes") {
  CHECK(operations().size() == ops::elementwise_rows().size() + std::size(ops::structured_rows));
  for (const op_info& op : operations()) CHECK(find(op.name) == &op);
  CHECK(find("expp") == nullptr);
  float x = 0;
  const const_tensor_view a(&x, dtype::f32, {4, 1, 2, 3}, {0, 0, 0, 0});
  const const_tensor_view b(&x, dtype::f32, {5, 3, 7}, {0, 0, 0});
  CHECK(infer(*find("matmul"), std::vector{a, b})[0].shape == sizes{4, 5, 2, 7});
  CHECK(infer(*find("add"), std::vector{a, a.slice(2, 0, 1)})[0].shape == sizes{4, 1, 2, 3});
  CHECK(infer(*find("sum"), std::vector{a}, {parse_attribute(*find("sum"), "axis", "0,-1")})[0].shape == sizes{1, 2});
  CHECK(infer(*find("argmax"), std::vector{a}, {{"keepdim", true}})[0] == tensor_spec{dtype::i64, {1, 1, 1, 1}});
  CHECK(version() == REPDL_VERSION);
  CHECK(bits_version() == 1);
}

TEST_CASE("the C ABI runs an operation on DLPack tensors") {
  repdl_context* ctx = nullptr;
  REQUIRE(repdl_context_create(nullptr, &ctx) == REPDL_OK);
  const repdl_op* op = nullptr;
  REQUIRE(repdl_op_find("sum", &op) == REPDL_OK);
  CHECK(std::string(repdl_op_describe(op)).starts_with("sum(x; axis, keepdim, dtype) = "));
  float x[6] = {0x1p127f, 0x1p-149f, -0x1p127f, 1, 2, 3};
  float out[2];
  std::int64_t shape[] = {2, 3};
  std::int64_t out_shape[] = {2};
  DLTensor in{x, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
  DLTensor to{out, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, out_shape, nullptr, 0};
  const auto* pin = reinterpret_cast<const repdl_tensor*>(&in);
  const auto* pto = reinterpret_cast<const repdl_tensor*>(&to);
  std::int64_t axis[] = {1};
  repdl_attribute a{"axis", REPDL_INTEGERS, 1, {}};
  a.value.integers = axis;
  repdl_data_type type;
  std::int32_t ndim = 0;
  std::int64_t inferred[8];
  REQUIRE(repdl_infer(op, &pin, 1, &a, 1, 0, &type, &ndim, inferred) == REPDL_OK);
  CHECK(ndim == 1);
  CHECK(inferred[0] == 2);
  std::size_t bytes = 0;
  REQUIRE(repdl_workspace(ctx, op, &pin, 1, &pto, 1, &a, 1, &bytes) == REPDL_OK);
  REQUIRE(repdl_run(ctx, op, &pin, 1, &pto, 1, &a, 1) == REPDL_OK);
  CHECK(bits(out[0]) == 1);
  CHECK(out[1] == 6.0f);
  std::int64_t decided[4];
  REQUIRE(repdl_context_statistics(ctx, decided) == REPDL_OK);
  CHECK(decided[0] + decided[1] + decided[2] + decided[3] == 2);
  char hex[65];
  REQUIRE(repdl_fingerprint(ctx, &pto, 1, hex) == REPDL_OK);
  CHECK(std::strlen(hex) == 64);

  // In memory of the context, planned once and run twice.
  void* memory = nullptr;
  REQUIRE(repdl_allocate(ctx, sizeof x, &memory) == REPDL_OK);
  CHECK(reinterpret_cast<std::uintptr_t>(memory) % 256 == 0);
  in.data = memory;
  repdl_prepared* call = nullptr;
  REQUIRE(repdl_prepare(ctx, op, &pin, 1, &pto, 1, &a, 1, &call) == REPDL_OK);
  in = {};
  to = {};
  for (const float scale : {2.0f, 4.0f}) {
    for (int i = 3; i < 6; ++i) x[i] = scale * static_cast<float>(i);
    REQUIRE(repdl_copy(ctx, memory, x, sizeof x) == REPDL_OK);
    REQUIRE(repdl_prepared_run(call) == REPDL_OK);
    CHECK(out[1] == scale * 12);
  }
  repdl_prepared_destroy(call);
  repdl_prepared_destroy(nullptr);
  repdl_deallocate(ctx, memory, sizeof x);
  repdl_context_destroy(ctx);
}

TEST_CASE("the C ABI takes options of an earlier version, which end sooner") {
  const repdl_op* op = nullptr;
  REQUIRE(repdl_op_find("sum", &op) == REPDL_OK);
  float x[2] = {1, 2}, out = 0;
  std::int64_t shape[] = {2};
  const repdl_tensor in{x, {1, 0}, 1, {2, 32, 1}, shape, nullptr, 0},
      to{&out, {1, 0}, 0, {2, 32, 1}, nullptr, nullptr, 0};
  const repdl_tensor *pin = &in, *pto = &to;
  const auto decided_exactly = [&](std::size_t size) {
    repdl_context_options o{};
    o.size = size;
    o.first_tier = 3;
    o.isa = "sse9";
    std::vector<std::byte> earlier(size);  // behind them is no memory
    std::memcpy(earlier.data(), &o, size);
    repdl_context* ctx = nullptr;
    REQUIRE(repdl_context_create(reinterpret_cast<const repdl_context_options*>(earlier.data()), &ctx) == REPDL_OK);
    REQUIRE(repdl_run(ctx, op, &pin, 1, &pto, 1, nullptr, 0) == REPDL_OK);
    CHECK(out == 3);
    std::int64_t decided[4];
    REQUIRE(repdl_context_statistics(ctx, decided) == REPDL_OK);
    repdl_context_destroy(ctx);
    return decided[3];
  };
  CHECK(decided_exactly(offsetof(repdl_context_options, isa)) == 1);
  CHECK(decided_exactly(offsetof(repdl_context_options, first_tier)) == 0);
  CHECK(decided_exactly(sizeof(std::size_t)) == 0);
}

// What a caller's memory was asked for.
struct counted_memory {
  std::size_t given = 0, taken_back = 0;
  bool none = false;
};

TEST_CASE("the C ABI takes its workspaces from the caller") {
  const repdl_op* op = nullptr;
  REQUIRE(repdl_op_find("matmul", &op) == REPDL_OK);
  std::vector<float> a(64 * 64, 1), out(64 * 64);
  std::int64_t shape[] = {64, 64};
  const repdl_tensor in{a.data(), {1, 0}, 2, {2, 32, 1}, shape, nullptr, 0},
      to{out.data(), {1, 0}, 2, {2, 32, 1}, shape, nullptr, 0};
  const repdl_tensor *pin[] = {&in, &in}, *pto = &to;
  counted_memory memory;
  repdl_context_options o{};
  o.size = sizeof o;
  o.memory_state = &memory;
  o.allocate = [](void* state, std::size_t bytes, repdl_device where, void* stream) -> void* {
    CHECK(where.device_type == 1);
    CHECK(stream == nullptr);
    auto& m = *static_cast<counted_memory*>(state);
    if (m.none) return nullptr;
    m.given += bytes;
    return ::operator new (bytes, std::align_val_t{256});
  };
  o.deallocate = [](void* state, void* data, std::size_t bytes, repdl_device, void*) {
    static_cast<counted_memory*>(state)->taken_back += bytes;
    ::operator delete (data, std::align_val_t{256});
  };
  std::size_t bytes = 0;
  for (const bool none : {false, true}) {
    memory.none = none;
    repdl_context* ctx = nullptr;
    REQUIRE(repdl_context_create(&o, &ctx) == REPDL_OK);
    REQUIRE(repdl_workspace(ctx, op, pin, 2, &pto, 1, nullptr, 0, &bytes) == REPDL_OK);
    REQUIRE(bytes > 0);
    CHECK(repdl_run(ctx, op, pin, 2, &pto, 1, nullptr, 0) == (none ? REPDL_OUT_OF_MEMORY : REPDL_OK));
    repdl_context_destroy(ctx);
  }
  CHECK(memory.given >= bytes);
  CHECK(memory.given == memory.taken_back);
  CHECK(out[0] == 64);
}

TEST_SUITE_END();
