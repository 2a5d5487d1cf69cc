// What reads bytes from outside, on the inputs that were kept: tests/bytes/NAME.txt, one in hexadecimal digits a line. Those
// are a small set that reaches all the code that libFuzzer reached (tests/bytes/libfuzzer.py), written by hand or found.
#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/bytes/targets.hpp"

namespace {

std::vector<std::uint8_t> from_hexadecimal(const std::string& line) {
  std::vector<std::uint8_t> all;
  for (std::size_t i = 0; i + 1 < line.size(); i += 2) {
    all.push_back(static_cast<std::uint8_t>(std::stoi(line.substr(i, 2), nullptr, 16)));
  }
  return all;
}

void replay(const std::string& name, void (*target)(fuzz::bytes)) {
  std::ifstream file(std::string(REPDL_SOURCE_DIR "/tests/bytes/") + name + ".txt");
  int count = 0;
  for (std::string line; std::getline(file, line); ++count) {
    CAPTURE(line);
    // On the heap, so that AddressSanitizer sees where it ends.
    CHECK_NOTHROW(target(from_hexadecimal(line)));
  }
  CHECK(count > 10);
}

}  // namespace

TEST_SUITE_BEGIN("portable");

TEST_CASE("bytes from outside: .npy files") { replay("npy", fuzz::npy); }
TEST_CASE("bytes from outside: .safetensors files") { replay("safetensors", fuzz::safetensors); }
TEST_CASE("bytes from outside: calls of the C ABI") { replay("c_abi", fuzz::c_abi); }

TEST_SUITE_END();
