// The known-answer test of a backend: run once per backend, instruction set and device, when the first context is made.
#pragma once

#include "librepdl/context.hpp"

namespace repdl::dispatch {

/// Throws error_site::self_test, naming the operation, its inputs and both results, when a result is not the known one:
/// a build with the wrong flags, a broken driver, hardware that does not do IEEE 754 arithmetic.
void self_test(context::impl& c);

}  // namespace repdl::dispatch
