#include "schedule/beam.h"

#include <algorithm>

namespace dnl {
namespace {

// The logarithm to base 2 of x + 1, in 65,536ths: straight between powers of two, and the same on all machines.
u64 logarithm(u64 x) {
  ++x;
  const u32 power = highest_bit(x);
  return u64(power) << 16 | ((x << (63 - power)) << 1) >> 48;
}

}  // namespace

// Before the first turn.
void Beam::begin(const Ahead& of, Order& o) {
  o.state.start(of);
  o.batches = 0;
  o.rest = 0;
  o.past = kNoTurn;
  for (const Turns::Type& type : o.state.types) {
    o.batches += type.top;
    o.rest += logarithm(type.weight);
  }
}

// What the order promises when type t runs next.
Beam::Next Beam::next(const Ahead& of, const Order& o, u32 order, u32 t) {
  const Turns::Type& type = o.state.types[t];
  const u32 *left = o.state.left.data() + of.begin[t], *here = o.state.here.data() + of.begin[t];
  u32 top = type.top;
  while (top && left[top] == here[top]) --top;
  return {order, t, o.batches - type.top + top, o.state.remaining - type.ready,
          o.rest - logarithm(type.weight) + logarithm(type.weight - type.ready_weight)};
}

// Those that promise most. Of several that promise the same, which are as a rule the same turns in another order, one.
void Beam::keep_best() {
  std::sort(next_.begin(), next_.end(), [](const Next& a, const Next& b) {
    if (a.batches != b.batches) return a.batches < b.batches;
    if (a.rest != b.rest) return a.rest < b.rest;
    if (a.remaining != b.remaining) return a.remaining < b.remaining;
    return a.order != b.order ? a.order < b.order : a.type < b.type;
  });
  u32 kept = 0;
  for (const Next& one : next_) {
    if (kept) {
      const Next& last = next_[kept - 1];
      if (last.batches == one.batches && last.rest == one.rest && last.remaining == one.remaining) continue;
    }
    next_[kept++] = one;
    if (kept == kWidth) break;
  }
  next_.resize(kept);
}

void Beam::copy(const Order& from, Order& to) {
  to.state.copy(from.state);
  to.batches = from.batches;
  to.rest = from.rest;
  to.past = from.past;
}

bool Beam::search(const Ahead& of, u32 fewest, Vec<u32>& turns, u64& steps) {
  past_.clear();
  begin(of, orders_[0]);
  for (u32 width = 1, turn = 1;; ++turn) {
    next_.clear();
    for (u32 k = 0; k < width; ++k)
      orders_[k].state.has_ready.each([&](u32 t) {
        ++steps;
        const Next one = next(of, orders_[k], k, t);
        if (turn + one.batches < fewest) next_.push_back(one);
      });
    if (next_.empty()) return false;
    keep_best();
    width = static_cast<u32>(next_.size());
    u32 uses[kWidth] = {0};
    for (const Next& one : next_) ++uses[one.order];
    for (u32 k = 0; k < width; ++k) {
      const Next& one = next_[k];
      Order& o = after_[k];
      if (--uses[one.order])
        copy(orders_[one.order], o);
      else
        std::swap(orders_[one.order], o);
      o.batches = one.batches;
      o.rest = one.rest;
      past_.push_back({o.past, one.type});
      o.past = static_cast<u32>(past_.size()) - 1;
      if (one.remaining == 0) {
        turns.resize(turn);
        for (u32 at = turn, p = o.past; at-- > 0; p = past_[p].before) turns[at] = past_[p].type;
        return true;
      }
      o.state.run(of, one.type);
    }
    for (u32 k = 0; k < width; ++k) std::swap(orders_[k], after_[k]);
  }
}

void Beam::release() {
  for (Order* o : {orders_, after_})
    for (u32 k = 0; k < kWidth; ++k) o[k].state.release();
  release_all(next_, past_);
}

}  // namespace dnl
