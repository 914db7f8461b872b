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

const OpId step_id = register_op({
    "_rnn_step(proj: expr, h_prev: expr, wh: expr)",
    "A step of a simple RNN: tanh(proj + wh h_prev); proj {h}, h_prev {h}, wh {h,h} -> {h}.",
    {{"proj"}, {"h_prev", Batch::Stack, Access::Dense}, {"wh", Batch::Share}},
    [](const ShapeIn& in) -> ShapeOut {
      const u32 h = cells::block_size(in, 1);
      cells::need_state(in, kHPrev, h);
      cells::need_matrix(in, kWh, h, h);
      const Dim d = cells::state_dim(in, h);
      return ShapeOut(d).hidden(d);
    },
    [](const Call& c) {
      const Cell s(c);
      const Rows y = s.y(kH), h_prev = s.dense_x(kHPrev);
      kernels().copy_rows(s.k, s.h, s.x(kProj), y);
      gemm(false, false, s.h, s.k, s.h, 1.f, s.weight(kWh), s.h, h_prev.base, h_prev.stride, 1.f, y.base, s.h);
      cells::tanh().fwd(s.k * s.h, y.base, y.base, nullptr);
    },
    [](const Call& c) {
      const Cell s(c);
      const Rows y = s.y(kH), da = s.dy(kSums);
      cells::tanh().bwd(s.k * s.h, y.base, y.base, s.dy(kH).base, da.base, nullptr, false);
      Gradient dh(s, kHPrev);
      if (dh.wanted()) {
        gemm(true, false, s.h, s.k, s.h, 1.f, s.weight(kWh), s.h, da.base, s.h, dh.beta(), dh.rows.base, dh.ld());
        dh.done();
      }
      Gradient(s, kProj).take(da);
    },
    [](const Call& c, int wrt) {
      const Cell s(c);
      const Rows da = s.dy(kSums), h_prev = s.dense_x(kHPrev);
      gemm(false, true, s.h, s.h, s.k, 1.f, da.base, s.h, h_prev.base, h_prev.stride, 1.f, s.weight_gradient(wrt), s.h);
    },
});

}  // namespace
}  // namespace dnl
