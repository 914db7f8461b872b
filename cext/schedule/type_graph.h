// The graph of types (signatures) of one plan: an edge where a node of one type is an argument of a node of another.
//
// Its strongly connected components are what recurrence is made of: in a component of one type that never feeds itself
// all nodes can run as one batch. Who may include: schedule/ only. Includes: base/.
#pragma once
#include "base/vec.h"

namespace dnl {

struct StrategyInput;

struct TypeGraph {
  u32 n_comp = 0;
  Vec<u32> comp;               // by type; components are numbered in reverse topological order
  Vec<u8> feeds_itself;        // by type: some node has an argument of its own type
  Vec<u32> node_begin, nodes;  // by component: local node indices, ascending
  Vec<u32> type_begin, types;  // by component: its types

  void build(const StrategyInput& in);
  void release() {
    release_all(comp, feeds_itself, node_begin, nodes, type_begin, types, begin_, edges_, low_, index_, stack_, call_,
                edge_at_);
  }
  bool recurrent(u32 c) const { return type_begin[c + 1] - type_begin[c] > 1 || feeds_itself[types[type_begin[c]]]; }

 private:
  void find_edges(const StrategyInput& in);
  void find_components(u32 n_types);
  void list_members(const StrategyInput& in);

  Vec<u32> begin_, edges_;  // CSR, successors
  Vec<u32> low_, index_, stack_, call_, edge_at_;
};

// Can a path through component c have more than 65,535 nodes of one type? Numbers of them (typed depths) are 16 bits
// wide where none can: there is one for each node and type.
bool deep(const StrategyInput& in, const TypeGraph& graph, u32 c);
// Least number of batches for component c, and for the whole plan, as far as it is found with work that grows with the
// number of nodes (lower_bound.cc). steps: is added to (Plan::steps).
u32 chain_bound(const StrategyInput& in, const TypeGraph& graph, u32 c, u64& steps);
u32 lower_bound(const StrategyInput& in, u64& steps);

}  // namespace dnl
