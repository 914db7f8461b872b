// check_validity: which values that are not finite are the fault of the node that has them. Who may include: nobody.
//
// NaN always is. An infinity is not if it was put in, or comes of one that was: masks of -inf are added to scores, and
// log_softmax gives -inf to what it leaves out.
#include <cmath>

#include "exec/frame.h"
#include "exec/runner.h"

namespace dnl {

Runner::Extremes Runner::extremes(NodeId i) const {
  std::vector<float> host(g_.dim(i).size());
  backend_->download(host.size(), g_.value(i), host.data());
  Extremes found;
  for (float v : host) {
    found.nan |= std::isnan(v);
    found.infinity |= std::isinf(v);
  }
  return found;
}

// Weights are no excuse: theirs come of an update. Nor are values that are gone: these were looked at before.
bool Runner::brings_infinity(NodeId i) const {
  const Node &node = g_.node(i), &root = g_.node(node.root);
  if (root.is(kOverwritten)) return false;
  const Leaf leaf = g_.signature(node.root).leaf;
  return (leaf == Leaf::Input || leaf == Leaf::None) && extremes(i).infinity;
}

bool Runner::at_fault(NodeId i) const {
  if (extremes(i).nan) return true;
  if (op_def(g_.signature(i).op).leaves_out) return false;
  for (u32 j = 0; j < g_.nargs(i); ++j)
    if (brings_infinity(g_.operands(i)[j])) return false;
  return true;
}

// One question for all values of some groups, for a device answers late; and more where something is not finite.
void Runner::check_finite(const Run& run, u32 from, u32 to) {
  auto values = [&](const Group& group, u32 first, u32 count) {
    const PlanType& type = run.plan.types[group.type];
    if (type.uneven) {  // one behind another all the same
      const NodeId* members = run.plan.order.data() + group.begin + first;
      std::size_t all = 0;
      for (u32 m = 0; m < count; ++m) all += g_.dim(members[m]).size();
      return Numbers{g_.value(members[0]), all};
    }
    const std::size_t size = g_.out_size(type.sig, 0);
    return Numbers{run.value_base + type.value[0] + (group.slot + first) * size, size * count};
  };
  auto first_bad = [&](std::size_t begin) {
    return begin + backend_->first_not_finite(checked_.size() - begin, checked_.data() + begin);
  };
  const std::size_t groups = to - from;
  checked_.clear();
  for (u32 k = from; k < to; ++k) checked_.push_back(values(run.plan.groups[k], 0, run.plan.groups[k].count));
  for (std::size_t k = 0; (k = first_bad(k)) < groups; ++k) {
    const Group& group = run.plan.groups[from + k];
    for (u32 m = 0; m < group.count; ++m) checked_.push_back(values(group, m, 1));
    for (std::size_t m = groups; (m = first_bad(m)) < checked_.size(); ++m) {
      const NodeId i = run.plan.order[group.begin + (m - groups)];
      if (at_fault(i)) throw NotFiniteError(i, g_);
    }
    checked_.resize(groups);
  }
}

}  // namespace dnl
