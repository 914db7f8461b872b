// logsumexp over a list, element by element, and along one dim.
//
// Stable for any numbers: all -inf gives -inf, an +inf gives +inf, and neither makes a gradient NaN.
#include <cmath>

#include "base/walk.h"
#include "kernels/kernels.h"
#include "op/op.h"

namespace dnl {
namespace {

const UnaryKernel& exp_kernel() {
  static const UnaryKernel* k = [] {
    const UnaryKernel* u = kernels().unary;
    while (std::strcmp(u->name, "exp")) ++u;
    return u;
  }();
  return *k;
}

// What is taken off before exp: m itself, or 0 where it is infinite (inf - inf has no value).
float finite_or_zero(float m) { return std::isinf(m) ? 0.f : m; }

// y[i] = log sum_k exp(row(k)[i]), over k rows of n numbers. scratch: 2 n numbers.
template <class R>
void rows_forward(idx k, idx n, R row, float* y, float* scratch) {
  float *shift = scratch, *term = scratch + n;
  for (idx i = 0; i < n; ++i) shift[i] = row(0)[i];
  for (idx j = 1; j < k; ++j) {
    const float* x = row(j);
    for (idx i = 0; i < n; ++i) shift[i] = x[i] > shift[i] ? x[i] : shift[i];
  }
  for (idx i = 0; i < n; ++i) shift[i] = finite_or_zero(shift[i]);
  kernels().fill(n, 0.f, y);
  for (idx j = 0; j < k; ++j) {
    const float* x = row(j);
    for (idx i = 0; i < n; ++i) term[i] = x[i] - shift[i];
    exp_kernel().fwd(n, term, term, nullptr);
    kernels().add(n, term, y);
  }
  for (idx i = 0; i < n; ++i) y[i] = shift[i] + std::log(y[i]);
}

// dx[i] (+)= dy[i] exp(x[i] - y[i])
void row_backward(idx n, const float* x, const float* y, const float* dy, float* dx, bool acc, float* scratch) {
  for (idx i = 0; i < n; ++i) scratch[i] = !std::isinf(y[i]) ? x[i] - y[i] : y[i] > 0 && x[i] == y[i] ? 0.f : -INFINITY;
  exp_kernel().fwd(n, scratch, scratch, nullptr);
  for (idx i = 0; i < n; ++i) dx[i] = (acc ? dx[i] : 0.f) + dy[i] * scratch[i];
}

// ---- a list -------------------------------------------------------------------------------------

ShapeOut list_shape(const ShapeIn& in) {
  for (int j = 1; j < in.nargs; ++j) in.need(in[j].like(in[0]), "all shapes must be equal");
  Dim y = in[0];
  y.bd = in.common_batch();
  return y;
}

// Batch element e of argument j of member m.
const float* item(const Call& c, int j, int m, idx e) { return c.x[j][m] + c.item(j, e); }

void list_forward(const Call& c) {
  const idx n = static_cast<idx>(c.out_dim[0].batch_size()), k = c.nargs;
  float* scratch = c.scratch->alloc(2 * n + k);
  for (int m = 0; m < c.members; ++m)
    for (idx e = 0; e < c.out_dim[0].bd; ++e) {
      float* y = c.y[0][m] + e * n;
      if (n < 4) {  // short rows: one by one, as columns
        for (idx i = 0; i < n; ++i) {
          for (idx j = 0; j < k; ++j) scratch[j] = item(c, static_cast<int>(j), m, e)[i];
          y[i] = kernels().logsumexp(k, scratch);
        }
      } else {
        rows_forward(k, n, [&](idx j) { return item(c, static_cast<int>(j), m, e); }, y, scratch);
      }
    }
}

void list_backward(const Call& c) {
  const idx n = static_cast<idx>(c.out_dim[0].batch_size());
  float* scratch = c.scratch->alloc(n);
  for (int j = 0; j < c.nargs; ++j) {
    if (!c.dx[j].wanted()) continue;
    const bool repeated = c.arg_dim[j]->bd == 1;
    for (int m = 0; m < c.members; ++m)
      for (idx e = 0; e < c.out_dim[0].bd; ++e)
        row_backward(n, item(c, j, m, e), c.y[0][m] + e * n, c.dy[0][m] + e * n, c.dx[j][m] + (repeated ? 0 : e * n),
                     c.acc[j] || (repeated && e > 0), scratch);
  }
}

const OpId logsumexp_id = register_op([](OpDef& op) {
  op.signature = "logsumexp(xs: exprs)";
  op.doc =
      "log(exp(e1) + exp(e2) + ...) of a list of expressions of one shape, element by element, without "
      "overflow.\n\n"
      "The result has this shape. Batch sizes must be equal or 1. ValueError for different shapes or an empty "
      "list.";
  op.args = {each("xs")};
  op.shape = list_shape;
  op.forward = list_forward;
  op.backward = list_backward;
});

// ---- along a dim --------------------------------------------------------------------------------

void dim_forward(const Call& c) {
  const Axis a(*c.arg_dim[0], c.key[0].u);
  float* scratch = c.scratch->alloc(2 * a.inner);
  for (int m = 0; m < c.members; ++m)
    for (idx o = 0; o < a.outer; ++o) {
      const float* x = c.x[0][m] + o * a.n * a.inner;
      float* y = c.y[0][m] + o * a.inner;
      if (a.inner == 1)
        *y = kernels().logsumexp(a.n, x);
      else
        rows_forward(a.n, a.inner, [&](idx k) { return x + k * a.inner; }, y, scratch);
    }
}

void dim_backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  const Axis a(*c.arg_dim[0], c.key[0].u);
  float* scratch = c.scratch->alloc(a.inner);
  for (int m = 0; m < c.members; ++m)
    for (idx o = 0; o < a.outer; ++o) {
      const idx x = o * a.n * a.inner, y = o * a.inner;
      if (a.inner == 1) {
        kernels().exp_shifted(a.n, c.x[0][m] + x, c.y[0][m][y], c.dy[0][m][y], c.dx[0][m] + x, c.acc[0]);
        continue;
      }
      for (idx k = 0; k < a.n; ++k)
        row_backward(a.inner, c.x[0][m] + x + k * a.inner, c.y[0][m] + y, c.dy[0][m] + y, c.dx[0][m] + x + k * a.inner,
                     c.acc[0], scratch);
    }
}

const OpId logsumexp_dim_id = register_op([](OpDef& op) {
  op.signature = "logsumexp_dim(x: expr, d: int = 0)";
  op.doc =
      "Logarithm of the sum of exponentials along dim d, which is removed; without overflow.\n\n"
      "{m,n} -> {n} with d=0, {m} with d=1; {n} -> {1}. ValueError if x has no dim d.";
  op.args = {{"x"}};
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    Dim y = in[0];
    y.remove(in.dim_at(0));
    return y;
  };
  op.forward = dim_forward;
  op.backward = dim_backward;
});

}  // namespace
}  // namespace dnl
