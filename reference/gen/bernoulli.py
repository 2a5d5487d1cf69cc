"""Writes librepdl/ops/elementwise/bernoulli_table.hpp: the Bernoulli numbers B_2, B_4, ..., B_34, whose numerators are numbers of binary64.
Their recurrence: the sum over j <= n of (n + 1 over j) B_j is 0 for n >= 1. Run: python3 bernoulli.py > FILE
"""
import fractions
import math

b = [fractions.Fraction(1)]
for n in range(1, 35):
    b.append(-sum(math.comb(n + 1, j) * b[j] for j in range(n)) / (n + 1))
even = b[2::2]
assert all(int(float(x.numerator)) == x.numerator for x in even)


def column(values):
    lines = [", ".join(str(v) for v in values[i:i + 6]) for i in range(0, len(values), 6)]
    return "{" + ",\n     ".join(lines) + "}"


print(f"""// Table of gamma.hpp. Made by reference/gen/bernoulli.py; do not edit.
#pragma once

#include "librepdl/num/platform.hpp"

namespace repdl::num {{
inline namespace REPDL_ISA {{

// B_2k = numerator[k - 1] / denominator[k - 1]
inline constexpr int bernoulli_count = {len(even)};
struct bernoulli_columns {{
  double numerator[bernoulli_count], denominator[bernoulli_count];
}};

// clang-format off
inline constexpr bernoulli_columns bernoulli_on_host = {{
    {column([x.numerator for x in even])},
    {column([x.denominator for x in even])}}};
// clang-format on
REPDL_DEVICE_TABLE(bernoulli_columns, bernoulli)

}}  // namespace REPDL_ISA
}}  // namespace repdl::num""")
