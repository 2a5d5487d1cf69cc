// The last tier of rows on the CPU: multi-limb balls, by one thread, for the elements that the kernels left undecided.
#include <limits>

#include "backends/cpu/rows/rows_places.hpp"
#include "librepdl/ops/rows/rules.hpp"

namespace repdl::cpu {
namespace {

using namespace REPDL_ISA;

struct all {
  bool decided;
};

template <class Rule, class A>
typename Rule::template late<A> sums_of_row(const plan::row_plan& p, const num::row_call& call, const row_place& at,
                                            double top) noexcept {
  typename Rule::template late<A> s;
  num::start_sums(s, top, call);
  [&]<int... K>(std::integer_sequence<int, K...>) {
    walk<1> along[] = {along_row(p, stride_of<Rule>(p, K).reduced)...};
    for (std::int64_t j = 0; j < p.length; ++j, (along[K].advance(1), ...)) {
      const auto number = [&](int k) {
        const void* const row = operand<Rule>(p, k);
        if (row == nullptr) return static_cast<double>(Rule::absent[k]);
        return static_cast<double>(number_at(row, type_of<Rule>(p, k), at.x[k] + along[k].offset(0)));
      };
      s.add(number(K)...);
    }
  }
  (std::make_integer_sequence<int, Rule::summed>{});
  return s;
}

template <class Rule>
std::int64_t settle(const row_job& job, const row_place& at, float top, const float (*x)[num::most_elements],
                    std::int64_t count, int what, float* value) noexcept {
  const plan::row_plan& p = *job.plan;
  const num::row_operands own = operands_of<Rule>(p, at);
  const num::row_call call = call_of<Rule>(job, {});
  const dtype to = p.out_type[Rule::has_exception ? 0 : what];
  bool decided[row_chunk] = {};
  std::int64_t undecided = count;
  const auto level = [&]<int Limbs>() {
    const auto s = sums_of_row<Rule, num::ball<Limbs>>(p, call, at, static_cast<double>(top));
    for (std::int64_t i = 0; i < count; ++i) {
      if (decided[i]) continue;
      const num::certified c = Rule::template settle<num::ball<Limbs>>(to, call, own, s, x[i], what);
      value[i] = c.value;
      decided[i] = c.decided;
      undecided -= c.decided ? 1 : 0;
    }
    return all{undecided == 0};
  };
  if constexpr (Rule::exact_limbs != 0) {
    level.template operator()<Rule::exact_limbs>();
  } else {
    num::decide_by_levels(level, job.last_tier_bits);
  }
  return undecided;
}

template <class Rule, int Limbs>
num::certified loss_level(const row_job& job) noexcept {
  const plan::row_plan& p = *job.plan;
  const num::row_call call = call_of<Rule>(job, {});
  typename Rule::template late_total<num::ball<Limbs>> total;
  total.start();
  row_places<Rule> rows(p, 0);
  for (std::int64_t r = 0; r < p.rows; ++r, rows.advance()) {
    const row_place at = rows.here();
    const num::row_operands own = operands_of<Rule>(p, at);
    if (Rule::classify(call, own, 0).fills) continue;  // ignored, or without classes: others were seen
    float top = -std::numeric_limits<float>::infinity();
    walk<1> w = along_row(p, stride_of<Rule>(p, 0).reduced);
    for (std::int64_t j = 0; j < p.length; ++j, w.advance(1))
      top = std::max(top, number_at(operand<Rule>(p, 0), type_of<Rule>(p, 0), at.x[0] + w.offset(0)));
    total.add_row(sums_of_row<Rule, num::ball<Limbs>>(p, call, at, static_cast<double>(top)), own);
  }
  return total.finish(p.out_type[0], call);
}

}  // namespace

std::int64_t settle_exactly(const row_job& job, const row_place& at, float top, const float (*x)[num::most_elements],
                            std::int64_t count, int what, float* value) noexcept {
  std::int64_t undecided = count;
  ops::for_row_operation(job.plan->op, [&]<class Op>() {
    undecided = settle<num::row_rule<Op::id>>(job, at, top, x, count, what, value);
  });
  return undecided;
}

row_loss loss_exactly(const row_job& job) noexcept {
  num::certified c{0.0f, false};
  ops::for_row_operation(job.plan->op, [&]<class Op>() {
    using rule = num::row_rule<Op::id>;
    if constexpr (num::is_loss<rule>)
      c = num::decide_by_levels([&]<int Limbs>() { return loss_level<rule, Limbs>(job); }, job.last_tier_bits);
  });
  return {c.value, c.decided, false};
}

}  // namespace repdl::cpu
