// pickneglogsoftmax of an affine map as one node: what graph/fold_loss.cc makes of scores that nobody else reads.
//
// With thousands of classes the scores of a minibatch fill many caches, and as nodes of their own they pass through them
// again and again: written, summed up, read for their gradients, which are written and then read by two products. Here
// scores are made and used in pieces, some classes of some examples, that stay in the second-level cache. Their
// exponentials are kept for backward; gradients of scores never leave a piece.
#include "kernels/gemm.h"
#include "kernels/kernels.h"
#include "op/op.h"
#include "ops/columns.h"

#include <algorithm>
#include <cmath>

namespace dnl {
namespace {

constexpr int kX = 0, kW = 1, kBias = 2;  // arguments; there may be no bias
// Outputs of each example: the loss; for each piece what its exponentials must be multiplied with to be probabilities; the
// exponentials.
constexpr int kLoss = 0, kScales = 1, kExps = 2;

// Classes of a piece and its examples, forward and backward: the scores, the operands of the products and what they add to share
// a cache of 1 MB. Backward as many as the product of the matrix's gradient takes at a time.
constexpr idx kClasses = 128, kExamples = 480, kExamplesBack = 78;
idx pieces_of(idx classes) { return (classes + kClasses - 1) / kClasses; }

// The op's view of a call: a member has as many examples as its mini-batch.
struct Scores {
  const Call& c;
  idx classes, size, per, examples, pieces;
  Rows x, scales;  // by example

  explicit Scores(const Call& call)
      : c(call), classes(c.arg_dim[kW]->rows()), size(c.arg_dim[kW]->cols()), per(c.arg_dim[kX]->bd),
        examples(c.members * per), pieces(pieces_of(classes)), x(vectors(c.x[kX])),
        scales(columns_of(c, c.y[kScales], pieces, per, per)) {}

  // Vectors of the size of x, one for each example.
  Rows vectors(const Rows& r) const { return columns_of(c, r, size, per, per); }
  float* w(idx row) const { return c.x[kW].base + row; }
  // Scores, or their exponentials, of an example from class `row` on; those of all examples are one matrix.
  Rows scores(idx row, idx example) const { return {c.y[kExps].base + example * classes + row, classes, nullptr}; }
  // Losses, or their gradients, by example.
  Rows losses(const Rows& r) const { return columns_of(c, r, 1, per, per); }
  idx label(idx example) const { return per == 1 ? c.member[example][1].i : c.member[example / per][1 + example % per].i; }
};

Rows rows_from(const Rows& r, idx first) {
  return r.ptr ? Rows{nullptr, 0, r.ptr + first} : Rows{r.base + first * r.stride, r.stride, nullptr};
}

// f(first, count) for parts of at most `most` of n.
template <class F>
void in_parts(idx n, idx most, F f) {
  for (idx i = 0; i < n; i += most) f(i, std::min(most, n - i));
}

// Member words: number of labels, then the labels (one per batch element).
ShapeOut shape(const ShapeIn& in) {
  in.need(in.nargs == 2 || in.nargs == 3, "takes a vector, a matrix and perhaps a bias");
  const Dim &x = in[kX], &w = in[kW];
  in.need(x.is_vector() && w.nd <= 2 && w.bd == 1 && w.cols() == x.rows(), "columns of the matrix must equal rows of x");
  in.need(in.nargs == 2 || (in[kBias].is_vector() && in[kBias].bd == 1 && in[kBias].rows() == w.rows()),
          "the bias must have as many rows as the matrix");
  const u32 pieces = static_cast<u32>(pieces_of(w.rows()));
  return ShapeOut(Dim({1}, x.bd)).hidden(Dim({pieces}, x.bd)).hidden(Dim({w.rows()}, x.bd));
}

void check(const ShapeIn& in, const Word* member) {
  if (member[0].u != in[kX].bd)
    in.bad("needs one label per batch element, got " + std::to_string(member[0].u) + " labels");
  for (u32 e = 0; e < member[0].u; ++e)
    if (member[1 + e].u >= in[kW].rows())
      fail_index("[affine_loss] label " + std::to_string(member[1 + e].i) + " is out of range for " + std::to_string(in[kW].rows()));
}

// Of an example, over the pieces so far.
struct Sum {
  float largest = -INFINITY;
  double exps = 0;
  float label_score = 0;
  float logsumexp() const { return std::isfinite(largest) ? static_cast<float>(largest + std::log(exps)) : largest; }
  // From the largest score up to and including each piece to what makes its exponentials probabilities.
  void scale(idx pieces, float* scales) const {
    const float share = std::isfinite(largest) ? static_cast<float>(1 / exps) : 1.f;
    if (pieces == 1 && std::isfinite(largest))
      scales[0] = share;
    else
      kernels().exp_shifted(pieces, scales, largest, share, scales, false);
  }
};

void forward(const Call& c) {
  const Scores s(c);
  const Rows bias = c.nargs == 3 ? c.x[kBias] : Rows{}, losses = s.losses(c.y[kLoss]);
  in_parts(s.examples, kExamples, [&](idx first, idx n) {
    Sum sum[kExamples];
    in_parts(s.classes, kClasses, [&](idx row, idx rows) {
      const Rows add = bias.wanted() ? Rows{bias.base + row, 0, nullptr} : bias, to = s.scores(row, first);
      gemm_rows(false, rows, n, s.size, s.w(row), s.classes, rows_from(s.x, first), add, false, to);
      for (idx e = 0; e < n; ++e) {
        const idx label = s.label(first + e) - row;
        if (label >= 0 && label < rows) sum[e].label_score = to[e][label];
        kernels().exp_below(rows, to[e], to[e], &sum[e].largest, &sum[e].exps);
        s.scales[first + e][row / kClasses] = sum[e].largest;
      }
    });
    for (idx e = 0; e < n; ++e) {
      sum[e].scale(s.pieces, s.scales[first + e]);
      losses[first + e][0] = sum[e].logsumexp() - sum[e].label_score;
    }
  });
}

// d (softmax - 1 at the label), for some classes of some examples.
Rows score_gradients(const Scores& s, const Rows& dloss, idx row, idx rows, idx first, idx n, float* room) {
  const Rows exps = s.scores(row, first), to{room, rows, nullptr};
  for (idx e = 0; e < n; ++e) {
    const float d = dloss[first + e][0];
    kernels().scale_to(rows, d * s.scales[first + e][row / kClasses], exps[e], to[e], false);
    const idx label = s.label(first + e) - row;
    if (label >= 0 && label < rows) to[e][label] -= d;
  }
  return to;
}

// The exponentials of the piece after this one, which come from far: the first of how many rows.
Rows piece_after(const Scores& s, idx row, idx rows, idx first, idx n, idx* count) {
  const bool more = first + n < s.examples;
  const idx next_row = more ? row : row + rows, next = more ? first + n : 0;
  *count = next_row < s.classes ? std::min(kExamplesBack, s.examples - next) : 0;
  return s.scores(next_row, next);
}

void backward(const Call& c) {
  const Scores s(c);
  const Rows dloss = s.losses(c.dy[kLoss]);
  const bool to_x = c.dx[kX].wanted();
  const Rows dx = to_x ? s.vectors(c.dx[kX]) : Rows{};
  float* const dw = c.dx[kW].base;
  float* const db = c.nargs == 3 ? c.dx[kBias].base : nullptr;
  const idx most = std::min(kClasses, s.classes);
  float* const scores = c.scratch->alloc(static_cast<std::size_t>(most * std::min(kExamplesBack, s.examples)));
  float* const wt = c.scratch->alloc(to_x ? static_cast<std::size_t>(most * s.size) : 0);  // some rows of W transposed
  in_parts(s.classes, kClasses, [&](idx row, idx rows) {
    if (to_x) kernels().transpose_strided(s.size, rows, s.w(row), s.classes, wt, s.size, false);
    in_parts(s.examples, kExamplesBack, [&](idx first, idx n) {
      const Rows dy = score_gradients(s, dloss, row, rows, first, n, scores), x = rows_from(s.x, first);
      if (to_x) gemm_rows(false, s.size, n, rows, wt, s.size, dy, Rows{}, c.acc[kX] || row > 0, rows_from(dx, first));
      idx next_count;
      const Rows next = piece_after(s, row, rows, first, n, &next_count);
      if (dw) gemm_outer(rows, s.size, n, dy, x, dw + row, s.classes, next, next_count);
      if (db) kernels().sum_rows(n, rows, dy, db + row, true);
    });
  });
}

const OpId affine_loss_id = register_op({
    "_affine_loss(x: expr, weights: exprs, v: index*)",
    "pickneglogsoftmax(affine_transform([b, W, x]), v), or without b that of W * x: x {k}, weights [W, b] or [W], W {n,k}, b {n}.",
    {{"x", Batch::Stack, Access::Near}, {"weights", Batch::Share, Access::Rows, true}},
    shape,
    forward,
    backward,
    nullptr,
    check,
}, Shared::InBackward);

}  // namespace
}  // namespace dnl
