// A runner runs plans: one per worker thread, with scratch memory and counters of its own.
//
// It puts calls together (addresses, what to add to) and hands them to the backend. It allocates no values and decides
// nothing about order; the executor does. Runners of one executor work at the same time on plans whose nodes are
// disjoint.
// Who may include: exec/ only. Includes: schedule/, graph/, op/.
#pragma once
#include <exception>
#include <memory>
#include <vector>

#include "exec/complete.h"
#include "exec/options.h"
#include "exec/trace.h"
#include "op/backend.h"
#include "schedule/back_plan.h"

namespace dnl {

class Runner {
 public:
  struct CallFrame;
  Runner(Graph& graph, Backend* backend, const ExecOptions& options, PassCache& cache);

  // again: the same run as the last time, and nothing of it has been planned since.
  void forward(Run& run, bool again);
  // Its last group alone, which was added when all others had run.
  void forward_last(Run& run);
  // Gives back the memory that it works in.
  void release();
  struct Kept;
  // The steps of a task, one after another. kept: null, or the calls of this plan, which has run before.
  void backward(const Run& run, const BackLane& plan, const BackTask& task, Completion& completion, Kept* kept);
  // Room for as much at a time as the other has had room for: which of them does what changes from step to step.
  void keep_room_of(const Runner& other);
  // Makes the values again that a backward pass wrote gradients over.
  void restore(Run& run);
  // Clears or adds.
  void move(const Move& m);

  // Calls that have been made before, by group of a run, or by step of a backward pass; null: not put together yet, or
  // in the frame of their type (runner_again.cc).
  struct Kept {
    const void* arrays[4] = {};  // of the graph, into which they point
    Vec<CallFrame*> frames;
    Arena lists;  // what they point to

    void forget() {
      frames.clear();
      lists.rewind();
    }
    void fetch() const { fetch_all(frames, lists); }
    void release() { release_all(frames, lists); }
  };
  // Do the stacked arguments of a group lie where they lay?
  enum class Stay : u8 { Unknown, No, Yes };
  struct KeptCalls : Kept {
    const Run* run = nullptr;
    Vec<Stay> stay;  // by group

    void forget() {
      run = nullptr;
      Kept::forget();
    }
    void fetch() const {
      Kept::fetch();
      stay.fetch();
    }
    void release() {
      Kept::release();
      stay.release();
    }
  };
  // The next run has its calls there; null: here.
  void keep_calls_in(KeptCalls* calls) { kept_ = calls ? calls : &own_kept_; }
  void fetch_kept() const { kept_->fetch(); }
  // For a pass whose plan is that of before, in one lane.
  void begin_kept(Kept& kept, const BackPlan& plan) const;

  // Could threads share its calls?
  bool can_share() const { return intra_op_ != nullptr; }
  bool shares_calls = false;  // they do: no other runner works at the same time
  Stats stats;
  std::vector<OpProfile> profile;
  PlanScratch plan_scratch;

 private:
  struct Extremes {
    bool nan = false, infinity = false;
  };
  class ScratchArena final : public Scratch {
   public:
    explicit ScratchArena(MemorySource source) : floats(source) {}
    float* alloc(std::size_t n) override { return floats.floats(n); }
    void* list(std::size_t n) override { return arena.alloc_bytes(n); }
    void rewind() {
      arena.rewind();
      floats.rewind();
    }
    Arena arena;   // what calls are put together of
    Arena floats;  // the backend's: what kernels work in
  };

  // In its time calls are put together of these lists.
  class InLists {
   public:
    InLists(Runner& runner, Arena& lists) : runner_(runner) { runner_.lists_ = &lists; }
    ~InLists() { runner_.lists_ = &runner_.scratch_.arena; }
    InLists(const InLists&) = delete;
    InLists& operator=(const InLists&) = delete;

   private:
    Runner& runner_;
  };

  // Groups: a call of a longer plan takes longer than it takes to put it together.
  static constexpr std::size_t kMostKept = 256;
  void use_kept(const Run& run);
  bool arrays_moved(Kept& kept) const;
  // Do the calls of a type take turns in one frame?
  bool take_turns(const Run& run, const PlanType& type) const;
  template <class F>
  CallFrame& kept_frame(const Run& run, u32 type, F members, u32 count, u32 slot, CallFrame*& own, Arena& lists,
                        bool& as_before);
  void forward_again(Run& run, u32 group);
  void find_shared(CallFrame& f) const;
  void find_stacked(const CallFrame& f, Run& run, u32 group) const;
  bool lie_still(const Run& run, u32 group, const CallFrame& f) const;
  void back_again(const Run& run, const BackLane& plan, const BackStep& step, Kept& kept, CallFrame*& own);
  void call_forward(const CallFrame& f, u32 members);
  void call_backward(const CallFrame& f, const BackStep& step);
  void describe(TraceScope& trace, const Run& run, const Group& group) const;
  void list_operands(Run& run, u32 from) const;
  void run_group(Run& run, u32 group, bool restore = false);
  void check_finite(const Run& run, u32 from, u32 to);
  bool at_fault(NodeId i) const;
  bool brings_infinity(NodeId i) const;
  Extremes extremes(NodeId i) const;  // of its value
  void begin_call(CallFrame& f, const Run& run, u32 type, const NodeId* members, u32 count, u32 slot);
  void place_call(CallFrame& f, const Run& run, const PlanType& type, u32 count, u32 slot) const;
  struct CallShapes {
    const Dim** arg_dim;
    Dim* out_dim;  // null: the graph's
    bool* shared;
  };
  CallShapes take_arrays(CallFrame& f, u32 outputs, bool own_dims);
  void make_ragged(CallFrame& f, const CallShapes& shapes, const Run& run, const PlanType& type, const NodeId* members,
                   u32 count);
  void find_arguments(CallFrame& f, Run& run, u32 group, const NodeId* members);
  void list_outside(Run& run, Operands::Arg& arg, u32 count) const;
  void list_items(const CallFrame& f, u32 j, u32 stacked, const NodeId* members, NodeId* to) const;
  void lay_output_over(CallFrame& f, const Run& run);
  void back_stacked(const Run& run, const BackLane& plan, const BackStep& step);
  void back_shared(const Run& run, const BackLane& plan, const BackStep& step);
  void shared_again(const Run& run, const BackLane& plan, const BackStep& step, Kept& kept, CallFrame*& own);
  void call_shared(const CallFrame& f, const Run& run, const BackStep& step);
  void begin_backward(CallFrame& f, const Run& run, u32 type, const BackLane& plan, const BackStep& step) const;
  void targets_again(CallFrame& f, const Run& run, u32 type, const BackLane& plan, const BackStep& step,
                     bool as_before) const;
  const NodeId* members_of_type(const Run& run, const BackStep& step);
  void arguments_again(CallFrame& f, const Run& run, u32 group, u32 from);
  void arguments_of_type(CallFrame& f, const Run& run, u32 type, u32 from);
  // One row for all members.
  Rows shared_argument(u32 sig, u32 j) const { return Rows{g_.value(g_.shared_arg(sig, j)), 0, nullptr}; }
  // Who would share a call.
  Team team() const;
  void count_products(const ProductCounts& before);

  Graph& g_;
  Backend* backend_;
  const ExecOptions& options_;
  PassCache& cache_;
  ScratchArena scratch_;
  Arena* lists_ = &scratch_.arena;  // for what a call points to
  KeptCalls own_kept_;
  KeptCalls* kept_ = &own_kept_;
  std::unique_ptr<IntraOp> intra_op_;
  Vec<Numbers> checked_;
};

}  // namespace dnl
