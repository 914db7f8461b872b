// Which kernel table runs here: the best that both the build and the processor have.
//
// DYNET_LITE_ISA=baseline|avx2|avx512|neon asks for a lesser one (for tests and comparisons; an unknown or impossible
// name is ignored). Who may include: nobody.
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "base/tls.h"
#include "kernels/gemm.h"
#include "kernels/isa_tables.h"
#include "kernels/kernels.h"
#include "kernels/processor.h"

namespace dnl {
namespace {

DNL_QUICK_TLS thread_local const Kernels* t_kernels = nullptr;
DNL_QUICK_TLS thread_local const Products* t_products = nullptr;

const Kernels* choose() {
  const char* wish = std::getenv("DYNET_LITE_ISA");
  if (const Kernels* k = wish ? kernels_for(wish) : nullptr) return k;
  for (const char* isa : {"avx512", "avx2", "neon"})
    if (const Kernels* k = kernels_for(isa)) return k;
  return kBaselineKernels;
}

}  // namespace

const Kernels* kernels_for(const char* isa) {
  if (!std::strcmp(isa, "baseline")) return kBaselineKernels;
  if (!std::strcmp(isa, "avx2")) return processor().avx2 ? kAvx2Kernels : nullptr;
  if (!std::strcmp(isa, "avx512")) return processor().avx512 ? kAvx512Kernels : nullptr;
  if (!std::strcmp(isa, "neon")) return kNeonKernels;  // every 64-bit ARM has it
  return nullptr;
}

const Kernels& host_kernels() {
  static const Kernels* const chosen = choose();
  return *chosen;
}

const Kernels& kernels() { return t_kernels ? *t_kernels : host_kernels(); }
const Products* other_products() { return t_products; }

UseKernels::UseKernels(const Kernels& kernels, const Products& products) {
  t_kernels = &kernels;
  t_products = &products;
}
UseKernels::~UseKernels() {
  t_kernels = nullptr;
  t_products = nullptr;
}

}  // namespace dnl
