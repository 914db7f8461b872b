// Which type of a component runs next, by what lies ahead of its ready nodes: three rules beside the one of greedy.cc.
//
// greedy.cc looks back: have all nodes come that can run together now? Here a type is *due* when all its nodes with the
// most nodes of their own type ahead are ready: then no schedule of the rest has fewer batches of that type by waiting.
// Who may include: schedule/ only. Includes: base/.
#pragma once
#include "base/bits.h"
#include "base/vec.h"

namespace dnl {

struct Plan;
struct PlanScratch;

constexpr u32 kMaxTypes = 1024;  // of a component that is scheduled by its types

// Types that have ready nodes, in ascending order.
class ReadyTypes {
 public:
  explicit ReadyTypes(u32 types) : words_((types + 63) / 64) {}
  void add(u32 t) { bits_[t / 64] |= u64(1) << t % 64; }
  void remove(u32 t) { bits_[t / 64] &= ~(u64(1) << t % 64); }
  template <class F>
  void each(F f) const {
    for (u32 w = 0; w < words_; ++w)
      for (u64 bits = bits_[w]; bits; bits &= bits - 1) f(w * 64 + lowest_bit(bits));
  }

 private:
  u32 words_;
  u64 bits_[kMaxTypes / 64] = {0};
};

class Frontier {
 public:
  // Of a component that greedy has just put into the groups of `out` from first_group on: other orders are tried, and
  // the one with the fewest groups stays; greedy's unless another has fewer than it. bound: fewer than that cannot be.
  // members: its nodes, ascending; types: its types. Of the scratch memory it reads what greedy leaves: `where`,
  // succ_begin, succs. typed: working memory.
  template <class T>
  void improve(PlanScratch& s, const u32* members, u32 count, const u32* types, u32 m, u32 bound, u32 first_group,
               Vec<T>& typed, Plan& out);
  void release() {
    release_all(type_, height_, ahead_, needs_, waiting_, next_, begin_, tall_, tall_left_, turns_, best_turns_, order_,
                best_, state_);
  }

 private:
  // Next is the type that is due, or the one with the greatest
  enum class Rule : u8 {
    Longest,  // way ahead of a ready node; of several that are due the same decides
    Share,    // share of ready nodes among those with the most of their type ahead; then the most ready nodes
    Sum       // ways ahead of its ready nodes, summed up; of several that are due the same decides
  };
  struct State {  // of a type
    u32 head;     // of the list of ready nodes,
    u32 ready;    // how many there are,
    u32 tall;     // how many of them have as many of their type ahead as any node that has not run,
    u32 height;   // and how many that is
    u32 longest;  // way ahead of a ready node,
    u64 sum;      // of all of them
  };
  struct Turn {
    u32 type, count;
  };
  template <class T>
  void measure(const PlanScratch& s, const u32* members, u32 count, u32 m, Vec<T>& typed);
  void start(u32 count, u32 m);
  // False: it has no fewer groups than `most`.
  bool run(const PlanScratch& s, Rule rule, u32 count, u32 m, u32 most, u64& steps);
  void take(const PlanScratch& s, u32 t, ReadyTypes& ready);
  void enter(u32 k, ReadyTypes& ready);
  double worth(Rule rule, u32 t, double* second) const;

  // By member: position of its type, nodes of its type and nodes at all on the longest path that begins with it,
  // arguments inside the component, those that have not run, the next in the list of ready nodes.
  Vec<u32> type_, height_, ahead_, needs_, waiting_, next_;
  Vec<u32> begin_;             // by type: into tall_
  Vec<u32> tall_, tall_left_;  // nodes by height: all, those that have not run
  Vec<State> state_;
  Vec<Turn> turns_, best_turns_;
  Vec<u32> order_, best_;  // members
};

}  // namespace dnl
