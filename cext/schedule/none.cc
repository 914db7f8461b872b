// No batching: groups of one, in the order of building.
#include "schedule/plan.h"

namespace dnl {

void schedule_none(StrategyInput in, Plan& out) {
  const u32 n = static_cast<u32>(out.exec.size());
  for (u32 i = 0; i < n; ++i) {
    out.order.push_back(out.exec[i]);
    out.groups.push_back({in.scratch.type_of[i], i, 1, 0});
  }
  out.lower_bound = n;
}

}  // namespace dnl
