// The CUDA kernels of interpolation, emulated: the CPU's results, bit for bit, from every tier, with indices of both sizes.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "backends/cuda/core/drivers.hpp"
#include "librepdl/librepdl.hpp"
#include "librepdl/plan/planner.hpp"
#include "reference/evaluate.hpp"
#include "reference/samples.hpp"

namespace {

using namespace repdl;
using reference::array;
using reference::shape_list;

template <class Op>
array emulate(const array& x, const ops::interpolation_attrs& attrs, tier first, bool wide) {
  const const_tensor_view in(x.bytes.data(), x.type, sizes(std::span(x.shape)));
  const tensor_spec spec = plan::planner<Op>::infer({&in, 1}, attrs);
  array result(x.type, shape_list(spec.shape.begin(), spec.shape.end()));
  const tensor_view out(result.bytes.data(), spec.type, spec.shape);
  const plan::interpolation_plan p = plan::planner<Op>::make({&in, 1}, out, attrs);
  cuda::counter counted[cuda::counter_count] = {};
  const cuda::job j{{Op::id, x.type, x.type}, nullptr, {0, 4, 90, {.wide = wide}}, counted, first, 512, false};
  dispatch::stored_task task;
  cuda::prepare(p, j, task);
  std::vector<std::byte> workspace(task->bytes().value() + 512, std::byte{0xee});
  task->run(workspace.data() + (256 - reinterpret_cast<std::uintptr_t>(workspace.data()) % 256));
  CHECK(counted[0] + counted[1] + counted[2] + counted[3] == static_cast<cuda::counter>(result.count()));
  return result;
}

template <class Op>
void check(const shape_list& shape, const ops::interpolation_attrs& attrs) {
  context ctx({.threads = 1});
  const std::size_t classes = reference::element_classes.size();
  std::size_t k = 0;
  for (const dtype t : {dtype::f32, dtype::f16, dtype::bf16, dtype::f64}) {
    for (const tier first : {tier::proved, tier::double_double, tier::exact}) {
      const auto c = reference::element_classes[(k * 7 + 3) % classes];
      const array x = reference::fill_pooling(std::string(Op::name), c, t, {shape}, {}, 5, k++)[0];
      const const_tensor_view in(x.bytes.data(), x.type, sizes(std::span(x.shape)));
      const tensor_spec spec = plan::planner<Op>::infer({&in, 1}, attrs);
      array expected(t, shape_list(spec.shape.begin(), spec.shape.end()));
      const tensor_view out(expected.bytes.data(), t, spec.shape);
      attributes given{{"size", std::vector<std::int64_t>(attrs.size->begin(), attrs.size->end())},
                       {"align_corners", attrs.align_corners}};
      if (attrs.scale_w != 0) given.push_back({"scale_w", attrs.scale_w});
      call(ctx, *find(std::string(Op::name)), {&in, 1}, {&out, 1}, given);
      CAPTURE(std::string(Op::name));
      CAPTURE(std::string(name_of(t)));
      CAPTURE(static_cast<int>(first));
      CHECK(emulate<Op>(x, attrs, first, k % 2 == 0) == expected);
    }
  }
}

}  // namespace

TEST_CASE("interpolation on CUDA, emulated") {
  struct problem {
    shape_list image, size;
    bool align_corners;
    double scale_w;
  };
  const std::vector<problem> problems = {{{2, 3, 5, 4}, {2, 3, 10, 9}, false, 0},
                                         {{1, 2, 9, 11}, {1, 2, 4, 7}, false, 0.6},
                                         {{2, 1, 3, 2, 5}, {2, 1, 5, 4, 4}, false, 0},
                                         {{1, 3, 300}, {1, 3, 97}, true, 0},
                                         {{3, 1, 1, 3}, {3, 1, 20, 30}, false, 0}};
  for (const problem& p : problems) {
    ops::interpolation_attrs attrs;
    attrs.align_corners = p.align_corners;
    attrs.scale_w = p.scale_w;
    const auto spatial = [](const shape_list& s) { return sizes(std::span(s).subspan(2)); };
    attrs.size = spatial(p.size);
    check<ops::upsample_linear>(p.image, attrs);
    check<ops::upsample_cubic>(p.image, attrs);
    attrs.size = spatial(p.image);
    check<ops::upsample_linear_backward>(p.size, attrs);
    check<ops::upsample_cubic_backward>(p.size, attrs);
  }
}
