// KnownGraph: a graph of before, as it was made and as the passes left it, so that one that is made alike need not go
// through them again.
//
// Alike are graphs that have the same nodes: signatures, arguments, who refers to them, weights and tables. What may
// differ is data: numbers of inputs, rows that are looked up, labels and other attributes of nodes, seeds. But merging
// looks at some data (rewrite/rules/merge.cc): rows must repeat where they did, and attributes must be the same where
// rows repeat or constants were made, and where a pass has copied them. Who may include: exec/. Includes:
// graph/graph.h.
#pragma once
#include "graph/graph.h"

namespace dnl {

// What tells graphs apart at first sight; found once for each graph that is made.
struct GraphLooks {
  u64 hash = 0;
  Vec<u32> first;  // of the leaves in known_leaves() the first that has the same row, or constant

  void see(const Graph& g);
  void release() { release_all(first, slots_); }

 private:
  Vec<u32> slots_;
};

// The nodes as they were made, until it is known what became of them.
struct MadeNodes {
  Vec<Node> nodes;
  u32 operands = 0, words = 0, sigs = 0, keys = 0, dims = 0;

  void note(const Graph& g);
  void release() { nodes.release(); }
};

class KnownGraph {
 public:
  // `made`, whose looks these are, is what g is now. False: it cannot be kept, for a pass has copied a seed.
  bool take(const Graph& g, const MadeNodes& made, const GraphLooks& looks);
  // Is g, which no pass has seen, made alike? Its looks have the same hash.
  bool like(const Graph& g, const GraphLooks& looks) const;
  // Then: g is what this one became, with the data of g.
  void put(Graph& g) const;
  // Is g, after the passes, what put() would make of it?
  bool same(const Graph& g) const;
  u32 nodes() const { return static_cast<u32>(nodes_.size()); }

 private:
  struct Range {
    u32 begin, end;
  };
  void find_numbered(const Graph& g, const GraphLooks& looks);
  bool must_stay(const Graph& g, NodeId i, const Node& made) const;
  static Range words_of(const Graph& g, NodeId i);

  u32 n_operands_ = 0, n_words_ = 0, n_sigs_ = 0, n_keys_ = 0, n_dims_ = 0;  // as it was made
  Vec<Node> made_, nodes_;
  Vec<NodeId> operands_;
  Vec<Word> words_;
  Vec<Range> fixed_;  // words that must be the same
  Vec<u8> numbered_;
  Vec<Signature> sigs_;
  Vec<u32> keys_, key_len_, first_;
  Vec<Dim> dims_;
  Vec<const Parameter*> params_;
  Vec<const LookupTable*> tables_;
};

}  // namespace dnl
