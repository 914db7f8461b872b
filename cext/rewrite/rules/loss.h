// Folding: a loss becomes one node with the map that makes its scores, when nobody else can ever ask for these.
//
// pickneglogsoftmax of affine_transform([b, W, x]), of W * x + b and of W * x: ops/affine_loss.cc makes the scores piece by
// piece and uses them while they are at hand. Who may include: rewrite/. Includes: graph/graph.h.
#pragma once
#include "graph/graph.h"

namespace dnl {

class LossFolder {
 public:
  void begin(NodeId from);
  static bool is_loss(const Signature& sig);
  // Looks at a loss.
  void see(Graph& g, NodeId loss);
  // Rewrites what was found; was anything?
  bool finish(Graph& g);
  void release() { losses_.release(); }

 private:
  struct Map {
    NodeId x, w, bias;  // bias: kNoNode when there is none
  };
  struct Loss {
    NodeId node;
    Map map;
  };
  bool is_map(const Graph& g, NodeId i, Map* map) const;
  bool is_biased_product(const Graph& g, NodeId i, Map* map) const;

  NodeId from_ = 0;
  Vec<Loss> losses_;
};

}  // namespace dnl
