// `repdl demo`: what the library promises, shown on this machine.
#pragma once

#include <span>
#include <string_view>

namespace repdl::tools {

/// Takes the arguments after "demo" and returns the exit status.
int run_demo(std::span<const std::string_view> args);

}  // namespace repdl::tools
