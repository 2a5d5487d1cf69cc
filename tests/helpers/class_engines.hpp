// Running one call on every engine (instruction set, GPU) with inputs of the oracle, for the tests of sample classes.
#pragma once

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "reference/array.hpp"

namespace repdl::test {

struct engine {
  std::string name;
  std::unique_ptr<context> ctx;
};

/// Every instruction set of this machine and every GPU; there, with `of_products`, also each engine of products alone.
inline std::vector<engine> engines(bool of_products = false) {
  std::vector<engine> all;
  for (const isa_info& i : instruction_sets()) {
    if (i.available) all.push_back({i.name, std::make_unique<context>(context_options{.threads = 2, .isa = i.name})});
  }
  for (const device_info& d : devices()) {
    if (d.where.kind != device_kind::cuda) continue;
    const auto add = [&](const char* suffix, product_engine products) {
      context_options o;
      o.where = d.where;
      o.products = products;
      all.push_back({name_of(d.where) + suffix, std::make_unique<context>(o)});
    };
    add("", product_engine::any);
    if (!of_products) continue;
    add(", binary64", product_engine::binary64);
    add(", residues", product_engine::residues);
  }
  return all;
}

/// Every instruction set, from each of the tiers, with one thread and with several.
inline std::vector<engine> every_context(std::initializer_list<tier> tiers) {
  std::vector<engine> all;
  for (const isa_info& i : instruction_sets()) {
    if (!i.available) continue;
    for (const tier t : tiers) {
      for (const int threads : {1, 3}) {
        all.push_back({i.name + " from tier " + std::to_string(static_cast<int>(t)) + ", " + std::to_string(threads),
                       std::make_unique<context>(context_options{.threads = threads, .isa = i.name, .first_tier = t})});
      }
    }
  }
  return all;
}

inline sizes to_sizes(const reference::shape_list& s) { return sizes(std::span<const std::int64_t>(s)); }

/// The array on the context's device.
inline tensor upload(context& ctx, const reference::array& a) {
  tensor t(ctx, a.type, to_sizes(a.shape));
  ctx.copy(t.view().data(), a.bytes.data(), a.bytes.size());
  return t;
}

/// The outputs, shaped like `like`; their memory is poisoned before.
inline std::vector<reference::array> run(context& ctx, const std::string& op, const std::vector<reference::array>& in,
                                         const std::vector<reference::array>& like, const attributes& attrs) {
  std::vector<tensor> memory;
  std::vector<const_tensor_view> views;
  for (const reference::array& a : in) {
    views.push_back(a.absent() ? const_tensor_view() : memory.emplace_back(upload(ctx, a)));
  }
  std::vector<tensor_view> out_views;
  for (const reference::array& a : like) {
    reference::array poison = a;
    std::fill(poison.bytes.begin(), poison.bytes.end(), static_cast<unsigned char>(0xa5));
    out_views.push_back(memory.emplace_back(upload(ctx, poison)));
  }
  call(ctx, *find(op), views, out_views, attrs);
  std::vector<reference::array> got = like;
  for (std::size_t i = 0; i < got.size(); ++i) ctx.copy(got[i].bytes.data(), out_views[i].data(), got[i].bytes.size());
  return got;
}

/// The first difference as text; empty where there is none.
inline std::string difference(const std::vector<reference::array>& got, const std::vector<reference::array>& expected) {
  for (std::size_t o = 0; o < expected.size(); ++o) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(expected[o].count()); ++i) {
      if (got[o].get(i) == expected[o].get(i)) continue;
      char text[120];
      std::snprintf(text, sizeof text, "output %zu, element %zu is 0x%llx, expected 0x%llx", o, i,
                    static_cast<unsigned long long>(got[o].get(i)),
                    static_cast<unsigned long long>(expected[o].get(i)));
      return text;
    }
  }
  return {};
}

}  // namespace repdl::test
