// The exact matrix product: out = RN(alpha a b + beta bias), decided in binary64 by the fp64 tensor cores wherever
// their bound allows.
//
// Method: factors of 24 bits have exact binary64 products, so a fp64 engine in any order has a small proved error, and
// a rounding test in the epilogue decides most outputs (certify.hpp). Launches: pack both operands (matmul_pack.cu),
// the product, and a repair kernel (matmul_repair.cu) that works off the bitmap of undecided outputs.
//
// Error of the engine, under the assumptions (D1), (D2) of mma.cuh, u_D = 2u: k is cut into blocks; the block sums,
// chains of at most L additions each, are added one after the other. A product passes at most H = L + blocks additions:
//     |s - S| <= ((1 + 2u)^H - 1) sum|a_k b_k| <= 2H u (1 + 2^-31) |a||b|                         for H <= 2^20,
//     e = dot_bound(2H + 4, A, B) = fl((2H + 8) u A B).
// (C) of certify.hpp: e(1 - u) >= |s - S| + u|s|, |s| <= |a||b|(1 + 2^-30), and A B falls short of |a||b| by at most
// (K + 6) u <= 2^-27 + 6u for K <= 2^26 (line_summary.cuh, squares in binary64: of K additions, the lanes' and the
// parts' among them, and a root each), so (2H + 8)(1 - 2^-26) >= 2H(1 + 2^-31) + 1 + 2^-30 suffices: true.
// A bias c is added last, t = fl(s + c): |t - (S + c)| <= |s - S| + u|s + c|, and (C) takes another u|t| + u e' for the
// ends: e' = e + 4u(|s| + |c|) covers both. The lattice rule sees c as one more term. With factors c is none: s and e
// become alpha s + beta c and its bound (ops/sums/scaled_sum.hpp).
#include <cassert>
#include <cmath>

#include "backends/cuda/product/launch_next.cuh"
#include "backends/cuda/product/matmul.hpp"
#include "backends/cuda/product/mma.cuh"
#include "backends/cuda/product/residues.hpp"
#include "librepdl/num/sums.hpp"
#include "librepdl/ops/sums/scaled_sum.hpp"

namespace repdl::cuda {
namespace {

__device__ inline void copy_async(void* shared, const void* global) {
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Pending>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

// A block of warps_m x warps_n warps computes a tile of (warps_m 16 m_tiles) x (warps_n 8 n_tiles) outputs.
template <int WarpsM, int WarpsN, int MTiles, int NTiles, int Stages>
struct tile_shape {
  static constexpr int stages = Stages;  // panels of k in shared memory
  static constexpr int warps_n = WarpsN;
  static constexpr int m_tiles = MTiles;
  static constexpr int n_tiles = NTiles;
  static constexpr int threads = WarpsM * WarpsN * 32;
  static constexpr int rows = WarpsM * MTiles * 16;
  static constexpr int cols = WarpsN * NTiles * 8;
  static constexpr int stage_size = (rows + cols) * panel_k;  // numbers
  static constexpr int sums = MTiles * NTiles * 4;            // per thread
  static constexpr std::size_t shared_bytes = (stages * stage_size + sums * threads) * sizeof(double);
  static_assert(rows % panel_rows == 0 && cols % panel_rows == 0);
};
// 64 x 128, 112 KiB, 128 threads: two blocks share a multiprocessor of compute capability 9.0, so that one computes
// while the other waits at a barrier or rounds its results. One block of 128 x 128 was 15 % slower.
using large_tile = tile_shape<1, 4, 4, 4, 2>;
using small_tile = tile_shape<2, 2, 2, 4, 3>;  // 64 x 64, 80 KiB
template <class T>
constexpr bool has_size(tile_size s) {
  return T::rows == s.rows && T::cols == s.cols;
}
static_assert(has_size<large_tile>(large_tile_size) && has_size<small_tile>(small_tile_size));

// Tiles in an order in which blocks that run at the same time share panels: eight tile rows at a time.
template <class T>
__device__ void tile_of(const product& p, std::int64_t index, std::int64_t& row, std::int64_t& col,
                        std::int64_t& batch) {
  const std::int64_t rows = (p.m + T::rows - 1) / T::rows;
  const std::int64_t cols = (p.n + T::cols - 1) / T::cols;
  batch = index / (rows * cols);
  index -= batch * rows * cols;
  const std::int64_t group = index / (8 * cols);
  const std::int64_t first = group * 8;
  const std::int64_t height = min(rows - first, std::int64_t{8});
  index -= first * cols;
  row = first + index % height;
  col = index / height;
}

template <class T, class Format, bool Scaled>
__global__ void __launch_bounds__(T::threads, 1) product_kernel(const product p, counter* counters) {
  wait_for_former();
  if (p.choice.goes_by_residues()) return;
  extern __shared__ __align__(128) double shared[];
  double2* const blocks_sum = reinterpret_cast<double2*>(shared + T::stages * T::stage_size);
  std::int64_t tile_row;
  std::int64_t tile_col;
  std::int64_t batch;
  tile_of<T>(p, blockIdx.x, tile_row, tile_col, batch);
  const int tid = static_cast<int>(threadIdx.x);
  const int g = lane_of_thread() / 4;
  const int t = lane_of_thread() % 4;
  const int warp_row = tid / 32 / T::warps_n * T::m_tiles * 16;
  const int warp_col = tid / 32 % T::warps_n * T::n_tiles * 8;
  const int panels = static_cast<int>(p.a.k_panels);
  const std::int64_t row_panel = p.a.k_panels * panel_size;  // from one panel of rows to the next
  const double* from_a =
      p.a.data + (p.a.batch(batch) * p.a.row_panels + tile_row * (T::rows / panel_rows)) * row_panel + 2 * tid;
  const double* from_b =
      p.b.data + (p.b.batch(batch) * p.b.row_panels + tile_col * (T::cols / panel_rows)) * row_panel + 2 * tid;

  // Starts to copy the next panels of k into slot `to`.
  const auto fetch = [&](double* to) {
    constexpr int per_panel = panel_size / 2 / T::threads;  // units of 16 bytes that a thread copies
#pragma unroll
    for (int part = 0; part < (T::rows + T::cols) / panel_rows; ++part) {
      constexpr int a_parts = T::rows / panel_rows;
      const double* const source = part < a_parts ? from_a + part * row_panel : from_b + (part - a_parts) * row_panel;
#pragma unroll
      for (int i = 0; i < per_panel; ++i) {
        copy_async(to + part * panel_size + 2 * (i * T::threads + tid), source + 2 * i * T::threads);
      }
    }
    from_a += panel_size;
    from_b += panel_size;
  };

  double sum[T::m_tiles][T::n_tiles][4] = {};
  for (int s = 0; s < T::stages - 1; ++s) {
    if (s < panels) fetch(shared + s * T::stage_size);
    commit_copies();
  }
  const int lane = lane_of_thread();
  const int block_panels = static_cast<int>(p.block_panels);
  int in_block = 0;
  int slot = 0;
  int fill = T::stages - 1;
  bool has_blocks = false;
  for (int panel = 0; panel < panels; ++panel) {
    wait_for_copies<T::stages - 2>();
    __syncthreads();  // this panel is there, and everybody is done with the one whose place is filled next
    if (panel + T::stages - 1 < panels) fetch(shared + fill * T::stage_size);
    commit_copies();
    const double* const a = shared + slot * T::stage_size + warp_row * panel_k + 2 * lane;
    const double* const b = shared + slot * T::stage_size + (T::rows + warp_col) * panel_k + 2 * lane;
    slot = slot + 1 == T::stages ? 0 : slot + 1;
    fill = fill + 1 == T::stages ? 0 : fill + 1;
    double b_part[T::n_tiles][4];
#pragma unroll
    for (int j = 0; j < T::n_tiles; ++j) {
#pragma unroll
      for (int i = 0; i < 2; ++i) load_pair(b + j * 128 + i * 64, b_part[j][2 * i], b_part[j][2 * i + 1]);
    }
#pragma unroll
    for (int i = 0; i < T::m_tiles; ++i) {
      double a_part[8];
#pragma unroll
      for (int j = 0; j < 4; ++j) load_pair(a + i * 256 + j * 64, a_part[2 * j], a_part[2 * j + 1]);
#pragma unroll
      for (int j = 0; j < T::n_tiles; ++j) multiply_add(sum[i][j], a_part, b_part[j]);
    }
    if (++in_block == block_panels && panel + 1 < panels) {
      in_block = 0;
#pragma unroll
      for (int i = 0; i < T::sums / 2; ++i) {
        double* const s = &sum[i / 2 / T::n_tiles][i / 2 % T::n_tiles][i % 2 * 2];
        double2& total = blocks_sum[i * T::threads + tid];
        double2 v = make_double2(s[0], s[1]);
        if (has_blocks) v = make_double2(total.x + v.x, total.y + v.y);
        total = v;
        s[0] = 0;
        s[1] = 0;
      }
      has_blocks = true;
    }
  }
  wait_for_copies<0>();

  const batch_pointers<Format> at(p, batch);
  const bool forced = p.first_tier > tier::binary64;
  const std::int64_t bound_height = 2 * p.height + 4;
  const std::int64_t row0 = tile_row * T::rows + warp_row + g;
  const std::int64_t col0 = tile_col * T::cols + warp_col + t * 2;
  const double* const norms_b = p.b.lines.norm + p.b.batch(batch) * p.b.padded_rows() + col0;
  const int* const lsbs_b = p.b.lines.lsb + p.b.batch(batch) * p.b.padded_rows() + col0;
  constexpr int columns = T::n_tiles * 2;
  double norm_b[columns];
  int lsb_b[columns];
#pragma unroll
  for (int j = 0; j < columns; ++j) {
    norm_b[j] = norms_b[j / 2 * 8 + j % 2];
    lsb_b[j] = lsbs_b[j / 2 * 8 + j % 2];
  }
  int decided = 0;
#pragma unroll
  for (int i = 0; i < T::m_tiles * 2; ++i) {
    const std::int64_t row = row0 + i * 8;
    if (row >= p.m) continue;
    const std::int64_t a_row = p.a.batch(batch) * p.a.padded_rows() + row;
    const double norm_a = p.a.lines.norm[a_row];
    const int lsb_a = p.a.lines.lsb[a_row];
    Format* const out = at.out + row * p.out_row + col0 * p.out_col;
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      const int beside = j / 2 * 8 + j % 2;
      const std::int64_t col = col0 + beside;
      double s = sum[i / 2][j / 2][i % 2 * 2 + j % 2];
      if (has_blocks) {
        const double2 total = blocks_sum[((i / 2 * T::n_tiles + j / 2) * 2 + i % 2) * T::threads + tid];
        s = (j % 2 == 0 ? total.x : total.y) + s;
      }
      if (col >= p.n) continue;
      double magnitude = norm_a * norm_b[j];
      int lsb = lsb_a + lsb_b[j];
      double e = num::dot_bound(bound_height, norm_a, norm_b[j]);
      if constexpr (Scaled) {
        const double c = at.bias == nullptr ? 0.0 : num::widen(at.bias[row * p.bias_row + col * p.bias_col]);
        const auto v = num::scaled_sum(p.alpha, p.beta, s, num::lattice_holds(magnitude, lsb) ? 0.0 : e, c);
        s = v.value;
        e = v.error;
      } else {
        if (at.bias != nullptr) {
          const float c = at.bias[row * p.bias_row + col * p.bias_col];
          const double size = fabs(static_cast<double>(c));
          magnitude += size;
          lsb = min(lsb, num::lsb_exponent(c));
          e += 0x1p-51 * (fabs(s) + size);
          s += static_cast<double>(c);
        }
        if (num::lattice_holds(magnitude, lsb)) e = 0;
      }
      const num::decided_value<Format> result = num::certify<Format>(s, e);
      if (result.decided && !forced) {
        out[beside * p.out_col] = result.value;
        ++decided;
      } else {
        atomicOr(p.undecided + (batch * p.m + row) * p.words_per_row + (col >> 5), 1u << (col & 31));
      }
    }
  }
  decided = __reduce_add_sync(full_warp, decided);
  if (lane_of_thread() == 0) count_elements(counters, tier::binary64, decided);
}

template <class T>
void launch_product(const product& p, const job& j) {
  const std::int64_t tiles = ceil_div(p.m, T::rows) * ceil_div(p.n, T::cols) * p.batches;
  with_kernels(p, [&]<class Format, bool Scaled>() {
    launch_next<product_kernel<T, Format, Scaled>>(j, tiles, T::threads, T::shared_bytes, p, j.counters);
  });
}

class product_work final : public planned {
 public:
  product_work(const plan::product_plan& p, const job& given)
      : planned(given), by_residues_(goes_by_residues(p, j.device)) {
    const product_cut cut = cut_product(p, j.device);
    large_ = cut.large;
    p_.source_a = source_of(p, false, cut.operand[0]);
    p_.source_b = source_of(p, true, cut.operand[1]);
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
    p_.block_panels = cut.block_panels;
    p_.height = cut.height;
    // Beyond some sizes the bound of the first tier is not proved; the others' still are.
    p_.first_tier = cut.is_proved ? j.first_tier : std::max(j.first_tier, tier::double_double);
    p_.words_per_row = ceil_div(p_.n, 32);
    const auto take_all_panels = [&] {
      for (const bool second : {false, true}) {
        operand_panels& panels = second ? p_.b : p_.a;
        splits_[second] = cut.operand[second].splits;
        take_panels(panels, source(second), space);
        space.take(parts_[second], panels.padded_rows(), panels.batches, splits_[second]);
      }
    };
    if (by_residues_) {
      plan_residues(p);
      space.take(p_.list, static_cast<std::int64_t>(p_.choice.few));
      space.take_in_turn([&] { take_planes(false), take_planes(true); }, take_all_panels);
    } else {
      take_all_panels();
    }
    space.take(zeros_, zero_bytes());
  }

 private:
  const operand_source& source(bool second) const { return second ? p_.source_b : p_.source_a; }
  std::int64_t piece_of(bool second) const { return std::min(second ? cut_.columns : cut_.rows, source(second).rows); }
  std::int64_t all_lines(bool second) const { return source(second).rows * source(second).batches; }

  void plan_residues(const plan::product_plan& p) {
    cut_ = cut_residues(p, j.device);
    // Of sums of K products of normally distributed numbers about r 2^(bits + .5) sqrt(K) are left open, r the mean of residual / norm.
    const double open_of_ratio = std::ldexp(1.5, p_.type == dtype::f32   ? 24
                                                 : p_.type == dtype::f16 ? 11
                                                                         : 8) *
                                 std::sqrt(static_cast<double>(p_.k));
    for (const bool second : {false, true}) {
      const auto lines = static_cast<double>(piece_of(second) * source(second).batches);
      (second ? p_.choice.scale_b : p_.choice.scale_a) = open_of_ratio / lines;
    }
    // Matters of speed: where a 64th of the outputs is left to the repair, that takes about as long as the product; few of them are listed, in 32 MiB at most.
    constexpr double most_open = 0x1p-6;
    const double outputs = static_cast<double>(p_.m) * static_cast<double>(p_.n) * static_cast<double>(p_.batches);
    p_.choice.most_open = j.device.choice.engine == dispatch::engine_choice::residues ? num::infinity : most_open;
    p_.choice.few = static_cast<counter>(std::clamp(most_open * outputs, 0x1p16, 0x1p22));
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
  // The bitmap of undecided outputs; before it, of products by residues, the ratios of both operands, how many outputs are open, and are after the double-double tier, the squares, twice, and
  // lattices of all lines.
  std::int64_t zero_bytes() const {
    const std::int64_t known = by_residues_ ? 4 * 8 + (all_lines(false) + all_lines(true)) * (2 * 8 + 4) : 0;
    return known + p_.batches * p_.m * p_.words_per_row * 4;
  }

  void enqueue() override {
    check(cudaMemsetAsync(zeros_, 0, static_cast<std::size_t>(zero_bytes()), j.stream), "matmul", "cudaMemsetAsync");
    if (by_residues_) {
      enqueue_residues();
    } else {
      p_.undecided = reinterpret_cast<std::uint32_t*>(zeros_);
    }
    pack({p_.source_a, p_.a, parts_[0], splits_[0]}, {p_.source_b, p_.b, parts_[1], splits_[1]}, p_.choice, j);
    if (large_) {
      launch_product<large_tile>(p_, j);
    } else {
      launch_product<small_tile>(p_, j);
    }
    repair(p_, by_residues_, j);
  }

  // In pieces, where not all planes fit at once: on the lines of the first ones it depends whether residues are worth it.
  void enqueue_residues() {
    residue_product r{};
    r.system = num::residue_system_of(cut_.moduli);
    auto* const ratios = reinterpret_cast<double*>(zeros_);
    double* squares = ratios + 4;
    auto* lattices = reinterpret_cast<unsigned*>(squares + 2 * (all_lines(false) + all_lines(true)));
    p_.choice.ratios = ratios;
    p_.choice.open = reinterpret_cast<counter*>(ratios + 2);
    p_.left_by_near = p_.choice.open + 1;
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
    p_.undecided = lattices;
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
  bool large_;  // tiles
  int splits_[2];
  summary* parts_[2]{};
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
  const bool is_forced = j.device.choice.engine != dispatch::engine_choice::any && p.out.type != dtype::f64;
  if (!is_forced && goes_by_dots(p, j.self_test)) return prepare(plan::dots_of(p), j, t);
  t.emplace<product_work>(p, j);
}

}  // namespace repdl::cuda
