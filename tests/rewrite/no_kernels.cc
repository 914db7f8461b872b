// What ops call of the kernels, for programs in which nothing is computed: the plainest table, which knows the formulas
// by their numbers, and products that end the program.
#include <cstdlib>

#include "kernels/gemm.h"
#include "kernels/isa_tables.h"

namespace dnl {

const Kernels& kernels() { return *kBaselineKernels; }
void gemm(bool, bool, idx, idx, idx, float, const float*, idx, const float*, idx, float, float*, idx) { std::abort(); }
void gemm_rows(bool, idx, idx, idx, const float*, idx, const Rows&, const Rows&, bool, const Rows&) { std::abort(); }
void gemm_outer(idx, idx, idx, const Rows&, const Rows&, float*, idx, const NextOuter&) { std::abort(); }
BackRows unite_rows(idx, idx, const BackRows&) { std::abort(); }
idx rows_at_once(idx, idx) { std::abort(); }

}  // namespace dnl
