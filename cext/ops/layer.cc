// A layer over a concatenation, f(b + W * concatenate(xs)), as a pass over the graph makes it (rewrite/rules/layer.cc):
// the inner nodes of a recursive network, the words of a tagger.
//
// It computes what the three ops would, by the same products: the parts are copied together, for a product with the
// whole matrix is faster than one with each part of it. What is spared are calls, which take longer than the arithmetic
// where few members run at a time.
#include "kernels/formula_info.h"
#include "kernels/gemm.h"
#include "kernels/kernels.h"
#include "op/op.h"
#include "ops/transposed.h"

namespace dnl {
namespace {

enum { kBias, kMatrix, kParts };
// Hidden: the concatenation, and memory for the gradient of the sums.
enum { kY, kWhole, kSums };

ShapeOut shape(const ShapeIn& in) {
  const i32 f = in.key[0].i;
  in.need(f >= 0 && f < kernels().n_unary, "there is no such formula");
  const UnaryKernel& formula = kernels().unary[f];
  in.need(formula.n_attr == 0 && formula.reads == kReadsY, "takes a formula whose gradient needs its value");
  in.need(in.nargs > kParts, "takes a bias, a matrix and vectors");
  const Dim &b = in[kBias], &w = in[kMatrix];
  u64 total = 0;
  for (int j = kParts; j < in.nargs; ++j) {
    in.need(in[j].is_vector() && in[j].bd == 1, "takes vectors, and no mini-batches");
    total += in[j].rows();
  }
  in.need(w.nd <= 2 && w.bd == 1 && w.cols() == total, "the matrix needs as many columns as the vectors have rows");
  in.need(b.is_vector() && b.bd == 1 && b.rows() == w.rows(), "the bias needs as many rows as the matrix");
  const Dim y{w.rows()};
  return ShapeOut(y).hidden(Dim{w.cols()}).hidden(y);
}

const UnaryKernel& formula(const Call& c) { return kernels().unary[c.key[0].i]; }

// f(argument, its floats, where it begins in the concatenation) for each part.
template <class F>
void each_part(const Call& c, F f) {
  idx at = 0;
  for (int j = kParts; j < c.nargs; ++j) {
    const idx n = static_cast<idx>(c.arg_size(j));
    f(j, n, at);
    at += n;
  }
}

// The columns of all rows from one on; hidden outputs are regular.
Rows from(const Rows& r, idx column) { return Rows{r.base + column, r.stride, nullptr}; }

void forward(const Call& c) {
  const idx m = static_cast<idx>(c.out_size(kY)), n = static_cast<idx>(c.out_size(kWhole));
  each_part(c, [&](int j, idx size, idx at) { kernels().copy_rows(c.members, size, c.x[j], from(c.y[kWhole], at)); });
  gemm_rows(false, m, c.members, n, c.x[kMatrix].base, m, c.y[kWhole], Rows{c.x[kBias].base, 0, nullptr}, false,
            c.y[kY]);
  const Rows y = c.y[kY];
  if (y.packed(m)) return formula(c).fwd(m * c.members, y.base, y.base, nullptr);
  for (int i = 0; i < c.members; ++i) formula(c).fwd(m, y[i], y[i], nullptr);
}

void backward(const Call& c) {
  const idx m = static_cast<idx>(c.out_size(kY));
  const Rows y = c.y[kY], dy = c.dy[kY], sums = c.dy[kSums], whole = c.dy[kWhole];
  if (y.packed(m) && dy.packed(m) && sums.packed(m))
    formula(c).bwd(m * c.members, y.base, y.base, dy.base, sums.base, nullptr, false);
  else
    for (int i = 0; i < c.members; ++i) formula(c).bwd(m, y[i], y[i], dy[i], sums[i], nullptr, false);
  bool any = false;
  for (int j = kParts; j < c.nargs; ++j) any |= c.dx[j].wanted();
  if (!any) return;
  times_transposed(c, kMatrix, c.members, sums, Rows{}, false, whole);
  each_part(c, [&](int j, idx size, idx at) {
    if (!c.dx[j].wanted()) return;
    (c.acc[j] ? kernels().add_rows : kernels().copy_rows)(c.members, size, from(whole, at), c.dx[j]);
  });
}

void backward_shared(const Call& c, int wrt) {
  const idx m = static_cast<idx>(c.out_size(kY)), n = static_cast<idx>(c.out_size(kWhole));
  if (wrt == kBias) return kernels().sum_rows(c.members, m, c.dy[kSums], c.dx[kBias].base, true);
  gemm_outer(m, n, c.members, c.dy[kSums], c.y[kWhole], c.dx[kMatrix].base, m);
}

// tanh(affine_transform(concatenate))
std::string text(int, const Word* key, bool) {
  return std::string(kernels().unary[key[0].i].name) + "(affine_transform(concatenate))";
}

const OpId layer_id = register_op([](OpDef& op) {
  op.signature = "_layer(b: expr, w: expr, xs: exprs, formula: int)";
  op.doc =
      "f(b + w * concatenate(xs)), f the elementwise formula of this number, whose gradient needs its value alone: b "
      "{m}, w {m,k}, xs {k1}, {k2}, ..., k1 + k2 + ... = k -> {m}.";
  op.args = {{"b", Batch::Share}, {"w", Batch::Share}, each("xs")};
  op.shape = shape;
  op.forward = forward;
  op.backward = backward;
  op.backward_shared = backward_shared;
  op.text = text;
  op.composed = true;
  op.family = "(layers over concatenations)";
  op.in_kernels = true;
});

}  // namespace
}  // namespace dnl
