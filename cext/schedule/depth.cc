// Batches nodes of one signature at one depth (Looks, Herreshoff, Hutchins, Norvig: Deep learning with dynamic
// computation graphs, 2017; "by depth" in Neubig, Goldberg, Dyer: On-the-fly operation batching, 2017).
#include <algorithm>

#include "schedule/plan.h"

namespace dnl {

void schedule_depth(StrategyInput in, Plan& out) {
  PlanScratch& s = in.scratch;
  const u32 n = static_cast<u32>(out.exec.size());
  // Depth inside this plan: nodes that ran before count as 0.
  Vec<u32>& depth = s.a;
  depth.resize(n);
  s.keys.resize(n);
  for (u32 i = 0; i < n; ++i) {
    u32 d = 0;
    for (u32 k = s.dep_begin[i]; k < s.dep_begin[i + 1]; ++k) d = std::max(d, depth[s.deps[k]] + 1);
    depth[i] = d;
    s.keys[i] = static_cast<u64>(d) << 48 | static_cast<u64>(s.type_of[i] & 0xffffu) << 32 | i;
  }
  std::sort(s.keys.begin(), s.keys.end());
  u64 last = ~u64(0);
  for (u32 k = 0; k < n; ++k) {
    const u32 i = static_cast<u32>(s.keys[k]);
    const u64 where = static_cast<u64>(depth[i]) << 32 | s.type_of[i];
    if (where != last) out.groups.push_back({s.type_of[i], static_cast<u32>(out.order.size()), 0, 0});
    last = where;
    ++out.groups.back().count;
    out.order.push_back(out.exec[i]);
  }
}

}  // namespace dnl
