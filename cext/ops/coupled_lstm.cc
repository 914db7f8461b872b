// The LSTM with coupled gates (forget = 1 - input) of DyNet, with full peepholes or none, one node per step.
//
//   i = sigmoid(proj_i + Ui h_prev + Ci c_prev);  g = tanh(proj_g + Ug h_prev);  c = (1 - i) c_prev + i g
//   o = sigmoid(proj_o + Uo h_prev + Co c);       h = o tanh(c)
// Blocks stand in the order i, o, g. DyNet's CoupledLSTMBuilder has the peepholes Ci, Co; its FastLSTMBuilder has none.
#include "ops/cells.h"

namespace dnl {
namespace {

using cells::Cell;
using cells::Gradient;

enum { kH, kC, kGates };

ShapeOut outputs(const ShapeIn& in, u32 h) {
  ShapeOut out(cells::state_dim(in, h));
  out.dim[kC] = out.dim[kH];
  out.visible = out.total = 2;
  return out.hidden(cells::state_dim(in, 3 * h));
}

// Which argument is what; -1: absent.
struct Args {
  int h_prev, c_prev, u, ci, co;
};
Args step_args(const Call& c) { return {1, 2, 3, c.nargs > 4 ? 4 : -1, c.nargs > 4 ? 5 : -1}; }
Args start_args(const Call& c) { return {-1, -1, -1, -1, c.nargs > 1 ? 1 : -1}; }

void forward(const Call& call, const Args& a) {
  const Cell s(call);
  const idx h = s.h, k = s.k;
  const Rows c = s.to(kC), out = s.to(kH);
  const Rows gates = s.begun(kGates);
  Rows c_prev{};
  if (a.h_prev >= 0) {
    c_prev = s.x(a.c_prev);
    gemm_rows(false, 3 * h, k, h, s.weight(a.u), 3 * h, s.x(a.h_prev), Rows{}, true, gates);
  }
  if (a.ci >= 0) gemm_rows(false, h, k, h, s.weight(a.ci), h, c_prev, Rows{}, true, gates);
  kernels().coupled_cell(k, h, gates, c_prev, c);
  if (a.co >= 0) gemm_rows(false, h, k, h, s.weight(a.co), h, c, Rows{}, true, s.from(gates, h));
  kernels().coupled_output(k, h, gates, c, out);
}

// Gradients of the sums, in blocks i, o, g, into da, which may lie where the gates lie; of c_prev, without the
// peephole's part, into dc_prev.
void gate_gradients(const Cell& s, const Args& a, const Rows& da, const Rows& c_prev, Gradient* dc_prev) {
  const idx h = s.h, k = s.k;
  const Rows gates = s.y(kGates), c = s.y(kC), dh = s.dy(kH), dc = s.dy(kC), total = s.scratch_rows(h);
  kernels().coupled_output_bwd(k, h, gates, c, dh, dc, da, total);
  if (a.co >= 0) times_transposed(s.c, a.co, k, s.from(da, h), Rows{}, true, total);
  const bool wanted = dc_prev && dc_prev->wanted();
  kernels().coupled_cell_bwd(k, h, gates, c_prev, total, da, wanted ? dc_prev->rows : Rows{}, wanted && dc_prev->acc);
}

void backward(const Call& call, const Args& a) {
  const Cell s(call);
  const idx k = s.k;
  const Rows da = s.kept_or(kGates);
  if (a.h_prev < 0) {
    gate_gradients(s, a, da, Rows{}, nullptr);
  } else {
    Gradient dc(s, a.c_prev), dh(s, a.h_prev);
    gate_gradients(s, a, da, s.x(a.c_prev), &dc);
    if (dc.wanted()) {
      if (a.ci >= 0) times_transposed(s.c, a.ci, k, da, Rows{}, true, dc.rows);
      dc.done();
    }
    if (dh.wanted()) {
      times_transposed(s.c, a.u, k, da, Rows{}, dh.acc, dh.rows);
      dh.done();
    }
  }
  if (!s.kept()) Gradient(s, 0).take(da);
}

void backward_shared(const Call& call, const Args& a, int wrt) {
  const Cell s(call);
  const idx h = s.h, k = s.k;
  const Rows da = s.kept_or(kGates);
  float* dw = s.weight_gradient(wrt);
  if (wrt == a.u)
    gemm_outer(3 * h, h, k, da, s.x(a.h_prev), dw, 3 * h);
  else if (wrt == a.ci)
    gemm_outer(h, h, k, da, s.x(a.c_prev), dw, h);
  else
    gemm_outer(h, h, k, s.from(da, h), s.y(kC), dw, h);
}

const OpId step_id = register_op([](OpDef& op) {
  op.signature = "_coupled_lstm_step(proj: expr, h_prev: expr, c_prev: expr, u: expr, ci: expr, co: expr)";
  op.doc =
      "A step of a coupled LSTM: proj {3h} in blocks i, o, g; h_prev, c_prev {h}; u {3h,h}; peepholes "
      "ci, co {h,h} or "
      "absent -> h {h}, and c {h} as second output.";
  op.args = {{"proj"},
             {"h_prev", Batch::Stack, Access::Near},
             {"c_prev", Batch::Stack, Access::Near},
             {"u", Batch::Share},
             {"ci", Batch::Share},
             {"co", Batch::Share}};
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    const u32 h = cells::block_size(in, 3);
    cells::need_state(in, 1, h);
    cells::need_state(in, 2, h);
    cells::need_matrix(in, 3, 3 * h, h);
    in.need(in.nargs == 4 || in.nargs == 6, "takes both peepholes or none");
    for (int j = 4; j < in.nargs; ++j) cells::need_matrix(in, j, h, h);
    return outputs(in, h);
  };
  op.forward = [](const Call& c) { forward(c, step_args(c)); };
  op.backward = [](const Call& c) { backward(c, step_args(c)); };
  op.backward_shared = [](const Call& c, int wrt) { backward_shared(c, step_args(c), wrt); };
  op.keep = Keep::Arg0;
  op.over = Over::Arg0;
  op.by_item = true;
  op.in_kernels = true;
});

const OpId start_id = register_op([](OpDef& op) {
  op.signature = "_coupled_lstm_start(proj: expr, co: expr)";
  op.doc =
      "First step of a coupled LSTM from zero state: proj {3h} in blocks i, o, g; "
      "peephole co {h,h} or absent -> h {h}, "
      "and c {h} as second output.";
  op.args = {{"proj"}, {"co", Batch::Share}};
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    const u32 h = cells::block_size(in, 3);
    if (in.nargs > 1) cells::need_matrix(in, 1, h, h);
    return outputs(in, h);
  };
  op.forward = [](const Call& c) { forward(c, start_args(c)); };
  op.backward = [](const Call& c) { backward(c, start_args(c)); };
  op.backward_shared = [](const Call& c, int wrt) { backward_shared(c, start_args(c), wrt); };
  op.keep = Keep::Arg0;
  op.over = Over::Arg0;
  op.by_item = true;
  op.in_kernels = true;
});

}  // namespace
}  // namespace dnl
