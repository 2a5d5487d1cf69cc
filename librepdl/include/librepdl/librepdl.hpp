// librepdl: reproducible numerics. Everything public, in one include.
#pragma once

#if !defined(__cpp_concepts)
#error "librepdl's C++ interface needs C++20 (-std=c++20)"
#endif

#include "librepdl/context.hpp"
#include "librepdl/dynamic.hpp"
#include "librepdl/error.hpp"
#include "librepdl/functions.hpp"
#include "librepdl/operand.hpp"
#include "librepdl/ops.hpp"
#include "librepdl/options.hpp"
#include "librepdl/owning_tensor.hpp"
#include "librepdl/tensor.hpp"
