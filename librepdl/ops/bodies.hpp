// Every elementwise operation's numerics.
#pragma once

#include "librepdl/ops/backward.hpp"
#include "librepdl/ops/basic.hpp"
#include "librepdl/ops/convert.hpp"
#include "librepdl/ops/exp.hpp"
#include "librepdl/ops/log.hpp"
#include "librepdl/ops/pow.hpp"
#include "librepdl/ops/sigmoid.hpp"
#include "librepdl/ops/tanh.hpp"
