// Matrix products: which shape goes to our small kernels, which to a BLAS, and which BLAS there is.
//
// OpenBLAS is linked (the library of the scipy-openblas32 wheel, whose names begin with scipy_). MKL is taken instead
// when libmkl_rt is found at run time on an Intel processor; DYNET_LITE_BLAS=openblas refuses it, =mkl asks for it on
// any processor. Either is held to one thread. The limits of who takes which shape were measured, see below. Does not:
// threads, batches of products, other types. Who may include: nobody.
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
  bool mkl = false;
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
// Where the mkl wheel puts its libraries: <environment>/lib, seen from
// <environment>/lib/pythonX.Y/site-packages/dynet_lite.
std::string environment_lib() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&scipy_openblas_set_num_threads), &info) || !info.dli_fname) return "";
  std::string path = info.dli_fname;
  const std::size_t at = path.find("/site-packages/");
  const std::size_t lib = at == std::string::npos ? at : path.rfind('/', at - 1);
  return lib == std::string::npos ? "" : path.substr(0, lib + 1);
}
// The library is never closed: its functions are used until the process ends.
bool load_mkl(Blas& blas) {
  const std::string folder = environment_lib();
  for (const char* name :
       {"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so", "libmkl_rt.2.dylib", "libmkl_rt.dylib"}) {
    void* lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!lib && !folder.empty()) lib = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL);
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
    blas.mkl = true;
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

// ---- who takes which shape ----------------------------------------------------------------------------------------
// Measured against OpenBLAS 0.3.34 on an AMD Zen 5 (its AVX2 kernels, which it picks there, and its SkylakeX ones),
// m, k in 20..10000 and n in 1..1000, by tests/kernels/bench/kernel_speed.cc. Against MKL nothing could be measured on
// an Intel processor, so only products with few columns, where a call costs more than the arithmetic, are taken from
// it.

enum class Own { None, Few, Most };
Own own_kernels() {
  static const Own own = [] {
    if (!std::strcmp(kernels().isa, "avx512")) return Own::Most;
    return !std::strcmp(kernels().isa, "avx2") ? Own::Few : Own::None;
  }();
  return own;
}

// Walking along a row of a matrix whose columns lie a multiple of 4 KiB apart hits few lines of the cache.
bool steps_on_pages(idx ld) { return ld % 1024 == 0; }

bool own_cols(idx m, idx n, idx k, idx lda, bool trans_b) {
  if (blas().mkl && n > 8) return false;
  switch (own_kernels()) {
    case Own::Most:
      if (trans_b) return k >= 8 && (lda <= 1024 || m * k <= (1 << 19));
      return k <= 512 || (k <= 1024 && n <= 64);
    case Own::Few: return !trans_b && n <= 64 && k <= 512 && !steps_on_pages(lda);
    case Own::None: return n == 1 && k <= 512 && !trans_b;
  }
  return false;
}
bool own_dots(idx n, idx k) {
  if (blas().mkl && n > 8) return false;
  switch (own_kernels()) {
    case Own::Most: return true;
    case Own::Few: return n <= 64 && k <= 2048;
    case Own::None: return n == 1;
  }
  return false;
}

}  // namespace

const char* blas_description() { return blas().description.c_str(); }

void gemm(bool trans_a, bool trans_b, idx m, idx n, idx k, float alpha, const float* a, idx lda, const float* b,
          idx ldb, float beta, float* c, idx ldc) {
  if (m <= 0 || n <= 0) return;
  if (k <= 0 || alpha == 0) {
    for (idx j = 0; j < n; ++j) {
      if (beta == 0)
        kernels().fill(m, 0.0f, c + j * ldc);
      else if (beta != 1)
        kernels().scale(m, beta, c + j * ldc);
    }
    return;
  }
  if (trans_a && !trans_b && own_dots(n, k)) return kernels().gemm_dots(m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  if (!trans_a && own_cols(m, n, k, lda, trans_b)) {
    const idx b_k = trans_b ? ldb : 1, b_j = trans_b ? 1 : ldb;
    constexpr idx kDepth = 1024;  // a deeper panel of A would leave the second-level cache
    for (idx p = 0; p < k; p += kDepth)
      kernels().gemm_cols(m, n, k - p < kDepth ? k - p : kDepth, alpha, a + p * lda, lda, b + p * b_k, b_k, b_j,
                          p ? 1.0f : beta, c, ldc);
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
