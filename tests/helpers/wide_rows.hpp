// Checks of row operations in binary64: a call in every way that must not matter, and special values by their bits.
#pragma once

#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "reference/covering.hpp"
#include "reference/evaluate.hpp"
#include "tests/helpers/placed_calls.hpp"
#include "tests/helpers/settings.hpp"

namespace repdl::tests {

using doubles = std::vector<double>;

constexpr double huge = std::numeric_limits<double>::infinity(), least = std::numeric_limits<double>::denorm_min(),
                 most = std::numeric_limits<double>::max();
inline const double none = std::numeric_limits<double>::quiet_NaN();

inline reference::array row_of(const doubles& x) {
  reference::array a(dtype::f64, {static_cast<std::int64_t>(x.size())});
  for (std::size_t i = 0; i < x.size(); ++i) a.set(i, std::bit_cast<std::uint64_t>(x[i]));
  return a;
}
inline reference::array number_of(double x) {
  reference::array a = row_of({x});
  a.shape = {};
  return a;
}

/// Every class of every operation meets every setting once in a while, in some layouts, with some choice of outputs, in place or not.
class wide_rows {
 public:
  explicit wide_rows(std::uint64_t seed) : words(seed, 0) {}

  // is_wide: nothing is computed in binary64 alone.
  void check(const call_case& c, reference::sample_class kind, bool is_wide = true) {
    const std::vector<reference::array> want = reference::evaluate_all(c.op, c.in, c.attrs);
    std::int64_t count = 0;
    for (const reference::array& a : want) count += a.count();
    for (std::size_t i = 0; i < settings_.size(); ++i) {
      const setting& s = settings_[i];
      if (!some_.takes(static_cast<int>(i), {find(c.op)->id, static_cast<int>(kind)})) continue;
      CAPTURE(c.op);
      CAPTURE(std::string(name_of(kind)));
      CAPTURE(s.isa);
      CAPTURE(static_cast<int>(s.first));
      CAPTURE(s.threads);
      s.ctx->reset_statistics();
      CHECK(run(*s.ctx, c) == want);
      const statistics decided = s.ctx->read_statistics();
      CHECK(decided.elements[0] + decided.elements[1] + decided.elements[2] + decided.elements[3] == count);
      if (is_wide && s.first > tier::binary64) CHECK(decided.elements[1] == 0);
      const layout from = layouts[words.below(6)], to = layouts[words.below(6)];
      const unsigned wanted = 1 | words.below(16) << 1;
      const std::vector<reference::array> got = run(*s.ctx, c, from, to, wanted, words.flip());
      for (std::size_t o = 0; o < want.size(); ++o)
        CHECK(got[o] == ((wanted >> o & 1) != 0 ? want[o] : reference::array::none()));
    }
  }

  reference::word_stream words;

 private:
  const std::vector<setting> settings_ = every_setting();
  reference::covering some_{6};
};

/// Outputs from the first tier and from the last, NaN being the canonical one.
inline void check_bits(const std::string& op, const std::vector<reference::array>& in, const attributes& attrs,
                       const std::vector<doubles>& want) {
  for (const tier first : {tier::proved, tier::exact}) {
    context ctx({.threads = 1, .first_tier = first});
    const std::vector<reference::array> got = run(ctx, {op, in, attrs});
    CAPTURE(op);
    REQUIRE(got.size() == want.size());
    for (std::size_t o = 0; o < want.size(); ++o) {
      CAPTURE(o);
      REQUIRE(got[o].type == dtype::f64);
      REQUIRE(got[o].count() == static_cast<std::int64_t>(want[o].size()));
      for (std::size_t i = 0; i < want[o].size(); ++i) {
        CAPTURE(i);
        CHECK(got[o].get(i) == std::bit_cast<std::uint64_t>(want[o][i] == want[o][i] ? want[o][i] : none));
      }
    }
  }
}

}  // namespace repdl::tests
