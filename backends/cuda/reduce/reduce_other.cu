// Sums, means and dot products whose results have another format than their operands (librepdl/ops/sums/other_format.hpp): a block has an
// output, in double-double, and goes on with it in integers where that decides nothing.
#include "backends/cuda/reduce/reduce.cuh"
#include "backends/cuda/rows/rows_chunks.cuh"
#include "librepdl/ops/sums/other_format.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = 128;

struct other_geometry {
  const void* in[2];
  void* out;
  dtype type, to;
  std::int64_t outputs, length;
  bool is_mean, forced;
  strided_axes<3> kept;     // of two inputs and the output
  strided_axes<2> reduced;  // of two inputs
};

template <class Sum>
__device__ __noinline__ num::decided_value<double> other_sum(const other_geometry& g, std::int64_t first,
                                                             std::int64_t second, std::byte* scratch) {
  Sum sum{};
  for (std::int64_t j = threadIdx.x; j < g.length; j += threads) {
    std::int64_t at[2];
    g.reduced.locate(j, at);
    sum.add(num::number_of(g.type, g.in[0], first + at[0]), num::number_of(g.type, g.in[1], second + at[1]));
  }
  __syncwarp();
  over_block<threads>(sum, scratch, [](Sum& a, const Sum& b) { a.merge(b); });
  return sum.round(g.to, g.length, g.is_mean);
}

template <int Factors>
__global__ void __launch_bounds__(threads) other_kernel(const __grid_constant__ other_geometry g, counter* counters) {
  using exact = num::other_exact_sum<Factors>;
  alignas(16) __shared__ std::byte scratch[threads / 32 * sizeof(exact)];
  std::int64_t decided[3] = {};
  for (std::int64_t i = blockIdx.x; i < g.outputs; i += gridDim.x) {
    std::int64_t at[3];
    g.kept.locate(i, at);
    num::decided_value<double> v{num::other_empty(g.is_mean), g.length == 0};
    int by = 0;
    if (!v.decided && !g.forced) {
      by = 1;
      v = other_sum<num::other_wide_sum<Factors>>(g, at[0], at[1], scratch);
    }
    // Lanes add up in orders of their own: what the first thread has is the result, and whether it is one.
    if (__syncthreads_or(threadIdx.x == 0 && !v.decided ? 1 : 0) != 0) {
      by = 2;
      v = other_sum<exact>(g, at[0], at[1], scratch);
      __syncthreads();
    }
    if (threadIdx.x == 0) num::set_number_of(g.to, g.out, at[2], v.value);
    ++decided[by];
  }
  if (threadIdx.x != 0) return;
  count_elements(counters, tier::proved, decided[0]);
  count_elements(counters, tier::double_double, decided[1]);
  count_elements(counters, tier::exact, decided[2]);
}

class other_work final : public planned {
 public:
  other_work(const plan::reduce_plan& p, const job& given) : planned(given), inputs_(p.inputs) {
    for (int k = 0; k < 2; ++k) g_.in[k] = p.in[k == 0 ? 0 : p.inputs - 1].data;
    g_.out = p.out;
    g_.type = p.type;
    g_.to = *p.other_format;
    g_.outputs = p.outputs;
    g_.length = p.length;
    g_.is_mean = p.op == ops::op_id::mean;
    g_.forced = j.first_tier > tier::double_double;
    g_.kept.set_shape(p.kept_rank, p.kept_shape);
    g_.reduced.set_shape(p.reduced_rank, p.reduced_shape);
    for (int k = 0; k < 2; ++k) {
      const plan::reduce_plan::operand& in = p.in[k == 0 ? 0 : p.inputs - 1];
      g_.kept.set_stride(k, in.kept_stride);
      g_.reduced.set_stride(k, in.reduced_stride);
    }
    g_.kept.set_stride(2, p.out_stride);
  }

 private:
  void enqueue() override {
    const unsigned blocks = grid_for(j.device, g_.outputs, 16);
    if (inputs_ == 2) {
      launch_kernel<other_kernel<2>>(j, blocks, threads, 0, g_, j.counters);
    } else {
      launch_kernel<other_kernel<1>>(j, blocks, threads, 0, g_, j.counters);
    }
  }

  const int inputs_;
  other_geometry g_{};
};

}  // namespace

void prepare_other(const plan::reduce_plan& p, const job& j, dispatch::task& t) { t.emplace<other_work>(p, j); }

}  // namespace repdl::cuda
