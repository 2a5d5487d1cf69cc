// The driver of losses: threads and strides. Operands that are side by side over a block are used in place, any other is gathered
// (an output: scattered), an absent one is a block of ones. Sums are added up in binary64 first; if that decides nothing, every element once more, exactly.
#include "backends/cpu/loss/loss.hpp"

#include <algorithm>
#include <cstring>

#include "backends/cpu/core/strided_runs.hpp"
#include "backends/cpu/core/team_sum.hpp"
#include "librepdl/ops/losses/losses_entropy.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cpu {
namespace {

constexpr std::size_t most_inputs = std::size(plan::loss_plan{}.in);

// The operands of a block. What is done once for many elements is compiled once for all operations.
template <class T>
struct block {
  alignas(64) T buffers[most_inputs][loss_block];
  const void* in[most_inputs];
  std::size_t inputs;

  [[gnu::noinline]] block(const plan::loss_plan& p, std::size_t operands) : inputs(operands) {
    for (std::size_t k = 0; k < inputs; ++k) {
      if (p.in[k].data == nullptr) std::fill_n(buffers[k], loss_block, num::narrow<T>(1.0));
    }
  }
  [[gnu::noinline]] void load(const plan::loss_plan& p, std::int64_t first, std::int64_t n) {
    for (std::size_t k = 0; k < inputs; ++k) {
      const auto* data = static_cast<const T*>(p.in[k].data);
      in[k] = buffers[k];
      if (data == nullptr) continue;
      in[k] = side_by_side(p, p.in[k].stride, data, first, n, buffers[k]);
    }
  }
  T operand(std::size_t k, std::int64_t i) const { return static_cast<const T*>(in[k])[i]; }
};

// Calls use(block, first, n) for the blocks of a part of the elements.
template <class T, class Use>
void for_blocks(const plan::loss_plan& p, std::size_t operands, range mine, const Use& use) {
  block<T> b(p, operands);
  for (std::int64_t first = mine.begin; first < mine.end && !stopped(); first += loss_block) {
    const std::int64_t n = std::min(loss_block, mine.end - first);
    b.load(p, first, n);
    use(b, first, n);
  }
}

// Calls use(x...) with the numbers of an element.
template <class Op, class T, class Use>
auto with_numbers(const block<T>& b, std::int64_t i, const Use& use) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) { return use(num::widen(b.operand(K, i))...); }
  (std::make_index_sequence<std::size(Op::in)>());
}

// Decides an element that a loop left undecided.
template <class T>
using decide_function = num::decided_value<T>(const block<T>& b, std::int64_t i, const ops::loss_constants& k,
                                              int last_tier_bits);
template <class Op, class T>
num::decided_value<T> decide(const block<T>& b, std::int64_t i, const ops::loss_constants& k, int last_tier_bits) {
  return with_numbers<Op>(b, i, [&](auto... x) { return num::decide_loss<T, Op>(k, last_tier_bits, x...); });
}

template <class T>
void run_each(const plan::loss_plan& p, std::size_t operands, const loss_kernels::loops& loops,
              decide_function<T>* decide, const ops::loss_constants& k, int last_tier_bits, range mine,
              tally& counted) {
  T results[loss_block];
  bool undecided[loss_block];
  for_blocks<T>(p, operands, mine, [&](const block<T>& b, std::int64_t first, std::int64_t n) {
    T* to = in_place(p, p.out_stride, static_cast<T*>(p.out), first, n);
    T* const out = to != nullptr ? to : results;
    loops.each(b.in, out, n, k, undecided);
    std::int64_t left = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      if (!undecided[i]) continue;
      const num::decided_value<T> r = decide(b, i, k, last_tier_bits);
      out[i] = r.value;
      ++(r.decided ? counted.elements[static_cast<int>(tier::exact)] : counted.undecided);
      ++left;
    }
    counted.add(tier::binary64, n - left);
    if (to != nullptr) return;
    scatter_to(p, p.out_stride, results, static_cast<T*>(p.out), first, n);
  });
}

// Of the tree of additions: blocks, the tree of one, and workers.
std::int64_t height(std::int64_t count) noexcept { return count / loss_block + loss_block + max_threads; }

// What a worker knows of a sum.
struct worker {
  num::loss_sum sum;
  num::key_groups* groups;  // where the operation has keys
  alignas(8) std::byte
      late[std::max({sizeof(num::wide_loss_parts<32>), sizeof(num::distance_sum), sizeof(num::wide_loss_sum)})];

  // Of a later tier.
  template <class Sum>
  Sum& sum_of() {
    static_assert(sizeof(Sum) <= sizeof(late));
    return *reinterpret_cast<Sum*>(late);
  }
};

// Whether workers need groups.
bool has_groups(ops::op_id op) {
  bool has = false;
  ops::for_operation<ops::family::loss>(op, [&]<class Op>() { has = num::has_keys<Op>; });
  return has;
}

// Adds an element to a sum: to its parts, to the groups of equal keys, exactly.
template <class Sum, class T>
using add_function = void(Sum& sum, const block<T>& b, std::int64_t i, const ops::loss_constants& k);
template <class Op, class T, int L>
void add_parts(num::parts_sum<T, L>& sum, const block<T>& b, std::int64_t i, const ops::loss_constants& k) {
  with_numbers<Op>(b, i, [&](auto... x) { num::add_parts<Op>(sum, k, x...); });
}
template <class Op, class T>
void add_to_groups(num::key_groups& sum, const block<T>& b, std::int64_t i, const ops::loss_constants& k) {
  with_numbers<Op>(b, i, [&](auto... x) { num::add_to_groups<Op, T>(sum, k, x...); });
}
template <class Op, class T>
void add_exactly(num::exact_loss_sum<T>& sum, const block<T>& b, std::int64_t i, const ops::loss_constants& k) {
  num::add_exactly<Op>(sum, k, b.operand(0, i), b.operand(1, i));
}

// A sum of all elements, and its workers.
template <class T>
struct whole {
  const plan::loss_plan& p;
  std::size_t operands;
  const ops::loss_constants& k;
  int threads;
  worker* workers;

  // use(sum, block, n), part(worker): where its sum lies.
  template <class Sum, class Part, class Use>
  Sum& add_blocks(const Sum& zero, const Part& part, const Use& use) const {
    const auto of_thread = [&](int t) -> Sum& { return part(workers[t]); };
    return add_up(threads, zero, of_thread, [&](Sum& sum, int thread, int used) {
      for_blocks<T>(p, operands, share(p.count, thread, used, loss_block),
                    [&](const block<T>& b, std::int64_t, std::int64_t n) { use(sum, b, n); });
    });
  }
  template <class Sum, class Part>
  Sum& add_all(const Sum& zero, const Part& part, add_function<Sum, T>* add) const {
    return add_blocks(zero, part, [&](Sum& sum, const block<T>& b, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i) add(sum, b, i, k);
    });
  }
};

// The sum of all elements' parts, of one level after the other. What 128 bits leave undecided is added up by keys, where they are few.
template <class Op, class T>
struct sum_attempt {
  const whole<T>& all;

  template <int L>
  num::decided_value<T> operator()() const {
    if constexpr (num::groups_keys<T, Op> && L > 2) {
      const auto part = [](worker& w) -> num::key_groups& { return *w.groups; };
      if constexpr (L == 4) all.add_all(num::key_groups{}, part, add_to_groups<Op, T>);
      const num::key_groups& groups = part(all.workers[0]);
      if (groups.complete) return num::round_parts<T, L>(num::parts_of_groups<Op, L>(all.k, groups), all.k.n);
    }
    using sum = num::parts_sum<T, L>;
    const auto part = [](worker& w) -> sum& { return w.sum_of<sum>(); };
    return num::round_parts<T, L>(all.add_all(sum{}, part, add_parts<Op, T, L>), all.k.n);
  }
};
template <class T>
using decide_sum_function = num::decided_value<T>(const whole<T>& all, int last_tier_bits);
template <class Op, class T>
num::decided_value<T> decide_sum(const whole<T>& all, int last_tier_bits) {
  if constexpr (num::has_parts<Op>) {
    return num::decide_by_levels(sum_attempt<Op, T>{all}, last_tier_bits);
  } else {
    using sum = num::exact_loss_sum<T>;
    const auto part = [](worker& w) -> sum& { return w.sum_of<sum>(); };
    return num::exact_total<Op, T>(all.add_all(sum{}, part, add_exactly<Op, T>), all.k);
  }
}

template <class T>
void run_sum(const whole<T>& all, const loss_kernels::loops& loops, decide_sum_function<T>* decide, int last_tier_bits,
             tally& counted) {
  const plan::loss_plan& p = all.p;
  auto& out = *static_cast<T*>(p.out);
  auto* const groups = reinterpret_cast<num::key_groups*>(all.workers + all.threads);  // or nothing
  for (int t = 0; t < all.threads; ++t) (new (all.workers + t) worker)->groups = groups + t;
  const auto part = [](worker& w) -> num::loss_sum& { return w.sum; };
  const auto add = [&](num::loss_sum& sum, const block<T>& b, std::int64_t n) {
    const loss_partial r = loops.sum(b.in, n, all.k);
    sum.merge({{{r.hi, r.lo}, r.magnitude}, r.error});
  };
  const num::loss_sum& sum = all.add_blocks(num::loss_sum{}, part, add);
  const num::decided_value<T> quick = num::certify_total<T>(sum, height(p.count), all.k);
  if (quick.decided) {
    out = quick.value;
    return counted.add(tier::binary64, 1);
  }
  const num::decided_value<T> r = decide(all, last_tier_bits);
  out = r.value;
  ++(r.decided ? counted.elements[static_cast<int>(tier::exact)] : counted.undecided);
}

class loss_work final : public planned<plan::loss_plan> {
 public:
  loss_work(const plan::loss_plan& plan, const setting& setting) noexcept
      : planned(plan, setting),
        loops_(s.set.loss->of(p.op, p.type)),
        threads_(worthwhile_threads(s.launch.threads, static_cast<double>(p.count),
                                    ops::structured_row_of(p.op).proof == ops::proof_kind::multi_limb ? 10 : 2)) {}

  plan::checked_size bytes() const override {
    if (p.each) return {};
    return plan::checked_size::product(sizeof(worker) + (has_groups(p.op) ? sizeof(num::key_groups) : 0), threads_);
  }

  void run(void* workspace) override {
    ops::for_operation<ops::family::loss>(p.op, [&]<class Op>() {
      ops::for_each_format<Op::out[0].types>([&]<class T>() {
        if (dtype_of<T> == p.type) run_as<Op, T>(workspace);
      });
    });
    s.count.check_decided(s.launch.last_tier_bits);
  }

 private:
  template <class Op, class T>
  void run_as(void* workspace) {
    constexpr bool gradient = ops::is_gradient<Op>;
    const ops::loss_constants k =
        num::make_loss_constants(p.parameter, p.divisor, gradient, s.launch.first_tier > tier::binary64);
    if (p.each) return run_elements<T>(std::size(Op::in), decide<Op, T>, k);
    if constexpr (!gradient) {
      tally counted;
      if (p.count == 0) {  // the sum of nothing is +0, the mean of nothing NaN
        *static_cast<T*>(p.out) = num::from_bits<T>(p.divisor == 0 ? num::format<T>::nan : num::storage_of<T>{0});
        counted.add(tier::proved, 1);
      } else {
        run_sum(whole<T>{p, std::size(Op::in), k, threads_, static_cast<worker*>(workspace)}, loops_, decide_sum<Op, T>,
                s.launch.last_tier_bits, counted);
      }
      s.count.add(counted);
    }
  }

  template <class T>
  void run_elements(std::size_t operands, decide_function<T>* decide, const ops::loss_constants& k) {
    parallel(threads_, [&](int thread, int used) {
      tally counted;
      run_each(p, operands, loops_, decide, k, s.launch.last_tier_bits, share(p.count, thread, used, loss_block),
               counted);
      s.count.add(counted);
    });
  }

  const loss_kernels::loops loops_;
  const int threads_;
};

}  // namespace

void prepare(const plan::loss_plan& p, const setting& s, dispatch::task& t) noexcept { t.emplace<loss_work>(p, s); }

}  // namespace repdl::cpu
