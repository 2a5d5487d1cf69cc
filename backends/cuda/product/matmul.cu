// The exact matrix product: out = RN(alpha a b + beta bias), by one of two engines, which give the same bits: binary64 on the fp64 matrix unit
// (matmul_tiles.cu), in one launch, or residues (residues.hpp). The launch of the former follows those of the latter, and ends at once where they did it.
#include <cassert>
#include <cmath>

#include "backends/cuda/product/matmul.hpp"
#include "backends/cuda/product/residues.hpp"
#include "librepdl/dispatch/widened_product.hpp"

namespace repdl::cuda {
namespace {

operand_source source_of(const plan::product_plan& p, bool second) {
  const plan::product_plan::operand<const void>& m = second ? p.b : p.a;
  operand_source s{};
  s.data = m.begin();
  s.type = m.type;
  s.k = p.term.count;
  s.rows = (second ? p.column : p.row).count;
  s.row_stride = m.outer[0];
  s.k_stride = m.inner[0];
  s.batch.set_shape(p.batch.rank, p.batch.shape);
  s.batch.set_stride(0, m.batch);
  s.batches = m.is_shared(p.batch) ? 1 : p.batch.count;
  return s;
}

class product_work final : public planned {
 public:
  product_work(const plan::product_plan& p, const job& given)
      : planned(given), by_residues_(goes_by_residues(p, j.device)), tiles_(cut_product(p, j.device)) {
    p_.source_a = p_.near_a = source_of(p, false);
    p_.source_b = p_.near_b = source_of(p, true);
    p_.m = p.row.count;
    p_.n = p.column.count;
    p_.k = p.term.count;
    p_.batches = p.batch.count;
    p_.type = p.out.type;
    p_.is_scaled = p.is_scaled();
    p_.alpha = p.alpha;
    p_.beta = p.beta;
    p_.bias = p.bias.data == nullptr ? nullptr : p.bias.begin();
    p_.bias_row = p.bias.outer[0];
    p_.bias_col = p.bias.inner[0];
    p_.out = p.out.begin();
    p_.out_row = p.out.outer[0];
    p_.out_col = p.out.inner[0];
    p_.batch.set_shape(p.batch.rank, p.batch.shape);
    p_.batch.set_stride(0, p.out.batch);
    p_.batch.set_stride(1, p.bias.batch);
    // Beyond some sizes the bound of the first tier is not proved; the others' still are.
    p_.first_tier = tiles_.is_proved ? j.first_tier : std::max(j.first_tier, tier::double_double);
    if (!by_residues_) return;
    plan_residues(p);
    space.take(p_.list, static_cast<std::int64_t>(p_.choice.few));
    take_planes(false);
    take_planes(true);
    space.take(zeros_, zero_bytes());
  }

 private:
  const operand_source& source(bool second) const { return second ? p_.source_b : p_.source_a; }
  std::int64_t piece_of(bool second) const { return std::min(second ? cut_.columns : cut_.rows, source(second).rows); }
  std::int64_t all_lines(bool second) const { return source(second).rows * source(second).batches; }

  void plan_residues(const plan::product_plan& p) {
    cut_ = cut_residues(p, j.device);
    // Of sums of K products of normally distributed numbers, or of their cubes, about 9 r 2^bits sqrt(K) are left open, r the sum of both operands' means of
    // residual / norm: within a third, where a hundredth is. They are those near 0; where terms do not cancel there are fewer.
    const double open_of_ratio = std::ldexp(9, p_.type == dtype::f32   ? 24
                                               : p_.type == dtype::f16 ? 11
                                                                       : 8) *
                                 std::sqrt(static_cast<double>(p_.k));
    for (const bool second : {false, true}) {
      const auto lines = static_cast<double>(piece_of(second) * source(second).batches);
      (second ? p_.choice.scale_b : p_.choice.scale_a) = open_of_ratio / lines;
    }
    // Matters of speed: where a 64th of the outputs is left to the repair, residues take about as long as binary64; few of them are listed, in 32 MiB at most.
    constexpr double most_open = 0x1p-6;
    const double outputs = static_cast<double>(p_.m) * static_cast<double>(p_.n) * static_cast<double>(p_.batches);
    p_.choice.most_open = j.device.choice.engine == product_engine::residues ? num::infinity : most_open;
    p_.choice.few = j.device.choice.split ? 0 : static_cast<counter>(std::clamp(most_open * outputs, 0x1p16, 0x1p22));
  }
  void take_planes(bool second) {
    space.take(planes_[second], source(second).batches, cut_.moduli, panels_of(piece_of(second)), cut_.k_panels,
               residue_panel * residue_panel);
    if (cut_.copied[second]) {
      space.take(copies_[second], all_lines(second), pitch_of_copies(), size_of(source(second).type));
    }
  }
  static std::int64_t panels_of(std::int64_t lines) { return round_up(ceil_div(lines, residue_panel), 2); }
  std::int64_t pitch_of_copies() const { return cut_.k_panels * residue_panel; }
  // The ratios of both operands, how many outputs are open; the squares, twice, and lattices of all lines.
  std::int64_t zero_bytes() const { return 3 * 8 + (all_lines(false) + all_lines(true)) * (2 * 8 + 4); }

  void enqueue() override {
    if (by_residues_) {
      check(cudaMemsetAsync(zeros_, 0, static_cast<std::size_t>(zero_bytes()), j.stream), "matmul", "cudaMemsetAsync");
      enqueue_residues();
      launch_repair(p_, j);
    } else {
      p_.near_packed = is_packed(p_.near_a) && is_packed(p_.near_b);
    }
    launch_tiles(p_, tiles_, j);
  }

  // In pieces, where not all planes fit at once: on the lines of the first ones it depends whether residues are worth it.
  void enqueue_residues() {
    residue_product r{};
    r.system = num::residue_system_of(cut_.moduli);
    auto* const ratios = reinterpret_cast<double*>(zeros_);
    double* squares = ratios + 3;
    auto* lattices = reinterpret_cast<unsigned*>(squares + 2 * (all_lines(false) + all_lines(true)));
    p_.choice.ratios = ratios;
    p_.choice.open = reinterpret_cast<counter*>(ratios + 2);
    for (const bool second : {false, true}) {
      residue_operand& o = second ? r.b : r.a;
      o.source = source(second);
      o.packed = is_packed(o.source);
      o.k_panels = cut_.k_panels;
      o.moduli = cut_.moduli;
      o.planes = planes_[second];
      o.copy = copies_[second];
      o.lines = {squares, lattices, all_lines(second),
                 num::residue_limit(r.system.limit, std::sqrt(static_cast<double>(p_.k)) * (1 + 0x1p-50))};
      o.ratio = ratios + second;
      squares += 2 * all_lines(second);
      lattices += all_lines(second);
      (second ? p_.lines_b : p_.lines_a) = o.lines;
      (second ? p_.near_b : p_.near_a) = cut_.copied[second] ? copy_of(o) : o.source;
    }
    p_.near_packed = is_packed(p_.near_a) && is_packed(p_.near_b);
    r.p = p_;
    launch_squares(r.a, r.b, j);
    const auto piece = [&](std::int64_t first, bool second) {
      const std::int64_t lines = std::min(piece_of(second), source(second).rows - first);
      return residue_piece{first, lines, panels_of(lines)};
    };
    const bool is_whole = piece_of(false) == p_.m;
    for (std::int64_t col = 0; col < p_.n; col += piece_of(true)) {
      conversion of_b{r.b, r.columns = piece(col, true), true, col == 0};
      for (std::int64_t row = 0; row < p_.m; row += piece_of(false)) {
        r.rows = piece(row, false);
        conversion of_a{r.a, r.rows, col == 0, col == 0 && row == 0};
        if (is_whole && col > 0) of_a.piece.lines = 0;
        launch_planes(of_a, of_b, j);
        of_b.piece.lines = 0;
        launch_residues(r, cut_, j);
      }
    }
  }
  // An operand with its rows in a row, and their terms.
  operand_source copy_of(const residue_operand& o) const {
    operand_source s = o.source;
    s.data = o.copy;
    s.row_stride = pitch_of_copies();
    s.k_stride = 1;
    std::int64_t step = s.batches == 1 ? 0 : s.rows * s.row_stride;
    for (int d = 0; d < s.batch.rank; ++d) {  // axes lie innermost first
      s.batch.stride[0][d] = step;
      step *= s.batch.size[d];
    }
    return s;
  }
  // 16 bytes at a time.
  static bool is_packed(const operand_source& s) {
    const auto unit = static_cast<std::int64_t>(16 / size_of(s.type));
    bool is = s.k_stride == 1 && s.row_stride % unit == 0 && reinterpret_cast<std::uintptr_t>(s.data) % 16 == 0;
    for (int d = 0; d < s.batch.rank; ++d) is = is && s.batch.stride[0][d] % unit == 0;
    return is;
  }

  const bool by_residues_;
  const product_cut tiles_;
  product p_{};
  residue_cut cut_{};
  std::int8_t* planes_[2]{};
  std::byte* copies_[2]{};
  std::byte* zeros_ = nullptr;
};

}  // namespace

void prepare(const plan::product_plan& p, const job& j, dispatch::task& t) {
  assert(p.has_matrices());
  if (p.accumulate == accumulate::fma_chain) return prepare_fma_chain(p, j, t);
  if (plan::is_widened(p)) {
    const auto driver = [j](const auto& plan, const dispatch::subject& what, dispatch::task& to) {
      job of_part = j;
      of_part.what = what;
      prepare(plan, of_part, to);
    };
    t.emplace<dispatch::widened_product_work<plan::product_plan, decltype(driver)>>(p, driver);
    return;
  }
  const bool is_forced = j.device.choice.engine != product_engine::any && p.out.type != dtype::f64;
  if (!is_forced && goes_by_dots(p, j.self_test)) return prepare(plan::dots_of(p), j, t);
  t.emplace<product_work>(p, j);
}

}  // namespace repdl::cuda
