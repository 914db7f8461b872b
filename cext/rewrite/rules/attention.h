// Folding: the scores of additive attention become one node when nobody else can ever ask for what is between.
//
// v * tanh(keys + query), the query a vector that is added to each column of the keys: ops/attention_scores.cc. Who may include:
// rewrite/. Includes: graph/graph.h.
#pragma once
#include "graph/graph.h"

namespace dnl {

class AttentionFolder {
 public:
  void begin(NodeId from);
  // Looks at a product. Is it one?
  bool see(Graph& g, NodeId product);
  // Rewrites what was found; was anything?
  bool finish(Graph& g);
  void release() { found_.release(); }

 private:
  struct Scores {
    NodeId node, v, keys, query;
  };
  bool is_part(const Graph& g, NodeId i, OpId op) const;

  NodeId from_ = 0;
  Vec<Scores> found_;
};

}  // namespace dnl
