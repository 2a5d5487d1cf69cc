// Made by reference/gen/dd_constants.py; do not edit.
#pragma once

#include "librepdl/num/eft.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// clang-format off
inline constexpr dd dd_ln2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};  // ln 2
inline constexpr dd dd_log2_e = {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56};  // 1 / ln 2
inline constexpr dd dd_log10_e = {0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57};  // 1 / ln 10
inline constexpr dd dd_log10_2 = {0x1.34413509f79ffp-2, -0x1.9dc1da994fd21p-59};  // log10 2
inline constexpr dd dd_ln10 = {0x1.26bb1bbb55516p+1, -0x1.f48ad494ea3e9p-53};  // ln 10
inline constexpr dd dd_half_pi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};  // pi / 2
inline constexpr dd dd_inverse_root_2 = {0x1.6a09e667f3bcdp-1, -0x1.bdd3413b26456p-55};  // 1 / sqrt 2
inline constexpr dd dd_two_over_root_pi = {0x1.20dd750429b6dp+0, 0x1.1ae3a914fed80p-56};  // 2 / sqrt pi
inline constexpr dd dd_half_root_pi = {0x1.c5bf891b4ef6bp-1, -0x1.618f13eb7ca89p-55};  // sqrt(pi) / 2
inline constexpr dd dd_root_2_pi = {0x1.40d931ff62706p+1, -0x1.a6a0d6f814637p-53};  // sqrt(2 pi)
inline constexpr dd dd_inverse_root_2_pi = {0x1.9884533d43651p-2, -0x1.cbc0d30ebfd15p-56};  // 1 / sqrt(2 pi)
inline constexpr dd dd_root_2_over_pi = {0x1.9884533d43651p-1, -0x1.cbc0d30ebfd15p-55};  // sqrt(2 / pi)
inline constexpr dd dd_selu_scale = {0x1.0cfabd6a91132p+0, 0x1.6fc7d272f2695p-55};  // s of selu
inline constexpr dd dd_selu_scale_alpha = {0x1.c212cc640f031p+0, 0x1.05161b045a1fep-56};  // s a of selu
inline constexpr dd dd_inverse_840 = {0x1.3813813813814p-10, -0x1.fb1fb1fb1fb20p-64};  // 1 / 840
inline constexpr double ln2_parts[] = {0x1.62e42fefa3800p-1, 0x1.ef35793c76000p-45, 0x1.cc01f97b57a08p-87};  // ln 2 in 42, 42, 53 bits
inline constexpr double ln2_256th_parts[] = {0x1.62e42fef80000p-9, 0x1.1cf79abc80000p-44, 0x1.e3b39803f2f6bp-80};  // ln 2 / 256 in 34, 34, 53 bits
inline constexpr double half_pi_parts[] = {0x1.921fb54000000p+0, 0x1.10b4611000000p-30, 0x1.4c4c662000000p-59, 0x1.1701b839a2520p-88};  // pi / 2 in 29, 29, 29, 53 bits
// arctan 0, arctan 1/4, arctan 1/2, arctan 13/16
template <int N>
REPDL_HD constexpr dd dd_arctan() {
  constexpr dd table[] = {{0, 0},
                            {0x1.f5b75f92c80ddp-3, 0x1.8ab6e3cf7afbdp-57},
                            {0x1.dac670561bb4fp-2, 0x1.a2b7f222f65e2p-56},
                            {0x1.5d58987169b18p-1, 0x1.0028e4bc5e7cap-57}};
  return table[N];
}
// 1 / (2 N + 1)
template <int N>
REPDL_HD constexpr dd dd_odd_inverse() {
  constexpr dd table[] = {{0x1p+0, 0},
                            {0x1.5555555555555p-2, 0x1.5555555555555p-56},
                            {0x1.999999999999ap-3, -0x1.999999999999ap-57},
                            {0x1.2492492492492p-3, 0x1.2492492492492p-57},
                            {0x1.c71c71c71c71cp-4, 0x1.c71c71c71c71cp-58},
                            {0x1.745d1745d1746p-4, -0x1.745d1745d1746p-59},
                            {0x1.3b13b13b13b14p-4, -0x1.3b13b13b13b14p-58},
                            {0x1.1111111111111p-4, 0x1.1111111111111p-60}};
  return table[N];
}
// 1 / N!
template <int N>
REPDL_HD constexpr dd dd_inverse_factorial() {
  constexpr dd table[] = {{0x1p+0, 0},
                            {0x1p+0, 0},
                            {0x1p-1, 0},
                            {0x1.5555555555555p-3, 0x1.5555555555555p-57},
                            {0x1.5555555555555p-5, 0x1.5555555555555p-59},
                            {0x1.1111111111111p-7, 0x1.1111111111111p-63},
                            {0x1.6c16c16c16c17p-10, -0x1.f49f49f49f49fp-65},
                            {0x1.a01a01a01a01ap-13, 0x1.a01a01a01a01ap-73},
                            {0x1.a01a01a01a01ap-16, 0x1.a01a01a01a01ap-76},
                            {0x1.71de3a556c734p-19, -0x1.c154f8ddc6c00p-73},
                            {0x1.27e4fb7789f5cp-22, 0x1.cbbc05b4fa99ap-76}};
  return table[N];
}
// RN(1 / N!)
template <int N>
REPDL_HD constexpr double inverse_factorial() {
  constexpr double table[] = {0x1p+0,
                            0x1p+0,
                            0x1p-1,
                            0x1.5555555555555p-3,
                            0x1.5555555555555p-5,
                            0x1.1111111111111p-7,
                            0x1.6c16c16c16c17p-10,
                            0x1.a01a01a01a01ap-13,
                            0x1.a01a01a01a01ap-16,
                            0x1.71de3a556c734p-19,
                            0x1.27e4fb7789f5cp-22,
                            0x1.ae64567f544e4p-26,
                            0x1.1eed8eff8d898p-29,
                            0x1.6124613a86d09p-33,
                            0x1.93974a8c07c9dp-37,
                            0x1.ae7f3e733b81fp-41,
                            0x1.ae7f3e733b81fp-45,
                            0x1.952c77030ad4ap-49,
                            0x1.6827863b97d97p-53,
                            0x1.2f49b46814157p-57,
                            0x1.e542ba4020225p-62,
                            0x1.71b8ef6dcf572p-66,
                            0x1.0ce396db7f853p-70,
                            0x1.761b41316381ap-75};
  return table[N];
}
// clang-format on

}  // namespace REPDL_ISA
}  // namespace repdl::num
