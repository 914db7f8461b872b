// HeldNodes: nodes that something refers to all together, as a list of expressions that have not been made yet does.
// Who may include: bindings/. Includes: graph/graph.h.
#pragma once
#include <algorithm>
#include <vector>

#include "graph/graph.h"

namespace dnl {

// What a Handle for each of them would be. The graph must outlive it.
class HeldNodes {
 public:
  HeldNodes() = default;
  HeldNodes(const HeldNodes&) = delete;
  HeldNodes& operator=(const HeldNodes&) = delete;
  ~HeldNodes() { let_go(); }

  // Nodes of one generation, room for n.
  void begin(Graph& g, std::size_t n) {
    graph_ = &g;
    stamp_ = g.generation();
    ids_.reserve(n);
  }
  // n more. False, and nothing done, if one is older.
  bool push(const NodeId* ids, std::size_t n) {
    if (!std::all_of(ids, ids + n, [&](NodeId i) { return graph_->stamp(i) == stamp_; })) return false;
    ids_.insert(ids_.end(), ids, ids + n);
    for (std::size_t k = 0; k < n; ++k) graph_->hold(ids[k]);
    return true;
  }
  // Their numbers stay.
  void let_go() {
    if (!graph_) return;
    const bool all = nothing_gone(*graph_);
    for (NodeId i : ids_)
      if ((all || graph_->valid(i, stamp_)) && graph_->node(i).is(kCounted)) graph_->let_go(i);
    graph_ = nullptr;
  }

  // Are all of them in this graph?
  bool valid(const Graph& g) const {
    return nothing_gone(g) || std::all_of(ids_.begin(), ids_.end(), [&](NodeId i) { return g.valid(i, stamp_); });
  }
  std::size_t size() const { return ids_.size(); }
  const NodeId* data() const { return ids_.data(); }
  u32 stamp() const { return stamp_; }

 private:
  // No node of the graph has gone since the first of these was made: none need be asked.
  bool nothing_gone(const Graph& g) const { return g.generation() == stamp_; }

  Graph* graph_ = nullptr;
  u32 stamp_ = 0;
  std::vector<NodeId> ids_;
};

}  // namespace dnl
