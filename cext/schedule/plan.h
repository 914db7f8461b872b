// Plan: which nodes run together, in which order, and where their values lie. Plain data.
//
// make_plan() = a strategy (order and groups) + layout (order inside groups, slab offsets) + verify (on request).
// All three are pure: they read the graph and write the plan. All members of one type (one signature in one plan) lie
// in one slab in execution order, one slab per output; offsets are floats from the plan's value base.
// Vectors are reused from plan to plan. Who may include: exec/, bindings/. Includes: graph/, op/, base/.
#pragma once
#include <string>

#include "graph/graph.h"
#include "schedule/frontier.h"
#include "schedule/type_graph.h"

namespace dnl {

enum class Strategy : u8 { None, Depth, Agenda, Greedy, Auto };
// Throws Error(Value) naming the choices.
Strategy strategy_by_name(const std::string& name);
const char* strategy_name(Strategy s);

struct Group {
  u32 type;
  u32 begin;  // first member in order[]
  u32 count;
  u32 slot;    // slab slot of the first member; members follow one another
  u64 at = 0;  // where members are uneven: floats of those before
};

struct PlanType {
  u32 sig;
  u32 count;               // members in all groups
  u32 first_group;         // index of the group that runs first
  bool over;               // the last output has no slab: it lies where argument 0 lies (Over::Arg0)
  u64 value[kMaxOutputs];  // slab offset per output, floats
  // Of members that differ in lengths (Signature::family), whose signature is that of one of them:
  bool ragged = false;  // there are several signatures
  bool uneven = false;  // output 0 has several sizes
  u64 floats = 0;       // of output 0 in all members
  u32 slabs(const Signature& sig) const { return sig.total - (over ? 1u : 0u); }
};

struct Plan {
  Vec<NodeId> exec;   // op nodes to run, ascending: the plan's input
  Vec<NodeId> order;  // members of groups, in order of execution
  Vec<Group> groups;
  Vec<PlanType> types;
  u64 floats = 0;       // value memory of all slabs
  u32 lower_bound = 0;  // least possible number of groups (sum over types of the longest chain inside the type)
  u64 steps =
      0;  // what finding it took that may grow faster than the graph: types compared, pairs of a node and a type

  void clear() {
    exec.clear();
    order.clear();
    groups.clear();
    types.clear();
    floats = 0;
    lower_bound = 0;
    steps = 0;
  }
};

// Floats of output o of all members of a type.
inline u64 slab_floats(const Graph& g, const PlanType& type, u32 o) {
  return o == 0 && type.uneven ? type.floats : g.out_size(type.sig, o) * type.count;
}
// So much is set apart for so many floats: slabs begin at a cache line.
inline u64 slab_room(u64 floats) { return (floats + 15) & ~u64(15); }

// Working memory of planning, reused.
struct PlanScratch {
  TypeGraph type_graph;
  Frontier frontier;
  Vec<u32> local;            // node -> index in exec, or kNoNode, which all are between plans
  Vec<u32> type_of;          // by local index
  Vec<u32> type_of_sig;      // signature -> type of this plan, or kNoNode
  Vec<u32> dep_begin, deps;  // producers of each local node inside the plan (may repeat), CSR
  Vec<u32> succ_begin, succs;
  Vec<u32> waiting;        // unexecuted producers
  Vec<u32> where;          // by local index, the place among the nodes that are scheduled together: a component's,
  Vec<u32> lane;           // and by type, that among a component's types, or kNoNode, which all are between components
  Vec<u32> a, b, c, d, e;  // free use inside one function
  Vec<u64> keys, sig_cost;
  Vec<u16> typed_depth;
  Vec<u32> deep_typed_depth;  // the same for graphs of more than 65,535 levels
  Vec<u32> chain;             // per type: longest chain of that type
  Vec<u32> all;               // local indices, one after another
  Vec<u8> marks;

  void release() {
    release_all(type_graph, frontier, local, type_of, type_of_sig, dep_begin, deps, succ_begin, succs, waiting, where,
                lane, a, b, c, d, e, keys, sig_cost, typed_depth, deep_typed_depth, chain, all, marks);
  }
};

// While it lives, some nodes of a graph of so many may have places in `local`. Then none has, however planning ended:
// it may have run out of memory.
class LocalPlaces {
 public:
  LocalPlaces(PlanScratch& scratch, const Vec<NodeId>& nodes, u32 size) : local_(scratch.local), nodes_(nodes) {
    const std::size_t old = local_.size();
    if (old < size) local_.resize(size);
    for (std::size_t i = old; i < size; ++i) local_[i] = kNoNode;
  }
  ~LocalPlaces() { clear(); }
  LocalPlaces(const LocalPlaces&) = delete;
  LocalPlaces& operator=(const LocalPlaces&) = delete;
  void clear() {
    for (NodeId i : nodes_) local_[i] = kNoNode;
  }

 private:
  Vec<u32>& local_;
  const Vec<NodeId>& nodes_;
};

// Fills plan.order, groups and types from plan.exec.
void make_plan(const Graph& g, Strategy strategy, Plan& plan, PlanScratch& scratch);
// Throws Error(Internal) unless: each node of exec is in one group, arguments come first, members are alike, slabs do
// not overlap.
void verify_plan(const Graph& g, const Plan& plan, PlanScratch& scratch);
// "affine_transform {200} x 64"; of members that differ in a length "softmax {2..9} x 5".
std::string describe_group(const Graph& g, const Plan& plan, const Group& group, u32 count);
// One line per group: "3  affine_transform {200} x 64  <- ...".
std::string dump_plan(const Graph& g, const Plan& plan);

// ---- the strategies, one file each: they write order and groups (type, begin, count) ---------------------------
struct StrategyInput {
  const Graph& g;
  const Plan& plan;      // exec and types (sig, count) are filled
  PlanScratch& scratch;  // local, type_of, deps are filled
};
void schedule_none(StrategyInput in, Plan& out);
void schedule_depth(StrategyInput in, Plan& out);
void schedule_agenda(StrategyInput in, Plan& out);
void schedule_greedy(StrategyInput in, Plan& out);
void schedule_auto(StrategyInput in, Plan& out);

// The agenda for these nodes alone (local indices, ascending); appends groups.
void run_agenda(StrategyInput in, const u32* members, u32 count, Plan& out);
// Chooses the order inside groups by consumer, assigns slots and slab offsets.
void lay_out(const Graph& g, Plan& plan, PlanScratch& scratch);

}  // namespace dnl
