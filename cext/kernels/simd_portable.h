// Vectors of 4 floats, the baseline: what the kernel bodies are written on, and what each function means.
//
// Written with the vector types of gcc and clang, which become SSE2, NEON or plain code. simd_avx2.h, simd_avx512.h
// and simd_neon.h are the same interface on 8, 16 and 4 lanes. Included inside the unnamed namespace of one isa_*.cc,
// never elsewhere, so that no code compiled for one instruction set can be linked into another. Includes: nothing.
#define DNL_INL static inline __attribute__((always_inline))

typedef float Float4 __attribute__((vector_size(16)));
typedef std::int32_t Int4 __attribute__((vector_size(16)));
typedef std::uint32_t Uint4 __attribute__((vector_size(16)));

struct F {  // floats
  static constexpr int W = 4;
  Float4 v;
  F() = default;
  __attribute__((always_inline)) F(Float4 x) : v(x) {}
  __attribute__((always_inline)) F(float x) : v(Float4{x, x, x, x}) {}
};
struct I {  // 32-bit integers that wrap round
  Uint4 v;
  I() = default;
  __attribute__((always_inline)) I(Uint4 x) : v(x) {}
  __attribute__((always_inline)) I(int x) : v(Uint4{} + static_cast<std::uint32_t>(x)) {}
};
struct M {  // truth values: all bits of a lane set, or none
  Int4 v;
};

DNL_INL F load(const float* p) {
  F r;
  memcpy(&r.v, p, sizeof r.v);
  return r;
}
// The first n < W lanes; the others are 0 (load) or left alone (store). Memory past them is not touched.
DNL_INL F load_n(const float* p, idx n) {
  return Float4{n > 0 ? p[0] : 0.0f, n > 1 ? p[1] : 0.0f, n > 2 ? p[2] : 0.0f, n > 3 ? p[3] : 0.0f};
}
DNL_INL void store(float* p, F x) { memcpy(p, &x.v, sizeof x.v); }
DNL_INL void store_n(float* p, F x, idx n) {
  if (n > 0) p[0] = x.v[0];
  if (n > 1) p[1] = x.v[1];
  if (n > 2) p[2] = x.v[2];
  if (n > 3) p[3] = x.v[3];
}
// Lanes `at` to at + n of x; at + n <= W.
DNL_INL F load_into(F x, const float* p, idx at, idx n) {
  for (idx i = 0; i < n; ++i) x.v[at + i] = p[i];
  return x;
}
DNL_INL void store_from(float* p, F x, idx at, idx n) {
  for (idx i = 0; i < n; ++i) p[i] = x.v[at + i];
}

DNL_INL I bits(F a) { return reinterpret_cast<Uint4>(a.v); }
DNL_INL F from_bits(I a) { return reinterpret_cast<Float4>(a.v); }
DNL_INL I operator+(I a, I b) { return a.v + b.v; }
DNL_INL I operator-(I a, I b) { return a.v - b.v; }
DNL_INL I operator*(I a, I b) { return a.v * b.v; }
DNL_INL I operator&(I a, I b) { return a.v & b.v; }
DNL_INL I operator|(I a, I b) { return a.v | b.v; }
DNL_INL I operator^(I a, I b) { return a.v ^ b.v; }
template <int N>
DNL_INL I shl(I a) {
  return a.v << N;
}
template <int N>
DNL_INL I shr(I a) {
  return a.v >> N;
}  // zeros come in
template <int N>
DNL_INL I sar(I a) {
  return reinterpret_cast<Uint4>(reinterpret_cast<Int4>(a.v) >> N);
}  // the sign
DNL_INL I iota() { return Uint4{0, 1, 2, 3}; }
DNL_INL F to_float(I a) { return __builtin_convertvector(reinterpret_cast<Int4>(a.v), Float4); }

DNL_INL F operator+(F a, F b) { return a.v + b.v; }
DNL_INL F operator-(F a, F b) { return a.v - b.v; }
DNL_INL F operator*(F a, F b) { return a.v * b.v; }
DNL_INL F operator/(F a, F b) { return a.v / b.v; }
DNL_INL F operator-(F a) { return from_bits(bits(a) ^ I(static_cast<int>(0x80000000u))); }
DNL_INL F madd(F a, F b, F c) { return a.v * b.v + c.v; }   // a b + c, rounded once where the machine can
DNL_INL F nmadd(F a, F b, F c) { return c.v - a.v * b.v; }  // c - a b

DNL_INL M operator<(F a, F b) { return {a.v < b.v}; }
DNL_INL M operator<=(F a, F b) { return {a.v <= b.v}; }
DNL_INL M operator>(F a, F b) { return {a.v > b.v}; }
DNL_INL M operator>=(F a, F b) { return {a.v >= b.v}; }
DNL_INL M operator==(F a, F b) { return {a.v == b.v}; }
DNL_INL M operator!=(F a, F b) { return {a.v != b.v}; }
DNL_INL M operator&(M a, M b) { return {a.v & b.v}; }
DNL_INL M operator|(M a, M b) { return {a.v | b.v}; }
DNL_INL M operator!(M a) { return {~a.v}; }
// One bit a lane, lane 0 lowest.
DNL_INL unsigned mask_bits(M a) { return (a.v[0] & 1u) | (a.v[1] & 2u) | (a.v[2] & 4u) | (a.v[3] & 8u); }
DNL_INL F select(M m, F a, F b) {  // m ? a : b
  const Uint4 k = reinterpret_cast<Uint4>(m.v);
  return from_bits(I((k & bits(a).v) | (~k & bits(b).v)));
}

DNL_INL F vmin(F a, F b) { return select(a < b, a, b); }  // b when one of the two is NaN
DNL_INL F vmax(F a, F b) { return select(a > b, a, b); }  // b when one of the two is NaN
DNL_INL F vabs(F a) { return from_bits(bits(a) & I(0x7FFFFFFF)); }
DNL_INL F vcopysign(F mag, F sign) {
  return from_bits((bits(mag) & I(0x7FFFFFFF)) | (bits(sign) & I(static_cast<int>(0x80000000u))));
}
DNL_INL F vsqrt(F a) { return Float4{sqrtf(a.v[0]), sqrtf(a.v[1]), sqrtf(a.v[2]), sqrtf(a.v[3])}; }
// To the nearest, ties to even: adding and taking away 2^23 leaves no room for a fraction.
DNL_INL F vrint(F a) {
  const F big = vcopysign(F(8388608.0f), a);
  return select(vabs(a) < F(8388608.0f), vcopysign((a + big) - big, a), a);
}
DNL_INL F vfloor(F a) {
  const F t = vrint(a);
  return select(t > a, t - F(1.0f), t);
}
DNL_INL F vceil(F a) {
  const F t = vrint(a);
  return vcopysign(select(t < a, t + F(1.0f), t), a);
}
// To the nearest; where the number does not fit (or is NaN): any number.
DNL_INL I to_int(F a) {
  const F t = vrint(select(vabs(a) < F(2147483000.0f), a, F(0.0f)));
  return reinterpret_cast<Uint4>(__builtin_convertvector(t.v, Int4));
}
// The two above for |a| < 2^22, where a sum with 1.5 * 2^23 has the whole number in its last bits.
DNL_INL F vrint_near(F a) { return (a + F(12582912.0f)) - F(12582912.0f); }
DNL_INL I whole_to_int(F a) { return bits(a + F(12582912.0f)) - I(0x4B400000); }

DNL_INL float hsum(F a) { return (a.v[0] + a.v[2]) + (a.v[1] + a.v[3]); }
DNL_INL float hmax(F a) {
  const float p = a.v[0] > a.v[1] ? a.v[0] : a.v[1], q = a.v[2] > a.v[3] ? a.v[2] : a.v[3];
  return p > q ? p : q;
}
// r[i] = hsum of the i-th.
DNL_INL void hsum4(F a, F b, F c, F d, float* r) {
  r[0] = hsum(a);
  r[1] = hsum(b);
  r[2] = hsum(c);
  r[3] = hsum(d);
}
constexpr bool kSumsAtOnce = false;  // there is no hsum_each

#include "kernels/simd_narrow.h"

// A whole block of that.
DNL_INL void transpose_block(const float* from, idx from_step, float* to, idx to_step) {
  transpose_part(kTransposed, kTransposed, from, from_step, to, to_step);
}

// Tiles of body_gemm.h that 16 registers hold: vectors of rows by columns.
constexpr int kTileMv = 2, kTileNc = 4, kTileMv1 = 4, kTileMv2 = 4, kTileMv8 = 0, kTileDots = 2;
