// A backend in a shared library of its own: its side of the boundary. The library is this file, the backend, and
// whatever of librepdl the backend needs, all of it hidden.
#pragma once

#include "librepdl/dispatch/backend.hpp"

namespace repdl::loaded {

/// Which one: defined beside the backend.
const dispatch::backend& exported_backend();

}  // namespace repdl::loaded
