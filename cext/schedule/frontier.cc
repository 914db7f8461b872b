#include "schedule/frontier.h"

#include <algorithm>

#include "schedule/plan.h"

namespace dnl {

template <class T>
void Frontier::measure(const PlanScratch& s, const u32* members, u32 count, u32 m, Vec<T>& typed) {
  typed.assign(static_cast<std::size_t>(count) * m, 0);
  height_.resize(count);
  ahead_.assign(count, 0);
  needs_.assign(count, 0);
  state_.resize(m);
  for (State& of : state_) of.height = 0;
  for (u32 k = count; k-- > 0;) {
    T* mine = typed.data() + static_cast<std::size_t>(k) * m;
    for (u32 q = s.succ_begin[k]; q < s.succ_begin[k + 1]; ++q) {
      const u32 reader = s.where[s.succs[q]];
      const T* theirs = typed.data() + static_cast<std::size_t>(reader) * m;
      for (u32 t = 0; t < m; ++t) mine[t] = mine[t] > theirs[t] ? mine[t] : theirs[t];
      ahead_[k] = std::max(ahead_[k], ahead_[reader]);
      ++needs_[reader];
    }
    ++ahead_[k];
    const u32 t = type_[k] = s.lane[s.type_of[members[k]]];
    height_[k] = ++mine[t];
    state_[t].height = std::max(state_[t].height, height_[k]);
  }
  begin_.resize(m + 1);
  begin_[0] = 0;
  for (u32 t = 0; t < m; ++t) begin_[t + 1] = begin_[t] + state_[t].height + 1;
  tall_.assign(begin_[m], 0);
  for (u32 k = 0; k < count; ++k) ++tall_[begin_[type_[k]] + height_[k]];
}

void Frontier::enter(u32 k, ReadyTypes& ready) {
  const u32 t = type_[k];
  State& of = state_[t];
  ready.add(t);
  next_[k] = of.head;
  of.head = k;
  ++of.ready;
  of.tall += height_[k] == of.height;
  of.longest = std::max(of.longest, ahead_[k]);
  of.sum += ahead_[k];
}

void Frontier::start(u32 count, u32 m) {
  waiting_.resize(count);
  std::copy(needs_.begin(), needs_.end(), waiting_.begin());
  tall_left_.resize(tall_.size());
  std::copy(tall_.begin(), tall_.end(), tall_left_.begin());
  next_.resize(count);
  for (u32 t = 0; t < m; ++t) state_[t] = {kNoNode, 0, 0, begin_[t + 1] - begin_[t] - 1, 0, 0};
  turns_.clear();
  order_.clear();
}

// Greater is better.
double Frontier::worth(Rule rule, u32 t, double* second) const {
  constexpr double kDue = 1e15;
  const State& of = state_[t];
  const u32 all = tall_left_[begin_[t] + of.height];
  *second = of.ready;
  if (rule == Rule::Share) return static_cast<double>(of.tall) / all;
  *second = static_cast<double>(of.tall) / all;
  const double ahead = rule == Rule::Longest ? of.longest : static_cast<double>(of.sum);
  return ahead + (of.tall == all ? kDue : 0);
}

// All ready nodes of type t run.
void Frontier::take(const PlanScratch& s, u32 t, ReadyTypes& ready) {
  State& of = state_[t];
  const u32 begin = static_cast<u32>(order_.size()), taken = of.ready;
  for (u32 k = of.head; k != kNoNode; k = next_[k]) {
    order_.push_back(k);
    --tall_left_[begin_[t] + height_[k]];
  }
  while (of.height && !tall_left_[begin_[t] + of.height]) --of.height;
  of = {kNoNode, 0, 0, of.height, 0, 0};
  ready.remove(t);
  turns_.push_back({t, taken});
  for (u32 o = begin; o < begin + taken; ++o)
    for (u32 q = s.succ_begin[order_[o]]; q < s.succ_begin[order_[o] + 1]; ++q) {
      const u32 reader = s.where[s.succs[q]];
      if (--waiting_[reader] == 0) enter(reader, ready);
    }
}

bool Frontier::run(const PlanScratch& s, Rule rule, u32 count, u32 m, u32 most, u64& steps) {
  start(count, m);
  ReadyTypes ready(m);
  for (u32 k = count; k-- > 0;)
    if (!waiting_[k]) enter(k, ready);
  while (order_.size() < count) {
    if (turns_.size() + 1 >= most) return false;
    u32 best = kNoNode;
    double first = -1, second = -1;
    ready.each([&](u32 t) {
      ++steps;
      double then;
      const double value = worth(rule, t, &then);
      if (value < first || (value == first && then <= second)) return;
      best = t;
      first = value;
      second = then;
    });
    DNL_INTERNAL(best != kNoNode, "frontier: nothing is ready (a cycle?)");
    take(s, best, ready);
  }
  return true;
}

template <class T>
void Frontier::improve(PlanScratch& s, const u32* members, u32 count, const u32* types, u32 m, u32 bound,
                       u32 first_group, Vec<T>& typed, Plan& out) {
  const u32 greedy = static_cast<u32>(out.groups.size()) - first_group;
  u32 fewest = greedy;
  type_.resize(count);
  for (u32 k = 0; k < m; ++k) s.lane[types[k]] = k;
  measure(s, members, count, m, typed);
  for (u32 k = 0; k < m; ++k) s.lane[types[k]] = kNoNode;
  out.steps += static_cast<u64>(count) * m;
  for (Rule rule : {Rule::Longest, Rule::Share, Rule::Sum}) {
    if (fewest == bound) break;
    if (!run(s, rule, count, m, fewest, out.steps)) continue;
    fewest = static_cast<u32>(turns_.size());
    std::swap(turns_, best_turns_);
    std::swap(order_, best_);
  }
  if (fewest == greedy) return;
  out.groups.resize(first_group);
  u32 at = static_cast<u32>(out.order.size()) - count;
  for (u32 k = 0; k < count; ++k) out.order[at + k] = out.exec[members[best_[k]]];
  for (const Turn& turn : best_turns_) {
    out.groups.push_back({types[turn.type], at, turn.count, 0});
    at += turn.count;
  }
}

template void Frontier::improve(PlanScratch&, const u32*, u32, const u32*, u32, u32, u32, Vec<u16>&, Plan&);
template void Frontier::improve(PlanScratch&, const u32*, u32, const u32*, u32, u32, u32, Vec<u32>&, Plan&);

}  // namespace dnl
