// How elementwise operations (map.cu) are cut, and what their calls take besides.
#pragma once

#include <cstdint>

#include "backends/cuda/core/device.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cuda {

// All results of a function of 16 bits.
inline constexpr std::int64_t table_size = 1 << 16;
// The longest table of factors.
inline constexpr std::int64_t most_factors = 2 * ((17 << 10) + 2);
// Elements of a block.
inline constexpr std::int64_t least_block = 1024, greatest_block = 16384;

bool has_room_for_table(const properties& device);
// Whether the kernel may have them beside its lists and their lengths, 16.1 KiB for 1024 threads.
bool has_room_for_factors(const properties& device);
// Whether a call has a table of all results in its workspace, or of factors; fewer elements are done sooner without.
bool may_use_table(const plan::map_plan& p, const properties& device);
bool may_use_factors(const plan::map_plan& p, const properties& device, tier first);
// Whether what the rounding tests of a call leave undecided is noted. Else all elements are undecided, because they are few, or the tests are
// skipped.
bool notes_undecided(std::int64_t count, const properties& device, tier first);

// How often a block takes `at_once` elements, where it may take them in rounds: so that there are several blocks for each
// multiprocessor.
int rounds_of(std::int64_t count, std::int64_t at_once, const properties& device);
// Words of 32 elements that a block of `threads` threads settles. noted: elements of the blocks that left them undecided; 0: of all.
std::int64_t settled_words(std::int64_t count, std::int64_t noted, int threads, const properties& device);

// How many elements a launch with strides takes. Wide: what huge operands do, on small ones.
std::int64_t most_strided(const properties& device);

}  // namespace repdl::cuda
