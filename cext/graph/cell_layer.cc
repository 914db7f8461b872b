#include "graph/cell_layer.h"

namespace dnl {

NodeId CellLayer::masked_x(Graph& g, const CellKind& kind, NodeId x) {
  if (mask_x == kNoNode) return x;
  const NodeId args[2] = {x, mask_x};
  return mask_x_.add(g, kind.mask, args, 2, nullptr, 0);
}

NodeId CellLayer::masked_h(Graph& g, const CellKind& kind, NodeId h) {
  if (mask_h == kNoNode || h == kNoNode) return h;
  const NodeId args[2] = {h, mask_h};
  return mask_h_.add(g, kind.mask, args, 2, nullptr, 0);
}

NodeId CellLayer::project(Graph& g, const CellKind& kind, NodeId x) {
  const NodeId args[3] = {b, wx, x};
  return project_.add(g, kind.project, args, 3, nullptr, 0);
}

NodeId CellLayer::cell(Graph& g, const CellKind& kind, NodeId x, NodeId h, NodeId c) {
  NodeId args[6] = {x};
  int n = 1;
  const bool first = h == kNoNode;
  if (!first) args[n++] = h;
  if (!first && kind.has_cell) args[n++] = c;
  for (int k = first ? kind.n_u - kind.n_first : 0; k < kind.n_u; ++k) args[n++] = u[k];
  return first ? first_.add(g, kind.first, args, n, &kind.key, kind.n_key)
               : step_.add(g, kind.step, args, n, &kind.key, kind.n_key);
}

NodeId CellLayer::step(Graph& g, const CellKind& kind, NodeId x, NodeId h, NodeId c) {
  const NodeId seen_x = masked_x(g, kind, x), seen_h = masked_h(g, kind, h);
  x = project(g, kind, seen_x);
  g.mark_inner(x);
  return cell(g, kind, x, seen_h, c);
}

}  // namespace dnl
