// The executor: evaluates the pending nodes of one graph, and gradients.
//
// forward() plans and runs everything that has not run yet, so a value asked for in the middle costs only what is new,
// and everything pending batches together. backward() visits the runs in reverse; gradients of shared arguments
// (weights) are formed once per type. Unbatched running is a plan with groups of one; there is no second executor. With
// threads, independent parts of the mini-batch run in lanes with gradient memory of their own, summed up in a fixed
// order, so a run with n threads is deterministic. Addresses are opaque here: only the backend follows them. Who may
// include: bindings/. Includes: exec/runner.h and below.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "exec/complete.h"
#include "exec/plan_cache.h"
#include "exec/rewound.h"
#include "exec/runner.h"
#include "rewrite/pipeline.h"

namespace dnl {

// Where values and gradients lie, and what backward passes keep. Executors that take turns share one: what was there
// goes when another begins.
struct Memory {
  Arena values, gradients;
  std::unique_ptr<PassCache> cache;
  const void* user = nullptr;

  explicit Memory(Backend* backend)
      : values(backend->memory()), gradients(backend->memory()), cache(backend->pass_cache()) {}
  void begin(const void* executor) {
    if (user == executor) return;
    reset();
    user = executor;
  }
  void reset() {
    values.reset();
    gradients.reset();
  }
  void release() { release_all(values, gradients, *cache); }
};

// What became of a gradient that was asked for.
enum class GradientRead : u8 {
  Given,
  None,    // no backward pass has run since the node was made
  Gone,    // of a weight: it was the accumulated gradient, which has been changed since
  Summed,  // of a row to which no expression referred: it was only added to the table's
};

class Executor final : private Graph::Listener {
 public:
  // The memory must outlive it; several executors may share one.
  Executor(Graph& graph, Backend* backend, Memory& memory);
  ~Executor();

  void forward(bool whole = true);
  // The same of a whole graph, quicker where one node is new.
  void forward_at_once();
  // Forgets all values, so that the next forward() runs everything again, with new random numbers and the rows of now;
  // by the plan that is there, if it is of the whole graph.
  void invalidate();
  // Gradients of `loss` (one number) with respect to everything it depends on. Adds into parameters.
  // full: also gradients of inputs and other constants. alone: no other thread can use the parameters meanwhile.
  void backward(NodeId loss, bool full, bool alone = false);
  // Asks for the memory that a run by the plan that is there reads: between steps of other graphs it leaves the caches,
  // and one array after another would be waited for.
  void fetch() const;
  bool done(NodeId i) const { return i < done_; }
  // Has anything been made of the nodes from this one on: was the graph rewritten or planned that far?
  bool begun(NodeId from) const { return rewritten_ > from || planned_ > from; }
  // The value, after forward(); n floats.
  void read_value(NodeId i, float* to);
  // The gradient of the last backward(); zeros where nothing flowed. It stays when nodes go that were made after the
  // loss.
  GradientRead read_gradient(NodeId i, float* to);
  // For a backward() that comes later: the expressions that refer to nodes now are those that may be asked for
  // gradients.
  void note_held();

  std::string dump_plans();
  // Between graphs: no plan of before is known any more.
  void forget_plans() {
    leave_known(0);
    known_.release();
    renewals_ = 0;
  }
  // Of the last backward pass; see dump_back_plan().
  std::string dump_backward(u32 most) const {
    return graded_ ? dump_back_plan(g_, *backend_, pass_->planner.plan(), runs_, most) : std::string();
  }
  // While on, forward() notes the graph after each pass; switching it on forgets what was noted.
  void log_rewrites(bool on);
  const std::vector<RewriteLog::Entry>& rewrite_log() const { return pipeline_.log().entries; }
  // The passes that run under the options.
  PassSet passes() const;
  // Number i of what ran since the renewal, or null.
  const Run* run(std::size_t i) const { return i < n_runs_ ? runs_[i].get() : nullptr; }
  // Totals over all runners; the profile is indexed by op id.
  Stats stats() const;
  std::vector<OpProfile> profile() const;

  ExecOptions options;
  // Who is told of complete gradients while backward() runs; null: nobody.
  void watch_gradients(GradientWatch* watch) { completion_.watch = watch; }

  std::size_t value_bytes() const { return values_.reserved(); }
  std::size_t grad_bytes() const { return grads_.reserved(); }

 private:
  void truncated(u32 n_nodes) override;
  void leave_pass();
  void note_runs();
  void release() override;
  Run& next_run(u8 stage, u32 lane);
  Runner& runner(u32 lane);
  const Runner& runner(u32 lane) const { return *runners_[lane]; }
  void check_ops() const;
  void rewrite(bool whole);
  void collect_pending(bool whole);
  void only_ops(Vec<NodeId>& nodes);
  template <class F>
  void each_list(F f);
  void make_runs();
  void plan_runs(std::size_t from);
  bool may_run_at_once() const;
  bool find_only_op(NodeId* op);
  void verify_at_once(NodeId op);
  Run& run_at_once(NodeId op);
  void append(Run& run, NodeId op);
  void take_back(Run& run, std::size_t groups);
  void run_again();
  void run_by_plan(std::size_t from);
  bool may_be_known() const;
  bool may_follow() const;
  // Are all runs by plans that are kept?
  bool all_known() const { return !parts_.empty() && parts_.size() == n_runs_ && !cut_; }
  const KnownPlan* last_known() const { return parts_.empty() ? nullptr : parts_[parts_.size() - 1]; }
  bool run_known(bool whole);
  void verify_known(const KnownPlan& known, bool whole);
  void keep_known(bool whole);
  bool take_memory(const KnownPlan& plan);
  bool take_memory_back();
  void leave_known(std::size_t from) {
    if (parts_.size() > from) give_back_runs(from);
  }
  void give_back_runs(std::size_t from);
  void run_stages(std::size_t from, bool again);
  void settle_rows();
  void settle_leaf(NodeId i);
  void settle_row(NodeId i);
  void forget_parts(NodeId from);
  void place(std::size_t from);
  void place_parameters();
  void place_aliases();
  void place_run(Run& run);
  void place_uneven(const Run& run, const Group& group);
  bool same_stage(std::size_t a, std::size_t b) const;
  template <class F>
  void in_lanes(std::size_t from, std::size_t to, F f);

  void forget_gradients(NodeId n);
  void reach(NodeId loss, bool full);
  void place_gradients(NodeId loss);
  void place_leaf_gradients();
  void place_weight_gradient(NodeId i);
  void place_apart(NodeId i);
  void clear_apart();
  template <class F>
  void each_row(NodeId i, F f) const;
  void list_gradients();
  bool seed(NodeId loss, bool again);
  bool plans_last() const;
  bool find_pass(NodeId loss, bool full);
  void note_plan(NodeId loss, bool full, std::size_t to);
  bool plan_may_hold(NodeId loss, bool full) const;
  bool leaves_may_hold() const;
  void verify_again(NodeId loss, bool full);
  std::size_t runs_until(NodeId loss) const;
  bool leaves_again();
  bool reaches_alias_of(NodeId row) const;
  void restore_spent(Rewound& numbers);
  void plan_backward(std::size_t to);
  void run_backward(std::size_t to, Rewound& numbers);
  void run_stage(const BackStage& stage);
  void add_moves(u32 first, u32 count);
  bool is_row(NodeId i) const;
  // Where the calls of a run are kept, if not in the runner.
  Runner::KeptCalls* kept_calls(std::size_t run) const {
    return run < parts_.size() ? parts_[run]->calls.get() : nullptr;
  }
  // May threads share a call, where there are no lanes?
  bool shares_calls() const { return options.threads > 1 && runners_[0]->can_share(); }
  void list_outers();
  void collect_gradients();
  void add_to_slots();
  void touch_looked_up(NodeId loss);

  Graph& g_;
  Backend* backend_;
  Memory& memory_;
  Arena &values_, &grads_;  // of it
  PassCache& cache_;
  Runs runs_;
  std::size_t n_runs_ = 0;
  std::vector<std::unique_ptr<Runner>> runners_;  // by lane
  NodeId done_ = 0;
  NodeId planned_ = 0;      // the runs are of all nodes below: more than are done when values have been forgotten
  bool one_plan_ = false;   // one forward() has made all of these runs,
  u64 let_go_ = 0;          // when so many nodes had been let go; their values were in all of
  Arena::Mark placed_;      // this memory
  bool refresh_ = false;    // before anything runs: Graph::refresh()
  bool torn_ = false;       // passes have failed half-way: nodes are neither what they were nor what they should be
  Vec<NodeId> leaf_parts_;  // aliases of leaves, whose addresses may change, ascending
  Owner owner_ = nullptr;   // the thread that ran the nodes last
  LiveRuns live_;
  Vec<NodeId> pending_, aliases_;  // what is to be run now, and aliases among the new nodes
  bool has_lanes_ = false;         // what is pending is in split_
  Pipeline pipeline_;
  NodeId rewritten_ = 0;  // nodes below were merged and fused as far as can be
  PassSet possible_;      // passes for which the backend has the ops
  bool complete_ = true;  // it has all ops
  Split split_;
  Stats totals_;  // what no runner counts: times, plans

  PlanCache known_;
  Vec<KnownPlan*> parts_;  // of it, by run: that one has its runs here, and its calls and passes are used
  bool cut_ = false;       // nodes have gone, back to a checkpoint: what stands behind the live ones is not looked for
  u32 renewals_ = 0;       // so far, counted to 2

  GradientLocks locks_;                // every parameter and table of the graph
  BackPasses own_passes_;              // over graphs that are not known
  BackPass* pass_;                     // of the last backward(), and what it was planned for
  std::unique_ptr<BackPass> checked_;  // what the verifier plans
  Gradients& facts() { return pass_->planner.gradients; }
  Vec<u8> reach_facts_;              // by node, while reach() looks for these
  Vec<NodeId> old_leaves_;           // see reach()
  bool any_full_ = false;            // some pass over this graph was full
  bool back_again_ = false;          // the backward pass that is running goes by the plan of the last
  Vec<NodeId> to_slots_;             // what is added to rows' gradients at the end of a pass,
  Vec<float*> slot_from_, slot_to_;  // row by row
  Vec<OuterWanted> outers_;          // of this pass
  Vec<NodeId> held_;                 // rows that an expression refers to, in order, if
  bool held_noted_ = false;          // note_held() has been called; else they are as they are
  Completion completion_;
  NodeId graded_ = 0;  // nodes below have gradients
};

}  // namespace dnl
