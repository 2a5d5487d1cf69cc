// Made by reference/gen/multi_limb_constants.py; do not edit.
//
// The tables are local to the functions: nothing here has linkage, and device code can index them.
#pragma once

#include "librepdl/num/multi_limb.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

inline constexpr int constant_limbs = 33;

// ln 2, truncated to N limbs.
template <int N>
REPDL_HD fraction<N> ln2_fraction() {
  static_assert(N <= constant_limbs);
  constexpr std::uint64_t table[constant_limbs] = {
      0xb17217f7d1cf79ab, 0xc9e3b39803f2f6af, 0x40f343267298b62d, 0x8a0d175b8baafa2b, 0xe7b876206debac98,
      0x559552fb4afa1b10, 0xed2eae35c1382144, 0x27573b291169b825, 0x3e96ca16224ae8c5, 0x1acbda11317c387e,
      0xb9ea9bc3b136603b, 0x256fa0ec7657f74b, 0x72ce87b19d6548ca, 0xf5dfa6bd38303248, 0x655fa1872f20e3a2,
      0xda2d97c50f3fd5c6, 0x07f4ca11fb5bfb90, 0x610d30f88fe551a2, 0xee569d6dfc1efa15, 0x7d2e23de1400b396,
      0x17460775db8990e5, 0xc943e732b479cd33, 0xcccc4e659393514c, 0x4c1a1e0bd1d6095d, 0x25669b333564a337,
      0x6a9c7f8a5e148e82, 0x074db6015cfe7aa3, 0x0c480a5417350d2c, 0x955d5179b1e17b9d, 0xae313cdb6c606cb1,
      0x078f735d1b2db31b, 0x5f50b5185064c18b, 0x4d162db3b365853d};
  fraction<N> a;
  for (int i = 0; i < N; ++i) a.limb[N - 1 - i] = table[i];
  return a;
}

// pi / 4, truncated to N limbs.
template <int N>
REPDL_HD fraction<N> quarter_pi_fraction() {
  static_assert(N <= constant_limbs);
  constexpr std::uint64_t table[constant_limbs] = {
      0xc90fdaa22168c234, 0xc4c6628b80dc1cd1, 0x29024e088a67cc74, 0x020bbea63b139b22, 0x514a08798e3404dd,
      0xef9519b3cd3a431b, 0x302b0a6df25f1437, 0x4fe1356d6d51c245, 0xe485b576625e7ec6, 0xf44c42e9a637ed6b,
      0x0bff5cb6f406b7ed, 0xee386bfb5a899fa5, 0xae9f24117c4b1fe6, 0x49286651ece45b3d, 0xc2007cb8a163bf05,
      0x98da48361c55d39a, 0x69163fa8fd24cf5f, 0x83655d23dca3ad96, 0x1c62f356208552bb, 0x9ed529077096966d,
      0x670c354e4abc9804, 0xf1746c08ca18217c, 0x32905e462e36ce3b, 0xe39e772c180e8603, 0x9b2783a2ec07a28f,
      0xb5c55df06f4c52c9, 0xde2bcbf695581718, 0x3995497cea956ae5, 0x15d2261898fa0510, 0x15728e5a8aaac42d,
      0xad33170d04507a33, 0xa85521abdf1cba64, 0xecfb850458dbef0a};
  fraction<N> a;
  for (int i = 0; i < N; ++i) a.limb[N - 1 - i] = table[i];
  return a;
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
