// Where and how operations run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "librepdl/export.hpp"
#include "librepdl/tensor.hpp"

namespace repdl REPDL_EXPORT {

/// Memory for workspaces. The default one uses aligned operator new on the CPU and stream-ordered allocation on CUDA.
struct allocator {
  virtual ~allocator() = default;
  /// At least 256-byte aligned; throws or returns null when there is none. `stream` is the context's.
  virtual void* allocate(std::size_t bytes, const device& where, void* stream) = 0;
  virtual void deallocate(void* data, std::size_t bytes, const device& where, void* stream) noexcept = 0;
};

/// The ways in which an output element can have been decided, from fast to slow.
enum class tier : std::int32_t {
  proved = 0,         ///< no test at run time: an IEEE operation, a selection, or a body proved by enumeration
  binary64 = 1,       ///< a binary64 approximation whose error bound excludes every other result
  double_double = 2,  ///< likewise with about 106 bits
  exact = 3,          ///< integers of the full width; multi-limb numbers where the function is transcendental
};

/// Output elements decided per tier since the context was made or its statistics were reset.
struct statistics {
  std::int64_t elements[4] = {};
  std::int64_t& operator[](tier t) { return elements[static_cast<int>(t)]; }
  std::int64_t operator[](tier t) const { return elements[static_cast<int>(t)]; }
};

/// What can compute a matrix product (docs/performance.md). No bit depends on it.
enum class product_engine : std::int32_t {
  any = 0,       ///< the one that is faster for the call
  binary64 = 1,  ///< sums in binary64, with a bound
  residues =
      2,  ///< sums of integers modulo several numbers: f16, bf16 and f32 on GPUs of compute capability 9.0; elsewhere any
};

/// The most threads of a context.
inline constexpr int max_threads = 1024;

struct context_options {
  repdl::device where{};
  void* stream = nullptr;  ///< a cudaStream_t; null is the default stream
  int threads = 0;         ///< CPU: at most max_threads; 0 means omp_get_max_threads(), or max_threads if that is less
  std::string isa{};       ///< CPU: empty means $REPDL_ISA, else the best that the CPU has
  allocator* memory = nullptr;  ///< null: the default allocator. Not owned.
  /// For tests: the rounding test of every earlier tier is made to fail, so that this tier decides wherever it can.
  /// No bit of any result depends on it.
  tier first_tier = tier::proved;
  /// The most bits that the last tier of transcendental operations (the softmax family, logcumsumexp, normal, exponential, multinomial) and
  /// of prod and cumprod computes with before it gives up with error_site::undecided; 0: it gives up at once. No input is known that needs
  /// more than 512, but for products of many chosen factors. On CUDA the softmax family, logcumsumexp, products, and losses with logarithms or
  /// exponentials stop at 512, normal and exponential at 256 at the latest.
  int last_tier_bits = 2048;
  /// For tests: what computes matrix products on a GPU, whatever their size. No bit of any result depends on it.
  product_engine products = product_engine::any;
};

/// Calls that were validated and planned once (context::prepare). They refer to their context, which must outlive them,
/// and to the memory of their operands.
class prepared_calls {
 public:
  prepared_calls(prepared_calls&&) noexcept;
  prepared_calls& operator=(prepared_calls&&) noexcept;
  ~prepared_calls();

  /// Runs the calls in their order, as the context would. Throws workspace_too_small, out_of_memory, undecided and the
  /// device's errors.
  void run();
  /// The bytes of workspace that run() needs.
  std::size_t workspace_bytes() const noexcept;

  struct impl;

 private:
  friend class context;
  explicit prepared_calls(std::unique_ptr<impl> calls) noexcept;
  std::unique_ptr<impl> impl_;
};

using prepared REPDL_DEPRECATED("prepared_calls") = prepared_calls;

/// An execution context: one caller at a time, movable. Operations of one context run in order.
/// Self-tests: the first context of a process on an instruction set computes known answers; on a GPU each kernel is
/// tested before its first use, against the CPU and on a stream of its own, also while a stream is being captured. A
/// device that fails is refused with error_site::self_test for the rest of the process. A context may also be made and
/// destroyed while a stream, its own too, is being captured.
///
/// After fork(), called while no other thread is inside librepdl, the child may go on with contexts of the CPU and make
/// new ones. If the process had more than one thread, OpenMP's workers are missing in the child, and its operations run
/// on the calling thread, whatever threads() says; the bits are the same. CUDA does not survive fork(): if the process
/// had made a context on a GPU or listed its devices, every call in the child that needs the GPU fails with
/// cuda_after_fork; contexts may be destroyed. A program that calls exec() has no such limits.
class context {
 public:
  explicit context(context_options options = {});
  ~context();
  context(context&&) noexcept;
  context& operator=(context&&) noexcept;

  const repdl::device& where() const noexcept;
  /// CPU: "baseline", "avx2" or "avx512", on aarch64 "neon". CUDA: "cuda".
  const std::string& isa() const noexcept;
  int threads() const noexcept;
  void* stream() const noexcept;

  /// Use the caller's memory (256-byte aligned, on the context's device) instead of allocating: a call that needs more
  /// fails with workspace_too_small, and the message names the bytes. (nullptr, 0) goes back to the allocator.
  void use_workspace(void* data, std::size_t bytes);
  /// The bytes of workspace that the calls made by f() need: f runs with this context, but every call validates and
  /// plans only, and launches nothing.
  template <class F>
  std::size_t workspace_for(F&& calls) {
    return prepare(std::forward<F>(calls)).workspace_bytes();
  }
  /// The calls made by f(), to be run later, as often as one likes: f runs with this context, every call is validated
  /// and planned, and nothing is launched. Tensors are named by their addresses. Random operations leave their
  /// generator as it is, and every run draws the same numbers.
  template <class F>
  prepared_calls prepare(F&& calls) {
    recording r(*this);
    calls();
    return r.finish();
  }

  /// Memory on the context's device, 256-byte aligned, from its allocator; throws out_of_memory. Stream-ordered on
  /// CUDA.
  void* allocate(std::size_t bytes);
  void deallocate(void* data, std::size_t bytes) noexcept;
  /// Copies between host and device memory, in either direction or within one; ordered after everything launched, and
  /// waits until it is done.
  void copy(void* to, const void* from, std::size_t bytes);

  /// Elements decided per tier. Waits for the context's stream.
  statistics read_statistics();
  void reset_statistics();
  /// Waits until everything launched has finished, and reports device errors, and on CUDA elements that the last tier
  /// could not decide (on the CPU the call itself reports them).
  void synchronize();

  struct impl;

 private:
  friend struct context_access;
  // While it exists, calls are recorded.
  class recording {
   public:
    explicit recording(context& c);
    ~recording();
    recording(const recording&) = delete;
    recording& operator=(const recording&) = delete;
    prepared_calls finish() noexcept;

   private:
    context& context_;
    std::unique_ptr<prepared_calls::impl> calls_;
  };
  std::unique_ptr<impl> impl_;
};

/// One instruction set of the CPU backend.
struct isa_info {
  std::string name;
  bool available;  ///< this CPU has it
};
/// All instruction sets in this build, from the slowest to the fastest.
std::vector<isa_info> instruction_sets();

/// The names of the devices that contexts can be made for: the CPU, then GPUs. Empty list of GPUs: `why` says why.
struct device_info {
  device where;
  std::string name;
};
std::vector<device_info> devices(std::string* why_no_gpu = nullptr);

}  // namespace repdl
