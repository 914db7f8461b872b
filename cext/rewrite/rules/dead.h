// Dead code: op nodes that nobody can ask for and nothing reads do not run.
//
// Dead is an op node to none of whose outputs an expression refers, if no node reads them or only dead ones do. No gradient
// flows into such nodes, so that they would also cut batches when these run backward. Who may include: rewrite/, exec/. Includes: graph/graph.h.
#pragma once
#include "graph/graph.h"

namespace dnl {

class DeadCode {
 public:
  // Looks at the nodes from `from` on, which are as they were made: none has run or has been rewritten.
  void begin(NodeId from) {
    from_ = from;
    found_.clear();
  }
  // Then at each node that runs (Graph::is_op), once all have been made.
  void see(const Graph& g, NodeId i) {
    if (!g.readers(i) && unused(g, i)) found_.push_back(i);
  }
  // Marks those that are dead and all that dies with them. How many?
  u32 finish(Graph& g);
  void release() { release_all(found_); }

 private:
  bool unused(const Graph& g, NodeId i) const;

  NodeId from_ = 0;
  Vec<NodeId> found_;  // whose arguments have not been looked at
};

}  // namespace dnl
