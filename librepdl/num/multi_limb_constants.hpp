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

// 2 / pi, truncated to 53 limbs: the one that is i-th from the point.
REPDL_HD std::uint64_t two_over_pi_limb(int i) {
  constexpr std::uint64_t table[53] = {
      0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
      0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4,
      0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
      0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d,
      0xa9e391615ee61b08, 0x6599855f14a06840, 0x8dffd8804d732731, 0x06061556ca73a8c9, 0x60e27bc08c6b47c4,
      0x19c367cddce8092a, 0x8359c4768b961ca6, 0xddaf44d15719053e, 0xa5ff07053f7e33e8, 0x32c2de4f98327dbb,
      0xc33d26ef6b1e5ef8, 0x9f3a1f35caf27f1d, 0x87f121907c7c246a, 0xfa6ed5772d30433b, 0x15c614b59d19c3c2,
      0xc4ad414d2c5d000c, 0x467d862d71e39ac6, 0x9b0062337cd2b497, 0xa7b4d55537f63ed7, 0x1810a3fc764d2a9d,
      0x64abd770f87c6357, 0xb07ae715175649c0, 0xd9d63b3884a7cb23, 0x24778ad623545ab9, 0x1f001b0af1dfce19,
      0xff319f6a1e666157, 0x9947fbacd87f7eb7, 0x652289e83260bfe6, 0xcdc4ef09366cd43f, 0x5dd7de16de3b5892,
      0x9bde2822d2e88628, 0x4d58e232cac616e3, 0x08cb7de050c017a7};
  return table[i];
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
