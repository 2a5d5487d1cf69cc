// Rotary embedding: two calls on the halves of x, as views.
#include <utility>

#include "librepdl/api/submit.hpp"
#include "librepdl/export.hpp"
#include "librepdl/options.hpp"

// Declared here, too, for ops.hpp has all elementwise functions, and what includes it is compiled again with each new one.
namespace repdl REPDL_EXPORT {
void sum_of_products(context& ctx, const_tensor_view x, const_tensor_view y, const_tensor_view z, const_tensor_view w,
                     tensor_view out);
void difference_of_products(context& ctx, const_tensor_view x, const_tensor_view y, const_tensor_view z,
                            const_tensor_view w, tensor_view out);
void rotary(context& ctx, const_tensor_view x, const_tensor_view cos, const_tensor_view sin, tensor_view out,
            const rotary_options& options);
}  // namespace repdl

namespace repdl {
namespace {

constexpr std::string_view name = "rotary";
constexpr ops::operand in_rows[] = {{"x", ops::FLOATS}, {"cos", ops::FLOATS}, {"sin", ops::FLOATS}};
constexpr ops::operand out_rows[] = {{"out", ops::FLOATS}};

// The first or second numbers of all pairs along the last axis.
template <class View>
View of_pairs(const View& x, bool second, bool interleaved) {
  const std::int64_t size = x.shape()[x.rank() - 1];
  const std::int64_t begin = second ? (interleaved ? 1 : size / 2) : 0;
  return x.slice(-1, begin, interleaved || second ? size : size / 2, interleaved ? 2 : 1);
}

void check(plan::inputs in) {
  plan::check_inputs(name, in_rows, in);
  const const_tensor_view& x = in[0];
  if (x.rank() < 1) fail(error_site::operand_rank, name, "x", "at least 1 axis", "0");
  sizes half = x.shape();
  std::int64_t& last = half[half.size() - 1];
  if (last % 2 != 0) {
    fail(error_site::attention_shape, name, "x", "a last axis of an even size, of pairs", "shape " + to_string(half));
  }
  last /= 2;
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    plan::check_format(name, in_rows[i].name, in[i], "x", x);
    if (!(plan::broadcast(name, in_rows[i].name, half, in[i].shape()) == half)) {
      fail(error_site::broadcast, name, in_rows[i].name, "a shape that broadcasts to " + to_string(half),
           to_string(in[i].shape()));
    }
  }
}

}  // namespace

void rotary(context& ctx, const_tensor_view x, const_tensor_view cos, const_tensor_view sin, tensor_view out,
            const rotary_options& options) {
  const const_tensor_view in[] = {x, cos, sin};
  check(in);
  const tensor_spec spec = x.spec();
  api::output_list all;
  const tensor_view y = api::with_results(ctx, {&spec, 1}, {&out, 1}, all)[0];
  plan::check_outputs(name, out_rows, {&y, 1}, {&spec, 1});
  plan::check_devices(name, in_rows, in, out_rows, {&y, 1}, ctx.where());
  plan::check_overlap(name, in_rows, in, out_rows, {&y, 1}, plan::aliases::none);
  const auto part = [&](const auto& v, bool second) { return of_pairs(v, second, options.interleaved); };
  const const_tensor_view x1 = part(x, false), x2 = part(x, true);
  using call =
      void (*)(context&, const_tensor_view, const_tensor_view, const_tensor_view, const_tensor_view, tensor_view);
  call first = difference_of_products, second = sum_of_products;
  if (options.inverse) std::swap(first, second);
  first(ctx, x1, cos, x2, sin, part(y, false));
  second(ctx, x2, cos, x1, sin, part(y, true));
}

}  // namespace repdl
