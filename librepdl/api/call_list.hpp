// Calls of one operation, given one after the other.
#pragma once

#include <cstddef>
#include <functional>

#include "librepdl/dynamic.hpp"

namespace repdl::api {

/// call_list of `count` calls, each made by one(its number).
void run_list(context& ctx, const op_info& op, std::size_t count, const std::function<void(std::size_t)>& one);

}  // namespace repdl::api
