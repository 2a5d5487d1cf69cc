// How a product goes by residues (residues.hpp): whether it does, with how many moduli, in which pieces, and which blocks share a tile.
#pragma once

#include <cstdint>

#include "backends/cuda/core/device.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cuda {

inline constexpr int residue_panel = 128;  // rows, and terms, of a panel of one modulus: a byte each
inline constexpr std::int64_t greatest_residue_k = std::int64_t{1}
                                                   << 16;  // so that sums of 8-bit products stay below 2^30

struct residue_cut {
  int moduli;
  bool copied[2];  // an operand whose terms are not side by side, for the repair, which reads lines
  std::int64_t k_panels;
  std::int64_t rows, columns;  // of a piece, whose planes are there at a time: all, or a multiple of two panels
  int shared;  // blocks that have the same tile, each for some of the moduli: 2 or 4; 1: pairs have neighbouring tiles
};
// Whether residues may be faster, on this device, where the data allow it.
bool goes_by_residues(const plan::product_plan& p, const properties& device);
residue_cut cut_residues(const plan::product_plan& p, const properties& device);

}  // namespace repdl::cuda
