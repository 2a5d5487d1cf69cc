// Random numbers. The words are integers, made by the instruction set's kernel for a block of elements at a time; so
// are the first tiers of normal, exponential and dropout. What they leave undecided is decided here, element by
// element.
#include "backends/cpu/random/random.hpp"

#include <algorithm>
#include <cstring>

#include "backends/cpu/core/isa.hpp"
#include "backends/cpu/core/parallel.hpp"
#include "backends/cpu/core/strided_runs.hpp"
#include "librepdl/ops/random/dropout.hpp"
#include "librepdl/ops/random/exponential.hpp"
#include "librepdl/ops/random/exponential_exact.hpp"
#include "librepdl/ops/random/uniform.hpp"

namespace repdl::cpu {
namespace {

constexpr std::int64_t block = 1024;  // elements per step; a multiple of every per_block

// Of an element's word: W_i for f64, else w_i.
template <class T>
inline constexpr int word_bits = sizeof(T) == 8 ? 64 : 32;

// The words of one step's elements.
struct step_words {
  std::uint64_t w[block];

  template <class T>
  void make(const plan::random_plan& p, const random_kernels& kernels, std::int64_t first, std::int64_t n) {
    constexpr int per_block = num::per_block<T>;
    kernels.words(p.seed, p.stream, static_cast<std::uint64_t>(first / per_block), (n + per_block - 1) / per_block, w);
  }
  std::uint32_t word(std::int64_t i) const { return static_cast<std::uint32_t>(w[i / 2] >> (i % 2 * 32)); }
  template <class T>
  std::uint64_t of(std::int64_t i) const {
    return sizeof(T) == 8 ? w[i] : word(i);
  }
};

// Moves n elements of the iteration space, from element `first` on, between a strided operand and a buffer.
template <class T, class Use>
void walk(const plan::random_plan& p, const plan::axes& stride, T* data, std::int64_t first, std::int64_t n, Use use) {
  for_runs(p, stride, data, first, n, [&](T* at, std::int64_t step, std::int64_t done, std::int64_t run) {
    for (std::int64_t i = 0; i < run; ++i) use(at[i * step], done + i);
  });
}

bool contiguous(const plan::random_plan& p, const plan::axes& stride) {
  return p.rank == 0 || (p.rank == 1 && stride[0] == 1);
}

// Calls make(words, first, n, out) for blocks of elements; make writes out[0 .. n), up to the next multiple of 4, and
// counts. `in_place`: make may not write to the output itself, because it still reads from there.
template <class T, class Make>
void for_blocks(const plan::random_plan& p, const dispatch::launch& l, counters& count, bool in_place, Make make) {
  const bool direct = contiguous(p, p.out_stride) && !in_place;
  const int threads = worthwhile_threads(l.threads, static_cast<double>(p.count), 1.5);
  parallel(threads, [&](int thread, int workers) {
    alignas(64) step_words words;
    alignas(64) T buffer[block];
    tally counted;
    const repdl::cpu::range mine = share(p.count, thread, workers, block);
    for (std::int64_t first = mine.begin; first < mine.end && !stopped(); first += block) {
      const std::int64_t n = std::min(block, mine.end - first);
      if (direct && n % 4 == 0) {
        make(words, first, n, static_cast<T*>(p.out) + first, counted);
      } else {
        make(words, first, n, buffer, counted);
        walk(p, p.out_stride, static_cast<T*>(p.out), first, n, [&](T& to, std::int64_t i) { to = buffer[i]; });
      }
    }
    count.add(counted);
  });
}

// ---- uniform

template <class T>
void uniform(const plan::random_plan& p, const dispatch::launch& l, const random_kernels& kernels, counters& count) {
  const num::uniform_range range(p.low, p.high);
  const bool force_exact = l.first_tier == tier::exact;
  const bool unit = range.is_unit();
  for_blocks<T>(p, l, count, false, [&](step_words& words, std::int64_t first, std::int64_t n, T* out, tally& counted) {
    words.make<T>(p, kernels, first, n);
    std::int64_t exact_count = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint64_t u = words.of<T>(i) >> (word_bits<T> - num::uniform_bits<T>);
      if (unit) {
        constexpr double ulp = 1.0 / static_cast<double>(std::uint64_t{1} << num::uniform_bits<T>);
        out[i] = num::narrow<T>(static_cast<double>(static_cast<std::int64_t>(u)) * ulp);
      } else {
        bool exact = false;
        out[i] = range.element<T>(u, force_exact, &exact);
        exact_count += exact ? 1 : 0;
      }
    }
    counted.add(tier::exact, exact_count);
    counted.add(unit ? tier::proved : tier::double_double, n - exact_count);
  });
}

// ---- normal, exponential

// One element that the kernel left undecided: double_double(force) has the ends of its second tier, which f64 has had;
// exact() is its last one.
template <class T, class DoubleDouble, class Exact>
T later_element(const dispatch::launch& l, tally& counted, DoubleDouble double_double, Exact exact) {
  if constexpr (sizeof(T) < 8) {
    const auto ends = double_double(l.first_tier > tier::double_double ? num::infinity : 0.0);
    if (num::to_bits(ends.below) == num::to_bits(ends.above)) {
      counted.add(tier::double_double, 1);
      return ends.below;
    }
  }
  const auto last = exact();
  if (last.decided) {
    counted.add(tier::exact, 1);
  } else {
    ++counted.undecided;
  }
  return last.value;
}

// Calls loop(words, n, force, out, undecided), the first tier, and where it leaves any undecided, later(words, i, counted).
template <class T, class Loop, class Later>
void real_numbers(const plan::random_plan& p, const dispatch::launch& l, const random_kernels& kernels, counters& count,
                  Loop loop, Later later) {
  constexpr tier first_tier = sizeof(T) == 8 ? tier::double_double : tier::binary64;
  const double force = l.first_tier > first_tier ? num::infinity : 0.0;
  for_blocks<T>(p, l, count, false, [&](step_words& words, std::int64_t first, std::int64_t n, T* out, tally& counted) {
    std::uint32_t undecided[block];
    words.make<T>(p, kernels, first, n);
    std::int64_t left = 0;
    if (loop(words.w, n, force, out, undecided)) {
      for (std::int64_t i = 0; i < n; ++i) {
        if (undecided[i] == 0) continue;
        out[i] = later(words, i, counted);
        ++left;
      }
    }
    counted.add(first_tier, n - left);
  });
}

template <class T>
void normal(const plan::random_plan& p, const dispatch::launch& l, const random_kernels& kernels, counters& count) {
  const double mean = p.low + 0.0;  // -0 + 0.0 is +0
  if (p.high == 0) {
    for_blocks<T>(p, l, count, false, [&](step_words&, std::int64_t, std::int64_t n, T* out, tally& counted) {
      std::fill_n(out, n, num::narrow<T>(mean));
      counted.add(tier::proved, n);
    });
    return;
  }
  const auto loop = kernels.normal[static_cast<int>(p.out_type)];
  real_numbers<T>(
      p, l, kernels, count,
      [&](const std::uint64_t* words, std::int64_t n, double force, T* out, std::uint32_t* undecided) {
        return loop(words, (n + 1) / 2, mean, p.high, force, out, undecided);
      },
      [&](const step_words& words, std::int64_t i, tally& counted) {
        const std::uint64_t w1 = words.of<T>(i & -2), w2 = words.of<T>(i | 1);
        const bool sine = i % 2 != 0;
        return later_element<T>(
            l, counted,
            [&](double force) {
              const auto z = num::normal_double_double::eval((w1 + 1) << 32, w2 << 32, num::normal_table);
              return num::normal_round<T>(mean, p.high, sine ? z.sine : z.cosine, force);
            },
            [&] { return num::normal_exact<T>(w1, w2, word_bits<T>, sine, mean, p.high, l.last_tier_bits); });
      });
}

template <class T>
void exponential(const plan::random_plan& p, const dispatch::launch& l, const random_kernels& kernels,
                 counters& count) {
  const auto scale = num::exponential_scale::of(p.high);
  const auto loop = kernels.exponential[static_cast<int>(p.out_type)];
  real_numbers<T>(
      p, l, kernels, count,
      [&](const std::uint64_t* words, std::int64_t n, double force, T* out, std::uint32_t* undecided) {
        return loop(words, n, scale.half_inverse.hi, scale.half_inverse.lo, force, out, undecided);
      },
      [&](const step_words& words, std::int64_t i, tally& counted) {
        const std::uint64_t w = words.of<T>(i);
        return later_element<T>(
            l, counted, [&](double force) { return scale.double_double<T>((w + 1) << 32, num::normal_table, force); },
            [&] { return num::exponential_exact<T>(w, word_bits<T>, p.high, l.last_tier_bits); });
      });
}

// ---- bernoulli, randint, dropout

void bernoulli(const plan::random_plan& p, const dispatch::launch& l, const random_kernels& kernels, counters& count) {
  for_blocks<std::uint8_t>(
      p, l, count, false,
      [&](step_words& words, std::int64_t first, std::int64_t n, std::uint8_t* out, tally& counted) {
        words.make<float>(p, kernels, first, n);
        for (std::int64_t i = 0; i < n; ++i) out[i] = words.word(i) < p.threshold ? 1 : 0;
        counted.add(tier::proved, n);
      });
}

void randint(const plan::random_plan& p, const dispatch::launch& l, const random_kernels& kernels, counters& count) {
  for_blocks<std::int64_t>(
      p, l, count, false,
      [&](step_words& words, std::int64_t first, std::int64_t n, std::int64_t* out, tally& counted) {
        words.make<double>(p, kernels, first, n);
        for (std::int64_t i = 0; i < n; ++i) out[i] = num::random_integer(words.w[i], p.first, p.range);
        counted.add(tier::proved, n);
      });
}

template <class T>
void dropout(const plan::random_plan& p, const dispatch::launch& l, const random_kernels& kernels, counters& count) {
  constexpr tier first_tier = std::is_same_v<T, double> ? tier::double_double : tier::binary64;
  const bool all = p.threshold > 0xffffffff;  // every word is below it
  const bool direct = contiguous(p, p.in_stride);
  const T* const in = static_cast<const T*>(p.in);
  const auto scale = num::dropout_scale_of<T>::of(all ? 0.0 : p.p, l.first_tier > first_tier);
  for_blocks<T>(p, l, count, p.in == p.out,
                [&](step_words& words, std::int64_t first, std::int64_t n, T* out, tally& counted) {
                  if (all || p.threshold == 0) {
                    // Nothing to decide: +0, or p = 0 and x itself.
                    if (all) {
                      std::fill_n(out, n, T{});
                    } else {
                      walk(p, p.in_stride, in, first, n, [&](T x, std::int64_t i) { out[i] = num::canonical(x); });
                    }
                    counted.add(tier::proved, n);
                    return;
                  }
                  T gathered[block];
                  const T* x = gathered;
                  if (direct) {
                    x = in + first;
                  } else {
                    walk(p, p.in_stride, in, first, n, [&](T value, std::int64_t i) { gathered[i] = value; });
                  }
                  std::uint32_t undecided[block];
                  words.make<float>(p, kernels, first, n);
                  const auto last_dropped = static_cast<std::uint32_t>(p.threshold - 1);
                  bool any = false;
                  if constexpr (std::is_same_v<T, double>) {
                    any = kernels.wide_dropout(words.w, x, n, scale.inverse.hi, scale.inverse.lo, scale.force,
                                               last_dropped, out, undecided);
                  } else {
                    any = kernels.dropout(words.w, x, n, scale.hi, scale.lo, scale.slack, scale.least, last_dropped,
                                          out, undecided);
                  }
                  std::int64_t later = 0;
                  for (std::int64_t i = 0; any && i < n; ++i) {
                    if (undecided[i] == 0) continue;
                    out[i] = num::dropout_scale_of<T>::exact(x[i], p.p);
                    ++later;
                  }
                  counted.add(first_tier, n - later);
                  counted.add(tier::exact, later);
                });
}

// ---- permutation
//
// The keys are uniform 64-bit words, so their leading bits cut them into buckets of nearly equal size. Entries are
// moved into their buckets, in an order that depends on the threads, and each bucket, of a few entries, is sorted by (key, index): a
// total order, so the result does not depend on it.

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

  sort_layout(std::int64_t n, int threads) : bucket_bits(0), parts(threads) {
    while (bucket_bits < 14 && (n >> bucket_bits) > 12) ++bucket_bits;
  }
};

void permutation(const plan::random_plan& p, const random_kernels& kernels, const sort_layout& layout,
                 void* workspace) {
  const std::size_t buckets = layout.buckets();
  auto* entries = static_cast<entry*>(workspace);
  auto* position = reinterpret_cast<std::int64_t*>(entries + p.count);  // [part][bucket]
  auto* out = static_cast<std::int64_t*>(p.out);
  const std::int64_t stride = p.rank == 0 ? 1 : p.out_stride[0];
  const auto bucket_of = [&](std::uint64_t key) {
    return layout.bucket_bits == 0 ? 0 : static_cast<std::size_t>(key >> (64 - layout.bucket_bits));
  };
  // Calls use(key, index) for the indices of one part.
  const auto for_part = [&](int part, auto&& use) {
    const range mine = share(p.count, part, layout.parts, 2);
    step_words words;
    for (std::int64_t first = mine.begin; first < mine.end; first += block) {
      const std::int64_t n = std::min(block, mine.end - first);
      words.make<double>(p, kernels, first, n);
      for (std::int64_t i = 0; i < n; ++i) use(words.w[i], first + i);
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
    for (std::int64_t b = mine.begin; b < mine.end && !stopped(); ++b) {
      const std::int64_t first = b == 0 ? 0 : end[b - 1];
      std::sort(entries + first, entries + end[b]);
      for (std::int64_t i = first; i < end[b]; ++i) out[i * stride] = entries[i].index;
    }
  });
}

// How many numbers are put in order.
std::int64_t sorted(const plan::random_plan& p) { return p.op == ops::op_id::permutation ? p.count : 0; }

class random_work final : public planned<plan::random_plan> {
 public:
  random_work(const plan::random_plan& plan, const setting& setting) noexcept
      : planned(plan, setting),
        sort_(sorted(p), worthwhile_threads(s.launch.threads, static_cast<double>(sorted(p)), 40)) {}

  plan::checked_size bytes() const override {
    if (p.op != ops::op_id::permutation) return 0;
    using plan::checked_size;
    return checked_size::product(p.count, sizeof(entry)) +
           checked_size::product(sort_.buckets(), sort_.parts, sizeof(std::int64_t));
  }

  void run(void* workspace) override {
    const dispatch::launch& l = s.launch;
    const random_kernels& kernels = *s.set.random;
    ops::for_operation<ops::family::random>(p.op, [&]<class Op>() {
      if constexpr (ops::is_one_of<Op, ops::op_id::uniform, ops::op_id::normal, ops::op_id::exponential>) {
        ops::for_each_format<ops::FLOATS>([&]<class T>() {
          if (dtype_of<T> != p.out_type) return;
          if constexpr (Op::id == ops::op_id::uniform) {
            uniform<T>(p, l, kernels, s.count);
          } else if constexpr (Op::id == ops::op_id::normal) {
            normal<T>(p, l, kernels, s.count);
          } else {
            exponential<T>(p, l, kernels, s.count);
          }
        });
      } else if constexpr (Op::id == ops::op_id::permutation) {
        permutation(p, kernels, sort_, workspace);
        s.count.add(tier::proved, p.count);
      } else if constexpr (Op::id == ops::op_id::bernoulli) {
        bernoulli(p, l, kernels, s.count);
      } else if constexpr (Op::id == ops::op_id::randint) {
        randint(p, l, kernels, s.count);
      } else if constexpr (ops::is_one_of<Op, ops::op_id::dropout, ops::op_id::dropout_backward>) {
        p.out_type == dtype::f64 ? dropout<double>(p, l, kernels, s.count) : dropout<float>(p, l, kernels, s.count);
      } else {
        static_assert(ops::has_no_case<Op>, "a random operation without a loop");
      }
    });
    s.count.check_decided(l.last_tier_bits);
  }

 private:
  const sort_layout sort_;
};

}  // namespace

void prepare(const plan::random_plan& p, const setting& s, dispatch::task& t) noexcept { t.emplace<random_work>(p, s); }

}  // namespace repdl::cpu
