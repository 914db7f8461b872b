// Products with a matrix: matmul (the operator *) and affine_transform.
//
// A weight on the left is shared, so a whole batch is one GEMM; a left side that is computed per example is stacked and
// the batch is a loop of small products. Columns of a matrix argument and elements of a manual mini-batch are further
// columns of the same product.
#include "kernels/gemm.h"
#include "kernels/kernels.h"
#include "op/op.h"
#include "ops/both_gradients.h"
#include "ops/columns.h"
#include "ops/transposed.h"

namespace dnl {
namespace {

// One product of an affine map or a matmul: y (+)= W x, for all members.
// `per` columns a member (matrix columns times batch elements), where members are alike; `all` of all members.
struct Product {
  const Call& c;
  int jw, jx;
  idx m, k, per, all;
  Product(const Call& call, int w, int x)
      : c(call), jw(w), jx(x), m(call.arg_dim[w]->rows()), k(call.arg_dim[w]->cols()), per(call.out_size() / m) {
    all = c.members * per;
    if (!c.dims) return;
    all = 0;
    for (int i = 0; i < c.members; ++i) all += columns_of_member(i);
  }

  bool shared() const { return c.shared[jw] && c.arg_dim[jw]->bd == 1 && x_per() == per; }
  idx x_per() const { return static_cast<idx>(c.arg_size(jx)) / k; }

  // `add`, a row for each column, is added to it; acc: to what is there.
  void forward(const Rows& add, bool acc) const {
    const Rows y = columns(c.y[0], m);
    if (shared()) return gemm_rows(false, m, all, k, c.x[jw].base, m, columns(c.x[jx], k), add, acc, y);
    if (add.wanted()) (acc ? kernels().add_rows : kernels().copy_rows)(all, m, add, y);
    const float beta = acc || add.wanted() ? 1.f : 0.f;
    each([&](const One& p) { gemm(false, false, p.m, p.cols, p.k, 1.f, p.w, p.m, p.x, p.k, beta, p.y, p.m); });
  }
  // Gradients of x, of W if it is stacked or wanted here, and of a bias that takes part.
  void backward(float* db) const {
    if (forms_both()) return backward_both(db);
    backward_x();
    c.shared[jw] ? backward_shared_w() : backward_w();
  }
  bool forms_both() const { return shared() && c.dx[jw].wanted(); }
  // dx (+)= W^T dy
  void backward_x() const {
    if (!c.dx[jx].wanted()) return;
    if (shared()) return times_transposed(c, jw, all, columns(c.dy[0], m), Rows{}, c.acc[jx], columns(c.dx[jx], k));
    zero_unless_added(jx);
    each([&](const One& p) { gemm(true, false, p.k, p.cols, p.m, 1.f, p.w, p.m, p.y, p.m, 1.f, p.dx, p.k); }, c.dy[0]);
  }
  // Both at once, where the left side is shared and its gradient is wanted here.
  void backward_both(float* db) const {
    const Rows dx = c.dx[jx].wanted() ? columns(c.dx[jx], k) : Rows{};
    add_both_gradients(c, jw, 0, k, c.acc[jx], {all, columns(c.dy[0], m), columns(c.x[jx], k), dx}, db);
  }
  // dW (+)= dy x^T, for a left side that is not shared
  void backward_w() const {
    if (c.shared[jw] || !c.dx[jw].wanted()) return;
    zero_unless_added(jw);
    add_w();
  }
  // The same for a shared one: one product over all members.
  void backward_shared_w() const {
    if (!c.dx[jw].wanted()) return;
    if (shared()) return gemm_outer(m, k, all, columns(c.dy[0], m), columns(c.x[jx], k), c.dx[jw].base, m);
    add_w();
  }

 private:
  // Members that hold all their columns, n floats each.
  Rows columns(const Rows& r, idx n) const { return c.dims ? ragged_columns(r, n) : columns_of(c, r, n, per, per); }
  // The same where members have more or fewer. As a rule each member's begin where the last one's end.
  Rows ragged_columns(const Rows& r, idx n) const {
    float** p = c.scratch->array<float*>(static_cast<std::size_t>(all));
    idx at = 0;
    bool packed = true;
    for (int i = 0; i < c.members; ++i)
      for (idx col = 0, cols = columns_of_member(i); col < cols; ++col, ++at) {
        p[at] = r[i] + col * n;
        packed &= at == 0 || p[at] == p[at - 1] + n;
      }
    return packed ? Rows{p[0], n, nullptr} : Rows{nullptr, 0, p};
  }
  idx columns_of_member(int i) const { return static_cast<idx>(c.out(i).size()) / c.out(i).rows(); }
  void zero_unless_added(int j) const {
    if (c.acc[j]) return;
    for (int i = 0; i < c.members; ++i) kernels().fill(static_cast<idx>(c.arg(j, i).size()), 0.f, c.dx[j][i]);
  }
  void add_w() const {
    each([&](const One& p) { gemm(false, true, p.m, p.k, p.cols, 1.f, p.y, p.m, p.x, p.k, 1.f, p.dw, p.m); }, c.dy[0]);
  }
  // The product of one element of one member; y may be its gradient.
  struct One {
    idx m, k, cols;
    float *w, *x, *y, *dx, *dw;
  };
  // Member by member and batch element by batch element.
  template <class F>
  void each(F f) const {
    each(f, c.y[0]);
  }
  template <class F>
  void each(F f, const Rows& y) const {
    const idx bw = c.arg_dim[jw]->bd, bx = c.arg_dim[jx]->bd, b = c.out_dim[0].bd;
    const Rows none{};
    const Rows& dw = c.dx ? c.dx[jw] : none;
    const Rows& dx = c.dx ? c.dx[jx] : none;
    One p{m, k, per / b, nullptr, nullptr, nullptr, nullptr, nullptr};
    for (int i = 0; i < c.members; ++i) {
      if (c.dims) {
        p.m = c.arg(jw, i).rows();
        p.k = c.arg(jw, i).cols();
        p.cols = columns_of_member(i) / b;
      }
      for (idx e = 0; e < b; ++e) {
        const idx w_at = bw == 1 ? 0 : e * p.m * p.k, x_at = bx == 1 ? 0 : e * p.k * p.cols;
        p.w = c.x[jw][i] + w_at;
        p.x = c.x[jx][i] + x_at;
        p.y = y[i] + e * p.m * p.cols;
        p.dx = dx.wanted() ? dx[i] + x_at : nullptr;
        p.dw = dw.wanted() ? dw[i] + w_at : nullptr;
        f(p);
      }
    }
  }
};

Dim product_dim(const ShapeIn& in, int jw, int jx) {
  const Dim &w = in[jw], &x = in[jx];
  in.need(w.nd <= 2 && x.nd <= 2, "a product takes vectors and matrices (at most two dims)");
  if (w.cols() != x.rows() && (w.batch_size() == 1 || x.batch_size() == 1))
    in.bad("a number times an array is cmult(x, y)");
  if (w.nd == 1 && x.nd == 1 && w.cols() != x.rows())
    in.bad("the product of two vectors is none; element by element it is cmult(x, y), a number dot_product(x, y)");
  in.need(w.cols() == x.rows(), "columns of the left side must equal rows of the right side");
  Dim out = x.nd == 2 ? Dim{w.rows(), x.cols()} : Dim{w.rows()};
  out.bd = in.common_batch();
  return out;
}

// A weight by matrices of any number of columns: keys of sources. Or a matrix of each member's own by vectors, or by as
// many columns, of each member's own: weighted sums of columns, and scores of rows.
bool sizes_that_may_differ(const ShapeIn& in, const bool* shared, Dim* arg) {
  if (shared[0]) {
    arg[1].d[1] = 0;
    return in[1].nd == 2 && !shared[1];
  }
  if (shared[1] || in[0].nd != 2) return false;
  arg[0].d[0] = arg[0].d[1] = arg[1].d[0] = 0;
  return true;
}

// ---- matmul --------------------------------------------------------------------------------------------------

const OpId matmul_id = register_op([](OpDef& op) {
  op.signature = "matmul(x: expr, y: expr)";
  op.doc =
      "Matrix product of x and y; the operators * and @ call it.\n\n"
      "{m,k} * {k} -> {m}; {m,k} * {k,n} -> {m,n}. Batch sizes must be equal or 1. ValueError for other shapes.";
  op.args = {{"x", Batch::Weight, Access::Near}, {"y", Batch::Stack, Access::Near}};
  op.shape = [](const ShapeIn& in) -> ShapeOut { return product_dim(in, 0, 1); };
  op.forward = [](const Call& c) { Product(c, 0, 1).forward(Rows{}, false); };
  op.backward = [](const Call& c) { Product(c, 0, 1).backward(nullptr); };
  op.backward_shared = [](const Call& c, int) { Product(c, 0, 1).backward_shared_w(); };
  op.joinable = true;
  op.shared = Shared::EitherWay;
  op.ragged = sizes_that_may_differ;
  op.in_kernels = true;
});

// ---- affine_transform ------------------------------------------------------------------------------------------

ShapeOut affine_shape(const ShapeIn& in) {
  in.need(in.nargs % 2 == 1, "takes a bias and pairs of a matrix and a vector (an odd number of arguments)");
  if (in.nargs == 1) return in[0];
  Dim out = product_dim(in, 1, 2);
  for (int j = 3; j < in.nargs; j += 2) {
    const Dim d = product_dim(in, j, j + 1);
    in.need(d.like(out), "all products must have the same shape");
  }
  in.need(in[0].like(out) || (in[0].is_vector() && in[0].rows() == out.rows()),
          "the bias must have as many rows as the products (one column, or the same shape)");
  if (out.cols() == 1) {  // of one column a vector, unlike in a product: as in DyNet
    const u32 b = out.bd;
    out = Dim{out.rows()};
    out.bd = b;
  }
  return out;
}

// Is the bias a column for each batch element, beside products of several columns?
bool column_per_element(const Call& c) { return c.arg_dim[0]->bd > 1 && c.arg_size(0) < c.out_size(); }

// The bias as a row for each column: it is repeated over columns and batch elements.
Rows repeated_bias(const Call& c) {
  const idx m = c.out_dim[0].rows(), per = static_cast<idx>(c.out_size()) / m,
            own = static_cast<idx>(c.arg_size(0)) / m;
  if (!column_per_element(c)) return columns_of(c, c.x[0], m, own, per);
  float** p = c.scratch->array<float*>(static_cast<std::size_t>(c.members * per));
  for (int i = 0; i < c.members; ++i)
    for (idx col = 0; col < per; ++col) p[i * per + col] = c.x[0][i] + col / (per / own) * m;
  return Rows{nullptr, 0, p};
}

void affine_forward(const Call& c) {
  if (c.nargs == 1) return kernels().copy_rows(c.members, c.out_size(), c.x[0], c.y[0]);
  for (int j = 1; j < c.nargs; j += 2) Product(c, j, j + 1).forward(j == 1 ? repeated_bias(c) : Rows{}, j > 1);
}

void add_bias_gradient(const Call& c) {
  const idx out = c.out_size(), b = c.arg_size(0);
  const Rows &dy = c.dy[0], &db = c.dx[0];
  if (column_per_element(c)) {
    const idx m = c.out_dim[0].rows(), element = static_cast<idx>(c.out_dim[0].batch_size());
    for (int i = 0; i < c.members; ++i)
      for (u32 e = 0; e < c.out_dim[0].bd; ++e)
        kernels().sum_rows(element / m, m, Rows{dy[i] + e * element, m, nullptr}, db[i] + e * m,
                           c.shared[0] || c.acc[0]);
    return;
  }
  if (c.shared[0] && dy.packed(out))
    return kernels().sum_rows(c.members * (out / b), b, Rows{dy.base, b}, db.base, true);
  for (int i = 0; i < c.members; ++i)
    for (idx at = 0; at < out; at += b) {
      if (at == 0 && !c.acc[0])
        copy(static_cast<idx>(b), dy[i], db[i]);
      else
        kernels().add(b, dy[i] + at, db[i]);
    }
}

const OpId affine_id = register_op([](OpDef& op) {
  op.signature = "affine_transform(exprs: exprs)";
  op.doc =
      "b + W1 * x1 + W2 * x2 + ..., given as the list [b, W1, x1, W2, x2, ...].\n\n"
      "Wi {m,ki} times xi {ki} gives {m}, and times xi {ki,n} gives {m,n}. b has the shape of the products or "
      "is one column {m}, which is added to every column. Batch sizes must be equal or 1. ValueError for other "
      "shapes, or a list of even length.";
  op.args = {{"b", Batch::Weight}, each("w", Batch::Weight, Access::Near), each("x", Batch::Stack, Access::Near)};
  op.shape = affine_shape;
  op.forward = affine_forward;
  op.backward = [](const Call& c) {
    // The bias of one product takes part in that, since sums of rows that meet one vector are those of fewer.
    const bool in_product = c.nargs == 3 && c.shared[0] && c.dx[0].wanted() && Product(c, 1, 2).forms_both() &&
                            c.arg_size(0) == c.arg_dim[1]->rows();
    if (c.dx[0].wanted() && !in_product) add_bias_gradient(c);
    for (int j = 1; j < c.nargs; j += 2) Product(c, j, j + 1).backward(in_product ? c.dx[0].base : nullptr);
  };
  op.backward_shared = [](const Call& c, int wrt) {
    wrt > 0 ? Product(c, wrt, wrt + 1).backward_shared_w() : add_bias_gradient(c);
  };
  op.joinable = true;
  op.shared = Shared::EitherWay;
  op.in_kernels = true;
});

}  // namespace
}  // namespace dnl
