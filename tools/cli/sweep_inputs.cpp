// The inputs of `repdl sweep`: half over the row's domain, half where functions are difficult.
#include <bit>
#include <limits>
#include <string>

#include "librepdl/ops/registry.hpp"
#include "reference/attributes.hpp"
#include "reference/digests.hpp"
#include "tools/cli/data_directory.hpp"
#include "tools/cli/sweep.hpp"

namespace repdl::tools {
namespace {

using reference::array;
using reference::sample_class;
using reference::word_stream;

constexpr std::int64_t batch_elements = 4096;
constexpr std::uint64_t type_count = std::size(every_type);

/// Integers in the order of the numbers: consecutive numbers have consecutive keys.
std::int32_t key_of(float x) {
  const auto b = std::bit_cast<std::int32_t>(x);
  return b >= 0 ? b : std::numeric_limits<std::int32_t>::min() - b;
}
std::uint32_t pattern_of(std::int64_t key) {
  return key >= 0 ? static_cast<std::uint32_t>(key) : 0x80000000u + static_cast<std::uint32_t>(-key);
}

/// Alternately uniform among the numbers of the interval and uniform in value.
std::uint32_t in_domain(const ops::interval& d, word_stream& w) {
  const auto lo = static_cast<float>(d.lo), hi = static_cast<float>(d.hi);
  if (w.flip()) {
    const std::int64_t a = key_of(lo), b = key_of(hi);
    const auto span = static_cast<std::uint64_t>(b - a + 1);
    return pattern_of(a + static_cast<std::int64_t>(w.next64() % span));
  }
  const double u = static_cast<double>(w.next64() >> 11) * 0x1p-53;
  return std::bit_cast<std::uint32_t>(static_cast<float>(d.lo + (d.hi - d.lo) * u));
}

constexpr std::uint32_t neighbourhoods = 4;
/// Powers of two, subnormals, the overflow border, the ends of the domain; each with its neighbours.
std::uint32_t in_neighbourhood(std::uint32_t which, const ops::interval& d, word_stream& w) {
  const std::uint32_t sign = w.flip() ? 0x80000000u : 0;
  const std::uint32_t near = w.below(65) - 32;
  switch (which) {
    case 0:
      return sign | (((1 + w.below(254)) << 23) + near);
    case 1:
      return sign | (w.flip() ? 0x00800000u - w.below(64) : (w.next() & 0x007fffffu) >> w.below(23));
    case 2:
      return sign | (w.flip() ? 0x7f7fffffu - w.below(64) : 0x7e000000u + (w.next() & 0x017fffffu));
    default: {
      const auto end = static_cast<float>(w.flip() ? d.lo : d.hi);
      const std::int64_t step = w.flip() ? static_cast<std::int32_t>(near) : static_cast<std::int32_t>(near) * 4096;
      return pattern_of(key_of(end) + step);
    }
  }
}

/// binary32 only: the domain is where its results are no constants.
std::vector<array> domain_inputs(const ops::elementwise_row& row, std::uint64_t seed, std::uint64_t index,
                                 std::uint64_t stratum) {
  word_stream w(seed, index);
  std::vector<array> in;
  for (int k = 0; k < row.arity; ++k)
    in.emplace_back(row.operand_type(k, dtype::f32), reference::shape_list{batch_elements});
  for (std::size_t i = 0; i < static_cast<std::size_t>(batch_elements); ++i) {
    for (array& a : in) {
      if (a.type == dtype::boolean) {
        a.set(i, reference::sample(sample_class::uniform_patterns, a.type, w));
        continue;
      }
      // Of several operands some stay ordinary, so that the special one decides the result.
      const bool special = index % 2 == 1 && (row.arity == 1 || w.below(4) != 0);
      a.set(i,
            special ? in_neighbourhood(static_cast<std::uint32_t>(stratum), row.domain, w) : in_domain(row.domain, w));
    }
  }
  return in;
}

/// Every second batch with the options at their defaults, the others with coefficients of magnitude in [2^-8, 2^7), or values.
attributes random_options(const ops::elementwise_row& row, dtype t, std::uint64_t seed, std::uint64_t index) {
  if (index % 2 == 0) return {};
  word_stream words(seed ^ 0x9e3779b9, index);
  return reference::sample_options(row, t, words, [](word_stream& w) {
    const std::uint64_t exponent = 1015 + w.below(15);
    return std::bit_cast<double>((w.next64() & 0x800fffffffffffff) | exponent << 52);
  });
}

/// The formats by turns.
sweep_batch elementwise_batch(const ops::elementwise_row& row, std::uint64_t seed, std::uint64_t index) {
  std::vector<dtype> formats;
  for (const dtype t : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64, dtype::boolean}) {
    if ((row.formats & ops::one(t)) != 0) formats.push_back(t);
  }
  const dtype t = formats[index % formats.size()];
  const std::uint64_t turn = index / formats.size();
  constexpr auto classes = static_cast<std::uint32_t>(reference::element_classes.size());
  const std::uint64_t stratum = turn / 2 % (neighbourhoods + classes);
  const attributes attrs = random_options(row, t, seed, turn);
  if (t == dtype::f32 && !(turn % 2 == 1 && stratum >= neighbourhoods)) {
    return {domain_inputs(row, seed, turn, stratum), attrs};
  }
  return {reference::fill_operands(static_cast<sample_class>(turn / 2 % classes), row, t, batch_elements, seed, index),
          attrs};
}

/// Larger cases would be most of a sweep; verify has them.
bool is_small(const reference::digest_case& c) {
  constexpr std::int64_t most = std::int64_t{1} << 17;
  for (const reference::shape_list& s : c.shapes) {
    if (reference::count_of(s) > most) return false;
  }
  return true;
}

/// The published cases of an operation.
const std::vector<reference::digest_case>& cases_of(const op_info& op) {
  thread_local std::string last;
  thread_local std::vector<reference::digest_case> found;
  if (last != op.name) {
    found.clear();
    for (const reference::committed_digest& d : reference::read_cases(data_directory() + "/docs/digests", op)) {
      if (is_small(d.c)) found.push_back(d.c);
    }
    last = op.name;
  }
  return found;
}

struct conversion {
  dtype from, to;
};
/// Those from types of at most 32 bits: first from 16 bits, then from 32.
constexpr dtype narrow_types[] = {dtype::f16, dtype::bf16, dtype::f32, dtype::i32};
constexpr conversion narrow_conversion(std::uint64_t i) {
  return {narrow_types[i / type_count], every_type[i % type_count]};
}
constexpr std::uint64_t from_16_bits = 2 * type_count, from_32_bits = 2 * type_count;

constexpr std::uint64_t range_elements = std::uint64_t{1} << 20;

}  // namespace

sweep_batch make_batch(const op_info& op, std::uint64_t seed, std::uint64_t index) {
  if (const ops::elementwise_row* row = reference::elementwise_named(op.name)) {
    return elementwise_batch(*row, seed, index);
  }
  if (op.name == "convert") {
    // Three batches of four are from 64 bits: most others can be swept exhaustively.
    const bool any = index % 4 == 3;
    const std::uint64_t turn = index / 4;
    const dtype from = any ? every_type[turn % type_count] : index % 2 == 0 ? dtype::f64 : dtype::i64;
    const conversion c{from, every_type[(any ? turn / type_count : turn) % type_count]};
    const auto kind = reference::element_classes[turn % reference::element_classes.size()];
    return {{reference::fill_conversion(kind, c.from, c.to, batch_elements, seed, index)},
            {{"dtype", std::string(name_of(c.to))}}};
  }
  // The shapes, classes and attributes of the published cases, with other words.
  const auto& cases = cases_of(op);
  reference::digest_case c = cases[index * 7919 % cases.size()];
  c.seed = (seed << 32) + index + 1000003;
  for (attribute& a : c.attrs) {
    if (a.name == "seed") a.value = static_cast<std::int64_t>(seed * 1000003 + index);
    if (a.name == "stream") a.value = static_cast<std::int64_t>(index);
  }
  return {reference::inputs(c), c.attrs};
}

std::uint64_t exhaustive_batch_count(const op_info& op) {
  constexpr std::uint64_t all32 = (std::uint64_t{1} << 32) / range_elements;
  if (op.name == "convert") return from_16_bits + from_32_bits * all32;
  const ops::elementwise_row* row = reference::elementwise_named(op.name);
  return row != nullptr && row->arity == 1 && row->options.count() == 0 ? all32 : 0;
}

exhaustive_range exhaustive_batch(const op_info& op, std::uint64_t index) {
  if (op.name == "convert") {
    if (index < from_16_bits) return {narrow_conversion(index).from, narrow_conversion(index).to, 0, 65536};
    index -= from_16_bits;
    const std::uint64_t all32 = (std::uint64_t{1} << 32) / range_elements;
    const conversion c = narrow_conversion(from_16_bits + index / all32);
    return {c.from, c.to, static_cast<std::uint32_t>(index % all32 * range_elements), range_elements};
  }
  return {dtype::f32, dtype::f32, static_cast<std::uint32_t>(index * range_elements), range_elements};
}

}  // namespace repdl::tools
