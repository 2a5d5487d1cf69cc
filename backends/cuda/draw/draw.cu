// Draws in proportion to weights (ops/random/multinomial.hpp). With replacement:
//   draw_chunks   a warp a chunk: its sums in binary64, and its exact one
//   draw_rows     a block a row: the exact sums up to each chunk
//   draw_places   a thread two samples: a search
// Without:
//   draw_keys     a thread two keys
//   draw_settle   the keys that are left undecided
//   then a sort by keys, and, stable, by rows (draw_row_keys), and draw_sorted, which writes.
// A row that nothing can be drawn from is counted, and its places are 0. W: binary32, also for weights of 16 bits, or binary64.
#include "backends/cuda/core/launch.cuh"
#include "backends/cuda/random/radix_sort.hpp"
#include "librepdl/num/philox.hpp"
#include "librepdl/ops/random/exponential_exact.hpp"
#include "librepdl/ops/random/multinomial.hpp"

namespace repdl::cuda {
namespace {

using num::draw_chunk;
using num::weight_sum;

constexpr int threads = 256;
constexpr int settle_threads = 128;
constexpr int warps = threads / 32;
constexpr int per_lane = static_cast<int>(draw_chunk / 32);

__device__ const num::normal_tables device_tables = num::normal_table;

struct draws {
  std::uint64_t seed, stream;
  std::int64_t rows, n, samples, chunks;
  dtype type;
  const void* in;
  std::int64_t in_row, in_stride;
  std::int64_t* out;
  std::int64_t out_row, out_stride;

  template <class W>
  __device__ W weight(std::int64_t row, std::int64_t i) const {
    const std::int64_t at = row * in_row + i * in_stride;
    if constexpr (std::is_same_v<W, double>) {
      return static_cast<const double*>(in)[at];
    } else {
      return type == dtype::f32   ? static_cast<const float*>(in)[at]
             : type == dtype::f16 ? num::widen_to_float(static_cast<const f16*>(in)[at])
                                  : num::widen_to_float(static_cast<const bf16*>(in)[at]);
    }
  }
  __device__ std::int64_t& place(std::int64_t row, std::int64_t sample) const {
    return out[row * out_row + sample * out_stride];
  }
};

template <class W>
struct sums {
  double* within;       // [rows][n]
  double* rounded;      // [rows][chunks]
  weight_sum<W>* upto;  // [rows][chunks]
};

// The top bit of a sum says that a row is bad: of a chunk; of the last chunk that nothing can be drawn.
constexpr std::uint64_t bad_bit = std::uint64_t{1} << 63;
template <class W>
__device__ std::uint64_t& mark_of(weight_sum<W>& s) {
  return s.limb[weight_sum<W>::limbs - 1];
}
template <class W>
__device__ bool is_bad(const weight_sum<W>& s) {
  return (s.limb[weight_sum<W>::limbs - 1] & bad_bit) != 0;
}

template <class W>
__device__ weight_sum<W> shuffled_up(const weight_sum<W>& s, int distance) {
  weight_sum<W> r{};
#pragma unroll
  for (int i = 0; i < weight_sum<W>::limbs; ++i) r.limb[i] = __shfl_up_sync(full_warp, s.limb[i], distance);
  return r;
}
// The sum over this lane and those before it.
template <class W>
__device__ void scan_warp(weight_sum<W>& s) {
#pragma unroll 1
  for (int distance = 1; distance < 32; distance *= 2) {
    const weight_sum<W> before = shuffled_up(s, distance);
    if (lane_of_thread() >= distance) s.add(before);
  }
}

template <class W>
__global__ void __launch_bounds__(threads) draw_chunks(const __grid_constant__ draws d, const sums<W> to) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * warps;
  const int lane = lane_of_thread();
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / 32; at < d.rows * d.chunks;
       at += step) {
    const std::int64_t row = at / d.chunks, first = at % d.chunks * draw_chunk + lane * per_lane;
    weight_sum<W> exact{};
    double mine[per_lane];
    double running = 0;
    bool bad = false;
#pragma unroll
    for (int k = 0; k < per_lane; ++k) {
      const W w = first + k < d.n ? d.weight<W>(row, first + k) : W{0};
      const bool good = num::is_weight(w);
      bad = bad || !good;
      exact.add(good ? w : W{0});
      running += num::weight_units(good ? w : W{0});
      mine[k] = running;
    }
    double upto = running;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const double before = __shfl_up_sync(full_warp, upto, distance);
      if (lane >= distance) upto += before;
    }
    double before = __shfl_up_sync(full_warp, upto, 1);
    if (lane == 0) before = 0;
#pragma unroll
    for (int k = 0; k < per_lane; ++k) {
      if (first + k < d.n) to.within[row * d.n + first + k] = before + mine[k];
    }
    scan_warp(exact);
    bad = __any_sync(full_warp, bad);
    if (lane == 31) {
      if (bad) mark_of(exact) = bad_bit;
      to.upto[at] = exact;
    }
  }
}

template <class W>
__global__ void __launch_bounds__(threads)
    draw_rows(std::int64_t rows, std::int64_t chunks, const sums<W> to, counter* counters) {
  __shared__ weight_sum<W> of_warps[warps];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    weight_sum<W>* const upto = to.upto + row * chunks;
    weight_sum<W> running{};
    bool bad = false;
    for (std::int64_t first = 0; first < chunks; first += threads) {
      const std::int64_t c = first + threadIdx.x;
      weight_sum<W> sum{};
      if (c < chunks) sum = upto[c];
      if (is_bad(sum)) {
        bad = true;
        sum = weight_sum<W>{};
      }
      scan_warp(sum);
      __syncthreads();
      if (lane_of_thread() == 31) of_warps[warp] = sum;
      __syncthreads();
      sum.add(running);
#pragma unroll 1
      for (int w = 0; w < warps; ++w) {
        if (w < warp) sum.add(of_warps[w]);
        running.add(of_warps[w]);
      }
      if (c < chunks) {
        upto[c] = sum;
        to.rounded[row * chunks + c] = sum.rounded();
      }
    }
    bad = __syncthreads_or(bad || running.is_zero());
    if (bad && threadIdx.x == 0) {
      mark_of(upto[chunks - 1]) = bad_bit;
      atomicAdd(counters + bad_weights_counter, counter{1});
    }
    __syncthreads();
  }
}

// Rare, so that its registers are not everybody's.
template <class W>
__device__ __noinline__ std::int64_t find_exactly(const draws* d, std::int64_t row, const double* within,
                                                  const weight_sum<W>* upto, std::uint64_t word) {
  const num::row_sums<W> sums{d->n, within, upto, nullptr};
  return sums.find_exactly(word, [&](std::int64_t i) { return d->weight<W>(row, i); });
}

template <class W>
__global__ void __launch_bounds__(threads)
    draw_places(const __grid_constant__ draws d, const sums<W> from, bool force, counter* counters) {
  const std::int64_t count = d.rows * d.samples, step = static_cast<std::int64_t>(gridDim.x) * threads;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  int exact = 0;
  for (std::int64_t block = begin; 2 * block < count; block += step) {
    const num::philox_block words = num::philox(d.seed, d.stream, static_cast<std::uint64_t>(block));
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::int64_t at = 2 * block + r;
      if (at >= count) break;
      const std::int64_t row = at / d.samples;
      const num::row_sums<W> s{d.n, from.within + row * d.n, from.upto + row * d.chunks, from.rounded + row * d.chunks};
      std::int64_t found = 0;
      if (!is_bad(s.upto[d.chunks - 1])) {
        const std::uint64_t word = num::wide_word(words, r);
        found = force ? -1 : s.find(word);
        if (found < 0) {
          found = find_exactly(&d, row, s.within, s.upto, word);
          ++exact;
        }
      }
      d.place(row, at % d.samples) = found;
    }
  }
  if (begin == 0) count_elements(counters, tier::binary64, count);
  exact = __reduce_add_sync(full_warp, exact);
  if (lane_of_thread() == 0 && exact != 0) {
    count_elements(counters, tier::exact, exact);
    count_elements(counters, tier::binary64, -static_cast<std::int64_t>(exact));
  }
}

// ---- without replacement

template <class W>
__global__ void __launch_bounds__(threads)
    draw_keys(const __grid_constant__ draws d, double force, const sort_entries to, counter* counters) {
  const std::int64_t count = d.rows * d.n, step = static_cast<std::int64_t>(gridDim.x) * threads;
  int decided = 0;
  for (std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; 2 * block < count;
       block += step) {
    const num::philox_block words = num::philox(d.seed, d.stream, static_cast<std::uint64_t>(block));
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::int64_t at = 2 * block + r;
      if (at >= count) break;
      const W w = d.weight<W>(at / d.n, at % d.n);
      std::uint64_t key = !num::is_weight(w) ? num::key_of_bad : num::key_of_zero;
      if (num::is_weight(w) && w > 0) {
        const num::key_weight weight(w);
        const auto ends = num::exponential_scale::of(weight.m).key(num::wide_word(words, r) + 1, device_tables, force);
        const double scaled = num::scaled_key<W>(ends.below, weight.k);
        const bool known = num::bits_of(ends.below) == num::bits_of(ends.above) && num::is_rounded_once<W>(scaled);
        key = known ? num::bits_of(scaled) : num::key_undecided;
        decided += known ? 1 : 0;
      }
      to.keys[at] = key;
      to.values[at] = at;
    }
  }
  decided = __reduce_add_sync(full_warp, decided);
  if (lane_of_thread() == 0) count_elements(counters, tier::double_double, decided);
}

// 256 bits at most, as in random_late.cu.
template <class W>
__global__ void __launch_bounds__(settle_threads)
    draw_settle(const __grid_constant__ draws d, int budget, std::uint64_t* keys, counter* counters) {
  const std::int64_t count = d.rows * d.n, step = static_cast<std::int64_t>(gridDim.x) * settle_threads;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * settle_threads + threadIdx.x; at < count; at += step) {
    if (keys[at] != num::key_undecided) continue;
    const num::philox_block words = num::philox(d.seed, d.stream, static_cast<std::uint64_t>(at / 2));
    const std::uint64_t word = at % 2 == 0 ? num::wide_word(words, 0) : num::wide_word(words, 1);
    const auto r =
        num::exponential_key(word, static_cast<double>(d.weight<W>(at / d.n, at % d.n)), budget >= 256 ? 256 : 0);
    if (r.decided) {
      count_elements(counters, tier::exact, 1);
    } else {
      atomicAdd(counters + undecided_counter, counter{1});
    }
    keys[at] = num::bits_of(r.value);
  }
}

__global__ void __launch_bounds__(threads) draw_row_keys(std::int64_t count, std::int64_t n, const sort_entries e) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; at < count; at += step) {
    e.keys[at] = static_cast<std::uint64_t>(e.values[at] / n);
  }
}

// A weight that is none comes last in its row.
template <class W>
__global__ void __launch_bounds__(threads)
    draw_sorted(const __grid_constant__ draws d, const std::int64_t* values, counter* counters) {
  const std::int64_t count = d.rows * d.samples, step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; at < count; at += step) {
    const std::int64_t row = at / d.samples, sample = at % d.samples;
    const std::int64_t* const sorted = values + row * d.n;
    const W last = d.weight<W>(row, sorted[d.n - 1] - row * d.n),
            needed = d.weight<W>(row, sorted[d.samples - 1] - row * d.n);
    const bool bad = !num::is_weight(last) || !(needed > 0);
    if (bad && sample == 0) atomicAdd(counters + bad_weights_counter, counter{1});
    d.place(row, sample) = bad ? 0 : sorted[sample] - row * d.n;
  }
}

draws draws_of(const plan::draw_plan& p) {
  return {p.seed,   p.stream,    p.rows, p.n,       p.samples,   ceil_div(p.n, draw_chunk), p.type, p.in,
          p.in_row, p.in_stride, p.out,  p.out_row, p.out_stride};
}

template <class W>
class replacing_work final : public planned {
 public:
  replacing_work(const plan::draw_plan& p, const job& given) : planned(given), d_(draws_of(p)) {
    space.take(sums_.within, d_.rows, d_.n);
    space.take(sums_.rounded, d_.rows, d_.chunks);
    space.take(sums_.upto, d_.rows, d_.chunks);
  }

 private:
  void enqueue() override {
    const std::int64_t chunks = d_.rows * d_.chunks, samples = d_.rows * d_.samples;
    launch_kernel<draw_chunks<W>>(j, grid_for(j.device, ceil_div(chunks, warps), 16), threads, 0, d_, sums_);
    launch_kernel<draw_rows<W>>(j, grid_for(j.device, d_.rows, 8), threads, 0, d_.rows, d_.chunks, sums_, j.counters);
    launch_kernel<draw_places<W>>(j, grid_for(j.device, ceil_div(samples, 2 * threads), 16), threads, 0, d_, sums_,
                                  j.first_tier > tier::binary64, j.counters);
  }

  const draws d_;
  sums<W> sums_{};
};

template <class W>
class sorting_work final : public planned {
 public:
  sorting_work(const plan::draw_plan& p, const job& given) : planned(given), d_(draws_of(p)) {
    take_workspace(buffers_, p.rows * p.n, space);
  }

 private:
  void enqueue() override {
    const std::int64_t count = d_.rows * d_.n;
    const sort_entries& entries = buffers_.entries[0];
    const double force = j.first_tier > tier::double_double ? num::infinity : 0.0;
    const unsigned grid = grid_for(j.device, ceil_div(count, threads), 16);
    launch_kernel<draw_keys<W>>(j, grid, threads, 0, d_, force, entries, j.counters);
    launch_kernel<draw_settle<W>>(j, grid_for(j.device, ceil_div(count, settle_threads), 16), settle_threads, 0, d_,
                                  j.last_tier_bits, entries.keys, j.counters);
    sort_by_key(count, buffers_, j);  // stable: equal keys keep the order of their places
    if (d_.rows > 1) {
      launch_kernel<draw_row_keys>(j, grid, threads, 0, count, d_.n, entries);
      int passes = 2;
      while (passes < 8 && (d_.rows - 1) >> (8 * passes) != 0) passes += 2;
      sort_by_key(count, buffers_, j, passes);
    }
    launch_kernel<draw_sorted<W>>(j, grid_for(j.device, ceil_div(d_.rows * d_.samples, threads), 16), threads, 0, d_,
                                  entries.values, j.counters);
  }

  const draws d_;
  sort_buffers buffers_{};
};

}  // namespace

void prepare(const plan::draw_plan& p, const job& j, dispatch::task& t) {
  const auto with = [&]<class W>(W) {
    if (p.replacement) {
      t.emplace<replacing_work<W>>(p, j);
    } else {
      t.emplace<sorting_work<W>>(p, j);
    }
  };
  if (p.type == dtype::f64) {
    with(double{});
  } else {
    with(float{});
  }
}

}  // namespace repdl::cuda
