// The executor: runs the pending nodes of one graph forward, and gradients backward.
//
// forward() plans and runs everything that has not run yet, so a value asked for in the middle costs only what is new and
// everything pending batches together. backward() visits the plans in reverse: the first writer of a gradient assigns,
// later ones add; gradients of shared arguments (weights) are formed once per type. Unbatched running is a plan
// with groups of one; there is no second executor. Addresses are opaque here: only the backend follows them.
// Who may include: bindings/. Includes: schedule/, graph/, op/, base/.
#pragma once
#include <memory>
#include <vector>

#include "op/backend.h"
#include "schedule/plan.h"

namespace dnl {

// What happened since the last renewal of the graph; times in seconds of wall time.
struct Stats {
  u64 nodes = 0;        // op nodes run
  u64 batches = 0;      // groups run
  u64 lower_bound = 0;
  u64 floats_gathered = 0, floats_scattered = 0;
  u64 plans = 0;
  double plan_time = 0, forward_time = 0, backward_time = 0;
};

// Time and calls of one op, forward and backward; kept only while profiling.
struct OpProfile {
  u64 calls = 0, members = 0;
  double forward = 0, backward = 0;
};

struct ExecOptions {
  Strategy strategy = Strategy::Greedy;
  bool verify = false;
  bool check_validity = false;  // NaN and infinity raise at the node that made them
  bool profile = false;
  int threads = 1;
};

class Executor final : private Graph::Listener {
 public:
  Executor(Graph& graph, Backend* backend);
  ~Executor();

  // Runs every node that has not run.
  void forward();
  // Forgets all values, so that the next forward() runs everything again with new random numbers.
  void invalidate();
  // Gradients of `loss` (one number) with respect to everything it depends on. Adds into parameters.
  // full: also gradients of inputs and other constants.
  void backward(NodeId loss, bool full);
  bool done(NodeId i) const { return i < done_; }
  // The value, after forward(); n floats.
  void read_value(NodeId i, float* to);
  // The gradient after backward(); zeros where nothing flowed. False: no backward has run since the node was made.
  bool read_gradient(NodeId i, float* to);

  std::string dump_plans();
  const Plan* plan(std::size_t i) const { return i < n_plans_ ? &runs_[i]->plan : nullptr; }

  ExecOptions options;
  Stats stats;
  std::vector<OpProfile> profile;  // by op id

  std::size_t value_bytes() const { return values_.reserved(); }
  std::size_t grad_bytes() const { return grads_.reserved(); }

 private:
  struct Run {  // a plan and where its values lie
    Plan plan;
    float* value_base;
    float* grad_base;
    NodeId first, last;
  };
  class ScratchArena final : public Scratch {
   public:
    float* alloc(std::size_t n) override { return arena.floats(n); }
    Arena arena;
  };
  struct CallFrame;

  void truncated(u32 n_nodes) override;
  Run& next_run();
  void place(Run& run);
  void run_group(const Run& run, const Group& group);
  void check_finite(const Run& run, const Group& group);

  void reach(NodeId loss, bool full);
  void place_gradients(NodeId loss);
  void back_group(const Run& run, const Group& group);
  void back_members(const Run& run, const Group& group, u32 from, u32 count);
  void back_shared(const Run& run, u32 type);
  void back_shared_members(const Run& run, u32 type, const NodeId* members, u32 count, u32 slot);
  void collect_lookups(NodeId loss);
  bool active(NodeId i) const;
  void zero_unwritten_outputs(CallFrame& f, const NodeId* members, u32 count);
  void begin_call(CallFrame& f, const Run& run, u32 type, const NodeId* members, u32 count, u32 slot);
  void argument(CallFrame& f, u32 j, const NodeId* members);
  bool targets(CallFrame& f, const NodeId* members);
  void target(CallFrame& f, u32 j, const NodeId* members);
  void settle_target(CallFrame& f, u32 j);
  void scatter_targets(CallFrame& f);
  void first_write(NodeId root);

  Graph& g_;
  Backend* backend_;
  Arena values_, grads_;
  ScratchArena scratch_;
  std::vector<std::unique_ptr<Run>> runs_;
  std::size_t n_plans_ = 0;
  NodeId done_ = 0;
  PlanScratch plan_scratch_;

  // Backward. A node's gradient lies with its root; kAlways marks gradients that are added to from the start.
  static constexpr u32 kAlways = 0xffffffffu;
  Vec<float*> grad_;        // by node: where its gradient lies, null when none is wanted
  Vec<u32> state_;          // by root: 0 nothing written; else the serial of the call that first wrote
  Vec<u8> reached_;         // by node
  Vec<NodeId> type_members_;
  Vec<NodeId> fresh_roots_; // first written in the current call
  Vec<u32> fresh_begin_;    // by argument, into fresh_roots_
  NodeId graded_ = 0;       // nodes below have gradients
  u32 serial_ = 0;
};

}  // namespace dnl
