// The CUDA kernels of optimiser steps, emulated: the CPU's results, bit for bit, of more tensors than a launch takes, packed or not, and of
// others between them, from every tier.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "backends/cuda/core/drivers.hpp"
#include "librepdl/librepdl.hpp"
#include "librepdl/num/format.hpp"
#include "librepdl/plan/planner.hpp"

namespace {

using namespace repdl;

template <class E>
E number(std::mt19937& random, double scale) {
  const double x = scale * (static_cast<double>(random()) * 0x1p-31 - 1);
  if constexpr (std::is_same_v<E, double> || std::is_same_v<E, float>) {
    return static_cast<E>(x);
  } else {
    return num::narrow<E>(static_cast<float>(x));
  }
}

// Tensors and their states, and a call on them; T: of parameters and gradients, S: of states.
template <class T, class S>
struct training {
  std::vector<T> params, gradients;
  std::vector<S> first, second;
  std::vector<sizes> shapes, strides;
  std::vector<std::size_t> offsets;

  explicit training(const std::vector<std::int64_t>& counts) {
    std::size_t used = 0;
    for (std::size_t k = 0; k < counts.size(); ++k) {
      const bool stepped = k % 50 == 7;
      const std::int64_t n = counts[k];
      shapes.push_back(stepped ? sizes{n, 2} : sizes{n});
      strides.push_back(stepped ? sizes{5, 2} : sizes{1});
      offsets.push_back((used + 7) / 8 * 8 + (k % 3 == 1 ? 1 : 0));
      used = offsets.back() + static_cast<std::size_t>(stepped ? 5 * n : n);
    }
    std::mt19937 random(9);
    for (std::size_t i = 0; i < used; ++i) {
      params.push_back(number<T>(random, 1));
      gradients.push_back(number<T>(random, 0.25));
      first.push_back(number<S>(random, 0.25));
      second.push_back(std::abs(number<S>(random, 0.0625)));
      if (i % 5 == 0) {  // exact cases
        gradients.back() = params.back();
        first.back() = second.back() = 0;
      }
    }
  }
  // p0 g0 s0 ..., and the outputs, in place; states: how many there are.
  void views(std::size_t states, std::vector<const_tensor_view>& in, std::vector<tensor_view>& out) {
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      const auto view = [&](auto& all, dtype t) {
        return tensor_view(all.data() + offsets[k], t, shapes[k], strides[k]);
      };
      in.push_back(view(params, dtype_of<T>));
      in.push_back(view(gradients, dtype_of<T>));
      out.push_back(view(params, dtype_of<T>));
      if (states > 0) in.push_back(view(first, dtype_of<S>)), out.push_back(view(first, dtype_of<S>));
      if (states > 1) in.push_back(view(second, dtype_of<S>)), out.push_back(view(second, dtype_of<S>));
    }
  }
  bool same(const training& o) const {
    const auto bytes = [](const auto& a, const auto& b) {
      return std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0;
    };
    return bytes(params, o.params) && bytes(first, o.first) && bytes(second, o.second);
  }
};

template <class Op, class T, class S>
void check(const training<T, S>& begin, std::size_t states, const typename Op::attrs& attrs, tier first) {
  CAPTURE(std::string(Op::name));
  CAPTURE(std::string(name_of(dtype_of<T>)));
  CAPTURE(static_cast<int>(first));
  training<T, S> cpu = begin, gpu = begin;
  std::vector<const_tensor_view> in;
  std::vector<tensor_view> out;
  cpu.views(states, in, out);
  context ctx({.threads = 1});
  if constexpr (std::is_same_v<Op, ops::adamw>) {
    call(ctx, *find("adamw"), in, out, {{"lr", attrs.lr}, {"step", attrs.step}});
  } else {
    call(ctx, *find("sgd"), in, out, {{"lr", attrs.lr}, {"momentum", attrs.momentum}, {"nesterov", attrs.nesterov}});
  }
  in.clear();
  out.clear();
  gpu.views(states, in, out);
  const plan::step_plan plan = plan::planner<Op>::make(in, out, attrs);
  cuda::counter counted[cuda::counter_count] = {};
  const cuda::job j{{Op::id, dtype_of<T>, dtype_of<T>}, nullptr, {0, 4, 90, {}}, counted, first, 512, false};
  dispatch::stored_task task;
  cuda::prepare(plan, j, task);
  std::vector<std::byte> workspace(task->bytes().value() + 512, std::byte{0xee});
  task->run(workspace.data() + (256 - reinterpret_cast<std::uintptr_t>(workspace.data()) % 256));
  CHECK(gpu.same(cpu));
  std::int64_t elements = 0;
  for (const tensor_view& v : out) elements += v.count();
  CHECK(counted[0] + counted[1] + counted[2] + counted[3] == static_cast<cuda::counter>(elements));
}

template <class T, class S>
void check_all() {
  std::vector<std::int64_t> counts{1, 5, 1024, 700, 1025, 3000, 2049, 64};
  for (int k = 0; k < 900; ++k) counts.push_back(1 + k % 4);
  const training<T, S> begin(counts);
  for (const tier first : {tier::proved, tier::exact}) {
    adamw_options a;
    a.lr = 1e-2;
    a.step = 3;
    check<ops::adamw, T, S>(begin, 2, a, first);
    sgd_options s;
    s.lr = 1e-2;
    check<ops::sgd, T, S>(begin, 0, s, first);
    s.momentum = 0.9;
    s.nesterov = true;
    check<ops::sgd, T, S>(begin, 1, s, first);
  }
}

}  // namespace

TEST_CASE("optimiser steps on CUDA, emulated") {
  check_all<float, float>();
  check_all<double, double>();
  check_all<bf16, float>();
  check_all<f16, float>();
}
