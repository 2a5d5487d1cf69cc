// A 768-bit two's complement integer: enough for exact sums of binary32 products in units of 2^-298. Plain loops.
#pragma once

#include <bit>
#include <cstdint>

namespace repdl::reference {

struct wide_integer {
  static constexpr int words = 12;
  std::uint64_t word[words] = {};  // least significant first

  bool negative() const { return (word[words - 1] >> 63) != 0; }
  bool is_zero() const {
    for (const std::uint64_t w : word)
      if (w != 0) return false;
    return true;
  }
  /// += (-1)^subtract * m * 2^shift.
  void add(bool subtract, std::uint64_t m, int shift) {
    const int s = shift % 64;
    const std::uint64_t part[2] = {m << s, s == 0 ? 0 : m >> (64 - s)};
    bool carry = false;
    for (int i = shift / 64, p = 0; i < words && (p < 2 || carry); ++i, ++p)
      carry = step(word[i], p < 2 ? part[p] : 0, subtract, carry);
  }
  /// += (-1)^subtract * o.
  void add(bool subtract, const wide_integer& o) {
    bool carry = false;
    for (int i = 0; i < words; ++i) carry = step(word[i], o.word[i], subtract, carry);
  }
  wide_integer magnitude() const {
    if (!negative()) return *this;
    wide_integer r;
    r.add(true, *this);
    return r;
  }
  /// *= n, as long as the result fits.
  wide_integer times(std::uint32_t n) const {
    wide_integer r;
    const wide_integer m = magnitude();
    for (int i = 0; i < words; ++i) {
      r.add(negative(), (m.word[i] & 0xffffffff) * n, 64 * i);
      r.add(negative(), (m.word[i] >> 32) * n, 64 * i + 32);
    }
    return r;
  }
  /// The bit length of a non-negative number.
  int length() const {
    for (int i = words; i-- > 0;)
      if (word[i] != 0) return 64 * i + 64 - std::countl_zero(word[i]);
    return 0;
  }
  /// floor(this / 2^shift) mod 2^64 of a non-negative number.
  std::uint64_t bits_from(int shift) const {
    const int i = shift / 64, s = shift % 64;
    if (i >= words) return 0;
    const std::uint64_t high = s == 0 || i + 1 == words ? 0 : word[i + 1] << (64 - s);
    return word[i] >> s | high;
  }

 private:
  static bool step(std::uint64_t& w, std::uint64_t d, bool subtract, bool carry) {
    const std::uint64_t c = carry ? 1 : 0;
    const std::uint64_t r = subtract ? w - d : w + d;
    const bool first = subtract ? r > w : r < w;
    w = subtract ? r - c : r + c;
    return first || (subtract ? w > r : w < r);
  }
};

}  // namespace repdl::reference
