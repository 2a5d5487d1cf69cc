// The driver of prefixes (librepdl/ops/scans/prefix.hpp): threads share the lines. What a line's loop leaves undecided is decided here, in
// more bits.
#include "backends/cpu/scan/scan.hpp"

#include "backends/cpu/core/parallel.hpp"
#include "backends/cpu/core/walk.hpp"
#include "librepdl/ops/formats.hpp"
#include "librepdl/ops/scans/prefix.hpp"

namespace repdl::cpu {
namespace {

using namespace REPDL_ISA;
using std::int64_t;

template <class Prefix, class T>
class rest_of_line final : public scan_rest {
 public:
  rest_of_line(const plan::scan_plan& p, const T* in, T* out, int bits, tally& counted) noexcept
      : p_(p), in_(in), out_(out), bits_(bits), counted_(counted) {}

  void decide(int64_t i) noexcept override {
    const auto r = late_.decide([this](int64_t k) { return element(k); }, i + 1, bits_);
    out_[p_.has_each() ? i * p_.out_step : 0] = r.value;
    counted_.add(tier::exact, r.decided ? 1 : 0);
    counted_.undecided += r.decided ? 0 : 1;
  }

 private:
  double element(int64_t i) const noexcept {
    if (p_.reduced_rank == 1) return num::widen(in_[i * p_.in_reduced_stride[0]]);
    return num::widen(in_[walk<1>(p_.reduced_rank, p_.reduced_shape, {&p_.in_reduced_stride}, i).offset(0)]);
  }

  const plan::scan_plan& p_;
  const T* const in_;
  T* const out_;
  const int bits_;
  tally& counted_;
  typename num::late_states<Prefix, T, 2, 4, 8, 16, 32>::type late_;
};

// What an element takes, in nanoseconds (bench/thread_estimates.cpp).
double element_time(const plan::scan_plan& p) noexcept {
  if (!ops::is_floating(p.type)) return 1.2;
  return p.op == ops::op_id::cumsum ? 7 : p.op == ops::op_id::logcumsumexp ? 280 : 20;
}

class scan_work final : public planned<plan::scan_plan> {
 public:
  using planned::planned;

  void run(void*) override {
    const double elements = static_cast<double>(p.lines) * static_cast<double>(std::max<int64_t>(p.length, 1));
    parallel(worthwhile_threads(s.launch.threads, elements, element_time(p)), [&](int thread, int workers) {
      tally counted;
      const range mine = share(p.lines, thread, workers);
      if (!ops::is_floating(p.type)) integer_lines(mine, counted);
      ops::for_each_format<ops::FLOATS>([&]<class T>() {
        if (dtype_of<T> != p.type) return;
        switch (p.op) {
          case ops::op_id::cumsum:
            return lines<num::sum_prefix<T>, T>(mine, counted);
          case ops::op_id::logcumsumexp:
            return lines<num::exponential_prefix<T>, T>(mine, counted);
          default:  // prod, cumprod
            return lines<num::product_prefix<T>, T>(mine, counted);
        }
      });
      s.count.add(counted);
    });
    s.count.check_decided(s.launch.last_tier_bits);
  }

 private:
  // f(in, out), the first elements of each line.
  template <class T, class Out, class F>
  void each_line(range mine, const F& f) const {
    walk<2> at(p.kept_rank, p.kept_shape, {&p.in_kept_stride, &p.out_kept_stride}, mine.begin);
    for (int64_t line = mine.begin; line < mine.end && !stopped(); ++line, at.advance(1)) {
      f(static_cast<const T*>(p.in) + at.offset(0), static_cast<Out*>(p.out) + at.offset(1));
    }
  }
  template <class Prefix, class T>
  void lines(range mine, tally& counted) const {
    const bool by_first = s.launch.first_tier <= tier::double_double;
    each_line<T, T>(mine, [&](const T* in, T* out) {
      rest_of_line<Prefix, T> rest(p, in, out, s.launch.last_tier_bits, counted);
      s.set.scan->run(p, in, out, by_first, rest, counted);
    });
  }
  void integer_lines(range mine, tally& counted) const {
    ops::for_each_format<ops::INTEGERS>([&]<class T>() {
      if (dtype_of<T> != p.type) return;
      each_line<num::element_of<T>, int64_t>(
          mine, [&](const void* in, void* out) { s.set.scan->run_integers(p, in, out, counted); });
    });
  }
};

}  // namespace

void prepare(const plan::scan_plan& p, const setting& s, dispatch::task& t) noexcept { t.emplace<scan_work>(p, s); }

}  // namespace repdl::cpu
