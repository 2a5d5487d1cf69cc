#include "librepdl/operand.hpp"

#include <cstring>
#include <string>

#include "librepdl/api/context_impl.hpp"
#include "librepdl/num/format.hpp"
#include "librepdl/num/fp_environment.hpp"

namespace repdl {
namespace {

bool is_floating(dtype type) noexcept {
  return type == dtype::f16 || type == dtype::bf16 || type == dtype::f32 || type == dtype::f64;
}

// The format of a call: that of its first operand with a floating-point one.
dtype format_of(std::string_view op, std::initializer_list<operand> in) {
  for (const operand& o : in) {
    if (o.view() && is_floating(o.view().type())) return o.view().type();
  }
  fail(error_site::number_format, op, "operands", "one of a floating-point format beside a number", "none");
}

template <class T>
std::uint64_t bits_of_rounded(double number) noexcept {
  const T rounded = num::narrow<T>(number);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &rounded, sizeof rounded);
  return bits;
}

// What is converted under the library's floating-point environment: to compilers a conversion does not depend on it, but a volatile
// number is read behind what sets it, and written in front of what sets it back.
std::uint64_t rounded_bits(double number, dtype format) noexcept {
  const num::fp_environment_guard guard;
  const volatile double given = number;
  const volatile std::uint64_t bits =
      format == dtype::f64 ? bits_of_rounded<double>(given)
                           : num::with_format(format, [&]<class T>() { return bits_of_rounded<T>(given); });
  return bits;
}

// A prepared call would write to a result that is gone.
void refuse_recording(context& ctx, std::string_view op) {
  if (context_access::of(ctx).recorder != nullptr) {
    fail(error_site::prepared_result, op, "out", "a tensor, in calls that are prepared", "none");
  }
}

}  // namespace

void operand::not_a_double(const std::string& number) {
  fail(error_site::number_format, "operand", "number", "an integer that is a double", number);
}

double operand::widened(float number) noexcept {
  const num::fp_environment_guard guard;
  const volatile float given = number;
  const volatile double wide = static_cast<double>(given);
  return wide;
}

namespace detail {

operand_views::operand_views(context& ctx, std::string_view op, std::initializer_list<operand> in) {
  context::impl& c = context_access::of(ctx);
  std::size_t i = 0;
  for (const operand& o : in) {
    if (o.number()) {
      const dtype format = format_of(op, in);
      const std::uint64_t bits = rounded_bits(*o.number(), format);
      std::uint64_t& kept = c.recorder == nullptr ? numbers_[i] : c.recorder->numbers.emplace_front();
      kept = bits;
      views_[i] = const_tensor_view(static_cast<const void*>(&kept), format, sizes{});
    } else {
      views_[i] = o.view();
    }
    ++i;
  }
}

std::vector<const_tensor_view> views_of(std::span<const operand> in) {
  std::vector<const_tensor_view> views;
  for (const operand& o : in) views.push_back(o.view());
  return views;
}

context& context_of(std::string_view op, std::span<const operand> in) {
  context* found = nullptr;
  for (const operand& o : in) {
    if (o.where() == nullptr) continue;
    if (found != nullptr && found != o.where()) {
      fail(error_site::context_mismatch, op, "operands", "tensors of one context", "tensors of several");
    }
    found = o.where();
  }
  if (found == nullptr) {
    fail(error_site::no_context, op, "operands", "a repdl::tensor, or an operand(ctx, view), among them", "none");
  }
  return *found;
}

results::results(context& ctx, std::string_view op, std::size_t count) : context_(ctx), count_(count) {
  refuse_recording(ctx, op);
  context_access::of(ctx).wanted = this;
}
results::~results() { context_access::of(context_).wanted = nullptr; }

tensor tensor_for(context& ctx, std::string_view op, const tensor_spec& spec) {
  refuse_recording(ctx, op);
  return tensor(ctx, spec.type, spec.shape);
}

void set_operand(std::string_view op, std::string_view name, const_tensor_view& in_options,
                 const const_tensor_view& operand) {
  if (in_options) fail(error_site::input_count, op, name, "one, as an operand", "another one in the options");
  in_options = operand;
}

context& context_of_numbers() {
  thread_local context ctx({.threads = 1});
  return ctx;
}

}  // namespace detail
}  // namespace repdl
