// Sums to places given by indices. Which terms belong to a target is found by counting, with integer atomics; in which order they
// are added is left to chance, and no bit depends on it. The launches do not depend on the data:
//   scatter_clear    zeros
//   scatter_count    the target of each position, and its number among those of the target
//   scatter_scan_*   where the list of each target begins
//   scatter_place    the lists: offsets of slices of the source
//   scatter_sum      a team of lanes for each target and some columns; of each lane num::scatter_terms
//   scatter_parts    of lists that are too long for one team: chunks of all lists, as they lie one behind the other, ...
//   scatter_long     ... and a block for each of those targets, which joins its chunks' sums
//   scatter_settle   what is left undecided: a block for each element adds up integers
// Indices out of range have no target and are counted.
#include "backends/cuda/core/axes.hpp"
#include "backends/cuda/core/launch.cuh"
#include "librepdl/ops/sums/scatter.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = 256;
constexpr int settle_threads = 128;  // of binary64 35 KiB
constexpr int scan_items = 16;       // of a thread
constexpr std::int64_t scan_block = threads * scan_items;
constexpr std::int64_t chunk = 256;           // positions
constexpr std::int64_t longest_list = chunk;  // so that a chunk has terms of two longer lists at most
constexpr int blocks_per_multiprocessor = 8;

template <class T>
using sum_of = num::scatter_terms<T>;
template <class T>
constexpr tier first_tier_of = std::is_same_v<T, double> ? tier::double_double : tier::binary64;
using wide_index = unsigned long long;

struct geometry {
  std::int64_t positions, targets, inner;
  std::int64_t bound, skipped, target_step;
  const std::int64_t* index;
  strided_axes<3> position_axes;  // index, source, number of the target
  strided_axes<2> target_axes;    // out, x
  strided_axes<3> inner_axes;     // source, out, x
  const void* source;
  const void* x;
  void* out;
  num::scatter_formula formula;
  int lanes;  // of a team: a power of 2, at most 32
};

// What is found on the way.
struct notes {
  wide_index long_lists;
  unsigned any_undecided;
};

// Numbers of positions and targets; a target that is none is the greatest number.
template <class I>
struct lists {
  I* targets;  // of positions
  I* numbers;  // among those of the target
  I* begins;   // targets + 1 of them; first the lengths
  I* blocks;   // of the scan
  std::int64_t* offsets;
  I* long_targets;
  std::uint32_t* undecided;
  notes* noted;
};

template <class I>
constexpr I no_target = static_cast<I>(~I{0});

template <class I, int Operands, int N>
__device__ void locate(const strided_axes<Operands>& axes, I at, std::int64_t (&offset)[N]) {
  axes.template locate<0>(at, offset);
}

template <class I>
__global__ void __launch_bounds__(threads)
    scatter_clear(I* begins, std::int64_t targets, std::uint32_t* undecided, std::int64_t words, notes* noted) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  for (std::int64_t i = first; i <= targets; i += step) begins[i] = 0;
  for (std::int64_t i = first; i < words; i += step) undecided[i] = 0;
  if (first == 0) *noted = {0, 0};
}

// Lanes of a warp with one target count it together.
template <class I>
__global__ void __launch_bounds__(threads)
    scatter_count(const __grid_constant__ geometry g, const __grid_constant__ lists<I> l, counter* counters) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  const int lane = lane_of_thread();
  counter bad = 0;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * threads; first < g.positions; first += step) {
    const std::int64_t at = first + threadIdx.x;
    I target = no_target<I>;
    if (at < g.positions) {
      std::int64_t offset[3];
      locate(g.position_axes, static_cast<I>(at), offset);
      const std::int64_t i = g.index[offset[0]];
      const bool good = i >= 0 && i < g.bound;
      bad += good ? 0 : 1;
      if (good && i != g.skipped) target = static_cast<I>(i * g.target_step + offset[2]);
    }
    const unsigned same = __match_any_sync(full_warp, target);
    const int leader = __ffs(static_cast<int>(same)) - 1;
    I number = 0;
    if (lane == leader && target != no_target<I>) number = atomicAdd(l.begins + target, static_cast<I>(__popc(same)));
    number = __shfl_sync(full_warp, number, leader) + static_cast<I>(__popc(same & ((1u << lane) - 1)));
    if (at < g.positions) {
      l.targets[at] = target;
      l.numbers[at] = number;
    }
  }
  if (bad != 0) atomicAdd(counters + bad_index_counter, bad);
}

// The sum of `value` over the threads before this one; *total: over all.
template <class I>
__device__ I sum_before(I value, I* total) {
  __shared__ I of_warps[threads / 32];
  const int lane = lane_of_thread(), warp = static_cast<int>(threadIdx.x) / 32;
  I upto = value;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const I before = __shfl_up_sync(full_warp, upto, d);
    if (lane >= d) upto += before;
  }
  __syncthreads();
  if (lane == 31) of_warps[warp] = upto;
  __syncthreads();
  I before = upto - value;
  *total = 0;
#pragma unroll
  for (int w = 0; w < threads / 32; ++w) {
    if (w < warp) before += of_warps[w];
    *total += of_warps[w];
  }
  return before;
}

template <class I>
__global__ void __launch_bounds__(threads) scatter_scan_sums(const I* lengths, std::int64_t targets, I* blocks) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * scan_block + threadIdx.x;
  I mine = 0;
#pragma unroll
  for (int i = 0; i < scan_items; ++i) {
    if (first + i * threads < targets) mine += lengths[first + i * threads];
  }
  I total = 0;
  sum_before(mine, &total);
  if (threadIdx.x == 0) blocks[blockIdx.x] = total;
}
// One block.
template <class I>
__global__ void __launch_bounds__(threads) scatter_scan_blocks(I* blocks, std::int64_t count, I* whole) {
  I running = 0;
  for (std::int64_t first = 0; first < count; first += threads) {
    const std::int64_t at = first + threadIdx.x;
    I total = 0;
    const I before = sum_before(at < count ? blocks[at] : I{0}, &total);
    if (at < count) blocks[at] = running + before;
    running += total;
  }
  if (threadIdx.x == 0) *whole = running;
}
template <class I>
__global__ void __launch_bounds__(threads)
    scatter_scan_lists(const __grid_constant__ lists<I> l, std::int64_t targets) {
  I running = l.blocks[blockIdx.x];
  for (int i = 0; i < scan_items; ++i) {
    const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * scan_block + i * threads + threadIdx.x;
    const I length = at < targets ? l.begins[at] : I{0};
    I total = 0;
    const I before = sum_before(length, &total);
    if (at < targets) l.begins[at] = running + before;
    if (length > longest_list) l.long_targets[atomicAdd(&l.noted->long_lists, wide_index{1})] = static_cast<I>(at);
    running += total;
  }
}

template <class I>
__global__ void __launch_bounds__(threads)
    scatter_place(const __grid_constant__ geometry g, const __grid_constant__ lists<I> l) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; at < g.positions; at += step) {
    const I target = l.targets[at];
    if (target == no_target<I>) continue;
    std::int64_t offset[3];
    locate(g.position_axes, static_cast<I>(at), offset);
    l.offsets[l.begins[target] + l.numbers[at]] = offset[1];
  }
}

// Adds the slices begin, begin + step, ... below end at the columns of a lane; in the last batch, zeros behind them.
constexpr int batch = 8;
template <class T, int Columns>
__device__ void add_slices(const T* const (&source)[Columns], const std::int64_t* offsets, std::int64_t begin,
                           std::int64_t end, std::int64_t step, sum_of<T> (&sums)[Columns]) {
  for (std::int64_t k = begin; k < end; k += batch * step) {
    T x[batch][Columns];
    if (k + (batch - 1) * step < end) {
#pragma unroll
      for (int b = 0; b < batch; ++b) {
        const std::int64_t offset = offsets[k + b * step];
#pragma unroll
        for (int c = 0; c < Columns; ++c) x[b][c] = source[c][offset];
      }
    } else {
#pragma unroll
      for (int b = 0; b < batch; ++b) {
        const bool there = k + b * step < end;
        const std::int64_t offset = there ? offsets[k + b * step] : 0;
#pragma unroll
        for (int c = 0; c < Columns; ++c) x[b][c] = there ? source[c][offset] : T{};
      }
    }
#pragma unroll
    for (int b = 0; b < batch; ++b) {
#pragma unroll
      for (int c = 0; c < Columns; ++c) sums[c].add(num::widen(x[b][c]));
    }
  }
}

// Decides an element, or notes it as undecided.
template <class T, class I>
__device__ void finish(const geometry& g, const lists<I>& l, std::int64_t target, std::int64_t column,
                       const std::int64_t (&of_target)[2], const std::int64_t (&of_column)[3], const sum_of<T>& s,
                       std::int64_t height, std::int64_t n) {
  const double x = g.x == nullptr ? 0.0 : num::widen(static_cast<const T*>(g.x)[of_target[1] + of_column[2]]);
  num::decided_value<T> r{T{}, false};
  if constexpr (!std::is_same_v<T, double>) {
    if (g.formula.alpha == 1 && !g.formula.mean && !g.formula.force) r = num::scatter_quick<T>(x, s, height);
  }
  if (!r.decided) r = num::scatter_first<T>(g.formula, x, s, height, n);
  if (r.decided) {
    static_cast<T*>(g.out)[of_target[0] + of_column[1]] = r.value;
    return;
  }
  const std::int64_t element = target * g.inner + column;
  atomicOr(l.undecided + element / 32, 1u << (element % 32));
  l.noted->any_undecided = 1;
}

// Counted are all elements as decided; where there is no term nothing was.
template <class T, class I, int Columns>
__global__ void __launch_bounds__(threads)
    scatter_sum(const __grid_constant__ geometry g, const __grid_constant__ lists<I> l, counter* counters) {
  const int team = static_cast<int>(threadIdx.x) / g.lanes, lane = static_cast<int>(threadIdx.x) % g.lanes;
  const int teams = threads / g.lanes;
  const I tiles = static_cast<I>((g.inner + Columns * g.lanes - 1) / (Columns * g.lanes));
  const std::int64_t units = g.targets * static_cast<std::int64_t>(tiles);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * teams;
  if (blockIdx.x == 0 && threadIdx.x == 0) count_elements(counters, first_tier_of<T>, g.targets * g.inner);
  std::int64_t kept = 0;
  for (std::int64_t unit = static_cast<std::int64_t>(blockIdx.x) * teams + team; unit < units; unit += step) {
    const I target = static_cast<I>(unit) / tiles;
    const I tile = static_cast<I>(unit) - target * tiles;
    const std::int64_t begin = static_cast<std::int64_t>(l.begins[target]);
    const std::int64_t n = static_cast<std::int64_t>(l.begins[target + 1]) - begin;
    if (n > longest_list) continue;
    std::int64_t of_target[2];
    locate(g.target_axes, target, of_target);
    std::int64_t of_column[Columns][3];
    std::int64_t column[Columns];
    const T* source[Columns];
#pragma unroll
    for (int c = 0; c < Columns; ++c) {
      column[c] = static_cast<std::int64_t>(tile) * Columns * g.lanes + c * g.lanes + lane;
      // A lane without a column adds up the last one, too, which is not written.
      const std::int64_t at = column[c] < g.inner ? column[c] : g.inner - 1;
      locate(g.inner_axes, static_cast<I>(at), of_column[c]);
      source[c] = static_cast<const T*>(g.source) + of_column[c][0];
    }
    if (n == 0) {
#pragma unroll
      for (int c = 0; c < Columns; ++c) {
        if (column[c] >= g.inner) continue;
        T* const to = static_cast<T*>(g.out) + of_target[0] + of_column[c][1];
        const T* const from = static_cast<const T*>(g.x) + of_target[1] + of_column[c][2];
        if (g.x == nullptr) {
          *to = T{};
        } else if (from != to) {
          *to = *from;
        }
        ++kept;
      }
      continue;
    }
    sum_of<T> sums[Columns];
    add_slices<T, Columns>(source, l.offsets, begin, begin + n, 1, sums);
#pragma unroll
    for (int c = 0; c < Columns; ++c) {
      if (column[c] < g.inner) finish<T>(g, l, target, column[c], of_target, of_column[c], sums[c], n + batch, n);
    }
  }
  const int of_warp = __reduce_add_sync(full_warp, static_cast<int>(kept));
  if (lane_of_thread() == 0 && of_warp != 0) {
    count_elements(counters, tier::proved, of_warp);
    count_elements(counters, first_tier_of<T>, -of_warp);
  }
}

// The target whose list has a position of all lists, one behind the other.
template <class I>
__device__ std::int64_t target_at(const I* begins, std::int64_t targets, I position) {
  std::int64_t low = 0, high = targets;  // begins[low] <= position < begins[high]
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    if (begins[middle] <= position) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// Joins the sums of the rows of a block, of `lanes` columns each, into those of row 0.
template <class Sum>
__device__ void join_rows(int lanes, Sum& mine) {
  __shared__ double memory[threads * 3];
  static_assert(sizeof(Sum) == 3 * sizeof(double));
  Sum* const all = reinterpret_cast<Sum*>(memory);
  __syncthreads();
  all[threadIdx.x] = mine;
  for (int half = threads / 2; half >= lanes; half /= 2) {
    __syncthreads();
    if (threadIdx.x < static_cast<unsigned>(half)) {
      mine.merge(all[threadIdx.x + half]);
      all[threadIdx.x] = mine;
    }
  }
}

// A chunk and a tile of columns for each block. Of the long lists that the chunk has terms of, the one that its first position
// belongs to has slot 0, another one slot 1.
template <class T, class I>
__global__ void __launch_bounds__(threads)
    scatter_parts(const __grid_constant__ geometry g, const __grid_constant__ lists<I> l, sum_of<T>* parts) {
  if (l.noted->long_lists == 0) return;
  const int row = static_cast<int>(threadIdx.x) / g.lanes, lane = static_cast<int>(threadIdx.x) % g.lanes;
  const int rows = threads / g.lanes;
  const std::int64_t tiles = (g.inner + g.lanes - 1) / g.lanes;
  const auto total = static_cast<std::int64_t>(l.begins[g.targets]);
  const std::int64_t units = (total + chunk - 1) / chunk * tiles;
  for (std::int64_t unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const std::int64_t first = unit / tiles * chunk;
    const std::int64_t last = first + chunk < total ? first + chunk : total;
    const std::int64_t column = unit % tiles * g.lanes + lane;
    std::int64_t of_column[3];
    locate(g.inner_axes, static_cast<I>(column < g.inner ? column : g.inner - 1), of_column);
    const T* const source[1] = {static_cast<const T*>(g.source) + of_column[0]};
    const std::int64_t target[2] = {target_at(l.begins, g.targets, static_cast<I>(first)),
                                    target_at(l.begins, g.targets, static_cast<I>(last - 1))};
    for (int slot = 0; slot < 2; ++slot) {
      if (slot == 1 && target[1] == target[0]) break;
      const auto begin = static_cast<std::int64_t>(l.begins[target[slot]]);
      const auto end = static_cast<std::int64_t>(l.begins[target[slot] + 1]);
      if (end - begin <= longest_list) continue;
      sum_of<T> sums[1];
      add_slices<T, 1>(source, l.offsets, (begin > first ? begin : first) + row, end < last ? end : last, rows, sums);
      join_rows(g.lanes, sums[0]);
      if (row == 0 && column < g.inner) parts[(first / chunk * 2 + slot) * g.inner + column] = sums[0];
    }
  }
}

// A long list and a tile of columns for each block.
template <class T, class I>
__global__ void __launch_bounds__(threads)
    scatter_long(const __grid_constant__ geometry g, const __grid_constant__ lists<I> l, const sum_of<T>* parts) {
  const int row = static_cast<int>(threadIdx.x) / g.lanes, lane = static_cast<int>(threadIdx.x) % g.lanes;
  const int rows = threads / g.lanes;
  const std::int64_t tiles = (g.inner + g.lanes - 1) / g.lanes;
  const std::int64_t units = static_cast<std::int64_t>(l.noted->long_lists) * tiles;
  for (std::int64_t unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const I target = l.long_targets[unit / tiles];
    const std::int64_t column = unit % tiles * g.lanes + lane;
    const auto begin = static_cast<std::int64_t>(l.begins[target]);
    const auto end = static_cast<std::int64_t>(l.begins[target + 1]);
    const std::int64_t first = begin / chunk, last = (end - 1) / chunk;
    sum_of<T> mine;
    for (std::int64_t c = first + row; c <= last && column < g.inner; c += 4 * rows) {
      sum_of<T> of_chunks[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::int64_t at = c + i * rows;
        if (at <= last) of_chunks[i] = parts[(at * 2 + (begin > at * chunk ? 1 : 0)) * g.inner + column];
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) mine.merge(of_chunks[i]);
    }
    join_rows(g.lanes, mine);
    if (row != 0 || column >= g.inner) continue;
    std::int64_t of_target[2];
    locate(g.target_axes, target, of_target);
    std::int64_t of_column[3];
    locate(g.inner_axes, static_cast<I>(column), of_column);
    // Terms, and merges of two additions each: of chunks, and of rows in both kernels; zeros fill up the last of each.
    const std::int64_t height = chunk + batch + 2 * (last - first + 1 + 4) + 4 * 8;
    finish<T>(g, l, static_cast<std::int64_t>(target), column, of_target, of_column, mine, height, end - begin);
  }
}

template <class T, class I>
__global__ void __launch_bounds__(settle_threads)
    scatter_settle(const __grid_constant__ geometry g, const __grid_constant__ lists<I> l, counter* counters) {
  if (l.noted->any_undecided == 0) return;
  using exact = num::exact_sum<T, 1>;
  __shared__ std::uint64_t memory[settle_threads * sizeof(exact) / 8];
  static_assert(sizeof(exact) % 8 == 0);
  exact* const all = reinterpret_cast<exact*>(memory);
  const std::int64_t words = (g.targets * g.inner + 31) / 32;
  std::int64_t settled = 0;
  for (std::int64_t word = blockIdx.x; word < words; word += gridDim.x) {
    for (std::uint32_t undecided = l.undecided[word]; undecided != 0; undecided &= undecided - 1) {
      const std::int64_t element = word * 32 + __ffs(static_cast<int>(undecided)) - 1;
      const I target = static_cast<I>(element / g.inner);
      const std::int64_t column = element - static_cast<std::int64_t>(target) * g.inner;
      std::int64_t of_target[2];
      locate(g.target_axes, target, of_target);
      std::int64_t of_column[3];
      locate(g.inner_axes, static_cast<I>(column), of_column);
      const T* const source = static_cast<const T*>(g.source) + of_column[0];
      const auto begin = static_cast<std::int64_t>(l.begins[target]);
      const auto end = static_cast<std::int64_t>(l.begins[target + 1]);
      exact mine;
      for (std::int64_t k = begin + threadIdx.x; k < end; k += settle_threads) mine.add(source[l.offsets[k]]);
      all[threadIdx.x] = mine;
      for (int half = settle_threads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < static_cast<unsigned>(half)) {
          mine.merge(all[threadIdx.x + half]);
          all[threadIdx.x] = mine;
        }
      }
      if (threadIdx.x == 0) {
        const T x = g.x == nullptr ? T{} : static_cast<const T*>(g.x)[of_target[1] + of_column[2]];
        static_cast<T*>(g.out)[of_target[0] + of_column[1]] = num::scatter_exact(g.formula, x, mine, end - begin);
        ++settled;
      }
      __syncthreads();
    }
  }
  if (settled != 0) {
    count_elements(counters, tier::exact, settled);
    count_elements(counters, first_tier_of<T>, -settled);
  }
}

// ---- host

template <class T, class I>
class scatter_work final : public planned {
 public:
  scatter_work(const plan::scatter_plan& p, const job& given) : planned(given) {
    g_.positions = p.positions.count, g_.targets = p.targets.count, g_.inner = p.inner.count;
    g_.bound = p.bound, g_.skipped = p.skipped, g_.target_step = p.target_step;
    g_.index = p.index;
    g_.position_axes.set_shape(p.positions.rank, p.positions.shape);
    g_.position_axes.set_stride(0, p.index_stride);
    g_.position_axes.set_stride(1, p.source.outer_stride);
    g_.position_axes.set_stride(2, p.target_stride);
    g_.target_axes.set_shape(p.targets.rank, p.targets.shape);
    g_.target_axes.set_stride(0, p.out_stride);
    g_.target_axes.set_stride(1, p.x.outer_stride);
    g_.inner_axes.set_shape(p.inner.rank, p.inner.shape);
    g_.inner_axes.set_stride(0, p.source.inner_stride);
    g_.inner_axes.set_stride(1, p.out_inner_stride);
    g_.inner_axes.set_stride(2, p.x.inner_stride);
    g_.source = p.source.data, g_.x = p.x.data, g_.out = p.out;
    g_.formula = {p.alpha, p.mean, j.first_tier > first_tier_of<T>};
    g_.lanes = 1;
    while (g_.lanes < 32 && g_.lanes < g_.inner) g_.lanes *= 2;
    words_ = ceil_div(g_.targets * g_.inner, 32);
    scans_ = ceil_div(g_.targets, scan_block);
    chunks_ = g_.positions > longest_list ? ceil_div(g_.positions, chunk) : 0;
    space.take(l_.targets, g_.positions);
    space.take(l_.numbers, g_.positions);
    space.take(l_.begins, g_.targets + 1);
    space.take(l_.blocks, scans_);
    space.take(l_.offsets, g_.positions);
    space.take(l_.long_targets, g_.positions / longest_list + 1);
    space.take(parts_, 2 * chunks_, g_.inner);
    space.take(l_.undecided, words_);
    space.take(l_.noted, 1);
  }

 private:
  unsigned grid(std::int64_t items) const { return grid_for(j.device, items, blocks_per_multiprocessor); }

  void enqueue() override {
    launch_kernel<scatter_clear<I>>(j, grid(ceil_div(std::max(g_.targets + 1, words_), threads)), threads, 0, l_.begins,
                                    g_.targets, l_.undecided, words_, l_.noted);
    if (g_.positions != 0) {
      const unsigned blocks = grid(ceil_div(g_.positions, threads));
      launch_kernel<scatter_count<I>>(j, blocks, threads, 0, g_, l_, j.counters);
      launch_kernel<scatter_scan_sums<I>>(j, scans_, threads, 0, l_.begins, g_.targets, l_.blocks);
      launch_kernel<scatter_scan_blocks<I>>(j, 1, threads, 0, l_.blocks, scans_, l_.begins + g_.targets);
      launch_kernel<scatter_scan_lists<I>>(j, scans_, threads, 0, l_, g_.targets);
      launch_kernel<scatter_place<I>>(j, blocks, threads, 0, g_, l_);
    }
    if (g_.inner > 32) {
      launch_sum<2>();
    } else {
      launch_sum<1>();
    }
    if (chunks_ != 0) {
      const std::int64_t tiles = ceil_div(g_.inner, g_.lanes);
      launch_kernel<scatter_parts<T, I>>(j, grid(chunks_ * tiles), threads, 0, g_, l_, parts_);
      launch_kernel<scatter_long<T, I>>(j, grid(chunks_ * tiles / 2 + 1), threads, 0, g_, l_, parts_);
    }
    launch_kernel<scatter_settle<T, I>>(j, grid(words_), settle_threads, 0, g_, l_, j.counters);
  }
  template <int Columns>
  void launch_sum() {
    const std::int64_t units = g_.targets * ceil_div(g_.inner, Columns * g_.lanes);
    const unsigned blocks = grid_for(j.device, ceil_div(units, threads / g_.lanes), 32);
    launch_kernel<scatter_sum<T, I, Columns>>(j, blocks, threads, 0, g_, l_, j.counters);
  }

  geometry g_{};
  lists<I> l_{};
  sum_of<T>* parts_ = nullptr;  // [chunk][2][inner]
  std::int64_t words_, scans_, chunks_;
};

}  // namespace

void prepare(const plan::scatter_plan& p, const job& j, dispatch::task& t) {
  // Every number of a position, a target, a column or a tile of one.
  const bool small = fits_32_bits(p.positions.count) && fits_32_bits(p.targets.count) && fits_32_bits(p.inner.count) &&
                     fits_32_bits(p.targets.count * p.inner.count);
  ops::for_each_format<ops::FLOATS>([&]<class T>() {
    if (dtype_of<T> != p.type) return;
    if (small && !j.device.choice.wide) {
      t.emplace<scatter_work<T, std::uint32_t>>(p, j);
    } else {
      t.emplace<scatter_work<T, wide_index>>(p, j);
    }
  });
}

}  // namespace repdl::cuda
