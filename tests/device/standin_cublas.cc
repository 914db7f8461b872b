// A stand-in for libcublas.so: the three functions that backends/cuda/cublas.cc calls. Products are put into the stream
// of the other stand-in (standin.cc), and run when that does.
//
// DYNET_LITE_STANDIN_PRODUCTS names a file that gets a line for each product when it is asked for: m n k and whether A
// and B are transposed. Built by tests/device/build.py. Includes: nothing of the project.
#include <cstdio>
#include <cstdlib>
#include <functional>

// Of standin.cc.
extern "C" void dnl_standin_queue(const std::function<void()>& task);

namespace {

enum : int { kOk = 0, kNotInitialized = 1, kInvalid = 7 };
void* g_stream = nullptr;

struct Matrix {
  const float* at;
  long step;
  bool transposed;
  float operator()(long i, long j) const { return transposed ? at[j + i * step] : at[i + j * step]; }
};

}  // namespace

extern "C" {

int cublasCreate_v2(void** handle) {
  static int one;
  *handle = &one;
  const char* refuses = std::getenv("DYNET_LITE_STANDIN_CUBLAS");
  return refuses && *refuses ? kNotInitialized : kOk;
}
int cublasSetStream_v2(void*, void* stream) {
  g_stream = stream;
  return kOk;
}
// As BLAS has it: by columns; what beta multiplies is not read if it is 0. In another order than the kernels' sums.
int cublasSgemm_v2(void*, int trans_a, int trans_b, int m, int n, int k, const float* alpha, const float* a, int lda,
                   const float* b, int ldb, const float* beta, float* c, int ldc) {
  if (!g_stream || m < 0 || n < 0 || k < 0 || lda < (trans_a ? k : m) || ldb < (trans_b ? n : k) || ldc < m)
    return kInvalid;
  if (const char* file = std::getenv("DYNET_LITE_STANDIN_PRODUCTS"))
    if (std::FILE* f = std::fopen(file, "a")) {
      std::fprintf(f, "%d %d %d %c%c\n", m, n, k, trans_a ? 'T' : 'N', trans_b ? 'T' : 'N');
      std::fclose(f);
    }
  const Matrix A{a, lda, trans_a != 0}, B{b, ldb, trans_b != 0};
  dnl_standin_queue([=, scale = *alpha, keep = *beta] {
    constexpr long kPart = 256;
    for (long j = 0; j < n; ++j)
      for (long i = 0; i < m; ++i) c[i + j * ldc] = keep == 0 ? 0.0f : keep * c[i + j * ldc];
    for (long i0 = 0; i0 < m; i0 += kPart)
      for (long l = k; l-- > 0;)
        for (long j = 0; j < n; ++j) {
          const float x = scale * B(l, j);
          for (long i = i0; i < m && i < i0 + kPart; ++i) c[i + j * ldc] += A(i, l) * x;
        }
  });
  return kOk;
}

}  // extern "C"
