// A backward pass by the plan of the one before, where the graph has run again (Executor::run_again). Who may include:
// nobody.
//
// A plan says what is assigned, added and cleared, and where. It follows from the nodes, the loss and the options, from
// where values and gradients lie, and from who had a gradient before the pass. So it holds as long as all of these are
// what they were. Rows of tables may be others: only the slots that their gradients take must be the same, as they are
// when an update has emptied the tables and rows occur again as they did before, which is never in most programs.
#include "exec/executor.h"

namespace dnl {

// The plan was made for this graph as it is, and values can only have been made again since.
void Executor::note_plan(NodeId loss, bool full) {
  BackPass::Ready& r = pass_->ready;
  r.there = false;
  if (!one_plan_ || n_runs_ != 1 || done_ != planned_ || completion_.watch) return;
  r.keep_weights = keep_weights_flag();
  for (NodeId i : pass_->apart)
    if (!is_row(i) && !r.keep_weights) return;  // their accumulators were not empty; next time they will be
  for (const BackPass::Direct& d : pass_->direct)
    if (!d.serial) return;
  r.slot.clear();
  for (NodeId i : pass_->slots) {
    LookupTable& t = *g_.table(g_.signature(i).table);
    r.slot.push_back(t.gradients(*backend_) + t.slot(*g_.lookup_ids(i)) * t.row_size);
  }
  r.loss = loss;
  r.full = full;
  r.any_spent = runs_[0]->any_spent;
  r.let_go = g_.let_go_of();
  r.threads = options.threads;
  r.least_work = options.least_work;
  r.grads = grads_.mark();
  r.there = true;
}

// May the plan hold? Nothing is changed.
bool Executor::plan_may_hold(NodeId loss, bool full) const {
  const BackPass::Ready& r = pass_->ready;
  if (!r.there || !ran_again_ || r.loss != loss || r.full != full || r.let_go != g_.let_go_of()) return false;
  if (r.threads != options.threads || r.least_work != options.least_work) return false;
  if (completion_.watch || held_noted_ || r.keep_weights != keep_weights_flag() || memory_.user != this) return false;
  for (const BackPass::Direct& d : pass_->direct) {
    Parameter& p = *g_.parameter(d.node);
    if (p.touched || p.grad.at(*backend_) != pass_->planner.at()[d.node]) return false;
  }
  for (NodeId i : pass_->slots)
    if (g_.node(i).handles || !g_.node(i).is(kCounted)) return false;
  for (NodeId i : pass_->apart)
    if (g_.node(i).is(kCounted) && !g_.node(i).handles && !reaches_alias_of(i)) return false;
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
  for (u32 k = 0; k < pass_->slots.size(); ++k) {
    LookupTable& t = *g_.table(g_.signature(pass_->slots[k]).table);
    if (pass_->ready.slot[k] != t.gradients(*backend_) + t.slot(*g_.lookup_ids(pass_->slots[k])) * t.row_size)
      return false;
  }
  for (u32 k = 0; k < pass_->slots.size(); ++k) pass_->planner.at()[pass_->slots[k]] = pass_->ready.slot[k];
  for (BackPass::Direct& d : pass_->direct) {
    Parameter& p = *g_.parameter(d.node);
    p.touched = true;
    p.grad.write(*backend_);
    p.grad_changed();
    d.serial = p.grad_serial;
  }
  clear_apart();
  runs_[0]->any_spent = pass_->ready.any_spent;
  return true;
}

}  // namespace dnl
