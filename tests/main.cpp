#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "librepdl/dispatch/thread_work.hpp"

int main(int argc, char** argv) {
  // Tensors of tests are small, and several threads are to work on them.
  repdl::dispatch::thread_work = 5'000;
  return doctest::Context(argc, argv).run();
}
