// What loaded_test.cpp and loaded_backend.cpp know of each other.
#pragma once

#include <cstddef>

namespace repdl::tests {

// copy() from nowhere throws: an error of the site with the number of bytes; from here on something else.
inline constexpr std::size_t other_faults = 1000, no_memory = 1000, standard_exception = 1001, unknown_exception = 1002;

inline constexpr const char* fault_op = "an operation: expected";
inline constexpr const char* fault_argument = "an argument, got";
inline constexpr const char* fault_expected = "something, got or not";
inline constexpr const char* fault_got = "another: expected, got none";

// Too long to be stored inside of a std::string.
inline constexpr const char* device_name = "a device of the library that the tests load";
inline constexpr const char* why_none = "no other device of the library that the tests load";

}  // namespace repdl::tests
