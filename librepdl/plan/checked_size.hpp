// Sizes of memory that never wrap.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace repdl::plan {

/// A number of bytes (or of elements) below 2^63 - 1. A sum or a product that is not stays too large, whatever is added
/// to it afterwards. What a backend asks for is one, so a workspace that no machine has is an error of the call
/// and never a wrapped number. A product is made from its factors, product(a, b, c), not from a * b * c in plain
/// integers.
class checked_size {
 public:
  constexpr checked_size() = default;
  /// A negative number is too large.
  template <std::integral T>
  constexpr checked_size(T n) noexcept
      : value_(std::in_range<std::int64_t>(n) && !std::cmp_less(n, 0) ? static_cast<std::int64_t>(n) : limit) {}

  template <class... Factors>
  static constexpr checked_size product(Factors... factors) noexcept {
    checked_size p = 1;
    (p.multiply(factors), ...);
    return p;
  }
  constexpr checked_size& operator+=(checked_size o) noexcept {
    if (__builtin_add_overflow(value_, o.value_, &value_)) value_ = limit;
    return *this;
  }
  friend constexpr checked_size operator+(checked_size a, checked_size b) noexcept { return a += b; }
  /// The next multiple of n.
  constexpr checked_size rounded_up(std::int64_t n) const noexcept {
    return value_ % n == 0 ? *this : *this + (n - value_ % n);
  }
  friend constexpr auto operator<=>(checked_size, checked_size) = default;

  constexpr bool fits() const noexcept { return value_ != limit; }
  /// Of a size that fits.
  constexpr std::size_t value() const noexcept { return static_cast<std::size_t>(value_); }

 private:
  static constexpr std::int64_t limit = INT64_MAX;
  // 0 times too large is 0: nothing is asked for.
  constexpr void multiply(checked_size o) noexcept {
    if (__builtin_mul_overflow(value_, o.value_, &value_)) value_ = limit;
  }
  std::int64_t value_ = 0;
};

}  // namespace repdl::plan
