// The inner loops of random numbers: Philox in vectors, and the first tiers of normal, exponential and dropout,
// vectorised by the compiler. Compiled once per instruction set. The bounds are in ops/random/normal.hpp, ops/random/exponential.hpp
// and ops/random/dropout.hpp.
#include "backends/cpu/core/simd.hpp"
#include "backends/cpu/random/philox_lanes.hpp"
#include "backends/cpu/random/random.hpp"
#include "librepdl/ops/random/dropout.hpp"
#include "librepdl/ops/random/exponential.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

void make_words(std::uint64_t seed, std::uint64_t stream, std::uint64_t first, std::int64_t blocks,
                std::uint64_t* words) {
  constexpr int chains = 2;  // rounds depend on each other: two chains at once hide the multiplications' latency
  static_assert(16 % (chains * lanes64) == 0);
  u64v lane{};
  for (int i = 0; i < lanes64; ++i) lane[i] = static_cast<std::uint64_t>(i);
  for (std::int64_t block = 0; block < blocks; block += chains * lanes64) {
    philox_state s[chains];
    for (int j = 0; j < chains; ++j) {
      const u64v index = lane + (first + static_cast<std::uint64_t>(block + j * lanes64));
      s[j] = {index, index >> 32, broadcast<u64v>(stream), broadcast<u64v>(stream >> 32)};
    }
    auto k0 = static_cast<std::uint32_t>(seed);
    auto k1 = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      for (int j = 0; j < chains; ++j) s[j].round(k0, k1);
      k0 += 0x9e3779b9;
      k1 += 0xbb67ae85;
    }
    for (int j = 0; j < chains; ++j) {
      const interleaved w =
          interleave((s[j].c0 & 0xffffffffu) | (s[j].c1 << 32), (s[j].c2 & 0xffffffffu) | (s[j].c3 << 32));
      std::uint64_t* const to = words + 2 * (block + j * lanes64);
      store(to, w.first);
      store(to + lanes64, w.second);
    }
  }
}

// The bit pattern of a number.
template <class T>
[[gnu::always_inline]] inline std::uint64_t pattern(T x) {
  if constexpr (num::is_small_float<T>) {
    return x.bits;
  } else {
    return num::bits_of(x);
  }
}

// A number that is not 0 if the bits of a and b differ.
template <class T>
[[gnu::always_inline]] inline std::uint64_t difference(const num::normal_ends<T>& e) {
  const std::uint64_t d = pattern(e.below) ^ pattern(e.above);
  return sizeof(T) == 8 ? (d | d >> 32) & 0xffffffff : d;
}

// Stores of several numbers at once, and loads of half a word: one access each, of any type's memory.
typedef std::uint32_t any32 __attribute__((may_alias, aligned(2)));
typedef std::uint64_t any64 __attribute__((may_alias, aligned(4)));

// Pair p: its numbers, and what is not 0 where they are undecided. Not part of the loop below, whose own variables the
// compiler would keep in memory.
template <class T>
[[gnu::always_inline]] inline std::uint64_t make_pair(const std::uint64_t* words, std::int64_t p, double mean,
                                                      double stddev, double force, void* out) {
  if constexpr (sizeof(T) == 8) {
    const auto z = num::normal_double_double::eval(words[2 * p] + 1, words[2 * p + 1], num::normal_table);
    const auto cosine = num::normal_round<T>(mean, stddev, z.cosine, force);
    const auto sine = num::normal_round<T>(mean, stddev, z.sine, force);
    static_cast<double*>(out)[2 * p] = cosine.below;
    static_cast<double*>(out)[2 * p + 1] = sine.below;
    return difference(cosine) | difference(sine) << 32;
  } else {
    const auto z = num::normal_binary64::eval(words[p] & 0xffffffff, words[p] >> 32);
    const auto cosine = num::normal_round<T>(mean, stddev, z.cosine, force);
    const auto sine = num::normal_round<T>(mean, stddev, z.sine, force);
    const std::uint64_t both = pattern(cosine.below) | pattern(sine.below) << 8 * sizeof(T);
    if constexpr (sizeof(T) == 4) {
      static_cast<any64*>(out)[p] = both;
    } else {
      static_cast<any32*>(out)[p] = static_cast<std::uint32_t>(both);
    }
    return difference(cosine) | difference(sine) << 32;
  }
}

template <class T>
bool normal_loop(const std::uint64_t* words, std::int64_t pairs, double mean, double stddev, double force, void* out,
                 std::uint32_t* undecided) {
  auto* const both_undecided = reinterpret_cast<any64*>(undecided);
  std::uint64_t any = 0;
#pragma omp simd reduction(| : any)
  for (std::int64_t p = 0; p < pairs; ++p) {
    const std::uint64_t both = make_pair<T>(words, p, mean, stddev, force, out);
    both_undecided[p] = both;
    any |= both;
  }
  return any != 0;
}

template <class T>
[[gnu::always_inline]] inline std::uint32_t make_exponential(const std::uint64_t* words, std::int64_t i,
                                                             const num::exponential_scale& scale, double force,
                                                             T* out) {
  num::normal_ends<T> ends;
  if constexpr (sizeof(T) == 8) {
    ends = scale.double_double<T>(words[i] + 1, num::normal_table, force);
  } else {
    ends = scale.binary64<T>(reinterpret_cast<const any32*>(words)[i], force);  // little-endian
  }
  *out = ends.below;
  return static_cast<std::uint32_t>(difference(ends));
}

template <class T>
bool exponential_loop(const std::uint64_t* words, std::int64_t n, double hi, double lo, double force, void* out,
                      std::uint32_t* undecided) {
  const num::exponential_scale scale = {{hi, lo}};
  auto* const to = static_cast<T*>(out);
  std::uint32_t any = 0;
#pragma omp simd reduction(| : any)
  for (std::int64_t i = 0; i < n; ++i) any |= undecided[i] = make_exponential<T>(words, i, scale, force, to + i);
  return any != 0;
}

[[gnu::always_inline]] inline std::uint32_t drop(bool dropped, const num::dropout_scale& scale, float x, float* out) {
  const std::uint32_t keep = dropped ? 0u : ~0u;
  const num::dropout_scale::rounded r = scale.round(x);
  *out = num::float_of(r.bits & keep);
  return r.undecided & keep;
}

bool dropout_loop(const std::uint64_t* words, const float* x, std::int64_t n, double hi, double lo, double slack,
                  double least, std::uint32_t last_dropped, float* out, std::uint32_t* undecided) {
  const auto* const halves = reinterpret_cast<const any32*>(words);  // little-endian
  const num::dropout_scale scale = {hi, lo, slack, least};
  std::uint32_t any = 0;
#pragma omp simd reduction(| : any)
  for (std::int64_t i = 0; i < n; ++i) any |= undecided[i] = drop(halves[i] <= last_dropped, scale, x[i], out + i);
  return any != 0;
}

[[gnu::always_inline]] inline std::uint32_t drop(bool dropped, const num::wide_dropout_scale& scale, double x,
                                                 double* out) {
  const num::decided_value<double> r = scale.round(x);
  *out = num::double_of(num::bits_of(r.value) & (dropped ? 0 : ~std::uint64_t{0}));
  return !dropped && !r.decided ? 1 : 0;
}

bool wide_dropout_loop(const std::uint64_t* words, const double* x, std::int64_t n, double hi, double lo, double force,
                       std::uint32_t last_dropped, double* out, std::uint32_t* undecided) {
  const auto* const halves = reinterpret_cast<const any32*>(words);  // little-endian
  const num::wide_dropout_scale scale = {{hi, lo}, force};
  std::uint32_t any = 0;
#pragma omp simd reduction(| : any)
  for (std::int64_t i = 0; i < n; ++i) any |= undecided[i] = drop(halves[i] <= last_dropped, scale, x[i], out + i);
  return any != 0;
}

}  // namespace

constinit const random_kernels random_table = {
    make_words,
    {normal_loop<f16>, normal_loop<bf16>, normal_loop<float>, normal_loop<double>},
    {exponential_loop<f16>, exponential_loop<bf16>, exponential_loop<float>, exponential_loop<double>},
    dropout_loop,
    wide_dropout_loop,
};

}  // namespace repdl::cpu::REPDL_ISA
