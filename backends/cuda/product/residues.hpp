// A matrix product by residues (librepdl/num/residues.hpp), on the matrix units for 8-bit integers of compute capability 9.0: what its launches share.
//
// Launches: squares of all lines' norms; planes of residues, one of each modulus, and the squares of what was rounded away, both operands at a
// time; the product, with the rounding test; a repair of the outputs that it leaves and lists. Where the data have exponents too far apart, so that
// too much is rounded away, or so much cancels that the list is too short, the engine of binary64 (matmul_tiles.cu) does everything: its launch is there, too,
// and ends at once where it has nothing to do (residue_choice).
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
  std::int64_t k_panels;
  int moduli;
  // [batch][modulus][row panel][k panel][128][128], 16 bytes of a row at 16 (place ^ row % 8) of its 128; a panel's terms in an order that both operands have
  std::int8_t* planes;
  void* copy;  // [batch][row][k_panels * 128], in the source's format; null: none is made
  residue_lines lines;
  double* ratio;  // the sum of about residual / norm over the lines of the first piece
};

struct residue_product {
  residue_operand a, b;
  residue_piece rows, columns;
  num::residue_system system;
  product p;  // outputs, bias, marks and the choice
};

void launch_squares(const residue_operand& a, const residue_operand& b, const job&);
// A piece of an operand that becomes planes. `is_new`: for the first time, so that copies are made and lines are learned from; `chooses`: the choice
// depends on them.
struct conversion {
  residue_operand operand;
  residue_piece piece;
  bool is_new, chooses;
};
// Both, or, with no lines in it, one of them.
void launch_planes(const conversion& a, const conversion& b, const job&);
void launch_residues(const residue_product&, const residue_cut&, const job&);

}  // namespace repdl::cuda
