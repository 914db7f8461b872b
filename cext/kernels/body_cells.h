// The gate passes of the LSTM. Part of isa_body.h: included there alone. Contracts stand in kernels.h.

// One vector's worth of an LSTM: gates become activations, s the cell.
DNL_INL void lstm_unit(F& i, F& f, F& o, F& g, F& s, F forget_bias, F prev, F& y) {
  i = vgate(i);
  f = vgate(f + forget_bias);
  o = vgate(o);
  g = vtanh(g);
  s = madd(f, prev, i * g);
  y = o * vtanh(s);
}

// The last h mod W units of several rows, side by side in one vector: at h = 50 and 16 lanes each row would else spend
// a whole vector on two units.
DNL_INL void lstm_tails(idx rows, idx tail, float forget_bias, const Row& gates, const Row& c_prev, bool has_prev,
                        const Row& c_out, const Row& h_out, idx m0, idx h, idx from) {
  F gate[4] = {F(0.0f), F(0.0f), F(0.0f), F(0.0f)}, prev = F(0.0f), s, y;
  for (idx r = 0; r < rows; ++r) {
    const float* a = gates[m0 + r] + from;
    for (int q = 0; q < 4; ++q) gate[q] = load_into(gate[q], a + q * h, r * tail, tail);
    if (has_prev) prev = load_into(prev, c_prev[m0 + r] + from, r * tail, tail);
  }
  lstm_unit(gate[0], gate[1], gate[2], gate[3], s, F(forget_bias), prev, y);
  for (idx r = 0; r < rows; ++r) {
    float* a = gates[m0 + r] + from;
    for (int q = 0; q < 4; ++q) store_from(a + q * h, gate[q], r * tail, tail);
    store_from(c_out[m0 + r] + from, s, r * tail, tail);
    store_from(h_out[m0 + r] + from, y, r * tail, tail);
  }
}

static void lstm_fwd(idx k, idx h, float forget_bias, Rows gates_rows, Rows c_prev_rows, Rows c_rows, Rows h_rows) {
  const Row gates = gates_rows, c_prev = c_prev_rows, c_out = c_rows, h_out = h_rows;
  const bool has_prev = c_prev.wanted();
  const idx tail = h % F::W;
  // Rows whose tails share a vector. (A cell's rows are distinct, so their order means nothing.)
  const idx group = tail ? F::W / tail : 1;
  const bool gather = group > 1 && k > 1;
  for (idx m = 0; m < k; ++m) {
    float *ai = gates[m], *af = ai + h, *ao = af + h, *ag = ao + h, *c = c_out[m], *y = h_out[m];
    const float* cp = has_prev ? c_prev[m] : nullptr;
    for_lanes(gather ? h - tail : h, [&](idx j, auto w) DNL_LAMBDA {
      F i = w.load(ai + j), f = w.load(af + j), o = w.load(ao + j), g = w.load(ag + j), s, z;
      lstm_unit(i, f, o, g, s, F(forget_bias), has_prev ? w.load(cp + j) : F(0.0f), z);
      w.store(ai + j, i);
      w.store(af + j, f);
      w.store(ao + j, o);
      w.store(ag + j, g);
      w.store(c + j, s);
      w.store(y + j, z);
    });
    if (gather && ((m + 1) % group == 0 || m + 1 == k)) {
      const idx m0 = m / group * group;
      lstm_tails(m + 1 - m0, tail, forget_bias, gates, c_prev, has_prev, c_out, h_out, m0, h, h - tail);
    }
  }
}

static void lstm_bwd(idx k, idx h, Rows gates_rows, Rows c_prev_rows, Rows c_rows, Rows dh_rows, Rows dc_rows,
                     Rows da_rows, bool acc_a, Rows dc_prev_rows, bool acc_c) {
  const Row gates = gates_rows, c_prev = c_prev_rows, cell = c_rows, dh = dh_rows, dc = dc_rows, da = da_rows,
            dc_prev = dc_prev_rows;
  const bool has_prev = c_prev.wanted(), has_dh = dh.wanted(), has_dc = dc.wanted(), want_dcp = dc_prev.wanted();
  constexpr idx kAhead = 3;  // what forward wrote long ago is far away by now
  for (idx m = 0; m < k; ++m) {
    if (m + kAhead < k) {
      fetch(gates[m + kAhead], 4 * h);
      fetch(cell[m + kAhead], h);
      if (has_prev) fetch(c_prev[m + kAhead], h);
      fetch_to_write(da[m + kAhead], 4 * h);
    }
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
