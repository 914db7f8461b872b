// The gate passes of the LSTM. Part of isa_body.h: included there alone. Contracts stand in kernels.h.

// Whether an operand is there is settled once a call, not once a number: fn(yes_or_no{}) with a compile-time truth.
struct Yes { static constexpr bool value = true; };
struct No { static constexpr bool value = false; };
template <class Fn> DNL_INL void settle(bool b, Fn fn) {
  if (b) fn(Yes{});
  else fn(No{});
}

static void lstm_fwd(idx k, idx h, float forget_bias, Rows gates_rows, Rows c_prev_rows, Rows c_rows, Rows h_rows) {
  const Row gates = gates_rows, c_prev = c_prev_rows, c_out = c_rows, h_out = h_rows;
  settle(c_prev.wanted(), [&](auto has_prev) DNL_LAMBDA {
    for (idx m = 0; m < k; ++m) {
      float *ai = gates[m], *af = ai + h, *ao = af + h, *ag = ao + h, *c = c_out[m], *y = h_out[m];
      const float* cp = has_prev.value ? c_prev[m] : nullptr;
      for_lanes(h, [&](idx j, auto w) DNL_LAMBDA {
        const F i = vsigmoid(w.load(ai + j)), o = vsigmoid(w.load(ao + j)), g = vtanh(w.load(ag + j));
        const F f = vsigmoid(w.load(af + j) + F(forget_bias));
        F s = i * g;
        if (has_prev.value) s = madd(f, w.load(cp + j), s);
        w.store(ai + j, i);
        w.store(af + j, f);
        w.store(ao + j, o);
        w.store(ag + j, g);
        w.store(c + j, s);
        w.store(y + j, o * vtanh(s));
      });
    }
  });
}

static void lstm_bwd(idx k, idx h, Rows gates_rows, Rows c_prev_rows, Rows c_rows, Rows dh_rows, Rows dc_rows,
                     Rows da_rows, bool acc_a, Rows dc_prev_rows, bool acc_c) {
  const Row gates = gates_rows, c_prev = c_prev_rows, cell = c_rows, dh = dh_rows, dc = dc_rows, da = da_rows,
            dc_prev = dc_prev_rows;
  const bool has_prev = c_prev.wanted(), has_dh = dh.wanted(), has_dc = dc.wanted(), want_dcp = dc_prev.wanted();
  for (idx m = 0; m < k; ++m) {
    const float *gi = gates[m], *gf = gi + h, *go = gf + h, *gg = go + h, *c = cell[m];
    const float *cp = has_prev ? c_prev[m] : nullptr, *dy = has_dh ? dh[m] : nullptr, *ds = has_dc ? dc[m] : nullptr;
    float *di = da[m], *df = di + h, *do_ = df + h, *dg = do_ + h, *dcp = want_dcp ? dc_prev[m] : nullptr;
    for_lanes(h, [&](idx j, auto w) DNL_LAMBDA {
      const F one = F(1.0f), zero = F(0.0f);
      const F i = w.load(gi + j), f = w.load(gf + j), o = w.load(go + j), g = w.load(gg + j);
      const F t = vtanh(w.load(c + j));
      const F dyj = has_dh ? w.load(dy + j) : zero;
      const F s = madd(dyj * o, one - t * t, has_dc ? w.load(ds + j) : zero);
      const F ri = s * g * i * (one - i), ro = dyj * t * o * (one - o), rg = s * i * (one - g * g);
      const F rf = has_prev ? s * w.load(cp + j) * f * (one - f) : zero;
      w.store(di + j, acc_a ? w.load(di + j) + ri : ri);
      w.store(df + j, acc_a ? w.load(df + j) + rf : rf);
      w.store(do_ + j, acc_a ? w.load(do_ + j) + ro : ro);
      w.store(dg + j, acc_a ? w.load(dg + j) + rg : rg);
      if (want_dcp) w.store(dcp + j, acc_c ? madd(s, f, w.load(dcp + j)) : s * f);
    });
  }
}
