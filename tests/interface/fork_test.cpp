// fork(): in the child, contexts of the CPU go on with the same bits, and CUDA is refused.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "tests/helpers/placed_tensor.hpp"

namespace {

using namespace repdl;

// Runs body in a child; returns its result, or minus the signal that ended it. A child that hangs gets SIGALRM.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(900);
    int result = 99;
    try {
      result = body();
    } catch (...) {
    }
    _exit(result);
  }
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int threads_of_process() {
  int n = 0;
  for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task")) ++n;
  return n;
}

// Operations that share their work in different ways, and their results as one fingerprint.
std::string results(context& ctx) {
  std::mt19937 engine(4711);
  std::vector<float> x(1 << 18);
  for (float& v : x) v = static_cast<float>(static_cast<std::int32_t>(engine())) * 0x1p-20f;
  constexpr std::int64_t side = 1 << 9;
  const const_tensor_view square(x.data(), {side, side});
  std::vector<float> total(1), columns(side), curve(x.size()), product(x.size()), one(1), gradient(x.size());
  std::vector<std::int64_t> order(50000);
  sum(ctx, x, tensor_view(total.data(), {}));
  sum(ctx, square, columns, {.axis = sizes{0}});
  exp(ctx, x, curve);
  matmul(ctx, square, square, tensor_view(product.data(), {side, side}));
  logsumexp(ctx, x, tensor_view(one.data(), {}));
  avg_pool2d_backward(ctx, square.reshape({1, 1, side, side}), tensor_view(gradient.data(), {1, 1, side, side}),
                      {.kernel = {1, 1}});
  generator g;
  permutation(ctx, g, order);
  return fingerprint(ctx, std::vector<const_tensor_view>{total, columns, curve, product, one, gradient, order});
}

TEST_SUITE_BEGIN("portable");

TEST_CASE("fork: a child goes on with the same bits, on one thread where its parent had workers") {
  context ctx({.threads = 4});
  const std::string expected = results(ctx);
  const auto check = [&] {
    if (results(ctx) != expected) return 1;  // a context from before fork()
    context fresh({.threads = 4});
    if (results(fresh) != expected) return 2;
    return threads_of_process() == 1 ? 0 : 3;
  };
  CHECK(in_child(check) == 0);
  CHECK(in_child([&] { return in_child(check); }) == 0);
  CHECK(results(ctx) == expected);
}

// In a process of its own, which has no threads (run by the next test).
TEST_CASE("fork: helper, a process without threads" * doctest::skip()) {
  if (threads_of_process() != 1) return;  // a sanitizer's
  CHECK(in_child([] {
          context ctx({.threads = 4});
          std::vector<float> x(1 << 20, 1.0f);
          float total = 0;
          sum(ctx, x, tensor_view(&total, {}));
          return total == 0x1p20f && threads_of_process() >= 4 ? 0 : 1;  // a sanitizer may have its own
        }) == 0);
}
TEST_CASE("fork: a child of a process without threads has workers") {
  CHECK(in_child([] {
          execl("/proc/self/exe", "repdl_tests", "--no-skip", "--test-case=fork: helper*", nullptr);
          return 1;
        }) == 0);
}

// Whether f fails as a call of CUDA in a child does.
bool refused(const std::function<void()>& f) {
  try {
    f();
  } catch (const machine_error& e) {
    return e.site() == error_site::cuda_after_fork;
  }
  return false;
}

TEST_CASE("cuda: after fork() every use is an error that says so, in the child only") {
  if (!tests::has_gpu()) return;
  context_options o;
  o.where = tests::gpu;
  context ctx(o);
  auto* const x = static_cast<float*>(ctx.allocate(8));
  const float values[2] = {1, 2};
  ctx.copy(x, values, 8);
  const const_tensor_view in(x, sizes{1}, tests::gpu);
  const tensor_view out(x + 1, sizes{1}, tests::gpu);
  exp(ctx, in, out);
  ctx.synchronize();
  const int result = in_child([&] {
    float host[2];
    if (!refused([&] { exp(ctx, in, out); })) return 1;
    if (!refused([&] { ctx.synchronize(); })) return 2;
    if (!refused([&] { ctx.copy(host, x, 8); })) return 3;
    if (!refused([&] { ctx.read_statistics(); })) return 4;
    if (!refused([&] { ctx.allocate(8); })) return 5;
    if (!refused([&] { context fresh(o); })) return 6;
    std::string why;
    for (const device_info& d : devices(&why)) {
      if (d.where.kind == device_kind::cuda) return 7;
    }
    if (why.find("fork()") == std::string::npos) return 8;
    ctx.deallocate(x, 8);
    { const context gone(std::move(ctx)); }
    context cpu({.threads = 4});
    float total = 0;
    sum(cpu, const_tensor_view(values, sizes{2}), tensor_view(&total, {}));
    return total == 3 ? 0 : 9;
  });
  CHECK(result == 0);
  float host[2] = {};
  exp(ctx, in, out);
  ctx.copy(host, x, 8);
  CHECK(host[0] == 1);
  CHECK(host[1] == 0x1.5bf0a8p+1f);
  ctx.deallocate(x, 8);
}

}  // namespace

TEST_SUITE_END();
