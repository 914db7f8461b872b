#include "rewrite/rules/dead.h"

namespace dnl {

// Does nothing read or refer to any output of op node i?
bool DeadCode::unused(const Graph& g, NodeId i) const {
  if (i < from_) return false;
  for (u32 o = 0; o < g.signature(i).visible; ++o) {
    const Node& n = g.node(i + o);
    if (n.readers || n.handles || !n.is(kCounted)) return false;
  }
  return true;
}

// A node dies with its last reader, so it is found once.
u32 DeadCode::finish(Graph& g) {
  u32 count = 0;
  while (!found_.empty()) {
    const NodeId i = found_.back();
    found_.pop_back();
    for (u32 o = 0; o < g.signature(i).visible; ++o) g.mark_dead(i + o);
    ++count;
    const NodeId* args = g.operands(i);
    for (u32 j = 0, nargs = g.nargs(i); j < nargs; ++j) {
      g.reads_no_more(args[j]);
      if (g.node(args[j]).readers) continue;
      const NodeId a = g.node(args[j]).is(kOutput) ? g.node(args[j]).producer : args[j];
      if (g.is_op(a) && unused(g, a)) found_.push_back(a);
    }
  }
  return count;
}

}  // namespace dnl
