// What messages about wrong arguments call an op: what its text() says, if that is a function; what programs write
// instead of one; or its function.
// Who may include: op/, ops/, bindings/. Includes: op/.
#pragma once
#include <string>

#include "op/op.h"

namespace dnl {

inline std::string called(const OpDef& op) { return op.written ? op.written : op.function_name(); }

inline std::string called(const ShapeIn& in) {
  return in.op.text && !in.op.composed ? in.op.text(in.nargs, in.key, false) : called(in.op);
}

}  // namespace dnl
