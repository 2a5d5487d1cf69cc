// What a context holds. Private.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "librepdl/context.hpp"
#include "librepdl/dispatch/backend.hpp"
#include "librepdl/num/fp_environment.hpp"

namespace repdl {

namespace dispatch {
/// The bytes of a workspace, if they are a number that memory can have.
std::size_t addressable(std::string_view op, plan::checked_size bytes);
}  // namespace dispatch

struct context::impl {
  context_options options;
  const dispatch::backend* backend = nullptr;
  std::unique_ptr<dispatch::executor> executor;
  allocator* memory = nullptr;

  void* own = nullptr;  // grows, never shrinks; freed with the context
  std::size_t own_bytes = 0;
  void* given = nullptr;  // use_workspace
  std::size_t given_bytes = 0;
  bool uses_given = false;

  const dispatch::kernel_choice* self_test = nullptr;  // not null: this context runs self-tests

  bool dry_run = false;
  std::size_t dry_run_bytes = 0;

  ~impl() { release(); }
  void release() noexcept;
  void* allocate(std::string_view op, std::size_t bytes);
  void* workspace(std::string_view op, std::size_t bytes);
  dispatch::launch launch() const noexcept;

  // The one way from a plan to a backend.
  template <class Plan>
  void run(std::string_view op, const Plan& plan) {
    const num::fp_environment_guard guard;  // the caller's rounding mode, FTZ and trap masks stop here
    dispatch::launch l = launch();
    l.bytes = dispatch::addressable(op, executor->workspace(plan, l));
    if (dry_run) {
      dry_run_bytes = std::max(dry_run_bytes, l.bytes);
      return;
    }
    l.workspace = workspace(op, l.bytes);
    executor->run(plan, l);
  }
};

}  // namespace repdl
