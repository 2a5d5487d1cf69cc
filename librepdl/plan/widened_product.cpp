#include <algorithm>
#include <cstdlib>

#include "librepdl/plan/planner.hpp"

namespace repdl::plan {
namespace {

using operand = product_plan::operand<const void>;

// Makes of an operand what its copy will be, and says how it is copied.
struct copier {
  const product_plan& p;
  widened_product& made;
  std::byte* const memory;

  void copy(operand& o, std::int64_t outer, std::int64_t inner) {
    const dtype to = p.out.type;
    if (o.type == to) return;
    const operand from = o;
    o.type = to;
    if (o.data == nullptr) return;  // no bias, or no terms
    sizes shape, old_strides, new_strides;
    checked_size count = 1;
    // From the innermost axis to the outermost. What is repeated is copied once. The elements of a line begin at multiples of four: what is read fast.
    const auto add = [&](std::int64_t size, std::int64_t old_stride, std::int64_t& new_stride, bool is_line) {
      const bool repeats = old_stride == 0 || size == 1;
      new_stride = repeats || !count.fits() ? 0 : static_cast<std::int64_t>(count.value());
      shape.push_back(repeats ? 1 : size);
      old_strides.push_back(old_stride);
      new_strides.push_back(new_stride);
      if (!repeats) count = checked_size::product(count, size);
      if (is_line) count = count.rounded_up(4);
    };
    const bool inner_fast = o.outer[0] == 0 || outer == 1 || std::abs(o.inner[0]) <= std::abs(o.outer[0]);
    if (inner_fast) add(inner, from.inner[0], o.inner[0], true);
    add(outer, from.outer[0], o.outer[0], !inner_fast);
    if (!inner_fast) add(inner, from.inner[0], o.inner[0], false);
    for (int d = p.batch.rank - 1; d >= 0; --d) {
      const auto axis = static_cast<std::size_t>(d);
      add(p.batch.shape[axis], from.batch[axis], o.batch[axis], false);
    }
    for (sizes* s : {&shape, &old_strides, &new_strides}) std::reverse(s->begin(), s->end());
    std::byte* const at = memory + (made.bytes.fits() ? made.bytes.value() : 0);
    o.data = at;
    o.first = 0;
    made.bytes += checked_size::product(count, size_of(to)).rounded_up(256);
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return;
    const const_tensor_view x(from.begin(), from.type, shape, old_strides);
    made.copies.push_back(make_map(ops::op_id::convert, {&x, 1}, tensor_view(at, to, shape, new_strides)));
  }
};

}  // namespace

widened_product make_widened(const product_plan& p, std::byte* memory) {
  widened_product made{{}, p, 0};
  copier to{p, made, memory};
  to.copy(made.product.a, p.row.count, p.term.count);
  to.copy(made.product.b, p.column.count, p.term.count);
  to.copy(made.product.bias, p.row.count, p.column.count);
  return made;
}

}  // namespace repdl::plan
