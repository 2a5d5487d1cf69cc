// Places that indices name: exact sums of what comes to one, or of several values the last.
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/im2col.h>
#include <ATen/ops/index.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/index_put.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/reflection_pad1d.h>
#include <ATen/ops/reflection_pad2d.h>
#include <ATen/ops/reflection_pad3d.h>
#include <ATen/ops/replication_pad1d.h>
#include <ATen/ops/replication_pad2d.h>
#include <ATen/ops/replication_pad3d.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/scatter_add.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "formulas.hpp"

namespace repdl_torch::formulas {
namespace {
// The gradient of a copy: the exact sum of g over the places where an element went. `places`: of each element of g the index of
// the one that it was copied from, as a row-major number.
Tensor sum_to_places(const Tensor& g, const Tensor& places, at::IntArrayRef shape) {
  const Tensor sums = at::zeros({c10::multiply_integers(shape)}, g.options());
  return at::index_add(sums, 0, places.reshape({-1}), g.reshape({-1})).view(shape);
}
// Numbers of the elements of a shape, in binary64, which padding takes: exact below 2^53.
Tensor numbers(at::IntArrayRef shape, const Tensor& like) {
  return at::arange(c10::multiply_integers(shape), like.options().dtype(at::kLong)).to(at::kDouble).view(shape);
}
template <class Pad>
void pad_backward(call& c, Pad&& pad) {
  const Tensor &g = c.tensor(0), &x = c.tensor(1);
  const Tensor places = pad(numbers(x.sizes(), x), c.integers(2));
  TORCH_CHECK(places.sizes() == g.sizes(), "expected a gradient of shape ", places.sizes(), ", got ", g.sizes());
  c.give(sum_to_places(g, places.to(at::kLong), x.sizes()));
}
}  // namespace
// grad_output, self, padding
void reflection_pad1d_backward(call& c) {
  pad_backward(c, [](const Tensor& t, at::IntArrayRef p) { return at::reflection_pad1d(t, p); });
}
void reflection_pad2d_backward(call& c) {
  pad_backward(c, [](const Tensor& t, at::IntArrayRef p) { return at::reflection_pad2d(t, p); });
}
void reflection_pad3d_backward(call& c) {
  pad_backward(c, [](const Tensor& t, at::IntArrayRef p) { return at::reflection_pad3d(t, p); });
}
void replication_pad1d_backward(call& c) {
  pad_backward(c, [](const Tensor& t, at::IntArrayRef p) { return at::replication_pad1d(t, p); });
}
void replication_pad2d_backward(call& c) {
  pad_backward(c, [](const Tensor& t, at::IntArrayRef p) { return at::replication_pad2d(t, p); });
}
void replication_pad3d_backward(call& c) {
  pad_backward(c, [](const Tensor& t, at::IntArrayRef p) { return at::replication_pad3d(t, p); });
}
// grad_in, input_sizes, dim, size, step
void unfold_backward(call& c) {
  const Tensor& g = c.tensor(0);
  const auto shape = c.integers(1);
  const Tensor all = at::arange(c10::multiply_integers(shape), g.options().dtype(at::kLong)).view(shape);
  c.give(sum_to_places(g, all.unfold(c.integer(2), c.integer(3), c.integer(4)), shape));
}
// self, output_size, kernel_size, dilation, padding, stride: windows that overlap are added
void col2im(call& c) {
  const Tensor& x = c.tensor(0);
  const auto size = c.integers(1), kernel = c.integers(2);
  TORCH_CHECK(size.size() == 2 && kernel.size() == 2 && (x.dim() == 2 || x.dim() == 3),
              "col2im: expected an input of 2 or 3 dimensions, got ", x.dim());
  const int64_t pixels = size[0] * size[1], taps = kernel[0] * kernel[1], columns = x.size(-1),
                n = x.dim() == 3 ? x.size(0) : 1;
  TORCH_CHECK(taps > 0 && x.size(-2) % taps == 0,
              "Expected size of input's dimension 1 to be divisible by the product of kernel_size, got ", x.size(-2),
              " and kernel_size=", kernel);
  const int64_t channels = x.size(-2) / taps;
  // Of each tap its pixel, from 1; 0 is the padding.
  const Tensor places =
      at::im2col(numbers({1, 1, size[0], size[1]}, x).add(1), kernel, c.integers(3), c.integers(4), c.integers(5));
  TORCH_CHECK(places.size(-1) == columns, "Given output_size=", size,
              ", expected size of input's dimension 2 to match the calculated number of sliding blocks ",
              places.size(-1), ", but got ", columns);
  const Tensor sums = at::zeros({n * channels, pixels + 1}, x.options());
  const Tensor out =
      at::index_add(sums, 1, places.to(at::kLong).reshape({-1}), x.reshape({n * channels, taps * columns}))
          .narrow(1, 1, pixels)
          .contiguous();
  c.give(x.dim() == 3 ? out.view({n, channels, size[0], size[1]}) : out.view({channels, size[0], size[1]}));
}
// grad_output, indices, num_weights, padding_idx, scale_grad_by_freq
void embedding_dense_backward(call& c) {
  static const operation op("embedding_backward");
  const Tensor& g = c.tensor(0);
  const Tensor index = c.tensor(1).to(at::kLong);
  const int64_t rows = c.integer(2), padding = c.integer(3);
  Tensor out = at::empty({rows, g.size(-1)}, g.options());
  if (padding >= 0) {
    op({g, index}, {&out}, {{"rows", rows}, {"padding_idx", padding}, {"scale_grad_by_freq", c.boolean(4)}});
  } else {
    op({g, index}, {&out}, {{"rows", rows}, {"scale_grad_by_freq", c.boolean(4)}});
  }
  c.give(out);
}
// self, weights, minlength
void bincount(call& c) {
  const Tensor &x = c.tensor(0), &weights = c.tensor(1);
  if (!weights.defined() || x.numel() == 0) return c.leave();
  if (weights.scalar_type() != at::kFloat && weights.scalar_type() != at::kDouble)
    c.refuse("with weights that are neither float32 nor float64");
  TORCH_CHECK(x.dim() == 1 && weights.sizes() == x.sizes() && x.min().item<int64_t>() >= 0,
              "bincount only supports 1-d non-negative integral inputs, and weights of the same length.");
  const int64_t count = std::max(x.max().item<int64_t>() + 1, c.integer(2));
  c.give(at::scatter_add(at::zeros({count}, weights.options()), 0, x.to(at::kLong), weights));
}
// self, bins, min, max: the bin of x is floor((x - min) bins / (max - min)), exactly; max lies in the last one, what is outside in none
void histc(call& c) {
  const Tensor x = c.tensor(0).reshape({-1});
  const int64_t bins = c.integer(1);
  TORCH_CHECK(bins > 0, "torch.histc: bins must be > 0, but got ", bins);
  if (bins >= int64_t{1} << 24) c.refuse("with 2^24 bins or more");
  auto low = static_cast<float>(c.number(2, at::kFloat)), high = static_cast<float>(c.number(3, at::kFloat));
  if (low == high && x.numel() > 0) {
    low = x.min().item<float>();
    high = x.max().item<float>();
  }
  if (low == high) {
    low -= 1;
    high += 1;
  }
  TORCH_CHECK(std::isfinite(low) && std::isfinite(high), "torch.histc: range of [", low, ", ", high, "] is not finite");
  TORCH_CHECK(low < high, "torch.histc: max must be larger than min");
  const Tensor inside = x.masked_select(x.ge(low).logical_and(x.le(high)));
  if (inside.numel() == 0) return c.give(at::zeros({bins}, x.options()));
  // Whether x lies at edge k or above: the sign of bins x + (k - bins) min - k max, an exact sum, of multiples of 2^-149.
  const auto reaches = [&](const Tensor& k) {
    const Tensor edge = k.to(at::kFloat),
                 numbers = at::stack({inside, at::full_like(inside, low), at::full_like(inside, high)}, 1),
                 factors = at::stack({at::full_like(inside, bins), edge.sub(bins), edge.neg()}, 1);
    return at::bmm(numbers.unsqueeze(1), factors.unsqueeze(2)).view({-1}).ge(0).to(at::kLong);
  };
  // In float64 at most one beside it.
  const Tensor near =
      inside.to(at::kDouble).sub(low).mul(bins).div(static_cast<double>(high) - low).floor().to(at::kLong);
  const Tensor below = near.add(reaches(near)).sub(1), bin = below.add(reaches(below.add(1)));
  c.give(at::bincount(bin.clamp_max(bins - 1), {}, bins).to(at::kFloat));
}
namespace {
// Of edges that are not decreasing, compared with as they are, the last bin closed: how many lie in each, or the exact sum of their weights;
// a density is divided by the sum of all, and by the bin's width, each rounded.
void give_histogram(call& c, const Tensor& edges, const Tensor& weights, bool density) {
  const Tensor x = c.tensor(0).reshape({-1}).contiguous();
  TORCH_CHECK(
      !weights.defined() || (weights.sizes() == c.tensor(0).sizes() && weights.scalar_type() == x.scalar_type()),
      "torch.histogram: if weight tensor is provided it should have the same shape and dtype as the input tensor");
  const int64_t bins = edges.numel() - 1;
  const Tensor above = at::searchsorted(edges, x, /*out_int32=*/false, /*right=*/true);
  const Tensor inside = x.ge(edges[0]).logical_and(x.le(edges[bins]));
  const Tensor bin = at::where(inside, above.sub(1).clamp(0, bins - 1), bins);  // one more, of those outside
  Tensor found = at::scatter_add(at::zeros({bins + 1}, x.options()), 0, bin,
                                 weights.defined() ? weights.reshape({-1}) : at::ones_like(x))
                     .narrow(0, 0, bins);
  if (density) found = found.div(found.sum()).div(edges.diff());
  c.give(found.clone());
  c.give(edges);
}
}  // namespace
// self, bins, weight, density: the edges
void histogram_edges(call& c) {
  const Tensor& edges = c.tensor(1);
  TORCH_CHECK(edges.dim() == 1 && edges.numel() > 1 && edges.scalar_type() == c.tensor(0).scalar_type(),
              "torch.histogram: expected two edges or more in a vector of the input's type");
  give_histogram(c, edges.contiguous().clone(), c.tensor(2), c.boolean(3));
}
// self, bins, range, weight, density: edges as linspace gives them
void histogram_count(call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t bins = c.integer(1);
  TORCH_CHECK(bins > 0, "torch.histogram: bins must be > 0, but got ", bins);
  double low = 0, high = 1;
  if (c.has(2)) {
    const auto range = c.value(2).toDoubleVector();
    TORCH_CHECK(range.size() == 2, "torch.histogram: expected a range of 2 numbers, got ", range.size());
    low = range[0];
    high = range[1];
  } else if (x.numel() > 0) {
    low = x.min().item<double>();
    high = x.max().item<double>();
  }
  TORCH_CHECK(std::isfinite(low) && std::isfinite(high), "torch.histogram: range of [", low, ", ", high,
              "] is not finite");
  TORCH_CHECK(low <= high, "torch.histogram: max must be larger than min");
  if (low == high) {
    low -= 0.5;
    high += 0.5;
  }
  give_histogram(c, at::linspace(low, high, bins + 1, x.options()), c.tensor(3), c.boolean(4));
}
namespace {
// self, indices, output_size: of planes of `axes` axes
void max_unpool(call& c, int64_t axes) {
  const Tensor &x = c.tensor(0), &index = c.tensor(1);
  const auto size = c.integers(2);
  TORCH_CHECK(index.scalar_type() == at::kLong,
              "elements in indices should be type int64 but got: ", index.scalar_type());
  TORCH_CHECK(static_cast<int64_t>(size.size()) == axes, "There should be exactly ", axes,
              " elements in output_size, but got ", size.size());
  TORCH_CHECK((x.dim() == axes + 1 || x.dim() == axes + 2) && x.sizes() == index.sizes(), "max_unpool", axes,
              "d: expected an input of ", axes + 1, " or ", axes + 2, " dimensions and indices of its shape, got ",
              x.sizes(), " and ", index.sizes());
  auto shape = x.sizes().vec();
  const int64_t pixels = c10::multiply_integers(shape.end() - axes, shape.end()),
                planes = pixels == 0 ? 0 : x.numel() / pixels;
  std::copy(size.begin(), size.end(), shape.end() - axes);
  if (planes == 0) return c.give(at::zeros(shape, x.options()));
  const Tensor out = at::zeros({planes, c10::multiply_integers(size)}, x.options());
  c.give(at::scatter(out, 1, index.reshape({planes, pixels}), x.reshape({planes, pixels})).view(shape));
}
}  // namespace
void max_unpool2d(call& c) { max_unpool(c, 2); }
// also stride, padding, which nothing depends on
void max_unpool3d(call& c) { max_unpool(c, 3); }
// self, dim, index, source, alpha
void index_add(call& c) {
  static const operation op("index_add");
  const Tensor &x = c.tensor(0), &source = c.tensor(3);
  const int64_t axis = at::maybe_wrap_dim(c.integer(1), x.dim());
  const Tensor index = c.tensor(2).to(at::kLong).reshape({-1});
  TORCH_CHECK(x.scalar_type() == source.scalar_type(), "index_add(): self (", x.scalar_type(), ") and source (",
              source.scalar_type(), ") must have the same scalar type");
  Tensor out = at::empty_like(x, at::MemoryFormat::Contiguous);
  const auto whole = [](const Tensor& t) { return t.dim() == 0 ? t.unsqueeze(0) : t; };
  const Tensor px = whole(x), ps = whole(source), po = whole(out);
  op({px, index, ps}, {&po}, {{"axis", axis}, {"alpha", c.number(4, x.scalar_type())}});
  c.give(out);
}
namespace {
// The slices of x that an index names, where it is expanded along all other axes; else nothing.
Tensor slices_of(Tensor index, const Tensor& x, int64_t axis) {
  bool several = false;
  for (int64_t i = index.dim(); i-- > 0;) {
    if (i == axis) continue;
    if (index.size(i) != x.size(i) || (index.stride(i) != 0 && index.size(i) != 1)) return {};
    several |= index.size(i) != 1;
    index = index.select(i, 0);
    axis -= i < axis;
  }
  return several ? index : Tensor();
}
}  // namespace
// self, dim, index, src
void scatter_add(call& c) {
  static const operation op("scatter_add");
  const Tensor &x = c.tensor(0), &source = c.tensor(3);
  const int64_t axis = at::maybe_wrap_dim(c.integer(1), x.dim());
  TORCH_CHECK(x.scalar_type() == source.scalar_type(), "scatter(): Expected self.dtype to be equal to src.dtype");
  const auto whole = [](const Tensor& t) { return t.dim() == 0 ? t.unsqueeze(0) : t; };
  Tensor out = at::empty_like(x, at::MemoryFormat::Contiguous);
  const Tensor px = whole(x), index = whole(c.tensor(2)).to(at::kLong), po = whole(out);
  Tensor ps = whole(source);
  for (int64_t i = 0; i < index.dim(); ++i) {  // aten's source may be larger than the index
    if (ps.size(i) > index.size(i)) ps = ps.narrow(i, 0, index.size(i));
  }
  if (index.numel() == 0) return c.give(x.clone(at::MemoryFormat::Contiguous));
  if (const Tensor slices = slices_of(index, px, axis); slices.defined()) {
    static const operation of_slices("index_add");
    of_slices({px, slices, ps}, {&po}, {{"axis", axis}, {"alpha", 1.0}});
  } else {
    op({px, index, ps}, {&po}, {{"axis", axis}});
  }
  c.give(out);
}

namespace {
// Of the values that go to one place the last: which ordinal each place gets, -1 for none.
Tensor last_ordinal(int64_t places, const Tensor& index) {
  const Tensor ordinals = at::arange(index.numel(), index.options());
  return at::full({places}, -1, index.options()).scatter_reduce(0, index, ordinals, "amax", /*include_self=*/true);
}
// self + the exact sums of values at indices: of slices, along the axes that have no index.
Tensor sums_at(const Tensor& self, const c10::List<std::optional<Tensor>>& indices, const Tensor& values) {
  std::vector<int64_t> indexed, others, shape(self.dim(), 1);
  int64_t first = -1, last = -1;  // of the indices that are there, and
  int64_t before = 0;             // axes before them
  for (int64_t i = 0, axis = 0; axis < self.dim(); ++i) {
    const std::optional<Tensor> index = i < static_cast<int64_t>(indices.size()) ? indices.get(i) : std::nullopt;
    const bool mask = index && (index->scalar_type() == at::kBool || index->scalar_type() == at::kByte);
    int64_t axes = mask ? index->dim() : 1;
    if (index) {
      if (first < 0) first = i, before = axis;
      last = i;
    }
    for (; axes > 0 && axis < self.dim(); --axes, ++axis) {
      (index ? indexed : others).push_back(axis);
      if (index) shape[axis] = self.size(axis);
    }
  }
  bool together = true;
  for (int64_t i = first; i < last; ++i) together &= indices.get(i).has_value();
  if (!together) before = 0;  // the axes of the indices' shape then come first
  const Tensor numbers = at::arange(c10::multiply_integers(shape), self.options().dtype(at::kLong)).view(shape);
  const Tensor index = at::index(numbers, indices);
  // The axes of values: `before` others, those of the indices, the rest of the others.
  auto sizes = index.sizes().vec();
  const auto of_index = static_cast<int64_t>(sizes.size() - others.size());
  std::vector<int64_t> order(sizes.size());
  for (int64_t i = 0; i < of_index; ++i) order[i] = before + i;
  for (int64_t i = 0; i < static_cast<int64_t>(others.size()); ++i) {
    const int64_t at = i < before ? i : of_index + i;
    order[of_index + i] = at;
    sizes[at] = self.size(others[i]);
  }
  const int64_t rows = numbers.numel(), places = index.numel();
  indexed.insert(indexed.end(), others.begin(), others.end());
  const Tensor x = self.permute(indexed);
  int64_t width = 1;
  for (const int64_t axis : others) width *= self.size(axis);
  const Tensor source = values.to(self.options()).expand(sizes).permute(order).reshape({places, width});
  const Tensor sums = at::index_add(x.reshape({rows, width}), 0, index.reshape({-1}), source).view(x.sizes());
  std::vector<int64_t> back(indexed.size());
  for (size_t i = 0; i < indexed.size(); ++i) back[indexed[i]] = static_cast<int64_t>(i);
  return sums.permute(back).contiguous();
}
}  // namespace

// self, indices, values, accumulate, unsafe: exact sums, or of values for one place the last in row-major order
void index_put(call& c) {
  const Tensor &self = c.tensor(0), &values = c.tensor(2);
  const bool accumulate = c.boolean(3), floats = at::isFloatingType(self.scalar_type());
  bool several = false;  // of a mask each place comes once
  c10::List<std::optional<Tensor>> indices;
  for (const IValue& v : c.value(1).toListRef()) {
    const bool there = v.isTensor() && v.toTensor().defined();
    several |= there && v.toTensor().scalar_type() != at::kBool && v.toTensor().scalar_type() != at::kByte;
    indices.push_back(there ? std::optional(v.toTensor()) : std::nullopt);
  }
  if (accumulate && !floats && !at::isComplexType(self.scalar_type())) return c.leave();
  if (accumulate && !(type_bit(self.scalar_type()) & FLOATS)) c.refuse("");
  if (!accumulate && (!several || values.numel() == 1)) return c.leave();
  if (accumulate) return c.give(sums_at(self, indices, values));
  const Tensor places = at::arange(self.numel(), self.options().dtype(at::kLong)).view(self.sizes());
  const Tensor index = at::index(places, indices);
  const Tensor flat = index.reshape({-1}), source = values.to(self.options()).expand(index.sizes()).reshape({-1});
  const Tensor before = self.reshape({-1}), last = last_ordinal(self.numel(), flat);
  c.give(at::where(last.ge(0), source.numel() == 0 ? before : source.gather(0, last.clamp_min(0)), before)
             .view(self.sizes()));
}
// self, index, source, accumulate: places in row-major order
void put(call& c) {
  const Tensor &self = c.tensor(0), &index = c.tensor(1), &source = c.tensor(2);
  TORCH_CHECK(index.scalar_type() == at::kLong, "put_(): Expected a long tensor for index, but got ",
              index.scalar_type());
  TORCH_CHECK(self.scalar_type() == source.scalar_type(),
              "put_(): self and source expected to have the same dtype, but got self.dtype = ", self.scalar_type(),
              " and source.dtype = ", source.scalar_type());
  TORCH_CHECK(index.numel() == source.numel(),
              "put_(): Expected source and index to have the same number of elements, but got source.numel() = ",
              source.numel(), ", index.numel() = ", index.numel());
  TORCH_CHECK_INDEX(self.numel() != 0 || index.numel() == 0, "put_(): Tried to put elements into an empty tensor");
  c10::List<std::optional<Tensor>> places;
  places.push_back(index.reshape({-1}));
  c.give(at::index_put(self.reshape({-1}), places, source.reshape({-1}), c.boolean(3)).view(self.sizes()));
}
// self, dim, index, src: aten's kernel on the CPU goes through them in order
void scatter(call& c) {
  if (c.tensor(0).is_cpu()) return c.leave();
  const Tensor &self = c.tensor(0), &index = c.tensor(2);
  if (index.numel() == 0 || self.dim() == 0) return c.leave();
  const int64_t axis = at::maybe_wrap_dim(c.integer(1), self.dim());
  Tensor source = c.tensor(3);
  for (int64_t i = 0; i < index.dim(); ++i) source = source.narrow(i, 0, index.size(i));
  std::vector<int64_t> shape(index.dim(), 1);
  shape[axis] = index.size(axis);
  const Tensor ordinals = at::arange(index.size(axis), index.options()).view(shape).expand(index.sizes());
  const Tensor last = at::full(self.sizes(), -1, index.options()).scatter_reduce(axis, index, ordinals, "amax", true);
  // Places outside of the index's other axes have none.
  Tensor window = last;
  for (int64_t i = 0; i < index.dim(); ++i) {
    if (i != axis) window = window.narrow(i, 0, index.size(i));
  }
  const Tensor found = source.gather(axis, window.clamp_min(0));
  Tensor out = self.clone();
  Tensor to = out;
  for (int64_t i = 0; i < index.dim(); ++i) {
    if (i != axis) to = to.narrow(i, 0, index.size(i));
  }
  to.copy_(at::where(window.ge(0), found, to));
  c.give(out);
}
// self, dim, index, source
void index_copy(call& c) {
  if (c.tensor(0).is_cpu()) return c.leave();
  const Tensor &self = c.tensor(0), &source = c.tensor(3);
  if (self.dim() == 0 || c.tensor(2).numel() == 0) return c.leave();
  const int64_t axis = at::maybe_wrap_dim(c.integer(1), self.dim());
  std::vector<int64_t> shape(self.dim(), 1);
  shape[axis] = c.tensor(2).numel();
  c.give(at::scatter(self, axis, c.tensor(2).reshape(shape).expand(source.sizes()), source));
}

}  // namespace repdl_torch::formulas
