// Scores of additive attention, v tanh(keys + query), as one node: what rewrite/rules/attention.cc makes of the three
// ops.
//
// A decoder asks for them at every step and for every word of its source: as nodes of their own the sums and their tanh
// are matrices as large as the source, which are written and read again and again, forward and backward. Here neither
// is ever in memory. Formula: Bahdanau, Cho and Bengio 2015 (arXiv 1409.0473), appendix A.1.2.
#include "kernels/kernels.h"
#include "op/op.h"

namespace dnl {
namespace {

constexpr int kV = 0, kKeys = 1, kQuery = 2;  // arguments
// Outputs: the scores; backward, what the member adds to the gradient of v.
constexpr int kScores = 0, kGradientOfV = 1;

ShapeOut shape(const ShapeIn& in) {
  const Dim &v = in[kV], &keys = in[kKeys], &query = in[kQuery];
  in.need(v.bd == 1 && keys.bd == 1 && query.bd == 1, "takes no mini-batches");
  in.need(keys.nd <= 2 && query.is_vector() && query.rows() == keys.rows(),
          "the query must have as many rows as the keys");
  in.need(v.nd == 2 && v.rows() == 1 && v.cols() == keys.rows(),
          "v must be one row with a column for each row of the keys");
  return ShapeOut(Dim{1, keys.cols()}).hidden(Dim{keys.rows()});
}

void forward(const Call& c) {
  const idx rows = c.arg_dim[kKeys]->rows();
  for (int m = 0; m < c.members; ++m)
    kernels().attention_scores(rows, c.arg(kKeys, m).cols(), c.x[kKeys][m], c.x[kQuery][m], c.x[kV][m],
                               c.y[kScores][m]);
}

void backward(const Call& c) {
  const idx rows = c.arg_dim[kKeys]->rows();
  for (int m = 0; m < c.members; ++m) {
    float* const dkeys = c.dx[kKeys].wanted() ? c.dx[kKeys][m] : nullptr;
    float* const dquery = c.dx[kQuery].wanted() ? c.dx[kQuery][m] : nullptr;
    float* const dv = c.dy[kGradientOfV][m];
    kernels().fill(rows, 0.f, dv);
    if (dquery && !c.acc[kQuery]) kernels().fill(rows, 0.f, dquery);
    kernels().attention_scores_bwd(rows, c.arg(kKeys, m).cols(), c.x[kKeys][m], c.x[kQuery][m], c.x[kV][m],
                                   c.dy[kScores][m], dkeys, c.acc[kKeys], dquery, dv);
    if (c.shared[kV] || !c.dx[kV].wanted()) continue;
    if (!c.acc[kV]) kernels().fill(rows, 0.f, c.dx[kV][m]);
    kernels().add(rows, dv, c.dx[kV][m]);
  }
}

void backward_shared(const Call& c, int) {
  const idx rows = c.arg_dim[kKeys]->rows();
  kernels().sum_rows(c.members, rows, c.dy[kGradientOfV], c.dx[kV].base, true);
}

const OpId attention_scores_id = register_op([](OpDef& op) {
  op.signature = "_attention_scores(v: expr, keys: expr, query: expr)";
  op.doc = "v tanh(keys + query), the query added to each column: v {1,h}, keys {h,n}, query {h} -> {1,n}.";
  op.args = {{"v", Batch::Weight}, {"keys"}, {"query"}};
  op.shape = shape;
  op.forward = forward;
  op.backward = backward;
  op.backward_shared = backward_shared;
  op.ragged = [](const ShapeIn& in, const bool*, Dim* arg) {
    if (in[kKeys].nd == 2) arg[kKeys].d[1] = 0;
    return in[kKeys].nd == 2;
  };
  op.family = "matmul(tanh(add))";
  op.composed = true;
  op.text = [](int, const Word*, bool) -> std::string { return "matmul(tanh(add))"; };
  op.in_kernels = true;
});

}  // namespace
}  // namespace dnl
