// The GPU's kernel table: the functions of kernels/kernels.h and the products of kernels/gemm.h, each of which writes
// records instead of computing. Ops that are written in these alone run on the GPU as they are.
//
// Functions that give a number back wait for the GPU. Addresses are the GPU's, but where a function takes a few
// numbers from the host (attributes, states of exp_below) they are read at once.
// Who may include: backends/cuda, tests. Includes: recorder.h, kernels/, op/backend.h.
#pragma once
#include "backends/cuda/recorder.h"
#include "kernels/formula_info.h"
#include "kernels/gemm.h"
#include "kernels/kernels.h"
#include "op/backend.h"

namespace dnl::cuda {

// Records go to this one from now on.
void use(Recorder* recorder);
const Kernels& table();
const Products& products();

// A call begins: of one that failed nothing is left.
void begin_call();
// It is over: what waited for its next part is recorded.
void end_call();
// What ops and the backend record besides.
Recorder& recorder();
// What a formula says of itself.
const FormulaInfo& formula_info(bool binary, int id);
// Of k rows of n numbers no two meet.
bool rows_apart(idx k, idx n, const Rows& rows);
void fill_rows(idx k, idx n, float v, const Rows& y);
// One number of each array, all in one launch; waits for the GPU.
Vec<double> reduce(device::Reduction what, std::size_t k, const Numbers* arrays);
// Of all of them the factor that brings their norm down to `most`, and the norm; does not wait.
void clip_factor(std::size_t k, const Numbers* arrays, double most, float* to);

}  // namespace dnl::cuda
