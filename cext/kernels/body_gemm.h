// Small matrix products without packing. Part of isa_body.h: included there alone. gemm.cc decides who gets which
// shape.
//
// gemm_cols: the left matrix is read down its columns. A tile of C (a few vectors of rows by a few columns) stays in
// registers while k runs; the right matrix is read number by number, so its strides are free.
// gemm_dots: the left matrix is transposed, so an element of C is the dot product of two contiguous columns; with many
// columns a panel of it is transposed on the stack first and handed to gemm_cols.

// What gemm_cols tells a tile. `last`: how many rows the last vector of the tile has (F::W: all).
struct ColsTile {
  idx k;
  const float* a;
  idx lda;
  const float* b;
  idx b_k, b_j;
  float alpha, beta;
  float* c;
  idx ldc, last;
};

template <int MV, int NC, bool Whole_>
static void cols_tile(const ColsTile& t) {
  constexpr int W = F::W;
  const idx lda = t.lda, b_k = t.b_k, b_j = t.b_j, last = t.last;
  const float *a = t.a, *b = t.b;
  F sum[NC][MV];
#pragma GCC unroll 8
  for (int j = 0; j < NC; ++j)
#pragma GCC unroll 8
    for (int v = 0; v < MV; ++v) sum[j][v] = F(0.0f);
  for (idx p = 0; p < t.k; ++p, a += lda, b += b_k) {
    F x[MV];
#pragma GCC unroll 8
    for (int v = 0; v < MV; ++v) x[v] = Whole_ || v + 1 < MV ? load(a + v * W) : load_n(a + v * W, last);
#pragma GCC unroll 8
    for (int j = 0; j < NC; ++j) {
      const F y = F(b[j * b_j]);
#pragma GCC unroll 8
      for (int v = 0; v < MV; ++v) sum[j][v] = madd(x[v], y, sum[j][v]);
    }
  }
  const F alpha = F(t.alpha), beta = F(t.beta);
#pragma GCC unroll 8
  for (int j = 0; j < NC; ++j)
#pragma GCC unroll 8
    for (int v = 0; v < MV; ++v) {
      float* c = t.c + j * t.ldc + v * W;
      F r = alpha * sum[j][v];
      if (Whole_ || v + 1 < MV) {
        if (t.beta != 0) r = madd(beta, load(c), r);
        store(c, r);
      } else {
        if (t.beta != 0) r = madd(beta, load_n(c, last), r);
        store_n(c, r, last);
      }
    }
}

// Tiles by size. The widest that registers hold: many vectors for one or two columns, else DNL_MV x DNL_NC.
using ColsTileFn = void (*)(const ColsTile&);
template <int NC>
DNL_INL ColsTileFn cols_tile_for(int mv, bool whole_rows) {
  constexpr int kMost = NC == 1 ? kTileMv1 : NC == 2 ? kTileMv2 : kTileMv;
  static_assert(kMost <= 8, "the switch below ends at 8");
  switch (mv) {
#define DNL_CASE(n) \
  case n:           \
    return whole_rows ? cols_tile<(n < kMost ? n : kMost), NC, true> : cols_tile<(n < kMost ? n : kMost), NC, false>;
    DNL_CASE(1) DNL_CASE(2) DNL_CASE(3) DNL_CASE(4) DNL_CASE(5) DNL_CASE(6) DNL_CASE(7) DNL_CASE(8)
#undef DNL_CASE
  }
  return nullptr;
}
DNL_INL int most_vectors(int nc) { return nc == 1 ? kTileMv1 : nc == 2 ? kTileMv2 : kTileMv; }
DNL_INL ColsTileFn cols_tile_for(int mv, int nc, bool whole_rows) {
  switch (nc) {
    case 1: return cols_tile_for<1>(mv, whole_rows);
    case 2: return cols_tile_for<2>(mv, whole_rows);
    case 3: return cols_tile_for<3>(mv, whole_rows);
    case 4: return cols_tile_for<4>(mv, whole_rows);
    case 5: return cols_tile_for<(kTileNc < 5 ? 4 : 5)>(mv, whole_rows);
    default: return cols_tile_for<(kTileNc < 6 ? 4 : 6)>(mv, whole_rows);
  }
}

// Rows and columns are cut into tiles of nearly equal size, so that no tile is a thin rest.
static void gemm_cols(idx m, idx n, idx k, float alpha, const float* a, idx lda, const float* b, idx b_k, idx b_j,
                      float beta, float* c, idx ldc) {
  constexpr idx W = F::W;
  if (m <= 0 || n <= 0) return;
  const idx vectors = (m + W - 1) / W;
  const idx col_tiles = (n + kTileNc - 1) / kTileNc;
  const idx widest = (n + col_tiles - 1) / col_tiles;
  const idx most = most_vectors(static_cast<int>(widest));
  const idx row_tiles = (vectors + most - 1) / most;
  idx v0 = 0;
  for (idx rt = 0; rt < row_tiles; ++rt) {
    const idx v1 = vectors * (rt + 1) / row_tiles, rows = (v1 * W < m ? v1 * W : m) - v0 * W;
    const int mv = static_cast<int>(v1 - v0);
    const idx last = rows - (mv - 1) * W;
    ColsTile t = {k, a + v0 * W, lda, b, b_k, b_j, alpha, beta, c + v0 * W, ldc, last};
    idx j0 = 0;
    for (idx ct = 0; ct < col_tiles; ++ct) {
      const idx j1 = n * (ct + 1) / col_tiles;
      t.b = b + j0 * b_j;
      t.c = c + v0 * W + j0 * ldc;
      cols_tile_for(mv, static_cast<int>(j1 - j0), last == W)(t);
      j0 = j1;
    }
    v0 = v1;
  }
}

struct DotsTile {
  idx k;
  const float* a;
  idx lda;
  const float* b;
  idx ldb;
  float alpha, beta;
  float* c;
  idx ldc;
};
template <int MI, int NJ>
static void dots_tile(const DotsTile& t) {
  F sum[NJ][4];
#pragma GCC unroll 8
  for (int j = 0; j < NJ; ++j)
#pragma GCC unroll 8
    for (int i = 0; i < 4; ++i) sum[j][i] = F(0.0f);
  const float *a = t.a, *b = t.b;
  const idx lda = t.lda, ldb = t.ldb;
  for_lanes(t.k, [&](idx p, auto w) DNL_LAMBDA {
    F x[MI];
#pragma GCC unroll 8
    for (int i = 0; i < MI; ++i) x[i] = w.load(a + i * lda + p);
#pragma GCC unroll 8
    for (int j = 0; j < NJ; ++j) {
      const F y = w.load(b + j * ldb + p);
#pragma GCC unroll 8
      for (int i = 0; i < MI; ++i) sum[j][i] = madd(x[i], y, sum[j][i]);
    }
  });
#pragma GCC unroll 8
  for (int j = 0; j < NJ; ++j) {
    float r[4];
    hsum4(sum[j][0], sum[j][1], sum[j][2], sum[j][3], r);
    float* c = t.c + j * t.ldc;
    for (int i = 0; i < MI; ++i) c[i] = t.alpha * r[i] + (t.beta != 0 ? t.beta * c[i] : 0.0f);
  }
}
template <int MI>
DNL_INL void dots_columns(DotsTile t, idx n) {
  const idx tiles = (n + kTileDots - 1) / kTileDots;
  idx j0 = 0;
  for (idx q = 0; q < tiles; ++q) {  // nearly equal, as in gemm_cols
    const idx j1 = n * (q + 1) / tiles;
    switch (j1 - j0) {
      case 1: dots_tile<MI, 1>(t); break;
      case 2: dots_tile<MI, 2>(t); break;
      case 3: dots_tile<MI, (kTileDots < 3 ? kTileDots : 3)>(t); break;
      case 4: dots_tile<MI, (kTileDots < 4 ? kTileDots : 4)>(t); break;
      case 5: dots_tile<MI, (kTileDots < 5 ? kTileDots : 5)>(t); break;
      default: dots_tile<MI, kTileDots>(t);
    }
    t.b += (j1 - j0) * t.ldb;
    t.c += (j1 - j0) * t.ldc;
    j0 = j1;
  }
}
// Panels of 64 rows by 128 of k: 32 KiB, which the first-level cache holds.
static void gemm_dots_packed(idx m, idx n, idx k, float alpha, const float* a, idx lda, const float* b, idx ldb,
                             float beta, float* c, idx ldc) {
  constexpr idx kRows = 64, kDepth = 128;
  alignas(64) float panel[kRows * kDepth];
  for (idx i = 0; i < m; i += kRows) {
    const idx rows = m - i < kRows ? m - i : kRows;
    for (idx p = 0; p < k; p += kDepth) {
      const idx depth = k - p < kDepth ? k - p : kDepth;
      transpose_strided(rows, depth, a + i * lda + p, lda, panel, kRows, false);
      gemm_cols(rows, n, depth, alpha, panel, kRows, b + p, 1, ldb, p ? 1.0f : beta, c + i, ldc);
    }
  }
}
static void gemm_dots(idx m, idx n, idx k, float alpha, const float* a, idx lda, const float* b, idx ldb, float beta,
                      float* c, idx ldc) {
  // Where transposing costs less than adding up the lanes of each dot product.
  if (n >= 4 && 8 * n >= (k < 256 ? k : 256) && m >= F::W)
    return gemm_dots_packed(m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  idx i = 0;
  for (; i + 4 <= m; i += 4) dots_columns<4>({k, a + i * lda, lda, b, ldb, alpha, beta, c + i, ldc}, n);
  for (; i < m; ++i) dots_columns<1>({k, a + i * lda, lda, b, ldb, alpha, beta, c + i, ldc}, n);
}
