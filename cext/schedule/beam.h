// A beam search for an order of a component with few batches: types run in turns, each with all its ready nodes, and of
// the orders up to the next turn the few that promise most go on.
//
// An order promises much if the rest needs few batches at least, which is the sum over types of the most nodes of that
// type ahead of one that has not run; of several, the one that has the fewest nodes with many of their type ahead.
// Who may include: schedule/ only. Includes: base/.
#pragma once
#include "base/bits.h"
#include "base/vec.h"

namespace dnl {

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

  u32 highest(u32 t) const { return begin[t + 1] - begin[t] - 1; }
  void release() { release_all(type, height, longest, needs, readers_begin, readers, begin, tall); }
};

class Beam {
 public:
  static constexpr u32 kWidth = 5;  // orders that go on
  // An order that goes on in two ways is copied: where there are many batches or nodes, a better order would cost more
  // to find than it saves.
  static bool pays(u32 nodes, u32 batches) { return batches <= 512 && u64(nodes) * batches <= u64(1) << 26; }

  // The types of an order of fewer batches than `fewest`, turn by turn. False: none is found.
  bool search(const Ahead& of, u32 fewest, Vec<u32>& turns, u64& steps);
  void release();

 private:
  struct Type {
    u32 ready;                 // nodes,
    u32 top;                   // the greatest height of those that have not run,
    u64 weight, ready_weight;  // cubes of heights, summed up: of those that have not run, of ready ones
  };
  struct Order {
    Vec<u16> waiting;     // by node: arguments that have not run
    Vec<u32> ready;       // nodes
    Vec<u32> left, here;  // by type and height: nodes that have not run, ready ones
    Vec<Type> types;
    ReadyTypes has_ready;
    u32 remaining = 0;  // nodes,
    u32 batches = 0;    // that they need at least
    u64 rest = 0;       // logarithms of the weights of types, summed up
    u32 past = 0;       // the last turn
  };
  struct Next {  // an order and the type that runs next
    u32 order, type, batches, remaining;
    u64 rest;
  };
  struct Turn {
    u32 before, type;
  };

  bool begin(const Ahead& of, Order& o);
  static Next next(const Ahead& of, const Order& o, u32 order, u32 t);
  void keep_best();
  void copy(const Order& from, Order& to);
  void take(const Ahead& of, Order& o, u32 t);
  static void enter(const Ahead& of, Order& o, u32 k);

  static constexpr u32 kNoTurn = 0xffffffff;

  Order orders_[kWidth], after_[kWidth];
  Vec<Next> next_;
  Vec<Turn> past_;
  Vec<u32> taken_;
};

}  // namespace dnl
