#include "examples/safetensors.hpp"

#include <fstream>
#include <iterator>
#include <optional>
#include <vector>

#include "tests/bytes/memory_file.hpp"
#include "tools/cli/scratch_directory.hpp"

namespace fuzz {
namespace {

using examples::tensor_file;

std::optional<tensor_file> read(const std::string& path) {
  try {
    return examples::read_tensors(path);
  } catch (const examples::file_error& e) {
    require(std::string_view(e.what()).starts_with(path + ": expected "), e.what());
    return {};
  }
}

bool same(const tensor_file& a, const tensor_file& b) {
  if (a.metadata != b.metadata || a.tensors.size() != b.tensors.size()) return false;
  // They are written in another order: larger element types first.
  for (const auto& x : a.tensors) {
    bool found = false;
    for (const auto& y : b.tensors) {
      found = found || (x.name == y.name && x.type == y.type && x.shape == y.shape && x.bytes == y.bytes);
    }
    if (!found) return false;
  }
  return true;
}

}  // namespace

void safetensors(bytes input) {
  const memory_file file(input);
  const std::optional<tensor_file> tensors = read(file.path());
  if (!tensors) return;
  for (const auto& t : tensors->tensors) {
    require(t.bytes.size() == static_cast<std::size_t>(repdl::byte_count({t.type, t.shape})), "bytes of another shape");
  }
  static const repdl::tools::scratch_directory directory;
  const std::string path = directory.file("written");
  examples::write_tensors(path, *tensors);
  const std::optional<tensor_file> again = read(path);
  require(again && same(*tensors, *again), "what was written is read otherwise");
}

}  // namespace fuzz
