// Loops over arrays that elementwise operations are measured against, by the operation's name and an instruction set.
#pragma once

#include <cstdint>
#include <string_view>

namespace bench {

// out[i] = f(in[0][i], ...) for i < n, a multiple of 16. `open`: n elements that loops with a rounding test write.
using elementwise_loop = void(const void* const* in, void* out, std::int64_t n, bool* open);

/// Over f32, or f64 arrays. Null where SLEEF has no such function, or was not there when this was built.
elementwise_loop* sleef(std::string_view operation, std::string_view isa, bool wide);

/// The library's own loop, compiled without vectorisation; null for the baseline, and for operations without f32.
elementwise_loop* unvectorised(std::string_view operation, std::string_view isa);

/// What the above are made of: of one instruction set, its loop for each operation.
struct named_loop {
  std::string_view operation;
  elementwise_loop* loop;
  elementwise_loop* wide = nullptr;  ///< over f64
};

}  // namespace bench
