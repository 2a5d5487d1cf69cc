// Lists of calls: whatever their tensors are and however they depend on each other, the bits and statistics are those of the calls one
// after the other.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "librepdl/librepdl.h"
#include "librepdl/librepdl.hpp"
#include "librepdl/ops/registry.hpp"
#include "librepdl/plan/call_list.hpp"

using namespace repdl;

namespace {

struct named_context {
  std::string name;
  context ctx;
};

// Every instruction set and GPU, from each tier.
std::vector<named_context> contexts() {
  std::vector<named_context> all;
  const auto add = [&](std::string name, context_options o) {
    for (const tier t : {tier::proved, tier::double_double, tier::exact}) {
      o.first_tier = t;
      all.push_back({name + " from tier " + std::to_string(static_cast<int>(t)), context(o)});
    }
  };
  for (const isa_info& i : instruction_sets()) {
    if (i.available) add(i.name, {.threads = 2, .isa = i.name});
  }
  for (const device_info& d : devices()) {
    if (d.where.kind == device_kind::cuda) add(name_of(d.where), {.where = d.where});
  }
  return all;
}

// A tensor in an arena of bytes.
struct place {
  dtype type;
  std::size_t offset;
  sizes shape, strides;
};
struct listed {
  std::vector<place> in;
  place out;
  attributes attrs;
};

class arena {
 public:
  explicit arena(std::uint32_t seed) : random_(seed) {}

  // A list of calls of an operation, some of which read or write what others wrote.
  std::vector<listed> list_of(const ops::elementwise_row& row, dtype format, int count) {
    static const sizes shapes[] = {{}, {1}, {5}, {1023}, {1024}, {1025}, {3, 700}, {0}, {17, 9}, {2, 3, 5}, {4100}};
    std::vector<listed> calls;
    for (int c = 0; c < count; ++c) {
      const sizes shape = shapes[below(std::size(shapes))];
      listed call;
      for (int k = 0; k < row.arity; ++k) {
        const bool broadcast = k > 0 && below(6) == 0;
        call.in.push_back(somewhere(row.operand_type(k, format), broadcast ? sizes{} : shape));
      }
      call.out = somewhere(row.result_type(format), shape);
      if (below(3) == 0 && call.in[0].type == call.out.type) call.out = call.in[0];  // in place
      if (!calls.empty() && below(8) == 0) {
        const place& before = calls[below(calls.size())].out;
        if (before.type == call.in[0].type && before.shape == shape) call.in[0] = before;
        if (before.type == call.out.type && before.shape == shape && below(2) == 0) call.out = before;
      }
      if (row.options.count() > 0 && below(4) != 0)
        call.attrs.push_back({std::string(row.options.all[0].name), below(8) == 0 ? 0.75 : 0.3});
      calls.push_back(call);
    }
    return calls;
  }
  std::vector<std::byte> bytes() {
    std::vector<std::byte> all(used_ + 64);
    for (std::byte& b : all) b = static_cast<std::byte>(random_());
    return all;
  }
  // Of numbers near 1 in a format: results that rounding tests leave undecided, too.
  void put_numbers(std::vector<std::byte>& all, const std::vector<listed>& calls) {
    for (const listed& c : calls) {
      for (const place& p : c.in) {
        if (p.type != dtype::f32 || p.shape.empty()) continue;
        const std::int64_t n = std::min<std::int64_t>(40, element_count(p.shape));
        for (std::int64_t i = 0; i < n; ++i) {
          const float x = static_cast<float>(static_cast<int>(below(64)) - 32) / 8;
          std::memcpy(all.data() + p.offset + static_cast<std::size_t>(i) * sizeof x, &x, sizeof x);
        }
      }
    }
  }
  std::size_t below(std::size_t n) { return random_() % n; }

 private:
  place somewhere(dtype type, const sizes& shape) {
    const std::size_t size = size_of(type);
    place p{type, (used_ + 63) / 64 * 64 + (below(3) == 0 ? size : 0), shape, {}};
    std::int64_t step = below(6) == 0 ? 3 : 1, reach = 1;
    std::vector<std::int64_t> strides(static_cast<std::size_t>(shape.size()));
    const bool turned = below(5) == 0;  // the first axis innermost
    for (int i = 0; i < shape.size(); ++i) {
      const int axis = turned ? i : shape.size() - 1 - i;
      strides[static_cast<std::size_t>(axis)] = step;
      reach += step * std::max<std::int64_t>(0, shape[axis] - 1);
      step *= std::max<std::int64_t>(1, shape[axis]);
    }
    p.strides = sizes(std::span<const std::int64_t>(strides));
    used_ = p.offset + static_cast<std::size_t>(reach) * size;
    return p;
  }

  std::mt19937 random_;
  std::size_t used_ = 0;
};

// The calls' operands in memory.
struct placed_list {
  std::vector<std::vector<const_tensor_view>> in;
  std::vector<tensor_view> out;
  std::vector<list_call> calls;

  placed_list(const std::vector<listed>& list, void* memory, const device& where) {
    const auto view = [&](const place& p) {
      return tensor_view(static_cast<std::byte*>(memory) + p.offset, p.type, p.shape, p.strides, where);
    };
    for (const listed& c : list) {
      std::vector<const_tensor_view> operands;
      for (const place& p : c.in) operands.push_back(view(p));
      in.push_back(operands);
      out.push_back(view(c.out));
    }
    for (std::size_t k = 0; k < list.size(); ++k) calls.push_back({in[k], {&out[k], 1}, list[k].attrs});
  }
};

constexpr const char* operations_of_lists[] = {"add",  "sub",         "mul",        "div",     "neg",
                                               "sqrt", "maximum",     "reciprocal", "addcmul", "addcdiv",
                                               "lerp", "lerp_scalar", "exp",        "less"};

}  // namespace

TEST_CASE("lists of calls: the bits and statistics of the calls one after the other") {
  std::vector<named_context> all = contexts();
  std::uint32_t seed = 1;
  for (const char* name : operations_of_lists) {
    const op_info& op = *find(name);
    const ops::elementwise_row& row = ops::elementwise_rows()[static_cast<std::size_t>(op.id)];
    for (const dtype format : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16}) {
      arena a(++seed);
      const std::vector<listed> list = a.list_of(row, format, 24);
      std::vector<std::byte> before = a.bytes();
      a.put_numbers(before, list);
      for (named_context& c : all) {
        CAPTURE(name);
        CAPTURE(name_of(format));
        CAPTURE(c.name);
        tensor memory(c.ctx, dtype::boolean, {static_cast<std::int64_t>(before.size())});
        void* const at = memory.view().data();
        const placed_list placed(list, at, c.ctx.where());
        const auto after = [&](const auto& run) {
          c.ctx.copy(at, before.data(), before.size());
          c.ctx.reset_statistics();
          run();
          std::vector<std::byte> bytes(before.size());
          c.ctx.copy(bytes.data(), at, bytes.size());
          return bytes;
        };
        const std::vector<std::byte> expected = after([&] {
          for (const list_call& k : placed.calls) call(c.ctx, op, k.in, k.out, k.attrs);
        });
        const statistics counted = c.ctx.read_statistics();
        CHECK(after([&] { call_list(c.ctx, op, placed.calls); }) == expected);
        const statistics of_list = c.ctx.read_statistics();
        CHECK(std::equal(std::begin(counted.elements), std::end(counted.elements), of_list.elements));
        prepared_calls prepared = c.ctx.prepare([&] { call_list(c.ctx, op, placed.calls); });
        CHECK(after([&] { prepared.run(); }) == expected);
      }
    }
  }
}

TEST_CASE("lists of calls: many, large and small") {
  for (named_context& c : contexts()) {
    CAPTURE(c.name);
    const op_info& op = *find("lerp_scalar");
    std::vector<float> x(300'000), end(x.size()), expected;
    std::mt19937 random(7);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = std::ldexp(static_cast<float>(random()), static_cast<int>(random() % 40) - 52);
      end[i] = std::ldexp(static_cast<float>(random()), static_cast<int>(random() % 40) - 52);
    }
    const attributes attrs{{"weight", 0.1}};
    tensor a(c.ctx, std::span<const float>(x), {static_cast<std::int64_t>(x.size())}),
        b(c.ctx, std::span<const float>(end), {static_cast<std::int64_t>(x.size())});
    tensor whole(c.ctx, dtype::f32, {static_cast<std::int64_t>(x.size())}),
        parts(c.ctx, dtype::f32, {static_cast<std::int64_t>(x.size())});
    const const_tensor_view both[] = {a.view(), b.view()};
    const tensor_view out = whole.view();
    call(c.ctx, op, both, {&out, 1}, attrs);
    // Parts of 1, 2, ... elements: more of them than a launch takes.
    std::vector<const_tensor_view> in;
    std::vector<tensor_view> results;
    std::vector<list_call> calls;
    const std::size_t most = 770;
    in.reserve(2 * most), results.reserve(most);
    for (std::size_t first = 0, k = 1; first < x.size();
         first += k, k = std::min<std::size_t>(k + 1, x.size() - first)) {
      if (results.size() + 1 == most) k = x.size() - first;
      const auto part = [&](tensor& t) {
        return tensor_view(static_cast<float*>(t.view().data()) + first, {static_cast<std::int64_t>(k)}, c.ctx.where());
      };
      in.push_back(part(a)), in.push_back(part(b)), results.push_back(part(parts));
      calls.push_back({{&in[in.size() - 2], 2}, {&results.back(), 1}, attrs});
    }
    call_list(c.ctx, op, calls);
    std::vector<float> got(x.size());
    expected.resize(x.size());
    c.ctx.copy(got.data(), parts.view().data(), got.size() * sizeof(float));
    c.ctx.copy(expected.data(), whole.view().data(), got.size() * sizeof(float));
    CHECK(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)) == 0);
  }
}

TEST_SUITE_BEGIN("portable");

TEST_CASE("lists of calls: an error of one is thrown before any has run") {
  context ctx;
  float x[3] = {1, 2, 3}, y[3] = {}, z[2] = {};
  const const_tensor_view in(x, {3});
  const tensor_view good(y, {3}), bad(z, {2});
  const attributes none;
  const list_call calls[] = {{{&in, 1}, {&good, 1}, none}, {{&in, 1}, {&bad, 1}, none}};
  CHECK_THROWS_AS(call_list(ctx, *find("neg"), calls), error);
  CHECK(y[0] == 0);
  call_list(ctx, *find("neg"), std::span(calls).first(1));
  CHECK(y[0] == -1);
  call_list(ctx, *find("neg"), {});
  float total = 0;  // of other families, one after the other
  const tensor_view sum(&total, {});
  const list_call sums[] = {{{&in, 1}, {&sum, 1}, none}};
  call_list(ctx, *find("sum"), sums);
  CHECK(total == 6);
}

TEST_CASE("lists of calls: of the C ABI") {
  repdl_context* ctx = nullptr;
  const repdl_op* mul = nullptr;
  REQUIRE(repdl_context_create(nullptr, &ctx) == REPDL_OK);
  REQUIRE(repdl_op_find("add", &mul) == REPDL_OK);
  float x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {};
  std::int64_t size = 3;
  const auto tensor_at = [&](float* data) { return repdl_tensor{data, {1, 0}, 1, {2, 32, 1}, &size, nullptr, 0}; };
  const repdl_tensor a = tensor_at(x), b = tensor_at(x + 3), out[2] = {tensor_at(y), tensor_at(y + 3)};
  const repdl_tensor *in[4] = {&a, &b, &b, &out[0]},
                     *to[2] = {&out[0], &out[1]};  // the second call reads the first one's result
  const repdl_attribute alpha[2] = {{"alpha", REPDL_REAL, 0, {.f64 = 2}}, {"alpha", REPDL_REAL, 0, {.f64 = -1}}};
  REQUIRE(repdl_run_list(ctx, mul, 2, in, 2, to, 1, alpha, 1) == REPDL_OK);
  CHECK(y[0] == 9);
  CHECK(y[3] == -5);
  CHECK(repdl_run_list(ctx, mul, 0, nullptr, 0, nullptr, 0, nullptr, 0) == REPDL_OK);
  CHECK(repdl_run_list(ctx, mul, -1, in, 2, to, 1, alpha, 1) == REPDL_INVALID_ARGUMENT);
  CHECK(repdl_run_list(ctx, mul, 1, nullptr, 2, to, 1, nullptr, 0) == REPDL_INVALID_ARGUMENT);
  CHECK(repdl_run_list(nullptr, mul, 1, in, 2, to, 1, nullptr, 0) == REPDL_INVALID_ARGUMENT);
  repdl_context_destroy(ctx);
}

TEST_CASE("lists of calls: what depends on each other does not run together") {
  std::byte memory[4096];
  const auto plan_at = [&](std::size_t in, std::size_t out, std::int64_t count, std::int64_t stride = 1) {
    plan::map_plan p{};
    p.op = ops::op_id{0};
    p.arity = 1;
    p.rank = 1;
    p.count = p.shape[0] = count;
    p.in[0] = {memory + in, {stride}, dtype::f32, 0};
    p.out = memory + out;
    p.out_stride = {1};
    p.in_type = p.out_type = dtype::f32;
    return p;
  };
  const auto together = [](std::vector<plan::map_plan> calls) { return plan::independent(calls); };
  CHECK(together({plan_at(0, 0, 4), plan_at(16, 16, 4), plan_at(32, 32, 4)}) == 3);
  CHECK(together({plan_at(0, 64, 4), plan_at(0, 128, 4), plan_at(0, 192, 4)}) == 3);    // read by all
  CHECK(together({plan_at(0, 64, 4), plan_at(64, 128, 4), plan_at(0, 192, 4)}) == 1);   // read behind
  CHECK(together({plan_at(0, 64, 4), plan_at(128, 192, 4), plan_at(256, 0, 4)}) == 2);  // written behind
  CHECK(together({plan_at(0, 64, 4), plan_at(128, 76, 4)}) == 1);                       // one element, written twice
  CHECK(together({plan_at(0, 512, 9, 4), plan_at(128, 600, 2), plan_at(132, 4, 1)}) == 2);  // in a gap
  CHECK(together({plan_at(256, 512, 9, -4), plan_at(0, 140, 2)}) == 1);
  CHECK(together({plan_at(256, 512, 9, -4), plan_at(0, 100, 2)}) == 2);
  plan::map_plan other = plan_at(32, 32, 4);
  other.in_type = dtype::f16;
  CHECK(together({plan_at(0, 0, 4), plan_at(16, 16, 4), other}) == 2);
  other = plan_at(32, 32, 4);
  other.has_options = true;
  CHECK(together({plan_at(0, 0, 4), other}) == 1);
}

TEST_SUITE_END();
