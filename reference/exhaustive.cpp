#include "reference/exhaustive.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <istream>
#include <mutex>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "librepdl/ops/registry.hpp"
#include "reference/numbers/format.hpp"

namespace repdl::reference {
namespace {

std::string header(const exhaustive_op& op, std::uint64_t elements, const std::string& parameters) {
  std::ostringstream s;
  s << op.name << '|' << op.bits << '|' << format_name(op.from) << ',' << format_name(op.to) << '|' << elements << '|'
    << parameters;
  return s.str();
}

}  // namespace

std::string exhaustive_op::file_name() const {
  std::string s = name + '.' + std::string(format_name(from));
  if (to != from) s += '.' + std::string(format_name(to));
  return s + ".txt";
}

bool has_all_results(const ops::elementwise_row& r) {
  return r.arity == 1 && r.options.count() == 0 && r.name != "lgamma" && r.name != "digamma";
}

std::vector<exhaustive_op> exhaustive_ops() {
  std::vector<exhaustive_op> v;
  for (const ops::elementwise_row& r : ops::elementwise_rows()) {
    if (has_all_results(r)) v.push_back({std::string(r.name), r.bits, dtype::f32, r.result_type(dtype::f32)});
  }
  for (const dtype to : {dtype::f16, dtype::bf16, dtype::f64}) v.push_back({"convert", 1, dtype::f32, to});
  return v;
}

std::vector<sha256::digest> piece_digests(const void* data, std::uint64_t elements, std::size_t element_bytes) {
  std::vector<sha256::digest> v;
  const auto* p = static_cast<const unsigned char*>(data);
  for (std::uint64_t i = 0; i < elements; i += piece_elements)
    v.push_back(sha256::of(p + i * element_bytes, std::min(piece_elements, elements - i) * element_bytes));
  return v;
}

sha256::digest combine(const std::string& header_text, std::span<const sha256::digest> pieces) {
  sha256 h;
  h.update(header_text);
  for (const sha256::digest& d : pieces) h.update(d);
  return h.finish();
}

sha256::digest chunk_digest(const exhaustive_op& op, int chunk, std::span<const sha256::digest> pieces) {
  const std::uint64_t first = static_cast<std::uint64_t>(chunk) * chunk_elements;
  return combine(header(op, chunk_elements, "first=" + binary64_hex(first)), pieces);
}

sha256::digest whole_digest(const exhaustive_op& op, std::span<const sha256::digest> pieces) {
  return combine(header(op, chunk_elements * chunk_count, ""), pieces);
}

exhaustive_digests hash_all(const exhaustive_op& op, const range_function& f, int threads,
                            const progress_function& progress) {
  constexpr std::size_t pieces_per_chunk = chunk_elements / piece_elements;
  std::vector<sha256::digest> pieces(pieces_per_chunk * chunk_count);
  const std::size_t element_bytes = size_of(op.to);
  std::atomic<int> next{0};
  int done = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      std::vector<unsigned char> out(chunk_elements * element_bytes);
      for (int c = next++; c < chunk_count; c = next++) {
        f(static_cast<std::uint32_t>(c) << 24, chunk_elements, out.data());
        const auto d = piece_digests(out.data(), chunk_elements, element_bytes);
        std::copy(d.begin(), d.end(), pieces.begin() + static_cast<std::ptrdiff_t>(pieces_per_chunk) * c);
        const std::lock_guard lock(mutex);
        ++done;
        if (progress) progress(done);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      next = chunk_count;
    }
  };
  std::vector<std::thread> pool;
  for (int i = 1; i < threads; ++i) pool.emplace_back(work);
  work();
  for (std::thread& t : pool) t.join();
  if (failure) std::rethrow_exception(failure);

  exhaustive_digests r{op, whole_digest(op, pieces), {}};
  for (int c = 0; c < chunk_count; ++c)
    r.chunks.push_back(chunk_digest(
        op, c, std::span(pieces).subspan(pieces_per_chunk * static_cast<std::size_t>(c), pieces_per_chunk)));
  return r;
}

void write(std::ostream& out, const exhaustive_digests& d) {
  out << "# All 2^32 results, input patterns ascending. Written from the MPFR/GMP reference only (contract, section "
         "7).\n"
      << "# Line `chunk c` covers the inputs [c * 2^24, (c + 1) * 2^24); see reference/exhaustive.hpp.\n"
      << "op " << d.op.name << "\nbits " << d.op.bits << "\nformats " << format_name(d.op.from) << ' '
      << format_name(d.op.to) << "\nall " << sha256::hex(d.whole) << '\n';
  for (std::size_t c = 0; c < d.chunks.size(); ++c) {
    out << "chunk "
        << "0123456789abcdef"[c >> 4] << "0123456789abcdef"[c & 15] << ' ' << sha256::hex(d.chunks[c]) << '\n';
  }
}

exhaustive_digests read_exhaustive(std::istream& in) {
  exhaustive_digests d;
  std::string line;
  bool whole = false;
  while (std::getline(in, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream s(line);
    std::string key, a, b;
    s >> key >> a >> b;
    if (key == "op") {
      d.op.name = a;
    } else if (key == "bits") {
      d.op.bits = std::stoi(a);
    } else if (key == "formats") {
      d.op.from = format_named(a);
      d.op.to = format_named(b);
    } else if (key == "all") {
      d.whole = parse_digest(a);
      whole = true;
    } else if (key == "chunk" && std::stoul(a, nullptr, 16) == d.chunks.size()) {
      d.chunks.push_back(parse_digest(b));
    } else {
      throw std::runtime_error("digest file: unexpected line: " + line);
    }
  }
  if (!whole || d.op.name.empty() || d.chunks.size() != chunk_count)
    throw std::runtime_error("digest file: incomplete");
  return d;
}

std::string binary64_hex(std::uint64_t v) {
  const std::uint64_t bits = round(dtype::f64, false, v, 0, false);
  std::string s;
  for (int i = 60; i >= 0; i -= 4) s += "0123456789abcdef"[(bits >> i) & 15];
  return s;
}

sha256::digest parse_digest(const std::string& hex) {
  if (hex.size() != 64 || hex.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw std::runtime_error("digest file: not 64 hexadecimal digits: " + hex);
  sha256::digest d{};
  for (std::size_t i = 0; i < 32; ++i) d[i] = static_cast<std::uint8_t>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  return d;
}

}  // namespace repdl::reference
