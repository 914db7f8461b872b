// Dead code: op nodes that nobody can ask for and nothing reads do not run.
//
// Programs make more than their loss needs: the state after the last word, what a parser makes of its last action. Such a node
// would not only be computed for nothing: no gradient flows into it, and a batch that it stands in is cut there when it runs
// backward. Dead is an op node to none of whose outputs an expression refers, if no node reads them or only dead ones do. Who may
// include: exec/. Includes: graph/graph.h.
#pragma once
#include "graph/graph.h"

namespace dnl {

class DeadCode {
 public:
  // Looks at the nodes from `from` on, of which none has run.
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
