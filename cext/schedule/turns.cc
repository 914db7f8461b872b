#include "schedule/turns.h"

#include <algorithm>

#include "schedule/plan.h"

namespace dnl {
namespace {

u64 cube(u64 x) { return x * x * x; }

}  // namespace

template <class T>
void Ahead::measure(const PlanScratch& s, const u32* members, u32 count, u32 m, Vec<T>& typed) {
  typed.assign(static_cast<std::size_t>(count) * m, 0);
  types = m;
  type.resize(count);
  height.resize(count);
  longest.assign(count, 0);
  needs.assign(count, 0);
  readers_begin.copy(s.succ_begin);
  readers.resize(s.succ_begin[count]);
  begin.assign(m + 1, 0);
  u32* highest = begin.data() + 1;
  for (u32 k = count; k-- > 0;) {
    T* mine = typed.data() + static_cast<std::size_t>(k) * m;
    for (u32 q = s.succ_begin[k]; q < s.succ_begin[k + 1]; ++q) {
      const u32 reader = readers[q] = s.where[s.succs[q]];
      const T* theirs = typed.data() + static_cast<std::size_t>(reader) * m;
      for (u32 t = 0; t < m; ++t) mine[t] = mine[t] > theirs[t] ? mine[t] : theirs[t];
      longest[k] = std::max(longest[k], longest[reader]);
      ++needs[reader];
    }
    ++longest[k];
    const u32 t = type[k] = s.lane[s.type_of[members[k]]];
    height[k] = ++mine[t];
    highest[t] = std::max(highest[t], height[k]);
  }
  for (u32 t = 0; t < m; ++t) begin[t + 1] += begin[t] + 1;
  tall.assign(begin[m], 0);
  for (u32 k = 0; k < count; ++k) ++tall[begin[type[k]] + height[k]];
}

template void Ahead::measure(const PlanScratch&, const u32*, u32, u32, Vec<u16>&);
template void Ahead::measure(const PlanScratch&, const u32*, u32, u32, Vec<u32>&);

void Turns::start(const Ahead& of) {
  remaining = static_cast<u32>(of.type.size());
  waiting_.copy(of.needs);
  left.copy(of.tall);
  here.assign(of.tall.size(), 0);
  has_ready = ReadyTypes(of.types);
  types.resize(of.types);
  for (u32 t = 0; t < of.types; ++t) {
    types[t] = {kNoNext, 0, 0, of.highest(t), 0, 0};
    for (u32 h = 1; h <= of.highest(t); ++h) types[t].weight += cube(h) * of.tall[of.begin[t] + h];
  }
  for (u32 k = remaining; k-- > 0;)
    if (!waiting_[k]) enter(of, k);
}

void Turns::enter(const Ahead& of, u32 k) {
  const u32 t = of.type[k];
  Type& type = types[t];
  has_ready.add(t);
  waiting_[k] = type.head;
  type.head = k;
  ++type.ready;
  type.longest = std::max(type.longest, of.longest[k]);
  type.ready_weight += cube(of.height[k]);
  ++here[of.begin[t] + of.height[k]];
}

void Turns::run(const Ahead& of, u32 t) {
  Type& type = types[t];
  u32 *not_run = left.data() + of.begin[t], *ready = here.data() + of.begin[t];
  each_ready(t, [&](u32 k) {
    --not_run[of.height[k]];
    --ready[of.height[k]];
  });
  while (type.top && !not_run[type.top]) --type.top;
  remaining -= type.ready;
  has_ready.remove(t);
  u32 next = type.head;
  type = {kNoNext, 0, 0, type.top, type.weight - type.ready_weight, 0};
  while (next != kNoNext) {
    const u32 k = next;
    next = waiting_[k];
    for (u32 q = of.readers_begin[k]; q < of.readers_begin[k + 1]; ++q)
      if (--waiting_[of.readers[q]] == 0) enter(of, of.readers[q]);
  }
}

void Turns::copy(const Turns& from) {
  types.copy(from.types);
  has_ready = from.has_ready;
  left.copy(from.left);
  here.copy(from.here);
  remaining = from.remaining;
  waiting_.copy(from.waiting_);
}

}  // namespace dnl
