// Operations on rows (librepdl/ops/rows/rule.hpp).
//
// Rows are held in registers, by a team of threads: some lanes of a warp, some warps, or, of more than 8192 elements, a cluster of
// blocks: one read, one write. Rows whose neighbours are nearer than their own elements (a class axis that is not the last) take a
// thread each, which reads the row as often as it needs it. Rows that are too long for a cluster are cut into chunks (rows_long.cuh), and
// so are long rows with near neighbours, but for those whose greatest element is looked for. Of norms with few weights, which are quick
// to compute, a block reads a long row twice. Where a multiprocessor has no more than a row, and not a long one, a block goes on with it
// until it is done: the call is one launch, as calls of few numbers take as long as they have launches.
// Rows with elements that binary64 leaves open are listed for rows_late.cu. The launches do not depend on the data.
#include <algorithm>
#include <cstdint>

#include "backends/cuda/rows/rows_chunks.cuh"

namespace repdl::cuda {
namespace {

constexpr int threads = row_threads;
constexpr int warps = row_warps;
constexpr std::int64_t most_in_fours = INT32_MAX - 4 * long_chunk;  // places, and some beyond, are of 32 bits

enum class manner { registers, columns, chunks, few };

struct division {
  row_geometry g;
  const void* former[2];  // null: the operation has none
  dtype former_type;
  manner how;
  int per_thread;  // registers: elements: 8, 16 or 32
  bool packed;
};

// What the driver asks of a rule.
struct rule_facts {
  num::row_inputs inputs;
  int summed;
  int held;
  int chains;
  int required;
  int formatted;
  bool has_factors;
  bool per_element;
  bool exact;
  bool looks;  // for the greatest element
  bool is_costly;
  bool is_tiled;
  bool is_whole;  // of binary32
  bool exact_totals;
  num::row_bounds (*bounds)(std::int64_t length, std::int64_t height, std::int64_t tracked_height);
};
template <class Rule>
constexpr rule_facts facts_of = {Rule::inputs,
                                 Rule::summed,
                                 held_of<Rule>,
                                 chains_of<Rule>,
                                 Rule::required,
                                 Rule::formatted,
                                 Rule::has_factors,
                                 Rule::per_element,
                                 Rule::exact_limbs != 0,
                                 Rule::look == num::row_look::greatest,
                                 Rule::is_costly,
                                 is_tiled<Rule>,
                                 is_whole<Rule, float>,
                                 Rule::exact_totals,
                                 Rule::bounds};

std::size_t size_of_element(const row_geometry& g, const rule_facts& rule, int k) {
  if (k != out_place && k >= rule.formatted) return sizeof(float);
  return size_of(k != out_place && k >= rule.required ? g.factor_type : g.type);
}

// How packed rows are read and written; whether they are packed.
bool pack(row_geometry& g, const rule_facts& rule) {
  const int elements = rule.inputs.elements();
  // All rows begin at the same place of four elements as those of the first operand; at the first place.
  const auto place = [&](int k) {
    const void* const data = k == out_place ? g.out[0] : g.x[k];
    return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data) / size_of_element(g, rule, k) % 4);
  };
  const auto beside = [&](int k) {
    bool is = place(k) == place(0);
    for (int i = 0; i < g.kept.rank; ++i) is = is && (g.kept.stride[k][i] - g.kept.stride[0][i]) % 4 == 0;
    return is;
  };
  g.aligned = place(0) == 0;
  for (int i = 0; i < g.kept.rank; ++i) g.aligned = g.aligned && g.kept.stride[0][i] % 4 == 0;
  const bool in_fours = g.aligned && g.reduced.rank == 2 && g.reduced.size[0] % 4 == 0;
  bool packed = g.reduced.rank == 1 || elements > rule.required;
  g.others = other_operands::of_rows;
  for (int k = 0; k <= out_place; ++k) {
    if (k == out_place ? !rule.per_element : k >= elements || g.x[k] == nullptr) continue;
    const std::int64_t* const stride = g.reduced.stride[k];
    bool constant = g.length != 0;
    bool flat = stride[0] == 1 && beside(k);
    for (int i = 0; i < g.reduced.rank; ++i) constant = constant && stride[i] == 0;
    for (int i = 1; i < g.reduced.rank; ++i) flat = flat && stride[i] == stride[i - 1] * g.reduced.size[i - 1];
    const bool four = in_fours && stride[0] == 1 && stride[1] % 4 == 0 && beside(k);
    const bool one = in_fours && stride[0] == 0;
    const bool more = k >= rule.required && k != out_place && (g.reduced.rank == 1 || constant || one);
    packed = packed && (flat || four || more);
    g.access[k] = constant ? quad_access::constant
                  : flat   ? quad_access::flat
                  : four   ? quad_access::four
                  : one    ? quad_access::one
                           : quad_access::each;
    if (k == out_place || k < rule.summed || constant) continue;
    g.others = one && g.others != other_operands::of_elements ? other_operands::of_fours : other_operands::of_elements;
  }
  return packed;
}

// Whether four neighbouring rows are one access to every operand of sums, but for what is the same for all rows.
bool has_four_rows(const row_geometry& g, const rule_facts& rule) {
  bool are = g.kept.rank == 1 && g.reduced.rank == 1 && g.rows % 4 == 0;
  for (int k = 0; k < rule.summed; ++k) {
    if (g.x[k] == nullptr) continue;
    const std::int64_t across = g.kept.stride[k][0];
    const bool four = across == 1 && g.reduced.stride[k][0] % 4 == 0 &&
                      reinterpret_cast<std::uintptr_t>(g.x[k]) % (4 * size_of_element(g, rule, k)) == 0;
    are = are && (!rule.per_element && k >= 2 ? across == 0 : four);
  }
  return are;
}

division divide(const plan::row_plan& p, const properties& device, tier first, int bits) {
  division d{};
  row_geometry& g = d.g;
  g.op = p.op;
  rule_facts rule{};
  ops::for_row_operation(p.op, [&]<class Op>() { rule = facts_of<row_rule<Op::id>>; });
  g.rows = p.rows;
  g.length = p.length;
  g.kept.set_shape(p.kept_rank, p.kept_shape);
  g.reduced.set_shape(p.reduced_rank, p.reduced_shape);
  const auto input = [&](int i, int place) {
    g.kept.set_stride(place, p.in_stride[i].kept);
    if (place < out_place) g.reduced.set_stride(place, p.in_stride[i].reduced);
    return p.in[i];
  };
  for (int k = 0; k < rule.inputs.elements(); ++k) g.x[k] = input(rule.inputs.element[k], k);
  g.type = g.factor_type = p.in_type[rule.inputs.element[0]];
  for (int k = rule.required; rule.has_factors && k < rule.inputs.elements(); ++k) {
    if (g.x[k] != nullptr) g.factor_type = p.in_type[rule.inputs.element[k]];
  }
  if (rule.inputs.g >= 0) {
    g.row_g = input(rule.inputs.g, g_place);
    g.g_type = p.in_type[rule.inputs.g];
  }
  if (rule.inputs.top >= 0) g.row_top = static_cast<const float*>(input(rule.inputs.top, top_place));
  const bool targets = rule.inputs.target >= 0;  // or probabilities in their place
  if (targets) g.target = static_cast<const std::int64_t*>(input(rule.inputs.target, target_place));
  for (int k = 0; k < plan::row_plan::most_outputs; ++k) {
    g.out[k] = p.out[k];
    g.out_type[k] = p.out_type[k];
    g.kept.set_stride(out_place + k, p.out_stride[k].kept);
  }
  g.reduced.set_stride(out_place, p.out_stride[0].reduced);
  if (rule.inputs.former[0] >= 0) {
    for (int k = 0; k < 2; ++k) d.former[k] = input(rule.inputs.former[k], former_place + k);
    d.former_type = p.in_type[rule.inputs.former[0]];
  }
  g.ignore_index = p.ignore_index;
  g.eps = p.eps;
  g.momentum = p.momentum;
  g.biased = targets ? g.target == nullptr : g.x[2] != nullptr;
  g.is_mean = targets && p.reduction == repdl::reduction::mean;
  g.is_weighted = g.is_mean && g.target != nullptr && rule.inputs.elements() > 1 && g.x[1] != nullptr;
  g.is_total = targets && !rule.per_element && p.reduction != repdl::reduction::none;
  const bool wide = first <= tier::double_double;
  const bool quarter = rule.exact || (bits >= 256 && !device.choice.wide);
  g.levels = (wide ? 1u : 0u) | (quarter ? 2u : 0u) | (bits >= 512 && !rule.exact ? 4u : 0u);

  const auto size = [](std::int64_t s) { return s < 0 ? -s : s; };
  const std::int64_t along = size(g.reduced.stride[0][0]);
  const std::int64_t across = p.kept_rank == 0 ? INT64_MAX : size(g.kept.stride[0][0]);
  d.packed = pack(g, rule);
  g.tiled = across < along && rule.is_tiled && p.length >= 256 && p.rows >= 4;
  const bool few = p.rows <= device.multiprocessors && p.length <= most_of_few && !g.tiled && !device.choice.wide &&
                   g.target == nullptr && !g.is_weighted && !g.is_total;
  const std::int64_t room = p.length + (d.packed && !g.aligned ? 3 : 0);

  // Every device with clusters has those of 8 blocks; those that have been tried, and their kind, 16.
  const std::int64_t most_blocks = device.capability == 90 || device.capability / 10 == 10 ? 16 : 8;
  const bool clusters = device.capability >= 90 && !device.choice.wide;
  // More than four wait for each other longer than rows take to be read again, if nothing is looked for.
  const std::int64_t best_blocks = rule.looks ? most_blocks : 4;
  const int most = is_mixed(g) ? per_thread_of_mixed : most_per_thread(rule.held);
  // What a thread does for each row is less of the time where it has more elements.
  const std::int64_t eight = rule.is_costly ? 32 : rule.held > 2 ? 8 * threads : 64;
  const std::int64_t sixteen = rule.is_costly ? eight : rule.held == 1 ? 512 : 4096;
  d.per_thread = is_mixed(g) ? most : room <= eight ? 8 : std::min(most, room <= sixteen ? 16 : 32);
  d.how = room <= (clusters ? best_blocks * most : 16) * threads ? manner::registers : manner::chunks;
  if (few) {
    d.how = manner::few;
  } else if (g.tiled) {
    d.how = manner::chunks;
  } else if (across < along && p.rows >= std::int64_t{device.multiprocessors} * 32) {
    d.how = manner::columns;
  }
  // Rows of more than a block's registers, of which there are many, or of nearly as many, are read again rather than held, where
  // elements are on lines: what teams and clusters do once for each row takes longer.
  g.whole = rule.is_whole && g.type == dtype::f32 && d.how != manner::columns && !few && !g.tiled && d.packed &&
            g.aligned && g.others != other_operands::of_elements && p.length > 16 * threads &&
            p.length <= most_in_fours && p.rows >= std::int64_t{device.multiprocessors} * 4;
  if (g.whole) d.how = manner::chunks;
  g.in_fours = g.tiled ? has_four_rows(g, rule) : d.packed && g.aligned && p.length <= most_in_fours;
  g.team = 1;
  while (g.team < threads && std::int64_t{g.team} * d.per_thread < room) g.team *= 2;
  g.cluster = 1;
  while (d.how == manner::registers && std::int64_t{g.cluster} * threads * d.per_thread < room) g.cluster *= 2;

  // Additions on a path: a thread's own (in registers those of a chain, and 2; in a chunk, of a chain; in a tile 128; of few rows
  // length / late_threads, rounded up), the lanes' 5, and the warps', at most 8 one after the other in a chunk, if totals are not exact; in
  // registers, by halves, 3, and the blocks' of a cluster 4; of few rows, by halves, 2.
  const std::int64_t in_registers = most / rule.chains + 2;
  // Of many rows a block has more elements, so that what it does once for each chunk takes less of the time.
  const bool many = g.in_fours && p.rows * (p.length / long_chunk) >= std::int64_t{device.multiprocessors} * 32;
  g.chunk = g.whole ? round_up(p.length, long_chunk) : g.tiled ? tile_chunk : many ? 2 * long_chunk : long_chunk;
  const std::int64_t in_chunk = g.chunk / threads / (g.in_fours ? rule.chains : 1) + 6;
  constexpr std::int64_t in_tile = tile_chunk / warps + 6;
  const std::int64_t own = few                          ? p.length / late_threads + 1
                           : d.how == manner::columns   ? p.length / 4 + 4
                           : d.how == manner::registers ? in_registers
                           : g.tiled                    ? in_tile
                                                        : in_chunk;
  const std::int64_t tracked =
      (d.how == manner::columns ? p.length : in_tile) + 5 + warps + p.length / (g.chunk * 32) + 16;
  const std::int64_t joined = d.how == manner::chunks && !g.tiled && rule.exact_totals ? 0 : 5 + warps;
  g.bounds = rule.bounds(p.length, own + joined, tracked);
  if (first > tier::binary64) g.bounds = num::row_bounds::nothing();
  return d;
}

// What the last results of rows were before: a copy of it.
__global__ void __launch_bounds__(threads)
    copy_former(const __grid_constant__ row_geometry g, const void* first, const void* second, dtype type, float* to) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; row < g.rows; row += step) {
    to[row] = number_at<any_format>(first, row_offset<former_place>(g, row), type);
    to[g.rows + row] = number_at<any_format>(second, row_offset<former_place + 1>(g, row), type);
  }
}

__global__ void __launch_bounds__(threads) count_targets(const __grid_constant__ row_geometry g) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  unsigned n = 0;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; row < g.rows; row += step) {
    n += g.target[row_offset<target_place>(g, row)] != g.ignore_index ? 1u : 0u;
  }
  n = __reduce_add_sync(full_warp, n);
  if (lane_of_thread() == 0 && n != 0) atomicAdd(&g.status->counted, static_cast<unsigned long long>(n));
}

class row_work final : public planned {
 public:
  row_work(const plan::row_plan& p, const job& given)
      : planned(given), d_(divide(p, j.device, j.first_tier, j.last_tier_bits)) {
    row_geometry& g = d_.g;
    if (d_.former[0] != nullptr) space.take(former_, 2, g.rows);
    if (d_.how == manner::few) return;
    const int lists = g.is_total ? 0 : g.length > late_chunk ? 3 : 1;
    const std::size_t before = space.used().value();
    // Up to here, `zeroed_` bytes, the workspace is set to zero before every call.
    space.take(g.status, 1);
    space.take(g.list_bits, lists, g.list_words());
    if (lists == 3) space.take(g.open_count, g.rows);
    zeroed_ = space.used().value() - before;
    space.take(g.list_rows, lists, g.rows);
    if (lists == 3) space.take(g.open, g.rows);
    ops::for_row_operation(g.op, [&]<class Op>() { space.take(g.known, g.rows, sizeof(known_row<Op::id>)); });
    if (d_.how == manner::chunks) take_workspace(long_, g, space);
    if (g.is_weighted) take_weight_workspace(weights_, space);
    if (g.is_total) {
      space.take(g.losses, g.rows);
      take_total_workspace(parts_, g, space);
    } else {
      take_late_workspace(parts_, g, space);
    }
  }

 private:
  template <class T>
  void launch_fast() {
    const row_geometry& g = d_.g;
    if (g.rows == 0) return;
    if (d_.how == manner::chunks) return run_long_rows<T>(g, long_, j);
    if (d_.how == manner::columns) return run_columns<T>(g, j);
    run_registers<T>(g, d_.per_thread, d_.packed, j);
  }

  void enqueue() override {
    row_geometry& g = d_.g;
    if (zeroed_ != 0) check(cudaMemsetAsync(g.status, 0, zeroed_, j.stream), "rows", "cudaMemsetAsync");
    if (d_.former[0] != nullptr && g.rows != 0) {
      for (int k = 0; k < 2; ++k) g.row_former[k] = former_ + k * g.rows;
      launch_kernel<copy_former>(j, grid_for(j.device, ceil_div(g.rows, threads), 8), threads, 0, g, d_.former[0],
                                 d_.former[1], d_.former_type, former_);
    }
    if (g.target != nullptr && g.rows != 0) {
      launch_kernel<count_targets>(j, grid_for(j.device, ceil_div(g.rows, threads), 8), threads, 0, g);
    }
    if (d_.how == manner::few) return run_few_rows(g, j);
    if (g.is_weighted && g.rows != 0) run_weights(g, weights_, j);
    ops::for_each_format<ops::NARROW>([&]<class T>() {
      if (dtype_of<T> == g.type) launch_fast<T>();
    });
    if (g.is_total) {
      run_total(g, parts_, j);
    } else {
      run_late_rows(g, parts_, j);
    }
  }

  division d_;
  std::size_t zeroed_ = 0;
  float* former_ = nullptr;
  long_work long_{};
  std::byte* weights_ = nullptr;  // parts of the sum of weights,
  std::byte* parts_ = nullptr;    // of the total, or late sums
};

}  // namespace

void take_workspace(long_work& w, const row_geometry& g, carver& c) {
  c.take(w.keys, g.rows);
  ops::for_row_operation(g.op, [&]<class Op>() {
    c.take(w.chunks, g.rows, chunks_of(g, g.chunk), sizeof(typename row_rule<Op::id>::total));
  });
}

void prepare(const plan::row_plan& p, const job& j, dispatch::task& t) { t.emplace<row_work>(p, j); }

}  // namespace repdl::cuda
