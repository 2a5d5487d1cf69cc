// Calls that run together (plan::map_plan::list): one launch for many tensors side by side, whose addresses and lengths travel in its
// parameters. Elements are counted in units of least_block, none of which crosses tensors; a block takes one, and finds its tensor by
// bisection.
#pragma once

#include <span>

#include "backends/cuda/map/map.cuh"

namespace repdl::cuda {
namespace {

template <class F>
struct operand_list {
  operands<F>
      all;  // what is the same for all: options, numbers, strides, which are 1, or 0 of an operand that is one element; count: of all
  struct call {
    const void* in[F::arity];
    void* out;
    std::int64_t count;
    std::int32_t first_unit;
    bool packed;  // every operand with stride 1 is aligned to packs
  };
  static constexpr int most = (30720 - sizeof(operands<F>)) / sizeof(call);  // kernel parameters: 32764 bytes
  int calls;
  std::int32_t units;
  call at[most];

  // That of a unit. As many steps for each: the lanes of a warp stay together.
  __device__ const call& call_of(std::int64_t unit) const {
    int found = 0;
#pragma unroll
    for (int step = 512; step > 0; step /= 2) {
      const int next = found + step;
      if (next < calls && at[next].first_unit <= unit) found = next;
    }
    return at[found];
  }
  static_assert(most <= 1024);
};

template <class F>
__global__ void __launch_bounds__(threads, least_blocks<F>)
    map_list(const __grid_constant__ operand_list<F> list, counter* counters) {
  using In = typename F::input;
  using Out = typename F::output;
  undecided_in_block<F> left_undecided(undecided_in_block<F>::memory());
  const typename operand_list<F>::call& call = list.call_of(blockIdx.x);
  operands<F> p = list.all;
#pragma unroll
  for (int a = 0; a < F::arity; ++a) p.in[a] = call.in[a];
  p.out = call.out;
  if (blockIdx.x == 0 && threadIdx.x == 0) count_elements(counters, F::first, list.all.count);
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) - call.first_unit) * least_block;
  const int rest = static_cast<int>(call.count - first < least_block ? call.count - first : least_block);
  const bool packed = call.packed && rest == least_block;
  // The place of element j in the unit.
  const auto place = [&](int j) {
    const int t = static_cast<int>(threadIdx.x);
    return packed ? t * batch + j : t + j * threads;
  };
  pack<In> x[F::arity];
#pragma unroll
  for (int a = 0; a < F::arity; ++a) {
    if (p.in[a] == nullptr || p.axes.stride[a][0] == 0) {
      const In value = read_element(p, a, 0);
#pragma unroll
      for (int j = 0; j < batch; ++j) x[a].v[j] = value;
    } else if (packed) {
      x[a] = reinterpret_cast<const pack<In>*>(static_cast<const In*>(p.in[a]) + first)[threadIdx.x];
    } else {
#pragma unroll
      for (int j = 0; j < batch; ++j) x[a].v[j] = place(j) < rest ? read_element(p, a, first + place(j)) : In{};
    }
  }
  pack<Out> y;
  unsigned undecided = apply(p, x, y);
  Out* const out = static_cast<Out*>(p.out) + first;
  if (packed && undecided == 0) {
    reinterpret_cast<pack<Out>*>(out)[threadIdx.x] = y;
  } else {
#pragma unroll
    for (int j = 0; j < batch; ++j) {
      if (place(j) >= rest) {
        undecided &= ~(1u << j);
      } else if ((undecided >> j & 1) == 0) {
        out[place(j)] = y.v[j];
      }
    }
  }
  left_undecided.leave(p, undecided, place);
  left_undecided.finish(p, least_block, [&](std::int64_t i, int a) {
    return (first + i - static_cast<std::int64_t>(blockIdx.x) * least_block) * p.axes.stride[a][0];
  });
}

template <class F>
__global__ void __launch_bounds__(settle_threads)
    settle_list(const __grid_constant__ operand_list<F> list, std::int64_t words, counter* counters) {
  const std::int64_t count = std::int64_t{list.units} * least_block;
  const auto element = [&](std::int64_t i, typename F::input(&x)[F::arity]) {
    const typename operand_list<F>::call& call = list.call_of(i / least_block);
    const std::int64_t at = i - call.first_unit * least_block;
#pragma unroll
    for (int a = 0; a < F::arity; ++a) {
      x[a] = call.in[a] == nullptr ? list.all.number[a]
                                   : static_cast<const typename F::input*>(call.in[a])[at * list.all.axes.stride[a][0]];
    }
    return static_cast<typename F::output*>(call.out) + at;
  };
  settle_words(list.all, count, words, least_block / 32, counters, element);
}

// ---- host

// Whether a call's operands lie as those of a list do: the output side by side, and of each input all elements, or one.
template <class F>
bool fits_list(const plan::map_plan& c) {
  if (c.rank > 1 || (c.rank == 1 && c.out_stride[0] != 1)) return false;
  for (int a = 0; a < F::arity; ++a) {
    if (c.in[a].data != nullptr && c.rank == 1 && c.in[a].stride[0] != 0 && c.in[a].stride[0] != 1) return false;
  }
  return true;
}

// Lists of calls, and launches of those that are full.
template <class F>
class list_builder {
  static_assert(F::booleans == 0);

 public:
  list_builder(const job& j, const undecided_elements& undecided) : j_(j), undecided_(undecided) {}

  void add(const plan::map_plan& c) {
    if (list_.calls != 0 && !joins(c)) flush();
    if (list_.calls == 0) begin(c);
    typename operand_list<F>::call& to = list_.at[list_.calls++];
    to.packed = aligned<typename F::output>(c.out);
    for (int a = 0; a < F::arity; ++a) {
      to.in[a] = c.in[a].data;
      to.packed = to.packed && (is_one(c, a) || aligned_input<F>(c.in[a].data, a));
    }
    to.out = c.out;
    to.count = c.count;
    to.first_unit = list_.units;
    list_.units += static_cast<std::int32_t>(ceil_div(c.count, least_block));
    list_.all.count += c.count;
    if (list_.calls == operand_list<F>::most) flush();
  }
  void flush() {
    if (list_.calls == 0) return;
    launch_kernel<map_list<F>>(j_, list_.units, threads, 0, list_, j_.counters);
    if constexpr (settles_late<F>) {
      const std::int64_t count = std::int64_t{list_.units} * least_block;
      const std::int64_t each = settled_words(count, least_block, settle_threads, j_.device);
      launch_kernel<settle_list<F>>(j_, ceil_div(count / 32, each), settle_threads, 0, list_, each, j_.counters);
    }
    list_.calls = 0;
  }

 private:
  // Numbers, and operands of one element beside more of them.
  static bool is_one(const plan::map_plan& c, int a) {
    return c.in[a].data == nullptr || (c.rank == 1 && c.in[a].stride[0] == 0);
  }
  void begin(const plan::map_plan& c) {
    operands<F>& all = list_.all;
    set_operands(all, c);
    all.count = 0;
    for (int a = 0; a < F::arity; ++a) all.axes.stride[a][0] = is_one(c, a) ? 0 : 1;
    if constexpr (settles_late<F>) {
      all.skip_test = j_.first_tier > F::first;
      all.last_tier_bits = j_.last_tier_bits;
      all.undecided = undecided_;
    }
    list_.units = 0;
    first_ = &c;
  }
  // Whether a call has the options and numbers of the list, and place in it.
  bool joins(const plan::map_plan& c) const {
    if (std::memcmp(c.options, first_->options, sizeof c.options) != 0) return false;
    if (ceil_div(c.count, least_block) > INT32_MAX - list_.units) return false;
    for (int a = 0; a < F::arity; ++a) {
      const plan::map_plan::operand &x = c.in[a], &y = first_->in[a];
      if (is_one(c, a) != is_one(*first_, a) || (x.data == nullptr) != (y.data == nullptr)) return false;
      if (x.data == nullptr && x.number != y.number) return false;
    }
    return true;
  }

  const job& j_;
  const undecided_elements undecided_;
  const plan::map_plan* first_ = nullptr;
  operand_list<F> list_{};
};

template <class F>
void launch_list(std::span<const plan::map_plan> calls, const job& j, const map_space& space) {
  list_builder<F> list(j, space.undecided);
  for (const plan::map_plan& c : calls) {
    if (fits_list<F>(c)) {
      list.add(c);
    } else {
      list.flush();
      launch<F>(c, j, space.of_call(c, j));
    }
  }
  list.flush();
}

}  // namespace
}  // namespace repdl::cuda
