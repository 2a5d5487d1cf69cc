// Results that attention_tiles leaves undecided, of 16 queries of a head of keys at a time: a warp goes along tiles of 16 keys
// with the fp64 matrix instruction, the warps of a block sharing the keys, or those of a cluster of blocks, where heads are few.
//
// Scores, scale times products of split operands (second_tier.cuh), are within |scale| split_error + 2^-103 B of theirs, weights within that and 2^-71
// of themselves (wide_exponential_of_lanes), and sums of weights, and of weights times v, of n keys within (2 n^2 + 16 n) u^2 more: of each
// addition what the low part, at most n u of the sum, loses. All that is relative to sum w_j |v_je| <= V_e l, and l. What is added to a product, x, errs
// by 2^-102 |x| more.
#include "backends/cuda/attention/attention_tiles.cuh"
#include "backends/cuda/attention/second_tier.cuh"
#include "backends/cuda/attention/tile_bias.cuh"
#include "backends/cuda/core/cluster.cuh"
#include "backends/cuda/product/launch_next.cuh"
#include "librepdl/ops/formats.hpp"

namespace repdl::cuda {
namespace {

constexpr double u = unit_roundoff;
constexpr std::int64_t most_keys = std::int64_t{1} << 20;

template <class T, int Size>
struct second_tiling {
  // Few blocks have something to do: with many warps they are done sooner.
  static constexpr int steps = Size / 8, warps = 8, threads = 32 * warps, of_query = threads / rows_of_second,
                       keys = 16, eights = keys / 8;
  struct memory {
    double parts[2][steps][4][32];  // q_h and q_l as the instruction takes them
    staged_tile<T, Size, 32, keys> tiles[warps][2];
    double sums[warps][rows_of_second][1 + most_open][2];
    long long n[rows_of_second];
    int first[rows_of_second], last[rows_of_second];
    int open[rows_of_second][most_open], most;  // results; -1: no more; the most that a query has
    double norm[rows_of_second], greatest;
    double slope[rows_of_second];
    long long mask_at[rows_of_second], here[rows_of_second];  // here: i + off
    int greatest_bias[rows_of_second];                        // the bits of a number of binary32
  };
};

template <class T, int Size>
__global__ void __launch_bounds__(second_tiling<T, Size>::threads, 1)
    attention_second(const __grid_constant__ attention_geometry g, std::int64_t groups_of_head, int blocks_of_group,
                     std::int64_t chunks, const float* statistics, std::uint32_t* bits, const open_queries open,
                     counter* counters) {
  using cut = second_tiling<T, Size>;
  constexpr int steps = cut::steps, threads = cut::threads, keys = cut::keys, eights = cut::eights;
  auto& m = memory_of_block<typename cut::memory>();
  const wide_exponential_of_lanes exponential;
  const int tid = static_cast<int>(threadIdx.x), lane = tid % 32, warp = tid / 32, row = lane / 4, t = lane % 4;
  const int block = static_cast<int>(blockIdx.x) % blocks_of_group, all_warps = blocks_of_group * cut::warps;
  const std::int64_t first_group = blockIdx.x / blocks_of_group, of = first_group / groups_of_head,
                     key_heads = g.heads / g.group, batch = of / key_heads, key_head = of % key_heads;
  std::int64_t at[6];
  g.batch.locate(batch, at);
  const T* const k = static_cast<const T*>(g.k) + at[1] + key_head * g.k_at.head;
  const T* const v = static_cast<const T*>(g.v) + at[2] + key_head * g.v_at.head;
  const int count = open.counts[of];
  const bool has_bias = g.mask != nullptr || g.slopes != nullptr;
  std::int64_t decided = 0;
  if (tid == 0) m.greatest = static_cast<double>(greatest_norm(statistics, of, chunks));
  for (std::int64_t group = first_group % groups_of_head; group * rows_of_second < count; group += groups_of_head) {
    if (tid == 0) m.most = 0;
    __syncthreads();
    if (tid < rows_of_second) {
      const std::int64_t place = group * rows_of_second + tid,
                         n = place < count ? open.queries[of * open.most + place] : -1;
      find_open(bits + (n < 0 ? 0 : n) * g.words, n < 0 ? 0 : g.words - 1, m.open[tid]);
      const bool is_there = n >= 0 && m.open[tid][0] >= 0;
      const std::int64_t i = n % g.queries, head = n / g.queries % g.heads;
      const auto within = [&](std::int64_t j) { return static_cast<int>(j < 0 ? 0 : j > g.keys ? g.keys : j); };
      for (int o = 0; o < most_open; ++o) {
        if (m.open[tid][o] >= 0) atomicMax(&m.most, o + 1);
      }
      m.n[tid] = is_there ? n : -1;
      m.here[tid] = i + g.offset;
      m.mask_at[tid] = at[3] + head * g.mask_at.head + i * g.mask_at.row;
      m.slope[tid] = is_there && g.slopes != nullptr ? static_cast<double>(g.slopes[head * g.slope_step]) : 0.0;
      m.greatest_bias[tid] = 0;
      m.first[tid] = is_there ? within(i + g.offset - g.before) : 0;
      m.last[tid] = is_there ? within(i + g.offset + g.after + 1) : 0;
    }
    __syncthreads();
    const auto query_of = [&](int r) {
      const std::int64_t n = m.n[r];
      return static_cast<const T*>(g.q) + at[0] + n / g.queries % g.heads * g.q_at.head + n % g.queries * g.q_at.row;
    };
    {
      const int r = tid / cut::of_query;
      double square = 0;
      for (std::int64_t d = tid % cut::of_query; m.n[r] >= 0 && d < g.size; d += cut::of_query) {
        const double x = static_cast<double>(num::widen_to_float(query_of(r)[d * g.q_at.element]));
        square = fma(x, x, square);
      }
#pragma unroll
      for (int by = 1; by < cut::of_query; by *= 2) square += __shfl_xor_sync(full_warp, square, by);
      if (tid % cut::of_query == 0) m.norm[r] = sqrt(square) * (1 + 0x1p-20);
    }
    __syncthreads();
    for (int i = tid; i < steps * 4 * 32; i += threads) {
      const int l = i % 32, x = i / 32 % 4, s = i / 128, r = l / 4 + 8 * (x % 2), d = 8 * s + 4 * (x / 2) + l % 4;
      const double q =
          m.n[r] >= 0 && d < g.size ? static_cast<double>(num::widen_to_float(query_of(r)[d * g.q_at.element])) : 0.0;
      const double splitter = splitter_of(power_above(m.norm[r])), high = (q + splitter) - splitter;
      m.parts[0][s][x][l] = high;
      m.parts[1][s][x][l] = q - high;
    }
    int begin = static_cast<int>(g.keys), end = 0;
    for (int r = 0; r < rows_of_second; ++r) {
      if (m.last[r] <= m.first[r]) continue;
      begin = m.first[r] < begin ? m.first[r] : begin;
      end = m.last[r] > end ? m.last[r] : end;
    }
    begin = begin / keys * keys;
    __syncthreads();

    const double splitter = splitter_of(power_above(m.greatest));
    const auto copy = [&](int j, int stage) {
      if (j < end) m.tiles[warp][stage].copy(lane, k + j * g.k_at.row, g.k_at.row, end - j, g.size);
      commit_copies();
    };
    const int most = m.most;
    running_sum weights[2], results[2][most_open];
    double greatest_bias[2] = {};
    int j0 = begin + (block * cut::warps + warp) * keys;
    copy(j0, 0);
    for (int stage = 0; j0 < end; j0 += all_warps * keys, stage ^= 1) {
      copy(j0 + all_warps * keys, stage ^ 1);
      wait_for_copies<1>();
      __syncwarp();
      const auto& from = m.tiles[warp][stage];
      // Numbers of v are on their way while scores are computed.
      const auto value = [&](int eight, int x, int e) {
        const int r = row + 8 * (x / 2), j = j0 + 8 * eight + 2 * t + x % 2;
        return e >= 0 && j >= m.first[r] && j < m.last[r] ? num::widen_to_float(v[j * g.v_at.row + e]) : 0.0f;
      };
      float y[most_open][eights][4];
#pragma unroll
      for (int i = 0; i < most_open; ++i) {
        if (i >= most) break;
#pragma unroll
        for (int eight = 0; eight < eights; ++eight) {
#pragma unroll
          for (int x = 0; x < 4; ++x) y[i][eight][x] = value(eight, x, m.open[row + 8 * (x / 2)][i]);
        }
      }
      double sum[eights][4] = {}, rest[eights][4] = {};
      multiply_split(m.parts[0], m.parts[1], from, splitter, sum, rest);
#pragma unroll
      for (int eight = 0; eight < eights; ++eight) {
#pragma unroll
        for (int x = 0; x < 4; ++x) {
          const int r = row + 8 * (x / 2), j = j0 + 8 * eight + 2 * t + x % 2;
          num::dd score = num::mul(num::two_sum(sum[eight][x], rest[eight][x]), g.scale);
          bool counts = j >= m.first[r] && j < m.last[r];
          if (has_bias) {
            score_bias b;
            if (counts)
              b = bias_of<T>(g.mask, g.is_added, m.mask_at[r] + j * g.mask_at.element, m.slope[r], j - m.here[r]);
            score = num::add(num::add(score, num::two_prod(b.slope, b.distance)), num::dd{b.mask, 0.0});
            counts = b.is_present && score.hi >= least_score;
            greatest_bias[x / 2] = counts && b.size() > greatest_bias[x / 2] ? b.size() : greatest_bias[x / 2];
            if (!counts) score = {0.0, 0.0};
          }
          num::dd w = exponential(score.hi, score.lo);
          if (!counts) w = {0.0, 0.0};
          weights[x / 2].add(w.hi, w.lo);
          if (g.draws.any() && !g.draws.keep(m.n[r] * g.keys + j)) continue;
#pragma unroll
          for (int i = 0; i < most_open; ++i) {
            if (i >= most) break;
            const auto of_result = static_cast<double>(y[i][eight][x]);
            const num::dd p = num::two_prod(w.hi, of_result);
            results[x / 2][i].add(p.hi, fma(w.lo, of_result, p.lo));
          }
        }
      }
      __syncwarp();
    }
    wait_for_copies<0>();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      // In the order of their bits, as none is negative.
      if (has_bias) atomicMax(m.greatest_bias + row + 8 * h, __float_as_int(__double2float_ru(greatest_bias[h])));
      weights[h].over_lanes();
      double(*const to)[2] = m.sums[warp][row + 8 * h];
      if (t == 0) to[0][0] = weights[h].hi, to[0][1] = weights[h].lo;
#pragma unroll
      for (int i = 0; i < most_open; ++i) {
        results[h][i].over_lanes();
        if (t == 0) to[1 + i][0] = results[h][i].hi, to[1 + i][1] = results[h][i].lo;
      }
    }
    __syncthreads();
    if (blocks_of_group > 1) meet_cluster();
    if (block == 0 && tid < rows_of_second * most_open) {
      const int r = tid / most_open, i = tid % most_open, e = m.open[r][i];
      const std::int64_t n = m.n[r];
      if (n >= 0 && e >= 0) {
        running_sum l, o;
        int bias_bits = 0;
        for (int other = 0; other < blocks_of_group; ++other) {
          const auto& there = blocks_of_group > 1 ? of_block(m, other) : m;
          bias_bits = max(bias_bits, there.greatest_bias[r]);
          for (int w = 0; w < cut::warps; ++w) {
            l.add(there.sums[w][r][0][0], there.sums[w][r][0][1]);
            o.add(there.sums[w][r][1 + i][0], there.sums[w][r][1 + i][1]);
          }
        }
        const double terms = static_cast<double>(m.last[r] - m.first[r] + 128), scale = num::magnitude_of(g.scale);
        const double bound = scale * m.norm[r] * m.greatest * (1 + 0x1p-20);
        const double bias = static_cast<double>(__int_as_float(bias_bits));
        const double score = scale * split_error(g.size, m.norm[r], m.greatest) + 0x1p-103 * bound + 0x1p-102 * bias;
        const double relative = (score + 0x1p-71 + (2 * terms + 16) * terms * (u * u)) * (1 + 0x1p-10);
        const of_column c = column_of(statistics, of, chunks, e);
        num::wide<double> x{num::two_sum(o.hi, o.lo), 0.0};
        const num::wide<double> all{num::two_sum(l.hi, l.lo), l.hi * relative * (1 + 0x1p-20)};
        x.error = static_cast<double>(c.most) * all.error;
        num::to_result(x, all, g.draws);
        const num::decided_value<T> result = num::round_number<T>(x);
        if (result.decided && bound < most_score) {
          const std::int64_t head = n / g.queries % g.heads, query = n % g.queries;
          static_cast<T*>(g.out)[at[4] + head * g.out_at.head + query * g.out_at.row + e * g.out_at.element] =
              result.value;
          atomicAnd(bits + n * g.words + e / 32, ~(1u << (e % 32)));
          ++decided;
        }
      }
    }
    if (blocks_of_group > 1) meet_cluster();  // the first block has read what the others have
  }
  count_elements(counters, tier::double_double, decided);
}

// Blocks of a group, when few heads have something to do: as many as multiprocessors are there for, each warp of which has some tiles.
int blocks_of_group(std::int64_t groups, std::int64_t keys, const properties& d) {
  int blocks = 1;
  while (d.capability >= 90 && blocks < 8 && 2 * blocks * groups <= 4 * d.multiprocessors && keys >= 1024 * blocks)
    blocks *= 2;
  return blocks;
}

}  // namespace

void enqueue_second(const attention_geometry& g, dtype type, std::int64_t parts, const float* statistics,
                    std::uint32_t* bits, const open_queries& open, const job& j) {
  if (g.keys > most_keys) return;
  const std::int64_t heads = g.total / (g.group * g.queries);
  // A few queries of a hundred are expected.
  const std::int64_t groups =
      std::clamp<std::int64_t>(ceil_div(4 * j.device.multiprocessors, heads), 1, ceil_div(open.most, rows_of_second));
  ops::for_each_format<ops::NARROW>([&]<class T>() {
    if (dtype_of<T> != type) return;
    const auto run = [&]<int Size>() {
      using cut = second_tiling<T, Size>;
      if (static_cast<std::int64_t>(sizeof(typename cut::memory)) > largest_memory(j.device)) return;
      const int together = blocks_of_group(heads * groups, g.keys, j.device);
      launch_in_clusters<attention_second<T, Size>>(j, false, heads * groups * together, together, cut::threads,
                                                    sizeof(typename cut::memory), g, groups, together,
                                                    chunks_of(g.keys, parts), statistics, bits, open, j.counters);
    };
    std::max(g.size, g.value_size) <= 64 ? run.template operator()<64>() : run.template operator()<128>();
  });
}

}  // namespace repdl::cuda
