// The grammar of plans, checked. Always on in tests (configure(verify=True)); costs about as much as planning.
#include <algorithm>

#include "schedule/plan.h"

namespace dnl {

void verify_plan(const Graph& g, const Plan& plan, PlanScratch& s) {
  auto check = [&](bool ok, const std::string& what) { DNL_INTERNAL(ok, "plan: " + what); };
  const u32 n = static_cast<u32>(plan.exec.size());
  check(plan.order.size() == n, "order and exec differ in size");
  // 0: not in the plan, 1: to run, 2: has run
  s.marks.assign(g.size(), 0);
  for (NodeId i : plan.exec) {
    check(i < g.size() && g.is_op(i), "exec holds a node that does not run");
    check(s.marks[i] == 0, "a node occurs twice in exec");
    s.marks[i] = 1;
  }
  Vec<u32>& filled = s.a;
  filled.assign(plan.types.size(), 0);
  u32 at = 0;
  for (u32 k = 0; k < plan.groups.size(); ++k) {
    const Group& group = plan.groups[k];
    check(group.count > 0 && group.begin == at, "groups must cover order[] without gaps");
    at += group.count;
    check(group.type < plan.types.size(), "unknown type");
    const PlanType& type = plan.types[group.type];
    check(group.slot == filled[group.type], "slots of a type must be filled in order");
    filled[group.type] += group.count;
    if (group.slot == 0) check(type.first_group == k, "first_group is wrong");
    for (u32 m = group.begin; m < at; ++m) {
      const NodeId i = plan.order[m];
      check(s.marks[i] == 1, "a node is not in exec or runs twice");
      check(g.signature(i).family == g.sig(type.sig).family,
            "members of a group must have one signature or be of one family");
      check(g.node(i).sig == type.sig || type.ragged, "members of a type that is not ragged have one signature");
      check(!type.over || s.marks[g.operands(i)[0]] == 2, "an output lies over an argument of another plan");
      for (u32 j = 0; j < g.nargs(i); ++j)
        check(s.marks[g.node(g.operands(i)[j]).producer] != 1, "an argument runs after its consumer, or with it");
    }
    for (u32 m = group.begin; m < at; ++m) s.marks[plan.order[m]] = 2;
  }
  check(at == n, "groups must cover order[]");
  check(plan.lower_bound <= plan.groups.size() || plan.lower_bound == 0, "fewer groups than the lower bound");
  // Slabs: sorted by begin, none may reach into the next.
  s.keys.clear();
  for (u32 t = 0; t < plan.types.size(); ++t) {
    check(filled[t] == plan.types[t].count, "a type's members are not all in groups");
    const Signature& sig = g.sig(plan.types[t].sig);
    for (u32 o = 0; o < plan.types[t].slabs(sig); ++o) s.keys.push_back(plan.types[t].value[o]);
  }
  std::sort(s.keys.begin(), s.keys.end());
  for (u32 t = 0; t < plan.types.size(); ++t) {
    const Signature& sig = g.sig(plan.types[t].sig);
    for (u32 o = 0; o < plan.types[t].slabs(sig); ++o) {
      const u64 begin = plan.types[t].value[o];
      const u64 end = begin + slab_floats(g, plan.types[t], o);
      check(end <= plan.floats, "a slab reaches beyond the plan's memory");
      const u64* next = std::upper_bound(s.keys.begin(), s.keys.end(), begin);
      check(next == s.keys.end() || end <= *next, "slabs overlap");
    }
  }
}

}  // namespace dnl
