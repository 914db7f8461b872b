// One-dimensional convolutions: filter1d_narrow over the columns of a matrix, circular ones of vectors.
#include "kernels/gemm.h"
#include "kernels/kernels.h"
#include "op/op.h"

namespace dnl {
namespace {

void clear_unless_added(const Call& c, int j) {
  if (c.acc[j]) return;
  for (int m = 0; m < c.members; ++m) kernels().fill(c.arg_size(j), 0.f, c.dx[j][m]);
}

// ---- filter1d_narrow ----------------------------------------------------------------------------

// y {k,t}: for each column of the filter one product; the columns of x under it begin at that column.
struct Narrow {
  const Call& c;
  idx rows, width, filters, places;
  explicit Narrow(const Call& call)
      : c(call),
        rows(call.arg_dim[0]->rows()),
        width(call.arg_dim[1]->cols()),
        filters((*call.arg_dim[1])[2]),
        places(call.out_dim[0].cols()) {}
  // f(x, filter, y, ...) as offsets, for every batch element and filter column.
  template <class F>
  void each(F f) const {
    for (idx e = 0; e < c.out_dim[0].bd; ++e)
      for (idx j = 0; j < width; ++j) f(c.item(0, e) + j * rows, c.item(1, e) + j * rows, e * filters * places, j);
  }
  void forward() const {
    for (int m = 0; m < c.members; ++m)
      each([&](idx x, idx f, idx y, idx j) {
        gemm(true, false, filters, places, rows, 1.f, c.x[1][m] + f, rows * width, c.x[0][m] + x, rows, j ? 1.f : 0.f,
             c.y[0][m] + y, filters);
      });
  }
  void backward_x() const {
    if (!c.dx[0].wanted()) return;
    clear_unless_added(c, 0);
    for (int m = 0; m < c.members; ++m)
      each([&](idx x, idx f, idx y, idx) {
        gemm(false, false, rows, places, filters, 1.f, c.x[1][m] + f, rows * width, c.dy[0][m] + y, filters, 1.f,
             c.dx[0][m] + x, rows);
      });
  }
  void add_backward_f() const {
    for (int m = 0; m < c.members; ++m)
      each([&](idx x, idx f, idx y, idx) {
        gemm(false, true, rows, filters, places, 1.f, c.x[0][m] + x, rows, c.dy[0][m] + y, filters, 1.f, c.dx[1][m] + f,
             rows * width);
      });
  }
};

const OpId filter1d_id = register_op([](OpDef& op) {
  op.signature = "filter1d_narrow(x: expr, y: expr)";
  op.doc =
      "Moves filters over the columns of a matrix, wherever they fit, and sums the products.\n\n"
      "x {r,n}, y {r,w} -> {1,n-w+1}; with k filters, y {r,w,k} -> {k,n-w+1}. Batch sizes must be equal or 1. "
      "ValueError for other shapes, or if w > n.";
  op.args = {{"x"}, {"y", Batch::Weight}};
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    const Dim &x = in[0], &f = in[1];
    in.need(x.nd <= 2 && f.nd <= 3, "needs a matrix {r,n} and filters {r,w,k}");
    in.need(x.rows() == f.rows(), "x and the filters must have the same number of rows");
    in.need(f.cols() <= x.cols(), "the filters are wider than x");
    return Dim({f[2], x.cols() - f.cols() + 1}, in.common_batch());
  };
  op.forward = [](const Call& c) { Narrow(c).forward(); };
  op.backward = [](const Call& c) {
    Narrow(c).backward_x();
    if (c.shared[1] || !c.dx[1].wanted()) return;
    clear_unless_added(c, 1);
    Narrow(c).add_backward_f();
  };
  op.backward_shared = [](const Call& c, int) { Narrow(c).add_backward_f(); };
  op.in_kernels = true;
});

// ---- circular convolution and correlation -------------------------------------------------------

// y[k] = sum_j u[j] v[(k - j) mod n] and y[k] = sum_j u[j] v[(k + j) mod n]. A vector turned by j is two runs.
// to[i] += a v[(i + by) mod n]
void add_turned(idx n, float a, const float* v, idx by, float* to) {
  kernels().axpy(n - by, a, v + by, to);
  kernels().axpy(by, a, v, to + (n - by));
}
// sum_i a[i] v[(i + by) mod n]
float dot_turned(idx n, const float* a, const float* v, idx by) {
  return kernels().dot(n - by, a, v + by) + kernels().dot(by, a + (n - by), v);
}

ShapeOut circular_shape(const ShapeIn& in) {
  in.need(in[0].is_vector() && in[0].like(in[1]), "needs two vectors of one length");
  Dim y = in[0];
  y.bd = in.common_batch();
  return y;
}

template <bool kCorr>
void circular_forward(const Call& c) {
  const idx n = c.out_dim[0].rows();
  for (int m = 0; m < c.members; ++m)
    for (idx e = 0; e < c.out_dim[0].bd; ++e) {
      const float *u = c.x[0][m] + c.item(0, e), *v = c.x[1][m] + c.item(1, e);
      float* y = c.y[0][m] + e * n;
      kernels().fill(n, 0.f, y);
      for (idx j = 0; j < n; ++j) add_turned(n, u[j], v, kCorr ? j : (n - j) % n, y);
    }
}

template <bool kCorr>
void circular_backward(const Call& c) {
  const idx n = c.out_dim[0].rows();
  for (int j = 0; j < 2; ++j)
    if (c.dx[j].wanted()) clear_unless_added(c, j);
  for (int m = 0; m < c.members; ++m)
    for (idx e = 0; e < c.out_dim[0].bd; ++e) {
      const float *u = c.x[0][m] + c.item(0, e), *v = c.x[1][m] + c.item(1, e), *dy = c.dy[0][m] + e * n;
      for (idx j = 0; j < n; ++j) {
        const idx by = kCorr ? j : (n - j) % n;
        if (c.dx[0].wanted()) (c.dx[0][m] + c.item(0, e))[j] += dot_turned(n, dy, v, by);
        if (c.dx[1].wanted()) add_turned(n, u[j], dy, (n - by) % n, c.dx[1][m] + c.item(1, e));
      }
    }
}

const OpId circ_conv_id = register_op([](OpDef& op) {
  op.signature = "circ_conv(u: expr, v: expr)";
  op.doc =
      "Circular convolution of two vectors: y[k] is the sum over j of u[j] v[(k - j) mod n].\n\n"
      "u {n}, v {n} -> {n}. Batch sizes must be equal or 1. ValueError for other shapes.";
  op.args = {{"u"}, {"v"}};
  op.shape = circular_shape;
  op.forward = circular_forward<false>;
  op.backward = circular_backward<false>;
});

const OpId circ_corr_id = register_op([](OpDef& op) {
  op.signature = "circ_corr(u: expr, v: expr)";
  op.doc =
      "Circular correlation of two vectors: y[k] is the sum over j of u[j] v[(k + j) mod n].\n\n"
      "u {n}, v {n} -> {n}. Batch sizes must be equal or 1. ValueError for other shapes.";
  op.args = {{"u"}, {"v"}};
  op.shape = circular_shape;
  op.forward = circular_forward<true>;
  op.backward = circular_backward<true>;
});

}  // namespace
}  // namespace dnl
