// All row operations.
#pragma once

#include "librepdl/ops/rows/norm_inference.hpp"
#include "librepdl/ops/rows/softmax.hpp"
#include "librepdl/ops/rows/variance.hpp"
