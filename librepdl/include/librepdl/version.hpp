#pragma once

#define REPDL_VERSION "0.2.0"
// The version of the numerical contract. It changes only when a published bit changes.
#define REPDL_BITS_VERSION 1
