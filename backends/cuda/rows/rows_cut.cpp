#include "backends/cuda/rows/rows_cut.hpp"

#include <algorithm>

namespace repdl::cuda {
namespace {

constexpr int threads = row_threads;
constexpr int warps = row_warps;

std::size_t size_of_element(const row_layout& g, const row_facts& rule, int k) {
  if (k != out_place && k >= rule.formatted) return sizeof(float);
  return size_of(k != out_place && k >= rule.required ? g.factor_type : g.type);
}

// How packed rows are read and written; whether they are packed.
bool pack(row_layout& g, const row_facts& rule) {
  const int elements = rule.elements;
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

row_access access_across(const row_layout& g, const row_facts& rule, int k) {
  const void* const data = k == out_place ? g.out[0] : g.x[k];
  const std::int64_t* const stride = g.kept.stride[k];
  // Four rows are of one line along the innermost axis.
  const bool within = g.kept.rank == 1 || g.kept.size[0] % 4 == 0;
  bool one = within && stride[0] == 0;
  bool constant = true, flat = stride[0] == 1, four = within && stride[0] == 1;
  for (int i = 0; i < g.kept.rank; ++i) constant = constant && stride[i] == 0;
  for (int i = 1; i < g.kept.rank; ++i) {
    flat = flat && stride[i] == stride[i - 1] * g.kept.size[i - 1];
    four = four && stride[i] % 4 == 0;
  }
  if (data == nullptr || constant || one) return row_access::one;
  bool aligned = reinterpret_cast<std::uintptr_t>(data) % (4 * size_of_element(g, rule, k)) == 0;
  for (int i = 0; i < g.reduced.rank; ++i) aligned = aligned && g.reduced.stride[k][i] % 4 == 0;
  return (flat || four) && aligned ? row_access::four : row_access::each;
}
// Whether four rows side by side are one access to the first `operands` operands of elements, but for statistics, and for those that may be
// absent and are one number. Elements are along one axis or two, and have places of 32 bits.
bool has_four_rows(const row_layout& g, const row_facts& rule, int operands) {
  if (g.rows % 4 != 0 || g.reduced.rank > 2 || g.length >> 31 != 0) return false;
  for (int k = 0; k < operands; ++k) {
    if (g.across[k] == row_access::each && k < rule.formatted) return false;
    if (g.across[k] == row_access::one && k < rule.required) return false;
  }
  return true;
}

// Elements of a chunk of rows side by side: as many chunks as the device has at once, of what a block loads at once, at least.
std::int64_t chunk_of_tiles(const row_layout& g, const properties& device) {
  const int each = g.in_fours ? 4 : 1;
  const int lanes = tile_lanes(g.rows, each);
  const std::int64_t wanted = std::int64_t{device.multiprocessors} * tile_blocks;
  const std::int64_t chunks = std::max<std::int64_t>(1, wanted / ceil_div(g.rows, std::int64_t{lanes} * each));
  return round_up(std::min(ceil_div(g.length, chunks), tile_chunk), std::int64_t{tile_ahead} * threads / lanes);
}

}  // namespace

row_cut cut_rows(row_layout& g, const plan::row_plan& p, const row_facts& rule, const properties& device, tier first,
                 int last_tier_bits) {
  row_cut d{};
  g = {};
  g.op = p.op;
  g.rows = p.rows;
  g.length = p.length;
  g.kept.set_shape(p.kept_rank, p.kept_shape);
  g.reduced.set_shape(p.reduced_rank, p.reduced_shape);
  const auto input = [&](int i, int place) {
    g.kept.set_stride(place, p.in_stride[i].kept);
    if (place < out_place) g.reduced.set_stride(place, p.in_stride[i].reduced);
    return p.in[i];
  };
  for (int k = 0; k < rule.elements; ++k) g.x[k] = input(rule.element[k], k);
  g.type = g.factor_type = p.in_type[rule.element[0]];
  for (int k = rule.required; rule.has_factors && k < rule.elements; ++k) {
    if (g.x[k] != nullptr) g.factor_type = p.in_type[rule.element[k]];
  }
  if (rule.g >= 0) {
    g.row_g = input(rule.g, g_place);
    g.g_type = p.in_type[rule.g];
  }
  if (rule.top >= 0) g.row_top = static_cast<const float*>(input(rule.top, top_place));
  const bool targets = rule.target >= 0;  // or probabilities in their place
  if (targets) g.target = static_cast<const std::int64_t*>(input(rule.target, target_place));
  for (int k = 0; k < plan::row_plan::most_outputs; ++k) {
    g.out[k] = p.out[k];
    g.out_type[k] = p.out_type[k];
    g.kept.set_stride(out_place + k, p.out_stride[k].kept);
  }
  g.reduced.set_stride(out_place, p.out_stride[0].reduced);
  if (rule.former[0] >= 0) {
    for (int k = 0; k < 2; ++k) d.former[k] = input(rule.former[k], former_place + k);
    d.former_type = p.in_type[rule.former[0]];
  }
  g.ignore_index = p.ignore_index;
  g.eps = p.eps;
  g.momentum = p.momentum;
  g.biased = targets ? g.target == nullptr : g.x[2] != nullptr;
  g.is_mean = targets && p.reduction == repdl::reduction::mean;
  g.is_weighted = g.is_mean && g.target != nullptr && rule.elements > 1 && g.x[1] != nullptr;
  g.is_total = targets && !rule.per_element && p.reduction != repdl::reduction::none;
  const bool wide = first <= tier::double_double;
  const bool quarter = rule.exact || (last_tier_bits >= 256 && !device.choice.wide);
  d.levels = (wide ? 1u : 0u) | (quarter ? 2u : 0u) | (last_tier_bits >= 512 && !rule.exact ? 4u : 0u);

  const auto size = [](std::int64_t s) { return s < 0 ? -s : s; };
  const std::int64_t along = size(g.reduced.stride[0][0]);
  const std::int64_t across = p.kept_rank == 0 ? INT64_MAX : size(g.kept.stride[0][0]);
  d.packed = pack(g, rule);
  g.inner_bits = -1;
  for (int bits = 0; bits < 31 && g.reduced.rank == 2 && p.length >> 31 == 0; ++bits) {
    if (g.reduced.size[0] == std::int64_t{1} << bits) g.inner_bits = bits;
  }
  g.tiled = across < along && rule.is_tiled && p.length >= 256 && p.rows >= 4;
  const bool few = p.rows <= device.multiprocessors && p.length <= most_of_few && !g.tiled && !device.choice.wide &&
                   g.target == nullptr && !g.is_weighted && !g.is_total;
  const std::int64_t room = p.length + (d.packed && !g.aligned ? 3 : 0);

  // Every device with clusters has those of 8 blocks; those that have been tried, and their kind, 16.
  const std::int64_t most_blocks = device.capability == 90 || device.capability / 10 == 10 ? 16 : 8;
  const bool clusters = device.capability >= 90 && !device.choice.wide;
  // More than four wait for each other longer than aligned rows take to be read again, if nothing is looked for.
  const std::int64_t best_blocks = rule.looks || (d.packed && !g.aligned) ? most_blocks : 4;
  const bool mixed = g.factor_type != g.type;
  const int most = mixed ? per_thread_of_mixed : most_per_thread(rule.held);
  // What a thread does for each row is less of the time where it has more elements.
  const std::int64_t eight = rule.is_costly ? 32 : rule.held > 2 ? 8 * threads : 64;
  const std::int64_t sixteen = rule.is_costly ? eight : rule.held == 1 ? 512 : 4096;
  d.per_thread = mixed ? most : room <= eight ? 8 : std::min(most, room <= sixteen ? 16 : 32);
  d.how = room <= (clusters ? best_blocks * most : 16) * threads ? row_manner::registers : row_manner::chunks;
  // Where a block has several rows and not every multiprocessor a block, rows have more threads.
  const auto rows_of_block = [&] { return std::int64_t{threads} * d.per_thread / std::max<std::int64_t>(1, room); };
  while (!mixed && !rule.is_costly && d.per_thread > 8 && rows_of_block() >= 2 &&
         p.rows < device.multiprocessors * rows_of_block()) {
    d.per_thread /= 2;
  }
  if (few) {
    d.how = row_manner::few;
  } else if (g.tiled) {
    d.how = row_manner::chunks;
  } else if (across < along && p.rows >= std::int64_t{device.multiprocessors} * 32) {
    d.how = row_manner::columns;
  }
  // Rows of more than a block's registers, of which there are many, or of nearly as many, are read again rather than held, where
  // elements are on lines: what teams and clusters do once for each row takes longer.
  g.whole = rule.is_whole && g.type == dtype::f32 && d.how != row_manner::columns && !few && !g.tiled && d.packed &&
            g.aligned && g.others != other_operands::of_elements && p.length > 16 * threads &&
            p.length <= most_of_whole && p.rows >= std::int64_t{device.multiprocessors} * 4;
  if (g.whole) d.how = row_manner::chunks;
  for (int k = 0; g.tiled && k <= out_place; ++k) {
    if (k == out_place ? rule.per_element : k < rule.elements) g.across[k] = access_across(g, rule, k);
  }
  g.in_fours = g.tiled ? has_four_rows(g, rule, rule.summed) : d.packed && g.aligned && p.length <= most_in_fours;
  g.outputs_in_fours = g.tiled && rule.per_element && g.reduced.rank == 1 && has_four_rows(g, rule, rule.elements) &&
                       g.across[out_place] == row_access::four;
  g.team = 1;
  while (g.team < threads && std::int64_t{g.team} * d.per_thread < room) g.team *= 2;
  g.cluster = 1;
  while (d.how == row_manner::registers && std::int64_t{g.cluster} * threads * d.per_thread < room) g.cluster *= 2;

  // Additions on a path: a thread's own (in registers those of a chain, and 2; in a chunk, of a chain; in a tile those of a warp; of few rows
  // length / late_threads, rounded up), the lanes' 5, and the warps', at most 8 one after the other in a chunk, if totals are not exact; in
  // registers, by halves, 3, and the blocks' of a cluster 4; of few rows, by halves, 2.
  const std::int64_t in_registers = most / rule.chains + 2;
  // Of many rows a block has more elements, so that what it does once for each chunk takes less of the time.
  const bool many = g.in_fours && p.rows * (p.length / long_chunk) >= std::int64_t{device.multiprocessors} * 32;
  g.chunk = g.whole   ? round_up(p.length, long_chunk)
            : g.tiled ? chunk_of_tiles(g, device)
            : many    ? 2 * long_chunk
                      : long_chunk;
  const std::int64_t in_chunk = g.chunk / threads / (g.in_fours ? rule.chains : 1) + 6;
  const std::int64_t in_tile = (g.tiled ? g.chunk : tile_chunk) / warps + 6;
  const std::int64_t own = few                              ? p.length / late_threads + 1
                           : d.how == row_manner::columns   ? p.length / 4 + 4
                           : d.how == row_manner::registers ? in_registers
                           : g.tiled                        ? in_tile
                                                            : in_chunk;
  d.tracked = (d.how == row_manner::columns ? p.length : in_tile) + 5 + warps + p.length / (g.chunk * 32) + 16;
  const std::int64_t joined = d.how == row_manner::chunks && !g.tiled && rule.exact_totals ? 0 : 5 + warps;
  d.additions = own + joined;
  return d;
}

widened_rows widen_x(const plan::row_plan& p) {
  widened_rows rows{p, nullptr};
  plan::row_plan& q = rows.plan;
  const dtype from = p.in_type[0], out = p.out_type[0];
  const bool has_all = out == dtype::f64 || (out == dtype::f32 && from != dtype::f64);
  const dtype to = has_all ? out : dtype::f64;
  if (from == to) return rows;
  rows.x = std::make_unique<widened_x>(widened_x{p.in[0], from, to, p.rows * p.length, {}, nullptr});
  widened_x& x = *rows.x;
  struct axis {
    std::int64_t size;
    std::int64_t from;
    std::int64_t* to;
  };
  plan::inline_vector<axis, max_rank> axes;
  const auto take = [&](int rank, const plan::axes& shape, plan::axes& stride) {
    for (std::size_t d = 0; d < static_cast<std::size_t>(rank); ++d) axes.push_back({shape[d], stride[d], &stride[d]});
  };
  take(p.kept_rank, p.kept_shape, q.in_stride[0].kept);
  take(p.reduced_rank, p.reduced_shape, q.in_stride[0].reduced);
  const auto size = [](std::int64_t s) { return s < 0 ? -s : s; };
  std::stable_sort(axes.begin(), axes.end(), [&](const axis& a, const axis& b) { return size(a.from) < size(b.from); });
  std::int64_t step = 1;
  for (const axis& a : axes) {
    const int last = x.at.rank - 1;
    if (last >= 0 && a.from == x.at.stride[0][last] * x.at.size[last]) {
      x.at.size[last] *= a.size;
    } else {
      x.at.size[last + 1] = a.size;
      x.at.stride[0][last + 1] = a.from;
      x.at.rank = last + 2;
    }
    *a.to = step;
    step *= a.size;
  }
  q.in[0] = reinterpret_cast<const void*>(std::uintptr_t{256});
  q.in_type[0] = to;
  return rows;
}

unsigned register_grid(const row_layout& g, const properties& device) {
  const std::int64_t blocks = ceil_div(g.rows, threads / g.team) * g.cluster;
  const auto cluster = static_cast<unsigned>(g.cluster);
  return grid_for(device, blocks, 24) / cluster * cluster;
}

}  // namespace repdl::cuda
