// Prefixes: one line at a time, in double-doubles. Compiled once per instruction set.
#include "backends/cpu/core/walk.hpp"
#include "backends/cpu/scan/scan.hpp"
#include "librepdl/ops/formats.hpp"
#include "librepdl/ops/scans/prefix.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

// The elements of a line, each once.
template <class T>
class line_reader {
 public:
  line_reader(const plan::scan_plan& p, const void* in) noexcept
      : in_(static_cast<const T*>(in)), at_(p.reduced_rank, p.reduced_shape, {&p.in_reduced_stride}, 0) {}
  T next() noexcept {
    const T x = in_[at_.offset(0)];
    at_.advance(1);
    return x;
  }

 private:
  const T* const in_;
  walk<1> at_;
};

template <class Prefix, class T>
void run_as(const plan::scan_plan& p, const void* in, T* out, bool by_first, scan_rest& rest, tally& counted) {
  line_reader<T> line(p, in);
  const auto read = [&](std::int64_t) { return num::widen(line.next()); };
  std::int64_t special = 0, first = 0;
  const auto write = [&](std::int64_t i, T value, bool is_special) {
    out[p.has_each() ? i * p.out_step : 0] = value;
    ++(is_special ? special : first);
  };
  num::scan_line<Prefix, T>(p.length, p.has_each(), by_first, read, write, [&](std::int64_t i) { rest.decide(i); });
  counted.add(tier::proved, special);
  counted.add(tier::double_double, first);
}

void run(const plan::scan_plan& p, const void* in, void* out, bool by_first, scan_rest& rest, tally& counted) noexcept {
  ops::for_each_format<ops::FLOATS>([&]<class T>() {
    if (dtype_of<T> != p.type) return;
    const auto with = [&]<class Prefix>() { run_as<Prefix, T>(p, in, static_cast<T*>(out), by_first, rest, counted); };
    switch (p.op) {
      case ops::op_id::cumsum:
        return with.template operator()<num::sum_prefix<T>>();
      case ops::op_id::logcumsumexp:
        return with.template operator()<num::exponential_prefix<T>>();
      default:  // prod, cumprod
        return with.template operator()<num::product_prefix<T>>();
    }
  });
}

void run_integers(const plan::scan_plan& p, const void* in, void* out, tally& counted) noexcept {
  ops::for_each_format<ops::INTEGERS>([&]<class T>() {
    if (dtype_of<T> != p.type) return;
    line_reader<num::element_of<T>> line(p, in);
    num::scan_integers(
        p.length, p.has_each(), p.op != ops::op_id::cumsum, [&](std::int64_t) { return line.next(); },
        [&](std::int64_t i, std::int64_t value) {
          static_cast<std::int64_t*>(out)[p.has_each() ? i * p.out_step : 0] = value;
        });
  });
  counted.add(tier::proved, p.has_each() ? p.length : 1);
}

}  // namespace

extern const scan_kernels scan_table = {run, run_integers};

}  // namespace repdl::cpu::REPDL_ISA
