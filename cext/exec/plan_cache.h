// PlanCache: plans of small graphs of before, found again where a graph is made alike (graph/known_graph.h).
//
// Programs that train on one example at a time make the same few graphs again and again. For these, passes and planning
// take longer than arithmetic. A plan is kept with the backward passes and the calls that went with it; some hundred
// are, of so many nodes in all, and those that were not used for longest go. Where graphs are seldom alike, fewer and
// fewer are looked at.
//
// Where a program asks for values in between, a graph runs in parts, and each has a plan of its own. It is looked for
// among those that came behind the plan of the part before. So who has found the last has found all, and the plan of a
// backward pass through them is one of the last. Who may include: exec/executor.h. Includes: exec/runner.h,
// exec/back_pass.h.
#pragma once
#include <memory>
#include <vector>

#include "exec/back_pass.h"
#include "exec/runner.h"
#include "graph/known_graph.h"

namespace dnl {

// A part of a graph that has run, and all that was found out for it. While it is live the executor works with `run` and
// has left its own here.
struct KnownPlan {
  u64 id = 0, before = 0;  // before: the part in front, by its id; 0: there is none
  KnownGraph graph;
  ExecOptions options;
  bool whole = false, keep_weights = false;
  std::unique_ptr<Run> run;
  std::unique_ptr<Runner::KeptCalls> calls;
  BackPasses passes;  // over the graph up to the end of this part
  Vec<NodeId> leaf_parts;
  Arena::Mark values;
  u64 dead = 0, merged = 0;
  u64 used = 0;  // when
};

class PlanCache {
 public:
  static constexpr u32 kMostNodes = 512, kMost = 256, kMostInAll = 1 << 15;
  static constexpr u32 kMostParts = 64;  // of one graph

  // Of a part that no pass has seen, behind the known part `before` if that is not null: the plan of one that was made
  // alike, or null. Then the part is noted, if it is to be kept.
  KnownPlan* find(const Graph& g, const KnownPlan* before, const ExecOptions& options, bool whole);
  // Was the part that has just run noted when it was made?
  bool noted() const { return noted_; }
  void forget_note() { noted_ = false; }
  // For it: room, in place of those that were not used for longest if there is none. Null: it cannot be kept.
  KnownPlan* keep(const Graph& g, const KnownPlan* before);
  // Are parts behind the first of this graph looked at?
  bool follows() const { return follows_; }
  // It is of no use.
  void drop(const KnownPlan* plan);
  void release();

 private:
  // Looking is not free: graphs are looked at as long as there is credit, and without only every so many.
  // Parts have one of their own, and lose it where fewer than a third are found: then a hit does not pay for the
  // misses.
  static constexpr int kCredit = 64, kOfHit = 8, kOfPart = 2, kSeldom = 32;

  struct Credit {
    int left = kCredit, skipped = 0;

    bool look() { return left > 0 || ++skipped % kSeldom == 0; }
    void hit(int more) { left = left + more < kCredit ? left + more : kCredit; }
    void miss() { left -= left > 0; }
  };
  bool may_look(const KnownPlan* before);
  std::unique_ptr<KnownPlan> take_oldest();
  std::unique_ptr<KnownPlan> take_out(std::size_t k);

  std::vector<std::unique_ptr<KnownPlan>> plans_;
  Vec<u64> hashes_;  // of their graphs
  u32 nodes_ = 0;    // of all
  GraphLooks looks_;
  MadeNodes made_;
  bool noted_ = false, follows_ = false;
  Credit graphs_, parts_;
  u64 now_ = 0, ids_ = 0;
};

}  // namespace dnl
