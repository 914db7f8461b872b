// Layout: the order of members inside each group, and where each type's slabs begin.
//
// Results should lie where they are read: a kernel that wants an argument near reads its members' rows best, or without a
// copy, when they follow one another in memory. So groups are visited from the last to the first, and each takes its order
// from the positions of its members' consumers, which are already fixed: proximity of consumers wins over the order
// of building. In a recurrence over sentences of different lengths this makes the state of step t that step t + 1
// reads a prefix of the slab, and lines up input projections step by step.
#include <algorithm>

#include "schedule/plan.h"

namespace dnl {
namespace {

constexpr u64 kUnset = ~u64(0);

// A group's position keys become its members' order. Keys in [group << 32 | position] of the consumer.
void order_group(Plan& plan, PlanScratch& s, const Group& group, const Vec<u64>& want) {
  NodeId* members = plan.order.data() + group.begin;
  bool sorted = true;
  for (u32 k = 1; k < group.count && sorted; ++k)
    sorted = want[s.local[members[k - 1]]] <= want[s.local[members[k]]];
  if (sorted) return;
  // Sort (key, old place) pairs; ties keep the order of building.
  Vec<u32>&place = s.a, &copy = s.b;
  place.resize(group.count);
  copy.resize(group.count);
  for (u32 k = 0; k < group.count; ++k) { place[k] = k; copy[k] = members[k]; }
  std::sort(place.begin(), place.end(), [&](u32 x, u32 y) {
    const u64 wx = want[s.local[copy[x]]], wy = want[s.local[copy[y]]];
    return wx != wy ? wx < wy : x < y;
  });
  for (u32 k = 0; k < group.count; ++k) members[k] = copy[place[k]];
}

// Arguments of this group that its kernel wants near learn their place.
void tell_arguments(const Graph& g, const Plan& plan, PlanScratch& s, u32 index, Vec<u64>& want) {
  const Group& group = plan.groups[index];
  const u32 sig = plan.types[group.type].sig;
  const u32 nargs = g.sig(sig).nargs;
  for (u32 j = nargs; j-- > 0;) {
    if (g.arg_shared(sig, j) || !g.arg_near(sig, j)) continue;
    for (u32 k = 0; k < group.count; ++k) {
      const u32 l = s.local[g.node(g.operands(plan.order[group.begin + k])[j]).producer];
      if (l != kNoNode) want[l] = static_cast<u64>(index) << 32 | k;
    }
  }
}

// May the last output of this type lie over argument 0? Every member's argument must be its own alone and be made by this
// plan, whose slabs hold values and gradients at the same distances.
void grant_over(const Graph& g, Plan& plan, const PlanScratch& s) {
  for (PlanType& type : plan.types) type.over = op_def(g.sig(type.sig).op).over == Over::Arg0;
  for (const Group& group : plan.groups) {
    PlanType& type = plan.types[group.type];
    for (u32 k = 0; k < group.count && type.over; ++k) {
      const NodeId a = g.operands(plan.order[group.begin + k])[0];
      const Signature& sig = g.sig(type.sig);
      type.over = g.node(a).is(kInner) && g.is_op(a) && s.local[a] != kNoNode && g.node(a).dim == sig.dim[sig.total - 1];
    }
  }
}

}  // namespace

void lay_out(const Graph& g, Plan& plan, PlanScratch& s) {
  Vec<u64>& want = s.keys;
  want.assign(plan.exec.size(), kUnset);
  for (u32 i = static_cast<u32>(plan.groups.size()); i-- > 0;) {
    if (plan.groups[i].count > 1) order_group(plan, s, plan.groups[i], want);
    tell_arguments(g, plan, s, i, want);
  }

  grant_over(g, plan, s);
  for (u32 i = static_cast<u32>(plan.types.size()); i-- > 0;) plan.types[i].first_group = kNoNode;
  Vec<u32>& filled = s.a;
  filled.assign(plan.types.size(), 0);
  for (u32 i = 0; i < plan.groups.size(); ++i) {
    Group& group = plan.groups[i];
    group.slot = filled[group.type];
    filled[group.type] += group.count;
    PlanType& type = plan.types[group.type];
    if (type.first_group != kNoNode) continue;
    type.first_group = i;
    const Signature& sig = g.sig(type.sig);
    for (u32 o = 0; o < type.slabs(sig); ++o) {
      type.value[o] = plan.floats;
      const u64 floats = static_cast<u64>(g.dim_by_id(sig.dim[o]).size()) * type.count;
      plan.floats += (floats + 15) & ~u64(15);
    }
  }
}

}  // namespace dnl
