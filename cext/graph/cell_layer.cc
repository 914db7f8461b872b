#include "graph/cell_layer.h"

#include <algorithm>

namespace dnl {

// The steps of a run: nodes like those before are added one behind the other, the others by the graph.
class CellLayer::Run {
 public:
  Run(CellLayer& layer, Graph& g, const CellKind& kind, u32 n)
      : l_(layer), g_(g), kind_(kind), to_(g), room_(std::min(n, kSteps)), generation_(g.generation()) {
    make_room();
  }
  void end() { to_.end(); }
  void more() {
    end();
    make_room();
  }
  static constexpr u32 kSteps = 64;  // for which room is made at once

  NodeId step(NodeId x, NodeId h, NodeId c) {
    const NodeId seen_x = masked_x(x), seen_h = masked_h(h);
    x = add(l_.project_, [&] { return l_.project(g_, kind_, seen_x); }, seen_x);
    to_.node(x).flags |= kInner;
    const auto cell = [&] { return l_.cell(g_, kind_, x, seen_h, c); };
    if (h == kNoNode) return add(l_.first_, cell, x);
    return kind_.has_cell ? add(l_.step_, cell, x, seen_h, c) : add(l_.step_, cell, x, seen_h);
  }

 private:
  void make_room() { to_.begin(room_ * kNodes, room_ * kArgs, 0); }
  static constexpr u32 kNodes = 3 + kMaxOutputs, kArgs = 13;  // of a step, at most

  NodeId masked_x(NodeId x) {
    return l_.mask_x == kNoNode ? x : add(l_.mask_x_, [&] { return l_.masked_x(g_, kind_, x); }, x);
  }
  NodeId masked_h(NodeId h) {
    if (l_.mask_h == kNoNode || h == kNoNode) return h;
    return add(l_.mask_h_, [&] { return l_.masked_h(g_, kind_, h); }, h);
  }
  template <class Anew, class... Id>
  NodeId add(SameOp& op, const Anew& anew, Id... moving) {
    if (op.fits(to_, generation_, moving...)) return op.again(to_, moving...);
    to_.end();
    const NodeId i = anew();
    make_room();
    return i;
  }

  CellLayer& l_;
  Graph& g_;
  const CellKind& kind_;
  RepeatAdder to_;
  const u32 room_, generation_;
};

NodeId CellLayer::masked_x(Graph& g, const CellKind& kind, NodeId x) {
  if (mask_x == kNoNode) return x;
  const NodeId args[2] = {x, mask_x};
  return mask_x_.add(g, kind.mask, args, 2, 0, 1, nullptr, 0);
}

NodeId CellLayer::masked_h(Graph& g, const CellKind& kind, NodeId h) {
  if (mask_h == kNoNode || h == kNoNode) return h;
  const NodeId args[2] = {h, mask_h};
  return mask_h_.add(g, kind.mask, args, 2, 0, 1, nullptr, 0);
}

NodeId CellLayer::project(Graph& g, const CellKind& kind, NodeId x) {
  const NodeId args[3] = {b, wx, x};
  return project_.add(g, kind.project, args, 3, 2, 1, nullptr, 0);
}

NodeId CellLayer::cell(Graph& g, const CellKind& kind, NodeId x, NodeId h, NodeId c) {
  NodeId args[6] = {x};
  u32 moving = 1;
  const bool first = h == kNoNode;
  if (!first) args[moving++] = h;
  if (!first && kind.has_cell) args[moving++] = c;
  int n = static_cast<int>(moving);
  for (int k = first ? kind.n_u - kind.n_first : 0; k < kind.n_u; ++k) args[n++] = u[k];
  return first ? first_.add(g, kind.first, args, n, 0, moving, &kind.key, kind.n_key)
               : step_.add(g, kind.step, args, n, 0, moving, &kind.key, kind.n_key);
}

NodeId CellLayer::step(Graph& g, const CellKind& kind, NodeId x, NodeId h, NodeId c) {
  along(g, kind, &x, 1, nullptr, false, h, c);
  return x;
}

void CellLayer::along(Graph& g, const CellKind& kind, NodeId* row, u32 n, const i32* order, bool reverse, NodeId h,
                      NodeId c) {
  Run run(*this, g, kind, n);
  for (u32 k = 0; k < n; ++k) {
    if (k && k % Run::kSteps == 0) run.more();
    const u32 t = reverse ? n - 1 - k : k;
    const i32 before = order ? order[t] : static_cast<i32>(t) - 1;
    const bool begins = before < 0;
    const NodeId h_before = begins ? h : row[before];
    row[t] = run.step(row[t], h_before, begins ? c : h_before + 1);
  }
  run.end();
}

}  // namespace dnl
