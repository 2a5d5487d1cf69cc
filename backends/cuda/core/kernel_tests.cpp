#include "backends/cuda/core/kernel_tests.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <set>

#include "librepdl/dispatch/kernel_tests.hpp"
#include "librepdl/error.hpp"

namespace repdl::cuda {
namespace {

const kernel_record* newest = nullptr;

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// What the self-test that this thread runs has reached.
struct reached_kernels {
  std::vector<kernel_record*> records;
  double loading = 0;
};
thread_local reached_kernels* reached = nullptr;
class reaching {
 public:
  explicit reaching(reached_kernels* r) { reached = r; }
  ~reaching() { reached = nullptr; }
  reaching(const reaching&) = delete;
  reaching& operator=(const reaching&) = delete;
};

class device_tests {
 public:
  static device_tests& of(int index) {
    static std::mutex mutex;
    // Never destroyed: they hold streams and memory, and CUDA may be gone before them.
    static std::array<device_tests*, most_devices> all{};
    const std::lock_guard lock(mutex);
    device_tests*& d = all[static_cast<std::size_t>(index)];
    if (d == nullptr) d = new device_tests(index);
    return *d;
  }

  [[noreturn]] void fail_refused() const {
    fail(error_site::self_test, "self-test", name_of(where()), "the bits of the CPU", why_);
  }

  void test_arithmetic() {
    if (arithmetic_tested_.load(std::memory_order_acquire)) return check_trusted(index_);
    const std::lock_guard lock(mutex_);
    if (arithmetic_tested_.load(std::memory_order_relaxed)) return check_trusted(index_);
    const relaxed_capture relaxed;
    check(cudaFree(nullptr), "self-test", "cudaFree");  // the driver's own beginnings are not timed
    const auto start = std::chrono::steady_clock::now();
    if (stream_ == nullptr) {
      check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "self-test", "cudaStreamCreateWithFlags");
    }
    if (std::string text = guarded([&] { return cuda::test_arithmetic(stream_); }); !text.empty()) refuse(text);
    arithmetic_tested_.store(true, std::memory_order_release);
    check_trusted(index_);
    prepare();
    preparation_ = milliseconds_since(start);
  }

  // Runs the group that vouches for this kernel: of the called operation; where its calls do not reach the kernel, of another.
  void test(kernel_record& record, const dispatch::subject& what) {
    const std::lock_guard lock(mutex_);
    check_trusted(index_);
    if (record.tested(index_)) return;
    const relaxed_capture relaxed;
    prepare();
    if (test_as(record, what)) return;
    for (const dispatch::subject& other : dispatch::kernel_test_subjects()) {
      if (test_as(record, other)) return;
    }
    refuse("no self-test reaches " + record.name());
    fail_refused();
  }

  dispatch::kernel_report test_all() {
    const std::lock_guard lock(mutex_);
    check_trusted(index_);
    const relaxed_capture relaxed;
    prepare();
    dispatch::kernel_report report;
    report.preparation = preparation_;
    for (const dispatch::subject& what : dispatch::kernel_test_subjects()) {
      dispatch::kernel_report::line line{.what = what};
      const auto start = std::chrono::steady_clock::now();
      const std::size_t groups = groups_of(what).size();
      line.milliseconds = milliseconds_since(start);
      for (std::size_t g = 0; g < groups; ++g) run_group(what, g, line);
      report.lines.push_back(line);
    }
    for (const kernel_record* r = kernel_records(); r != nullptr; r = r->next()) {
      ++report.kernels;
      if (!r->tested(index_)) report.unreached.push_back(r->name());
    }
    return report;
  }

 private:
  explicit device_tests(int index) : index_(index) {}

  device where() const { return {device_kind::cuda, index_}; }

  // What failed, for lack of memory, is tried again by the next test.
  void prepare() {
    if (context_ == nullptr) context_ = &dispatch::kernel_test_context(where(), stream_);
  }

  void refuse(std::string text) {
    why_ = std::move(text);
    refused[static_cast<std::size_t>(index_)].store(true, std::memory_order_release);
  }

  // What f says is wrong, or the device's error; out of memory is nobody's fault and thrown on.
  template <class F>
  std::string guarded(F&& f) {
    try {
      return f();
    } catch (const error& e) {
      if (e.code() == status::out_of_memory) throw;
      std::size_t free = 0;
      std::size_t total = 0;
      const bool lost = cudaMemGetInfo(&free, &total) != cudaSuccess;
      cudaGetLastError();
      return std::string(e.what()) + (lost ? "; the process's CUDA context is lost" : "; the CUDA context is intact");
    }
  }

  // Runs the first group of an operation that vouches for the kernel, if there is one.
  bool test_as(kernel_record& record, const dispatch::subject& what) {
    const std::vector<kernel_set>& groups = groups_of(what);
    const auto group =
        std::find_if(groups.begin(), groups.end(), [&](const kernel_set& s) { return s.contains(&record); });
    if (group == groups.end()) return false;
    dispatch::kernel_report::line line{.what = what};
    run_group(what, static_cast<std::size_t>(group - groups.begin()), line);
    return true;
  }

  // For which kernels each group of an operation's calls vouches.
  using kernel_set = std::set<kernel_record*>;
  const std::vector<kernel_set>& groups_of(const dispatch::subject& what) {
    if (const auto it = groups_.find(what); it != groups_.end()) return it->second;
    std::vector<kernel_set> groups;
    kernel_set before;
    for (std::size_t g = 0; g < dispatch::kernel_test_groups(what); ++g) {
      reached_kernels here;
      const reaching scope(&here);
      dispatch::plan_kernel_test_group(*context_, what, g);
      kernel_set& own = groups.emplace_back();
      for (kernel_record* r : here.records) {
        if (before.insert(r).second) own.insert(r);
      }
    }
    return groups_[what] = std::move(groups);
  }

  void run_group(const dispatch::subject& what, std::size_t group, dispatch::kernel_report::line& line) {
    reached_kernels here;
    const auto start = std::chrono::steady_clock::now();
    std::string text = guarded([&] {
      const reaching scope(&here);
      return dispatch::run_kernel_test_group(*context_, what, group);
    });
    if (!text.empty()) {
      refuse(std::move(text));
      fail_refused();
    }
    const double took = milliseconds_since(start) - here.loading;
    for (kernel_record* r : groups_of(what)[group]) {
      if (r->tested(index_)) continue;
      r->set_tested(index_);
      ++line.kernels;
    }
    ++line.groups;
    line.milliseconds += took;
    line.slowest_group = std::max(line.slowest_group, took);
    line.loading += here.loading;
  }

  const int index_;
  std::mutex mutex_;
  std::atomic<bool> arithmetic_tested_ = false;
  std::string why_;
  double preparation_ = 0;
  cudaStream_t stream_ = nullptr;  // of the tests alone; as long as the process
  context* context_ = nullptr;     // on it, likewise
  std::map<dispatch::subject, std::vector<kernel_set>> groups_;
};

}  // namespace

kernel_record::kernel_record(const char* signature, const void* kernel)
    : signature_(signature), kernel_(kernel), next_(newest) {
  newest = this;
}

std::string kernel_record::name() const {
  // "const char* ...signature_of() [with auto Kernel = ...::map_strided<...>]"
  std::string s = signature_;
  if (const std::size_t at = s.find("Kernel = "); at != std::string::npos) s = s.substr(at + 9, s.size() - at - 10);
  for (const std::string_view scope : {"repdl::cuda::", "repdl::", "{anonymous}::", "(anonymous namespace)::"}) {
    for (std::size_t at = s.find(scope); at != std::string::npos; at = s.find(scope)) s.erase(at, scope.size());
  }
  for (std::size_t at = s.find("_GLOBAL__"); at != std::string::npos; at = s.find("_GLOBAL__")) {
    s.erase(at, s.find("::", at) + 2 - at);
  }
  return s;
}

const kernel_record* kernel_records() { return newest; }

void fail_refused(int device) { device_tests::of(device).fail_refused(); }
void test_device(int device) { device_tests::of(device).test_arithmetic(); }
dispatch::kernel_report test_all_kernels(int device) { return device_tests::of(device).test_all(); }

bool test_before_launch(kernel_record& record, const job& j) {
  if (!j.self_test) {
    device_tests::of(j.device.index).test(record, j.what);
    return true;
  }
  reached->records.push_back(&record);
  if (j.device.choice.dry) return false;
  if (!record.tested(j.device.index)) {
    const auto start = std::chrono::steady_clock::now();
    cudaFuncAttributes unused;  // asking for them loads the kernel
    check(cudaFuncGetAttributes(&unused, record.kernel()), j.what.name(), "cudaFuncGetAttributes");
    reached->loading += milliseconds_since(start);
  }
  return true;
}

}  // namespace repdl::cuda
