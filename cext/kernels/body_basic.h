// Moving, adding and reducing. Part of isa_body.h: included there alone. Contracts stand in kernels.h.

static void fill(idx n, float v, float* y) {
  for_lanes(n, [&](idx i, auto w) DNL_LAMBDA { w.store(y + i, F(v)); });
}
static void add(idx n, const float* x, float* y) {
  for_lanes(n, [&](idx i, auto w) DNL_LAMBDA { w.store(y + i, w.load(y + i) + w.load(x + i)); });
}
static void axpy(idx n, float a, const float* x, float* y) {
  for_lanes(n, [&](idx i, auto w) DNL_LAMBDA { w.store(y + i, madd(F(a), w.load(x + i), w.load(y + i))); });
}
static void scale(idx n, float a, float* x) {
  for_lanes(n, [&](idx i, auto w) DNL_LAMBDA { w.store(x + i, F(a) * w.load(x + i)); });
}
static void scale_to(idx n, float a, const float* x, float* y, bool acc) {
  if (acc) return axpy(n, a, x, y);
  for_lanes(n, [&](idx i, auto w) DNL_LAMBDA { w.store(y + i, F(a) * w.load(x + i)); });
}

DNL_INL void copy_lanes(idx n, const float* x, float* y) {
  for_lanes(n, [&](idx i, auto w) DNL_LAMBDA { w.store(y + i, w.load(x + i)); });
}
static void copy_rows(idx k, idx n, Rows from_rows, Rows to_rows) {
  const Row from = from_rows, to = to_rows;
  if (k > 0 && from.packed(n) && to.packed(n)) {
    memmove(to.base, from.base, static_cast<size_t>(k * n) * sizeof(float));
    return;
  }
  for (idx m = 0; m < k; ++m) copy_lanes(n, from[m], to[m]);
}
static void add_rows(idx k, idx n, Rows from_rows, Rows to_rows) {
  const Row from = from_rows, to = to_rows;
  if (from.packed(n) && to.packed(n)) return add(k * n, from.base, to.base);
  for (idx m = 0; m < k; ++m) add(n, from[m], to[m]);
}
// Four rows at a time, so that y is read and written a quarter as often.
static void sum_rows(idx k, idx n, Rows from_rows, float* y, bool acc) {
  const Row from = from_rows;
  idx m = 0;
  if (!acc) {
    if (k == 0) return fill(n, 0.0f, y);
    copy_lanes(n, from[0], y);
    m = 1;
  }
  for (; m + 4 <= k; m += 4) {
    const float *a = from[m], *b = from[m + 1], *c = from[m + 2], *d = from[m + 3];
    for_lanes(n, [&](idx i, auto w) DNL_LAMBDA {
      w.store(y + i, w.load(y + i) + ((w.load(a + i) + w.load(b + i)) + (w.load(c + i) + w.load(d + i))));
    });
  }
  for (; m < k; ++m) add(n, from[m], y);
}

// Columns of all rows, some vectors wide, so that their sums stay in registers.
template <int V, class Lanes>
DNL_INL void scale_columns(idx k, Row x, idx at, const float* a, float* y, idx step, float* sums, Lanes w) {
  F sum[V];
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) sum[v] = F(0.0f);
  for (idx m = 0; m < k; ++m, y += step) {
    const F scale = F(a[m]);
    const float* row = x[m] + at;
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      const F one = scale * w.load(row + v * F::W);
      w.store(y + at + v * F::W, one);
      sum[v] = sum[v] + one;
    }
  }
  if (!sums) return;
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) w.store(sums + at + v * F::W, w.load(sums + at + v * F::W) + sum[v]);
}
static void scale_rows(idx k, idx n, Rows x_rows, const float* a, float* y, idx step, float* sums) {
  constexpr idx kWide = kTileMv1 * F::W;
  const Row x = x_rows;
  idx i = 0;
  for (; i + kWide <= n; i += kWide) scale_columns<kTileMv1>(k, x, i, a, y, step, sums, whole());
  for (; i + F::W <= n; i += F::W) scale_columns<1>(k, x, i, a, y, step, sums, whole());
  if (i < n) scale_columns<1>(k, x, i, a, y, step, sums, part(n - i));
}

// to[j * to_step + i] (+)= from[i * from_step + j] for i < rows, j < cols, in blocks that registers hold.
static void transpose_strided(idx rows, idx cols, const float* from, idx from_step, float* to, idx to_step, bool acc) {
  constexpr idx kSide = kTransposed;
  for (idx i0 = 0; i0 < rows; i0 += kSide)
    for (idx j0 = 0; j0 < cols; j0 += kSide) {
      const float* x = from + i0 * from_step + j0;
      float* y = to + j0 * to_step + i0;
      const idx ni = rows - i0 < kSide ? rows - i0 : kSide, nj = cols - j0 < kSide ? cols - j0 : kSide;
      if (acc) {
        for (idx j = 0; j < nj; ++j)
          for (idx i = 0; i < ni; ++i) y[j * to_step + i] += x[i * from_step + j];
      } else if (ni == kSide && nj == kSide) {
        transpose_block(x, from_step, y, to_step);
      } else {
        transpose_part(static_cast<int>(ni), static_cast<int>(nj), x, from_step, y, to_step);
      }
    }
}
static void transpose(idx m, idx n, const float* x__nm, float* y__mn, bool acc) {
  transpose_strided(n, m, x__nm, m, y__mn, n, acc);
}

// ---- reductions ---------------------------------------------------------------------------------------------------

// The sum of term(i, lanes) over i, each a vector: four running sums within a block, double over blocks.
template <class Fn>
DNL_INL double block_sum(idx n, Fn term) {
  double total = 0;
  for (idx from = 0; from < n; from += kBlock) {
    const idx end = n - from < kBlock ? n : from + kBlock;
    F a = F(0.0f), b = a, c = a, d = a;
    idx i = from;
    for (; i + 4 * F::W <= end; i += 4 * F::W) {
      a = a + term(i, whole());
      b = b + term(i + F::W, whole());
      c = c + term(i + 2 * F::W, whole());
      d = d + term(i + 3 * F::W, whole());
    }
    for (; i + F::W <= end; i += F::W) a = a + term(i, whole());
    if (i < end) b = b + part(end - i).only(term(i, part(end - i)));
    total += hsum((a + b) + (c + d));
  }
  return total;
}
static float sum(idx n, const float* x) {
  return static_cast<float>(block_sum(n, [&](idx i, auto w) DNL_LAMBDA { return w.load(x + i); }));
}
static float dot(idx n, const float* x, const float* y) {
  return static_cast<float>(block_sum(n, [&](idx i, auto w) DNL_LAMBDA { return w.load(x + i) * w.load(y + i); }));
}
// Squares of huge or tiny floats leave the range of floats: then once more in double.
static double sum_squares(idx n, const float* x) {
  const double s = block_sum(n, [&](idx i, auto w) DNL_LAMBDA {
    const F v = w.load(x + i);
    return v * v;
  });
  if (s > 1e-30 && s < 1e37) return s;
  double t = 0;
  for (idx i = 0; i < n; ++i) t += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return t;
}

// The largest number; NaN if any is NaN, -inf if there is none.
static float max(idx n, const float* x) {
  F m = F(-kInf), nans = F(0.0f);
  for_lanes(n, [&](idx i, auto w) DNL_LAMBDA {
    const F v = w.only(w.load(x + i), -kInf);
    m = vmax(v, m);  // m where v is NaN
    nans = select(v == v, nans, F(1.0f));
  });
  return hmax(nans) > 0 ? kNan : hmax(m);
}
// The first place that holds v (or a NaN, when v is NaN); -1 if none does.
static idx find(idx n, const float* x, float v) {
  for (idx i = 0; i < n; i += F::W) {
    const idx left = n - i < F::W ? n - i : F::W;
    const F t = left == F::W ? load(x + i) : load_n(x + i, left);
    unsigned hit = mask_bits(v == v ? t == F(v) : t != t);
    if (left < F::W) hit &= (1u << left) - 1u;
    if (hit) return i + __builtin_ctz(hit);
  }
  return -1;
}
static idx argmax(idx n, const float* x) { return find(n, x, max(n, x)); }

static bool all_finite(idx n, const float* x) {
  // A running product with 0 is NaN from the first number that is not finite.
  F zero = F(0.0f);
  for_lanes(n, [&](idx i, auto w) DNL_LAMBDA { zero = zero + F(0.0f) * w.load(x + i); });
  return mask_bits(zero == zero) == mask_bits(F(0.0f) == F(0.0f));
}
