// erf z in double-double by a table of polynomials, for the CPU's registers (dd_error_function.hpp does without). R is binary64, or a register of it.
//
// z = i 13/32 + t, |t| <= 13/64 (1 + 2^-40); of i = 0 erf z is an odd polynomial of t = z, else c_0 + c_1 t + ... + c_17 t^17, erf z > 0.22. i is at most 15, for
// z < 6.29. t is exact: z = t, or z is between half of i 13/32 and twice that. Coefficients, and the bounds that stand in quotation marks, are printed by
// reference/gen/error_function_rows.sollya.
//
// Errors, relative, u = 2^-53; the largest of a row's sums is that of i = 3:
//   "approximation"                                                                   2^-77
//   c_6 + c_7 t + ... in binary64: u "rounding", with FMA or without                  2^-71.8  (i = 1: 2^-68.8)
//   steps c_k + t p of k < 6 (sum_of_product), where t p is more than c_k / 2: c_k - s is rounded, u |t p|; likewise that of k = 1, where two_prod comes
//     first and fast_two_sum has an error where |t p| > |c_k|: u "place"              2^-68.4
//   the other errors of double-doubles                                                2^-96
//   sum                                                                               < 2^-68.2
//
// Checked by tests/numerics/dd_functions_test.cpp.
#pragma once

#include "librepdl/num/dd_functions.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// c_0 to c_3, hi and lo, and c_4 to c_17
struct erf_rows {
  alignas(16) double row[16][22];
};
// clang-format off
inline constexpr erf_rows erf_on_host = {{
    {0, 0, 0x1.20dd750429b6dp0, 0x1.1ae3ae43e0c08p-56, 0, 0, -0x1.812746b0379e7p-2, 0x1.edb4b25c7080ep-57, 0,
     0x1.ce2f21a042be2p-4, 0, -0x1.b82ce31288c03p-6, 0, 0x1.565bcd0e76c8ep-8, 0, -0x1.c02db40cc0b43p-11, 0,
     0x1.f9a3289145307p-14, 0, -0x1.f4caff0fbb849p-17, 0, 0x1.b41e5d7fa30bp-20},
    {0x1.bccfec24855b8p-2, -0x1.47292cb5b0511p-56, 0x1.e9d5a8e4c934ep-1, -0x1.9a1647f0a451cp-56, -0x1.8dfd9939e37afp-2,
     -0x1.b2a0381259b74p-57, -0x1.b588d8dc5bb93p-3, -0x1.f8d6381f1a1d4p-57, 0x1.62338788af9e4p-3, 0x1.26cf85bc6251p-5,
     -0x1.a1bcaaadf9afp-5, -0x1.5b4a7759cb78ap-9, 0x1.6ee0d1c16e55ep-7, -0x1.03d1ee9883dcap-11, -0x1.ff3a25c838cf9p-10,
     0x1.d8271d5c87f24p-13, 0x1.25d99e8933945p-12, -0x1.9d4463103b3f5p-15, -0x1.1df8a214d187p-15, 0x1.0a93ba4b8e83bp-17,
     0x1.d785679bd7bedp-19, -0x1.1331ec4d2bdd2p-20},
    {0x1.7fb9bfaed8078p-1, 0x1.66cf15407ed6cp-56, 0x1.2a8dcede3673bp-1, -0x1.7378e5b363584p-56, -0x1.e5267029187cp-2,
     0x1.adc6765227bfdp-56, 0x1.fe0796bb9d05ap-5, -0x1.79c36c02080acp-60, 0x1.0fa23021ad0acp-3, -0x1.fa21ebca76761p-5,
     -0x1.31546d5c4ee49p-6, 0x1.37e5469efb7d5p-6, 0x1.097966e5502bbp-13, -0x1.e82ab02090d51p-9, 0x1.318270953f8ecp-11,
     0x1.12652e4a3c14ap-11, -0x1.4dc9a05577531p-13, -0x1.c44121d06d9afp-15, 0x1.c9074bf086915p-16,
     0x1.f3cb99bdc6f11p-19, -0x1.d431188836aacp-19, -0x1.46fce6d2374dep-24},
    {0x1.d4970f9ce00d9p-1, -0x1.56705067c5846p-56, 0x1.059f59af7a906p-2, -0x1.0cd87f8e6d1cp-56, -0x1.3eda354ddd5ffp-2,
     0x1.ec414b5bb4a4p-62, 0x1.57b85ad436065p-3, 0x1.a266ae23f81c6p-58, 0x1.8e90c2a154b79p-10, -0x1.a2893b28e9386p-5,
     0x1.4d6af44a48e6cp-6, 0x1.4ccee5911fcb9p-8, -0x1.83306d9fa5b29p-8, 0x1.41354f86688e2p-11, 0x1.d85fe1af7f32fp-11,
     -0x1.3a7872fa2922fp-12, -0x1.3d1181b3fcc54p-14, 0x1.d9b00dbde70c8p-15, 0x1.2c3b5eaa7fdcap-23,
     -0x1.d6a7f2cb9fa02p-18, 0x1.10fc0ab37055dp-20, 0x1.4b7dab25cf0a3p-21},
    {0x1.f4f693b67bd77p-1, -0x1.3a1edf6e762d4p-56, 0x1.499d478bca735p-4, 0x1.31c356b516a4cp-60, -0x1.0bcfca21947dbp-3,
     -0x1.f90086d890fb4p-59, 0x1.d6631e1a28e9ep-4, 0x1.a35b97f3554cap-58, -0x1.974c03686729dp-5, -0x1.17d430bd57dfep-9,
     0x1.d857f2c4bc903p-7, -0x1.954ab0f579d05p-8, -0x1.2e43eef231a07p-11, 0x1.71cd78551ff9fp-10, -0x1.7545723d192c6p-12,
     -0x1.07892d87c7e16p-13, 0x1.70f949346886ap-14, -0x1.1e9bb0bbfffcbp-18, -0x1.64006f4955515p-17,
     0x1.7b8f33aae5a5p-19, 0x1.66aed6d6d1b08p-21, -0x1.d5ec584144a56p-22},
    {0x1.fdea6e062d0c9p-1, -0x1.64c6b5b86dcd6p-56, 0x1.2a875b5ffab56p-6, 0x1.50c1a8b89194p-63, -0x1.2f3178cd7aa03p-5,
     -0x1.8b0564d097d27p-59, 0x1.68d1c45b96f01p-5, -0x1.6b66bc914773cp-61, -0x1.09648dd331c11p-5, 0x1.ad8b148079603p-7,
     -0x1.f00fa67ec02b7p-13, -0x1.871876029dabbp-9, 0x1.9a7e67be22a11p-10, -0x1.0998ce984b1d6p-13,
     -0x1.dbea24c0099d6p-13, 0x1.b67351fe8cb32p-14, -0x1.0de3ce0b79bdep-20, -0x1.e41ea3d0fbc7fp-17,
     0x1.21cd3b9faabdcp-18, 0x1.4b2fcb6bd5457p-21, -0x1.5d3293e7350e8p-21, 0x1.702ef45daac28p-24},
    {0x1.ffb5bdf67fe6fp-1, 0x1.4e82e8ab91cp-62, 0x1.84ba3004a50dp-9, -0x1.90b9f5f1e111ep-64, -0x1.d9c2ea85a927dp-8,
     -0x1.0aad315669b9p-62, 0x1.60898536e104ap-7, -0x1.aabfce3bc06f2p-62, -0x1.5eb1c899f0b7p-7, 0x1.d854f73e74c87p-8,
     -0x1.897719a9d249dp-9, 0x1.88cdc8b807e0fp-12, 0x1.b325a11bf1006p-12, -0x1.381548f6986b9p-12, 0x1.2b1fd0812399ap-14,
     0x1.1ed31ce344b7fp-16, -0x1.29cf720ad0dd7p-16, 0x1.1cea9776ad59bp-18, 0x1.cf41977ef78bdp-21,
     -0x1.b0ae783ea28f5p-21, 0x1.2b1ecb8c6656dp-23, 0x1.9923b213e649dp-25},
    {0x1.fff86cfd3e657p-1, -0x1.2e06aeed3e40ep-56, 0x1.6be02102b352p-12, 0x1.4fa89e516f3d4p-68, -0x1.02b15777eb7c5p-10,
     0x1.859dc6d21901cp-65, 0x1.cc1d886874d4dp-10, 0x1.b571fa976f974p-66, -0x1.1bff7066467a9p-9, 0x1.fc0f76c956e3ep-10,
     -0x1.4a222862f9132p-10, 0x1.26888604009a3p-11, -0x1.0fa2d34d0ba02p-13, -0x1.cb616af5f332dp-16,
     0x1.43ccbbf8412b5p-15, -0x1.03aac159e6b4bp-16, 0x1.8f3466c704a73p-20, 0x1.9b43ba4be5657p-20,
     -0x1.b77cdaa88b795p-21, 0x1.03078ba47e141p-23, 0x1.cc4e12d4b549ap-25, -0x1.0594a76ecfbc1p-25},
    {0x1.ffff6f9f67e55p-1, 0x1.e1e44839e5b7p-55, 0x1.e9b5e8d00ce77p-16, -0x1.cbc1067127c1fp-70, -0x1.8de3cd290a7cp-14,
     -0x1.48ef39937d70bp-68, 0x1.9aa489e3cad21p-13, -0x1.04f1eabee27f4p-67, -0x1.2c7d5ef053ebp-12,
     0x1.490a4d230eab9p-12, -0x1.145464ea2872cp-12, 0x1.647f721c13673p-13, -0x1.567479c97ac03p-14,
     0x1.b2c3201a4ca04p-16, -0x1.38933c2d43fbap-19, -0x1.80709450353dp-19, 0x1.ff3243a130bcbp-20,
     -0x1.265545dc6cefdp-21, 0x1.d291e6a9454d5p-29, 0x1.1d3dd91d37a49p-24, -0x1.d129dd97e2124p-26,
     0x1.96a1c275a1a4ep-29},
    {0x1.fffff82cdcf1bp-1, 0x1.046bbe99a3203p-55, 0x1.d9c73698fb1dcp-20, 0x1.62c621730854ep-74, -0x1.b11017e7d5893p-18,
     -0x1.988e553d24a4dp-72, 0x1.fc0dfadc2c735p-17, 0x1.184368c81221cp-72, -0x1.ac4e1aa49980cp-16,
     0x1.131810ab0cea4p-15, -0x1.1629d94b966c8p-15, 0x1.c22a73635431ap-16, -0x1.24444bc628992p-16,
     0x1.2bde78ed1bfe4p-17, -0x1.cd72d7fa16627p-19, 0x1.b9ec1227ef796p-21, 0x1.4bd11222ed6aap-26,
     -0x1.109ee20371254p-23, 0x1.11e5bb49bf2d3p-24, -0x1.080449057cefap-26, -0x1.2e8d838544f26p-31,
     0x1.0420944c971f1p-29},
    {0x1.ffffffb127525p-1, 0x1.504f382db5f56p-55, 0x1.4980cb3c80949p-24, 0x1.7fe55e1f33bf6p-78, -0x1.4ea6ce697296fp-22,
     0x1.e7d062a7bb1afp-76, 0x1.b771d9b6f07b8p-21, -0x1.614b80762a424p-77, -0x1.a26c653fad5b8p-20,
     0x1.3302bb89379e1p-19, -0x1.67f42e526434bp-19, 0x1.58b4adafb93a9p-19, -0x1.10f576796249fp-19, 0x1.66ca442524dcp-20,
     -0x1.84ee0ad7ff381p-21, 0x1.53b6063e33db2p-22, -0x1.c09edeec808a1p-24, 0x1.6306513983f7cp-26,
     0x1.e98202f1c0827p-30, -0x1.e452a971da2f3p-29, 0x1.b2a964154523p-30, -0x1.8abe1fd667eeep-32},
    {0x1.fffffffdbff2ap-1, 0x1.494389810d444p-56, 0x1.4979ac8b28927p-29, -0x1.beaef8226c1f6p-83, -0x1.7015eec377539p-27,
     -0x1.10077f8ca7813p-81, 0x1.0b487791595c8p-25, 0x1.c98526b1f593dp-79, -0x1.1b44b64c3cdbap-24,
     0x1.d23ff3ec12952p-24, -0x1.357d673b42fafp-23, 0x1.53a573b7f0bcp-23, -0x1.39211c9600e06p-23, 0x1.e9d332e29bca4p-24,
     -0x1.46723b14bcabbp-24, 0x1.722b322a4d38cp-25, -0x1.618cf9622b005p-26, 0x1.1551baf5677c9p-27,
     -0x1.4f3ca1d04bb55p-29, 0x1.f31d11cea42bdp-32, 0x1.416f39ecb2e7ep-35, -0x1.2a80ecad0560ap-34},
    {0x1.fffffffff4188p-1, 0x1.7a2cb3d056eap-55, 0x1.d9a880f306bd8p-35, -0x1.44473dd299f3p-93, -0x1.20a2ae94181b8p-32,
     0x1.8cfbcc39ddfb4p-86, 0x1.cb2a2e5641b36p-31, 0x1.058a69e7693c4p-85, -0x1.0bc6ecf6645d8p-29, 0x1.e7ba5766cb933p-29,
     -0x1.6893476b33c2ep-28, 0x1.bc2ac3bce4952p-28, -0x1.d00ffcf73cd1fp-28, 0x1.a05e56a6bf8fcp-28,
     -0x1.437595069af3ap-28, 0x1.b5239a89f635ap-29, -0x1.012853ab33e88p-29, 0x1.0670c253f0129p-30,
     -0x1.cbcc2ab16e5b3p-32, 0x1.51d3fb3a6104cp-33, -0x1.8a42cbf696cd6p-35, 0x1.2e3d430f5633p-37},
    {0x1.ffffffffffd27p-1, 0x1.19e1a84064a12p-56, 0x1.e9810295890ecp-41, 0x1.7094af48d362p-97, -0x1.43262ab4b77a4p-38,
     0x1.fad2885b8fa83p-92, 0x1.1756eae582bd1p-36, -0x1.e034aba11afeap-91, -0x1.6359d5b0d478p-35, 0x1.626391b1901afp-34,
     -0x1.203efc64ff3cap-33, 0x1.88c0e6edf6a22p-33, -0x1.c8ca56433e4a3p-33, 0x1.cbb9bbe08a2fep-33,
     -0x1.9460bd090b419p-33, 0x1.39111e9276a9ap-33, -0x1.ac975238d6041p-34, 0x1.03edb181da12p-34,
     -0x1.1718b518108edp-35, 0x1.0867f33be01cep-36, -0x1.be2f65efb441p-38, 0x1.3aa35aad8ad8fp-39},
    {0x1.ffffffffffff8p-1, 0x1.0160ef15c4942p-56, 0x1.6ba91ac734786p-47, 0x1.eac104fd12062p-102, -0x1.028a39099f4ap-44,
     0x1.3543bd5649417p-98, 0x1.e292863e17922p-43, -0x1.c57e90028b9eap-97, -0x1.4c4e690fbf427p-41,
     0x1.67e6e5ac61b4ap-40, -0x1.3f00d80a13aaap-39, 0x1.db88ee63ab11ep-39, -0x1.2fe58b8b07046p-38,
     0x1.51dbeaee5e90cp-38, -0x1.4a49dcffa6667p-38, 0x1.1e432aa864bd1p-38, -0x1.ba9fcd739d9d8p-39,
     0x1.328da68dbbec4p-39, -0x1.7d211ee8b221dp-40, 0x1.aa6958ca49bcep-41, -0x1.bb1c36ad9d3fcp-42,
     0x1.8c9dc0b1563d1p-43},
    {0x1p0, -0x1.f755ea7604888p-58, 0x1.846e9dda7a168p-54, 0x1.69426fb60b75ap-109, -0x1.27e0423d6ae8cp-51,
     0x1.82e0d504d0c7p-106, 0x1.2873f1a16f56cp-49, 0x1.8f5cfad095ac9p-103, -0x1.b74c9f5967951p-48,
     0x1.0094be7138a42p-46, -0x1.ebe4c2df5d458p-46, 0x1.8daa63bc57e17p-45, -0x1.148ed206c21ccp-44,
     0x1.4fd7f29df30f8p-44, -0x1.6824ac060319ep-44, 0x1.5810f3ae425c9p-44, -0x1.26e26202ff53ep-44,
     0x1.c7dba3849c702p-45, -0x1.3ea094cf6c979p-45, 0x1.9520dee7b666p-46, -0x1.eb544deef8124p-47, 0x1.017ffdd57cc2fp-47}}};
// clang-format on

// 0 <= z < 6.29, z = 0 or z >= 2^-900; of other z anything. |lo| <= 8 u |hi|.
template <class R>
REPDL_HD double_word<R> erf_by_table(R z) {
  const R shifted = math<R>::muladd(z, math<R>::all(32.0 / 13), math<R>::all(0x1.8p52));
  const R t = math<R>::muladd(shifted - 0x1.8p52, math<R>::all(-13.0 / 32), z);
  const auto row = math<R>::look_up(erf_on_host.row, math<R>::to_bits(shifted) & 15);
  double_word<R> c = row.two(20);  // two coefficients
  R q = math<R>::muladd(t, c.lo, c.hi);
  REPDL_UNROLL
  for (int k = 18; k >= 10; k -= 2) {
    c = row.two(k);
    q = math<R>::muladd(t, math<R>::muladd(t, q, c.lo), c.hi);
  }
  c = row.two(8);
  double_word<R> p = sum_of_product(double_word<R>{c.lo, math<R>::all(0)}, t, q);
  p = sum_of_product(double_word<R>{c.hi, math<R>::all(0)}, t, p);
  p = sum_of_product(row.two(6), t, p);
  p = sum_of_product(row.two(4), t, p);
  const double_word<R> m = two_prod(t, p.hi);
  p = sum(row.two(2), double_word<R>{m.hi, math<R>::muladd(t, p.lo, m.lo)});
  return sum_of_product(row.two(0), t, p);
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
