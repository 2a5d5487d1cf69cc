// Elementwise calls that run together.
#pragma once

#include <span>

#include "librepdl/plan/plans.hpp"

namespace repdl::plan {

/// How many of these plans, from the first one on, are of one operation and the same formats, with options or all without, and do not depend
/// on each other: none writes what another one reads or writes, or what lies in the gaps between.
std::size_t independent(std::span<const map_plan> calls);

}  // namespace repdl::plan
