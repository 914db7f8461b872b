// The program of a fused node as a formula, for people: cmult(logistic(x0), tanh(x1)).
// Who may include: ops/fused.cc. Includes: op/.
#pragma once
#include "op/op.h"

namespace dnl {

// Unless it is to be whole, what stands deepest is left out of a long one.
std::string fused_text(int nargs, const Word* key, bool whole);

}  // namespace dnl
