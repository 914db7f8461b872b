// Planning the backward pass of one run: which calls assign, add, or have their gradients added later, and where these
// lie.
//
// Groups are visited in reverse, so that what is known of a gradient (Written) is what will hold when its call runs.
// Who may include: schedule/, exec/. Includes: schedule/.
#pragma once
#include "op/intra_op.h"
#include "schedule/back_plan.h"
#include "schedule/bins.h"

namespace dnl {

struct BackOptions {
  Team team;
  bool shares_calls = false;  // threads may share a call, where there are no lanes
  bool watched = false;       // somebody is told of complete gradients
};

// Which of the shared arguments is the first of those formed in one go with j?
u32 formed_with(const Graph& g, u32 sig, u32 j);
// Multiply-adds that the gradient of shared argument j of a type takes, roughly.
u64 shared_work(const Graph& g, const PlanType& type, u32 j);

class BackRun {
 public:
  static constexpr std::size_t kLine = 16;  // spare memory is given out in lines
  // Consecutive members of a type whose shared gradients are formed later, by whoever has time.
  struct Later {
    u32 type, first, count;
  };

  // at: where gradients lie for this lane, by node. The steps go to `lane`.
  void begin(Gradients& gradients, Run& run, Vec<float*>& at, BackLane& lane, const BackOptions& options,
             bool in_lanes);
  // Steps of all groups; in lanes without what is left to the end, which is listed.
  void plan();
  const Vec<Later>& later() const { return later_; }
  // The step that forms them: all (kAllArgs), or those together with shared argument `arg`, added up at `common`.
  void form_shared(const Later& later, u32 arg, const Vec<float*>& common);
  // Does the type leave shared gradients to the end? Not if the run itself made one of the arguments.
  bool forms_at_end(u32 type) const;
  const Run& run() const { return *run_; }
  void release() {
    release_all(sole_gradient_, with_stacked_, later_, members_, address_, fresh_, list_, zero_, add_, found_);
  }

 private:
  // Members of a call whose gradient of one argument is first written now, was written before, by this call (again) or
  // another, or is in parts.
  struct Found {
    u32 fresh, old, again, in_parts;
    u32 first_fresh, end_fresh;  // roots, in fresh_
    float* nowhere;              // where members write whose argument wants no gradient; null: there are none
    bool wanted;
    bool of_others;  // some argument lies in memory of another size: it is an alias
    // So few are not fresh that these had better be added later than the others be cleared and added to.
    bool few_old() const { return in_parts == 0 && 4 * old <= fresh; }
  };
  // A call that is being planned.
  struct Planned {
    u32 group, type, first, count;
    const Signature& sig;
    const OpDef& op;
    bool kept;
    bool partly;  // some gradient is written only in part
    u32 members() const { return count * sig.items; }
  };

  bool active(NodeId i, const Signature& sig) const;
  u32 active_from(const NodeId* members, u32 from, u32 count, const Signature& sig, u32* to) const;
  bool comes_to(NodeId i) const;
  template <class F>
  bool each_member(const Group& group, F f) const;
  template <class F>
  bool each_joined(F f) const;
  void find_sole_gradients();
  void find_in_parts();
  bool all_overwritten(const Group& group) const;
  void find_spent_sums();
  void find_spent_outputs();
  void spend(u32 type, u8 bits) {
    run_->spent[type] |= bits;
    run_->any_spent = true;
  }

  void plan_group(u32 index);
  void plan_call(u32 index, u32 first, u32 count);
  Target* begin_call(u32 nargs);
  void end_call(BackStep step, u32 nargs);
  void emit(StepKind kind, const Vec<Move>& moves);
  void zero_unwritten(const Planned& c);
  bool find_targets(Planned& c, Target* to);
  void find_target(Planned& c, u32 j);
  template <class F>
  void each_old(const Planned& c, u32 j, F f) const;
  void add_later(const Planned& c, u32 j);
  bool settle(const Planned& c, u32 j, bool several);
  void zero_list(std::size_t size);
  Rows rows(float* const* address, u32 count);
  float* spare(std::size_t n);
  std::size_t most_size(const Planned& c, u32 j) const;
  std::size_t ragged_spare(const Planned& c, u32 j) const;
  bool shares_members(const Planned& c) const;

  void choose_shared();
  u64 all_shared_work(u32 type) const;
  bool shares_small(const PlanType& type) const;
  bool forms_apart(u32 type) const;
  bool add_shared(u32 sig, u32 arg, const Vec<float*>& common, Target* to);
  bool wants_shared(u32 sig) const;
  void list_members(u32 type);

  float* at(NodeId i) const { return i < at_->size() ? (*at_)[i] : nullptr; }
  const OpDef& op_of(u32 type) const { return op_def(g_->sig(run_->plan.types[type].sig).op); }
  bool kept(u32 type) const { return sole_gradient_[type] && op_of(type).keep == Keep::Arg0; }
  bool shared(const Planned& c, u32 j) const { return g_->arg_shared(run_->plan.types[c.type].sig, j); }
  bool ragged(const Planned& c) const { return run_->plan.types[c.type].ragged; }
  const NodeId* operands_of(const Planned& c, u32 j) const {
    return run_->operands.ids.data() + run_->operands.arg(c.group, j).first + c.first * c.sig.items;
  }
  std::size_t arg_size(const Planned& c, u32 j) const {
    return g_->dim_by_id(g_->stacked_dim(run_->plan.types[c.type].sig, j)).size();
  }
  std::size_t item_size(const Signature& sig, u32 o) const;

  const Graph* g_ = nullptr;
  Gradients* gradients_ = nullptr;
  Run* run_ = nullptr;
  Vec<float*>* at_ = nullptr;
  BackLane* lane_ = nullptr;
  BackOptions options_;
  bool in_lanes_ = false;
  Vec<u8> sole_gradient_, with_stacked_;  // by type: see find_sole_gradients(), choose_shared()
  Vec<Later> later_;
  // Of the call that is being planned:
  Vec<NodeId> members_;
  Vec<float*> address_;  // argument after argument
  Vec<NodeId> fresh_;    // roots that it is the first to write to, in the order of members
  Vec<float*> list_;
  Vec<Move> zero_, add_;
  Vec<Found> found_;
  std::size_t spare_used_ = 0, most_spare_ = 0;
};

}  // namespace dnl
