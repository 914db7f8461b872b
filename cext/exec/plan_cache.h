// PlanCache: plans of small graphs of before, found again where a graph is made alike (graph/known_graph.h).
//
// Programs that train on one example at a time make the same few graphs again and again. For these, passes and planning
// take longer than arithmetic. A plan is kept with the backward pass and the calls that went with it; some hundred are,
// of so many nodes in all, and those that were not used for longest go. Where graphs are seldom alike, fewer and fewer
// are looked at. Who may include: exec/executor.h. Includes: exec/runner.h, exec/back_pass.h.
#pragma once
#include <memory>
#include <vector>

#include "exec/back_pass.h"
#include "exec/runner.h"
#include "graph/known_graph.h"

namespace dnl {

// A graph that has run, and all that was found out for it. While it is live the executor works with run and calls, and
// with the pass if it can be run again, and has left its own here.
struct KnownPlan {
  KnownGraph graph;
  ExecOptions options;
  bool whole = false, keep_weights = false;
  std::unique_ptr<Run> run;
  std::unique_ptr<Runner::KeptCalls> calls;
  std::unique_ptr<BackPass> pass;
  Vec<NodeId> leaf_parts;
  Arena::Mark values;
  u64 dead = 0, merged = 0;
  u64 let_go = 0;  // nodes that had been let go when it ran
  u64 used = 0;    // when
};

class PlanCache {
 public:
  static constexpr u32 kMostNodes = 512, kMost = 256, kMostInAll = 1 << 15;

  // Of a graph that no pass has seen: the plan of one that was made alike, or null. Then the graph is noted, if it is
  // to be kept.
  KnownPlan* find(const Graph& g, const ExecOptions& options, bool whole);
  // Was the graph that has just run noted when it was made?
  bool noted() const { return noted_; }
  void forget_note() { noted_ = false; }
  // For it: room, in place of those that were not used for longest if there is none. Null: it cannot be kept.
  KnownPlan* keep(const Graph& g, Backend& backend);
  // It is of no use.
  void drop(const KnownPlan* plan);
  void release();

 private:
  // Looking is not free: graphs are looked at as long as there is credit, and without only every so many.
  static constexpr int kCredit = 64, kOfHit = 8, kSeldom = 32;

  std::unique_ptr<KnownPlan> take_oldest();
  std::unique_ptr<KnownPlan> take_out(std::size_t k);

  std::vector<std::unique_ptr<KnownPlan>> plans_;
  Vec<u64> hashes_;  // of their graphs
  u32 nodes_ = 0;    // of all
  GraphLooks looks_;
  MadeNodes made_;
  bool noted_ = false;
  int credit_ = kCredit, skipped_ = 0;
  u64 now_ = 0;
};

}  // namespace dnl
