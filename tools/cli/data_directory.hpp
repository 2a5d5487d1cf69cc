// Where docs/ is: the digests that the library is verified with.
#pragma once

#include <string>

namespace repdl::tools {

/// Of an installed program: PREFIX/share/librepdl, found from the program's own place. Otherwise the root of the
/// sources.
std::string data_directory();

/// That of a program that is no installed `repdl`.
void set_data_directory(std::string path);

}  // namespace repdl::tools
