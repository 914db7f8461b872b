// Sums and means over a list of expressions: esum, average.
#include "kernels/kernels.h"
#include "op/op.h"

namespace dnl {
namespace {

ShapeOut list_shape(const ShapeIn& in) {
  for (int j = 1; j < in.nargs; ++j) in.need(in[j].like(in[0]), "all shapes must be equal");
  Dim y = in[0];
  y.bd = in.common_batch();
  return y;
}

void forward(const Call& c, float weight) {
  const idx one = static_cast<idx>(c.out_dim[0].batch_size());
  for (int m = 0; m < c.members; ++m)
    for (int j = 0; j < c.nargs; ++j) {
      const bool repeated = c.arg_dim[j]->bd == 1;
      for (u32 e = 0; e < (repeated ? c.out_dim[0].bd : 1); ++e)
        kernels().scale_to(repeated ? one : static_cast<idx>(c.out_size()), weight, c.x[j][m], c.y[0][m] + e * one,
                           j > 0);
    }
}

void backward(const Call& c, float weight) {
  const idx one = static_cast<idx>(c.out_dim[0].batch_size());
  for (int j = 0; j < c.nargs; ++j) {
    if (!c.dx[j].wanted()) continue;
    const bool repeated = c.arg_dim[j]->bd == 1;
    for (int m = 0; m < c.members; ++m)
      for (u32 e = 0; e < (repeated ? c.out_dim[0].bd : 1); ++e)
        kernels().scale_to(repeated ? one : static_cast<idx>(c.out_size()), weight, c.dy[0][m] + e * one, c.dx[j][m],
                           c.acc[j] || e > 0);
  }
}

const OpId esum_id = register_op([](OpDef& op) {
  op.signature = "esum(xs: exprs)";
  op.doc =
      "Sum of a list of expressions of one shape, element by element.\n\n"
      "The result has this shape. Batch sizes must be equal or 1. ValueError for different shapes or an empty "
      "list.";
  op.args = {each("xs")};
  op.shape = list_shape;
  op.forward = [](const Call& c) { forward(c, 1.f); };
  op.backward = [](const Call& c) { backward(c, 1.f); };
  op.joins = true;
  op.formula = Formula::Sum;
  op.in_kernels = true;
});

const OpId average_id = register_op([](OpDef& op) {
  op.signature = "average(xs: exprs)";
  op.doc =
      "Mean of a list of expressions of one shape, element by element.\n\n"
      "The result has this shape. Batch sizes must be equal or 1. ValueError for different shapes or an empty "
      "list.";
  op.args = {each("xs")};
  op.shape = list_shape;
  op.forward = [](const Call& c) { forward(c, 1.f / c.nargs); };
  op.backward = [](const Call& c) { backward(c, 1.f / c.nargs); };
  op.joins = true;
  op.in_kernels = true;
});

}  // namespace
}  // namespace dnl
