#include "rewrite/verify.h"

namespace dnl {
namespace {

class Verifier {
 public:
  Verifier(const Graph& g, NodeId from, Vec<u32>& uses, const char* after)
      : g_(g), from_(from), uses_(uses), after_(after) {
    uses_.assign(g.size() - from, 0);
  }

  void run() {
    for (NodeId i = from_; i < g_.size(); ++i)
      if (lives(i)) look_at(i);
    for (NodeId i = from_; i < g_.size(); ++i) {
      const Node& n = g_.node(i);
      if (n.is(kFused | kDead | kMerged) || n.readers == Node::kMany) continue;
      if (n.readers != uses_[i - from_])
        fail(i, "is read " + std::to_string(uses_[i - from_]) + " times, not " + std::to_string(n.readers));
    }
  }

 private:
  [[noreturn]] void fail(NodeId i, const std::string& what) const {
    dnl::fail(ErrorKind::Internal, "[engine] graph" + (after_ ? " after " + std::string(after_) : "") + ": node " +
                                       std::to_string(i) + ", " + g_.describe(i) + ", " + what);
  }
  // Has arguments that count: an op that runs, or an alias of a part.
  bool lives(NodeId i) const {
    return g_.is_op(i) || (g_.node(i).is(kAlias) && !g_.node(i).is(kMerged | kFused | kDead));
  }

  void look_at(NodeId i) {
    const Node& n = g_.node(i);
    const Signature& sig = g_.signature(i);
    bool needs = false;
    for (u32 j = 0; j < sig.nargs; ++j) {
      const NodeId a = g_.source(g_.operands(i)[j]);
      const Node& arg = g_.node(a);
      if (a >= i && !arg.is(kLeaf)) fail(i, "reads " + std::to_string(a) + ", which stands behind it");
      if (arg.is(kFused | kDead) || g_.node(arg.producer).is(kFused | kDead))
        fail(i, "reads " + std::to_string(a) + ", which does not run");
      if (arg.depth + !n.is(kAlias) > n.depth) fail(i, "is not deeper than " + std::to_string(a));
      needs |= arg.is(kNeedsGrad);
      if (a >= from_) ++uses_[a - from_];
    }
    if (n.is(kNeedsGrad) != (needs && !sig.no_grad))
      fail(i, needs ? "needs a gradient and does not say so" : "says that it needs a gradient");
  }

  const Graph& g_;
  NodeId from_;
  Vec<u32>& uses_;  // by node, from from_ on
  const char* after_;
};

}  // namespace

void verify_graph(const Graph& g, NodeId from, Vec<u32>& scratch, const char* after) {
  if (from < g.size()) Verifier(g, from, scratch, after).run();
}

}  // namespace dnl
