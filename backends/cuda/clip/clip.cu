// Norms of lists of tensors and clipping by them. The launches do not depend on the data:
//   norm_sums        of each tensor: each block adds up elements, its sum goes to the workspace
//   norm_total       one block joins them; it decides the norm and the factor in double-double, or sets a flag
//   norm_exact_sums  if the flag is set, of each tensor: each block adds up elements exactly
//   norm_exact_total if the flag is set: one block joins them and decides by integers
//   clip_elements    of each tensor: the elements times the factor, which is known before the first of them is written
#include "backends/cuda/core/block_sums.cuh"
#include "backends/cuda/core/launch.cuh"
#include "librepdl/ops/registry.hpp"
#include "librepdl/ops/steps/clip.hpp"

namespace repdl::cuda {
namespace {

using num::norm_kind;

constexpr int threads = 256;
constexpr int exact_threads = 128;
constexpr int blocks_per_multiprocessor = 8;

struct elements {
  const void* in;
  void* out;
  shared_elements<2> all;
};

// use(the offsets of an element) for a thread's share of all, four at a time.
template <int Threads, class Use>
__device__ void for_elements(const elements& e, const Use& use) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * Threads;
#pragma unroll 4
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * Threads + threadIdx.x; i < e.all.count; i += step) {
    std::int64_t at[2];
    e.all.locate(i, at);
    use(at);
  }
}

// What one call finds.
struct found {
  num::clip_factor factor;
  std::uint32_t greatest;
  int undecided;
};
struct call {
  norm_kind kind;
  double max_norm;
  void* total;
  std::int64_t decided;  // elements, for the counters
  std::int64_t height;   // of the additions
  bool forced;           // what is finite is decided exactly
};

template <class T, norm_kind Kind>
__global__ void __launch_bounds__(threads) norm_sums(const __grid_constant__ elements e, num::norm_sum* sums) {
  add_up_block<threads>(sums, [&](num::norm_sum& mine) {
    for_elements<threads>(e, [&](const std::int64_t(&at)[2]) {
      mine.add<Kind>(num::widen_to_float(static_cast<const T*>(e.in)[at[0]]));
    });
  });
}

template <class T>
__device__ void take(const call& c, const num::clip_result<T>& r, tier by, found* result, counter* counters) {
  result->factor = r.factor;
  result->undecided = 0;
  if (c.total != nullptr) *static_cast<T*>(c.total) = r.total;
  count_elements(counters, by, c.decided);
}

template <class T>
__global__ void __launch_bounds__(threads) norm_total(const __grid_constant__ call c, const num::norm_sum* sums,
                                                      std::int64_t blocks, found* result, counter* counters) {
  num::norm_sum mine;
  if (!add_up_blocks<threads>(sums, blocks, mine)) return;
  const num::wide<double> sum = num::total_of(c.kind, mine, c.height);
  const num::clip_result<T> r = num::attempt_clip<T>(c.kind, sum, c.max_norm, c.total != nullptr);
  if (r.decided && !(c.forced && num::is_finite(sum.value.hi))) {
    take(c, r, c.forced ? tier::exact : tier::double_double, result, counters);
  } else {
    *result = {{}, mine.greatest, 1};
  }
}

template <class T>
__global__ void __launch_bounds__(exact_threads) norm_exact_sums(const __grid_constant__ elements e, norm_kind kind,
                                                                 const found* result, num::norm_accumulator* sums) {
  if (result->undecided == 0) return;
  add_up_block<exact_threads>(sums, [&](num::norm_accumulator& mine) {
    for_elements<exact_threads>(e, [&](const std::int64_t(&at)[2]) {
      num::add_exactly(mine, kind, num::widen_to_float(static_cast<const T*>(e.in)[at[0]]));
    });
  });
}

// blocks: 0 of the greatest magnitude.
template <class T>
__global__ void __launch_bounds__(exact_threads)
    norm_exact_total(const __grid_constant__ call c, const num::norm_accumulator* sums, std::int64_t blocks,
                     found* result, counter* counters) {
  if (result->undecided == 0) return;
  num::norm_accumulator mine;
  if (!add_up_blocks<exact_threads>(sums, blocks, mine)) return;
  if (c.kind == norm_kind::greatest) mine.add(num::float_of(result->greatest));
  take(c, num::decide_clip<T>(c.kind, mine, c.max_norm), tier::exact, result, counters);
}

template <class T>
__global__ void __launch_bounds__(threads) clip_elements(const __grid_constant__ elements e, const found* result) {
  const num::clip_factor f = result->factor;
  if (f.a == f.b && e.in == e.out) return;
  for_elements<threads>(e, [&](const std::int64_t(&at)[2]) {
    const T g = static_cast<const T*>(e.in)[at[0]];
    static_cast<T*>(e.out)[at[1]] = f.b == 1 ? num::clipped<false>(f, g) : num::clipped<true>(f, g);
  });
}

// ---- host

// It only runs: a task does not hold the parameters of all launches.
class clip_work final : public planned {
 public:
  clip_work(const plan::clip_plan& plan, const job& given) : planned(given), p_(plan), kind_(num::norm_of(plan.p)) {
    decided_ = p_.total != nullptr ? 1 : 0;
    for (const plan::clip_tensor& t : p_.tensors) {
      const std::int64_t blocks = blocks_of(t);
      blocks_ += blocks;
      longest_ = std::max(longest_, ceil_div(t.count, blocks * threads));
      if (p_.clips()) decided_ += t.count;
    }
    space.take(result_, 1);
    space.take_in_turn([&] { space.take(sums_, blocks_); }, [&] { space.take(exact_sums_, blocks_); });
  }

 private:
  std::int64_t blocks_of(const plan::clip_tensor& t) const { return blocks_of_sum(j.device, t.count, threads); }
  static elements elements_of(const plan::clip_tensor& t) {
    elements e{};
    e.in = t.in;
    e.out = t.out;
    e.all.count = t.count;
    e.all.small = fits_32_bits(t.count);
    e.all.axes.set_shape(t.rank, t.shape);
    e.all.axes.set_stride(0, t.in_stride);
    e.all.axes.set_stride(1, t.out_stride);
    return e;
  }

  void enqueue() override {
    ops::for_each_format<ops::NARROW>([&]<class T>() {
      if (dtype_of<T> == p_.type) enqueue_as<T>();
    });
  }

  template <class T>
  void enqueue_as() {
    using enum norm_kind;
    // A thread's own terms, the merges in its block, the blocks of a joining thread, the merges there.
    const std::int64_t height = longest_ + 8 + ceil_div(blocks_, threads) + 8;
    const call c{kind_, p_.max_norm, p_.total, decided_, height, j.first_tier > tier::double_double};
    std::int64_t before = 0;
    for (const plan::clip_tensor& t : p_.tensors) {
      const std::int64_t blocks = blocks_of(t);
      const elements e = elements_of(t);
      if (kind_ == magnitudes) launch_kernel<norm_sums<T, magnitudes>>(j, blocks, threads, 0, e, sums_ + before);
      if (kind_ == squares) launch_kernel<norm_sums<T, squares>>(j, blocks, threads, 0, e, sums_ + before);
      if (kind_ == greatest) launch_kernel<norm_sums<T, greatest>>(j, blocks, threads, 0, e, sums_ + before);
      before += blocks;
    }
    launch_kernel<norm_total<T>>(j, 1, threads, 0, c, sums_, blocks_, result_, j.counters);
    const bool adds = kind_ != greatest;
    before = 0;
    for (const plan::clip_tensor& t : p_.tensors) {
      if (!adds) break;
      const std::int64_t blocks = blocks_of(t);
      launch_kernel<norm_exact_sums<T>>(j, blocks, exact_threads, 0, elements_of(t), kind_, result_,
                                        exact_sums_ + before);
      before += blocks;
    }
    launch_kernel<norm_exact_total<T>>(j, 1, exact_threads, 0, c, exact_sums_, adds ? blocks_ : std::int64_t{0},
                                       result_, j.counters);
    if (!p_.clips()) return;
    for (const plan::clip_tensor& t : p_.tensors) {
      const unsigned grid = grid_for(j.device, ceil_div(t.count, 4 * threads), blocks_per_multiprocessor);
      launch_kernel<clip_elements<T>>(j, grid, threads, 0, elements_of(t), result_);
    }
  }

  const plan::clip_plan p_;
  const norm_kind kind_;
  std::int64_t blocks_ = 0;
  std::int64_t longest_ = 0;  // of a thread's terms
  std::int64_t decided_ = 0;
  found* result_ = nullptr;
  num::norm_sum* sums_ = nullptr;
  num::norm_accumulator* exact_sums_ = nullptr;
};

}  // namespace

void prepare(const plan::clip_plan& p, const job& j, dispatch::task& t) { t.emplace<clip_work>(p, j); }

}  // namespace repdl::cuda
