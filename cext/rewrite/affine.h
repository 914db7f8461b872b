// Affine maps as nodes: matmul, affine_transform and _products. Their arguments are [b,] W1, x1, W2, x2, ...
// Who may include: rewrite/. Includes: graph/graph.h.
#pragma once
#include "graph/graph.h"

namespace dnl {

inline bool is_affine(const Signature& sig) { return sig.leaf == Leaf::None && !sig.alias && op_def(sig.op).joinable; }
inline bool has_bias(const Signature& sig) { return sig.nargs % 2 != 0; }

// Does f hold for one of the vectors of a map?
template <class F>
bool any_vector(const Graph& g, NodeId map, F f) {
  const Signature& sig = g.signature(map);
  for (u32 j = has_bias(sig) + 1u; j < sig.nargs; j += 2)
    if (f(g.operands(map)[j])) return true;
  return false;
}

// Maps vectors that each node brings, with matrices and a bias that all nodes of its signature share.
inline bool maps_vectors(const Graph& g, NodeId i) {
  const u32 s = g.node(i).sig, n = g.nargs(i), bias = has_bias(g.signature(i));
  const NodeId* args = g.operands(i);
  if (n < 2 || g.dim(i).nd != 1) return false;
  if (bias && (!g.arg_shared(s, 0) || !g.dim(args[0]).is_vector() || g.dim(args[0]).bd != 1)) return false;
  for (u32 j = bias; j < n; j += 2) {
    const Dim& x = g.dim(args[j + 1]);
    if (!g.arg_shared(s, j) || g.arg_shared(s, j + 1) || g.dim(args[j]).bd != 1 || !x.is_vector() ||
        x.bd != g.dim(i).bd)
      return false;
  }
  return true;
}

}  // namespace dnl
