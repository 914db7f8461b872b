// Bundling: a node that takes mini-batches made by concatenate_to_batch reads their elements where they lie, when nobody else can
// ever ask for the mini-batches.
//
// affine_transform([b, W, concatenate_to_batch(states)]) becomes a bundle: one node, which runs as if it were as many members of
// a batch as there are states. Nothing is copied, gradients go straight to the states, and states that are one in memory
// (rewrite/rules/merge.h) stay so. Who may include: rewrite/. Includes: graph/graph.h.
#pragma once
#include "graph/graph.h"

namespace dnl {

class Bundler {
 public:
  void begin(NodeId from);
  // Looks at a product, a loss or a concatenation.
  void see(const Graph& g, NodeId i) {
    if (g.dim(i).bd > 1) takers_.push_back(i);
  }
  // Rewrites those that can be; was there any?
  bool finish(Graph& g);
  void release() { release_all(takers_, args_); }

 private:
  bool is_list(const Graph& g, NodeId i, u32 elements) const;
  bool fits(const Graph& g, NodeId i) const;
  void rewrite(Graph& g, NodeId i);

  NodeId from_ = 0;
  Vec<NodeId> takers_;  // of mini-batches
  Vec<NodeId> args_;
};

}  // namespace dnl
