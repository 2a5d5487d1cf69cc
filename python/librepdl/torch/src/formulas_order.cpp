// Order: what equal elements do.
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/bitwise_right_shift.h>
#include <ATen/ops/bitwise_xor.h>
#include <ATen/ops/cummax.h>
#include <ATen/ops/cummin.h>
#include <ATen/ops/div.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/where.h>

#include "formulas.hpp"

namespace repdl_torch::formulas {
// self, stable, dim, descending
void sort(call& c) {
  if (c.has(1) && c.boolean(1)) return c.leave();
  auto [values, indices] = at::sort(c.tensor(0), /*stable=*/true, c.integer(2), c.boolean(3));
  c.give(values);
  c.give(indices);
}
// self, k, dim, largest, sorted: of equal ones the first, in order
void topk(call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t k = c.integer(1);
  if (x.dim() == 0) return c.leave();
  const int64_t axis = at::maybe_wrap_dim(c.integer(2), x.dim());
  TORCH_CHECK(k >= 0 && k <= x.size(axis), "selected index k out of range");
  auto [values, indices] = at::sort(x, /*stable=*/true, axis, c.boolean(3));
  c.give(values.narrow(axis, 0, k).contiguous());
  c.give(indices.narrow(axis, 0, k).contiguous());
}
namespace {
// The element at a place of each row in ascending order.
void give_place(call& c, const Tensor& values, const Tensor& indices, const Tensor& place, int64_t axis, bool keep) {
  const auto pick = [&](const Tensor& t) {
    const Tensor picked = t.gather(axis, place);
    return keep ? picked : picked.squeeze(axis);
  };
  c.give(pick(values));
  c.give(pick(indices));
}
}  // namespace
// self, k, dim, keepdim
void kthvalue(call& c) {
  const Tensor& x = c.tensor(0);
  if (x.dim() == 0) return c.leave();
  const int64_t axis = at::maybe_wrap_dim(c.integer(2), x.dim()), k = c.integer(1);
  TORCH_CHECK(k >= 1 && k <= x.size(axis), "kthvalue(): selected number k out of range for dimension ", axis);
  const auto [values, indices] = at::sort(x, /*stable=*/true, axis, false);
  auto shape = x.sizes().vec();
  shape[axis] = 1;
  give_place(c, values, indices, at::full(shape, k - 1, x.options().dtype(at::kLong)), axis, c.boolean(3));
}
// self, dim, keepdim: of the values that come most often the least, at its last place; each NaN is a value of its own
void mode(call& c) {
  const Tensor& x = c.tensor(0);
  if (x.dim() == 0) return c.leave();
  const int64_t axis = at::maybe_wrap_dim(c.integer(1), x.dim()), n = x.size(axis);
  TORCH_CHECK_INDEX(n > 0 || x.numel() > 0, "mode(): Expected reduction dim ", axis, " to have non-zero size.");
  const auto [values, indices] = at::sort(x, /*stable=*/true, axis, false);
  std::vector<int64_t> shape(x.dim(), 1);
  shape[axis] = n;
  const Tensor place = at::arange(n, indices.options()).view(shape);
  // Where a run of equal values begins, and how long it is up to each place: the first that is longest is the end of its run.
  const Tensor begins = at::full_like(indices, true, indices.options().dtype(at::kBool));
  begins.narrow(axis, 1, n - 1).copy_(values.narrow(axis, 1, n - 1).ne(values.narrow(axis, 0, n - 1)));
  const Tensor start = std::get<0>(at::where(begins, place, 0).cummax(axis));
  give_place(c, values, indices, place.sub(start).argmax(axis, /*keepdim=*/true), axis, c.boolean(2));
}
// The lower one of two in the middle, of the first NaN where there is one; or, without the NaNs, of the others.
namespace {
Tensor middle(const Tensor& nans, int64_t n, bool without) {  // sorted, NaNs are the last
  const Tensor numbers = nans.neg().add(n);
  if (without) return at::div(numbers.sub(1), 2, "trunc").clamp_min(0);
  return at::where(nans.gt(0), numbers, at::full_like(nans, (n - 1) / 2));
}
void median_along(call& c, bool without) {
  const Tensor& x = c.tensor(0);
  if (x.dim() == 0 || x.numel() == 0) return c.leave();
  const int64_t axis = at::maybe_wrap_dim(c.integer(1), x.dim());
  const auto [values, indices] = at::sort(x, /*stable=*/true, axis, false);
  give_place(c, values, indices, middle(x.isnan().sum(axis, /*keepdim=*/true), x.size(axis), without), axis,
             c.boolean(2));
}
void median_of_all(call& c, bool without) {
  const Tensor x = c.tensor(0).reshape({-1});
  if (x.numel() == 0) return c.leave();
  const Tensor place = middle(x.isnan().sum(), x.numel(), without).reshape({1});
  c.give(std::get<0>(at::sort(x, /*stable=*/true, 0, false)).gather(0, place).squeeze(0));
}
}  // namespace
// self, dim, keepdim
void median_dim(call& c) { median_along(c, false); }
void nanmedian_dim(call& c) { median_along(c, true); }
void median_all(call& c) { median_of_all(c, false); }
void nanmedian_all(call& c) { median_of_all(c, true); }

namespace {
// Integers in the order of floating-point numbers: the bits, those of magnitudes turned round where the sign is set.
Tensor order_keys(const Tensor& x, bool nan_is_greatest) {
  const int64_t bits = 8 * static_cast<int64_t>(x.element_size());
  const auto type = bits == 16 ? at::kShort : bits == 32 ? at::kInt : at::kLong;
  const int64_t greatest = std::numeric_limits<int64_t>::max() >> (64 - bits);
  const Tensor b = x.contiguous().view(type);
  const Tensor turned = at::bitwise_and(at::bitwise_right_shift(b, bits - 1), greatest);
  return at::bitwise_xor(b, turned).masked_fill_(x.isnan(), nan_is_greatest ? greatest : -greatest - 1);
}
// self, dim: aten's kernels of integers round nothing; the last of equal ones, where +0 is above -0.
template <class F>
void extremes_so_far(call& c, bool greatest, const F& of_integers) {
  const Tensor& x = c.tensor(0);
  if (!at::isFloatingType(x.scalar_type()) || x.numel() == 0) return c.leave();
  if (!(type_bit(x.scalar_type()) & FLOATS)) c.refuse("");
  const int64_t axis = at::maybe_wrap_dim(c.integer(1), x.dim());
  const Tensor indices = std::get<1>(of_integers(order_keys(x, greatest), axis));
  const Tensor values = x.gather(axis, indices);
  c.give(values.masked_fill(values.isnan(), std::numeric_limits<double>::quiet_NaN()));
  c.give(indices);
}
}  // namespace
void cummax(call& c) {
  extremes_so_far(c, true, [](const Tensor& keys, int64_t axis) { return at::cummax(keys, axis); });
}
void cummin(call& c) {
  extremes_so_far(c, false, [](const Tensor& keys, int64_t axis) { return at::cummin(keys, axis); });
}

}  // namespace repdl_torch::formulas
