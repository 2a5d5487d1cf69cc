// Random numbers: uniform and permutation. One driver for all instruction sets; the words are integers.
#include <algorithm>
#include <cstring>

#include "backends/cpu/isa.hpp"
#include "backends/cpu/parallel.hpp"
#include "librepdl/num/uniform.hpp"

namespace repdl::cpu {
namespace {

// ---- uniform

constexpr std::int64_t block = 1024;  // elements per step; a multiple of every per_block

// Elements first .. first + n - 1, first a multiple of per_block. Returns how many the integers decided.
template <class T>
std::int64_t fill(const plan::random_plan& p, const num::uniform_range& range, bool force_exact, std::int64_t first,
                  std::int64_t n, T* out) {
  constexpr int per_block = num::per_block<T>;
  const bool unit = range.is_unit();
  std::int64_t exact_count = 0;
  for (std::int64_t i = 0; i < n; i += per_block) {
    const num::philox_block words = num::philox(p.seed, p.stream, static_cast<std::uint64_t>((first + i) / per_block));
    const int here = static_cast<int>(std::min<std::int64_t>(per_block, n - i));
    for (int place = 0; place < here; ++place) {
      const std::uint64_t u = num::uniform_integer<T>(words, place);
      if (unit) {
        constexpr double ulp = 1.0 / static_cast<double>(std::uint64_t{1} << num::uniform_bits<T>);
        out[i + place] = num::narrow<T>(static_cast<double>(u) * ulp);
      } else {
        bool exact = false;
        out[i + place] = range.element<T>(u, force_exact, &exact);
        exact_count += exact ? 1 : 0;
      }
    }
  }
  return exact_count;
}

// Writes n elements of the iteration space, from element `first` on.
template <class T>
void scatter(const plan::random_plan& p, const T* from, std::int64_t first, std::int64_t n) {
  T* out = static_cast<T*>(p.out);
  const auto last = static_cast<std::size_t>(p.rank - 1);
  while (n > 0) {
    std::int64_t rest = first;
    std::int64_t offset = 0;
    for (std::size_t a = last + 1; a-- > 0;) {
      offset += rest % p.shape[a] * p.out_stride[a];
      rest /= p.shape[a];
    }
    const std::int64_t run = std::min(n, p.shape[last] - first % p.shape[last]);
    for (std::int64_t i = 0; i < run; ++i) out[offset + i * p.out_stride[last]] = from[i];
    from += run;
    first += run;
    n -= run;
  }
}

template <class T>
void uniform(const plan::random_plan& p, const dispatch::launch& l, counters& count) {
  const num::uniform_range range(p.low, p.high);
  const bool force_exact = l.first_tier == tier::exact;
  const bool contiguous = p.rank == 0 || (p.rank == 1 && p.out_stride[0] == 1);
  const int threads = static_cast<int>(std::min<std::int64_t>(l.threads, (p.count + 4 * block - 1) / (4 * block)));
  parallel(threads, [&](int thread, int workers) {
    T buffer[block];
    std::int64_t exact = 0;
    const repdl::cpu::range mine = share(p.count, thread, workers, block);
    for (std::int64_t first = mine.begin; first < mine.end; first += block) {
      const std::int64_t n = std::min(block, mine.end - first);
      if (contiguous) {
        exact += fill<T>(p, range, force_exact, first, n, static_cast<T*>(p.out) + first);
      } else {
        exact += fill<T>(p, range, force_exact, first, n, buffer);
        scatter(p, buffer, first, n);
      }
    }
    count.add(tier::exact, exact);
    count.add(range.is_unit() ? tier::proved : tier::double_double, mine.end - mine.begin - exact);
  });
}

// ---- permutation
//
// The keys are uniform 64-bit words, so their leading bits cut them into buckets of nearly equal size. Entries are
// moved into their buckets, in an order that depends on the threads, and each bucket is sorted by (key, index): a total
// order, so the result does not depend on it.

struct entry {
  std::uint64_t key;
  std::int64_t index;
  friend bool operator<(const entry& a, const entry& b) { return a.key != b.key ? a.key < b.key : a.index < b.index; }
};

struct sort_layout {
  int bucket_bits;
  int parts;  // pieces of the input that are counted and moved independently
  std::size_t buckets() const { return std::size_t{1} << bucket_bits; }
  std::size_t counters() const { return buckets() * static_cast<std::size_t>(parts); }

  sort_layout(std::int64_t n, int threads) : bucket_bits(0), parts(n < 8192 ? 1 : threads) {
    while (bucket_bits < 14 && (n >> bucket_bits) > 512) ++bucket_bits;
  }
};

void permutation(const plan::random_plan& p, const dispatch::launch& l) {
  const sort_layout layout(p.count, l.threads);
  const std::size_t buckets = layout.buckets();
  auto* entries = static_cast<entry*>(l.workspace);
  auto* position = reinterpret_cast<std::int64_t*>(entries + p.count);  // [part][bucket]
  auto* out = static_cast<std::int64_t*>(p.out);
  const std::int64_t stride = p.rank == 0 ? 1 : p.out_stride[0];
  const auto bucket_of = [&](std::uint64_t key) {
    return layout.bucket_bits == 0 ? 0 : static_cast<std::size_t>(key >> (64 - layout.bucket_bits));
  };
  // Calls use(key, index) for the indices of one part.
  const auto for_part = [&](int part, auto&& use) {
    const range mine = share(p.count, part, layout.parts, 2);
    for (std::int64_t i = mine.begin; i < mine.end; i += 2) {
      const num::philox_block words = num::philox(p.seed, p.stream, static_cast<std::uint64_t>(i / 2));
      use(num::wide_word(words, 0), i);
      if (i + 1 < mine.end) use(num::wide_word(words, 1), i + 1);
    }
  };

  std::fill_n(position, layout.counters(), 0);
  parallel(layout.parts, [&](int thread, int workers) {
    for (int part = thread; part < layout.parts; part += workers) {
      std::int64_t* counts = position + static_cast<std::size_t>(part) * buckets;
      for_part(part, [&](std::uint64_t key, std::int64_t) { ++counts[bucket_of(key)]; });
    }
  });
  std::int64_t total = 0;
  for (std::size_t b = 0; b < buckets; ++b) {
    for (int part = 0; part < layout.parts; ++part) {
      std::int64_t& at = position[static_cast<std::size_t>(part) * buckets + b];
      const std::int64_t n = at;
      at = total;
      total += n;
    }
  }
  parallel(layout.parts, [&](int thread, int workers) {
    for (int part = thread; part < layout.parts; part += workers) {
      std::int64_t* next = position + static_cast<std::size_t>(part) * buckets;
      for_part(part, [&](std::uint64_t key, std::int64_t i) { entries[next[bucket_of(key)]++] = {key, i}; });
    }
  });
  // Now position[last part][b] is where bucket b ends.
  const std::int64_t* end = position + static_cast<std::size_t>(layout.parts - 1) * buckets;
  parallel(layout.parts, [&](int thread, int workers) {
    const range mine = share(static_cast<std::int64_t>(buckets), thread, workers);
    for (std::int64_t b = mine.begin; b < mine.end; ++b) {
      const std::int64_t first = b == 0 ? 0 : end[b - 1];
      std::sort(entries + first, entries + end[b]);
      for (std::int64_t i = first; i < end[b]; ++i) out[i * stride] = entries[i].index;
    }
  });
}

}  // namespace

std::size_t random_workspace(const plan::random_plan& p, const dispatch::launch& l) noexcept {
  if (p.op != ops::op_id::permutation) return 0;
  const sort_layout layout(p.count, l.threads);
  return static_cast<std::size_t>(p.count) * sizeof(entry) + layout.counters() * sizeof(std::int64_t);
}

void run_random(const plan::random_plan& p, const dispatch::launch& l, counters& count) noexcept {
  if (p.op == ops::op_id::permutation) {
    permutation(p, l);
    count.add(tier::proved, p.count);
    return;
  }
  switch (p.out_type) {
    case dtype::f16:
      return uniform<f16>(p, l, count);
    case dtype::bf16:
      return uniform<bf16>(p, l, count);
    case dtype::f32:
      return uniform<float>(p, l, count);
    default:
      return uniform<double>(p, l, count);
  }
}

}  // namespace repdl::cpu
