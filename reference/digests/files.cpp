// Reading docs/digests: the cases of an operation, and what releases have published.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

#include "reference/digests.hpp"
#include "reference/exhaustive.hpp"

namespace repdl::reference {
namespace {

[[noreturn]] void malformed(const std::string& argument, const std::string& expected, const std::string& got) {
  throw std::runtime_error(argument + ": expected " + expected + ", got '" + got + "'");
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> v;
  for (std::size_t from = 0;;) {
    const std::size_t to = text.find(separator, from);
    v.push_back(text.substr(from, to - from));
    if (to == std::string::npos) return v;
    from = to + 1;
  }
}

template <class T>
bool parse_number(std::string_view text, T& value, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size();
}

std::vector<shape_list> parse_shapes(const std::string& text) {
  std::vector<shape_list> shapes;
  if (text == "-") return shapes;
  for (const std::string& shape : split(text, ',')) {
    shapes.emplace_back();
    if (shape == "absent") shapes.back() = absent_shape;
    if (shape == "absent" || shape == "scalar") continue;
    for (const std::string& size : split(shape, 'x')) {
      shapes.back().push_back(0);
      if (!parse_number(size, shapes.back().back())) {
        malformed("shapes", "-, or shapes like 5x1x33, scalar, absent", text);
      }
    }
  }
  return shapes;
}

attribute parse_attribute_of(const op_info& op, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) malformed("attribute", "NAME=VALUE", text);
  const std::string name = text.substr(0, equals), value = text.substr(equals + 1);
  std::uint64_t bits = 0;
  if (value.size() == 17 && value[0] == 'h' && parse_number(std::string_view(value).substr(1), bits, 16)) {
    return {name, std::bit_cast<double>(bits)};
  }
  return parse_attribute(op, name, value);
}

case_line parse_line(const std::string& text, const op_info& op, std::size_t number) {
  const std::size_t arrow = text.find(" -> ");
  if (arrow == std::string::npos) malformed("line", "CASE -> DIGEST", text);
  const std::string digest = text.substr(arrow + 4);
  const std::vector<std::string> words = split(text.substr(0, arrow), ' ');
  if (words.size() < 6) malformed("case", "OP bits=N FORMATS CLASS SHAPES seed=N NAME=VALUE...", text.substr(0, arrow));
  case_line l;
  digest_case& c = l.c;
  c.op = words[0];
  if (c.op != op.name) malformed("operation", op.name, c.op);
  c.bits = op.bits;
  if (words[1] != "bits=" + std::to_string(op.bits)) malformed("bits", "bits=" + std::to_string(op.bits), words[1]);
  for (const std::string& f : split(words[2], ',')) c.formats.push_back(format_named(f));
  c.kind = sample_class_named(words[3]);
  c.shapes = parse_shapes(words[4]);
  const bool open_seed = words[5] == "seed=?" && digest == "?";
  if (open_seed) {
    c.seed = case_seed(c.op, c.formats, number);
  } else if (!words[5].starts_with("seed=") || !parse_number(std::string_view(words[5]).substr(5), c.seed)) {
    malformed("seed", "seed=N", words[5]);
  }
  for (std::size_t i = 6; i < words.size(); ++i) c.attrs.push_back(parse_attribute_of(op, words[i]));
  std::vector<dtype> formats = c.formats;
  formats.resize(c.shapes.size());  // of the inputs
  formats = call_formats(op, formats, c.shapes, c.attrs);
  if (c.formats != formats) malformed("formats", formats_text(formats), formats_text(c.formats));
  if (digest == "?") return l;
  l.value = parse_digest(digest);
  if (to_text(l) != text) malformed("line", "'" + to_text(l) + "'", text);
  return l;
}

/// The first lines of a file, with their ends.
struct first_lines {
  std::size_t lines = 0;
  std::string text;
};
first_lines read_lines(const std::string& path, std::size_t most) {
  std::ifstream f(path, std::ios::binary);
  first_lines r;
  for (std::string line; r.lines < most && std::getline(f, line); ++r.lines) r.text += line + (f.eof() ? "" : "\n");
  return r;
}

struct published_file {
  std::string release, file;
  std::size_t lines = 0;
  sha256::digest hash{};
};

std::vector<published_file> read_published(const std::string& directory) {
  const std::string path = directory + "/published.txt";
  std::ifstream f(path);
  if (!f) throw std::runtime_error(path + ": expected a file, got none");
  std::vector<published_file> all;
  for (std::string line; std::getline(f, line);) {
    const std::vector<std::string> words = split(line, ' ');
    published_file p;
    if (words.size() != 4 || !parse_number(words[2], p.lines)) {
      malformed(path + ":" + std::to_string(all.size() + 1), "RELEASE FILE LINES DIGEST", line);
    }
    p.release = words[0];
    p.file = words[1];
    p.hash = parse_digest(words[3]);
    all.push_back(std::move(p));
  }
  return all;
}

sha256::digest hash_of(const std::string& text) { return sha256::of(text.data(), text.size()); }

}  // namespace

std::vector<dtype> call_formats(const op_info& op, std::vector<dtype> in, const std::vector<shape_list>& shapes,
                                const attributes& attrs) {
  alignas(8) static constexpr std::byte memory[8]{};  // only types and shapes are looked at
  std::vector<const_tensor_view> views;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    views.push_back(shapes[i] == absent_shape ? const_tensor_view()
                                              : const_tensor_view(memory, in[i], sizes(shapes[i])));
  }
  for (const tensor_spec& out : infer(op, views, attrs)) in.push_back(out.type);
  return in;
}

std::string case_file(const std::string& directory, std::string_view op) {
  return directory + "/cases/" + std::string(op) + ".txt";
}

std::string to_text(const case_line& l) { return to_text(l.c) + " -> " + (l.value ? sha256::hex(*l.value) : "?"); }

std::vector<case_line> read_case_lines(std::istream& in, const op_info& op, const std::string& name) {
  std::vector<case_line> v;
  for (std::string line; std::getline(in, line);) {
    try {
      v.push_back(parse_line(line, op, v.size() + 1));
    } catch (const std::exception& e) {
      throw std::runtime_error(name + ":" + std::to_string(v.size() + 1) + ": " + e.what());
    }
  }
  return v;
}

std::vector<committed_digest> read_cases(std::istream& in, const op_info& op, const std::string& name) {
  std::vector<committed_digest> v;
  for (const case_line& l : read_case_lines(in, op, name)) {
    if (!l.value) {
      throw std::runtime_error(name + ":" + std::to_string(v.size() + 1) +
                               ": digest: expected 64 hexadecimal digits (repdl digests --add), got '?'");
    }
    v.push_back({l.c, *l.value});
  }
  if (v.empty()) throw std::runtime_error(name + ": expected cases of " + op.name + ", got none");
  return v;
}

std::vector<committed_digest> read_cases(const std::string& directory, const op_info& op) {
  const std::string file = case_file(directory, op.name);
  std::ifstream f(file);
  if (!f) throw std::runtime_error(file + ": expected cases of " + op.name + ", got no file");
  return read_cases(f, op, file);
}

void check_published(const std::string& directory) {
  for (const published_file& p : read_published(directory)) {
    const first_lines r = read_lines(directory + "/" + p.file, p.lines);
    if (r.lines == p.lines && hash_of(r.text) == p.hash) continue;
    throw std::runtime_error(directory + "/" + p.file + ": expected to begin with the " + std::to_string(p.lines) +
                             " lines that release " + p.release + " published, got " +
                             (r.lines == p.lines ? "other ones" : std::to_string(r.lines) + " lines"));
  }
}

std::string unpublished(const std::string& directory, std::string_view release) {
  std::map<std::string, std::size_t> lines;  // published, by file
  for (const published_file& p : read_published(directory)) lines[p.file] = std::max(lines[p.file], p.lines);
  std::string text;
  const std::filesystem::path root = directory;
  for (const std::string below : {"", "cases/"}) {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(root / below)) {
      const std::string name = entry.path().filename().string();
      if (name.ends_with(".txt") && name != "published.txt") files.push_back(below + name);
    }
    std::sort(files.begin(), files.end());
    for (const std::string& file : files) {
      const first_lines all = read_lines(root / file, static_cast<std::size_t>(-1));
      if (all.lines <= lines[file]) continue;
      text += std::string(release) + ' ' + file + ' ' + std::to_string(all.lines) + ' ' +
              sha256::hex(hash_of(all.text)) + '\n';
    }
  }
  return text;
}

}  // namespace repdl::reference
