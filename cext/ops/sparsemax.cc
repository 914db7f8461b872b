// sparsemax and its loss: the projection of a vector onto the probability simplex (Martins, Astudillo: From softmax to
// sparsemax, 2016). Column by column and batch element by batch element.
#include "kernels/kernels.h"
#include "op/op.h"
#include "ops/labels.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace dnl {
namespace {

// p = projection of z, both n numbers; `sorted` is room for n. Returns the threshold tau.
// NaN gives NaN everywhere; entries of -inf give 0; +inf ones share the mass; nothing but -inf gives zeros.
double project(idx n, const float* z, float* p, float* sorted) {
  const float top = kernels().max(n, z);
  if (std::isnan(top)) {
    kernels().fill(n, top, p);
    return top;
  }
  if (std::isinf(top)) {
    const idx count = top > 0 ? std::count(z, z + n, top) : 1;
    for (idx i = 0; i < n; ++i) p[i] = top > 0 && z[i] == top ? 1.f / static_cast<float>(count) : 0.f;
    return top;
  }
  std::copy(z, z + n, sorted);
  std::sort(sorted, sorted + n, std::greater<float>());
  // The support is the longest prefix with 1 + k z_k > sum of the first k; relative to the top for precision.
  double sum = 0, tau = 0;
  for (idx k = 1; k <= n; ++k) {
    const double zk = static_cast<double>(sorted[k - 1]) - top;
    if (!(1 + k * zk > sum + zk)) break;
    sum += zk;
    tau = (sum - 1) / static_cast<double>(k);
  }
  for (idx i = 0; i < n; ++i) p[i] = static_cast<float>(std::max(0.0, static_cast<double>(z[i]) - top - tau));
  return tau + top;
}

void sparsemax_forward(const Call& c) {
  const idx n = c.arg_dim[0]->rows(), lines = static_cast<idx>(c.out_size()) / n;
  float* sorted = c.scratch->alloc(n);
  for (int m = 0; m < c.members; ++m)
    for (idx o = 0; o < lines; ++o) project(n, c.x[0][m] + o * n, c.y[0][m] + o * n, sorted);
}

// On the support: dy minus its mean there; elsewhere 0.
void sparsemax_backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  const idx n = c.arg_dim[0]->rows(), lines = static_cast<idx>(c.out_size()) / n;
  for (int m = 0; m < c.members; ++m)
    for (idx o = 0; o < lines; ++o) {
      const float *p = c.y[0][m] + o * n, *dy = c.dy[0][m] + o * n;
      float* dx = c.dx[0][m] + o * n;
      double sum = 0;
      idx support = 0;
      for (idx i = 0; i < n; ++i)
        if (p[i] != 0) {
          sum += dy[i];
          ++support;
        }
      const float mean = support ? static_cast<float>(sum / static_cast<double>(support)) : 0.f;
      for (idx i = 0; i < n; ++i) {
        const float d = p[i] != 0 ? dy[i] - mean : 0.f;
        dx[i] = c.acc[0] ? dx[i] + d : d;
      }
    }
}

const OpId sparsemax_id = register_op([](OpDef& op) {
  op.signature = "sparsemax(x: expr)";
  op.doc =
      "Projection of x onto the probability simplex: a softmax many of whose entries are exactly 0 (Martins, "
      "Astudillo, 2016).\n\n"
      "Any shape, normalised along the first dim; the result has the same shape.";
  op.args = {{"x"}};
  op.shape = [](const ShapeIn& in) -> ShapeOut { return in[0]; };
  op.forward = sparsemax_forward;
  op.backward = sparsemax_backward;
});

// ---- the loss ------------------------------------------------------------------------------------------------

// Member words: number of target labels, then the labels, distinct. Hidden output: sparsemax(x).
ShapeOut loss_shape(const ShapeIn& in) {
  in.need(in[0].is_vector(), "needs a vector");
  return ShapeOut(Dim({1}, in[0].bd)).hidden(in[0]);
}

void loss_check(const ShapeIn& in, const Word* member) {
  if (member[0].u == 0) in.bad("needs at least one target label");
  check_labels(in, member, member[0].u, in[0].rows());
  for (u32 k = 0; k < member[0].u; ++k)
    for (u32 j = 0; j < k; ++j)
      if (member[1 + j].u == member[1 + k].u) in.bad("target labels must be distinct");
}

// With q uniform over the targets: sum over the support of (z^2 - tau^2) / 2, minus q z, plus q q / 2. It does not
// change when z is shifted, so z is taken relative to tau: on the support z is then p, and tau is 0.
void loss_forward(const Call& c) {
  const idx n = c.arg_dim[0]->rows();
  float* sorted = c.scratch->alloc(n);
  for (int m = 0; m < c.members; ++m) {
    const idx k = c.member[m][0].i;
    for (u32 e = 0; e < c.arg_dim[0]->bd; ++e) {
      const float* z = c.x[0][m] + e * n;
      float* p = c.y[1][m] + e * n;
      const double tau = project(n, z, p, sorted);
      double loss = 0.5 / static_cast<double>(k);
      for (idx i = 0; i < n; ++i) loss += 0.5 * p[i] * p[i];
      for (idx i = 0; i < k; ++i) loss -= (z[c.member[m][1 + i].i] - tau) / static_cast<double>(k);
      c.y[0][m][e] = static_cast<float>(std::max(loss, 0.0));
    }
  }
}

// sparsemax(x) - q
void loss_backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  const idx n = c.arg_dim[0]->rows();
  for (int m = 0; m < c.members; ++m) {
    const idx k = c.member[m][0].i;
    for (u32 e = 0; e < c.arg_dim[0]->bd; ++e) {
      const float d = c.dy[0][m][e];
      float* dx = c.dx[0][m] + e * n;
      kernels().scale_to(n, d, c.y[1][m] + e * n, dx, c.acc[0]);
      for (idx i = 0; i < k; ++i) dx[c.member[m][1 + i].i] -= d / static_cast<float>(k);
    }
  }
}

const OpId sparsemax_loss_id = register_op([](OpDef& op) {
  op.signature = "sparsemax_loss(x: expr, v: index*)";
  op.doc =
      "The loss that goes with sparsemax(): its gradient is sparsemax(x) minus a distribution that is uniform "
      "over the labels v (Martins, Astudillo, 2016, section 3).\n\n"
      "x {n} -> {1}. v is a label or a list of distinct labels, the same for all batch elements. ValueError for "
      "other shapes, IndexError if a label is not in 0..n-1.";
  op.args = {{"x"}};
  op.shape = loss_shape;
  op.forward = loss_forward;
  op.backward = loss_backward;
  op.check = loss_check;
});

}  // namespace
}  // namespace dnl
