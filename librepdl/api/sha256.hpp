// SHA-256 (FIPS 180-4). Integers only; the result does not depend on the machine. Uses the x86 SHA extensions where the
// CPU has them: 2^32 results are hashed in seconds rather than minutes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "librepdl/export.hpp"

namespace repdl REPDL_EXPORT {

/// An incremental hash. Not for secrets: no protection against side channels is attempted.
class sha256 {
 public:
  using digest = std::array<std::uint8_t, 32>;

  sha256() noexcept;
  sha256& update(const void* data, std::size_t bytes) noexcept;
  sha256& update(std::string_view text) noexcept { return update(text.data(), text.size()); }
  sha256& update(const digest& d) noexcept { return update(d.data(), d.size()); }
  /// The hash of everything so far; the object may not be used afterwards.
  digest finish() noexcept;

  static digest of(const void* data, std::size_t bytes) noexcept { return sha256().update(data, bytes).finish(); }
  /// 64 lower-case hexadecimal digits.
  static std::string hex(const digest& d);

  /// For tests: forces the portable code (true) or lets the CPU decide (false).
  static void force_portable(bool portable) noexcept;

 private:
  std::array<std::uint32_t, 8> state_;
  std::array<std::uint8_t, 64> block_;
  std::uint64_t bytes_ = 0;
};

}  // namespace repdl
