// Images sampled at the points of a grid. Written with operations that autograd knows: gradients are its own, of these formulas.
#include <ATen/ops/arange.h>
#include <ATen/ops/floor.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/round.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include "formulas.hpp"

namespace repdl_torch::formulas {
namespace {

enum { bilinear_mode, nearest_mode, bicubic_mode };
enum { zeros_padding, border_padding, reflection_padding };

// Pixels along one axis, as numbers, and what each is multiplied by.
struct tap {
  Tensor place, weight;
};

class axis_of_grid {
 public:
  axis_of_grid(int64_t size, int64_t padding, bool align)
      : last_(static_cast<double>(size - 1)), padding_(padding), align_(align) {}

  // Where a coordinate from -1 to 1 lies, in pixels.
  Tensor pixel(const Tensor& v) const {
    const Tensor from_edge = v.add(1);
    return align_ ? from_edge.div(2).mul(last_) : from_edge.mul(last_ + 1).sub(1).div(2);
  }
  std::vector<tap> taps(const Tensor& u, int64_t mode) const {
    if (mode == nearest_mode) {  // times 1, so that the grid has a gradient, of zeros
      const Tensor at = at::round(padded(u)), place = at.detach();
      return {{place, at.masked_fill(at::ones_like(place, place.options().dtype(at::kBool)), 1)}};
    }
    if (mode == bilinear_mode) {
      const Tensor at = padded(u), below = at::floor(at.detach()), above = below.add(1);
      return {{below, above.sub(at)}, {above, at.sub(below)}};
    }
    const Tensor below = at::floor(u.detach()), t = u.sub(below), rest = at::rsub(t, 1);
    const auto place = [&](double offset) { return padded(below.add(offset)); };
    return {{place(-1), far(t.add(1))}, {place(0), near(t)}, {place(1), near(rest)}, {place(2), far(rest.add(1))}};
  }
  Tensor is_outside(const Tensor& place) const { return place.lt(0).logical_or(place.gt(last_)); }
  Tensor index(const Tensor& place) const { return place.clamp(0, last_).to(at::kLong); }

 private:
  // The two pieces of the cubic convolution with A = -3/4, as polynomials of Horner's form.
  static Tensor near(const Tensor& x) { return x.mul(1.25).sub(2.25).mul(x).mul(x).add(1); }
  static Tensor far(const Tensor& x) { return x.mul(-0.75).add(3.75).mul(x).sub(6).mul(x).add(3); }

  // Reflected at the edges, and at most at the outermost pixels; there, and beyond, without a gradient.
  Tensor padded(const Tensor& given) const {
    if (padding_ == zeros_padding) return given;
    const Tensor u = padding_ == reflection_padding ? reflected(given) : given;
    return at::where(u.gt(0).logical_and(u.lt(last_)), u, u.detach().clamp(0, last_));
  }
  Tensor reflected(const Tensor& u) const {
    const double low = align_ ? 0 : -0.5, span = align_ ? last_ : last_ + 1;
    if (span == 0) return at::zeros_like(u);
    const Tensor far = u.sub(low).abs().fmod(2 * span);
    return at::where(far.gt(span), at::rsub(far, 2 * span), far).add(low);
  }

  double last_;  // pixel
  int64_t padding_;
  bool align_;
};
}  // namespace

// input, grid, interpolation_mode, padding_mode, align_corners: of 16 bits in float32, and then once more
void grid_sampler(call& c) {
  const Tensor &x = c.tensor(0), &grid = c.tensor(1);
  const int64_t axes = x.dim() - 2, mode = c.integer(2), padding = c.integer(3);
  TORCH_CHECK(
      (axes == 2 || axes == 3) && grid.dim() == x.dim(),
      "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with sizes ",
      x.sizes(), " and grid with sizes ", grid.sizes());
  TORCH_CHECK(x.scalar_type() == grid.scalar_type(),
              "grid_sampler(): expected input and grid to have same dtype, but input has ", x.scalar_type(),
              " and grid has ", grid.scalar_type());
  TORCH_CHECK(x.size(0) == grid.size(0) && grid.size(-1) == axes,
              "grid_sampler(): expected grid of the input's batch size and with ", axes,
              " in its last dimension, but got ", grid.sizes());
  TORCH_CHECK(
      mode >= bilinear_mode && mode <= bicubic_mode && padding >= zeros_padding && padding <= reflection_padding,
      "grid_sampler(): unknown mode");
  TORCH_CHECK(axes == 2 || mode != bicubic_mode, "grid_sampler(): bicubic interpolation only supports 4D input");
  for (int64_t k = 2; k < x.dim(); ++k)
    TORCH_CHECK(x.size(k) > 0, "grid_sampler(): expected input to have non-empty spatial dimensions, but got ",
                x.sizes());
  const at::ScalarType inner = in_arithmetic(x.scalar_type());
  const int64_t n = x.size(0), channels = x.size(1), points = c10::multiply_integers(grid.sizes().slice(1, axes));
  auto shape = grid.sizes().vec();
  shape.pop_back();
  shape.insert(shape.begin() + 1, channels);

  // Of each combination of the axes' pixels the place, whether it is outside, the weight.
  struct pixel {
    Tensor index, outside, weight;
  };
  std::vector<pixel> pixels;
  const Tensor coordinates = grid.to(inner).reshape({n, points, axes});
  int64_t stride = 1;
  for (int64_t k = 0; k < axes; ++k) {  // the last axis first
    const int64_t size = x.size(x.dim() - 1 - k);
    const axis_of_grid axis(size, padding, c.boolean(4));
    const std::vector<pixel> before = std::exchange(pixels, {});
    for (const tap& t : axis.taps(axis.pixel(coordinates.select(2, k)), mode)) {
      const Tensor index = axis.index(t.place).mul(stride), outside = axis.is_outside(t.place);
      if (k == 0) pixels.push_back({index, outside, t.weight});
      for (const pixel& p : before) {
        pixels.push_back({p.index.add(index), p.outside.logical_or(outside), p.weight.mul(t.weight)});
      }
    }
    stride *= size;
  }
  std::vector<Tensor> indices, outsides, weights;
  for (const pixel& p : pixels) {
    indices.push_back(p.index);
    outsides.push_back(p.outside);
    weights.push_back(p.weight);
  }
  const auto taps = static_cast<int64_t>(pixels.size());
  const Tensor outside = at::stack(outsides, 1),
               index = at::stack(indices, 1).view({n, 1, taps * points}).expand({n, channels, taps * points});
  const Tensor values = at::gather(x.to(inner).reshape({n, channels, stride}), 2, index)
                            .view({n, channels, taps, points})
                            .masked_fill(outside.unsqueeze(1), 0);
  const Tensor weight = at::stack(weights, 1).masked_fill(outside, 0);
  // The sum of the products in one rounding.
  const Tensor out =
      taps == 1
          ? values.mul(weight.unsqueeze(1)).squeeze(2)
          : at::matmul(values.permute({0, 3, 1, 2}), weight.transpose(1, 2).unsqueeze(3)).squeeze(3).transpose(1, 2);
  c.give(out.reshape(shape).to(x.scalar_type()));
}

// theta, size, align_corners: products with the coordinates, (2 j + 1 - n) / n or (2 j + 1 - n) / (n - 1), each rounded once
void affine_grid_generator(call& c) {
  const Tensor& theta = c.tensor(0);
  const auto size = c.integers(1);
  const auto axes = static_cast<int64_t>(size.size()) - 2;
  TORCH_CHECK(axes == 2 || axes == 3, "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.");
  TORCH_CHECK(theta.dim() == 3 && theta.size(0) == size[0] && theta.size(1) == axes && theta.size(2) == axes + 1,
              "Expected a batch of affine matrices of shape ", size[0], "x", axes, "x", axes + 1, ", but got ",
              theta.sizes());
  const at::ScalarType inner = in_arithmetic(theta.scalar_type());
  const std::vector<int64_t> shape(size.begin() + 2, size.end());
  std::vector<Tensor> columns;
  for (int64_t k = axes - 1; k >= 0; --k) {  // the last axis first
    const int64_t n = shape[static_cast<size_t>(k)], parts = c.boolean(2) ? std::max<int64_t>(n - 1, 1) : n;
    std::vector<int64_t> along(static_cast<size_t>(axes), 1);
    along[static_cast<size_t>(k)] = n;
    const Tensor twice = at::arange(n, theta.options().dtype(at::kLong)).mul(2).sub(n - 1);
    columns.push_back(twice.to(inner).div(static_cast<double>(parts)).view(along).expand(shape).reshape({-1}));
  }
  columns.push_back(at::ones({c10::multiply_integers(shape)}, theta.options().dtype(inner)));
  auto result = shape;
  result.insert(result.begin(), size[0]);
  result.push_back(axes);
  const Tensor points = at::matmul(at::stack(columns, 1), theta.to(inner).transpose(1, 2));
  c.give(points.view(result).to(theta.scalar_type()));
}

}  // namespace repdl_torch::formulas
