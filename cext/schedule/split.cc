#include "schedule/split.h"

#include <algorithm>

namespace dnl {
namespace {

constexpr u32 kTailLane = kMaxLanes, kHeadLane = kMaxLanes + 1;

// What hangs together: components, each known by a number. Two that turn out to be one are united; the number that was
// there first stands for both.
class Components {
 public:
  explicit Components(PlanScratch& s) : parent_(s.a), joining_(s.b), cost_(s.keys) {
    parent_.clear();
    joining_.clear();
    cost_.clear();
  }
  u32 size() const { return static_cast<u32>(parent_.size()); }
  // joining: the node, if it may belong to the tail, where nothing hangs together by it.
  u32 add(u64 cost, NodeId joining) {
    const u32 c = size();
    parent_.push_back(c);
    joining_.push_back(joining);
    cost_.push_back(cost);
    return c;
  }
  u32 root(u32 c) {
    while (parent_[c] != c) {
      parent_[c] = parent_[parent_[c]];
      c = parent_[c];
    }
    return c;
  }
  // Two roots.
  u32 unite(u32 a, u32 b) {
    if (a == b) return a;
    if (b < a) std::swap(a, b);
    parent_[b] = a;
    cost_[a] += cost_[b];
    return a;
  }
  NodeId joining(u32 c) const { return joining_[c]; }
  void joins_no_more(u32 c) { joining_[c] = kNoNode; }
  u64& cost(u32 root) { return cost_[root]; }

 private:
  Vec<u32>& parent_;
  Vec<NodeId>& joining_;
  Vec<u64>& cost_;
};

// Rough cost of a node in floats touched: its outputs, its arguments, and each shared one once per column, of which
// every element of a mini-batch has one at least.
u64 cost_of(const Graph& g, u32 sig) {
  const Signature& s = g.sig(sig);
  u64 stacked = 0, shared = 0;
  for (u32 o = 0; o < s.total; ++o) stacked += g.dim_by_id(s.dim[o]).size();
  for (u32 j = 0; j < s.nargs && j < 64; ++j) {
    if (g.arg_shared(sig, j))
      shared += g.dim(g.shared_arg(sig, j)).size();
    else
      stacked += g.dim_by_id(g.stacked_dim(sig, j)).size();
  }
  return stacked + shared * g.dim_by_id(s.dim[0]).bd / 4;
}

// What of the graph comes after the examples.
enum class Tail : u8 {
  Sums,    // nodes that join examples and that only such nodes read
  Batches  // these, mini-batches made of examples, and all that reads such
};

// Finds the component of every node: its number in s.local. Nodes of the head get none. A node that joins has a
// component of its own until a node that does not reads it, then it is like any other; the tail are those that nobody
// reads so. With Tail::Batches mini-batches and what reads them are a component, too, which nothing is united with.
class Finder {
 public:
  Finder(const Graph& g, PlanScratch& s, Components& found, Tail tail) : g_(g), s_(s), found_(found) {
    s.sig_cost.assign(g.signatures(), 0);
    s.c.clear();
    tail_ = tail == Tail::Batches ? found.add(0, 0) : kNoNode;
  }
  void see(NodeId i) {
    const Node& node = g_.node(i);
    if (node.is(kWeight)) return;
    u64& known = s_.sig_cost[node.sig];
    if (!known) known = look_at(node.sig);
    batches_ |= (known & kBatches) != 0;
    const u64 cost = known >> 3;
    u32 mine = kNoNode;
    if (tail_ != kNoNode && (known & kBatches || reads_tail(i))) {
      mine = tail_;
      torn_ |= reads_parts_outside(i);
    } else if (!(known & kJoins)) {
      mine = with_arguments(i, kNoNode, known & kSharesWeightsAlone);
    }
    if (mine == kNoNode)
      mine = found_.add(cost, known & kJoins ? i : kNoNode);
    else
      found_.cost(mine) += cost;
    s_.local[i] = mine;
  }

  // Was there a mini-batch made of examples?
  bool batches() const { return batches_; }
  // Was something divided that must run together?
  bool torn() const { return torn_; }

 private:
  enum : u64 { kJoins = 1, kSharesWeightsAlone = 2, kBatches = 4 };
  u64 look_at(u32 sig) const {
    const OpDef& op = op_def(g_.sig(sig).op);
    return cost_of(g_, sig) << 3 | kJoins * op.joins | kBatches * op.batches |
           kSharesWeightsAlone * shares_weights_alone(sig);
  }
  bool shares_weights_alone(u32 sig) const {
    for (u32 j = 0; j < g_.sig(sig).nargs; ++j)
      if (g_.arg_shared(sig, j) && !g_.node(g_.shared_arg(sig, j)).is(kWeight)) return false;
    return true;
  }
  u32 component(NodeId argument) const {
    const u32 c = s_.local[argument];
    return c == kNoNode ? s_.local[g_.node(argument).producer] : c;
  }
  bool reads_tail(NodeId i) const {
    const NodeId* args = g_.operands(i);
    return std::any_of(args, args + g_.nargs(i), [&](NodeId a) { return component(a) == tail_; });
  }
  // Joined nodes (rewrite/rules/join.cc) run together with those that read their parts.
  bool reads_parts_outside(NodeId i) const {
    const NodeId* args = g_.operands(i);
    return g_.sig(g_.node(i).sig).partial && std::any_of(args, args + g_.nargs(i), [&](NodeId a) {
             const u32 c = s_.local[a];
             return c != kNoNode && c != tail_ && op_def(g_.signature(a).op).in_parts;
           });
  }
  // The component `mine` united with those of the arguments of node i; kNoNode when there are none.
  u32 with_arguments(NodeId i, u32 mine, bool stacked_alone) {
    const NodeId* args = g_.operands(i);
    const u32 sig = g_.node(i).sig, nargs = g_.nargs(i);
    for (u32 j = 0; j < nargs; ++j) {
      if (stacked_alone && g_.arg_shared(sig, j)) continue;
      u32 c = component(args[j]);
      if (c == kNoNode) continue;
      if (found_.joining(c) != kNoNode) read(c);
      c = found_.root(c);
      mine = mine == kNoNode ? c : found_.unite(found_.root(mine), c);
    }
    return mine;
  }
  // A node that joins is read by one that does not; so are those that it joins.
  void read(u32 joining) {
    Vec<u32>& waiting = s_.c;
    const std::size_t from = waiting.size();
    auto wait = [&](u32 c) {
      waiting.push_back(found_.joining(c));
      found_.joins_no_more(c);
    };
    wait(joining);
    for (std::size_t k = from; k < waiting.size(); ++k) {
      const NodeId* args = g_.operands(waiting[k]);
      for (u32 j = 0; j < g_.nargs(waiting[k]); ++j) {
        const u32 c = s_.local[g_.node(args[j]).producer];
        if (c != kNoNode && found_.joining(c) != kNoNode) wait(c);
      }
    }
    for (std::size_t k = from; k < waiting.size(); ++k)
      with_arguments(waiting[k], found_.root(s_.local[waiting[k]]), false);
    waiting.resize(from);
  }

  const Graph& g_;
  PlanScratch& s_;
  Components& found_;
  u32 tail_;
  bool batches_ = false, torn_ = false;
};

// Deals components to lanes: which lane each goes to, in lane_of. Those of like cost go to one lane: long sentences
// have the many steps of which each lane needs a batch, and the others are done with fewer. The cheapest fill the lanes
// up. The result depends on the graph alone. False when there is nothing to gain.
bool deal(Components& found, int lanes, u64 least_work, Vec<u32>& by_cost, Vec<u32>& lane_of) {
  by_cost.clear();
  u64 sum = 0, largest = 0;
  for (u32 c = 0; c < found.size(); ++c) {
    if (found.root(c) != c || found.joining(c) != kNoNode) continue;
    by_cost.push_back(c);
    sum += found.cost(c);
    largest = std::max(largest, found.cost(c));
  }
  if (by_cost.size() < static_cast<std::size_t>(lanes) || sum < least_work) return false;
  if (least_work && largest * static_cast<u64>(lanes) > sum * 3 / 2) return false;
  std::sort(by_cost.begin(), by_cost.end(),
            [&](u32 a, u32 b) { return found.cost(a) != found.cost(b) ? found.cost(a) > found.cost(b) : a < b; });
  const double share = static_cast<double>(sum) / lanes;
  constexpr double kFull = 0.85;
  double load[kMaxLanes] = {0};
  lane_of.assign(found.size(), kTailLane);
  int at = 0;
  for (u32 c : by_cost) {
    const double cost = static_cast<double>(found.cost(c)) / share;
    while (at < lanes && load[at] + cost > kFull) ++at;
    const int lane = at < lanes ? at : static_cast<int>(std::min_element(load, load + lanes) - load);
    lane_of[c] = static_cast<u32>(lane);
    load[lane] += cost;
  }
  for (u32 c = 0; c < found.size(); ++c) lane_of[c] = lane_of[found.root(c)];
  return true;
}

}  // namespace

bool split(const Graph& g, const Vec<NodeId>& exec, int threads, u64 least_work, Split& out, PlanScratch& s) {
  out.lanes = std::min(threads, kMaxLanes);
  if (threads < 2 || (exec.size() < 64 && least_work)) return false;
  LocalPlaces places(s, exec, g.size());
  Vec<u32>& lane_of = s.e;
  bool worth = false;
  for (const Tail tail : {Tail::Sums, Tail::Batches}) {
    Components found(s);
    Finder finder(g, s, found, tail);
    for (NodeId i : exec) finder.see(i);
    worth = !finder.torn() && deal(found, out.lanes, least_work, s.d, lane_of);
    if (worth) break;
    places.clear();
    if (!finder.batches()) break;
  }
  if (!worth) return false;
  out.head.clear();
  out.tail.clear();
  for (Vec<NodeId>& nodes : out.lane) nodes.clear();
  for (NodeId i : exec) {
    const u32 c = s.local[i], lane = c == kNoNode ? kHeadLane : lane_of[c];
    (lane == kHeadLane ? out.head : lane == kTailLane ? out.tail : out.lane[lane]).push_back(i);
  }
  return std::none_of(out.lane, out.lane + out.lanes, [](const Vec<NodeId>& nodes) { return nodes.empty(); });
}

}  // namespace dnl
