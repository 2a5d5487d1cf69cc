// Interpolation: rows of one plane at a time. Compiled once per instruction set.
#include "backends/cpu/interpolation/interpolation.hpp"
#include "librepdl/num/format.hpp"
#include "librepdl/ops/sums/interpolation.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

using std::int64_t;

constexpr int64_t width = 256;  // columns that are added up at once
constexpr int64_t layers = 8;   // of terms along a row; elements of more are added up one by one

using tables_of_axes = plan::interpolation_table[3];

template <class T>
class rows_of_plane {
 public:
  rows_of_plane(const plan::interpolation_plan& whole, const tables_of_axes& tables, int64_t sample, int64_t channel,
                tier first, tally& to)
      : p(whole),
        t(tables),
        in(static_cast<const T*>(p.in) + sample * p.in_stride[0] + channel * p.in_stride[1]),
        out(static_cast<T*>(p.out) + sample * p.out_stride[0] + channel * p.out_stride[1]),
        stride{p.in_stride[2], p.in_stride[3], p.in_stride[4]},
        counted(to),
        first_force(first > tier::binary64 ? num::infinity : 0.0),
        second_force(first > tier::double_double ? num::infinity : 0.0) {
    for (const auto& x : p.axis) denominator *= num::denominator_of(x);
  }

  void run(int64_t begin, int64_t end) {
    const int64_t columns = p.length(2), height = p.length(1);
    for (int64_t left = 0; left < columns; left += width) {
      const int64_t n = columns - left < width ? columns - left : width;
      const int64_t depth = std::is_same_v<T, double> ? layers + 1 : depth_of(left, n);
      if (depth <= layers) fill(left, n, depth);
      for (int64_t row = begin; row < end; ++row) {
        int64_t o[3] = {row / height, row % height, left};
        T* const to = out + o[0] * p.out_stride[2] + o[1] * p.out_stride[3] + left * p.out_stride[4];
        if (depth <= layers) {
          side_by_side(o, n, depth, to);
          continue;
        }
        for (int64_t j = 0; j < n; ++j, ++o[2]) {
          if constexpr (!std::is_same_v<T, double>) {
            const auto r = num::interpolated(t, o, in, stride, denominator, first_force);
            if (r.decided) {
              to[j * p.out_stride[4]] = r.value;
              continue;
            }
          }
          to[j * p.out_stride[4]] = later(o);
        }
      }
      counted.elements[static_cast<int>(is_wide ? tier::double_double : tier::binary64)] += (end - begin) * n;
    }
  }

 private:
  static constexpr bool is_wide = std::is_same_v<T, double>;

  const plan::interpolation_plan& p;
  const tables_of_axes& t;
  const T* const in;
  T* const out;
  const int64_t stride[3];
  tally& counted;
  const double first_force, second_force;
  double denominator = 1;
  // Of each column of a block: where its terms along a row are, and their numerators; 0 where it has no more.
  int64_t at[layers * width];
  double numerators[layers * width];

  int64_t depth_of(int64_t left, int64_t n) const {
    int64_t most = 0;
    for (int64_t j = left; j < left + n; ++j) {
      const int64_t terms = num::end_of_terms(t[2], j) - num::first_term(t[2], j);
      most = terms > most ? terms : most;
    }
    return most;
  }
  void fill(int64_t left, int64_t n, int64_t depth) {
    for (int64_t j = 0; j < n; ++j) {
      const int64_t first = num::first_term(t[2], left + j), end = num::end_of_terms(t[2], left + j);
      for (int64_t k = 0; k < depth; ++k) {
        const bool is_term = first + k < end;
        at[k * width + j] = is_term ? (first + k) * stride[2] : first < end ? first * stride[2] : 0;
        numerators[k * width + j] = is_term ? num::numerator_at(t[2], left + j, first + k) : 0;
      }
    }
  }

  // The first tier of n elements of a row from o on. Absent terms are zeros here: times an infinity NaN, which is left to the later tiers.
  void side_by_side(int64_t (&o)[3], int64_t n, int64_t depth, T* to) {
    double sum[width], magnitude[width];
    for (int64_t j = 0; j < n; ++j) sum[j] = magnitude[j] = 0;
    double terms = 0;
    for (int64_t z = num::first_term(t[0], o[0]); z < num::end_of_terms(t[0], o[0]); ++z) {
      const double wz = num::numerator_at(t[0], o[0], z);
      if (wz == 0) continue;
      for (int64_t y = num::first_term(t[1], o[1]); y < num::end_of_terms(t[1], o[1]); ++y) {
        const double w = wz * num::numerator_at(t[1], o[1], y);
        if (w == 0) continue;
        const T* const row = in + z * stride[0] + y * stride[1];
        terms += static_cast<double>(depth);
        for (int64_t k = 0; k < depth; ++k) {
          const int64_t* const places = at + k * width;
          const double* const weights = numerators + k * width;
          for (int64_t j = 0; j < n; ++j) {
            const double v = w * weights[j] * num::widen(row[places[j]]);
            sum[j] += v;
            magnitude[j] += num::magnitude_of(v);
          }
        }
      }
    }
    for (int64_t j = 0; j < n; ++j, ++o[2]) {
      const auto r =
          num::certify_interpolated<T>(sum[j], num::interpolation_bound(terms, magnitude[j]), denominator, first_force);
      to[j * p.out_stride[4]] = r.decided ? r.value : later(o);
    }
  }

  // What the first tier left, one element.
  __attribute__((noinline)) T later(const int64_t (&o)[3]) {
    constexpr tier first = is_wide ? tier::double_double : tier::binary64;
    if (p.common != 0) {
      const auto r = num::interpolated_twice(t, o, in, stride, p.common, second_force);
      if (r.decided) {
        count(first, tier::double_double);
        return r.value;
      }
    }
    count(first, tier::exact);
    return num::interpolated_exactly(p.axis, t, o, in, stride);
  }
  void count(tier from, tier to) {
    --counted.elements[static_cast<int>(from)];
    ++counted.elements[static_cast<int>(to)];
  }
};

void run(const plan::interpolation_plan& p, const tables_of_axes& tables, int64_t sample, int64_t channel,
         int64_t begin, int64_t end, tier first, tally& counted) noexcept {
  ops::for_each_format<ops::FLOATS>([&]<class T>() {
    if (dtype_of<T> == p.type) rows_of_plane<T>(p, tables, sample, channel, first, counted).run(begin, end);
  });
}

}  // namespace

extern const interpolation_kernels interpolation_table = {run};

}  // namespace repdl::cpu::REPDL_ISA
