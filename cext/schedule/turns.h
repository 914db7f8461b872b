// A component that is scheduled by its types: they run in turns, each with all its nodes that are ready. What lies
// ahead of the nodes, and the state between two turns. Which type runs next is for others to say.
// Who may include: schedule/ only. Includes: base/.
#pragma once
#include "base/bits.h"
#include "base/vec.h"

namespace dnl {

struct PlanScratch;

constexpr u32 kMaxTypes = 1024;  // of a component that is scheduled by its types

// Types that have ready nodes, in ascending order.
class ReadyTypes {
 public:
  explicit ReadyTypes(u32 types = 0) : words_((types + 63) / 64) {}
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

// A component: its nodes by their places in it, and what lies ahead of them.
struct Ahead {
  u32 types = 0;
  Vec<u32> type, height;            // by node: its type, nodes of that type on the longest path that begins with it,
  Vec<u32> longest;                 // nodes at all on such a path,
  Vec<u32> needs;                   // arguments inside the component,
  Vec<u32> readers_begin, readers;  // and who reads it
  Vec<u32> begin, tall;             // by type, into tall; there, by height: how many nodes

  // members: the nodes, ascending; m: types. Of the scratch memory it reads `where`, `lane`, succ_begin and succs.
  // typed: working memory.
  template <class T>
  void measure(const PlanScratch& s, const u32* members, u32 count, u32 m, Vec<T>& typed);
  u32 highest(u32 t) const { return begin[t + 1] - begin[t] - 1; }
  void release() { release_all(type, height, longest, needs, readers_begin, readers, begin, tall); }
};

// Which nodes of a component have run.
struct Turns {
  struct Type {
    u32 head;                  // of the list of ready nodes,
    u32 ready;                 // how many there are,
    u32 longest;               // the longest way ahead of one
    u32 top;                   // the greatest height of the nodes that have not run
    u64 weight, ready_weight;  // cubes of heights, summed up: of those that have not run, of ready ones
  };
  Vec<Type> types;
  ReadyTypes has_ready;
  Vec<u32> left, here;  // as Ahead::tall: nodes that have not run, ready ones
  u32 remaining = 0;    // nodes that have not run

  // Before the first turn.
  void start(const Ahead& of);
  // All ready nodes of type t run.
  void run(const Ahead& of, u32 t);
  // These nodes, in the order in which they run: who became ready last is first.
  template <class F>
  void each_ready(u32 t, F f) const {
    for (u32 k = types[t].head; k != kNoNext; k = waiting_[k]) f(k);
  }
  void copy(const Turns& from);
  void release() { release_all(types, left, here, waiting_); }

 private:
  static constexpr u32 kNoNext = 0xffffffff;

  void enter(const Ahead& of, u32 k);

  // By node: arguments that have not run. A ready node has none, and here is the next in the list of its type.
  Vec<u32> waiting_;
};

}  // namespace dnl
