// Orders of a component beside greedy's, found by looking ahead.
//
// greedy.cc looks back: have all nodes come that can run together now? Here a type is *due* when all its nodes with the
// most nodes of their own type ahead are ready: then no schedule of the rest has fewer batches of that type by waiting.
// First a rule: next is a type that is due, else the one with a ready node that has the longest way ahead. Then a
// search (schedule/beam.h). Who may include: schedule/ only. Includes: base/, schedule/beam.h, schedule/turns.h.
#pragma once
#include "schedule/beam.h"

namespace dnl {

struct Plan;
struct PlanScratch;

class Frontier {
 public:
  // Of a component that greedy has just put into the groups of `out` from first_group on: other orders are tried, and
  // the one with the fewest groups stays; greedy's unless another has fewer than it. bound: fewer than that cannot be.
  // members: its nodes, ascending; types: its types. Of the scratch memory it reads what greedy leaves: `where`,
  // succ_begin, succs. typed: working memory.
  template <class T>
  void improve(PlanScratch& s, const u32* members, u32 count, const u32* types, u32 m, u32 bound, u32 first_group,
               Vec<T>& typed, Plan& out);
  void release() { release_all(ahead_, beam_, state_, turns_); }

 private:
  // Into turns_: the types of the rule's order. False: it has no fewer than `fewest`.
  bool by_rule(u32 fewest, u64& steps);
  u32 best(u64& steps) const;

  Ahead ahead_;
  Beam beam_;
  Turns state_;     // of the order that is being made
  Vec<u32> turns_;  // the type of each turn
};

}  // namespace dnl
