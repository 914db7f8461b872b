// Vectors of 8 floats on AVX2 and FMA: the wrapper that the kernel bodies are written on.
//
// simd_portable.h tells what each function does; this is the same interface. Included by isa_avx2.cc alone, inside
// its unnamed namespace. Includes: nothing (isa_avx2.cc has included immintrin.h).
#define DNL_INL static inline __attribute__((always_inline))

struct F {
  static constexpr int W = 8;
  __m256 v;
  F() = default;
  __attribute__((always_inline)) F(__m256 x) : v(x) {}
  __attribute__((always_inline)) F(float x) : v(_mm256_set1_ps(x)) {}
};
struct I {
  __m256i v;
  I() = default;
  __attribute__((always_inline)) I(__m256i x) : v(x) {}
  __attribute__((always_inline)) I(int x) : v(_mm256_set1_epi32(x)) {}
};
struct M {
  __m256 v;
};

alignas(64) static const int kLanes[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
DNL_INL __m256i lanes(idx n) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kLanes + 8 - n)); }
DNL_INL F load(const float* p) { return _mm256_loadu_ps(p); }
DNL_INL F load_n(const float* p, idx n) { return _mm256_maskload_ps(p, lanes(n)); }
DNL_INL void store(float* p, F x) { _mm256_storeu_ps(p, x.v); }
DNL_INL void store_n(float* p, F x, idx n) { _mm256_maskstore_ps(p, lanes(n), x.v); }

DNL_INL __m256i lanes_from(idx at, idx n) { return _mm256_andnot_si256(lanes(at), lanes(at + n)); }
DNL_INL F load_into(F x, const float* p, idx at, idx n) {
  const __m256i mask = lanes_from(at, n);
  return _mm256_blendv_ps(x.v, _mm256_maskload_ps(p - at, mask), _mm256_castsi256_ps(mask));
}
DNL_INL void store_from(float* p, F x, idx at, idx n) { _mm256_maskstore_ps(p - at, lanes_from(at, n), x.v); }

DNL_INL F operator+(F a, F b) { return _mm256_add_ps(a.v, b.v); }
DNL_INL F operator-(F a, F b) { return _mm256_sub_ps(a.v, b.v); }
DNL_INL F operator*(F a, F b) { return _mm256_mul_ps(a.v, b.v); }
DNL_INL F operator/(F a, F b) { return _mm256_div_ps(a.v, b.v); }
DNL_INL F operator-(F a) { return _mm256_xor_ps(a.v, _mm256_set1_ps(-0.0f)); }
DNL_INL F madd(F a, F b, F c) { return _mm256_fmadd_ps(a.v, b.v, c.v); }
DNL_INL F nmadd(F a, F b, F c) { return _mm256_fnmadd_ps(a.v, b.v, c.v); }
DNL_INL F vmin(F a, F b) { return _mm256_min_ps(a.v, b.v); }
DNL_INL F vmax(F a, F b) { return _mm256_max_ps(a.v, b.v); }
DNL_INL F vsqrt(F a) { return _mm256_sqrt_ps(a.v); }
DNL_INL F vabs(F a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v); }
DNL_INL F vcopysign(F mag, F sign) {
  const __m256 s = _mm256_set1_ps(-0.0f);
  return _mm256_or_ps(_mm256_and_ps(s, sign.v), _mm256_andnot_ps(s, mag.v));
}
DNL_INL F vrint(F a) { return _mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
DNL_INL F vfloor(F a) { return _mm256_floor_ps(a.v); }
DNL_INL F vceil(F a) { return _mm256_ceil_ps(a.v); }

DNL_INL M operator<(F a, F b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)}; }
DNL_INL M operator<=(F a, F b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LE_OQ)}; }
DNL_INL M operator>(F a, F b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_GT_OQ)}; }
DNL_INL M operator>=(F a, F b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_GE_OQ)}; }
DNL_INL M operator==(F a, F b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_EQ_OQ)}; }
DNL_INL M operator!=(F a, F b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_NEQ_UQ)}; }
DNL_INL M operator&(M a, M b) { return {_mm256_and_ps(a.v, b.v)}; }
DNL_INL M operator|(M a, M b) { return {_mm256_or_ps(a.v, b.v)}; }
DNL_INL M operator!(M a) { return {_mm256_xor_ps(a.v, _mm256_castsi256_ps(_mm256_set1_epi32(-1)))}; }
DNL_INL unsigned mask_bits(M a) { return static_cast<unsigned>(_mm256_movemask_ps(a.v)); }
DNL_INL F select(M m, F a, F b) { return _mm256_blendv_ps(b.v, a.v, m.v); }

DNL_INL I operator+(I a, I b) { return _mm256_add_epi32(a.v, b.v); }
DNL_INL I operator-(I a, I b) { return _mm256_sub_epi32(a.v, b.v); }
DNL_INL I operator*(I a, I b) { return _mm256_mullo_epi32(a.v, b.v); }
DNL_INL I operator&(I a, I b) { return _mm256_and_si256(a.v, b.v); }
DNL_INL I operator|(I a, I b) { return _mm256_or_si256(a.v, b.v); }
DNL_INL I operator^(I a, I b) { return _mm256_xor_si256(a.v, b.v); }
template <int N>
DNL_INL I shl(I a) {
  return _mm256_slli_epi32(a.v, N);
}
template <int N>
DNL_INL I shr(I a) {
  return _mm256_srli_epi32(a.v, N);
}
template <int N>
DNL_INL I sar(I a) {
  return _mm256_srai_epi32(a.v, N);
}
DNL_INL I iota() { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
DNL_INL F to_float(I a) { return _mm256_cvtepi32_ps(a.v); }
DNL_INL I to_int(F a) { return _mm256_cvtps_epi32(a.v); }
DNL_INL F vrint_near(F a) { return vrint(a); }
DNL_INL I whole_to_int(F a) { return to_int(a); }
DNL_INL I bits(F a) { return _mm256_castps_si256(a.v); }
DNL_INL F from_bits(I a) { return _mm256_castsi256_ps(a.v); }

DNL_INL float hsum(F a) {
  __m128 q = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  q = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
DNL_INL float hmax(F a) {
  __m128 q = _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  q = _mm_max_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}
// r[i] = hsum of the i-th.
DNL_INL void hsum4(F a, F b, F c, F d, float* r) {
  const __m256 t = _mm256_hadd_ps(_mm256_hadd_ps(a.v, b.v), _mm256_hadd_ps(c.v, d.v));
  _mm_storeu_ps(r, _mm_add_ps(_mm256_castps256_ps128(t), _mm256_extractf128_ps(t, 1)));
}
constexpr bool kSumsAtOnce = false;  // there is no hsum_each

#include "kernels/simd_narrow.h"

// A whole block of that.
DNL_INL void transpose_block(const float* from, idx from_step, float* to, idx to_step) {
  __m256 r[8], s[8];
  for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(from + i * from_step);
  for (int i = 0; i < 8; i += 2) {
    s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(s[i], s[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(s[i], s[i + 2], 0xEE);
    r[i + 2] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0xEE);
  }
  for (int j = 0; j < 4; ++j) {
    _mm256_storeu_ps(to + j * to_step, _mm256_permute2f128_ps(r[j], r[j + 4], 0x20));
    _mm256_storeu_ps(to + (j + 4) * to_step, _mm256_permute2f128_ps(r[j], r[j + 4], 0x31));
  }
}

// Tiles of body_gemm.h that 16 registers hold: vectors of rows by columns.
constexpr int kTileMv = 2, kTileNc = 6, kTileMv1 = 8, kTileMv2 = 4, kTileMv8 = 0, kTileDots = 3;
