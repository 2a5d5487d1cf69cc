// Files that appear whole, or not at all: each is written under a temporary name beside its place, and all are renamed
// when all are complete. A failure, or SIGINT, SIGTERM or SIGHUP before that, leaves everything as it was.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace repdl::tools {

/// The path that stands for standard output; a file of this name is "./-".
inline constexpr std::string_view standard_output = "-";

/// Fails with usage where two of the paths name one file: spelled otherwise, through links, or as standard output is redirected.
void expect_distinct(std::span<const std::string_view> paths);

class output_files {
 public:
  output_files() = default;
  ~output_files();
  output_files(const output_files&) = delete;
  output_files& operator=(const output_files&) = delete;

  /// Writes the pieces one after the other to a temporary file and flushes it to the disk. A path that exists and is
  /// not a regular file (a pipe, /dev/null) is kept for commit(), and so is standard_output. Fails with file_write.
  void add(const std::string& path, std::span<const std::string_view> pieces);
  /// Puts all files in their places. A failure puts back what was there.
  void commit();

 private:
  struct entry {
    std::string path;       // as the caller wrote it
    std::string target;     // with symbolic links followed, also where there is no file yet
    std::string temporary;  // empty for what is not a regular file, and for standard output
    std::string backup;     // what was there, while commit runs
    std::string direct;     // the bytes for what is not a regular file
    bool placed = false;
  };
  void undo() noexcept;
  std::vector<entry> entries_;
};

}  // namespace repdl::tools
