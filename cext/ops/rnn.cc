// The simple recurrent cell (Elman): h = tanh(proj + Wh h_prev), one node per step.
//
// The input projection is an affine_transform before it. The first step, without a state, is tanh of the projection.
#include "ops/cells.h"

namespace dnl {
namespace {

using cells::Cell;
using cells::Gradient;

enum { kProj, kHPrev, kWh };
enum { kH, kSums };  // the hidden output is only there for its gradient memory: the gradient of the sums

const OpId step_id = register_op([](OpDef& op) {
  op.signature = "_rnn_step(proj: expr, h_prev: expr, wh: expr)";
  op.doc = "A step of a simple RNN: tanh(proj + wh h_prev); proj {h}, h_prev {h}, wh {h,h} -> {h}.";
  op.args = {{"proj"}, {"h_prev", Batch::Stack, Access::Near}, {"wh", Batch::Share}};
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    const u32 h = cells::block_size(in, 1);
    cells::need_state(in, kHPrev, h);
    cells::need_matrix(in, kWh, h, h);
    const Dim d = cells::state_dim(in, h);
    return ShapeOut(d).hidden(d);
  };
  op.forward = [](const Call& c) {
    const Cell s(c);
    const Rows y = s.y(kH);
    gemm_rows(false, s.h, s.k, s.h, s.weight(kWh), s.h, s.x(kHPrev), s.x(kProj), false, y);
    cells::tanh().fwd(s.k * s.h, y.base, y.base, nullptr);
  };
  op.backward = [](const Call& c) {
    const Cell s(c);
    const Rows y = s.y(kH), dy = s.dy(kH), da = s.kept_or(kSums);
    if (da.packed(s.h))
      cells::tanh().bwd(s.k * s.h, y.base, y.base, dy.base, da.base, nullptr, false);
    else
      for (idx r = 0; r < s.k; ++r) cells::tanh().bwd(s.h, y[r], y[r], dy[r], da[r], nullptr, false);
    Gradient dh(s, kHPrev);
    if (dh.wanted()) {
      times_transposed(c, kWh, s.k, da, Rows{}, dh.acc, dh.rows);
      dh.done();
    }
    if (!s.kept()) Gradient(s, kProj).take(da);
  };
  op.backward_shared = [](const Call& c, int wrt) {
    const Cell s(c);
    gemm_outer(s.h, s.h, s.k, s.kept_or(kSums), s.x(kHPrev), s.weight_gradient(wrt), s.h);
  };
  op.keep = Keep::Arg0;
  op.by_item = true;
  op.in_kernels = true;
});

}  // namespace
}  // namespace dnl
