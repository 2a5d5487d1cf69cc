// Whether the drivers' estimates are right by which the CPU's calls are given threads (librepdl/dispatch/thread_work.hpp). Of each
// operation: nanoseconds that one thread takes for an element of the largest operand, from caches, beside the estimate in the code, and
// their quotient. An estimate that is too low keeps calls on few threads, one that is too high wakes threads that cost more than they do.
// Times are of the thread's own CPU clock, the median of 15 rounds. Usage: repdl_thread_bench [PREFIX...], of operations' or families'
// names; ./run bench threads.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/inputs.hpp"
#include "librepdl/dispatch/thread_work.hpp"
#include "librepdl/librepdl.hpp"

namespace {

using repdl::dtype;

// One call: shapes of the operands, and attributes as on the command line. In f32, or the type given, where the operation has it.
struct row {
  const char* op;
  std::vector<std::vector<std::int64_t>> shapes;
  std::vector<std::pair<const char*, const char*>> attributes{};
  dtype type = dtype::f32;
};

constexpr std::int64_t n = 16384;

// g, q, k, v, y and lse of heads of as many keys and values, of `size` numbers.
std::vector<std::vector<std::int64_t>> attended(std::int64_t heads, std::int64_t queries, std::int64_t keys,
                                                std::int64_t size) {
  const std::vector<std::int64_t> of_queries{heads, queries, size}, of_keys{heads, keys, size};
  return {of_queries, of_queries, of_keys, of_keys, of_queries, {heads, queries}};
}

std::vector<row> rows() {
  std::vector<row> all;
  for (const repdl::op_info& op : repdl::operations()) {
    if (op.family != "elementwise") continue;
    row r{op.name.c_str(), std::vector<std::vector<std::int64_t>>(op.in.size(), {n})};
    for (const repdl::attribute_info& a : op.attrs) {
      if (a.required) r.attributes.emplace_back(a.name.c_str(), "0.5");
    }
    all.push_back(std::move(r));
  }
  const std::vector<row> others{{"convert", {{n}}, {{"dtype", "f16"}}},
                                {"sum", {{n}}},
                                {"sum", {{128, 128}}, {{"axis", "0"}}},
                                {"sum", {{128, 128}}, {{"axis", "1"}}},
                                {"max", {{n}}},
                                {"argmax", {{128, 128}}, {{"axis", "1"}}},
                                {"dot", {{n}, {n}}},
                                {"vector_norm", {{n}}},
                                {"matmul", {{64, 64}, {64, 64}}},
                                {"matmul", {{256, 256}, {256, 256}}},
                                {"matmul", {{1, 512}, {512, 512}}},
                                {"conv2d", {{1, 16, 32, 32}, {16, 16, 3, 3}}},
                                {"conv2d", {{1, 1, 32, 32}, {8, 1, 5, 5}}},
                                {"conv2d_grad_weight", {{1, 16, 30, 30}, {1, 16, 32, 32}}, {{"kernel", "3,3"}}},
                                {"max_pool2d", {{1, 16, 32, 32}}, {{"kernel", "2"}}},
                                {"max_pool2d", {{1, 16, 32, 32}}, {{"kernel", "3"}, {"stride", "1"}}},
                                {"avg_pool2d", {{1, 16, 32, 32}}, {{"kernel", "2"}}},
                                {"avg_pool2d_backward", {{1, 16, 16, 16}}, {{"kernel", "2"}, {"size", "32,32"}}},
                                {"upsample_nearest2d", {{1, 16, 16, 16}}, {{"size", "32,32"}}},
                                {"upsample_linear", {{1, 16, 16, 16}}, {{"size", "32,32"}}},
                                {"upsample_cubic_backward", {{1, 16, 32, 32}}, {{"size", "16,16"}}},
                                {"softmax", {{128, 128}}},
                                {"log_softmax", {{128, 128}}},
                                {"logsumexp", {{128, 128}}},
                                {"cumsum", {{128, 128}}},
                                {"prod", {{128, 128}}, {{"axis", "1"}}},
                                {"cumprod", {{128, 128}}},
                                {"logcumsumexp", {{128, 128}}},
                                {"cumsum", {{128, 128}}, {}, dtype::i64},
                                {"cumprod", {{128, 128}}, {}, dtype::i64},
                                {"ldexp", {{n}, {n}}},
                                {"frexp", {{n}}},
                                {"attention", {{4, 128, 64}, {4, 128, 64}, {4, 128, 64}}},
                                {"attention", {{4, 128, 8}, {4, 128, 8}, {4, 128, 8}}},
                                {"attention", {{8, 1, 64}, {8, 512, 64}, {8, 512, 64}}},
                                {"attention_backward", attended(4, 128, 128, 64)},
                                {"attention_backward", attended(4, 128, 128, 8)},
                                {"attention_backward", attended(8, 1, 512, 64)},
                                {"softmax_backward", {{128, 128}, {128, 128}}},
                                {"cross_entropy", {{128, 128}, {128}}},
                                {"layer_norm", {{128, 128}}},
                                {"rms_norm", {{128, 128}}, {{"eps", "1e-5"}}},
                                {"batch_norm", {{128, 128}}},
                                {"layer_norm_backward", {{128, 128}, {128, 128}, {128}, {128}}},
                                {"var", {{128, 128}}, {{"axis", "1"}}},
                                {"mse_loss", {{n}, {n}}},
                                {"mse_loss", {{n}, {n}}, {{"reduction", "none"}}},
                                {"binary_cross_entropy", {{n}, {n}}},
                                {"binary_cross_entropy", {{n}, {n}}, {{"reduction", "none"}}},
                                {"binary_cross_entropy_with_logits", {{n}, {n}}},
                                {"kl_div", {{n}, {n}}},
                                {"nll_loss", {{128, 128}, {128}}},
                                {"index_add", {{128, 128}, {128}, {128, 128}}, {{"axis", "0"}}},
                                {"scatter_add", {{n}, {n}, {n}}, {{"axis", "0"}}},
                                {"embedding_backward", {{128, 128}, {128}}, {{"rows", "100"}}},
                                {"uniform", {}, {{"shape", "16384"}}},
                                {"normal", {}, {{"shape", "16384"}}},
                                {"exponential", {}, {{"shape", "16384"}}},
                                {"bernoulli", {}, {{"shape", "16384"}}},
                                {"randint", {}, {{"shape", "16384"}, {"high", "10"}}},
                                {"dropout", {{n}}},
                                {"permutation", {}, {{"n", "16384"}}},
                                {"multinomial", {{16, 1024}}, {{"num_samples", "8"}}},
                                {"multinomial", {{16, 1024}}, {{"num_samples", "8"}, {"replacement", "true"}}},
                                {"linspace", {}, {{"start", "0"}, {"end", "1"}, {"count", "16384"}}},
                                {"arange", {}, {{"start", "0"}, {"step", "0.1"}, {"count", "16384"}}},
                                {"sgd", {{n}, {n}, {n}}, {{"lr", "0.1"}, {"momentum", "0.9"}}},
                                {"adamw", {{n}, {n}, {n}, {n}}},
                                {"total_norm", {{n}}},
                                {"clip_grad_norm", {{n}}, {{"max_norm", "1"}}}};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

double seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Numbers in (0, 1), where every function is defined; indices below 100; booleans.
repdl::tensor filled(repdl::context& ctx, dtype type, const std::vector<std::int64_t>& shape, std::uint64_t seed) {
  repdl::tensor t(ctx, type, repdl::sizes(shape));
  const std::int64_t count = t.count();
  if (type == dtype::f32) {
    const std::vector<float> v = bench::uniform(count, seed, 0.01f, 0.99f);
    std::copy(v.begin(), v.end(), static_cast<float*>(t.view().data()));
  } else if (type == dtype::i64) {
    for (std::int64_t i = 0; i < count; ++i) static_cast<std::int64_t*>(t.view().data())[i] = i * 37 % 100;
  } else {
    for (std::int64_t i = 0; i < count; ++i) static_cast<bool*>(t.view().data())[i] = i % 3 != 0;
  }
  return t;
}

void measure(repdl::context& ctx, const row& r) {
  const repdl::op_info& op = *repdl::find(r.op);
  std::vector<repdl::tensor> tensors;
  std::vector<repdl::const_tensor_view> in;
  std::vector<repdl::tensor_view> out;
  repdl::attributes attributes;
  for (const auto& [name, text] : r.attributes) attributes.push_back(repdl::parse_attribute(op, name, text));
  for (std::size_t i = 0; i < r.shapes.size(); ++i) {
    const auto& types = op.in[i].types;
    const bool takes = std::find(types.begin(), types.end(), r.type) != types.end();
    tensors.push_back(filled(ctx, takes ? r.type : types.front(), r.shapes[i], i));
    in.push_back(tensors.back().view());
  }
  for (const repdl::tensor_spec& s : repdl::infer(op, in, attributes)) {
    tensors.emplace_back(ctx, s.type, s.shape);
    out.push_back(tensors.back().view());
  }
  std::int64_t elements = 0;
  for (const repdl::tensor& t : tensors) elements = std::max(elements, t.count());
  const auto once = [&] { repdl::call(ctx, op, in, out, attributes); };
  once();
  repdl::dispatch::estimated = 0;
  double begin = seconds();
  once();
  const double estimate = repdl::dispatch::estimated / static_cast<double>(elements);
  const int calls = static_cast<int>(std::clamp(2e-3 / (seconds() - begin), 1.0, 1e5));
  std::vector<double> times;
  for (int i = 0; i < 15; ++i) {
    begin = seconds();
    for (int k = 0; k < calls; ++k) once();
    times.push_back((seconds() - begin) / calls);
  }
  std::nth_element(times.begin(), times.begin() + 7, times.end());
  const double measured = times[7] * 1e9 / static_cast<double>(elements);
  std::string what = op.name;
  for (const auto& shape : r.shapes) what += (&shape == r.shapes.data() ? " " : ", ") + to_string(repdl::sizes(shape));
  for (const auto& [name, text] : r.attributes) what += std::string(" ") + name + "=" + text;
  if (r.type != dtype::f32) what += " " + std::string(repdl::name_of(r.type));
  std::printf("%-12s %-72s %8.2f %8.2f %8.2f\n", op.family.c_str(), what.c_str(), measured, estimate,
              measured / estimate);
}

}  // namespace

int main(int argc, char** argv) try {
  const auto words = std::span(argv, static_cast<std::size_t>(argc)).subspan(1);
  repdl::context ctx(repdl::context_options{.threads = 1});
  std::printf("one thread, %s; nanoseconds an element\n%-12s %-72s %8s %8s %8s\n", ctx.isa().c_str(), "family",
              "operation", "measured", "estimate", "quotient");
  for (const row& r : rows()) {
    const std::string& family = repdl::find(r.op)->family;
    const auto named = [&](const char* word) {
      return std::string_view(r.op).starts_with(word) || std::string_view(family).starts_with(word);
    };
    if (words.empty() || std::any_of(words.begin(), words.end(), named)) measure(ctx, r);
  }
} catch (const std::exception& e) {
  std::fprintf(stderr, "repdl_thread_bench: %s\n", e.what());
  return 1;
}
