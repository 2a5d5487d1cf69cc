#include "reference/digests/known_answers.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <istream>
#include <stdexcept>
#include <vector>

#include "reference/elementwise/elementwise.hpp"

namespace repdl::reference {
namespace {

using answer_inputs = std::array<std::uint32_t, ops::most_operands>;
std::size_t inputs_of(const ops::elementwise_row& row) { return static_cast<std::size_t>(row.arity); }

// Zeros, the ends of the subnormal and the normal range, 1, infinities, a signalling and a quiet NaN with payload.
constexpr std::uint32_t specials[] = {0x00000000, 0x80000000, 0x00000001, 0x807fffff, 0x00800000,
                                      0xbf800000, 0x3f800000, 0x7f7fffff, 0xff7fffff, 0x7f800000,
                                      0xff800000, 0x7f800001, 0xffc12345};

constexpr int spread_count = 40, hard_count = 5, searched_count = 1 << 14;

// A boolean operand is a byte: 0, or an odd one.
std::string line(const ops::elementwise_row& row, answer_inputs in) {
  for (int k = 0; k < row.arity; ++k) {
    std::uint32_t& x = in[static_cast<std::size_t>(k)];
    if (ops::operand_at(row.operands, k).is_boolean) x = x % 2 == 0 ? 0 : x & 0xff;
  }
  std::string text;
  const auto append = [&](std::uint32_t x) {
    char digits[16];
    std::snprintf(digits, sizeof digits, "%08x", x);
    text += digits;
  };
  for (std::size_t k = 0; k < inputs_of(row); ++k) {
    append(in[k]);
    text += ' ';
  }
  text += "-> ";
  append(evaluate(row, in.data()));
  return text + '\n';
}

// A Weyl sequence (multiples of 2^32 / golden ratio) over the patterns.
class weyl {
 public:
  std::uint32_t next() { return state_ += 0x9e3779b9; }
  /// With exponents folded to 2^-16 .. 2^15.
  std::uint32_t folded() {
    const std::uint32_t w = next();
    return (w & 0x807fffff) | ((111 + (w >> 23 & 31)) << 23);
  }

 private:
  std::uint32_t state_ = 0;
};

// Those whose exact results are nearest to a midpoint without being numbers, of one operand in the row's domain, or of
// several of moderate size.
std::vector<answer_inputs> hardest(const ops::elementwise_row& row) {
  struct found {
    double distance;
    answer_inputs in;
  };
  std::vector<found> all;
  weyl w;
  for (int i = 0; i < searched_count; ++i) {
    answer_inputs in{};
    for (int k = 0; k < row.arity; ++k) in[static_cast<std::size_t>(k)] = row.arity == 1 ? w.next() : w.folded();
    const double x = std::bit_cast<float>(in[0]);
    if (row.arity == 1 && !(x > row.domain.lo && x < row.domain.hi)) continue;
    const double distance = locate(row, in.data()).boundary_distance;
    if (distance < 0.5) all.push_back({distance, in});
  }
  std::stable_sort(all.begin(), all.end(), [](const found& a, const found& b) { return a.distance < b.distance; });
  std::vector<answer_inputs> v;
  for (std::size_t i = 0; i < std::min<std::size_t>(hard_count, all.size()); ++i) v.push_back(all[i].in);
  return v;
}

}  // namespace

std::string proposed_known_answers(const ops::elementwise_row& row) {
  std::string text;
  const std::size_t n = std::size(specials);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < (row.arity > 1 ? n : 1); ++j) {
      answer_inputs in{specials[i]};
      if (row.arity > 1) in[1] = specials[j];
      for (int k = 2; k < row.arity; ++k) in[static_cast<std::size_t>(k)] = specials[(i * (2 * k - 3) + 2 * j) % n];
      text += line(row, in);
    }
  }
  for (const answer_inputs& in : hardest(row)) text += line(row, in);
  weyl w;
  for (int i = 0; i < spread_count; ++i) {
    answer_inputs in{};
    for (int k = 0; k < row.arity; ++k) in[static_cast<std::size_t>(k)] = w.folded();
    text += line(row, in);
  }
  return text;
}

std::string known_answers(const ops::elementwise_row& row, std::istream& in, const std::string& name) {
  std::string text;
  int number = 0;
  for (std::string given; std::getline(in, given);) {
    ++number;
    answer_inputs x{};
    bool read = true;
    const char* at = given.c_str();
    for (std::size_t k = 0; k < inputs_of(row) && read; ++k, at += 9) {  // "00000000 "
      int end = 0;
      read = std::sscanf(at, "%8x %n", &x[k], &end) == 1 && end == 9;
    }
    int end = 0;
    if (read) std::sscanf(at, "-> %*8[0-9a-f]%n", &end);
    const std::string written = line(row, x);
    // All but the result is as it is written.
    if (end != 11 || given.size() + 1 != written.size() || !given.starts_with(written.substr(0, written.size() - 9))) {
      std::string message = name + ":" + std::to_string(number) + ": expected " + std::to_string(row.arity);
      message.append(row.arity == 1 ? " input" : " inputs")
          .append(R"(, "->" and the result in eight hexadecimal digits each, got ')");
      throw std::runtime_error(message.append(given).append("'"));
    }
    text += written;
  }
  return text;
}

}  // namespace repdl::reference
