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

u64 cube(u64 x) { return x * x * x; }

}  // namespace

void Beam::enter(const Ahead& of, Order& o, u32 k) {
  const u32 t = of.type[k];
  Type& type = o.types[t];
  o.ready.push_back(k);
  o.has_ready.add(t);
  ++type.ready;
  type.ready_weight += cube(of.height[k]);
  ++o.here[of.begin[t] + of.height[k]];
}

// Before the first turn. False: a node has more arguments than can be counted.
bool Beam::begin(const Ahead& of, Order& o) {
  const u32 n = static_cast<u32>(of.type.size());
  o.waiting.resize(n);
  for (u32 k = 0; k < n; ++k) {
    if (of.needs[k] > 0xffff) return false;
    o.waiting[k] = static_cast<u16>(of.needs[k]);
  }
  o.left.resize(of.tall.size());
  std::copy(of.tall.begin(), of.tall.end(), o.left.begin());
  o.here.assign(of.tall.size(), 0);
  o.types.resize(of.types);
  o.ready.clear();
  o.has_ready = ReadyTypes(of.types);
  o.remaining = n;
  o.batches = 0;
  o.rest = 0;
  o.past = kNoTurn;
  for (u32 t = 0; t < of.types; ++t) {
    o.types[t] = {0, of.highest(t), 0, 0};
    for (u32 h = 1; h <= of.highest(t); ++h) o.types[t].weight += cube(h) * of.tall[of.begin[t] + h];
    o.batches += of.highest(t);
    o.rest += logarithm(o.types[t].weight);
  }
  for (u32 k = 0; k < n; ++k)
    if (!o.waiting[k]) enter(of, o, k);
  return true;
}

// What the order promises when type t runs next.
Beam::Next Beam::next(const Ahead& of, const Order& o, u32 order, u32 t) {
  const Type& type = o.types[t];
  u32 top = type.top;
  while (top && o.left[of.begin[t] + top] == o.here[of.begin[t] + top]) --top;
  return {order, t, o.batches - type.top + top, o.remaining - type.ready,
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
  to.waiting.copy(from.waiting);
  to.ready.copy(from.ready);
  to.left.copy(from.left);
  to.here.copy(from.here);
  to.types.copy(from.types);
  to.has_ready = from.has_ready;
  to.remaining = from.remaining;
  to.batches = from.batches;
  to.rest = from.rest;
  to.past = from.past;
}

// All ready nodes of type t run.
void Beam::take(const Ahead& of, Order& o, u32 t) {
  Type& type = o.types[t];
  taken_.clear();
  u32 left = 0;
  for (u32 k : o.ready) {
    if (of.type[k] != t) {
      o.ready[left++] = k;
      continue;
    }
    taken_.push_back(k);
    const u32 at = of.begin[t] + of.height[k];
    --o.left[at];
    --o.here[at];
  }
  o.ready.resize(left);
  type.weight -= type.ready_weight;
  type.ready = 0;
  type.ready_weight = 0;
  while (type.top && !o.left[of.begin[t] + type.top]) --type.top;
  o.has_ready.remove(t);
  for (u32 k : taken_)
    for (u32 q = of.readers_begin[k]; q < of.readers_begin[k + 1]; ++q)
      if (--o.waiting[of.readers[q]] == 0) enter(of, o, of.readers[q]);
}

bool Beam::search(const Ahead& of, u32 fewest, Vec<u32>& turns, u64& steps) {
  past_.clear();
  if (!begin(of, orders_[0])) return false;
  for (u32 width = 1, turn = 1;; ++turn) {
    next_.clear();
    for (u32 k = 0; k < width; ++k)
      orders_[k].has_ready.each([&](u32 t) {
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
      o.remaining = one.remaining;
      o.batches = one.batches;
      o.rest = one.rest;
      past_.push_back({o.past, one.type});
      o.past = static_cast<u32>(past_.size()) - 1;
      if (one.remaining == 0) {
        turns.resize(turn);
        for (u32 at = turn, p = o.past; at-- > 0; p = past_[p].before) turns[at] = past_[p].type;
        return true;
      }
      take(of, o, one.type);
    }
    for (u32 k = 0; k < width; ++k) std::swap(orders_[k], after_[k]);
  }
}

void Beam::release() {
  for (Order* o : {orders_, after_})
    for (u32 k = 0; k < kWidth; ++k) release_all(o[k].waiting, o[k].ready, o[k].left, o[k].here, o[k].types);
  release_all(next_, past_, taken_);
}

}  // namespace dnl
