// The BLAS that large products go to: found and loaded at the first call that needs it.
//
// MKL when it is found at run time and not refused (DYNET_LITE_BLAS), else the OpenBLAS shipped with the package;
// either on one thread. Thread-safe. Who may include: gemm.cc. Includes: standard library only.
#pragma once
#include <string>

namespace dnl {

struct Blas {
  // op(A) is m x k, op(B) is k x n; column-major, C = alpha op(A) op(B) + beta C.
  void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float* a, int lda,
                const float* b, int ldb, float beta, float* c, int ldc) = nullptr;
  std::string description;  // "openblas 0.3.34 SkylakeX", "mkl 2026.2"
};

// Loads it at the first call. Throws Error(Runtime) when there is none.
const Blas& blas();
// Is it MKL? Does not load OpenBLAS to know.
bool blas_is_mkl();

}  // namespace dnl
