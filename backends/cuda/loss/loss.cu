// Losses and their gradients.
//
// With an output per element they are launched as elementwise operations (loss_each.cuh). A sum or mean is five launches:
//   loss_sums        each block adds up elements in binary64 (num::loss_sum), its sum goes to the workspace
//   loss_total       one block joins them; the rounding test decides, or sets a flag in the workspace
//   loss_exact_sums  if the flag is set: each block adds up elements exactly
//   loss_exact_total if the flag is set: one block joins them and rounds
// Losses with transcendental terms instead have loss_part_sums and loss_part_total, of 256 and of 512 bits: 2048 would take 2
// gigabytes of the device's memory for stacks.
// The launches do not depend on the data: no host round trip.
#include <utility>

#include "backends/cuda/core/block_sums.cuh"
#include "backends/cuda/core/launch.cuh"
#include "backends/cuda/loss/loss_each.hpp"
#include "librepdl/ops/losses/losses_entropy.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = 256;
// Shared memory has their sums.
template <class T>
constexpr int exact_threads = num::is_wide_loss<T> ? 64 : 128;
constexpr int part_threads = 64;

template <int Inputs>
struct operands {
  const void* in[Inputs];
  void* out;
  shared_elements<Inputs + 1> elements;  // the inputs, then the output
};

// use(x...) of the numbers of an element. An absent operand's are 1.
template <class T>
__device__ double number_of(const void* data, std::int64_t offset) {
  return data == nullptr ? 1.0 : num::widen(static_cast<const T*>(data)[offset]);
}
template <class T, int Inputs, int N, class Use, int... K>
__device__ auto with_numbers(const operands<Inputs>& o, const std::int64_t (&at)[N], const Use& use,
                             std::integer_sequence<int, K...>) {
  return use(number_of<T>(o.in[K], at[K])...);
}
template <class T, int Inputs, int N, class Use>
__device__ auto with_numbers(const operands<Inputs>& o, const std::int64_t (&at)[N], const Use& use) {
  return with_numbers<T>(o, at, use, std::make_integer_sequence<int, Inputs>());
}

template <class Op>
constexpr int inputs_of = static_cast<int>(std::size(Op::in));

// ---- sums

template <class Op, class T>
__global__ void __launch_bounds__(threads)
    loss_sums(const __grid_constant__ operands<inputs_of<Op>> o, const __grid_constant__ ops::loss_constants k,
              num::loss_sum* sums) {
  add_up_block<threads>(sums, [&](num::loss_sum& mine) {
    o.elements.template for_each<threads, inputs_of<Op>>([&](const std::int64_t(&at)[inputs_of<Op>]) {
      with_numbers<T>(o, at, [&](auto... x) { num::add_loss<Op, T>(mine, k, x...); });
    });
  });
}

// height: of the tree of additions.
template <class T>
__global__ void __launch_bounds__(threads)
    loss_total(const num::loss_sum* sums, int blocks, std::int64_t height,
               const __grid_constant__ ops::loss_constants k, T* out, int* undecided, counter* counters) {
  num::loss_sum mine;
  if (!add_up_blocks<threads>(sums, blocks, mine)) return;
  const num::decided_value<T> r = num::certify_total<T>(mine, height, k);
  *undecided = r.decided ? 0 : 1;
  if (r.decided) *out = r.value;
  count_elements(counters, r.decided ? tier::binary64 : tier::exact, 1);
}

template <class Op, class T>
__global__ void __launch_bounds__(exact_threads<T>)
    loss_exact_sums(const __grid_constant__ operands<2> o, const __grid_constant__ ops::loss_constants k,
                    const int* undecided, num::exact_loss_sum<T>* sums) {
  if (*undecided == 0) return;
  add_up_block<exact_threads<T>>(sums, [&](num::exact_loss_sum<T>& mine) {
    o.elements.template for_each<exact_threads<T>, 2>([&](const std::int64_t(&at)[2]) {
      num::add_exactly<Op>(mine, k, static_cast<const T*>(o.in[0])[at[0]], static_cast<const T*>(o.in[1])[at[1]]);
    });
  });
}

template <class Op, class T>
__global__ void __launch_bounds__(exact_threads<T>)
    loss_exact_total(const num::exact_loss_sum<T>* sums, int blocks, const __grid_constant__ ops::loss_constants k,
                     const int* undecided, T* out, counter* counters) {
  if (*undecided == 0) return;
  num::exact_loss_sum<T> mine;
  if (!add_up_blocks<exact_threads<T>>(sums, blocks, mine)) return;
  const num::decided_value<T> r = num::exact_total<Op, T>(mine, k);
  *out = r.value;
  if (!r.decided) atomicAdd(counters + undecided_counter, counter{1});
}

// The same for parts, of a level; the last one gives up on what it leaves undecided.
template <class Op, class T, int L>
__global__ void __launch_bounds__(part_threads)
    loss_part_sums(const __grid_constant__ operands<inputs_of<Op>> o, const __grid_constant__ ops::loss_constants k,
                   const int* undecided, num::parts_sum<T, L>* sums) {
  if (*undecided == 0) return;
  add_up_block<part_threads>(sums, [&](num::parts_sum<T, L>& mine) {
    o.elements.template for_each<part_threads, inputs_of<Op>>([&](const std::int64_t(&at)[inputs_of<Op>]) {
      with_numbers<T>(o, at, [&](auto... x) { num::add_parts<Op>(mine, k, x...); });
    });
  });
}

template <class T, int L>
__global__ void __launch_bounds__(part_threads)
    loss_part_total(const num::parts_sum<T, L>* sums, int blocks, const __grid_constant__ ops::loss_constants k,
                    int* undecided, T* out) {
  if (*undecided == 0) return;
  num::parts_sum<T, L> mine;
  if (!add_up_blocks<part_threads>(sums, blocks, mine)) return;
  const num::decided_value<T> r = num::round_parts<T, L>(mine, k.n);
  if (!r.decided) return;
  *out = r.value;
  *undecided = 0;
}
__global__ void loss_give_up(const int* undecided, counter* counters) {
  if (*undecided == 0) return;
  atomicAdd(counters + undecided_counter, counter{1});
  count_elements(counters, tier::exact, -1);
}

// The sum of nothing is +0, the mean of nothing NaN.
template <class T>
__global__ void loss_of_nothing(T* out, bool mean, counter* counters) {
  *out = num::from_bits<T>(mean ? num::format<T>::nan : num::storage_of<T>{0});
  count_elements(counters, tier::proved, 1);
}

// ---- host

template <int Inputs>
operands<Inputs> operands_of(const plan::loss_plan& p, const job& j) {
  operands<Inputs> o{};
  o.out = p.out;
  o.elements.count = p.count;
  o.elements.small = fits_32_bits(p.count) && !j.device.choice.wide;
  o.elements.axes.set_shape(p.rank, p.shape);
  for (int k = 0; k < Inputs; ++k) {
    o.in[k] = p.in[k].data;
    o.elements.axes.set_stride(k, p.in[k].stride);
  }
  o.elements.axes.set_stride(Inputs, p.out_stride);
  return o;
}

class loss_work final : public planned {
 public:
  loss_work(const plan::loss_plan& plan, const job& given) : planned(given), p_(plan) {
    if (p_.each) take_undecided(space, each_, p_.count, j);
    if (p_.each || p_.count == 0) return;
    blocks_ = blocks_of_sum(j.device, p_.count, threads);
    exact_blocks_ =
        blocks_of_sum(j.device, p_.count, p_.type == dtype::f64 ? exact_threads<double> : exact_threads<float>);
    part_blocks_ = blocks_of_sum(j.device, p_.count, part_threads);
    space.take(sums_, blocks_);
    space.take_in_turn([&] { space.take(exact_sums_, exact_blocks_); }, [&] { space.take(wide_sums_, exact_blocks_); },
                       [&] { space.take(parts_of_4_, part_blocks_); }, [&] { space.take(parts_of_8_, part_blocks_); });
    space.take(undecided_, 1);
  }

 private:
  void enqueue() override {
    ops::for_operation<ops::family::loss>(p_.op, [&]<class Op>() {
      ops::for_each_format<Op::out[0].types>([&]<class T>() {
        if (dtype_of<T> == p_.type) launch<Op, T>();
      });
    });
  }

  template <class Op, class T>
  void launch() {
    constexpr bool gradient = ops::is_gradient<Op>;
    const ops::loss_constants k =
        num::make_loss_constants(p_.parameter, p_.divisor, gradient, j.first_tier > tier::binary64);
    if (p_.each) {
      return [&]<int... Part>(std::integer_sequence<int, Part...>) { (launch_each<Part>(p_, k, j, each_), ...); }
      (std::make_integer_sequence<int, loss_parts>());
    }
    if constexpr (!gradient) {
      const auto o = operands_of<inputs_of<Op>>(p_, j);
      T* const out = static_cast<T*>(p_.out);
      if (p_.count == 0) {
        return launch_kernel<loss_of_nothing<T>>(j, 1, 1, 0, out, p_.divisor == 0, j.counters);
      }
      const std::int64_t height = p_.count / (std::int64_t{blocks_} * threads) + 64;
      launch_kernel<loss_sums<Op, T>>(j, blocks_, threads, 0, o, k, sums_);
      launch_kernel<loss_total<T>>(j, 1, threads, 0, sums_, blocks_, height, k, out, undecided_, j.counters);
      if constexpr (num::has_parts<Op>) {
        launch_parts<Op, T>(o, k, parts_of_4_, out);
        launch_parts<Op, T>(o, k, parts_of_8_, out);
        launch_kernel<loss_give_up>(j, 1, 1, 0, undecided_, j.counters);
      } else {
        const auto launch_exact = [&](auto* sums) {
          launch_kernel<loss_exact_sums<Op, T>>(j, exact_blocks_, exact_threads<T>, 0, o, k, undecided_, sums);
          launch_kernel<loss_exact_total<Op, T>>(j, 1, exact_threads<T>, 0, sums, exact_blocks_, k, undecided_, out,
                                                 j.counters);
        };
        if constexpr (num::is_wide_loss<T>) {
          launch_exact(wide_sums_);
        } else {
          launch_exact(exact_sums_);
        }
      }
    }
  }

  template <class Op, class T, int L>
  void launch_parts(const operands<inputs_of<Op>>& o, const ops::loss_constants& k, num::wide_loss_parts<L>* memory,
                    T* out) {
    if (64 * L > j.last_tier_bits) return;
    auto* const sums = reinterpret_cast<num::parts_sum<T, L>*>(memory);
    launch_kernel<loss_part_sums<Op, T, L>>(j, part_blocks_, part_threads, 0, o, k, undecided_, sums);
    launch_kernel<loss_part_total<T, L>>(j, 1, part_threads, 0, sums, part_blocks_, k, undecided_, out);
  }

  const plan::loss_plan p_;
  undecided_elements each_;
  int blocks_ = 0;
  int exact_blocks_ = 0;
  int part_blocks_ = 0;
  num::loss_sum* sums_ = nullptr;
  num::distance_sum* exact_sums_ = nullptr;
  num::wide_loss_sum* wide_sums_ = nullptr;
  num::wide_loss_parts<4>* parts_of_4_ = nullptr;
  num::wide_loss_parts<8>* parts_of_8_ = nullptr;
  int* undecided_ = nullptr;
};

}  // namespace

void prepare(const plan::loss_plan& p, const job& j, dispatch::task& t) { t.emplace<loss_work>(p, j); }

}  // namespace repdl::cuda
