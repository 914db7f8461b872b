// KnownGraph: a graph of before, as it was made and as the passes left it, so that one that is made alike need not go
// through them again.
//
// Alike are graphs that have the same nodes: signatures, arguments, who refers to them, weights and tables. What may
// differ is data: numbers of inputs, rows that are looked up, labels and other attributes of nodes, seeds. But merging
// looks at some data (rewrite/rules/merge.cc): rows must repeat where they did, and attributes must be the same where
// rows repeat or constants were made, and where a pass has copied them.
//
// A graph may be made and run in parts, one behind the other. Then a KnownGraph is of one part, behind one that is
// known: what is before it need not be looked at again. Who may include: exec/. Includes: graph/graph.h.
#pragma once
#include "graph/graph.h"

namespace dnl {

// How much there is of a graph.
struct GraphSize {
  u32 nodes = 0, operands = 0, words = 0, sigs = 0, keys = 0, dims = 0, params = 0, tables = 0, leaves = 0;

  static GraphSize of(const Graph& g);
  bool operator==(const GraphSize& o) const { return std::memcmp(this, &o, sizeof o) == 0; }
  bool operator!=(const GraphSize& o) const { return !(*this == o); }
};

// What tells graphs apart at first sight; found once for each part that is made.
struct GraphLooks {
  u64 hash = 0;
  Vec<u32> first;  // of the leaves of the part in known_leaves() the first that has the same row, or constant

  // The nodes behind `from`, where `before` is a number of what is before them.
  void see(const Graph& g, const GraphSize& from, u64 before);
  void release() { release_all(first, slots_); }

 private:
  Vec<u32> slots_;
};

// The nodes as they were made, until it is known what became of them.
struct MadeNodes {
  Vec<Node> nodes;  // of the whole graph
  GraphSize size;

  void note(const Graph& g);
  void release() { nodes.release(); }
};

class KnownGraph {
 public:
  // `made`, whose looks from `from` on these are, is what g is now. False: it cannot be kept, for a pass has copied a
  // seed.
  bool take(const Graph& g, const GraphSize& from, const MadeNodes& made, const GraphLooks& looks);
  // Is g, which no pass has seen, made alike? Its looks have the same hash.
  bool like(const Graph& g, const GraphLooks& looks) const;
  // Then: g is what this one became, with the data of g.
  void put(Graph& g) const;
  // Is g, after the passes, what put() would make of it?
  bool same(const Graph& g) const;
  // Of the part.
  u32 nodes() const { return static_cast<u32>(nodes_.size()); }
  // What the graph has when it has become this.
  const GraphSize& end() const { return end_; }

 private:
  struct Range {
    u32 begin, end;
  };
  // What passes change in nodes before the part, which have run. All else is theirs, as where an alias begins that has
  // been moved since.
  struct Changed {
    NodeId id;
    u16 flags;
    u8 readers;
    bool many;  // Node::kMany expressions refer to it
  };
  void find_numbered(const Graph& g, const GraphLooks& looks);
  bool find_fixed(const Graph& g);
  void find_changed(const Graph& g, const MadeNodes& made);
  bool must_stay(const Graph& g, NodeId i, const Node& made) const;
  static Range words_of(const Graph& g, NodeId i);

  GraphSize from_, made_size_, end_;  // before the part, as it was made, after the passes
  // All lists are of the part:
  Vec<Node> made_, nodes_;
  Vec<Changed> changed_;
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
