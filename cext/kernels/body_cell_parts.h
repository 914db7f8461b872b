// Parts of cells. Part of isa_body.h: included there alone. Contracts stand in kernels.h.

// *at, or what it gets added, becomes v.
template <class Lanes>
DNL_INL void put_lanes(Lanes w, float* at, F v, bool acc) {
  w.store(at, acc ? w.load(at) + v : v);
}

static void lstm_gates(idx k, idx h, float forget_bias, Rows x_rows, Rows y_rows) {
  const Row x = x_rows, y = y_rows;
  for (idx m = 0; m < k; ++m) {
    const float* a = x[m];
    float* to = y[m];
    for_lanes(h, [&](idx j, auto w) DNL_LAMBDA {
      const F i = vgate(w.load(a + j)), f = vgate(w.load(a + h + j) + F(forget_bias));
      const F o = vgate(w.load(a + 2 * h + j)), g = vtanh(w.load(a + 3 * h + j));
      w.store(to + j, i);
      w.store(to + h + j, f);
      w.store(to + 2 * h + j, o);
      w.store(to + 3 * h + j, g);
    });
  }
}
static void lstm_gates_bwd(idx k, idx h, Rows y_rows, Rows dy_rows, Rows dx_rows, bool acc) {
  const Row y = y_rows, dy = dy_rows, dx = dx_rows;
  for (idx m = 0; m < k; ++m) {
    const float *gate = y[m], *d = dy[m];
    float* to = dx[m];
    for_lanes(3 * h, [&](idx j, auto w) DNL_LAMBDA {
      const F v = w.load(gate + j);
      put_lanes(w, to + j, w.load(d + j) * v * (F(1.0f) - v), acc);
    });
    for_lanes(h, [&](idx j, auto w) DNL_LAMBDA {
      const F v = w.load(gate + 3 * h + j);
      put_lanes(w, to + 3 * h + j, w.load(d + 3 * h + j) * (F(1.0f) - v * v), acc);
    });
  }
}

static void lstm_cell(idx k, idx h, Rows gates_rows, Rows c_prev_rows, Rows c_rows) {
  const Row gates = gates_rows, c_prev = c_prev_rows, c = c_rows;
  for (idx m = 0; m < k; ++m) {
    const float *i = gates[m], *p = c_prev[m];
    float* y = c[m];
    for_lanes(h, [&](idx j, auto w) DNL_LAMBDA {
      w.store(y + j, madd(w.load(i + h + j), w.load(p + j), w.load(i + j) * w.load(i + 3 * h + j)));
    });
  }
}
static void lstm_cell_bwd(idx k, idx h, Rows gates_rows, Rows c_prev_rows, Rows dc_rows, Rows dgates_rows, bool acc_g,
                          Rows dc_prev_rows, bool acc_c) {
  const Row gates = gates_rows, c_prev = c_prev_rows, dc = dc_rows, dgates = dgates_rows, dc_prev = dc_prev_rows;
  const bool wants_gates = dgates.wanted(), wants_prev = dc_prev.wanted();
  for (idx m = 0; m < k; ++m) {
    const float *i = gates[m], *p = c_prev[m], *dy = dc[m];
    float *d = wants_gates ? dgates[m] : nullptr, *dp = wants_prev ? dc_prev[m] : nullptr;
    for_lanes(h, [&](idx j, auto w) DNL_LAMBDA {
      const F s = w.load(dy + j);
      if (d) {
        put_lanes(w, d + j, s * w.load(i + 3 * h + j), acc_g);
        put_lanes(w, d + h + j, s * w.load(p + j), acc_g);
        if (!acc_g) w.store(d + 2 * h + j, F(0.0f));
        put_lanes(w, d + 3 * h + j, s * w.load(i + j), acc_g);
      }
      if (dp) put_lanes(w, dp + j, s * w.load(i + h + j), acc_c);
    });
  }
}

static void lstm_output(idx k, idx h, Rows gates_rows, Rows c_rows, Rows y_rows) {
  const Row gates = gates_rows, c = c_rows, y = y_rows;
  for (idx m = 0; m < k; ++m) {
    const float *o = gates[m] + 2 * h, *cell = c[m];
    float* to = y[m];
    for_lanes(h, [&](idx j, auto w) DNL_LAMBDA { w.store(to + j, w.load(o + j) * vtanh(w.load(cell + j))); });
  }
}
static void lstm_output_bwd(idx k, idx h, Rows gates_rows, Rows c_rows, Rows dy_rows, Rows dgates_rows, bool acc_g,
                            Rows dc_rows, bool acc_c) {
  const Row gates = gates_rows, c = c_rows, dy = dy_rows, dgates = dgates_rows, dc = dc_rows;
  const bool wants_gates = dgates.wanted(), wants_cell = dc.wanted();
  for (idx m = 0; m < k; ++m) {
    const float *o = gates[m] + 2 * h, *cell = c[m], *dh = dy[m];
    float *d = wants_gates ? dgates[m] : nullptr, *dcell = wants_cell ? dc[m] : nullptr;
    for_lanes(h, [&](idx j, auto w) DNL_LAMBDA {
      const F t = vtanh(w.load(cell + j)), s = w.load(dh + j);
      if (dcell) put_lanes(w, dcell + j, s * w.load(o + j) * (F(1.0f) - t * t), acc_c);
      if (!d) return;
      put_lanes(w, d + 2 * h + j, s * t, acc_g);
      if (acc_g) return;
      w.store(d + j, F(0.0f));
      w.store(d + h + j, F(0.0f));
      w.store(d + 3 * h + j, F(0.0f));
    });
  }
}

static void gru_start(idx k, idx h, Rows proj_rows, Rows za_rows, Rows y_rows) {
  const Row proj = proj_rows, za = za_rows, y = y_rows;
  for (idx m = 0; m < k; ++m) {
    const float* x = proj[m];
    float *z = za[m], *to = y[m];
    for_lanes(h, [&](idx j, auto w) DNL_LAMBDA {
      const F zj = vgate(w.load(x + j)), a = vtanh(w.load(x + 2 * h + j));
      w.store(z + j, zj);
      w.store(z + h + j, a);
      w.store(to + j, zj * a);
    });
  }
}
static void gru_start_bwd(idx k, idx h, Rows za_rows, Rows dy_rows, Rows dproj_rows, bool acc) {
  const Row za = za_rows, dy = dy_rows, dproj = dproj_rows;
  for (idx m = 0; m < k; ++m) {
    const float *z = za[m], *d = dy[m];
    float* to = dproj[m];
    for_lanes(h, [&](idx j, auto w) DNL_LAMBDA {
      const F one = F(1.0f), zj = w.load(z + j), a = w.load(z + h + j), s = w.load(d + j);
      put_lanes(w, to + j, s * a * zj * (one - zj), acc);
      if (!acc) w.store(to + h + j, F(0.0f));
      put_lanes(w, to + 2 * h + j, s * zj * (one - a * a), acc);
    });
  }
}

static void coupled_cell(idx k, idx h, Rows gates_rows, Rows c_prev_rows, Rows c_rows) {
  const Row gates = gates_rows, c_prev = c_prev_rows, c = c_rows;
  const bool has_prev = c_prev.wanted();
  for (idx m = 0; m < k; ++m) {
    float *gate = gates[m], *y = c[m];
    const float* p = has_prev ? c_prev[m] : nullptr;
    for_lanes(h, [&](idx j, auto w) DNL_LAMBDA {
      const F i = vgate(w.load(gate + j)), g = vtanh(w.load(gate + 2 * h + j));
      w.store(gate + j, i);
      w.store(gate + 2 * h + j, g);
      w.store(y + j, p ? madd(i, g, (F(1.0f) - i) * w.load(p + j)) : i * g);
    });
  }
}
static void coupled_output(idx k, idx h, Rows gates_rows, Rows c_rows, Rows y_rows) {
  const Row gates = gates_rows, c = c_rows, y = y_rows;
  for (idx m = 0; m < k; ++m) {
    float *gate = gates[m] + h, *to = y[m];
    const float* cell = c[m];
    for_lanes(h, [&](idx j, auto w) DNL_LAMBDA {
      const F o = vgate(w.load(gate + j));
      w.store(gate + j, o);
      w.store(to + j, o * vtanh(w.load(cell + j)));
    });
  }
}
static void coupled_output_bwd(idx k, idx h, Rows gates_rows, Rows c_rows, Rows dy_rows, Rows dc_rows, Rows da_rows,
                               Rows total_rows) {
  const Row gates = gates_rows, c = c_rows, dy = dy_rows, dc = dc_rows, da = da_rows, total = total_rows;
  for (idx m = 0; m < k; ++m) {
    const float *gate = gates[m] + h, *cell = c[m], *dh = dy[m], *ds = dc[m];
    float *to = da[m] + h, *sum = total[m];
    for_lanes(h, [&](idx j, auto w) DNL_LAMBDA {
      const F one = F(1.0f), o = w.load(gate + j), t = vtanh(w.load(cell + j)), d = w.load(dh + j);
      w.store(sum + j, madd(d * o, one - t * t, w.load(ds + j)));
      w.store(to + j, d * t * o * (one - o));
    });
  }
}
static void coupled_cell_bwd(idx k, idx h, Rows gates_rows, Rows c_prev_rows, Rows total_rows, Rows da_rows,
                             Rows dc_prev_rows, bool acc) {
  const Row gates = gates_rows, c_prev = c_prev_rows, total = total_rows, da = da_rows, dc_prev = dc_prev_rows;
  const bool has_prev = c_prev.wanted(), wants_prev = dc_prev.wanted();
  for (idx m = 0; m < k; ++m) {
    const float *gate = gates[m], *d = total[m], *p = has_prev ? c_prev[m] : nullptr;
    float *to = da[m], *dp = wants_prev ? dc_prev[m] : nullptr;
    for_lanes(h, [&](idx j, auto w) DNL_LAMBDA {
      const F one = F(1.0f), i = w.load(gate + j), g = w.load(gate + 2 * h + j), s = w.load(d + j);
      const F before = p ? w.load(p + j) : F(0.0f);
      if (dp) put_lanes(w, dp + j, s * (one - i), acc);
      w.store(to + j, s * (g - before) * i * (one - i));
      w.store(to + 2 * h + j, s * i * (one - g * g));
    });
  }
}
