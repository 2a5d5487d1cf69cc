// The CUDA kernels of norms of lists, and clipping by them, emulated: the CPU's results, bit for bit, of tensors side by side, which share
// launches, and of others between them.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "backends/cuda/core/drivers.hpp"
#include "librepdl/librepdl.hpp"
#include "librepdl/num/format.hpp"
#include "librepdl/plan/planner.hpp"

namespace {

using namespace repdl;

// Tensors behind each other in one memory.
struct tensors {
  dtype type;
  std::vector<sizes> shapes, strides;
  std::vector<std::size_t> offsets;
  std::vector<std::byte> bytes;

  tensors(dtype t, const std::vector<std::int64_t>& counts, double scale) : type(t) {
    std::mt19937 random(5);
    for (std::size_t k = 0; k < counts.size(); ++k) {
      const bool stepped = k % 7 == 3;
      const std::int64_t n = counts[k];
      shapes.push_back(stepped ? sizes{n, 2} : sizes{n});
      strides.push_back(stepped ? sizes{5, 2} : sizes{1});
      offsets.push_back(bytes.size() + (k % 3 == 1 ? size_of(t) : 0));
      bytes.resize(offsets.back() + static_cast<std::size_t>(stepped ? 5 * n : n) * size_of(t));
    }
    for (std::size_t at = 0; at + size_of(t) <= bytes.size(); at += size_of(t)) {
      const double x = scale * (static_cast<double>(random()) * 0x1p-31 - 1);
      if (t == dtype::f64) {
        std::memcpy(bytes.data() + at, &x, sizeof x);
      } else if (t == dtype::f32) {
        const float y = static_cast<float>(x);
        std::memcpy(bytes.data() + at, &y, sizeof y);
      } else {
        const std::uint16_t y = static_cast<std::uint16_t>(
            (random() % 2 << 15) | (t == dtype::f16 ? 0x3000 + random() % 2048 : 0x3e00 + random() % 512));
        std::memcpy(bytes.data() + at, &y, sizeof y);
      }
    }
  }
  std::vector<tensor_view> views() {
    std::vector<tensor_view> all;
    for (std::size_t k = 0; k < shapes.size(); ++k)
      all.push_back(tensor_view(bytes.data() + offsets[k], type, shapes[k], strides[k]));
    return all;
  }
};

// In place, or without clips only the norm; the norm's bytes follow those of the tensors.
std::vector<std::byte> emulated(tensors t, double p, double max_norm, bool clips, tier first,
                                cuda::counter (&counted)[cuda::counter_count]) {
  const std::size_t size = t.bytes.size();
  t.bytes.resize(size + 8);
  std::vector<tensor_view> out = t.views();
  const std::vector<const_tensor_view> in(out.begin(), out.end());
  if (!clips) out.clear();
  out.push_back(tensor_view(t.bytes.data() + size, t.type, {}));
  const ops::op_id op = clips ? ops::op_id::clip_grad_norm : ops::op_id::total_norm;
  const plan::clip_plan plan = plan::make_clip(op, in, out, p, max_norm);
  const cuda::job j{{op, t.type, t.type}, nullptr, {0, 4, 90, {}}, counted, first, 512, false};
  dispatch::stored_task task;
  cuda::prepare(plan, j, task);
  std::vector<std::byte> workspace(task->bytes().value() + 512, std::byte{0xee});
  task->run(workspace.data() + (256 - reinterpret_cast<std::uintptr_t>(workspace.data()) % 256));
  return t.bytes;
}
std::vector<std::byte> on_cpu(tensors t, double p, double max_norm, bool clips) {
  const std::size_t size = t.bytes.size();
  t.bytes.resize(size + 8);
  context ctx({.threads = 1});
  std::vector<tensor_view> out = t.views();
  const std::vector<const_tensor_view> in(out.begin(), out.end());
  if (!clips) out.clear();
  out.push_back(tensor_view(t.bytes.data() + size, t.type, {}));
  attributes attrs{{"p", p}};
  if (clips) attrs.push_back({"max_norm", max_norm});
  call(ctx, *find(clips ? "clip_grad_norm" : "total_norm"), in, out, attrs);
  return t.bytes;
}

}  // namespace

TEST_CASE("norms of lists on CUDA, emulated") {
  const std::vector<std::int64_t> some{1, 5, 1024, 700, 1025, 3000, 1, 2049, 64, 1023, 40, 4};
  std::vector<std::int64_t> many;  // more than a launch takes
  for (int k = 0; k < 1900; ++k) many.push_back(1 + k % 5);
  for (const dtype t : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16}) {
    for (const double p : {2.0, 1.0, HUGE_VAL}) {
      for (const tier first : {tier::proved, tier::exact}) {
        for (const bool clips : {true, false}) {
          for (const std::vector<std::int64_t>& counts : {some, many}) {
            if (counts.size() > 100 && (t != dtype::f32 || p != 2)) continue;
            CAPTURE(name_of(t));
            CAPTURE(p);
            CAPTURE(clips);
            CAPTURE(static_cast<int>(first));
            const tensors all(t, counts, 1);
            cuda::counter counted[cuda::counter_count] = {};
            CHECK(emulated(all, p, 0.75, clips, first, counted) == on_cpu(all, p, 0.75, clips));
            std::int64_t elements = 1;
            for (std::size_t k = 0; k < counts.size() && clips; ++k) elements += counts[k] * (k % 7 == 3 ? 2 : 1);
            CHECK(counted[3] + (first == tier::exact ? 0 : counted[2]) == static_cast<cuda::counter>(elements));
          }
        }
      }
    }
  }
}
