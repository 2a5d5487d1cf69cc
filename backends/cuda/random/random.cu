// Random numbers: uniform, bernoulli, randint, dropout, permutation (contract, section 6). Counter-based, so a thread
// makes any element.
#include "backends/cuda/random/radix_sort.hpp"
#include "backends/cuda/random/random.cuh"
#include "librepdl/ops/random/dropout.hpp"
#include "librepdl/ops/random/uniform.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = random_threads;

// ---- uniform

template <class T>
__global__ void __launch_bounds__(threads)
    uniform_kernel(const random_target t, double low, double high, bool whole, bool force_exact, counter* counters) {
  constexpr int per_block = num::per_block<T>;
  const num::uniform_range range(low, high);
  const bool unit = range.is_unit();
  int exact_count = 0;
  for_blocks<T, per_block>(t, whole, [&](std::int64_t, const num::philox_block& words, int here) {
    pack<T, per_block> made;
#pragma unroll
    for (int place = 0; place < per_block; ++place) {
      const std::uint64_t n = num::uniform_integer<T>(words, place);
      if (unit) {
        constexpr double ulp = 1.0 / static_cast<double>(std::uint64_t{1} << num::uniform_bits<T>);
        made.v[place] = num::narrow<T>(static_cast<double>(static_cast<std::int64_t>(n)) * ulp);
      } else {
        bool exact = false;
        made.v[place] = range.template element<T>(n, force_exact, &exact);
        exact_count += exact && place < here ? 1 : 0;
      }
    }
    return made;
  });
  count_tiers(counters, unit ? tier::proved : tier::double_double, t.count, tier::exact, exact_count);
}

template <class T>
void prepare_uniform(const plan::random_plan& p, const job& j, dispatch::task& t) {
  constexpr int per_block = num::per_block<T>;
  const bool whole = moves_whole<T, per_block>(p, p.out, p.out_stride);
  plan_launch<uniform_kernel<T>>(t, j, random_grid(j.device, p.count, per_block), threads, target_of(p), p.low, p.high,
                                 whole, j.first_tier == tier::exact, j.counters);
}

// ---- bernoulli, randint

__global__ void __launch_bounds__(threads)
    bernoulli_kernel(const random_target t, std::uint64_t threshold, bool whole, counter* counters) {
  for_blocks<std::uint8_t, 4>(t, whole, [&](std::int64_t, const num::philox_block& words, int) {
    pack<std::uint8_t, 4> made;
#pragma unroll
    for (int place = 0; place < 4; ++place) made.v[place] = words.w[place] < threshold ? 1 : 0;
    return made;
  });
  if (first_thread()) count_elements(counters, tier::proved, t.count);
}

__global__ void __launch_bounds__(threads)
    randint_kernel(const random_target t, std::int64_t low, std::uint64_t range, bool whole, counter* counters) {
  for_blocks<std::int64_t, 2>(t, whole, [&](std::int64_t, const num::philox_block& words, int) {
    pack<std::int64_t, 2> made;
#pragma unroll
    for (int r = 0; r < 2; ++r) made.v[r] = num::random_integer(num::wide_word(words, r), low, range);
    return made;
  });
  if (first_thread()) count_elements(counters, tier::proved, t.count);
}

// ---- dropout

template <class T>
inline constexpr tier first_tier_of_dropout = std::is_same_v<T, double> ? tier::double_double : tier::binary64;

// Rare, so that its registers are not everybody's.
template <class T>
__device__ __noinline__ T dropout_exact(T x, double p) {
  return num::dropout_scale_of<T>::exact(x, p);
}

// threshold: below 2^32 + 1; proved: nothing is rounded (p = 0, or everything is dropped).
template <class T>
__global__ void __launch_bounds__(threads)
    dropout_kernel(const random_target t, double p, std::uint64_t threshold, const num::dropout_scale_of<T> scale,
                   bool proved, bool whole, counter* counters) {
  int exact_count = 0;
  const T* const in = static_cast<const T*>(t.in);
  for_blocks<T, 4>(t, whole, [&](std::int64_t block, const num::philox_block& words, int here) {
    pack<T, 4> x{};
    if (whole && here == 4) {
      x = reinterpret_cast<const pack<T, 4>*>(in)[block];
    } else {
#pragma unroll
      for (int place = 0; place < 4; ++place) {
        if (place < here) x.v[place] = in[t.in_offset(block * 4 + place)];
      }
    }
    pack<T, 4> made;
#pragma unroll
    for (int place = 0; place < 4; ++place) {
      T result{};
      if (words.w[place] >= threshold) {
        if (proved) {
          result = num::canonical(x.v[place]);
        } else {
          const auto r = scale.round(x.v[place]);
          bool undecided;
          if constexpr (std::is_same_v<T, double>) {
            result = r.value;
            undecided = !r.decided;
          } else {
            result = num::float_of(r.bits);
            undecided = r.undecided != 0;
          }
          if (undecided) {
            result = dropout_exact(x.v[place], p);
            exact_count += place < here ? 1 : 0;
          }
        }
      }
      made.v[place] = result;
    }
    return made;
  });
  count_tiers(counters, proved ? tier::proved : first_tier_of_dropout<T>, t.count, tier::exact, exact_count);
}

template <class T>
void prepare_dropout(const plan::random_plan& p, const job& j, dispatch::task& t) {
  const bool all = p.threshold > 0xffffffff;  // every word is below it
  const bool whole = moves_whole<T, 4>(p, p.out, p.out_stride) && moves_whole<T, 4>(p, p.in, p.in_stride);
  plan_launch<dropout_kernel<T>>(t, j, random_grid(j.device, p.count, 4), threads, target_of(p), p.p, p.threshold,
                                 num::dropout_scale_of<T>::of(all ? 0.0 : p.p, j.first_tier > first_tier_of_dropout<T>),
                                 all || p.threshold == 0, whole, j.counters);
}

// ---- permutation

__global__ void __launch_bounds__(threads)
    make_keys(std::uint64_t seed, std::uint64_t stream, std::int64_t count, sort_entries to) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; 2 * block < count;
       block += step) {
    const num::philox_block words = num::philox(seed, stream, static_cast<std::uint64_t>(block));
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::int64_t i = 2 * block + r;
      if (i < count) {
        to.keys[i] = num::wide_word(words, r);
        to.values[i] = i;
      }
    }
  }
}

__global__ void __launch_bounds__(threads)
    write_permutation(const random_target t, const std::int64_t* values, counter* counters) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  for (std::int64_t i = first; i < t.count; i += step) {
    static_cast<std::int64_t*>(t.out)[t.out_offset(i)] = values[i];
  }
  if (first == 0) count_elements(counters, tier::proved, t.count);
}

class permutation_work final : public planned {
 public:
  permutation_work(const plan::random_plan& p, const job& given) : planned(given), t_(target_of(p)) {
    take_workspace(buffers_, p.count, space);
  }

 private:
  void enqueue() override {
    const unsigned grid = random_grid(j.device, t_.count, 2);
    launch_kernel<make_keys>(j, grid, threads, 0, t_.seed, t_.stream, t_.count, buffers_.entries[0]);
    sort_by_key(t_.count, buffers_, j);  // stable: equal keys keep the order of their indices
    launch_kernel<write_permutation>(j, grid, threads, 0, t_, buffers_.entries[0].values, j.counters);
  }

  const random_target t_;
  sort_buffers buffers_{};
};

}  // namespace

void prepare(const plan::random_plan& p, const job& j, dispatch::task& t) {
  ops::for_operation<ops::family::random>(p.op, [&]<class Op>() {
    if constexpr (Op::id == ops::op_id::permutation) {
      t.emplace<permutation_work>(p, j);
    } else if constexpr (Op::id == ops::op_id::uniform) {
      ops::for_each_format<ops::FLOATS>([&]<class T>() {
        if (dtype_of<T> == p.out_type) prepare_uniform<T>(p, j, t);
      });
    } else if constexpr (ops::is_one_of<Op, ops::op_id::normal, ops::op_id::exponential>) {
      prepare_late(p, j, t);
    } else if constexpr (Op::id == ops::op_id::bernoulli) {
      plan_launch<bernoulli_kernel>(t, j, random_grid(j.device, p.count, 4), threads, target_of(p), p.threshold,
                                    moves_whole<std::uint8_t, 4>(p, p.out, p.out_stride), j.counters);
    } else if constexpr (Op::id == ops::op_id::randint) {
      plan_launch<randint_kernel>(t, j, random_grid(j.device, p.count, 2), threads, target_of(p), p.first, p.range,
                                  moves_whole<std::int64_t, 2>(p, p.out, p.out_stride), j.counters);
    } else if constexpr (ops::is_one_of<Op, ops::op_id::dropout, ops::op_id::dropout_backward>) {
      p.out_type == dtype::f64 ? prepare_dropout<double>(p, j, t) : prepare_dropout<float>(p, j, t);
    } else {
      static_assert(ops::has_no_case<Op>, "a random operation without a kernel");
    }
  });
}

}  // namespace repdl::cuda
