// The known answers of the self-test that every backend passes before its first call.
#pragma once

#include <string>

namespace repdl::reference {

/// The text of librepdl/dispatch/known_answers.def, from the oracle.
std::string known_answers();

}  // namespace repdl::reference
