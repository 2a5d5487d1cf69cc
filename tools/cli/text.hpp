// Small helpers for messages.
#pragma once

#include <string>
#include <string_view>

namespace repdl::tools {

/// One string of several pieces (GCC 12 warns falsely at "literal" + std::string).
template <class... Piece>
std::string joined(const Piece&... pieces) {
  std::string s;
  (s.append(pieces), ...);
  return s;
}

inline std::string in_quotes(std::string_view s) { return joined("'", s, "'"); }

}  // namespace repdl::tools
