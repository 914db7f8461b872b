// Executor: running a graph by the plan of one that was made alike (exec/plan_cache.h). Who may include: nobody.
#include "exec/executor.h"
#include "exec/overlap.h"
#include "exec/pool.h"
#include "exec/timer.h"

namespace dnl {

// May the graph be one that is known? It has been made as a whole and nothing of it has run; steps come again and
// again.
bool Executor::may_be_known() const {
  return options.keep_plans && renewals_ > 1 && done_ == 0 && planned_ == 0 && rewritten_ == 0 && n_runs_ == 0 &&
         g_.marked() == 0 && g_.size() <= PlanCache::kMostNodes && backend_->host_memory && !options.check_validity &&
         !pipeline_.log().on;
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
    plan = known_.find(g_, options, whole);
    if (!plan) return false;
    if (options.verify) verify_known(*plan, whole);
  }
  totals_.plan_time += timer.lap();
  if (job_pending()) finish_job();
  begin_pass(options.threads);
  memory_.begin(this);
  if (values_.used() || !values_.take_again(plan->values)) {
    known_.drop(plan);
    return false;
  }
  leaf_parts_.copy(plan->leaf_parts);
  if (runs_.empty()) runs_.push_back(std::make_unique<Run>());
  plan->graph.put(g_);
  take_known(plan);  // nothing fails from here on until it runs
  n_runs_ = 1;
  planned_ = rewritten_ = g_.size();
  one_plan_ = true;
  let_go_ = g_.let_go_of();
  pass_->ready.let_go += let_go_ - plan->let_go;  // as many since
  plan->let_go = let_go_;
  if (!options.verify) {
    totals_.dead += plan->dead;
    totals_.merged += plan->merged;
  }
  run_by_plan();
  totals_.forward_time += timer.lap();
  return true;
}

// The passes and the planner make of the graph what is kept.
void Executor::verify_known(const KnownPlan& known, bool whole) {
  rewrite(whole);
  make_runs();
  plan_runs(0);
  const Plan &made = runs_[0]->plan, &kept = known.run->plan;
  bool same = n_runs_ == 1 && known.graph.same(g_) && made.order.size() == kept.order.size() &&
              made.groups.size() == kept.groups.size() && made.floats == kept.floats;
  for (std::size_t k = 0; same && k < made.order.size(); ++k) same = made.order[k] == kept.order[k];
  for (std::size_t k = 0; same && k < made.groups.size(); ++k)
    same = made.groups[k].begin == kept.groups[k].begin && made.groups[k].slot == kept.groups[k].slot;
  DNL_INTERNAL(same, "plans that are kept: a graph that is made alike would be planned in another way");
  n_runs_ = 0;
}

// The graph has run by a plan of its own. It is kept if it was noted when it was made.
void Executor::keep_known(bool whole) {
  if (!known_.noted()) return;
  const Arena::Mark values = values_.mark();
  if (n_runs_ != 1 || has_lanes_ || !values.block) return known_.forget_note();
  KnownPlan* plan = known_.keep(g_, *backend_);
  if (!plan) return;
  plan->options = options;
  plan->whole = whole;
  plan->keep_weights = keep_weights_flag();
  plan->values = values;
  plan->dead = totals_.dead;
  plan->merged = totals_.merged;
  plan->let_go = let_go_;
  plan->leaf_parts.copy(leaf_parts_);
  live_plan_ = plan;
}

// The executor works with what belongs to the plan, and leaves its own there. A backward pass does not if it has none
// to run again: it may have been one of a graph that grew, whose arrays are large.
void Executor::take_known(KnownPlan* plan) {
  live_plan_ = plan;
  exchange_runs();
  if (plan->pass->ready.there) pass_.swap(plan->pass);
}

// What was found out for the live plan stays with it.
void Executor::leave_known() {
  if (!live_plan_) return;
  exchange_runs();
  if (pass_->ready.there)
    pass_.swap(live_plan_->pass);
  else
    live_plan_->pass->ready.there = false;
  live_plan_ = nullptr;
}

void Executor::exchange_runs() {
  runs_[0].swap(live_plan_->run);
  runner(0).exchange_kept(live_plan_->calls);
}

}  // namespace dnl
