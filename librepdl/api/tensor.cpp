#include "librepdl/tensor.hpp"

#include <bit>
#include <cstdlib>

#include "librepdl/ops/formats.hpp"

namespace repdl {
namespace {

__extension__ using wide = __int128;                   // products and sums of 64-bit sizes
constexpr std::int64_t limit = std::int64_t{1} << 62;  // of elements, and of bytes

int checked_axis(std::string_view what, int axis, int rank) {
  if (axis < -rank || axis >= rank) {
    fail(error_site::axis_range, what, "axis", "an axis of a tensor of rank " + std::to_string(rank),
         std::to_string(axis));
  }
  return axis < 0 ? axis + rank : axis;
}

bool has_zero(const sizes& shape) { return std::find(shape.begin(), shape.end(), 0) != shape.end(); }

// The elements that the view spans, checked so that no offset computed from it can overflow, in elements or in bytes.
void check_span(dtype type, const sizes& shape, const sizes& strides) {
  // Most are far from it: eight axes of up to 2^28 elements, as many apart, of eight bytes span 2^62.
  constexpr std::int64_t small = std::int64_t{1} << 28;
  bool are_small = true;
  for (int i = 0; i < shape.size(); ++i) {
    are_small = are_small && shape[i] <= small && strides[i] <= small && strides[i] >= -small;
  }
  if (are_small || has_zero(shape)) return;
  const wide most = limit >> std::countr_zero(size_of(type));  // a power of two
  wide span = 1;
  for (int i = 0; i < shape.size(); ++i) {
    const wide stride = strides[i] < 0 ? -static_cast<wide>(strides[i]) : strides[i];
    span += stride * (shape[i] - 1);
    if (span > most) {
      fail(error_site::stride_overflow, "tensor view", "strides", "a span of at most 2^62 bytes",
           to_string(strides) + " for shape " + to_string(shape) + " of " + std::string(name_of(type)));
    }
  }
}

// The elements, if their bytes are a number that memory can have.
std::int64_t bounded_count(dtype type, const sizes& shape) {
  const std::int64_t count = element_count(shape);
  if (count > limit >> std::countr_zero(size_of(type))) {
    fail(error_site::size_overflow, "tensor view", "shape", "at most 2^62 bytes",
         to_string(shape) + " of " + std::string(name_of(type)));
  }
  return count;
}

}  // namespace

std::string_view name_of(dtype t) noexcept { return ops::traits_of(t).name; }

dtype dtype_named(std::string_view name) {
  for (const ops::type_traits& t : ops::types) {
    if (t.name == name) return t.type;
  }
  fail(error_site::dtype_name, "dtype", "name", ops::describe(ops::ALL), "'" + std::string(name) + "'");
}

std::string name_of(const device& d) { return d.kind == device_kind::cpu ? "cpu" : "cuda:" + std::to_string(d.index); }

void sizes::resize(std::size_t n) {
  if (n > static_cast<std::size_t>(max_rank)) {
    fail(error_site::rank_too_large, "sizes", "length", "at most " + std::to_string(max_rank), std::to_string(n));
  }
  size_ = static_cast<int>(n);
}

void sizes::too_large(std::uint64_t v) {
  fail(error_site::size_overflow, "sizes", "value", "an integer below 2^63", std::to_string(v));
}

void sizes::push_back(std::int64_t x) {
  if (size_ == max_rank) {
    fail(error_site::rank_too_large, "sizes", "length", "at most " + std::to_string(max_rank),
         std::to_string(max_rank + 1));
  }
  v_[static_cast<std::size_t>(size_++)] = x;
}

std::string to_string(const sizes& s) {
  std::string text = "[";
  for (int i = 0; i < s.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(s[i]);
  return text + "]";
}

std::int64_t element_count(const sizes& shape) {
  std::int64_t few = 1;
  bool are_few = true;
  for (const std::int64_t n : shape) are_few = are_few && n > 0 && !__builtin_mul_overflow(few, n, &few);
  if (are_few && few <= limit) return few;
  bool empty = false;
  bool too_many = false;
  wide count = 1;
  for (const std::int64_t n : shape) {
    if (n < 0) fail(error_site::negative_size, "tensor view", "shape", "sizes >= 0", to_string(shape));
    empty = empty || n == 0;
    if (!too_many) count *= n;  // below 2^62 times below 2^63
    too_many = too_many || count > limit;
  }
  if (empty) return 0;
  if (too_many) fail(error_site::size_overflow, "tensor view", "shape", "at most 2^62 elements", to_string(shape));
  return static_cast<std::int64_t>(count);
}

std::int64_t byte_count(const tensor_spec& s) {
  return bounded_count(s.type, s.shape) * static_cast<std::int64_t>(size_of(s.type));
}

sizes row_major(const sizes& shape) {
  sizes strides = shape;
  if (shape.size() == 1) {
    strides[0] = 1;
    return strides;
  }
  wide stride = 1;
  for (int i = shape.size() - 1; i >= 0; --i) {
    // An empty tensor's other sizes may have any product; no step is made there.
    strides[i] = stride > limit ? 0 : static_cast<std::int64_t>(stride);
    if (stride <= limit) stride *= std::max<std::int64_t>(shape[i], 1);
  }
  return strides;
}

// Too many elements are the shape's fault, not that of the strides made from it; those need no check of their own.
const_tensor_view::const_tensor_view(const void* data, dtype type, const sizes& shape, device where)
    : data_(data),
      shape_(shape),
      strides_(row_major(shape)),
      count_(bounded_count(type, shape)),
      where_(where),
      type_(type),
      present_(true) {
  check_data();
}

const_tensor_view::const_tensor_view(const void* data, dtype type, const sizes& shape, const sizes& strides,
                                     device where)
    : data_(data),
      shape_(shape),
      strides_(strides),
      count_(element_count(shape)),
      where_(where),
      type_(type),
      present_(true) {
  if (strides.size() != shape.size()) {
    fail(error_site::strides_rank, "tensor view", "strides", std::to_string(shape.size()) + " strides",
         std::to_string(strides.size()));
  }
  check_span(type, shape_, strides_);
  check_data();
}

void const_tensor_view::check_data() const {
  if (data_ == nullptr && count_ > 0) {
    fail(error_site::null_data, "tensor view", "data", "memory for shape " + to_string(shape_), "a null pointer");
  }
  const std::uintptr_t remainder = reinterpret_cast<std::uintptr_t>(data_) & (size_of(type_) - 1);  // a power of two
  if (remainder != 0) {
    fail(error_site::misaligned_data, "tensor view", "data",
         "a multiple of " + std::to_string(size_of(type_)) + " bytes",
         "an address with remainder " + std::to_string(remainder));
  }
}

bool const_tensor_view::is_contiguous() const noexcept {
  if (count_ == 0) return true;
  std::int64_t expected = 1;
  for (int i = rank() - 1; i >= 0; --i) {
    if (shape_[i] != 1 && strides_[i] != expected) return false;
    expected *= shape_[i];
  }
  return true;
}

const_tensor_view const_tensor_view::transpose(int axis0, int axis1) const {
  const int i = checked_axis("transpose", axis0, rank());
  const int j = checked_axis("transpose", axis1, rank());
  const_tensor_view v = *this;
  std::swap(v.shape_[i], v.shape_[j]);
  std::swap(v.strides_[i], v.strides_[j]);
  return v;
}

const_tensor_view const_tensor_view::slice(int axis, std::int64_t begin, std::int64_t end, std::int64_t step) const {
  const int i = checked_axis("slice", axis, rank());
  if (begin < 0 || begin > end || end > shape_[i] || step < 1) {
    fail(error_site::slice_range, "slice", "begin, end, step",
         "0 <= begin <= end <= " + std::to_string(shape_[i]) + " and step >= 1",
         std::to_string(begin) + ", " + std::to_string(end) + ", " + std::to_string(step));
  }
  const_tensor_view v = *this;
  v.shape_[i] = (end - begin) / step + ((end - begin) % step != 0 ? 1 : 0);
  v.count_ = element_count(v.shape_);
  if (v.count_ == 0) return v;
  v.data_ = static_cast<const std::byte*>(data_) + begin * strides_[i] * static_cast<std::int64_t>(size_of(type_));
  if (v.shape_[i] > 1) v.strides_[i] *= step;
  return v;
}

const_tensor_view const_tensor_view::reshape(const sizes& shape) const {
  if (element_count(shape) != count_) {
    fail(error_site::reshape_count, "reshape", "shape", std::to_string(count_) + " elements", to_string(shape));
  }
  // Walk both shapes from the back; a group of old axes that is dense among itself may be cut in any way.
  const_tensor_view v = *this;
  v.shape_ = shape;
  v.strides_ = row_major(shape);
  if (is_contiguous()) return v;
  sizes old_shape;
  sizes old_strides;
  for (int i = 0; i < rank(); ++i) {
    if (shape_[i] == 1) continue;
    old_shape.push_back(shape_[i]);
    old_strides.push_back(strides_[i]);
  }
  int o = old_shape.size() - 1;
  int n = shape.size() - 1;
  while (n >= 0) {
    if (shape[n] == 1) {
      --n;
      continue;
    }
    std::int64_t have = old_shape[o];
    std::int64_t want = 1;
    std::int64_t stride = old_strides[o];
    while (true) {
      if (want == have) break;
      if (want < have && n >= 0) {
        v.strides_[n] = stride * want;
        want *= shape[n--];
      } else {
        if (o == 0 || old_strides[o - 1] != old_strides[o] * old_shape[o]) {
          fail(error_site::reshape_copy, "reshape", "shape",
               "a shape that this view's strides " + to_string(strides_) + " allow", to_string(shape));
        }
        have *= old_shape[--o];
      }
    }
    --o;
  }
  return v;
}

}  // namespace repdl
