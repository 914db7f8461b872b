#include "rewrite/rewriter.h"

#include <algorithm>

namespace dnl {

// A node a line: number, what it is and where it runs, arguments.
void RewriteLog::note(const char* name, const Graph& g, NodeId from) {
  if (!on) return;
  std::string text;
  for (NodeId i = from; i < g.size(); ++i) {
    text += std::to_string(i) + "\t" + g.describe(i) + "\t";
    for (u32 j = 0; j < g.nargs(i) && !g.node(i).is(kLeaf); ++j)
      text += " " + std::to_string(g.source(g.operands(i)[j]));
    text += "\n";
  }
  entries.push_back({name, text});
}

void Rewriter::begin(NodeId first, NodeId unseen) {
  first_ = first;
  unseen_ = std::max(first, unseen);
  chains.begin();
  lane_.clear();
  lanes_ = 0;
}

void Rewriter::add_lane(const NodeId* begin, const NodeId* end) {
  if (!lanes_++) lane_.assign(count(), 0);
  for (const NodeId* i = begin; i != end; ++i)
    if (*i >= first_) lane_[at(*i)] = lanes_;
}

void Rewriter::forget_uses(NodeId i) {
  const NodeId* args = g_.operands(i);
  for (const NodeId* end = args + g_.nargs(i); args != end; ++args) g_.reads_no_more(*args);
}

// Node i reads nothing any more: no gradient flows into the parts of joined nodes that it read.
void Rewriter::leave_parts(NodeId i) {
  if (!g_.signature(i).partial) return;
  for (u32 j = 0; j < g_.nargs(i); ++j)
    if (const NodeId a = g_.operands(i)[j]; g_.is_op(a) && op_def(g_.signature(a).op).in_parts) g_.mark(a, kPartUnread);
}

void Rewriter::count_uses(NodeId i) {
  const NodeId* args = g_.operands(i);
  Node* nodes = g_.nodes_.data();
  u16 any = 0;
  u32 depth = 0;
  for (const NodeId* end = args + g_.nargs(i); args != end; ++args) {
    Node& a = nodes[*args];
    Graph::count(a.readers);
    any |= a.flags;
    depth = std::max(depth, a.depth);
  }
  Node& n = nodes[i];
  n.depth = std::max(n.depth, depth + 1);
  const bool needs = (any & kNeedsGrad) && !g_.signature(i).no_grad;
  n.flags = static_cast<u16>(needs ? n.flags | kNeedsGrad : n.flags & ~kNeedsGrad);
}

void Rewriter::absorb(NodeId i, NodeId into) {
  Node& n = g_.nodes_[i];
  n.flags |= kFused;
  n.offset = into;
  forget_uses(i);
}

void Rewriter::replace(NodeId i, OpId op, const NodeId* args, u32 nargs, const Word* key, u32 nkey, const Word* member,
                       u32 nmember) {
  forget_uses(i);
  g_.replace(i, op, args, static_cast<int>(nargs), key, static_cast<int>(nkey), member, static_cast<int>(nmember));
  count_uses(i);
}

void Rewriter::bundle(NodeId i, const NodeId* args, u32 nargs) {
  forget_uses(i);
  g_.bundle(i, args, nargs);
  count_uses(i);
}

void Rewriter::alias(NodeId i, NodeId first) {
  leave_parts(i);
  forget_uses(i);
  for (u32 o = 0; o < g_.signature(i).visible; ++o) g_.merge(i + o, first + o);
}

void Rewriter::kill(NodeId i) {
  for (u32 o = 0; o < g_.signature(i).visible; ++o) g_.nodes_[i + o].flags |= kDead;
  leave_parts(i);
  forget_uses(i);
}

void Rewriter::separate(NodeId i) { g_.unmark_inner(i); }
void Rewriter::lift(NodeId i, u32 depth) { g_.nodes_[i].depth = std::min(g_.nodes_[i].depth, depth); }
void Rewriter::hide_value(NodeId i) { g_.mark(i, kOverwritten); }
void Rewriter::keep_gradient_apart(NodeId i) { g_.mark(i, kGradApart); }

}  // namespace dnl
