// How the CUDA backend cuts calls (backends/cuda/*/*_cut.hpp): functions of a plan and a device, which run here without one. Every term
// of every result is somebody's, once; launches are within the limits of devices; what is to be fast on a device is.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

#include "backends/cuda/map/map_cut.hpp"
#include "backends/cuda/product/conv_cut.hpp"
#include "backends/cuda/product/matmul_cut.hpp"
#include "backends/cuda/product/residue_cut.hpp"
#include "backends/cuda/reduce/reduce_cut.hpp"
#include "backends/cuda/rows/rows_cut.hpp"
#include "librepdl/num/residues.hpp"
#include "librepdl/ops/rows/rules.hpp"

namespace {

using namespace repdl;
using namespace repdl::cuda;
using ops::op_id;

constexpr std::int64_t most_blocks = INT32_MAX;  // of a grid
constexpr std::int64_t huge = std::int64_t{1} << 40;

properties device_of(int multiprocessors, int capability = 90, dispatch::kernel_choice choice = {}) {
  return {0, multiprocessors, capability, choice};
}
dispatch::kernel_choice wide_choice() {
  dispatch::kernel_choice c{};
  c.wide = true;
  return c;
}
constexpr int small_and_large[] = {1, 16, 132};

// An address that nobody reads. Operand i begins `beyond` bytes after a multiple of 4096.
const void* address(int i, int beyond = 0) {
  return reinterpret_cast<const void*>(std::uintptr_t{4096} * static_cast<std::uintptr_t>(i + 1) +
                                       static_cast<std::uintptr_t>(beyond));
}

// [0, count) in chunks: all of it, and no chunk empty.
void check_chunks(std::int64_t count, std::int64_t chunks, std::int64_t chunk) {
  CAPTURE(count);
  CAPTURE(chunks);
  CAPTURE(chunk);
  REQUIRE(chunks >= 1);
  CHECK(chunks * chunk >= count);
  CHECK((chunks == 1 || (chunks - 1) * chunk < count));
}

// ------------------------------------------------------------------------------------------------------------ reductions

// outputs x length numbers, rows or columns side by side.
plan::reduce_plan reduction(op_id op, dtype type, std::int64_t outputs, std::int64_t length, bool columns = false) {
  plan::reduce_plan p{};
  p.op = op;
  p.type = type;
  p.inputs = op == op_id::dot || op == op_id::prelu_weight_backward ? 2 : 1;
  p.kept_rank = outputs == 1 ? 0 : 1;
  p.reduced_rank = length == 1 ? 0 : 1;
  p.outputs = outputs;
  p.length = length;
  p.kept_shape[0] = outputs;
  p.reduced_shape[0] = length;
  for (int k = 0; k < p.inputs; ++k) {
    p.in[k].data = address(k);
    p.in[k].kept_stride[0] = columns ? 1 : length;
    p.in[k].reduced_stride[0] = columns ? outputs : 1;
  }
  p.out = const_cast<void*>(address(3));
  p.out_stride[0] = 1;
  return p;
}

void check_launch(const plan::reduce_plan& p, const reduce_geometry& g, const properties& device) {
  CAPTURE(p.outputs);
  CAPTURE(p.length);
  CAPTURE(device.multiprocessors);
  if (g.columns) {  // chunk i has terms i, i + chunks, ..
    CHECK(g.team == 1);
    CHECK(g.chunks >= 1);
    CHECK(g.chunks <= std::max<std::int64_t>(1, p.length));
  } else {
    CHECK((g.team == reduce_threads || (g.team <= 32 && (g.team & (g.team - 1)) == 0)));
    check_chunks(p.length, g.chunks, g.chunk_length);
    // A chunk is at least what its team loads at once.
    if (g.chunks > 1) CHECK(g.chunk_length >= std::int64_t{g.team} * loaded_terms(size_of(p.type), p.inputs));
  }
  CHECK(g.small == (!device.choice.wide && p.outputs < (1ll << 31) && p.length < (1ll << 31)));
  // Results of parts have room: the device is filled, but no more.
  if (g.chunks > 1) CHECK(p.outputs * g.chunks <= std::int64_t{device.multiprocessors} * 2048);
  for (const int resident : {1, 8}) {
    const std::int64_t blocks = item_blocks(g, resident, device);
    CHECK(blocks >= 1);
    CHECK(blocks <= std::int64_t{device.multiprocessors} * 4 * resident);
    const std::int64_t threads = p.outputs * g.chunks * g.team / (g.paired ? 2 : 1);
    CHECK(blocks <= std::max<std::int64_t>(1, ceil_div(threads, reduce_threads)));  // none without work
  }
}

TEST_SUITE_BEGIN("portable");

TEST_CASE("cuts of reductions: every term is somebody's, and launches are within limits") {
  for (const op_id op : {op_id::sum, op_id::dot, op_id::max}) {
    for (const dtype type : {dtype::f32, dtype::bf16}) {
      for (const bool columns : {false, true}) {
        for (const std::int64_t outputs : {std::int64_t{1}, std::int64_t{2}, std::int64_t{33}, std::int64_t{264},
                                           std::int64_t{100003}, std::int64_t{1} << 31, huge}) {
          for (const std::int64_t length : {std::int64_t{0}, std::int64_t{1}, std::int64_t{31}, std::int64_t{33},
                                            std::int64_t{2049}, std::int64_t{262145}, std::int64_t{1} << 31, huge}) {
            for (const int multiprocessors : small_and_large) {
              for (const bool wide : {false, true}) {
                const plan::reduce_plan p = reduction(op, type, outputs, length, columns);
                const properties d = device_of(multiprocessors, 90, wide ? wide_choice() : dispatch::kernel_choice{});
                const reduce_cut c = cut_reduction(p, d);
                if (outputs < huge || length < huge) check_launch(p, c.first, d);
                if (c.is_few) {
                  CHECK(op != op_id::max);
                  CHECK(!wide);
                  CHECK(outputs <= most_blocks);  // a block each
                  CHECK(c.repair.team == 0);
                  CHECK((c.first.chunks > 1 || c.first.team == reduce_threads));
                } else if (op != op_id::max) {
                  check_launch(p, c.repair, d);
                  CHECK(!c.repair.columns);
                  CHECK(c.repair.team >= 32);
                  CHECK(c.repair.words >= 1);
                  CHECK(c.repair.words <= 32);
                  CHECK(repair_grid(c.repair, d) <= static_cast<unsigned>(multiprocessors * repair_blocks));
                }
                if (c.is_long) {  // blocks that share an output all run at once
                  CHECK(op != op_id::max);
                  CHECK(!c.is_few);
                  CHECK(!wide);
                  CHECK(c.first.chunks > 1);
                  CHECK(c.repair.team == reduce_threads);
                  CHECK(outputs * c.repair.chunks <= std::int64_t{multiprocessors} * repair_blocks);
                }
                CHECK(c.chunks() >= c.first.chunks);
              }
            }
          }
        }
      }
    }
  }
}

TEST_CASE("cuts of reductions: few long sums are cut, many short ones are not") {
  const auto first = [](std::int64_t outputs, std::int64_t length, int multiprocessors, bool columns = false) {
    return cut_reduction(reduction(op_id::sum, dtype::f32, outputs, length, columns), device_of(multiprocessors)).first;
  };
  // One long sum: all multiprocessors have a part, of a block each, and a device with fewer cuts it into fewer.
  CHECK(first(1, std::int64_t{1} << 26, 132).chunks >=
        380);  // blocks that run at once: a chunk is a multiple of what one loads
  CHECK(first(1, std::int64_t{1} << 26, 132).team == reduce_threads);
  CHECK(first(1, std::int64_t{1} << 26, 1).chunks == 8);
  CHECK(first(1, std::int64_t{1} << 26, 132).chunks <= 132 * 3);
  for (const bool columns : {false, true}) {
    CHECK(first(1 << 20, 200, 132, columns).chunks == 1);
    CHECK(first(1 << 20, 200, 1, columns).chunks == 1);
    CHECK(first(100, 1 << 20, 132, columns).chunks > 1);
    CHECK(first(100, 1 << 20, 132, columns).columns == columns);
  }
  std::int64_t former = 0;
  for (int multiprocessors = 4; multiprocessors <= 256; multiprocessors *= 2) {  // four for each of three, or more
    const std::int64_t chunks = first(3, 10000000, multiprocessors).chunks;
    CHECK(chunks >= former);
    former = chunks;
  }
  // The shorter the rows, the fewer lanes for each.
  CHECK(first(1 << 20, 32, 132).team == 1);
  CHECK(first(1 << 20, 300, 132).team == 8);
  CHECK(first(1 << 20, 5000, 132).team == 32);
  CHECK(first(1 << 20, 40000, 132).team == reduce_threads);
  // Rows of fewer than 32 terms take a thread, wherever they lie.
  CHECK(first(1 << 20, 31, 132).columns);
}

TEST_CASE("cuts of reductions: few sums are a block's each, but not where numbers are to be wide, or rows are long") {
  const auto is_few = [](op_id op, std::int64_t outputs, std::int64_t length, const properties& d) {
    return cut_reduction(reduction(op, dtype::f32, outputs, length), d).is_few;
  };
  CHECK(is_few(op_id::sum, 264, 1000, device_of(132)));
  CHECK(!is_few(op_id::sum, 265, 1000, device_of(132)));
  CHECK(!is_few(op_id::sum, 264, 1000, device_of(131)));
  CHECK(!is_few(op_id::max, 1, 1000, device_of(132)));
  CHECK(!cut_reduction(reduction(op_id::sum, dtype::i64, 264, 1000), device_of(132)).is_few);  // nothing to repair
  CHECK(!is_few(op_id::sum, 264, 1000, device_of(132, 90, wide_choice())));
  CHECK(is_few(op_id::sum, 1, 262144, device_of(132)));
  CHECK(!is_few(op_id::sum, 1, 262145, device_of(132)));
  const auto is_long = [](op_id op, std::int64_t outputs, std::int64_t length, const properties& d) {
    return cut_reduction(reduction(op, dtype::f32, outputs, length), d).is_long;
  };
  CHECK(is_long(op_id::sum, 1, 262145, device_of(132)));
  CHECK(is_long(op_id::sum, 264, 1 << 20, device_of(132)));
  CHECK(!is_long(op_id::sum, 265, 1 << 20, device_of(132)));
  CHECK(!is_long(op_id::sum, 1, 262144, device_of(132)));
  CHECK(!is_long(op_id::max, 1, 262145, device_of(132)));
  CHECK(!is_long(op_id::sum, 1, 262145, device_of(132, 90, wide_choice())));
  // Short ones are read once, longer ones in chunks.
  CHECK(cut_reduction(reduction(op_id::sum, dtype::f32, 4, 16384), device_of(132)).first.chunks == 1);
  CHECK(cut_reduction(reduction(op_id::sum, dtype::f32, 4, 16385), device_of(132)).first.chunks > 1);
}

TEST_CASE("cuts of reductions: loads of 16 bytes need their alignment") {
  const auto cut = [](plan::reduce_plan p) { return cut_reduction(p, device_of(132)).first; };
  const plan::reduce_plan aligned = reduction(op_id::sum, dtype::f32, 4096, 4096);
  CHECK(cut(aligned).packed);
  CHECK(cut(aligned).side_by_side);
  plan::reduce_plan p = aligned;
  p.in[0].data = address(0, 4);
  CHECK(!cut(p).packed);
  CHECK(cut(p).side_by_side);
  p = aligned;
  p.in[0].kept_stride[0] = 4098;
  CHECK(!cut(p).packed);
  CHECK(cut(p).side_by_side);
  p = aligned;
  p.in[0].reduced_stride[0] = 2;
  CHECK(!cut(p).packed);
  CHECK(!cut(p).side_by_side);
  // 8 numbers of 16 bits.
  p = reduction(op_id::sum, dtype::f16, 4096, 4100);
  CHECK(!cut(p).packed);
  p = reduction(op_id::sum, dtype::f16, 4096, 4104);
  CHECK(cut(p).packed);
  // Columns of 16 bits in pairs.
  const plan::reduce_plan pairs = reduction(op_id::sum, dtype::f16, 4096, 4096, true);
  CHECK(cut(pairs).paired);
  p = pairs;
  p.in[0].data = address(0, 2);
  CHECK(!cut(p).paired);
  CHECK(!cut(reduction(op_id::sum, dtype::f16, 4095, 4096, true)).paired);
  CHECK(!cut(reduction(op_id::sum, dtype::f32, 4096, 4096, true)).paired);
  CHECK(!cut(reduction(op_id::dot, dtype::f16, 4096, 4096, true)).paired);
}

// -------------------------------------------------------------------------------------------------------------- products

plan::product_plan product_of(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batches = 1) {
  plan::product_plan p{};
  p.alpha = p.beta = 1;
  p.batch = {batches == 1 ? 0 : 1, batches, {batches}};
  p.row = {1, m, {m}};
  p.column = {1, n, {n}};
  p.term = {1, k, {k}};
  p.a.data = address(0);
  p.a.batch = {m * k + 1};
  p.b.data = address(1);
  p.b.batch = {k * n + 1};
  p.out.data = const_cast<void*>(address(2));
  for (dtype* type : {&p.a.type, &p.b.type, &p.out.type}) *type = dtype::f32;
  return p;
}

TEST_CASE("cuts of products: steps and parts cover the terms, and the bound's height is enough") {
  for (const std::int64_t m : {1, 64, 65, 1000, 100000}) {
    for (const std::int64_t n : {1, 128, 129, 70000}) {
      for (const std::int64_t k : {std::int64_t{0}, std::int64_t{1}, std::int64_t{16}, std::int64_t{257},
                                   std::int64_t{100000}, greatest_k, greatest_k + 1, huge}) {
        for (const int multiprocessors : small_and_large) {
          for (const int capability : {80, 86, 90}) {
            for (const bool split : {false, true}) {
              const properties device = device_of(multiprocessors, capability, {.split = split});
              const product_cut c = cut_product(product_of(m, n, k, 7), device);
              CAPTURE(m);
              CAPTURE(n);
              CAPTURE(k);
              CAPTURE(multiprocessors);
              const tile_size& t = tile_sizes[c.tile];
              const std::int64_t step = panel_k * t.slices;
              CHECK(t.shared_bytes <= shared_limit(device));
              CHECK(c.steps * step >= k);
              CHECK(c.steps * step - k < step);
              CHECK((c.parts == 1 || c.parts == 2 || c.parts == 4));
              CHECK((c.parts == 1 || capability == 90));
              CHECK((split || c.parts == 1 || c.parts <= c.steps));
              // The longest chain of a block of terms, the blocks of a part, and the parts.
              const std::int64_t steps = ceil_div(c.steps, c.parts);
              const std::int64_t chain = std::min<std::int64_t>(steps, block_panels) * panel_k;
              CHECK(c.height >= chain + ceil_div(steps, block_panels) + c.parts * t.slices);
              CHECK((!c.is_proved || (k <= greatest_k && c.height <= 1 << 20 && steps <= 1 << 20)));
              CHECK((c.is_proved || k > 1 << 24));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("cuts of products: small tiles, or several blocks for one, where square ones leave multiprocessors idle") {
  const auto cut = [](std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batches = 1, int capability = 90) {
    return cut_product(product_of(m, n, k, batches), device_of(132, capability));
  };
  CHECK(cut(4096, 4096, 512).tile == square_tiles);
  CHECK(cut(1024, 1024, 1024).tile == square_tiles);
  CHECK(cut(512, 512, 512).tile == small_tiles);
  CHECK(cut(512, 512, 512).parts == 1);
  CHECK(cut(256, 256, 256).tile == small_tiles);
  CHECK(cut(256, 256, 256).parts == 2);
  CHECK(cut(256, 256, 256, 1, 80).parts == 1);
  CHECK(cut(256, 256, 256, 1, 86).tile == square_tiles);  // it has no room for the other ones
  CHECK(cut(32, 1000, 2048).parts == 4);
  CHECK(cut(64, 4096, 4096).tile == square_tiles);
  CHECK(cut(64, 4096, 4096).parts == 4);
  CHECK(cut(32, 4096, 4096).tile == small_tiles);
  plan::product_plan narrow = product_of(64, 4096, 4096);
  narrow.a.type = narrow.b.type = narrow.out.type = dtype::bf16;
  CHECK(cut_product(narrow, device_of(132)).tile == square_tiles);
  CHECK(cut_product(narrow, device_of(132)).parts == 2);
  CHECK(cut(64, 64, 64, 198).tile == square_tiles);
  CHECK(cut(64, 64, 64, 197).tile == small_tiles);
}

// Both operands lie along their terms.
plan::product_plan linear_of(std::int64_t m, std::int64_t n, std::int64_t k, dtype type) {
  plan::product_plan p = product_of(m, n, k, 7);
  p.a.batch = {m * k};
  p.b.batch = {n * k};
  p.a.outer[0] = p.b.outer[0] = k;
  p.a.inner[0] = p.b.inner[0] = 1;
  p.a.type = p.b.type = p.out.type = type;
  return p;
}

TEST_CASE("cuts of products: thin tiles, where an operand has few lines and both lie along their terms") {
  const auto is_thin = [](const plan::product_plan& p, const properties& device = device_of(132)) {
    return cut_product(p, device).tile == thin_tiles;
  };
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16}) {
    CHECK(is_thin(linear_of(1, 4096, 4096, type)));
    CHECK(is_thin(linear_of(32, 4096, 4096, type)));
    CHECK(is_thin(linear_of(4096, 32, 4096, type)));
    CHECK(cut_product(linear_of(32, 4096, 4096, type), device_of(132)).swapped);
    CHECK(!cut_product(linear_of(4096, 32, 4096, type), device_of(132)).swapped);
    CHECK(!is_thin(linear_of(33, 4096, 4096, type)));
    CHECK(!is_thin(linear_of(8, 4096, 248, type)));  // short sums
    CHECK(!is_thin(linear_of(8, 4096, (1 << 22) + 8, type)));
    CHECK(!is_thin(linear_of(8, 4096, 4094, type)));                      // not a multiple of 16 bytes
    CHECK(!is_thin(linear_of(8, 4096, 4096, type), device_of(132, 80)));  // no room
    plan::product_plan p = linear_of(8, 4096, 4096, type);
    p.b.outer[0] = 4098;
    CHECK(!is_thin(p));
    p = linear_of(8, 4096, 4096, type);
    p.b.data = address(1, 8);
    CHECK(!is_thin(p));
    p = linear_of(8, 4096, 4096, type);
    std::swap(p.b.inner, p.b.outer);
    CHECK(!is_thin(p));
    p = linear_of(8, 4096, 4096, type);
    p.a.inner[0] = 2;
    CHECK(!is_thin(p));
    p = linear_of(8, 4096, 4096, type);
    p.a.batch[0] = 2;
    CHECK(!is_thin(p));
    for (const std::int64_t few : {1, 8, 9, 16, 17, 32}) {
      for (const std::int64_t many : {33, 1000, 100000}) {
        for (const std::int64_t k : {256, 2000, 1 << 16}) {
          for (const bool split : {false, true}) {
            const product_cut c =
                cut_product(linear_of(few, many, k, type), device_of(132, 90, {.tile = thin_tiles, .split = split}));
            const std::int64_t step = thin_step_terms(size_of(type), few);
            CAPTURE(few);
            CAPTURE(many);
            CAPTURE(k);
            CHECK(c.tile == thin_tiles);
            CHECK(c.steps * step >= k);
            CHECK(c.steps * step - k < step);
            CHECK((c.parts == 1 || c.parts == 2 || c.parts == 4));
            CHECK((split || c.parts <= c.steps));
            CHECK(c.height >= ceil_div(c.steps, c.parts) * (step / thin_slices) + thin_slices + c.parts);
            CHECK(c.is_proved);
          }
        }
      }
    }
  }
  CHECK(is_thin(linear_of(8, 4096, 1 << 16, dtype::f32)));
  CHECK(!is_thin(linear_of(8, 4096, (1 << 16) + 8, dtype::f32)));
  CHECK(is_thin(linear_of(8, 4096, 1 << 22, dtype::bf16)));
  CHECK(cut_product(linear_of(8, 4096, 1 << 22, dtype::bf16), device_of(132)).is_proved);
  // Blocks of a cluster have terms for some steps each.
  plan::product_plan p = linear_of(16, 1000, 4096, dtype::f32);
  p.batch = {0, 1, {1}};
  CHECK(cut_product(p, device_of(132)).parts == 2);
  p = linear_of(32, 1000, 2048, dtype::f32);  // more than 16 lines and few blocks
  p.batch = {0, 1, {1}};
  CHECK(cut_product(p, device_of(132)).tile == small_tiles);
  CHECK(cut_product(p, device_of(132)).parts == 4);
  p = linear_of(8, 4096, 4096, dtype::bf16);
  p.batch = {0, 1, {1}};
  CHECK(cut_product(p, device_of(132)).parts == 1);
}

TEST_CASE("cuts of products: small ones, and few outputs of long sums, are dot products") {
  CHECK(goes_by_dots(product_of(128, 128, 128), false));
  CHECK(!goes_by_dots(product_of(128, 128, 128), true));  // a self-test's product is one
  CHECK(!goes_by_dots(product_of(129, 128, 128), false));
  CHECK(!goes_by_dots(product_of(1024, 1024, 0), false));
  for (const bool self_test : {false, true}) {
    CHECK(goes_by_dots(product_of(64, 64, 8192), self_test));
    CHECK(goes_by_dots(product_of(64, 64, huge), self_test));
    CHECK(!goes_by_dots(product_of(64, 64, 8191), self_test));
    CHECK(!goes_by_dots(product_of(65, 64, 8192), self_test));
    CHECK(goes_by_dots(product_of(1365, 3, 8192), self_test));
    CHECK(!goes_by_dots(product_of(1366, 3, 8192), self_test));
    // A matrix times a vector or two.
    CHECK(goes_by_dots(product_of(100000, 1, 8192), self_test));
    CHECK(goes_by_dots(product_of(2, 100000, 8192), self_test));
    CHECK(!goes_by_dots(product_of(100000, 1, 8191), self_test));
    CHECK(!goes_by_dots(product_of(100000, 1, 8192, 2), self_test));
    CHECK(!goes_by_dots(product_of(64, 64, 8192, 2), self_test));
    CHECK(goes_by_dots(product_of(16, 16, 8192, 1000), self_test));
    plan::product_plan scaled = product_of(8, 8, 8192);
    scaled.alpha = 2;
    CHECK(!goes_by_dots(scaled, self_test));
  }
}

TEST_CASE(
    "cuts of products by residues: pieces cover the operands and their planes have a GiB, tiles few enough to share "
    "are shared") {
  for (const std::int64_t m : {1, 128, 300, 8192, 50000}) {
    for (const std::int64_t n : {1, 129, 4096, 8192}) {
      for (const std::int64_t k : {1, 129, 4096, 8192, 65536}) {
        for (const std::int64_t batches : {1, 3}) {
          for (const int multiprocessors : small_and_large) {
            const residue_cut c = cut_residues(product_of(m, n, k, batches), device_of(multiprocessors));
            CAPTURE(m);
            CAPTURE(n);
            CAPTURE(k);
            CHECK(c.moduli >= 11);
            CHECK(c.moduli <= num::most_moduli);
            CHECK(c.k_panels * residue_panel >= k);
            CHECK(c.k_panels * residue_panel - k < residue_panel);
            const auto panels = [](std::int64_t lines) { return round_up(ceil_div(lines, residue_panel), 2); };
            for (const auto& [piece, all] : {std::pair(c.rows, m), std::pair(c.columns, n)}) {
              CHECK(piece >= 1);
              CHECK((piece >= all || piece % (2 * residue_panel) == 0));
            }
            const std::int64_t lines = panels(std::min(c.rows, m)) + panels(std::min(c.columns, n));
            const std::int64_t of_line = c.k_panels * residue_panel * batches;
            const std::int64_t copies = (c.copied[0] ? m * of_line * 4 : 0) + (c.copied[1] ? n * of_line * 4 : 0);
            CHECK(copies <= std::int64_t{1} << 29);
            const std::int64_t bytes = lines * residue_panel * of_line * c.moduli + copies;
            // Or two panels of each, the least there is.
            CHECK((bytes <= std::int64_t{1} << 30 || c.rows == 2 * residue_panel || c.columns == 2 * residue_panel));
            const std::int64_t tiles = ceil_div(std::min(c.rows, m), residue_panel) *
                                       ceil_div(std::min(c.columns, n), residue_panel) * batches;
            CHECK((c.shared == 1 || c.shared == 2 || c.shared == 4));
            CHECK((c.shared == 1 || tiles * c.shared <= multiprocessors));
          }
        }
      }
    }
  }
}

TEST_CASE(
    "cuts of products by residues: operands whose terms are not side by side are copied, or have a modulus more") {
  plan::product_plan p = product_of(4096, 4096, 4096);
  p.a.inner[0] = p.b.inner[0] = 1;
  const residue_cut near = cut_residues(p, device_of(132));
  CHECK(!near.copied[0]);
  CHECK(!near.copied[1]);
  p.b.inner[0] = 4096;
  const residue_cut far = cut_residues(p, device_of(132));
  CHECK(!far.copied[0]);
  CHECK(far.copied[1]);
  CHECK(far.moduli == near.moduli);
  p = product_of(4096, 32768, 4096);
  p.a.inner[0] = 1;
  p.b.inner[0] = 32768;
  const residue_cut large = cut_residues(p, device_of(132));
  CHECK(!large.copied[1]);
  CHECK(large.moduli == near.moduli + 1);
}

TEST_CASE("cuts of products by residues: large products on compute capability 9.0") {
  const auto goes = [](std::int64_t m, std::int64_t n, std::int64_t k, const properties& d, dtype type = dtype::f32) {
    plan::product_plan p = product_of(m, n, k);
    p.a.type = p.b.type = p.out.type = type;
    return goes_by_residues(p, d);
  };
  CHECK(goes(2048, 2048, 512, device_of(132)));
  CHECK(goes(768, 768, 8192, device_of(132)));
  CHECK(!goes(8192, 8192, 511, device_of(132)));
  CHECK(!goes(255, 8192, 8192, device_of(132)));
  CHECK(!goes(8192, 255, 8192, device_of(132)));
  CHECK(!goes(1024, 1024, 2047, device_of(132)));
  CHECK(!goes(1024, 1024, greatest_residue_k + 1, device_of(132)));
  CHECK(goes(std::int64_t{1} << 31, 1024, 1024, device_of(132)));
  CHECK(!goes((std::int64_t{1} << 31) + 1, 1024, 1024, device_of(132)));
  CHECK(!goes(1024, (std::int64_t{1} << 31) + 1, 1024, device_of(132)));
  CHECK(!goes(2048, 2048, 2048, device_of(132, 80)));
  CHECK(!goes(2048, 2048, 2048, device_of(132, 100)));
  for (const dtype narrow : {dtype::f16, dtype::bf16}) {
    CHECK(goes(256, 4096, 4096, device_of(132), narrow));
    CHECK(!goes(255, 4096, 8192, device_of(132), narrow));
    CHECK(!goes(1024, 1024, 2047, device_of(132), narrow));
  }
  CHECK(!goes(2048, 2048, 2048, device_of(132), dtype::f64));
  dispatch::kernel_choice forced;
  forced.engine = product_engine::residues;
  CHECK(goes(5, 7, 37, device_of(132, 90, forced)));
  CHECK(!goes(5, 7, 37, device_of(132, 80, forced)));
  forced.engine = product_engine::binary64;
  CHECK(!goes(2048, 2048, 2048, device_of(132, 90, forced)));
}

TEST_CASE("cuts of products by residues: results of fewer bits take fewer moduli") {
  for (const std::int64_t k : {1, 1024, 1025, 8192, 65536}) {
    int former = num::most_moduli + 1;
    for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16}) {
      plan::product_plan p = product_of(512, 512, k);
      p.a.inner[0] = p.b.inner[0] = 1;
      p.a.type = p.b.type = p.out.type = type;
      const int moduli = cut_residues(p, device_of(132)).moduli;
      CHECK(moduli >= 6);
      CHECK(moduli < former);
      former = moduli;
    }
  }
}

// ---------------------------------------------------------------------------------------------------------- convolutions

dispatch::kernel_choice tiles(int tile, bool split) {
  dispatch::kernel_choice c{};
  c.tile = tile;
  c.split = split;
  return c;
}

TEST_CASE("cuts of convolutions: every tile is some block's, or some parts'") {
  using namespace conv;
  for (const std::int64_t m : {1, 16, 17, 64, 512}) {
    for (const std::int64_t n : {1, 32, 257, 3136, 200704}) {
      for (const std::int64_t k : {std::int64_t{0}, std::int64_t{1}, std::int64_t{27}, std::int64_t{576},
                                   std::int64_t{200704}, std::int64_t{1} << 33}) {
        for (const std::int64_t products : {1, 4, 512}) {
          for (const int multiprocessors : small_and_large) {
            const properties d = device_of(multiprocessors);
            const product_size p{m, n, k, products};
            const schedule s = plan_product(p, d);
            CAPTURE(m);
            CAPTURE(n);
            CAPTURE(k);
            CAPTURE(products);
            CAPTURE(multiprocessors);
            REQUIRE(s.tile >= 0);
            REQUIRE(s.tile < tile_kinds);
            const tile_figures& f = tile_shapes[s.tile];
            CHECK(s.row_tiles == ceil_div(m, f.rows));
            CHECK(s.col_tiles == ceil_div(n, f.cols));
            CHECK(s.whole >= 0);
            CHECK(s.split >= 0);
            CHECK(s.whole + s.split == s.row_tiles * s.col_tiles * products);
            CHECK((s.split > 0) == (s.parts > 1));
            CHECK(s.parts >= 1);
            CHECK(s.parts <= 256);
            const std::int64_t panels = std::max<std::int64_t>(1, ceil_div(k, conv::panel_k));
            const std::int64_t slots = std::int64_t{multiprocessors} * f.blocks;
            if (s.split > 0) {
              CHECK(panels / s.parts >= 4);           // what a part costs is worth it
              CHECK(s.split * s.parts <= 4 * slots);  // sums of parts have room
              CHECK(s.whole % slots == 0);            // the others are full waves
              CHECK(s.split < 2 * slots);
            }
            CHECK(s.whole + s.split * s.parts <= most_blocks);
            // A sum passes a block's chain, the blocks of a part, and the parts.
            const std::int64_t part = ceil_div(panels, s.whole == 0 ? s.parts : 1);
            CHECK(s.height >= conv::panel_k * conv::block_panels + ceil_div(part, conv::block_panels) + s.parts);
            CHECK((!is_proved(s, k) || part * conv::panel_k <= (1 << 23) + conv::panel_k));
            CHECK((k > 1 << 23 || is_proved(s, k)));

            for (int tile = 0; tile < tile_kinds; ++tile) {
              const schedule whole = plan_product(p, device_of(multiprocessors, 90, tiles(tile, false)));
              CHECK(whole.tile == tile);
              CHECK(whole.split == 0);
              if (panels < 8) continue;
              const tile_figures& g = tile_shapes[tile];
              const schedule split = plan_product(p, device_of(multiprocessors, 90, tiles(tile, true)));
              const std::int64_t all = ceil_div(m, g.rows) * ceil_div(n, g.cols) * products;
              if (all % (std::int64_t{multiprocessors} * g.blocks) == 0) continue;  // full waves: nothing to be split
              CHECK(split.tile == tile);
              CHECK(split.split > 0);
              CHECK(split.whole + split.split == all);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("cuts of convolutions: the shape of the outputs decides the tiles, idle multiprocessors the parts") {
  using namespace conv;
  const auto plan = [](std::int64_t m, std::int64_t n, std::int64_t k, int multiprocessors) {
    return plan_product({m, n, k, 1}, device_of(multiprocessors));
  };
  CHECK(plan(512, 100352, 576, 132).tile == wide_tiles);
  CHECK(plan(16, 100352, 576, 132).tile == flat_tiles);
  CHECK(plan(8, 16, 27, 132).tile == conv::small_tiles);
  CHECK(plan(64, 64, 576, 1).tile == conv::square_tiles);
  // Few outputs of long sums are split, and more so on a larger device; many outputs are not.
  CHECK(plan(64, 64, 1 << 20, 132).parts > plan(64, 64, 1 << 20, 16).parts);
  CHECK(plan(64, 64, 1 << 20, 16).parts > 1);
  CHECK(plan(64, 64, 64, 132).parts == 1);
  CHECK(plan(512, 1003520, 576, 132).split <= 2 * 132 * 2);
}

TEST_CASE("cuts of convolutions: proved up to some sizes, and no further") {
  using namespace conv;
  schedule s{};
  s.parts = 1;
  s.whole = 1;
  s.height = 1 << 20;
  CHECK(is_proved(s, 1 << 23));
  CHECK(!is_proved(s, (1 << 23) + 1));
  s.height = (1 << 20) + 1;
  CHECK(!is_proved(s, 1));
  s = {};
  s.parts = 4;
  s.split = 1;  // all in parts
  CHECK(is_proved(s, 4 << 23));
  CHECK(!is_proved(s, (4 << 23) + 1));
  s.whole = 1;
  CHECK(!is_proved(s, 4 << 23));
}

TEST_CASE("cuts of convolutions: what merged phases cost grows with their rows and columns") {
  for (std::int64_t m = 1; m < 300; m += 7) {
    for (std::int64_t n = 1; n < 600; n += 31) {
      CHECK(conv::tile_cost(m, n) > 0);
      CHECK(conv::tile_cost(m + 7, n) >= conv::tile_cost(m, n));
      CHECK(conv::tile_cost(m, n + 31) >= conv::tile_cost(m, n));
    }
  }
  CHECK(conv::tile_cost(64, 1 << 20) < 2.1 * conv::tile_cost(64, 1 << 19));
  CHECK(conv::tile_cost(1, 1) == conv::tile_cost(16, 32));  // the least tile
  CHECK(conv::tile_cost(17, 32) == 2 * conv::tile_cost(16, 32));
}

TEST_CASE("cuts of convolutions: lists of what is undecided") {
  for (const std::int64_t outputs : {std::int64_t{1}, std::int64_t{5000}, std::int64_t{1} << 30, huge}) {
    for (const std::int64_t k : {std::int64_t{0}, std::int64_t{4095}, std::int64_t{4096}, std::int64_t{1} << 33}) {
      const conv::repair_cut c = conv::cut_repair({1, outputs, k, 1});
      CHECK((c.chunks > 1) == (k >= 4096));
      CHECK(c.chunks >= 1);
      CHECK(c.chunks <= 256);
      CHECK((c.chunks == 1 || k / c.chunks >= 2048));
      CHECK(c.capacity >= 64);
      CHECK(c.capacity * c.chunks <= 1 << 20);
    }
  }
}

TEST_CASE("cuts of convolutions: tiles of chains are small where outputs are few") {
  const auto width = [](std::int64_t m, std::int64_t n, std::int64_t products, int multiprocessors) {
    return conv::chain_width({m, n, 9, products}, device_of(multiprocessors));
  };
  CHECK(width(512, 100352, 1, 132) == 8);
  CHECK(width(64, 100352, 1, 132) == 4);
  CHECK(width(32, 100352, 1, 132) == 2);
  CHECK(width(5, 110, 1, 132) == 1);
  CHECK(width(5, 110, 1, 1) == 2);
  for (const int multiprocessors : small_and_large) {
    int former = 1;
    for (std::int64_t products = 1; products <= huge; products *= 2) {
      const int now = width(200, 200, products, multiprocessors);
      CHECK(now >= former);
      former = now;
    }
    CHECK(former == 8);
  }
}

// ------------------------------------------------------------------------------------------------------------------ rows

struct row_call {
  std::int64_t rows, length;
  dtype type = dtype::f32;
  bool columns = false;            // rows lie side by side
  int beyond = 0;                  // bytes from an aligned address
  bool targets = false;            // there are, where the rule has some
  bool factors = true;             // likewise: of the call's type
  dtype factor_type = dtype::f32;  // but for these
  bool is_whole = false;
  tier first = tier::proved;
  int bits = 512;
};

struct cut_of_rows {
  row_facts rule;
  row_layout g;
  row_cut cut;
};

template <class Rule>
cut_of_rows cut_call(op_id op, const row_call& c, const properties& d) {
  cut_of_rows r{row_facts_of<Rule>(c.is_whole), {}, {}};
  plan::row_plan p{};
  p.op = op;
  p.kept_rank = c.rows == 1 ? 0 : 1;
  p.reduced_rank = c.length == 1 ? 0 : 1;
  p.rows = c.rows;
  p.length = c.length;
  p.kept_shape[0] = c.rows;
  p.reduced_shape[0] = c.length;
  const plan::row_plan::strides of_elements{{c.columns ? 1 : c.length}, {c.columns ? c.rows : 1}};
  const plan::row_plan::strides of_rows{{1}, {0}};
  for (int k = 0; k < r.rule.elements; ++k) {
    const int i = r.rule.element[k];
    const bool is_factor = k >= r.rule.required && k < r.rule.formatted;
    if (is_factor && !c.factors) continue;
    p.in[i] = address(i, k < r.rule.formatted ? c.beyond : 0);
    p.in_type[i] = k >= r.rule.formatted ? dtype::f32 : is_factor && r.rule.has_factors ? c.factor_type : c.type;
    p.in_stride[i] = of_elements;
    if (is_factor) p.in_stride[i].kept = {};  // weights are the same for all rows
  }
  for (const int i : {r.rule.g, r.rule.top, r.rule.former[0], r.rule.former[1]}) {
    if (i < 0) continue;
    p.in[i] = address(i);
    p.in_type[i] = dtype::f32;
    p.in_stride[i] = of_rows;
  }
  if (r.rule.target >= 0 && c.targets) {
    p.in[r.rule.target] = address(r.rule.target);
    p.in_stride[r.rule.target] = of_rows;
  }
  for (int k = 0; k < plan::row_plan::most_outputs; ++k) {
    p.out[k] = const_cast<void*>(address(10 + k, k == 0 && r.rule.per_element ? c.beyond : 0));
    p.out_type[k] = c.type;
    p.out_stride[k] = k == 0 && r.rule.per_element ? of_elements : of_rows;
  }
  r.cut = cut_rows(r.g, p, r.rule, d, c.first, c.bits);
  return r;
}
// f(number, its rule's type) for every row operation.
template <class F>
void for_row_rules(F&& f) {
  ops::for_each_structured([&]<class Op>() {
    ops::for_row_operation(Op::id, [&]<class Row>() {
      if constexpr (Row::id == Op::id) f.template operator()<num::row_rule<Row::id>>(Row::id);
    });
  });
}
template <op_id Op>
cut_of_rows cut_call(const row_call& c, const properties& d) {
  return cut_call<num::row_rule<Op>>(Op, c, d);
}

void check_cut(const cut_of_rows& r, const row_call& c, const properties& d) {
  const row_layout& g = r.g;
  const row_cut& cut = r.cut;
  const bool mixed = g.factor_type != g.type;
  const int most = most_per_thread(r.rule.held);
  CAPTURE(ops::structured_row_of(g.op).name);
  CAPTURE(c.rows);
  CAPTURE(c.length);
  CAPTURE(c.columns);
  CAPTURE(d.multiprocessors);
  CAPTURE(d.capability);
  CHECK((g.team >= 1 && g.team <= row_threads && (g.team & (g.team - 1)) == 0));
  CHECK((g.cluster >= 1 && (g.cluster & (g.cluster - 1)) == 0));
  CHECK((g.cluster == 1 || cut.how == row_manner::registers));
  std::int64_t own = 0;  // additions of a thread, at least
  switch (cut.how) {
    case row_manner::registers: {
      own = cut.per_thread / r.rule.chains + 2;
      // A thread each for all elements, and for those before the first place of four.
      const std::int64_t room = c.length + (cut.packed && !g.aligned ? 3 : 0);
      CHECK(std::int64_t{g.cluster} * g.team * cut.per_thread >= room);
      CHECK((g.team == 1 || std::int64_t{g.cluster} * g.team / 2 * cut.per_thread < room));  // and not twice as many
      CHECK((g.cluster == 1 || g.team == row_threads));
      // There are kernels for so many.
      CHECK((cut.per_thread == 8 || cut.per_thread == 16 || cut.per_thread == 32));
      CHECK(cut.per_thread <= most);
      if (mixed) CHECK(cut.per_thread == per_thread_of_mixed);
      if (!mixed && most == 32 && r.rule.is_costly) CHECK(cut.per_thread != 16);
      // And devices for such clusters.
      CHECK(g.cluster <= (d.capability == 90 || d.capability / 10 == 10 ? 16 : 8));
      CHECK((g.cluster == 1 || (d.capability >= 90 && !d.choice.wide)));
      CHECK((g.cluster <= 4 || r.rule.looks || (cut.packed && !g.aligned)));
      if (c.rows == 0) break;
      const unsigned grid = register_grid(g, d);
      CHECK(grid >= static_cast<unsigned>(g.cluster));
      CHECK(grid % static_cast<unsigned>(g.cluster) == 0);
      CHECK(grid <= static_cast<unsigned>(std::max(d.multiprocessors * 24, g.cluster)));
      break;
    }
    case row_manner::columns:
      CHECK((c.columns || c.length == 0));
      CHECK(c.rows >= std::int64_t{d.multiprocessors} * 32);
      own = c.length / 4 + 4;
      CHECK(cut.tracked > c.length);
      break;
    case row_manner::chunks: {
      REQUIRE(g.chunk > 0);
      const std::int64_t chunks = c.length <= g.chunk ? 1 : (c.length - 1) / g.chunk + 1;
      check_chunks(c.length, chunks, g.chunk);
      CHECK(g.chunk % (g.tiled ? tile_ahead * (row_threads / 32) : row_threads) == 0);
      CHECK((!g.whole || chunks == 1));
      CHECK((!g.tiled || !g.whole));
      own = g.tiled ? g.chunk / row_warps : g.chunk / row_threads / (g.in_fours ? r.rule.chains : 1);
      break;
    }
    case row_manner::few:
      CHECK(c.rows <= d.multiprocessors);  // a block each
      CHECK(c.length <= most_of_few);
      CHECK(!d.choice.wide);
      CHECK(!g.is_total);
      own = ceil_div(c.length, late_threads);
  }
  const bool exact_totals = cut.how == row_manner::chunks && !g.tiled && r.rule.exact_totals;
  CHECK(cut.additions >= own + (exact_totals ? 0 : 5 + row_warps));
  CHECK(cut.tracked >= 5 + row_warps + c.length / (g.chunk * 32));
  // Fours, and what lies beyond the last one, have places of 32 bits.
  if (g.in_fours && !g.tiled) CHECK(c.length + 2 * g.chunk <= INT32_MAX);
}

TEST_CASE("cuts of rows: every element of every rule's rows is somebody's, and launches are within limits") {
  int rules = 0;
  for_row_rules([&]<class Rule>(op_id op) {
    ++rules;
    for (const std::int64_t rows : {std::int64_t{0}, std::int64_t{1}, std::int64_t{4}, std::int64_t{132},
                                    std::int64_t{5000}, std::int64_t{1} << 32}) {
      for (const std::int64_t length :
           {std::int64_t{0}, std::int64_t{1}, std::int64_t{30}, std::int64_t{32}, std::int64_t{63}, std::int64_t{64},
            std::int64_t{510}, std::int64_t{1000}, std::int64_t{2048}, std::int64_t{2049}, std::int64_t{8192},
            std::int64_t{8193}, std::int64_t{32768}, std::int64_t{131072}, std::int64_t{131073}, std::int64_t{1} << 31,
            huge}) {
        for (const bool columns : {false, true}) {
          for (const int multiprocessors : small_and_large) {
            for (const int capability : {80, 90, 100, 120}) {
              for (const int kind : {0, 1, 2, 3}) {
                row_call c{rows, length};
                c.columns = columns;
                c.type = kind % 2 == 0 ? dtype::f32 : dtype::f16;
                c.beyond = kind >= 2 ? 4 : 0;
                c.targets = kind == 1;
                c.factors = kind != 3;
                c.is_whole = kind != 0;
                c.factor_type = kind == 1 ? dtype::f32 : c.type;
                const properties d =
                    device_of(multiprocessors, capability, kind == 2 ? wide_choice() : dispatch::kernel_choice{});
                check_cut(cut_call<Rule>(op, c, d), c, d);
              }
            }
          }
        }
      }
    }
  });
  CHECK(rules >= 15);
}

TEST_CASE("cuts of rows: who has them") {
  const auto how = []<op_id Op>(const row_call& c, const properties& d = device_of(132)) {
    return cut_call<Op>(c, d).cut.how;
  };
  const auto softmax = [&](const row_call& c, const properties& d = device_of(132)) {
    return how.template operator()<op_id::softmax>(c, d);
  };
  using enum row_manner;
  // Few short rows are one launch; not on a device with fewer multiprocessors, and not where numbers are to be wide.
  CHECK(softmax({132, 2048}) == few);
  CHECK(softmax({133, 2048}) == registers);
  CHECK(softmax({132, 2049}) == registers);
  CHECK(softmax({16, 2048}, device_of(1)) == registers);
  CHECK(softmax({132, 2048}, device_of(132, 90, wide_choice())) == registers);
  // As many elements as a cluster's registers, or a block's, have room for; longer rows in chunks.
  CHECK(softmax({300, 131072}) == registers);
  CHECK(softmax({300, 131073}) == chunks);
  CHECK(softmax({300, 65536}, device_of(132, 120)) == registers);
  CHECK(softmax({300, 65537}, device_of(132, 120)) == chunks);
  CHECK(softmax({300, 4096}, device_of(132, 80)) == registers);
  CHECK(softmax({300, 4097}, device_of(132, 80)) == chunks);
  CHECK(softmax({300, 4097}, device_of(132, 90, wide_choice())) == chunks);
  // Of rows side by side a thread has one each, if there are enough; a block of sums reads 32.
  row_call beside{1 << 20, 100};
  beside.columns = true;
  CHECK(softmax(beside) == columns);
  beside.rows = 1000;
  CHECK(softmax(beside) == registers);
  CHECK(softmax(beside, device_of(16)) == columns);
  beside.length = 256;
  CHECK(softmax(beside, device_of(16)) == columns);  // the greatest element is looked for
  CHECK(how.template operator()<op_id::var_mean>(beside, device_of(16)) == chunks);
  beside.length = 255;
  CHECK(how.template operator()<op_id::var_mean>(beside, device_of(16)) == columns);
}

TEST_CASE("cuts of rows: threads and blocks of a row") {
  const auto softmax = [&](std::int64_t rows, std::int64_t length, int beyond = 0) {
    row_call c{rows, length};
    c.beyond = beyond;
    return cut_call<op_id::softmax>(c, device_of(132));
  };
  CHECK(softmax(100000, 8).g.team == 1);
  CHECK(softmax(100000, 1000).g.team > 1);
  CHECK(softmax(100000, 1000).g.cluster == 1);
  CHECK(softmax(1000, 100000).g.cluster == 16);
  int former = 1;
  for (std::int64_t length = 1; length <= 131072; length *= 2) {
    const row_layout g = softmax(1000, length).g;
    CHECK(g.team * g.cluster >= former);
    former = g.team * g.cluster;
  }
  // Elements from an odd place on need room for those before it.
  CHECK(softmax(1000, 8).g.team == 1);
  CHECK(softmax(1000, 8, 4).g.team == 2);
  CHECK(softmax(1000, 8).g.aligned);
  CHECK(!softmax(1000, 8, 4).g.aligned);
  CHECK(softmax(1000, 8, 16).g.aligned);
}

TEST_CASE("cuts of rows: few rows have more threads") {
  const auto norm = [](std::int64_t rows, std::int64_t length) {
    return cut_call<op_id::layer_norm>({rows, length}, device_of(132)).cut.per_thread;
  };
  CHECK(norm(2112, 1024) == 32);  // eight rows a block, sixteen blocks a multiprocessor
  CHECK(norm(1056, 1024) == 32);
  CHECK(norm(1055, 1024) == 16);
  CHECK(norm(512, 1024) == 8);
  CHECK(norm(200, 4096) == 16);
  CHECK(norm(200, 8192) == 32);  // a block each
}

TEST_CASE("cuts of rows: rows side by side are read together, by as many blocks as fill the device") {
  CHECK(tile_lanes(4, 4) == 1);
  CHECK(tile_lanes(4, 1) == 4);
  CHECK(tile_lanes(5, 1) == 8);
  CHECK(tile_lanes(64, 4) == 16);
  CHECK(tile_lanes(65, 4) == 32);
  CHECK(tile_lanes(1000, 1) == 32);
  const auto tiles = [](std::int64_t rows, std::int64_t length, int multiprocessors) {
    row_call c{rows, length};
    c.columns = true;
    c.factors = false;
    const row_layout g = cut_call<op_id::layer_norm>(c, device_of(multiprocessors)).g;
    CHECK(g.tiled);
    return g;
  };
  for (const std::int64_t rows : {4, 5, 64, 133, 512, 4096}) {
    for (const std::int64_t length : {256, 1000, 65536}) {
      const row_layout g = tiles(rows, length, 132);
      const int each = g.in_fours ? 4 : 1, lanes = tile_lanes(rows, each);
      CHECK(g.in_fours == (rows % 4 == 0));
      const std::int64_t at_once = std::int64_t{tile_ahead} * row_threads / lanes;
      CHECK((g.chunk >= at_once && g.chunk <= tile_chunk && g.chunk % at_once == 0));
      const std::int64_t of_rows = ceil_div(rows, std::int64_t{lanes} * each);
      const std::int64_t blocks = of_rows * ceil_div(length, g.chunk);
      CHECK((blocks <= 132 * tile_blocks || g.chunk == tile_chunk));
      CHECK((g.chunk == at_once || of_rows * ceil_div(length, g.chunk - at_once) > 132 * tile_blocks / 2));
    }
  }
  CHECK(tiles(64, 65536, 132).chunk == 256);
  CHECK(tiles(512, 1024, 132).chunk == 32);
  CHECK(tiles(64, 65536, 1).chunk == tile_chunk);
}

TEST_CASE("cuts of rows: many long rows of norms are a block's each, and read twice") {
  const auto norm = [](std::int64_t rows, std::int64_t length, int multiprocessors, bool factors) {
    row_call c{rows, length};
    c.factors = factors;
    c.is_whole = true;
    return cut_call<op_id::layer_norm>(c, device_of(multiprocessors)).g;
  };
  CHECK(norm(528, 8192, 132, false).whole);
  CHECK(norm(528, 8192, 132, false).chunk == 8192);
  CHECK(!norm(527, 8192, 132, false).whole);
  CHECK(norm(527, 8192, 131, false).whole);
  CHECK(!norm(528, 4096, 132, false).whole);
  CHECK(!norm(528, 8192, 132, true).whole);  // weights of elements
  CHECK(norm(528, 20000, 132, false).chunk == 3 * long_chunk);
  // Of many chunks each is larger.
  CHECK(norm(10, 1 << 20, 132, false).chunk == long_chunk);
  CHECK(norm(100, 1 << 20, 132, true).chunk == 2 * long_chunk);
  CHECK(norm(100, huge, 132, true).chunk == long_chunk);  // not in fours
}

TEST_CASE("cuts of rows: a copy of x in a wider format has a place for every element, in x's order") {
  constexpr dtype formats[] = {dtype::f16, dtype::bf16, dtype::f32, dtype::f64};
  struct strides {
    std::int64_t kept[2], reduced[2];
    int rank;  // of the copy's axes: those that lie one behind the other are one
  };
  for (const strides& s : {strides{{60, 15}, {5, 1}, 1}, {{1, 6}, {24, 120}, 3}, {{-100, 2}, {0, -7}, 4}}) {
    for (const dtype from : formats) {
      for (const dtype to : formats) {
        if (from == to) continue;
        plan::row_plan p{};
        p.op = op_id::softmax;
        p.kept_rank = p.reduced_rank = 2;
        p.kept_shape = {2, 4};
        p.reduced_shape = {3, 5};
        p.rows = 8;
        p.length = 15;
        p.in[0] = address(0);
        p.in_type[0] = from;
        p.in_stride[0] = {{s.kept[0], s.kept[1]}, {s.reduced[0], s.reduced[1]}};
        p.out_type[0] = to;
        CHECK(p.has_other_format());
        const widened_rows r = widen_x(p);
        CHECK((r.x == nullptr) == (from == dtype::f64));
        CHECK((r.plan.in_type[0] == dtype::f64 || (r.plan.in_type[0] == dtype::f32 && to == dtype::f32)));
        if (r.x == nullptr) {
          CHECK(r.plan.in[0] == p.in[0]);
          continue;
        }
        CHECK((r.x->from == p.in[0] && r.x->type == from && r.x->to == r.plan.in_type[0]));
        CHECK((r.x->count == 120 && r.x->at.rank == s.rank));
        std::vector<bool> taken(120);
        for (int n = 0; n < 120; ++n) {
          const std::int64_t index[] = {n / 60, n / 15 % 4, n / 5 % 3, n % 5};
          const auto offset = [&](const plan::row_plan& of) {
            const plan::row_plan::strides& all = of.in_stride[0];
            return index[0] * all.kept[0] + index[1] * all.kept[1] + index[2] * all.reduced[0] +
                   index[3] * all.reduced[1];
          };
          const std::int64_t place = offset(r.plan);
          REQUIRE((place >= 0 && place < 120));
          CHECK(!taken[static_cast<std::size_t>(place)]);
          taken[static_cast<std::size_t>(place)] = true;
          std::int64_t rest = place, at = 0;
          for (int d = 0; d < r.x->at.rank; ++d) {
            at += rest % r.x->at.size[d] * r.x->at.stride[0][d];
            rest /= r.x->at.size[d];
          }
          CHECK((rest == 0 && at == offset(p)));
        }
      }
    }
  }
}

TEST_CASE("cuts of rows: late levels that are to run") {
  const auto levels = [](tier first, int bits, const properties& d = device_of(132)) {
    row_call c{1000, 1000};
    c.first = first;
    c.bits = bits;
    return cut_call<op_id::softmax>(c, d).cut.levels;
  };
  CHECK(levels(tier::proved, 512) == 7);
  CHECK(levels(tier::double_double, 512) == 7);
  CHECK(levels(tier::exact, 512) == 6);
  CHECK(levels(tier::proved, 256) == 3);
  CHECK(levels(tier::proved, 128) == 1);
  CHECK(levels(tier::proved, 512, device_of(132, 90, wide_choice())) == 5);
}

// ----------------------------------------------------------------------------------------------------------- elementwise

TEST_CASE("cuts of elementwise calls: rounds and what is settled") {
  for (const int multiprocessors : small_and_large) {
    for (const bool wide : {false, true}) {
      const properties d = device_of(multiprocessors, 90, wide ? wide_choice() : dispatch::kernel_choice{});
      for (const std::int64_t at_once : {1024, 2048, 4096}) {
        int former = 1;
        for (std::int64_t count = 1; count <= huge; count *= 2) {
          const int rounds = rounds_of(count, at_once, d);
          CHECK(rounds >= former);
          CHECK(at_once * rounds <= greatest_block);  // what is noted of a block has room
          former = rounds;
          // Blocks of several rounds are at least 16 for each multiprocessor.
          if (rounds > 1 && !wide) CHECK(ceil_div(count, at_once * rounds) >= 16 * multiprocessors);
        }
        CHECK(at_once * former == greatest_block);
        for (const std::int64_t noted : {least_block, greatest_block}) {
          for (std::int64_t count = 1; count <= std::int64_t{1} << 36; count *= 8) {
            const std::int64_t words = settled_words(count, noted, 128, d);
            CHECK(words % (noted / 32) == 0);  // whole blocks
            CHECK(words >= noted / 32);
            CHECK(words <= 128 * (noted / 32));  // a thread for each
            CHECK(ceil_div(ceil_div(count, 32), words) <= most_blocks);
          }
        }
      }
      CHECK(settled_words(huge, 0, 128, d) == 4);
    }
  }
  CHECK(most_strided(device_of(132)) == INT32_MAX);
  CHECK(most_strided(device_of(132, 90, wide_choice())) < 1000);
}

TEST_CASE("cuts of elementwise calls: tables and factors are for long lines of 16 bits") {
  plan::map_plan p{};
  p.arity = 1;
  p.rank = 1;
  p.in_type = p.out_type = dtype::f16;
  p.count = 1 << 24;
  CHECK(may_use_table(p, device_of(132)));
  CHECK(!may_use_table(p, device_of(132, 86)));  // too little shared memory
  CHECK(may_use_factors(p, device_of(132), tier::proved));
  CHECK(may_use_factors(p, device_of(132), tier::binary64));
  CHECK(!may_use_factors(p, device_of(132), tier::double_double));
  CHECK(!may_use_factors(p, device_of(132, 89), tier::proved));
  const auto neither = [&](auto&& change) {
    plan::map_plan q = p;
    change(q);
    return !may_use_table(q, device_of(132)) && !may_use_factors(q, device_of(132), tier::proved);
  };
  CHECK(neither([](plan::map_plan& q) { q.count = (1 << 22) - 1; }));
  CHECK(neither([](plan::map_plan& q) { q.rank = 2; }));
  CHECK(neither([](plan::map_plan& q) { q.in_type = q.out_type = dtype::f32; }));
  p.count = (1 << 24) - 1;
  CHECK(!may_use_table(p, device_of(132)));
  CHECK(may_use_table(p, device_of(132, 90, wide_choice())));
  p.count = 1 << 24;
  p.arity = 2;
  CHECK(!may_use_table(p, device_of(132)));
  p.count = (std::int64_t{1} << 32) - 5;
  CHECK(may_use_factors(p, device_of(132), tier::proved));
  p.count = (std::int64_t{1} << 32) - 4;
  CHECK(!may_use_factors(p, device_of(132), tier::proved));
  // Few elements, and those whose tests are to fail, are all undecided.
  CHECK(!notes_undecided(1024, device_of(132), tier::proved));
  CHECK(notes_undecided(1025, device_of(132), tier::binary64));
  CHECK(!notes_undecided(1025, device_of(132), tier::double_double));
  CHECK(notes_undecided(1, device_of(132, 90, wide_choice()), tier::exact));
}

TEST_CASE("cuts: grids and shared memory of devices") {
  for (const int multiprocessors : small_and_large) {
    const properties d = device_of(multiprocessors);
    CHECK(grid_for(d, 0, 8) == 1);
    CHECK(grid_for(d, 1, 8) == 1);
    CHECK(grid_for(d, multiprocessors * 8, 8) == static_cast<unsigned>(multiprocessors * 8));
    CHECK(grid_for(d, huge, 8) == static_cast<unsigned>(multiprocessors * 8));
    CHECK(blocks_of_sum(d, 0, 256) == 1);
    CHECK(blocks_of_sum(d, 1025, 256) == 2);
    CHECK(blocks_of_sum(d, huge, 256) == std::min(multiprocessors * 8, 1024));
  }
  CHECK(shared_limit(device_of(1, 80)) == 160 << 10);
  CHECK(shared_limit(device_of(1, 86)) == 96 << 10);
  CHECK(shared_limit(device_of(1, 90)) == 224 << 10);
  CHECK(shared_limit(device_of(1, 120)) == 96 << 10);
  CHECK(fits_32_bits(INT32_MAX));
  CHECK(!fits_32_bits(std::int64_t{INT32_MAX} + 1));
}

TEST_SUITE_END();

}  // namespace
