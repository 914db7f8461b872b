// Joining: affine maps of the same inputs become one node.
//
// Gates written by hand are an affine map each, all of the same input and state: W_i x + U_i h, W_f x + U_f h, ...
// Those that chains alone read, and once, become one node whose results lie one behind the other (ops/affine.cc). These
// chains are written here, since they read parts of it; the others are left to rules/fuse.cc. Maps that need a gradient
// and those that need none stay apart: a chain that reads a part would seem to need one, too.
#include <algorithm>

#include "rewrite/affine.h"
#include "rewrite/passes.h"

namespace dnl {
namespace {

constexpr u32 kMaxInputs = 3, kMaxMaps = 12;

class JoinMaps final : public Pass {
 public:
  void begin(const Rewriter&, PassSet) override {
    members_.clear();
    siblings_.clear();
  }
  u32 run(Rewriter& r, const Lane& lane) override;
  u32 finish(Rewriter& r) override;
  void release() override { release_all(members_, siblings_, written_); }

 private:
  // A map, and the chain that reads it.
  struct Member {
    NodeId node;
    u32 chain, input, next;
  };
  // Maps of the same inputs.
  struct Siblings {
    u32 first, last, count;  // members
    NodeId leader;
    OpId op;
    u32 inputs;
    NodeId input[kMaxInputs];
  };
  void offer(const Graph& g, NodeId i, u32 chain, u32 input);
  bool has(const Graph& g, const Siblings& s, NodeId i) const;
  void join(Rewriter& r, const Siblings& s);

  const OpId joined_ = op_by_name("_affines");
  Vec<Member> members_;
  Vec<Siblings> siblings_;
  static constexpr u32 kRecent = 256;
  u32 recent_[kRecent];  // siblings of this lane, by their last input
  AffineWriter written_;
};

// Can map i, which may become a part of the chain that reads it, be joined with others?
bool fits(Rewriter& r, NodeId i) {
  return r.kind(i).joins && r.graph().readers(AffineMap(r.graph(), i).vector(0)) > 1;  // else nobody shares it
}

u32 JoinMaps::run(Rewriter& r, const Lane& lane) {
  Chains& chains = r.chains;
  u32 c = chains.count();
  chains.find(r, lane, true);
  if (c < chains.count()) std::fill(recent_, recent_ + kRecent, kNoNode);
  for (; c < chains.count(); ++c)
    chains.each_input(c, [&](u32 k, NodeId i) {
      if (r.absorbable(i, chains.root(c)) && fits(r, i)) offer(r.graph(), i, c, k);
    });
  return 0;
}

u32 JoinMaps::finish(Rewriter& r) {
  u32 count = 0;
  for (const Siblings& s : siblings_) {
    if (s.count < 2) continue;
    join(r, s);
    count += s.count;
  }
  for (u32 c = 0; count && c < r.chains.count(); ++c) count += r.chains.in_parts(c) && r.chains.write(r, c);
  return count;
}

// Is there a map of the same matrices among them?
bool JoinMaps::has(const Graph& g, const Siblings& s, NodeId i) const {
  for (u32 k = s.first; k != kNoNode; k = members_[k].next)
    if (std::equal(g.operands(i), g.operands(i) + g.nargs(i), g.operands(members_[k].node))) return true;
  return false;
}

void JoinMaps::offer(const Graph& g, NodeId i, u32 chain, u32 input) {
  const u32 number = static_cast<u32>(members_.size());
  members_.push_back({i, chain, input, kNoNode});
  const AffineMap map(g, i);
  Siblings mine{number, number, 1, i, g.signature(i).op, map.terms(), {}};
  for (u32 x = 0; x < mine.inputs; ++x) mine.input[x] = map.vector(x);
  u32& known = recent_[mine.input[mine.inputs - 1] % kRecent];
  if (known != kNoNode) {
    Siblings& s = siblings_[known];
    const bool alike =
        s.op == mine.op && s.inputs == mine.inputs && std::equal(mine.input, mine.input + mine.inputs, s.input);
    if (alike && has(g, s, i)) return;  // on its own: the same map once more, not another one
    const bool same_need = g.node(s.leader).is(kNeedsGrad) == g.node(i).is(kNeedsGrad);
    if (alike && same_need && s.count < kMaxMaps) {
      members_[s.last].next = number;
      s.last = number;
      s.leader = std::min(s.leader, i);
      ++s.count;
      return;
    }
  }
  known = static_cast<u32>(siblings_.size());
  siblings_.push_back(mine);
}

// The first of the maps becomes the node of all: whoever reads one of them stands behind it.
void JoinMaps::join(Rewriter& r, const Siblings& s) {
  const Graph& g = r.graph();
  const bool bias = AffineMap(g, s.leader).has_bias();
  written_.begin();
  for (u32 x = 0; x < s.inputs; ++x) written_.add_vector(s.input[x], 0);
  u32 members[kMaxMaps], count = 0, offset = 0, depth = g.node(s.leader).depth;
  for (u32 k = s.first; k != kNoNode; k = members_[k].next) members[count++] = k;
  std::sort(members, members + count, [&](u32 k, u32 l) { return members_[k].node < members_[l].node; });
  for (u32 k = 0; k < count; ++k) {
    const Member& m = members_[members[k]];
    r.chains.read_part(m.chain, m.input, s.leader, offset);
    offset += g.dim(m.node).rows();
    depth = std::min(depth, g.node(m.node).depth);
    const AffineMap map(g, m.node);
    if (bias) written_.add_weight(map.bias());
    for (u32 x = 0; x < s.inputs; ++x) written_.add_weight(map.matrix(x));
  }
  for (u32 k = 1; k < count; ++k) r.absorb(members_[members[k]].node, s.leader);
  r.hide_value(s.leader);
  r.lift(s.leader, depth);  // a map that was a sum of several nodes is deeper than one that was a single node
  written_.write(r, s.leader, joined_, bias);
}

}  // namespace

// Vectors times parameters; no mini-batches by hand. Parameters are leaves: they may stand behind the node that reads
// them.
bool can_be_joined(const Graph& g, NodeId i) {
  const AffineMap map(g, i);
  const u32 s = g.node(i).sig;
  const Dim& out = g.dim(i);
  if (map.terms() < 1 || map.terms() > kMaxInputs || out.nd != 1 || out.bd != 1) return false;
  auto weight = [&](u32 j) { return g.arg_shared(s, j) && g.node(g.shared_arg(s, j)).is(kLeaf); };
  if (map.has_bias() && (!weight(map.bias_at()) || g.dim(map.bias()).rows() != out.rows())) return false;
  for (u32 t = 0; t < map.terms(); ++t) {
    const Dim &in = g.dim(map.vector(t)), &w = g.dim(map.matrix(t));
    if (!weight(map.matrix_at(t)) || g.arg_shared(s, map.vector_at(t)) || !in.is_vector() || in.bd != 1) return false;
    if (w.bd != 1 || w.cols() != in.rows()) return false;
  }
  return true;
}

std::unique_ptr<Pass> join_maps() { return std::make_unique<JoinMaps>(); }

}  // namespace dnl
