// How much of a training step is not spent in kernels: the example's convolutional network, one step through the public
// API (about 25 calls), at the demo's size and at a larger one.
//
// CPU. Every call validates and plans, takes its workspace from the allocator, and hands the plan to the backend; all
// that the backend does, starting its threads included, counts as kernels. The first is timed as the same calls in
// context::workspace_for, which validates and plans only; the second by an allocator that measures itself.
//     outside = (time of the dry run + time in the allocator during a step) / time of a step
// CUDA. One step is captured as a graph; replaying it takes the device's time and nothing of the host's.
//     outside = 1 - (time of a replay) / (time of a step when steps are issued one after the other)
// which is above 0 where the host is slower than the device, or the device waits between kernels. Also shown: the
// host's time to issue a step.
// Every number is the median of rounds in which the contenders take turns. Usage: repdl_step_bench [--rounds N]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "examples/cnn.hpp"
#include "librepdl/librepdl.hpp"
#if defined(REPDL_WITH_CUDA)
#include <cuda_runtime_api.h>

#include <stdexcept>
#endif

namespace {

using clock_type = std::chrono::steady_clock;

double microseconds(clock_type::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

double time_of(const std::function<void()>& f, int repeat) {
  const auto begin = clock_type::now();
  for (int i = 0; i < repeat; ++i) f();
  return microseconds(clock_type::now() - begin) / repeat;
}

double median(std::vector<double> v) {
  const auto middle = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  return *middle;
}

// As the default one of the CPU, and measures itself.
struct timed_allocator : repdl::allocator {
  static constexpr std::align_val_t alignment{256};
  clock_type::duration spent{};

  void* allocate(std::size_t bytes, const repdl::device&, void*) override {
    const auto begin = clock_type::now();
    void* p = ::operator new(bytes, alignment);
    spent += clock_type::now() - begin;
    return p;
  }
  void deallocate(void* data, std::size_t, const repdl::device&, void*) noexcept override {
    const auto begin = clock_type::now();
    ::operator delete(data, alignment);
    spent += clock_type::now() - begin;
  }
};

struct size_of_network {
  const char* name;
  std::int64_t channels1, channels2, hidden, batch;
};
constexpr size_of_network networks[] = {{"the demo's, batch 50", 16, 48, 64, 50},
                                        {"64 and 128 channels, batch 256", 64, 128, 512, 256}};

// A network and a batch of noise.
struct problem {
  examples::cnn_settings settings;
  repdl::generator random{.seed = 1};
  examples::cnn network;
  repdl::tensor images, labels, loss;

  problem(repdl::context& ctx, const size_of_network& n)
      : settings(settings_of(n)),
        network(ctx, random, settings),
        images(ctx, repdl::dtype::f32, {n.batch, 1, 8, 8}),
        labels(ctx, repdl::dtype::i64, {n.batch}),
        loss(ctx, repdl::dtype::f32, {}) {
    repdl::uniform(ctx, random, images);
    repdl::randint(ctx, random, labels, {.high = examples::digit_classes});
  }
  void step() {
    constexpr double rate = 0x1p-20;  // the network stays as it is
    network.step(images, labels, loss, rate, random);
  }
  static examples::cnn_settings settings_of(const size_of_network& n) {
    examples::cnn_settings s;
    s.channels1 = n.channels1;
    s.channels2 = n.channels2;
    s.hidden = n.hidden;
    s.batch = n.batch;
    return s;
  }
};

int repeats_for(double us) {
  constexpr double turn = 20000;
  return std::clamp(static_cast<int>(turn / std::max(us, 1.0)), 1, 1000);
}

void on_cpu(const size_of_network& n, const repdl::context_options& where, int rounds) {
  repdl::context_options options = where;
  timed_allocator memory;
  options.memory = &memory;
  repdl::context ctx(options);
  problem p(ctx, n);
  const std::function<void()> step = [&] { p.step(); };
  const std::function<void()> plan = [&] { static_cast<void>(ctx.workspace_for([&] { p.step(); })); };
  step();
  plan();
  const int step_repeat = repeats_for(time_of(step, 1));
  const int plan_repeat = repeats_for(time_of(plan, 1));
  std::vector<double> steps, plans, allocations;
  for (int r = 0; r < rounds; ++r) {
    memory.spent = {};
    steps.push_back(time_of(step, step_repeat));
    allocations.push_back(microseconds(memory.spent) / step_repeat);
    plans.push_back(time_of(plan, plan_repeat));
  }
  const double whole = median(steps);
  const double outside = median(plans) + median(allocations);
  std::printf("%-32s %-9s %2d   %10.1f %10.1f %10.1f %9.2f %%\n", n.name, ctx.isa().c_str(), ctx.threads(), whole,
              median(plans), median(allocations), 100 * outside / whole);
  std::fflush(stdout);
}

#if defined(REPDL_WITH_CUDA)
void must(cudaError_t e) {
  if (e != cudaSuccess) throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(e));
}

void on_cuda(const size_of_network& n, const repdl::device_info& d, int rounds) {
  must(cudaSetDevice(d.where.index));
  cudaStream_t stream = nullptr;
  must(cudaStreamCreate(&stream));
  {
    repdl::context ctx({.where = d.where, .stream = stream});
    problem p(ctx, n);
    const std::function<void()> step = [&] { p.step(); };
    const std::function<void()> plan = [&] { static_cast<void>(ctx.workspace_for([&] { p.step(); })); };
    step();
    ctx.synchronize();

    // Nothing may be allocated while a graph is captured.
    const std::size_t bytes = ctx.workspace_for([&] { p.step(); });
    void* workspace = bytes == 0 ? nullptr : ctx.allocate(bytes);
    ctx.use_workspace(workspace, bytes);
    step();
    ctx.synchronize();
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replayed = nullptr;
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    step();
    must(cudaStreamEndCapture(stream, &graph));
    must(cudaGraphInstantiate(&replayed, graph, 0));
    const auto waiting = [&](const std::function<void()>& f, int repeat) {
      return time_of(
                 [&] {
                   for (int i = 0; i < repeat; ++i) f();
                   must(cudaStreamSynchronize(stream));
                 },
                 1) /
             repeat;
    };
    const std::function<void()> replay = [&] { must(cudaGraphLaunch(replayed, stream)); };
    waiting(replay, 3);
    const int replay_repeat = repeats_for(waiting(replay, 3));
    const int step_repeat = repeats_for(waiting(step, 3));
    const int plan_repeat = repeats_for(time_of(plan, 1));
    std::vector<double> steps, allocating, replays, issues, plans;
    for (int r = 0; r < rounds; ++r) {
      replays.push_back(waiting(replay, replay_repeat));
      steps.push_back(waiting(step, step_repeat));
      ctx.use_workspace(nullptr, 0);
      allocating.push_back(waiting(step, step_repeat));
      ctx.use_workspace(workspace, bytes);
      issues.push_back(time_of(step, 1));
      must(cudaStreamSynchronize(stream));
      plans.push_back(time_of(plan, plan_repeat));
    }
    const auto share = [&](const std::vector<double>& t) { return 100 * (1 - median(replays) / median(t)); };
    std::printf("%-32s %10.1f %10.1f %10.1f %10.1f %10.1f %9.2f %% %9.2f %%\n", n.name, median(replays), median(steps),
                median(allocating), median(issues), median(plans), share(steps), share(allocating));
    std::fflush(stdout);
    must(cudaGraphExecDestroy(replayed));
    must(cudaGraphDestroy(graph));
    ctx.use_workspace(nullptr, 0);
    if (workspace != nullptr) ctx.deallocate(workspace, bytes);
    ctx.synchronize();
  }
  must(cudaStreamDestroy(stream));
}
#endif

void run(int rounds) {
  std::printf("A training step on the CPU, microseconds\n%-32s %-9s %s   %10s %10s %10s %11s\n", "network", "isa",
              "threads", "step", "planning", "allocator", "outside");
  for (const size_of_network& n : networks) {
    for (const repdl::isa_info& isa : repdl::instruction_sets()) {
      if (!isa.available) continue;
      for (const int threads : {1, 2}) on_cpu(n, {.threads = threads, .isa = isa.name}, rounds);
    }
  }
#if defined(REPDL_WITH_CUDA)
  std::string why;
  for (const repdl::device_info& d : repdl::devices(&why)) {
    if (d.where.kind != repdl::device_kind::cuda) continue;
    std::printf("\n%s, microseconds\n%-32s %10s %10s %10s %10s %10s %11s %11s\n", d.name.c_str(), "network", "graph",
                "step", "allocating", "issuing", "planning", "outside", "allocating");
    for (const size_of_network& n : networks) on_cuda(n, d, rounds);
  }
  if (!why.empty()) std::printf("\nNo GPU: %s\n", why.c_str());
#endif
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 11;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--rounds" && i + 1 < argc) rounds = std::max(1, std::atoi(argv[++i]));
  }
  try {
    run(rounds);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "repdl_step_bench: %s\n", e.what());
    return 2;
  }
  return 0;
}
