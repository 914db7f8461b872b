// A runner runs plans: one per worker thread, with scratch memory and counters of its own.
//
// It puts calls together (addresses, what to add to) and hands them to the backend. It allocates no values and decides
// nothing about order; the executor does. Runners of one executor work at the same time on plans whose nodes are
// disjoint; each has its own view of where gradients go (Gradients).
// Who may include: exec/ only. Includes: schedule/, graph/, op/.
#pragma once
#include <exception>
#include <vector>

#include "exec/complete.h"
#include "exec/options.h"
#include "exec/parts.h"
#include "exec/shared_stage.h"
#include "exec/trace.h"
#include "op/backend.h"
#include "op/transposes.h"
#include "schedule/plan.h"

namespace dnl {

// The stacked operands of a plan's calls: who they are and where their values lie. A forward pass notes them, group by
// group and argument by argument; backward need not look them up again.
struct Operands {
  struct Arg {
    u32 first;  // of ids and at; kNoNode: a shared argument, which has none
    Rows rows;
    u32 outside_begin = 0, outside_end = 0;  // of `outside`
  };
  Vec<Arg> args;
  Vec<u32> begin;  // by group: its argument 0 in args
  Vec<NodeId> ids;
  Vec<float*> at;
  Vec<NodeId> outside;  // in lanes: those that other lanes may read, too, which the run did not make

  Arg& arg(u32 group, u32 j) { return args[begin[group] + j]; }
  const Arg& arg(u32 group, u32 j) const { return args[begin[group] + j]; }
};

// What a run is of (schedule/split.h). Without lanes all is head.
enum Stage : u8 { kHead, kLanes, kTail };

// A plan and where its values lie. Gradients lie in the same layout from grad_base on.
struct Run {
  Plan plan;
  Operands operands;
  float* value_base = nullptr;
  float* grad_base = nullptr;
  NodeId first = 0, last = 0;  // nodes that were pending when the plan was made
  u32 lane = 0;                // which runner
  u8 spent = 0;                // gradients were written over values: see Spent and Runner::restore
  Vec<u8> spent_types;         // those of the outputs of these types
  Vec<u8> alone;               // by type: each member assigns the gradient of its argument 0, see Runner::find_alone
  Vec<u8> with_stacked;        // by type: see Runner::choose_shared
  Moment ran_at = 0;           // when it ran
  u8 stage = kHead;            // a Stage: lanes of one forward() may run at the same time; stages follow one another
};

// Which values are gone after a backward pass, since gradients lie there.
enum Spent : u8 {
  kSpentParts = 1,  // of joined nodes, which are read in parts
  kSpentSums = 2,   // of the arguments that outputs lie over (Over::Arg0), and these outputs
  kSpentOwn = 4     // of outputs that might have lain so but have memory of their own
};

// Which nodes a backward pass comes to, and from how many readers (kReader each, as far as there is room).
enum Reached : u8 {
  kReached = 1,
  kSeveral = 2,  // more than one node reads it
  kReachedAlias = 4,
  kReader = 8
};
constexpr u32 kMostReaders = 31;

// Where gradients go, by node.
struct Gradients {
  static constexpr u32 kAlways = 0xffffffffu;
  static constexpr u32 kInParts = 0xfffffffeu;  // each part is assigned by the one node that reads it
  Vec<float*> at;  // null: none is wanted. Of this lane: what lanes share has a private address in each
  Vec<u32>* state =
      nullptr;  // by root: 0 nothing written; kAlways: added to from the start; kInParts; or a serial number
  const Vec<u8>* reached = nullptr;  // Reached bits

  float* operator[](NodeId i) const { return i < at.size() ? at[i] : nullptr; }
};

class Runner {
 public:
  Runner(Graph& graph, Backend* backend, const ExecOptions& options, Transposes& transposes);

  void forward(Run& run);
  // Gives back the memory that it works in.
  void release();
  // Before the backward pass of a run, of a lane or alone: chooses which types form gradients of shared arguments
  // together with those of stacked ones.
  void choose_shared(Run& run, bool lane) const;
  // All groups of the run in reverse. `gradients` must be filled. shared_later: without the gradients of those shared
  // arguments that are formed at the end. The run's number is what `completion` knows it by.
  void backward(Run& run, bool shared_later, Completion& completion, u32 number);
  // Does the type have such? Not if the run itself made one of them.
  bool forms_at_end(const Run& run, u32 type) const;
  // Multiply-adds that the gradient of shared argument j of a type takes, roughly.
  u64 shared_work(const PlanType& type, u32 j) const;
  // Which of them is the first of those formed together with j?
  u32 together(u32 sig, u32 j) const;
  // Forms them for one type of any lane's run, all or those formed together with `arg`, and adds them to `common`.
  // Runners may do so at the same time where they add to different memory.
  void backward_shared(const Run& run, u32 type, u32 arg, const Gradients& of_lane, const Gradients& common);
  // Is the node, which a lane's run reads, a leaf, made of weights alone, or was it made in an earlier forward()?
  bool made_outside(const Run& run, NodeId i) const;
  // Room for as much at a time as the other has had room for: which of them does what changes from step to step.
  void keep_room_of(const Runner& other);
  // Makes the values again that a backward pass wrote gradients over.
  void restore(Run& run);

  bool alone = false;  // no other runner works at the same time: threads may share calls
  Gradients gradients;
  Stats stats;
  std::vector<OpProfile> profile;
  PlanScratch plan_scratch;

 private:
  struct CallFrame;
  // Gradients of which shared arguments are formed, and where they go.
  struct SharedTargets {
    u32 arg;  // and those formed together with it, or SharedStage::kAllArgs
    const Gradients &of_lane, &common;
  };
  class ScratchArena final : public Scratch {
   public:
    explicit ScratchArena(MemorySource source) : floats(source) {}
    float* alloc(std::size_t n) override { return floats.floats(n); }
    void rewind() {
      arena.rewind();
      floats.rewind();
    }
    Arena arena;   // what calls are put together of
    Arena floats;  // the backend's: what kernels work in
  };

  void describe(TraceScope& trace, const Run& run, const Group& group) const;
  void list_operands(Run& run) const;
  void run_group(Run& run, u32 group, bool restore = false);
  void check_finite(const Run& run, u32 from, u32 to);
  void begin_call(CallFrame& f, const Run& run, u32 type, const NodeId* members, u32 count, u32 slot);
  void find_arguments(CallFrame& f, Run& run, u32 group, const NodeId* members);
  void list_outside(Run& run, Operands::Arg& arg, u32 count) const;
  void list_items(const CallFrame& f, u32 j, u32 stacked, const NodeId* members, NodeId* to) const;
  void lay_output_over(CallFrame& f, const Run& run);
  void lay_gradient_over(CallFrame& f, const Run& run, u32 type) const;
  bool spends_own(const PlanType& type) const;

  // Does the type form gradients of shared arguments at once for all its members?
  bool forms_apart(const Run& run, u32 type) const;
  void back_group(const Run& run, u32 group, bool shared_later);
  void back_members(const Run& run, u32 group, u32 from, u32 count);
  void back_shared(const Run& run, u32 type, const SharedTargets& to);
  void back_shared_members(const Run& run, u32 type, const NodeId* members, u32 count, u32 slot,
                           const SharedTargets& to);
  void arguments_again(CallFrame& f, const Run& run, u32 group, u32 from);
  void arguments_of_type(CallFrame& f, const Run& run, u32 type, u32 from);
  bool reached(NodeId i) const;
  bool active(NodeId i, const Signature& sig) const;
  u32 active_from(const NodeId* members, u32 from, u32 count, const Signature& sig, u32* to) const;
  // One row for all members.
  Rows shared_argument(u32 sig, u32 j) const { return Rows{g_.value(g_.shared_arg(sig, j)), 0, nullptr}; }
  bool wants(const SharedTargets& to, u32 sig, u32 j) const {
    return to.arg == SharedStage::kAllArgs || to.arg == together(sig, j);
  }
  SharedTargets all_shared() const { return {SharedStage::kAllArgs, gradients, gradients}; }
  NodeId root_of(NodeId i) const { return (*gradients.reached)[i] & kReachedAlias ? g_.node(i).root : i; }
  void zero_unwritten_outputs(CallFrame& f, const NodeId* members, u32 count);
  void no_targets(CallFrame& f);
  bool targets(CallFrame& f, const Run& run, u32 group, u32 from);
  void target(CallFrame& f, u32 j, const NodeId* operands);
  void add_later(CallFrame& f, u32 j, const NodeId* operands);
  void settle_target(CallFrame& f, u32 j, bool several);
  bool shared_targets(CallFrame& f, const SharedTargets& to);
  bool assigns_apart(const CallFrame& f) const;
  u64 shared_work(const PlanType& type) const;
  bool shares_small(const PlanType& type) const;
  void find_alone(Run& run);
  void find_assigned_in_parts(Run& run);
  void find_spent_sums(Run& run);
  bool all_overwritten(const Run& run, u32 group) const;
  void count_products(const ProductCounts& before);
  u32& state(NodeId root) const { return (*gradients.state)[root]; }

  Graph& g_;
  Backend* backend_;
  const ExecOptions& options_;
  Transposes& transposes_;
  ScratchArena scratch_;
  CallParts parts_;
  Vec<NodeId> type_members_;
  Vec<NodeId> fresh_roots_;  // first written in the current call
  Vec<u32> fresh_begin_;     // by argument, into fresh_roots_
  struct Later {
    std::size_t rows, size;
    Rows from, to;
  };
  Vec<Later> later_;  // what is added to gradients after the current call
  Vec<Numbers> checked_;
  u32 serial_ = 0;
};

}  // namespace dnl
