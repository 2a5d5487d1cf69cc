// Plans of row operations: the softmax family and norms.
#include <bit>

#include "librepdl/plan/planner.hpp"

namespace repdl::plan {

int class_axis(std::string_view op, std::string_view name, const const_tensor_view& x,
               std::optional<std::int64_t> axis) {
  if (x.rank() == 0) fail(error_site::operand_rank, op, name, "at least one axis", "rank 0");
  return normalize_axis(op, axis.value_or(x.rank() > 1 ? 1 : 0), x.rank());
}

namespace {
sizes without(const sizes& shape, int axis) {
  sizes rest;
  for (int i = 0; i < shape.size(); ++i) {
    if (i != axis) rest.push_back(shape[i]);
  }
  return rest;
}
}  // namespace

sizes check_targets(std::string_view op, const const_tensor_view& x, int axis, const const_tensor_view& targets) {
  const sizes rows = without(x.shape(), axis);
  if (!(targets.shape() == rows)) {
    fail(error_site::target_shape, op, "targets", "shape " + to_string(rows), to_string(targets.shape()));
  }
  return rows;
}

void check_class_weights(std::string_view op, std::string_view name, const const_tensor_view& x, int axis,
                         const const_tensor_view& weight) {
  if (!weight) return;
  check_format(op, "weight", weight, name, x);
  const sizes classes{x.shape()[axis]};
  if (!(weight.shape() == classes)) {
    fail(error_site::weight_shape, op, "weight", "shape " + to_string(classes), to_string(weight.shape()));
  }
}

namespace {

bool is_in(const sizes& axes, int axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }

// What operands have of x: all axes, or the kept ones (`keepdim`: the reduced ones as 1), or one number, or the one reduced axis.
enum class extent { all, kept, kept_ones, one, reduced };
struct row_operand {
  const const_tensor_view* view;
  extent of;
  row_operand(const const_tensor_view& v, extent e = extent::all) noexcept : view(&v), of(e) {}
};

// The axes of rows, with every operand's stride along each.
class row_axes {
 public:
  void push(bool is_reduced, std::int64_t size, std::span<const std::int64_t> strides) {
    (is_reduced ? reduced_ : kept_).push(size, strides);
  }
  // x: the input that rows are read in the order of.
  row_plan plan(ops::op_id op, int x, std::span<const row_operand> in, outputs out) {
    row_plan p{};
    p.op = op;
    for (loop_axes* l : {&kept_, &reduced_}) {  // the order of rows, and of the terms of a row, does not matter
      l->squeeze();
      l->sort_by(x);
      l->merge();
    }
    p.rows = kept_.count();
    p.length = reduced_.count();
    p.kept_rank = kept_.rank;
    p.reduced_rank = reduced_.rank;
    copy(p.kept_shape, kept_.shape, kept_.rank);
    copy(p.reduced_shape, reduced_.shape, reduced_.rank);
    std::size_t at = 0;
    for (std::size_t i = 0; i < in.size(); ++i, ++at) {
      p.in[i] = *in[i].view ? in[i].view->data() : nullptr;
      p.in_type[i] = in[i].view->type();
      set(p.in_stride[i], at);
    }
    for (std::size_t i = 0; i < out.size(); ++i, ++at) {
      p.out[i] = out[i] ? out[i].data() : nullptr;
      p.out_type[i] = out[i].type();
      set(p.out_stride[i], at);
    }
    return p;
  }

 private:
  void set(row_plan::strides& to, std::size_t operand) const {
    copy(to.kept, kept_.stride[operand], kept_.rank);
    copy(to.reduced, reduced_.stride[operand], reduced_.rank);
  }
  static void copy(axes& to, const axes& from, int rank) { std::copy_n(from.begin(), rank, to.begin()); }

  loop_axes kept_{loop_axes::bare{}}, reduced_{loop_axes::bare{}};
};

row_plan make_rows(ops::op_id op, int x, const sizes& reduced, std::initializer_list<row_operand> in, outputs out,
                   extent of_out) {
  const std::span<const row_operand> inputs(in.begin(), in.size());
  const const_tensor_view& lead = *inputs[static_cast<std::size_t>(x)].view;
  row_axes all;
  int kept = 0;
  for (int i = 0; i < lead.rank(); ++i) {
    const bool is_reduced = is_in(reduced, i);
    const auto stride = [&](const row_operand& o) {
      if (o.of == extent::all) return o.view->strides()[i];
      if (o.of == extent::reduced) return is_reduced ? o.view->strides()[0] : std::int64_t{0};
      if (is_reduced || o.of == extent::one) return std::int64_t{0};
      return o.view->strides()[o.of == extent::kept ? kept : i];
    };
    inline_vector<std::int64_t, row_plan::most_inputs + row_plan::most_outputs> strides;
    for (const row_operand& o : inputs) strides.push_back(stride(o));
    for (const tensor_view& y : out) strides.push_back(y ? stride({y, of_out}) : 0);
    all.push(is_reduced, lead.shape()[i], {strides.data(), strides.size()});
    kept += is_reduced ? 0 : 1;
  }
  return all.plan(op, x, inputs, out);
}

extent kept_as(bool keepdim) { return keepdim ? extent::kept_ones : extent::kept; }

sizes sizes_along(const sizes& shape, const sizes& axes) {
  sizes along;
  for (int i = 0; i < axes.size(); ++i) along.push_back(shape[static_cast<int>(axes[i])]);
  return along;
}

double check_eps(std::string_view op, double eps) {
  check_parameter(op, "eps", eps, false);
  return eps;
}

}  // namespace

tensor_spec infer_softmax(std::string_view op, inputs in, const softmax_options& a) {
  normalize_axis(op, a.axis, in[0].rank());
  if (in.size() > 1) {
    check_format(op, "y", in[1], "g", in[0]);
    check_gradient(op, in[0], in[1].shape());
  }
  return {in[0].type(), in[0].shape()};
}

row_plan make_softmax(ops::op_id op, inputs in, const tensor_view& out, const softmax_options& a) {
  const sizes axis{normalize_axis("", a.axis, in[0].rank())};
  if (in.size() == 1) return make_rows(op, 0, axis, {{in[0]}}, {&out, 1}, extent::all);
  return make_rows(op, 0, axis, {{in[0]}, {in[1]}}, {&out, 1}, extent::all);
}

tensor_spec infer_logsumexp(inputs in, const reduce_options& a) {
  return infer_reduce(ops::op_id::logsumexp, "logsumexp", in, a);
}

tensor_spec infer_logsumexp_backward(inputs in, const reduce_options& a) {
  constexpr std::string_view op = "logsumexp_backward";
  const tensor_spec y = infer_reduce(ops::op_id::logsumexp_backward, op, in.subspan(1, 1), a);
  check_format(op, "x", in[1], "g", in[0]);
  check_gradient(op, in[0], y.shape);
  return {y.type, in[1].shape()};
}

row_plan make_logsumexp(inputs in, const tensor_view& out, const reduce_options& a) {
  return make_rows(ops::op_id::logsumexp, 0, normalize_axes("", a.axis.list(), in[0].rank()), {{in[0]}}, {&out, 1},
                   kept_as(a.keepdim));
}

row_plan make_logsumexp_backward(inputs in, const tensor_view& out, const reduce_options& a) {
  return make_rows(ops::op_id::logsumexp_backward, 1, normalize_axes("", a.axis.list(), in[1].rank()),
                   {{in[0], kept_as(a.keepdim)}, {in[1]}}, {&out, 1}, extent::all);
}

tensor_spec infer_cross_entropy(std::string_view op, inputs in, const cross_entropy_call& a) {
  const std::size_t at = a.backward ? 1 : 0;
  const const_tensor_view& logits = in[at];
  const const_tensor_view& targets = in[at + 1];
  const int axis = class_axis(op, "logits", logits, a.axis);
  if (!(a.label_smoothing == 0 || (a.label_smoothing >= 0x1p-64 && a.label_smoothing <= 1))) {
    fail(error_site::attribute_value, op, "label_smoothing", "0, or from 2^-64 to 1", to_text(a.label_smoothing));
  }
  sizes rows;
  if (a.probabilities) {
    check_format(op, "probabilities", targets, "logits", logits);
    if (!(targets.shape() == logits.shape())) {
      fail(error_site::target_shape, op, "probabilities", "shape " + to_string(logits.shape()),
           to_string(targets.shape()));
    }
    rows = without(logits.shape(), axis);
  } else {
    rows = check_targets(op, logits, axis, targets);
  }
  if (at + 2 < in.size()) check_class_weights(op, "logits", logits, axis, in[at + 2]);
  const sizes loss = a.reduction == reduction::none ? rows : sizes{};
  if (!a.backward) return {logits.type(), loss};
  check_format(op, "logits", logits, "g", in[0]);
  check_gradient(op, in[0], loss);
  return {logits.type(), logits.shape()};
}

// Rows without weights and smoothing have a rule of their own, but in f64. Operands of the others: (g,) logits, targets, weight, probabilities.
row_plan make_cross_entropy(inputs in, const tensor_view& out, const cross_entropy_call& a) {
  using enum ops::op_id;
  const std::size_t at = a.backward ? 1 : 0;
  const extent loss = a.reduction == reduction::none ? extent::kept : extent::one;
  const extent of_out = a.backward ? extent::all : loss;
  const sizes axis{class_axis("", "", in[at], a.axis)};
  const row_operand logits{in[at]};
  const row_operand targets{in[at + 1], extent::kept};
  const const_tensor_view none;
  const row_operand weight =
      at + 2 < in.size() && in[at + 2] ? row_operand{in[at + 2], extent::reduced} : row_operand{none, extent::one};
  row_plan p;
  if (in[at].type() != dtype::f64 && !a.probabilities && !*weight.view && a.label_smoothing == 0) {
    p = a.backward ? make_rows(cross_entropy_backward, 1, axis, {{in[0], loss}, logits, targets}, {&out, 1}, of_out)
                   : make_rows(cross_entropy, 0, axis, {logits, targets}, {&out, 1}, of_out);
  } else {
    const row_operand t = a.probabilities ? row_operand{none, extent::one} : targets;
    const row_operand probabilities = a.probabilities ? row_operand{in[at + 1]} : row_operand{none, extent::one};
    p = a.backward
            ? make_rows(cross_entropy_probabilities_backward, 1, axis,
                        {{in[0], loss}, logits, t, weight, probabilities}, {&out, 1}, of_out)
            : make_rows(cross_entropy_probabilities, 0, axis, {logits, t, weight, probabilities}, {&out, 1}, of_out);
    p.eps = a.label_smoothing;
  }
  p.reduction = a.reduction;
  p.ignore_index = a.ignore_index;
  return p;
}

namespace {

norm_call along(std::string_view op, const const_tensor_view& x, const axis_list& axis, double eps) {
  const sizes reduced = normalize_axes(op, axis.list(), x.rank());
  return {reduced, reduced, check_eps(op, eps)};
}
norm_call in_groups(std::string_view op, const const_tensor_view& x, std::int64_t groups, double eps) {
  if (x.rank() < 2) {
    fail(error_site::operand_rank, op, "x", "at least two axes: samples, channels", "rank " + std::to_string(x.rank()));
  }
  if (groups < 1 || x.shape()[1] % groups != 0) {
    fail(error_site::attribute_value, op, "groups", "a divisor of the " + std::to_string(x.shape()[1]) + " channels",
         std::to_string(groups));
  }
  sizes reduced;
  for (int i = 1; i < x.rank(); ++i) reduced.push_back(i);
  return {reduced, {1}, check_eps(op, eps), groups};
}
norm_call across(std::string_view op, const const_tensor_view& x, std::int64_t channels, double eps,
                 std::string_view name = "x") {
  if (x.rank() == 0) fail(error_site::operand_rank, op, name, "at least one axis", "rank 0");
  const int axis = normalize_axis(op, channels, x.rank());
  sizes reduced;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) reduced.push_back(i);
  }
  return {reduced, {axis}, check_eps(op, eps)};
}

// What axes a norm's operand has: x's, those of a row's weights, or those of rows.
enum class norm_role { of_x, of_weight, of_row };
norm_role role_of(std::string_view name) {
  if (name == "weight" || name == "bias" || name == "grad_weight") return norm_role::of_weight;
  if (name.starts_with("running_")) return norm_role::of_weight;
  return name == "mean" || name == "rstd" ? norm_role::of_row : norm_role::of_x;
}

// Operands in pairs, each pair of one format, x's or f32, beside f64 f64: weight and bias, running_mean and running_var. Of an operand the number of
// its pair, 0: of none.
int pair_of(std::string_view name) {
  return name == "weight" || name == "bias" ? 1 : name.starts_with("running_") ? 2 : 0;
}
void check_pair(std::string_view op, std::string_view name, const const_tensor_view& v, const ops::operand& other,
                const const_tensor_view& others) {
  const bool may_differ = pair_of(other.name) == 0 && ops::state_format(others.type()) == dtype::f32;
  if (v.type() == others.type() || (v.type() == dtype::f32 && may_differ)) return;
  fail(error_site::operand_dtype, op, name,
       std::string(name_of(others.type())) + ", as " + std::string(other.name) +
           (may_differ && others.type() != dtype::f32 ? ", or f32" : ""),
       name_of(v.type()));
}
// Statistics of rows: f32, beside f64 f64.
void check_statistic(std::string_view op, std::string_view name, const const_tensor_view& v, const ops::operand& lead,
                     const const_tensor_view& x) {
  const dtype expected = ops::state_format(x.type());
  if (v.type() == expected) return;
  fail(error_site::operand_dtype, op, name,
       std::string(name_of(expected)) + ", beside " + std::string(name_of(x.type())) + " " + std::string(lead.name),
       name_of(v.type()));
}

// What a row is where its elements have nothing in common but their channel: so much of it as lies near each other. Channels that
// lie side by side are rows side by side, of `cut` elements along an axis; else a row is what lies within one channel.
struct free_rows {
  sizes reduced;
  std::int64_t cut = 0;  // of the one axis, not 0: elements
};
free_rows rows_within(const const_tensor_view& x, int channels) {
  constexpr std::int64_t longest = 64;
  const auto step = [&](int i) { return x.strides()[i] < 0 ? -x.strides()[i] : x.strides()[i]; };
  free_rows r;
  int nearest = -1;
  for (int i = 0; i < x.rank(); ++i) {
    if (i == channels || x.shape()[i] <= 1) continue;
    if (step(i) < step(channels) || x.shape()[channels] == 1) r.reduced.push_back(i);
    if (nearest < 0 || step(i) < step(nearest)) nearest = i;
  }
  if (nearest < 0 || r.reduced.size() != 0) return r;
  const std::int64_t size = x.shape()[nearest];
  for (r.cut = std::min(size, longest); size % r.cut != 0;) --r.cut;
  r.reduced.push_back(nearest);
  return r;
}

}  // namespace

norm_call check_norm(std::string_view op, const const_tensor_view& x, const layer_norm_options& a) {
  return along(op, x, a.axis, a.eps);
}
norm_call check_norm(std::string_view op, const const_tensor_view& x, const rms_norm_options& a) {
  return along(op, x, a.axis, *a.eps);
}
norm_call check_norm(std::string_view op, const const_tensor_view& x, const group_norm_options& a) {
  return in_groups(op, x, a.groups, a.eps);
}
norm_call check_norm(std::string_view op, const const_tensor_view& x, const batch_norm_options& a) {
  return across(op, x, a.axis, a.eps);
}
norm_call check_norm(std::string_view op, const const_tensor_view& x, const layer_norm_backward_options& a) {
  return along(op, x, a.axis, 0);
}
norm_call check_norm(std::string_view op, const const_tensor_view& x, const group_norm_backward_options& a) {
  return in_groups(op, x, a.groups, 0);
}
norm_call check_norm(std::string_view op, const const_tensor_view& x, const batch_norm_backward_options& a) {
  return across(op, x, a.axis, 0);
}
norm_call check_norm(std::string_view op, const const_tensor_view& x, const batch_norm_running_options& a) {
  norm_call c = across(op, x, a.axis, a.eps);
  check_parameter(op, "momentum", a.momentum, false);
  // By its bits (check_parameter), which are those of a number >= 0.
  if (std::bit_cast<std::uint64_t>(a.momentum) << 1 > std::bit_cast<std::uint64_t>(1.0) << 1) {
    fail(error_site::attribute_value, op, "momentum", "0 or a number in [2^-200, 1]", to_text(a.momentum));
  }
  c.momentum = a.momentum;
  return c;
}
norm_call check_norm(std::string_view op, const const_tensor_view& x, const batch_norm_inference_backward_options& a) {
  return across(op, x, a.axis, a.eps, op.ends_with("weight_backward") ? "x" : "g");
}

specs infer_norm(std::string_view op, std::span<const ops::operand> in, std::span<const ops::operand> out, inputs x,
                 const norm_call& a) {
  const sizes& shape = x[static_cast<std::size_t>(lead_of(in))].shape();
  sizes kept;
  for (int i = 0; i < shape.size(); ++i) {
    if (!is_in(a.reduced, i)) kept.push_back(shape[i]);
  }
  if (a.groups != 0) kept.push_back(a.groups);
  const sizes weight = sizes_along(shape, a.weight);
  const auto shape_of = [&](std::string_view name) -> const sizes& {
    const norm_role role = role_of(name);
    return role == norm_role::of_x ? shape : role == norm_role::of_weight ? weight : kept;
  };
  std::size_t first_of_pair[3] = {};  // of none: x
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::string_view name = in[i].name;
    if (!x[i]) continue;
    if (const int pair = pair_of(name); pair != 0) {
      std::size_t& first = first_of_pair[pair];
      check_pair(op, name, x[i], in[first], x[first]);
      first = i;
    } else if (role_of(name) == norm_role::of_row) {
      check_statistic(op, name, x[i], in[0], x[0]);
    } else {
      check_format(op, name, x[i], in[0].name, x[0]);
    }
    if (x[i].shape() == shape_of(name)) continue;
    fail(name == "g" ? error_site::gradient_shape : error_site::weight_shape, op, name,
         "shape " + to_string(shape_of(name)), to_string(x[i].shape()));
  }
  specs all;
  for (const ops::operand& o : out) {
    const bool of_row = role_of(o.name) == norm_role::of_row;
    const std::size_t like = o.name.starts_with("running_") ? first_of_pair[pair_of(o.name)] : 0;
    all.push_back({of_row ? ops::state_format(x[0].type()) : x[like].type(), shape_of(o.name)});
  }
  return all;
}

row_plan make_norm(ops::op_id op, std::span<const ops::operand> in, std::span<const ops::operand> out, inputs x,
                   outputs y, const norm_call& a) {
  using enum ops::op_id;
  switch (op) {
    case group_norm:
    case batch_norm:
      op = layer_norm;
      break;
    case group_norm_backward:
    case batch_norm_backward:
      op = layer_norm_backward;
      break;
    case group_norm_weight_backward:
    case batch_norm_weight_backward:
      op = layer_norm_weight_backward;
      break;
    default:
      break;
  }
  const bool of_weight = role_of(out[0].name) == norm_role::of_weight;
  const int lead = lead_of(in);
  row_axes all;
  inline_vector<row_operand, row_plan::most_inputs> operands;
  for (const const_tensor_view& v : x) operands.push_back({v});
  int kept = 0;
  // Axis i of x, or a part of cut channels: a step on it is `step` of the channels.
  const auto push = [&](int i, bool in_row, std::int64_t size, std::int64_t step) {
    const auto* const at = std::find(a.weight.begin(), a.weight.end(), i);
    const auto stride = [&](std::string_view name, const const_tensor_view& v) {
      const norm_role role = role_of(name);
      if (!v) return std::int64_t{0};
      if (role == norm_role::of_x) return v.strides()[i] * step;
      if (role == norm_role::of_row) return in_row ? 0 : v.strides()[kept];
      return at == a.weight.end() ? 0 : v.strides()[static_cast<int>(at - a.weight.begin())] * step;
    };
    inline_vector<std::int64_t, row_plan::most_inputs + row_plan::most_outputs> strides;
    for (std::size_t k = 0; k < x.size(); ++k) strides.push_back(stride(in[k].name, x[k]));
    for (std::size_t k = 0; k < y.size(); ++k) strides.push_back(stride(out[k].name, y[k]));
    all.push(of_weight ? at == a.weight.end() : in_row, size, {strides.data(), strides.size()});
    kept += in_row ? 0 : 1;
  };
  const sizes& shape = x[static_cast<std::size_t>(lead)].shape();
  const bool sums_up = op != batch_norm_inference && op != batch_norm_inference_backward;
  free_rows within{a.reduced};
  if (!sums_up) within = rows_within(x[static_cast<std::size_t>(lead)], static_cast<int>(a.weight[0]));
  for (int i = 0; i < shape.size(); ++i) {
    const bool in_row = is_in(within.reduced, i);
    if (in_row && within.cut != 0) {
      push(i, false, shape[i] / within.cut, within.cut);
      push(i, true, within.cut, 1);
    } else if (a.groups != 0 && i == 1) {
      push(i, false, a.groups, shape[i] / a.groups);
      push(i, true, shape[i] / a.groups, 1);
    } else {
      push(i, in_row, shape[i], 1);
    }
  }
  row_plan p = all.plan(op, lead, {operands.data(), operands.size()}, y);
  p.eps = a.eps;
  p.momentum = a.momentum;
  return p;
}

specs infer_var(std::string_view op, std::span<const ops::operand> out, inputs in, const var_options& a) {
  check_parameter(op, "correction", a.correction, true);
  const tensor_spec of_rows = infer_reduce(ops::op_id::var, op, in, {a.axis, a.keepdim});
  specs all;
  for (std::size_t i = 0; i < out.size(); ++i) all.push_back(of_rows);
  return all;
}

row_plan make_var(ops::op_id op, inputs in, outputs out, const var_options& a) {
  row_plan p = make_rows(op == ops::op_id::var ? ops::op_id::var_mean : op, 0,
                         normalize_axes("", a.axis.list(), in[0].rank()), {{in[0]}}, out, kept_as(a.keepdim));
  p.eps = a.correction;
  return p;
}

reduce_plan spreads_of(const row_plan& r) {
  reduce_plan p{};
  p.op = ops::op_id::var;
  p.type = r.in_type[0];
  p.inputs = 2;
  p.kept_rank = r.kept_rank;
  p.reduced_rank = r.reduced_rank;
  p.outputs = r.rows;
  p.length = r.length;
  p.kept_shape = r.kept_shape;
  p.reduced_shape = r.reduced_shape;
  p.in[0] = {r.in[0], r.in_stride[0].kept, r.in_stride[0].reduced};
  p.in[1] = {r.in[0], r.in_stride[0].kept, {}};
  p.out = r.out[0];
  p.out_stride = r.out_stride[0].kept;
  p.root = r.op == ops::op_id::stddev;
  p.correction = r.eps;
  if (r.op == ops::op_id::var_mean) {
    p.mean = r.out[1];
    p.mean_stride = r.out_stride[1].kept;
  }
  return p;
}

reduce_plan mean_beside(const reduce_plan& spreads) {
  reduce_plan p = spreads;
  p.op = ops::op_id::mean;
  p.inputs = 1;
  p.root = false;
  p.out = spreads.mean;
  p.out_stride = spreads.mean_stride;
  p.mean = nullptr;
  return p;
}

}  // namespace repdl::plan
