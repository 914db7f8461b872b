// inverse and logdet of square matrices, by LU factors with row exchanges, in double precision.
#include <cmath>

#include "kernels/gemm.h"
#include "kernels/kernels.h"
#include "op/op.h"

namespace dnl {
namespace {

// A = P^T L U of one n x n matrix; column-major, L below the diagonal.
class Factors {
 public:
  Factors(idx n, Scratch& scratch)
      : n_(n), a_(scratch.array<double>(n * n)), v_(scratch.array<double>(n)), row_(scratch.array<i32>(n)) {}

  void factor(const float* x) {
    for (idx i = 0; i < n_ * n_; ++i) a_[i] = x[i];
    for (idx k = 0; k < n_; ++k) {
      idx best = k;
      for (idx i = k + 1; i < n_; ++i)
        if (std::fabs(at(i, k)) > std::fabs(at(best, k))) best = i;
      row_[k] = static_cast<i32>(best);
      if (best != k)
        for (idx j = 0; j < n_; ++j) std::swap(at(k, j), at(best, j));
      if (at(k, k) == 0) continue;
      for (idx i = k + 1; i < n_; ++i) at(i, k) /= at(k, k);
      for (idx j = k + 1; j < n_; ++j) subtract(n_ - k - 1, at(k, j), &at(k + 1, k), &at(k + 1, j));
    }
  }
  double log_abs_det() const {
    double sum = 0;
    for (idx k = 0; k < n_; ++k) sum += std::log(std::fabs(a_[k * n_ + k]));
    return sum;
  }
  // The inverse, column by column; infinite or NaN when there is none.
  void inverse(float* y) {
    for (idx c = 0; c < n_; ++c) {
      for (idx i = 0; i < n_; ++i) v_[i] = i == c;
      for (idx k = 0; k < n_; ++k) std::swap(v_[k], v_[row_[k]]);
      for (idx k = 0; k < n_; ++k) subtract(n_ - k - 1, v_[k], &at(k, k) + 1, v_ + k + 1);
      for (idx k = n_; k-- > 0;) {
        v_[k] /= at(k, k);
        subtract(k, v_[k], &at(0, k), v_);
      }
      for (idx i = 0; i < n_; ++i) y[c * n_ + i] = static_cast<float>(v_[i]);
    }
  }

 private:
  double& at(idx i, idx j) { return a_[j * n_ + i]; }
  // to -= a x. Of numbers that do not overlap: else the compiler takes them one by one.
  static void subtract(idx n, double a, const double* __restrict__ x, double* __restrict__ to) {
    for (idx i = 0; i < n; ++i) to[i] -= x[i] * a;
  }
  idx n_;
  double *a_, *v_;
  i32* row_;
};

void need_square(const ShapeIn& in) { in.need(in[0].nd <= 2 && in[0].rows() == in[0].cols(), "needs a square matrix"); }

// f(member, offset of the matrix, batch element)
template <class F>
void each(const Call& c, F f) {
  const idx size = static_cast<idx>(c.arg_dim[0]->batch_size());
  for (int m = 0; m < c.members; ++m)
    for (idx e = 0; e < c.arg_dim[0]->bd; ++e) f(m, e * size, e);
}

const OpId inverse_id = register_op([](OpDef& op) {
  op.signature = "inverse(x: expr)";
  op.doc =
      "Inverse of a matrix.\n\n"
      "x {n,n} -> {n,n}. A matrix that has no inverse gives infinities or NaN. ValueError for other shapes.";
  op.args = {{"x"}};
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    need_square(in);
    return in[0];
  };
  op.forward = [](const Call& c) {
    Factors f(c.arg_dim[0]->rows(), *c.scratch);
    each(c, [&](int m, idx at, idx) {
      f.factor(c.x[0][m] + at);
      f.inverse(c.y[0][m] + at);
    });
  };
  op.backward = [](const Call& c) {  // dX = -Y^T dY Y^T
    if (!c.dx[0].wanted()) return;
    const idx n = c.arg_dim[0]->rows();
    float* t = c.scratch->alloc(n * n);
    each(c, [&](int m, idx at, idx) {
      const float* y = c.y[0][m] + at;
      gemm(true, false, n, n, n, 1.f, y, n, c.dy[0][m] + at, n, 0.f, t, n);
      gemm(false, true, n, n, n, -1.f, t, n, y, n, c.acc[0] ? 1.f : 0.f, c.dx[0][m] + at, n);
    });
  };
});

const OpId logdet_id = register_op([](OpDef& op) {
  op.signature = "logdet(x: expr)";
  op.doc =
      "Logarithm of the absolute value of a matrix's determinant.\n\n"
      "x {n,n} -> {1}; -inf if the determinant is 0. ValueError for other shapes.";
  op.args = {{"x"}};
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    need_square(in);
    return Dim({1}, in[0].bd);
  };
  op.forward = [](const Call& c) {
    Factors f(c.arg_dim[0]->rows(), *c.scratch);
    each(c, [&](int m, idx at, idx e) {
      f.factor(c.x[0][m] + at);
      c.y[0][m][e] = static_cast<float>(f.log_abs_det());
    });
  };
  op.backward = [](const Call& c) {  // dX = dy X^-T
    if (!c.dx[0].wanted()) return;
    const idx n = c.arg_dim[0]->rows();
    Factors f(n, *c.scratch);
    float* inv = c.scratch->alloc(n * n);
    each(c, [&](int m, idx at, idx e) {
      f.factor(c.x[0][m] + at);
      f.inverse(inv);
      kernels().scale(n * n, c.dy[0][m][e], inv);
      kernels().transpose(n, n, inv, c.dx[0][m] + at, c.acc[0]);
    });
  };
});

}  // namespace
}  // namespace dnl
