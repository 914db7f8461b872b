// Calls that are kept, where a run is run again: what of them depends on the plan alone is put together once. Rows of
// tables and weights are looked up each time, for they may lie elsewhere. Who may include: nobody.
#include <new>

#include "exec/frame.h"
#include "exec/timer.h"

namespace dnl {
namespace {

// Asks for a frame, and for what lies behind it, which is read soon: a step of another structure has come in between.
void fetch(const void* frame) {
  constexpr std::size_t kLine = 64, kLines = 6;
  for (std::size_t k = 0; frame && k < kLines; ++k) DNL_FETCH(static_cast<const char*>(frame) + k * kLine);
}

}  // namespace

// Calls of the run that are kept are good as long as the graph's arrays are where they were.
void Runner::use_kept(const Run& run) {
  if (!arrays_moved(*kept_) && kept_->run == &run) return;
  kept_->forget();
  if (run.plan.groups.size() > kMostKept) return;
  kept_->run = &run;
  kept_->frames.assign(run.plan.groups.size(), nullptr);
}

void Runner::begin_kept(KeptBack& kept, const BackPlan& plan) const {
  const std::size_t steps = plan.lanes.empty() ? 0 : plan.lanes[0]->steps.size();
  if (!arrays_moved(kept) && kept.frames.size() == steps) return;
  kept.forget();
  kept.frames.assign(steps, nullptr);
}

// Since the calls were made; where they are now is noted.
bool Runner::arrays_moved(Kept& kept) const {
  const void* now[3] = {&g_.dim_by_id(0), g_.key(0), g_.member(0)};
  if (std::equal(now, now + 3, kept.arrays)) return false;
  std::copy(now, now + 3, kept.arrays);
  return true;
}

Runner::CallFrame* Runner::new_call(Arena& lists) { return new (lists.alloc_bytes(sizeof(CallFrame))) CallFrame; }

void Runner::forward_again(Run& run, u32 index) {
  const Group& group = run.plan.groups[index];
  if (index >= kept_->frames.size() || run.plan.types[group.type].over) return run_group(run, index);
  scratch_.rewind();
  if (index + 1 < kept_->frames.size()) fetch(kept_->frames[index + 1]);
  const NodeId* members = run.plan.order.data() + group.begin;
  CallFrame*& f = kept_->frames[index];
  if (!f) {
    CallFrame* made = new_call(kept_->lists);
    const InLists lists(*this, kept_->lists);
    begin_call(*made, run, group.type, members, group.count, group.slot);
    find_arguments(*made, run, index, members);
    made->fixed = lie_still(run, index, *made, 0);
    f = made;
  } else {
    if (!f->fixed) find_stacked(*f, run, index);
    find_shared(*f);
  }
  call_forward(*f, group.count);
}

// The nodes are those of before.
void Runner::find_stacked(CallFrame& f, Run& run, u32 group) const {
  Operands& o = run.operands;
  const u32 count = static_cast<u32>(f.call.members);
  for (u32 j = 0; j < f.nargs; ++j) {
    if (f.call.shared[j]) continue;
    Operands::Arg& arg = o.arg(group, j);
    float** at = o.at.data() + arg.first;
    for (u32 m = 0; m < count; ++m) at[m] = g_.value(o.ids[arg.first + m]);
    f.x[j] = arg.rows = rows_from(at, count);
  }
}

void Runner::find_shared(CallFrame& f) const {
  for (u32 j = 0; j < f.nargs; ++j)
    if (f.call.shared[j]) f.x[j] = shared_argument(f.sig, j);
}

// Are the stacked arguments values of this run? Members from this one on.
bool Runner::lie_still(const Run& run, u32 index, const CallFrame& f, u32 from) const {
  for (u32 j = 0; j < f.nargs; ++j) {
    if (f.call.shared[j]) continue;
    const NodeId* ids = run.operands.ids.data() + run.operands.arg(index, j).first + from;
    for (int m = 0; m < f.call.members; ++m)
      if (g_.node(ids[m]).is(kLeaf | kWeight | kAlias)) return false;
  }
  return true;
}

void Runner::back_again(const Run& run, const BackLane& plan, const BackStep& step, KeptBack& kept, CallFrame*& f) {
  const Group& group = run.plan.groups[step.of];
  if (run.plan.types[group.type].over) return back_stacked(run, plan, step);
  TraceScope trace(Phase::BackwardBatch, &g_);
  describe(trace, run, group);
  scratch_.rewind();
  if (&f + 1 < kept.frames.end()) fetch((&f)[1]);
  if (!f) {
    CallFrame* made = new_call(kept.lists);
    const InLists lists(*this, kept.lists);
    begin_call(*made, run, group.type, run.plan.order.data() + group.begin + step.first, step.count,
               group.slot + step.first);
    arguments_again(*made, run, step.of, step.first * made->items);
    begin_backward(*made, run, group.type, plan, step);
    made->fixed = lie_still(run, step.of, *made, step.first * made->items);
    f = made;
  } else {
    f->fixed ? find_shared(*f) : arguments_again(*f, run, step.of, step.first * f->items);
    f->call.transposes = cache_.transposes;
  }
  call_backward(*f, step);
}

void Runner::shared_again(const Run& run, const BackLane& plan, const BackStep& step, KeptBack& kept, CallFrame*& f) {
  if (run.plan.types[step.of].over) return back_shared(run, plan, step);
  scratch_.rewind();
  if (!f) {
    CallFrame* made = new_call(kept.lists);
    const InLists lists(*this, kept.lists);
    begin_shared(*made, run, plan, step);
    f = made;
  } else {
    arguments_of_type(*f, run, step.of, step.first * f->items);
    f->call.transposes = cache_.transposes;
  }
  call_shared(*f, run, step);
}

}  // namespace dnl
