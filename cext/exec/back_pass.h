// BackPass: a backward pass as it was planned, and what must be as it was for it to run again (back_again.cc).
//
// Plain data but for the planner. Who may include: exec/ only. Includes: schedule/.
#pragma once
#include "base/arena.h"
#include "schedule/back_planner.h"

namespace dnl {

struct BackPass {
  BackPass(const Graph& g, Backend& backend) : planner(g, backend) {}

  struct Direct {
    NodeId node;
    u64 serial;
  };
  struct Ready {  // what the plan was made for
    bool there = false, full = false, any_spent = false, keep_weights = false;
    NodeId loss = 0;
    u64 let_go = 0;
    int threads = 0;
    u64 least_work = 0;
    Vec<float*> slot;   // where the gradients of `slots` lay
    Arena::Mark grads;  // and all others
  };

  BackPlanner planner;
  Vec<NodeId> reached_aliases;  // the last first
  std::size_t first_run = 0;    // runs before were not reached
  Vec<Direct> direct;           // weights whose gradient lies in the accumulator; its serial number after the pass
  Vec<NodeId> apart;            // weights and rows that have memory of their own, which is added to the accumulator
  Vec<NodeId> slots;            // rows whose gradient lies in the table's
  Ready ready;

  void release() { release_all(planner, reached_aliases, direct, apart, slots, ready.slot); }
};

}  // namespace dnl
