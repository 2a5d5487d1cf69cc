#include "tools/arguments.hpp"
#include "tools/commands.hpp"
namespace repdl::tools {
int run_verify(command_arguments) { usage("verify", "command", "a later build", "this one"); }
}
