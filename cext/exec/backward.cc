// Gradients: who wants one, where it lies, and the runs in reverse. The calls themselves are in runner_backward.cc,
// leaves in leaf_gradients.cc.
#include <algorithm>
#include <atomic>
#include <functional>

#include "base/wait.h"
#include "exec/executor.h"
#include "exec/stages.h"
#include "exec/timer.h"

namespace dnl {

void Executor::backward(NodeId loss, bool full) {
  if (!done(loss)) forward();
  TraceScope trace(Phase::Backward, &g_);
  Timer timer;
  if (g_.dim(loss).size() != 1)
    fail_value("[backward] needs a scalar; got " + g_.dim(loss).text() + " (sum it first: sum_elems, sum_batches)");
  list_gradients();
  const std::lock_guard<GradientLocks> lock(locks_);
  reach(loss, full);
  any_full_ |= full;  // only such a pass writes over values that another one reads without reaching them
  Rewound numbers(g_, *backend_, owner_);
  if (first_graded_run_ < n_runs_) numbers.check(runs_[first_graded_run_]->ran_at);
  restore_spent(numbers);
  place_gradients(loss);
  trace.event.floats = grads_.used() / sizeof(float);
  graded_ = loss + 1;
  const Gradients& grad = runner(0).gradients;
  if (grad[loss]) {
    const NodeId root = g_.node(loss).root;
    if (!state_[root]) {
      backend_->fill(g_.dim(root).size(), 0.f, grad[root]);
      state_[root] = Gradients::kAlways;
      backend_->fill(1, 1.f, grad[loss]);
    } else {
      float* one = grads_.floats(1);
      backend_->fill(1, 1.f, one);
      backend_->add_rows(1, 1, Rows{one, 1, nullptr}, Rows{grad[loss], 1, nullptr});
    }
    transposes_.begin();
    run_backward(loss, numbers);
    totals_.transposed += transposes_.count();
    collect_gradients();
  }
  if (options.touches_looked_up) touch_looked_up(loss);
  totals_.backward_time += timer.lap();
}

// Values that a pass before wrote gradients over are made again, from the weights that they were made from.
void Executor::restore_spent(Rewound& numbers) {
  for (std::size_t r = any_full_ ? 0 : first_graded_run_; r < n_runs_; ++r) {
    if (!runs_[r]->spent) continue;
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

// Stages from the last to the first, each with the weights that it read when it ran.
void Executor::run_backward(NodeId loss, Rewound& numbers) {
  std::size_t to = n_runs_;
  while (to && runs_[to - 1]->first > loss) --to;
  if (completion_.watch) {
    completion_.begin();
    for (std::size_t r = first_graded_run_; r < to; ++r) completion_.see(g_, static_cast<u32>(r), *runs_[r]);
  }
  while (to > first_graded_run_) {
    std::size_t from = to - 1;
    while (from && same_stage(from - 1, to - 1)) --from;
    const bool lanes = to - from > 1;
    if (numbers.to(runs_[from]->ran_at)) {
      totals_.transposed += transposes_.count();
      transposes_.begin();
    }
    for (std::size_t r = from; r < to; ++r) runner(0).choose_shared(*runs_[r], lanes);
    if (lanes)
      back_lanes(from, to);
    else
      in_lanes(from, to, [&](Run& run) { runner(run.lane).backward(run, false, completion_, static_cast<u32>(from)); });
    if (completion_.watch) completion_.passed(static_cast<u32>(from), 0);
    to = from;
  }
}

// The arrays that have something for each node are clear again but where the next pass writes. What the last pass wrote
// is known: a graph may have grown through thousands of steps, of which each reaches its own nodes only.
void Executor::forget_gradients(NodeId n) {
  auto clear = [&](auto& v, auto nothing) {
    const NodeId size = static_cast<NodeId>(v.size());
    for (NodeId i = graded_from_; i < std::min(graded_to_, size); ++i) v[i] = nothing;
    for (NodeId i : reached_leaves_)
      if (i < size) v[i] = nothing;
    if (size < n) v.resize(n);
    for (NodeId i = size; i < n; ++i) v[i] = nothing;
  };
  clear(reached_, u8(0));
  clear(state_, u32(0));
  for (auto& r : runners_) clear(r->gradients.at, static_cast<float*>(nullptr));
  reached_leaves_.clear();
  reached_aliases_.clear();
  graded_from_ = graded_to_ = n;
}

// Which nodes the loss depends on and want a gradient. Leaves and aliases among them are listed, the last first.
void Executor::reach(NodeId loss, bool full) {
  forget_gradients(loss + 1);
  first_graded_run_ = n_runs_;
  while (first_graded_run_ && runs_[first_graded_run_ - 1]->first > loss) --first_graded_run_;
  // Nodes of before the last pass, below `old`, are looked at only if something depends on them.
  const NodeId old = std::min(first_graded_run_ ? runs_[first_graded_run_ - 1]->first : 0, graded_);
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
  if (!wants(loss)) return;
  NodeId at = loss;
  u32 old_nodes = 0;  // that are marked and not visited yet, but for leaves, which lead nowhere
  old_leaves_.clear();
  auto mark = [&](NodeId i) {
    u8& r = reached_[i];
    if (!r && i > at)
      reached_leaves_.push_back(i);  // only leaves stand behind their readers
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
  mark(loss);
  NodeId i = loss + 1;
  for (; i > old || old_nodes;) {
    if (!reached_[--i]) continue;
    at = i;
    const Node& n = g_.node(i);
    if (n.is(kLeaf)) {
      reached_leaves_.push_back(i);
      continue;
    }
    if (i < old) --old_nodes;
    graded_from_ = i;
    if (n.is(kAlias)) {
      reached_aliases_.push_back(i);
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
    if (leaf < i) reached_leaves_.push_back(leaf);
  while (first_graded_run_ && runs_[first_graded_run_ - 1]->last > graded_from_) --first_graded_run_;
}

// An address for the gradient of each node reached.
void Executor::place_gradients(NodeId loss) {
  grads_.rewind();
  Vec<float*>& at = runner(0).gradients.at;
  place_leaf_gradients();
  for (std::size_t r = first_graded_run_; r < n_runs_; ++r) {
    Run& run = *runs_[r];
    if (run.first > loss) break;
    run.grad_base = grads_.floats(run.plan.floats ? run.plan.floats : 1);
    const std::ptrdiff_t shift = run.grad_base - run.value_base;
    for (NodeId i : run.plan.order) {
      if (i > loss) continue;
      const u32 visible = g_.signature(i).visible;
      for (u32 o = 0; o < visible && i + o <= loss; ++o)
        if (reached_[i + o]) at[i + o] = g_.value(i + o) + shift;
    }
  }
  for (std::size_t k = reached_aliases_.size(); k-- > 0;) {
    const NodeId i = reached_aliases_[k];
    const Node& n = g_.node(i);
    if (g_.signature(i).no_grad) continue;
    if (at[g_.aliased(i)]) at[i] = at[n.root] + n.offset;  // not past an alias that stops gradients
  }
  u32 lanes = 1;
  for (std::size_t r = first_graded_run_; r < n_runs_; ++r)
    lanes = runs_[r]->lane + 1 > lanes ? runs_[r]->lane + 1 : lanes;
  for (u32 l = 0; l < lanes; ++l) {
    runner(l).gradients.state = &state_;
    runner(l).gradients.reached = &reached_;
  }
}

namespace {

constexpr u32 kMaxBins = 2 * kMaxLanes;

// What is done of a stage of lanes: of each lane its backward pass, and how many lanes' shared arguments of each bin.
// Whoever waits here has taken his task after those that he waits for. A lane that fails ends all waiting.
class Progress {
 public:
  // False: something failed.
  bool wait(u32 lane, u32 bin) {
    for (Wait wait;; wait.turn()) {
      if (failed_) return false;
      if (lane_[lane].load(std::memory_order_acquire) && bin_[bin].load(std::memory_order_acquire) == lane) return true;
    }
  }
  void lane_done(u32 lane) { lane_[lane].store(1, std::memory_order_release); }
  void bin_done(u32 lane, u32 bin) { bin_[bin].store(lane + 1, std::memory_order_release); }
  void fail() { failed_ = true; }

 private:
  std::atomic<u32> lane_[kMaxLanes] = {}, bin_[kMaxBins] = {};
  std::atomic<bool> failed_{false};
};

}  // namespace

// Lanes at the same time; each leaves the gradients of shared arguments to those who have nothing else to do: the
// thread that comes later since it builds the next graph, and all of them at the end.
void Executor::back_lanes(std::size_t from, std::size_t to) {
  give_private_gradients(from, to);
  const u32 lanes = static_cast<u32>(to - from), threads = static_cast<u32>(options.threads);
  list_shared(from, to);
  const u32 bins = shared_.deal(threads, std::min(2 * threads, kMaxBins));
  for (u32 b = 0; b < bins; ++b) {
    Runner& r = runner(lanes + b);
    r.gradients.state = &state_;
    r.gradients.reached = &reached_;
    r.alone = false;
  }
  auto form_shared = [&](std::size_t r, u32 bin, Runner& by) {
    for (const SharedStage::Work& w : shared_.works())
      if (w.run == r && w.bin == bin)
        by.backward_shared(*runs_[r], w.type, w.arg, runner(runs_[r]->lane).gradients, runner(0).gradients);
  };
  for (u32 l = 0; l < lanes; ++l) runner(l).alone = false;
  Progress progress;
  Completion nobody;
  run_lanes(static_cast<int>(lanes * (1 + bins)), options.threads, [&](int task) {
    const u32 t = static_cast<u32>(task), lane = t < lanes ? t : (t - lanes) / bins;
    try {
      if (t < lanes) {
        runner(lane).backward(*runs_[from + lane], true, nobody, 0);
        progress.lane_done(lane);
      } else if (const u32 bin = (t - lanes) % bins; progress.wait(lane, bin)) {
        form_shared(from + lane, bin, runner(lanes + bin));
        progress.bin_done(lane, bin);
      }
    } catch (...) {
      progress.fail();
      throw;
    }
  });
  for (u32 b = 1; b < bins; ++b) runner(lanes).keep_room_of(runner(lanes + b));
  for (u32 b = 1; b < bins; ++b) runner(lanes + b).keep_room_of(runner(lanes));
  add_private_gradients();
}

// What forms gradients of shared arguments at the end, and where they are added.
void Executor::list_shared(std::size_t from, std::size_t to) {
  const Gradients& common = runner(0).gradients;
  shared_.clear();
  for (std::size_t r = from; r < to; ++r) {
    const Plan& plan = runs_[r]->plan;
    for (u32 t = 0; t < plan.types.size(); ++t) {
      const PlanType& type = plan.types[t];
      if (!runner(0).forms_at_end(*runs_[r], t)) continue;
      shared_.add(static_cast<u32>(r), t);
      for (u32 j = 0; j < g_.sig(type.sig).nargs; ++j) {
        if (!g_.arg_shared(type.sig, j)) continue;
        const NodeId a = g_.shared_arg(type.sig, j);
        if (common[a])
          shared_.adds_to(runner(0).together(type.sig, j), common[g_.node(a).root], runner(0).shared_work(type, j));
      }
    }
  }
}

// f(node) for what the run's calls add to while it runs and other lanes may add to as well. Without what list_shared()
// lists.
template <class F>
void Executor::each_common(const Run& run, F f) {
  const NodeId graded =
      static_cast<NodeId>(reached_.size());  // an argument from here on is a weight that came behind the loss
  auto see = [&](NodeId a) {
    if (a < graded && reached_[a]) f(a);
  };
  for (u32 k = 0; k < run.plan.groups.size(); ++k) {
    const u32 t = run.plan.groups[k].type;
    const PlanType& type = run.plan.types[t];
    const bool shared_now = k == type.first_group && !runner(run.lane).forms_at_end(run, t);
    for (u32 j = 0; j < g_.sig(type.sig).call_nargs; ++j) {
      const Operands::Arg& arg = run.operands.arg(k, j);
      for (u32 n = arg.outside_begin; n < arg.outside_end; ++n) see(run.operands.outside[n]);
      if (arg.first != kNoNode || !shared_now) continue;
      if (const NodeId a = g_.shared_arg(type.sig, j); runner(run.lane).made_outside(run, a)) see(a);
    }
  }
}

// Before the lanes [from, to) run backward: what more than one of them may add to gets memory of its own in every lane
// but the first; a row of a table only if several of them read it.
void Executor::give_private_gradients(std::size_t from, std::size_t to) {
  const Vec<float*>& at = runner(0).gradients.at;
  find_rows_in_lanes(from, to);
  for (std::size_t r = from; r < to; ++r) {
    const Run& run = *runs_[r];
    if (run.lane == 0) continue;
    Vec<float*>& mine = runner(run.lane).gradients.at;
    const NodeId known = static_cast<NodeId>(mine.size()),
                 all = static_cast<NodeId>(at.size());  // both clear: forget_gradients()
    if (known < all) mine.resize(all);
    for (NodeId i = known; i < all; ++i) mine[i] = nullptr;
    for (NodeId i = graded_from_; i < graded_; ++i) mine[i] = at[i];
    for (NodeId i : reached_leaves_) mine[i] = at[i];
    each_common(run, [&](NodeId a) {
      if (!at[a]) return;
      const Node& node = g_.node(a);
      if (mine[node.root] == at[node.root]) own_gradient(node.root, mine, run.lane);
      if (node.is(kAlias)) mine[a] = mine[node.root] + node.offset;
    });
  }
}

void Executor::find_rows_in_lanes(std::size_t from, std::size_t to) {
  u32 rows = 0;
  first_row_.clear();
  for (u32 t = 0; t < g_.tables(); ++t) {
    u32 same = 0;  // one table may have entered the graph several times
    while (g_.table(same) != g_.table(t)) ++same;
    first_row_.push_back(same < t ? first_row_[same] : rows);
    if (same == t) rows += static_cast<u32>(g_.table(t)->touched.size());
  }
  rows_.assign(rows, Row{kNoNode, nullptr, 0});
  if (!rows) return;
  for (std::size_t r = from; r < to; ++r) {
    const u32 lane = runs_[r]->lane;
    each_common(*runs_[r], [&](NodeId a) {
      if (!is_slot(g_.node(a).root)) return;
      u32& seen = rows_[row_number(g_.node(a).root)].lane;
      seen = seen == kNoNode || seen == lane ? lane : kSeveralLanes;
    });
    // What is added to a shared argument is added while lanes run.
    const Plan& plan = runs_[r]->plan;
    for (u32 t = 0; t < plan.types.size(); ++t) {
      const u32 sig = plan.types[t].sig;
      for (u32 j = 0; j < g_.sig(sig).nargs && runner(lane).forms_at_end(*runs_[r], t); ++j) {
        if (!g_.arg_shared(sig, j)) continue;
        const NodeId root = g_.node(g_.shared_arg(sig, j)).root;
        if (root < reached_.size() && reached_[root] && is_slot(root)) rows_[row_number(root)].lane = kSeveralLanes;
      }
    }
  }
}

u32 Executor::row_number(NodeId i) const {
  const u32 t = g_.signature(i).table;
  return first_row_[t] + g_.table(t)->slot(*g_.lookup_ids(i));
}

// Private, zero memory for one gradient in one lane; that of a row of a table is the same for all of its look-ups. The
// common memory must be clear before anyone adds to it.
void Executor::own_gradient(NodeId root, Vec<float*>& mine, u32 lane) {
  const std::size_t n = g_.dim(root).size();
  Row* row = is_slot(root) ? &rows_[row_number(root)] : nullptr;
  if (row && row->lane != kSeveralLanes) return;
  if (row && row->owner == lane) {  // lane 0 owns none
    mine[root] = row->own;
    return;
  }
  float* common = runner(0).gradients.at[root];
  if (!state_[root]) {
    backend_->fill(n, 0.f, common);
    state_[root] = Gradients::kAlways;
  }
  mine[root] = grads_.floats(n);
  backend_->fill(n, 0.f, mine[root]);
  if (row) {
    row->own = mine[root];
    row->owner = lane;
  }
  private_.push_back({mine[root], common, n});
}

// In the order of lanes; each thread does a part of every gradient.
void Executor::add_private_gradients() {
  constexpr std::size_t kLeastWork = 1 << 17, kLine = 16;  // floats
  std::size_t all = 0;
  for (const Private& p : private_) all += p.n;
  const int parts = all < kLeastWork ? 1 : options.threads;
  run_lanes(parts, parts, [&](int part) {
    for (const Private& p : private_) {
      const std::size_t size = (p.n / static_cast<std::size_t>(parts) + kLine) / kLine * kLine;
      const std::size_t from = std::min(p.n, size * static_cast<std::size_t>(part)), to = std::min(p.n, from + size);
      if (from < to) backend_->add_rows(1, to - from, Rows{p.from + from, 0, nullptr}, Rows{p.to + from, 0, nullptr});
    }
  });
  private_.clear();
}

}  // namespace dnl
