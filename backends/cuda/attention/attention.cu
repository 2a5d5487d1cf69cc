// Attention (librepdl/ops/attention/attention.hpp):
//   attention_tiles    what it can (attention_tiles.cu)
//   attention_second   most of what that leaves undecided (attention_second.cu)
//   attention_first    a warp a query: binary64, along blocks of 32 keys, a lane a key, then a lane a result; a bit for each result that is left undecided
//                      (of binary64 every one, but of queries without keys)
//   attention_settle   a block a query that has such bits: double-doubles, the threads sharing the keys, a warp a result; then exactly, a thread a result
//
// The first kernel computes what backends/cpu/attention/attention_kernels.cpp does, whose bounds hold here: sums over a block of 32 terms, which are added
// up, of weights by lane, and 5 additions of lanes.
#include "backends/cuda/attention/attention.cuh"
#include "librepdl/ops/attention/attention_exact.hpp"
#include "librepdl/ops/formats.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = 128;
constexpr int warps = threads / 32;
constexpr int most_columns = 8;  // of a lane at a time
constexpr double u = unit_roundoff;
constexpr double step = 16;  // by which a score may exceed the reference

// ------------------------------------------------------------------------------------------------------------ binary64

// A score, its error, and whether the key is present.
struct lane_score {
  double value, error;
  bool is_present;
};
// Of keys j0 + lane, by a warp, which reads 32 numbers of each at a time. `norm` is (size + 3) u |scale| N_q.
template <class T>
__device__ lane_score score_of(const num::attention_query<T>& query, std::int64_t j0, double norm,
                               num::attention_number<T> (&tile)[32][33]) {
  using number = num::attention_number<T>;
  const int lane = lane_of_thread();
  const std::int64_t j = j0 + lane;
  lane_score s{-num::infinity, 0.0, j < query.last && query.is_present(j)};
  double sum = 0, square = 0;
  for (std::int64_t d0 = 0; d0 < query.size; d0 += 32) {
    __syncwarp();
    number x[32];
#pragma unroll
    for (int r = 0; r < 32; ++r)
      x[r] = j0 + r < query.last && d0 + lane < query.size ? query.key_value(j0 + r, d0 + lane) : number{0};
#pragma unroll
    for (int r = 0; r < 32; ++r) tile[r][lane] = x[r];
    const number q = d0 + lane < query.size ? query.query_value(d0 + lane) : number{0};
    __syncwarp();
#pragma unroll 4
    for (int c = 0; c < 32; ++c) {
      const double k = static_cast<double>(tile[lane][c]);
      sum = fma(static_cast<double>(__shfl_sync(full_warp, q, c)), k, sum);
      square = fma(k, k, square);
    }
  }
  if (!s.is_present) return s;
  s.value = sum * query.scale;
  double extra = 0;
  if (query.has_slope) {
    const double along = query.slope * static_cast<double>(j - query.at);
    s.value += along;
    extra = num::magnitude_of(along);
  }
  if (query.is_added) {
    const double m = static_cast<double>(query.mask_value(j));
    s.value += m;
    extra += num::magnitude_of(m);
  }
  s.error = norm * sqrt(square) + 4 * u * extra;
  return s;
}

template <class T>
__global__ void __launch_bounds__(threads)
    attention_first(const __grid_constant__ attention_geometry g, bool what_is_left, bool by_first, std::uint32_t* bits,
                    counter* counters) {
  const int lane = lane_of_thread();
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * warps;
  __shared__ num::attention_number<T> tiles[warps][32][33];
  std::int64_t decided = 0, settled = 0;
  // What is left is looked for among 32 queries at a time.
  const int at_once = what_is_left ? 32 : 1;
  std::int64_t next = (static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / 32) * at_once;
  unsigned left = 0;
  while (left != 0 || next < g.total) {
    if (left == 0) {
      const std::int64_t looked_at = next + lane;
      const bool is_mine = lane < at_once && looked_at < g.total &&
                           (!what_is_left || (bits[looked_at * g.words + g.words - 1] & first_bit) != 0);
      left = __ballot_sync(full_warp, is_mine);
      next += stride * at_once;
      continue;
    }
    const std::int64_t n = next - stride * at_once + __ffs(static_cast<int>(left)) - 1;
    left &= left - 1;
    const query_at<T> at(g, n);
    const num::attention_query<T>& query = at.query;
    double square = 0;
    for (std::int64_t d = lane; d < query.size; d += 32) {
      const double x = static_cast<double>(query.query_value(d));
      square = fma(x, x, square);
    }
    const double norm =
        static_cast<double>(query.size + 3) * u * num::magnitude_of(query.scale) * sqrt(over_warp(square));
    // Results 256 at a time, and lse with the first ones.
    for (std::int64_t column = 0; column == 0 || column < g.value_size; column += 32 * most_columns) {
      double sums[most_columns] = {}, most[most_columns] = {};
      double top = -num::infinity, sum = 0, error = 0;
      bool has_keys = false, is_odd = false;
      std::int64_t blocks = 0;
      for (std::int64_t j = query.first; j < query.last; j += 32, ++blocks) {
        const lane_score s = score_of(query, j, norm, tiles[threadIdx.x / 32]);
        if (!__any_sync(full_warp, s.is_present)) continue;
        has_keys = true;
        // All lanes have the same one, also where scores are NaN.
        const double greatest = greatest_of_warp(s.value != s.value ? num::infinity : s.value);
        if (!num::is_finite(greatest)) {
          is_odd = true;
          continue;
        }
        if (greatest > top + step) {
          const double by = top - greatest;
          const double factor = by < num::least_gap ? 0.0 : num::fast_exp(by);
#pragma unroll
          for (int c = 0; c < most_columns; ++c) sums[c] *= factor;
          sum *= factor;
          error = error * factor + (factor == 0 ? 0.0 : (8 - by) * u * sum);
          top = greatest;
        }
        const double d = s.value - top;
        const bool is_gone = d < num::least_gap;
        const double w = is_gone ? 0.0 : num::fast_exp(d);
        sum += w;
        error += is_gone ? 0.0 : w * (s.error + (6 + num::magnitude_of(d)) * u);
        const double kept = query.is_kept(j + lane) ? w : 0.0;
        double part[most_columns] = {};
        const int count = static_cast<int>(query.last - j < 32 ? query.last - j : 32);
        for (int i = 0; i < count; ++i) {
          const double weight = __shfl_sync(full_warp, kept, i);
#pragma unroll
          for (int c = 0; c < most_columns; ++c) {
            const std::int64_t e = column + 32 * c + lane;
            if (e >= g.value_size) continue;
            const double v = static_cast<double>(query.value(j + i, e));
            part[c] = fma(weight, v, part[c]);
            most[c] = num::magnitude_of(v) <= most[c] ? most[c] : num::magnitude_of(v);
          }
        }
#pragma unroll
        for (int c = 0; c < most_columns; ++c) sums[c] += part[c];
      }
      sum = over_warp(sum);
      error = over_warp(error);
      const bool decides = by_first && !is_odd;
      const double relative =
          decides ? (error / sum + static_cast<double>(32 + blocks + 13 + (g.draws.any() ? 4 : 0)) * u) * (1 + 0x1p-20)
                  : num::infinity;
      const double rate = g.draws.rate();
#pragma unroll
      for (int c = 0; c < most_columns; ++c) {
        const std::int64_t e = column + 32 * c + lane;
        bool is_open = false;
        if (e < g.value_size) {
          const double x = sums[c] / sum * rate, v = most[c] * rate;
          const double f = (v + num::magnitude_of(x)) * relative + v * 0x1p-800;
          const num::decided_value<T> r = num::certify<T>(x, f);
          is_open = has_keys && !(r.decided && f < 0x1p900);
          at.out[e * g.out_at.element] = has_keys ? r.value : num::from_bits<T>(num::storage_of<T>{0});
          ++(has_keys ? decided : settled);
          decided -= is_open ? 1 : 0;
        }
        const std::uint32_t open = __ballot_sync(full_warp, is_open);
        if (lane == 0 && column / 32 + c + 1 < g.words) bits[n * g.words + column / 32 + c] = open;
      }
      if (column == 0 && at.lse != nullptr && lane == 0) {
        const double log = num::fast_log(1.0, sum - 1), x = top + log;
        const double f = (relative + 4 * u) * (1 + 0x1p-20) + 10 * u * log + 4 * u * num::magnitude_of(x);
        const auto r = num::certify<num::lse_of<T>>(x, f);
        const bool is_open = has_keys && !(decides && r.decided && f < 0x1p900);
        *at.lse = has_keys ? r.value : -static_cast<num::lse_of<T>>(num::infinity);
        bits[n * g.words + g.words - 1] = is_open ? lse_bit : 0;
        ++(has_keys ? decided : settled);
        decided -= is_open ? 1 : 0;
      }
    }
    if (at.lse == nullptr && lane == 0) bits[n * g.words + g.words - 1] = 0;
  }
  count_elements(counters, tier::proved, settled);
  count_elements(counters, tier::binary64, decided);
}

// -------------------------------------------------------------------------------------------------------- what is left

// A result after double-doubles.
template <class T>
struct late_result {
  T value;
  tier by;
  bool decided;
  num::neighbours<T> ends;
};
struct kinds_of_scores {
  num::score_kinds kinds;
  double top;
};

template <class T>
using exact_of_warp = num::query_exact<T, any_lane>;

// A result that double-doubles left, exactly; called by all lanes.
template <class T>
__device__ __noinline__ void decide_exactly(exact_of_warp<T>& exact, std::int64_t e, int last_tier_bits,
                                            late_result<T>& r) {
  const bool asks = !r.decided;
  const num::decided_value<T> c = exact.decide(e, r.ends, last_tier_bits, asks);
  r.value = asks ? c.value : r.value;
  r.decided = asks ? c.decided : r.decided;
  r.by = asks ? tier::exact : r.by;
}
template <class T>
__device__ __noinline__ num::decided_value<num::lse_of<T>> logarithm_of(const exact_of_warp<T>& exact,
                                                                        const num::wide<double>& weights,
                                                                        double reference, bool by_double_double,
                                                                        int last_tier_bits, tier* by) {
  const num::lanes_together together;
  num::wide<double> log = weights;
  num::to_logarithm(log);
  num::add_value(log, reference);
  num::decided_value<num::lse_of<T>> c = num::round_number<num::lse_of<T>>(log);
  *by = tier::double_double;
  if (!(by_double_double && c.decided)) {
    c = exact.logarithm(last_tier_bits);
    *by = tier::exact;
  }
  together.meet();
  return c;
}

template <class T>
__global__ void __launch_bounds__(threads)
    attention_settle(const __grid_constant__ attention_geometry g, bool by_double_double, int last_tier_bits,
                     const std::uint32_t* bits, num::late_key* all_keys, counter* counters) {
  constexpr std::size_t largest =
      sizeof(late_result<T>) > sizeof(num::wide<double>) ? sizeof(late_result<T>) : sizeof(num::wide<double>);
  static_assert(largest >= sizeof(kinds_of_scores));
  alignas(16) __shared__ std::byte memory[threads * largest];  // for one after the other
  const auto shared = [&]<class V>() { return reinterpret_cast<V*>(memory); };
  late_result<T>* const results = shared.template operator()<late_result<T>>();
  const int lane = lane_of_thread(), warp = static_cast<int>(threadIdx.x / 32);
  num::late_key* const keys = all_keys + static_cast<std::int64_t>(blockIdx.x) * g.keys;
  std::int64_t by[4] = {}, undecided = 0;
  const auto count = [&](tier t, bool decided) {
    by[0] += decided && t == tier::proved ? 1 : 0;
    by[2] += decided && t == tier::double_double ? 1 : 0;
    by[3] += decided && t == tier::exact ? 1 : 0;
    undecided += decided ? 0 : 1;
  };
  using number = num::attention_number<T>;
  __shared__ number tile[threads][33], of_query[32];
  open_rows_of_block<threads> open(g.total, true);
  const auto has_any = [&](std::int64_t n) {
    bool any = false;
    for (std::int64_t i = 0; i < g.words; ++i) any = any || bits[n * g.words + i] != 0;
    return any;
  };
  for (std::int64_t n = open.next(has_any); n >= 0; n = open.next(has_any)) {
    const std::uint32_t* const mine = bits + n * g.words;
    const query_at<T> at(g, n);
    const num::attention_query<T> query =
        at.query;  // a copy that stays in registers: the last tier has the address of the other
    kinds_of_scores kinds{{}, -num::infinity};
    for (std::int64_t j0 = query.first; j0 < query.last; j0 += threads) {
      // 128 keys at a time, 32 numbers of each, so that neighbours in memory are read by neighbours.
      num::tracked_sum<double> products;
      for (std::int64_t d0 = 0; d0 < query.size; d0 += 32) {
        __syncthreads();
        // All are on their way before the first is stored, which might be where another one is read, for all that a compiler knows.
        number x[32];
#pragma unroll
        for (int i = 0; i < 32; ++i) {
          const std::int64_t r = j0 + i * warps + warp;
          x[i] = r < query.last && d0 + lane < query.size ? query.key_value(r, d0 + lane) : number{0};
        }
#pragma unroll
        for (int i = 0; i < 32; ++i) tile[i * warps + warp][lane] = x[i];
        if (threadIdx.x < 32) of_query[threadIdx.x] = d0 + lane < query.size ? query.query_value(d0 + lane) : number{0};
        __syncthreads();
#pragma unroll 4
        for (int c = 0; c < 32; ++c) {
          num::add_product<T>(products, static_cast<double>(of_query[c]), static_cast<double>(tile[threadIdx.x][c]));
        }
      }
      const std::int64_t j = j0 + threadIdx.x;
      if (j >= query.last) continue;
      num::late_key key{{{-num::infinity, 0.0}, 0.0}, {}, -1};
      if (query.is_present(j)) {
        const double s = query.near_score(j, products);
        kinds.kinds.add(s);
        if (num::is_finite(s)) key.score = query.wide_score(j, products);
        kinds.top = key.score.value.hi > kinds.top ? key.score.value.hi : kinds.top;
      }
      keys[j - query.first] = key;
    }
    kinds = over_block(kinds, shared.template operator()<kinds_of_scores>(),
                       [](kinds_of_scores& a, const kinds_of_scores& b) {
                         a.kinds.nan |= b.kinds.nan;
                         a.kinds.positive |= b.kinds.positive;
                         a.kinds.negative |= b.kinds.negative;
                         a.kinds.finite |= b.kinds.finite;
                         a.top = b.top > a.top ? b.top : a.top;
                       });
    const num::query_kind kind = kinds.kinds.kind();
    const bool is_finite = kind == num::query_kind::finite;
    const num::query_results special = num::results_of(kind);
    const double reference = kinds.top - 1;  // the sum is at least 2
    const std::int64_t length = query.last - query.first;
    num::wide<double> weights{};
    for (std::int64_t i = threadIdx.x; is_finite && i < length; i += threads) {
      if (!keys[i].has_weight()) continue;
      keys[i].weight = num::weight_of(keys[i].score, reference);
      weights = num::add_positive(weights, keys[i].weight);
    }
    weights = over_block(weights, shared.template operator()<num::wide<double>>(),
                         [](num::wide<double>& a, const num::wide<double>& b) { a = num::add_positive(a, b); });
    exact_of_warp<T> exact{at.query, keys};

    for (std::int64_t first = 0; first < g.value_size; first += threads) {
      for (int c = warp; c < threads; c += warps) {
        const std::int64_t e = first + c;
        late_result<T> r{T{}, tier::proved, true, {T{}, T{}, false}};
        if (e < g.value_size && (mine[e / 32] >> (e % 32) & 1) != 0) {
          if (!is_finite) {
            r.value = num::narrow<T>(special.out);
          } else {
            num::wide_sum<double> sum;
            num::special_terms terms;
            for (std::int64_t i = lane; i < length; i += 32) {
              if (!query.is_kept(query.first + i)) continue;
              const double v = static_cast<double>(query.value(query.first + i, e));
              if (num::is_finite(v)) {
                if (!keys[i].has_weight()) continue;
                const num::wide<double> term = num::weighted<T>(keys[i].weight, v);
                sum.add(term.value, term.error);
              } else if (keys[i].has_weight()) {
                terms.add(v);
              } else if (kinds.kinds.negative && query.is_present(query.first + i)) {
                terms.nan = true;  // times the weight 0
              }
            }
            terms.nan = __any_sync(full_warp, terms.nan);
            terms.positive = __any_sync(full_warp, terms.positive);
            terms.negative = __any_sync(full_warp, terms.negative);
            num::wide<double> result = over_warp(sum).total(length + 32);
            num::to_result<T>(result, weights, query.draws);
            const num::decided_value<T> rounded = num::round_number<T>(result);
            if (terms.any()) {
              r.value = terms.template value<T>();
            } else {
              r.value = rounded.value;
              r.by = tier::double_double;
              r.decided = by_double_double && rounded.decided;
              if (by_double_double && result.error < 0x1p900) {
                const num::dd_ends ends = num::interval_ends(result.value, result.error * (1 + 0x1p-10), 0);
                r.ends = num::neighbours<T>::of(num::round_dd<T>(ends.lo), num::round_dd<T>(ends.hi));
              }
            }
          }
        }
        if (lane == 0) results[c] = r;
      }
      __syncthreads();
      late_result<T> r = results[threadIdx.x];
      __syncthreads();
      const std::int64_t e = first + threadIdx.x;
      const bool is_mine = e < g.value_size && (mine[e / 32] >> (e % 32) & 1) != 0;
      if (__syncthreads_or(r.decided ? 0 : 1)) {
        if (!exact.has_groups) {
          for (std::int64_t i = 0; i < length; i += threads) exact.find_group(i + threadIdx.x);
          exact.has_groups = true;
          __syncthreads();
        }
        decide_exactly(exact, e < g.value_size ? e : 0, last_tier_bits, r);
        __syncwarp();
      }
      if (is_mine) {
        at.out[e * g.out_at.element] = r.value;
        count(r.by, r.decided);
      }
      __syncthreads();
    }
    if (mine[g.words - 1] != 0) {  // all threads do the same
      tier how = tier::proved;
      num::decided_value<num::lse_of<T>> c{static_cast<num::lse_of<T>>(special.lse), true};
      if (is_finite) c = logarithm_of(exact, weights, reference, by_double_double, last_tier_bits, &how);
      if (threadIdx.x == 0) {
        *at.lse = c.value;
        count(how, c.decided);
      }
    }
    __syncthreads();
  }
  count_elements(counters, tier::proved, by[0]);
  count_elements(counters, tier::double_double, by[2]);
  count_elements(counters, tier::exact, by[3]);
  if (undecided != 0) atomicAdd(counters + undecided_counter, static_cast<counter>(undecided));
}

template <class T>
class attention_work final : public planned {
 public:
  attention_work(const plan::attention_plan& p, const job& given) : planned(given) {
    attention_geometry& g = g_;
    g.q = p.q;
    g.k = p.k;
    g.v = p.v;
    g.mask = p.mask;
    g.slopes = p.slopes;
    g.out = p.out;
    g.lse = p.lse;
    g.heads = p.heads;
    g.group = p.heads / p.key_heads;
    g.queries = p.queries;
    g.keys = p.keys;
    g.size = p.size;
    g.value_size = p.value_size;
    g.total = p.batches * p.heads * p.queries;
    g.words = ceil_div(p.value_size, 32) + 1;  // the last one is of lse
    g.batch.set_shape(p.batch_rank, p.batch_shape);
    const plan::attention_place* const from[] = {&p.q_at, &p.k_at, &p.v_at, &p.mask_at, &p.out_at, &p.lse_at};
    place* const to[] = {&g.q_at, &g.k_at, &g.v_at, &g.mask_at, &g.out_at, &g.lse_at};
    for (int i = 0; i < 6; ++i) {
      g.batch.set_stride(i, from[i]->batch);
      *to[i] = {from[i]->head, from[i]->row, from[i]->element};
    }
    g.slope_step = p.slope_step;
    g.offset = p.offset;
    g.before = p.before;
    g.after = p.after;
    g.scale = p.scale;
    g.is_added = p.is_added;
    g.draws = num::draws_of(p);
    // Keys of a block of the second kernel are in memory: as many blocks as 256 MiB hold.
    constexpr std::int64_t most = std::int64_t{256} << 20;
    const std::int64_t of_block = std::max<std::int64_t>(p.keys, 1) * static_cast<std::int64_t>(sizeof(num::late_key));
    blocks_ = std::clamp<std::int64_t>(most / of_block, 1, grid_for(j.device, g.total, 4));
    by_tiles_ = is_for_tiles(p, j.device);
    parts_ = by_tiles_ ? parts_of_tiles(p, j.device) : 0;
    space.take(statistics_, by_tiles_ ? statistics_of_tiles(p, j.device) : 0);
    space.take(sums_, by_tiles_ ? sums_of_tiles(p, j.device) : 0);
    space.take(packed_, by_tiles_ ? packed_of_tiles(p, j.device) : 0);
    open_.most = g.group * p.queries;
    space.take(open_.queries, by_tiles_ ? g.total : 0);
    space.take(open_.counts, by_tiles_ ? p.batches * p.key_heads : 0);
    space.take(bits_, g.total, g.words);
    space.take(keys_, blocks_, p.keys);
  }

 private:
  void enqueue() override {
    // Of binary64 the first tier decides nothing.
    const bool by_first = j.first_tier <= tier::binary64 && !num::is_binary64<T>;
    if (by_tiles_) {
      enqueue_tiles(g_, dtype_of<T>, by_first, parts_, sums_, packed_, statistics_, bits_, open_, j);
      if (j.first_tier <= tier::double_double) enqueue_second(g_, dtype_of<T>, parts_, statistics_, bits_, open_, j);
    }
    launch_kernel<attention_first<T>>(j, grid_for(j.device, ceil_div(g_.total, warps), 16), threads, 0, g_, by_tiles_,
                                      by_first, bits_, j.counters);
    launch_kernel<attention_settle<T>>(j, blocks_, threads, 0, g_, j.first_tier <= tier::double_double,
                                       j.last_tier_bits, bits_, keys_, j.counters);
  }

  attention_geometry g_{};
  std::int64_t blocks_;
  bool by_tiles_;
  std::int64_t parts_;
  double *sums_ = nullptr, *packed_ = nullptr;
  float* statistics_ = nullptr;
  open_queries open_{};
  std::uint32_t* bits_ = nullptr;
  num::late_key* keys_ = nullptr;
};

}  // namespace

void prepare(const plan::attention_plan& p, const job& j, dispatch::task& t) {
  if (p.op == ops::op_id::attention_backward) return prepare_gradients(p, j, t);
  ops::for_each_format<ops::FLOATS>([&]<class T>() {
    if (dtype_of<T> == p.type) t.emplace<attention_work<T>>(p, j);
  });
}

}  // namespace repdl::cuda
