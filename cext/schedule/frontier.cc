#include "schedule/frontier.h"

#include <algorithm>

#include "schedule/plan.h"

namespace dnl {

template <class T>
void Frontier::measure(const PlanScratch& s, const u32* members, u32 count, u32 m, Vec<T>& typed) {
  Ahead& a = ahead_;
  typed.assign(static_cast<std::size_t>(count) * m, 0);
  a.types = m;
  a.type.resize(count);
  a.height.resize(count);
  a.longest.assign(count, 0);
  a.needs.assign(count, 0);
  a.readers_begin.copy(s.succ_begin);
  a.readers.resize(s.succ_begin[count]);
  a.begin.assign(m + 1, 0);
  u32* highest = a.begin.data() + 1;
  for (u32 k = count; k-- > 0;) {
    T* mine = typed.data() + static_cast<std::size_t>(k) * m;
    for (u32 q = s.succ_begin[k]; q < s.succ_begin[k + 1]; ++q) {
      const u32 reader = a.readers[q] = s.where[s.succs[q]];
      const T* theirs = typed.data() + static_cast<std::size_t>(reader) * m;
      for (u32 t = 0; t < m; ++t) mine[t] = mine[t] > theirs[t] ? mine[t] : theirs[t];
      a.longest[k] = std::max(a.longest[k], a.longest[reader]);
      ++a.needs[reader];
    }
    ++a.longest[k];
    const u32 t = a.type[k] = s.lane[s.type_of[members[k]]];
    a.height[k] = ++mine[t];
    highest[t] = std::max(highest[t], a.height[k]);
  }
  for (u32 t = 0; t < m; ++t) a.begin[t + 1] += a.begin[t] + 1;
  a.tall.assign(a.begin[m], 0);
  for (u32 k = 0; k < count; ++k) ++a.tall[a.begin[a.type[k]] + a.height[k]];
}

void Frontier::enter(u32 k, ReadyTypes& ready) {
  const u32 t = ahead_.type[k];
  State& of = state_[t];
  ready.add(t);
  next_[k] = of.head;
  of.head = k;
  ++of.ready;
  of.tall += ahead_.height[k] == of.height;
  of.longest = std::max(of.longest, ahead_.longest[k]);
}

// Before the first turn; the types that are ready.
ReadyTypes Frontier::start() {
  const u32 count = static_cast<u32>(ahead_.type.size());
  waiting_.copy(ahead_.needs);
  tall_left_.copy(ahead_.tall);
  next_.resize(count);
  state_.resize(ahead_.types);
  for (u32 t = 0; t < ahead_.types; ++t) state_[t] = {kNoNode, 0, 0, ahead_.highest(t), 0};
  order_.clear();
  sizes_.clear();
  ReadyTypes ready(ahead_.types);
  for (u32 k = count; k-- > 0;)
    if (!waiting_[k]) enter(k, ready);
  return ready;
}

// All ready nodes of type t run.
void Frontier::take(u32 t, ReadyTypes& ready) {
  State& of = state_[t];
  const u32 begin = static_cast<u32>(order_.size()), taken = of.ready;
  for (u32 k = of.head; k != kNoNode; k = next_[k]) {
    order_.push_back(k);
    --tall_left_[ahead_.begin[t] + ahead_.height[k]];
  }
  while (of.height && !tall_left_[ahead_.begin[t] + of.height]) --of.height;
  of = {kNoNode, 0, 0, of.height, 0};
  ready.remove(t);
  sizes_.push_back(taken);
  for (u32 o = begin; o < begin + taken; ++o)
    for (u32 q = ahead_.readers_begin[order_[o]]; q < ahead_.readers_begin[order_[o] + 1]; ++q)
      if (--waiting_[ahead_.readers[q]] == 0) enter(ahead_.readers[q], ready);
}

// A type that is due, else the one with the longest way ahead; of several of these the one that is nearer to being due.
u32 Frontier::best(const ReadyTypes& ready, u64& steps) const {
  u32 found = kNoNode, way = 0;
  bool due = false;
  double share = -1;
  ready.each([&](u32 t) {
    ++steps;
    const State& of = state_[t];
    const u32 all = tall_left_[ahead_.begin[t] + of.height];
    const bool is_due = of.tall == all;
    const double its_share = static_cast<double>(of.tall) / all;
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

bool Frontier::by_rule(u32 fewest, Vec<u32>& turns, u64& steps) {
  ReadyTypes ready = start();
  turns.clear();
  while (order_.size() < ahead_.type.size()) {
    if (turns.size() + 1 >= fewest) return false;
    turns.push_back(best(ready, steps));
    take(turns.back(), ready);
  }
  return true;
}

template <class T>
void Frontier::improve(PlanScratch& s, const u32* members, u32 count, const u32* types, u32 m, u32 bound,
                       u32 first_group, Vec<T>& typed, Plan& out) {
  const u32 greedy = static_cast<u32>(out.groups.size()) - first_group;
  u32 fewest = greedy;
  for (u32 k = 0; k < m; ++k) s.lane[types[k]] = k;
  measure(s, members, count, m, typed);
  for (u32 k = 0; k < m; ++k) s.lane[types[k]] = kNoNode;
  out.steps += static_cast<u64>(count) * m;
  if (by_rule(fewest, turns_, out.steps)) fewest = static_cast<u32>(turns_.size());
  if (fewest > bound && Beam::pays(count, fewest) && beam_.search(ahead_, fewest, found_, out.steps)) {
    std::swap(turns_, found_);
    fewest = static_cast<u32>(turns_.size());
  }
  if (fewest == greedy) return;
  ReadyTypes ready = start();
  for (u32 t : turns_) take(t, ready);
  out.groups.resize(first_group);
  u32 at = static_cast<u32>(out.order.size()) - count;
  for (u32 k = 0; k < count; ++k) out.order[at + k] = out.exec[members[order_[k]]];
  for (u32 k = 0; k < fewest; ++k) {
    out.groups.push_back({types[turns_[k]], at, sizes_[k], 0});
    at += sizes_[k];
  }
}

template void Frontier::improve(PlanScratch&, const u32*, u32, const u32*, u32, u32, u32, Vec<u16>&, Plan&);
template void Frontier::improve(PlanScratch&, const u32*, u32, const u32*, u32, u32, u32, Vec<u32>&, Plan&);

}  // namespace dnl
