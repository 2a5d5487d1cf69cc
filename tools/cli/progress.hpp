// Progress of long work on stderr: one line that rewrites itself on a terminal, a line now and then elsewhere.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>

namespace repdl::tools {

/// Seconds since it was made.
class stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// May be told from any thread.
class progress {
 public:
  /// `interval`: seconds between lines where stderr is not a terminal.
  progress(std::string label, std::int64_t total, double interval = 20)
      : label_(std::move(label)), total_(total), interval_(terminal_ ? 0.25 : interval) {}
  ~progress() { clear(); }
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  void add(std::int64_t n, const std::string& what = {}) {
    const std::lock_guard lock(mutex_);
    done_ += n;
    const double now = clock_.seconds();
    if (now - shown_ < interval_) return;
    shown_ = now;
    const double rate = static_cast<double>(done_) / now;
    const double left = rate > 0 ? static_cast<double>(total_ - done_) / rate : 0;
    std::fprintf(stderr, "%s%s: %.1f%% of %s, %s/s, %.0f s left%s%s%s", terminal_ ? "\r" : "", label_.c_str(),
                 100.0 * static_cast<double>(done_) / static_cast<double>(total_ > 0 ? total_ : 1),
                 short_number(static_cast<double>(total_)).c_str(), short_number(rate).c_str(), left,
                 what.empty() ? "" : " ", what.c_str(), terminal_ ? "\x1b[K" : "\n");
    std::fflush(stderr);
    drawn_ = terminal_;
  }
  /// Removes the line from a terminal.
  void clear() {
    aside([] {});
  }
  /// Calls print(), which writes to the same terminal, with the line removed.
  template <class Print>
  void aside(Print&& print) {
    const std::lock_guard lock(mutex_);
    if (drawn_) std::fputs("\r\x1b[K", stderr);
    drawn_ = false;
    print();
  }
  double seconds() const { return clock_.seconds(); }

  /// "4.29e9", "65536", "0.53".
  static std::string short_number(double v) {
    char text[32];
    std::snprintf(text, sizeof text, v < 10 ? "%.2g" : v < 1e6 ? "%.0f" : "%.3g", v);
    return text;
  }

 private:
  std::string label_;
  std::int64_t total_;
  std::int64_t done_ = 0;
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  double interval_;
  stopwatch clock_;
  double shown_ = 0;
  bool drawn_ = false;
  std::mutex mutex_;
};

}  // namespace repdl::tools
