#include "tools/cli/data_directory.hpp"

#include <filesystem>
#include <utility>

namespace repdl::tools {
namespace {
std::string given_directory;
}

void set_data_directory(std::string path) { given_directory = std::move(path); }

std::string data_directory() {
  if (!given_directory.empty()) return given_directory;
  namespace fs = std::filesystem;
  std::error_code none;
  const fs::path program = fs::read_symlink("/proc/self/exe", none);
  const fs::path installed = (program.parent_path() / REPDL_INSTALLED_DATA).lexically_normal();
  return !program.empty() && fs::is_directory(installed, none) ? installed.string() : REPDL_SOURCE_DIR;
}

}  // namespace repdl::tools
