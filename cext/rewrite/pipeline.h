// The passes over the graph, run in the order of their table (rewrite/passes.h): each over all lanes, one by one.
//
// Nodes are sorted by role once; what a pass makes for later ones to look at is added. Who may include: exec/.
// Includes: rewrite/passes.h.
#pragma once
#include "rewrite/passes.h"

namespace dnl {

class Pipeline {
 public:
  explicit Pipeline(Graph& g) : rewriter_(g) {}
  // Nodes from `from` on have not run, those from `unseen` on are as they were made. `on`: which passes run; verify: is
  // the graph verified after each of them?
  void begin(NodeId from, NodeId unseen, PassSet on, bool verify);
  // The op nodes that are to run, one by one, ascending.
  void see(NodeId i) {
    if (i < rewriter_.first() || !on_) return;
    const Graph& g = rewriter_.graph();
    if (!g.readers(i)) all_.unread.push_back(i);
    const u32 roles = rewriter_.kind(i).roles;
    if (!roles || g.node(i).is(kWeight)) return;
    for (u32 role = 0, left = roles; left; ++role, left >>= 1)
      if (left & 1u) all_.of[role].push_back(i);
  }
  // All op nodes of the graph, which are listed.
  void see_all(Vec<NodeId>& ops);
  // What goes before nodes are dealt to lanes. Does any not run any more?
  bool drop_dead();
  // Then all other passes, over lanes or, if there are none, over these nodes. Does any node not run by itself any
  // more?
  void add_lane(const Vec<NodeId>& nodes);
  bool run(const Vec<NodeId>& nodes);
  // How many nodes a pass changed since begin().
  u32 changes(PassId id) const { return changes_[static_cast<u32>(id)]; }
  void forget_signatures() { rewriter_.forget_signatures(); }
  RewriteLog& log() { return rewriter_.log; }
  const RewriteLog& log() const { return rewriter_.log; }
  void release();

 private:
  bool run(PassId id);
  void deal();
  void take_products(Lane& lane);
  void set_nodes(Lane& lane, const Vec<NodeId>& nodes) const;
  Lane& lane(u32 l) { return used_ ? lanes_[l] : all_; }

  Rewriter rewriter_;
  PassSet on_ = kAllPasses;
  bool verify_ = false;
  std::unique_ptr<Pass> passes_[kPasses];  // made when they are first on
  Lane all_;                               // of all lanes
  std::vector<Lane> lanes_;                // the first used_; none: there is one, all_
  u32 used_ = 0;
  u32 changes_[kPasses] = {};
  Vec<NodeId> new_products_;
  Vec<u32> uses_;  // of the verifier
};

// All passes of `on` over a graph that will not run: what it has become is recorded (graph/body.h) and added to other
// graphs, whose passes go on from there. verify: as in Pipeline::begin().
void rewrite_ahead(Graph& g, PassSet on, bool verify);

}  // namespace dnl
