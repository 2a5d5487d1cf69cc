#include "tools/cli/placed_call.hpp"

#include <algorithm>
#include <cstdio>

#include "librepdl/ops/formats.hpp"
#include "tools/cli/host_tensor.hpp"
#include "tools/cli/text.hpp"

namespace repdl::tools {
namespace {

using reference::array;
using reference::layout;
using reference::memory_image;
using reference::placement;

constexpr std::string_view tier_names[] = {"proved", "binary64", "double_double", "exact"};

std::string value_text(const attribute_value& v) {
  if (const auto* b = std::get_if<bool>(&v)) return *b ? "true" : "false";
  if (const auto* i = std::get_if<std::int64_t>(&v)) return std::to_string(*i);
  if (const auto* s = std::get_if<std::string>(&v)) return *s;
  if (const auto* d = std::get_if<double>(&v)) {
    char text[40];
    std::snprintf(text, sizeof text, "%a", *d);
    return text;
  }
  std::string s;
  for (const std::int64_t i : std::get<std::vector<std::int64_t>>(v))
    s += joined(s.empty() ? "" : ", ", std::to_string(i));
  return joined("[", s, "]");
}

/// The place of element `index`: "[1, 0, 3]".
std::string place_text(const sizes& shape, std::int64_t index) {
  sizes at = shape;
  for (int i = shape.size(); i-- > 0;) {
    at[i] = index % shape[i];
    index /= shape[i];
  }
  return to_string(at);
}

}  // namespace

std::vector<tensor_spec> placed_call::infer_outputs() const {
  std::vector<const_tensor_view> views;
  for (const auto& t : in) {
    views.push_back(t ? const_tensor_view(memory.view(*t, const_cast<unsigned char*>(memory.bytes().data()), {}))
                      : const_tensor_view());
  }
  return infer(*op, views, attrs);
}

std::size_t placed_call::group_out() const {
  const auto once = [&](const operand_info& o) {
    return op->family == "optimizer" &&
           std::none_of(op->in.begin(), op->in.end(), [&](const operand_info& i) { return i.name == o.name; });
  };
  return (out.size() - static_cast<std::size_t>(std::count_if(op->out.begin(), op->out.end(), once))) / groups;
}
const operand_info& placed_call::output_info(std::size_t i) const {
  const std::size_t group = group_out();
  return i < group * groups ? op->out[i % group] : op->out[op->out.size() - (out.size() - i)];
}

std::string placed_call::operand_name(std::size_t tensor) const {
  std::string name;
  const auto add = [&](std::size_t i, const operand_info& info, std::size_t group) {
    name += joined(name.empty() ? "" : " and ", info.name);
    if (groups > 1 && i < group * groups) name += joined("[", std::to_string(i / group), "]");
  };
  const std::size_t group_in = in.size() / groups;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i] == tensor) add(i, op->in[i % group_in], group_in);
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] == tensor) add(i, output_info(i), group_out());
  }
  return name;
}

placed_call contiguous(const placed_call& c) {
  placed_call d{.op = c.op, .attrs = c.attrs, .memory = {}, .in = {}, .out = {}, .groups = c.groups};
  reference::word_stream none(0, 0);
  const auto add = [&](std::size_t t) {
    const tensor_spec& spec = c.memory.tensors()[t].spec;
    return d.memory.add(spec, place(spec.shape, layout::contiguous, none), layout::contiguous);
  };
  for (const auto& t : c.in) {
    d.in.push_back(t ? std::optional(add(*t)) : std::nullopt);
    if (t) d.memory.set(*d.in.back(), c.memory.get(*t));
  }
  for (const auto& t : c.out) d.out.push_back(t ? std::optional(add(*t)) : std::nullopt);
  return d;
}

std::string label_of(const std::string& engine, int threads, tier first) {
  std::string s = engine;
  if (threads > 0) s += joined(", ", std::to_string(threads), threads == 1 ? " thread" : " threads");
  if (first != tier::proved) s += joined(", from ", tier_names[static_cast<int>(first)]);
  return s;
}

namespace {
/// Every other number beside tensors is left to the host.
bool may_be_in_host_memory(const placed_call& c, std::size_t t) {
  const tensor_spec& spec = c.memory.tensors()[t].spec;
  return c.op->family == "elementwise" && c.in.size() > 1 && spec.shape.empty() && ops::is_floating(spec.type) &&
         t % 2 == 0;
}
}  // namespace

memory_image call_runner::run(const placed_call& c) {
  memory_image after = c.memory;
  std::vector<unsigned char>& bytes = after.bytes();
  if (bytes.size() > capacity_) {
    memory_.reset();
    capacity_ = std::max(bytes.size(), 2 * capacity_);
    memory_.emplace(*ctx_, dtype::boolean, sizes{capacity_});
  }
  void* base = memory_ ? memory_->view().data() : nullptr;
  ctx_->copy(base, bytes.data(), bytes.size());
  std::vector<const_tensor_view> in;
  for (const auto& t : c.in) {
    if (t && may_be_in_host_memory(c, *t)) {
      in.push_back(c.memory.view(*t, const_cast<unsigned char*>(c.memory.bytes().data()), {}));
    } else {
      in.push_back(t ? const_tensor_view(after.view(*t, base, ctx_->where())) : const_tensor_view());
    }
  }
  std::vector<tensor_view> out;
  for (const auto& t : c.out) out.push_back(t ? after.view(*t, base, ctx_->where()) : tensor_view());
  call(*ctx_, *c.op, in, out, c.attrs);
  ctx_->copy(bytes.data(), base, bytes.size());
  return after;
}

memory_image expected_memory(const placed_call& c, const std::vector<array>& results) {
  memory_image m = c.memory;
  for (std::size_t o = 0; o < c.out.size(); ++o) {
    if (c.out[o]) m.set(*c.out[o], results[o]);
  }
  return m;
}

std::vector<array> results_of(const placed_call& c, const memory_image& after) {
  std::vector<array> results;
  for (const auto& t : c.out) results.push_back(t ? after.get(*t) : array::none());
  return results;
}

std::string difference(const placed_call& c, const memory_image& got, std::string_view got_from,
                       const memory_image& expected, std::string_view expected_from) {
  const std::vector<unsigned char>& have = got.bytes();
  const std::vector<unsigned char>& want = expected.bytes();
  if (have == want) return {};
  // Outputs first: they say most.
  std::vector<std::size_t> order;
  for (const auto& t : c.out) {
    if (t) order.push_back(*t);
  }
  for (std::size_t t = 0; t < got.tensors().size(); ++t) order.push_back(t);
  for (const std::size_t t : order) {
    const memory_image::tensor& m = got.tensors()[t];
    const array g = got.get(t), e = expected.get(t);
    std::int64_t first = -1, wrong = 0;
    for (std::int64_t i = 0; i < g.count(); ++i) {
      if (g.get(static_cast<std::size_t>(i)) == e.get(static_cast<std::size_t>(i))) continue;
      if (wrong++ == 0) first = i;
    }
    if (wrong == 0) continue;
    const auto at = static_cast<std::size_t>(first);
    const bool output = std::find(c.out.begin(), c.out.end(), t) != c.out.end();
    return joined(output ? "" : "an input was changed: ", c.operand_name(t), ": ", std::to_string(wrong), " of ",
                  std::to_string(g.count()), " elements differ; first element ", std::to_string(first), ", at ",
                  place_text(m.spec.shape, first), "\n  got:      ", describe_bits(g.type, g.get(at)), ", says ",
                  got_from, "\n  expected: ", describe_bits(e.type, e.get(at)), ", says ", expected_from, "\n");
  }
  const auto at = static_cast<std::size_t>(std::mismatch(have.begin(), have.end(), want.begin()).first - have.begin());
  std::string where = "before the first operand";
  for (std::size_t t = 0; t < got.tensors().size(); ++t) {
    const memory_image::tensor& m = got.tensors()[t];
    if (at < m.begin) continue;
    const std::int64_t element = static_cast<std::int64_t>((at - m.begin) / size_of(m.spec.type)) - m.where.offset;
    where = joined("at byte ", std::to_string((at - m.begin) % size_of(m.spec.type)),
                   " of what would be element offset ", std::to_string(element), " of ", c.operand_name(t));
  }
  char bytes[32];
  std::snprintf(bytes, sizeof bytes, "0x%02x, was 0x%02x", have[at], want[at]);
  return joined("memory that belongs to no element was changed by ", got_from, ": ", where, ": is ", bytes, "\n");
}

std::string describe(const placed_call& c) {
  std::string text = joined("  operation:  ", c.op->name);
  for (const attribute& a : c.attrs) text += joined(" ", a.name, "=", value_text(a.value));
  text += "\n";
  const auto& tensors = c.memory.tensors();
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const memory_image::tensor& m = tensors[t];
    text +=
        joined("  ", c.operand_name(t), ": ", name_of(m.spec.type), " ", to_string(m.spec.shape), ", strides ",
               to_string(m.where.strides), ", offset ", std::to_string(m.where.offset), " (", name_of(m.kind), ")\n");
  }
  for (std::size_t i = 0; i < c.in.size(); ++i) {
    if (!c.in[i]) text += joined("  ", c.op->in[i % (c.in.size() / c.groups)].name, ": absent\n");
  }
  for (std::size_t i = 0; i < c.out.size(); ++i) {
    if (!c.out[i]) text += joined("  ", c.output_info(i).name, ": absent\n");
  }
  return text;
}

}  // namespace repdl::tools
