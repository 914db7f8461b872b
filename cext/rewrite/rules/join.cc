#include "rewrite/rules/join.h"

#include <algorithm>

namespace dnl {
namespace {

OpId joined_op() {
  static const OpId id = op_by_name("_affines");
  return id;
}

}  // namespace

// Vectors times parameters; no mini-batches by hand. Parameters are leaves: they may stand behind the node that reads
// them.
bool can_be_joined(const Graph& g, NodeId i) {
  const AffineMap map(g, i);
  const u32 s = g.node(i).sig;
  const Dim& out = g.dim(i);
  if (map.terms() < 1 || map.terms() > Joiner::kMaxInputs || out.nd != 1 || out.bd != 1) return false;
  auto weight = [&](u32 j) { return g.arg_shared(s, j) && g.node(g.shared_arg(s, j)).is(kLeaf); };
  if (map.has_bias() && (!weight(map.bias_at()) || g.dim(map.bias()).rows() != out.rows())) return false;
  for (u32 t = 0; t < map.terms(); ++t) {
    const Dim &in = g.dim(map.vector(t)), &w = g.dim(map.matrix(t));
    if (!weight(map.matrix_at(t)) || g.arg_shared(s, map.vector_at(t)) || !in.is_vector() || in.bd != 1) return false;
    if (w.bd != 1 || w.cols() != in.rows()) return false;
  }
  return true;
}

void Joiner::begin() {
  members_.clear();
  siblings_.clear();
  end_lane();
}

void Joiner::end_lane() { std::fill(recent_, recent_ + kRecent, kNoNode); }

bool Joiner::fits(Rewriter& r, NodeId i) {
  return r.kind(i).joins && r.graph().readers(AffineMap(r.graph(), i).vector(0)) > 1;  // else nobody shares it
}

// Is there a map of the same matrices among them?
bool Joiner::has(const Graph& g, const Siblings& s, NodeId i) const {
  for (u32 k = s.first; k != kNoNode; k = members_[k].next)
    if (std::equal(g.operands(i), g.operands(i) + g.nargs(i), g.operands(members_[k].node))) return true;
  return false;
}

u32 Joiner::offer(const Graph& g, NodeId i) {
  const u32 number = static_cast<u32>(members_.size());
  members_.push_back({i, i, 0, kNoNode, false});
  const AffineMap map(g, i);
  Siblings mine{number, number, 1, i, g.signature(i).op, map.terms(), {}};
  for (u32 x = 0; x < mine.inputs; ++x) mine.input[x] = map.vector(x);
  u32& known = recent_[mine.input[mine.inputs - 1] % kRecent];
  if (known != kNoNode) {
    Siblings& s = siblings_[known];
    const bool alike =
        s.op == mine.op && s.inputs == mine.inputs && std::equal(mine.input, mine.input + mine.inputs, s.input);
    if (alike && has(g, s, i)) return number;  // on its own: the same map once more, not another one
    if (alike && s.count < kMaxMaps) {
      members_[s.last].next = number;
      s.last = number;
      s.leader = std::min(s.leader, i);
      ++s.count;
      return number;
    }
  }
  known = static_cast<u32>(siblings_.size());
  siblings_.push_back(mine);
  return number;
}

u32 Joiner::join(Rewriter& r) {
  u32 count = 0;
  for (const Siblings& s : siblings_) {
    if (s.count < 2) continue;
    rewrite(r, s);
    count += s.count;
  }
  return count;
}

// The first of the maps becomes the node of all: whoever reads one of them stands behind it.
void Joiner::rewrite(Rewriter& r, const Siblings& s) {
  const Graph& g = r.graph();
  const bool bias = AffineMap(g, s.leader).has_bias();
  written_.begin();
  for (u32 x = 0; x < s.inputs; ++x) written_.add_vector(s.input[x], 0);
  u32 members[kMaxMaps], count = 0, offset = 0, depth = g.node(s.leader).depth;
  for (u32 k = s.first; k != kNoNode; k = members_[k].next) members[count++] = k;
  std::sort(members, members + count, [&](u32 k, u32 l) { return members_[k].node < members_[l].node; });
  for (u32 k = 0; k < count; ++k) {
    Member& m = members_[members[k]];
    m.joined = true;
    m.at = s.leader;
    m.offset = offset;
    offset += g.dim(m.node).rows();
    depth = std::min(depth, g.node(m.node).depth);
    const AffineMap map(g, m.node);
    if (bias) written_.add_weight(map.bias());
    for (u32 x = 0; x < s.inputs; ++x) written_.add_weight(map.matrix(x));
  }
  for (u32 k = 1; k < count; ++k) r.absorb(members_[members[k]].node, s.leader);
  r.hide_value(s.leader);
  r.lift(s.leader, depth);  // a map that was a sum of several nodes is deeper than one that was a single node
  written_.write(r, s.leader, joined_op(), bias);
}

}  // namespace dnl
