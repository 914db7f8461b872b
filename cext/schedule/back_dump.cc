// A backward plan as text: one line per step. What golden tests compare and who debugs reads.
#include "schedule/back_plan.h"

namespace dnl {
namespace {

// Where addresses are, in words that are the same from run to run.
class Places {
 public:
  Places(const Graph& g, Backend& backend, const BackPlan& plan, const BackLane& lane, const Runs& runs)
      : g_(g),
        backend_(backend),
        lane_(lane),
        runs_(runs),
        first_(plan.stages[plan.stages.size() - 1].run),
        end_(plan.stages[0].run + plan.stages[0].runs) {}

  // "r0+24": in the slabs of gradients of run 0; "v0+24": of values; "p2", "t0+8": gradients of parameter 2 or of table
  // 0; "spare": added later, or wanted by nobody; "own": memory of its own in this pass.
  std::string name(const float* p) const {
    auto in = [&](const float* base, std::size_t n) { return base && p >= base && p < base + n; };
    auto at = [&](char what, u32 number, const float* base) {
      return what + std::to_string(number) + "+" + std::to_string(p - base);
    };
    for (u32 r = first_; r < end_; ++r) {
      const Run& run = *runs_[r];
      if (in(run.grad_base, run.plan.floats)) return at('r', r, run.grad_base);
      if (in(run.value_base, run.plan.floats)) return at('v', r, run.value_base);
    }
    for (u32 k = 0; k < g_.parameters(); ++k)
      if (Store& grad = g_.parameter(g_.parameter_node(k))->grad; in(grad.at(backend_), grad.size()))
        return at('p', k, grad.at(backend_));
    for (u32 k = 0; k < g_.tables(); ++k)
      if (Store& grad = g_.table(k)->grad; in(grad.at(backend_), grad.size())) return at('t', k, grad.at(backend_));
    return in(lane_.spare, lane_.spares) ? "spare" : "own";
  }

  // '=' assigned, '+' added to, '<' read.
  std::string target(const Target& t, u32 count, bool read, u32 most) const {
    if (!t.rows.wanted()) return " .";
    return std::string(read ? " <" : t.add ? " +" : " =") + rows(t.rows, count, most);
  }
  std::string rows(const Rows& list, u32 count, u32 most) const {
    std::string text;
    for (u32 m = 0; m < count && m < most; ++m) text += (m ? "," : "") + name(list[m]);
    return text + (count > most ? ",.." : "");
  }

 private:
  const Graph& g_;
  Backend& backend_;
  const BackLane& lane_;
  const Runs& runs_;
  u32 first_, end_;  // runs that the pass comes to
};

std::string dump_call(const Graph& g, const Run& run, const BackLane& lane, const BackStep& step, const Places& places,
                      u32 most) {
  const bool stacked = step.kind == StepKind::Stacked;
  const PlanType& type = run.plan.types[stacked ? run.plan.groups[step.of].type : step.of];
  const Group& group = run.plan.groups[stacked ? step.of : type.first_group];
  std::string text = (stacked ? "stacked " : "shared ") + std::to_string(step.of) + "\t" +
                     describe_group(g, run.plan, group, step.count);
  if (step.first) text += " from " + std::to_string(step.first);
  text += std::string(step.kept ? ", kept" : "") + (step.apart ? ", apart" : "") + "\t";
  for (u32 j = 0; j < g.sig(type.sig).call_nargs; ++j)
    text += places.target(lane.targets[step.targets + j],
                          g.arg_shared(type.sig, j) ? 1 : step.count * g.sig(type.sig).items,
                          !stacked && !g.arg_shared(type.sig, j), most);
  return text;
}

std::string dump_moves(const Move* moves, u32 count, const Places& places, u32 most) {
  std::string text = moves->from.wanted() ? "add\t" : "zero\t";
  for (u32 m = 0; m < count && m < most; ++m)
    text += " " + places.rows(moves[m].to, static_cast<u32>(moves[m].rows), most) + " of " + std::to_string(moves[m].n);
  return text + (count > most ? " .." : "") + "\n";
}

}  // namespace

std::string dump_back_plan(const Graph& g, Backend& backend, const BackPlan& plan, const Runs& runs, u32 most) {
  std::string text;
  for (const BackStage& stage : plan.stages) {
    text += "stage of " + std::to_string(stage.runs) + (stage.runs > 1 ? " runs\n" : " run\n");
    const Places common(g, backend, plan, *plan.lanes[0], runs);
    if (stage.zeros) text += dump_moves(plan.moves.data() + stage.zero, stage.zeros, common, most);
    for (u32 t = stage.task; t < stage.task + stage.tasks; ++t) {
      const BackTask& task = plan.tasks[t];
      const BackLane& lane = *plan.lanes[task.lane];
      const Places places(g, backend, plan, lane, runs);
      text += "task " + std::to_string(t - stage.task) + " of run " + std::to_string(task.run);
      for (u32 k = 0; k < 2; ++k)
        if (task.after[k] != kNoNode) text += (k ? " and " : " after ") + std::to_string(task.after[k] - stage.task);
      text += "\n";
      for (u32 s = task.first; s < task.first + task.count; ++s) {
        const BackStep& step = lane.steps[s];
        if (step.kind == StepKind::Stacked || step.kind == StepKind::Shared)
          text += dump_call(g, *runs[task.run], lane, step, places, most) + "\n";
        else if (step.kind != StepKind::Passed)
          text += dump_moves(lane.moves.data() + step.first, step.count, places, most);
      }
    }
    if (stage.adds) text += dump_moves(plan.moves.data() + stage.add, stage.adds, common, most);
  }
  return text;
}

}  // namespace dnl
