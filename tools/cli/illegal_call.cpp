#include "tools/cli/illegal_call.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

#include "tools/cli/text.hpp"

namespace repdl::tools {
namespace {

using reference::memory_image;
using reference::word_stream;

/// A call's operands as views of an image of its own, and its attributes.
struct operands {
  memory_image memory;
  std::vector<const_tensor_view> in;
  std::vector<tensor_view> out;
  attributes attrs;

  explicit operands(const placed_call& c) : memory(c.memory), attrs(c.attrs) {
    const auto view = [&](const std::optional<std::size_t>& t) {
      return t ? memory.view(*t, memory.bytes().data(), {}) : tensor_view();
    };
    for (const auto& t : c.in) in.push_back(view(t));
    for (const auto& t : c.out) out.push_back(view(t));
  }
};

/// What a fault is made in; false: this call can't have it.
struct place {
  const placed_call& legal;
  operands& call;
  word_stream& w;

  const op_info& op() const { return *legal.op; }
  /// The operand, where a call has one after the other for every tensor of a list.
  const operand_info& input_info(std::size_t i) const { return op().in[i % (legal.in.size() / legal.groups)]; }
  /// One of several operands that are there.
  template <class Views>
  std::optional<std::size_t> any_present(const Views& views) const {
    std::vector<std::size_t> present;
    for (std::size_t i = 0; i < views.size(); ++i) {
      if (views[i]) present.push_back(i);
    }
    if (present.empty()) return std::nullopt;
    return present[w.below(static_cast<std::uint32_t>(present.size()))];
  }
  /// Whether outputs say what the result is like.
  bool is_told_by_outputs() const {
    return std::any_of(op().attrs.begin(), op().attrs.end(), [](const attribute_info& a) { return a.required; });
  }
};

/// The same memory as numbers of 8 bits, which no operation but conversions takes.
constexpr dtype foreign = dtype::f8_e5m2;
bool takes(const operand_info& o, dtype t) { return std::find(o.types.begin(), o.types.end(), t) != o.types.end(); }

bool input_too_few(const place& p) {
  if (p.op().family == "optimizer" && p.op().in.size() == 1) return false;  // a list of any length
  if (p.call.in.empty() || p.input_info(p.call.in.size() - 1).optional) return false;
  p.call.in.pop_back();
  return true;
}
bool input_too_many(const place& p) {
  if (p.op().family == "optimizer") return false;  // lists
  p.call.in.resize(p.op().in.size());
  const float* const number = reinterpret_cast<const float*>(p.call.memory.bytes().data());
  p.call.in.emplace_back(number, sizes{1});
  return true;
}
bool input_absent(const place& p) {
  const auto i = p.any_present(p.call.in);
  if (!i || p.input_info(*i).optional) return false;
  p.call.in[*i] = {};
  return true;
}
bool input_of_foreign_type(const place& p) {
  const auto i = p.any_present(p.call.in);
  if (!i || takes(p.input_info(*i), foreign)) return false;
  p.call.in[*i] = {p.call.in[*i].data(), foreign, p.call.in[*i].shape()};
  return true;
}
bool output_too_many(const place& p) {
  if (p.op().family == "optimizer") return false;
  p.call.out.resize(p.op().out.size());
  p.call.out.emplace_back(reinterpret_cast<float*>(p.call.memory.bytes().data()), sizes{1});
  return true;
}
bool no_output(const place& p) {
  p.call.out.clear();
  return true;
}
bool output_of_foreign_type(const place& p) {
  const auto i = p.any_present(p.call.out);
  if (!i || takes(p.legal.output_info(*i), foreign)) return false;
  p.call.out[*i] = {p.call.out[*i].data(), foreign, p.call.out[*i].shape()};
  return true;
}
bool output_of_another_shape(const place& p) {
  const auto i = p.any_present(p.call.out);
  if (!i || p.is_told_by_outputs()) return false;
  const tensor_view& o = p.call.out[*i];
  sizes shape = o.shape();
  if (shape.size() == 0) {
    shape.push_back(2);
  } else {
    ++shape[static_cast<int>(p.w.below(static_cast<std::uint32_t>(shape.size())))];
  }
  // No element is touched: there may be no memory for all of them.
  p.call.out[*i] = {o.data() != nullptr ? o.data() : p.call.memory.bytes().data(), o.type(), shape};
  return true;
}
/// Two elements of an input are one another's place in the output, which begins at the second one.
bool output_over_an_input(const place& p) {
  const auto i = p.any_present(p.call.in), o = p.any_present(p.call.out);
  if (!i || !o || p.legal.in[*i] == p.legal.out[*o]) return false;
  const const_tensor_view& from = p.call.in[*i];
  const tensor_view& to = p.call.out[*o];
  if (from.type() != to.type() || from.shape() != to.shape() || element_count(from.shape()) == 0) return false;
  for (int a = 0; a < from.shape().size(); ++a) {
    if (from.shape()[a] < 2 || from.strides()[a] == 0) continue;
    const auto step = from.strides()[a] * static_cast<std::int64_t>(size_of(from.type()));
    auto* const second = const_cast<char*>(static_cast<const char*>(from.data())) + step;
    p.call.out[*o] = {second, to.type(), to.shape(), from.strides()};
    return true;
  }
  return false;
}
bool unknown_attribute(const place& p) {
  p.call.attrs.push_back({"of_no_operation", std::int64_t{1}});
  return true;
}
bool attribute_given_twice(const place& p) {
  if (p.call.attrs.empty()) return false;
  p.call.attrs.push_back(p.call.attrs[p.w.below(static_cast<std::uint32_t>(p.call.attrs.size()))]);
  return true;
}
bool attribute_of_another_kind(const place& p) {
  if (p.op().attrs.empty()) return false;
  const attribute_info& a = p.op().attrs[p.w.below(static_cast<std::uint32_t>(p.op().attrs.size()))];
  std::erase_if(p.call.attrs, [&](const attribute& given) { return given.name == a.name; });
  if (a.kind == attribute_kind::text) {
    p.call.attrs.push_back({a.name, std::vector<std::int64_t>{}});
  } else {
    p.call.attrs.push_back({a.name, std::string("text")});
  }
  return true;
}

struct fault {
  const char* name;
  bool (*make)(const place&);
  bool is_known_to_infer;
  std::vector<error_site> sites;
};
const std::vector<fault>& faults() {
  using site = error_site;
  static const std::vector<fault> all = {
      {"an input too few", input_too_few, true, {site::input_count, site::absent_operand}},
      {"an input too many", input_too_many, true, {site::input_count}},
      {"an input is absent", input_absent, true, {site::absent_operand}},
      {"an input has a foreign type", input_of_foreign_type, true, {site::operand_dtype}},
      {"an output too many", output_too_many, false, {site::output_count}},
      {"no output", no_output, false, {site::output_count}},
      {"an output has a foreign type", output_of_foreign_type, false, {site::output_dtype, site::operand_dtype}},
      {"an output has another shape", output_of_another_shape, false, {site::output_shape}},
      {"an output lies over an input", output_over_an_input, false, {site::overlap, site::output_self_overlap}},
      {"an attribute of no operation", unknown_attribute, true, {site::unknown_attribute}},
      {"an attribute given twice", attribute_given_twice, true, {site::duplicate_attribute}},
      {"an attribute of another kind", attribute_of_another_kind, true, {site::attribute_kind}},
  };
  return all;
}

/// How the call ended.
struct ending {
  std::string message = "no error";
  std::optional<error_site> site;
  std::string op, argument;
};
template <class F>
ending ending_of(const F& f) {
  try {
    f();
  } catch (const error& e) {
    return {e.what(), e.site(), e.op(), e.argument()};
  }
  return {};
}

}  // namespace

std::optional<std::string> wrong_refusal(context& ctx, const placed_call& legal, word_stream& w) {
  const fault& f = faults()[w.below(static_cast<std::uint32_t>(faults().size()))];
  operands call(legal);
  if (!f.make({legal, call, w})) return std::nullopt;
  const auto heading = [&] { return joined("  fault:      ", f.name, "\n"); };
  const ending e = ending_of([&] { repdl::call(ctx, *legal.op, call.in, call.out, call.attrs); });
  if (!e.site || std::find(f.sites.begin(), f.sites.end(), *e.site) == f.sites.end()) {
    return joined(heading(), "it was not refused as it should be: ", e.message, "\n");
  }
  if (e.op != legal.op->name || e.argument.empty()) {
    return joined(heading(), "the error names no operation or no argument: ", e.message, "\n");
  }
  if (call.memory.bytes() != legal.memory.bytes()) return heading() + "a refused call wrote to memory\n";
  if (f.is_known_to_infer) {
    const ending known = ending_of([&] { infer(*legal.op, call.in, call.attrs); });
    if (known.message != e.message) {
      return joined(heading(), "call and infer say different things\n  call:  ", e.message,
                    "\n  infer: ", known.message, "\n");
    }
  }
  return "";
}

}  // namespace repdl::tools
