// The product by residues: for one modulus after the other a tile's sums of 8-bit products, whose residues are added up as fractions
// (librepdl/num/residues.hpp), and then the rounding test. For compute capability 9.0 alone (wgmma): compiled for 9.0a.
//
// Two warpgroups have 64 rows of a tile of 128 x 128 each; a third one, of which a thread does the work, copies panels of 128 terms ahead of them. Per thread
// 64 sums and 64 fractions. Copies take as long as products: a pair of blocks, one below the other, reads the columns once, half each, and both get
// both halves. Where tiles are few, 2 or 4 blocks share one, each for some of the moduli, and add up their fractions in the end.
#include "backends/cuda/core/cluster.cuh"
#include "backends/cuda/product/launch_next.cuh"
#include "backends/cuda/product/residues.hpp"
#include "librepdl/num/sums.hpp"
#include "librepdl/ops/sums/scaled_sum.hpp"

namespace repdl::cuda {
namespace {

constexpr int panel_bytes = residue_panel * residue_panel;
constexpr int stages = 6;
constexpr int workers = 256;
constexpr int threads = workers + 128;
constexpr int lane_outputs = 64;  // of a thread

// What the test needs of a warpgroup's lines, in shared memory.
struct known_line {
  double unit;            // 2^-shift
  double norm, residual;  // times 2^shift
};
struct known_lines {
  known_line rows[residue_panel / 2];
  known_line columns[residue_panel];
};

struct shared_layout {
  std::int8_t panels[stages][2][panel_bytes];  // of a, of b
  std::uint64_t full[stages], empty[stages];   // barriers
  num::residue_weight weights[num::most_moduli];
  known_lines lines[2];  // of each warpgroup
};
constexpr std::size_t shared_bytes = sizeof(shared_layout) + 1024;  // panels begin at multiples of 1024

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

__device__ unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__device__ void make_barrier(std::uint64_t& b, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&b)), "r"(arrivals) : "memory");
}
__device__ void expect_bytes(std::uint64_t& b, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&b)), "r"(bytes)
               : "memory");
}
__device__ void wait_for(std::uint64_t& b, unsigned parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}\n" ::
          "r"(shared_address(&b)),
      "r"(parity)
      : "memory");
}
// At the barrier of a block of the cluster.
__device__ void arrive_at(std::uint64_t& b, unsigned block) {
  asm volatile(
      "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\nmbarrier.arrive.shared::cluster.b64 _, "
      "[there];\n}\n" ::"r"(shared_address(&b)),
      "r"(block)
      : "memory");
}
__device__ void copy_bytes(void* to, const void* from, int bytes, std::uint64_t& b) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(&b))
               : "memory");
}
// To the same place of both blocks of a pair.
__device__ void copy_bytes_to_both(void* to, const void* from, int bytes, std::uint64_t& b) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], "
      "%4;" ::"r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(&b)), "h"(static_cast<std::uint16_t>(3))
      : "memory");
}
__device__ std::uint64_t load_from_block(unsigned at, unsigned block) {
  std::uint64_t x;
  asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %1, %2;\nld.shared::cluster.u64 %0, [there];\n}\n"
               : "=l"(x)
               : "r"(at), "r"(block)
               : "memory");
  return x;
}

// Of a matrix in shared memory: rows of 128 bytes, eight of them in 1024, 16-byte units at 16 (place ^ row % 8).
__device__ std::uint64_t descriptor(const void* p) {
  return (shared_address(p) & 0x3ffff) >> 4 | std::uint64_t{1} << 16 | std::uint64_t{64} << 32 | std::uint64_t{1} << 62;
}
// d (64 x 128) = a (64 x 32) b (128 x 32)' + d, or without d; a warpgroup. Lane l of warp w has d(16 w + l / 4 + 8 h, 8 j + l % 4 * 2 + i) in d[4 j + 2 h + i].
__device__ __forceinline__ void multiply_add(int (&d)[lane_outputs], std::uint64_t a, std::uint64_t b, bool adds) {
  asm volatile(
      "{\n.reg .pred adds;\nsetp.ne.b32 adds, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
      "}, %64, %65, adds;\n}\n"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]), "+r"(d[5]), "+r"(d[6]), "+r"(d[7]), "+r"(d[8]),
        "+r"(d[9]), "+r"(d[10]), "+r"(d[11]), "+r"(d[12]), "+r"(d[13]), "+r"(d[14]), "+r"(d[15]), "+r"(d[16]),
        "+r"(d[17]), "+r"(d[18]), "+r"(d[19]), "+r"(d[20]), "+r"(d[21]), "+r"(d[22]), "+r"(d[23]), "+r"(d[24]),
        "+r"(d[25]), "+r"(d[26]), "+r"(d[27]), "+r"(d[28]), "+r"(d[29]), "+r"(d[30]), "+r"(d[31]), "+r"(d[32]),
        "+r"(d[33]), "+r"(d[34]), "+r"(d[35]), "+r"(d[36]), "+r"(d[37]), "+r"(d[38]), "+r"(d[39]), "+r"(d[40]),
        "+r"(d[41]), "+r"(d[42]), "+r"(d[43]), "+r"(d[44]), "+r"(d[45]), "+r"(d[46]), "+r"(d[47]), "+r"(d[48]),
        "+r"(d[49]), "+r"(d[50]), "+r"(d[51]), "+r"(d[52]), "+r"(d[53]), "+r"(d[54]), "+r"(d[55]), "+r"(d[56]),
        "+r"(d[57]), "+r"(d[58]), "+r"(d[59]), "+r"(d[60]), "+r"(d[61]), "+r"(d[62]), "+r"(d[63])
      : "l"(a), "l"(b), "r"(static_cast<int>(adds)));
}
// The sums are not touched before this, nor after it while products are added.
__device__ __forceinline__ void keep_in_order(int (&d)[lane_outputs]) {
#pragma unroll
  for (int i = 0; i < lane_outputs; ++i) asm volatile("" : "+r"(d[i])::"memory");
}

// Tiles in an order in which blocks that run at the same time share panels: eight tile rows at a time.
struct tile_place {
  std::int64_t batch;
  int row, col;
  __device__ tile_place(int index, int rows, int cols) {
    const int each = rows * cols;
    batch = index / each;
    index -= static_cast<int>(batch) * each;
    const int group = index / (8 * cols);
    const int height = min(rows - group * 8, 8);
    index -= group * 8 * cols;
    row = group * 8 + index % height;
    col = index / height;
  }
};

// A norm is 1 at least, for what is not finite: there 2^200 stands for both, so that every width with it is beyond all fractions, and is a number.
__device__ known_line known_of(const residue_lines& lines, std::int64_t line) {
  const double norm = lines.norm(line);
  const double residual = lines.residual(line);
  const int shift = num::residue_shift(lines.limit, norm);
  const double unit = num::power_of_two(-shift);
  if (!(norm < num::infinity && residual < num::infinity)) return {unit, 0x1p200, 0x1p200};
  const double scale = num::power_of_two(shift);
  return {unit, fmax(norm * scale, 1.0), residual * scale};
}

// A fraction as a number, rounded once: both halves are exact. (The instruction for it takes four times as long as an addition.)
__device__ double number_of(std::uint64_t fraction) {
  const double low = __hiloint2double(0x43300000, static_cast<int>(static_cast<unsigned>(fraction)));
  const double high =
      __hiloint2double(0x45300000, static_cast<int>(static_cast<unsigned>(fraction >> 32) ^ 0x80000000u));
  return (high - (0x1p84 + 0x1p63 + 0x1p52)) + low;
}

// Outputs: most are decided by a short test, without branches; what that leaves, and whatever has a bias or factors, goes the long way.
template <class T>
struct finisher {
  const residue_product& g;
  const std::int64_t batch;
  const std::int64_t line_a, line_b;  // of the piece's first row and column, among all lines
  T* const out;                       // likewise
  const bool is_plain;
  const bool
      in_pairs;  // a row's outputs can be written two at a time, whether decided or not: there is no bias, which might lie there

  __device__ finisher(const residue_product& r, std::int64_t b)
      : g(r),
        batch(b),
        line_a((r.a.source.batches == 1 ? 0 : b) * r.a.source.rows + r.rows.first),
        line_b((r.b.source.batches == 1 ? 0 : b) * r.b.source.rows + r.columns.first),
        out(batch_pointers<T>(r.p, b).out + r.rows.first * r.p.out_row + r.columns.first * r.p.out_col),
        is_plain(!r.p.is_scaled && r.p.bias == nullptr && r.p.first_tier <= tier::binary64),
        in_pairs(is_plain && r.p.out_col == 1 && r.p.out_row % 2 == 0 &&
                 reinterpret_cast<std::uintptr_t>(out) % (2 * sizeof(T)) == 0) {}

  // Outputs (row, col), (row, col + 1), (row + 8, col), (row + 8, col + 1), and the four that are 8 columns further: those in `inside`. `width`, `unit`: of the
  // two rows, the unit times that of the system. Both ends round to the same bits: returns the outputs of which they do not, for finish_slowly.
  [[nodiscard]] __device__ unsigned finish(std::int64_t row, std::int64_t col, const std::uint64_t (&fraction)[8],
                                           unsigned inside, const num::fraction_width (&width)[2],
                                           const double (&unit)[2], const known_line* columns) {
    T low[8];
    unsigned done = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int r = i / 2 % 2;
      const known_line& column = columns[i / 4 * 8 + i % 2];
      const double d = number_of(fraction[i]);
      const double w = width[r].with(column.norm, column.residual);
      const double u = unit[r] * column.unit;
      low[i] = num::rounded<T>((d - w) * u);
      const T high = num::rounded<T>((d + w) * u);
      done |= num::to_bits(low[i]) == num::to_bits(high) ? 1u << i : 0u;
    }
    done &= inside;
    T* const at = out + row * g.p.out_row + col * g.p.out_col;
    if (in_pairs && inside == 0xff) {
#pragma unroll
      for (int i = 0; i < 8; i += 2) {
        alignas(2 * sizeof(T)) const T pair[2] = {low[i], low[i + 1]};
        using word = std::conditional_t<sizeof(T) == 4, std::uint64_t, std::uint32_t>;
        *reinterpret_cast<word*>(at + (i / 2 % 2 * 8) * g.p.out_row + i / 4 * 8) = *reinterpret_cast<const word*>(pair);
      }
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        if ((done >> i & 1) != 0) at[(i / 2 % 2 * 8) * g.p.out_row + (i / 4 * 8 + i % 2) * g.p.out_col] = low[i];
      }
    }
    return inside & ~done;
  }
  // With factors, a bias, or where lines are exact. False: undecided.
  [[nodiscard]] __device__ bool finish_slowly(std::int64_t row, std::int64_t col, std::uint64_t fraction,
                                              const known_line& a, const known_line& b) {
    const product& p = g.p;
    if (is_plain && a.residual > 0 && b.residual > 0) return false;  // nothing more is known
    if (p.first_tier > tier::binary64) return false;
    const auto sum = num::value_of_fraction(static_cast<std::int64_t>(fraction), g.a.lines[line_a + row],
                                            g.b.lines[line_b + col], g.system.unit, g.system.count);
    const T* const bias = batch_pointers<T>(p, batch).bias;
    const double c = bias == nullptr
                         ? 0.0
                         : num::widen(bias[(g.rows.first + row) * p.bias_row + (g.columns.first + col) * p.bias_col]);
    double s = sum.value;
    double e = sum.error;
    if (p.is_scaled) {
      const auto v = num::scaled_sum(p.alpha, p.beta, s, e, c);
      s = v.value;
      e = v.error;
    } else if (bias != nullptr) {
      // t = S + c up to the error of s and of the addition; (C) wants u |t| beside.
      const num::dd t = num::two_sum(s, c);
      e = e == 0 && t.lo == 0 ? 0.0 : e + (num::magnitude_of(t.lo) + 0x1p-51 * num::magnitude_of(t.hi));
      s = t.hi;
    }
    const num::decided_value<T> result = num::certify<T>(s, e);
    if (!result.decided || !(sum.error < num::infinity)) return false;
    out[row * p.out_row + col * p.out_col] = result.value;
    return true;
  }
  // Lists a warp's outputs for the repair: those of the lane's bits, whose places `place_of` says.
  template <class F>
  __device__ void leave(std::uint64_t left, const F& place_of) {
    const product& p = g.p;
    const int mine = __popcll(left);
    int before = mine;  // the lane's and those of lanes before it
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const int other = __shfl_up_sync(full_warp, before, distance);
      if (lane_of_thread() >= distance) before += other;
    }
    const int all = __shfl_sync(full_warp, before, 31);
    if (all == 0) return;
    counter first = 0;
    if (lane_of_thread() == 0) first = atomicAdd(p.choice.open, static_cast<counter>(all));
    counter place = __shfl_sync(full_warp, first, 0) + static_cast<counter>(before - mine);
    for (; left != 0; left &= left - 1, ++place) {
      std::int64_t row;
      std::int64_t col;
      place_of(__ffsll(static_cast<long long>(left)) - 1, row, col);
      row += batch * p.m + g.rows.first;
      col += g.columns.first;
      if (place < p.choice.few) p.list[place] = {static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(col)};
    }
  }
};

// T: of the output. Blocks: of a cluster. Paired: they have neighbouring tiles of rows; else they share a tile.
template <class T, int Blocks, bool Paired>
__device__ void multiply_tiles(const residue_product& g) {
  extern __shared__ __align__(1024) unsigned char raw[];
  auto& shared = *reinterpret_cast<shared_layout*>(raw + (1024 - shared_address(raw) % 1024) % 1024);
  constexpr int sharing = Paired ? 1 : Blocks;  // of a tile
  const int tid = static_cast<int>(threadIdx.x);
  unsigned block = 0;  // of the cluster
  if (Blocks > 1) asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(block));
  if (tid == 0) {
    for (int i = 0; i < stages; ++i) {
      make_barrier(shared.full[i], 1);
      make_barrier(shared.empty[i], Paired ? 4 : 2);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#pragma unroll
    for (int i = 0; i < num::most_moduli; ++i) shared.weights[i] = g.system.of[i];
  }
  __syncthreads();
  if (Blocks > 1) meet_cluster();

  const int k_panels = static_cast<int>(g.a.k_panels);
  const int count = g.system.count;
  constexpr int high = Paired ? 2 : 1;
  const int row_units = static_cast<int>((g.rows.lines + high * residue_panel - 1) / (high * residue_panel));
  const int col_tiles = static_cast<int>((g.columns.lines + residue_panel - 1) / residue_panel);
  const int units = row_units * col_tiles * static_cast<int>(g.p.batches);
  const int first_unit = static_cast<int>(blockIdx.x) / Blocks;
  const int step = static_cast<int>(gridDim.x) / Blocks;
  const int first_modulus = sharing > 1 ? static_cast<int>(block) : 0;
  const auto tile_of = [&](int unit) {
    tile_place t(unit, row_units, col_tiles);
    if (Paired) t.row = 2 * t.row + static_cast<int>(block);
    return t;
  };

  if (tid >= workers) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (tid == workers) {
      const std::int64_t plane_a = g.rows.panels * k_panels * panel_bytes;
      const std::int64_t plane_b = g.columns.panels * k_panels * panel_bytes;
      int slot = 0;
      unsigned phase = 1;
      for (int unit = first_unit; unit < units; unit += step) {
        const tile_place t = tile_of(unit);
        const std::int8_t* from_a = g.a.planes + (g.a.source.batches == 1 ? 0 : t.batch) * count * plane_a +
                                    std::int64_t{t.row} * k_panels * panel_bytes + first_modulus * plane_a;
        const std::int8_t* from_b = g.b.planes + (g.b.source.batches == 1 ? 0 : t.batch) * count * plane_b +
                                    std::int64_t{t.col} * k_panels * panel_bytes + first_modulus * plane_b;
        for (int q = first_modulus; q < count; q += sharing) {
          for (int k = 0; k < k_panels; ++k) {
            wait_for(shared.empty[slot], phase);
            expect_bytes(shared.full[slot], 2 * panel_bytes);
            copy_bytes(shared.panels[slot][0], from_a + std::int64_t{k} * panel_bytes, panel_bytes, shared.full[slot]);
            if (Paired) {
              const int half = static_cast<int>(block) * (panel_bytes / 2);
              copy_bytes_to_both(shared.panels[slot][1] + half, from_b + std::int64_t{k} * panel_bytes + half,
                                 panel_bytes / 2, shared.full[slot]);
            } else {
              copy_bytes(shared.panels[slot][1], from_b + std::int64_t{k} * panel_bytes, panel_bytes,
                         shared.full[slot]);
            }
            if (++slot == stages) slot = 0, phase ^= 1;
          }
          from_a += sharing * plane_a;
          from_b += sharing * plane_b;
        }
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    const int group = tid / 128;
    const int in_group = tid % 128;
    const std::uint64_t panels = descriptor(shared.panels);
    // A slot is done with: whoever copies into it may.
    const auto release = [&](int slot) {
      if (in_group < (Paired ? 2 : 1)) arrive_at(shared.empty[slot], Paired ? static_cast<unsigned>(in_group) : block);
    };
    int slot = 0;
    unsigned phase = 0;
    for (int unit = first_unit; unit < units; unit += step) {
      int sum[lane_outputs];
      std::uint64_t fraction[lane_outputs];
#pragma unroll
      for (int i = 0; i < lane_outputs; ++i) fraction[i] = 0;
      for (int q = first_modulus; q < count; q += sharing) {
        int former = -1;
        for (int k = 0; k < k_panels; ++k) {
          wait_for(shared.full[slot], phase);
          const std::uint64_t a =
              panels + static_cast<std::uint64_t>((slot * 2 * panel_bytes + group * (panel_bytes / 2)) / 16);
          const std::uint64_t b = panels + static_cast<std::uint64_t>((slot * 2 + 1) * (panel_bytes / 16));
          keep_in_order(sum);
          asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
          for (int s = 0; s < 4; ++s) multiply_add(sum, a + 2 * s, b + 2 * s, k != 0 || s != 0);
          asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
          if (former >= 0) {
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            release(former);
          }
          former = slot;
          if (++slot == stages) slot = 0, phase ^= 1;
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        keep_in_order(sum);
        release(former);
        const num::residue_weight w = shared.weights[q];
#pragma unroll
        for (int i = 0; i < lane_outputs; ++i) {
          const int rest = sum[i] + __mulhi(sum[i], w.reciprocal) * w.negative;
          fraction[i] += static_cast<std::uint64_t>(std::int64_t{rest} * w.low) +
                         (static_cast<std::uint64_t>(static_cast<unsigned>(rest) * w.high) << 32);
        }
      }
      // What is known of the tile's lines, once the warpgroup is done with those of the tile before.
      const tile_place t = tile_of(unit);
      const auto meet_warpgroup = [&] { asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory"); };
      known_lines& known = shared.lines[group];
      const std::int64_t rows_left = g.rows.lines - (std::int64_t{t.row} * residue_panel + group * 64);
      const std::int64_t columns_left = g.columns.lines - std::int64_t{t.col} * residue_panel;
      meet_warpgroup();
      if (in_group < columns_left) {
        const std::int64_t line = (g.b.source.batches == 1 ? 0 : t.batch) * g.b.source.rows + g.columns.first +
                                  std::int64_t{t.col} * residue_panel + in_group;
        known.columns[in_group] = known_of(g.b.lines, line);
      }
      if (in_group < 64 && in_group < rows_left) {
        const std::int64_t line = (g.a.source.batches == 1 ? 0 : t.batch) * g.a.source.rows + g.rows.first +
                                  std::int64_t{t.row} * residue_panel + group * 64 + in_group;
        known.rows[in_group] = known_of(g.a.lines, line);
      }
      meet_warpgroup();
      const int row_in_group = in_group / 32 * 16 + in_group % 32 / 4;
      const int col_in_tile = in_group % 4 * 2;
      const std::int64_t row0 = std::int64_t{t.row} * residue_panel + group * 64 + row_in_group;
      const std::int64_t col0 = std::int64_t{t.col} * residue_panel + col_in_tile;
      finisher<T> f(g, t.batch);
      const known_line* const columns = known.columns + col_in_tile;
      const auto width_of = [&](int r) {
        const known_line& x = known.rows[row_in_group + 8 * r];
        num::fraction_width w(x.norm, x.residual, g.system.unit, count);
        if (!f.is_plain) w.least = num::infinity;
        return w;
      };
      const num::fraction_width width[2] = {width_of(0), width_of(1)};
      const double unit_of[2] = {known.rows[row_in_group].unit * g.system.unit,
                                 known.rows[row_in_group + 8].unit * g.system.unit};
      std::uint64_t left = 0;  // outputs, whose fractions are kept in memory
      std::uint64_t kept[lane_outputs];
      const auto finish_eight = [&](int first, const std::uint64_t(&eight)[8]) {
        unsigned inside = 0xff;
        if (rows_left < 64 || columns_left < residue_panel) {
#pragma unroll
          for (int i = 0; i < 8; ++i) {
            const bool is =
                row_in_group + i / 2 % 2 * 8 < rows_left && col_in_tile + first * 2 + i / 4 * 8 + i % 2 < columns_left;
            inside &= is ? 0xffu : ~(1u << i);
          }
        }
        const unsigned open = f.finish(row0, col0 + first * 2, eight, inside, width, unit_of, columns + first * 2);
        if (open == 0) return;
        left |= std::uint64_t{open} << first;
#pragma unroll
        for (int i = 0; i < 8; ++i) kept[first + i] = eight[i];
      };
      if (sharing == 1) {
#pragma unroll
        for (int first = 0; first < lane_outputs; first += 8) {
          std::uint64_t eight[8];
#pragma unroll
          for (int i = 0; i < 8; ++i) eight[i] = fraction[first + i];
          finish_eight(first, eight);
        }
      } else {  // the panels' memory has the fractions of all blocks, and each of them finishes a part of the outputs
        auto* const mine = reinterpret_cast<std::uint64_t*>(shared.panels) + tid;
        asm volatile("bar.sync 3, 256;" ::: "memory");
#pragma unroll
        for (int i = 0; i < lane_outputs; ++i) mine[i * workers] = fraction[i];
        meet_cluster();
#pragma unroll 1
        for (int n = 0; n < lane_outputs / sharing; n += 8) {
          const int first = static_cast<int>(block) * (lane_outputs / sharing) + n;
          std::uint64_t total[8] = {};
#pragma unroll
          for (unsigned other = 0; other < sharing; ++other) {
#pragma unroll
            for (int i = 0; i < 8; ++i)
              total[i] += load_from_block(shared_address(mine + (first + i) * workers), other);
          }
          finish_eight(first, total);
        }
      }
      const auto row_of = [](int i) { return i / 2 % 2 * 8; };
      const auto col_of = [](int i) { return i / 4 * 8 + i % 2; };
      for (std::uint64_t rest = left; rest != 0; rest &= rest - 1) {
        const int i = __ffsll(static_cast<long long>(rest)) - 1;
        if (f.finish_slowly(row0 + row_of(i), col0 + col_of(i), kept[i], known.rows[row_in_group + row_of(i)],
                            columns[col_of(i)])) {
          left &= ~(std::uint64_t{1} << i);
        }
      }
      f.leave(left, [&](int i, std::int64_t& row, std::int64_t& col) {
        row = row0 + row_of(i);
        col = col0 + col_of(i);
      });
    }
  }
  if (sharing > 1 && tid >= workers) meet_cluster();
  // No block ends while another one reads its memory, or copies into it.
  if (Blocks > 1) {
    __syncthreads();
    meet_cluster();
  }
}

#else

template <class T, int Blocks, bool Paired>
__device__ void multiply_tiles(const residue_product&) {}

#endif

// A cluster has one tile where its blocks share it.
template <class T, int Blocks, bool Paired>
__global__ void __cluster_dims__(Blocks, 1, 1) __launch_bounds__(threads, 1)
    residue_kernel(const __grid_constant__ residue_product g) {
  wait_for_former();
  if (g.p.choice.goes_by_residues()) multiply_tiles<T, Blocks, Paired>(g);
}

}  // namespace

void launch_residues(const residue_product& g, const residue_cut& cut, const job& j) {
  const std::int64_t cols = ceil_div(g.columns.lines, residue_panel) * g.p.batches;
  const auto launch = [&]<int Blocks, bool Paired>() {
    const std::int64_t clusters = ceil_div(g.rows.lines, (Paired ? 2 : 1) * residue_panel) * cols;
    const std::int64_t most =
        Blocks > 1 && !Paired ? clusters : std::max<std::int64_t>(1, j.device.multiprocessors / Blocks);
    ops::for_each_format<ops::NARROW>([&]<class T>() {
      if (dtype_of<T> != g.p.type) return;
      launch_next<residue_kernel<T, Blocks, Paired>>(j, std::min(clusters, most) * Blocks, threads, shared_bytes, g);
    });
  };
  if (cut.shared == 4) {
    launch.template operator()<4, false>();
  } else if (cut.shared == 2) {
    launch.template operator()<2, false>();
  } else {
    launch.template operator()<2, true>();
  }
}

}  // namespace repdl::cuda
