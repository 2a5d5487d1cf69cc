// Small calls that reach every kernel of a backend, compared byte for byte with the CPU's: what a backend whose code a
// driver compiles, or that no test ever saw run, does before it trusts a kernel.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "librepdl/context.hpp"
#include "librepdl/dispatch/backend.hpp"

namespace repdl::dispatch {

/// Every operation with every pair of formats that it takes.
std::vector<subject> kernel_test_subjects();

/// What the tests of a device need, so that the first one need not wait for it: the CPU's own self-test, a context on the
/// stream, and memory for it. The context lasts as long as the process: it may hold memory of a device that is gone
/// before the process ends.
context& kernel_test_context(const device& where, void* stream);

/// The calls of an operation come in groups. A group vouches for the kernels that it reaches and that no group before
/// it reaches: those give them work to do.
std::size_t kernel_test_groups(const subject& what);
/// Plans a group's calls in `tested`, without operands and launches.
void plan_kernel_test_group(context& tested, const subject& what, std::size_t group);

/// Runs a group's calls in `tested`, and on the CPU. Operands have four axes and more, odd sizes, strides of both signs
/// with gaps between them; everything around the outputs must stay as it was. Returns what differs; empty: nothing.
std::string run_kernel_test_group(context& tested, const subject& what, std::size_t group);

}  // namespace repdl::dispatch
