// The exact matrix product in binary64 (matmul_tiles.cu) where one operand has 32 lines at most: vectors, the tokens of a decoding step. It is named the thin one here; what counts
// is how fast the other one, the matrix, can be read.
//
// Method: a block has 32 lines of the matrix, a warp 16 of them and one of eight slices of the terms. Their elements go from the caller's memory to the registers of the lanes that
// multiply them, 16 bytes at a time, and each is converted once. So each lane has neighbouring terms of its own: the order of terms in an instruction is a matter of
// taste, and the thin operand's elements, which all warps of a slice share, are laid down in shared memory in that order. Where blocks are few, those of a
// cluster have a part of the terms each.
//
// Error: that of matmul_tiles.cu, H = L + slices + parts for chains of L terms.
#include <bit>
#include <cstring>
#include <utility>

#include "backends/cuda/product/launch_next.cuh"
#include "backends/cuda/product/matmul_share.cuh"
#include "backends/cuda/product/mma.cuh"

namespace repdl::cuda {
namespace {

constexpr int slices = thin_slices;
constexpr int lines = thin_lines;
constexpr int threads = lines / 16 * slices * 32;

// Groups, of eight lines of the thin operand: 1, 2 or 4. Terms that a lane loads at a time, all lanes of a line in a span, a warp in a step, and a block.
constexpr int ahead = 4;  // spans of the matrix that are read ahead
template <class T, int Groups>
struct thin_steps {
  static constexpr int unit = 16 / static_cast<int>(sizeof(T));
  static constexpr int span = 4 * unit;
  static constexpr int spans = ahead / Groups;
  static constexpr int terms = spans * span;
  static constexpr int block_terms = slices * terms;
  // Columns of the thin operand are apart by an odd multiple of 64 bytes: the eight lanes that read at a time have two columns, and 64 bytes of each.
  static constexpr int pitch = terms + 8;  // numbers
  static constexpr int panel = slices * 8 * Groups * pitch;
  static constexpr int sharing = threads / (8 * Groups);  // threads that have a column
  static constexpr int quads = block_terms / 4 / sharing;
  static constexpr int warps = sharing > 32 ? sharing / 32 : 1;  // of a column
  static_assert(quads * 4 * sharing == block_terms);
};

template <class T, int Groups>
struct thin_memory {
  union {
    alignas(16) double panels[2][thin_steps<T, Groups>::panel];
    double sums[slices][8 * Groups][lines];
  };
  line_known parts[slices][lines];
  line_known thin_parts[thin_steps<T, Groups>::warps][8 * Groups];
  double norm[lines + 8 * Groups];
  int lsb[lines + 8 * Groups];
};

// From memory, or zeros. The compiler's own code for it waits for what it read, to choose.
__device__ inline void load_if(bool is_there, const void* from, uint4& x) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.s32 p, %5, 0;\nmov.u32 %0, 0;\nmov.u32 %1, 0;\nmov.u32 %2, 0;\nmov.u32 %3, 0;\n"
      "@p ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
      : "=&r"(x.x), "=&r"(x.y), "=&r"(x.z), "=&r"(x.w)
      : "l"(from), "r"(is_there ? 1 : 0));
}
__device__ inline void load_if(bool is_there, const void* from, uint2& x) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.s32 p, %3, 0;\nmov.u32 %0, 0;\nmov.u32 %1, 0;\n"
      "@p ld.global.nc.v2.u32 {%0, %1}, [%2];\n}"
      : "=&r"(x.x), "=&r"(x.y)
      : "l"(from), "r"(is_there ? 1 : 0));
}

struct thin_tiling {
  std::int64_t steps;  // of all parts
  int log2_parts;      // blocks of a cluster
  std::int64_t height;
};

template <class Format, bool Scaled, int Groups>
__global__ void __launch_bounds__(threads, 1)
    thin_kernel(const __grid_constant__ product p, const __grid_constant__ thin_tiling how, counter* counters) {
  using s = thin_steps<Format, Groups>;
  using memory = thin_memory<Format, Groups>;
  extern __shared__ __align__(128) unsigned char raw[];
  auto& shared = *reinterpret_cast<memory*>(raw);
  __builtin_assume(threadIdx.x < threads);
  const auto tid = static_cast<int>(threadIdx.x);
  const int lane = lane_of_thread();
  const int g = lane / 4;
  const int t = lane % 4;
  const int slice = tid / 32 / (lines / 16);
  const int first_line = tid / 32 % (lines / 16) * 16 + g;  // and the eighth further
  const int part = static_cast<int>(blockIdx.x & ((1u << how.log2_parts) - 1));
  const int parts = 1 << how.log2_parts;
  const auto memory_of = [&](int block) -> const memory& { return block == part ? shared : of_block(shared, block); };
  const unsigned block = blockIdx.x >> how.log2_parts;
  const auto blocks_of_batch = static_cast<unsigned>((p.m + lines - 1) / lines);
  const std::int64_t batch = block / blocks_of_batch;
  const std::int64_t row0 = static_cast<std::int64_t>(block % blocks_of_batch) * lines;
  const std::int64_t first_step = how.steps * part >> how.log2_parts;
  const int steps = static_cast<int>((how.steps * (part + 1) >> how.log2_parts) - first_step);
  const std::int64_t k0 = first_step * s::block_terms;
  const auto terms = static_cast<int>(min(p.k - k0, std::int64_t{1} << 30));  // from k0 on

  // The matrix: a lane's terms of two lines.
  const Format* at_a = batch_of<Format>(p.source_a, batch) + (row0 + first_line) * p.source_a.row_stride + k0 +
                       slice * s::terms + s::unit * t;
  const std::int64_t to_second = 8 * p.source_a.row_stride;
  const bool has[2] = {row0 + first_line < p.m, row0 + first_line + 8 < p.m};
  int left_a = terms - slice * s::terms - s::unit * t;  // a multiple of what is loaded
  uint4 words[ahead][2];
  const auto load = [&](int place) {  // a step's spans, one after the other
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      load_if(has[h] && left_a > 0, at_a + h * to_second, words[place][h]);
    }
    const int forward = place % s::spans == s::spans - 1 ? s::block_terms - (s::spans - 1) * s::span : s::span;
    at_a += forward;
    left_a -= forward;
  };
  lane_summary<float, common_lattice> seen[2];

  // The thin operand, four terms at a time.
  using quad = std::conditional_t<sizeof(Format) == 4, uint4, uint2>;
  const int col = tid / s::sharing;
  const Format* const at_b = batch_of<Format>(p.source_b, batch) + col * p.source_b.row_stride + k0;
  const int left_b = col < p.n ? terms : 0;
  quad loaded[s::quads];
  const auto load_b = [&](int step) {
#pragma unroll
    for (int q = 0; q < s::quads; ++q) {
      const int k = step * s::block_terms + 4 * (tid % s::sharing + q * s::sharing);
      load_if(k < left_b, at_b + k, loaded[q]);
    }
  };
  lane_summary<float, common_lattice> seen_b;
  const auto lay_down = [&](double* panel) {
#pragma unroll
    for (int q = 0; q < s::quads; ++q) {
      // Terms 2 i, 2 i + 1 of lane t of a span are at 8 i + 2 t.
      const int k = 4 * (tid % s::sharing + q * s::sharing);
      const int in_span = k % s::span;
      double* const to = panel + (k / s::terms * (8 * Groups) + col) * s::pitch + k % s::terms / s::span * s::span +
                         in_span / s::unit * 2 + in_span % s::unit / 2 * 8;
      Format x[4];
      memcpy(x, &loaded[q], sizeof(x));
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
        const float y = num::widen_to_float(x[i]);
        const float z = num::widen_to_float(x[i + 1]);
        seen_b.add(y);
        seen_b.add(z);
        *reinterpret_cast<double2*>(to + 4 * i) = make_double2(static_cast<double>(y), static_cast<double>(z));
      }
    }
  };

  double sum[Groups][4] = {};
  load_b(0);
#pragma unroll
  for (int i = 0; i < ahead; ++i) load(i);
  lay_down(shared.panels[0]);
  const auto multiply_step = [&](int step, int first_place) {
    __syncthreads();
    if (step + 1 < steps) load_b(step + 1);
    const double* const panel = shared.panels[step % 2] + (slice * (8 * Groups) + g) * s::pitch + 2 * t;
#pragma unroll
    for (int n = 0; n < s::spans; ++n) {
      const int place = first_place + n;
#pragma unroll
      for (int i = 0; i < s::unit; i += 2) {
        double a[4];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          Format x[s::unit];
          memcpy(x, &words[place][h], sizeof(x));
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            const float y = num::widen_to_float(x[i + e]);
            seen[h].add(y);
            a[2 * e + h] = static_cast<double>(y);
          }
        }
#pragma unroll
        for (int m = 0; m < Groups; ++m) {
          const double2 b = *reinterpret_cast<const double2*>(panel + m * 8 * s::pitch + n * s::span + 4 * i);
          const double both[2] = {b.x, b.y};
          multiply_add(sum[m], a, both);
        }
      }
      load(place);
    }
    if (step + 1 < steps) lay_down(shared.panels[(step + 1) % 2]);
  };
#pragma unroll 1
  for (int step = 0; step < steps; step += Groups) {
#pragma unroll
    for (int i = 0; i < Groups; ++i) {
      if (step + i < steps) multiply_step(step + i, i * s::spans);
    }
  }
  __syncthreads();

  // Sums, and what is known of the lines.
#pragma unroll
  for (int m = 0; m < Groups; ++m) {
#pragma unroll
    for (int i = 0; i < 4; ++i) shared.sums[slice][m * 8 + 2 * t + i % 2][first_line + i / 2 * 8] = sum[m][i];
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    line_known x = seen[h].finish(steps * s::terms);
    x.merge_lanes(1);
    x.merge_lanes(2);
    if (t == 0) shared.parts[slice][first_line + 8 * h] = x;
  }
  {
    line_known x = seen_b.finish(steps * s::block_terms);
#pragma unroll
    for (int distance = min(s::sharing, 32) / 2; distance >= 1; distance /= 2) x.merge_lanes(distance);
    if (tid % min(s::sharing, 32) == 0) shared.thin_parts[tid % s::sharing / 32][col] = x;
  }
  __syncthreads();
  if (parts > 1) meet_cluster();
  constexpr int all_lines = lines + 8 * Groups;
  if (tid < all_lines) {
    line_known x;
    for (int other = 0; other < parts; ++other) {
      const memory& there = memory_of(other);
      if (tid < lines) {
#pragma unroll
        for (int i = 0; i < slices; ++i) x.merge(there.parts[i][tid]);
      } else {
#pragma unroll
        for (int i = 0; i < s::warps; ++i) x.merge(there.thin_parts[i][tid - lines]);
      }
    }
    shared.norm[tid] = norm_of(x);
    shared.lsb[tid] = x.lattice.lsb();
  }
  const bool all_known = __syncthreads_and(tid >= all_lines || shared.norm[min(tid, all_lines - 1)] >= 0) != 0;
  if (!all_known) {
    for (int i = tid / 32; i < all_lines; i += threads / 32) {
      if (shared.norm[i] >= 0) continue;
      const double squares =
          i < lines ? squares_of(p.source_a, batch, row0 + i) : squares_of(p.source_b, batch, i - lines);
      __syncwarp();
      if (lane == 0) shared.norm[i] = num::sqrt(squares);
    }
    __syncthreads();
  }

  // The blocks of a cluster have some of the lines each.
  const batch_pointers<Format> at(p, batch);
  const int own = lines >> how.log2_parts;
  std::int64_t decided = 0;
  std::int64_t near = 0;
  std::int64_t exact = 0;
  for (int first = tid - lane; first < own * 8 * Groups; first += threads) {  // a whole warp
    const int r = part * own + (first + lane) % own;
    const int c = (first + lane) / own;
    const std::int64_t row = row0 + r;
    bool is_open = false;
    if (row < p.m && c < p.n) {
      double total = 0;
      for (int other = 0; other < parts; ++other) {
        const memory& there = memory_of(other);
#pragma unroll
        for (int i = 0; i < slices; ++i) total += there.sums[i][c][r];
      }
      const num::decided_value<Format> result =
          decide<Format, Scaled>(p, total, how.height + 4, shared.norm[r], shared.norm[lines + c],
                                 bias_of(p, at, row, c), [&] { return shared.lsb[r] + shared.lsb[lines + c]; });
      is_open = !result.decided || p.first_tier > tier::binary64;
      if (!is_open) {
        at.out[row * p.out_row + c * p.out_col] = result.value;
        ++decided;
      }
    }
    for (unsigned open = __ballot_sync(full_warp, is_open); open != 0; open &= open - 1) {
      const int owner = __ffs(static_cast<int>(open)) - 1;
      const int its_r = __shfl_sync(full_warp, r, owner);
      const int its_c = __shfl_sync(full_warp, c, owner);
      const tier by = repair_output<Format, Scaled>(p, at, p.first_tier, batch, row0 + its_r, its_c,
                                                    shared.norm[its_r] * shared.norm[lines + its_c],
                                                    shared.lsb[its_r] + shared.lsb[lines + its_c]);
      ++(by == tier::exact ? exact : near);
    }
  }
  if (parts > 1) meet_cluster();  // no block ends while another one reads its memory
  decided = __reduce_add_sync(full_warp, static_cast<int>(decided));
  if (lane == 0) {
    count_elements(counters, tier::binary64, decided);
    count_elements(counters, tier::double_double, near);
    count_elements(counters, tier::exact, exact);
  }
}

template <int Groups>
void launch(const product& p, const product_cut& cut, const job& j) {
  const std::int64_t blocks = ceil_div(p.m, lines) * p.batches * cut.parts;
  with_kernels(p, [&]<class Format, bool Scaled>() {
    static_assert(sizeof(thin_memory<Format, Groups>) <= thin_shared_bytes);
    static_assert(thin_step_terms(sizeof(Format), 8 * Groups) == thin_steps<Format, Groups>::block_terms);
    const thin_tiling how{cut.steps, std::countr_zero(static_cast<unsigned>(cut.parts)), cut.height};
    launch_in_clusters<thin_kernel<Format, Scaled, Groups>>(j, false, blocks, cut.parts, threads,
                                                            sizeof(thin_memory<Format, Groups>), p, how, j.counters);
  });
}

}  // namespace

void launch_thin(product p, const product_cut& cut, const job& j) {
  if (cut.swapped) {
    std::swap(p.source_a, p.source_b);
    std::swap(p.near_a, p.near_b);
    std::swap(p.m, p.n);
    std::swap(p.bias_row, p.bias_col);
    std::swap(p.out_row, p.out_col);
  }
  if (p.n <= 8) return launch<1>(p, cut, j);
  if (p.n <= 16) return launch<2>(p, cut, j);
  launch<4>(p, cut, j);
}

}  // namespace repdl::cuda
