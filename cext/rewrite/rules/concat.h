// Folding: a product of a matrix and a concatenation becomes products of parts of the matrix, when nobody else can ever ask for
// the concatenation.
//
// W * concatenate([word, tag]) reads word and tag where they lie (ops/affine_parts.cc): nothing is copied, and vectors of words
// that repeat are multiplied once. Only where something is looked up. Who may include: rewrite/. Includes: graph/graph.h.
#pragma once
#include "graph/graph.h"

namespace dnl {

class ConcatFolder {
 public:
  void begin(NodeId from);
  static bool is_concatenation(const Signature& sig);
  // Looks at a concatenation, and at an affine map.
  void see_concatenation(const Graph& g, NodeId i) { any_ = any_ || is_parts(g, i); }
  void see_product(const Graph& g, NodeId i) {
    if (any_) look_at(g, i);
  }
  // Rewrites products that are still what they were, where all of a signature can be; was there any?
  bool finish(Graph& g);
  void release() { release_all(products_, reads_, of_signature_); }

 private:
  static constexpr u32 kMostParts = 4, kMostArgs = 16;
  static constexpr std::size_t kLeastPart = 16;  // floats
  bool is_parts(const Graph& g, NodeId i) const;
  void look_at(const Graph& g, NodeId product);
  void keep_whole_signatures(const Graph& g);
  bool folds(const Graph& g, NodeId concatenation) const;
  void count_reads(const Graph& g, NodeId product);
  void rewrite(Graph& g, NodeId product);

  NodeId from_ = 0;
  bool any_ = false;       // is there a concatenation that could be folded?
  Vec<NodeId> products_;   // that read one
  Vec<u8> reads_;          // by node, from from_ on: products that read it and can be rewritten
  Vec<u32> of_signature_;  // nodes of each less those in products_
};

}  // namespace dnl
