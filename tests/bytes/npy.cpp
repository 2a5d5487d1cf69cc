#include "tools/cli/npy.hpp"

#include <cstring>
#include <optional>
#include <vector>

#include "tests/bytes/memory_file.hpp"

namespace fuzz {
namespace {

using repdl::tools::host_tensor;

// Nothing, where it is refused.
std::optional<host_tensor> read(bytes input) {
  const memory_file file(input);
  try {
    return repdl::tools::read_npy(file.path());
  } catch (const repdl::error& e) {
    require(std::strlen(e.what()) > 0, "an error without a message");
    return {};
  }
}

}  // namespace

void npy(bytes input) {
  const std::optional<host_tensor> t = read(input);
  if (!t) return;
  const repdl::tensor_spec spec{t->type, t->shape};
  require(t->data.size() == static_cast<std::size_t>(repdl::byte_count(spec)), "bytes of another shape");
  require(t->view().count() == repdl::element_count(t->shape), "a view of another shape");

  const std::string header = repdl::tools::npy_header(spec);
  std::vector<std::uint8_t> written(header.begin(), header.end());
  for (const std::byte b : t->data) written.push_back(static_cast<std::uint8_t>(b));
  const std::optional<host_tensor> again = read(written);
  require(again && again->type == t->type && again->shape == t->shape && again->data == t->data,
          "what was written is read otherwise");
}

}  // namespace fuzz
