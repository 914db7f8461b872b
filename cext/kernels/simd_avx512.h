// Vectors of 16 floats on AVX-512: the wrapper that the kernel bodies are written on.
//
// simd_portable.h tells what each function does; this is the same interface. Included by isa_avx512.cc alone, inside
// its unnamed namespace. Includes: nothing (isa_avx512.cc has included immintrin.h).
#define DNL_INL static inline __attribute__((always_inline))

struct F {
  static constexpr int W = 16;
  __m512 v;
  F() = default;
  __attribute__((always_inline)) F(__m512 x) : v(x) {}
  __attribute__((always_inline)) F(float x) : v(_mm512_set1_ps(x)) {}
};
struct I {
  __m512i v;
  I() = default;
  __attribute__((always_inline)) I(__m512i x) : v(x) {}
  __attribute__((always_inline)) I(int x) : v(_mm512_set1_epi32(x)) {}
};
struct M {
  __mmask16 v;
};

DNL_INL __mmask16 lanes(idx n) { return static_cast<__mmask16>((1u << n) - 1u); }
DNL_INL F load(const float* p) { return _mm512_loadu_ps(p); }
DNL_INL F load_n(const float* p, idx n) { return _mm512_maskz_loadu_ps(lanes(n), p); }
DNL_INL void store(float* p, F x) { _mm512_storeu_ps(p, x.v); }
DNL_INL void store_n(float* p, F x, idx n) { _mm512_mask_storeu_ps(p, lanes(n), x.v); }

// At most kHalf numbers, and madd of such: the lanes behind them hold anything. It takes half the time of a whole
// vector on processors that put one together of two halves (Zen 4), and no longer on others.
constexpr int kHalf = 8;
DNL_INL F load_half(const float* p, idx n) {
  return _mm512_castps256_ps512(_mm256_maskz_loadu_ps(static_cast<__mmask8>(lanes(n)), p));
}
DNL_INL F madd_half(F a, F b, F c) {
  return _mm512_castps256_ps512(
      _mm256_fmadd_ps(_mm512_castps512_ps256(a.v), _mm512_castps512_ps256(b.v), _mm512_castps512_ps256(c.v)));
}

DNL_INL F load_into(F x, const float* p, idx at, idx n) {
  return _mm512_mask_loadu_ps(x.v, static_cast<__mmask16>(lanes(n) << at), p - at);
}
DNL_INL void store_from(float* p, F x, idx at, idx n) {
  _mm512_mask_storeu_ps(p - at, static_cast<__mmask16>(lanes(n) << at), x.v);
}

DNL_INL F operator+(F a, F b) { return _mm512_add_ps(a.v, b.v); }
DNL_INL F operator-(F a, F b) { return _mm512_sub_ps(a.v, b.v); }
DNL_INL F operator*(F a, F b) { return _mm512_mul_ps(a.v, b.v); }
DNL_INL F operator/(F a, F b) { return _mm512_div_ps(a.v, b.v); }
DNL_INL F operator-(F a) { return _mm512_xor_ps(a.v, _mm512_set1_ps(-0.0f)); }
DNL_INL F madd(F a, F b, F c) { return _mm512_fmadd_ps(a.v, b.v, c.v); }
DNL_INL F nmadd(F a, F b, F c) { return _mm512_fnmadd_ps(a.v, b.v, c.v); }
DNL_INL F vmin(F a, F b) { return _mm512_min_ps(a.v, b.v); }
DNL_INL F vmax(F a, F b) { return _mm512_max_ps(a.v, b.v); }
DNL_INL F vsqrt(F a) { return _mm512_sqrt_ps(a.v); }
DNL_INL F vabs(F a) { return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), a.v); }
DNL_INL F vcopysign(F mag, F sign) {
  return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(_mm512_set1_epi32(static_cast<int>(0x80000000u)),
                                                       _mm512_castps_si512(sign.v), _mm512_castps_si512(mag.v), 0xCA));
}
DNL_INL F vrint(F a) { return _mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
DNL_INL F vfloor(F a) { return _mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
DNL_INL F vceil(F a) { return _mm512_roundscale_ps(a.v, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }

DNL_INL M operator<(F a, F b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
DNL_INL M operator<=(F a, F b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)}; }
DNL_INL M operator>(F a, F b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ)}; }
DNL_INL M operator>=(F a, F b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GE_OQ)}; }
DNL_INL M operator==(F a, F b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
DNL_INL M operator!=(F a, F b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_NEQ_UQ)}; }
DNL_INL M operator&(M a, M b) { return {static_cast<__mmask16>(a.v & b.v)}; }
DNL_INL M operator|(M a, M b) { return {static_cast<__mmask16>(a.v | b.v)}; }
DNL_INL M operator!(M a) { return {static_cast<__mmask16>(~a.v)}; }
DNL_INL unsigned mask_bits(M a) { return a.v; }
DNL_INL F select(M m, F a, F b) { return _mm512_mask_blend_ps(m.v, b.v, a.v); }

DNL_INL I operator+(I a, I b) { return _mm512_add_epi32(a.v, b.v); }
DNL_INL I operator-(I a, I b) { return _mm512_sub_epi32(a.v, b.v); }
DNL_INL I operator*(I a, I b) { return _mm512_mullo_epi32(a.v, b.v); }
DNL_INL I operator&(I a, I b) { return _mm512_and_si512(a.v, b.v); }
DNL_INL I operator|(I a, I b) { return _mm512_or_si512(a.v, b.v); }
DNL_INL I operator^(I a, I b) { return _mm512_xor_si512(a.v, b.v); }
template <int N>
DNL_INL I shl(I a) {
  return _mm512_slli_epi32(a.v, N);
}
template <int N>
DNL_INL I shr(I a) {
  return _mm512_srli_epi32(a.v, N);
}
template <int N>
DNL_INL I sar(I a) {
  return _mm512_srai_epi32(a.v, N);
}
DNL_INL I iota() { return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }
DNL_INL F to_float(I a) { return _mm512_cvtepi32_ps(a.v); }
DNL_INL I to_int(F a) { return _mm512_cvtps_epi32(a.v); }
DNL_INL F vrint_near(F a) { return vrint(a); }
DNL_INL I whole_to_int(F a) { return to_int(a); }
DNL_INL I bits(F a) { return _mm512_castps_si512(a.v); }
DNL_INL F from_bits(I a) { return _mm512_castsi512_ps(a.v); }
// x * 2^n for a whole n, or 0. kScalesAll: where it is 0 x and n may be anything, and n may be any number elsewhere.
constexpr bool kScalesAll = true;
DNL_INL F scale_pow2_unless(M zero, F x, F n) { return _mm512_maskz_scalef_ps((!zero).v, x.v, n.v); }

// Halves are added crosswise: 16 -> 8 -> 4 -> 2 -> 1.
DNL_INL float hsum(F a) {
  __m256 h = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  q = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
DNL_INL float hmax(F a) {
  __m256 h = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  __m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  q = _mm_max_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}
// r[i] = hsum of the i-th.
DNL_INL void hsum4(F a, F b, F c, F d, float* r) {
  const auto half = [](F x) { return _mm256_add_ps(_mm512_castps512_ps256(x.v), _mm512_extractf32x8_ps(x.v, 1)); };
  const __m256 ab = _mm256_hadd_ps(half(a), half(b)), cd = _mm256_hadd_ps(half(c), half(d));
  const __m256 t = _mm256_hadd_ps(ab, cd);
  _mm_storeu_ps(r, _mm_add_ps(_mm256_castps256_ps128(t), _mm256_extractf128_ps(t, 1)));
}

// Lane i is hsum4's sum of x[i], to the last bit: halves of two vectors side by side, then pairs of lanes, twice, then
// quarters.
constexpr bool kSumsAtOnce = true;
DNL_INL F hsum_each(const F (&x)[16]) {
  __m512 half[8], four[2];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    const __m512 a = x[i / 4 * 8 + i % 4].v, b = x[i / 4 * 8 + i % 4 + 4].v;
    half[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
  }
  const auto pairs = [](__m512 a, __m512 b) {
    return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xDD));
  };
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i)
    four[i] = pairs(pairs(half[4 * i], half[4 * i + 1]), pairs(half[4 * i + 2], half[4 * i + 3]));
  return _mm512_add_ps(_mm512_shuffle_f32x4(four[0], four[1], 0x88), _mm512_shuffle_f32x4(four[0], four[1], 0xDD));
}

// to[j * to_step + i] = from[i * from_step + j] for i < rows, j < cols, at most kTransposed of each, four columns at a
// time: rows i, i + 4, i + 8 and i + 12 are put together as they are read, so that all are turned within quarters.
constexpr int kTransposed = 16;
template <bool Whole_>
DNL_INL void transpose16(int rows, int cols, const float* from, idx from_step, float* to, idx to_step) {
  const __mmask16 row = static_cast<__mmask16>((1u << rows) - 1);
  for (int j = 0; j < cols; j += 4) {
    const float* x = from + j;
    float* y = to + j * to_step;
    const int some = Whole_ || cols - j > 4 ? 4 : cols - j;
    const __mmask8 columns = static_cast<__mmask8>((1u << some) - 1);
    const auto four = [&](int i) {
      if (Whole_) return _mm_loadu_ps(x + i * from_step);
      return i < rows ? _mm_maskz_loadu_ps(columns, x + i * from_step) : _mm_setzero_ps();
    };
    const auto two = [&](int i) { return _mm256_insertf128_ps(_mm256_castps128_ps256(four(i)), four(i + 4), 1); };
    __m512 r[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) r[i] = _mm512_insertf32x8(_mm512_castps256_ps512(two(i)), two(i + 8), 1);
    const __m512 a = _mm512_unpacklo_ps(r[0], r[1]), b = _mm512_unpackhi_ps(r[0], r[1]);
    const __m512 c = _mm512_unpacklo_ps(r[2], r[3]), d = _mm512_unpackhi_ps(r[2], r[3]);
    const __m512 turned[4] = {_mm512_shuffle_ps(a, c, 0x44), _mm512_shuffle_ps(a, c, 0xEE),
                              _mm512_shuffle_ps(b, d, 0x44), _mm512_shuffle_ps(b, d, 0xEE)};
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      if (Whole_)
        _mm512_storeu_ps(y + k * to_step, turned[k]);
      else if (k < some)
        _mm512_mask_storeu_ps(y + k * to_step, row, turned[k]);
    }
  }
}
DNL_INL void transpose_block(const float* from, idx from_step, float* to, idx to_step) {
  transpose16<true>(16, 16, from, from_step, to, to_step);
}
DNL_INL void transpose_part(int rows, int cols, const float* from, idx from_step, float* to, idx to_step) {
  transpose16<false>(rows, cols, from, from_step, to, to_step);
}

// Tiles of body_gemm.h that 32 registers hold: vectors of rows by columns.
constexpr int kTileMv = 4, kTileNc = 6, kTileMv1 = 8, kTileMv2 = 8, kTileMv8 = 3, kTileDots = 6;
