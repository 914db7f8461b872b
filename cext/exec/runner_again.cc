// Calls that are kept, where a run is run again: what of them depends on the plan alone is put together once. Rows of
// tables and weights are looked up each time, for they may lie elsewhere. Who may include: nobody.
//
// Most calls of a type differ in where their rows lie and in how many these are, and nothing else: the groups of such a
// type, and their backward passes, take turns in one frame. Where steps of many structures follow one another, memory
// that each has for itself comes from far away. Where a type has one group there is more to spare by leaving a frame as
// it is.
#include <new>

#include "exec/frame.h"
#include "exec/timer.h"

namespace dnl {

// Calls of the run that are kept are good as long as the graph's arrays are where they were.
void Runner::use_kept(const Run& run) {
  if (!arrays_moved(*kept_) && kept_->run == &run) return;
  kept_->forget();
  if (run.plan.groups.size() > kMostKept) return;
  kept_->run = &run;
  kept_->frames.assign(run.plan.groups.size(), nullptr);
  kept_->stay.assign(run.plan.groups.size(), Stay::Unknown);
}

void Runner::begin_kept(Kept& kept, const BackPlan& plan) const {
  const std::size_t steps = plan.lanes.empty() ? 0 : plan.lanes[0]->steps.size();
  if (!arrays_moved(kept) && kept.frames.size() == steps) return;
  kept.forget();
  kept.frames.assign(steps, nullptr);
}

// Since the calls were made; where they are now is noted.
bool Runner::arrays_moved(Kept& kept) const {
  const void* now[] = {&g_.dim_by_id(0), g_.key(0), g_.member(0), g_.inputs_at()};
  if (std::equal(std::begin(now), std::end(now), kept.arrays)) return false;
  std::copy(std::begin(now), std::end(now), kept.arrays);
  return true;
}

// Not where members have lists.
bool Runner::take_turns(const Run& run, const PlanType& type) const {
  return run.plan.groups[type.first_group].count < type.count && !type.ragged &&
         !op_def(g_.sig(type.sig).op).has_member_attrs;
}

// The frame for a call of so many members, which are packed from `slot` on: that of its type, else `own`, which may
// have to be made, in these lists. members(): who they are. as_before: it is as the same call left it the last time.
template <class F>
Runner::CallFrame& Runner::kept_frame(const Run& run, u32 type_index, F members, u32 count, u32 slot, CallFrame*& own,
                                      Arena& lists, bool& as_before) {
  const PlanType& type = run.plan.types[type_index];
  const bool turns = take_turns(run, type);
  CallFrame*& f = turns ? kept_->frames[type.first_group] : own;
  as_before = f && !turns;
  if (f && turns) place_call(*f, run, type, count, slot);
  if (f) return *f;
  Arena& all = turns ? kept_->lists : lists;
  CallFrame* made = new (all.alloc_bytes(sizeof(CallFrame))) CallFrame;
  const InLists in(*this, all);
  begin_call(*made, run, type_index, members(), count, slot);
  return *(f = made);
}

void Runner::forward_again(Run& run, u32 index) {
  const Group& group = run.plan.groups[index];
  if (index >= kept_->frames.size() || run.plan.types[group.type].over) return run_group(run, index);
  scratch_.rewind();
  const NodeId* members = run.plan.order.data() + group.begin;
  bool as_before;
  CallFrame& f = kept_frame(
      run, group.type, [members] { return members; }, group.count, group.slot, kept_->frames[index], kept_->lists,
      as_before);
  Stay& stay = kept_->stay[index];
  if (stay == Stay::Unknown) {
    find_arguments(f, run, index, members);
    stay = lie_still(run, index, f) ? Stay::Yes : Stay::No;
  } else if (stay == Stay::Yes && !as_before) {
    arguments_again(f, run, index, 0);
  } else {
    if (stay == Stay::No) find_stacked(f, run, index);
    find_shared(f);
  }
  call_forward(f, group.count);
}

void Runner::find_shared(CallFrame& f) const {
  for (u32 j = 0; j < f.nargs; ++j)
    if (f.call.shared[j]) f.x[j] = shared_argument(f.sig, j);
}

// Where they lie now; the nodes are those of before.
void Runner::find_stacked(const CallFrame& f, Run& run, u32 group) const {
  Operands& o = run.operands;
  const u32 count = static_cast<u32>(f.call.members);
  for (u32 j = 0; j < f.nargs; ++j) {
    if (f.call.shared[j]) continue;
    Operands::Arg& arg = o.arg(group, j);
    float** at = o.at.data() + arg.first;
    for (u32 m = 0; m < count; ++m) at[m] = g_.value(o.ids[arg.first + m]);
    f.x[j] = arg.rows = Rows::of(at, count);
  }
}

// Are the stacked arguments of a group values of this run, or inputs that have not moved as long as the arrays have
// not?
bool Runner::lie_still(const Run& run, u32 index, const CallFrame& f) const {
  const bool inputs_too = g_.inputs_at() != nullptr;
  for (u32 j = 0; j < f.nargs; ++j) {
    if (f.call.shared[j]) continue;
    const NodeId* ids = run.operands.ids.data() + run.operands.arg(index, j).first;
    for (int m = 0; m < f.call.members; ++m)
      if (g_.node(ids[m]).is(kLeaf | kWeight | kAlias) && !(inputs_too && g_.signature(ids[m]).leaf == Leaf::Input))
        return false;
  }
  return true;
}

void Runner::back_again(const Run& run, const BackLane& plan, const BackStep& step, Kept& kept, CallFrame*& own) {
  const Group& group = run.plan.groups[step.of];
  if (run.plan.types[group.type].over) return back_stacked(run, plan, step);
  TraceScope trace(Phase::BackwardBatch, &g_);
  describe(trace, run, group);
  scratch_.rewind();
  const NodeId* members = run.plan.order.data() + group.begin + step.first;
  bool as_before;
  CallFrame& f = kept_frame(
      run, group.type, [members] { return members; }, step.count, group.slot + step.first, own, kept.lists, as_before);
  if (as_before && kept_->stay[step.of] == Stay::Yes)
    find_shared(f);
  else
    arguments_again(f, run, step.of, step.first * f.items);
  targets_again(f, run, group.type, plan, step, as_before);
  call_backward(f, step);
}

void Runner::shared_again(const Run& run, const BackLane& plan, const BackStep& step, Kept& kept, CallFrame*& own) {
  if (run.plan.types[step.of].over) return back_shared(run, plan, step);
  scratch_.rewind();
  bool as_before;
  CallFrame& f = kept_frame(
      run, step.of, [&] { return members_of_type(run, step); }, step.count, step.first, own, kept.lists, as_before);
  arguments_of_type(f, run, step.of, step.first * f.items);
  targets_again(f, run, step.of, plan, step, as_before);
  call_shared(f, run, step);
}

void Runner::targets_again(CallFrame& f, const Run& run, u32 type, const BackLane& plan, const BackStep& step,
                           bool as_before) const {
  if (as_before)
    f.call.transposes = cache_.transposes;
  else
    begin_backward(f, run, type, plan, step);
}

}  // namespace dnl
