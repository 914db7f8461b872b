// pickneglogsoftmax of an affine map as one node: what rewrite/rules/loss.cc makes of scores that nobody else reads.
//
// With thousands of classes the scores of a mini-batch fill many caches, and as nodes of their own they pass through
// them again and again: written, summed up, read for their gradients, which are written and then read by two products.
// Here scores are made and used in pieces, some classes of some examples, that stay in the second-level cache. Their
// exponentials are kept for backward; gradients of scores never leave a piece. Examples without a gradient are left out
// there, and examples of one vector, the states after the first word of sentences that begin alike, have one row of
// scores.
#include "base/fetch.h"
#include "kernels/gemm.h"
#include "kernels/kernels.h"
#include "op/op.h"
#include "ops/columns.h"
#include "ops/labels.h"
#include "ops/transposed.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace dnl {
namespace {

constexpr int kX = 0, kW = 1, kBias = 2;  // arguments; there may be no bias
// Outputs of each example: the loss; for each piece what its exponentials must be multiplied with to be probabilities;
// the exponentials, of as many vectors as there are; where its own are.
constexpr int kLoss = 0, kScales = 1, kExps = 2, kWhere = 3;

// Classes of a piece and its examples, forward and backward: the scores, the operands of the products and what they add
// to share a cache of 1 MB. Backward as many as the product of the matrix's gradient takes at a time.
constexpr idx kClasses = 128, kExamples = 480, kExamplesBack = 78;
// With few examples a piece has more classes, a multiple of that.
idx classes_at_once(idx examples, idx most_examples) {
  return kClasses * std::max<idx>(1, most_examples / std::max<idx>(1, examples));
}
idx pieces_of(idx classes) { return (classes + kClasses - 1) / kClasses; }

constexpr u32 kAddress = 2;  // floats that an address takes
static_assert(sizeof(float*) <= kAddress * sizeof(float));

// The op's view of a call: a member has as many examples as its mini-batch.
struct Scores {
  const Call& c;
  idx classes, size, per, examples, pieces;
  Rows x, scales, where;  // by example
  const i32* labels;      // likewise

  explicit Scores(const Call& call)
      : c(call),
        classes(c.arg_dim[kW]->rows()),
        size(c.arg_dim[kW]->cols()),
        per(c.arg_dim[kX]->bd),
        examples(c.members * per),
        pieces(pieces_of(classes)),
        x(vectors(c.x[kX])),
        scales(columns_of(c, c.y[kScales], pieces, per, per)),
        where(columns_of(c, c.y[kWhere], kAddress, per, per)),
        labels(listed_labels()) {}

  // Vectors of the size of x, one for each example.
  Rows vectors(const Rows& r) const { return columns_of(c, r, size, per, per); }
  float* w(idx row) const { return c.x[kW].base + row; }
  // Scores, or their exponentials, of a vector by number; those of all are one matrix.
  float* scores(idx number) const { return c.y[kExps].base + number * classes; }
  void note(idx example, float* exps) const { std::memcpy(where[example], &exps, sizeof exps); }
  float* noted(idx example) const {
    float* exps;
    std::memcpy(&exps, where[example], sizeof exps);
    return exps;
  }
  // Losses, or their gradients, by example.
  Rows losses(const Rows& r) const { return columns_of(c, r, 1, per, per); }
  // Scratch memory for n of these.
  template <class T>
  T* room(idx n) const {
    return c.scratch->array<T>(static_cast<std::size_t>(n));
  }

 private:
  // Near at hand: they are asked for with every piece.
  const i32* listed_labels() const {
    i32* const to = room<i32>(examples);
    for (idx m = 0; m < c.members; ++m)
      for (idx e = 0; e < per; ++e) to[m * per + e] = c.member[m][1 + e].i;
    return to;
  }
};

// f(first, count) for parts of `most` of n, but for the last.
template <class F>
void in_parts(idx n, idx most, F f) {
  for (idx i = 0; i < n; i += most) f(i, std::min(most, n - i));
}
// Parts of n that are nearly equal, of at most so many.
struct EqualParts {
  idx n, parts;
  EqualParts(idx all, idx most) : n(all), parts((all + most - 1) / most) {}
  idx first(idx p) const { return n * p / parts; }
  idx count(idx p) const { return first(p + 1) - first(p); }
};

// Member words: number of labels, then the labels (one per batch element).
ShapeOut shape(const ShapeIn& in) {
  in.need(in.nargs == 2 || in.nargs == 3, "takes a vector, a matrix and perhaps a bias");
  const Dim &x = in[kX], &w = in[kW];
  in.need(x.is_vector() && w.nd <= 2 && w.bd == 1 && w.cols() == x.rows(),
          "columns of the matrix must equal rows of x");
  in.need(in.nargs == 2 || (in[kBias].is_vector() && in[kBias].bd == 1 && in[kBias].rows() == w.rows()),
          "the bias must have as many rows as the matrix");
  const u32 pieces = static_cast<u32>(pieces_of(w.rows()));
  return ShapeOut(Dim({1}, x.bd))
      .hidden(Dim({pieces}, x.bd))
      .hidden(Dim({w.rows()}, x.bd))
      .hidden(Dim({kAddress}, x.bd));
}

void check(const ShapeIn& in, const Word* member) { check_labels(in, member, in[kX].bd, in[kW].rows()); }

// Of an example, over the pieces so far.
struct Sum {
  float largest = -INFINITY;
  double exps = 0;
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

// Two addresses.
struct Pair {
  const float *a, *b;
  bool operator!=(const Pair& o) const { return a != o.a || b != o.b; }
  std::size_t hash() const {
    const std::uint64_t mixed = (reinterpret_cast<std::uintptr_t>(a) ^ reinterpret_cast<std::uintptr_t>(b) << 7) >> 2;
    return static_cast<std::size_t>(mixed * 0x9E3779B97F4A7C15u >> 32);
  }
};

// Examples of a call by number: some, or all, of which those that are alike have one number.
class Examples {
 public:
  explicit Examples(const Scores& s) : s_(s), count_(s.examples) {}
  idx count() const { return count_; }
  // The first of those with number k.
  idx operator[](idx k) const { return which_ ? which_[k] : k; }
  // f(example) for all of them.
  template <class F>
  void each(idx k, F f) const {
    idx e = (*this)[k];
    f(e);
    for (; next_ && next_[e]; e = next_[e]) f(static_cast<idx>(next_[e]));
  }
  // Leaves those for which take(example) holds.
  template <class Take>
  void keep(Take take) {
    idx taken = 0;
    for (idx e = 0; e < s_.examples; ++e) taken += take(e);
    if (taken == s_.examples) return;
    count_ = 0;
    which_ = s_.room<u32>(s_.examples);
    for (idx e = 0; e < s_.examples; ++e)
      if (take(e)) which_[count_++] = static_cast<u32>(e);
  }
  // Gives those one number whose keys are equal.
  template <class Key>
  void unite(Key key) {
    idx places = 64;
    while (places < 2 * count_) places *= 2;
    u32* const table = zeros(places);        // numbers, counted from 1
    u32* const last = s_.room<u32>(count_);  // example of each number
    u32* const first = s_.room<u32>(count_);
    next_ = zeros(s_.examples);
    idx found = 0;
    for (idx k = 0; k < count_; ++k) {
      const idx e = (*this)[k];
      const auto mine = key(e);
      std::size_t at = mine.hash();
      while (table[at &= static_cast<std::size_t>(places - 1)] && key(first[table[at] - 1]) != mine) ++at;
      if (table[at]) {
        u32& before = last[table[at] - 1];
        before = next_[before] = static_cast<u32>(e);
      } else {
        first[found] = last[found] = static_cast<u32>(e);
        table[at] = static_cast<u32>(++found);
      }
    }
    if (found == count_) {
      next_ = nullptr;
      return;
    }
    which_ = first;
    count_ = found;
  }
  // Rows by example as rows by number.
  Rows rows(const Rows& by_example) const {
    if (!which_) return by_example;
    float** p = s_.room<float*>(count_);
    for (idx k = 0; k < count_; ++k) p[k] = by_example[which_[k]];
    return Rows{nullptr, 0, p};
  }

 private:
  u32* zeros(idx n) const {
    u32* const to = s_.room<u32>(n);
    std::fill(to, to + n, 0u);
    return to;
  }

  const Scores& s_;
  idx count_;
  u32* which_ = nullptr;  // null: all
  u32* next_ = nullptr;   // by example, the next one of its number or 0; null: each has its own
};

// All products go over the vectors again for each piece of classes: where there are many, they are read one behind the
// other.
Rows in_order(const Scores& s, const Rows& x, idx n) {
  constexpr idx kFew = 16, kFewPieces = 4, kMost = idx(1) << 24;  // vectors, pieces, floats that are worth the memory
  if (n < kFew || s.pieces < kFewPieces || n * s.size > kMost || x.packed(s.size)) return x;
  const Rows to{s.room<float>(n * s.size), s.size, nullptr};
  kernels().copy_rows(n, s.size, x, to);
  return to;
}

// Some rows of the matrix, or their transpose, as columns `step` apart.
struct MatrixRows {
  const float* a;
  idx step;
};
// With enough to do for them they are copied: from a far row to the next it is far.
MatrixRows rows_of_matrix(const Scores& s, idx row, idx rows, idx apart, float* copy) {
  if (!copy) return {s.w(row), s.classes};
  kernels().copy_rows(s.size, rows, Rows{s.w(row), s.classes, nullptr}, Rows{copy, apart, nullptr});
  return {copy, apart};
}

// Scores of some classes of a few examples, from number `first` on: exponentials take their place; the label's is the
// loss so far.
void take_scores(const Scores& s, const Examples& examples, idx row, idx rows, idx first, idx n, const Rows& scores,
                 Sum* sums, const Rows& losses) {
  for (idx k = 0; k < n; ++k) {
    float* const of_one = scores[k];
    examples.each(first + k, [&](idx e) {
      const idx label = s.labels[e] - row;
      if (label >= 0 && label < rows) losses[e][0] = of_one[label];
    });
    Sum& sum = sums[first + k];
    float* const scales = s.scales[examples[first + k]] + row / kClasses;
    in_parts(rows, kClasses, [&](idx at, idx some) {
      kernels().exp_below(some, of_one + at, of_one + at, &sum.largest, &sum.exps);
      scales[at / kClasses] = sum.largest;
    });
  }
}

void forward(const Call& c) {
  const Scores s(c);
  Examples examples(s);
  if (s.x.ptr) examples.unite([&](idx e) { return Pair{s.x[e], nullptr}; });
  const idx count = examples.count(), step = classes_at_once(count, kExamples), apart = columns_apart(step);
  const Rows x = in_order(s, examples.rows(s.x), count), losses = s.losses(c.y[kLoss]);
  const Rows bias = c.nargs == 3 ? c.x[kBias] : Rows{};
  float* const copy = step == kClasses ? s.room<float>(apart * s.size) : nullptr;
  Sum* const sums = s.room<Sum>(count);
  std::fill(sums, sums + count, Sum());
  const EqualParts parts(count, kExamples);
  in_parts(s.classes, step, [&](idx row, idx rows) {
    const MatrixRows w = rows_of_matrix(s, row, rows, apart, copy);
    const Rows add = bias.wanted() ? Rows{bias.base + row, 0, nullptr} : bias;
    for (idx p = 0; p < parts.parts; ++p) {
      const idx first = parts.first(p), n = parts.count(p);
      const Rows scores{s.scores(first) + row, s.classes, nullptr};
      gemm_rows(false, rows, n, s.size, w.a, w.step, x.from(first), add, false, scores);
      take_scores(s, examples, row, rows, first, n, scores, sums, losses);
    }
  });
  for (idx k = 0; k < count; ++k) {
    float* const scales = s.scales[examples[k]];
    sums[k].scale(s.pieces, scales);
    examples.each(k, [&](idx e) {
      losses[e][0] = sums[k].logsumexp() - losses[e][0];
      s.note(e, s.scores(k));
      if (s.scales[e] != scales) std::memcpy(s.scales[e], scales, static_cast<std::size_t>(s.pieces) * sizeof(float));
    });
  }
}

// The examples that a gradient flows into: programs that pad sentences multiply the losses of the rest by 0.
// Those of one vector and one gradient of it, dx if it is wanted, have one number.
Examples taking_part(const Scores& s, const Rows& dloss, const Rows& dx) {
  Examples examples(s);
  examples.keep([&](idx e) { return dloss[e][0] != 0; });
  bool own = true;
  for (idx k = 0; k < examples.count() && own; ++k) own = s.noted(examples[k]) == s.scores(examples[k]);
  if (!own) examples.unite([&](idx e) { return Pair{s.noted(e), dx.wanted() ? dx[e] : nullptr}; });
  return examples;
}

// Of each number the sum of its examples' gradients.
const float* summed(const Scores& s, const Rows& dloss, const Examples& taking) {
  float* const to = s.room<float>(taking.count());
  for (idx k = 0; k < taking.count(); ++k) {
    to[k] = 0;
    taking.each(k, [&](idx e) { to[k] += dloss[e][0]; });
  }
  return to;
}

// Examples of a piece, and where their exponentials lie, from the first class of the piece on.
struct Piece {
  idx first, n;
  float* exps[kExamplesBack];
};

// The exponentials of a piece come from far: they are asked for while the one before is at work, and their factors.
void set_piece(const Scores& s, const Examples& taking, idx row, const EqualParts& parts, idx p, Piece* piece) {
  piece->first = parts.first(p);
  piece->n = parts.count(p);
  for (idx k = 0; k < piece->n; ++k) {
    const idx one = taking[piece->first + k];
    piece->exps[k] = s.noted(one) + row;
    DNL_FETCH(s.scales[one] + row / kClasses);
  }
}

// d (softmax - 1 at the label), for some classes of some examples; their sums, the gradient of the bias, are added to
// db if it is wanted. `piece` is spent.
void score_gradients(const Scores& s, const Rows& dloss, const float* sums, const Examples& taking, idx row, idx rows,
                     Piece* piece, float* to, idx apart, float* db) {
  float factors[kExamplesBack];
  in_parts(rows, kClasses, [&](idx at, idx some) {
    for (idx k = 0; k < piece->n; ++k)
      factors[k] = sums[piece->first + k] * s.scales[taking[piece->first + k]][(row + at) / kClasses];
    kernels().scale_rows(piece->n, some, Rows{nullptr, 0, piece->exps}, factors, to + at, apart,
                         db ? db + row + at : nullptr);
    for (idx k = 0; k < piece->n; ++k) piece->exps[k] += some;
  });
  for (idx k = 0; k < piece->n; ++k, to += apart)
    taking.each(piece->first + k, [&](idx e) {
      const idx label = s.labels[e] - row;
      if (label < 0 || label >= rows) return;
      to[label] -= dloss[e][0];
      if (db) db[row + label] -= dloss[e][0];
    });
}

// Vectors whose examples have no number, or that of another.
void clear_others(const Scores& s, const Examples& taking) {
  const Rows dx = s.vectors(s.c.dx[kX]);
  for (idx e = 0, k = 0; e < s.examples; ++e) {
    if (k < taking.count() && taking[k] == e)
      ++k;
    else
      kernels().fill(s.size, 0.f, dx[e]);
  }
}

// Gradients of x, W and b, those of the latter where there is memory for them.
void gradients(const Call& c, bool to_x, float* dw, float* db) {
  const Scores s(c);
  const Rows dloss = s.losses(c.dy[kLoss]);
  const Rows all_dx = to_x ? s.vectors(c.dx[kX]) : Rows{};
  const Examples taking = taking_part(s, dloss, all_dx);
  const Rows dx = to_x ? taking.rows(all_dx) : Rows{};
  const float* const sums = summed(s, dloss, taking);
  if (to_x && !c.acc[kX] && taking.count() < s.examples) clear_others(s, taking);
  if (!taking.count()) return;
  const Rows x = dw ? in_order(s, taking.rows(s.x), taking.count()) : Rows{};
  const EqualParts parts(taking.count(), kExamplesBack);
  const idx step = classes_at_once(taking.count(), kExamplesBack), most = std::min(step, s.classes),
            apart = columns_apart(most);
  float* const scores = s.room<float>(apart * std::min(kExamplesBack, taking.count()));
  constexpr idx kMany = 16;  // examples that are worth transposing W for
  const bool transposes = to_x && taking.count() >= kMany;
  float* const wt = transposes ? c.scratch->alloc(transposed_size(most, s.size)) : nullptr;  // some rows of W
  Piece pieces[2];
  Piece *piece = pieces, *next = pieces + 1;
  set_piece(s, taking, 0, parts, 0, piece);
  in_parts(s.classes, step, [&](idx row, idx rows) {
    if (transposes) transpose_to(wt, rows, s.size, s.w(row), s.classes);
    const MatrixRows w = transposes ? MatrixRows{wt, columns_apart(s.size)} : MatrixRows{s.w(row), s.classes};
    for (idx p = 0; p < parts.parts; ++p) {
      const idx first = piece->first, n = piece->n;
      score_gradients(s, dloss, sums, taking, row, rows, piece, scores, apart, db);
      const Rows dy{scores, apart, nullptr};
      if (to_x) gemm_rows(!transposes, s.size, n, rows, w.a, w.step, dy, Rows{}, c.acc[kX] || row > 0, dx.from(first));
      const bool more = p + 1 < parts.parts;
      const idx next_row = more ? row : row + rows;
      NextOuter soon;
      if (next_row < s.classes) {
        set_piece(s, taking, next_row, parts, more ? p + 1 : 0, next);
        const bool whole = !more && next_row + rows <= s.classes;
        if (dw) soon = {Rows{nullptr, 0, next->exps}, x.from(next->first), next->n, whole ? dw + next_row : nullptr};
      }
      if (dw) gemm_outer(rows, s.size, n, dy, x.from(first), dw + row, s.classes, soon);
      std::swap(piece, next);
    }
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

const OpId affine_loss_id = register_op([](OpDef& op) {
  op.signature = "_affine_loss(x: expr, weights: exprs, v: index*)";
  op.doc =
      "pickneglogsoftmax(affine_transform([b, W, x]), v), or without b that of W * x: x {k}, weights [W, b] or [W], "
      "W {n,k}, b {n}.";
  op.args = {{"x", Batch::Stack, Access::Near}, each("weights", Batch::Share)};
  op.shape = shape;
  op.forward = forward;
  op.backward = backward;
  op.backward_shared = backward_shared;
  op.check = check;
  op.shared = Shared::WithStacked;
  op.family = "pickneglogsoftmax(scores)";
  op.composed = true;
  op.text = [](int nargs, const Word*, bool) -> std::string {
    return nargs == 3 ? "pickneglogsoftmax(affine_transform)" : "pickneglogsoftmax(matmul)";
  };
  op.unites_rows = true;
  op.keeps_addresses = true;
});

}  // namespace
}  // namespace dnl
