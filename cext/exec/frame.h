// Runner::CallFrame: a Call and the arrays it points to, how rows are recognised as regular, and the error of a
// validity check.
// Who may include: exec/ only; NotFiniteError also bindings/.
#pragma once
#include "exec/runner.h"

namespace dnl {

// Rows over a list of addresses: regular when they lie at one distance.
inline Rows rows_from(float** address, std::size_t k) {
  if (k == 1) return Rows{address[0], 0, nullptr};
  const std::ptrdiff_t stride = address[1] - address[0];
  for (std::size_t m = 2; m < k; ++m)
    if (address[m] - address[m - 1] != stride) return Rows{nullptr, 0, address};
  return Rows{address[0], stride, nullptr};
}

// Small, and what the call points to lies behind it: kept frames of many structures are read in turns, and each comes
// from far away in memory.
struct Runner::CallFrame {
  Call call;
  u32 sig, nargs;
  u32 items;  // members of the call for each node (Signature::items)
  // What the call points to, to be written.
  Rows *x, *y, *dy;
  Rows* dx;  // backward: where gradients of arguments go
  bool* acc;
};

// A validity check found NaN or infinity; says at which node, so that the bindings can name the user's line.
class NotFiniteError : public Error {
 public:
  NotFiniteError(NodeId node, const Graph& g)
      : Error(ErrorKind::NotFinite, "[" + g.describe(node) + "] the value has NaN or infinity"), node_(node) {}
  NodeId node() const { return node_; }

 private:
  NodeId node_;
};

}  // namespace dnl
