// Calls that are kept, where a run is run again: what of them depends on the plan alone is put together once. Rows of
// tables and weights are looked up each time, for they may lie elsewhere. Who may include: nobody.
#include <new>

#include "exec/frame.h"
#include "exec/timer.h"

namespace dnl {

// Calls of the run that are kept are good as long as the graph's arrays are where they were.
void Runner::use_kept(const Run& run) {
  constexpr std::size_t kMost = 256;  // a call of a longer plan takes longer than it takes to put it together
  const Plan& plan = run.plan;
  const void* arrays[3] = {};
  if (!plan.groups.empty()) {
    arrays[0] = &g_.dim_by_id(0);
    arrays[1] = g_.key(plan.types[0].sig);
    arrays[2] = g_.member(plan.order[0]);
  }
  if (kept_->run == &run && std::equal(arrays, arrays + 3, kept_->arrays)) return;
  forget_calls();
  if (plan.groups.size() > kMost) return;
  kept_->run = &run;
  std::copy(arrays, arrays + 3, kept_->arrays);
  kept_->forward.assign(plan.groups.size(), nullptr);
}

void Runner::forget_calls() {
  kept_->run = nullptr;
  kept_->forward.clear();
  kept_->lists.rewind();
  forget_backward();
}

void Runner::forget_backward() {
  kept_->backward.clear();
  kept_->back_lists.rewind();
}

Runner::CallFrame* Runner::new_call(Arena& lists) {
  CallFrame* f = new (lists.alloc_bytes(sizeof(CallFrame))) CallFrame;
  f->call.restore = false;
  return f;
}

void Runner::forward_again(Run& run, u32 index) {
  const Group& group = run.plan.groups[index];
  if (index >= kept_->forward.size() || run.plan.types[group.type].over) return run_group(run, index);
  scratch_.rewind();
  const NodeId* members = run.plan.order.data() + group.begin;
  CallFrame*& f = kept_->forward[index];
  if (!f) {
    CallFrame* made = new_call(kept_->lists);
    const InLists lists(*this, kept_->lists);
    begin_call(*made, run, group.type, members, group.count, group.slot);
    find_arguments(*made, run, index, members);
    made->fixed = lie_still(run, index, *made);
    f = made;
  } else if (!f->fixed) {
    find_arguments(*f, run, index, members);
  } else {
    for (u32 j = 0; j < f->nargs; ++j)
      if (f->shared[j]) f->x[j] = shared_argument(f->sig, j);
  }
  call_forward(*f, group.count);
}

// Are the stacked arguments values of this run?
bool Runner::lie_still(const Run& run, u32 index, const CallFrame& f) const {
  for (u32 j = 0; j < f.nargs; ++j) {
    if (f.shared[j]) continue;
    const NodeId* ids = run.operands.ids.data() + run.operands.arg(index, j).first;
    for (int m = 0; m < f.call.members; ++m)
      if (g_.node(ids[m]).is(kLeaf | kWeight | kAlias)) return false;
  }
  return true;
}

void Runner::back_again(const Run& run, const BackLane& plan, const BackStep& step, CallFrame*& f) {
  const Group& group = run.plan.groups[step.of];
  if (run.plan.types[group.type].over) return back_stacked(run, plan, step);
  TraceScope trace(Phase::BackwardBatch, &g_);
  describe(trace, run, group);
  scratch_.rewind();
  if (!f) {
    CallFrame* made = new_call(kept_->back_lists);
    const InLists lists(*this, kept_->back_lists);
    begin_call(*made, run, group.type, run.plan.order.data() + group.begin + step.first, step.count,
               group.slot + step.first);
    arguments_again(*made, run, step.of, step.first * made->items);
    begin_backward(*made, run, group.type, plan, step);
    f = made;
  } else {
    arguments_again(*f, run, step.of, step.first * f->items);
    f->call.transposes = cache_.transposes;
  }
  call_backward(*f, step);
}

}  // namespace dnl
