// A file without a place on a disk, under a name that others can open.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "tests/bytes/targets.hpp"

namespace fuzz {

class memory_file {
 public:
  explicit memory_file(bytes contents) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    const auto n = static_cast<ssize_t>(contents.size());
    require(fd_ >= 0 && ::write(fd_, contents.data(), contents.size()) == n, "no memory for a file");
  }
  ~memory_file() { ::close(fd_); }
  memory_file(const memory_file&) = delete;
  memory_file& operator=(const memory_file&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

}  // namespace fuzz
