// A directory for temporary files that goes away.
#pragma once

#include <stdlib.h>  // mkdtemp

#include <filesystem>
#include <string>

#include "examples/safetensors.hpp"

namespace repdl::tools {

class scratch_directory {
 public:
  /// Throws examples::file_error.
  scratch_directory() {
    std::string name = std::filesystem::temp_directory_path() / "repdl-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw examples::file_error(name, "a place to write", "none");
    path_ = name;
  }
  ~scratch_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  scratch_directory(const scratch_directory&) = delete;
  scratch_directory& operator=(const scratch_directory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace repdl::tools
