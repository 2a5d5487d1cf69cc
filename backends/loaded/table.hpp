// What the library and a backend in a shared library of its own know of each other: two tables of functions.
//
// Their types are those of dispatch/backend.hpp and of the plans, so both must come from the same sources and have the
// same layouts: the build id says so (build_id.cpp), and the library refuses another one's before it reads more than
// that. Functions tell a caller what they throw (boundary.hpp); those without one throw nothing.
#pragma once

#include <string>
#include <vector>

#include "backends/loaded/boundary.hpp"
#include "librepdl/dispatch/backend.hpp"

namespace repdl::loaded {

/// "0.2.0-0123456789abcdef, g++ 12.2.0, ..."
const char* build_id() noexcept;

/// What an executor is and will be.
struct executor_facts {
  std::string isa;
  int threads = 1;
};
struct device_list {
  std::vector<device_info> devices;
  std::string why_none;
};

/// The backend's side: of dispatch::backend, allocator, executor and work.
struct backend_table {
  const char* build;  ///< first in every version of the table

  void (*devices)(asker<device_list>&) noexcept;
  dispatch::executor* (*open)(const context_options&, asker<executor_facts>&) noexcept;
  void* (*allocate)(std::size_t bytes, const device&, void* stream, caller&) noexcept;
  void (*deallocate)(void* data, std::size_t bytes, const device&, void* stream) noexcept;

  void (*close)(dispatch::executor*) noexcept;
  /// Makes a work in memory of work::most_bytes, and says how many bytes of workspace it needs.
#define REPDL_PREPARE(family)                                                                                   \
  dispatch::work* (*prepare_##family)(dispatch::executor&, const plan::family##_plan&, const dispatch::launch&, \
                                      std::byte* memory, plan::checked_size& bytes, caller&) noexcept;
  REPDL_FAMILIES(REPDL_PREPARE)
#undef REPDL_PREPARE
  void (*synchronize)(dispatch::executor&, caller&) noexcept;
  void (*read_statistics)(dispatch::executor&, asker<statistics>&) noexcept;
  void (*reset_statistics)(dispatch::executor&, caller&) noexcept;
  void (*copy)(dispatch::executor&, void* to, const void* from, std::size_t bytes, caller&) noexcept;
  void (*test_kernels)(dispatch::executor&, asker<dispatch::kernel_report>&) noexcept;

  void (*run)(dispatch::work&, void* workspace, caller&) noexcept;
  void (*destroy)(dispatch::work&) noexcept;
};

/// The library's side: dispatch/kernel_tests.hpp.
struct library_table {
  void (*test_subjects)(asker<std::vector<dispatch::subject>>&) noexcept;
  context* (*test_context)(const device&, void* stream, caller&) noexcept;
  std::size_t (*test_groups)(const dispatch::subject&, caller&) noexcept;
  void (*plan_test)(context&, const dispatch::subject&, std::size_t group, caller&) noexcept;
  void (*run_test)(context&, const dispatch::subject&, std::size_t group, asker<std::string>&) noexcept;
};

/// The one symbol that librepdl_cuda.so exports; its number is that of the meaning of the table's first member. The
/// backend keeps the first library that asks.
using entry = const backend_table* (*)(const library_table*);
inline constexpr const char* entry_name = "repdl_cuda_backend_1";

}  // namespace repdl::loaded
