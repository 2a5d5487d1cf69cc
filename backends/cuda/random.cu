// Random numbers: uniform, permutation (contract, section 6). Counter-based, so a thread makes any element.
#include "backends/cuda/launch.cuh"
#include "backends/cuda/radix_sort.hpp"
#include "librepdl/num/uniform.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = 256;

struct random_target {
  std::uint64_t seed;
  std::uint64_t stream;
  std::int64_t count;
  int rank;
  std::int64_t shape[max_rank];
  std::int64_t stride[max_rank];
  void* out;

  __device__ std::int64_t offset(std::int64_t index) const {
    std::int64_t at = 0;
    for (int d = rank - 1; d > 0; --d) {
      const std::int64_t rest = index / shape[d];
      at += (index - rest * shape[d]) * stride[d];
      index = rest;
    }
    return rank == 0 ? 0 : at + index * stride[0];
  }
};

random_target target_of(const plan::random_plan& p) {
  random_target t{};
  t.seed = p.seed;
  t.stream = p.stream;
  t.count = p.count;
  t.rank = p.rank;
  t.out = p.out;
  for (int d = 0; d < p.rank; ++d) {
    t.shape[d] = p.shape[static_cast<std::size_t>(d)];
    t.stride[d] = p.out_stride[static_cast<std::size_t>(d)];
  }
  return t;
}

template <class T>
struct alignas(sizeof(T) * num::per_block<T>) pack {
  T v[num::per_block<T>];
};

// A thread makes the elements of one Philox block at a time. Whole: contiguous and aligned to a pack.
template <class T>
__global__ void __launch_bounds__(threads)
    uniform_kernel(const random_target t, double low, double high, bool whole, bool force_exact, counter* counters) {
  constexpr int per_block = num::per_block<T>;
  const num::uniform_range range(low, high);
  const bool unit = range.is_unit();
  const std::int64_t blocks = (t.count + per_block - 1) / per_block;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  int exact_count = 0;
  for (std::int64_t block = first; block < blocks; block += step) {
    const num::philox_block words = num::philox(t.seed, t.stream, static_cast<std::uint64_t>(block));
    pack<T> made;
    const int here = static_cast<int>(min(std::int64_t{per_block}, t.count - block * per_block));
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
    T* const out = static_cast<T*>(t.out);
    if (whole && here == per_block) {
      reinterpret_cast<pack<T>*>(out)[block] = made;
    } else {
#pragma unroll
      for (int place = 0; place < per_block; ++place) {
        if (place < here) out[t.offset(block * per_block + place)] = made.v[place];
      }
    }
  }
  if (first == 0) count_elements(counters, unit ? tier::proved : tier::double_double, t.count);
  exact_count = __reduce_add_sync(full_warp, exact_count);
  if (lane_of_thread() == 0 && exact_count != 0) {
    count_elements(counters, tier::exact, exact_count);
    // These were counted above: modulo 2^64 this takes them off again.
    count_elements(counters, tier::double_double, -static_cast<std::int64_t>(exact_count));
  }
}

template <class T>
void launch_uniform(const plan::random_plan& p, const job& j) {
  const random_target t = target_of(p);
  const bool whole = (p.count == 1 || (p.rank == 1 && p.out_stride[0] == 1)) &&
                     reinterpret_cast<std::uintptr_t>(p.out) % alignof(pack<T>) == 0;
  const unsigned grid = grid_for(j.device, ceil_div(p.count, std::int64_t{threads} * num::per_block<T>), 32);
  uniform_kernel<T><<<grid, threads, 0, j.stream>>>(t, p.low, p.high, whole, j.first_tier == tier::exact, j.counters);
  check_launch("uniform");
}

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
  for (std::int64_t i = first; i < t.count; i += step) static_cast<std::int64_t*>(t.out)[t.offset(i)] = values[i];
  if (first == 0) count_elements(counters, tier::proved, t.count);
}

}  // namespace

std::size_t random_workspace(const plan::random_plan& p, const properties&) {
  if (p.op != ops::op_id::permutation) return 0;
  carver c(nullptr);
  sort_workspace(p.count, c);
  return c.used();
}

void run_random(const plan::random_plan& p, const job& j) {
  if (p.op == ops::op_id::permutation) {
    carver c(j.workspace);
    const sort_buffers buffers = sort_workspace(p.count, c);
    const unsigned grid = grid_for(j.device, ceil_div(p.count, 2 * threads), 32);
    make_keys<<<grid, threads, 0, j.stream>>>(p.seed, p.stream, p.count, buffers.entries[0]);
    check_launch("permutation");
    sort_by_key(p.count, buffers, j);  // stable: equal keys keep the order of their indices
    write_permutation<<<grid, threads, 0, j.stream>>>(target_of(p), buffers.entries[0].values, j.counters);
    check_launch("permutation");
    return;
  }
  switch (p.out_type) {
    case dtype::f16:
      return launch_uniform<f16>(p, j);
    case dtype::bf16:
      return launch_uniform<bf16>(p, j);
    case dtype::f32:
      return launch_uniform<float>(p, j);
    default:
      return launch_uniform<double>(p, j);
  }
}

}  // namespace repdl::cuda
