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

using tensor = plan::conv_plan::tensor;
using sizes5 = std::array<std::int64_t, 5>;

// Rows of pixels, channels first or last, gaps between rows.
tensor tensor_of(engine& g, const float* data, const sizes5& size) {
  tensor t{data, {}};
  const std::int64_t gap = uniform(g, 0, 3) == 0 ? 1 : 0;
  const bool channels_last = uniform(g, 0, 1) != 0;
  std::int64_t step = 1;
  for (const std::size_t axis :
       channels_last ? std::array<std::size_t, 5>{1, 4, 3, 2, 0} : std::array<std::size_t, 5>{4, 3, 2, 1, 0}) {
    t.stride[axis] = step;
    step *= size[axis] + (step == 1 ? gap : 0);
  }
  return t;
}

std::int64_t offset(const tensor& t, const sizes5& at) {
  std::int64_t sum = 0;
  for (std::size_t d = 0; d < 5; ++d) sum += at[d] * t.stride[d];
  return sum;
}

// Each tensor has addresses of its own; nobody reads them.
const float* base(int i) { return reinterpret_cast<const float*>(std::uintptr_t{1} << (30 + i)); }

void set_role(plan::conv_plan& c, ops::op_id op) {
  c.op = op;
  c.computed = op == ops::op_id::conv2d              ? plan::conv_plan::role::result
               : op == ops::op_id::conv2d_grad_input ? plan::conv_plan::role::image
                                                     : plan::conv_plan::role::kernel;
}

// Of images, or of volumes.
plan::conv_plan random_plan(engine& g, ops::op_id op, bool deep) {
  plan::conv_plan c{};
  set_role(c, op);
  c.accumulate = uniform(g, 0, 3) == 0 ? accumulate::fma_chain : accumulate::exact;
  c.n = uniform(g, 1, 2);
  c.groups = uniform(g, 1, 2);
  c.c = uniform(g, 1, 5);
  c.o = uniform(g, 1, 5);
  const std::int64_t dilated = uniform(g, 0, 1);
  for (std::size_t d = deep ? 0 : 1; d < 3; ++d) {
    plan::window_axis& a = c.axis[d];
    a.kernel = uniform(g, 1, 4);
    a.stride = uniform(g, 1, d == 2 ? 3 : 4);
    a.dilation = dilated != 0 ? uniform(g, 1, d == 2 ? 2 : 3) : 1;
    a.before = uniform(g, 0, 3);
    a.windows = uniform(g, 1, d == 2 && !deep ? 8 : 4);
    // Any image that has such a result: padding after it as far as is needed.
    a.image = std::max<std::int64_t>(
        1, (a.windows - 1) * a.stride + (a.kernel - 1) * a.dilation + 1 - a.before - uniform(g, -2, 3));
  }
  const auto& [z, y, x] = c.axis;
  const std::int64_t odd = uniform(g, 0, 2) == 0 ? 1 : 0;  // an address that is no multiple of 16
  c.image = tensor_of(g, base(0) + odd, {c.n, c.groups * c.c, z.image, y.image, x.image});
  c.kernel = tensor_of(g, base(1), {c.groups * c.o, c.c, z.kernel, y.kernel, x.kernel});
  c.result = tensor_of(g, base(2), {c.n, c.groups * c.o, z.windows, y.windows, x.windows});
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

// Calls f(place) for every place within the sizes, row-major.
template <class F>
void for_places(const std::array<std::int64_t, 3>& size, const F& f) {
  for (std::int64_t z = 0; z < size[0]; ++z) {
    for (std::int64_t y = 0; y < size[1]; ++y) {
      for (std::int64_t x = 0; x < size[2]; ++x) f(std::array<std::int64_t, 3>{z, y, x});
    }
  }
}

outputs definition(const plan::conv_plan& c) {
  outputs all;
  const bool forward = c.computed == plan::conv_plan::role::result;
  const bool of_input = c.computed == plan::conv_plan::role::image;
  using place3 = std::array<std::int64_t, 3>;
  const auto place = [&](const tensor& t, std::int64_t a, std::int64_t b, const place3& at) {
    return static_cast<const float*>(t.data == nullptr ? c.out : t.data) + offset(t, {a, b, at[0], at[1], at[2]});
  };
  const auto sizes = [&](std::int64_t plan::window_axis::*of) {
    return place3{c.axis[0].*of, c.axis[1].*of, c.axis[2].*of};
  };
  for (std::int64_t t = 0; t < c.groups; ++t) {
    for (std::int64_t j = t * c.o; j < (t + 1) * c.o; ++j) {
      for (std::int64_t i = 0; i < c.c; ++i) {
        for_places(sizes(&plan::window_axis::kernel), [&](const place3& tap) {
          const float* const w = place(c.kernel, j, i, tap);
          if (!forward && !of_input) all[w];
          for (std::int64_t n = 0; n < c.n; ++n) {
            for_places(sizes(&plan::window_axis::windows), [&](const place3& window) {
              const float* const result = place(c.result, n, j, window);
              if (forward) {
                const float* const biases = static_cast<const float*>(c.bias);
                all[result].bias = biases == nullptr ? nullptr : biases + j * c.bias_stride;
              }
              place3 pixel;
              for (std::size_t d = 0; d < 3; ++d) {
                const plan::window_axis& a = c.axis[d];
                pixel[d] = window[d] * a.stride + tap[d] * a.dilation - a.before;
                if (pixel[d] < 0 || pixel[d] >= a.image) return;
              }
              const float* const image = place(c.image, n, t * c.c + i, pixel);
              if (forward) all[result].terms.emplace_back(w, image);
              if (of_input) all[image].terms.emplace_back(w, result);
              if (!forward && !of_input) all[w].terms.emplace_back(result, image);
            });
          }
        });
      }
    }
  }
  if (of_input) {  // pixels that nothing meets are results, too
    for (std::int64_t n = 0; n < c.n; ++n) {
      for (std::int64_t i = 0; i < c.groups * c.c; ++i)
        for_places(sizes(&plan::window_axis::image), [&](const place3& at) { all[place(c.image, n, i, at)]; });
    }
  }
  return all;
}

// Null: absent.
const float* element(const operand& t, const side& p, const index4& i, const side& q, const index4& j) {
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
  int phased = 0, merged = 0, quads = 0, channels_last = 0, parts = 0;
};

void check(const plan::conv_plan& c, seen& had) {
  outputs all;
  bool written_twice = false;
  plan::for_each_depth_part(c, [&](const plan::depth_part& z) {
    const problem p = describe(c, z);
    const loading l = plan_loading(p, c);
    for (std::int64_t product = 0; product < p.products(); ++product) {
      view v = p.base;
      specialise(v, p, product);
      CHECK(v.m <= p.m);
      CHECK(v.n <= p.n);
      CHECK(v.k <= p.k);
      CHECK(v.m * v.n > 0);  // no product without outputs
      for (std::int64_t row = 0; row < v.m; ++row) {
        const index4 i = v.row.split(row);
        for (std::int64_t col = 0; col < v.n; ++col) {
          const index4 j = v.col.split(col);
          operand result = v.out;
          result.data = v.result;
          const float* const out = element(result, v.out.outer, i, v.out.inner, j);
          if (out == nullptr) continue;
          written_twice = written_twice || all.contains(out);
          output& o = all[out];
          if (v.bias != nullptr) o.bias = static_cast<const float*>(v.bias) + v.bias_first + row * v.bias_stride;
          for (std::int64_t k = 0; k < v.k; ++k) {
            const index4 at = v.term.split(k);
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
    const plan::window_axis &y = c.axis[1], &x = c.axis[2];
    had.phased += p.phased ? 1 : 0;
    had.merged += !p.phased && c.computed == plan::conv_plan::role::image && p.phases_h * p.phases_w == 1 &&
                          std::min(y.stride, y.image) * std::min(x.stride, x.image) > 1
                      ? 1
                      : 0;
    had.quads += (l.a_quads ? 1 : 0) + (l.b_quads ? 1 : 0);
    had.channels_last += p.position[0] == 3 ? 1 : 0;
    ++had.parts;
  });
  CHECK(!written_twice);
  outputs expected = definition(c);
  if (c.accumulate == accumulate::exact) {  // in any order; the chain's is the definition's
    for (outputs* const o : {&all, &expected}) {
      for (auto& [address, value] : *o) std::sort(value.terms.begin(), value.terms.end());
    }
  }
  CHECK(all == expected);
}

problem describe_one(const plan::conv_plan& c) {
  problem p{};
  plan::for_each_depth_part(c, [&](const plan::depth_part& z) { p = describe(c, z); });
  return p;
}

TEST_SUITE_BEGIN("portable");

TEST_CASE("convolutions as products: every term of every output, once") {
  engine g(29);
  for (const ops::op_id op : {ops::op_id::conv2d, ops::op_id::conv2d_grad_input, ops::op_id::conv2d_grad_weight}) {
    seen had;
    int calls = 0;
    for (const bool deep : {false, true}) {
      for (int i = 0; i < (deep ? 80 : 150); ++i, ++calls) {
        const plan::conv_plan c = random_plan(g, op, deep);
        CAPTURE(i);
        CAPTURE(deep);
        CAPTURE(static_cast<int>(op));
        check(c, had);
        CHECK(within_reach(describe_one(c), c));
      }
    }
    CHECK(had.parts > calls + 40);
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
    set_role(c, ops::op_id::conv2d);
    c.accumulate = accumulate::exact;
    c.n = c.groups = c.o = 1;
    c.c = 3;
    c.axis[1] = {4 - missing, 4};
    c.axis[2] = {6, 6};
    const std::int64_t pixels = 4 * 6;
    c.image = {base(0), {c.c * pixels, pixels, 0, 6, 1}};
    c.kernel = {base(1), {c.c, 1, 0, 1, 1}};
    c.result = {nullptr, {pixels, pixels, 0, 6, 1}};
    c.out = const_cast<float*>(base(2));
    const loading l = plan_loading(describe_one(c), c);
    CHECK(!l.b_k_fast);
    CHECK(l.b_quads == (missing == 0));
    seen had;
    check(c, had);
  }
}

TEST_CASE("convolutions as products: sizes that 32-bit coordinates do not reach") {
  engine g(30);
  plan::conv_plan small = random_plan(g, ops::op_id::conv2d, false);
  const auto reached = [&](auto&& change) {
    plan::conv_plan c = small;
    change(c);
    return within_reach(describe_one(c), c);
  };
  CHECK(reached([](plan::conv_plan&) {}));
  CHECK(!reached([](plan::conv_plan& c) { c.axis[1].image = greatest_coordinate; }));
  CHECK(!reached([](plan::conv_plan& c) { c.axis[2].image = std::int64_t{1} << 40; }));
  CHECK(!reached([](plan::conv_plan& c) { c.axis[2].windows = std::int64_t{1} << 40; }));
  CHECK(!reached([](plan::conv_plan& c) { c.c = greatest_coordinate; }));
  CHECK(!reached([](plan::conv_plan& c) { c.axis[1].dilation = greatest_coordinate; }));
  CHECK(!reached([](plan::conv_plan& c) { c.axis[1].before = greatest_coordinate / 4; }));
  CHECK(!reached([](plan::conv_plan& c) { c.c = std::int64_t{1} << 28, c.axis[1].kernel = 64, c.axis[2].kernel = 1; }));
  CHECK(reached([](plan::conv_plan& c) { c.axis[1].image = std::int64_t{1} << 26; }));
}

TEST_SUITE_END();

}  // namespace
