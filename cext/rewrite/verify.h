// The grammar of graphs, checked: what holds between the nodes once they have been rewritten and before they are
// planned. Who may include: rewrite/, exec/. Includes: graph/graph.h.
#pragma once
#include "graph/graph.h"

namespace dnl {

// Throws Error(Internal) unless, of the nodes from `from` on that are neither fused nor dead: arguments stand before
// who reads them (leaves may stand behind), none is fused or dead, uses are counted exactly (up to Node::kMany), a node
// needs a gradient if and only if something that it reads does, and depth grows from argument to reader. `after`: a
// pass, for the message. On with configure(verify=True).
void verify_graph(const Graph& g, NodeId from, Vec<u32>& scratch, const char* after = nullptr);

}  // namespace dnl
