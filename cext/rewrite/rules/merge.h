// Merging: op nodes that would compute the same are computed once.
//
// Sentences begin alike, leaves of trees carry the same words, and what is made of the same things in the same way has the same
// value. Before new nodes are fused and planned, some get a value number (as compilers do): rows of tables and constants that
// are read again, and nodes of one signature and the same attributes whose arguments have the same numbers. A node whose number
// an earlier one has becomes an alias of that one. Nobody must be able to ask for either (no expression refers to them), for
// their gradients become one. Projections inside cells, over which the cells' outputs may lie, are merged only where most of them
// repeat. Random ops and other inputs have no number. Who may include: rewrite/, exec/. Includes: graph/graph.h.
#pragma once
#include "graph/graph.h"

namespace dnl {

class Merger {
 public:
  // Looks at the nodes from `from` on, of which none has run.
  void begin(const Graph& g, NodeId from);
  // Then, once or more often: at nodes that run (Graph::is_op), in their order, one by one, and merges among these. What is
  // merged runs no more. How many?
  void see(const Graph& g, NodeId i) {
    if (g.node(i).depth > deepest_ + 2 || g.node(i).is(kWeight)) return;
    if (!g.node(i).is(kInner)) return number(g, i);
    if (any_frequent_) see_projection(g, i);
  }
  u32 merge(Graph& g);
  void release() { release_all(value_, worth_, again_, slots_, leaves_, projections_, inner_); }

 private:
  // Open addressing: who has a number, found by what it is made of.
  struct Slot { u32 hash, node; };

  NodeId value(NodeId i) const { return i < from_ ? kNoNode : value_[i - from_]; }
  void number_leaves(const Graph& g);
  void number(const Graph& g, NodeId i);
  void add(const Graph& g, NodeId i, u64 hash);
  bool same(const Graph& g, NodeId a, NodeId b) const;
  bool of_use(const Graph& g, NodeId i) const;
  void merge_into(Graph& g, NodeId i, NodeId first);
  bool reads_frequent(const Graph& g, NodeId i) const;
  void see_projection(const Graph& g, NodeId i);
  void choose_projections(Graph& g);
  void start();
  void empty();
  void grow();
  template <class Same>
  NodeId first_of(u64 hash, NodeId i, Same same);

  NodeId from_ = 0;
  u32 shallowest_ = 0;   // depth of any shared argument
  u32 deepest_ = 0;      // of these and of any node with a number
  Vec<NodeId> value_;    // by node, from from_ on: the first of its value, or kNoNode: it has no number
  Vec<u8> worth_;        // by node: one of its readers was merged, or it is a projection that is merged
  Vec<NodeId> again_;    // seen since the last merge(), and not the first of their value
  // By signature: leaves, and projections of cells since the last merge(), and how many of them an earlier one is like.
  struct Count {
    u32 all, again;
    bool mostly_again() const { return all >= kMany && 4 * again >= 3 * all; }
    static constexpr u32 kMany = 64;
  };
  Vec<Count> leaves_, projections_;
  bool any_frequent_ = false;  // are there leaves of a signature that are mostly read again?
  Vec<NodeId> inner_;          // then: projections of cells since the last merge()
  Vec<Slot> slots_;      // nodes count from 1: 0 is empty
  u32 taken_ = 0, most_taken_ = 0;
};

}  // namespace dnl
