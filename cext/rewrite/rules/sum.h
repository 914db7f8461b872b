// Folding: a sum of products and a bias becomes one affine map, when nobody else can ever ask for its terms.
//
// W * x + U * h + b, written with operators, is what affine_transform([b, W, x, U, h]) is: products add up where they are made, and
// what flows back into them is one gradient, not a copy for each. Without a bias it is _products (ops/matmul.cc). What else is added
// stays in the sum. Who may include: rewrite/. Includes: graph/graph.h.
#pragma once
#include "graph/graph.h"

namespace dnl {

class SumFolder {
 public:
  void begin(const Graph& g, NodeId from);
  static bool is_sum(const Signature& sig);
  // Looks at a sum; those under it come before it.
  void see(const Graph& g, NodeId i);
  // Rewrites what can be; was there any? `list`: by node, from `from` on, the list that it is in. What is in one list is no part of
  // what is in another.
  bool finish(Graph& g, const Vec<u8>& list);
  void release() { release_all(sums_, size_, sort_, read_often_, maps_, others_, inner_, args_); }

 private:
  static constexpr u32 kMostTerms = 8, kMostArgs = 32;
  // Products with longer rows of a table stay out of a sum with what is computed: all words of all sentences are one batch, in
  // which words repeat.
  static constexpr u32 kShortRow = 128;
  // Of a sum: terms, with those of the sums under it; those that are maps, of long rows alone, or not; is it under another one?
  // No terms: not a sum with a map.
  struct Size {
    u8 terms, maps, row_maps;
    bool under;
  };
  enum Sort : u8 { kUnknown, kOther, kMap, kLongMap };
  static Sort judge(const Graph& g, NodeId i);
  Sort sort(const Graph& g, NodeId i) {
    Sort& s = sort_[g.node(i).sig];
    if (s == kUnknown) s = judge(g, i);
    return s;
  }
  bool is_part(const Graph& g, const Vec<u8>& list, NodeId a, NodeId of) const;
  void measure(const Graph& g, const Vec<u8>& list, NodeId i);
  static bool promises(const Size& size);
  void gather(const Graph& g, const Vec<u8>& list, NodeId i, NodeId root);
  bool takes(const Graph& g, const Vec<u8>& list, NodeId a, NodeId root);
  template <class F>
  void keep_maps(F f);
  NodeId take_bias(const Graph& g);
  bool fold(Graph& g, const Vec<u8>& list, NodeId root);

  NodeId from_ = 0;
  Vec<NodeId> sums_;
  Vec<Size> size_;      // by node, from from_ on
  Vec<Sort> sort_;      // by signature
  Vec<u8> read_often_;  // likewise: such a map is a term of some sum, and is read elsewhere, too
  Vec<NodeId> maps_, others_, inner_;  // terms of the sum at hand, and the sums under it
  Vec<NodeId> args_;
};

}  // namespace dnl
