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
  std::int64_t n = 0, groups, c = 0, o = 0;
  extent image, result;
  bool chain;

  problem(const extent& kernel, const attributes& attrs)
      : win(kernel, attrs, extent(kernel.size(), 1)),
        groups(attribute_or<std::int64_t>(attrs, "groups", 1)),
        chain(attribute_or<std::string>(attrs, "accumulate", "exact") == "fma_chain") {}

  std::size_t at_image(std::int64_t sample, std::int64_t group, std::int64_t channel, std::int64_t pixel) const {
    return index(((sample * groups + group) * c + channel) * volume(image) + pixel);
  }
  std::size_t at_result(std::int64_t sample, std::int64_t group, std::int64_t channel, const extent& window) const {
    return index(((sample * groups + group) * o + channel) * volume(result) + number_of_place(result, window));
  }
  std::size_t at_kernel(std::int64_t group, std::int64_t out, std::int64_t in, const extent& tap) const {
    return index(((group * o + out) * c + in) * volume(win.kernel) + number_of_place(win.kernel, tap));
  }
};

void check_convolution(bool ok) {
  if (!ok) throw std::invalid_argument("reference: convolution shapes");
}

}  // namespace

array convolve(const array& x, const array& w, const array* bias, const attributes& attrs, outcomes* where) {
  check_convolution(x.shape.size() == w.shape.size());
  problem p(spatial(w.shape), attrs);
  p.n = x.shape[0];
  p.c = w.shape[1];
  p.o = w.shape[0] / p.groups;
  p.image = spatial(x.shape);
  p.result = p.win.results(p.image);
  check_convolution(x.shape[1] == p.c * p.groups && w.shape[0] == p.o * p.groups);
  check_convolution(bias == nullptr || bias->shape == shape_list{w.shape[0]});
  array out(x.type, with_spatial(p.n, w.shape[0], p.result));
  accumulator a(x.type, p.chain, where);
  for (std::int64_t n = 0; n < p.n; ++n)
    for (std::int64_t t = 0; t < p.groups; ++t)
      for (std::int64_t j = 0; j < p.o; ++j)
        for_places(p.result, [&](const extent& window) {
          a.clear();
          for (std::int64_t i = 0; i < p.c; ++i)
            for_places(p.win.kernel, [&](const extent& tap) {
              if (const auto pixel = p.win.pixel(p.image, window, tap))
                a.add_product(x.get(p.at_image(n, t, i, *pixel)), w.get(p.at_kernel(t, j, i, tap)));
            });
          if (bias != nullptr) a.add(bias->get(index(t * p.o + j)));
          out.set(p.at_result(n, t, j, window), a.round());
        });
  return out;
}

array convolve_grad_input(const array& g, const array& w, const attributes& attrs, outcomes* where) {
  check_convolution(g.shape.size() == w.shape.size());
  problem p(spatial(w.shape), attrs);
  p.n = g.shape[0];
  p.c = w.shape[1];
  p.o = w.shape[0] / p.groups;
  p.image = required_extent(attrs, "size", p.win.axes());
  p.result = spatial(g.shape);
  check_convolution(g.shape[1] == w.shape[0] && w.shape[0] == p.o * p.groups && p.result == p.win.results(p.image));
  array out(g.type, with_spatial(p.n, p.c * p.groups, p.image));
  accumulator a(g.type, p.chain, where);
  for (std::int64_t n = 0; n < p.n; ++n)
    for (std::int64_t t = 0; t < p.groups; ++t)
      for (std::int64_t i = 0; i < p.c; ++i)
        for_places(p.image, [&](const extent& pixel) {
          a.clear();
          for (std::int64_t j = 0; j < p.o; ++j)
            for_places(p.win.kernel, [&](const extent& tap) {
              // The only window whose tap can be this pixel, if it is one.
              extent window;
              for (std::size_t d = 0; d < p.win.axes(); ++d) {
                const std::int64_t at = pixel[d] + p.win.before[d] - tap[d] * p.win.dilation[d];
                if (at < 0 || at % p.win.stride[d] != 0 || at / p.win.stride[d] >= p.result[d]) return;
                window.push_back(at / p.win.stride[d]);
              }
              a.add_product(g.get(p.at_result(n, t, j, window)), w.get(p.at_kernel(t, j, i, tap)));
            });
          out.set(p.at_image(n, t, i, number_of_place(p.image, pixel)), a.round());
        });
  return out;
}

array convolve_grad_weight(const array& g, const array& x, const attributes& attrs, outcomes* where) {
  check_convolution(g.shape.size() == x.shape.size() && g.shape[0] == x.shape[0]);
  problem p(required_extent(attrs, "kernel", spatial(x.shape).size()), attrs);
  p.n = g.shape[0];
  p.c = x.shape[1] / p.groups;
  p.o = g.shape[1] / p.groups;
  p.image = spatial(x.shape);
  p.result = spatial(g.shape);
  check_convolution(x.shape[1] == p.c * p.groups && g.shape[1] == p.o * p.groups && p.result == p.win.results(p.image));
  array out(g.type, with_spatial(g.shape[1], p.c, p.win.kernel));
  accumulator a(g.type, p.chain, where);
  for (std::int64_t t = 0; t < p.groups; ++t)
    for (std::int64_t j = 0; j < p.o; ++j)
      for (std::int64_t i = 0; i < p.c; ++i)
        for_places(p.win.kernel, [&](const extent& tap) {
          a.clear();
          for (std::int64_t n = 0; n < p.n; ++n)
            for_places(p.result, [&](const extent& window) {
              if (const auto pixel = p.win.pixel(p.image, window, tap))
                a.add_product(g.get(p.at_result(n, t, j, window)), x.get(p.at_image(n, t, i, *pixel)));
            });
          out.set(p.at_kernel(t, j, i, tap), a.round());
        });
  return out;
}

array convolve_grad_bias(const array& g, outcomes* where) {
  shape_list axes{0};
  for (std::size_t d = 2; d < g.shape.size(); ++d) axes.push_back(static_cast<std::int64_t>(d));
  return reduce(reduction::sum, g, axes, false, where);
}

}  // namespace repdl::reference
