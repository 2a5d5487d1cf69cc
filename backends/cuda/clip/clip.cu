// Norms of lists of tensors and clipping by them. The launches do not depend on the data:
//   norm_sums        each block adds up elements, its sum goes to the workspace
//   norm_total       one block joins them; it decides the norm and the factor in double-double, or sets a flag
//   clip_attempts    of f64: every element is tried, and sets the flag if the factor leaves it undecided
//   norm_exact_sums  if the flag is set: each block adds up elements exactly
//   norm_exact_total if the flag is set: one block joins them and decides by integers
//   clip_elements    the elements times the factor, which is known before the first of them is written
// Those that go through elements are launched over all tensors whose elements lie side by side, hundreds of them at a time
// (element_list), and over each other one (elements).
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

  // use(the addresses of an element, read and written) for a thread's share, four at a time.
  template <class T, int Threads, class Use>
  __device__ void for_each(const Use& use) const {
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * Threads;
#pragma unroll 4
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * Threads + threadIdx.x; i < all.count; i += step) {
      std::int64_t at[2];
      all.locate(i, at);
      use(static_cast<const T*>(in) + at[0], static_cast<T*>(out) + at[1]);
    }
  }
};

// Tensors side by side. Blocks take units of elements, none of which crosses tensors, and find their tensor by bisection.
constexpr int unit = 4 * threads;
struct element_list {
  struct tensor {
    const void* in;
    void* out;
    std::int64_t count;
    std::int64_t first_unit;
  };
  static constexpr int most = 900;  // kernel parameters: 32764 bytes
  int tensors = 0;
  std::int64_t units = 0;
  tensor at[most];

  __device__ const tensor& tensor_of(std::int64_t u) const {
    int found = 0;
#pragma unroll
    for (int step = 512; step > 0; step /= 2) {
      const int next = found + step;
      if (next < tensors && at[next].first_unit <= u) found = next;
    }
    return at[found];
  }
  template <class T, int Threads, class Use>
  __device__ void for_each(const Use& use) const {
    for (std::int64_t u = blockIdx.x; u < units; u += gridDim.x) {
      const tensor& t = tensor_of(u);
      const std::int64_t first = (u - t.first_unit) * unit;
      const T* const from = static_cast<const T*>(t.in) + first;
      T* const to = static_cast<T*>(t.out) + first;
      const int rest = static_cast<int>(t.count - first < unit ? t.count - first : unit);
#pragma unroll 4
      for (int i = static_cast<int>(threadIdx.x); i < rest; i += Threads) use(from + i, to + i);
    }
  }
};

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
__device__ num::norm_term<T> read(T x) {
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

template <class T, norm_kind Kind, class Elements>
__global__ void __launch_bounds__(threads) norm_sums(const __grid_constant__ Elements e, norm_sum<T>* sums) {
  add_up_block<threads>(sums, [&](norm_sum<T>& mine) {
    e.template for_each<T, threads>([&](const T* x, T*) { mine.template add<Kind>(read(*x)); });
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

template <class Elements>
__global__ void __launch_bounds__(threads) clip_attempts(const __grid_constant__ Elements e, found<double>* result) {
  const num::ball_factor f = result->factor;
  if (result->counted == 0 || f.is_plain()) return;
  bool some = false;
  e.template for_each<double, threads>(
      [&](const double* x, double*) { some = some || !num::attempt_clipped(f, *x).decided; });
  if (some) result->undecided = 1;
}

template <class T, class Elements>
__global__ void __launch_bounds__(exact_threads<T>)
    norm_exact_sums(const __grid_constant__ Elements e, norm_kind kind, const found<T>* result, accumulator<T>* sums) {
  if (result->undecided == 0) return;
  add_up_block<exact_threads<T>>(sums, [&](accumulator<T>& mine) {
    e.template for_each<T, exact_threads<T>>(
        [&](const T* x, T*) { num::add_exactly<num::norm_term<T>>(mine, kind, read(*x)); });
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
template <class T, class Elements>
__global__ void __launch_bounds__(threads)
    clip_elements(const __grid_constant__ Elements e, bool in_place, norm_kind kind, double max_norm,
                  const found<T>* result, const accumulator<T>* sum) {
  const num::factor_of<T> f = result->factor;
  if (in_place && f.is_one()) return;
  e.template for_each<T, threads>([&](const T* x, T* y) { *y = clipped(f, *x, kind, max_norm, sum); });
}

// ---- host

// It only runs: a task does not hold the parameters of all launches.
template <class T>
class clip_work final : public planned {
 public:
  clip_work(const plan::clip_plan& plan, const job& given) : planned(given), p_(plan), kind_(num::norm_of(plan.p)) {
    decided_ = p_.total != nullptr ? 1 : 0;
    for (const plan::clip_tensor& t : p_.tensors) {
      if (p_.clips()) decided_ += t.count;
    }
    for_parts([&](const auto&, const part& its) {
      blocks_ += its.blocks;
      longest_ = std::max(longest_, ceil_div(its.units, its.blocks) * (unit / threads));
    });
    space.take(result_, 1);
    space.take(exact_sum_, 1);
    space.take_in_turn([&] { space.take(sums_, blocks_); }, [&] { space.take(exact_sums_, blocks_); });
  }

 private:
  // What is launched at once.
  struct part {
    std::int64_t units;   // of elements
    std::int64_t blocks;  // that add up
    bool in_place;
  };
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
  bool is_flat(const plan::clip_tensor& t) const {
    return t.rank == 0 || (t.rank == 1 && t.in_stride[0] == 1 && (!p_.clips() || t.out_stride[0] == 1));
  }
  part part_of(std::int64_t units, bool in_place) const {
    return {units, blocks_of_sum(j.device, units * unit, threads), in_place};
  }
  // launch(elements or element_list, part) for all tensors.
  template <class Launch>
  void for_parts(const Launch& launch) const {
    element_list list;
    bool in_place = true;
    const auto finish = [&] {
      if (list.tensors != 0) launch(list, part_of(list.units, in_place));
      list.tensors = 0;
      list.units = 0;
      in_place = true;
    };
    for (const plan::clip_tensor& t : p_.tensors) {
      if (is_flat(t)) {
        list.at[list.tensors++] = {t.in, t.out, t.count, list.units};
        list.units += ceil_div(t.count, unit);
        in_place = in_place && t.in == t.out;
        if (list.tensors == element_list::most) finish();
      } else {
        launch(elements_of(t), part_of(ceil_div(t.count, unit), t.in == t.out));
      }
    }
    finish();
  }
  unsigned grid_of(const part& p) const { return grid_for(j.device, p.units, blocks_per_multiprocessor); }

  void enqueue() override {
    using enum norm_kind;
    // A thread's own terms, the merges in its block, the blocks of a joining thread, the merges there.
    const std::int64_t height = longest_ + 8 + ceil_div(blocks_, threads) + 8;
    const call c{kind_, p_.max_norm, p_.total, decided_, height, j.first_tier > tier::double_double};
    std::int64_t before = 0;
    for_parts([&]<class Elements>(const Elements& e, const part& its) {
      const auto sums = [&]<norm_kind Kind>() {
        launch_kernel<norm_sums<T, Kind, Elements>>(j, its.blocks, threads, 0, e, sums_ + before);
      };
      if (kind_ == magnitudes) sums.template operator()<magnitudes>();
      if (kind_ == squares) sums.template operator()<squares>();
      if (kind_ == greatest) sums.template operator()<greatest>();
      before += its.blocks;
    });
    launch_kernel<norm_total<T>>(j, 1, threads, 0, c, sums_, blocks_, result_, j.counters);
    if constexpr (std::is_same_v<T, double>) {
      if (p_.clips()) {
        for_parts([&]<class Elements>(const Elements& e, const part& its) {
          launch_kernel<clip_attempts<Elements>>(j, grid_of(its), threads, 0, e, result_);
        });
      }
    }
    const bool adds = kind_ != greatest;
    before = 0;
    if (adds) {
      for_parts([&]<class Elements>(const Elements& e, const part& its) {
        launch_kernel<norm_exact_sums<T, Elements>>(j, its.blocks, exact_threads<T>, 0, e, kind_, result_,
                                                    exact_sums_ + before);
        before += its.blocks;
      });
    }
    launch_kernel<norm_exact_total<T>>(j, 1, exact_threads<T>, 0, c, exact_sums_, adds ? blocks_ : std::int64_t{0},
                                       result_, exact_sum_, j.counters);
    if (!p_.clips()) return;
    for_parts([&]<class Elements>(const Elements& e, const part& its) {
      launch_kernel<clip_elements<T, Elements>>(j, grid_of(its), threads, 0, e, its.in_place, kind_, p_.max_norm,
                                                result_, exact_sum_);
    });
  }

  const plan::clip_plan& p_;
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
