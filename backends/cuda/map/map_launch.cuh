// Which kernels an operation is launched with.
#pragma once

#include "backends/cuda/map/map_factor.cuh"
#include "backends/cuda/map/map_kernels.cuh"
#include "backends/cuda/map/map_table.cuh"

namespace repdl::cuda {
namespace {

// Makes contiguous operands begin where the output is a multiple of some bytes, and says how they lie then.
template <class F>
packing pack_operands(operands<F>& p, std::size_t bytes) {
  packing made{0, static_cast<int>(reinterpret_cast<std::uintptr_t>(p.out) % bytes / sizeof(typename F::output)), true};
  p.out = static_cast<typename F::output*>(p.out) - made.skip;
  p.axes.stride[F::arity][0] = 1;
  for (int a = 0; a < F::arity; ++a) {
    p.axes.stride[a][0] = 1;
    if (p.in[a] == nullptr) continue;
    const std::size_t size = is_boolean<F>(a) ? 1 : sizeof(typename F::input);
    p.in[a] = static_cast<const std::byte*>(p.in[a]) - made.skip * static_cast<std::ptrdiff_t>(size);
    made.aligned = made.aligned && aligned_input<F>(p.in[a], a);
  }
  p.count += made.skip;
  made.end = (made.aligned ? p.count : p.count - 1) / batch;
  return made;
}

// Launches what decides the elements that a kernel before left undecided, in blocks of `noted` elements; 0: of all elements.
template <class F>
void settle_after(const operands<F>& p, const job& j, bool line, std::int64_t noted) {
  if constexpr (settles_late<F>) {
    const std::int64_t words = ceil_div(p.count, 32);
    const std::int64_t each = settled_words(p.count, noted, settle_threads, j.device);
    launch_kernel<map_settle<F>>(j, ceil_div(words, each), settle_threads, 0, p, line, each, noted / 32, j.counters);
  }
}

// Whether it was.
template <class F>
bool launch_with_factors([[maybe_unused]] const operands<F>& p, [[maybe_unused]] bool contiguous,
                         [[maybe_unused]] const job& j, [[maybe_unused]] const map_space& space) {
  if constexpr (has_factor<F>) {
    if (!has_room_for_factors(j.device)) {
      pass_over<make_factors<F>>(j);
      pass_over<map_factor<F>>(j);
    }
    if (space.factors == nullptr || has_number(p)) return false;
    constexpr auto bytes = sizeof(float) * factor_table<typename F::input>::size;
    operands<F> q = p;
    const packing packs = contiguous ? pack_operands(q, sizeof(pack<typename F::input>)) : packing{};
    launch_kernel<make_factors<F>>(j, grid_for(j.device, ceil_div(q.count / 32 + 32768, threads), 8), threads, 0, q,
                                   space.factors);
    launch_kernel<map_factor<F>>(j, grid_for(j.device, ceil_div(q.count, factor_threads * 8), factor_blocks),
                                 factor_threads, bytes, q, static_cast<const float*>(space.factors), contiguous, packs,
                                 j.counters);
    settle_after(q, j, true, greatest_block);
    return true;
  }
  return false;
}

// contiguous: all strides are 1, where there is more than one element.
template <class F>
void launch_operands(operands<F>& p, bool contiguous, const job& j, [[maybe_unused]] const map_space& space) {
  constexpr bool tabulated = tabulated_operation<F>;
  const bool rank_1 = p.count == 1 || p.axes.rank == 1;
  const auto strided = [&](const auto& launch_part) {
    in_parts(p, sizeof(typename F::output), most_strided(j.device), launch_part);
  };
  if constexpr (settles_late<F>) {
    p.skip_test = j.first_tier > F::first;
    p.last_tier_bits = j.last_tier_bits;
    p.undecided = space.undecided;
    if (p.undecided.words == nullptr) {
      if (rank_1) return settle_after(p, j, true, 0);
      return strided([&](const operands<F>& part) { settle_after(part, j, false, 0); });
    }
  }
  if constexpr (tabulated) {
    if (!has_room_for_table(j.device)) {
      pass_over<make_table<F>>(j);
      pass_over<map_table<F>>(j);
    }
    if (space.table != nullptr) {
      operands<F> q = p;
      const packing vectors = contiguous ? pack_operands(q, sizeof(uint4)) : packing{};
      launch_kernel<make_table<F>>(j, table_size / threads, threads, 0, p, space.table);
      launch_kernel<map_table<F>>(j, grid_for(j.device, ceil_div(p.count, table_threads), 1), table_threads,
                                  2 * table_size, q, space.table, contiguous, vectors.skip, j.counters);
      return;
    }
  }
  const auto rounds_for = [&](std::int64_t count, int elements, bool many) {
    return many ? rounds_of(count, threads * elements, j.device) : 1;
  };
  if (launch_with_factors(p, contiguous, j, space)) return;
  if (contiguous) {
    constexpr int elements = batch * packs_per_thread<F>;
    const packing packs = pack_operands(p, alignof(pack<typename F::output>));
    const int rounds = rounds_for(p.count, elements, reads_ahead<F>);
    launch_kernel<map_packed<F>>(j, blocks_of(p.count, elements * rounds), threads, 0, p, packs, rounds, j.counters);
    settle_after(p, j, true, threads * elements * rounds);
  } else if (!tabulated && rank_1 && !can_pack(p)) {
    if constexpr (!tabulated) {
      constexpr int elements = batch * packs_per_line<F>;
      const int rounds = rounds_for(p.count, elements, tries_together<F>);
      launch_kernel<map_line<F>>(j, blocks_of(p.count, elements * rounds), threads, 0, p, rounds, j.counters);
      settle_after(p, j, true, threads * elements * rounds);
    }
  } else {
    strided([&](const operands<F>& part) {
      const int rounds = rounds_for(part.count, batch, tries_together<F>);
      launch_kernel<map_strided<F>>(j, blocks_of(part.count, batch * rounds), threads, 0, part, can_pack(part), rounds,
                                    j.counters);
      settle_after(part, j, false, threads * batch * rounds);
    });
  }
}

}  // namespace
}  // namespace repdl::cuda
