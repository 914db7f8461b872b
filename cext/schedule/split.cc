#include "schedule/split.h"

#include <algorithm>

namespace dnl {
namespace {

u32 find(Vec<u32>& parent, u32 i) {
  while (parent[i] != i) {
    parent[i] = parent[parent[i]];
    i = parent[i];
  }
  return i;
}

// Rough cost of a node in floats touched: its outputs, and each shared argument once per column.
u64 cost_of(const Graph& g, NodeId i) {
  const Signature& s = g.signature(i);
  u64 out = 0, shared = 0;
  for (u32 o = 0; o < s.total; ++o) out += g.dim_by_id(s.dim[o]).size();
  const u32 sig = g.node(i).sig;
  for (u32 j = 0; j < s.nargs && j < 64; ++j)
    if (g.arg_shared(sig, j)) shared += g.dim(g.shared_arg(sig, j)).size();
  return out + shared / 4;
}

}  // namespace

bool split(const Graph& g, const Vec<NodeId>& exec, int lanes, u64 least_work, Split& out, PlanScratch& s) {
  lanes = std::min(lanes, kMaxLanes);
  const u32 n = static_cast<u32>(exec.size());
  if (lanes < 2 || (n < 64 && least_work)) return false;
  s.make_local(g.size());
  for (u32 k = 0; k < n; ++k) s.local[exec[k]] = k;

  // Tail: from the end, nodes that join (sums and the like) and are used by tail nodes only.
  Vec<u8>& part = s.marks;  // 0 lane, 1 tail, 2 used by a lane node, 3 head
  part.assign(n, 0);
  for (u32 k = n; k-- > 0;) {
    const NodeId i = exec[k];
    const bool tail = part[k] == 0 && op_def(g.signature(i).op).joins && !g.node(i).is(kWeight);
    const bool head = g.node(i).is(kWeight);
    if (tail) part[k] = 1;
    else if (head) part[k] = 3;
    if (tail) continue;
    for (u32 j = 0; j < g.nargs(i); ++j) {
      const u32 l = s.local[g.node(g.operands(i)[j]).producer];
      if (l != kNoNode && part[l] == 0) part[l] = 2;
    }
  }
  // Components of the rest.
  Vec<u32>& parent = s.a;
  parent.resize(n);
  for (u32 k = 0; k < n; ++k) parent[k] = k;
  for (u32 k = 0; k < n; ++k) {
    if (part[k] & 1) continue;
    for (u32 j = 0; j < g.nargs(exec[k]); ++j) {
      const u32 l = s.local[g.node(g.operands(exec[k])[j]).producer];
      if (l != kNoNode && !(part[l] & 1)) parent[find(parent, k)] = find(parent, l);
    }
  }
  s.keys.assign(n, 0);
  u64 total = 0, largest = 0;
  for (u32 k = 0; k < n; ++k) {
    if (part[k] & 1) continue;
    u64& c = s.keys[find(parent, k)];
    const u64 cost = cost_of(g, exec[k]);
    c += cost;
    total += cost;
    largest = std::max(largest, c);
  }
  bool worth = total >= least_work && (!least_work || largest * static_cast<u64>(lanes) <= total * 3 / 2);
  if (worth) {
    // Components in order of their first node go to the lane that has least: contiguous mini-batches stay together
    // roughly, and the result depends on the graph alone.
    Vec<u32>& lane_of = s.b;
    lane_of.assign(n, kNoNode);
    u64 load[kMaxLanes] = {0};
    out.lanes = lanes;
    out.head.clear();
    out.tail.clear();
    for (int l = 0; l < lanes; ++l) out.lane[l].clear();
    for (u32 k = 0; k < n; ++k) {
      if (part[k] == 1) { out.tail.push_back(exec[k]); continue; }
      if (part[k] == 3) { out.head.push_back(exec[k]); continue; }
      const u32 root = find(parent, k);
      if (lane_of[root] == kNoNode) {
        lane_of[root] = static_cast<u32>(std::min_element(load, load + lanes) - load);
        load[lane_of[root]] += s.keys[root];
      }
      out.lane[lane_of[root]].push_back(exec[k]);
    }
    for (int l = 0; l < lanes; ++l) worth = worth && !out.lane[l].empty();
  }
  for (u32 k = 0; k < n; ++k) s.local[exec[k]] = kNoNode;
  return worth;
}

}  // namespace dnl
