// conv2d and its gradients of normally distributed values, batch 8, one thread, against oneDNN in binary32 (direct
// algorithm, the layouts that it prefers, reordering not counted). `undecided` is the fraction of the outputs that
// binary64 could not decide.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#if defined(REPDL_WITH_ONEDNN)
#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>
#endif

#include "bench/by_turns.hpp"
#include "bench/inputs.hpp"
#include "librepdl/librepdl.hpp"

namespace {

constexpr std::int64_t samples = 8;

struct shape {
  std::int64_t channels, size, kernel, stride, outputs, groups;  // square images and kernels
  std::int64_t padding() const { return kernel / 2; }
  std::int64_t out() const { return (size + 2 * padding() - kernel) / stride + 1; }
  repdl::sizes image() const { return {samples, channels, size, size}; }
  repdl::sizes weights() const { return {outputs, channels / groups, kernel, kernel}; }
  repdl::sizes result() const { return {samples, outputs, out(), out()}; }
  double work() const {
    return 2.0 * static_cast<double>(repdl::element_count(result()) * (channels / groups) * kernel * kernel);
  }
  std::string name() const {
    return std::to_string(channels) + "x" + std::to_string(size) + "x" + std::to_string(size) + ",k" +
           std::to_string(kernel) + ",s" + std::to_string(stride) + ",o" + std::to_string(outputs) +
           (groups > 1 ? ",g" + std::to_string(groups) : "");
  }
};

enum class direction { forward, grad_input, grad_weight };
constexpr const char* direction_names[] = {"forward", "grad_input", "grad_weight"};

#if defined(REPDL_WITH_ONEDNN)
// One call of oneDNN.
class onednn {
 public:
  onednn(const shape& s, direction way) {
    omp_set_num_threads(1);
    using memory = dnnl::memory;
    const auto any = [](memory::dims d) { return memory::desc(d, memory::data_type::f32, memory::format_tag::any); };
    const std::int64_t in = s.channels / s.groups, out = s.outputs / s.groups, p = s.padding();
    const auto image = any({samples, s.channels, s.size, s.size});
    const auto weights =
        s.groups > 1 ? any({s.groups, out, in, s.kernel, s.kernel}) : any({out, in, s.kernel, s.kernel});
    const auto result = any({samples, s.outputs, s.out(), s.out()});
    const memory::dims stride = {s.stride, s.stride}, padding = {p, p};
    const dnnl::algorithm direct = dnnl::algorithm::convolution_direct;
    const dnnl::convolution_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, direct, image, weights, result, stride, padding, padding}, engine_);
    const auto use = [&](int id, const memory::desc& d) {
      const memory m(d, engine_);
      const std::vector<float> v = bench::normal(static_cast<std::int64_t>(d.get_size() / sizeof(float)), 7);
      std::copy(v.begin(), v.end(), static_cast<float*>(m.get_data_handle()));
      operands_.insert({id, m});
    };
    switch (way) {
      case direction::forward:
        call_ = dnnl::convolution_forward(forward);
        use(DNNL_ARG_SRC, forward.src_desc());
        use(DNNL_ARG_WEIGHTS, forward.weights_desc());
        use(DNNL_ARG_DST, forward.dst_desc());
        break;
      case direction::grad_input: {
        const dnnl::convolution_backward_data::primitive_desc d(
            {direct, image, weights, result, stride, padding, padding}, engine_, forward);
        call_ = dnnl::convolution_backward_data(d);
        use(DNNL_ARG_DIFF_SRC, d.diff_src_desc());
        use(DNNL_ARG_WEIGHTS, d.weights_desc());
        use(DNNL_ARG_DIFF_DST, d.diff_dst_desc());
        break;
      }
      case direction::grad_weight: {
        const dnnl::convolution_backward_weights::primitive_desc d(
            {direct, image, weights, result, stride, padding, padding}, engine_, forward);
        call_ = dnnl::convolution_backward_weights(d);
        use(DNNL_ARG_SRC, d.src_desc());
        use(DNNL_ARG_DIFF_WEIGHTS, d.diff_weights_desc());
        use(DNNL_ARG_DIFF_DST, d.diff_dst_desc());
        break;
      }
    }
  }
  void operator()() {
    call_.execute(stream_, operands_);
    stream_.wait();
  }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::primitive call_;
  std::unordered_map<int, dnnl::memory> operands_;
};
#endif

void convolution(benchmark::State& state, const shape& s, direction way, const std::string& isa,
                 repdl::accumulate how) {
  repdl::context ctx(repdl::context_options{.threads = 1, .isa = isa});
  const auto make = [](const repdl::sizes& shape, std::uint64_t seed) {
    return bench::normal(repdl::element_count(shape), seed);
  };
  std::vector<float> x = make(s.image(), 1), w = make(s.weights(), 2), y = make(s.result(), 3);
  const auto view = [](std::vector<float>& v, const repdl::sizes& shape) {
    return repdl::tensor_view(v.data(), shape);
  };
  const repdl::tensor_view image = view(x, s.image()), weights = view(w, s.weights()), result = view(y, s.result());
  std::vector<float> out(way == direction::forward ? y.size() : way == direction::grad_input ? x.size() : w.size());
  repdl::conv2d_options options;
  options.stride = {s.stride, s.stride};
  options.padding = {s.padding(), s.padding(), s.padding(), s.padding()};
  options.groups = s.groups;
  options.accumulate = how;
  const auto ours = [&] {
    switch (way) {
      case direction::forward:
        return repdl::conv2d(ctx, image, weights, view(out, s.result()), options);
      case direction::grad_input:
        return repdl::conv2d_backward_x(ctx, result, weights, view(out, s.image()), options);
      case direction::grad_weight:
        return repdl::conv2d_backward_w(ctx, result, image, view(out, s.weights()), options);
    }
  };
  bench::peer peer;
#if defined(REPDL_WITH_ONEDNN)
  onednn theirs(s, way);
  peer = {"onednn", [&] { theirs(); }};
#endif
  bench::by_turns(state, ctx, ours, peer);
  bench::per_operation(state, s.work());
  bench::count_undecided(state, ctx);
}

const bench::family registered("convolutions", [](const bench::family& family) {
  constexpr shape shapes[] = {{64, 56, 3, 1, 64, 1},     {256, 14, 3, 1, 256, 1}, {3, 224, 7, 2, 64, 1},
                              {256, 56, 1, 1, 64, 1},    {512, 7, 3, 1, 512, 1},  {144, 56, 3, 1, 144, 144},
                              {144, 56, 3, 2, 144, 144}, {128, 28, 3, 1, 128, 32}};
  for (const repdl::isa_info& isa : repdl::instruction_sets()) {
    if (!isa.available || isa.name == "baseline") continue;  // minutes
    for (const repdl::accumulate how : {repdl::accumulate::exact, repdl::accumulate::fma_chain}) {
      for (const shape& s : shapes) {
        for (const direction way : {direction::forward, direction::grad_input, direction::grad_weight}) {
          const std::string name = std::string("conv2d/") +
                                   (how == repdl::accumulate::exact ? "exact/" : "fma_chain/") + isa.name + "/" +
                                   direction_names[static_cast<int>(way)] + "/" + s.name();
          family.add_row(name, isa.name,
                         [=](benchmark::State& state, const std::string& i) { convolution(state, s, way, i, how); });
        }
      }
    }
  }
});

}  // namespace
