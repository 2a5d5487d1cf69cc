// i0, i1, i0e and i1e: the modified Bessel functions I_0 and I_1, and e^-|x| times them; binary16, bfloat16 and binary32, correctly
// rounded.
//
// Method, for v = |x|, in binary64 and double-double: f(v) = e^-v I_n(v) is
//   v^n p(v - 1)                    v < 2
//   p(v - 5)                        v < 8
//   v^(-1/2) p(1 / v - 1/16)        beyond, as in the asymptotic series
// one polynomial each, whose first five coefficients and steps are double-doubles. I_n = e^v f. Rounded to odd.
//
// Domain: every input. v is cut down to 93, I_n(93) > e^93 / 25 > 2^129, of f to the largest number of binary32; f(inf) = 0 and NaN
// are put in at the end. For v < 2^-30 I_1 = v / 2 + v^3 / 16 + ..., e^-v I_1(v) = v / 2 - v^2 / 2 + ...: both lie so close to v / 2,
// which is a midpoint where v is subnormal and odd, that only the side counts: (1/2 +- 2^-60) v.
//
// Error budget of f, relative, u = 2^-53 (with or without FMA):
//   p, approximated by reference/gen/bessel.py, which prints what stands in quotation marks: 2^-58.9         0.02 u
//   the terms from the sixth on ("terms behind the heads", below 2^-3.4 of f) in binary64: Horner's scheme errs by
//     (2k + 1) u of the k-th of them ("rounding")                                                             0.31 u
//     t.lo, which they do without, is not 0 for v < 2^-28 alone, where f is next to no midpoint, and from v = 8 on, where
//     the terms are below 2^-19                                                                              2^-70
//   all else: double-double operations, a dozen, of numbers below 4 f                                        2^-96
//   e^v (dd_functions.hpp)                                                                                   2^-68
//   sum                                                                                                      < 2^-54
// and much less from v = 8 on and away from the ends of the other pieces.
//
// i0, i1: transcendental for x != 0 (Siegel). Of i0e, i1e nothing is known, but results other than i0e 0 = 1, i1e 0 = 0 are no
// midpoints, as the enumeration says.
//
// Proved by enumeration: a sweep over all 2^32 inputs against MPFR, for each compiled binary. So are all 2^16 inputs of the
// narrow formats.
#pragma once

#include "librepdl/num/dd_functions.hpp"
#include "librepdl/ops/elementwise/body.hpp"

namespace repdl::ops {
struct i0;
struct i1;
struct i0e;
struct i1e;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

template <int Order>
struct bessel_coefficients;

// reference/gen/bessel.py
template <>
struct bessel_coefficients<0> {
  static constexpr dd a0 = {0x1.dcf01629a660ep-2, 0x1.26295342832dcp-59},
                      a1 = {-0x1.08099e5ff368ep-2, 0x1.b141ffb28f868p-59},
                      a2 = {0x1.3b2cc4f633d9cp-3, -0x1.8cefc46c69dfap-58},
                      a3 = {-0x1.386425d0a372ep-4, -0x1.55ad60aa20721p-58},
                      a4 = {0x1.ff5f81de8468bp-6, -0x1.88f5a34c75d79p-60};
  static constexpr double a5 = -0x1.60999a9aa7524p-7, a6 = 0x1.a22bde1102440p-9, a7 = -0x1.b21419f67249fp-11,
                          a8 = 0x1.90253c0389fdep-13, a9 = -0x1.4b7eed12f47f5p-15, a10 = 0x1.f28193af4e17ep-18,
                          a11 = -0x1.570829a1c3e15p-20, a12 = 0x1.b317ecbdb0310p-23, a13 = -0x1.ffaf0301e96e3p-26,
                          a14 = 0x1.186e87578eb2bp-28, a15 = -0x1.1fcf90d98bef9p-31, a16 = 0x1.15ac16de47422p-34,
                          a17 = -0x1.f8d8f0b31691cp-38, a18 = 0x1.b2f96d50ebe2cp-41, a19 = -0x1.7538564224eadp-44,
                          a20 = 0x1.21254019dfb53p-47;
  static constexpr dd b0 = {0x1.77e43edd1b4cap-3, -0x1.747a4e6baa860p-57},
                      b1 = {-0x1.409c6dea46430p-6, 0x1.357e3c26aa647p-61},
                      b2 = {0x1.9fabce8688634p-9, -0x1.6c757c2bf358bp-66},
                      b3 = {-0x1.303135273a001p-11, 0x1.f920febdada54p-65},
                      b4 = {0x1.d957dc986c94dp-14, -0x1.18db4242584dep-68};
  static constexpr double b5 = -0x1.7ae5f1f352f97p-16, b6 = 0x1.2f6310211e4e4p-18, b7 = -0x1.da6c834c723fap-21,
                          b8 = 0x1.63c634f575258p-23, b9 = -0x1.f9e99403e96c6p-26, b10 = 0x1.52e534db9d332p-28,
                          b11 = -0x1.aa9d39da407d8p-31, b12 = 0x1.f867d085f603ap-34, b13 = -0x1.1856ba8226a26p-36,
                          b14 = 0x1.2574fc504fc32p-39, b15 = -0x1.21e42e07d865ap-42, b16 = 0x1.0ed9a68599864p-45,
                          b17 = -0x1.dfcc5134bb7d5p-49, b18 = 0x1.93b4d88d13d4bp-52, b19 = -0x1.43272255d4630p-55,
                          b20 = 0x1.ee03f7da5229ap-59, b21 = -0x1.6bf17b73c7152p-62, b22 = 0x1.fc2cc42e3c75fp-66,
                          b23 = -0x1.3bb1461b1d909p-69, b24 = 0x1.9b37a6b7bd1c0p-73, b25 = -0x1.764f9e4a3c5a0p-76,
                          b26 = 0x1.b54ca45cc4159p-80;
  static constexpr dd c0 = {0x1.9bd428ad249a5p-2, -0x1.d5d22d1b5d43dp-56},
                      c1 = {0x1.b87969bb93bbbp-5, -0x1.b762afec5e2abp-60},
                      c2 = {0x1.1daa72b5e70bbp-5, -0x1.1bc2d11addd67p-59},
                      c3 = {0x1.75e5ee703dd40p-5, 0x1.42df583f9fc2ap-59},
                      c4 = {0x1.8e5139f858359p-4, -0x1.ccd304a55a3c7p-58};
  static constexpr double c5 = 0x1.3f49acfeb0d1cp-2, c6 = 0x1.7d0fbb47d5021p0, c7 = 0x1.51cc22b729214p3,
                          c8 = 0x1.721565ebc8270p6, c9 = 0x1.03ddcb0386efdp9, c10 = -0x1.cc94b704300e5p12,
                          c11 = -0x1.ce28c6c87d758p17, c12 = -0x1.80fb2ee97741cp20, c13 = 0x1.0823a4b6ff0c0p25,
                          c14 = 0x1.131c11f49d924p29, c15 = -0x1.05148f0c68c9cp32, c16 = -0x1.e8398d872830ap36,
                          c17 = 0x1.0c41275e8fe53p39, c18 = 0x1.666fd0e8032c8p44, c19 = -0x1.11d19e1416c9dp46,
                          c20 = -0x1.a731a4fa40048p51, c21 = 0x1.cdac311bed2cfp52, c22 = 0x1.6d5c4d032b7adp58,
                          c23 = -0x1.024cb27d8d445p59, c24 = -0x1.8fb497f9a6242p64, c25 = 0x1.11c878a6570aap64,
                          c26 = 0x1.99823fe1fb9cdp69;
};
template <>
struct bessel_coefficients<1> {
  static constexpr dd a0 = {0x1.a9ccef9365f00p-3, 0x1.6a9d173b1a940p-58},
                      a1 = {-0x1.4386a266e50e4p-3, -0x1.d65466e59eb71p-57},
                      a2 = {0x1.543a5d4847776p-4, -0x1.e00e96446df9fp-59},
                      a3 = {-0x1.1a7e0274cd033p-5, 0x1.ef9692e16216ep-61},
                      a4 = {0x1.85b7088af83e9p-7, 0x1.34a931991164fp-62};
  static constexpr double a5 = -0x1.cc3b583070ac7p-9, a6 = 0x1.db102348af6a4p-11, a7 = -0x1.b36714e036765p-13,
                          a8 = 0x1.66baede2cd0d4p-15, a9 = -0x1.0c5f896a83e47p-17, a10 = 0x1.6fa8d0ec246d3p-20,
                          a11 = -0x1.d068bba2228e5p-23, a12 = 0x1.1010cf70693d9p-25, a13 = -0x1.29371403c28e4p-28,
                          a14 = 0x1.301abab200074p-31, a15 = -0x1.2497430d162abp-34, a16 = 0x1.09a4db0ba9023p-37,
                          a17 = -0x1.c827da18fc7a8p-41, a18 = 0x1.74392d625a9c3p-44, a19 = -0x1.2df67ff21ceb3p-47,
                          a20 = 0x1.bdb5595c4bf07p-51;
  static constexpr dd b0 = {0x1.4fd0b11fd2844p-3, -0x1.5d5f2f6330d84p-57},
                      b1 = {-0x1.b162f49148546p-7, 0x1.8bc48b007d1b1p-61},
                      b2 = {0x1.770dcd5239c54p-10, 0x1.291b846a554fcp-66},
                      b3 = {-0x1.0e151b6c0edbep-13, 0x1.f941bfd9ffb16p-67},
                      b4 = {-0x1.1e475eea8df80p-24, 0x1.0cc628a5acce0p-79};
  static constexpr double b5 = 0x1.30ba98f96c5f3p-18, b6 = -0x1.beef8b0769f46p-20, b7 = 0x1.da3fcd3cae0a3p-22,
                          b8 = -0x1.aac12316d8f7cp-24, b9 = 0x1.55537025068a5p-26, b10 = -0x1.ef65f61579b9fp-29,
                          b11 = 0x1.49fe7ea5fafaap-31, b12 = -0x1.96b2021022fc8p-34, b13 = 0x1.d26c04f9481f6p-37,
                          b14 = -0x1.f42eb169cb6efp-40, b15 = 0x1.f79dcdec7b3ecp-43, b16 = -0x1.ddd0122f3395fp-46,
                          b17 = 0x1.ac8f65ab9c6d9p-49, b18 = -0x1.6c5fa07dce5aep-52, b19 = 0x1.263a985fc9e5ep-55,
                          b20 = -0x1.c52cadc119c78p-59, b21 = 0x1.50157f66ee0f0p-62, b22 = -0x1.d7ddbe537aa36p-66,
                          b23 = 0x1.262fa6d090a46p-69, b24 = -0x1.80f706ff56104p-73, b25 = 0x1.60c67303ef625p-76,
                          b26 = -0x1.9d69b81b38908p-80;
  static constexpr dd c0 = {0x1.8ebe783a84030p-2, -0x1.464ffc3694ceap-58},
                      c1 = {-0x1.3f796198ee639p-3, 0x1.f55fb5ff876bbp-58},
                      c2 = {-0x1.cbc54df1edaa4p-5, 0x1.d99d36590ae1dp-60},
                      c3 = {-0x1.f89c2304d60a4p-5, -0x1.a4db26b7daf18p-62},
                      c4 = {-0x1.ec8e0ff0ad3d9p-4, -0x1.009e91e08e044p-58};
  static constexpr double c5 = -0x1.7613844c6153cp-2, c6 = -0x1.ad8dff98f64d2p0, c7 = -0x1.7277e83a33aecp3,
                          c8 = -0x1.9171083af1d65p6, c9 = -0x1.21d894b5c576dp9, c10 = 0x1.cb8b8189855edp12,
                          c11 = 0x1.e38d28f332622p17, c12 = 0x1.a8b0feaebba0ep20, c13 = -0x1.0aec1ac6918a1p25,
                          c14 = -0x1.23a9e7e237531p29, c15 = 0x1.fc9285a081d11p31, c16 = 0x1.ff60071cb632cp36,
                          c17 = -0x1.fa6968c9c65c8p38, c18 = -0x1.75b2e2b8a64bdp44, c19 = 0x1.fd573385ac459p45,
                          c20 = 0x1.b8907534abc56p51, c21 = -0x1.aca27320ae7e9p52, c22 = -0x1.7c45bc94f6a69p58,
                          c23 = 0x1.e124389af58cep58, c24 = 0x1.a01b3102c3a73p64, c25 = -0x1.00012318db7e1p64,
                          c26 = -0x1.aa735ce21335dp69;
};

// c + t p
REPDL_HD dd bessel_step(dd c, dd t, dd p) {
  const dd m = two_prod(t.hi, p.hi);
  const dd s = two_sum(c.hi, m.hi);
  return {s.hi, s.lo + (c.lo + muladd(t.hi, p.lo, muladd(t.lo, p.hi, m.lo)))};
}

// e^-v I_n(v), 0 <= v < 2^128, n = Order; I_n(v) not Scaled, v <= 93. Normalised.
template <int Order, bool Scaled>
[[gnu::always_inline]] REPDL_HD dd bessel(double v) {
  using k = bessel_coefficients<Order>;
  const bool near = v < 2, far = v >= 8;
  const auto of = [near, far](double a, double b, double c) { return far ? c : near ? a : b; };
  const auto both = [of](dd a, dd b, dd c) -> dd { return {of(a.hi, b.hi, c.hi), of(a.lo, b.lo, c.lo)}; };
  // z = 1 / w; 1 - z.hi w is exact.
  const double w = far ? v : 8.0;
  dd z{1.0 / w, 0};
  const dd one = two_prod(z.hi, w);
  z.lo = z.hi * ((1.0 - one.hi) - one.lo);
  dd t = two_sum(far ? z.hi : v, of(-1, -5, -0.0625));
  t.lo = far ? t.lo + z.lo : t.lo;
  const double rest = horner(
      t.hi, of(k::a5, k::b5, k::c5), of(k::a6, k::b6, k::c6), of(k::a7, k::b7, k::c7), of(k::a8, k::b8, k::c8),
      of(k::a9, k::b9, k::c9), of(k::a10, k::b10, k::c10), of(k::a11, k::b11, k::c11), of(k::a12, k::b12, k::c12),
      of(k::a13, k::b13, k::c13), of(k::a14, k::b14, k::c14), of(k::a15, k::b15, k::c15), of(k::a16, k::b16, k::c16),
      of(k::a17, k::b17, k::c17), of(k::a18, k::b18, k::c18), of(k::a19, k::b19, k::c19), of(k::a20, k::b20, k::c20),
      of(0, k::b21, k::c21), of(0, k::b22, k::c22), of(0, k::b23, k::c23), of(0, k::b24, k::c24), of(0, k::b25, k::c25),
      of(0, k::b26, k::c26));
  dd p = bessel_step(both(k::a4, k::b4, k::c4), t, {rest, 0});
  p = bessel_step(both(k::a3, k::b3, k::c3), t, p);
  p = bessel_step(both(k::a2, k::b2, k::c2), t, p);
  p = bessel_step(both(k::a1, k::b1, k::c1), t, p);
  p = bessel_step(both(k::a0, k::b0, k::c0), t, p);
  if constexpr (Order == 1) {
    const bool tiny = v < 0x1p-30;
    p = {tiny ? 0.5 : p.hi, tiny ? (Scaled ? -0x1p-60 : 0x1p-60) : p.lo};
  }
  // w^(-1/2) = z sqrt(w), and sqrt(w) is s and w - s^2, which is exact, over 2 s.
  const double s = sqrt(w);
  const dd square = two_prod(s, s);
  const dd root = mul(z, dd{s, ((w - square.hi) - square.lo) * (0.5 * s * z.hi)});
  const double beside = Order == 1 && near ? v : 1.0;
  dd y = mul(p, dd{far ? root.hi : beside, far ? root.lo : 0.0});
  if constexpr (!Scaled) {
    const reduced_exponent<double> e = reduce_exponent(dd{v, 0});
    const dd m = mul(exp_reduced<false>(e), y);
    const double power = power_of(e.k);
    y = {m.hi * power, m.lo * power};
  }
  return y;
}

template <int Order, bool Scaled>
struct bessel_body {
  template <class T>
  [[gnu::always_inline]] REPDL_HD static T eval(T x) {
    const float magnitude = float_of(bits_of(widen_to_float(x)) & 0x7fffffff);
    const double v = static_cast<double>(clamp_magnitude(magnitude, Scaled ? 0x1.fffffep127f : 93.0f));
    const dd y = bessel<Order, Scaled>(v);
    storage_of<T> r = to_bits(round_no_midpoint<T>(round_to_odd(y.hi, y.lo)));
    if constexpr (Scaled) r = bits_of(magnitude) == format<float>::infinity ? 0 : r;
    if constexpr (Order == 1) r = to_bits(with_sign(from_bits<T>(r), x));
    return from_bits<T>(magnitude != magnitude ? format<T>::nan : r);
  }
};
template <>
struct body<ops::i0> : bessel_body<0, false> {};
template <>
struct body<ops::i1> : bessel_body<1, false> {};
template <>
struct body<ops::i0e> : bessel_body<0, true> {};
template <>
struct body<ops::i1e> : bessel_body<1, true> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
