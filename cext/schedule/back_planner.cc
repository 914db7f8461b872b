#include "schedule/back_planner.h"

#include <algorithm>

namespace dnl {

void BackPlanner::begin(const BackOptions& options) {
  options_ = options;
  plan_.stages.clear();
  plan_.tasks.clear();
  plan_.moves.clear();
  for (auto& lane : plan_.lanes) lane->clear();
}

void BackPlanner::release() {
  plan_ = BackPlan{};
  for (Vec<float*>& at : at_) at.release();
  for (BackRun& run : runs_) run.release();
  release_all(gradients.reached, gradients.written, gradients.leaves, rows_, first_row_, private_, bins_);
}

void BackPlanner::begin_stage(const Runs& runs, u32 from, u32 to, Arena& memory) {
  const u32 task = static_cast<u32>(plan_.tasks.size()), move = static_cast<u32>(plan_.moves.size());
  plan_.stages.push_back({from, to - from, task, to - from, move, 0, 0, 0});
  memory_ = &memory;
  for (u32 r = from; r < to; ++r) {
    const u32 lane = runs[r]->lane;
    while (plan_.lanes.size() <= lane) plan_.lanes.push_back(std::make_unique<BackLane>(backend_.memory()));
    plan_.tasks.push_back({r, lane, static_cast<u32>(plan_.lanes[lane]->steps.size()), 0, lane, {kNoNode, kNoNode}});
    runs_[lane].begin(gradients, *runs[r], at_[lane], *plan_.lanes[lane], options_, to - from > 1);
  }
  if (to - from == 1) return;
  private_.clear();
  find_rows();
  for (u32 lane = 1; lane < lanes(); ++lane) give_private(lane);
  BackStage& stage = plan_.stages.back();
  stage.add = static_cast<u32>(plan_.moves.size());
  stage.zeros = stage.add - stage.zero;
  stage.adds = static_cast<u32>(private_.size());
  plan_.moves.append(private_);
}

void BackPlanner::end_stage() {
  const BackStage& stage = plan_.stages.back();
  for (u32 t = stage.task; t < plan_.tasks.size(); ++t) {
    BackTask& task = plan_.tasks[t];
    task.count = static_cast<u32>(plan_.lanes[task.lane]->steps.size()) - task.first;
  }
  if (stage.runs > 1) deal_shared();
}

// f(node) for what the run's calls add to while it runs and other lanes may add to as well.
template <class F>
void BackPlanner::each_common(const BackRun& back, F f) const {
  const Run& run = back.run();
  auto see = [&](NodeId a) {
    if (gradients.reaches(a)) f(a);
  };
  for (u32 k = 0; k < run.plan.groups.size(); ++k) {
    const u32 t = run.plan.groups[k].type, sig = run.plan.types[t].sig;
    const bool shared_now = k == run.plan.types[t].first_group && !back.forms_at_end(t);
    for (u32 j = 0; j < g_.sig(sig).call_nargs; ++j) {
      const Operands::Arg& arg = run.operands.arg(k, j);
      for (u32 n = arg.outside_begin; n < arg.outside_end; ++n) see(run.operands.outside[n]);
      if (arg.first != kNoNode || !shared_now) continue;
      if (const NodeId a = g_.shared_arg(sig, j); made_outside(g_, run, a)) see(a);
    }
  }
}

// What more than one lane may add to gets memory of its own in this one; a row of a table only if several read it.
void BackPlanner::give_private(u32 lane) {
  Vec<float*>&at = at_[0], &mine = at_[lane];  // both clear elsewhere
  for (NodeId i = static_cast<NodeId>(mine.size()); i < at.size(); ++i) mine.push_back(nullptr);
  std::memcpy(mine.data() + gradients.first, at.data() + gradients.first,
              (gradients.end - gradients.first) * sizeof(float*));
  for (NodeId i : gradients.leaves) mine[i] = at[i];
  each_common(runs_[lane], [&](NodeId a) {
    if (!at[a]) return;
    const Node& node = g_.node(a);
    if (mine[node.root] == at[node.root]) own_gradient(node.root, lane);
    if (node.is(kAlias)) mine[a] = mine[node.root] + node.offset;
  });
}

// Private, zero memory for one gradient in one lane; that of a row of a table is the same for all of its look-ups. The
// common memory must be clear before anyone adds to it.
void BackPlanner::own_gradient(NodeId root, u32 lane) {
  const std::size_t n = g_.dim(root).size();
  Row* row = is_slot(root) ? &rows_[row_number(root)] : nullptr;
  if (row && row->lane != kSeveralLanes) return;
  if (row && row->owner == lane) {  // lane 0 owns none
    at_[lane][root] = row->own;
    return;
  }
  float *common = at_[0][root], *own = memory_->floats(n);
  if (!gradients.written[root]) plan_.moves.push_back(zeros(common, n));
  gradients.written[root] = kWritten;
  plan_.moves.push_back(zeros(own, n));
  at_[lane][root] = own;
  if (row) {
    row->own = own;
    row->owner = lane;
  }
  private_.push_back({1, n, Rows{own, 0, nullptr}, Rows{common, 0, nullptr}});
}

// Which rows of tables several lanes read.
void BackPlanner::find_rows() {
  u32 rows = 0;
  first_row_.clear();
  for (u32 t = 0; t < g_.tables(); ++t) {
    const u32 same = g_.first_number(t);
    first_row_.push_back(same < t ? first_row_[same] : rows);
    if (same == t) rows += static_cast<u32>(g_.table(t)->touched.size());
  }
  rows_.assign(rows, Row{kNoNode, nullptr, 0});
  if (!rows) return;
  for (u32 lane = 0; lane < lanes(); ++lane) {
    const BackRun& run = runs_[lane];
    each_common(run, [&](NodeId a) {
      if (!is_slot(g_.node(a).root)) return;
      u32& seen = rows_[row_number(g_.node(a).root)].lane;
      seen = seen == kNoNode || seen == lane ? lane : kSeveralLanes;
    });
    // What is added to a shared argument is added while lanes run.
    each_left(run, [&](u32, u32, NodeId a) {
      const NodeId root = g_.node(a).root;
      if (gradients.reaches(root) && is_slot(root)) rows_[row_number(root)].lane = kSeveralLanes;
    });
  }
}

// f(type, argument's number, node) for the shared arguments whose gradients are left to the end.
template <class F>
void BackPlanner::each_left(const BackRun& back, F f) const {
  const Plan& plan = back.run().plan;
  for (u32 t = 0; t < plan.types.size(); ++t) {
    if (!back.forms_at_end(t)) continue;
    const u32 sig = plan.types[t].sig;
    for (u32 j = 0; j < g_.sig(sig).nargs; ++j)
      if (g_.arg_shared(sig, j)) f(t, j, g_.shared_arg(sig, j));
  }
}

bool BackPlanner::is_slot(NodeId i) const {
  if (g_.signature(i).leaf != Leaf::Lookup || g_.dim(i).bd != 1 || !g_.node(i).is(kNeedsGrad)) return false;
  Store& grad = g_.table(g_.signature(i).table)->grad;
  const float* first = grad.at(backend_);
  return at_[0][i] >= first && at_[0][i] < first + grad.size();
}

u32 BackPlanner::row_number(NodeId i) const {
  const u32 t = g_.signature(i).table;
  return first_row_[t] + g_.table(t)->slot(*g_.lookup_ids(i));
}

// Tasks for what lanes leave to the end: a bin of one lane waits for the lane, and for the same bin of the lane before.
void BackPlanner::deal_shared() {
  const BackStage stage = plan_.stages.back();
  bins_.clear();
  for (u32 lane = 0; lane < stage.runs; ++lane) {
    u32 last = kNoNode;
    each_left(runs_[lane], [&](u32 t, u32 j, NodeId a) {
      if (t != last) bins_.add(lane, t);
      last = t;
      const PlanType& type = runs_[lane].run().plan.types[t];
      if (a < at_[0].size() && at_[0][a])
        bins_.adds_to(formed_with(g_, type.sig, j), at_[0][g_.node(a).root], shared_work(g_, type, j));
    });
  }
  const u32 threads = static_cast<u32>(options_.team.threads),
            bins = bins_.deal(threads, std::min(2 * threads, kMaxBins));
  for (u32 lane = 0; lane < stage.runs; ++lane)
    for (u32 bin = 0; bin < bins; ++bin) {
      const u32 first = static_cast<u32>(plan_.lanes[lane]->steps.size()),
                number = static_cast<u32>(plan_.tasks.size());
      for (const Bins::Work& w : bins_.works())
        for (const BackRun::Later& later : runs_[lane].later())
          if (w.run == lane && w.bin == bin && w.type == later.type) runs_[lane].form_shared(later, w.arg, at_[0]);
      plan_.tasks.push_back({plan_.tasks[stage.task + lane].run,
                             lane,
                             first,
                             static_cast<u32>(plan_.lanes[lane]->steps.size()) - first,
                             stage.runs + bin,
                             {stage.task + lane, lane ? number - bins : kNoNode}});
    }
  plan_.stages.back().tasks += stage.runs * bins;
}

}  // namespace dnl
