// Norms of lists of tensors and clipping by them. The launches do not depend on the data:
//   norm_sums        of each tensor: each block adds up elements, its sum goes to the workspace
//   norm_total       one block joins them; it decides the norm and the factor in double-double, or sets a flag
//   clip_attempts    of f64, of each tensor: every element is tried, and sets the flag if the factor leaves it undecided
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
template <class T>  // their sums lie in shared memory
inline constexpr int exact_threads = std::is_same_v<T, double> ? 64 : 128;
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
template <class T>
struct found {
  num::factor_of<T> factor;
  std::uint64_t greatest;
  int undecided;
  int counted;  // what was decided is among the first tier's elements
};
template <class T>
using norm_sum = num::norm_sum<num::norm_term<T>>;
template <class T>
using accumulator = num::norm_accumulator_of<num::norm_term<T>>;
template <class T>
__device__ num::norm_term<T> read(const void* from, std::int64_t at) {
  const T x = static_cast<const T*>(from)[at];
  if constexpr (std::is_same_v<T, double>) {
    return x;
  } else {
    return num::widen_to_float(x);
  }
}
struct call {
  norm_kind kind;
  double max_norm;
  void* total;
  std::int64_t decided;  // elements, for the counters
  std::int64_t height;   // of the additions
  bool forced;           // what is finite is decided exactly
};

template <class T, norm_kind Kind>
__global__ void __launch_bounds__(threads) norm_sums(const __grid_constant__ elements e, norm_sum<T>* sums) {
  add_up_block<threads>(sums, [&](norm_sum<T>& mine) {
    for_elements<threads>(e, [&](const std::int64_t(&at)[2]) { mine.template add<Kind>(read<T>(e.in, at[0])); });
  });
}

template <class T>
__device__ void take(const call& c, const num::clip_result<T>& r, tier by, found<T>* result, counter* counters) {
  result->factor = r.factor;
  if (c.total != nullptr) *static_cast<T*>(c.total) = r.total;
  count_elements(counters, by, c.decided);
}

template <class T>
__global__ void __launch_bounds__(threads) norm_total(const __grid_constant__ call c, const norm_sum<T>* sums,
                                                      std::int64_t blocks, found<T>* result, counter* counters) {
  norm_sum<T> mine;
  if (!add_up_blocks<threads>(sums, blocks, mine)) return;
  const num::wide<double> sum = num::total_of(c.kind, mine, c.height);
  const num::clip_result<T> r = num::attempt_clip<T>(c.kind, sum, c.max_norm, c.total != nullptr);
  if (r.decided && !(c.forced && num::is_finite(sum.value.hi))) {
    *result = {{}, mine.greatest, 0, 1};
    take(c, r, c.forced ? tier::exact : tier::double_double, result, counters);
  } else {
    *result = {{}, mine.greatest, 1, 0};
  }
}

__global__ void __launch_bounds__(threads) clip_attempts(const __grid_constant__ elements e, found<double>* result) {
  const num::ball_factor f = result->factor;
  if (result->counted == 0 || f.is_plain()) return;
  bool some = false;
  for_elements<threads>(e, [&](const std::int64_t(&at)[2]) {
    some = some || !num::attempt_clipped(f, static_cast<const double*>(e.in)[at[0]]).decided;
  });
  if (some) result->undecided = 1;
}

template <class T>
__global__ void __launch_bounds__(exact_threads<T>)
    norm_exact_sums(const __grid_constant__ elements e, norm_kind kind, const found<T>* result, accumulator<T>* sums) {
  if (result->undecided == 0) return;
  add_up_block<exact_threads<T>>(sums, [&](accumulator<T>& mine) {
    for_elements<exact_threads<T>>(
        e, [&](const std::int64_t(&at)[2]) { num::add_exactly<num::norm_term<T>>(mine, kind, read<T>(e.in, at[0])); });
  });
}

// blocks: 0 of the greatest magnitude. whole: where the sum is left.
template <class T>
__global__ void __launch_bounds__(exact_threads<T>)
    norm_exact_total(const __grid_constant__ call c, const accumulator<T>* sums, std::int64_t blocks, found<T>* result,
                     accumulator<T>* whole, counter* counters) {
  if (result->undecided == 0) return;
  accumulator<T> mine;
  if (!add_up_blocks<exact_threads<T>>(sums, blocks, mine)) return;
  using term = num::norm_term<T>;
  if (c.kind == norm_kind::greatest)
    mine.add(num::from_bits<term>(static_cast<num::storage_of<term>>(result->greatest)));
  if (result->counted != 0) count_elements(counters, tier::double_double, -c.decided);
  take(c, num::decide_clip<T>(c.kind, mine, c.max_norm), tier::exact, result, counters);
  *whole = mine;
}

template <class T>
__device__ T clipped(const num::clip_factor& f, T g, norm_kind, double, const accumulator<T>*) {
  return f.b == 1 ? num::clipped<false>(f, g) : num::clipped<true>(f, g);
}
__device__ __noinline__ double decided(const num::ball_factor& f, double g, norm_kind kind, double max_norm,
                                       const accumulator<double>* sum) {
  return num::decide_clipped(kind, *sum, max_norm, f, g);
}
__device__ double clipped(const num::ball_factor& f, double g, norm_kind kind, double max_norm,
                          const accumulator<double>* sum) {
  if (f.is_plain()) return num::plainly_clipped(f, g);
  const num::decided_lanes<double> r = num::attempt_clipped(f, g);
  return r.decided ? r.value : decided(f, g, kind, max_norm, sum);
}

// sum: of f64, exactly, where the factor leaves an element undecided.
template <class T>
__global__ void __launch_bounds__(threads)
    clip_elements(const __grid_constant__ elements e, norm_kind kind, double max_norm, const found<T>* result,
                  const accumulator<T>* sum) {
  const num::factor_of<T> f = result->factor;
  if (f.is_one() && e.in == e.out) return;
  for_elements<threads>(e, [&](const std::int64_t(&at)[2]) {
    const T g = static_cast<const T*>(e.in)[at[0]];
    static_cast<T*>(e.out)[at[1]] = clipped(f, g, kind, max_norm, sum);
  });
}

// ---- host

// It only runs: a task does not hold the parameters of all launches.
template <class T>
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
    space.take(exact_sum_, 1);
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
  unsigned grid_of(const plan::clip_tensor& t) const {
    return grid_for(j.device, ceil_div(t.count, 4 * threads), blocks_per_multiprocessor);
  }

  void enqueue() override {
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
    if constexpr (std::is_same_v<T, double>) {
      for (const plan::clip_tensor& t : p_.tensors) {
        if (p_.clips()) launch_kernel<clip_attempts>(j, grid_of(t), threads, 0, elements_of(t), result_);
      }
    }
    const bool adds = kind_ != greatest;
    before = 0;
    for (const plan::clip_tensor& t : p_.tensors) {
      if (!adds) break;
      const std::int64_t blocks = blocks_of(t);
      launch_kernel<norm_exact_sums<T>>(j, blocks, exact_threads<T>, 0, elements_of(t), kind_, result_,
                                        exact_sums_ + before);
      before += blocks;
    }
    launch_kernel<norm_exact_total<T>>(j, 1, exact_threads<T>, 0, c, exact_sums_, adds ? blocks_ : std::int64_t{0},
                                       result_, exact_sum_, j.counters);
    if (!p_.clips()) return;
    for (const plan::clip_tensor& t : p_.tensors) {
      launch_kernel<clip_elements<T>>(j, grid_of(t), threads, 0, elements_of(t), kind_, p_.max_norm, result_,
                                      exact_sum_);
    }
  }

  const plan::clip_plan p_;
  const norm_kind kind_;
  std::int64_t blocks_ = 0;
  std::int64_t longest_ = 0;  // of a thread's terms
  std::int64_t decided_ = 0;
  found<T>* result_ = nullptr;
  accumulator<T>* exact_sum_ = nullptr;
  norm_sum<T>* sums_ = nullptr;
  accumulator<T>* exact_sums_ = nullptr;
};

}  // namespace

void prepare(const plan::clip_plan& p, const job& j, dispatch::task& t) {
  ops::for_each_format<ops::FLOATS>([&]<class T>() {
    if (dtype_of<T> == p.type) t.emplace<clip_work<T>>(p, j);
  });
}

}  // namespace repdl::cuda
