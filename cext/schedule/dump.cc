// A plan as text: one line per group. What golden tests compare and users read.
#include <algorithm>

#include "schedule/plan.h"

namespace dnl {

std::string describe_group(const Graph& g, const Plan& plan, const Group& group, u32 count) {
  const NodeId* members = plan.order.data() + group.begin;
  const std::string times = " x " + std::to_string(count);
  Dim least = g.dim(members[0]), most = least;
  for (u32 m = 1; m < group.count && plan.types[group.type].uneven; ++m)
    for (u32 i = 0; i < least.nd; ++i) {
      least.d[i] = std::min(least.d[i], g.dim(members[m]).d[i]);
      most.d[i] = std::max(most.d[i], g.dim(members[m]).d[i]);
    }
  if (least == most) return g.describe(members[0]) + times;
  std::string text = g.op_text(members[0], false) + " {";
  for (u32 i = 0; i < least.nd; ++i) {
    text += (i ? "," : "") + std::to_string(least.d[i]);
    if (least.d[i] != most.d[i]) text += ".." + std::to_string(most.d[i]);
  }
  return text + (least.bd > 1 ? "}X" + std::to_string(least.bd) : "}") + times;
}

std::string dump_plan(const Graph& g, const Plan& plan) {
  std::string text = std::to_string(plan.exec.size()) + " nodes in " + std::to_string(plan.groups.size()) + " batches";
  if (plan.lower_bound) text += " (lower bound " + std::to_string(plan.lower_bound) + ")";
  text += ", " + std::to_string(plan.types.size()) + " types, " + std::to_string(plan.floats) + " floats\n";
  for (u32 k = 0; k < plan.groups.size(); ++k) {
    const Group& group = plan.groups[k];
    text += std::to_string(k) + "\t" + describe_group(g, plan, group, group.count) + "\t";
    for (u32 m = 0; m < group.count && m < 8; ++m) text += " " + std::to_string(plan.order[group.begin + m]);
    if (group.count > 8) text += " ...";
    text += "\n";
  }
  return text;
}

}  // namespace dnl
