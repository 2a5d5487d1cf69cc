// All row operations.
#pragma once

#include "librepdl/ops/rows/cross_entropy.hpp"
#include "librepdl/ops/rows/norm_inference.hpp"
#include "librepdl/ops/rows/variance.hpp"
