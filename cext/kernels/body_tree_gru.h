// The gate passes of the GRU and of tree LSTMs. Part of isa_body.h: included there alone. Contracts stand in kernels.h.

static void gru_zr_fwd(idx k, idx h, Rows zr_rows, Rows h_prev_rows, Rows rh_rows) {
  const Row zr = zr_rows, h_prev = h_prev_rows, rh = rh_rows;
  for (idx m = 0; m < k; ++m) {
    float *z = zr[m], *r = z + h, *out = rh[m];
    const float* hp = h_prev[m];
    for_lanes(h, [&](idx j, auto w) DNL_LAMBDA {
      const F rj = vgate(w.load(r + j));
      w.store(z + j, vgate(w.load(z + j)));
      w.store(r + j, rj);
      w.store(out + j, rj * w.load(hp + j));
    });
  }
}
static void gru_out_fwd(idx k, idx h, Rows zr_rows, Rows h_prev_rows, Rows cand_rows, Rows h_rows) {
  const Row zr = zr_rows, h_prev = h_prev_rows, cand = cand_rows, h_out = h_rows;
  for (idx m = 0; m < k; ++m) {
    float *c = cand[m], *y = h_out[m];
    const float *z = zr[m], *hp = h_prev[m];
    for_lanes(h, [&](idx j, auto w) DNL_LAMBDA {
      const F cj = vtanh(w.load(c + j)), zj = w.load(z + j), p = w.load(hp + j);
      w.store(c + j, cj);
      w.store(y + j, madd(zj, cj, (F(1.0f) - zj) * p));
    });
  }
}
static void gru_out_bwd(idx k, idx h, Rows zr_rows, Rows h_prev_rows, Rows cand_rows, Rows dh_rows, Rows dcand_rows,
                        Rows dzr_rows, Rows dh_prev_rows, bool acc) {
  const Row zr = zr_rows, h_prev = h_prev_rows, cand = cand_rows, dh = dh_rows, dcand = dcand_rows, dzr = dzr_rows,
            dh_prev = dh_prev_rows;
  const bool want = dh_prev.wanted();
  for (idx m = 0; m < k; ++m) {
    const float *z = zr[m], *hp = h_prev[m], *c = cand[m], *dy = dh[m];
    float *dc = dcand[m], *dz = dzr[m], *dhp = want ? dh_prev[m] : nullptr;
    for_lanes(h, [&](idx j, auto w) DNL_LAMBDA {
      const F one = F(1.0f), zj = w.load(z + j), cj = w.load(c + j), d = w.load(dy + j), p = w.load(hp + j);
      w.store(dc + j, d * zj * (one - cj * cj));
      w.store(dz + j, d * (cj - p) * zj * (one - zj));
      const F direct = d * (one - zj);
      if (want) w.store(dhp + j, acc ? w.load(dhp + j) + direct : direct);
    });
  }
}
static void gru_zr_bwd(idx k, idx h, Rows zr_rows, Rows h_prev_rows, Rows drh_rows, Rows dzr_rows, Rows dh_prev_rows) {
  const Row zr = zr_rows, h_prev = h_prev_rows, drh = drh_rows, dzr = dzr_rows, dh_prev = dh_prev_rows;
  const bool want = dh_prev.wanted();
  for (idx m = 0; m < k; ++m) {
    const float *r = zr[m] + h, *hp = h_prev[m], *d = drh[m];
    float *dr = dzr[m] + h, *dhp = want ? dh_prev[m] : nullptr;
    for_lanes(h, [&](idx j, auto w) DNL_LAMBDA {
      const F rj = w.load(r + j), dj = w.load(d + j);
      w.store(dr + j, dj * w.load(hp + j) * rj * (F(1.0f) - rj));
      if (want) w.store(dhp + j, madd(rj, dj, w.load(dhp + j)));
    });
  }
}

// ---- tree LSTM: one forget gate a child -----------------------------------------------------------------------------

static void tree_lstm_fwd(idx k, idx h, int n_children, Rows iog_rows, const Rows* f_rows, const Rows* c_child_rows,
                          float forget_bias, Rows c_rows, Rows h_rows) {
  const Row iog = iog_rows, c_out = c_rows, h_out = h_rows;
  for (idx m = 0; m < k; ++m) {
    float *ai = iog[m], *ao = ai + h, *ag = ao + h, *c = c_out[m], *y = h_out[m];
    for_lanes(h, [&](idx j, auto w) DNL_LAMBDA {
      const F i = vgate(w.load(ai + j)), g = vtanh(w.load(ag + j));
      w.store(ai + j, i);
      w.store(ag + j, g);
      w.store(c + j, i * g);
    });
    for (int child = 0; child < n_children; ++child) {
      float* f = Row(f_rows[child])[m];
      const float* cc = Row(c_child_rows[child])[m];
      for_lanes(h, [&](idx j, auto w) DNL_LAMBDA {
        const F fj = vgate(w.load(f + j) + F(forget_bias));
        w.store(f + j, fj);
        w.store(c + j, madd(fj, w.load(cc + j), w.load(c + j)));
      });
    }
    for_lanes(h, [&](idx j, auto w) DNL_LAMBDA {
      const F o = vgate(w.load(ao + j));
      w.store(ao + j, o);
      w.store(y + j, o * vtanh(w.load(c + j)));
    });
  }
}
// What reaches the cell, s = dc + dh o (1 - tanh(c)^2), is worked out once into the place of i's gradient and turned
// into that gradient last.
static void tree_lstm_bwd(idx k, idx h, int n_children, Rows iog_rows, const Rows* f_rows, const Rows* c_child_rows,
                          Rows c_rows, Rows dh_rows, Rows dc_rows, Rows diog_rows, const Rows* df_rows,
                          const Rows* dc_child_rows, const bool* acc_child) {
  const Row iog = iog_rows, cell = c_rows, dh = dh_rows, dc = dc_rows, diog = diog_rows;
  const bool has_dh = dh.wanted(), has_dc = dc.wanted();
  for (idx m = 0; m < k; ++m) {
    const float *gi = iog[m], *go = gi + h, *gg = go + h, *c = cell[m];
    const float *dy = has_dh ? dh[m] : nullptr, *ds = has_dc ? dc[m] : nullptr;
    float *di = diog[m], *do_ = di + h, *dg = do_ + h;
    for_lanes(h, [&](idx j, auto w) DNL_LAMBDA {
      const F one = F(1.0f), zero = F(0.0f);
      const F i = w.load(gi + j), o = w.load(go + j), g = w.load(gg + j), t = vtanh(w.load(c + j));
      const F d = has_dh ? w.load(dy + j) : zero;
      const F s = madd(d * o, one - t * t, has_dc ? w.load(ds + j) : zero);
      w.store(do_ + j, d * t * o * (one - o));
      w.store(dg + j, s * i * (one - g * g));
      w.store(di + j, s);
    });
    for (int child = 0; child < n_children; ++child) {
      const Row d_child = dc_child_rows[child];
      const float *f = Row(f_rows[child])[m], *cc = Row(c_child_rows[child])[m];
      float *df = Row(df_rows[child])[m], *dcc = d_child.wanted() ? d_child[m] : nullptr;
      const bool acc = acc_child[child];
      for_lanes(h, [&](idx j, auto w) DNL_LAMBDA {
        const F s = w.load(di + j), fj = w.load(f + j);
        w.store(df + j, s * w.load(cc + j) * fj * (F(1.0f) - fj));
        if (dcc) w.store(dcc + j, acc ? madd(s, fj, w.load(dcc + j)) : s * fj);
      });
    }
    for_lanes(h, [&](idx j, auto w) DNL_LAMBDA {
      const F i = w.load(gi + j);
      w.store(di + j, w.load(di + j) * w.load(gg + j) * i * (F(1.0f) - i));
    });
  }
}
