// The binary64 tier of convolutions and their gradients to the input with few weights for each output, depthwise ones above all, where tiles of the matrix
// instruction would be empty but for a row.
//
// A thread has four outputs one below the other, and adds up their terms in order. Where windows move down by as much as a kernel's rows lie apart, an element
// of the image meets the weight of row r in one output and that of row r - 1 in the next: it is loaded and widened once. The threads of a
// block lie side by side in a picture, or, where channels are innermost in memory, in consecutive channels.
//
// Error: products of 24-bit factors are exact, and each of k <= 256 additions by fma rounds a partial sum, of magnitude at most M (1 + k u), M = sum |a b|,
// u = 2^-53: |s - S| <= k u M (1 + k u). The magnitudes are added up in binary32, rounded up: at least M. So e = (k + 4) u times that; with a bias c,
// + 2u (|s| + |c|). A sum of zeros alone has e = 0: it is +0. Absent terms are zeros here, which is the same unless the other factor is infinite or NaN: then
// the sum of magnitudes is, too, and the later tiers decide, which skip them.
#include "backends/cuda/core/launch.cuh"
#include "backends/cuda/product/conv.hpp"
#include "librepdl/num/certify.hpp"

namespace repdl::cuda::conv {
namespace {

constexpr int threads = 256, each = 4, most_rows = 4, most_terms = 256;
constexpr std::int64_t most_weights = 2048;  // of a block

struct weight {
  double value;
  float size;
};
// Kernel rows of which outputs one below the other share elements: the place of their first one, from that of an output.
struct column {
  std::int64_t offset;
  int y, x;
};

// How kernel rows are shared.
struct sharing {
  int position;   // of the kernel row in a term's index; -1: not at all
  bool backward;  // the last row comes first
  int rows;       // 0: as many as the view has
  int lanes;      // channels that threads side by side have; 1: one
};

__device__ bool inside(std::int64_t x, std::int64_t size) {
  return static_cast<std::uint64_t>(x) < static_cast<std::uint64_t>(size);
}

// The block's columns and weights in shared memory: [row][column][kernel row][lane].
struct tables {
  weight* weights;
  column* columns;
  int count, rows;  // columns, and the kernel rows of each

  __device__ tables(const view& v, const sharing& how) {
    weights = &memory_of_block<weight>();
    const int terms = static_cast<int>(v.k);
    columns = reinterpret_cast<column*>(weights + v.m * terms * how.lanes);
    rows = 1;
    inner = 1;
    if (how.position == 3) rows = static_cast<int>(v.term.d3);
    if (how.position == 2) rows = static_cast<int>(v.term.d2), inner = static_cast<int>(v.term.d3);
    if (how.position == 1) {
      inner = static_cast<int>(v.term.d2 * v.term.d3);
      rows = v.term.d1 != 0 ? static_cast<int>(v.term.d1) : terms / inner;
    }
    count = rows > 0 ? terms / rows : 0;
  }
  __device__ void fill(const view& v, const sharing& how, std::int64_t group_step, int lanes, int tid) const {
    const int terms = static_cast<int>(v.k), all = static_cast<int>(v.m) * terms * how.lanes;
    for (int i = tid; i < count; i += threads) {
      const index4 n = v.term.split(term_of(i, how.backward ? rows - 1 : 0));
      columns[i] = {v.b.inner.offset_at(n), static_cast<int>(v.b.inner.y_at(n)), static_cast<int>(v.b.inner.x_at(n))};
    }
    for (int i = tid; i < all; i += threads) {
      const int lane = i % how.lanes, place = i / how.lanes % terms, r = place % rows;
      const index4 row = v.row.split(i / how.lanes / terms),
                   n = v.term.split(term_of(place / rows, how.backward ? rows - 1 - r : r));
      const bool is_there = lane < lanes && inside(v.a.outer.y_at(row) + v.a.inner.y_at(n), v.a.h) &&
                            inside(v.a.outer.x_at(row) + v.a.inner.x_at(n), v.a.w);
      const float a = is_there ? static_cast<const float*>(
                                     v.a.data)[v.a.outer.offset_at(row) + v.a.inner.offset_at(n) + lane * group_step]
                               : 0.0f;
      weights[i] = {static_cast<double>(a), fabsf(a)};
    }
  }

 private:
  int inner;
  __device__ int term_of(int i, int r) const { return (i / inner * rows + r) * inner + i % inner; }
};

struct sums {
  double value[each] = {};
  float size[each] = {};

  __device__ void add(int i, const weight& a, float b) {
    value[i] = num::fma(a.value, static_cast<double>(b), value[i]);
    size[i] = __fmaf_ru(a.size, fabsf(b), size[i]);
  }
};

// Elements of the image one below the other, from a thread's first on: 0 outside.
struct elements {
  const float* at;
  std::int64_t step;
  int y, step_y;
  unsigned height;  // 0: all are outside
  __device__ float next() {
    const float b = static_cast<unsigned>(y) < height ? *at : 0.0f;
    at += step;
    y += step_y;
    return b;
  }
};

// Of a column's kernel rows; `stride`: from one weight to the next.
template <int Rows>
__device__ void add_column(sums& s, elements from, const weight* weights, int stride, int rows) {
  if constexpr (Rows > 0) {
#pragma unroll
    for (int j = 0; j < each + Rows - 1; ++j) {
      const float b = from.next();
#pragma unroll
      for (int i = 0; i < each; ++i) {
        if (j >= i && j - i < Rows) s.add(i, weights[(j - i) * stride], b);
      }
    }
  } else {
    weight near[each] = {};  // those that the last elements met first, by the element's number modulo `each`
    for (int first = 0; first < each + rows - 1; first += each) {
#pragma unroll
      for (int j = 0; j < each; ++j) {
        near[j] = first + j < rows ? weights[(first + j) * stride] : weight{};
        const float b = first + j < each + rows - 1 ? from.next() : 0.0f;
#pragma unroll
        for (int i = 0; i < each; ++i) s.add(i, near[(j - i) & (each - 1)], b);
      }
    }
  }
}

template <int Rows, class Out>
__global__ void __launch_bounds__(threads, 3)
    direct_kernel(const __grid_constant__ problem p, sharing how, std::int64_t blocks_of_product, counter* counters) {
  alignas(16) __shared__ std::byte memory[sizeof(view)];
  __shared__ int decided_by_block;
  view& v = reinterpret_cast<view&>(memory);
  const int tid = static_cast<int>(threadIdx.x), lane = tid % how.lanes;
  const std::int64_t phases = p.phases_h * p.phases_w, rest = blockIdx.x / blocks_of_product,
                     group = rest / phases * how.lanes, product = group * phases + rest % phases;
  make_view(v, p, product, tid, threads, [] { __syncthreads(); });
  __syncthreads();
  const tables t(v, how);
  const std::int64_t groups = p.groups - group < how.lanes ? p.groups - group : how.lanes;
  t.fill(v, how, p.group_a, static_cast<int>(groups), tid);
  if (tid == 0) decided_by_block = 0;
  __syncthreads();

  const std::int64_t height = v.col.d2, width = v.col.d3, strips = (height + each - 1) / each;
  const std::int64_t item = (blockIdx.x % blocks_of_product * threads + tid) / how.lanes, line = item / width;
  const bool is_here = lane < groups && item < v.n / height * strips;
  const std::int64_t first_y = is_here ? line % strips * each : 0,
                     first = is_here ? (line / strips * height + first_y) * width + item % width : 0;
  const index4 at = v.col.split(first);
  const float* const from = static_cast<const float*>(v.b.data) + v.b.outer.offset_at(at) + lane * p.group_b;
  const int y = static_cast<int>(v.b.outer.y_at(at)), x = static_cast<int>(v.b.outer.x_at(at));
  const auto h = static_cast<unsigned>(v.b.h), w = static_cast<unsigned>(v.b.w);
  const double slope = static_cast<double>(v.k + 4) * 0x1p-53;
  int decided = 0;
  for (int row = 0; row < static_cast<int>(v.m); ++row) {
    sums s;
    const weight* weights = t.weights + row * t.count * t.rows * how.lanes + lane;
    for (int i = 0; i < t.count; ++i) {
      const column c = t.columns[i];
      const elements b{from + c.offset, v.b.outer.offset[2], y + c.y, static_cast<int>(v.b.outer.y[2]),
                       is_here && static_cast<unsigned>(x + c.x) < w ? h : 0u};
      add_column<Rows>(s, b, weights, how.lanes, t.rows);
      weights += t.rows * how.lanes;
    }
    const index4 r = v.row.split(row);
    const bool has_bias = v.bias != nullptr && lane < groups;
    const double c = has_bias ? static_cast<double>(static_cast<const float*>(
                                    v.bias)[v.bias_first + lane * p.group_bias + row * v.bias_stride])
                              : 0.0;
    Out* const to = static_cast<Out*>(v.result) + v.out.outer.offset_at(r) + lane * p.group_out;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      index4 place = at;
      place.i[2] += i;
      const bool is_there = is_here && first_y + i < height &&
                            inside(v.out.outer.y_at(r) + v.out.inner.y_at(place), v.out.h) &&
                            inside(v.out.outer.x_at(r) + v.out.inner.x_at(place), v.out.w);
      if (!is_there) continue;
      const double value = (s.value[i] + c) + 0.0;
      const double bound = slope * static_cast<double>(s.size[i]) +
                           (has_bias ? 0x1p-52 * (num::magnitude_of(s.value[i]) + num::magnitude_of(c)) : 0.0);
      const num::decided_value<Out> result = num::certify<Out>(value, bound);
      to[v.out.inner.offset_at(place)] = result.value;
      if (result.decided && bound < 0x1p1000 && p.first_tier <= tier::binary64) {
        ++decided;
      } else {
        p.marks.add(1u, (product + lane * phases) * p.m + row, first + i * width);
      }
    }
  }
  decided = __reduce_add_sync(full_warp, decided);
  if (lane_of_thread() == 0) atomicAdd(&decided_by_block, decided);
  __syncthreads();
  if (tid == 0) count_elements(counters, tier::binary64, decided_by_block);
}

std::int64_t magnitude(std::int64_t x) { return x < 0 ? -x : x; }

// Of rows of an image that are as far apart as rows of the kernel.
sharing plan_sharing(const problem& p) {
  const view& v = p.base;
  sharing how{-1, false, 1, 1};
  const int row = p.position[1];
  const std::int64_t down = v.b.outer.y[2], kernel_down = v.b.inner.y[row];
  if (down != 0 && magnitude(down) == magnitude(kernel_down)) {
    how = {row, down != kernel_down, 0, 1};
    if (!p.phased) {
      const std::int64_t below = row == 3 ? 1 : row == 2 ? v.term.d3 : v.term.d2 * v.term.d3;
      const std::int64_t rows = row == 3 ? v.term.d3 : row == 2 ? v.term.d2 : v.term.d1 != 0 ? v.term.d1 : p.k / below;
      if (rows == 1 || rows == 3 || rows == 5 || rows == 7) how.rows = static_cast<int>(rows);
    }
  }
  if (p.group_b == 1 && p.group_out == 1) {
    while (how.lanes < 32 && how.lanes < p.groups && p.m * p.k * how.lanes * 2 <= most_weights) how.lanes *= 2;
  }
  return how;
}

}  // namespace

bool is_direct(const problem& p) { return p.m <= most_rows && p.k > 0 && p.k <= most_terms && p.position[1] != 0; }

void run_direct(const problem& p, const job& j) {
  const sharing how = plan_sharing(p);
  const view& v = p.base;
  const std::int64_t height = p.phased ? ceil_div(p.axis_h.size, p.axis_h.stride) : v.col.d2,
                     width = p.phased ? ceil_div(p.axis_w.size, p.axis_w.stride) : v.col.d3;
  const std::int64_t images = ceil_div(p.n, height * width),
                     blocks = ceil_div(images * ceil_div(height, std::int64_t{each}) * width * how.lanes,
                                       std::int64_t{threads});
  const std::size_t bytes =
      static_cast<std::size_t>(p.m * p.k * how.lanes) * sizeof(weight) + static_cast<std::size_t>(p.k) * sizeof(column);
  with_result(p, [&]<class Out>() {
    if constexpr (sizeof(Out) < 8) {
      const auto launch = [&]<int Rows>() {
        launch_kernel<direct_kernel<Rows, Out>>(
            j, ceil_div(p.groups, std::int64_t{how.lanes}) * p.phases_h * p.phases_w * blocks, threads, bytes, p, how,
            blocks, j.counters);
      };
      switch (how.rows) {
        case 1:
          return launch.template operator()<1>();
        case 3:
          return launch.template operator()<3>();
        case 5:
          return launch.template operator()<5>();
        case 7:
          return launch.template operator()<7>();
        default:
          return launch.template operator()<0>();
      }
    }
  });
}

}  // namespace repdl::cuda::conv
