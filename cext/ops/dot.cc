// dot_product and l2_norm.
#include <cmath>

#include "kernels/kernels.h"
#include "op/op.h"

namespace dnl {
namespace {

// ---- dot_product --------------------------------------------------------------------------------

void dot_forward(const Call& c) {
  const idx n = static_cast<idx>(c.arg_dim[0]->batch_size());
  for (int m = 0; m < c.members; ++m)
    for (idx e = 0; e < c.out_dim[0].bd; ++e)
      c.y[0][m][e] = kernels().dot(n, c.x[0][m] + c.item(0, e), c.x[1][m] + c.item(1, e));
}

void dot_backward(const Call& c) {
  const idx n = static_cast<idx>(c.arg_dim[0]->batch_size());
  for (int j = 0; j < 2; ++j) {
    if (!c.dx[j].wanted()) continue;
    const bool repeated = c.arg_dim[j]->bd == 1;
    for (int m = 0; m < c.members; ++m)
      for (idx e = 0; e < c.out_dim[0].bd; ++e)
        kernels().scale_to(n, c.dy[0][m][e], c.x[1 - j][m] + c.item(1 - j, e), c.dx[j][m] + c.item(j, e),
                           c.acc[j] || (repeated && e > 0));
  }
}

const OpId dot_product_id = register_op([](OpDef& op) {
  op.signature = "dot_product(x: expr, y: expr)";
  op.doc =
      "Sum of the products of the elements of x and y.\n\n"
      "x and y have one shape; the result is {1}. Batch sizes must be equal or 1. ValueError for different "
      "shapes.";
  op.args = {{"x"}, {"y"}};
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    in.need(in[0].like(in[1]), "the shapes must be equal");
    return Dim({1}, in.common_batch());
  };
  op.forward = dot_forward;
  op.backward = dot_backward;
});

// ---- l2_norm ------------------------------------------------------------------------------------

void norm_forward(const Call& c) {
  const idx n = static_cast<idx>(c.arg_dim[0]->batch_size());
  for (int m = 0; m < c.members; ++m)
    for (idx e = 0; e < c.out_dim[0].bd; ++e)
      c.y[0][m][e] = static_cast<float>(std::sqrt(kernels().sum_squares(n, c.x[0][m] + e * n)));
}

void norm_backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  const idx n = static_cast<idx>(c.arg_dim[0]->batch_size());
  for (int m = 0; m < c.members; ++m)
    for (idx e = 0; e < c.out_dim[0].bd; ++e) {
      const float y = c.y[0][m][e], slope = y == 0.f ? 0.f : c.dy[0][m][e] / y;
      kernels().scale_to(n, slope, c.x[0][m] + e * n, c.dx[0][m] + e * n, c.acc[0]);
    }
}

const OpId l2_norm_id = register_op([](OpDef& op) {
  op.signature = "l2_norm(x: expr)";
  op.doc =
      "Euclidean norm: the square root of the sum of the squares of all elements.\n\n"
      "Any shape -> {1}, for each batch element. The gradient at 0 is 0.";
  op.args = {{"x"}};
  op.shape = [](const ShapeIn& in) -> ShapeOut { return Dim({1}, in[0].bd); };
  op.forward = norm_forward;
  op.backward = norm_backward;
});

}  // namespace
}  // namespace dnl
