// Convolution, pooling, the softmax family, norms, optimisers and random numbers on CUDA against the CPU, bit for bit: every
// published case in every tier and layout, graphs, and tensors of more than 2^31 elements. Without a GPU each test says
// so and passes.
#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "reference/digests.hpp"
#include "tests/helpers/placed_tensor.hpp"

#if defined(REPDL_WITH_CUDA)
#include <cuda_runtime_api.h>
#endif

using namespace repdl;
using reference::array;
using reference::digest_case;
using reference::shape_list;
using tests::gpu;
using tests::has_gpu;
using tests::layout;
using tests::layouts;
using tests::placed_tensor;
using tests::to_sizes;

namespace {

bool is_network(const std::string& op) {
  const std::string& family = find(op)->family;
  return family == "convolution" || family == "pooling" || family == "softmax" || family == "norm" ||
         family == "optimizer" || family == "random" || family == "loss" || family == "scatter" || family == "nll" ||
         family == "sequence" || family == "upsample" || family == "draw" || family == "scan" || family == "exponent" ||
         family == "attention";
}

// The first `most` cases of every operation of the families above, spread over its list.
std::vector<digest_case> network_cases(std::size_t most) {
  std::vector<digest_case> chosen;
  for (const op_info& op : operations()) {
    if (!is_network(op.name)) continue;
    const auto of_op = reference::read_cases(REPDL_SOURCE_DIR "/docs/digests", op);
    const std::size_t step = (of_op.size() + most - 1) / most;
    for (std::size_t i = 0; i < of_op.size(); i += step) chosen.push_back(of_op[i].c);
  }
  return chosen;
}

// The operands of a call on a context's device.
struct operands {
  std::vector<std::unique_ptr<placed_tensor>> in, out;
  std::vector<const_tensor_view> views;
  std::vector<tensor_view> out_views;

  operands(context& ctx, const digest_case& c, const std::vector<array>& inputs, layout in_layout, layout out_layout) {
    std::vector<const_tensor_view> host;
    for (const array& a : inputs) {
      host.push_back(a.absent() ? const_tensor_view() : const_tensor_view(a.bytes.data(), a.type, to_sizes(a.shape)));
      in.push_back(a.absent() ? nullptr : std::make_unique<placed_tensor>(ctx, a, in_layout));
      views.push_back(a.absent() ? const_tensor_view() : const_tensor_view(in.back()->view()));
    }
    for (const tensor_spec& s : infer(*find(c.op), host, c.attrs)) {
      out.push_back(
          std::make_unique<placed_tensor>(ctx, s.type, shape_list(s.shape.begin(), s.shape.end()), out_layout));
      out_views.push_back(out.back()->view());
    }
  }
  std::vector<array> results() {
    std::vector<array> all;
    for (const auto& t : out) all.push_back(t->get());
    return all;
  }
};

std::vector<array> run(context& ctx, const digest_case& c, const std::vector<array>& inputs,
                       layout in_layout = layout::contiguous, layout out_layout = layout::contiguous) {
  operands o(ctx, c, inputs, in_layout, out_layout);
  call(ctx, *find(c.op), o.views, o.out_views, c.attrs);
  return o.results();
}

context cuda_context(tier first, void* stream = nullptr) {
  context_options o;
  o.where = gpu;
  o.first_tier = first;
  o.stream = stream;
  return context(o);
}

}  // namespace

TEST_SUITE_BEGIN("portable");

TEST_CASE("cuda: the network's operations have the CPU's bits in every tier and layout") {
  if (!has_gpu()) return;
  context cpu;
  std::size_t turn = 0;
  for (const tier t : {tier::proved, tier::binary64, tier::double_double, tier::exact}) {
    context cuda = cuda_context(t);
    for (const digest_case& c : network_cases(t == tier::proved ? 1000 : 60)) {
      const std::vector<array> in = reference::inputs(c);
      const layout from = layouts[turn % std::size(layouts)];
      const layout to = layouts[turn / std::size(layouts) % std::size(layouts)];
      turn += 7;
      INFO("tier ", static_cast<int>(t), ", layouts ", static_cast<int>(from), " ", static_cast<int>(to), ": ",
           reference::to_text(c));
      CHECK_NOTHROW(CHECK(run(cuda, c, in, from, to) == run(cpu, c, in)));
    }
  }
}

#if defined(REPDL_WITH_CUDA)

TEST_CASE("cuda: every operation of a network can be captured in a graph and replayed") {
  if (!has_gpu()) return;
  context cpu;
  for (const digest_case& c : network_cases(4)) {
    cudaStream_t stream = nullptr;
    REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
    {
      context cuda = cuda_context(tier::proved, stream);
      const std::vector<array> in = reference::inputs(c);
      operands o(cuda, c, in, layout::contiguous, layout::contiguous);
      const auto go = [&] { call(cuda, *find(c.op), o.views, o.out_views, c.attrs); };
      const std::size_t bytes = cuda.workspace_for(go);
      void* workspace = cuda.allocate(bytes + 1);
      cuda.use_workspace(workspace, bytes + 1);
      cudaGraph_t graph = nullptr;
      cudaGraphExec_t exec = nullptr;
      REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
      go();
      REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
      REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
      for (int replay = 0; replay < 2; ++replay) {
        REQUIRE(cudaGraphLaunch(exec, stream) == cudaSuccess);
        cuda.synchronize();
        CHECK_MESSAGE(o.results() == run(cpu, c, in), reference::to_text(c));
      }
      cudaGraphExecDestroy(exec);
      cudaGraphDestroy(graph);
      cuda.use_workspace(nullptr, 0);
      cuda.deallocate(workspace, bytes + 1);
    }
    CHECK(cudaStreamDestroy(stream) == cudaSuccess);
  }
}

#endif

namespace {

// Device memory of floats.
class floats {
 public:
  floats(context& ctx, std::int64_t n) : all_(ctx, dtype::f32, {n}) {}
  tensor_view view(const sizes& shape, std::int64_t offset = 0) {
    return all_.view().slice(0, offset, offset + element_count(shape)).reshape(shape);
  }

 private:
  tensor all_;
};

}  // namespace

// The last samples, rows and lines of a tensor whose indices do not fit 32 bits, against the same computed from views
// of their own, which begin behind 2^31 elements and are small.
TEST_CASE("cuda: tensors of more than 2^31 elements") {
  if (!has_gpu()) return;
  context ctx = cuda_context(tier::proved);
  constexpr std::int64_t side = 46400;  // side * side > 2^31
  constexpr std::int64_t all = side * side;
  static_assert(all > std::int64_t{1} << 31);
  std::unique_ptr<floats> x, y;
  try {
    x = std::make_unique<floats>(ctx, all);
    y = std::make_unique<floats>(ctx, all);
  } catch (const error& e) {
    MESSAGE("skipped: " << e.what());
    return;
  }
  generator g{1, 0};
  uniform(ctx, g, x->view({all}), {.low = -1, .high = 1});
  const auto same = [&](const const_tensor_view& a, const const_tensor_view& b) {
    return fingerprint(ctx, std::vector{a}) == fingerprint(ctx, std::vector{b});
  };
  constexpr std::int64_t few = 8;  // rows, or lines of the image
  constexpr std::int64_t from = (side - few) * side;

  SUBCASE("softmax family") {
    floats part(ctx, few * side);
    softmax(ctx, x->view({side, side}), y->view({side, side}));
    softmax(ctx, x->view({few, side}, from), part.view({few, side}));
    CHECK(same(y->view({few, side}, from), part.view({few, side})));
    log_softmax(ctx, x->view({side, side}), y->view({side, side}), {.axis = 0});
    floats column(ctx, side * few);
    const const_tensor_view last = const_tensor_view(x->view({side, side})).slice(1, side - few, side);
    log_softmax(ctx, last, column.view({side, few}), {.axis = 0});
    CHECK(same(const_tensor_view(y->view({side, side})).slice(1, side - few, side), column.view({side, few})));
  }
  SUBCASE("convolution: one image") {
    floats w(ctx, 9), part(ctx, few * side);
    uniform(ctx, g, w.view({9}), {.low = -1, .high = 1});
    const const_tensor_view kernel = w.view({1, 1, 3, 3});
    conv2d(ctx, x->view({1, 1, side, side}), kernel, y->view({1, 1, side, side}), {.padding = {1, 1, 1, 1}});
    // The last lines need one line more above them.
    conv2d(ctx, x->view({1, 1, few + 1, side}, from - side), kernel, part.view({1, 1, few, side}),
           {.padding = {0, 1, 1, 1}});
    CHECK(same(y->view({1, 1, few, side}, from), part.view({1, 1, few, side})));
    conv2d_backward_x(ctx, x->view({1, 1, side, side}), kernel, y->view({1, 1, side, side}), {.padding = {1, 1, 1, 1}});
    // As a gradient: taps above the part are in the lines before it; so the part is cut after computing a line more.
    floats more(ctx, (few + 1) * side);
    conv2d_backward_x(ctx, x->view({1, 1, few + 1, side}, from - side), kernel, more.view({1, 1, few + 1, side}),
                      {.padding = {1, 1, 1, 1}});
    CHECK(same(y->view({1, 1, few, side}, from), more.view({1, 1, few, side}, side)));
    // The gradient of a kernel of one tap is a dot product over everything.
    floats one(ctx, 1), dotted(ctx, 1);
    conv2d_backward_w(ctx, x->view({1, 1, side, side}), x->view({1, 1, side, side}), one.view({1, 1, 1, 1}));
    dot(ctx, x->view({all}), x->view({all}), dotted.view({}));
    CHECK(same(one.view({1}), dotted.view({1})));
  }
  SUBCASE("pooling, dropout, a step") {
    constexpr std::int64_t half = side / 2;
    floats part(ctx, few * side);
    const auto check_pool = [&]<class Options>(void (*pool)(context&, const_tensor_view, tensor_view, const Options&),
                                               const Options& options) {
      pool(ctx, x->view({1, 1, side, side}), y->view({1, 1, half, half}), options);
      pool(ctx, x->view({1, 1, few, side}, from), part.view({1, 1, few / 2, half}), options);
      CHECK(same(y->view({few / 2, half}, (half - few / 2) * half), part.view({few / 2, half})));
    };
    check_pool(max_pool2d, max_pool2d_options{.kernel = {2, 2}});
    check_pool(avg_pool2d, avg_pool2d_options{.kernel = {2, 2}});
    avg_pool2d_backward(ctx, x->view({1, 1, half, half}), y->view({1, 1, side, side}), {.kernel = {2, 2}});
    avg_pool2d_backward(ctx, x->view({1, 1, few / 2, half}, (half - few / 2) * half), part.view({1, 1, few, side}),
                        {.kernel = {2, 2}});
    CHECK(same(y->view({few, side}, from), part.view({few, side})));

    generator before = g;
    dropout(ctx, g, x->view({all}), y->view({all}), 0.0);
    CHECK(same(y->view({few, side}, from), x->view({few, side}, from)));
    dropout_backward(ctx, before, x->view({all}), y->view({all}), 1.0);
    floats zero(ctx, few * side);
    sub(ctx, x->view({few, side}), x->view({few, side}), zero.view({few, side}));
    CHECK(same(y->view({few, side}, from), zero.view({few, side})));

    dropout(ctx, g, x->view({all}), y->view({all}), 0.0);  // y = x
    sgd(ctx, std::vector{sgd_tensor{y->view({all}), x->view({all})}}, {.lr = 0.3, .weight_decay = 0.01});
    sub(ctx, x->view({few, side}, from), zero.view({few, side}), part.view({few, side}));
    sgd(ctx, std::vector{sgd_tensor{part.view({few, side}), x->view({few, side}, from)}},
        {.lr = 0.3, .weight_decay = 0.01});
    CHECK(same(y->view({few, side}, from), part.view({few, side})));
  }
}

TEST_SUITE_END();
