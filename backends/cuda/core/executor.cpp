#include <cuda_runtime_api.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/cuda/core/cuda_backend.hpp"
#include "backends/cuda/core/drivers.hpp"
#include "backends/cuda/core/kernel_tests.hpp"
#include "librepdl/error.hpp"

namespace repdl::cuda {

void check(cudaError_t status, std::string_view op, std::string_view what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // an error that is not sticky must not be reported again by somebody else's call
  const std::string got = std::string(cudaGetErrorName(status)) + " (" + cudaGetErrorString(status) + ")";
  fail(status == cudaErrorMemoryAllocation ? error_site::out_of_memory : error_site::device_failure, op, what,
       "cudaSuccess", got);
}

unsigned grid_of(std::string_view op, std::int64_t blocks) {
  constexpr std::int64_t most = INT32_MAX;
  if (blocks > most) {
    fail(error_site::device_failure, op, "kernel launch", "at most " + std::to_string(most) + " blocks",
         std::to_string(blocks));
  }
  return static_cast<unsigned>(blocks);
}

namespace {

constexpr int oldest_capability = 80;

// CUDA does not survive fork(): in a child of a process that has used it, no call of it is made.
std::atomic<bool> in_use{false};
std::atomic<bool> lost{false};
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, [] {
  if (in_use.load(std::memory_order_relaxed)) lost.store(true, std::memory_order_relaxed);
});

constexpr std::string_view why_lost = "a child, after fork(), of a process that used CUDA";

// Before every use.
void check_not_lost() {
  if (lost.load(std::memory_order_relaxed)) {
    fail(error_site::cuda_after_fork, "context", "where", "CUDA in the process that first used it",
         std::string(why_lost));
  }
}

// The first call of CUDA in a process.
cudaError_t count_devices(int* count) {
  const cudaError_t status = cudaGetDeviceCount(count);
  if (status == cudaSuccess) in_use.store(true, std::memory_order_relaxed);
  return status;
}

// The caller's current device is the caller's: set ours for the time of one call, then put theirs back.
class device_guard {
 public:
  explicit device_guard(int index) {
    check_not_lost();
    check(cudaGetDevice(&saved_), "context", "cudaGetDevice");
    if (saved_ != index) check(cudaSetDevice(index), "context", "cudaSetDevice");
    restore_ = saved_ != index;
  }
  ~device_guard() {
    if (restore_) cudaSetDevice(saved_);
  }
  device_guard(const device_guard&) = delete;
  device_guard& operator=(const device_guard&) = delete;

 private:
  int saved_ = 0;
  bool restore_ = false;
};

std::string why_no_gpu(cudaError_t status, int count) {
  if (status == cudaSuccess && count > 0) return {};
  cudaGetLastError();
  if (status == cudaSuccess || status == cudaErrorNoDevice) return "the CUDA driver finds no GPU";
  if (status == cudaErrorInsufficientDriver) {
    int driver = 0;
    int runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    cudaGetLastError();
    if (driver == 0) return "no CUDA driver is installed";
    return "the CUDA driver supports CUDA " + std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10) +
           ", this build needs " + std::to_string(runtime / 1000) + "." + std::to_string(runtime % 1000 / 10);
  }
  const std::string text = std::string(cudaGetErrorName(status)) + " (" + cudaGetErrorString(status) + ")";
  return status == cudaErrorInitializationError ? text + "; CUDA does not survive fork()" : text;
}

struct named_device {
  std::string name;
  properties p;
};
named_device device_at(int index) {
  cudaDeviceProp p{};
  check(cudaGetDeviceProperties(&p, index), "context", "cudaGetDeviceProperties");
  return {p.name, {index, p.multiProcessorCount, p.major * 10 + p.minor, {}}};
}
std::string capability_of(const properties& p) {
  return std::to_string(p.capability / 10) + "." + std::to_string(p.capability % 10);
}

std::vector<device_info> list_devices(std::string* why_none) {
  if (lost.load(std::memory_order_relaxed)) {
    if (why_none != nullptr) *why_none = why_lost;
    return {};
  }
  int count = 0;
  const cudaError_t status = count_devices(&count);
  std::vector<device_info> list;
  std::string why = why_no_gpu(status, count);
  if (why.empty()) {
    for (int i = 0; i < count; ++i) {
      const auto [name, p] = device_at(i);
      if (p.capability >= oldest_capability) {
        list.push_back({{device_kind::cuda, i}, name});
      } else {
        why += name + " has compute capability " + capability_of(p) + ", older than 8.0; ";
      }
    }
  }
  if (list.empty() && why_none != nullptr) *why_none = why;
  return list;
}

// Workspaces come from a stream-ordered pool of our own: releasing to the driver is at the pool's discretion, and the
// application's default pool keeps its settings.
class pool_allocator final : public allocator {
 public:
  void* allocate(std::size_t bytes, const device& where, void* stream) override {
    const auto s = static_cast<cudaStream_t>(stream);
    const device_guard guard(where.index);
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(s, &capture), "context", "cudaStreamIsCapturing");
    if (capture != cudaStreamCaptureStatusNone) {
      fail(error_site::allocation_in_capture, "context", "workspace", "use_workspace() before the capture",
           "a need of " + std::to_string(bytes) + " bytes while the stream is being captured");
    }
    void* data = nullptr;
    const cudaError_t status = cudaMallocFromPoolAsync(&data, bytes, pool(where.index), s);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      fail(error_site::out_of_memory, "context", "workspace", std::to_string(bytes) + " bytes on " + name_of(where),
           "cudaErrorMemoryAllocation");
    }
    check(status, "context", "cudaMallocFromPoolAsync");
    return data;
  }

  void deallocate(void* data, std::size_t, const device&, void* stream) noexcept override {
    if (lost.load(std::memory_order_relaxed)) return;
    if (cudaFreeAsync(data, static_cast<cudaStream_t>(stream)) != cudaSuccess) cudaGetLastError();
  }

 private:
  cudaMemPool_t pool(int index) {
    const std::lock_guard lock(mutex_);
    cudaMemPool_t& p = pools_[index];
    if (p == nullptr) {
      cudaMemPoolProps props{};
      props.allocType = cudaMemAllocationTypePinned;
      props.location.type = cudaMemLocationTypeDevice;
      props.location.id = index;
      check(cudaMemPoolCreate(&p, &props), "context", "cudaMemPoolCreate");
      std::uint64_t keep = std::uint64_t{1} << 30;  // bytes that stay reserved when the stream is synchronised
      check(cudaMemPoolSetAttribute(p, cudaMemPoolAttrReleaseThreshold, &keep), "context", "cudaMemPoolSetAttribute");
    }
    return p;
  }

  std::mutex mutex_;
  std::map<int, cudaMemPool_t> pools_;
};

allocator& default_allocator() {
  // Never destroyed: contexts in static storage may still hold memory, and CUDA may be gone by then.
  static pool_allocator* const instance = new pool_allocator;
  return *instance;
}

class cuda_executor final : public dispatch::executor {
 public:
  explicit cuda_executor(const context_options& o)
      : stream_(static_cast<cudaStream_t>(o.stream)),
        device_(device_at(o.where.index).p),
        last_tier_bits_(o.last_tier_bits) {
    const device_guard guard(device_.index);
    test_device(device_.index);
    // The context's stream may be being captured: its counters begin on another one.
    const relaxed_capture relaxed;
    void* memory = nullptr;
    check(cudaMalloc(&memory, sizeof(counter) * counter_count), "context", "cudaMalloc");
    counters_.reset(static_cast<counter*>(memory));
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "context", "cudaStreamCreateWithFlags");
    cudaError_t status = cudaMemsetAsync(memory, 0, sizeof(counter) * counter_count, stream);
    if (status == cudaSuccess) status = cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    check(status, "context", "cudaMemsetAsync");
  }

  const std::string& isa() const noexcept override { return isa_; }

#define REPDL_PREPARE(family)                                                                         \
  void prepare(const plan::family##_plan& p, const dispatch::launch& l, dispatch::task& t) override { \
    cuda::prepare(p, job_of(l), t);                                                                   \
  }
  REPDL_FAMILIES(REPDL_PREPARE)
#undef REPDL_PREPARE

  void synchronize() override {
    const device_guard guard(device_.index);
    read_counters();
  }

  statistics read_statistics() override {
    const device_guard guard(device_.index);
    const auto host = read_counters();
    statistics s;
    for (std::size_t i = 0; i < 4; ++i) s.elements[i] = static_cast<std::int64_t>(host[i]);
    return s;
  }

  dispatch::kernel_report test_kernels() override {
    const device_guard guard(device_.index);
    return test_all_kernels(device_.index);
  }

  void reset_statistics() override {
    const device_guard guard(device_.index);
    check(cudaMemsetAsync(counters_.get(), 0, sizeof(counter) * counter_count, stream_), "context", "cudaMemsetAsync");
  }

  void copy(void* to, const void* from, std::size_t bytes) override {
    const device_guard guard(device_.index);
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "copy", "cudaMemcpyAsync");
    read_counters();
  }

 private:
  // Waits. The counters, if every element was decided and every index in range; else throws and forgets those that were not.
  std::array<counter, counter_count> read_counters() {
    std::array<counter, counter_count> host{};
    check(cudaMemcpyAsync(host.data(), counters_.get(), sizeof(host), cudaMemcpyDeviceToHost, stream_), "context",
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream_), "context", "cudaStreamSynchronize");
    if (host[undecided_counter] != 0) {
      check(cudaMemsetAsync(counters_.get() + undecided_counter, 0, sizeof(counter), stream_), "context",
            "cudaMemsetAsync");
    }
    if (host[bad_index_counter] != 0) {
      check(cudaMemsetAsync(counters_.get() + bad_index_counter, 0, sizeof(counter), stream_), "context",
            "cudaMemsetAsync");
      fail(error_site::index_range, "context", "synchronize", "indices in the range of their axis",
           std::to_string(host[bad_index_counter]) + " that are not, in the calls before");
    }
    if (host[bad_weights_counter] != 0) {
      check(cudaMemsetAsync(counters_.get() + bad_weights_counter, 0, sizeof(counter), stream_), "context",
            "cudaMemsetAsync");
      fail(error_site::weights, "context", "synchronize",
           "rows of weights that are finite, >= 0 and enough of them not 0",
           std::to_string(host[bad_weights_counter]) + " that are not, in the calls before");
    }
    if (host[undecided_counter] != 0) {
      dispatch::undecided(static_cast<std::int64_t>(host[undecided_counter]), last_tier_bits_);
    }
    return host;
  }

  struct device_free {
    void operator()(counter* p) const noexcept {
      if (lost.load(std::memory_order_relaxed)) return;
      cudaStreamCaptureMode relaxed = cudaStreamCaptureModeRelaxed;  // also while a stream is being captured
      cudaThreadExchangeStreamCaptureMode(&relaxed);
      if (cudaFree(p) != cudaSuccess) cudaGetLastError();
      cudaThreadExchangeStreamCaptureMode(&relaxed);
    }
  };

  job job_of(const dispatch::launch& l) const noexcept {
    job j{l.what, stream_, device_, counters_.get(), l.first_tier, l.last_tier_bits, l.self_test != nullptr};
    j.device.choice.engine = l.products;
    if (j.self_test) {
      j.device.choice = *l.self_test;
      if (l.self_test->multiprocessors > 0) j.device.multiprocessors = l.self_test->multiprocessors;
    }
    return j;
  }

  std::string isa_ = "cuda";
  cudaStream_t stream_;
  properties device_;
  int last_tier_bits_;
  std::unique_ptr<counter, device_free> counters_;
};

std::unique_ptr<dispatch::executor> open_device(const context_options& o) {
  check_not_lost();
  int count = 0;
  const cudaError_t status = count_devices(&count);
  if (const std::string why = why_no_gpu(status, count); !why.empty()) {
    fail(error_site::no_device, "context", "where", "an NVIDIA GPU and its driver", why);
  }
  if (o.where.index < 0 || o.where.index >= count) {
    fail(error_site::device_index, "context", "where", "an index in [0, " + std::to_string(count) + ")",
         std::to_string(o.where.index));
  }
  if (!o.isa.empty() && o.isa != "cuda") {
    fail(error_site::isa_name, "context", "isa", "\"\" or \"cuda\" for a GPU", "\"" + o.isa + "\"");
  }
  if (o.where.index >= most_devices) {
    fail(error_site::device_index, "context", "where", "an index below " + std::to_string(most_devices),
         std::to_string(o.where.index));
  }
  const auto [name, p] = device_at(o.where.index);
  if (p.capability < oldest_capability) {
    fail(error_site::no_device, "context", "where", "compute capability 8.0 or newer",
         name + " with " + capability_of(p));
  }
  return std::make_unique<cuda_executor>(o);
}

}  // namespace

void planned::run(void* workspace) {
  check_trusted(j.device.index);
  const device_guard guard(j.device.index);
  space.place(workspace);
  enqueue();
}

const dispatch::backend& cuda_backend() {
  static const dispatch::backend b{device_kind::cuda, list_devices, open_device, default_allocator};
  return b;
}

}  // namespace repdl::cuda
