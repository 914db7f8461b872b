// The LSTM cell: one node per step with outputs h and c, and the loose parts of DyNet's fused LSTM ops.
//
// Rows of the projection and of the gates stand in DyNet's order i, f, o, g. The input projection Wx x + b is an
// ordinary affine_transform before the cell: it has no recurrence, so all steps of all sentences are one product. The
// gradient of the gates is that of the projection, and is kept (Cell::kept_or), so that dWh of all steps is one product
// too.
#include "ops/cells.h"

namespace dnl {
namespace {

using cells::Cell;
using cells::Gradient;

enum { kH, kC, kGates };

ShapeOut lstm_outputs(const ShapeIn& in, u32 h) {
  ShapeOut out(cells::state_dim(in, h));
  out.dim[kC] = out.dim[kH];
  out.visible = out.total = 2;
  return out.hidden(cells::state_dim(in, 4 * h));
}

// ---- the first step: no state --------------------------------------------------------------------------------

const OpId start_id = register_op([](OpDef& op) {
  op.signature = "_lstm_start(proj: expr, forget_bias: float = 1.0)";
  op.doc = "First step of an LSTM from zero state: proj {4h} -> h {h}, and c {h} as second output.";
  op.args = {{"proj"}};
  op.shape = [](const ShapeIn& in) -> ShapeOut { return lstm_outputs(in, cells::block_size(in, 4)); };
  op.forward = [](const Call& c) {
    const Cell s(c);
    kernels().lstm_fwd(s.k, s.h, c.key[0].f, s.begun(kGates), Rows{}, s.to(kC), s.to(kH));
  };
  op.backward = [](const Call& c) {
    const Cell s(c);
    Gradient da(s, 0);
    if (!da.wanted()) return;
    kernels().lstm_bwd(s.k, s.h, s.y(kGates), Rows{}, s.y(kC), s.dy(kH), s.dy(kC), da.rows, da.acc, Rows{}, false);
    da.done();
  };
  op.over = Over::Arg0;
  op.in_kernels = true;
});

// ---- further steps -----------------------------------------------------------------------------------------------

enum { kProj, kHPrev, kCPrev, kWh };

const OpId step_id = register_op([](OpDef& op) {
  op.signature = "_lstm_step(proj: expr, h_prev: expr, c_prev: expr, wh: expr, forget_bias: float = 1.0)";
  op.doc =
      "A step of an LSTM: proj {4h}, h_prev {h}, c_prev {h}, wh {4h,h} -> h {h}, and c {h} as second output.\n\n"
      "i, f, o = sigmoid, g = tanh of the blocks of proj + wh h_prev (f with forget_bias added); c = f c_prev + i g; "
      "h = o tanh(c). Hochreiter and Schmidhuber 1997 with the forget gate of Gers et al. 2000, without peepholes.";
  op.args = {{"proj"}, {"h_prev", Batch::Stack, Access::Near}, {"c_prev"}, {"wh", Batch::Share}};
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    const u32 h = cells::block_size(in, 4);
    cells::need_state(in, kHPrev, h);
    cells::need_state(in, kCPrev, h);
    cells::need_matrix(in, kWh, 4 * h, h);
    return lstm_outputs(in, h);
  };
  op.forward = [](const Call& c) {
    const Cell s(c);
    const Rows gates = s.y(kGates);
    const Rows add = c.over ? Rows{} : s.x(kProj);
    gemm_rows(false, 4 * s.h, s.k, s.h, s.weight(kWh), 4 * s.h, s.x(kHPrev), add, c.over, gates);
    kernels().lstm_fwd(s.k, s.h, c.key[0].f, gates, s.x(kCPrev), s.to(kC), s.to(kH));
  };
  op.backward = [](const Call& c) {
    const Cell s(c);
    const Rows da = s.kept_or(kGates);
    Gradient dc(s, kCPrev);
    kernels().lstm_bwd(s.k, s.h, s.y(kGates), s.x(kCPrev), s.y(kC), s.dy(kH), s.dy(kC), da, false, dc.rows, dc.acc);
    dc.done();
    Gradient dh(s, kHPrev);
    if (dh.wanted()) {
      times_transposed(c, kWh, s.k, da, Rows{}, dh.acc, dh.rows);
      dh.done();
    }
    if (!s.kept()) Gradient(s, kProj).take(da);
  };
  op.backward_shared = [](const Call& c, int wrt) {
    const Cell s(c);
    gemm_outer(4 * s.h, s.h, s.k, s.kept_or(kGates), s.x(kHPrev), s.weight_gradient(wrt), 4 * s.h);
  };
  op.keep = Keep::Arg0;
  op.over = Over::Arg0;
  op.by_item = true;
  op.in_kernels = true;
});

// ---- DyNet's loose parts -----------------------------------------------------------------------------------------

const OpId gates_id = register_op([](OpDef& op) {
  op.signature = "_lstm_gates(x: expr, forget_bias: float = 1.0)";
  op.doc =
      "The gates of an LSTM from their sums: sigmoid, sigmoid (+ forget_bias), sigmoid, tanh of four blocks of rows.";
  op.args = {{"x"}};
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    cells::block_size(in, 4);
    return in[0];
  };
  op.forward = [](const Call& c) {
    const Cell s(c);
    kernels().lstm_gates(s.k, s.h / 4, c.key[0].f, s.x(0), s.y(0));
  };
  op.backward = [](const Call& c) {
    const Cell s(c);
    Gradient dx(s, 0);
    if (!dx.wanted()) return;
    kernels().lstm_gates_bwd(s.k, s.h / 4, s.y(0), s.dy(0), dx.rows, dx.acc);
    dx.done();
  };
  op.in_kernels = true;
});

ShapeOut part_shape(const ShapeIn& in) {
  const u32 h = cells::block_size(in, 4, 1);
  cells::need_state(in, 0, h, 1);
  return cells::state_dim(in, h, 1);
}

const OpId c_id = register_op([](OpDef& op) {
  op.signature = "vanilla_lstm_c(c_tm1: expr, gates_t: expr)";
  op.doc =
      "The cell of an LSTM: gates_i * gates_g + gates_f * c_tm1.\n\n"
      "c_tm1 {h}, gates_t {4h} from vanilla_lstm_gates() -> {h}. ValueError for other shapes.";
  op.args = {{"c_tm1"}, {"gates_t"}};
  op.shape = part_shape;
  op.forward = [](const Call& c) {
    const Cell s(c);
    kernels().lstm_cell(s.k, s.h, s.x(1), s.x(0), s.y(0));
  };
  op.backward = [](const Call& c) {
    const Cell s(c);
    Gradient dprev(s, 0), dgates(s, 1);
    kernels().lstm_cell_bwd(s.k, s.h, s.x(1), s.x(0), s.dy(0), dgates.rows, dgates.acc, dprev.rows, dprev.acc);
    dprev.done();
    dgates.done();
  };
  op.in_kernels = true;
});

const OpId h_id = register_op([](OpDef& op) {
  op.signature = "vanilla_lstm_h(c_t: expr, gates_t: expr)";
  op.doc =
      "The output of an LSTM: gates_o * tanh(c_t).\n\n"
      "c_t {h}, gates_t {4h} from vanilla_lstm_gates() -> {h}. ValueError for other shapes.";
  op.args = {{"c_t"}, {"gates_t"}};
  op.shape = part_shape;
  op.forward = [](const Call& c) {
    const Cell s(c);
    kernels().lstm_output(s.k, s.h, s.x(1), s.x(0), s.y(0));
  };
  op.backward = [](const Call& c) {
    const Cell s(c);
    Gradient dcell(s, 0), dgates(s, 1);
    kernels().lstm_output_bwd(s.k, s.h, s.x(1), s.x(0), s.dy(0), dgates.rows, dgates.acc, dcell.rows, dcell.acc);
    dcell.done();
    dgates.done();
  };
  op.in_kernels = true;
});

}  // namespace
}  // namespace dnl
