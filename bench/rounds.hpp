// Rows are measured in rounds of ours and a peer by turns; what is reported are medians over the rounds.
#pragma once

#include <cstddef>

namespace bench {

constexpr int rounds = 15;

// The median of what is measured lies between the 4th smallest and the 4th largest of 15 rounds in 96.5 % of all cases:
// outside of it are 3 or fewer rounds on one side, 2 (1 + 15 + 105 + 455) of 2^15.
constexpr std::size_t low_round = 3, middle_round = 7, high_round = 11;

}  // namespace bench
