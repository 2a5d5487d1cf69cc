// Gradients that gradient_tiles leaves undecided, of 16 rows of a head at a time: as attention_second.cu, with the warps of a block sharing the columns.
//
// Scores and factors are products of split operands (second_tier.cuh), as double-doubles: b_c = scale (sum + rest) - lse is within |scale| split_error + 2^-102
// (B + L) of its number, w_c within eps = that and 2^-71 of itself, T_c = sum + rest - D within error_T = split_error + error_D + 2^-103 (N_g N_v + |D|),
// with the greatest norms of the columns. Products w_c T_c are rounded within 2^-102 of themselves; n terms are added up within (2 n^2 + 16 n) u^2 of the
// sum of their magnitudes. So with V the greatest |x_c| the sum of w_c T_c x_c is within
//   V ((eps + 2^-102 + (2 n^2 + 16 n) u^2) sum |w_c T_c| + error_T sum w_c),
// that of w_c g_c within V (eps + (2 n^2 + 16 n) u^2) sum w_c. With masks and slopes what is added to a product and taken away, x, is in L's place with the 500
// that |b_c| may be, and weights of b_c below -500, which are left out, are below 2^-690 in all (gradient_tiles.cu);
// of rows with a b_c above most_exponent, or NaN, nothing is known.
#include "backends/cuda/attention/gradient_tiles.cuh"
#include "backends/cuda/attention/second_tier.cuh"
#include "backends/cuda/attention/tile_bias.cuh"
#include "librepdl/ops/formats.hpp"

namespace repdl::cuda {
namespace {

constexpr double u = unit_roundoff;
constexpr std::int64_t most_columns = std::int64_t{1} << 20;
constexpr int list_threads = 128;

// A thread a row.
template <class T>
__global__ void __launch_bounds__(list_threads)
    gradient_list(const __grid_constant__ gradient_geometry<T> g, const gradient_bits bits, const open_rows open) {
  const std::int64_t n = static_cast<std::int64_t>(blockIdx.x) * list_threads + threadIdx.x, queries = g.query_rows();
  if (n >= g.rows()) return;
  bool any = false;
  for (std::int64_t i = 0; i < bits.all; ++i) any = any || bits.words[n * bits.all + i] != 0;
  if (!any) return;
  const bool is_key = n >= queries;
  // Heads of q that go with one of k lie side by side, and so do batches.
  const std::int64_t of = is_key ? (n - queries) / g.of.keys : n / (g.of.group * g.of.queries);
  open.list(is_key, of)[atomicAdd(open.counts + (is_key ? open.heads : 0) + of, 1)] = n;
}

template <class T, int Size>
struct second_tiling {
  // As many warps as there is room for (attention_second.cu).
  static constexpr int steps = Size / 8, warps = Size == 64 ? 8 : 4, threads = 32 * warps,
                       of_row = threads / rows_of_second, columns = 16, eights = columns / 8;
  struct memory {
    double parts[2][2][steps][4][32];  // of q and g, or k and v: the high and low parts as the instruction takes them
    staged_tile<T, Size, 32, columns> tiles[warps][2][2];
    double sums[warps][rows_of_second][2 + 2 * most_open];
    double norm[2][rows_of_second];
    column_facts facts;
    long long n[rows_of_second];
    int first[rows_of_second], last[rows_of_second];
    int open[rows_of_second][most_open], most;  // results; -1: no more; the most that a row has
    double slope[rows_of_second];
    long long mask_at[rows_of_second], here[rows_of_second];  // as in gradient_tiles
    int greatest_bias[rows_of_second], has_gone[rows_of_second], is_odd[rows_of_second];
    query_sum sums_of_columns[warps][2][columns];
  };
};

template <class T, int Size, bool IsKey>
__global__ void __launch_bounds__(second_tiling<T, Size>::threads, 1)
    gradient_second(const __grid_constant__ gradient_geometry<T> g, std::int64_t groups_of_head,
                    const record_places places, const query_sum* sums, const line_record* records,
                    const gradient_bits bits, const open_rows open, counter* counters) {
  using cut = second_tiling<T, Size>;
  constexpr int steps = cut::steps, threads = cut::threads, columns = cut::columns, eights = cut::eights;
  auto& m = memory_of_block<typename cut::memory>();
  const wide_exponential_of_lanes exponential;
  const int tid = static_cast<int>(threadIdx.x), lane = tid % 32, warp = tid / 32, row = lane / 4, t = lane % 4;
  const std::int64_t of = blockIdx.x / groups_of_head, batch = of / g.key_heads, key_head = of % g.key_heads;
  const std::int64_t first_head = batch * g.heads + key_head * g.of.group;
  std::int64_t at[10];
  g.batch.locate(batch, at);
  const int count = open.counts[(IsKey ? open.heads : 0) + of];
  const std::int64_t* const list = open.list(IsKey, of);
  std::int64_t decided = 0;
  const bool has_bias = g.of.mask != nullptr || g.of.slopes != nullptr;
  if (tid == 0) m.facts = facts_of<IsKey>(places, records, of, first_head, g.of.group);

  // The head of q, and the place, of query row n; the place of key row n.
  const auto head_of = [&](std::int64_t n) { return n / g.of.queries % g.heads; };
  const auto place_of = [&](std::int64_t n) { return IsKey ? (n - g.query_rows()) % g.of.keys : n % g.of.queries; };
  // Line 0 or 1 of a row: of q and g, or of k and v.
  const auto line_of = [&](std::int64_t n, int which) {
    const std::int64_t i = place_of(n);
    if constexpr (IsKey) {
      return which == 0 ? g.of.k + at[1] + key_head * g.of.k_at.head + i * g.of.k_at.row
                        : g.of.v + at[2] + key_head * g.of.v_at.head + i * g.of.v_at.row;
    } else {
      return which == 0 ? g.of.q + at[0] + head_of(n) * g.of.q_at.head + i * g.of.q_at.row
                        : g.of.g + at[3] + head_of(n) * g.of.g_at.head + i * g.of.g_at.row;
    }
  };
  // Lines of columns, of head h among those of the group.
  const std::int64_t first_row = IsKey ? g.of.q_at.row : g.of.k_at.row,
                     second_row = IsKey ? g.of.g_at.row : g.of.v_at.row;
  const auto columns_of = [&](std::int64_t h, int which) {
    if constexpr (IsKey) {
      return which == 0 ? g.of.q + at[0] + (key_head * g.of.group + h) * g.of.q_at.head
                        : g.of.g + at[3] + (key_head * g.of.group + h) * g.of.g_at.head;
    } else {
      return which == 0 ? g.of.k + at[1] + key_head * g.of.k_at.head : g.of.v + at[2] + key_head * g.of.v_at.head;
    }
  };

  for (std::int64_t group = blockIdx.x % groups_of_head; group * rows_of_second < count; group += groups_of_head) {
    if (tid == 0) m.most = 0;
    __syncthreads();
    if (tid < rows_of_second) {
      const std::int64_t place = group * rows_of_second + tid, n = place < count ? list[place] : -1;
      find_open(bits.words + (n < 0 ? 0 : n) * bits.all, n < 0 ? 0 : bits.all, m.open[tid]);
      // Bits of rows that are left whole go beyond the results.
      for (int i = 0; i < most_open; ++i) {
        const int bit = m.open[tid][i], words = static_cast<int>(32 * bits.first);
        const bool is_weight = bit >= words;
        if (bit >= 0 && bit - (is_weight ? words : 0) >= (is_weight ? g.of.value_size : g.of.size)) m.open[tid][i] = -1;
        if (m.open[tid][i] >= 0) atomicMax(&m.most, i + 1);
      }
      const std::int64_t i = n < 0 ? 0 : place_of(n), limit = IsKey ? g.of.queries : g.of.keys;
      const auto within = [&](std::int64_t j) { return static_cast<int>(j < 0 ? 0 : j > limit ? limit : j); };
      m.n[tid] = n;
      m.here[tid] = IsKey ? i - g.of.offset : i + g.of.offset;
      const std::int64_t head = IsKey || n < 0 ? 0 : head_of(n);
      m.mask_at[tid] = at[5] + (IsKey ? i * g.of.mask_at.element : head * g.of.mask_at.head + i * g.of.mask_at.row);
      m.slope[tid] = IsKey || g.of.slopes == nullptr ? 0.0 : static_cast<double>(g.of.slopes[head * g.of.slope_step]);
      m.greatest_bias[tid] = m.has_gone[tid] = m.is_odd[tid] = 0;
      m.first[tid] = n < 0 ? 0 : IsKey ? within(i - g.of.offset - g.of.after) : within(i + g.of.offset - g.of.before);
      m.last[tid] = n < 0   ? 0
                    : IsKey ? within(i - g.of.offset + g.of.before + 1)
                            : within(i + g.of.offset + g.of.after + 1);
    }
    __syncthreads();
    {
      const int r = tid / cut::of_row;
#pragma unroll
      for (int which = 0; which < 2; ++which) {
        const std::int64_t size = which == 0 ? g.of.size : g.of.value_size;
        double square = 0;
        for (std::int64_t d = tid % cut::of_row; m.n[r] >= 0 && d < size; d += cut::of_row) {
          const double x = static_cast<double>(num::widen_to_float(line_of(m.n[r], which)[d]));
          square = fma(x, x, square);
        }
#pragma unroll
        for (int by = 1; by < cut::of_row; by *= 2) square += __shfl_xor_sync(full_warp, square, by);
        if (tid % cut::of_row == 0) m.norm[which][r] = sqrt(square) * (1 + 0x1p-20);
      }
    }
    __syncthreads();
    for (int i = tid; i < 2 * steps * 4 * 32; i += threads) {
      const int l = i % 32, x = i / 32 % 4, s = i / 128 % steps, which = i / (128 * steps), r = l / 4 + 8 * (x % 2),
                d = 8 * s + 4 * (x / 2) + l % 4;
      const std::int64_t size = which == 0 ? g.of.size : g.of.value_size;
      const double y =
          m.n[r] >= 0 && d < size ? static_cast<double>(num::widen_to_float(line_of(m.n[r], which)[d])) : 0.0;
      const double splitter = splitter_of(power_above(m.norm[which][r])), high = (y + splitter) - splitter;
      m.parts[which][0][s][x][l] = high;
      m.parts[which][1][s][x][l] = y - high;
    }
    int begin = static_cast<int>(IsKey ? g.of.queries : g.of.keys), end = 0;
    for (int r = 0; r < rows_of_second; ++r) {
      if (m.last[r] <= m.first[r]) continue;
      begin = m.first[r] < begin ? m.first[r] : begin;
      end = m.last[r] > end ? m.last[r] : end;
    }
    begin = begin / columns * columns;
    const int of_head = begin < end ? (end - begin + columns - 1) / columns : 0;
    const std::int64_t tiles = of_head * (IsKey ? g.of.group : 1);
    __syncthreads();

    const double splitters[2] = {splitter_of(power_above(static_cast<double>(m.facts.norm[0]))),
                                 splitter_of(power_above(static_cast<double>(m.facts.norm[1])))};
    // Of this lane's two rows, where these are queries.
    double lse[2] = {}, d_hi[2] = {}, d_lo[2] = {};
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const std::int64_t n = m.n[row + 8 * h];
      if (IsKey || n < 0) continue;
      lse[h] = static_cast<double>(g.of.lse[at[6] + head_of(n) * g.of.lse_at.head + place_of(n) * g.of.lse_at.row]);
      d_hi[h] = sums[n].hi;
      d_lo[h] = sums[n].lo;
    }
    const auto copy = [&](std::int64_t n, int stage) {
      if (n < tiles) {
        const std::int64_t h = n / of_head, j = begin + n % of_head * columns;
        m.tiles[warp][stage][0].copy(lane, columns_of(h, 0) + j * first_row, first_row, end - j, g.of.size);
        m.tiles[warp][stage][1].copy(lane, columns_of(h, 1) + j * second_row, second_row, end - j, g.of.value_size);
        if constexpr (IsKey) {  // half of one by each lane
          const bool is_there = j + lane / 2 < end;
          const query_sum& from = sums[(first_head + h) * g.of.queries + (is_there ? j + lane / 2 : j)];
          copy_async<16>(reinterpret_cast<float*>(&m.sums_of_columns[warp][stage][lane / 2]) + 4 * (lane % 2),
                         reinterpret_cast<const float*>(&from) + 4 * (lane % 2), is_there);
        }
      }
      commit_copies();
    };
    const int most_open_ones = m.most;
    running_sum results[2][most_open];
    double weights[2] = {}, products[2] = {}, greatest_bias[2] = {};
    bool has_gone[2] = {}, is_odd[2] = {};
    copy(warp, 0);
    int stage = 0;
    for (std::int64_t n = warp; n < tiles; n += cut::warps, stage ^= 1) {
      copy(n + cut::warps, stage ^ 1);
      wait_for_copies<1>();
      __syncwarp();
      const int j0 = begin + static_cast<int>(n % of_head) * columns;
      double score[eights][4] = {}, score_rest[eights][4] = {}, factor[eights][4] = {}, factor_rest[eights][4] = {};
      multiply_split(m.parts[0][0], m.parts[0][1], m.tiles[warp][stage][0], splitters[0], score, score_rest);
      multiply_split(m.parts[1][0], m.parts[1][1], m.tiles[warp][stage][1], splitters[1], factor, factor_rest);
#pragma unroll
      for (int eight = 0; eight < eights; ++eight) {
#pragma unroll
        for (int x = 0; x < 4; ++x) {
          const int h = x / 2, r = row + 8 * h;
          const int j = j0 + 8 * eight + 2 * t + x % 2;
          bool is_there = j >= m.first[r] && j < m.last[r];  // of others lse and D may be anything
          double minus = -lse[h], hi = d_hi[h], lo = d_lo[h];
          if constexpr (IsKey) {
            const query_sum& d = m.sums_of_columns[warp][stage][j - j0];
            minus = -d.lse;
            hi = d.hi;
            lo = d.lo;
          }
          num::dd b = num::mul(num::two_sum(score[eight][x], score_rest[eight][x]), g.of.scale);
          score_bias bias;
          if (has_bias && is_there) {
            const std::int64_t head = key_head * g.of.group + n / of_head;
            const double slope = !IsKey                   ? m.slope[r]
                                 : g.of.slopes == nullptr ? 0.0
                                                          : static_cast<double>(g.of.slopes[head * g.of.slope_step]);
            bias = bias_of<T>(
                g.of.mask, g.of.is_added,
                m.mask_at[r] + (IsKey ? head * g.of.mask_at.head + j * g.of.mask_at.row : j * g.of.mask_at.element),
                slope, IsKey ? m.here[r] - j : j - m.here[r]);
            b = num::add(num::add(b, num::two_prod(bias.slope, bias.distance)), num::dd{bias.mask, 0.0});
          }
          b = num::add(b, num::dd{minus, 0.0});
          if (has_bias) {
            const bool gone = bias.is_present && b.hi < least_score;
            is_odd[h] = is_odd[h] || (bias.is_present && !(b.hi <= most_exponent));
            is_there = bias.is_present && b.hi >= least_score && b.hi <= most_exponent;
            has_gone[h] = has_gone[h] || gone;
            const double size = bias.size() + num::magnitude_of(minus);
            greatest_bias[h] = is_there && size > greatest_bias[h] ? size : greatest_bias[h];
            if (!is_there) b = {0.0, 0.0};
          }
          num::dd w = exponential(b.hi, b.lo), of_row = num::two_sum(factor[eight][x], factor_rest[eight][x]);
          bool is_kept = true;
          if (g.of.draws.any()) {
            const std::int64_t query = IsKey ? (first_head + n / of_head) * g.of.queries + j : m.n[r],
                               key = IsKey ? place_of(m.n[r]) : j;
            is_kept = g.of.draws.keep(query * g.of.keys + key);
          }
          if (!is_kept) of_row = {0.0, 0.0};
          num::dd s = num::mul(w, num::add(of_row, num::dd{-hi, -lo}));
          if (!is_there) w = s = {0.0, 0.0};
          weights[h] += w.hi;
          products[h] += num::magnitude_of(s.hi);
          if (!is_kept) w = {0.0, 0.0};
#pragma unroll
          for (int i = 0; i < most_open; ++i) {
            if (i >= most_open_ones) break;
            const int e = m.open[r][i], words = static_cast<int>(32 * bits.first);
            if (e < 0) continue;
            const bool is_weight = IsKey && e >= words;
            const double y = m.tiles[warp][stage][is_weight ? 1 : 0].at(j - j0, is_weight ? e - words : e);
            const num::dd a = is_weight ? w : s, p = num::two_prod(a.hi, y);
            results[h][i].add(p.hi, fma(a.lo, y, p.lo));
          }
        }
      }
      __syncwarp();
    }
    wait_for_copies<0>();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (has_bias) {  // in the order of their bits, as none is negative
        atomicMax(m.greatest_bias + row + 8 * h, __float_as_int(__double2float_ru(greatest_bias[h])));
        if (has_gone[h]) m.has_gone[row + 8 * h] = 1;
        if (is_odd[h]) m.is_odd[row + 8 * h] = 1;
      }
#pragma unroll
      for (int by = 1; by < 4; by *= 2) {
        weights[h] += __shfl_xor_sync(full_warp, weights[h], by);
        products[h] += __shfl_xor_sync(full_warp, products[h], by);
      }
      double* const to = m.sums[warp][row + 8 * h];
      if (t == 0) to[0] = weights[h], to[1] = products[h];
#pragma unroll
      for (int i = 0; i < most_open; ++i) {
        results[h][i].over_lanes();
        if (t == 0) to[2 + 2 * i] = results[h][i].hi, to[3 + 2 * i] = results[h][i].lo;
      }
    }
    __syncthreads();
    if (tid < rows_of_second * most_open) {
      const int r = tid / most_open, i = tid % most_open, bit = m.open[r][i];
      const std::int64_t n = m.n[r];
      if (n >= 0 && bit >= 0) {
        running_sum sum;
        double all_weights = 0, all_products = 0;
        for (int w = 0; w < cut::warps; ++w) {
          all_weights += m.sums[w][r][0];
          all_products += m.sums[w][r][1];
          sum.add(m.sums[w][r][2 + 2 * i], m.sums[w][r][3 + 2 * i]);
        }
        const int words = static_cast<int>(32 * bits.first);
        const bool is_weight = IsKey && bit >= words;
        const int e = is_weight ? bit - words : bit;
        const double scale = num::magnitude_of(g.of.scale),
                     norm[2] = {static_cast<double>(m.facts.norm[0]), static_cast<double>(m.facts.norm[1])};
        query_sum d{};
        double logarithm = static_cast<double>(m.facts.logarithm), of_d = static_cast<double>(m.facts.bound) / u;
        if constexpr (!IsKey) {
          d = sums[n];
          logarithm = num::magnitude_of(
              static_cast<double>(g.of.lse[at[6] + head_of(n) * g.of.lse_at.head + place_of(n) * g.of.lse_at.row]));
          of_d = num::magnitude_of(d.hi);
        }
        if (has_bias) logarithm = static_cast<double>(__int_as_float(m.greatest_bias[r])) - least_score;
        const double gone = m.has_gone[r] != 0 ? 0x1p-690 : 0.0;
        const double error_d = IsKey ? static_cast<double>(m.facts.error) : d.error;
        const double bound = scale * m.norm[0][r] * norm[0] * (1 + 0x1p-20);
        const double eps =
            scale * split_error(g.of.size, m.norm[0][r], norm[0]) + 0x1p-102 * (bound + logarithm) + 0x1p-71;
        const double error_t = split_error(g.of.value_size, m.norm[1][r], norm[1]) + error_d +
                               0x1p-103 * (m.norm[1][r] * norm[1] * (1 + 0x1p-20) + of_d);
        const double terms = static_cast<double>((m.last[r] - m.first[r] + 64) * (IsKey ? g.of.group : 1)),
                     added = (2 * terms + 16) * terms * (u * u);
        const double most =
            static_cast<double>(most_of<IsKey>(places, records, of, first_head, g.of.group, is_weight ? 1 : 0, e));
        const double left_out = is_weight ? gone : gone * (m.norm[1][r] * norm[1] * (1 + 0x1p-20) + of_d);
        const double error =
            is_weight ? (eps + added) * all_weights : (eps + 0x1p-102 + added) * all_products + error_t * all_weights;
        num::wide<double> x{num::two_sum(sum.hi, sum.lo), most * (error + left_out) * (1 + 0x1p-10)};
        // Nothing is known of what may have underflowed, nor of what is 0.
        const bool is_known =
            x.error >= 0x1p-800 && m.is_odd[r] == 0 && (has_bias ? bound : bound + logarithm) < most_exponent;
        if (!is_weight) num::scale_result(x, g.of.scale);
        if (g.of.draws.any()) num::divide_by(x, g.of.draws.wide_kept());
        const num::decided_value<T> result = num::round_number<T>(x);
        if (is_known && result.decided) {
          const std::int64_t place = place_of(n);
          if constexpr (!IsKey) {
            g.grad_q[at[7] + head_of(n) * g.grad_q_at.head + place * g.grad_q_at.row + e * g.grad_q_at.element] =
                result.value;
          } else if (is_weight) {
            g.grad_v[at[9] + key_head * g.grad_v_at.head + place * g.grad_v_at.row + e * g.grad_v_at.element] =
                result.value;
          } else {
            g.grad_k[at[8] + key_head * g.grad_k_at.head + place * g.grad_k_at.row + e * g.grad_k_at.element] =
                result.value;
          }
          atomicAnd(bits.words + n * bits.all + bit / 32, ~(1u << (bit % 32)));
          ++decided;
        }
      }
    }
  }
  count_elements(counters, tier::double_double, decided);
}

}  // namespace

template <class T>
void enqueue_gradient_second(const gradient_geometry<T>& g, const double* sums, const float* statistics,
                             const gradient_bits& bits, const open_rows& open, const job& j) {
  if (std::max(g.of.group * g.of.queries, g.of.keys) > most_columns) return;
  const record_places places = places_of(g.batches * g.heads, g.batches * g.key_heads, g.of.queries, g.of.keys);
  const auto* const of_queries = reinterpret_cast<const query_sum*>(sums);
  const auto* const records = reinterpret_cast<const line_record*>(statistics);
  // A few rows of a hundred are expected.
  const auto groups = [&](std::int64_t rows) {
    return std::clamp<std::int64_t>(ceil_div(4 * j.device.multiprocessors, open.heads), 1,
                                    ceil_div(rows, rows_of_second));
  };
  const auto run = [&]<int Size>() {
    using cut = second_tiling<T, Size>;
    if (static_cast<std::int64_t>(sizeof(typename cut::memory)) > largest_memory(j.device)) return;
    launch_kernel<gradient_list<T>>(j, ceil_div(g.rows(), list_threads), list_threads, 0, g, bits, open);
    const std::int64_t of_queries_groups = groups(open.most_queries), of_keys_groups = groups(open.most_keys);
    launch_kernel<gradient_second<T, Size, false>>(j, open.heads * of_queries_groups, cut::threads,
                                                   sizeof(typename cut::memory), g, of_queries_groups, places,
                                                   of_queries, records, bits, open, j.counters);
    launch_kernel<gradient_second<T, Size, true>>(j, open.heads * of_keys_groups, cut::threads,
                                                  sizeof(typename cut::memory), g, of_keys_groups, places, of_queries,
                                                  records, bits, open, j.counters);
  };
  std::max(g.of.size, g.of.value_size) <= 64 ? run.template operator()<64>() : run.template operator()<128>();
}
template void enqueue_gradient_second(const gradient_geometry<f16>&, const double*, const float*, const gradient_bits&,
                                      const open_rows&, const job&);
template void enqueue_gradient_second(const gradient_geometry<bf16>&, const double*, const float*, const gradient_bits&,
                                      const open_rows&, const job&);
template void enqueue_gradient_second(const gradient_geometry<float>&, const double*, const float*,
                                      const gradient_bits&, const open_rows&, const job&);

}  // namespace repdl::cuda
