// Errors. Every place that can fail has an id (errors.def), and every message names the argument, what was expected
// and what came.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "librepdl/export.hpp"

namespace repdl REPDL_EXPORT {

/// What kind of failure it was. The numbers are part of the C ABI.
enum class status : std::int32_t {
  ok = 0,
  invalid_argument = 1,  ///< the call can never work: fix the argument
  unsupported = 2,       ///< a meaningful call that this version, build or machine does not offer
  out_of_memory = 3,
  workspace_too_small = 4,  ///< the message names the bytes needed
  device_error = 5,         ///< the machine failed: no GPU, wrong driver, a launch that did not start
  undecided = 6,            ///< a last tier exhausted its budget; the output is unspecified
  internal = 7,             ///< a defect of librepdl
};

std::string_view name_of(status s) noexcept;

/// One id per place where an error is made; the list, with a description of each, is errors.def.
enum class error_site : std::int32_t {
#define REPDL_ERROR(name, code, text) name,
#include "librepdl/errors.def"
#undef REPDL_ERROR
};

struct error_site_info {
  std::string_view name;
  status code;
  std::string_view text;
};
const error_site_info& info_of(error_site s) noexcept;
/// How many sites there are; their ids are 0 .. error_site_count - 1.
int error_site_count() noexcept;

class error : public std::runtime_error {
 public:
  /// The message reads "OP: ARGUMENT: expected EXPECTED, got GOT".
  error(error_site site, std::string op, std::string argument, std::string_view expected, std::string_view got);

  error_site site() const noexcept { return site_; }
  status code() const noexcept { return info_of(site_).code; }
  const std::string& op() const noexcept { return op_; }
  const std::string& argument() const noexcept { return argument_; }

 private:
  error_site site_;
  std::string op_;
  std::string argument_;
};

class invalid_argument : public error {
  using error::error;
};
class unsupported : public error {
  using error::error;
};
/// out_of_memory, workspace_too_small, device_error, undecided, internal.
class machine_error : public error {
  using error::error;
};

/// Throws the subclass of `error` that belongs to the site.
[[noreturn, gnu::cold]] void fail(error_site site, std::string_view op, std::string_view argument,
                                  std::string_view expected, std::string_view got);

}  // namespace repdl
