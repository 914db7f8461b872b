#include "rewrite/rules/join.h"

#include <algorithm>

#include "rewrite/affine.h"

namespace dnl {
namespace {

OpId op_joined(u32 inputs) {
  static const OpId ids[] = {op_by_name("_affines1"), op_by_name("_affines2"), op_by_name("_affines3")};
  return ids[inputs - 1];
}

bool has_bias(const Graph& g, NodeId i) { return has_bias(g.signature(i)); }
u32 inputs_of(const Graph& g, NodeId i) { return g.nargs(i) / 2; }
NodeId input(const Graph& g, NodeId i, u32 x) { return g.operands(i)[has_bias(g, i) + 2 * x + 1]; }
NodeId matrix(const Graph& g, NodeId i, u32 x) { return g.operands(i)[has_bias(g, i) + 2 * x]; }

}  // namespace

void Joiner::begin(const Graph& g, NodeId from) {
  from_ = from;
  verdict_.assign(g.signatures(), kUnknown);
  members_.clear();
  bundles_.clear();
  end_list();
}

void Joiner::end_list() { std::fill(recent_, recent_ + kRecent, kNoNode); }

// Vectors times parameters; no mini-batches by hand. Parameters are leaves: they may stand behind the node that reads them.
u8 Joiner::judge(const Graph& g, NodeId i) {
  const Signature& sig = g.signature(i);
  if (!sig.counted || !op_def(sig.op).joinable) return kNo;
  const u32 s = g.node(i).sig, bias = has_bias(g, i), inputs = sig.nargs / 2;
  const Dim& out = g.dim(i);
  if (inputs < 1 || inputs > kMaxInputs || out.nd != 1 || out.bd != 1) return kNo;
  auto weight = [&](u32 j) { return g.arg_shared(s, j) && g.node(g.shared_arg(s, j)).is(kLeaf); };
  if (bias && (!weight(0) || g.dim(g.operands(i)[0]).rows() != out.rows())) return kNo;
  for (u32 x = 0; x < inputs; ++x) {
    const Dim& in = g.dim(input(g, i, x));
    if (!weight(bias + 2 * x) || g.arg_shared(s, bias + 2 * x + 1) || !in.is_vector() || in.bd != 1) return kNo;
    if (g.dim(matrix(g, i, x)).bd != 1) return kNo;
  }
  return kYes;
}

bool Joiner::fits(const Graph& g, NodeId i) {
  if (i < from_ || !joinable(g, i)) return false;
  return g.foldable(i) && g.readers(input(g, i, 0)) > 1;  // else nobody shares it
}

// Is there a map of the same matrices in the bundle?
bool Joiner::has(const Graph& g, const Bundle& b, NodeId i) const {
  for (u32 k = b.first; k != kNoNode; k = members_[k].next)
    if (std::equal(g.operands(i), g.operands(i) + g.nargs(i), g.operands(members_[k].node))) return true;
  return false;
}

u32 Joiner::offer(const Graph& g, NodeId i) {
  const u32 number = static_cast<u32>(members_.size());
  members_.push_back({i, i, 0, kNoNode, false});
  Bundle mine{number, number, 1, i, g.signature(i).op, inputs_of(g, i), {}};
  for (u32 x = 0; x < mine.inputs; ++x) mine.input[x] = input(g, i, x);
  u32& known = recent_[mine.input[mine.inputs - 1] % kRecent];
  if (known != kNoNode) {
    Bundle& b = bundles_[known];
    const bool alike = b.op == mine.op && b.inputs == mine.inputs && std::equal(mine.input, mine.input + mine.inputs, b.input);
    if (alike && has(g, b, i)) return number;  // on its own: the same map once more, not another one
    if (alike && b.count < kMaxMaps) {
      members_[b.last].next = number;
      b.last = number;
      b.leader = std::min(b.leader, i);
      ++b.count;
      return number;
    }
  }
  known = static_cast<u32>(bundles_.size());
  bundles_.push_back(mine);
  return number;
}

bool Joiner::join(Graph& g) {
  bool any = false;
  for (const Bundle& b : bundles_) {
    if (b.count < 2) continue;
    rewrite(g, b);
    any = true;
  }
  return any;
}

// The first of the maps becomes the node of all: whoever reads one of them stands behind it.
void Joiner::rewrite(Graph& g, const Bundle& b) {
  const u32 n = b.inputs;
  const bool bias = has_bias(g, b.leader);
  args_.clear();
  for (u32 x = 0; x < n; ++x) args_.push_back(b.input[x]);
  u32 members[kMaxMaps], count = 0, offset = 0, depth = g.node(b.leader).depth;
  for (u32 k = b.first; k != kNoNode; k = members_[k].next) members[count++] = k;
  std::sort(members, members + count, [&](u32 k, u32 l) { return members_[k].node < members_[l].node; });
  for (u32 k = 0; k < count; ++k) {
    Member& m = members_[members[k]];
    m.joined = true;
    m.at = b.leader;
    m.offset = offset;
    offset += g.dim(m.node).rows();
    depth = std::min(depth, g.node(m.node).depth);
    if (bias) args_.push_back(g.operands(m.node)[0]);
    for (u32 x = 0; x < n; ++x) args_.push_back(matrix(g, m.node, x));
  }
  for (u32 k = 1; k < count; ++k) {
    g.mark_fused(members_[members[k]].node, b.leader);
    for (u32 x = 0; x < n; ++x) g.reads_no_more(b.input[x]);
  }
  Word key;
  key.i = bias;
  g.mark_overwritten(b.leader);
  g.set_readers(b.leader, 0);
  g.set_depth(b.leader, depth);  // a map that was a sum of several nodes is deeper than one that was a single node
  g.replace(b.leader, op_joined(n), args_.data(), static_cast<int>(args_.size()), &key, 1, nullptr, 0);
}

}  // namespace dnl
