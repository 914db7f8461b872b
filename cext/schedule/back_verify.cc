// The grammar of backward plans, checked: on in tests (configure(verify=True)), like that of plans.
#include <algorithm>
#include <iterator>
#include <map>

#include "schedule/back_plan.h"

namespace dnl {
namespace {

void check(bool ok, const char* what) { DNL_INTERNAL(ok, std::string("backward plan: ") + what); }

// What has been written, as ranges that do not touch.
class Memory {
 public:
  void write(const float* from, const float* to) {
    auto r = ranges_.upper_bound(from);
    if (r != ranges_.begin() && std::prev(r)->second >= from) --r;
    for (; r != ranges_.end() && r->first <= to; r = ranges_.erase(r)) {
      from = std::min(from, r->first);
      to = std::max(to, r->second);
    }
    ranges_[from] = to;
  }
  bool any(const float* from, const float* to) const {
    const auto r = ranges_.lower_bound(to);
    return r != ranges_.begin() && std::prev(r)->second > from;
  }
  bool all(const float* from, const float* to) const {
    const auto r = ranges_.upper_bound(from);
    return r != ranges_.begin() && std::prev(r)->second >= to;
  }
  const std::map<const float*, const float*>& ranges() const { return ranges_; }

 private:
  std::map<const float*, const float*> ranges_;
};

class Verifier {
 public:
  Verifier(const Graph& g, const BackPlan& plan, const Runs& runs) : g_(g), plan_(plan), runs_(runs) {}

  void seed(const float* p, std::size_t n) { written_.write(p, p + n); }
  void stage(const BackStage& stage) {
    check(stage.task + stage.tasks <= plan_.tasks.size(), "a stage has tasks that there are not");
    writes_.clear();
    for (u32 m = 0; m < stage.zeros; ++m) moved(plan_.moves[stage.zero + m]);
    for (u32 t = stage.task; t < stage.task + stage.tasks; ++t) {
      const BackTask& task = plan_.tasks[t];
      for (u32 before : task.after)
        check(before == kNoNode || (before >= stage.task && before < t), "a task waits for one that is not before it");
      const BackLane& lane = *plan_.lanes[task.lane];
      check(task.first + task.count <= lane.steps.size(), "a task has steps that there are not");
      of_task_ = Memory();
      for (u32 s = task.first; s < task.first + task.count; ++s) step(*runs_[task.run], lane, lane.steps[s]);
      for (const auto& [from, to] : of_task_.ranges()) writes_.push_back({from, to, t});
    }
    check_apart();
    for (u32 m = 0; m < stage.adds; ++m) moved(plan_.moves[stage.add + m]);
  }

 private:
  struct Write {
    const float *from, *to;
    u32 task;
  };

  void step(const Run& run, const BackLane& lane, const BackStep& step) {
    if (step.kind == StepKind::Passed) return;
    if (step.kind == StepKind::Zero || (step.kind != StepKind::Add && !cleared_)) spare_ = Memory();
    cleared_ = step.kind == StepKind::Zero;
    if (step.kind == StepKind::Zero || step.kind == StepKind::Add) {
      for (u32 m = 0; m < step.count; ++m) moved(lane.moves[step.first + m], &lane);
      return;
    }
    const bool stacked = step.kind == StepKind::Stacked;
    const u32 t = stacked ? run.plan.groups[step.of].type : step.of;
    const PlanType& type = run.plan.types[t];
    const Signature& sig = g_.sig(type.sig);
    const u32 slot = step.first + (stacked ? run.plan.groups[step.of].slot : 0);
    check(step.count > 0 && slot + step.count <= type.count, "a step has members that there are not");
    check(step.targets + sig.call_nargs <= lane.targets.size(), "a step has targets that there are not");
    for (u32 o = 0; o < sig.visible && stacked; ++o) {
      if (o == 0 && type.uneven) {
        read_uneven(run, run.plan.order.data() + run.plan.groups[step.of].begin + step.first, step.count);
        continue;
      }
      const std::size_t size = g_.out_size(type.sig, o);
      const float* from = (o == 0 && run.spent[t] & kSpentOutput ? run.value_base : run.grad_base) + type.value[o];
      check(written_.all(from + slot * size, from + (slot + step.count) * size), "a gradient is read that nobody made");
    }
    for (u32 j = 0; j < sig.call_nargs; ++j) target(run, lane, lane.targets[step.targets + j], type, j, step);
  }

  void read_uneven(const Run& run, const NodeId* members, u32 count) const {
    for (u32 m = 0; m < count; ++m) {
      const float* from = g_.value(members[m]) + (run.grad_base - run.value_base);
      check(written_.all(from, from + g_.dim(members[m]).size()), "a gradient is read that nobody made");
    }
  }

  void target(const Run& run, const BackLane& lane, const Target& to, const PlanType& type, u32 j,
              const BackStep& step) {
    const bool shared = g_.arg_shared(type.sig, j);
    if (!to.rows.wanted() || (step.kind == StepKind::Shared && !shared)) return;  // which is only read
    check(!type.over || j > 0 || !to.add, "a call adds to where it makes what it adds");
    const std::size_t size =
        (shared ? g_.dim(g_.shared_arg(type.sig, j)) : g_.dim_by_id(g_.stacked_dim(type.sig, j))).size();
    const bool part = g_.sig(type.sig).partial && size > g_.dim_by_id(g_.sig(type.sig).dim[0]).size();
    const u32 rows = shared ? 1 : step.count * g_.sig(type.sig).items;
    const NodeId* operands =
        type.ragged && !shared ? run.operands.ids.data() + run.operands.arg(step.of, j).first + step.first : nullptr;
    for (u32 m = 0; m < rows; ++m) {
      const float *from = to.rows[m], *end = from + (operands ? g_.dim(operands[m]).size() : size);
      if (in_spare(lane, from)) {
        check(!to.add || spare_.all(from, end), "a call adds to spare memory that is not clear");
        spare_.write(from, end);
      } else if (in_slab(from)) {
        check(!to.add || written_.all(from, end), "a call adds to what nobody has made");
        check(to.add || part || !written_.any(from, end), "a call assigns what was written before");
      }
      write(from, end);
    }
  }

  void moved(const Move& m, const BackLane* lane = nullptr) {
    for (std::size_t k = 0; k < m.rows; ++k) {
      const float* to = m.to[static_cast<std::ptrdiff_t>(k)];
      check(!m.from.wanted() || !in_slab(to) || written_.all(to, to + m.n), "something is added to what nobody made");
      write(to, to + m.n);
      if (!lane) continue;
      if (in_spare(*lane, to)) spare_.write(to, to + m.n);
      const float* from = m.from.wanted() ? m.from[static_cast<std::ptrdiff_t>(k)] : nullptr;
      check(!from || !in_spare(*lane, from) || spare_.all(from, from + m.n), "spare memory is added that nobody made");
    }
  }

  void write(const float* from, const float* to) {
    written_.write(from, to);
    of_task_.write(from, to);
  }

  static bool in_spare(const BackLane& lane, const float* p) { return p >= lane.spare && p < lane.spare + lane.spares; }

  // Leaves have memory that is clear from the start.
  bool in_slab(const float* p) const {
    const BackStage &last = plan_.stages[0], &first = plan_.stages[plan_.stages.size() - 1];
    for (u32 r = first.run; r < last.run + last.runs; ++r) {
      const Run& run = *runs_[r];
      if (run.grad_base && p >= run.grad_base && p < run.grad_base + run.plan.floats) return true;
      if (p >= run.value_base && p < run.value_base + run.plan.floats) return true;
    }
    return false;
  }

  bool waits(u32 task, u32 before) const {
    if (task == before) return true;
    return std::any_of(plan_.tasks[task].after, plan_.tasks[task].after + 2,
                       [&](u32 t) { return t != kNoNode && t >= before && waits(t, before); });
  }

  // Tasks that may run at the same time write to different memory.
  void check_apart() {
    std::sort(writes_.begin(), writes_.end(), [](const Write& a, const Write& b) { return a.from < b.from; });
    for (std::size_t k = 0; k < writes_.size(); ++k)
      for (std::size_t n = k + 1; n < writes_.size() && writes_[n].from < writes_[k].to; ++n) {
        const u32 a = std::min(writes_[k].task, writes_[n].task), b = std::max(writes_[k].task, writes_[n].task);
        check(waits(b, a), "two tasks that may run at the same time write to the same memory");
      }
  }

  const Graph& g_;
  const BackPlan& plan_;
  const Runs& runs_;
  Memory written_, of_task_;
  Memory spare_;          // of what is spare, what the call has written that is looked at, and what was cleared for it
  bool cleared_ = false;  // the step before cleared something
  std::vector<Write> writes_;
};

}  // namespace

void verify_back_plan(const Graph& g, const BackPlan& plan, const Runs& runs, const float* seed, std::size_t n) {
  Verifier v(g, plan, runs);
  v.seed(seed, n);
  for (const BackStage& stage : plan.stages) v.stage(stage);
}

}  // namespace dnl
