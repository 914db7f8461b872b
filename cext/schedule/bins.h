// Dealing the gradients of shared arguments to threads while lanes run backward.
//
// What a type of a run adds to its shared arguments is one work; where that is much, what it adds to those that are
// best formed together (OpDef::formed_with). Works that add to the same memory are a chain: they are done in the order
// of lanes, so that the sum is always the same. Chains are dealt to bins of like cost, of which there are more than
// threads. Pure: it notes and deals. Who may include: schedule/. Includes: base/.
#pragma once
#include "base/vec.h"

namespace dnl {

constexpr u32 kAllArgs = 0xffffffffu;  // of a type: shared arguments that are formed together, all of them

class Bins {
 public:
  struct Work {
    u32 run, type;
    u32 arg;  // the first of these, or kAllArgs
    u32 bin;
    u64 cost;
    u32 parent;  // a work of the same chain that is not later
  };

  void clear();
  void add(u32 run, u32 type) { works_.push_back({run, type, kAllArgs, 0, 0, 0}); }
  // Of the last work: it adds to this memory, at this cost. arg: the first of those that are formed together.
  void adds_to(u32 arg, const float* memory, u64 cost) {
    targets_.push_back({memory, static_cast<u32>(works_.size() - 1), arg, cost});
  }
  // Fills in the bins; how many there are.
  u32 deal(u32 threads, u32 most_bins);
  const Vec<Work>& works() const { return works_; }
  void release() { release_all(works_, targets_, chains_, load_); }

 private:
  struct Target {
    const float* memory;
    u32 work, arg;
    u64 cost;
  };
  void find_chains();
  bool cut_large(u32 threads);
  u32 first_of_chain(u32 work) const;

  Vec<Work> works_;
  Vec<Target> targets_;  // by memory, once chains are found
  Vec<u32> chains_;      // their first works, the dearest chain first
  u64 total_ = 0;
  Vec<u64> load_;
};

}  // namespace dnl
