#include "backends/cuda/reduce/reduce_cut.hpp"

#include <algorithm>

namespace repdl::cuda {
namespace {

// Into at most `chunks` chunks, each at least what its team loads at once.
void cut_length(reduce_geometry& g, std::int64_t chunks, const plan::reduce_plan& p) {
  const std::int64_t portion = std::int64_t{g.team} * loaded_terms(size_of(p.type), p.inputs);
  g.chunk_length = chunks == 1 ? std::max<std::int64_t>(p.length, 1) : round_up(ceil_div(p.length, chunks), portion);
  g.chunks = std::max<std::int64_t>(1, ceil_div(p.length, g.chunk_length));
}

// `repair`: for the tiers after the first, which see few outputs and want many threads for each.
reduce_geometry describe(const plan::reduce_plan& p, const properties& device, bool repair) {
  const auto pack = static_cast<std::int64_t>(16 / size_of(p.type));
  const int loaded = loaded_terms(size_of(p.type), p.inputs);
  reduce_geometry g{};
  g.outputs = p.outputs;
  g.length = p.length;
  g.out = p.out;
  g.bias = p.bias;
  g.kept.set_shape(p.kept_rank, p.kept_shape);
  g.reduced.set_shape(p.reduced_rank, p.reduced_shape);
  g.kept.set_stride(2, p.out_stride);
  g.kept.set_stride(3, p.bias_stride);
  for (int k = 0; k < p.inputs; ++k) {
    g.in[k] = p.in[k].data;
    g.kept.set_stride(k, p.in[k].kept_stride);
    g.reduced.set_stride(k, p.in[k].reduced_stride);
  }
  g.small = !device.choice.wide && fits_32_bits(p.outputs) && fits_32_bits(p.length);

  const auto size = [](std::int64_t s) { return s < 0 ? -s : s; };
  const std::int64_t along = size(g.reduced.stride[0][0]);
  const std::int64_t across = p.kept_rank == 0 ? INT64_MAX : size(g.kept.stride[0][0]);
  g.columns = !repair && (p.length < 32 || across < along);

  // Enough items to fill the device, each with at least one batch per thread.
  const std::int64_t wanted = std::int64_t{device.multiprocessors} * 2048;
  if (g.columns) {
    g.team = 1;
    g.chunks = std::clamp<std::int64_t>(wanted / p.outputs, 1, std::max<std::int64_t>(1, p.length / (2 * loaded)));
    g.chunk_length = ceil_div(p.length, g.chunks);
    g.paired = pack == 8 && p.inputs == 1 && p.kept_rank > 0 && p.reduced_rank == 1 && g.kept.size[0] % 2 == 0 &&
               reinterpret_cast<std::uintptr_t>(p.in[0].data) % 4 == 0 && g.kept.stride[0][0] == 1 &&
               g.reduced.stride[0][0] % 2 == 0;
    for (int d = 1; d < p.kept_rank; ++d) g.paired = g.paired && g.kept.stride[0][d] % 2 == 0;
  } else {
    const std::int64_t worth_a_block = repair ? 2048 : std::int64_t{reduce_threads} / 2 * loaded;
    if (p.length >= 32768 || (p.length >= worth_a_block && (repair || p.outputs < wanted / 32))) {
      g.team = reduce_threads;
    } else {
      // About 32 terms for each lane: enough to pay for the merging.
      g.team = 32;
      while (!repair && g.team > 1 && std::int64_t{g.team} * 32 > p.length) g.team /= 2;
    }
    const std::int64_t portion = std::int64_t{g.team} * loaded;
    const std::int64_t most = std::max<std::int64_t>(1, p.length / portion);
    // outputs * team may overflow for absurd sizes only in theory: outputs < 2^62 / sizeof(T).
    // Repairs expect few of the outputs to be marked, and cut each into more pieces, as far as their results have room.
    const std::int64_t have = std::min(repair ? ceil_div(p.outputs, 256) : p.outputs, wanted) * g.team;
    const std::int64_t room = repair ? std::max<std::int64_t>(1, wanted / p.outputs) : most;
    // Blocks that share an output: as many as run at once, where these can be divided among few outputs.
    const std::int64_t at_once = repair || g.team < reduce_threads ? 0 : wanted / 8 * 3 / have;
    const std::int64_t chunks =
        std::clamp<std::int64_t>(at_once >= 4 ? at_once : wanted / have, 1, std::min(most, room));
    cut_length(g, chunks, p);
    const std::int64_t teams = std::int64_t{device.multiprocessors} * repair_blocks * reduce_threads / g.team;
    g.words = static_cast<int>(std::clamp<std::int64_t>(ceil_div(p.outputs, 32) * g.chunks / teams, 1, 32));
    g.packed = p.reduced_rank > 0;
    g.side_by_side = p.reduced_rank == 1;
    for (int k = 0; k < p.inputs; ++k) {
      g.side_by_side = g.side_by_side && g.reduced.stride[k][0] == 1;
      g.packed = g.packed && reinterpret_cast<std::uintptr_t>(p.in[k].data) % 16 == 0 && g.reduced.stride[k][0] == 1 &&
                 (p.reduced_rank == 1 || g.reduced.size[0] % pack == 0);
      for (int d = 1; d < p.reduced_rank; ++d) g.packed = g.packed && g.reduced.stride[k][d] % pack == 0;
      for (int d = 0; d < p.kept_rank; ++d) g.packed = g.packed && g.kept.stride[k][d] % pack == 0;
    }
  }
  return g;
}

// Few sums have two blocks on a multiprocessor, one for each output, whose threads repair it by at most 1024 terms
// each; longer ones fill the device. Of short sums, at most 64 terms for each thread, such blocks do everything.
std::int64_t longest_of_few(const properties& device) {
  return std::min<std::int64_t>(262144, std::int64_t{device.multiprocessors} * 2048);
}
constexpr std::int64_t longest_short = 16384;
bool are_few(const plan::reduce_plan& p, const properties& device) {
  return p.is_tested() && p.outputs <= 2 * std::int64_t{device.multiprocessors} && !device.choice.wide;
}

}  // namespace

reduce_cut cut_reduction(const plan::reduce_plan& p, const properties& device) {
  reduce_cut c{};
  c.first = describe(p, device, false);
  const bool few = are_few(p, device);
  const bool is_long = p.length > longest_of_few(device);
  if (few && !is_long && p.length <= longest_short && (!c.first.columns || p.length < 32)) {
    c.first.columns = false;
    c.first.team = reduce_threads;
    c.first.chunks = 1;
    c.first.chunk_length = p.length;
  }
  c.is_few = few && !is_long && (c.first.chunks > 1 || c.first.team == reduce_threads);
  c.is_long = few && is_long && c.first.chunks > 1;
  if (p.is_tested() && !c.is_few) c.repair = describe(p, device, true);
  if (c.is_long) {  // as many blocks as run at once
    cut_length(c.repair, std::max<std::int64_t>(1, std::int64_t{device.multiprocessors} * repair_blocks / p.outputs),
               p);
  }
  return c;
}

// At most four times as many blocks as run at once, with as much for each.
std::int64_t item_blocks(const reduce_geometry& g, int resident, const properties& device) {
  const std::int64_t blocks =
      std::max<std::int64_t>(1, ceil_div(g.outputs * g.chunks * g.team / (g.paired ? 2 : 1), reduce_threads));
  const std::int64_t most = ceil_div(blocks, std::int64_t{device.multiprocessors} * 4 * resident);
  return ceil_div(blocks, most);
}

unsigned repair_grid(const reduce_geometry& g, const properties& device) {
  const std::int64_t items = ceil_div(ceil_div(g.outputs, 32), g.words) * g.chunks;
  return grid_for(device, ceil_div(items * g.team, reduce_threads), repair_blocks);
}

}  // namespace repdl::cuda
