// The card's kernel table: the functions of kernels/kernels.h and the products of kernels/gemm.h, each of which writes
// records instead of computing. Ops that are written in these alone run on the card as they are.
//
// Functions that give a number back wait for the card. Addresses are the card's, but where a function takes a few
// numbers from the host (attributes, states of exp_below) they are read at once.
// Who may include: backends/cuda, tests. Includes: recorder.h, kernels/.
#pragma once
#include "backends/cuda/recorder.h"
#include "kernels/gemm.h"
#include "kernels/kernels.h"

namespace dnl::cuda {

// Records go to this one from now on.
void use(Recorder* recorder);
const Kernels& table();
const Products& products();

// For the backend: rows of `to` may repeat.
void add_rows(Recorder& r, std::ptrdiff_t k, std::ptrdiff_t n, const Rows& from, const Rows& to);

}  // namespace dnl::cuda
