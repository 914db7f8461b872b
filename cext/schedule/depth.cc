// Batches nodes of one signature at one depth (Looks, Herreshoff, Hutchins, Norvig: Deep learning with dynamic
// computation graphs, 2017; "by depth" in Neubig, Goldberg, Dyer: On-the-fly operation batching, 2017).
#include <algorithm>

#include "schedule/plan.h"

namespace dnl {
namespace {

// to = from, in the order of key[...], which is below n_keys; equals keep their order. from null: 0, 1, ...
void sort_by(const Vec<u32>& key, u32 n_keys, const u32* from, u32 n, Vec<u32>& at, u32* to) {
  at.assign(n_keys + 1, 0);
  for (u32 i = 0; i < n; ++i) ++at[key[i] + 1];
  for (u32 k = 0; k < n_keys; ++k) at[k + 1] += at[k];
  for (u32 k = 0; k < n; ++k) {
    const u32 i = from ? from[k] : k;
    to[at[key[i]]++] = i;
  }
}

}  // namespace

void schedule_depth(StrategyInput in, Plan& out) {
  PlanScratch& s = in.scratch;
  const u32 n = static_cast<u32>(out.exec.size());
  // Depth inside this plan: nodes that ran before count as 0.
  Vec<u32>& depth = s.a;
  depth.resize(n);
  u32 deepest = 0;
  for (u32 i = 0; i < n; ++i) {
    u32 d = 0;
    for (u32 k = s.dep_begin[i]; k < s.dep_begin[i + 1]; ++k) d = std::max(d, depth[s.deps[k]] + 1);
    depth[i] = d;
    deepest = std::max(deepest, d);
  }
  // By depth, then by type.
  Vec<u32>&by_type = s.b, &sorted = s.c;
  by_type.resize(n);
  sorted.resize(n);
  sort_by(s.type_of, static_cast<u32>(out.types.size()), nullptr, n, s.d, by_type.data());
  sort_by(depth, deepest + 1, by_type.data(), n, s.d, sorted.data());
  for (u32 k = 0; k < n; ++k) {
    const u32 i = sorted[k];
    if (k == 0 || depth[i] != depth[sorted[k - 1]] || s.type_of[i] != s.type_of[sorted[k - 1]])
      out.groups.push_back({s.type_of[i], static_cast<u32>(out.order.size()), 0, 0});
    ++out.groups.back().count;
    out.order.push_back(out.exec[i]);
  }
}

}  // namespace dnl
