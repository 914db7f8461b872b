// A beam search for an order of a component with few batches: of the orders up to the next turn the few that promise
// most go on.
//
// An order promises much if the rest needs few batches at least, which is the sum over types of the most nodes of that
// type ahead of one that has not run; of several, the one that has the fewest nodes with many of their type ahead.
// Who may include: schedule/ only. Includes: base/, schedule/turns.h.
#pragma once
#include "schedule/turns.h"

namespace dnl {

class Beam {
 public:
  static constexpr u32 kWidth = 5;  // orders that go on
  // An order that goes on in two ways is copied: where there are many batches or nodes, a better order would cost more
  // to find than it saves.
  static bool pays(u32 nodes, u32 batches) { return batches <= 512 && u64(nodes) * batches <= u64(1) << 26; }

  // The types of an order of fewer batches than `fewest`, turn by turn. False: none is found, and turns is as it was.
  bool search(const Ahead& of, u32 fewest, Vec<u32>& turns, u64& steps);
  void release();

 private:
  struct Order {
    Turns state;
    u32 batches = 0;  // that the rest needs at least
    u64 rest = 0;     // logarithms of the weights of types, summed up
    u32 past = 0;     // the last turn
  };
  struct Next {  // an order and the type that runs next
    u32 order, type, batches, remaining;
    u64 rest;
  };
  struct Turn {
    u32 before, type;
  };

  static void begin(const Ahead& of, Order& o);
  static Next next(const Ahead& of, const Order& o, u32 order, u32 t);
  void keep_best();
  static void copy(const Order& from, Order& to);

  static constexpr u32 kNoTurn = 0xffffffff;

  Order orders_[kWidth], after_[kWidth];
  Vec<Next> next_;
  Vec<Turn> past_;
};

}  // namespace dnl
