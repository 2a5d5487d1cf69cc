// What a plan of products says, read off by plain loops over integers: convolutions can be said so, and what matmul's
// planner makes of batches is the same product.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "librepdl/plan/planner.hpp"
#include "librepdl/plan/plans.hpp"

namespace {

using namespace repdl;
using plan::axes;
using plan::product_plan;
using numbers = std::vector<std::int64_t>;

// ---------------------------------------------------------------------------------------------------- what a plan says

// The places along the axes of a row-major index.
axes places_of(std::int64_t index, int rank, const axes& shape) {
  axes at{};
  for (int d = rank - 1; d >= 0; --d) {
    const auto i = static_cast<std::size_t>(d);
    at[i] = index % shape[i];
    index /= shape[i];
  }
  return at;
}
axes places_of(std::int64_t index, const product_plan::space& s) { return places_of(index, s.rank, s.shape); }

std::int64_t times(const axes& places, const axes& strides) {
  return std::inner_product(places.begin(), places.end(), strides.begin(), std::int64_t{0});
}

// Where an element is; null: it is absent.
template <class Memory>
std::int64_t* find(const product_plan::operand<Memory>& o, const axes& batch, const axes& outer, const axes& inner) {
  const auto value = [&](const product_plan::affine& x) {
    return x.first + times(batch, x.batch) + times(outer, x.outer) + times(inner, x.inner);
  };
  for (int i = 0; i < o.coordinates; ++i) {
    const std::int64_t at = value(o.where[i]);
    if (at < 0 || at >= o.where[i].size) return nullptr;
  }
  CHECK(o.type == dtype::i64);
  return static_cast<std::int64_t*>(const_cast<void*>(static_cast<const void*>(o.data))) + value(o);
}

std::int64_t whole(double factor) { return static_cast<std::int64_t>(factor); }

// Adds each output to what is there: one that is computed twice is wrong.
void evaluate(const product_plan& p) {
  for (const product_plan::space* s : {&p.batch, &p.row, &p.column, &p.term}) {
    std::int64_t count = 1;
    for (int d = 0; d < s->rank; ++d) count *= s->shape[static_cast<std::size_t>(d)];
    CHECK(count == s->count);
  }
  for (std::int64_t b = 0; b < p.batch.count; ++b) {
    const axes batch = places_of(b, p.batch);
    for (std::int64_t r = 0; r < p.row.count; ++r) {
      const axes row = places_of(r, p.row);
      for (std::int64_t c = 0; c < p.column.count; ++c) {
        const axes column = places_of(c, p.column);
        std::int64_t* const out = find(p.out, batch, row, column);
        if (out == nullptr) continue;
        std::int64_t sum = 0;
        for (std::int64_t t = 0; t < p.term.count; ++t) {
          const axes term = places_of(t, p.term);
          const std::int64_t* const x = find(p.a, batch, row, term);
          const std::int64_t* const y = find(p.b, batch, column, term);
          if (x != nullptr && y != nullptr) sum += *x * *y;
        }
        *out += whole(p.alpha) * sum;
        if (p.bias.data != nullptr) *out += whole(p.beta) * *find(p.bias, batch, row, column);
      }
    }
  }
}

// The same of the dot products that a plan is.
void evaluate(const plan::reduce_plan& p) {
  for (std::int64_t k = 0; k < p.outputs; ++k) {
    const axes kept = places_of(k, p.kept_rank, p.kept_shape);
    std::int64_t sum = 0;
    for (std::int64_t r = 0; r < p.length; ++r) {
      const axes reduced = places_of(r, p.reduced_rank, p.reduced_shape);
      const auto factor = [&](const plan::reduce_plan::operand& o) {
        return static_cast<const std::int64_t*>(o.data)[times(kept, o.kept_stride) + times(reduced, o.reduced_stride)];
      };
      sum += factor(p.in[0]) * factor(p.in[1]);
    }
    std::int64_t& out = static_cast<std::int64_t*>(p.out)[times(kept, p.out_stride)];
    out += whole(p.alpha) * sum;
    if (p.bias != nullptr) out += whole(p.beta) * static_cast<const std::int64_t*>(p.bias)[times(kept, p.bias_stride)];
  }
}

numbers some(std::mt19937_64& g, std::int64_t count) {
  numbers x(static_cast<std::size_t>(count));
  for (std::int64_t& v : x) v = static_cast<std::int64_t>(g() % 201) - 100;
  return x;
}

// -------------------------------------------------------------------------------------------------------- convolutions

struct dimension {
  std::int64_t image, kernel, stride, dilation, before, after;

  std::int64_t result() const {
    return std::max<std::int64_t>(0, (image + before + after - (kernel - 1) * dilation - 1) / stride + 1);
  }
};

struct tensor {
  std::vector<std::int64_t> shape, stride;
  numbers data;

  tensor(std::int64_t first, std::int64_t second, const std::vector<std::int64_t>& rest)
      : shape{first, second}, stride(rest.size() + 2) {
    shape.insert(shape.end(), rest.begin(), rest.end());
    std::int64_t count = 1;
    for (std::size_t i = shape.size(); i-- > 0; count *= shape[i]) stride[i] = count;
    data.resize(static_cast<std::size_t>(count));
  }
};

struct convolution {
  std::int64_t n, groups, c, o;  // c and o of a group
  std::vector<dimension> dims;

  template <class F>
  std::vector<std::int64_t> each(F&& size) const {
    std::vector<std::int64_t> all;
    for (const dimension& d : dims) all.push_back(size(d));
    return all;
  }
  tensor image() const {
    return {n, groups * c, each([](const dimension& d) { return d.image; })};
  }
  tensor kernel() const {
    return {groups * o, c, each([](const dimension& d) { return d.kernel; })};
  }
  tensor result() const {
    return {n, groups * o, each([](const dimension& d) { return d.result(); })};
  }
};

// f(places in the image, the kernel and the result) for all that meet.
template <class F>
void for_each_meeting(const convolution& v, const tensor& image, const tensor& kernel, const tensor& result, F&& f) {
  const auto go = [&](const auto& self, std::size_t d, std::int64_t i, std::int64_t k, std::int64_t r) -> void {
    if (d == v.dims.size())
      return f(static_cast<std::size_t>(i), static_cast<std::size_t>(k), static_cast<std::size_t>(r));
    const dimension& x = v.dims[d];
    for (std::int64_t y = 0; y < x.result(); ++y) {
      for (std::int64_t tap = 0; tap < x.kernel; ++tap) {
        const std::int64_t at = y * x.stride + tap * x.dilation - x.before;
        if (at < 0 || at >= x.image) continue;
        self(self, d + 1, i + at * image.stride[2 + d], k + tap * kernel.stride[2 + d], r + y * result.stride[2 + d]);
      }
    }
  };
  for (std::int64_t sample = 0; sample < v.n; ++sample)
    for (std::int64_t group = 0; group < v.groups; ++group)
      for (std::int64_t c = 0; c < v.c; ++c)
        for (std::int64_t o = 0; o < v.o; ++o) {
          const std::int64_t channel = group * v.o + o;
          go(go, 0, sample * image.stride[0] + (group * v.c + c) * image.stride[1],
             channel * kernel.stride[0] + c * kernel.stride[1], sample * result.stride[0] + channel * result.stride[1]);
        }
}

// One more axis; where its strides are.
std::size_t add_axis(product_plan::space& s, std::int64_t size) {
  s.count *= size;
  s.shape[static_cast<std::size_t>(s.rank)] = size;
  return static_cast<std::size_t>(s.rank++);
}

product_plan plan_of(const tensor& a, const tensor& b, tensor& out) {
  product_plan p{};
  p.alpha = p.beta = 1;
  p.a.data = a.data.data();
  p.b.data = b.data.data();
  p.out.data = out.data.data();
  for (dtype* type : {&p.a.type, &p.b.type, &p.bias.type, &p.out.type}) *type = dtype::i64;
  for (product_plan::space* s : {&p.batch, &p.row, &p.column, &p.term}) s->count = 1;
  return p;
}

product_plan forward(const convolution& v, const tensor& kernel, const tensor& image, tensor& result) {
  product_plan p = plan_of(kernel, image, result);
  const std::size_t group = add_axis(p.batch, v.groups), o = add_axis(p.row, v.o);
  const std::size_t n = add_axis(p.column, v.n), c = add_axis(p.term, v.c);
  p.a.batch[group] = v.o * kernel.stride[0];
  p.a.outer[o] = kernel.stride[0];
  p.a.inner[c] = kernel.stride[1];
  p.b.batch[group] = v.c * image.stride[1];
  p.b.outer[n] = image.stride[0];
  p.b.inner[c] = image.stride[1];
  p.out.batch[group] = v.o * result.stride[1];
  p.out.outer[o] = result.stride[1];
  p.out.inner[n] = result.stride[0];
  for (std::size_t d = 0; d < v.dims.size(); ++d) {
    const dimension& x = v.dims[d];
    const std::size_t y = add_axis(p.column, x.result()), r = add_axis(p.term, x.kernel);
    p.a.inner[r] = kernel.stride[2 + d];
    p.out.inner[y] = result.stride[2 + d];
    product_plan::coordinate& at = p.b.where[p.b.coordinates++];
    at.size = x.image;
    at.first = -x.before;
    at.outer[y] = x.stride;
    at.inner[r] = x.dilation;
    p.b.first += at.first * image.stride[2 + d];
    p.b.outer[y] = at.outer[y] * image.stride[2 + d];
    p.b.inner[r] = at.inner[r] * image.stride[2 + d];
  }
  return p;
}

product_plan to_kernel(const convolution& v, const tensor& result, const tensor& image, tensor& kernel) {
  product_plan p = plan_of(result, image, kernel);
  const std::size_t group = add_axis(p.batch, v.groups), o = add_axis(p.row, v.o);
  const std::size_t c = add_axis(p.column, v.c), n = add_axis(p.term, v.n);
  p.a.batch[group] = v.o * result.stride[1];
  p.a.outer[o] = result.stride[1];
  p.a.inner[n] = result.stride[0];
  p.b.batch[group] = v.c * image.stride[1];
  p.b.outer[c] = image.stride[1];
  p.b.inner[n] = image.stride[0];
  p.out.batch[group] = v.o * kernel.stride[0];
  p.out.outer[o] = kernel.stride[0];
  p.out.inner[c] = kernel.stride[1];
  for (std::size_t d = 0; d < v.dims.size(); ++d) {
    const dimension& x = v.dims[d];
    const std::size_t r = add_axis(p.column, x.kernel), y = add_axis(p.term, x.result());
    p.a.inner[y] = result.stride[2 + d];
    p.out.inner[r] = kernel.stride[2 + d];
    product_plan::coordinate& at = p.b.where[p.b.coordinates++];
    at.size = x.image;
    at.first = -x.before;
    at.outer[r] = x.dilation;
    at.inner[y] = x.stride;
    p.b.first += at.first * image.stride[2 + d];
    p.b.outer[r] = at.outer[r] * image.stride[2 + d];
    p.b.inner[y] = at.inner[y] * image.stride[2 + d];
  }
  return p;
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

product_plan to_input(const convolution& v, const tensor& kernel, const tensor& result, tensor& image) {
  product_plan p = plan_of(kernel, result, image);
  const std::size_t group = add_axis(p.batch, v.groups), c = add_axis(p.row, v.c);
  const std::size_t n = add_axis(p.column, v.n), o = add_axis(p.term, v.o);
  p.a.batch[group] = v.o * kernel.stride[0];
  p.a.outer[c] = kernel.stride[1];
  p.a.inner[o] = kernel.stride[0];
  p.b.batch[group] = v.o * result.stride[1];
  p.b.outer[n] = result.stride[0];
  p.b.inner[o] = result.stride[1];
  p.out.batch[group] = v.c * image.stride[1];
  p.out.outer[c] = image.stride[1];
  p.out.inner[n] = image.stride[0];
  p.a.coordinates = p.b.coordinates = p.out.coordinates = static_cast<int>(v.dims.size());
  for (std::size_t d = 0; d < v.dims.size(); ++d) {
    const dimension& x = v.dims[d];
    const std::int64_t common = std::gcd(x.stride, x.dilation), step = x.stride / common;
    // Phases reach image pixels stride * z + from - before for these z.
    const std::int64_t first = floor_div(x.before - (step - 1) * x.dilation - (common - 1), x.stride);
    const std::int64_t last = floor_div(x.image - 1 + x.before, x.stride);
    const std::size_t r0 = add_axis(p.batch, step), e = add_axis(p.batch, common);
    const std::size_t z = add_axis(p.column, last - first + 1), j = add_axis(p.term, (x.kernel + step - 1) / step);
    product_plan::coordinate &tap = p.a.where[d], &y = p.b.where[d], &pixel = p.out.where[d];
    tap.size = x.kernel;
    tap.batch[r0] = 1;
    tap.batch[e] = x.kernel;
    tap.inner[j] = step;
    p.a.batch[r0] = kernel.stride[2 + d];
    p.a.inner[j] = step * kernel.stride[2 + d];
    y.size = x.result();
    y.first = first;
    y.outer[z] = 1;
    y.inner[j] = -x.dilation / common;
    p.b.first += y.first * result.stride[2 + d];
    p.b.outer[z] = result.stride[2 + d];
    p.b.inner[j] = y.inner[j] * result.stride[2 + d];
    pixel.size = x.image;
    pixel.first = x.stride * first - x.before;
    pixel.batch[r0] = x.dilation;
    pixel.batch[e] = 1;
    pixel.inner[z] = x.stride;
    p.out.first += pixel.first * image.stride[2 + d];
    p.out.batch[r0] = x.dilation * image.stride[2 + d];
    p.out.batch[e] = image.stride[2 + d];
    p.out.inner[z] = x.stride * image.stride[2 + d];
  }
  return p;
}

// Of results, kernels and images: their gradients' plans against the loops. `bias`: one number per output channel, of
// forward.
void check(const convolution& v, std::mt19937_64& g) {
  std::string text;
  for (const dimension& d : v.dims) {
    for (const std::int64_t x : {d.image, d.kernel, d.stride, d.dilation, d.before, d.after})
      text += " " + std::to_string(x);
    text += ";";
  }
  INFO(text);
  const auto filled = [&](tensor t) {
    t.data = some(g, static_cast<std::int64_t>(t.data.size()));
    return t;
  };
  const tensor image = filled(v.image()), kernel = filled(v.kernel()), result = filled(v.result());
  const numbers bias = some(g, v.groups * v.o);
  tensor y = v.result(), dw = v.kernel(), dx = v.image();
  tensor want_y = y, want_dw = dw, want_dx = dx;
  for_each_meeting(v, image, kernel, result, [&](std::size_t i, std::size_t k, std::size_t r) {
    want_y.data[r] += 2 * image.data[i] * kernel.data[k];
    want_dw.data[k] += image.data[i] * result.data[r];
    want_dx.data[i] += kernel.data[k] * result.data[r];
  });
  for (std::size_t i = 0; i < want_y.data.size(); ++i) {
    const std::int64_t at = static_cast<std::int64_t>(i);
    want_y.data[i] += 3 * bias[static_cast<std::size_t>(at / y.stride[1] % y.shape[1])];
  }

  product_plan p = forward(v, kernel, image, y);
  p.alpha = 2;
  p.beta = 3;
  p.bias.data = bias.data();
  p.bias.batch[0] = v.o;
  p.bias.outer[0] = 1;
  evaluate(p);
  CHECK(y.data == want_y.data);
  evaluate(to_kernel(v, result, image, dw));
  CHECK(dw.data == want_dw.data);
  evaluate(to_input(v, kernel, result, dx));
  CHECK(dx.data == want_dx.data);
}

}  // namespace

TEST_SUITE_BEGIN("portable");

TEST_CASE("product plans: convolutions of one to three dimensions and their gradients") {
  std::mt19937_64 g(1);
  for (const std::int64_t stride : {1, 2, 3, 4, 6})
    for (const std::int64_t dilation : {1, 2, 3, 4})
      for (const std::int64_t kernel : {1, 2, 3})
        for (const std::int64_t before : {0, 2, 5}) check({2, 1, 1, 2, {{11, kernel, stride, dilation, before, 1}}}, g);
  for (const std::int64_t stride : {1, 2, 3})
    for (const std::int64_t dilation : {1, 2})
      for (const std::int64_t before : {0, 1})
        check({2, 2, 2, 1, {{6, 3, stride, dilation, before, 1}, {5, 2, 3 - dilation, stride, 1, before}}}, g);
  check({1, 2, 2, 1, {{4, 2, 2, 2, 1, 1}, {5, 3, 1, 1, 1, 0}, {3, 2, 3, 1, 0, 1}}}, g);
}

TEST_CASE("product plans: as dot products, along any axes") {
  std::mt19937_64 g(2);
  const convolution v{2, 2, 3, 2, {{7, 3, 2, 2, 0, 0}, {4, 2, 1, 1, 0, 0}}};
  tensor image = v.image(), kernel = v.kernel(), y = v.result();
  image.data = some(g, static_cast<std::int64_t>(image.data.size()));
  kernel.data = some(g, static_cast<std::int64_t>(kernel.data.size()));
  tensor want = y;
  product_plan p = forward(v, kernel, image, want);
  evaluate(p);
  p.out.data = y.data.data();
  p.b.coordinates = 0;  // nothing is absent without padding
  evaluate(plan::dots_of(p));
  CHECK(y.data == want.data);
  CHECK(std::any_of(y.data.begin(), y.data.end(), [](std::int64_t x) { return x != 0; }));
}

// -------------------------------------------------------------------------------------------------------------- matmul

namespace {

// A tensor of integers in memory in which its axes lie in any order.
struct strided {
  numbers memory;
  const_tensor_view view;

  strided(std::mt19937_64& g, const sizes& shape) {
    std::vector<int> order(static_cast<std::size_t>(shape.size()));
    std::iota(order.begin(), order.end(), 0);
    if (g() % 2 != 0) std::shuffle(order.begin(), order.end(), g);
    sizes strides = shape;
    std::int64_t count = 1;
    for (std::size_t i = order.size(); i-- > 0; count *= shape[order[i]]) strides[order[i]] = count;
    memory = some(g, count);
    view = const_tensor_view(memory.data(), dtype::i64, shape, strides);
  }
};

std::int64_t at(const const_tensor_view& v, std::span<const std::int64_t> index) {
  std::int64_t place = 0;
  const int skipped = static_cast<int>(index.size()) - v.rank();
  for (int i = 0; i < v.rank(); ++i)
    place += v.shape()[i] == 1 ? 0 : index[static_cast<std::size_t>(i + skipped)] * v.strides()[i];
  return static_cast<const std::int64_t*>(v.data())[place];
}

product_plan product_of(const const_tensor_view& a, const const_tensor_view& b, const tensor_view& out,
                        const matmul_options& options = {}) {
  const const_tensor_view in[] = {a, b};
  return plan::make_product(in, out, options);
}

}  // namespace

TEST_CASE("product plans: matmul of any batches") {
  std::mt19937_64 g(3);
  std::int64_t folded = 0;
  const auto any = [&](std::uint64_t least, std::uint64_t most) {
    return static_cast<std::int64_t>(least + g() % (most - least + 1));
  };
  for (int round = 0; round < 400; ++round) {
    const std::int64_t batch[] = {any(1, 3), any(1, 3)}, m = any(1, 3), n = any(1, 3), k = any(0, 4);
    const auto shape_of = [&](std::int64_t rows, std::int64_t columns) {
      if (g() % 3 == 0) return sizes{rows, columns};
      return sizes{g() % 3 == 0 ? 1 : batch[0], g() % 3 == 0 ? 1 : batch[1], rows, columns};
    };
    const strided a(g, shape_of(m, k)), b(g, shape_of(k, n)), bias(g, shape_of(g() % 2 == 0 ? 1 : m, n));
    strided out(g, {batch[0], batch[1], m, n});
    const bool has_bias = g() % 2 == 0;
    const numbers before = out.memory;
    const const_tensor_view in[] = {a.view, b.view, bias.view};
    const tensor_view to(out.memory.data(), dtype::i64, out.view.shape(), out.view.strides());
    const product_plan p = plan::make_product(plan::inputs(in, has_bias ? 3 : 2), to, {.alpha = 2, .beta = 3});
    CHECK(p.has_matrices());
    folded += p.batch.count < batch[0] * batch[1];
    evaluate(p);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < batch[0] * batch[1] * m * n; ++i) {
      const std::int64_t index[] = {i / n / m / batch[1], i / n / m % batch[1], i / n % m, i % n};
      std::int64_t sum = 0;
      for (std::int64_t t = 0; t < k; ++t) {
        const std::int64_t of_a[] = {index[0], index[1], index[2], t}, of_b[] = {index[0], index[1], t, index[3]};
        sum += at(a.view, of_a) * at(b.view, of_b);
      }
      std::int64_t place = 0;
      for (int d = 0; d < 4; ++d) place += index[d] * to.strides()[d];
      const auto there = static_cast<std::size_t>(place);
      wrong += out.memory[there] - before[there] != 2 * sum + (has_bias ? 3 * at(bias.view, index) : 0);
    }
    CHECK(wrong == 0);
  }
  CHECK(folded > 100);
}

TEST_CASE("product plans: batches that go on are rows or columns") {
  std::int64_t x = 0;
  const auto input = [&](const sizes& shape) { return const_tensor_view(&x, dtype::i64, shape); };
  const auto output = [&](const sizes& shape) { return tensor_view(&x, dtype::i64, shape); };
  // What a network does.
  product_plan p = product_of(input({8, 1024, 768}), input({768, 5}), output({8, 1024, 5}));
  CHECK(p.batch.rank == 0);
  CHECK(p.batch.count == 1);
  CHECK(p.row.count == 8192);
  CHECK(p.a.outer[0] == 768);
  CHECK(p.out.outer[0] == 5);
  // Each batch has a matrix of its own.
  p = product_of(input({8, 4, 3}), input({8, 3, 5}), output({8, 4, 5}));
  CHECK(p.batch.count == 8);
  CHECK(p.row.count == 4);
  // Vectors, which are rows, or columns.
  p = product_of(input({7, 9, 1, 3}), input({3, 5}), output({7, 9, 1, 5}));
  CHECK(p.batch.rank == 0);
  CHECK(p.row.count == 63);
  CHECK(p.a.outer[0] == 3);
  p = product_of(input({4, 3}), input({7, 3, 1}), output({7, 4, 1}));
  CHECK(p.batch.rank == 0);
  CHECK(p.column.count == 7);
  CHECK(p.b.outer[0] == 3);
  CHECK(p.out.inner[0] == 4);
  CHECK(p.out.outer[0] == 1);
  // Columns of results that are stored transposed.
  const tensor_view wide(&x, dtype::i64, {7, 4, 5}, {5, 35, 1});
  p = product_of(input({4, 3}), const_tensor_view(&x, dtype::i64, {7, 3, 5}, {5, 35, 1}), wide);
  CHECK(p.batch.rank == 0);
  CHECK(p.column.count == 35);
  // The heads of (sample, position, head, number) times a matrix each: samples are more rows.
  const const_tensor_view heads(&x, dtype::i64, {2, 6, 10, 3}, {180, 3, 18, 1});
  const tensor_view to(&x, dtype::i64, {2, 6, 10, 5}, {300, 5, 30, 1});
  p = product_of(heads, input({6, 3, 5}), to);
  CHECK(p.batch.rank == 1);
  CHECK(p.batch.count == 6);
  CHECK(p.row.count == 20);
  // A bias that does not go on.
  const const_tensor_view in[] = {input({8, 4, 3}), input({3, 5}), input({4, 5})};
  p = plan::make_product(in, output({8, 4, 5}), {});
  CHECK(p.batch.count == 8);
}

TEST_SUITE_END();
