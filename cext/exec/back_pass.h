// BackPass: a backward pass as it was planned, and what must be as it was for it to run again (back_again.cc).
//
// Plain data but for the planner. Who may include: exec/ only. Includes: exec/runner.h, schedule/.
#pragma once
#include <memory>
#include <vector>

#include "exec/runner.h"
#include "schedule/back_planner.h"

namespace dnl {

struct BackPass {
  BackPass(const Graph& g, Backend& backend) : planner(g, backend) {}

  struct Direct {
    NodeId node;
    u64 serial;
  };
  struct OfRun {  // that the pass comes to: where gradients lay, and what it wrote over
    float* grad_base;
    bool any_spent;
    u32 types;  // of so many there is a byte in `spent`
  };
  struct Ready {  // what the plan was made for
    bool there = false, full = false, keep_weights = false;
    NodeId loss = 0;
    int threads = 0;
    u64 least_work = 0;
    Vec<OfRun> runs;    // from first_run on
    Vec<u8> spent;      // Run::spent of all, one behind the other
    Vec<float*> slot;   // where the gradients of `slots` lay
    Arena::Mark grads;  // and all others
  };

  BackPlanner planner;
  Vec<NodeId> reached_aliases;  // the last first
  std::size_t first_run = 0;    // runs before were not reached
  Vec<Direct> direct;           // weights whose gradient lies in the accumulator; its serial number after the pass
  Vec<NodeId> apart;            // weights and rows that have memory of their own, which is added to the accumulator
  Vec<NodeId> slots;            // rows whose gradient lies in the table's
  Ready ready;
  Runner::Kept calls;  // of the plan

  // No plan holds any more.
  void forget() {
    ready.there = false;
    if (planner.plan().stages.empty()) return;
    planner.begin({});
    calls.forget();
  }
  // Asks for what a pass by this plan reads.
  void fetch() const {
    fetch_all(calls, slots, direct, ready.slot, planner.at(), planner.gradients.leaves, planner.gradients.written);
    for (const auto& lane : planner.plan().lanes) fetch_all(lane->steps, lane->targets, lane->moves, lane->lists);
  }
  void release() {
    release_all(planner, reached_aliases, direct, apart, slots, ready.runs, ready.spent, ready.slot, calls);
  }
};

// Passes over one graph: of several losses, or of one whose weights had gradients before and had none.
class BackPasses {
 public:
  static constexpr std::size_t kMost = 4;

  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  BackPass* first(const Graph& g, Backend& backend) {
    if (list_.empty()) list_.push_back(std::make_unique<BackPass>(g, backend));
    return list_[0].get();
  }
  // One to plan in: it takes the place of another if there are `most`.
  BackPass* room(const Graph& g, Backend& backend, std::size_t most) {
    for (auto& pass : list_)
      if (!pass->ready.there) return pass.get();
    if (list_.size() >= most) return list_[next_++ % list_.size()].get();
    list_.push_back(std::make_unique<BackPass>(g, backend));
    return list_.back().get();
  }
  void forget() {
    for (auto& pass : list_) pass->forget();
  }
  void forget_plans() {  // the last can still be read
    for (auto& pass : list_) pass->ready.there = false;
  }
  void release() {
    for (auto& pass : list_) pass->release();
    forget();
  }

 private:
  std::vector<std::unique_ptr<BackPass>> list_;
  std::size_t next_ = 0;
};

}  // namespace dnl
