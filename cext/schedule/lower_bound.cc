// The least number of batches any schedule can have: the sum over types of the longest chain of nodes of that type.
//
// Nodes of one type on one path cannot share a batch. Found by counting, for each node, the nodes of each type on its
// longest path in that type, kChunk types at a time.
#include <algorithm>

#include "schedule/type_graph.h"

namespace dnl {

u32 chain_bound(const StrategyInput& in, const TypeGraph& graph, u32 c) {
  constexpr u32 kChunk = 32;
  PlanScratch& s = in.scratch;
  const u32* members = graph.nodes.data() + graph.node_begin[c];
  const u32 count = graph.node_begin[c + 1] - graph.node_begin[c];
  const u32 first_type = graph.type_begin[c], n_types = graph.type_begin[c + 1] - first_type;
  Vec<u32>&lane = s.d, &where = s.e;
  lane.resize(in.plan.types.size());
  where.resize(in.plan.exec.size());
  for (u32 k = 0; k < count; ++k) where[members[k]] = k;
  u32 bound = 0;
  for (u32 begin = 0; begin < n_types; begin += kChunk) {
    const u32 m = std::min(kChunk, n_types - begin);
    for (u32 k = 0; k < n_types; ++k) lane[graph.types[first_type + k]] = k - begin < m ? k - begin : kNoNode;
    s.typed_depth.assign(static_cast<std::size_t>(count) * kChunk, 0);
    u32 longest[kChunk] = {0};
    for (u32 k = 0; k < count; ++k) {
      const u32 i = members[k];
      u16* mine = s.typed_depth.data() + static_cast<std::size_t>(k) * kChunk;
      for (u32 q = s.dep_begin[i]; q < s.dep_begin[i + 1]; ++q) {
        const u32 p = s.deps[q];
        if (graph.comp[s.type_of[p]] != c) continue;
        const u16* theirs = s.typed_depth.data() + static_cast<std::size_t>(where[p]) * kChunk;
        for (u32 t = 0; t < kChunk; ++t) mine[t] = std::max(mine[t], theirs[t]);
      }
      const u32 t = lane[s.type_of[i]];
      if (t == kNoNode) continue;
      if (mine[t] < 0xffff) ++mine[t];
      longest[t] = std::max<u32>(longest[t], mine[t]);
    }
    for (u32 t = 0; t < m; ++t) bound += longest[t];
  }
  return bound;
}

u32 lower_bound(const StrategyInput& in) {
  TypeGraph& graph = scratch_type_graph();
  graph.build(in);
  u32 bound = 0;
  for (u32 c = 0; c < graph.n_comp; ++c) bound += graph.recurrent(c) ? chain_bound(in, graph, c) : 1;
  return bound;
}

}  // namespace dnl
