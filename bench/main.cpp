// repdl_bench [FAMILY...] [Google Benchmark's arguments]: the rows of the families whose names begin with one of the words;
// of all, where there is none.
#include <cstdio>
#include <cstring>
#include <span>
#include <string>

#include "bench/by_turns.hpp"

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);  // takes its own arguments away
  if (argc == 1) bench::family::add("");
  for (const char* word : std::span(argv, static_cast<std::size_t>(argc)).subspan(1)) {
    if (!bench::family::add(word)) {
      std::fprintf(stderr, "repdl_bench: %s: expected an argument of Google Benchmark, or a family of rows: %s\n", word,
                   bench::family::names().c_str());
      return 1;
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
