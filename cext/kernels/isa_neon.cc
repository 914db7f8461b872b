// The kernels compiled for NEON, on 64-bit ARM processors.
//
// Everything but the table has internal linkage (isa_body.h tells why). The table is constant data. Who may include:
// nobody.
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/fetch.h"
#include "kernels/formula_info.h"
#include "kernels/isa_tables.h"

#if defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
#define DNL_ISA_NAME "neon"
namespace dnl {
namespace {
#include "kernels/simd_neon.h"
#include "kernels/isa_body.h"
}  // namespace
extern const Kernels* const kNeonKernels = &kTable;
}  // namespace dnl
#else
namespace dnl {
extern const Kernels* const kNeonKernels = nullptr;
}  // namespace dnl
#endif
