#include "librepdl/context.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>

#include "librepdl/api/context_impl.hpp"
#include "librepdl/dispatch/self_test.hpp"

namespace repdl {
namespace {

constexpr std::size_t workspace_alignment = 256;
constexpr std::size_t most_bytes = std::numeric_limits<std::ptrdiff_t>::max();

std::size_t misalignment(const void* data) { return reinterpret_cast<std::uintptr_t>(data) % workspace_alignment; }

const dispatch::backend& backend_for(const device& where) {
  for (const dispatch::backend& b : dispatch::backends()) {
    if (b.kind == where.kind) return b;
  }
  fail(error_site::no_backend, "context", "where", "a device of this build (built without CUDA)", name_of(where));
}

}  // namespace

context::context(context_options options) : impl_(std::make_unique<impl>()) {
  if (options.threads < 0 || options.threads > max_threads) {
    fail(error_site::thread_count, "context", "threads", "0 to " + std::to_string(max_threads),
         std::to_string(options.threads));
  }
  if (options.last_tier_bits < 0) {
    fail(error_site::attribute_value, "context", "last_tier_bits", ">= 0", std::to_string(options.last_tier_bits));
  }
  impl& c = *impl_;
  c.handle = this;
  c.backend = &backend_for(options.where);
  c.executor = c.backend->open(options);
  c.options = std::move(options);
  c.options.isa = c.executor->isa();
  c.options.threads = c.executor->threads();
  c.memory = c.options.memory != nullptr ? c.options.memory : &c.backend->default_allocator();
  dispatch::self_test(c);
}

context::~context() = default;
context::context(context&& other) noexcept : impl_(std::move(other.impl_)) {
  if (impl_ != nullptr) impl_->handle = this;
}
context& context::operator=(context&& other) noexcept {
  impl_ = std::move(other.impl_);
  if (impl_ != nullptr) impl_->handle = this;
  return *this;
}

const device& context::where() const noexcept { return impl_->options.where; }
const std::string& context::isa() const noexcept { return impl_->options.isa; }
int context::threads() const noexcept { return impl_->options.threads; }
void* context::stream() const noexcept { return impl_->options.stream; }

void context::use_workspace(void* data, std::size_t bytes) {
  if (const std::size_t beyond = misalignment(data); beyond != 0) {
    fail(error_site::workspace_misaligned, "use_workspace", "data", "a 256-byte aligned address",
         "one " + std::to_string(beyond) + " bytes beyond");
  }
  impl_->given = data;
  impl_->given_bytes = bytes;
  impl_->uses_given = data != nullptr;
}

context::recording::recording(context& c) : context_(c), calls_(std::make_unique<prepared_calls::impl>(*c.impl_)) {
  if (c.impl_->recorder != nullptr) {
    fail(error_site::nested_prepare, "prepare", "calls", "operations", "a call of prepare() or workspace_for()");
  }
  c.impl_->recorder = calls_.get();
}
context::recording::~recording() {
  if (calls_ != nullptr) context_.impl_->recorder = nullptr;
}
prepared_calls context::recording::finish() noexcept {
  context_.impl_->recorder = nullptr;
  return prepared_calls(std::move(calls_));
}

prepared_calls::prepared_calls(std::unique_ptr<impl> calls) noexcept : impl_(std::move(calls)) {}
prepared_calls::prepared_calls(prepared_calls&&) noexcept = default;
prepared_calls& prepared_calls::operator=(prepared_calls&&) noexcept = default;
prepared_calls::~prepared_calls() = default;

void prepared_calls::impl::add(std::string_view op, std::unique_ptr<recorded> task) {
  const std::size_t needed = dispatch::addressable(op, (*task)->bytes());
  if (needed > bytes) {
    bytes = needed;
    hungriest = op;
  }
  tasks.push_back(std::move(task));
}

void prepared_calls::run() {
  const num::fp_environment_guard guard;
  void* const workspace = impl_->owner.workspace(impl_->hungriest, impl_->bytes);
  for (const auto& task : impl_->tasks) (*task)->run(workspace);
}
std::size_t prepared_calls::workspace_bytes() const noexcept { return impl_->bytes; }

void* context::allocate(std::size_t bytes) { return impl_->allocate("allocate", bytes); }
void context::deallocate(void* data, std::size_t bytes) noexcept {
  if (data != nullptr) impl_->deallocate(data, bytes);
}
void context::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes != 0) impl_->executor->copy(to, from, bytes);
}

statistics context::read_statistics() { return impl_->executor->read_statistics(); }
void context::reset_statistics() { impl_->executor->reset_statistics(); }
void context::synchronize() { impl_->executor->synchronize(); }

void context::impl::release() noexcept {
  if (own != nullptr) deallocate(own, own_bytes);
  own = nullptr;
  own_bytes = 0;
}

void* context::impl::allocate(std::string_view op, std::size_t bytes) {
  // Allocators round sizes up: one that no memory has would become a small one.
  if (bytes > most_bytes) {
    fail(error_site::out_of_memory, op, "memory", "fewer than 2^63 bytes", std::to_string(bytes));
  }
  void* data = memory->allocate(bytes, options.where, options.stream);
  if (data == nullptr) {
    fail(error_site::out_of_memory, op, "memory", std::to_string(bytes) + " bytes on " + name_of(options.where),
         "none from the allocator");
  }
  if (const std::size_t beyond = misalignment(data); beyond != 0) {
    deallocate(data, bytes);
    fail(error_site::workspace_misaligned, op, "memory", "a 256-byte aligned address from the allocator",
         "one " + std::to_string(beyond) + " bytes beyond");
  }
  return data;
}

std::size_t dispatch::addressable(std::string_view op, plan::checked_size bytes) {
  if (!bytes.fits())
    fail(error_site::out_of_memory, op, "workspace", "fewer than 2^63 bytes", "a call that needs more");
  return bytes.value();
}

void* context::impl::workspace(std::string_view op, std::size_t bytes) {
  if (uses_given) {
    if (bytes > given_bytes) {
      fail(error_site::workspace_too_small, op, "workspace", std::to_string(bytes) + " bytes",
           std::to_string(given_bytes));
    }
    return given;
  }
  if (bytes > own_bytes) {
    // Allocate before releasing, so that a failure leaves the context as it was.
    void* fresh = allocate(op, bytes);
    release();
    own = fresh;
    own_bytes = bytes;
  }
  return own;
}

dispatch::launch context::impl::launch(const dispatch::subject& what) const noexcept {
  return {.threads = options.threads,
          .stream = options.stream,
          .first_tier = options.first_tier,
          .last_tier_bits = options.last_tier_bits,
          .self_test = self_test,
          .what = what,
          .products = options.products};
}

std::vector<device_info> devices(std::string* why_no_gpu) {
  std::vector<device_info> all;
  if (why_no_gpu != nullptr) *why_no_gpu = "this build has no CUDA backend";
  for (const dispatch::backend& b : dispatch::backends()) {
    std::string why;
    for (device_info& d : b.devices(&why)) all.push_back(std::move(d));
    if (b.kind == device_kind::cuda && why_no_gpu != nullptr) *why_no_gpu = why;
  }
  return all;
}

}  // namespace repdl
