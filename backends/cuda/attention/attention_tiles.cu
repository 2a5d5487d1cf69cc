// Attention of heads of at most 128 numbers: tiles of 16 queries a warp by 32 keys with the fp64 matrix instruction (T. Dao,
// "FlashAttention-2", 2023). A block has 4 or 8 warps: queries of all heads that go with one head of keys, one head after the other. Tiles of keys and values,
// packed in binary64 as the instruction takes them (packed_lines.cuh), are copied while the former ones are computed with: a warp's weights, which its
// lanes have as results of one product, are operands of the next one where key 2 t + j is in the place 4 j + t of eight.
//
// There is no reference: scores are at most B = |scale| N_q max N_j, and where that is not below 300 a query is left to attention_first (first_bit). The
// maxima, of N_j and of |v_je| for each e, and the norms of v_je, are found before (attention_survey), or, where queries are few, beside.
//
// Bounds, u = 2^-53, also for an addition of the matrix instruction (mma.cuh, D1), whose products are exact:
//   a_j                 (32 + D / 32 + 1) u B, by sums of 32 products (Cauchy and Schwarz); e^a_j within (6 + |a_j|) u, its argument's rounding included
//   o_e                 32 keys by the instruction, and sums of tiles: (32 + tiles) u sum w_j |v_je|
//   l                   8 keys a lane and tile, sums of tiles, two of lanes: (11 + tiles) u l
// and results as in attention_kernels.cpp of the CPU, with V_e the greatest |v_je| of all keys and N_e their norm: within
// (min(V_e, N_e sqrt(sum w_j^2) / l) + |o_e / l|) ((34 + D / 32) B + 6 + B + 32 + tiles + 20) u, where 4 u have room for the factor of dropout, and B u for what is
// added to a product.
// ln l: l = 2^k m, k ln2 + ln m within 4 u (|k| + 1).
//
// With dropout o_e has the weights that are kept, and results the factor 1 / (1 - p), within 3 u: 4 u more. With masks and slopes a_j is no more than that of the
// product and of what is added, x: (33 + D / 32 + 1) u B + 4 u |x|, as the sums' roundings are; a query with an a_j above 300, or without one near enough
// to 0, is left to attention_first, and weights of a_j below -500 are left out.
#include "backends/cuda/attention/attention_tiles.cuh"
#include "backends/cuda/attention/packed_lines.cuh"
#include "backends/cuda/attention/tile_bias.cuh"
#include "backends/cuda/attention/tile_draws.cuh"
#include "backends/cuda/rows/exponential_of_lanes.cuh"
#include "librepdl/ops/formats.hpp"

namespace repdl::cuda {
namespace {

constexpr double u = unit_roundoff;
constexpr int tile_keys = 32;
constexpr int survey_threads = 128;  // of attention_survey

// By a block.
template <int Warps>
__device__ void write_chunk(float* to, const joined_survey<Warps>& keys, const joined_survey<Warps>& values) {
  if (threadIdx.x == 0) to[0] = __uint_as_float(keys.norm);
  for (int e = static_cast<int>(threadIdx.x); e < most_size; e += 32 * Warps) {
    to[1 + e] = __uint_as_float(values.most[e]);
    to[1 + most_size + e] = values.squares_of(e);
  }
}

// One block a chunk of keys of one of the heads from `first` on: what is known of them, and keys and values as tiles take them: of all those heads the keys,
// then the values.
template <class T, int Size>
__global__ void __launch_bounds__(survey_threads)
    attention_survey(const __grid_constant__ attention_geometry g, std::int64_t chunks, std::int64_t first,
                     float* statistics, double* packed, const open_queries open) {
  constexpr int warps = survey_threads / 32;
  __shared__ joined_survey<warps> keys, values;
  keys.clear();
  values.clear();
  __syncthreads();
  const std::int64_t n = blockIdx.x / chunks, of = first + n, chunk = blockIdx.x % chunks,
                     key_heads = g.heads / g.group, heads = gridDim.x / chunks;
  if (chunk == 0 && threadIdx.x == 0) open.counts[of] = 0;
  std::int64_t at[6];
  g.batch.locate(of / key_heads, at);
  const T* const k = static_cast<const T*>(g.k) + at[1] + of % key_heads * g.k_at.head;
  const T* const v = static_cast<const T*>(g.v) + at[2] + of % key_heads * g.v_at.head;
  const std::int64_t lines = padded_lines(g.keys), of_head = lines * Size,
                     end = (chunk + 1) * chunk_keys < lines ? (chunk + 1) * chunk_keys : lines;
  line_survey<Size> of_keys, of_values;
  for (std::int64_t j = chunk * chunk_keys + 8 * (threadIdx.x / 32); j < end; j += 8 * warps) {
    double* const to = packed + n * of_head + j * Size;
    const packed_group keys_to{.products = to}, values_to{.sums = to + heads * of_head};
    of_keys.template take<true, false>(k + j * g.k_at.row, g.k_at.row, g.keys - j, g.size, keys_to);
    of_values.template take<false, true>(v + j * g.v_at.row, g.v_at.row, g.keys - j, g.value_size, values_to);
  }
  keys.add(of_keys);
  values.add(of_values);
  __syncthreads();
  write_chunk(statistics + (of * chunks + chunk) * numbers_of_chunk, keys, values);
}

// What a query's results are certified with, by the bounds above: `bound` B, `greatest` of |a_j| and of four times what is added to the product. `spread` is sqrt(sum w_j^2) / l, `relative` (error / l + c u) of the bounds above.
struct query_sums {
  double sum, spread, relative, rate;

  __device__ query_sums(double l, double squares, double bound, std::int64_t size, double additions, bool by_first,
                        double of_kept, double greatest)
      : sum(l), spread(sqrt(squares) / l * (1 + 0x1p-20)), rate(of_kept) {
    const double score = (height_of_product(size) + 2) * bound + 6 + greatest;
    relative = by_first ? (score + (32 + additions + 20)) * u * (1 + 0x1p-20) : num::infinity;
  }
  template <class T>
  __device__ num::decided_value<T> result(double o, float greatest, float norm) const {
    const double y = o / sum * rate, most = static_cast<double>(greatest), all = static_cast<double>(norm) * spread;
    const double f = ((all < most ? all : most) * rate + num::magnitude_of(y)) * relative;
    const num::decided_value<T> r = num::certify<T>(y, f);
    return {r.value, r.decided && f < 0x1p900};
  }
  __device__ num::certified logarithm() const {
    const std::uint64_t b = num::bits_of(sum);
    const int power = static_cast<int>(b >> 52) - 1023;
    const double significand = num::double_of((b & 0xfffffffffffffull) | 0x3ff0000000000000ull);
    const double y = static_cast<double>(power) * 0x1.62e42fefa39efp-1 + num::fast_log(1.0, significand - 1);
    const double f = relative + (4 * (fabs(static_cast<double>(power)) + 1) + 20) * u;
    const num::certified r = num::certify<float>(y, f);
    return {r.value, r.decided && f < 0x1p900 && sum < num::infinity};
  }
};

// How a block is made: of heads of at most Size numbers.
template <class T, int Size>
struct tiling {
  static constexpr int steps = Size / 8, warps = Size == 64 ? 4 : 8, threads = 32 * warps, queries = 16 * warps,
                       eights = tile_keys / 8;
  static constexpr int blocks = Size == 64 ? 2 : 1;  // of a multiprocessor
  struct memory {
    row_tile<steps, threads> queries;  // each read by the thread alone that wrote it
    packed_tile<Size, tile_keys, packed_for::products> keys[2];
    packed_tile<Size, tile_keys, packed_for::sums> values[2];
    float most[Size], norms[Size];
    float norm;
    int begin, end;
  };
};

template <class T, int Size, tile_extras Extras>
__global__ void __launch_bounds__(tiling<T, Size>::threads, tiling<T, Size>::blocks)
    attention_tiles(const __grid_constant__ attention_geometry g, std::int64_t blocks_of_head, std::int64_t chunks,
                    std::int64_t first_head, const double* packed, bool by_first, const float* statistics,
                    std::uint32_t* bits, const open_queries open_ones, counter* counters) {
  using cut = tiling<T, Size>;
  constexpr int steps = cut::steps, threads = cut::threads, eights = cut::eights, most_words = Size / 32;
  constexpr bool has_bias = Extras == tile_extras::masks, may_drop = Extras != tile_extras::none;
  auto& m = memory_of_block<typename cut::memory>();
  const exponential_of_lanes exponential;
  const int tid = static_cast<int>(threadIdx.x), lane = tid % 32, warp = tid / 32, row = lane / 4, t = lane % 4;
  const std::int64_t of = first_head + blockIdx.x / blocks_of_head, key_heads = g.heads / g.group,
                     batch = of / key_heads, key_head = of % key_heads;
  // The last queries, which have most keys where there is causality, come first.
  const std::int64_t tile = (blocks_of_head - 1 - blockIdx.x % blocks_of_head) * cut::queries + warp * 16;
  std::int64_t at[6];
  g.batch.locate(batch, at);
  const int keys = static_cast<int>(g.keys);
  if (tid == 0) {
    m.begin = keys;
    m.end = 0;
    m.norm = greatest_norm(statistics, of, chunks);
  }
  for (int e = tid; e < Size; e += threads) {
    const of_column c = column_of(statistics, of, chunks, e);
    m.most[e] = c.most;
    m.norms[e] = c.norm;
  }
  __syncthreads();

  // A lane's two queries: rows g and g + 8 of its warp's tile.
  int first[2], last[2];
  double bound[2];
  std::uint64_t pair[2];             // with key 0
  std::int64_t mask_at[2], here[2];  // here: i + off
  double slope[2] = {}, greatest_bias[2] = {};
  bool has_some[2] = {}, is_odd[2] = {};
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const std::int64_t r = tile + row + 8 * h;
    const bool is_there = r < g.group * g.queries;
    const std::int64_t head = key_head * g.group + (is_there ? r / g.queries : 0), i = is_there ? r % g.queries : 0;
    pair[h] = static_cast<std::uint64_t>(((batch * g.heads + head) * g.queries + i) * g.keys);
    here[h] = i + g.offset;
    mask_at[h] = at[3] + head * g.mask_at.head + i * g.mask_at.row;
    if (has_bias && g.slopes != nullptr) slope[h] = static_cast<double>(g.slopes[head * g.slope_step]);
    const auto within = [&](std::int64_t j) { return static_cast<int>(j < 0 ? 0 : j > g.keys ? g.keys : j); };
    first[h] = is_there ? within(i + g.offset - g.before) : 0;
    last[h] = is_there ? within(i + g.offset + g.after + 1) : 0;
    if (last[h] < first[h]) last[h] = first[h];
    const T* const from = static_cast<const T*>(g.q) + at[0] + head * g.q_at.head + i * g.q_at.row;
    double square = 0;
#pragma unroll
    for (int s = 0; s < steps; ++s) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int d = 8 * s + 4 * j + t;
        const float x = is_there && d < g.size ? num::widen_to_float(from[d * g.q_at.element]) : 0.0f;
        (&m.queries[s][tid].x)[2 * j + h] = x;
        square = fma(static_cast<double>(x), static_cast<double>(x), square);
      }
    }
    square += __shfl_xor_sync(full_warp, square, 1);
    square += __shfl_xor_sync(full_warp, square, 2);
    bound[h] = num::magnitude_of(g.scale) * sqrt(square) * static_cast<double>(m.norm) * (1 + 0x1p-20);
    if (t == 0 && last[h] > first[h]) {
      atomicMin(&m.begin, first[h]);
      atomicMax(&m.end, last[h]);
    }
  }
  const bool is_left_of_all = __any_sync(full_warp, !(bound[0] < most_score) || !(bound[1] < most_score));
  const column_range range(first, last, keys);
  __syncthreads();
  const int begin = m.begin / tile_keys * tile_keys, end = m.end;
  const std::int64_t of_head = padded_lines(g.keys) * Size;
  const double* const k = packed + (of - first_head) * of_head;
  const double* const v = k + gridDim.x / blocks_of_head * of_head;
  const auto copy = [&](int j, int stage) {
    m.keys[stage].template copy<threads>(tid, k + static_cast<std::int64_t>(j) * Size);
    m.values[stage].template copy<threads>(tid, v + static_cast<std::int64_t>(j) * Size);
    commit_copies();
  };
  if (begin < end) copy(begin, 0);

  double o[steps][4] = {}, sum[2] = {}, squares[2] = {};
  for (int j0 = begin, stage = 0; j0 < end; j0 += tile_keys, stage ^= 1) {
    wait_for_copies<0>();
    __syncthreads();
    if (j0 + tile_keys < end) copy(j0 + tile_keys, stage ^ 1);
    if (is_left_of_all || !range.has_any(j0, tile_keys)) continue;
    double w[eights][4];
    multiply_lines(m.queries, tid, m.keys[stage], w);
    const bool is_whole = range.has_all(j0, tile_keys);
    if constexpr (has_bias) {
#pragma unroll
      for (int eight = 0; eight < eights; ++eight) {
#pragma unroll
        for (int x = 0; x < 4; ++x) {
          const int h = x / 2, j = j0 + 8 * eight + 2 * t + x % 2;
          score_bias b;
          if (j >= first[h] && j < last[h])
            b = bias_of<T>(g.mask, g.is_added, mask_at[h] + j * g.mask_at.element, slope[h], j - here[h]);
          const double a = (w[eight][x] * g.scale + b.along()) + b.mask, size = b.size();
          const bool counts = b.is_present && a >= least_score && a <= most_score;
          has_some[h] = has_some[h] || b.is_present;
          is_odd[h] = is_odd[h] || (b.is_present && !(a <= most_score));
          greatest_bias[h] = counts && size > greatest_bias[h] ? size : greatest_bias[h];
          const double e = exponential(counts ? a : 0.0);
          w[eight][x] = counts ? e : 0.0;
        }
      }
    } else {
#pragma unroll
      for (int eight = 0; eight < eights; ++eight) {
#pragma unroll
        for (int x = 0; x < 4; ++x) w[eight][x] = exponential(w[eight][x] * g.scale);
      }
    }
    if (!has_bias && !is_whole) {
#pragma unroll
      for (int eight = 0; eight < eights; ++eight) {
#pragma unroll
        for (int x = 0; x < 4; ++x) {
          const int j = j0 + 8 * eight + 2 * t + x % 2;
          w[eight][x] = j >= first[x / 2] && j < last[x / 2] ? w[eight][x] : 0.0;
        }
      }
    }
#pragma unroll
    for (int eight = 0; eight < eights; ++eight) {
#pragma unroll
      for (int x = 0; x < 4; ++x) {
        const double e = w[eight][x];
        sum[x / 2] += e;
        squares[x / 2] = fma(e, e, squares[x / 2]);
      }
    }
    if (may_drop && (!has_bias || g.draws.any())) {
#pragma unroll
      for (int eight = 0; eight < eights; ++eight) {
        const auto j = static_cast<std::uint64_t>(j0 + 8 * eight);
        const unsigned kept = kept_pairs<false>(g.draws, {pair[0] + j, pair[1] + j}, 1, g.keys % 4 == 0);
#pragma unroll
        for (int x = 0; x < 4; ++x) w[eight][x] = (kept >> x & 1) != 0 ? w[eight][x] : 0.0;
      }
    }
    add_lines(w, m.values[stage], o);
  }

  const double tiles = static_cast<double>((end - begin + tile_keys - 1) / tile_keys);
  std::int64_t decided = 0, settled = 0;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    over_lanes_of_row(sum[h]);
    over_lanes_of_row(squares[h]);
    std::uint32_t open[most_words] = {};
    const std::int64_t r = tile + row + 8 * h;
    const bool is_there = r < g.group * g.queries;
    bool has_keys = last[h] > first[h], is_left = is_left_of_all;
    double greatest = bound[h];
    if constexpr (has_bias) {
      has_keys = any_lane_of_row(has_some[h]);
      is_left = is_left || any_lane_of_row(is_odd[h]) || (has_keys && !(sum[h] >= least_sum));
      greatest = -least_score + 4 * greatest_over_lanes_of_row(greatest_bias[h]);
    }
    const std::int64_t i = is_there ? r % g.queries : 0, head = key_head * g.group + (is_there ? r / g.queries : 0),
                       n = (batch * g.heads + head) * g.queries + i;
    const query_sums sums(sum[h], squares[h], bound[h], g.size, tiles, by_first, may_drop ? g.draws.rate() : 1.0,
                          greatest);
    if (is_there && !is_left) {
      T* const out = static_cast<T*>(g.out) + at[4] + head * g.out_at.head + i * g.out_at.row;
#pragma unroll
      for (int s = 0; s < steps; ++s) {
#pragma unroll
        for (int x = 0; x < 2; ++x) {
          const int e = 8 * s + 2 * t + x;
          if (e >= g.value_size) continue;
          const num::decided_value<T> found = sums.result<T>(o[s][2 * h + x], m.most[e], m.norms[e]);
          const bool is_open = has_keys && !found.decided;
          out[e * g.out_at.element] = has_keys ? found.value : num::from_bits<T>(num::storage_of<T>{0});
          open[s / 4] |= is_open ? 1u << (e % 32) : 0u;
          ++(has_keys ? decided : settled);
          decided -= is_open ? 1 : 0;
        }
      }
    }
#pragma unroll
    for (int word = 0; word < most_words; ++word) {
      open[word] |= __shfl_xor_sync(full_warp, open[word], 1);
      open[word] |= __shfl_xor_sync(full_warp, open[word], 2);
    }
    if (!is_there || t != 0) continue;
    std::uint32_t* const to = bits + n * g.words;
    std::uint32_t last_word = is_left ? first_bit : 0;
    if (g.lse != nullptr && !is_left) {
      float* const lse = static_cast<float*>(g.lse) + at[5] + head * g.lse_at.head + i * g.lse_at.row;
      const num::certified found = sums.logarithm();
      const bool is_open = has_keys && !found.decided;
      *lse = has_keys ? found.value : -static_cast<float>(num::infinity);
      last_word |= is_open ? lse_bit : 0;
      ++(has_keys ? decided : settled);
      decided -= is_open ? 1 : 0;
    }
    bool any = false;
#pragma unroll
    for (int word = 0; word < most_words; ++word) {
      if (word + 1 < g.words) to[word] = open[word];
      any = any || (word + 1 < g.words && open[word] != 0);
    }
    to[g.words - 1] = last_word;
    if (any) open_ones.add(of, n);
  }
  count_elements(counters, tier::proved, settled);
  count_elements(counters, tier::binary64, decided);
}

// ---------------------------------------------------------------------------------------------------- few queries, many keys

// At most 16 queries of a head of keys: a block has a part of the keys, whose tiles its warps share, and leaves sums, which attention_join adds up, and what
// is known of the part's keys and values, whose chunk it is: they are read once.
template <class T, int Size>
struct splitting {
  static constexpr int steps = Size / 8, warps = 4, threads = 32 * warps, keys = Size == 64 ? 32 : 16,
                       eights = keys / 8;
  using tile = staged_tile<T, Size, 32, keys>;
  struct memory {
    row_tile<steps, 32> queries;
    union {
      struct {
        tile keys[2], values[2];
      } of_warp[warps];
      struct {
        double sums[warps][16][Size + 2];
        joined_survey<warps> keys, values;
      } of_block;
    };
  };
};
// Of one query and part: its results' sums, sum and squares.
constexpr int numbers_of_part = most_size + 2;

template <class T, int Size>
__global__ void __launch_bounds__(splitting<T, Size>::threads)
    attention_split(const __grid_constant__ attention_geometry g, std::int64_t parts, std::int64_t tiles_of_part,
                    double* sums, float* statistics, const open_queries open) {
  using cut = splitting<T, Size>;
  constexpr int steps = cut::steps, eights = cut::eights;
  auto& m = memory_of_block<typename cut::memory>();
  const exponential_of_lanes exponential;
  const int tid = static_cast<int>(threadIdx.x), lane = tid % 32, warp = tid / 32, row = lane / 4, t = lane % 4;
  const std::int64_t of = blockIdx.x / parts, part = blockIdx.x % parts, key_heads = g.heads / g.group,
                     batch = of / key_heads, key_head = of % key_heads, rows = g.group * g.queries;
  std::int64_t at[6];
  g.batch.locate(batch, at);
  if (part == 0 && tid == 0) open.counts[of] = 0;
  int first[2], last[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const std::int64_t r = row + 8 * h;
    const bool is_there = r < rows;
    const std::int64_t head = key_head * g.group + (is_there ? r / g.queries : 0), i = is_there ? r % g.queries : 0;
    const auto within = [&](std::int64_t j) { return static_cast<int>(j < 0 ? 0 : j > g.keys ? g.keys : j); };
    first[h] = is_there ? within(i + g.offset - g.before) : 0;
    last[h] = is_there ? within(i + g.offset + g.after + 1) : 0;
    const T* const from = static_cast<const T*>(g.q) + at[0] + head * g.q_at.head + i * g.q_at.row;
    for (int s = warp; s < steps; s += cut::warps) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int d = 8 * s + 4 * j + t;
        (&m.queries[s][lane].x)[2 * j + h] =
            is_there && d < g.size ? num::widen_to_float(from[d * g.q_at.element]) : 0.0f;
      }
    }
  }
  __syncthreads();
  const T* const k = static_cast<const T*>(g.k) + at[1] + key_head * g.k_at.head;
  const T* const v = static_cast<const T*>(g.v) + at[2] + key_head * g.v_at.head;
  const std::int64_t end_of_part = (part + 1) * tiles_of_part * cut::keys;
  const int begin = static_cast<int>(part * tiles_of_part * cut::keys),
            end = static_cast<int>(end_of_part < g.keys ? end_of_part : g.keys);
  auto& mine = m.of_warp[warp];
  const auto copy = [&](int j, int stage) {
    if (j < end) {
      mine.keys[stage].copy(lane, k + j * g.k_at.row, g.k_at.row, end - j, g.size);
      mine.values[stage].copy(lane, v + j * g.v_at.row, g.v_at.row, end - j, g.value_size);
    }
    commit_copies();
  };
  constexpr int stride = cut::warps * cut::keys;
  int j0 = begin + warp * cut::keys;
  copy(j0, 0);
  double o[steps][4] = {}, sum[2] = {}, squares[2] = {};
  line_survey<Size> of_keys, of_values;
  for (int stage = 0; j0 < end; j0 += stride, stage ^= 1) {
    copy(j0 + stride, stage ^ 1);
    wait_for_copies<1>();
    __syncwarp();
    of_keys.take_norms(mine.keys[stage]);
    of_values.take_columns(mine.values[stage]);
    double w[eights][4];
    multiply_lines(m.queries, lane, mine.keys[stage], w);
#pragma unroll
    for (int eight = 0; eight < eights; ++eight) {
#pragma unroll
      for (int x = 0; x < 4; ++x) {
        const int j = j0 + 8 * eight + 2 * t + x % 2;
        // Beyond most_score the results are not looked at.
        const double all = exponential(w[eight][x] * g.scale), e = j >= first[x / 2] && j < last[x / 2] ? all : 0.0;
        w[eight][x] = e;
        sum[x / 2] += e;
        squares[x / 2] = fma(e, e, squares[x / 2]);
      }
    }
    add_lines(w, mine.values[stage], o);
    __syncwarp();
  }
  wait_for_copies<0>();
  __syncthreads();  // the tiles' memory is free
  m.of_block.keys.clear();
  m.of_block.values.clear();
  __syncthreads();
  m.of_block.keys.add(of_keys);
  m.of_block.values.add(of_values);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    over_lanes_of_row(sum[h]);
    over_lanes_of_row(squares[h]);
    double* const to = m.of_block.sums[warp][row + 8 * h];
#pragma unroll
    for (int s = 0; s < steps; ++s) {
      to[8 * s + 2 * t] = o[s][2 * h];
      to[8 * s + 2 * t + 1] = o[s][2 * h + 1];
    }
    if (t == 0) {
      to[Size] = sum[h];
      to[Size + 1] = squares[h];
    }
  }
  __syncthreads();
  for (int i = tid; i < static_cast<int>(rows) * (Size + 2); i += cut::threads) {
    const int r = i / (Size + 2), e = i % (Size + 2);
    double all = 0;
#pragma unroll
    for (int w = 0; w < cut::warps; ++w) all += m.of_block.sums[w][r][e];
    sums[((of * parts + part) * rows + r) * numbers_of_part + (e < Size ? e : most_size + e - Size)] = all;
  }
  write_chunk(statistics + (of * parts + part) * numbers_of_chunk, m.of_block.keys, m.of_block.values);
}

// A warp a query: adds up the parts.
template <class T>
__global__ void __launch_bounds__(survey_threads)
    attention_join(const __grid_constant__ attention_geometry g, std::int64_t parts, double additions, bool by_first,
                   const double* sums, const float* statistics, std::uint32_t* bits, const open_queries open_ones,
                   counter* counters) {
  const int lane = lane_of_thread();
  const std::int64_t n = static_cast<std::int64_t>(blockIdx.x) * (survey_threads / 32) + threadIdx.x / 32;
  if (n >= g.total) return;
  const query_at<T> place(g, n);
  const std::int64_t head = n / g.queries % g.heads, key_heads = g.heads / g.group, rows = g.group * g.queries;
  const std::int64_t of = n / g.queries / g.heads * key_heads + head / g.group,
                     r = head % g.group * g.queries + n % g.queries;
  double square = 0;
  for (std::int64_t d = lane; d < g.size; d += 32) {
    const double x = static_cast<double>(place.query.query_value(d));
    square = fma(x, x, square);
  }
  const double bound = num::magnitude_of(g.scale) * sqrt(over_warp(square)) *
                       static_cast<double>(greatest_norm(statistics, of, parts)) * (1 + 0x1p-20);
  const bool is_left = !(bound < most_score), has_keys = place.query.last > place.query.first;
  const auto total = [&](int e) {
    double all = 0;
    for (std::int64_t part = 0; part < parts; ++part)
      all += sums[((of * parts + part) * rows + r) * numbers_of_part + e];
    return all;
  };
  const query_sums found(total(most_size), total(most_size + 1), bound, g.size, additions, by_first, 1.0, bound);
  std::int64_t decided = 0, settled = 0;
  bool any = false;
  for (std::int64_t word = 0; word + 1 < g.words; ++word) {
    const int e = static_cast<int>(32 * word) + lane;
    bool is_open = false;
    if (e < g.value_size && !is_left) {
      const of_column c = column_of(statistics, of, parts, e);
      const num::decided_value<T> v = found.result<T>(total(e), c.most, c.norm);
      is_open = has_keys && !v.decided;
      place.out[e * g.out_at.element] = has_keys ? v.value : num::from_bits<T>(num::storage_of<T>{0});
      ++(has_keys ? decided : settled);
      decided -= is_open ? 1 : 0;
    }
    const std::uint32_t open = __ballot_sync(full_warp, is_open);
    if (lane == 0) bits[n * g.words + word] = open;
    any = any || open != 0;
  }
  if (lane == 0) {
    if (any) open_ones.add(of, n);
    std::uint32_t last = is_left ? first_bit : 0;
    if (place.lse != nullptr && !is_left) {
      const num::certified c = found.logarithm();
      const bool is_open = has_keys && !c.decided;
      *place.lse = has_keys ? c.value : -static_cast<float>(num::infinity);
      last |= is_open ? lse_bit : 0;
      ++(has_keys ? decided : settled);
      decided -= is_open ? 1 : 0;
    }
    bits[n * g.words + g.words - 1] = last;
  }
  count_elements(counters, tier::proved, settled);
  count_elements(counters, tier::binary64, decided);
}

std::int64_t memory_of(const plan::attention_plan& p) {
  std::int64_t bytes = 0;
  ops::for_each_format<ops::NARROW>([&]<class T>() {
    if (dtype_of<T> != p.type) return;
    bytes = std::max(p.size, p.value_size) <= 64 ? sizeof(typename tiling<T, 64>::memory)
                                                 : sizeof(typename tiling<T, 128>::memory);
  });
  return bytes;
}

}  // namespace

bool is_for_tiles(const plan::attention_plan& p, const properties& d) {
  return p.type != dtype::f64 && d.capability >= 80 && !d.choice.wide && p.keys > 0 && p.keys <= most_lines &&
         p.size > 0 && p.value_size > 0 && p.size <= most_size && p.value_size <= most_size &&
         memory_of(p) <= largest_memory(d) && is_packed(p, p.k, p.k_at, p.size) &&
         is_packed(p, p.v, p.v_at, p.value_size);
}
std::int64_t statistics_of_tiles(const plan::attention_plan& p, const properties& d) {
  const std::int64_t parts = parts_of_tiles(p, d);
  return p.batches * p.key_heads * chunks_of(p.keys, parts) * numbers_of_chunk;
}
std::int64_t parts_of_tiles(const plan::attention_plan& p, const properties& d) {
  const std::int64_t rows = p.heads / p.key_heads * p.queries, heads = p.batches * p.key_heads;
  constexpr std::int64_t least_keys = 512;  // of a part
  if (rows > 16 || p.threshold != 0 || p.mask != nullptr || p.slopes != nullptr || p.keys < 2 * least_keys ||
      shared_limit(d) < (144 << 10))
    return 0;
  return std::clamp<std::int64_t>(d.multiprocessors / heads, 1, p.keys / least_keys);
}
std::int64_t sums_of_tiles(const plan::attention_plan& p, const properties& d) {
  return p.batches * p.heads * p.queries * parts_of_tiles(p, d) * numbers_of_part;
}
std::int64_t packed_of_tiles(const plan::attention_plan& p, const properties& d) {
  if (parts_of_tiles(p, d) != 0) return 0;
  const std::int64_t size = std::max(p.size, p.value_size) <= 64 ? 64 : most_size, lines = 2 * padded_lines(p.keys);
  return packed_heads(p.batches * p.key_heads, lines, size) * lines * size;
}
void enqueue_tiles(const attention_geometry& g, dtype type, bool by_first, std::int64_t parts, double* sums,
                   double* packed, float* statistics, std::uint32_t* bits, const open_queries& open, const job& j) {
  const std::int64_t heads = g.total / (g.group * g.queries), chunks = chunks_of(g.keys, parts);
  const float* const known = statistics;
  ops::for_each_format<ops::NARROW>([&]<class T>() {
    if (dtype_of<T> != type) return;
    const auto run = [&]<int Size>() {
      if (parts != 0) {
        using cut = splitting<T, Size>;
        const std::int64_t tiles = ceil_div(ceil_div(g.keys, cut::keys), parts);
        launch_kernel<attention_split<T, Size>>(j, heads * parts, cut::threads, sizeof(typename cut::memory), g, parts,
                                                tiles, sums, statistics, open);
        // Of l, whose lanes add up 2 eights of each tile one after the other; o_e has a tile's sum at a time.
        const auto additions = static_cast<double>(2 * cut::eights * ceil_div(tiles, cut::warps) + cut::warps + parts);
        launch_kernel<attention_join<T>>(j, ceil_div(g.total, survey_threads / 32), survey_threads, 0, g, parts,
                                         additions, by_first, static_cast<const double*>(sums), known, bits, open,
                                         j.counters);
        return;
      }
      using cut = tiling<T, Size>;
      const std::int64_t blocks = ceil_div(g.group * g.queries, cut::queries);
      const std::int64_t at_once = packed_heads(heads, 2 * padded_lines(g.keys), Size);
      for (std::int64_t first = 0; first < heads; first += at_once) {
        const std::int64_t count = std::min(at_once, heads - first);
        launch_kernel<attention_survey<T, Size>>(j, count * chunks, survey_threads, 0, g, chunks, first, statistics,
                                                 packed, open);
        const auto tiles = [&]<tile_extras Extras>() {
          launch_kernel<attention_tiles<T, Size, Extras>>(j, count * blocks, cut::threads, sizeof(typename cut::memory),
                                                          g, blocks, chunks, first, static_cast<const double*>(packed),
                                                          by_first, known, bits, open, j.counters);
        };
        switch (extras_of(g.mask, g.slopes, g.draws)) {
          case tile_extras::none:
            tiles.template operator()<tile_extras::none>();
            break;
          case tile_extras::draws:
            tiles.template operator()<tile_extras::draws>();
            break;
          case tile_extras::masks:
            tiles.template operator()<tile_extras::masks>();
        }
      }
    };
    std::max(g.size, g.value_size) <= 64 ? run.template operator()<64>() : run.template operator()<128>();
  });
}

}  // namespace repdl::cuda
