// Softmax and its family, layer norm. Part of isa_body.h: included there alone. Contracts stand in kernels.h.

// What a row's largest number says about it.
//   usual: a finite largest number m; all below works with x - m
//   -inf: all entries are -inf (or there are none); +inf: some are, and they share the mass; NaN: everything is NaN
DNL_INL bool usual(float m) { return m > -kInf && m < kInf; }

DNL_INL double sum_exp(idx n, const float* x, float m) {
  return block_sum(n, [&](idx i, auto w) DNL_LAMBDA { return vexp(w.load(x + i) - F(m)); });
}
static idx count_inf(idx n, const float* x) {
  idx k = 0;
  for (idx i = 0; i < n; ++i) k += x[i] == kInf;
  return k;
}

static float logsumexp(idx n, const float* x) {
  const float m = max(n, x);
  return usual(m) ? static_cast<float>(m + log(sum_exp(n, x, m))) : m;
}
// A piece of a long row, relative to the largest number of a piece before it, for which nobody need look for its own;
// unless some number is so far above that one that probabilities would lose digits: then false, and nothing has
// happened.
constexpr idx kPiece = 128;
constexpr float kFarAbove = 1e18f;
DNL_INL bool exp_piece(const float* x, float* y, float shift, double* sum) {
  F e[kPiece / F::W], s[2] = {F(0.0f), F(0.0f)};
#pragma GCC unroll 8
  for (idx v = 0; v < kPiece / F::W; ++v) {
    e[v] = exp_of<false>(load(x + v * F::W) - F(shift));
    s[v % 2] = s[v % 2] + e[v];
  }
  const float more = hsum(s[0] + s[1]);
  if (!(more >= 0 && more < kFarAbove)) return false;
#pragma GCC unroll 8
  for (idx v = 0; v < kPiece / F::W; ++v) store(y + v * F::W, e[v]);
  *sum += more;
  return true;
}
static void exp_below(idx n, const float* x, float* y, float* largest, double* sum) {
  if (n == kPiece && *sum > 0 && usual(*largest) && exp_piece(x, y, *largest, sum)) return;
  const float m = max(n, x);
  if (!(m <= *largest) && *largest == *largest) {
    if (*sum > 0) *sum *= exp(static_cast<double>(*largest) - m);
    *largest = m;
  }
  const float shift = *largest;
  if (usual(shift)) {
    *sum += block_sum(n, [&](idx i, auto w) DNL_LAMBDA {
      const F e = vexp(w.load(x + i) - F(shift));
      w.store(y + i, e);
      return e;
    });
    return;
  }
  if (shift == kInf) *sum += static_cast<double>(count_inf(n, x));
  for (idx i = 0; i < n; ++i) y[i] = shift != shift ? shift : x[i] == kInf ? 1.0f : 0.0f;
}
// A row that fits into one vector (tags, labels) never leaves the registers.
DNL_INL bool softmax_short(idx n, const float* x, float* y, bool logarithm) {
  const Part w = part(n);
  const F v = w.load(x);
  const M fine = vabs(v) <= F(3.4028235e38f);
  if (mask_bits(fine) != mask_bits(F(0.0f) == F(0.0f))) return false;
  const F d = v - F(hmax(w.only(v, -kInf))), e = vexp(vmin(d, F(0.0f)));
  const float s = hsum(w.only(e));
  w.store(y, logarithm ? d - F(logf(s)) : e / F(s));
  return true;
}
static void softmax(idx n, const float* x, float* y) {
  if (n > 0 && n < F::W && softmax_short(n, x, y, false)) return;
  float largest = -kInf;
  double s = 0;
  exp_below(n, x, y, &largest, &s);
  if (s > 0) scale(n, static_cast<float>(1.0 / s), y);
}
static void softmax_bwd(idx n, const float* y, const float* dy, float* dx, bool acc) {
  const float s = dot(n, y, dy);
  if (acc)
    for_lanes(n, [&](idx i, auto w)
                     DNL_LAMBDA { w.store(dx + i, madd(w.load(y + i), w.load(dy + i) - F(s), w.load(dx + i))); });
  else
    for_lanes(n, [&](idx i, auto w) DNL_LAMBDA { w.store(dx + i, w.load(y + i) * (w.load(dy + i) - F(s))); });
}
static void log_softmax(idx n, const float* x, float* y) {
  if (n > 0 && n < F::W && softmax_short(n, x, y, true)) return;
  const float m = max(n, x);
  if (!usual(m)) {
    const float share = m > 0 ? -logf(static_cast<float>(count_inf(n, x))) : 0.0f;
    for (idx i = 0; i < n; ++i) y[i] = m != m ? m : x[i] == kInf ? share : -kInf;
    return;
  }
  // x - m is exact where it matters; x - (m + log s) would lose digits for large m.
  const float log_s = static_cast<float>(log(sum_exp(n, x, m)));
  for_lanes(n, [&](idx i, auto w) DNL_LAMBDA { w.store(y + i, (w.load(x + i) - F(m)) - F(log_s)); });
}
static void log_softmax_bwd(idx n, const float* y, const float* dy, float* dx, bool acc) {
  const float s = sum(n, dy);
  if (acc)
    for_lanes(n, [&](idx i, auto w) DNL_LAMBDA {
      w.store(dx + i, w.load(dx + i) + nmadd(vexp(w.load(y + i)), F(s), w.load(dy + i)));
    });
  else
    for_lanes(n, [&](idx i, auto w) DNL_LAMBDA { w.store(dx + i, nmadd(vexp(w.load(y + i)), F(s), w.load(dy + i))); });
}
static void exp_shifted(idx n, const float* x, float lse, float d, float* dx, bool acc) {
  const auto term = [&](F v) DNL_LAMBDA {
    const F e = select(v == F(lse), F(1.0f), vexp(v - F(lse)));  // the first also for inf - inf
    return F(d) * select(v == F(-kInf), F(0.0f), e);
  };
  if (acc)
    for_lanes(n, [&](idx i, auto w) DNL_LAMBDA { w.store(dx + i, w.load(dx + i) + term(w.load(x + i))); });
  else
    for_lanes(n, [&](idx i, auto w) DNL_LAMBDA { w.store(dx + i, term(w.load(x + i))); });
}

// ---- layer norm ---------------------------------------------------------------------------------------------------

static void layer_norm(idx n, const float* x, const float* g, const float* b, float* y, float* stats) {
  if (n == 0) return;
  // The second look makes the mean of equal numbers exactly that number, so that their variance is exactly 0.
  const float first = static_cast<float>(block_sum(n, [&](idx i, auto w) DNL_LAMBDA { return w.load(x + i); }) / n);
  const double rest = block_sum(n, [&](idx i, auto w) DNL_LAMBDA { return w.load(x + i) - F(first); }) / n;
  const float mean = static_cast<float>(first + rest);
  const double var = block_sum(n,
                               [&](idx i, auto w) DNL_LAMBDA {
                                 const F d = w.load(x + i) - F(mean);
                                 return d * d;
                               }) /
                     n;
  const float rstd = var > 0 ? static_cast<float>(1.0 / sqrt(var)) : var == 0 ? 0.0f : kNan;
  stats[0] = mean;
  stats[1] = rstd;
  for_lanes(n, [&](idx i, auto w) DNL_LAMBDA {
    w.store(y + i, madd(w.load(g + i), (w.load(x + i) - F(mean)) * F(rstd), w.load(b + i)));
  });
}
static void layer_norm_bwd(idx n, const float* x, const float* g, const float* stats, const float* dy, float* dx,
                           bool acc, float* dg, float* db) {
  if (n == 0) return;
  const F mean = F(stats[0]), rstd = F(stats[1]);
  const auto normal = [&](idx i, auto w) DNL_LAMBDA { return (w.load(x + i) - mean) * rstd; };
  if (db) add(n, dy, db);
  if (dg)
    for_lanes(n,
              [&](idx i, auto w) DNL_LAMBDA { w.store(dg + i, madd(w.load(dy + i), normal(i, w), w.load(dg + i))); });
  if (!dx) return;
  const float m1 =
      static_cast<float>(block_sum(n, [&](idx i, auto w) DNL_LAMBDA { return w.load(dy + i) * w.load(g + i); }) / n);
  const float m2 = static_cast<float>(
      block_sum(n, [&](idx i, auto w) DNL_LAMBDA { return w.load(dy + i) * w.load(g + i) * normal(i, w); }) / n);
  for_lanes(n, [&](idx i, auto w) DNL_LAMBDA {
    const F d = rstd * (w.load(dy + i) * w.load(g + i) - F(m1) - normal(i, w) * F(m2));
    w.store(dx + i, acc ? w.load(dx + i) + d : d);
  });
}
