// constrained_softmax: softmax whose probabilities have upper bounds (Martins, Kreutzer: Learning what's easy, 2017).
#include "kernels/kernels.h"
#include "op/op.h"

#include <algorithm>
#include <cmath>

namespace dnl {
namespace {

ShapeOut shape(const ShapeIn& in) {
  in.need(in[0].is_vector() && in[0].like(in[1]), "needs two vectors of one size: scores and upper bounds");
  Dim y = in[0];
  y.bd = in.common_batch();
  return y;
}

// The result is min(u, e^x / Z). Entries whose bound is tightest relative to e^x are cut off one after another while
// their share of the remaining mass exceeds the bound. Room for n numbers each, n + 1 for rest.
struct Room {
  i32* rank;
  double *weight, *tight, *rest;
};
void solve(idx n, const float* x, const float* u, float* p, const Room& room) {
  const auto [rank, weight, tight, rest] = room;
  const float top = kernels().max(n, x), bound = kernels().max(n, u);
  if (!std::isfinite(top)) return kernels().softmax(n, x, p);
  if (std::isnan(bound)) return kernels().fill(n, bound, p);
  for (idx i = 0; i < n; ++i) {
    rank[i] = static_cast<i32>(i);
    weight[i] = std::exp(static_cast<double>(x[i]) - top);
    tight[i] = weight[i] > 0 ? u[i] / weight[i] : HUGE_VAL;
  }
  const double* key = tight;
  std::sort(rank, rank + n, [key](i32 a, i32 b) { return key[a] != key[b] ? key[a] < key[b] : a < b; });
  rest[n] = 0;
  for (idx k = n; k-- > 0;) rest[k] = rest[k + 1] + weight[rank[k]];
  double mass = 1;
  idx k = 0;
  for (; k < n; ++k) {
    const i32 i = rank[k];
    if (!(u[i] * rest[k] < weight[i] * mass)) break;
    p[i] = u[i];
    mass -= u[i];
  }
  const double left = rest[k] > 0 ? rest[k] : 1;  // where all that is left weighs nothing, it is 0
  for (; k < n; ++k) p[rank[k]] = static_cast<float>(weight[rank[k]] * std::max(mass, 0.0) / left);
}

void forward(const Call& c) {
  const idx n = c.arg_dim[0]->rows();
  Scratch& scratch = *c.scratch;
  const Room room{scratch.array<i32>(n), scratch.array<double>(n), scratch.array<double>(n),
                  scratch.array<double>(n + 1)};
  for (int m = 0; m < c.members; ++m)
    for (u32 e = 0; e < c.out_dim[0].bd; ++e) {
      const float* x = c.x[0][m] + (c.arg_dim[0]->bd == 1 ? 0 : e * n);
      const float* u = c.x[1][m] + (c.arg_dim[1]->bd == 1 ? 0 : e * n);
      solve(n, x, u, c.y[0][m] + e * n, room);
    }
}

// Bound entries pass dy to the bound, less what the free entries lose with the mass; free ones get a softmax gradient.
void backward(const Call& c) {
  const idx n = c.arg_dim[0]->rows();
  for (int m = 0; m < c.members; ++m)
    for (u32 e = 0; e < c.out_dim[0].bd; ++e) {
      const idx xat = c.arg_dim[0]->bd == 1 ? 0 : e * n, uat = c.arg_dim[1]->bd == 1 ? 0 : e * n;
      const float *u = c.x[1][m] + uat, *p = c.y[0][m] + e * n, *dy = c.dy[0][m] + e * n;
      double sum = 0, mass = 0;
      for (idx i = 0; i < n; ++i)
        if (p[i] != u[i]) {
          sum += static_cast<double>(p[i]) * dy[i];
          mass += p[i];
        }
      const float mean = mass > 0 ? static_cast<float>(sum / mass) : 0.f;
      const bool acc_x = c.acc[0] || xat != static_cast<idx>(e * n), acc_u = c.acc[1] || uat != static_cast<idx>(e * n);
      for (idx i = 0; i < n; ++i) {
        const bool bound = p[i] == u[i];
        const float dx = bound ? 0.f : p[i] * (dy[i] - mean), du = bound ? dy[i] - mean : 0.f;
        if (c.dx[0].wanted()) c.dx[0][m][xat + i] = acc_x ? c.dx[0][m][xat + i] + dx : dx;
        if (c.dx[1].wanted()) c.dx[1][m][uat + i] = acc_u ? c.dx[1][m][uat + i] + du : du;
      }
    }
}

const OpId constrained_softmax_id = register_op([](OpDef& op) {
  op.signature = "constrained_softmax(x: expr, y: expr)";
  op.doc =
      "Softmax with upper bounds: the distribution closest to softmax(x) in relative entropy, with no entry "
      "above that of y (Martins, Kreutzer, 2017).\n\n"
      "x {n}, y {n} -> {n}. Batch sizes must be equal or 1. The bounds y must not be negative. If their sum is "
      "below 1, the result is y. Entries of -inf become 0. ValueError for other shapes.";
  op.args = {{"x"}, {"y"}};
  op.shape = shape;
  op.forward = forward;
  op.backward = backward;
});

}  // namespace
}  // namespace dnl
