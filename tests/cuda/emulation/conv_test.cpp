// The CUDA kernels of convolutions and their gradients, emulated: the oracle's results, bit for bit, in every format and from every tier, by tiles of
// every shape, whole and in parts, of the classes of the oracle's samples.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "backends/cuda/core/drivers.hpp"
#include "librepdl/librepdl.hpp"
#include "librepdl/num/format.hpp"
#include "librepdl/plan/planner.hpp"
#include "reference/evaluate.hpp"
#include "reference/samples.hpp"

namespace repdl::cuda {
namespace {

// Of numbers of 16 bits, to binary32.
class conversion final : public planned {
 public:
  conversion(const plan::map_plan& p, const job& given) : planned(given), p_(p) {}

 private:
  void enqueue() override {
    for (std::int64_t i = 0; i < p_.count; ++i) {
      std::int64_t rest = i, from = 0, to = 0;
      for (int d = p_.rank - 1; d >= 0; --d) {
        const auto axis = static_cast<std::size_t>(d);
        from += rest % p_.shape[axis] * p_.in[0].stride[axis];
        to += rest % p_.shape[axis] * p_.out_stride[axis];
        rest /= p_.shape[axis];
      }
      ops::for_each_format<ops::one(dtype::f16) | ops::one(dtype::bf16)>([&]<class T>() {
        if (dtype_of<T> == p_.in_type)
          static_cast<float*>(p_.out)[to] = num::widen_to_float(static_cast<const T*>(p_.in[0].data)[from]);
      });
    }
  }
  const plan::map_plan p_;
};

}  // namespace

void prepare(const plan::map_plan& p, const job& j, dispatch::task& t) { t.emplace<conversion>(p, j); }

}  // namespace repdl::cuda

namespace {

using namespace repdl;
using reference::array;
using reference::sample_class;
using reference::shape_list;

using integers = std::vector<std::int64_t>;
struct geometry {
  std::int64_t n, groups, c, o;
  integers image, kernel, stride, padding, dilation;
  bool bias;
};

struct emulated {
  array out;
  cuda::counter counted[cuda::counter_count] = {};
};

// Tensors with their axes in memory as they are, or with channels last.
sizes strides_of(const sizes& shape, bool channels_last) {
  sizes strides = row_major(shape);
  if (!channels_last || shape.size() < 4) return strides;
  std::int64_t step = shape[1];
  for (int d = shape.size() - 1; d >= 2; --d) {
    strides[d] = step;
    step *= shape[d];
  }
  strides[1] = 1;
  return strides;
}
// f(first byte in row-major order, first byte by the strides, bytes) of every element.
template <class F>
void for_places(const array& a, const sizes& strides, const F& f) {
  const std::size_t bytes = size_of(a.type);
  for (std::int64_t i = 0; i < a.count(); ++i) {
    std::int64_t rest = i, at = 0;
    for (int d = strides.size() - 1; d >= 0; --d) {
      const std::int64_t size = a.shape[static_cast<std::size_t>(d)];
      at += rest % size * strides[d];
      rest /= size;
    }
    f(static_cast<std::size_t>(i) * bytes, static_cast<std::size_t>(at) * bytes, bytes);
  }
}

// The channels of the first operand and of the result may be last in memory.
template <class Op>
emulated emulate(const std::vector<array>& in, const typename Op::attrs& attrs, tier first,
                 const dispatch::kernel_choice& choice, bool channels_last, bool result_last) {
  std::vector<std::vector<std::byte>> memory(in.size());
  std::vector<const_tensor_view> views;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const sizes shape(std::span(in[i].shape));
    const sizes strides = strides_of(shape, channels_last && i == 0);
    memory[i].resize(in[i].bytes.size());
    for_places(in[i], strides, [&](std::size_t row_major, std::size_t at, std::size_t bytes) {
      std::memcpy(memory[i].data() + at, in[i].bytes.data() + row_major, bytes);
    });
    views.push_back(const_tensor_view(memory[i].data(), in[i].type, shape, strides));
  }
  const tensor_spec spec = plan::planner<Op>::infer(views, attrs);
  emulated e{array(spec.type, shape_list(spec.shape.begin(), spec.shape.end()))};
  std::vector<std::byte> result(e.out.bytes.size());
  const sizes strides = strides_of(spec.shape, result_last);
  const tensor_view out(result.data(), spec.type, spec.shape, strides);
  const plan::conv_plan p = plan::planner<Op>::make(views, out, attrs);
  const cuda::job j{{Op::id, spec.type, spec.type}, nullptr, {0, 2, 90, choice}, e.counted, first, 512, false};
  dispatch::stored_task task;
  cuda::prepare(p, j, task);
  std::vector<std::byte> workspace(task->bytes().value() + 512, std::byte{0xee});
  task->run(workspace.data() + (256 - reinterpret_cast<std::uintptr_t>(workspace.data()) % 256));
  for_places(e.out, strides, [&](std::size_t row_major, std::size_t at, std::size_t bytes) {
    std::memcpy(e.out.bytes.data() + row_major, result.data() + at, bytes);
  });
  return e;
}

// The operation's inputs, of a convolution of this geometry.
template <class Op>
void check(const geometry& g, dtype type, sample_class c, tier first, dispatch::kernel_choice choice, bool chain,
           std::uint64_t seed) {
  shape_list image{g.n, g.groups * g.c}, kernel{g.groups * g.o, g.c}, result{g.n, g.groups * g.o};
  for (std::size_t d = 0; d < g.image.size(); ++d) {
    image.push_back(g.image[d]);
    kernel.push_back(g.kernel[d]);
    result.push_back((g.image[d] + g.padding[2 * d] + g.padding[2 * d + 1] - g.dilation[d] * (g.kernel[d] - 1) - 1) /
                         g.stride[d] +
                     1);
  }
  attributes texts{{"stride", g.stride},
                   {"padding", g.padding},
                   {"dilation", g.dilation},
                   {"groups", g.groups},
                   {"accumulate", std::string(chain ? "fma_chain" : "exact")}};
  typename Op::attrs attrs{};
  attrs.stride = g.stride;
  attrs.padding = g.padding;
  attrs.dilation = g.dilation;
  attrs.groups = g.groups;
  attrs.accumulate = chain ? accumulate::fma_chain : accumulate::exact;
  std::vector<shape_list> shapes{image, kernel};
  if (g.bias) shapes.push_back({kernel[0]});
  if constexpr (requires { attrs.size; }) {
    attrs.size = g.image;
    texts.push_back({"size", g.image});
    shapes = {result, kernel};
  } else if constexpr (requires { attrs.kernel; }) {
    attrs.kernel = g.kernel;
    texts.push_back({"kernel", g.kernel});
    shapes = {result, image};
  }
  const std::string op(Op::name);
  const std::vector<array> in = reference::fill_inputs(op, c, shapes, texts, seed, 3, type);
  const array expected = reference::evaluate(op, in, texts);
  const emulated found = emulate<Op>(in, attrs, first, choice, seed % 2 == 0, seed % 4 == 0);
  CAPTURE(op);
  CAPTURE(name_of(type));
  CAPTURE(std::string(name_of(c)));
  CAPTURE(static_cast<int>(first));
  CAPTURE(choice.tile);
  CAPTURE(choice.split);
  CAPTURE(seed);
  CHECK(found.out == expected);
  cuda::counter all = 0;
  for (int t = 0; t < 4; ++t) all += found.counted[t];
  CHECK(all == static_cast<cuda::counter>(expected.count()));
  if (first == tier::exact && !chain) CHECK(found.counted[3] == all);
}

template <class F>
void for_each_convolution(const F& f) {
  f.template operator()<ops::conv2d>();
  f.template operator()<ops::conv2d_grad_input>();
  f.template operator()<ops::conv2d_grad_weight>();
}
template <class F>
void for_each_convolution_of_volumes(const F& f) {
  f.template operator()<ops::conv3d>();
  f.template operator()<ops::conv3d_grad_input>();
  f.template operator()<ops::conv3d_grad_weight>();
}

}  // namespace

TEST_CASE("convolutions on CUDA, emulated") {
  const geometry some[] = {{2, 2, 3, 2, {5, 6}, {3, 2}, {1, 1}, {1, 0, 1, 1}, {1, 2}, true},
                           {1, 1, 2, 5, {7, 6}, {3, 3}, {2, 1}, {1, 1, 0, 2}, {1, 1}, false},
                           {2, 1, 8, 4, {4, 4}, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, true}};
  std::uint64_t seed = 0;
  for (const dtype type : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64}) {
    for (const tier first : {tier::proved, tier::double_double, tier::exact}) {
      for (const sample_class c : reference::element_classes) {
        if (++seed % 2 == 0 && first != tier::proved) continue;
        const geometry& g = some[seed / 2 % std::size(some)];
        for_each_convolution([&]<class Op>() { check<Op>(g, type, c, first, {}, false, seed); });
      }
    }
  }
}

TEST_CASE("convolutions on CUDA, emulated: depthwise ones, directly") {
  // Kernels of one to eight rows, strides and dilations, images shorter than a thread's outputs, several outputs of a channel, more channels than a warp has lanes.
  const geometry some[] = {{2, 5, 1, 1, {9, 8}, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, true},
                           {1, 3, 1, 2, {21, 60}, {7, 7}, {1, 1}, {3, 3, 3, 3}, {1, 1}, false},
                           {1, 4, 1, 1, {8, 9}, {3, 2}, {2, 3}, {1, 0, 2, 1}, {2, 1}, true},
                           {1, 37, 1, 1, {6, 7}, {5, 3}, {1, 1}, {2, 2, 1, 1}, {1, 1}, true},
                           {2, 40, 1, 1, {5, 5}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, false},
                           {1, 6, 1, 4, {3, 11}, {2, 4}, {1, 1}, {1, 0, 2, 2}, {1, 2}, true},
                           {1, 33, 2, 1, {10, 4}, {8, 1}, {1, 2}, {4, 3, 0, 0}, {1, 1}, true},
                           {1, 9, 1, 1, {13, 6}, {3, 3}, {3, 1}, {2, 2, 2, 2}, {3, 2}, false},
                           {2, 3, 1, 1, {1, 5}, {1, 3}, {1, 1}, {0, 0, 1, 1}, {1, 1}, true}};
  std::uint64_t seed = 20;
  for (const dtype type : {dtype::bf16, dtype::f32}) {
    for (const sample_class c : reference::element_classes) {
      for (int i = 0; i < 2; ++i) {
        const geometry& g = some[++seed % std::size(some)];
        check<ops::conv2d>(g, type, c, tier::proved, {}, false, seed);
        check<ops::conv2d_grad_input>(g, type, c, seed % 3 == 0 ? tier::double_double : tier::proved, {}, false, seed);
      }
    }
  }
  for (const geometry& g : some) {
    for (const std::uint64_t with_channels_last : {4, 6, 7}) {
      check<ops::conv2d>(g, dtype::f32, sample_class::ties, tier::proved, {}, false, with_channels_last);
      check<ops::conv2d_grad_input>(g, dtype::f32, sample_class::normal_range, tier::proved, {}, false,
                                    with_channels_last);
    }
  }
  const geometry deep{1, 5, 1, 1, {4, 5, 4}, {3, 3, 2}, {1, 1, 1}, {1, 1, 1, 0, 1, 1}, {1, 1, 2}, true};
  for (const std::uint64_t seed_of_volume : {4, 7}) {
    check<ops::conv3d>(deep, dtype::f32, sample_class::ties, tier::proved, {}, false, seed_of_volume);
    check<ops::conv3d_grad_input>(deep, dtype::f32, sample_class::normal_range, tier::proved, {}, false,
                                  seed_of_volume);
  }
}

TEST_CASE("convolutions on CUDA, emulated: tiles of every shape, whole and in parts") {
  const geometry wide{1, 1, 15, 4, {6, 7}, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, true};
  for (const dtype type : {dtype::f16, dtype::bf16, dtype::f32}) {
    for (int tile = 0; tile < 4; ++tile) {
      for (const bool split : {false, true}) {
        if (split && tile % 2 == (type == dtype::f16 ? 0 : 1)) continue;
        for (const std::uint64_t seed : {7, 8}) {
          check<ops::conv2d>(wide, type, seed == 7 ? sample_class::ties : sample_class::normal_range, tier::proved,
                             {.tile = tile, .split = split}, false, seed);
        }
      }
    }
  }
}

TEST_CASE("convolutions on CUDA, emulated: lists in parts, whole blocks, chains") {
  const geometry many{1,      1,      470,          1,      {3, 3},
                      {3, 3}, {1, 1}, {0, 0, 0, 0}, {1, 1}, true};  // two parts of a listed output
  const geometry more{1, 1, 920, 1, {3, 3}, {3, 3}, {1, 1}, {0, 0, 0, 0}, {1, 1}, false};  // a block for an output
  for (const dtype type : {dtype::bf16, dtype::f32, dtype::f64}) {
    check<ops::conv2d>(many, type, sample_class::near_ties, tier::double_double, {}, false, 4);
    check<ops::conv2d>(more, type, sample_class::near_ties, tier::exact, {}, false, 6);
    check<ops::conv2d>(more, type, sample_class::normal_range, tier::proved, {}, false, 5);
  }
  const geometry g{2, 2, 3, 2, {5, 6}, {3, 2}, {2, 1}, {1, 0, 1, 1}, {1, 2}, true};
  for (const sample_class c : {sample_class::normal_range, sample_class::zeros, sample_class::single_nonfinite})
    for_each_convolution([&]<class Op>() { check<Op>(g, dtype::f32, c, tier::proved, {}, true, 9); });
}

// Depths with and without padding, strides and dilation, one deeper than the image, of one tap.
TEST_CASE("convolutions of volumes on CUDA, emulated") {
  const geometry some[] = {{2, 2, 3, 2, {4, 5, 4}, {3, 3, 2}, {1, 1, 1}, {1, 1, 1, 0, 1, 1}, {1, 1, 2}, true},
                           {1, 1, 2, 5, {7, 5, 4}, {3, 3, 3}, {2, 2, 1}, {2, 0, 1, 1, 0, 2}, {2, 1, 1}, false},
                           {2, 1, 3, 4, {2, 3, 4}, {5, 2, 1}, {1, 1, 1}, {2, 2, 0, 0, 0, 0}, {1, 1, 1}, true},
                           {2, 1, 8, 4, {3, 2, 4}, {1, 1, 1}, {2, 1, 1}, {1, 0, 0, 0, 0, 0}, {1, 1, 1}, true}};
  std::uint64_t seed = 0;
  for (const dtype type : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64}) {
    for (const tier first : {tier::proved, tier::double_double, tier::exact}) {
      for (const sample_class c : {sample_class::ties, sample_class::normal_range, sample_class::single_nonfinite}) {
        const geometry& g = some[seed % std::size(some)];
        seed += 3;
        for_each_convolution_of_volumes([&]<class Op>() { check<Op>(g, type, c, first, {}, false, seed); });
      }
    }
  }
  for (const geometry& g : some)
    for_each_convolution_of_volumes(
        [&]<class Op>() { check<Op>(g, dtype::f32, sample_class::normal_range, tier::proved, {}, true, ++seed); });
  for (int tile = 0; tile < 4; ++tile) {  // several panels of terms, whole and, where they are many, in parts
    const geometry wide{1, 1, 9, 4, {4, 4, 5}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1, 1, 1, 1}, {1, 1, 1}, true};
    for_each_convolution_of_volumes([&]<class Op>() {
      check<Op>(wide, dtype::f32, sample_class::ties, tier::proved, {.tile = tile}, false, ++seed);
    });
    check<ops::conv3d>(wide, dtype::f32, sample_class::near_ties, tier::proved, {.tile = tile, .split = true}, false,
                       ++seed);
  }
}
