#include "librepdl/error.hpp"

#include <utility>

namespace repdl {
namespace {

constexpr error_site_info sites[] = {
#define REPDL_ERROR(name, code, text) {#name, status::code, text},
#include "librepdl/errors.def"
#undef REPDL_ERROR
};

std::string message(std::string_view op, std::string_view argument, std::string_view expected, std::string_view got) {
  std::string m;
  m.append(op).append(": ").append(argument).append(": expected ").append(expected).append(", got ").append(got);
  return m;
}

}  // namespace

std::string_view name_of(status s) noexcept {
  constexpr std::string_view names[] = {
      "ok",           "invalid_argument", "unsupported", "out_of_memory", "workspace_too_small",
      "device_error", "undecided",        "internal"};
  return names[static_cast<int>(s)];
}

const error_site_info& info_of(error_site s) noexcept { return sites[static_cast<int>(s)]; }

int error_site_count() noexcept { return static_cast<int>(std::size(sites)); }

error::error(error_site site, std::string op, std::string argument, std::string_view expected, std::string_view got)
    : std::runtime_error(message(op, argument, expected, got)),
      site_(site),
      op_(std::move(op)),
      argument_(std::move(argument)) {}

void fail(error_site site, std::string_view op, std::string_view argument, std::string_view expected,
          std::string_view got) {
  std::string o(op);
  std::string a(argument);
  switch (info_of(site).code) {
    case status::invalid_argument:
      throw invalid_argument(site, std::move(o), std::move(a), expected, got);
    case status::unsupported:
      throw unsupported(site, std::move(o), std::move(a), expected, got);
    default:
      throw machine_error(site, std::move(o), std::move(a), expected, got);
  }
}

}  // namespace repdl
