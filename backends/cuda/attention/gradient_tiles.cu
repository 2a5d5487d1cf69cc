// Gradients of attention without masks and slopes, of heads of at most 128 numbers: tiles of 16 rows a warp by 16 columns with the fp64 matrix
// instruction (T. Dao, "FlashAttention-2", 2023). Rows are queries and columns keys, for grad_q; or rows are keys and columns the queries of all heads
// that go with them, for grad_k and grad_v: at once where heads have at most 64 numbers, else in a launch each. Columns are copied while the former ones
// are computed with, and converted to binary64 in the order in which the instruction takes them (attention_tiles.cu).
//
// Before that: gradient_sums finds D = g y of every query, gradient_statistics the greatest norm of the lines of q, k, v and g, and of each of their
// columns the greatest magnitude and the sum of squares; all rounded up.
//
// Of a row with B = |scale| N max N_c and L = |lse|, or the greatest one of its columns: all |b_c| are at most B + L, and where that is not below 300
// the row is left to gradient_settle. Bounds, u = 2^-53, with two u for an addition of the matrix instruction (mma.cuh, D1), whose products are exact:
//   b_c                 (32 + D_q / 16) u B + u |b_c|, by sums of 16 products (Cauchy and Schwarz); w_c = e^b_c within
//                       eps = ((33 + D_q / 16) B + 6 + B + L) u of itself
//   t_c                 error_t = (32 + E / 16) u N_g N_v (the greatest of the columns') + error_D, and u |t_c|
//   sum s_c x_c, s_c = w_c t_c:   16 columns by the instruction, and sums of tiles: c = (32 + tiles + 16) u
// so that with V the greatest |x_c| and N_x the norm of all x_c the result is within
//   min(V ((eps + 2 u + c) sum |s| + error_t sum w), N_x ((eps + 2 u + c) sqrt(sum s^2) + error_t sqrt(sum w^2))) |scale|,
// and sum w_c g_c within min(V (eps + c) sum w, N_x (eps + c) sqrt(sum w^2)). As on the CPU (attention_backward_kernels.cpp) nothing is decided by a
// bound below 2^-900, but where all t_c or x_c are 0.
#include <algorithm>

#include "backends/cuda/attention/gradient_tiles.cuh"
#include "backends/cuda/attention/staged_tile.cuh"
#include "backends/cuda/product/mma.cuh"
#include "librepdl/ops/formats.hpp"
#include "librepdl/ops/rows/exponentials.hpp"

namespace repdl::cuda {
namespace {

constexpr double u = unit_roundoff, most_exponent = 300, least_bound = 0x1p-900;
constexpr int line_threads = 128;  // of gradient_statistics

// D of every query, and what its greater part is within. A warp a query.
template <class T>
__global__ void __launch_bounds__(line_threads)
    gradient_sums(const __grid_constant__ gradient_geometry<T> g, query_sum* sums) {
  const int lane = lane_of_thread();
  const std::int64_t n = static_cast<std::int64_t>(blockIdx.x) * (line_threads / 32) + threadIdx.x / 32;
  if (n >= g.query_rows()) return;
  const std::int64_t i = n % g.of.queries, head = n / g.of.queries % g.heads;
  std::int64_t at[5];
  g.batch.locate(n / g.of.queries / g.heads, at);
  const T* const from = g.of.g + at[3] + head * g.of.g_at.head + i * g.of.g_at.row;
  const T* const y = g.of.y + at[4] + head * g.of.y_at.head + i * g.of.y_at.row;
  num::wide_sum<double> sum;
  for (std::int64_t e = lane; e < g.of.value_size; e += 32) {
    sum.add(static_cast<double>(num::widen_to_float(from[e * g.of.g_at.element])) *
            static_cast<double>(num::widen_to_float(y[e * g.of.y_at.element])));
  }
  const num::wide<double> d = over_warp(sum).total(g.of.value_size + 32);
  if (lane == 0) sums[n] = {d.value.hi, d.value.lo, d.error};
}

// A block a chunk of lines.
template <class T>
__global__ void __launch_bounds__(line_threads) gradient_statistics(const __grid_constant__ gradient_geometry<T> g,
                                                                    const record_places places, line_record* records) {
  __shared__ unsigned norm_bits, most[most_size];
  __shared__ float squares[line_threads / 32][most_size];
  const std::int64_t of_queries = 2 * places.query_heads * places.query_chunks;
  const bool is_query = blockIdx.x < of_queries;
  const std::int64_t n = is_query ? blockIdx.x : blockIdx.x - of_queries,
                     chunks = is_query ? places.query_chunks : places.key_chunks,
                     all_heads = is_query ? places.query_heads : places.key_heads,
                     heads = is_query ? g.heads : g.key_heads, lines = is_query ? g.of.queries : g.of.keys;
  const std::int64_t chunk = n % chunks, head = n / chunks % all_heads;
  const bool is_first = n / chunks < all_heads;  // q or k, else g or v
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
  for (int i = static_cast<int>(threadIdx.x); i < most_size; i += line_threads) most[i] = 0;
  if (threadIdx.x == 0) norm_bits = 0;
  __syncthreads();
  const int lane = lane_of_thread(), warp = static_cast<int>(threadIdx.x / 32);
  const std::int64_t end = (chunk + 1) * chunk_lines < lines ? (chunk + 1) * chunk_lines : lines;
  constexpr int columns = most_size / 32;
  float norm = 0, most_of[columns] = {}, squares_of[columns] = {};
  for (std::int64_t j = chunk * chunk_lines + warp; j < end; j += line_threads / 32) {
    double square = 0;
#pragma unroll
    for (int c = 0; c < columns; ++c) {
      const int d = 32 * c + lane;
      const float x = d < size ? fabsf(num::widen_to_float(from[j * row + d])) : 0.0f;
      square = fma(static_cast<double>(x), static_cast<double>(x), square);
      most_of[c] = greater(x, most_of[c]);
      squares_of[c] = __fmaf_ru(x, x, squares_of[c]);
    }
    const float length = __double2float_ru(sqrt(over_warp(square)) * (1 + 0x1p-40));
    norm = greater(length, norm);
  }
  // In the order of the bits NaN is the greatest.
  if (lane == 0) atomicMax(&norm_bits, __float_as_uint(norm) & 0x7fffffffu);
#pragma unroll
  for (int c = 0; c < columns; ++c) {
    atomicMax(most + 32 * c + lane, __float_as_uint(most_of[c]) & 0x7fffffffu);
    squares[warp][32 * c + lane] = squares_of[c];
  }
  __syncthreads();
  line_record& to = records[blockIdx.x];
  if (threadIdx.x == 0) to.norm = __uint_as_float(norm_bits);
  for (int e = static_cast<int>(threadIdx.x); e < most_size; e += line_threads) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < line_threads / 32; ++i) sum = __fadd_ru(sum, squares[i][e]);
    to.most[e] = __uint_as_float(most[e]);
    to.squares[e] = sum;
  }
}

// A block a head: joins its chunks; of g also what is known of its queries.
template <class T>
__global__ void __launch_bounds__(line_threads)
    gradient_join(const __grid_constant__ gradient_geometry<T> g, const record_places places, const query_sum* sums,
                  const line_record* chunks, line_record* records, const open_rows open) {
  __shared__ float shared[line_threads];
  const std::int64_t head = blockIdx.x, count = places.chunks_of(head);
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
  using fragments = double2[steps][eights][32];
  struct none {};
  template <bool Is, class V>
  using only_if = std::conditional_t<Is, V, none>;
  struct memory {
    fragments first;  // of q or k, for scores; of g or v, for factors; and for sums
    only_if<has_factor, fragments> second, of_factors;
    only_if<has_weight, fragments> of_weights;
    float4 rows[has_factor ? 2 : 1][steps][threads];
    staged_tile<T, Size, threads, columns> raw[2];
    double lse[columns], d[columns];
    float most[2][Size], norms[2][Size];
    column_facts facts;
    long long begin, end;
  };
};

// A lane's two rows: g and g + 8 of its warp's tile. Columns of keys have one lse and D, those of queries their own.
struct lane_row {
  std::int64_t n, first, last;  // n: among all rows; -1 beyond the last. Columns, of queries within each head
  double norm[2], lse = 0, d = 0, bound = 0;
  double weights = 0, weight_squares = 0, products = 0, product_squares = 0;
};

// The roundings on the way of a term of a score or a factor, in halves of those of the instruction.
__device__ double height(std::int64_t size) { return 32 + static_cast<double>((size + 15) / 16); }

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

// to += the products of a warp's rows and a tile of columns.
template <class Cut>
__device__ void multiply(const float4 (&rows)[Cut::steps][Cut::threads], const typename Cut::fragments& columns,
                         double (&to)[Cut::eights][4]) {
  const int lane = lane_of_thread();
#pragma unroll
  for (int chain = 0; chain < Cut::steps; chain += steps_of_chain) {
    double part[Cut::eights][4] = {};
#pragma unroll
    for (int s = chain; s < chain + steps_of_chain; ++s) {
      const float4 a = rows[s][threadIdx.x];
#pragma unroll
      for (int eight = 0; eight < Cut::eights; ++eight) {
        const double2 b = columns[s][eight][lane];
        multiply_add<2>(part[eight], {a.x, a.y, a.z, a.w}, {b.x, b.y});
      }
    }
    add_to(to, part);
  }
}
// to += weights of a tile of columns times their numbers, added up before. Two columns of eight at a time: what one waits for the other computes.
template <class Cut>
__device__ void add_up(const double (&weights)[Cut::eights][4], const typename Cut::fragments& values,
                       double (&to)[Cut::steps][4]) {
  const int lane = lane_of_thread();
#pragma unroll
  for (int s = 0; s < Cut::steps; s += 2) {
    double some[2][4] = {};
#pragma unroll
    for (int eight = 0; eight < Cut::eights; ++eight) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const double2 b = values[s + i][eight][lane];
        multiply_add<2>(some[i], {weights[eight][0], weights[eight][2], weights[eight][1], weights[eight][3]},
                        {b.x, b.y});
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int c = 0; c < 4; ++c) to[s + i][c] += some[i][c];
    }
  }
}
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

template <class T, int Size, gradients_of What>
__global__ void __launch_bounds__(gradient_tiling<T, Size, What>::threads, gradient_tiling<T, Size, What>::blocks)
    gradient_tiles(const __grid_constant__ gradient_geometry<T> g, std::int64_t blocks_of_head,
                   const record_places places, bool by_first, const query_sum* sums, const line_record* records,
                   const gradient_bits bits, counter* counters) {
  using cut = gradient_tiling<T, Size, What>;
  constexpr int steps = cut::steps, threads = cut::threads, columns = cut::columns, eights = cut::eights;
  constexpr bool is_key = cut::is_key;
  auto& m = memory_of_block<typename cut::memory>();
  const int tid = static_cast<int>(threadIdx.x), lane = tid % 32, warp = tid / 32, row = lane / 4, t = lane % 4;
  const std::int64_t of = blockIdx.x / blocks_of_head, batch = of / g.key_heads, key_head = of % g.key_heads;
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
    m.begin = is_key ? g.of.queries : g.of.keys;
    m.end = 0;
    m.facts = facts_of<is_key>(places, records, of, first_head, g.of.group);
  }
  __syncthreads();

  lane_row rows[2];
  double score[2];  // B of each
  bool is_left_of[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    lane_row& mine = rows[h];
    const std::int64_t r = tile + row + 8 * h, length = is_key ? g.of.keys : g.of.group * g.of.queries;
    const bool is_there = r < length;
    const std::int64_t head = is_key ? key_head : key_head * g.of.group + (is_there ? r / g.of.queries : 0),
                       i = !is_there ? 0
                           : is_key  ? r
                                     : r % g.of.queries;
    const std::int64_t limit = is_key ? g.of.queries : g.of.keys;
    const auto within = [&](std::int64_t j) { return j < 0 ? 0 : j > limit ? limit : j; };
    if constexpr (is_key) {
      mine.n = is_there ? g.query_rows() + of * g.of.keys + i : -1;
      mine.first = is_there ? within(i - g.of.offset - g.of.after) : 0;
      mine.last = is_there ? within(i - g.of.offset + g.of.before + 1) : 0;
      mine.bound = static_cast<double>(m.facts.bound);
    } else {
      mine.n = is_there ? (batch * g.heads + head) * g.of.queries + i : -1;
      mine.first = is_there ? within(i + g.of.offset - g.of.before) : 0;
      mine.last = is_there ? within(i + g.of.offset + g.of.after + 1) : 0;
    }
    if (mine.last < mine.first) mine.last = mine.first;
    const bool has_columns = mine.last > mine.first;  // of others lse and D may be anything
    if (!is_key && has_columns) {
      mine.lse = static_cast<double>(g.of.lse[at[6] + head * g.of.lse_at.head + i * g.of.lse_at.row]);
      mine.d = sums[mine.n].hi;
      mine.bound = sums[mine.n].bound();
    }
    const T* const first = is_key ? g.of.k + at[1] + head * g.of.k_at.head + i * g.of.k_at.row
                                  : g.of.q + at[0] + head * g.of.q_at.head + i * g.of.q_at.row;
    const T* const second = is_key ? g.of.v + at[2] + head * g.of.v_at.head + i * g.of.v_at.row
                                   : g.of.g + at[3] + head * g.of.g_at.head + i * g.of.g_at.row;
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      const T* const from = which == 0 ? first : second;
      const std::int64_t size = which == 0 ? g.of.size : g.of.value_size;
      double square = 0;
#pragma unroll
      for (int s = 0; s < steps; ++s) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int d = 8 * s + 4 * j + t;
          const float x = is_there && d < size ? num::widen_to_float(from[d]) : 0.0f;
          if (which == 0 || cut::has_factor)
            (&m.rows[cut::has_factor ? which : 0][s][tid].x)[2 * j + h] = x;  // read by this thread alone
          square = fma(static_cast<double>(x), static_cast<double>(x), square);
        }
      }
      square += __shfl_xor_sync(full_warp, square, 1);
      square += __shfl_xor_sync(full_warp, square, 2);
      mine.norm[which] = sqrt(square) * (1 + 0x1p-20);
    }
    score[h] = num::magnitude_of(g.of.scale) * mine.norm[0] * static_cast<double>(m.facts.norm[0]) * (1 + 0x1p-20);
    const double logarithm = is_key ? static_cast<double>(m.facts.logarithm) : num::magnitude_of(mine.lse);
    is_left_of[h] = has_columns && !(score[h] + logarithm < most_exponent);
    if (t == 0 && mine.last > mine.first) {
      atomicMin(&m.begin, static_cast<long long>(mine.first));
      atomicMax(&m.end, static_cast<long long>(mine.last));
    }
  }
  const bool is_left = __any_sync(full_warp, is_left_of[0] || is_left_of[1]);
  // What all rows of the warp have, and what any has.
  std::int64_t all_first = rows[0].first > rows[1].first ? rows[0].first : rows[1].first;
  std::int64_t all_last = rows[0].last < rows[1].last ? rows[0].last : rows[1].last;
  std::int64_t any_first = is_key ? g.of.queries : g.of.keys, any_last = 0;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    if (rows[h].last <= rows[h].first) continue;
    any_first = rows[h].first < any_first ? rows[h].first : any_first;
    any_last = rows[h].last > any_last ? rows[h].last : any_last;
  }
#pragma unroll
  for (int by = 4; by < 32; by *= 2) {
    const auto swapped = [&](std::int64_t x) { return __shfl_xor_sync(full_warp, static_cast<long long>(x), by); };
    const std::int64_t a = swapped(all_first), b = swapped(all_last), c = swapped(any_first), d = swapped(any_last);
    all_first = a > all_first ? a : all_first;
    all_last = b < all_last ? b : all_last;
    any_first = c < any_first ? c : any_first;
    any_last = d > any_last ? d : any_last;
  }
  __syncthreads();

  // Tiles of columns: of all heads, where these are queries.
  const std::int64_t begin = m.begin / columns * columns, end = m.end;
  const std::int64_t of_head = begin < end ? (end - begin + columns - 1) / columns : 0, tiles = of_head * count;
  const T *const first = is_key ? g.of.q + at[0] : g.of.k + at[1] + key_head * g.of.k_at.head,
                 *const second = is_key ? g.of.g + at[3] : g.of.v + at[2] + key_head * g.of.v_at.head;
  const std::int64_t first_row = is_key ? g.of.q_at.row : g.of.k_at.row,
                     second_row = is_key ? g.of.g_at.row : g.of.v_at.row;
  double next_lse = 0, next_d = 0;  // of column tid
  const auto copy = [&](std::int64_t n) {
    const std::int64_t h = key_head * g.of.group + n / of_head, j = begin + n % of_head * columns;
    const T* const from = is_key ? first + h * g.of.q_at.head : first;
    m.raw[0].copy(tid, from + j * first_row, first_row, end - j, g.of.size);
    const T* const other = is_key ? second + h * g.of.g_at.head : second;
    m.raw[1].copy(tid, other + j * second_row, second_row, end - j, g.of.value_size);
    commit_copies();
    if (is_key && tid < columns) {
      const bool is_there = j + tid < end;
      next_lse =
          is_there ? static_cast<double>(g.of.lse[at[6] + h * g.of.lse_at.head + (j + tid) * g.of.lse_at.row]) : 0.0;
      next_d = is_there ? sums[(batch * g.heads + h) * g.of.queries + j + tid].hi : 0.0;
    }
  };
  if (tiles > 0) copy(0);

  double of_factors[cut::has_factor ? steps : 1][4] = {}, of_weights[cut::has_weight ? steps : 1][4] = {};
  for (std::int64_t n = 0; n < tiles; ++n) {
    const std::int64_t j0 = begin + n % of_head * columns;
    wait_for_copies<0>();
    __syncthreads();
    for (int i = tid; i < steps * eights * 32; i += threads) {
      const int l = i % 32, eight = i / 32 % eights, s = i / (32 * eights), r = l / 4, c = l % 4;
      const auto of_products = [&](int which) {
        return double2{m.raw[which].at(8 * eight + r, 8 * s + c), m.raw[which].at(8 * eight + r, 8 * s + 4 + c)};
      };
      const auto of_sums = [&](int which) {
        return double2{m.raw[which].at(8 * eight + 2 * c, 8 * s + r),
                       m.raw[which].at(8 * eight + 2 * c + 1, 8 * s + r)};
      };
      m.first[s][eight][l] = of_products(0);
      if constexpr (cut::has_factor) {
        m.second[s][eight][l] = of_products(1);
        m.of_factors[s][eight][l] = of_sums(0);
      }
      if constexpr (cut::has_weight) m.of_weights[s][eight][l] = of_sums(1);
    }
    if (is_key && tid < columns) {
      m.lse[tid] = next_lse;
      m.d[tid] = next_d;
    }
    __syncthreads();
    if (n + 1 < tiles) copy(n + 1);
    if (is_left || j0 >= any_last || j0 + columns <= any_first) continue;

    double w[eights][4] = {}, x[eights][4] = {};
    multiply<cut>(m.rows[0], m.first, w);
    if constexpr (cut::has_factor) multiply<cut>(m.rows[1], m.second, x);
    const bool is_whole = all_first <= j0 && j0 + columns <= all_last;
#pragma unroll
    for (int eight = 0; eight < eights; ++eight) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        lane_row& mine = rows[i / 2];
        const int column = 8 * eight + 2 * t + i % 2;
        double e = num::fast_exp(fma(w[eight][i], g.of.scale, is_key ? -m.lse[column] : -mine.lse));
        if (!is_whole) e = j0 + column >= mine.first && j0 + column < mine.last ? e : 0.0;
        w[eight][i] = e;
        mine.weights += e;
        mine.weight_squares = fma(e, e, mine.weight_squares);
        if constexpr (cut::has_factor) {
          const double s = e * (x[eight][i] - (is_key ? m.d[column] : mine.d));
          x[eight][i] = s;
          mine.products += num::magnitude_of(s);
          mine.product_squares = fma(s, s, mine.product_squares);
        }
      }
    }
    if constexpr (cut::has_factor) add_up<cut>(x, m.of_factors, of_factors);
    if constexpr (cut::has_weight) add_up<cut>(w, m.of_weights, of_weights);
  }

  const double additions = (32 + static_cast<double>(tiles) + 16) * u;
  std::int64_t decided = 0;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    lane_row& mine = rows[h];
    const auto over_lanes = [&](double& a) {
      a += __shfl_xor_sync(full_warp, a, 1);
      a += __shfl_xor_sync(full_warp, a, 2);
    };
    over_lanes(mine.weights);
    over_lanes(mine.weight_squares);
    if constexpr (cut::has_factor) {
      over_lanes(mine.products);
      over_lanes(mine.product_squares);
    }
    const bool is_there = mine.n >= 0, has_columns = mine.last > mine.first;
    const double logarithm = is_key ? static_cast<double>(m.facts.logarithm) : num::magnitude_of(mine.lse);
    const double eps = ((height(g.of.size) + 1) * score[h] + 6 + score[h] + logarithm) * u;
    const std::int64_t r = tile + row + 8 * h,
                       head = is_key ? key_head : key_head * g.of.group + (is_there ? r / g.of.queries : 0),
                       i = !is_there ? 0
                           : is_key  ? r
                                     : r % g.of.queries;
    const double unknown = by_first ? 0.0 : num::infinity;
    std::uint32_t* const words = bits.words + (is_there ? mine.n : 0) * bits.all;
    if constexpr (cut::has_factor) {
      const double of_products = eps + 2 * u + additions,
                   of_weights_alone =
                       height(g.of.value_size) * u * mine.norm[1] * static_cast<double>(m.facts.norm[1]) + mine.bound;
      const row_bounds bounds(
          of_products * mine.products + of_weights_alone * mine.weights + unknown,
          of_products * sqrt(mine.product_squares) + of_weights_alone * sqrt(mine.weight_squares) + unknown, g.of.scale,
          has_columns && !(of_weights_alone == 0.0));
      T* const to = is_key ? g.grad_k + at[8] + head * g.grad_k_at.head + i * g.grad_k_at.row
                           : g.grad_q + at[7] + head * g.grad_q_at.head + i * g.grad_q_at.row;
      decided += decide<cut>(of_factors, h, bounds, m.most[0], m.norms[0], is_there, is_left, to,
                             is_key ? g.grad_k_at.element : g.grad_q_at.element, g.of.size, words);
    }
    if constexpr (cut::has_weight) {
      const double of_weight = eps + additions;
      const row_bounds bounds(of_weight * mine.weights + unknown, of_weight * sqrt(mine.weight_squares) + unknown, 1.0,
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
  return d.capability >= 80 && !d.choice.wide && p.mask == nullptr && p.slopes == nullptr && p.keys > 0 &&
         p.queries > 0 && p.heads > 0 && has_lines(p.size) && has_lines(p.value_size) &&
         static_cast<std::int64_t>(bytes) <= largest_memory(d) && is_packed(p, p.q, p.q_at, p.size) &&
         is_packed(p, p.k, p.k_at, p.size) && is_packed(p, p.v, p.v_at, p.value_size) &&
         is_packed(p, p.g, p.g_at, p.value_size);
}
std::int64_t sums_of_gradient_tiles(const plan::attention_plan& p) { return 3 * p.batches * p.heads * p.queries; }
std::int64_t statistics_of_gradient_tiles(const plan::attention_plan& p) {
  const record_places places = places_of(p.batches * p.heads, p.batches * p.key_heads, p.queries, p.keys);
  return (places.chunks() + places.heads()) * static_cast<std::int64_t>(sizeof(line_record) / sizeof(float));
}

template <class T>
void enqueue_gradient_tiles(const gradient_geometry<T>& g, bool by_first, double* sums, float* statistics,
                            const gradient_bits& bits, const open_rows& open, const job& j) {
  const record_places places = places_of(g.batches * g.heads, g.batches * g.key_heads, g.of.queries, g.of.keys);
  auto* const of_queries = reinterpret_cast<query_sum*>(sums);
  auto* const joined = reinterpret_cast<line_record*>(statistics);
  line_record* const of_chunks = joined + places.heads();
  const query_sum* const known_sums = of_queries;
  const line_record *const known_chunks = of_chunks, *const known = joined;
  launch_kernel<gradient_sums<T>>(j, ceil_div(g.query_rows(), line_threads / 32), line_threads, 0, g, of_queries);
  launch_kernel<gradient_statistics<T>>(j, places.chunks(), line_threads, 0, g, places, of_chunks);
  launch_kernel<gradient_join<T>>(j, places.heads(), line_threads, 0, g, places, known_sums, known_chunks, joined,
                                  open);
  const auto run = [&]<int Size, gradients_of What>() {
    using cut = gradient_tiling<T, Size, What>;
    const std::int64_t blocks = ceil_div(cut::is_key ? g.of.keys : g.of.group * g.of.queries, cut::rows);
    launch_kernel<gradient_tiles<T, Size, What>>(j, g.batches * g.key_heads * blocks, cut::threads,
                                                 sizeof(typename cut::memory), g, blocks, places, by_first, known_sums,
                                                 known, bits, j.counters);
  };
  if (std::max(g.of.size, g.of.value_size) <= 64) {
    run.template operator()<64, gradients_of::keys_and_values>();
    run.template operator()<64, gradients_of::queries>();
  } else {
    run.template operator()<128, gradients_of::keys>();
    run.template operator()<128, gradients_of::values>();
    run.template operator()<128, gradients_of::queries>();
  }
}
template void enqueue_gradient_tiles(const gradient_geometry<f16>&, bool, double*, float*, const gradient_bits&,
                                     const open_rows&, const job&);
template void enqueue_gradient_tiles(const gradient_geometry<bf16>&, bool, double*, float*, const gradient_bits&,
                                     const open_rows&, const job&);
template void enqueue_gradient_tiles(const gradient_geometry<float>&, bool, double*, float*, const gradient_bits&,
                                     const open_rows&, const job&);

}  // namespace repdl::cuda
