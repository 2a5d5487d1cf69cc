// The type of an elementwise operation, from its row: ops::exp and so on. Bodies are attached to the type by its name alone, so a
// header of bodies only declares it, and a file that compiles them defines it: one row, not the registry.
#pragma once

#include "librepdl/ops/registry.hpp"

#define REPDL_UNPAREN(...) __VA_ARGS__

/// Inside of namespace repdl::ops, with the columns of a row.
#define REPDL_OPERATION(name, n, text, of, result_is, its_options, kind, domain, mono, proof, bits, formula) \
  struct name {                                                                                              \
    static constexpr elementwise_row row = {#name,                                                           \
                                            n,                                                               \
                                            text,                                                            \
                                            boolean_operands(text, n),                                       \
                                            of,                                                              \
                                            result_kind::result_is,                                          \
                                            option_list{{REPDL_UNPAREN its_options}},                        \
                                            op_kind::kind,                                                   \
                                            interval{REPDL_UNPAREN domain},                                  \
                                            monotone_kind::mono,                                             \
                                            proof_kind::proof,                                               \
                                            bits,                                                            \
                                            formula};                                                        \
    static constexpr int arity = n;                                                                          \
    static constexpr std::string_view operands = text;                                                       \
    static constexpr dtype_set formats = of;                                                                 \
    static constexpr result_kind result = result_kind::result_is;                                            \
  };
