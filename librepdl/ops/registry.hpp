// The op registry: every operation the library has, as data. Kernels, tests, sweeps, digests, bindings, the command
// line and the documentation are made by looping over it.
//
// An elementwise operation is a row of elementwise.def. A structured operation is a line of structured.def and a type in
// structured.hpp. Rows carry names and never point upward; each layer attaches its part by specialisation
// (num::body<Op>, reference, ...).
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

namespace repdl::ops {

/// Numbers every operation. Internal: the order is that of the registry and may change between releases.
enum class op_id : int {
#define REPDL_ELEMENTWISE(name, ...) name,
#include "librepdl/ops/elementwise.def"
#undef REPDL_ELEMENTWISE
#define REPDL_STRUCTURED(name, ...) name,
#include "librepdl/ops/structured.def"
#undef REPDL_STRUCTURED
};

inline constexpr int elementwise_count = 0
#define REPDL_ELEMENTWISE(...) +1
#include "librepdl/ops/elementwise.def"
#undef REPDL_ELEMENTWISE
    ;
inline constexpr int op_count = elementwise_count
#define REPDL_STRUCTURED(...) +1
#include "librepdl/ops/structured.def"
#undef REPDL_STRUCTURED
    ;

enum class op_kind { compute, bits };
enum class monotone_kind { up, down, no };
enum class proof_kind { ieee, select, enumerate, formula, integers, exact, multi_limb };
/// Which outputs may be exactly an input, the same elements in the same order: none, any, or the one of its name.
enum class aliases { none, any, same_name };

struct interval {
  double lo = -std::numeric_limits<double>::infinity();
  double hi = std::numeric_limits<double>::infinity();
};

/// One row of elementwise.def.
struct elementwise_row {
  std::string_view name;
  int arity;
  std::string_view operands;  // "x,y"
  op_kind kind;
  interval domain;
  monotone_kind monotone;
  std::string_view oracle;
  proof_kind proof;
  int bits;
  std::string_view formula;
};

// The type of each elementwise operation: ops::exp and so on.
#define REPDL_ELEMENTWISE(name, n, ...)      \
  struct name {                              \
    static constexpr op_id id = op_id::name; \
    static constexpr int arity = n;          \
  };
#include "librepdl/ops/elementwise.def"
#undef REPDL_ELEMENTWISE

#define REPDL_UNPAREN(...) __VA_ARGS__
inline constexpr elementwise_row elementwise_rows[] = {
#define REPDL_ELEMENTWISE(name, n, operands, kind, domain, mono, oracle, proof, bits, formula) \
  {#name,                                                                                      \
   n,                                                                                          \
   operands,                                                                                   \
   op_kind::kind,                                                                              \
   interval{REPDL_UNPAREN domain},                                                             \
   monotone_kind::mono,                                                                        \
   #oracle,                                                                                    \
   proof_kind::proof,                                                                          \
   bits,                                                                                       \
   formula},
#include "librepdl/ops/elementwise.def"
#undef REPDL_ELEMENTWISE
};

/// One row of structured.def.
struct structured_row {
  std::string_view name;
  std::string_view family;
  proof_kind proof;
  aliases may_alias;
  int bits;
};
inline constexpr structured_row structured_rows[] = {
#define REPDL_STRUCTURED(name, family, proof, may_alias, bits) \
  {#name, #family, proof_kind::proof, aliases::may_alias, bits},
#include "librepdl/ops/structured.def"
#undef REPDL_STRUCTURED
};

/// Calls f.template operator()<Op>() for every elementwise operation, in the registry's order.
template <class F>
constexpr void for_each_elementwise(F&& f) {
#define REPDL_ELEMENTWISE(name, ...) f.template operator()<name>();
#include "librepdl/ops/elementwise.def"
#undef REPDL_ELEMENTWISE
}

}  // namespace repdl::ops
