// The driver of the elementwise loops: threads, strides, broadcasting.
//
// The iteration space is cut into blocks of consecutive elements. An operand that is contiguous over a block is used in
// place; any other is gathered into (the output: scattered from) a small buffer. So there is one compiled loop per
// operation, and strided and contiguous tensors go through the same code. What a loop leaves undecided is decided here,
// element by element. Results of another format than the operands' are computed in binary64 and then rounded.
#include "backends/cpu/map/map.hpp"

#include <cstring>

#include "backends/cpu/core/isa.hpp"
#include "backends/cpu/core/parallel.hpp"
#include "backends/cpu/core/strided_runs.hpp"

namespace repdl::cpu {
namespace {

constexpr std::int64_t block = 1024;

// Nanoseconds that an element takes one thread, from caches.
double element_time(ops::op_id op, dtype format) {
  if (op == ops::op_id::convert) return 0.2;
  switch (ops::proof_in(ops::row_of(op).proof, format)) {
    case ops::proof_kind::ieee:
    case ops::proof_kind::select:
      return 0.2;
    case ops::proof_kind::multi_limb:
      return format == dtype::f64 ? 8 : 2.5;
    default:
      return 1;
  }
}

// What is larger than caches runs in pieces, each of them fetched some pieces ahead: while a long body is computed, too few
// lines are under way by themselves (log of 2^24 elements: 2.6 times as fast as without).
constexpr std::int64_t piece = 128, pieces_ahead = 4;
constexpr std::int64_t fetched_bytes = std::int64_t{1} << 23;

enum class to { read, write };
// Of the piece that begins at `now`, so many pieces later. Behind the operand's end, too: there it does nothing.
template <to Purpose>
void fetch_ahead(const void* now, std::size_t element_size) {
  const std::size_t bytes = piece * element_size;
  const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(now) + pieces_ahead * bytes;
  for (std::size_t i = 0; i < bytes; i += 64) {
    __builtin_prefetch(reinterpret_cast<const void*>(first + i), Purpose == to::write ? 1 : 0);
  }
}

// A position in the iteration space.
struct cursor {
  plan::axes index{};

  cursor(const plan::map_plan& p, std::int64_t flat) {
    for (int i = p.rank - 1; i >= 0; --i) {
      const auto a = static_cast<std::size_t>(i);
      index[a] = flat % p.shape[a];
      flat /= p.shape[a];
    }
  }
  std::int64_t offset(const plan::map_plan& p, const plan::axes& stride) const {
    std::int64_t o = 0;
    for (std::size_t a = 0; a < static_cast<std::size_t>(p.rank); ++a) o += index[a] * stride[a];
    return o;
  }
  // Moves n steps along the last axis; n does not pass its end.
  void advance(const plan::map_plan& p, std::int64_t n) {
    int i = p.rank - 1;
    if (i < 0) return;
    index[static_cast<std::size_t>(i)] += n;
    while (i > 0 && index[static_cast<std::size_t>(i)] == p.shape[static_cast<std::size_t>(i)]) {
      index[static_cast<std::size_t>(i)] = 0;
      ++index[static_cast<std::size_t>(--i)];
    }
  }
};

// Copies n elements between a strided operand and a buffer, in the order of the iteration space.
template <class T, bool Gather>
void transfer(const plan::map_plan& p, const plan::axes& stride, T* data, T* buffer, std::int64_t first,
              std::int64_t n) {
  cursor at(p, first);
  const auto last = static_cast<std::size_t>(p.rank - 1);
  while (n > 0) {
    const std::int64_t run = p.rank == 0 ? n : std::min(n, p.shape[last] - at.index[last]);
    const std::int64_t step = p.rank == 0 ? 0 : stride[last];
    T* d = data + at.offset(p, stride);
    for (std::int64_t i = 0; i < run; ++i) {
      if constexpr (Gather) {
        buffer[i] = d[i * step];
      } else {
        d[i * step] = buffer[i];
      }
    }
    buffer += run;
    n -= run;
    at.advance(p, run);
  }
}

template <bool Gather>
void transfer_bytes(std::size_t size, const plan::map_plan& p, const plan::axes& stride, void* data, void* buffer,
                    std::int64_t first, std::int64_t n) {
  const auto as = [&]<class T>(T) {
    transfer<T, Gather>(p, stride, static_cast<T*>(data), static_cast<T*>(buffer), first, n);
  };
  switch (size) {
    case 1:
      return as(std::uint8_t{});
    case 2:
      return as(std::uint16_t{});
    case 4:
      return as(std::uint32_t{});
    case 8:
      return as(std::uint64_t{});
  }
  __builtin_unreachable();
}

// The address of element `first` if elements first .. first + n - 1 are contiguous, else null.
void* in_place(const plan::map_plan& p, const plan::axes& stride, const void* data, std::size_t size, const cursor& at,
               std::int64_t n) {
  auto* base = const_cast<std::byte*>(static_cast<const std::byte*>(data));
  if (p.rank > 0) {
    const auto last = static_cast<std::size_t>(p.rank - 1);
    if (n > 1 && (stride[last] != 1 || at.index[last] + n > p.shape[last])) return nullptr;
  }
  return base + at.offset(p, stride) * static_cast<std::int64_t>(size);
}

// A call: its loops, and how a thread does its share of the elements.
class map_call {
 public:
  map_call(const plan::map_plan& plan, const setting& setting) noexcept : p(plan), s(setting) {
    const map_kernels& kernels = *s.set.map;
    const auto format = static_cast<std::size_t>(p.in_type);
    if (p.op == ops::op_id::convert) {
      loop_ = kernels.convert[format][static_cast<int>(p.out_type)];
    } else if (p.has_other_format()) {
      const wide_loops& wide = *kernels.operations[static_cast<int>(p.op)]->wide;
      const bool narrow = p.out_type != dtype::f64;
      loop_ = p.loop_of(narrow ? wide.to_odd[format] : wide.to_nearest[format]);
      if (narrow) round_ = kernels.convert[static_cast<int>(dtype::f64)][static_cast<int>(p.out_type)];
    } else {
      const auto of = [&](const map_kernels& k) -> const map_operation& {
        return *k.operations[static_cast<int>(p.op)];
      };
      const ops::loops<map_loop>& loops = of(kernels).loops[format];
      const ops::loops<map_repair>& repairs = of(*all_instruction_sets().front().map).repairs[format];
      loop_ = p.loop_of(loops);
      repair_ = loop_ == loops.plain ? repairs.plain : repairs.with_options;
    }
    // Contiguous tensors need no buffers, and then larger blocks cost less.
    flat_ = repair_ == nullptr && round_ == nullptr && (p.rank == 0 || (p.rank == 1 && p.out_stride[0] == 1));
    for (int k = 0; k < p.arity && p.rank == 1; ++k) flat_ = flat_ && p.in[k].stride[0] == 1;
    std::size_t bytes = size_of(p.out_type);
    for (int k = 0; k < p.arity; ++k) bytes += size_of(p.in[k].type);
    fetches_ = p.count * static_cast<std::int64_t>(bytes) >= fetched_bytes;
  }

  // Elements of which only the last ones are no whole block.
  void run(range mine) const { flat_ ? run_flat(mine) : run_strided(mine); }
  // After all of `count` elements.
  void finish(std::int64_t count) const {
    if (repair_ == nullptr) {
      s.count.add(tier::proved, count);
    } else {
      s.count.check_decided(s.launch.last_tier_bits);
    }
  }

 private:
  static const void* at(const void* data, std::int64_t element, std::size_t size) noexcept {
    return static_cast<const std::byte*>(data) + element * static_cast<std::int64_t>(size);
  }

  void run_flat(range mine) const {
    for (std::int64_t first = mine.begin; first < mine.end && !stopped(); first += 16 * block) {
      const void* in[ops::most_operands] = {};
      for (int k = 0; k < p.arity; ++k) in[k] = at(p.in[k].data, first, size_of(p.in[k].type));
      compute(in, const_cast<void*>(at(p.out, first, size_of(p.out_type))), size_of(p.out_type),
              std::min(16 * block, mine.end - first), nullptr);
    }
  }

  void compute(const void* const* in, void* out, std::size_t out_size, std::int64_t n, bool* undecided) const {
    if (!fetches_) return loop_(in, out, n, p.options, undecided);
    for (std::int64_t first = 0; first < n; first += piece) {
      const void* from[ops::most_operands] = {};
      for (int k = 0; k < p.arity; ++k) {
        from[k] = at(in[k], first, size_of(p.in[k].type));
        fetch_ahead<to::read>(from[k], size_of(p.in[k].type));
      }
      void* const result = const_cast<void*>(at(out, first, out_size));
      fetch_ahead<to::write>(result, out_size);
      loop_(from, result, std::min(piece, n - first), p.options, undecided == nullptr ? nullptr : undecided + first);
    }
  }

  void run_strided(range mine) const {
    const std::size_t out_size = size_of(p.out_type);
    alignas(64) std::byte buffers[ops::most_operands + 1][block * sizeof(double)];  // the output's is the last one
    std::byte* const results = buffers[ops::most_operands];
    tally counted;
    for (std::int64_t first = mine.begin; first < mine.end && !stopped(); first += block) {
      const std::int64_t n = std::min(block, mine.end - first);
      const cursor place(p, first);
      const void* in[ops::most_operands] = {};
      for (int k = 0; k < p.arity; ++k) {
        const std::size_t in_size = size_of(p.in[k].type);
        in[k] = in_place(p, p.in[k].stride, p.in[k].data, in_size, place, n);
        if (in[k] == nullptr) {
          transfer_bytes<true>(in_size, p, p.in[k].stride, const_cast<void*>(p.in[k].data), buffers[k], first, n);
          in[k] = buffers[k];
        }
      }
      void* out = in_place(p, p.out_stride, p.out, out_size, place, n);
      // A repair reads the operands after the loop has written. Memory that the output shares with one is all of both (checks.cpp).
      if (repair_ != nullptr && std::find(in, in + p.arity, out) != in + p.arity) out = nullptr;
      run_block(in, out != nullptr ? out : results, n, counted);
      if (out == nullptr) transfer_bytes<false>(out_size, p, p.out_stride, p.out, results, first, n);
    }
    s.count.add(counted);
  }

  // Where something may have to be repaired, out is no input.
  void run_block(const void* const* in, void* out, std::int64_t n, tally& counted) const {
    if (round_ != nullptr) {
      alignas(64) double wide[block];
      compute(in, wide, sizeof *wide, n, nullptr);
      const void* const from = wide;
      return round_(&from, out, n, nullptr, nullptr);
    }
    if (repair_ == nullptr) return compute(in, out, size_of(p.out_type), n, nullptr);
    bool undecided[block];
    const bool skips_binary64 = s.launch.first_tier > tier::binary64;
    if (!skips_binary64) {
      compute(in, out, size_of(p.out_type), n, undecided);
    } else {
      std::memset(undecided, true, sizeof undecided);
    }
    std::int64_t late = 0;
    const auto next = [&](const bool* from) {
      return static_cast<const bool*>(std::memchr(from, true, static_cast<std::size_t>(undecided + n - from)));
    };
    for (const bool* o = next(undecided); o != nullptr; o = next(o + 1)) {
      const auto by = repair_(in, out, o - undecided, p.options, skips_binary64, s.launch.last_tier_bits);
      if (by == repaired_by::binary64) continue;
      ++(by == repaired_by::exact ? counted.elements[static_cast<int>(tier::exact)] : counted.undecided);
      ++late;
    }
    counted.add(tier::binary64, n - late);
  }

  const plan::map_plan& p;
  const setting& s;
  map_loop loop_;
  map_loop round_ = nullptr;  // from binary64 to the output's format
  map_repair repair_ = nullptr;
  bool flat_;
  bool fetches_;
};

class map_work final : public planned<const plan::map_plan&> {
 public:
  map_work(const plan::map_plan& plan, const setting& setting) noexcept : planned(plan, setting), first_(p, s) {
    if (p.list.empty()) {
      count_ = p.count;
      blocks_ = (p.count + block - 1) / block;
    } else {
      for (const plan::map_plan& c : p.list) count_ += c.count;
      blocks_ = blocks_of(p.list, block);
    }
    threads_ = worthwhile_threads(s.launch.threads, static_cast<double>(count_), element_time(p.op, p.in_type));
  }

  void run(void*) override {
    parallel(threads_, [&](int thread, int workers) {
      const range mine = share(blocks_, thread, workers);
      if (p.list.empty()) return first_.run(elements(p, mine));
      std::int64_t before = 0;
      for (const plan::map_plan& c : p.list) {
        const std::int64_t end = before + (c.count + block - 1) / block;
        const range of_call{std::max(mine.begin, before) - before, std::min(mine.end, end) - before};
        if (of_call.begin < of_call.end) map_call(c, s).run(elements(c, of_call));
        before = end;
      }
    });
    first_.finish(count_);
  }

 private:
  static range elements(const plan::map_plan& c, range blocks) {
    return {std::min(blocks.begin * block, c.count), std::min(blocks.end * block, c.count)};
  }

  const map_call first_;  // all that its operation and formats say is that of a list
  std::int64_t count_ = 0, blocks_ = 0;
  int threads_;
};

}  // namespace

void prepare(const plan::map_plan& p, const setting& s, dispatch::task& t) noexcept { t.emplace<map_work>(p, s); }

}  // namespace repdl::cpu
