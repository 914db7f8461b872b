// Margin losses: hinge, one label per vector, and hinge_dim, one label per row or column of a matrix.
#include "kernels/kernels.h"
#include "op/op.h"
#include "ops/labels.h"

namespace dnl {
namespace {

// A row or column with its label: n numbers at distance `step`.
struct Line {
  idx n, step;
  i32 label;
};

// sum over j != label of max(0, margin - x[label] + x[j]); NaN in x gives NaN.
float hinge(const Line& l, const float* x, float margin) {
  const float base = margin - x[l.label * l.step];
  double sum = 0;
  for (idx j = 0; j < l.n; ++j) {
    const float over = base + x[j * l.step];
    if (j != l.label && !(over <= 0)) sum += over;
  }
  return static_cast<float>(sum);
}

// Every violating j gets d, the label -d for each of them. Adds.
void hinge_gradient(const Line& l, const float* x, float margin, float d, float* dx) {
  const float base = margin - x[l.label * l.step];
  idx violations = 0;
  for (idx j = 0; j < l.n; ++j)
    if (j != l.label && base + x[j * l.step] > 0) {
      dx[j * l.step] += d;
      ++violations;
    }
  dx[l.label * l.step] -= d * static_cast<float>(violations);
}

// Member words: number of labels, the labels, the margin. Walks the labels of a member; f(line, offset in x, which
// label).
template <class F>
void each_line(const Call& c, int m, u32 d, F f) {
  const Dim& x = *c.arg_dim[0];
  const Word* labels = c.member[m] + 1;
  const idx rows = x.rows(), slices = static_cast<idx>(c.out_size()), per = slices / x.bd;
  for (idx k = 0; k < slices; ++k) {
    const idx e = k / per, i = k % per;
    const idx at = e * static_cast<idx>(x.batch_size()) + (d == 0 ? i * rows : i);
    f(Line{x[d], d == 0 ? 1 : rows, labels[k].i}, at, k);
  }
}

float margin_of(const Word* member) { return member[1 + member[0].u].f; }

void forward(const Call& c, u32 d) {
  for (int m = 0; m < c.members; ++m)
    each_line(c, m, d,
              [&](const Line& l, idx at, idx k) { c.y[0][m][k] = hinge(l, c.x[0][m] + at, margin_of(c.member[m])); });
}

void backward(const Call& c, u32 d) {
  if (!c.dx[0].wanted()) return;
  for (int m = 0; m < c.members; ++m) {
    if (!c.acc[0]) kernels().fill(static_cast<idx>(c.arg_size(0)), 0.f, c.dx[0][m]);
    each_line(c, m, d, [&](const Line& l, idx at, idx k) {
      hinge_gradient(l, c.x[0][m] + at, margin_of(c.member[m]), c.dy[0][m][k], c.dx[0][m] + at);
    });
  }
}

const OpId hinge_id = register_op([](OpDef& op) {
  op.signature = "hinge(x: expr, v: index*, m: float* = 1.0)";
  op.doc =
      "Hinge loss of the label v: the sum over all other j of max(0, m - x[v] + x[j]) (Weston, Watkins, 1999).\n\n"
      "x {n}, v a label -> {1}; x {n} X b, v a list of b labels -> {1} X b. ValueError for other shapes, "
      "IndexError if a label is not in 0..n-1.";
  op.args = {{"x"}};
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    in.need(in[0].is_vector(), "needs a vector");
    return Dim({1}, in[0].bd);
  };
  op.forward = [](const Call& c) { forward(c, 0); };
  op.backward = [](const Call& c) { backward(c, 0); };
  op.check = [](const ShapeIn& in, const Word* member) { check_labels(in, member, in[0].bd, in[0].rows()); };
});

const OpId hinge_dim_id = register_op([](OpDef& op) {
  op.signature = "hinge_dim(x: expr, v: index*, d: int = 0, m: float* = 1.0)";
  op.doc =
      "hinge() of each column (d=0) or row (d=1) of a matrix, with a label for each.\n\n"
      "x {r,c}: with d=0 v has c labels in 0..r-1, and the result is {c}; with d=1 v has r labels in 0..c-1, "
      "and the result is {r}. A mini-batch of b takes b times as many labels, one batch element after another. "
      "ValueError for other shapes, IndexError if a label is out of range.";
  op.args = {{"x"}};
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    in.need(in[0].nd <= 2, "needs a matrix (at most two dims)");
    in.need(in.key[0].i == 0 || in.key[0].i == 1, "the dim d must be 0 or 1");
    return Dim({in[0][in.key[0].i == 0 ? 1 : 0]}, in[0].bd);
  };
  op.forward = [](const Call& c) { forward(c, static_cast<u32>(c.key[0].i)); };
  op.backward = [](const Call& c) { backward(c, static_cast<u32>(c.key[0].i)); };
  op.check = [](const ShapeIn& in, const Word* member) {
    const u32 d = static_cast<u32>(in.key[0].i);
    check_labels(in, member, in[0][1 - d] * in[0].bd, in[0][d]);
  };
});

}  // namespace
}  // namespace dnl
