#include "examples/safetensors.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace examples {
namespace {

using json = nlohmann::json;

constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t longest_header = 100000000;  // what the format's own reader accepts
constexpr std::size_t alignment = 8;                 // of the elements within the file
constexpr int deepest = 2;                           // of {"name": {"shape": []}}, counted from 0
constexpr std::string_view metadata_key = "__metadata__";

struct type_name {
  repdl::dtype type;
  std::string_view text;
};
constexpr type_name type_names[] = {
    {repdl::dtype::f16, "F16"}, {repdl::dtype::bf16, "BF16"},         {repdl::dtype::f32, "F32"},
    {repdl::dtype::f64, "F64"}, {repdl::dtype::i64, "I64"},           {repdl::dtype::boolean, "BOOL"},
    {repdl::dtype::i32, "I32"}, {repdl::dtype::f8_e4m3fn, "F8_E4M3"}, {repdl::dtype::f8_e5m2, "F8_E5M2"}};

std::string error_text() { return std::strerror(errno); }

// ---- writing

// A temporary file that is removed unless it was put in its place.
class new_file {
 public:
  explicit new_file(const std::string& path) : path_(path) {
    const std::size_t slash = path.rfind('/');
    name_ = (slash == std::string::npos ? "" : path.substr(0, slash + 1)) + ".safetensors-XXXXXX";
    fd_ = ::mkostemp(name_.data(), O_CLOEXEC);
    if (fd_ < 0) unwritable();
  }
  ~new_file() {
    if (fd_ >= 0) ::close(fd_);
    if (!placed_) ::unlink(name_.c_str());
  }
  new_file(const new_file&) = delete;
  new_file& operator=(const new_file&) = delete;

  void write(const void* data, std::size_t n) {
    constexpr std::size_t most = std::size_t{1} << 30;
    const char* at = static_cast<const char*>(data);
    while (n > 0) {
      const ssize_t done = ::write(fd_, at, std::min(n, most));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) unwritable();
      at += done;
      n -= static_cast<std::size_t>(done);
    }
  }
  // The elements are on the disk before the name is.
  void place() {
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (::fchmod(fd_, 0666 & ~mask) != 0 || ::fsync(fd_) != 0) unwritable();
    if (::close(std::exchange(fd_, -1)) != 0) unwritable();
    if (::rename(name_.c_str(), path_.c_str()) != 0) unwritable();
    placed_ = true;
  }

 private:
  [[noreturn]] void unwritable() const { throw file_error(path_, "a place to write", error_text()); }
  const std::string& path_;
  std::string name_;
  int fd_ = -1;
  bool placed_ = false;
};

// ---- reading

// A regular file that is open for reading: what has no end, or may keep one waiting, is none.
class input_file {
 public:
  explicit input_file(const std::string& path)
      : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat s {};
    if (fd_ < 0 || ::fstat(fd_, &s) != 0) unreadable();
    size_ = static_cast<std::uint64_t>(s.st_size);
    if (S_ISREG(s.st_mode)) return;
    ::close(fd_);
    throw file_error(path, "a readable file",
                     S_ISDIR(s.st_mode) ? std::strerror(EISDIR) : "a pipe, a socket or a device");
  }
  ~input_file() { ::close(fd_); }
  input_file(const input_file&) = delete;
  input_file& operator=(const input_file&) = delete;

  std::uint64_t size() const { return size_; }
  // The next n bytes, which the file has.
  void read(void* to, std::size_t n) {
    constexpr std::size_t most = std::size_t{1} << 30;
    char* at = static_cast<char*>(to);
    while (n > 0) {
      const ssize_t got = ::read(fd_, at, std::min(n, most));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) unreadable();
      if (got == 0) throw file_error(path_, "a file of " + std::to_string(size_) + " bytes", "one that became shorter");
      at += got;
      n -= static_cast<std::size_t>(got);
    }
  }

 private:
  [[noreturn]] void unreadable() const { throw file_error(path_, "a readable file", error_text()); }
  const std::string& path_;
  int fd_;
  std::uint64_t size_ = 0;
};

// What the header says of one tensor.
struct entry {
  stored_tensor tensor;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// Reads the header value by value, each of which is forgotten then: the time is that of the text, whatever it says.
class header_reader {
 public:
  std::map<std::string, std::string> metadata;
  std::vector<entry> entries;  // in the header's order

  header_reader(const std::string& path, std::string_view text) : path_(path) {
    using event = json::parse_event_t;
    // The parser's default keeps the last of equal keys; the format forbids them.
    std::vector<std::set<std::string>> seen;
    std::string name;
    const auto watch = [&](int depth, event what, json& value) {
      if ((what == event::object_start || what == event::array_start) && depth > deepest) {
        wrong("a header of objects with arrays in them", "deeper ones");
      }
      if (what == event::object_start) seen.emplace_back();
      if (what == event::object_end) seen.pop_back();
      if (what == event::key) {
        auto key = value.get<std::string>();
        if (!seen.back().insert(key).second) wrong("each key once in its header", "'" + key + "' twice");
        if (depth == 1) name = std::move(key);
      }
      const bool complete = what == event::object_end || what == event::array_end || what == event::value;
      if (!complete || depth != 1) return true;
      add(name, value);
      return false;
    };
    if (text.empty() || text[0] != '{') wrong("a header that starts with '{'", "another one");
    try {
      const json emptied = json::parse(text, watch);
    } catch (const json::exception& e) {
      const std::string_view what = e.what();  // "[json.exception.parse_error.101] parse error at line 1, ..."
      const std::size_t close = what.find("] ");
      wrong("a header in JSON", close == std::string_view::npos ? what : what.substr(close + 2));
    }
  }

 private:
  [[noreturn]] void wrong(std::string_view expected, std::string_view got) const {
    throw file_error(path_, expected, got);
  }
  // For a message.
  static std::string text(const json& value) {
    constexpr std::size_t longest = 60;
    std::string s = value.dump(-1, ' ', true);
    if (s.size() > longest) s.replace(longest, std::string::npos, "...");
    return s;
  }
  static std::string kind(const json& value) { return std::string("a value of type ") + value.type_name(); }

  std::uint64_t number(const std::string& name, const json& value, const std::string& what) const {
    if (!value.is_number_unsigned()) {
      wrong(what + " of integers from 0 for '" + name + "'", text(value));
    }
    return value.get<std::uint64_t>();
  }

  void add(const std::string& name, const json& value) {
    if (name != metadata_key) return entries.push_back(one(name, value));
    if (!value.is_object()) wrong("an object of texts for '__metadata__'", kind(value));
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) wrong("texts in '__metadata__'", kind(text) + " for '" + key + "'");
      metadata[key] = text.get<std::string>();
    }
  }

  entry one(const std::string& name, const json& value) const {
    entry e;
    e.tensor.name = name;
    if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value.contains("shape") ||
        !value.contains("data_offsets")) {
      wrong("dtype, shape and data_offsets for '" + name + "'", text(value));
    }
    const json& type = value["dtype"];
    const type_name* known = nullptr;
    for (const type_name& t : type_names) {
      if (type.is_string() && type.get<std::string>() == t.text) known = &t;
    }
    if (known == nullptr) {
      wrong("a dtype F16, BF16, F32, F64, I64, I32, BOOL, F8_E4M3 or F8_E5M2 for '" + name + "'", text(type));
    }
    e.tensor.type = known->type;

    const json& shape = value["shape"];
    if (!shape.is_array()) wrong("a shape of integers from 0 for '" + name + "'", text(shape));
    if (shape.size() > repdl::max_rank) {
      wrong("at most " + std::to_string(repdl::max_rank) + " sizes for '" + name + "'", std::to_string(shape.size()));
    }
    constexpr std::uint64_t most_bytes = std::uint64_t{1} << 48;
    std::uint64_t bytes = repdl::size_of(known->type);  // where no size were 0: strides are products of them too
    bool empty = false;
    for (const json& size : shape) {
      const std::uint64_t n = number(name, size, "a shape");
      if (n > most_bytes || (n != 0 && bytes > most_bytes / n)) {
        wrong("a tensor of at most 2^48 bytes for '" + name + "'", text(shape));
      }
      bytes *= std::max<std::uint64_t>(n, 1);
      empty = empty || n == 0;
      e.tensor.shape.push_back(static_cast<std::int64_t>(n));
    }
    if (empty) bytes = 0;

    const json& offsets = value["data_offsets"];
    if (!offsets.is_array() || offsets.size() != 2) {
      wrong("two data_offsets for '" + name + "'", text(offsets));
    }
    e.begin = number(name, offsets[0], "data_offsets");
    e.end = number(name, offsets[1], "data_offsets");
    if (e.end < e.begin || e.end - e.begin != bytes) {
      wrong(std::to_string(bytes) + " bytes between the data_offsets of '" + name + "'", text(offsets));
    }
    return e;
  }

  const std::string& path_;
};

}  // namespace

file_error::file_error(std::string_view path, std::string_view expected, std::string_view got)
    : runtime_error(std::string(path).append(": expected ").append(expected).append(", got ").append(got)) {}

void write_tensors(const std::string& path, const tensor_file& file) {
  std::vector<const stored_tensor*> order;
  for (const stored_tensor& t : file.tensors) order.push_back(&t);
  std::stable_sort(order.begin(), order.end(), [](const stored_tensor* a, const stored_tensor* b) {
    return repdl::size_of(a->type) > repdl::size_of(b->type);
  });
  std::string text = "{";
  const auto add = [&](std::string_view key, const std::string& value) {
    text += (text.size() > 1 ? "," : "") + json(key).dump() + ":" + value;
  };
  std::set<std::string_view> names{metadata_key};
  std::size_t at = 0;
  try {
    if (!file.metadata.empty()) add(metadata_key, json(file.metadata).dump());
    for (const stored_tensor* t : order) {
      const auto* type = std::find_if(std::begin(type_names), std::end(type_names),
                                      [&](const type_name& n) { return n.type == t->type; });
      const std::size_t bytes = static_cast<std::size_t>(repdl::element_count(t->shape)) * repdl::size_of(t->type);
      if (bytes != t->bytes.size()) {
        throw file_error(path, std::to_string(bytes) + " bytes for '" + t->name + "'", std::to_string(t->bytes.size()));
      }
      if (!names.insert(t->name).second) {
        throw file_error(path, "each name once, and not '__metadata__'", "'" + t->name + "'");
      }
      const json shape(std::vector<std::int64_t>(t->shape.begin(), t->shape.end())), offsets{at, at + bytes};
      add(t->name, R"({"dtype":")" + std::string(type->text) + R"(","shape":)" + shape.dump() + R"(,"data_offsets":)" +
                       offsets.dump() + "}");
      at += bytes;
    }
  } catch (const json::exception&) {
    throw file_error(path, "names and metadata in UTF-8", "other bytes");
  }
  text += "}";
  text.resize((text.size() + alignment - 1) / alignment * alignment, ' ');

  unsigned char length[length_bytes];
  for (std::size_t i = 0; i < length_bytes; ++i) length[i] = static_cast<unsigned char>(text.size() >> 8 * i);
  new_file out(path);
  out.write(length, length_bytes);
  out.write(text.data(), text.size());
  for (const stored_tensor* t : order) out.write(t->bytes.data(), t->bytes.size());
  out.place();
}

tensor_file read_tensors(const std::string& path) {
  input_file in(path);
  if (in.size() < length_bytes) {
    throw file_error(path, "the 8 bytes of a header's length", std::to_string(in.size()) + " bytes");
  }
  unsigned char start[length_bytes];
  in.read(start, length_bytes);
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= std::uint64_t{start[i]} << 8 * i;
  if (length > longest_header) {
    throw file_error(path, "a header of at most " + std::to_string(longest_header) + " bytes", std::to_string(length));
  }
  const std::uint64_t behind = in.size() - length_bytes;
  if (length > behind) {
    throw file_error(path, "a header of " + std::to_string(length) + " bytes",
                     std::to_string(behind) + " bytes in all");
  }
  std::string text(length, '\0');
  in.read(text.data(), length);
  header_reader header(path, text);
  tensor_file file;
  file.metadata = std::move(header.metadata);
  std::vector<entry>& entries = header.entries;
  std::stable_sort(entries.begin(), entries.end(), [](const entry& a, const entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t at = 0;
  for (const entry& e : entries) {
    if (e.begin != at) {
      throw file_error(path, "the elements of '" + e.tensor.name + "' at offset " + std::to_string(at),
                       std::to_string(e.begin));
    }
    at = e.end;
  }
  if (at != behind - length) {
    throw file_error(path, std::to_string(at) + " bytes of elements", std::to_string(behind - length));
  }
  for (entry& e : entries) {
    e.tensor.bytes.resize(e.end - e.begin);
    in.read(e.tensor.bytes.data(), e.tensor.bytes.size());  // sorted: the next ones
    // As elsewhere in librepdl, a bool is 0 or 1.
    if (e.tensor.type == repdl::dtype::boolean) {
      for (std::byte& b : e.tensor.bytes) b = b == std::byte{0} ? b : std::byte{1};
    }
    file.tensors.push_back(std::move(e.tensor));
  }
  return file;
}

}  // namespace examples
