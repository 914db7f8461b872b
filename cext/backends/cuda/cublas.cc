#include "backends/cuda/cublas.h"

#include <cstdlib>

#include "backends/cuda/library.h"

namespace dnl::cuda {
namespace {

#if defined(_WIN32)
constexpr const char* kNames[] = {"cublas64_13.dll", "cublas64_12.dll"};
#else
constexpr const char* kNames[] = {"libcublas.so.13", "libcublas.so.12"};
#endif

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}
const float* on_gpu(DeviceAddress at) { return reinterpret_cast<const float*>(static_cast<std::uintptr_t>(at)); }

}  // namespace

bool Cublas::start(const std::string& name, Handle stream) {
  void* const library = open_library(name.c_str());
  if (!library) return false;
  Status (*create)(Handle*) = nullptr;
  Status (*set_stream)(Handle, Handle) = nullptr;
  const bool whole = take_symbol(library, "cublasCreate_v2", &create) &&
                     take_symbol(library, "cublasSetStream_v2", &set_stream) &&
                     take_symbol(library, "cublasSgemm_v2", &sgemm_);
  return whole && create(&handle_) == 0 && set_stream(handle_, stream) == 0;
}

std::unique_ptr<Cublas> Cublas::open(Handle stream, const std::string& file) {
  std::unique_ptr<Cublas> found(new Cublas);
  const std::string wish = variable("DYNET_LITE_LIBCUBLAS");
  if (wish == "none") return nullptr;
  if (!wish.empty()) return found->start(wish, stream) ? std::move(found) : nullptr;
  if (!variable("DYNET_LITE_LIBCUDA").empty()) return nullptr;  // a stand-in's memory is not that of a GPU
  for (const char* name : kNames)
    if (found->start(name, stream)) return found;
  return !file.empty() && found->start(file, stream) ? std::move(found) : nullptr;
}

void Cublas::run(const Gemm& g) const {
  const Status status = sgemm_(handle_, g.transposed_a, g.transposed_b, g.m, g.n, g.k, &g.alpha, on_gpu(g.a), g.lda,
                               on_gpu(g.b), g.ldb, &g.beta, const_cast<float*>(on_gpu(g.c)), g.ldc);
  if (status != 0) fail(ErrorKind::Runtime, "[cuda] cuBLAS: a product failed with status " + std::to_string(status));
}

}  // namespace dnl::cuda
