// Rewriter: the only way in which passes change a graph.
//
// Uses (how often a node is an argument), what needs a gradient and depths are kept right by it: a pass says what
// becomes of a node and counts nothing. Nodes before first() have run, or a checkpoint can return to them, and stay
// what they are. Nodes of different lanes may run at the same time: none becomes a part of another lane's. Who may
// include: rewrite/. Includes: rewrite/kinds.h.
#pragma once
#include <string>
#include <vector>

#include "rewrite/chains.h"
#include "rewrite/kinds.h"

namespace dnl {

// The graph as text after each pass, while somebody asks.
struct RewriteLog {
  struct Entry {
    std::string name, text;
  };
  bool on = false;
  std::vector<Entry> entries;
  void note(const char* name, const Graph& g, NodeId from);
};

class Rewriter {
 public:
  explicit Rewriter(Graph& g) : g_(g) {}
  // Nodes from `first` on may be changed; those from `unseen` on are as they were made.
  void begin(NodeId first, NodeId unseen);
  // The graph has lost signatures, whose numbers others will have.
  void forget_signatures() { kinds_.forget(); }
  // These nodes are a lane; without any, all are in one.
  void add_lane(const NodeId* begin, const NodeId* end);

  const Graph& graph() const { return g_; }
  NodeId first() const { return first_; }
  NodeId unseen() const { return unseen_; }
  // Entry of a node in an array that a pass keeps by node.
  std::size_t at(NodeId i) const { return i - first_; }
  std::size_t count() const { return g_.size() - first_; }
  // Which one a node is in, counted from 0.
  u32 lane(NodeId i) const { return lane_[at(i)] - 1u; }
  bool same_lane(NodeId i, NodeId k) const { return lane_.empty() || lane_[at(i)] == lane_[at(k)]; }
  const Kind& kind(NodeId i) { return kinds_.of(g_, i); }

  // ---- may it become a part of what reads it? ---------------------------------------------------
  // An op node that nobody can ask for but those that read it: no expression refers to it, and no cell or weight needs
  // it.
  bool hidden(NodeId i) const {
    const Node& n = g_.node(i);
    return i >= first_ && g_.is_op(i) && !n.is(kInner | kWeight) && n.is(kCounted) && n.handles == 0 &&
           n.readers != Node::kMany;
  }
  // And `into`, of the same lane, is the only one, which reads it once.
  bool absorbable(NodeId i, NodeId into) const { return hidden(i) && g_.node(i).readers == 1 && same_lane(i, into); }

  // ---- changes ----------------------------------------------------------------------------------
  // Node i runs inside `into` from now on: it reads nothing itself any more. Then `into` is replaced.
  void absorb(NodeId i, NodeId into);
  // Node i becomes another op, with these arguments and attributes; without any member attributes it keeps those that
  // it has. Arguments stand before i, but leaves may stand behind it.
  void replace(NodeId i, OpId op, const NodeId* args, u32 nargs, const Word* key = nullptr, u32 nkey = 0,
               const Word* member = nullptr, u32 nmember = 0);
  // Node i becomes a bundle, whose arguments these are: a row of each stacked argument for each element of its
  // mini-batch.
  void bundle(NodeId i, const NodeId* args, u32 nargs);
  // Op node i and its outputs become aliases of the earlier node `first`, which computes the same.
  void alias(NodeId i, NodeId first);
  // Op node i does not run. What it read may be without readers then.
  void kill(NodeId i);
  // A cell's inner node stands by itself: others are about to read it.
  void separate(NodeId i);
  // Node i is no deeper than this; replace() makes it as deep as its arguments ask for.
  void lift(NodeId i, u32 depth);
  // What was the value of node i is a part of it now: nobody can ask for it.
  void hide_value(NodeId i);
  // The gradient of node i may not lie where its value lies.
  void keep_gradient_apart(NodeId i);

  // A pass has done its work.
  void note(const char* pass) { log.note(pass, g_, first_); }
  RewriteLog log;
  Chains chains;  // of the nodes that may be changed, once a pass has looked for them
  void release() { release_all(kinds_, lane_, chains); }

 private:
  void forget_uses(NodeId i);
  void leave_parts(NodeId i);
  void count_uses(NodeId i);

  Graph& g_;
  NodeId first_ = 0, unseen_ = 0;
  Kinds kinds_;
  Vec<u8> lane_;  // by node, from first_ on; empty: there is one lane
  u8 lanes_ = 0;
};

}  // namespace dnl
