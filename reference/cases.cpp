// The published list of digest cases. Adding cases is free; changing or removing one breaks a promise.
#include "librepdl/ops/registry.hpp"
#include "reference/case_lists.hpp"

namespace repdl::reference {
namespace {

using enum sample_class;
using case_lists::floats, case_lists::integer, case_lists::integers, case_lists::list, case_lists::real,
    case_lists::text;

constexpr dtype f32 = dtype::f32;
constexpr auto& classes = element_classes;

void add_elementwise(list& l) {
  for (const ops::elementwise_row& row : ops::elementwise_rows) {
    const auto n = static_cast<std::size_t>(row.arity);
    const std::vector<dtype> formats(n + 1, f32);
    if (n == 1) {  // all patterns are in exhaustive.hpp; this one is a quick check
      l.add(std::string(row.name), formats, uniform_patterns, {{16411}}, {}, row.bits);
      continue;
    }
    for (const sample_class c : classes)
      l.add(std::string(row.name), formats, c, std::vector<shape_list>(n, {65537}), {}, row.bits);
    std::vector<shape_list> broadcast{{5, 1, 33}, {17, 1}, {1}};
    broadcast.resize(n);
    l.add(std::string(row.name), formats, uniform_patterns, broadcast, {}, row.bits);
  }
}

void add_convert(list& l) {
  for (const dtype from : floats) {
    for (const dtype to : floats) {
      const attributes attrs{text("dtype", std::string(format_name(to)))};
      if (size_of(from) == 2) {
        l.add("convert", {from, to}, all_patterns, {{65536}}, attrs);
        continue;
      }
      for (const sample_class c : classes) {
        if ((from == f32 || from == to) && c != uniform_patterns) continue;  // f32: exhaustive.hpp
        l.add("convert", {from, to}, c, {{65537}}, attrs);
      }
    }
  }
}

void add_reductions(list& l) {
  for (const char* op : {"sum", "mean", "max", "min", "argmax", "argmin"}) {
    const std::string name = op;
    const std::vector<dtype> formats{f32, name.starts_with("arg") ? dtype::i64 : f32};
    for (const sample_class c : classes) {
      l.add(name, formats, c, {{511, 1}}, {integers("axis", {1})});
      l.add(name, formats, c, {{509, 3}}, {integers("axis", {-1})});
      l.add(name, formats, c, {{257, 33}}, {integers("axis", {1})});
      l.add(name, formats, c, {{100, 130}}, {integers("axis", {0})});
      l.add(name, formats, c, {{7, 12, 5, 9}}, {integers("axis", {1, 3})});
      l.add(name, formats, c, {{16, 4099}}, {integers("axis", {1})});
      l.add(name, formats, c, {{100003}});
    }
    l.add(name, formats, uniform_patterns, {{3, 0}}, {integers("axis", {0})});  // no output at all
    l.add(name, formats, normal_range, {{6, 7}}, {integers("axis", {})});       // every element is its own sum
    l.add(name, formats, zeros, {{6, 7}}, {integers("axis", {})});
    l.add(name, formats, ties, {{30, 40}}, {integers("axis", {1}), {"keepdim", true}});
    if (name == "sum" || name == "mean") l.add(name, formats, normal_range, {{3, 0}}, {integers("axis", {1})});
    l.add(name, formats, normal_range, {{(1 << 20) + 3, 1}}, {integers("axis", {1})});  // two pieces
  }
}

void add_products(list& l) {
  for (const sample_class c : classes)
    for (const std::int64_t k : {1, 2, 3, 31, 1000, 65537}) l.add("dot", {f32, f32, f32}, c, {{k}, {k}});
  l.add("dot", {f32, f32, f32}, normal_range, {{0}, {0}});

  const std::vector<dtype> two{f32, f32, f32}, three{f32, f32, f32, f32};
  for (const char* how : {"exact", "fma_chain"}) {
    const attribute accumulate = text("accumulate", how);
    const bool chain = std::string(how) == "fma_chain";
    for (const sample_class c : classes) {
      l.add("matmul", two, c, {{7, 1}, {1, 9}}, {accumulate});
      l.add("matmul", two, c, {{33, 2}, {2, 17}}, {accumulate});
      l.add("matmul", two, c, {{64, 64}, {64, 64}}, {accumulate});
      l.add("matmul", two, c, {{61, 131}, {131, 67}}, {accumulate});
      if (!chain) l.add("matmul", two, c, {{130, 300}, {300, 257}}, {accumulate});
      l.add("matmul", two, c, {{5, 1031}, {1031, 6}}, {accumulate});
      l.add("matmul", two, c, {{3, 20, 40}, {3, 40, 30}}, {accumulate});
      l.add("matmul", two, c, {{2, 3, 20, 40}, {40, 30}}, {accumulate});
      l.add("matmul", three, c, {{37, 50}, {50, 41}, {41}}, {accumulate});
      l.add("matmul", two, c, {{40, 19}, {40, 23}}, {{"transpose_a", true}, accumulate});
      l.add("matmul", two, c, {{19, 40}, {23, 40}}, {{"transpose_b", true}, accumulate});
      l.add("matmul", two, c, {{40, 19}, {23, 40}}, {{"transpose_a", true}, {"transpose_b", true}, accumulate});
    }
    l.add("matmul", two, normal_range, {{4, 0}, {0, 5}}, {accumulate});
    l.add("matmul", three, normal_range, {{4, 0}, {0, 5}, {5}}, {accumulate});
  }
}

void add_random(list& l) {
  struct range {
    double low, high;
  };
  const range ranges[] = {
      {0, 1}, {-1, 1}, {0.1, 0.3}, {1, 0}, {-3, 0x1p-60}, {0, 0x1p-140}, {-0x1p-16, 0x1p-20}, {-65600, 65600}, {2, 2}};
  const shape_list shapes[] = {{1}, {7}, {33, 129}, {65537}};
  for (const dtype t : floats) {
    for (const range& r : ranges) {
      const std::int64_t n = static_cast<std::int64_t>(l.v.size());
      for (const shape_list& shape : shapes)
        l.add("uniform", {t}, uniform_patterns, {},
              {integers("shape", shape), text("dtype", std::string(format_name(t))), integer("seed", 1234567890123 + n),
               integer("stream", (std::int64_t{1} << 40) + n), real("low", r.low), real("high", r.high)});
    }
  }
  for (const std::int64_t n : {0, 1, 2, 3, 1000, 65537, 300000})
    l.add("permutation", {dtype::i64}, uniform_patterns, {},
          {integer("n", n), integer("seed", 987654321 + n), integer("stream", n)});
}

}  // namespace

std::vector<digest_case> digest_cases() {
  list l;
  add_elementwise(l);
  add_convert(l);
  add_reductions(l);
  add_products(l);
  add_random(l);
  case_lists::add_layers(l);
  case_lists::add_rows(l);
  case_lists::add_steps(l);
  return std::move(l.v);
}

}  // namespace repdl::reference
