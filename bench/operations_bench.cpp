// Every structured operation of the registry, in each of its formats, on one thread with the best instruction set, against a copy of its
// largest operand: names NAME/FORMAT. The calls come from the operations' records (librepdl/samples/call_shapes.hpp), so that a new operation
// of a family has a row; the rows that are compared with peers are in the other files.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "bench/by_turns.hpp"
#include "bench/inputs.hpp"
#include "librepdl/librepdl.hpp"
#include "librepdl/samples/call_shapes.hpp"

namespace {

using repdl::sizes;
using repdl::ops::domain;
using repdl::ops::row_axes;
using ops_family = repdl::ops::family;

struct large_shapes {
  sizes x;
  std::vector<sizes> own;  // what does not follow from x
};
large_shapes shapes_of(const repdl::samples::record& r) {
  switch (r.family) {
    case ops_family::convolution:
      return {{2, 64, 28, 28}, {{64, 64, 3, 3}, {64}}};
    case ops_family::pooling:
    case ops_family::upsample:
      return {{16, 64, 28, 28}, {}};
    case ops_family::matmul:
      return {{256, 256}, {{256, 256}, {256}}};
    case ops_family::scatter:
      if (r.id == repdl::ops::op_id::scatter_add)
        return {{4096, 128}, {{4096, 128}, {4096, 128}}};  // each element has an index
      return {{4096, 128}, {{4096}, {4096, 128}}};
    case ops_family::draw:
      return {{64, 4096}, {}};
    case ops_family::attention:
      if (r.id == repdl::ops::op_id::attention_backward)
        return {{4, 128, 64}, {{4, 128, 64}, {4, 128, 64}, {4, 128, 64}, {4, 128, 64}, {4, 128}}};
      return {{4, 128, 64}, {{4, 128, 64}, {4, 128, 64}}};
    case ops_family::convert:
    case ops_family::reduce:
    case ops_family::softmax:
    case ops_family::norm:
    case ops_family::optimizer:
    case ops_family::random:
    case ops_family::loss:
    case ops_family::nll:
    case ops_family::sequence:
    case ops_family::scan:
    case ops_family::exponent:
      break;
  }
  if (r.axes == row_axes::channels || r.axes == row_axes::groups) return {{16, 64, 28, 28}, {}};
  if (r.axes == row_axes::last || r.axes == row_axes::classes) return {{512, 1024}, {}};
  return {{1 << 19}, {}};
}

// What calls have to be told, by the attributes' names.
repdl::attributes attributes_of(const repdl::op_info& op, std::string_view format) {
  static constexpr std::pair<const char*, const char*> known[] = {
      {"kernel", "2,2"}, {"size", "14,14"}, {"shape", "524288"}, {"n", "524288"},   {"count", "524288"},
      {"rows", "4096"},  {"start", "1"},    {"end", "2"},        {"step", "0.5"},   {"p", "0.5"},
      {"high", "1000"},  {"groups", "8"},   {"eps", "1e-5"},     {"max_norm", "1"}, {"num_samples", "64"}};
  repdl::attributes attrs;
  for (const repdl::attribute_info& a : op.attrs) {
    if (a.name == "dtype") attrs.push_back(repdl::parse_attribute(op, a.name, format));
    for (const auto& [name, text] : known) {
      if (a.name == name && a.required) attrs.push_back(repdl::parse_attribute(op, a.name, text));
    }
  }
  return attrs;
}

class problem {
 public:
  problem(const repdl::op_info& op, repdl::dtype format, const std::string& isa)
      : ctx({.threads = 1, .isa = isa}), op_(op) {
    const repdl::op_info& forward = repdl::samples::forward_of(op);
    const repdl::samples::record& record = repdl::samples::record_of(forward);
    const large_shapes shapes = shapes_of(record);
    repdl::samples::shaped_call call{{}, attributes_of(forward, name_of(format))};
    call.in = repdl::samples::operands_at(record, shapes.x, call.attrs, shapes.own);
    if (record.family == ops_family::optimizer) {  // what further options would need
      while (forward.in[call.in.size() - 1].optional) call.in.pop_back();
    }
    call = repdl::samples::gradient_of(op, call);
    attrs_ = call.attrs;
    for (const repdl::attribute& a : attributes_of(op, name_of(format))) {
      if (std::none_of(attrs_.begin(), attrs_.end(), [&](const repdl::attribute& b) { return a.name == b.name; }))
        attrs_.push_back(a);
    }
    for (std::size_t i = 0; i < call.in.size(); ++i)
      add(op.in[i], repdl::samples::record_of(op).in[i], call.in[i], format);
    for (const repdl::tensor_spec& s : infer(op, in_, attrs_)) {
      results_.emplace_back(ctx, s.type, s.shape);
      out_.push_back(results_.back().view());
    }
    for (const repdl::tensor& t : operands_) largest_ = std::max(largest_, byte_count(t.view().spec()));
    for (const repdl::tensor& t : results_) largest_ = std::max(largest_, byte_count(t.view().spec()));
    from_.resize(static_cast<std::size_t>(largest_), 1);
    to_.resize(from_.size());
  }

  void run(benchmark::State& state) {
    bench::by_turns(state, ctx, [&] { call(ctx, op_, in_, out_, attrs_); },
                    {"copy", [&] { std::memcpy(to_.data(), from_.data(), from_.size()); }});
    bench::per_element(state, std::max(count(operands_), count(results_)));
  }

  repdl::context ctx;

 private:
  // Numbers between 1/8 and 1, indices below 8.
  void add(const repdl::operand_info& info, const repdl::ops::operand& o, const std::optional<sizes>& shape,
           repdl::dtype format) {
    if (!shape) return in_.emplace_back(), void();
    const bool takes = std::find(info.types.begin(), info.types.end(), format) != info.types.end();
    const repdl::dtype type = takes && o.domain != domain::indices ? format : info.types[0];
    const std::int64_t n = repdl::element_count(*shape);
    std::vector<float> x = bench::uniform(n, in_.size() + 1, 0.125f, 1.0f);
    if (!repdl::ops::is_floating(type)) {
      for (float& v : x) v = static_cast<float>(static_cast<int>(v * 8));
    }
    if (o.domain == domain::logarithms) {
      for (float& v : x) v = -v;
    }
    operands_.emplace_back(ctx, type, *shape);
    const repdl::const_tensor_view numbers(x.data(), *shape);
    convert(ctx, numbers, operands_.back().view());
    in_.push_back(operands_.back().view());
  }
  static std::int64_t count(const std::vector<repdl::tensor>& all) {
    std::int64_t n = 0;
    for (const repdl::tensor& t : all) n = std::max(n, t.view().count());
    return n;
  }

  const repdl::op_info& op_;
  repdl::attributes attrs_;
  std::vector<repdl::tensor> operands_, results_;
  std::vector<repdl::const_tensor_view> in_;
  std::vector<repdl::tensor_view> out_;
  std::int64_t largest_ = 0;
  std::vector<char> from_, to_;
};

const bench::family registered("operations", [](const bench::family& family) {
  std::string best;
  for (const repdl::isa_info& isa : repdl::instruction_sets()) {
    if (isa.available) best = isa.name;
  }
  for (const repdl::op_info& op : repdl::operations()) {
    if (op.family == "elementwise") continue;
    const std::vector<repdl::dtype>& types = !op.in.empty() ? op.in[0].types : op.out[0].types;
    for (const repdl::dtype type : types) {
      if (!repdl::ops::is_floating(type) && op.family == "convert") continue;
      family.add_row(op.name + "/" + std::string(name_of(type)), best,
                     [&op, type](benchmark::State& s, const std::string& isa) { problem(op, type, isa).run(s); });
    }
  }
});

}  // namespace
