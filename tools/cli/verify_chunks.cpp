// The exhaustive part of `repdl verify`: all 2^32 results of the unary operations and of the conversions from binary32,
// in chunks of 2^24 inputs. One engine's are hashed and compared with the committed digests, the others' with those,
// byte for byte: that is the same and costs less than hashing.
#include <algorithm>
#include <atomic>
#include <exception>
#include <fstream>
#include <numeric>
#include <thread>

#include "reference/exhaustive.hpp"
#include "tools/cli/progress.hpp"
#include "tools/cli/text.hpp"
#include "tools/cli/verify.hpp"

namespace repdl::tools {
namespace {

using reference::chunk_elements;
using reference::exhaustive_digests;
using reference::exhaustive_op;

struct task {
  std::size_t op;
  int chunk;
};

exhaustive_digests read_file(const exhaustive_op& op, const std::string& path) {
  std::ifstream f(path);
  if (!f) fail(error_site::file_open, "verify", path, "a digest file", "none");
  try {
    exhaustive_digests d = reference::read_exhaustive(f);
    if (d.op.file_name() == op.file_name() && d.op.bits == op.bits) return d;
    throw std::runtime_error(joined("the file is about ", d.op.file_name()));
  } catch (const std::exception& e) {
    throw mismatch(joined("MISMATCH ", path, "\n", e.what(), "\n"));
  }
}

attributes attributes_of(const exhaustive_op& op) {
  if (op.name != "convert") return {};
  return {{"dtype", std::string(name_of(op.to))}};
}

std::string name_of_row(const exhaustive_op& op) { return joined(op.name, "|", name_of(op.from), " ", name_of(op.to)); }

std::uint64_t element(const std::vector<std::byte>& v, std::size_t i, dtype t) {
  std::uint64_t b = 0;
  std::memcpy(&b, v.data() + i * size_of(t), size_of(t));
  return b;
}

/// Runs chunks on every engine; one per worker thread.
class worker {
 public:
  struct engine {
    std::string label;
    context ctx;
    double seconds = 0;
  };

  worker(const verify_options& o, const std::vector<variant*>& variants) : options_(o) {
    for (const variant* v : variants) engines_.push_back({v->label, context(single(v->options))});
    in_.resize(chunk_elements);
  }

  void run(const exhaustive_op& op, int chunk, const exhaustive_digests& committed, const std::string& file) {
    std::iota(in_.begin(), in_.end(), static_cast<std::uint32_t>(chunk) << 24);
    for (engine& e : engines_) {
      const bool is_first = &e == &engines_.front();
      std::vector<std::byte>& out = is_first ? proved_ : out_;
      const stopwatch clock;
      compute(e, op, out);
      e.seconds += clock.seconds();
      if (is_first ? !has_digest(op, chunk, committed, out) : out != proved_) {
        report(e, op, chunk, committed, file, out);
      }
    }
  }

  statistics read_statistics(std::size_t e) { return engines_[e].ctx.read_statistics(); }
  /// In which the engine computed.
  double seconds(std::size_t e) const { return engines_[e].seconds; }

 private:
  static context_options single(context_options o) {
    o.threads = o.where.kind == device_kind::cpu ? 1 : 0;
    return o;
  }

  void compute(engine& e, const exhaustive_op& op, std::vector<std::byte>& out) const {
    out.assign(chunk_elements * size_of(op.to), std::byte{host_tensor::unwritten});
    const sizes shape{static_cast<std::int64_t>(chunk_elements)};
    const const_tensor_view x(in_.data(), dtype::f32, shape);
    const tensor_view y(out.data(), op.to, shape);
    call_on_host(e.ctx, *find(op.name), {&x, 1}, {&y, 1}, attributes_of(op));
    if (options_.flip < 0) return;
    const std::size_t at = static_cast<std::uint64_t>(options_.flip) % chunk_elements * size_of(op.to);
    out[at] = out[at] ^ std::byte{1};
  }

  static bool has_digest(const exhaustive_op& op, int chunk, const exhaustive_digests& committed,
                         const std::vector<std::byte>& out) {
    const auto pieces = reference::piece_digests(out.data(), chunk_elements, size_of(op.to));
    return reference::chunk_digest(op, chunk, pieces) == committed.chunks[static_cast<std::size_t>(chunk)];
  }

  /// Results of the same chunk from the oracle; in a build without it, from an engine that has the committed digest.
  std::string find_truth(const exhaustive_op& op, int chunk, const exhaustive_digests& committed,
                         std::vector<std::byte>& expected) const {
#if defined(REPDL_WITH_REFERENCE)
    static_cast<void>(committed);
    reference::oracle_range(op)(static_cast<std::uint32_t>(chunk) << 24, chunk_elements, expected.data());
    return "the reference";
#else
    const sizes shape{static_cast<std::int64_t>(chunk_elements)};
    const const_tensor_view x(in_.data(), dtype::f32, shape);
    const tensor_view y(expected.data(), op.to, shape);
    for (const isa_info& i : instruction_sets()) {
      if (!i.available) continue;
      context ctx({.where = {}, .stream = nullptr, .threads = 1, .isa = i.name});
      call_on_host(ctx, *find(op.name), {&x, 1}, {&y, 1}, attributes_of(op));
      if (has_digest(op, chunk, committed, expected)) return i.name;
    }
    return "";
#endif
  }

  [[noreturn]] void report(const engine& e, const exhaustive_op& op, int chunk, const exhaustive_digests& committed,
                           const std::string& file, const std::vector<std::byte>& out) const {
    std::vector<std::byte> expected(out.size());
    const std::string source = find_truth(op, chunk, committed, expected);
    char number[8];
    std::snprintf(number, sizeof number, "%02x", static_cast<unsigned>(chunk));
    for (std::size_t i = 0; !source.empty() && i < chunk_elements; ++i) {
      const std::uint64_t got = element(out, i, op.to);
      const std::uint64_t want = element(expected, i, op.to);
      if (got == want) continue;
      throw mismatch(joined("MISMATCH ", op.name, " ", name_of(op.from), " ", name_of(op.to), ", ", e.label, "\nchunk ",
                            number, ", element ", std::to_string(i), " of ", std::to_string(chunk_elements),
                            "\n  inputs:   x = ", describe_bits(op.from, in_[i]),
                            "\n  got:      ", describe_bits(op.to, got), "\n  expected: ", describe_bits(op.to, want),
                            ", says ", source, "\n"));
    }
    const auto pieces = reference::piece_digests(out.data(), chunk_elements, size_of(op.to));
    throw mismatch(
        joined("MISMATCH ", file, "\nchunk ", number,
               "\n  committed: ", sha256::hex(committed.chunks[static_cast<std::size_t>(chunk)]),
               "\n  got:       ", sha256::hex(reference::chunk_digest(op, chunk, pieces)), " (", e.label, ")\n",
               source.empty()
                   ? "no instruction set has the committed digest; a build with MPFR can name the element\n"
                   : joined("every element is that of ", source, ": the committed digest is wrong, not the result\n")));
  }

  const verify_options& options_;
  std::vector<engine> engines_;
  std::vector<std::uint32_t> in_;
  std::vector<std::byte> proved_, out_;
};

/// The chunks that --quick takes: one of the middle of the exponents, the sign alternating from operation to operation.
int quick_chunk(std::size_t op) { return static_cast<int>((op % 2 == 0 ? 0x3c : 0xbc) + op * 5 % 7); }

}  // namespace

void verify_chunks(const verify_options& options, std::vector<variant>& variants, verify_table& table) {
  std::vector<exhaustive_op> ops;
  std::vector<std::string> files;
  std::vector<exhaustive_digests> committed;
  for (exhaustive_op& op : reference::exhaustive_ops()) {
    if (!options.wants(op.name)) continue;
    files.push_back(options.digests + "/" + op.file_name());
    committed.push_back(read_file(op, files.back()));
    ops.push_back(std::move(op));
  }
  // One variant per instruction set and GPU: here threads are workers, and unary functions have one tier.
  std::vector<variant*> engines;
  for (variant& v : variants) {
    bool seen = false;
    for (const variant* e : engines)
      seen = seen || (e->options.isa == v.options.isa && e->options.where == v.options.where);
    if (!seen) engines.push_back(&v);
  }
  const int available = context({.where = {}, .stream = nullptr, .threads = options.threads}).threads();
  std::int64_t total = 0;
  const int chunks = options.quick ? 1 : reference::chunk_count;
  total = static_cast<std::int64_t>(ops.size() * engines.size()) * chunks * static_cast<std::int64_t>(chunk_elements);
  progress bar("all inputs", total);
  std::vector<task> tasks;
  for (std::size_t o = 0; o < ops.size(); ++o) {
    for (int c = 0; c < chunks; ++c) tasks.push_back({o, options.quick ? quick_chunk(o) : c});
  }
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  const auto work = [&] {
    try {
      worker w(options, engines);
      for (std::size_t i = next++; i < tasks.size(); i = next++) {
        const task& t = tasks[i];
        w.run(ops[t.op], t.chunk, committed[t.op], files[t.op]);
        const auto computed = static_cast<std::int64_t>(chunk_elements * engines.size());
        bar.add(computed, ops[t.op].name);
        const std::lock_guard lock(mutex);
        verify_row& row = table.at(name_of_row(ops[t.op]));
        row.chunks += static_cast<std::int64_t>(engines.size());
        row.elements += computed;
        for (variant* v : engines) {
          v->elements += chunk_elements;
          ++v->runs;
        }
      }
      for (std::size_t e = 0; e < engines.size(); ++e) {
        const statistics s = w.read_statistics(e);
        const std::lock_guard lock(mutex);
        for (int i = 0; i < 4; ++i) engines[e]->tiers.elements[i] += s.elements[i];
        engines[e]->seconds += w.seconds(e);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      next = tasks.size();
    }
  };
  std::vector<std::thread> pool;
  for (int i = 1; i < available; ++i) pool.emplace_back(work);
  work();
  for (std::thread& t : pool) t.join();
  if (failure) {
    bar.clear();
    std::rethrow_exception(failure);
  }
}

}  // namespace repdl::tools
