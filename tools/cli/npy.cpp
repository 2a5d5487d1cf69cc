#include "tools/cli/npy.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>

#include "librepdl/ops/formats.hpp"
#include "tools/cli/text.hpp"

namespace repdl::tools {
namespace {

constexpr std::string_view magic = "\x93NUMPY";

// The descriptor that is written. NumPy has no bfloat16: it saves that of ml_dtypes as two bytes without a meaning.
constexpr std::string_view descr_of(dtype t) {
  switch (t) {
    case dtype::f16:
      return "<f2";
    case dtype::bf16:
      return "<u2";
    case dtype::f32:
      return "<f4";
    case dtype::f64:
      return "<f8";
    case dtype::i64:
      return "<i8";
    case dtype::boolean:
      return "|b1";
    case dtype::i32:
      return "<i4";
    case dtype::f8_e4m3fn:
    case dtype::f8_e5m2:
      return "|u1";
  }
  return {};
}
constexpr std::string_view more_of_bf16[] = {"<V2", "|V2"}, of_f8[] = {"|u1", "<u1", "<V1", "|V1"};
constexpr bool is_f8(dtype t) { return (ops::F8 & ops::one(t)) != 0; }

// "x.npy:f8_e5m2" is the file x.npy and the type of its bytes.
std::optional<dtype> take_type(std::string& path) {
  for (const ops::type_traits& t : ops::types) {
    const std::string suffix = joined(":", t.name);
    if (!is_f8(t.type) || !path.ends_with(suffix)) continue;
    path.resize(path.size() - suffix.size());
    return t.type;
  }
  return std::nullopt;
}

/// A file that is open for reading.
class input_file {
 public:
  explicit input_file(const std::string& path) : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) unreadable();
    struct stat s {};
    if (::fstat(fd_, &s) == 0 && S_ISREG(s.st_mode)) size_ = s.st_size;
  }
  ~input_file() { ::close(fd_); }
  input_file(const input_file&) = delete;
  input_file& operator=(const input_file&) = delete;

  /// Bytes in the file; unknown for pipes.
  std::optional<std::int64_t> size() const { return size_; }
  /// Reads up to n bytes: fewer only at the end of the file.
  std::size_t read(void* to, std::size_t n) {
    std::size_t done = 0;
    while (done < n) {
      const ssize_t got = ::read(fd_, static_cast<char*>(to) + done, std::min<std::size_t>(n - done, 1u << 30));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) unreadable();
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

 private:
  [[noreturn]] void unreadable() const {
    fail(error_site::file_open, "eval", path_, "a readable .npy file", std::strerror(errno));
  }
  const std::string& path_;
  int fd_;
  std::optional<std::int64_t> size_;
};

struct header {
  dtype type{};
  bool fortran = false;
  sizes shape;
};

/// Reads the dictionary of a header: Python literals, the three keys in any order.
class header_reader {
 public:
  header_reader(const std::string& path, std::string_view text, std::optional<dtype> f8)
      : path_(path), text_(text), f8_(f8) {}

  header read() {
    header h;
    bool seen[3] = {};
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string_literal();
      expect(':');
      const int k = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : -1;
      if (k < 0 || seen[k]) wrong("the keys descr, fortran_order and shape, once each", in_quotes(key));
      seen[k] = true;
      if (k == 0) h.type = type();
      if (k == 1) h.fortran = boolean();
      if (k == 2) h.shape = shape();
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    space();
    if (!text_.empty()) wrong("the end of the header", next());
    if (!seen[0] || !seen[1] || !seen[2]) wrong("the keys descr, fortran_order and shape", "fewer");
    return h;
  }

 private:
  [[noreturn]] void wrong(std::string_view expected, std::string_view got) const {
    fail(error_site::npy_header, "eval", path_, joined("a .npy header with ", expected), got);
  }
  std::string next() const { return text_.empty() ? "the end" : in_quotes(text_.substr(0, 12)); }
  void space() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n' || text_[0] == '\t')) text_.remove_prefix(1);
  }
  bool accept(char c) {
    space();
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) wrong(in_quotes({&c, 1}), next());
  }
  std::string_view string_literal() {
    space();
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) wrong("a quoted string", next());
    const std::size_t end = text_.find(text_[0], 1);
    if (end == std::string_view::npos) wrong("a closing quote", next());
    const std::string_view s = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return s;
  }
  dtype type() {
    space();
    std::string_view got = "a structured type";
    if (text_.empty() || text_[0] != '[') {
      got = string_literal();
      const bool is_byte = std::ranges::find(of_f8, got) != std::end(of_f8);
      if (f8_ && is_byte) return *f8_;
      if (is_byte) {
        fail(error_site::npy_dtype, "eval", path_,
             joined("the type of its bytes: ", path_, ":f8_e4m3fn or ", path_, ":f8_e5m2"), in_quotes(got));
      }
      for (const ops::type_traits& t : ops::types) {
        if (!f8_ && descr_of(t.type) == got) return t.type;
      }
      if (!f8_ && std::ranges::find(more_of_bf16, got) != std::end(more_of_bf16)) return dtype::bf16;
    }
    fail(error_site::npy_dtype, "eval", path_,
         f8_ ? "an element type |u1, <V1 or |V1, of f8"
             : "an element type <f2, <f4, <f8, <i8, <i4, |b1, or, of bf16, <u2, <V2 or |V2",
         in_quotes(got));
  }
  bool boolean() {
    space();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (!text_.starts_with(word)) continue;
      text_.remove_prefix(word.size());
      return value;
    }
    wrong("True or False", next());
  }
  sizes shape() {
    sizes s;
    expect('(');
    while (!accept(')')) {
      space();
      std::int64_t n = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), n);
      if (error != std::errc() || n < 0) wrong("sizes >= 0 in its shape", next());
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      if (s.size() == max_rank) {
        fail(error_site::rank_too_large, "eval", path_, "at most " + std::to_string(max_rank) + " sizes", "more");
      }
      s.push_back(n);
      accept('L');  // as Python 2 wrote them
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return s;
  }

  const std::string& path_;
  std::string_view text_;
  std::optional<dtype> f8_;
};

sizes column_major(sizes shape) {
  std::reverse(shape.begin(), shape.end());
  sizes strides = row_major(shape);
  std::reverse(strides.begin(), strides.end());
  return strides;
}

}  // namespace

host_tensor read_npy(const std::string& given) {
  std::string path = given;
  const std::optional<dtype> f8 = take_type(path);
  input_file file(path);
  unsigned char start[12] = {};
  if (file.read(start, 8) < 8 || std::memcmp(start, magic.data(), magic.size()) != 0) {
    fail(error_site::npy_magic, "eval", path, "a file that starts with \\x93NUMPY", "another file");
  }
  if (start[6] < 1 || start[6] > 3) {
    fail(error_site::npy_version, "eval", path, ".npy version 1, 2 or 3",
         std::to_string(start[6]) + "." + std::to_string(start[7]));
  }
  const std::size_t length_bytes = start[6] == 1 ? 2 : 4;
  std::size_t length = 0;
  if (file.read(start + 8, length_bytes) < length_bytes) length = ~std::size_t{0};
  for (std::size_t i = 0; i < length_bytes; ++i) length |= static_cast<std::size_t>(start[8 + i]) << 8 * i;
  constexpr std::size_t longest = 1u << 20;
  std::string text(std::min(length, longest), ' ');
  if (length > longest || file.read(text.data(), length) < length) {
    fail(error_site::npy_truncated, "eval", path, "a whole .npy header",
         "a file that ends before, or a length over 1 MiB");
  }
  const header h = header_reader(path, text, f8).read();

  host_tensor t;
  t.type = h.type;
  t.shape = h.shape;
  const std::int64_t bytes = byte_count({h.type, h.shape});
  t.strides = h.fortran ? column_major(h.shape) : row_major(h.shape);
  const auto header_bytes = static_cast<std::int64_t>(8 + length_bytes + length);
  const auto wrong_size = [&](const std::string& got) {
    fail(error_site::npy_truncated, "eval", path,
         std::to_string(bytes) + " bytes of elements for shape " + to_string(h.shape), got);
  };
  // A header may promise anything: nothing is allocated before the file is known to have it.
  if (bytes > (std::int64_t{1} << 48)) wrong_size("a file, which cannot hold them");
  if (file.size() && *file.size() - header_bytes != bytes) {
    wrong_size(std::to_string(*file.size() - header_bytes));
  }
  constexpr std::size_t piece = std::size_t{1} << 26;
  const auto want = static_cast<std::size_t>(bytes);
  if (file.size()) t.data.reserve(want);
  while (t.data.size() < want) {
    const std::size_t have = t.data.size();
    const std::size_t n = std::min(piece, want - have);
    t.data.resize(have + n);
    const std::size_t got = file.read(t.data.data() + have, n);
    if (got < n) wrong_size(std::to_string(have + got));
  }
  char more = 0;
  if (file.read(&more, 1) != 0) wrong_size("more");
  if (t.type == dtype::boolean) {
    for (std::byte& b : t.data) b = std::byte{static_cast<unsigned char>(b != std::byte{0})};
  }
  return t;
}

std::string npy_header(const tensor_spec& spec) {
  std::string dictionary = "{'descr': '";
  dictionary += descr_of(spec.type);
  dictionary += "', 'fortran_order': False, 'shape': (";
  for (int i = 0; i < spec.shape.size(); ++i) {
    dictionary += joined(i == 0 ? "" : ", ", std::to_string(spec.shape[i]));
  }
  dictionary += spec.shape.size() == 1 ? ",), }" : "), }";
  constexpr std::size_t before = 10;
  constexpr std::size_t alignment = 64;
  const std::size_t total = (before + dictionary.size() + 1 + alignment - 1) / alignment * alignment;
  dictionary.resize(total - before - 1, ' ');
  dictionary += '\n';
  std::string h(magic);
  h += '\x01';
  h += '\x00';
  h += static_cast<char>(dictionary.size() & 0xff);
  h += static_cast<char>(dictionary.size() >> 8);
  return h + dictionary;
}

}  // namespace repdl::tools
