// DyNet's agenda: of the signatures with ready nodes, run the one whose remaining nodes have the lowest mean depth
// (Neubig, Goldberg, Dyer: On-the-fly operation batching in dynamic computation graphs, 2017, section 3.3).
#include <algorithm>

#include "schedule/plan.h"

namespace dnl {

void run_agenda(StrategyInput in, const Vec<u32>& part, u32 id, Plan& out) {
  PlanScratch& s = in.scratch;
  const u32 n = static_cast<u32>(out.exec.size());
  const u32 n_types = static_cast<u32>(out.types.size());
  auto mine = [&](u32 i) { return part.empty() || part[i] == id; };

  // Successors inside the part, and how many producers each node waits for.
  s.succ_begin.assign(n + 1, 0);
  s.waiting.assign(n, 0);
  for (u32 i = 0; i < n; ++i) {
    if (!mine(i)) continue;
    for (u32 k = s.dep_begin[i]; k < s.dep_begin[i + 1]; ++k)
      if (mine(s.deps[k])) {
        ++s.succ_begin[s.deps[k] + 1];
        ++s.waiting[i];
      }
  }
  for (u32 i = 0; i < n; ++i) s.succ_begin[i + 1] += s.succ_begin[i];
  s.succs.resize(s.succ_begin[n]);
  Vec<u32>& at = s.a;
  at.resize(n);
  for (u32 i = 0; i < n; ++i) at[i] = s.succ_begin[i];
  for (u32 i = 0; i < n; ++i) {
    if (!mine(i)) continue;
    for (u32 k = s.dep_begin[i]; k < s.dep_begin[i + 1]; ++k)
      if (mine(s.deps[k])) s.succs[at[s.deps[k]]++] = i;
  }

  // Ready nodes of a type form a list through next[]; sums of depth give the mean.
  Vec<u32>&head = s.b, &next = s.c, &left = s.d;
  Vec<u64>& depth_sum = s.keys;
  head.assign(n_types, kNoNode);
  next.resize(n);
  left.assign(n_types, 0);
  depth_sum.assign(n_types, 0);
  u32 remaining = 0;
  for (u32 i = n; i-- > 0;) {
    if (!mine(i)) continue;
    const u32 t = s.type_of[i];
    ++remaining;
    ++left[t];
    depth_sum[t] += in.g.node(out.exec[i]).depth;
    if (s.waiting[i] == 0) {
      next[i] = head[t];
      head[t] = i;
    }
  }
  // A heap of the types with ready nodes, the lowest mean at the top: a mean changes only when its type runs, and then
  // the type is not in the heap.
  Vec<u32>& ready = s.e;
  ready.clear();
  auto later = [&](u32 t, u32 u) {
    ++out.steps;
    const double mean = static_cast<double>(depth_sum[t]) / left[t],
                 other = static_cast<double>(depth_sum[u]) / left[u];
    return mean != other ? mean > other : t > u;
  };
  for (u32 t = 0; t < n_types; ++t)
    if (head[t] != kNoNode) ready.push_back(t);
  std::make_heap(ready.begin(), ready.end(), later);

  while (remaining) {
    DNL_INTERNAL(!ready.empty(), "agenda: nothing is ready (a cycle?)");
    std::pop_heap(ready.begin(), ready.end(), later);
    const u32 best = ready.back();
    ready.pop_back();
    const u32 begin = static_cast<u32>(out.order.size());
    u32 i = head[best];
    head[best] = kNoNode;
    for (; i != kNoNode; i = next[i]) {
      out.order.push_back(out.exec[i]);
      depth_sum[best] -= in.g.node(out.exec[i]).depth;
    }
    const u32 count = static_cast<u32>(out.order.size()) - begin;
    left[best] -= count;
    remaining -= count;
    out.groups.push_back({best, begin, count, 0});
    for (u32 k = begin; k < begin + count; ++k) {
      const u32 p = s.local[out.order[k]];
      for (u32 q = s.succ_begin[p]; q < s.succ_begin[p + 1]; ++q) {
        const u32 v = s.succs[q];
        if (--s.waiting[v]) continue;
        const u32 t = s.type_of[v];
        const bool first = head[t] == kNoNode;
        next[v] = head[t];
        head[t] = v;
        if (!first) continue;
        ready.push_back(t);
        std::push_heap(ready.begin(), ready.end(), later);
      }
    }
  }
}

void schedule_agenda(StrategyInput in, Plan& out) {
  static const Vec<u32> everything;
  run_agenda(in, everything, 0, out);
}

}  // namespace dnl
