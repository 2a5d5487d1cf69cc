// The program `repdl`.
#include <algorithm>
#include <string_view>
#include <vector>

#include "tools/cli/commands.hpp"

int main(int argc, char** argv) {
  const std::vector<std::string_view> args(argv + std::min(argc, 1), argv + argc);
  return repdl::tools::command_line(args);
}
