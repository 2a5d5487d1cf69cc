// What reads bytes from outside, as functions of any bytes: tests/interface/bytes_test.cpp replays those that were kept (NAME.txt), and
// with REPDL_FUZZ clang's libFuzzer looks for more (main.cpp). They throw std::logic_error where a property does not hold;
// what else may go wrong, the sanitizers see.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

namespace fuzz {

using bytes = std::span<const std::uint8_t>;

/// A .npy file (tools/cli/npy.hpp): it is read or refused; what was read is written and read again.
void npy(bytes input);
/// A .safetensors file (examples/safetensors.hpp): likewise.
void safetensors(bytes input);
/// A call of the C ABI (librepdl.h): descriptors and attributes with arbitrary fields. See c_abi.cpp.
void c_abi(bytes input);

inline void require(bool holds, const std::string& what) {
  if (!holds) throw std::logic_error(what);
}

}  // namespace fuzz
