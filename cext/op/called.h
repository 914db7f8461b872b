// What messages about wrong arguments call an op: what its text() says, if that is a function; its function; or what
// programs write instead of one.
// Who may include: op/, ops/, bindings/. Includes: op/.
#pragma once
#include <string>

#include "op/op.h"

namespace dnl {

inline std::string called(const OpDef& op) {
  static const struct {
    const char *op, *written;
  } operators[] = {{"add", "x + y"},       {"sub", "x - y"},        {"negate", "-x"},
                   {"add_const", "x + c"}, {"scale", "c * x"},      {"const_minus", "c - x"},
                   {"const_div", "c / x"}, {"pow_const", "x ** c"}, {"const_pow", "c ** x"}};
  for (const auto& o : operators)
    if (op.name == o.op) return o.written;
  return op.function_name();
}

inline std::string called(const ShapeIn& in) {
  return in.op.text && !in.op.composed ? in.op.text(in.nargs, in.key, false) : called(in.op);
}

}  // namespace dnl
