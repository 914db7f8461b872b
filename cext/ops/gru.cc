// The gated recurrent unit (Cho et al. 2014) as DyNet has it, one node per step.
//
//   z, r = sigmoid(proj_zr + Uzr h_prev);  a = tanh(proj_h + Uh (r * h_prev));  h = (1 - z) h_prev + z a
// The projection of the input, three blocks z, r, h, is an affine_transform before it.
#include "ops/cells.h"

namespace dnl {
namespace {

using cells::Cell;
using cells::Gradient;

enum { kProj, kHPrev, kUzr, kUh };
enum { kH, kZr, kCand, kReset };  // reset: r * h_prev

// Gradients of the sums: two parts of the projection's gradient where that is kept.
Rows dzr_of(const Cell& s) { return s.kept_or(kZr); }
Rows dcand_of(const Cell& s) { return s.kept() ? s.from(s.kept_or(kCand), 2 * s.h) : s.dy(kCand); }

// The gradient of the projection, from its two parts.
void give_projection(const Cell& s, const Rows& dzr, const Rows& dcand) {
  Gradient d(s, kProj);
  if (!d.wanted()) return;
  const Rows zr = d.rows, cand = s.from(d.rows, 2 * s.h);
  if (d.acc) {
    kernels().add_rows(s.k, 2 * s.h, dzr, zr);
    kernels().add_rows(s.k, s.h, dcand, cand);
  } else {
    kernels().copy_rows(s.k, 2 * s.h, dzr, zr);
    kernels().copy_rows(s.k, s.h, dcand, cand);
  }
  d.done();
}

const OpId step_id = register_op([](OpDef& op) {
  op.signature = "_gru_step(proj: expr, h_prev: expr, uzr: expr, uh: expr)";
  op.doc = "A step of a GRU: proj {3h} in blocks z, r, h; h_prev {h}; uzr {2h,h}, uh {h,h} -> {h}.";
  op.args = {{"proj"}, {"h_prev", Batch::Stack, Access::Near}, {"uzr", Batch::Share}, {"uh", Batch::Share}};
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    const u32 h = cells::block_size(in, 3);
    cells::need_state(in, kHPrev, h);
    cells::need_matrix(in, kUzr, 2 * h, h);
    cells::need_matrix(in, kUh, h, h);
    const Dim d = cells::state_dim(in, h);
    return ShapeOut(d).hidden(cells::state_dim(in, 2 * h)).hidden(d).hidden(d);
  };
  op.forward = [](const Call& c) {
    const Cell s(c);
    const Rows proj = s.x(kProj), h_prev = s.x(kHPrev), zr = s.y(kZr), cand = s.y(kCand), rh = s.y(kReset);
    gemm_rows(false, 2 * s.h, s.k, s.h, s.weight(kUzr), 2 * s.h, h_prev, proj, false, zr);
    kernels().gru_zr_fwd(s.k, s.h, zr, h_prev, rh);
    gemm_rows(false, s.h, s.k, s.h, s.weight(kUh), s.h, rh, s.from(proj, 2 * s.h), false, cand);
    kernels().gru_out_fwd(s.k, s.h, zr, h_prev, cand, s.y(kH));
  };
  op.backward = [](const Call& c) {
    const Cell s(c);
    const Rows h_prev = s.x(kHPrev), zr = s.y(kZr), drh = s.dy(kReset), dzr = dzr_of(s), dcand = dcand_of(s);
    Gradient dh(s, kHPrev);
    kernels().gru_out_bwd(s.k, s.h, zr, h_prev, s.y(kCand), s.dy(kH), dcand, dzr, dh.rows, dh.acc);
    times_transposed(c, kUh, s.k, dcand, Rows{}, false, drh);
    kernels().gru_zr_bwd(s.k, s.h, zr, h_prev, drh, dzr, dh.rows);
    if (dh.wanted()) {
      times_transposed(c, kUzr, s.k, dzr, Rows{}, true, dh.rows);
      dh.done();
    }
    if (!s.kept()) give_projection(s, dzr, dcand);
  };
  op.backward_shared = [](const Call& c, int wrt) {
    const Cell s(c);
    if (wrt == kUh)
      gemm_outer(s.h, s.h, s.k, dcand_of(s), s.y(kReset), s.weight_gradient(wrt), s.h);
    else
      gemm_outer(2 * s.h, s.h, s.k, dzr_of(s), s.x(kHPrev), s.weight_gradient(wrt), 2 * s.h);
  };
  op.keep = Keep::Arg0;
  op.by_item = true;
  op.in_kernels = true;
});

// From zero state nothing is reset and nothing kept: h = z a.
const OpId start_id = register_op([](OpDef& op) {
  op.signature = "_gru_start(proj: expr)";
  op.doc = "First step of a GRU from zero state: proj {3h} in blocks z, r, h -> {h}.";
  op.args = {{"proj"}};
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    const u32 h = cells::block_size(in, 3);
    return ShapeOut(cells::state_dim(in, h)).hidden(cells::state_dim(in, 2 * h));
  };
  op.forward = [](const Call& c) {
    const Cell s(c);
    kernels().gru_start(s.k, s.h, s.x(0), s.y(1), s.y(0));
  };
  op.backward = [](const Call& c) {
    const Cell s(c);
    Gradient d(s, 0);
    if (!d.wanted()) return;
    kernels().gru_start_bwd(s.k, s.h, s.y(1), s.dy(0), d.rows, d.acc);
    d.done();
  };
  op.in_kernels = true;
});

}  // namespace
}  // namespace dnl
