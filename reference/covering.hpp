// A covering array in place of a product of problems and settings.
#pragma once

#include <array>
#include <initializer_list>
#include <set>

namespace repdl::reference {

/// Problems have features (layout, kind of values, operation, ...), each a number. Every value of every feature meets
/// every setting (instruction set, threads, tier, ...); beyond that a problem takes every `share`-th setting, others
/// each time.
class covering {
 public:
  explicit covering(int share) : share_(share) {}

  /// Whether the problem with these features takes the setting.
  bool takes(int setting, std::initializer_list<int> features) {
    bool unmet = false;
    int number = 0;
    for (const int value : features) unmet |= met_.insert({number++, value, setting}).second;
    return unmet || turn_++ % share_ == 0;
  }

 private:
  int share_;
  int turn_ = 0;
  std::set<std::array<int, 3>> met_;
};

}  // namespace repdl::reference
