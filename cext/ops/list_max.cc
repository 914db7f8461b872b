// emax: the largest of a list of expressions, element by element.
#include "kernels/kernels.h"
#include "op/op.h"

namespace dnl {
namespace {

ShapeOut shape(const ShapeIn& in) {
  for (int j = 1; j < in.nargs; ++j) in.need(in[j].like(in[0]), "all shapes must be equal");
  Dim y = in[0];
  y.bd = in.common_batch();
  return y;
}

void forward(const Call& c) {
  const idx n = static_cast<idx>(c.out_dim[0].batch_size());
  for (int m = 0; m < c.members; ++m)
    for (idx e = 0; e < c.out_dim[0].bd; ++e) {
      float* y = c.y[0][m] + e * n;
      std::memcpy(y, c.x[0][m] + c.item(0, e), n * sizeof(float));
      for (int j = 1; j < c.nargs; ++j) {
        const float* x = c.x[j][m] + c.item(j, e);
        for (idx i = 0; i < n; ++i) y[i] = x[i] > y[i] || x[i] != x[i] ? x[i] : y[i];
      }
    }
}

// The first argument that is as large as the result gets the gradient of the element.
void backward(const Call& c) {
  const idx n = static_cast<idx>(c.out_dim[0].batch_size());
  float* rest = c.scratch->alloc(n);  // what no argument has taken yet
  for (int m = 0; m < c.members; ++m)
    for (idx e = 0; e < c.out_dim[0].bd; ++e) {
      const float* y = c.y[0][m] + e * n;
      std::memcpy(rest, c.dy[0][m] + e * n, n * sizeof(float));
      for (int j = 0; j < c.nargs; ++j) {
        const float* x = c.x[j][m] + c.item(j, e);
        float* dx = c.dx[j].wanted() ? c.dx[j][m] + c.item(j, e) : nullptr;
        const bool add = c.acc[j] || (c.arg_dim[j]->bd == 1 && e > 0);
        for (idx i = 0; i < n; ++i) {
          const float d = x[i] == y[i] ? rest[i] : 0.f;
          if (x[i] == y[i]) rest[i] = 0.f;
          if (dx) dx[i] = add ? dx[i] + d : d;
        }
      }
    }
}

const OpId emax_id = register_op([](OpDef& op) {
  op.signature = "emax(xs: exprs)";
  op.doc =
      "The largest of a list of expressions of one shape, element by element.\n\n"
      "The result has this shape. Of equal elements the first gets the gradient. Batch sizes must be equal or "
      "1. ValueError for different shapes or an empty list.";
  op.args = {each("xs")};
  op.shape = shape;
  op.forward = forward;
  op.backward = backward;
});

}  // namespace
}  // namespace dnl
