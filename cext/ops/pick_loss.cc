// pickneglogsoftmax: the negative log-likelihood of one class, the loss of every tagger and language model.
#include "kernels/kernels.h"
#include "op/op.h"
#include "ops/labels.h"

#include <cmath>

namespace dnl {
namespace {

// Member words: number of labels, then the labels (one per batch element).
ShapeOut shape(const ShapeIn& in) {
  in.need(in[0].is_vector(), "needs a vector");
  return ShapeOut(Dim({1}, in[0].bd)).hidden(Dim({1}, in[0].bd));  // hidden: logsumexp
}

void check(const ShapeIn& in, const Word* member) { check_labels(in, member, in[0].bd, in[0].rows()); }

void forward(const Call& c) {
  const idx n = c.arg_dim[0]->rows();
  const u32 batch = c.arg_dim[0]->bd;
  for (int m = 0; m < c.members; ++m)
    for (u32 e = 0; e < batch; ++e) {
      const float* x = c.x[0][m] + e * n;
      const float lse = kernels().logsumexp(n, x);
      c.y[1][m][e] = lse;
      c.y[0][m][e] = lse - x[c.member[m][1 + e].u];
    }
}

void backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  const idx n = c.arg_dim[0]->rows();
  const u32 batch = c.arg_dim[0]->bd;
  for (int m = 0; m < c.members; ++m)
    for (u32 e = 0; e < batch; ++e) {
      const float d = c.dy[0][m][e];
      float* dx = c.dx[0][m] + e * n;
      kernels().exp_shifted(n, c.x[0][m] + e * n, c.y[1][m][e], d, dx, c.acc[0]);
      dx[c.member[m][1 + e].u] -= d;
    }
}

const OpId pickneglogsoftmax_id = register_op([](OpDef& op) {
  op.signature = "pickneglogsoftmax(x: expr, v: index*)";
  op.doc =
      "Cross entropy of softmax(x) and the label v: logsumexp(x) - x[v].\n\n"
      "x {n}, v a label -> {1}; x {n} X b, v a list of b labels -> {1} X b. ValueError for other shapes, "
      "IndexError if a label is not in 0..n-1.";
  op.args = {{"x"}};
  op.shape = shape;
  op.forward = forward;
  op.backward = backward;
  op.check = check;
});

}  // namespace
}  // namespace dnl
