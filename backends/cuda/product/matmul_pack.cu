// Packing of matmul's operands: any strides in, binary64 panels out, with the norm and the lattice of every row.
#include "backends/cuda/product/launch_next.cuh"
#include "backends/cuda/product/matmul.hpp"
#include "backends/cuda/product/mma.cuh"
#include "librepdl/num/certify.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = 256;
constexpr int chunk_k = pack_k;  // of a block's step
constexpr int chunk_panels = chunk_k / panel_k;

struct pack_work {
  packing operand;
  bool k_fast;
  unsigned blocks;  // that pack it
};

// T: of the source. A block packs 64 rows over its share of k. Items: row panel fastest, then split, then batch.
template <class T, bool Second>
__device__ void pack_operand(const pack_work& w, unsigned block, float (&tile)[panel_rows][chunk_k + 1]) {
  const operand_source& s = w.operand.source;
  const operand_panels& to = w.operand.to;
  const int splits = w.operand.splits;
  const bool k_fast = w.k_fast;
  const std::int64_t total = to.row_panels * splits * to.batches;
  const int tid = static_cast<int>(threadIdx.x);
  for (std::int64_t item = block; item < total; item += w.blocks) {
    const std::int64_t row_panel = item % to.row_panels;
    const std::int64_t split = item / to.row_panels % splits;
    const std::int64_t batch = item / to.row_panels / splits;
    const T* const from = batch_of<T>(s, batch);
    const std::int64_t row0 = row_panel * panel_rows;
    const std::int64_t chunks = (to.k_panels + chunk_panels - 1) / chunk_panels;
    const std::int64_t begin = chunks * split / splits;
    const std::int64_t end = chunks * (split + 1) / splits;
    lane_of_line seen;  // of row tid / 4, every fourth group of 16 k's
    for (std::int64_t chunk = begin; chunk < end; ++chunk) {
      const std::int64_t k0 = chunk * chunk_k;
#pragma unroll
      for (int i = 0; i < panel_rows * chunk_k / threads; ++i) {
        const int n = i * threads + tid;
        const int r = k_fast ? n / chunk_k : n % panel_rows;
        const int k = k_fast ? n % chunk_k : n / panel_rows;
        const bool inside = row0 + r < s.rows && k0 + k < s.k;
        tile[r][k] = inside ? num::widen_to_float(from[(row0 + r) * s.row_stride + (k0 + k) * s.k_stride]) : 0.0f;
      }
      __syncthreads();
#pragma unroll
      for (int i = 0; i < panel_k; ++i) seen.add(tile[tid / 4][(tid % 4) * panel_k + i]);
        // Units of two numbers in the order of the panels: a warp writes 512 bytes side by side.
#pragma unroll
      for (int i = 0; i < chunk_panels * 2; ++i) {
        const std::int64_t panel = chunk * chunk_panels + i / 2;
        const int unit = i % 2 * threads + tid;
        const int g = unit % 32 / 4;
        const int k = i / 2 * panel_k + unit % 4;
        const float* const first = Second ? &tile[unit / 64 * 8 + g][k + unit / 32 % 2 * 8]
                                          : &tile[unit / 128 * 16 + g][k + unit / 32 % 4 * 4];
        const float* const other = Second ? first + 4 : first + 8 * (chunk_k + 1);
        if (panel < to.k_panels) {
          double* const out =
              to.data + ((batch * to.row_panels + row_panel) * to.k_panels + panel) * panel_size + 2 * unit;
          *reinterpret_cast<double2*>(out) = make_double2(static_cast<double>(*first), static_cast<double>(*other));
        }
      }
      __syncthreads();
    }
    summary part = seen.finish();
#pragma unroll
    for (int distance = 1; distance <= 2; distance *= 2) part.merge_lanes(distance);
    if (tid % 4 == 0) w.operand.parts[(split * to.batches + batch) * to.padded_rows() + row0 + tid / 4] = part;
  }
}

// Blocks: a's, then b's.
template <class T>
__global__ void __launch_bounds__(threads, 4)
    pack_kernel(const __grid_constant__ pack_work a, const __grid_constant__ pack_work b, const residue_choice choice) {
  wait_for_former();
  if (!choice.wants_panels()) return;
  __shared__ float tile[panel_rows][chunk_k + 1];
  if (blockIdx.x < a.blocks) {
    pack_operand<T, false>(a, blockIdx.x, tile);
  } else {
    pack_operand<T, true>(b, blockIdx.x - a.blocks, tile);
  }
}

__device__ void finish_line(const packing& p, std::int64_t i) {
  const std::int64_t rows = p.to.padded_rows() * p.to.batches;
  summary total;
  for (int split = 0; split < p.splits; ++split) total.merge(p.parts[split * rows + i]);
  p.to.lines.set(i, total);
}
__global__ void __launch_bounds__(threads)
    finish_lines(const __grid_constant__ packing a, const __grid_constant__ packing b, const residue_choice choice) {
  wait_for_former();
  if (!choice.wants_panels()) return;
  const std::int64_t rows_a = a.to.padded_rows() * a.to.batches;
  const std::int64_t rows = rows_a + b.to.padded_rows() * b.to.batches;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; i < rows; i += step) {
    if (i < rows_a) {
      finish_line(a, i);
    } else {
      finish_line(b, i - rows_a);
    }
  }
}

}  // namespace

operand_source source_of(const plan::product_plan& p, bool second, const operand_cut& cut) {
  const plan::product_plan::operand<const void>& m = second ? p.b : p.a;
  operand_source s{};
  s.data = m.begin();
  s.type = m.type;
  s.k = p.term.count;
  s.rows = (second ? p.column : p.row).count;
  s.row_panels = cut.row_panels;
  s.row_stride = m.outer[0];
  s.k_stride = m.inner[0];
  s.batch.set_shape(p.batch.rank, p.batch.shape);
  s.batch.set_stride(0, m.batch);
  s.batches = cut.batches;
  return s;
}

void take_panels(operand_panels& p, const operand_source& s, carver& c) {
  p.row_panels = s.row_panels;
  p.k_panels = ceil_div(s.k, panel_k);
  p.batches = s.batches;
  c.take(p.data, p.row_panels, p.k_panels, p.batches, panel_size);
  c.take(p.lines.norm, p.padded_rows(), p.batches);
  c.take(p.lines.lsb, p.padded_rows(), p.batches);
}

void pack(const packing& a, const packing& b, const residue_choice& choice, const job& j) {
  const auto work = [&](const packing& p) {
    const auto size = [](std::int64_t x) { return x < 0 ? -x : x; };
    return pack_work{p, size(p.source.k_stride) <= size(p.source.row_stride),
                     grid_for(j.device, p.to.row_panels * p.splits * p.to.batches, 32)};
  };
  const pack_work of_a = work(a);
  const pack_work of_b = work(b);
  ops::for_each_format<ops::NARROW>([&]<class T>() {
    if (dtype_of<T> == a.source.type) {
      launch_next<pack_kernel<T>>(j, of_a.blocks + of_b.blocks, threads, 0, of_a, of_b, choice);
    }
  });
  const std::int64_t rows = a.to.padded_rows() * a.to.batches + b.to.padded_rows() * b.to.batches;
  launch_next<finish_lines>(j, grid_for(j.device, ceil_div(rows, threads), 8), threads, 0, a, b, choice);
}

}  // namespace repdl::cuda
