#include "exec/complete.h"

#include <algorithm>

#include "exec/runner.h"

namespace dnl {

void Completion::begin() {
  first_.clear();
  last_ = std::chrono::steady_clock::now();
}

void Completion::note(const Graph& g, NodeId argument, u32 run, u32 group) {
  const NodeId root = g.node(argument).root;
  if (!g.node(root).is(kLeaf) || g.signature(root).leaf != Leaf::Param) return;
  Parameter* p = g.parameter(root);
  for (First& f : first_) {
    if (f.parameter != p) continue;
    if (f.run == run) f.group = std::min(f.group, group);
    return;
  }
  first_.push_back({run, group, p});
}

void Completion::see(const Graph& g, u32 number, const Run& run) {
  for (const PlanType& type : run.plan.types)
    for (u32 j = 0; j < g.sig(type.sig).nargs; ++j)
      if (g.arg_shared(type.sig, j)) note(g, g.shared_arg(type.sig, j), number, type.first_group);
  for (u32 k = 0; k < run.plan.groups.size(); ++k) {
    const Group& group = run.plan.groups[k];
    const Signature& sig = g.sig(run.plan.types[group.type].sig);
    for (u32 j = 0; j < sig.call_nargs; ++j) {
      const Operands::Arg& arg = run.operands.arg(k, j);
      if (arg.first == kNoNode) continue;
      for (u32 m = 0; m < group.count * sig.items; ++m) note(g, run.operands.ids[arg.first + m], number, k);
    }
  }
  std::sort(first_.begin(), first_.end(),
            [](const First& a, const First& b) { return a.run != b.run ? a.run < b.run : a.group < b.group; });
}

void Completion::passed(u32 run, u32 group) {
  told_.clear();
  for (; !first_.empty(); first_.pop_back()) {
    const First& f = first_[first_.size() - 1];
    if (f.run < run || (f.run == run && f.group < group)) break;
    told_.push_back(f.parameter);
  }
  if (told_.empty()) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < kPause) return;
    last_ = now;
  }
  watch->complete(told_.data(), told_.size());
}

}  // namespace dnl
