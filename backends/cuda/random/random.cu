// Random numbers: uniform, bernoulli, randint, dropout, permutation (contract, section 6). Counter-based, so a thread
// makes any element.
#include "backends/cuda/random/radix_sort.hpp"
#include "backends/cuda/random/random.cuh"
#include "librepdl/ops/dropout.hpp"
#include "librepdl/ops/uniform.hpp"

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
void launch_uniform(const plan::random_plan& p, const job& j) {
  constexpr int per_block = num::per_block<T>;
  const bool whole = moves_whole<T, per_block>(p, p.out, p.out_stride);
  launch_kernel<uniform_kernel<T>>(j, random_grid(j.device, p.count, per_block), threads, 0, target_of(p), p.low,
                                   p.high, whole, j.first_tier == tier::exact, j.counters);
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

// Rare, so that its registers are not everybody's.
__device__ __noinline__ float dropout_exact(float x, double p) { return num::dropout_scale::exact(x, p); }

// threshold: below 2^32 + 1; proved: nothing is rounded (p = 0, or everything is dropped).
__global__ void __launch_bounds__(threads)
    dropout_kernel(const random_target t, double p, std::uint64_t threshold, const num::dropout_scale scale,
                   bool proved, bool whole, counter* counters) {
  int exact_count = 0;
  for_blocks<float, 4>(t, whole, [&](std::int64_t block, const num::philox_block& words, int here) {
    pack<float, 4> x{};
    if (whole && here == 4) {
      x = reinterpret_cast<const pack<float, 4>*>(t.in)[block];
    } else {
#pragma unroll
      for (int place = 0; place < 4; ++place) {
        if (place < here) x.v[place] = t.in[t.in_offset(block * 4 + place)];
      }
    }
    pack<float, 4> made;
#pragma unroll
    for (int place = 0; place < 4; ++place) {
      float result = 0.0f;
      if (words.w[place] >= threshold) {
        if (proved) {
          result = num::canonical(x.v[place]);
        } else {
          const num::dropout_scale::rounded r = scale.round(x.v[place]);
          result = num::float_of(r.bits);
          if (r.open != 0) {
            result = dropout_exact(x.v[place], p);
            exact_count += place < here ? 1 : 0;
          }
        }
      }
      made.v[place] = result;
    }
    return made;
  });
  count_tiers(counters, proved ? tier::proved : tier::binary64, t.count, tier::exact, exact_count);
}

void launch_dropout(const plan::random_plan& p, const job& j) {
  const bool all = p.threshold > 0xffffffff;  // every word is below it
  const bool whole = moves_whole<float, 4>(p, p.out, p.out_stride) && moves_whole<float, 4>(p, p.in, p.in_stride);
  launch_kernel<dropout_kernel>(j, random_grid(j.device, p.count, 4), threads, 0, target_of(p), p.p, p.threshold,
                                num::dropout_scale::of(all ? 0.0 : p.p, j.first_tier > tier::binary64),
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

void launch_permutation(const plan::random_plan& p, const job& j) {
  carver c(j.workspace);
  const sort_buffers buffers = sort_workspace(p.count, c);
  const unsigned grid = random_grid(j.device, p.count, 2);
  launch_kernel<make_keys>(j, grid, threads, 0, p.seed, p.stream, p.count, buffers.entries[0]);
  sort_by_key(p.count, buffers, j);  // stable: equal keys keep the order of their indices
  launch_kernel<write_permutation>(j, grid, threads, 0, target_of(p), buffers.entries[0].values, j.counters);
}

}  // namespace

plan::checked_size workspace(const plan::random_plan& p, const properties&) {
  if (p.op == ops::op_id::normal) return normal_workspace(p);
  if (p.op != ops::op_id::permutation) return 0;
  carver c(nullptr);
  sort_workspace(p.count, c);
  return c.used();
}

void run(const plan::random_plan& p, const job& j) {
  ops::for_operation<ops::family::random>(p.op, [&]<class Op>() {
    if constexpr (Op::id == ops::op_id::permutation) {
      launch_permutation(p, j);
    } else if constexpr (Op::id == ops::op_id::uniform) {
      ops::for_each_format<ops::FLOATS>([&]<class T>() {
        if (dtype_of<T> == p.out_type) launch_uniform<T>(p, j);
      });
    } else if constexpr (Op::id == ops::op_id::normal) {
      run_normal(p, j);
    } else if constexpr (Op::id == ops::op_id::bernoulli) {
      launch_kernel<bernoulli_kernel>(j, random_grid(j.device, p.count, 4), threads, 0, target_of(p), p.threshold,
                                      moves_whole<std::uint8_t, 4>(p, p.out, p.out_stride), j.counters);
    } else if constexpr (Op::id == ops::op_id::randint) {
      launch_kernel<randint_kernel>(j, random_grid(j.device, p.count, 2), threads, 0, target_of(p), p.first, p.range,
                                    moves_whole<std::int64_t, 2>(p, p.out, p.out_stride), j.counters);
    } else if constexpr (ops::is_one_of<Op, ops::op_id::dropout, ops::op_id::dropout_backward>) {
      launch_dropout(p, j);
    } else {
      static_assert(ops::has_no_case<Op>, "a random operation without a kernel");
    }
  });
}

}  // namespace repdl::cuda
