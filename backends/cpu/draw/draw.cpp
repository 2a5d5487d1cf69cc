// The driver of draws in proportion to weights (ops/random/multinomial.hpp).
#include "backends/cpu/draw/draw.hpp"

#include <algorithm>
#include <atomic>

#include "backends/cpu/core/isa.hpp"
#include "backends/cpu/core/parallel.hpp"
#include "backends/cpu/random/random.hpp"
#include "librepdl/ops/random/exponential_exact.hpp"
#include "librepdl/ops/random/multinomial.hpp"
#include "librepdl/ops/registry.hpp"
#include "librepdl/plan/checks.hpp"

namespace repdl::cpu {
namespace {

using num::draw_chunk;
using plan::checked_size;
using std::int64_t;

constexpr int64_t block = 1024;  // keys per step; even

struct entry {
  std::uint64_t key;
  int64_t place;
  friend bool operator<(const entry& a, const entry& b) { return a.key != b.key ? a.key < b.key : a.place < b.place; }
};

class draw_work final : public planned<plan::draw_plan> {
 public:
  draw_work(const plan::draw_plan& whole, const setting& given) noexcept
      : planned(whole, given), chunks_((p.n + draw_chunk - 1) / draw_chunk) {}

  checked_size bytes() const override {
    const checked_size weights = checked_size::product(p.rows, p.n);
    if (!p.replacement) return checked_size::product(weights, sizeof(entry));
    return checked_size::product(weights, sizeof(double)) +
           checked_size::product(p.rows, chunks_, size_of_sum() + sizeof(double));
  }

  void run(void* workspace) override {
    ops::for_each_format<ops::FLOATS>([&]<class T>() {
      if (dtype_of<T> != p.type) return;
      if (p.replacement) {
        with_replacement<T>(workspace);
      } else {
        without_replacement<T>(workspace);
      }
    });
    s.count.check_decided(s.launch.last_tier_bits);
  }

 private:
  std::size_t size_of_sum() const {
    return p.type == dtype::f64 ? sizeof(num::weight_sum<double>) : sizeof(num::weight_sum<float>);
  }
  template <class T>
  num::weight_of<T> weight(int64_t row, int64_t i) const {
    const T x = static_cast<const T*>(p.in)[row * p.in_row + i * p.in_stride];
    if constexpr (std::is_same_v<T, double>) {
      return x;
    } else {
      return num::widen_to_float(x);
    }
  }
  int64_t& out(int64_t row, int64_t sample) const { return p.out[row * p.out_row + sample * p.out_stride]; }

  // Of n elements, each of which takes as long as `each` weights.
  int threads_for(int64_t n, int64_t each) const {
    return worthwhile_threads(s.launch.threads, static_cast<double>(n) * static_cast<double>(each), 5);
  }

  // The least row of which any worker says that nothing can be drawn from it.
  class first_bad {
   public:
    void note(int64_t row) noexcept {
      int64_t known = row_.load(std::memory_order_relaxed);
      while (row < known && !row_.compare_exchange_weak(known, row, std::memory_order_relaxed)) {
      }
    }
    int64_t row() const noexcept { return row_.load(std::memory_order_relaxed); }
    static constexpr int64_t none = INT64_MAX;

   private:
    std::atomic<int64_t> row_{none};
  };

  template <class T>
  void refuse_any(const first_bad& bad) const {
    const int64_t row = bad.row();
    if (row == first_bad::none) return;
    const std::string at = " in row " + std::to_string(row);
    int64_t some = 0;
    for (int64_t i = 0; i < p.n; ++i) {
      const auto w = weight<T>(row, i);
      if (!num::is_weight(w)) {
        fail(error_site::weights, "multinomial", "x", "weights that are finite and >= 0",
             plan::to_text(static_cast<double>(w)) + " at place " + std::to_string(i) + at);
      }
      some += w > 0 ? 1 : 0;
    }
    fail(error_site::weights, "multinomial", "x",
         "rows of at least " + std::to_string(p.replacement ? 1 : p.samples) + " weights that are not 0",
         std::to_string(some) + at);
  }

  template <class T>
  void with_replacement(void* workspace) const {
    using W = num::weight_of<T>;
    auto* const upto = static_cast<num::weight_sum<W>*>(workspace);
    auto* const rounded = reinterpret_cast<double*>(upto + p.rows * chunks_);
    double* const within = rounded + p.rows * chunks_;
    first_bad bad;
    parallel(threads_for(p.rows * chunks_, draw_chunk), [&](int thread, int workers) {
      const range mine = share(p.rows * chunks_, thread, workers);
      for (int64_t at = mine.begin; at < mine.end; ++at) {
        const int64_t row = at / chunks_, first = at % chunks_ * draw_chunk, end = std::min(p.n, first + draw_chunk);
        num::weight_sum<W> sum{};
        double running = 0;
        for (int64_t i = first; i < end; ++i) {
          const W w = weight<T>(row, i);
          if (!num::is_weight(w)) {
            bad.note(row);
            break;
          }
          sum.add(w);
          within[row * p.n + i] = running += num::weight_units(w);
        }
        upto[at] = sum;
      }
    });
    parallel(threads_for(p.rows, chunks_), [&](int thread, int workers) {
      const range mine = share(p.rows, thread, workers);
      for (int64_t row = mine.begin; row < mine.end; ++row) {
        num::weight_sum<W> sum{};
        for (int64_t at = row * chunks_; at < (row + 1) * chunks_; ++at) {
          sum.add(upto[at]);
          upto[at] = sum;
          rounded[at] = sum.rounded();
        }
        if (sum.is_zero()) bad.note(row);
      }
    });
    refuse_any<T>(bad);
    const bool force = s.launch.first_tier > tier::binary64;
    const int64_t outputs = p.rows * p.samples;
    parallel(threads_for(outputs, 16), [&](int thread, int workers) {
      const range mine = share(outputs, thread, workers, 2);
      std::uint64_t words[block];
      tally counted;
      for (int64_t first = mine.begin; first < mine.end && !stopped(); first += block) {
        const int64_t n = std::min(block, mine.end - first);
        s.set.random->words(p.seed, p.stream, static_cast<std::uint64_t>(first / 2), (n + 1) / 2, words);
        for (int64_t k = 0; k < n; ++k) {
          const int64_t row = (first + k) / p.samples;
          const num::row_sums<W> sums{p.n, within + row * p.n, upto + row * chunks_, rounded + row * chunks_};
          int64_t found = force ? -1 : sums.find(words[k]);
          counted.add(found < 0 ? tier::exact : tier::binary64, 1);
          if (found < 0) found = sums.find_exactly(words[k], [&](int64_t i) { return weight<T>(row, i); });
          out(row, (first + k) % p.samples) = found;
        }
      }
      s.count.add(counted);
    });
  }

  template <class T>
  void without_replacement(void* workspace) const {
    using W = num::weight_of<T>;
    auto* const entries = static_cast<entry*>(workspace);
    const double force = s.launch.first_tier > tier::double_double ? num::infinity : 0.0;
    first_bad bad;
    parallel(threads_for(p.rows * p.n, 4), [&](int thread, int workers) {
      const range mine = share(p.rows * p.n, thread, workers, 2);
      std::uint64_t words[block];
      W weights[block];
      double significands[block];
      double keys[block];
      std::uint32_t undecided[block];
      tally counted;
      for (int64_t first = mine.begin; first < mine.end && !stopped(); first += block) {
        const int64_t n = std::min(block, mine.end - first);
        entry* const to = entries + first;
        int64_t row = first / p.n, i = first % p.n;
        for (int64_t k = 0; k < n; ++k) {
          const W w = weight<T>(row, i);
          if (!num::is_weight(w)) bad.note(row);
          const bool has_key = num::is_weight(w) && w > 0;
          weights[k] = has_key ? w : 1;
          significands[k] = num::key_weight(weights[k]).m;
          to[k] = {has_key ? num::key_undecided : num::key_of_zero, i};
          if (++i == p.n) i = 0, ++row;
        }
        s.set.random->words(p.seed, p.stream, static_cast<std::uint64_t>(first / 2), (n + 1) / 2, words);
        s.set.draw->keys(words, significands, n, force, keys, undecided);
        for (int64_t k = 0; k < n; ++k) {
          if (to[k].key != num::key_undecided) continue;
          keys[k] = num::scaled_key<W>(keys[k], num::key_weight(weights[k]).k);
          const bool decided = undecided[k] == 0 && num::is_rounded_once<W>(keys[k]);
          counted.add(decided ? tier::double_double : tier::exact, 1);
          if (!decided) {
            const auto r = num::exponential_key(words[k], static_cast<double>(weights[k]), s.launch.last_tier_bits);
            if (!r.decided) ++counted.undecided;
            keys[k] = r.value;
          }
          to[k].key = num::bits_of(keys[k]);
        }
      }
      s.count.add(counted);
    });
    if (stopped()) return;
    parallel(threads_for(p.rows, p.n), [&](int thread, int workers) {
      const range mine = share(p.rows, thread, workers);
      for (int64_t row = mine.begin; row < mine.end; ++row) {
        entry* const e = entries + row * p.n;
        if (p.samples < p.n) std::nth_element(e, e + p.samples - 1, e + p.n);
        std::sort(e, e + p.samples);
        if (e[p.samples - 1].key == num::key_of_zero) bad.note(row);
      }
    });
    refuse_any<T>(bad);
    for (int64_t row = 0; row < p.rows; ++row) {
      for (int64_t k = 0; k < p.samples; ++k) out(row, k) = entries[row * p.n + k].place;
    }
  }

  const int64_t chunks_;
};

}  // namespace

void prepare(const plan::draw_plan& p, const setting& s, dispatch::task& t) noexcept { t.emplace<draw_work>(p, s); }

}  // namespace repdl::cpu
