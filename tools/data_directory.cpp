#include "tools/data_directory.hpp"

#include <filesystem>

namespace repdl::tools {

std::string data_directory() {
  namespace fs = std::filesystem;
  std::error_code none;
  const fs::path program = fs::read_symlink("/proc/self/exe", none);
  const fs::path installed = (program.parent_path() / REPDL_INSTALLED_DATA).lexically_normal();
  return !program.empty() && fs::is_directory(installed, none) ? installed.string() : REPDL_SOURCE_DIR;
}

}  // namespace repdl::tools
