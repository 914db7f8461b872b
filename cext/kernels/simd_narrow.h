// What vectors without masks do alike. Included by simd_avx2.h, simd_neon.h and simd_portable.h alone. Includes:
// nothing.

// x * 2^n for a whole n from -250 to 250, right into the denormals, or 0. In two factors, because 2^n alone may not be
// a normal number. kScalesAll: where it is 0 x and n may be anything, and n may be any number elsewhere.
constexpr bool kScalesAll = false;
DNL_INL F scale_pow2_unless(M zero, F x, F n) {
  const I k = whole_to_int(n), half = sar<1>(k);
  return select(zero, F(0.0f), x * from_bits(shl<23>(half + I(127))) * from_bits(shl<23>(k - half + I(127))));
}

// Half a vector takes as long as a whole one: nothing is told apart.
constexpr int kHalf = 0;
DNL_INL F load_half(const float* p, idx n) { return load_n(p, n); }
DNL_INL F madd_half(F a, F b, F c) { return madd(a, b, c); }

// to[j * to_step + i] = from[i * from_step + j] for i < rows, j < cols, at most kTransposed of each.
constexpr int kTransposed = 8;
DNL_INL void transpose_part(int rows, int cols, const float* from, idx from_step, float* to, idx to_step) {
  for (int j = 0; j < cols; ++j)
    for (int i = 0; i < rows; ++i) to[j * to_step + i] = from[i * from_step + j];
}
