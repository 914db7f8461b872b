// The kernels compiled for any processor (vectors of 4). setup.py gives this file its own compiler flags.
//
// Everything but the table has internal linkage (isa_body.h tells why). The table is constant data: nothing of this
// file runs before dispatch.cc has looked at the processor. Who may include: nobody.
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/fetch.h"
#include "kernels/formula_info.h"
#include "kernels/isa_tables.h"

#define DNL_ISA_NAME "baseline"
namespace dnl {
namespace {
#include "kernels/simd_portable.h"
#include "kernels/isa_body.h"
}  // namespace
extern const Kernels* const kBaselineKernels = &kTable;
}  // namespace dnl
