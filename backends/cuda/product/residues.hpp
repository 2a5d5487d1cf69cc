// A matrix product by residues (librepdl/num/residues.hpp), on the matrix units for 8-bit integers of compute capability 9.0: what its launches share.
//
// Launches: squares of all lines' norms; planes of residues, one of each modulus, and the squares of what was rounded away; what is known of
// lines; the product, with the rounding test; a repair of the outputs that it leaves marked. Where the data have exponents too far apart, so that
// too much is rounded away, the product leaves everything to the engine of binary64 (matmul.cu), whose launches are there, too, and end at
// once where it does not (residue_choice).
#pragma once

#include <cstdint>

#include "backends/cuda/product/matmul.hpp"
#include "backends/cuda/product/residue_cut.hpp"
#include "librepdl/num/residues.hpp"

namespace repdl::cuda {

// Rows first .. first + lines - 1 of an operand (operand_source: columns of b are rows), whose planes are there.
struct residue_piece {
  std::int64_t first, lines;
  std::int64_t panels;  // of lines, an even number
};
struct residue_operand {
  operand_source source;
  bool packed;  // rows are side by side and aligned: 16 bytes at a time
  double limit;
  std::int64_t k_panels;
  int moduli;
  std::int8_t*
      planes;  // [batch][modulus][row panel][k panel][128][128], 16 bytes of a row at 16 (place ^ row % 8) of its 128
  num::residue_line* lines;  // per batch and row of the source
  double* squares;           // likewise; then as many of what rounding took
  unsigned* lattice;         // likewise: 1024 - lsb; 0: zeros only
  double* ratio;             // the sum of residual / norm over all lines

  __host__ __device__ std::int64_t all_lines() const { return source.rows * source.batches; }
};

struct residue_product {
  residue_operand a, b;
  residue_piece rows, columns;
  num::residue_system system;
  counter* open;  // outputs that are left
  product p;      // outputs, bias, marks and the choice
};

// `counts`: what rounding takes is not known yet of these lines (planes), and the choice depends on them (lines).
void launch_squares(const residue_operand&, const job&);
void launch_planes(const residue_operand&, const residue_piece&, bool counts, const job&);
void launch_lines(const residue_operand&, const residue_piece&, bool counts, const job&);
void launch_residues(const residue_product&, const residue_cut&, const job&);

}  // namespace repdl::cuda
