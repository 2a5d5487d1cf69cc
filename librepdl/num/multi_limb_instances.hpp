// What formulas call of the multi-limb arithmetic, at the levels of decide_by_levels: compiled once, in multi_limb.cpp, for drivers and
// for the instruction set that has the repairs. Elsewhere every caller's object has what it calls.
//
// No include guard: formula.hpp includes it as declarations, multi_limb.cpp as definitions (REPDL_DEFINES_LIMBS). The sets named here
// are those that backends/CMakeLists.txt compiles multi_limb.cpp for; without it a program does not link.
#if defined(REPDL_DEFINES_LIMBS)
#define REPDL_LIMB_INSTANCE template
#else
#define REPDL_LIMB_INSTANCE extern template
#endif

#define REPDL_JOINED(a, b) a##b
#define REPDL_HAS_LIMBS(isa) REPDL_JOINED(REPDL_HAS_LIMBS_, isa)
#define REPDL_HAS_LIMBS_generic 1
#define REPDL_HAS_LIMBS_baseline 1
#define REPDL_HAS_LIMBS_neon 1

#if REPDL_HAS_LIMBS(REPDL_ISA) && REPDL_COMPILES_ONCE
namespace repdl::num {
inline namespace REPDL_ISA {

#define REPDL_LIMB_ROUNDING(L, T)                                                            \
  REPDL_LIMB_INSTANCE storage_of<T> round_bits<T, L>(const multi_limb<L>&);                  \
  REPDL_LIMB_INSTANCE decided_value<T> round_ball<T, L>(const ball<L>&);                     \
  REPDL_LIMB_INSTANCE decided_value<T> round_formula<T, L, ball<L>>(const ball<L>&);         \
  REPDL_LIMB_INSTANCE decided_value<T> round_formula<T, L, quotient<L>>(const quotient<L>&); \
  REPDL_LIMB_INSTANCE decided_value<T> round_formula<T, L, beside<L>>(const beside<L>&);
#define REPDL_LIMB_LEVEL(L)                                                                         \
  REPDL_LIMB_INSTANCE multi_limb<L> limbs_of<L>(std::uint64_t, std::int64_t, bool);                 \
  REPDL_LIMB_INSTANCE multi_limb<L> add<L>(const multi_limb<L>&, const multi_limb<L>&, bool*);      \
  REPDL_LIMB_INSTANCE multi_limb<L> multiply<L>(const multi_limb<L>&, const multi_limb<L>&, bool*); \
  REPDL_LIMB_INSTANCE multi_limb<L> multiply<L>(const multi_limb<L>&, std::uint64_t, bool*);        \
  REPDL_LIMB_INSTANCE multi_limb<L> divide<L>(const multi_limb<L>&, const multi_limb<L>&, bool*);   \
  REPDL_LIMB_INSTANCE ball<L> add<L>(const ball<L>&, const ball<L>&);                               \
  REPDL_LIMB_INSTANCE ball<L> multiply<L>(const ball<L>&, const ball<L>&);                          \
  REPDL_LIMB_INSTANCE ball<L> divide<L>(const ball<L>&, const ball<L>&);                            \
  REPDL_LIMB_INSTANCE void set_power<L>(ball<L>&, std::int64_t);                                    \
  REPDL_LIMB_INSTANCE void add_to<L>(ball<L>&, const ball<L>&);                                     \
  REPDL_LIMB_INSTANCE void add_value<L>(ball<L>&, double);                                          \
  REPDL_LIMB_INSTANCE void add_count<L>(ball<L>&, std::int64_t);                                    \
  REPDL_LIMB_INSTANCE void multiply_by<L>(ball<L>&, const ball<L>&);                                \
  REPDL_LIMB_INSTANCE void multiply_by_value<L>(ball<L>&, double);                                  \
  REPDL_LIMB_INSTANCE void multiply_by_count<L>(ball<L>&, std::int64_t);                            \
  REPDL_LIMB_INSTANCE void divide_by<L>(ball<L>&, const ball<L>&);                                  \
  REPDL_LIMB_INSTANCE ball_ends<L> ends_of<L>(const ball<L>&);                                      \
  REPDL_LIMB_INSTANCE ball<L> exponential<L>(const multi_limb<L>&);                                 \
  REPDL_LIMB_INSTANCE ball<L> exponential<L>(const ball<L>&);                                       \
  REPDL_LIMB_INSTANCE ball<L> logarithm<L>(const multi_limb<L>&);                                   \
  REPDL_LIMB_INSTANCE void to_logarithm<L>(ball<L>&);                                               \
  REPDL_LIMB_INSTANCE void to_logarithm_1p_small<L>(ball<L>&);                                      \
  REPDL_LIMB_INSTANCE void to_logarithm_1p<L>(ball<L>&);                                            \
  REPDL_LIMB_INSTANCE ball<L> square_root<L>(const ball<L>&);                                       \
  REPDL_LIMB_INSTANCE circular_value<L> circular<L>(std::uint64_t, bool);                           \
  REPDL_LIMB_INSTANCE ball<L> circular<L>(double, bool);                                            \
  REPDL_LIMB_ROUNDING(L, f16) REPDL_LIMB_ROUNDING(L, bf16) REPDL_LIMB_ROUNDING(L, float) REPDL_LIMB_ROUNDING(L, double)

REPDL_LIMB_LEVEL(2)
REPDL_LIMB_LEVEL(4)
REPDL_LIMB_LEVEL(8)
REPDL_LIMB_LEVEL(16)
REPDL_LIMB_LEVEL(32)

#undef REPDL_LIMB_LEVEL
#undef REPDL_LIMB_ROUNDING
}  // namespace REPDL_ISA
}  // namespace repdl::num
#endif

#undef REPDL_LIMB_INSTANCE
#undef REPDL_JOINED
#undef REPDL_HAS_LIMBS
#undef REPDL_HAS_LIMBS_generic
#undef REPDL_HAS_LIMBS_baseline
#undef REPDL_HAS_LIMBS_neon
