// SameOp: adds nodes of one op that mostly have the signature of the one before, as the steps of a recurrent layer do.
//
// The signature is looked for again when an argument has other dims, when a shared one is another node, and in another
// graph. Who may include: graph/cell_layer.h. Includes: graph/append.h.
#pragma once
#include "graph/append.h"

namespace dnl {

class SameOp {
 public:
  // Graph::add() for an op without member attributes; op and key are those of every call.
  NodeId add(Graph& g, OpId op, const NodeId* args, int nargs, const Word* key, int nkey) {
    if (fits(g, args, nargs))
      return g.append(sig_, static_cast<u32>(nargs), [args](u32 j) { return args[j]; }, nullptr, 0);
    const NodeId i = g.add(op, args, nargs, key, nkey, nullptr, 0);
    note(g, i, args, nargs);
    return i;
  }

 private:
  static constexpr int kMost = 6;  // arguments

  bool fits(const Graph& g, const NodeId* args, int nargs) const {
    if (generation_ != g.generation() || nargs != nargs_) return false;
    for (int j = 0; j < nargs; ++j) {
      if (args[j] == shared_[j]) continue;
      const Node& a = g.node(args[j]);
      if (shared_[j] != kNoNode || a.dim != dim_[j] || a.is(kWeight)) return false;
    }
    return true;
  }

  void note(const Graph& g, NodeId i, const NodeId* args, int nargs) {
    generation_ = 0;
    sig_ = g.node(i).sig;
    nargs_ = nargs;
    if (nargs > kMost || g.sig(sig_).alias) return;
    for (int j = 0; j < nargs; ++j) {
      shared_[j] = g.arg_shared(sig_, static_cast<u32>(j)) ? args[j] : kNoNode;
      dim_[j] = g.node(args[j]).dim;
      if (shared_[j] == kNoNode && g.node(args[j]).is(kWeight)) return;
    }
    generation_ = g.generation();
  }

  u32 generation_ = 0, sig_ = 0;
  int nargs_ = 0;
  NodeId shared_[kMost];  // kNoNode: not shared, any node of these dims that is no weight
  u32 dim_[kMost];
};

}  // namespace dnl
