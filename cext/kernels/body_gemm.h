// Matrix products on tiles in registers. Part of isa_body.h: included there alone. gemm.cc decides who gets which
// shape.
//
// Columns of the right matrix, of C and of what is added to it are Rows (base/rows.h): they may lie anywhere.
// gemm_cols: the left matrix is read down its columns. A tile of C (a few vectors of rows by a few columns) stays in
// registers while k runs; the right matrix is read number by number.
// gemm_dots: the left matrix is transposed, so an element of C is the dot product of two contiguous columns; with many
// columns a panel of it is transposed on the stack first and handed to the tiles of gemm_cols.
// gemm_outer: a sum of products of a column and a row. The same tiles, which take both from lists of addresses.
// Rows of C that whole vectors leave over, if they are few, are dot products in gemm_cols as well, and turned in
// gemm_outer. Matrices are read where they lie. Where what is read again would not come from a near cache, products are
// cut into blocks, and panels of the left matrix are copied (or transposed) to the stack first.
//
// A tile adds to C column by column when its sums are done, so that columns of C that are one memory get all of it.

// Rows that are columns of a matrix, from float `at` of each on.
struct Columns {
  Row rows;
  idx at;
  DNL_INL_MEMBER Columns(const Row& r, idx from = 0) : rows(r), at(from) {}
  DNL_INL_MEMBER float* operator[](idx j) const { return rows[j] + at; }
  DNL_INL_MEMBER Columns from(idx i) const { return Columns(rows, at + i); }
};

constexpr idx kLine = 16;  // floats of a line of the cache
// Lines that are asked for while a tile is at work, one with each step of k: all at once they would hold it up. Float
// `at` of each of the first n of a list.
struct Meanwhile {
  float* const* list;
  idx at, n;
};

// Columns of the tile that comes next, likewise: so many of C and of b, from column `first` on; of those of C `rows`
// rows, from row `below` of this tile on, and of those of b all, if they are `read`. `steps` steps lie between one and
// the next.
struct Next {
  idx first, columns, rows, below, steps;
  bool read;
};

// What a tile is told. j0: its first column.
struct ColsTile {
  idx k;
  const float* a;  // left matrix, columns lda apart
  idx lda;
  float* const* a_list;  // Outer: column p of the left matrix is a_list[p] + a_at, row p of the right one b_list[p]
  float* const* b_list;
  idx a_at;
  Columns b, add, c;
  float alpha, beta;
  idx j0, last;          // last: how many rows the last vector of the tile has (F::W: all)
  idx ahead;             // Outer: so many columns and rows come next; they stand behind the k in the lists
  float* const* c_list;  // Outer: columns of the C that comes next; null: there is none
  Meanwhile fetched = {nullptr, 0, 0};  // Outer: of these
  Next next = {0, 0, 0, 0, 0, false};
  DNL_INL_MEMBER void fetch_next(idx j) const {
    fetch_to_write(c[next.first + j] + next.below, next.rows);
    if (next.read) fetch(b[next.first + j], k);
  }
};

// sums + add + C for a column of a tile, of which add and C are perhaps not wanted; with factors alpha and beta only if
// Scaled. Additions have units of their own in the processor; products wait for those that the next tile is at.
template <int MV, bool Whole_, bool Scaled>
DNL_INL void cols_sum(F* sum, const float* add, bool reads, F alpha, F beta, idx last, const float* c) {
#pragma GCC unroll 8
  for (int v = 0; v < MV; ++v) {
    const idx i = v * F::W;
    const bool all = Whole_ || v + 1 < MV;
    if (Scaled) sum[v] = alpha * sum[v];
    if (add) sum[v] = sum[v] + (all ? load(add + i) : load_n(add + i, last));
    if (!reads) continue;
    const F old = all ? load(c + i) : load_n(c + i, last);
    sum[v] = Scaled ? madd(beta, old, sum[v]) : sum[v] + old;
  }
}
template <int MV, bool Whole_>
DNL_INL void cols_store(const F* sum, idx last, float* c) {
#pragma GCC unroll 8
  for (int v = 0; v < MV; ++v) {
    if (Whole_ || v + 1 < MV)
      store(c + v * F::W, sum[v]);
    else
      store_n(c + v * F::W, sum[v], last);
  }
}

template <int MV, int NC, bool Whole_, bool Outer, bool Scaled>
DNL_INL void tile_store(const ColsTile& t, F (&sum)[NC][MV]) {
  const Columns to = t.c, more = t.add;
  const bool adds = !Outer && more.rows.wanted(), reads = t.beta != 0;
  const idx last = t.last, j0 = t.j0;
  const F alpha(t.alpha), beta(t.beta);
  // Columns of the C of gemm_outer lie side by side, and a load waits for a store of part of a vector just before it.
  if (Outer && !Whole_) {
#pragma GCC unroll 8
    for (int j = 0; j < NC; ++j) cols_sum<MV, Whole_, Scaled>(sum[j], nullptr, reads, alpha, beta, last, to[j0 + j]);
#pragma GCC unroll 8
    for (int j = 0; j < NC; ++j) cols_store<MV, Whole_>(sum[j], last, to[j0 + j]);
    return;
  }
#pragma GCC unroll 8
  for (int j = 0; j < NC; ++j) {
    cols_sum<MV, Whole_, Scaled>(sum[j], adds ? more[j0 + j] : nullptr, reads, alpha, beta, last, to[j0 + j]);
    cols_store<MV, Whole_>(sum[j], last, to[j0 + j]);
  }
}

// The last vector of a tile: all of it, a part, or a part that half a vector holds (kHalf).
enum class Tail { Whole, Part, Half };
DNL_INL Tail tail_of(idx last) { return last == F::W ? Tail::Whole : last <= kHalf ? Tail::Half : Tail::Part; }

template <int MV, int NC, Tail T, bool Outer>
static void cols_tile(const ColsTile& t) {
  constexpr int W = F::W, kHalved = T == Tail::Half ? MV - 1 : MV;  // from this vector on
  constexpr bool Whole_ = T == Tail::Whole;
  const idx lda = t.lda, last = t.last, k = t.k, j0 = t.j0, a_at = t.a_at;
  F sum[NC][MV];
  const float* b[NC];
#pragma GCC unroll 8
  for (int j = 0; j < NC; ++j) {
    b[j] = Outer ? nullptr : t.b[j0 + j];
#pragma GCC unroll 8
    for (int v = 0; v < MV; ++v) sum[j][v] = F(0.0f);
  }
  const float* a = t.a;
  float *const *a_list = t.a_list, *const *b_list = t.b_list;
  const Meanwhile fetched = t.fetched;
  const idx next = Outer ? 0 : t.next.columns;
  idx p = 0;
  for (idx q = 0; q <= next; ++q) {
    if (q < next) t.fetch_next(q);
    const idx end = q < next ? p + t.next.steps : k;
    for (; p < end; ++p) {
      if (Outer) {
        a = a_list[p] + a_at;
        if (p < fetched.n) DNL_FETCH(fetched.list[p] + fetched.at);
      }
      F x[MV];
#pragma GCC unroll 8
      for (int v = 0; v < MV; ++v)
        x[v] = Whole_ || v + 1 < MV ? load(a + v * W)
               : v < kHalved        ? load_n(a + v * W, last)
                                    : load_half(a + v * W, last);
      const float* row = Outer ? b_list[p] + j0 : nullptr;
#pragma GCC unroll 8
      for (int j = 0; j < NC; ++j) {
        const F y = F(Outer ? row[j] : b[j][p]);
#pragma GCC unroll 8
        for (int v = 0; v < MV; ++v) sum[j][v] = v < kHalved ? madd(x[v], y, sum[j][v]) : madd_half(x[v], y, sum[j][v]);
      }
      a += lda;
    }
  }
  if (t.alpha == 1 && (t.beta == 0 || t.beta == 1))
    tile_store<MV, NC, Whole_, Outer, false>(t, sum);
  else
    tile_store<MV, NC, Whole_, Outer, true>(t, sum);
}

// Tiles by size. The widest that registers hold: many vectors for one or two columns, few for more than kTileNc, else
// kTileMv.
constexpr int kMostNc = kTileMv8 ? 8 : kTileNc;
constexpr int most_vectors(int nc) {
  return nc == 1 ? kTileMv1 : nc == 2 ? kTileMv2 : nc > kTileNc ? kTileMv8 : kTileMv;
}
using ColsTileFn = void (*)(const ColsTile&);
template <int NC, bool Outer>
DNL_INL ColsTileFn cols_tile_for(int mv, Tail tail) {
  constexpr int kMost = most_vectors(NC);
  constexpr Tail kShort = kHalf > 0 ? Tail::Half : Tail::Part;
  static_assert(kMost <= 8, "the switch below ends at 8");
  switch (mv) {
#define DNL_CASE(n)                                                                          \
  case n:                                                                                    \
    return tail == Tail::Whole  ? cols_tile<(n < kMost ? n : kMost), NC, Tail::Whole, Outer> \
           : tail == Tail::Part ? cols_tile<(n < kMost ? n : kMost), NC, Tail::Part, Outer>  \
                                : cols_tile<(n < kMost ? n : kMost), NC, kShort, Outer>;
    DNL_CASE(1) DNL_CASE(2) DNL_CASE(3) DNL_CASE(4) DNL_CASE(5) DNL_CASE(6) DNL_CASE(7) DNL_CASE(8)
#undef DNL_CASE
  }
  return nullptr;
}
template <bool Outer>
DNL_INL ColsTileFn cols_tile_for(int mv, int nc, Tail tail) {
  switch (nc) {
    case 1: return cols_tile_for<1, Outer>(mv, tail);
    case 2: return cols_tile_for<2, Outer>(mv, tail);
    case 3: return cols_tile_for<3, Outer>(mv, tail);
    case 4: return cols_tile_for<4, Outer>(mv, tail);
    case 5: return cols_tile_for<(kMostNc < 5 ? 4 : 5), Outer>(mv, tail);
    case 6: return cols_tile_for<(kMostNc < 6 ? 4 : 6), Outer>(mv, tail);
    case 7: return cols_tile_for<(Outer || kMostNc < 7 ? 4 : 7), Outer>(mv, tail);
    default: return cols_tile_for<(Outer || kMostNc < 8 ? 4 : 8), Outer>(mv, tail);
  }
}

// How many tiles n columns are cut into. Two wide ones instead of three thin ones, or one of two, read the left matrix
// once less; with more columns it comes to the same.
template <bool Outer>
DNL_INL idx column_tiles(idx n) {
  const bool wide = !Outer && n <= 2 * kMostNc;
  const idx most = wide ? kMostNc : kTileNc;
  return (n + most - 1) / most;
}

struct DotsTile {
  idx k;
  const float* a;
  idx lda;
  Columns b, add, c;
  float alpha, beta;
  idx i0, j0;  // where in C
};
template <int MI, int NJ>
static void dots_tile(const DotsTile& t) {
  F sum[NJ][4];
#pragma GCC unroll 8
  for (int j = 0; j < NJ; ++j)
#pragma GCC unroll 8
    for (int i = 0; i < 4; ++i) sum[j][i] = F(0.0f);
  const float *a = t.a + t.i0 * t.lda, *b[NJ];
  const idx lda = t.lda;
#pragma GCC unroll 8
  for (int j = 0; j < NJ; ++j) b[j] = t.b[t.j0 + j];
  for_lanes(t.k, [&](idx p, auto w) DNL_LAMBDA {
    F x[MI];
#pragma GCC unroll 8
    for (int i = 0; i < MI; ++i) x[i] = w.load(a + i * lda + p);
#pragma GCC unroll 8
    for (int j = 0; j < NJ; ++j) {
      const F y = w.load(b[j] + p);
#pragma GCC unroll 8
      for (int i = 0; i < MI; ++i) sum[j][i] = madd(x[i], y, sum[j][i]);
    }
  });
#pragma GCC unroll 8
  for (int j = 0; j < NJ; ++j) {
    float r[4];
    hsum4(sum[j][0], sum[j][1], sum[j][2], sum[j][3], r);
    float* c = t.c[t.j0 + j] + t.i0;
    const float* add = t.add.rows.wanted() ? t.add[t.j0 + j] + t.i0 : nullptr;
    for (int i = 0; i < MI; ++i) c[i] = t.alpha * r[i] + (add ? add[i] : 0.0f) + (t.beta != 0 ? t.beta * c[i] : 0.0f);
  }
}
// As many dot products as a vector has numbers, MI rows by the other factor of columns: adding up the lanes of each
// would take longer than short products themselves. alpha 1, beta 0 or 1; the numbers are those of dots_tile.
template <int MI, class V>
static void dots_at_once(const DotsTile& t) {
  constexpr int NJ = V::W / MI;
  V sum[V::W];
#pragma GCC unroll 16
  for (int i = 0; i < V::W; ++i) sum[i] = V(0.0f);
  const float *a = t.a + t.i0 * t.lda, *b[NJ];
  const idx lda = t.lda;
#pragma GCC unroll 4
  for (int j = 0; j < NJ; ++j) b[j] = t.b[t.j0 + j];
  for_lanes(t.k, [&](idx p, auto w) DNL_LAMBDA {
    V y[NJ];
#pragma GCC unroll 4
    for (int j = 0; j < NJ; ++j) y[j] = w.load(b[j] + p);
#pragma GCC unroll 16
    for (int i = 0; i < MI; ++i) {
      const V x = w.load(a + i * lda + p);
#pragma GCC unroll 4
      for (int j = 0; j < NJ; ++j) sum[j * MI + i] = madd(x, y[j], sum[j * MI + i]);
    }
  });
  const V zero(0.0f), r = hsum_each(sum);
#pragma GCC unroll 4
  for (int j = 0; j < NJ; ++j) {  // one after the other: columns of C may be the same
    float* c = t.c[t.j0 + j] + t.i0;
    const V add = t.add.rows.wanted() ? load_into(zero, t.add[t.j0 + j] + t.i0, j * MI, MI) : zero;
    store_from(c, r + add + (t.beta != 0 ? load_into(zero, c, j * MI, MI) : zero), j * MI, MI);
  }
}
// All columns of the first rows, as many as there are whole vectors of; how many that is.
template <class V>
DNL_INL idx dots_of_whole_vectors(DotsTile& t, idx m, idx n) {
  if constexpr (kSumsAtOnce) {
    constexpr idx kShort = 256;  // longer ones are made of as few columns of the left matrix at a time as may be
    if (t.k > kShort || t.alpha != 1 || (t.beta != 0 && t.beta != 1)) return 0;
    const auto rows = [&](void (*tile)(const DotsTile&), idx count) DNL_LAMBDA {
      const idx from = t.i0;
      for (; t.i0 < from + V::W; t.i0 += count) tile(t);
      t.i0 = from;
    };
    for (; t.i0 + V::W <= m; t.i0 += V::W) {
      t.j0 = 0;
      for (; t.j0 + 4 <= n; t.j0 += 4) rows(dots_at_once<V::W / 4, V>, V::W / 4);
      for (; t.j0 + 2 <= n; t.j0 += 2) rows(dots_at_once<V::W / 2, V>, V::W / 2);
      if (t.j0 < n) dots_at_once<V::W, V>(t);
    }
  }
  return t.i0;
}
template <int MI>
DNL_INL void dots_columns(DotsTile& t, idx n) {
  const idx tiles = (n + kTileDots - 1) / kTileDots;
  t.j0 = 0;
  for (idx q = 0; q < tiles; ++q) {  // nearly equal, as in all_tiles
    const idx j1 = n * (q + 1) / tiles;
    switch (j1 - t.j0) {
      case 1: dots_tile<MI, 1>(t); break;
      case 2: dots_tile<MI, 2>(t); break;
      case 3: dots_tile<MI, (kTileDots < 3 ? kTileDots : 3)>(t); break;
      case 4: dots_tile<MI, (kTileDots < 4 ? kTileDots : 4)>(t); break;
      case 5: dots_tile<MI, (kTileDots < 5 ? kTileDots : 5)>(t); break;
      default: dots_tile<MI, kTileDots>(t);
    }
    t.j0 = j1;
  }
}
constexpr idx kMostRest = F::W / 4;
static_assert(kMostRest <= 4, "the switch below ends at 4");
// Rows at the bottom of C that whole vectors leave over, so few that dot products take less than a vector that is
// nearly empty.
struct Rest {
  idx rows;        // at most kMostRest; 0: there are none
  const float* a;  // of the left matrix, each in one piece
  idx step;        // from one to the next
};
// How many of m rows are such.
DNL_INL idx rows_of_rest(idx m, idx n, idx k) {
  const idx rest = m % F::W;
  return rest <= kMostRest && m >= 3 * F::W && n >= 24 && k >= 32 ? rest : 0;
}
DNL_INL void rest_columns(const Rest& rest, DotsTile t, idx n) {
  t.a = rest.a;
  t.lda = rest.step;
  switch (rest.rows) {
    case 1: return dots_columns<1>(t, n);
    case 2: return dots_columns<2>(t, n);
    case 3: return dots_columns<3>(t, n);
    case 4: return dots_columns<4>(t, n);
  }
}

// A line of all columns that come next, one of them after the other for each tile, then of all rows, and then a line of
// some columns of the next C, as many as there are steps; m and n floats.
DNL_INL Meanwhile line_ahead(const ColsTile& t, idx line, idx a_at, idx m, idx n) {
  const idx at = line * kLine, after = at - m, last = after - n;
  if (at < m) return {t.a_list + t.k, a_at + at, t.ahead};
  if (after < n) return {t.b_list + t.k, after, t.ahead};
  const idx first = last / m * t.k, left = n - first;  // all lines of some columns, then of the next ones
  if (!t.c_list || left <= 0) return {nullptr, 0, 0};
  return {t.c_list + first, last % m, left < t.k ? left : t.k};
}

// After a tile that ends at column `end` of n and has so many rows, with so many left below: the columns beside it, or
// the first ones of the rows below. Written in place: what is put together elsewhere and copied waits for all stores of
// the tile before.
DNL_INL void set_next(ColsTile& t, idx end, idx n, idx widest, idx rows, idx left, bool first_to_read) {
  constexpr idx kShort = 192;  // longer columns of b the processor fetches by itself
  const bool beside = end < n;
  const idx columns = beside ? n - end : left > 0 ? n : 0;
  t.next.first = beside ? end : 0;
  t.next.columns = columns < widest ? columns : widest;
  t.next.rows = beside || rows < left ? rows : left;
  t.next.below = beside ? 0 : rows;
  t.next.read = beside && first_to_read && t.k <= kShort && t.b.rows.ptr;
}

// Rows and columns are cut into tiles of nearly equal size, so that no tile is a thin one. What a tile is told, and
// rows on their way to it, are never copied: a copy waits for the stores just before it, as long as a short product
// takes.
template <bool Outer>
static void all_tiles(idx m, idx n, ColsTile&& t) {
  constexpr idx W = F::W;
  if (m <= 0 || n <= 0) return;
  const idx vectors = (m + W - 1) / W, col_tiles = column_tiles<Outer>(n);
  const idx narrow = n / col_tiles, wide_tiles = n % col_tiles;  // these, the first, have a column more
  const idx widest = narrow + (wide_tiles > 0), most = most_vectors(static_cast<int>(widest));
  const idx row_tiles = (vectors + most - 1) / most;
  const idx a_from = t.a_at;
  const bool fetches = !Outer && t.k >= 32;  // a short tile is over before it is of use
  t.next.steps = t.k / (widest + 1);
  idx v0 = 0;
  for (idx rt = 0; rt < row_tiles; ++rt) {
    const idx v1 = vectors * (rt + 1) / row_tiles, rows = (v1 * W < m ? v1 * W : m) - v0 * W;
    const int mv = static_cast<int>(v1 - v0);
    t.last = rows - (mv - 1) * W;
    const Tail tail = tail_of(t.last);
    const ColsTileFn narrow_tile = cols_tile_for<Outer>(mv, static_cast<int>(narrow), tail);
    const ColsTileFn wide_tile = wide_tiles ? cols_tile_for<Outer>(mv, static_cast<int>(narrow) + 1, tail) : nullptr;
    t.j0 = 0;
    for (idx ct = 0; ct < col_tiles; ++ct) {
      const bool wide = ct < wide_tiles;
      const idx j1 = t.j0 + narrow + wide;
      if (fetches) set_next(t, j1, n, widest, rows, m - v1 * W, rt == 0);
      if (Outer) t.fetched = line_ahead(t, rt * col_tiles + ct, a_from, m, n);
      (wide ? wide_tile : narrow_tile)(t);
      t.j0 = j1;
    }
    if (!Outer) t.a += rows;
    t.a_at += rows;
    t.add.at += rows;
    t.c.at += rows;
    v0 = v1;
  }
}

DNL_INL void cols_product(idx m, idx n, idx k, float alpha, const float* a, idx lda, const Columns& b,
                          const Columns& add, float beta, const Columns& c) {
  all_tiles<false>(m, n, {k, a, lda, nullptr, nullptr, 0, b, add, c, alpha, beta, 0, 0, 0, nullptr});
}

// Rows from row j on.
DNL_INL Row rows_after(const Row& r, idx j) {
  Row s = r;
  if (r.ptr)
    s.ptr = r.ptr + j;
  else if (r.base)
    s.base = r.base + j * r.stride;
  return s;
}

// A panel of the left matrix, rows x depth, as columns kPanelRows apart: copied, or transposed.
constexpr idx kPanelRows = 64, kPanelDepth = 128;  // 32 KiB, which the first-level cache holds
DNL_INL void pack_panel(bool trans, idx rows, idx depth, const float* a, idx lda, float* panel) {
  if (trans) return transpose_strided(rows, depth, a, lda, panel, kPanelRows, false);
  for (idx p = 0; p < depth; ++p)
    for_lanes(rows, [&](idx i, auto w) DNL_LAMBDA { w.store(panel + p * kPanelRows + i, w.load(a + p * lda + i)); });
}

// By blocks of the right matrix that stay in the second-level cache while all panels of the left one pass.
static void gemm_blocked(bool trans, idx m, idx n, idx k, float alpha, const float* a, idx lda, const Row& b,
                         const Row& add, float beta, const Row& c, const Rest& rest) {
  constexpr idx kBlockCols = 480, kBlockDepth = 2 * kPanelDepth;
  alignas(64) float panel[kPanelRows * kPanelDepth];
  const Columns none = Row(nullptr, 0);
  for (idx j = 0; j < n; j += kBlockCols) {
    const idx cols = n - j < kBlockCols ? n - j : kBlockCols;
    const Columns right = rows_after(b, j), to = rows_after(c, j), more = rows_after(add, j);
    for (idx p0 = 0; p0 < k; p0 += kBlockDepth)
      for (idx i = 0; i < m; i += kPanelRows)
        for (idx p = p0; p < k && p < p0 + kBlockDepth; p += kPanelDepth) {
          const idx rows = m - i < kPanelRows ? m - i : kPanelRows, depth = k - p < kPanelDepth ? k - p : kPanelDepth;
          pack_panel(trans, rows, depth, trans ? a + i * lda + p : a + p * lda + i, lda, panel);
          cols_product(rows, cols, depth, alpha, panel, kPanelRows, right.from(p), p ? none : more.from(i),
                       p ? 1.0f : beta, to.from(i));
        }
    rest_columns(rest, {k, nullptr, 0, right, more.from(m), to.from(m), alpha, beta, 0, 0}, cols);
  }
}

// Is a panel of the left matrix, some rows of all columns, lost from the second-level cache before the next columns of
// B read it again? Columns some lines apart share few sets of that cache if their distance is a multiple of a large
// power of 2. Else the matrix is best read where it lies, however large it is. A copy takes the less of the time the
// more columns of B there are to read it, and the more the longer a panel is. Measured with a cache of 1024 sets of 16
// lines: an estimate for others.
DNL_INL bool panels_pay(idx n, idx k, idx lda) {
  constexpr idx kSets = 1024, kWays = 16, kLong = 768, kVeryLong = 1600, kFew = 56, kSome = 256, kMany = 480;
  const idx lines = lda / kLine,
            alike = lda % kLine ? 1 : lines & -lines;  // columns so many sets apart come back to the same ones
  const idx held = kSets / (alike < kSets ? alike : kSets) * kWays;
  if (n < (k < kLong ? kSome : kFew)) return false;
  return k > held || (n >= kMany && k >= (held < kVeryLong ? held : kVeryLong));
}

// The same in pieces: by panels, or with rows of the left matrix that are left over.
constexpr idx kRestDepth = 512;
static void gemm_cols_cut(idx m, idx n, idx k, float alpha, const float* a, idx lda, const Rows& b, const Rows& add,
                          float beta, const Rows& c, idx rows_left) {
  constexpr idx kRestCols = 96, kEight = 8;
  float last[kEight * kRestDepth];  // rows of the left matrix, each in one piece; some of them are the rest
  const Rest rest = {rows_left, last + (kEight - rows_left) * kRestDepth, kRestDepth};
  if (rest.rows) transpose_strided(k, kEight, a + m - kEight, lda, last, kRestDepth, false);
  m -= rest.rows;
  if (panels_pay(n, k, lda)) return gemm_blocked(false, m, n, k, alpha, a, lda, Row(b), Row(add), beta, Row(c), rest);
  for (idx j = 0; j < n; j += kRestCols) {
    const idx cols = n - j < kRestCols ? n - j : kRestCols;
    const Columns right = rows_after(Row(b), j), to = rows_after(Row(c), j), more = rows_after(Row(add), j);
    cols_product(m, cols, k, alpha, a, lda, right, more, beta, to);
    rest_columns(rest, {k, nullptr, 0, right, more.from(m), to.from(m), alpha, beta, 0, 0}, cols);
  }
}

static void gemm_cols(idx m, idx n, idx k, float alpha, const float* a, idx lda, const Rows& b, const Rows& add,
                      float beta, const Rows& c) {
  const idx rest = k <= kRestDepth ? rows_of_rest(m, n, k) : 0;
  if (rest || panels_pay(n, k, lda)) return gemm_cols_cut(m, n, k, alpha, a, lda, b, add, beta, c, rest);
  cols_product(m, n, k, alpha, a, lda, Row(b), Row(add), beta, Row(c));
}

// Rows at the bottom of a block of C that whole vectors leave over, where they had better be columns of its transpose:
// for each step of k these take `rest` times the vectors that hold a row, instead of a nearly empty vector for each of
// its numbers. A fifth must be spared, for the tiles are smaller, with steps enough to pay for adding them in the end:
// an estimate, not a search.
constexpr idx kMostTurned = F::W / 2, kOuterCols = 256;
DNL_INL idx rows_turned(idx rows, idx cols, idx k) {
  const idx rest = rows % F::W, vectors = (cols + F::W - 1) / F::W;
  return rest <= kMostTurned && k >= 24 && 5 * rest * vectors <= 4 * cols ? rest : 0;
}
// Adds what they came to: a column of `from` for each row of C.
DNL_INL void add_turned(idx rest, idx cols, const float* from, float beta, float* c, idx ldc) {
  for (idx j = 0; j < cols; ++j, c += ldc)
    for (idx i = 0; i < rest; ++i) c[i] = from[i * kOuterCols + j] + (beta != 0 ? beta * c[i] : 0.0f);
}

// C += y x^T, column by column; the m rows are V vectors, the last of which may begin inside the one before. It is read
// before that one is written, so what they share gets the same twice: a store of part of a vector takes longer.
template <int V>
static void add_rank_one(idx m, idx n, const float* y, const float* x, float* c, idx ldc) {
  constexpr int W = F::W;
  const idx last = m - W;
  for (idx j = 0; j < n; ++j, c += ldc) {
    const F s(x[j]), end = madd(s, load(y + last), load(c + last));
#pragma GCC unroll 8
    for (idx i = 0; i < (V - 1) * W; i += W) store(c + i, madd(s, load(y + i), load(c + i)));
    store(c + last, end);
  }
}
// Columns of less than a vector. Some at a time are read before any is written: see tile_store.
template <int NC>
DNL_INL void short_columns(idx m, F y, const float* x, float* c, idx ldc) {
  F sum[NC];
#pragma GCC unroll 16
  for (int j = 0; j < NC; ++j) sum[j] = madd(F(x[j]), y, load_n(c + j * ldc, m));
#pragma GCC unroll 16
  for (int j = 0; j < NC; ++j) store_n(c + j * ldc, sum[j], m);
}
static void short_rank_one(idx m, idx n, const float* y, const float* x, float* c, idx ldc) {
  constexpr int kMost = 12;
  const F all = load_n(y, m);
  idx j = 0;
  for (; j + kMost <= n; j += kMost) short_columns<kMost>(m, all, x + j, c + j * ldc, ldc);
  for (; j + 4 <= n; j += 4) short_columns<4>(m, all, x + j, c + j * ldc, ldc);
  for (; j < n; ++j) short_columns<1>(m, all, x + j, c + j * ldc, ldc);
}
static void rank_one(idx m, idx n, const float* y, const float* x, float* c, idx ldc) {
  constexpr void (*kOf[])(idx, idx, const float*, const float*, float*, idx) = {
      add_rank_one<1>, add_rank_one<2>, add_rank_one<3>, add_rank_one<4>,
      add_rank_one<5>, add_rank_one<6>, add_rank_one<7>, add_rank_one<8>};
  if (m < F::W) return short_rank_one(m, n, y, x, c, ldc);
  if (m <= 8 * F::W) return kOf[(m - 1) / F::W](m, n, y, x, c, ldc);
  for (idx j = 0; j < n; ++j) axpy(m, x[j], y, c + j * ldc);
}

static void gemm_outer(idx m, idx n, idx k, float alpha, const Rows& a_rows, const Rows& b_rows, float beta, float* c,
                       idx ldc, const NextOuter& next) {
  constexpr idx kDepth = 80;            // panels of both sides by so many columns stay in the first-level cache
  constexpr idx kRows = 512;            // a block of C, by kOuterCols, in the second-level cache
  constexpr idx kWorthFetching = 4096;  // floats of C: there is enough to do meanwhile
  const Row a = a_rows, b = b_rows, next_a = next.a, next_b = next.b, none(nullptr, 0);
  if (k == 1 && alpha == 1 && beta == 1) return rank_one(m, n, a[0], b[0], c, ldc);
  const idx next_few = next.k < kDepth ? next.k : kDepth;
  float* next_c[kOuterCols];
  const bool next_block = next.c && m <= kRows && n <= kOuterCols;
  for (idx j = 0; next_block && j < n; ++j) next_c[j] = next.c + j * ldc;
  float *a_list[2 * kDepth], *b_list[2 * kDepth];  // of these columns and of the next
  float* turned_list[kDepth];                      // of these columns, from the rows on that are turned
  float turned[kMostTurned * kOuterCols];
  for (idx i = 0; i < m; i += kRows)
    for (idx j = 0; j < n; j += kOuterCols) {
      const idx rows = m - i < kRows ? m - i : kRows, cols = n - j < kOuterCols ? n - j : kOuterCols;
      const idx rest = rows_turned(rows, cols, k), most = rows - rest;
      const Row block(c + j * ldc + i, ldc), turned_block(turned, kOuterCols);
      for (idx p = 0; p < k; p += kDepth) {
        const idx depth = k - p < kDepth ? k - p : kDepth, both = k - p < 2 * kDepth ? k - p : 2 * kDepth;
        if (p) {  // the next ones are these now
          for (idx q = 0; q < depth; ++q) a_list[q] = a_list[kDepth + q];
          for (idx q = 0; q < depth; ++q) b_list[q] = b_list[kDepth + q];
        }
        for (idx q = p ? depth : 0; q < both; ++q) a_list[q] = a[p + q];
        for (idx q = p ? depth : 0; q < both; ++q) b_list[q] = b[p + q] + j;
        idx ahead = both - depth;
        const bool worth = most * cols >= kWorthFetching, ends = k - p <= kDepth && j + cols == n;
        if (ends) {  // now those of the next call
          for (; ahead < next_few; ++ahead) {
            a_list[depth + ahead] = next_a[ahead];
            b_list[depth + ahead] = next_b[ahead];
          }
        }
        all_tiles<true>(most, cols,
                        {depth, nullptr, 0, a_list, b_list, i, none, none, block, alpha, p ? 1.0f : beta, 0, 0,
                         worth ? ahead : 0, worth && ends && next_block ? next_c : nullptr});
        if (!rest) continue;
        for (idx q = 0; q < depth; ++q) turned_list[q] = a_list[q] + i + most;
        all_tiles<true>(cols, rest,
                        {depth, nullptr, 0, b_list, turned_list, 0, none, none, turned_block, alpha, p ? 1.0f : 0.0f, 0,
                         0, 0, nullptr});
      }
      if (rest) add_turned(rest, cols, turned, beta, c + j * ldc + i + most, ldc);
    }
}

static void gemm_dots(idx m, idx n, idx k, float alpha, const float* a, idx lda, const Rows& b, const Rows& add,
                      float beta, const Rows& c) {
  DotsTile t = {k, a, lda, Row(b), Row(add), Row(c), alpha, beta, 0, 0};
  // Where transposing costs less than adding up the lanes of each dot product.
  if (n >= 4 && 8 * n >= (k < 256 ? k : 256) && m >= F::W) {
    const idx rest = rows_of_rest(m, n, k);
    m -= rest;
    return gemm_blocked(true, m, n, k, alpha, a, lda, Row(b), Row(add), beta, Row(c), {rest, a + m * lda, lda});
  }
  t.i0 = dots_of_whole_vectors<F>(t, m, n);
  for (; t.i0 + 4 <= m; t.i0 += 4) dots_columns<4>(t, n);
  for (; t.i0 < m; ++t.i0) dots_columns<1>(t, n);
}
