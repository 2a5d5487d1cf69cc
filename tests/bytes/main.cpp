// A libFuzzer program of one target, REPDL_FUZZ_TARGET.
#include <cstddef>

#include "tests/bytes/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::REPDL_FUZZ_TARGET({data, size});
  return 0;
}
