// The kernel tables of the isa_*.cc, for dispatch.cc alone. Null: this build has no such code.
//
// Includes: kernels.h.
#pragma once
#include "kernels/kernels.h"

namespace dnl {

extern const Kernels* const kBaselineKernels;
extern const Kernels* const kAvx2Kernels;
extern const Kernels* const kAvx512Kernels;
extern const Kernels* const kNeonKernels;

}  // namespace dnl
