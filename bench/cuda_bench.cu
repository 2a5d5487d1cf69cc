// The CUDA backend against what people run today, in one program: contenders take turns, medians of rounds are
// compared.
//   maps            bytes per second, as a fraction of cudaMemcpyAsync's device to device: every elementwise operation on
//                   f32, f16 and bf16, and on f32 and f16 from the second element on (misaligned) and on every second element of its
//                   operands (strided; the bytes between them are moved, too, and count)
//   losses          likewise: an output per element, and sums
//   reductions      the time of cub::DeviceReduce::Sum over the same elements in binary32, of f64 in binary64, over ours
//   network         convolutions, the softmax family, norms, pooling, optimiser steps and sums to places, times alone:
//                   bench/pytorch_peers.py has the peer
//   matrix products the time of cuBLAS sgemm (binary32, not correctly rounded) over ours; dgemm is shown beside it; all as graphs. Linear layers, x W',
//                   beside GemmEx in their format, with sums in binary32
// Usage: repdl_cuda_bench [--quick] [--json FILE] [filter]. filter: a part of the rows' names, or `elementwise`, which stands
// for the maps and losses. FILE: the rows in Google Benchmark's format, from which tools/bench_table.py --from FILE makes a table and a
// drawing. cuBLAS is loaded at run time: $REPDL_CUBLAS, else libcublas.so.13, .12.
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cub/device/device_reduce.cuh>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/rounds.hpp"
#include "librepdl/dynamic.hpp"
#include "librepdl/librepdl.hpp"
#include "librepdl/ops/registry.hpp"

namespace {

using namespace repdl;
constexpr device gpu{device_kind::cuda, 0};

void must(cudaError_t e, const char* what) {
  if (e != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(e));
}

struct buffer {
  void* data = nullptr;
  explicit buffer(std::size_t bytes) { must(cudaMalloc(&data, bytes), "cudaMalloc"); }
  buffer(const buffer&) = delete;
  buffer& operator=(const buffer&) = delete;
  ~buffer() { cudaFree(data); }
  float* f() const { return static_cast<float*>(data); }
  double* d() const { return static_cast<double*>(data); }
};

struct contender {
  std::string name;
  double work;  // of a call: bytes or operations
  std::function<void()> run;
};

std::string filter;
cudaStream_t stream;

// Of a contender: the median time of a call, and work per second at it; the first one's rate over its own, the median
// of the rounds and the 95 % interval.
struct result {
  std::string name;
  double ms, rate, ratio, low, high;
};

// The contenders take turns, each turn long enough to measure.
std::vector<result> race(const std::vector<contender>& all) {
  cudaEvent_t begin;
  cudaEvent_t end;
  must(cudaEventCreate(&begin), "event");
  must(cudaEventCreate(&end), "event");
  const auto time = [&](const contender& c, int repeat) {
    must(cudaEventRecord(begin, stream), "event");
    for (int i = 0; i < repeat; ++i) c.run();
    must(cudaEventRecord(end, stream), "event");
    must(cudaEventSynchronize(end), "event");
    float ms = 0;
    must(cudaEventElapsedTime(&ms, begin, end), "event");
    return static_cast<double>(ms) / repeat;
  };
  std::vector<int> repeat;
  for (const contender& c : all) {
    time(c, 2);
    repeat.push_back(std::clamp(static_cast<int>(4.0 / std::max(time(c, 3), 1e-3)), 1, 200));
  }
  using samples = std::array<double, bench::rounds>;
  std::vector<samples> ms(all.size());
  for (std::size_t r = 0; r < bench::rounds; ++r) {
    for (std::size_t i = 0; i < all.size(); ++i) ms[i][r] = time(all[i], repeat[i]);
  }
  std::vector<result> results;
  for (std::size_t i = 0; i < all.size(); ++i) {
    samples sorted = ms[i], ratios;
    for (std::size_t r = 0; r < ratios.size(); ++r) ratios[r] = all[0].work / ms[0][r] / (all[i].work / ms[i][r]);
    std::sort(sorted.begin(), sorted.end());
    std::sort(ratios.begin(), ratios.end());
    const double median = sorted[bench::middle_round];
    results.push_back({all[i].name, median, all[i].work / median * 1e3, ratios[bench::middle_round],
                       ratios[bench::low_round], ratios[bench::high_round]});
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return results;
}

// The same as a graph, whose replay costs the CPU little, however many launches the call has.
contender captured(const contender& c) {
  c.run();  // takes the memory that it needs
  cudaGraph_t graph;
  must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  c.run();
  must(cudaStreamEndCapture(stream, &graph), "capture");
  cudaGraphExec_t once;
  must(cudaGraphInstantiate(&once, graph, 0), "graph");
  must(cudaGraphDestroy(graph), "graph");
  const std::shared_ptr<CUgraphExec_st> kept(once, cudaGraphExecDestroy);
  return {c.name, c.work, [kept] { must(cudaGraphLaunch(kept.get(), stream), "graph"); }};
}

// The rows in Google Benchmark's JSON format; each is complete when it is written.
class json_file {
 public:
  void open(const char* path, const std::string& device) {
    file_ = std::fopen(path, "w");
    if (file_ == nullptr) throw std::runtime_error(std::string("cannot write ") + path);
    device_ = device;
    std::fprintf(file_, "{\"context\": {}, \"benchmarks\": [");
  }
  // Ours is all[0], the peer all[1], if there is one. unit: of the rates, flop/s or B/s.
  void row(const std::string& family, const std::string& name, const char* unit, const std::vector<result>& all) {
    if (file_ == nullptr) return;
    std::string path = name;  // OPERATION/PARAMETERS
    std::replace(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(std::min(path.size(), path.find(' ') + 1)),
                 ' ', '/');
    std::fprintf(file_, "%s\n{\"name\": \"%s\", \"run_name\": \"%s\", \"run_type\": \"iteration\", ", separator_,
                 path.c_str(), path.c_str());
    std::fprintf(file_, "\"real_time\": %.6g, \"cpu_time\": %.6g, \"time_unit\": \"ms\", \"%s\": %.6g, ", all[0].ms,
                 all[0].ms, unit, all[0].rate);
    if (all.size() > 1) {
      std::fprintf(file_, "\"of_%s\": %.6g, \"low\": %.6g, \"high\": %.6g, ", all[1].name.c_str(), all[1].ratio,
                   all[1].low, all[1].high);
    }
    std::fprintf(file_, "\"label\": \"%s, %s\"}", family.c_str(), device_.c_str());
    std::fflush(file_);
    separator_ = ",";
  }
  void close() {
    if (file_ == nullptr) return;
    std::fprintf(file_, "\n]}\n");
    if (std::fclose(file_) != 0) throw std::runtime_error("the JSON file was not written completely");
    file_ = nullptr;
  }

 private:
  std::FILE* file_ = nullptr;
  std::string device_;
  const char* separator_ = "";
};
json_file json;

// Whether some name that begins with "network " and the group's may be wanted.
bool wanted_of_group(const std::string& group) {
  const std::string begin = "network " + group;
  return filter.empty() || begin.rfind(filter.substr(0, begin.size()), 0) == 0;
}
bool wanted(const std::string& name) { return filter.empty() || name.find(filter) != std::string::npos; }

// Approximately normal numbers from Philox: the sum of four uniform ones. Device memory.
void fill_normal(context& ctx, buffer& to, std::int64_t n, std::uint64_t seed) {
  generator g{seed, 0};
  const tensor_view t(to.f(), sizes{n}, gpu);
  uniform(ctx, g, t, {.low = -1.75, .high = 1.75});
  buffer other(static_cast<std::size_t>(n) * 4);
  const tensor_view u(other.f(), sizes{n}, gpu);
  for (int i = 0; i < 3; ++i) {
    uniform(ctx, g, u, {.low = -1.75, .high = 1.75});
    add(ctx, t, u, t);
  }
  ctx.synchronize();
}

// ---- maps

void maps(context& ctx, std::int64_t n) {
  const auto bytes = static_cast<std::size_t>(n) * 4;
  buffer out(2 * bytes);  // the results may be i64
  std::deque<buffer> all;
  const sizes shape{n};
  const_tensor_view in[ops::most_operands];
  for (std::size_t k = 0; k < std::size(in); ++k) {
    buffer& b = all.emplace_back(bytes);
    fill_normal(ctx, b, n, k + 1);
    in[k] = const_tensor_view(b.f(), shape, gpu);
  }
  const buffer& x = all[0];
  const tensor_view to(out.f(), shape, gpu);
  const contender copy{"copy", 2.0 * static_cast<double>(bytes), [&] {
                         must(cudaMemcpyAsync(out.data, x.data, bytes, cudaMemcpyDeviceToDevice, stream), "copy");
                       }};
  const auto report = [&](const std::string& name, double moved, const std::function<void()>& run) {
    if (!wanted(name)) return;
    const std::vector<result> all = race({{name, moved, run}, copy});
    std::printf("%-26s %9.3f ms  %7.0f GB/s  copy %7.0f GB/s  ratio %.3f\n", name.c_str(), all[0].ms,
                all[0].rate * 1e-9, all[1].rate * 1e-9, all[1].ratio);
    json.row("elementwise and random", name, "B/s", all);
  };
  // The same elements of inputs and output: from `first` on, every `step`-th.
  const auto elementwise = [&](const ops::elementwise_row& row, const std::string& what, std::span<const_tensor_view> x,
                               std::int64_t first, std::int64_t step) {
    const dtype format = x[0].type();
    if ((row.formats & ops::one(format)) == 0) return;
    const dtype result = row.result_type(format);
    std::vector<const_tensor_view> from;  // booleans: the bytes of the numbers
    std::size_t read = 0;
    for (int k = 0; k < row.arity; ++k) {
      const const_tensor_view all(x[static_cast<std::size_t>(k)].data(), row.operand_type(k, format), shape, gpu);
      from.push_back(all.slice(0, first, n, step));
      read += size_of(all.type()) * static_cast<std::size_t>(step);
    }
    const std::int64_t count = from[0].shape()[0];
    const tensor_view results(out.data, result, sizes{count}, gpu);
    const auto moved = static_cast<double>(count) * static_cast<double>(read + size_of(result));
    report(std::string(row.name) + what, moved, [&] { call(ctx, *find(row.name), from, {&results, 1}, {}); });
  };
  for (const ops::elementwise_row& row : ops::elementwise_rows()) {
    elementwise(row, "", in, 0, 1);
    elementwise(row, " misaligned", in, 1, 1);
    elementwise(row, " strided", in, 0, 2);
  }
  for (const dtype format : {dtype::f16, dtype::bf16}) {
    const std::size_t narrow = static_cast<std::size_t>(n) * size_of(format);
    std::deque<buffer> data;
    const_tensor_view converted[ops::most_operands];
    for (std::size_t k = 0; k < std::size(in); ++k) {
      const tensor_view t(data.emplace_back(narrow).data, format, shape, gpu);
      convert(ctx, in[k], t);
      converted[k] = t;
    }
    ctx.synchronize();
    for (const ops::elementwise_row& row : ops::elementwise_rows()) {
      const std::string what = " " + std::string(name_of(format));
      elementwise(row, what, converted, 0, 1);
      if (format != dtype::f16) continue;
      elementwise(row, what + " misaligned", converted, 1, 1);
      elementwise(row, what + " strided", converted, 0, 2);
    }
  }
  report("add a row (broadcast)", static_cast<double>(bytes) * 2, [&] {
    const std::int64_t cols = 4096;
    add(ctx, in[0].reshape({n / cols, cols}), in[1].slice(0, 0, cols),
        tensor_view(out.f(), sizes{n / cols, cols}, gpu));
  });
  report("add transposed", static_cast<double>(bytes) * 3, [&] {
    const std::int64_t cols = 4096;
    add(ctx, in[0].reshape({n / cols, cols}).transpose(), in[1].reshape({n / cols, cols}).transpose(),
        tensor_view(out.f(), sizes{n / cols, cols}, gpu).transpose());
  });
  report("convert f32 bf16", static_cast<double>(bytes) * 1.5,
         [&] { convert(ctx, in[0], tensor_view(out.data, dtype::bf16, shape, gpu)); });
  report("convert f32 f16", static_cast<double>(bytes) * 1.5,
         [&] { convert(ctx, in[0], tensor_view(out.data, dtype::f16, shape, gpu)); });
  report("convert bf16 f32", static_cast<double>(bytes) * 1.5,
         [&] { convert(ctx, const_tensor_view(x.data, dtype::bf16, shape, gpu), to); });
  report("uniform [0, 1)", static_cast<double>(bytes), [&] {
    generator g{1, 1};
    uniform(ctx, g, to);
  });
  report("uniform [-0.1, 0.7)", static_cast<double>(bytes), [&] {
    generator g{1, 1};
    uniform(ctx, g, to, {.low = -0.1, .high = 0.7});
  });
}

// ---- losses

// Of probabilities, which every loss takes; gradients have a gradient of each element.
void losses(context& ctx, std::int64_t n) {
  const auto bytes = static_cast<std::size_t>(n) * 4;
  const sizes shape{n};
  buffer wide(bytes), out(bytes);
  const tensor_view p(wide.f(), shape, gpu);
  for (const dtype format : {dtype::f32, dtype::f16, dtype::bf16}) {
    std::deque<buffer> data;
    std::vector<const_tensor_view> in;
    for (std::uint64_t k = 0; k < 3; ++k) {
      const tensor_view t(data.emplace_back(static_cast<std::size_t>(n) * size_of(format)).data, format, shape, gpu);
      fill_normal(ctx, wide, n, k + 1);
      sigmoid(ctx, p, p);
      convert(ctx, p, t);
      in.push_back(t);
    }
    const std::size_t moved = static_cast<std::size_t>(n) * size_of(format);
    const contender copy{
        "copy", 2.0 * static_cast<double>(moved),
        [&] { must(cudaMemcpyAsync(out.data, in[0].data(), moved, cudaMemcpyDeviceToDevice, stream), "copy"); }};
    for (const op_info& op : operations()) {
      if (op.family != "loss") continue;
      const std::size_t inputs = static_cast<std::size_t>(
          std::count_if(op.in.begin(), op.in.end(), [](const operand_info& o) { return !o.optional; }));
      const bool gradient = op.in[0].name == "g";
      for (const char* reduction : {"none", "sum"}) {
        const bool each = *reduction == 'n';
        if (gradient && !each) continue;
        std::string name = op.name + " " + reduction;
        if (format != dtype::f32) name += " " + std::string(name_of(format));
        if (!wanted(name)) continue;
        const tensor_view to(out.data, format, each ? shape : sizes{}, gpu);
        const auto run = [&] {
          call(ctx, op, std::span(in).first(inputs), {&to, 1}, {{"reduction", std::string(reduction)}});
        };
        const std::vector<result> all =
            race({{name, static_cast<double>((inputs + (each ? 1 : 0)) * moved), run}, copy});
        std::printf("%-44s %9.3f ms  %7.0f GB/s  copy %7.0f GB/s  ratio %.3f\n", name.c_str(), all[0].ms,
                    all[0].rate * 1e-9, all[1].rate * 1e-9, all[1].ratio);
        json.row("losses", name, "B/s", all);
      }
    }
  }
}

// ---- reductions

void reductions(context& ctx, std::int64_t n) {
  buffer x(static_cast<std::size_t>(n) * 4), y(static_cast<std::size_t>(n) * 4), wide(static_cast<std::size_t>(n) * 8),
      out(static_cast<std::size_t>(n / 64) * 8);
  fill_normal(ctx, x, n, 1);
  fill_normal(ctx, y, n, 2);
  convert(ctx, const_tensor_view(x.f(), sizes{n}, gpu), tensor_view(wide.d(), sizes{n}, gpu));
  std::size_t cub_bytes[2] = {};
  must(cub::DeviceReduce::Sum(nullptr, cub_bytes[0], x.f(), out.f(), n, stream), "cub");
  must(cub::DeviceReduce::Sum(nullptr, cub_bytes[1], wide.d(), out.d(), n, stream), "cub");
  buffer cub_space(std::max(cub_bytes[0], cub_bytes[1]) + 1);
  const auto cub_of = [&](std::size_t size, auto run) {
    return contender{"cub", static_cast<double>(n) * static_cast<double>(size), [=] { must(run(), "cub"); }};
  };
  const contender single =
      cub_of(4, [&] { return cub::DeviceReduce::Sum(cub_space.data, cub_bytes[0], x.f(), out.f(), n, stream); });
  const contender twice =
      cub_of(8, [&] { return cub::DeviceReduce::Sum(cub_space.data, cub_bytes[1], wide.d(), out.d(), n, stream); });
  const contender* peer = &single;
  const auto report = [&](const std::string& name, double moved, const std::function<void()>& run) {
    if (!wanted(name)) return;
    ctx.reset_statistics();
    const std::vector<result> all = race({{name, moved, run}, *peer});
    const statistics s = ctx.read_statistics();
    const double decided = static_cast<double>(s.elements[0] + s.elements[1] + s.elements[2] + s.elements[3]);
    std::printf("%-26s %9.3f ms  %7.0f GB/s  cub  %7.0f GB/s  ratio %.3f  beyond binary64 %.1e\n", name.c_str(),
                all[0].ms, all[0].rate * 1e-9, all[1].rate * 1e-9, all[1].ratio,
                static_cast<double>(s.elements[2] + s.elements[3]) / decided);
    json.row("reductions", name, "B/s", all);
  };
  // Of the same numbers, in 16 bits rounded.
  for (const dtype format : {dtype::f32, dtype::f16, dtype::bf16, dtype::f64}) {
    peer = format == dtype::f64 ? &twice : &single;
    const double bytes = static_cast<double>(n) * static_cast<double>(size_of(format));
    const std::string what = format == dtype::f32 ? "" : " " + std::string(name_of(format));
    std::deque<buffer> converted;
    const auto operand = [&](const buffer& wide) {
      const const_tensor_view all(wide.f(), sizes{n}, gpu);
      if (format == dtype::f32) return all;
      const tensor_view t(converted.emplace_back(static_cast<std::size_t>(bytes)).data, format, sizes{n}, gpu);
      convert(ctx, all, t);
      return const_tensor_view(t);
    };
    const const_tensor_view all = operand(x), other = operand(y);
    const auto to = [&](const sizes& shape) { return tensor_view(out.data, format, shape, gpu); };
    const auto to_indices = [&](const sizes& shape) { return tensor_view(out.data, dtype::i64, shape, gpu); };
    report("sum" + what, bytes, [&] { sum(ctx, all, to({})); });
    report("mean" + what, bytes, [&] { mean(ctx, all, to({})); });
    report("max" + what, bytes, [&] { max(ctx, all, to({})); });
    report("argmax" + what, bytes, [&] { argmax(ctx, all, to_indices({})); });
    report("dot" + what, 2 * bytes, [&] { dot(ctx, all, other, to({})); });
    report("vector_norm 1" + what, bytes, [&] { vector_norm(ctx, all, to({}), {.p = 1}); });
    report("vector_norm 2" + what, bytes, [&] { vector_norm(ctx, all, to({})); });
    report("prelu_weight_backward" + what, 2 * bytes, [&] { prelu_backward_w(ctx, all, other, to({})); });
    for (const std::int64_t cols : {256, 4096, 32768}) {
      const const_tensor_view matrix = all.reshape({n / cols, cols});
      const std::string shape = " " + std::to_string(n / cols) + "x" + std::to_string(cols) + what;
      report("sum of rows" + shape, bytes, [&] { sum(ctx, matrix, to({n / cols}), {.axis = sizes{1}}); });
      report("sum of columns" + shape, bytes, [&] { sum(ctx, matrix, to({cols}), {.axis = sizes{0}}); });
    }
    const std::int64_t cols = 4096;
    report("argmax of rows" + what, bytes, [&] {
      argmax(ctx, all.reshape({n / cols, cols}), to_indices({n / cols}), {.axis = sizes{1}});
    });
  }
  // As graphs: sums that may lie in the cache.
  for (const dtype format : {dtype::f32, dtype::f64}) {
    for (const int log2 : {18, 20, 22, 24, 26, 27}) {
      const std::int64_t terms = std::int64_t{1} << log2;
      const std::string name = "sum " + std::string(name_of(format)) + " 2^" + std::to_string(log2) + " captured";
      if (!wanted(name) || terms > n) continue;
      const bool is_wide = format == dtype::f64;
      const const_tensor_view part(is_wide ? wide.data : x.data, format, sizes{terms}, gpu);
      const tensor_view one(out.data, format, sizes{}, gpu);
      const double bytes = static_cast<double>(terms) * static_cast<double>(size_of(format));
      const std::vector<result> all = race(
          {captured({name, bytes, [&] { sum(ctx, part, one); }}),
           captured({"cub", bytes, [&] {
                       must(is_wide
                                ? cub::DeviceReduce::Sum(cub_space.data, cub_bytes[1], wide.d(), out.d(), terms, stream)
                                : cub::DeviceReduce::Sum(cub_space.data, cub_bytes[0], x.f(), out.f(), terms, stream),
                            "cub");
                     }})});
      std::printf("%-26s %9.2f us  cub %9.2f us  ratio %.3f\n", name.c_str(), all[0].ms * 1e3, all[1].ms * 1e3,
                  all[1].ratio);
      json.row("reductions", name, "B/s", all);
    }
  }
  if (wanted("sum small")) {
    const tensor_view one(out.f(), sizes{}, gpu);
    for (const int log2 : {10, 14, 15, 20}) {
      const std::int64_t terms = std::int64_t{1} << log2;
      const const_tensor_view small(x.f(), sizes{terms}, gpu);
      const std::vector<result> all = race({{"small", static_cast<double>(4 * terms), [&] { sum(ctx, small, one); }}});
      const std::string name = "sum small (2^" + std::to_string(log2) + ")";
      std::printf("%-26s %9.2f us\n", name.c_str(), all[0].ms * 1e3);
      json.row("reductions", name, "B/s", all);
    }
  }
  if (wanted("permutation")) {
    const std::int64_t count = 1 << 24;
    buffer indices(static_cast<std::size_t>(count) * 8);
    const std::vector<result> all =
        race({{"permutation", static_cast<double>(count) * 8, [&] {
                 generator g{1, 1};
                 permutation(ctx, g, tensor_view(static_cast<std::int64_t*>(indices.data), sizes{count}, gpu));
               }}});
    std::printf("%-26s %9.3f ms\n", "permutation 2^24", all[0].ms);
    json.row("elementwise and random", "permutation 2^24", "B/s", all);
  }
}

// ---- matrix products

class cublas {
 public:
  cublas() {
    const char* from_environment = std::getenv("REPDL_CUBLAS");
    for (const char* name : {from_environment, "libcublas.so.13", "libcublas.so.12"}) {
      if (name != nullptr && library_ == nullptr) library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (library_ == nullptr) return;
    using create = int (*)(void**);
    using set_stream = int (*)(void*, cudaStream_t);
    sgemm_ = reinterpret_cast<gemm<float>>(dlsym(library_, "cublasSgemm_v2"));
    dgemm_ = reinterpret_cast<gemm<double>>(dlsym(library_, "cublasDgemm_v2"));
    gemm_ex_ = reinterpret_cast<gemm_ex>(dlsym(library_, "cublasGemmEx"));
    batched_ = reinterpret_cast<batched_gemm>(dlsym(library_, "cublasGemmStridedBatchedEx"));
    reinterpret_cast<create>(dlsym(library_, "cublasCreate_v2"))(&handle_);
    reinterpret_cast<set_stream>(dlsym(library_, "cublasSetStream_v2"))(handle_, stream);
  }
  bool there() const { return handle_ != nullptr; }
  // Row-major c = a b is column-major c' = b' a'.
  void sgemm(int m, int n, int k, const float* a, const float* b, float* c) const { run(sgemm_, m, n, k, a, b, c); }
  void dgemm(int m, int n, int k, const double* a, const double* b, double* c) const { run(dgemm_, m, n, k, a, b, c); }
  // y (m x n) = x (m x k) w' (n x k), all of one format, with sums in binary32.
  void linear(dtype format, int m, int n, int k, const void* x, const void* w, void* y) const {
    const float one = 1;
    const float zero = 0;
    const int type = type_of(format);
    if (gemm_ex_(handle_, 1, 0, n, m, k, &one, w, type, k, x, type, k, &zero, y, type, n, compute_32f,
                 default_algorithm) != 0) {
      throw std::runtime_error("cuBLAS failed");
    }
  }
  // So many products z = x y, or x y' where y is (n x k).
  void products(dtype format, int batches, int m, int n, int k, bool transposed, const void* x, const void* y,
                void* z) const {
    const float one = 1;
    const float zero = 0;
    const int type = type_of(format);
    if (batched_(handle_, transposed ? 1 : 0, 0, n, m, k, &one, y, type, transposed ? k : n, std::int64_t{n} * k, x,
                 type, k, std::int64_t{m} * k, &zero, z, type, n, std::int64_t{m} * n, batches, compute_32f,
                 default_algorithm) != 0) {
      throw std::runtime_error("cuBLAS failed");
    }
  }

 private:
  static constexpr int compute_32f = 68;
  static constexpr int default_algorithm = -1;
  static int type_of(dtype format) {
    return format == dtype::bf16 ? 14 : format == dtype::f16 ? 2 : 0;  // CUDA_R_16BF, _16F, _32F
  }
  template <class T>
  using gemm = int (*)(void*, int, int, int, int, int, const T*, const T*, int, const T*, int, const T*, T*, int);
  template <class T>
  void run(gemm<T> f, int m, int n, int k, const T* a, const T* b, T* c) const {
    const T one = 1;
    const T zero = 0;
    if (f(handle_, 0, 0, n, m, k, &one, b, n, a, k, &zero, c, n) != 0) throw std::runtime_error("cuBLAS failed");
  }
  using gemm_ex = int (*)(void*, int, int, int, int, int, const void*, const void*, int, int, const void*, int, int,
                          const void*, void*, int, int, int, int);
  using batched_gemm = int (*)(void*, int, int, int, int, int, const void*, const void*, int, int, long long,
                               const void*, int, int, long long, const void*, void*, int, int, long long, int, int,
                               int);
  gemm_ex gemm_ex_ = nullptr;
  batched_gemm batched_ = nullptr;
  void* library_ = nullptr;
  void* handle_ = nullptr;
  gemm<float> sgemm_ = nullptr;
  gemm<double> dgemm_ = nullptr;
};

void products(context& ctx, const cublas& blas, std::int64_t m, std::int64_t n, std::int64_t k, const std::string& kind,
              accumulate how) {
  const std::string name =
      "matmul " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + " " + kind;
  if (!wanted(name)) return;
  const auto elements = [](std::int64_t a, std::int64_t b) { return static_cast<std::size_t>(a * b); };
  buffer a(elements(m, k) * 4), b(elements(k, n) * 4), c(elements(m, n) * 4);
  fill_normal(ctx, a, m * k, 1);
  fill_normal(ctx, b, k * n, 2);
  if (kind == "bf16 values") {
    for (const auto& [data, count] : {std::pair{&a, m * k}, std::pair{&b, k * n}}) {
      buffer narrow(static_cast<std::size_t>(count) * 2);
      const tensor_view t(narrow.data, dtype::bf16, sizes{count}, gpu);
      convert(ctx, const_tensor_view(data->f(), sizes{count}, gpu), t);
      convert(ctx, t, tensor_view(data->f(), sizes{count}, gpu));
      ctx.synchronize();
    }
  }
  if (kind == "all cancel") {  // row i of a times column j of b: pairs x y - x y
    std::vector<float> h(elements(m, k));
    ctx.copy(h.data(), a.data, h.size() * 4);
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j + 1 < k; j += 2)
        h[elements(i, k) + static_cast<std::size_t>(j + 1)] = -h[elements(i, k) + static_cast<std::size_t>(j)];
    }
    ctx.copy(a.data, h.data(), h.size() * 4);
    std::vector<float> g(elements(k, n));
    ctx.copy(g.data(), b.data, g.size() * 4);
    for (std::int64_t j = 0; j + 1 < k; j += 2)
      std::copy_n(g.begin() + static_cast<std::ptrdiff_t>(j * n), n,
                  g.begin() + static_cast<std::ptrdiff_t>((j + 1) * n));
    ctx.copy(b.data, g.data(), g.size() * 4);
  }
  const const_tensor_view ta(a.f(), sizes{m, k}, gpu);
  const const_tensor_view tb(b.f(), sizes{k, n}, gpu);
  const tensor_view tc(c.f(), sizes{m, n}, gpu);
  matmul_options options;
  options.accumulate = how;
  const double work = 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  std::vector<contender> contenders = {captured({"ours", work, [&] { matmul(ctx, ta, tb, tc, options); }})};
  buffer da(blas.there() ? elements(m, k) * 8 : 8), db(blas.there() ? elements(k, n) * 8 : 8),
      dc(blas.there() ? elements(m, n) * 8 : 8);
  if (blas.there()) {
    convert(ctx, ta, tensor_view(da.d(), sizes{m, k}, gpu));
    convert(ctx, tb, tensor_view(db.d(), sizes{k, n}, gpu));
    const int im = static_cast<int>(m), in = static_cast<int>(n), ik = static_cast<int>(k);
    contenders.push_back(
        captured({"sgemm", work, [&blas, &a, &b, &c, im, in, ik] { blas.sgemm(im, in, ik, a.f(), b.f(), c.f()); }}));
    contenders.push_back(captured(
        {"dgemm", work, [&blas, &da, &db, &dc, im, in, ik] { blas.dgemm(im, in, ik, da.d(), db.d(), dc.d()); }}));
  }
  ctx.reset_statistics();
  const std::vector<result> all = race(contenders);
  const statistics s = ctx.read_statistics();
  const double decided = static_cast<double>(s.elements[0] + s.elements[1] + s.elements[2] + s.elements[3]);
  std::printf("%-36s %9.3f ms %6.1f Tflop/s", name.c_str(), all[0].ms, all[0].rate * 1e-12);
  if (blas.there()) {
    std::printf("  sgemm %6.1f  dgemm %6.1f  ratio to sgemm %.3f", all[1].rate * 1e-12, all[2].rate * 1e-12,
                all[1].ratio);
  }
  std::printf("  dd %.1e exact %.1e\n", static_cast<double>(s.elements[2]) / decided,
              static_cast<double>(s.elements[3]) / decided);
  std::fflush(stdout);
  json.row("matrix products", name, "flop/s", all);
}

// Operands of a format, and what is made of them beside cuBLAS.
class linear_products {
 public:
  linear_products(context& ctx, const cublas& blas, dtype format) : ctx_(ctx), blas_(blas), format_(format) {}

  // Of a linear layer: x (m x k) times w' (n x k).
  void layer(std::int64_t m, std::int64_t n, std::int64_t k) const {
    race_of("linear", 1, m, n, k, true, [&](const void* x, const void* w, void* y) {
      blas_.linear(format_, static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), x, w, y);
    });
  }
  // Of attention: scores (transposed), or values.
  void batch(std::int64_t batches, std::int64_t m, std::int64_t n, std::int64_t k, bool transposed) const {
    race_of("batches", batches, m, n, k, transposed, [&](const void* x, const void* y, void* z) {
      blas_.products(format_, static_cast<int>(batches), static_cast<int>(m), static_cast<int>(n), static_cast<int>(k),
                     transposed, x, y, z);
    });
  }

 private:
  template <class Peer>
  void race_of(const std::string& kind, std::int64_t batches, std::int64_t m, std::int64_t n, std::int64_t k,
               bool transposed, const Peer& peer) const {
    const auto text = [](std::int64_t i) { return std::to_string(i); };
    const std::string name = "matmul " + kind + " " + std::string(name_of(format_)) + " " +
                             (batches == 1 ? "" : text(batches) + "x") + text(m) + "x" + text(n) + "x" + text(k);
    if (!wanted(name)) return;
    const auto x = numbers({batches, m, k}, 1);
    const sizes of_y = transposed ? sizes{batches, n, k} : sizes{batches, k, n};
    const auto y = numbers(of_y, 2);
    const auto z = numbers({batches, m, n}, 3);
    matmul_options options;
    options.transpose_b = transposed;
    const double work =
        2 * static_cast<double>(batches) * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    std::vector<contender> contenders = {
        captured({"ours", work, [&] {
                    matmul(ctx_, const_tensor_view(x->data, format_, {batches, m, k}, gpu),
                           const_tensor_view(y->data, format_, of_y, gpu),
                           tensor_view(z->data, format_, {batches, m, n}, gpu), options);
                  }})};
    if (blas_.there()) contenders.push_back(captured({"gemmex", work, [&] { peer(x->data, y->data, z->data); }}));
    const std::vector<result> all = race(contenders);
    std::printf("%-40s %9.1f us", name.c_str(), all[0].ms * 1e3);
    if (blas_.there()) std::printf("  GemmEx %9.1f us  ratio %.3f", all[1].ms * 1e3, all[1].ratio);
    std::printf("\n");
    std::fflush(stdout);
    json.row("matrix products", name, "flop/s", all);
  }
  // Normally distributed ones.
  std::unique_ptr<buffer> numbers(const sizes& shape, std::uint64_t seed) const {
    const std::int64_t count = element_count(shape);
    auto to = std::make_unique<buffer>(static_cast<std::size_t>(count) * size_of(format_));
    buffer wide(static_cast<std::size_t>(count) * 4);
    fill_normal(ctx_, wide, count, seed);
    convert(ctx_, const_tensor_view(wide.f(), shape, gpu), tensor_view(to->data, format_, shape, gpu));
    ctx_.synchronize();
    return to;
  }

  context& ctx_;
  const cublas& blas_;
  dtype format_;
};

// ---- the network's operations; bench/pytorch_peers.py sets PyTorch beside them

struct convolution {
  std::int64_t channels, side, kernel, stride, outputs;
};
constexpr convolution convolutions[] = {
    {64, 56, 3, 1, 64}, {256, 14, 3, 1, 256}, {3, 224, 7, 2, 64}, {256, 56, 1, 1, 64}, {512, 7, 3, 1, 512}};

void network(context& ctx) {
  constexpr std::int64_t batch = 32;
  const auto report = [&](const char* family, const std::string& short_name, double work, const char* unit,
                          const std::function<void()>& call) {
    const std::string name = "network " + short_name;
    if (!wanted(name)) return;
    ctx.reset_statistics();
    const std::vector<result> all = race({{name, work, call}});
    const statistics s = ctx.read_statistics();
    const double decided = static_cast<double>(s.elements[0] + s.elements[1] + s.elements[2] + s.elements[3]);
    const bool operations = std::strcmp(unit, "flop/s") == 0;
    std::printf("%-52s %9.4f ms %8.1f %s  beyond binary64 %.1e\n", name.c_str(), all[0].ms,
                all[0].rate * (operations ? 1e-12 : 1e-9), operations ? "Tflop/s" : "GB/s",
                static_cast<double>(s.elements[2] + s.elements[3]) / decided);
    json.row(family, short_name, unit, all);
    std::fflush(stdout);
  };
  for (const accumulate how : {accumulate::exact, accumulate::fma_chain}) {
    for (const convolution& c : convolutions) {
      if (!wanted_of_group("conv2d")) break;
      const std::int64_t pad = c.kernel / 2, out = (c.side + 2 * pad - c.kernel) / c.stride + 1;
      const std::int64_t images = batch * c.channels * c.side * c.side, results = batch * c.outputs * out * out;
      const std::int64_t weights = c.outputs * c.channels * c.kernel * c.kernel;
      buffer x(static_cast<std::size_t>(images) * 4), w(static_cast<std::size_t>(weights) * 4),
          y(static_cast<std::size_t>(results) * 4);
      fill_normal(ctx, x, images, 1);
      fill_normal(ctx, w, weights, 2);
      fill_normal(ctx, y, results, 3);
      buffer grad_x(static_cast<std::size_t>(images) * 4), grad_w(static_cast<std::size_t>(weights) * 4),
          result(static_cast<std::size_t>(results) * 4);
      const sizes image{batch, c.channels, c.side, c.side}, kernel{c.outputs, c.channels, c.kernel, c.kernel};
      const sizes pooled{batch, c.outputs, out, out};
      const conv2d_options o{.stride = {c.stride, c.stride}, .padding = {pad, pad, pad, pad}, .accumulate = how};
      const auto in = [](const buffer& b, const sizes& s) { return const_tensor_view(b.f(), s, gpu); };
      const auto to = [](const buffer& b, const sizes& s) { return tensor_view(b.f(), s, gpu); };
      const std::string side = std::to_string(c.side), k = std::to_string(c.kernel);
      const std::string name = "conv2d " + std::to_string(c.channels) + "x" + side + "x" + side + " " + k + "x" + k +
                               " " + std::to_string(c.outputs) + (how == accumulate::exact ? " exact " : " fma_chain ");
      const double flops = 2.0 * static_cast<double>(results) * static_cast<double>(c.channels * c.kernel * c.kernel);
      report("convolutions", name + "forward", flops, "flop/s",
             [&] { conv2d(ctx, in(x, image), in(w, kernel), to(result, pooled), o); });
      report("convolutions", name + "grad_input", flops, "flop/s",
             [&] { conv2d_backward_x(ctx, in(y, pooled), in(w, kernel), to(grad_x, image), o); });
      report("convolutions", name + "grad_weight", flops, "flop/s",
             [&] { conv2d_backward_w(ctx, in(y, pooled), in(x, image), to(grad_w, kernel), o); });
    }
  }
  for (const dtype t : {dtype::f32, dtype::f16, dtype::bf16}) {
    if (!wanted_of_group("rows")) break;
    constexpr std::int64_t n = std::int64_t{1} << 28;
    const std::size_t size = size_of(t);
    buffer x(n * 4), y(n * size), out(n * size);
    for (const buffer* to : {&y, &x}) {
      fill_normal(ctx, x, n, to == &x ? 1 : 2);
      convert(ctx, {x.f(), sizes{n}, gpu}, {out.data, t, sizes{n}, gpu});
      must(cudaMemcpy(to->data, out.data, n * size, cudaMemcpyDeviceToDevice), "copy");
    }
    for (const std::int64_t cols : {128, 1024, 4096, 8192, 32768, 131072}) {
      const sizes shape{n / cols, cols};
      const const_tensor_view a(x.data, t, shape, gpu), b(y.data, t, shape, gpu);
      const tensor_view to(out.data, t, shape, gpu);
      const auto rows = [&](const std::string& op, int passes, const std::function<void()>& call) {
        const std::string format = t == dtype::f32 ? "" : std::string(name_of(t)) + " ";
        report("rows", "rows of " + std::to_string(cols) + " " + format + op,
               static_cast<double>(passes) * static_cast<double>(n) * static_cast<double>(size), "B/s", call);
      };
      rows("softmax", 2, [&] { softmax(ctx, a, to); });
      rows("log_softmax", 2, [&] { log_softmax(ctx, a, to); });
      rows("softmax_backward", 3, [&] { softmax_backward(ctx, a, b, to); });
      rows("log_softmax_backward", 3, [&] { log_softmax_backward(ctx, a, b, to); });
      const const_tensor_view weight(y.data, t, sizes{cols}, gpu), bias(x.data, t, sizes{cols}, gpu);
      buffer statistics(static_cast<std::size_t>(2 * n / cols) * 4);
      const tensor_view mean(statistics.f(), sizes{n / cols}, gpu),
          rstd(statistics.f() + n / cols, sizes{n / cols}, gpu);
      rows("layer_norm", 2, [&] { layer_norm(ctx, a, to, {.weight = weight, .bias = bias}, {mean, rstd}); });
      rows("layer_norm_backward", 3, [&] { layer_norm_backward(ctx, b, a, mean, rstd, to, {.weight = weight}); });
      const tensor_view grad_weight(out.data, t, sizes{cols}, gpu);
      rows("layer_norm_weight_backward", 2, [&] { layer_norm_backward_weight(ctx, b, a, mean, rstd, grad_weight); });
      rows("rms_norm", 2, [&] { rms_norm(ctx, a, to, {.eps = 0x1p-23, .weight = weight}, rstd); });
      rows("rms_norm_backward", 3, [&] { rms_norm_backward(ctx, b, a, rstd, to, {.weight = weight}); });
      const tensor_view var(statistics.data, t, sizes{n / cols}, gpu), m(rstd.data(), t, sizes{n / cols}, gpu);
      rows("var_mean", 1, [&] { var_mean(ctx, a, var, m, {.axis = 1}); });
      rows("stddev", 1, [&] { stddev(ctx, a, var, {.axis = 1}); });
    }
  }
  for (const sizes& shape : {sizes{64, 256, 56, 56}, sizes{64, 1024, 14, 14}}) {
    if (!wanted_of_group("rows")) break;
    const std::int64_t n = element_count(shape), channels = shape[1];
    buffer x(static_cast<std::size_t>(n) * 4), y(static_cast<std::size_t>(channels) * 8),
        out(static_cast<std::size_t>(n) * 4);
    fill_normal(ctx, x, n, 1);
    fill_normal(ctx, y, 2 * channels, 2);
    const const_tensor_view a(x.f(), shape, gpu), weight(y.f(), sizes{channels}, gpu),
        bias(y.f() + channels, sizes{channels}, gpu);
    const tensor_view to(out.f(), shape, gpu);
    const std::string side = std::to_string(shape[2]);
    const std::string name = "rows of " + std::to_string(channels) + "x" + side + "x" + side + " ";
    const double bytes = static_cast<double>(n) * 8;
    report("rows", name + "group_norm", bytes, "B/s",
           [&] { group_norm(ctx, a, to, {.groups = 32, .weight = weight, .bias = bias}); });
    report("rows", name + "batch_norm", bytes, "B/s",
           [&] { batch_norm(ctx, a, to, {.weight = weight, .bias = bias}); });
    buffer statistics(static_cast<std::size_t>(channels) * 8);
    fill_normal(ctx, statistics, 2 * channels, 3);
    const const_tensor_view mean(statistics.f(), sizes{channels}, gpu),
        var(statistics.f() + channels, sizes{channels}, gpu);
    const tensor_view new_mean(statistics.f(), sizes{channels}, gpu),
        new_var(statistics.f() + channels, sizes{channels}, gpu);
    report("rows", name + "batch_norm_running", bytes, "B/s", [&] {
      batch_norm_running(ctx, a, mean, var, to, {.mean = new_mean, .var = new_var}, {.weight = weight, .bias = bias});
    });
    // After some batches the variance is about 1.
    report("rows", name + "batch_norm_inference", bytes, "B/s",
           [&] { batch_norm_inference(ctx, a, mean, var, to, {.weight = weight, .bias = bias}); });
    report("rows", name + "batch_norm_inference_backward", bytes, "B/s",
           [&] { batch_norm_inference_backward(ctx, a, var, to, {.weight = weight}); });
    const sizes last{shape[0], shape[2], shape[3], shape[1]};
    report("rows", name + "batch_norm_inference_last", bytes, "B/s", [&] {
      batch_norm_inference(ctx, {x.f(), last, gpu}, mean, var, {out.f(), last, gpu},
                           {.axis = -1, .weight = weight, .bias = bias});
    });
  }
  if (wanted_of_group("rows")) {
    constexpr std::int64_t rows = 8192, classes = 50257, n = rows * classes;
    buffer x(n * 4), out(n * 4), g(4), loss(4), targets(rows * 8);
    fill_normal(ctx, x, n, 1);
    fill_normal(ctx, g, 1, 2);
    std::vector<std::int64_t> t(rows);
    for (std::int64_t i = 0; i < rows; ++i) t[static_cast<std::size_t>(i)] = i * 7919 % classes;
    must(cudaMemcpy(targets.data, t.data(), rows * 8, cudaMemcpyHostToDevice), "copy");
    const const_tensor_view a(x.f(), sizes{rows, classes}, gpu), each(g.f(), sizes{}, gpu);
    const const_tensor_view target(targets.data, dtype::i64, sizes{rows}, gpu);
    const tensor_view to(out.f(), sizes{rows, classes}, gpu), total(loss.f(), sizes{}, gpu);
    const std::string name = "rows of " + std::to_string(classes) + " cross_entropy";
    report("rows", name, n * 4.0, "B/s", [&] { cross_entropy(ctx, a, target, total); });
    report("rows", name + "_backward", n * 8.0, "B/s", [&] { cross_entropy_backward(ctx, each, a, target, to); });
    const cross_entropy_options smoothed{.label_smoothing = 0.1};
    report("rows", name + "_smoothed", n * 4.0, "B/s", [&] { cross_entropy(ctx, a, target, total, smoothed); });
    report("rows", name + "_smoothed_backward", n * 8.0, "B/s",
           [&] { cross_entropy_backward(ctx, each, a, target, to, smoothed); });
  }
  // Steps of 2^26 parameters, the states f32.
  if (wanted_of_group("steps")) {
    const std::int64_t n = std::int64_t{1} << 26;
    buffer p(n * 4), g(n * 4), wide(n * 4), m(n * 4), v(n * 4);
    fill_normal(ctx, m, n, 3);
    fill_normal(ctx, v, n, 4);
    mul(ctx, const_tensor_view(v.f(), sizes{n}, gpu), const_tensor_view(v.f(), sizes{n}, gpu),
        tensor_view(v.f(), sizes{n}, gpu));
    for (const dtype format : {dtype::f32, dtype::f16, dtype::bf16}) {
      const tensor_view param(p.data, format, sizes{n}, gpu), grad(g.data, format, sizes{n}, gpu);
      for (const auto& [to, seed] : {std::pair{&param, 1}, {&grad, 2}}) {
        fill_normal(ctx, wide, n, seed);
        convert(ctx, const_tensor_view(wide.f(), sizes{n}, gpu), *to);
      }
      const tensor_view first(m.f(), sizes{n}, gpu), second(v.f(), sizes{n}, gpu);
      const std::string name = "steps " + std::string(name_of(format));
      const double element = static_cast<double>(3 * size_of(format));  // the parameter is read and written
      report("steps", name + " sgd", static_cast<double>(n) * (element + 8), "B/s", [&] {
        sgd(ctx, std::vector<sgd_tensor>{{param, grad, first}}, {.lr = 1e-3, .momentum = 0.9, .weight_decay = 1e-4});
      });
      report("steps", name + " adamw", static_cast<double>(n) * (element + 16), "B/s", [&] {
        adamw(ctx, std::vector<adamw_tensor>{{param, grad, first, second}}, {.step = 100});
      });
      report("steps", name + " clip_grad_norm", static_cast<double>(n) * element, "B/s",
             [&] {  // read twice, and written
               clip_grad_norm(ctx, std::vector<const_tensor_view>{grad}, std::vector{param}, {.max_norm = 1e-3});
             });
    }
  }
  // Sums of 10^6 rows of 64 to 10^4 places: named evenly, most of them by few or all by one index.
  if (wanted_of_group("places")) {
    const std::int64_t n = 1000000, rows = 10000, dim = 64;
    buffer x(rows * dim * 4), out(rows * dim * 4), source(n * dim * 4), index(n * 8), each(n * dim * 8);
    fill_normal(ctx, x, rows * dim, 1);
    fill_normal(ctx, source, n * dim, 2);
    const const_tensor_view a(x.f(), sizes{rows, dim}, gpu), from(source.f(), sizes{n, dim}, gpu);
    const const_tensor_view list(index.data, dtype::i64, sizes{n}, gpu);
    const tensor_view to(out.f(), sizes{rows, dim}, gpu);
    const double bytes = static_cast<double>(n * dim) * 4;
    for (const std::string way : {"even", "crowded", "one"}) {
      std::vector<std::int64_t> at(n);
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t even = i * 7919 % rows;
        at[static_cast<std::size_t>(i)] = way == "even" ? even : way == "one" ? 5 : even * even / rows * even / rows;
      }
      must(cudaMemcpy(index.data, at.data(), n * 8, cudaMemcpyHostToDevice), "copy");
      report("places", "places " + way + " index_add", bytes, "B/s", [&] { index_add(ctx, a, list, from, to); });
      report("places", "places " + way + " embedding_backward", bytes, "B/s",
             [&] { embedding_backward(ctx, from, list, to); });
      if (way != "even") continue;
      generator g{3, 3};
      randint(ctx, g, tensor_view(each.data, dtype::i64, sizes{n, dim}, gpu), {.low = 0, .high = rows});
      report("places", "places " + way + " scatter_add", bytes, "B/s", [&] {
        scatter_add(ctx, a, const_tensor_view(each.data, dtype::i64, sizes{n, dim}, gpu), from, to);
      });
    }
  }
  // Windows that do not overlap, and that do.
  if (wanted_of_group("pools")) {
    const sizes image{64, 64, 112, 112}, pooled{64, 64, 56, 56};
    const std::int64_t n = element_count(image), few = element_count(pooled);
    buffer numbers(n * 4), x(n * 4), g(few * 4), result(few * 4), grad(n * 4);
    fill_normal(ctx, numbers, n, 1);
    for (const dtype t : {dtype::f32, dtype::f16, dtype::bf16}) {
      const auto of = [&](const buffer& b, const sizes& shape) { return tensor_view(b.data, t, shape, gpu); };
      convert(ctx, const_tensor_view(numbers.f(), image, gpu), of(x, image));
      convert(ctx, const_tensor_view(numbers.f(), pooled, gpu), of(g, pooled));
      const double bytes = static_cast<double>(size_of(t)), there = bytes * static_cast<double>(n + few);
      for (const std::int64_t k : {2, 3}) {
        const per_axis pad{k - 2, k - 2, k - 2, k - 2};
        const max_pool2d_options max{.kernel = {k, k}, .stride = {2, 2}, .padding = pad};
        const avg_pool2d_options avg{.kernel = {k, k}, .stride = {2, 2}, .padding = pad};
        const std::string size = std::to_string(k);
        const std::string name = "pools " + size + "x" + size + " " + std::string(name_of(t)) + " ";
        report("pools", name + "max_pool2d", there, "B/s",
               [&] { max_pool2d(ctx, of(x, image), of(result, pooled), max); });
        report("pools", name + "max_pool2d_backward", there + bytes * static_cast<double>(n), "B/s",
               [&] { max_pool2d_backward(ctx, of(g, pooled), of(x, image), of(grad, image), max); });
        report("pools", name + "avg_pool2d", there, "B/s",
               [&] { avg_pool2d(ctx, of(x, image), of(result, pooled), avg); });
        report("pools", name + "avg_pool2d_backward", there, "B/s",
               [&] { avg_pool2d_backward(ctx, of(g, pooled), of(grad, image), avg); });
      }
    }
  }
}

int run(int argc, char** argv) {
  bool quick = false;
  const char* json_path = nullptr;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") == 0) {
      quick = true;
    } else if (std::strcmp(argv[i], "--json") == 0 && i + 1 < argc) {
      json_path = argv[++i];
    } else {
      filter = argv[i];
    }
  }
  cudaDeviceProp properties{};
  must(cudaGetDeviceProperties(&properties, 0), "device");
  must(cudaStreamCreate(&stream), "stream");
  std::printf("%s, %d multiprocessors; medians of %d rounds, contenders take turns\n", properties.name,
              properties.multiProcessorCount, bench::rounds);
  if (json_path != nullptr) json.open(json_path, properties.name);
  context_options o;
  o.where = gpu;
  o.stream = stream;
  context ctx(o);
  const bool only_network = filter.rfind("network", 0) == 0;
  const bool only_products = filter.rfind("matmul", 0) == 0;
  const bool only_maps = filter == "elementwise";
  if (only_maps) filter.clear();
  if (!only_network && !only_products) {
    maps(ctx, std::int64_t{1} << (quick ? 27 : 28));
    losses(ctx, std::int64_t{1} << (quick ? 27 : 28));
    std::fflush(stdout);
    if (only_maps) {
      json.close();
      return 0;
    }
    reductions(ctx, std::int64_t{1} << 29);
    std::fflush(stdout);
  }
  if (!only_products) network(ctx);
  const cublas blas;
  if (!blas.there()) std::printf("cuBLAS not found: products are shown without their peer\n");
  for (const std::int64_t n : {256, 512, 1024, 2048, 4096, 8192}) {
    products(ctx, blas, n, n, n, "normal", accumulate::exact);
  }
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{8192, 768, 768},
                                {8192, 3072, 768},
                                {8192, 768, 3072},
                                {768, 768, 8192},
                                {16384, 512, 512},
                                {256, 4096, 4096},
                                {1024, 1024, 16384},
                                {4096, 4096, 64},
                                {32, 1000, 2048}}) {
    products(ctx, blas, m, n, k, "normal", accumulate::exact);
  }
  for (const dtype format : {dtype::bf16, dtype::f16, dtype::f32}) {
    const linear_products of(ctx, blas, format);
    for (const std::int64_t m : {1, 2, 4, 8, 16, 32, 64}) of.layer(m, 4096, 4096);
    for (const std::int64_t n : {512, 1024, 2048, 4096, 8192}) of.layer(n, n, n);
    for (const auto& [n, k] : {std::pair<std::int64_t, std::int64_t>{768, 768}, {3072, 768}, {768, 3072}})
      of.layer(8192, n, k);
    of.batch(96, 1024, 1024, 64, true);
    of.batch(96, 1024, 64, 1024, false);
  }
  products(ctx, blas, 4096, 4096, 4096, "bf16 values", accumulate::exact);
  products(ctx, blas, 1024, 1024, 1024, "all cancel", accumulate::exact);
  for (const std::int64_t n : {256, 512, 1024, 2048, 4096, 8192}) {
    products(ctx, blas, n, n, n, "fma_chain", accumulate::fma_chain);
  }
  for (const auto& [m, n, k] :
       {std::array<std::int64_t, 3>{16384, 512, 512}, {256, 4096, 4096}, {4096, 4096, 64}, {32, 1000, 2048}}) {
    products(ctx, blas, m, n, k, "fma_chain", accumulate::fma_chain);
  }
  json.close();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "repdl_cuda_bench: %s\n", e.what());
    return 1;
  }
}
