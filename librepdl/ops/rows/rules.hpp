// All row operations.
#pragma once

#include "librepdl/ops/rows/norm_backward.hpp"
#include "librepdl/ops/rows/softmax.hpp"
