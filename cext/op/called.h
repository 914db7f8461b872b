// What messages about wrong arguments call an op: what its text() says, if that is a function, or its function.
// Who may include: op/, ops/. Includes: op/.
#pragma once
#include <string>

#include "op/op.h"

namespace dnl {

inline std::string called(const ShapeIn& in) {
  return in.op.text && !in.op.composed ? in.op.text(in.nargs, in.key, false) : in.op.function_name();
}

}  // namespace dnl
