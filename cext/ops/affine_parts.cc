// Products with parts of matrices: what rewrite/rules/concat.cc makes of W * concatenate([x1, x2]). Each vector is
// multiplied with the columns of the matrix that its numbers would have met.
#include "kernels/gemm.h"
#include "kernels/kernels.h"
#include "op/op.h"
#include "ops/both_gradients.h"
#include "ops/columns.h"
#include "ops/transposed.h"

namespace dnl {
namespace {

// The op's view of a call. Arguments: a bias, where the op has one, then pairs of a matrix and a vector. Key words: how
// many pairs, then for each its first column.
template <bool kBias>
struct Parts {
  const Call& c;
  idx m, per, n;  // rows of the results; columns of a member, elements of its mini-batch; columns of the call

  explicit Parts(const Call& call)
      : c(call), m(call.out_dim[0].rows()), per(static_cast<idx>(call.out_size()) / m), n(call.members * per) {}

  static constexpr int first() { return kBias ? 1 : 0; }
  idx column(int jw) const { return c.key[1 + (jw - first()) / 2].i; }
  idx size(int jx) const { return c.arg_dim[jx]->rows(); }
  float* part(const Rows& matrix, int jw) const { return matrix.base + column(jw) * m; }
  Rows columns(const Rows& r, idx rows) const { return columns_of(c, r, rows, per, per); }
};

template <bool kBias>
ShapeOut shape(const ShapeIn& in) {
  constexpr int first = kBias ? 1 : 0;
  in.need(in.nargs >= first + 2 && (in.nargs - first) % 2 == 0 && in.key[0].i == (in.nargs - first) / 2,
          "takes pairs of a matrix and a vector, and a column for each");
  const u32 m = in[first].rows(), batch = in.common_batch();
  in.need(!kBias || (in[0].is_vector() && in[0].rows() == m && in[0].bd == 1),
          "the bias must have as many rows as the matrices");
  for (int j = first; j < in.nargs; j += 2) {
    const Dim &w = in[j], &x = in[j + 1];
    const i32 column = in.key[1 + (j - first) / 2].i;
    in.need(w.nd <= 2 && w.rows() == m && w.bd == 1 && x.is_vector() && x.bd == batch,
            "takes matrices of like rows, and vectors");
    in.need(column >= 0 && static_cast<u32>(column) + x.rows() <= w.cols(), "a matrix has too few columns");
  }
  return Dim({m}, batch);
}

template <bool kBias>
void forward(const Call& c) {
  const Parts<kBias> p(c);
  const Rows y = p.columns(c.y[0], p.m);
  for (int j = p.first(); j < c.nargs; j += 2) {
    const bool begun = j > p.first();
    const Rows add = kBias && !begun ? Rows{c.x[0].base, 0, nullptr} : Rows{};
    gemm_rows(false, p.m, p.n, p.size(j + 1), p.part(c.x[j], j), p.m, p.columns(c.x[j + 1], p.size(j + 1)), add, begun,
              y);
  }
}

template <bool kBias>
void backward_bias(const Parts<kBias>& p) {
  kernels().sum_rows(p.n, p.m, p.columns(p.c.dy[0], p.m), p.c.dx[0].base, true);
}

template <bool kBias>
void backward(const Call& c) {
  const Parts<kBias> p(c);
  const Rows dy = p.columns(c.dy[0], p.m);
  for (int j = p.first(); j < c.nargs; j += 2) {
    const idx size = p.size(j + 1);
    const Rows dx = c.dx[j + 1].wanted() ? p.columns(c.dx[j + 1], size) : Rows{};
    if (c.dx[j].wanted())
      add_both_gradients(c, j, p.column(j), size, c.acc[j + 1], {p.n, dy, p.columns(c.x[j + 1], size), dx}, nullptr);
    else if (dx.wanted())
      times_transposed_columns(c, j, p.column(j), size, p.n, dy, Rows{}, c.acc[j + 1], dx);
  }
  if (kBias && c.dx[0].wanted()) backward_bias(p);
}

template <bool kBias>
void backward_shared(const Call& c, int wrt) {
  const Parts<kBias> p(c);
  if (kBias && wrt == 0) return backward_bias(p);
  const idx size = p.size(wrt + 1);
  gemm_outer(p.m, size, p.n, p.columns(c.dy[0], p.m), p.columns(c.x[wrt + 1], size), p.part(c.dx[wrt], wrt), p.m);
}

const OpId affine_parts_id = register_op([](OpDef& op) {
  op.signature = "_affine_parts(b: expr, es: exprs, columns: ints)";
  op.doc =
      "b + W1 * x1 + W2 * x2 + ..., where of each matrix the columns from columns[i] on take part: b {m}, es [W1, "
      "x1, W2, x2, ...], Wi {m,k}, "
      "xi {ki}, columns[i] + ki <= k -> {m}.";
  op.args = {{"b", Batch::Share}, each("w", Batch::Share), each("x", Batch::Stack, Access::Near)};
  op.shape = shape<true>;
  op.forward = forward<true>;
  op.backward = backward<true>;
  op.backward_shared = backward_shared<true>;
  op.text = [](int, const Word*, bool) -> std::string { return "affine_transform(concatenate)"; };
  op.shared = Shared::EitherWay;
});

const OpId product_parts_id = register_op([](OpDef& op) {
  op.signature = "_product_parts(es: exprs, columns: ints)";
  op.doc =
      "W1 * x1 + W2 * x2 + ..., where of each matrix the columns from columns[i] on take part: es [W1, x1, W2, x2, "
      "...], Wi {m,k}, xi {ki}, "
      "columns[i] + ki <= k -> {m}.";
  op.args = {each("w", Batch::Share), each("x", Batch::Stack, Access::Near)};
  op.shape = shape<false>;
  op.forward = forward<false>;
  op.backward = backward<false>;
  op.backward_shared = backward_shared<false>;
  op.text = [](int, const Word*, bool) -> std::string { return "matmul(concatenate)"; };
  op.shared = Shared::EitherWay;
});

}  // namespace
}  // namespace dnl
