// What there is to know of a signature for passes: asked once, the same for all of them. Who may include: rewrite/.
// Includes: graph/graph.h.
#pragma once
#include "graph/graph.h"

namespace dnl {

struct Kind {
  enum Sort : u8 { kUnknown, kOther, kElementwise, kProduct, kConcatenation, kLoss } sort;
  // Of what is elementwise:
  Formula formula;
  u8 id, constants;
  bool reads_value_only;
  bool sum;  // also, whatever the sort
};

class Kinds {
 public:
  void begin(const Graph& g) {
    kinds_.clear();
    update(g);
  }
  // Passes make new signatures; those from before stay what they are.
  void update(const Graph& g) {
    const std::size_t known = kinds_.size();
    kinds_.resize(g.signatures());
    for (std::size_t s = known; s < kinds_.size(); ++s) kinds_[s].sort = Kind::kUnknown;
  }
  const Kind& of(const Graph& g, NodeId i) {
    Kind& k = kinds_[g.node(i).sig];
    if (k.sort == Kind::kUnknown) k = judge(g, g.node(i).sig);
    return k;
  }
  // Of a node that has been asked for before.
  const Kind& known(const Graph& g, NodeId i) const { return kinds_[g.node(i).sig]; }
  void release() { kinds_.release(); }

 private:
  static Kind judge(const Graph& g, u32 sig);

  Vec<Kind> kinds_;  // by signature
};

}  // namespace dnl
