// nll_loss and its gradient. Losses of elements: a thread for each. Gradients, of which a sample has one that is not 0: zeros, then a
// thread for each sample. A sum or mean, and the sum of the weights, are four launches, whatever the data (as loss.cu): sums of blocks in
// binary64, one block that joins them and tests, and where that leaves anything undecided the same exactly.
#include "backends/cuda/core/block_sums.cuh"
#include "backends/cuda/core/launch.cuh"
#include "librepdl/ops/losses/nll.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = 256;
// Shared memory has their sums.
template <class T>
constexpr int exact_threads = sizeof(T) == 8 ? 32 : 64;

struct nll_geometry {
  std::int64_t classes, ignore_index, class_stride, weight_stride;
  const void* x;
  const std::int64_t* targets;
  const void* weight;
  const void* total;
  void* out;
  std::int64_t out_class_stride;  // of gradients
  bool is_zeroed;                 // the same: all are 0 before
  shared_elements<3> elements;    // samples: x, targets, out
};
template <class T>
__device__ double weight_of(const nll_geometry& g, std::int64_t target) {
  return g.weight == nullptr ? 1.0 : num::widen(static_cast<const T*>(g.weight)[target * g.weight_stride]);
}

// What a sample takes part with: NaN where its class is absent.
struct nll_term {
  num::nll_target kind;
  double x, w;
};
template <class T, int N>
__device__ nll_term term_at(const nll_geometry& g, const std::int64_t (&at)[N]) {
  const std::int64_t target = g.targets[at[1]];
  const num::nll_target kind = num::kind_of_target(target, g.ignore_index, g.classes);
  const double nan = num::double_of(num::format<double>::nan);
  if (kind != num::nll_target::present) return {kind, nan, nan};
  return {kind, num::widen(static_cast<const T*>(g.x)[at[0] + target * g.class_stride]), weight_of<T>(g, target)};
}

template <class T>
__global__ void __launch_bounds__(threads) nll_losses(const __grid_constant__ nll_geometry g, counter* counters) {
  if (blockIdx.x == 0 && threadIdx.x == 0) count_elements(counters, tier::proved, g.elements.count);
  g.elements.for_each<threads, 3>([&](const std::int64_t(&at)[3]) {
    const nll_term t = term_at<T>(g, at);
    static_cast<T*>(g.out)[at[2]] = t.kind == num::nll_target::ignored ? T{} : num::nll_product<T>(t.x, t.w);
  });
}

template <class T>
__global__ void __launch_bounds__(threads) nll_zeros(T* out, std::int64_t count) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; i < count; i += step)
    out[i] = T{};
}
template <class T>
__global__ void __launch_bounds__(threads) nll_gradients(const __grid_constant__ nll_geometry g, counter* counters) {
  if (blockIdx.x == 0 && threadIdx.x == 0) count_elements(counters, tier::proved, g.elements.count * g.classes);
  g.elements.for_each<threads, 3>([&](const std::int64_t(&at)[3]) {
    const std::int64_t target = g.targets[at[1]];
    const num::nll_target kind = num::kind_of_target(target, g.ignore_index, g.classes);
    T* const out = static_cast<T*>(g.out) + at[2];
    if (kind == num::nll_target::absent || !g.is_zeroed) {
      const T all = kind == num::nll_target::absent ? num::from_bits<T>(num::format<T>::nan) : T{};
      for (std::int64_t c = 0; c < g.classes; ++c) out[c * g.out_class_stride] = all;
    }
    if (kind != num::nll_target::present) return;
    const double of = num::widen(static_cast<const T*>(g.x)[at[0]]);
    const double w = weight_of<T>(g, target);
    out[target * g.out_class_stride] =
        g.total == nullptr ? num::nll_product<T>(of, w)
                           : num::nll_quotient<T>(of, w, *static_cast<const num::nll_weight<T>*>(g.total));
  });
}

template <class T>
using exact_sum = num::exact_nll_sum<num::nll_weight<T>>;

// Adds up a thread's share: to num::nll_sum, or exactly.
template <class T, int Threads, class Sum>
__device__ void add_terms(const nll_geometry& g, Sum& mine) {
  g.elements.for_each<Threads, 2>([&](const std::int64_t(&at)[2]) {
    const nll_term t = term_at<T>(g, at);
    if (t.kind == num::nll_target::ignored) return;
    if constexpr (std::is_same_v<Sum, num::nll_sum>) {
      mine.template add<T>(t.x, t.w);
    } else {
      using weight = num::nll_weight<T>;
      mine.add(static_cast<weight>(t.x), static_cast<weight>(t.w));
    }
  });
}
template <class T>
__global__ void __launch_bounds__(threads) nll_sums(const __grid_constant__ nll_geometry g, num::nll_sum* sums) {
  add_up_block<threads>(sums, [&](num::nll_sum& mine) { add_terms<T, threads>(g, mine); });
}
template <class T>
__global__ void __launch_bounds__(exact_threads<T>)
    nll_exact_sums(const __grid_constant__ nll_geometry g, const int* undecided, exact_sum<T>* sums) {
  if (*undecided == 0) return;
  add_up_block<exact_threads<T>>(sums, [&](exact_sum<T>& mine) { add_terms<T, exact_threads<T>>(g, mine); });
}

// out, total_weight: null where they are not wanted.
template <class T>
__global__ void __launch_bounds__(threads)
    nll_total(const num::nll_sum* sums, int blocks, const __grid_constant__ num::nll_total how, T* out,
              num::nll_weight<T>* total_weight, int* undecided, counter* counters) {
  num::nll_sum mine;
  if (!add_up_blocks<threads>(sums, blocks, mine)) return;
  *undecided = 0;
  const auto write = [&](auto* to, auto r) {
    if (to == nullptr) return;
    if (r.decided) {
      *to = r.value;
    } else {
      *undecided = 1;
    }
    count_elements(counters, r.decided ? tier::binary64 : tier::exact, 1);
  };
  write(out, num::certify_nll<T>(mine, how));
  write(total_weight, num::certify_weights<num::nll_weight<T>>(mine, how));
}
template <class T>
__global__ void __launch_bounds__(exact_threads<T>)
    nll_exact_total(const exact_sum<T>* sums, int blocks, bool mean, const int* undecided, T* out,
                    num::nll_weight<T>* total_weight, counter* counters) {
  if (*undecided == 0) return;
  exact_sum<T> mine;
  if (!add_up_blocks<exact_threads<T>>(sums, blocks, mine)) return;
  if (out != nullptr) {
    const num::decided_value<T> r = num::round_nll<T>(mine, mean);
    *out = r.value;
    if (!r.decided) atomicAdd(counters + undecided_counter, counter{1});
  }
  if (total_weight != nullptr) *total_weight = mine.weights.template round<num::nll_weight<T>>();
}

class nll_work final : public planned {
 public:
  nll_work(const plan::nll_plan& plan, const job& given) : planned(given), p_(plan) {
    if (!p_.has_sums()) return;
    blocks_ = blocks_of_sum(j.device, p_.count, threads);
    exact_blocks_ =
        blocks_of_sum(j.device, p_.count, p_.type == dtype::f64 ? exact_threads<double> : exact_threads<float>);
    space.take(sums_, blocks_);
    space.take_in_turn([&] { space.take(exact_sums_, exact_blocks_); }, [&] { space.take(wide_sums_, exact_blocks_); });
    space.take(undecided_, 1);
  }

 private:
  nll_geometry geometry() const {
    nll_geometry g{};
    g.classes = p_.classes, g.ignore_index = p_.ignore_index;
    g.class_stride = p_.class_stride, g.weight_stride = p_.weight_stride;
    g.x = p_.x, g.targets = p_.targets, g.weight = p_.weight, g.total = p_.total, g.out = p_.out;
    g.elements.count = 1;
    plan::axes shape{}, stride[3]{};
    int rank = 0;
    for (std::size_t d = 0; d < static_cast<std::size_t>(p_.rank); ++d) {
      if (p_.class_of[d] != 0) {
        g.out_class_stride = p_.out_stride[d];
        continue;
      }
      const auto to = static_cast<std::size_t>(rank++);
      shape[to] = p_.shape[d];
      stride[0][to] = p_.x_stride[d], stride[1][to] = p_.target_stride[d], stride[2][to] = p_.out_stride[d];
      g.elements.count *= p_.shape[d];
    }
    g.elements.small = fits_32_bits(g.elements.count) && !j.device.choice.wide;
    strided_axes<3>& axes = g.elements.axes;
    axes.set_shape(rank, shape);
    for (int i = 0; i < 3; ++i) axes.set_stride(i, stride[i]);
    return g;
  }
  // Whether the gradients lie side by side.
  bool is_dense() const {
    std::int64_t step = 1;
    for (auto d = static_cast<std::size_t>(p_.rank); d-- > 0; step *= p_.shape[d]) {
      if (p_.out_stride[d] != step) return false;
    }
    return true;
  }

  void enqueue() override {
    ops::for_each_format<ops::FLOATS>([&]<class T>() {
      if (dtype_of<T> == p_.type) launch<T>(geometry());
    });
  }

  template <class T>
  void launch(nll_geometry g) {
    if (p_.each && p_.count > 0) {
      const unsigned grid = grid_for(j.device, ceil_div(g.elements.count, threads), 32);
      if (p_.op == ops::op_id::nll_loss) {
        launch_kernel<nll_losses<T>>(j, grid, threads, 0, g, j.counters);
      } else {
        g.is_zeroed = is_dense();
        if (g.is_zeroed) {
          const unsigned blocks = grid_for(j.device, ceil_div(p_.count, threads), 32);
          launch_kernel<nll_zeros<T>>(j, blocks, threads, 0, static_cast<T*>(g.out), p_.count);
        }
        launch_kernel<nll_gradients<T>>(j, grid, threads, 0, g, j.counters);
      }
    }
    if (!p_.has_sums()) return;
    const num::nll_total how{p_.reduction == repdl::reduction::mean, p_.weight != nullptr,
                             j.first_tier > tier::binary64, p_.count / (std::int64_t{blocks_} * threads) + 64,
                             p_.count};
    T* const out = p_.each ? nullptr : static_cast<T*>(p_.out);
    auto* const total_weight = static_cast<num::nll_weight<T>*>(p_.total_weight);
    exact_sum<T>* exact = nullptr;
    if constexpr (std::is_same_v<T, double>) {
      exact = wide_sums_;
    } else {
      exact = exact_sums_;
    }
    launch_kernel<nll_sums<T>>(j, blocks_, threads, 0, g, sums_);
    launch_kernel<nll_total<T>>(j, 1, threads, 0, sums_, blocks_, how, out, total_weight, undecided_, j.counters);
    launch_kernel<nll_exact_sums<T>>(j, exact_blocks_, exact_threads<T>, 0, g, undecided_, exact);
    launch_kernel<nll_exact_total<T>>(j, 1, exact_threads<T>, 0, exact, exact_blocks_, how.mean, undecided_, out,
                                      total_weight, j.counters);
  }

  const plan::nll_plan p_;
  int blocks_ = 0;
  int exact_blocks_ = 0;
  num::nll_sum* sums_ = nullptr;
  num::exact_nll_sum<float>* exact_sums_ = nullptr;
  num::exact_nll_sum<double>* wide_sums_ = nullptr;
  int* undecided_ = nullptr;
};

}  // namespace

void prepare(const plan::nll_plan& p, const job& j, dispatch::task& t) { t.emplace<nll_work>(p, j); }

}  // namespace repdl::cuda
