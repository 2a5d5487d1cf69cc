// Table of gamma.hpp. Made by reference/gen/bernoulli.py; do not edit.
#pragma once

#include "librepdl/num/platform.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// B_2k = numerator[k - 1] / denominator[k - 1]
inline constexpr int bernoulli_count = 17;
struct bernoulli_columns {
  double numerator[bernoulli_count], denominator[bernoulli_count];
};

// clang-format off
inline constexpr bernoulli_columns bernoulli_on_host = {
    {1, -1, 1, -1, 5, -691,
     7, -3617, 43867, -174611, 854513, -236364091,
     8553103, -23749461029, 8615841276005, -7709321041217, 2577687858367},
    {6, 30, 42, 30, 66, 2730,
     6, 510, 798, 330, 138, 2730,
     6, 870, 14322, 510, 6}};
// clang-format on
REPDL_DEVICE_TABLE(bernoulli_columns, bernoulli)

}  // namespace REPDL_ISA
}  // namespace repdl::num
