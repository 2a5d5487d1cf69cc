// A call on many settings and with operands that lie in memory in any way: its results must be the same.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "reference/covering.hpp"
#include "tests/helpers/placed_calls.hpp"
#include "tests/helpers/settings.hpp"

namespace repdl::tests {

class everywhere {
 public:
  /// Settings are shared out among the calls as reference/covering.hpp says.
  explicit everywhere(int share) : some_(share) {}

  /// Whether the results of a call are these, on the settings that its features take.
  void check(const call_case& c, std::initializer_list<int> features, const std::vector<reference::array>& want) {
    CAPTURE(c.op);
    for (std::size_t i = 0; i < settings_.size(); ++i) {
      const setting& s = settings_[i];
      if (!some_.takes(static_cast<int>(i), features)) continue;
      CAPTURE(s.isa);
      CAPTURE(s.threads);
      CAPTURE(static_cast<int>(s.first));
      CHECK(run(*s.ctx, c) == want);
      const layout from = layouts[words_.below(6)], to = layouts[words_.below(6)];
      CHECK(run(*s.ctx, c, from, to) == want);
    }
  }

 private:
  std::vector<setting> settings_ = every_setting();
  reference::covering some_;
  reference::word_stream words_{71, 0};
};

/// Of one operand and one result.
inline reference::array run(context& ctx, const std::string& op, const reference::array& x, const attributes& attrs) {
  return run(ctx, {op, {x}, attrs})[0];
}

}  // namespace repdl::tests
