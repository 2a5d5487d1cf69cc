#include <algorithm>
#include <cstdlib>

#include "librepdl/plan/planner.hpp"

namespace repdl::plan {
namespace {

// Copies operands, and says where in the copy their elements lie.
template <class Plan>
class copier {
 public:
  copier(widened<Plan>& made, dtype to, std::byte* memory) : made_(made), to_(to), memory_(memory) {}

  // Axes from the innermost one to the outermost. What is repeated is copied once. The elements of a line begin at multiples of four:
  // what is read fast.
  void add(std::int64_t size, std::int64_t old_stride, std::int64_t& new_stride, bool is_line) {
    const bool repeats = old_stride == 0 || size == 1;
    new_stride = repeats || !count_.fits() ? 0 : static_cast<std::int64_t>(count_.value());
    shape_.push_back(repeats ? 1 : size);
    old_strides_.push_back(old_stride);
    new_strides_.push_back(new_stride);
    if (!repeats) count_ = checked_size::product(count_, size);
    if (is_line) count_ = count_.rounded_up(4);
  }
  // Of an element whose axes were added: where it is, and then where its copy is.
  void copy(const void*& data, dtype& type) {
    for (sizes* s : {&shape_, &old_strides_, &new_strides_}) std::reverse(s->begin(), s->end());
    std::byte* const at = memory_ + (made_.bytes.fits() ? made_.bytes.value() : 0);
    made_.bytes += checked_size::product(count_, size_of(to_)).rounded_up(256);
    if (std::find(shape_.begin(), shape_.end(), 0) == shape_.end()) {
      const const_tensor_view x(data, type, shape_, old_strides_);
      made_.copies.push_back(make_map(ops::op_id::convert, {&x, 1}, tensor_view(at, to_, shape_, new_strides_)));
    }
    data = at;
    type = to_;
    shape_ = old_strides_ = new_strides_ = {};
    count_ = 1;
  }

 private:
  widened<Plan>& made_;
  const dtype to_;
  std::byte* const memory_;
  sizes shape_, old_strides_, new_strides_;
  checked_size count_ = 1;
};

}  // namespace

widened<product_plan> make_widened(const product_plan& p, std::byte* memory) {
  widened<product_plan> made{{}, p, 0};
  copier to(made, p.out.type, memory);
  const auto copy = [&](product_plan::operand<const void>& o, std::int64_t outer, std::int64_t inner) {
    if (o.type == p.out.type) return;
    const product_plan::operand<const void> from = o;
    o.type = p.out.type;
    if (o.data == nullptr) return;  // no bias, or no terms
    const bool inner_fast = o.outer[0] == 0 || outer == 1 || std::abs(o.inner[0]) <= std::abs(o.outer[0]);
    if (inner_fast) to.add(inner, from.inner[0], o.inner[0], true);
    to.add(outer, from.outer[0], o.outer[0], !inner_fast);
    if (!inner_fast) to.add(inner, from.inner[0], o.inner[0], false);
    for (int d = p.batch.rank - 1; d >= 0; --d) {
      const auto axis = static_cast<std::size_t>(d);
      to.add(p.batch.shape[axis], from.batch[axis], o.batch[axis], false);
    }
    dtype type = from.type;
    o.data = from.begin();
    to.copy(o.data, type);
    o.first = 0;
  };
  copy(made.plan.a, p.row.count, p.term.count);
  copy(made.plan.b, p.column.count, p.term.count);
  copy(made.plan.bias, p.row.count, p.column.count);
  return made;
}

widened<conv_plan> make_widened(const conv_plan& p, std::byte* memory) {
  widened<conv_plan> made{{}, p, 0};
  copier to(made, dtype::f32, memory);
  const auto copy = [&](conv_plan::tensor& t, const image_strides& size) {
    if (t.data == nullptr) return;  // the result, or no elements
    std::array<std::size_t, 5> order{0, 1, 2, 3, 4};
    const image_strides from = t.stride;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return std::abs(from[a]) < std::abs(from[b]); });
    for (const std::size_t axis : order) to.add(size[axis], from[axis], t.stride[axis], false);
    dtype type = p.type;
    to.copy(t.data, type);
  };
  conv_plan& c = made.plan;
  const auto& [z, y, x] = p.axis;
  copy(c.image, {p.n, p.groups * p.c, z.image, y.image, x.image});
  copy(c.kernel, {p.groups * p.o, p.c, z.kernel, y.kernel, x.kernel});
  copy(c.result, {p.n, p.groups * p.o, z.windows, y.windows, x.windows});
  if (c.bias != nullptr) {
    to.add(p.groups * p.o, p.bias_stride, c.bias_stride, false);
    dtype type = p.type;
    to.copy(c.bias, type);
  }
  c.type = dtype::f32;
  return made;
}

}  // namespace repdl::plan
