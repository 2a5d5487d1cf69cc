// The last tier of the softmax family on the CPU: multi-limb balls, by one thread, for the elements that the kernels left open.
#include "backends/cpu/rows/rows_places.hpp"
#include "librepdl/ops/rows/softmax.hpp"

namespace repdl::cpu {
namespace {

using namespace REPDL_ISA;

struct all {
  bool decided;
};

template <class Rule, class A>
typename Rule::template late<A> sums_of_row(const plan::row_plan& p, const row_place& at, double top) noexcept {
  typename Rule::template late<A> s;
  s.start(top);
  walk<3> w = along_row(p, 0);
  for (std::int64_t j = 0; j < p.length; ++j, w.advance(1)) {
    const auto x = static_cast<double>(p.in[0].data[at.in[0] + w.offset(0)]);
    if constexpr (Rule::operands == 2) {
      s.add(x, static_cast<double>(p.in[1].data[at.in[1] + w.offset(1)]));
    } else {
      s.add(x);
    }
  }
  return s;
}

template <class Rule>
std::int64_t settle(const row_job& job, const row_place& at, float top, const float* x, const float* y,
                    std::int64_t count, bool target, float* value) noexcept {
  const plan::row_plan& p = *job.plan;
  const num::row_operands own = operands_of<Rule>(p, at);
  const num::row_call call = {{}, p.length, job.n};
  bool decided[row_chunk] = {};
  std::int64_t open = count;
  const auto level = [&]<int Limbs>() {
    const auto s = sums_of_row<Rule, num::ball<Limbs>>(p, at, static_cast<double>(top));
    for (std::int64_t i = 0; i < count; ++i) {
      if (decided[i]) continue;
      const num::certified c = Rule::template settle<num::ball<Limbs>>(call, own, s, x[i], y[i], target);
      value[i] = c.value;
      decided[i] = c.decided;
      open -= c.decided ? 1 : 0;
    }
    return all{open == 0};
  };
  if constexpr (Rule::exact_limbs != 0) {
    level.template operator()<Rule::exact_limbs>();
  } else {
    num::decide_by_levels(level, job.last_tier_bits);
  }
  return open;
}

template <int Limbs>
num::certified loss_level(const row_job& job) noexcept {
  using rule = num::row_rule<ops::op_id::cross_entropy>;
  const plan::row_plan& p = *job.plan;
  num::cross_entropy_total<num::ball<Limbs>> total;
  total.start();
  walk<5> rows = across_rows(p, 0);
  for (std::int64_t r = 0; r < p.rows; ++r, rows.advance(1)) {
    const row_place at = place_of(rows);
    const num::row_operands own = operands_of<rule>(p, at);
    if (own.ignored) continue;
    float top = own.at_target;
    walk<3> w = along_row(p, 0);
    for (std::int64_t j = 0; j < p.length; ++j, w.advance(1)) top = std::max(top, p.in[0].data[at.in[0] + w.offset(0)]);
    total.add_row(sums_of_row<rule, num::ball<Limbs>>(p, at, static_cast<double>(top)), own.at_target);
  }
  return total.finish(job.n);
}

}  // namespace

std::int64_t settle_exactly(const row_job& job, const row_place& at, float top, const float* x, const float* y,
                            std::int64_t count, bool target, float* value) noexcept {
  std::int64_t open = count;
  ops::for_operation<ops::family::softmax>(job.plan->op, [&]<class Op>() {
    open = settle<num::row_rule<Op::id>>(job, at, top, x, y, count, target, value);
  });
  return open;
}

row_loss loss_exactly(const row_job& job) noexcept {
  const auto c = num::decide_by_levels([&]<int Limbs>() { return loss_level<Limbs>(job); }, job.last_tier_bits);
  return {c.value, c.decided, false};
}

}  // namespace repdl::cpu
