// Splitting pending nodes into parts that can run at the same time.
//
// The head is what weights alone are made into; the tail is what joins the examples at the end: sums of losses or,
// where examples are mini-batches by hand from some op on, that op and all that follows. Between them lie independent
// components (examples), which are dealt to lanes of like cost. Pure: reads the graph, writes lists. Who may include:
// exec/. Includes: schedule/plan.h.
#pragma once
#include "schedule/plan.h"

namespace dnl {

struct Split {
  Vec<NodeId> head, tail;
  Vec<NodeId> lane[16];
  int lanes = 1;

  void release() {
    release_all(head, tail);
    for (Vec<NodeId>& nodes : lane) nodes.release();
  }
};
constexpr int kMaxLanes = 16;

// `exec`: op nodes to run, ascending; a lane for each thread. False when there is nothing to gain (one big component,
// less work in floats touched than least_work); then out is undefined.
bool split(const Graph& g, const Vec<NodeId>& exec, int threads, u64 least_work, Split& out, PlanScratch& scratch);

}  // namespace dnl
