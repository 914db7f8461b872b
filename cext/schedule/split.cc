#include "schedule/split.h"

#include <algorithm>

namespace dnl {
namespace {

enum Part : u8 { kLane, kTailPart, kReadByLane, kHeadPart };
bool of_lane(u8 part) { return !(part & 1); }

u32 find(Vec<u32>& parent, u32 i) {
  while (parent[i] != i) {
    parent[i] = parent[parent[i]];
    i = parent[i];
  }
  return i;
}

// Rough cost of a node in floats touched: its outputs, and each shared argument once per column.
u64 cost_of(const Graph& g, u32 sig) {
  const Signature& s = g.sig(sig);
  u64 out = 0, shared = 0;
  for (u32 o = 0; o < s.total; ++o) out += g.dim_by_id(s.dim[o]).size();
  for (u32 j = 0; j < s.nargs && j < 64; ++j)
    if (g.arg_shared(sig, j)) shared += g.dim(g.shared_arg(sig, j)).size();
  return out + shared / 4;
}

// From the last node to the first: which part each belongs to, and what hangs together. The tail are nodes that join (sums
// and the like) and are used by tail nodes only. parent: a node of the same component that is not later, in the end the first.
void find_parts(const Graph& g, const Vec<NodeId>& exec, Vec<u8>& part, Vec<u32>& parent, PlanScratch& s) {
  const u32 n = static_cast<u32>(exec.size());
  part.assign(n, kLane);
  parent.resize(n);
  for (u32 k = 0; k < n; ++k) {
    parent[k] = k;
    s.local[exec[k]] = k;
  }
  for (u32 k = n; k-- > 0;) {
    const Node& node = g.node(exec[k]);
    if (node.is(kWeight)) {
      part[k] = kHeadPart;
      continue;
    }
    const Signature& sig = g.sig(node.sig);
    if (part[k] == kLane && op_def(sig.op).joins) {
      part[k] = kTailPart;
      continue;
    }
    const NodeId* args = g.operands(exec[k]);
    u32 root = find(parent, k);
    for (u32 j = 0; j < sig.nargs; ++j) {
      const Node& arg = g.node(args[j]);
      const u32 l = arg.is(kWeight) ? kNoNode : s.local[arg.producer];
      if (l == kNoNode) continue;
      part[l] = kReadByLane;
      const u32 other = find(parent, l);
      parent[std::max(root, other)] = std::min(root, other);
      root = std::min(root, other);
    }
  }
  for (u32 k = 0; k < n; ++k) {
    parent[k] = parent[parent[k]];
    s.local[exec[k]] = kNoNode;
  }
}

// How many lanes, and the share of each: one for each thread. When one thread begins the backward pass later than the others,
// because it builds the next graph, the last lane is dealt in two: a part that this thread has time for, and a rest for who is
// done first. Together they are what one thread runs forward.
int choose_shares(int threads, double late, u32 components, double* share) {
  const double even = 1.0 / threads;
  for (int l = 0; l < threads; ++l) share[l] = even;
  constexpr double kLittle = 0.06;  // a lane more costs as much: smaller batches, one more set of private gradients
  if (late < kLittle || threads >= kMaxLanes || components < 8 * static_cast<u32>(threads)) return threads;
  const double time_left = (1 + late) / threads - late;
  share[threads - 1] = std::min(0.8 * even, std::max(0.4 * even, time_left));
  share[threads] = even - share[threads - 1];
  return threads + 1;
}

}  // namespace

bool split(const Graph& g, const Vec<NodeId>& exec, int threads, bool late, u64 least_work, Split& out, PlanScratch& s) {
  threads = std::min(threads, kMaxLanes);
  const u32 n = static_cast<u32>(exec.size());
  if (threads < 2 || (n < 64 && least_work)) return false;
  s.make_local(g.size());
  Vec<u8>& part = s.marks;
  Vec<u32>& root = s.a;
  find_parts(g, exec, part, root, s);

  Vec<u64>& cost_of_sig = s.sig_cost;
  cost_of_sig.assign(g.signatures(), 0);
  s.keys.assign(n, 0);  // cost of a component, at its first node
  u64 total = 0, largest = 0;
  u32 components = 0;
  for (u32 k = 0; k < n; ++k) {
    if (!of_lane(part[k])) continue;
    u64& known = cost_of_sig[g.node(exec[k]).sig];
    if (!known) known = cost_of(g, g.node(exec[k]).sig);
    components += root[k] == k;
    u64& cost = s.keys[root[k]];
    cost += known;
    total += known;
    largest = std::max(largest, cost);
  }
  if (total < least_work || (least_work && largest * static_cast<u64>(threads) > total * 3 / 2)) return false;

  // Components of like cost go to one lane: long sentences have the many steps of which each lane needs a batch, and the others
  // are done with fewer. The cheapest fill the lanes up. The result depends on the graph alone.
  Vec<u32>& lane_of = s.b;
  lane_of.resize(n);
  double load[kMaxLanes] = {0}, share[kMaxLanes];
  // How long building takes, as a part of the backward pass: measured, and about the same on all processors.
  constexpr double kCostOfNode = 800;
  const double building = late ? kCostOfNode * g.size() / static_cast<double>(total) : 0;
  out.lanes = choose_shares(threads, building, components, share);
  Vec<u32>& by_cost = s.c;
  by_cost.clear();
  for (u32 k = 0; k < n; ++k)
    if (of_lane(part[k]) && root[k] == k) by_cost.push_back(k);
  std::sort(by_cost.begin(), by_cost.end(), [&](u32 k, u32 l) { return s.keys[k] != s.keys[l] ? s.keys[k] > s.keys[l] : k < l; });
  constexpr double kFull = 0.85;
  int lane = 0;
  for (u32 k : by_cost) {
    const double cost = static_cast<double>(s.keys[k]) / static_cast<double>(total);
    while (lane < out.lanes && load[lane] + cost / share[lane] > kFull) ++lane;
    const int to = lane < out.lanes ? lane : static_cast<int>(std::min_element(load, load + out.lanes) - load);
    lane_of[k] = static_cast<u32>(to);
    load[to] += cost / share[to];
  }
  out.head.clear();
  out.tail.clear();
  for (int l = 0; l < out.lanes; ++l) out.lane[l].clear();
  for (u32 k = 0; k < n; ++k) {
    if (part[k] == kTailPart) { out.tail.push_back(exec[k]); continue; }
    if (part[k] == kHeadPart) { out.head.push_back(exec[k]); continue; }
    out.lane[lane_of[root[k]]].push_back(exec[k]);
  }
  bool all = true;
  for (int l = 0; l < out.lanes; ++l) all = all && !out.lane[l].empty();
  return all;
}

}  // namespace dnl
