#include "composed.hpp"

#include <utility>
#include <vector>

#include "call.hpp"
#include "librepdl/ops.hpp"

namespace repdl::python {
namespace {

// A call of such a function: its operands, in the names that they have in Python, and its results.
class composed {
 public:
  composed(std::string op, const nb::tuple& inputs, std::initializer_list<const char*> names) : op_(std::move(op)) {
    std::size_t i = 0;
    for (const char* const name : names) {
      const nb::object x = inputs[i++];
      x.is_none() ? operands_.emplace_back() : operands_.emplace_back(op_, name, x);
      in_.push_back(operands_.back().view());
    }
    if (!in_[0]) throw nb::type_error((op_ + ": " + *names.begin() + ": expected an array, got None").c_str());
  }
  const const_tensor_view& in(std::size_t i) const { return in_[i]; }

  // f(context, views of results), of results that are given or, like the first operand, made: a tuple where there are several.
  template <class F>
  nb::object operator()(nb::handle out, std::vector<std::pair<const char*, tensor_spec>> specs, const F& f) {
    const bool several = specs.size() > 1;
    if (several && !out.is_none()) {
      const bool list = nb::isinstance<nb::tuple>(out) || nb::isinstance<nb::list>(out);
      if (!list || nb::len(out) != specs.size())
        throw nb::type_error((op_ + ": out: expected a tuple of " + std::to_string(specs.size()) + " arrays").c_str());
    }
    std::vector<array> results;
    std::vector<tensor_view> views;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const auto& [name, spec] = specs[i];
      const nb::object given = several && !out.is_none() ? nb::object(out[i]) : nb::borrow(out);
      given.is_none() ? results.emplace_back(spec, operands_[0]) : results.emplace_back(op_, name, given);
      views.push_back(results.back().writable(op_, name));
    }
    run(op_, operands_[0], in_, views, [&](context& c) { f(c, views); });
    nb::list all;
    for (array& a : results) all.append(a.take());
    const nb::object result = several ? nb::object(nb::tuple(all)) : nb::object(all[0]);
    if (recording::current != nullptr) {
      for (std::vector<array>* const list : {&operands_, &results}) {
        for (array& a : *list) recording::current->arrays.push_back(std::move(a));
      }
    }
    return result;
  }

  bool flag(const char* name, nb::handle v) const {
    if (!PyBool_Check(v.ptr()))
      throw nb::type_error((op_ + ": " + name + ": expected a bool, got " + name_of_type(v)).c_str());
    return v.is(nb::handle(Py_True));
  }

 private:
  std::string op_;
  std::vector<array> operands_;
  std::vector<const_tensor_view> in_;
};

attention_options options_of(nb::handle values) {
  attention_options o;
  for (const attribute& a : attributes_of(*find("attention"), values)) {
    if (a.name == "scale") o.scale = std::get<double>(a.value);
    if (a.name == "causal") o.causal = std::get<bool>(a.value);
    if (a.name == "bottom_right") o.bottom_right = std::get<bool>(a.value);
    if (a.name == "left") o.left = std::get<std::int64_t>(a.value);
    if (a.name == "right") o.right = std::get<std::int64_t>(a.value);
    if (a.name == "dropout") o.dropout = std::get<double>(a.value);
    if (a.name == "seed") o.seed = static_cast<std::uint64_t>(std::get<std::int64_t>(a.value));
    if (a.name == "stream") o.stream = static_cast<std::uint64_t>(std::get<std::int64_t>(a.value));
  }
  return o;
}

// A shape of sizes of operands; where an operand lacks one, which the call refuses, nothing.
sizes shape_of(std::initializer_list<std::pair<const_tensor_view, int>> axes) {
  sizes shape;
  for (const auto& [v, axis] : axes) shape.push_back(axis < v.rank() ? v.shape()[axis] : 0);
  return shape;
}

}  // namespace

nb::object rotary(nb::tuple inputs, nb::handle out, nb::handle interleaved, nb::handle inverse) {
  composed c("rotary", inputs, {"x", "cos", "sin"});
  const rotary_options o{c.flag("interleaved", interleaved), c.flag("inverse", inverse)};
  return c(out, {{"out", c.in(0).spec()}},
           [&](context& ctx, const auto& results) { repdl::rotary(ctx, c.in(0), c.in(1), c.in(2), results[0], o); });
}

nb::object attention_varlen(nb::tuple inputs, nb::handle out, nb::handle values, nb::handle lse) {
  composed c("attention_varlen", inputs, {"q", "k", "v", "q_offsets", "k_offsets", "slopes"});
  const const_tensor_view &q = c.in(0), &v = c.in(2);
  std::vector<std::pair<const char*, tensor_spec>> specs = {{"out", {q.type(), shape_of({{q, 0}, {q, 1}, {v, 2}})}}};
  const attention_options o = options_of(values);
  if (c.flag("lse", lse))
    specs.push_back({"lse", {q.type() == dtype::f64 ? dtype::f64 : dtype::f32, shape_of({{q, 1}, {q, 0}})}});
  return c(out, specs, [&](context& ctx, const auto& results) {
    repdl::attention_varlen(ctx, q, c.in(1), v, c.in(3), c.in(4), results[0], o, c.in(5),
                            results.size() > 1 ? results[1] : tensor_view());
  });
}

nb::object attention_varlen_backward(nb::tuple inputs, nb::handle out, nb::handle values) {
  composed c("attention_varlen_backward", inputs, {"g", "q", "k", "v", "y", "lse", "q_offsets", "k_offsets", "slopes"});
  const attention_options o = options_of(values);
  return c(out, {{"grad_q", c.in(1).spec()}, {"grad_k", c.in(2).spec()}, {"grad_v", c.in(3).spec()}},
           [&](context& ctx, const auto& results) {
             repdl::attention_varlen_backward(ctx, c.in(0), c.in(1), c.in(2), c.in(3), c.in(4), c.in(5), c.in(6),
                                              c.in(7), results[0], results[1], results[2], o, c.in(8));
           });
}

}  // namespace repdl::python
