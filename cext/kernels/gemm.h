// Single-precision matrix products, column-major, one thread: C = alpha * op(A) op(B) + beta * C.
//
// Dispatches by shape between our own small kernels and a BLAS (MKL when it is found at run time and not refused,
// else the OpenBLAS shipped with the package). beta == 0 never reads C. Thread-safe.
// Who may include: ops/, backends/. Includes: standard library only.
#pragma once
#include <cstddef>

namespace dnl {

using idx = std::ptrdiff_t;

// op(A) is m x k, op(B) is k x n, C is m x n; lda, ldb, ldc are distances between columns in floats.
void gemm(bool trans_a, bool trans_b, idx m, idx n, idx k, float alpha, const float* a, idx lda, const float* b,
          idx ldb, float beta, float* c, idx ldc);

// "openblas 0.3.34 SkylakeX", "mkl 2026.2": what products run on.
const char* blas_description();

}  // namespace dnl
