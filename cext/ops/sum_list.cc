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

const OpId esum_id = register_op({
                                     "esum(xs: exprs)",
                                     "Sum of a list of expressions of one shape. Batch sizes must be equal or 1.",
                                     {{"xs", Batch::Stack, Access::Rows, true}},
                                     list_shape,
                                     [](const Call& c) { forward(c, 1.f); },
                                     [](const Call& c) { backward(c, 1.f); },
                                     nullptr,
                                     nullptr,
                                     nullptr,
                                     false,
                                     true /* joins */,
                                 },
                                 Formula::Sum);

const OpId average_id = register_op({
    "average(xs: exprs)",
    "Mean of a list of expressions of one shape. Batch sizes must be equal or 1.",
    {{"xs", Batch::Stack, Access::Rows, true}},
    list_shape,
    [](const Call& c) { forward(c, 1.f / c.nargs); },
    [](const Call& c) { backward(c, 1.f / c.nargs); },
    nullptr,
    nullptr,
    nullptr,
    false,
    true /* joins */,
});

}  // namespace
}  // namespace dnl
