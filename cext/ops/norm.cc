// layer_norm: normalisation over all numbers of a value, each batch element for itself (Ba, Kiros, Hinton, 2016).
#include "kernels/kernels.h"
#include "op/op.h"

namespace dnl {
namespace {

// Gain and bias may be shorter than x: a block (one number, or one column) that repeats.
ShapeOut shape(const ShapeIn& in) {
  const Dim& x = in[0];
  for (int j = 1; j <= 2; ++j)
    in.need(in[j].like(x) || in[j].batch_size() == 1 || (in[j].is_vector() && in[j].rows() == x.rows()),
            "gain and bias must have the shape of x, one column of it, or one number");
  Dim y = x;
  y.bd = in.common_batch();
  return ShapeOut(y).hidden(Dim({2}, y.bd));  // hidden: mean and 1 / deviation
}

// Where batch element e of argument j begins.
idx element(const Call& c, int j, idx e) {
  return c.arg_dim[j]->bd == 1 ? 0 : e * static_cast<idx>(c.arg_dim[j]->batch_size());
}

// Argument j (gain or bias) of member m, batch element e, as n numbers; `room` is used when it is shorter.
const float* full(const Call& c, int j, int m, idx e, idx n, float* room) {
  const float* p = c.x[j][m] + element(c, j, e);
  const idx k = static_cast<idx>(c.arg_dim[j]->batch_size());
  if (k == n) return p;
  for (idx at = 0; at < n; at += k) copy(k, p, room + at);
  return room;
}

void forward(const Call& c) {
  const idx n = static_cast<idx>(c.out_dim[0].batch_size());
  float *g = c.scratch->alloc(n), *b = c.scratch->alloc(n);
  for (int m = 0; m < c.members; ++m)
    for (idx e = 0; e < c.out_dim[0].bd; ++e)
      kernels().layer_norm(n, c.x[0][m] + element(c, 0, e), full(c, 1, m, e, n, g), full(c, 2, m, e, n, b),
                           c.y[0][m] + e * n, c.y[1][m] + 2 * e);
}

// Gradients of x, gain and bias where they are asked for; those of gain and bias are added.
void gradients(const Call& c, bool want_x, bool want_g, bool want_b) {
  const idx n = static_cast<idx>(c.out_dim[0].batch_size());
  float *g = c.scratch->alloc(n), *dg = c.scratch->alloc(n), *db = c.scratch->alloc(n);
  // A gradient of n numbers, folded onto the block it belongs to.
  auto fold = [&](int j, int m, idx e, const float* d) {
    const idx k = static_cast<idx>(c.arg_dim[j]->batch_size());
    float* to = c.dx[j][m] + element(c, j, e);
    if (k == 1) {
      to[0] += kernels().sum(n, d);
      return;
    }
    for (idx at = 0; at < n; at += k) kernels().add(k, d + at, to);
  };
  for (int m = 0; m < c.members; ++m)
    for (idx e = 0; e < c.out_dim[0].bd; ++e) {
      if (want_g) kernels().fill(n, 0.f, dg);
      if (want_b) kernels().fill(n, 0.f, db);
      float* dx = want_x ? c.dx[0][m] + element(c, 0, e) : nullptr;
      kernels().layer_norm_bwd(n, c.x[0][m] + element(c, 0, e), full(c, 1, m, e, n, g), c.y[1][m] + 2 * e,
                               c.dy[0][m] + e * n, dx, c.acc[0] || (e > 0 && c.arg_dim[0]->bd == 1),
                               want_g ? dg : nullptr, want_b ? db : nullptr);
      if (want_g) fold(1, m, e, dg);
      if (want_b) fold(2, m, e, db);
    }
}

void backward(const Call& c) {
  const bool want_g = !c.shared[1] && c.dx[1].wanted(), want_b = !c.shared[2] && c.dx[2].wanted();
  for (int j = 1; j <= 2; ++j)
    if ((j == 1 ? want_g : want_b) && !c.acc[j])
      for (int m = 0; m < c.members; ++m) kernels().fill(static_cast<idx>(c.arg_size(j)), 0.f, c.dx[j][m]);
  if (c.dx[0].wanted() || want_g || want_b) gradients(c, c.dx[0].wanted(), want_g, want_b);
}

const OpId layer_norm_id = register_op([](OpDef& op) {
  op.signature = "layer_norm(x: expr, g: expr, b: expr)";
  op.doc =
      "Layer normalisation: g (x - mean) / deviation + b (Ba, Kiros, Hinton, 2016).\n\n"
      "Mean and population standard deviation are those of all numbers of a batch element. x may have any "
      "shape; the result has the same shape. g and b have the shape of x, or are one column or one number, "
      "which is repeated. Where the deviation is 0, the result is b. Batch sizes must be equal or 1. ValueError "
      "for other shapes.";
  op.args = {{"x"}, {"g", Batch::Weight}, {"b", Batch::Weight}};
  op.shape = shape;
  op.forward = forward;
  op.backward = backward;
  op.backward_shared = [](const Call& c, int wrt) { gradients(c, false, wrt == 1, wrt == 2); };
});

}  // namespace
}  // namespace dnl
