// The end of a convolution's tile: norms and lattices of its rows and columns, the rounding test, results and marks.
// The bound is derived in conv_product.cu.
#pragma once

#include "backends/cuda/product/conv_tile.cuh"
#include "backends/cuda/product/line_summary.cuh"
#include "librepdl/num/sums.hpp"

namespace repdl::cuda::conv {

// Squares in binary32, away from the unit that the matrix instruction uses.
using lane_of_line = lane_summary<float, common_lattice>;
using summary = line_summary<common_lattice>;
static_assert(sizeof(summary) == 2 * sizeof(double));  // of schedule::partial_summary

// What the last step knows of the tile's lines: rows, then columns.
struct line_results : line_bounds {
  place* out;   // y = nowhere: not there
  float* bias;  // of rows
};

// Whether none of a line's terms is absent: they reach over a box of coordinates.
__device__ __noinline__ inline bool always_present(const view& v, bool of_a, std::int64_t line) {
  const std::int64_t outer = v.k / (v.term.d2 * v.term.d3);
  const std::int64_t sizes[3] = {v.term.d1 == 0 ? outer : v.term.d1, v.term.d2, v.term.d3};  // with coordinates
  const operand& t = of_a ? v.a : v.b;
  const index4 n = (of_a ? v.row : v.col).split(line);
  std::int64_t low[2] = {t.outer.y_at(n) + t.inner.y0, t.outer.x_at(n) + t.inner.x0};
  std::int64_t high[2] = {low[0], low[1]};
  for (int i = 0; i < 3; ++i) {
    const std::int64_t reach[2] = {t.inner.y[i + 1] * (sizes[i] - 1), t.inner.x[i + 1] * (sizes[i] - 1)};
    for (int d = 0; d < 2; ++d) (reach[d] < 0 ? low : high)[d] += reach[d];
  }
  return low[0] >= 0 && high[0] < t.h && low[1] >= 0 && high[1] < t.w;
}

// Fills in what finish_rows needs besides norm and lsb. By all threads of a block.
template <class T, class Out>
__device__ void describe_lines(const view& v, std::int64_t row0, std::int64_t col0, const line_results& to) {
  for (int i = static_cast<int>(threadIdx.x); i < T::lines; i += static_cast<int>(blockDim.x)) {
    if (i < T::rows) {
      const std::int64_t row = row0 + i;
      const bool inside = row < v.m;
      to.out[i] = inside ? outer_place<Out>(v.out, v.result, v.row.split(row)) : absent_place();
      to.bias[i] = inside && v.bias != nullptr ? v.bias_of<float>(row) : 0.0f;
    } else {
      const std::int64_t col = col0 + (i - T::rows);
      const bool inside = col < v.n;
      to.out[i] = inside ? inner_place<Out>(v.out, v.col.split(col)) : absent_place();
    }
  }
}

// An output that the plain test left undecided: with the lattice rule, and infinities and NaN.
template <class Out>
__device__ __noinline__ num::decided_value<Out> reconsider(const view& v, std::int64_t row, std::int64_t col, double s,
                                                           double bound, double size, int lsb) {
  num::decided_value<Out> result = num::certify<Out>(s, num::lattice_holds(size, lsb) ? 0.0 : bound);
  if (!num::is_finite(s)) result.decided = always_present(v, true, row) && always_present(v, false, col);
  return result;
}

// The last step for rows first .. first + count - 1 of every lane: bias, rounding test, results, list or bitmap.
// Returns the number of outputs decided. `sums`: this lane's; sum n of row q lies (2 n + q % 2) `stride` after its
// pair's. (The usual path is short, without branches and in a loop: it runs once, and the warps wait for its
// instructions.)
template <class T, class Out>
__device__ int finish_rows(const problem& p, const view& v, const line_results& lines, std::int64_t product,
                           std::int64_t row0, std::int64_t col0, int warp_row, int warp_col, int first, int count,
                           std::int64_t height, const double2* sums, int stride) {
  const int g = lane_of_thread() / 4;
  const int t = lane_of_thread() % 4;
  const bool forced = p.first_tier > tier::binary64;
  const double slope = static_cast<double>(height + 8) * 0x1p-53;
  const double bias_slope = v.bias != nullptr ? 0x1p-51 : 0.0;
  const bool everywhere = v.out.h == 1 && v.out.w == 1;
  const limits in{static_cast<unsigned>(v.out.h), static_cast<unsigned>(v.out.w)};
  constexpr int V = T::col_vector;
  constexpr int width = 2 * V;  // a lane's columns side by side
  int decided = 0;
#pragma unroll 1
  for (int part = 0; part < T::n_tiles / V; ++part) {
    const int beside = warp_col + part * 8 * V + t * width;
    const place* const columns = lines.out + T::rows + beside;
    const std::int64_t to = columns[0].address;
    double norm_b[width];
    unsigned exist = 0;
    bool side_by_side = V == 4;
#pragma unroll
    for (int e = 0; e < width; ++e) {
      norm_b[e] = lines.norm[T::rows + beside + e];
      if (columns[e].y != nowhere) exist |= 1u << e;
      side_by_side = side_by_side && columns[e].address == to + static_cast<int>(sizeof(Out)) * e;
    }
    side_by_side = side_by_side && exist == (1u << width) - 1;
#pragma unroll 1
    for (int q = first; q < first + count; ++q) {
      const int line = warp_row + T::row(q, g);
      const std::int64_t row = row0 + line;
      const double2* const row_sums = sums + ((q - first) / 2 * 2 * T::n_tiles + q % 2 + part * 2 * V) * stride;
      const place out = load_place(lines.out + line);
      const double slope_a = slope * lines.norm[line];  // dot_bound(H + 4, ...) = slope_a * norm_b
      const double c = static_cast<double>(lines.bias[line]);
      const auto sum_and_bound = [&](int e, double norm, double& bound) {
        const double2 both = row_sums[e % V * 2 * stride];
        const double s = e / V == 0 ? both.x : both.y;
        bound = slope_a * norm + bias_slope * (fabs(s) + fabs(c));
        return s + c;
      };
      Out value[width];
      unsigned good = 0;
#pragma unroll
      for (int e = 0; e < width; ++e) {
        double bound;
        const double s = sum_and_bound(e, norm_b[e], bound) + 0.0;
        const num::decided_value<Out> result =
            num::same_bits(num::rounded<Out>(s - bound), num::rounded<Out>(s + bound));
        value[e] = result.value;
        good |= result.decided ? 1u << e : 0u;
      }
      unsigned there = out.y == nowhere ? 0u : exist;
      if (!everywhere) {
        for (int e = 0; e < width; ++e) {
          if (!in.present(out, columns[e])) there &= ~(1u << e);
        }
      }
      // An undecided output is written too: the repair comes later.
      if (side_by_side && there == exist && (out.address + to) % 16 == 0) {
        auto* const sixteen = reinterpret_cast<uint4*>(out.address + to);
        if constexpr (V == 4) {
          uint4 bytes[sizeof(value) / 16];
          memcpy(bytes, value, sizeof(value));
#pragma unroll
          for (int i = 0; i < static_cast<int>(sizeof(value) / 16); ++i) sixteen[i] = bytes[i];
        }
      } else {
#pragma unroll
        for (int e = 0; e < width; ++e) {
          if ((there >> e & 1) != 0) *reinterpret_cast<Out*>(out.address + columns[e].address) = value[e];
        }
      }
      unsigned undecided = there & (forced ? ~0u : ~good);
      decided += __popc(there) - __popc(undecided);
      if (undecided != 0) {
        for (unsigned left = forced ? 0 : undecided; left != 0; left &= left - 1) {
          const int e = __ffs(static_cast<int>(left)) - 1;
          const int col_line = T::rows + beside + e;
          double bound;
          const double s = sum_and_bound(e, lines.norm[col_line], bound);
          const double size = lines.norm[line] * lines.norm[col_line] + fabs(c);
          int lsb = lines.lsb[line] + lines.lsb[col_line];
          if (v.bias != nullptr) lsb = min(lsb, num::lsb_exponent(lines.bias[line]));
          const num::decided_value<Out> result = reconsider<Out>(v, row, col0 + beside + e, s, bound, size, lsb);
          if (result.decided) {
            *reinterpret_cast<Out*>(out.address + columns[e].address) = result.value;
            undecided &= ~(1u << e);
            ++decided;
          }
        }
        p.marks.add(undecided, product * p.m + row, col0 + beside);
      }
    }
  }
  return decided;
}

}  // namespace repdl::cuda::conv
