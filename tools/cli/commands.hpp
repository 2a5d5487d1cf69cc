// The commands of the repdl program. Each takes the arguments after its name and returns the exit status; errors are
// thrown, and command_line prints them.
#pragma once

#include <span>
#include <string_view>

namespace repdl::tools {

using command_arguments = std::span<const std::string_view>;

/// What the program does with its arguments, without its name; the exit status.
int command_line(command_arguments args);

int run_info(command_arguments args);
int run_eval(command_arguments args);
int run_verify(command_arguments args);
int run_sweep(command_arguments args);
int run_fuzz(command_arguments args);
int run_digests(command_arguments args);
int run_docs(command_arguments args);
int run_cases(command_arguments args);

/// Exit statuses: 0 is success.
inline constexpr int exit_mismatch = 1;  ///< verify, sweep, fuzz, docs --check: something differs
inline constexpr int exit_error = 2;     ///< wrong usage, files, machine: one line on stderr

}  // namespace repdl::tools
