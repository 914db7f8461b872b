// Dead code: op nodes that nobody can ask for and nothing reads do not run.
//
// Dead is an op node to none of whose outputs an expression refers, if no node reads them or only dead ones do. No
// gradient flows into such nodes, so that they would also cut batches when these run backward.
#include "rewrite/passes.h"

namespace dnl {
namespace {

class DropDead final : public Pass {
 public:
  u32 run(Rewriter& r, const Lane& lane) override;
  void release() override { found_.release(); }

 private:
  Vec<NodeId> found_;  // whose arguments have not been looked at
};

// Does nothing read or refer to any output of op node i? What was seen before has other readers than it was made with.
bool unused(const Rewriter& r, NodeId i) {
  if (i < r.unseen()) return false;
  const Graph& g = r.graph();
  for (u32 o = 0; o < g.signature(i).visible; ++o) {
    const Node& n = g.node(i + o);
    if (n.readers || n.handles || !n.is(kCounted)) return false;
  }
  return true;
}

u32 DropDead::run(Rewriter& r, const Lane& lane) {
  const Graph& g = r.graph();
  found_.clear();
  for (NodeId i : lane.unread)
    if (unused(r, i)) found_.push_back(i);
  u32 count = 0;
  while (!found_.empty()) {
    const NodeId i = found_.back();
    found_.pop_back();
    if (!g.is_op(i)) continue;  // found twice, as both arguments of one
    r.kill(i);
    ++count;
    const NodeId* args = g.operands(i);
    for (u32 j = 0, nargs = g.nargs(i); j < nargs; ++j) {
      if (g.node(args[j]).readers) continue;
      const NodeId a = g.node(args[j]).is(kOutput) ? g.node(args[j]).producer : args[j];
      if (g.is_op(a) && unused(r, a)) found_.push_back(a);
    }
  }
  return count;
}

}  // namespace

std::unique_ptr<Pass> drop_dead() { return std::make_unique<DropDead>(); }

}  // namespace dnl
