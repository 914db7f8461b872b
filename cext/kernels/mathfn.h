// Mathematical functions on vectors (F of a simd_*.h). Polynomials and reductions of our own where speed matters,
// the C library lane by lane for the rest.
//
// Largest errors found over the whole range by tests/kernels/kernel_check.cc (units in the last place, all instruction
// sets): vexp 1.2, vexpm1 1.4, vlog 1.2, vlog1p 2.2, vtanh 2.6, vsigmoid 2.3, vgate 2.5, vsoftplus 2.4, verf 1.2, vsin
// and vcos 1.2 (near a zero of the function: 1.2e-7 absolute). Special values as in C: exp overflows to inf and
// underflows through the denormals to 0, log(0) = -inf, log of a negative number is NaN, NaN comes through everywhere;
// but tanh(-0) is 0. Included after a simd_*.h inside the unnamed namespace of one isa_*.cc, never elsewhere. Includes:
// nothing.

static constexpr float kInf = __builtin_inff();
static constexpr float kNan = __builtin_nanf("");
static constexpr float kLog2e = 1.44269504088896341f;
static constexpr float kLn2Hi = 0.693359375f;  // exact in 10 bits: n * kLn2Hi has no rounding
static constexpr float kLn2Lo = -2.12194440e-4f;

// Lane by lane through a C function.
template <class Fn>
DNL_INL F by_lane(F x, Fn fn) {
  float t[F::W];
  store(t, x);
  for (int l = 0; l < F::W; ++l) t[l] = fn(t[l]);
  return load(t);
}
template <class Fn>
DNL_INL F by_lane(F x, F y, Fn fn) {
  float t[F::W], s[F::W];
  store(t, x);
  store(s, y);
  for (int l = 0; l < F::W; ++l) t[l] = fn(t[l], s[l]);
  return load(t);
}
DNL_INL F clamp(F x, float lo, float hi) { return vmin(F(hi), vmax(F(lo), x)); }  // NaN stays NaN

// Coefficients of exp(r) - 1 - r, from r^2 on, for |r| <= ln(2)/2.
static constexpr float kExp2 = 0.49999994f, kExp3 = 0.1666652f, kExp4 = 0.041668393f, kExp5 = 0.008368781f,
                       kExp6 = 0.0013814465f;

// exp(r) - 1 and exp(r)
DNL_INL F expm1_near(F r) {
  F p = madd(r, F(kExp6), F(kExp5));
  p = madd(p, r, F(kExp4));
  p = madd(p, r, F(kExp3));
  return madd(madd(p, r, F(kExp2)), r * r, r);
}
DNL_INL F exp_near(F r) { return expm1_near(r) + F(1.0f); }
// x = n ln 2 + r
DNL_INL F exp_reduce(F x, F& n) {
  n = vrint_near(x * F(kLog2e));
  return nmadd(n, F(kLn2Lo), nmadd(n, F(kLn2Hi), x));
}
// A number of less than 2^21 is rounded to a whole one by adding this; the sum has it in its low bits, and 2 to its
// power is, for those from -126 to 127, made of the sum.
static constexpr float kWhole = 12582912.0f;
DNL_INL F pow2_of_sum(F sum) { return from_bits(shl<23>(bits(sum)) + I(0x3f800000)); }
// Above 90, where Above is false, anything that is not a number from 0 to 2^127.
template <bool Above>
DNL_INL F exp_of(F x) {
  // Far left the result is 0 without arithmetic on denormals, which processors do slowly: masked scores are common.
  const M gone = x < F(-104.0f);
  const F low = Above || !kScalesAll ? vmin(F(90.0f), x) : x;
  F n;
  const F r = exp_reduce(kScalesAll ? low : select(gone, F(0.0f), low), n);
  return scale_pow2_unless(gone, exp_near(r), n);
}
DNL_INL F vexp(F x) { return exp_of<true>(x); }
// 2^n for a whole n between -126 and 127.
DNL_INL F pow2(F n) { return from_bits(shl<23>(whole_to_int(n) + I(127))); }
DNL_INL F vexpm1(F x) {
  F n;
  const F r = exp_reduce(clamp(x, -30.0f, 80.0f), n);
  const F s = pow2(n);
  const F y = madd(s, expm1_near(r), s - F(1.0f));
  return select(x > F(80.0f), vexp(x), select(x == F(0.0f), x, y));
}

DNL_INL F vlog(F x) {
  const M tiny = x < F(1.17549435e-38f);
  const F scaled = select(tiny, x * F(8388608.0f), x);
  // The mantissa is taken from [sqrt(1/2), sqrt(2)), so that numbers about 1 keep their digits.
  const I shifted = bits(scaled) - I(0x3f3504f3);
  const F e = to_float(sar<23>(shifted)) - select(tiny, F(23.0f), F(0.0f));
  const F t = from_bits((shifted & I(0x007fffff)) + I(0x3f3504f3)) - F(1.0f);
  F p = madd(t, F(-0.07859546f), F(0.12881622f));
  p = madd(p, t, F(-0.13128768f));
  p = madd(p, t, F(0.14181197f));
  p = madd(p, t, F(-0.16624554f));
  p = madd(p, t, F(0.20002286f));
  p = madd(p, t, F(-0.2500081f));
  p = madd(p, t, F(0.33333316f));
  const F t2 = t * t;
  F y = madd(p, t * t2, e * F(kLn2Lo));
  y = nmadd(F(0.5f), t2, y);
  y = madd(e, F(kLn2Hi), t + y);
  y = select(x == F(0.0f), F(-kInf), y);
  y = select(x == F(kInf), x, y);
  return select(x >= F(0.0f), y, F(kNan));
}
// log(u) is that of 1 + x rounded; x / (u - 1) makes good what rounding lost (Kahan).
DNL_INL F vlog1p(F x) {
  const F u = F(1.0f) + x;
  const F d = u - F(1.0f);
  const F y = vlog(u) * (x / d);
  return select(d == F(0.0f), x, select(x == F(kInf), x, y));
}

// u / (u + 1) of u = expm1(2x) / 2: small x keep their digits, large ones saturate. x = n ln(2)/2 + h.
DNL_INL F vtanh(F x) {
  const F z = clamp(x, -9.5f, 9.5f), sum = madd(z, F(2 * kLog2e), F(kWhole)), n = sum - F(kWhole);
  const F h = nmadd(n, F(kLn2Lo / 2), nmadd(n, F(kLn2Hi / 2), z));
  F p = madd(h, F(32 * kExp6), F(16 * kExp5));
  p = madd(p, h, F(8 * kExp4));
  p = madd(p, h, F(4 * kExp3));
  p = madd(p, h, F(2 * kExp2));
  const F s = pow2_of_sum(sum);
  const F u = madd(s, madd(p, h * h, h), madd(s, F(0.5f), F(-0.5f)));
  return u / (u + F(1.0f));
}
// Of a gate: 1 / (1 + e^-x), which goes no further down than e^-87. -x = n ln 2 - r.
DNL_INL F vgate(F x) {
  const F z = clamp(x, -87.0f, 87.0f), sum = madd(z, F(-kLog2e), F(kWhole)), n = sum - F(kWhole);
  const F r = madd(n, F(kLn2Lo), madd(n, F(kLn2Hi), z));
  F p = nmadd(r, F(kExp6), F(kExp5));
  p = nmadd(p, r, F(kExp4));
  p = nmadd(p, r, F(kExp3));
  p = nmadd(p, r, F(kExp2));
  p = nmadd(p, r, F(1.0f));
  return F(1.0f) / madd(pow2_of_sum(sum), nmadd(p, r, F(1.0f)), F(1.0f));
}
// 1 / (1 + e^-x), as e^x / (1 + e^x) on the left, so that the tail runs down to the denormals.
DNL_INL F vsigmoid(F x) {
  const F e = vexp(-vabs(x));
  return select(x < F(0.0f), e, F(1.0f)) / (F(1.0f) + e);
}
// log(1 + e^x)
DNL_INL F vsoftplus(F x) { return vmax(F(0.0f), x) + vlog1p(vexp(-vabs(x))); }

DNL_INL F verf(F x) {
  const F t = vmin(F(4.0f), vabs(x)), s = t * t;
  F p = madd(s, F(-0.0005953739f), F(0.00498594f));
  p = madd(p, s, F(-0.02676172f));
  p = madd(p, s, F(0.112816826f));
  p = madd(p, s, F(-0.3761248f));
  p = madd(p, s, F(0.12837915f));
  const F small = madd(p, t, t);
  F q = madd(t, F(2.1217938e-05f), F(-0.0004358849f));
  q = madd(q, t, F(0.004177963f));
  q = madd(q, t, F(-0.025137624f));
  q = madd(q, t, F(0.10830827f));
  q = madd(q, t, F(0.6333212f));
  q = madd(q, t, F(1.1295277f));
  q = madd(q, t, F(-0.00017733496f));
  const F y = vcopysign(select(t < F(0.93f), small, F(1.0f) - vexp(-q)), x);
  return select(x == x, y, x);
}

// Sine and cosine by reduction to [-pi/4, pi/4]; beyond 8192 the reduction would lose digits: the C library.
DNL_INL F sin_cos(F x, bool want_cos) {
  const F n = vrint_near(x * F(0.636619772367581343f));
  const F r = nmadd(n, F(7.54978995489188216e-8f), nmadd(n, F(4.8375129699707031e-4f), nmadd(n, F(1.5703125f), x)));
  const F s = r * r;
  const F sn = madd(r * s, madd(s, madd(s, F(-0.00019516655f), F(0.008332173f)), F(-0.16666655f)), r);
  F cs = madd(s, madd(s, F(2.4437728e-05f), F(-0.0013887362f)), F(0.041666646f));
  cs = madd(s * s, cs, nmadd(F(0.5f), s, F(1.0f)));
  const I k = whole_to_int(n) + I(want_cos ? 1 : 0);
  const F odd = to_float(k & I(1)), minus = to_float(shr<1>(k) & I(1));
  const F y = select(odd == F(1.0f), cs, sn);
  return select(minus == F(1.0f), -y, y);
}
DNL_INL F vsin(F x) {
  const F y = sin_cos(clamp(x, -8192.0f, 8192.0f), false);
  return mask_bits(vabs(x) > F(8192.0f)) ? by_lane(x, sinf) : select(vabs(x) < F(1e-4f), x, y);
}
DNL_INL F vcos(F x) {
  const F y = sin_cos(clamp(x, -8192.0f, 8192.0f), true);
  return mask_bits(vabs(x) > F(8192.0f)) ? by_lane(x, cosf) : y;
}

DNL_INL F vtan(F x) { return by_lane(x, tanf); }
DNL_INL F vasin(F x) { return by_lane(x, asinf); }
DNL_INL F vacos(F x) { return by_lane(x, acosf); }
DNL_INL F vatan(F x) { return by_lane(x, atanf); }
DNL_INL F vsinh(F x) { return by_lane(x, sinhf); }
DNL_INL F vcosh(F x) { return by_lane(x, coshf); }
DNL_INL F vasinh(F x) { return by_lane(x, asinhf); }
DNL_INL F vacosh(F x) { return by_lane(x, acoshf); }
DNL_INL F vatanh(F x) { return by_lane(x, atanhf); }
DNL_INL F vpow(F x, F y) { return by_lane(x, y, powf); }

#include "kernels/gamma.h"
DNL_INL F vlgamma(F x) { return by_lane(x, lgamma1); }
DNL_INL F vdigamma(F x) { return by_lane(x, digamma1); }
