// `repdl cases`: the published cases with their inputs, for the tests of bindings and ports.
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "reference/digests.hpp"
#include "tools/cli/arguments.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/data_directory.hpp"
#include "tools/cli/verify.hpp"

namespace repdl::tools {
namespace {

using reference::array;

nlohmann::ordered_json to_json(const attributes& attrs) {
  auto all = nlohmann::ordered_json::object();
  for (const attribute& a : attrs) {
    const auto* const real = std::get_if<double>(&a.value);
    if (real != nullptr && !std::isfinite(*real)) {
      all[a.name] = std::isnan(*real) ? "nan" : *real > 0 ? "inf" : "-inf";  // JSON has no number for them
    } else {
      std::visit([&](const auto& v) { all[a.name] = v; }, a.value);
    }
  }
  return all;
}

void write(const void* data, std::size_t bytes) {
  if (std::fwrite(data, 1, bytes, stdout) != bytes)
    fail(error_site::file_write, "cases", "standard output", "a file that takes the cases", "an error");
}

void write(const reference::committed_digest& d) {
  const std::vector<array> in = reference::inputs(d.c);
  auto inputs = nlohmann::ordered_json::array();
  for (const array& a : in) {
    inputs.push_back(a.absent() ? nlohmann::ordered_json()
                                : nlohmann::ordered_json{{"type", name_of(a.type)}, {"shape", a.shape}});
  }
  const nlohmann::ordered_json line{{"op", d.c.op},
                                    {"attributes", to_json(d.c.attrs)},
                                    {"inputs", inputs},
                                    {"header", reference::header(d.c)},
                                    {"digest", sha256::hex(d.value)}};
  const std::string text = line.dump() + "\n";
  write(text.data(), text.size());
  for (const array& a : in) write(a.bytes.data(), a.bytes.size());
}

}  // namespace

int run_cases(command_arguments raw) {
  const arguments args("cases", raw, {{"--digests"}, {"--every"}});
  const std::string directory =
      args.has("--digests") ? std::string(*args.value("--digests")) : data_directory() + "/docs/digests";
  const auto every = static_cast<std::size_t>(args.integer("--every", 1, 1, 1'000'000));
  std::vector<const op_info*> chosen;
  for (const std::string_view name : args.positional()) {
    const op_info* const op = find(name);
    if (op == nullptr) fail(error_site::unknown_operation, "cases", "OP", "an operation", joined("'", name, "'"));
    chosen.push_back(op);
  }
  if (chosen.empty()) {
    for (const op_info& op : operations()) chosen.push_back(&op);
  }
  for (const op_info* op : chosen) {
    const std::vector<reference::committed_digest> published = read_cases(directory, *op);
    for (std::size_t i = 0; i < published.size(); i += every) write(published[i]);
  }
  return 0;
}

}  // namespace repdl::tools
