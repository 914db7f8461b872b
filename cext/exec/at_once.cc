// Executor: running each node as soon as it is made (immediate_compute). No pass has anything to do for a single node,
// and there is one plan for it, so nothing is looked for. Such nodes follow one another in one run, whose groups and
// types have one member each; a backward pass then goes through it at once. Who may include: nobody.
#include <algorithm>

#include "exec/executor.h"
#include "exec/overlap.h"
#include "exec/pool.h"
#include "exec/timer.h"

namespace dnl {

void Executor::forward_at_once() {
  if (done_ == g_.size()) return;
  NodeId op;
  if (!may_run_at_once() || !find_only_op(&op)) return forward();
  Timer timer;
  check_ops();
  if (options.verify) verify_at_once(op);
  if (job_pending()) finish_job();
  begin_pass(options.threads);
  memory_.begin(this);
  settle_rows();
  g_.fill_leaves(done_);
  const std::size_t before = n_runs_;
  Run& run = run_at_once(op);
  const std::size_t groups = run.plan.groups.size();
  try {
    if (op != kNoNode) append(run, op);
    place_parameters();
    place_aliases();
    const TraceScope trace(Phase::Forward, &g_);
    runner(0).shares_calls = shares_calls();
    if (op != kNoNode) runner(0).forward_last(run);
  } catch (...) {  // nothing of this counts; the next forward() tries again
    take_back(run, groups);
    n_runs_ = before;
    throw;
  }
  run.last = g_.size();
  one_plan_ = done_ == 0;
  own_passes_.forget_plans();
  let_go_ = g_.let_go_of();
  const bool noted = done_ && n_runs_ == before && owner_ == this_thread();  // updates know of this run
  done_ = planned_ = rewritten_ = g_.size();
  placed_ = values_.mark();
  owner_ = this_thread();
  if (!noted) note_runs();
  totals_.forward_time += timer.lap();
  ++totals_.plans;
}

// Not where somebody looks at what passes and plans do.
bool Executor::may_run_at_once() const {
  return done_ == planned_ && !refresh_ && !torn_ && parts_.empty() && !pipeline_.log().on && !tracing();
}

// The op among the new nodes, if there is one; aliases among them are listed. False: there are several ops.
bool Executor::find_only_op(NodeId* op) {
  *op = kNoNode;
  aliases_.clear();
  for (NodeId i = done_; i < g_.size(); ++i) {
    if (g_.node(i).is(kAlias)) aliases_.push_back(i);
    if (!g_.is_op(i)) continue;
    if (*op != kNoNode) return false;
    *op = i;
  }
  return true;
}

// The passes leave the node as it is.
void Executor::verify_at_once(NodeId op) {
  rewrite(true);
  const bool same = op == kNoNode ? pending_.empty() : pending_.size() == 1 && pending_[0] == op && g_.is_op(op);
  DNL_INTERNAL(same, "nodes that are run at once: a pass would change one");
}

// The last run, if the node may be added to it; else a new one. There is memory for its outputs behind those of the
// run.
Run& Executor::run_at_once(NodeId op) {
  u64 floats = 0;
  for (u32 o = 0; op != kNoNode && o < g_.signature(op).total; ++o)
    floats += slab_room(g_.out_size(g_.node(op).sig, o));
  Run* last = n_runs_ ? runs_[n_runs_ - 1].get() : nullptr;
  const bool open = last && last->at_once && last->first >= g_.marked() && !last->grad_base && last->ran_at == now();
  if (open && op == kNoNode) return *last;
  const Arena::Point before = values_.point();
  float* const at = values_.floats(floats ? floats : 1);
  if (open && at == last->value_base + last->plan.floats) return *last;
  Run& run = next_run(kHead, 0);
  run.operands.clear();
  run.spent.clear();
  run.at_once = true;
  run.before = before;
  run.value_base = at;
  run.ran_at = now();
  return run;
}

// The node is the one member of a group and a type that come last, and lies there.
void Executor::append(Run& run, NodeId op) {
  Plan& plan = run.plan;
  const Signature& sig = g_.signature(op);
  const u32 n = static_cast<u32>(plan.groups.size());
  plan.exec.push_back(op);
  plan.order.push_back(op);
  plan.groups.push_back({n, n, 1, 0});
  plan.types.push_back({g_.node(op).sig, 1, n, false, {0, 0, 0, 0}, false, false, 0});
  for (u32 o = 0; o < sig.total; ++o) {
    plan.types[n].value[o] = plan.floats;
    if (o < sig.visible) g_.place(op + o, run.value_base + plan.floats);
    plan.floats += slab_room(g_.out_size(g_.node(op).sig, o));
  }
  plan.lower_bound = n + 1;
}

// A run that has only so many groups again.
void Executor::take_back(Run& run, std::size_t groups) {
  Plan& plan = run.plan;
  if (plan.types.size() > groups) plan.floats = plan.types[groups].value[0];
  for (Vec<NodeId>* nodes : {&plan.exec, &plan.order}) nodes->resize(std::min(nodes->size(), groups));
  plan.groups.resize(std::min(plan.groups.size(), groups));
  plan.types.resize(std::min(plan.types.size(), groups));
  plan.lower_bound = static_cast<u32>(groups);
  run.operands.keep(groups);
}

}  // namespace dnl
