#include "tools/arguments.hpp"
#include "tools/commands.hpp"
namespace repdl::tools {
int run_sweep(command_arguments) { usage("sweep", "command", "a later build", "this one"); }
}
