// make_plan: prepares what strategies read, runs one, lays out memory.
#include "schedule/plan.h"

namespace dnl {
namespace {

constexpr const char* kNames[] = {"none", "depth", "agenda", "greedy", "auto"};

// Local indices, types and dependencies of plan.exec.
void prepare(const Graph& g, Plan& plan, PlanScratch& s, bool one_type_per_node) {
  const u32 n = static_cast<u32>(plan.exec.size());
  s.type_of_sig.assign(g.signatures(), kNoNode);
  s.type_of.resize(n);
  for (u32 i = 0; i < n; ++i) {
    const NodeId id = plan.exec[i];
    s.local[id] = i;
    const u32 sig = g.node(id).sig;
    const u32 family = g.sig(sig).family;
    u32& t = s.type_of_sig[family];
    if (t == kNoNode || one_type_per_node) {
      t = static_cast<u32>(plan.types.size());
      plan.types.push_back({sig, 0, 0, false, {0, 0, 0, 0}, false, false, 0});
    }
    PlanType& type = plan.types[t];
    ++type.count;
    if (family != sig) {
      type.ragged |= sig != type.sig;
      type.uneven |= g.sig(sig).dim[0] != g.sig(type.sig).dim[0];
      type.floats += g.out_size(sig, 0);
    }
    s.type_of[i] = t;
  }
  s.dep_begin.resize(n + 1);
  s.deps.clear();
  for (u32 i = 0; i < n; ++i) {
    s.dep_begin[i] = static_cast<u32>(s.deps.size());
    const NodeId id = plan.exec[i];
    const NodeId* args = g.operands(id);
    const u32 nargs = g.nargs(id);
    for (u32 j = 0; j < nargs; ++j) {
      const u32 l = s.local[g.node(args[j]).producer];
      if (l != kNoNode) s.deps.push_back(l);
    }
  }
  s.dep_begin[n] = static_cast<u32>(s.deps.size());
}

// Does each node wait for the one before it, as where a program asks for a value at each step? Then there is one order.
bool is_chain(const PlanScratch& s, u32 n) {
  for (u32 i = 1; i < n; ++i) {
    const u32 *d = s.deps.data() + s.dep_begin[i], *end = s.deps.data() + s.dep_begin[i + 1];
    while (d != end && *d != i - 1) ++d;
    if (d == end) return false;
  }
  return true;
}

}  // namespace

Strategy strategy_by_name(const std::string& name) {
  std::string names;
  for (std::size_t i = 0; i < sizeof(kNames) / sizeof(kNames[0]); ++i) {
    if (name == kNames[i]) return static_cast<Strategy>(i);
    names += (i ? ", " : "") + std::string(kNames[i]);
  }
  fail_value("[autobatch] strategies are " + names + "; got '" + name + "'");
}

const char* strategy_name(Strategy s) { return kNames[static_cast<int>(s)]; }

void make_plan(const Graph& g, Strategy strategy, Plan& plan, PlanScratch& scratch) {
  plan.order.clear();
  plan.groups.clear();
  plan.types.clear();
  plan.floats = 0;
  plan.lower_bound = 0;
  plan.steps = 0;
  const LocalPlaces places(scratch, plan.exec, g.size());
  prepare(g, plan, scratch, strategy == Strategy::None);
  const StrategyInput in{g, plan, scratch};
  if (is_chain(scratch, static_cast<u32>(plan.exec.size()))) strategy = Strategy::None;
  switch (strategy) {
    case Strategy::None: schedule_none(in, plan); break;
    case Strategy::Depth:
      schedule_depth(in, plan);
      plan.lower_bound = lower_bound(in, plan.steps);
      break;
    case Strategy::Agenda:
      schedule_agenda(in, plan);
      plan.lower_bound = lower_bound(in, plan.steps);
      break;
    case Strategy::Greedy: schedule_greedy(in, plan); break;
    case Strategy::Auto: schedule_auto(in, plan); break;
  }
  lay_out(g, plan, scratch);
}

}  // namespace dnl
