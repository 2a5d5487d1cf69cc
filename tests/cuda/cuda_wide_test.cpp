// Views of more than 2^31 elements, and views that reach further than 2^31 elements, on CUDA: indices and offsets that
// 32 bits do not hold. The same code runs with small sizes on the CPU, so that a machine without a GPU checks the test.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#if defined(REPDL_WITH_CUDA)
#include <cuda_runtime_api.h>
#endif

#include "librepdl/dynamic.hpp"
#include "librepdl/ops.hpp"
#include "reference/digests.hpp"
#include "reference/random/philox.hpp"
#include "tests/helpers/placed_tensor.hpp"

using namespace repdl;
using reference::array;
using reference::digest_case;
using reference::shape_list;
using tests::gpu;
using tests::has_gpu;

namespace {

constexpr std::int64_t gib = std::int64_t{1} << 30;

// Says so where the GPU or the host has less memory than needed.
bool has_memory(std::int64_t on_device, std::int64_t on_host) {
  std::size_t free = 0;
#if defined(REPDL_WITH_CUDA)
  std::size_t all = 0;
  if (cudaMemGetInfo(&free, &all) != cudaSuccess) free = 0;
#endif
  std::int64_t available = 0;
  std::ifstream f("/proc/meminfo");
  for (std::string word; f >> word;) {
    if (word == "MemAvailable:") f >> available;
  }
  available *= 1024;
  if (static_cast<std::int64_t>(free) >= on_device && available >= on_host) return true;
  MESSAGE("skipped: needs " << on_device / gib << " GiB on the GPU and " << on_host / gib
                            << " GiB on the host, free are " << static_cast<std::int64_t>(free) / gib << " and "
                            << available / gib);
  return false;
}

// Memory on the host and as much on a context's device.
class twin_memory {
 public:
  twin_memory(context& ctx, std::int64_t bytes)
      : ctx_(ctx),
        bytes_(static_cast<std::size_t>(bytes)),
        host_(new std::byte[bytes_]),  // not initialised: that would take a second per 4 GiB
        device_(ctx, dtype::boolean, {bytes_}) {}

  template <class T>
  T* host() const {
    return reinterpret_cast<T*>(host_.get());
  }
  void* device() { return device_.view().data(); }
  void upload() { ctx_.copy(device(), host_.get(), bytes_); }
  // The first byte in which the device's memory differs from the host's; -1: none.
  std::int64_t first_difference() const {
    constexpr std::size_t most = std::size_t{1} << 28, part = std::size_t{1} << 22;
    std::vector<std::byte> piece(std::min(most, bytes_));
    for (std::size_t at = 0; at < bytes_; at += most) {
      const std::size_t n = std::min(most, bytes_ - at);
      ctx_.copy(piece.data(), static_cast<const std::byte*>(device_.view().data()) + at, n);
      const auto parts = static_cast<std::int64_t>((n + part - 1) / part);
      bool same = true;
#pragma omp parallel for reduction(&& : same)
      for (std::int64_t i = 0; i < parts; ++i) {
        const std::size_t first = static_cast<std::size_t>(i) * part;
        same = same && std::memcmp(piece.data() + first, host_.get() + at + first, std::min(part, n - first)) == 0;
      }
      if (same) continue;
      for (std::size_t i = 0; i < n; ++i) {
        if (piece[i] != host_[at + i]) return static_cast<std::int64_t>(at + i);
      }
    }
    return -1;
  }

 private:
  context& ctx_;
  std::size_t bytes_;
  std::unique_ptr<std::byte[]> host_;
  tensor device_;  // bytes
};

// 2 x 16 x 3 images of h x w elements in images of (h + 1) x (w + 8).
struct images {
  std::int64_t h, w;

  std::int64_t row() const { return w + 8; }
  std::int64_t plane() const { return (h + 1) * row(); }
  std::int64_t elements() const { return 96 * plane(); }
  sizes shape() const { return {2, 16, 3, h, w}; }
  sizes strides() const { return {48 * plane(), 3 * plane(), plane(), row(), 1}; }
  // Rows 0 to h, columns `column` to column + w.
  tensor_view view(void* data, dtype t, const device& where, std::int64_t column = 4) const {
    return {static_cast<std::byte*>(data) + column * static_cast<std::int64_t>(size_of(t)), t, shape(), strides(),
            where};
  }
  // The same elements backwards along axes 0 and 2: then no two axes merge.
  const_tensor_view turned(const void* data, const device& where) const {
    const float* first = static_cast<const float*>(data) + 4 + 48 * plane() + 2 * plane();
    sizes s = strides();
    s[0] = -s[0];
    s[2] = -s[2];
    return {first, dtype::f32, shape(), s, where};
  }
  // Of an image that is one of the 2 x 16.
  template <class View>
  static View part(const View& v, std::int64_t i) {
    return v.slice(0, i / 16, i / 16 + 1).slice(1, i % 16, i % 16 + 1);
  }
};

// The pairs of neighbours along the last axis: one axis of size 2 more, twice the elements in the same memory.
const_tensor_view pairs(const const_tensor_view& v) {
  sizes shape = v.shape(), strides = v.strides();
  shape.push_back(2);
  strides.push_back(1);
  return {v.data(), v.type(), shape, strides, v.where()};
}

float some_float(std::int64_t i) {
  // 24 bits of a product with the golden ratio's fraction, exponents -8 to 7, both signs.
  const std::uint64_t x = static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15u;
  return std::bit_cast<float>(
      static_cast<std::uint32_t>((x >> 63) << 31 | (119 + (x >> 59) % 16) << 23 | (x >> 36 & 0x7fffff)));
}

class wide_checks {
 public:
  // `more` has the greatest number of images, `some` fewer rows.
  wide_checks(context& ctx, context& cpu, const images& more, const images& some)
      : ctx_(ctx), cpu_(cpu), more_(more), some_(some), in_(ctx, more.elements() * 4) {
    float* x = in_.host<float>();
    const std::int64_t n = more.elements();
#pragma omp parallel for
    for (std::int64_t i = 0; i < n; ++i) x[i] = some_float(i);
    in_.upload();
  }

  void run() {
    elementwise("relu", more_, dtype::f32, 1);
    elementwise("fma", more_, dtype::f32, 3);
    elementwise("exp", some_, dtype::f32, 1);
    elementwise("add", some_, dtype::f32, 2);
    elementwise("convert", some_, dtype::bf16, 1);
    reduce_all();
    by_parts("sum", some_, dtype::f32, [&](context& c, const const_tensor_view& x, const tensor_view& out) {
      sum(c, pairs(x), out, {.axis = sizes{5}});
    });
    by_parts("argmax", some_, dtype::i64, [&](context& c, const const_tensor_view& x, const tensor_view& out) {
      argmax(c, pairs(x), out, {.axis = sizes{5}});
    });
    by_parts("softmax", some_, dtype::f32,
             [&](context& c, const const_tensor_view& x, const tensor_view& out) { softmax(c, x, out); });
    many_rows();
    whole("uniform", dtype::f32, [](context& c, const const_tensor_view&, const tensor_view& out) {
      generator g{.seed = 5, .stream = 6};
      uniform(c, g, out);
    });
    for (const dtype t : {dtype::f16, dtype::bf16}) {
      whole("normal", t, [](context& c, const const_tensor_view&, const tensor_view& out) {
        generator g{.seed = 7, .stream = 8};
        normal(c, g, out);
      });
    }
    whole("exponential", dtype::bf16, [](context& c, const const_tensor_view&, const tensor_view& out) {
      generator g{.seed = 7, .stream = 9};
      exponential(c, g, out);
    });
    whole("dropout", dtype::f32, [](context& c, const const_tensor_view& x, const tensor_view& out) {
      generator g{.seed = 9, .stream = 10};
      dropout(c, g, x, out, 0.25);
    });
  }

 private:
  using call_type = std::function<void(context&, const const_tensor_view&, const tensor_view&)>;

  template <class T>
  static void fill(const twin_memory& m, std::int64_t n, T value) {
    T* p = m.host<T>();
#pragma omp parallel for
    for (std::int64_t k = 0; k < n; ++k) p[k] = value;
  }

  // Memory for results, every element of it one number that no result is.
  std::unique_ptr<twin_memory> results(const images& i, dtype t) {
    const std::int64_t n = i.elements();
    auto m = std::make_unique<twin_memory>(ctx_, n * static_cast<std::int64_t>(size_of(t)));
    const tensor_view all(m->device(), t, {n}, ctx_.where());
    if (t == dtype::i64) {
      generator g;
      randint(ctx_, g, all, {.low = -768, .high = -767});
      fill<std::int64_t>(*m, n, -768);
    } else {
      constexpr float number = -768;
      twin_memory one(ctx_, sizeof number);
      *one.host<float>() = number;
      one.upload();
      convert(ctx_, const_tensor_view(one.device(), dtype::f32, {n}, {0}, ctx_.where()), all);
      ctx_.synchronize();
      if (t == dtype::f32) fill<float>(*m, n, number);
      if (t == dtype::bf16) fill<std::uint16_t>(*m, n, 0xc440);
      if (t == dtype::f16) fill<std::uint16_t>(*m, n, 0xe200);
    }
    return m;
  }

  // One call on the device; on the CPU one for each of the 32 parts, whose indices are small.
  void by_parts(const std::string& name, const images& i, dtype t, const call_type& call) {
    CAPTURE(name);
    const auto out = results(i, t);
    call(ctx_, i.turned(in_.device(), ctx_.where()), i.view(out->device(), t, ctx_.where()));
    const const_tensor_view x = i.turned(in_.host<float>(), {});
    const tensor_view y = i.view(out->host<void>(), t, {});
    for (std::int64_t k = 0; k < 32; ++k) call(cpu_, images::part(x, k), images::part(y, k));
    CHECK(out->first_difference() == -1);
  }

  void elementwise(const std::string& name, const images& i, dtype t, std::size_t arity) {
    CAPTURE(name);
    const auto out = results(i, t);
    attributes attrs;
    if (arity == 1 && t != dtype::f32) attrs = {{"dtype", std::string(name_of(t))}};
    const auto operands = [&](void* data, const device& where) {
      std::vector<const_tensor_view> v{i.turned(data, where), i.view(data, dtype::f32, where),
                                       i.view(data, dtype::f32, where, 5)};
      v.resize(arity);
      return v;
    };
    const tensor_view y = i.view(out->device(), t, ctx_.where());
    call(ctx_, *find(name), operands(in_.device(), ctx_.where()), {&y, 1}, attrs);
    const auto x = operands(in_.host<void>(), {});
    for (std::int64_t k = 0; k < 32; ++k) {
      std::vector<const_tensor_view> part;
      for (const const_tensor_view& v : x) part.push_back(images::part(v, k));
      const tensor_view to = images::part(i.view(out->host<void>(), t, {}), k);
      call(cpu_, *find(name), part, {&to, 1}, attrs);
    }
    CHECK(out->first_difference() == -1);
  }

  // Elements depend on their index in the whole tensor: the CPU makes one call, too.
  void whole(const std::string& name, dtype t, const call_type& call) {
    CAPTURE(name);
    const auto out = results(some_, t);
    call(ctx_, some_.turned(in_.device(), ctx_.where()), some_.view(out->device(), t, ctx_.where()));
    const tensor_view y = some_.view(out->host<void>(), t, {});
    call(cpu_, some_.turned(in_.host<float>(), {}), y);
    CHECK(out->first_difference() == -1);
    if (name != "uniform") return;
    // The contract's words, around the powers of two and at the end.
    const std::int64_t n = y.count();
    std::set<std::int64_t> indices{0, n - 1, n / 2};
    for (const int e : {2, 5, 30, 31, 32}) {
      for (const std::int64_t k : {-1, 0, 1}) {
        if ((std::int64_t{1} << e) + k < n) indices.insert((std::int64_t{1} << e) + k);
      }
    }
    for (const std::int64_t index : indices) {
      CAPTURE(index);
      std::int64_t offset = 0, rest = index;
      for (int a = 5; a-- > 0; rest /= y.shape()[a]) offset += rest % y.shape()[a] * y.strides()[a];
      const reference::philox_block b = reference::philox(5, 6, static_cast<std::uint64_t>(index) / 4);
      CHECK(static_cast<const float*>(y.data())[offset] == static_cast<float>(b.w[index % 4] >> 8) * 0x1p-24f);
    }
  }

  // All elements to one result.
  void reduce_all() {
    const const_tensor_view x = more_.turned(in_.device(), ctx_.where()), host = more_.turned(in_.host<float>(), {});
    const auto device_result = [&]<class T>(T, const auto& call) {
      tensor out(ctx_, dtype_of<T>, {});
      call(out.view());
      return out.to_vector<T>()[0];
    };
    float expected = 0;
    sum(cpu_, host, tensor_view(&expected, {}));
    CHECK(std::bit_cast<std::uint32_t>(device_result(0.0f, [&](const tensor_view& out) { sum(ctx_, x, out); })) ==
          std::bit_cast<std::uint32_t>(expected));
    // The first of the greatest of the parts' first greatest.
    float greatest = -INFINITY;
    std::int64_t at = -1;
    for (std::int64_t k = 0; k < 32; ++k) {
      const const_tensor_view part = images::part(host, k);
      float value = 0;
      std::int64_t index = 0;
      max(cpu_, part, tensor_view(&value, {}));
      argmax(cpu_, part, tensor_view(&index, {}));
      if (value > greatest) {
        greatest = value;
        at = k * part.count() + index;
      }
    }
    CHECK(device_result(0.0f, [&](const tensor_view& out) { max(ctx_, x, out); }) == greatest);
    CHECK(device_result(std::int64_t{0}, [&](const tensor_view& out) { argmax(ctx_, x, out); }) == at);
  }

  // More than 2^31 rows of two elements; all 32 parts have the same input, so that the CPU has one to compute.
  void many_rows() {
    const auto repeated = [&](const void* data, const device& where) {
      const const_tensor_view x = some_.turned(data, where);
      sizes strides = x.strides();
      strides[0] = strides[1] = 0;
      return pairs(const_tensor_view(x.data(), dtype::f32, x.shape(), strides, where));
    };
    const auto out = results(some_, dtype::f32);
    logsumexp(ctx_, repeated(in_.device(), ctx_.where()), some_.view(out->device(), dtype::f32, ctx_.where()),
              {.axis = sizes{5}});
    const tensor_view y = some_.view(out->host<void>(), dtype::f32, {});
    logsumexp(cpu_, images::part(repeated(in_.host<float>(), {}), 0), images::part(y, 0), {.axis = sizes{5}});
    for (std::int64_t k = 1; k < 32; ++k) convert(cpu_, images::part(y, 0), images::part(y, k));
    CHECK(out->first_difference() == -1);
  }

  context& ctx_;
  context& cpu_;
  images more_, some_;
  twin_memory in_;
};

// ------------------------------------------------------------------------------------------ far apart, few elements

// A tensor whose first axis with more than one element steps so far that the whole reaches over `reach` elements.
struct far_tensor {
  tensor_spec spec;
  sizes strides;
  int axis = -1;
  std::int64_t block = 1;  // elements of one entry of the axis: they lie side by side

  far_tensor(const tensor_spec& s, std::int64_t reach) : spec(s), strides(row_major(s.shape)) {
    for (int i = 0; i < s.shape.size() && axis < 0; ++i) {
      if (s.shape[i] > 1) axis = i;
    }
    if (axis < 0) return;
    block = strides[axis];
    strides[axis] = std::max(block, reach / (s.shape[axis] - 1) + 1);
  }
  std::int64_t entries() const { return axis < 0 ? 1 : spec.shape[axis]; }
  std::int64_t bytes() const {
    const std::int64_t n = axis < 0 ? 1 : strides[axis] * (entries() - 1) + block;
    return (n * static_cast<std::int64_t>(size_of(spec.type)) + 511) / 256 * 256;
  }
  // Calls use(place in the tensor's memory, place in contiguous memory, bytes) for each entry.
  template <class Use>
  void for_each_block(const Use& use) const {
    const std::size_t size = size_of(spec.type);
    for (std::int64_t i = 0; i < entries(); ++i) {
      use(static_cast<std::size_t>(axis < 0 ? 0 : i * strides[axis]) * size, static_cast<std::size_t>(i * block) * size,
          static_cast<std::size_t>(block) * size);
    }
  }
};

bool is_near(const shape_list& s) {
  if (std::any_of(s.begin(), s.end(), [](std::int64_t n) { return n == 0; })) return false;
  for (const std::int64_t n : s) {
    if (n > 1) return n <= 128;
  }
  return true;
}

// Digest cases of every operation whose tensors can be drawn apart, and calls with as many axes as matter.
std::vector<digest_case> far_cases() {
  std::vector<digest_case> chosen;
  for (const op_info& op : operations()) {
    std::vector<digest_case> of_op;
    for (const auto& [c, digest] : reference::read_cases(REPDL_SOURCE_DIR "/docs/digests", op)) {
      bool near = op.family != "elementwise" && op.family != "convert" && op.family != "optimizer" && c.op != "dot" &&
                  c.op != "permutation";
      for (const shape_list& s : c.shapes) near = near && (s == reference::absent_shape || is_near(s));
      for (const attribute& a : c.attrs) {
        if (a.name == "shape") near = near && is_near(std::get<std::vector<std::int64_t>>(a.value));
      }
      if (near) of_op.push_back(c);
    }
    if (of_op.empty()) {
      digest_case c;
      c.op = op.name;
      c.kind = reference::sample_class::normal_range;
      c.seed = 3;
      c.shapes.assign(op.in.size(), op.name == "dot" ? shape_list{23} : shape_list{3, 5, 2, 7, 6});
      for (const operand_info& o : op.in) {
        const bool takes_f32 = std::find(o.types.begin(), o.types.end(), dtype::f32) != o.types.end();
        c.formats.push_back(takes_f32 ? dtype::f32 : o.types.front());
      }
      c.formats.push_back(dtype::f32);
      if (op.name == "convert") {
        c.formats = {dtype::f64, dtype::f16};
        c.attrs = {{"dtype", std::string("f16")}};
      }
      if (op.name == "sgd") c.attrs = {{"momentum", 0.9}};
      if (op.name == "clip_grad_norm") c.attrs = {{"max_norm", 0.7}};
      if (op.name == "permutation") c.attrs = {{"n", std::int64_t{57}}};
      of_op.push_back(c);
    }
    const std::size_t step = std::max<std::size_t>(1, of_op.size() / 3);
    for (std::size_t i = 0; i < of_op.size() && i < 3 * step; i += step) chosen.push_back(of_op[i]);
  }
  return chosen;
}

// The memory that a case takes with tensors that reach so far.
struct far_call {
  std::vector<array> values;
  std::vector<far_tensor> in, out;
  std::int64_t bytes = 0;

  far_call(const digest_case& c, std::int64_t reach) : values(reference::inputs(c)) {
    std::vector<const_tensor_view> views;
    for (const array& a : values) {
      views.push_back(a.absent() ? const_tensor_view()
                                 : const_tensor_view(a.bytes.data(), a.type, tests::to_sizes(a.shape)));
      in.emplace_back(tensor_spec{a.type, a.absent() ? sizes{} : tests::to_sizes(a.shape)}, reach);
      bytes += in.back().bytes();
    }
    for (const tensor_spec& s : infer(*find(c.op), views, c.attrs)) bytes += out.emplace_back(s, reach).bytes();
  }
};

std::vector<array> run_far(context& ctx, const digest_case& c, const far_call& f, tensor& memory) {
  std::vector<const_tensor_view> in;
  std::vector<tensor_view> out;
  auto* at = static_cast<std::byte*>(memory.view().data());
  for (std::size_t i = 0; i < f.in.size(); ++i) {
    const far_tensor& t = f.in[i];
    if (f.values[i].absent()) {
      in.emplace_back();
      continue;
    }
    t.for_each_block([&](std::size_t far, std::size_t near, std::size_t n) {
      ctx.copy(at + far, f.values[i].bytes.data() + near, n);
    });
    in.emplace_back(at, t.spec.type, t.spec.shape, t.strides, ctx.where());
    at += t.bytes();
  }
  std::byte* const results = at;
  for (const far_tensor& t : f.out) {
    out.emplace_back(at, t.spec.type, t.spec.shape, t.strides, ctx.where());
    at += t.bytes();
  }
  call(ctx, *find(c.op), in, out, c.attrs);
  std::vector<array> got;
  at = results;
  for (const far_tensor& t : f.out) {
    array& a = got.emplace_back(t.spec.type, shape_list(t.spec.shape.begin(), t.spec.shape.end()));
    t.for_each_block(
        [&](std::size_t far, std::size_t near, std::size_t n) { ctx.copy(a.bytes.data() + near, at + far, n); });
    at += t.bytes();
  }
  return got;
}

constexpr std::int64_t far_reach = (std::int64_t{1} << 31) + 12345, far_bytes = 64 * gib;

// The cases that need at most `most` bytes, and what they need.
std::vector<digest_case> far_cases_within(std::int64_t reach, std::int64_t most, std::int64_t& bytes) {
  std::vector<digest_case> within;
  std::set<std::string> ops;
  for (const digest_case& c : far_cases()) {
    const far_call f(c, reach);
    if (f.bytes > most) continue;
    bytes = std::max(bytes, f.bytes);
    within.push_back(c);
    ops.insert(c.op);
  }
  CHECK(ops.size() == operations().size());
  return within;
}

// Returns how many calls were made.
int check_far(context& ctx, std::int64_t reach, std::int64_t most) {
  context cpu;
  std::int64_t bytes = 0;
  const std::vector<digest_case> cases = far_cases_within(reach, most, bytes);
  constexpr std::int64_t compact_bytes = std::int64_t{1} << 26;
  tensor memory(ctx, dtype::boolean, {bytes}), compact(cpu, dtype::boolean, {compact_bytes});
  int calls = 0;
  for (const digest_case& c : cases) {
    const far_call f(c, reach), near(c, 0);
    REQUIRE(near.bytes <= compact_bytes);
    const bool same = run_far(ctx, c, f, memory) == run_far(cpu, c, near, compact);
    CHECK_MESSAGE(same, reference::to_text(c));
    ++calls;
  }
  return calls;
}

}  // namespace

TEST_SUITE_BEGIN("portable");

TEST_CASE("wide: the checks of views of more than 2^31 elements, with few" * doctest::test_suite("")) {
  context one({.threads = 1});
  twin_memory m(one, 1001);
  for (int i = 0; i < 1001; ++i) m.host<std::byte>()[i] = static_cast<std::byte>(i);
  m.upload();
  CHECK(m.first_difference() == -1);
  m.host<std::byte>()[777] ^= std::byte{1};
  CHECK(m.first_difference() == 777);
  std::int64_t bytes = 0;
  CHECK(far_cases_within(far_reach, far_bytes, bytes).size() > 100);
  for (const isa_info& i : instruction_sets()) {
    if (!i.available) continue;
    CAPTURE(i.name);
    context ctx({.threads = 2, .isa = i.name});
    context cpu({.threads = 1, .isa = instruction_sets()[0].name});
    wide_checks(ctx, cpu, {5, 12}, {3, 12}).run();
    CHECK(check_far(ctx, 100000, std::int64_t{1} << 26) > 100);
  }
}

TEST_CASE("cuda: views of more than 2^31 elements") {
  // The largest: the input and i64 results of fewer rows.
  const images more{5700, 5792}, some{3900, 5792};
  const std::int64_t bytes = more.elements() * 4 + std::max(more.elements() * 4, some.elements() * 8);
  if (!has_gpu() || !has_memory(bytes + 8 * gib, bytes + 8 * gib)) return;
  CHECK(element_count(some.shape()) > std::int64_t{1} << 31);
  context ctx({.where = gpu});
  context cpu;
  wide_checks(ctx, cpu, more, some).run();
}

TEST_CASE("cuda: every operation on views that reach further than 2^31 elements") {
  if (!has_gpu() || !has_memory(far_bytes + 8 * gib, 2 * gib)) return;
  context ctx({.where = gpu});
  CHECK(check_far(ctx, far_reach, far_bytes) > 100);
}

TEST_SUITE_END();
