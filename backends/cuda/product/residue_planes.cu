// Operands of a product by residues: lines' norms, planes of residues, what rounding took.
#include "backends/cuda/product/launch_next.cuh"
#include "backends/cuda/product/residues.hpp"

namespace repdl::cuda {
namespace {

constexpr int group_lines = 32;  // of a block
constexpr int square_threads = 256;
constexpr int square_warps = square_threads / 32;
constexpr int chunk = 16;  // terms of a line's panel that a thread has, bytes of a plane that it writes
constexpr int chunks = residue_panel / chunk;
constexpr int plane_threads = group_lines * chunks;
constexpr int blocks_at_once = 2;  // of a multiprocessor

// Of one operand: a block has 32 lines, and some of their panels of terms.
struct work_of_operand {
  residue_operand operand;
  residue_piece piece;
  bool k_fast;  // its terms are nearer to each other than its lines
  bool is_new, chooses;
  unsigned parts;  // of the terms
  unsigned groups;
  unsigned blocks;
};
// Of a launch: the first blocks have a's, the others b's.
struct work_of_both {
  work_of_operand a, b;
};

// What a block has to do.
struct block_place {
  std::int64_t line0, part, batch;

  __device__ block_place(const work_of_operand& w, unsigned block) {
    const unsigned group = block % w.groups;
    const unsigned rest = block / w.groups;
    line0 = std::int64_t{group} * group_lines;
    part = rest % w.parts;
    batch = rest / w.parts;
  }
};

// Two instructions an element: what there is to gain is the time that reading takes.
using lane_of_residue_line = lane_summary<double, common_lattice>;
using residue_summary = line_summary<common_lattice>;

// Where terms lie side by side a warp has a line after the other; else its lanes have a line each.
template <class T>
__device__ __forceinline__ void add_squares(const work_of_operand& w, unsigned block,
                                            lane_of_residue_line (&seen_by)[square_warps][group_lines]) {
  const residue_operand& o = w.operand;
  const operand_source& s = o.source;
  const block_place at(w, block);
  const T* const from = batch_of<T>(s, at.batch);
  const int lane = lane_of_thread();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  constexpr int unit = 16 / sizeof(T);  // numbers that are read at a time
  const auto border = [&](std::int64_t part) { return min(s.k, (s.k * part / w.parts + unit - 1) / unit * unit); };
  const std::int64_t begin = border(at.part);
  const std::int64_t end = border(at.part + 1);
  const auto add_to_line = [&](std::int64_t line, const residue_summary& seen) {
    const std::int64_t i = at.batch * s.rows + line;
    if (seen.lattice.has_zeros_only()) return;
    atomicAdd(o.lines.squares + i, seen.squares);
    atomicMax(o.lines.lattice + i, static_cast<unsigned>(1024 - seen.lattice.lsb()));
  };
  if (w.k_fast) {
    for (int r = warp; r < group_lines; r += square_warps) {
      const std::int64_t line = at.line0 + r;
      if (line >= s.rows) break;
      const T* const row = from + line * s.row_stride;
      lane_of_residue_line seen;
      std::int64_t k = begin;
      if (o.packed) {
#pragma unroll 4
        for (; k + 32 * unit <= end; k += 32 * unit) {
          alignas(16) T v[unit];
          *reinterpret_cast<uint4*>(v) = *reinterpret_cast<const uint4*>(row + k + unit * lane);
#pragma unroll
          for (int i = 0; i < unit; ++i) seen.add(num::widen_to_float(v[i]));
        }
      }
#pragma unroll 4
      for (k += lane; k < end; k += 32) seen.add(num::widen_to_float(row[k * s.k_stride]));
      residue_summary of_line = seen.finish();
#pragma unroll
      for (int distance = 16; distance >= 1; distance /= 2) of_line.merge_lanes(distance);
      if (lane == 0) add_to_line(line, of_line);
    }
  } else {
    lane_of_residue_line seen;
    const std::int64_t line = at.line0 + lane;
    if (line < s.rows) {
      const T* const row = from + line * s.row_stride;
#pragma unroll 8
      for (std::int64_t k = begin + warp; k < end; k += square_warps) {
        seen.add(num::widen_to_float(row[k * s.k_stride]));
      }
    }
    seen_by[warp][lane] = seen;
    __syncthreads();
    if (warp == 0 && line < s.rows) {
      residue_summary total = seen.finish();
      for (int i = 1; i < square_warps; ++i) total.merge(seen_by[i][lane].finish());
      add_to_line(line, total);
    }
  }
}
template <class T>
__global__ void __launch_bounds__(square_threads) squares_kernel(const __grid_constant__ work_of_both both) {
  wait_for_former();
  __shared__ lane_of_residue_line seen_by[square_warps][group_lines];
  if (blockIdx.x < both.a.blocks) {
    add_squares<T>(both.a, blockIdx.x, seen_by);
  } else {
    add_squares<T>(both.b, blockIdx.x - both.a.blocks, seen_by);
  }
}

// Residues modulo M of integers that are known modulo a multiple of it: w + 128, within 2^24 of 0. floor(2^32 / p) + 1 gives the quotient of numbers below 2^32 / p, of
// others, negative ones, it may be 1 too small where p divides them: then p comes out, for which a byte has room, less 128.
template <int M>
__device__ void write_plane(const int (&w)[chunk], std::int8_t* to) {
  constexpr int p = num::moduli.at[M];
  constexpr int reciprocal = static_cast<int>(((std::uint64_t{1} << 32) + p - 1) / p);
  alignas(16) unsigned out[chunk / 4];
#pragma unroll
  for (int j = 0; j < chunk / 4; ++j) {
    unsigned b[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int v = w[4 * j + i];
      b[i] = static_cast<unsigned>(p == 256 ? v : v - __mulhi(v, reciprocal) * p);
    }
    out[j] = __byte_perm(__byte_perm(b[0], b[1], 0x0040), __byte_perm(b[2], b[3], 0x0040), 0x5410) ^ 0x80808080u;
  }
  *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(out);
}
// Of integers below 2^48: binary64 takes the remainder modulo three moduli at once, whose product M is below 2^24: t = rint(a / M) or its neighbour,
// a - t M is exact.
template <int First>
__device__ void write_planes(const double (&a)[chunk], int count, std::int8_t* to, std::int64_t plane) {
  if constexpr (First < num::most_moduli) {
    if (First >= count) return;
    constexpr double M =
        static_cast<double>(num::moduli.at[First]) * num::moduli.at[First + 1] * num::moduli.at[First + 2];
    static_assert(M < 0x1p24);
    int w[chunk];
#pragma unroll
    for (int i = 0; i < chunk; ++i) {
      const double t = num::fma(a[i], 1 / M, 0x1.8p52) - 0x1.8p52;
      w[i] = __double2loint(num::fma(-M, t, a[i]) + (0x1.8p52 + 128));
    }
    write_plane<First>(w, to + plane * First);
    if (First + 1 < count) write_plane<First + 1>(w, to + plane * (First + 1));
    if (First + 2 < count) write_plane<First + 2>(w, to + plane * (First + 2));
    write_planes<First + 3>(a, count, to, plane);
  }
}

// The sums that decide between engines are of normal lines: of others nothing is known.
__device__ double ratio_of(double lost, double squares, std::int64_t parts) {
  return squares > 0 && squares < num::infinity ? num::sqrt(lost / squares / static_cast<double>(parts)) : 0.0;
}

template <class T>
struct converted_lines {
  static constexpr int pitch = residue_panel + 1;  // neighbours are in other banks
  T tile[group_lines * pitch];
  double scale[group_lines], back[group_lines], lost[group_lines];
};

// A thread has a line's chunk: those terms of a panel that let neighbours read 16 bytes each, side by side. Sums know no order
// of terms, and both operands have the same.
template <bool Packed, class T>
__device__ __forceinline__ void convert(const work_of_operand& w, unsigned block, converted_lines<T>& shared) {
  const residue_operand& o = w.operand;
  const operand_source& s = o.source;
  const block_place at(w, block);
  const T* const from = batch_of<T>(s, at.batch) + w.piece.first * s.row_stride;
  const int tid = static_cast<int>(threadIdx.x);
  const int r = tid / chunks;
  const int c = tid % chunks;
  constexpr int unit = 16 / sizeof(T);
  const auto term_of_chunk = [&](int i) { return i / unit * (unit * chunks) + c * unit + i % unit; };
  const std::int64_t line = at.line0 + r;
  const bool inside = line < w.piece.lines;
  const std::int64_t plane = w.piece.panels * o.k_panels * (residue_panel * residue_panel);
  const std::int64_t first_known = at.batch * s.rows + w.piece.first + at.line0;
  std::int8_t* const to = o.planes + at.batch * o.moduli * plane +
                          (line / residue_panel * o.k_panels * residue_panel + line % residue_panel) * residue_panel +
                          (c ^ static_cast<int>(line & 7)) * chunk;
  // Where lines are not packed a thread reads terms of other lines than its own, the first one here, the others a distance apart.
  const int line_read = w.k_fast ? tid / residue_panel : tid % group_lines;
  const int term_read = w.k_fast ? tid % residue_panel : tid / group_lines;
  const int line_step = w.k_fast ? plane_threads / residue_panel : 0;
  const int term_step = w.k_fast ? 0 : plane_threads / group_lines;
  T* const written = shared.tile + line_read * shared.pitch + term_read;
  const auto read = [&](std::int64_t panel, T(&x)[chunk]) {
    const std::int64_t k0 = panel * residue_panel;
    if constexpr (Packed) {
      const T* const row = from + line * s.row_stride + k0;
#pragma unroll
      for (int i = 0; i < chunk; i += unit) {
        const int term = term_of_chunk(i);
        if (inside && k0 + term + unit <= s.k) {
          *reinterpret_cast<uint4*>(x + i) = *reinterpret_cast<const uint4*>(row + term);
        } else {
#pragma unroll
          for (int n = 0; n < unit; ++n) x[i + n] = inside && k0 + term + n < s.k ? row[term + n] : T{};
        }
      }
    } else {
      const std::int64_t lines = w.piece.lines - (at.line0 + line_read);
      const std::int64_t terms = s.k - (k0 + term_read);
      const std::int64_t step = line_step * s.row_stride + term_step * s.k_stride;
      const T* it = from + (at.line0 + line_read) * s.row_stride + (k0 + term_read) * s.k_stride;
#pragma unroll
      for (int i = 0; i < chunk; ++i, it += step) x[i] = i * line_step < lines && i * term_step < terms ? *it : T{};
    }
  };
  alignas(16) T x[chunk];
  read(at.part, x);
  double squares = 0;  // of the line that a thread of the first warp knows
  const bool knows = tid < group_lines && at.line0 + tid < w.piece.lines;
  if (knows) {
    squares = o.lines.squares[first_known + tid];
    const int shift = num::residue_shift(o.lines.limit, residue_lines::norm_of(squares));
    shared.scale[tid] = num::power_of_two(shift);
    shared.back[tid] = num::power_of_two(-shift);
  }
  __syncthreads();
  const double scale = shared.scale[r];
  const double back = shared.back[r];
  double lost = 0;
  for (std::int64_t panel = at.part, next; panel < o.k_panels; panel = next) {
    if constexpr (!Packed) {
#pragma unroll
      for (int i = 0; i < chunk; ++i) written[i * (line_step * shared.pitch + term_step)] = x[i];
      __syncthreads();
#pragma unroll
      for (int i = 0; i < chunk; ++i) x[i] = shared.tile[r * shared.pitch + term_of_chunk(i)];
      if (o.copy != nullptr && w.is_new && inside) {
        T* const copy = static_cast<T*>(o.copy) + ((first_known + r) * o.k_panels + panel) * residue_panel;
#pragma unroll
        for (int i = 0; i < chunk; i += unit) {
          *reinterpret_cast<uint4*>(copy + term_of_chunk(i)) = *reinterpret_cast<const uint4*>(x + i);
        }
      }
    }
    double a[chunk];
#pragma unroll
    for (int i = 0; i < chunk; ++i) {
      const auto v = static_cast<double>(num::widen_to_float(x[i]));
      a[i] = num::fma(v, scale, 0x1.8p52) - 0x1.8p52;  // rint: below 2^48
      const double rest =
          num::fma(-a[i], back, v);  // exact: a multiple of v's last place, and at most half of 2^-shift
      lost = num::fma(rest, rest, lost);
    }
    next = panel + w.parts;
    if (next < o.k_panels) read(next, x);
    if (inside) write_planes<0>(a, o.moduli, to + panel * (residue_panel * residue_panel), plane);
    if (!Packed) __syncthreads();
  }
  if (!w.is_new) return;
#pragma unroll
  for (int distance = chunks / 2; distance >= 1; distance /= 2) lost += __shfl_xor_sync(full_warp, lost, distance);
  if (c == 0) shared.lost[r] = lost;
  __syncthreads();
  if (tid >= group_lines) return;
  lost = knows ? shared.lost[tid] : 0.0;
  if (lost != 0) atomicAdd(o.lines.squares + o.lines.count + first_known + tid, lost);
  if (!w.chooses) return;
  double ratio = knows ? ratio_of(lost, squares, w.parts) : 0.0;
#pragma unroll
  for (int distance = 16; distance >= 1; distance /= 2) ratio += __shfl_xor_sync(full_warp, ratio, distance);
  if (tid == 0 && ratio != 0) atomicAdd(o.ratio, ratio);
}
template <class T>
__device__ void convert_lines(const work_of_operand& w, unsigned block, converted_lines<T>& shared) {
  if (w.operand.packed) {
    convert<true>(w, block, shared);
  } else {
    convert<false>(w, block, shared);
  }
}

template <class T>
__global__ void __launch_bounds__(plane_threads, blocks_at_once)
    planes_kernel(const __grid_constant__ work_of_both both) {
  wait_for_former();
  __shared__ converted_lines<T> shared;
  // Each operand's parameters at places that are known when this is compiled (docs/nvcc-parameter-loop.md).
  if (blockIdx.x < both.a.blocks) {
    convert_lines(both.a, blockIdx.x, shared);
  } else {
    convert_lines(both.b, blockIdx.x - both.a.blocks, shared);
  }
}

bool is_k_fast(const operand_source& s) {
  const auto size = [](std::int64_t x) { return x < 0 ? -x : x; };
  return size(s.k_stride) <= size(s.row_stride);
}

// `least`: panels of a part.
work_of_operand work_of(const conversion& c, std::int64_t least, const job& j) {
  const std::int64_t groups = ceil_div(c.piece.lines, group_lines);
  // Parts of the terms, for enough blocks.
  const std::int64_t wanted = std::int64_t{j.device.multiprocessors} * 8;
  const std::int64_t most = std::clamp<std::int64_t>(
      wanted / std::max<std::int64_t>(groups * c.operand.source.batches, 1), 1, ceil_div(c.operand.k_panels, least));
  const std::int64_t parts =
      ceil_div(c.operand.k_panels, ceil_div(c.operand.k_panels, most));  // of as many panels each
  return {c.operand,
          c.piece,
          is_k_fast(c.operand.source),
          c.is_new,
          c.chooses,
          static_cast<unsigned>(parts),
          static_cast<unsigned>(std::max<std::int64_t>(groups, 1)),
          grid_of(j.what.name(), groups * c.operand.source.batches * parts)};
}

template <class F>
void with_format(const residue_operand& o, const F& f) {
  ops::for_each_format<ops::NARROW>([&]<class T>() {
    if (dtype_of<T> == o.source.type) f.template operator()<T>();
  });
}

}  // namespace

void launch_squares(const residue_operand& a, const residue_operand& b, const job& j) {
  const auto all = [](const residue_operand& o) { return conversion{o, {0, o.source.rows, 0}, true, false}; };
  const work_of_both both{work_of(all(a), 8, j), work_of(all(b), 8, j)};
  with_format(
      a, [&]<class T>() { launch_next<squares_kernel<T>>(j, both.a.blocks + both.b.blocks, square_threads, 0, both); });
}

void launch_planes(const conversion& a, const conversion& b, const job& j) {
  const work_of_both both{work_of(a, 1, j), work_of(b, 1, j)};
  with_format(a.operand, [&]<class T>() {
    launch_next<planes_kernel<T>>(j, both.a.blocks + both.b.blocks, plane_threads, 0, both);
  });
}

}  // namespace repdl::cuda
