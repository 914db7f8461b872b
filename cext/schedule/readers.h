// Who reads the nodes of a part of a plan, inside this part.
// Who may include: schedule/ only. Includes: schedule/plan.h.
#pragma once
#include "schedule/plan.h"

namespace dnl {

// members: the nodes of the part, ascending; inside(i): is node i one of them? Nodes are local indices, and `where` has
// their places among the members. Fills in succ_begin (by place) and succs (nodes, ascending), and `waiting` (by node)
// with how many arguments each has inside. An argument that occurs again counts again. Overwrites b.
template <class Inside>
void list_readers(PlanScratch& s, const u32* members, u32 count, Inside inside) {
  s.succ_begin.assign(count + 1, 0);
  s.waiting.resize(s.type_of.size());
  for (u32 k = 0; k < count; ++k) {
    const u32 i = members[k];
    u32 wait = 0;
    for (u32 q = s.dep_begin[i]; q < s.dep_begin[i + 1]; ++q) {
      if (!inside(s.deps[q])) continue;
      ++wait;
      ++s.succ_begin[s.where[s.deps[q]] + 1];
    }
    s.waiting[i] = wait;
  }
  for (u32 k = 0; k < count; ++k) s.succ_begin[k + 1] += s.succ_begin[k];
  s.succs.resize(s.succ_begin[count]);
  Vec<u32>& at = s.b;
  at.copy(s.succ_begin.data(), count);
  for (u32 k = 0; k < count; ++k) {
    const u32 i = members[k];
    for (u32 q = s.dep_begin[i]; q < s.dep_begin[i + 1]; ++q)
      if (inside(s.deps[q])) s.succs[at[s.where[s.deps[q]]]++] = i;
  }
}

}  // namespace dnl
