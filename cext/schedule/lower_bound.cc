// The least number of batches any schedule can have: the sum over types of the longest chain of nodes of that type.
//
// Nodes of one type on one path cannot share a batch. Found by counting, for each node, the nodes of each type on its
// longest path in that type, kChunk types at a time. A type of one node is a chain of one; in a component of very many
// types that have more, only the kMostTypes largest are counted out, so that the work grows with the number of nodes:
// the bound is then below what it could be.
#include <algorithm>

#include "schedule/plan.h"

namespace dnl {
namespace {

constexpr u32 kChunk = 32, kMostTypes = 1024;

// Types of the component whose chains are to be counted.
void choose_types(const StrategyInput& in, const TypeGraph& graph, u32 c, Vec<u32>& types) {
  types.clear();
  for (u32 k = graph.type_begin[c]; k < graph.type_begin[c + 1]; ++k)
    if (in.plan.types[graph.types[k]].count > 1) types.push_back(graph.types[k]);
  if (types.size() <= kMostTypes) return;
  std::nth_element(types.begin(), types.begin() + kMostTypes, types.end(), [&](u32 t, u32 u) {
    const u32 a = in.plan.types[t].count, b = in.plan.types[u].count;
    return a != b ? a > b : t < u;
  });
  types.resize(kMostTypes);
}

template <class T>
u32 bound_of(const StrategyInput& in, const TypeGraph& graph, u32 c, Vec<T>& typed_depth, u64& steps) {
  PlanScratch& s = in.scratch;
  const u32* members = graph.nodes.data() + graph.node_begin[c];
  const u32 count = graph.node_begin[c + 1] - graph.node_begin[c];
  Vec<u32>&lane = s.d, &where = s.e, &types = s.c;
  choose_types(in, graph, c, types);
  const u32 n_types = static_cast<u32>(types.size());
  lane.assign(in.plan.types.size(), kNoNode);
  where.resize(in.plan.exec.size());
  for (u32 k = 0; k < count; ++k) where[members[k]] = k;
  u32 bound = graph.type_begin[c + 1] - graph.type_begin[c] - n_types;
  for (u32 begin = 0; begin < n_types; begin += kChunk) {
    const u32 m = std::min(kChunk, n_types - begin);
    for (u32 k = 0; k < m; ++k) lane[types[begin + k]] = k;
    typed_depth.assign(static_cast<std::size_t>(count) * kChunk, 0);
    steps += static_cast<u64>(count) * kChunk;
    u32 longest[kChunk] = {0};
    for (u32 k = 0; k < count; ++k) {
      const u32 i = members[k];
      T* mine = typed_depth.data() + static_cast<std::size_t>(k) * kChunk;
      for (u32 q = s.dep_begin[i]; q < s.dep_begin[i + 1]; ++q) {
        const u32 p = s.deps[q];
        if (graph.comp[s.type_of[p]] != c) continue;
        const T* theirs = typed_depth.data() + static_cast<std::size_t>(where[p]) * kChunk;
        for (u32 t = 0; t < kChunk; ++t) mine[t] = std::max(mine[t], theirs[t]);
      }
      const u32 t = lane[s.type_of[i]];
      if (t == kNoNode) continue;
      ++mine[t];
      longest[t] = std::max<u32>(longest[t], mine[t]);
    }
    for (u32 k = 0; k < m; ++k) {
      bound += longest[k];
      lane[types[begin + k]] = kNoNode;
    }
  }
  return bound;
}

}  // namespace

// No path has more nodes of a type than there are of it, nor more than the depth of its end.
bool deep(const StrategyInput& in, const TypeGraph& graph, u32 c) {
  constexpr u32 kMost = 0xffff;
  u32 largest = 0;
  for (u32 k = graph.type_begin[c]; k < graph.type_begin[c + 1]; ++k)
    largest = std::max(largest, in.plan.types[graph.types[k]].count);
  if (largest <= kMost) return false;
  for (u32 k = graph.node_begin[c + 1]; k-- > graph.node_begin[c];)
    if (in.g.node(in.plan.exec[graph.nodes[k]]).depth > kMost) return true;
  return false;
}

u32 chain_bound(const StrategyInput& in, const TypeGraph& graph, u32 c, u64& steps) {
  PlanScratch& s = in.scratch;
  return deep(in, graph, c) ? bound_of(in, graph, c, s.deep_typed_depth, steps)
                            : bound_of(in, graph, c, s.typed_depth, steps);
}

u32 lower_bound(const StrategyInput& in, u64& steps) {
  TypeGraph& graph = in.scratch.type_graph;
  graph.build(in);
  u32 bound = 0;
  for (u32 c = 0; c < graph.n_comp; ++c) bound += graph.recurrent(c) ? chain_bound(in, graph, c, steps) : 1;
  return bound;
}

}  // namespace dnl
