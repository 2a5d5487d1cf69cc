#include "backends/cuda/product/residue_cut.hpp"

#include <algorithm>

#include "librepdl/plan/checked_size.hpp"

namespace repdl::cuda {
namespace {

constexpr std::int64_t planes_bytes = std::int64_t{1} << 30;

// So that about one output in a thousand is left to the repair, of normally distributed numbers; more terms need more moduli, as a sum of many is
// small beside the product of norms.
int moduli_for(std::int64_t k) { return k <= 1024 ? 10 : k <= 16384 ? 11 : 12; }

std::int64_t panels_of(std::int64_t lines) { return round_up(ceil_div(lines, residue_panel), 2); }

}  // namespace

bool goes_by_residues(const plan::product_plan& p, const properties& device) {
  if (device.capability != 90 || p.out.type != dtype::f32 || p.accumulate != plan::accumulate_kind::exact) return false;
  if (p.term.count < 1 || p.term.count > greatest_residue_k || device.choice.wide) return false;
  if (device.choice.engine == dispatch::engine_choice::residues) return true;
  if (device.choice.engine != dispatch::engine_choice::any) return false;
  // What every output costs beside its terms, and a launch, asks for long sums and many of them.
  constexpr double least_work = 0x1p32;
  const double work = static_cast<double>(p.row.count) * static_cast<double>(p.column.count) *
                      static_cast<double>(p.term.count) * static_cast<double>(p.batch.count);
  return work >= least_work && p.row.count >= 512 && p.column.count >= 512 && p.term.count >= 2048;
}

residue_cut cut_residues(const plan::product_plan& p, const properties& device) {
  residue_cut c{};
  c.moduli = moduli_for(p.term.count);
  c.k_panels = ceil_div(p.term.count, residue_panel);
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
  if (!fits(all(p.row.count) + all(p.column.count), planes_bytes)) {
    if (fits(all(p.column.count), planes_bytes / 4 * 3)) {
      c.rows = piece(p.row.count, planes_bytes - static_cast<std::int64_t>(all(p.column.count).value()));
    } else if (fits(all(p.row.count), planes_bytes / 4 * 3)) {
      c.columns = piece(p.column.count, planes_bytes - static_cast<std::int64_t>(all(p.row.count).value()));
    } else {
      c.rows = piece(p.row.count, planes_bytes / 2);
      c.columns = piece(p.column.count, planes_bytes / 2);
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
