// CellLayer: one layer of a recurrent builder in one graph, and the nodes of its steps.
//
// A step is a projection of the input, which the cell alone reads, and the cell; with dropout, masks on the input and
// on the previous h come before them. Who may include: bindings/. Includes: graph/same_op.h.
#pragma once
#include "graph/same_op.h"

namespace dnl {

struct CellKind {
  OpId project, mask;  // affine_transform, cmult
  OpId first, step;    // ops of a step without a state before it, and of all others
  int n_u, n_first;    // recurrent weights, and how many of them, the last ones, the first step takes too
  bool has_cell;       // is c a part of the state? It is the node behind that of h
  Word key;            // the forget bias, if
  int n_key;           // there is one
};

struct CellLayer {
  NodeId b, wx, u[3];
  NodeId mask_x, mask_h;  // kNoNode: none

  // Steps for n inputs, in whose place come the h's. Input t follows input order[t], or where that is -1 the state h
  // and c, which are kNoNode at the start; without an order the one before it. reverse: the last input has the first
  // step.
  void along(Graph& g, const CellKind& kind, NodeId* row, u32 n, const i32* order, bool reverse, NodeId h, NodeId c);
  // h of one step.
  NodeId step(Graph& g, const CellKind& kind, NodeId x, NodeId h, NodeId c);
  // Its nodes one by one, for those who look at each: what is masked, if there is a mask; the projection; h.
  NodeId masked_x(Graph& g, const CellKind& kind, NodeId x);
  NodeId masked_h(Graph& g, const CellKind& kind, NodeId h);
  NodeId project(Graph& g, const CellKind& kind, NodeId x);
  NodeId cell(Graph& g, const CellKind& kind, NodeId x, NodeId h, NodeId c);

 private:
  class Run;
  SameOp mask_x_, mask_h_, project_, first_, step_;
};

}  // namespace dnl
