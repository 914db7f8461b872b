// Recurrent cells: forward and backward written out in double, over hidden sizes, layouts, absent operands, acc.
#include "check.h"

namespace check {
namespace {

using Layout = Block::Layout;
struct Case {
  idx k, h;
  Layout layout;
  unsigned flags;  // which operands are there, which gradients add
  bool flag(int i) const { return flags >> i & 1; }
};

void randomise(Block& b, Numbers& numbers) {
  for (idx m = 0; m < b.k; ++m)
    for (idx i = 0; i < b.n; ++i) b.at(m, i) = numbers.uniform(-2, 2);
}
Rows maybe(bool there, const Block& b) { return there ? b.rows : Rows{}; }
// `was`: what an adding output held before.
void same(Block& got, const std::vector<double>& want, const std::string& what, double was = 0) {
  for (idx m = 0; m < got.k; ++m)
    for (idx i = 0; i < got.n; ++i) expect_near(got.at(m, i), want[m * got.n + i] + was, 1e-5, 3e-6, what);
  got.buffer.guarded(what);
}
std::string name(const Kernels& k, const char* what, const Case& c) {
  return std::string(k.isa) + " " + what + " k=" + std::to_string(c.k) + " h=" + std::to_string(c.h) + " layout " +
         std::to_string(c.layout) + " flags " + std::to_string(c.flags);
}

void lstm(const Kernels& kernel, const Case& c) {
  const idx k = c.k, h = c.h;
  const bool has_prev = c.flag(0), has_dh = c.flag(1), has_dc = c.flag(2), acc_a = c.flag(3), acc_c = c.flag(4);
  const bool want_dcp = has_prev && !c.flag(5);
  const std::string where = name(kernel, "lstm", c);
  Numbers numbers;
  Block a(k, 4 * h, c.layout), cp(k, h, c.layout), cell(k, h, c.layout), y(k, h, c.layout), dh(k, h, c.layout),
      dc(k, h, c.layout), da(k, 4 * h, c.layout, 0.5f), dcp(k, h, c.layout, 0.5f);
  for (Block* b : {&a, &cp, &dh, &dc}) randomise(*b, numbers);
  std::vector<double> act(k * 4 * h), wc(k * h), wy(k * h), wda(k * 4 * h), wdcp(k * h);
  for (idx m = 0; m < k; ++m)
    for (idx j = 0; j < h; ++j) {
      const double i = sigmoid(a.at(m, j)), f = sigmoid(a.at(m, h + j) + 1.0), o = sigmoid(a.at(m, 2 * h + j));
      const double g = std::tanh(double(a.at(m, 3 * h + j))), p = has_prev ? cp.at(m, j) : 0;
      const double s = f * p + i * g, t = std::tanh(s);
      const double d = has_dh ? dh.at(m, j) : 0, ds = (has_dc ? dc.at(m, j) : 0) + d * o * (1 - t * t);
      double* pa = &act[m * 4 * h + j];
      pa[0] = i, pa[h] = f, pa[2 * h] = o, pa[3 * h] = g;
      wc[m * h + j] = s;
      wy[m * h + j] = o * t;
      double* pd = &wda[m * 4 * h + j];
      pd[0] = ds * g * i * (1 - i), pd[h] = ds * p * f * (1 - f), pd[2 * h] = d * t * o * (1 - o),
      pd[3 * h] = ds * i * (1 - g * g);
      wdcp[m * h + j] = ds * f;
    }
  kernel.lstm_fwd(k, h, 1.0f, a.rows, maybe(has_prev, cp), cell.rows, y.rows);
  same(a, act, where + " gates");
  same(cell, wc, where + " c");
  same(y, wy, where + " h");
  kernel.lstm_bwd(k, h, a.rows, maybe(has_prev, cp), cell.rows, maybe(has_dh, dh), maybe(has_dc, dc), da.rows, acc_a,
                  maybe(want_dcp, dcp), acc_c);
  same(da, wda, where + " da", acc_a ? 0.5 : 0);
  if (want_dcp)
    same(dcp, wdcp, where + " dc_prev", acc_c ? 0.5 : 0);
  else
    same(dcp, std::vector<double>(k * h, 0.5), where + " unwanted dc_prev");
  if (acc_a) return;
  kernel.lstm_bwd(k, h, a.rows, maybe(has_prev, cp), cell.rows, maybe(has_dh, dh), maybe(has_dc, dc), a.rows, false,
                  Rows{}, false);
  same(a, wda, where + " da over the gates");
}

void gru(const Kernels& kernel, const Case& c) {
  const idx k = c.k, h = c.h;
  const bool want = c.flag(0), acc = c.flag(1);
  const std::string where = name(kernel, "gru", c);
  Numbers numbers;
  Block zr(k, 2 * h, c.layout), hp(k, h, c.layout), rh(k, h, c.layout), cand(k, h, c.layout), y(k, h, c.layout),
      dh(k, h, c.layout), dcand(k, h, c.layout), dzr(k, 2 * h, c.layout), drh(k, h, c.layout),
      dhp(k, h, c.layout, 0.5f);
  for (Block* b : {&zr, &hp, &cand, &dh, &drh}) randomise(*b, numbers);
  std::vector<double> wzr(k * 2 * h), wrh(k * h), wcand(k * h), wy(k * h), wdcand(k * h), wdzr(k * 2 * h), wdhp(k * h);
  for (idx m = 0; m < k; ++m)
    for (idx j = 0; j < h; ++j) {
      const double z = sigmoid(zr.at(m, j)), r = sigmoid(zr.at(m, h + j)), p = hp.at(m, j),
                   g = std::tanh(double(cand.at(m, j)));
      const double d = dh.at(m, j), e = drh.at(m, j);
      const idx at = m * h + j, at2 = m * 2 * h + j;
      wzr[at2] = z, wzr[at2 + h] = r, wrh[at] = r * p, wcand[at] = g, wy[at] = (1 - z) * p + z * g;
      wdcand[at] = d * z * (1 - g * g);
      wdzr[at2] = d * (g - p) * z * (1 - z);
      wdzr[at2 + h] = e * p * r * (1 - r);
      wdhp[at] = d * (1 - z) + r * e + (acc ? 0.5 : 0);
    }
  kernel.gru_zr_fwd(k, h, zr.rows, hp.rows, rh.rows);
  same(zr, wzr, where + " zr");
  same(rh, wrh, where + " r h");
  kernel.gru_out_fwd(k, h, zr.rows, hp.rows, cand.rows, y.rows);
  same(cand, wcand, where + " candidate");
  same(y, wy, where + " h");
  kernel.gru_out_bwd(k, h, zr.rows, hp.rows, cand.rows, dh.rows, dcand.rows, dzr.rows, maybe(want, dhp), acc);
  kernel.gru_zr_bwd(k, h, zr.rows, hp.rows, drh.rows, dzr.rows, maybe(want, dhp));
  same(dcand, wdcand, where + " dcandidate");
  same(dzr, wdzr, where + " dzr");
  if (want) same(dhp, wdhp, where + " dh_prev");
}

// Parts of an LSTM: its gates, its cell, its output.
void lstm_parts(const Kernels& kernel, const Case& c) {
  const idx k = c.k, h = c.h, n = k * h;
  const bool want = !c.flag(0), acc = c.flag(1);
  const double before = acc ? 0.5 : 0, bias = 0.75;
  const std::string where = name(kernel, "parts of an LSTM", c);
  Numbers numbers;
  Block x(k, 4 * h, c.layout), gates(k, 4 * h, c.layout), prev(k, h, c.layout), cell(k, h, c.layout), y(k, h, c.layout),
      d(k, h, c.layout), d4(k, 4 * h, c.layout), dx(k, 4 * h, c.layout, 0.5f), dcell_gates(k, 4 * h, c.layout, 0.5f),
      dout_gates(k, 4 * h, c.layout, 0.5f), dprev(k, h, c.layout, 0.5f), dcell(k, h, c.layout, 0.5f);
  for (Block* b : {&x, &prev, &d, &d4}) randomise(*b, numbers);
  std::vector<double> wgates(4 * n), wc(n), wy(n), wdx(4 * n), wcell_gates(4 * n), wout_gates(4 * n), wprev(n),
      wcell(n);
  for (idx m = 0; m < k; ++m)
    for (idx j = 0; j < h; ++j) {
      const idx at = m * h + j, at4 = m * 4 * h + j;
      const double i = sigmoid(x.at(m, j)), f = sigmoid(x.at(m, h + j) + bias), o = sigmoid(x.at(m, 2 * h + j)),
                   g = std::tanh(double(x.at(m, 3 * h + j))), p = prev.at(m, j), s = d.at(m, j);
      const double gate[4] = {i, f, o, g};
      for (int q = 0; q < 4; ++q) {
        const double v = gate[q], slope = q == 3 ? 1 - v * v : v * (1 - v);
        wgates[at4 + q * h] = v;
        wdx[at4 + q * h] = before + d4.at(m, q * h + j) * slope;
        wcell_gates[at4 + q * h] = before + (q == 0 ? s * g : q == 1 ? s * p : q == 3 ? s * i : 0);
      }
      wc[at] = f * p + i * g;
      const double t = std::tanh(wc[at]);
      wy[at] = o * t;
      for (int q = 0; q < 4; ++q) wout_gates[at4 + q * h] = before + (q == 2 ? s * t : 0);
      wprev[at] = before + s * f;
      wcell[at] = before + s * o * (1 - t * t);
    }
  kernel.lstm_gates(k, h, static_cast<float>(bias), x.rows, gates.rows);
  same(gates, wgates, where + " gates");
  kernel.lstm_cell(k, h, gates.rows, prev.rows, cell.rows);
  same(cell, wc, where + " c");
  kernel.lstm_output(k, h, gates.rows, cell.rows, y.rows);
  same(y, wy, where + " h");
  kernel.lstm_gates_bwd(k, h, gates.rows, d4.rows, dx.rows, acc);
  same(dx, wdx, where + " dx");
  kernel.lstm_cell_bwd(k, h, gates.rows, prev.rows, d.rows, dcell_gates.rows, acc, maybe(want, dprev), acc);
  same(dcell_gates, wcell_gates, where + " dgates of c");
  kernel.lstm_output_bwd(k, h, gates.rows, cell.rows, d.rows, dout_gates.rows, acc, maybe(want, dcell), acc);
  same(dout_gates, wout_gates, where + " dgates of h");
  if (!want) wprev = wcell = std::vector<double>(n, 0.5);
  same(dprev, wprev, where + " dc_prev");
  same(dcell, wcell, where + " dc");
}

void gru_start(const Kernels& kernel, const Case& c) {
  const idx k = c.k, h = c.h;
  const bool acc = c.flag(0);
  const double before = acc ? 0.5 : 0;
  const std::string where = name(kernel, "GRU from zero", c);
  Numbers numbers;
  Block x(k, 3 * h, c.layout), za(k, 2 * h, c.layout), y(k, h, c.layout), d(k, h, c.layout),
      dx(k, 3 * h, c.layout, 0.5f);
  for (Block* b : {&x, &d}) randomise(*b, numbers);
  std::vector<double> wza(k * 2 * h), wy(k * h), wdx(k * 3 * h);
  for (idx m = 0; m < k; ++m)
    for (idx j = 0; j < h; ++j) {
      const double z = sigmoid(x.at(m, j)), a = std::tanh(double(x.at(m, 2 * h + j))), s = d.at(m, j);
      const idx at2 = m * 2 * h + j, at3 = m * 3 * h + j;
      wza[at2] = z, wza[at2 + h] = a, wy[m * h + j] = z * a;
      wdx[at3] = before + s * a * z * (1 - z);
      wdx[at3 + h] = before;
      wdx[at3 + 2 * h] = before + s * z * (1 - a * a);
    }
  kernel.gru_start(k, h, x.rows, za.rows, y.rows);
  same(za, wza, where + " za");
  same(y, wy, where + " h");
  kernel.gru_start_bwd(k, h, za.rows, d.rows, dx.rows, acc);
  same(dx, wdx, where + " dproj");
}

void coupled(const Kernels& kernel, const Case& c) {
  const idx k = c.k, h = c.h;
  const bool has_prev = c.flag(0), want = has_prev && !c.flag(1), acc = c.flag(2);
  const std::string where = name(kernel, "coupled LSTM", c);
  Numbers numbers;
  Block gates(k, 3 * h, c.layout), prev(k, h, c.layout), cell(k, h, c.layout), y(k, h, c.layout), dy(k, h, c.layout),
      dc(k, h, c.layout), da(k, 3 * h, c.layout), total(k, h, c.layout), dprev(k, h, c.layout, 0.5f);
  for (Block* b : {&gates, &prev, &dy, &dc}) randomise(*b, numbers);
  std::vector<double> wgates(k * 3 * h), wc(k * h), wy(k * h), wda(k * 3 * h), wtotal(k * h), wprev(k * h);
  for (idx m = 0; m < k; ++m)
    for (idx j = 0; j < h; ++j) {
      const double i = sigmoid(gates.at(m, j)), o = sigmoid(gates.at(m, h + j)),
                   g = std::tanh(double(gates.at(m, 2 * h + j))), p = has_prev ? prev.at(m, j) : 0;
      const idx at = m * h + j, at3 = m * 3 * h + j;
      wgates[at3] = i, wgates[at3 + h] = o, wgates[at3 + 2 * h] = g;
      wc[at] = (1 - i) * p + i * g;
      const double t = std::tanh(wc[at]), d = dy.at(m, j), s = dc.at(m, j) + d * o * (1 - t * t);
      wy[at] = o * t;
      wtotal[at] = s;
      wda[at3] = s * (g - p) * i * (1 - i), wda[at3 + h] = d * t * o * (1 - o), wda[at3 + 2 * h] = s * i * (1 - g * g);
      wprev[at] = want ? (acc ? 0.5 : 0) + s * (1 - i) : 0.5;
    }
  kernel.coupled_cell(k, h, gates.rows, maybe(has_prev, prev), cell.rows);
  same(cell, wc, where + " c");
  kernel.coupled_output(k, h, gates.rows, cell.rows, y.rows);
  same(gates, wgates, where + " gates");
  same(y, wy, where + " h");
  auto back = [&](const Rows& to) {
    kernel.coupled_output_bwd(k, h, gates.rows, cell.rows, dy.rows, dc.rows, to, total.rows);
    kernel.coupled_cell_bwd(k, h, gates.rows, maybe(has_prev, prev), total.rows, to, maybe(want, dprev), acc);
  };
  back(da.rows);
  same(da, wda, where + " da");
  same(total, wtotal, where + " what flows into c");
  same(dprev, wprev, where + " dc_prev");
  back(gates.rows);
  same(gates, wda, where + " da over the gates");
}

void tree(const Kernels& kernel, const Case& c, int children) {
  const idx k = c.k, h = c.h;
  const bool has_dh = c.flag(0) || !c.flag(1), has_dc = c.flag(1);
  const std::string where = name(kernel, "tree_lstm", c) + " children " + std::to_string(children);
  Numbers numbers;
  Block iog(k, 3 * h, c.layout), cell(k, h, c.layout), y(k, h, c.layout), dh(k, h, c.layout), dc(k, h, c.layout),
      diog(k, 3 * h, c.layout);
  for (Block* b : {&iog, &dh, &dc}) randomise(*b, numbers);
  std::vector<Block*> f, cc, df, dcc;
  std::vector<Rows> rf, rcc, rdf, rdcc;
  bool acc[8];
  for (int j = 0; j < children; ++j) {
    for (auto* list : {&f, &cc, &df, &dcc}) list->push_back(new Block(k, h, c.layout, 0.5f));
    randomise(*f[j], numbers);
    randomise(*cc[j], numbers);
    rf.push_back(f[j]->rows), rcc.push_back(cc[j]->rows), rdf.push_back(df[j]->rows);
    rdcc.push_back(j == 2 ? Rows{} : dcc[j]->rows);  // the third child needs no gradient
    acc[j] = j == 1;
  }
  std::vector<double> wiog(k * 3 * h), wc(k * h), wy(k * h), wd(k * 3 * h);
  std::vector<std::vector<double>> wf(children, wc), wdf(children, wc), wdcc(children, wc);
  for (idx m = 0; m < k; ++m)
    for (idx j = 0; j < h; ++j) {
      const idx at = m * h + j, at3 = m * 3 * h + j;
      const double i = sigmoid(iog.at(m, j)), o = sigmoid(iog.at(m, h + j)),
                   g = std::tanh(double(iog.at(m, 2 * h + j)));
      double s = i * g;
      for (int q = 0; q < children; ++q) {
        wf[q][at] = sigmoid(f[q]->at(m, j) + 0.5);
        s += wf[q][at] * cc[q]->at(m, j);
      }
      const double t = std::tanh(s), d = has_dh ? dh.at(m, j) : 0,
                   ds = (has_dc ? dc.at(m, j) : 0) + d * o * (1 - t * t);
      wiog[at3] = i, wiog[at3 + h] = o, wiog[at3 + 2 * h] = g, wc[at] = s, wy[at] = o * t;
      wd[at3] = ds * g * i * (1 - i), wd[at3 + h] = d * t * o * (1 - o), wd[at3 + 2 * h] = ds * i * (1 - g * g);
      for (int q = 0; q < children; ++q) {
        wdf[q][at] = ds * cc[q]->at(m, j) * wf[q][at] * (1 - wf[q][at]);
        wdcc[q][at] = ds * wf[q][at] + (acc[q] ? 0.5 : 0);
      }
    }
  kernel.tree_lstm_fwd(k, h, children, iog.rows, rf.data(), rcc.data(), 0.5f, cell.rows, y.rows);
  same(iog, wiog, where + " gates");
  same(cell, wc, where + " c");
  same(y, wy, where + " h");
  kernel.tree_lstm_bwd(k, h, children, iog.rows, rf.data(), rcc.data(), cell.rows, maybe(has_dh, dh), maybe(has_dc, dc),
                       diog.rows, rdf.data(), rdcc.data(), acc);
  same(diog, wd, where + " dgates");
  for (int q = 0; q < children; ++q) {
    same(*f[q], wf[q], where + " f");
    same(*df[q], wdf[q], where + " df");
    if (q != 2) same(*dcc[q], wdcc[q], where + " dc_child");
    for (auto* list : {&f, &cc, &df, &dcc}) delete (*list)[q];
  }
}

// Gates far out, as far as mathfn.h says; each number is the sum of all four gates.
void far_gates(const Kernels& kernel) {
  std::vector<float> sums;
  for (float x = -86; x <= 100; x += 0.01f) sums.push_back(x);
  const idx near = static_cast<idx>(sums.size());
  for (float x : {-88.f, -104.f, -1e30f, -INFINITY, INFINITY, 1e30f, NAN}) sums.push_back(x);
  const idx h = static_cast<idx>(sums.size());
  Block a(1, 4 * h, Block::Layout(0)), cp(1, h, Block::Layout(0)), cell(1, h, Block::Layout(0)),
      y(1, h, Block::Layout(0));
  for (idx i = 0; i < 4 * h; ++i) a.at(0, i) = sums[i % h];
  for (idx i = 0; i < h; ++i) cp.at(0, i) = 0;
  kernel.lstm_fwd(1, h, 0.0f, a.rows, cp.rows, cell.rows, y.rows);
  const std::string where = std::string(kernel.isa) + " far gates";
  for (idx i = 0; i < h; ++i) {
    const double x = sums[i], ulp = 1.2e-7;
    const float gate = a.at(0, i), g = a.at(0, 3 * h + i);
    if (x != x) {
      expect(gate != gate && g != g && y.at(0, i) != y.at(0, i), where + ": NaN");
      continue;
    }
    expect_near(g, std::tanh(x), 2.6 * ulp, 0, where + " tanh");
    if (i < near || x > 0)
      expect_near(gate, sigmoid(x), 2.6 * ulp, 0, where + " sigmoid");
    else
      expect(gate >= 0 && gate < 2e-38f, where + ": far left");
  }
}

}  // namespace

void cells(const Kernels& k) {
  far_gates(k);
  for (idx h = 0; h <= 70; h += h < 20 ? 1 : 5)
    for (int layout = 0; layout < 3; ++layout)
      for (idx members : {0, 1, 3, 19}) {  // many share a vector for the units that are left over
        for (unsigned flags : {0u, 1u, 2u, 3u, 6u, 7u, 15u, 23u, 31u, 39u, 63u})
          lstm(k, {members, h, Layout(layout), flags});
        for (unsigned flags = 0; flags < 4; ++flags) gru(k, {members, h, Layout(layout), flags});
        for (unsigned flags = 0; flags < 4; ++flags) lstm_parts(k, {members, h, Layout(layout), flags});
        for (unsigned flags = 0; flags < 2; ++flags) gru_start(k, {members, h, Layout(layout), flags});
        for (unsigned flags = 0; flags < 8; ++flags) coupled(k, {members, h, Layout(layout), flags});
        for (unsigned flags = 0; flags < 4; ++flags)
          for (int children = 0; children < 4; ++children) tree(k, {members, h, Layout(layout), flags}, children);
      }
}

}  // namespace check
