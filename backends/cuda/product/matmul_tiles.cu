// The exact matrix product: out = RN(alpha a b + beta bias), decided in binary64 by the fp64 matrix unit wherever its bound allows, in one
// launch.
//
// Method: factors of 24 bits have exact binary64 products, so a fp64 engine in any order has a small proved error, and a rounding test
// decides most outputs (certify.hpp). A block has a tile of outputs. Half of its warps bring panels of both operands, 16 terms of each line, from the caller's
// memory into shared memory as binary64 numbers, and collect norms and lattices of lines on the way; the other half multiplies. What the test leaves open the block
// repairs itself, a warp for an output (matmul_repair.cuh). Where tiles are few, the warps of a block, or the blocks of a cluster, have a part of the
// terms each, and add up their sums in the end.
//
// Error of the engine, under the assumptions (D1), (D2) of mma.cuh: terms are cut into blocks; the block sums, chains of at most L
// additions each, are added one after the other, and the parts' sums, too. A product passes at most H = L + blocks + parts additions:
//     |s - S| <= ((1 + u)^H - 1) sum|a_k b_k| <= H u (1 + 2^-31) |a||b|                            for H <= 2^20,
//     e = dot_bound(H + 4, A, B) = fl((H + 8) u A B).
// (C) of certify.hpp: e(1 - u) >= |s - S| + u|s|, |s| <= |a||b|(1 + 2^-30). Of a line, a lane's sum of squares is an upper bound (line_summary.cuh); lanes and
// parts are added in binary64, N of them, or it is the sum of exact squares in binary64: with K >= N additions and a root A B falls short of |a||b| by at most
// (K + 6) u <= 2^-27 + 6u for K <= 2^26, so (H + 8)(1 - 2^-26) >= H(1 + 2^-31) + 1 + 2^-30 suffices: true.
// A bias c is added last, t = fl(s + c): |t - (S + c)| <= |s - S| + u|s + c|, and (C) takes another u|t| + u e' for the ends: e' = e + 4u(|s| + |c|) covers both.
// The lattice rule sees c as one more term. With factors c is none: s and e become alpha s + beta c and its bound (ops/sums/scaled_sum.hpp).
#include <bit>
#include <utility>

#include "backends/cuda/product/launch_next.cuh"
#include "backends/cuda/product/matmul_share.cuh"
#include "backends/cuda/product/mma.cuh"

namespace repdl::cuda {
namespace {

// WarpsM x WarpsN warps multiply, or Slices times as many, which have every Slices-th panel; as many copy.
template <int WarpsM, int WarpsN, int Slices, int MTiles, int NTiles>
struct tile_shape {
  static constexpr int stages = 2;  // panels in shared memory: one is filled while the other is read
  static constexpr int warps_n = WarpsN;
  static constexpr int slices = Slices;
  static constexpr int m_tiles = MTiles;  // of 16 rows, of a warp
  static constexpr int n_tiles = NTiles;  // of 8 columns
  static constexpr int slice_threads = WarpsM * WarpsN * 32;
  static constexpr int workers = slice_threads * Slices;  // that copy, or that multiply
  static constexpr int threads = 2 * workers;
  static constexpr int rows = WarpsM * MTiles * 16;
  static constexpr int cols = WarpsN * NTiles * 8;
  static constexpr int lines = rows + cols;
  static constexpr int pairs = MTiles * NTiles * 2;    // of a thread's sums
  static constexpr int quads = lines / slice_threads;  // squares of 4 x 4 elements that a thread copies in a step
  static constexpr int ahead = quads == 1 ? 2 : 1;     // steps that are read ahead: what registers allow
  static_assert(lines % slice_threads == 0);
};

// A panel in shared memory has pairs of lines, 16 terms of each, in units of 16 bytes and room for two more. Lane t of four takes terms 4 t + j, at 4 j + t. Of a's
// lines a unit has the same term of both; of b's, two terms of one: 4 t, 4 t + 1 of the first one at t, of the other at 9 + t, 4 t + 2, 4 t + 3 four further. So
// what an instruction takes comes in neighbouring registers, and the reads of a warp (place_a, place_b) and its writes, of lines 4 i .. 4 i + 3 by lanes 4 i + t,
// are in different banks.
constexpr int pair_pitch = 36;  // numbers
using lane_of_line = lane_summary<float, common_lattice>;

template <class T>
struct tile_memory {
  alignas(16) double panels[T::stages][T::slices][T::lines / 2][pair_pitch];
  double2 sums[T::slices][T::pairs][T::slice_threads];
  line_known parts[T::slices][T::lines];
  double norm[T::lines];
  int lsb[T::lines];
  std::int64_t row0, col0, batch;
  int open;
  unsigned marks[T::rows * T::cols / 32];  // of open outputs: bit row * cols + column
};

// The pair of lines of a, and the line of b, of eight, that lanes 4 i .. 4 i + 3 have.
__device__ constexpr int place_a(int i) { return i / 4 * 4 + i % 2 * 2 + i / 2 % 2; }
__device__ constexpr int place_b(int i) { return i / 2 + i % 2 * 4; }

// How an operand is read. Terms lie nearer to each other than lines, or the other way round; packed: four of what lies nearer are side by side, and aligned.
struct reach {
  bool k_fast, packed;
};

// Copies a square of four lines by four terms of every Step. T: of the operand. Ahead: squares that it reads before it converts the first one.
template <class T, int Step, int Ahead>
class quad_copier {
 public:
  quad_copier() = default;
  // Begins at a line and a term, which may lie beyond the last.
  __device__ quad_copier(const operand_source& s, reach how, std::int64_t batch, std::int64_t line, std::int64_t k)
      : at_(batch_of<T>(s, batch) + line * s.row_stride + k * s.k_stride),
        k_fast_(how.k_fast),
        across_(k_fast_ ? s.row_stride : s.k_stride),
        along_(k_fast_ ? s.k_stride : s.row_stride),
        lines_(static_cast<int>(min(max(s.rows - line, std::int64_t{0}), std::int64_t{4}))),
        packed_(how.packed && (k_fast_ || lines_ == 4)) {
    const std::int64_t left = max(s.k - k, std::int64_t{0});
    whole_ = static_cast<int>((left + (Step - 4)) / Step);  // steps of four terms
    tail_ = left - std::int64_t{whole_} * Step > 0 ? static_cast<int>(left - std::int64_t{whole_} * Step) : 0;
  }
  // Starts to read the next square, into one of Ahead places: what is outside is zero.
  template <int Place>
  __device__ void load() {
    using word = std::conditional_t<sizeof(T) == 4, uint4, uint2>;
    if (packed_ && whole_ > 0) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        word x{};
        if (!k_fast_ || i < lines_) x = __ldg(reinterpret_cast<const word*>(at_ + i * across_));
        memcpy(raw_[Place][i], &x, sizeof(x));
      }
    } else {
      const int terms = whole_ > 0 ? 4 : whole_ == 0 ? tail_ : 0;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        using bits = std::conditional_t<sizeof(T) == 4, unsigned, unsigned short>;
        bits x[4] = {};
        if (i < (k_fast_ ? lines_ : terms)) {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            if (e < (k_fast_ ? terms : lines_))
              x[e] = __ldg(reinterpret_cast<const bits*>(at_ + i * across_ + e * along_));
          }
        }
        memcpy(raw_[Place][i], x, sizeof(x));
      }
    }
    at_ += Step * (k_fast_ ? along_ : across_);
    --whole_;
  }
  // What was read, [line][term].
  template <int Place>
  __device__ void convert(double (&v)[4][4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      common_lattice of_step;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float x = k_fast_ ? element(raw_[Place][i], e) : element(raw_[Place][e], i);
        seen_[i].squares = __fmaf_rn(x, x, seen_[i].squares);
        of_step.add(x);
        v[i][e] = static_cast<double>(x);
      }
      seen_[i].lattice.merge(of_step);
    }
  }
  // Writes it to the first line's place in a panel.
  template <bool OfA>
  static __device__ void store(const double (&v)[4][4], int t, double* to) {
    if constexpr (OfA) {
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
#pragma unroll
        for (int e = 0; e < 4; ++e) put(to + i / 2 * pair_pitch + 8 * e + 2 * t, v[i][e], v[i + 1][e]);
      }
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int e = 0; e < 4; e += 2) put(to + i * (pair_pitch / 2) + 4 * e + 2 * t, v[i][e], v[i][e + 1]);
      }
    }
  }
  // Of line i of four, all that this copier and its three neighbours saw.
  __device__ line_known known(int i, int steps) const {
    line_known x = seen_[i].finish(4 * steps);
    x.merge_lanes(1);
    x.merge_lanes(2);
    return x;
  }

 private:
  static __device__ void put(double* to, double x, double y) { *reinterpret_cast<double2*>(to) = make_double2(x, y); }
  static __device__ float element(const unsigned (&raw)[sizeof(T)], int e) {
    if constexpr (sizeof(T) == 4) {
      return __uint_as_float(raw[e]);
    } else {
      const unsigned word = raw[e / 2];
      return num::widen_to_float(num::from_bits<T>(static_cast<std::uint16_t>(e % 2 == 0 ? word : word >> 16)));
    }
  }

  const T* at_;
  bool k_fast_;
  std::int64_t across_, along_;
  int lines_;
  bool packed_;
  int whole_, tail_;  // so many steps of four terms are to come, and then one of so many
  unsigned raw_[Ahead][4][sizeof(T)];
  lane_of_line seen_[4];
};

// All warps of a block meet, those that copy and those that multiply each at places of their own.
__device__ inline void meet_block() { asm volatile("barrier.sync 0;" ::: "memory"); }

struct tiling {
  reach a, b;
  std::int64_t steps;  // of all parts
  int log2_parts;      // blocks of a cluster
  std::int64_t height;
};

__device__ inline void load_pair(const double* from, double& x, double& y) {
  const double2 v = *reinterpret_cast<const double2*>(from);
  x = v.x;
  y = v.y;
}
// Tiles in an order in which blocks that run at the same time share lines: eight tile rows at a time.
template <class T>
__device__ void tile_of(const product& p, unsigned index, std::int64_t& row, std::int64_t& col, std::int64_t& batch) {
  // There are fewer tiles than a grid may have blocks, 2^31.
  const auto rows = static_cast<unsigned>((p.m + T::rows - 1) / T::rows);
  const auto cols = static_cast<unsigned>((p.n + T::cols - 1) / T::cols);
  const unsigned of_batch = index / (rows * cols);
  index -= of_batch * (rows * cols);
  const unsigned first = index / (8 * cols) * 8;
  const unsigned height = min(rows - first, 8u);
  index -= first * cols;
  batch = of_batch;
  row = static_cast<std::int64_t>(first + index % height) * T::rows;
  col = static_cast<std::int64_t>(index / height) * T::cols;
}

template <int Count, class F>
__device__ void for_constants(const F& f) {
  [&]<int... N>(std::integer_sequence<int, N...>) { (f.template operator()<N>(), ...); }
  (std::make_integer_sequence<int, Count>());
}

template <class T, class Format>
using copier_of = quad_copier<Format, panel_k * T::slices, T::ahead>;
// Of a tile's line, from a step on.
template <class T, class Format>
__device__ copier_of<T, Format> copier_at(const product& p, const tiling& how, const tile_memory<T>& shared,
                                          std::int64_t step, int slice, int line, int t) {
  static_assert(T::rows % 32 == 0 && T::cols % 32 == 0);  // a warp copies of one operand at a time
  const std::int64_t k = (step * T::slices + slice) * panel_k + 4 * t;
  if (line < T::rows) return {p.source_a, how.a, shared.batch, shared.row0 + line, k};
  return {p.source_b, how.b, shared.batch, shared.col0 + (line - T::rows), k};
}

// Where the sums of a pair of a thread are: a row of the tile, and the first of two columns, the other of which is four further.
template <class T>
struct place_of_pair {
  int row0, col0;

  __device__ place_of_pair(int warp_row, int warp_col, int lane)
      : row0(warp_row + 2 * place_a(lane / 4)), col0(warp_col + lane % 4) {}
  __device__ int row(int n) const { return row0 + n / 2 / T::n_tiles * 16 + n % 2; }
  __device__ int col(int n) const { return col0 + n / 2 % T::n_tiles * 8; }
};

// The double-double tier for a tile: of each thread Down x Across squares, of two rows and two columns each (pairs 2 n and 2 n + 1). They are square n, those T::n_tiles
// further (16 rows below), and T::n_tiles / 2 further (16 columns to the right). Returns how many outputs that were marked it decided; they are not marked any more. By all threads of a block, as it
// synchronises them.
template <int Down, int Across, class T, class Format, bool Scaled>
__device__ int add_up_densely(const product& p, const tiling& how, tile_memory<T>& shared,
                              const batch_pointers<Format>& at, const place_of_pair<T>& place, int n) {
  const int tid = static_cast<int>(threadIdx.x);
  const int worker = tid % T::workers;
  const int t = tid % 4;
  const int slice = worker / T::slice_threads;
  const auto first_line = [&](int q) { return (q * T::slice_threads + worker % T::slice_threads) / 4 * 4; };
  const bool copies = tid >= T::workers;
  copier_of<T, Format> copier[T::quads];
  if (copies) {
#pragma unroll
    for (int q = 0; q < T::quads; ++q) copier[q] = copier_at<T, Format>(p, how, shared, 0, slice, first_line(q), t);
  }
  // The rows and columns of a thread, and where their lines lie in a panel; beyond the last square those of that.
  const int last = min(n, T::pairs / 2 - 1);
  const auto row_of = [&](int d, int r) { return place.row(2 * last) + 16 * d + r; };
  const auto col_of = [&](int c, int side) { return place.col(2 * last) + 4 * T::n_tiles * c + 4 * side; };
  const int of_a = place.row(2 * last) / 2 * pair_pitch;
  const int of_b = (T::rows + place.col(2 * last)) * (pair_pitch / 2);
  const auto magnitude_of = [&](int r, int c) { return shared.norm[r] * shared.norm[T::rows + c]; };
  sum_from_start sum[Down][2][Across][2];
  for_constants<Down * Across * 4>([&]<int I>() {
    constexpr int d = I / 4 / Across, r = I / 2 % 2, c = I / 4 % Across, side = I % 2;
    sum[d][r][c][side] = sum_from_start(magnitude_of(row_of(d, r), col_of(c, side)));
  });
  for (std::int64_t i = 0; i < how.steps; ++i) {
    __syncthreads();
    if (copies) {
#pragma unroll
      for (int q = 0; q < T::quads; ++q) {
        double v[4][4];
        copier[q].template load<0>();
        copier[q].template convert<0>(v);
        double* const to = shared.panels[0][slice][first_line(q) / 2];
        if (first_line(q) < T::rows) {
          copier[q].template store<true>(v, t, to);
        } else {
          copier[q].template store<false>(v, t, to);
        }
      }
    }
    __syncthreads();
#pragma unroll 1
    for (int quad = 0; quad < 4 * T::slices; ++quad) {  // four terms
      const double* const panel = shared.panels[0][quad / 4][0] + 2 * (quad % 4);
#pragma unroll
      for (int j = 0; j < 4; j += 2) {
        double a[Down][2][2];    // term, row
        double b[Across][2][2];  // column, term
#pragma unroll
        for (int x = 0; x < 2; ++x) {
#pragma unroll
          for (int d = 0; d < Down; ++d)
            load_pair(panel + of_a + 8 * pair_pitch * d + 8 * (j + x), a[d][x][0], a[d][x][1]);
#pragma unroll
          for (int c = 0; c < Across; ++c) {
            load_pair(panel + of_b + (2 * T::n_tiles * c + 2 * x) * pair_pitch + 4 * j, b[c][x][0], b[c][x][1]);
          }
        }
#pragma unroll
        for (int x = 0; x < 2; ++x) {
          for_constants<Down * Across * 4>([&]<int I>() {
            constexpr int d = I / 4 / Across, r = I / 2 % 2, c = I / 4 % Across, side = I % 2;
            sum[d][r][c][side].add_product(a[d][x][r], b[c][side][x]);
          });
        }
      }
    }
  }
  int decided = 0;
  for_constants<Down * Across * 4>([&]<int I>() {
    constexpr int d = I / 4 / Across, i = I / 2 % 2, j = I / 4 % Across, side = I % 2;
    const int r = row_of(d, i);
    const int c = col_of(j, side);
    const std::int64_t row = shared.row0 + r;
    const std::int64_t col = shared.col0 + c;
    if (n != last || row >= p.m || col >= p.n) return;
    const double magnitude = magnitude_of(r, c);
    const num::decided_value<Format> result = sum[d][i][j][side].finish(magnitude).template finish<Format, Scaled>(
        p, magnitude, shared.lsb[r] + shared.lsb[T::rows + c], bias_of(p, at, row, col));
    if (!result.decided) return;
    const int output = r * T::cols + c;
    const unsigned mark = 1u << output % 32;
    if ((atomicAnd(&shared.marks[output / 32], ~mark) & mark) == 0) return;
    at.out[row * p.out_row + col * p.out_col] = result.value;
    ++decided;
  });
  return decided;
}

template <class T, class Format, bool Scaled>
__global__ void __launch_bounds__(T::threads, 512 / T::threads)
    tile_kernel(const __grid_constant__ product p, const __grid_constant__ tiling how, counter* counters) {
  wait_for_former();
  if (!p.choice.wants_binary64()) return;
  extern __shared__ __align__(128) unsigned char raw[];
  auto& shared = *reinterpret_cast<tile_memory<T>*>(raw);
  __builtin_assume(threadIdx.x < T::threads);
  const int tid = static_cast<int>(threadIdx.x);
  const int lane = lane_of_thread();
  const int t = lane % 4;
  const bool copies = tid >= T::workers;
  const int worker = tid % T::workers;
  const int slice = worker / T::slice_threads;
  const int in_slice = worker % T::slice_threads;
  const int warp = in_slice / 32;
  const int warp_m = warp / T::warps_n;
  const int warp_n = warp % T::warps_n;
  const int warp_row = warp_m * T::m_tiles * 16;
  const int warp_col = warp_n * T::n_tiles * 8;
  const int part = static_cast<int>(blockIdx.x & ((1u << how.log2_parts) - 1));
  const int parts = 1 << how.log2_parts;
  if (tid == 0) {
    shared.open = 0;
    tile_of<T>(p, blockIdx.x >> how.log2_parts, shared.row0, shared.col0, shared.batch);
  }
  for (int i = tid; i < T::rows * T::cols / 32; i += T::threads) shared.marks[i] = 0;
  __syncthreads();
  const std::int64_t first_step = how.steps * part >> how.log2_parts;
  const int steps = static_cast<int>((how.steps * (part + 1) >> how.log2_parts) - first_step);

  if (copies) {
    const auto first_line = [&](int n) { return (n * T::slice_threads + in_slice) / 4 * 4; };
    copier_of<T, Format> copier[T::quads];
#pragma unroll
    for (int n = 0; n < T::quads; ++n) {
      copier[n] = copier_at<T, Format>(p, how, shared, first_step, slice, first_line(n), t);
      copier[n].template load<0>();
      if (T::ahead == 2) copier[n].template load<T::ahead - 1>();
    }
    const auto copy_all = [&]<bool OfA>() {  // whether the warp's lines are a's; the first of two quads is a's
      int place = 0;
      const auto copy = [&]<int Place>(int i) {
        for_constants<T::quads>([&]<int N>() {
          double v[4][4];
          copier[N].template convert<Place>(v);
          if (i + T::ahead < steps) copier[N].template load<Place>();
          copier[N].template store<T::quads == 2 ? N == 0 : OfA>(v, t, shared.panels[place][slice][first_line(N) / 2]);
        });
        meet_block();  // the panel is there, and the one before the former is done with
        place ^= 1;
      };
      for (int i = 0; i < steps; i += T::ahead) {
        copy.template operator()<0>(i);
        if (T::ahead == 2 && i + 1 < steps) copy.template operator()<T::ahead - 1>(i + 1);
      }
    };
    if (T::quads == 2 || first_line(0) < T::rows) {
      copy_all.template operator()<true>();
    } else {
      copy_all.template operator()<false>();
    }
#pragma unroll
    for (int n = 0; n < T::quads; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const line_known x = copier[n].known(i, steps);
        if (t == 0) shared.parts[slice][first_line(n) + i] = x;
      }
    }
  } else {
    double sum[T::m_tiles][T::n_tiles][4] = {};
    bool has_blocks = false;
    // Adds what there is of this block of terms to that of blocks before.
    const auto add_block = [&] {
#pragma unroll
      for (int n = 0; n < T::pairs; ++n) {
        double* const s = &sum[n / 2 / T::n_tiles][n / 2 % T::n_tiles][n % 2 * 2];
        double2& total = shared.sums[slice][n][in_slice];
        total = has_blocks ? make_double2(total.x + s[0], total.y + s[1]) : make_double2(s[0], s[1]);
        s[0] = 0;
        s[1] = 0;
      }
      has_blocks = true;
    };
    const int of_a = (warp_row / 2 + place_a(lane / 4)) * pair_pitch + 2 * t;
    const int of_b = (T::rows + warp_col + place_b(lane / 4)) * (pair_pitch / 2) + 2 * t;
    int place = 0;
    int in_block = 0;
    for (int i = 0; i < steps; ++i) {
      meet_block();
      const double* const panel = shared.panels[place][slice][0];
#pragma unroll
      for (int j = 0; j < 2; ++j) {  // eight terms
        double b[T::n_tiles][2];
#pragma unroll
        for (int n = 0; n < T::n_tiles; ++n) load_pair(panel + of_b + n * 4 * pair_pitch + 8 * j, b[n][0], b[n][1]);
#pragma unroll
        for (int m = 0; m < T::m_tiles; ++m) {
          double a[4];
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            load_pair(panel + of_a + m * 8 * pair_pitch + 16 * j + 8 * h, a[2 * h], a[2 * h + 1]);
          }
#pragma unroll
          for (int n = 0; n < T::n_tiles; ++n) multiply_add(sum[m][n], a, b[n]);
        }
      }
      place ^= 1;
      if (++in_block == block_panels) {
        in_block = 0;
        if (i + 1 < steps) add_block();
      }
    }
    add_block();
  }
  __syncthreads();
  if (parts > 1) meet_cluster();
  for (int i = tid; i < T::lines; i += T::threads) {
    line_known x;
    for (int other = 0; other < parts; ++other) {
      const tile_memory<T>& there = other == part ? shared : of_block(shared, other);
#pragma unroll
      for (int s = 0; s < T::slices; ++s) x.merge(there.parts[s][i]);
    }
    shared.norm[i] = norm_of(x);
    shared.lsb[i] = x.lattice.lsb();
  }
  __syncthreads();
  for (int i = tid / 32; i < T::lines; i += T::threads / 32) {
    if (shared.norm[i] >= 0) continue;
    const double squares = i < T::rows ? squares_of(p.source_a, shared.batch, shared.row0 + i)
                                       : squares_of(p.source_b, shared.batch, shared.col0 + (i - T::rows));
    __syncwarp();
    if (lane == 0) shared.norm[i] = num::sqrt(squares);
  }
  __syncthreads();

  const std::int64_t row0 = shared.row0;
  const std::int64_t col0 = shared.col0;
  const std::int64_t batch = shared.batch;
  const batch_pointers<Format> at(p, batch);
  const bool forced = p.first_tier > tier::binary64;
  const std::int64_t bound_height = how.height + 4;
  const bool in_pairs =
      p.out_col == 1 && p.out_row % 2 == 0 && reinterpret_cast<std::uintptr_t>(at.out) % (2 * sizeof(Format)) == 0;
  const int sharing = parts * T::slices;  // of a sum
  const int first_pair = (part * T::slices + slice) * 2 + (copies ? 1 : 0);
  const place_of_pair<T> place(warp_row, warp_col, lane);
  int decided = 0;
#pragma unroll 2
  for (int n = first_pair; n < T::pairs; n += 2 * sharing) {
    double2 v = shared.sums[0][n][in_slice];
    if (sharing > 1) {
      v = make_double2(0, 0);
      for (int other = 0; other < parts; ++other) {
        const tile_memory<T>& there = other == part ? shared : of_block(shared, other);
#pragma unroll
        for (int s = 0; s < T::slices; ++s) {
          const double2 x = there.sums[s][n][in_slice];
          v.x += x.x;
          v.y += x.y;
        }
      }
    }
    // A lane has two columns; two lanes trade, so that each has two side by side.
    const double traded = __shfl_xor_sync(full_warp, t % 2 == 0 ? v.y : v.x, 1);
    const double pair[2] = {t % 2 == 0 ? v.x : traded, t % 2 == 0 ? traded : v.y};
    const int row_in_tile = place.row(n);
    const int col_in_tile = place.col(n) + (t % 2 == 0 ? 0 : 3);
    const std::int64_t row = row0 + row_in_tile;
    if (row >= p.m) continue;
    const double norm_a = shared.norm[row_in_tile];
    Format* const out = at.out + row * p.out_row;
    num::decided_value<Format> result[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const std::int64_t col = col0 + col_in_tile + i;
      const double norm_b = shared.norm[T::rows + col_in_tile + i];
      const Format* const bias =
          at.bias == nullptr || col >= p.n ? nullptr : at.bias + row * p.bias_row + col * p.bias_col;
      result[i] = decide<Format, Scaled>(p, pair[i], bound_height, norm_a, norm_b, bias, [&] {
        return shared.lsb[row_in_tile] + shared.lsb[T::rows + col_in_tile + i];
      });
      result[i].decided = result[i].decided && !forced;
      if (col >= p.n) continue;
      if (result[i].decided) {
        ++decided;
      } else {
        const int output = row_in_tile * T::cols + col_in_tile + i;
        atomicOr(&shared.marks[output / 32], 1u << output % 32);
        atomicAdd(&shared.open, 1);
      }
    }
    const std::int64_t col = col0 + col_in_tile;
    if (in_pairs && result[0].decided && result[1].decided && col + 1 < p.n) {
      alignas(2 * sizeof(Format)) const Format both[2] = {result[0].value, result[1].value};
      using word = std::conditional_t<sizeof(Format) == 4, std::uint64_t, std::uint32_t>;
      *reinterpret_cast<word*>(out + col) = *reinterpret_cast<const word*>(both);
    } else {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (result[i].decided && col + i < p.n) out[(col + i) * p.out_col] = result[i].value;
      }
    }
  }
  __syncthreads();
  if (parts > 1) meet_cluster();  // no block ends while another one reads its memory
  decided = __reduce_add_sync(full_warp, decided);
  if (lane == 0) count_elements(counters, tier::binary64, decided);
  if (shared.open == 0) return;
  // Where many are open, all of the tile's outputs are added up in double-double together. (A 16th: a matter of speed alone.)
  const bool is_dense = shared.open > T::rows * T::cols / 16 && p.first_tier <= tier::double_double;
  std::int64_t near = 0;
  std::int64_t exact = 0;
  if (is_dense) {
    static_assert(T::m_tiles == 2 && T::n_tiles == 4);
    // A thread has squares 0, 2, 4 and 6, or the others. (Of 16 bits, where this is rare, all of them would take registers from the first tier.)
    constexpr int down = std::is_same_v<Format, float> ? 2 : 1;
    if (T::slices == 1 && parts == 1) {
      constexpr int across = T::slices == 1 ? 2 : 1;
      for (int n = 0; n < 8; n += 4 * down) {
        near += add_up_densely<down, across, T, Format, Scaled>(p, how, shared, at, place, first_pair + n);
      }
    } else {
      for (int n = 0; n < T::pairs / 2; n += 2 * sharing) {
        near += add_up_densely<1, 1, T, Format, Scaled>(p, how, shared, at, place, first_pair + n);
      }
    }
    near = __reduce_add_sync(full_warp, static_cast<int>(near));
    __syncthreads();
  }
  constexpr int words = T::rows * T::cols / T::threads;  // of a warp's share of the marks
  static_assert(words <= 32);
  const unsigned mine = lane < words ? shared.marks[tid / 32 * words + lane] : 0;
  for (unsigned owners = __ballot_sync(full_warp, mine != 0); owners != 0; owners &= owners - 1) {
    const int owner = __ffs(static_cast<int>(owners)) - 1;
    for (unsigned marks = __shfl_sync(full_warp, mine, owner); marks != 0; marks &= marks - 1) {
      const int output = 32 * (tid / 32 * words + owner) + __ffs(static_cast<int>(marks)) - 1;
      const int r = output / T::cols;
      const int c = output % T::cols;
      const tier by = repair_output<Format, Scaled>(p, at, is_dense ? tier::exact : p.first_tier, batch, row0 + r,
                                                    col0 + c, shared.norm[r] * shared.norm[T::rows + c],
                                                    shared.lsb[r] + shared.lsb[T::rows + c]);
      ++(by == tier::exact ? exact : near);
    }
  }
  if (lane == 0) {
    count_elements(counters, tier::double_double, near);
    count_elements(counters, tier::exact, exact);
  }
}

template <class T>
void launch(const product& p, const product_cut& cut, const job& j) {
  constexpr tile_size size = tile_sizes[T::slices == 1 ? square_tiles : small_tiles];
  static_assert(T::rows == size.rows && T::cols == size.cols && T::slices == size.slices);
  static_assert(sizeof(tile_memory<T>) <= size.shared_bytes);
  const auto reach_of = [](const operand_source& s) {
    const auto size = [](std::int64_t x) { return x < 0 ? -x : x; };
    const bool k_fast = size(s.k_stride) <= size(s.row_stride);
    const std::int64_t along = k_fast ? s.k_stride : s.row_stride;
    const std::int64_t across = k_fast ? s.row_stride : s.k_stride;
    bool packed =
        along == 1 && across % 4 == 0 && reinterpret_cast<std::uintptr_t>(s.data) % (4 * size_of(s.type)) == 0;
    for (int d = 0; d < s.batch.rank; ++d) packed = packed && s.batch.stride[0][d] % 4 == 0;
    return reach{k_fast, packed};
  };
  const tiling how{reach_of(p.source_a), reach_of(p.source_b), cut.steps,
                   std::countr_zero(static_cast<unsigned>(cut.parts)), cut.height};
  const std::int64_t tiles = ceil_div(p.m, T::rows) * ceil_div(p.n, T::cols) * p.batches;
  with_kernels(p, [&]<class Format, bool Scaled>() {
    launch_in_clusters<tile_kernel<T, Format, Scaled>>(j, p.choice.ratios != nullptr, tiles * cut.parts, cut.parts,
                                                       T::threads, sizeof(tile_memory<T>), p, how, j.counters);
  });
}

}  // namespace

void launch_tiles(const product& p, const product_cut& cut, const job& j) {
  switch (cut.tile) {
    case square_tiles:
      return launch<tile_shape<2, 2, 1, 2, 4>>(p, cut, j);
    case thin_tiles:
      return launch_thin(p, cut, j);
    default:
      return launch<tile_shape<1, 1, 4, 2, 4>>(p, cut, j);
  }
}

}  // namespace repdl::cuda
