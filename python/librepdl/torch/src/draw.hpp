// Random numbers: the key is the generator's seed, the stream one 64-bit draw of the CPU's generator for each call, whatever the
// device. So a seed gives the same numbers everywhere, and a generator's state can be saved and restored as ever.
#pragma once

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>

#include "door.hpp"

namespace repdl_torch {

/// Of a call, whose argument `generator` may be one; -1: the default one.
struct draw {
  int64_t seed, stream;
  draw(const call& c, int generator, at::Device where) {
    TORCH_CHECK(!is_capturing(where), "librepdl: ", c.what().name,
                ": not while a CUDA graph is captured: each replay would draw the same");
    std::optional<at::Generator> given;
    if (generator >= 0 && c.has(generator)) given = c.value(generator).toGenerator();
    TORCH_CHECK(!given || given->device().is_cpu(),
                "librepdl: generator: expected one of the CPU, also for draws on a GPU, got one on ", given->device());
    auto* const g = at::get_generator_or_default<at::CPUGeneratorImpl>(given, at::detail::getDefaultCPUGenerator());
    const std::lock_guard<std::mutex> lock(g->mutex_);
    seed = static_cast<int64_t>(g->current_seed());
    stream = static_cast<int64_t>(g->random64());
  }
  attribute attr_seed() const { return {"seed", seed}; }
  attribute attr_stream() const { return {"stream", stream}; }
};

}  // namespace repdl_torch
