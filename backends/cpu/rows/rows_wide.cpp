// Rows of binary64 (librepdl/ops/rows/wide_rule.hpp): wide numbers, then multi-limb balls or exact sums, by plain loops over one row at a time.
// Threads share the rows, or, where there are fewer rows than threads, each row.
#include <algorithm>
#include <tuple>

#include "backends/cpu/core/parallel.hpp"
#include "backends/cpu/rows/rows_places.hpp"
#include "librepdl/ops/rows/cross_entropy_binary64.hpp"
#include "librepdl/ops/rows/norm_quick.hpp"
#include "librepdl/ops/rows/softmax_binary64.hpp"
#include "librepdl/ops/rows/softmax_quick.hpp"

namespace repdl::cpu {
namespace {

using namespace REPDL_ISA;
using arithmetic = num::wide<double>;

// The sums of a row in balls of every size, each made when it is first asked for.
template <class Rule>
class late_sums {
 public:
  template <int Limbs, class Make>
  const auto& at(const Make& make) {
    using sums = typename Rule::template late<num::ball<Limbs>>;
    auto& s = std::get<of_limbs<Limbs>>(all_);
    if (!s.is_made) s.sums = make.template operator()<sums>();
    s.is_made = true;
    return s.sums;
  }

 private:
  template <int Limbs>
  struct of_limbs {
    typename Rule::template late<num::ball<Limbs>> sums{};
    bool is_made = false;
  };
  std::tuple<of_limbs<2>, of_limbs<4>, of_limbs<8>, of_limbs<16>, of_limbs<32>> all_;
};

// What a worker found of its part of a row.
struct wide_part {
  double top;
  alignas(16) unsigned char sums[144];
};

double number_in(const plan::row_plan& p, int input, std::int64_t at) noexcept {
  return static_cast<const double*>(p.in[input])[at];
}

// What a loss is divided by. NaN outside the classes.
template <class Rule>
num::wide_divisor divisor_of(const plan::row_plan& p) noexcept {
  constexpr int input = Rule::inputs.target, weight = Rule::inputs.element[1];
  num::wide_divisor d;
  const auto* const targets = static_cast<const std::int64_t*>(p.in[input]);
  if (p.reduction != repdl::reduction::mean || targets == nullptr) {
    d.sum.add(p.reduction == repdl::reduction::mean ? static_cast<double>(p.rows) : 1.0);
  } else {
    walk<1> w(p.kept_rank, p.kept_shape, {&p.in_stride[input].kept}, 0);
    for (std::int64_t r = 0; r < p.rows; ++r, w.advance(1)) {
      const std::int64_t t = targets[w.offset(0)];
      if (t == p.ignore_index) continue;
      const bool outside = t < 0 || t >= p.length;
      d.sum.add(p.in[weight] == nullptr ? 1.0
                : outside               ? num::double_of(num::format<double>::nan)
                                        : number_in(p, weight, offset_in_row(p, p.in_stride[weight].reduced, t)));
    }
  }
  d.find_near();
  return d;
}

// An operation's quick rule, or one that is not there.
struct no_quick_rule {
  struct sums {};
  struct numbers {};
};
template <ops::op_id Op>
struct quick_or_none {
  using rule = no_quick_rule;
};
template <ops::op_id Op>
requires num::has_quick_rule<Op>
struct quick_or_none<Op> {
  using rule = num::quick_rule<Op>;
};

template <ops::op_id Op>
class wide_rows {
  using Rule = num::wide_rule<Op>;
  using sums = typename Rule::template late<arithmetic>;
  using quick = typename quick_or_none<Op>::rule;
  static constexpr bool has_quick = num::has_quick_rule<Op>;
  static constexpr int elements = num::elements_of<Rule>;
  static constexpr bool looks = Rule::look == num::row_look::greatest;
  static constexpr int first_result = Rule::per_element ? 1 : 0;

 public:
  wide_rows(const plan::row_plan& p, const dispatch::launch& launch, wide_part* parts,
            const num::wide_divisor* divisor) noexcept
      : p_(p),
        launch_(launch),
        parts_(parts),
        divisor_(divisor),
        is_quick_(has_quick && launch.first_tier <= tier::binary64 && result_type() == dtype::f64),
        is_precise_(p.length > num::most_kept_terms) {}

  // Rows [begin, end) by one worker.
  void rows(range r, tally& count) const noexcept {
    row_places<Rule> places(p_, r.begin);
    for (std::int64_t row = r.begin; row < r.end && !stopped(); ++row, places.advance()) {
      const row_place at = places.here();
      num::wide_row_given given = given_of(at);
      wide_part part = {};
      if constexpr (looks) {
        look(at, {0, p_.length}, part);
        given.top = part.top;
      }
      const num::row_class64 what = Rule::classify(given);
      if (!what.fills) add(at, {0, p_.length}, given, part);
      writer all(*this, at, given, what, part);
      if constexpr (Rule::per_element) all.write({0, p_.length}, count);
      all.write_results(count);
    }
  }
  // The sum over all rows, a loss.
  void total(int threads, tally& count) const noexcept {
    num::wide_row_given call{};
    call.length = p_.length;
    call.divisor = divisor_;
    num::decided64 v{0.0, false};
    if (launch_.first_tier <= tier::double_double) {
      int team = 1;
      parallel(threads, [&](int thread, int used) {
        if (thread == 0) team = used;
        put(total_of<arithmetic>(share(p_.rows, thread, used)), parts_[thread]);
      });
      auto all = taken<typename Rule::template late_total<arithmetic>>(parts_[0]);
      for (int t = 1; t < team; ++t) all.merge(taken<decltype(all)>(parts_[t]));
      v = all.finish(call);
      count.add(tier::double_double, v.decided ? 1 : 0);
    }
    if (!v.decided && !stopped()) {
      const auto level = [&]<int Limbs>() { return total_of<num::ball<Limbs>>({0, p_.rows}).finish(call); };
      v = num::decide_by_levels(level, launch_.last_tier_bits);
      count.add(tier::exact, v.decided ? 1 : 0);
      count.undecided += v.decided ? 0 : 1;
    }
    *static_cast<double*>(p_.out[0]) = v.value;
  }
  // One row by all workers.
  void shared_row(std::int64_t row, int threads, tally* counts) const noexcept {
    const row_place at = row_places<Rule>(p_, row).here();
    int team = 1;
    const auto by_all = [&](const auto& work) {
      parallel(threads, [&](int thread, int used) {
        if (thread == 0) team = used;
        work(thread, share(p_.length, thread, used));
      });
    };
    num::wide_row_given given = given_of(at);
    if constexpr (looks) {
      by_all([&](int thread, range mine) { look(at, mine, parts_[thread]); });
      given.top = parts_[0].top;
      for (int t = 1; t < team; ++t) given.top = greater(given.top, parts_[t].top);
    }
    const num::row_class64 what = Rule::classify(given);
    wide_part whole = {};
    if (!what.fills) {
      by_all([&](int thread, range mine) { add(at, mine, given, parts_[thread]); });
      const auto merged = [&]<class Sums>() {
        Sums s = taken<Sums>(parts_[0]);
        for (int t = 1; t < team; ++t) s.merge(taken<Sums>(parts_[t]));
        put(s, whole);
      };
      with_sums(merged);
    }
    if constexpr (Rule::per_element) {
      by_all([&](int thread, range mine) { writer(*this, at, given, what, whole).write(mine, counts[thread]); });
    }
    writer(*this, at, given, what, whole).write_results(counts[0]);
  }

 private:
  // NaN where one is.
  static double greater(double a, double b) noexcept { return a != a || a > b ? a : b; }
  template <class Sums>
  static Sums taken(const wide_part& part) noexcept {
    Sums s;
    __builtin_memcpy(&s, part.sums, sizeof s);
    return s;
  }
  template <class Sums>
  static void put(const Sums& s, wide_part& part) noexcept {
    static_assert(sizeof(Sums) <= sizeof(wide_part::sums) && std::is_trivially_copyable_v<Sums>);
    __builtin_memcpy(part.sums, &s, sizeof s);
  }

  dtype result_type() const noexcept { return num::any_format<Op> ? p_.out_type[0] : dtype::f64; }
  double number(int input, std::int64_t at) const noexcept { return number_in(p_, input, at); }
  num::wide_row_given given_of(const row_place& at) const noexcept {
    using in = num::row_inputs;
    constexpr in i = Rule::inputs;
    num::wide_row_given r{p_.length, p_.eps, p_.momentum, i.element[2] > 0 && operand<Rule>(p_, 2) != nullptr};
    r.to = result_type();
    if constexpr (i.g >= 0) r.g = number(i.g, at.g);
    if constexpr (i.top >= 0) {
      r.top = number(i.top, at.top);
    } else if (Rule::look == num::row_look::first && p_.length != 0) {
      r.top = number(i.element[0], at.x[0]);
    }
    for (int k = 0; k < num::formers_of<Rule>; ++k) r.former[k] = number(i.former[k], at.former[k]);
    if constexpr (i.target >= 0) find_target(at, r);
    return r;
  }
  void find_target(const row_place& at, num::wide_row_given& r) const noexcept {
    const auto* const targets = static_cast<const std::int64_t*>(p_.in[Rule::inputs.target]);
    r.biased = targets == nullptr;
    r.divisor = divisor_;
    if (r.biased) return;
    r.target = targets[at.target];
    r.is_ignored = r.target == p_.ignore_index;
    if (!r.has_target()) return;
    const auto there = [&](int k) {
      const std::int64_t offset = at.x[k] + offset_in_row(p_, stride_of<Rule>(p_, k).reduced, r.target);
      return operand<Rule>(p_, k) == nullptr ? absent.of[k] : number(Rule::inputs.element[k], offset);
    };
    r.at_target = there(0);
    r.weight = there(1);
  }
  // What stands for an operand that is absent, whose strides are 0, is one number.
  struct absent_numbers {
    double of[num::most_elements];
  };
  static constexpr absent_numbers absent = [] {
    absent_numbers a{};
    for (int k = 0; k < num::most_elements; ++k) a.of[k] = static_cast<double>(Rule::absent[k]);
    return a;
  }();
  // An element operand from a row on.
  struct row_numbers {
    const void* data;
    std::int64_t first;
    dtype type;
    double operator[](std::int64_t i) const noexcept {
      if constexpr (num::any_format<Op>) return num::number_of(type, data, first + i);
      return static_cast<const double*>(data)[first + i];
    }
  };
  row_numbers row_of(const row_place& at, int k) const noexcept {
    const void* const x = operand<Rule>(p_, k);
    return x == nullptr ? row_numbers{&absent.of[k], 0, dtype::f64} : row_numbers{x, at.x[k], type_of<Rule>(p_, k)};
  }
  // f(elements of the first N operands) for every place of a part of a row.
  template <int N, class F>
  void over(const row_place& at, range r, const F& f) const noexcept {
    [&]<int... K>(std::integer_sequence<int, K...>) {
      const row_numbers from[] = {row_of(at, K)...};
      walk<N> w(p_.reduced_rank, p_.reduced_shape, {&stride_of<Rule>(p_, K).reduced...}, r.begin);
      for (std::int64_t j = r.begin; j < r.end; ++j, w.advance(1)) f(from[K][w.offset(K)]...);
    }
    (std::make_integer_sequence<int, N>{});
  }

  void look(const row_place& at, range r, wide_part& to) const noexcept {
    to.top = -num::infinity;
    over<1>(at, r, [&](double x) { to.top = greater(to.top, x); });
  }
  template <class Sums>
  Sums sums_of(const row_place& at, range r, const num::wide_row_given& given) const noexcept {
    Sums s;
    num::start_sums(s, given.top, given);
    if constexpr (Rule::has_sums) over<Rule::summed>(at, r, [&](auto... x) { s.add(x...); });
    return s;
  }
  // f<the sums that a row begins with>(), if there are any.
  template <class F>
  void with_sums(const F& f) const noexcept {
    if constexpr (has_quick) {
      if (is_quick_) return f.template operator()<typename quick::sums>();
    }
    if (launch_.first_tier <= tier::double_double) f.template operator()<sums>();
  }
  void add(const row_place& at, range r, const num::wide_row_given& given, wide_part& to) const noexcept {
    with_sums([&]<class Sums>() {
      if constexpr (has_quick && std::is_same_v<Sums, typename quick::sums>) {
        put(is_precise_ ? quick_sums_of<true>(at, r, given) : quick_sums_of<false>(at, r, given), to);
      } else {
        put(sums_of<Sums>(at, r, given), to);
      }
    });
  }
  template <bool Precise>
  typename quick::sums quick_sums_of(const row_place& at, range r, const num::wide_row_given& given) const noexcept {
    typename quick::sums s;
    s.start(given);
    if constexpr (!Rule::has_sums) return s;
    over<Rule::summed>(at, r, [&](auto... x) {
      const double all[] = {x...};
      s.add(num::quick_term<quick, Precise>(given, all), all);
    });
    return s;
  }
  // Over rows [begin, end), by one worker.
  template <class A>
  auto total_of(range r) const noexcept {
    typename Rule::template late_total<A> all;
    all.start();
    row_places<Rule> places(p_, r.begin);
    for (std::int64_t row = r.begin; row < r.end && !stopped(); ++row, places.advance()) {
      const row_place at = places.here();
      num::wide_row_given given = given_of(at);
      wide_part part = {};
      look(at, {0, p_.length}, part);
      given.top = part.top;
      const num::row_class64 what = Rule::classify(given);
      if (what.fills) {
        all.add_special(what.value);
      } else {
        all.add_row(sums_of<typename Rule::template late<A>>(at, {0, p_.length}, given), given);
      }
    }
    return all;
  }

  // The outputs of a row, by one worker.
  class writer {
   public:
    writer(const wide_rows& rows, const row_place& at, const num::wide_row_given& given, const num::row_class64& what,
           const wide_part& of_row) noexcept
        : rows_(rows), at_(at), given_(given), what_(what) {
      if (what.fills) return;
      if constexpr (has_quick) {
        if (rows.is_quick_) {
          const auto s = taken<typename quick::sums>(of_row);
          quick_sums_ = s;
          numbers_ =
              rows.is_precise_ ? num::quick_numbers<quick, true>(given, s) : num::quick_numbers<quick, false>(given, s);
          return;
        }
      }
      sums_ = taken<sums>(of_row);
      has_sums_ = true;
    }

    // Those of elements.
    void write(range r, tally& count) noexcept {
      walk<1> w = along_row(rows_.p_, rows_.p_.out_stride[0].reduced, r.begin);
      std::int64_t j = r.begin;
      rows_.template over<elements>(at_, r, [&](auto... x) {
        const double all[] = {x...};
        const bool is_exception = Rule::has_exception && j++ == given_.target;
        const double v = output(all, is_exception ? 1 : 0, count);
        num::set_number_of(given_.to, rows_.p_.out[0], at_.out[0] + w.offset(0), v);
        w.advance(1);
      });
    }
    // Those of the row.
    void write_results(tally& count) noexcept {
      for (int k = first_result; k < first_result + Rule::results; ++k) {
        if (rows_.p_.out[k] != nullptr) static_cast<double*>(rows_.p_.out[k])[at_.out[k]] = output(nullptr, k, count);
      }
    }

   private:
    double output(const double* x, int number, tally& count) noexcept {
      if (what_.fills) {
        count.add(tier::proved, 1);
        return what_.value;
      }
      num::decided64 v{0.0, false};
      const dispatch::launch& launch = rows_.launch_;
      if constexpr (has_quick) {
        if (rows_.is_quick_) v = quick_output(x, number);
        count.add(tier::binary64, v.decided ? 1 : 0);
        if (v.decided) return v.value;
      }
      if (launch.first_tier <= tier::double_double) {
        if (!has_sums_) sums_ = rows_.template sums_of<sums>(at_, {0, rows_.p_.length}, given_);
        has_sums_ = true;
        v = Rule::template settle<arithmetic>(given_, sums_, x, number);
      }
      count.add(tier::double_double, v.decided ? 1 : 0);
      if (v.decided) return v.value;
      const auto level = [&]<int Limbs>() {
        const auto& all = late_.template at<Limbs>([&]<class Sums>() {
          return rows_.template sums_of<Sums>(at_, {0, rows_.p_.length}, given_);
        });
        return Rule::template settle<num::ball<Limbs>>(given_, all, x, number);
      };
      if constexpr (Rule::exact_limbs != 0) {
        v = level.template operator()<2>();
      } else {
        v = num::decide_by_levels(level, launch.last_tier_bits);
      }
      count.add(tier::exact, v.decided ? 1 : 0);
      count.undecided += v.decided ? 0 : 1;
      return v.value;
    }

    num::decided64 quick_output(const double* x, int number) const noexcept requires has_quick {
      if constexpr (Rule::per_element) {
        if (number == 0) {
          if (!numbers_.is_known) return {0.0, false};
          const auto element = [&]<bool Precise>() {
            return num::quick_element<quick, Precise>(numbers_, num::quick_term<quick, Precise>(given_, x), x);
          };
          const num::decided64 v = element.template operator()<false>();
          return v.decided || !rows_.is_precise_ ? v : element.template operator()<true>();
        }
      }
      if constexpr (Rule::results != 0) return quick::result(given_, numbers_, quick_sums_, number);
      return {0.0, false};
    }

    const wide_rows& rows_;
    const row_place& at_;
    const num::wide_row_given& given_;
    const num::row_class64& what_;
    typename quick::sums quick_sums_{};
    typename quick::numbers numbers_{};
    sums sums_{};
    bool has_sums_ = false;
    late_sums<Rule> late_;
  };

  const plan::row_plan& p_;
  const dispatch::launch& launch_;
  wide_part* parts_;
  const num::wide_divisor* divisor_;  // of losses
  const bool is_quick_;
  const bool is_precise_;
};

class wide_work final : public planned<const plan::row_plan&> {
 public:
  wide_work(const plan::row_plan& plan, const setting& setting) noexcept
      : planned(plan, setting),
        threads_(
            worthwhile_threads(s.launch.threads, static_cast<double>(p.rows) * static_cast<double>(p.length), 120)),
        is_shared_(p.rows < threads_ && p.length >= 1024 * threads_) {}

  plan::checked_size bytes() const override {
    return plan::checked_size::product(sizeof(wide_part) + sizeof(tally), threads_);
  }
  void run(void* workspace) override {
    auto* const parts = static_cast<wide_part*>(workspace);
    auto* const counts = reinterpret_cast<tally*>(parts + threads_);
    std::fill_n(counts, threads_, tally{});
    with_rule([&]<class Op>() {
      using Rule = num::wide_rule<Op::id>;
      num::wide_divisor divisor;
      if constexpr (Rule::inputs.target >= 0) divisor = divisor_of<Rule>(p);
      const wide_rows<Op::id> all(p, s.launch, parts, &divisor);
      if constexpr (num::is_loss<Rule>) {
        if (p.reduction != repdl::reduction::none) return all.total(threads_, counts[0]);
      }
      if (is_shared_) {
        for (std::int64_t r = 0; r < p.rows && !stopped(); ++r) all.shared_row(r, threads_, counts);
      } else {
        parallel(threads_, [&](int thread, int used) { all.rows(share(p.rows, thread, used), counts[thread]); });
      }
    });
    for (int t = 0; t < threads_; ++t) s.count.add(counts[t]);
    s.count.check_decided(s.launch.last_tier_bits);
  }

 private:
  template <class F>
  void with_rule(const F& f) const {
    ops::for_row_operation(p.op, [&]<class Op>() {
      if constexpr (num::has_wide_rule<Op::id>) f.template operator()<Op>();
    });
  }

  const int threads_;
  const bool is_shared_;
};

}  // namespace

void prepare_wide(const plan::row_plan& p, const setting& s, dispatch::task& t) noexcept { t.emplace<wide_work>(p, s); }

}  // namespace repdl::cpu
