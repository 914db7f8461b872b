// Graph::append: adds an op node of a signature that is known, with its outputs. It is what building a graph comes down
// to, and is compiled into those who know how arguments are found. Who may include: graph/. Includes: graph/graph.h.
#pragma once
#include "graph/graph.h"

namespace dnl {

// arg(j) is argument j. Not for an alias.
template <class Arg>
inline NodeId Graph::append(u32 s, u32 nargs, Arg arg, const Word* member, u32 nmember) {
  const u32 at = static_cast<u32>(operands_.size());
  NodeId* const to = operands_.extend(nargs);
  Node* const nodes = nodes_.data();
  u32 depth = 0, any = 0, all = 0xffffffffu;
  for (u32 j = 0; j < nargs; ++j) {
    Node& a = nodes[to[j] = arg(j)];
    const u32 flags = a.flags, deep = a.depth;
    count(a.readers);
    depth = deep > depth ? deep : depth;
    any |= flags;
    all &= flags;
  }
  DNL_INTERNAL(!(any & (kFused | kDead)), "graph: an argument has become a part of another node, or will not run");

  const Signature& sig = sigs_[s];
  const u32 flags = sig.flags | (any & sig.of_any) | (all & sig.of_all);
  const u32 words = static_cast<u32>(words_.size()), outputs = sig.visible;
  if (nmember) words_.append(member, nmember);
  const NodeId id = size();
  if (id + outputs > kMostNodes) too_many_nodes();
  Node* n = nodes_.extend(outputs);
  write(n, s, at, words, id, depth + 1, sig.dim[0], flags);
  for (u32 o = 1; o < outputs; ++o) {
    write(++n, s, at, words, id, depth + 1, sig.dim[o], flags | kOutput);
    n->root = id + o;
  }
  return id;
}

inline void Graph::write(Node* n, u32 s, u32 at, u32 words, NodeId id, u32 depth, u32 dim, u32 flags) {
  n->sig = s;
  n->args = at;
  n->member = words;
  n->producer = n->root = id;
  n->offset = 0;
  n->depth = depth;
  n->dim = dim;
  n->stamp = generation_;
  n->flags = static_cast<u16>(flags);
  n->readers = n->handles = 0;
  n->value = nullptr;
}

}  // namespace dnl
