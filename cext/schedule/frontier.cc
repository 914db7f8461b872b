#include "schedule/frontier.h"

#include "schedule/plan.h"

namespace dnl {

// A type that is due, else the one with the longest way ahead; of several of these the one that is nearer to being due.
u32 Frontier::best(u64& steps) const {
  u32 found = kNoNode, way = 0;
  bool due = false;
  double share = -1;
  state_.has_ready.each([&](u32 t) {
    ++steps;
    const Turns::Type& of = state_.types[t];
    const u32 highest = ahead_.begin[t] + of.top, all = state_.left[highest], ready = state_.here[highest];
    const bool is_due = ready == all;
    const double its_share = static_cast<double>(ready) / all;
    if (found != kNoNode) {
      if (is_due != due ? due : of.longest != way ? of.longest < way : its_share <= share) return;
    }
    found = t;
    due = is_due;
    way = of.longest;
    share = its_share;
  });
  DNL_INTERNAL(found != kNoNode, "frontier: nothing is ready (a cycle?)");
  return found;
}

bool Frontier::by_rule(u32 fewest, u64& steps) {
  state_.start(ahead_);
  turns_.clear();
  while (state_.remaining) {
    if (turns_.size() + 1 >= fewest) return false;
    turns_.push_back(best(steps));
    state_.run(ahead_, turns_.back());
  }
  return true;
}

template <class T>
void Frontier::improve(PlanScratch& s, const u32* members, u32 count, const u32* types, u32 m, u32 bound,
                       u32 first_group, Vec<T>& typed, Plan& out) {
  const u32 greedy = static_cast<u32>(out.groups.size()) - first_group;
  u32 fewest = greedy;
  for (u32 k = 0; k < m; ++k) s.lane[types[k]] = k;
  ahead_.measure(s, members, count, m, typed);
  for (u32 k = 0; k < m; ++k) s.lane[types[k]] = kNoNode;
  out.steps += static_cast<u64>(count) * m;
  if (by_rule(fewest, out.steps)) fewest = static_cast<u32>(turns_.size());
  if (fewest > bound && Beam::pays(count, fewest) && beam_.search(ahead_, fewest, turns_, out.steps))
    fewest = static_cast<u32>(turns_.size());
  if (fewest == greedy) return;
  out.groups.resize(first_group);
  u32 at = static_cast<u32>(out.order.size()) - count;
  state_.start(ahead_);
  for (u32 t : turns_) {
    out.groups.push_back({types[t], at, state_.types[t].ready, 0});
    state_.each_ready(t, [&](u32 k) { out.order[at++] = out.exec[members[k]]; });
    state_.run(ahead_, t);
  }
}

template void Frontier::improve(PlanScratch&, const u32*, u32, const u32*, u32, u32, u32, Vec<u16>&, Plan&);
template void Frontier::improve(PlanScratch&, const u32*, u32, const u32*, u32, u32, u32, Vec<u32>&, Plan&);

}  // namespace dnl
