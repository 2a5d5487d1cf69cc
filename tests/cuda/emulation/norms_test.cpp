// The CUDA kernels of norms whose rows are cut, emulated: the CPU's results, bit for bit, from every tier: channels first and last, few channels and
// many, rows in one chunk and in several, weights of the input's format and of binary32.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "backends/cuda/core/drivers.hpp"
#include "librepdl/librepdl.hpp"
#include "librepdl/plan/planner.hpp"
#include "reference/evaluate.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/placed_calls.hpp"

namespace {

using namespace repdl;
using reference::array;
using reference::sample_class;
using reference::shape_list;

constexpr std::size_t guard = 256;  // bytes around what kernels may write

template <class Op>
typename Op::attrs options_of(const attributes& attrs) {
  typename Op::attrs a{};
  for (const auto& [name, value] : attrs) {
    if constexpr (requires { a.groups; }) {
      if (name == "groups") a.groups = std::get<std::int64_t>(value);
    }
  }
  return a;
}

// Copies of (n, c, s), the channels' axis last in memory: from it, or to it.
void set_channels_last(array& x, bool last) {
  const array from = x;
  const std::size_t size = size_of(x.type);
  const auto c = static_cast<std::size_t>(x.shape[1]), s = static_cast<std::size_t>(x.shape[2]);
  for (std::size_t i = 0; i < x.bytes.size() / size; ++i) {
    const std::size_t n = i / (c * s), channel = i / s % c, at = i % s;
    const std::size_t there = (n * s + at) * c + channel;
    std::memcpy(&x.bytes[(last ? there : i) * size], &from.bytes[(last ? i : there) * size], size);
  }
}
sizes strides_of(const shape_list& shape, bool channels_last) {
  if (channels_last && shape.size() == 3) return {shape[1] * shape[2], 1, shape[1]};
  shape_list strides(shape);
  std::int64_t step = 1;
  for (std::size_t d = shape.size(); d-- > 0; step *= shape[d]) strides[d] = step;
  return sizes(std::span(strides));
}

template <class Op>
std::vector<array> emulate(std::vector<array> in, const attributes& attrs, tier first, int capability,
                           bool channels_last) {
  std::vector<const_tensor_view> views;
  std::vector<std::vector<std::byte>> outputs;
  for (array& x : in) {
    if (channels_last && x.shape.size() == 3) set_channels_last(x, true);
    views.push_back(x.absent() ? const_tensor_view{}
                               : const_tensor_view(x.bytes.data(), x.type, sizes(std::span(x.shape)),
                                                   strides_of(x.shape, channels_last)));
  }
  const auto options = options_of<Op>(attrs);
  const plan::specs specs = plan::planner<Op>::infer(views, options);
  std::vector<std::byte*> places;
  std::vector<tensor_view> out;
  for (const tensor_spec& s : specs) {
    outputs.emplace_back(static_cast<std::size_t>(element_count(s.shape)) * size_of(s.type) + 3 * guard,
                         std::byte{0x5a});
    std::byte* const begin = outputs.back().data();
    places.push_back(begin + 2 * guard - reinterpret_cast<std::uintptr_t>(begin) % guard);
    const shape_list shape(s.shape.begin(), s.shape.end());
    out.emplace_back(places.back(), s.type, s.shape, strides_of(shape, channels_last));
  }
  cuda::counter counted[cuda::counter_count] = {};
  cuda::job j{{Op::id, in[0].type, in[0].type}, nullptr, {0, 4, capability, {}}, counted, first, 512, false};
  dispatch::stored_task task;
  cuda::prepare(plan::planner<Op>::make(views, out, options), j, task);
  std::vector<std::byte> workspace(task->bytes().value() + 2 * guard, std::byte{0xee});
  std::byte* const begin = workspace.data() + (guard - reinterpret_cast<std::uintptr_t>(workspace.data()) % guard);
  task->run(begin);
  CHECK(counted[cuda::undecided_counter] == 0);
  std::vector<array> results;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    array x(specs[i].type, shape_list(specs[i].shape.begin(), specs[i].shape.end()));
    std::memcpy(x.bytes.data(), places[i], x.bytes.size());
    if (channels_last && x.shape.size() == 3) set_channels_last(x, false);
    const std::byte* const all = outputs[i].data();
    const auto is_whole = [](const std::byte* from, const std::byte* to) {
      return std::all_of(from, to, [](std::byte b) { return b == std::byte{0x5a}; });
    };
    CHECK(is_whole(all, places[i]));
    CHECK(is_whole(places[i] + x.bytes.size(), all + outputs[i].size()));
    results.push_back(x);
  }
  return results;
}

// An operation on x of this shape, whose channels are axis 1; of formats x's, and the weights'.
template <class Op>
void check(const shape_list& shape, const attributes& attrs, sample_class kind, const std::vector<dtype>& formats,
           tier first, std::uint64_t seed, bool channels_last = false) {
  CAPTURE(std::string(Op::name));
  CAPTURE(shape[0]);
  CAPTURE(shape[1]);
  CAPTURE(std::string(name_of(kind)));
  CAPTURE(std::string(name_of(formats[0])));
  CAPTURE(static_cast<int>(first));
  const bool is_layer = std::string(Op::name).starts_with("layer");
  const shape_list channels{shape[1]};
  const shape_list rows = !attrs.empty() ? shape_list{shape[0], std::get<std::int64_t>(attrs[0].value)}
                          : is_layer     ? shape_list{shape[0]}
                                         : channels;
  std::vector<shape_list> shapes;
  std::vector<dtype> types;
  for (const ops::operand& o : Op::in) {
    const bool is_row = o.name == "mean" || o.name == "rstd";
    const bool is_factor = o.name == "weight" || o.name == "bias" || o.name.starts_with("running_");
    shapes.push_back(is_row ? rows : is_factor ? channels : shape);
    types.push_back(is_row ? dtype::f32 : is_factor ? formats[1] : formats[0]);
  }
  const std::vector<array> in = reference::in_formats(
      reference::fill_inputs(std::string(Op::name), kind, shapes, attrs, seed, 3, formats[0]), types, seed);
  context ctx({.threads = 1});
  const std::vector<array> y = run(ctx, tests::call_case{std::string(Op::name), in, attrs});
  CHECK(emulate<Op>(in, attrs, first, 80, channels_last) == y);
}

const std::vector<dtype> all_f32{dtype::f32, dtype::f32};

template <class F>
void for_batch_norms(F&& f) {
  f.template operator()<ops::batch_norm>();
  f.template operator()<ops::batch_norm_running>();
  f.template operator()<ops::batch_norm_backward>();
  f.template operator()<ops::batch_norm_weight_backward>();
}

}  // namespace

TEST_CASE("norms on CUDA, emulated: channels last, few and many") {
  std::uint64_t seed = 0;
  for (const std::int64_t channels : {4, 5, 8, 20, 64, 68, 133}) {
    for (const std::int64_t length : {256, 1301}) {
      for_batch_norms([&]<class Op>() {
        check<Op>({length, channels}, {}, sample_class::normal_range, all_f32, tier::binary64, ++seed);
      });
      check<ops::layer_norm_weight_backward>({length, channels}, {}, sample_class::normal_range, all_f32,
                                             tier::binary64, ++seed);
    }
  }
  // More chunks than a warp joins.
  check<ops::batch_norm>({270000, 4}, {}, sample_class::normal_range, all_f32, tier::binary64, ++seed);
}

TEST_CASE("norms on CUDA, emulated: channels last, of 16 bits, and weights of binary32") {
  std::uint64_t seed = 100;
  for (const dtype t : {dtype::f16, dtype::bf16}) {
    for (const dtype of_weights : {t, dtype::f32}) {
      for (const std::int64_t channels : {7, 12}) {
        for_batch_norms([&]<class Op>() {
          check<Op>({270, channels}, {}, sample_class::normal_range, {t, of_weights}, tier::binary64, ++seed);
        });
      }
    }
  }
}

TEST_CASE("norms on CUDA, emulated: channels first, in chunks") {
  std::uint64_t seed = 200;
  for (const std::int64_t size : {3000, 3001, 8300}) {
    for_batch_norms([&]<class Op>() {
      check<Op>({2, 3, size}, {}, sample_class::normal_range, all_f32, tier::binary64, ++seed);
    });
  }
  check<ops::group_norm_weight_backward>({3, 4, 2052}, {{"groups", std::int64_t{2}}}, sample_class::normal_range,
                                         all_f32, tier::binary64, ++seed);
}

TEST_CASE("norms on CUDA, emulated: channels last, several axes") {
  std::uint64_t seed = 250;
  for (const std::int64_t groups : {1, 2, 4, 8, 16}) {
    const attributes attrs{{"groups", groups}};
    for (const dtype t : {dtype::f32, dtype::bf16}) {
      check<ops::group_norm_weight_backward>({3, 16, 110}, attrs, sample_class::normal_range, {t, t}, tier::binary64,
                                             ++seed, true);
      check<ops::group_norm_weight_backward>({2, 16, 257}, attrs, sample_class::normal_range, {t, t}, tier::exact,
                                             ++seed, true);
    }
    check<ops::group_norm>({2, 16, 260 * groups}, attrs, sample_class::normal_range, all_f32, tier::binary64, ++seed,
                           true);
    check<ops::group_norm_backward>({2, 16, 260 * groups}, attrs, sample_class::normal_range, all_f32, tier::binary64,
                                    ++seed, true);
  }
  check<ops::group_norm_weight_backward>({3, 18, 110}, {{"groups", std::int64_t{6}}}, sample_class::normal_range,
                                         all_f32, tier::binary64, ++seed, true);
  for_batch_norms([&]<class Op>() {
    check<Op>({3, 12, 100}, {}, sample_class::normal_range, all_f32, tier::binary64, ++seed, true);
  });
}

TEST_CASE("norms on CUDA, emulated: a row a thread") {
  std::uint64_t seed = 300;
  for (const dtype t : {dtype::f32, dtype::f16}) {
    for_batch_norms([&]<class Op>() {
      check<Op>({37, 140}, {}, sample_class::normal_range, {t, dtype::f32}, tier::binary64, ++seed);
    });
  }
}

TEST_CASE("norms on CUDA, emulated: late tiers, and classes") {
  std::uint64_t seed = 400;
  for_batch_norms([&]<class Op>() {
    for (const tier first : {tier::double_double, tier::exact})
      check<Op>({260, 6}, {}, sample_class::normal_range, all_f32, first, ++seed);
    for (const tier first : {tier::double_double, tier::exact}) {
      check<Op>({4100, 4}, {}, sample_class::normal_range, all_f32, first, ++seed);
      check<Op>({4100, 4}, {}, sample_class::normal_range, {dtype::bf16, dtype::bf16}, first, ++seed);
    }
    for (const sample_class kind : tests::row_classes) {
      check<Op>({261, 8}, {}, kind, all_f32, tier::binary64, ++seed);
      check<Op>({2, 3, 2052}, {}, kind, all_f32, tier::binary64, ++seed);
    }
  });
}
