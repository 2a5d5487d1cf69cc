// Operands of a product by residues: lines' norms, planes of residues, what rounding took.
#include "backends/cuda/core/launch.cuh"
#include "backends/cuda/product/residues.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = 256;
constexpr int group_lines = 32;  // of a block
constexpr int chunk = 16;        // terms that a thread converts at a time
constexpr int chunks = residue_panel / chunk;
static_assert(threads == group_lines * chunks);

// At least the norm: N additions of exact squares fall short by N u at most, N < 2^17.
__device__ inline double norm_of(double squares) { return num::sqrt(squares) * (1 + 0x1p-30); }

// A block's part of the lines and panels of k.
struct share {
  std::int64_t groups, parts, items;
  __device__ share(std::int64_t lines, std::int64_t batches, std::int64_t p)
      : groups((lines + group_lines - 1) / group_lines), parts(p), items(groups * batches * p) {}
};
struct share_item {
  std::int64_t line0, batch, part;
  __device__ share_item(const share& s, std::int64_t item)
      : line0(item % s.groups * group_lines), batch(item / s.groups / s.parts), part(item / s.groups % s.parts) {}
};

// Where operands lie along their terms a warp has a line after the other; else its lanes have a line each.
template <class T>
__global__ void __launch_bounds__(threads) squares_kernel(const residue_operand o, bool k_fast, std::int64_t parts) {
  __shared__ lane_of_line seen_by[threads / 32][group_lines];
  const operand_source& s = o.source;
  const share all(s.rows, s.batches, parts);
  const int lane = lane_of_thread();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  for (std::int64_t item = blockIdx.x; item < all.items; item += gridDim.x) {
    const share_item at(all, item);
    const T* const from = batch_of<T>(s, at.batch);
    const std::int64_t begin = (s.k * at.part / parts + 3) / 4 * 4;
    const std::int64_t end = at.part + 1 == parts ? s.k : (s.k * (at.part + 1) / parts + 3) / 4 * 4;
    const auto add_to_line = [&](std::int64_t line, const lane_of_line& seen) {
      const std::int64_t i = at.batch * s.rows + line;
      if (seen.squares != 0) atomicAdd(o.squares + i, seen.squares);
      if (!seen.lattice.has_zeros_only()) atomicMax(o.lattice + i, static_cast<unsigned>(1024 - seen.lattice.lsb()));
    };
    if (k_fast) {
      for (int r = warp; r < group_lines; r += threads / 32) {
        const std::int64_t line = at.line0 + r;
        if (line >= s.rows) break;
        const T* const row = from + line * s.row_stride;
        lane_of_line seen;
        std::int64_t k = begin;
        if constexpr (sizeof(T) == 4) {
          if (o.packed) {
#pragma unroll 2
            for (; k + 128 <= end; k += 128) {
              const float4 v = *reinterpret_cast<const float4*>(row + k + 4 * lane);
              seen.add(v.x);
              seen.add(v.y);
              seen.add(v.z);
              seen.add(v.w);
            }
          }
        }
        for (k += lane; k < end; k += 32) seen.add(num::widen_to_float(row[k * s.k_stride]));
        summary of_line = seen.finish();
#pragma unroll
        for (int distance = 16; distance >= 1; distance /= 2) of_line.merge_lanes(distance);
        if (lane == 0) add_to_line(line, {of_line.squares, of_line.lattice});
      }
    } else {
      lane_of_line seen;
      const std::int64_t line = at.line0 + lane;
      if (line < s.rows) {
        const T* const row = from + line * s.row_stride;
#pragma unroll 4
        for (std::int64_t k = begin + warp; k < end; k += threads / 32)
          seen.add(num::widen_to_float(row[k * s.k_stride]));
      }
      __syncthreads();
      seen_by[warp][lane] = seen;
      __syncthreads();
      if (warp == 0 && line < s.rows) {
        for (int w = 1; w < threads / 32; ++w) {
          seen.squares += seen_by[w][lane].squares;
          seen.lattice.merge(seen_by[w][lane].lattice);
        }
        add_to_line(line, seen);
      }
    }
  }
}

// Residues modulo M of integers that are known modulo a multiple of it: w + 128, within 2^24 of 0. floor(2^32 / p) + 1 gives the quotient of numbers below 2^32 / p, of
// others, negative ones, it may be 1 too small where p divides them: then p comes out, for which a byte has room, less 128.
template <int M>
__device__ void write_plane(const int (&w)[chunk], std::int8_t* to) {
  constexpr int p = num::moduli.at[M];
  constexpr int reciprocal = static_cast<int>(((std::uint64_t{1} << 32) + p - 1) / p);
  unsigned out[chunk / 4];
#pragma unroll
  for (int j = 0; j < chunk / 4; ++j) {
    unsigned b[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) b[i] = static_cast<unsigned>(w[4 * j + i] - __mulhi(w[4 * j + i], reciprocal) * p);
    out[j] = __byte_perm(__byte_perm(b[0], b[1], 0x0040), __byte_perm(b[2], b[3], 0x0040), 0x5410) ^ 0x80808080u;
  }
  *reinterpret_cast<uint4*>(to) = make_uint4(out[0], out[1], out[2], out[3]);
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

template <class T>
__global__ void __launch_bounds__(threads, 2)
    planes_kernel(const residue_operand o, const residue_piece piece, bool k_fast, bool counts, std::int64_t parts) {
  constexpr int line_pitch = chunks * (chunk + 1);  // of numbers in shared memory; every chunk begins in another bank
  __shared__ float tile[group_lines * line_pitch];
  const operand_source& s = o.source;
  const share all(piece.lines, s.batches, parts);
  const int tid = static_cast<int>(threadIdx.x);
  const int r = tid / chunks;
  const int c = tid % chunks;
  const std::int64_t plane = piece.panels * o.k_panels * (residue_panel * residue_panel);
  for (std::int64_t item = blockIdx.x; item < all.items; item += gridDim.x) {
    const share_item at(all, item);
    const T* const from = batch_of<T>(s, at.batch) + piece.first * s.row_stride;
    const std::int64_t line = at.line0 + r;
    const bool inside = line < piece.lines;
    const std::int64_t known = at.batch * s.rows + piece.first + line;
    const int shift = inside ? num::residue_shift(o.limit, norm_of(o.squares[known])) : 0;
    const double scale = num::power_of_two(shift);
    const double back = num::power_of_two(-shift);
    double lost = 0;
    std::int8_t* const to = o.planes + at.batch * o.moduli * plane +
                            (line / residue_panel * o.k_panels * residue_panel + line % residue_panel) * residue_panel +
                            (c ^ static_cast<int>(line & 7)) * chunk;
    for (std::int64_t panel = at.part; panel < o.k_panels; panel += parts) {
      const std::int64_t k0 = panel * residue_panel;
      float x[chunk];
      bool direct = false;
      if constexpr (sizeof(T) == 4) {
        if (o.packed) {
          direct = true;
          const float* const row = from + line * s.row_stride + k0 + c * chunk;
          if (inside && k0 + (c + 1) * chunk <= s.k) {
#pragma unroll
            for (int j = 0; j < chunk / 4; ++j) {
              const float4 v = *reinterpret_cast<const float4*>(row + 4 * j);
              x[4 * j] = v.x;
              x[4 * j + 1] = v.y;
              x[4 * j + 2] = v.z;
              x[4 * j + 3] = v.w;
            }
          } else {
#pragma unroll
            for (int i = 0; i < chunk; ++i) x[i] = inside && k0 + c * chunk + i < s.k ? row[i] : 0.0f;
          }
        }
      }
      if (!direct) {
        __syncthreads();
#pragma unroll 2
        for (int i = 0; i < group_lines * residue_panel / threads; ++i) {
          const int n = i * threads + tid;
          const int l = k_fast ? n / residue_panel : n % 8 + n / (8 * residue_panel) * 8;
          const int k = k_fast ? n % residue_panel : n / 8 % residue_panel;
          const bool there = at.line0 + l < piece.lines && k0 + k < s.k;
          tile[l * line_pitch + k / chunk * (chunk + 1) + k % chunk] =
              there ? num::widen_to_float(from[(at.line0 + l) * s.row_stride + (k0 + k) * s.k_stride]) : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < chunk; ++i) x[i] = tile[r * line_pitch + c * (chunk + 1) + i];
      }
      double a[chunk];
#pragma unroll
      for (int i = 0; i < chunk; ++i) {
        const auto v = static_cast<double>(x[i]);
        a[i] = num::fma(v, scale, 0x1.8p52) - 0x1.8p52;  // rint: below 2^48
        const double rest =
            num::fma(-a[i], back, v);  // exact: a multiple of v's last place, and at most half of 2^-shift
        lost = num::fma(rest, rest, lost);
      }
      if (inside) write_planes<0>(a, o.moduli, to + panel * (residue_panel * residue_panel), plane);
    }
#pragma unroll
    for (int distance = chunks / 2; distance >= 1; distance /= 2) lost += __shfl_xor_sync(full_warp, lost, distance);
    if (counts && c == 0 && inside && lost != 0) atomicAdd(o.squares + o.all_lines() + known, lost);
  }
}

// `counts`: these lines say what the data are like.
__global__ void __launch_bounds__(threads)
    lines_kernel(const residue_operand o, const residue_piece piece, bool counts) {
  __shared__ double of_warp[threads / 32];
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  double ratio = 0;
  if (i < piece.lines * o.source.batches) {
    const std::int64_t known = i / piece.lines * o.source.rows + piece.first + i % piece.lines;
    const double norm = norm_of(o.squares[known]);
    const double residual = norm_of(o.squares[o.all_lines() + known]);
    const unsigned lattice = o.lattice[known];
    o.lines[known] = {norm, residual, num::residue_shift(o.limit, norm),
                      lattice == 0 ? num::no_lsb : 1024 - static_cast<int>(lattice)};
    if (norm > 0 && norm < num::infinity) ratio = residual / norm;
  }
  if (!counts) return;
#pragma unroll
  for (int distance = 16; distance >= 1; distance /= 2) ratio += __shfl_xor_sync(full_warp, ratio, distance);
  if (lane_of_thread() == 0) of_warp[threadIdx.x / 32] = ratio;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 1; w < threads / 32; ++w) ratio += of_warp[w];
  atomicAdd(o.ratio, ratio);
}

bool is_k_fast(const operand_source& s) {
  const auto size = [](std::int64_t x) { return x < 0 ? -x : x; };
  return size(s.k_stride) <= size(s.row_stride);
}

// Parts of k, for enough blocks.
std::int64_t parts_of(std::int64_t lines, const residue_operand& o, const job& j) {
  const std::int64_t wanted = std::int64_t{j.device.multiprocessors} * 16;
  const std::int64_t blocks = ceil_div(lines, group_lines) * o.source.batches;
  return std::clamp<std::int64_t>(wanted / std::max<std::int64_t>(blocks, 1), 1, o.k_panels);
}

template <class F>
void with_format(const operand_source& s, const F& f) {
  ops::for_each_format<ops::NARROW>([&]<class T>() {
    if constexpr (std::is_same_v<T, float>) {
      if (dtype_of<T> == s.type) f.template operator()<T>();
    }
  });
}

}  // namespace

void launch_squares(const residue_operand& o, const job& j) {
  const std::int64_t parts = parts_of(o.source.rows, o, j);
  const std::int64_t blocks = ceil_div(o.source.rows, group_lines) * o.source.batches * parts;
  with_format(o.source, [&]<class T>() {
    launch_kernel<squares_kernel<T>>(j, blocks, threads, 0, o, is_k_fast(o.source), parts);
  });
}

void launch_planes(const residue_operand& o, const residue_piece& piece, bool counts, const job& j) {
  const std::int64_t parts = parts_of(piece.lines, o, j);
  const std::int64_t blocks = ceil_div(piece.lines, group_lines) * o.source.batches * parts;
  with_format(o.source, [&]<class T>() {
    launch_kernel<planes_kernel<T>>(j, blocks, threads, 0, o, piece, is_k_fast(o.source), counts, parts);
  });
}

void launch_lines(const residue_operand& o, const residue_piece& piece, bool counts, const job& j) {
  launch_kernel<lines_kernel>(j, ceil_div(piece.lines * o.source.batches, threads), threads, 0, o, piece, counts);
}

}  // namespace repdl::cuda
