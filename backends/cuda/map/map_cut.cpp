#include "backends/cuda/map/map_cut.hpp"

#include <algorithm>

namespace repdl::cuda {

bool has_room_for_table(const properties& device) { return shared_limit(device) >= 2 * table_size; }
bool has_room_for_factors(const properties& device) { return shared_limit(device) >= 4 * most_factors + 20480; }

bool may_use_table(const plan::map_plan& p, const properties& device) {
  return p.arity == 1 && size_of(p.in_type) == 2 && p.out_type == p.in_type && p.rank == 1 &&
         (p.count >= (std::int64_t{1} << 24) || device.choice.wide) && has_room_for_table(device);
}

bool may_use_factors(const plan::map_plan& p, const properties& device, tier first) {
  // In tests the others have their turn with fewer elements.
  const std::int64_t least = device.choice.wide ? greatest_block : std::int64_t{1} << 22;
  constexpr std::int64_t past = (std::int64_t{1} << 32) - 4;  // places are of 32 bits, in fours
  return size_of(p.in_type) == 2 && p.rank == 1 && p.count >= least && p.count < past && first <= tier::binary64 &&
         has_room_for_factors(device);
}

bool notes_undecided(std::int64_t count, const properties& device, tier first) {
  constexpr std::int64_t few = 1024;
  return device.choice.wide || (count > few && first <= tier::binary64);
}

int rounds_of(std::int64_t count, std::int64_t at_once, const properties& device) {
  const std::int64_t blocks = device.choice.wide ? 1 : 16 * device.multiprocessors;
  return static_cast<int>(std::clamp<std::int64_t>(std::max<std::int64_t>(1, ceil_div(count, at_once)) / blocks, 1,
                                                   greatest_block / at_once));
}

std::int64_t settled_words(std::int64_t count, std::int64_t noted, int threads, const properties& device) {
  if (noted == 0) return threads / 32;
  const std::int64_t blocks = ceil_div(count, noted);
  return std::clamp<std::int64_t>(blocks / (device.multiprocessors * 8), 1, threads) * (noted / 32);
}

std::int64_t most_strided(const properties& device) { return device.choice.wide ? 100 : (std::int64_t{1} << 31) - 1; }

}  // namespace repdl::cuda
