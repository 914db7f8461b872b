// Finding and loading a BLAS.
//
// OpenBLAS is the library of the scipy-openblas32 wheel, whose names begin with scipy_. It travels in the package's
// folder .libs and is loaded from there when first needed: a program whose products are all small never pays for it.
// Where there is no dlopen it is linked. MKL is taken instead when libmkl_rt is found on an Intel processor;
// DYNET_LITE_BLAS=openblas refuses it, =mkl asks for it on any processor. A build with DNL_SYSTEM_BLAS (setup.py,
// DYNET_LITE_BLAS=system) is linked with the BLAS of its machine and takes that instead of OpenBLAS's wheel.
#include "kernels/blas.h"

#if defined(__unix__) || defined(__APPLE__)
#include <dlfcn.h>
#define DNL_HAS_DLOPEN 1
#endif
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <optional>

#include "base/check.h"
#include "kernels/processor.h"

#ifdef DNL_SYSTEM_BLAS
extern "C" {
void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float* a, int lda,
                 const float* b, int ldb, float beta, float* c, int ldc);
#ifdef __ELF__  // there when the library is an OpenBLAS
__attribute__((weak)) void openblas_set_num_threads(int);
__attribute__((weak)) char* openblas_get_config(void);
__attribute__((weak)) char* openblas_get_corename(void);
#endif
}
#elif !defined(DNL_HAS_DLOPEN)
extern "C" {
void scipy_cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float* a, int lda,
                       const float* b, int ldb, float beta, float* c, int ldc);
void scipy_openblas_set_num_threads(int);
char* scipy_openblas_get_config(void);
char* scipy_openblas_get_corename(void);
}
#endif

namespace dnl {
namespace {

using SgemmFn = decltype(Blas::sgemm);
using SetThreads = void (*)(int);
using GetText = char* (*)();

bool mkl_is_wished() {
  const char* env = std::getenv("DYNET_LITE_BLAS");
  const std::string wish = env ? env : "";
  if (!wish.empty()) return wish == "mkl";
#if defined(DNL_SYSTEM_BLAS)
  return false;  // who built it has chosen
#else
  return processor().intel;
#endif
}

std::string openblas_text(GetText config_of, GetText core_of) {
  std::string text = "openblas";
  const std::string config = config_of ? config_of() : "";  // "OpenBLAS 0.3.34  USE64BITINT ..."
  const std::size_t from = config.find(' ');
  const std::size_t to = from == std::string::npos ? from : config.find(' ', from + 1);
  if (from != std::string::npos) text += " " + config.substr(from + 1, to - from - 1);
  return core_of ? text + " " + core_of() : text;
}

#ifdef DNL_HAS_DLOPEN
template <class Fn>
Fn symbol(void* library, const char* name) {
  return reinterpret_cast<Fn>(dlsym(library, name));
}

// The folder of this module, with a slash at its end; empty when nobody knows.
std::string own_folder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&own_folder), &info) || !info.dli_fname) return "";
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/') + 1);
}

// Where the mkl wheel puts its libraries: <environment>/lib, seen from
// <environment>/lib/pythonX.Y/site-packages/dynet_lite.
std::string environment_lib() {
  const std::string path = own_folder();
  const std::size_t at = path.find("/site-packages/");
  const std::size_t lib = at == std::string::npos || at == 0 ? std::string::npos : path.rfind('/', at - 1);
  return lib == std::string::npos ? "" : path.substr(0, lib + 1);
}

// Libraries are never closed: their functions are used until the process ends.
bool load_mkl(Blas& blas) {
  const std::string folder = environment_lib();
  for (const char* name :
       {"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so", "libmkl_rt.2.dylib", "libmkl_rt.dylib"}) {
    void* lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!lib && !folder.empty()) lib = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!lib) continue;
    const auto sgemm = symbol<SgemmFn>(lib, "cblas_sgemm");
    const auto set_layer = symbol<int (*)(int)>(lib, "MKL_Set_Threading_Layer");
    const auto set_threads = symbol<SetThreads>(lib, "MKL_Set_Num_Threads");
    const auto version = symbol<void (*)(char*, int)>(lib, "MKL_Get_Version_String");
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

#ifndef DNL_SYSTEM_BLAS
// A variable of the environment while OpenBLAS loads, which reads it once. What the user set comes back.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) {
      had_ = true;
      old_ = old;
    }
    setenv(name, value, 1);
  }
  ~Variable() { had_ ? setenv(name_, old_.c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::string old_;
  bool had_ = false;
};

// The kernels for matrix units of ARM (SME) are empty in the wheels of OpenBLAS 0.3.33 and 0.3.34: those for a core
// without them are taken, unless the user names one.
const char* core_to_ask_for() {
  if (const char* wished = std::getenv("OPENBLAS_CORETYPE")) return wished;
#if defined(__aarch64__) && defined(__linux__)
  if (getauxval(AT_HWCAP2) >> 23 & 1) return "NEOVERSEN1";  // HWCAP2_SME
#endif
  return nullptr;
}

// Does a library multiply? Products of 16 x 16 in all four ways, whole numbers, so that any order of addition gives the
// same.
bool multiplies(SgemmFn sgemm) {
  constexpr int kSize = 16, kNo = 111, kYes = 112, kColumns = 102;
  float a[kSize * kSize], b[kSize * kSize], c[kSize * kSize];
  for (const int of_a : {kNo, kYes})
    for (const int of_b : {kNo, kYes}) {
      for (int i = 0; i < kSize * kSize; ++i) {
        a[i] = static_cast<float>(i % 7 - 3);
        b[i] = static_cast<float>(i % 5 - 1);
        c[i] = 1;
      }
      sgemm(kColumns, of_a, of_b, kSize, kSize, kSize, 1.f, a, kSize, b, kSize, 1.f, c, kSize);
      for (int j = 0; j < kSize; ++j)
        for (int i = 0; i < kSize; ++i) {
          float sum = 1;
          for (int l = 0; l < kSize; ++l)
            sum += a[of_a == kNo ? i + kSize * l : l + kSize * i] * b[of_b == kNo ? l + kSize * j : j + kSize * l];
          if (c[i + kSize * j] != sum) return false;
        }
    }
  return true;
}

#ifdef __APPLE__
constexpr const char* kOpenBlas = "libscipy_openblas.dylib";
#else
constexpr const char* kOpenBlas = "libscipy_openblas.so";
#endif

void load_openblas(Blas& blas) {
  const Variable one_thread("OPENBLAS_NUM_THREADS", "1");
  std::optional<Variable> core;
  if (const char* name = core_to_ask_for()) core.emplace("OPENBLAS_CORETYPE", name);
  const std::string folder = own_folder();
  void* lib = nullptr;
  // The last: wherever the loader looks, the module's own rpath among others.
  for (const std::string& place : {folder + ".libs/", folder, std::string()})
    if (!lib) lib = dlopen((place + kOpenBlas).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (lib) blas.sgemm = symbol<SgemmFn>(lib, "scipy_cblas_sgemm");
  if (!blas.sgemm)
    fail(ErrorKind::Runtime,
         std::string("[gemm] ") + kOpenBlas + " of the package cannot be loaded from " + folder + ".libs");
  if (const auto set_threads = symbol<SetThreads>(lib, "scipy_openblas_set_num_threads")) set_threads(1);
  blas.description = openblas_text(symbol<GetText>(lib, "scipy_openblas_get_config"),
                                   symbol<GetText>(lib, "scipy_openblas_get_corename"));
  if (!multiplies(blas.sgemm))
    fail(ErrorKind::Runtime,
         "[gemm] " + blas.description +
             " multiplies wrongly on this processor; set OPENBLAS_CORETYPE to another core, such as "
             "ARMV8 on ARM or HASWELL on x86-64, and please report it");
}
#endif
#else
bool load_mkl(Blas&) { return false; }
#endif

#ifdef DNL_SYSTEM_BLAS
void load_openblas(Blas& blas) {
  blas.sgemm = cblas_sgemm;
  blas.description = "system";
#ifdef __ELF__
  if (openblas_set_num_threads) openblas_set_num_threads(1);
  if (openblas_get_config) blas.description += " " + openblas_text(openblas_get_config, openblas_get_corename);
#endif
}
#elif !defined(DNL_HAS_DLOPEN)
void load_openblas(Blas& blas) {
  scipy_openblas_set_num_threads(1);
  blas.sgemm = scipy_cblas_sgemm;
  blas.description = openblas_text(scipy_openblas_get_config, scipy_openblas_get_corename);
}
#endif

const Blas& mkl() {
  static const Blas found = [] {
    Blas b;
    if (mkl_is_wished()) load_mkl(b);
    return b;
  }();
  return found;
}

}  // namespace

bool blas_is_mkl() { return mkl().sgemm != nullptr; }

const Blas& blas() {
  if (blas_is_mkl()) return mkl();
  static const Blas openblas = [] {
    Blas b;
    load_openblas(b);
    return b;
  }();
  return openblas;
}

}  // namespace dnl
