// Matrix products: which shape goes to our small kernels, which to a BLAS, and which BLAS there is.
//
// OpenBLAS is linked (the library of the scipy-openblas32 wheel, whose names begin with scipy_). MKL is taken instead
// when libmkl_rt is found at run time on an Intel processor; DYNET_LITE_BLAS=openblas refuses it, =mkl asks for it on any
// processor. Either is held to one thread. The limits in use_own() were measured, see benchmarks and ARCHITECTURE.md.
// Does not: threads, batches of products, other types. Who may include: nobody.
#include "kernels/gemm.h"

#if defined(__unix__) || defined(__APPLE__)
#include <dlfcn.h>
#define DNL_HAS_DLOPEN 1
#endif

#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>

#include "kernels/kernels.h"

extern "C" {
void scipy_cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float* a, int lda,
                       const float* b, int ldb, float beta, float* c, int ldc);
void scipy_openblas_set_num_threads(int);
char* scipy_openblas_get_config(void);
char* scipy_openblas_get_corename(void);
}

namespace dnl {
namespace {

constexpr int kColMajor = 102, kNoTrans = 111, kTrans = 112;
using SgemmFn = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);

struct Blas {
  SgemmFn sgemm = nullptr;
  std::string description;
};

bool processor_is_intel() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_cpu_init();
  return __builtin_cpu_is("intel");
#else
  return false;
#endif
}

#ifdef DNL_HAS_DLOPEN
// The library is never closed: its functions are used until the process ends.
bool load_mkl(Blas& blas) {
  for (const char* name : {"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so", "libmkl_rt.dylib"}) {
    void* lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!lib) continue;
    auto sgemm = reinterpret_cast<SgemmFn>(dlsym(lib, "cblas_sgemm"));
    auto set_layer = reinterpret_cast<int (*)(int)>(dlsym(lib, "MKL_Set_Threading_Layer"));
    auto set_threads = reinterpret_cast<void (*)(int)>(dlsym(lib, "MKL_Set_Num_Threads"));
    auto version = reinterpret_cast<void (*)(char*, int)>(dlsym(lib, "MKL_Get_Version_String"));
    if (!sgemm) continue;
    if (set_layer) set_layer(1);  // MKL_THREADING_SEQUENTIAL
    if (set_threads) set_threads(1);
    char text[200] = "";
    if (version) version(text, static_cast<int>(sizeof text) - 1);
    blas.sgemm = sgemm;
    blas.description = "mkl";
    if (const char* v = std::strstr(text, "Version ")) blas.description += " " + std::string(v + 8).substr(0, 6);
    return true;
  }
  return false;
}
#else
bool load_mkl(Blas&) { return false; }
#endif

Blas load_blas() {
  Blas blas;
  const char* env = std::getenv("DYNET_LITE_BLAS");
  const std::string wish = env ? env : "";
  const bool try_mkl = wish == "mkl" || (wish != "openblas" && processor_is_intel());
  if (try_mkl && load_mkl(blas)) return blas;
  scipy_openblas_set_num_threads(1);
  blas.sgemm = scipy_cblas_sgemm;
  std::string config = scipy_openblas_get_config();  // "OpenBLAS 0.3.34  USE64BITINT ..."
  const std::size_t from = config.find(' ');
  const std::size_t to = from == std::string::npos ? from : config.find(' ', from + 1);
  blas.description = "openblas";
  if (from != std::string::npos) blas.description += " " + config.substr(from + 1, to - from - 1);
  blas.description += std::string(" ") + scipy_openblas_get_corename();
  return blas;
}

const Blas& blas() {
  static const Blas b = load_blas();
  return b;
}

}  // namespace

const char* blas_description() { return blas().description.c_str(); }

void gemm(bool trans_a, bool trans_b, idx m, idx n, idx k, float alpha, const float* a, idx lda, const float* b,
          idx ldb, float beta, float* c, idx ldc) {
  if (m <= 0 || n <= 0) return;
  if (k <= 0 || alpha == 0) {
    for (idx j = 0; j < n; ++j) {
      if (beta == 0) kernels().fill(m, 0.0f, c + j * ldc);
      else if (beta != 1) kernels().scale(m, beta, c + j * ldc);
    }
    return;
  }
  // BLAS checks leading dimensions even where there is one column and they mean nothing.
  const idx rows_a = trans_a ? k : m, rows_b = trans_b ? n : k;
  const int la = static_cast<int>(lda < rows_a ? rows_a : lda), lb = static_cast<int>(ldb < rows_b ? rows_b : ldb);
  const int lc = static_cast<int>(ldc < m ? m : ldc);
  blas().sgemm(kColMajor, trans_a ? kTrans : kNoTrans, trans_b ? kTrans : kNoTrans, static_cast<int>(m),
               static_cast<int>(n), static_cast<int>(k), alpha, a, la, b, lb, beta, c, lc);
}

}  // namespace dnl
