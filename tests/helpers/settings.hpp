// Contexts whose results must be the same: each instruction set of this CPU, each first tier, one thread and three.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "tests/helpers/bits.hpp"

namespace repdl::tests {

inline std::vector<std::string> available() {
  std::vector<std::string> names;
  for (const isa_info& i : instruction_sets()) {
    if (i.available) names.push_back(i.name);
  }
  return names;
}

template <class Function>
void on_every_set(const Function& f) {
  for (const std::string& isa : available()) {
    INFO(isa);
    context ctx({.threads = 1, .isa = isa});
    f(ctx);
  }
}

struct setting {
  std::string isa;
  tier first;
  int threads;
  std::unique_ptr<context> ctx;
};
inline std::vector<setting> every_setting() {
  std::vector<setting> all;
  for (const std::string& isa : available()) {
    for (const tier first : {tier::proved, tier::binary64, tier::double_double, tier::exact}) {
      for (const int threads : {1, 3}) {
        const context_options o{.threads = threads, .isa = isa, .first_tier = first};
        all.push_back({isa, first, threads, std::make_unique<context>(o)});
      }
    }
  }
  return all;
}

}  // namespace repdl::tests
