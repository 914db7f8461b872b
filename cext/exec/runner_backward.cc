// Running the steps of a backward pass (schedule/back_plan.h says what they are and who decides).
#include "exec/frame.h"
#include "exec/runner.h"
#include "exec/timer.h"

namespace dnl {

void Runner::backward(const Run& run, const BackLane& plan, const BackTask& task, Completion& completion, Kept* kept) {
  const ProductCounts before = backend_->product_counts();
  if (run.plan.groups.size() > kMostKept) kept = nullptr;
  if (kept) use_kept(run);
  for (u32 s = task.first; s < task.first + task.count; ++s) {
    const BackStep& step = plan.steps[s];
    switch (step.kind) {
      case StepKind::Zero:
      case StepKind::Add:
        for (u32 m = 0; m < step.count; ++m) move(plan.moves[step.first + m]);
        break;
      case StepKind::Stacked:
        kept ? back_again(run, plan, step, *kept, kept->frames[s]) : back_stacked(run, plan, step);
        break;
      case StepKind::Shared:
        kept ? shared_again(run, plan, step, *kept, kept->frames[s]) : back_shared(run, plan, step);
        break;
      case StepKind::Passed: completion.passed(task.run, step.of); break;
    }
  }
  count_products(before);
}

void Runner::move(const Move& m) {
  if (m.from.wanted())
    backend_->add_rows(m.rows, m.n, m.from, m.to);
  else
    backend_->fill_rows(m.rows, m.n, 0.f, m.to);
}

// Stacked arguments of consecutive members of a group, and shared ones where they are wanted together with these.
void Runner::back_stacked(const Run& run, const BackLane& plan, const BackStep& step) {
  const Group& group = run.plan.groups[step.of];
  TraceScope trace(Phase::BackwardBatch, &g_);
  describe(trace, run, group);
  scratch_.rewind();
  CallFrame f;
  begin_call(f, run, group.type, run.plan.order.data() + group.begin + step.first, step.count, group.slot + step.first);
  arguments_again(f, run, step.of, step.first * f.items);
  begin_backward(f, run, group.type, plan, step);
  call_backward(f, step);
}

void Runner::call_backward(const CallFrame& f, const BackStep& step) {
  Timer timer(options_.profile);
  if (!shares_calls || !intra_op_->backward(f.call, team(), step.apart)) backend_->backward(f.call);
  if (options_.profile) profile[g_.sig(f.sig).op].backward += timer.lap();
}

// Shared arguments of consecutive members of a type, once they all have their stacked gradients.
void Runner::back_shared(const Run& run, const BackLane& plan, const BackStep& step) {
  scratch_.rewind();
  CallFrame f;
  begin_call(f, run, step.of, members_of_type(run, step), step.count, step.first);
  arguments_of_type(f, run, step.of, step.first * f.items);
  begin_backward(f, run, step.of, plan, step);
  call_shared(f, run, step);
}

void Runner::call_shared(const CallFrame& f, const Run& run, const BackStep& step) {
  TraceScope trace(Phase::SharedBatch, &g_);
  describe(trace, run, run.plan.groups[run.plan.types[step.of].first_group]);
  trace.event.members = step.count;
  Timer timer(options_.profile);
  const bool done = shares_calls && intra_op_->backward_shared(f.call, team());
  for (u32 j = 0; j < f.nargs && !done; ++j)
    if (f.call.shared[j] && f.dx[j].wanted()) backend_->backward_shared(f.call, static_cast<int>(j));
  if (options_.profile) profile[g_.sig(f.sig).op].backward += timer.lap();
}

const NodeId* Runner::members_of_type(const Run& run, const BackStep& step) {
  const PlanType& type = run.plan.types[step.of];
  const NodeId* first = run.plan.order.data() + run.plan.groups[type.first_group].begin;
  if (run.plan.groups[type.first_group].count == type.count) return first + step.first;
  NodeId* members = scratch_.arena.array<NodeId>(step.count);
  u32 filled = 0;
  for (u32 k = type.first_group; filled < step.count; ++k) {
    const Group& group = run.plan.groups[k];
    const u32 end = group.slot + group.count;
    if (group.type != step.of || end <= step.first) continue;
    for (u32 m = std::max(group.slot, step.first); m < end && filled < step.count; ++m)
      members[filled++] = run.plan.order[group.begin + m - group.slot];
  }
  return members;
}

// The arguments of a call that begins with this member of a group's, as forward noted them.
void Runner::arguments_again(CallFrame& f, const Run& run, u32 group, u32 from) {
  for (u32 j = 0; j < f.nargs; ++j) {
    const Rows& r = run.operands.arg(group, j).rows;
    f.x[j] = f.call.shared[j] ? shared_argument(f.sig, j) : r.from(from);
  }
  lay_output_over(f, run);
}

// The arguments of members [from, from + f.call.members) of a type's calls, through all its groups.
void Runner::arguments_of_type(CallFrame& f, const Run& run, u32 type, u32 from) {
  const PlanType& t = run.plan.types[type];
  const u32 count = static_cast<u32>(f.call.members);
  if (run.plan.groups[t.first_group].count == t.count) return arguments_again(f, run, t.first_group, from);
  for (u32 j = 0; j < f.nargs; ++j) {
    if (f.call.shared[j]) {
      f.x[j] = shared_argument(f.sig, j);
      continue;
    }
    float** address = scratch_.arena.array<float*>(count);
    u32 filled = 0;
    for (u32 k = t.first_group; filled < count; ++k) {
      const Group& group = run.plan.groups[k];
      const u32 slot = group.slot * f.items, end = slot + group.count * f.items;
      if (group.type != type || end <= from) continue;
      const Rows& r = run.operands.arg(k, j).rows;
      for (u32 m = std::max(slot, from); m < end && filled < count; ++m) address[filled++] = r[m - slot];
    }
    f.x[j] = Rows::of(address, count);
  }
  lay_output_over(f, run);
}

// Where gradients lie: of outputs over values where they are spent, of arguments as the step says.
void Runner::begin_backward(CallFrame& f, const Run& run, u32 type, const BackLane& plan, const BackStep& step) const {
  const u32 last = g_.sig(f.sig).total - 1u;
  if (run.spent[type] & kSpentOutput) f.dy[0] = f.y[0];
  if (run.spent[type] & kSpentLast) f.dy[last] = f.y[last];
  for (u32 j = 0; j < f.nargs; ++j) {
    f.dx[j] = plan.targets[step.targets + j].rows;
    f.acc[j] = plan.targets[step.targets + j].add;
  }
  f.call.dx = f.dx;
  f.call.acc = f.acc;
  f.call.kept = step.kept;
  f.call.transposes = cache_.transposes;
}

void Runner::restore(Run& run) {
  for (u32 k = 0; k < run.plan.groups.size(); ++k)
    if (const u8 spent = run.spent[run.plan.groups[k].type]) run_group(run, k, spent & kReadsSpent);
  run.any_spent = false;
}

void Runner::keep_room_of(const Runner& other) {
  scratch_.arena.reserve(other.scratch_.arena.reserved());
  scratch_.floats.reserve(other.scratch_.floats.reserved());
}

}  // namespace dnl
