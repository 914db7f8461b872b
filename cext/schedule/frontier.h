// Orders of a component beside greedy's, found by looking ahead.
//
// greedy.cc looks back: have all nodes come that can run together now? Here a type is *due* when all its nodes with the
// most nodes of their own type ahead are ready: then no schedule of the rest has fewer batches of that type by waiting.
// First a rule: next is a type that is due, else the one with a ready node that has the longest way ahead. Then a
// search (schedule/beam.h). Who may include: schedule/ only. Includes: base/, schedule/beam.h.
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
  void release() { release_all(ahead_, beam_, waiting_, next_, tall_left_, turns_, found_, order_, sizes_, state_); }

 private:
  struct State {  // of a type
    u32 head;     // of the list of ready nodes,
    u32 ready;    // how many there are,
    u32 tall;     // how many of them have as many of their type ahead as any node that has not run,
    u32 height;   // and how many that is
    u32 longest;  // way ahead of a ready node
  };
  template <class T>
  void measure(const PlanScratch& s, const u32* members, u32 count, u32 m, Vec<T>& typed);
  ReadyTypes start();
  // The types of the rule's order, turn by turn. False: it has no fewer than `fewest`.
  bool by_rule(u32 fewest, Vec<u32>& turns, u64& steps);
  u32 best(const ReadyTypes& ready, u64& steps) const;
  void take(u32 t, ReadyTypes& ready);
  void enter(u32 k, ReadyTypes& ready);

  Ahead ahead_;
  Beam beam_;
  // Of the order that is being made. By node: arguments that have not run, the next in the list of ready nodes.
  Vec<u32> waiting_, next_;
  Vec<u32> tall_left_;  // as Ahead::tall: those that have not run
  Vec<State> state_;
  Vec<u32> order_, sizes_;  // nodes in order; of each turn how many run
  Vec<u32> turns_, found_;
};

}  // namespace dnl
