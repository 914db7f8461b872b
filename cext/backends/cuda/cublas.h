// NVIDIA's library for matrix products, cuBLAS, where it is found when it is first wanted: nothing is linked.
//
// DYNET_LITE_LIBCUBLAS names the file ("none": do without); else it is what the system has, or the file that came with
// the choice of the GPU. Who may include: backends/cuda. Includes: driver.h, base/.
#pragma once
#include <memory>
#include <string>

#include "backends/cuda/driver.h"

namespace dnl::cuda {

// C = alpha A B + beta C, all by columns: A is m x k, B k x n, each as it is or transposed. Addresses are the GPU's.
struct Gemm {
  bool transposed_a, transposed_b;
  int m, n, k;
  float alpha, beta;
  DeviceAddress a, b, c;
  int lda, ldb, ldc;
};

class Cublas {
 public:
  // Null where there is none, or none that starts with this driver. The GPU's context is the thread's.
  static std::unique_ptr<Cublas> open(Handle stream, const std::string& file);
  // Throws Error(Runtime) when it fails.
  void run(const Gemm& g) const;

 private:
  using Status = int;  // 0: no error
  Cublas() = default;
  bool start(const std::string& name, Handle stream);

  Status (*sgemm_)(Handle, int trans_a, int trans_b, int m, int n, int k, const float* alpha, const float* a, int lda,
                   const float* b, int ldb, const float* beta, float* c, int ldc) = nullptr;
  Handle handle_ = nullptr;  // lives as long as the process
};

}  // namespace dnl::cuda
