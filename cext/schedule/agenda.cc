// DyNet's agenda: of the signatures with ready nodes, run the one whose remaining nodes have the lowest mean depth
// (Neubig, Goldberg, Dyer: On-the-fly operation batching in dynamic computation graphs, 2017, section 3.3).
#include <algorithm>

#include "schedule/readers.h"

namespace dnl {

void run_agenda(StrategyInput in, const u32* members, u32 count, Plan& out) {
  PlanScratch& s = in.scratch;
  const u32 n = static_cast<u32>(out.exec.size());
  const u32 n_types = static_cast<u32>(out.types.size());
  s.where.assign(n, kNoNode);
  for (u32 k = 0; k < count; ++k) s.where[members[k]] = k;
  list_readers(s, members, count, [&](u32 i) { return s.where[i] != kNoNode; });

  // Ready nodes of a type form a list through next[]; sums of depth give the mean.
  Vec<u32>&head = s.b, &next = s.c, &left = s.d;
  Vec<u64>& depth_sum = s.keys;
  head.assign(n_types, kNoNode);
  next.resize(n);
  left.assign(n_types, 0);
  depth_sum.assign(n_types, 0);
  for (u32 k = count; k-- > 0;) {
    const u32 i = members[k], t = s.type_of[i];
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

  for (u32 remaining = count; remaining;) {
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
    const u32 taken = static_cast<u32>(out.order.size()) - begin;
    left[best] -= taken;
    remaining -= taken;
    out.groups.push_back({best, begin, taken, 0});
    for (u32 k = begin; k < begin + taken; ++k) {
      const u32 p = s.where[s.local[out.order[k]]];
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
  Vec<u32>& all = in.scratch.all;
  all.resize(out.exec.size());
  for (u32 i = 0; i < all.size(); ++i) all[i] = i;
  run_agenda(in, all.data(), static_cast<u32>(all.size()), out);
}

}  // namespace dnl
