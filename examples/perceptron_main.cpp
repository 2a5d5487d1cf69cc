// Trains once on the CPU and prints the fingerprint of the result.
#include <cstdio>

#include "examples/perceptron.hpp"

int main() {
  try {
    repdl::context ctx;
    std::printf("epoch   loss per image   test images read correctly\n");
    const auto result = examples::train(ctx, examples::digits(), {}, [](const examples::epoch_report& r) {
      std::printf("%5d   %14.4f   %3lld of %lld\n", r.epoch, static_cast<double>(r.loss),
                  static_cast<long long>(r.correct), static_cast<long long>(r.tests));
    });
    std::printf("fingerprint %s\n", result.fingerprint.c_str());
    const bool same = result.fingerprint == examples::published_fingerprint();
    std::printf("published   %s   %s\n", std::string(examples::published_fingerprint()).c_str(),
                same ? "the same" : "DIFFERENT");
    return same ? 0 : 1;
  } catch (const repdl::error& e) {
    std::fprintf(stderr, "perceptron: %s\n", e.what());
    return 2;
  }
}
