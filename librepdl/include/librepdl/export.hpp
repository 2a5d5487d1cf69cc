// Visibility of the public symbols: the library is built with everything else hidden. And names on their way out.
#pragma once

#if defined(__GNUC__)
#define REPDL_EXPORT __attribute__((visibility("default")))
#else
#define REPDL_EXPORT
#endif

// Names of the version before stay for this one; the compiler says what to write instead (docs/migrating.md), unless
// REPDL_NO_DEPRECATION_WARNINGS is defined.
#if defined(REPDL_NO_DEPRECATION_WARNINGS)
#define REPDL_DEPRECATED(instead)
#else
#define REPDL_DEPRECATED(instead) [[deprecated(instead)]]
#endif
