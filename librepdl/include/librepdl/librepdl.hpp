// librepdl: reproducible numerics. Everything public, in one include.
#pragma once

#include "librepdl/context.hpp"
#include "librepdl/dynamic.hpp"
#include "librepdl/error.hpp"
#include "librepdl/ops.hpp"
#include "librepdl/options.hpp"
#include "librepdl/tensor.hpp"
