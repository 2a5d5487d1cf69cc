#include "backends/cuda/product/residue_cut.hpp"

#include <algorithm>

#include "librepdl/num/residues.hpp"
#include "librepdl/plan/checked_size.hpp"

namespace repdl::cuda {
namespace {

constexpr std::int64_t planes_bytes = std::int64_t{1} << 30;

constexpr std::int64_t copy_bytes = std::int64_t{1} << 28;  // of an operand, at most

// So that one output in 500 or fewer is left to the repair, of normally distributed numbers: a sum of many terms is small beside the
// product of norms, and wants more bits; a modulus has 8 of them. It takes as long as the repair of one output in 500 (of 8192 terms) to 2500 (of 768), and
// where tails are heavy it is what keeps a product with residues. (Of products of integers in shorter formats little is rounded away.)
int moduli_for(std::int64_t k, dtype out) {
  switch (out) {
    case dtype::bf16:
      return k <= 1024 ? 6 : k <= 16384 ? 7 : 8;
    case dtype::f16:
      return k <= 1024 ? 7 : k <= 16384 ? 8 : 9;
    default:
      return k <= 4096 ? 11 : 12;
  }
}

std::int64_t panels_of(std::int64_t lines) { return round_up(ceil_div(lines, residue_panel), 2); }

}  // namespace

bool goes_by_residues(const plan::product_plan& p, const properties& device) {
  if (device.capability != 90 || p.out.type == dtype::f64 || p.accumulate != plan::accumulate_kind::exact) return false;
  if (p.term.count < 1 || p.term.count > greatest_residue_k || device.choice.wide) return false;
  constexpr plan::checked_size most_lines = std::int64_t{1} << 31;  // a list of outputs has 32 bits for each
  if (plan::checked_size::product(p.row.count, p.batch.count) > most_lines || p.column.count > most_lines) return false;
  if (device.choice.engine == product_engine::residues) return true;
  if (device.choice.engine != product_engine::any) return false;
  // What every output costs beside its terms, and launches, ask for long sums and many of them.
  constexpr double least_work = 0x1p31;
  constexpr std::int64_t least_lines = 256;
  const double work = static_cast<double>(p.row.count) * static_cast<double>(p.column.count) *
                      static_cast<double>(p.term.count) * static_cast<double>(p.batch.count);
  return work >= least_work && p.row.count >= least_lines && p.column.count >= least_lines && p.term.count >= 512;
}

residue_cut cut_residues(const plan::product_plan& p, const properties& device) {
  residue_cut c{};
  c.moduli = moduli_for(p.term.count, p.out.type);
  c.k_panels = ceil_div(p.term.count, residue_panel);
  std::int64_t space = planes_bytes;
  for (const bool second : {false, true}) {
    const auto& o = second ? p.b : p.a;
    if (o.inner[0] == 1 || p.term.count == 1) continue;
    const auto bytes =
        plan::checked_size::product((second ? p.column : p.row).count, o.is_shared(p.batch) ? 1 : p.batch.count,
                                    c.k_panels * residue_panel, size_of(o.type));
    c.copied[second] = bytes.fits() && bytes.value() <= static_cast<std::size_t>(copy_bytes);
    if (c.copied[second]) {
      space -= static_cast<std::int64_t>(bytes.value());
    } else {
      c.moduli = std::min(c.moduli + 1, num::most_moduli);  // what is repaired costs more
    }
  }
  const std::int64_t line_bytes = c.k_panels * residue_panel * c.moduli;
  const auto all = [&](std::int64_t lines) {
    return plan::checked_size::product(panels_of(lines) * residue_panel, line_bytes, p.batch.count);
  };
  const auto fits = [](plan::checked_size s, std::int64_t bytes) {
    return s.fits() && s.value() <= static_cast<std::size_t>(bytes);
  };
  const auto piece = [&](std::int64_t lines, std::int64_t bytes) {
    const std::int64_t most = std::max<std::int64_t>(
        2 * residue_panel, bytes / line_bytes / p.batch.count / (2 * residue_panel) * (2 * residue_panel));
    return std::min(round_up(ceil_div(lines, ceil_div(lines, most)), 2 * residue_panel), most);
  };
  c.rows = p.row.count;
  c.columns = p.column.count;
  if (!fits(all(p.row.count) + all(p.column.count), space)) {
    if (fits(all(p.column.count), space / 4 * 3)) {
      c.rows = piece(p.row.count, space - static_cast<std::int64_t>(all(p.column.count).value()));
    } else if (fits(all(p.row.count), space / 4 * 3)) {
      c.columns = piece(p.column.count, space - static_cast<std::int64_t>(all(p.row.count).value()));
    } else {
      c.rows = piece(p.row.count, space / 2);
      c.columns = piece(p.column.count, space / 2);
    }
  }
  if (device.choice.split) c.rows = c.columns = 2 * residue_panel;
  const std::int64_t tiles = ceil_div(std::min(c.rows, p.row.count), residue_panel) *
                             ceil_div(std::min(c.columns, p.column.count), residue_panel) * p.batch.count;
  c.shared = tiles * 4 <= device.multiprocessors ? 4 : tiles * 2 <= device.multiprocessors ? 2 : 1;
  if (device.choice.tile >= 0) c.shared = device.choice.tile == 1 ? 2 : device.choice.tile == 2 ? 4 : 1;
  return c;
}

}  // namespace repdl::cuda
