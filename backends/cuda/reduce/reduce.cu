// Reductions: sum, mean, dot, max, min, argmax, argmin, prelu_weight_backward.
//
// An output's terms are cut into `chunks`; a work item is one chunk of one output.
//   rows      a team (some lanes of a warp, or a block) per item, for terms that lie side by side in memory
//   columns   a thread per item, for outputs that lie side by side; its terms are `chunks` apart, so that neighbouring
//             threads read neighbouring addresses even with few outputs
// With one chunk the item's owner finishes the output; otherwise partial results go to the workspace and a second
// kernel joins them. Sums are decided in binary64 first; undecided outputs are marked in a bitmap that the
// double-double launches work off, and after them the exact ones. The launches do not depend on the data: no host round
// trip.
#include <type_traits>

#include "backends/cuda/core/axes.cuh"
#include "backends/cuda/core/launch.cuh"
#include "backends/cuda/reduce/reduce_policies.cuh"

namespace repdl::cuda {
namespace {

constexpr int threads = 256;
constexpr int warps = threads / 32;

struct geometry {
  const float* in[2];
  void* out;
  const float* bias;  // dot: one more term, or null
  std::int64_t outputs;
  std::int64_t length;
  std::int64_t chunks;
  std::int64_t chunk_length;  // rows
  int team;                   // rows: threads per item, a power of two up to 32, or 256
  bool columns;
  bool small;               // outputs and length below 2^31
  bool packed;              // rows: four terms per load
  strided_axes<4> kept;     // of two inputs, the output and the bias
  strided_axes<2> reduced;  // of two inputs
};

// Offsets of operands First, First + 1, ... at a row-major index.
template <int First, class Axes, int N>
__device__ void locate(const geometry& g, const Axes& axes, std::int64_t index, std::int64_t (&offset)[N]) {
  if (g.small) {
    axes.template locate<First>(static_cast<std::uint32_t>(index), offset);
  } else {
    axes.template locate<First>(static_cast<std::uint64_t>(index), offset);
  }
}

template <int Inputs>
struct row_pointers {
  const float* at[Inputs];

  __device__ row_pointers(const geometry& g, std::int64_t output) {
    std::int64_t offset[Inputs];
    locate<0>(g, g.kept, output, offset);
#pragma unroll
    for (int k = 0; k < Inputs; ++k) at[k] = g.in[k] + offset[k];
  }
  template <int K>
  __device__ const float* term(const geometry& g, std::int64_t r) const {
    std::int64_t offset[1];
    locate<K>(g, g.reduced, r, offset);
    return at[K] + offset[0];
  }
};

// A batch of terms of input K: single ones, `step` apart from r on ...
template <int K, int Inputs>
__device__ void load_single(const geometry& g, const row_pointers<Inputs>& row, std::int64_t r, std::int64_t step,
                            float (&x)[batch_terms]) {
  if (g.reduced.rank <= 1) {
    const float* const from = row.at[K] + r * g.reduced.stride[K][0];
    const std::int64_t apart = step * g.reduced.stride[K][0];
#pragma unroll
    for (int i = 0; i < batch_terms; ++i) x[i] = from[i * apart];
  } else {
#pragma unroll
    for (int i = 0; i < batch_terms; ++i) x[i] = *row.template term<K>(g, r + i * step);
  }
}

// ... or four at a time, lane after lane.
template <int K, int Inputs>
__device__ void load_packed(const geometry& g, const row_pointers<Inputs>& row, std::int64_t r, std::int64_t step,
                            int lane, float (&x)[batch_terms]) {
  float4 v[batch_terms / 4];
  if (g.reduced.rank <= 1) {
    const float4* const from = reinterpret_cast<const float4*>(row.at[K] + r) + lane;
#pragma unroll
    for (int q = 0; q < batch_terms / 4; ++q) v[q] = from[q * step];
  } else {
#pragma unroll
    for (int q = 0; q < batch_terms / 4; ++q) {
      v[q] = *reinterpret_cast<const float4*>(row.template term<K>(g, r + (q * step + lane) * 4));
    }
  }
#pragma unroll
  for (int q = 0; q < batch_terms / 4; ++q) {
    x[4 * q] = v[q].x;
    x[4 * q + 1] = v[q].y;
    x[4 * q + 2] = v[q].z;
    x[4 * q + 3] = v[q].w;
  }
}

// Adds the terms begin + lane, begin + lane + step, ... below end; full batches first.
template <class P>
__device__ void take_terms(P& acc, const geometry& g, const reduce_parameters& p, const row_pointers<P::inputs>& row,
                           std::int64_t begin, std::int64_t end, std::int64_t step, int lane) {
  std::int64_t r = begin;
  if constexpr (P::batched) {
    float x[batch_terms];
    float y[batch_terms];
    const std::int64_t span = step * (batch_terms - 1) + g.team;  // from r to the end of a batch
    for (; end - r >= span; r += step * batch_terms) {
      if (g.packed) {
        load_packed<0>(g, row, r, step, lane, x);
        if constexpr (P::inputs == 2) load_packed<1>(g, row, r, step, lane, y);
        acc.take_batch(p, x, y, [&](int i) { return r + ((i / 4) * step + lane) * 4 + i % 4; });
      } else {
        load_single<0>(g, row, r + lane, step, x);
        if constexpr (P::inputs == 2) load_single<1>(g, row, r + lane, step, y);
        acc.take_batch(p, x, y, [&](int i) { return r + lane + i * step; });
      }
    }
  }
#pragma unroll 4
  for (r += lane; r < end; r += step) {
    const float x = *row.template term<0>(g, r);
    float y = 0;
    if constexpr (P::inputs == 2) y = *row.template term<1>(g, r);
    acc.take(p, x, y, r);
  }
}

// Decides one output, or marks it. `marked`: the bitmap held the outputs to work off, decided ones are cleared.
template <class P>
__device__ bool finish(P acc, const geometry& g, const reduce_parameters& p, std::int64_t output,
                       std::uint32_t* undecided, bool marked) {
  if constexpr (P::inputs == 2) {
    if (g.bias != nullptr) {  // c is the product c * 1
      std::int64_t offset[1];
      locate<3>(g, g.kept, output, offset);
      acc.take(p, g.bias[offset[0]], 1.0f, g.length);
    }
  }
  typename P::output value;
  const bool decided = acc.finish(p, &value);
  if (decided) {
    std::int64_t offset[1];
    locate<2>(g, g.kept, output, offset);
    static_cast<typename P::output*>(g.out)[offset[0]] = value;
  }
  const std::uint32_t bit = 1u << (output & 31);
  if (decided && marked) atomicAnd(undecided + (output >> 5), ~bit);
  if (!decided && !marked) atomicOr(undecided + (output >> 5), bit);
  return decided;
}

template <class P>
__device__ P shuffle(const P& from, int distance) {
  static_assert(std::is_trivially_copyable_v<P> && sizeof(P) % 4 == 0);
  constexpr int words = sizeof(P) / 4;
  std::uint32_t w[words];
  memcpy(w, &from, sizeof(P));
#pragma unroll
  for (int i = 0; i < words; ++i) w[i] = __shfl_xor_sync(full_warp, w[i], distance);
  P to;
  memcpy(&to, w, sizeof(P));
  return to;
}

// Among `lanes` neighbouring lanes; all lanes of the warp take part.
template <class P>
__device__ void merge_lanes(P& acc, int lanes) {
  for (int distance = lanes / 2; distance >= 1; distance /= 2) acc.merge(shuffle(acc, distance));
}

template <class P>
__global__ void __launch_bounds__(threads, 3) reduce_rows(const geometry g, const reduce_parameters p, P* partials,
                                                          std::uint32_t* undecided, bool marked, counter* counters) {
  alignas(16) __shared__ unsigned char shared[warps * sizeof(P)];
  P* const of_warp = reinterpret_cast<P*>(shared);
  const int lane = static_cast<int>(threadIdx.x) & (g.team - 1);
  const int in_warp = static_cast<int>(threadIdx.x & 31u) / g.team;  // which of the warp's teams this is
  const std::int64_t teams = static_cast<std::int64_t>(gridDim.x) * (threads / g.team);
  const std::int64_t first =
      static_cast<std::int64_t>(blockIdx.x) * (threads / g.team) + threadIdx.x / g.team - in_warp;
  // Marked outputs are worked off by whole warps or blocks, a word of the bitmap at a time.
  const std::int64_t groups = (marked ? (g.outputs + 31) / 32 : g.outputs) * g.chunks;
  std::int64_t decided = 0;
  for (std::int64_t base = first; base < groups; base += teams) {
    const std::int64_t group = base + in_warp;
    const bool active = group < groups;
    const std::int64_t row = g.chunks == 1 ? group : group / g.chunks;
    const std::int64_t chunk = group - row * g.chunks;
    std::uint32_t bits = marked ? undecided[row] : 1u;
    for (; bits != 0; bits &= bits - 1) {
      const std::int64_t output = marked ? row * 32 + (__ffs(static_cast<int>(bits)) - 1) : row;
      P acc;
      if (active) {
        const std::int64_t begin = chunk * g.chunk_length;
        const std::int64_t end = min(begin + g.chunk_length, g.length);
        take_terms(acc, g, p, row_pointers<P::inputs>(g, output), begin, end, g.team, lane);
      }
      __syncwarp();
      merge_lanes(acc, min(g.team, 32));
      if (g.team > 32) {
        __syncthreads();
        if ((threadIdx.x & 31) == 0) of_warp[threadIdx.x / 32] = acc;
        __syncthreads();
        if (threadIdx.x == 0) {
          for (int i = 1; i < warps; ++i) acc.merge(of_warp[i]);
        }
      }
      if (lane == 0 && active) {
        if (g.chunks > 1) {
          partials[output * g.chunks + chunk] = acc;
        } else {
          decided += finish(acc, g, p, output, undecided, marked) ? 1 : 0;
        }
      }
      __syncwarp();
    }
  }
  if (lane == 0) count_elements(counters, P::decides, decided);
}

template <class P>
__global__ void __launch_bounds__(threads, 3) reduce_columns(const geometry g, const reduce_parameters p, P* partials,
                                                             std::uint32_t* undecided, bool marked, counter* counters) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  const std::int64_t items = g.outputs * g.chunks;
  int decided = 0;
  for (std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; item < items; item += step) {
    const std::int64_t chunk = g.chunks == 1 ? 0 : item / g.outputs;
    const std::int64_t output = item - chunk * g.outputs;
    if (marked && ((undecided[output >> 5] >> (output & 31)) & 1) == 0) continue;
    P acc;
    take_terms(acc, g, p, row_pointers<P::inputs>(g, output), chunk, g.length, g.chunks, 0);
    if (g.chunks > 1) {
      partials[item] = acc;
    } else {
      decided += finish(acc, g, p, output, undecided, marked) ? 1 : 0;
    }
  }
  decided = __reduce_add_sync(full_warp, decided);
  if (lane_of_thread() == 0) count_elements(counters, P::decides, decided);
}

// Joins the chunks of each output: a warp per output.
template <class P>
__global__ void __launch_bounds__(threads) join_chunks(const geometry g, const reduce_parameters p, const P* partials,
                                                       std::uint32_t* undecided, bool marked, counter* counters) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * warps;
  std::int64_t decided = 0;
  for (std::int64_t output = static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / 32; output < g.outputs;
       output += step) {
    if (marked && ((undecided[output >> 5] >> (output & 31)) & 1) == 0) continue;
    P acc;
    for (std::int64_t c = lane_of_thread(); c < g.chunks; c += 32) {
      acc.merge(partials[g.columns ? c * g.outputs + output : output * g.chunks + c]);
    }
    merge_lanes(acc, 32);
    if (lane_of_thread() == 0) decided += finish(acc, g, p, output, undecided, marked) ? 1 : 0;
  }
  if (lane_of_thread() == 0) count_elements(counters, P::decides, decided);
}

template <class P>
void launch(const geometry& g, const reduce_parameters& p, void* partials, std::uint32_t* undecided, bool marked,
            const job& j) {
  P* const parts = static_cast<P*>(partials);
  const auto rows = [&] {
    const unsigned grid = grid_for(j.device, ceil_div(g.outputs * g.chunks * g.team, threads), 16);
    launch_kernel<reduce_rows<P>>(j, grid, threads, 0, g, p, parts, undecided, marked, j.counters);
  };
  if constexpr (P::batched) {
    const unsigned grid = grid_for(j.device, ceil_div(g.outputs * g.chunks, threads), 16);
    if (g.columns) {
      launch_kernel<reduce_columns<P>>(j, grid, threads, 0, g, p, parts, undecided, marked, j.counters);
    } else {
      rows();
    }
  } else {
    rows();  // repairs
  }
  if (g.chunks > 1) {
    const unsigned grid = grid_for(j.device, ceil_div(g.outputs, warps), 16);
    launch_kernel<join_chunks<P>>(j, grid, threads, 0, g, p, parts, undecided, marked, j.counters);
  }
}

// `repair`: for the tiers after the first, which see few outputs and want many threads for each.
geometry describe(const plan::reduce_plan& p, const properties& device, bool repair) {
  geometry g{};
  g.outputs = p.outputs;
  g.length = p.length;
  g.out = p.out;
  g.bias = p.bias;
  g.kept.set_shape(p.kept_rank, p.kept_shape);
  g.reduced.set_shape(p.reduced_rank, p.reduced_shape);
  g.kept.set_stride(2, p.out_stride);
  g.kept.set_stride(3, p.bias_stride);
  for (int k = 0; k < p.inputs; ++k) {
    g.in[k] = p.in[k].data;
    g.kept.set_stride(k, p.in[k].kept_stride);
    g.reduced.set_stride(k, p.in[k].reduced_stride);
  }
  g.small = !device.choice.wide && fits_32_bits(p.outputs) && fits_32_bits(p.length);

  const auto size = [](std::int64_t s) { return s < 0 ? -s : s; };
  const std::int64_t along = size(g.reduced.stride[0][0]);
  const std::int64_t across = p.kept_rank == 0 ? INT64_MAX : size(g.kept.stride[0][0]);
  g.columns = !repair && (p.length < 32 || across < along);

  // Enough items to fill the device, each with at least one batch per thread.
  const std::int64_t wanted = std::int64_t{device.multiprocessors} * 2048;
  if (g.columns) {
    g.team = 1;
    g.chunks = std::clamp<std::int64_t>(wanted / p.outputs, 1, std::max<std::int64_t>(1, p.length / (2 * batch_terms)));
    g.chunk_length = ceil_div(p.length, g.chunks);
  } else {
    if (p.length >= 32768 || (p.length >= 2048 && p.outputs < wanted / 32) || (repair && p.length >= 2048)) {
      g.team = threads;
    } else {
      // About 32 terms for each lane: enough to pay for the merging.
      g.team = 32;
      while (!repair && g.team > 1 && std::int64_t{g.team} * 32 > p.length) g.team /= 2;
    }
    const std::int64_t portion = std::int64_t{g.team} * batch_terms;
    const std::int64_t most = std::max<std::int64_t>(1, p.length / portion);
    // outputs * team may overflow for absurd sizes only in theory: outputs < 2^62 / sizeof(float).
    // Repairs expect few of the outputs to be marked, and cut each into more pieces, as far as their results have room.
    const std::int64_t have = std::min(repair ? ceil_div(p.outputs, 256) : p.outputs, wanted) * g.team;
    const std::int64_t room = repair ? std::max<std::int64_t>(1, wanted / p.outputs) : most;
    const std::int64_t chunks = std::clamp<std::int64_t>(wanted / have, 1, std::min(most, room));
    g.chunk_length = chunks == 1 ? std::max<std::int64_t>(p.length, 1) : round_up(ceil_div(p.length, chunks), portion);
    g.chunks = std::max<std::int64_t>(1, ceil_div(p.length, g.chunk_length));
    g.packed = p.reduced_rank > 0;
    for (int k = 0; k < p.inputs; ++k) {
      g.packed = g.packed && reinterpret_cast<std::uintptr_t>(p.in[k].data) % 16 == 0 && g.reduced.stride[k][0] == 1 &&
                 (p.reduced_rank == 1 || g.reduced.size[0] % 4 == 0);
      for (int d = 1; d < p.reduced_rank; ++d) g.packed = g.packed && g.reduced.stride[k][d] % 4 == 0;
      for (int d = 0; d < p.kept_rank; ++d) g.packed = g.packed && g.kept.stride[k][d] % 4 == 0;
    }
  }
  return g;
}

std::size_t partial_size(const plan::reduce_plan& p) {
  if (p.inputs == 2) return std::max({sizeof(fast_sum<2>), sizeof(dd_sum<2>), sizeof(exact_sum<2>)});
  if (p.is_sum()) return std::max({sizeof(fast_sum<1>), sizeof(dd_sum<1>), sizeof(exact_sum<1>)});
  return std::max(sizeof(extremum), sizeof(arg_extremum));
}

// A thread's own terms, the merges in a team, the chunks of a joining lane, the merges in its warp, a bias.
std::int64_t height_of(const geometry& g) {
  return (g.columns ? g.chunk_length : ceil_div(g.chunk_length, g.team)) + 2 * batch_terms + 16 +
         ceil_div(g.chunks, 32) + 9;
}

// For sums, the repairing launches divide the work differently.
class reduce_work final : public planned {
 public:
  reduce_work(const plan::reduce_plan& p, const job& given)
      : planned(given), op_(p.op), first_(describe(p, j.device, false)) {
    r_.length = p.length;
    r_.is_mean = p.op == ops::op_id::mean;
    r_.flip = p.op == ops::op_id::min || p.op == ops::op_id::argmin ? num::order_min : num::order_max;
    std::int64_t chunks = first_.chunks;
    if (p.is_sum()) {
      repair_ = describe(p, j.device, true);
      chunks = std::max(chunks, repair_.chunks);
      space.take(undecided_, ceil_div(p.outputs, 32));
    }
    if (chunks > 1) space.take(partials_, p.outputs, chunks, partial_size(p));
  }

 private:
  template <class Fast, class DoubleDouble, class Exact>
  void sum() {
    check(cudaMemsetAsync(undecided_, 0, static_cast<std::size_t>(ceil_div(first_.outputs, 32)) * 4, j.stream),
          "reduce", "cudaMemsetAsync");
    reduce_parameters p = r_;
    p.forced = j.first_tier > tier::binary64;
    p.height = height_of(first_);
    launch<Fast>(first_, p, partials_, undecided_, false, j);
    p.forced = j.first_tier > tier::double_double;
    p.height = height_of(repair_);
    launch<DoubleDouble>(repair_, p, partials_, undecided_, true, j);
    launch<Exact>(repair_, p, partials_, undecided_, true, j);
  }

  void enqueue() override {
    ops::for_operation<ops::family::reduce>(op_, [&]<class Op>() {
      if constexpr (Op::id == ops::op_id::dot) {
        sum<fast_sum<2>, dd_sum<2>, exact_sum<2>>();
      } else if constexpr (Op::id == ops::op_id::prelu_weight_backward) {
        sum<without_positive<fast_sum<2>>, without_positive<dd_sum<2>>, without_positive<exact_sum<2>>>();
      } else if constexpr (ops::is_one_of<Op, ops::op_id::sum, ops::op_id::mean>) {
        sum<fast_sum<1>, dd_sum<1>, exact_sum<1>>();
      } else if constexpr (ops::is_one_of<Op, ops::op_id::argmax, ops::op_id::argmin>) {
        launch<arg_extremum>(first_, r_, partials_, undecided_, false, j);
      } else if constexpr (ops::is_one_of<Op, ops::op_id::max, ops::op_id::min>) {
        launch<extremum>(first_, r_, partials_, undecided_, false, j);
      } else {
        static_assert(ops::has_no_case<Op>, "a reduction without a kernel");
      }
    });
  }

  const ops::op_id op_;
  reduce_parameters r_{};
  const geometry first_;
  geometry repair_{};
  std::uint32_t* undecided_ = nullptr;
  std::byte* partials_ = nullptr;
};

}  // namespace

void prepare(const plan::reduce_plan& p, const job& j, dispatch::task& t) { t.emplace<reduce_work>(p, j); }

}  // namespace repdl::cuda
