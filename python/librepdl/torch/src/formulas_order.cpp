// Order: what equal elements do.
#include <ATen/Dispatch.h>
#include <ATen/TensorIterator.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/bitwise_right_shift.h>
#include <ATen/ops/bitwise_xor.h>
#include <ATen/ops/cummax.h>
#include <ATen/ops/cummin.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/where.h>

#include <bit>
#include <concepts>

#include "formulas.hpp"

namespace repdl_torch::formulas {
// self, stable, dim, descending
void sort(call& c) {
  if (c.has(1) && c.boolean(1)) return c.leave();
  auto [values, indices] = at::sort(c.tensor(0), /*stable=*/true, c.integer(2), c.boolean(3));
  c.give(values);
  c.give(indices);
}

// Some of a row in order, on the CPU, where there is no need to sort all of it. Of equal elements the first comes first, where all
// NaNs are equal, above every number, and -0 is 0: as a stable sort has it.
namespace {
__extension__ typedef __int128 int128;
// An integer in the order of the elements.
template <class T>
auto key_of(T x) {
  using key = std::conditional_t<
      sizeof(T) == 1, int8_t,
      std::conditional_t<sizeof(T) == 2, int16_t, std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>>;
  constexpr key greatest = std::numeric_limits<key>::max();
  if constexpr (std::same_as<T, bool> || std::signed_integral<T>) {
    return static_cast<key>(x);
  } else if constexpr (std::unsigned_integral<T>) {
    return static_cast<key>(x - greatest - 1);
  } else {
    const auto infinity = std::bit_cast<key>(std::numeric_limits<T>::infinity());
    const auto bits = std::bit_cast<key>(x);
    const auto magnitude = static_cast<key>(bits & greatest);
    const auto number = static_cast<key>(bits < 0 ? -magnitude : magnitude);
    return magnitude > infinity ? greatest : number;
  }
}
template <class T>
constexpr bool has_nan = !std::integral<T>;

// Keys, and the places of equal ones: no two are equal.
template <class T>
class row_selection {
 public:
  using key = decltype(key_of(T{}));
  using entry = std::conditional_t<sizeof(key) == 8, int128, int64_t>;
  static constexpr int place_bits = 4 * sizeof(entry);
  static int64_t place(entry e) { return static_cast<int64_t>(e & ((entry{1} << place_bits) - 1)); }

  // The places of the first k of n, in order: `to`. Entries are kept that lie before the last one of k that are known; of equal ones
  // a later one does not.
  void first(const T* x, int64_t n, int64_t k, bool descending, int64_t* to) {
    kept_.resize(std::min(n, std::max(2 * k, k + 2 * block)) + block);
    const key turn = descending ? -1 : 0;
    int64_t count = 0;
    bool all = true;
    key last{};
    for (int64_t i = 0; i < n; i += block) {
      key keys[block];
      const int64_t length = std::min(block, n - i);
      key some = 0;
      if (length == block) {
        for (int64_t j = 0; j < block; ++j) {
          keys[j] = key_of(x[i + j]) ^ turn;
          some |= keys[j] < last ? -1 : 0;
        }
      } else {
        for (int64_t j = 0; j < length; ++j) keys[j] = key_of(x[i + j]) ^ turn;
      }
      if (length == block && !all && some == 0) continue;
      for (int64_t j = 0; j < length; ++j) {
        kept_[count] = entry_of(keys[j], i + j);
        count += all | (keys[j] < last);
      }
      if (count + block > static_cast<int64_t>(kept_.size()) && i + block < n) {
        std::nth_element(kept_.begin(), kept_.begin() + (k - 1), kept_.begin() + count);
        last = static_cast<key>(kept_[k - 1] >> place_bits);
        all = false;
        count = k;
      }
    }
    if (count > k) std::nth_element(kept_.begin(), kept_.begin() + (k - 1), kept_.begin() + count);
    std::sort(kept_.begin(), kept_.begin() + k);
    for (int64_t i = 0; i < k; ++i) to[i] = place(kept_[i]);
  }

  // The place of one of n in ascending order: of number(count of NaNs).
  template <class Number>
  int64_t one(const T* x, int64_t n, const Number& number) {
    kept_.resize(n);
    int64_t nans = 0;
    for (int64_t i = 0; i < n; ++i) {
      const key k = key_of(x[i]);
      if constexpr (has_nan<T>) nans += k == std::numeric_limits<key>::max();
      kept_[i] = entry_of(k, i);
    }
    const auto at = kept_.begin() + number(nans);
    std::nth_element(kept_.begin(), at, kept_.end());
    return place(*at);
  }

 private:
  static constexpr int64_t block = 64;
  static entry entry_of(key k, int64_t place) { return (entry{k} << place_bits) | place; }
  std::vector<entry> kept_;
};

// Calls body(first, last) for parts of [0, rows), on PyTorch's threads.
template <class Body>
void for_rows(int64_t rows, int64_t length, const Body& body) {
  if (rows == 1) return body(0, 1);
  const Tensor numbers = at::arange(rows, at::kLong);
  at::TensorIteratorConfig().add_const_input(numbers).build().for_each(
      [&](char** data, const int64_t*, int64_t n) {
        const int64_t first = *reinterpret_cast<const int64_t*>(data[0]);
        body(first, first + n);
      },
      std::max<int64_t>(1, at::internal::GRAIN_SIZE / length));
}

struct selected {
  Tensor values, places;
};
// `count` elements of each row, along an axis: select(selection, row, n, to) says their places. None where this has no way to find them.
template <class Select>
std::optional<selected> select_on_cpu(const Tensor& x, int64_t axis, int64_t count, const Select& select) {
  const auto type = x.scalar_type();
  const bool known = at::isFloatingType(type) ? type_bit(type) & FLOATS
                                              : at::isIntegralType(type, true) && !at::isBarebonesUnsignedType(type);
  const int64_t n = x.size(axis);
  if (!x.is_cpu() || !known || n >> 32 != 0) return std::nullopt;
  const Tensor lines = x.movedim(axis, -1).contiguous();
  auto shape = lines.sizes().vec();
  shape.back() = count;
  const Tensor values = at::empty(shape, x.options()), places = at::empty(shape, x.options().dtype(at::kLong));
  if (places.numel() > 0) {
    AT_DISPATCH_ALL_TYPES_AND3(at::kHalf, at::kBFloat16, at::kBool, type, "librepdl", [&] {
      const auto* const from = lines.const_data_ptr<scalar_t>();
      auto* const value = values.mutable_data_ptr<scalar_t>();
      auto* const place = places.mutable_data_ptr<int64_t>();
      for_rows(places.numel() / count, n, [&](int64_t first, int64_t last) {
        row_selection<scalar_t> selection;
        for (int64_t row = first; row < last; ++row) {
          select(selection, from + row * n, n, place + row * count);
          for (int64_t i = row * count; i < (row + 1) * count; ++i) value[i] = from[row * n + place[i]];
        }
      });
    });
  }
  return selected{values.movedim(-1, axis).contiguous(), places.movedim(-1, axis).contiguous()};
}
}  // namespace
// self, k, dim, largest, sorted: of equal ones the first, in order
void topk(call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t k = c.integer(1);
  if (x.dim() == 0) return c.leave();
  const int64_t axis = at::maybe_wrap_dim(c.integer(2), x.dim());
  TORCH_CHECK(k >= 0 && k <= x.size(axis), "selected index k out of range");
  const bool descending = c.boolean(3);
  const auto found = select_on_cpu(x, axis, k, [&](auto& selection, const auto* row, int64_t n, int64_t* to) {
    selection.first(row, n, k, descending, to);
  });
  if (found) {
    c.give(found->values);
    return c.give(found->places);
  }
  auto [values, indices] = at::sort(x, /*stable=*/true, axis, descending);
  c.give(values.narrow(axis, 0, k).contiguous());
  c.give(indices.narrow(axis, 0, k).contiguous());
}
namespace {
// The element at a place of each row.
void give_place(call& c, const Tensor& values, const Tensor& indices, const Tensor& place, int64_t axis, bool keep) {
  const auto pick = [&](const Tensor& t) {
    const Tensor picked = t.gather(axis, place);
    return keep ? picked : picked.squeeze(axis);
  };
  c.give(pick(values));
  c.give(pick(indices));
}
// The element whose place in ascending order is number(count of NaNs): integers, or a tensor with one for each row.
template <class Number>
void give_one(call& c, const Tensor& x, int64_t axis, bool keep, const Number& number) {
  const auto found = select_on_cpu(x, axis, 1, [&](auto& selection, const auto* row, int64_t n, int64_t* to) {
    *to = selection.one(row, n, number);
  });
  if (found) {
    c.give(keep ? found->values : found->values.squeeze(axis));
    return c.give(keep ? found->places : found->places.squeeze(axis));
  }
  const auto [values, indices] = at::sort(x, /*stable=*/true, axis, false);
  give_place(c, values, indices, number(x.isnan().sum(axis, /*keepdim=*/true)), axis, keep);
}
}  // namespace
// self, k, dim, keepdim
void kthvalue(call& c) {
  const Tensor& x = c.tensor(0);
  if (x.dim() == 0) return c.leave();
  const int64_t axis = at::maybe_wrap_dim(c.integer(2), x.dim()), k = c.integer(1);
  TORCH_CHECK(k >= 1 && k <= x.size(axis), "kthvalue(): selected number k out of range for dimension ", axis);
  give_one(c, x, axis, c.boolean(3), [&]<class N>(const N& nans) {
    if constexpr (std::same_as<N, Tensor>) {
      return at::full_like(nans, k - 1);
    } else {
      return k - 1;
    }
  });
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
// Its place in ascending order, where NaNs are the last.
auto middle(int64_t n, bool without) {
  return [=]<class N>(const N& nans) {
    if constexpr (std::same_as<N, Tensor>) {
      const Tensor numbers = nans.neg().add(n);
      if (without) return at::div(numbers.sub(1), 2, "trunc").clamp_min(0);
      return at::where(nans.gt(0), numbers, at::full_like(nans, (n - 1) / 2));
    } else {
      if (without) return std::max<int64_t>(0, (n - nans - 1) / 2);
      return nans > 0 ? n - nans : (n - 1) / 2;
    }
  };
}
void median_along(call& c, bool without) {
  const Tensor& x = c.tensor(0);
  if (x.dim() == 0 || x.numel() == 0) return c.leave();
  const int64_t axis = at::maybe_wrap_dim(c.integer(1), x.dim());
  give_one(c, x, axis, c.boolean(2), middle(x.size(axis), without));
}
void median_of_all(call& c, bool without) {
  const Tensor x = c.tensor(0).reshape({-1});
  if (x.numel() == 0) return c.leave();
  give_one(c, x, 0, false, middle(x.numel(), without));
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
