// A backend in a shared library of its own: the library's side of the boundary.
#pragma once

#include <memory>
#include <string>

#include "backends/loaded/table.hpp"
#include "librepdl/dispatch/backend.hpp"

namespace repdl::loaded {

/// Loads the file, an absolute path, for the rest of the process. Throws error_site::cuda_library.
const backend_table& load(const std::string& file);

/// A backend's parts, called through its table.
std::vector<device_info> devices(const backend_table& t, std::string* why_none);
std::unique_ptr<dispatch::executor> open(const backend_table& t, const context_options& o);
std::unique_ptr<allocator> make_allocator(const backend_table& t);

/// The CUDA backend: the entry for the list of backends. librepdl_cuda.so is looked for when the backend is first asked
/// for something; without it there are no devices.
dispatch::backend cuda_backend() noexcept;

}  // namespace repdl::loaded
