// Packing of matmul's operands: any strides in, binary64 panels out, with the norm and the lattice of every row.
#include "backends/cuda/core/launch.cuh"
#include "backends/cuda/product/matmul.hpp"
#include "backends/cuda/product/mma.cuh"
#include "librepdl/num/certify.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = 256;
constexpr int chunk_k = pack_k;  // of a block's step
constexpr int chunk_panels = chunk_k / panel_k;

// T: of the source. A block packs 64 rows over its share of k. Blocks: row panel fastest, then split, then batch.
template <class T>
__global__ void __launch_bounds__(threads, 4)
    pack_kernel(const operand_source s, const operand_panels to, summary* parts, int splits, bool k_fast, bool second,
                const residue_choice choice) {
  if (!choice.wants_panels()) return;
  __shared__ float tile[panel_rows][chunk_k + 1];
  const std::int64_t total = to.row_panels * splits * to.batches;
  const int tid = static_cast<int>(threadIdx.x);
  for (std::int64_t item = blockIdx.x; item < total; item += gridDim.x) {
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
        const float* const first = second ? &tile[unit / 64 * 8 + g][k + unit / 32 % 2 * 8]
                                          : &tile[unit / 128 * 16 + g][k + unit / 32 % 4 * 4];
        const float* const other = second ? first + 4 : first + 8 * (chunk_k + 1);
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
    if (tid % 4 == 0) parts[(split * to.batches + batch) * to.padded_rows() + row0 + tid / 4] = part;
  }
}

__global__ void __launch_bounds__(threads)
    finish_lines(const operand_panels to, const summary* parts, int splits, const residue_choice choice) {
  if (!choice.wants_panels()) return;
  const std::int64_t rows = to.padded_rows() * to.batches;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; i < rows; i += step) {
    summary total;
    for (int split = 0; split < splits; ++split) total.merge(parts[split * rows + i]);
    to.lines.set(i, total);
  }
}

}  // namespace

operand_source source_of(const plan::product_plan& p, bool second, const operand_cut& cut) {
  const plan::product_plan::operand<const void>& m = second ? p.b : p.a;
  operand_source s{};
  s.second = second;
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

void pack(const operand_source& s, const operand_panels& to, summary* parts, int splits, const residue_choice& choice,
          const job& j) {
  const auto size = [](std::int64_t x) { return x < 0 ? -x : x; };
  const unsigned grid = grid_for(j.device, to.row_panels * splits * to.batches, 32);
  ops::for_each_format<ops::NARROW>([&]<class T>() {
    if (dtype_of<T> != s.type) return;
    launch_kernel<pack_kernel<T>>(j, grid, threads, 0, s, to, parts, splits, size(s.k_stride) <= size(s.row_stride),
                                  s.second, choice);
  });
  const unsigned rows = grid_for(j.device, ceil_div(to.padded_rows() * to.batches, threads), 8);
  launch_kernel<finish_lines>(j, rows, threads, 0, to, parts, splits, choice);
}

}  // namespace repdl::cuda
