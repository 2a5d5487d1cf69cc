// Nearest neighbours: rows of one plane at a time. Compiled once per instruction set.
#include "backends/cpu/upsample/upsample.hpp"
#include "librepdl/num/format.hpp"
#include "librepdl/ops/sums/upsample.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

using std::int64_t;

constexpr int64_t width = 512;  // columns whose neighbours are found at once

using axis = num::nearest_axis<std::uint64_t, num::plain_division>;
int64_t source(const axis& a, int64_t o) { return static_cast<int64_t>(a.source(static_cast<std::uint64_t>(o))); }
int64_t first(const axis& a, int64_t i) { return static_cast<int64_t>(a.first(static_cast<std::uint64_t>(i))); }

template <class T>
void run_as(const plan::upsample_plan& p, int64_t sample, int64_t channel, int64_t begin, int64_t end, double force,
            tally& counted) {
  const T* const in = static_cast<const T*>(p.in) + sample * p.in_stride[0] + channel * p.in_stride[1];
  T* const out = static_cast<T*>(p.out) + sample * p.out_stride[0] + channel * p.out_stride[1];
  const axis y(p.y), x(p.x);
  const int64_t row = p.in_stride[2], column = p.in_stride[3], columns = p.backward ? p.x.image : p.x.size;
  int64_t later = 0;
  for (int64_t left = 0; left < columns; left += width) {
    const int64_t n = columns - left < width ? columns - left : width;
    int64_t at[width + 1];
    for (int64_t j = 0; j < n; ++j) at[j] = p.backward ? first(x, left + j) : source(x, left + j) * column;
    if (p.backward) at[n] = first(x, left + n);
    for (int64_t i = begin; i < end; ++i) {
      T* const to = out + i * p.out_stride[2] + left * p.out_stride[3];
      if (!p.backward) {
        const T* const from = in + source(y, i) * row;
        for (int64_t j = 0; j < n; ++j) to[j * p.out_stride[3]] = from[at[j]];
        continue;
      }
      const int64_t top = first(y, i), bottom = first(y, i + 1);
      for (int64_t j = 0; j < n; ++j) {
        auto r = num::pixel_sum(in, row, column, top, bottom, at[j], at[j + 1], force);
        if (!r.decided) {
          r.value = num::exact_pixel_sum(in, row, column, top, bottom, at[j], at[j + 1]);
          ++later;
        }
        to[j * p.out_stride[3]] = r.value;
      }
    }
  }
  constexpr tier first_of_sums = std::is_same_v<T, double> ? tier::double_double : tier::binary64;
  counted.elements[static_cast<int>(p.backward ? first_of_sums : tier::proved)] += (end - begin) * columns - later;
  counted.elements[static_cast<int>(tier::exact)] += later;
}

void run(const plan::upsample_plan& p, int64_t sample, int64_t channel, int64_t begin, int64_t end, double force,
         tally& counted) noexcept {
  ops::for_each_format<ops::FLOATS>([&]<class T>() {
    if (dtype_of<T> == p.type) run_as<T>(p, sample, channel, begin, end, force, counted);
  });
}

}  // namespace

extern const upsample_kernels upsample_table = {run};

}  // namespace repdl::cpu::REPDL_ISA
