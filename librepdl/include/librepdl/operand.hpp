// Operands of calls that make their results, and numbers as operands.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "librepdl/context.hpp"
#include "librepdl/export.hpp"
#include "librepdl/owning_tensor.hpp"
#include "librepdl/tensor.hpp"

namespace repdl REPDL_EXPORT {

/// A number of C++ that can be an operand.
template <class T>
concept number_type = std::same_as<T, float> || std::same_as<T, double> || integer_type<T>;

/// An operand of a call that makes its result: a tensor; a view, alone or with a context (operand(ctx, view)); a number; or,
/// default-constructed, none. It refers to what it was made of. A call needs the context of one of its operands, and all that
/// have one must have the same.
///
/// A number is the real number that it is, rounded once to the format of the call: that of the first operand beside it that
/// has a floating-point one. It is of rank 0. Elementwise operations take them; others are told that they are of rank 0.
class operand {
 public:
  operand() = default;
  operand(const tensor& t) : view_(t.view()), context_(t.handle()) {}
  operand(context& ctx, const const_tensor_view& view) : view_(view), context_(&ctx) {}
  template <class View>
  requires(!std::same_as<std::remove_cvref_t<View>, operand> && !std::same_as<std::remove_cvref_t<View>, tensor> &&
           std::convertible_to<View, const_tensor_view>) operand(View&& view)
      : view_(std::forward<View>(view)) {}
  template <number_type T>
  operand(T number) : number_(widened(number)) {
    if constexpr (sizeof(T) > sizeof(std::int32_t) && std::integral<T>) {
      if (static_cast<long double>(*number_) != static_cast<long double>(number)) not_a_double(std::to_string(number));
    }
  }

  const const_tensor_view& view() const noexcept { return view_; }
  const std::optional<double>& number() const noexcept { return number_; }
  /// The context of the tensor, or the one given; null where there is none.
  context* where() const noexcept { return context_; }

 private:
  [[noreturn]] static void not_a_double(const std::string& number);
  // In the library: where subnormal numbers are flushed, a caller's own conversion would lose them.
  static double widened(float number) noexcept;
  template <class T>
  static double widened(T number) noexcept {
    return static_cast<double>(number);
  }

  const_tensor_view view_;
  context* context_ = nullptr;
  std::optional<double> number_;
};

/// Of the types of a call's operands: whether one is a number.
template <class... Operands>
concept with_number = (number_type<Operands> || ...) && (std::constructible_from<operand, const Operands&> && ...);

/// Whether a type is one of others.
template <class T, class... Others>
concept one_of = (std::same_as<T, Others> || ...);

namespace detail {

/// The operands of one call, as views: numbers in the format of the call. They live as long as this, and with calls that
/// are prepared as long as those.
class operand_views {
 public:
  operand_views(context& ctx, std::string_view op, std::initializer_list<operand> in);
  operand_views(const operand_views&) = delete;
  operand_views& operator=(const operand_views&) = delete;
  const const_tensor_view& operator[](std::size_t i) const noexcept { return views_[i]; }

 private:
  static constexpr std::size_t most = 9;
  std::array<const_tensor_view, most> views_;
  std::array<std::uint64_t, most> numbers_{};
};

/// The context of a call's operands. Throws no_context, context_mismatch.
context& context_of(std::string_view op, std::span<const operand> in);
inline context& context_of(std::string_view op, std::initializer_list<operand> in) {
  return context_of(op, std::span<const operand>(in.begin(), in.size()));
}
std::vector<const_tensor_view> views_of(std::span<const operand> in);

/// While it exists, the first call of its context makes its first outputs, which are absent, as tensors of their own.
class results {
 public:
  results(context& ctx, std::string_view op, std::size_t count);
  ~results();
  results(const results&) = delete;
  results& operator=(const results&) = delete;
  tensor take(std::size_t i = 0) { return std::move(*made_[i]); }

  void make(context& ctx, std::size_t i, const tensor_spec& spec) { made_[i].emplace(ctx, spec.type, spec.shape); }
  tensor_view view(std::size_t i) noexcept { return made_[i]->view(); }
  std::size_t count() const noexcept { return count_; }

 private:
  context& context_;
  std::size_t count_;
  std::array<std::optional<tensor>, 3> made_;
};

/// A result whose type and shape the caller says. Throws prepared_result.
tensor tensor_for(context& ctx, std::string_view op, const tensor_spec& spec);

/// A call that makes its results: call(ctx, x, y) writes to absent outputs.
struct returning_call {
  context& ctx;
  operand_views in;
  results out;
  returning_call(std::string_view op, std::initializer_list<operand> operands, std::size_t outputs = 1)
      : ctx(context_of(op, operands)), in(ctx, op, operands), out(ctx, op, outputs) {}
};

/// An optional operand of the call where its options, too, can hold it.
void set_operand(std::string_view op, std::string_view name, const_tensor_view& in_options,
                 const const_tensor_view& operand);

/// The context of functions of numbers, one for each thread: the CPU, one thread.
context& context_of_numbers();

template <class T>
const_tensor_view number_view(const T& x) {
  return {&x, sizes{}};
}
template <class Result, class Call>
Result number_result(Call&& call) {
  Result out{};
  call(context_of_numbers(), tensor_view(&out, sizes{}));
  return out;
}

}  // namespace detail
}  // namespace repdl
