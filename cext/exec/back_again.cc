// A backward pass by the plan of the one before, where the graph has run again (Executor::run_again). Who may include:
// nobody.
//
// A plan says what is assigned, added and cleared, and where. It follows from the nodes, the loss and the options, from
// where values and gradients lie, and from who had a gradient before the pass. So it holds as long as all of these are
// what they were. Nodes and places are those of before where the graph ran again in one piece, or by plans that are
// kept, in one part or several. Rows of tables may be others: only the slots that their gradients take must be the
// same, as they are when an update has emptied the tables and rows occur again as they did before, which is never in
// most programs. There may be passes of several losses, and of one loss that is asked twice: then weights have
// gradients the second time.
#include <algorithm>

#include "exec/executor.h"

namespace dnl {

// Will the graph, as it is now, be known when it comes again? Who is referred to now may not be who was when backward()
// was called. Nodes that have not run make no difference: gradients lie over the values of inner nodes alone, which no
// new node can read.
bool Executor::plans_last() const {
  return (all_known() || (one_plan_ && n_runs_ == 1)) && done_ == planned_ && !completion_.watch && !held_noted_;
}

// True: a pass was planned for this, and pass_ is that one. Else it is one to plan in.
bool Executor::find_pass(NodeId loss, bool full) {
  const bool last = plans_last();
  BackPasses& passes = last && all_known() ? parts_.back()->passes : own_passes_;
  for (const auto& pass : passes) {
    if (!last || !pass->ready.there) continue;
    pass_ = pass.get();
    if (plan_may_hold(loss, full)) return true;
  }
  const bool small = last && g_.size() <= PlanCache::kMostNodes;  // a large one has large arrays
  pass_ = passes.room(g_, *backend_, small ? BackPasses::kMost : 1);
  return false;
}

// The plan was made for this graph as it is, and values can only have been made again since.
void Executor::note_plan(NodeId loss, bool full, std::size_t to) {
  BackPass::Ready& r = pass_->ready;
  if (!plans_last()) return;
  for (const BackPass::Direct& d : pass_->direct)
    if (!d.serial) return;
  r.keep_weights = keep_weights_flag();
  r.slot.clear();
  for (NodeId i : pass_->slots) {
    LookupTable& t = *g_.table(g_.signature(i).table);
    r.slot.push_back(t.gradients(*backend_) + t.slot(*g_.lookup_ids(i)) * t.row_size);
  }
  r.runs.clear();
  r.spent.clear();
  for (std::size_t k = pass_->first_run; k < to; ++k) {
    const Run& run = *runs_[k];
    r.runs.push_back({run.grad_base, run.any_spent, static_cast<u32>(run.spent.size())});
    r.spent.append(run.spent);
  }
  r.loss = loss;
  r.full = full;
  r.threads = options.threads;
  r.least_work = options.least_work;
  r.grads = grads_.mark();
  r.there = true;
}

// May the plan hold? Nothing is changed.
bool Executor::plan_may_hold(NodeId loss, bool full) const {
  const BackPass::Ready& r = pass_->ready;
  if (r.loss != loss || r.full != full || r.threads != options.threads || r.least_work != options.least_work)
    return false;
  return r.keep_weights == keep_weights_flag() && memory_.user == this && leaves_may_hold();
}

// Who has a gradient of its own, and who had one before, as then.
bool Executor::leaves_may_hold() const {
  for (const BackPass::Direct& d : pass_->direct) {
    Parameter& p = *g_.parameter(d.node);
    if (p.touched || p.grad.at(*backend_) != pass_->planner.at()[d.node]) return false;
  }
  for (NodeId i : pass_->slots)
    if (g_.node(i).handles || !g_.node(i).is(kCounted)) return false;
  for (NodeId i : pass_->apart) {
    if (!is_row(i)) {
      if (!pass_->ready.keep_weights && !g_.parameter(i)->touched) return false;
    } else if (g_.node(i).is(kCounted) && !g_.node(i).handles && !reaches_alias_of(i)) {
      return false;
    }
  }
  for (NodeId i : pass_->reached_aliases) {  // what they are parts of may have moved
    const float *mine = pass_->planner.at()[i], *whole = pass_->planner.at()[g_.node(i).root];
    if (mine && mine != whole + g_.node(i).offset) return false;
  }
  return true;
}

bool Executor::reaches_alias_of(NodeId row) const {
  for (NodeId i : pass_->reached_aliases)
    if (g_.node(i).root == row) return true;
  return false;
}

// Slots for the rows of this time; false: they are not where they were. Then weights have their gradients where they
// had them, and what has memory of its own is clear.
bool Executor::leaves_again() {
  for (NodeId i : pass_->slots) g_.table(g_.signature(i).table)->slot(*g_.lookup_ids(i));
  const LookupTable* of = nullptr;  // all have their slots now: its gradients stay where they are
  const float* first = nullptr;
  for (u32 k = 0; k < pass_->slots.size(); ++k) {
    LookupTable& t = *g_.table(g_.signature(pass_->slots[k]).table);
    if (&t != of) first = t.gradients(*backend_);
    of = &t;
    float* const slot = pass_->ready.slot[k];
    if (slot != first + t.slot(*g_.lookup_ids(pass_->slots[k])) * t.row_size) return false;
    pass_->planner.at()[pass_->slots[k]] = slot;
  }
  for (BackPass::Direct& d : pass_->direct) {
    Parameter& p = *g_.parameter(d.node);
    p.touched = true;
    p.grad.write(*backend_);
    p.grad_changed();
    d.serial = p.grad_serial;
  }
  clear_apart();
  const u8* spent = pass_->ready.spent.data();
  for (std::size_t k = 0; k < pass_->ready.runs.size(); ++k) {
    const BackPass::OfRun& of = pass_->ready.runs[k];
    Run& run = *runs_[pass_->first_run + k];
    run.grad_base = of.grad_base;
    run.any_spent = of.any_spent;
    run.spent.copy(spent, of.types);
    spent += of.types;
  }
  return true;
}

// The plan that holds is the one that would be made.
void Executor::verify_again(NodeId loss, bool full) {
  constexpr u32 kMost = 16;  // rows of each list
  BackPass& kept = *pass_;
  const std::string text = dump_back_plan(g_, *backend_, kept.planner.plan(), runs_, kMost);
  for (const BackPass::Direct& d : kept.direct) g_.parameter(d.node)->touched = false;
  if (!checked_) checked_ = std::make_unique<BackPass>(g_, *backend_);
  BackPass& made = *checked_;
  pass_ = &made;
  try {
    reach(loss, full);
    place_gradients(loss);
    seed(loss, false);
    plan_backward(runs_until(loss));
  } catch (...) {
    pass_ = &kept;
    throw;
  }
  pass_ = &kept;
  bool same = made.first_run == kept.first_run && made.apart.size() == kept.apart.size() &&
              made.slots.size() == kept.slots.size() && made.direct.size() == kept.direct.size() &&
              grads_.used() == kept.ready.grads.used &&
              dump_back_plan(g_, *backend_, made.planner.plan(), runs_, kMost) == text;
  const u8* spent = kept.ready.spent.data();
  for (std::size_t k = 0; same && k < kept.ready.runs.size(); ++k) {
    const BackPass::OfRun& of = kept.ready.runs[k];
    const Run& run = *runs_[kept.first_run + k];
    same = run.grad_base == of.grad_base && run.any_spent == of.any_spent && run.spent.size() == of.types &&
           std::equal(run.spent.begin(), run.spent.end(), spent);
    spent += of.types;
  }
  DNL_INTERNAL(same && grads_.take_again(kept.ready.grads) && leaves_again(),
               "plans that are kept: a backward pass that is asked for again would be planned in another way");
}

}  // namespace dnl
