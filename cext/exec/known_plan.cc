// Executor: running a graph by the plan of one that was made alike (exec/plan_cache.h). Who may include: nobody.
#include "exec/executor.h"
#include "exec/overlap.h"
#include "exec/pool.h"
#include "exec/timer.h"

namespace dnl {

// May the graph be one that is known, or its new nodes a part? It has been made as a whole and nothing of it has run,
// or all that has run was of parts that are known; steps come again and again.
bool Executor::may_be_known() const {
  return options.keep_plans && renewals_ > 1 && done_ == planned_ && rewritten_ <= done_ && n_runs_ == parts_.size() &&
         (n_runs_ == 0 ? done_ == 0 : may_follow()) && g_.marked() == 0 && g_.size() <= PlanCache::kMostNodes &&
         backend_->host_memory && !options.check_validity && !pipeline_.log().on;
}

bool Executor::may_follow() const {
  const Arena::Mark at = values_.mark(), end = last_known()->values;
  return known_.follows() && !cut_ && parts_.size() < PlanCache::kMostParts && memory_.user == this &&
         at.block == end.block && at.used == end.used;
}

// False: it is not known.
bool Executor::run_known(bool whole) {
  if (!may_be_known()) {
    known_.forget_note();
    return false;
  }
  Timer timer;
  KnownPlan* plan;
  {
    const TraceScope trace(Phase::Plan, &g_);
    plan = known_.find(g_, last_known(), options, whole);
    if (!plan) return false;
    if (options.verify) verify_known(*plan, whole);
  }
  totals_.plan_time += timer.lap();
  if (job_pending()) finish_job();
  begin_pass(options.threads);
  memory_.begin(this);
  if (!take_memory(*plan)) {
    known_.drop(plan);
    return false;
  }
  const std::size_t from = n_runs_;
  leaf_parts_.append(plan->leaf_parts);
  parts_.make_room(1);
  if (runs_.size() == from) runs_.push_back(std::make_unique<Run>());
  plan->graph.put(g_);
  parts_.push_back(plan);  // nothing fails from here on until it runs
  runs_[from].swap(plan->run);
  n_runs_ = from + 1;
  const NodeId done = done_;
  planned_ = rewritten_ = g_.size();
  one_plan_ = from == 0;
  placed_ = plan->values;
  let_go_ = g_.let_go_of();
  if (!options.verify) {
    totals_.dead += plan->dead;
    totals_.merged += plan->merged;
  }
  try {
    run_by_plan(from);
  } catch (...) {
    if (from) {  // the next forward() plans the part; a whole graph runs again
      n_runs_ = from;
      planned_ = done;
      forget_parts(done);
    }
    throw;
  }
  totals_.forward_time += timer.lap();
  return true;
}

// Values come to lie where they lay.
bool Executor::take_memory(const KnownPlan& plan) {
  return (n_runs_ || !values_.used()) && values_.take_again(plan.values);
}

// The passes and the planner make of the graph what is kept.
void Executor::verify_known(const KnownPlan& known, bool whole) {
  const std::size_t from = n_runs_;
  rewrite(whole);
  make_runs();
  plan_runs(from);
  const Plan &made = runs_[from]->plan, &kept = known.run->plan;
  bool same = n_runs_ == from + 1 && known.graph.same(g_) && made.order.size() == kept.order.size() &&
              made.groups.size() == kept.groups.size() && made.floats == kept.floats;
  for (std::size_t k = 0; same && k < made.order.size(); ++k) same = made.order[k] == kept.order[k];
  for (std::size_t k = 0; same && k < made.groups.size(); ++k)
    same = made.groups[k].begin == kept.groups[k].begin && made.groups[k].slot == kept.groups[k].slot;
  DNL_INTERNAL(same, "plans that are kept: a graph that is made alike would be planned in another way");
  n_runs_ = from;
}

// The graph, or a part, has run by a plan of its own. It is kept if it was noted when it was made.
void Executor::keep_known(bool whole) {
  if (!known_.noted()) return;
  const Arena::Mark values = values_.mark();
  if (n_runs_ != parts_.size() + 1 || has_lanes_ || !values.block) return known_.forget_note();
  parts_.make_room(1);
  KnownPlan* plan = known_.keep(g_, last_known());
  if (!plan) return;
  plan->options = options;
  plan->whole = whole;
  plan->keep_weights = keep_weights_flag();
  plan->values = values;
  plan->dead = pipeline_.changes(PassId::Dead);
  plan->merged = pipeline_.changes(PassId::Merge);
  plan->leaf_parts.clear();
  for (NodeId i : leaf_parts_)
    if (i >= runs_[n_runs_ - 1]->first) plan->leaf_parts.push_back(i);
  parts_.push_back(plan);
}

// The plans from this one on are not live any more: their runs go back to them.
void Executor::give_back_runs(std::size_t from) {
  for (std::size_t k = from; k < parts_.size(); ++k) runs_[k].swap(parts_[k]->run);
  parts_.resize(from);
  runner(0).keep_calls_in(nullptr);
  if (from) return;
  graded_ = 0;
  pass_ = own_passes_.first(g_, *backend_);
}

}  // namespace dnl
