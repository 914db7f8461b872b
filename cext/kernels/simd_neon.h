// Vectors of 4 floats on NEON with fused multiply-add, as every 64-bit ARM processor has them.
//
// simd_portable.h tells what each function does; this is the same interface. Included by isa_neon.cc alone, inside
// its unnamed namespace. Includes: nothing (isa_neon.cc has included arm_neon.h).
#define DNL_INL static inline __attribute__((always_inline))

struct F {
  static constexpr int W = 4;
  float32x4_t v;
  F() = default;
  __attribute__((always_inline)) F(float32x4_t x) : v(x) {}
  __attribute__((always_inline)) F(float x) : v(vdupq_n_f32(x)) {}
};
struct I {
  int32x4_t v;
  I() = default;
  __attribute__((always_inline)) I(int32x4_t x) : v(x) {}
  __attribute__((always_inline)) I(int x) : v(vdupq_n_s32(x)) {}
};
struct M {
  uint32x4_t v;
};

DNL_INL F load(const float* p) { return vld1q_f32(p); }
DNL_INL void store(float* p, F x) { vst1q_f32(p, x.v); }
DNL_INL F load_n(const float* p, idx n) {
  float32x4_t r = vdupq_n_f32(0.0f);
  if (n > 0) r = vld1q_lane_f32(p, r, 0);
  if (n > 1) r = vld1q_lane_f32(p + 1, r, 1);
  if (n > 2) r = vld1q_lane_f32(p + 2, r, 2);
  return n > 3 ? vld1q_lane_f32(p + 3, r, 3) : r;
}
DNL_INL void store_n(float* p, F x, idx n) {
  if (n > 0) vst1q_lane_f32(p, x.v, 0);
  if (n > 1) vst1q_lane_f32(p + 1, x.v, 1);
  if (n > 2) vst1q_lane_f32(p + 2, x.v, 2);
  if (n > 3) vst1q_lane_f32(p + 3, x.v, 3);
}
DNL_INL F load_into(F x, const float* p, idx at, idx n) {
  float lanes[4];
  vst1q_f32(lanes, x.v);
  for (idx i = 0; i < n; ++i) lanes[at + i] = p[i];
  return vld1q_f32(lanes);
}
DNL_INL void store_from(float* p, F x, idx at, idx n) {
  float lanes[4];
  vst1q_f32(lanes, x.v);
  for (idx i = 0; i < n; ++i) p[i] = lanes[at + i];
}

DNL_INL F operator+(F a, F b) { return vaddq_f32(a.v, b.v); }
DNL_INL F operator-(F a, F b) { return vsubq_f32(a.v, b.v); }
DNL_INL F operator*(F a, F b) { return vmulq_f32(a.v, b.v); }
DNL_INL F operator/(F a, F b) { return vdivq_f32(a.v, b.v); }
DNL_INL F operator-(F a) { return vnegq_f32(a.v); }
DNL_INL F madd(F a, F b, F c) { return vfmaq_f32(c.v, a.v, b.v); }
DNL_INL F nmadd(F a, F b, F c) { return vfmsq_f32(c.v, a.v, b.v); }

DNL_INL M operator<(F a, F b) { return {vcltq_f32(a.v, b.v)}; }
DNL_INL M operator<=(F a, F b) { return {vcleq_f32(a.v, b.v)}; }
DNL_INL M operator>(F a, F b) { return {vcgtq_f32(a.v, b.v)}; }
DNL_INL M operator>=(F a, F b) { return {vcgeq_f32(a.v, b.v)}; }
DNL_INL M operator==(F a, F b) { return {vceqq_f32(a.v, b.v)}; }
DNL_INL M operator!=(F a, F b) { return {vmvnq_u32(vceqq_f32(a.v, b.v))}; }
DNL_INL M operator&(M a, M b) { return {vandq_u32(a.v, b.v)}; }
DNL_INL M operator|(M a, M b) { return {vorrq_u32(a.v, b.v)}; }
DNL_INL M operator!(M a) { return {vmvnq_u32(a.v)}; }
static const std::uint32_t kLaneBits[4] = {1, 2, 4, 8};
DNL_INL unsigned mask_bits(M a) { return vaddvq_u32(vandq_u32(a.v, vld1q_u32(kLaneBits))); }
DNL_INL F select(M m, F a, F b) { return vbslq_f32(m.v, a.v, b.v); }

DNL_INL F vmin(F a, F b) { return select(a < b, a, b); }  // not vminq, which makes NaN of one NaN
DNL_INL F vmax(F a, F b) { return select(a > b, a, b); }
DNL_INL F vsqrt(F a) { return vsqrtq_f32(a.v); }
DNL_INL F vabs(F a) { return vabsq_f32(a.v); }
DNL_INL F vcopysign(F mag, F sign) { return vbslq_f32(vdupq_n_u32(0x80000000u), sign.v, mag.v); }
DNL_INL F vrint(F a) { return vrndnq_f32(a.v); }
DNL_INL F vfloor(F a) { return vrndmq_f32(a.v); }
DNL_INL F vceil(F a) { return vrndpq_f32(a.v); }

DNL_INL I operator+(I a, I b) { return vaddq_s32(a.v, b.v); }
DNL_INL I operator-(I a, I b) { return vsubq_s32(a.v, b.v); }
DNL_INL I operator*(I a, I b) { return vmulq_s32(a.v, b.v); }
DNL_INL I operator&(I a, I b) { return vandq_s32(a.v, b.v); }
DNL_INL I operator|(I a, I b) { return vorrq_s32(a.v, b.v); }
DNL_INL I operator^(I a, I b) { return veorq_s32(a.v, b.v); }
template <int N>
DNL_INL I shl(I a) {
  return vshlq_n_s32(a.v, N);
}
template <int N>
DNL_INL I shr(I a) {
  return vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a.v), N));
}
template <int N>
DNL_INL I sar(I a) {
  return vshrq_n_s32(a.v, N);
}
static const std::int32_t kCount[4] = {0, 1, 2, 3};
DNL_INL I iota() { return vld1q_s32(kCount); }
DNL_INL F to_float(I a) { return vcvtq_f32_s32(a.v); }
DNL_INL I to_int(F a) { return vcvtnq_s32_f32(a.v); }
DNL_INL F vrint_near(F a) { return vrint(a); }
DNL_INL I whole_to_int(F a) { return to_int(a); }
DNL_INL I bits(F a) { return vreinterpretq_s32_f32(a.v); }
DNL_INL F from_bits(I a) { return vreinterpretq_f32_s32(a.v); }

DNL_INL float hsum(F a) {
  const float32x2_t q = vadd_f32(vget_low_f32(a.v), vget_high_f32(a.v));
  return vget_lane_f32(vpadd_f32(q, q), 0);
}
DNL_INL float hmax(F a) {
  const F q = vmax(a, vextq_f32(a.v, a.v, 2));
  return vgetq_lane_f32(vmax(q, vextq_f32(q.v, q.v, 1)).v, 0);
}
// r[i] = hsum of the i-th.
DNL_INL void hsum4(F a, F b, F c, F d, float* r) {
  vst1q_f32(r, vpaddq_f32(vpaddq_f32(a.v, b.v), vpaddq_f32(c.v, d.v)));
}
constexpr bool kSumsAtOnce = false;  // there is no hsum_each

#include "kernels/simd_narrow.h"

DNL_INL void transpose4(const float* from, idx from_step, float* to, idx to_step) {
  const float32x4x2_t even = vtrnq_f32(vld1q_f32(from), vld1q_f32(from + from_step));
  const float32x4x2_t odd = vtrnq_f32(vld1q_f32(from + 2 * from_step), vld1q_f32(from + 3 * from_step));
  for (int j = 0; j < 2; ++j) {
    vst1q_f32(to + j * to_step, vcombine_f32(vget_low_f32(even.val[j]), vget_low_f32(odd.val[j])));
    vst1q_f32(to + (j + 2) * to_step, vcombine_f32(vget_high_f32(even.val[j]), vget_high_f32(odd.val[j])));
  }
}
// A whole block of that.
DNL_INL void transpose_block(const float* from, idx from_step, float* to, idx to_step) {
  for (int i = 0; i < kTransposed; i += 4)
    for (int j = 0; j < kTransposed; j += 4)
      transpose4(from + i * from_step + j, from_step, to + j * to_step + i, to_step);
}

// Tiles of body_gemm.h that 32 registers hold: vectors of rows by columns.
constexpr int kTileMv = 4, kTileNc = 6, kTileMv1 = 8, kTileMv2 = 8, kTileMv8 = 3, kTileDots = 6;
