#include "tools/arguments.hpp"
#include "tools/commands.hpp"
namespace repdl::tools {
int run_digests(command_arguments) { usage("digests", "command", "a later build", "this one"); }
}
