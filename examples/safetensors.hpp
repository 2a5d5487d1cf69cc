// Tensors in files of the safetensors format (https://huggingface.co/docs/safetensors), which other libraries read too:
//
//     8 bytes     n, little-endian
//     n bytes     JSON: {"__metadata__": {"key": "text", ...},
//                        "name": {"dtype": "F32", "shape": [16, 1, 3, 3], "data_offsets": [begin, end]}, ...}
//     the rest    the elements, row-major and little-endian; offsets count from here, without gaps or overlaps
#pragma once

#include <cstddef>
#include <librepdl/tensor.hpp>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace examples {

/// A file that cannot be read or written. The message reads "FILE: expected EXPECTED, got GOT".
class file_error : public std::runtime_error {
 public:
  file_error(std::string_view path, std::string_view expected, std::string_view got);
};

/// A tensor in the host's memory.
struct stored_tensor {
  std::string name;
  repdl::dtype type{};
  repdl::sizes shape;
  std::vector<std::byte> bytes;

  repdl::const_tensor_view view() const { return {bytes.data(), type, shape}; }
};

/// The contents of a file.
struct tensor_file {
  std::map<std::string, std::string> metadata;
  std::vector<stored_tensor> tensors;  ///< each name once; none is "__metadata__"
};

/// The same contents give the same bytes. Elements of larger types come first, so that all are aligned. The file
/// appears whole or not at all: it is written under a temporary name beside its place, and renamed. Throws file_error.
void write_tensors(const std::string& path, const tensor_file& file);

/// Reads the types F16, BF16, F32, F64, I64 and BOOL; tensors are in the order of their elements. Throws file_error for
/// whatever the format does not allow.
tensor_file read_tensors(const std::string& path);

}  // namespace examples
