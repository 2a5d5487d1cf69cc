// A convolution as the CUDA backend's products (backends/cuda/product/conv.hpp), without a device: the products' elements, walked in
// plain loops, have to be the terms that the definition has, each once, and what is loaded together has to lie together.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "backends/cuda/product/conv.hpp"

namespace {

using namespace repdl;
using namespace repdl::cuda::conv;

using engine = std::mt19937_64;
std::int64_t uniform(engine& g, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(g() % static_cast<std::uint64_t>(high - low + 1));
}

using tensor4 = plan::conv_plan::tensor4;
using sizes4 = std::array<std::int64_t, 4>;

// Rows of pixels, channels first or last, gaps between rows.
tensor4 tensor_of(engine& g, const float* data, const sizes4& size) {
  tensor4 t{data, {}};
  const std::int64_t gap = uniform(g, 0, 3) == 0 ? 1 : 0;
  if (uniform(g, 0, 1) == 0) {
    t.stride = {size[1] * size[2] * (size[3] + gap), size[2] * (size[3] + gap), size[3] + gap, 1};
  } else {
    t.stride = {size[2] * size[3] * (size[1] + gap), 1, size[3] * (size[1] + gap), size[1] + gap};
  }
  return t;
}

std::int64_t offset(const tensor4& t, std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  return a * t.stride[0] + b * t.stride[1] + c * t.stride[2] + d * t.stride[3];
}

// Each tensor has addresses of its own; nobody reads them.
const float* base(int i) { return reinterpret_cast<const float*>(std::uintptr_t{1} << (30 + i)); }

plan::conv_plan random_plan(engine& g, ops::op_id op) {
  plan::conv_plan c{};
  c.op = op;
  c.accumulate = uniform(g, 0, 3) == 0 ? accumulate::fma_chain : accumulate::exact;
  c.n = uniform(g, 1, 2);
  c.groups = uniform(g, 1, 2);
  c.c = uniform(g, 1, 5);
  c.o = uniform(g, 1, 5);
  c.kh = uniform(g, 1, 4);
  c.kw = uniform(g, 1, 4);
  c.stride = {uniform(g, 1, 4), uniform(g, 1, 3)};
  c.dilation = {uniform(g, 1, 3), uniform(g, 1, 2)};
  if (uniform(g, 0, 1) == 0) c.dilation = {1, 1};
  c.top = uniform(g, 0, 3);
  c.left = uniform(g, 0, 3);
  c.oh = uniform(g, 1, 4);
  c.ow = uniform(g, 1, 8);
  // Any image that has such a result: padding after it as far as is needed.
  c.h = std::max<std::int64_t>(1, (c.oh - 1) * c.stride.h + (c.kh - 1) * c.dilation.h + 1 - c.top - uniform(g, -2, 3));
  c.w = std::max<std::int64_t>(1, (c.ow - 1) * c.stride.w + (c.kw - 1) * c.dilation.w + 1 - c.left - uniform(g, -2, 3));
  const std::int64_t odd = uniform(g, 0, 2) == 0 ? 1 : 0;  // an address that is no multiple of 16
  c.image = tensor_of(g, base(0) + odd, {c.n, c.groups * c.c, c.h, c.w});
  c.kernel = tensor_of(g, base(1), {c.groups * c.o, c.c, c.kh, c.kw});
  c.result = tensor_of(g, base(2), {c.n, c.groups * c.o, c.oh, c.ow});
  c.type = c.out_type = dtype::f32;
  const void*& out = op == ops::op_id::conv2d              ? c.result.data
                     : op == ops::op_id::conv2d_grad_input ? c.image.data
                                                           : c.kernel.data;
  c.out = const_cast<void*>(std::exchange(out, nullptr));
  if (op == ops::op_id::conv2d && uniform(g, 0, 1) == 0) {
    c.bias = base(3);
    c.bias_stride = uniform(g, 1, 2);
  }
  return c;
}

using term = std::pair<const float*, const float*>;  // addresses in a and b
struct output {
  std::vector<term> terms;
  const float* bias = nullptr;
  friend bool operator==(const output&, const output&) = default;
};
using outputs = std::map<const float*, output>;

outputs definition(const plan::conv_plan& c) {
  outputs all;
  const bool forward = c.op == ops::op_id::conv2d;
  const bool of_input = c.op == ops::op_id::conv2d_grad_input;
  const auto place = [&](const tensor4& t, std::int64_t at) {
    return static_cast<const float*>(t.data == nullptr ? c.out : t.data) + at;
  };
  for (std::int64_t t = 0; t < c.groups; ++t) {
    for (std::int64_t j = 0; j < c.o; ++j) {
      for (std::int64_t i = 0; i < c.c; ++i) {
        for (std::int64_t r = 0; r < c.kh; ++r) {
          for (std::int64_t s = 0; s < c.kw; ++s) {
            const float* const w = place(c.kernel, offset(c.kernel, t * c.o + j, i, r, s));
            if (!forward && !of_input) all[w];
            for (std::int64_t n = 0; n < c.n; ++n) {
              for (std::int64_t y = 0; y < c.oh; ++y) {
                for (std::int64_t x = 0; x < c.ow; ++x) {
                  const float* const result = place(c.result, offset(c.result, n, t * c.o + j, y, x));
                  if (forward) {
                    const float* const biases = static_cast<const float*>(c.bias);
                    all[result].bias = biases == nullptr ? nullptr : biases + (t * c.o + j) * c.bias_stride;
                  }
                  const std::int64_t iy = y * c.stride.h + r * c.dilation.h - c.top;
                  const std::int64_t ix = x * c.stride.w + s * c.dilation.w - c.left;
                  if (iy < 0 || iy >= c.h || ix < 0 || ix >= c.w) continue;
                  const float* const image = place(c.image, offset(c.image, n, t * c.c + i, iy, ix));
                  if (forward) all[result].terms.emplace_back(w, image);
                  if (of_input) all[image].terms.emplace_back(w, result);
                  if (!forward && !of_input) all[w].terms.emplace_back(result, image);
                }
              }
            }
          }
        }
      }
    }
  }
  if (of_input) {  // pixels that nothing meets are results, too
    for (std::int64_t n = 0; n < c.n; ++n) {
      for (std::int64_t i = 0; i < c.groups * c.c; ++i) {
        for (std::int64_t y = 0; y < c.h; ++y) {
          for (std::int64_t x = 0; x < c.w; ++x) all[place(c.image, offset(c.image, n, i, y, x))];
        }
      }
    }
  }
  return all;
}

// Null: absent.
const float* element(const operand& t, const side& p, const index3& i, const side& q, const index3& j) {
  const std::int64_t y = p.y_at(i) + q.y_at(j);
  const std::int64_t x = p.x_at(i) + q.x_at(j);
  if (y < 0 || y >= t.h || x < 0 || x >= t.w) return nullptr;
  return static_cast<const float*>(t.data) + p.offset_at(i) + q.offset_at(j);
}

// Four consecutive indices of `fast`, from a multiple of 4 on.
bool lie_together(const operand& t, const side& fast, const radix& fast_sizes, std::int64_t fast_count,
                  const side& other, const radix& other_sizes, std::int64_t other_count) {
  for (std::int64_t j = 0; j < other_count; ++j) {
    for (std::int64_t i = 0; i + 4 <= fast_count; i += 4) {
      const float* const first = element(t, fast, fast_sizes.split(i), other, other_sizes.split(j));
      if (reinterpret_cast<std::uintptr_t>(first) % 16 != 0) return false;
      for (std::int64_t k = 1; k < 4; ++k) {
        const float* const next = element(t, fast, fast_sizes.split(i + k), other, other_sizes.split(j));
        if (next != (first == nullptr ? nullptr : first + k)) return false;
      }
    }
  }
  return fast_count % 4 == 0;
}

struct seen {
  int phased = 0, merged = 0, quads = 0, channels_last = 0;
};

void check(const plan::conv_plan& c, seen& had) {
  const problem p = describe(c);
  const loading l = plan_loading(p, c);
  outputs all;
  bool written_twice = false;
  for (std::int64_t product = 0; product < p.products(); ++product) {
    view v = p.base;
    specialise(v, p, product);
    CHECK(v.m <= p.m);
    CHECK(v.n <= p.n);
    CHECK(v.k <= p.k);
    CHECK(v.m * v.n > 0);  // no product without outputs
    for (std::int64_t row = 0; row < v.m; ++row) {
      const index3 i = v.row.split(row);
      for (std::int64_t col = 0; col < v.n; ++col) {
        const index3 j = v.col.split(col);
        operand result = v.out;
        result.data = v.result;
        const float* const out = element(result, v.out.outer, i, v.out.inner, j);
        if (out == nullptr) continue;
        written_twice = written_twice || all.contains(out);
        output& o = all[out];
        if (v.bias != nullptr) o.bias = static_cast<const float*>(v.bias) + v.bias_first + row * v.bias_stride;
        for (std::int64_t k = 0; k < v.k; ++k) {
          const index3 at = v.term.split(k);
          const float* const x = element(v.a, v.a.outer, i, v.a.inner, at);
          const float* const y = element(v.b, v.b.outer, j, v.b.inner, at);
          if (x != nullptr && y != nullptr) o.terms.emplace_back(x, y);
        }
      }
    }
    const bool a_lies = l.a_k_fast ? lie_together(v.a, v.a.inner, v.term, v.k, v.a.outer, v.row, v.m)
                                   : lie_together(v.a, v.a.outer, v.row, v.m, v.a.inner, v.term, v.k);
    const bool b_lies = l.b_k_fast ? lie_together(v.b, v.b.inner, v.term, v.k, v.b.outer, v.col, v.n)
                                   : lie_together(v.b, v.b.outer, v.col, v.n, v.b.inner, v.term, v.k);
    CHECK((a_lies || !l.a_quads));
    CHECK((b_lies || !l.b_quads));
  }
  CHECK(!written_twice);
  outputs expected = definition(c);
  if (c.accumulate == accumulate::exact) {  // in any order; the chain's is the definition's
    for (outputs* const o : {&all, &expected}) {
      for (auto& [address, value] : *o) std::sort(value.terms.begin(), value.terms.end());
    }
  }
  CHECK(all == expected);
  had.phased += p.phased ? 1 : 0;
  had.merged += !p.phased && c.op == ops::op_id::conv2d_grad_input && p.phases_h * p.phases_w == 1 &&
                        std::min(c.stride.h, c.h) * std::min(c.stride.w, c.w) > 1
                    ? 1
                    : 0;
  had.quads += (l.a_quads ? 1 : 0) + (l.b_quads ? 1 : 0);
  had.channels_last += p.position[0] == 2 ? 1 : 0;
}

TEST_SUITE_BEGIN("portable");

TEST_CASE("convolutions as products: every term of every output, once") {
  engine g(29);
  for (const ops::op_id op : {ops::op_id::conv2d, ops::op_id::conv2d_grad_input, ops::op_id::conv2d_grad_weight}) {
    seen had;
    for (int i = 0; i < 150; ++i) {
      const plan::conv_plan c = random_plan(g, op);
      CAPTURE(i);
      CAPTURE(static_cast<int>(op));
      check(c, had);
      CHECK(within_reach(describe(c), c));
    }
    CHECK(had.quads > 3);
    if (op == ops::op_id::conv2d) CHECK(had.channels_last > 10);
    if (op == ops::op_id::conv2d_grad_input) {
      CHECK(had.phased > 10);
      CHECK(had.merged > 10);
    }
  }
}

// Windows of one pixel, without padding before the image: the result's pixels lie side by side, and runs of four go on from one row to
// the next. Those of a row that the image lacks are absent.
TEST_CASE("convolutions as products: four neighbours of which some are absent are not loaded together") {
  for (const std::int64_t missing : {0, 1}) {
    plan::conv_plan c{};
    c.op = ops::op_id::conv2d;
    c.accumulate = accumulate::exact;
    c.n = c.groups = c.o = c.kh = c.kw = 1;
    c.c = 3;
    c.oh = 4;
    c.h = c.oh - missing;
    c.w = c.ow = 6;
    c.stride = c.dilation = {1, 1};
    const std::int64_t pixels = c.oh * c.ow;
    c.image = {base(0), {c.c * pixels, pixels, c.w, 1}};
    c.kernel = {base(1), {c.c, 1, 1, 1}};
    c.result = {nullptr, {pixels, pixels, c.ow, 1}};
    c.out = const_cast<float*>(base(2));
    const loading l = plan_loading(describe(c), c);
    CHECK(!l.b_k_fast);
    CHECK(l.b_quads == (missing == 0));
    seen had;
    check(c, had);
  }
}

TEST_CASE("convolutions as products: sizes that 32-bit coordinates do not reach") {
  engine g(30);
  plan::conv_plan small = random_plan(g, ops::op_id::conv2d);
  const auto reached = [&](auto&& change) {
    plan::conv_plan c = small;
    change(c);
    return within_reach(describe(c), c);
  };
  CHECK(reached([](plan::conv_plan&) {}));
  CHECK(!reached([](plan::conv_plan& c) { c.h = greatest_coordinate; }));
  CHECK(!reached([](plan::conv_plan& c) { c.w = std::int64_t{1} << 40; }));
  CHECK(!reached([](plan::conv_plan& c) { c.ow = std::int64_t{1} << 40; }));
  CHECK(!reached([](plan::conv_plan& c) { c.c = greatest_coordinate; }));
  CHECK(!reached([](plan::conv_plan& c) { c.dilation.h = greatest_coordinate; }));
  CHECK(!reached([](plan::conv_plan& c) { c.top = greatest_coordinate / 4; }));
  CHECK(!reached([](plan::conv_plan& c) { c.c = std::int64_t{1} << 28, c.kh = 64, c.kw = 1; }));
  CHECK(reached([](plan::conv_plan& c) { c.h = std::int64_t{1} << 26; }));
}

TEST_SUITE_END();

}  // namespace
