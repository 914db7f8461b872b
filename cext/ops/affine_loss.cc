// pickneglogsoftmax of an affine map as one node: what graph/fold_loss.cc makes of scores that nobody else reads.
//
// With thousands of classes the scores of a minibatch fill many caches, and as nodes of their own they pass through them
// again and again: written, summed up, read for their gradients, which are written and then read by two products. Here
// scores are made and used in pieces, some classes of some examples, that stay in the second-level cache. Their
// exponentials are kept for backward; gradients of scores never leave a piece. Examples without a gradient are left out there.
#include "kernels/gemm.h"
#include "kernels/kernels.h"
#include "op/op.h"
#include "ops/columns.h"
#include "ops/labels.h"

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
// With few examples a piece has more classes, a multiple of that.
idx classes_at_once(idx examples, idx most_examples) {
  return kClasses * std::max<idx>(1, most_examples / std::max<idx>(1, examples));
}
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

void check(const ShapeIn& in, const Word* member) { check_labels(in, member, in[kX].bd, in[kW].rows()); }

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
    in_parts(s.classes, classes_at_once(n, kExamples), [&](idx row, idx rows) {
      const Rows add = bias.wanted() ? Rows{bias.base + row, 0, nullptr} : bias, to = s.scores(row, first);
      gemm_rows(false, rows, n, s.size, s.w(row), s.classes, s.x.from(first), add, false, to);
      for (idx e = 0; e < n; ++e) {
        const idx label = s.label(first + e) - row;
        if (label >= 0 && label < rows) sum[e].label_score = to[e][label];
        in_parts(rows, kClasses, [&](idx at, idx some) {
          kernels().exp_below(some, to[e] + at, to[e] + at, &sum[e].largest, &sum[e].exps);
          s.scales[first + e][(row + at) / kClasses] = sum[e].largest;
        });
      }
    });
    for (idx e = 0; e < n; ++e) {
      sum[e].scale(s.pieces, s.scales[first + e]);
      losses[first + e][0] = sum[e].logsumexp() - sum[e].label_score;
    }
  });
}

// The examples that a gradient flows into, by number: programs that pad sentences multiply the losses of the rest by 0.
class Taking {
 public:
  Taking(const Scores& s, const Rows& dloss) : c_(s.c), count_(0) {
    for (idx e = 0; e < s.examples; ++e) count_ += dloss[e][0] != 0;
    if (count_ == s.examples) return;
    which_ = reinterpret_cast<u32*>(c_.scratch->alloc(static_cast<std::size_t>(s.examples)));
    idx taken = 0, left = s.examples;
    for (idx e = 0; e < s.examples; ++e) which_[dloss[e][0] != 0 ? taken++ : --left] = static_cast<u32>(e);
  }
  idx count() const { return count_; }
  idx operator[](idx k) const { return which_ ? which_[k] : k; }
  // Rows by example as rows by number.
  Rows rows(const Rows& by_example, idx examples) const {
    if (!which_) return by_example;
    float** p = scratch_addresses(c_, examples);
    for (idx k = 0; k < examples; ++k) p[k] = by_example[which_[k]];
    return Rows{nullptr, 0, p};
  }

 private:
  static_assert(sizeof(u32) == sizeof(float), "scratch memory is taken in floats");
  const Call& c_;
  idx count_;
  u32* which_ = nullptr;  // null: all; those left out stand at the end
};

// d (softmax - 1 at the label), for some classes of some examples.
void score_gradients(const Scores& s, const Rows& dloss, const Taking& taking, idx row, idx rows, idx first, idx n, float* to) {
  for (idx k = 0; k < n; ++k, to += rows) {
    const idx e = taking[first + k];
    const float d = dloss[e][0];
    in_parts(rows, kClasses, [&](idx at, idx some) {
      kernels().scale_to(some, d * s.scales[e][(row + at) / kClasses], s.scores(row + at, e).base, to + at, false);
    });
    const idx label = s.label(e) - row;
    if (label >= 0 && label < rows) to[label] -= d;
  }
}

// The exponentials of the piece after this one, which come from far; how many rows.
idx piece_after(const Scores& s, const Taking& taking, idx row, idx rows, idx first, idx n, float** to) {
  const bool more = first + n < taking.count();
  const idx next_row = more ? row : row + rows, next = more ? first + n : 0;
  const idx count = next_row < s.classes ? std::min(kExamplesBack, taking.count() - next) : 0;
  for (idx k = 0; k < count; ++k) to[k] = s.scores(next_row, taking[next + k]).base;
  return count;
}

// Gradients of x, W and b, those of the latter where there is memory for them.
void gradients(const Call& c, bool to_x, float* dw, float* db) {
  const Scores s(c);
  const Rows dloss = s.losses(c.dy[kLoss]);
  const Taking taking(s, dloss);
  const Rows dx = to_x ? taking.rows(s.vectors(c.dx[kX]), s.examples) : Rows{}, x = taking.rows(s.x, taking.count());
  for (idx k = taking.count(); k < s.examples && to_x && !c.acc[kX]; ++k) kernels().fill(s.size, 0.f, dx[k]);
  const idx step = classes_at_once(taking.count(), kExamplesBack), most = std::min(step, s.classes);
  float* const scores = c.scratch->alloc(static_cast<std::size_t>(most * std::min(kExamplesBack, s.examples)));
  constexpr idx kMany = 16;  // examples that are worth transposing W for
  const bool transposes = to_x && taking.count() >= kMany;
  float* const wt = c.scratch->alloc(transposes ? static_cast<std::size_t>(most * s.size) : 0);  // some rows of W transposed
  float* next[kExamplesBack];
  in_parts(s.classes, step, [&](idx row, idx rows) {
    if (transposes) kernels().transpose_strided(s.size, rows, s.w(row), s.classes, wt, s.size, false);
    in_parts(taking.count(), kExamplesBack, [&](idx first, idx n) {
      score_gradients(s, dloss, taking, row, rows, first, n, scores);
      const Rows dy{scores, rows, nullptr};
      if (to_x)
        gemm_rows(!transposes, s.size, n, rows, transposes ? wt : s.w(row), transposes ? s.size : s.classes, dy, Rows{},
                  c.acc[kX] || row > 0, dx.from(first));
      const idx ahead = piece_after(s, taking, row, rows, first, n, next);
      if (dw) gemm_outer(rows, s.size, n, dy, x.from(first), dw + row, s.classes, Rows{nullptr, 0, next}, ahead);
      if (db) kernels().sum_rows(n, rows, dy, db + row, true);
    });
  });
}

float* bias_gradient(const Call& c) { return c.nargs == 3 ? c.dx[kBias].base : nullptr; }

void backward(const Call& c) {
  const bool to_x = c.dx[kX].wanted();
  if (to_x || c.dx[kW].wanted() || bias_gradient(c)) gradients(c, to_x, c.dx[kW].base, bias_gradient(c));
}

// That of the bias comes with that of the matrix.
void backward_shared(const Call& c, int wrt) {
  if (wrt == kW || !c.dx[kW].wanted()) gradients(c, false, c.dx[kW].base, bias_gradient(c));
}

const OpId affine_loss_id = register_op({
    "_affine_loss(x: expr, weights: exprs, v: index*)",
    "pickneglogsoftmax(affine_transform([b, W, x]), v), or without b that of W * x: x {k}, weights [W, b] or [W], W {n,k}, b {n}.",
    {{"x", Batch::Stack, Access::Near}, {"weights", Batch::Share, Access::Rows, true}},
    shape,
    forward,
    backward,
    backward_shared,
    check,
}, Shared::WithStacked);

}  // namespace
}  // namespace dnl
