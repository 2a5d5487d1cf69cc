#include "tools/cli/arrays.hpp"

#include <algorithm>
#include <optional>

#include "reference/attributes.hpp"
#include "reference/layout.hpp"
#include "tools/cli/text.hpp"

namespace repdl::tools {
namespace {

using reference::array;
using reference::shape_list;

constexpr std::size_t shown_operands = 8;

class operand_list {
 public:
  void add(const array& a, std::string_view name, std::int64_t i) {
    if (n_++ >= shown_operands) return;
    text_ += joined(text_.empty() ? "" : ", ", name, "[", std::to_string(i),
                    "] = ", describe_bits(a.type, a.get(static_cast<std::size_t>(i))));
  }
  std::string text() const {
    if (n_ == 0) return "none";
    return n_ <= shown_operands ? text_ : joined(text_, ", ... ", std::to_string(n_), " in all");
  }

 private:
  std::string text_;
  std::size_t n_ = 0;
};

void add_matmul(operand_list& t, const attributes& attrs, const std::vector<array>& in, const shape_list& out,
                std::int64_t index) {
  const bool ta = reference::attribute_or(attrs, "transpose_a", false);
  const bool tb = reference::attribute_or(attrs, "transpose_b", false);
  const auto from_end = [](const shape_list& s, std::size_t i) { return s[s.size() - i]; };
  const auto batch = [](const shape_list& s) { return shape_list(s.begin(), s.end() - 2); };
  const std::int64_t m = from_end(out, 2), n = from_end(out, 1), k = from_end(in[0].shape, ta ? 2 : 1);
  const std::int64_t b = index / (m * n), row = index / n % m, column = index % n;
  const std::int64_t a0 = reference::broadcast_index(batch(in[0].shape), batch(out), b) * m * k;
  const std::int64_t b0 = reference::broadcast_index(batch(in[1].shape), batch(out), b) * k * n;
  if (in.size() > 2) t.add(in[2], "bias", reference::broadcast_index(in[2].shape, out, index));
  for (std::int64_t i = 0; i < k; ++i) {
    t.add(in[0], "a", a0 + (ta ? i * m + row : row * k + i));
    t.add(in[1], "b", b0 + (tb ? column * k + i : i * n + column));
  }
}

}  // namespace

std::vector<array> call_on_arrays(context& ctx, const op_info& op, const std::vector<array>& in,
                                  const attributes& attrs) {
  std::vector<const_tensor_view> views;
  views.reserve(in.size());
  for (const array& a : in) {
    views.push_back(a.absent() ? const_tensor_view() : const_tensor_view(a.bytes.data(), a.type, sizes_of(a.shape)));
  }
  std::vector<array> out;
  for (const tensor_spec& s : infer(op, views, attrs)) {
    array& a = out.emplace_back(s.type, shape_list(s.shape.begin(), s.shape.end()));
    std::fill(a.bytes.begin(), a.bytes.end(), host_tensor::unwritten);
  }
  std::vector<tensor_view> out_views;
  out_views.reserve(out.size());
  for (array& a : out) out_views.emplace_back(a.bytes.data(), a.type, sizes_of(a.shape));
  call_on_host(ctx, op, views, out_views, attrs);
  return out;
}

std::string operand_text(const op_info& op, const attributes& attrs, const std::vector<array>& in,
                         const shape_list& out, std::int64_t index) {
  operand_list t;
  if (op.family == "matmul") {
    add_matmul(t, attrs, in, out, index);
  } else if ((op.family == "reduce" && op.in.size() == 1) || op.name == "prod") {
    std::optional<shape_list> axes;
    for (const attribute& a : attrs) {
      if (a.name == "axis") axes = std::get<std::vector<std::int64_t>>(a.value);
    }
    const reference::reduce_layout l = reference::layout_of(in[0].shape, axes, false);
    for (const std::int64_t d : l.reduced) t.add(in[0], "x", l.kept[static_cast<std::size_t>(index)] + d);
  } else if (op.family == "reduce") {
    for (std::int64_t i = 0; i < in[0].count(); ++i) {
      for (std::size_t k = 0; k < in.size(); ++k) t.add(in[k], op.in[k].name, i);
    }
  } else if (op.family == "elementwise" || op.family == "convert" || op.family == "exponent") {
    for (std::size_t k = 0; k < in.size(); ++k) {
      t.add(in[k], op.in[k].name, reference::broadcast_index(in[k].shape, out, index));
    }
  } else {  // the operands' elements at the same place; the case rebuilds the others
    for (std::size_t k = 0; k < in.size(); ++k) {
      if (in[k].shape == out) t.add(in[k], op.in[k % op.in.size()].name, index);
    }
  }
  return t.text();
}

}  // namespace repdl::tools
