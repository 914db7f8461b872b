// Products of a tensor of three dims with vectors (bilinear maps): contract3d_1d, contract3d_1d_1d.
//
// Both are one matrix product: the tensor, seen as a matrix, times y, or times the outer product of z and y. So a batch
// over a shared tensor is one GEMM. The forms with a bias are composites in dynet_lite/ops.py.
#include "kernels/gemm.h"
#include "kernels/kernels.h"
#include "op/op.h"

namespace dnl {
namespace {

// Y (columns of `rows` numbers) = X (rows by `inner`) times V (columns of `inner` numbers): a column for each member
// and batch element. The columns of V are computed by the ops below into scratch memory.
struct Contract {
  const Call& c;
  idx rows, inner, batch, columns;
  bool shared;
  explicit Contract(const Call& call)
      : c(call),
        rows(static_cast<idx>(call.out_dim[0].batch_size())),
        inner(static_cast<idx>(call.arg_dim[0]->batch_size()) / rows),
        batch(call.out_dim[0].bd),
        columns(batch * call.members),
        shared(call.shared[0] && call.arg_dim[0]->bd == 1) {}

  float* columns_of(idx n) const { return c.scratch->alloc(static_cast<std::size_t>(n * columns)); }
  // f(member, batch element, column)
  template <class F>
  void each(F f) const {
    for (int m = 0; m < c.members; ++m)
      for (idx e = 0; e < batch; ++e) f(m, e, m * batch + e);
  }
  void product(const float* v__ck) const {
    if (shared)
      return gemm(false, false, rows, columns, inner, 1.f, c.x[0].base, rows, v__ck, inner, 0.f, c.y[0].base, rows);
    each([&](int m, idx e, idx k) {
      gemm(false, false, rows, 1, inner, 1.f, c.x[0][m] + c.item(0, e), rows, v__ck + k * inner, inner, 0.f,
           c.y[0][m] + e * rows, rows);
    });
  }
  // dv__ck = X^T dY
  void backward_v(float* dv__ck) const {
    if (shared)
      return gemm(true, false, inner, columns, rows, 1.f, c.x[0].base, rows, c.dy[0].base, rows, 0.f, dv__ck, inner);
    each([&](int m, idx e, idx k) {
      gemm(true, false, inner, 1, rows, 1.f, c.x[0][m] + c.item(0, e), rows, c.dy[0][m] + e * rows, rows, 0.f,
           dv__ck + k * inner, inner);
    });
  }
  // dX += dY V^T
  void add_backward_x(const float* v__ck) const {
    if (shared)
      return gemm(false, true, rows, inner, columns, 1.f, c.dy[0].base, rows, v__ck, inner, 1.f, c.dx[0].base, rows);
    each([&](int m, idx e, idx k) {
      gemm(false, true, rows, inner, 1, 1.f, c.dy[0][m] + e * rows, rows, v__ck + k * inner, inner, 1.f,
           c.dx[0][m] + c.item(0, e), rows);
    });
  }
  // dx[j] (+)= a column's gradient, for every column
  void give(int j, idx n, const float* d__cn) const {
    each([&](int m, idx e, idx k) {
      const bool repeated = c.arg_dim[j]->bd == 1;
      kernels().scale_to(n, 1.f, d__cn + k * n, c.dx[j][m] + c.item(j, e), c.acc[j] || (repeated && e > 0));
    });
  }
  void clear_x() const {
    if (c.acc[0]) return;
    for (int m = 0; m < c.members; ++m) kernels().fill(c.arg_size(0), 0.f, c.dx[0][m]);
  }
};

// ---- one vector ---------------------------------------------------------------------------------

float* vectors(const Contract& t) {
  float* v = t.columns_of(t.inner);
  t.each([&](int m, idx e, idx k) { copy(t.inner, t.c.x[1][m] + t.c.item(1, e), v + k * t.inner); });
  return v;
}

const OpId contract3d_1d_id = register_op([](OpDef& op) {
  op.signature = "contract3d_1d(x: expr, y: expr)";
  op.doc =
      "Product of a tensor and a vector: the sum over l of x[i,j,l] y[l].\n\n"
      "x {m,n,k}, y {k} -> {m,n}. Batch sizes must be equal or 1. ValueError for other shapes.";
  op.args = {{"x", Batch::Weight}, {"y"}};
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    in.need(in[0].nd <= 3 && in[1].is_vector() && in[0][2] == in[1].rows(), "needs a tensor {m,n,k} and a vector {k}");
    return Dim({in[0].rows(), in[0].cols()}, in.common_batch());
  };
  op.forward = [](const Call& c) {
    const Contract t(c);
    t.product(vectors(t));
  };
  op.backward = [](const Call& c) {
    const Contract t(c);
    if (!c.shared[0] && c.dx[0].wanted()) {
      t.clear_x();
      t.add_backward_x(vectors(t));
    }
    if (!c.dx[1].wanted()) return;
    float* dv = t.columns_of(t.inner);
    t.backward_v(dv);
    t.give(1, t.inner, dv);
  };
  op.backward_shared = [](const Call& c, int) {
    const Contract t(c);
    t.add_backward_x(vectors(t));
  };
  op.in_kernels = true;
});

// ---- two vectors --------------------------------------------------------------------------------

// Columns z y^T, n by k.
float* outer_products(const Contract& t) {
  const idx nz = t.c.arg_dim[2]->rows(), ny = t.c.arg_dim[1]->rows();
  float* v = t.columns_of(t.inner);
  t.each([&](int m, idx e, idx k) {
    const float *y = t.c.x[1][m] + t.c.item(1, e), *z = t.c.x[2][m] + t.c.item(2, e);
    gemm(false, true, nz, ny, 1, 1.f, z, nz, y, ny, 0.f, v + k * t.inner, nz);
  });
  return v;
}

const OpId contract3d_1d_1d_id = register_op([](OpDef& op) {
  op.signature = "contract3d_1d_1d(x: expr, y: expr, z: expr)";
  op.doc =
      "Product of a tensor and two vectors: the sum over j and l of x[i,j,l] y[l] z[j].\n\n"
      "x {m,n,k}, y {k}, z {n} -> {m}. Batch sizes must be equal or 1. ValueError for other shapes.";
  op.args = {{"x", Batch::Weight}, {"y"}, {"z"}};
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    in.need(in[0].nd <= 3 && in[1].is_vector() && in[0][2] == in[1].rows() && in[2].is_vector() &&
                in[0].cols() == in[2].rows(),
            "needs a tensor {m,n,k} and vectors {k} and {n}");
    return Dim({in[0].rows()}, in.common_batch());
  };
  op.forward = [](const Call& c) {
    const Contract t(c);
    t.product(outer_products(t));
  };
  op.backward = [](const Call& c) {
    const Contract t(c);
    if (!c.shared[0] && c.dx[0].wanted()) {
      t.clear_x();
      t.add_backward_x(outer_products(t));
    }
    if (!c.dx[1].wanted() && !c.dx[2].wanted()) return;
    const idx nz = c.arg_dim[2]->rows(), ny = c.arg_dim[1]->rows();
    float *dv = t.columns_of(t.inner), *dy = t.columns_of(ny), *dz = t.columns_of(nz);
    t.backward_v(dv);
    t.each([&](int m, idx e, idx k) {
      const float *y = c.x[1][m] + c.item(1, e), *z = c.x[2][m] + c.item(2, e), *d = dv + k * t.inner;
      gemm(true, false, ny, 1, nz, 1.f, d, nz, z, nz, 0.f, dy + k * ny, ny);
      gemm(false, false, nz, 1, ny, 1.f, d, nz, y, ny, 0.f, dz + k * nz, nz);
    });
    if (c.dx[1].wanted()) t.give(1, ny, dy);
    if (c.dx[2].wanted()) t.give(2, nz, dz);
  };
  op.backward_shared = [](const Call& c, int) {
    const Contract t(c);
    t.add_backward_x(outer_products(t));
  };
  op.in_kernels = true;
});

}  // namespace
}  // namespace dnl
