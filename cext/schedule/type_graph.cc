#include "schedule/type_graph.h"

#include <algorithm>

#include "schedule/plan.h"

namespace dnl {

void TypeGraph::build(const StrategyInput& in) {
  find_edges(in);
  find_components(static_cast<u32>(in.plan.types.size()));
  list_members(in);
}

// Edges without repeats.
void TypeGraph::find_edges(const StrategyInput& in) {
  PlanScratch& s = in.scratch;
  const u32 n = static_cast<u32>(in.plan.exec.size()), n_types = static_cast<u32>(in.plan.types.size());
  Vec<u64>& edges = s.keys;
  edges.clear();
  feeds_itself.assign(n_types, 0);
  // Repeats are dropped by a bit matrix, or by sorting when there are very many types.
  const bool dense = static_cast<u64>(n_types) * n_types <= (u64(1) << 24);
  if (dense) s.marks.assign((static_cast<std::size_t>(n_types) * n_types + 7) / 8, 0);
  for (u32 i = 0; i < n; ++i) {
    const u32 to = s.type_of[i];
    for (u32 k = s.dep_begin[i]; k < s.dep_begin[i + 1]; ++k) {
      const u32 from = s.type_of[s.deps[k]];
      if (from == to) {
        feeds_itself[to] = 1;
        continue;
      }
      if (dense) {
        const std::size_t bit = static_cast<std::size_t>(from) * n_types + to;
        u8& byte = s.marks[bit >> 3];
        if (byte >> (bit & 7) & 1) continue;
        byte |= static_cast<u8>(1 << (bit & 7));
      }
      edges.push_back(static_cast<u64>(from) << 32 | to);
    }
  }
  std::sort(edges.begin(), edges.end());
  begin_.assign(n_types + 1, 0);
  edges_.clear();
  u64 last = ~u64(0);
  for (u64 e : edges) {
    if (e == last) continue;
    last = e;
    ++begin_[(e >> 32) + 1];
    edges_.push_back(static_cast<u32>(e));
  }
  for (u32 t = 0; t < n_types; ++t) begin_[t + 1] += begin_[t];
}

// Tarjan's algorithm (Depth-first search and linear graph algorithms, 1972), iterative.
void TypeGraph::find_components(u32 n) {
  comp.assign(n, kNoNode);
  low_.assign(n, 0);
  index_.assign(n, kNoNode);
  edge_at_.resize(n);
  stack_.clear();
  n_comp = 0;
  u32 counter = 0;
  for (u32 root = 0; root < n; ++root) {
    if (index_[root] != kNoNode) continue;
    call_.clear();
    call_.push_back(root);
    while (!call_.empty()) {
      const u32 v = call_.back();
      if (index_[v] == kNoNode) {
        index_[v] = low_[v] = counter++;
        stack_.push_back(v);
        edge_at_[v] = begin_[v];
      }
      bool descended = false;
      while (edge_at_[v] < begin_[v + 1]) {
        const u32 w = edges_[edge_at_[v]++];
        if (index_[w] == kNoNode) {
          call_.push_back(w);
          descended = true;
          break;
        }
        if (comp[w] == kNoNode) low_[v] = std::min(low_[v], index_[w]);
      }
      if (descended) continue;
      call_.pop_back();
      if (!call_.empty()) low_[call_.back()] = std::min(low_[call_.back()], low_[v]);
      if (low_[v] == index_[v]) {
        u32 w;
        do {
          w = stack_.back();
          stack_.pop_back();
          comp[w] = n_comp;
        } while (w != v);
        ++n_comp;
      }
    }
  }
}

// Nodes and types of each component, nodes ascending.
void TypeGraph::list_members(const StrategyInput& in) {
  PlanScratch& s = in.scratch;
  const u32 n = static_cast<u32>(in.plan.exec.size()), n_types = static_cast<u32>(in.plan.types.size());
  node_begin.assign(n_comp + 1, 0);
  type_begin.assign(n_comp + 1, 0);
  for (u32 t = 0; t < n_types; ++t) {
    ++type_begin[comp[t] + 1];
    node_begin[comp[t] + 1] += in.plan.types[t].count;
  }
  for (u32 c = 0; c < n_comp; ++c) {
    node_begin[c + 1] += node_begin[c];
    type_begin[c + 1] += type_begin[c];
  }
  nodes.resize(n);
  types.resize(n_types);
  s.a.resize(n_comp);
  s.b.resize(n_comp);
  for (u32 c = 0; c < n_comp; ++c) {
    s.a[c] = node_begin[c];
    s.b[c] = type_begin[c];
  }
  for (u32 i = 0; i < n; ++i) nodes[s.a[comp[s.type_of[i]]]++] = i;
  for (u32 t = 0; t < n_types; ++t) types[s.b[comp[t]]++] = t;
}

}  // namespace dnl
