// Calls of the CPU in parts (op/intra_op.h): some members each; of a cell that has one member, the elements of its
// mini-batch.
//
// Each part has scratch memory of its own, and adds up gradients of shared arguments in memory of its own, but the
// first; these are added in order, so that a run with n threads is deterministic. Who may include: backends/cpu/.
// Includes: op/.
#pragma once
#include <memory>

#include "op/intra_op.h"

namespace dnl {

std::unique_ptr<IntraOp> intra_op_of_cpu();

}  // namespace dnl
