// Single-precision matrix products, column-major, one thread.
//
// Dispatches by shape between our own small kernels and a BLAS (blas.h). Columns that are Rows lie anywhere: our
// kernels read and write them there, for a BLAS they are copied. Rows that are the same memory are multiplied once.
// Thread-safe. Who may include: ops/, backends/, exec/ (what was copied), bindings/. Includes: base/rows.h.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/product_counts.h"
#include "base/rows.h"

namespace dnl {

using idx = std::ptrdiff_t;

// C = alpha * op(A) op(B) + beta * C. op(A) is m x k, op(B) is k x n, C is m x n; lda, ldb, ldc are distances between
// columns in floats. beta == 0 never reads C.
void gemm(bool trans_a, bool trans_b, idx m, idx n, idx k, float alpha, const float* a, idx lda, const float* b,
          idx ldb, float beta, float* c, idx ldc);

// Row j of c, m floats, is op(A) times row j of b, k floats, plus row j of add (may be not wanted; at distance 0 one
// for all), plus what c held when acc; then rows of c may repeat or overlap. n rows. Other operands do not overlap c.
void gemm_rows(bool trans_a, idx m, idx n, idx k, const float* a, idx lda, const Rows& b, const Rows& add, bool acc,
               const Rows& c);

// C, m x n, += the sum over k rows of row r of y, m floats, times row r of x, n floats, transposed. `next`: what the
// caller needs soon; it may be fetched meanwhile.
void gemm_outer(idx m, idx n, idx k, const Rows& y, const Rows& x, float* c, idx ldc,
                const NextOuter& next = NextOuter{});

// Another arithmetic's products, with the contracts of the functions above.
struct Products {
  void (*gemm)(bool trans_a, bool trans_b, idx m, idx n, idx k, float alpha, const float* a, idx lda, const float* b,
               idx ldb, float beta, float* c, idx ldc);
  void (*gemm_rows)(bool trans_a, idx m, idx n, idx k, const float* a, idx lda, const Rows& b, const Rows& add,
                    bool acc, const Rows& c);
  void (*gemm_outer)(idx m, idx n, idx k, const Rows& y, const Rows& x, float* c, idx ldc);
};

// While one of these lives, ops of its thread that compute with kernels() and products() use a backend's own.
struct Kernels;
class UseKernels {
 public:
  UseKernels(const Kernels& kernels, const Products& products);
  ~UseKernels();
  UseKernels(const UseKernels&) = delete;
  UseKernels& operator=(const UseKernels&) = delete;
};
// Those of this thread; null: the functions above compute themselves.
const Products* other_products();

// What flows back through products of one matrix: row i of dy, m floats, into row i of x, whose gradient is row i of
// dx, if that is wanted. n rows.
struct BackRows {
  idx n;
  Rows dy, x, dx;

  BackRows some(idx first, idx count) const { return {count, dy.from(first), x.from(first), dx.from(first)}; }
};
// Rows of x, of k floats, that are one in memory, and whose gradients are one, are one row now, with the sum of what
// flows into them. The result is good until the next call in this thread.
BackRows unite_rows(idx m, idx k, const BackRows& r);
// So many rows that sums of some of them need little memory.
idx rows_at_once(idx m, idx k);

// Of this thread so far.
ProductCounts product_counts();

// The distance between columns, of so many rows, of a copy that products read as their left matrix, in memory that
// begins with a line of the cache: whole lines, so that no vector lies in two of them, but multiples of large powers of
// 2 would put many columns into few sets of the caches.
inline idx columns_apart(idx rows) {
  constexpr idx kLine = 16, kFewSets = 8;  // floats of a line; lines
  if (rows <= kLine) return rows;
  const idx lines = (rows + kLine - 1) / kLine;
  return (lines % kFewSets ? lines : lines + 1) * kLine;
}

// "openblas 0.3.34 SkylakeX", "mkl 2026.2": what products that our own kernels leave run on.
const char* blas_description();

}  // namespace dnl
