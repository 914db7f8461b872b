// Runner::CallFrame: a Call and the arrays it points to, and the error of a validity check. Who may include: exec/
// only; NotFiniteError also bindings/.
#pragma once
#include "exec/runner.h"

namespace dnl {

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
