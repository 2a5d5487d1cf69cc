// The dynamic layer: one erased table made from the registry.
#include <array>
#include <vector>

#include "librepdl/api/attributes.hpp"
#include "librepdl/api/submit.hpp"
#include "librepdl/dynamic.hpp"

namespace repdl {
namespace {

using plan::inputs;
using plan::outputs;

struct operation {
  std::vector<tensor_spec> (*infer)(int id, inputs in, const attributes& attrs);
  void (*run)(context& ctx, int id, inputs in, outputs out, const attributes& attrs);
};

std::vector<operand_info> describe(std::span<const ops::operand> rows) {
  std::vector<operand_info> all;
  for (const ops::operand& r : rows) {
    operand_info o{std::string(r.name), {}, r.optional};
    for (int t = 0; t < ops::dtype_count; ++t) {
      if ((r.types >> t & 1u) != 0) o.types.push_back(static_cast<dtype>(t));
    }
    all.push_back(std::move(o));
  }
  return all;
}

std::string proof_text(ops::proof_kind p) {
  switch (p) {
    case ops::proof_kind::ieee:
      return "IEEE 754 operation";
    case ops::proof_kind::select:
      return "no rounding happens";
    case ops::proof_kind::enumerate:
      return "every input enumerated, per build";
    case ops::proof_kind::enumerate_narrow:
      return "every input enumerated, per build; f64: run-time certificate; wider numbers decide the rest";
    case ops::proof_kind::formula_narrow:
      return "proof in the body's header; f64: run-time certificate; wider numbers decide the rest";
    case ops::proof_kind::formula:
      return "proof in the body's header";
    case ops::proof_kind::integers:
      return "integers; one exact rounding";
    case ops::proof_kind::exact:
      return "run-time certificate; exact integers decide the rest";
    case ops::proof_kind::multi_limb:
      return "run-time certificate; wider numbers decide the rest";
  }
  return "";
}

// The name of the C++ function of a row.
std::string_view function_of(std::string_view name) {
#define REPDL_GRADIENT(row, function) \
  if (name == #row) return #function;
#include "librepdl/ops/gradient_names.def"
#undef REPDL_GRADIENT
  return name;
}

struct table {
  std::vector<op_info> infos;
  std::vector<operation> operations;

  void add(std::string_view name, std::string_view family, int bits, std::string_view formula, ops::proof_kind proof,
           std::span<const ops::operand> in, std::span<const ops::operand> out, std::vector<attribute_info> attrs,
           const operation& of) {
    infos.push_back({std::string(name), static_cast<int>(infos.size()), bits, std::string(family), std::string(formula),
                     proof_text(proof), describe(in), describe(out), std::move(attrs), std::string(function_of(name))});
    operations.push_back(of);
  }

  table() {
    for (const ops::elementwise_row& r : ops::elementwise_rows()) {
      const ops::elementwise_operands& operands = ops::operands_of(static_cast<ops::op_id>(infos.size()));
      add(r.name, "elementwise", r.bits, r.formula, r.proof, operands.in(), operands.out(), api::describe_options(r),
          {[](int id, inputs x, const attributes& a) {
             const api::option_values o(ops::row_of(static_cast<ops::op_id>(id)), a);
             return std::vector{api::infer_elementwise(static_cast<ops::op_id>(id), x, o, o.result())};
           },
           [](context& ctx, int id, inputs x, outputs y, const attributes& a) {
             const api::option_values o(ops::row_of(static_cast<ops::op_id>(id)), a);
             api::submit_elementwise(ctx, static_cast<ops::op_id>(id), x, y, o, o.result());
           }});
    }
    ops::for_each_structured([&]<class Op>() {
      add(Op::name, Op::row.family, Op::row.bits, Op::formula, Op::row.proof, Op::in, Op::out,
          api::describe_attributes<typename Op::attrs>(),
          {[](int, inputs x, const attributes& a) {
             const auto attrs = api::read_attributes<typename Op::attrs>(Op::name, a);
             const plan::specs specs = api::infer<Op>(api::rows_of<Op>(x.size(), attrs), x, attrs);
             return std::vector(specs.begin(), specs.end());
           },
           [](context& ctx, int, inputs x, outputs y, const attributes& a) {
             api::submit<Op>(ctx, x, y, api::read_attributes<typename Op::attrs>(Op::name, a));
           }});
    });
  }
};

const table& all() {
  static const table t;
  return t;
}

}  // namespace

std::span<const op_info> operations() { return all().infos; }

const op_info* find(std::string_view name) noexcept {
  for (const op_info& o : all().infos) {
    if (o.name == name || o.function == name) return &o;
  }
  return nullptr;
}

attribute parse_attribute(const op_info& op, std::string_view name, std::string_view text) {
  std::string known;
  for (const attribute_info& a : op.attrs) {
    if (a.name == name) return {a.name, api::parse_value(op.name, a, text)};
    known += (known.empty() ? "" : ", ") + a.name;
  }
  api::no_such_attribute(op.name, name, known.empty() ? "none" : known);
}

std::vector<tensor_spec> infer(const op_info& op, std::span<const const_tensor_view> in, const attributes& attrs) {
  return all().operations[static_cast<std::size_t>(op.id)].infer(op.id, in, attrs);
}

void call(context& ctx, const op_info& op, std::span<const const_tensor_view> in, std::span<const tensor_view> out,
          const attributes& attrs) {
  all().operations[static_cast<std::size_t>(op.id)].run(ctx, op.id, in, out, attrs);
}

}  // namespace repdl
