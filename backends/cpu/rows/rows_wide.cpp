// Rows of binary64 (librepdl/ops/rows/wide_rule.hpp): wide numbers, then multi-limb balls or exact sums, by plain loops over one row at a time.
// Threads share the rows, or, where there are fewer rows than threads, each row.
#include <algorithm>
#include <tuple>

#include "backends/cpu/core/parallel.hpp"
#include "backends/cpu/rows/rows_places.hpp"
#include "librepdl/ops/rows/norm_binary64.hpp"
#include "librepdl/ops/rows/softmax_binary64.hpp"

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
  alignas(16) unsigned char sums[112];
};

template <class Rule>
class wide_rows {
  using sums = typename Rule::template late<arithmetic>;
  static_assert(sizeof(sums) <= sizeof(wide_part::sums) && std::is_trivially_copyable_v<sums>);
  static constexpr int elements = num::elements_of<Rule>;
  static constexpr bool looks = Rule::look == num::row_look::greatest;
  static constexpr int first_result = Rule::per_element ? 1 : 0;

 public:
  wide_rows(const plan::row_plan& p, const dispatch::launch& launch, wide_part* parts) noexcept
      : p_(p), launch_(launch), parts_(parts) {}

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
      if (!what.fills) add(at, {0, p_.length}, given.top, part);
      writer all(*this, at, given, what, part);
      if constexpr (Rule::per_element) all.write({0, p_.length}, count);
      all.write_results(count);
    }
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
      by_all([&](int thread, range mine) { add(at, mine, given.top, parts_[thread]); });
      sums s = sums_in(parts_[0]);
      for (int t = 1; t < team; ++t) s.merge(sums_in(parts_[t]));
      put(s, whole);
    }
    if constexpr (Rule::per_element) {
      by_all([&](int thread, range mine) { writer(*this, at, given, what, whole).write(mine, counts[thread]); });
    }
    writer(*this, at, given, what, whole).write_results(counts[0]);
  }

 private:
  // NaN where one is.
  static double greater(double a, double b) noexcept { return a != a || a > b ? a : b; }
  static sums sums_in(const wide_part& part) noexcept {
    sums s;
    __builtin_memcpy(&s, part.sums, sizeof s);
    return s;
  }
  static void put(const sums& s, wide_part& part) noexcept { __builtin_memcpy(part.sums, &s, sizeof s); }

  double number(int input, std::int64_t at) const noexcept { return static_cast<const double*>(p_.in[input])[at]; }
  num::wide_row_given given_of(const row_place& at) const noexcept {
    using in = num::row_inputs;
    constexpr in i = Rule::inputs;
    num::wide_row_given r{p_.length, p_.eps, p_.momentum, i.element[2] > 0 && operand<Rule>(p_, 2) != nullptr};
    if constexpr (i.g >= 0) r.g = number(i.g, at.g);
    if constexpr (i.top >= 0) {
      r.top = number(i.top, at.top);
    } else if (Rule::look == num::row_look::first && p_.length != 0) {
      r.top = number(i.element[0], at.x[0]);
    }
    for (int k = 0; k < num::formers_of<Rule>; ++k) r.former[k] = number(i.former[k], at.former[k]);
    return r;
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
  const double* row_of(const row_place& at, int k) const noexcept {
    const void* const x = operand<Rule>(p_, k);
    return x == nullptr ? &absent.of[k] : static_cast<const double*>(x) + at.x[k];
  }
  // f(elements of the first N operands) for every place of a part of a row.
  template <int N, class F>
  void over(const row_place& at, range r, const F& f) const noexcept {
    [&]<int... K>(std::integer_sequence<int, K...>) {
      const double* const from[] = {row_of(at, K)...};
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
  Sums sums_of(const row_place& at, range r, double top) const noexcept {
    Sums s;
    s.start(top);
    if constexpr (Rule::has_sums) over<Rule::summed>(at, r, [&](auto... x) { s.add(x...); });
    return s;
  }
  void add(const row_place& at, range r, double top, wide_part& to) const noexcept {
    if (launch_.first_tier <= tier::double_double) put(sums_of<sums>(at, r, top), to);
  }

  // The outputs of a row, by one worker.
  class writer {
   public:
    writer(const wide_rows& rows, const row_place& at, const num::wide_row_given& given, const num::row_class64& what,
           const wide_part& of_row) noexcept
        : rows_(rows), at_(at), given_(given), what_(what), sums_(sums_in(of_row)) {}

    // Those of elements.
    void write(range r, tally& count) noexcept {
      double* const out = static_cast<double*>(rows_.p_.out[0]) + at_.out[0];
      walk<1> w = along_row(rows_.p_, rows_.p_.out_stride[0].reduced, r.begin);
      rows_.template over<elements>(at_, r, [&](auto... x) {
        const double all[] = {x...};
        out[w.offset(0)] = output(all, 0, count);
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
      if (launch.first_tier <= tier::double_double) {
        v = Rule::template settle<arithmetic>(given_, sums_, x, number);
      }
      count.add(tier::double_double, v.decided ? 1 : 0);
      if (v.decided) return v.value;
      const auto level = [&]<int Limbs>() {
        const auto& all = late_.template at<Limbs>([&]<class Sums>() {
          return rows_.template sums_of<Sums>(at_, {0, rows_.p_.length}, given_.top);
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

    const wide_rows& rows_;
    const row_place& at_;
    const num::wide_row_given& given_;
    const num::row_class64& what_;
    const sums sums_;
    late_sums<Rule> late_;
  };

  const plan::row_plan& p_;
  const dispatch::launch& launch_;
  wide_part* parts_;
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
    with_rule([&]<class Rule>() {
      const wide_rows<Rule> all(p, s.launch, parts);
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
      if constexpr (num::has_wide_rule<Op::id>) f.template operator()<num::wide_rule<Op::id>>();
    });
  }

  const int threads_;
  const bool is_shared_;
};

}  // namespace

void prepare_wide(const plan::row_plan& p, const setting& s, dispatch::task& t) noexcept { t.emplace<wide_work>(p, s); }

}  // namespace repdl::cpu
