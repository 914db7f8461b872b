// Random numbers and optimizer rules. Part of isa_body.h: included there alone. Contracts stand in kernels.h and
// updates.h.

// 32 random bits for place i: two rounds of a mixing bijection (multipliers by Wellons' search for low bias) with two
// keys from the seed. A function of (seed, i) alone.
struct Random {
  I key0, key1;
  explicit Random(std::uint64_t seed) : key0(0), key1(0) {
    std::uint64_t z = seed + 0x9E3779B97F4A7C15ull;  // splitmix64: near seeds give far keys
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    z ^= z >> 31;
    key0 = I(static_cast<int>(z & 0xFFFFFFFFu));
    key1 = I(static_cast<int>(z >> 32));
  }
  DNL_INL_MEMBER static I mix(I x) {
    x = (x ^ shr<16>(x)) * I(0x21f0aaad);
    x = (x ^ shr<15>(x)) * I(static_cast<int>(0xd35a2d97u));
    return x ^ shr<15>(x);
  }
  DNL_INL_MEMBER I at(idx i) const {
    const I low = I(static_cast<int>(static_cast<std::uint32_t>(i))) + iota();
    const I high = I(static_cast<int>(static_cast<std::uint64_t>(i) >> 32));
    return mix(mix(low + key0) ^ key1 ^ high);
  }
  // In [0, 1), a multiple of 2^-24.
  DNL_INL_MEMBER F unit(idx i) const { return to_float(shr<8>(at(i))) * F(5.9604644775390625e-8f); }
};

static void random_uniform(idx n, std::uint64_t seed, float lo, float hi, float* y) {
  const Random r(seed);
  const float below = nextafterf(hi, lo);  // rounding of lo + u (hi - lo) must not reach hi
  for_lanes(n, [&](idx i, auto w) DNL_LAMBDA {
    const F v = madd(r.unit(i), F(hi - lo), F(lo));
    w.store(y + i, lo < hi ? vmin(v, F(below)) : v);
  });
}
// The normal quantile: sign from one bit, the tail's probability from the others; sqrt(2) erfinv by Giles' polynomials
// (Approximating the erfinv function, 2010), whose argument log((1-x)(1+x)) is formed from the tail and keeps its
// digits.
static void random_normal(idx n, std::uint64_t seed, float mean, float std, float* y) {
  const Random r(seed);
  for_lanes(n, [&](idx i, auto w) DNL_LAMBDA {
    const I b = r.at(i);
    const F tail =
        (to_float(shr<8>(b & I(0x7FFFFFFF))) * F(256.0f) + to_float(b & I(0xFF)) + F(0.5f)) * F(4.656612873e-10f);
    const F t = vmin(tail, F(1.0f)), x = F(1.0f) - t;
    const F q = -vlog(t * (F(2.0f) - t));
    const F a = q - F(2.5f), c = vsqrt(vmax(q, F(0.0f))) - F(3.0f);
    F p = madd(a, F(2.81022636e-08f), F(3.43273939e-07f));
    p = madd(p, a, F(-3.5233877e-06f));
    p = madd(p, a, F(-4.39150654e-06f));
    p = madd(p, a, F(0.00021858087f));
    p = madd(p, a, F(-0.00125372503f));
    p = madd(p, a, F(-0.00417768164f));
    p = madd(p, a, F(0.246640727f));
    p = madd(p, a, F(1.50140941f));
    F s = madd(c, F(-0.000200214257f), F(0.000100950558f));
    s = madd(s, c, F(0.00134934322f));
    s = madd(s, c, F(-0.00367342844f));
    s = madd(s, c, F(0.00573950773f));
    s = madd(s, c, F(-0.0076224613f));
    s = madd(s, c, F(0.00943887047f));
    s = madd(s, c, F(1.00167406f));
    s = madd(s, c, F(2.83297682f));
    const F z = select(q < F(5.0f), p, s) * x * F(1.41421356237309505f);
    w.store(y + i, madd(from_bits(bits(z) ^ (b & I(static_cast<int>(0x80000000u)))), F(std), F(mean)));
  });
}
static void random_mask(idx n, std::uint64_t seed, float keep, float value, float* y) {
  const Random r(seed);
  for_lanes(n, [&](idx i, auto w) DNL_LAMBDA { w.store(y + i, select(r.unit(i) < F(keep), F(value), F(0.0f))); });
}

// ---- optimizer rules ------------------------------------------------------------------------------------------------

// w_new(i, lanes, w, g) for all numbers, then decay and the cleared gradient.
template <class Fn>
DNL_INL void update_each(const UpdateArgs& u, Fn rule) {
  float *wp = u.w, *gp = u.g;
  const F scale_g = F(u.gscale), keep = F(1.0f - u.wdecay);
  if (u.y) {
    for (idx at = 0; at < u.n; at += u.rows) {
      const F x = F(u.x[at / u.rows]);
      for_lanes(u.rows, [&](idx i, auto w) DNL_LAMBDA {
        w.store(wp + at + i, rule(at + i, w, w.load(wp + at + i), scale_g * (x * w.load(u.y + i))) * keep);
      });
    }
    return;
  }
  for_lanes(u.n, [&](idx i, auto w) DNL_LAMBDA {
    const F fresh = rule(i, w, w.load(wp + i), scale_g * w.load(gp + i));
    w.store(wp + i, fresh * keep);
    w.store(gp + i, F(0.0f));
  });
}
static void update_sgd(const UpdateArgs& u) {
  const F lr = F(u.c[0]);
  update_each(u, [&](idx, auto, F x, F g) DNL_LAMBDA { return nmadd(lr, g, x); });
}
static void update_momentum(const UpdateArgs& u) {
  const F lr = F(u.c[0]), mom = F(u.c[1]);
  float* s0 = u.s0;
  update_each(u, [&](idx i, auto w, F x, F g) DNL_LAMBDA {
    const F v = nmadd(lr, g, mom * w.load(s0 + i));
    w.store(s0 + i, v);
    return x + v;
  });
}
static void update_adagrad(const UpdateArgs& u) {
  const F lr = F(u.c[0]), eps = F(u.c[1]);
  float* s0 = u.s0;
  update_each(u, [&](idx i, auto w, F x, F g) DNL_LAMBDA {
    const F s = madd(g, g, w.load(s0 + i));
    w.store(s0 + i, s);
    const F root = vsqrt(s + eps);
    return select(g == F(0.0f), x, x - lr * g / root);  // 0 / 0 before the first gradient when eps is 0
  });
}
static void update_adadelta(const UpdateArgs& u) {
  const F lr = F(u.c[0]), eps = F(u.c[1]), rho = F(u.c[2]), rest = F(1.0f - u.c[2]);
  float *s0 = u.s0, *s1 = u.s1;
  update_each(u, [&](idx i, auto w, F x, F g) DNL_LAMBDA {
    const F a = madd(rho, w.load(s0 + i), rest * g * g);
    const F d = w.load(s1 + i);
    const F step = -g * vsqrt((d + eps) / (a + eps));
    w.store(s0 + i, a);
    w.store(s1 + i, madd(rho, d, rest * step * step));
    return madd(lr, step, x);
  });
}
static void update_rmsprop(const UpdateArgs& u) {
  const F lr = F(u.c[0]), eps = F(u.c[1]), rho = F(u.c[2]), rest = F(1.0f - u.c[2]);
  float* s0 = u.s0;
  update_each(u, [&](idx i, auto w, F x, F g) DNL_LAMBDA {
    const F a = madd(rho, w.load(s0 + i), rest * g * g);
    w.store(s0 + i, a);
    return x - lr * g / vsqrt(a + eps);
  });
}
template <bool Ams>
DNL_INL void adam_rule(const UpdateArgs& u) {
  const F b1 = F(u.c[1]), r1 = F(1.0f - u.c[1]), b2 = F(u.c[2]), r2 = F(1.0f - u.c[2]), eps = F(u.c[3]);
  const F lr = F(static_cast<float>(u.c[0] * sqrt(static_cast<double>(u.c[5])) / u.c[4]));
  float *s0 = u.s0, *s1 = u.s1, *s2 = u.s2;
  update_each(u, [&](idx i, auto w, F x, F g) DNL_LAMBDA {
    const F m = madd(b1, w.load(s0 + i), r1 * g);
    F v = madd(b2, w.load(s1 + i), r2 * g * g);
    w.store(s0 + i, m);
    w.store(s1 + i, v);
    if (Ams) {
      v = vmax(w.load(s2 + i), v);
      w.store(s2 + i, v);
    }
    return x - lr * m / (vsqrt(v) + eps);
  });
}
static void update_adam(const UpdateArgs& u) { adam_rule<false>(u); }
static void update_amsgrad(const UpdateArgs& u) { adam_rule<true>(u); }
static void update_eg(const UpdateArgs& u) {
  const F lr = F(u.c[0]), mom = F(u.c[1]);
  float *s0 = u.s0, *wp = u.w, *gp = u.g;
  for_lanes(u.n, [&](idx i, auto w) DNL_LAMBDA {
    const F v = nmadd(lr, F(u.gscale) * w.load(gp + i), mom * w.load(s0 + i));
    w.store(s0 + i, v);
    w.store(wp + i, vlog(w.load(wp + i)) + v);
    w.store(gp + i, F(0.0f));
  });
  softmax(u.n, wp, wp);
  if (u.wdecay != 0) scale(u.n, 1.0f - u.wdecay, wp);
}
