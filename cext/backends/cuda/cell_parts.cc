#include "backends/cuda/cell_parts.h"

#include "backends/cuda/added.h"

namespace dnl::cuda {
namespace {

using device::CellPart;

Recorder& rec() { return recorder(); }
device::Rows in(const Rows& rows, idx k, idx n) { return rec().reads(rows, k, n); }
device::Rows out(const Rows& rows, idx k, idx n) { return rec().writes(rows, k, n); }
CellPart part(device::CellPartKind what, idx k, idx h) {
  CellPart r{};
  r.what = what;
  r.k = k;
  r.h = h;
  return r;
}
void record(const CellPart& r) {
  if (r.k * r.h > 0) rec().add(Kernel::cell_part, r, r.k * r.h);
}

// Do some of these rows meet? A state may be a part of what are gates elsewhere.
bool meet(idx k, idx h, const Rows& gates, const Rows& state) {
  Vec<float*> blocks;
  for (idx m = 0; m < k; ++m) {
    for (idx gate = 0; gate < 4 && gates.wanted(); ++gate) blocks.push_back(gates[m] + gate * h);
    if (state.wanted()) blocks.push_back(state[m]);
  }
  return !Targets(static_cast<idx>(blocks.size()), h, Rows{nullptr, 0, blocks.data()}).apart;
}

// Gradients of gates, blocks of h, and of a state; where they are added to rows may meet.
void lstm_back(device::CellPartKind what, idx k, idx h, Rows gates, Rows state, Rows d, Rows dgates, bool acc_g,
               Rows dstate, bool acc_s) {
  const bool aside = (acc_g || acc_s) && meet(k, h, dgates, dstate);
  const Added to_gates(k, 4 * h, dgates, acc_g, aside), to_state(k, h, dstate, acc_s, aside);
  CellPart r = part(what, k, h);
  r.a = in(gates, k, 4 * h);
  r.b = in(state, k, h);
  r.c = in(d, k, h);
  r.y = out(to_gates.rows, k, 4 * h);
  r.z = out(to_state.rows, k, h);
  r.acc_y = to_gates.adds;
  r.acc_z = to_state.adds;
  record(r);
  to_gates.done();
  to_state.done();
}

}  // namespace

void lstm_gates(idx k, idx h, float forget_bias, Rows x, Rows y) {
  CellPart r = part(device::kLstmGates, k, h);
  r.a = in(x, k, 4 * h);
  r.y = out(y, k, 4 * h);
  r.forget_bias = forget_bias;
  record(r);
}
void lstm_gates_bwd(idx k, idx h, Rows y, Rows dy, Rows dx, bool acc) {
  const Added to(k, 4 * h, dx, acc);
  CellPart r = part(device::kLstmGatesBack, k, h);
  r.a = in(y, k, 4 * h);
  r.b = in(dy, k, 4 * h);
  r.y = out(to.rows, k, 4 * h);
  r.acc_y = to.adds;
  record(r);
  to.done();
}
void lstm_cell(idx k, idx h, Rows gates, Rows c_prev, Rows c) {
  CellPart r = part(device::kLstmCell, k, h);
  r.a = in(gates, k, 4 * h);
  r.b = in(c_prev, k, h);
  r.y = out(c, k, h);
  record(r);
}
void lstm_cell_bwd(idx k, idx h, Rows gates, Rows c_prev, Rows dc, Rows dgates, bool acc_g, Rows dc_prev, bool acc_c) {
  lstm_back(device::kLstmCellBack, k, h, gates, c_prev, dc, dgates, acc_g, dc_prev, acc_c);
}
void lstm_output(idx k, idx h, Rows gates, Rows c, Rows y) {
  CellPart r = part(device::kLstmOutput, k, h);
  r.a = in(gates, k, 4 * h);
  r.b = in(c, k, h);
  r.y = out(y, k, h);
  record(r);
}
void lstm_output_bwd(idx k, idx h, Rows gates, Rows c, Rows dy, Rows dgates, bool acc_g, Rows dc, bool acc_c) {
  lstm_back(device::kLstmOutputBack, k, h, gates, c, dy, dgates, acc_g, dc, acc_c);
}
void gru_start(idx k, idx h, Rows proj, Rows za, Rows y) {
  CellPart r = part(device::kGruStart, k, h);
  r.a = in(proj, k, 3 * h);
  r.y = out(za, k, 2 * h);
  r.z = out(y, k, h);
  record(r);
}
void gru_start_bwd(idx k, idx h, Rows za, Rows dy, Rows dproj, bool acc) {
  const Added to(k, 3 * h, dproj, acc);
  CellPart r = part(device::kGruStartBack, k, h);
  r.a = in(za, k, 2 * h);
  r.b = in(dy, k, h);
  r.y = out(to.rows, k, 3 * h);
  r.acc_y = to.adds;
  record(r);
  to.done();
}
void coupled_cell(idx k, idx h, Rows gates, Rows c_prev, Rows c) {
  CellPart r = part(device::kCoupledCell, k, h);
  r.b = in(c_prev, k, h);
  r.y = out(gates, k, 3 * h);
  r.z = out(c, k, h);
  record(r);
}
void coupled_output(idx k, idx h, Rows gates, Rows c, Rows y) {
  CellPart r = part(device::kCoupledOutput, k, h);
  r.b = in(c, k, h);
  r.y = out(gates, k, 3 * h);
  r.z = out(y, k, h);
  record(r);
}
void coupled_output_bwd(idx k, idx h, Rows gates, Rows c, Rows dy, Rows dc, Rows da, Rows total) {
  CellPart r = part(device::kCoupledOutputBack, k, h);
  r.a = in(gates, k, 3 * h);
  r.b = in(c, k, h);
  r.c = in(dy, k, h);
  r.d = in(dc, k, h);
  r.y = out(da, k, 3 * h);
  r.z = out(total, k, h);
  record(r);
}
void coupled_cell_bwd(idx k, idx h, Rows gates, Rows c_prev, Rows total, Rows da, Rows dc_prev, bool acc) {
  const Added to(k, h, dc_prev, acc);
  CellPart r = part(device::kCoupledCellBack, k, h);
  r.a = in(gates, k, 3 * h);
  r.b = in(c_prev, k, h);
  r.c = in(total, k, h);
  r.y = out(da, k, 3 * h);
  r.z = out(to.rows, k, h);
  r.acc_z = to.adds;
  record(r);
  to.done();
}

}  // namespace dnl::cuda
