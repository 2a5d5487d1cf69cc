#include "tools/cli/output_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "librepdl/error.hpp"

namespace repdl::tools {
namespace {

// Temporary files to unlink when a signal ends the program. Only what a handler may touch.
constexpr std::size_t slots = 16;
constexpr std::size_t slot_bytes = 4096;
char doomed[slots][slot_bytes];
std::atomic<bool> in_use[slots];

extern "C" void unlink_and_die(int signal_number) {
  for (std::size_t i = 0; i < slots; ++i) {
    if (in_use[i]) ::unlink(doomed[i]);
  }
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

void guard(const std::string& path) {
  static const bool installed = [] {
    for (const int s : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction old {};
      if (::sigaction(s, nullptr, &old) == 0 && old.sa_handler == SIG_DFL) std::signal(s, unlink_and_die);
    }
    return true;
  }();
  static_cast<void>(installed);
  for (std::size_t i = 0; i < slots; ++i) {
    if (in_use[i] || path.size() >= slot_bytes) continue;
    std::memcpy(doomed[i], path.c_str(), path.size() + 1);
    in_use[i] = true;
    return;
  }
}

void unguard(const std::string& path) noexcept {
  for (std::size_t i = 0; i < slots; ++i) {
    if (in_use[i] && path == doomed[i]) in_use[i] = false;
  }
}

[[noreturn]] void cannot_write(const std::string& path, int error) {
  fail(error_site::file_write, "output", path, "a place to write", std::strerror(error));
}

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::optional<std::string> real_path(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return {};
  std::string s(real);
  std::free(real);
  return s;
}

// One name for each place, also for what is not there yet: links that lead nowhere are followed, and directories resolved.
std::string resolved(std::string path) {
  constexpr int most_links = 40;  // as many as the kernel follows
  for (int links = 0; links < most_links; ++links) {
    if (const auto real = real_path(path)) return *real;
    struct stat there {};
    if (path.empty() || ::stat(path.c_str(), &there) == 0) return path;  // a pipe: /dev/stdout
    char to[4096];
    const ssize_t n = ::readlink(path.c_str(), to, sizeof to);
    if (n < 0) break;
    const std::string_view link(to, static_cast<std::size_t>(n));
    path = link.starts_with('/') ? std::string(link) : (directory_of(path) + '/').append(link);
  }
  const auto directory = real_path(directory_of(path));
  return directory ? *directory + '/' + path.substr(path.rfind('/') + 1) : path;
}

// Where the bytes of a path go.
struct output_place {
  std::string target;
  std::optional<std::pair<dev_t, ino_t>> file;  // of what is there

  explicit output_place(std::string_view path) : target(path) {
    struct stat there {};
    const bool to_stdout = path == standard_output;
    if (!to_stdout) target = resolved(std::string(path));
    if ((to_stdout ? ::fstat(STDOUT_FILENO, &there) : ::stat(target.c_str(), &there)) == 0) {
      file = {there.st_dev, there.st_ino};
    }
  }
  bool operator==(const output_place& other) const { return target == other.target || (file && file == other.file); }
};

// 0, or errno.
int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), std::min<std::size_t>(bytes.size(), 1u << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

mode_t new_file_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

// Best effort: the rename itself is on the disk after this.
void sync_directory(const std::string& path) noexcept {
  const int fd = ::open(directory_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

}  // namespace

void expect_distinct(std::span<const std::string_view> paths) {
  std::vector<output_place> places;
  for (const std::string_view path : paths) {
    const output_place here(path);
    if (std::find(places.begin(), places.end(), here) != places.end()) {
      fail(error_site::usage, "output", path, "each output in its own file", "it twice");
    }
    places.push_back(here);
  }
}

output_files::~output_files() { undo(); }

void output_files::undo() noexcept {
  for (entry& e : entries_) {
    if (e.placed && !e.temporary.empty()) {
      if (e.backup.empty())
        ::unlink(e.target.c_str());
      else
        ::rename(e.backup.c_str(), e.target.c_str());
    } else if (!e.temporary.empty()) {
      ::unlink(e.temporary.c_str());
      if (!e.backup.empty()) ::unlink(e.backup.c_str());
    }
    unguard(e.temporary);
    unguard(e.backup);
  }
  entries_.clear();
}

void output_files::add(const std::string& path, std::span<const std::string_view> pieces) {
  entry e;
  e.path = path;
  const bool to_stdout = path == standard_output;
  e.target = to_stdout ? path : resolved(path);
  struct stat there {};
  const bool exists = !to_stdout && ::stat(e.target.c_str(), &there) == 0;
  if (exists && S_ISDIR(there.st_mode)) cannot_write(path, EISDIR);
  if (path.empty() || path.back() == '/') cannot_write(path, path.empty() ? ENOENT : EISDIR);
  std::vector<std::string_view> paths;
  for (const entry& other : entries_) paths.push_back(other.path);
  paths.push_back(path);
  expect_distinct(paths);
  if (to_stdout || (exists && !S_ISREG(there.st_mode))) {
    for (const std::string_view p : pieces) e.direct += p;
    entries_.push_back(std::move(e));
    return;
  }
  if (exists && ::access(e.target.c_str(), W_OK) != 0) cannot_write(path, errno);
  std::string name = directory_of(e.target) + "/.repdl-XXXXXX";
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) cannot_write(path, errno);
  guard(name);
  e.temporary = name;
  entries_.push_back(std::move(e));
  int error = ::fchmod(fd, exists ? there.st_mode & 07777 : new_file_mode()) == 0 ? 0 : errno;
  for (const std::string_view p : pieces) {
    if (error == 0) error = write_all(fd, p);
  }
  if (error == 0 && ::fsync(fd) != 0 && errno != EINVAL) error = errno;
  if (::close(fd) != 0 && error == 0) error = errno;
  if (error != 0) {
    undo();
    cannot_write(path, error);
  }
}

void output_files::commit() {
  int error = 0;
  std::string culprit;
  // With one file the rename is all; with several, what was there is kept until every rename has worked.
  for (entry& e : entries_) {
    if (e.temporary.empty() || entries_.size() == 1 || ::access(e.target.c_str(), F_OK) != 0) continue;
    const std::string backup = e.temporary + "-old";
    if (::link(e.target.c_str(), backup.c_str()) != 0)
      error = errno;
    else
      guard(backup);
    if (error != 0) {
      culprit = e.path;
      break;
    }
    e.backup = backup;
  }
  for (entry& e : entries_) {
    if (error != 0) break;
    if (e.target == standard_output) {
      error = write_all(STDOUT_FILENO, e.direct);
    } else if (e.temporary.empty()) {
      const int fd = ::open(e.target.c_str(), O_WRONLY | O_CLOEXEC);
      error = fd < 0 ? errno : write_all(fd, e.direct);
      if (fd >= 0 && ::close(fd) != 0 && error == 0) error = errno;
    } else if (::rename(e.temporary.c_str(), e.target.c_str()) != 0) {
      error = errno;
    } else {
      e.placed = true;
    }
    if (error != 0) culprit = e.path;
  }
  if (error != 0) {
    undo();
    cannot_write(culprit, error);
  }
  for (const entry& e : entries_) {
    if (e.temporary.empty()) continue;
    sync_directory(e.target);
    if (!e.backup.empty()) ::unlink(e.backup.c_str());
    unguard(e.temporary);
    unguard(e.backup);
  }
  entries_.clear();
}

}  // namespace repdl::tools
