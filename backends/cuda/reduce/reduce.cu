// Reductions: sum, mean, dot, max, min, argmax, argmin, prelu_weight_backward, sum_squares, vector_norm; var, stddev and var_mean of
// binary64.
//
// An output's terms are cut into chunks (reduce_cut.hpp). With one chunk the item's owner finishes the output; otherwise
// partial results go to the workspace and a second kernel joins them. Sums are decided in binary64 first; undecided
// outputs are marked in a bitmap that a double-double launch works off, and after it an exact one; there the last chunk
// of an output to be done joins them. The launches do not depend on the data: no host round trip. Few sums that are not
// long are one launch, of a block for each, or two, of which the second joins chunks and repairs; of few long ones the second launch, of
// more blocks, joins them and is the next tier.
#include <algorithm>

#include "backends/cuda/reduce/reduce_policies.cuh"

namespace repdl::cuda {
namespace {

std::size_t partial_size(const plan::reduce_plan& p) {
  if (p.is_spread()) return std::max(sizeof(exact_spread), sizeof(exact_sum<1, double>));
  if (p.type == dtype::f64 && p.is_sum()) {
    return p.inputs == 2 ? std::max(sizeof(scaled<wide_sum<2>>), sizeof(scaled<exact_sum<2, double>>))
                         : std::max(sizeof(wide_sum<1>), sizeof(exact_sum<1, double>));
  }
  using T = float;  // partial sums are as large in the narrower formats; what is ordered, at most so
  if (p.inputs == 2) return std::max({sizeof(fast_sum<2, T>), sizeof(dd_sum<2, T>), sizeof(exact_sum<2, T>)});
  if (p.is_tested()) return std::max({sizeof(fast_sum<1, T>), sizeof(dd_sum<1, T>), sizeof(exact_sum<1, T>)});
  return std::max(
      {sizeof(extremum<double>), sizeof(arg_extremum<double>), sizeof(integer_sum<std::int64_t, std::int64_t>)});
}

class reduce_work final : public planned {
 public:
  reduce_work(const plan::reduce_plan& p, const job& given) : planned(given), type_(p.type) {
    r_.op = p.op;
    r_.p.length = p.length;
    r_.p.is_mean = p.op == ops::op_id::mean;
    r_.p.is_root = p.root;
    r_.p.correction = p.correction;
    r_.p.alpha = p.alpha;
    r_.p.beta = p.beta;
    r_.is_scaled = p.is_scaled();
    r_.mean = p.mean;
    r_.mean_stride = p.mean_stride;
    r_.magnitudes = p.magnitudes;
    r_.p.flip = p.op == ops::op_id::min || p.op == ops::op_id::argmin ? num::order_min : num::order_max;
    const reduce_cut cut = cut_reduction(p, j.device);
    r_.first = cut.first;
    r_.repair = cut.repair;
    r_.is_few = cut.is_few;
    r_.is_long = cut.is_long;
    if (p.is_tested() && !r_.is_few) {
      r_.mark_words = ceil_div(p.outputs, 32) + (r_.repair.chunks > 1 ? p.outputs : 0);
      space.take(r_.marks, r_.mark_words);
    }
    if (cut.is_long) space.take(r_.next_partials, p.outputs, r_.repair.chunks, partial_size(p));
    if (cut.chunks() > 1) space.take(r_.partials, p.outputs, cut.chunks(), partial_size(p));
  }

 private:
  void enqueue() override {
    ops::for_each_format<ops::FLOATS | ops::INTEGERS>([&]<class T>() {
      if (dtype_of<T> == type_) launch_reduction<num::element_of<T>>(r_, j);
    });
    if (r_.mean == nullptr) return;
    reduction mean = r_;  // of the first input alone, cut likewise
    mean.op = ops::op_id::mean;
    mean.p.is_mean = true;
    for (reduce_geometry* g : {&mean.first, &mean.repair}) {
      g->out = r_.mean;
      g->kept.set_stride(2, r_.mean_stride);
    }
    launch_reduction<double>(mean, j);
  }

  const dtype type_;
  reduction r_{};
};

}  // namespace

void prepare(const plan::reduce_plan& p, const job& j, dispatch::task& t) {
  if (p.other_format) return prepare_other(p, j, t);
  t.emplace<reduce_work>(p, j);
}

}  // namespace repdl::cuda
