// What a context holds. Private.
#pragma once

#include <cstddef>
#include <cstdint>
#include <forward_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "librepdl/context.hpp"
#include "librepdl/dispatch/backend.hpp"
#include "librepdl/num/fp_environment.hpp"

namespace repdl {

namespace detail {
class results;
}

namespace dispatch {
/// The bytes of a workspace, if they are a number that memory can have.
std::size_t addressable(std::string_view op, plan::checked_size bytes);
}  // namespace dispatch

/// A call to be run later: the task, and the plan that it refers to.
struct [[gnu::visibility("hidden")]] recorded : dispatch::stored_task {
  virtual ~recorded() = default;
};
template <class Plan>
struct [[gnu::visibility("hidden")]] recorded_task final : recorded {
  const Plan plan;
  explicit recorded_task(const Plan& p) : plan(p) {}
};
/// With the plans that run together with it.
template <>
struct [[gnu::visibility("hidden")]] recorded_task<plan::map_plan> final : recorded {
  const std::vector<plan::map_plan> list;
  const plan::map_plan plan;
  explicit recorded_task(const plan::map_plan& p) : list(p.list.begin(), p.list.end()), plan(with(p, list)) {}

 private:
  static plan::map_plan with(plan::map_plan p, std::span<const plan::map_plan> list) {
    p.list = list;
    return p;
  }
};

/// Calls that a context has validated and planned.
struct [[gnu::visibility("hidden")]] prepared_calls::impl {
  context::impl& owner;
  std::vector<std::unique_ptr<recorded>> tasks;
  std::forward_list<std::uint64_t> numbers;  // operands
  std::size_t bytes = 0;                     ///< of workspace, for the call that needs most
  std::string_view hungriest = {};           ///< its operation

  explicit impl(context::impl & c) noexcept : owner(c) {}
  void add(std::string_view op, std::unique_ptr<recorded> task);
};

struct [[gnu::visibility("hidden")]] context::impl {
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

  std::vector<plan::map_plan>* list = nullptr;  // not null: elementwise calls are planned, and left there (call_list)
  prepared_calls::impl* recorder = nullptr;     // not null: calls are recorded there, none is run
  context* handle = nullptr;                    // whose it is: contexts may be moved
  detail::results* wanted = nullptr;            // not null: the results of the next call are made there

  ~impl() { release(); }
  void release() noexcept;
  void* allocate(std::string_view op, std::size_t bytes);
  void deallocate(void* data, std::size_t bytes) noexcept {
    memory->deallocate(data, bytes, options.where, options.stream);
  }
  void* workspace(std::string_view op, std::size_t bytes);
  dispatch::launch launch(const dispatch::subject& what) const noexcept;

  // The one way from a plan to a backend.
  template <class Plan>
  void run(const dispatch::subject& what, const Plan& plan) {
    if constexpr (std::is_same_v<Plan, plan::map_plan>) {
      if (list != nullptr) return list->push_back(plan);
    }
    const num::fp_environment_guard guard;  // the caller's rounding mode, FTZ and trap masks stop here
    if (recorder != nullptr) {
      auto task = std::make_unique<recorded_task<Plan>>(plan);
      executor->prepare(task->plan, launch(what), *task);
      recorder->add(what.name(), std::move(task));
      return;
    }
    dispatch::stored_task task;
    executor->prepare(plan, launch(what), task);
    task->run(workspace(what.name(), dispatch::addressable(what.name(), task->bytes())));
  }
};

/// The library's own way into a context.
struct context_access {
  static context::impl& of(context& c) noexcept { return *c.impl_; }
};

}  // namespace repdl
