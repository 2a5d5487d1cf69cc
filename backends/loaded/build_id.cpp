// The build id: the version and a hash of all sources that the two sides are made of (cmake/build_id.cmake), and what
// else the layout of their types depends on.
#include "build_id.inc"

#include <string>  // _GLIBCXX_USE_CXX11_ABI

#include "backends/loaded/table.hpp"

namespace repdl::loaded {
namespace {

#define REPDL_TEXT_OF(x) #x
#define REPDL_TEXT(x) REPDL_TEXT_OF(x)

constexpr const char id[] = REPDL_SOURCES_ID ", compiler " __VERSION__
#if defined(_GLIBCXX_USE_CXX11_ABI)
                                             ", C++11 ABI " REPDL_TEXT(_GLIBCXX_USE_CXX11_ABI)
#endif
#if defined(_GLIBCXX_DEBUG)
                                                 ", debug containers"
#endif
    ;

}  // namespace

const char* build_id() noexcept { return id; }

}  // namespace repdl::loaded
