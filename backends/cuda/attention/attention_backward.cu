// Gradients of attention (librepdl/ops/attention/attention_backward.hpp):
//   gradient_tiles     what it can (gradient_tiles.cu); a bit for each result that is left undecided
//   gradient_second    most of what these leave (gradient_second.cu)
//   gradient_settle    a block a row that has such bits, or any row where there are no tiles: double-doubles, the threads sharing the columns, a warp a
//                      result; then exactly, a thread a result
#include "backends/cuda/attention/attention_backward.cuh"
#include "librepdl/ops/formats.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = 128;
constexpr int warps = threads / 32;

// A row, and where its results go: of grad_q or grad_k, and of grad_v.
template <class T>
struct row_at {
  num::gradient_row<T> row;
  T *first, *second;
  std::int64_t first_step, second_step;

  __device__ row_at(const gradient_geometry<T>& g, std::int64_t n) {
    const std::int64_t of_queries = g.query_rows();
    row.is_key = n >= of_queries;
    const std::int64_t i = row.is_key ? n - of_queries : n, length = row.is_key ? g.of.keys : g.of.queries,
                       heads = row.is_key ? g.key_heads : g.heads;
    row.at = i % length;
    row.head = i / length % heads;
    std::int64_t at[10];
    g.batch.locate(i / length / heads, at);
    // One by one: a copy of all is a loop that indexes the parameters (docs/nvcc-parameter-loop.md).
    num::attention_operands<T>& of = row.of;
    of.q = g.of.q + at[0];
    of.k = g.of.k + at[1];
    of.v = g.of.v + at[2];
    of.g = g.of.g + at[3];
    of.y = g.of.y + at[4];
    of.is_added = g.of.is_added;
    const std::int64_t mask = at[5] * (of.is_added ? static_cast<int>(sizeof(T)) : 1);
    of.mask = g.of.mask == nullptr ? nullptr : static_cast<const char*>(g.of.mask) + mask;
    of.lse = g.of.lse + at[6];
    of.slopes = g.of.slopes;
    of.q_at = g.of.q_at;
    of.k_at = g.of.k_at;
    of.v_at = g.of.v_at;
    of.g_at = g.of.g_at;
    of.y_at = g.of.y_at;
    of.mask_at = g.of.mask_at;
    of.lse_at = g.of.lse_at;
    of.group = g.of.group;
    of.queries = g.of.queries;
    of.keys = g.of.keys;
    of.size = g.of.size;
    of.value_size = g.of.value_size;
    of.slope_step = g.of.slope_step;
    of.offset = g.of.offset;
    of.before = g.of.before;
    of.after = g.of.after;
    of.scale = g.of.scale;
    of.draws = g.of.draws;
    of.first_pair = i / length / heads * g.heads * g.of.queries * g.of.keys;
    row.find_columns();
    if (row.is_key) {
      first = g.grad_k + at[8] + row.head * g.grad_k_at.head + row.at * g.grad_k_at.row;
      second = g.grad_v + at[9] + row.head * g.grad_v_at.head + row.at * g.grad_v_at.row;
      first_step = g.grad_k_at.element;
      second_step = g.grad_v_at.element;
    } else {
      first = second = g.grad_q + at[7] + row.head * g.grad_q_at.head + row.at * g.grad_q_at.row;
      first_step = second_step = g.grad_q_at.element;
    }
  }
  __device__ T& result(std::int64_t e) const {
    return row.has_factor(e) ? first[e * first_step] : second[(e - row.of.size) * second_step];
  }
};

template <class T>
struct late_gradient {
  T value;
  tier by;
  bool decided;
};
template <class T>
using exact_of_warp = num::row_exact<T, any_lane>;

// A result that double-doubles left, exactly; called by all lanes.
template <class T>
__device__ __noinline__ void decide_exactly(const exact_of_warp<T>& exact, std::int64_t e, int last_tier_bits,
                                            late_gradient<T>& r) {
  const bool asks = !r.decided;
  const num::decided_value<T> c = exact.decide(e, last_tier_bits, asks);
  r.value = asks ? c.value : r.value;
  r.decided = asks ? c.decided : r.decided;
  r.by = asks ? tier::exact : r.by;
}

// Result e of a row, by a warp.
template <class T>
__device__ late_gradient<T> wide_gradient(const num::gradient_row<T>& row, const num::late_column* columns,
                                          std::int64_t e, bool by_double_double) {
  const int lane = lane_of_thread();
  const std::int64_t count = row.columns();
  num::special_terms odd;
  num::wide_sum<double> sum;
  for (std::int64_t i = 0; i < count; i += 32) {
    const bool is_there = i + lane < count;
    const std::int64_t n = is_there ? i + lane : 0;
    num::late_column c = columns[n];
    if (!is_there) c.kind = num::column_kind::absent;
    odd.add(num::odd_part(row, c, n, e, any_lane{}));
    if (!c.has_weight()) continue;
    const num::wide<double> part = num::wide_part(row, c, n, e);
    sum.add(part.value, part.error);
  }
  odd.nan = __any_sync(full_warp, odd.nan);
  odd.positive = __any_sync(full_warp, odd.positive);
  odd.negative = __any_sync(full_warp, odd.negative);
  if (odd.any()) return {num::odd_result(row, odd, e), tier::proved, true};
  num::wide<double> r = over_warp(sum).total(count + 32);
  num::to_result(r, row, e);
  const num::decided_value<T> c = num::round_number<T>(r);
  return {c.value, tier::double_double, by_double_double && c.decided};
}

template <class T>
__global__ void __launch_bounds__(threads)
    gradient_settle(const __grid_constant__ gradient_geometry<T> g, bool has_bits, const gradient_bits bits,
                    bool by_double_double, int last_tier_bits, num::late_column* all_columns, std::int64_t most_columns,
                    counter* counters) {
  __shared__ late_gradient<T> results[threads];
  const int lane = lane_of_thread(), warp = static_cast<int>(threadIdx.x / 32);
  num::late_column* const columns = all_columns + static_cast<std::int64_t>(blockIdx.x) * most_columns;
  std::int64_t by[4] = {}, undecided = 0;
  open_rows_of_block<threads> open(g.rows(), has_bits);
  const auto has_any = [&](std::int64_t n) {
    bool any = !has_bits;
    for (std::int64_t i = 0; has_bits && i < bits.all; ++i) any = any || bits.words[n * bits.all + i] != 0;
    return any;
  };
  for (std::int64_t n = open.next(has_any); n >= 0; n = open.next(has_any)) {
    const row_at<T> at(g, n);
    const auto is_open = [&](std::int64_t e) {
      return e < at.row.results() && (!has_bits || bits.is_open(n, e, at.row.of.size));
    };
    const std::int64_t count = at.row.columns();
    for (std::int64_t i = threadIdx.x; i < count; i += threads) columns[i] = num::column_of(at.row.pair(i));
    exact_of_warp<T> exact{at.row, columns};
    __syncthreads();
    for (std::int64_t first = 0; first < at.row.results(); first += threads) {
      for (int c = warp; c < threads; c += warps) {
        late_gradient<T> r{T{}, tier::proved, true};
        if (is_open(first + c)) r = wide_gradient(at.row, columns, first + c, by_double_double);
        if (lane == 0) results[c] = r;
      }
      __syncthreads();
      late_gradient<T> r = results[threadIdx.x];
      const std::int64_t e = first + threadIdx.x;
      const bool is_mine = is_open(e);
      if (__syncthreads_or(r.decided ? 0 : 1)) {
        if (!exact.has_groups) {
          for (std::int64_t i = 0; i < count; i += threads) exact.find_group(i + threadIdx.x);
          __syncthreads();
          exact.find_one();
        }
        decide_exactly(exact, is_mine ? e : 0, last_tier_bits, r);
        __syncwarp();
      }
      if (is_mine) {
        at.result(e) = r.value;
        by[0] += r.decided && r.by == tier::proved ? 1 : 0;
        by[2] += r.decided && r.by == tier::double_double ? 1 : 0;
        by[3] += r.decided && r.by == tier::exact ? 1 : 0;
        undecided += r.decided ? 0 : 1;
      }
      __syncthreads();
    }
  }
  count_elements(counters, tier::proved, by[0]);
  count_elements(counters, tier::double_double, by[2]);
  count_elements(counters, tier::exact, by[3]);
  if (undecided != 0) atomicAdd(counters + undecided_counter, static_cast<counter>(undecided));
}

template <class T>
class gradient_work final : public planned {
 public:
  gradient_work(const plan::attention_plan& p, const job& given) : planned(given) {
    g_.of = num::operands_of<T>(p);
    const num::attention_operands<T>& of = g_.of;
    g_.grad_q = static_cast<T*>(p.grad_q);
    g_.grad_k = static_cast<T*>(p.grad_k);
    g_.grad_v = static_cast<T*>(p.grad_v);
    g_.batches = p.batches;
    g_.heads = p.heads;
    g_.key_heads = p.key_heads;
    g_.batch.set_shape(p.batch_rank, p.batch_shape);
    const plan::attention_place* const from[] = {&p.q_at,    &p.k_at,         &p.v_at,      &p.g_at,      &p.y_at,
                                                 &p.mask_at, &p.given_lse_at, &p.grad_q_at, &p.grad_k_at, &p.grad_v_at};
    for (int i = 0; i < 10; ++i) g_.batch.set_stride(i, from[i]->batch);
    const auto steps = [](const plan::attention_place& a) { return num::attention_steps{a.head, a.row, a.element}; };
    g_.grad_q_at = steps(p.grad_q_at);
    g_.grad_k_at = steps(p.grad_k_at);
    g_.grad_v_at = steps(p.grad_v_at);
    // Columns of a block are in memory: as many blocks as 256 MiB hold.
    constexpr std::int64_t most = std::int64_t{256} << 20;
    columns_count_ = std::max<std::int64_t>({p.keys, of.group * p.queries, 1});
    blocks_ = std::clamp<std::int64_t>(most / (columns_count_ * static_cast<std::int64_t>(sizeof(num::late_column))), 1,
                                       grid_for(j.device, g_.rows(), 4));
    by_tiles_ = is_for_gradient_tiles(p, j.device);
    bits_.first = ceil_div(p.size, 32);
    bits_.all = bits_.first + ceil_div(p.value_size, 32);
    space.take(columns_, blocks_, columns_count_);
    space.take(sums_, by_tiles_ ? sums_of_gradient_tiles(p) : 0);
    space.take(packed_, by_tiles_ ? packed_of_gradient_tiles(p) : 0);
    space.take(statistics_, by_tiles_ ? statistics_of_gradient_tiles(p) : 0);
    open_.heads = p.batches * p.key_heads;
    open_.most_queries = of.group * p.queries;
    open_.most_keys = p.keys;
    space.take(open_.rows, by_tiles_ ? g_.rows() : 0);
    space.take(open_.counts, by_tiles_ ? 2 : 0, open_.heads);
    space.take(bits_.words, by_tiles_ ? g_.rows() : 0, bits_.all);
  }

 private:
  void enqueue() override {
    if constexpr (!num::is_binary64<T>) {
      if (by_tiles_)
        enqueue_gradient_tiles(g_, j.first_tier <= tier::binary64, sums_, packed_, statistics_, bits_, open_, j);
      if (by_tiles_ && j.first_tier <= tier::double_double) {
        const double* const sums = sums_;
        const float* const statistics = statistics_;
        enqueue_gradient_second(g_, sums, statistics, bits_, open_, j);
      }
    }
    launch_kernel<gradient_settle<T>>(j, blocks_, threads, 0, g_, by_tiles_, bits_, j.first_tier <= tier::double_double,
                                      j.last_tier_bits, columns_, columns_count_, j.counters);
  }

  gradient_geometry<T> g_{};
  std::int64_t blocks_, columns_count_;
  bool by_tiles_;
  num::late_column* columns_ = nullptr;
  double *sums_ = nullptr, *packed_ = nullptr;
  float* statistics_ = nullptr;
  gradient_bits bits_{};
  open_rows open_{};
};

}  // namespace

void prepare_gradients(const plan::attention_plan& p, const job& j, dispatch::task& t) {
  ops::for_each_format<ops::FLOATS>([&]<class T>() {
    if (dtype_of<T> == p.type) t.emplace<gradient_work<T>>(p, j);
  });
}

}  // namespace repdl::cuda
