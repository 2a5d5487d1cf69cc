// Visibility of the public symbols: the library is built with everything else hidden.
#pragma once

#if defined(__GNUC__)
#define REPDL_EXPORT __attribute__((visibility("default")))
#else
#define REPDL_EXPORT
#endif
