// Gradients: who wants one, where it lies, and the pass as it is planned (schedule/back_plan.h). The calls themselves
// are in runner_backward.cc, leaves in leaf_gradients.cc.
#include <algorithm>
#include <atomic>
#include <functional>

#include "base/wait.h"
#include "exec/executor.h"
#include "exec/stages.h"
#include "exec/timer.h"

namespace dnl {

void Executor::backward(NodeId loss, bool full, bool alone) {
  struct Forget {  // even if it fails
    bool& noted;
    ~Forget() { noted = false; }
  } const of_this_pass{held_noted_};
  if (!done(loss)) forward();
  TraceScope trace(Phase::Backward, &g_);
  Timer timer;
  if (g_.dim(loss).size() != 1)
    fail_value("[backward] needs a scalar; got " + g_.dim(loss).text() + " (sum it first: sum_elems, sum_batches)");
  std::unique_lock<GradientLocks> lock(locks_, std::defer_lock);
  if (!alone) {
    list_gradients();
    lock.lock();
  }
  bool again = find_pass(loss, full) && grads_.take_again(pass_->ready.grads);
  pass_->ready.there = false;
  if (!again) reach(loss, full);
  graded_ = 0;        // what was there before is gone, even if this pass fails
  any_full_ |= full;  // only such a pass writes over values that another one reads without reaching them
  Rewound numbers(g_, *backend_, owner_);
  if (pass_->first_run < n_runs_) numbers.check(runs_[pass_->first_run]->ran_at);
  restore_spent(numbers);
  if (again && !leaves_again()) {
    again = false;
    reach(loss, full);
  }
  back_again_ = again;
  if (again) {
    if (options.verify) verify_again(loss, full);
    runner(0).begin_kept(pass_->calls, pass_->planner.plan());
  } else {
    pass_->calls.forget();
    place_gradients(loss);
  }
  trace.event.floats = grads_.used() / sizeof(float);
  graded_ = loss + 1;
  if (pass_->planner.at()[loss]) {
    const bool plain = seed(loss, again);
    const std::size_t to = runs_until(loss);
    if (!again) plan_backward(to);
    if (!again && plain) note_plan(loss, full, to);
    ++(again ? totals_.back_plans_again : totals_.back_plans);
    const NodeId root = g_.node(loss).root;
    if (options.verify)
      verify_back_plan(g_, pass_->planner.plan(), runs_, pass_->planner.at()[root], g_.dim(root).size());
    cache_.begin();
    list_outers();
    const OutersWanted wanted(outers_);
    run_backward(to, numbers);
    totals_.transposed += cache_.count();
    collect_gradients();
    pass_->ready.there |= again;
  }
  if (options.touches_looked_up) touch_looked_up(loss);
  totals_.backward_time += timer.lap();
}

// Those behind were made after it.
std::size_t Executor::runs_until(NodeId loss) const {
  std::size_t to = n_runs_;
  while (to && runs_[to - 1]->first > loss) --to;
  return to;
}

// The gradient of the loss is 1. False: it is added to one that is there.
bool Executor::seed(NodeId loss, bool again) {
  float* at = pass_->planner.at()[loss];
  const NodeId root = g_.node(loss).root;
  if (again || !facts().written[root]) {
    if (const std::size_t n = g_.dim(root).size(); n > 1) backend_->fill(n, 0.f, pass_->planner.at()[root]);
    facts().written[root] = kWritten;
    backend_->fill(1, 1.f, at);
    return true;
  }
  float* one = grads_.floats(1);
  backend_->fill(1, 1.f, one);
  backend_->add_rows(1, 1, Rows{one, 1, nullptr}, Rows{at, 1, nullptr});
  return false;
}

// Values that a pass before wrote gradients over are made again, from the weights that they were made from.
void Executor::restore_spent(Rewound& numbers) {
  for (std::size_t r = any_full_ ? 0 : pass_->first_run; r < n_runs_; ++r) {
    if (!runs_[r]->any_spent) continue;
    numbers.to(runs_[r]->ran_at);
    runner(runs_[r]->lane).restore(*runs_[r]);
  }
  numbers.present();
}

void Executor::list_gradients() {
  locks_.clear();
  for (u32 p = 0; p < g_.parameters(); ++p) locks_.add(g_.parameter(g_.parameter_node(p))->in_use);
  for (u32 t = 0; t < g_.tables(); ++t) locks_.add(g_.table(t)->in_use);
}

// Stages from the last to the first.
void Executor::plan_backward(std::size_t to) {
  pass_->planner.begin(
      {{options.threads, options.least_work, run_lanes}, shares_calls(), completion_.watch != nullptr});
  while (to > pass_->first_run) {
    std::size_t from = to - 1;
    while (from && same_stage(from - 1, to - 1)) --from;
    pass_->planner.begin_stage(runs_, static_cast<u32>(from), static_cast<u32>(to), grads_);
    in_lanes(from, to, [this](Run& run) { pass_->planner.plan_lane(run.lane); });
    pass_->planner.end_stage();
    to = from;
  }
}

// Each stage with the weights that its runs read.
void Executor::run_backward(std::size_t to, Rewound& numbers) {
  if (completion_.watch) {
    completion_.begin();
    for (std::size_t r = pass_->first_run; r < to; ++r) completion_.see(g_, static_cast<u32>(r), *runs_[r]);
  }
  for (const BackStage& stage : pass_->planner.plan().stages) {
    if (numbers.to(runs_[stage.run]->ran_at)) {
      totals_.transposed += cache_.count();
      cache_.begin();
    }
    run_stage(stage);
    if (completion_.watch) completion_.passed(stage.run, 0);
  }
}

namespace {

// Which tasks of a stage are done. One that fails ends all waiting.
class Progress {
 public:
  // False: something failed.
  bool wait(u32 task) {
    for (Wait wait; !done_[task].load(std::memory_order_acquire); wait.turn())
      if (failed_) return false;
    return true;
  }
  void done(u32 task) { done_[task].store(true, std::memory_order_release); }
  void fail() { failed_ = true; }

 private:
  std::atomic<bool> done_[kMaxTasks] = {}, failed_{false};
};

}  // namespace

// Its tasks, taken by whoever has time, in their order: so a task waits only for those that somebody has taken.
void Executor::run_stage(const BackStage& stage) {
  const BackPlan& plan = pass_->planner.plan();
  for (u32 m = 0; m < stage.zeros; ++m) runner(0).move(plan.moves[stage.zero + m]);
  for (u32 t = stage.task; t < stage.task + stage.tasks; ++t)
    runner(plan.tasks[t].runner).shares_calls = stage.tasks == 1 && shares_calls();
  runner(0).keep_calls_in(kept_calls(stage.run));
  auto run_task = [&](const BackTask& task) {
    runner(task.runner)
        .backward(*runs_[task.run], *plan.lanes[task.lane], task, completion_, back_again_ ? &pass_->calls : nullptr);
  };
  if (stage.tasks == 1) {
    run_task(plan.tasks[stage.task]);
  } else {
    Progress progress;
    run_lanes(static_cast<int>(stage.tasks), options.threads, [&](int number) {
      const BackTask& task = plan.tasks[stage.task + static_cast<u32>(number)];
      try {
        for (u32 before : task.after)
          if (before != kNoNode && !progress.wait(before - stage.task)) return;
        run_task(task);
        progress.done(static_cast<u32>(number));
      } catch (...) {
        progress.fail();
        throw;
      }
    });
  }
  const u32 bins = stage.tasks / stage.runs - 1;
  for (u32 b = 1; b < bins; ++b) runner(stage.runs).keep_room_of(runner(stage.runs + b));
  for (u32 b = 1; b < bins; ++b) runner(stage.runs + b).keep_room_of(runner(stage.runs));
  add_moves(stage.add, stage.adds);
}

// The arrays that have something for each node are clear again but where the next pass writes. What the last pass wrote
// is known: a graph may have grown through thousands of steps, of which each reaches its own nodes only.
void Executor::forget_gradients(NodeId n) {
  auto clear = [&, from = facts().first, to = facts().end](auto& v, auto nothing) {
    const NodeId size = static_cast<NodeId>(v.size());
    for (NodeId i = from; i < std::min(to, size); ++i) v[i] = nothing;
    for (NodeId i : facts().leaves)
      if (i < size) v[i] = nothing;
    if (size < n) v.resize(n);
    for (NodeId i = size; i < n; ++i) v[i] = nothing;
  };
  clear(facts().reached, u8(0));
  clear(facts().written, u8(kNothing));
  for (u32 l = 0; l < kMaxLanes; ++l)
    if (l == 0 || !pass_->planner.at(l).empty()) clear(pass_->planner.at(l), static_cast<float*>(nullptr));
  facts().leaves.clear();
  pass_->reached_aliases.clear();
  facts().first = 0;  // until reach() knows better, which may fail
  facts().end = n;
}

// Which nodes the loss depends on and want a gradient. Leaves and aliases among them are listed, the last first.
void Executor::reach(NodeId loss, bool full) {
  forget_gradients(loss + 1);
  Gradients& found = facts();
  pass_->first_run = runs_until(loss);
  // Nodes of before the last pass, below `old`, are looked at only if something depends on them.
  const NodeId old = std::min(pass_->first_run ? runs_[pass_->first_run - 1]->first : 0, graded_);
  // What is asked of arguments, which lie all over the graph: once of each node, in order, and kept close together.
  constexpr u8 kWanted = 1, kAliased = 2;
  auto facts = [&](NodeId i) {
    const bool wanted = full ? !g_.signature(i).no_grad : g_.node(i).is(kNeedsGrad);
    return static_cast<u8>((wanted ? kWanted : 0) | (g_.node(i).is(kAlias) ? kAliased : 0));
  };
  reach_facts_.resize(loss + 1 - old);
  for (NodeId i = old; i <= loss; ++i) reach_facts_[i - old] = facts(i);
  auto fact = [&](NodeId i) { return i >= old ? reach_facts_[i - old] : facts(i); };
  auto wants = [&](NodeId i) { return (fact(i) & kWanted) != 0; };
  NodeId at = loss, first = kNoNode;
  u32 old_nodes = 0;  // that are marked and not visited yet, but for leaves, which lead nowhere
  old_leaves_.clear();
  auto mark = [&](NodeId i) {
    u8& r = found.reached[i];
    if (!r && i > at)
      found.leaves.push_back(i);  // only leaves stand behind their readers
    else if (!r && i < old) {
      if (g_.node(i).is(kLeaf))
        old_leaves_.push_back(i);
      else
        ++old_nodes;
    }
    if (!(r & kReached))
      r = static_cast<u8>(r | kReader | kReached | (fact(i) & kAliased ? kReachedAlias : 0));
    else
      r = static_cast<u8>((r | kSeveral) + (r < kMostReaders * kReader ? kReader : 0));
  };
  if (wants(loss)) mark(loss);
  NodeId i = loss + 1;
  for (; i > old || old_nodes;) {
    if (!found.reached[--i]) continue;
    at = i;
    const Node& n = g_.node(i);
    if (n.is(kLeaf)) {
      found.leaves.push_back(i);
      continue;
    }
    if (i < old) --old_nodes;
    first = i;
    if (n.is(kAlias)) {
      pass_->reached_aliases.push_back(i);
      if (wants(g_.aliased(i))) mark(g_.aliased(i));
      continue;
    }
    if (n.is(kOutput)) {
      mark(n.producer);
      continue;
    }
    const NodeId* args = g_.operands(i);
    const u32 nargs = g_.nargs(i);
    for (u32 j = 0; j < nargs; ++j)
      if (args[j] <= loss && wants(args[j])) mark(args[j]);
  }
  std::sort(old_leaves_.begin(), old_leaves_.end(), std::greater<>());
  for (NodeId leaf : old_leaves_)
    if (leaf < i) found.leaves.push_back(leaf);
  found.first = std::min(first, loss + 1);
  while (pass_->first_run && runs_[pass_->first_run - 1]->last > first) --pass_->first_run;
}

// An address for the gradient of each node reached.
void Executor::place_gradients(NodeId loss) {
  grads_.rewind();
  Vec<float*>& at = pass_->planner.at();
  const Vec<u8>& reached = facts().reached;
  place_leaf_gradients();
  for (std::size_t r = pass_->first_run; r < n_runs_; ++r) {
    Run& run = *runs_[r];
    if (run.first > loss) break;
    run.grad_base = grads_.floats(run.plan.floats ? run.plan.floats : 1);
    const std::ptrdiff_t shift = run.grad_base - run.value_base;
    for (NodeId i : run.plan.order) {
      if (i > loss) continue;
      const u32 visible = g_.signature(i).visible;
      for (u32 o = 0; o < visible && i + o <= loss; ++o)
        if (reached[i + o]) at[i + o] = g_.value(i + o) + shift;
    }
  }
  for (std::size_t k = pass_->reached_aliases.size(); k-- > 0;) {
    const NodeId i = pass_->reached_aliases[k];
    const Node& n = g_.node(i);
    if (g_.signature(i).no_grad) continue;
    if (at[g_.aliased(i)]) at[i] = at[n.root] + n.offset;  // not past an alias that stops gradients
  }
}

// In the order of lanes; each thread does a part of every gradient.
void Executor::add_moves(u32 first, u32 count) {
  constexpr std::size_t kLeastWork = 1 << 17, kLine = 16;  // floats
  if (!count) return;
  std::size_t all = 0;
  const Move* moves = pass_->planner.plan().moves.data() + first;
  for (u32 m = 0; m < count; ++m) all += moves[m].n;
  const int parts = all < kLeastWork ? 1 : options.threads;
  run_lanes(parts, parts, [&](int part) {
    for (u32 m = 0; m < count; ++m) {
      const Move& p = moves[m];  // one row
      const std::size_t size = (p.n / static_cast<std::size_t>(parts) + kLine) / kLine * kLine;
      const std::size_t from = std::min(p.n, size * static_cast<std::size_t>(part)), to = std::min(p.n, from + size);
      if (from < to)
        backend_->add_rows(1, to - from, Rows{p.from.base + from, 0, nullptr}, Rows{p.to.base + from, 0, nullptr});
    }
  });
}

}  // namespace dnl
