// `repdl eval`: any operation on .npy files.
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "tools/cli/arguments.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/npy.hpp"
#include "tools/cli/output_files.hpp"

namespace repdl::tools {
namespace {

attributes attributes_of(const op_info& op, const arguments& args) {
  attributes attrs;
  const auto add = [&](std::string_view name, std::string_view text) {
    for (const attribute& a : attrs) {
      if (a.name == name) fail(error_site::duplicate_attribute, op.name, name, "each attribute once", "it twice");
    }
    attrs.push_back(parse_attribute(op, name, text));
  };
  for (const std::string_view a : args.values("--attr")) {
    const std::size_t equals = a.find('=');
    if (equals == std::string_view::npos) usage("eval", "--attr", "NAME=VALUE", in_quotes(a));
    add(a.substr(0, equals), a.substr(equals + 1));
  }
  if (const auto type = args.value("--dtype")) add("dtype", *type);
  return attrs;
}

}  // namespace

int run_eval(command_arguments raw) {
  const arguments args("eval", raw, {{"-o"}, {"--backend"}, {"--isa"}, {"--threads"}, {"--dtype"}, {"--attr"}});
  const auto& words = args.positional();
  if (words.empty()) usage("eval", "arguments", "OP IN.npy... -o OUT.npy", "no operation");
  const op_info* op = find(words[0]);
  if (op == nullptr) {
    fail(error_site::unknown_operation, "eval", "OP", "an operation (see: repdl info --operations)",
         in_quotes(words[0]));
  }
  std::size_t required = 0;
  for (const operand_info& o : op->in) required += o.optional ? 0 : 1;
  const std::size_t given = words.size() - 1;
  const bool grouped = op->family == "optimizer";  // once per tensor: call() counts
  if (given < required || (!grouped && given > op->in.size())) {
    std::string names;
    for (const operand_info& o : op->in) names += (o.optional ? " [" : " ") + o.name + (o.optional ? "]" : "");
    fail(error_site::input_count, op->name, "inputs",
         op->in.empty() ? "no input files" : "the input files" + names + (grouped ? ", for each tensor" : ""),
         std::to_string(given));
  }
  const auto destinations = args.values("-o");
  const bool to_stdout = std::find(destinations.begin(), destinations.end(), standard_output) != destinations.end();
  if (to_stdout && ::isatty(STDOUT_FILENO) == 1) {
    usage("eval", "-o", "standard output to be a file or a pipe for '-'", "a terminal");
  }
  expect_distinct(destinations);
  // Optional outputs at the end may be left out; of an optimiser those that name no input, which come once.
  const auto is_optional = [&](const operand_info& o) {
    const auto has_its_name = [&](const operand_info& i) { return i.name == o.name; };
    return o.optional && !(grouped && std::any_of(op->in.begin(), op->in.end(), has_its_name));
  };
  const auto optional = static_cast<std::size_t>(std::count_if(op->out.begin(), op->out.end(), is_optional));
  const auto expect_destinations = [&](std::size_t n) {
    if (destinations.size() <= n && destinations.size() + optional >= n) return;
    fail(error_site::output_count, op->name, "-o",
         (optional == 0 ? "" : std::to_string(n - optional) + " to ") + std::to_string(n) +
             (n == 1 ? " output file" : " output files"),
         std::to_string(destinations.size()));
  };
  if (!grouped) expect_destinations(op->out.size());
  const attributes attrs = attributes_of(*op, args);
  context ctx(args.context());

  std::vector<host_tensor> in;
  std::vector<const_tensor_view> views;
  for (std::size_t i = 1; i < words.size(); ++i) in.push_back(read_npy(std::string(words[i])));
  views.reserve(in.size());
  for (const host_tensor& t : in) views.push_back(t.view());
  std::vector<host_tensor> out;
  std::vector<tensor_view> out_views;
  for (const tensor_spec& s : infer(*op, views, attrs)) out.emplace_back(s);
  expect_destinations(out.size());
  out_views.resize(out.size());
  for (std::size_t i = 0; i < destinations.size(); ++i) out_views[i] = out[i].writable();
  call_on_host(ctx, *op, views, out_views, attrs);

  output_files files;
  for (std::size_t i = 0; i < destinations.size(); ++i) {
    const std::string header = npy_header({out[i].type, out[i].shape});
    const std::string_view pieces[] = {header, {reinterpret_cast<const char*>(out[i].data.data()), out[i].data.size()}};
    files.add(std::string(destinations[i]), pieces);
  }
  files.commit();
  return 0;
}

}  // namespace repdl::tools
