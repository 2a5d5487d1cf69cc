// normal and exponential (contract, section 6): the first tier of ops/random/normal.hpp and ops/random/exponential.hpp for every
// element, then one kernel per later tier for those that are left undecided. The kernels know rules only: what the
// elements of a block are.
//
// Undecided elements are marked in a bitmap in the workspace. Word `per_block * g + place` has one bit for each of 32
// neighbouring Philox blocks 32 g + bit and the element at `place` of the block; a warp makes these blocks together and
// writes all their words, so the bitmap needs no clearing.
#include "backends/cuda/random/random.cuh"
#include "librepdl/ops/random/exponential.hpp"
#include "librepdl/ops/random/exponential_exact.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = random_threads;
constexpr int exact_threads = 128;

__device__ const num::normal_tables device_tables = num::normal_table;

// Word i of a block: W_i for f64, else w_i. Without an index, which would put the block in memory.
template <class T>
__device__ std::uint64_t word_of(const num::philox_block& b, int i) {
  if constexpr (num::per_block<T> == 2) {
    return num::wide_word(b, i == 0 ? 0 : 1);
  } else {
    return i < 2 ? (i == 0 ? b.w[0] : b.w[1]) : (i == 2 ? b.w[2] : b.w[3]);
  }
}
template <class T>
inline constexpr int word_bits = num::per_block<T> == 2 ? 64 : 32;

// A rule has the ends of a block's elements in its first tier, and of one element in double-double, for what has 32-bit
// words; and one element's last tier.
struct normal_rule {
  double mean;  // not -0
  double stddev;

  explicit normal_rule(const plan::random_plan& p) : mean(p.low + 0.0), stddev(p.high) {}  // -0 + 0.0 is +0

  template <class T>
  __device__ void first(const num::philox_block& words, double force, const num::normal_tables& tables,
                        num::normal_ends<T>* ends) const {
    if constexpr (num::per_block<T> == 2) {
      const auto z = num::normal_double_double::eval(num::wide_word(words, 0) + 1, num::wide_word(words, 1), tables);
      ends[0] = num::normal_round<T>(mean, stddev, z.cosine, force);
      ends[1] = num::normal_round<T>(mean, stddev, z.sine, force);
    } else {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const auto z = num::normal_binary64::eval(words.w[2 * r], words.w[2 * r + 1]);
        ends[2 * r] = num::normal_round<T>(mean, stddev, z.cosine, force);
        ends[2 * r + 1] = num::normal_round<T>(mean, stddev, z.sine, force);
      }
    }
  }

  template <class T>
  __device__ num::normal_ends<T> double_double(const num::philox_block& words, int place, double force) const {
    const std::uint64_t w1 = word_of<T>(words, place & 2), w2 = word_of<T>(words, place | 1);
    const auto z = num::normal_double_double::eval((w1 + 1) << 32, w2 << 32, device_tables);
    return num::normal_round<T>(mean, stddev, place % 2 != 0 ? z.sine : z.cosine, force);
  }

  template <class T>
  __device__ num::decided_value<T> exact(const num::philox_block& words, int place, int budget) const {
    const std::uint64_t w1 = word_of<T>(words, place & 2), w2 = word_of<T>(words, place | 1);
    return num::normal_exact<T>(w1, w2, word_bits<T>, place % 2 != 0, mean, stddev, budget);
  }
};

struct exponential_rule {
  num::exponential_scale scale;
  double rate;

  explicit exponential_rule(const plan::random_plan& p) : scale(num::exponential_scale::of(p.high)), rate(p.high) {}

  template <class T>
  __device__ void first(const num::philox_block& words, double force, const num::normal_tables& tables,
                        num::normal_ends<T>* ends) const {
#pragma unroll
    for (int place = 0; place < num::per_block<T>; ++place) {
      if constexpr (num::per_block<T> == 2) {
        ends[place] = scale.double_double<T>(num::wide_word(words, place) + 1, tables, force);
      } else {
        ends[place] = scale.binary64<T>(words.w[place], force);
      }
    }
  }

  template <class T>
  __device__ num::normal_ends<T> double_double(const num::philox_block& words, int place, double force) const {
    return scale.double_double<T>((word_of<T>(words, place) + 1) << 32, device_tables, force);
  }

  template <class T>
  __device__ num::decided_value<T> exact(const num::philox_block& words, int place, int budget) const {
    return num::exponential_exact<T>(word_of<T>(words, place), word_bits<T>, rate, budget);
  }
};

// ---- first tier

template <class T>
inline constexpr tier first_tier_of = num::per_block<T> == 2 ? tier::double_double : tier::binary64;

template <class T, class Rule>
__global__ void __launch_bounds__(threads) first_kernel(const random_target t, const Rule rule, double force,
                                                        bool whole, std::uint32_t* undecided, counter* counters) {
  constexpr int per_block = num::per_block<T>;
  __shared__ num::normal_tables tables;
  if constexpr (per_block == 2) {
    constexpr int words = sizeof(tables) / sizeof(double);
    for (int i = threadIdx.x; i < words; i += threads) {
      reinterpret_cast<double*>(&tables)[i] = reinterpret_cast<const double*>(&device_tables)[i];
    }
    __syncthreads();
  }
  const std::int64_t groups = (t.count + 32 * per_block - 1) / (32 * per_block);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * (threads / 32);
  const std::int64_t warp = static_cast<std::int64_t>(blockIdx.x) * (threads / 32) + threadIdx.x / 32;
  for (std::int64_t group = warp; group < groups; group += step) {
    const std::int64_t block = 32 * group + lane_of_thread();
    const std::int64_t rest = t.count - block * per_block;
    const int here = rest < 0 ? 0 : rest < per_block ? static_cast<int>(rest) : per_block;
    num::normal_ends<T> ends[per_block];
    rule.template first<T>(num::philox(t.seed, t.stream, static_cast<std::uint64_t>(block)), force, tables, ends);
    pack<T, per_block> made;
#pragma unroll
    for (int place = 0; place < per_block; ++place) {
      made.v[place] = ends[place].below;
      const bool is_undecided = place < here && num::to_bits(ends[place].below) != num::to_bits(ends[place].above);
      const std::uint32_t bits = __ballot_sync(full_warp, is_undecided);
      if (lane_of_thread() == place) undecided[per_block * group + place] = bits;
    }
    store_block<T, per_block>(t, block, here, whole, made);
  }
  if (first_thread()) count_elements(counters, first_tier_of<T>, t.count);
}

// ---- later tiers

// Calls decide(block, place) -> bool for every bit that is set in the bitmap and clears it where the answer is true. A
// warp looks at 128 words at a time and works off the nonzero ones, one lane per bit. All threads of a warp must call
// it.
template <class Decide>
__device__ void for_undecided(std::uint32_t* undecided, std::int64_t words, int per_block, Decide decide) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (std::int64_t at = 4 * (first - lane_of_thread()); at < words; at += 4 * step) {
    const std::int64_t mine = at + 4 * lane_of_thread();
    uint4 four = {0, 0, 0, 0};
    if (mine + 4 <= words) {
      four = *reinterpret_cast<const uint4*>(undecided + mine);
    } else if (mine < words) {  // an even number of words
      const uint2 two = *reinterpret_cast<const uint2*>(undecided + mine);
      four.x = two.x;
      four.y = two.y;
    }
#pragma unroll 1
    for (int k = 0; k < 4; ++k) {
      const std::uint32_t bits = k == 0 ? four.x : k == 1 ? four.y : k == 2 ? four.z : four.w;
      for (std::uint32_t left = __ballot_sync(full_warp, bits != 0); left != 0; left &= left - 1) {
        const int lane = __ffs(static_cast<int>(left)) - 1;
        const std::uint32_t these = __shfl_sync(full_warp, bits, lane);
        const std::int64_t index = at + 4 * lane + k;
        const bool is_undecided = (these >> lane_of_thread() & 1) != 0;
        const bool still =
            is_undecided && !decide(index / per_block * 32 + lane_of_thread(), static_cast<int>(index % per_block));
        const std::uint32_t rest = __ballot_sync(full_warp, still);
        if (lane_of_thread() == 0) undecided[index] = rest;
      }
    }
  }
}

// f16, bf16, f32.
template <class T, class Rule>
__global__ void __launch_bounds__(threads)
    double_double_kernel(const random_target t, const Rule rule, double force, std::uint32_t* undecided,
                         std::int64_t words, counter* counters) {
  int decided = 0;
  for_undecided(undecided, words, 4, [&](std::int64_t block, int place) {
    const num::philox_block made = num::philox(t.seed, t.stream, static_cast<std::uint64_t>(block));
    const auto ends = rule.template double_double<T>(made, place, force);
    if (num::to_bits(ends.below) != num::to_bits(ends.above)) return false;
    static_cast<T*>(t.out)[t.out_offset(block * 4 + place)] = ends.below;
    ++decided;
    return true;
  });
  count_tiers(counters, tier::binary64, 0, tier::double_double, decided);
}

template <class T, class Rule>
__device__ bool exact_element(const random_target& t, const Rule& rule, int budget, std::int64_t block, int place) {
  constexpr int per_block = num::per_block<T>;
  // A constant 256, so that the longer numbers are not part of the kernel: the driver sets aside a kernel's stack for
  // every thread that the device can hold, 2 GB for 2048 bits.
  const int affordable = budget >= 256 ? 256 : 0;
  const auto r =
      rule.template exact<T>(num::philox(t.seed, t.stream, static_cast<std::uint64_t>(block)), place, affordable);
  if (r.decided) static_cast<T*>(t.out)[t.out_offset(block * per_block + place)] = r.value;
  return r.decided;
}

// One kernel for all formats: it holds the multi-limb functions, which take long to compile. 256 bits at most: of all
// 2^128 pairs of words none can be expected within 2^-190 of a boundary (normal_exact.hpp); where one is, the call
// fails, as it does on the CPU with such a budget.
template <class Rule>
__global__ void __launch_bounds__(exact_threads)
    exact_kernel(const random_target t, const Rule rule, dtype type, int budget, std::uint32_t* undecided,
                 std::int64_t words, counter* counters) {
  int decided = 0;
  int left = 0;
  for_undecided(undecided, words, type == dtype::f64 ? 2 : 4, [&](std::int64_t block, int place) {
    const bool done = type == dtype::f64    ? exact_element<double>(t, rule, budget, block, place)
                      : type == dtype::f32  ? exact_element<float>(t, rule, budget, block, place)
                      : type == dtype::bf16 ? exact_element<bf16>(t, rule, budget, block, place)
                                            : exact_element<f16>(t, rule, budget, block, place);
    ++(done ? decided : left);
    return done;
  });
  const tier first_tier = type == dtype::f64 ? tier::double_double : tier::binary64;
  count_tiers(counters, first_tier, 0, tier::exact, decided);
  left = __reduce_add_sync(full_warp, left);
  if (lane_of_thread() == 0 && left != 0) {
    atomicAdd(counters + undecided_counter, static_cast<counter>(left));
    count_elements(counters, first_tier, -static_cast<std::int64_t>(left));
  }
}

// stddev = 0.
template <class T>
__global__ void __launch_bounds__(threads)
    fill_kernel(const random_target t, double mean, bool whole, counter* counters) {
  constexpr int per_block = num::per_block<T>;
  for_blocks<T, per_block>(t, whole, [&](std::int64_t, const num::philox_block&, int) {
    pack<T, per_block> made;
#pragma unroll
    for (int place = 0; place < per_block; ++place) made.v[place] = num::narrow<T>(mean);
    return made;
  });
  if (first_thread()) count_elements(counters, tier::proved, t.count);
}

template <class T>
std::int64_t undecided_words(std::int64_t count) {
  return ceil_div(count, 32 * num::per_block<T>) * num::per_block<T>;
}

template <class T, class Rule>
class late_work final : public planned {
 public:
  late_work(const plan::random_plan& p, const job& given)
      : planned(given),
        t_(target_of(p)),
        rule_(p),
        whole_(moves_whole<T, per_block>(p, p.out, p.out_stride)),
        words_(undecided_words<T>(p.count)) {
    space.take(undecided_, words_);
  }

 private:
  static constexpr int per_block = num::per_block<T>;

  double force(tier this_tier) const { return j.first_tier > this_tier ? num::infinity : 0.0; }

  void enqueue() override {
    const unsigned grid = random_grid(j.device, t_.count, per_block);
    if constexpr (std::is_same_v<Rule, normal_rule>) {
      if (rule_.stddev == 0) {
        launch_kernel<fill_kernel<T>>(j, grid, threads, 0, t_, rule_.mean, whole_, j.counters);
        return;
      }
    }
    launch_kernel<first_kernel<T, Rule>>(j, grid, threads, 0, t_, rule_, force(first_tier_of<T>), whole_, undecided_,
                                         j.counters);
    if constexpr (per_block == 4) {
      const unsigned small = grid_for(j.device, ceil_div(words_, 4 * threads), 4);
      launch_kernel<double_double_kernel<T, Rule>>(j, small, threads, 0, t_, rule_, force(tier::double_double),
                                                   undecided_, words_, j.counters);
    }
    const unsigned small = grid_for(j.device, ceil_div(words_, 4 * exact_threads), 4);
    launch_kernel<exact_kernel<Rule>>(j, small, exact_threads, 0, t_, rule_, dtype_of<T>, j.last_tier_bits, undecided_,
                                      words_, j.counters);
  }

  const random_target t_;
  const Rule rule_;
  const bool whole_;
  const std::int64_t words_;
  std::uint32_t* undecided_ = nullptr;
};

}  // namespace

void prepare_late(const plan::random_plan& p, const job& j, dispatch::task& t) {
  ops::for_each_format<ops::FLOATS>([&]<class T>() {
    if (dtype_of<T> != p.out_type) return;
    if (p.op == ops::op_id::normal) {
      t.emplace<late_work<T, normal_rule>>(p, j);
    } else {
      t.emplace<late_work<T, exponential_rule>>(p, j);
    }
  });
}

}  // namespace repdl::cuda
