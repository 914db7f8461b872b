// The kernels compiled for AVX2 and FMA. setup.py gives this file its own compiler flags.
//
// Everything but the table has internal linkage (isa_body.h tells why). The table is constant data: nothing of this
// file runs before dispatch.cc has looked at the processor. Who may include: nobody.
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/fetch.h"
#include "kernels/formula_info.h"
#include "kernels/isa_tables.h"

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define DNL_ISA_NAME "avx2"
namespace dnl {
namespace {
#include "kernels/simd_avx2.h"
#include "kernels/isa_body.h"
}  // namespace
extern const Kernels* const kAvx2Kernels = &kTable;
}  // namespace dnl
#else
namespace dnl {
extern const Kernels* const kAvx2Kernels = nullptr;
}  // namespace dnl
#endif
