// Gradients of attention, of heads of at most 128 numbers: tiles of 16 rows a warp by 16 columns with the fp64 matrix
// instruction (T. Dao, "FlashAttention-2", 2023). Rows are queries and columns keys, for grad_q; or rows are keys and columns the queries of all heads
// that go with them, for grad_k and grad_v: at once where heads have at most 64 numbers, else in a launch each. Columns, packed in binary64 as the
// instruction takes them (packed_lines.cuh), are copied while the former ones are computed with.
//
// Before that: gradient_sums finds D = g y of every query, gradient_survey the greatest norm of the lines of q, k, v and g, and of each of their
// columns the greatest magnitude and the sum of squares; all rounded up.
//
// Of a row with B = |scale| N max N_c and L = |lse|, or the greatest one of its columns: all |b_c| are at most B + L, and where that is not below 300
// the row is left to gradient_settle. Bounds, u = 2^-53, also for an addition of the matrix instruction (mma.cuh, D1), whose products are exact:
//   b_c                 (32 + D_q / 32) u B + u |b_c|, by sums of 32 products (Cauchy and Schwarz); w_c = e^b_c within
//                       eps = ((34 + D_q / 32) B + 6 + B + L) u of itself
//   t_c                 error_t = (32 + E / 32) u N_g N_v (the greatest of the columns') + error_D, and u |t_c|
//   sum s_c x_c, s_c = w_c t_c:   16 columns by the instruction, and sums of tiles: c = (16 + tiles + 20) u
// so that with V the greatest |x_c| and N_x the norm of all x_c the result is within
//   min(V ((eps + 2 u + c) sum |s| + error_t sum w), N_x ((eps + 2 u + c) sqrt(sum s^2) + error_t sqrt(sum w^2))) |scale|,
// and sum w_c g_c within min(V (eps + c) sum w, N_x (eps + c) sqrt(sum w^2)). As on the CPU (attention_backward_kernels.cpp) nothing is decided by a
// bound below 2^-900, but where all t_c or x_c are 0.
//
// With dropout D is (1 - p) g y, the products of columns that are dropped are 0, and results have the factor 1 / (1 - p), within 3 u: 4 u more. With masks
// and slopes b_c is the product times scale, and x, what is added and taken away: within (32 + D_q / 32 + 2) u B + 4 u |x|; a row with a b_c above 300 is
// left to gradient_settle, and weights of b_c below -500 are left out: 2^-721 (N_g N_v + |D|) each.
#include <algorithm>

#include "backends/cuda/attention/gradient_tiles.cuh"
#include "backends/cuda/attention/packed_lines.cuh"
#include "backends/cuda/attention/tile_bias.cuh"
#include "backends/cuda/attention/tile_draws.cuh"
#include "backends/cuda/rows/exponential_of_lanes.cuh"
#include "librepdl/ops/formats.hpp"

namespace repdl::cuda {
namespace {

constexpr double u = unit_roundoff, most_exponent = 300, least_bound = 0x1p-900;
constexpr int line_threads = 128;  // of gradient_survey

// The heads of keys that a launch is of.
struct head_range {
  std::int64_t first, count;
};
// Lines of at most 64 numbers are packed in an order for products, q, g, k and v, and in one for sums, q, g and k; longer ones, for which that does not fit
// into shared memory, in one for both.
REPDL_HD constexpr bool has_two_orders(int size) { return size == 64; }
REPDL_HD constexpr int query_copies(int size) { return has_two_orders(size) ? 4 : 2; }
REPDL_HD constexpr int key_copies(int size) { return has_two_orders(size) ? 3 : 2; }

// Where they are: those of q, of g, then the same for sums; those of k, of v, then of k for sums. Number n: among the heads of the range.
struct packed_places {
  std::int64_t query_heads, key_heads, query_head, key_head;
  int size;

  template <class T>
  __device__ packed_places(const gradient_geometry<T>& g, const head_range& range, int numbers)
      : query_heads(range.count * g.of.group),
        key_heads(range.count),
        query_head(padded_lines(g.of.queries) * numbers),
        key_head(padded_lines(g.of.keys) * numbers),
        size(numbers) {}
  __device__ std::int64_t copy_of_queries() const { return query_heads * query_head; }
  __device__ std::int64_t copy_of_keys() const { return key_heads * key_head; }
  __device__ std::int64_t of_query(int copy, std::int64_t n) const { return copy * copy_of_queries() + n * query_head; }
  __device__ std::int64_t of_key(int copy, std::int64_t n) const {
    return query_copies(size) * copy_of_queries() + copy * copy_of_keys() + n * key_head;
  }
};
std::int64_t packed_lines_of_head(std::int64_t group, std::int64_t queries, std::int64_t keys, int size) {
  return query_copies(size) * group * padded_lines(queries) + key_copies(size) * padded_lines(keys);
}
std::int64_t heads_of_gradients(std::int64_t heads, std::int64_t group, std::int64_t queries, std::int64_t keys,
                                int size) {
  return packed_heads(heads, packed_lines_of_head(group, queries, keys, size), size);
}

// D of every query, and what its greater part is within. A warp a query.
template <class T>
__global__ void __launch_bounds__(line_threads)
    gradient_sums(const __grid_constant__ gradient_geometry<T> g, query_sum* sums) {
  const int lane = lane_of_thread();
  const std::int64_t n = static_cast<std::int64_t>(blockIdx.x) * (line_threads / 32) + threadIdx.x / 32;
  if (n >= g.query_rows()) return;
  const std::int64_t i = n % g.of.queries, head = n / g.of.queries % g.heads;
  std::int64_t at[7];
  g.batch.locate(n / g.of.queries / g.heads, at);
  const T* const from = g.of.g + at[3] + head * g.of.g_at.head + i * g.of.g_at.row;
  const T* const y = g.of.y + at[4] + head * g.of.y_at.head + i * g.of.y_at.row;
  num::wide_sum<double> sum;
  for (std::int64_t e = lane; e < g.of.value_size; e += 32) {
    sum.add(static_cast<double>(num::widen_to_float(from[e * g.of.g_at.element])) *
            static_cast<double>(num::widen_to_float(y[e * g.of.y_at.element])));
  }
  num::wide<double> d = over_warp(sum).total(g.of.value_size + 32);
  if (g.of.draws.any()) num::multiply_by(d, g.of.draws.wide_kept());
  const float lse = g.of.lse[at[6] + head * g.of.lse_at.head + i * g.of.lse_at.row];
  if (lane == 0) sums[n] = {static_cast<double>(lse), d.value.hi, d.value.lo, d.error};
}

// A block a chunk of lines of q, g, k or v, of the heads of `range`: what is known of them, and the lines as tiles take them.
template <class T, int Size>
__global__ void __launch_bounds__(line_threads)
    gradient_survey(const __grid_constant__ gradient_geometry<T> g, const record_places places, const head_range range,
                    line_record* records, double* packed) {
  constexpr int warps = line_threads / 32;
  __shared__ joined_survey<warps> joined;
  const std::int64_t query_blocks = range.count * g.of.group * places.query_chunks,
                     key_blocks = range.count * places.key_chunks;
  const bool is_query = blockIdx.x < 2 * query_blocks;
  const std::int64_t n = is_query ? blockIdx.x : blockIdx.x - 2 * query_blocks,
                     blocks = is_query ? query_blocks : key_blocks,
                     chunks = is_query ? places.query_chunks : places.key_chunks,
                     lines = is_query ? g.of.queries : g.of.keys;
  const bool is_first = n < blocks;  // q or k, else g or v
  const std::int64_t chunk = n % chunks, within = n % blocks / chunks,
                     head = range.first * (is_query ? g.of.group : 1) + within,
                     heads = is_query ? g.heads : g.key_heads;
  std::int64_t at[4];
  g.batch.locate(head / heads, at);
  const T* const data = is_query   ? (is_first ? g.of.q + at[0] : g.of.g + at[3])
                        : is_first ? g.of.k + at[1]
                                   : g.of.v + at[2];
  const std::int64_t of_head = is_query   ? (is_first ? g.of.q_at.head : g.of.g_at.head)
                               : is_first ? g.of.k_at.head
                                          : g.of.v_at.head,
                     row = is_query   ? (is_first ? g.of.q_at.row : g.of.g_at.row)
                           : is_first ? g.of.k_at.row
                                      : g.of.v_at.row,
                     size = is_first ? g.of.size : g.of.value_size;
  const T* const from = data + head % heads * of_head;
  const packed_places to(g, range, Size);
  const int which_line = is_first ? 0 : 1;
  const auto copy_of = [&](int copy) {
    return packed + (is_query ? to.of_query(copy, within) : to.of_key(copy, within));
  };
  joined.clear();
  __syncthreads();
  const std::int64_t padded = padded_lines(lines),
                     end = (chunk + 1) * chunk_lines < padded ? (chunk + 1) * chunk_lines : padded;
  line_survey<Size> mine;
  for (std::int64_t j = chunk * chunk_lines + 8 * (threadIdx.x / 32); j < end; j += 8 * warps) {
    const std::int64_t line = j * Size;
    packed_group group;
    if (has_two_orders(Size)) {
      group.products = copy_of(which_line) + line;
      if (is_query || is_first) group.sums = copy_of(2 + which_line) + line;
    } else {
      group.both = copy_of(which_line) + line;
    }
    mine.template take<true, true>(from + j * row, row, lines - j, size, group);
  }
  joined.add(mine);
  __syncthreads();
  const std::int64_t which =
      is_query ? (is_first ? 0 : places.query_heads) : 2 * places.query_heads + (is_first ? 0 : places.key_heads);
  line_record& record = records[places.first_chunk(which + head) + chunk];
  if (threadIdx.x == 0) record.norm = __uint_as_float(joined.norm);
  for (int e = static_cast<int>(threadIdx.x); e < most_size; e += line_threads) {
    record.most[e] = __uint_as_float(joined.most[e]);
    record.squares[e] = joined.squares_of(e);
  }
}

// A block a head: joins its chunks; of g also what is known of its queries.
template <class T>
__global__ void __launch_bounds__(line_threads)
    gradient_join(const __grid_constant__ gradient_geometry<T> g, const record_places places, const head_range range,
                  const query_sum* sums, const line_record* chunks, line_record* records, const open_rows open) {
  __shared__ float shared[line_threads];
  // Heads of q, of g, of k, of v.
  const std::int64_t query_heads = range.count * g.of.group;
  const bool is_query = blockIdx.x < 2 * query_heads;
  const std::int64_t n = is_query ? blockIdx.x : blockIdx.x - 2 * query_heads,
                     of_one = is_query ? query_heads : range.count;
  const std::int64_t head = (is_query ? 0 : 2 * places.query_heads) +
                            (n < of_one ? 0
                             : is_query ? places.query_heads
                                        : places.key_heads) +
                            range.first * (is_query ? g.of.group : 1) + n % of_one,
                     count = places.chunks_of(head);
  const line_record* const from = chunks + places.first_chunk(head);
  line_record& to = records[head];
  // As many heads are of k and v as lists are of queries and of keys.
  if (head >= 2 * places.query_heads && threadIdx.x == 0) open.counts[head - 2 * places.query_heads] = 0;
  for (int e = static_cast<int>(threadIdx.x); e < most_size; e += line_threads) {
    float most = 0, squares = 0;
    for (std::int64_t c = 0; c < count; ++c) {
      most = greater(from[c].most[e], most);
      squares = __fadd_ru(squares, from[c].squares[e]);
    }
    to.most[e] = most;
    to.squares[e] = squares;
  }
  const auto over_threads = [&](float x) {
    return over_block(x, shared, [](float& a, float b) { a = greater(b, a); });
  };
  float norm = 0, logarithm = 0, bound = 0, error = 0;
  for (std::int64_t c = threadIdx.x; c < count; c += line_threads) norm = greater(from[c].norm, norm);
  norm = over_threads(norm);
  const bool is_gradient = head >= places.query_heads && head < 2 * places.query_heads;
  const std::int64_t of = is_gradient ? head - places.query_heads : 0;
  std::int64_t at[1];
  g.batch.template locate<6>(of / g.heads, at);
  const float* const lse = g.of.lse + at[0] + of % g.heads * g.of.lse_at.head;
  for (std::int64_t i = threadIdx.x; is_gradient && i < g.of.queries; i += line_threads) {
    // A query without keys is no key's column.
    const std::int64_t key = i + g.of.offset, first = key - g.of.before, last = key + g.of.after;
    if (last < 0 || first >= g.of.keys || last < first) continue;
    logarithm = greater(fabsf(lse[i * g.of.lse_at.row]), logarithm);
    bound = greater(__double2float_ru(sums[of * g.of.queries + i].bound()), bound);
    error = greater(__double2float_ru(sums[of * g.of.queries + i].error), error);
  }
  logarithm = over_threads(logarithm);
  bound = over_threads(bound);
  error = over_threads(error);
  if (threadIdx.x == 0) {
    to.norm = norm;
    to.logarithm = logarithm;
    to.bound = bound;
    to.error = error;
  }
}

// What a launch computes.
enum class gradients_of { queries, keys, values, keys_and_values };

template <class T, int Size, gradients_of What>
struct gradient_tiling {
  static constexpr bool is_key = What != gradients_of::queries, has_factor = What != gradients_of::values,
                        has_weight = What == gradients_of::values || What == gradients_of::keys_and_values;
  static constexpr int steps = Size / 8, warps = Size == 64 ? 4 : 8, threads = 32 * warps, rows = 16 * warps;
  static constexpr int blocks = Size == 64 ? 2 : 1;  // of a multiprocessor
  static constexpr int columns = 16, eights = columns / 8;
  static constexpr bool two_orders = has_two_orders(Size);
  using product_tile = packed_tile<Size, columns, two_orders ? packed_for::products : packed_for::both>;
  using sum_tile = packed_tile<Size, columns, packed_for::sums>;
  struct none {};
  template <bool Is>
  using sums_if = std::conditional_t<two_orders && Is, sum_tile, none>;
  struct memory {
    row_tile<steps, threads> of_rows[has_factor ? 2 : 1];  // each read by the thread alone that wrote it
    product_tile first[2], second[2];                      // of q or k, for scores; of g or v
    sums_if<has_factor> first_sums[2];
    sums_if<has_weight> second_sums[2];
    double2 sums[2][columns];  // lse and D of queries
    double norms_of_row[2][rows];
    double statistics[8][threads];  // of a thread, where they take no registers while products are computed
    float most[2][Size], norms[2][Size];
    column_facts facts;
    int begin, end;
  };
};

// Whether sums are decided, each by the two bounds beside its column's greatest magnitude and norm.
struct row_bounds {
  double by_most, by_norm, factor;
  bool has_terms;

  __device__ row_bounds(double most, double norm, double of_factor, bool terms)
      : by_most(most * (1 + 0x1p-20)),
        by_norm(norm < 0x1p-450 ? num::infinity : norm * (1 + 0x1p-20)),
        factor(of_factor),
        has_terms(terms) {}
  template <class T>
  __device__ num::decided_value<T> result(double sum, float most, float norm) const {
    const double y = sum * factor + 0.0, one = static_cast<double>(most) * by_most,
                 other = static_cast<double>(norm) * by_norm, bound = other < one ? other : one,
                 f = bound * num::magnitude_of(factor) * (1 + 0x1p-20);
    const bool is_known = bound >= least_bound && f >= least_bound && by_most >= least_bound;
    const bool is_lost = has_terms && !is_known && !(most == 0.0f);
    const num::decided_value<T> r = num::certify<T>(y, f);
    return {r.value, r.decided && !is_lost && f + num::magnitude_of(y) < 0x1p900};
  }
};

// Rounds half h of a warp's sums; its bits, of the words from `open` on, are of the results that are left. How many are not.
template <class Cut, class T>
__device__ std::int64_t decide(const double (&sums)[Cut::steps][4], int h, const row_bounds& bounds, const float* most,
                               const float* norms, bool is_there, bool is_left, T* to, std::int64_t step,
                               std::int64_t size, std::uint32_t* words) {
  constexpr int count = Cut::steps / 4;
  const int t = lane_of_thread() % 4;
  std::uint32_t open[count] = {};
  std::int64_t decided = 0;
  if (is_there && !is_left) {
#pragma unroll
    for (int s = 0; s < Cut::steps; ++s) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const int e = 8 * s + 2 * t + c;
        if (e >= size) continue;
        const num::decided_value<T> v =
            bounds.template result<T>(h == 0 ? sums[s][c] : sums[s][2 + c], most[e], norms[e]);
        to[e * step] = v.value;
        open[s / 4] |= v.decided ? 0u : 1u << (e % 32);
        decided += v.decided ? 1 : 0;
      }
    }
  }
#pragma unroll
  for (int word = 0; word < count; ++word) {
    open[word] |= __shfl_xor_sync(full_warp, open[word], 1);
    open[word] |= __shfl_xor_sync(full_warp, open[word], 2);
    if (is_there && t == 0 && 32 * word < size) words[word] = is_left ? ~0u : open[word];
  }
  return decided;
}

template <class T, int Size, gradients_of What, tile_extras Extras>
__global__ void __launch_bounds__(gradient_tiling<T, Size, What>::threads, gradient_tiling<T, Size, What>::blocks)
    gradient_tiles(const __grid_constant__ gradient_geometry<T> g, std::int64_t blocks_of_head,
                   const record_places places, const head_range head_places, const double* packed, bool by_first,
                   const query_sum* sums, const line_record* records, const gradient_bits bits, counter* counters) {
  using cut = gradient_tiling<T, Size, What>;
  constexpr int steps = cut::steps, threads = cut::threads, columns = cut::columns, eights = cut::eights;
  constexpr bool is_key = cut::is_key, has_bias = Extras == tile_extras::masks, may_drop = Extras != tile_extras::none;
  auto& m = memory_of_block<typename cut::memory>();
  const exponential_of_lanes exponential;
  const int tid = static_cast<int>(threadIdx.x), lane = tid % 32, warp = tid / 32, row = lane / 4, t = lane % 4;
  const std::int64_t within_range = blockIdx.x / blocks_of_head, of = head_places.first + within_range,
                     batch = of / g.key_heads, key_head = of % g.key_heads;
  // Where there is causality the last queries have most keys and the first keys most queries: these come first.
  const std::int64_t block = is_key ? blockIdx.x % blocks_of_head : blocks_of_head - 1 - blockIdx.x % blocks_of_head;
  const std::int64_t tile = block * cut::rows + warp * 16;
  std::int64_t at[10];
  g.batch.locate(batch, at);

  // What is known of all columns.
  const std::int64_t first_head = batch * g.heads + key_head * g.of.group;
  const line_record* const of_keys = records + 2 * places.query_heads + of;
  const std::int64_t count = is_key ? g.of.group : 1;
  for (int e = tid; e < 2 * Size; e += threads) {
    const int which = e / Size, c = e % Size;
    float most = 0, squares = 0;
    for (std::int64_t h = 0; h < count; ++h) {
      const line_record& r =
          is_key ? records[which * places.query_heads + first_head + h] : of_keys[which * places.key_heads];
      most = greater(r.most[c], most);
      squares = __fadd_ru(squares, r.squares[c]);
    }
    m.most[which][c] = most;
    m.norms[which][c] = __fsqrt_ru(squares);
  }
  if (tid == 0) {
    m.begin = static_cast<int>(is_key ? g.of.queries : g.of.keys);
    m.end = 0;
    m.facts = facts_of<is_key>(places, records, of, first_head, g.of.group);
  }
  __syncthreads();

  // A lane's two rows: g and g + 8 of its warp's tile.
  const std::int64_t length = is_key ? g.of.keys : g.of.group * g.of.queries;
  const auto has_row = [&](int h) { return tile + row + 8 * h < length; };
  const auto head_of = [&](int h) {
    return is_key ? key_head : key_head * g.of.group + (has_row(h) ? (tile + row + 8 * h) / g.of.queries : 0);
  };
  const auto line_of = [&](int h) {
    const std::int64_t r = has_row(h) ? tile + row + 8 * h : 0;
    return is_key ? r : r % g.of.queries;
  };
  // Among all rows: queries come first.
  const auto place_of = [&](int h) {
    return is_key ? g.query_rows() + of * g.of.keys + line_of(h)
                  : (batch * g.heads + head_of(h)) * g.of.queries + line_of(h);
  };
  const auto bound_of_scores = [&](int h) {
    return num::magnitude_of(g.of.scale) * m.norms_of_row[0][16 * warp + row + 8 * h] *
           static_cast<double>(m.facts.norm[0]) * (1 + 0x1p-20);
  };
  int first[2], last[2];  // columns; of queries within each head
  // Of a row: where its mask is, beside that of a column; a query's i + off, or a key's j - off; a query's slope.
  std::int64_t mask_at[2], here[2];
  double slope[2] = {}, greatest_bias[2] = {};
  bool has_some[2] = {}, is_odd[2] = {}, has_gone[2] = {};
  std::uint64_t pair[2];  // of a query, with key 0; of a key, beside that of a query with key 0
  double lse[2] = {}, of_query[2] = {};
  bool is_left_of[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const bool is_there = has_row(h);
    const std::int64_t head = head_of(h), i = line_of(h), limit = is_key ? g.of.queries : g.of.keys;
    const auto within = [&](std::int64_t j) { return static_cast<int>(j < 0 ? 0 : j > limit ? limit : j); };
    first[h] = is_there ? within(is_key ? i - g.of.offset - g.of.after : i + g.of.offset - g.of.before) : 0;
    last[h] = is_there ? within(is_key ? i - g.of.offset + g.of.before + 1 : i + g.of.offset + g.of.after + 1) : 0;
    if (last[h] < first[h]) last[h] = first[h];
    pair[h] = static_cast<std::uint64_t>(is_key ? tile + row + 8 * h
                                                : ((batch * g.heads + head) * g.of.queries + i) * g.of.keys);
    mask_at[h] = at[5] + (is_key ? i * g.of.mask_at.element : head * g.of.mask_at.head + i * g.of.mask_at.row);
    here[h] = is_key ? i - g.of.offset : i + g.of.offset;
    if (has_bias && !is_key && g.of.slopes != nullptr)
      slope[h] = static_cast<double>(g.of.slopes[head * g.of.slope_step]);
    const bool has_columns = last[h] > first[h];  // of others lse and D may be anything
    if (!is_key && has_columns) {
      lse[h] = sums[place_of(h)].lse;
      of_query[h] = sums[place_of(h)].hi;
    }
    const T* const line[2] = {is_key ? g.of.k + at[1] + head * g.of.k_at.head + i * g.of.k_at.row
                                     : g.of.q + at[0] + head * g.of.q_at.head + i * g.of.q_at.row,
                              is_key ? g.of.v + at[2] + head * g.of.v_at.head + i * g.of.v_at.row
                                     : g.of.g + at[3] + head * g.of.g_at.head + i * g.of.g_at.row};
#pragma unroll
    for (int which = 0; which < (cut::has_factor ? 2 : 1); ++which) {
      const std::int64_t size = which == 0 ? g.of.size : g.of.value_size;
      double square = 0;
#pragma unroll
      for (int s = 0; s < steps; ++s) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int d = 8 * s + 4 * j + t;
          const float x = is_there && d < size ? num::widen_to_float(line[which][d]) : 0.0f;
          (&m.of_rows[which][s][tid].x)[2 * j + h] = x;
          square = fma(static_cast<double>(x), static_cast<double>(x), square);
        }
      }
      over_lanes_of_row(square);
      if (t == 0) m.norms_of_row[which][16 * warp + row + 8 * h] = sqrt(square) * (1 + 0x1p-20);
    }
    __syncwarp();
    const double logarithm = has_bias ? 0.0
                             : is_key ? static_cast<double>(m.facts.logarithm)
                                      : num::magnitude_of(lse[h]);
    is_left_of[h] = has_columns && !(bound_of_scores(h) + logarithm < most_exponent);
    if (t == 0 && has_columns) {
      atomicMin(&m.begin, first[h]);
      atomicMax(&m.end, last[h]);
    }
  }
  const bool is_left_of_all = __any_sync(full_warp, is_left_of[0] || is_left_of[1]);
  const column_range range(first, last, static_cast<int>(is_key ? g.of.queries : g.of.keys));
  __syncthreads();

  // Tiles of columns: of all heads, where these are queries.
  const int begin = m.begin / columns * columns, end = m.end;
  const int of_head = begin < end ? (end - begin + columns - 1) / columns : 0;
  const int tiles = of_head * static_cast<int>(count);  // a 16th of the queries, each of which has a gradient in memory
  const packed_places lines(g, head_places, Size);
  const double* from = packed + (is_key ? lines.of_query(0, within_range * g.of.group) : lines.of_key(0, within_range));
  const std::int64_t copy_step = is_key ? lines.copy_of_queries() : lines.copy_of_keys();  // of lines, and for sums
  const query_sum* sums_of_head = sums + first_head * g.of.queries;
  const auto copy = [&](int j, int stage) {
    const std::int64_t at_line = static_cast<std::int64_t>(j) * Size;
    m.first[stage].template copy<threads>(tid, from + at_line);
    m.second[stage].template copy<threads>(tid, from + copy_step + at_line);
    if constexpr (cut::two_orders && cut::has_factor) {
      m.first_sums[stage].template copy<threads>(tid, from + 2 * copy_step + at_line);
    }
    if constexpr (cut::two_orders && cut::has_weight) {
      m.second_sums[stage].template copy<threads>(tid, from + 3 * copy_step + at_line);
    }
    if (is_key && tid < columns) {
      copy_async<16>(reinterpret_cast<float*>(&m.sums[stage][tid]),
                     reinterpret_cast<const float*>(sums_of_head + (j + tid < end ? j + tid : 0)), j + tid < end);
    }
    commit_copies();
  };
  int next = begin;  // the column that the next tile begins with
  const auto copy_next = [&](int stage) {
    copy(next, stage);
    next += columns;
    if (!is_key || next < end) return;
    next = begin;
    from += lines.query_head;
    sums_of_head += g.of.queries;
  };
  if (tiles > 0) copy_next(0);

  double of_factors[cut::has_factor ? steps : 1][4] = {}, of_weights[cut::has_weight ? steps : 1][4] = {};
#pragma unroll
  for (auto& of_threads : m.statistics) of_threads[tid] = 0;
  int j0 = begin;
  std::int64_t in_group = -1;  // a head's number
  double slope_of_columns = 0;
  for (int n = 0; n < tiles; ++n, j0 = j0 + columns < end ? j0 + columns : begin) {
    const int stage = n & 1;
    if (Extras != tile_extras::none) in_group += j0 == begin ? 1 : 0;
    if (has_bias && is_key && g.of.slopes != nullptr && j0 == begin)
      slope_of_columns = static_cast<double>(g.of.slopes[(key_head * g.of.group + in_group) * g.of.slope_step]);
    wait_for_copies<0>();
    __syncthreads();
    if (n + 1 < tiles) copy_next(stage ^ 1);
    if (is_left_of_all || !range.has_any(j0, columns)) continue;

    double w[eights][4], x[eights][4];
    multiply_lines(m.of_rows[0], tid, m.first[stage], w);
    if constexpr (cut::has_factor) multiply_lines(m.of_rows[1], tid, m.second[stage], x);
    const bool is_whole = range.has_all(j0, columns);
    double weights[2] = {}, weight_squares[2] = {}, products[2] = {}, product_squares[2] = {};
#pragma unroll
    for (int eight = 0; eight < eights; ++eight) {
      unsigned kept = 15;
      if (may_drop && (!has_bias || g.of.draws.any())) {
        // With column 0 of this eight: keys of a query, or queries of a key.
        const auto column = static_cast<std::uint64_t>(j0 + 8 * eight),
                   all_keys = static_cast<std::uint64_t>(g.of.keys);
        const std::uint64_t of_first =
            is_key ? (static_cast<std::uint64_t>((first_head + in_group) * g.of.queries) + column) * all_keys : column;
        kept = kept_pairs<is_key>(g.of.draws, {of_first + pair[0], of_first + pair[1]}, is_key ? all_keys : 1,
                                  g.of.keys % 4 == 0);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int h = i / 2, column = 8 * eight + 2 * t + i % 2;
        const double2 known = is_key ? m.sums[stage][column] : double2{lse[h], of_query[h]};
        double e;
        bool counts = is_whole || (j0 + column >= first[h] && j0 + column < last[h]);
        if constexpr (has_bias) {
          score_bias b;
          if (counts) {
            const std::int64_t of_column =
                is_key ? (key_head * g.of.group + in_group) * g.of.mask_at.head + (j0 + column) * g.of.mask_at.row
                       : (j0 + column) * g.of.mask_at.element;
            b = bias_of<T>(g.of.mask, g.of.is_added, mask_at[h] + of_column, is_key ? slope_of_columns : slope[h],
                           is_key ? here[h] - (j0 + column) : j0 + column - here[h]);
          }
          const double a = ((w[eight][i] * g.of.scale + b.along()) + b.mask) - known.x,
                       size = b.size() + num::magnitude_of(known.x);
          counts = b.is_present && a >= least_score && a <= most_exponent;
          has_some[h] = has_some[h] || b.is_present;
          is_odd[h] = is_odd[h] || (b.is_present && !(a <= most_exponent));
          has_gone[h] = has_gone[h] || (b.is_present && a < least_score);
          greatest_bias[h] = counts && size > greatest_bias[h] ? size : greatest_bias[h];
          e = exponential(counts ? a : 0.0);
        } else {
          e = exponential(fma(w[eight][i], g.of.scale, -known.x));
        }
        if (has_bias || !is_whole) e = counts ? e : 0.0;
        const bool is_kept = !may_drop || (kept >> i & 1) != 0;
        w[eight][i] = is_kept ? e : 0.0;
        weights[h] += e;
        weight_squares[h] = fma(e, e, weight_squares[h]);
        if constexpr (cut::has_factor) {
          double s = e * ((is_kept ? x[eight][i] : 0.0) - known.y);
          if (has_bias && !counts) s = 0.0;  // where nothing is beside a query its D may be anything
          x[eight][i] = s;
          products[h] += num::magnitude_of(s);
          product_squares[h] = fma(s, s, product_squares[h]);
        }
      }
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      m.statistics[h][tid] += weights[h];
      m.statistics[2 + h][tid] += weight_squares[h];
      if constexpr (cut::has_factor) {
        m.statistics[4 + h][tid] += products[h];
        m.statistics[6 + h][tid] += product_squares[h];
      }
    }
    if constexpr (cut::two_orders) {
      if constexpr (cut::has_factor) add_lines(x, m.first_sums[stage], of_factors);
      if constexpr (cut::has_weight) add_lines(w, m.second_sums[stage], of_weights);
    } else {
      if constexpr (cut::has_factor) add_lines(x, m.first[stage], of_factors);
      if constexpr (cut::has_weight) add_lines(w, m.second[stage], of_weights);
    }
  }

  double weights[2], weight_squares[2], products[2], product_squares[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    weights[h] = m.statistics[h][tid];
    weight_squares[h] = m.statistics[2 + h][tid];
    products[h] = m.statistics[4 + h][tid];
    product_squares[h] = m.statistics[6 + h][tid];
  }

  // A query of one key has y = v, and then T is 0, not only near it.
  bool is_alone[2] = {};
  if constexpr (!is_key && Extras == tile_extras::none) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const bool has_one = last[h] - first[h] == 1;
      if (!__any_sync(full_warp, has_one)) continue;
      const T* const y = g.of.y + at[4] + head_of(h) * g.of.y_at.head + line_of(h) * g.of.y_at.row;
      const T* const v = g.of.v + at[2] + key_head * g.of.v_at.head + first[h] * g.of.v_at.row;
      bool is_same = has_one;
      for (std::int64_t e = t; has_one && e < g.of.value_size; e += 4) {
        is_same = is_same && num::widen_to_float(y[e * g.of.y_at.element]) == num::widen_to_float(v[e]);
      }
      const unsigned same = __ballot_sync(full_warp, is_same);
      is_alone[h] = (same >> (4 * row) & 15u) == 15u && !is_left_of_all;
      for (int s = 0; is_alone[h] && s < steps; ++s) of_factors[s][2 * h] = of_factors[s][2 * h + 1] = 0;
      if (is_alone[h]) products[h] = product_squares[h] = 0;
    }
  }

  const double additions = (16 + static_cast<double>(tiles) + 20) * u, rate = may_drop ? g.of.draws.rate() : 1.0;
  std::int64_t decided = 0;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    over_lanes_of_row(weights[h]);
    over_lanes_of_row(weight_squares[h]);
    if constexpr (cut::has_factor) {
      over_lanes_of_row(products[h]);
      over_lanes_of_row(product_squares[h]);
    }
    const bool is_there = has_row(h);
    bool has_columns = last[h] > first[h], is_left = is_left_of_all;
    double gone = 0;  // what weights that are left out may be, 2^30 of them
    if constexpr (has_bias) {
      has_columns = any_lane_of_row(has_some[h]);
      is_left = is_left || any_lane_of_row(is_odd[h]);
      gone = any_lane_of_row(has_gone[h]) ? 0x1p-690 : 0.0;
    }
    const double logarithm = is_key ? static_cast<double>(m.facts.logarithm) : num::magnitude_of(lse[h]);
    const double score = bound_of_scores(h),
                 greatest =
                     has_bias ? -least_score + 4 * greatest_over_lanes_of_row(greatest_bias[h]) : score + logarithm,
                 eps = ((height_of_product(g.of.size) + 2) * score + 6 + greatest) * u;
    const std::int64_t head = head_of(h), i = line_of(h), n = place_of(h);
    const double unknown = by_first ? 0.0 : num::infinity;
    std::uint32_t* const words = bits.words + (is_there ? n : 0) * bits.all;
    if constexpr (cut::has_factor) {
      const double bound_of_sum = is_key                    ? static_cast<double>(m.facts.bound)
                                  : is_there && has_columns ? sums[n].bound()
                                                            : 0.0;
      const double of_products = eps + 2 * u + additions,
                   of_weights_alone = is_alone[h] ? 0.0
                                                  : height_of_product(g.of.value_size) * u *
                                                            m.norms_of_row[1][16 * warp + row + 8 * h] *
                                                            static_cast<double>(m.facts.norm[1]) +
                                                        bound_of_sum;
      const double more =
          unknown +
          gone * (m.norms_of_row[1][16 * warp + row + 8 * h] * static_cast<double>(m.facts.norm[1]) + bound_of_sum / u);
      const row_bounds bounds(
          of_products * products[h] + of_weights_alone * weights[h] + more,
          of_products * sqrt(product_squares[h]) + of_weights_alone * sqrt(weight_squares[h]) + more, g.of.scale * rate,
          has_columns && !(of_weights_alone == 0.0));
      T* const to = is_key ? g.grad_k + at[8] + head * g.grad_k_at.head + i * g.grad_k_at.row
                           : g.grad_q + at[7] + head * g.grad_q_at.head + i * g.grad_q_at.row;
      decided += decide<cut>(of_factors, h, bounds, m.most[0], m.norms[0], is_there, is_left, to,
                             is_key ? g.grad_k_at.element : g.grad_q_at.element, g.of.size, words);
    }
    if constexpr (cut::has_weight) {
      const double of_weight = eps + additions;
      const double more = unknown + gone;
      const row_bounds bounds(of_weight * weights[h] + more, of_weight * sqrt(weight_squares[h]) + more, rate,
                              has_columns);
      T* const to = g.grad_v + at[9] + head * g.grad_v_at.head + i * g.grad_v_at.row;
      decided += decide<cut>(of_weights, h, bounds, m.most[1], m.norms[1], is_there, is_left, to, g.grad_v_at.element,
                             g.of.value_size, words + bits.first);
    }
    // The bits behind a query's are of nothing.
    if (!is_key && is_there && t == 0) {
      for (std::int64_t word = bits.first; word < bits.all; ++word) words[word] = 0;
    }
  }
  count_elements(counters, tier::binary64, decided);
}

template <class T, int Size, gradients_of... What>
constexpr std::size_t largest_of() {
  return std::max({sizeof(typename gradient_tiling<T, Size, What>::memory)...});
}
template <class T>
std::size_t memory_of(const plan::attention_plan& p) {
  return std::max(p.size, p.value_size) <= 64
             ? largest_of<T, 64, gradients_of::queries, gradients_of::keys_and_values>()
             : largest_of<T, 128, gradients_of::queries, gradients_of::keys, gradients_of::values>();
}

}  // namespace

bool is_for_gradient_tiles(const plan::attention_plan& p, const properties& d) {
  std::size_t bytes = 0;
  ops::for_each_format<ops::NARROW>([&]<class T>() {
    if (dtype_of<T> == p.type) bytes = memory_of<T>(p);
  });
  const auto has_lines = [](std::int64_t n) { return n > 0 && n <= most_size; };
  return p.type != dtype::f64 && d.capability >= 80 && !d.choice.wide && p.keys > 0 && p.queries > 0 && p.heads > 0 &&
         p.keys <= most_lines && p.queries <= most_lines && has_lines(p.size) && has_lines(p.value_size) &&
         static_cast<std::int64_t>(bytes) <= largest_memory(d) && is_packed(p, p.q, p.q_at, p.size) &&
         is_packed(p, p.k, p.k_at, p.size) && is_packed(p, p.v, p.v_at, p.value_size) &&
         is_packed(p, p.g, p.g_at, p.value_size);
}
std::int64_t sums_of_gradient_tiles(const plan::attention_plan& p) {
  return static_cast<std::int64_t>(sizeof(query_sum) / sizeof(double)) * p.batches * p.heads * p.queries;
}
std::int64_t packed_of_gradient_tiles(const plan::attention_plan& p) {
  const std::int64_t heads = p.batches * p.key_heads, group = p.heads / p.key_heads;
  const int size = std::max(p.size, p.value_size) <= 64 ? 64 : most_size;
  return heads_of_gradients(heads, group, p.queries, p.keys, size) *
         packed_lines_of_head(group, p.queries, p.keys, size) * size;
}
std::int64_t statistics_of_gradient_tiles(const plan::attention_plan& p) {
  const record_places places = places_of(p.batches * p.heads, p.batches * p.key_heads, p.queries, p.keys);
  return (places.chunks() + places.heads()) * static_cast<std::int64_t>(sizeof(line_record) / sizeof(float));
}

template <class T>
void enqueue_gradient_tiles(const gradient_geometry<T>& g, bool by_first, double* sums, double* packed,
                            float* statistics, const gradient_bits& bits, const open_rows& open, const job& j) {
  const record_places places = places_of(g.batches * g.heads, g.batches * g.key_heads, g.of.queries, g.of.keys);
  auto* const of_queries = reinterpret_cast<query_sum*>(sums);
  auto* const joined = reinterpret_cast<line_record*>(statistics);
  line_record* const of_chunks = joined + places.heads();
  const query_sum* const known_sums = of_queries;
  const line_record *const known_chunks = of_chunks, *const known = joined;
  launch_kernel<gradient_sums<T>>(j, ceil_div(g.query_rows(), line_threads / 32), line_threads, 0, g, of_queries);
  const int size = std::max(g.of.size, g.of.value_size) <= 64 ? 64 : most_size;
  const std::int64_t heads = g.batches * g.key_heads,
                     at_once = heads_of_gradients(heads, g.of.group, g.of.queries, g.of.keys, size);
  for (std::int64_t first = 0; first < heads; first += at_once) {
    const head_range range{first, std::min(at_once, heads - first)};
    const std::int64_t chunks = 2 * range.count * (g.of.group * places.query_chunks + places.key_chunks);
    const auto survey = [&]<int Size>() {
      launch_kernel<gradient_survey<T, Size>>(j, chunks, line_threads, 0, g, places, range, of_chunks, packed);
    };
    size == 64 ? survey.template operator()<64>() : survey.template operator()<128>();
    launch_kernel<gradient_join<T>>(j, 2 * range.count * (g.of.group + 1), line_threads, 0, g, places, range,
                                    known_sums, known_chunks, joined, open);
    const auto run = [&]<int Size, gradients_of What>() {
      using cut = gradient_tiling<T, Size, What>;
      const std::int64_t blocks = ceil_div(cut::is_key ? g.of.keys : g.of.group * g.of.queries, cut::rows);
      const auto tiles = [&]<tile_extras Extras>() {
        launch_kernel<gradient_tiles<T, Size, What, Extras>>(
            j, range.count * blocks, cut::threads, sizeof(typename cut::memory), g, blocks, places, range,
            static_cast<const double*>(packed), by_first, known_sums, known, bits, j.counters);
      };
      switch (extras_of(g.of.mask, g.of.slopes, g.of.draws)) {
        case tile_extras::none:
          return tiles.template operator()<tile_extras::none>();
        case tile_extras::draws:
          return tiles.template operator()<tile_extras::draws>();
        case tile_extras::masks:
          return tiles.template operator()<tile_extras::masks>();
      }
    };
    if (size == 64) {
      run.template operator()<64, gradients_of::keys_and_values>();
      run.template operator()<64, gradients_of::queries>();
    } else {
      run.template operator()<128, gradients_of::keys>();
      run.template operator()<128, gradients_of::values>();
      run.template operator()<128, gradients_of::queries>();
    }
  }
}
template void enqueue_gradient_tiles(const gradient_geometry<f16>&, bool, double*, double*, float*,
                                     const gradient_bits&, const open_rows&, const job&);
template void enqueue_gradient_tiles(const gradient_geometry<bf16>&, bool, double*, double*, float*,
                                     const gradient_bits&, const open_rows&, const job&);
template void enqueue_gradient_tiles(const gradient_geometry<float>&, bool, double*, double*, float*,
                                     const gradient_bits&, const open_rows&, const job&);

}  // namespace repdl::cuda
