// attention and its gradients against the oracle: at least 200,000 outputs of each format, of every class, on every instruction set and, where there is
// one, on the GPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "reference/evaluate.hpp"
#include "tests/helpers/attention_problems.hpp"
#include "tests/helpers/class_engines.hpp"

using namespace repdl;
using reference::array;
using reference::outcome;
using reference::outcomes;
using reference::sample_class;

namespace {

constexpr std::int64_t required_outputs = 200'000;  // of a format

// The least shares of outputs that are of a class, a tenth below what the inputs reach: of attention, of its gradients.
struct share {
  sample_class kind;
  double forward, backward;
};
constexpr share shares[] = {{sample_class::narrow_lattice, .54, .28},
                            {sample_class::cancelling, .41, .16},
                            {sample_class::ties, .4, .17},
                            {sample_class::near_ties, .36, .14},
                            {sample_class::subnormal, .6, .49},
                            {sample_class::overflow_border, .37, .33},
                            {sample_class::single_nonfinite, .55, .52},
                            {sample_class::zeros, .67, .58}};

// Lines of whole packs of 16 bytes, for kernels that need these: of more terms, fewer of whose sums are of the class.
const std::vector<tests::attention_problem> packed = {
    {{{2, 4, 24, 16}, {2, 2, 40, 16}, {2, 2, 40, 8}}, {}},
    {{{1, 2, 18, 72}, {1, 1, 34, 72}, {1, 1, 34, 104}}, {{"causal", true}, {"bottom_right", true}}}};

void check(const std::string& op, bool is_backward) {
  std::vector<test::engine> all = test::engines();
  const std::vector<tests::attention_problem>& given = tests::attention_problems();
  for (const dtype t : {dtype::f16, dtype::bf16, dtype::f32}) {
    std::int64_t total = 0;
    std::uint64_t seed = 0;
    for (const sample_class kind : reference::element_classes) {
      const auto classes = static_cast<std::int64_t>(std::size(reference::element_classes));
      std::int64_t outputs = 0, located = 0, hits = 0;
      while (outputs * classes < required_outputs) {
        for (std::size_t i = 0; i < given.size() + packed.size(); ++i) {
          const bool is_packed = i >= given.size();
          const tests::attention_problem& p = is_packed ? packed[i - given.size()] : given[i];
          const std::vector<array> in = is_backward ? p.fill_backward(kind, t, ++seed) : p.fill(kind, t, ++seed);
          outcomes where;
          const std::vector<array> expected = reference::evaluate_all(op, in, p.attrs, &where);
          for (const array& a : expected) outputs += a.count();
          if (!is_packed) {
            located += static_cast<std::int64_t>(where.size());
            hits += std::count_if(where.begin(), where.end(), [&](const outcome& o) { return hit(kind, o); });
          }
          for (test::engine& e : all) {
            const std::string text = test::difference(test::run(*e.ctx, op, in, expected, p.attrs), expected);
            if (!text.empty()) {
              FAIL_CHECK(op << " of " << std::string(name_of(t)) << " on " << e.name << ", class "
                            << std::string(name_of(kind)) << ", seed " << seed << ": " << text);
            }
          }
        }
      }
      total += outputs;
      const double found = located == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(located);
      std::printf("%s %s %-18s %8lld outputs, %.2f of the class\n", op.c_str(), std::string(name_of(t)).c_str(),
                  std::string(name_of(kind)).c_str(), static_cast<long long>(outputs), found);
      for (const share& s : shares) {
        if (s.kind == kind) CHECK(found >= (is_backward ? s.backward : s.forward));
      }
    }
    CHECK(total >= required_outputs);
  }
}

}  // namespace

TEST_CASE("classes<attention>" * doctest::skip()) { check("attention", false); }
TEST_CASE("classes<attention_backward>" * doctest::skip()) { check("attention_backward", true); }
