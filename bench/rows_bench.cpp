// The softmax family and norms over rows of 1024 from memory (2^25 elements) and rows of 10, on two threads, against a copy
// of the same elements on as many (`copy`); a class axis that is not the last; one long row; images of 256 channels.
#include <benchmark/benchmark.h>
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "bench/by_turns.hpp"
#include "bench/inputs.hpp"
#include "librepdl/librepdl.hpp"

namespace {

using repdl::const_tensor_view;
using repdl::tensor_view;

constexpr std::int64_t elements = std::int64_t{1} << 25;
constexpr int threads = 2;

void copy(const std::vector<float>& x, std::vector<float>& out) {
#pragma omp parallel num_threads(threads)
  {
    const std::size_t part = x.size() / static_cast<std::size_t>(omp_get_num_threads());
    const std::size_t at = part * static_cast<std::size_t>(omp_get_thread_num());
    std::memcpy(out.data() + at, x.data() + at, part * sizeof(float));
  }
}

// `call` with (x, y, out) of shape (rows, n), and per-row tensors.
struct operands {
  repdl::context ctx;
  std::vector<float> x, y, out, row;
  std::vector<std::int64_t> target;
  std::int64_t rows, n;

  operands(const std::string& isa, std::int64_t length)
      : ctx(repdl::context_options{.threads = threads, .isa = isa}),
        x(bench::normal(elements, 1)),
        y(bench::normal(elements, 2)),
        out(x.size()),
        rows(elements / length),
        n(length) {
    row.resize(static_cast<std::size_t>(rows));
    target.resize(row.size());
    for (std::size_t i = 0; i < target.size(); ++i) target[i] = static_cast<std::int64_t>(i) % n;
    std::fill(row.begin(), row.end(), 0.5f);
  }
  const_tensor_view in(const std::vector<float>& v) const { return {v.data(), {rows, n}}; }
  tensor_view to() { return {out.data(), {rows, n}}; }
  const_tensor_view targets() const { return target; }
  // As many numbers as a norm's weight has, and its bias.
  const_tensor_view weight(std::int64_t count) const { return {y.data(), {count}}; }
  const_tensor_view bias(std::int64_t count) const { return {y.data() + count, {count}}; }
  // Images n x n.
  static constexpr std::int64_t channels = 256;
  repdl::sizes images() const { return {elements / (channels * n * n), channels, n, n}; }
};

const bench::family registered("rows", [](const bench::family& family) {
  for (const repdl::isa_info& isa : repdl::instruction_sets()) {
    if (!isa.available) continue;
    const auto add = [&](const char* name, auto call, std::initializer_list<std::int64_t> lengths = {1024, 10}) {
      const auto row = [call](benchmark::State& state, const std::string& i) {
        operands o(i, state.range(0));
        bench::by_turns(state, o.ctx, [&] { call(o); }, {"copy", [&] { copy(o.x, o.out); }});
        bench::per_element(state, elements);
      };
      auto* const rows = family.add_row(std::string(name) + "/" + isa.name, isa.name, row);
      for (const std::int64_t n : lengths) rows->Arg(n);
    };
    const auto softmax = [](operands& o) { repdl::softmax(o.ctx, o.in(o.x), o.to()); };
    add("softmax", softmax);
    add("log_softmax", [](operands& o) { repdl::log_softmax(o.ctx, o.in(o.x), o.to()); });
    add("logsumexp", [](operands& o) { repdl::logsumexp(o.ctx, o.in(o.x), tensor_view(o.row), {.axis = {{1}}}); });
    add("cross_entropy", [](operands& o) {
      repdl::cross_entropy(o.ctx, o.in(o.x), o.targets(), tensor_view(o.row.data(), repdl::sizes{}));
    });
    add("softmax_backward", [](operands& o) { repdl::softmax_backward(o.ctx, o.in(o.x), o.in(o.y), o.to()); });
    add("log_softmax_backward", [](operands& o) { repdl::log_softmax_backward(o.ctx, o.in(o.x), o.in(o.y), o.to()); });
    add("cross_entropy_backward", [](operands& o) {
      const_tensor_view g(o.row.data(), repdl::sizes{});
      repdl::cross_entropy_backward(o.ctx, g, o.in(o.x), o.targets(), o.to());
    });
    // Rows of n elements that lie elements / n apart.
    const auto columns = [](operands& o) {
      repdl::softmax(o.ctx, const_tensor_view(o.x.data(), {o.n, o.rows}), tensor_view(o.out.data(), {o.n, o.rows}),
                     {.axis = 0});
    };
    add("softmax-columns", columns, {1024, 16});
    add("softmax-one-row", softmax, {elements});
    add("layer_norm", [](operands& o) {
      repdl::layer_norm(o.ctx, o.in(o.x), o.to(), {.weight = o.weight(o.n), .bias = o.bias(o.n)});
    });
    add("rms_norm",
        [](operands& o) { repdl::rms_norm(o.ctx, o.in(o.x), o.to(), {.eps = 0x1p-23, .weight = o.weight(o.n)}); });
    add("var_mean", [](operands& o) {
      const tensor_view mean(o.out.data(), {o.rows});
      repdl::var_mean(o.ctx, o.in(o.x), tensor_view(o.row), mean, {.axis = -1});
    });
    add("layer_norm_backward", [](operands& o) {
      const const_tensor_view of_rows(o.y.data(), repdl::sizes{o.rows});
      repdl::layer_norm_backward(o.ctx, o.in(o.y), o.in(o.x), of_rows, of_rows, o.to(), {.weight = o.weight(o.n)});
    });
    const auto groups = [](operands& o) {
      const repdl::group_norm_options options{.groups = 32, .weight = o.weight(o.channels), .bias = o.bias(o.channels)};
      repdl::group_norm(o.ctx, {o.x.data(), o.images()}, {o.out.data(), o.images()}, options);
    };
    add("group_norm", groups, {64, 8});
    const auto batch = [](operands& o) {
      const repdl::batch_norm_options options{.weight = o.weight(o.channels), .bias = o.bias(o.channels)};
      repdl::batch_norm(o.ctx, {o.x.data(), o.images()}, {o.out.data(), o.images()}, options);
    };
    add("batch_norm", batch, {64, 8});
    const auto running = [](operands& o) {
      const tensor_view mean(o.row.data(), {o.channels}), var(o.y.data() + 2 * o.channels, {o.channels});
      const repdl::batch_norm_running_options options{.weight = o.weight(o.channels), .bias = o.bias(o.channels)};
      repdl::batch_norm_running(o.ctx, {o.x.data(), o.images()}, mean, var, {o.out.data(), o.images()},
                                {.mean = mean, .var = var}, options);
    };
    add("batch_norm_running", running, {64, 8});
    // Of images, and with the channels last.
    const auto inference = [](operands& o, const repdl::sizes& x, std::int64_t axis) {
      const const_tensor_view half(o.row.data(), {o.channels});
      const repdl::batch_norm_options options{.axis = axis, .weight = o.weight(o.channels), .bias = o.bias(o.channels)};
      repdl::batch_norm_inference(o.ctx, {o.x.data(), x}, half, half, {o.out.data(), x}, options);
    };
    add("batch_norm_inference", [inference](operands& o) { inference(o, o.images(), 1); }, {64, 8});
    add("batch_norm_inference-last",
        [inference](operands& o) {
          const repdl::sizes images = o.images();
          inference(o, {images[0], images[2], images[3], images[1]}, 3);
        },
        {64, 8});
  }
});

}  // namespace
