// What passes look for: the one classification of signatures, asked once for each. Who may include: rewrite/. Includes:
// graph/graph.h.
#pragma once
#include "graph/graph.h"

namespace dnl {

struct alignas(8) Kind {
  // What a node may be to a pass; a sum of terms is elementwise, too, if they have its shape.
  enum Role : u8 { kElementwise, kProduct, kSum, kConcatenation, kLoss };
  static constexpr u32 kRoles = 5;
  u8 roles = 0;  // a bit for each
  bool known = false;
  Kind() : reads_value_only(false), maps(false), long_rows(false), joins(false) {}
  bool is(Role role) const { return (roles >> role & 1u) != 0; }

  // Of what is elementwise:
  Formula formula = Formula::None;
  u8 id = 0, constants = 0;
  bool reads_value_only : 1;
  // Of products that map vectors which each node brings, with matrices that all share (rewrite/affine.h):
  bool maps : 1;
  bool long_rows : 1;  // some vector has more than kShortRow rows
  bool joins : 1;      // may become one node with others of the same vectors
};

class Kinds {
 public:
  // The signatures that there were are gone.
  void forget() { kinds_.clear(); }
  // New signatures are made all the time; those from before stay what they are.
  const Kind& of(const Graph& g, NodeId i) {
    const u32 s = g.node(i).sig;
    if (s >= kinds_.size()) grow(g);
    Kind& k = kinds_[s];
    if (!k.known) k = judge(g, i);
    return k;
  }
  void release() { kinds_.release(); }

 private:
  void grow(const Graph& g);
  static Kind judge(const Graph& g, NodeId i);

  Vec<Kind> kinds_;  // by signature
};

// Each in the file of the pass that asks.
bool is_loss(const Signature& sig);              // rules/loss.cc
bool is_sum(const Signature& sig);               // rules/sum.cc
bool has_long_rows(const Graph& g, NodeId map);  // likewise
bool is_concatenation(const Signature& sig);     // rules/concat.cc
bool can_be_joined(const Graph& g, NodeId map);  // rules/join.cc

}  // namespace dnl
