// The typed functions.
#include "librepdl/ops.hpp"

#include "librepdl/api/submit.hpp"

namespace repdl {
namespace {

template <class Op>
void reduce(context& ctx, const_tensor_view x, tensor_view out, const reduce_options& o) {
  api::submit<Op>(ctx.self(), {&x, 1}, {&out, 1}, {.axis = o.axis, .keepdim = o.keepdim});
}

template <class... View>
void elementwise(context& ctx, ops::op_id op, tensor_view out, const View&... x) {
  const const_tensor_view in[] = {x...};
  api::submit_elementwise(ctx.self(), op, in, {&out, 1});
}

// A dry run uses no random numbers.
void use_stream(context& ctx, generator& g) noexcept { g.stream += ctx.self().dry_run ? 0 : 1; }

}  // namespace

#define REPDL_VIEWS_1 const_tensor_view x
#define REPDL_VIEWS_2 const_tensor_view x, const_tensor_view y
#define REPDL_VIEWS_3 const_tensor_view x, const_tensor_view y, const_tensor_view z
#define REPDL_ARGS_1 x
#define REPDL_ARGS_2 x, y
#define REPDL_ARGS_3 x, y, z
#define REPDL_ELEMENTWISE(name, arity, ...)                       \
  void name(context& ctx, REPDL_VIEWS_##arity, tensor_view out) { \
    elementwise(ctx, ops::op_id::name, out, REPDL_ARGS_##arity);  \
  }
#include "librepdl/ops/elementwise.def"
#undef REPDL_ELEMENTWISE

void convert(context& ctx, const_tensor_view x, tensor_view out) {
  api::submit<ops::convert>(ctx.self(), {&x, 1}, {&out, 1}, {});
}

void sum(context& ctx, const_tensor_view x, tensor_view out, const reduce_options& options) {
  reduce<ops::sum>(ctx, x, out, options);
}
void mean(context& ctx, const_tensor_view x, tensor_view out, const reduce_options& options) {
  reduce<ops::mean>(ctx, x, out, options);
}
void max(context& ctx, const_tensor_view x, tensor_view out, const reduce_options& options) {
  reduce<ops::max>(ctx, x, out, options);
}
void min(context& ctx, const_tensor_view x, tensor_view out, const reduce_options& options) {
  reduce<ops::min>(ctx, x, out, options);
}
void argmax(context& ctx, const_tensor_view x, tensor_view out, const reduce_options& options) {
  reduce<ops::argmax>(ctx, x, out, options);
}
void argmin(context& ctx, const_tensor_view x, tensor_view out, const reduce_options& options) {
  reduce<ops::argmin>(ctx, x, out, options);
}

void dot(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out) {
  const const_tensor_view in[] = {x, y};
  api::submit<ops::dot>(ctx.self(), in, {&out, 1}, {});
}

void matmul(context& ctx, const_tensor_view a, const_tensor_view b, tensor_view out, const matmul_options& options) {
  const const_tensor_view in[] = {a, b, options.bias};
  api::submit<ops::matmul>(
      ctx.self(), in, {&out, 1},
      {.transpose_a = options.transpose_a, .transpose_b = options.transpose_b, .accumulate = options.accumulate});
}

void uniform(context& ctx, generator& g, tensor_view out, const uniform_options& options) {
  api::submit<ops::uniform>(ctx.self(), {}, {&out, 1},
                            {.shape = {},
                             .dtype = {},
                             .seed = static_cast<std::int64_t>(g.seed),
                             .stream = static_cast<std::int64_t>(g.stream),
                             .low = options.low,
                             .high = options.high});
  use_stream(ctx, g);
}

void permutation(context& ctx, generator& g, tensor_view out) {
  api::submit<ops::permutation>(
      ctx.self(), {}, {&out, 1},
      {.n = {}, .seed = static_cast<std::int64_t>(g.seed), .stream = static_cast<std::int64_t>(g.stream)});
  use_stream(ctx, g);
}

}  // namespace repdl
