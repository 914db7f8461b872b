// Layout: the order of members inside each group, and where each type's slabs begin.
//
// Results should lie where they are read: a kernel that wants an argument near reads its members' rows best, or without
// a copy, when they follow one another in memory. So groups are visited from the last to the first, and each takes its
// order from the positions of its members' consumers, which are already fixed: proximity of consumers wins over the
// order of building. In a recurrence over sentences of different lengths this makes the state of step t that step t + 1
// reads a prefix of the slab, and lines up input projections step by step.
#include <algorithm>

#include "schedule/plan.h"

namespace dnl {
namespace {

// Where in the plan's order the consumer of a node stands that wants it near; kNoNode: nobody does.
using Wants = Vec<u32>;

// The members of a group in the order of what they want; ties and those that nobody wants near keep the order of
// building.
void order_group(Plan& plan, PlanScratch& s, const Group& group, const Wants& want) {
  NodeId* members = plan.order.data() + group.begin;
  const u32 n = group.count;
  Vec<u32>& key = s.a;
  key.resize(n);
  bool sorted = true;
  u32 low = kNoNode, high = 0;
  for (u32 k = 0; k < n; ++k) {
    key[k] = want[s.local[members[k]]];
    sorted &= k == 0 || key[k - 1] <= key[k];
    low = std::min(low, key[k]);
    if (key[k] != kNoNode) high = std::max(high, key[k]);
  }
  if (sorted) return;
  Vec<NodeId>& copy = s.b;
  copy.copy(members, n);
  const u32 range = high - low + 2;  // the last place is for those that nobody wants
  if (range <= 8 * n + 64) {         // consumers stand together as a rule: by counting
    Vec<u32>& at = s.c;
    at.assign(range + 1, 0);
    auto place = [&](u32 k) { return key[k] == kNoNode ? range - 1 : key[k] - low; };
    for (u32 k = 0; k < n; ++k) ++at[place(k) + 1];
    for (u32 p = 0; p < range; ++p) at[p + 1] += at[p];
    for (u32 k = 0; k < n; ++k) members[at[place(k)]++] = copy[k];
    return;
  }
  Vec<u64>& pair = s.keys;
  pair.resize(n);
  for (u32 k = 0; k < n; ++k) pair[k] = static_cast<u64>(key[k]) << 32 | k;
  std::sort(pair.begin(), pair.end());
  for (u32 k = 0; k < n; ++k) members[k] = copy[static_cast<u32>(pair[k])];
}

// Arguments of this group that its kernel wants near learn their place.
void tell_arguments(const Graph& g, const Plan& plan, PlanScratch& s, u32 index, Wants& want) {
  const Group& group = plan.groups[index];
  const u32 sig = plan.types[group.type].sig;
  const u32 nargs = g.sig(sig).nargs;
  const NodeId* members = plan.order.data() + group.begin;
  for (u32 j = nargs; j-- > 0;) {
    if (g.arg_shared(sig, j) || !g.arg_near(sig, j)) continue;
    constexpr u32 kAhead = 8;  // members of a group lie all over the graph
    for (u32 k = 0; k < group.count; ++k) {
      if (k + 2 * kAhead < group.count) g.fetch(members[k + 2 * kAhead]);
      if (k + kAhead < group.count) g.fetch(g.operands(members[k + kAhead])[j]);
      const u32 l = s.local[g.node(g.operands(members[k])[j]).producer];
      if (l != kNoNode) want[l] = group.begin + k;
    }
  }
}

// May the last output of this type lie over argument 0? Every member's argument must be its own alone and be made by
// this plan, whose slabs hold values and gradients at the same distances.
void grant_over(const Graph& g, Plan& plan, const PlanScratch& s) {
  for (PlanType& type : plan.types) type.over = op_def(g.sig(type.sig).op).over == Over::Arg0;
  for (const Group& group : plan.groups) {
    PlanType& type = plan.types[group.type];
    for (u32 k = 0; k < group.count && type.over; ++k) {
      const NodeId a = g.operands(plan.order[group.begin + k])[0];
      const Signature& sig = g.sig(type.sig);
      type.over =
          g.node(a).is(kInner) && g.is_op(a) && s.local[a] != kNoNode && g.node(a).dim == sig.dim[sig.total - 1];
    }
  }
}

// Members of several sizes follow one another, too.
void place_uneven(const Graph& g, Plan& plan, PlanScratch& s) {
  Vec<u64>& filled = s.keys;
  filled.assign(plan.types.size(), 0);
  for (Group& group : plan.groups) {
    if (!plan.types[group.type].uneven) continue;
    group.at = filled[group.type];
    for (u32 m = group.begin; m < group.begin + group.count; ++m) filled[group.type] += g.dim(plan.order[m]).size();
  }
}

}  // namespace

void lay_out(const Graph& g, Plan& plan, PlanScratch& s) {
  Wants& want = s.d;
  want.assign(plan.exec.size(), kNoNode);
  for (u32 i = static_cast<u32>(plan.groups.size()); i-- > 0;) {
    if (plan.groups[i].count > 1) order_group(plan, s, plan.groups[i], want);
    tell_arguments(g, plan, s, i, want);
  }

  grant_over(g, plan, s);
  for (u32 i = static_cast<u32>(plan.types.size()); i-- > 0;) plan.types[i].first_group = kNoNode;
  Vec<u32>& filled = s.a;
  filled.assign(plan.types.size(), 0);
  bool any_uneven = false;
  for (u32 i = 0; i < plan.groups.size(); ++i) {
    Group& group = plan.groups[i];
    group.slot = filled[group.type];
    filled[group.type] += group.count;
    PlanType& type = plan.types[group.type];
    if (type.first_group != kNoNode) continue;
    type.first_group = i;
    any_uneven |= type.uneven;
    const Signature& sig = g.sig(type.sig);
    for (u32 o = 0; o < type.slabs(sig); ++o) {
      type.value[o] = plan.floats;
      plan.floats += slab_room(slab_floats(g, type, o));
    }
  }
  if (any_uneven) place_uneven(g, plan, s);
}

}  // namespace dnl
