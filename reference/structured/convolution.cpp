// Convolution and its gradients: the definition, one tap after the other in the order of contract section 5. The exact
// sums do not depend on the order; the FMA chains do.
#include <stdexcept>

#include "reference/elementwise/elementwise.hpp"
#include "reference/structured/structured.hpp"
#include "reference/structured/windows.hpp"

namespace repdl::reference {
namespace {

/// The sum of one output element, exact or as a chain of FMAs.
class accumulator {
 public:
  accumulator(dtype type, bool chain, outcomes* where) : chain_(chain), where_(where), sum_(type) {}
  void clear() {
    sum_.clear();
    s_ = 0;
  }
  void add_product(std::uint64_t a, std::uint64_t b) {
    if (!chain_) return sum_.add_product(a, b);
    const std::uint64_t in[] = {a, b, s_};
    s_ = fma_(dtype::f32, in, nullptr);
  }
  void add(std::uint64_t a) {
    if (!chain_) return sum_.add(a);
    const std::uint64_t in[] = {s_, a};
    constexpr double once = 1;
    s_ = add_(dtype::f32, in, &once);
  }
  std::uint64_t round() {
    if (chain_) return s_;
    if (where_ != nullptr) where_->push_back(sum_.where());
    return sum_.round();
  }

 private:
  bool chain_;
  outcomes* where_;
  exact_sum sum_;
  std::uint64_t s_ = 0;
  oracle_function fma_ = oracle_of("fma").f, add_ = oracle_of("add").f;
};

/// Sizes as in plan::conv_plan: c and o are per group.
struct problem {
  windows win;
  std::int64_t n, groups, c, o;
  extent image, result;
  bool chain;

  problem(extent kernel, const attributes& attrs)
      : win(kernel, attrs, {1, 1}),
        groups(attribute_or<std::int64_t>(attrs, "groups", 1)),
        chain(attribute_or<std::string>(attrs, "accumulate", "exact") == "fma_chain") {}

  std::size_t at_image(std::int64_t sample, std::int64_t group, std::int64_t channel, std::int64_t pixel) const {
    return index(((sample * groups + group) * c + channel) * image.h * image.w + pixel);
  }
  std::size_t at_result(std::int64_t sample, std::int64_t group, std::int64_t channel, std::int64_t y,
                        std::int64_t x) const {
    return index((((sample * groups + group) * o + channel) * result.h + y) * result.w + x);
  }
  std::size_t at_kernel(std::int64_t group, std::int64_t out, std::int64_t in, std::int64_t r, std::int64_t s) const {
    return index((((group * o + out) * c + in) * win.kernel.h + r) * win.kernel.w + s);
  }
};

void check_convolution(bool ok) {
  if (!ok) throw std::invalid_argument("reference: convolution shapes");
}

bool same(extent a, extent b) { return a.h == b.h && a.w == b.w; }

}  // namespace

array conv2d(const array& x, const array& w, const array* bias, const attributes& attrs, outcomes* where) {
  check_convolution(x.shape.size() == 4 && w.shape.size() == 4);
  problem p({w.shape[2], w.shape[3]}, attrs);
  p.n = x.shape[0];
  p.c = w.shape[1];
  p.o = w.shape[0] / p.groups;
  p.image = {x.shape[2], x.shape[3]};
  p.result = p.win.results(p.image);
  check_convolution(x.shape[1] == p.c * p.groups && w.shape[0] == p.o * p.groups);
  check_convolution(bias == nullptr || bias->shape == shape_list{w.shape[0]});
  array out(x.type, {p.n, w.shape[0], p.result.h, p.result.w});
  accumulator a(x.type, p.chain, where);
  for (std::int64_t n = 0; n < p.n; ++n)
    for (std::int64_t t = 0; t < p.groups; ++t)
      for (std::int64_t j = 0; j < p.o; ++j)
        for (std::int64_t y = 0; y < p.result.h; ++y)
          for (std::int64_t col = 0; col < p.result.w; ++col) {
            a.clear();
            for (std::int64_t i = 0; i < p.c; ++i)
              for (std::int64_t r = 0; r < p.win.kernel.h; ++r)
                for (std::int64_t s = 0; s < p.win.kernel.w; ++s)
                  if (const auto pixel = p.win.pixel(p.image, y, col, r, s))
                    a.add_product(x.get(p.at_image(n, t, i, *pixel)), w.get(p.at_kernel(t, j, i, r, s)));
            if (bias != nullptr) a.add(bias->get(index(t * p.o + j)));
            out.set(p.at_result(n, t, j, y, col), a.round());
          }
  return out;
}

array conv2d_grad_input(const array& g, const array& w, const attributes& attrs, outcomes* where) {
  check_convolution(g.shape.size() == 4 && w.shape.size() == 4);
  problem p({w.shape[2], w.shape[3]}, attrs);
  p.n = g.shape[0];
  p.c = w.shape[1];
  p.o = w.shape[0] / p.groups;
  p.image = required_extent(attrs, "size");
  p.result = {g.shape[2], g.shape[3]};
  check_convolution(g.shape[1] == w.shape[0] && w.shape[0] == p.o * p.groups && same(p.result, p.win.results(p.image)));
  array out(g.type, {p.n, p.c * p.groups, p.image.h, p.image.w});
  accumulator a(g.type, p.chain, where);
  for (std::int64_t n = 0; n < p.n; ++n)
    for (std::int64_t t = 0; t < p.groups; ++t)
      for (std::int64_t i = 0; i < p.c; ++i)
        for (std::int64_t pixel = 0; pixel < p.image.h * p.image.w; ++pixel) {
          a.clear();
          for (std::int64_t j = 0; j < p.o; ++j)
            for (std::int64_t r = 0; r < p.win.kernel.h; ++r)
              for (std::int64_t s = 0; s < p.win.kernel.w; ++s) {
                // The only result pixel whose tap (r, s) can be this pixel, if it is one.
                const std::int64_t down = pixel / p.image.w + p.win.top - r * p.win.dilation.h;
                const std::int64_t across = pixel % p.image.w + p.win.left - s * p.win.dilation.w;
                if (down < 0 || across < 0 || down % p.win.stride.h != 0 || across % p.win.stride.w != 0) continue;
                const std::int64_t y = down / p.win.stride.h, col = across / p.win.stride.w;
                if (y >= p.result.h || col >= p.result.w) continue;
                a.add_product(g.get(p.at_result(n, t, j, y, col)), w.get(p.at_kernel(t, j, i, r, s)));
              }
          out.set(p.at_image(n, t, i, pixel), a.round());
        }
  return out;
}

array conv2d_grad_weight(const array& g, const array& x, const attributes& attrs, outcomes* where) {
  check_convolution(g.shape.size() == 4 && x.shape.size() == 4 && g.shape[0] == x.shape[0]);
  problem p(required_extent(attrs, "kernel"), attrs);
  p.n = g.shape[0];
  p.c = x.shape[1] / p.groups;
  p.o = g.shape[1] / p.groups;
  p.image = {x.shape[2], x.shape[3]};
  p.result = {g.shape[2], g.shape[3]};
  check_convolution(x.shape[1] == p.c * p.groups && g.shape[1] == p.o * p.groups &&
                    same(p.result, p.win.results(p.image)));
  array out(g.type, {g.shape[1], p.c, p.win.kernel.h, p.win.kernel.w});
  accumulator a(g.type, p.chain, where);
  for (std::int64_t t = 0; t < p.groups; ++t)
    for (std::int64_t j = 0; j < p.o; ++j)
      for (std::int64_t i = 0; i < p.c; ++i)
        for (std::int64_t r = 0; r < p.win.kernel.h; ++r)
          for (std::int64_t s = 0; s < p.win.kernel.w; ++s) {
            a.clear();
            for (std::int64_t n = 0; n < p.n; ++n)
              for (std::int64_t y = 0; y < p.result.h; ++y)
                for (std::int64_t col = 0; col < p.result.w; ++col)
                  if (const auto pixel = p.win.pixel(p.image, y, col, r, s))
                    a.add_product(g.get(p.at_result(n, t, j, y, col)), x.get(p.at_image(n, t, i, *pixel)));
            out.set(p.at_kernel(t, j, i, r, s), a.round());
          }
  return out;
}

array conv2d_grad_bias(const array& g, outcomes* where) {
  check_convolution(g.shape.size() == 4);
  return reduce(reduction::sum, g, shape_list{0, 2, 3}, false, where);
}

}  // namespace repdl::reference
