// matmul with accumulate::fma_chain (contract, section 5): s = +0; s = fma(a_k, b_k, s) in binary32, k ascending; then,
// apart, s + bias. The order is the result's definition, so blocks only cut m and n, and the last block of k is not
// padded: fma(0, 0, -0) is +0, so a padded step would change a bit.
#include "backends/cuda/core/async_copy.cuh"
#include "backends/cuda/core/launch.cuh"
#include "backends/cuda/product/matmul.hpp"
#include "librepdl/num/format.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = 256;

// Strides of an operand, as in the plan.
struct steps {
  std::int64_t outer, inner;
};

// How an operand is read. The same for all threads of a block: it stays where the kernel's parameters are.
struct panel_source {
  steps step;
  bool k_fast;  // terms lie nearer to each other than lines
  bool packed;  // four of what lies nearer are side by side, at multiples of 16 bytes
};

struct chain {
  std::int64_t m, n, k, batches;
  const float* a;
  const float* b;
  const float* bias;  // null: none
  float* out;
  panel_source of_a, of_b;
  steps of_bias, of_out;
  strided_axes<4> batch;  // of a, b, the output, the bias
  bool packed_out;        // four columns side by side at multiples of 16 bytes
};

// Lines x Lines outputs of a block, PerThread x PerThread of a thread, Terms at a time: a unit of four elements of each operand for each thread.
template <int Lines, int PerThread, int Terms>
struct chain_tile {
  static constexpr int lines = Lines, per_thread = PerThread, terms = Terms;
  static constexpr int side = Lines / PerThread;  // threads
  static constexpr int run =
      PerThread < 4 ? PerThread : 4;  // neighbouring lines of a thread; as many more Lines / 2 further
  static constexpr int stages = 4;    // panels in shared memory
  static_assert(side * side == threads && threads * 4 == Lines * Terms && PerThread <= 8);
  using panel = float[Terms][Lines + 4];

  // The lines of a thread at a place of its side.
  static __device__ int line(int at, int i) { return i / run * (Lines / 2) + at * run + i % run; }
};

// Copies a thread's unit of an operand's panels, one after the other.
template <class Tile>
class panel_copier {
 public:
  // Begins at a line; `lines` of them are left.
  __device__ panel_copier(const panel_source& o, const float* first, std::int64_t lines) {
    const int n = static_cast<int>(threadIdx.x);
    line_ = o.k_fast ? n / (Tile::terms / 4) : n % (Tile::lines / 4) * 4;
    term_ = o.k_fast ? n % (Tile::terms / 4) * 4 : n / (Tile::lines / 4);
    lines_ = static_cast<int>(max(min(lines - line_, std::int64_t{4}), std::int64_t{0}));
    from_ = first + line_ * o.step.outer + term_ * o.step.inner;
  }
  // Starts to copy the next panel, of so many terms or more; none: nothing.
  __device__ void copy(const panel_source& o, std::int64_t terms, typename Tile::panel& to) {
    const int left = static_cast<int>(max(min(terms - term_, std::int64_t{4}), std::int64_t{0}));
    float* const place = &to[term_][line_];
    if (o.packed && !o.k_fast && lines_ == 4) {
      copy_async<16>(place, from_, left > 0);
    } else {
      const int count = o.k_fast ? (lines_ > 0 ? left : 0) : left > 0 ? lines_ : 0;
      const std::int64_t along = o.k_fast ? o.step.inner : o.step.outer;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        copy_async<4>(o.k_fast ? place + e * static_cast<int>(sizeof(to[0]) / sizeof(float)) : place + e,
                      from_ + e * along, e < count);
      }
    }
    from_ += Tile::terms * o.step.inner;
  }

 private:
  const float* from_;
  int line_, term_, lines_;
};

template <class Tile>
__global__ void __launch_bounds__(threads, 2) chain_kernel(const __grid_constant__ chain c, counter* counters) {
  __shared__ __align__(16) typename Tile::panel a_panels[Tile::stages];
  __shared__ __align__(16) typename Tile::panel b_panels[Tile::stages];
  const std::int64_t cols = (c.n + Tile::lines - 1) / Tile::lines;
  const std::int64_t rows = (c.m + Tile::lines - 1) / Tile::lines;
  const std::int64_t index = blockIdx.x;
  std::int64_t offset[4];
  c.batch.locate(index / (rows * cols), offset);
  const std::int64_t row0 = index / cols % rows * Tile::lines;
  const std::int64_t col0 = index % cols * Tile::lines;
  const int tid = static_cast<int>(threadIdx.x);
  const int ty = tid / Tile::side;
  const int tx = tid % Tile::side;

  panel_copier<Tile> copier_a(c.of_a, c.a + offset[0] + row0 * c.of_a.step.outer, c.m - row0);
  panel_copier<Tile> copier_b(c.of_b, c.b + offset[1] + col0 * c.of_b.step.outer, c.n - col0);
  // A panel is the next group of copies, which may be empty.
  const auto copy = [&](std::int64_t k0, int place) {
    if (k0 < c.k) {
      copier_a.copy(c.of_a, c.k - k0, a_panels[place]);
      copier_b.copy(c.of_b, c.k - k0, b_panels[place]);
    }
    commit_copies();
  };
  constexpr int per_thread = Tile::per_thread;
  float sum[per_thread][per_thread] = {};
  const auto step = [&](int place, int k) {
    float x[per_thread];
    float y[per_thread];
    using word = std::conditional_t<Tile::run == 4, float4, float2>;
#pragma unroll
    for (int i = 0; i < per_thread; i += Tile::run) {
      *reinterpret_cast<word*>(x + i) = *reinterpret_cast<const word*>(&a_panels[place][k][Tile::line(ty, i)]);
      *reinterpret_cast<word*>(y + i) = *reinterpret_cast<const word*>(&b_panels[place][k][Tile::line(tx, i)]);
    }
#pragma unroll
    for (int i = 0; i < per_thread; ++i) {
#pragma unroll
      for (int j = 0; j < per_thread; ++j) sum[i][j] = __fmaf_rn(x[i], y[j], sum[i][j]);
    }
  };

  for (int i = 0; i < Tile::stages - 1; ++i) copy(i * Tile::terms, i);
  int place = 0;
  for (std::int64_t k0 = 0; k0 < c.k; k0 += Tile::terms) {
    wait_for_copies<Tile::stages - 2>();
    __syncthreads();  // the panel is there, and the one before it is done with
    copy(k0 + (Tile::stages - 1) * Tile::terms, (place + Tile::stages - 1) % Tile::stages);
    if (c.k - k0 >= Tile::terms) {
#pragma unroll
      for (int k = 0; k < Tile::terms; ++k) step(place, k);
    } else {
#pragma unroll 1
      for (int k = 0; k < static_cast<int>(c.k - k0); ++k) step(place, k);
    }
    place = (place + 1) % Tile::stages;
  }

  float* const out = c.out + offset[2];
  const float* const bias = c.bias == nullptr ? nullptr : c.bias + offset[3];
#pragma unroll
  for (int i = 0; i < per_thread; ++i) {
    const std::int64_t row = row0 + Tile::line(ty, i);
    if (row >= c.m) continue;
#pragma unroll
    for (int j = 0; j < per_thread; j += Tile::run) {
      const std::int64_t col = col0 + Tile::line(tx, j);
      alignas(16) float result[4];
#pragma unroll
      for (int e = 0; e < Tile::run; ++e) {
        float s = sum[i][j + e];
        if (bias != nullptr && col + e < c.n)
          s = __fadd_rn(s, bias[row * c.of_bias.outer + (col + e) * c.of_bias.inner]);
        result[e] = num::canonical(s);
      }
      if (Tile::run == 4 && c.packed_out && col + 4 <= c.n) {
        *reinterpret_cast<float4*>(out + row * c.of_out.outer + col) = *reinterpret_cast<const float4*>(result);
      } else {
#pragma unroll
        for (int e = 0; e < Tile::run; ++e) {
          if (col + e < c.n) out[row * c.of_out.outer + (col + e) * c.of_out.inner] = result[e];
        }
      }
    }
  }
  if (index == 0 && tid == 0) count_elements(counters, tier::proved, c.batches * c.m * c.n);
}

}  // namespace

void prepare_fma_chain(const plan::product_plan& p, const job& j, dispatch::task& t) {
  const auto size = [](std::int64_t s) { return s < 0 ? -s : s; };
  chain c{};
  c.m = p.row.count;
  c.n = p.column.count;
  c.k = p.term.count;
  c.batches = p.batch.count;
  c.a = static_cast<const float*>(p.a.begin());
  c.b = static_cast<const float*>(p.b.begin());
  c.bias = static_cast<const float*>(p.bias.begin());
  c.out = static_cast<float*>(p.out.begin());
  c.of_bias = {p.bias.outer[0], p.bias.inner[0]};
  c.of_out = {p.out.outer[0], p.out.inner[0]};
  // Whether a matrix whose elements lie side by side along one axis, with this stride across it, can be read or written in fours.
  const auto in_fours = [&](const auto& o, std::int64_t along, std::int64_t across) {
    bool is = along == 1 && across % 4 == 0 && reinterpret_cast<std::uintptr_t>(o.begin()) % 16 == 0;
    for (int d = 0; d < p.batch.rank; ++d) is = is && o.batch[d] % 4 == 0;
    return is;
  };
  const auto source_of = [&](const auto& o) {
    const bool k_fast = size(o.inner[0]) <= size(o.outer[0]);
    const bool packed = k_fast ? in_fours(o, o.inner[0], o.outer[0]) : in_fours(o, o.outer[0], o.inner[0]);
    return panel_source{{o.outer[0], o.inner[0]}, k_fast, packed};
  };
  c.of_a = source_of(p.a);
  c.of_b = source_of(p.b);
  c.packed_out = in_fours(p.out, p.out.inner[0], p.out.outer[0]);
  c.batch.set_shape(p.batch.rank, p.batch.shape);
  c.batch.set_stride(0, p.a.batch);
  c.batch.set_stride(1, p.b.batch);
  c.batch.set_stride(2, p.out.batch);
  c.batch.set_stride(3, p.bias.batch);
  // The largest tile of which there are enough for all multiprocessors. (A matter of speed alone.) Their numbers, for self-tests, are per_thread.
  const auto launch = [&]<class Tile>(bool is_last) {
    const std::int64_t blocks = ceil_div(c.m, Tile::lines) * ceil_div(c.n, Tile::lines) * c.batches;
    const int given = j.device.choice.tile;
    if (!is_last && (given < 0 ? blocks < j.device.multiprocessors : given != Tile::per_thread)) return false;
    plan_launch<chain_kernel<Tile>>(t, j, blocks, threads, c, j.counters);
    return true;
  };
  if (launch.template operator()<chain_tile<128, 8, 8>>(false)) return;
  if (launch.template operator()<chain_tile<64, 4, 16>>(false)) return;
  launch.template operator()<chain_tile<32, 2, 32>>(true);
}

}  // namespace repdl::cuda
