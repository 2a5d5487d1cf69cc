#include "librepdl/plan/planner.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

namespace repdl::plan {

void loop_axes::push(std::int64_t size, std::span<const std::int64_t> strides) {
  shape[static_cast<std::size_t>(rank)] = size;
  operands = static_cast<int>(strides.size());
  std::size_t o = 0;
  for (const std::int64_t s : strides) stride[o++][static_cast<std::size_t>(rank)] = s;
  ++rank;
}

void loop_axes::squeeze() {
  const auto end = shape.begin() + rank;
  if (std::find(shape.begin(), end, 0) != end) {
    rank = 1;
    shape[0] = 0;
    for (axes& s : stride) s[0] = 0;
    return;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(rank); ++i) {
    if (shape[i] == 1) continue;
    shape[kept] = shape[i];
    for (std::size_t o = 0; o < static_cast<std::size_t>(operands); ++o) stride[o][kept] = stride[o][i];
    ++kept;
  }
  rank = static_cast<int>(kept);
}

std::int64_t loop_axes::count() const {
  std::int64_t n = 1;
  for (int i = 0; i < rank; ++i) n *= shape[static_cast<std::size_t>(i)];
  return n;
}

void loop_axes::sort_by(int operand) {
  // By insertion: stable, and most calls come sorted.
  const axes& key = stride[static_cast<std::size_t>(operand)];
  for (std::size_t sorted = 1; sorted < static_cast<std::size_t>(rank); ++sorted) {
    for (std::size_t i = sorted; i > 0 && std::abs(key[i - 1]) < std::abs(key[i]); --i) {
      std::swap(shape[i - 1], shape[i]);
      for (std::size_t o = 0; o < static_cast<std::size_t>(operands); ++o) std::swap(stride[o][i - 1], stride[o][i]);
    }
  }
}

void loop_axes::merge() {
  if (rank == 0) return;
  std::size_t last = 0;
  for (std::size_t i = 1; i < static_cast<std::size_t>(rank); ++i) {
    bool one_step = true;
    for (std::size_t o = 0; o < static_cast<std::size_t>(operands); ++o) {
      one_step = one_step && stride[o][last] == stride[o][i] * shape[i];
    }
    if (one_step) {
      shape[last] *= shape[i];
    } else {
      shape[++last] = shape[i];
    }
    for (std::size_t o = 0; o < static_cast<std::size_t>(operands); ++o) stride[o][last] = stride[o][i];
  }
  rank = static_cast<int>(last) + 1;
}

void loop_axes::remove(int axis) {
  --rank;
  for (auto i = static_cast<std::size_t>(axis); i < static_cast<std::size_t>(rank); ++i) {
    shape[i] = shape[i + 1];
    for (std::size_t o = 0; o < static_cast<std::size_t>(operands); ++o) stride[o][i] = stride[o][i + 1];
  }
}

// ---- elementwise

sizes infer_map(const ops::elementwise_row& row, std::span<const ops::operand> rows, inputs in) {
  const auto first = static_cast<std::size_t>(row.leading());
  const dtype format = in[first].type();
  sizes shape = in[0].shape();
  for (std::size_t i = 1; i < in.size(); ++i) {
    if (in[i].type() != row.operand_type(static_cast<int>(i), format)) {
      fail(error_site::operand_dtype, row.name, rows[i].name,
           std::string(name_of(format)) + ", as " + std::string(rows[first].name), name_of(in[i].type()));
    }
    if (!(in[i].shape() == shape)) shape = broadcast(row.name, rows[i].name, shape, in[i].shape());
  }
  return shape;
}

std::string range_of(const ops::option_list& options, int i) {
  switch (options.all[i].kind) {
    case ops::option_kind::coefficient:
      return "0 or a magnitude in [2^-200, 2^200]";
    case ops::option_kind::nonzero:
      return "a magnitude in [2^-200, 2^200]";
    case ops::option_kind::nonnegative:
      return "0 or a number in [2^-200, 2^200]";
    case ops::option_kind::positive:
      return "a number in [2^-200, 2^200]";
    case ops::option_kind::margin:
      return "a number in [0, 1/2], or NaN: absent";
    case ops::option_kind::threshold:
      return "a number, not NaN";
    case ops::option_kind::value:
      return "a number or NaN, rounded to the operands' format";
    case ops::option_kind::real:
      return "a number or NaN";
    case ops::option_kind::upper:
      break;
  }
  return "a number >= " + std::string(options.all[i - 1].name) + ", rounded to the operands' format";
}

std::array<double, ops::option_list::most> numbers_of(const ops::elementwise_row& row, dtype format,
                                                      option_span options) {
  std::array<double, ops::option_list::most> all{};
  for (std::size_t i = 0; i < options.size(); ++i) {
    all[i] = options[i] ? *options[i] : row.options.all[i].otherwise.in(format);
  }
  return all;
}

void check_options(const ops::elementwise_row& row, std::span<const double> options) {
  for (int i = 0; i < row.options.count(); ++i) {
    if (row.options.accepts(i, options)) continue;
    fail(error_site::attribute_value, row.name, row.options.all[i].name, range_of(row.options, i),
         to_text(options[static_cast<std::size_t>(i)]));
  }
}

map_plan make_map(ops::op_id op, inputs in, const tensor_view& out, std::span<const double> options) {
  map_plan p;  // all of it but absent operands, which would cost more than the checks
  std::fill_n(p.options, ops::option_list::most, 0.0);
  p.has_options = false;
  const bool is_convert = op == ops::op_id::convert;
  p.in_type = in[is_convert ? 0 : static_cast<std::size_t>(ops::row_of(op).leading())].type();
  for (std::size_t i = 0; i < options.size(); ++i) {
    const ops::real_option& o = ops::row_of(op).options.all[i];
    const auto bits = [](double x) { return std::bit_cast<std::uint64_t>(x); };
    p.options[i] = options[i];
    p.has_options = p.has_options || bits(options[i]) != bits(o.otherwise.in(p.in_type));
  }
  p.op = op;
  p.arity = static_cast<int>(in.size());
  p.count = out.count();
  p.out = out.data();
  p.out_type = out.type();
  const sizes& shape = out.shape();
  bool alike = out.is_contiguous();
  for (std::size_t i = 0; i < in.size(); ++i) {
    p.in[i].data = in[i].data();
    p.in[i].type = in[i].type();
    if (!(in[i].where() == out.where())) {
      p.in[i].number = 0;
      std::memcpy(&p.in[i].number, std::exchange(p.in[i].data, nullptr), size_of(in[i].type()));
    }
    alike = alike && (in[i].rank() == 0 || (in[i].shape() == shape && in[i].is_contiguous()));
  }
  if (alike) {  // most calls: what the loop below would make of them
    p.rank = p.count == 1 ? 0 : 1;
    p.shape = p.out_stride = {};
    for (std::size_t i = 0; i < in.size(); ++i) p.in[i].stride = {};
    if (p.rank == 1) {
      p.shape[0] = p.count;
      p.out_stride[0] = 1;
      for (std::size_t i = 0; i < in.size(); ++i) p.in[i].stride[0] = in[i].rank() == 0 ? 0 : 1;
    }
    return p;
  }
  sizes strides[ops::most_operands];
  for (std::size_t i = 0; i < in.size(); ++i) strides[i] = broadcast_strides(in[i], shape);
  loop_axes loop;
  for (int i = 0; i < shape.size(); ++i) {
    std::array<std::int64_t, 1 + ops::most_operands> of_axis{out.strides()[i]};
    for (std::size_t k = 0; k < in.size(); ++k) of_axis[k + 1] = strides[k][i];
    loop.push(shape[i], of_axis);
  }
  loop.squeeze();
  loop.sort_by(0);
  loop.merge();
  p.rank = loop.rank;
  p.shape = loop.shape;
  for (std::size_t i = 0; i < in.size(); ++i) p.in[i].stride = loop.stride[i + 1];
  p.out_stride = loop.stride[0];
  return p;
}

dtype float_type(std::string_view op, dtype type) {
  if ((ops::FLOATS & ops::one(type)) == 0) {
    fail(error_site::attribute_value, op, "dtype", describe(ops::FLOATS), name_of(type));
  }
  return type;
}

tensor_spec infer_convert(inputs in, const ops::convert_attrs& a) {
  if (a.saturate && (ops::F8 & ops::one(*a.dtype)) == 0) {
    fail(error_site::attribute_value, "convert", "saturate", "false, or a result of " + describe(ops::F8),
         "true, to " + std::string(name_of(*a.dtype)));
  }
  return {*a.dtype, in[0].shape()};
}

// ---- reductions

namespace {

bool is_reduced(const sizes& axes, int i) { return std::find(axes.begin(), axes.end(), i) != axes.end(); }

// Of a reduction of elements of a type.
dtype result_of(ops::op_id op, dtype type) {
  using enum ops::op_id;
  if (op == argmax || op == argmin) return dtype::i64;
  if (op == sum || op == prod) return ops::total_type(type);
  return op == mean && !ops::is_floating(type) ? dtype::f64 : type;
}

// kept: the strides of the output, the inputs and the bias; inner: of the inputs. Normalises both.
reduce_plan reduce_over(ops::op_id op, int inputs, loop_axes& kept, loop_axes& inner) {
  kept.squeeze();
  kept.sort_by(0);
  kept.merge();
  inner.squeeze();
  inner.merge();
  reduce_plan p{};
  p.op = op;
  p.inputs = inputs;
  p.kept_rank = kept.rank;
  p.reduced_rank = inner.rank;
  p.outputs = kept.count();
  p.length = inner.count();
  p.kept_shape = kept.shape;
  p.reduced_shape = inner.shape;
  for (std::size_t i = 0; i < static_cast<std::size_t>(inputs); ++i) {
    p.in[i].kept_stride = kept.stride[i + 1];
    p.in[i].reduced_stride = inner.stride[i];
  }
  p.out_stride = kept.stride[0];
  p.bias_stride = kept.stride[3];
  return p;
}

}  // namespace

tensor_spec infer_reduce(ops::op_id op, std::string_view name, inputs in, const reduce_options& a) {
  const const_tensor_view& x = in.back();
  if (in.size() > 1) {
    check_format(name, "x", x, "g", in[0]);
    check_gradient(name, in[0], x.shape());
  }
  const sizes reduced = normalize_axes(name, a.axis.list(), x.rank());
  sizes shape;
  bool nothing_to_reduce = false;
  for (int i = 0; i < x.rank(); ++i) {
    if (!is_reduced(reduced, i)) {
      shape.push_back(x.shape()[i]);
    } else {
      nothing_to_reduce = nothing_to_reduce || x.shape()[i] == 0;
      if (a.keepdim) shape.push_back(1);
    }
  }
  using enum ops::op_id;
  const bool needs_one = op == max || op == min || op == argmax || op == argmin;
  if (needs_one && nothing_to_reduce) {
    fail(error_site::empty_reduction, name, "x", "at least one element along the reduced axes",
         "shape " + to_string(x.shape()));
  }
  return {result_of(op, x.type()), shape};
}

reduce_plan make_reduce(ops::op_id op, inputs in, const tensor_view& out, const reduce_options& a) {
  const const_tensor_view& x = in[0];
  const sizes reduced = normalize_axes("", a.axis.list(), x.rank());
  loop_axes kept;
  loop_axes inner;
  int o = 0;
  for (int i = 0; i < x.rank(); ++i) {
    const std::int64_t second = in.size() > 1 ? in[1].strides()[i] : 0;
    if (is_reduced(reduced, i)) {
      inner.push(x.shape()[i], {x.strides()[i], second});
      o += a.keepdim ? 1 : 0;
    } else {
      kept.push(x.shape()[i], {out.strides()[o++], x.strides()[i], second, 0});
    }
  }
  reduce_plan p = reduce_over(op, static_cast<int>(in.size()), kept, inner);
  p.type = x.type();
  for (std::size_t i = 0; i < in.size(); ++i) p.in[i].data = in[i].data();
  p.out = out.data();
  return p;
}

reduce_plan make_sum_squares(inputs in, const tensor_view& out, const reduce_options& a) {
  const const_tensor_view both[] = {in[0], in[0]};
  return make_reduce(ops::op_id::dot, both, out, a);
}

namespace {

// Whose plan it is.
ops::op_id reduction_of(const vector_norm_options& a) {
  using enum ops::op_id;
  return a.p == 1 ? sum : a.p == 2 ? dot : a.p > 0 ? max : min;
}

}  // namespace

tensor_spec infer_vector_norm(inputs in, const vector_norm_options& a) {
  constexpr std::string_view op = "vector_norm";
  if (a.p != 1 && a.p != 2 && !std::isinf(a.p)) {
    fail(error_site::attribute_value, op, "p", "1, 2, inf or -inf", to_text(a.p));
  }
  return infer_reduce(reduction_of(a), op, in, {a.axis, a.keepdim});
}

reduce_plan make_vector_norm(inputs in, const tensor_view& out, const vector_norm_options& a) {
  const reduce_options along{a.axis, a.keepdim};
  const ops::op_id op = reduction_of(a);
  const bool root = op == ops::op_id::dot;
  reduce_plan p = root ? make_sum_squares(in, out, along) : make_reduce(op, in, out, along);
  p.root = root;
  p.magnitudes = !root;
  return p;
}

dtype other_type(std::string_view op, dtype own, const std::optional<dtype>& wanted) {
  if (!wanted || *wanted == own) return own;
  if (ops::is_floating(own) && (ops::FLOATS & ops::one(*wanted)) != 0) return *wanted;
  fail(error_site::attribute_value, op, "dtype",
       ops::is_floating(own) ? describe(ops::FLOATS) : std::string(name_of(own)), name_of(*wanted));
}

tensor_spec infer_sum(ops::op_id op, std::string_view name, inputs in, const ops::sum_attrs& a) {
  tensor_spec s = infer_reduce(op, name, in, a);
  // A mean of integers is f64, and nothing else.
  const bool is_mean_of_integers = !ops::is_floating(in[0].type()) && ops::is_floating(s.type);
  if (is_mean_of_integers && a.dtype && *a.dtype != s.type) {
    fail(error_site::attribute_value, name, "dtype", std::string(name_of(s.type)) + ", of integers", name_of(*a.dtype));
  }
  s.type = other_type(name, s.type, a.dtype);
  return s;
}

reduce_plan in_format_of(const tensor_view& out, reduce_plan p) {
  if (ops::is_floating(p.type) && out.type() != p.type) p.other_format = out.type();
  return p;
}

tensor_spec infer_dot(inputs in, const ops::dot_attrs& a) {
  check_format("dot", "y", in[1], "x", in[0]);
  for (std::size_t i = 0; i < 2; ++i) {
    if (in[i].rank() != 1) {
      fail(error_site::operand_rank, "dot", i == 0 ? "x" : "y", "a vector (rank 1)",
           "rank " + std::to_string(in[i].rank()));
    }
  }
  if (in[0].count() != in[1].count()) {
    fail(error_site::length_mismatch, "dot", "y", std::to_string(in[0].count()) + " elements, as in x",
         std::to_string(in[1].count()));
  }
  return {other_type("dot", in[0].type(), a.dtype), {}};
}

// ---- matmul

namespace {

struct operand_shape {
  sizes batch;
  std::int64_t rows;
  std::int64_t cols;
};

operand_shape matrix_shape(std::string_view name, const const_tensor_view& v, bool transposed) {
  if (v.rank() < 2) {
    fail(error_site::operand_rank, "matmul", name, "a matrix or a batch of them (rank >= 2)",
         "rank " + std::to_string(v.rank()));
  }
  operand_shape s{v.shape(), v.shape()[v.rank() - 2], v.shape()[v.rank() - 1]};
  s.batch.pop_back();
  s.batch.pop_back();
  if (transposed) std::swap(s.rows, s.cols);
  return s;
}

}  // namespace

ops::dtype_set product_types(dtype own) {
  if ((ops::FLOATS & ops::one(own)) == 0) return 0;
  return ops::one(own) | (own == dtype::f64 ? 0 : own == dtype::f32 ? ops::F64 : ops::F32 | ops::F64);
}

tensor_spec infer_matmul(inputs in, const ops::matmul_attrs& a) {
  check_format("matmul", "b", in[1], "a", in[0]);
  const dtype type = a.dtype.value_or(in[0].type());
  const ops::dtype_set types = product_types(in[0].type());
  if ((types & ops::one(type)) == 0) {
    fail(error_site::attribute_value, "matmul", "dtype",
         ops::describe(types) + ", of operands of " + std::string(name_of(in[0].type())), name_of(type));
  }
  if (in.size() > 2 && in[2] && in[2].type() != type) check_format("matmul", "bias", in[2], "a", in[0]);
  check_parameter("matmul", "alpha", a.alpha, true);
  check_parameter("matmul", "beta", a.beta, true);
  if (a.accumulate == accumulate::fma_chain) {
    const auto only = [](bool holds, std::string_view name, std::string_view value, const std::string& got) {
      if (!holds) fail(error_site::chain_only, "matmul", name, std::string(value) + " with fma_chain", got);
    };
    only(in[0].type() == dtype::f32, "a", "f32", std::string(name_of(in[0].type())));
    only(type == dtype::f32, "dtype", "f32", std::string(name_of(type)));
    only(a.alpha == 1, "alpha", "1", to_text(a.alpha));
    only(a.beta == 1, "beta", "1", to_text(a.beta));
  }
  const operand_shape x = matrix_shape("a", in[0], a.transpose_a);
  const operand_shape y = matrix_shape("b", in[1], a.transpose_b);
  if (x.cols != y.rows) {
    fail(error_site::inner_size, "matmul", "b", "an inner size of " + std::to_string(x.cols) + ", as in a",
         std::to_string(y.rows));
  }
  sizes shape = broadcast("matmul", "b", x.batch, y.batch);
  shape.push_back(x.rows);
  shape.push_back(y.cols);
  if (in.size() > 2 && in[2] && !(broadcast("matmul", "bias", shape, in[2].shape()) == shape)) {
    fail(error_site::broadcast, "matmul", "bias", "a shape that broadcasts to the output's " + to_string(shape),
         to_string(in[2].shape()));
  }
  return {type, shape};
}

namespace {

// The rows or the columns of a product: with the strides of out, a, b and the bias, as a batch's axes have them.
struct lines {
  std::int64_t count;
  std::array<std::int64_t, 4> stride;
};

// Batches that are more rows (columns): where all have the same b (a), and out, a (b) and bias go on from one to the
// next as they do from row to row. So (batch, rows, k) times (k, n), the usual product in a network, is one matrix
// product. `same`: which operand has to be.
void fold(loop_axes& batch, lines& to, std::size_t same) {
  for (int axis = batch.rank - 1; axis >= 0; --axis) {
    const auto at = static_cast<std::size_t>(axis);
    bool folds = true;
    for (std::size_t o = 0; o < to.stride.size(); ++o) {
      folds = folds && (batch.stride[o][at] == to.count * to.stride[o] || (to.count == 1 && o != same));
    }
    if (!folds) continue;
    if (to.count == 1)
      for (std::size_t o = 0; o < to.stride.size(); ++o) to.stride[o] = batch.stride[o][at];
    to.count *= batch.shape[at];
    batch.remove(axis);
    axis = batch.rank;  // those that did not may go on now
  }
}

}  // namespace

product_plan make_product(inputs in, const tensor_view& out, const matmul_options& a) {
  const auto oriented = [](const const_tensor_view& v, bool t) { return t ? v.transpose() : v; };
  const const_tensor_view x = oriented(in[0], a.transpose_a);
  const const_tensor_view y = oriented(in[1], a.transpose_b);
  const bool has_bias = in.size() > 2 && in[2];
  const int rank = out.rank();
  const int batch_axes = rank - 2;

  // The batch axes of each operand, aligned with the output's.
  const auto batch_strides = [&](const const_tensor_view& v) {
    sizes strides;
    for (int i = 0; i < batch_axes; ++i) {
      const int j = i - (rank - v.rank());
      strides.push_back(j < 0 || v.shape()[j] == 1 ? 0 : v.strides()[j]);
    }
    return strides;
  };
  sizes bias_strides;
  if (has_bias) bias_strides = broadcast_strides(in[2], out.shape());
  const auto of_bias = [&](int axis) { return has_bias ? bias_strides[axis] : 0; };
  const sizes sx = batch_strides(x);
  const sizes sy = batch_strides(y);
  loop_axes batch;
  for (int i = 0; i < batch_axes; ++i) batch.push(out.shape()[i], {out.strides()[i], sx[i], sy[i], of_bias(i)});
  batch.squeeze();
  batch.merge();
  lines row{out.shape()[rank - 2], {out.strides()[rank - 2], x.strides()[x.rank() - 2], 0, of_bias(rank - 2)}};
  lines column{out.shape()[rank - 1], {out.strides()[rank - 1], 0, y.strides()[y.rank() - 1], of_bias(rank - 1)}};
  fold(batch, row, 2);
  fold(batch, column, 1);

  product_plan p;  // not zeros: most of it are coordinates, and there are none
  p.accumulate = a.accumulate;
  p.alpha = a.alpha;
  p.beta = a.beta;
  const auto along = [](std::int64_t count) { return product_plan::space{1, count, {count}}; };
  p.batch = {batch.rank, batch.count(), batch.shape};
  p.row = along(row.count);
  p.column = along(column.count);
  p.term = along(x.shape()[x.rank() - 1]);
  const auto set = [&](auto& to, auto* data, dtype type, std::size_t o, std::int64_t outer, std::int64_t inner) {
    to.first = 0;
    to.batch = batch.stride[o];
    to.outer = {outer};
    to.inner = {inner};
    to.data = data;
    to.type = type;
    to.coordinates = 0;
  };
  set(p.out, out.data(), out.type(), 0, row.stride[0], column.stride[0]);
  set(p.a, x.data(), x.type(), 1, row.stride[1], x.strides()[x.rank() - 1]);
  set(p.b, y.data(), y.type(), 2, column.stride[2], y.strides()[y.rank() - 2]);
  set(p.bias, has_bias ? in[2].data() : nullptr, has_bias ? in[2].type() : out.type(), 3, row.stride[3],
      column.stride[3]);
  return p;
}

reduce_plan dots_of(const product_plan& m) {
  constexpr axes none{};
  const auto add = [](loop_axes& to, const product_plan::space& s, std::initializer_list<const axes*> strides) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(s.rank); ++i) {
      std::array<std::int64_t, 4> of_axis;
      std::size_t o = 0;
      for (const axes* stride : strides) of_axis[o++] = (*stride)[i];
      to.push(s.shape[i], std::span<const std::int64_t>(of_axis.data(), o));
    }
  };
  loop_axes kept;
  add(kept, m.batch, {&m.out.batch, &m.a.batch, &m.b.batch, &m.bias.batch});
  add(kept, m.row, {&m.out.outer, &m.a.outer, &none, &m.bias.outer});
  add(kept, m.column, {&m.out.inner, &none, &m.b.outer, &m.bias.inner});
  loop_axes inner;
  add(inner, m.term, {&m.a.inner, &m.b.inner});
  reduce_plan p = reduce_over(ops::op_id::dot, 2, kept, inner);
  p.type = m.out.type;
  p.in[0].data = m.a.begin();
  p.in[1].data = m.b.begin();
  p.out = m.out.begin();
  p.bias = m.bias.begin();
  p.alpha = m.alpha;
  p.beta = m.beta;
  return p;
}

}  // namespace repdl::plan
