// A plan as text: one line per group. What golden tests compare and users read.
#include "schedule/plan.h"

namespace dnl {

std::string dump_plan(const Graph& g, const Plan& plan) {
  std::string text = std::to_string(plan.exec.size()) + " nodes in " + std::to_string(plan.groups.size()) + " batches";
  if (plan.lower_bound) text += " (lower bound " + std::to_string(plan.lower_bound) + ")";
  text += ", " + std::to_string(plan.types.size()) + " types, " + std::to_string(plan.floats) + " floats\n";
  for (u32 k = 0; k < plan.groups.size(); ++k) {
    const Group& group = plan.groups[k];
    const NodeId first = plan.order[group.begin];
    text += std::to_string(k) + "\t" + g.describe(first) + " x " + std::to_string(group.count) + "\t";
    for (u32 m = 0; m < group.count && m < 8; ++m) text += " " + std::to_string(plan.order[group.begin + m]);
    if (group.count > 8) text += " ...";
    text += "\n";
  }
  return text;
}

}  // namespace dnl
