// Natural numbers of a fixed capacity, for sign tests in exact arithmetic: no allocation, host and device.
//
// Method: schoolbook arithmetic on 64-bit words, low word first. D. E. Knuth, TAOCP vol. 2, 4.3.1, algorithms A, S, M.
// Every function states the size of its result; who declares a number derives the capacity it needs. Operands are taken
// by reference and may lie in shared memory. Checked against GMP by tests/step_test.cpp.
#pragma once

#include "librepdl/num/fixed_point.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// The value is sum word[i] 2^(64 i), i < size; word[size - 1] != 0. Zero has size 0.
template <int Capacity>
struct natural {
  static constexpr int capacity = Capacity;
  int size;
  std::uint64_t word[Capacity];
};

template <int A>
REPDL_HD void trim(natural<A>& a) {
  while (a.size > 0 && a.word[a.size - 1] == 0) --a.size;
}

template <int A>
REPDL_HD void assign(natural<A>& a, std::uint64_t value) {
  a.word[0] = value;
  a.size = value != 0 ? 1 : 0;
}
template <int A, int B>
REPDL_HD void assign(natural<A>& a, const natural<B>& b) {
  a.size = b.size;
  for (int i = 0; i < b.size; ++i) a.word[i] = b.word[i];
}

// The number of bits: 2^(bits - 1) <= a < 2^bits; 0 for zero.
template <int A>
REPDL_HD int bit_length(const natural<A>& a) {
  return a.size == 0 ? 0 : 64 * a.size - leading_zeros(a.word[a.size - 1]);
}

// a *= m: one word more at most.
template <int A>
REPDL_HD void multiply(natural<A>& a, std::uint64_t m) {
  std::uint64_t carry = 0;
  for (int i = 0; i < a.size; ++i) {
    std::uint64_t high = 0;
    const std::uint64_t low = multiply_wide(a.word[i], m, &high) + carry;
    carry = high + static_cast<std::uint64_t>(low < carry);
    a.word[i] = low;
  }
  if (carry != 0) a.word[a.size++] = carry;
  trim(a);
}

// product = a * b: a.size + b.size words at most. product is neither of the two.
template <int A, int B, int C>
REPDL_HD void multiply(const natural<A>& a, const natural<B>& b, natural<C>& product) {
  product.size = a.size + b.size;
  for (int i = 0; i < product.size; ++i) product.word[i] = 0;
  for (int i = 0; i < a.size; ++i) {
    const std::uint64_t m = a.word[i];
    std::uint64_t carry = 0;
    for (int j = 0; j < b.size; ++j) {
      // m b + word + carry <= (2^64 - 1)^2 + 2 (2^64 - 1) = 2^128 - 1: two words.
      std::uint64_t high = 0;
      std::uint64_t low = multiply_wide(m, b.word[j], &high);
      low += carry;
      high += static_cast<std::uint64_t>(low < carry);
      const std::uint64_t sum = low + product.word[i + j];
      carry = high + static_cast<std::uint64_t>(sum < low);
      product.word[i + j] = sum;
    }
    product.word[i + b.size] = carry;
  }
  trim(product);
}

// a *= 2^bits, bits >= 0: bit_length + bits bits.
template <int A>
REPDL_HD void shift_left(natural<A>& a, int bits) {
  const int by = bits & 63;
  const int words = bits >> 6;
  if (a.size == 0 || bits == 0) return;
  const int grown = (bit_length(a) + bits + 63) / 64;
  for (int i = grown - 1; i >= 0; --i) {
    const int at = i - words;
    const std::uint64_t here = at >= 0 && at < a.size ? a.word[at] : 0;
    const std::uint64_t under = at >= 1 && at - 1 < a.size ? a.word[at - 1] : 0;
    a.word[i] = by == 0 ? here : here << by | under >> (64 - by);
  }
  a.size = grown;
}

// The words of a plus those of b, each XOR flip, plus carry, in as many words as the longer has; returns the carry out.
template <int A, int B>
REPDL_HD std::uint64_t add_words(natural<A>& a, const natural<B>& b, std::uint64_t flip, std::uint64_t carry) {
  const int size = a.size > b.size ? a.size : b.size;
  for (int i = 0; i < size; ++i) {
    a.word[i] = add_carry(i < a.size ? a.word[i] : 0, (i < b.size ? b.word[i] : 0) ^ flip, &carry);
  }
  a.size = size;
  return carry;
}

// a += b: one word more than the larger at most.
template <int A, int B>
REPDL_HD void add(natural<A>& a, const natural<B>& b) {
  const std::uint64_t carry = add_words(a, b, 0, 0);
  if (carry != 0) a.word[a.size++] = carry;
}

// a = |a - b|; returns the sign of a - b.
template <int A, int B>
REPDL_HD int subtract(natural<A>& a, const natural<B>& b) {
  std::uint64_t carry = add_words(a, b, ~std::uint64_t{0}, 1);  // a - b = a + ~b + 1
  const bool negative = carry == 0;
  if (negative) {
    carry = 1;
    for (int i = 0; i < a.size; ++i) a.word[i] = add_carry(~a.word[i], 0, &carry);
  }
  trim(a);
  return a.size == 0 ? 0 : negative ? -1 : 1;
}

// Bits from .. from + 63 of a; from may be negative.
template <int A>
REPDL_HD std::uint64_t window(const natural<A>& a, int from) {
  const int at = from >> 6;  // floor
  const int by = from & 63;
  const std::uint64_t low = at >= 0 && at < a.size ? a.word[at] : 0;
  const std::uint64_t high = at + 1 >= 0 && at + 1 < a.size ? a.word[at + 1] : 0;
  return by == 0 ? low : low >> by | high << (64 - by);
}

// The sign of a 2^a_exponent - b 2^b_exponent. Word by word from the leading bit, which both must have in one place.
template <int A, int B>
REPDL_HD int compare(const natural<A>& a, int a_exponent, const natural<B>& b, int b_exponent) {
  const int a_bits = bit_length(a);
  const int b_bits = bit_length(b);
  if (a_bits == 0 || b_bits == 0) return static_cast<int>(a_bits != 0) - static_cast<int>(b_bits != 0);
  if (a_bits + a_exponent != b_bits + b_exponent) return a_bits + a_exponent > b_bits + b_exponent ? 1 : -1;
  const int longest = a_bits > b_bits ? a_bits : b_bits;
  for (int done = 64; done < longest + 64; done += 64) {
    const std::uint64_t x = window(a, a_bits - done);
    const std::uint64_t y = window(b, b_bits - done);
    if (x != y) return x > y ? 1 : -1;
  }
  return 0;
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
