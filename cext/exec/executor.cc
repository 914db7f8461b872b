// Planning, placing and running forward. Backward is in backward.cc.
#include "exec/executor.h"

#include <algorithm>

#include "exec/overlap.h"
#include "exec/pool.h"
#include "exec/stages.h"
#include "exec/timer.h"
#include "rewrite/verify.h"

namespace dnl {

Executor::Executor(Graph& graph, Backend* backend, Memory& memory)
    : g_(graph),
      backend_(backend),
      memory_(memory),
      values_(memory.values),
      grads_(memory.gradients),
      cache_(*memory.cache),
      pipeline_(graph),
      pass_(own_passes_.first(graph, *backend)) {
  runner(0);
  possible_ = passes_of(*backend_);
  for (int op = 0; op < op_count(); ++op) complete_ &= backend_->supports(static_cast<OpId>(op));
  g_.set_listener(this);
}

Executor::~Executor() {
  if (memory_.user == this) memory_.user = nullptr;  // another may come to lie where this one lay
  g_.set_listener(nullptr);
}

Runner& Executor::runner(u32 lane) {
  while (runners_.size() <= lane) runners_.push_back(std::make_unique<Runner>(g_, backend_, options, cache_));
  return *runners_[lane];
}

void Executor::truncated(u32 n) {
  pipeline_.forget_signatures();
  if (n == 0) {
    leave_known(0);
    renewals_ = std::min(renewals_ + 1, 2u);
  }
  cut_ = n > 0;
  own_passes_.forget_plans();
  if (!graded_ || n < graded_) leave_pass();
  rewritten_ = std::min(rewritten_, n);
  forget_parts(n);
  if (n == 0) {
    done_ = planned_ = 0;
    refresh_ = torn_ = false;
    n_runs_ = 0;
    any_full_ = false;
    note_runs();
    if (memory_.user == this) memory_.reset();
    totals_ = Stats{};
    for (auto& r : runners_) r->stats = Stats{};
    return;
  }
  if (planned_ <= n) return;
  planned_ = n;
  // Everything is run before a checkpoint, but a graph that ran again since has runs that reach across the cut.
  const std::size_t runs = n_runs_;
  while (n_runs_ && runs_[n_runs_ - 1]->last > n) planned_ = std::min(planned_, runs_[--n_runs_]->first);
  if (n_runs_ < runs && memory_.user == this) values_.return_to(runs_[n_runs_]->before);
  done_ = std::min(done_, planned_);
  if (graded_ > planned_) leave_pass();
  leave_known(n_runs_);
  note_runs();
}

// There are no gradients to be asked for.
void Executor::leave_pass() {
  graded_ = 0;
  pass_ = own_passes_.first(g_, *backend_);
  own_passes_.forget();
}

// Tells updates whether nodes have run whose weights a backward pass may need.
void Executor::note_runs() {
  if (!n_runs_ || !done_) return live_.none();
  live_.set(owner_, runs_[0]->ran_at, runs_[n_runs_ - 1]->ran_at);
}

// Only between graphs.
void Executor::release() {
  if (memory_.user == this) memory_.release();
  release_all(completion_, pending_, aliases_, leaf_parts_, pipeline_, split_, locks_, own_passes_, old_leaves_,
              reach_facts_, to_slots_, slot_from_, slot_to_, held_);
  known_.release();
  checked_.reset();
  runs_ = Runs();
  for (auto& r : runners_) r->release();
}

void Executor::fetch() const {
  if (g_.size() > PlanCache::kMostNodes) return;  // the caches would not hold it until it is read
  g_.fetch();
  runner(0).fetch_kept();
  for (std::size_t r = 0; r < n_runs_; ++r) runs_[r]->fetch();
  pass_->fetch();
}

void Executor::invalidate() {
  done_ = 0;
  if (keep_weights_flag()) g_.let_go_numbers();
  graded_ = 0;  // the plan of the last backward pass stays: it may be run again
  refresh_ = true;
  live_.none();
}

Run& Executor::next_run(u8 stage, u32 lane) {
  if (n_runs_ == runs_.size()) runs_.push_back(std::make_unique<Run>());
  Run& run = *runs_[n_runs_++];
  run.plan.clear();
  run.grad_base = nullptr;
  run.any_spent = run.at_once = false;
  run.stage = stage;
  run.lane = lane;
  run.first = done_;
  run.last = g_.size();
  return run;
}

// Refuses a graph that needs what the backend lacks, before anything is changed.
void Executor::check_ops() const {
  for (NodeId i = done_; i < g_.size() && !complete_; ++i)
    if (g_.is_op(i) && !backend_->supports(g_.signature(i).op))
      fail_value("[" + op_def(g_.signature(i).op).name + "] the backend '" + backend_->name() +
                 "' does not have this op");
}

// The op nodes that have not run, in lanes if that is worth it, after the passes over the graph. Unless `whole` the
// dead are left out.
void Executor::collect_pending(bool whole) {
  check_ops();
  const NodeId n = g_.size(), from = std::max(done_, g_.marked());
  PassSet on = from < n ? passes() : 0;
  if (whole) on &= ~only(PassId::Dead);
  if (from < rewritten_) on &= ~only(PassId::Merge);  // for those that were seen all is decided
  pending_.clear();
  aliases_.clear();
  pipeline_.begin(from, rewritten_, on, options.verify);
  for (NodeId i = done_; i < n; ++i) {
    if (g_.is_op(i)) {
      pending_.push_back(i);
      pipeline_.see(i);
    } else if (g_.node(i).is(kAlias)) {
      aliases_.push_back(i);
    }
  }
  auto change = [this](auto f) {
    torn_ = true;
    const bool any = f();
    torn_ = false;
    return any;
  };
  if (change([this] { return pipeline_.drop_dead(); })) only_ops(pending_);
  totals_.dead += pipeline_.changes(PassId::Dead);
  has_lanes_ =
      options.threads > 1 && split(g_, pending_, options.threads, options.least_work, split_, runner(0).plan_scratch);
  if (!(on & ~only(PassId::Dead))) return;
  if (has_lanes_) each_list([this](const Vec<NodeId>& nodes) { pipeline_.add_lane(nodes); });
  const bool any = change([this] { return pipeline_.run(pending_); });
  totals_.merged += pipeline_.changes(PassId::Merge);
  rewritten_ = n;
  if (any) each_list([this](Vec<NodeId>& nodes) { only_ops(nodes); });
}

PassSet Executor::passes() const {
  if (!options.fuse || options.check_validity) return 0;
  return possible_ & ~options.passes_off & ~(options.merge ? 0 : only(PassId::Merge));
}

void Executor::log_rewrites(bool on) {
  pipeline_.log().on = on;
  if (on) pipeline_.log().entries.clear();
}

// What is to be planned, after the passes over the graph.
void Executor::rewrite(bool whole) {
  const TraceScope trace(Phase::Rewrite, &g_);
  pipeline_.log().note("made", g_, std::max(done_, g_.marked()));
  collect_pending(whole);
  if (options.verify) verify_graph(g_, std::max(done_, g_.marked()), runner(0).plan_scratch.a);
}

// Those that still run; what was merged is an alias now, and had none (Graph::keep).
void Executor::only_ops(Vec<NodeId>& nodes) {
  u32 left = 0;
  for (NodeId i : nodes) {
    if (g_.is_op(i)) {
      nodes[left++] = i;
      continue;
    }
    for (u32 o = 0; g_.node(i).is(kMerged) && o < g_.signature(i).visible; ++o) aliases_.push_back(i + o);
  }
  nodes.resize(left);
}

// f(list) for the lists of pending nodes that must not come to wait for one another.
template <class F>
void Executor::each_list(F f) {
  if (!has_lanes_) return f(pending_);
  f(split_.head);
  for (int l = 0; l < split_.lanes; ++l) f(split_.lane[l]);
  f(split_.tail);
}

void Executor::forward(bool whole) {
  const NodeId n = g_.size();
  if (done_ == n) return;
  if (torn_)
    fail(ErrorKind::Runtime, "[graph] it failed while it was rewritten and cannot run; renew_cg() and build it again");
  if (refresh_ || done_ < planned_) run_again();
  leave_known(n_runs_);  // also of a graph that has forgotten its plans, or failed
  if (done_ == n || run_known(whole)) return;
  Timer timer;
  const std::size_t from = n_runs_;
  rewrite(whole);
  one_plan_ = done_ == 0;
  own_passes_.forget_plans();
  let_go_ = g_.let_go_of();
  try {
    {
      TraceScope trace(Phase::Plan, &g_);
      make_runs();
      plan_runs(from);
    }
    totals_.plan_time += timer.lap();
    if (job_pending())
      finish_job();  // of the mini-batch before: its memory is used, and its parameters are read, from here on
    begin_pass(options.threads);
    memory_.begin(this);
    for (std::size_t r = from; r < n_runs_; ++r) runs_[r]->ran_at = now();
    settle_rows();
    g_.fill_leaves(done_);
    place(from);
    run_stages(from, false);
  } catch (...) {
    n_runs_ = from;  // nothing of this counts; the next forward() tries again
    throw;
  }
  done_ = planned_ = n;
  placed_ = values_.mark();
  owner_ = this_thread();
  note_runs();
  keep_known(whole);
  totals_.forward_time += timer.lap();
  ++totals_.plans;
}

// What has been forgotten, where it lay. Unless it ran in pieces, or may be rewritten further since expressions have
// gone: then it is planned anew, in one piece.
void Executor::run_again() {
  Timer timer;
  if (job_pending()) finish_job();
  begin_pass(options.threads);
  if (refresh_) g_.refresh();
  refresh_ = false;
  if (done_ == planned_) return;
  if (!one_plan_ || let_go_ != g_.let_go_of() || !take_memory_back()) {
    planned_ = 0;
    n_runs_ = 0;
    if (memory_.user == this) values_.rewind();
    return;
  }
  run_by_plan(0);
  totals_.forward_time += timer.lap();
}

// In memory that others have used since, values come to lie where they lay.
bool Executor::take_memory_back() {
  if (memory_.user == this) return true;
  if (!placed_.block) return false;
  memory_.begin(this);
  return values_.take_again(placed_);
}

// What is planned and not done, which are the runs from this one on, where its values lie.
void Executor::run_by_plan(std::size_t from) {
  for (std::size_t r = from; r < n_runs_; ++r) runs_[r]->ran_at = now();
  settle_rows();
  g_.fill_leaves(done_);
  place_parameters();
  for (std::size_t k = leaf_parts_.size(); k > 0 && leaf_parts_[k - 1] >= done_; --k) {
    const NodeId i = leaf_parts_[k - 1];
    g_.place(i, g_.value(g_.node(i).root) + g_.node(i).offset);
  }
  run_stages(from, n_runs_ == from + 1);
  done_ = planned_;
  owner_ = this_thread();
  note_runs();
  ++totals_.plans_again;
}

void Executor::run_stages(std::size_t from, bool again) {
  TraceScope trace(Phase::Forward, &g_);
  trace.event.floats = values_.used() / sizeof(float);
  for (std::size_t a = from, b; a < n_runs_; a = b) {
    b = a + 1;
    while (b < n_runs_ && same_stage(a, b)) ++b;
    runner(0).keep_calls_in(kept_calls(a));
    in_lanes(a, b, [this, again](Run& run) { runner(run.lane).forward(run, again); });
  }
}

// Lanes of one forward() stand together and may run at the same time; every other run is a stage of its own.
bool Executor::same_stage(std::size_t a, std::size_t b) const {
  return runs_[a]->stage == kLanes && runs_[b]->stage == kLanes && runs_[a]->first == runs_[b]->first;
}

// One run for all that is pending, or with threads a head, lanes and a tail.
void Executor::make_runs() {
  auto give = [&](u8 stage, u32 lane, const Vec<NodeId>& nodes) {
    if (!nodes.empty()) next_run(stage, lane).plan.exec.append(nodes);
  };
  if (has_lanes_) {
    for (int l = 0; l < split_.lanes; ++l) runner(l);  // made here: threads must not
    give(kHead, 0, split_.head);
    for (int l = 0; l < split_.lanes; ++l) give(kLanes, l, split_.lane[l]);
    give(kTail, 0, split_.tail);
  } else {
    next_run(kHead, 0).plan.exec.append(pending_);
  }
}

void Executor::plan_runs(std::size_t from) {
  in_lanes(from, n_runs_, [this](Run& run) {
    PlanScratch& scratch = runner(run.lane).plan_scratch;
    make_plan(g_, options.strategy, run.plan, scratch);
    if (options.verify) verify_plan(g_, run.plan, scratch);
  });
}

// Rows that are read where they lie in their tables have the weight decay that they owe; all of them where the table is
// read as a whole. Nodes that have not run read leaves of before, too. (Look-ups have a node for their table, which
// nobody reads.)
void Executor::settle_rows() {
  bool owing = false;
  for (u32 t = 0; t < g_.tables(); ++t) {
    owing |= !g_.table(t)->decay_of_row.empty();
    const NodeId whole = g_.table_node(t);
    if (g_.readers(whole) || g_.node(whole).handles) settle_leaf(whole);
  }
  for (NodeId i = done_; i < g_.size() && owing; ++i) {
    settle_row(i);
    for (u32 j = 0; done_ && j < g_.nargs(i); ++j)
      if (const NodeId root = g_.node(g_.operands(i)[j]).root; root < done_) settle_row(root);
  }
}

// A row, or a whole table, that is read where it lies.
void Executor::settle_leaf(NodeId i) {
  const Signature& sig = g_.signature(i);
  if (sig.leaf == Leaf::Table) return g_.table(sig.table)->settle_all(*backend_);
  settle_row(i);
}

void Executor::settle_row(NodeId i) {
  const Signature& sig = g_.signature(i);
  if (sig.leaf == Leaf::Lookup && g_.dim(i).bd == 1) g_.table(sig.table)->settle(*backend_, g_.lookup_ids(i), 1);
}

// Those of nodes from this one on: they are gone, or placed once more.
void Executor::forget_parts(NodeId from) {
  while (!leaf_parts_.empty() && leaf_parts_.back() >= from) leaf_parts_.pop_back();
}

// Gives every value of the new runs its address.
void Executor::place(std::size_t from) {
  for (std::size_t r = from; r < n_runs_; ++r) {
    Run& run = *runs_[r];
    run.before = values_.point();
    run.value_base = values_.floats(run.plan.floats ? run.plan.floats : 1);
  }
  in_lanes(from, n_runs_, [this](Run& run) { place_run(run); });
  place_parameters();
  forget_parts(done_);
  place_aliases();
}

// Those among the new nodes.
void Executor::place_aliases() {
  for (NodeId i : aliases_) {
    g_.place(i, g_.value(g_.node(i).root) + g_.node(i).offset);
    if (g_.node(g_.node(i).root).is(kLeaf)) leaf_parts_.push_back(i);
  }
}

// A parameter that no run has read yet may have been updated since it became a node.
void Executor::place_parameters() {
  for (u32 k = g_.parameters(); k > 0 && g_.parameter_node(k - 1) >= done_; --k) g_.place_parameter(k - 1);
}

void Executor::place_run(Run& run) {
  const Plan& plan = run.plan;
  for (const Group& group : plan.groups) {
    const PlanType& type = plan.types[group.type];
    const Signature& sig = g_.sig(type.sig);
    if (type.uneven) {
      place_uneven(run, group);
      continue;
    }
    for (u32 o = 0; o < sig.visible; ++o) {
      const std::size_t size = g_.dim_by_id(sig.dim[o]).size();
      float* p = run.value_base + type.value[o] + group.slot * size;
      for (u32 m = 0; m < group.count; ++m, p += size) g_.place(plan.order[group.begin + m] + o, p);
    }
    for (u32 m = 0; type.over && m < group.count; ++m)
      g_.mark(g_.operands(plan.order[group.begin + m])[0], kOverwritten);
  }
}

// Values of several sizes, one behind another in the order of the type's groups.
void Executor::place_uneven(const Run& run, const Group& group) {
  float* p = run.value_base + run.plan.types[group.type].value[0] + group.at;
  for (u32 m = 0; m < group.count; ++m) {
    const NodeId i = run.plan.order[group.begin + m];
    g_.place(i, p);
    p += g_.dim(i).size();
  }
}

void Executor::read_value(NodeId i, float* to) {
  if (!done(i)) forward();
  if (const NodeId root = g_.node(i).root; g_.node(root).is(kLeaf)) settle_leaf(root);
  backend_->download(g_.dim(i).size(), g_.value(i), to);
}

std::string Executor::dump_plans() {
  std::string text;
  for (std::size_t i = 0; i < n_runs_; ++i) text += dump_plan(g_, runs_[i]->plan);
  return text;
}

Stats Executor::stats() const {
  Stats s = totals_;
  for (auto& r : runners_) {
    s.nodes += r->stats.nodes;
    s.batches += r->stats.batches;
    s.lower_bound += r->stats.lower_bound;
    s.plan_steps += r->stats.plan_steps;
    s.floats_gathered += r->stats.floats_gathered;
    s.floats_scattered += r->stats.floats_scattered;
    s.rows_repeated += r->stats.rows_repeated;
  }
  for (double* time : {&s.plan_time, &s.forward_time, &s.backward_time}) *time = seconds(*time);
  return s;
}

std::vector<OpProfile> Executor::profile() const {
  std::vector<OpProfile> sum(op_count());
  for (auto& r : runners_)
    for (int i = 0; i < op_count(); ++i) {
      sum[i].calls += r->profile[i].calls;
      sum[i].members += r->profile[i].members;
      sum[i].forward += r->profile[i].forward;
      sum[i].backward += r->profile[i].backward;
    }
  for (OpProfile& p : sum) {
    p.forward = seconds(p.forward);
    p.backward = seconds(p.backward);
  }
  return sum;
}

}  // namespace dnl
