// The C ABI as a table of addresses: librepdl._core has it, and hands it to the library that is compiled against the
// installed PyTorch. So that library links nothing of librepdl, and there is one librepdl in the process.
#pragma once

#include "librepdl/librepdl.h"

namespace repdl_torch {

#define REPDL_C_ABI(f) f(context_create) f(op_find) f(run) f(run_list) f(last_error)

struct c_abi {
  size_t size;  // of this struct: both sides have the same functions
#define REPDL_ADDRESS(name) decltype(&::repdl_##name) name;
  REPDL_C_ABI(REPDL_ADDRESS)
#undef REPDL_ADDRESS
};

}  // namespace repdl_torch
