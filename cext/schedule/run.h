// A run: a plan that has been run forward, where its values lie and who its operands are. Plain data.
//
// Who may include: schedule/, exec/. Includes: schedule/, graph/.
#pragma once
#include <memory>
#include <vector>

#include "base/arena.h"
#include "base/rows.h"
#include "schedule/plan.h"

namespace dnl {

// The stacked operands of a plan's calls: who they are and where their values lie. A forward pass notes them, group by
// group and argument by argument; backward need not look them up again.
struct Operands {
  struct Arg {
    u32 first;  // of ids and at; kNoNode: a shared argument, which has none
    Rows rows;
    u32 outside_begin = 0, outside_end = 0;  // of `outside`
  };
  Vec<Arg> args;
  Vec<u32> begin;  // by group: its argument 0 in args
  Vec<NodeId> ids;
  Vec<float*> at;
  Vec<NodeId> outside;  // in lanes: those that other lanes may read, too, which the run did not make

  void clear() {
    args.clear();
    begin.clear();
    ids.clear();
    at.clear();
    outside.clear();
  }
  // Those of so many groups, the first.
  void keep(std::size_t groups) {
    if (begin.size() <= groups) return;
    args.resize(begin[groups]);
    begin.resize(groups);
  }

  Arg& arg(u32 group, u32 j) { return args[begin[group] + j]; }
  const Arg& arg(u32 group, u32 j) const { return args[begin[group] + j]; }
};

// What a run is of (schedule/split.h). Without lanes all is head.
enum Stage : u8 { kHead, kLanes, kTail };

// What a backward pass writes over values of a type; Runner::restore makes them again.
enum Spent : u8 {
  kSpentOutput = 1,  // the gradient of output 0 lies where its value lies
  kSpentLast = 2,    // the same for the last output
  kReadsSpent = 4    // its call writes over arguments, which are gone: forward again writes these alone (Call::restore)
};

// A plan and where its values lie. Gradients lie in the same layout from grad_base on.
struct Run {
  Plan plan;
  Operands operands;
  float* value_base = nullptr;
  float* grad_base = nullptr;
  Arena::Point before{};       // of the memory of values, when they were given theirs
  NodeId first = 0, last = 0;  // nodes that were pending when the plan was made
  u32 lane = 0;                // which runner
  bool at_once = false;        // its nodes ran one by one, as they were made, and the next may be added
  bool any_spent = false;
  Vec<u8> spent;      // by type, Spent bits of the last backward pass
  Moment ran_at = 0;  // when it ran
  u8 stage = kHead;   // a Stage: lanes of one forward() may run at the same time; stages follow one another

  // Asks for what running again reads.
  void fetch() const {
    fetch_all(plan.groups, plan.types, plan.order, operands.args, operands.begin, operands.ids, operands.at);
  }
};

using Runs = std::vector<std::unique_ptr<Run>>;

// Is the node, which the run reads, a leaf, made of weights alone, or was it made in an earlier forward()?
inline bool made_outside(const Graph& g, const Run& run, NodeId i) {
  const NodeId maker = g.node(i).producer;
  return maker < run.first || g.node(maker).is(kLeaf | kWeight);
}

}  // namespace dnl
