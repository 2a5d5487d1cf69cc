#include "reference/known_answers.hpp"

#include <bit>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "reference/elementwise.hpp"

namespace repdl::reference {
namespace {

// Zeros, the ends of the subnormal and the normal range, 1, infinities, a signalling and a quiet NaN with payload.
constexpr std::uint32_t specials[] = {0x00000000, 0x80000000, 0x00000001, 0x807fffff, 0x00800000,
                                      0xbf800000, 0x3f800000, 0x7f7fffff, 0xff7fffff, 0x7f800000,
                                      0xff800000, 0x7f800001, 0xffc12345};

// Inputs that are hard to round: the logarithms lie within 2^-29 ulp of a midpoint (0x4c5d65a5 and 0x65d890d3 within
// 2^-33), the exponentials next to the overflow and underflow borders.
struct hard_input {
  std::string_view op;
  std::uint32_t x;
};
constexpr hard_input hard[] = {
    {"log", 0x4c5d65a5},     {"log", 0x65d890d3},     {"log", 0x3c413d3a},     {"log", 0x41178feb},
    {"log", 0x6f31a8ec},     {"exp", 0x42b17217},     {"exp", 0x42b17218},     {"exp", 0xc2cff1b4},
    {"exp", 0xc2cff1b5},     {"exp", 0xc2aeac50},     {"tanh", 0x39800000},    {"tanh", 0x41102cb3},
    {"sigmoid", 0x3a000000}, {"sigmoid", 0xb9ffffff}, {"sigmoid", 0xc2cff1b4},
};

constexpr int spread_count = 40;

void append(std::string& text, const ops::elementwise_row& row, const std::uint32_t (&in)[3]) {
  char line[120];
  std::snprintf(line, sizeof line, "REPDL_KNOWN(%s, 0x%08x, 0x%08x, 0x%08x, 0x%08x)\n", std::string(row.name).c_str(),
                in[0], in[1], in[2], evaluate(row, in));
  text += line;
}

}  // namespace

std::string known_answers() {
  std::string text =
      "// Known answers of the self-test: operation, up to three inputs, result (binary32 patterns).\n"
      "// Written from the reference by `repdl digests --write`; do not edit.\n"
      "// clang-format off\n";
  for (const ops::elementwise_row& row : ops::elementwise_rows) {
    // Unary: each special value. More operands: each pair of them, the third operand moving along.
    const int n = static_cast<int>(std::size(specials));
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < (row.arity > 1 ? n : 1); ++j) {
        append(text, row,
               {specials[i], row.arity > 1 ? specials[j] : 0, row.arity > 2 ? specials[(i + 2 * j) % n] : 0});
      }
    }
    for (const hard_input& h : hard) {
      if (h.op == row.name) append(text, row, {h.x, 0, 0});
    }
    // A Weyl sequence (multiples of 2^32 / golden ratio) over the patterns, with exponents folded to 2^-16 .. 2^15.
    std::uint32_t w = 0;
    for (int i = 0; i < spread_count; ++i) {
      std::uint32_t in[3] = {};
      for (int k = 0; k < row.arity; ++k) {
        w += 0x9e3779b9;
        in[k] = (w & 0x807fffff) | ((111 + (w >> 23 & 31)) << 23);
      }
      append(text, row, {in[0], in[1], in[2]});
    }
  }
  return text;
}

}  // namespace repdl::reference
